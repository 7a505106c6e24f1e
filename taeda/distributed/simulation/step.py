"""A training step as it is spread over a mesh of processes, and its simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from ..pipelining import orders as plans
from ..pipelining.orders import BACKWARD, FORWARD, Order
from .layers import Cost, Layer, Traffic, cost_of
from .network import Device, Network
from .program import Program, simulate_program
from .result import Memory, Simulation
from .timeline import COMPUTE, NETWORK, Part, Timeline

__all__ = ["Step", "simulate"]

_PLANS = {"gpipe": plans.gpipe, "1f1b": plans.one_forward_one_backward, "interleaved": plans.interleaved}
_SHARDINGS = (None, "optimizer", "full")


@dataclass(frozen=True)
class Step:
    """A training step.

    Attributes:
        layers: the model in order, each with the sizes that one process has of it for one microbatch.
        microbatches: how many each process works on in a step.
        schedule: ``"gpipe"``, ``"1f1b"`` or ``"interleaved"``, along the dimension ``"pp"`` of the mesh.
        interleave: stages a process, for ``"interleaved"``.
        data: the dimensions of the mesh along which processes have the same parameters and other data.
        sharding: what is cut over them: nothing (gradients are all-reduced), ``"optimizer"`` (its state), or ``"full"``
            (parameters, gradients and state; parameters are gathered for each pass).
        state_bytes: of the optimizer, for each element of the parameters: two float32 numbers by default.
        grad_bytes: of each element's gradient; as many as the parameter's where not given.
    """

    layers: Sequence[Layer]
    microbatches: int = 1
    schedule: str = "1f1b"
    interleave: int = 1
    data: tuple[str, ...] = ("dp",)
    sharding: str | None = None
    state_bytes: int = 8
    grad_bytes: int | None = None


class _Mesh:
    """The sizes of a mesh by name; neighbours lie along the last dimension."""

    def __init__(self, mesh: Any) -> None:
        names = getattr(mesh, "mesh_dim_names", None)
        sizes = dict(zip(names, mesh.shape, strict=True)) if names else mesh
        if not isinstance(sizes, Mapping) or not all(isinstance(n, int) and n > 0 for n in sizes.values()):
            raise TypeError(
                f"simulate: expected a DeviceMesh with names, or a dict of sizes such as "
                f"{{'pp': 4, 'dp': 8, 'tp': 8}}, got {mesh!r}"
            )
        self.sizes = dict(sizes)
        self.count = prod(self.sizes.values())

    def size(self, dims: Sequence[str]) -> int:
        return prod(self.sizes.get(dim, 1) for dim in dims)

    def ranks(self, dims: Sequence[str], pipeline: int) -> list[int]:
        """The ranks of a group along ``dims``: processes at ``pipeline`` along "pp", and at 0 along the others."""
        found, stride = [0], 1
        for name, size in reversed(self.sizes.items()):
            if name in dims:
                found = [rank + i * stride for i in range(size) for rank in found]
            elif name == "pp":
                found = [rank + pipeline * stride for rank in found]
            stride *= size
        return sorted(found)


def _stages(layers: Sequence[Layer], count: int) -> list[list[int]]:
    """Indices of layers, cut into stages of about equal number."""
    flat = [i for i, layer in enumerate(layers) for _ in range(layer.count)]
    if len(flat) < count:
        raise ValueError(f"simulate: {len(flat)} layers do not fill {count} stages")
    cuts = [round(i * len(flat) / count) for i in range(count + 1)]
    return [flat[a:b] for a, b in pairwise(cuts)]


class _Run:
    """One simulation."""

    def __init__(self, step: Step, mesh: Any, network: Network, device: Device) -> None:
        self.step, self.mesh, self.network, self.device = step, _Mesh(mesh), network, device
        if step.sharding not in _SHARDINGS:
            raise ValueError(f"simulate: expected sharding to be one of {_SHARDINGS}, got {step.sharding!r}")
        if step.schedule not in _PLANS:
            raise ValueError(f"simulate: expected schedule to be one of {tuple(_PLANS)}, got {step.schedule!r}")
        if step.interleave != 1 and step.schedule != "interleaved":
            raise ValueError(f"simulate: interleave={step.interleave} goes with schedule='interleaved'")
        lacking = {t.dim for layer in step.layers for t in layer.traffic} - set(self.mesh.sizes)
        if lacking:
            raise ValueError(f"simulate: layers exchange along {sorted(lacking)}, the mesh has {list(self.mesh.sizes)}")
        self.ranks = self.mesh.size(["pp"])
        self.stages = self.ranks * step.interleave
        self.of_stage = _stages(step.layers, self.stages)
        self.orders = plans.check(_PLANS[step.schedule], self.ranks, self.stages, step.microbatches)
        self.replicas = self.mesh.size(step.data)
        self.costs: list[Cost] = [cost_of(layer) for layer in step.layers]
        self.seconds = [
            layer.seconds or (device.seconds(cost.forward), device.seconds(cost.backward))
            for layer, cost in zip(step.layers, self.costs, strict=True)
        ]

    def grads(self, cost: Cost) -> float:
        """Bytes of a layer's gradients."""
        return cost.parameters if self.step.grad_bytes is None else cost.count * self.step.grad_bytes

    def part(self, index: int, kind: str, rank: int) -> Part:
        """A layer's pass."""
        layer, cost = self.step.layers[index], self.costs[index]
        forward, backward = self.seconds[index]
        again = kind == BACKWARD and layer.recompute
        done = [t for t in layer.traffic if t.backward == (kind == BACKWARD) or (again and not t.backward)]
        waits, hidden = (sum(self.traffic_seconds(t, rank) for t in done if t.hidden == h) for h in (False, True))
        group = self.mesh.ranks(self.step.data, rank)
        seconds = forward if kind == FORWARD else backward + (forward if again else 0.0)
        full, gradients = self.step.sharding == "full", self.grads(cost) if kind == BACKWARD else 0.0
        kind_of_sync = "reduce_scatter" if self.step.sharding else "all_reduce"
        sync = self.network.seconds(kind_of_sync, group, gradients)
        return Part(
            seconds, waits, hidden, gather=self.network.seconds("all_gather", group, cost.parameters) if full else 0.0,
            scatter=sync if full else 0.0, scatter_last=0.0 if full else sync,
        )  # fmt: skip

    def traffic_seconds(self, traffic: Traffic, rank: int) -> float:
        """The time of a layer's own collective."""
        group = self.mesh.ranks([traffic.dim], rank)
        if traffic.kind == "send":
            group = group[:2]
        return self.network.seconds(traffic.kind, group, traffic.nbytes)

    def between(self, stage: int) -> float:
        """Bytes from a stage to the next."""
        return self.costs[self.of_stage[stage][-1]].outputs

    def run(self) -> Simulation:
        """The time axis, memory and traffic."""
        parts = {
            (stage, kind): [
                self.part(i, kind, stage % self.ranks)
                for i in (self.of_stage[stage] if kind == FORWARD else reversed(self.of_stage[stage]))
            ]
            for stage in range(self.stages)
            for kind in (FORWARD, BACKWARD)
        }
        sends = []
        for stage in range(self.stages - 1):
            ends = [self.mesh.ranks([], s % self.ranks)[0] for s in (stage, stage + 1)]
            sends.append(self.network.seconds("send", ends, self.between(stage)) if ends[0] != ends[1] else 0.0)
        timeline = Timeline(self.network.overlaps)
        timeline.run(self.orders, self.stages, parts, sends, self.step.microbatches)
        memory = [self.memory(rank, order) for rank, order in enumerate(self.orders)]
        for rank in range(self.ranks):
            self.finish(timeline, rank)
        seconds = max(timeline.end_of(rank) for rank in range(self.ranks))
        flops = sum(self.costs[i].flops for stage in self.of_stage for i in stage) * self.step.microbatches
        return Simulation(
            seconds, self.mesh.count, self.ranks, flops * (self.mesh.count // self.ranks), memory,
            [self.traffic(rank) for rank in range(self.ranks)], tuple(timeline.spans), self.device,
        )  # fmt: skip

    def own(self, rank: int) -> list[int]:
        """The layers of a process."""
        return [i for stage in range(rank, self.stages, self.ranks) for i in self.of_stage[stage]]

    def finish(self, timeline: Timeline, rank: int) -> None:
        """Add the optimizer's step, once all gradients are ready, and the traffic that follows from it."""
        costs = [self.costs[i] for i in self.own(rank)]
        moved = sum(2 * (c.parameters + c.count * self.step.state_bytes) + self.grads(c) for c in costs)
        share = self.replicas if self.step.sharding else 1
        end = timeline.end_of(rank)
        end = timeline.put(rank, COMPUTE, "optimizer", "optimizer", end, moved / share / self.device.bandwidth)
        if self.step.sharding == "optimizer":
            group = self.mesh.ranks(self.step.data, rank)
            gather = self.network.seconds("all_gather", group, sum(c.parameters for c in costs))
            timeline.put(rank, NETWORK, "parameters", "collective", end, gather)

    def memory(self, rank: int, order: Order) -> Memory:
        """Bytes at the worst moment."""
        own = self.own(rank)
        costs = [self.costs[i] for i in own]
        sharding, n = self.step.sharding, self.replicas
        whole = n if sharding == "full" else 1
        parameters = sum(c.parameters for c in costs) / whole
        gradients = sum(self.grads(c) for c in costs) / whole
        state = sum(c.count for c in costs) * self.step.state_bytes / (n if sharding else 1)
        recomputed = [self.step.layers[i].recompute for i in own]
        work: float = max(c.work + (c.saved if again else 0) for c, again in zip(costs, recomputed, strict=True))
        if sharding == "full" and n > 1:  # two layers' parameters, and one's gradients, are whole at a time
            work += max(2 * c.parameters + self.grads(c) for c in costs)
        held = most = 0.0
        for action in order:
            layers = self.of_stage[action.stage]
            kept = float(self.costs[layers[0]].inputs + sum(map(self.kept, layers)))
            held += kept if action.kind == FORWARD else -kept
            most = max(most, held)
        return Memory(parameters, gradients, state, most, work)

    def kept(self, index: int) -> int:
        """Bytes of a layer between its passes."""
        cost = self.costs[index]
        return cost.outputs if self.step.layers[index].recompute else cost.saved

    def traffic(self, rank: int) -> dict[str, float]:
        """Bytes that a process sends in a step, by dimension."""
        step, n = self.step, self.replicas
        found: dict[str, float] = {}

        def add(dim: str, nbytes: float) -> None:
            if nbytes:
                found[dim] = found.get(dim, 0.0) + nbytes

        for i in self.own(rank):
            layer, cost = step.layers[i], self.costs[i]
            for t in layer.traffic:
                times = step.microbatches * (2 if layer.recompute and not t.backward else 1)
                add(t.dim, times * self.network.sent(t.kind, self.mesh.size([t.dim]), t.nbytes))
            name = "+".join(step.data)
            if step.sharding == "full":
                both = 2 * self.network.sent("all_gather", n, cost.parameters)
                add(name, step.microbatches * (both + self.network.sent("reduce_scatter", n, self.grads(cost))))
            elif step.sharding == "optimizer":
                sent = self.network.sent("reduce_scatter", n, self.grads(cost))
                add(name, sent + self.network.sent("all_gather", n, cost.parameters))
            else:
                add(name, self.network.sent("all_reduce", n, self.grads(cost)))
        for stage in range(rank, self.stages, self.ranks):
            if self.ranks > 1:
                add("pp", step.microbatches * self.between(stage) * (stage < self.stages - 1))
                add("pp", step.microbatches * self.between(stage - 1) * (stage > 0))
        return found


def simulate(
    step: Step | Program, mesh: Any, network: Network, device: Device, ranks: Sequence[int] | None = None
) -> Simulation:
    """Predict the time and memory of a training step on many processes, from a program or a description. Nothing is
    computed.

    A program is a function ``program(mesh)`` that makes a model on device meta and gives the function of one step::

        def program(mesh):
            with taeda.device("meta"):
                model = DistributedDataParallel(nn.Linear(512, 512), device_mesh=mesh["dp"])
                x = taeda.zeros(64, 512)
            optimizer = taeda.optim.AdamW(model.parameters())

            def step():
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()

            return step

    The program runs in some of the processes, in each of them twice: the second step counts. The device's rates give
    the time of its ops, the network's rates the time of its collectives and messages, which run beside the arithmetic
    until the program waits for them. Tensors on the CPU are assumed to have the same values in all processes.

    Args:
        step: a program; or a :class:`Step`, a description of layers, a schedule, and what is sharded.
        mesh: sizes by name, from the dimension whose neighbours are farthest apart to that whose are nearest, or a
            DeviceMesh with names. ``"pp"`` is that of the pipeline. For a Step, those of ``step.data`` have the same
            parameters; others are those of the layers' own traffic.
        network: links and latencies.
        device: the processors, all alike.
        ranks: the processes in which a program runs, the others being like one of these. One of each place along
            ``"pp"`` by default.
    Returns:
        Time, memory and traffic, and the schedule. For a program, all memory except parameters, gradients and an
        optimizer's state counts as activations.
    Raises:
        ValueError: a layer is not on device meta, or names, schedule and sizes do not go together.
        RuntimeError: the processes wait for each other, or send messages to one that is not simulated.
        TypeError: the step is neither a Step nor a function.
    """
    if isinstance(step, Step):
        if ranks is not None:
            raise ValueError("simulate: ranks go with a program, not with a Step")
        return _Run(step, mesh, network, device).run()
    if not callable(step):
        raise TypeError(f"simulate: expected a Step, or a function of the mesh, got {type(step).__name__}")
    return simulate_program(step, _Mesh(mesh).sizes, network, device, ranks)

"""Steps that are simulated and steps that are run, by the same programs, on two or more processes of this machine.

    OMP_NUM_THREADS=1 python -m taeda.distributed.run --nproc-per-node=2 bench/simulated.py

Each program makes a model, once with memory, which is run, and once on device meta, which is simulated. In each round
all processes run steps; before and after, they measure the rates of the ops of the model's layers and those of the
network, all at the same time, and simulate, of which the mean counts. Each has a core of its own where there are
enough, as MPI's launchers bind them; otherwise they share all. Medians over the rounds are printed: of the step, of
what was simulated, and of their quotient. Layers that sleep tell whether what waits for what is right; layers that
compute tell of all.
"""

import argparse
import math
import os
import statistics
import time
from dataclasses import replace

import taeda
import taeda.distributed as dist
from taeda import nn
from taeda.distributed.fsdp import fully_shard
from taeda.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from taeda.distributed.simulation import measure_device, measure_network, simulate, spend
from taeda.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from taeda.nn.parallel import DistributedDataParallel


class Sleep(taeda.autograd.Function):
    """Takes so many seconds in each pass."""

    @staticmethod
    def forward(ctx, x, weight, forward, backward):
        ctx.backward_seconds = backward
        spend(forward)
        return x * weight

    @staticmethod
    def backward(ctx, g):
        spend(ctx.backward_seconds)
        return g, g.sum(), None, None


class Sleeper(nn.Module):
    """A layer that sleeps."""

    def __init__(self, forward: float, backward: float) -> None:
        super().__init__()
        self.weight, self.seconds = nn.Parameter(taeda.ones(())), (forward, backward)

    def forward(self, x):
        return Sleep.apply(x, self.weight, *self.seconds)


def block(width: int, parts: int = 1) -> nn.Module:
    """A layer that computes."""
    inner = 4 * width // parts
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))


def loss_fn(out: taeda.Tensor, target: taeda.Tensor) -> taeda.Tensor:
    """Mean squared error."""
    return (out - target).square().mean()


class Programs:
    """The rows: for each device a function of the mesh that gives that of a step."""

    def __init__(self, width: int, blocks: int, rows: int) -> None:
        self.width, self.blocks, self.rows = width, blocks, rows

    def model(self) -> nn.Module:
        """A process's part, or the whole."""
        return nn.Sequential(*[block(self.width) for _ in range(self.blocks)])

    def alone(self, parts: int = 1, microbatches: int = 1, stages: int = 1, one_by_one: bool = True):
        """The step of one process's layers, without others: with ``1 / parts`` of the inner numbers."""
        layers = [block(self.width, parts) for _ in range(stages * self.blocks)]
        x, optimizer = (
            taeda.zeros(self.rows // microbatches, self.width),
            taeda.optim.AdamW([p for layer in layers for p in layer.parameters()]),
        )

        def step():
            optimizer.zero_grad()
            losses = []
            for i in range(microbatches * stages):
                of_stage = layers[i % stages * self.blocks :][: self.blocks]
                losses.append(loss_fn(nn.Sequential(*of_stage)(x), x))
                if one_by_one:
                    losses.pop().backward()
            for loss in losses:
                loss.backward()
            optimizer.step()

        return step

    def trained(self, wrap, device: str):
        """A program that trains what ``wrap(model, mesh)`` makes."""

        def program(mesh):
            with taeda.device(device):
                model, x = self.model(), taeda.zeros(self.rows, self.width)
            model = wrap(model, mesh["d"])
            optimizer = taeda.optim.AdamW(model.parameters())

            def step():
                optimizer.zero_grad()
                loss_fn(model(x), x).backward()
                optimizer.step()

            return step

        return program

    @staticmethod
    def data_parallel(model, mesh):
        """Gradients are averaged over the processes."""
        return DistributedDataParallel(model, device_mesh=mesh)

    @staticmethod
    def sharded(model, mesh):
        """Parameters are cut, and gathered for each pass."""
        for one in model:
            fully_shard(one, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    @staticmethod
    def tensor_parallel(model, mesh):
        """Each process has a part of the inner numbers."""
        for one in model:
            parallelize_module(one, mesh, {"1": ColwiseParallel(), "3": RowwiseParallel()})
        return model

    def pipeline(self, kind, microbatches: int, stages: int, sleeps: bool, device: str):
        """A program with ``stages`` stages a process."""

        def program(mesh):
            group, rank, size = mesh.get_group("pp"), mesh.get_local_rank("pp"), mesh.size()
            with taeda.device(device):
                parts = [Sleeper(0.02 / stages, 0.04 / stages) if sleeps else self.model() for _ in range(stages)]
                x = taeda.zeros(8, 4) if sleeps else taeda.zeros(self.rows, self.width)
            made = [
                PipelineStage(part, rank + i * size, stages * size, device, group=group) for i, part in enumerate(parts)
            ]
            schedule = kind(made if stages > 1 else made[0], microbatches, loss_fn=loss_fn)
            optimizer = taeda.optim.AdamW([p for part in parts for p in part.parameters()])

            def step():
                optimizer.zero_grad()
                schedule.step(*([x] if rank == 0 else []), target=x if rank == size - 1 else None)
                optimizer.step()

            return step

        return program


def seconds_of(step, count: int) -> float:
    """The median of ``count`` steps, each from a start in common to the end of the last process."""
    times = []
    for _ in range(count):
        dist.barrier()
        start = time.perf_counter()
        step()
        dist.barrier()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def row(name: str, program, dim: str, local, o: argparse.Namespace) -> None:
    """Run a program and simulate it, in turn. ``local`` is what is measured; of layers that sleep, nothing is."""
    size = dist.get_world_size()
    step = program("cpu")(dist.init_device_mesh("cpu", (size,), mesh_dim_names=(dim,)))
    seconds_of(step, 2)

    def simulated() -> tuple[float, float]:
        network, device = measure_network(nbytes=o.nbytes, repeat=5), measure_device(local, repeat=5)
        if local is None:
            network, device = replace(network, overlaps=True), replace(device, processors=math.inf)
        return simulate(program("meta"), {dim: size}, network, device).seconds, device.processors

    rounds, before = [], simulated()
    for _ in range(o.rounds):
        took, after = seconds_of(step, o.steps), simulated()
        expected, processors = map(statistics.mean, zip(before, after, strict=True))
        rounds.append((took, expected, expected / took - 1, processors))
        before = after
    ran, expected, off, processors = (statistics.median(column) for column in zip(*rounds, strict=True))
    if dist.get_rank() == 0:
        spread = f"{min(r[2] for r in rounds):+.0%} to {max(r[2] for r in rounds):+.0%}"
        print(
            f"{name:48s} run {ran * 1e3:7.2f} ms  simulated {expected * 1e3:7.2f} ms  {off:+.1%} ({spread})  "
            f"processors {processors:.2f}",
            flush=True,
        )


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--nbytes", type=int, default=1 << 21, help="of the tensors that tell of the network")
    parser.add_argument("--only", choices=("sleep", "compute"))
    o = parser.parse_args()
    dist.init_process_group()
    cores = sorted(os.sched_getaffinity(0))
    if dist.get_world_size() <= len(cores):
        os.sched_setaffinity(0, cores[dist.get_rank() : dist.get_rank() + 1])
    programs, size = Programs(o.width, o.blocks, o.rows), dist.get_world_size()
    schedules = ((ScheduleGPipe, 4, 1), (Schedule1F1B, 8, 1), (ScheduleInterleaved1F1B, 4, 2))
    for sleeps in (True, False):
        if o.only == ("compute" if sleeps else "sleep"):
            continue
        for kind, m, stages in schedules:
            name = f"{kind.__name__}, {m} microbatches{', asleep' if sleeps else ''}"
            local = None if sleeps else programs.alone(1, m, stages, kind is Schedule1F1B)
            row(name, lambda where: programs.pipeline(kind, m, stages, sleeps, where), "pp", local, o)  # noqa: B023
    if o.only != "sleep":
        for wrap in (programs.data_parallel, programs.sharded, programs.tensor_parallel):
            local = programs.alone(size if wrap is programs.tensor_parallel else 1)
            row(wrap.__name__, lambda where: programs.trained(wrap, where), "d", local, o)  # noqa: B023
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""A program that is simulated: run on device meta in some of the processes, while collectives move nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from taeda.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ..._core import Tensor
from ..._core.callbacks import callbacks
from ...ops.creation import empty
from ...ops.meta import check_meta
from ...ops.pointwise import neg
from ...utils import _pytree as pytree
from ..device_mesh import init_device_mesh
from ..groups import ProcessGroup, default_pg_timeout
from ..tensor.dtensor import DTensor
from .layers import _Counting
from .network import Device, Network
from .record import Begin, Clock, Mail, Recorder, RecordingEngine, Sent, current, recorded
from .replay import replay
from .result import Memory, Simulation
from .turns import Process, Turns

__all__ = ["simulate_program", "spend"]

_TIMED = 3  # steps, of whose Python the mean counts
_LOOKS = 500

Program = Callable[[Any], Callable[[], Any]]


def spend(seconds: float) -> None:
    """In a simulation, so many seconds of arithmetic; otherwise the process sleeps so long.

    For time that taeda's ops do not show: reading data, a library's own code.
    """
    recorder = current()
    if recorder is not None:
        recorder.spend(seconds)
    else:
        time.sleep(seconds)


def _check_meta(function: Any, args: Sequence, kwargs: dict) -> Any:
    """Check an op on device meta while the clock of the recorder stands still."""
    recorder = current()
    if recorder is None or recorder.clock is None:
        return check_meta(function, args, kwargs)
    recorder.clock.stop()
    try:
        return check_meta(function, args, kwargs)
    finally:
        recorder.clock.go()


def _bytes(tree: Any) -> int:
    """Bytes of the tensors in ``tree`` that this process has."""
    found = {id(x): x for x in pytree.tree_leaves(tree) if isinstance(x, Tensor)}
    return sum((x.to_local() if isinstance(x, DTensor) else x).nbytes for x in found.values())


class _Run:
    """One process: makes the model, does one step to warm up and one that is recorded."""

    def __init__(self, program: Program, sizes: dict[str, int], device: Device) -> None:
        self.program, self.sizes, self.device = program, sizes, device
        self.recorder = Recorder(device)
        self.process = Process()
        self.seen: list[tuple[int, ...]] = []  # bytes of parameters, gradients and state of each optimizer
        self.memory: Memory

    def before(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
        """An optimizer's step begins."""
        self.recorder.in_optimizer = True

    def after(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
        """An optimizer's step ends: note the bytes of parameters, gradients and state."""
        self.recorder.in_optimizer = False
        if not self.recorder.recording:
            return
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        found = parameters, [p.grad for p in parameters], list(optimizer.state.values())
        self.seen.append(tuple(map(_bytes, found)))

    def __call__(self, group: ProcessGroup) -> None:
        self.process.start(group)
        with recorded(self.recorder), _Counting(self.recorder, only_meta=True):
            mesh = init_device_mesh("cpu", tuple(self.sizes.values()), mesh_dim_names=tuple(self.sizes))
            step = self.program(mesh)
            if not callable(step):
                raise TypeError(
                    f"simulate: expected the program to give the function of a step, got {type(step).__name__}: "
                    f"`def program(mesh): ...; return step`"
                )
            step()
            self.process.reset()
            self.recorder.recording = True
            step()
            self.recorder.recording = False
        parameters, gradients, state = (sum(found) for found in zip((0, 0, 0), *self.seen, strict=True))
        rest = max(0, self.process.peak - parameters - gradients - state)
        self.memory = Memory(parameters, gradients, state, rest, 0.0)
        if self.device.host:
            with recorded(self.recorder):
                self.host(step)

    def host(self, step: Callable[[], Any]) -> None:
        """Time the Python code of some steps, ops included, without an observer."""
        x = empty(4, device="meta")

        def looks() -> None:
            for _ in range(_LOOKS):
                _check_meta(neg, (x,), {})

        cost = min(sum(seconds for seconds, _ in self.timed(looks, 0.0).laps) for _ in range(_TIMED)) / _LOOKS
        self.recorder.add_host([self.timed(step, cost) for _ in range(_TIMED)])

    def timed(self, run: Callable[[], Any], cost: float) -> Clock:
        """The processor time of ``run()`` without checks of tensors on device meta; to leave one out takes ``cost``."""
        self.recorder.clock = clock = Clock(cost)
        run()
        clock.lap(self.recorder.kind())
        self.recorder.clock = None
        return clock


class _Hooks:
    """Optimizers' steps are reported to the process that runs them."""

    def __init__(self, runs: Sequence[_Run]) -> None:
        self.of = {id(run.recorder): run for run in runs}

    def __enter__(self) -> None:
        def called(name: str) -> Callable:
            def hook(*args: Any) -> None:
                run = self.of.get(id(current()))
                if run is not None:
                    getattr(run, name)(*args)

            return hook

        self.handles = [
            register_optimizer_step_pre_hook(called("before")), register_optimizer_step_post_hook(called("after")),
        ]  # fmt: skip
        callbacks.check_meta = _check_meta

    def __exit__(self, *exc: object) -> None:
        callbacks.check_meta = check_meta
        for handle in self.handles:
            handle.remove()


def _coordinates(sizes: dict[str, int]) -> list[tuple[int, ...]]:
    return list(product(*map(range, sizes.values())))


def _along_the_pipeline(sizes: dict[str, int]) -> list[int]:
    """One process of each stage: the first along all other dimensions."""
    names = list(sizes)
    return [
        rank
        for rank, at in enumerate(_coordinates(sizes))
        if not any(a for a, n in zip(at, names, strict=True) if n != "pp")
    ]


def _traffic(run: _Run, sizes: dict[str, int], network: Network, names: Callable[[tuple], str]) -> dict[str, float]:
    """Bytes that a process sends in a step, by the dimensions along which they go."""
    found: dict[str, float] = {}
    for event in run.recorder.events:
        if isinstance(event, Begin):
            name, nbytes = names(event.ranks), network.sent(event.kind, len(event.ranks), event.nbytes)
        elif isinstance(event, Sent):
            name, nbytes = names((event.key[1], event.to)), event.nbytes
        else:
            continue
        if nbytes:
            found[name] = found.get(name, 0.0) + nbytes
    return found


def simulate_program(
    program: Program, sizes: dict[str, int], network: Network, device: Device, ranks: Sequence[int] | None
) -> Simulation:
    """See :func:`~taeda.distributed.simulation.simulate`."""
    coordinates = _coordinates(sizes)
    chosen = _along_the_pipeline(sizes) if ranks is None else sorted(set(ranks))
    if not chosen or not 0 <= chosen[0] <= chosen[-1] < len(coordinates):
        raise ValueError(f"simulate: expected ranks from 0 to {len(coordinates) - 1}, got {chosen}")
    runs = [_Run(program, sizes, device) for _ in chosen]
    turns = Turns([run.process for run in runs], [f"rank {rank}" for rank in chosen])
    mail, known = Mail(), frozenset(chosen)

    def body(i: int) -> Callable[[], None]:
        def until(ready: Callable[[], bool], doing: str) -> None:
            turns.until(i, ready, doing)

        engine = RecordingEngine(
            "0", range(len(coordinates)), chosen[i], runs[i].recorder, mail, until, known, default_pg_timeout
        )
        return lambda: runs[i](ProcessGroup(range(len(coordinates)), engine, "fake"))

    with _Hooks(runs):
        turns.run([body(i) for i in range(len(chosen))])

    def names(group: tuple) -> str:
        at = [coordinates[rank] for rank in group]
        return "+".join(name for d, name in enumerate(sizes) if len({c[d] for c in at}) > 1)

    share = device.processors * len(chosen) / len(coordinates)  # the others compute at the same time
    seconds, spans = replay([run.recorder.events for run in runs], chosen, network, share)
    flops = sum(run.recorder.flops for run in runs) * len(coordinates) / len(chosen)
    return Simulation(
        seconds, len(coordinates), len(chosen), flops, [run.memory for run in runs],
        [_traffic(run, sizes, network, names) for run in runs], tuple(spans), device,
    )  # fmt: skip

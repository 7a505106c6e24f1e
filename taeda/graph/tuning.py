"""Autotuning: what ``compile(mode="max-autotune")`` does beside replaying calls.

A call that can be replayed (``taeda/graph/replay.py``) has several variants, which give the same bits: more ops
deferred or none, and each launch on the thread pool or on the caller's thread alone. The first replays alternate
between them and are measured. Each is a real call of the program: nothing runs twice. The fastest variant is cached on
disk, by the kernels and sizes of the call, the processor and the number of threads. Later processes read it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from taeda._core.replay import MISS, Trace

from .._core import fusion
from .._core.pool import get_num_threads
from ..kernels import build, target

__all__ = ["VARIANTS", "Contest", "kept"]

#: The clock.
clock: Callable[[], float] = time.perf_counter
#: How many times each variant is measured. The best time counts.
ROUNDS = 7
#: Calls that are observed in one variant until two in a row do the same.
TRIES = 4
#: Another variant must take less than this share of the default's time.
GAIN = 0.97
#: Launches of so many seconds stay on the thread pool: only a busy machine would favour the caller's thread there.
LONG = 1e-4


def _defer_all(function: Callable, *args: Any, **kwargs: Any) -> Any:
    before = fusion.set_least(1)
    try:
        return fusion.call(function, *args, **kwargs)
    finally:
        fusion.set_least(before)


def _call(function: Callable, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


#: How a call runs while it is observed: by default results of few elements are computed at once; "all" defers them too,
#: and "none" computes every op at once.
VARIANTS: dict[str, Callable] = {"usual": fusion.call, "all": _defer_all, "none": _call}


def _folder() -> Path:
    return build.cache_dir() / "choices"


def kept() -> list[Path]:
    """The files of cached choices."""
    return sorted(_folder().glob("*.json"))


class Contest:
    """Several traces of one call, which alternate until the fastest is known.

    It is used like a :class:`Trace`: :meth:`attempt` replays one of them.

    Args:
        usual: the trace of the default variant.
    """

    def __init__(self, usual: Trace):
        self.traces = {"usual": usual}
        self.missing = ["all", "none"]  # variants without a trace so far
        self._pending: list[Trace] = []  # traces of the first missing variant, observed once
        self._tries = 0
        self.chosen: Trace | None = None
        self.turn = ("usual", False)  # the variant that is measured, and whether its launches stay on this thread
        self._turns: Any = None
        self._best: dict[tuple[str, bool], list[float]] = {}  # the best time of each step, and last of the whole call
        self._key = self._content()
        self._choice = self._read()
        if self._choice is not None:
            self.missing = [variant for variant in self.missing if variant == self._choice["variant"]]
            if not self.missing:
                self._settle_if_known()

    @property
    def variant(self) -> str:
        """The variant whose trace is needed next."""
        return self.missing[0]

    def wants(self, tensors: list) -> bool:
        """Whether this call should be observed, in another variant (:attr:`variant`)."""
        return bool(self.missing) and self.traces["usual"].stands_for(tensors)

    def add(self, trace: Trace | None) -> None:
        """Add the trace of a call that ran in the needed variant; None if it cannot be replayed."""
        self._tries += 1
        same = trace is not None and any(other.signature == trace.signature for other in self._pending)
        if not same and self._tries < TRIES:
            self._pending = [] if trace is None else [*self._pending[-1:], trace]
            return
        variant = self.missing.pop(0)
        self._pending, self._tries = [], 0
        if trace is not None and same and all(trace.work != other.work for other in self.traces.values()):
            self.traces[variant] = trace
        if not self.missing:
            self._settle_if_known()

    def attempt(self, tensors: list) -> Any:
        """Replay the call, like :meth:`Trace.attempt`."""
        if self.chosen is not None:
            return self.chosen.attempt(tensors)
        if self.missing:
            return MISS
        if self._turns is None:
            self._turns = itertools.chain.from_iterable([self._candidates()] * ROUNDS)
        turn = next(self._turns, None)
        if turn is None:
            self._choose()
            return self.attempt(tensors)
        self.turn = variant, alone = turn
        trace = self.traces[variant]
        trace.keep_alone(_shared(trace) if alone else ())
        before = clock()
        result = trace.attempt(tensors, clock if _shared(trace) else None)
        if result is MISS:
            return self.traces["usual"].attempt(tensors)
        took = [*(trace.took or ()), clock() - before]
        best = self._best.setdefault(turn, took)
        best[:] = map(min, best, took)
        return result

    def _candidates(self) -> list[tuple[str, bool]]:
        shared = get_num_threads() > 1 and any(_shared(trace) for trace in self.traces.values())
        found = [(variant, alone) for alone in (False, True)[: 1 + shared] for variant in self.traces]
        return found if len(found) > 1 else []

    def _choose(self) -> None:
        """Choose the fastest variant by the measured times, and cache the choice."""
        found: dict[str, tuple[float, list[int]]] = {}
        for variant, trace in self.traces.items():
            times = self._best.get((variant, False))
            if times is None:  # there is only one, or it was never valid for a call
                continue
            by_itself = self._best.get((variant, True), times)
            alone = [i for i in _shared(trace) if by_itself[i] < min(GAIN * times[i], LONG)]
            found[variant] = times[-1] - sum(times[i] - by_itself[i] for i in alone), alone
        usual = found.get("usual", (0.0, []))
        variant = min(found, key=lambda variant: found[variant][0], default="usual")
        if found and found[variant][0] >= GAIN * usual[0]:
            variant = "usual"
        alone = found.get(variant, usual)[1]
        self._choice = {"variant": variant, "alone": alone, "steps": len(self.traces[variant].work)}
        build.write_entry(self._path(), json.dumps(self._choice).encode())
        self._settle_if_known()

    def _settle_if_known(self) -> None:
        """Use the chosen variant, if there is a trace of it."""
        if self._choice is None:
            return
        trace = self.traces.get(self._choice["variant"])
        if trace is None:
            self._choice = None  # the cached choice is for other kernels: measure again
        else:
            trace.keep_alone(self._choice["alone"] if self._choice["steps"] == len(trace.work) else ())
            self.chosen = trace
            self.traces = {self._choice["variant"]: trace}

    def _path(self) -> Path:
        return _folder() / f"{self._key}.json"

    def _content(self) -> str:
        """The key of the cached choice, a hash of its content."""
        names = build.names()
        steps = [(names.get(kernel, ""), total, grain) for kernel, total, grain, _ in self.traces["usual"].work]
        machine = target.host().key, target.processor(), get_num_threads()
        return hashlib.sha256(repr(("variant", build.FORMAT, machine, steps)).encode()).hexdigest()[:32]

    def _read(self) -> dict[str, Any] | None:
        """The cached choice."""
        found = build.read_entry(self._path())
        return None if found is None else json.loads(found)


def _shared(trace: Trace) -> list[int]:
    """The launches that the thread pool shares."""
    return [i for i, (_, _, _, shared) in enumerate(trace.work) if shared]

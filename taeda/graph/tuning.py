"""Measured choices: what ``compile(mode="max-autotune")`` does beside repeating calls.

A call that can be repeated (``taeda/graph/replay.py``) can be so in several ways, which give the same bits: with more
ops put off or with none, and each launch on the thread pool or on the caller's thread alone. The first calls take
turns among them, and are measured. Each is a call of the program's own: none is made for the measurement. The quickest
way is kept on disk, by the kernels and sizes of the call, the processor and the number of threads. A later process
reads it.
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

__all__ = ["WAYS", "Contest", "kept"]

#: What tells the time.
clock: Callable[[], float] = time.perf_counter
#: How often each way is measured. The best time counts.
ROUNDS = 7
#: Calls that are observed in one way until two of them do the same.
TRIES = 4
#: Of the time of the usual way: another one must take less.
GAIN = 0.97
#: Seconds of a launch from which on it is left to the thread pool: only a busy machine would speak against that.
LONG = 1e-4


def _put_all_off(function: Callable, *args: Any, **kwargs: Any) -> Any:
    before = fusion.set_least(1)
    try:
        return fusion.call(function, *args, **kwargs)
    finally:
        fusion.set_least(before)


def _call(function: Callable, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


#: How a call is run while its launches are observed: results of few elements are computed at once, or put off as well,
#: or every op is computed at once.
WAYS: dict[str, Callable] = {"usual": fusion.call, "all": _put_all_off, "none": _call}


def _folder() -> Path:
    return build.cache_dir() / "choices"


def kept() -> list[Path]:
    """The files of choices."""
    return sorted(_folder().glob("*.json"))


class Contest:
    """Several traces of one call, which take turns until it is known which is the quickest.

    It stands in for a :class:`Trace`: :meth:`attempt` repeats the call by one of them.

    Args:
        usual: the trace of the call as it is run without measuring.
    """

    def __init__(self, usual: Trace):
        self.traces = {"usual": usual}
        self.missing = ["all", "none"]  # ways of which a trace is still to be observed
        self._pending: list[Trace] = []  # observed once, in that way
        self._tries = 0
        self.chosen: Trace | None = None
        self.turn = ("usual", False)  # the way that is measured, and whether launches keep to this thread in it
        self._turns: Any = None
        self._best: dict[tuple[str, bool], list[float]] = {}  # of each step, and in the end of the whole call
        self._key = self._content()
        self._choice = self._read()
        if self._choice is not None:
            self.missing = [way for way in self.missing if way == self._choice["way"]]
            if not self.missing:
                self._settle_if_known()

    @property
    def way(self) -> str:
        """The way of which a trace is wanted next."""
        return self.missing[0]

    def wants(self, tensors: list) -> bool:
        """Whether this call had better be observed, run in another way (:attr:`way`)."""
        return bool(self.missing) and self.traces["usual"].stands_for(tensors)

    def add(self, trace: Trace | None) -> None:
        """Take what was observed of a call that ran in the way that was wanted; None: it cannot be repeated so."""
        self._tries += 1
        same = trace is not None and any(other.signature == trace.signature for other in self._pending)
        if not same and self._tries < TRIES:
            self._pending = [] if trace is None else [*self._pending[-1:], trace]
            return
        way = self.missing.pop(0)
        self._pending, self._tries = [], 0
        if trace is not None and same and all(trace.work != other.work for other in self.traces.values()):
            self.traces[way] = trace
        if not self.missing:
            self._settle_if_known()

    def attempt(self, tensors: list) -> Any:
        """Repeat the call, as :meth:`Trace.attempt` does."""
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
        self.turn = way, alone = turn
        trace = self.traces[way]
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
        found = [(way, alone) for alone in (False, True)[: 1 + shared] for way in self.traces]
        return found if len(found) > 1 else []

    def _choose(self) -> None:
        """Find the quickest way by what was measured, and keep it."""
        found: dict[str, tuple[float, list[int]]] = {}
        for way, trace in self.traces.items():
            times = self._best.get((way, False))
            if times is None:  # there is nothing to choose from, or it never stood for a call
                continue
            by_itself = self._best.get((way, True), times)
            alone = [i for i in _shared(trace) if by_itself[i] < min(GAIN * times[i], LONG)]
            found[way] = times[-1] - sum(times[i] - by_itself[i] for i in alone), alone
        usual = found.get("usual", (0.0, []))
        way = min(found, key=lambda way: found[way][0], default="usual")
        if found and found[way][0] >= GAIN * usual[0]:
            way = "usual"
        self._choice = {"way": way, "alone": found.get(way, usual)[1], "steps": len(self.traces[way].work)}
        build.write_entry(self._path(), json.dumps(self._choice).encode())
        self._settle_if_known()

    def _settle_if_known(self) -> None:
        """Take the way that was chosen, if there is a trace of it."""
        if self._choice is None:
            return
        trace = self.traces.get(self._choice["way"])
        if trace is None:
            self._choice = None  # what is on disk is of other kernels: measured anew
        else:
            trace.keep_alone(self._choice["alone"] if self._choice["steps"] == len(trace.work) else ())
            self.chosen = trace
            self.traces = {self._choice["way"]: trace}

    def _path(self) -> Path:
        return _folder() / f"{self._key}.json"

    def _content(self) -> str:
        """The content that a choice is kept by, as a name."""
        names = build.names()
        steps = [(names.get(kernel, ""), total, grain) for kernel, total, grain, _ in self.traces["usual"].work]
        machine = target.host().key, target.processor(), get_num_threads()
        return hashlib.sha256(repr((build.FORMAT, machine, steps)).encode()).hexdigest()[:32]

    def _read(self) -> dict[str, Any] | None:
        """The choice on disk."""
        found = build.read_entry(self._path())
        return None if found is None else json.loads(found)


def _shared(trace: Trace) -> list[int]:
    """The launches that the thread pool shares."""
    return [i for i, (_, _, _, shared) in enumerate(trace.work) if shared]

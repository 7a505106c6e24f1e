"""Simulated processes: threads of which one runs at a time, each with process groups and memory of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..._core import mode_stack, set_mode_stack
from ..._core.memory import memory_stats, reset_peak_memory_stats
from ..groups import ProcessGroup, _world
from ..stores import HashStore

__all__ = ["Process", "Turns"]


class Process:
    """State of one process: the groups that :mod:`taeda.distributed` knows, and memory on device meta.

    Attributes:
        planned: bytes on device meta now.
        peak: bytes at the worst moment since :meth:`reset`.
    """

    def __init__(self) -> None:
        self._groups: dict[str, Any] = {}
        self._others: dict[str, Any] = {}
        self._held = self._highest = self._before = 0

    def start(self, group: ProcessGroup) -> None:
        """Make ``group`` the group of all processes."""
        _world.__init__()  # type: ignore[misc]
        _world.default, _world.groups, _world.made = group, [group], 1
        _world.store, _world.engine = HashStore(), group.engine

    def enter(self) -> None:
        """From now on this process runs."""
        self._others = dict(vars(_world))
        if self._groups:
            vars(_world).update(self._groups)
        reset_peak_memory_stats()
        self._before = memory_stats()["planned"]

    def leave(self) -> None:
        """The process stops for a while."""
        self._count()
        self._groups = dict(vars(_world))
        vars(_world).update(self._others)

    def _count(self) -> None:
        found = memory_stats()
        self._highest = max(self._highest, self._held + found["peak_planned"] - self._before)
        self._held += found["planned"] - self._before
        self._before = found["planned"]
        reset_peak_memory_stats()

    @property
    def planned(self) -> int:
        self._count()
        return self._held

    @property
    def peak(self) -> int:
        self._count()
        return self._highest

    def reset(self) -> None:
        """Begin to look for the worst moment."""
        self._count()
        self._highest = self._held


class Turns:
    """Runs functions in threads, one at a time: the next one goes on when this one waits or has ended."""

    def __init__(self, processes: list[Process], names: list[str]) -> None:
        self._processes, self._names = processes, names
        self._go = [threading.Event() for _ in processes]
        self._ready: dict[int, tuple[Callable[[], bool], str]] = {i: (_always, "") for i in range(len(processes))}
        self._error: BaseException | None = None
        self._over = threading.Event()

    def run(self, bodies: list[Callable[[], None]]) -> None:
        """Run all of them to their ends. An exception in one ends all."""
        modes = mode_stack()
        threads = [
            threading.Thread(target=self._thread, args=(i, body, modes), daemon=True) for i, body in enumerate(bodies)
        ]
        for thread in threads:
            thread.start()
        self._next(-1)
        self._over.wait()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error

    def until(self, me: int, ready: Callable[[], bool], doing: str) -> None:
        """Let others go on until ``ready()``."""
        while not ready():
            self._ready[me] = ready, doing
            self._processes[me].leave()
            self._next(me)
            self._wait(me)

    def _wait(self, me: int) -> None:
        self._go[me].wait()
        self._go[me].clear()
        if self._error is not None:
            raise _Ended
        del self._ready[me]
        self._processes[me].enter()

    def _next(self, me: int) -> None:
        """Let the one after ``me`` that can go on do so."""
        count = len(self._go)
        for i in (*range(me + 1, count), *range(me + 1)):
            if i in self._ready and self._ready[i][0]():
                self._go[i].set()
                return
        if self._ready:
            stuck = "; ".join(f"{self._names[i]} waits for {doing}" for i, (_, doing) in sorted(self._ready.items()))
            self._fail(RuntimeError(f"simulate: the processes wait for each other: {stuck}"))
        else:
            self._over.set()

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        for go in self._go:
            go.set()
        self._over.set()

    def _thread(self, me: int, body: Callable[[], None], modes: list) -> None:
        try:
            set_mode_stack(modes)
            self._wait(me)
            try:
                body()
            finally:
                if me not in self._ready:
                    self._processes[me].leave()
            self._next(me)
        except _Ended:
            pass
        except BaseException as error:  # raised where the simulation was asked for
            self._fail(error)


class _Ended(BaseException):
    """Another process has failed."""


def _always() -> bool:
    return True

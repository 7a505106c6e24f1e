"""A guard over work of GPUs in which other processes take part.

A GPU that waits for a process that is gone waits for ever, and so does a program that waits for the GPU. A thread looks
at what has begun. Where that cannot end, it says why, and ends the process: as in PyTorch, since nobody knows what the
GPU computes from then on.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from typing import Any, NamedTuple

from ...cuda import CudaError, _native
from ..errors import DistError

_EACH = 0.2  # seconds between two looks
_GRACE = 2.0  # seconds that work may take to end after another process has


class Begun(NamedTuple):
    """Work that has begun."""

    engine: Any
    event: Any  #: behind it on its stream
    comm: Any  #: its communicator
    doing: str
    since: float


class Guard:
    """The work of this process that has begun, and the thread that looks at it."""

    def __init__(self) -> None:
        self._begun: list[Begun] = []
        self._changing = threading.Condition()
        self._thread: threading.Thread | None = None

    def watch(self, engine: Any, event: Any, comm: Any, doing: str) -> None:
        """Look at work from now on."""
        with self._changing:
            self._begun.append(Begun(engine, event, comm, doing, time.monotonic()))
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="taeda-guard", daemon=True)
                self._thread.start()
                atexit.register(self._stop)
            self._changing.notify()

    def _stop(self) -> None:
        """The program ends: no thread may be in the driver then."""
        with self._changing:
            self._thread, thread = None, self._thread
            self._changing.notify()
        if thread is not None:
            thread.join()

    def forget(self, engine: Any) -> None:
        """Its group has ended."""
        with self._changing:
            self._begun = [work for work in self._begun if work.engine is not engine]

    def _look(self) -> None:
        lost: dict[Any, float] = {}  # engines of groups that miss a process, and since when
        while True:
            self._pause()
            with self._changing:
                while not self._begun and self._thread is not None:
                    self._changing.wait()
                if self._thread is None:
                    return
                begun = list(self._begun)
            over = set()
            for work in begun:
                if _is_over(work):
                    over.add(id(work))
                    lost.pop(work.engine, None)
                elif why := self._trouble(work, lost):
                    _end(work, why)
            with self._changing:
                self._begun = [work for work in self._begun if id(work) not in over]
            del begun, work

    def _pause(self) -> None:
        """Until the next look, or the end of the program."""
        with self._changing:
            self._changing.wait_for(lambda: self._thread is None, _EACH)

    def _trouble(self, work: Begun, lost: dict[Any, float]) -> str:
        """Why work cannot end; empty where it may."""
        engine, now = work.engine, time.monotonic()
        if error := engine.asynchronous_error(work.comm):
            return error
        if now - work.since > engine.timeout.total_seconds():
            return f"it did not end within {engine.timeout}: another process did not come, or does something else"
        try:
            engine.host.look()
        except DistError as error:
            if now - lost.setdefault(engine, now) > _GRACE:
                return str(error)
        return ""


def _is_over(work: Begun) -> bool:
    """Whether it has ended, or the GPU has failed, which the program meets itself."""
    try:
        _native.enter_context(work.engine.device.index)
        return work.event.query()
    except CudaError:
        return True


def _end(work: Begun, why: str) -> None:
    text = f"rank {work.engine.rank}: {work.doing}: {why}. The process ends, as its GPU would wait for ever"
    print(f"taeda.distributed: {text}", file=sys.stderr, flush=True)
    work.engine.host.tell(text)
    sys.stdout.flush()
    os._exit(1)


GUARD = Guard()

"""The loader's side of workers: hands out lists of indices, puts batches in order, notices dead workers."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import select
import signal
import socket
import time
from typing import Any

from ....kernels.build import compiler
from ....multiprocessing import get_context, reductions
from . import worker
from .channel import Pipe, Receiver
from .iterating import _BaseDataLoaderIter

_PATIENCE = 5.0  # seconds that a worker has to end by itself

reductions.register()


def _prepare_fork() -> None:
    """Load here, once, what each forked worker would load for itself: NumPy, which it seeds, and the kernels'
    compiler."""
    compiler()
    with contextlib.suppress(ImportError):
        import numpy.random  # noqa: F401


_MUST_PICKLE = (
    "DataLoader: this start method sends the dataset, collate_fn and worker_init_fn to its workers by pickle. Lambdas "
    "and functions or classes defined within functions cannot be pickled: define them at the top of a module."
)


class _Worker:
    """A worker process as its loader sees it."""

    def __init__(self, context: Any, job: worker.Job, kept: int):
        ours, theirs = socket.socketpair()
        method = context.get_start_method()
        if method == "fork":
            _prepare_fork()
        self.process = context.Process(
            target=worker.run, args=(theirs, os.getpid(), method != "forkserver", job), daemon=True
        )
        try:
            self.process.start()
        except BaseException as error:
            ours.close()
            if method != "fork" and isinstance(error, AttributeError | TypeError | pickle.PicklingError):
                error.add_note(_MUST_PICKLE)
            raise
        finally:
            theirs.close()
        self.pipe = Pipe(ours)
        self.receiver = Receiver(self.pipe, kept)
        self.active = True
        self.tasks = 0
        try:
            self.pidfd = self.sentinel = os.pidfd_open(self.process.pid)
        except (AttributeError, OSError):
            self.pidfd, self.sentinel = -1, self.process.sentinel

    def close(self) -> None:
        """Let it end."""
        self.pipe.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def epitaph(self) -> str:
        """The way in which it ended."""
        self.process.join(1.0)
        code, pid = self.process.exitcode, self.process.pid
        if code is not None and code < 0:
            name = signal.strsignal(-code) or f"signal {-code}"
            text = f"DataLoader worker (pid {pid}) is killed by signal: {name}."
            if -code == signal.SIGKILL:
                text += " The system does this to a process when memory runs out."
            return text
        return f"DataLoader worker (pid(s) {pid}) exited unexpectedly" + (f" with code {code}" if code else "")


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """One pass over the batches of a loader, made by worker processes."""

    def __init__(self, loader: Any):
        super().__init__(loader)
        self._pid = os.getpid()
        self._prefetch = loader.prefetch_factor
        self._in_order = loader.in_order
        self._timeout = loader.timeout
        self._persistent = loader.persistent_workers
        self._failure: str | None = None
        self._shutdown = False
        self._workers: list[_Worker] = []
        context = loader.multiprocessing_context or get_context()
        try:
            for i in range(loader.num_workers):
                job = worker.Job(
                    loader.dataset, self._iterable, loader._auto_collation, loader.collate_fn, loader.drop_last,
                    self._base_seed, loader.worker_init_fn, i, loader.num_workers, self._shared_seed, self._ranks,
                )  # fmt: skip
                self._workers.append(_Worker(context, job, self._prefetch + 16))
        except BaseException:
            self._shutdown_workers()
            raise
        self._draw_shared_seed(loader)  # as PyTorch does, which uses it in the next pass alone
        self._poll = select.poll()
        self._by_fd: dict[int, _Worker] = {}
        for w in self._workers:
            self._watch(w)
        self._start()

    def _watch(self, w: _Worker) -> None:
        self._poll.register(w.pipe.fileno(), select.POLLIN)
        self._poll.register(w.sentinel, select.POLLIN)
        self._by_fd[w.pipe.fileno()] = w
        self._by_fd[w.sentinel] = w

    def _ignore(self, w: _Worker) -> None:
        for fd in (w.pipe.fileno(), w.sentinel):
            self._poll.unregister(fd)
            del self._by_fd[fd]

    # ---- tasks -------------------------------------------------------------------------------------------------------
    def _start(self) -> None:
        self._sent = 0  # number of the next task
        self._due = 0  # and of the one whose batch is next
        self._holders: dict[int, _Worker] = {}  # task -> its worker
        self._arrived: dict[int, tuple[str, Any]] = {}
        self._turn = itertools.cycle(self._workers)
        for _ in range(self._prefetch * len(self._workers)):
            self._assign()

    def _reset(self, loader: Any) -> None:
        """Begin another pass with the same processes."""
        super()._reset(loader)
        if self._failure is not None:
            raise RuntimeError(self._failure)
        note = pickle.dumps((worker.RESUME, self._shared_seed), 5)
        resuming = set()
        for w in self._workers:
            w.active = True
            w.tasks = 0
            self._tell(w, note)
            resuming.add(w)
        while resuming:
            for w, _, kind, value in self._receive(None):
                if kind == "resumed":
                    resuming.discard(w)
                del value
        self._start()

    def _assign(self) -> None:
        """Give the next list of indices to the worker whose turn it is."""
        try:
            indices = next(self._sampler_iter)
        except StopIteration:
            return
        active = sum(w.active for w in self._workers)
        most = self._prefetch * len(self._workers) // active if active else 0
        for w in itertools.islice(self._turn, len(self._workers)):
            if w.active and (self._in_order or w.tasks < most):
                break
        else:
            return
        self._tell(w, pickle.dumps((self._sent, indices), 5))
        self._holders[self._sent] = w
        w.tasks += 1
        self._sent += 1

    def _tell(self, w: _Worker, note: bytes) -> None:
        # A worker that is gone is noticed when its answer is awaited.
        with contextlib.suppress(ConnectionError):
            w.pipe.post(note)

    # ---- results -----------------------------------------------------------------------------------------------------
    def _receive(self, seconds: float | None) -> list[tuple[_Worker, int, str, Any]]:
        """Messages that have arrived, after waiting for one; empty when the time is over."""
        for w in self._workers:
            if w.pipe.waiting:
                with contextlib.suppress(ConnectionError):
                    w.pipe.flush()
                seconds = 0.01 if seconds is None else min(seconds, 0.01)
        found = []
        for fd, event in self._poll.poll(None if seconds is None else seconds * 1000):
            w = self._by_fd[fd]
            if fd == w.sentinel or not event & select.POLLIN:
                self._fail(w)
            try:
                found.append((w, *w.receiver.receive()))
            except (EOFError, ConnectionError):
                self._fail(w)
        return found

    def _fail(self, w: _Worker) -> None:
        """A worker is gone: end the others, and say how it ended."""
        self._failure = w.epitaph()
        self._shutdown_workers(patience=0.2)
        raise RuntimeError(self._failure)

    def _await(self) -> None:
        """Take in what arrives, at least one message."""
        end = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            found = self._receive(None if end is None else max(0.0, end - time.monotonic()))
            if found:
                break
            if end is not None and time.monotonic() >= end:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        for w, task, kind, value in found:
            if kind != "end":
                self._arrived[task] = (kind, value)
                continue
            del self._holders[task]
            w.active = False
            if not self._persistent:
                self._ignore(w)
                w.close()
            self._assign()

    def _next_data(self) -> Any:
        while True:
            if self._failure is not None:
                raise RuntimeError(self._failure)
            if not self._in_order and self._arrived:
                task = next(iter(self._arrived))
                break
            # tasks of a worker whose stream has ended will not be answered
            while self._due < self._sent and self._due not in self._arrived:
                holder = self._holders.get(self._due)
                if holder is not None and holder.active:
                    break
                self._holders.pop(self._due, None)
                self._due += 1
            if self._due == self._sent:
                if not self._persistent:
                    self._shutdown_workers()
                raise StopIteration
            task = self._due
            if task in self._arrived:
                break
            self._await()
        if task == self._due:
            self._due += 1
        kind, value = self._arrived.pop(task)
        self._holders.pop(task).tasks -= 1
        self._assign()
        if kind == "error":
            value.reraise()
        return value

    # ---- the end -----------------------------------------------------------------------------------------------------
    def _shutdown_workers(self, patience: float | None = None) -> None:
        if self._shutdown or self._pid != os.getpid():  # a forked copy of this object ends nothing
            return
        self._shutdown = True
        for w in self._workers:
            w.close()
        end = time.monotonic() + (_PATIENCE if patience is None else patience)
        for w in self._workers:
            w.process.join(max(0.0, end - time.monotonic()))
            for stop in (w.process.terminate, w.process.kill):  # it may ignore the first
                if w.process.is_alive():
                    stop()
                    w.process.join(_PATIENCE)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._shutdown_workers()

"""A worker process of a DataLoader: takes lists of indices, sends batches."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import random
import select
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import util
from typing import Any

from ...._core import set_num_threads
from ....random import manual_seed
from .fetch import create_fetcher
from .iterating import is_pipe, seed_pipes, share_pipes

#: Numbers of tasks that are no batches.
RESUME = -1


@dataclass(frozen=True)
class WorkerInfo:
    """Information on a worker process, for its own code.

    Attributes:
        id: its number, from 0.
        num_workers: how many there are.
        seed: what its random number generators were seeded with.
        dataset: its copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process its :class:`WorkerInfo`; None in the process that iterates."""
    return _info


@dataclass
class Job:
    """A worker's task: everything that a process is started with."""

    dataset: Any
    iterable: bool
    auto_collation: bool
    collate_fn: Callable
    drop_last: bool
    base_seed: int
    init_fn: Callable[[int], None] | None
    id: int
    num_workers: int
    shared_seed: int | None = None
    ranks: tuple[int, int] = (1, 0)

    def begin(self, seed: int | None) -> None:
        """Seed the data pipes for a pass."""
        if seed is not None:
            seed_pipes(self.dataset, seed)

    def fetcher(self) -> Callable[[Any], Any]:
        """The function that makes batches."""
        return create_fetcher(self.dataset, self.iterable, self.auto_collation, self.collate_fn, self.drop_last)


_MEND = "With num_workers=0 it is raised in this process, where a debugger can stop at it."


class ExceptionWrapper:
    """An exception on its way from a worker.

    Args:
        error: the exception.
        where: words that say where it was raised.
    """

    def __init__(self, error: BaseException, where: str):
        self.exc_type: type[BaseException] = type(error)
        self.exc_msg = "".join(traceback.format_exception(error))
        self.where = where

    def reraise(self) -> None:
        """Raise it here, with the original traceback in its message."""
        message: Any = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}{_MEND}"
        if self.exc_type is KeyError:
            message = _Shown(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)  # type: ignore[call-arg]
        try:
            error = self.exc_type(message)
        except Exception:  # its constructor takes other arguments
            raise RuntimeError(message) from None
        raise error


class _Shown(str):
    """A message that KeyError, which shows the repr of its argument, shows as it is."""

    def __repr__(self) -> str:
        return str(self)


def numpy_seed(base_seed: int, worker_id: int) -> list[int]:
    """Four words for NumPy's generator, different for each worker and each pass: NumPy's own SeedSequence."""
    import numpy

    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return numpy.random.SeedSequence(words).generate_state(4).tolist()


def _seed(job: Job) -> int:
    seed = job.base_seed + job.id
    random.seed(seed)
    manual_seed(seed)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(numpy_seed(job.base_seed, job.id))
    return seed


class _Parent:
    """Tells when the parent process is gone."""

    def __init__(self, pid: int, connection: Any, direct: bool):
        self.pid = pid
        self.direct = direct
        self.poll = select.poll()
        self.poll.register(connection.fileno(), select.POLLIN)
        self.wait: int | None = None
        try:
            self.poll.register(os.pidfd_open(pid), select.POLLIN)
        except (AttributeError, OSError):
            self.wait = 1000  # no such descriptors here: look every second

    def awaits(self, connection: Any) -> bool:
        """Wait for a message; False when there will be none."""
        while True:
            ready = dict(self.poll.poll(self.wait))
            if connection.fileno() in ready:
                return True
            if ready or (self.direct and os.getppid() != self.pid):
                return False


def _send_error(sender: Any, task: int, error: BaseException, where: str) -> None:
    wrapper = ExceptionWrapper(error, where)
    try:
        pickle.dumps(wrapper.exc_type)
    except Exception:  # a class that the loader cannot find
        wrapper.exc_type = RuntimeError
    sender.send(task, "error", wrapper)


def _leave(done: list[bool]) -> None:
    """End a spawned process as a forked one ends, without taking the interpreter apart: that takes 0.15 s."""
    if done:
        util._flush_std_streams()  # type: ignore[attr-defined]
        os._exit(0)


def run(connection: Any, parent: int, direct: bool, job: Job) -> None:
    """The life of a worker.

    Args:
        connection: the worker's end of its socket.
        parent: process id of the loader.
        direct: whether it is this process's parent in the system's eyes.
        job: what to do.
    """
    from .channel import Pipe, Sender

    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the loader's handler, inherited by a fork, may not end this process
    done: list[bool] = []
    atexit.register(_leave, done)  # after all functions that are registered from here on
    try:
        _serve(Pipe(connection), Sender, _Parent(parent, connection, direct), job)
    except (KeyboardInterrupt, EOFError, ConnectionError):
        pass  # the loader is interrupted or gone
    done.append(True)


def _serve(pipe: Any, make_sender: Callable, parent: _Parent, job: Job) -> None:
    global _info
    set_num_threads(1)
    sender = make_sender(pipe)
    _info = WorkerInfo(job.id, job.num_workers, _seed(job), job.dataset)
    where = f"in DataLoader worker process {job.id}"
    failed: Exception | None = None
    fetch: Any = None
    try:
        job.begin(job.shared_seed)
        if is_pipe(job.dataset):
            share_pipes(job.dataset, job.ranks, job.id, job.num_workers)
        if job.init_fn is not None:
            job.init_fn(job.id)
        fetch = job.fetcher()
    except Exception as error:
        failed = error
    ended = False
    while parent.awaits(pipe):
        task, indices = pickle.loads(pipe.receive()[0])
        if task == RESUME:
            ended = False
            try:
                job.begin(indices)
                fetch = job.fetcher()
            except Exception as error:
                failed = error
            sender.send(RESUME, "resumed", None)
            continue
        if ended:
            continue
        if failed is not None:
            _send_error(sender, task, failed, where)
            failed = None
            continue
        try:
            batch = fetch(indices)
        except Exception as error:
            if job.iterable and isinstance(error, StopIteration):
                ended = True
                sender.send(task, "end", None)
            else:
                _send_error(sender, task, error, where)
            continue
        try:
            sender.send(task, "data", batch)
        except (OSError, EOFError) as error:
            if isinstance(error, ConnectionError):
                raise
            _send_error(sender, task, error, where)
        except Exception as error:  # something in the batch cannot be pickled
            _send_error(sender, task, error, where)
        del batch, indices

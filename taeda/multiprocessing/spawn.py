"""Several processes that run one function, and end together if one of them fails."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

_MOST = 60_000  # bytes of a traceback: what a pipe mostly holds without a reader


class ProcessException(Exception):
    """A process failed.

    Args:
        msg: what happened.
        error_index: see the attribute.
        error_pid: see the attribute.
    Attributes:
        error_index: which of the processes.
        error_pid: its process id.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception in a process; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process was ended by a signal, or with an exit code other than 0."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def end_with_parent() -> None:
    """Have this process interrupted when its parent is gone, whatever it is doing."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="taeda-parent", daemon=True).start()


def _run(fn: Callable, i: int, args: tuple, report: Any) -> None:
    """The main function of each process."""
    end_with_parent()
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted too, and says so
    except Exception:
        report.send_bytes(traceback.format_exc().encode(errors="backslashreplace")[-_MOST:])
        sys.exit(1)


class ProcessContext:
    """Running processes, as :func:`start_processes` gives them without ``join``."""

    def __init__(self, processes: list, reports: list):
        self.processes = processes
        self._reports = {report: index for index, report in enumerate(reports)}  # that are still to come
        self._texts: dict[int, str] = {}  # those that came
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until all have ended well, or one has failed; then the others are ended too.

        Args:
            timeout: seconds to wait. Default: for ever.
            grace_period: seconds that the others are given to end by themselves, and again after SIGTERM.
        Returns:
            Whether all have ended.
        Raises:
            ProcessRaisedException: the function raised; the message has its traceback.
            ProcessExitedException: a process ended with a signal or an exit code.
        """
        if not self.sentinels:
            return True
        failed = None
        for ready in multiprocessing.connection.wait([*self.sentinels, *self._reports], timeout=timeout):
            if (
                ready in self._reports
            ):  # a process ends only when its report is out, for which the pipe may be too short
                self._read(ready)
                continue
            index = self.sentinels.pop(ready)
            self.processes[index].join()
            if self.processes[index].exitcode:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end(grace_period)
        raise self._failure(failed)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def _end(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._wait(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._wait(30 if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def _read(self, report: Any) -> None:
        index = self._reports.pop(report)
        with contextlib.suppress(EOFError, OSError):  # there is none
            self._texts[index] = report.recv_bytes().decode(errors="replace")

    def _failure(self, index: int) -> ProcessException:
        process = self.processes[index]
        for report in [report for report, i in self._reports.items() if i == index and report.poll(0)]:
            self._read(report)
        if index in self._texts:
            text = f"\n\n-- Process {index} terminated with the following error:\n{self._texts[index]}"
            return ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        if code >= 0:
            return ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        return ProcessExitedException(f"process {index} terminated with signal {name}", index, process.pid, code, name)


class SpawnContext(ProcessContext):
    """An older name of :class:`ProcessContext`."""

    def __init__(self, processes: list, reports: list):
        warnings.warn("SpawnContext is renamed to ProcessContext", stacklevel=2)
        super().__init__(processes, reports)


def start_processes(
    fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Run ``fn(i, *args)`` in ``nprocs`` processes, ``i`` from 0.

    Args:
        fn: a function at the top of a module where processes are spawned, as they find it by its name.
        args: further arguments; tensors are shared.
        nprocs: how many processes.
        join: wait for them, and raise if one fails.
        daemon: whether they may not outlive this process, nor start others.
        start_method: ``"spawn"``, ``"fork"`` or ``"forkserver"``.
    Returns:
        None with ``join``, otherwise a :class:`ProcessContext`.
    """
    context = multiprocessing.get_context(start_method)
    processes, reports = [], []
    for i in range(nprocs):
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, writer), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        writer.close()
        processes.append(process)
        reports.append(reader)
    running = ProcessContext(processes, reports)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(
    fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """As :func:`start_processes`, always with new interpreters."""
    if start_method != "spawn":
        warnings.warn(
            f"spawn: processes are always spawned, got start_method={start_method!r}; use start_processes for another",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, "spawn")

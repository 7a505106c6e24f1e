"""The processes that a launcher starts on its machine: their outputs, how they ended, and how they are ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

_STREAMS = (("stdout", 1), ("stderr", 2))
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)  # they end a launcher and its processes
MEMBER_FILE = "TAEDA_MPI_FAILED"  # the variable with the file where a process of mpiexec says with which code it failed
_GRACE = 10.0  # seconds between asking a process to end and ending it


def streams(text: str, count: int) -> list[int]:
    """For each of ``count`` local ranks, which streams ``text`` names: 1 stdout, 2 stderr, 3 both. ``"3"``,
    ``"0:1,2:3"``.

    Args:
        text: the option.
        count: number of processes.

    Returns:
        A number for each process.

    Raises:
        ValueError: it is something else.
    """
    found = [0] * count
    for item in text.split(",") if text else ():
        rank, colon, which = item.rpartition(":")
        if which not in ("0", "1", "2", "3") or (colon and not rank.isdigit()) or (colon and int(rank) >= count):
            raise ValueError(f"expected streams as '3' or '0:1,1:2' for {count} processes, got {text!r}")
        for i in [int(rank)] if colon else range(count):
            found[i] = int(which)
    return found


def exit_code(code: int) -> int:
    """The exit code of a shell for a process that ended with ``code``, negative for a signal."""
    return 128 - code if code < 0 else code


def how_it_ended(code: int) -> str:
    """``code`` in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return f"was ended by signal {name} (exit code {exit_code(code)})"


class Logs:
    """The destinations of the outputs of processes.

    Args:
        folder: where files are kept; a temporary one if None and a file is asked for.
        run_id: the name of the run, for its folder.
        role: the name of the processes, before each line that is shown.
        redirects: for each local rank, the streams that go to files.
        tee: those that go to files and are shown.
        shown: the local ranks whose outputs are shown; None for all.
    """

    def __init__(
        self, folder: str | None, run_id: str, role: str, redirects: list[int], tee: list[int], shown: list[int] | None
    ) -> None:
        self.role, self.redirects, self.tee, self.shown = role, redirects, tee, shown
        self.any = any(redirects) or any(tee)
        self._run_id = run_id
        self._given = folder
        self._made: Path | None = None

    def folder(self, attempt: int, local: int) -> Path:
        """The folder of a process; it is created if needed."""
        if self._made is None:
            base = Path(self._given) if self._given else Path(tempfile.mkdtemp(prefix="taeda_run_"))
            base.mkdir(parents=True, exist_ok=True)
            self._made = Path(tempfile.mkdtemp(prefix=f"{self._run_id}_", dir=base))
            print(f"taeda.distributed.run: outputs are kept in {self._made}", file=sys.stderr)
        made = self._made / f"attempt_{attempt}" / str(local)
        made.mkdir(parents=True, exist_ok=True)
        return made

    def open(self, attempt: int, local: int) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
        """Arguments of ``Popen`` for the streams of a process, and the streams to copy: each one's name and file."""
        given: dict[str, Any] = {}
        copied = []
        for name, bit in _STREAMS:
            hidden = self.shown is not None and local not in self.shown
            if self.tee[local] & bit and not hidden:
                given[name] = subprocess.PIPE
                copied.append((name, open(self.folder(attempt, local) / f"{name}.log", "ab")))  # noqa: SIM115
            elif (self.redirects[local] | self.tee[local]) & bit:
                given[name] = open(self.folder(attempt, local) / f"{name}.log", "ab")  # noqa: SIM115 (closed below)
            elif hidden:
                given[name] = subprocess.DEVNULL
        return given, copied

    def copy(self, source: Any, target: Any, name: str, local: int) -> None:
        """Copy lines to a file, and show them after the role and local rank."""
        console = getattr(sys, name).buffer if hasattr(getattr(sys, name), "buffer") else None
        with source, target:
            for line in source:
                target.write(line)
                target.flush()
                if console is not None:
                    console.write(f"[{self.role}{local}]:".encode() + line)
                    console.flush()


@contextlib.contextmanager
def signals_handled(handler: Any, numbers: Iterable[int]) -> Iterator[None]:
    """Call ``handler`` for signals within the block. Threads other than the main one get none."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """Delay the handlers of signals to the end of the block. A blocked signal would stay blocked in new processes."""
    came: list[int] = []
    ours = [number for number in SIGNALS if callable(signal.getsignal(number))]
    try:
        with signals_handled(lambda number, _: came.append(number), ours):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


class Workers:
    """The processes of one attempt on this machine."""

    def __init__(self, logs: Logs, attempt: int) -> None:
        self.processes: list[subprocess.Popen] = []
        self._logs, self._attempt = logs, attempt
        self._copying: list[threading.Thread] = []
        self._words = tempfile.TemporaryDirectory(prefix="taeda_words_")

    def start(self, command: Sequence[str], environments: Sequence[dict[str, str]]) -> None:
        """Start a process for each environment. After an error or a signal's exception, the caller must call
        :meth:`stop`.

        Args:
            command: the program and its arguments.
            environments: the variables of each process.

        Raises:
            SystemExit: there is no such command.
        """
        for local, environment in enumerate(environments):
            given, copied = self._logs.open(self._attempt, local)
            environment = {**environment, "TORCHELASTIC_ERROR_FILE": str(self._word(local))}
            environment[MEMBER_FILE] = str(self._word(local, "member"))
            with _signals_wait():  # a signal while a process is made would leave it without a parent
                try:
                    self.processes.append(subprocess.Popen(command, env={**os.environ, **environment}, **given))
                except OSError as error:
                    raise SystemExit(f"taeda.distributed.run: cannot start {command[0]}: {error}") from None
            for stream in given.values():
                if hasattr(stream, "close"):
                    stream.close()  # the process has it
            for name, target in copied:
                arguments = (getattr(self.processes[-1], name), target, name, local)
                self._copying.append(threading.Thread(target=self._logs.copy, args=arguments, daemon=True))
                self._copying[-1].start()

    def _word(self, local: int, kind: str = "json") -> Path:
        """The file in which a process notes that it fails because another ended, or that one of its own has failed."""
        return Path(self._words.name) / f"{local}.{kind}"

    def _code(self, local: int) -> int | None:
        """The exit code of a process, or of one that it started and that has failed; None while it runs."""
        code = self.processes[local].poll()
        try:
            return int(self._word(local, "member").read_text()) if code is None else code
        except (OSError, ValueError):
            return None

    def said(self, local: int) -> dict[str, Any]:
        """The word that a process has left, empty where it left none."""
        try:
            said = json.loads(self._word(local).read_text())
        except (OSError, ValueError):
            return {}
        return said if isinstance(said, dict) else {}

    def follows(self, local: int) -> bool:
        """Whether a process has failed because another one was gone."""
        return "follows" in self.said(local)

    def failed(self) -> tuple[int, int] | None:
        """The local rank and the code of one that has failed; rather one that did by itself than one that follows."""
        codes = [(self._code(local), local) for local in range(len(self.processes))]
        wrong = sorted((self.follows(local), code > 0, local, code) for code, local in codes if code)
        return wrong[0][2:] if wrong else None

    def running(self) -> bool:
        """Whether one has not ended."""
        return any(p.poll() is None for p in self.processes)

    def wait(self, seconds: float) -> None:
        """Wait until all have ended, but no longer than ``seconds``."""
        end = time.monotonic() + seconds
        while self.running() and time.monotonic() < end:
            time.sleep(0.02)

    def stop(self) -> None:
        """Ask all to end, and end those that do not."""
        for p in self.processes:
            if p.poll() is None:
                p.terminate()
        self.wait(_GRACE)
        for p in self.processes:
            if p.poll() is None:
                p.kill()
        for p in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(5)
        self.finish()

    def finish(self) -> None:
        """Wait until the outputs are copied."""
        for thread in self._copying:
            thread.join(_GRACE)  # one that a process forked may hold the stream open
        self._words.cleanup()

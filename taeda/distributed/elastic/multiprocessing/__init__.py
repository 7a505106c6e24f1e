"""Errors that a started process reports to the launcher, and the files of its outputs."""

from __future__ import annotations

import enum
import signal

from ...workers import Logs
from . import errors
from .errors import ProcessFailure

__all__ = ["DefaultLogsSpecs", "LogsSpecs", "ProcessFailure", "SignalException", "Std", "errors", "to_map"]


class Std(enum.IntFlag):
    """Streams of a process."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """Parse ``"3"``, or ``"0:1,1:2"`` with values by local rank.

        Args:
            vm: the text.

        Returns:
            One value, or values by local rank.

        Raises:
            ValueError: it is something else.
        """
        pairs = [item.split(":") for item in vm.split(",")]
        try:
            if len(pairs) == 1 and len(pairs[0]) == 1:
                return cls(_stream(vm))
            return {int(rank): cls(_stream(which)) for rank, which in pairs}
        except ValueError:
            raise ValueError(f"expected streams as '3' or '0:1,1:2', got {vm!r}") from None


def _stream(text: str) -> int:
    if text not in ("0", "1", "2", "3"):
        raise ValueError(text)
    return int(text)


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """The streams of each local rank, of those for all, or of some."""
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


class SignalException(Exception):
    """A signal has ended a launcher, and its processes.

    Args:
        msg: what happened.
        sigval: the signal.
    """

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


class LogsSpecs:
    """The destinations of outputs.

    Args:
        log_dir: where files are kept; a temporary folder if None and files are asked for.
        redirects: streams that go to files, for all processes or by local rank.
        tee: those that go to files and are shown.
        local_ranks_filter: whose outputs are shown; None for all.
    """

    def __init__(
        self, log_dir: str | None = None, redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE, local_ranks_filter: set[int] | None = None,
    ) -> None:  # fmt: skip
        self._root_log_dir, self._redirects, self._tee, self._shown = log_dir, redirects, tee, local_ranks_filter

    @property
    def root_log_dir(self) -> str | None:
        """The folder in which files are kept."""
        return self._root_log_dir

    def logs(self, run_id: str, role: str, processes: int) -> Logs:
        """For the launcher."""
        redirects, tee = ([*map(int, to_map(one, processes).values())] for one in (self._redirects, self._tee))
        return Logs(self._root_log_dir, run_id, role, redirects, tee, sorted(self._shown) if self._shown else None)


DefaultLogsSpecs = LogsSpecs

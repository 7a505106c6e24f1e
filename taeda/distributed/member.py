"""One process of a program that ``taeda.distributed.run --mpi`` starts: runs a command and says how it ended.

MPI's launchers do not always name the rank of a process that was killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from typing import Any

from .launched import variable
from .workers import MEMBER_FILE, exit_code, how_it_ended


def main(command: list[str]) -> int:
    """The exit code of ``command``, which has the files that the launcher left open for it."""
    rank = variable("RANK") or "0"
    process = subprocess.Popen(command, close_fds=False, env={**os.environ, "TAEDA_MPI_MEMBER": rank})

    def pass_on(number: int, _: Any) -> None:
        process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    code = process.wait()
    if code:
        print(
            f"taeda.distributed.run: rank {rank} on host {socket.gethostname()} {how_it_ended(code)}",
            file=sys.stderr, flush=True,
        )  # fmt: skip
        path = os.environ.get(MEMBER_FILE)
        if path:  # MPICH's mpiexec waits for ever where one ends before it has begun with MPI
            with contextlib.suppress(OSError), open(path, "x") as file:
                file.write(str(exit_code(code)))
    return exit_code(code)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

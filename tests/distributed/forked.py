"""A process that has imported taeda and forks others: their programs begin at once, where an import takes a second.

``Forked(code, environment)`` is such a process. It has what ``subprocess.Popen`` has of ``pid``, ``communicate`` and
``returncode``. The program runs as ``__main__``, and ends as a program of its own does.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile

_server = []


class Forked:
    """A process that runs ``code``, with the variables ``environment``.

    Its output is kept for :meth:`communicate`, or written to the descriptor ``stdout``.
    """

    def __init__(self, code, environment, stdout=None):
        self._files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115 (read when it has ended)
        self.returncode = None
        self._connection, there = socket.socketpair()
        with there:
            request = json.dumps({"code": code, "environment": environment}).encode()
            fds = [there.fileno(), *(file.fileno() for file in self._files)]
            fds[1] = fds[1] if stdout is None else stdout
            socket.send_fds(_forks(), [len(request).to_bytes(8, "little")], fds)
            _forks().sendall(request)
        self._words = self._connection.makefile("r")
        self.pid = int(self._words.readline())

    def communicate(self, timeout):
        """Its output, once it has ended."""
        self._connection.settimeout(timeout)
        try:
            self.returncode = os.waitstatus_to_exitcode(int(self._words.readline()))
        except TimeoutError:
            os.kill(self.pid, signal.SIGKILL)
            raise
        self._connection.close()
        for file in self._files:
            file.seek(0)
        return [file.read().decode() for file in self._files]


def _forks():
    """The connection to the process that forks, which ends with this one."""
    if not _server:
        here, there = socket.socketpair()
        with there:
            command = [sys.executable, __file__, str(there.fileno())]
            subprocess.Popen(command, pass_fds=[there.fileno()], env={**os.environ, "OMP_NUM_THREADS": "1"})
        _server.append(here)
    return _server[0]


def _programs(server):
    """Answer requests; returns in a process for each, with the program that it is to run."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the processes that wait for programs are not waited for
    while True:
        size, fds, *_ = socket.recv_fds(server, 8, 3)
        if not size:
            os._exit(0)
        request = json.loads(server.recv(int.from_bytes(size, "little"), socket.MSG_WAITALL))
        if not os.fork():
            server.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _run_and_wait(*fds)
            os.environ.clear()
            os.environ.update(request["environment"])
            sys.argv = ["-c"]
            return compile(request["code"], "<string>", "exec")
        for fd in fds:
            os.close(fd)


def _run_and_wait(connection, *outputs):
    """Returns in a new process; this one tells its number, and how it ended."""
    pid = os.fork()
    for fd, output in enumerate(outputs, 1):
        if not pid:
            os.dup2(output, fd)
        os.close(output)
    if pid:
        os.write(connection, f"{pid}\n".encode())
        os.write(connection, f"{os.waitpid(pid, 0)[1]}\n".encode())
        os._exit(0)
    os.close(connection)


if __name__ == "__main__":
    import taeda.distributed.checkpoint
    import taeda.distributed.fsdp
    import taeda.distributed.pipelining
    import taeda.distributed.tensor.parallel  # noqa: F401

    _program = _programs(socket.socket(fileno=int(sys.argv[1])))
    for _name in [name for name in globals() if name != "_program" and name[:2] != "__"]:
        del globals()[_name]
    exec(globals().pop("_program"))

"""``taeda.distributed.run``: restarts, rendezvous of several machines, outputs by rank, signals."""

import os
import re
import signal
import socket
import subprocess
import sys

import pytest

import taeda.distributed as dist
from taeda.distributed import workers
from taeda.distributed.agent import ReservedPort

from .launch import kept_port
from .test_engines import environment

RUN = [sys.executable, "-m", "taeda.distributed.run"]
#: How programs begin: those that meet, and those that are a matter of the launcher alone, which import nothing.
MEET = """
import os, sys, time, signal
import taeda, taeda.distributed as dist
dist.init_process_group()
x = taeda.ones(1); dist.all_reduce(x)
rank, attempt = dist.get_rank(), os.environ["TORCHELASTIC_RESTART_COUNT"]
print(f"rank {rank} of {int(x)}, attempt {attempt}\\n", end="", flush=True)
dist.barrier()  # who fails now does so after all have printed
"""
ALONE = """
import os, sys, time
rank = os.environ["RANK"]
print(f"rank {rank} of {os.environ['WORLD_SIZE']}\\n", end="", flush=True)
"""


@pytest.fixture
def start(tmp_path):
    """Start the launcher with options and a program."""
    started = []

    def run(code, *options, head=MEET, **more):
        path = tmp_path / "program.py"
        path.write_text(head + code)
        process = subprocess.Popen(
            [*RUN, *options, str(path)], env=environment("memory", **more), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
        )  # fmt: skip
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()


def lines(out):
    return sorted(line for line in out.splitlines() if line.startswith("rank"))


def test_processes_start_again_and_the_code_of_the_first_that_failed(start):
    """Whoever fails because another is gone does not count."""
    code = "if rank == 1: os.kill(os.getpid(), 9) if attempt == '0' else sys.exit(3)\ndist.barrier()"
    done = start(code, "--nproc-per-node=2", "--max-restarts=1")
    out, err = done.communicate(timeout=250)
    assert done.returncode == 3 and lines(out) == [f"rank {r} of 2, attempt {a}" for r in (0, 1) for a in (0, 1)]
    assert err.count("rank 1 (local rank 1) on host") == 2 and "restart 1 of 1" in err
    assert "was ended by signal SIGKILL" in err and "ended with exit code 3" in err


def test_outputs_by_rank(start, tmp_path):
    code = "print(f'to stderr {rank}', file=sys.stderr)"
    logs = ["--log-dir", str(tmp_path / "logs"), "--redirects=1:3", "--tee=0:1", "--role=me", "--rdzv-id=job"]
    out, err = start(code, "--nproc-per-node=2", *logs, head=ALONE).communicate(timeout=250)
    assert out == "[me0]:rank 0 of 2\n" and "to stderr 0" in err and "to stderr 1" not in err
    (run,) = (tmp_path / "logs").iterdir()
    assert run.name.startswith("job_")
    files = {f"{p.parent.name}/{p.name}": p.read_text() for p in (run / "attempt_0").rglob("*.log")}
    assert files == {"0/stdout.log": "rank 0 of 2\n", "1/stdout.log": "rank 1 of 2\n", "1/stderr.log": "to stderr 1\n"}


def test_which_streams():
    assert (
        workers.streams("3", 2) == [3, 3]
        and workers.streams("0:1,2:2", 3) == [1, 0, 2]
        and workers.streams("", 1) == [0]
    )
    for wrong in ("4", "x:1", "2:1"):
        with pytest.raises(ValueError, match="expected streams"):
            workers.streams(wrong, 2)
    assert workers.how_it_ended(-9) == "was ended by signal SIGKILL (exit code 137)" and workers.exit_code(3) == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_all_processes(start, number):
    code = "print(f'pid {os.getpid()}\\n', end='', flush=True)\ntime.sleep(250)"
    done = start(code, "--nproc-per-node=2", head=ALONE)
    assert done.stdout is not None
    pids = []
    while len(pids) < 2:
        line = done.stdout.readline()
        assert line
        pids += [int(line.split()[1])] if line.startswith("pid") else []
    done.send_signal(number)
    done.communicate(timeout=200)
    assert done.returncode == 128 + number
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_two_machines_with_numbers(start):
    """Two launchers stand for machines. A failure on one starts both again, and both name the rank that failed first."""
    code = "if rank == 1 and attempt == '0': sys.exit(5)\ndist.barrier()"
    options = ["--nnodes=2", "--max-restarts=1", f"--master-port={kept_port()}"]
    both = [start(code, *options, f"--node-rank={n}") for n in range(2)]
    ends = [p.communicate(timeout=250) for p in both]
    assert [p.returncode for p in both] == [0, 0], ends
    assert lines(ends[1][0]) == [f"rank 1 of 2, attempt {a}" for a in (0, 1)]
    for _, err in ends:
        assert "rank 1 (local rank 0) on host" in err and "exit code 5" in err


STAY = (
    "while True:\n    dist.all_reduce(x)\n    time.sleep(0.05)\n    if os.path.exists(os.environ['STOP']): os._exit(0)"
)


def test_machines_come_and_go(start, tmp_path):
    """One begins alone, another joins and is killed, with its process; the first goes on alone."""
    options = ["--nnodes=1:2", f"--rdzv-endpoint=127.0.0.1:{kept_port()}", "--rdzv-conf=last_call_timeout=0.5"]
    stop = tmp_path / "stop"
    first = start(STAY, *options, "--max-restarts=3", STOP=str(stop))
    alone, both = "rank 0 of 1, attempt 0\n", ("rank 0 of 2, attempt 0\n", "rank 1 of 2, attempt 0\n")
    assert first.stdout is not None and first.stdout.readline() == alone
    second = start(STAY, *options, "--max-restarts=3", STOP=str(stop))
    while (line := first.stdout.readline()) == alone:  # a round may begin before the other machine asks to be in it
        pass
    assert line in both  # and either may come first to it
    children = subprocess.run(
        ["pgrep", "-P", str(second.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    for pid in [second.pid, *map(int, children)]:
        os.kill(pid, signal.SIGKILL)
    assert first.stdout.readline() == "rank 0 of 1, attempt 1\n"
    stop.touch()
    _, err = first.communicate(timeout=200)
    assert first.returncode == 0 and re.search("machine [01] was not heard of", err), err  # numbered as they came


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere ports are not kept")
def test_a_reserved_port_is_for_who_knows_its_number():
    port = ReservedPort()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port.number))
    store = dist.TCPStore("127.0.0.1", port.number, is_master=True, wait_for_workers=False)
    store.set("a", "b")
    assert dist.TCPStore("127.0.0.1", port.number).get("a") == b"b"
    port.release()
    assert dist.TCPStore("127.0.0.1", port.number).get("a") == b"b"


@pytest.mark.parametrize(
    "options, what",
    [
        (["--nnodes=2"], "several machines need"),
        (["--nnodes=2:1"], "expected numbers"),
        (["--nnodes=1:2"], "needs --rdzv-backend=c10d"),
        (["--nproc-per-node=0"], "expected numbers"),
        (["--rdzv-backend=etcd"], "'static' or 'c10d'"),
        (["--tee=9"], "expected streams"),
        (["--mpi", "--nnodes=2", "--master-port=1"], "--mpi starts processes on this machine"),
    ],
)
def test_options_that_make_no_sense(options, what, capsys):
    from taeda.distributed import run

    with pytest.raises(SystemExit) as ended:
        run.main([*options, "x.py"])
    assert ended.value.code == 2 and what in capsys.readouterr().err

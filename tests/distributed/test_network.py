"""Two network namespaces stand for two machines, where the system lets a test make them: delay, loss, and a link that is cut."""

import os
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from taeda.distributed.launched import mpi_is_installed

from .test_engines import HERE, MPIEXEC, environment
from .wire import Wire


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=20, check=check)


def namespaces():
    """Names of two new network namespaces."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need ip and root")
    names = [f"taeda-{secrets.token_hex(3)}" for _ in range(2)]
    for name in names:
        if ip("netns", "add", name, check=False).returncode:
            pytest.skip("no network namespaces here")
    return names


def give(names, ends):
    """The devices to the namespaces, with addresses: 10.99.0.1 and 10.99.0.2."""
    for i, (name, end) in enumerate(zip(names, ends, strict=True)):
        ip("link", "set", end, "netns", name)
        ip("-n", name, "addr", "add", f"10.99.0.{i + 1}/24", "dev", end)
        ip("-n", name, "link", "set", end, "up")
        ip("-n", name, "link", "set", "lo", "up")


@pytest.fixture
def machines():
    """Names of two namespaces with a link between them; the first has 10.99.0.1."""
    names = namespaces()
    ends = [name[-6:] + "v" for name in names]
    try:
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        give(names, ends)
        yield list(zip(names, ends, strict=True))
    finally:
        for name in names:
            ip("netns", "del", name, check=False)


@pytest.fixture
def wired():
    """Makes two namespaces with a :class:`Wire` between them."""
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("the system has no TUN devices")
    names, wires = namespaces(), []

    def make(**bad):
        ends = [name[-6:] + "t" for name in names]
        try:
            wires.append(Wire(ends, **bad))
        except OSError as error:
            pytest.skip(f"no TUN devices: {error}")
        give(names, ends)
        return list(zip(names, ends, strict=True)), wires[0]

    try:
        yield make
    finally:
        for wire in wires:
            wire.close()
        for name in names:
            ip("netns", "del", name, check=False)


def start(machines, *command):
    where = {"MASTER_ADDR": "10.99.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "2"}
    return [
        subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, *map(str, command)], cwd=HERE, text=True,
            env=environment("memory", RANK=str(rank), LOCAL_RANK="0", **where),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank, (name, _) in enumerate(machines)
    ]  # fmt: skip


def test_collectives_between_machines(machines):
    agree(start(machines, HERE / "random_collectives.py", "gloo", 60, 3), 60)


@pytest.mark.parametrize("count, seed", [(40, 4), pytest.param(400, 5, marks=pytest.mark.sweep)])
def test_collectives_by_a_bad_wire(wired, count, seed):
    """Packets come late, out of order, twice, or not at all."""
    machines, wire = wired(delay=0.002, jitter=0.002, loss=0.02, twice=0.01)
    agree(start(machines, HERE / "random_collectives.py", "gloo", count, seed), count)
    assert wire.carried > 400 and wire.dropped > 5  # of 400 packets, 9 are lost


def start_mpi(machines, folder, *command):
    """``mpiexec`` on the first machine, of MPICH: it starts a process on each, and is told how instead of ``ssh``."""
    said = subprocess.run([MPIEXEC or "false", "--version"], capture_output=True, text=True, check=False).stdout
    if "HYDRA" not in said or not mpi_is_installed():
        pytest.skip("no mpi4py with MPICH")
    (first, _), (second, _) = machines
    elsewhere = folder / "elsewhere"
    elsewhere.write_text(
        f'#!/bin/sh\nwhile [ "$1" != 10.99.0.2 ]; do shift; done; shift\nexec ip netns exec {second} sh -c "$*"\n'
    )
    elsewhere.chmod(0o700)
    hosts = ["-localhost", "10.99.0.1", "-hosts", "10.99.0.1,10.99.0.2", "-n", "2"]
    how = ["-launcher", "ssh", "-launcher-exec", str(elsewhere), *hosts]
    apart = {"MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp", "UCX_TLS": "tcp,self"}
    return subprocess.Popen(
        ["ip", "netns", "exec", first, MPIEXEC, *how, sys.executable, *map(str, command)],
        cwd=HERE, text=True, env=environment("mpi", **apart), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize("count, seed", [(40, 6), pytest.param(400, 7, marks=pytest.mark.sweep)])
def test_collectives_of_mpi_by_a_bad_wire(wired, count, seed, tmp_path):
    machines, wire = wired(delay=0.002, jitter=0.002, loss=0.02, twice=0.01)
    process = start_mpi(machines, tmp_path, HERE / "random_collectives.py", "mpi", count, seed)
    out, err = process.communicate(timeout=250)
    assert process.returncode == 0 and out.count(f"{count} agree") == 2, err[-2000:]
    assert wire.carried > 200 and wire.dropped > 1  # of 200, 4


@pytest.mark.sweep
def test_mpi_by_a_wire_that_is_cut(wired, tmp_path):
    """Nobody tells MPI: both processes end after their timeout, also the one that is cut off from ``mpiexec``."""
    machines, wire = wired(delay=0.001)
    program = tmp_path / "program.py"
    program.write_text(ENDLESS.replace("'gloo', timeout=timedelta(seconds=60)", "'mpi', timeout=timedelta(seconds=20)"))
    process = start_mpi(machines, tmp_path, program)
    assert [process.stdout.readline().strip() for _ in range(2)] == ["begun"] * 2
    time.sleep(1)
    wire.cut()
    _, err = process.communicate(timeout=60)
    assert process.returncode and "rank 0 timed out after 0:00:20" in err, err[-2000:]
    end = time.monotonic() + 30
    while left := subprocess.run(["pgrep", "-f", str(program)], capture_output=True, check=False).stdout.split():
        pids = [pid for pid in left if b"python" in _command(int(pid))]
        if not pids:
            break
        assert time.monotonic() < end, pids
        time.sleep(0.5)


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]
    except OSError:
        return b""


def agree(processes, count):
    for process in processes:
        out, err = process.communicate(timeout=250)
        assert process.returncode == 0 and f"{count} agree" in out, err[-2000:]


ENDLESS = """
import taeda, taeda.distributed as dist
from datetime import timedelta
dist.init_process_group('gloo', timeout=timedelta(seconds=60))
x = taeda.ones(300_000)
dist.barrier()
print('begun', flush=True)
while True:
    x.fill_(1.0)
    dist.all_reduce(x)
    assert bool((x == 2).all())
"""


@pytest.mark.sweep
@pytest.mark.parametrize("how", ["first goes down", "second goes down", "nothing arrives"])
def test_a_link_that_is_cut(machines, wired, how, tmp_path):
    """Neither a hang nor a wrong number: both processes raise, and name the other."""
    program = tmp_path / "program.py"
    program.write_text(ENDLESS)
    wire = None
    if how == "nothing arrives":
        machines, wire = wired(delay=0.001)
    both = start(machines, program)
    for process in both:
        assert process.stdout.readline() == "begun\n"
    time.sleep(1)
    begin = time.monotonic()
    if wire is not None:
        wire.cut()
    else:
        name, end = machines[how == "second goes down"]
        ip("-n", name, "link", "set", end, "down")
    for rank, process in enumerate(both):
        _, err = process.communicate(timeout=90)
        assert process.returncode and f"rank {1 - rank} has ended" in err, err[-2000:]
    assert time.monotonic() - begin < 60

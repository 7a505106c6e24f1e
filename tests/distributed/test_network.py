"""Two network namespaces stand for two machines, where the system lets a test make them: delay, loss, and a link that is cut."""

import os
import secrets
import shutil
import subprocess
import sys
import time

import pytest

from .test_engines import HERE, environment


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=20, check=check)


@pytest.fixture
def machines():
    """Names of two namespaces with a link between them; the first has 10.99.0.1."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need ip and root")
    names = [f"taeda-{secrets.token_hex(3)}" for _ in range(2)]
    ends = [name[-6:] + "v" for name in names]
    try:
        for name in names:
            if ip("netns", "add", name, check=False).returncode:
                pytest.skip("no network namespaces here")
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for i, (name, end) in enumerate(zip(names, ends, strict=True)):
            ip("link", "set", end, "netns", name)
            ip("-n", name, "addr", "add", f"10.99.0.{i + 1}/24", "dev", end)
            ip("-n", name, "link", "set", end, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield list(zip(names, ends, strict=True))
    finally:
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


@pytest.mark.parametrize("disturbed", [False, True])
def test_collectives_between_machines(machines, disturbed):
    if disturbed:
        for name, end in machines:
            disturb = ["tc", "qdisc", "add", "dev", end, "root", "netem", "delay", "5ms", "2ms", "loss", "2%"]
            if subprocess.run(["ip", "netns", "exec", name, *disturb], capture_output=True, check=False).returncode:
                pytest.skip("the system has no netem")
    both = start(machines, HERE / "random_collectives.py", "gloo", 60, 3)
    for process in both:
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0 and "60 agree" in out, err[-2000:]


@pytest.mark.sweep
@pytest.mark.parametrize("side", [0, 1])
def test_a_link_that_is_cut(machines, side, tmp_path):
    """Neither a hang nor a wrong number: both processes raise, and name the other."""
    program = tmp_path / "program.py"
    program.write_text(
        "import taeda, taeda.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "x = taeda.ones(300_000)\n"
        "dist.barrier()\n"
        "print('begun', flush=True)\n"
        "while True:\n"
        "    x.fill_(1.0)\n"
        "    dist.all_reduce(x)\n"
        "    assert bool((x == 2).all())\n"
    )
    both = start(machines, program)
    for process in both:
        assert process.stdout.readline() == "begun\n"
    time.sleep(1)
    name, end = machines[side]
    ip("-n", name, "link", "set", end, "down")
    begin = time.monotonic()
    for rank, process in enumerate(both):
        _, err = process.communicate(timeout=90)
        assert process.returncode and f"rank {1 - rank} has ended" in err, err[-2000:]
    assert time.monotonic() - begin < 60

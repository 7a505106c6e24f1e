"""Bad links between processes, without the system's help: no wrong number, no hang, and an error that names the other."""

import subprocess
import sys
import time

import pytest

from .launch import meeting_place
from .relay import Relay
from .test_engines import HERE, environment


def start(relay, world, *command, **more):
    where = meeting_place(world)
    return [
        subprocess.Popen(
            [sys.executable, str(HERE / "relay.py"), str(relay.port), *map(str, command)], cwd=HERE, text=True,
            env=environment("tcp", RANK=str(rank), LOCAL_RANK=str(rank), **{**where, **more}),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank in range(world)
    ]  # fmt: skip


BAD = {"delay": 0.002, "jitter": 0.003, "fragment": 3000, "bandwidth": 2e7}


@pytest.mark.parametrize(
    "world, count, seed", [(3, 30, 1), *(pytest.param(w, 500, 2, marks=pytest.mark.sweep) for w in (2, 5))]
)
def test_collectives_by_bad_links(world, count, seed):
    with Relay(**BAD) as relay:
        processes = start(relay, world, HERE / "random_collectives.py", "gloo", count, seed)
        for process in processes:
            out, err = process.communicate(timeout=300)
            assert process.returncode == 0 and f"{count} agree" in out, err[-2000:]
        assert relay.forwarded > 10_000


LOOP = """
import sys
from datetime import timedelta
import taeda, taeda.distributed as dist
from taeda.distributed.links import _watch
print("ready", flush=True)
sys.stdin.readline()  # until the other is ready too, however long importing takes
dist.init_process_group("gloo", timeout=timedelta(seconds=200))
x = taeda.ones(int(sys.argv[1]))
dist.barrier()
print("begun", flush=True)
engine = dist.group.WORLD.engine  # meeting may take long; what is tested need not
engine.timeout = engine.links.timeout = timedelta(seconds=4)
for peer in engine.links._peers.values():
    _watch(peer.connection, engine.timeout)
while True:
    x.fill_(1.0)
    dist.all_reduce(x)
    assert bool((x == 2).all())
"""


sweep = pytest.mark.sweep


@pytest.mark.parametrize(
    "count, what",
    [
        pytest.param(3, "cut", marks=sweep),
        pytest.param(3_000_000, "cut", marks=sweep),
        pytest.param(3, "silent", marks=sweep),
        (3_000_000, "silent"),
    ],
)
def test_links_that_break(count, what, tmp_path):
    """Processes raise, and name the other: at once, or when their timeout of 4 seconds is over; neither hangs."""
    path = tmp_path / "program.py"
    path.write_text(LOOP)
    with Relay() as relay:
        both = start(relay, 2, path, count)
        try:
            for process in both:
                assert process.stdout.readline() == "ready\n"
            for process in both:
                process.stdin.write("go\n")
                process.stdin.flush()
            for process in both:
                assert process.stdout.readline() == "begun\n"
            time.sleep(0.3)
            relay.cut() if what == "cut" else relay.fall_silent()
            for rank, process in enumerate(both):
                _, err = process.communicate(timeout=100)
                assert process.returncode and "DistBackendError" in err and f"rank {1 - rank}" in err, err[-2000:]
        finally:
            for process in both:
                process.kill()

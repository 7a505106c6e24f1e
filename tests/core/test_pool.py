"""The thread pool: pieces, threads, fork, exit."""

import os
import threading

import numpy as np
import pytest

from taeda._core import machine, pool
from taeda.kernels.build import kernel
from taeda.kernels.ir import I64


@kernel
def mark_pieces(f):
    """Write the beginning of the piece over every element of it, and count visits."""
    starts, visits = f.data(0), f.data(1)
    with f.loop(f.begin, f.end) as L:
        f.store(f.offset(starts, L.index * 8), f.begin)
        at = f.offset(visits, L.index * 8)
        f.store(at, f.load(at, I64) + 1)


def run(total, grain, release_gil=False):
    starts, visits = np.full(total, -1), np.zeros(total, np.int64)
    pointers = np.array([starts.ctypes.data, visits.ctypes.data])
    pool._run(mark_pieces(), pointers.ctypes.data, 0, total, grain, release_gil)
    return starts, visits


@pytest.fixture
def threads():
    before = pool.get_num_threads()
    yield pool.set_num_threads
    pool.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 21])
@pytest.mark.parametrize("total, grain", [(0, 4), (1, 4), (4, 4), (5, 4), (1000, 7), (4096, 1), (10, 100), (10, 0)])
def test_every_element_once_and_pieces_by_shape_alone(threads, count, total, grain):
    threads(count)
    starts, visits = run(total, grain)
    assert (visits == 1).all()
    expected = np.arange(total) // max(grain, 1) * max(grain, 1)
    np.testing.assert_array_equal(starts, expected)


def test_threads_are_started_when_first_needed(run_python):
    code = (
        "import taeda; from taeda._core import pool; a = pool.started_workers(); taeda.ones(10).exp(); "
        "pool.set_num_threads(3); b = pool.started_workers(); taeda.ones(1 << 22).exp(); print(a, b, pool.started_workers())"
    )
    assert run_python(code).split() == ["0", "0", "2"]


@pytest.mark.parametrize("release_gil", [False, True])
def test_many_python_threads_launch_at_once(threads, release_gil):
    threads(2)
    wrong = []

    def work():
        for _ in range(100):
            if not (run(5000, 16, release_gil)[1] == 1).all():
                wrong.append(1)

    team = [threading.Thread(target=work) for _ in range(4)]
    for t in team:
        t.start()
    for t in team:
        t.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_works_after_fork(threads):
    threads(2)
    run(1000, 10)
    child = os.fork()
    if child == 0:
        good = pool.started_workers() == 0 and (run(1000, 10)[1] == 1).all() and pool.started_workers() == 1
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (run(1000, 10)[1] == 1).all()


def test_workers_that_fell_asleep_are_woken(threads):
    import time

    threads(2)
    for _ in range(20):
        run(64, 1)
        time.sleep(0.001)
        assert (run(64, 1)[1] == 1).all()


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="processors of threads are read from Linux's /proc")
def test_threads_that_were_woken_may_run_on_every_processor(run_python):
    code = """
import os, time
import taeda

taeda.set_num_threads(3)
x = taeda.zeros(1 << 20)
for _ in range(5):
    x.add_(1)
    time.sleep(0.01)
def allowed():
    return sorted({len(os.sched_getaffinity(int(thread))) for thread in os.listdir("/proc/self/task")})
end = time.monotonic() + 200
while len(allowed()) > 1 and time.monotonic() < end:  # one that was woken last may not have run yet
    time.sleep(0.01)
print(allowed())
print(len(os.listdir("/proc/self/task")) >= 3, x.eq(5).all().item())
"""
    found = run_python(code, OPENBLAS_NUM_THREADS="1").splitlines()
    assert found == [str([len(os.sched_getaffinity(0))]), "True True"]


def test_set_num_threads_refuses_nonsense():
    with pytest.raises(RuntimeError, match="positive"):
        pool.set_num_threads(0)
    with pytest.raises(RuntimeError, match="expects an int, got str"):
        pool.set_num_threads("2")


@pytest.mark.parametrize(
    "env, expected", [({"TAEDA_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3), ({"OMP_NUM_THREADS": "5,2"}, 5)]
)
def test_environment_sets_the_number_of_threads(run_python, monkeypatch, env, expected):
    monkeypatch.delenv("TAEDA_NUM_THREADS", raising=False)
    code = "import taeda; print(taeda.get_num_threads())"
    assert int(run_python(code, **env)) == expected


def test_affinity_and_quota(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(6)), raising=False)
    monkeypatch.setattr(machine, "cpu_quota", lambda: None)
    assert machine.cpus() == 6
    monkeypatch.setattr(machine, "cpu_quota", lambda: 2.5)
    assert machine.cpus() == 3


def test_cgroup_files(monkeypatch):
    files = {
        "/proc/self/cgroup": "0::/a/b",
        "/sys/fs/cgroup/a/cpu.max": "150000 100000",
        "/sys/fs/cgroup/a/b/cpu.max": "max 100000",
        "/sys/fs/cgroup/a/b/memory.max": "1000000",
        "/proc/meminfo": "MemTotal: 2000 kB\nSwapTotal: 48 kB\n",
    }
    monkeypatch.setattr(machine, "_read", files.get)
    assert machine.cpu_quota() == 1.5
    assert machine.memory() == 1000000
    del files["/sys/fs/cgroup/a/b/memory.max"]
    assert machine.memory() == 2048 * 1024
    files.clear()
    files["/proc/self/cgroup"] = "4:memory:/x\n3:cpu,cpuacct:/x"
    files["/sys/fs/cgroup/cpu/cpu.cfs_quota_us"] = "-1"
    assert machine.cpu_quota() is None
    files["/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us"] = "50000"
    files["/sys/fs/cgroup/cpu/x/cpu.cfs_period_us"] = "100000"
    assert machine.cpu_quota() == 0.5


def test_cache_sizes(monkeypatch):
    """Data caches by level, as the system writes them; something where it does not."""
    files = {
        "0/level": "1",
        "0/type": "Data",
        "0/size": "48K",
        "1/level": "1",
        "1/type": "Instruction",
        "1/size": "32K",
    }
    files |= {"2/level": "2", "2/type": "Unified", "2/size": "1280K"}
    monkeypatch.setattr(machine, "_read", lambda path: files.get(path.rpartition("index")[2]))
    read = machine.caches.__wrapped__
    assert read() == {1: 48 << 10, 2: 1280 << 10}
    files.clear()
    assert sorted(read()) == [1, 2, 3]

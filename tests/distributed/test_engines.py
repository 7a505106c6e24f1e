"""Every engine: random collectives against NumPy, processes that do not agree, and processes that are killed."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

import taeda.distributed as dist
from taeda._core.shared import Segment
from taeda.distributed.engines.contract import Call
from taeda.distributed.engines.segment import SegmentEngine
from taeda.distributed.launched import mpi_is_installed
from taeda.distributed.links import Links

from .forked import Forked
from .launch import launch, meeting_place

HERE = Path(__file__).parent
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
mpi = pytest.mark.skipif(not mpi_is_installed() or MPIEXEC is None, reason="mpi4py or mpiexec is not installed")
ENGINES = ["memory", "tcp", pytest.param("mpi", marks=mpi)]


def environment(engine, **more):
    root = {
        f"{who}_ALLOW_RUN_AS_ROOT{what}": "1" for who in ("OMPI", "PRTE") for what in ("", "_CONFIRM")
    }  # containers
    several = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}  # more processes than processors
    memory = {"TAEDA_DISTRIBUTED_SHARED_MEMORY": "0"} if engine == "tcp" else {}
    return {**os.environ, "OMP_NUM_THREADS": "1", **root, **several, **memory, **more}


def run(engine, world, *command, timeout=250, **more):
    """A program in ``world`` processes, by the launcher: its exit code, its outputs, and when it began and ended."""
    arguments = [f"--nproc-per-node={world}", *(["--mpi"] if engine == "mpi" else []), *map(str, command)]
    code = f"import os\nos.chdir({str(HERE)!r})\nfrom taeda.distributed import run\nrun.main({arguments!r})"
    begin = time.time()
    launcher = Forked(code, environment(engine, **more))
    out, err = launcher.communicate(timeout=timeout)
    return launcher.returncode, out, err, (begin, time.time())


def meet(engine, world, *command, **more):
    """The same without the launcher, where that is not what is tested: MPI has no other way to begin."""
    if engine == "mpi":
        return run(engine, world, *command, **more)[:3]
    program = (
        f"import runpy, sys\nsys.argv = {[*map(str, command)]!r}\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    )
    timeout, place = more.pop("timeout", 250), meeting_place(world)
    ranks = [{**place, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world)]
    processes = [Forked(program, environment(engine, **own, **more)) for own in ranks]
    out, err = map("".join, zip(*[process.communicate(timeout) for process in processes], strict=True))
    return max(abs(process.returncode) for process in processes), out, err


def backend(engine):
    return "mpi" if engine == "mpi" else "gloo"


def agree(engine, world, count, seed, timeout=250):
    code, out, err = meet(engine, world, HERE / "random_collectives.py", backend(engine), count, seed, timeout=timeout)
    assert code == 0 and out.count(f"{count} agree") == world, err[-3000:]


@pytest.mark.parametrize("engine", ENGINES)
def test_random_collectives(engine):
    agree(engine, 3, 200, 1)


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("world", range(2, 9))
def test_ten_thousand_collectives(engine, world):
    for seed in range(10):
        agree(engine, world, 1000, seed + 2, timeout=3600)


@pytest.fixture
def program(tmp_path):
    """A file with code that begins with ``rank``, ``size`` and a group of the engine."""

    def write(engine, code, timeout=200):
        head = f"""
import os, signal, sys, time
from datetime import timedelta
import taeda, taeda.distributed as dist
x = taeda.ones(3)
def died():
    print(f"at {{time.time()}}\\n", end="", flush=True)
def kill():
    died()
    os.kill(os.getpid(), signal.SIGKILL)
dist.init_process_group("{backend(engine)}", timeout=timedelta(seconds={timeout}))
rank, size = dist.get_rank(), dist.get_world_size()
"""
        path = tmp_path / "program.py"
        path.write_text(head + code)
        return path

    return write


DIFFER = [  # what rank 0 and rank 1 do, and what the error says of it
    ("dist.all_reduce(x, group=g)", "dist.barrier(g)", ["all_reduce(float32[3], SUM)", "barrier()"]),
    ("dist.all_reduce(x, group=g)", "dist.all_reduce(x[1:], group=g)", ["float32[3]", "float32[2]"]),
    ("dist.broadcast(x, 0, g)", "dist.broadcast(x, 1, g); dist.barrier(g)", ["src=0", "src=1"]),
    ("dist.all_gather([x, x], x, g, True).wait()", "dist.all_reduce(x.double(), group=g)", ["all_gather", "float64"]),
]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_does_not_agree_names_both_call_sites(engine, program):
    code = ""
    for one, other, _ in DIFFER:
        code += f"g = dist.new_group()\ntry:\n    if rank == 0:\n        {one}\n    else:\n        {other}\n    dist.barrier(g)\n"
        code += "except RuntimeError as error:\n    print(f'{error}\\n', end='')\ndist.barrier()\n"
    path = program(engine, code)
    ended, out, err = meet(engine, 2, path, TAEDA_DISTRIBUTED_DEBUG="1")
    assert ended == 0 and "timed out" not in out, err
    source = path.read_text().splitlines()
    for i, (_, _, names) in enumerate(DIFFER):
        first = [n for n, line in enumerate(source, 1) if line.startswith("    if rank == 0:")][i] + 1
        lines = [line for line in out.splitlines() if f"{path}:{first}" in line and f"{path}:{first + 2}" in line]
        assert len(lines) == 2 and all(name in line for name in names for line in lines), (i, out)


def test_a_mismatch_is_an_error_though_what_follows_has_come():
    """Both send for a broadcast, then both do a barrier: its messages may be here before a process looks."""
    store, minute = dist.HashStore(), timedelta(minutes=1)
    with ThreadPoolExecutor() as threads:
        one, other = threads.map(lambda rank: Links(store, rank, 2, minute), range(2))
    for number, doing in enumerate(("broadcast(src=0)", "barrier()")):
        one.begin("g", number, doing, f"line {number}")
    for number, doing in enumerate(("broadcast(src=1)", "barrier()")):
        other.send(0, ("g", str(number)), doing, site=f"there {number}")
    while not one.has([1], ("g", "1")):
        time.sleep(0.001)
    with pytest.raises(
        dist.DistBackendError, match=r"rank 1 does broadcast\(src=1\) at there 0, rank 0 broadcast.*line 0"
    ):
        one.receive([1], ("g", "1"), "barrier()")
    for links in (one, other):
        links.close()


def test_who_comes_and_ends_between_two_looks_has_come():
    """The counter is raised, and the connection closed, after a process has looked at the one and before the other."""
    engine = SegmentEngine("g", 0, [0, 1], None, timedelta(minutes=1))
    engine._segment = Segment(4096)

    class Closing:
        def trouble(self, ranks, group, doing):
            if doing == "barrier()":
                engine._segment.post(64, 1)
            raise dist.DistBackendError("rank 1 has ended")

    engine.links = Closing()
    with pytest.raises(dist.DistBackendError, match="has ended"):
        engine._wait(Call("g", 0, "all_reduce()", ""), 1, 1, timedelta(minutes=1))
    engine._wait(Call("g", 0, "barrier()", ""), 1, 1, timedelta(minutes=1))


BITS = """
import hashlib
taeda.manual_seed(rank)
seen = hashlib.sha256()
for n in (7, 5000, 200_001):
    for dtype in (taeda.float32, taeda.float16, taeda.bfloat16, taeda.float64):
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.PRODUCT):
            t = taeda.randn(n).to(dtype)
            dist.all_reduce(t, op)
            seen.update(t.view(taeda.uint8).numpy().tobytes())
            part = taeda.empty(n // 3, dtype=dtype)
            dist.reduce_scatter_tensor(part, t[: n // 3 * 3] * (rank + 0.1), op)
            dist.broadcast(part, 1)
            seen.update(part.view(taeda.uint8).numpy().tobytes())
            if rank == 1: time.sleep(0.001 * (n % 3))
print(f"bits {seen.hexdigest()}\\n", end="", flush=True)
y = taeda.tensor([2048.0, 1.0, 1.0][rank]).half()  # is added up in float32
dist.all_reduce(y)
assert y.item() == 2050
"""


def test_bits_do_not_depend_on_timing_nor_on_how_they_travel(program):
    path = program("memory", BITS)
    found = []
    for engine in ("memory", "memory", "tcp"):
        code, out, err = meet(engine, 3, path)
        assert code == 0, err
        found += [line for line in out.splitlines() if line.startswith("bits")]
    assert len(found) == 9 and len(set(found)) == 1


@pytest.mark.parametrize("engine", ["memory", pytest.param("mpi", marks=mpi)])
def test_the_example(engine):
    code, out, err, _ = run(engine, 2, HERE.parents[1] / "examples" / "ddp.py", "--epochs", "20")
    assert code == 0 and f"2 processes by {backend(engine)}: the parameters are equal" in out, err
    assert float(re.search(r"epoch 20, loss ([\d.]+)", out)[1]) < 1e-3


def test_sizes_of_all_to_all_that_differ(program):
    path = program(
        "memory", "dist.all_to_all([taeda.ones(2)] * 2, [taeda.ones(2), taeda.ones(2 + rank)][::1 - 2 * rank])"
    )
    code, _, err = meet("memory", 2, path)
    assert code and "expected 2 elements from rank 1, which sends 3" in err


PHASES = {
    "first": "kill() if me else dist.all_reduce(x)",
    "later": "dist.all_reduce(x)\nkill() if me else dist.barrier()",
    "large": "y = taeda.ones(3_000_000)\nsignal.signal(signal.SIGALRM, lambda *_: kill())\n"
    "if me: signal.setitimer(signal.ITIMER_REAL, 0.3)\nwhile True: dist.all_reduce(y)",
    "behind": "work = dist.all_reduce(x, async_op=True)\nif me: kill()\nwork.wait()\ndist.all_reduce(x)\ndist.barrier()",
    "message": "kill() if me else dist.recv(x, VICTIM)",
    "objects": "kill() if me else dist.all_gather_object([None] * size, {'a': rank})",
    "group": "group = dist.new_group(range(size))\nkill() if me else dist.broadcast(x, VICTIM, group)",
}


@pytest.mark.parametrize(
    "engine, phase, victim",
    [
        ("memory", "large", 1),
        ("memory", "behind", 0),
        ("tcp", "large", 2),
        ("tcp", "message", 1),
        pytest.param("mpi", "later", 1, marks=mpi),
    ],
)
def test_a_process_that_is_killed_ends_the_others(engine, phase, victim, program):
    """Long before the group's timeout. How long it takes is not asked where other programs may run."""
    killed(engine, phase, victim, program)


def killed(engine, phase, victim, program, world=3):
    """The seconds until the victim's death, and from there to the end."""
    path = program(engine, f"me = rank == {victim}\n" + PHASES[phase].replace("VICTIM", str(victim)))
    code, out, err, (begin, end) = run(engine, world, path)
    assert code and "timed out" not in err, (code, out, err)
    assert f"rank {victim}" in err and "was ended by signal SIGKILL (exit code 137)" in err and "on host" in err, err
    death = float(re.search(r"^at ([\d.]+)$", out, re.MULTILINE)[1])
    return death - begin, end - death


def test_a_forked_child_does_not_hide_that_its_parent_is_gone():
    code = """
    import os, signal, time
    dist.barrier()
    if rank == 1:
        child = os.fork()
        if not child:
            os.close(1), os.close(2)  # the test waits for its outputs
            time.sleep(500)
        print(child, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()
    """
    (_, err, _), (out, _, code) = launch(code, 2)
    os.kill(int(out), signal.SIGKILL)  # it is still there
    assert code == -signal.SIGKILL and "rank 1 has ended" in err


@pytest.mark.sweep
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("world, victim", [(world, victim) for world in (3, 8) for victim in range(world)])
def test_each_rank_killed_in_each_phase(engine, phase, world, victim, program):
    starting, ending = killed(engine, phase, victim, program, world)
    assert ending < 10 + starting  # where the machine is busy, starting took longer as well: as much again is allowed


@pytest.mark.parametrize("engine", ENGINES)
def test_who_comes_too_late_is_named(engine, program):
    path = program(engine, "if rank: dist.recv(x, 0)\ndist.barrier(timeout=timedelta(seconds=1))")
    code, _, err, _ = run(engine, 2, path, TAEDA_DISTRIBUTED_DEBUG="1")
    line = next(line for line in err.splitlines() if "timed out" in line)
    assert (
        code and "barrier()" in line and "rank 0 timed out after 0:00:01 waiting for rank" in line and "1" in line[-60:]
    )


@mpi
def test_who_ends_before_it_meets_the_others(tmp_path):
    """Where ``mpiexec`` does not see to it, the launcher does."""
    path = tmp_path / "program.py"
    path.write_text(
        "import sys\nfrom taeda.distributed import init_process_group, launched\n"
        "if launched.variable('RANK') == '1': sys.exit(5)\ninit_process_group('mpi')"
    )
    code, _, err, _ = run("mpi", 2, path)
    assert code and re.search(r"rank 1 on host \S+ ended with exit code 5", err), err


@mpi
def test_mpi_by_its_own_launcher(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import taeda, taeda.distributed as dist\n"
        "dist.init_process_group()\n"
        "x = taeda.tensor([float('nan'), 1.0, 2.0 + dist.get_rank()])\n"
        "dist.all_reduce(x, dist.ReduceOp.MAX)\n"
        "work = dist.all_reduce(taeda.ones(2, dtype=taeda.bfloat16), async_op=True)\n"
        "y = work.get_future().then(lambda f: f.value()[0].float().sum().item()).wait()\n"
        "print(f'{dist.get_rank()} {dist.group.WORLD.name()} {x.tolist()} {y} {dist.get_node_local_rank()}\\n', end='')\n"
    )
    assert MPIEXEC is not None
    command = [MPIEXEC, "-n", "2", sys.executable, "-u", str(path)]
    how = {"env": environment("mpi"), "cwd": HERE, "capture_output": True, "text": True, "timeout": 250}
    done = subprocess.run(command, **how)
    assert sorted(done.stdout.split("\n"))[-2:] == [f"{r} mpi [nan, 1.0, 3.0] 4.0 {r}" for r in (0, 1)], done.stderr
    path.write_text(
        "import taeda.distributed as dist\ndist.init_process_group()\nif dist.get_rank(): {}['a']\ndist.barrier()"
    )
    done = subprocess.run(command, **how)
    assert done.returncode and "rank 1 on host" in done.stderr and "KeyError: 'a'" in done.stderr
    path.write_text(
        "import sys, time, taeda, taeda.distributed as dist\ndist.init_process_group()\nx = taeda.ones(3)\n"
        "if dist.get_rank(): dist.send(x, 0); sys.exit(3)\n"
        "time.sleep(0.5)\ndist.recv(x, 1)\nprint('came', flush=True)\nwork = dist.all_reduce(x, async_op=True)\n"
        "while not work.is_completed(): time.sleep(0.01)\nwork.wait()"
    )
    done = subprocess.run(command, **how)
    assert done.returncode and "came" in done.stdout
    said = r"all_reduce\(float32\[3\], SUM\) at .*: rank 1 on host \S+ has ended with exit code 3, while rank 0 waits"
    assert re.search(said, done.stderr), done.stderr


def test_backends_that_are_not_there(monkeypatch):
    import taeda.distributed as dist

    monkeypatch.setattr("taeda.distributed.groups.mpi_is_installed", lambda: False)
    assert not dist.is_mpi_available() and not dist.is_backend_available("mpi")
    refused = {"nccl": (RuntimeError, "NCCL built in"), "mpi": (RuntimeError, "mpi4py and an MPI library")}
    for name, (kind, what) in {**refused, "smoke": (AssertionError, "Unknown backend type smoke")}.items():
        with pytest.raises(kind, match=what):
            dist.init_process_group(name, store=dist.HashStore(), rank=0, world_size=1)
    assert not dist.is_initialized()


def test_variables_of_slurm(monkeypatch):
    from taeda.distributed import launched

    assert list(launched.hosts("gpu[01-03,7],b,c2-[1-2]x")) == [
        "gpu01",
        "gpu02",
        "gpu03",
        "gpu7",
        "b",
        "c2-1x",
        "c2-2x",
    ]
    for name in [name for name in os.environ if name.startswith(("PMI", "OMPI", "MPI", "SLURM"))] + [
        "RANK",
        "LOCAL_RANK",
    ]:
        monkeypatch.delenv(name, raising=False)
    given = {"PROCID": 3, "NTASKS": 8, "LOCALID": 1, "JOB_ID": 4711, "JOB_NODELIST": "n[09-10]", "STEP_ID": 2}
    for name, value in given.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    assert [launched.variable(name) for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR")] == ["3", "8", "n09"]
    assert launched.local_rank() == 1 and 12_000 <= int(launched.variable("MASTER_PORT")) < 32_000
    monkeypatch.setenv("MASTER_ADDR", "other")
    assert launched.variable("MASTER_ADDR") == "other" and launched.by_slurm() and not launched.by_mpi()

"""Two processes, each with an emulated GPU, and a stand-in of NCCL between them."""

import re

import pytest

from .program import ROOT, emulated, started

PROGRAMS = ["collectives", "collectives 1", "unordered", "data_parallel", "sharded", "cut", "pipeline"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_processes(name, tmp_path):
    out = emulated(
        "-m", "taeda.distributed.run", "--nproc-per-node=2", str(ROOT / "tests/cuda/several.py"), *name.split(),
        TAEDA_TARGET="lane", TMPDIR=str(tmp_path),
    )  # fmt: skip
    assert "".join(out.split()) == "donedone"  # processes write at the same time
    assert not list(tmp_path.glob("taeda-nccl-*"))  # nothing is left of the exchange


@pytest.mark.parametrize("how, said", [
    ("ends", r"rank 0: all_reduce\(float32\[5\], SUM\) at \S+several.py:\d+: .*rank 1 has ended"),
    ("sleeps", r"rank 0: all_reduce\(float32\[5\], SUM\) at \S+several.py:\d+: it did not end within 0:00:03"),
])  # fmt: skip
def test_a_process_that_is_gone_is_named(how, said, tmp_path):
    done = started(
        "-m", "taeda.distributed.run", "--nproc-per-node=2", str(ROOT / "tests/cuda/several.py"), "lost", how,
        TMPDIR=str(tmp_path),
    )  # fmt: skip
    assert done.returncode and "not reached" not in done.stdout and re.search(said, done.stderr), done.stderr


def test_calls_that_differ_and_a_gpu_of_two_processes():
    out = emulated(
        "-m", "taeda.distributed.run", "--nproc-per-node=2", str(ROOT / "tests/cuda/several.py"), "different",
        TAEDA_DISTRIBUTED_DEBUG="1",
    )  # fmt: skip
    assert "".join(out.split()) == "donedone"  # processes write at the same time


def test_without_nccl_the_error_says_what_is_missing():
    code = (
        "import taeda.distributed as dist\n"
        "try: dist.init_process_group('nccl', store=dist.HashStore(), rank=0, world_size=1)\n"
        "except RuntimeError as error: print(error)\nprint(dist.is_nccl_available())"
    )
    out = emulated("-c", code, TAEDA_CUDA="tests.cuda.program")
    assert "built in: TAEDA_CUDA=tests.cuda.program.nccl names no module that gives NCCL" in out and out.endswith(
        "False\n"
    )

"""Two processes, each with an emulated GPU, and a stand-in of NCCL between them."""

import pytest

from .program import ROOT, emulated

PROGRAMS = ["collectives", "data_parallel", "sharded", "cut", "pipeline"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_processes(name, tmp_path):
    out = emulated(
        "-m", "taeda.distributed.run", "--nproc-per-node=2", str(ROOT / "tests/cuda/several.py"), name,
        TAEDA_TARGET="lane", TMPDIR=str(tmp_path),
    )  # fmt: skip
    assert out.split() == ["done", "done"]
    assert not list(tmp_path.glob("taeda-nccl-*"))  # nothing is left of the exchange

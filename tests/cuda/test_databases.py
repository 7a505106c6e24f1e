"""The databases of ops, modules and optimisers on the emulated CUDA device, and NVIDIA's assembler on its kernels."""

import re

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from . import ptxas
from .program import emulated

#: Entries of the operator database: some of each family of kernels.
ENTRIES = (
    "add|sub|true_divide|exp|sin|erf|lgamma|nn.functional.gelu|where|clamp|pow|sum|mean|std|var|amax|argmax|prod|norm|softmax"
    "|log_softmax|nn.functional.layer_norm|nn.functional.batch_norm|cumsum|cumprod|gather|scatter|scatter_add|index_select"
    "|index_put|index_add|masked_fill|masked_select|nonzero|cat|stack|flip|roll|tril|triu|sort|topk|unique|matmul|mm|bmm"
    "|addmm|dot|linalg.inv|linalg.svd|fft.fft|nn.functional.conv2d|nn.functional.max_pool2d|nn.functional.avg_pool2d"
    "|nn.functional.cross_entropy|nn.functional.mse_loss|nn.functional.embedding|nn.functional.dropout|nn.functional.linear"
    "|nn.functional.scaled_dot_product_attention|nn.functional.interpolate_bilinear|nn.functional.grid_sample|histc"
    "|searchsorted|bucketize|arange|eye|full|randn|bernoulli"
)


def agreeing(run, *arguments, timeout=900, **environment):
    """How many entries agree, of how many, and what was said of the others."""
    out = emulated(
        "-W", "ignore", "-m", f"tests.conformance.opdb.{run}", *arguments, timeout=timeout,
        TAEDA_TARGET="lane", TAEDA_TEST_DEVICE="cuda", **environment,
    )  # fmt: skip
    agree, total = map(int, re.search(r"(\d+) of (\d+) agree", out).groups())
    return agree, total, out


@pytest.mark.timeout(900)
def test_operators_give_the_bits_of_the_cpu(tmp_path):
    """Results, gradients and second derivatives, bit for bit those of the CPU's kernels with one lane."""
    agree, total, said = agreeing("far", f"^({ENTRIES})$", TAEDA_EMULATOR_KEEPS=str(tmp_path))
    assert total >= 65 and agree == total, said
    assembler = ptxas.find()
    if assembler is None:
        pytest.skip("ptxas was not found: the values agree, but NVIDIA's assembler saw no kernel")
    texts = ptxas.kernels(tmp_path)
    assert len(texts) > 100
    for name, text in list(texts.items())[::8]:
        assert ptxas.assemble(assembler, text, "sm_80").refused == "", name


def test_the_assembler_refuses_what_is_not_ptx():
    assembler = ptxas.find()
    if assembler is None:
        pytest.skip("ptxas was not found")
    head = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n"
    assert ptxas.assemble(assembler, head + b"ret;\n}\n", "sm_120") == ("", 0, 0, 4)
    assert (
        "Not a name of any known instruction"
        in ptxas.assemble(assembler, head + b"no.such.instruction;\n}\n", "sm_80").refused
    )


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("run, least", [("far", 680), ("far_networks", 129)])
def test_every_entry(run, least, tmp_path):
    agree, total, said = agreeing(run, timeout=None, TAEDA_EMULATOR_KEEPS=str(tmp_path))
    assert total >= least and agree == total, said
    if ptxas.find():
        assert ptxas.main(str(tmp_path), list(ptxas.ARCHITECTURES)) == 0

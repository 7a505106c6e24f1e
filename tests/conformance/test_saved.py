"""What is changed between the forward and the backward pass: all ways of changing a tensor by all ways of having saved
it, against PyTorch."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.checks import entries
from .opdb.saved import WAYS, check

FEW = "mul sinc sigmoid matmul nn.functional.embedding gather cumprod where max.reduction_with_dim var".split()
#: PyTorch's derivatives of these do not read an argument or a result that taeda's do read.
COPIED = """
kron ldexp masked.sum masked.softmin masked.std masked.var nn.functional.ctc_loss nn.functional.linear_cross_entropy.chunked linalg.eigvals linalg.eigvalsh linalg.lstsq.grad_oriented native_group_norm nn.functional.cross_entropy nn.functional.group_norm nn.functional.l1_loss
nn.functional.multilabel_soft_margin_loss nn.functional.rms_norm nn.functional.scaled_dot_product_attention
nn.functional.tanhshrink norm.nuc polar special.ndtr
""".split()
FEW_WAYS = ("mul_", "t_", "resize_", "set_", ".data", ".data of other sizes", "write and .data")


def _wrong(name, *options):
    return {label: wrong for label, wrong in check(entries()[name], *options) if wrong}


@pytest.mark.parametrize("name", FEW)
def test_entry(name):
    assert not _wrong(name, 1, FEW_WAYS)


@pytest.mark.parametrize("name", COPIED)
def test_copied_before_a_write(name):
    assert not _wrong(name, 1, ("mul_", "write to .detach()", "unsqueeze_", "set_", "resize_"))


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(entries()))
def test_all_ways(name):
    assert not _wrong(name, 2, tuple(WAYS))

"""Under ``vmap`` an op gives what it gives for each example, for the entries of PyTorch's operator database."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.batched import check, is_mapped
from .opdb.checks import entries

MAPPED = sorted(name for name, op in entries().items() if is_mapped(op))

#: With what belongs to each example all at once, not one example after the other.
AT_ONCE = (
    "nn.functional.layer_norm", "nn.functional.group_norm", "nn.functional.rms_norm", "nn.functional.ctc_loss", "lu_solve",
    "linalg.householder_product", "nn.functional.max_unpool2d", "quantile", "cov", "slice_scatter",
)  # fmt: skip


@pytest.mark.parametrize("name", MAPPED)
def test_entry_under_vmap(name):
    differences, one_by_one = check(entries()[name], 1)
    assert not differences, differences
    assert not (name in AT_ONCE and one_by_one)

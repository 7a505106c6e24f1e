"""Under ``vmap`` an op gives what it gives for each example, for the entries of PyTorch's operator database."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.batched import check, is_mapped
from .opdb.checks import entries

# Sizes, bins and validity that depend on values, which are one per example: refused by name, as in PyTorch.
BY_VALUE = (
    "linspace.tensor_overload", "logspace.tensor_overload", "quantile", "nanquantile", "narrow", "tensor_split", "ctc_loss",
    "max_unpool", "fractional_max_pool", "instance_norm", "batch_norm", "one_hot", "embedding", "lstsq", "lu", "matrix_rank",
    "inv_ex", "solve_ex", "_scatter", "unfold", "hist", "stft", "ormqr", "lobpcg", "nanmedian", "ldl", "geqrf", "segment_reduce",
    "det", "masked.median", "linear_cross_entropy", "nonzero_static", "lowrank", "cholesky_ex", "cond", "pinv", "linalg.eig",
)  # fmt: skip
MAPPED = sorted(name for name, op in entries().items() if is_mapped(op) and not any(w in name for w in BY_VALUE))


@pytest.mark.parametrize("name", MAPPED)
def test_entry_under_vmap(name):
    differences, _ = check(entries()[name], 1)
    assert not differences, differences

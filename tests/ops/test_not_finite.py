"""Matrices with NaN or infinity: an error or NaN, never numbers, and nothing of it in the others of a batch."""

import math

import pytest

import taeda
from taeda import linalg


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("n", [1, 2, 3, 9, 33])
@pytest.mark.parametrize(
    "function", [linalg.eigh, linalg.eigvalsh, linalg.eig, linalg.eigvals, linalg.svd, linalg.svdvals]
)
def test_values_are_refused(function, n, value):
    for place in ((0, 0), (n - 1, 0), (n - 1, n - 1)):
        A = taeda.eye(n) + 0.1
        A[place] = value
        for given in (A, taeda.stack((taeda.eye(n), A)), A.double(), A.to(taeda.complex64)):
            with pytest.raises(RuntimeError, match=r"infs or NaNs|non-finite"):
                function(given)


def test_the_triangle_that_is_not_read_may_hold_anything():
    A = taeda.tensor([[2.0, math.nan], [1.0, 2.0]])
    assert linalg.eigvalsh(A).allclose(taeda.tensor([1.0, 3.0]))
    assert linalg.eigvalsh(A.mT, UPLO="U").allclose(taeda.tensor([1.0, 3.0]))
    with pytest.raises(RuntimeError, match="non-finite"):
        linalg.eigh(A, UPLO="U")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_the_others_of_a_batch_are_computed(value):
    good = taeda.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
    both = taeda.stack((good, taeda.full((3, 3), value)))
    for f in (
        linalg.matrix_exp, linalg.inv, linalg.det, linalg.lu_factor, linalg.qr, linalg.cholesky_ex, taeda.geqrf,
        lambda A: linalg.solve(A, A),
    ):  # fmt: skip
        one, two = f(good), f(both)
        for x, y in zip(one, two, strict=True) if isinstance(one, tuple) else ((one, two),):
            taeda.testing.assert_close(y[0], x)
        last = two[0] if isinstance(two, tuple) else two
        assert not last[1].isfinite().all()


@pytest.mark.parametrize("n", [3, 40])
def test_a_failed_factor_is_triangular(n):
    A = taeda.ones(n, n)
    A[1, 1] = math.nan
    assert (linalg.cholesky_ex(A).L.triu(1) == 0).all()
    assert (linalg.cholesky_ex(A, upper=True).L.tril(-1) == 0).all()


def test_log_of_a_sum_of_a_row_with_a_part_of_infinities():
    """A part of a long row without a finite number does not take the place of the largest element."""
    x = taeda.full((1 << 17,), -math.inf)
    assert x.logsumexp(0).item() == -math.inf
    x[0] = -1000.0
    assert x.logsumexp(0).item() == -1000.0
    x[-1] = math.inf
    assert x.logsumexp(0).item() == math.inf

"""What fuzzing found: calls that ended the process, never ended, or failed with an error that blames taeda."""

from __future__ import annotations

import math

import pytest

import taeda
from taeda.nn import functional as F


def ints(*values: int) -> taeda.Tensor:
    return taeda.tensor(values, dtype=taeda.int32)


A = taeda.eye(3)
REFUSED = {
    "pivots beyond the matrix": (
        lambda: taeda.linalg.lu_solve(A, ints(1, 2, 9), A),
        RuntimeError,
        "pivots between 1 and 3",
    ),
    "pivots from zero": (lambda: taeda.lu_unpack(A, ints(0, 2, 3)), RuntimeError, "pivots between 1 and 3"),
    "half a pair of pivots": (lambda: taeda.linalg.ldl_solve(A, ints(-1, 2, 3), A), RuntimeError, "pairs"),
    "a state of another batch": (
        lambda: taeda.rnn_tanh(
            taeda.ones(4, 17, 2),
            taeda.ones(1, 2, 3),
            [taeda.ones(3, 2), taeda.ones(3, 3)],
            False,
            1,
            0.0,
            False,
            False,
            False,
        ),
        RuntimeError,
        "expected h0 of shape",
    ),
    "gates of another width": (
        lambda: taeda.lstm_cell(taeda.ones(2, 3), [taeda.ones(2, 4)] * 2, taeda.ones(8, 3), taeda.ones(8, 4)),
        RuntimeError,
        "expected gates of shape",
    ),
    "a state of whole numbers": (
        lambda: taeda.gru_cell(taeda.ones(2, 3), ints(1, 1).view(2, 1), taeda.ones(3, 3), taeda.ones(3, 1)),
        RuntimeError,
        "dtype",
    ),
    "dropout of complex channels": (
        lambda: taeda.feature_alpha_dropout(taeda.ones(2, 2, dtype=taeda.complex64), 0.5, True),
        NotImplementedError,
        "complex",
    ),
    "dropout of integers": (lambda: taeda.dropout(ints(1, 2), 0.5, True), RuntimeError, "can't be cast"),
    "more views than there is memory for": (lambda: taeda.ones(1, 0).hsplit(1 << 62), RuntimeError, "views"),
    "an average over more windows than fit": (
        lambda: F.adaptive_avg_pool2d(taeda.ones(2, 2, 4), 1 << 40),
        RuntimeError,
        "memory",
    ),
    "a degree that is no number of steps": (
        lambda: taeda.mvlgamma(taeda.ones(2), taeda.ones(2)),
        TypeError,
        "must be int",
    ),
    "a number for a tensor": (lambda: taeda.bucketize(A, 1.0), TypeError, "argument 'boundaries' .* must be Tensor"),
    "a number among tensors": (lambda: taeda.atleast_2d(A, 1.0), TypeError, "must be Tensor, not float"),
    "no dtype": (lambda: A.to(b"x"), TypeError, "expected a dtype"),
    "a complex image": (
        lambda: F.interpolate(taeda.ones(1, 1, 2, 2, dtype=taeda.complex64), scale_factor=2),
        NotImplementedError,
        "complex",
    ),
    "softmax of a dense tensor as of a sparse one": (lambda: taeda.sparse.softmax(A, 0), NotImplementedError, "sparse"),
    "dimensions that scalars do not have": (
        lambda: taeda.tensordot(A, taeda.ones(()), [[0], [1]]),
        IndexError,
        "out of range",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    call, kind, text = REFUSED[what]
    with pytest.raises(kind, match=text):
        call()


def test_answered():
    x = taeda.tensor([0.3, 0.6])
    assert taeda.special.legendre_polynomial_p(x, 1 << 62).isnan().all()
    assert taeda.special.laguerre_polynomial_l(x, 2.0**40).isnan().all()
    assert taeda.polygamma(1 << 31, x + 1).shape == (2,)
    assert taeda.binomial(taeda.tensor([math.inf]), taeda.tensor([0.3])).item() == math.inf
    assert F.adaptive_max_pool1d(taeda.ones(2, 2, 5), 0).shape == (2, 2, 0)
    none = taeda.ones(2, 3, 0)
    assert F.scaled_dot_product_attention(none, none, taeda.ones(2, 3, 4)).equal(taeda.ones(2, 3, 4))


def test_mvlgamma_is_the_sum_of_its_terms():
    x = taeda.tensor([3.5, 4.25], dtype=taeda.float64)
    terms = sum(taeda.lgamma(x - j / 2) for j in range(3)) + 1.5 * math.log(math.pi)
    taeda.testing.assert_close(x.mvlgamma(3), terms)


@pytest.mark.parametrize("training", (False, True))
def test_statistics_and_weights_with_gaps(training):
    x = taeda.randn(4, 3, 5)
    spread = [taeda.rand(6)[::2] + 0 for _ in range(4)]
    gaps = []
    for t in spread:
        wide = taeda.zeros(6)
        wide[::2] = t
        gaps.append(wide[::2])
    made = [F.batch_norm(x, *given, training) for given in (spread, gaps)]
    assert made[0].equal(made[1])
    for kept, moved in zip(spread, gaps, strict=True):
        assert kept.equal(moved)
    assert F.group_norm(x, 3, *spread[2:]).equal(F.group_norm(x, 3, *gaps[2:]))
    taeda.testing.assert_close(F.batch_norm(x, *gaps[:2]), (x - gaps[0][:, None]) / (gaps[1][:, None] + 1e-5).sqrt())

"""What fuzzing found: calls that ended the process, never ended, or failed with an error that blames taeda."""

from __future__ import annotations

import math
import operator

import numpy as np
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
        "overflow",
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
    "folding with a kernel of nothing": (
        lambda: F.fold(taeda.ones(8, 2, 5), [3, 3], 0),
        RuntimeError,
        "greater than zero",
    ),
    "words for numbers": (lambda: taeda.ones(2).replace_nonfinite_("ij", 0.0, 0.0), TypeError, "must be Number"),
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


@pytest.mark.parametrize("dtype", (taeda.float32, taeda.float64))
def test_a_vector_with_gaps_added_to_a_product(dtype):
    wide, vector = taeda.randn(40, dtype=dtype), taeda.randn(30, dtype=dtype)
    by_columns = taeda.randn(30, 20, dtype=dtype).t()
    product = by_columns.contiguous() @ vector
    for added in (wide[::2], wide[:20][::-1], wide[::2][::-1], wide[:1].expand(20)):
        taeda.testing.assert_close(taeda.addmv(added, by_columns, vector), added.contiguous() + product)


def test_copies_between_strides():
    x = taeda.arange(3 << 12).reshape(3, -1)
    for dtype in (taeda.uint8, taeda.int16, taeda.float32, taeda.float64, taeda.complex128):
        t = x.to(dtype)
        column = t[:, 5:6].expand(3, 1000).contiguous()
        assert column.tolist() == [[t[i, 5].item()] * 1000 for i in range(3)]
        assert t[:, ::3].contiguous().tolist() == [row[::3] for row in t.tolist()]
        long = t.reshape(-1).repeat(24)
        joined = taeda.stack((long, long + 1), -1)
        assert joined[:, 0].equal(long) and joined[:, 1].equal(long + 1)


def assigned(t, x):
    t[:] = x
    return t


FITS = {
    "full": lambda dtype, x: taeda.full((2,), x, dtype=dtype),
    "fill_": lambda dtype, x: taeda.zeros(2, dtype=dtype).fill_(x),
    "masked_fill": lambda dtype, x: taeda.zeros(2, dtype=dtype).masked_fill(taeda.tensor([True, True]), x),
    "assignment": lambda dtype, x: assigned(taeda.zeros(2, dtype=dtype), x),
    "scalar_tensor": lambda dtype, x: taeda.scalar_tensor(x, dtype=dtype).expand(2),
}


@pytest.mark.parametrize("what", FITS)
def test_numbers_that_do_not_fit(what):
    for dtype, good, stored, bad in (
        (taeda.uint8, 255, 255, 256),
        (taeda.uint8, -1, 255, -256),
        (taeda.int8, -128, -128, 128),
        (taeda.int32, 2**31 - 1, 2**31 - 1, 2**31),
        (taeda.int64, -(2**63), -(2**63), 2**63),
        (taeda.int64, 1.5, 1, math.nan),
        (taeda.int16, -2.5, -2, 1e30),
        (taeda.float16, math.inf, math.inf, 1e5),
        (taeda.float32, 2**62, 2.0**62, 1e39),
        (taeda.float32, 1 + 0j, 1.0, 1j),
        (taeda.bool, 0.5, True, None),
    ):
        assert FITS[what](dtype, good).tolist() == [stored] * 2
        if dtype is taeda.float16 and what in ("assignment", "scalar_tensor"):  # infinite, as in PyTorch
            assert FITS[what](dtype, bad).isinf().all()
        elif bad is not None:
            with pytest.raises((RuntimeError, ValueError), match=r"without overflow|Overflow when unpacking"):
                FITS[what](dtype, bad)


@pytest.mark.parametrize("what", FITS)
@pytest.mark.parametrize("dtype", (taeda.float32, taeda.int64, taeda.uint8, taeda.bool))
def test_ints_beyond_64_bits(what, dtype):
    for x in (2**64, 2**70, -(2**63) - 1):
        with pytest.raises(ValueError if what == "assignment" else OverflowError):  # as in PyTorch
            FITS[what](dtype, x)


def test_ints_between_int64_and_uint64_wrap_in_arithmetic():
    x = taeda.tensor([1, -2])
    assert (x + 2**63).tolist() == [1 - 2**63, 2**63 - 2]
    assert (x * (2**64 - 1)).tolist() == [-1, 2]
    assert (x ^ 0x9E3779B97F4A7C15).tolist() == [0x9E3779B97F4A7C14 - 2**64, 0x61C8864680B583EB]
    assert (x / 2**63).tolist() == [2.0**-63, -(2.0**-62)]
    for call in (lambda: x + 2**64, lambda: x.float() * -(2**70), lambda: x == 2**64):
        with pytest.raises(OverflowError):
            call()


def test_numbers_alone_and_numbers_of_numpy():
    assert taeda.add(1, 2).dtype is taeda.int64 and taeda.add(1, 2).item() == 3
    assert taeda.div(1, 2).item() == 0.5 and taeda.mul(1.5, 2).dtype is taeda.float32
    assert taeda.zeros(2).clamp(np.float32(1.5), np.float64(2)).tolist() == [1.5, 1.5]
    assert taeda.add(taeda.ones(2), taeda.ones(2), alpha=np.int64(2)).tolist() == [3, 3]


X = taeda.ones(2, 3)
HALF = taeda.tensor(0.5)
KINDS = {  # what takes an argument of one kind: what is none, what is one
    "bool": (
        lambda x: X.sum(0, keepdim=x),
        lambda x: X.sort(0, x),
        lambda x: taeda.linalg.cholesky(A, upper=x),
        lambda x: F.embedding(ints(0), X, sparse=x),
        lambda x: taeda.var(X, 0, keepdim=x),
        lambda x: F.dropout(X, 0.5, x),
        lambda x: F.alpha_dropout(X, 0.5, x, inplace=False),
        (1.5, 1, 0, None, "x", [True], np.True_, taeda.tensor(True)),
        (True, False),
    ),
    "int": (
        X.tril,
        X.kthvalue,
        X.softmax,
        lambda x: X.unfold(0, x, 1),
        lambda x: X.select(x, 0),
        lambda x: taeda.diag(X, diagonal=x),
        lambda x: X.chunk(x),
        lambda x: X.diff(n=x),
        lambda x: F.one_hot(taeda.tensor([0]), x),
        (1.0, True, None, "x", [1], np.float64(1), np.True_, HALF, taeda.tensor(True), taeda.ones(2)),
        (1, np.int8(1), taeda.tensor(1)),
    ),
    "tuple of ints": (
        X.sum,
        X.roll,
        X.tile,
        lambda x: taeda.amax(X, dim=x),
        lambda x: F.max_pool1d(X, x),
        lambda x: F.conv1d(X, taeda.ones(1, 2, 1), stride=x),
        (1.0, True, "x", [1.5], ["x"], [None], np.ones(2), HALF, object(), [2**63]),
        (1, [1], (1,), [np.int64(1)], [taeda.tensor(1)]),
    ),
    "float": (
        lambda x: X.normal_(x),
        lambda x: X.isclose(X, rtol=x),
        lambda x: F.layer_norm(X, (3,), eps=x),
        (1j, None, "x", [0.5], np.ones(1), taeda.ones(1), taeda.ones((), requires_grad=True)),
        (0.5, 1, True, np.float32(0.5), HALF),
    ),
    "Number": (
        lambda x: taeda.add(X, X, alpha=x),
        lambda x: F.leaky_relu(X, x),
        lambda x: F.softplus(X, beta=x),
        lambda x: taeda.addmm(taeda.ones(2, 2), X, X.T, beta=x),
        (None, "x", [0.5], np.ones(1), taeda.ones(1), taeda.ones((), requires_grad=True)),
        (0.5, 1, np.float32(0.5), HALF),
    ),
    "str": (
        lambda x: F.gelu(X, approximate=x),
        lambda x: taeda.linalg.eigh(A, UPLO=x),
        lambda x: taeda.quantile(X, 0.5, interpolation=x),
        (1, None, ["L"]),
        (),
    ),
    "flag": (
        lambda x: taeda.eye(2, requires_grad=x),
        lambda x: taeda.var(X, 0, x),
        (1.5, 1, "x", [True], np.True_, taeda.tensor(True)),
        (True, False, None),
    ),
    "str or None": (
        lambda x: taeda.fft.fftn(X, norm=x),
        lambda x: taeda.div(X, X, rounding_mode=x),
        (1, 1.5, ["ortho"], taeda.tensor(1)),
        (None,),
    ),
    "memory_format": (
        lambda x: X.clone(memory_format=x),
        lambda x: X.float(memory_format=x),
        (1, 1.5, "x", [None], taeda.tensor(1), object()),
        (taeda.contiguous_format, taeda.preserve_format),
    ),
    "device": (
        taeda.device,
        lambda x: taeda.zeros(2, device=x),
        lambda x: taeda.randn_like(X, device=x),
        (1.5, [1], object(), taeda.ones(2), {}),
        ("cpu", taeda.device("cpu")),
    ),
    "sequence of ints": (
        lambda x: F.pad(X, x, "constant"),
        lambda x: taeda.broadcast_to(taeda.ones(1, 1), x),
        (1, 1.5, None, "xy", ["x", "y"], [1.5, 1.5], np.ones(2), {}, taeda.ones(2)),
        ([1, 1], (np.int64(1), 1), [taeda.tensor(1), 1]),
    ),
    "cuts": (
        lambda x: X.tensor_split(x),
        (1.5, None, "x", [1.5], ["x"], {}, np.ones(2)),
        (1, [1], taeda.tensor(1), taeda.tensor([1])),
    ),
    "Tensor": (
        lambda x: taeda.softmax(x, 0),
        lambda x: F.dropout(x, 0.5),
        lambda x: taeda.cdist(x, X),
        lambda x: taeda.logsumexp(x, 0),
        taeda.tril,
        taeda.std,
        (1.5, None, "x", [1.0], np.ones(2)),
        (X,),
    ),
    "tuple of Tensors": (
        taeda.cat,
        taeda.vstack,
        taeda.linalg.multi_dot,
        (X, None, "x", [X, None], [X, np.ones((3, 2))], np.ones(2)),
        ([X, X.T @ X],),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_arguments(kind):
    *calls, wrong, right = KINDS[kind]
    for call in calls:
        for x in wrong:
            with pytest.raises(TypeError):
                call(x)
        for x in right:
            call(x)


@pytest.mark.parametrize("call", (taeda.neg, operator.neg, lambda x: x - x, lambda x: 1 - x))
def test_a_bool_has_no_sign(call):
    with pytest.raises(RuntimeError, match="bool tensor is not supported"):
        call(taeda.tensor([True]))


def test_inverting_is_for_integers_and_bools():
    for x in (X, X * 1j):
        with pytest.raises(TypeError, match="integer and Boolean"):
            operator.invert(x)
    assert (~ints(1, -2)).tolist() == [-2, 1]


@pytest.mark.parametrize("function", (F.softmax, F.log_softmax))
@pytest.mark.parametrize("dtype", (taeda.int64, taeda.bool, taeda.complex64))
def test_softmax_is_for_floating_point(function, dtype):
    with pytest.raises(NotImplementedError, match="floating-point"):
        function(X.to(dtype), 0)


def test_ellipses_at_the_end_are_one():
    x = taeda.arange(8).view(2, 2, 2)
    first = taeda.tensor([0])
    for several, one in (
        ((..., ...), ...),
        ((0, ..., ...), 0),
        ((..., None, ...), (..., None)),
        ((first, ..., ...), first),
    ):
        assert x[several].equal(x[one])
    x[..., ...] = 1
    assert x.sum() == 8
    for wrong in ((..., ..., 0), (..., ..., first), (..., 0, ..., 0)):
        with pytest.raises(IndexError):
            x[wrong]


def test_none_for_what_creation_may_leave_out():
    assert not taeda.zeros(2, requires_grad=None, pin_memory=None).requires_grad


def test_dimensions_and_counts_beyond_64_bits():
    for call in (X.tril, X.softmax, X.kthvalue, X.sum, X.roll, lambda x: X.split(x)):
        with pytest.raises(ValueError, match="64 bits"):
            call(2**63)


def test_floats_are_no_dimensions():
    x = taeda.ones(2, 3)
    for call in (
        x.sum,
        x.cumsum,
        x.sort,
        x.topk,
        x.softmax,
        x.index_select,
        lambda d: taeda.stack((x, x), d),
        taeda.dtype,
    ):
        with pytest.raises(TypeError):
            call(1.0)
    with pytest.raises(TypeError, match="slice indices"):
        x[1.5:]


@pytest.mark.timeout(60)
def test_many_rows_without_elements():
    many = 1 << 40
    assert taeda.eye(many, 0).shape == (many, 0)
    x = taeda.zeros(many, 0)
    for call in (taeda.cummax, taeda.cummin):
        values, indices = call(x, 1)
        assert values.shape == indices.shape == (many, 0)
    assert taeda.zeros(0, many).cummax(0).values.shape == (0, many)


def test_windows_of_any_beta():
    window = taeda.kaiser_window(6, beta=2**40, dtype=taeda.float64)
    assert window.tolist() == [0, 0, 0, 1, 0, 0]
    assert taeda.kaiser_window(5, beta=-3.0).equal(taeda.kaiser_window(5, beta=3.0))
    assert taeda.kaiser_window(5, beta=math.nan).isnan().all()


@pytest.mark.parametrize("two", (np.int64(2), np.int32(2), taeda.tensor(2)), ids=str)
def test_whole_numbers_of_numpy_and_tensors(two):
    x = taeda.arange(64.0).view(1, 4, 4, 4)
    for make in (taeda.nn.MaxPool2d, taeda.nn.AvgPool2d):
        assert make(two)(x).equal(make(2)(x))
    for call in (F.adaptive_avg_pool2d, F.adaptive_max_pool2d):
        with pytest.raises(TypeError):  # as in PyTorch, which takes the length of what is no int
            call(x, two)
    for call in (F.max_pool2d, F.avg_pool2d):
        assert call(x, 3, two).equal(call(x, 3, 2))
    for call in (F.adaptive_avg_pool1d, F.adaptive_max_pool1d):
        assert call(x[0], two).equal(call(x[0], 2))
    assert F.adaptive_avg_pool2d(x, (two, None)).equal(F.adaptive_avg_pool2d(x, (2, None)))
    assert taeda.ones(4).resize_((two, two)).stride() == (2, 1)
    storage = taeda.ones(4).untyped_storage()
    assert taeda.empty(0).set_(storage, 0, (two, two)).stride() == (2, 1)


def test_one_transform_has_points():
    for call in (taeda.fft.fft, taeda.fft.irfft, taeda.fft.hfft, taeda.fft.ihfft):
        for n in (0, -1):
            with pytest.raises(RuntimeError, match="number of data points"):
                call(taeda.ones(3), n)
    assert taeda.fft.fftn(taeda.ones(3), [-1]).shape == (3,)

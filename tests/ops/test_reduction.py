"""Reductions, softmax, normalisation, losses and scans without a reference framework: NumPy, threads, errors."""

import numpy as np
import pytest

import taeda
import taeda.nn.functional as F


def draw(*shape, dtype="float32"):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


REFERENCES = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "amax": np.max,
    "amin": np.min,
    "var": lambda x, axis: np.var(x, axis, ddof=1),
    "std": lambda x, axis: np.std(x, axis, ddof=1),
    "argmax": np.argmax,
    "argmin": np.argmin,
    "any": np.any,
    "all": np.all,
    "nansum": np.nansum,
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
}


@pytest.mark.parametrize("op", REFERENCES)
def test_against_numpy(op):
    x = draw(5, 12, 7, dtype="float64")
    for dim in (0, 1, 2):
        for a in (x, x.transpose(2, 0, 1), x[::-1, ::2], x[:, :, ::-1]):
            got = getattr(taeda, op)(taeda.from_numpy(a), dim)
            np.testing.assert_allclose(got.numpy(), REFERENCES[op](a, axis=dim), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.sum(),
        lambda x: x.sum(0),
        lambda x: x.sum(1),
        lambda x: x.var(),
        lambda x: x.max(0).indices,
        lambda x: x.argmax(),
        lambda x: x.logsumexp((0, 1)),
        lambda x: x.softmax(1),
        lambda x: x.softmax(0),
        lambda x: x.cumsum(0),
        lambda x: F.layer_norm(x, (300,)),
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.cross_entropy(x, taeda.arange(3000) % 300),
        lambda x: x.reshape(30, 100, 300).sum((0, 2)),
        lambda x: x.t().sum(1),
    ],
)
def test_same_bits_for_any_number_of_threads(fn):
    x = taeda.from_numpy(draw(3000, 300))
    results = []
    for n in (1, 2, 3):
        taeda.set_num_threads(n)
        results.append(fn(x).numpy())
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_same_bits_of_gradients_for_any_number_of_threads():
    w0, b0 = draw(300), draw(300)
    results = []
    for n in (1, 2):
        taeda.set_num_threads(n)
        x = taeda.from_numpy(draw(3000, 300)).requires_grad_()
        w, b = taeda.from_numpy(w0).requires_grad_(), taeda.from_numpy(b0).requires_grad_()
        (F.layer_norm(x, (300,), w, b).softmax(1).square().sum()).backward()
        results.append([t.grad.numpy() for t in (x, w, b)])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_long_sums_are_accurate():
    for shape, dim in (((3_000_001,), 0), ((20000, 64), 0), ((64, 20000), 1)):
        x = np.random.default_rng(0).random(shape).astype(np.float32)
        exact = x.sum(dim, dtype=np.float64)
        got = taeda.from_numpy(x).sum(dim).numpy()
        assert np.max(np.abs(got - exact) / exact) < 2e-7


def test_variance_of_a_large_mean():
    x = draw(100_000, dtype="float32") + np.float32(10_000)
    got = taeda.from_numpy(x).var().item()
    assert got == pytest.approx(np.var(x.astype(np.float64), ddof=1), rel=1e-6)


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16, taeda.float32, taeda.float64])
@pytest.mark.parametrize("n", [3, 17, 100, 5000])
def test_extremes_with_nan_and_infinities(dtype, n):
    """NaN wins; infinities of both signs, whose sum is none, do not take it for one."""
    a = np.random.default_rng(0).standard_normal((7, n)).astype("f4")
    a[1, n // 2] = np.nan
    a[2, 0], a[2, -1] = np.inf, -np.inf
    a[3] = -np.inf
    a[4] = np.nan
    a[5, 0], a[5, 1], a[5, -1] = np.inf, np.nan, -np.inf
    x = taeda.from_numpy(a).to(dtype)
    a = x.float().numpy()
    for rows in (a, a[:1], a[2:3]):
        t = taeda.from_numpy(rows.copy()).to(dtype)
        np.testing.assert_array_equal(t.amax(1).float().numpy(), rows.max(1))
        np.testing.assert_array_equal(t.amin(1).float().numpy(), rows.min(1))
        np.testing.assert_array_equal(t.aminmax(dim=1).max.float().numpy(), rows.max(1))
        np.testing.assert_array_equal(t.max().float().numpy(), rows.max())
        np.testing.assert_array_equal(taeda.linalg.vector_norm(t, np.inf, 1).float().numpy(), abs(rows).max(1))


def test_empty():
    x = taeda.empty((0, 3))
    assert x.sum().item() == 0
    assert x.prod(0).tolist() == [1, 1, 1]
    assert x.all().item() and not x.any().item()
    assert np.isnan(x.mean().item())
    assert x.sum(1).shape == (0,)
    assert x.softmax(0).shape == (0, 3)
    assert x.cumsum(0).shape == (0, 3)
    assert x.max(1).values.shape == (0,)


@pytest.mark.parametrize(
    ("fn", "kind", "words"),
    [
        (lambda x: x.sum(2), IndexError, r"sum: .*\[-2, 1\].*got 2"),
        (lambda x: x.sum((0, -2)), RuntimeError, "dim 0 appears multiple times"),
        (lambda x: x[:0].max(), RuntimeError, r"max\(\).*shape \(0, 3\)"),
        (lambda x: x[:0].amin(0), IndexError, r"amin\(\).*dim=0.*shape \(0, 3\)"),
        (lambda x: x.long().mean(), RuntimeError, r"mean\(\).*int64.*expected one of float16"),
        (lambda x: x.long().softmax(0), RuntimeError, r"softmax\(\).*int64.*x\.float\(\)"),
        (lambda x: F.layer_norm(x, (4,)), RuntimeError, r"normalized_shape=\[4\].*\[2, 3\]"),
        (lambda x: F.cross_entropy(x, taeda.tensor([0, 3])), IndexError, r"target 3 .*\[0, 2\]"),
        (lambda x: F.cross_entropy(x[:, :0], taeda.tensor([0, 0])), IndexError, "no classes"),
        (lambda x: x.to(taeda.complex64).cummax(0), NotImplementedError, "no order"),
        (lambda x: F.cross_entropy(x, taeda.tensor([0])), ValueError, r"batch_size \(2\).*\(1\)"),
        (lambda x: F.binary_cross_entropy(x * 9, x), RuntimeError, "with_logits"),
        (lambda x: F.mse_loss(x, x, reduction="avg"), ValueError, "avg"),
    ],
)
def test_errors_say_what_was_expected_and_what_came(fn, kind, words):
    x = taeda.from_numpy(np.array([[1.0, 2, -3], [0.5, 0.1, 2]], np.float32))
    with pytest.raises(kind, match=words):
        fn(x)


def test_out_and_in_place():
    x = taeda.from_numpy(draw(4, 6))
    out = taeda.empty((4,))
    assert taeda.sum(x, 1, out=out) is out
    np.testing.assert_array_equal(out.numpy(), x.sum(1).numpy())
    y = x.clone()
    y.cumsum_(1)
    np.testing.assert_array_equal(y.numpy(), x.cumsum(1).numpy())


def test_named_results():
    x = taeda.from_numpy(draw(4, 6))
    values, indices = x.max(1)
    assert x.max(1).indices.tolist() == indices.tolist()
    assert x.gather(1, indices[:, None])[:, 0].tolist() == values.tolist()
    assert taeda.aminmax(x).max.item() == x.max().item()


def test_running_statistics():
    x = draw(50, 4, 6, dtype="float64") * 2 + 1
    mean, var = taeda.zeros(4, dtype=taeda.float64), taeda.ones(4, dtype=taeda.float64)
    F.batch_norm(taeda.from_numpy(x), mean, var, training=True, momentum=0.3)
    np.testing.assert_allclose(mean.numpy(), 0.3 * x.mean((0, 2)))
    np.testing.assert_allclose(var.numpy(), 0.7 + 0.3 * x.var((0, 2), ddof=1))


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.complex64])
@pytest.mark.parametrize("shape, dim", [((3, n), 1) for n in (1, 7, 9, 28, 33, 130)] + [((2, 9, 35), 1), ((40, 3), 0)])
def test_gradient_of_running_sums(shape, dim, dtype):
    """Sums from the end, in registers of which the last is not full."""
    x = taeda.zeros(shape, dtype=dtype, requires_grad=True)
    g = taeda.arange(1.0, x.numel() + 1).reshape(shape).to(dtype)
    (got,) = taeda.autograd.grad(x.cumsum(dim), x, g)
    assert got.tolist() == np.flip(np.cumsum(np.flip(g.numpy(), dim), dim), dim).tolist()


@pytest.mark.parametrize("name", ["sum", "amax"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape, dim",
    [
        *(((n, m), 0) for n, m in ((8, 70000), (17, 33000), (603, 2100), (70, 9001), (3000, 300))),
        *(((2, 5000, n), 1) for n in (37, 64)),
        *(((300, 9, 701), (0, 2)), ((40, 5, 4000), (0, 2))),
    ],
)
def test_far_rows(shape, dim, dtype, name):
    """Few rows and many, narrow ones and wide, of which sums are in registers or in memory, and rows of several runs."""
    x = draw(*shape, dtype=dtype)
    got = []
    for n in (1, 2, 4):
        taeda.set_num_threads(n)
        got.append(getattr(taeda.from_numpy(x), name)(dim).numpy())
    want = getattr(np, name)(x.astype("float64"), dim)
    near = 1e-12 if dtype == "float64" else 2e-6
    np.testing.assert_allclose(got[0], want, rtol=near, atol=near * 40)
    assert all((g == got[0]).all() for g in got)

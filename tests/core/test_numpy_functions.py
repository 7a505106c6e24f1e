"""NumPy's functions on tensors that require grad: values as NumPy's, gradients as finite differences; without grad as before."""

from __future__ import annotations

import numpy as np
import pytest

import taeda
from taeda import _numpy

POSITIVE = np.array([[0.6, 1.7, 0.9], [2.1, 0.4, 1.2]])
SQUARE = np.array([[2.0, 0.3, 0.1], [0.2, 1.5, 0.4], [0.3, 0.1, 1.8]])
VECTOR = np.array([0.7, -1.3, 0.4, 2.2])

#: By what it is, calls of NumPy's functions on one array.
CASES = {
    "np.absolute np.arctan np.arcsinh np.ceil np.conjugate np.cos np.cosh np.deg2rad np.degrees np.exp np.exp2 np.expm1 "
    "np.fabs np.floor np.negative np.positive np.rad2deg np.radians np.reciprocal np.rint np.sign np.sin np.sinh "
    "np.square np.tan np.tanh np.trunc np.cbrt np.log np.log10 np.log1p np.log2 np.sqrt np.sinc np.i0 np.nan_to_num "
    "np.real np.fix np.round np.angle np.transpose np.ravel np.squeeze np.flipud np.fliplr np.rot90 np.tril np.triu "
    "np.sum np.mean np.std np.var np.prod np.max np.min np.amax np.amin np.ptp np.median np.average np.cumsum np.cumprod "
    "np.sort np.diff np.nansum np.nanmean np.atleast_1d np.atleast_2d np.atleast_3d np.copy np.diag np.diagonal np.trace "
    "np.flip np.linalg.norm np.linalg.svdvals np.cov np.corrcoef np.add.reduce np.maximum.reduce np.multiply.accumulate "
    "np.fft.fft np.fft.ifft np.fft.rfft np.fft.fft2 np.fft.fftn np.fft.rfftn np.fft.ihfft np.fft.fftshift "
    "np.diagflat np.linalg.pinv np.matrix_transpose np.permute_dims np.real_if_close": POSITIVE,
    "np.arccos np.arcsin np.arctanh": POSITIVE / 3,
    "np.arccosh": POSITIVE + 1.5,
    "np.linalg.inv np.linalg.det np.linalg.cond np.linalg.slogdet np.linalg.eigvals": SQUARE,
}
CALLS = [(f"{name}(x)", x) for names, x in CASES.items() for name in names.split()]
CALLS += [
    (call, POSITIVE)
    for call in (
        "np.add(x, x * 2); np.subtract(x, c); np.multiply(c, x); np.divide(x, c); np.true_divide(c, x); np.power(x, 2.5); "
        "np.power(x, c); np.float_power(x, 1.5); np.arctan2(x, c); np.hypot(x, 2.0); np.logaddexp(x, c); np.logaddexp2(x, 1.0); "
        "np.maximum(x, 1.0); np.minimum(x, c); np.fmax(x, c); np.fmin(x, 1.0); np.remainder(x, 0.77); np.fmod(x, c * 0.93); "
        "np.copysign(x, -1.0); np.divmod(x, 0.77); np.modf(x); np.matmul(x, c.T); np.ldexp(x, 2); "
        "c + x; c - x; c * x; c / x; c**x; x + c; x @ c.T; c @ np.transpose(x); np.float64(2) * x; "
        "np.sum(x, axis=0); np.sum(x, axis=(0, 1)); np.sum(x, axis=1, keepdims=True); np.sum(x, dtype=np.float32); "
        "np.mean(x, 1); np.std(x, axis=0); np.std(x, ddof=1); np.var(x, axis=1, keepdims=True); np.prod(x, axis=0); "
        "np.max(x, axis=1); np.min(x, axis=(0, 1)); np.ptp(x, axis=1); np.median(x, axis=1); np.average(x, axis=0, weights=[1.0, 3.0]); "
        "np.quantile(x, 0.3); np.quantile(x, [0.2, 0.7], axis=1); np.percentile(x, 40, axis=0, keepdims=True); "
        "np.cumsum(x, axis=1); np.cumprod(x, axis=0); np.sort(x, axis=0); np.sort(x, axis=None); np.diff(x, axis=0); np.diff(x, 2); "
        "np.gradient(x, axis=1); np.trapezoid(x, dx=0.5); np.reshape(x, (3, 2)); np.reshape(x, -1); np.reshape(x, (3, 2), order='F'); np.ravel(x, order='F'); "
        "np.transpose(x, (1, 0)); np.swapaxes(x, 0, 1); np.moveaxis(x, 0, 1); np.rollaxis(x, 1); np.expand_dims(x, 1); "
        "np.expand_dims(x, (0, 3)); np.broadcast_to(x, (4, 2, 3)); np.roll(x, 1); np.roll(x, 1, axis=1); np.flip(x, 1); "
        "np.repeat(x, 2); np.repeat(x, 2, axis=1); np.tile(x, 2); np.tile(x, (2, 1)); np.pad(x, 1); np.pad(x, ((1, 0), (2, 3)), constant_values=5); "
        "np.take(x, [0, 2]); np.take(x, [[0, 2], [1, 1]], axis=1); np.take_along_axis(x, np.array([[0], [1]]), 1); "
        "np.compress([True, False, True], x, axis=1); np.rot90(x, 2); np.diag(x, 1); np.trace(x, 1); np.diagonal(x, 1); "
        "np.concatenate([x, c]); np.concatenate([x, c], axis=1); np.concatenate([x, c], axis=None); np.stack([x, c, x], 1); np.vstack([x, c]); "
        "np.hstack([x, c]); np.dstack([x, c]); np.column_stack([x, c]); np.append(x, c); np.split(x, 3, axis=1); np.array_split(x, 2, axis=1); "
        "np.hsplit(x, 3); np.vsplit(x, 2); np.meshgrid(x, [1.0, 2.0]); np.broadcast_arrays(x, 1.0); np.where(c > 1, x, 0.0); np.where(x > 1, x * 2, c); "
        "np.select([c > 1, c > 0.5], [x, x * x], 3.0); np.clip(x, 0.5, 1.5); np.clip(x, c, None); np.round(x, 1); np.dot(x, c.T); np.dot(x, 2.0); "
        "np.inner(x, c); np.outer(x, c); np.vdot(x, c); np.tensordot(x, c, 2); np.tensordot(x, c, axes=(1, 1)); np.tensordot(x, c, ([0], [0])); "
        "np.einsum('ij,kj->ik', x, c); np.einsum('ij,ij', x, x); np.kron(x, c); np.cross(x, c); np.multiply.outer(x, c); np.linalg.norm(x, axis=1); "
        "np.linalg.norm(x, 'nuc'); np.linalg.norm(x, 1); np.linalg.norm(x, ord=np.inf, axis=0); np.linalg.norm(x, keepdims=True); np.linalg.vector_norm(x, axis=0); "
        "np.linalg.matrix_norm(x); np.linalg.svd(x, full_matrices=False)[1]; np.linalg.qr(x.T); np.linalg.multi_dot([x, c.T, x]); np.linalg.outer(x[0], c[0]); "
        "np.vander(x[0], 3); np.polyval(x[0], c); np.convolve(x[0], c[1]); np.convolve(x[0], c[1], 'same'); np.convolve(c[0], x[1], 'valid'); "
        "np.interp(c, [0.0, 1.0, 3.0], x[0]); np.interp(x, [0.0, 1.0, 3.0], [1.0, 4.0, 2.0]); np.cov(x, rowvar=False, bias=True); np.corrcoef(x.T); "
        "np.fft.fft(x, 5); np.fft.irfft(x, axis=0); np.fft.hfft(x); np.fft.ifftn(x, axes=(0,)); np.fft.rfft2(x, norm='ortho'); np.fft.ifftshift(x, 1); np.imag(x * 1j); np.frexp(x); np.nextafter(x, c)"
    ).split("; ")
]
CALLS += [
    (call, SQUARE)
    for call in (
        "np.linalg.solve(x, v3); np.linalg.solve(x, c3); np.linalg.solve(c3, x); np.linalg.matrix_power(x, 3); np.linalg.cholesky(x @ x.T); "
        "np.linalg.eigh(x @ x.T)[0]; np.linalg.eigvalsh(x + x.T); np.linalg.tensorinv(x[:, :, None, None].reshape(3, 1, 3, 1)); np.linalg.pinv(x, hermitian=False); "
        "np.linalg.vecdot(x, c3); np.linalg.diagonal(x); np.linalg.trace(x); np.linalg.cross(x, c3); np.linalg.svd(x)[1]; np.linalg.matmul(x, c3)"
    ).split("; ")
]  # fmt: skip
GIVEN = {
    "np": np, "c": np.array([[1.1, 0.8, 0.3], [0.2, 1.9, 1.4]]), "v3": np.array([1.0, -2.0, 0.5]),
    "c3": np.array([[1.0, 0.2, 0.0], [0.4, 2.0, 0.3], [0.1, 0.5, 1.4]]),
}  # fmt: skip


def numbers(x):
    """What a call gives as one array of real numbers."""
    if isinstance(x, (tuple, list)):
        return np.concatenate([numbers(y) for y in x])
    x = np.atleast_1d(np.asarray(x.detach() if isinstance(x, taeda.Tensor) else x)).reshape(-1)
    return np.concatenate([x.real, x.imag]) if np.iscomplexobj(x) else x.astype(np.float64)


def total(x):
    """A number that every element of a result counts in."""
    if isinstance(x, (tuple, list)):
        return sum(total(y) for y in x)
    if x.is_complex():
        return total(x.real) + 0.7 * total(x.imag)
    return (x * taeda.arange(1, x.numel() + 1, dtype=x.dtype).reshape(x.shape)).sum()


def evaluated(call, x):
    return eval(call, {**GIVEN, "x": x})


@pytest.mark.parametrize(("call", "x"), CALLS, ids=[call for call, _ in CALLS])
def test_values_and_gradients(call, x):
    if call.startswith("np.") and _numpy._found(call[3:].partition("(")[0]) is None:
        pytest.skip("this NumPy has no such function")
    want = evaluated(call, x)
    t = taeda.tensor(x, requires_grad=True)
    got = evaluated(call, t)
    np.testing.assert_allclose(numbers(got), numbers(want), rtol=1e-5 if "float32" in call else 1e-10, atol=1e-10)
    first = got[0] if isinstance(got, (tuple, list)) else got
    shape = want[0] if isinstance(want, (tuple, list)) else want
    assert first.shape == np.shape(shape) and str(first.dtype) == f"taeda.{np.asarray(shape).dtype}"
    if "float32" in call:
        return
    (grad,) = taeda.autograd.grad(total(got), t)

    def value(x):
        result = evaluated(call, x)
        made = [taeda.tensor(np.asarray(y)) for y in (result if isinstance(result, (tuple, list)) else [result])]
        return total(made).item()

    step, want = 1e-6, np.zeros_like(x)
    for at in np.ndindex(x.shape):
        more, less = x.copy(), x.copy()
        more[at] += step
        less[at] -= step
        want[at] = (value(more) - value(less)) / (2 * step)
    np.testing.assert_allclose(grad.numpy(), want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    "call",
    [
        "np.argmax(x)", "np.argsort(x)", "np.isnan(x)", "np.less(x, 1.0)", "np.zeros_like(x)", "np.allclose(x, x)",
        "np.shape(x)", "np.ndim(x)", "np.nonzero(x)", "np.array_equal(x, x)", "np.logical_not(x)", "np.all(x > 0)",
        "np.searchsorted(x[0], 0.5)", "np.full_like(x, 3.0)", "np.where(x > 1)",
        "np.heaviside(x, 0.5)",
    ],
)  # fmt: skip
def test_what_has_no_gradient_is_as_without_grad(call):
    t = taeda.tensor(POSITIVE)
    want, got = evaluated(call, t), evaluated(call, t.clone().requires_grad_())
    assert type(got) is type(want)
    np.testing.assert_equal(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize(
    "call",
    [
        "np.sin(x)", "np.add(x, c)", "np.where(x > 1, x, c)", "np.dot(x, c.T)", "np.stack([x, x])", "np.concatenate([x, c])",
        "np.sum(x)", "np.mean(x, axis=1)", "np.linalg.norm(x)", "np.fft.fft(x)", "np.reshape(x, -1)", "np.cumsum(x, 1)",
        "np.multiply.outer(x, x)", "np.add.reduce(x)", "np.divmod(x, 1.0)", "np.einsum('ij,ij', x, x)", "np.sort(x)",
        "np.zeros_like(x)", "np.split(x, 2)", "np.matmul(x, c.T)", "np.sin(x, out=np.zeros((2, 3)))", "c + x", "c @ x.T",
        "c < x", "np.float64(2) * x", "np.clip(x, 0, 1)", "np.median(x)", "np.linalg.inv(x @ x.T)", "np.frexp(x)",
    ],
)  # fmt: skip
def test_without_grad_the_type_is_pytorchs(call):
    torch = pytest.importorskip("torch")
    kinds = []
    for T in (taeda, torch):
        try:
            made = evaluated(call, T.tensor(POSITIVE))
        except TypeError:  # PyTorch's sum and mean take no `axis` of None; no operator of an array and a tensor
            assert T is torch
            return
        found = made if isinstance(made, (tuple, list)) else [made]
        kinds.append([type(y).__name__ for y in found])
        values = numbers(list(found))
        kinds.append(values.round(9).tolist())
    assert kinds[:2] == kinds[2:]


def test_what_cannot_be_is_an_error():
    x = taeda.tensor(POSITIVE, requires_grad=True)
    with pytest.raises(TypeError, match="does not take 'out'"):
        np.sin(x, out=np.zeros((2, 3)))
    with pytest.raises(TypeError, match=r"numpy.sum of a tensor that requires grad.*'initial'"):
        np.sum(x, initial=3.0)
    with pytest.raises(RuntimeError, match="requires grad"):
        np.unique(x)  # it has no rule: nothing loses a gradient
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(x)
    with pytest.raises(TypeError, match="ArrayType"):
        np.sin(x.detach(), out=taeda.zeros(2, 3))
    with pytest.raises(TypeError, match="must be array"):
        np.add.at(x.detach(), [0], 1.0)
    with taeda.no_grad():
        assert isinstance(np.stack([x, x]), np.ndarray)


MENDED = [
    "np.arctan2(x, 2.0); np.arctan2(2.0, x); np.fmod(2.5, x); np.subtract(x, True); np.std(x, axis=()); np.var(x, axis=())",
    "np.max(x, axis=()); np.prod(x, axis=()); np.std(x[:1, :1]); np.cumsum(np.sum(x), -1); np.multiply.outer(np.sum(x), 2.0)",
    "np.quantile(x, [0.2, 0.7], axis=1, keepdims=True); np.quantile(x, [[0.2], [0.7]]); np.nanmedian(x); np.nanquantile(x, 0.3)",
    "np.partition(x, 1); np.partition(x, [0, 1], axis=0); np.linspace(x, 2.0, 4); np.linspace(0.0, x, 3, endpoint=False)",
    "np.linspace(x, 2.0, 1, axis=1); np.maximum.accumulate(x, 1); np.minimum.accumulate(x); np.take(x, [-1]); np.clip(x, None, None)",
    "np.einsum(x, [0, 1], c, [2, 1], [0, 2]); np.einsum(x, (0, 1), (1, 0)); np.interp(x, [0.5], x[0, :1]); np.convolve(x[0, 0], [1.0, 2.0])",
]  # fmt: skip
HERMITIAN = [
    "np.linalg.eigvalsh(x); np.linalg.eigvalsh(x, 'U'); np.linalg.svd(x, hermitian=True, compute_uv=False)",
    "np.linalg.cholesky(x); np.linalg.pinv(x, hermitian=True)",
]


@pytest.mark.parametrize(
    ("call", "x"),
    [(c, POSITIVE) for part in MENDED for c in part.split("; ")]
    + [(c, SQUARE) for part in HERMITIAN for c in part.split("; ")],  # of which one triangle is read
)
def test_values_and_gradients_of_rare_forms(call, x):
    test_values_and_gradients(call, x)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        ("np.take(x, 99, axis=0)", IndexError, "out of range"),
        ("np.take(x, [9])", IndexError, "out of range"),
        ("np.squeeze(x, 0)", ValueError, "has size 1"),
        ("np.split(x, 2, 1)", ValueError, "equal parts"),
        ("np.vsplit(x[0], 1)", ValueError, "at least 2 dimensions"),
        ("np.interp(0.5, [0.0, 1.0], x[0])", ValueError, "of one length"),
        ("np.convolve(x, [1.0, 2.0])", ValueError, "one dimension"),
        ("np.convolve(x[0], [1.0], 'some')", ValueError, "expected mode"),
        ("np.add(x * 1j, 1, dtype='float64')", TypeError, "imaginary"),
    ],
)
def test_what_numpy_refuses_is_refused(call, error, match):
    with pytest.raises((ValueError, IndexError, TypeError)):
        evaluated(call, POSITIVE)
    with pytest.raises(error, match=match):
        evaluated(call, taeda.tensor(POSITIVE, requires_grad=True))


def test_a_list_of_tensors_is_told_to_be_stacked():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    for call in (np.array, np.mean, lambda given: np.r_[tuple(given)]):
        with pytest.raises(RuntimeError, match=r"detach\(\).numpy\(\) instead. To keep the gradient, .* np.stack"):
            call([x[0], x[1] * 2])
    np.mean(np.stack([x[0], x[1] * 2])).backward()
    assert x.grad.tolist() == [0.5, 1.0]


def test_promotion_under_transforms_and_second_derivatives():
    x = taeda.tensor(POSITIVE, dtype=taeda.float32, requires_grad=True)
    assert np.add(x, POSITIVE).dtype == taeda.float64 and np.multiply(x, 2.0).dtype == taeda.float32
    assert np.stack([x, POSITIVE]).dtype == taeda.float64
    x = taeda.tensor(POSITIVE)
    f = lambda t: np.sum(np.tanh(t) * np.sin(t))  # noqa: E731
    assert taeda.allclose(
        taeda.func.grad(f)(x), (taeda.tanh(x) * taeda.cos(x) + (1 - taeda.tanh(x) ** 2) * taeda.sin(x))
    )
    assert taeda.autograd.gradgradcheck(f, x.clone().requires_grad_())
    each = taeda.vmap(taeda.func.grad(f))(x)
    assert taeda.allclose(each, taeda.func.grad(f)(x))


def test_arrays_that_a_tensor_is_added_to():
    total = np.zeros(3)
    x = taeda.ones(3, dtype=taeda.float64, requires_grad=True)
    total += x * 2
    total = total + x
    total.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]
    plain = np.zeros(3)
    plain += taeda.ones(3)
    assert isinstance(plain, np.ndarray) and plain.tolist() == [1, 1, 1]


def test_the_same_as_autograd_has():
    """Of HIPS/autograd's wrapper, every function that this NumPy has too."""
    wrapped = pytest.importorskip("autograd.numpy")
    from autograd import grad

    compared = 0
    for call, x in CALLS:
        name = call[3:].partition("(")[0]
        if not call.startswith("np.") or _numpy._found(name) is None or "linalg.svd" in name or "eig" in name:
            continue
        if name in ("diag", "tile"):  # autograd's differ from finite differences
            continue
        try:
            want = grad(lambda a, call=call: _weighted(eval(call, {**GIVEN, "np": wrapped, "x": a}), wrapped))(x)
        except Exception:
            continue  # autograd has no derivative of it, or not of this form
        if np.isnan(want).any():  # of norms that are maxima
            continue
        t = taeda.tensor(x, requires_grad=True)
        (got,) = taeda.autograd.grad(total(evaluated(call, t)), t)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6, atol=1e-9, err_msg=call)
        compared += 1
    assert compared > 100


def _weighted(x, wrapped):
    if isinstance(x, (tuple, list)):
        return sum(_weighted(y, wrapped) for y in x)
    if wrapped.iscomplexobj(x):
        return _weighted(wrapped.real(x), wrapped) + 0.7 * _weighted(wrapped.imag(x), wrapped)
    return wrapped.sum(x * np.arange(1, x.size + 1.0).reshape(x.shape))

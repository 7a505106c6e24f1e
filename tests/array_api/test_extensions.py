"""The extensions for linear algebra and Fourier transforms, and the products, against array_api_strict."""

import numpy as np
import pytest

import taeda

from .test_functions import COMPLEX, NUMERIC, REAL, check, compare, make, strict

xp = taeda.array_api


def random(shape, dtype, seed=0):
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    if dtype in COMPLEX:
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def tolerance(dtype, factor=500):
    return {"rtol": factor * np.finfo(dtype).eps, "atol": factor * np.finfo(dtype).eps}


@pytest.mark.parametrize("dtype", NUMERIC)
def test_products(dtype):
    for a, b in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 2)), ((0, 3), (3, 2))):
        check(lambda p, x, y: p.matmul(x, y), make(a, dtype), make(b, dtype, 1))
    for a, b in (((3,), (3,)), ((2, 3), (3,)), ((2, 3), (2, 3)), ((4, 1, 3), (2, 3)), ((2, 0), (2, 0))):
        check(lambda p, x, y: p.vecdot(x, y), make(a, dtype), make(b, dtype, 1))
    check(lambda p, x, y: p.vecdot(x, y, axis=-2), make((3, 2), dtype), make((4, 3, 1), dtype, 1))
    x, y = make((2, 3, 4), dtype), make((3, 4, 2), dtype, 1)
    for axes in (0, 2, ((1, 2), (0, 1)), ((0,), (2,)), ((-1,), (1,))):
        check(lambda p, x, y, a=axes: p.tensordot(x, y, axes=a), x, y)
    check(lambda p, x, y: p.linalg.outer(x, y), make((3,), dtype), make((4,), dtype))
    check(lambda p, x, y: p.linalg.cross(x, y, axis=-1), make((2, 3), dtype), make((2, 3), dtype, 1))
    check(lambda p, x, y: p.linalg.cross(x, y, axis=-2), make((3, 2), dtype), make((3, 2), dtype, 1))
    check(lambda p, x, y: p.linalg.cross(x, y), make((3,), dtype), make((2, 4, 3), dtype, 1))
    check(lambda p, x, y: p.linalg.cross(x, y, axis=-2), make((2, 3, 2), dtype), make((3, 1), dtype, 1))
    for offset in (-1, 0, 2, 5):
        check(
            lambda p, x, o=offset: (p.linalg.diagonal(x, offset=o), p.linalg.trace(x, offset=o)), make((2, 3, 4), dtype)
        )


def test_products_promote():
    for a, b in (("int8", "int16"), ("uint8", "int8"), ("float32", "float64"), ("float32", "complex128")):
        check(lambda p, x, y: (p.matmul(x, y), p.vecdot(x, y)), make((2, 2), a), make((2, 2), b))


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (1, 1), (0, 3, 3), (1, 1, 1), (2, 2, 2)], ids=str)
def test_square(dtype, shape):
    x = random(shape, dtype)
    near = tolerance(dtype)
    check(lambda p, x: (p.linalg.det(x), p.linalg.inv(x), p.linalg.slogdet(x)), x, **near)
    check(
        lambda p, x: (p.linalg.matrix_power(x, 3), p.linalg.matrix_power(x, 0), p.linalg.matrix_power(x, -1)), x, **near
    )
    check(lambda p, x, y: p.linalg.solve(x, y), x, random(shape[-1:], dtype, 1), **near)
    check(lambda p, x, y: p.linalg.solve(x, y), x, random((*shape[-2:-1], 4), dtype, 1), **near)
    even = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1], dtype=dtype)
    check(lambda p, x: (p.linalg.cholesky(x), p.linalg.cholesky(x, upper=True)), even, **near)
    check(lambda p, x: p.linalg.eigvalsh(x), even, **near)
    found = xp.linalg.eigh(taeda.tensor(even))
    compare(found.eigenvalues, strict.linalg.eigvalsh(strict.asarray(even)), **tolerance(dtype))
    again = (
        found.eigenvectors @ taeda.diag_embed(found.eigenvalues.to(found.eigenvectors.dtype)) @ found.eigenvectors.mH
    )
    compare(again, even, **near)


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
@pytest.mark.parametrize("shape", [(3, 4), (4, 2), (2, 3, 2), (0, 3)], ids=str)
def test_oblong(dtype, shape):
    x, near = random(shape, dtype), tolerance(dtype)
    t = taeda.tensor(x)
    for full in (True, False):
        u, s, vh = xp.linalg.svd(t, full_matrices=full)
        compare(s, strict.linalg.svdvals(strict.asarray(x)), **near)
        k = min(shape[-2:])
        compare(u[..., :k] @ taeda.diag_embed(s.to(u.dtype)) @ vh[..., :k, :], x, **near)
        assert u.shape[-1] == (shape[-2] if full else k) and vh.shape[-2] == (shape[-1] if full else k)
    for mode in ("reduced", "complete"):
        q, r = xp.linalg.qr(t, mode=mode)
        compare(q @ r, x, **near)
        assert q.shape[-1] == (shape[-2] if mode == "complete" else min(shape[-2:]))
    check(lambda p, x: p.linalg.svdvals(x), x, **near)
    if 0 not in shape:
        check(lambda p, x: (p.linalg.pinv(x), p.linalg.matrix_rank(x)), x, **near)
        check(lambda p, x: (p.linalg.pinv(x, rtol=0.5), p.linalg.matrix_rank(x, rtol=0.5)), x, **near)
        for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
            check(lambda p, x, o=ord: p.linalg.matrix_norm(x, ord=o, keepdims=True), x, **near)
    for ord in (2, 1, 0, 3, 0.5, -1, np.inf, -np.inf):
        for axis in (None, 0, -1, (0, 1), ()):
            if 0 not in shape or ord in (0, 1, 2, 3):
                check(lambda p, x, o=ord, a=axis: p.linalg.vector_norm(x, ord=o, axis=a), x, **near)
                check(lambda p, x, o=ord, a=axis: p.linalg.vector_norm(x, ord=o, axis=a, keepdims=True), x, **near)


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_transforms(dtype, norm):
    x, near = random((4, 6, 5), dtype), tolerance(dtype, 50)
    names = ["fft", "ifft", "hfft", "irfft"] if dtype in COMPLEX else ["rfft", "ihfft", "fft", "ifft"]
    for name in names:
        for n, axis in ((None, -1), (4, 0), (9, 1), (None, -2), (7, -1)):
            if dtype in REAL and name in ("fft", "ifft"):
                continue  # strict takes complex numbers only
            check(lambda p, x, f=name, n=n, a=axis: getattr(p.fft, f)(x, n=n, axis=a, norm=norm), x, **near)
    for name in ["fftn", "ifftn", "irfftn"] if dtype in COMPLEX else ["rfftn"]:
        for s, axes in ((None, None), (None, (0, 1)), ((3, 7), (0, 2)), ((4,), (1,))):
            check(lambda p, x, f=name, s=s, a=axes: getattr(p.fft, f)(x, s=s, axes=a, norm=norm), x, **near)


def test_frequencies():
    for n in (1, 2, 5, 8):
        for name in ("fftfreq", "rfftfreq"):
            want = getattr(strict.fft, name)(n, d=0.25)
            got = getattr(xp.fft, name)(n, d=0.25, dtype=xp.float64)
            compare(got, want)
            assert getattr(xp.fft, name)(n).dtype is taeda.float32
    x = random((3, 4), "float64")
    for axes in (None, 0, (0, 1), (-1,)):
        check(lambda p, x, a=axes: (p.fft.fftshift(x, axes=a), p.fft.ifftshift(x, axes=a)), x)


def test_errors():
    for name in ("matrix_transpose", "matrix_rank"):
        with pytest.raises(ValueError, match="two dimensions"):
            getattr(xp.linalg, name)(taeda.ones(3))
    with pytest.raises(ValueError, match="sizes along axis"):
        xp.vecdot(taeda.ones(3), taeda.ones(1))

"""Fourier transforms against PyTorch: values and two orders of gradients, sizes, norms, dims and errors."""

import itertools

import pytest

import taeda
import taeda.fft
from taeda.ops import fft as transforms

torch = pytest.importorskip("torch")

from tests.conformance.peer import close, ours  # noqa: E402

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MANY = ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2", "fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
REAL = ("rfft", "ihfft", "rfft2", "ihfft2", "rfftn", "ihfftn")


def check(name, shape, **kwargs):
    dtype = torch.float64 if name in REAL else torch.complex128
    theirs = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(1)).requires_grad_()
    mine = ours(theirs)
    want, got = getattr(torch.fft, name)(theirs, **kwargs), getattr(taeda.fft, name)(mine, **kwargs)
    close(got, want, rtol=1e-10, atol=1e-12)

    def scalar(x):
        return (x.real**3 + x.real * x.imag).sum() if x.is_complex() else (x**3).sum()

    (g_want,) = torch.autograd.grad(scalar(want), theirs, create_graph=True)
    (g_got,) = taeda.autograd.grad(scalar(got), mine, create_graph=True)
    close(g_got, g_want, rtol=1e-9, atol=1e-10)
    (h_want,) = torch.autograd.grad(scalar(g_want), theirs)
    (h_got,) = taeda.autograd.grad(scalar(g_got), mine)
    close(h_got, h_want, rtol=1e-8, atol=1e-8)


@pytest.fixture(params=["numpy", "scipy"])
def library(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(transforms, "_pocketfft", lambda: None)
    else:
        pytest.importorskip("scipy.fft")
        assert transforms._pocketfft() is not None  # else all goes by NumPy, without a word


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", ONE)
def test_one_dimension(name):
    for n, dim, norm in itertools.product((None, 4, 7, 12), (-1, 0), (None, "ortho", "forward", "backward")):
        check(name, (6, 7), n=n, dim=dim, norm=norm)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", MANY)
def test_several_dimensions(name):
    for s, dim, norm in [(None, (-2, -1), None), ((4, 6), (0, 2), "ortho"), ((5, -1), (2, 1), "forward")]:
        check(name, (3, 4, 5), s=s, dim=dim, norm=norm)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64])
def test_dtypes(dtype):
    x = torch.arange(6).to(dtype)
    for name in ("fft", "ifft", "rfft", "irfft", "hfft"):
        if dtype.is_complex and name == "rfft":
            continue
        want, got = getattr(torch.fft, name)(x), getattr(taeda.fft, name)(ours(x))
        close(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("library")
def test_input_is_left_alone():
    x = taeda.randn(4, 6, dtype=taeda.complex64)
    before = x.clone()
    for made in (taeda.fft.fft(x), taeda.fft.ifft(x.T, norm="ortho"), taeda.fft.fft2(x, norm="forward")):
        assert made.is_contiguous() and made.dtype is taeda.complex64
        assert taeda.equal(x, before)


def test_frequencies_and_shifts():
    for n in (1, 4, 5):
        close(taeda.fft.fftfreq(n, 0.5), torch.fft.fftfreq(n, 0.5))
        close(taeda.fft.rfftfreq(n, 0.5), torch.fft.rfftfreq(n, 0.5))
    for f in (torch, taeda):
        for make in (f.fft.fftfreq, f.fft.rfftfreq):
            with pytest.raises(RuntimeError, match="floating point"):
                make(4, dtype=f.int64)
    x = torch.arange(20.0).reshape(4, 5)
    for dim in (None, 0, (0, 1)):
        close(taeda.fft.fftshift(ours(x), dim), torch.fft.fftshift(x, dim))
        close(taeda.fft.ifftshift(ours(x), dim), torch.fft.ifftshift(x, dim))


@pytest.mark.parametrize("call", [
    lambda T: T.fft.fft(T.ones(3), n=0),
    lambda T: T.fft.fft(T.ones(3), dim=2),
    lambda T: T.fft.fft(T.ones(3), norm="other"),
    lambda T: T.fft.fft(T.ones(())),
    lambda T: T.fft.rfft(T.ones(3, dtype=T.complex64)),
    lambda T: T.fft.fft2(T.ones(3)),
    lambda T: T.fft.fftn(T.ones(3, 3), s=(1, 2, 3)),
    lambda T: T.fft.fftn(T.ones(3, 3), dim=(0, 0)),
    lambda T: T.fft.irfft(T.ones(1)),
])  # fmt: skip
def test_errors(call):
    with pytest.raises((RuntimeError, IndexError)) as want:
        call(torch)
    with pytest.raises(want.type):
        call(taeda)

"""Windows and short-time Fourier transforms against PyTorch."""

import itertools
import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")

from tests.conformance.peer import ERRORS, close, compare, gradients, ours  # noqa: E402

OPTIONS = {
    "general_cosine": ({"a": [0.4, 0.3, 0.2]},),
    "general_hamming": ({}, {"alpha": 0.3}),
    "gaussian": ({}, {"std": 2.5}),
    "exponential": ({}, {"tau": 3.0}),
    "kaiser": ({}, {"beta": 3.0}),
}


@pytest.mark.parametrize("name", torch.signal.windows.__all__)
def test_windows(name):
    for M, sym, options in itertools.product((0, 1, 2, 7, 8), (True, False), OPTIONS.get(name, ({},))):
        want = getattr(torch.signal.windows, name)(M, sym=sym, dtype=torch.float64, **options)
        close(
            getattr(taeda.signal.windows, name)(M, sym=sym, dtype=taeda.float64, **options), want, rtol=1e-9, atol=1e-12
        )
    for bad in ({"M": -1}, {"M": 4, "dtype": "int32"}, {"M": 4, "dtype": "float16"}):
        with pytest.raises(ValueError):
            more = {"dtype": getattr(taeda, bad["dtype"])} if "dtype" in bad else {}
            getattr(taeda.signal.windows, name)(bad["M"], **OPTIONS.get(name, ({},))[0], **more)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
def test_older_windows(name):
    for n, periodic in itertools.product((0, 1, 2, 7, 8), (True, False)):
        compare(name, lambda T, n=n, p=periodic: getattr(T, f"{name}_window")(n, p))
        compare(name, lambda T, n=n, p=periodic: getattr(T, f"{name}_window")(n, p, dtype=T.float64))
    for bad in (lambda T: (-1,), lambda T: (4, True, 1, 2, 3), lambda T: (2.5,)):
        compare(name, lambda T, bad=bad: getattr(T, f"{name}_window")(*bad(T)), raises=(RuntimeError, TypeError))


def signal(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(3))


STFT = [
    {"n_fft": 8},
    {"n_fft": 9, "hop_length": 4, "win_length": 5},
    {"n_fft": 8, "hop_length": 3, "center": False, "normalized": True},
    {"n_fft": 8, "onesided": False, "pad_mode": "constant"},
    {"n_fft": 8, "win_length": 4, "center": False, "align_to_window": True},
]


@pytest.mark.parametrize("options", STFT, ids=str)
def test_stft(options):
    width = options.get("win_length", options["n_fft"])
    for dtype in (torch.float64, torch.complex128):
        window = torch.hann_window(width, dtype=torch.float64) + 0.1

        def run(T, x, w):
            return T.stft(x, window=w, return_complex=True, **options)

        for shape in ((40,), (2, 40)):
            x = signal(*shape, dtype=dtype)
            compare("stft", run, x, window)
        gradients("stft", run, signal(2, 40, dtype=dtype), window, second=True)


@pytest.mark.parametrize("options", STFT[:4], ids=str)
def test_istft(options):
    width = options.get("win_length", options["n_fft"])
    window = torch.hann_window(width, dtype=torch.float64) + 0.1
    inverse = {k: v for k, v in options.items() if k != "pad_mode"}
    for length in (None, 30):
        z = torch.stft(signal(2, 40), window=window, return_complex=True, **options)

        def run(T, z, w, length=length):
            return T.istft(z, window=w, length=length, **inverse)

        compare("istft", run, z, window)
        gradients("istft", run, z, window, second=length is None)


def test_there_and_back():
    x = ours(signal(3, 100))
    for options in ({"n_fft": 16}, {"n_fft": 16, "hop_length": 5}, {"n_fft": 16, "onesided": False}):
        window = taeda.hann_window(16, dtype=taeda.float64)
        z = taeda.stft(x, window=window, return_complex=True, **options)
        close(taeda.istft(z, window=window, length=100, **options), torch.from_dlpack(x))


@pytest.mark.parametrize("call", [
    lambda T: T.stft(T.ones(20), 4),
    lambda T: T.stft(T.ones(20), 30, return_complex=True, center=False),
    lambda T: T.stft(T.ones(20), 50, return_complex=True),
    lambda T: T.stft(T.ones(20, dtype=T.int64), 4, return_complex=True),
    lambda T: T.stft(T.ones(1, 1, 20), 4, return_complex=True),
    lambda T: T.stft(T.ones(20), 4, hop_length=0, return_complex=True),
    lambda T: T.stft(T.ones(20), 4, win_length=5, return_complex=True),
    lambda T: T.stft(T.ones(20), 4, window=T.ones(3), return_complex=True),
    lambda T: T.stft(T.ones(20, dtype=T.complex64), 4, onesided=True),
    lambda T: T.stft(T.ones(20), 4, pad_mode="other", return_complex=True),
    lambda T: T.stft(T.ones(20), 4, align_to_window=True, return_complex=True),
    lambda T: T.istft(T.ones(3, 5), 4),
    lambda T: T.istft(T.ones(3, 5, dtype=T.complex64), 6),
    lambda T: T.istft(T.ones(3, 5, dtype=T.complex64), 4, window=T.zeros(4)),
    lambda T: T.istft(T.ones(3, 5, dtype=T.complex64), 4, return_complex=True),
    lambda T: T.istft(T.ones(3, 5, dtype=T.complex64), 4, hop_length=5),
    lambda T: T.istft(T.ones(3, 0, dtype=T.complex64), 4),
    lambda T: T.istft(T.ones(1, 1, 3, 5, dtype=T.complex64), 4),
    lambda T: T.istft(T.ones(3, dtype=T.complex64), 4),
])  # fmt: skip
def test_errors(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare("call", call, raises=ERRORS)


def test_forms():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare("numbers", lambda T: T.stft(T.ones(20), 4, return_complex=False))
    compare("methods", lambda T: T.ones(20).stft(4, return_complex=True).istft(4, length=20))

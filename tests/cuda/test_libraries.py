"""NVIDIA's libraries on the emulated device, by stand-ins, and without them."""

import re

from .program import ROOT, emulated


def test_ops_by_libraries():
    path = str(ROOT / "tests/cuda/libraries.py")
    out = emulated(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", path,
        TAEDA_EMULATOR_LIBRARIES="cufft,cusolver,cublas,cublaslt,cudnn",
    )  # fmt: skip
    lines = re.findall(r"^(\.+) +\[ *(\d+)%\]$", out, re.MULTILINE)  # none failed, none was skipped
    assert lines and lines[-1][1] == "100" and sum(len(dots) for dots, _ in lines) > 160, out


def test_without_a_library_the_cpu_computes():
    """It is said where a program asks for facts, not at each call."""
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        "import taeda, taeda.devices\nx = taeda.randn(3, 4)\nprint(taeda.fft.fft(x.cuda()).cpu().equal(taeda.fft.fft(x)))\n"
        "print(taeda.devices.properties('cuda')['libraries'])"
    )
    out = emulated("-c", code, TAEDA_EMULATOR_LIBRARIES="cusolver")
    assert out.startswith("True\n") and "cuSOLVER, no cuBLAS: " in out and "no cuFFT: " in out, out


def test_exact_products_are_those_of_own_kernels():
    code = (
        "import taeda\nfrom tests.cuda.emulator.cublaslt import cublaslt\n"
        "a = taeda.randn(128, 128)\nprint((a.cuda() @ a.cuda()).cpu().equal(a @ a), cublaslt().calls)"
    )
    out = emulated("-c", code, TAEDA_EMULATOR_LIBRARIES="cublaslt", TAEDA_CUDA_EXACT="1", TAEDA_TARGET="lane")
    assert out == "True []\n"

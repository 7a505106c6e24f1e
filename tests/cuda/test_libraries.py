"""NVIDIA's libraries on the emulated device, by stand-ins, and without them."""

import re

from .program import ROOT, emulated


def test_ops_by_libraries():
    path = str(ROOT / "tests/cuda/libraries.py")
    out = emulated("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", path)
    assert re.search(r"^\.{20,} +\[100%\]$", out, re.MULTILINE), out


def test_without_a_library_the_cpu_computes():
    """It is said where a program asks for facts, not at each call."""
    code = (
        "import warnings; warnings.simplefilter('error')\nimport sys; sys.modules['tests.cuda.emulator.cufft'] = None\n"
        "import taeda, taeda.devices\nx = taeda.randn(3, 4)\nprint(taeda.fft.fft(x.cuda()).cpu().equal(taeda.fft.fft(x)))\n"
        "print(taeda.devices.properties('cuda')['libraries'])"
    )
    out = emulated("-c", code)
    assert out.startswith("True\n") and "no cuFFT: TAEDA_CUDA=tests.cuda.emulator.cufft names no module" in out, out

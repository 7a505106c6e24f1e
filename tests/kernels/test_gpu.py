"""Pointwise kernels on an NVIDIA GPU, where there is one: the same bodies give what they give on the processor."""

import ctypes
import json
import subprocess
import sys
from pathlib import Path

import pytest


def gpus() -> int:
    """How many GPUs NVIDIA's driver shows: 0 without the driver."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    return 0 if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) else count.value


@pytest.mark.skipif(not gpus(), reason="needs an NVIDIA GPU")
@pytest.mark.timeout(1500)
def test_pointwise_ops_give_the_processors_values():
    """The same bits, but for functions of float32 that are computed in another way where there are vectors."""
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("on_gpu.py"))], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, *lines = map(json.loads, done.stdout.splitlines())
    assert len(lines) == first["kernels"] > 3000
    assert not [line for line in lines if line["error"] > (4e-6 if "float32" in line["outs"] else 1e-3)]
    assert sum(line["error"] == 0 for line in lines) > 0.97 * len(lines)

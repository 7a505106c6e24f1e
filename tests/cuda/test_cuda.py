"""Device cuda on the emulated driver, which runs the PTX that a GPU would be sent.

Each test is a process of its own: a process has a CUDA device or has none.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def emulated(*args, timeout=600, **environment):
    """Run Python with a CUDA device; gives its standard output."""
    path = os.pathsep.join((os.environ["PYTHONPATH"], str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", *args], capture_output=True, text=True, timeout=timeout, cwd=ROOT / "tests",
        env={**os.environ, "PYTHONPATH": path, "TAEDA_CUDA": "tests.cuda.emulator", **environment},
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_names_memory_copies_and_streams():
    out = emulated(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(ROOT / "tests/cuda/on_device.py")
    )
    assert re.search(r"^\.{15,} +\[100%\]$", out, re.MULTILINE), out  # none failed, none was skipped


@pytest.mark.parametrize("model", ["mlp", "cnn", "GPT", "LSTM"])
def test_training_gives_the_bits_of_the_cpu(model):
    """Losses, and from checkpoints of either device on either device."""
    out = emulated(str(ROOT / "tests/core/training.py"), "cuda", model, TAEDA_TARGET="lane")
    assert "the same bits" in out


#: Entries of the operator database: some of each family of kernels.
ENTRIES = (
    "add|sub|true_divide|exp|sin|erf|lgamma|nn.functional.gelu|where|clamp|pow|sum|mean|std|var|amax|argmax|prod|norm|softmax"
    "|log_softmax|nn.functional.layer_norm|nn.functional.batch_norm|cumsum|cumprod|gather|scatter|scatter_add|index_select"
    "|index_put|index_add|masked_fill|masked_select|nonzero|cat|stack|flip|roll|tril|triu|sort|topk|unique|matmul|mm|bmm"
    "|addmm|dot|linalg.inv|linalg.svd|fft.fft|nn.functional.conv2d|nn.functional.max_pool2d|nn.functional.avg_pool2d"
    "|nn.functional.cross_entropy|nn.functional.mse_loss|nn.functional.embedding|nn.functional.dropout|nn.functional.linear"
    "|nn.functional.scaled_dot_product_attention|nn.functional.interpolate_bilinear|nn.functional.grid_sample|histc"
    "|searchsorted|bucketize|arange|eye|full|randn|bernoulli"
)


def test_operators_give_the_bits_of_the_cpu():
    """Results, gradients and second derivatives, bit for bit those of the CPU's kernels with one lane."""
    out = emulated(
        "-m", "tests.conformance.opdb.far", f"^({ENTRIES})$", TAEDA_TARGET="lane", TAEDA_TEST_DEVICE="cuda", timeout=900
    )
    agree, total = map(int, re.search(r"(\d+) of (\d+) agree", out).groups())
    assert total >= 65 and agree == total, out


@pytest.mark.parametrize("said, message", [
    ("no.such.module", "TAEDA_CUDA=no.such.module names no module"),
    ("tests.cuda.none_at_all", "names no module"),
])  # fmt: skip
def test_a_missing_driver_is_named(said, message):
    code = (
        "import taeda\nassert not taeda.cuda.is_available() and taeda.cuda.device_count() == 0\n"
        "try: taeda.ones(1).to('cuda')\nexcept AssertionError as error: print(error)"
    )
    assert message in emulated("-c", code, TAEDA_CUDA=said)


def test_a_forked_process_has_no_device():
    code = (
        "import os, taeda\nx = taeda.ones(2, device='cuda')\n"
        "if os.fork() == 0:\n    try: x + x\n    except RuntimeError as error: print(error, flush=True)\n    os._exit(0)\n"
        "os.wait(); print((x + x).tolist())"
    )
    out = emulated("-c", code)
    assert "Cannot re-initialize CUDA in forked subprocess" in out and "[2.0, 2.0]" in out

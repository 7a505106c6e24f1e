"""Libraries for arm64 in a program in C, loaded by the system's loader and run by qemu's emulator of a process.

Needs ``qemu-aarch64`` (Debian: qemu-user), a C compiler for arm64 and its C library (gcc-aarch64-linux-gnu).
"""

import shutil
import subprocess

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda.export import Dim, build, export
from taeda.nn import functional as F

CC, QEMU = (shutil.which(name) for name in ("aarch64-linux-gnu-gcc", "qemu-aarch64"))
pytestmark = pytest.mark.skipif(not (CC and QEMU), reason="no arm64 compiler or no qemu-user")

PROGRAM = """
#include <stdio.h>
#include "net.h"

static float in[%(size_in)d], out[%(size_out)d];

int main(int argc, char **argv) {
  const int64_t in_sizes[] = {%(in_sizes)s}, out_sizes[] = {%(out_sizes)s};
  net_tensor input = {in, NET_FLOAT32, %(in_rank)d, in_sizes}, output = {out, NET_FLOAT32, %(out_rank)d, out_sizes};
  FILE *file = fopen(argv[1], "rb");
  if (fread(in, sizeof in, 1, file) != 1) return 1;
  fclose(file);
  int code = net_set_threads(%(threads)d) == %(threads)d ? net_run(&input, 1, &output, 1) : -1;
  if (code) { puts(net_error(code)); return 2; }
  file = fopen(argv[2], "wb");
  return fwrite(out, sizeof out, 1, file) != 1 || fclose(file);
}
"""


class Function(nn.Module):
    def __init__(self, function, *weights):
        super().__init__()
        self.function = function
        self.weights = nn.ParameterList(weights)

    def forward(self, x):
        return self.function(x, *self.weights)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(10, 20)

    def forward(self, x):
        return self.lstm(x)[0]


def pointwise(x):
    functions = (taeda.exp, taeda.erf, taeda.tanh, taeda.sigmoid, taeda.sin, F.gelu, F.silu, F.softplus, taeda.expm1)
    return taeda.stack([f(x) for f in functions] + [taeda.log(x.abs() + 0.1), taeda.exp(x * 30), taeda.exp2(x * 40)])


def product(*sizes):
    return Function(lambda x, w: x @ w, taeda.randn(*sizes))


def attention(causal):
    return Function(lambda x: F.scaled_dot_product_attention(x, x.flip(2), x, is_causal=causal))


#: What makes a model, and the sizes of its input.
MODELS = {
    "pointwise": (lambda: Function(pointwise), (7, 53)),
    "rows": (lambda: nn.Sequential(nn.LayerNorm(67), nn.Softmax(-1), nn.LogSoftmax(0)), (9, 67)),
    "masked softmax": (lambda: Function(lambda x: (x + (x > 0.5) * -1e30).softmax(-1)), (9, 130)),
    "one row": (lambda: product(70, 45), (1, 70)),
    "product": (lambda: product(300, 70), (23, 300)),
    "product, many rows": (lambda: product(80, 50), (300, 80)),
    "layer": (lambda: nn.Linear(90, 33), (50, 90)),
    "batches": (lambda: product(4, 33, 18), (4, 13, 33)),
    "attention": (lambda: attention(False), (2, 2, 70, 24)),
    "causal attention": (lambda: attention(True), (1, 2, 70, 24)),
    "convolution": (lambda: nn.Conv2d(3, 20, 5, stride=2, padding=2), (2, 3, 25, 25)),
    "windows": (lambda: nn.Conv2d(24, 40, 3, padding=2, dilation=2), (2, 24, 14, 14)),
    "Winograd": (lambda: nn.Conv2d(32, 32, 3, padding=1), (2, 32, 14, 14)),
    "depthwise": (lambda: nn.Conv2d(12, 12, 3, padding=1, groups=12), (2, 12, 21, 21)),
    "depthwise, stride 2": (lambda: nn.Conv2d(12, 12, 3, stride=2, padding=1, groups=12), (2, 12, 21, 21)),
    "transposed": (lambda: nn.ConvTranspose2d(6, 8, 4, stride=2, padding=1), (2, 6, 9, 9)),
    "pooling": (lambda: nn.Sequential(nn.MaxPool2d(3, 2), nn.AvgPool2d(2)), (2, 5, 19, 19)),
    "normalisation": (lambda: nn.Sequential(nn.BatchNorm2d(6), nn.GroupNorm(2, 6)).eval(), (2, 6, 9, 11)),
    "reductions": (lambda: Function(lambda x: taeda.stack([x.sum(0), x.mean(0), x.amax(0), x.std(0)])), (33, 41)),
    "sorting": (lambda: Function(lambda x: x.sort(-1)[0].cumsum(-1)), (5, 77)),
    "LSTM": (lambda: Recurrent(), (6, 3, 10)),
}


@pytest.mark.parametrize("name", MODELS)
def test_values_on_arm64(tmp_path, name):
    taeda.manual_seed(0)
    make, sizes = MODELS[name]
    model = make().eval()
    x = taeda.randn(*sizes)
    with taeda.no_grad():
        expected = model(x).numpy()
    build(model, tmp_path / "net.so", (x,), target="arm64")
    listed = {f"{n}_sizes": ", ".join(map(str, y.shape)) for n, y in (("in", x), ("out", expected))}
    counts = {"size_in": x.numel(), "size_out": expected.size, "in_rank": x.dim(), "out_rank": expected.ndim}
    (tmp_path / "run.c").write_text(PROGRAM % {**listed, **counts, "threads": 1 + (name in ("product", "windows"))})
    subprocess.run([CC, "-Wall", "-std=c99", "run.c", "net.so", "-o", "run"], check=True, cwd=tmp_path)
    x.numpy().tofile(tmp_path / "in.bin")
    command = [QEMU, "-L", "/usr/aarch64-linux-gnu", "-E", "LD_LIBRARY_PATH=.", "./run", "in.bin", "out.bin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = np.fromfile(tmp_path / "out.bin", np.float32).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


def test_sizes_threads_and_errors(tmp_path):
    """A batch of any size in the range, one thread and two; texts of errors."""
    taeda.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 900, 64), nn.Tanh(), nn.Linear(64, 10)
    )
    example = taeda.randn(2, 1, 32, 32)
    build(
        export(model.eval(), (example,), dynamic_shapes=({0: Dim("batch", min=1, max=8)},)),
        tmp_path / "net.so",
        target="arm64",
    )
    (tmp_path / "run.c").write_text("""
#include <stdio.h>
#include <stdlib.h>
#include "net.h"

static float in[9 * 1024], out[9 * 10];

int main(int argc, char **argv) {
  int64_t batch = atoi(argv[1]), sizes[] = {batch, 1, 32, 32}, made[] = {batch, 10};
  for (int i = 0; i < batch * 1024; i++) in[i] = (i % 37) / 37.0f - 0.5f;
  net_set_threads(atoi(argv[2]));
  net_tensor inputs[] = {{argc > 3 ? 0 : in, NET_FLOAT32, 4, sizes}}, outputs[] = {{out, NET_FLOAT32, 2, made}};
  int code = net_run(inputs, 1, outputs, 1);
  if (code) { puts(net_error(code)); return 2; }
  for (int i = 0; i < batch * 10; i++) printf("%.9g\\n", out[i]);
  return 0;
}
""")
    command = [CC, "-Wall", "-Werror", "-std=c99", "run.c", "net.so", "-o", "run"]
    subprocess.run(command, check=True, cwd=tmp_path)
    emulated = [QEMU, "-L", "/usr/aarch64-linux-gnu", "-E", f"LD_LIBRARY_PATH={tmp_path}", str(tmp_path / "run")]

    def run(*args):
        return subprocess.run([*emulated, *map(str, args)], capture_output=True, text=True, timeout=120)

    for batch in (1, 8):
        x = ((taeda.arange(batch * 1024) % 37) / 37.0 - 0.5).view(batch, 1, 32, 32)
        one, two = run(batch, 1), run(batch, 2)
        assert one.returncode == 0 and one.stdout == two.stdout, one.stderr
        with taeda.no_grad():
            found = np.array(one.stdout.split(), np.float32).reshape(batch, 10)
            np.testing.assert_allclose(found, model(x).numpy(), rtol=1e-4, atol=1e-5)
    assert run(9, 1).returncode == 2 and "batch" in run(9, 1).stdout
    assert run(1, 1, "null").returncode == 2 and "null" in run(1, 1, "null").stdout.lower()

"""``taeda.export.build``: libraries compute the bits that taeda computes, and refuse what they cannot take."""

import ctypes
import os
import platform
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda.export import Dim, build, export
from taeda.export.library import processor
from taeda.nn import functional as F
from taeda.utils._pytree import tree_leaves

from .libraries import Library, Tensor, tensor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries are for Linux")


class Apply(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(8, 16, 2, batch_first=True), nn.Linear(16, 3)

    def forward(self, x):
        y, (h, _) = self.lstm(x)
        return {"scores": self.out(y[:, -1]), "state": h}


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(), nn.Flatten(), nn.Linear(32, 10),
    ).eval()  # fmt: skip


def mlp():
    return nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 5), nn.LogSoftmax(-1))


MODELS = {
    "mlp": lambda: (mlp(), (taeda.randn(8, 20),)),
    "cnn": lambda: (cnn(), (taeda.randn(3, 1, 8, 8),)),
    "recurrent": lambda: (Recurrent(), (taeda.randn(4, 9, 8),)),
    "encoder": lambda: (nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval(), (taeda.randn(3, 10, 32),)),
    "embedding": lambda: (nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 4)), (taeda.randint(0, 50, (4, 7)),)),
    "depthwise": lambda: (nn.Conv2d(16, 32, 3, groups=16, stride=2, padding=1), (taeda.randn(2, 16, 20, 20),)),
    "transposed": lambda: (nn.ConvTranspose2d(8, 4, 3, 2, 1), (taeda.randn(2, 8, 9, 9),)),
    "double": lambda: (nn.Linear(20, 30).double(), (taeda.randn(5, 20).double(),)),
    "large": lambda: (Apply(lambda a, b: (a + b.t()) * 2), (taeda.randn(700, 900), taeda.randn(900, 700))),
    "product": lambda: (Apply(lambda a, b: a @ b), (taeda.randn(3, 300, 200), taeda.randn(3, 200, 500))),
    "joined": lambda: (Apply(lambda a, b: taeda.cat([a, b.t()], 1)), (taeda.randn(40, 300), taeda.randn(200, 40))),
    "views": lambda: (Apply(lambda a: (a.transpose(0, 1)[::2], a, a + 1, a)), (taeda.randn(20, 30),)),
    "order": lambda: (Apply(lambda a: (*a.sort(-1), a.argmax(0), a > 0)), (taeda.randn(20, 300),)),
    "constant": lambda: (Apply(lambda a: (a + taeda.tensor([1.0, 2, 3]), taeda.arange(3))), (taeda.randn(3),)),
}


def arrays(tree):
    return [x.detach().numpy() for x in tree_leaves(tree)]


def zeros_like(results):
    return [np.zeros(x.shape, x.dtype) for x in results]


@pytest.mark.parametrize("name", MODELS)
def test_bits_are_those_of_the_model(name, tmp_path):
    taeda.manual_seed(0)
    model, args = MODELS[name]()
    assert build(model, tmp_path / "model.so", args) == tmp_path / "model.h"
    library = Library(tmp_path / "model.so", "model")
    with taeda.no_grad():
        expected = arrays(model(*args))
    for threads in (1, 3):
        assert library.set_threads(threads) == threads
        for found, wanted in zip(library.run(arrays(args), zeros_like(expected)), expected, strict=True):
            assert np.array_equal(found, wanted)
    library.free()


def batched(model, x, low, high):
    return export(model, (x,), dynamic_shapes=({0: Dim("batch", min=low, max=high)},))


def test_any_batch_of_the_range(tmp_path):
    taeda.manual_seed(1)
    model = cnn()
    build(batched(model, taeda.randn(4, 1, 8, 8), 1, 37), tmp_path / "digits.so", name="net")
    library = Library(tmp_path / "digits.so", "net")
    for batch in range(1, 38):
        x = taeda.randn(batch, 1, 8, 8)
        with taeda.no_grad():
            expected = model(x).numpy()
        (found,) = library.run([x.numpy()], [np.zeros((batch, 10), np.float32)])
        assert np.array_equal(found, expected), batch
    for batch in (0, 38, 1 << 40):
        x = Tensor(64, 1, 4, (ctypes.c_int64 * 4)(batch, 1, 8, 8))
        assert "batch from 1 to 37" in library.text([x], [tensor(np.zeros((1, 10), np.float32))])


def test_one_batch_for_all_inputs_and_sizes_that_follow_from_it(tmp_path):
    model = Apply(lambda a, b: ((a @ b.t()).softmax(-1), taeda.cat([a, b])))
    batch = Dim("batch", min=2, max=9)
    example = (taeda.randn(3, 5), taeda.randn(3, 5))
    header = build(export(model, example, dynamic_shapes={"args": ({0: batch}, {0: batch})}), tmp_path / "pair.so")
    library = Library(tmp_path / "pair.so", "pair")
    for n in range(2, 10):
        a, b = taeda.randn(n, 5), taeda.randn(n, 5)
        outputs = [np.zeros((n, n), np.float32), np.zeros((2 * n, 5), np.float32)]
        for found, wanted in zip(library.run([a.numpy(), b.numpy()], outputs), arrays(model(a, b)), strict=True):
            assert np.array_equal(found, wanted)
    a, b = np.zeros((4, 5), np.float32), np.zeros((5, 5), np.float32)
    text = library.text([tensor(a), tensor(b)], [tensor(x) for x in outputs])
    assert "input 1" in text and "float32[batch, 5], with one batch for all" in text
    assert "float32[4 to 18, 5]" in header.read_text()


def encoder():
    """A transformer of tokens, with padding; its batch and length may change."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(40, 16), nn.Parameter(taeda.randn(16, 16))
            self.layers, self.out = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 3)

        def forward(self, ids, padding):
            x = self.words(ids) + self.places[: ids.shape[1]]
            x = self.layers(x, src_key_padding_mask=padding)
            return self.out(x), x.mean(1)

    sizes = {0: Dim("batch", min=1, max=4), 1: Dim("length", min=1, max=16)}
    example = (taeda.randint(0, 40, (3, 7)), taeda.zeros(3, 7, dtype=taeda.bool))
    model = Net().eval()
    return model, export(model, example, dynamic_shapes=(sizes, sizes))


@pytest.fixture(scope="module")
def encoding(tmp_path_factory):
    taeda.manual_seed(4)
    folder, (model, program) = tmp_path_factory.mktemp("encoder"), encoder()
    build(program, folder / "encoder.so")
    return folder, Library(folder / "encoder.so", "encoder"), model


def test_any_combination_of_sizes(encoding):
    _, library, model = encoding
    for batch, length in np.ndindex(4, 16):
        batch, length = batch + 1, length + 1
        ids = taeda.randint(0, 40, (batch, length))
        padding = taeda.arange(length) >= taeda.randint(1, length + 1, (batch, 1))
        with taeda.no_grad():
            expected = arrays(model(ids, padding))
        for found, wanted in zip(library.run(arrays([ids, padding]), zeros_like(expected)), expected, strict=True):
            assert np.array_equal(found, wanted), (batch, length)


def test_combinations_that_were_not_recorded(encoding):
    folder, library, _ = encoding
    header = (folder / "encoder.h").read_text()
    assert "#define ENCODER_LENGTH_MAX 16" in header and "input 0: ids, int64[batch, length]" in header
    assert "output 0: float32[batch, length, 3]" in header and "output 1: float32[batch, 16]" in header

    def text(first, second, result=None):
        given = [Tensor(64, 8, 2, (ctypes.c_int64 * 2)(*first)), Tensor(64, 10, 2, (ctypes.c_int64 * 2)(*second))]
        outputs = [np.zeros((*(result or (1, 1)), 3), np.float32), np.zeros((1, 16), np.float32)]
        return library.text(given, [tensor(x) for x in outputs])

    for sizes in ((5, 3), (0, 3), (4, 17), (1, 0), (1 << 40, 1), (1, 1 << 62), (5, 1), (8, 15)):
        assert "expected a batch from 1 to 4 and length from 1 to 16" in text(sizes, sizes)
    for other in ((3, 3), (2, 4), (2, -1)):
        assert "input 1 (padding): expected sizes bool[batch, length], with one batch and one length for all" in text(
            (2, 3), other
        )
    assert "input 0 (ids): expected sizes" in text((-1, 3), (2, 3))  # no size of another tensor is its own
    assert "output 0 (output0): expected sizes float32[batch, length, 3]" in text((2, 3), (2, 3), (2, 4))


def test_sizes_in_a_program_in_c(encoding):
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    folder, _, model = encoding
    (folder / "run.c").write_text("""
#include <stdio.h>
#include <stdlib.h>
#include "encoder.h"

int main(int argc, char **argv) {
  int64_t batch = atoi(argv[1]), length = atoi(argv[2]), ids[256];
  uint8_t padding[256] = {0};
  float out[1024], mean[64];
  if (argc < 3 || batch * length > 256) return 1;
  for (int i = 0; i < batch * length; i++) ids[i] = i % 40;
  const int64_t in[] = {batch, length}, each[] = {batch, length, 3}, all[] = {batch, 16};
  encoder_tensor inputs[] = {{ids, ENCODER_INT64, 2, in}, {padding, ENCODER_BOOL, 2, in}};
  encoder_tensor outputs[] = {{out, ENCODER_FLOAT32, 3, each}, {mean, ENCODER_FLOAT32, 2, all}};
  int code = encoder_run(inputs, 2, outputs, 2);
  if (code) { puts(encoder_error(code)); return 2; }
  for (int i = 0; i < batch * length * 3; i++) printf("%.9g\\n", out[i]);
  return 0;
}
""")
    program, command = folder / "run", ["cc", "-Wall", "-Werror", "-std=c99", "run.c", "encoder.so", "-o", "run"]
    subprocess.run(command, check=True, cwd=folder)
    settings = {"LD_LIBRARY_PATH": str(folder)}
    for batch, length in ((1, 1), (4, 16), (3, 11)):
        found = subprocess.run([program, str(batch), str(length)], env=settings, capture_output=True, text=True)
        ids = (taeda.arange(batch * length) % 40).view(batch, length)
        with taeda.no_grad():
            expected = model(ids, taeda.zeros(batch, length, dtype=taeda.bool))[0].flatten()
        assert np.array_equal(np.array(found.stdout.split(), np.float32), expected.numpy()), found.stdout
    found = subprocess.run([program, "5", "3"], env=settings, capture_output=True, text=True)
    assert found.returncode == 2 and "expected a batch from 1 to 4 and length from 1 to 16" in found.stdout


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    model = Apply(lambda i, x: F.embedding(i, x) * 2)
    build(model, folder / "small.so", (taeda.tensor([1, 2, 0]), taeda.randn(4, 6)))
    return folder, Library(folder / "small.so", "small"), model


def test_bad_arguments_give_codes_with_texts(small):
    _, library, _ = small
    index, table, out = np.array([0, 1, 3]), np.ones((4, 6), np.float32), np.zeros((3, 6), np.float32)
    good = [tensor(index), tensor(table)]
    library.run([index, table], [out])
    assert np.array_equal(out, np.full((3, 6), 2))

    def changed(t, **fields):
        made = Tensor(t.data, t.dtype, t.ndim, t.sizes)
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    to = [tensor(out)]
    sizes = ctypes.POINTER(ctypes.c_int64)()
    assert "input 1 (input1) has no data" in library.text([good[0], changed(good[1], data=None)], to)
    assert "input 0 (input0): expected dtype int64" in library.text([tensor(index.astype(np.int32)), good[1]], to)
    assert "expected dtype float32" in library.text([good[0], changed(good[1], dtype=99)], to)
    assert "expected 2 dimensions, float32[4, 6]" in library.text([good[0], tensor(table.ravel())], to)
    assert "expected sizes float32[4, 6]" in library.text([good[0], tensor(table.T.copy())], to)
    assert "expected sizes" in library.text([good[0], changed(good[1], sizes=sizes)], to)
    assert "output 0 (output0): expected sizes float32[3, 6]" in library.text(good, [tensor(out[:2])])
    assert "output 0 (output0) has no data" in library.text(good, [changed(to[0], data=None)])
    assert "expected 2 inputs" in library.text(good[:1], to)
    assert "expected 1 outputs" in library.text(good, to * 2)
    assert library.error(library.run_raw(None, 2, None, 1)) == b"small_run: the list of inputs or of outputs is NULL"
    for bad in (4, -1, 1 << 50):
        index[2] = bad
        assert "out of range" in library.text(good, to)
    assert library.error(-1) == library.error(12345) == b"unknown error code" and library.error(0) == b"no error"


def test_random_arguments_do_no_harm(small):
    _, library, _ = small
    rng = np.random.default_rng(0)
    memory = np.zeros(64, np.int64)  # as much as any right tensor has, and indices that are in range
    sizes = [(ctypes.c_int64 * 2)(*pair) for pair in ((3, 6), (4, 6), (0, -1), (1 << 62, 1 << 62))]

    def any_tensor():
        pointer = (memory.ctypes.data, memory.ctypes.data + 3, None)[rng.choice(3, p=[0.8, 0.1, 0.1])]
        return Tensor(
            pointer, rng.choice([1, 8, -7]), rng.integers(-1, 4), sizes[rng.choice(4, p=[0.45, 0.45, 0.05, 0.05])]
        )

    codes = [library.code([any_tensor(), any_tensor()], [any_tensor()]) for _ in range(5000)]
    assert len(set(codes)) > 8 and all(library.error(code) != b"unknown error code" for code in codes)


def test_arguments_that_are_one_tensor_are_two_inputs(tmp_path):
    x = taeda.ones(4, requires_grad=True)
    build(Apply(lambda a, b: a - 2 * b), tmp_path / "pair.so", (x, x))
    a, b, out = np.arange(4, dtype=np.float32), np.ones(4, np.float32), np.zeros(4, np.float32)
    Library(tmp_path / "pair.so", "pair").run([a, b], [out])
    assert out.tolist() == [-2, -1, 0, 1]


def test_two_outputs_in_one_place(tmp_path):
    build(Apply(lambda a: (a + 1, a + 2)), tmp_path / "two.so", (taeda.zeros(4),))
    library, x, y = Library(tmp_path / "two.so", "two"), np.zeros(4, np.float32), np.zeros(8, np.float32)
    assert "share memory" in library.text([tensor(x)], [tensor(y[:4]), tensor(y[3:7])])
    assert library.library.two_version() == 1
    library.run([x], [y[:4], y[4:]])
    assert y.tolist() == [1] * 4 + [2] * 4


def test_buffers_may_lie_anywhere_and_meet(small):
    folder, _, _ = small
    model = Apply(lambda a: a.flip(0) + 1)
    build(model, folder / "flip.so", (taeda.zeros(1001),))
    library, memory = Library(folder / "flip.so", "flip"), np.zeros(2100, np.uint8).repeat(4)
    for start in (1, 3, 8):  # no float32 lies there by itself
        x = memory[start : start + 4004].view(np.float32)
        x[:] = np.arange(1001)
        y = memory[start + 4 : start + 4008].view(np.float32)
        library.run([x], [y])
        assert np.array_equal(y, np.arange(1001)[::-1] + 1)


def test_several_threads_may_run_it(tmp_path):
    taeda.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3))
    pictures = [taeda.randn(2, 3, 40, 40) for _ in range(4)]
    build(model, tmp_path / "model.so", (pictures[0],))
    library, wrong = Library(tmp_path / "model.so", "model"), []
    library.set_threads(3)
    with taeda.no_grad():
        expected = [model(x).numpy() for x in pictures]

    def work(i):
        for _ in range(30):
            (found,) = library.run([pictures[i].numpy()], [np.zeros_like(expected[i])])
            if not np.array_equal(found, expected[i]):
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_a_fork_has_threads_of_its_own(tmp_path):
    build(Apply(lambda a: a * 2), tmp_path / "twice.so", (taeda.zeros(1 << 17),))
    library, x, out = (
        Library(tmp_path / "twice.so", "twice"),
        np.arange(1 << 17, dtype=np.float32),
        np.zeros(1 << 17, np.float32),
    )
    library.set_threads(3)
    library.run([x], [out])
    child = os.fork()
    if child == 0:
        for _ in range(20):
            out[:] = 0
            library.run([x], [out])
        os._exit(0 if np.array_equal(out, 2 * x) else 1)
    assert os.waitpid(child, 0)[1] == 0
    library.run([x], [out])


def test_a_library_needs_the_c_library_alone(small):
    folder, _, _ = small
    code = """
import sys, numpy as np
sys.path.insert(0, sys.argv[1])
from libraries import Library
(out,) = Library(sys.argv[2], "small").run([np.array([3, 0, 1]), np.arange(24, dtype=np.float32).reshape(4, 6)],
                                           [np.zeros((3, 6), np.float32)])
print(out.sum(), "taeda" in sys.modules)
"""
    found = subprocess.run(
        [sys.executable, "-I", "-c", code, Path(__file__).parent, folder / "small.so"], capture_output=True, text=True
    )
    table = np.arange(24).reshape(4, 6)
    assert found.stdout.split() == [str(2.0 * table[[3, 0, 1]].sum()), "False"], found.stderr


def test_a_program_in_c(tmp_path):
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    taeda.manual_seed(3)
    model, pictures = cnn(), taeda.rand(41, 1, 8, 8)
    sizes = ({0: Dim("batch", min=1, max=16)},)
    build(model, tmp_path / "digits.so", (pictures[:4],), dynamic_shapes=sizes)
    source = Path(__file__).parents[2] / "examples" / "deploy.c"
    command = [
        "cc",
        "-Wall",
        "-Werror",
        "-std=c99",
        f"-I{tmp_path}",
        source,
        tmp_path / "digits.so",
        "-o",
        tmp_path / "deploy",
    ]
    subprocess.run(command, check=True)
    pictures.numpy().tofile(tmp_path / "pictures.bin")
    found = subprocess.run(
        [tmp_path / "deploy", tmp_path / "pictures.bin"],
        env={"LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    with taeda.no_grad():
        expected = [n for batch in pictures.split(16) for n in model(batch).argmax(1).tolist()]
    assert [int(line) for line in found.stdout.split()] == expected, found.stderr


def test_weights_beside(tmp_path):
    model, x = mlp(), taeda.randn(4, 20)
    header = build(model, tmp_path / "a.so", (x,), weights="beside")
    build(mlp(), tmp_path / "b.so", (x,), weights="beside")
    library, out = Library(tmp_path / "a.so", "a"), np.zeros((4, 5), np.float32)
    assert "int a_load(const char *path);" in header.read_text()
    assert "call a_load first" in library.text([tensor(x.numpy())], [tensor(out)])
    load = library.library.a_load
    load.argtypes = [ctypes.c_char_p]
    (tmp_path / "short").write_bytes((tmp_path / "a.weights").read_bytes()[:-1])
    for wrong in (None, b"/nowhere", bytes(tmp_path), bytes(tmp_path / "b.weights"), bytes(tmp_path / "short")):
        assert b"cannot be read, or holds the weights of another" in library.error(load(wrong))
    assert load(bytes(tmp_path / "a.weights")) == load(bytes(tmp_path / "a.weights")) == 0
    library.run([x.numpy()], [out])
    with taeda.no_grad():
        assert np.array_equal(out, model(x).numpy())


def test_other_processors_of_this_kind(tmp_path):
    model, x = cnn(), taeda.randn(2, 1, 8, 8)
    build(model, tmp_path / "net.so", (x,), target="x86-64-v3")
    with taeda.no_grad():
        expected = model(x).numpy()
    (found,) = Library(tmp_path / "net.so", "net").run([x.numpy()], [np.zeros((2, 10), np.float32)])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(NotImplementedError, match="draws random numbers"):
        build(export(nn.Dropout(), (x,)), tmp_path / "drop.so", target="arm64")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="asks CPUID")
def test_a_processor_that_lacks_instructions(tmp_path, monkeypatch):
    monkeypatch.setitem(processor._V2, (0x8FFFFFFF, 0, 0), (1,))  # no processor says anything there
    build(nn.ReLU(), tmp_path / "relu.so", (taeda.ones(4),))
    x = np.ones(4, np.float32)
    assert "this processor lacks" in Library(tmp_path / "relu.so", "relu").text([tensor(x)], [tensor(x)])


def test_code_is_not_writable_and_the_stack_not_run(small):
    folder, _, _ = small
    blob = (folder / "small.so").read_bytes()
    start, count = struct.unpack_from("<Q", blob, 32)[0], struct.unpack_from("<H", blob, 56)[0]
    heads = [struct.unpack_from("<IIQQQQQQ", blob, start + 56 * i) for i in range(count)]
    loaded = [head for head in heads if head[0] == 1]
    assert [head[1] for head in loaded] == [4, 5, 6]
    assert all(head[3] % head[7] == head[2] % head[7] for head in loaded)
    assert [head[1] for head in heads if head[0] == 0x6474E551] == [6]


@pytest.mark.parametrize(
    ("model", "args", "text"),
    [
        (nn.Dropout(), (taeda.ones(5),), "dropout: the model draws random numbers"),
        (Apply(lambda a: a * a.sum().item()), (taeda.ones(5),), "a number is read from a tensor"),
        (Apply(lambda a: taeda.linalg.svd(a)[1]), (taeda.eye(3),), "by linalg_svd"),
        (nn.BatchNorm1d(5), (taeda.randn(8, 5),), "writes to a parameter or buffer"),
        (Apply(lambda a: a.add_(1)), (taeda.ones(5),), "writes to input input0"),
        (Apply(lambda a: 3), (taeda.ones(5),), "expected a model that gives tensors, got int"),
    ],
)
def test_what_is_no_kernel_is_refused(model, args, text, tmp_path):
    with pytest.raises(NotImplementedError, match=text):
        build(model, tmp_path / "model.so", args)
    assert list(tmp_path.iterdir()) == []


def test_wrong_calls(tmp_path):
    with pytest.raises(ValueError, match="expected args"):
        build(nn.Linear(2, 2), tmp_path / "model.so")
    with pytest.raises(ValueError, match="a name that C can use"):
        build(nn.Linear(2, 2), tmp_path / "3.so", (taeda.ones(1, 2),))
    with pytest.raises(TypeError, match="expected an ExportedProgram or a module, got int"):
        build(3, tmp_path / "model.so")
    with pytest.raises(ValueError, match="contiguous"):
        build(nn.ReLU(), tmp_path / "model.so", (taeda.ones(3, 2).t(),))
    with pytest.raises(ValueError, match="expected target to be one of x86-64-v3, arm64"):
        build(nn.ReLU(), tmp_path / "model.so", (taeda.ones(3, 2),), target="sparc")
    with pytest.raises(ValueError, match="pass dynamic_shapes to export"):
        build(export(nn.ReLU(), (taeda.ones(3, 2),)), tmp_path / "model.so", dynamic_shapes=({0: Dim("n", max=4)},))
    with pytest.raises(ValueError, match="'inside' or 'beside'"):
        build(nn.ReLU(), tmp_path / "model.so", (taeda.ones(3, 2),), weights="elsewhere")
    with pytest.raises(ValueError, match="a batch of at most"):
        build(export(nn.ReLU(), (taeda.ones(3, 2),), dynamic_shapes=({0: Dim("n")},)), tmp_path / "model.so")
    sizes = ({0: Dim("n", max=80), 1: Dim("m", max=60)},)
    with pytest.raises(
        ValueError, match="2 sizes that change with at most 4096 combinations, got n from 0 to 80 and m from"
    ):
        build(export(nn.ReLU(), (taeda.ones(3, 2),), dynamic_shapes=sizes), tmp_path / "model.so")
    n = Dim("n", max=4)
    sizes = ({0: n, 1: 2 * n},)
    with pytest.raises(NotImplementedError, match="sizes that change each for itself, got 2\\*n"):
        build(export(nn.ReLU(), (taeda.ones(3, 6),), dynamic_shapes=sizes), tmp_path / "model.so")

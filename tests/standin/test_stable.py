"""Libraries that were built for PyTorch's stable ABI: values of every kind, errors, memory, and what they need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

native = pytest.importorskip("taeda.standin.stable.native", reason="built without a C++ compiler")
pytestmark = pytest.mark.skipif(shutil.which("c++") is None or sys.platform != "linux", reason="needs c++ on Linux")

SOURCE = Path(__file__).with_name("stable_library.cpp")
NO_MEMORY = "a library of PyTorch's stable ABI reads the memory of tensors, and"
PYTORCH = ("torch_cpu", "c10", "c10_cuda")


def build(source, target, *options):
    subprocess.run(["c++", "-O1", "-fPIC", "-shared", "-o", target, source, *options], check=True)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("stable") / "library.so"
    build(SOURCE, path)
    return path


def run(text, library, how=("-m", "taeda.standin"), **env):
    """What a program prints, in which ``ops`` has the library's ops."""
    program = library.with_name(f"program{len(list(library.parent.iterdir()))}.py")
    load = f"import torch\ntorch.ops.load_library({str(library)!r})\nops = torch.ops.stable_test\n"
    program.write_text(load + textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, *how, str(program)], capture_output=True, text=True, env={**os.environ, **env}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_values_go_both_ways(library):
    assert run(
        """
        x = torch.zeros(2, 3).t()
        print(*ops.describe(x, None, [1, -2], "hé"))
        print(*ops.describe(x[0], x, [], "", loud=True, more=6))
        y = torch.ones(3)
        print(ops.scale(y, 2.5), y.tolist(), y._version)
        print(ops.total(torch.arange(6.0).view(2, 3), 1).tolist(), ops.total.default(torch.ones(2), -1).item())
        """,
        library,
    ) == ["hé 3:1 2:3 [2, -4] None 0.5", "! y 2:3 [] 7 0.5", "None [2.5, 2.5, 2.5] 1", "[3.0, 12.0] 2.0"]


def test_errors_are_those_of_the_library(library):
    found = run(
        """
        def error(function, *args):
            try:
                print(function(*args))
            except Exception as error:
                print(type(error).__name__, str(error).partition(chr(10))[0])

        y = torch.ones(2, dtype=torch.double)
        error(ops.scale, y, 2.0)
        error(ops.lost, torch.ones(2))
        error(ops.total, torch.ones(2), 5)
        error(ops.total, torch.ones(2, device="meta"), 0)
        error(ops.scale, torch.ones(2, device="meta"), 1.0)
        error(ops.scale, torch.ones(2).to_sparse(), 1.0)
        error(torch.vmap(lambda x: ops.scale(x, 1.0)), torch.ones(2, 3))
        error(ops.describe, torch.ones(1), None, "a", "b")
        error(ops.total, torch.ones(2, requires_grad=True).sum(), 0)
        error(torch.ops.load_library, "/nowhere.so")
        error(torch.ops.load_library, __file__)
        print(y.tolist())
        """,
        library,
    )
    assert found[0] == "RuntimeError scale: expected float32"
    assert found[1] == "RuntimeError a library calls the op nobody::knows.default, which is not there"
    assert found[2].startswith("RuntimeError") and "Dimension out of range" in found[2]
    assert found[3] == "tensor(..., device='meta', size=())"  # the native op that it calls gives sizes
    assert found[4] == f"RuntimeError {NO_MEMORY} a Tensor on device meta has none"
    assert found[5] == f"RuntimeError {NO_MEMORY} a SparseTensor on device cpu has none"
    assert all(line.startswith("RuntimeError") for line in found[6:8])
    assert found[8].startswith("tensor(2., grad_fn=")
    assert [line.split()[0] for line in found[9:11]] == ["OSError", "OSError"]
    assert found[11] == "[1.0, 1.0]"


def test_memory_of_the_library_is_given_back(library):
    assert run(
        """
        import gc
        x = ops.given(5)
        y = x[2:]
        print(x.tolist(), ops.given_back())
        del x
        gc.collect()
        print(y.tolist(), ops.given_back())
        del y
        gc.collect()
        print(ops.given_back())
        """,
        library,
    ) == ["[0.0, 1.0, 2.0, 3.0, 4.0] 0", "[2.0, 3.0, 4.0] 0", "1"]


def test_a_derivative_is_registered(library):
    assert run(
        """
        def backward(ctx, grad):
            return grad.unsqueeze(ctx.dim).expand(ctx.sizes), None

        def setup_context(ctx, inputs, output):
            ctx.dim, ctx.sizes = inputs[1], inputs[0].shape

        torch.library.register_autograd("stable_test::total", backward, setup_context=setup_context)
        torch.library.register_fake("stable_test::total")(lambda x, dim: x.sum(dim))
        x = torch.rand(2, 3, requires_grad=True)
        ops.total(x, 0)[1].backward()
        print(x.grad.tolist(), ops.total(torch.ones(2, 3, device="meta"), 0).shape)
        """,
        library,
    ) == ["[[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]] torch.Size([3])"]


def test_what_records_takes_an_op_as_one(library):
    found = run(
        """
        from torch.fx.experimental.proxy_tensor import make_fx
        for record in (torch.jit.trace, lambda f, x: make_fx(f)(x), lambda f, x: torch.compile(f)):
            print(record(lambda x: ops.total(x, 0) * 2, torch.ones(2))(torch.ones(3)).item())
        """,
        library,
    )
    assert found == ["6.0", "6.0", "6.0"]


def test_pytorchs_libraries_are_not_needed(tmp_path):
    """A library that names PyTorch's libraries, CUDA's with a version, and one that lies beside it."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "own.libs").mkdir()
    (tmp_path / "empty.cpp").write_text("")
    (tmp_path / "runtime.cpp").write_text(
        'extern "C" { int cudaGetDevice(int *) { return 0; } void **__cudaRegisterFatBinary(void *) { return 0; } }'
    )
    (tmp_path / "versions").write_text("libcudart.so.13 { global: *; };")
    options = []
    for name in PYTORCH:
        build(tmp_path / "empty.cpp", tmp_path / "parts" / f"lib{name}.so", f"-Wl,-soname,lib{name}.so")
        options.append(f"-l{name}")
    runtime = tmp_path / "parts" / "libcudart.so"
    build(tmp_path / "runtime.cpp", runtime, "-Wl,-soname,libcudart.so.13", f"-Wl,--version-script={tmp_path}/versions")
    build(tmp_path / "empty.cpp", tmp_path / "own.libs" / "libbeside.so", "-Wl,-soname,libbeside.so")
    (tmp_path / "own").mkdir()
    library = tmp_path / "own" / "library.so"
    where = [f"-L{tmp_path / 'parts'}", f"-L{tmp_path / 'own.libs'}", "-Wl,--no-as-needed", *options]
    build(SOURCE, library, "-DCUDA", *where, "-lcudart", "-lbeside", "-Wl,-z,lazy", "-Wl,-rpath,$ORIGIN/../own.libs")
    shutil.rmtree(tmp_path / "parts")
    program = "print(ops.total(torch.ones(2, 3), 1).tolist())"
    cache = {"TAEDA_CACHE": str(tmp_path / "cache")}
    assert run(program, library, **cache) == ["[3.0, 3.0]"]
    assert run(program, library, **cache) == ["[3.0, 3.0]"]
    assert len(list((tmp_path / "cache" / "libraries").iterdir())) == 1


HEADERS = """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <optional>

using torch::stable::Tensor;

Tensor clipped(const Tensor& x, double low, std::optional<Tensor> other) {
    STD_TORCH_CHECK(x.scalar_type() == torch::headeronly::ScalarType::Float, "clipped: expected float, got another");
    Tensor y = torch::stable::empty_like(x);
    const float* from = x.const_data_ptr<float>();
    float* to = y.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); i++) to[i] = from[i] < low ? low : from[i];
    return other.has_value() ? torch::stable::subtract(y, other.value()) : y;
}

std::vector<Tensor> halves(const Tensor& x) {
    int64_t n = x.size(0) / 2;
    return {torch::stable::narrow(const_cast<Tensor&>(x), 0, 0, n), torch::stable::transpose(x, 0, 1)};
}

STABLE_TORCH_LIBRARY(stable_test, m) {
    m.def("clipped(Tensor x, float low, Tensor? other=None) -> Tensor");
    m.def("halves(Tensor x) -> Tensor[]");
}
STABLE_TORCH_LIBRARY_IMPL(stable_test, CPU, m) {
    m.impl("clipped", TORCH_BOX(&clipped));
    m.impl("halves", TORCH_BOX(&halves));
}
"""


def test_a_library_of_pytorchs_headers_gives_what_it_gives_there(tmp_path):
    torch = pytest.importorskip("torch")
    headers, libraries = (Path(torch.__file__).parent / name for name in ("include", "lib"))
    (tmp_path / "source.cpp").write_text(HEADERS)
    build(
        tmp_path / "source.cpp", tmp_path / "library.so", "-std=c++20", f"-I{headers}", f"-L{libraries}", "-ltorch_cpu",
        f"-I{headers / 'torch' / 'csrc' / 'api' / 'include'}", f"-I{sysconfig.get_paths()['include']}",
    )  # fmt: skip
    program = """
    x = torch.arange(-3.0, 3.0).view(2, 3)
    print(ops.clipped(x, -1.0), ops.clipped(x, 0.5, x), [y.tolist() for y in ops.halves(x)])
    try:
        ops.clipped(x.double(), 0.0)
    except RuntimeError as error:
        print(str(error).partition(chr(10))[0])
    """
    ours, theirs = run(program, tmp_path / "library.so"), run(program, tmp_path / "library.so", how=())
    assert ours == theirs and len(ours) > 2

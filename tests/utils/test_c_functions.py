"""Functions in C as ops: declarations, checks, gradients, batches, results without values, threads, the cache of builds."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda.library import _c_functions, bind
from taeda.utils import cpp_extension
from taeda.utils.cpp_extension import load, load_inline

try:
    _c_functions.compiler()
except RuntimeError:
    pytest.skip("there is no C compiler", allow_module_level=True)

SOURCE = """
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

void scale(const float *x, float *y, int64_t n, float k) { for (int64_t i = 0; i < n; i++) y[i] = k * x[i]; }

void product(int m, int k, int32_t n, const double a[m][k], const double b[k][n], double c[m][n])
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double s = 0;
            for (int t = 0; t < k; t++) s += a[i][t] * b[t][j];
            c[i][j] = s;
        }
}

/* two results; { in a comment */
void both(const float *x, float *twice, double *half, int64_t n)
{
    for (int64_t i = 0; i < n; i++) { twice[i] = 2 * x[i]; half[i] = x[i] / 2.0; }
}

void add_to(float *y, const float *x, int64_t n, double a) { for (int64_t i = 0; i < n; i++) y[i] += a * x[i]; }

void sums(int64_t rows, int64_t columns, const float x[rows][columns], float y[rows])
{
    for (int64_t i = 0; i < rows; i++) { y[i] = 0; for (int64_t j = 0; j < columns; j++) y[i] += x[i][j]; }
}

void count(uint16_t n, int8_t low, uint8_t step, bool down, int16_t y[n])
{
    for (int i = 0; i < n; i++) y[i] = low + (down ? -1 : 1) * step * i;
}

void biggest(uint64_t k, unsigned long long y[1]) { y[0] = k; }

void fixed(const int32_t x[2][3], int32_t y[3][2])
{
    for (int i = 0; i < 2; i++) for (int j = 0; j < 3; j++) y[j][i] = x[i][j];
}

void many(const float *a, const float *b, int64_t n, float k0, double k1, int8_t k2, float k3, double k4, float k5,
          double k6, float k7, double k8, float k9, int32_t k10, const float *c, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i] + c[i] + k0 + k1 + k2 + k3 + k4 + k5 + k6 + k7 + k8 + k9 + k10;
}

void sleeps(const float *x, float *y, int64_t n) { usleep(200000); y[0] = x[0]; }

static void hidden(const float *x, float *y, int64_t n) {}
int gives(const float *x) { return 0; }
"""
GIVEN = {name: {} for name in "scale product both sums count biggest fixed many sleeps".split()}
GIVEN |= {"add_to": {"mutates_args": ("y",)}, "sums": {"threads": "rows"}}


@pytest.fixture(scope="module")
def own():
    return load_inline("own_c", c_sources=SOURCE, functions=GIVEN)


def test_values(own):
    x, a, b = taeda.randn(3, 4), taeda.randn(3, 4).double(), taeda.randn(4, 5).double()
    assert taeda.equal(own.scale(x, 3.0), x * 3) and own.scale(x, 3).shape == (3, 4)
    assert taeda.allclose(own.product(a, b), a @ b)
    twice, half = own.both(x)
    assert taeda.equal(twice, x * 2) and taeda.equal(half, x.double() / 2)
    np.testing.assert_array_equal(own.count(4, -100, 3, True).numpy(), np.int16([-100, -103, -106, -109]))
    assert own.biggest(2**64 - 1).tolist() == [2**64 - 1] and own.biggest(0).dtype == taeda.uint64
    t = taeda.arange(6, dtype=taeda.int32).reshape(2, 3)
    assert taeda.equal(own.fixed(t), t.t())
    numbers = [0.5, 1.25, -7, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, -(2**20)]
    got = own.many(x, x, *numbers, x)
    np.testing.assert_allclose(got.numpy(), 3 * x.numpy() + sum(numbers), rtol=1e-6)
    assert own.scale(taeda.empty(0, 4), 2.0).shape == (0, 4)


def test_what_is_named_in_mutates_args_is_written_and_its_version_counts(own):
    y, x = taeda.ones(5), taeda.arange(5.0)
    before = y._version
    assert own.add_to(y, x, 2.0) is None
    assert y.tolist() == [1, 3, 5, 7, 9] and y._version > before
    w = taeda.ones(5, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        own.add_to(w, x, 1.0)
    with taeda.no_grad():
        own.add_to(w, x, 1.0)
    assert w.tolist() == [1, 2, 3, 4, 5]
    z = (w * w).sum()
    with taeda.no_grad():
        own.add_to(w, x, 1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_threads_give_the_same_bits(own):
    x = taeda.randn(3001, 70)
    before = taeda.get_num_threads()
    try:
        taeda.set_num_threads(1)
        one = own.sums(x)
        taeda.set_num_threads(4)
        assert taeda.equal(own.sums(x), one) and taeda.allclose(one, x.sum(1), atol=1e-4)
    finally:
        taeda.set_num_threads(before)


def test_pythons_lock_is_released(own):
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.005):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    own.sleeps(taeda.ones(1))
    done.set()
    thread.join()
    assert len(ticks) > 3


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda own, x: own.scale(x.double(), 1.0), RuntimeError, "float32, as declared, got taeda.float64"),
        (lambda own, x: own.scale(x.t(), 1.0), RuntimeError, r"contiguous.*give .contiguous\(\)"),
        (lambda own, x: own.scale(x), RuntimeError, "missing value for argument 'k'"),
        (lambda own, x: own.scale(x, "a"), RuntimeError, "value of type 'float' for argument 'k'"),
        (lambda own, x: own.scale(x.numpy(), 1.0), RuntimeError, "found type 'ndarray'"),
        (lambda own, x: own.scale(None, 1.0), TypeError, "must be Tensor, not NoneType"),
        (lambda own, x: own.scale(x.to_sparse(), 1.0), NotImplementedError, "sparse tensor"),
        (lambda own, x: own.scale(taeda.nested.nested_tensor([x, x]), 1.0), NotImplementedError, "nested"),
        (lambda own, x: own.scale(x.to(taeda.complex64).conj().imag, 1.0), RuntimeError, "conjugated or negated"),
        (lambda own, x: own.scale(taeda.ones(2, requires_grad=True), 1.0), RuntimeError, "requires grad.*register_autogr"),
        (lambda own, x: own.product(x.double(), x.double()), RuntimeError, "'b' to have size 4 in dimension 0, which is k"),
        (lambda own, x: own.product(x.double()[0], x.double()), RuntimeError, "2 dimensions"),
        (lambda own, x: own.many(x, x[:2].clone(), *[0] * 11, x), RuntimeError, "one shape"),
        (lambda own, x: own.fixed(taeda.ones(2, 4, dtype=taeda.int32)), RuntimeError, "size 3 in dimension 1"),
        (lambda own, x: own.count(5, 200, 1, False), OverflowError, "'low' is 200"),
        (lambda own, x: own.count(-1, 0, 1, False), OverflowError, "'n' is -1"),
        (lambda own, x: own.count(5.0, 0, 1, False), RuntimeError, "value of type 'int' for argument 'n'"),
        (lambda own, x: own.biggest(2**64), OverflowError, "'k'"),
        (lambda own, x: taeda.vmap(lambda t: own.add_to(t, t, 1.0))(x), RuntimeError, "register_vmap"),
        (lambda own, x: own.scale._fn(x.to("meta"), 1.0), NotImplementedError, "meta"),
        (lambda own, x: taeda.vmap(lambda t: own.scale._fn(t, 1.0))(x), NotImplementedError, "batched by vmap"),
    ],
)  # fmt: skip
def test_what_a_call_refuses(own, call, error, says):
    with pytest.raises(error, match=says):
        call(own, taeda.randn(3, 4))


def test_on_device_meta_and_in_a_program_it_goes_by_its_shapes(own):
    made = own.product(taeda.empty(2, 3, device="meta", dtype=taeda.float64), taeda.empty(3, 4, device="meta").double())
    assert made.is_meta and made.shape == (2, 4) and made.dtype == taeda.float64
    twice, half = own.both(taeda.empty(2, device="meta"))
    assert (twice.dtype, half.dtype, half.shape) == (taeda.float32, taeda.float64, (2,))
    with pytest.raises(RuntimeError, match="which is k"):
        own.product(taeda.empty(2, 3, device="meta").double(), taeda.empty(4, 4, device="meta").double())

    class Scales(nn.Module):
        def forward(self, x):
            return own.scale(x + 1, 2.0)

    x = taeda.randn(3, 4)
    program = taeda.export.export(Scales(), (x,))
    assert "own_c.scale.default" in [str(node.target) for node in program.graph.nodes]
    assert taeda.equal(program.module()(x), (x + 1) * 2)
    compiled = taeda.compile(lambda x: own.scale(x + 1, 2.0) * x)
    for _ in range(3):
        assert taeda.equal(compiled(x), (x + 1) * 2 * x)
    static = taeda.compile(lambda x: own.scale(x + 1, 2.0) * x, mode="reduce-overhead")
    for _ in range(5):
        x = taeda.randn(3, 4)
        assert taeda.equal(static(x), (x + 1) * 2 * x)


def test_batches_run_example_by_example(own):
    x, y = taeda.randn(5, 3, 4), taeda.randn(5, 3, 4)
    assert taeda.equal(taeda.vmap(lambda t: own.scale(t, 2.0))(x), x * 2)
    assert taeda.equal(taeda.vmap(lambda t: own.scale(t, 2.0), 2, 2)(x), x * 2)
    assert taeda.equal(taeda.vmap(lambda t: own.both(t)[1])(x), x.double() / 2)
    assert taeda.equal(taeda.vmap(taeda.vmap(lambda t: own.scale(t, 2.0)))(x), x * 2)
    assert taeda.vmap(lambda t: own.scale(t, 2.0))(x[:0]).shape == (0, 3, 4)
    product = taeda.vmap(own.product, (0, None))(x.double(), y[0].t().double().contiguous())
    assert taeda.allclose(product, x.double() @ y[0].t().double())


def test_gradients():
    made = load_inline("own_graded", c_sources=SOURCE, functions=["product"]).product
    with pytest.raises(RuntimeError, match="there is no derivative"):
        made(taeda.ones(1, 1, dtype=taeda.float64, requires_grad=True), taeda.ones(1, 1).double())

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        g = g.contiguous()
        return made(g, b.t().contiguous()), made(a.t().contiguous(), g)

    made.register_autograd(backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    a, b = (taeda.randn(*n, dtype=taeda.float64, requires_grad=True) for n in ((2, 3), (3, 4)))
    assert taeda.autograd.gradcheck(made, (a, b)) and taeda.autograd.gradgradcheck(made, (a, b))
    x, v = a.detach(), taeda.randn(2, 3).double()
    value, tangent = taeda.func.jvp(lambda x: made(x, b.detach()), (x,), (v,))
    assert taeda.allclose(tangent, v @ b.detach()) and taeda.allclose(value, x @ b.detach())
    each = taeda.vmap(taeda.func.grad(lambda x: made(x, b.detach()).sum()))(taeda.stack([x, x]))
    assert taeda.allclose(each[1], b.detach().sum(1).expand(2, 3))
    assert set(taeda.library.opcheck(made, (a, b)).values()) == {"SUCCESS"}


def test_no_grad_by_choice(tmp_path):
    made = load_inline("own_constant", c_sources=SOURCE, functions={"scale": {"no_grad": True}}).scale
    assert not made(taeda.ones(2, requires_grad=True), 2.0).requires_grad
    with pytest.raises(ValueError, match="no_grad=True"):
        load_inline("own_x", c_sources=SOURCE, functions={"scale": {"no_grad": True, "backward": lambda ctx, g: g}})


@pytest.mark.parametrize(
    ("declaration", "says"),
    [
        ("int f(const float *x, float *y, int64_t n)", "gives 'int'; expected 'void'"),
        ("void f(const quux *x, float *y, int64_t n)", "unknown type 'quux'"),
        ("void f(const char *x, float *y, int64_t n)", "write int8_t or uint8_t"),
        ("void f(const void *x, float *y, int64_t n)", "say what it points to"),
        ("void f(const float **x, int64_t n)", "one pointer"),
        ("void f(void (*g)(int))", "pointers to functions"),
        ("void f(const float *, float *y, int64_t n)", "expected a name"),
        ("void f(const float *x, float *y)", "how many elements 'x' has"),
        ("void f(const float *x, int64_t n)", "every pointer is const"),
        ("void f(float *x, int64_t n)", "declare what is read alone const"),
        ("void f(const float x[m], float y[m])", "no whole number 'm'"),
        ("void f(const float x[m + 1], float y[m], int64_t m)", "as a size"),
        ("void f(const float *x, float *x, int64_t n)", "one name"),
        ("f(x)", "expected 'void'"),
        ("void f", "expected a declaration"),
        ("void f(_Float16 k, float y[2])", "cannot be given"),
    ],
)  # fmt: skip
def test_declarations_that_are_refused(declaration, says):
    with pytest.raises(ValueError, match=says):
        _c_functions.as_op("x::f", _c_functions.parse(declaration), 0, (), None, None)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"mutates_args": ("x",)}, "declared const"),
        ({"mutates_args": ("z",)}, "no pointer of that name"),
        ({"threads": "m"}, "names no size"),
        ({"threads": "k"}, "names no size"),
    ],
)
def test_arguments_that_do_not_go_with_the_declaration(own, given, says):
    with pytest.raises(ValueError, match=says):
        bind("void scale(const float *x, float *y, int64_t n, float k)", own.__file__, **given)
    with pytest.raises(ValueError, match="first dimension"):
        bind(
            "void sums(int64_t rows, int64_t columns, const float x[rows][columns], float y[rows])", own.__file__,
            threads="columns",
        )  # fmt: skip


def test_spellings_of_types():
    text = (
        "extern void f(float const *restrict x, const double z[static 3], unsigned long int k, bool b, "
        "float *const y, long n);"
    )
    name, params = _c_functions.parse(text)
    assert name == "f" and [(p.name, p.dtype, p.const, p.dims) for p in params] == [
        ("x", "float32", True, ()), ("z", "float64", True, (3,)), ("k", "uint64", False, None),
        ("b", "bool", False, None), ("y", "float32", False, ()), ("n", "int64", False, None),
    ]  # fmt: skip


def test_libraries_and_symbols(own, tmp_path):
    declaration = "void scale(const float *x, float *y, int64_t n, float k)"
    assert bind(declaration, ctypes.CDLL(own.__file__))(taeda.ones(2), 2.0).tolist() == [2, 2]
    named = bind(declaration, own.__file__, name="own_c2::scaled")
    assert taeda.library.ops.own_c2.scaled.default(taeda.ones(2), 2.0).tolist() == [2, 2]
    assert repr(named) == "<CustomOpDef(own_c2::scaled)>"
    with pytest.raises(AttributeError, match=r"no symbol 'hidden'.*static"):
        bind("void hidden(const float *x, float *y, int64_t n)", own.__file__)
    with pytest.raises(OSError, match=r"cannot load .*nothing.so"):
        bind(declaration, tmp_path / "nothing.so")


def test_half_floats_and_complex_numbers():
    header = "#include <stdint.h>\nvoid same(const uint16_t *x, uint16_t *y, int64_t n)"
    source = header + "{ for (int64_t i = 0; i < n; i++) y[i] = x[i]; }"
    own = load_inline("own_half", c_sources=source)
    for spelled, dtype in (("_Float16", taeda.float16), ("__bf16", taeda.bfloat16)):
        declaration = f"void same(const {spelled} *x, {spelled} *y, int64_t n)"
        same = bind(declaration, own.__file__, name=f"own_half::{spelled}")
        x = taeda.randn(5).to(dtype)
        assert taeda.equal(same(x), x)
    header = "#include <complex.h>\nvoid turn(long n, const float _Complex *z, float _Complex *y)"
    source = header + "{ for (long i = 0; i < n; i++) y[i] = I * z[i]; }"
    z = taeda.randn(3, dtype=taeda.complex64)
    turn = load_inline("own_complex", c_sources=source).turn
    assert taeda.equal(turn(z), z * 1j)
    assert taeda.equal(turn(z.conj().resolve_conj()), z.conj() * 1j)


def test_builds_are_cached_and_a_broken_entry_is_built_again(tmp_path, monkeypatch):
    monkeypatch.setattr(_c_functions, "cache_dir", lambda: tmp_path)
    runs = []
    plain = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda command, **given: (runs.append(command), plain(command, **given))[1])

    def built():
        runs.clear()
        load_inline("own_cached", c_sources=SOURCE, functions="scale").scale(taeda.ones(2), 2.0)
        return sum("-shared" in command and "-E" not in command for command in runs)

    assert [built(), built()] == [1, 0]
    (path,) = tmp_path.glob("c/*/*.so")
    broken = path.read_bytes()[:-200]
    path.unlink()  # the loaded library keeps its own
    path.write_bytes(broken)
    assert [built(), built()] == [1, 0]
    assert not list(tmp_path.glob("c/*/*.tmp"))


def test_files_and_errors_of_the_compiler(tmp_path, monkeypatch):
    (tmp_path / "own.h").write_text("#include <stdint.h>\n#define TWICE 2\n")
    file = tmp_path / "own.c"
    header = "void twice(const float *x, float *y, int64_t n)"
    file.write_text('#include "own.h"\n' + header + " { for (int64_t i = 0; i < n; i++) y[i] = TWICE * x[i]; }")
    assert load("own_file", [file]).twice(taeda.ones(2)).tolist() == [2, 2]
    (tmp_path / "own.h").write_text("#include <stdint.h>\n#define TWICE 3\n")
    assert load("own_file", [file]).twice(taeda.ones(2)).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match=r"(?s)Error building extension 'own_bad'.*quux"):
        load_inline("own_bad", c_sources="void f(const float *x, float *y, long n) { quux; }")
    with pytest.raises(ValueError, match=r"define no function 'g'.*they have scale, "):
        load_inline("own_bad", c_sources=SOURCE, functions=["g"])
    with pytest.raises(TypeError, match="the text of a file in C, got int"):
        load_inline("own_bad", c_sources=3)
    copy = "void copy(const float *x, float *y, int64_t n) { for (size_t i = 0; i < n; i++) y[i] = x[i]; }"
    assert load_inline("own_plain", c_sources=copy).copy(taeda.ones(2)).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="int64_t"):
        load_inline("own_bad", c_sources=copy, no_implicit_headers=True)
    with pytest.raises(NotImplementedError, match="C\\+\\+"):
        load_inline("own_bad", "#include <torch/extension.h>")
    with pytest.raises(NotImplementedError, match="C\\+\\+"):
        load("own_bad", ["own.cpp"])
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(RuntimeError, match="found no C compiler named 'no-such-compiler'"):
        load_inline("own_bad", c_sources=SOURCE + "/* new */")
    assert cpp_extension.is_ninja_available() is False


def test_a_library_that_is_written_refuses_it(own, tmp_path):
    class Scales(nn.Module):
        def forward(self, x):
            return own.scale(x + 1, 2.0)

    program = taeda.export.export(Scales(), (taeda.randn(3, 4),))
    with pytest.raises(NotImplementedError, match=r"library.bind"):
        taeda.export.library.build(program, str(tmp_path / "scales.so"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork(own):
    x = taeda.randn(4000, 70)
    want = own.sums(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if taeda.equal(own.sums(x), want) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_example(tmp_path):
    path = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "c_function.py")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split(":")[1]) < 0.01


def test_truth_values_in_memory():
    source = (
        "#include <stdbool.h>\nvoid no(const bool *x, bool *y, long n) { for (long i = 0; i < n; i++) y[i] = !x[i]; }"
    )
    module = load_inline("truth_values", c_sources=source)
    assert module.no(taeda.tensor([True, False])).tolist() == [False, True]


def test_errors_about_memory_name_the_function_and_the_argument(own):
    x = taeda.ones(2, 2)
    turned = taeda.view_as_complex(taeda.ones(2, 2)).conj().imag
    for wrong in (x.to_sparse(), x.to_sparse_csr(), turned):
        with pytest.raises((NotImplementedError, RuntimeError), match=r"scale\(\): argument 'x': this needs elements"):
            own.scale(wrong, 2.0)
    with pytest.raises(TypeError, match="expected a declaration in C, a str, got NoneType"):
        bind(None)

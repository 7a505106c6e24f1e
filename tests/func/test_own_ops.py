"""Ops of programs beside PyTorch's: what a call refuses, schemas, devices, tags, derivatives of every kind, lists."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

LIBRARIES = (taeda, torch)


def made(T, name, fn, schema="(Tensor x) -> Tensor", **given):
    """An op of either library."""
    return T.library.custom_op(f"own_ops::{name}", fn, schema=schema, **{"mutates_args": (), **given})


SEEN: list = []


def scaled(x, k, n=2, s="a", b=False, ints=None):
    SEEN.append((type(k).__name__, type(n).__name__, s, b, type(ints).__name__, ints))
    return x * k


SCHEMA = '(Tensor x, float k, int n=2, str s="a", bool b=False, int[]? ints=None) -> Tensor'


@pytest.fixture(scope="module")
def both():
    return [(T, made(T, "scaled", scaled, SCHEMA)) for T in LIBRARIES]


CALLS = {
    "an int for a float": lambda T, f, x: f(x, 2),
    "all by name": lambda T, f, x: f(x=x, k=2.0, n=3, s="b", b=True, ints=[1]),
    "text for a tensor": lambda T, f, x: f("x", 2.0),
    "an array for a tensor": lambda T, f, x: f(np.ones(2), 2.0),
    "a list for a tensor": lambda T, f, x: f([1.0], 2.0),
    "a float for an int": lambda T, f, x: f(x, 2.0, 2.0),
    "a bool for an int": lambda T, f, x: f(x, 2.0, True),
    "a bool for a float": lambda T, f, x: f(x, True),
    "a tensor for a float": lambda T, f, x: f(x, T.tensor(2.0)),
    "a tensor for an int": lambda T, f, x: f(x, 2.0, T.tensor(2)),
    "a number of NumPy's": lambda T, f, x: f(x, np.float32(2)),
    "an int for a bool": lambda T, f, x: f(x, 2.0, b=1),
    "a tuple for a list": lambda T, f, x: f(x, 2.0, ints=(1, 2)),
    "an int for a list": lambda T, f, x: f(x, 2.0, ints=3),
    "a float in a list of ints": lambda T, f, x: f(x, 2.0, ints=[1.5]),
    "an int for text": lambda T, f, x: f(x, 2.0, s=3),
    "too few": lambda T, f, x: f(x),
    "too many": lambda T, f, x: f(x, 2.0, 2, "a", False, None, 3),
    "an unknown name": lambda T, f, x: f(x, 2.0, zz=1),
    "twice": lambda T, f, x: f(x, 2.0, x=x),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_are_checked_and_converted_as_by_pytorch(both, name):
    found = []
    for T, f in both:
        SEEN.clear()
        try:
            result = CALLS[name](T, f, T.ones(2)).tolist()
        except Exception as error:
            result = type(error).__name__
        found.append((result, list(SEEN)))
    assert found[0] == found[1]


def annotated(x, k: float):
    return x


DECLARATIONS = {
    "without hints": lambda T: T.library.custom_op("own_ops::a", lambda x: x, mutates_args=()),
    "one hint is missing": lambda T: T.library.custom_op("own_ops::a", annotated, mutates_args=()),
    "no mutates_args": lambda T: T.library.custom_op("own_ops::a", annotated),
    "a schema that writes less": lambda T: made(T, "a", lambda x: x, mutates_args=("x",)),
    "a schema that writes more": lambda T: made(T, "a", lambda x: x, "(Tensor(a!) x) -> Tensor"),
    "an unknown type": lambda T: made(T, "a", lambda x: x, "(Tensr x) -> Tensor"),
    "no arrow": lambda T: made(T, "a", lambda x: x, "(Tensor x)"),
    "an unknown device": lambda T: made(T, "a", lambda x: x, device_types="nonsense"),
    "a tag that is text": lambda T: made(T, "a", lambda x: x, tags="pointwise"),
    "for another device": lambda T: made(T, "b", lambda x: x.clone(), device_types="cuda")(T.ones(2)),
    "no value": lambda T: made(T, "c", lambda x: 3)(T.ones(2)),
    "its argument": lambda T: made(T, "d", lambda x: x)(T.ones(2)),
    "a view of it": lambda T: made(T, "e", lambda x: x.view(-1))(T.ones(2)),
    "one value twice": lambda T: made(T, "f", lambda x: (x + 1,) * 2, "(Tensor x) -> (Tensor, Tensor)")(T.ones(2)),
    "a derivative of an op that writes": lambda T: made(
        T, "g", lambda x: None, "(Tensor(a!) x) -> ()", mutates_args=("x",)
    ).register_autograd(lambda ctx, g: g),
    "a derivative of a tensor by name alone": lambda T: made(
        T, "h", lambda *, x: x.clone(), "(*, Tensor x) -> Tensor"
    ).register_autograd(lambda ctx, g: g),
    "an unknown op": lambda T: T.library.register_autograd("own_ops::nope", lambda ctx, g: g),
    "a batch of an unknown op": lambda T: T.library.register_vmap("own_ops::nope", lambda info, dims, x: (x, 0)),
    "a kind of library": lambda T: T.library.Library("own_ops_a", "NOPE"),
    "a reserved namespace": lambda T: T.library.Library("prim", "DEF"),
    "PyTorch's own namespace": lambda T: T.library.Library("aten", "DEF"),
    "a namespace twice": lambda T: [T.library.Library("own_ops_b", "DEF") for _ in range(2)],
    "an op twice": lambda T: [T.library.define("own_ops::twice", "(Tensor x) -> Tensor") for _ in range(2)],
    "an unknown device's implementation": lambda T: T.library.impl("own_ops::twice", "nope", lambda x: x),
    "no implementation": lambda T: (
        T.library.define("own_ops::later", "(Tensor x) -> Tensor"),
        (T.ops if T is torch else T.library.ops).own_ops.later(T.ones(2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DECLARATIONS)
def test_what_is_refused_with_pytorchs_errors(name):
    found = []
    for T in LIBRARIES:
        with pytest.raises(Exception) as caught:
            DECLARATIONS[name](T)
        found.append(caught.type.__name__)
    if name == "an unknown device":
        assert found[0] == "RuntimeError"
    else:
        assert found[0] == found[1]


def test_triton_is_refused_with_the_reason():
    for function in (taeda.library.triton_op, taeda.library.wrap_triton):
        with pytest.raises(NotImplementedError, match=r"there is no Triton.*custom_op.*library.bind"):
            function("own_ops::t", lambda x: x, mutates_args=())


def test_names_schemas_tags_and_libraries():
    import enum

    Tag = enum.Enum("Tag", "pointwise core")
    op = made(taeda, "tagged", lambda x: x.clone(), tags=[Tag.pointwise])
    overload = taeda.library.ops.own_ops.tagged.default
    assert op.tags == [Tag.pointwise] and str(overload) == "own_ops.tagged.default"
    assert overload._schema == "own_ops::tagged(Tensor x) -> Tensor"
    assert overload(taeda.ones(2)).tolist() == taeda.library.ops.own_ops.tagged(taeda.ones(2)).tolist() == [1, 1]
    library = taeda.library.Library("own_ops_c", "DEF")
    assert library.define("plus(Tensor x, int k=1) -> Tensor") == "plus"
    library.impl("plus", lambda x, k=1: x + k, "CPU")
    library.impl("plus", lambda x, k=1: x * 100, "CUDA")
    x = taeda.ones(2, requires_grad=True)
    made_of_ops = taeda.library.ops.own_ops_c.plus(x, 2)
    assert made_of_ops.tolist() == [3, 3] and made_of_ops.requires_grad  # gradients see into it
    with pytest.raises(RuntimeError, match="multiple times"):
        library.define("plus(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="could not parse dispatch key: NOPE"):
        library.impl("plus", lambda x: x, "NOPE")
    early = taeda.library.Library("own_ops_c", "IMPL")
    early.impl("minus", lambda x, k: x - k, "CPU")  # before it is defined
    library.define("minus(Tensor x, float k) -> Tensor")
    assert taeda.library.ops.own_ops_c.minus(taeda.ones(2), 1).tolist() == [0, 0]
    library._destroy()
    with pytest.raises(AttributeError, match="own_ops_c"):
        _ = taeda.library.ops.own_ops_c.plus
    taeda.library.Library("own_ops_c", "DEF")._destroy()


def cube(T):
    op = made(T, "cube", lambda x, k: T.from_numpy(x.detach().numpy() ** 3 * k), "(Tensor x, float k) -> Tensor")

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * ctx.k * g * x * x, None

    op.register_autograd(backward, setup_context=setup)
    return op


def test_every_derivative_goes_through_the_registered_one():
    op = cube(taeda)
    x = taeda.tensor([1.0, -2.0, 0.5], dtype=taeda.float64)
    plain = lambda x: (x**3 * 2.0).sum()  # noqa: E731
    own = lambda x: op(x, 2.0).sum()  # noqa: E731
    f = taeda.func
    for transform in (
        f.grad,
        f.hessian,
        f.jacrev,
        f.jacfwd,
        lambda g: f.jacrev(f.jacrev(g)),
        lambda g: f.jacfwd(f.grad(g)),
    ):
        np.testing.assert_allclose(transform(own)(x).numpy(), transform(plain)(x).numpy(), rtol=1e-12)
    for got, want in zip(f.jvp(own, (x,), (x + 1,)), f.jvp(plain, (x,), (x + 1,)), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12)
    each = taeda.vmap(f.grad(own))(taeda.stack([x, x + 1]))
    np.testing.assert_allclose(each.numpy(), np.stack([6 * x.numpy() ** 2, 6 * (x.numpy() + 1) ** 2]), rtol=1e-12)
    assert taeda.autograd.gradcheck(lambda x: op(x, 2.0), x.clone().requires_grad_())
    assert set(taeda.library.opcheck(op, (x.clone().requires_grad_(), 2.0), test_utils="test_schema").values()) == {
        "SUCCESS"
    }


def test_gradients_of_lists_defaults_and_arguments_by_name_alone():
    results = []
    for T in LIBRARIES:
        op = made(T, "weighted", lambda xs, y, w=2.0: sum(xs) * w + y, "(Tensor[] xs, Tensor y, float w=2.0) -> Tensor")
        named = made(T, "named", lambda x, *, k=1.0: x * k, "(Tensor x, *, float k=1.0) -> Tensor")

        def setup(ctx, inputs, output):
            ctx.n, ctx.w = len(inputs[0]), inputs[2]

        def setup_named(ctx, inputs, keyword_only_inputs, output):
            ctx.k = keyword_only_inputs["k"]

        op.register_autograd(lambda ctx, g: ([g * ctx.w] * ctx.n, g, None), setup_context=setup)
        named.register_autograd(lambda ctx, g: g * ctx.k, setup_context=setup_named)
        xs = [T.ones(2, requires_grad=True), T.ones(2)]
        y = T.ones(2, requires_grad=True)
        (op(xs, y, 2.5) + named(y, k=5.0) + named(y)).sum().backward()
        results.append((xs[0].grad.tolist(), y.grad.tolist(), op([xs[1]], xs[1], 3).tolist()))
    assert results[0] == results[1]


def test_a_wrong_number_of_gradients_is_an_error():
    op = made(taeda, "miscounted", lambda x, k: x * k, "(Tensor x, float k) -> Tensor")
    op.register_autograd(lambda ctx, g: g)
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 2, got 1\)"):
        op(taeda.ones(2, requires_grad=True), 2.0).sum().backward()


def test_the_body_records_nothing_though_it_reads_parameters():
    weight = taeda.ones(2, requires_grad=True)
    op = made(taeda, "reads", lambda x: x * weight)
    assert not op(taeda.ones(2)).requires_grad
    assert not op(taeda.ones(2), **{}).requires_grad and not op(x=taeda.ones(2)).requires_grad


def test_what_is_written_has_another_version():
    op = made(taeda, "fills", lambda x: x.numpy().fill(3) and None, "(Tensor(a!) x) -> ()", mutates_args=("x",))
    x = taeda.ones(2)
    w = taeda.ones(2, requires_grad=True)
    y = (w * x).sum()
    before = x._version
    assert op(x) is None and x.tolist() == [3, 3] and x._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_another_implementation_takes_the_place_of_the_first():
    op = made(taeda, "replaced", lambda x: x + 1)
    op.register_kernel("cuda", lambda x: x + 100)
    assert op(taeda.ones(1)).tolist() == [2]
    op.register_kernel("cpu", lambda x: x + 2)
    assert op(taeda.ones(1)).tolist() == [3]
    op.register_kernel(None)(lambda x: x + 3)
    assert op(taeda.ones(1)).tolist() == [3]  # what is for the CPU comes first
    op.register_autograd(lambda ctx, g: g * 7)
    x = taeda.ones(1, requires_grad=True)
    op(x).backward()
    assert x.grad.tolist() == [7]
    op.register_kernel("cpu", lambda x: x + 4)
    assert op(x).tolist() == [5] and op(x).requires_grad


def test_a_kernel_can_be_turned_off(caplog):
    def program(T):
        op = made(T, "switched", lambda x: x + 1)
        x, seen = T.zeros(1), []

        def inside(kind, enabled, *what):
            with op.set_kernel_enabled(kind, enabled):
                seen.append(op(x).tolist())
                for f in what:
                    f()
                    seen.append(op(x).tolist())

        inside(None, False)
        op.register_kernel(None, lambda x: x + 2)
        op.register_kernel("cpu")(lambda x: x + 3)
        inside("cpu", False)
        inside("cpu", False, lambda: inside("cpu", True), lambda: op.register_kernel("cpu", lambda x: x + 4))
        inside("cuda", False)
        inside("cpu", True)
        inside(None, False)
        with pytest.raises(KeyError), op.set_kernel_enabled("cpu", enabled=False):
            raise KeyError
        seen.append(op(x).tolist())
        other = made(T, "switched_elsewhere", lambda x: x + 1, device_types="cuda")
        for block in (contextlib.nullcontext(), other.set_kernel_enabled("cuda", False)):
            with block, pytest.raises(NotImplementedError):
                other(x)
        other.register_kernel(["cpu"], lambda x: x + 2)
        with other.set_kernel_enabled("cpu", False):
            seen.append(other(x).tolist())
        return seen

    assert program(taeda) == program(torch)
    assert "enable the kernel for cpu: it was already enabled" in caplog.text
    assert "disable the kernel for cuda: none is registered" in caplog.text


def test_a_library_refuses_what_pytorch_refuses():
    def program(T):
        library = T.library.Library("own_ops_kept", "DEF")
        seen = [repr(library)]
        steps = [
            lambda: library.define("f(Tensor x) -> Tensor", "PURE_FUNCTION"),
            lambda: library.define("f(Tensor x) -> Tensor", "CONSERVATIVE"),
            lambda: library.impl(3, len, "CPU"),
            lambda: library.impl("f", lambda x: x + 1, "CPU", allow_override=False),
            lambda: library.impl("f", lambda x: x + 2, "CPU", allow_override=False),
            lambda: library.impl("f", lambda x: x + 3, "CPU"),
        ]
        for step in steps:
            try:
                seen.append(step())
            except Exception as error:
                seen.append((type(error), str(error)))
        library._destroy()
        return seen

    assert program(taeda) == program(torch)
    library = taeda.library.Library("own_ops_kept", "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x + 1, "CPU", allow_override=False)  # the first library took its own away
    with pytest.raises(NotImplementedError, match="with_keyset"):
        library.impl("f", lambda keys, x: x, "CPU", with_keyset=True)


def test_implementations_of_ops_given_as_objects():
    lib = taeda.library.Library("as_objects", "DEF")
    lib.define("double(Tensor x) -> Tensor")
    op = taeda.library.ops.as_objects.double
    taeda.library.impl(lib, op.default, "CPU")(lambda x: x * 2)
    assert op(taeda.ones(2)).tolist() == [2.0, 2.0]
    with pytest.warns(UserWarning, match="aten::sum keeps its implementation"):
        taeda.library.Library("aten", "IMPL").impl("sum", lambda x: x, "CPU")

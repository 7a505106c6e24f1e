"""``autograd.Function`` under ``vmap`` and the other transformations: how its rules are called, against PyTorch."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")


def functions(f, log):
    """Functions with rules of each kind; ``log`` gets what a rule was told."""
    Function = f.autograd.Function

    class Nested(Function):
        @staticmethod
        def forward(x, pair, named, k):
            return x * pair[0] + pair[1] * named["s"] * k, {"twice": x * 2}

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[1][0])

        @staticmethod
        def backward(ctx, g, _):
            return g * ctx.saved_tensors[0], None, None, None

        @staticmethod
        def vmap(info, in_dims, x, pair, named, k):
            log.append((info.batch_size, info.randomness, in_dims, type(pair).__name__, tuple(pair[0].shape)))
            return Nested.apply(x, pair, named, k), (0, {"twice": in_dims[0]})

    class Product(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * 2 * x * y, g * x * x

        @staticmethod
        def jvp(ctx, dx, dy):
            x, y = ctx.saved_tensors
            return dx * 2 * x * y + dy * x * x

    class Base(Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

        @staticmethod
        def vmap(info, in_dims, x):
            log.append(in_dims)
            return Base.apply(x), in_dims[0]

    class Derived(Base):
        pass

    class Both(Base):
        generate_vmap_rule = True

    class NoPair(Base):
        @staticmethod
        def vmap(info, in_dims, x):
            return Base.apply(x)

    class Given(Base):
        @staticmethod
        def forward(x, n):
            return x, n

        @staticmethod
        def backward(ctx, g, h):
            return g, h

        @staticmethod
        def vmap(info, in_dims, x, n):
            return (x, n), in_dims

    return locals()


PROGRAMS = {
    "tuples and dicts": lambda f, F, x, y: f.vmap(
        lambda a, b: F["Nested"].apply(a, (b, a), {"s": f.tensor(2.0)}, 3)[0]
    )(x, y),
    "a list": lambda f, F, x, y: f.vmap(lambda a, b: F["Nested"].apply(a, [b, a], {"s": a[0]}, 3)[0])(x, y),
    "one batched within a dict": lambda f, F, x, y: f.vmap(
        lambda a: F["Nested"].apply(y[0], (y[1], y[2]), {"s": a}, 3)[0]
    )(x),
    "nothing batched": lambda f, F, x, y: f.vmap(lambda a: F["Nested"].apply(y[0], (y[1], y[2]), {"s": y}, 3)[0] + a)(
        x
    ),
    "a nested result": lambda f, F, x, y: f.vmap(lambda a: F["Nested"].apply(a, (a, a), {"s": a}, 1)[1]["twice"])(x),
    "gradient of nested": lambda f, F, x, y: f.vmap(
        f.func.grad(lambda a, b: F["Nested"].apply(a, (b, b), {"s": b}, 3)[0].sum())
    )(x, y),
    "generated": lambda f, F, x, y: f.vmap(F["Product"].apply)(x, y),
    "generated with a shared one": lambda f, F, x, y: f.vmap(F["Product"].apply, (0, None))(x, y[0]),
    "gradients of generated": lambda f, F, x, y: f.vmap(f.func.grad(lambda a, b: F["Product"].apply(a, b).sum()))(x, y),
    "gradient of vmap of generated": lambda f, F, x, y: f.func.grad(lambda a: f.vmap(F["Product"].apply)(a, y).sum())(
        x
    ),
    "tangents of vmap": lambda f, F, x, y: f.func.jvp(f.vmap(F["Product"].apply), (x, y), (x, y))[1],
    "vmap of tangents": lambda f, F, x, y: f.vmap(lambda a, b: f.func.jvp(F["Product"].apply, (a, b), (a, b))[1])(x, y),
    "nested vmap": lambda f, F, x, y: f.vmap(f.vmap(F["Base"].apply))(x),
    "jacrev": lambda f, F, x, y: f.func.jacrev(F["Base"].apply)(x[0]),
    "hessian": lambda f, F, x, y: f.func.hessian(lambda a: F["Product"].apply(a, y[0]).sum())(x[0]),
    "an inherited rule": lambda f, F, x, y: f.vmap(F["Derived"].apply)(x),
    "both a rule and a generated one": lambda f, F, x, y: f.vmap(F["Both"].apply)(x),
    "no place of the batch": lambda f, F, x, y: f.vmap(F["NoPair"].apply)(x),
    "arguments given back": lambda f, F, x, y: f.vmap(lambda a: a * (F["Given"].apply(a, y[0])[0] is a))(x),
    "what is not batched given back": lambda f, F, x, y: f.vmap(lambda a: F["Given"].apply(a, y[0])[1] + a)(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    made = []
    for f in (torch, taeda):
        log, x = [], f.arange(6.0).reshape(3, 2)
        try:
            result = PROGRAMS[name](f, functions(f, log), x, x.flip(0) + 1).tolist()
        except Exception as error:
            result = type(error)
        made.append((result, log))
    (want, told), (got, heard) = made
    assert heard == told
    assert got is want if isinstance(want, type) else np.allclose(got, want)


def test_examples_one_after_the_other_see_their_part_of_a_dict():
    """A Function without a rule, which PyTorch refuses, runs example by example, whatever the arguments are in."""

    class Sum(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, named, *, scale):
            assert named["x"].dim() == scale.dim() + 1 == 1
            return named["x"].sum() * scale

        @staticmethod
        def backward(ctx, g):
            return None

    x = taeda.arange(6.0).reshape(3, 2)
    assert taeda.vmap(lambda a: Sum.apply({"x": a}, scale=a[0]))(x).tolist() == [0, 10, 36]

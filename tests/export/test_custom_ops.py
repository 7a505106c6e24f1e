"""Ops of one's own in exported programs, and autocast."""

from __future__ import annotations

import io

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda.aten import DECLARED
from taeda.export import Dim, export, load, save


@taeda.library.custom_op("exported::wave", mutates_args=())
def wave(x: taeda.Tensor, n: int = 2) -> taeda.Tensor:
    return taeda.from_numpy(np.sin(x.detach().numpy()) * n)


@wave.register_fake
def _(x, n=2):
    return taeda.empty_like(x)


wave.register_autograd(
    lambda ctx, g: (g * ctx.saved_tensors[0].cos() * ctx.n, None),
    setup_context=lambda ctx, inputs, output: (ctx.save_for_backward(inputs[0]), setattr(ctx, "n", inputs[1])),
)


@taeda.library.custom_op("exported::add_one_", mutates_args={"x"})
def add_one_(x: taeda.Tensor) -> None:
    x.numpy()[...] += 1


class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return wave(self.linear(x)) + wave(x, 3)


class Writes(nn.Module):
    def forward(self, x):
        y = x.clone()
        add_one_(y)
        return y * 2


def test_a_custom_op_is_a_step_that_is_saved_and_has_its_derivative():
    model, x = Waves(), taeda.randn(2, 3)
    program = export(model, (x,), dynamic_shapes=({0: Dim("b")},))
    assert [str(n.target) for n in program.graph.nodes].count("exported.wave.default") == 2
    file = io.BytesIO()
    save(program, file)
    y = taeda.randn(5, 3)
    for made in (program, program.run_decompositions(), load(io.BytesIO(file.getvalue()))):
        assert taeda.equal(made.module()(y), model(y))
    module = program.module()
    module(y).sum().backward()
    got = module.linear.weight.grad.clone()
    module.zero_grad()
    model(y).sum().backward()
    assert taeda.equal(got, model.linear.weight.grad)


def test_a_custom_op_that_writes_is_kept():
    program, x = export(Writes(), (taeda.ones(2),)), taeda.ones(2)
    assert program.module()(x).tolist() == program.run_decompositions().module()(x).tolist() == [4, 4]
    assert x.tolist() == [1, 1]


def test_a_file_with_an_op_that_is_not_there():
    file = io.BytesIO()
    save(export(Waves(), (taeda.randn(2, 3),)), file)
    own = DECLARED.pop("exported::wave")
    try:
        with pytest.raises(ValueError, match="exported::wave"):
            load(io.BytesIO(file.getvalue()))
    finally:
        DECLARED["exported::wave"] = own


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        with taeda.autocast("cpu", dtype=taeda.bfloat16):
            y = self.norm(self.linear(x)).softmax(-1)
            z, _ = self.attention(y, y, y)
            with taeda.autocast("cpu", enabled=False):
                w = x @ x.transpose(1, 2)
            both = taeda.cat([z, x], 1)
        return y, z, w, both, self.linear(x)


def test_autocast_is_part_of_the_program():
    model, x = Mixed(), taeda.randn(2, 3, 4)
    program = export(model, (x,), dynamic_shapes=({0: Dim("b")},))
    x = taeda.randn(5, 3, 4)
    want = model(x)
    assert want[1].dtype == taeda.bfloat16
    for made in (program, program.run_decompositions()):
        for got, y in zip(made.module()(x), want, strict=True):
            assert got.dtype == y.dtype and taeda.allclose(got.float(), y.float(), 1e-2, 1e-2)


def test_autocast_around_export_is_not():
    model, x = nn.Linear(4, 4), taeda.randn(2, 4)
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        program = export(model, (x,))
    assert program.module()(x).dtype == taeda.float32


def test_a_decomposition_of_the_callers_own():
    program, x = export(nn.Sigmoid(), (taeda.ones(3),)), taeda.randn(3)
    fewer = program.run_decompositions({taeda.sigmoid: lambda x: 1 / (1 + taeda.exp(-x))})
    assert "sigmoid" not in [n.name for n in fewer.graph.nodes]
    assert taeda.allclose(fewer.module()(x), x.sigmoid())
    with pytest.raises(AttributeError, match="nope"):
        program.run_decompositions({taeda.sigmoid: lambda x: x.nope()})
    with pytest.raises(RuntimeError, match="sizes and dtypes"):
        program.run_decompositions({taeda.sigmoid: lambda x: x.sum()})


def test_an_op_is_compared_with_what_it_was_registered_to_do():
    check, kind = taeda.library.opcheck, taeda.library.OpCheckError

    def made(name, fn, fake=None, mutates=()):
        schema = None if fn is scaled else "(Tensor(a!) x) -> ()" if mutates else "(Tensor x) -> Tensor"
        op = taeda.library.custom_op(f"checked::{name}", fn, mutates_args=mutates, schema=schema)
        if fake is not None:
            op.register_fake(fake)
        return op

    def scaled(x: taeda.Tensor, k: float) -> taeda.Tensor:
        return taeda.from_numpy(x.detach().numpy() * k)

    def setup(ctx, inputs, output):
        ctx.k = inputs[1]

    good = made("scaled", scaled, lambda x, k: taeda.empty_like(x))
    good.register_autograd(lambda ctx, g: (g * ctx.k, None), setup_context=setup)
    x = taeda.randn(3)
    every = check(good, (taeda.randn(3, requires_grad=True), 2.0))
    assert len(every) == 4 and set(every.values()) == {"SUCCESS"}
    same = taeda.empty_like
    bad = {
        "test_schema": [
            made("writes", lambda x: x.add_(1).clone(), same),
            made("gives_its_argument", lambda x: x.view(-1), same),
        ],
        "test_faketensor": [made("form", lambda x: x.sum(), same), made("lacks", lambda x: x * 2)],
        "test_autograd_registration": [made("records", lambda x: x * 2, same)],
        "test_aot_dispatch_dynamic": [made("counts", lambda x, seen=[]: (seen.append(0), x + len(seen))[1], same)],
    }
    for name, ops in bad.items():
        given = (x.clone().requires_grad_(name == "test_autograd_registration"),)
        for op in ops:
            with pytest.raises(kind, match="checked::"):
                check(op, given, test_utils=name)
            assert check(op, given, test_utils=name, raise_exception=False)[name] != "SUCCESS"
    assert check(made("written", lambda x: x.mul_(2) and None, lambda x: None, {"x"}), (taeda.ones(1),))
    with pytest.raises(ValueError, match="custom_op"):
        check(taeda.sin, (x,))
    with pytest.raises(ValueError, match="test_schema"):
        check(good, (x, 1.0), test_utils="test_speed")


def test_under_autocast_it_casts_as_registered():
    @taeda.library.custom_op("exported::dtype_of", mutates_args=())
    def dtype_of(x: taeda.Tensor, s: float = 1.0) -> taeda.Tensor:
        return x * s

    taeda.library.register_autocast("exported::dtype_of", "cpu", taeda.bfloat16)
    assert dtype_of(taeda.ones(2)).dtype is taeda.float32
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        assert dtype_of(taeda.ones(2)).dtype is taeda.bfloat16
        assert dtype_of(taeda.ones(2, dtype=taeda.float64)).dtype is taeda.float64


def test_an_implementation_for_autocast_is_what_runs_under_it():
    library = taeda.library.Library("exported_cast", "DEF")
    library.define("plus(Tensor x, Tensor y) -> Tensor")
    library.impl("plus", lambda x, y: x + y, "CPU")
    plus = taeda.library.ops.exported_cast.plus
    seen = []

    def cast(x, y):
        seen.append(taeda.is_autocast_enabled("cpu"))
        with taeda.autocast("cpu", enabled=False):
            return plus(x.float(), y.float())

    library.impl("plus", cast, "AutocastCPU")
    x = taeda.ones(2, dtype=taeda.bfloat16)
    with taeda.autocast("cpu"):
        assert plus(x, x).dtype is taeda.vmap(plus)(x, x).dtype is taeda.float32
        with taeda.autocast("cpu", enabled=False):
            assert plus(x, x).dtype is taeda.bfloat16
    assert plus(x, x).dtype is taeda.bfloat16 and seen == [True, True]


def test_a_second_device_s_autocast_leaves_the_first():
    @taeda.library.custom_op("exported::both_casts", mutates_args=())
    def both(x: taeda.Tensor) -> taeda.Tensor:
        return x * 2

    both.register_autocast("cpu", taeda.bfloat16)
    both.register_autocast("cuda", taeda.float16)
    with taeda.autocast("cpu"):
        assert both(taeda.ones(2)).dtype is taeda.bfloat16
    with pytest.raises(ValueError, match="meta"):
        both.register_autocast("meta", taeda.float16)


def test_the_size_of_a_result_may_depend_on_values():
    @taeda.library.custom_op("exported::positive", mutates_args=())
    def positive(x: taeda.Tensor) -> taeda.Tensor:
        return x[x > 0]

    most = [None]

    @positive.register_fake
    def _(x):
        return x.new_empty(taeda.library.get_ctx().new_dynamic_size(min=1, max=most[0]))

    class Model(taeda.nn.Module):
        def forward(self, x):
            return positive(x) * 2

    program = taeda.export.export(Model(), (taeda.randn(5),), dynamic_shapes=({0: taeda.export.Dim("n")},))
    assert program.module()(taeda.tensor([1.0, -1, 3])).tolist() == [2.0, 6.0]
    most[0] = 5
    program = taeda.export.export(Model(), (taeda.randn(5),))
    bounds = program.range_constraints["u0"]
    assert (bounds.lower, bounds.upper) == (1, 5)
    assert taeda.library.get_ctx() is None
    with pytest.raises(RuntimeError, match="exported::positive: the sizes of its result depend on values"):
        positive(taeda.ones(2, device="meta"))


def test_an_op_with_an_effect_stays_in_programs():
    @taeda.library.custom_op("exported::says", mutates_args=())
    def says(x: taeda.Tensor) -> taeda.Tensor:
        return x * 2

    says.register_fake(taeda.empty_like)

    class Model(taeda.nn.Module):
        def forward(self, x):
            says(x)
            return x + 1

    for effect in (taeda.library.EffectType.ORDERED, None):
        says.register_effect(effect)
        program = taeda.export.export(Model(), (taeda.ones(2),)).run_decompositions()
        assert ("exported.says" in str(program.graph)) is (effect is not None)


def test_a_fallback_does_what_ops_without_an_implementation_do():
    library = taeda.library.Library("exported_fallen", "DEF")
    library.define("nothing(Tensor x) -> Tensor")
    nothing = taeda.library.ops.exported_fallen.nothing
    every = taeda.library.Library("_", "IMPL")
    every.fallback(lambda op, x: x + 5 if str(op).endswith("nothing.default") else x, "CPU")
    assert nothing(taeda.ones(1)).tolist() == [6.0]
    for wrong, key in [(library, "CPU"), (every, "CPU"), (every, "AutocastCPU"), (every, "Autocast")]:
        with pytest.raises(RuntimeError):
            wrong.fallback(print, key)
    every._destroy()
    with pytest.raises(NotImplementedError):
        nothing(taeda.ones(1))


def test_implementations_in_the_older_form():
    library = taeda.library.Library("exported_old", "DEF")
    library.define("plus(Tensor x, int k=1) -> Tensor")

    @taeda.library.impl(library, "plus", "CPU")
    def plus(x, k=1):
        return x + k

    assert taeda.library.ops.exported_old.plus(taeda.ones(2), 2).tolist() == [3.0, 3.0]


def test_without_a_derivative_no_gradient_is_lost():
    @taeda.library.custom_op("exported::half", mutates_args=())
    def half(x: taeda.Tensor) -> taeda.Tensor:
        return x / 2

    x = taeda.ones(2, requires_grad=True)
    y = half(x)
    assert y.requires_grad and y.tolist() == [0.5, 0.5]
    with pytest.raises(RuntimeError, match="Trying to backward through exported::half"):
        (y + x).sum().backward()
    with taeda.no_grad():
        assert not half(x).requires_grad
    assert not half(x.detach()).requires_grad
    half.register_autograd(lambda ctx, g: g / 2)
    (half(x) + x).sum().backward()
    assert x.grad.tolist() == [1.5, 1.5]


def test_on_device_meta_it_gives_what_was_registered():
    got = wave(taeda.empty(2, 3, device="meta"), n=3)
    assert got.is_meta and got.shape == (2, 3)

    @taeda.library.custom_op("exported::no_sizes", mutates_args=())
    def no_sizes(x: taeda.Tensor) -> taeda.Tensor:
        return x + 1

    assert no_sizes(taeda.empty(2, device="meta")).shape == (2,)  # as its ops say


def test_an_implementation_for_meta_is_what_programs_are_recorded_with():
    library = taeda.library.Library("exported_meta", "DEF")
    library.define("halve(Tensor x) -> Tensor")
    calls = []

    @taeda.library.impl(library, "halve", "CompositeExplicitAutograd")
    def halve(x):
        calls.append(1)
        return x / 2

    @taeda.library.impl(library, "halve", "Meta")
    def halve_meta(x):
        return taeda.empty_like(x)

    class Halves(nn.Module):
        def forward(self, x):
            return taeda.library.ops.exported_meta.halve(x.sin())

    x = taeda.ones(3)
    program = export(Halves(), (x,))
    assert not calls and [str(n.target) for n in program.graph.nodes].count("exported_meta.halve.default") == 1
    assert program.module()(x).equal(x.sin() / 2) and len(calls) == 1

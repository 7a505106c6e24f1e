"""Sizes that may change: what is found out about them, what is refused, and what a program says of its arguments."""

from __future__ import annotations

import pytest

import taeda
import taeda.func.control_flow as control_flow
from taeda import nn
from taeda.export import AdditionalInputs, Dim, ShapesCollection, dims, export
from taeda.export.dynamic_shapes import UserError, refine_dynamic_shapes_from_suggested_fixes


class Function(nn.Module):
    """A module of one argument."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Pair(Function):
    """A module of two arguments."""

    def forward(self, x, y):
        return self.function(x, y)


def square():
    return taeda.randn(4, 4)


def exported(function, sizes, *args):
    return export((Function, Pair)[len(args) - 1](function), args, dynamic_shapes=sizes)


BATCH = Dim("batch")
ROWS = ({0: BATCH},)
AUTO = ({0: Dim.AUTO},)


def looped(x):
    total = 0
    for i in range(x.shape[0]):
        total = total + x[i]
    return total


@pytest.mark.parametrize(
    ("function", "sizes", "constraints"),
    [
        (lambda x: x * 2, ROWS, ["x.shape[0] (batch) is at least 0"]),
        (lambda x: x * 2, ({0: Dim("b", min=2, max=9)},), ["x.shape[0] (b) is at least 2 and at most 9"]),
        (lambda x: x if x.shape[0] > 2 else -x, ROWS, ["x.shape[0] (batch) is at least 3"]),
        (lambda x: x if x.shape[0] < 9 else -x, AUTO, ["x.shape[0] (s0) is at least 0 and at most 8"]),
        (lambda x: x if x.shape[0] <= 9 else -x, AUTO, ["x.shape[0] (s0) is at least 0 and at most 9"]),
        (lambda x: x if 2 * x.shape[0] - 3 >= 4 else -x, AUTO, ["x.shape[0] (s0) is at least 4"]),
        (lambda x: x if x.shape[0] != 7 else -x, AUTO, ["x.shape[0] (s0) is at least 0", "s0 != 7"]),
        (lambda x: x if x.shape[0] == 4 else -x, AUTO, []),
        (lambda x: x if x.shape[0] % 2 == 0 else -x, AUTO, ["x.shape[0] is 2*_s0"]),
        (lambda x: x.view(x.shape[0] // 2, 2, 4), AUTO, ["x.shape[0] is 2*_s0"]),
        (lambda x: x.view(x.shape[0] // 2, 2, 4), ({0: 2 * Dim("h")},), ["x.shape[0] is 2*h"]),
        (lambda x: x.view(4, 2, 2), ({0: Dim.AUTO, 1: Dim.AUTO},), []),
        (lambda x: x + x.t(), ({0: Dim.AUTO, 1: Dim.AUTO},), ["x.shape[1] is s1", "x.shape[0] (s1) is at least 0"]),
        (looped, AUTO, []),
        (lambda x: x.reshape(int(x.shape[0]), 4), AUTO, []),
    ],
)
def test_what_is_found_out(function, sizes, constraints):
    x = square()
    program = exported(function, sizes, x)
    assert program.constraints == constraints
    assert taeda.equal(program.module()(x), function(x))


@pytest.mark.parametrize(
    ("function", "sizes", "message"),
    [
        (lambda x: x.view(4, 2, 2), ROWS, "constant 4 alone: view fails"),
        (lambda x: x.view(x.shape[0] // 2, 2, 4), ROWS, r"batch = 2\*_batch"),
        (lambda x: x if x.shape[0] == 4 else -x, ROWS, "'batch == 4' is True"),
        (lambda x: x if x.shape[0] == 4 else -x, ({0: Dim.DYNAMIC},), "constant 4 alone"),
        (lambda x: x if x.shape[0] > 2 else -x, ({0: Dim("b", min=1, max=9)},), "b = Dim\\('b', min=3, max=9\\)"),
        (looped, ROWS, "constant 4 alone: getitem fails: index 4 is out of bounds"),
        (lambda x: x.new_zeros(int(x.shape[0]), 2), ROWS, "something else at other sizes"),
        (lambda x: x + taeda.tensor([float(x.shape[0])]), ROWS, "lifted_tensor_0 is another one"),
        (lambda x: x, ({5: BATCH},), "has 2 dimensions"),
        (lambda x: x, ({0: "batch"},), "expected a Dim"),
        (lambda x: x, ({0: 5},), "does not match"),
        (lambda x: x, ({0: Dim("b", min=5)},), "not in the range"),
        (lambda x: x, {"y": ROWS[0]}, "top-level keys"),
        (lambda x: x, (None, None), "one item for each"),
        (lambda x: x, ({0: 3 * Dim("h")},), "of the form"),
    ],
)
def test_what_is_refused(function, sizes, message):
    with pytest.raises(UserError, match=message):
        exported(function, sizes, square())


def test_two_arguments():
    x, other = square(), Dim("other")
    with pytest.raises(UserError, match=r"batch = x.shape\[0\] and other = y.shape\[0\] must always be equal"):
        exported(lambda x, y: x + y, ({0: BATCH}, {0: other}), x, x)
    assert len(exported(lambda x, y: x + y, ({0: BATCH}, {0: Dim.AUTO}), x, x).range_constraints) == 1
    program = exported(lambda x, y: x + y[1:], ({0: BATCH}, {0: BATCH + 1}), x, taeda.randn(5, 4))
    assert program.module()(taeda.randn(2, 4), taeda.randn(3, 4)).shape == (2, 4)
    with pytest.raises(RuntimeError, match=r"args\[1\].shape\[0\] to be equal to 3 \(batch \+ 1\), but got 2"):
        program.module()(taeda.randn(2, 4), taeda.randn(2, 4))
    a, b = dims("a", "b")
    program = exported(lambda x, y: x.unsqueeze(1) * y, ({0: a}, {0: b}), x, taeda.randn(3, 4))
    assert tuple(map(str, program.graph.output_node().args[0][0].meta["val"].shape)) == ("a", "b", "4")
    shapes = ShapesCollection()
    shapes[x] = {0: BATCH}
    assert exported(lambda x, y: x * 2, shapes.dynamic_shapes(Pair(None), (x, 3)), x, 3).constraints


def test_one_example_stays_dynamic_when_asked():
    for dim in (BATCH, Dim.DYNAMIC):
        module = exported(lambda x: x * 2 + x.new_ones(x.shape[0], 1), ({0: dim},), taeda.randn(1, 4)).module()
        assert [module(taeda.randn(n, 4)).shape[0] for n in (1, 2, 5)] == [1, 2, 5]
    fixed = exported(lambda x: x * 2, AUTO, taeda.randn(1, 4))
    assert fixed.range_constraints == {}


def test_arguments_of_other_sizes():
    module = exported(lambda x: x if x.shape[0] != 3 else -x, ({0: Dim("b", min=1, max=8)},), square()).module()
    for x, message in (
        (taeda.randn(9, 4), r"args\[0\].shape\[0\] to be <= 8, but got 9"),
        (taeda.randn(2, 5), r"args\[0\].shape\[1\] to be equal to 4, but got 5"),
        (taeda.randn(3, 4), "'b != 3' to be True, but got b = 3"),
        (taeda.randn(2), "to have 2 dimensions"),
        (3, "to be a tensor"),
    ):
        with pytest.raises(RuntimeError, match=message):
            module(x)
    for args, named in (((), {}), ((taeda.randn(2, 4),) * 2, {}), ((taeda.randn(2, 4),), {"other": 3})):
        with pytest.raises(ValueError, match=r"arguments by position|kwarg keyword mismatch"):
            module(*args, **named)
    with pytest.raises(RuntimeError, match="to be a tensor, but got list"):
        module([square()])


def test_a_comparison_of_a_result_is_checked_when_it_runs():
    module = exported(lambda x: x if taeda.cat([x, x]).shape[0] > 4 else -x, AUTO, square()).module()
    assert module(taeda.randn(3, 4)).shape == (3, 4)
    with pytest.raises(RuntimeError, match=r"expected 2\*s0 > 4"):
        module(taeda.randn(2, 4))


def test_parts_that_nobody_uses_need_not_exist():
    program = exported(lambda x: (x.chunk(2, 0)[0], x.shape), ROWS, square())
    part, shape = program.module()(taeda.randn(1, 4))
    assert part.shape == (1, 4) and shape == (1, 4)


def test_numbers_are_fixed():
    class Scaled(nn.Module):
        def forward(self, x, by, mode="sum"):
            return x * by if mode == "sum" else x

    x = square()
    module = export(Scaled(), (x, 2), {"mode": "sum"}).module()
    assert taeda.equal(module(x, 2, mode="sum"), x * 2)
    with pytest.raises(RuntimeError, match=r"args\[1\] to be equal to 2, but got 3"):
        module(x, 3, mode="sum")


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda x: x if x.sum() > 0 else -x, "a condition"),
        (lambda x: x * float(x[0, 0]), "float"),
        (lambda x: x if x.max().item() > 2 else -x, "zuf0 > 2"),
        (lambda x: x if x[x > 0].shape[0] > 2 else -x, "u0 > 2"),
        (lambda x: taeda.nn.functional.one_hot(x.long()), "one_hot"),
        (lambda x: x[: int(x.argmax())], "int"),
    ],
)
def test_values_are_not_known(function, what):
    from taeda.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    with pytest.raises(GuardOnDataDependentSymNode, match=what) as caught:
        exported(function, None, square())
    assert "test_dynamic_shapes.py" in str(caught.value) and "cond(" in str(caught.value)


def test_the_model_is_as_before():
    class Cached(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", taeda.zeros(2))
            self.last, self.all, self.sum = None, [], taeda.zeros(1)

        def forward(self, x, reads=False):
            self.count += 1
            self.last = x * 2
            self.all.append(x)
            if reads:
                self.sum = self.sum + x.sum()
            return x

    model, x = Cached(), square()
    with pytest.warns(UserWarning, match=r"Cached.last, Cached.all were assigned during export.*register_buffer"):
        program = export(model, (x,))
    with pytest.raises(ValueError, match=r"Cached.sum was assigned during export"):
        export(model, (x, True))
    assert model.last is None and model.all == [] and model.sum.tolist() == [0.0]
    assert type(model.count) is taeda.Tensor and model.count.sum() == 0
    assert program.module()(x).equal(x) and model.last is None
    assert taeda._core.mode_stack() == []


def test_what_is_no_model():
    with pytest.raises(ValueError, match="mod"):
        export(lambda x: x, (square(),))
    with pytest.raises(UserError, match="tuple"):
        export(Function(abs), [square()])
    with pytest.raises(ValueError, match="Unsupported input type"):
        export(Function(lambda x: x), (object(),))
    with pytest.raises(UserError, match="Unsupported output type"):
        export(Function(lambda x: object()), (square(),))
    program = export(Function(abs), (square(),))
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(square())
    with pytest.raises(NotImplementedError):
        program.module().train()


class Flow(nn.Module):
    """All of control flow, with tensors and parameters from outside."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        k = x * 2
        a = control_flow.cond(x.sum() > 0, lambda y: self.lin(y) + k, lambda y: y.cos(), (x,))
        i, b = control_flow.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2 + k), (taeda.tensor(0), x))
        c = control_flow.map(lambda r, z: {"m": self.lin(r) + z}, x, a.sum(0))["m"]
        d, e = control_flow.scan(lambda c, r: (c + r, c * r), taeda.zeros(3), x, reverse=True)
        f = control_flow.associative_scan(lambda a, b: a * b, x, 0)
        g = control_flow.associative_scan(lambda a, b: a * b + k[0], x, 0, combine_mode="generic")
        nested = control_flow.cond(
            x.sum() > 0,
            lambda y: control_flow.cond(y.max() > 1, lambda z: z + k, lambda z: z - k, (y,)),
            lambda y: y,
            (x,),
        )
        return a, b, i, c, d, e, f, g, nested


@pytest.mark.parametrize("sizes", [None, ({0: Dim("n", min=1)},)])
def test_control_flow(sizes):
    model, x = Flow(), taeda.randn(4, 3)
    program = export(model, (x,), dynamic_shapes=sizes)
    targets = [n.target.__name__ for n in program.graph.nodes if n.op == "call_function"]
    assert [t for t in targets if t in ("cond", "while_loop", "map", "scan", "associative_scan")] == [
        "cond", "while_loop", "map", "scan", "associative_scan", "associative_scan", "cond"
    ]  # fmt: skip
    for made in (program.module(), program.run_decompositions().module()):
        for given in [x, -x] + ([taeda.randn(7, 3), taeda.randn(1, 3)] if sizes else []):
            for got, want in zip(made(given), model(given), strict=True):
                assert taeda.allclose(got, want, 1e-5, 1e-6)


def test_control_flow_that_does_not_fit():
    def differing(x):
        return control_flow.cond(x.sum() > 0, lambda y: y, lambda y: y[:2], (x,))

    def growing(x):
        return control_flow.while_loop(lambda v: v.sum() > 0, lambda v: (taeda.cat([v, v]),), (x,))

    for function, message in ((differing, "same structure, shapes"), (growing, "body_fn must give tensors like")):
        with pytest.raises(RuntimeError, match=message):
            exported(function, None, square())
    x = square()
    assert taeda.equal(exported(lambda x: control_flow.cond(True, abs, taeda.neg, (x,)), None, x).module()(x), x.abs())


def test_map_and_scan_run_as_loops():
    x = taeda.arange(12.0).reshape(4, 3)
    assert taeda.equal(control_flow.map(lambda r, k: r.cumsum(0) * k, x, 2.0), x.cumsum(1) * 2)
    carry, kept = control_flow.scan(lambda c, r: (c + r, c), taeda.zeros(3), x)
    assert taeda.equal(carry, x.sum(0)) and taeda.equal(kept, x.cumsum(0) - x)
    carry, kept = control_flow.scan(lambda c, r: (c + r, c), taeda.zeros(4), x, dim=1, reverse=True)
    assert taeda.equal(carry, x.sum(1)) and taeda.equal(kept.t(), x.flip(1).cumsum(1).flip(1) - x)
    with pytest.raises(ValueError, match="one size"):
        control_flow.map(lambda p: p[0], (x, x[1:]))
    with pytest.raises(ValueError, match="at least 1"):
        control_flow.scan(lambda c, r: (c, r), x, x[:0])
    with pytest.raises(RuntimeError, match="carried value of the form"):
        control_flow.scan(lambda c, r: (c[:1], r), taeda.zeros(3), x)


def test_gradients_are_those_of_the_model():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.BatchNorm1d(4), nn.Linear(4, 2))
    x = taeda.randn(5, 3)
    program = export(model, (x,), dynamic_shapes=({0: Dim("n", min=2)},))
    for module in (program.module(), program.run_decompositions().module()):
        wanted, got = (taeda.autograd.grad(m(x).square().sum(), list(m.parameters())) for m in (model, module))
        assert all(taeda.allclose(a, b, 1e-5, 1e-6) for a, b in zip(got, wanted, strict=True))


def test_what_programs_ask_while_they_are_recorded():
    from taeda.compiler import is_compiling, is_exporting

    asked = []

    def function(x):
        asked.append((is_exporting(), is_compiling(), x.device.type, x.is_meta, isinstance(x, taeda.Tensor)))
        return x.sum() + x.cos()

    program = exported(function, None, square())
    assert set(asked) == {(True, True, "cpu", False, True)} and not is_exporting()
    aten = taeda.ops.aten
    targets = [n.target for n in program.graph.nodes if n.op == "call_function"]
    assert targets[0] == aten.sum.default and targets[1] == aten.cos.default and targets[1] != aten.sum.default
    assert {aten.cos.default: 1}[targets[1]] == 1 and targets[0] in {aten.sum.dim_IntList}


def test_a_pass_over_the_graph():
    program = exported(lambda x: x.sin() + 1, None, square())

    def cosine(module):
        for node in module.graph.nodes:
            if node.target == taeda.ops.aten.sin.default:
                node.target = taeda.cos
        module.recompile()

    x = square()
    assert taeda.equal(program._transform_do_not_use(cosine).module()(x), x.cos() + 1)
    assert taeda.equal(program.module()(x), x.sin() + 1)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_gradients_of_recurrent_layers(layer):
    model, x = layer(4, 5, num_layers=2, bidirectional=True), taeda.randn(6, 3, 4)
    program = export(model, (x,))
    for module in (program.module(), program.run_decompositions().module()):
        given = x.clone().requires_grad_()
        wanted, got = (
            taeda.autograd.grad(m(given)[0].square().sum(), [given, *m.parameters()]) for m in (model, module)
        )
        assert all(taeda.allclose(a, b, 1e-4, 1e-5) for a, b in zip(got, wanted, strict=True))


class Nested(nn.Module):
    def forward(self, x, pair, table):
        return x + pair[0] + pair[1] + table["a"]


@pytest.mark.parametrize(
    ("pair", "table", "message"),
    [
        (
            {0: Dim("b")},
            None,
            r"`inputs\['pair'\]` is a <class 'tuple'>, but `dynamic_shapes\['pair'\]` is a <class 'dict'>",
        ),
        ([{0: Dim("b")}, None], None, r"`inputs\['pair'\]` is a <class 'tuple'>, .* is a <class 'list'>"),
        ((None, None, None), None, r"`inputs\['pair'\]` has 2 elements, but `dynamic_shapes\['pair'\]` has 3 elements"),
        (None, {"b": None}, r"`inputs\['table'\]` has the keys \['a'\], but .* has the keys \['b'\]"),
        (None, [None], r"`inputs\['table'\]` is a <class 'dict'>, but .* is a <class 'list'>"),
    ],
)
def test_sizes_that_nest_otherwise(pair, table, message):
    x = square()
    with pytest.raises(UserError, match=message):
        export(Nested(), (x, (x, x), {"a": x}), dynamic_shapes={"x": None, "pair": pair, "table": table})


def test_more_examples_say_which_sizes_change():
    more = AdditionalInputs()
    more.add((taeda.ones(7, 4),))
    program = export(Function(abs), (taeda.ones(3, 4),), dynamic_shapes=more)
    more.verify(program)
    assert program.module()(taeda.ones(9, 4)).shape == (9, 4)
    with pytest.raises(RuntimeError, match="shape"):
        program.module()(taeda.ones(9, 5))


def test_suggested_fixes_are_read():
    sizes = ({0: Dim("a")}, {0: Dim("b")})
    with pytest.raises(UserError) as error:
        export(Pair(lambda x, y: x + y), (taeda.ones(4), taeda.ones(4)), dynamic_shapes=sizes)
    sizes = refine_dynamic_shapes_from_suggested_fixes(error.value.msg, sizes)
    program = export(Pair(lambda x, y: x + y), (taeda.ones(4), taeda.ones(4)), dynamic_shapes=sizes)
    assert program.module()(taeda.ones(5), taeda.ones(5)).shape == (5,)
    with pytest.raises(ValueError, match="no suggested fixes"):
        refine_dynamic_shapes_from_suggested_fixes("an error", sizes)

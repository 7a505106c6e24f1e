"""``.pt2`` files written here load in PyTorch, and give what the models give."""

from __future__ import annotations

import copy
import io
import warnings

import pytest

import taeda
import taeda.export

torch = pytest.importorskip("torch")
from .models import MODELS, OurPair, TheirPair, pair  # noqa: E402
from .test_like_pytorch import SIZED, as_taeda, compare  # noqa: E402
from .test_unknown_numbers import PROGRAMS, Calls, inputs, others  # noqa: E402


def loaded(program):
    """The program as PyTorch reads it."""
    file = io.BytesIO()
    taeda.export.save(program, file)
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.load(file)


def ours(name):
    module, args, kwargs, sizes = MODELS[name](taeda)
    return module, args, kwargs, taeda.export.export(module, copy.deepcopy(args), kwargs, dynamic_shapes=sizes)


def as_torch(tree):
    if type(tree) is OurPair:
        return TheirPair(as_torch(tree.a), as_torch(tree.b))
    if type(tree) in (tuple, list, dict):
        values = map(as_torch, tree.values() if type(tree) is dict else tree)
        return dict(zip(tree, values, strict=True)) if type(tree) is dict else type(tree)(values)
    return torch.utils._pytree.tree_map(
        lambda x: torch.from_numpy(x.detach().numpy().copy()) if isinstance(x, taeda.Tensor) else x, tree
    )


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    _, args, kwargs, program = ours(name)
    if name == "containers":
        pair(torch)
    theirs = loaded(program).module()
    given = as_torch(args), as_torch(kwargs)
    compare(theirs(*given[0], **given[1]), program.module()(*copy.deepcopy(args), **kwargs))


def test_buffers_are_written_to():
    _, args, kwargs, program = ours("buffers")
    theirs, module = loaded(program).module(), program.module()
    for _ in range(3):
        compare(theirs(*as_torch(args), **as_torch(kwargs)), module(*copy.deepcopy(args), **kwargs))
    for name in program.graph_signature.buffers:
        compare(module.get_buffer(name), theirs.get_buffer(name))


@pytest.mark.parametrize("name", SIZED)
def test_other_sizes(name):
    _, args, kwargs, program = ours(name)
    theirs, module = loaded(program).module(), program.module()
    for size in SIZED[name]:
        x = torch.from_numpy(args[0].numpy())
        new = torch.randint(0, 7, (size, *x.shape[1:])) if x.dtype == torch.int64 else torch.randn(size, *x.shape[1:])
        compare(theirs(new, *as_torch(args[1:]), **as_torch(kwargs)), module(as_taeda(new), *args[1:], **kwargs))


@pytest.mark.parametrize("name", PROGRAMS)
def test_unknown_numbers(name):
    program = taeda.export.export(Calls(taeda, PROGRAMS[name]), as_taeda(inputs()))
    if name == "truth":
        with pytest.raises(ValueError, match="no condition as a result"):
            loaded(program)
        return
    theirs = loaded(program).module()
    for args in others(name):
        compare(theirs(*args), program.module()(*as_taeda(args)))


def test_they_are_trained_there():
    _, args, _, program = ours("mlp")
    theirs, module = loaded(program).module(), program.module()
    theirs(*as_torch(args)).square().sum().backward()
    module(*args).square().sum().backward()
    for (name, x), (other, y) in zip(theirs.named_parameters(), module.named_parameters(), strict=True):
        assert name == other
        compare(y.grad, x.grad)


def test_batch_norm_is_trained_there():
    model = taeda.nn.Sequential(taeda.nn.Linear(3, 4), taeda.nn.BatchNorm1d(4), taeda.nn.BatchNorm1d(4, affine=False))
    program = taeda.export.export(model.train(), (taeda.randn(5, 3),))
    theirs, module, x = loaded(program).module(), program.module(), torch.randn(5, 3)
    for _ in range(2):
        theirs(x).square().sum().backward()
        module(as_taeda(x)).square().sum().backward()
    for (name, a), (other, b) in zip(theirs.named_parameters(), module.named_parameters(), strict=True):
        assert name == other
        compare(a.grad, b.grad)
    for (name, a), (other, b) in zip(theirs.named_buffers(), module.named_buffers(), strict=True):
        assert name == other
        compare(a, b)


def test_they_load_here_too():
    _, args, kwargs, program = ours("attention_with_mask")
    file = io.BytesIO()
    taeda.export.save(program, file, extra_files={"note": "of a test"})
    file.seek(0)
    extra = {"note": ""}
    again = taeda.export.load(file, extra_files=extra).module()
    assert extra["note"] == "of a test"
    got, want = again(*args, **kwargs), program.module()(*args, **kwargs)
    for a, b in zip(taeda.utils._pytree.tree_leaves(got), taeda.utils._pytree.tree_leaves(want), strict=True):
        assert taeda.allclose(a, b, rtol=1e-5, atol=1e-6)


class Guarded(taeda.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = taeda.nn.Linear(3, 3), taeda.nn.LayerNorm(3)
        self.norm.bias = self.norm.weight

    def forward(self, x, more):
        if x.shape[0] <= more["y"].shape[0] * 2:
            return self.norm(self.layer(x)).sum(0) + more["y"].sum(0)
        return x.sum(0)


def test_what_a_file_keeps():
    x, y, size = taeda.randn(4, 3), taeda.randn(6, 3), taeda.export.Dim.DYNAMIC
    shapes = {"x": {0: size}, "more": {"y": {0: size}}}
    program = taeda.export.export(Guarded(), (x, {"y": y}), dynamic_shapes=shapes)
    file = io.BytesIO()
    taeda.export.save(program, file)
    again = taeda.export.load(io.BytesIO(file.getvalue()))
    assert again.state_dict["norm.bias"] is again.state_dict["norm.weight"]
    assert taeda.equal(again.example_inputs[0][1]["y"], y) and again.example_inputs[1] == {}
    steps = [n for n in again.graph.nodes if n.op == "call_function"]
    assert {"linear", "layer_norm"} <= {n.target.__name__ for n in steps}  # functions that ATen has stay one step
    assert {tuple(n.meta["nn_module_stack"]) for n in steps} == {("",), ("", "layer"), ("", "norm")}
    theirs = loaded(program)
    assert torch.equal(theirs.example_inputs[0][0], torch.from_numpy(x.numpy()))
    other, few = taeda.randn(5, 3), taeda.randn(2, 3)
    for rows in (other, taeda.randn(7, 3)):
        args = rows, {"y": other}
        compare(again.module()(*args), program.module()(*args))
        compare(theirs.module()(*as_torch(args)), program.module()(*args))
    for module, args in ((again, (other, {"y": few})), (theirs, as_torch((other, {"y": few})))):
        with pytest.raises(AssertionError):  # the condition on the sizes
            module.module()(*args)


def test_transforms_stay_one_step():
    """Parts of a transform would have scales that ATen's parts cannot have."""

    def transforms(t, x, n):
        return t.fft.ihfft2(x, s=(3, 10), norm="ortho"), t.fft.rfft2(x)

    program = taeda.export.export(Calls(taeda, transforms), as_taeda(inputs()))
    args = inputs(3, 1)
    compare(loaded(program).module()(*args), transforms(taeda, *as_taeda(args)))


def test_guards_of_files_of_pytorch():
    class Model(torch.nn.Module):
        def forward(self, x, y):
            return x.sum() + y.sum() if (x.shape[0] + y.shape[0]) % 2 == 0 else x.sum()

    size, file = torch.export.Dim.DYNAMIC, io.BytesIO()
    program = torch.export.export(Model(), (torch.ones(4), torch.ones(6)), dynamic_shapes=({0: size}, {0: size}))
    torch.export.save(program, file)
    module = taeda.export.load(io.BytesIO(file.getvalue())).module()
    assert module(taeda.ones(3), taeda.ones(5)).item() == 8
    with pytest.raises(AssertionError):
        module(taeda.ones(3), taeda.ones(4))


def library(t):
    """An op of a library of the program's own, in this package or in PyTorch."""

    @t.library.custom_op("written::turn", mutates_args=(), schema="(Tensor x, float by=2.0) -> Tensor")
    def turn(x, by=2.0):
        return t.from_numpy(x.detach().numpy() * by)

    @t.library.custom_op("written::parts", mutates_args=(), schema="(Tensor x) -> Tensor[]")
    def parts(x):
        return [x.clone(), x + 1]

    turn.register_fake(lambda x, by=2.0: t.empty_like(x))
    parts.register_fake(lambda x: [t.empty_like(x), t.empty_like(x)])
    return turn, parts


def test_ops_of_libraries():
    turn, parts = library(taeda)

    class Model(taeda.nn.Module):
        def forward(self, x):
            a, b = parts(turn(x, by=3.0))
            return a * b + turn(x)

    x = taeda.randn(3)
    program = taeda.export.export(Model(), (x,))
    library(torch)
    compare(loaded(program).module()(as_torch(x)), Model()(x))
    file = io.BytesIO()
    taeda.export.save(program, file)
    compare(taeda.export.load(io.BytesIO(file.getvalue())).module()(x), Model()(x))


def steps(t, x, n):
    """A loop, a scan and a map, with a tensor from outside."""
    flow, scale = (t.func.control_flow if t is taeda else None), x.sum()
    _, grown = flow.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * scale), (t.tensor(0), x))
    carried, rows = flow.scan(lambda c, row: (c + row * scale, c * row), x[0], x)
    return grown, carried, rows, flow.map(lambda row, w: row * w, x, x[0])


def test_control_flow():
    program = taeda.export.export(Calls(taeda, steps), as_taeda(inputs()))
    theirs = loaded(program).module()
    for args in (inputs(), inputs(4, 3)):
        compare(theirs(*args), program.module()(*as_taeda(args)))


def _grown(t, x):
    return (x * 1).resize_(4, 3)[:2]


def _in_the_form_of_another(t, x):
    y = x * 1
    v = y[:2]
    y.resize_as_(y.new_zeros(2, 2))
    v.add_(5)
    y.mul_(2)
    return y, v, y.resize_(3)


@pytest.mark.parametrize("function", [lambda t, x: t.zeros(1).resize_(2, 3).copy_(x), _grown, _in_the_form_of_another])
def test_sizes_that_change_in_place(function):
    """``resize_`` of new tensors; views of them go on seeing the same elements."""
    x = taeda.arange(6.0) if function is _in_the_form_of_another else taeda.arange(6.0).reshape(2, 3)
    program, given = taeda.export.export(Calls(taeda, function), (x,)), torch.from_numpy(x.numpy())
    compare(loaded(program).module()(given), function(torch, given))


def test_what_has_no_form_is_refused():
    def sums(t, x):
        return t.func.control_flow.associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")

    program = taeda.export.export(Calls(taeda, sums), (taeda.randn(3),))
    with pytest.raises(
        ValueError, match=r"(?s)'associative_scan' cannot be written for PyTorch.*Save with format='taeda'"
    ):
        taeda.export.save(program, io.BytesIO())
    with pytest.raises(ValueError, match="expected format 'taeda' or 'pt2'"):
        taeda.export.save(program, io.BytesIO(), format="onnx")


def bags(t, x, n):
    table = t.linspace(0, 1, 18).reshape(6, 3)
    index = (x.abs() * 2).long().clamp(max=5)
    line, ends = index.flatten(), t.tensor([0, 3, 7])
    f = t.nn.functional.embedding_bag
    return (
        f(index, table, mode="sum"),
        f(line, table, ends, mode="max"),
        f(index, table, mode="sum", per_sample_weights=x),
    )


def orders(t, x, n):
    values, places = x.median(1)
    return x.median(), values, places, x.cummax(0).values, x.kthvalue(2).values, x.norm(2, 1), x.logcumsumexp(1)


def without_grad(t, x, n):
    with t.no_grad():
        values, places = (x * x).topk(2)
        first, second = x.chunk(2)
    return values * x[:, :2], places, first * second


def numbers_first(t, x, n):
    return t.remainder(5, x), 3 - x, 2 / x, t.sum(x, dim=0), x.prod(1, keepdim=True), x.round(decimals=1)


def ranges(t, x, n):
    """Bounds by place and by name."""
    made = [
        t.arange(1, end=7, step=2),
        t.arange(end=3),
        t.arange(end=7, start=1, step=2),
        t.arange(5, 1, -2),
        t.arange(3),
    ]
    return tuple(x.sum() + m for m in made)


@pytest.mark.parametrize("function", [bags, orders, without_grad, numbers_first, ranges])
def test_steps_of_several_results(function):
    program = taeda.export.export(Calls(taeda, function), as_taeda(inputs()))
    theirs = loaded(program).module()
    for args in ((torch.randn(4, 3, requires_grad=True), torch.tensor(1)), inputs(2, 1)):
        compare(theirs(*args), program.module()(*as_taeda(args)))


class Recurrent(taeda.nn.Module):
    def __init__(self, kind, bias, bidirectional):
        super().__init__()
        self.layer = getattr(taeda.nn, kind)(3, 4, 2, bias=bias, batch_first=True, bidirectional=bidirectional)

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize("lengths", [(5, 5), (3, 7)])  # one, or any
@pytest.mark.parametrize("kind, bias, bidirectional", [("LSTM", True, True), ("GRU", True, True), ("GRU", False, False),
                                                       ("RNN", False, True), ("LSTM", False, False)])  # fmt: skip
def test_recurrent_layers_and_their_gradients(kind, bias, bidirectional, lengths):
    model = Recurrent(kind, bias, bidirectional)
    batch, length = (taeda.export.Dim(name, min=1, max=9) for name in ("batch", "length"))
    sizes = {0: batch} if lengths == (5, 5) else {0: batch, 1: length}
    program = taeda.export.export(model, (taeda.randn(2, 5, 3),), dynamic_shapes=(sizes,))
    theirs, module = loaded(program).module(), program.module()
    for size, steps in zip((2, 4), lengths, strict=True):
        x = torch.randn(size, steps, 3)
        got, want = theirs(x), module(as_taeda(x))
        compare(got, want)
        got[0].square().sum().backward()
        want[0].square().sum().backward()
    ours, grads = dict(module.named_parameters()), {k: p.grad for k, p in theirs.named_parameters()}
    assert grads
    for name, grad in grads.items():
        compare(ours[name].grad, grad)

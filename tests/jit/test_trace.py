"""``trace``: what is recorded gives what Python gave, and is written as archives that PyTorch reads."""

import copy
import io
import warnings

import pytest

import taeda
from taeda import nn

torch = pytest.importorskip("torch")
from test_archive import TRACEABLE, same  # noqa: E402
from test_script import programs, theirs  # noqa: E402, F401 - a fixture


@pytest.mark.parametrize("name", TRACEABLE)
def test_programs(programs, name):  # noqa: F811
    taeda.manual_seed(0)
    module, calls = programs[name]()
    args = calls[0][1]
    expected = copy.deepcopy(module.eval())(*args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = taeda.jit.trace(module, args, strict=False)
    same(theirs(expected), traced(*args))
    buffer = io.BytesIO()
    traced.save(buffer)
    same(theirs(expected), taeda.jit.load(io.BytesIO(buffer.getvalue()))(*args))
    same(theirs(expected), ours_of(torch.jit.load(io.BytesIO(buffer.getvalue()))(*theirs(args))))


def ours_of(x):
    """PyTorch's results as taeda's tensors."""
    from test_archive import ours

    return ours(x)


def test_a_function():
    def f(x, y):
        z = x[..., 1:, None] + y
        z[0] = 1.0
        z[:, 0] += 2
        a, b = z.split(1, 1)
        return a * b.T if b.dim() == 2 else a * b, x.max(1)[0]

    x, y = taeda.randn(3, 3), taeda.randn(1)
    traced = taeda.jit.trace(f, (x, y))
    for inputs in ((x, y), (x * 2, y - 1)):
        same(theirs(f(*inputs)), traced(*inputs))
    assert (
        isinstance(traced, taeda.jit.ScriptFunction)
        and "torch.select" in traced.code
        and "aten::slice" in str(traced.graph)
    )
    buffer = io.BytesIO()
    taeda.jit.save(traced, buffer)
    same(theirs(f(x, y)), ours_of(torch.jit.load(io.BytesIO(buffer.getvalue()))(*theirs((x, y)))))


def test_gradients_go_through():
    linear = nn.Linear(3, 2)
    traced = taeda.jit.trace(linear, taeda.randn(1, 3))
    traced(taeda.ones(4, 3)).sum().backward()
    assert linear.weight.grad is not None and next(traced.parameters()) is linear.weight
    assert list(traced.state_dict()) == ["weight", "bias"] and taeda.equal(traced.weight, linear.weight)


def test_values_that_python_reads_are_warned_of():
    def f(x):
        return x * 2 if bool(x.sum() > 0) else x

    with pytest.warns(taeda.jit.TracerWarning, match="Python number"):
        traced = taeda.jit.trace(f, taeda.ones(2))
    assert traced(-taeda.ones(2)).tolist() == [-2, -2]


def test_what_differs_when_it_runs_again_is_said():
    state = []

    def changes(x):
        state.append(1)
        return x + len(state)

    with (
        pytest.raises(taeda.jit.tracing.TracingCheckError, match="Graphs differed"),
        pytest.warns(taeda.jit.TracerWarning),
    ):
        taeda.jit.trace(changes, taeda.ones(2))


def test_scripts_in_traces_keep_their_control_flow():
    @taeda.jit.script_if_tracing
    def halves(x, n: int):
        for _ in range(n):
            if bool(x.sum() > 10):
                x = x / 2
        return x

    def f(x):
        return halves(x, 3) + 1

    traced = taeda.jit.trace(f, taeda.ones(3))
    for x in (taeda.ones(3), taeda.ones(3) * 100):
        same(theirs(f(x)), traced(x))


def test_containers_and_names():
    def f(pair, table, *, scale):
        return {"sum": pair[0] + pair[1][0], "scaled": table["a"] * scale}

    x = taeda.randn(2)
    kwargs = {"pair": (x, [x * 2]), "table": {"a": x}, "scale": taeda.ones(1) * 3}
    with pytest.raises(RuntimeError, match="strict=False"):
        taeda.jit.trace(f, example_kwarg_inputs=kwargs)
    traced = taeda.jit.trace(f, example_kwarg_inputs=kwargs, strict=False)
    same(theirs(f(**kwargs)), traced(**kwargs))
    with pytest.raises(RuntimeError, match="cannot be traced"):
        taeda.jit.trace(f, ((x, [x]), {"a": x}, "text"))
    with pytest.raises(RuntimeError, match="can be output"):
        taeda.jit.trace(lambda x: "text", x)


def test_methods_of_a_module_and_its_state():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.bn = nn.BatchNorm1d(2)
            self.register_buffer("seen", taeda.zeros(()))

        def forward(self, x):
            self.seen.add_(x.sum())
            return self.bn(x)

        def twice(self, x):
            return self.bn(x) * 2

    net, x = Net(), taeda.randn(4, 2)
    before = copy.deepcopy(net)
    traced = taeda.jit.trace_module(net, {"forward": x, "twice": x})
    same(theirs(before(x)), traced(x))
    same(theirs(before.twice(x)), traced.twice(x))
    same(theirs(before.seen), traced.seen)

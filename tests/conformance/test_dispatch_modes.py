"""``TorchDispatchMode`` against PyTorch's: programs that log, count, check and change what runs."""

import importlib
from math import prod

import pytest

import taeda
from taeda.ops import aten as our_aten

torch = pytest.importorskip("torch")


def dispatch(f):
    return importlib.import_module(f"{f.__name__}.utils._python_dispatch")


def log_of(f):
    class Log(dispatch(f).TorchDispatchMode):
        def __init__(self):
            self.ops = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.ops.append(str(func))
            return func(*args, **(kwargs or {}))

    return Log()


PROGRAMS = {
    "product": lambda f: f.randn(3, 4).mm(f.randn(4, 5)).relu() + 1,
    "matmul": lambda f: f.ones(3, 4) @ f.ones(4),
    "numbers": lambda f: [f.ones(2).mul_(3).pow(2).mean(), f.ones(1) > 2, f.ones(2) / 2, f.ones(2) == f.zeros(2)],
    "reductions": lambda f: [f.ones(2, 2).sum(1), f.ones(2, 2).sum(), f.zeros(2, 3).mean(0), f.ones(2).any()],
    "linear": lambda f: f.nn.functional.linear(f.zeros(2, 3), f.zeros(3, 3), f.zeros(3)),
    "pointwise": lambda f: [f.rand(2).exp(), f.ones(2).log_(), f.full((2,), 0.5).sigmoid(), f.arange(4).eq(2)],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_ops_that_are_seen(name):
    seen = []
    for f in (torch, taeda):
        with log_of(f) as log, f.no_grad():
            PROGRAMS[name](f)
        views = ("aten.detach.default", "aten.t.default")  # PyTorch shows some that cost nothing
        seen.append([op for op in log.ops if op not in views and "transpose" not in op])
    assert seen[0] == seen[1]


def test_counting_products():
    counts = []
    for f, aten in ((torch, torch.ops.aten), (taeda, our_aten)):
        formulas = {
            aten.mm: lambda out, a, b: prod(a.shape) * b.shape[1],
            aten.addmm: lambda out, c, a, b: prod(a.shape) * b.shape[1],
            aten.bmm: lambda out, a, b: prod(a.shape) * b.shape[2],
            aten.convolution: lambda out, x, w, *rest: prod(out.shape) * prod(w.shape[1:]),
        }

        class Count(dispatch(f).TorchDispatchMode):
            total = 0

            def __torch_dispatch__(self, func, types, args=(), kwargs=None, formulas=formulas):
                out = func(*args, **(kwargs or {}))
                if func._overloadpacket in formulas:
                    self.total += formulas[func._overloadpacket](out, *args)
                return out

        nn = f.nn
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1, stride=2), nn.Flatten(1))
        model.append(nn.Linear(36, 5))
        q = f.randn(2, 2, 3, 4, requires_grad=True)
        with Count() as forward:
            y = model(f.randn(2, 3, 8, 8)).sum() + ((q @ q.mT).softmax(-1) @ q).sum() + (q @ f.randn(4, 6)).sum()
        with Count() as backward:
            (y * 2).backward(inputs=[q])
        counts.append((forward.total, backward.total))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("f", [torch, taeda])
def test_changing_and_stopping(f):
    aten = torch.ops.aten if f is torch else our_aten

    class Change(dispatch(f).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is aten.add.Tensor or func == aten.add.Tensor:
                return f.mul(*args)
            return func(*args, **(kwargs or {}))

    class Check(dispatch(f).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, f.Tensor) and f.isnan(out).any():
                raise FloatingPointError(str(func))
            return out

    with Change():
        assert (f.full((2,), 3.0) + f.full((2,), 4.0)).tolist() == [12.0, 12.0]
    assert (f.full((2,), 3.0) + f.full((2,), 4.0)).tolist() == [7.0, 7.0]
    with pytest.raises(FloatingPointError, match=r"aten\.log\.default"), Check():
        f.log(f.tensor([-1.0])) + 1


@pytest.mark.parametrize("f", [torch, taeda])
def test_nesting(f):
    module = dispatch(f)
    with log_of(f) as outer:
        with log_of(f) as inner:
            f.ones(2).mul(3)
            assert module._get_current_dispatch_mode() is inner
        with module._disable_current_modes():
            f.ones(3)
        f.zeros(1)
    assert module._get_current_dispatch_mode() is None
    assert inner.ops == ["aten.ones.default", "aten.mul.Tensor"]
    assert outer.ops == [*inner.ops, "aten.zeros.default"]


@pytest.mark.parametrize("f", [torch, taeda])
def test_with_autocast_and_training(f):
    f.manual_seed(0)
    model = f.nn.Linear(3, 2)
    step = f.optim.SGD(model.parameters(), lr=0.1)
    with log_of(f) as log, f.autocast("cpu", dtype=f.bfloat16):
        model(f.ones(1, 3)).float().sum().backward()
        step.step()
    assert any("addmm" in op for op in log.ops)
    f.manual_seed(0)
    again = f.nn.Linear(3, 2)
    assert f.allclose(model.bias.detach(), again.bias.detach() - 0.1, atol=1e-3)

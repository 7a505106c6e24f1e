"""Random programs give with a function as backend what they give eagerly: values, gradients, what they write, errors.

A program is a list of lines drawn from ``LINES``. Each makes a tensor from two earlier ones, or changes one.
"""

import random

import pytest

import taeda
from taeda import func, nn

F = nn.functional


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.register_buffer("calls", taeda.zeros((), dtype=taeda.int64))

    def forward(self, x, scale=1.0):
        self.calls += 1
        return self.norm(self.linear(x)) * scale


def one_of(x, y):
    return x * 2 if x.sum() > y.sum() else y - 1


def loop(x, y):
    for i in range(int(y.abs().sum().item()) % 3):
        x = x + i
    return x


def write_out(x, y):
    made = taeda.empty_like(x)
    taeda.add(x, y, out=made)
    return made


def assign(x, y):
    x[1:, 0] = y[1:, 1]
    x[x > 1] = 0.5
    return x


LINES = {
    "add": lambda m, x, y: taeda.add(x, y, alpha=2),
    "products": lambda m, x, y: x @ y.T @ x,
    "linear": lambda m, x, y: F.linear(x, m.linear.weight),
    "model": lambda m, x, y: m(x, scale=0.5),
    "several": lambda m, x, y: sum(part * i for i, part in enumerate(x.chunk(2, dim=1), 1)).repeat(1, 2),
    "extremes": lambda m, x, y: taeda.max(x, dim=1, keepdim=True).values + y,
    "sorted": lambda m, x, y: x.sort(dim=1, descending=True)[0],
    "in place": lambda m, x, y: x.mul_(0.5).add_(y),
    "activation in place": lambda m, x, y: F.leaky_relu(x, 0.3, inplace=True),
    "view": lambda m, x, y: (x.view(-1)[::3].add_(1), x)[1],
    "transposed view": lambda m, x, y: (x.t()[1].copy_(y[:, 0]), x)[1],
    "detached": lambda m, x, y: x.detach() + y,
    "no gradient": taeda.no_grad()(lambda m, x, y: x * y),
    "assignment": lambda m, x, y: assign(x, y),
    "out": lambda m, x, y: write_out(x.detach(), y.detach()),
    "if": lambda m, x, y: one_of(x, y),
    "loop": lambda m, x, y: loop(x, y),
    "cond": lambda m, x, y: taeda.cond(x.sum() > 0, lambda a, b: a * b, lambda a, b: a - b, (x, y)),
    "grad": lambda m, x, y: func.grad(lambda t: (t.sin() * y).sum())(x),
    "grad of a view": lambda m, x, y: func.grad(lambda t: (t[0] * x[1]).sum())(x.clone()),
    "grad with a value": lambda m, x, y: func.grad_and_value(lambda t: (t * y).sum())(x)[0] * 2,
    "grad that writes": lambda m, x, y: func.grad(lambda t: (t * 1).mul_(y).square().sum())(x),
    "vmap": lambda m, x, y: func.vmap(lambda t, u: t * u.sum() + y.mean())(x, y),
    "vmap of columns": lambda m, x, y: func.vmap(lambda t: t.cumsum(0), in_dims=1, out_dims=1)(x),
    "vmap of grad": lambda m, x, y: func.vmap(func.grad(lambda t: (t**2).sum()))(x),
    "vjp": lambda m, x, y: func.vjp(lambda t: t * y, x)[1](y)[0],
    "jvp": lambda m, x, y: func.jvp(lambda t: t.sin() * y, (x,), (y,))[1],
    "jacobian": lambda m, x, y: func.jacrev(lambda t: t.sum(1) * y[:, 0])(x).sum(0),
    "derivative by backward": lambda m, x, y: taeda.autograd.grad(
        (z := x.detach().requires_grad_(), (z * y.detach()).square().sum())[1], z
    )[0],
    "functional call": lambda m, x, y: func.functional_call(
        m.linear, {"weight": m.linear.weight * 2}, (x,), {}
    ),
}  # fmt: skip
BACKENDS = {
    "forward": lambda module, inputs: module.forward,
    "interpreter": lambda module, inputs: lambda *args: taeda.fx.Interpreter(module).run(*args),
    "without dead code": lambda module, inputs: (module.graph.eliminate_dead_code(), module.recompile(), module)[2],
}


def draw(seed):
    """The lines of a program: names, and the numbers of the values that they take, from the last one back."""
    rng = random.Random(seed)
    return [(rng.choice([*LINES]), rng.choice((0, 0, 1, 2)), rng.randrange(4)) for _ in range(rng.randrange(2, 9))]


def outcome(lines, seed, wrap):
    """What a program gives, its arguments and buffers afterwards and the gradients; or its error."""
    taeda.manual_seed(seed)
    model, leaves = Model(), [taeda.randn(4, 4).requires_grad_(k == 0) for k in range(2)]

    def program(first, *, second):
        values = [first * 1, second]
        for name, one, other in lines:
            values.append(LINES[name](model, values[-1 - one % len(values)], values[-1 - other % len(values)]))
        return values[-1], {"all": values[2:-1]}

    try:
        last, others = wrap(program)(leaves[0], second=leaves[1])
        results = [last, *others["all"]]
        total = sum(x.square().mean() for x in results if x.requires_grad)
        wanted = [leaves[0], *model.parameters()]
        grads = taeda.autograd.grad(total, wanted, allow_unused=True) if isinstance(total, taeda.Tensor) else ()
    except (RuntimeError, ValueError, TypeError) as error:
        return type(error)
    return [*results, leaves[1], *model.buffers(), *(g for g in grads if g is not None)]


def compare(seed, backend):
    lines = draw(seed)
    want = outcome(lines, seed, lambda program: program)
    got = outcome(lines, seed, lambda program: taeda.compile(program, backend=BACKENDS[backend]))
    if isinstance(want, type):
        assert got is want, (seed, lines, got)
        return
    assert isinstance(got, list) and len(got) == len(want), (seed, lines, got)
    for a, b in zip(got, want, strict=True):
        assert a.dtype is b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad, (seed, lines)
        assert taeda.allclose(a, b, 1e-5, 1e-6, equal_nan=True), (seed, lines)


@pytest.mark.parametrize("backend", BACKENDS)
def test_random_programs(backend):
    for seed in range(40):
        compare(seed, backend)


@pytest.mark.parametrize("name", LINES)
def test_each_line(name):
    """Of the argument, and of a value that is not computed yet."""
    for lines in ([(name, 1, 0)], [("add", 1, 0), (name, 0, 1), ("add", 0, 1)]):
        want = outcome(lines, 1, lambda program: program)
        got = outcome(lines, 1, lambda program: taeda.compile(program, backend=BACKENDS["forward"]))
        assert not isinstance(want, type), want
        assert not isinstance(got, type), got
        assert all(taeda.allclose(a, b, equal_nan=True) for a, b in zip(got, want, strict=True))


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("backend", BACKENDS)
def test_many_random_programs(backend):
    for seed in range(40, 1000):
        compare(seed, backend)

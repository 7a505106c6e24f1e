"""Batch norm in training, compiled: one kernel with what follows it, one with what its gradient is computed from."""

from __future__ import annotations

import pytest

import taeda as T
from taeda import nn
from taeda._core import fusion, memory

F = nn.functional
SHAPES = [(4, 3, 64, 64), (8, 6, 20, 20), (2, 5, 3, 2500), (1, 6, 12000), (2, 3, 8, 16, 24)]
FOLLOWS = {
    "nothing": lambda y, x: y,
    "relu": lambda y, x: F.relu(y),
    "relu in place": lambda y, x: F.relu(y, inplace=True),
    "relu6": lambda y, x: F.relu6(y),
    "silu": lambda y, x: F.silu(y),
    "residual": lambda y, x: F.relu(y + x),
    "residual in place": lambda y, x: y.add_(x).relu_(),
    "one per channel": lambda y, x: F.relu(y) * x.mean((0, *range(2, x.dim())), keepdim=True),
    "one per image": lambda y, x: F.relu(y) * x.flatten(1).mean(1).reshape(-1, *[1] * (x.dim() - 1)),
    "twice": lambda y, x: y * F.relu(y),
    "a slice": lambda y, x: F.relu(y)[:, :2],
    "transposed": lambda y, x: F.relu(y).transpose(1, 2) * x.transpose(1, 2),
    "softmax": lambda y, x: F.softmax(F.relu(y), -1),
    "joined": lambda y, x: F.relu(T.cat([y, x], 1)) * 2,
    "kept": lambda y, x: (y, F.relu(y)),
}
MAKES = {3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


class Program:
    """Training steps of one batch norm; each gives all that it computes."""

    def __init__(self, follow, shape, dtype=T.float32, **settings):
        T.manual_seed(0)
        self.norm, self.x = MAKES[len(shape)](shape[1], dtype=dtype, **settings), T.randn(*shape, dtype=dtype)
        self.x.requires_grad_()
        self.follow, self.optimizer = follow, T.optim.SGD(self.norm.parameters(), lr=1e-6) if settings == {} else None

    def step(self):
        made = self.follow(self.norm(self.x * 1.5), self.x)
        made = made if isinstance(made, tuple) else (made,)
        self.norm.zero_grad()
        self.x.grad = None
        sum((z * z).sum() for z in made).backward()
        if self.optimizer:
            self.optimizer.step()
        return [*made, self.x.grad, *self.norm.parameters(), *self.norm.buffers()]


def results(program, step, count=3):
    return [t.detach().clone() for _ in range(count) for t in step()]


def assert_same(*args, **settings):
    plain, compiled = Program(*args, **settings), Program(*args, **settings)
    want, got = results(plain, plain.step), results(compiled, T.compile(compiled.step))
    assert len(want) == len(got) and all(T.equal(a, b) for a, b in zip(want, got, strict=True))


def kernels_of(function):
    found = []
    before = fusion.watch(lambda names, *_: found.append(tuple(names)))
    try:
        function()
    finally:
        fusion.watch(before)
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FOLLOWS)
def test_the_same_bits(name, shape):
    assert_same(FOLLOWS[name], shape)


@pytest.mark.parametrize("settings", [{"affine": False}, {"track_running_stats": False}, {"momentum": None}], ids=str)
def test_other_settings(settings):
    assert_same(FOLLOWS["relu"], (4, 3, 64, 64), **settings)


def test_float64_and_large():
    assert_same(FOLLOWS["residual"], (4, 3, 64, 64), dtype=T.float64)
    assert_same(FOLLOWS["residual"], (16, 8, 128, 128))  # results go past the cache


def test_which_kernels():
    program = Program(FOLLOWS["residual"], (4, 3, 64, 64))
    step = T.compile(program.step)
    step()
    found = kernels_of(step)
    assert any(names[:3] == ("batch_norm", "add", "relu") for names in found)
    assert not any("_standardized" in names for names in found)


def test_statistics_that_somebody_sees():
    program = Program(FOLLOWS["relu"], (4, 3, 64, 64))
    seen = program.norm.running_mean.numpy()

    @T.compile
    def step():
        before = seen.copy()
        y = program.norm(program.x)
        assert (seen != before).any()  # at once
        return F.relu(y)

    found = kernels_of(step)
    assert ("batch_norm",) in found and ("_standardized", "relu") in found


def test_what_is_read_meanwhile():
    def run(step_of):
        T.manual_seed(0)
        norm, x = nn.BatchNorm2d(3), T.randn(4, 3, 64, 64)
        found = []

        def step():
            y = norm(x)
            z = F.relu(y)
            found.append(norm.running_mean.tolist())  # before anything was asked of y
            norm(x * 2)  # nobody asks for what it gives
            found.append(norm.running_var.tolist())
            x.mul_(1.25)  # y is of what it was before
            with T.no_grad():
                norm.weight.mul_(0.5)
            found.append(norm.eval()(x).sum().item())
            norm.train()
            return z, y

        made = [t.detach().clone() for _ in range(3) for t in step_of(step)()]
        return found, made

    (want, first), (got, second) = run(lambda step: step), run(T.compile)
    assert want == got and all(T.equal(a, b) for a, b in zip(first, second, strict=True))


def test_second_derivatives_and_kept_graphs():
    def run(step_of):
        T.manual_seed(0)
        norm, x = nn.BatchNorm2d(3), T.randn(4, 3, 40, 40, requires_grad=True)

        def step():
            y = F.silu(norm(x))
            (g,) = T.autograd.grad((y * y).sum(), x, create_graph=True)
            (h,) = T.autograd.grad((g * g).sum(), x, retain_graph=True)
            (again,) = T.autograd.grad(y.sum(), x)
            return g, h, again

        return [t.detach() for _ in range(2) for t in step_of(step)()]

    for a, b in zip(run(lambda step: step), run(T.compile), strict=True):
        assert T.allclose(a, b, atol=1e-5, rtol=1e-5)


def test_vmap():
    T.manual_seed(0)
    x = T.randn(5, 4, 3, 40, 40)

    def each(part):
        return F.relu(F.batch_norm(part, None, None, training=True))

    assert T.equal(T.compile(T.vmap(each))(x), T.vmap(each)(x))


def test_nothing_is_left_where_nobody_asks():
    norm, x = nn.BatchNorm2d(3), T.randn(4, 3, 64, 64)

    @T.compile
    def step():
        with T.no_grad():
            norm(x)

    for _ in range(3):
        step()
    assert fusion.count_recipes() == 0
    assert int(norm.num_batches_tracked) == 3 and norm.running_mean.abs().sum() > 0


def test_results_between_take_no_memory():
    """What lies between batch norm and an activation that keeps its input is computed again."""
    x, norm = T.randn(8, 8, 128, 128, requires_grad=True), nn.BatchNorm2d(8)

    def step():
        F.silu(norm(x)).sum().backward()
        x.grad = None

    def peak(function):
        function()
        memory.reset_peak_memory_stats()
        before = memory.memory_stats()["allocated"]
        function()
        return (memory.memory_stats()["peak_allocated"] - before) / (4 * x.numel())

    plain, compiled = peak(step), peak(T.compile(step))
    assert plain > 1.9 and compiled < 1.1, (plain, compiled)

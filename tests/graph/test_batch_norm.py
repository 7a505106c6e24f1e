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
LAST = {4: T.channels_last, 5: T.channels_last_3d}
MAKES = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


class Program:
    """Training steps of one batch norm; each gives all that it computes."""

    def __init__(self, follow, shape, dtype=T.float32, last=False, **settings):
        T.manual_seed(0)
        self.norm, self.x = MAKES[len(shape)](shape[1], dtype=dtype, **settings), T.randn(*shape, dtype=dtype)
        if last:
            self.x = self.x.to(memory_format=LAST[len(shape)])
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


SETTINGS = [{}, {"affine": False}, {"track_running_stats": False}, {"momentum": None}]
SETTINGS.append({"affine": False, "track_running_stats": False})
#: Rows, and images with channels last; few elements of each are normalised at once, as eagerly.
BY_COLUMNS = [((2048, 96), False), ((4, 64, 32, 32), True), ((2, 8, 12, 32, 40), True), ((128, 64), False)]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", ["nothing", "relu", "residual", "twice", "kept"])
def test_other_settings(name, settings):
    assert_same(FOLLOWS[name], (4, 3, 64, 64), **settings)


@pytest.mark.parametrize(("shape", "last"), BY_COLUMNS, ids=str)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", ["nothing", "relu in place", "residual", "residual in place", "twice", "kept"])
def test_rows_and_channels_last(name, settings, shape, last):
    assert_same(FOLLOWS[name], shape, last=last, **settings)
    if shape == (2048, 96):
        assert_same(FOLLOWS[name], shape, dtype=T.float64, **settings)


@pytest.mark.parametrize(("shape", "last"), BY_COLUMNS[:3], ids=str)
def test_given_statistics_of_rows_and_channels_last(shape, last):
    program = Program(FOLLOWS["relu"], shape, last=last)
    program.norm.eval()

    def infer():
        with T.no_grad():
            return F.relu(program.norm(program.x))

    compiled = T.compile(infer)
    found = kernels_of(lambda: T.equal(compiled(), infer()))
    assert ("normalized", "relu") in found and T.equal(compiled(), infer()) and compiled().stride() == infer().stride()


@pytest.mark.parametrize("settings", SETTINGS[1:], ids=str)
def test_which_kernels_of_other_settings(settings):
    for shape, last, first in (((4, 3, 64, 64), False, "batch_norm"), *((*x, "normalized") for x in BY_COLUMNS[:3])):
        program = Program(FOLLOWS["residual"], shape, last=last, **settings)
        step = T.compile(program.step)
        step()
        assert any(names[:3] == (first, "add", "relu") for names in kernels_of(step)), shape


def test_the_sign_of_zero_without_weights():
    x = T.zeros(4, 3, 64, 64)
    x[:, :, ::2] = -0.0
    want = T.signbit(F.batch_norm(x, None, None, training=True))
    made = T.compile(lambda: F.batch_norm(x, None, None, training=True) * 1.0)()
    assert T.equal(T.signbit(made), want)


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
    assert fusion.count_deferred() == 0
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


class Block(nn.Module):
    """Two convolutions with batch norm, a residual and, where sizes differ, another batch norm."""

    def __init__(self, before, channels, inplace=False):
        super().__init__()
        self.first = nn.Conv2d(before, channels, 3, 1, 1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(channels) for _ in range(3)])
        self.short = nn.Conv2d(before, channels, 1, bias=False) if before != channels else None
        self.relu = nn.ReLU(inplace)

    def forward(self, x):
        y = self.norms[1](self.second(self.relu(self.norms[0](self.first(x)))))
        return self.relu(y + (x if self.short is None else self.norms[2](self.short(x))))


def network(inplace=False):
    T.manual_seed(0)
    return nn.Sequential(Block(3, 8, inplace), Block(8, 8, inplace), Block(8, 8, inplace), Block(8, 16, inplace))


@pytest.mark.parametrize("inplace", [False, True])
def test_networks(inplace):
    x = T.randn(8, 3, 64, 64)

    def losses(compile_it):
        model = network(inplace)
        optimizer = T.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

        def step():
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        step = T.compile(step) if compile_it else step
        made = [step().item() for _ in range(3)]
        return made, [t.clone() for t in model.state_dict().values()]

    (want, before), (got, after) = losses(False), losses(True)
    assert want == got and all(T.equal(a, b) for a, b in zip(before, after, strict=True))


def peak_of(function):
    for _ in range(2):
        function()
    memory.reset_peak_memory_stats()
    before = memory.memory_stats()["allocated"]
    function()
    return memory.memory_stats()["peak_allocated"] - before


def test_activations_are_computed_again():
    model, x = network(), T.randn(8, 3, 64, 64)

    def step():
        model(x).square().mean().backward()
        model.zero_grad()

    plain, compiled = peak_of(step), peak_of(T.compile(step))
    assert compiled < 0.85 * plain, (compiled, plain)


def test_what_was_kept_and_then_written_to():
    """The error of the eager program, though what the derivative keeps is not the memory that was written to."""
    norm, conv, x = nn.BatchNorm2d(3), nn.Conv2d(3, 3, 3), T.randn(8, 3, 64, 64)

    def step(late):
        y = F.relu(norm(x))
        z = conv(y).sum()
        y.add_(1)
        if late:
            del y  # its memory is gone when the derivative asks
        z.backward()

    for function in (step, T.compile(step)):
        for late in (False, True):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                function(late)


def test_what_it_is_computed_from_may_be_written_to():
    def run(compile_it):
        T.manual_seed(0)
        norm, conv, x = nn.BatchNorm2d(3), nn.Conv2d(3, 3, 3), T.randn(8, 3, 64, 64)

        def step():
            y = F.relu(norm(x))
            z = conv(y).sum()
            with T.no_grad():
                norm.bias.add_(1)  # the derivative of batch norm keeps x and the weight
            return T.autograd.grad(z, [conv.weight])[0]

        return (T.compile(step) if compile_it else step)()

    assert T.equal(run(False), run(True))


def test_the_same_is_computed_once():
    x = T.randn(64, 1024)

    def twice(x):
        return T.tanh(x * 2) + T.tanh(x * 2) * 3

    compiled = T.compile(twice)
    (names,) = kernels_of(lambda: compiled(x))
    assert names.count("tanh") == 1 and T.equal(compiled(x), twice(x))

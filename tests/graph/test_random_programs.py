"""Random programs give compiled what they give eagerly: the same bits, the same gradients, the same errors.

A program is a list of lines drawn from ``LINES``, each of which makes a tensor from earlier ones or changes one.
"""

import random

import pytest

import taeda
from taeda import nn
from taeda._core import fusion

from .test_fusion import assert_same

F = nn.functional
#: A small one, and one of more than 64 KiB: such results have no memory before they are computed, and take over others'.
SHAPES = [(2, 4, 6, 6), (4, 4, 34, 34)]


class Run:
    """The values that a run of a program has made so far."""

    def __init__(self, seed, shape):
        taeda.manual_seed(seed)
        self.shape, n = shape, shape[-1]
        self.leaves = [taeda.randn(shape, requires_grad=True) for _ in range(2)]
        self.weights = [taeda.randn(n, n), taeda.randn(n), taeda.randn(4, 4, 3, 3), taeda.rand(4) + 0.5, taeda.randn(4)]
        self.leaves += [w.requires_grad_() for w in self.weights]
        self.buffers = [taeda.zeros(4), taeda.ones(4)]
        self.values, self.seen = [x * 1 for x in self.leaves[:2]], []

    def batch_norm(self, x):
        return F.batch_norm(x, *self.buffers, self.weights[3], self.weights[4], True, 0.1)

    def hook(self, x):
        x.register_hook(lambda g: g * 1.5)
        return x

    def keep_gradient(self, x):
        x.retain_grad()
        return x

    def look(self, x):
        self.seen.append(x.detach().clone())
        return x

    def show(self, x):
        self.seen.append(taeda.tensor(float(x.detach().numpy().sum())))
        return x


#: A line of one earlier value, or of two; each gives a value of the same shape.
ONE = {
    "relu": lambda r, x: F.relu(x),
    "relu6": lambda r, x: F.relu6(x),
    "gelu": lambda r, x: F.gelu(x),
    "silu": lambda r, x: F.silu(x),
    "tanh": lambda r, x: taeda.tanh(x),
    "scale": lambda r, x: x * 0.5 + 1,
    "linear": lambda r, x: F.linear(x, *r.weights[:2]),
    "mm": lambda r, x: (x.flatten(0, 2) @ r.weights[0]).view(r.shape),
    "addmm": lambda r, x: taeda.addmm(r.weights[1], x.flatten(0, 2), r.weights[0]).view(r.shape),
    "convolution": lambda r, x: F.conv2d(x, r.weights[2], r.weights[4], padding=1),
    "batch norm": lambda r, x: r.batch_norm(x),
    "layer norm": lambda r, x: F.layer_norm(x, r.shape[-1:], r.weights[1]),
    "softmax": lambda r, x: taeda.softmax(x, -1),
    "log softmax": lambda r, x: F.log_softmax(x, -1),
    "max pool, windows apart": lambda r, x: F.interpolate(F.max_pool2d(x, 2), scale_factor=2),
    "max pool, windows over each other": lambda r, x: F.max_pool2d(x, 3, 1, 1),
    "max pool with places": lambda r, x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    "average pool": lambda r, x: F.avg_pool2d(x, 3, 1, 1),
    "dropout": lambda r, x: F.dropout(x, 0.4),
    "transpose": lambda r, x: x.transpose(2, 3),
    "slice": lambda r, x: taeda.cat([x[:, 2:], x[:, :2] * 2], 1),
    "view": lambda r, x: x.view(-1).mul(0.7).view(r.shape) if x.is_contiguous() else x * 0.7,
    "double": lambda r, x: x.double().mul(0.3).float(),
    "detach": lambda r, x: x.detach() + x,
    "hook": Run.hook,
    "retain_grad": Run.keep_gradient,
    "look": Run.look,
    "show": Run.show,
    "add_": lambda r, x: x.add_(0.25),
    "relu_": lambda r, x: F.relu_(x),
    "write to a slice": lambda r, x: (x[:, 0].mul_(2), x)[1],
    "fill a slice": lambda r, x: (x[..., 1].fill_(0.5), x)[1],
}
TWO = {
    "add": lambda r, x, y: x + y,
    "mul": lambda r, x, y: x * y,
    "bmm": lambda r, x, y: x @ y.transpose(-1, -2),
    "residual": lambda r, x, y: F.relu(x + F.linear(y, *r.weights[:2])),
    "mask": lambda r, x, y: taeda.where(y > 0, x, 0.1 * x),
    "add_ of another": lambda r, x, y: x.add_(y),
    "copy_ to a slice": lambda r, x, y: (x[:, :2].copy_(y[:, 2:]), x)[1],
}


def draw(seed):
    """The lines of a program: a name, and the number of the value that is taken, from the last one back."""
    rng = random.Random(seed)
    names = [*ONE, *TWO]
    lines = [(rng.choice(names), rng.choice((0, 0, 0, 1, 2)), rng.randrange(4)) for _ in range(rng.randrange(3, 14))]
    return lines, rng.randrange(3)


def run(lines, order, seed, shape):
    """What a program makes: its last values, gradients up to ``order`` more times, what it looked at; or its error."""
    r = Run(seed, shape)
    try:
        for name, first, second in lines:
            x, y = (r.values[-1 - k % len(r.values)] for k in (first, second))
            r.values.append(ONE[name](r, x) if name in ONE else TWO[name](r, x, y))
        total = sum(v.square().mean() for v in r.values[-2:])
        if order == 0:
            total.backward()
            grads = [leaf.grad for leaf in r.leaves]
        else:
            grads = taeda.autograd.grad(total, r.leaves, create_graph=order == 2, allow_unused=True)
        if order == 2:
            again = sum(g.square().sum() for g in grads if g is not None and g.requires_grad)
            if isinstance(again, taeda.Tensor) and again.requires_grad:
                grads += taeda.autograd.grad(again, r.leaves, allow_unused=True)
    except RuntimeError as error:  # an operand was changed that a derivative needs
        return str(error)
    kept = [v.grad for v in r.values if not v.is_leaf and v.retains_grad]
    return [*r.values, *(g for g in (*grads, *kept) if g is not None), *r.seen, *r.buffers]


def compare(seed, shape):
    """Run a program both ways; whether it gives an error."""
    lines, order = draw(seed)
    want = run(lines, order, seed, shape)
    got = taeda.compile(run)(lines, order, seed, shape)
    if isinstance(want, str):
        assert got == want, (seed, lines)
    else:
        assert_same(got, want)
    assert fusion.count_deferred() == 0
    return isinstance(want, str)


def test_an_epilogue_that_cannot_be_takes_no_memory_over(everything):
    """A gradient has memory of its own if the kernel that would have stored it over an operand's does not fit."""
    assert not compare(3362, SHAPES[1])


@pytest.mark.parametrize("seeds", [range(24), pytest.param(range(24, 200), marks=pytest.mark.sweep)])
@pytest.mark.parametrize("shape", SHAPES)
def test_random_programs(shape, seeds, everything):
    errors = sum(compare(seed, shape) for seed in seeds)
    assert errors < len(seeds) / 3  # most come to their end

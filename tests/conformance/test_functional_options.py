"""Functions of ``nn.functional`` with random options, sizes and layouts agree with PyTorch: values and gradients.

The databases have a few options of each function. Here each call draws all of them: what goes wrong is mostly a pair of
options that nobody wrote down. A sample runs by default, thousands of calls a function behind the marker ``sweep``.
"""

import random

import numpy as np
import pytest

import taeda
from tests.agree import close

torch = pytest.importorskip("torch")
from .peer import outcome  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
RECIPES = {}


def recipe(make):
    """Add a recipe: from a :class:`Draw` it makes ``f(F, *tensors)``, where ``F`` is ``nn.functional``."""
    RECIPES[make.__name__] = make
    return make


class Draw(random.Random):
    """Options, and the arrays of a call: the tensors that need gradients, and constants."""

    def __init__(self, seed):
        super().__init__(seed)
        self.numbers, self.arrays, self.dtype = np.random.default_rng(seed), [], self.choice(["float32", "float64"])

    def chance(self, p=0.5):
        return self.random() < p

    def sizes(self, n, low=1, high=7):
        return [self.randint(low, high) for _ in range(n)]

    def option(self, **choices):
        """Keyword arguments; those that draw None are left out."""
        chosen = {name: self.choice(values) for name, values in choices.items()}
        return {name: value for name, value in chosen.items() if value is not None}

    def tensor(self, *shape, positive=False):
        x = self.numbers.normal(size=shape)
        self.arrays.append(((np.abs(x) + 0.1 if positive else x).astype(self.dtype), self.choice(LAYOUTS)))

    def constant(self, array):
        """A function that gives ``array`` as a tensor of ``F``'s library."""
        return lambda F: (torch if F is torch.nn.functional else taeda).from_numpy(array)

    def classes(self, n, *shape):
        return self.numbers.integers(0, n, shape)


def _transposed(x):
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def _with_gaps(x):
    return x.repeat_interleave(2, -1)[..., ::2]


#: Layouts in memory of a tensor, in either library.
LAYOUTS = [
    lambda lib, x: x,
    lambda lib, x: _transposed(x) if x.dim() else x,
    lambda lib, x: _with_gaps(x) if x.dim() else x,
    lambda lib, x: x.contiguous(memory_format=lib.channels_last) if x.dim() == 4 else x,
    lambda lib, x: x.transpose(0, 1).contiguous().transpose(0, 1) if x.dim() > 1 else x,
]


@recipe
def convolution(d):
    n, groups, transposed = d.randint(1, 3), d.choice([1, 1, 2, 3]), d.chance(0.4)
    per, out = d.choice([1, 2, 8]), d.choice([1, 3, 16])
    stride, dilation, kernel = d.sizes(n, 1, 3), d.sizes(n, 1, 3), d.sizes(n, 1, 4)
    padding = [d.randint(0, every * (k - 1) // 2) for every, k in zip(dilation, kernel, strict=True)]
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if transposed:
        options["output_padding"] = [d.choice([0, max(*pair) - 1]) for pair in zip(stride, dilation, strict=True)]
    d.tensor(*([] if d.chance(0.1) else [d.randint(0, 3)]), groups * per, *d.sizes(n, 1, 10))
    d.tensor(*([groups * per, out] if transposed else [groups * out, per]), *kernel)
    if d.chance():
        d.tensor(groups * out)
    return lambda F, *x: getattr(F, f"conv{'_transpose' * transposed}{n}d")(*x, **options)


@recipe
def max_pool(d):
    n = d.randint(1, 3)
    options = {"kernel_size": d.sizes(n, 1, 4), "ceil_mode": d.chance(), "return_indices": d.chance()}
    options |= d.option(stride=[None, d.sizes(n, 1, 4)], dilation=[None, None, 2])
    if "dilation" not in options:  # PyTorch writes the gradient of a dilated window of padding elsewhere
        options["padding"] = [d.randint(0, k // 2) for k in options["kernel_size"]]
    d.tensor(*([] if d.chance(0.1) else [d.randint(1, 3)]), d.choice([1, 3, 17]), *d.sizes(n, 1, 12))
    return lambda F, x: getattr(F, f"max_pool{n}d")(x, **options)


@recipe
def avg_pool(d):
    n = d.randint(1, 3)
    kernel = d.sizes(n, 1, 4)
    options = {"padding": [d.randint(0, k // 2) for k in kernel], "ceil_mode": d.chance()}
    options |= d.option(stride=[None, d.sizes(n, 1, 4)], count_include_pad=[True, False])
    if n > 1:
        options |= d.option(divisor_override=[None, 3, -2])
    d.tensor(*([] if d.chance(0.1) else [d.randint(1, 3)]), d.choice([1, 3, 17]), *d.sizes(n, 1, 12))
    return lambda F, x: getattr(F, f"avg_pool{n}d")(x, kernel, **options)


@recipe
def adaptive_pool(d):
    n, kind = d.randint(1, 3), d.choice(["avg", "max"])
    size = d.sizes(n) if n == 1 else [d.choice([1, 2, 3, 5, 7, None]) for _ in range(n)]
    d.tensor(d.randint(1, 3), d.choice([1, 3, 17]), *d.sizes(n, 1, 12))
    return lambda F, x: getattr(F, f"adaptive_{kind}_pool{n}d")(x, size)


@recipe
def interpolate(d):
    n = d.randint(1, 3)
    mode = d.choice(["nearest", "nearest-exact", "area", ["linear"], ["bilinear", "bicubic"], ["trilinear"]])
    mode = d.choice([["linear"], ["bilinear", "bicubic"], ["trilinear"]][n - 1]) if isinstance(mode, list) else mode
    options = {"mode": mode}
    if mode[-5:] in ("inear", "cubic"):
        options |= d.option(align_corners=[None, True, False])
    if d.chance():
        options["size"] = d.sizes(n, 2, 13)
    else:
        options |= d.option(scale_factor=[0.5, 2, 1.5, 3.3], recompute_scale_factor=[None, True])
    if n == 2 and "align_corners" in options:
        options |= d.option(antialias=[None, True])
    d.tensor(d.randint(1, 3), d.choice([1, 3, 17]), *d.sizes(n, 4, 12))
    return lambda F, x: F.interpolate(x, **options)


@recipe
def grid_sample(d):
    n = d.choice([2, 2, 3])
    modes = ["bilinear", "nearest", "bicubic"][: 5 - n]
    options = d.option(mode=modes, padding_mode=["zeros", "border", "reflection"], align_corners=[True, False])
    batch = d.randint(1, 3)
    d.tensor(batch, d.randint(1, 4), *d.sizes(n))
    d.tensor(batch, *d.sizes(n), n)
    return lambda F, x, grid: F.grid_sample(x, grid * 0.8, **options)


@recipe
def pad(d):
    n = d.randint(2, 5)
    mode = d.choice(["constant", "reflect", "replicate", "circular"]) if n > 2 else "constant"
    amounts = [d.randint(-2, 2) for _ in range(2 * min(n - 2, 3) if mode != "constant" else 2 * d.randint(1, n))]
    d.tensor(*d.sizes(n, 5, 7))  # PyTorch reads memory where circular padding has cut off too much
    return lambda F, x: F.pad(x, amounts, mode=mode)


@recipe
def normalisation(d):
    groups, training = d.randint(1, 3), d.chance(0.6)
    c = groups * d.randint(1, 3)
    d.tensor(d.randint(2, 4), c, *d.sizes(d.randint(1, 3), 2, 7))
    shape = d.arrays[0][0].shape
    kind = d.choice(["layer", "group", "batch", "instance"])
    last = shape[d.randint(1, len(shape) - 1) :] if kind == "layer" else [c]
    for _ in range(2 * d.chance()):
        d.tensor(*last)
    if kind == "layer":
        return lambda F, x, *affine: F.layer_norm(x, last, *affine)
    if kind == "group":
        return lambda F, x, *affine: F.group_norm(x, groups, *affine)
    mean, var = d.constant(d.numbers.normal(size=c).astype(d.dtype)), d.constant(np.full(c, 2, d.dtype))
    options = {"training" if kind == "batch" else "use_input_stats": training, "momentum": d.choice([0.1, 1.0])}

    def run(F, x, *affine):
        running = mean(F).clone(), var(F).clone()
        return getattr(F, f"{kind}_norm")(x, *running, *affine, **options), *running

    return run


@recipe
def class_loss(d):
    n, c, rest = d.randint(1, 4), d.randint(2, 6), d.sizes(d.randint(0, 2), 1, 4)
    ignored = d.choice([-100, 1])
    target = d.classes(c, n, *rest)
    target[d.numbers.random(target.shape) < d.choice([0, 0.3, 1])] = ignored  # all of them, too
    target, weight = d.constant(target), d.constant(d.numbers.random(c).astype(d.dtype))
    options = d.option(reduction=["mean", "sum", "none"], label_smoothing=[None, None, 0.1])
    weighted, logs = d.chance(), d.chance()
    d.tensor(n, c, *rest)

    def run(F, x):
        w = weight(F) if weighted else None
        if logs:
            return F.nll_loss(x, target(F), w, ignore_index=ignored, reduction=options["reduction"])
        return F.cross_entropy(x, target(F), w, ignore_index=ignored, **options)

    return run


@recipe
def pair_loss(d):
    shape, reduction = d.sizes(d.randint(1, 4), 1, 6), d.choice(["mean", "sum", "none"])
    name, options = d.choice([
        ("mse_loss", {}), ("l1_loss", {}), ("smooth_l1_loss", d.option(beta=[1.0, 0.5, 0.0])), ("huber_loss", {"delta": 0.5}),
        ("kl_div", d.option(log_target=[True, False])), ("binary_cross_entropy_with_logits", {}), ("soft_margin_loss", {}),
        ("poisson_nll_loss", d.option(log_input=[True, False])), ("hinge_embedding_loss", {"margin": 0.7}),
    ])  # fmt: skip
    d.tensor(*shape, positive=True)
    target = np.sign(d.numbers.normal(size=shape)) if name in ("soft_margin_loss", "hinge_embedding_loss") else (
        d.numbers.random(shape))  # fmt: skip
    target = d.constant(target.astype(d.dtype))
    return lambda F, x: getattr(F, name)(x, target(F), reduction=reduction, **options)


@recipe
def embedding(d):  # not scale_grad_by_freq: PyTorch's second derivative and its embedding_bag divide by other counts
    rows, mode = d.randint(1, 8), d.choice([None, "sum", "mean", "max"])
    options = d.option(padding_idx=[None, 0, -1])
    index = d.constant(d.classes(rows, d.randint(1, 4), d.randint(1, 4)))
    d.tensor(rows, d.randint(1, 6))
    if mode is None:
        return lambda F, w: F.embedding(index(F), w, **options)
    return lambda F, w: F.embedding_bag(index(F), w, mode=mode, **options)


@recipe
def attention(d):
    lead, keys, causal = d.sizes(2, 1, 3), d.randint(1, 9), d.chance(0.3)
    queries, width = d.randint(1, 9), d.choice([1, 3, 8, 16])
    for size, length in ((width, queries), (width, keys), (d.choice([1, 3, 8]), keys)):
        d.tensor(*lead, length, size)
    mask = d.numbers.random((queries, keys)) > 0.3
    mask[:, 0] = True
    mask = d.constant(mask) if d.chance() and not causal else lambda F: None
    return lambda F, *x: F.scaled_dot_product_attention(*x, mask(F), is_causal=causal)


@recipe
def windows(d):
    kernel, size = d.sizes(2, 1, 3), d.sizes(2, 5, 9)
    options = d.option(dilation=[1, 2], padding=[0, 1, 2], stride=[1, 2, (1, 3)])
    d.tensor(2, 3, *size)
    return lambda F, x: (y := F.unfold(x, kernel, **options), F.fold(y * y, size, kernel, **options))


def run(lib, seed, make):
    """Values, and the gradients of a weighted sum of their squares, twice where the first can be differentiated."""
    d = Draw(seed)
    f = make(d)
    leaves = [lib.from_numpy(array).requires_grad_() for array, _ in d.arrays]
    made = f(lib.nn.functional, *(layout(lib, x) for x, (_, layout) in zip(leaves, d.arrays, strict=True)))
    results = list(made) if isinstance(made, (tuple, list)) else [made]
    total = sum((y * y * (lib.arange(y.numel()) % 3).view(y.shape)).sum() for y in results if y.requires_grad)
    first = lib.autograd.grad(total, leaves, create_graph=True, materialize_grads=True)
    inner = sum((g * g).sum() for g in first)
    second, error = outcome(lib.autograd.grad, inner, leaves, materialize_grads=True)
    return [y.detach() for y in (*results, *first)], None if error else second


def compare(name, seed):
    make = RECIPES[name]
    theirs, their_error = outcome(run, torch, seed, make)
    ours, our_error = outcome(run, taeda, seed, make)
    if their_error is not None:  # what has no result is for the tests of errors
        return
    assert our_error is None, f"{name} {seed}: {our_error!r}"
    for what, got, want in zip(("values and gradients", "second derivatives"), ours, theirs, strict=True):
        if got is None or want is None:
            continue
        finite = [float(y[y.isfinite()].abs().max()) for y in want if y.is_floating_point() and y.isfinite().any()]
        close(list(got), list(want), f"{name} {seed}: {what}", rtol=1e-4, atol=2e-5 * max([1.0, *finite]))


@pytest.mark.parametrize("name", RECIPES)
def test_sample(name):
    for seed in range(15):
        compare(name, seed)


@pytest.mark.sweep
@pytest.mark.parametrize("name", RECIPES)
def test_sweep(name):
    for seed in range(1000, 4000):
        compare(name, seed)

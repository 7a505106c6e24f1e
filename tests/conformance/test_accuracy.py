"""Rounding errors of the kernels that fuse or reorder sums: against float64, at most twice those of PyTorch's own float32.

An error is the root mean square of the differences by that of the exact values. What float32 cannot even represent (half a
unit in the last place) is allowed to both.
"""

import pytest

torch = pytest.importorskip("torch")

import taeda  # noqa: E402

from . import peer  # noqa: E402

ROUNDING = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def _relative(got, exact):
    got, exact = got.double(), exact.double()
    return ((got - exact).square().mean().sqrt() / exact.square().mean().sqrt().clamp_min(1e-30)).item()


def _with_gradients(fn):
    """``fn`` and then the gradients of its floating-point inputs, for random gradients of what it gives."""

    def run(T, *inputs):
        inputs = [x.detach().clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
        out = fn(T, *inputs)
        outs = out if isinstance(out, tuple) else (out,)
        generator = torch.Generator().manual_seed(7)
        weights = [torch.randn(tuple(o.shape), generator=generator, dtype=torch.float64) for o in outs]
        weights = [(w if T is torch else peer.ours(w)).to(o.dtype) for w, o in zip(weights, outs, strict=True)]
        wanted = [x for x in inputs if x.requires_grad]
        return (*outs, *T.autograd.grad(outs, wanted, weights))

    return run


def check(fn, *inputs, factor=2.0, dtype="float32"):
    """Compare the errors of both frameworks, result by result."""
    exact = fn(torch, *(x.double() if x.is_floating_point() else x for x in inputs))
    low = [x.to(getattr(torch, dtype)) if x.is_floating_point() else x for x in inputs]
    theirs = fn(torch, *low)
    mine = [peer.theirs(t) for t in fn(taeda, *(peer.ours(x) for x in low))]
    assert len(mine) == len(theirs) == len(exact) > 0
    for i, (m, t, e) in enumerate(zip(mine, theirs, exact, strict=True)):
        assert m.shape == t.shape and m.dtype == t.dtype
        error, allowed = _relative(m, e), factor * max(_relative(t, e), ROUNDING[dtype])
        assert error <= allowed, f"result {i}: error {error:.2e}, PyTorch's {_relative(t, e):.2e}"


def randn(*shape, seed=0):
    return (
        torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64)
        .float()
        .double()
    )


def indices(high, *shape):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(high))


# ---- convolution and pooling -----------------------------------------------------------------------------------------

CONVOLUTIONS = {
    "3x3": ((2, 16, 14, 14), (24, 16, 3, 3), {"padding": 1}),
    "3x3 of many channels": ((2, 64, 12, 12), (64, 64, 3, 3), {"padding": 1}),
    "stride 2": ((2, 8, 17, 17), (16, 8, 3, 3), {"padding": 1, "stride": 2}),
    "1x1": ((2, 32, 9, 9), (16, 32, 1, 1), {}),
    "5x5, dilated": ((2, 4, 20, 20), (8, 4, 5, 5), {"dilation": 2, "padding": 3}),
    "groups": ((2, 12, 10, 10), (18, 4, 3, 3), {"groups": 3}),
    "depthwise": ((2, 16, 11, 11), (16, 1, 3, 3), {"groups": 16, "padding": 1}),
    "small images": ((4, 64, 4, 4), (96, 64, 3, 3), {"padding": 1}),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(case):
    x, w, options = CONVOLUTIONS[case]
    run = _with_gradients(lambda T, x, w, b: T.nn.functional.conv2d(x, w, b, **options))
    check(run, randn(*x), randn(*w) * 0.1, randn(w[0]))


@pytest.mark.parametrize("n", [1, 3])
def test_convolution_of_other_ranks(n):
    x, w = (2, 6, *(9,) * n), (8, 6, *(3,) * n)
    conv, transposed = f"conv{n}d", f"conv_transpose{n}d"
    check(_with_gradients(lambda T, x, w: getattr(T.nn.functional, conv)(x, w)), randn(*x), randn(*w))
    check(
        _with_gradients(lambda T, x, w: getattr(T.nn.functional, transposed)(x, w, stride=2)),
        randn(*x),
        randn(6, 8, *w[2:]),
    )


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_pooling(name):
    check(_with_gradients(lambda T, x: getattr(T.nn.functional, name)(x, 3, 2, 1)), randn(2, 5, 15, 15))
    check(_with_gradients(lambda T, x: T.nn.functional.adaptive_avg_pool2d(x, 3)), randn(2, 5, 16, 16))


# ---- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [None, 1e4])
@pytest.mark.parametrize("width", [33, 1024, 2001])
def test_norms_of_rows(width, first):
    """Also with a first element, from which differences are summed, that is far from the others."""
    x, w, b = randn(40, width) * 3 + 1, randn(width), randn(width, seed=1)
    if first is not None:
        x[::2, 0] = first
    check(_with_gradients(lambda T, x, w, b: T.nn.functional.layer_norm(x, (width,), w, b)), x, w, b)
    check(_with_gradients(lambda T, x, w: T.nn.functional.rms_norm(x, (width,), w)), x, w)


def test_norms_of_channels():
    x, w, b = randn(6, 12, 9, 9) * 2 + 1, randn(12), randn(12, seed=1)
    check(_with_gradients(lambda T, x, w, b: T.nn.functional.batch_norm(x, None, None, w, b, training=True)), x, w, b)
    check(_with_gradients(lambda T, x, w, b: T.nn.functional.group_norm(x, 3, w, b)), x, w, b)
    check(_with_gradients(lambda T, x, w, b: T.nn.functional.instance_norm(x, weight=w, bias=b)), x, w, b)


@pytest.mark.parametrize("mean", [0.0, 100.0])
def test_norms_of_channels_last(mean):
    """Sums by blocks of rows, also of numbers far from 0."""

    def last(norm):
        return _with_gradients(lambda T, x, *more: norm(T, x.contiguous(memory_format=T.channels_last), *more))

    x, w, b = randn(8, 70, 23, 25) + mean, randn(70, seed=1), randn(70, seed=2)
    check(last(lambda T, x, w, b: T.nn.functional.batch_norm(x, None, None, w, b, training=True)), x, w, b)
    check(last(lambda T, x, w, b: T.nn.functional.group_norm(x, 7, w, b)), x, w, b)


@pytest.mark.parametrize("width", [10, 1000])
def test_softmax_and_cross_entropy(width):
    x, target = randn(64, width) * 4, indices(width, 64)
    check(_with_gradients(lambda T, x: T.softmax(x, -1)), x)
    check(_with_gradients(lambda T, x: T.log_softmax(x, -1)), x)
    check(_with_gradients(lambda T, x: T.softmax(x, 0)), x)
    for options in ({}, {"label_smoothing": 0.1}, {"reduction": "sum"}):
        loss = _with_gradients(lambda T, x, t, o=options: T.nn.functional.cross_entropy(x, t, **o))
        check(loss, x, target)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 40, 16), (1, 2, 130, 32)])
def test_attention(shape, causal):
    q, k, v = (randn(*shape, seed=i) for i in range(3))
    run = _with_gradients(lambda T, q, k, v: T.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal))
    check(run, q, k, v)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [0.1, 1, 10, 100])
@pytest.mark.parametrize("kind", ["all", "causal", "bool", "added"])
@pytest.mark.parametrize("length, numbers", [(64, 16), (150, 80)])
def test_attention_of_scores_of_any_size(length, numbers, kind, size, dtype):
    """``size`` is about that of the scores; of 100 only a few keys have any weight."""
    stored = getattr(torch, dtype)
    q, k, v = (randn(1, 2, length, numbers, seed=i) * (1 if i else size) for i in range(3))
    q, k, v, added = (x.to(stored).double() for x in (q, k, v, randn(length, length)))
    mask = {"bool": added < 0.5, "added": added}.get(kind)

    def attention(T, q, k, v):
        m = mask if mask is None or T is torch else peer.ours(mask)
        m = m.to(q.dtype) if kind == "added" else m
        return T.nn.functional.scaled_dot_product_attention(q, k, v, m, is_causal=kind == "causal")

    check(_with_gradients(attention), q, k, v, dtype=dtype)


def test_embedding_gradient():
    rows = indices(20, 400)
    check(_with_gradients(lambda T, w, i: T.nn.functional.embedding(i, w)), randn(20, 33), rows)


# ---- recurrent layers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(kind):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    weights = [randn(gates * 24, 16), randn(gates * 24, 24), randn(gates * 24), randn(gates * 24, seed=1)]

    def run(T, x, *weights):
        layer = getattr(T.nn, kind)(16, 24).to(x.dtype)
        for p, w in zip(layer.parameters(), weights, strict=True):
            p.data = w
        x = x.clone().requires_grad_()
        out = layer(x)[0]
        out.square().sum().backward()
        return (out, x.grad, *(p.grad for p in layer.parameters()))

    check(run, randn(20, 5, 16), *(w * 0.2 for w in weights))


# ---- products and sums -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m,n,k", [(1, 64, 700), (17, 5, 300), (64, 64, 64), (130, 270, 600)])
def test_products(m, n, k):
    a, b, c = randn(m, k), randn(k, n, seed=1), randn(n, seed=2)
    check(lambda T, a, b: (a @ b,), a, b)
    check(lambda T, a, b: (a @ b,), a, b.t().contiguous().t())
    check(lambda T, a, b: (a @ b,), a.t().contiguous().t(), b)
    check(lambda T, a, b, c: (T.nn.functional.linear(a, b, c),), a, b.t().contiguous(), c)
    check(lambda T, a, b: (T.bmm(a, b),), randn(3, m, k), randn(3, k, n, seed=1))


def test_bfloat16_products():
    for m, n, k in ((1, 64, 200), (70, 130, 300)):
        a, b = randn(m, k).bfloat16().double(), randn(k, n, seed=1).bfloat16().double()
        check(lambda T, a, b: (a @ b,), a, b, dtype="bfloat16")


def test_int8_products_are_exact():
    for m, n, k in ((17, 40, 64), (130, 70, 300)):
        a, b = indices(255, m, k) - 127, indices(254, k, n) - 127
        got = peer.theirs(taeda._int_mm(peer.ours(a.to(torch.int8)), peer.ours(b.to(torch.int8))))
        assert torch.equal(got.long(), a @ b)


@pytest.mark.parametrize("name", ["sum", "mean", "var", "logsumexp", "norm", "cumsum"])
def test_sums(name):
    for x in (randn(300, 1000) + 0.5, randn(100_000) + 0.5):
        for dim in range(x.dim()):
            check(
                lambda T, x, d=dim: (T.linalg.vector_norm(x, dim=d) if name == "norm" else getattr(T, name)(x, d),), x
            )


@pytest.mark.parametrize("name", ["gelu", "silu", "softplus", "mish", "elu", "sigmoid", "tanh"])
def test_activations(name):
    check(_with_gradients(lambda T, x: getattr(T.nn.functional, name)(x)), randn(5000) * 3)


# ---- optimisers ------------------------------------------------------------------------------------------------------

OPTIMISERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
    "Adam": {"lr": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.01},
    "RMSprop": {"lr": 0.01, "momentum": 0.5, "centered": True},
    "Adagrad": {"lr": 0.1},
    "Adadelta": {"lr": 0.5},
    "NAdam": {"lr": 0.01},
    "RAdam": {"lr": 0.01},
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers(name):
    def run(T, start, *grads):
        p = start.clone().requires_grad_()
        optimizer = getattr(T.optim, name)([p], **OPTIMISERS[name])
        for g in grads:
            p.grad = g.clone()
            optimizer.step()
        return (p.detach() - start,)

    check(run, randn(1000), *(randn(1000, seed=i) for i in range(1, 9)))


# ---- elementary functions --------------------------------------------------------------------------------------------

#: Where each is sampled: numbers of every exponent, even ones and small ones.
FUNCTIONS = {
    **dict.fromkeys(("sin", "cos", "tan", "atan", "asinh"), (-1e30, 1e30)),
    **dict.fromkeys(("exp", "expm1", "sinh", "cosh", "tanh", "sigmoid"), (-80.0, 80.0)),
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt", "lgamma", "special.entr"), (1e-30, 1e30)),
    **dict.fromkeys(("asin", "acos", "atanh", "special.erfinv"), (-1.0, 1.0)),
    **dict.fromkeys(("special.i0", "special.i0e", "special.i1", "special.i1e"), (-60.0, 60.0)),
    **dict.fromkeys(("silu", "softplus", "mish", "logsigmoid", "elu", "selu"), (-60.0, 60.0)),
    "exp2": (-120.0, 120.0),
    "log1p": (-1.0, 1e30),
    "acosh": (1.0, 1e30),
    "special.erf": (-6.0, 6.0),
    "special.erfc": (-6.0, 9.0),
    "special.ndtri": (1e-30, 1.0),
    "atan2": (-1e30, 1e30),
    "hypot": (-1e15, 1e15),
    "pow": (1e-3, 20.0),
    "xlogy": (1e-3, 1e3),
}
#: Those of two arguments.
PAIRS = ("atan2", "hypot", "pow", "xlogy")


def _function(T, name):
    for space in (T, T.special, T.nn.functional):
        if hasattr(space, name.removeprefix("special.")):
            return getattr(space, name.removeprefix("special."))
    raise AttributeError(name)


def _samples(low, high, dtype, n, seed):
    generator = torch.Generator().manual_seed(seed)

    def uniform(a, b):
        return torch.rand(n, generator=generator, dtype=torch.float64) * (b - a) + a

    largest = max(abs(low), abs(high))
    sizes = torch.exp2(uniform(-40.0, float(torch.log2(torch.tensor(largest)))))
    signs = torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
    x = torch.cat(
        [sizes, sizes * signs, uniform(max(low, -10.0), min(high, 10.0)), uniform(max(low, -2.0), min(high, 2.0))]
    )
    x = x.to(dtype)
    return x[(x >= low) & (x <= high) & (x != 0)]


def _worst(got, exact, digits):
    """The largest distance in units of the last of so many binary digits."""
    exponent = torch.frexp(exact).exponent.to(torch.float64)
    unit = torch.exp2(exponent - digits)
    error = ((got.double() - exact) / unit).abs()
    return error[torch.isfinite(exact) & (exact != 0)].max().item()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions(name):
    """Against float64: at most twice PyTorch's error, or a unit of the last place; 16-bit types to half of one of theirs."""
    count = 2 if name in PAIRS else 1
    for dtype, digits in (("float32", 24), ("bfloat16", 8), ("float16", 11)):
        low, high = (
            FUNCTIONS[name] if dtype != "float16" else (max(FUNCTIONS[name][0], -6.0), min(FUNCTIONS[name][1], 6.0))
        )
        xs = [_samples(low, high, getattr(torch, dtype), 5000, seed) for seed in range(count)]
        xs = [x[: min(map(len, xs))] for x in xs]
        exact = _function(torch, name)(*(x.double() for x in xs))
        normal = exact.abs() > torch.finfo(xs[0].dtype).tiny
        exact = exact.where(normal & (exact.abs() < torch.finfo(xs[0].dtype).max), torch.zeros(()).double())
        error = _worst(peer.theirs(_function(taeda, name)(*(peer.ours(x) for x in xs))), exact, digits)
        allowed = max(1.0, 2 * _worst(_function(torch, name)(*xs), exact, digits)) if dtype == "float32" else 0.51
        assert error <= allowed, (dtype, error, allowed)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if not n.startswith("special.i") and n != "mish"])
def test_elementary_functions_of_float64(name):
    """Against 40 digits."""
    mp = pytest.importorskip("mpmath")
    exactly = {
        **{n.removeprefix("special."): getattr(mp, n.removeprefix("special.")) for n in FUNCTIONS if hasattr(mp, n.removeprefix("special."))},
        "exp2": lambda x: mp.power(2, x),
        "log2": lambda x: mp.log(x, 2),
        "rsqrt": lambda x: 1 / mp.sqrt(x),
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
        "silu": lambda x: x / (1 + mp.exp(-x)),
        "softplus": lambda x: mp.log1p(mp.exp(x)) if x <= 20 else x,
        "logsigmoid": lambda x: -mp.log1p(mp.exp(-x)),
        "elu": lambda x: x if x > 0 else mp.expm1(x),
        "selu": lambda x: mp.mpf("1.0507009873554804934193349852946") * (
            x if x > 0 else mp.mpf("1.6732632423543772848170429916717") * mp.expm1(x)
        ),
        "entr": lambda x: -x * mp.log(x),
        "lgamma": lambda x: mp.loggamma(x),
        "ndtri": lambda p: -mp.sqrt(2) * mp.erfinv(1 - 2 * p) if p > 1e-9 else mp.nan,
        "pow": mp.power,
        "xlogy": lambda x, y: x * mp.log(y),
    }[name.removeprefix("special.")]  # fmt: skip
    count = 2 if name in PAIRS else 1
    xs = [_samples(*FUNCTIONS[name], torch.float64, 150, seed) for seed in range(count)]
    xs = [x[: min(map(len, xs))] for x in xs]
    mine, theirs = peer.theirs(_function(taeda, name)(*(peer.ours(x) for x in xs))), _function(torch, name)(*xs)
    errors = []
    with mp.workdps(40):
        for p, *both in zip(zip(*(x.tolist() for x in xs), strict=True), mine.tolist(), theirs.tolist(), strict=True):
            exact = exactly(*map(mp.mpf, p))
            if mp.isfinite(exact) and abs(exact) > 1e-300:
                unit = mp.mpf(2) ** (mp.frexp(exact)[1] - 53)
                errors.append([float(abs(y - exact) / unit) for y in both])
    error, other = map(max, zip(*errors, strict=True))
    assert error <= max(1.0, 2 * other), (error, other)

"""Ops that take several nodes, written as ONNX and run in onnxruntime."""

import pytest

import taeda
import taeda.onnx
from taeda.nn import functional as F

from .test_special import Apply

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def run(function, *args, **options):
    return taeda.onnx.export(Apply(function), args, **options)


def expect(program, function, *args):
    made, wanted = program(*args), function(*args)
    for x, y in zip(made, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        near = 1e-5 * max(1.0, float(y.double().nan_to_num(0, 0, 0).abs().max()) if y.numel() else 0.0)
        assert x.shape == y.shape and x.dtype == y.dtype and taeda.allclose(x, y, 1e-4, near, equal_nan=True)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("whole", [False, True])
def test_ctc_loss(reduction, whole):
    taeda.manual_seed(0)

    def loss(x, targets, steps, lengths):
        return F.ctc_loss(x.log_softmax(-1), targets, steps, lengths, 2, reduction, zero_infinity=whole)

    def inputs(time, batch, most):
        lengths = taeda.randint(0, most + 1, (batch,))
        lengths[0] = most
        targets = taeda.randint(0, 4, (batch, most)) % 4
        targets = targets + (targets >= 2).to(taeda.int64)  # none of them blank; neighbours that are equal
        if whole:
            targets = taeda.cat([row[:n] for row, n in zip(targets, lengths.tolist(), strict=True)])
        return taeda.randn(time, batch, 5), targets, taeda.randint(1, time + 1, (batch,)), lengths

    auto = taeda.export.Dim.AUTO
    sizes = {"xs": ({0: auto, 1: auto}, {0: auto} if whole else {0: auto, 1: auto}, {0: auto}, {0: auto})}
    program = run(loss, *inputs(9, 4, 3), dynamic_shapes=sizes)
    for form in ((9, 4, 3), (20, 5, 8), (6, 3, 4), (3, 6, 5)):  # the last ones do not fit: infinite, or 0
        expect(program, loss, *inputs(*form))
    alone = inputs(9, 1, 3)
    single = [alone[0][:, 0], alone[1].reshape(-1), *alone[2:]]
    expect(run(loss, *single), loss, *single)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
def test_distances(p):
    taeda.manual_seed(0)
    sizes = {"xs": ({0: taeda.export.Dim("n")}, {1: taeda.export.Dim("rows")})}

    def between(x, y):
        return taeda.cdist(x, y, p=p)

    program = run(between, taeda.randn(3, 4), taeda.randn(2, 5, 4), dynamic_shapes=sizes)
    expect(program, between, taeda.randn(6, 4), taeda.randn(2, 9, 4))
    expect(run(lambda x: F.pdist(x, p), taeda.randn(5, 3)), lambda x: F.pdist(x, p), taeda.randn(5, 3))


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
def test_mantissas_and_exponents(dtype):
    x = taeda.tensor([0.0, 1, 0.5, 2, -3, 0.75, 1023.999, 1024, 1e30, -1e-30, float("inf"), float("nan")], dtype=dtype)
    more = 2.0 ** taeda.arange(-60, 60).to(dtype)
    tiny = [5e-324, 1e-310, 2.2e-308, 1.7e308] if dtype is taeda.float64 else [1e-44, 1.1e-38, 3.4e38]
    x = taeda.cat([x, more, more * (1 - taeda.finfo(dtype).eps), taeda.tensor(tiny, dtype=dtype)])
    (mantissa, exponent), wanted = run(taeda.frexp, x)(x), taeda.frexp(x)
    known = x.isfinite()
    assert taeda.equal(mantissa[known], wanted[0][known]) and taeda.equal(exponent[known], wanted[1][known])


@pytest.mark.parametrize("x", [taeda.tensor([[0, 3, 0], [1, 0, 2]]), taeda.tensor(5)], ids=["matrix", "number"])
def test_first_places_that_are_not_zero(x):
    for size in (0, 2, 3, 7):
        expect(run(lambda x, size=size: taeda.nonzero_static(x, size=size), x),
               lambda x, size=size: taeda.nonzero_static(x, size=size), x)  # fmt: skip


def test_draws_without_replacement():
    weights = taeda.tensor([[5.0, 1, 0, 2, 2]]).expand(4000, 5).contiguous()
    (drawn,) = run(lambda w: taeda.multinomial(w, 3), weights)(weights)
    assert drawn.shape == (4000, 3) and int((drawn == 2).sum()) == 0
    assert all(len(set(row)) == 3 for row in drawn.tolist())
    first = taeda.bincount(drawn[:, 0], minlength=5) / 4000
    assert taeda.allclose(first, weights[0] / 10, atol=0.04)


def test_dropout_that_keeps_mean_and_variance():
    x = taeda.randn(40, 50, 4, 4)
    for function in (F.alpha_dropout, F.feature_alpha_dropout):
        (y,) = run(lambda x, f=function: f(x, 0.3, True), x)(x)
        assert abs(float(y.mean())) < 0.15 and abs(float(y.var()) - 1) < 0.2
        kept = y != y.flatten().mode()[0]
        assert abs(float(kept.float().mean()) - 0.7) < 0.06
    channels = kept.flatten(2)
    assert taeda.equal(channels.all(-1), channels.any(-1))


def test_sizes_are_tuples():
    program = run(lambda x, sizes: x.split(sizes), taeda.randn(5), taeda.Size([2, 3]))
    x = taeda.randn(5)
    for sizes in ((2, 3), taeda.Size([2, 3])):
        assert [len(part) for part in program(x, sizes)] == [2, 3]


DRAWS = {
    "bernoulli": (lambda x: taeda.bernoulli(x * 0 + 0.8), 0.8, 0.4),
    "bernoulli_p": (lambda x: taeda.bernoulli(x, 0.2), 0.2, 0.4),
    "bernoulli_": (lambda x: x.clone().bernoulli_(0.9), 0.9, 0.3),
    "dropout": (lambda x: F.dropout(x * 0 + 1, 0.2), 1.0, 0.5),
    "rand_like": (taeda.rand_like, 0.5, 12**-0.5),
    "randn_like": (taeda.randn_like, 0.0, 1.0),
    "uniform_": (lambda x: x.clone().uniform_(-1, 3), 1.0, 4 * 12**-0.5),
    "normal_": (lambda x: x.clone().normal_(2, 3), 2.0, 3.0),
    "exponential_": (lambda x: x.clone().exponential_(2.0), 0.5, 0.5),
    "geometric_": (lambda x: x.clone().geometric_(0.25), 4.0, 12**0.5),
    "randint_like": (lambda x: taeda.randint_like(x, 2, 6), 3.5, 1.118),
    "multinomial": (lambda x: taeda.multinomial(taeda.tensor([0.1, 0.2, 0.7]), 40000, True).float(), 1.6, 0.6633),
    "rrelu": (lambda x: F.rrelu(x * 0 - 1, 0.1, 0.5, True), -0.3, 0.4 * 12**-0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_mean_and_deviation_of_what_is_drawn(name):
    function, mean, deviation = DRAWS[name]
    x = taeda.zeros(40000) + 0.5
    for y in (function(x), run(function, x)(x)[0]):
        assert abs(float(y.mean()) - mean) < 6 * deviation / 200 and abs(float(y.std()) / deviation - 1) < 0.05


def _sizes(x):
    return {"xs": (dict.fromkeys(range(2, x.dim()), taeda.export.Dim.AUTO),)}


POOLS = {
    "adaptive_avg": lambda x: F.adaptive_avg_pool2d(x, (3, 5)),
    "adaptive_avg_1": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive_avg_as_it_is": lambda x: F.adaptive_avg_pool2d(x, (4, None)),
    "adaptive_max": lambda x: F.adaptive_max_pool2d(x, (3, 5)),
    "max_ceil": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "max_ceil_dilated": lambda x: F.max_pool2d(x, 2, 3, 1, 2, ceil_mode=True),
    "max": lambda x: F.max_pool2d(x, 3, 2, 1),
    "avg_ceil": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "avg_ceil_without_padding": lambda x: F.avg_pool2d(x, (3, 2), (2, 3), 1, True, False),
    "avg_ceil_divisor": lambda x: F.avg_pool2d(x, 3, 2, 0, True, True, 5),
    "lp": lambda x: F.lp_pool2d(x.abs(), 2, 3, 2, ceil_mode=True),
}


@pytest.mark.parametrize("name", POOLS)
def test_pooling_of_sizes_that_change(name):
    function, x = POOLS[name], taeda.randn(2, 3, 9, 8)
    program = run(function, x, dynamic_shapes=_sizes(x))
    for h, w in ((9, 8), (10, 11), (5, 7), (12, 6), (31, 18)):
        expect(program, function, taeda.randn(2, 3, h, w))


TRANSFORMS = {
    "fft": lambda x: taeda.view_as_real(taeda.fft.fft(x)),
    "ifft": lambda x: taeda.view_as_real(taeda.fft.ifft(x)),
    "rfft": lambda x: taeda.fft.rfft(x, norm="forward").abs(),
    "irfft": lambda x: taeda.fft.irfft(taeda.fft.rfft(x) * 2),
    "hfft": lambda x: taeda.fft.hfft(x + 0j, norm="ortho"),
    "fft2": lambda x: taeda.view_as_real(taeda.fft.fft2(x, norm="ortho")),
    "irfft2": lambda x: taeda.fft.irfft2(taeda.fft.rfft2(x), norm="ortho"),
    "fftshift": lambda x: taeda.fft.fftshift(x),
    "stft": lambda x: taeda.stft(x.flatten(0, 2), 4, 2, window=taeda.hann_window(4), return_complex=True).abs(),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_sizes_that_change(name):
    function, x = TRANSFORMS[name], taeda.randn(2, 3, 8, 10)
    program = run(function, x, dynamic_shapes=_sizes(x))
    for h, w in ((8, 10), (7, 12), (5, 4)):
        expect(program, function, taeda.randn(2, 3, h, w))


WRITTEN_IN_OTHERS = {
    "mse_loss": lambda x: F.mse_loss(x, x * 2),
    "huber_loss": lambda x: F.huber_loss(x, x * 2, "none"),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x * 2),
    "threshold": lambda x: F.threshold(x, 0.1, 2.0),
    "deg2rad": taeda.deg2rad,
    "logit": lambda x: x.sigmoid().logit(),
    "heaviside": lambda x: taeda.heaviside(x, x),
    "isclose": lambda x: taeda.isclose(x, x.round()),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "of_a_row": lambda x: taeda.heaviside(x, x[:1]),
}


@pytest.mark.parametrize("name", WRITTEN_IN_OTHERS)
def test_ops_that_are_written_in_others_at_sizes_that_change(name):
    function, auto = WRITTEN_IN_OTHERS[name], taeda.export.Dim.AUTO
    program = run(function, taeda.randn(3, 4), dynamic_shapes={"xs": ({0: auto, 1: auto},)})
    for n, m in ((3, 4), (1, 7), (9, 2)):
        expect(program, function, taeda.randn(n, m))


DECOMPOSED = {
    "stack": lambda x: taeda.stack([x, x * 2]),
    "unbind": lambda x: taeda.stack(x.unbind(1)[::2]),
    "roll": lambda x: x.roll((1, -1), (0, 1)),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "take": lambda x: x.take(taeda.tensor([1, 5, 2])),
    "like": lambda x: (taeda.zeros_like(x) + taeda.ones_like(x)) * x,
    "new": lambda x: x.new_ones(3, 4) * x + x.new_full((3, 4), 2),
    "inner": lambda x: taeda.inner(x, x),
    "divided": lambda x: 1 / x,
    "masked_fill": lambda x: x.masked_fill(x.real > 0, 2.0),
}


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.complex64], ids=str)
@pytest.mark.parametrize("name", DECOMPOSED)
def test_ops_written_by_their_decomposition(name, dtype):
    taeda.manual_seed(0)
    x, function = taeda.randn(3, 4, dtype=dtype), DECOMPOSED[name]
    if not dtype.is_complex:
        expect(run(function, x), function, x)
    else:
        (made,) = run(function, x)(x)
        taeda.testing.assert_close(made, function(x), rtol=1e-4, atol=1e-5)

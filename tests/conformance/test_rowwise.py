"""Softmax, normalisation, losses and scans agree with PyTorch: values, dtypes, errors and both derivatives."""

import itertools

import pytest

import taeda
import taeda.nn.functional
from taeda._core.machine import last_cache
from taeda.fx.experimental.proxy_tensor import make_fx

torch = pytest.importorskip("torch")

from . import peer  # noqa: E402

FLOATING = ["float32", "float64", "float16", "bfloat16"]


def draw(*shape, dtype="float64", seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(
        getattr(torch, dtype)
    )


def tolerance(name):
    rules = {"float32": (3e-6, 3e-6), "float64": (1e-12, 1e-12), "float16": (2e-3, 2e-3), "bfloat16": (1.6e-2, 1.6e-2)}
    return dict(zip(("rtol", "atol"), rules[name], strict=True))


# ---- softmax --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("name", FLOATING)
def test_softmax(op, name):
    for shape in ((), (1,), (7,), (3, 5), (2, 130), (4, 1, 9), (3, 200, 6), (2, 3, 4, 5), (0, 3), (3, 0)):
        x = draw(*shape, dtype=name) * 4
        for dim in range(-max(len(shape), 1), max(len(shape), 1)):
            for y in (x, x.transpose(0, -1) if len(shape) > 1 else x):
                peer.compare((op, shape, dim), lambda T, y, d: getattr(T, op)(y, d), y, dim, tolerance=tolerance(name))


@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
def test_softmax_extremes(op):
    inf, nan = float("inf"), float("nan")
    x = torch.tensor(
        [[1e4, -1e4, 0], [-inf, 0, 1], [-inf] * 3, [inf, 1, 2], [nan, 1, 2], [-200, -100, -300], [88, 89, 90]]
    )
    for y in (x, x.t().contiguous().t(), x.repeat(1, 30), x.repeat(30, 1).t()):
        for dim in (0, 1):
            peer.compare(op, lambda T, y, d: getattr(T, op)(y, d), y, dim)


@pytest.mark.parametrize("op", ["softmax", "log_softmax", "logsumexp"])
def test_softmax_gradients(op):
    for dim in (0, 1, 2):
        peer.gradients(op, lambda T, x, d=dim: getattr(T, op)(x, d), draw(3, 4, 5), second=True)


def test_softmax_dtype_and_errors():
    x = draw(3, 4, dtype="float16")
    peer.compare("dtype", lambda T, x: T.softmax(x, 1, dtype=T.float32), x)
    peer.compare("dtype", lambda T, x: T.log_softmax(x.long(), 1, dtype=T.float32), x)
    for fn in (lambda T, x: x.softmax(2), lambda T, x: x.long().softmax(1), lambda T, x: T.softmax(3, 0)):
        peer.compare("error", fn, x, raises=peer.ERRORS)


# ---- normalisation --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", FLOATING)
def test_layer_norm(name):
    rule = {"float32": {"rtol": 1e-4, "atol": 1e-5}, "float64": {}}.get(name, {"rtol": 2e-2, "atol": 2e-2})
    for shape, n in (((3, 8), 1), ((2, 3, 5), 2), ((4, 300), 1), ((7,), 1), ((0, 3), 1), ((2, 1), 1), ((3, 2, 100), 1)):
        x, w, b = draw(*shape, dtype=name), draw(*shape[-n:], dtype=name, seed=1), draw(*shape[-n:], dtype=name, seed=2)
        for weight, bias in ((w, b), (w, None), (None, b), (None, None)):
            peer.compare(
                ("layer_norm", shape),
                lambda T, x, w, b, s=shape[-n:]: T.nn.functional.layer_norm(x, s, w, b),
                x,
                weight,
                bias,
                tolerance=rule,
            )
        peer.compare("rms", lambda T, x, w, s=shape[-n:]: T.nn.functional.rms_norm(x, s, w), x, w, tolerance=rule)
        peer.compare("rms", lambda T, x, s=shape[-n:]: T.nn.functional.rms_norm(x, s, eps=0.1), x, tolerance=rule)


@pytest.mark.parametrize("width", [1, 5, 1000])
def test_layer_norm_of_equal_elements(width):
    """They have no gradient, however large the inverse deviation: one alone exactly none, as in PyTorch."""
    x, w = taeda.full((3, width), 1.7).requires_grad_(), taeda.full((width,), 0.3)
    g = peer.ours(draw(3, 1, dtype="float32")).expand(3, width)
    (dx,) = taeda.autograd.grad(taeda.nn.functional.layer_norm(x, (width,), w), x, g)
    assert dx.abs().max().item() <= (0.0 if width == 1 else 1e-3)


def test_layer_norm_of_a_large_mean():
    x = draw(4, 1000, dtype="float32") + 1000
    want = torch.nn.functional.layer_norm(x.double(), (1000,)).float()
    peer.close(taeda.nn.functional.layer_norm(peer.ours(x), (1000,)), want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("second", [False, True])
def test_layer_norm_gradients(second):
    x, w, b = draw(6, 4, 5), draw(5, seed=1), draw(5, seed=2)
    peer.gradients("layer_norm", lambda T, x, w, b: T.nn.functional.layer_norm(x, (5,), w, b), x, w, b, second=second)
    peer.gradients("layer_norm", lambda T, x: T.nn.functional.layer_norm(x, (4, 5)), x, second=second)
    peer.gradients("rms_norm", lambda T, x, w: T.nn.functional.rms_norm(x, (5,), w), x, w, second=second)
    if not second:  # several blocks of rows
        x = draw(2500, 3)
        peer.gradients("layer_norm", lambda T, x, w, b: T.nn.functional.layer_norm(x, (3,), w, b), x, w[:3], b[:3])
        peer.gradients("rms_norm", lambda T, x, w: T.nn.functional.rms_norm(x, (3,), w), x, w[:3])


def batch_norm(T, x, w, b, training, momentum=0.1, update=True):
    mean, var = T.arange(x.shape[1]).to(w.dtype), T.arange(x.shape[1]).to(w.dtype) + 1
    y = T.nn.functional.batch_norm(x, mean if update else None, var if update else None, w, b, training, momentum)
    return y, mean, var


@pytest.mark.parametrize("name", FLOATING)
def test_batch_norm(name):
    rule = {"float32": {"rtol": 1e-4, "atol": 3e-4}, "float64": {}}.get(name, {"rtol": 2e-2, "atol": 2e-2})
    for shape in ((5, 3), (70, 40), (2, 3, 4), (4, 6, 5, 7), (2, 2, 3, 3, 3), (1, 20, 6)):
        x = draw(*shape, dtype=name) + 1
        w, b = draw(shape[1], dtype=name, seed=1), draw(shape[1], dtype=name, seed=2)
        for training in (True, False):
            peer.compare(("batch_norm", shape), batch_norm, x, w, b, training, tolerance=rule)
        peer.compare(
            ("batch_norm", shape), lambda T, x, w: batch_norm(T, x, w, None, True, 0.3, False)[0], x, w, tolerance=rule
        )
        if len(shape) > 2:
            peer.compare(
                "instance",
                lambda T, x, w, b: T.nn.functional.instance_norm(x, None, None, w, b),
                x,
                w,
                b,
                tolerance=rule,
            )
        for groups in (1, shape[1], 2):
            if shape[1] % groups == 0:
                peer.compare(
                    ("group_norm", shape, groups),
                    lambda T, x, w, b, g=groups: T.nn.functional.group_norm(x, g, w, b),
                    x,
                    w,
                    b,
                    tolerance=rule,
                )


def test_batch_norm_strides():
    x, w, b = draw(4, 6, 5, 7), draw(6, seed=1), draw(6, seed=2)
    x = x.to(memory_format=torch.channels_last)
    peer.compare("channels last", batch_norm, x, w, b, True)
    peer.compare("groups", lambda T, x, w, b: T.nn.functional.group_norm(x, 3, w, b), x, w, b)


@pytest.mark.parametrize("second", [False, True])
def test_batch_norm_gradients(second):
    for shape in ((5, 4), (3, 4, 6)):
        x, w, b = draw(*shape), draw(4, seed=1), draw(4, seed=2)
        for training in (True, False):
            peer.gradients(
                "batch_norm", lambda T, x, w, b, t=training: batch_norm(T, x, w, b, t)[0], x, w, b, second=second
            )
        peer.gradients("batch_norm", lambda T, x, w: batch_norm(T, x, w, None, True)[0], x, w, second=second)
        for away in (0, 30):  # statistics of what is far from 0 are taken again
            norm = lambda T, x, w, b: T.nn.functional.group_norm(x, 2, w, b)  # noqa: E731
            peer.gradients("group_norm", norm, x + away * torch.arange(shape[-1]).eq(0), w, b, second=second)
    for shape in ((140, 1024), (170, 1003)):  # so many channels that rows share what there is one of for each
        x, w, b = draw(*shape), draw(shape[1], seed=1), draw(shape[1], seed=2)
        peer.gradients("batch_norm", lambda T, x, w, b: batch_norm(T, x, w, b, True)[0], x, w, b)
    x, w = draw(2, 4, 9), draw(4, seed=1)
    peer.gradients("instance_norm", lambda T, x, w: T.nn.functional.instance_norm(x, weight=w), x, w, second=second)


def test_normalization_errors():
    x = draw(3, 6, dtype="float32")
    for fn in (
        lambda T, x: T.nn.functional.layer_norm(x, (4,)),
        lambda T, x: T.nn.functional.layer_norm(x.long(), (6,)),
        lambda T, x: T.nn.functional.layer_norm(x, (6,), T.ones(4)),
        lambda T, x: T.nn.functional.rms_norm(x, (4,)),
        lambda T, x: T.nn.functional.batch_norm(x, None, None),
        lambda T, x: T.nn.functional.batch_norm(x[:1], None, None, training=True),
        lambda T, x: T.nn.functional.batch_norm(x, T.ones(4), T.ones(6)),
        lambda T, x: T.nn.functional.group_norm(x, 4),
        lambda T, x: T.nn.functional.group_norm(x[0], 1),
        lambda T, x: T.nn.functional.instance_norm(x[..., None]),
    ):
        peer.compare("error", fn, x, raises=peer.ERRORS)


# ---- cross entropy --------------------------------------------------------------------------------------------------
def classes(*shape, n, ignore=None):
    t = torch.randint(0, n, shape, generator=torch.Generator().manual_seed(5))
    if ignore is not None and t.numel():
        t.view(-1)[0] = ignore
    return t


CASES = [((4, 5), (4,)), ((3, 40), (3,)), ((2, 5, 6), (2, 6)), ((2, 5, 3, 17), (2, 3, 17)), ((5,), ()), ((0, 5), (0,))]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("op", ["cross_entropy", "nll_loss"])
def test_cross_entropy(op, reduction):
    for shape, rows in CASES:
        n = shape[1] if len(shape) > 1 else shape[0]
        for name in FLOATING:
            x, w = draw(*shape, dtype=name) * 3, draw(n, dtype=name, seed=1).abs()
            for weight in (None, w):
                for ignore in (-100, 2):
                    t = classes(*rows, n=n, ignore=ignore if rows else None)
                    peer.compare(
                        (op, shape),
                        lambda T, x, t, w, i=ignore: getattr(T.nn.functional, op)(
                            x, t, w, ignore_index=i, reduction=reduction
                        ),
                        x,
                        t,
                        weight,
                        tolerance=tolerance(name),
                    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("second", [False, True])
def test_cross_entropy_gradients(reduction, second):
    for shape, rows in CASES[:5]:
        n = shape[1] if len(shape) > 1 else shape[0]
        x, w, t = draw(*shape), draw(n, seed=1).abs(), classes(*rows, n=n, ignore=-100 if rows else None)
        for op in ("cross_entropy", "nll_loss"):
            for weight in (None, w):
                peer.gradients(
                    op,
                    lambda T, x, op=op, w=weight, t=t: getattr(T.nn.functional, op)(
                        x, t if T is torch else peer.ours(t), w if T is torch else peer.ours(w), reduction=reduction
                    ),
                    x,
                    second=second and op == "cross_entropy",
                )


@pytest.mark.parametrize("op", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("shape", [(4, 5), (2, 5, 3, 17), (5,)])
def test_a_batch_whose_classes_are_all_ignored(op, shape):
    """The mean is NaN. The gradient is zero, and spares the parameters."""
    t = torch.full((shape[0], *shape[2:]) if len(shape) > 1 else (), 2)

    def loss(T, x):
        return getattr(T.nn.functional, op)(x, t if T is torch else peer.ours(t), ignore_index=2)

    peer.gradients(op, loss, draw(*shape), second=False)
    x = peer.ours(draw(*shape)).requires_grad_()
    assert loss(taeda, x).isnan().all() and not taeda.autograd.grad(loss(taeda, x), x)[0].any()
    (recorded,) = make_fx(lambda x: taeda.autograd.grad(loss(taeda, x), x))(x)(x)
    assert not recorded.any()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_of_soft_targets(reduction):
    for shape, rows in CASES[:5]:
        n = shape[1] if len(shape) > 1 else shape[0]
        dim = 1 if len(shape) > 1 else 0
        x, w, t = draw(*shape), draw(n, seed=1).abs(), classes(*rows, n=n, ignore=1 if rows else None)
        for weight in (None, w):
            peer.compare(
                "smoothing",
                lambda T, x, t, w: T.nn.functional.cross_entropy(
                    x, t, w, ignore_index=1, reduction=reduction, label_smoothing=0.1
                ),
                x,
                t,
                weight,
            )
            for smoothing in (0.0, 0.2):
                peer.compare(
                    "probabilities",
                    lambda T, x, t, w, s=smoothing: T.nn.functional.cross_entropy(
                        x, t, w, reduction=reduction, label_smoothing=s
                    ),
                    x,
                    draw(*shape, seed=3).softmax(dim),
                    weight,
                )
    x, p = draw(4, 5), draw(4, 5, seed=3).softmax(1)
    peer.gradients(
        "probabilities", lambda T, x, p: T.nn.functional.cross_entropy(x, p, reduction=reduction), x, p, second=True
    )


def test_cross_entropy_errors():
    x, t = draw(3, 5, dtype="float32"), torch.tensor([1, 2, 4])
    for fn in (
        lambda F, x, t: F.cross_entropy(x, t[:2]),
        lambda F, x, t: F.cross_entropy(x, t + 1),
        lambda F, x, t: F.cross_entropy(x, t - 2),
        lambda F, x, t: F.cross_entropy(x.t().contiguous().t()[:, :, None], t[:, None] + 1),
        lambda F, x, t: F.cross_entropy(x, t.float()),
        lambda F, x, t: F.cross_entropy(x, t.int()),
        lambda F, x, t: F.cross_entropy(x[:, :, None], t),
        lambda F, x, t: F.cross_entropy(x, t, x[0, :3]),
        lambda F, x, t: F.cross_entropy(x, t, reduction="a"),
        lambda F, x, t: F.cross_entropy(x.long(), t),
        lambda F, x, t: F.nll_loss(x, t + 1),
        lambda F, x, t: F.nll_loss(x, t[:2]),
        lambda F, x, t: F.nll_loss(x.sum(), t[0]),
    ):
        peer.compare("error", lambda T, x, t, fn=fn: fn(T.nn.functional, x, t), x, t, raises=peer.ERRORS)


# ---- other losses ---------------------------------------------------------------------------------------------------
def positive(x):
    return x.sigmoid()


LOSSES = {
    "mse": lambda F, x, y, **k: F.mse_loss(x, y, **k),
    "l1": lambda F, x, y, **k: F.l1_loss(x, y, **k),
    "smooth_l1": lambda F, x, y, **k: F.smooth_l1_loss(x, y, beta=0.7, **k),
    "smooth_l1 of 0": lambda F, x, y, **k: F.smooth_l1_loss(x, y, beta=0.0, **k),
    "huber": lambda F, x, y, **k: F.huber_loss(x, y, delta=0.7, **k),
    "bce": lambda F, x, y, **k: F.binary_cross_entropy(positive(x), positive(y), **k),
    "bce weight": lambda F, x, y, **k: F.binary_cross_entropy(positive(x), positive(y).detach(), y.detach().abs(), **k),
    "bce logits": lambda F, x, y, **k: F.binary_cross_entropy_with_logits(x, positive(y), **k),
    "bce pos_weight": lambda F, x, y, **k: F.binary_cross_entropy_with_logits(
        x, positive(y), weight=y.detach().abs(), pos_weight=y[0].detach().abs(), **k
    ),
    "kl_div": lambda F, x, y, **k: F.kl_div(x.log_softmax(1), y.softmax(1), **k),
    "kl_div log": lambda F, x, y, **k: F.kl_div(x.log_softmax(1), y.log_softmax(1), log_target=True, **k),
    "poisson": lambda F, x, y, **k: F.poisson_nll_loss(x, y.detach().abs() * 3, full=True, **k),
    "poisson plain": lambda F, x, y, **k: F.poisson_nll_loss(positive(x), y, log_input=False, **k),
    "gaussian": lambda F, x, y, **k: F.gaussian_nll_loss(x, y, positive(y), full=True, **k),
    "gaussian var": lambda F, x, y, **k: F.gaussian_nll_loss(x, y, positive(y[:, :1]), **k),
    "soft_margin": lambda F, x, y, **k: F.soft_margin_loss(x, y.sign().detach(), **k),
    "hinge": lambda F, x, y, **k: F.hinge_embedding_loss(x, y.sign().detach(), 0.5, **k),
    "ranking": lambda F, x, y, **k: F.margin_ranking_loss(x, y, y.sign().detach(), 0.5, **k),
    "cosine": lambda F, x, y, **k: F.cosine_embedding_loss(x, y, x[:, 0].sign().detach(), 0.1, **k),
    "triplet": lambda F, x, y, **k: F.triplet_margin_loss(x, y, x * y, 0.5, **k),
    "triplet swap": lambda F, x, y, **k: F.triplet_margin_loss(x, y, x * y, p=1, swap=True, **k),
    "triplet distance": lambda F, x, y, **k: F.triplet_margin_with_distance_loss(x, y, x * y, **k),
    "multilabel_soft": lambda F, x, y, **k: F.multilabel_soft_margin_loss(x, positive(y), **k),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", LOSSES)
def test_losses(loss, reduction):
    x, y = draw(4, 6), draw(4, 6, seed=1)

    def fn(T, x, y):
        return LOSSES[loss](T.nn.functional, x, y, reduction=reduction)

    peer.compare(loss, fn, x, y)
    peer.gradients(loss, fn, x, y, second=True)
    for name in FLOATING:
        wide = {"rtol": 2e-2, "atol": 4e-2 if reduction == "sum" else 2e-2}
        rule = wide if name in ("float16", "bfloat16") else {"rtol": 2e-5, "atol": 1e-5} if name == "float32" else {}
        peer.compare(loss, fn, x.to(getattr(torch, name)), y.to(getattr(torch, name)), tolerance=rule)


@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
@pytest.mark.filterwarnings("ignore:.*target size")
def test_a_target_without_dimensions_counts_in_the_dtype(loss):
    """Losses broadcast before they promote, or have the dtype of the input."""
    for one, other in itertools.product(FLOATING, FLOATING):
        for at in (0, 1):
            found = []
            for f in (torch, taeda):
                pair = [f.arange(3.0).to(getattr(f, one)), f.tensor(0.5).to(getattr(f, other))]
                result = getattr(f.nn.functional, loss)(*pair[:: 1 - 2 * at])
                found.append((str(result.dtype).rpartition(".")[2], round(float(result), 2)))
            assert found[0] == found[1], (one, other, at)


def test_results_that_are_contiguous_in_pytorch():
    """Programs go on with ``view``."""
    for f in (torch, taeda):
        F, x = f.nn.functional, f.arange(120.0).sin().reshape(2, 3, 4, 5).transpose(-1, -2)
        target = f.ones(2, 3, 5, 4)
        assert F.binary_cross_entropy_with_logits(x, target, reduction="none").is_contiguous()
        assert F.pad(x, (1, -1, 1, 1), mode="replicate").is_contiguous()
        y = x[0].contiguous()
        assert F.scaled_dot_product_attention(y, y, y).is_contiguous()


@pytest.mark.parametrize("loss", ["binary_cross_entropy_with_logits", "soft_margin_loss", "huber_loss", "mse_loss"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_dtypes_of_losses_of_two_dtypes(loss, reduction):
    for one, other in itertools.product(FLOATING, FLOATING):
        found = []
        for f in (torch, taeda):
            x, y = f.tensor([0.25, 1.5]).to(getattr(f, one)), f.tensor([0.0, 1.0]).to(getattr(f, other))
            x.requires_grad_()
            result = getattr(f.nn.functional, loss)(x, y, reduction=reduction)
            if loss != "huber_loss" or one == other:  # PyTorch has no derivative of the others
                result.sum().backward()
            found.append([str(z.dtype).rpartition(".")[2] for z in (result, x.grad if x.grad is not None else x)])
            if loss.startswith("binary"):
                for name in ("weight", "pos_weight"):
                    result = f.nn.functional.binary_cross_entropy_with_logits(x, y, **{name: f.tensor([2.0, 3.0])})
                    found[-1].append(str(result.dtype).rpartition(".")[2])
        assert found[0] == found[1], (one, other)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_margin_losses_of_classes(reduction):
    x, w = draw(4, 6), draw(6, seed=1).abs()
    t = classes(4, n=6)
    for p in (1, 2):
        for weight in (None, w):
            peer.compare(
                "multi_margin",
                lambda T, x, t, w, p=p: T.nn.functional.multi_margin_loss(x, t, p, 0.8, w, reduction=reduction),
                x,
                t,
                weight,
            )
    labels = torch.tensor([[0, 2, -1, 1, 1, 1], [5, 4, 3, 2, 1, 0], [-1, 0, 1, 2, 3, 4], [3, -1, -1, -1, -1, -1]])
    peer.compare(
        "multilabel", lambda T, x, t: T.nn.functional.multilabel_margin_loss(x, t, reduction=reduction), x, labels
    )
    peer.compare(
        "multilabel", lambda T, x, t: T.nn.functional.multilabel_margin_loss(x[0], t[0], reduction=reduction), x, labels
    )
    for i, j in ((0, slice(1)), (slice(1), 0), (0, 0)):
        peer.compare(
            "multilabel",
            lambda T, x, t, i=i, j=j: T.nn.functional.multilabel_margin_loss(x[0, i], t[0, j], reduction=reduction),
            x, labels,
        )  # fmt: skip
    peer.gradients(
        "multilabel",
        lambda T, x: T.nn.functional.multilabel_margin_loss(
            x, labels if T is torch else peer.ours(labels), reduction=reduction
        ),
        x,
    )


def test_loss_errors():
    x, t = draw(3, 5, dtype="float32"), torch.tensor([1, 2, 4])
    for fn in (
        lambda F, x, t: F.mse_loss(x, x, reduction="a"),
        lambda F, x, t: F.mse_loss(x.long(), x.long()),
        lambda F, x, t: F.mse_loss(x, x[:2]),
        lambda F, x, t: F.binary_cross_entropy(x * 9, x),
        lambda F, x, t: F.binary_cross_entropy_with_logits(x, x[0]),
        lambda F, x, t: F.smooth_l1_loss(x, x, beta=-1),
        lambda F, x, t: F.huber_loss(x, x, delta=0),
        lambda F, x, t: F.gaussian_nll_loss(x, x, -x.abs()),
        lambda F, x, t: F.triplet_margin_loss(x, x, x, margin=-1),
    ):
        peer.compare("error", lambda T, x, t, fn=fn: fn(T.nn.functional, x, t), x, t, raises=peer.ERRORS)


def alignments():
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(12, 4, 6, generator=generator, dtype=torch.float64)
    targets = torch.randint(1, 6, (4, 5), generator=generator)
    targets[1, 1] = targets[1, 0]  # a repeated label must be separated by a blank
    return x, targets, torch.tensor([12, 10, 3, 9]), torch.tensor([5, 3, 2, 0])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ctc(reduction):
    x, targets, steps, lengths = alignments()

    def loss(T, x, *args, **more):
        args = [a if T is torch else peer.ours(a) for a in args]
        return T.nn.functional.ctc_loss(x.log_softmax(-1), *args, reduction=reduction, **more)

    joined = torch.cat([row[:n] for row, n in zip(targets, lengths, strict=True)])
    for labels in (targets, joined):
        peer.compare("ctc", lambda T, x, t=labels: loss(T, x, t, steps, lengths), x)
        peer.compare("ctc", lambda T, x, t=labels: loss(T, x, t, steps.tolist(), tuple(lengths.tolist())), x.float())
        peer.gradients("ctc", lambda T, x, t=labels: loss(T, x, t, steps, lengths), x)
    short = torch.tensor([12, 2, 3, 9])  # the second target does not fit
    peer.compare("infinite", lambda T, x: loss(T, x, targets, short, lengths), x)
    peer.gradients("zero infinity", lambda T, x: loss(T, x, targets, short, lengths, zero_infinity=True), x)
    peer.compare("blank", lambda T, x: loss(T, x, targets - 1, steps, lengths, blank=5), x)
    peer.compare("single", lambda T, x: loss(T, x[:, 0], targets[0], steps[:1], lengths[:1]), x)


def test_ctc_errors():
    x, targets, steps, lengths = alignments()
    for args in (
        (x.float(), targets, steps + 1, lengths),
        (x.float(), targets, steps, lengths + 1),
        (x.float(), targets, steps[:2], lengths),
        (x.half(), targets, steps, lengths),
        (x.float(), targets, steps.float(), lengths),
        (x.float(), targets, steps, lengths, 6),
    ):
        peer.compare("error", lambda T, *args: T.nn.functional.ctc_loss(*args), *args, raises=peer.ERRORS)


# ---- scans ----------------------------------------------------------------------------------------------------------
SCANS = ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"]


@pytest.mark.parametrize("op", SCANS)
@pytest.mark.parametrize("name", [*FLOATING, "int64", "int32", "uint8", "bool", "complex64"])
def test_scans(op, name):
    if op == "logcumsumexp" and name not in FLOATING[:2]:
        pytest.skip("PyTorch: floating point only")
    if op in ("cummax", "cummin") and name == "complex64":
        pytest.skip("no order")
    for shape in ((), (1,), (7,), (40,), (3, 5), (2, 33), (4, 1, 9), (3, 20, 6), (0, 3), (3, 0), (5, 100)):
        x = draw(*shape)
        x = (
            (x * 2).to(getattr(torch, name))
            if name not in ("uint8", "bool")
            else (x.abs() * 1.5).to(getattr(torch, name))
        )
        for dim in range(-max(len(shape), 1), max(len(shape), 1)):
            for y in (x, x.transpose(0, -1) if len(shape) > 1 else x):
                rule = {"rtol": 2e-2, "atol": 2e-2} if name in ("float16", "bfloat16") else {"rtol": 1e-5, "atol": 1e-5}
                rule = rule if getattr(torch, name).is_floating_point or name == "complex64" else {}
                peer.compare((op, shape, dim), lambda T, y, d: getattr(T, op)(y, d), y, dim, tolerance=rule)


@pytest.mark.parametrize("op", ["cummax", "cummin", "logcumsumexp", "cumsum"])
def test_scans_of_special_values(op):
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[1.0, nan, 3, nan], [-inf, -inf, 0, -inf], [inf, 1, inf, 2], [2, 2, 1, 2], [0.0, -0.0, 0.0, 1]])
    for y in (x, x.repeat(1, 9), x.repeat(9, 1), x.repeat(1, 30)):
        for dim in (0, 1):
            peer.compare(op, lambda T, y, d: getattr(T, op)(y, d), y, dim)


@pytest.mark.parametrize("op", SCANS)
def test_scan_gradients(op):
    x = draw(3, 4, 5)
    for dim in (0, 1, 2):
        peer.gradients(
            op,
            lambda T, x, d=dim: getattr(T, op)(x, d)[0] if op in ("cummax", "cummin") else getattr(T, op)(x, d),
            x,
            second=op != "logcumsumexp",
            tolerance={"rtol": 1e-9, "atol": 1e-9},
        )
    zeros = torch.tensor([[1.0, 0, 3, 0, 2], [1, 2, 3, 4, 5], [0, 1, 2, 3, 4]], dtype=torch.float64)
    if op == "cumprod":
        peer.gradients(op, lambda T, x: x.cumprod(1), zeros)


def test_differences():
    x = draw(4, 5)
    for n in range(4):
        for dim in (0, 1, -1):
            peer.compare("diff", lambda T, x, n, d: T.diff(x, n, d), x, n, dim)
    peer.compare("diff", lambda T, x: T.diff(x, prepend=x[:, :1], append=x), x)
    peer.compare("diff", lambda T, x: T.diff(x > 0), x)
    peer.compare("trapezoid", lambda T, x: (T.trapezoid(x), T.trapezoid(x, dx=0.5, dim=0), T.trapezoid(x, x[0])), x)
    peer.compare("cumulative", lambda T, x: (T.cumulative_trapezoid(x), T.cumulative_trapezoid(x, x, dim=0)), x)
    peer.compare("scalar", lambda T, x: T.diff(x.sum()), x, raises=RuntimeError)


@pytest.mark.parametrize("width", [1040, 1000, 4400, 1037])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "softmax", "log_softmax", "cross_entropy", "softmax 1"])
def test_what_leaves_the_cache(name, width):
    """Rows of whole cache lines (1040) are stored past it, others (1000) are not; long ones (1037) may begin anywhere."""
    size = last_cache()
    if size > 1 << 26:
        pytest.skip("takes too much memory")
    rows = size // (4 * width * 2) + 3
    generator = torch.Generator().manual_seed(rows)
    x, g, w, b = (torch.randn(s, generator=generator) for s in ((rows, width), (rows, width), (width,), (width,)))

    def run(T, x, g, w, b):
        x, w, b = (t.requires_grad_() for t in (x, w, b))
        F = T.nn.functional
        if name == "cross_entropy":
            losses = F.cross_entropy(x, g.argmax(1), reduction="none")
            return losses, *T.autograd.grad(losses, x, g[:, 0])
        if name == "softmax 1":  # across memory
            x, g = (t[: rows // 16 * 16].reshape(16, -1, width) for t in (x, g))
            y = F.softmax(x, 1)
            return y, *T.autograd.grad(y, x, g)
        parameters = {"layer_norm": (w, b), "rms_norm": (w,)}.get(name, ())
        y = getattr(F, name)(x, (width,), *parameters) if parameters else getattr(F, name)(x, 1)
        return y, *T.autograd.grad(y, (x, *parameters), g)

    for want, got in zip(run(torch, x, g, w, b), run(taeda, *map(peer.ours, (x, g, w, b))), strict=True):
        near = 1e-4 * max(1.0, want.abs().max().item() / 10)
        torch.testing.assert_close(peer.theirs(got), want.detach(), rtol=1e-4, atol=near)

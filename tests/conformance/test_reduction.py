"""Reductions agree with PyTorch: values, dtypes, shapes, errors and gradients."""

import itertools

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

from . import peer  # noqa: E402

FLOATING = "float32 float64 float16 bfloat16".split()
DTYPES = [*FLOATING, *"bool uint8 int8 int16 int32 int64 complex64 complex128".split()]
SHAPES = [(), (1,), (7,), (3, 4), (2, 3, 5), (0, 3), (3, 0), (2, 0, 3), (5, 1, 33)]
OPS = {
    "sum": lambda T, x, d, k: T.sum(x, d, k),
    "nansum": lambda T, x, d, k: T.nansum(x, d, k),
    "mean": lambda T, x, d, k: T.mean(x, d, k),
    "amax": lambda T, x, d, k: T.amax(x, () if d is None else d, k),
    "amin": lambda T, x, d, k: x.amin(() if d is None else d, k),
    "any": lambda T, x, d, k: x.any(dim=d, keepdim=k) if d is not None else x.any(),
    "all": lambda T, x, d, k: x.all(dim=d, keepdim=k) if d is not None else x.all(),
    "count_nonzero": lambda T, x, d, k: x.count_nonzero(d),
    "var": lambda T, x, d, k: T.var(x, d, keepdim=k),
    "std": lambda T, x, d, k: x.std(d, correction=0, keepdim=k),
    "var_mean": lambda T, x, d, k: T.var_mean(x, d, keepdim=k),
    "std_mean": lambda T, x, d, k: T.std_mean(x, d, correction=2, keepdim=k),
    "logsumexp": lambda T, x, d, k: T.logsumexp(x, 0 if d is None else d, k),
    "norm1": lambda T, x, d, k: T.norm(x, 1, d, k),
    "norm2": lambda T, x, d, k: T.norm(x, 2, d, k),
    "norminf": lambda T, x, d, k: T.norm(x, float("inf"), d, k),
    "norm3": lambda T, x, d, k: T.norm(x, 3, d, k),
    "norm0": lambda T, x, d, k: T.norm(x, 0, d, k),
}
ONE_DIM = {
    "prod": lambda T, x, d, k: x.prod() if d is None else T.prod(x, d, k),
    "max": lambda T, x, d, k: x.max() if d is None else T.max(x, d, k),
    "min": lambda T, x, d, k: x.min() if d is None else T.min(x, d, k),
    "argmax": lambda T, x, d, k: T.argmax(x, d, k),
    "argmin": lambda T, x, d, k: T.argmin(x, d, k),
    "aminmax": lambda T, x, d, k: T.aminmax(x, dim=d, keepdim=k),
}
#: PyTorch has no kernel, or gives no meaning to the result.
SKIP = {("argmax", "bool"), ("argmin", "bool")}


def make(shape, name):
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    dtype = getattr(torch, name)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=torch.float64 if not dtype.is_complex else dtype).to(dtype)
    if name == "bool":
        return torch.rand(shape, generator=generator) > 0.3
    return torch.randint(0 if name == "uint8" else -3, 4, shape, generator=generator).to(dtype)


def dims_of(n, several):
    single = [None, *range(-n, n)] if n else [None, 0, -1]
    return [*single, *([d for k in range(2, n + 1) for d in itertools.combinations(range(n), k)] if several else [])]


def tolerance(op, name):
    # Rounding of half-precision results differs by one unit where PyTorch accumulates in half precision.
    if name == "bfloat16":
        return {"rtol": 1.6e-2, "atol": 1e-2}
    if name == "float16":
        return {"rtol": 2e-3, "atol": 1e-3}
    return {"rtol": 2e-6, "atol": 2e-6} if name in ("float32", "complex64") else {}


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("op", [*OPS, *ONE_DIM])
def test_values(op, name):
    if (op, name) in SKIP:
        pytest.skip("no PyTorch kernel")
    fn = OPS.get(op) or ONE_DIM[op]
    for shape in SHAPES:
        if 0 in shape and name.startswith("complex") and op in {*ONE_DIM, "amax", "amin"}:
            continue  # which of two errors comes first is not compared
        x = make(shape, name)
        for dim in dims_of(len(shape), op in OPS):
            for keepdim in (False, True):
                peer.compare(
                    (op, shape, dim), fn, x, dim, keepdim, tolerance=tolerance(op, name), may_raise=peer.ERRORS
                )


@pytest.mark.parametrize("op", [*OPS, *ONE_DIM])
def test_strides(op):
    fn = OPS.get(op) or ONE_DIM[op]
    x = torch.randn(6, 5, 8, 7, generator=torch.Generator().manual_seed(1))
    for view in (x.permute(3, 1, 0, 2), x[::2, :, ::3], x.transpose(1, 2), x[:, :1].expand(6, 4, 8, 7), x[:, 1, :, 2]):
        for dim in dims_of(view.dim(), op in OPS):
            peer.compare((op, view.stride(), dim), fn, view, dim, False, tolerance={"rtol": 1e-5, "atol": 1e-5})


@pytest.mark.parametrize("op", ["sum", "var", "amax", "argmax", "logsumexp", "norm3", "prod", "any"])
def test_long(op):
    fn = OPS.get(op) or ONE_DIM[op]
    generator = torch.Generator().manual_seed(2)
    for shape, dims in (
        ((300001,), (None, 0)),
        ((9001, 6), (0, None)),
        ((3, 140000), (1, None)),
        ((2, 20000, 5), (1,)),
    ):
        x = torch.randn(shape, generator=generator)
        x = x / 100 + 1 if op == "prod" else x
        for dim in dims:
            want = fn(torch, x.double(), dim, False)  # PyTorch's own float32 norms are off by 4e-5 here
            want = want if want.dtype != torch.float64 else want.float()
            rule = {"rtol": 1e-3 if op == "prod" else 1e-5, "atol": 2e-4}
            peer.close(fn(taeda, peer.ours(x), dim, False), want, **rule)


@pytest.mark.parametrize(
    "op", ["amax", "amin", "max", "min", "argmax", "argmin", "aminmax", "nansum", "logsumexp", "norminf"]
)
def test_special_values(op):
    fn = OPS.get(op) or ONE_DIM[op]
    inf, nan = float("inf"), float("nan")
    rows = [[1, nan, 3], [-inf, -inf, -inf], [inf, inf, 1], [nan, nan, 2], [0.0, -0.0, 0.0], [-inf, 5, inf], [2, 2, 2]]
    x = torch.tensor(rows * 3)
    for y in (x, x.t().contiguous().t(), x.repeat(1, 40)):
        peer.compare(op, fn, y, 1, False)
        peer.compare(op, fn, y.t(), 0, True)


def test_accuracy():
    """The error of long float32 sums is no larger than PyTorch's, but for the spread of one sample."""
    generator = torch.Generator().manual_seed(3)
    for shape, dim in (((2000, 512), 0), ((512, 2000), 1), ((40, 16, 999), (0, 2))):
        for draw in (torch.rand, torch.randn):
            x = draw(shape, generator=generator)
            exact = x.double().sum(dim)

            def error(y, exact=exact):
                return (y.double() - exact).abs().mean().item()

            assert error(peer.theirs(peer.ours(x).sum(dim))) <= 1.3 * error(x.sum(dim)) + 1e-7


def test_dtype_argument():
    for name in ("float32", "int32", "bool", "float16"):
        x = make((4, 5), name)
        for target in (torch.float64, torch.float32, torch.int64, torch.int32, torch.bfloat16):
            for op in ("sum", "prod", "mean", "nansum"):
                peer.compare(
                    (op, name, target),
                    lambda T, x, op=op, d=target: getattr(T, op)(x, dtype=getattr(T, str(d).split(".")[1])),
                    x,
                    tolerance={"rtol": 2e-2, "atol": 1e-2} if target is torch.bfloat16 else {},
                    may_raise=peer.ERRORS,
                )


def test_truth_as_dtype_counts_fractions_and_what_overflows():
    for x in (torch.tensor([[0.5, 0.0, 0.25], [0.0, 0.3, -0.3]]), torch.tensor([[1, -1], [2, -2]]), torch.ones(2, 300)):
        for op in ("sum", "prod", "nansum"):
            for dim in (None, 0, 1):
                if op != "prod" or dim is not None:
                    peer.compare((op, dim), lambda T, x, op=op, d=dim: getattr(T, op)(x, d, dtype=T.bool), x)
    ours = peer.ours(torch.tensor([0.5, 0.0]))
    assert ours.cumsum(0, dtype=taeda.bool).tolist() == [True, True]
    assert ours.cumprod(0, dtype=taeda.bool).tolist() == [True, False]


def test_errors():
    x = torch.ones(2, 3)
    for fn in (
        lambda T, x: x.sum(2),
        lambda T, x: x.sum(-3),
        lambda T, x: x.sum((0, 0)),
        lambda T, x: x.sum("a"),
        lambda T, x: T.sum(3),
        lambda T, x: x.to(T.int64).mean(),
        lambda T, x: x.to(T.int64).var(),
        lambda T, x: x.mean(dtype=T.int64),
        lambda T, x: x.to(T.complex64).max(),
        lambda T, x: x.to(T.complex64).argmax(),
        lambda T, x: x.to(T.int64).norm(),
        lambda T, x: x.prod((0, 1)),
        lambda T, x: x.argmax((0, 1)),
        lambda T, x: x.max((0, 1)),
        lambda T, x: x[:0].argmax(),
        lambda T, x: x[:0].max(0),
        lambda T, x: x[:0].norm(float("inf")),
    ):
        peer.compare("error", fn, x, raises=peer.ERRORS)


GRADIENTS = {
    "sum": lambda T, x: x.sum((0, 2)),
    "sum all": lambda T, x: x.sum(),
    "mean": lambda T, x: x.mean(1, True),
    "nansum": lambda T, x: x.nansum(1),
    "prod": lambda T, x: x.prod(1),
    "prod all": lambda T, x: x.prod(),
    "amax": lambda T, x: x.amax((0, 2)),
    "amin": lambda T, x: x.amin(1, True),
    "max all": lambda T, x: x.max(),
    "max": lambda T, x: x.max(1)[0],
    "min": lambda T, x: x.min(-1, True).values,
    "aminmax": lambda T, x: T.aminmax(x, dim=1),
    "var": lambda T, x: x.var((0, 1)),
    "std": lambda T, x: x.std(1, correction=0, keepdim=True),
    "var_mean": lambda T, x: T.var_mean(x, 2),
    "std_mean": lambda T, x: T.std_mean(x),
    "logsumexp": lambda T, x: x.logsumexp((1, 2)),
    "norm0": lambda T, x: x.norm(0),
    "norm1": lambda T, x: x.norm(1, 1),
    "norm2": lambda T, x: x.norm(dim=(0, 1), keepdim=True),
    "norm3": lambda T, x: x.norm(3, 2),
    "norm1.5": lambda T, x: x.norm(1.5, 2),
    "norminf": lambda T, x: x.norm(float("inf"), 1),
    "dist": lambda T, x: T.dist(x, x * x),
    "renorm": lambda T, x: T.renorm(x, 2, 1, 1.5),
}


@pytest.mark.parametrize("op", GRADIENTS)
def test_gradients(op):
    x = torch.randn(3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    peer.gradients(op, GRADIENTS[op], x, second=op != "norm0")


def test_gradient_of_products_with_zeros():
    for values in ([[1.0, 0, 3, 2], [4, 5, 6, 7]], [[0.0, 0, 3, 2], [0, 5, 6, 7]]):
        x = torch.tensor(values, dtype=torch.float64)
        peer.gradients("prod", lambda T, x: x.prod(1), x)
        peer.gradients("prod all", lambda T, x: x.prod(), x)


def test_gradient_is_shared_between_equal_elements():
    x = torch.tensor([[1.0, 2, 2], [3, 3, 3]], dtype=torch.float64)
    peer.gradients("amax", lambda T, x: x.amax(1), x)
    peer.gradients("max", lambda T, x: x.max(), x)
    peer.gradients("max", lambda T, x: x.max(1).values, x)


LAYOUTS = {
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    "channels last": lambda x: x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    "reversed": lambda x: x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    "every other": lambda x: x.repeat_interleave(2, -1)[..., ::2],
}
OF_ONE_DIMENSION = {
    **{name: (lambda f, x, d, name=name: getattr(x, name)(d)) for name in "sum mean amax amin prod std var".split()},
    **{name: (lambda f, x, d, name=name: getattr(x, name)(d)) for name in "argmax argmin logsumexp nansum".split()},
    "max": lambda f, x, d: x.max(d),
    "min": lambda f, x, d: x.min(d),
    "any": lambda f, x, d: (x > 0).any(d),
    "norm": lambda f, x, d: x.norm(dim=d),
    "var_mean": lambda f, x, d: f.var_mean(x, d),
    "aminmax": lambda f, x, d: f.aminmax(x, dim=d),
    "cosine": lambda f, x, d: f.cosine_similarity(x, x + 1, d),
    "sum, kept": lambda f, x, d: x.sum(d, keepdim=True),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OF_ONE_DIMENSION)
def test_results_lie_in_memory_as_their_sizes_say(name, layout):
    """Programs go on with ``view``."""
    for d in range(4):
        found = []
        for f in (torch, taeda):
            x = LAYOUTS[layout](f.arange(120.0).sin().reshape(2, 3, 4, 5))
            y = OF_ONE_DIMENSION[name](f, x, d)
            y = list(y) if isinstance(y, tuple) else [y]
            assert all(z.is_contiguous() for z in y), (f.__name__, d)
            found.append([z.double().view(-1).tolist() for z in y])
        np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)

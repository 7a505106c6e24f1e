"""Indexing, joining, creation, rearranging and sorting agree with PyTorch: values, dtypes, shapes, errors, gradients."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import taeda
from taeda.ops.embedding import one_hot
from taeda.ops.shape import edge_pad, edge_pad_backward, pad
from taeda.ops.table import OPS
from tests.agree import close

torch = pytest.importorskip("torch")
from .peer import outcome  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def names(lib):
    """What an expression may use: the library as ``T`` and the same tensors in either."""
    rng = np.random.default_rng(7)

    def floats(*shape):
        return lib.from_numpy(rng.standard_normal(shape).astype("f4"))

    def ints(high, *shape, low=0):
        return lib.from_numpy(rng.integers(low, high, shape))

    functional = torch.nn.functional if lib is torch else SimpleNamespace(pad=pad, one_hot=one_hot)
    x = floats(3, 4)
    return {
        "T": lib,
        "F": functional,
        "L": lib.tensor if lib is torch else OPS["tensor"],
        "x": x,
        "y": floats(4, 5, 6),
        "z": floats(2, 3, 4, 5),
        "v": floats(17),
        "d": ints(9, 4, 5, 6).to(lib.int64),
        "i": ints(3, 7),
        "k": ints(3, 3, 4),
        "k2": ints(4, 3, 6),
        "m": lib.from_numpy(rng.random((3, 4)) < 0.5),
        "m5": lib.from_numpy(rng.random((4, 5)) < 0.5),
        "s": floats(3, 4),
        "e": floats(0, 4),
        "c": lib.from_numpy((rng.standard_normal((3, 4)) + 1j).astype("c8")),
        "np": np,
        "slice": slice,
        "range": range,
    }


def run(lib, expression):
    scope = names(lib)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = expression.split("; ")
        try:
            for line in lines[:-1]:
                exec(line, scope)
            return eval(lines[-1], scope), None
        except Exception as error:
            return None, error


def check(expression, exact=True):
    expected, expected_error = run(torch, expression)
    got, error = run(taeda, expression)
    if expected_error is not None:
        assert error is not None, f"{expression}: PyTorch raises {expected_error!r}, taeda gives {got}"
        assert type(error).__name__ == type(expected_error).__name__, (expression, expected_error, error)
        return
    if error is not None:
        raise AssertionError(f"{expression}: taeda raises {error!r}, PyTorch gives {expected}") from error
    close(got, expected, expression, *(0, 0) if exact else (2e-6, 2e-6))


GET = """x[i]; x[i, i]; x[:, i]; x[..., i]; x[i, 1:3]; x[1:, i]; x[m]; y[m5]; y[m5, 2]; y[:, m5[0]]; y[m5, i[:1]]
y[i, :, i]; y[:, i, i]; y[i, None, i]; y[None, i]; y[i[:, None], i]; y[i.reshape(7, 1), :, i[:4]]; y[..., i, :]
y[i, ..., i]; z[:, i, :, i]; z[i % 2, :, :, i]; z[0, i]; z[:, 0, i]; z[0, :, i]; z[i % 2, 0]; z[1, :, :, i]
x[[0, 2]]; x[[0, 1], [1, 2]]; x[[[0, 1], [1, 2]]]; x[[True, False, True]]; x[np.array([0, 1])]; x[range(2)]
x[L(1)]; x[L(1), L(2)]; x[L([[0, 1], [2, 0]])]; x[True]; x[False]; x[None, True]; x[L(True)]; x[True, i]; x[i, True]
x[-i - 1]; x[L([-1, -3])]; x[L([5])]; x[L([-4])]; x[L([0.5])]; x[L([0]), L([1, 2]), L([0])]; x[L([0, 1]), L([0, 1, 2])]
x[L([True, False])]; x[:, L([True, False])]; x["a"]; x[1.0]; x[L([1, 0, 1], dtype=T.uint8)]; x[[]]; x[L([], dtype=T.int64)]
e[L([], dtype=T.int64)]; e[[]]; x[:, []]; x[i.int()]; x.t()[i]; y.transpose(0, 2)[i]; y.transpose(0, 2)[:, i]
y[::2, i]; y[:, ::2][i]; z.permute(3, 1, 0, 2)[i]; z.permute(3, 1, 0, 2)[:, i]; L(3.0)[None]; L(3.0)[True]; L(3.0)[L(False)]
L(3.0)[L(0)]; x[i][i]; c[i]; c[m]; c[:, i]; d[i]; d.to(T.uint8)[i]; d.to(T.float16)[..., i]; d.bool()[m5]; x[..., L(1)]
y[i, i, i]; y[i, i, 1]; y[1, i, i]; z[i % 2, i, i, i]; y[L([[1], [2]]), L([[0, 1, 2]])]; x[L(1):]; x[:L(2)]; y[m5.unsqueeze(0)]"""


@pytest.mark.parametrize("expression", [e.strip() for line in GET.split("\n") for e in line.split("; ")])
def test_get(expression):
    check(expression)


SET = [
    "x[i[:1]] = 5.0; x",
    "x[:, i[:1]] = s[:, :1]; x",
    "x[m] = 0; x",
    "x[m] = L(2.0); x",
    "x[m] = v[: int(m.sum())]; x",
    "x[~m] = x[~m] * 2; x",
    "y[m5] = 1.0; y",
    "y[m5] = v[:6]; y",
    "y[m5, 2] = -1; y",
    "y[L([0, 2]), :, L([1, 3])] = v[:5]; y",
    "y[:, L([0, 2]), L([1, 3])] = v[:2]; y",
    "y.transpose(0, 2)[L([0, 3])] = 3.0; y",
    "y[::2, L([1, 3])] = v[:6]; y",
    "x[L([0, 1])] = s[:2]; x",
    "x[[0, 2]] = s[:2].unsqueeze(0); x",
    "x[L([9])] = 1.0; x",
    "x[L([0, 1])] = s; x",
    "x[True] = 2.0; x",
    "x[False] = 2.0; x",
    "x[None, i[:1]] = 4.0; x",
    "x[L(1)] = 7.0; x",
    "d[m5] = 3; d",
    "d[L([1, 2])] = 2.7; d",
    "c[m] = 1j; c",
    "x[i] = x[i]; x",
    "x[L([0, 0, 0])] = s; x",
    "x[L([], dtype=T.int64)] = 1.0; x",
    "x.index_put_((L([0, 0, 1]),), s, accumulate=True)",
    "x.index_put((L([0, 0, 1]), L([1, 1, 3])), L(1.0), accumulate=True)",
    "x.index_put((m,), L(1.0))",
    "x.index_put((L([0]),), L([1]))",
    "x.index_put((L([0]),), v[:3])",
    "c.index_put((L([0, 0]),), c[:2], accumulate=True)",
    "d.index_put((L([0, 0]),), d[:2], accumulate=True)",
    "y.transpose(0, 1).index_put((L([0, 0, 1]),), y[:3].transpose(1, 1)[:, :4, :].contiguous(), True)",
]


@pytest.mark.parametrize("expression", SET)
def test_set(expression):
    check(expression)


ALONG = """T.gather(x, 0, k[:2]); T.gather(x, 1, k2); T.gather(x.t(), 0, k2.t()); T.gather(y, 1, d[:, :3, :4] % 5)
T.gather(y, 0, d % 4); T.gather(y, 2, d % 6); T.gather(y.transpose(0, 2), 1, d.transpose(0, 2) % 5); T.gather(x, 0, L([[5]]))
T.gather(x, 0, L([[-1]])); T.gather(x, 0, L([0])); T.gather(x, 0, L([[0, 0, 0, 0, 0]])); T.gather(x, 0, L([[0.0]]))
T.gather(L(3.0), 0, L([0, 0])); T.gather(L(3.0), 0, L(0)); T.gather(c, 1, k2); T.gather(x, 0, k[:2].int()); T.gather(z, 2, z.long().abs() % 4)
x.scatter(0, k[:1], 1.5); x.scatter(1, k, s); x.scatter(0, L([[5]]), 1.0); x.scatter(0, L([[0]]), L([[1]])); x.scatter(1, k2[:, :2], s)
x.scatter(0, L([[0, 1]]), L([[1.0]])); x.scatter(0, L([0]), 1.0); x.scatter(0, k[:1], 2.0, reduce="multiply"); x.scatter(0, k, s, reduce="add")
x.scatter(0, k, s, reduce="foo"); x.scatter_add(0, k, s); x.scatter_add(1, k2 % 4, y[0, :3, :6]); x.scatter_add(0, L([[9]]), x)
y.scatter_add(0, d % 4, y); y.scatter_add(1, d % 5, y); y.scatter_add(2, d % 6, y); y.transpose(0, 2).scatter_add(0, d.transpose(0, 2) % 6, y.transpose(0, 2))
c.scatter_add(0, k, c); d.scatter_add(1, d % 5, d); L(3.0).scatter(0, L(0), 1.0); L(3.0).scatter_add(0, L(0), L(2.0))
x.scatter_reduce(0, k, s, "sum"); x.scatter_reduce(0, k, s, "prod"); x.scatter_reduce(0, k, s, "mean"); x.scatter_reduce(0, k, s, "amax")
x.scatter_reduce(0, k, s, "amin"); x.scatter_reduce(0, k, s, "sum", include_self=False); x.scatter_reduce(0, k, s, "prod", include_self=False)
x.scatter_reduce(0, k, s, "mean", include_self=False); x.scatter_reduce(0, k, s, "amax", include_self=False); x.scatter_reduce(0, k, s, "amin", include_self=False)
d.scatter_reduce(1, d % 5, d, "mean"); d.scatter_reduce(1, d % 5, d, "amax", include_self=False); x.scatter_reduce(0, k, x, "foo")
T.index_select(x, 0, i); T.index_select(x, 1, i); T.index_select(y, 1, i); T.index_select(y.transpose(0, 2), 0, i); T.index_select(x, 0, L([3]))
T.index_select(x, 0, L([-1])); T.index_select(x, 0, L([[0]])); T.index_select(x, 0, L([0.0])); T.index_select(x, 5, L([0])); T.index_select(L(3.0), 0, L([0, 0]))
T.index_select(L(3.0), 0, L(0)); T.index_select(c, 0, i); T.index_select(x, 0, i.int()); T.index_select(x, 0, L(1))
x.index_add(0, L([0, 0, 2]), s); x.index_add(1, L([0, 0, 2, 3]), s, alpha=2); x.index_add(0, L([5]), x[:1]); x.index_add(0, L([0]), x[:2])
x.index_add(0, L([0]), x[:1].long()); x.index_add(0, L([0]), x[:1, :2]); c.index_add(0, L([0, 0, 2]), c); y.index_add(1, L([0, 0, 2]), y[:, :3])
L(3.0).index_add(0, L(0), L(2.0)); y.transpose(0, 2).index_add(0, L([1, 1]), y.transpose(0, 2)[:2]); m.index_add(0, L([1, 1]), m[:2])
x.index_copy(0, L([0, 2]), s[:2]); x.index_copy(1, L([0, 2]), s[:, :2]); x.index_copy(0, L([5]), x[:1]); x.index_copy(0, L([0]), x[:2]); x.index_copy(0, L([-1]), x[:1])
x.index_copy(0, L([0]), x[:1].long()); x.index_fill(0, L([0, -1]), 3.0); x.index_fill(1, L([0, 2]), L(1)); x.index_fill(0, L([5]), 1); x.index_fill(0, L([0]), L([1.0]))
x.index_reduce(0, L([0, 0, 2]), s, "prod"); x.index_reduce(0, L([0, 0, 2]), s, "mean"); x.index_reduce(0, L([0, 0, 2]), s, "amax", include_self=False); 
x.index_reduce(0, L([0, 0, 2], dtype=T.int32), s, "amax", include_self=False); x.index_reduce(0, L([0, 0, 2]), s, "amin")
T.take(x, L([[0, 11], [-1, 3]])); T.take(x.t(), L([1, 2])); T.take(x, L([12])); T.take(x, L([-13])); x.put(L([1, -1]), L([5.0, 6.0])); x.put(L([1, 1]), L([5.0, 6.0]), True)
x.t().put_(L([1, 2]), L([5.0, 6.0])); x.put(L([12]), L([1.0])); x.put(L([1]), L([1])); x.put(L([1, 2]), L([1.0])); T.take_along_dim(x, k, 0); T.take_along_dim(x, L([[0]]), 0)
T.take_along_dim(x, L([0])); T.take_along_dim(x, x.argsort(1), 1); T.take_along_dim(x, L([0.5]))"""


@pytest.mark.parametrize("expression", [e.strip() for line in ALONG.split("\n") for e in line.split("; ")])
def test_along(expression):
    check(expression, exact="prod" not in expression and "mean" not in expression)


MASKS = """T.masked_select(x, m); T.masked_select(x, m[0]); T.masked_select(x.t(), m.t()); T.masked_select(x, L([True, False]))
T.masked_select(x, L([1, 0, 1, 0])); T.masked_select(x[0], m); x.masked_fill(m, 2.0); x.masked_fill(m, L(2)); x.masked_fill(m[0], -1.0); x[0].masked_fill(m, -1.0)
d[0, :3, :4].masked_fill(m, 1.5); x.masked_fill(d[0, :3, :4], 1.0); x.masked_fill_(m[:1], 4.0); c.masked_fill(m, 1j)
x.masked_scatter(m, v); x.masked_scatter(m[0], v); x.masked_scatter(m, L([1.0])); x.masked_scatter(m, L([1])); x.t().masked_scatter(m.t(), v); x.t().masked_scatter_(m.t(), v)
T.where(m, x, s); T.where(m, x, 0); T.where(m, 1, 2); T.where(m, 1.0, 2); T.where(m, x, 2j); T.where(m); T.where(m[0], x, s[:, :1]); T.where(d[0, :3, :4], x, s); x.where(m, s)
T.where(m, d[0, :3, :4], x); T.where(m, x.half(), 1.0); T.nonzero(x > 0); T.nonzero(y > 1); T.nonzero(z > 1); T.nonzero(L(1.0)); T.nonzero(L(0.0)); T.nonzero(x > 0, as_tuple=True)
T.nonzero(L(1), as_tuple=True); T.argwhere(L(3)); T.argwhere(x > 0); T.nonzero(x.t() > 0); T.nonzero(c); T.nonzero(v[:0]); T.nonzero(e); T.count_nonzero(m)"""


@pytest.mark.parametrize("expression", [e.strip() for line in MASKS.split("\n") for e in line.split("; ")])
def test_masks(expression):
    check(expression)


JOIN = """T.cat([x, s]); T.cat((x, s), 1); T.cat((x, s), -1); T.cat([x, d[0, :3, :4]]); T.cat([x, v[:0], s]); T.cat([v[:0]]); T.cat([x, e]); T.cat([]); T.cat([x, v]); T.cat([x, s[:2]], 1)
T.cat([L(1.0)]); T.cat([x, s], 2); T.cat([x.t(), s.t()]); T.cat([y, y, y], 1); T.cat([y.transpose(0, 2), y.transpose(0, 2)], 1); T.cat([m, x]); T.cat([x.half(), x.bfloat16()]); T.cat(x); T.cat([x, 1])
T.stack([x, s]); T.stack((x, s), 1); T.stack((x, s), -1); T.stack([x, v]); T.stack([]); T.stack([L(1), L(2)]); T.stack([x, d[0, :3, :4]]); T.stack([x.t(), s.t()], 1); T.stack([x, s], 3)
T.hstack([x, s]); T.hstack([v, v]); T.hstack([L(1), L(2)]); T.vstack([v, v]); T.dstack([v, v]); T.dstack([x, s]); T.column_stack([v, v]); T.column_stack([x, s]); T.row_stack([v, v])
T.block_diag(x, v, L(1.0)); T.atleast_1d(L(1)); T.atleast_2d(v); T.atleast_3d(x, v); T.atleast_3d(L(1)); T.tensor_split(v, 4); T.tensor_split(v, (2, 5)); T.tensor_split(x, L([1]), 1)
T.hsplit(x, 2); T.hsplit(v[:16], (3,)); T.vsplit(x, 3); T.vsplit(x, 2); T.dsplit(y, 2); T.split(v, 5); T.split(v, [3, 14]); T.chunk(v, 5); T.chunk(x, 3, 1); x.chunk(2); x.split(2, 1); x.unbind(1)
T.cartesian_prod(L([1, 2]), L([3, 4, 5])); T.cartesian_prod(L([1, 2])); T.combinations(L([1, 2, 3])); T.combinations(L([1, 2, 3]), 3); T.combinations(L([1, 2, 3]), with_replacement=True); T.combinations(v, 3, True); T.combinations(v, 4); T.combinations(v[:2], 3); T.combinations(v[:0]); T.combinations(v, 1); T.combinations(v, 0)
T.diagonal_scatter(x, T.zeros(3)); T.select_scatter(x, T.zeros(4), 0, 1); T.slice_scatter(x, T.zeros(2, 4), 0, 1); T.select_scatter(x, T.zeros(3), 0, 1)"""

CREATE = """T.arange(5); T.arange(2, 10, 3); T.arange(5, 1, -2); T.arange(1.0); T.arange(0, 1, 0.1); T.arange(5, dtype=T.float16); T.arange(1, 2.5); T.arange(3, 1); T.arange(1, 3, 0); T.arange(end=4)
T.arange(0); T.arange(5, dtype=T.uint8); T.arange(0.5, 5, dtype=T.int64); T.arange(-3, 3); T.arange(1000000)[-3:]; T.arange(0, 100, 0.25)[-3:]; T.range(1, 4); T.range(1, 4, 0.5); T.linspace(0, 1, 5)
T.linspace(3, 10, 1); T.linspace(3, 10, 0); T.linspace(-10, 10, 7, dtype=T.float64); T.linspace(0, 10, 5, dtype=T.int64); T.linspace(0, 1, -1); T.logspace(0, 2, 3); T.logspace(0.5, 1, 1, dtype=T.int64); T.logspace(-1, 2, 1, dtype=T.int8); T.logspace(0, 2, 3, base=2); T.linspace(0, 1j, 3)
T.full((2, 3), 7); T.full((2,), 1.5); T.full((2,), True); T.full((), 2j); T.full((2,), 3, dtype=T.float32); T.full((2, -1), 1); T.ones(2, 3); T.ones((2, 3)); T.ones([2], dtype=T.int64); T.zeros(()); T.zeros(2, 0)
T.zeros(3, dtype=T.bool); T.zeros(-1); T.ones_like(x); T.zeros_like(x, dtype=T.int32); T.full_like(x, 4); T.full_like(d, 2); T.empty(2, 3).shape; T.empty_like(x).shape; T.eye(3); T.eye(2, 4); T.eye(3, dtype=T.int64); T.eye(0)
T.eye(-1); T.tril(x); T.triu(x, 1); T.tril(y, -1); T.triu(y, -2); T.tril(x.t()); T.tril(v); x.tril_(); T.tril(m); T.triu(c); T.tril_indices(3, 4); T.triu_indices(3, 4, 1); T.tril_indices(3, 3, -1); T.tril_indices(2, 5, 9); T.triu_indices(5, 2, -8); T.tril_indices(2, 3, -4); T.triu_indices(4, 6, 3); T.diag(v); T.diag(x); T.diag(x, 1)
T.diag(v[:2], -1); T.diag(y); T.diag_embed(x); T.diag_embed(x, 1, 0, 2); T.diagflat(x[:2, :2], 1); T.meshgrid(v[:2], v[:3]); T.meshgrid(v[:2], v[:3], indexing="xy"); T.meshgrid(v[:2], v[:3], indexing="zz"); T.meshgrid(L(1), L([2, 3]))
T.vander(v[:4]); T.vander(v[:4], 2, True); T.vander(L([1, 2, 3])); x.fill_(3); x.fill_(L(2.0)); x.zero_(); T.fill(x, 2); d.fill_(2.5); T.scalar_tensor(3); x.fill_diagonal_(9.0); T.zeros(7, 3).fill_diagonal_(1.0, wrap=True)
T.empty_strided((2, 3), (1, 2)).stride(); x.new_zeros(2); x.new_full((2,), 3.0); x.new_ones((2, 2)); T.ones(2, requires_grad=True).requires_grad; T.complex(x, x)"""

SHAPE = """T.flip(x, (0,)); T.flip(x, (1,)); T.flip(x, (0, 1)); T.flip(y, (0, 2)); T.flip(y, (1, 2)); T.flip(y, (1,)); T.flip(x.t(), (0,)); T.flip(x, (0, 0)); T.flip(x, (5,)); x.flip(0); x.flip(0, 1); T.flip(d, (2,)); T.flip(c, (1,)); T.flip(e, (0,))
T.flip(m, (1,)); T.fliplr(x); T.flipud(x); T.fliplr(v); T.rot90(x); T.rot90(x, 2); T.rot90(x, -1); T.rot90(y, 1, (1, 2)); T.rot90(x, 1, (0, 0)); T.roll(x, 1); T.roll(x, 1, 0); T.roll(x, (1, -2), (0, 1)); T.roll(x, (1, 2), 0); T.roll(y, 3, 1)
T.roll(v, 40, 0); T.roll(e, 1, 1); T.roll(x.t(), 2); x.repeat(2, 3); x.repeat(2, 1, 2); x.repeat((2, 3)); x.repeat(2); x.repeat(0, 2); v.repeat(3); T.tile(x, (2,)); T.tile(x, (2, 3)); T.tile(v, (2, 2)); x.tile(2, 1); T.tile(x, dims=(2,)); x.tile(dims=(2, 3)); x[:1].sum_to_size(size=x[:1].shape); x.clone().resize_(size=(2, 1)); x.clone().resize_(2, 4, 2**29, 2**29); x.clone().resize_(0, 4, 2**61);
x.clone().resize_(2, 0, 3); x.clone().apply_(lambda a: "1"); x.clone().map_(x, lambda a, b: None); x.int().type(T.Tensor);
x.repeat(-1, 2)
T.repeat_interleave(v, 2); T.repeat_interleave(x, 2, 1); T.repeat_interleave(x, L([1, 0, 2]), 0); T.repeat_interleave(L([1, 0, 2])); T.repeat_interleave(x, L([1, 2]), 0); T.repeat_interleave(x, 3); T.repeat_interleave(x, L([2]), 0); T.repeat_interleave(x, -1)
F.pad(x, (1, 2)); F.pad(x, (1, 2, 3, 4)); F.pad(x, (1, 2), value=3.0); F.pad(x, (-1, 2)); F.pad(x, (-1, -1, 0, 1), value=2.0); F.pad(x, (1,)); F.pad(x, (1, 1, 1, 1, 1, 1)); F.pad(x, (-3, -3)); F.pad(y, (2, 1), mode="reflect"); F.pad(z, (2, 1, 1, 2), mode="reflect")
F.pad(z, (2, 1, 1, 2), mode="replicate"); F.pad(z, (2, 1, 1, 2), mode="circular"); F.pad(y, (9, 1), mode="reflect"); F.pad(x, (1, 1), mode="foo"); F.pad(z, (0, 0, 2, 1), mode="reflect"); F.pad(z, (2, -1, -2, 1), mode="replicate"); F.pad(z, (-1, 2, 1, -1), mode="reflect"); F.pad(z, (1, -2, -1, 1), mode="circular"); F.pad(y, (1, 1, 2, 0), mode="replicate"); F.pad(y.transpose(0, 2), (1, 1), mode="circular"); F.pad(y, (7, 0), mode="replicate"); F.pad(m, (1, 1)); F.pad(d, (1, 1), value=3)"""

SORT = """T.sort(v); T.sort(x); T.sort(x, 0); T.sort(y, 1, True); T.sort(x, descending=True); T.sort(L(1.0)); T.sort(e); T.sort(d, stable=True); T.sort(d, dim=1, descending=True, stable=True); T.sort(L([1.0, float("nan"), -1.0, float("inf")])); T.sort(m, stable=True)
T.sort(L([2, 1, 2], dtype=T.uint8), stable=True); T.sort(c); x.sort(5); T.argsort(x); T.argsort(d, dim=2, stable=True); T.msort(x); T.topk(v, 5); T.topk(v, 3, largest=False); T.topk(x, 2, 0); T.topk(x, 0); T.topk(x, 9); T.topk(L(1.0), 1); T.topk(y, 2, 1).values
T.kthvalue(v, 3); T.kthvalue(x, 2, 0); T.kthvalue(x, 2, 0, True); T.kthvalue(x, 0); T.kthvalue(y, 3, 1); T.median(x); T.median(x, 1); T.median(x, 0, keepdim=True); T.median(v); T.median(y, 1); T.median(L([1.0, float("nan"), 2.0])); T.nanmedian(L([1.0, float("nan"), 2.0, 3.0]))
T.nanmedian(x, 1); T.median(L([1.0, float("nan"), 2.0]), 0).values; T.median(d); T.median(v[:0]); T.mode(d, 1).values; T.mode(d % 3, 2).values; T.mode(x).values; T.unique(d); T.unique(d, return_inverse=True); T.unique(d, return_counts=True); T.unique(d, True, True, True)
T.unique(L([3.0, 1.0, 3.0])); T.unique(v[:0]); T.unique(m); T.unique(d[0] % 3, dim=0); T.unique(d[0] % 2, return_inverse=True, return_counts=True, dim=1); T.unique_consecutive(L([1, 1, 2, 2, 1])); T.unique_consecutive(L([1, 1, 2, 2, 1]), True, True)
T.unique_consecutive(L([[1, 1], [1, 1], [2, 2]]), return_counts=True, dim=0); d.unique(); T.searchsorted(v.sort()[0], x); T.searchsorted(v.sort()[0], x, right=True); T.searchsorted(v.sort()[0], 0.5); T.searchsorted(x.sort(1)[0], s); T.searchsorted(x, v)
T.searchsorted(v.sort()[0], x, out_int32=True); T.searchsorted(v.sort()[0], x, side="right"); T.searchsorted(v.sort()[0], x, side="foo"); T.searchsorted(v, x, sorter=v.argsort()); T.bucketize(x, v.sort()[0]); T.bucketize(x, x); T.bucketize(x, v.sort()[0], right=True)
T.bincount(d[0, 0]); T.bincount(d[0, 0], minlength=20); T.bincount(L([0, 1, 1]), weights=L([1.0, 2.0, 3.0])); T.bincount(L([0, 1, 1]), weights=L([1, 2, 3])); T.bincount(L([-1])); T.bincount(L([1.0])); T.bincount(L([1]), weights=L([1, 2.0])); T.bincount(L([1]), minlength=-1)
T.bincount(L([[1]])); T.bincount(L([], dtype=T.int64)); T.histc(v, 10); T.histc(v, 5, -1, 1); T.histc(d, 5); T.histc(v, 0); T.histc(T.ones(4), 3); F.one_hot(i); F.one_hot(i, 5); F.one_hot(L([-1])); F.one_hot(L([3]), 2); F.one_hot(L([1.0])); F.one_hot(d[:1])
T.embedding(x, i); T.embedding(x, d % 3); T.embedding(x, L([3])); T.embedding(x, L([0.5])); T.isin(d, L([1, 2]))"""


def cases(text):
    return [e.strip() for line in text.split("\n") for e in line.split("; ") if e.strip()]


@pytest.mark.parametrize("expression", cases(JOIN))
def test_join(expression):
    check(expression)


@pytest.mark.parametrize("expression", cases(CREATE))
def test_create(expression):
    check(expression, exact=not any(n in expression for n in ("logspace", "vander")))


@pytest.mark.parametrize("dtype", ["float64", "int64", "int16"])
def test_linspace_has_all_digits(dtype):
    """Products and sums are rounded once, as in PyTorch: 29 less 33 steps of 69 / 99 is just below 6."""
    for start, end, n in ((-40, 29, 100), (-3, 7, 1000), (5, -60, 33)):
        want = torch.linspace(start, end, n, dtype=getattr(torch, dtype))
        assert taeda.linspace(start, end, n, dtype=getattr(taeda, dtype)).tolist() == want.tolist()


@pytest.mark.parametrize("expression", cases(SHAPE))
def test_shape(expression):
    check(expression)


@pytest.mark.parametrize("expression", cases(SORT))
def test_sort(expression):
    check(expression)


GRADIENTS = """x[i]; x[i, i]; x[m]; x[:, i]; y[:, i, i]; y[i, :, i]; x[0, i]; T.gather(x, 0, k[:2]); T.gather(y, 1, d[:, :3, :4] % 5); x.scatter(0, k[:1], 1.5); x.scatter(1, k, s); x.scatter(1, k[:2, :2], s[:2, :2])
x.scatter_add(0, k, s); x.scatter_add(0, k[:2], s[:2]); x.scatter_reduce(0, k, s, "sum"); x.scatter_reduce(0, k, s, "prod"); x.scatter_reduce(0, k, s, "mean"); x.scatter_reduce(0, k, s, "amax"); x.scatter_reduce(0, k, s, "amin", include_self=False)
x.scatter_reduce(0, k, s, "prod", include_self=False); x.scatter_reduce(0, k, s, "mean", include_self=False); T.index_select(x, 0, i); T.index_select(y, 1, i); x.index_add(0, L([0, 0, 2]), s, alpha=2); x.index_copy(0, L([0, 2]), s[:2])
x.index_fill(0, L([0, -1]), 3.0); x.index_reduce(0, L([0, 0, 2]), s, "prod"); x.index_reduce(0, L([0, 0, 2]), s, "mean"); x.index_reduce(0, L([0, 0, 2]), s, "amax"); T.take(x, L([[0, 11], [-1, 3]])); x.put(L([1, -1]), s[0, :2]); x.put(L([1, 1]), s[0, :2], True)
T.masked_select(x, m); x.masked_fill(m, 2.0); x.masked_fill(m, s[0, 0]); x.masked_scatter(m, v); T.where(m, x, s); T.where(m[0], x, s[:, :1]); x.index_put((L([0, 0, 1]),), s, accumulate=True); x.index_put((L([0, 2]),), s[:2]); T.cat([x, s], 1); T.cat([x, v[:0], s])
T.stack([x, s], 1); T.hstack([x, s]); T.tril(x); T.triu(y, 1); T.diag(v); T.diag(x); T.diag_embed(x); T.flip(x, (0,)); T.roll(x, (1, 2), (0, 1)); x.repeat(2, 3); x.repeat(2, 1, 2); T.tile(x, (2,)); T.repeat_interleave(x, 2, 1); T.repeat_interleave(x, L([1, 0, 2]), 0)
F.pad(x, (1, -1), value=2.0); F.pad(z, (2, 1, 1, 2), mode="reflect"); F.pad(z, (2, 1, 1, 2), mode="circular"); F.pad(z, (2, 1, 1, 2), mode="replicate"); F.pad(z, (2, 0, -1, 2), mode="replicate"); F.pad(y, (0, 2), mode="reflect"); T.sort(x, 0)[0]; T.topk(x, 2, 0)[0]; T.kthvalue(x, 2, 0)[0]; T.median(x); T.median(x, 1)[0]; T.mode(x)[0]
T.nanmedian(x, 1)[0]; T.embedding(x, i); T.rot90(x); T.block_diag(x, v); T.meshgrid(v, v)[1]; T.select_scatter(x, s[0], 0, 1); T.diagonal_scatter(x, s[0, :3]); T.take_along_dim(x, k[:1], 0); T.tensor_split(x, 2)[0]"""


@pytest.mark.parametrize("expression", cases(GRADIENTS))
def test_gradients(expression):
    results = []
    for lib in (torch, taeda):
        scope = names(lib)
        leaves = []
        for name in "xsyvz":
            scope[name] = scope[name].to(lib.float64).requires_grad_()
            leaves.append(scope[name])
        out = eval(expression, scope)
        first = lib.autograd.grad((out * out * out).sum(), leaves, create_graph=True, allow_unused=True)
        total = sum((g * g).sum() for g in first if g is not None)
        second = lib.autograd.grad(total, leaves, allow_unused=True)
        results.append([None if g is None else g.detach().numpy() for g in (*first, *second)])
    for a, b in zip(*results, strict=True):
        assert (a is None or not a.any()) if b is None else True
        if a is not None and b is not None:
            np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-9, err_msg=expression)
        elif a is not None:
            assert not a.any(), expression


ASSIGN = [
    "a[i[:2]] = s[:2] * 2",
    "a[m] = s[m]",
    "a[m] = 3.0",
    "a[:, i[:1]] += s[:, :1]",
    "a[1:][:, L([0, 2])] = s[:2, :2]",
]


@pytest.mark.parametrize("statement", ASSIGN)
def test_gradients_of_assignment(statement):
    results = []
    for lib in (torch, taeda):
        scope = names(lib)
        x, s = (scope[n].to(lib.float64).requires_grad_() for n in "xs")
        scope.update(x=x, s=s, a=x * 1.0)
        exec(statement, scope)
        grads = lib.autograd.grad((scope["a"] ** 2).sum(), (x, s), allow_unused=True)
        results.append([None if g is None else g.numpy() for g in grads])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(0 if b is None else b, 0 if a is None else a, err_msg=statement)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("weighted, width", [(False, 4), (True, 4), (False, 77)])
def test_bags(mode, padding, last, weighted, width):
    rng = np.random.default_rng(0)
    table, index, offsets = rng.standard_normal((10, width)), rng.integers(0, 10, 20), np.array([0, 3, 3, 9, 20])
    factors = rng.standard_normal(20)
    results = []
    for lib in (torch, taeda):
        weight = lib.from_numpy(table.copy()).requires_grad_()
        sample = lib.from_numpy(factors.copy()).requires_grad_() if mode == "sum" and weighted else None
        out = lib.nn.functional.embedding_bag(
            lib.from_numpy(index),
            weight,
            lib.from_numpy(offsets),
            mode=mode,
            padding_idx=padding,
            include_last_offset=last,
            per_sample_weights=sample,
        )
        (out * out).sum().backward()
        results.append(
            [out.detach().numpy(), weight.grad.numpy(), *([sample.grad.numpy()] if sample is not None else [])]
        )
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "index, offsets", [([0, 1, 2], [0, 9, 2]), ([0, 1, 2], [0, 2, 1]), ([0, 10], [0]), ([-1], [0])]
)
def test_bags_outside(index, offsets):
    """Bags beyond the indices, and indices beyond the table, raise as in PyTorch."""
    for lib in (torch, taeda):
        with pytest.raises(RuntimeError):
            lib.nn.functional.embedding_bag(lib.tensor(index), lib.ones(10, 4), lib.tensor(offsets), mode="sum")


@pytest.mark.parametrize("norm", [None, 1.0])
@pytest.mark.parametrize("padding", [None, 3, -1])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_embedding(norm, padding, by_frequency):
    rng = np.random.default_rng(0)
    table, index = rng.standard_normal((10, 4)), rng.integers(0, 10, (4, 5))
    results = []
    for lib in (torch, taeda):
        weight = lib.from_numpy(table.copy()).requires_grad_()
        out = lib.nn.functional.embedding(lib.from_numpy(index), weight, padding, norm, scale_grad_by_freq=by_frequency)
        (out * out).sum().backward()
        results.append([out.detach().numpy(), weight.grad.numpy(), weight.detach().numpy()])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("pad", [(0, 0), (-1, -1), (-1, 0), (1, -1)])
def test_padding_is_no_view(mode, pad):
    x = taeda.arange(8.0).reshape(1, 1, 8)
    taeda.nn.functional.pad(x, pad, mode).fill_(-9)
    assert x.flatten().tolist() == list(range(8))


@pytest.mark.parametrize("size", [3, 4, 6])
@pytest.mark.parametrize("pad", [(-2, 2), (2, -2), (-1, 2), (2, -3), (-2, -2)])
def test_padding_shows_what_it_cuts_off(size, pad):
    """Reflections and edges are those of the whole input. PyTorch reads memory where circular padding cut too much."""
    pads, x = (*pad, *pad, *pad), np.random.default_rng(0).normal(size=(2, size, size, size))
    for mode in ("reflect", "replicate", "circular"):
        theirs, their_error = outcome(torch.nn.functional.pad, torch.from_numpy(x), pads, mode)
        ours, our_error = outcome(taeda.nn.functional.pad, taeda.from_numpy(x), pads, mode)
        if mode == "circular" and max(pad) > size + sum(n for n in pad if n < 0):
            assert isinstance(our_error, RuntimeError)
        else:
            assert type(our_error) is type(their_error)
            assert our_error or np.array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("pad", [(-1, 2, 0, -4), (-5, 0, -4, 0), (0, -6, 0, 0)])
def test_padding_that_leaves_a_dimension_empty(mode, pad):
    def padded(package):
        x = package.ones(2, 3, 4, 5, requires_grad=True)
        y = package.nn.functional.pad(x, pad, mode)
        y.sum().backward()
        return y.shape, x.grad.tolist()

    theirs, their_error = outcome(padded, torch)
    ours, our_error = outcome(padded, taeda)
    assert type(our_error) is type(their_error) and ours == theirs


@pytest.mark.parametrize("op", [edge_pad, edge_pad_backward])
@pytest.mark.parametrize(("pad", "mode"), [((7, 0), "reflect"), ((0, 4), "circular"), ((-1, 1), "replicate")])
def test_edges_that_are_not_there(op, pad, mode):
    with pytest.raises(RuntimeError, match="padding"):
        op(taeda.ones(1, 3), pad, mode)


@pytest.mark.parametrize("source", [(9, 20), (3, 1, 5), (4, 20, 5)], ids=str)
def test_a_value_that_does_not_fit_is_refused_in_the_same_words(source):
    said = []
    for f in (torch, taeda):
        with pytest.raises(RuntimeError) as raised:
            f.ones(3, 20, 5)[1:] = f.ones(source)
        said.append(str(raised.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_last_bag_that_ends_before_the_indices_do(weighted):
    results = []
    for lib in (torch, taeda):
        table = lib.arange(12.0).view(6, 2)
        factors = lib.tensor([1.0, 2.0, 3.0, 4.0]) if weighted else None
        index, offsets = lib.tensor([1, 2, 4, 5]), lib.tensor([0, 2, 3])
        results.append(
            lib.nn.functional.embedding_bag(
                index, table, offsets, mode="sum", include_last_offset=True, per_sample_weights=factors
            ).tolist()
        )
    assert results[0] == results[1]
    weight = taeda.ones(6, 2, requires_grad=True)
    taeda.nn.functional.embedding_bag(index, weight, offsets, mode="mean", include_last_offset=True).sum().backward()
    assert weight.grad[:, 0].tolist() == [0, 0.5, 0.5, 0, 1, 0]
    with pytest.raises(RuntimeError, match="at least 1"):
        taeda.nn.functional.embedding_bag(index, weight, offsets[:0], include_last_offset=True)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("rows", [3, 2000])  # more items than places, and fewer
def test_sums_of_16_bit_floats_are_rounded_once(dtype, rows):
    """They are no further from the exact sums than PyTorch's."""
    generator = np.random.default_rng(0)
    values, at = generator.uniform(0.5, 1.5, (300, 5)), generator.integers(0, 3, 300)

    def sums(t, dtype):
        src, index, zeros = t.tensor(values.tolist()).to(dtype), t.tensor(at.tolist()), t.zeros(rows, 5, dtype=dtype)
        each = index[:, None].expand(300, 5)
        leaf = t.zeros(rows, 5, dtype=dtype, requires_grad=True)
        leaf.index_select(0, index).backward(src)
        made = [
            zeros.index_add(0, index, src), zeros.t().contiguous().index_add(1, index, src.t()),
            zeros.scatter_add(0, each, src), zeros.scatter(0, each, src, reduce="add"),
            zeros.scatter_reduce(0, each, src, "sum"), zeros.scatter_reduce(0, each, src, "mean", include_self=False),
            (zeros + 1).scatter_reduce(0, each, src, "prod"), zeros[:, 0].index_add(0, index, src[:, 0], alpha=2),
            leaf.grad,
        ]  # fmt: skip
        return [np.array(x.detach().double().tolist()) for x in made]

    theirs = sums(torch, getattr(torch, dtype))
    rounded = torch.tensor(values.tolist()).to(getattr(torch, dtype)).double().tolist()
    values = np.array(rounded)
    exact = sums(taeda, taeda.float64)
    for ours, their, right in zip(sums(taeda, getattr(taeda, dtype)), theirs, exact, strict=True):
        assert abs(ours - right).max() <= abs(their - right).max() * 1.001 + 1e-6


@pytest.mark.parametrize("item", [np.bool_(True), np.bool_(False), np.array(True), np.array(False), np.array(1)])
@pytest.mark.parametrize("at", ["alone", "first", "last"])
def test_arrays_and_numbers_of_numpy_without_dimensions(item, at):
    """NumPy's bool is no index, an array of one bool is a mask, and an array of one integer is that integer."""
    index = {"alone": item, "first": (item, 0), "last": (0, item)}[at]
    found = []
    for lib in (torch, taeda):
        x, y = lib.arange(6.0).reshape(2, 3), lib.zeros(2, 3)
        try:
            y[index] = 1.0
            found.append((x[index].tolist(), y.tolist()))
        except IndexError:
            found.append(IndexError)
    assert found[0] == found[1]


@pytest.mark.parametrize("index", [
    [np.array(1), np.array(2)], [np.array([0, 1]), np.array([1, 2])], [1, np.array([0, 1])], [np.array(True), 1],
    [range(2), range(2)], [np.int64(1), np.int64(0)], [np.True_, np.False_], np.array([0, 1], np.uint16),
    np.array([[0], [1]], np.uint32), np.array([1, 0], np.uint64), np.array([-1, 0], np.int8),
], ids=str)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_lists_of_arrays_are_tuples_and_arrays_of_any_integers_are_indices(index):
    found = []
    for lib in (torch, taeda):
        x, y = lib.arange(6.0).reshape(2, 3), lib.zeros(2, 3)
        y[index] = 1.0
        found.append((x[index].tolist(), y.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
@pytest.mark.parametrize("sizes", [(0, 3), (1, 1), (3, 5), (5, 3), (1, 6), (6, 1)])
def test_coordinates_of_every_triangle(name, sizes):
    for offset in range(-7, 8):
        want, got, form = (
            getattr(t, name)(*sizes, offset, **more)
            for t, more in ((torch, {}), (taeda, {}), (taeda, {"device": "meta"}))
        )
        assert got.tolist() == want.tolist() and got.stride() == want.stride() and got.shape == form.shape
    assert getattr(taeda, name)(2**33, 2**20, device="meta").shape[1] in (2**53 - 2**39 + 2**19, 2**39 + 2**19)


def test_scatter_multiplies_complex_numbers():
    index = [[0, 1, 2, 0], [0, 0, 1, 1], [0, 1, 1, 2]]
    for value in ("tensor", 2 + 1j):
        made = []
        for t in (torch, taeda):
            x = t.arange(12.0).view(3, 4) + 1j
            src = t.arange(12.0).view(3, 4) - 2j if value == "tensor" else value
            made.append(x.scatter_(0, t.tensor(index), src, reduce="multiply").tolist())
        assert made[0] == made[1]


@pytest.mark.parametrize("own", [True, False])
def test_products_of_complex_items(own):
    index, x = taeda.tensor([2, 0, 2, 2]), taeda.randn(3, 2, dtype=taeda.complex128, requires_grad=True)
    items = taeda.randn(4, 2, dtype=taeda.complex128, requires_grad=True)
    want = x.detach().clone() if own else x.detach().index_fill(0, index, 1)
    for at, row in zip(index.tolist(), items.detach(), strict=True):
        want[at] *= row

    def by_slices(x, items, how="prod"):
        return x.index_reduce(0, index, items, how, include_self=own)

    def by_elements(x, items, how="prod"):
        return x.scatter_reduce(0, index[:, None].expand(4, 2), items, how, include_self=own)

    for op in (by_slices, by_elements):
        assert taeda.allclose(op(x, items), want)
        for how in ("prod", "mean"):
            assert taeda.autograd.gradcheck(lambda x, items, op=op, how=how: op(x, items, how), (x, items))
        with pytest.raises(NotImplementedError):
            op(x, items, "amax")


def test_a_number_is_not_written_to_places_that_share_memory():
    for f in (torch, taeda):
        x = f.ones(3).clone().expand(2, 3)
        for index in (..., slice(None), (slice(None), 0)):
            with pytest.raises(RuntimeError, match="more than one element"):
                x[index] = 2
        x[0] = x[0:1] = 2
        assert x.tolist() == [[2.0] * 3] * 2

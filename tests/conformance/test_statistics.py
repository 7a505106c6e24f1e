"""Statistics, distances, windows and copies of views against PyTorch."""

import itertools
import math

import pytest

import taeda
from taeda._core import memory
from taeda.ops import statistics, view_copies

torch = pytest.importorskip("torch")

from tests.conformance.peer import close, ours  # noqa: E402


def data(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def both(name, *args, module=statistics, **kwargs):
    leaves = [a.clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
    mine = [ours(a) for a in leaves]
    want = getattr(torch, name)(*leaves, **kwargs)
    got = getattr(module, name)(*mine, **{k: ours(v) for k, v in kwargs.items()})
    close(got, want, rtol=1e-9, atol=1e-10)
    wants, gots = (want, got) if isinstance(want, (tuple, list)) else ((want,), (got,))
    for w, g in zip(wants, gots, strict=True):
        if w.requires_grad:
            close(
                taeda.autograd.grad((g**2).sum(), mine[0], retain_graph=True),
                torch.autograd.grad((w**2).sum(), leaves[0], retain_graph=True),
                rtol=1e-8,
                atol=1e-9,
            )


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles(name, interpolation):
    x = data(3, 7)
    for q, dim, keepdim in itertools.product((0.3, [0.0, 0.25, 1.0]), (None, 0, -1), (False, True)):
        q = (
            torch.tensor(q, dtype=torch.float64).item()
            if isinstance(q, float)
            else torch.tensor(q, dtype=torch.float64)
        )
        both(name, x, q, dim, keepdim, interpolation=interpolation)
    x[1, 2] = float("nan")
    close(
        getattr(statistics, name)(ours(x), 0.5, 1, interpolation=interpolation),
        getattr(torch, name)(x, 0.5, 1, interpolation=interpolation),
    )


def test_matrices():
    both("trace", data(4, 4))
    for p in (0.0, 1.0, 2.0, 3.0, float("inf")):
        both("cdist", data(2, 3, 5), data(2, 4, 5, seed=1), p)
    for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        both("cdist", data(3, 5), data(2, 4, 5, seed=1), compute_mode=mode)
    both("cdist", data(30, 5), data(2, 7, 5, seed=1))  # by a product
    both("pdist", data(5, 3))
    both("cov", data(3, 6))
    both("cov", data(6))
    both("cov", data(3, 6), correction=0, fweights=torch.tensor([1, 2, 1, 3, 1, 1]), aweights=data(6, seed=3).abs())
    both("corrcoef", data(3, 6))


def test_distances_by_a_product():
    """The second derivative too, and no gradient through a distance of zero."""
    x1, x2 = (ours(data(27, 3, seed=s)).requires_grad_() for s in (0, 1))
    assert taeda.autograd.gradgradcheck(taeda.cdist, (x1, x2))
    same = taeda.cdist(x1, x1).diagonal()
    assert float(same.amax()) < 1e-6
    assert not taeda.autograd.grad(taeda.cdist(x1 * 0, x2 * 0).sum(), x1)[0].any()
    with pytest.raises(ValueError, match="compute_mode"):
        taeda.cdist(x1, x2, compute_mode="fast")


def test_sets_and_indices():
    x = torch.tensor([[3, 1], [4, 1]])
    for invert in (False, True):
        both("isin", x, torch.tensor([1, 4]), invert=invert)
        both("isin", x, 1, invert=invert)
        both("isin", 3, x, invert=invert)
    both("unravel_index", torch.tensor([0, 5, 11]), (3, 4))
    for indices, shape in (([0.5], (2, 2)), ([], 4), ([True], 4), ([1], (2.0, 2)), ([1], 2.0)):
        for library in (torch, taeda):
            with pytest.raises(TypeError):
                library.unravel_index(library.tensor(indices), shape)


def test_gradient():
    for order in (1, 2):
        both("gradient", data(4, 5), edge_order=order)
        both("gradient", data(4, 5), spacing=0.5, dim=1, edge_order=order)
        both(
            "gradient",
            data(5),
            spacing=(torch.tensor([0.0, 1.0, 3.0, 4.0, 8.0], dtype=torch.float64),),
            edge_order=order,
        )


def test_copies_of_views():
    x = data(3, 4)
    for name, args in {
        "transpose_copy": (0, 1), "permute_copy": ((1, 0),), "view_copy": ((12,),), "expand_copy": ((2, 3, 4),),
        "squeeze_copy": (), "unsqueeze_copy": (1,), "select_copy": (0, 1), "slice_copy": (0, 1, 3), "diagonal_copy": (),
        "unbind_copy": (), "split_copy": (2,), "unfold_copy": (0, 2, 1), "t_copy": (), "alias_copy": (),
    }.items():  # fmt: skip
        both(name, x, *args, module=view_copies)
        made = getattr(view_copies, name)(ours(x), *args)
        for part in made if isinstance(made, tuple) else (made,):
            assert part.untyped_storage() is not ours(x).untyped_storage()


def test_gradient_of_float32_between_coordinates_of_float64_has_their_digits():
    values, at = data(1000).float(), data(1000, seed=1)
    got = taeda.gradient(ours(values), spacing=[ours(at)])[0]
    want = taeda.gradient(ours(values.double()), spacing=[ours(at)])[0]
    assert taeda.equal(got, want)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32, torch.complex64])
@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_between_coordinates_promotes(dtype, edge_order):
    values, at = torch.tensor([4, 1, 1, 16, 2, 7]).to(dtype), torch.tensor([0.0, 1, 3, 4, 6, 9])
    for where in (at, at.double(), at.long()):
        want = torch.gradient(values, spacing=(where,), edge_order=edge_order)[0]
        got = taeda.gradient(ours(values), spacing=(ours(where),), edge_order=edge_order)[0]
        assert str(got.dtype).split(".")[1] == str(want.dtype).split(".")[1]
        close(got, want, rtol=2e-3, atol=2e-3)
    with pytest.raises(RuntimeError, match="uint8"):
        taeda.gradient(taeda.tensor([1, 2, 3], dtype=taeda.uint8))


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
@pytest.mark.parametrize(
    "shapes", [((5, 3), (4, 3)), ((3, 1, 5, 7), (2, 33, 7)), ((5, 0), (4, 0)), ((30, 17), (30, 17))]
)
def test_distances_of_all_pairs(shapes, p):
    a, b = (torch.randn(shape, dtype=torch.float64) for shape in shapes)
    if a.shape == b.shape:
        b = a.clone()
        b[::2] += 1
    theirs = [x.requires_grad_() for x in (a, b)]
    ours = [taeda.from_numpy(x.detach().numpy().copy()).requires_grad_() for x in theirs]
    want = torch.cdist(*theirs, p, "donot_use_mm_for_euclid_dist")
    got = taeda.cdist(*ours, p, "donot_use_mm_for_euclid_dist")
    want.sin().sum().backward()
    got.sin().sum().backward()
    for x, y in zip([got.detach(), *(x.grad for x in ours)], [want.detach(), *(x.grad for x in theirs)], strict=True):
        torch.testing.assert_close(torch.from_numpy(x.numpy()), y, equal_nan=True)


def test_distances_take_the_memory_of_the_result():
    x = taeda.randn(700, 200, requires_grad=True)
    y = taeda.randn(700, 200)
    memory.reset_peak_memory_stats()
    before = memory.memory_stats()["peak_allocated"]
    taeda.cdist(x, y, 3).sum().backward()
    taeda.nn.functional.pdist(x, 1).sum().backward()
    assert memory.memory_stats()["peak_allocated"] - before < 20 * 700 * 700 * 4


def test_quantiles_of_a_number_have_one_dimension():
    for quantile in (taeda.quantile, taeda.nanquantile):
        assert quantile(taeda.tensor(2.0), 0.5, -1).item() == 2
        with pytest.raises(IndexError, match="Dimension out of range"):
            quantile(taeda.tensor(2.0), 0.5, 2)

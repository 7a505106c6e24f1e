"""Sorting and what follows from it, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import taeda

NUMBERS = st.sampled_from(["float32", "float64", "int64", "int32", "uint8", "int16"])


@st.composite
def rows(draw):
    dtype = draw(NUMBERS)
    elements = (
        {"elements": st.sampled_from([0.0, -0.0, 1.5, -2.0, float("inf"), float("nan"), 3.0])}
        if dtype[0] == "f"
        else {}
    )
    return draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=3, max_side=90), **elements))


@settings(max_examples=100, deadline=None)
@given(rows(), st.booleans())
def test_sort_is_stable(a, descending):
    t = taeda.from_numpy(a.copy())
    for dim in range(a.ndim):
        values, indices = taeda.sort(t, dim, descending)
        if descending:
            flipped = np.flip(a, dim)
            order = a.shape[dim] - 1 - np.flip(np.argsort(flipped, dim, kind="stable"), dim)
        else:
            order = np.argsort(a, dim, kind="stable")
        np.testing.assert_array_equal(indices.numpy(), order)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, order, dim))


@settings(max_examples=100, deadline=None)
@given(rows(), st.integers(0, 90), st.booleans())
def test_topk_is_the_start_of_sort(a, k, largest):
    t = taeda.from_numpy(a.copy())
    k = min(k, a.shape[-1])
    values, indices = t.topk(k, largest=largest)
    expected = t.sort(descending=largest)
    np.testing.assert_array_equal(indices.numpy(), expected.indices[..., :k].numpy())
    np.testing.assert_array_equal(values.numpy(), expected.values[..., :k].numpy())


@settings(max_examples=100, deadline=None)
@given(rows())
def test_order_statistics(a):
    t = taeda.from_numpy(a.copy())
    ordered = t.sort().values
    n = a.shape[-1]
    for k in {1, n // 2 + 1, n}:
        np.testing.assert_array_equal(t.kthvalue(k).values.numpy(), ordered[..., k - 1].numpy())
    if not np.isnan(a.astype("f8")).any():
        np.testing.assert_array_equal(t.median(-1).values.numpy(), ordered[..., (n - 1) // 2].numpy())


@settings(max_examples=100, deadline=None)
@given(rows())
def test_unique(a):
    if np.isnan(a.astype("f8")).any():
        a = np.nan_to_num(a)
    values, inverse, counts = taeda.unique(taeda.from_numpy(a.copy()), return_inverse=True, return_counts=True)
    expected = np.unique(a, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values.numpy(), expected[0])
    np.testing.assert_array_equal(inverse.numpy(), expected[1].reshape(a.shape))
    np.testing.assert_array_equal(counts.numpy(), expected[2])


@pytest.mark.parametrize("same", [0, 3, 4, 17, 30])
def test_unique_rows(same):
    """However many columns it takes to tell rows apart."""
    a = np.random.default_rng(0).integers(0, 3, (60, 30))
    a[:, :same] = a[0, :same]
    a[40:] = a[:20]
    for dim in (0, 1):
        got = taeda.unique(taeda.from_numpy(a.copy()), return_inverse=True, return_counts=True, dim=dim)
        expected = np.unique(a, return_inverse=True, return_counts=True, axis=dim)
        for mine, theirs in zip(got, expected, strict=True):
            np.testing.assert_array_equal(mine.numpy(), theirs.reshape(mine.shape))


@settings(max_examples=50, deadline=None)
@given(rows(), rows())
def test_searchsorted(a, b):
    a = np.sort(np.nan_to_num(a).reshape(-1))
    b = np.clip(np.nan_to_num(b), -100, 100).astype(a.dtype)
    for side in ("left", "right"):
        got = taeda.searchsorted(taeda.from_numpy(a), taeda.from_numpy(b), side=side)
        np.testing.assert_array_equal(got.numpy(), np.searchsorted(a, b, side))


def test_bad_arguments():
    x = taeda.zeros(3, 4)
    for call in (
        lambda: x.topk(5),
        lambda: x.kthvalue(0),
        lambda: x.kthvalue(5),
        lambda: taeda.bincount(taeda.tensor([-1])),
    ):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(IndexError):
        x.sort(2)


def test_gradients_go_to_where_values_came_from():
    x = taeda.tensor([3.0, 1.0, 2.0], requires_grad=True)
    (x.sort().values * taeda.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]
    x.grad = None
    x.median().backward()
    assert x.grad.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("dtype", [taeda.int8, taeda.int64, taeda.float32, taeda.float64])
@pytest.mark.parametrize("n", [63, 65, 127, 128, 129])
def test_one_item_of_rows_about_as_long_as_are_ranked(n, dtype):
    x = ((taeda.arange(7 * n) * 37) % 101 - 50).reshape(7, n).to(dtype)
    ordered = x.sort(1)[0]
    for k in (1, n // 3, n):
        values, places = x.kthvalue(k, 1)
        assert taeda.equal(values, ordered[:, k - 1]) and taeda.equal(x.gather(1, places.unsqueeze(1))[:, 0], values)
    assert taeda.equal(x.median(1)[0], ordered[:, (n - 1) // 2])


def test_strides_along_dimensions_of_one_element():
    x = taeda.ones(1, 2)
    for made in (*x.sort(0), x.argsort(0), *x.topk(1, 0), x.expand(1, 2).msort()):
        assert made.stride() == (2, 1)
    assert taeda.ones(2, 1).t().sort(1).values.stride() == (1, 1)  # as the input
    assert taeda.ones(3, 1, 2).median(0).values.stride() == (2, 1)

"""Indexing, scatter and joins against NumPy, where no other library is needed to say what is right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taeda


def both(*shape, seed=0):
    a = np.random.default_rng(seed).standard_normal(shape).astype("f4")
    return a, taeda.from_numpy(a.copy())


@st.composite
def indices(draw):
    """A shape and an index for it: slices with any steps, None, ..., and at most one array of integers or mask."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    used, parts, advanced = 0, [], False
    while used < len(shape):
        size = shape[used]
        kind = draw(st.sampled_from(["slice", "none", "array", "mask", "stop"]))
        if kind == "none":
            if len(parts) < 6:
                parts.append(None)
                continue
            kind = "slice"
        if kind == "stop" or (kind in ("array", "mask") and advanced):
            break
        if kind == "slice":
            bound = st.none() | st.integers(-size - 1, size + 1)
            step = draw(st.sampled_from([None, 1, 2, 3, -1, -2]))
            parts.append(slice(draw(bound), draw(bound), step))
        elif kind == "array":
            count = draw(st.integers(0, 4))
            parts.append(np.array([draw(st.integers(-size, size - 1)) for _ in range(count)], np.int64))
            advanced = True
        else:
            parts.append(np.array([draw(st.booleans()) for _ in range(size)], bool))
            advanced = True
        used += 1
    if draw(st.booleans()):
        parts.append(Ellipsis)
    return shape, tuple(parts)


def ours(index):
    return tuple(taeda.from_numpy(p.copy()) if isinstance(p, np.ndarray) else p for p in index)


@settings(max_examples=200, deadline=None)
@given(indices())
def test_reading_is_numpys(case):
    shape, index = case
    a, t = both(*shape)
    np.testing.assert_array_equal(t[ours(index)].numpy(), a[index])


@settings(max_examples=200, deadline=None)
@given(indices())
def test_writing_is_numpys(case):
    shape, index = case
    a, t = both(*shape)
    a[index] = 7
    t[ours(index)] = 7
    np.testing.assert_array_equal(t.numpy(), a)
    a[index] = a[index] + 1
    t[ours(index)] += 1
    np.testing.assert_array_equal(t.numpy(), a)


@settings(max_examples=100, deadline=None)
@given(indices())
def test_gradient_of_reading_counts_how_often_each_element_was_read(case):
    shape, index = case
    t = taeda.ones(shape, requires_grad=True)
    t[ours(index)].sum().backward()
    counts = np.zeros(shape, "f4")
    np.add.at(counts, index, 1)
    np.testing.assert_array_equal(t.grad.numpy(), counts)


def test_nothing_is_written_when_an_index_is_bad():
    a, t = both(4, 5)
    bad = taeda.tensor([0, 1, 9])
    rows = taeda.zeros(3, 5)
    for write in (
        lambda: t.__setitem__(bad, 0.0),
        lambda: t.index_put_((bad,), rows),
        lambda: t.index_add_(0, bad, rows),
        lambda: t.index_copy_(0, bad, rows),
        lambda: t.index_fill_(0, bad, 0.0),
        lambda: t.scatter_(0, taeda.tensor([[0, 1, 2, 3, 4]]), 0.0),
        lambda: t.put_(taeda.tensor([0, 99]), taeda.zeros(2)),
        lambda: t.masked_scatter_(t > -9, taeda.zeros(3)),
    ):
        with pytest.raises((IndexError, RuntimeError)) as error:
            write()
        assert str(error.value)
        np.testing.assert_array_equal(t.numpy(), a)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t[taeda.tensor([7])],
        lambda t: t[taeda.tensor([0]), taeda.tensor([-9])],
        lambda t: t.index_select(0, taeda.tensor([4])),
        lambda t: t.take(taeda.tensor([20])),
        lambda t: t[0, 0, 0],
        lambda t: t[[0, 1], [0, 1, 2]],
        lambda t: t[taeda.tensor([True, False])],
        lambda t: t[0.5],
    ],
)
def test_bad_indices_raise(call):
    with pytest.raises(IndexError) as error:
        call(taeda.zeros(4, 5))
    assert str(error.value)


def test_writing_from_the_tensor_itself():
    a, t = both(6, 3)
    order = np.array([5, 4, 3, 2, 1, 0])
    with pytest.raises(RuntimeError, match="single memory location"):
        t[taeda.from_numpy(order)] = t
    t[taeda.from_numpy(order)] = t.clone()
    np.testing.assert_array_equal(t.numpy(), a[order])
    t[taeda.arange(3)] = t[::2]  # between the elements: each is read before it is written
    np.testing.assert_array_equal(t.numpy()[:3], a[order][::2])


def test_results_do_not_depend_on_threads():
    taeda.manual_seed(0)
    x, rows = taeda.randn(1000, 300), taeda.randn(5000, 300)
    index = taeda.randint(0, 1000, (5000,))
    along = taeda.randint(0, 1000, (1000, 300))
    jobs = [
        lambda: x.index_add(0, index, rows),
        lambda: x.index_put((index,), rows),
        lambda: x.scatter_add(0, along, x),
        lambda: x.scatter(0, along, x),
        lambda: x.gather(0, along),
        lambda: x.gather(0, index[:, None].expand(5000, 300)),
        lambda: x.scatter_add(0, index[:, None].expand(5000, 300), rows),
        lambda: x[:, index % 300],
        lambda: x.sort(0)[1],
        lambda: x.reshape(-1).sort()[0],
        lambda: x.topk(5)[1],
        lambda: x[x > 0],
        lambda: x.t().contiguous(),
        lambda: x.reshape(50, 3, 2, 1000).permute(0, 3, 1, 2).contiguous(),
        lambda: x.flip(0, 1),
        lambda: taeda.cat([x, x], 1),
    ]
    taeda.set_num_threads(1)
    single = [job().numpy() for job in jobs]
    taeda.set_num_threads(3)
    for job, expected in zip(jobs, single, strict=True):
        np.testing.assert_array_equal(job().numpy(), expected)


def test_wide_rows_are_written_in_the_order_of_the_index():
    """Threads share parts of rows, of which the last one is short; a number fills them."""
    rng = np.random.default_rng(0)
    for shape in ((40, 1433), (3, 40, 2, 700)):
        a = rng.integers(0, 9, shape).astype("f4")
        dim = a.ndim // 2 - 1
        index = rng.integers(0, 40, 300)
        t, i, at = taeda.from_numpy(a.copy()), taeda.from_numpy(index), (slice(None),) * dim
        values = rng.integers(0, 9, (*shape[:dim], 300, *shape[dim + 1 :])).astype("f4")
        added = t.index_add(dim, i, taeda.from_numpy(values))
        filled = t.index_fill(dim, i, 7)
        t[(*at, i)] = taeda.from_numpy(values)
        want, sums, full = a.copy(), a.copy(), a.copy()
        full[(*at, index)] = 7
        for k, row in enumerate(index):
            want[(*at, row)] = values[(*at, k)]
            sums[(*at, row)] += values[(*at, k)]
        for got, expected in ((t, want), (added, sums), (filled, full)):
            np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("n", [5, 65536, 65541, 200_003])
def test_long_runs_are_turned_by_pieces(n):
    a = np.arange(2 * n, dtype="f4").reshape(2, n)
    t = taeda.from_numpy(a)
    np.testing.assert_array_equal(t.flip(1).numpy(), a[:, ::-1])
    np.testing.assert_array_equal(t.flip(0, 1).numpy(), a[::-1, ::-1])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex128"])
def test_transposed_copies(dtype):
    rng = np.random.default_rng(0)
    for shape in ((3, 5, 7), (40, 33), (2, 16, 1, 9), (1, 70, 3), (3, 2, 2, 9, 5), (2, 2, 30, 2, 2)):
        a = rng.integers(0, 100, shape).astype(dtype)
        t = taeda.from_numpy(a)
        order = tuple(reversed(range(len(shape))))
        np.testing.assert_array_equal(t.permute(order).contiguous().numpy(), a.transpose(order))


def test_views_of_masks_and_half_the_rows():
    a, t = both(8, 9)
    mask = a[::2, ::3] > 0
    np.testing.assert_array_equal(t[::2, ::3][taeda.from_numpy(mask)].numpy(), a[::2, ::3][mask])
    t[::-2][taeda.tensor([0, 2])] = 1.0
    a[::-2][np.array([0, 2])] = 1.0
    np.testing.assert_array_equal(t.numpy(), a)


def test_joining_many_pieces():
    pieces = [np.full((i % 3, 4), i, "f4") for i in range(50)]
    joined = taeda.cat([taeda.from_numpy(p) for p in pieces])
    np.testing.assert_array_equal(joined.numpy(), np.concatenate(pieces))
    stacked = taeda.stack([taeda.full((2, 3), float(i)) for i in range(20)], 1)
    np.testing.assert_array_equal(stacked.numpy(), np.stack([np.full((2, 3), i, "f4") for i in range(20)], 1))


def test_embedding_gradient_is_summed_in_order():
    weight = taeda.zeros(3, 2, requires_grad=True)
    index = taeda.tensor([[0, 2], [0, 0]])
    taeda.embedding(weight, index, padding_idx=2).sum().backward()
    assert weight.grad.tolist() == [[3.0, 3.0], [0.0, 0.0], [0.0, 0.0]]


def test_large_gathers_and_masks_agree_with_numpy():
    rng = np.random.default_rng(0)
    a, t = both(300, 400)
    index = rng.integers(-300, 300, 7000)
    np.testing.assert_array_equal(t[taeda.from_numpy(index)].numpy(), a[index])
    columns = rng.integers(0, 400, 1000)
    np.testing.assert_array_equal(t[:, taeda.from_numpy(columns)].numpy(), a[:, columns])
    np.testing.assert_array_equal(taeda.nonzero(t > 1).numpy(), np.argwhere(a > 1))
    np.testing.assert_array_equal(t.flatten()[taeda.from_numpy(index) % 1000].numpy(), a.flatten()[index % 1000])


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "complex64"])
@pytest.mark.parametrize(
    ("shape", "dim", "index_shape", "sizes"),
    [
        ((50, 70), 0, (30, 1), (30, 60)),  # slices of the first dimension
        ((300, 64), 0, (5000, 1), (5000, 64)),
        ((4, 20, 6), 1, (4, 7, 1), (4, 7, 6)),  # other slices for each of the first dimension
        ((4, 20, 6, 5), 1, (4, 7, 1, 1), (4, 7, 6, 3)),
        ((4, 20, 6), 1, (1, 7, 1), (3, 7, 5)),
        ((4, 20, 6), 2, (4, 20, 1), (4, 20, 3)),  # one element for a whole row
        ((16, 40, 32), 1, (16, 300, 1), (16, 300, 32)),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_expanded_indices(dtype, shape, dim, index_shape, sizes, turned):
    """What an expanded index gathers and scatters is what a written-out one does; that it is out of range is seen."""
    rng = np.random.default_rng(0)
    x = taeda.from_numpy(rng.integers(0, 9, shape).astype(dtype))
    x = x.mT.contiguous().mT if turned else x
    values = taeda.from_numpy(rng.integers(0, 9, sizes).astype(dtype))
    index = taeda.from_numpy(rng.integers(0, shape[dim], index_shape))
    short, full = index.expand(sizes), index.expand(sizes).contiguous()
    np.testing.assert_array_equal(x.gather(dim, short).numpy(), x.gather(dim, full).numpy())
    for write in (taeda.scatter, taeda.scatter_add):
        np.testing.assert_array_equal(write(x, dim, short, values).numpy(), write(x, dim, full, values).numpy())
    for wrong in (-1, shape[dim]):
        bad = taeda.full(index_shape, wrong).expand(sizes)
        with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
            x.gather(dim, bad)
        with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
            x.scatter_add(dim, bad, values)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.bfloat16])
def test_maxima_of_bags(dtype):
    """Of equals the first is taken, NaN wins, empty bags are 0 and get nothing; and the gradient's own gradient."""
    nan = float("nan")
    table = [[1.0, 5.0, nan], [4.0, 5.0, 2.0], [-3.0, -7.0, 0.0], [-8.0, -2.0, -0.5]]
    weight = taeda.tensor([row * 7 for row in table], dtype=dtype, requires_grad=True)  # more than a register
    items, offsets = taeda.tensor([1, 0, 2, 3, 2, 3]), taeda.tensor([0, 2, 2, 3])
    out = taeda.nn.functional.embedding_bag(items, weight, offsets, mode="max")
    want = [[4, 5, nan], [0, 0, 0], [-3, -7, 0], [-3, -2, 0]]
    np.testing.assert_array_equal(out.detach().float().numpy(), np.tile(want, 7).astype("float32"))
    g = taeda.arange(1.0, 13.0).reshape(4, 3).repeat(1, 7).to(dtype).requires_grad_(True)
    (got,) = taeda.autograd.grad(out, weight, g, create_graph=True)
    assert got[:, 3:6].tolist() == [[0, 0, 3], [1, 2, 0], [7 + 10, 8, 9 + 12], [0, 11, 0]]
    (again,) = taeda.autograd.grad(got, g, weight.detach().nan_to_num(9.0))
    assert again[:, 18:].tolist() == [[4, 5, 9], [0, 0, 0], [-3, -7, 0], [-3, -2, 0]]


@pytest.mark.parametrize("indices", [(True,), (False,), ([2], False), (True, [1]), ([1], True), (None, True)])
def test_masks_without_dimensions_are_counted_by_index_put(indices):
    tensors = tuple(None if i is None else taeda.tensor(i) for i in indices)
    key = tuple(slice(None) if t is None else t for t in tensors)
    x = taeda.arange(6.0).view(3, 2)
    values = -1 - taeda.arange(float(x[key].numel())).view(x[key].shape)
    want = x.clone()
    want[key] = values
    assert x.clone().index_put_(tensors, values).tolist() == want.tolist()
    assert x.index_put(tensors, taeda.tensor(9.0), accumulate=True).sum() == x.sum() + 9 * values.numel()
    values.requires_grad_()
    (x.index_put(tensors, values) * taeda.arange(6.0).view(3, 2)).sum().backward()
    assert values.grad.tolist() == x[key].tolist()


def test_coordinates_of_nonzero_elements_as_a_tuple_have_no_out():
    out = taeda.empty(0, 1, dtype=taeda.int64)
    with pytest.raises(RuntimeError, match="out"):
        taeda.nonzero(taeda.ones(3), as_tuple=True, out=out)
    assert taeda.nonzero(taeda.ones(3), as_tuple=False, out=out) is out and out.shape == (3, 1)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 0}, {"sparse": True, "mode": "sum"}])
@pytest.mark.parametrize("index", [-1, 4])
def test_embedding_bag_refuses_rows_that_are_not_there_alike(index, options):
    with pytest.raises(RuntimeError, match="out of range"):
        taeda.nn.functional.embedding_bag(taeda.tensor([[index, 0]]), taeda.ones(4, 2), **options)


@pytest.mark.parametrize("rows", [0, 3])
def test_sparse_gradients_of_tables_without_columns(rows):
    table = taeda.nn.Embedding(rows, 0, sparse=True)
    table(taeda.tensor([[0, 2], [2, 1]][:rows], dtype=taeda.int64)).sum().backward()
    assert table.weight.grad.is_sparse and table.weight.grad.shape == (rows, 0)


def test_indices_are_checked_where_rows_have_no_elements():
    for weight in (taeda.zeros(2, 0), taeda.zeros(0, 0)):
        for index in (-3, 2, 10**9):
            for take in (taeda.nn.functional.embedding, lambda i, w: w.index_select(0, i)):
                with pytest.raises(IndexError):
                    take(taeda.tensor([index]), weight)
    with pytest.raises(IndexError):
        taeda.zeros(0, 0)[taeda.tensor([0])]
    assert taeda.nn.functional.embedding(taeda.tensor([1, 0]), taeda.zeros(2, 0)).shape == (2, 0)
    assert taeda.zeros(0, 0)[taeda.tensor([], dtype=taeda.int64)].shape == (0, 0)


def test_one_value_into_an_expanded_tensor_warns():
    first = taeda.tensor([0])
    for write in (
        lambda x: x.index_fill_(0, first, 1.0),
        lambda x: x.masked_fill_(taeda.tensor([True] * 3), 1.0),
        lambda x: x.index_put_((first,), taeda.ones(1)),
        lambda x: x.__setitem__(first, 1.0),
    ):
        x = taeda.zeros(1).expand(3)
        with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
            write(x)
        assert x.tolist() == [1.0] * 3


def test_nonzero_static():
    x = taeda.tensor([[1.0, 0, 2], [0, 3, 0]])
    assert taeda.nonzero_static(x, size=2).tolist() == [[0, 0], [0, 2]]
    assert x.nonzero_static(size=4, fill_value=7).tolist() == [[0, 0], [0, 2], [1, 1], [7, 7]]
    assert taeda.nonzero_static(taeda.tensor(1.0), size=2).shape == (2, 0)
    assert taeda.nonzero_static(taeda.zeros(0, 3), size=1).tolist() == [[-1, -1]]
    batched = taeda.vmap(lambda row: taeda.nonzero_static(row, size=2))(x)
    assert batched.tolist() == [[[0], [2]], [[1], [-1]]]

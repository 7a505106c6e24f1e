import numpy as np
import pytest

from taeda.kernels import indexing as kernels


def row_args(nb, n0=1, n1=1, pb=1, far=(0, 0, 0, 0), near=(0, 0, 0, 0, 0), size=0, stride=0, owned=(-1 << 40, 1 << 40)):
    return [nb, n0, n1, pb, *far, *near, size, stride, *owned]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("inner", ["c", "v"])
@pytest.mark.parametrize("dtype", ["u1", "f4", "c16"])
def test_get_rows(run, rng, inner, dtype):
    x = (rng.random((50, 37)) * 100).astype(dtype)
    index = rng.integers(-50, 50, 200)
    out, bad = np.zeros((200, 37), dtype), np.zeros(1, np.int64)
    item = x.itemsize
    args = row_args(200, 37, far=(item, 0, 0, 0), near=(37 * item, item, 0, 0, 0), size=50, stride=37 * item)
    run(kernels.rows(item, "get", inner, "wrap"), [out, bad, x, index], args, 200, pieces=3)
    np.testing.assert_array_equal(out, x[index])
    assert not bad[0]


@pytest.mark.parametrize("item", [1, 4, 8, 16])
@pytest.mark.parametrize("n", [1, 7, 100])
def test_get_items(run, rng, item, n):
    x = (rng.random(50) * 100).astype({1: "u1", 4: "f4", 8: "f8", 16: "c16"}[item])
    index = rng.integers(-50, 50, n)
    out, bad = np.zeros(n, x.dtype), np.zeros(1, np.int64)
    args = row_args(n, near=(item, 0, 0, 0, 0), size=50, stride=item)
    run(kernels.rows(item, "get", "1", "wrap"), [out, bad, x, index], args, n)
    np.testing.assert_array_equal(out, x[index])
    assert not bad[0]
    for wrong in (50, -51):
        index[n // 2] = wrong
        bad[0] = 0
        run(kernels.rows(item, "get", "1", "wrap"), [out, bad, x, index], args, n)
        assert bad[0] == 1
        bad[0] = 0
        run(kernels.check_bounds(True), [bad, index], [50], n)
        assert bad[0] == 1


def test_later_writes_win_and_sums_keep_their_order(run, rng):
    x = np.zeros((20, 30), "f4")
    index = rng.integers(0, 20, 500)
    values = rng.standard_normal((500, 30)).astype("f4")
    bad = np.zeros(1, np.int64)
    ranges = [(0, 120), (120, 1200), (1200, 2400)]  # bytes of the rows that a thread owns
    for owned in ranges:
        args = row_args(500, 30, far=(4, 0, 0, 0), near=(120, 4, 0, 0, 0), size=20, stride=120, owned=owned)
        run(kernels.rows(4, "put", "c", "wrap"), [x, bad, values, index], args, 500)
    expected = np.zeros_like(x)
    expected[index] = values
    np.testing.assert_array_equal(x, expected)
    for owned in ranges:
        args = row_args(500, 30, far=(4, 0, 0, 0), near=(120, 4, 0, 0, 0), size=20, stride=120, owned=owned)
        run(kernels.accumulate_rows("float32", "add", "c", "wrap"), [x, bad, values, index], args, 1)
    np.add.at(expected, index, values)
    np.testing.assert_array_equal(x, expected)


def test_offsets(run, rng):
    a, b = rng.integers(-5, 5, 100), rng.integers(-7, 7, 100)
    out, bad = np.zeros(100, np.int64), np.zeros(1, np.int64)
    run(kernels.offsets(2), [out, bad, a, b], [5, 28, 7, 4], 100, pieces=3)
    np.testing.assert_array_equal(out, (a % 5) * 28 + (b % 7) * 4)
    assert not bad[0]


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_along(run, rng, dim):
    x = rng.standard_normal((6, 7, 8)).astype("f4")
    index = rng.integers(0, x.shape[dim], (6, 7, 8))
    out, bad = np.zeros_like(x), np.zeros(1, np.int64)
    outer = [d for d in range(2) if d != dim]
    last = dim == 2
    near, far, at = out.strides, x.strides, index.strides
    args = [8 if last else x.shape[dim], 1 if last else 8, 3, x.shape[dim]]
    args += [far[dim], 0 if last else 4, near[dim], 0 if last else 4, at[dim], 0 if last else 8]
    for d in outer:
        args += [x.shape[d], far[d], near[d], at[d]]
    total = np.prod([x.shape[d] for d in outer]) * (1 if last else 3)
    layout = "last" if last else "any"
    run(kernels.along(4, "get", layout, len(outer)), [out, bad, x, index], args, int(total), pieces=2)
    np.testing.assert_array_equal(out, np.take_along_axis(x, index, dim))
    assert not bad[0]
    target = np.zeros_like(x)
    run(kernels.along("float32", "add", layout, len(outer)), [target, bad, x, index], args, int(total), pieces=2)
    expected = np.zeros_like(x)
    where = list(np.ix_(*[range(n) for n in x.shape]))
    where[dim] = index
    np.add.at(expected, tuple(where), x)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("target", ["arm64", "lane"])
def test_whole_masks_of_narrow_targets(run_python, target):
    """The true bytes of a block are counted in bytes, which have to be added up before they are full."""
    code = (
        "import taeda; n = 4096 + 300; mask = taeda.ones(n, dtype=taeda.bool)\n"
        "assert mask.nonzero()[:, 0].tolist() == taeda.arange(n)[mask].tolist() == list(range(n))"
    )
    run_python(code, TAEDA_TARGET=target)


@pytest.mark.parametrize("density", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("shape", [(10,), (9000,), (30, 50), (3, 40, 70)])
def test_masks(run, rng, density, shape):
    mask = (rng.random(shape) < density).astype("u1")
    x = rng.standard_normal(shape).astype("f4")
    n = mask.size
    blocks = -(-n // kernels.BLOCK)
    counts, starts = np.zeros(blocks, np.int64), np.zeros(blocks + 1, np.int64)
    run(kernels.count_mask(), [counts, mask], [n], blocks)
    run(kernels.running_total(), [starts, counts], [blocks], 1)
    assert starts[-1] == mask.sum()
    positions = np.full((len(shape) + 1, starts[-1]), -7)
    run(kernels.mask_positions(len(shape)), [positions, mask, starts], [n, *shape[1:], starts[-1]], blocks)
    np.testing.assert_array_equal(positions[:-1].T, np.argwhere(mask))
    assert (positions[-1] == -7).all()
    chosen = np.full(starts[-1] + 1, 77, "f4")
    run(kernels.mask_select(4), [chosen, x, mask, starts], [n], blocks)
    np.testing.assert_array_equal(chosen[:-1], x[mask.view(bool)])
    assert chosen[-1] == 77
    target = np.zeros_like(x)
    run(kernels.mask_scatter(4), [target, chosen, mask, starts], [n], blocks)
    np.testing.assert_array_equal(target, x * mask)


def test_counts(run, rng):
    index, weights = rng.integers(0, 9, 1000), rng.standard_normal(1000)
    counts, sums = np.zeros(9, np.int64), np.zeros(9)
    run(kernels.bincount(None), [counts, index, 0], [1000], 1)
    run(kernels.bincount("float64"), [sums, index, weights], [1000], 1)
    np.testing.assert_array_equal(counts, np.bincount(index, minlength=9))
    np.testing.assert_array_equal(sums, np.bincount(index, weights, 9))
    bins = np.zeros(10, np.int64)
    x = np.array([-3.0, -1.0, -0.5, 0.0, 0.99, 1.0, 1.01, np.nan], "f4")
    run(kernels.histogram("float32"), [bins, x], [8, 10, -1.0, 1.0], 1)
    np.testing.assert_array_equal(bins, [1, 0, 1, 0, 0, 1, 0, 0, 0, 2])


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
@pytest.mark.parametrize("right", [False, True])
def test_search_sorted(run, rng, dtype, right):
    rows = np.sort(rng.integers(0, 50, (4, 37)).astype(dtype), -1)
    values = rng.integers(0, 52, (4, 21)).astype(dtype)
    out = np.zeros((4, 21), np.int64)
    args = [21, 37, rows.strides[0]]
    run(kernels.search_sorted(dtype, right, "int64", True), [out, values, rows], args, 84, pieces=3)
    side = "right" if right else "left"
    expected = [np.searchsorted(r, v, side) for r, v in zip(rows, values, strict=True)]
    np.testing.assert_array_equal(out, expected)
    run(kernels.search_sorted(dtype, right, "int64", False), [out, values, rows], args, 84, pieces=3)
    np.testing.assert_array_equal(out, np.searchsorted(rows[0], values, side))

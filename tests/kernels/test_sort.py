import numpy as np
import pytest

from taeda.kernels import sort as kernels

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]


def numbers(dtype, shape):
    """Values with both zeros, both NaN signs, infinities and many that are equal."""
    rng = np.random.default_rng(0)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith("float"):
        x = np.round(rng.standard_normal(shape), 2).astype(dtype)
        for special in (0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf):
            x.reshape(-1)[rng.integers(0, x.size, -(-x.size // 20))] = special
        return x
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.3, x[..., :1], x)


def stable_order(x, descending):
    if descending:
        return x.shape[-1] - 1 - np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1]
    return np.argsort(x, -1, kind="stable")


def same_bits(a, b):
    unsigned = f"u{a.itemsize}"
    np.testing.assert_array_equal(a.view(unsigned), b.view(unsigned))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (2, 33), (4, 64), (3, 65), (2, 1000), (1, 5000)])
@pytest.mark.parametrize("descending", [False, True])
def test_rows(run, dtype, shape, descending):
    x = numbers(dtype, shape)
    rows, n = shape
    order = stable_order(x, descending)
    expected = np.take_along_axis(x, order, -1)
    values, positions = np.zeros_like(x), np.zeros(shape, np.int64)
    spare = np.zeros((rows, n * kernels.words(dtype)), np.int64)
    address = kernels.sort_rows(dtype, descending, n <= kernels.RANK_LIMIT)
    run(address, [values, positions, x, spare], [n, 1, n], rows, pieces=rows)
    np.testing.assert_array_equal(positions, order)
    same_bits(values, expected)
    for k in {1, min(3, n), n // 2 + 1, n}:
        room = kernels.top_room(k)
        buffer = np.zeros((rows, (room + 64) * 2 * kernels.words(dtype)), np.int64)
        values, positions = np.zeros((rows, k), x.dtype), np.zeros((rows, k), np.int64)
        run(kernels.top_rows(dtype, descending), [values, positions, x, buffer], [n, k, room, 1], rows, pieces=rows)
        np.testing.assert_array_equal(positions, order[:, :k])
        same_bits(values, expected[:, :k].copy())
        if n <= kernels.RANK_LIMIT:
            values, positions = np.zeros((rows, k), x.dtype), np.zeros((rows, k), np.int64)
            run(address, [values, positions, x], [n, 1, k], rows, pieces=rows)
            np.testing.assert_array_equal(positions, order[:, :k])
            same_bits(values, expected[:, :k].copy())
        if not descending:
            value, position = np.zeros(rows, x.dtype), np.zeros(rows, np.int64)
            short = n <= kernels.RANK_LIMIT
            run(kernels.kth_rows(dtype, short), [value, position, x, np.full(rows, k - 1), spare], [n, rows], rows)
            np.testing.assert_array_equal(position, order[:, k - 1])
            same_bits(value, expected[:, k - 1].copy())


@pytest.mark.parametrize("order", ["ascending", "descending", "equal"])
def test_top_of_long_ordered_rows(run, order):
    n, k = 50000, 20
    x = np.zeros((1, n), "f4") if order == "equal" else np.arange(n, dtype="f4").reshape(1, n)
    x = x[:, ::-1].copy() if order == "descending" else x
    room = kernels.top_room(k)
    buffer = np.zeros((room + 64) * 2, np.int64)
    values, positions = np.zeros(k, "f4"), np.zeros(k, np.int64)
    run(kernels.top_rows("float32", True), [values, positions, x, buffer], [n, k, room, 1], 1)
    np.testing.assert_array_equal(positions, stable_order(x, True)[0, :k])


@pytest.mark.parametrize("dtype", ["bool", "int32", "float64"])
def test_runs(run, dtype):
    x = np.sort(numbers(dtype, (1, 9000)), -1)[0]
    if dtype == "float64":
        x = x[~np.isnan(x)]
    n = x.size
    flags = np.zeros(n, np.uint8)
    run(kernels.run_starts(dtype), [flags, x], [], n, pieces=3)
    np.testing.assert_array_equal(flags[1:], x[1:] != x[:-1])
    assert flags[0] == 1
    starts = np.nonzero(flags)[0]
    lengths = np.zeros(starts.size, np.int64)
    run(kernels.run_lengths(), [lengths, starts], [starts.size, n], starts.size)
    np.testing.assert_array_equal(lengths, np.unique(x, return_counts=True)[1])
    before = np.concatenate([[0], np.cumsum([flags[i : i + 4096].sum() for i in range(0, n, 4096)])]).astype(np.int64)
    numbered, shuffle = np.zeros(n, np.int64), np.random.default_rng(1).permutation(n)
    run(kernels.run_numbers(False), [numbered, flags, before, shuffle], [n], -(-n // 4096))
    np.testing.assert_array_equal(numbered[shuffle], np.unique(x, return_inverse=True)[1])


def test_mode(run):
    x = np.array([[1, 1, 2, 2, 3], [5, 6, 6, 6, 7]], "i4")
    positions = np.arange(10, 20).reshape(2, 5)
    value, position = np.zeros(2, "i4"), np.zeros(2, np.int64)
    run(kernels.mode_rows("int32"), [value, position, x, positions], [5], 2)
    assert value.tolist() == [1, 6]
    assert position.tolist() == [11, 18]

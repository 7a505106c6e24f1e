"""The matrix product's kernels against float64, over layouts, packings and cuts of the range."""

import numpy as np
import pytest

from taeda.kernels import dot, gemm, packing, target, tile

WIDTH = target.host().vector_bytes
DTYPES = ("float32", "float64", "int32", "int64")
MODES = (
    gemm.PACK_B,
    gemm.PACK_A | gemm.PACK_B,
    gemm.PACKED,
    gemm.PACK_A | gemm.PACKED,
    gemm.PACKED | gemm.TRANSPOSED,
    gemm.PACK_B | gemm.TRANSPOSED,
)
SHAPES = [(1, 1, 1), (2, 3, 4), (6, 64, 7), (7, 70, 300), (65, 130, 33), (13, 200, 17), (100, 48, 260), (31, 33, 31)]


def numbers(rng, shape, dtype):
    if dtype.startswith("int"):
        return rng.integers(-50, 50, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def laid_out(x, transposed):
    """``x`` with contiguous rows, or with contiguous columns."""
    return np.ascontiguousarray(x.T).T if transposed else np.ascontiguousarray(x)


def ceil_div(a, b):
    return -(-a // b)


def multiply(run, a, b, d=None, flags=gemm.PACK_B, down=None, across=1, kc=None, pieces=1):
    """``a @ b + d`` by the kernel, in ``down`` by ``across`` tasks."""
    dtype = str(a.dtype)
    item, (m, k), n = a.itemsize, a.shape, b.shape[1]
    width, shape = tile.panel(dtype, WIDTH), tile.tile_shape(WIDTH)
    transposed = bool(flags & gemm.TRANSPOSED)
    c = np.full((n + 1, m) if transposed else (m + 1, n), 7, dtype)  # a row more, to see what is written beyond
    c_m, c_n = (item, c.strides[0]) if transposed else c.strides
    b_k, b_n = b.strides
    right = b
    kc = kc or (min(k, gemm.K_BLOCK) if flags else k)
    if flags & gemm.PACKED:
        panels = ceil_div(n, width)
        right = np.zeros(panels * k * width, dtype)
        blocks = panels * ceil_div(k, kc)
        run(packing.pack_b(dtype), [right, b], [n, k, b_n, b_k, kc], blocks, min(pieces, blocks))
        b_k, b_n = panels * width * item, 0
    init, d_m, addend = 0, 0, c
    if d is not None:
        init = 2 if d.shape[-1] == 1 and n > 1 else 1
        d_m, addend = d.strides[0] if d.ndim == 2 and d.shape[0] > 1 else 0, d
    strips = ceil_div(m, shape.rows)
    most = (
        gemm.TRANSPOSED_ITEMS // (ceil_div(n, width) * width) // 16 * 16 // shape.rows if transposed else gemm.A_TILES
    )
    down = min(max(down or 1, ceil_div(strips, most)), strips)
    args = [m, n, k, *a.strides, b_k, b_n, c_m, c_n, d_m, init, down, across, kc, flags, 1, *[0] * 8]
    tasks = down * across
    run(gemm.matmul(dtype), [c, a, right, addend, gemm.panel_product(dtype)], args, tasks, min(pieces, tasks))
    assert (c[-1] == 7).all(), "wrote past the last row"
    return c[:-1].T if transposed else c[:-1]


def test_pack_a(run):
    """Tiles of rows, one k after the other, from both layouts."""
    rng = np.random.default_rng(3)
    shape = tile.tile_shape(WIDTH)
    for m, k in ((6, 16), (100, 33), (7, 1)):
        for transposed in (False, True):
            a = laid_out(numbers(rng, (m, k), "float32"), transposed)
            tiles = ceil_div(m, shape.rows)
            packed = np.zeros((tiles, k, shape.pitch), "float32")
            groups = ceil_div(tiles, packing.PACK_GROUP)
            run(packing.pack_a("float32"), [packed, a], [m, k, *a.strides], groups, min(2, groups))
            rows = packed[:, :, : shape.rows].transpose(0, 2, 1).reshape(-1, k)
            assert (rows[:m] == a).all()


def close(got, a, b, d=None):
    """Within a bound that grows with the root of the length of the sums; integers exactly."""
    wide = np.int64 if a.dtype.kind == "i" else np.float64
    want = a.astype(wide) @ b.astype(wide) + (0 if d is None else d.astype(wide))
    if a.dtype.kind == "i":
        assert (got == want.astype(a.dtype)).all()
        return
    bound = 8 * np.finfo(a.dtype).eps * np.sqrt(a.shape[1]) * 10
    assert np.abs(got - want).max() <= bound


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("flags", [0, gemm.PACK_A, *MODES])
def test_matmul(run, dtype, flags):
    """Every layout of A and B, with and without something to add."""
    rng = np.random.default_rng(0)
    masks = WIDTH > 16
    for m, n, k in SHAPES:
        for turn_a, turn_b in ((0, 0), (0, 1), (1, 0), (1, 1)):
            whole = masks or n % tile.panel(dtype, WIDTH) == 0
            if not flags & (gemm.PACK_B | gemm.PACKED) and (turn_b or not whole):
                continue
            a, b = laid_out(numbers(rng, (m, k), dtype), turn_a), laid_out(numbers(rng, (k, n), dtype), turn_b)
            addends = [None, numbers(rng, (n,), dtype), numbers(rng, (m, 1), dtype), numbers(rng, (m, n), dtype)]
            if flags & gemm.TRANSPOSED:
                del addends[3], addends[1]  # rows of D would have to be transposed
            for d in addends if (m, n, k) in SHAPES[1:5] else addends[:1]:
                close(multiply(run, a, b, d, flags), a, b, d)


@pytest.mark.parametrize("flags", MODES)
def test_result_does_not_depend_on_the_cut(run, flags):
    """The same bits however the range of tasks is cut."""
    rng = np.random.default_rng(1)
    a, b = numbers(rng, (100, 300), "float32"), numbers(rng, (300, 330), "float32")
    whole = multiply(run, a, b, flags=flags, kc=112)
    for pieces in (2, 3, 5):
        cut = multiply(run, a, b, flags=flags, down=5, across=3, kc=112, pieces=pieces)
        assert (whole == cut).all()


def test_batches(run):
    """Two batch dimensions with their own strides, one of them broadcast."""
    rng = np.random.default_rng(2)
    a, b = numbers(rng, (3, 1, 10, 20), "float32"), numbers(rng, (3, 4, 20, 30), "float32")
    c = np.empty((3, 4, 10, 30), "float32")
    strides = [a.strides[0], 0, b.strides[0], b.strides[1], c.strides[0], c.strides[1], 0, 0]
    args = [10, 30, 20, *a.strides[2:], *b.strides[2:], *c.strides[2:], 0, 0, 1, 1, 20, gemm.PACK_B, 4, *strides]
    run(gemm.matmul("float32"), [c, a, b, c, gemm.panel_product("float32")], args, 12, 5)
    assert np.allclose(c, a @ b, atol=1e-5)


def dotted(run, x, w, d=None, transposed=False, qc=None):
    (p, k), q = x.shape, len(w)
    out = np.full((q + 1, p) if transposed else (p + 1, q), 7, x.dtype)
    seen = out[:-1].T if transposed else out[:-1]
    d_i, d_j = d.strides if d is not None else (0, 0)
    args = [p, q, k, x.strides[0], w.strides[0], *seen.strides, d_i, d_j, int(d is not None), qc or q, 1, *[0] * 8]
    run(dot.matmul_dot(str(x.dtype)), [out, x, w, out if d is None else d], args, ceil_div(q, qc or q))
    assert (out[-1] == 7).all()
    return seen


@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul_dot(run, dtype):
    """Few rows against many, the result row by row or column by column; the last two read runs of rows side by side."""
    rng = np.random.default_rng(3)
    sizes = [(1, 1, 1, 8), (1, 8, 16, 8), (2, 9, 33, 8), (4, 4, 4, 8), (5, 17, 100, 8), (3, 40, 15, 8)]
    for p, q, k, qc in [*sizes, (1, 1037, 259, 500), (7, 1037, 259, 64)]:
        x, w = numbers(rng, (p, k), dtype), numbers(rng, (q, k), dtype)
        for d in (None, numbers(rng, (p, q), dtype)):
            for transposed in (False, True):
                close(dotted(run, x, w, d, transposed, qc=qc), x, w.T, d)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dot(run, dtype):
    """One sum per chunk."""
    rng = np.random.default_rng(4)
    for n in (1, 7, 64, 1000, dot.DOT_CHUNK, 2 * dot.DOT_CHUNK + 33):
        x, y = numbers(rng, n, dtype), numbers(rng, n, dtype)
        out = np.empty(ceil_div(n, dot.DOT_CHUNK), dtype)
        run(dot.dot(dtype), [out, x, y], [n], len(out), len(out))
        want = float(x.astype("f8") @ y.astype("f8"))
        assert abs(float(out.astype("f8").sum()) - want) <= 1e-5 * np.sqrt(n)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_transpose_is_a_transpose(lanes):
    """The shuffles of ``transpose``, followed on labels instead of numbers."""

    class Vector:
        def __init__(self, items):
            self.items, self.lanes = items, len(items)

        def shuffle(self, mask, other):
            both = self.items + other.items
            return Vector([both[i] for i in mask])

    rows = [Vector([(i, j) for j in range(lanes)]) for i in range(lanes)]
    for j, column in enumerate(tile.transpose(rows)):
        assert column.items == [(i, j) for i in range(lanes)]


@pytest.mark.parametrize("target", ["", "avx2", "arm64", "lane"])
def test_long_sums_of_float32_go_on_growing(run_python, target):
    """One chain of additions stays at 2 ** 24: rows along k, and those of a matrix that is read once."""
    code = (
        "import taeda; n = 2**24 + 4096; x = taeda.ones(1, n)\n"
        "assert (x[0] @ x[0]).item() == (x @ x.T).item() == (x[0] @ x[0].expand(2, n).T).tolist()[1] == n\n"
        "assert taeda.addmm(taeda.full((1, 1), 2.0), x, x.T).item() == n + 2\n"
        "y = taeda.full((1, 5000), 2.0**24); y[0, 1:] = 1; assert (y @ taeda.ones(5000, 300))[0, 7] > 2**24 + 4700"
    )
    run_python(code, TAEDA_TARGET=target)

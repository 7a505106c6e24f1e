import numpy as np
import pytest

from taeda.kernels import copy as kernels

DTYPES = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}


def numbers(shape, item):
    return (np.arange(np.prod(shape)) % 251).astype(DTYPES[item]).reshape(shape)


@pytest.mark.parametrize("item", DTYPES)
@pytest.mark.parametrize("rows, columns", [(1, 1), (5, 7), (64, 64), (67, 131), (3, 1000), (1000, 3)])
def test_transpose(run, item, rows, columns):
    source = numbers((2, 3, columns, rows), item)
    target = np.zeros((2, 3, rows, columns), DTYPES[item])
    d, s = target.strides, source.strides
    total = 6 * -(-rows // kernels.transpose_rows(item))
    args = [rows, columns, d[2], s[2], 3, d[0], d[1], s[0], s[1], 0, 0]
    run(kernels.transpose(item), [target, source], args, total, pieces=min(total, 4))
    np.testing.assert_array_equal(target, source.swapaxes(-1, -2))


@pytest.mark.parametrize("item", DTYPES)
@pytest.mark.parametrize("few", [2, 3, 4, 5])
@pytest.mark.parametrize("n", [1, 16, 30, 64, 135])
def test_few_rows_or_columns(run, item, few, n):
    """What lies side by side is woven together or taken apart by registers."""
    for rows, columns, woven in ((n, few, few), (few, n, -few)):
        source = numbers((2, columns, rows), item)
        target = np.zeros((2, rows, columns), DTYPES[item])
        d, s = target.strides, source.strides
        woven = woven if few in kernels.FEW and item < 16 else 0
        args = [rows, columns, d[1], s[1], 2, 0, d[0], 0, s[0], 2 * (s[1] if woven > 0 else d[1]), woven]
        total = 2 * -(-rows // kernels.transpose_rows(item))
        run(kernels.transpose(item), [target, source], args, total, pieces=min(total, 3))
        np.testing.assert_array_equal(target, source.swapaxes(1, 2))


@pytest.mark.parametrize("item", [1, 2, 4, 8])
@pytest.mark.parametrize("n", [1, 8, 31, 64])
def test_pixels_of_two_by_two(run, item, n):
    """Four columns or rows, of which the last two are anywhere behind the first two on the other hand."""
    apart, together = numbers((2, 3, 2, n), item), np.zeros((n, 4), DTYPES[item])
    a = apart.strides
    args = [n, 4, together.strides[0], a[2], 1, 0, 0, 0, 0, a[0], 4]
    total = -(-n // kernels.transpose_rows(item))
    run(kernels.transpose(item), [together, apart], args, total, pieces=min(total, 2))
    np.testing.assert_array_equal(together, apart[:, 0].reshape(4, n).T)
    back = np.zeros_like(apart)
    args = [4, n, a[2], together.strides[0], 1, 0, 0, 0, 0, a[0], -4]
    run(kernels.transpose(item), [back, together], args, 1)
    np.testing.assert_array_equal(back[:, 0], apart[:, 0])
    assert not back[:, 1:].any()


@pytest.mark.parametrize("item", DTYPES)
@pytest.mark.parametrize(
    "blocks_i, more_i, blocks_j, more_j", [(0, 96, 0, 192), (1, 0, 1, 0), (1, 37, 2, 70), (0, 3, 0, 5), (0, 70, 1, 3)]
)
@pytest.mark.parametrize("aligned", [True, False])
def test_large_transpose(run, item, blocks_i, more_i, blocks_j, more_j, aligned):
    side = kernels.transpose_block(item)
    rows, columns = blocks_i * side[0] + more_i, blocks_j * side[1] + more_j
    width = -(-columns * item // 64) * 64 if aligned else columns * item
    block = np.zeros(2 * rows * width + 64, np.uint8)
    start = -block.ctypes.data % 64 + (0 if aligned else item)
    target = block[start : start + 2 * rows * width].view(DTYPES[item]).reshape(2, rows, width // item)[:, :, :columns]
    source = numbers((2, columns, rows), item)
    d, s = target.strides, source.strides
    args = [rows, columns, d[1], s[1], 2, 0, d[0], 0, s[0]]
    total = 2 * -(-rows // side[0]) * -(-columns // side[1])
    run(kernels.transpose_large(item), [target, source], args, total, pieces=min(total, 3))
    np.testing.assert_array_equal(target, source.swapaxes(1, 2))
    assert not block[:start].any() and not block[start + 2 * rows * width :].any()


@pytest.mark.parametrize("item", DTYPES)
@pytest.mark.parametrize("n", [1, 3, 16, 333])
def test_rows(run, item, n):
    source = numbers((5, n + 2), item)
    target = np.zeros((5, n + 1), DTYPES[item])
    chunk = 64
    total = 5 * -(-n * item // chunk)
    args = [n * item, target.strides[0], source.strides[0], chunk]
    run(kernels.copy_rows(item), [target, source], args, total, pieces=2)
    np.testing.assert_array_equal(target[:, :n], source[:, :n])
    assert not target[:, n].any()
    run(kernels.reverse_rows(item), [target, source], [n, target.strides[0], source.strides[0]], 5)
    np.testing.assert_array_equal(target[:, :n], source[:, :n][:, ::-1])


@pytest.mark.parametrize("item", DTYPES)
@pytest.mark.parametrize("k", [-40, -3, 0, 2, 40])
def test_triangle(run, item, k):
    source = numbers((2, 33, 29), item) + 1
    target = np.zeros_like(source)
    run(kernels.triangle(item, False), [target, source], [33, 29, k], 66, pieces=3)
    np.testing.assert_array_equal(target, np.tril(source, k))
    run(kernels.triangle(item, True), [target, source], [33, 29, k], 66, pieces=3)
    np.testing.assert_array_equal(target, np.triu(source, k))

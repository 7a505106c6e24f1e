"""Functions of the core that launches run, and the kernels that stand for them in libraries: they do the same to memory."""

import functools

import numpy as np
import pytest

from taeda._core import pool
from taeda.export.library import record
from taeda.kernels import copy
from taeda.kernels.build import build
from taeda.kernels.hosted import HOSTED, hosted

ADDRESSES = {name: address for address, name in record._NAMES.items()}


def test_each_function_has_a_kernel():
    assert set(ADDRESSES) == set(HOSTED)


def calls(name, rng):
    """Pointers as numbers of buffers or addresses, numbers, and how the range is cut: ``(grain, total)``."""
    if name in ("copy_piece", "zero_piece", "zero_lines"):
        return [0, 1], [], (rng.integers(1, 50), rng.integers(50, 2000))
    if name == "copy_rows":
        nbytes = int(rng.choice([4, 8, 12, 300]))
        chunk = nbytes if nbytes < 300 else 128
        return [0, 1], [nbytes, nbytes + 16, chunk, -(-nbytes // chunk)], (1, 12)
    if name == "transpose_groups":
        kernel, every = rng.integers(1, 4, 3), rng.integers(1, 3, 3)
        first = [int(rng.integers(k)) for k in kernel]
        count = [-(-(int(k) - a) // int(e)) for k, a, e in zip(kernel, first, every, strict=True)]
        m, c = 3, 5
        sizes = [m * c * int(np.prod(count)), m * c * int(np.prod(kernel))]
        return (
            [0, 1],
            [int(rng.choice([4, 8])), *sizes, m, c, *map(int, kernel), *first, *map(int, every), *count],
            (0, 2),
        )
    if name == "transpose_piece":  # 2 x 3 matrices of 4 x 6 float32, outside of two that the kernel does itself
        kernel = [4, 6, 24, 16, 1, 0, 0, 0, 0, 0, 0]
        return [0, 1], [*kernel, copy.transpose(4), 1, 2, 3, 100, 200, 2, 400, 700], (1, 6)
    if name == "in_slot":
        return [pool_kernel(), 2, 0, 1], [2, 64, 2], (100, 900)
    return None  # what is wide in numbers is checked by libraries of ops: run_piece, write_range


@functools.cache
def pool_kernel():
    return ("kernel", build(hosted("copy_piece"), lambda: hosted("copy_piece")))


@pytest.mark.parametrize("name", sorted(HOSTED))
def test_memory_afterwards(name):
    kernel = build(hosted(name), functools.partial(hosted, name))
    rng = np.random.default_rng(0)
    for _ in range(20):
        call = calls(name, rng)
        if call is None:
            pytest.skip("see tests/conformance/test_libraries.py")
        pointers, numbers, (grain, total) = call
        start = [rng.random(1024) for _ in range(2)] + [np.zeros(64)]
        after = []
        for address in (ADDRESSES[name], kernel):
            buffers = [x.copy() for x in start]
            at = [p[1] if isinstance(p, tuple) else buffers[p].ctypes.data for p in pointers]
            ptr, arg = np.array(at, np.uint64), np.array([*numbers, 0], np.int64)
            pool._run(address, ptr.ctypes.data, arg.ctypes.data, int(total), int(grain))
            after.append(buffers)
        for a, b in zip(*after, strict=True):
            assert np.array_equal(a.view(np.int64), b.view(np.int64))

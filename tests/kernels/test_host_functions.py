"""Kernels around others, and those that move memory: they do what the functions of the core do, or NumPy."""

import functools

import numpy as np
import pytest

from taeda._core import planners, pool
from taeda.export.library import record
from taeda.kernels.build import build
from taeda.kernels.host_functions import HOST_FUNCTIONS, host_function

ADDRESSES = {name: address for address, name in record._NAMES.items()}


def test_each_function_has_a_kernel():
    assert {*ADDRESSES, *planners.HOST_FUNCTIONS} == set(HOST_FUNCTIONS)


def calls(name, rng):
    """Pointers as numbers of buffers or addresses, numbers, and how the range is cut: ``(grain, total)``."""
    if name in ("copy_piece", "zero_piece"):
        return [0, 1], [], (rng.integers(1, 50), rng.integers(50, 2000))
    if name == "copy_rows":
        nbytes = int(rng.choice([4, 8, 12, 300]))
        chunk = nbytes if nbytes < 300 else 128
        return [0, 1], [nbytes, nbytes + 16, chunk, -(-nbytes // chunk)], (1, 12)
    raise AssertionError(name)


def run(address, pointers, numbers, total, grain):
    ptr, arg = np.array(pointers, np.uint64), np.array([*numbers, 0], np.int64)
    pool._run(address, ptr.ctypes.data, arg.ctypes.data, int(total), int(grain))


@pytest.mark.parametrize("name", sorted(ADDRESSES))
def test_memory_afterwards(name):
    kernel = build(host_function(name), functools.partial(host_function, name))
    rng = np.random.default_rng(0)
    for _ in range(20):
        pointers, numbers, (grain, total) = calls(name, rng)
        start = [rng.random(1024) for _ in range(2)] + [np.zeros(64)]
        after = []
        for address in (ADDRESSES[name], kernel):
            buffers = [x.copy() for x in start]
            run(address, [buffers[p].ctypes.data for p in pointers], numbers, total, grain)
            after.append(buffers)
        for a, b in zip(*after, strict=True):
            assert np.array_equal(a.view(np.int64), b.view(np.int64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kernel", "every"), [((1, 3, 3), 1), ((1, 1, 1), 1), ((2, 5, 3), 1), ((1, 3, 4), 2), ((3, 3, 3), 2)]
)
def test_weights_with_inputs_first(dtype, kernel, every):
    groups, m, c = 2, 19, 33
    w = np.random.default_rng(0).random((groups, m, c, *kernel)).astype(dtype)
    for first in ((0, 0, 0), tuple(min(1, k - 1) for k in kernel)):
        chosen = w[(..., *(slice(at, None, every) for at in first))]
        want = np.ascontiguousarray(chosen.swapaxes(1, 2))
        to = np.zeros_like(want)
        numbers = [w.itemsize, want[0].size, w[0].size, m, c, *kernel, *first, every, every, every, *chosen.shape[3:]]
        address = planners.host_kernel("transpose_groups")
        run(address, [to.ctypes.data, w.ctypes.data], numbers, groups, 1)
        assert np.array_equal(to, want)


def test_slots_are_free_after_a_launch():
    """What the kernel inside writes is there, and every slot is free again."""
    copy = build(host_function("copy_piece"), functools.partial(host_function, "copy_piece"))
    x, to, memory = np.arange(900, dtype=np.uint8), np.zeros(900, np.uint8), np.zeros(2 * 64 + 2 * 64, np.uint8)
    pointers = [copy, memory.ctypes.data, to.ctypes.data, x.ctypes.data]
    run(planners.host_kernel("in_slot"), pointers, [2, 64, 2], 900, 100)
    assert np.array_equal(to, x) and not memory.any()

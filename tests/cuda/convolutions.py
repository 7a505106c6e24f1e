"""Convolutions by tiles on the emulated device: their values, what their accesses cost, races. ``test_cuda.py`` runs
these in a process of their own, with kernels of one lane on the CPU."""

import random

import pytest

import taeda
from taeda import cuda

from .emulator import driver, no_faults

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="there is no CUDA device")
F = taeda.nn.functional
OPS = {1: (F.conv1d, F.conv_transpose1d), 2: (F.conv2d, F.conv_transpose2d), 3: (F.conv3d, F.conv_transpose3d)}
LAST = {2: taeda.channels_last, 3: taeda.channels_last_3d}


def drawn(*shape, seed=0):
    return taeda.randn(*shape, generator=taeda.Generator().manual_seed(seed))


def results(op, x, w, b, **kw):
    """The result and all gradients."""
    given = [t.detach().requires_grad_() for t in (x, w, b) if t is not None]
    y = op(*given, **kw)
    y.backward(drawn(*y.shape, seed=9).to(y.dtype).to(y.device))
    return [y.detach(), *(t.grad for t in given)]


def agree(op, x, w, b=None, near=0.0, **kw):
    """Both devices give the same bits, or numbers that are ``near`` for the largest one."""
    want = results(op, x, w, b, **kw)
    made = results(op, x.cuda(), w.cuda(), None if b is None else b.cuda(), **kw)
    for one, other in zip(made, want, strict=True):
        assert (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride())
        if near and other.numel():
            far = (one.cpu().double() - other.double()).abs().max() / other.double().abs().max()
            assert far <= near
        else:
            assert one.cpu().equal(other)


@pytest.mark.parametrize("dims, x, w, kw", [
    (1, (2, 16, 33), (20, 16, 3), dict(stride=2, padding=1)),
    pytest.param(1, (2, 5, 40), (7, 5, 5), dict(padding=400, dilation=200), marks=pytest.mark.sweep),  # mostly outside
    (2, (3, 8, 9, 7), (17, 8, 3, 3), dict(padding=1)),
    pytest.param(2, (1, 40, 6, 6), (33, 40, 3, 3), dict(padding=1), marks=pytest.mark.sweep),  # blocks of channels
    (2, (2, 12, 9, 8), (12, 4, 3, 2), dict(stride=(2, 3), padding=(0, 2), dilation=(2, 1), groups=3)),
    (2, (2, 6, 8, 8), (6, 6, 1, 1), dict(stride=2, padding=1)),
    (2, (5, 8, 1, 1), (8, 8, 3, 3), dict(padding=1)),  # images of one pixel
    (3, (2, 3, 4, 5, 6), (8, 3, 2, 3, 3), dict(padding=1, stride=(1, 2, 1))),
    (3, (1, 2, 7, 7, 7), (5, 2, 7, 7, 7), dict(padding=3)),  # more taps than a block of the sum has: no tiles
    (2, (0, 8, 6, 6), (8, 8, 3, 3), dict(padding=1)),
    (2, (2, 8, 6, 6), (0, 8, 3, 3), {}),
])  # fmt: skip
def test_the_bits_are_those_of_the_cpu(dims, x, w, kw):
    agree(OPS[dims][0], drawn(*x), drawn(*w, seed=1), drawn(w[0], seed=2), **kw)


def test_transposed_convolutions_and_other_layouts():
    x, w = drawn(2, 8, 7, 6), drawn(8, 6, 3, 3, seed=1)
    agree(F.conv_transpose2d, x, w, drawn(6), stride=2, padding=1, output_padding=1)
    agree(F.conv_transpose2d, x, w[:, :2], stride=(1, 2), groups=4)
    w = drawn(9, 8, 3, 3, seed=1)
    agree(F.conv2d, x.to(memory_format=taeda.channels_last), w, padding=1)
    agree(F.conv2d, x, w.to(memory_format=taeda.channels_last), stride=2)
    big = drawn(3, 10, 9, 20, seed=3)
    for view in (
        lambda t: t[1:, 1:9, 1:8, 3:9], lambda t: t[:2, :8, ::2, 1::3], lambda t: t[:2, :8].transpose(2, 3),
        lambda t: t[:1, :8].expand(2, 8, 9, 20), lambda t: t[:, :1].expand(3, 8, 9, 20),
    ):  # fmt: skip
        made = F.conv2d(view(big.cuda()), w.cuda(), padding=1)
        assert made.cpu().equal(F.conv2d(view(big), w, padding=1))


@pytest.mark.sweep
def test_an_image_with_a_huge_stride():
    step = (1 << 31) + 64
    there = taeda.empty(step + 16 * 64, dtype=taeda.float16, device="cuda")
    x, w = drawn(2, 16, 8, 8).half(), drawn(16, 16, 3, 3, seed=1).half()
    view = taeda.as_strided(there, x.shape, (step, 64, 8, 1))
    view[0].copy_(x[0])
    view[1].copy_(x[1])
    made, want = F.conv2d(view, w.cuda()).cpu(), F.conv2d(x.cuda(), w.cuda()).cpu()
    assert made.equal(want) and (made - F.conv2d(x, w)).abs().max() <= 2e-3 * made.abs().max()


@pytest.mark.parametrize("dtype, near", [(taeda.float16, 2e-3), (taeda.bfloat16, 1e-2)])
def test_matrix_units_are_near(dtype, near):
    for x, w, kw in (
        ((2, 20, 9, 8), (18, 20, 3, 3), dict(padding=1)),
        ((2, 12, 9, 9), (20, 6, 3, 3), dict(stride=2, padding=2, dilation=2, groups=2)),
    ):
        x, w = drawn(*x).to(dtype), drawn(*w, seed=1).to(dtype)
        agree(F.conv2d, x, w, drawn(w.shape[0]).to(dtype), near=near, **kw)
    once, again = (results(F.conv2d, x.cuda(), w.cuda(), None, **kw) for _ in range(2))
    assert all(a.cpu().equal(b.cpu()) for a, b in zip(once, again, strict=True))


@pytest.mark.parametrize("dtype", [taeda.float32, pytest.param(taeda.float16, marks=pytest.mark.sweep)])
def test_what_a_convolution_moves(dtype):
    x, w, y = drawn(2, 32, 8, 8).to(dtype), drawn(32, 32, 3, 3, seed=1).to(dtype), drawn(2, 32, 8, 8, seed=2).to(dtype)
    there = [t.cuda().requires_grad_() for t in (x, w)]
    driver().check("count")
    F.conv2d(*there, padding=1).backward(y.cuda())
    driver().check("fast")
    tiles = [c for name, c in driver().counters.items() if name.startswith("convolve_tiles")]
    assert len(tiles) == 2
    for counters in tiles:
        assert counters.of("local", "load").accesses == counters.of("local", "store").accesses == 0
        assert counters.of("shared", "load").conflicts == counters.of("shared", "store").conflicts == 0
        # Each of the nine taps reads the image; neighbouring pixels of a row of 8 share sectors, not always whole ones.
        assert counters.of("global", "load").used > (0.8 if dtype is taeda.float32 else 0.6)
    forward = tiles[0]  # of both the result and the input's gradient: each is written once, by whole sectors
    assert forward.of("global", "store").bytes == 2 * y.nbytes and forward.of("global", "store").used == 1
    # two tiles of 64 pixels read the weights once each, and the image nine times less what is outside
    assert forward.of("global", "load").bytes <= 2 * (2 * w.nbytes + 9 * x.nbytes * (1.12 if x.itemsize == 4 else 1.7))


def test_tiles_are_without_races():
    x, w = drawn(2, 8, 6, 5), drawn(9, 8, 3, 3, seed=1)
    with no_faults():
        for dtype in (taeda.float32, taeda.bfloat16):
            agree(F.conv2d, x.to(dtype), w.to(dtype), near=0.0 if dtype is taeda.float32 else 1e-2, padding=1)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100))
def test_any_convolution(seed):
    r = random.Random(seed)
    dims, transposed = r.choice([1, 2, 2, 2, 3]), r.random() < 0.25
    groups, c, m = r.choice([1, 1, 1, 2, 3]), r.choice([1, 2, 3, 5, 8, 16, 20]), r.choice([1, 2, 5, 6, 8, 16, 17, 33])
    k = [r.choice([1, 2, 3, 3, 5]) for _ in range(dims)]
    kw = {
        "stride": [r.choice([1, 1, 2, 3]) for _ in range(dims)], "padding": [r.choice([0, 1, 2]) for _ in range(dims)],
        "dilation": [r.choice([1, 1, 2]) for _ in range(dims)],
    }  # fmt: skip
    size = [max(r.randint(3, {1: 40, 2: 14, 3: 6}[dims]), kw["dilation"][i] * (k[i] - 1) + 1) for i in range(dims)]
    if transposed:
        kw["padding"] = [min(kw["padding"][i], (k[i] - 1) * kw["dilation"][i]) for i in range(dims)]
    dtype = r.choice([taeda.float32] * 3 + [taeda.float16, taeda.bfloat16, taeda.float64])
    x = drawn(r.choice([1, 2, 3]), c * groups, *size).to(dtype)
    w = drawn(*((c * groups, m) if transposed else (m * groups, c)), *k, seed=1).to(dtype)
    if dims > 1 and r.random() < 0.3:
        x = x.to(memory_format=LAST[dims])
    b = drawn(m * groups, seed=2).to(dtype) if r.random() < 0.5 else None
    agree(OPS[dims][transposed], x, w, b, near=2e-2 if dtype.itemsize == 2 else 0.0, groups=groups, **kw)

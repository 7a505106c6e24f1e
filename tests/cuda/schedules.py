"""What the accesses of kernels cost, counted on the emulated device, and that their values are those of the CPU with one
lane. ``test_cuda.py`` runs these in a process of their own."""

from functools import partial

import pytest

import taeda
from taeda import cuda

from .emulator import driver, no_faults

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="there is no CUDA device")


def counted(f, *xs):
    """The counters of the kernels that ``f`` runs on the device, whose result is the CPU's, bit for bit."""
    there = [x.cuda() for x in xs]
    driver().check("count")
    made = f(*there)
    driver().check("fast")
    want = f(*xs)
    assert made.dtype == want.dtype and made.cpu().equal(want)
    return list(driver().counters.values())


def same(f, *xs):
    """The result on the device is the CPU's, bit for bit."""
    made, want = f(*(x.cuda() for x in xs)), f(*xs)
    assert made.dtype == want.dtype and made.cpu().equal(want)


A, B = (taeda.randn(1 << 15, generator=taeda.Generator().manual_seed(i)) for i in range(2))
SMALL = (A * 100).to(taeda.int8)

# ---- elements --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f, xs, together", [
    (lambda a, b: a + b, (A, B), 4),
    (lambda a, b: a + b, (A.half(), B.half()), 8),
    (lambda a, b: a * b, (A.bfloat16(), B.bfloat16()), 8),
    (lambda a, b: a - b, (A.double(), B.double()), 2),
    (lambda a: a + a, (SMALL,), 16),
    (lambda a: a * a, (taeda.complex(A, B),), 2),
    (lambda a, b: a > b, (A, B), 4),
    (lambda a: a.double(), (A,), 2),
    (lambda a, b, c: taeda.where(a, b, c), (A > B, A, B), 4),
    (lambda a: a.to(taeda.float8_e4m3fn).float(), (A,), 4),
    (lambda a: (a * 3 + 1).sigmoid(), (A,), 4),
    (lambda a, b: a.reshape(-1, 8, 32)[:, 1:] + b.reshape(-1, 8, 32)[:, :7], (A, B), 4),  # two dimensions
])  # fmt: skip
def test_dense_elements_are_moved_sixteen_bytes_at_a_time(f, xs, together):
    made = f(*xs)
    for counters in counted(f, *xs):
        for way in ("load", "store"):
            traffic = counters.of("global", way)
            assert traffic.used >= 0.99 and traffic.bytes <= 1.01 * traffic.wanted
            assert (
                traffic.accesses % (made.numel() // together) == 0 and traffic.accesses <= 3 * made.numel() // together
            )


def test_no_byte_is_moved_twice():
    (counters,) = counted(lambda a, b: a + b, A, B)
    assert counters.of("global", "load").bytes == 2 * A.nbytes
    assert counters.of("global", "store").bytes == A.nbytes
    assert counters.instructions <= 12 * A.numel()  # 352256 / 32768 = 10.75, of one element for each thread 35


@pytest.mark.parametrize("cut", [1, 2, 3, 1000])
def test_what_is_left_of_a_dimension_is_done_one_by_one(cut):
    (counters,) = counted(lambda a, b: a - b, A[:-cut], B[:-cut])
    whole, rest = divmod(A.numel() - cut, 4)
    assert counters.of("global", "store").accesses == whole + rest and counters.of("global", "load").used > 0.99


@pytest.mark.parametrize("start, together", [(1, 1), (2, 2), (4, 4)])
def test_what_begins_anywhere_is_moved_by_what_it_is_aligned_to(start, together):
    (counters,) = counted(lambda a, b: a[start:-4] + b[4 : A.numel() - start], A, B)
    assert counters.of("global", "store").accesses == (A.numel() - start - 4) // together


@pytest.mark.parametrize("f, xs", [
    (lambda a, b: a.reshape(-1, 64) + b, (A, B[:64])),  # a row for all
    (lambda a, b: a.reshape(-1, 64) + b, (A, B[:512].reshape(-1, 1))),  # a number for each row
    (lambda a, b: a.reshape(4, 64, -1).transpose(0, 1) * b.reshape(64, 4, -1), (A, B)),
])  # fmt: skip
def test_broadcast_operands_keep_the_wide_accesses(f, xs):
    (counters,) = counted(f, *xs)
    assert counters.of("global", "store").accesses == A.numel() // 4
    assert counters.of("global", "store").used == 1 and counters.of("global", "load").used > 0.9


def test_rows_whose_width_is_odd_and_strided_operands_have_an_element_for_each_thread():
    (counters,) = counted(lambda a, b: a[:32767].reshape(-1, 217) + b[:217], A, B)
    assert counters.of("global", "store").accesses == 32767
    (counters,) = counted(lambda a, b: a[::2] + b[1::2], A, B)
    assert counters.of("global", "store").accesses == 16384 and counters.of("global", "store").used == 1


def test_results_in_the_place_of_an_operand():
    (counters,) = counted(lambda a, b: a.clone().add_(b), A, B)[-1:]
    assert counters.of("global", "store").accesses == A.numel() // 4


@pytest.mark.sweep
@pytest.mark.parametrize("step", [(1 << 31) - 8, (1 << 31) + 8])  # offsets of 31 bits, and of more
def test_offsets_in_bytes_may_be_large(step):
    """A view of much memory, of which little is touched."""
    base = taeda.empty(step + 1, dtype=taeda.int8, device="cuda")
    base[:1].fill_(3)
    base[step:].fill_(5)
    x = base[::step].reshape(2, 1).expand(2, 1 << 13)
    assert (x + 1).cpu().equal(taeda.tensor([[4], [6]], dtype=taeda.int8).expand(2, 1 << 13))


# ---- transposed copies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [
    SMALL, A.half(), A, A.double(), taeda.complex(A, B).to(taeda.complex128)
], ids=["1", "2", "4", "8", "16"])  # fmt: skip
def test_transposed_copies_use_all_of_their_sectors_and_meet_at_no_bank(x):
    (counters,) = counted(lambda x: x.reshape(128, 256).t().contiguous(), x)
    for way in ("load", "store"):
        assert counters.of("global", way).bytes == x.nbytes and counters.of("global", way).used == 1
        shared = counters.of("shared", way)
        assert shared.accesses == x.numel() and shared.conflicts == 0


@pytest.mark.parametrize("f", [
    lambda x: x[:30003].reshape(137, 219).t(),  # tiles that are not whole
    lambda x: x[:30003].reshape(-1, 3, 137, 73).transpose(-1, -2),
    lambda x: x.reshape(4, 8, 16, 64).permute(0, 3, 2, 1),
    lambda x: x.reshape(2, 2, 4, 4, 8, 64).permute(3, 1, 5, 0, 4, 2),  # more than two outer dimensions
    lambda x: x.reshape(64, 512)[1::2, 3:].t(),
    lambda x: x.reshape(128, 256).flip(0).t(),
    lambda x: x[:30003].reshape(-1, 3).t(),  # a few columns
    lambda x: x[:30003].reshape(3, -1).t(),  # a few rows
    lambda x: x.reshape(2, 2, -1).permute(2, 0, 1),
    lambda x: x.reshape(-1, 2, 2).permute(1, 2, 0),
    lambda x: x.reshape(2, 64, 2, 64, 2).permute(0, 2, 4, 1, 3),  # pixels of 2 x 2
    lambda x: x[:24576].reshape(2, 4, 3, -1).permute(1, 0, 3, 2),
])  # fmt: skip
def test_transposed_copies_of_any_shape(f):
    for x in (A, SMALL):
        same(lambda x: f(x).contiguous(), x)


@pytest.mark.parametrize("f", [lambda x: x[:30003].reshape(-1, 3).t(), lambda x: x[:30003].reshape(3, -1).t()])
def test_a_few_rows_or_columns_are_written_in_order(f):
    (counters,) = counted(lambda x: f(x).contiguous(), A)
    assert counters.of("global", "store").used > 0.99 and counters.of("local", "store").accesses == 0


@pytest.mark.sweep
def test_large_transposed_copies():
    """What the CPU stores past its caches has other units."""
    x = taeda.arange(513 * 512).to(taeda.complex128).reshape(513, 512)
    for counters in counted(lambda x: x.t().contiguous(), x):
        assert counters.of("shared", "load").conflicts == 0 and counters.of("shared", "store").conflicts == 0


def test_tiles_of_transposed_copies_are_without_races():
    x = A[:3003].reshape(33, 91).cuda()
    with no_faults():
        assert x.t().contiguous().cpu().equal(A[:3003].reshape(33, 91).t())


# ---- rows ------------------------------------------------------------------------------------------------------------

X, Y = A.reshape(32, 1024), B.reshape(32, 1024)
F = taeda.nn.functional


def grads(f):
    """The gradient of the first argument of ``f``."""

    def run(x, *more):
        x = x.clone().requires_grad_()
        y = f(x, *more)
        y.backward(y.detach() + 1)
        return x.grad

    return run


@pytest.mark.parametrize("f, x, passes, stored", [
    (lambda x: x.sum(1), X, 1, 0),
    (lambda x: x.mean(1), X.double(), 1, 0),
    (lambda x: x.sum(1), X.half(), 1, 0),
    (lambda x: x.reshape(8, 4, 16, 64)[:, :, ::2].sum((1, 2, 3)), X, 0.5, 0),  # rows of two dimensions
    (lambda x: x.amax(1), X, 1, 0),
    (lambda x: x.argmax(1), X, 1, 0),
    (lambda x: x.prod(1), X.to(taeda.int8), 1, 0),
    (lambda x: x.norm(dim=1), X, 1, 0),
    (lambda x: x.var(1), X, 2, 0),
    (lambda x: x.logsumexp(1), X, 2, 0),
    (lambda x: x.softmax(1), X, 3, 1),
    (lambda x: x.log_softmax(1), X.bfloat16(), 3, 1),
    (lambda x: x.cumsum(1), X, 1, 1),
    (lambda x: F.layer_norm(x, (1024,)), X, 2, 1),
    (lambda x: F.rms_norm(x, (1024,)), X, 2, 1),
    (lambda x: F.group_norm(x.reshape(4, 8, 1024), 2), X, 2, 1),
    (lambda x: F.batch_norm(x.reshape(2, 16, 1024), None, None, training=True), X, 2, 1),
])  # fmt: skip
def test_rows_are_read_and_written_by_neighbouring_threads(f, x, passes, stored):
    """``passes`` over the row that read it, and how often it is written."""
    (counters,) = counted(f, x)
    load, store = counters.of("global", "load"), counters.of("global", "store")
    assert load.used > 0.98 and load.bytes <= 1.05 * passes * x.nbytes
    assert not stored or store.used > 0.98
    assert store.bytes <= 1.05 * stored * x.nbytes + 2048  # a sector for each number of a row
    assert counters.of("local", "load").accesses == counters.of("local", "store").accesses == 0  # no memory of a thread


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 127, 129, 1000])
def test_rows_of_any_length(n):
    x, y = A[: 7 * n].reshape(7, n), B[: 7 * n].reshape(7, n)
    for f in (
        lambda x, y: taeda.stack([x.sum(1), x.amax(1), x.argmin(1).float(), x.logsumexp(1)]),
        lambda x, y: x.softmax(1) + F.layer_norm(x, (n,), y[0], y[1]),
        lambda x, y: x.cumsum(1) + x.cummax(1).values,
    ):
        same(f, x, y)


@pytest.mark.parametrize("f", [
    lambda x, y: taeda.complex(x, y).sum(1),
    lambda x, y: x[:, ::3].sum(1) + x.flip(1)[:, ::3].amax(1),
    lambda x, y: x.double().std(1),
    lambda x, y: (x > y).all(1),
    grads(lambda x, y: x.softmax(1)),
    grads(lambda x, y: F.layer_norm(x, (1024,), y[0])),
    grads(lambda x, y: F.group_norm(x.reshape(4, 8, 1024), 2, y[0, :8])),
    grads(lambda x, y: F.cross_entropy(x, y[:, 0].abs().long())),
])  # fmt: skip
def test_rows_of_other_kinds(f):
    same(f, X, Y)


def test_the_threads_of_a_row_are_without_races():
    x = X[:3].cuda()
    with no_faults():
        for f in (
            lambda x: x.softmax(1),
            grads(lambda x: F.group_norm(x.reshape(1, 3, 1024), 3)),
            lambda x: F.batch_norm(x, x[0].clone(), x[1].clone(), training=True),
        ):
            assert f(x).cpu().equal(f(X[:3]))


# ---- rows and items by index -----------------------------------------------------------------------------------------

I = taeda.randint(0, 256, (512,), generator=taeda.Generator().manual_seed(2))
W = A[: 256 * 96].reshape(256, 96)


@pytest.mark.parametrize("w", [W, W.half(), W.double(), W.to(taeda.int8), taeda.complex(W, W).to(taeda.complex128)])
def test_the_threads_of_a_warp_share_a_row_that_is_gathered(w):
    (counters,) = counted(lambda w: F.embedding(I.to(w.device), w), w)
    load, store = counters.of("global", "load"), counters.of("global", "store")
    moved = 512 * w.shape[1] * w.element_size()
    assert store.bytes == moved and store.used == 1
    assert load.bytes == moved + 512 * 32  # a sector for each index


@pytest.mark.parametrize("columns", [1, 2, 15, 16, 17, 31, 32, 33, 95])
@pytest.mark.parametrize("f", [
    lambda w, x, i: w[i] + w.index_select(0, i),
    lambda w, x, i: w.index_add(0, i, x),  # an index often stands there several times
    lambda w, x, i: w.index_put((i,), x[0]).index_copy(0, i[:1], x[:1]),
    lambda w, x, i: w.index_put((i, i % w.shape[1]), x[:, 0], accumulate=True),
    lambda w, x, i: w.scatter_reduce(0, i[:, None].expand(x.shape), x, "amax"),
    lambda w, x, i: w.reshape(2, -1, w.shape[1]).index_add(1, i % 128, x.expand(2, *x.shape)),
    lambda w, x, i: w.t()[:, i] + w.t().index_add(1, i, x.t()).sum(),
    lambda w, x, i: w.gather(0, i[:, None] + 0 * x.long()) + x.gather(1, 0 * x.long()),
])  # fmt: skip
def test_rows_by_index_of_any_width(f, columns):
    same(f, A[: 256 * columns].reshape(256, columns), B[: 70 * columns].reshape(70, columns), I[:70])


def test_rows_to_one_place_are_put_in_the_order_of_the_index():
    x = B[: 512 * 48].reshape(512, 48)
    (counters,) = counted(lambda w, x, i: w.index_put_((i,), x), W[:, :48].contiguous(), x, I)[-1:]
    assert counters.of("global", "store").used == 1
    with no_faults():
        for f in (
            lambda y, i, x: y.index_add_(0, i, x),
            lambda y, i, x: y.index_put_((i,), x),
            lambda y, i, x: y.view(-1).index_put_((i,), x[:, 0]),  # items
            lambda y, i, x: y.view(-1).index_put_((i,), x[:, 0], accumulate=True),
            lambda y, i, x: y.t().index_copy_(1, i, x.t()),
            lambda y, i, x: y.index_put_((i,), x[:, :1]),  # one item for a row
            lambda y, i, x: y.t().index_put_((i,), x[:, :4]),  # rows whose items are apart
            lambda y, i, x: y.t().index_put_((i,), x[:, :1]),
            lambda y, i, x: y.to(taeda.complex128).t().index_put_((i,), x[:, :4].to(taeda.complex128)),
            lambda y, i, x: y.to(taeda.int8).t().index_put_((i,), (9 * x[:, :4]).to(taeda.int8)),
            lambda y, i, x: y.view(2, 2, 4, 12).transpose(1, 3).index_copy_(1, i, x[:, :16].reshape(2, 40, 4, 2)),
            lambda y, i, x: y.bfloat16().t().index_add_(0, i, x[:, :4].bfloat16()),
            lambda y, i, x: y.half().t().index_add_(0, i, x[:, :4].half()),
            lambda y, i, x: y.t().index_put_((i,), x[:, :4], accumulate=True),
        ):
            given = taeda.zeros(4, 48), I[:40] % 4, x[:40]
            assert f(*(t.cuda() for t in given)).cpu().equal(f(*given))


def test_gradients_of_embeddings_add_whole_rows():
    counters = counted(grads(lambda w, i: F.embedding(i, w)), W, I)
    load, store = (counters[-1].of("global", way) for way in ("load", "store"))
    moved = 512 * W.shape[1] * 4
    assert store.bytes == moved and store.used == 1
    # 256 warps look through the index, and whether it is good; a sector for each index that one owns
    assert load.bytes == 2 * moved + 512 * 32 + 256 * (512 * 8 + 32)


def test_items_that_are_gathered_have_a_thread_each():
    x, i = A.reshape(32, 1024), taeda.randint(0, 32, (16, 1024), generator=taeda.Generator().manual_seed(3))
    for f in (lambda x, i: x.gather(0, i), lambda x, i: x.flatten()[i.flatten()]):
        (counters,) = counted(f, x, i)
        store, load = counters.of("global", "store"), counters.of("global", "load")
        assert store.bytes == i.numel() * 4 and store.used == 1 and store.accesses == i.numel()
        assert load.bytes <= i.numel() * (8 + 32)  # the index once, and a sector for each item
        assert counters.of("local", "load").accesses == 0


# ---- products --------------------------------------------------------------------------------------------------------

BITS = {1: taeda.int8, 2: taeda.int16, 4: taeda.int32, 8: taeda.int64}


def product(f, *xs):
    """The counters of the product among the kernels that ``f`` runs. Signs of zeros are those of the CPU, too."""
    counted(lambda *xs: f(*xs).contiguous().view(BITS[xs[0].element_size()]), *xs)
    return next(c for name, c in driver().counters.items() if name.startswith("product"))


def drawn(*shape, dtype=taeda.float32, seed=5):
    """Numbers of which some products have the smallest exponents, and zeros of both signs."""
    generator = taeda.Generator().manual_seed(seed)
    if not dtype.is_floating_point:
        return taeda.randint(-1000, 1000, shape, generator=generator).to(dtype)
    x = taeda.randn(shape, generator=generator)
    return taeda.where(x.abs() < 0.3, x * 1e-23, taeda.where(x > 1.5, x * 0, x)).to(dtype)


@pytest.mark.parametrize("f, dtype", [
    (lambda a, b: a @ b, taeda.float32),
    (lambda a, b: a.t().contiguous().t() @ b, taeda.float32),
    (lambda a, b: a @ b.t().contiguous().t(), taeda.float32),
    (lambda a, b: a.t().contiguous().t() @ b.t().contiguous().t(), taeda.float32),
    (lambda a, b: a @ b, taeda.float64),
    (lambda a, b: a.t().contiguous().t() @ b.t().contiguous().t(), taeda.float64),
    (lambda a, b: a @ b.t().contiguous().t(), taeda.int32),
])  # fmt: skip
def test_tiles_of_products_are_read_once_and_meet_at_no_bank(f, dtype):
    a, b = drawn(64, 48, dtype=dtype), drawn(48, 128, dtype=dtype, seed=6)
    counters = product(f, a, b)
    load, store = counters.of("global", "load"), counters.of("global", "store")
    assert load.bytes == (2 * a.numel() + 2 * b.numel()) * a.element_size() and load.used == 1  # tiles are 32 x 64
    assert store.bytes == 64 * 128 * a.element_size() and store.used == 1
    for way in ("load", "store"):
        assert counters.of("shared", way).accesses and counters.of("shared", way).conflicts == 0
        assert counters.of("local", way).accesses == 0


@pytest.mark.sweep
def test_many_products_have_larger_tiles():
    a, b = drawn(128, 64, 16), drawn(128, 16, 128, seed=6)
    counters = product(lambda a, b: a @ b, a, b)
    assert counters.of("global", "load").bytes == a.nbytes + b.nbytes and counters.of("global", "load").used == 1
    assert counters.of("global", "store").bytes == 128 * 64 * 128 * 4
    assert counters.of("shared", "load").conflicts == counters.of("shared", "store").conflicts == 0


@pytest.mark.parametrize("m, n, k, dtype", [
    (16, 16, 16, taeda.float32), (40, 70, 31, taeda.float32), (20, 18, 300, taeda.float32), (17, 33, 19, taeda.float64),
    (17, 19, 21, taeda.int32),
])  # fmt: skip
@pytest.mark.parametrize("f", [
    lambda a, b, c: a @ b,
    lambda a, b, c: b.t() @ a.t(),
    lambda a, b, c: a.t().contiguous().t() @ b.t().contiguous().t(),
    lambda a, b, c: taeda.addmm(c, a, b, beta=2, alpha=3),
    lambda a, b, c: taeda.addmm(c[0], a[:, 1:], b[1:]),
    lambda a, b, c: taeda.addmm(c[:, :1], a.flip(0), b.flip(0)),
])  # fmt: skip
def test_products_of_any_shape(f, m, n, k, dtype):
    assert product(f, *(drawn(*shape, dtype=dtype, seed=i) for i, shape in enumerate(((m, k), (k, n), (m, n)))))


@pytest.mark.parametrize("f, shapes", [
    (lambda a, b: a @ b, ((3, 2, 20, 24), (2, 24, 40))),  # one operand for all of the outer batch
    (lambda a, b: a.transpose(0, 1) @ b, ((20, 3, 24), (3, 24, 40))),
    (lambda a, b: a.unsqueeze(1) @ b, ((3, 20, 24), (3, 2, 24, 40))),
    (lambda a, b: taeda.baddbmm(b[:, :1, :], a, b), ((3, 24, 24), (3, 24, 40))),
    (lambda a, b: F.linear(a, b, b[:, 0]), ((2, 3, 20, 33), (24, 33))),
    (lambda a, b: taeda.einsum("bik,bjk->bij", a, b), ((3, 20, 24), (3, 17, 24))),
    (lambda a, b: a @ b, ((1, 100), (100, 33))),
    (lambda a, b: a @ b, ((33, 100), (100,))),
    (lambda a, b: taeda.addmv(a[:, 0], a, b), ((33, 700), (700,))),  # long sums along memory, in blocks of k
    (lambda a, b: a @ b.t(), ((2, 700), (300, 700))),
    (lambda a, b: taeda.addmm(b[0], a, b), ((1, 700), (700, 300))),  # which is read row by row
    (lambda a, b: a[:, :0] @ b[:0], ((33, 100), (100, 40))),
    (lambda a, b: a[:0] @ b, ((33, 100), (100, 40))),
    (lambda a, b: taeda.addmm(b[0], a[:, :0], b[:0]), ((33, 100), (100, 40))),
    (lambda a, b: a @ b, ((20, 2064), (2064, 17))),  # k is cut twice
    (lambda a, b: taeda.complex(a, a) @ taeda.complex(b, -b), ((20, 24), (24, 40))),
])  # fmt: skip
def test_products_of_other_forms(f, shapes):
    same(f, *(drawn(*shape, seed=i) for i, shape in enumerate(shapes)))


@pytest.mark.parametrize("f, m, n, k, dtype", [
    (lambda a, b, c: a @ b, 3, 20, 1500, taeda.float32),  # the last block is shorter
    (lambda a, b, c: a @ b, 17, 20, 1024, taeda.float64),
    (lambda a, b, c: a @ b, 1, 7, 2000, taeda.int32),
    (lambda a, b, c: a @ b, 40, 48, 1300, taeda.float32),
    (lambda a, b, c: b.t() @ a.t(), 40, 48, 1300, taeda.float32),
    (lambda a, b, c: taeda.addmm(c, a, b, beta=2), 33, 17, 4160, taeda.float32),
    (lambda a, b, c: taeda.addmm(c[0], a, b), 2, 64, 900, taeda.float32),
    (lambda a, b, c: taeda.addmm(c[:, :1], a[:, 3:], b[3:]), 20, 20, 2100, taeda.float64),
])  # fmt: skip
def test_long_sums_of_few_numbers_are_computed_in_parts(f, m, n, k, dtype):
    """At the same time, in any order of blocks: as the same sums in one thread."""
    xs = [drawn(*shape, dtype=dtype, seed=i) for i, shape in enumerate(((m, k), (k, n), (m, n)))]
    product(f, *xs)
    assert any(name.startswith("add_parts") for name in driver().counters)
    driver().check("full", 3)
    try:
        same(f, *xs)
        assert not driver().faults
    finally:
        driver().check("fast")


def test_a_graph_adds_parts():
    a, b = drawn(4, 1500).cuda(), drawn(1500, 24, seed=6).cuda()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = a @ b
    a.mul_(2)
    graph.replay()
    assert y.equal(a @ b)


def close(f, *xs):
    """As :func:`product`, of numbers of 16 bits: the order of the matrix units' sums is not known."""
    there = [x.cuda() for x in xs]
    driver().check("count")
    made = f(*there)
    driver().check("fast")
    want = f(*xs).float()
    assert made.dtype == xs[0].dtype
    step = 2.0**-11 if made.dtype is taeda.float16 else 2.0**-8
    scale = f(*(x.float().abs() for x in xs)) * 1e-5 + want.abs() * step + 1e-7  # of the sums, and of the last rounding
    assert bool(((made.cpu().float() - want).abs() <= 1.01 * scale).all())
    return next(c for name, c in driver().counters.items() if name.startswith("product"))


@pytest.mark.parametrize("f, dtype", [
    (lambda a, b: a @ b, taeda.float16),
    (lambda a, b: a.t().contiguous().t() @ b, taeda.bfloat16),
    (lambda a, b: a @ b.t().contiguous().t(), taeda.bfloat16),
    (lambda a, b: a.t().contiguous().t() @ b.t().contiguous().t(), taeda.float16),
    (lambda a, b: taeda.addmm(b[0], a, b), taeda.float16),
])  # fmt: skip
def test_matrix_units_multiply_numbers_of_sixteen_bits(f, dtype):
    a, b = drawn(64, 64, dtype=dtype), drawn(64, 128, dtype=dtype, seed=6)
    counters = close(f, a, b)
    load, store = counters.of("global", "load"), counters.of("global", "store")
    # Tiles are 32 x 64. A row that is added is read by two bytes.
    assert load.bytes <= 1.2 * 2 * (a.nbytes + b.nbytes) and load.used > 0.85
    assert store.bytes == 64 * 128 * 2 and store.used == 1
    for way in ("load", "store"):
        assert counters.of("shared", way).accesses and counters.of("shared", way).conflicts == 0
        assert counters.of("local", way).accesses == 0


@pytest.mark.parametrize("m, n, k, dtype", [
    (16, 16, 16, taeda.float16), (40, 70, 31, taeda.bfloat16), (20, 24, 528, taeda.bfloat16), (17, 33, 304, taeda.float16)
])  # fmt: skip
@pytest.mark.parametrize("f", [
    lambda a, b, c: a @ b,
    lambda a, b, c: b.t() @ a.t(),
    lambda a, b, c: taeda.addmm(c, a[:, 1:], b[1:]),
    lambda a, b, c: taeda.baddbmm(c[None, :1], a.expand(2, *a.shape), b.expand(2, *b.shape)),
])  # fmt: skip
def test_matrix_units_take_any_shape(f, m, n, k, dtype):
    close(f, *(drawn(*shape, dtype=dtype, seed=i) for i, shape in enumerate(((m, k), (k, n), (m, n)))))


def test_tiles_of_products_are_without_races():
    for dtype in (taeda.float16, taeda.bfloat16):
        x, y = drawn(40, 72, dtype=dtype), drawn(72, 80, dtype=dtype, seed=6)
        with no_faults():
            (x.cuda() @ y.cuda()).cpu()
    a, b = drawn(40, 70), drawn(70, 80, seed=6)
    with no_faults():
        for f in (lambda a, b: a @ b, lambda a, b: b.t() @ a.t()):
            assert f(a.cuda(), b.cuda()).cpu().equal(f(a, b))


@pytest.mark.parametrize("dtype", [
    taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16, taeda.int8, taeda.complex64
])  # fmt: skip
def test_what_is_scattered_along_rows_is_read_by_rows(dtype):
    g = taeda.Generator().manual_seed(4)
    y, x = A[: 128 * 24].reshape(128, 24).to(dtype), (9 * B[: 128 * 64]).reshape(128, 64).to(dtype)
    i = taeda.randint(0, 24, (128, 64), generator=g)
    for f in (lambda y, i, x: y.clone().scatter_(1, i, x), lambda y, i, x: y.clone().scatter_add_(1, i, x)):
        counters = counted(f, y, i, x)[-1]
        assert counters.of("shared", "load").conflicts == counters.of("shared", "store").conflicts == 0
        assert counters.of("local", "load").accesses == 0
        if x.element_size() > 1 and f(y, i, x).equal(y.scatter(1, i, x)):  # the target is not read
            load, least = counters.of("global", "load"), i.nbytes + x.nbytes
            assert load.used > 0.98 and load.bytes <= 1.1 * least + 4 * 32 * 4  # the word of the check, by each warp


def test_scattered_rows_of_any_layout_are_without_races():
    g = taeda.Generator().manual_seed(4)
    y, x = A[: 133 * 64].reshape(133, 64), B[: 133 * 40].reshape(133, 40)
    i = taeda.randint(0, 16, (133, 40), generator=g)
    with no_faults():
        for f in (
            lambda y, i, x: y.scatter_add(1, i, x),
            lambda y, i, x: y.t().contiguous().t().scatter(1, i, x),
            lambda y, i, x: y.view(19, 7, 64).scatter(2, i.view(19, 7, 40)[:, ::2], x.view(19, 7, 40)),
            lambda y, i, x: y.scatter_reduce(1, i, x, "amax"),
            lambda y, i, x: (y > 0).scatter(1, i[:, :1], x[:, :1] > 0),
        ):
            assert f(y.cuda(), i.cuda(), x.cuda()).cpu().equal(f(y, i, x))


# ---- sorted rows -----------------------------------------------------------------------------------------------------


def ranked(x):
    """Rows with items that are equal, both zeros, and where there are such numbers NaN and infinities."""
    if x.is_floating_point():
        x = (x * 8).round() / 8
        x[..., 3::17], x[..., 5::23], x[..., 7::31] = float("nan"), float("inf"), -0.0
    return x


@pytest.mark.parametrize("dtype", [
    taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16, taeda.int8, taeda.uint8, taeda.int16, taeda.int32,
    taeda.int64, taeda.bool,
])  # fmt: skip
def test_rows_are_sorted_by_radix(dtype):
    x = ranked((A[: 3 * 131] * (1 if dtype is taeda.bool else 50)).to(dtype).reshape(3, 131))
    for f in (
        lambda x: x.sort(1), lambda x: x.sort(1, descending=True), lambda x: x.topk(7, 1),
        lambda x: x.topk(100, 1, largest=False),
    ):  # fmt: skip
        _, places = f(x)
        made, there = f(x.cuda())
        assert there.cpu().equal(places) and x.gather(1, places).nan_to_num(9).equal(made.cpu().nan_to_num(9))


@pytest.mark.parametrize("f", [
    lambda x: x.reshape(70, 4, 10).sort(0, stable=True).indices,
    lambda x: x.reshape(40, 70).t().argsort(0, descending=True),
    lambda x: x[::3].unique(return_inverse=True)[1],
    lambda x: x.reshape(20, 140).kthvalue(9, 1).values,
    lambda x: x.reshape(20, 140).median(1).indices,
    lambda x: x.reshape(140, 20).topk(3, 0).values,
    lambda x: x.reshape(20, 140).mode(1).values,
    lambda x: x.expand(2, 2800)[:, 2200:].sort(1).values,
    lambda x: x[:0].sort().values,
])  # fmt: skip
def test_many_rows_are_sorted_at_once(f):
    """Each has a buffer of its own: threads do not meet."""
    x = (A[:2800] * 50).round() / 50
    with no_faults():
        assert f(x.cuda()).cpu().equal(f(x))


def test_all_threads_of_a_block_share_a_row():
    """Of each row: the keys, two passes of reading and one of writing for each of four digits, and the result."""
    x = A[:2000]
    counters = counted(lambda x: x.sort().indices, x)[-1]
    load, store = counters.of("global", "load"), counters.of("global", "store")
    assert load.wanted <= 2000 * (2 * 4 + 4 * 2 * 8 + 8) + 128 * 4 and store.wanted == 2000 * (8 + 4 * 8 + 8 + 4)
    # A warp reads 32 items at once; those that it puts in order are apart, as are their values in the row.
    assert load.bytes <= 2000 * (4 + 4 * 2 * 8 + 8 + 32) * 1.02 and store.bytes <= 2000 * (8 + 4 * 32 + 8 + 4)
    assert counters.of("local", "load").accesses == counters.of("local", "store").accesses == 0


@pytest.mark.parametrize("dtype", [
    taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16, taeda.int8, taeda.uint8, taeda.int16, taeda.int64, taeda.bool
])  # fmt: skip
def test_one_item_of_a_row_is_found_by_all_threads(dtype):
    with no_faults():
        for n in (1, 40, 128, 131, 400) if dtype is taeda.float32 else (40, 131):
            x = ranked((A[: 3 * n] * (1 if dtype is taeda.bool else 20)).to(dtype).reshape(3, n))
            x[1] = x[1, 0]
            ranks = (partial(taeda.kthvalue, k=k, dim=1) for k in (1, (n + 1) // 2, n))
            for f in (*ranks, lambda x: x.median(1), lambda x: x.nanmedian(1), lambda x: x.mode(1)):
                want, made = f(x), f(x.cuda())
                assert made.indices.cpu().equal(want.indices)
                assert made.values.cpu().nan_to_num(9).equal(want.values.nan_to_num(9))


def test_a_rank_is_found_by_a_look_at_the_row_for_each_digit():
    for x, looks in ((A[:8192].reshape(2, 4096), 4.3), (A[:1024].reshape(8, 128), 1.13), (SMALL.reshape(2, -1), 3.3)):
        median, rank = counted(lambda x: x.median(1).indices, x)
        load = rank.of("global", "load")
        assert load.bytes <= looks * x.nbytes and load.used >= 0.9
        if x.is_floating_point():
            load = median.of("global", "load")
            assert load.bytes == x.nbytes and load.used == 1
        for way in ("load", "store"):
            assert rank.of("shared", way).conflicts == rank.of("local", way).accesses == 0


# ---- long rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f, passes", [
    (lambda x: x.sum(), 1), (lambda x: x.half().reshape(2, -1).mean(1), 1), (lambda x: x.argmax(), 1),
    (lambda x: x[:-8].reshape(3, -1).max(1).indices, 1), (lambda x: x.var(), 2), (lambda x: x.logsumexp(0), 2),
])  # fmt: skip
def test_long_rows_have_many_warps_whose_sums_a_block_joins(f, passes):
    *_, rows, joined = counted(f, A)
    load = rows.of("global", "load")
    assert load.bytes <= 1.1 * passes * A.nbytes and load.used >= 0.98
    assert joined.of("global", "load").bytes <= 0.05 * A.nbytes
    for counters in (rows, joined):
        assert counters.of("local", "load").accesses == 0
    with no_faults():
        f(A.cuda()).cpu()


@pytest.mark.parametrize("f, passes, stored", [
    (lambda x: x.softmax(1), 3, 1),
    (lambda x: x.half().log_softmax(1), 3, 1),
    (lambda x: F.layer_norm(x, x.shape[1:], x[0] + 1, x[1]), 5.5, 1.5),  # x is read three times; weight and bias
    (lambda x: F.rms_norm(x, x.shape[1:]), 2, 1),
    (lambda x: F.group_norm(x.reshape(1, 2, -1), 2, x[:, 0], x[:, 1]), 3, 1),
    (grads(lambda x: x.softmax(1)), 3 + 1 + 4, 3),
])  # fmt: skip
def test_long_rows_that_are_kept_have_a_warp_for_each_chunk(f, passes, stored):
    x = A[: 3 << 13].reshape(2, -1)
    kernels = counted(f, x)
    total = {way: sum(c.of("global", way).bytes for c in kernels) for way in ("load", "store")}
    half = 0.5 if f(x).dtype is taeda.float16 else 1
    # half rows are made of others
    assert total["load"] <= 1.1 * (passes * half + (half < 1)) * x.nbytes
    assert total["store"] <= 1.1 * (stored + (half < 1)) * half * x.nbytes
    for counters in kernels:
        load, rows = counters.of("global", "load"), counters.of("global", "load").bytes >= 0.4 * x.nbytes
        assert counters.of("local", "load").accesses == 0 and (not rows or load.used >= 0.9)
        assert not rows or counters.warps >= 12  # of 2 rows of 6 chunks
    with no_faults():
        f(x.cuda()).cpu()


@pytest.mark.parametrize("f, passes, stored", [
    # x for mean and variance; x, g and w (of each row) for its sums, and for the result; x and g for those of w and b
    (lambda x, w, b: F.layer_norm(x, x.shape[1:], w, b), 2 + 3 + 3 + 2, 1.5),
    (lambda x, w, b: F.layer_norm(x, x.shape[1:]), 6, 1),
    (lambda x, w, b: F.rms_norm(x, x.shape[1:], w), 1 + 3 + 3 + 2, 1.5),
    (lambda x, w, b: F.group_norm(x.reshape(2, 2, -1), 2, w[:2], b[:2]), 6, 1),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.bfloat16])
def test_gradients_of_norms_of_long_rows_have_a_warp_for_each_chunk(f, passes, stored, dtype):
    x, w, b = A[: 4 * 6000].reshape(4, -1).to(dtype), B[:6000].to(dtype), B[9:6009].to(dtype)
    results = []
    for device in ("cpu", "cuda"):
        given = [t.to(device).clone().requires_grad_() for t in (x, w, b)]
        y = f(*given)
        g = (y.detach() + 1).contiguous()
        cuda.synchronize()
        driver().check("count")
        y.backward(g)
        cuda.synchronize()
        counters = {name: c for name, c in driver().counters.items() if not name.startswith("identity")}
        driver().check("fast")
        results.append([y.detach().cpu(), *(t.grad.cpu() for t in given if t.grad is not None)])
    assert all(p.equal(q) for p, q in zip(*results, strict=True))
    if dtype is taeda.float32:
        assert sum(c.of("global", "load").bytes for c in counters.values()) <= 1.1 * passes * x.nbytes
        assert sum(c.of("global", "store").bytes for c in counters.values()) <= 1.1 * stored * x.nbytes
    for name, c in counters.items():
        least = 0.7 if name.startswith("affine") else 0.9  # of a column each warp reads what there is one of for a row
        load = c.of("global", "load")
        assert c.of("local", "load").accesses == 0
        assert load.bytes < x.nbytes or (c.warps >= 12 and load.used >= least)


@pytest.mark.parametrize("f", [
    lambda x: x.cumsum(1), lambda x: x.logcumsumexp(1),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16, taeda.float64])
def test_scans_of_few_long_rows_have_a_warp_for_each_chunk(f, dtype):
    x = A[: 3 << 13].reshape(2, -1).to(dtype)
    large = [c for c in counted(f, x) if c.of("global", "load").bytes >= x.nbytes / 2 and c.warps < 48]
    assert len(large) == 2  # the ends of chunks, then the chunks
    for counters in large:
        load = counters.of("global", "load")
        assert counters.warps == 12 and load.used >= 0.98 and load.bytes <= 1.1 * x.nbytes
        assert counters.of("local", "load").accesses == 0
    store = large[1].of("global", "store")
    assert store.used == 1 and store.bytes == f(x).nbytes
    with no_faults():
        f(x.cuda()).cpu()


def test_scans_of_chunks_are_those_of_rows():
    x, y = A[: 3 * 4500].reshape(3, -1).clone(), B[:5000].abs()
    x[0, 2500], x[1, :3000], x[2, 10] = float("nan"), -float("inf"), float("inf")
    for f in (lambda x: x.cumsum(1), lambda x: x.logcumsumexp(1)):
        made, want = f(x.cuda()).cpu(), f(x.t().contiguous().t().double())
        same(lambda x, f=f: f(x).nan_to_num(7), x)
        assert made.allclose(want.float(), 1e-5, 1e-5, equal_nan=True)
    assert y.cuda().logcumsumexp(0).cpu().allclose(y.double().logcumsumexp(0).float())
    same(lambda x: x.long().cumsum(0) + x.to(taeda.int8).cumsum(0), 9 * y)
    same(grads(lambda x: x.cumsum(0)), y)
    assert grads(lambda x: x.cumsum(0))(y.cuda()).cpu().allclose(grads(lambda x: x.cumsum(0))(y.double()).float())


@pytest.mark.parametrize("n", [4096, 4097, 6200])
def test_chunks_of_rows_of_any_length(n):
    x, y = A[: 3 * n].reshape(3, n), B[: 3 * n].reshape(3, n).clone()
    y[1, :2100], y[2, 5] = -float("inf"), float("nan")
    for f in (
        lambda x, y: y.softmax(1).nan_to_num(7) + y.t().log_softmax(0).t().clamp(-99).nan_to_num(7),
        lambda x, y: F.layer_norm(x.reshape(1, 3, n), (n,), None, x[0]) + F.rms_norm(x, (n,), x[1]),
        lambda x, y: F.group_norm(x.reshape(3, 1, n), 1).reshape(3, n).double().log_softmax(1),
        grads(lambda x, y: x.log_softmax(1)),
        grads(lambda x, y: x.bfloat16().softmax(1)),
    ):
        same(f, x, y)


# ---- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f, passes, warps", [
    (lambda x: x.sum(0), 1, 64), (lambda x: x.half().mean(0), 1, 32), (lambda x: x.amax(0), 1, 64),
    (lambda x: x.var(0), 2, 32),
    (lambda x: x.reshape(2, 512, 32).logsumexp(1), 2, 8),
    (lambda x: x.reshape(2, 16, 32, 32).permute(0, 3, 1, 2).norm(dim=(0, 2, 3)), 1, 16),  # channels last
    (lambda x: x.reshape(-1, 8).sum(0), 1, 16),
])  # fmt: skip
def test_few_long_columns_have_many_threads_whose_sums_a_block_joins(f, passes, warps):
    x = A.reshape(-1, 32) if warps < 32 else A.repeat(4).reshape(-1, 64)
    *_, columns, joined = counted(f, x)
    load, size = columns.of("global", "load"), x.nbytes // (2 if f(x).dtype is taeda.float16 else 1)
    assert columns.warps >= warps and load.used == 1 and load.bytes == passes * size
    assert joined.of("global", "load").bytes <= 0.1 * passes * size
    for counters in (columns, joined):
        assert counters.of("local", "load").accesses == 0
    with no_faults():
        f(x.cuda()).cpu()


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 33, 100])
def test_chunks_of_columns_of_any_number(columns):
    x = A[: 32768 // columns * columns].reshape(-1, columns)
    for f in (
        lambda x: taeda.stack([x.sum(0), x[3:].amax(0), x.t().var(1), x[:300].logsumexp(0), x[1::2].norm(dim=0)]),
        lambda x: x[:5003, 1:].double().mean(0) + (x[:5003] > 0).all(0)[1:] + x.argmax(0)[1:],
    ):
        same(f, x)


def grads_of_all(f):
    """The result of ``f``, which is about its first argument, and the gradients of all arguments as one list."""

    def run(*given):
        given = [t.clone().requires_grad_() for t in given]
        y = f(*given)
        y.backward(y.detach().square() + 1)
        return [y, *(t.grad for t in given)]

    return run


def norm_by_batch(training, moved=True):
    def run(x, w, b):
        mean, var = b.detach().clone(), w.detach().square()
        y = F.batch_norm(x, mean if moved else None, var if moved else None, w, b, training)
        return y + 0 * (mean + var).reshape(-1, *(1,) * (x.dim() - 2))

    return run


@pytest.mark.parametrize(
    "shape", [(4, 8, 32, 32), (1, 3, 64, 100), (40, 4, 7, 15), (1024, 32), (1000, 5), (2, 2, 5000)]
)
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.bfloat16])
def test_batch_norm_of_few_channels(shape, dtype):
    x = A[: taeda.Size(shape).numel()].reshape(shape).to(dtype)
    w, b = (B[i : i + shape[1]].clone().to(dtype) for i in (0, 50))
    layouts = [x, x.contiguous(memory_format=taeda.channels_last)] if x.dim() == 4 else [x]
    for x in layouts:
        for f in (norm_by_batch(True), norm_by_batch(True, False), norm_by_batch(False)):
            made, want = (grads_of_all(f)(*given) for given in ([x.cuda(), w.cuda(), b.cuda()], [x, w, b]))
            for p, q in zip(made, want, strict=True):
                assert p.cpu().equal(q) and p.stride() == q.stride()
            made = F.batch_norm(*(t.cuda() for t in (x, b, w * w)))
            assert made.cpu().equal(F.batch_norm(x, b, w * w)) and made.stride() == x.stride()


@pytest.mark.parametrize("layout", ["images", "channels last", "rows"])
def test_batch_norm_of_few_channels_has_many_warps(layout):
    """Statistics read twice, normalised; sums of two gradients, then the input's."""
    x = A.reshape(4, 8, 32, 32)
    x = {"rows": A.reshape(-1, 8), "images": x}.get(layout, x.contiguous(memory_format=taeda.channels_last))
    x, g = x.cuda().requires_grad_(), (x + 1).cuda()
    y = F.batch_norm(x, None, None, training=True)
    for passes, f in ((3, lambda: F.batch_norm(x, None, None, training=True)), (4, lambda: y.backward(g))):
        driver().check("count")
        f()
        driver().check("fast")
        kernels = [c for name, c in driver().counters.items() if "identity" not in name]  # a gradient that is a view
        assert sum(c.of("global", "load").bytes for c in kernels) <= 1.1 * passes * x.nbytes
        for counters in kernels:
            load = counters.of("global", "load")
            assert counters.of("local", "load").accesses == 0
            assert load.bytes < x.nbytes or (counters.warps >= 8 and load.used >= 0.85)


# ---- lists of tensors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16, taeda.float64])
@pytest.mark.parametrize("rule", [taeda.optim.AdamW, partial(taeda.optim.SGD, momentum=0.9), taeda.optim.RMSprop])
def test_the_threads_of_a_warp_share_a_chunk_of_an_optimisers_parameters(rule, dtype):
    def run(device):
        params = [
            A[i : i + n].clone().to(dtype).to(device).requires_grad_() for i, n in enumerate((20480, 3, 777, 4096, 64))
        ]
        optimiser = rule(params, lr=0.1)
        found = []
        for step in range(2):
            for p in params:
                p.grad = p.detach() * 2 + step
            if step:
                driver().check("count")
            found.append(taeda.nn.utils.clip_grad_norm_(params, 1.0))
            taeda.nn.utils.clip_grad_value_(params, 0.5)
            optimiser.step()
        found += [taeda.nn.utils.get_total_norm([p.grad for p in params], k) for k in (1.0, float("inf"))]
        cuda.synchronize()
        driver().check("fast")
        return [t.detach().cpu() for t in (*found, *params, *(p.grad for p in params))]

    made = run("cuda")
    for name, counters in driver().counters.items():
        if not name.startswith(("norm", "each", "AdamW", "SGD", "RMSprop")):  # norms are stored for each chunk
            continue
        assert counters.warps >= 9 and counters.of("local", "load").accesses == 0
        for way in ("load", "store"):
            assert name.startswith("norm") or counters.of("global", way).used >= 0.97
        assert counters.of("global", "load").used >= 0.97
    assert all(map(taeda.equal, made, run("cpu")))


def some(device, dtype, at=0):
    return [A[i + at : i + at + n].abs().add(0.1).to(dtype).to(device) for i, n in enumerate((9000, 3, 777, 4096))]


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float16, taeda.float64])
@pytest.mark.parametrize("name, more, launches", [
    ("add", lambda y, z: (y,), 1), ("add", lambda y, z: (0.5,), 1), ("mul", lambda y, z: ([0.5, 2, -1.0, 3],), 1),
    ("mul", lambda y, z: (y[2][0],), 1), ("sub", lambda y, z: (y,), 1), ("div", lambda y, z: ([y[1][0]] * 4,), 1),
    ("addcmul", lambda y, z: (y, z, 0.5), 1), ("addcdiv", lambda y, z: (y, z, [0.5, 2.0, -1.0, 3.0]), 1),
    ("lerp", lambda y, z: (y, [0.5, 0.7, 0.1, 2]), 1), ("sqrt", lambda y, z: (), 1), ("lgamma", lambda y, z: (), 1),
    ("norm", lambda y, z: (), 2), ("norm", lambda y, z: (1,), 2), ("norm", lambda y, z: (float("inf"),), 2),
])  # fmt: skip
def test_functions_of_lists_are_one_launch(name, more, launches, dtype):
    forms = [f"_foreach_{name}"] + [f"_foreach_{name}_"] * (name != "norm")
    for form in forms:
        found = []
        for device in ("cpu", "cuda"):
            x, y, z = (some(device, dtype, at) for at in (0, 50, 100))
            given, before = more(y, z), [t._version for t in x]
            cuda.synchronize()
            driver().check("count")
            made = getattr(taeda, form)(x, *given)
            cuda.synchronize()
            driver().check("fast")
            found.append([t.cpu() for t in made])
            assert [t._version - v for t, v in zip(x, before, strict=True)] == [form.endswith("_")] * 4
        counters = driver().counters
        assert sum(c.launches for c in counters.values()) == launches
        assert all(p.equal(q) and p.dtype == q.dtype for p, q in zip(*found, strict=True))
        (large,) = (c for name, c in counters.items() if not name.startswith("join"))
        assert large.warps == 6 and large.of("local", "load").accesses == 0
        assert large.of("global", "load").used >= 0.9 and (name == "norm" or large.of("global", "store").used >= 0.97)


def test_functions_of_lists_that_are_no_launch():
    """A tensor that is there twice, or is read by another one's op; other dtypes, gradients, a list that is empty."""
    for device in ("cpu", "cuda"):
        v, w = taeda.ones(5, device=device), taeda.arange(6.0, device=device)
        taeda._foreach_mul_([v, v], 2.0)
        taeda._foreach_add_([w[1:], w[:1]], [w[:-1], w[:1]])
        assert v.tolist() == [4.0] * 5 and w.tolist() == [0.0, 1.0, 3.0, 5.0, 7.0, 9.0]
        made = taeda._foreach_add([v, v.long(), v.requires_grad_()], 1)
        assert [t.dtype for t in made] == [taeda.float32, taeda.int64, taeda.float32] and made[2].requires_grad
        assert taeda._foreach_sqrt([]) == ()
        assert taeda._foreach_neg([v.detach()[:0], v.detach()])[1].tolist() == [-4.0] * 5


def test_columns_have_a_thread_each_and_no_memory_of_it():
    for f in (lambda x: x.sum(0), lambda x: x.softmax(0), lambda x: x.var(0)):
        for counters in counted(f, X):
            assert counters.of("global", "load").used == counters.of("global", "store").used == 1
            assert counters.of("local", "load").accesses == 0

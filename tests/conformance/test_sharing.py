"""Writes whose source or index shares memory with what is written, and masks of bytes: PyTorch's answer to each."""

import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")

PLACES = {  # of four elements in eight: what is written, what is read
    "same": (0, 1, 0, 1), "after": (0, 1, 2, 1), "before": (2, 1, 0, 1), "apart": (0, 1, 4, 1), "next": (0, 1, 1, 1),
    "one source": (0, 1, 6, 0), "one target": (0, 0, 4, 1),
}  # fmt: skip

WRITES = {
    "index_add_": lambda t, x, i: t.index_add_(0, i, x),
    "index_copy_": lambda t, x, i: t.index_copy_(0, i, x),
    "index_reduce_": lambda t, x, i: t.index_reduce_(0, i, x, "prod"),
    "scatter_": lambda t, x, i: t.scatter_(0, i, x),
    "scatter_add_": lambda t, x, i: t.scatter_add_(0, i, x),
    "scatter_reduce_": lambda t, x, i: t.scatter_reduce_(0, i, x, "amax"),
    "put_": lambda t, x, i: t.put_(i, x),
    "index_put_": lambda t, x, i: t.index_put_((i,), x),
    "setitem": lambda t, x, i: t.__setitem__(i, x),
    "setitem of a mask": lambda t, x, i: t.__setitem__(i > 0, x[:3]),
    "setitem of one": lambda t, x, i: t.__setitem__(i > 0, x[1]),
    "setitem of a slice": lambda t, x, i: t.__setitem__(slice(None), x),
    "copy_": lambda t, x, i: t.copy_(x),
    "add_": lambda t, x, i: t.add_(x),
}


def answer(function, *args):
    """What a call gives, or the class of its error, with the classes of its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as error:
            result = type(error).__name__
    return getattr(result, "tolist", lambda: result)(), [w.category.__name__ for w in seen]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("place", PLACES)
def test_source_that_shares(place, write):
    def go(L):
        start, step, begin, stride = PLACES[place]
        whole = L.arange(8.0)
        target, source = whole.as_strided((4,), (step,), start), whole.as_strided((4,), (stride,), begin)
        return answer(WRITES[write], target, source, L.tensor([3, 1, 0, 2]))[0], whole.tolist()

    assert go(taeda) == go(torch)


@pytest.mark.parametrize("write", [name for name in WRITES if name[-1] == "_" and name not in ("copy_", "add_")])
def test_index_that_shares(write):
    def go(L):
        index = L.arange(4)
        return answer(WRITES[write], index, L.ones(4, dtype=L.int64), index), index.tolist()

    assert go(taeda) == go(torch)


OUTS = {
    "add": lambda L, x, out: L.add(x, x.clone(), out=out),
    "neg": lambda L, x, out: L.neg(x, out=out),
    "where": lambda L, x, out: L.where(x > 0, x, x.clone(), out=out),
    "cumsum": lambda L, x, out: L.cumsum(x, 0, out=out),
    "gather": lambda L, x, out: L.gather(x, 0, L.tensor([3, 1, 0, 2]), out=out),
    "index_select": lambda L, x, out: L.index_select(x, 0, L.tensor([3, 1, 0, 2]), out=out),
    "take": lambda L, x, out: L.take(x, L.tensor([3, 1, 0, 2]), out=out),
    "cat": lambda L, x, out: L.cat((x[:2], x[2:]), out=out),
    "outer": lambda L, x, out: L.outer(x[:2], L.ones(2), out=out.unflatten(0, (2, 2))),
}


@pytest.mark.parametrize("op", OUTS)
@pytest.mark.parametrize("place", ["same", "after", "before", "apart", "next"])
def test_out_that_shares(place, op):
    def go(L):
        start, step, begin, stride = PLACES[place]
        whole = L.arange(8.0)
        return answer(OUTS[op], L, whole.as_strided((4,), (stride,), begin), whole.as_strided((4,), (step,), start))

    assert go(taeda) == go(torch)


READS = {
    "get": lambda L, a, m: a[m],
    "get after a slice": lambda L, a, m: a[:, m],
    "get in a list": lambda L, a, m: a[[m]],
    "set one": lambda L, a, m: a.__setitem__(m, 9.0),
    "set a tensor of one": lambda L, a, m: a.__setitem__(m, L.tensor(9.0)),
    "set several": lambda L, a, m: a.__setitem__(m, L.arange(3.0)),
    "index_put": lambda L, a, m: a.index_put((m,), L.tensor(3.0)),
    "index_put that adds": lambda L, a, m: a.index_put((m,), L.tensor(3.0), accumulate=True),
    "masked_fill": lambda L, a, m: a.masked_fill(m, 1.0),
    "masked_select": lambda L, a, m: a.masked_select(m),
    "masked_scatter": lambda L, a, m: a.masked_scatter(m, L.ones(6)),
    "index_select": lambda L, a, m: a.index_select(0, m),
    "index_fill": lambda L, a, m: a.index_fill(0, m, 2.0),
    "take_along_dim": lambda L, a, m: a.take_along_dim(m),
}


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int8", "int16", "int32", "int64", "float32"])
@pytest.mark.parametrize("read", READS)
def test_dtypes_of_indices(read, dtype):
    def go(L):
        for values in ([[1, 0, 1], [0, 1, 0]], [1, 0], [1, 0, 1], [2, 0]):
            a = L.arange(6.0).reshape(2, 3)
            if dtype not in ("uint8", "bool") or values != [2, 0]:
                yield answer(READS[read], L, a, L.tensor(values).to(getattr(L, dtype))), a.tolist()

    for ours, theirs in zip(go(taeda), go(torch), strict=True):
        assert ours == theirs


@pytest.mark.parametrize("row", [-6, -5, -4, -1, 0, 3, 4, 5, 1.0, True, None])
def test_padding_of_embeddings(row):
    def go(L):
        F, index, weight = L.nn.functional, L.tensor([0, 1, 3, 1]), L.arange(12.0).reshape(4, 3)
        for mode in ("sum", "mean", "max"):
            for bags in ((index, weight, L.tensor([0, 2])), (index.reshape(2, 2), weight)):
                yield answer(lambda bags=bags, mode=mode: F.embedding_bag(*bags, mode=mode, padding_idx=row))
        if type(row) is not float:
            yield answer(lambda: F.embedding(index, weight, padding_idx=row))
        yield answer(lambda: F.embedding_bag(index.to(L.int16), weight, L.tensor([0, 2])))

    assert list(go(taeda)) == list(go(torch))


def test_masked_scatter_reads_before_it_writes():
    """PyTorch reads what it has written."""
    a = taeda.arange(4.0)
    assert a.masked_scatter_(taeda.tensor([False, True, True, True]), a).tolist() == [0, 0, 1, 2]


def test_windows_on_a_storage():
    """A storage that is too small for ``set_`` grows; a view of it is refused."""

    def shape(L, *given):
        return list(L.empty(0).set_(*given).shape)

    def go(L):
        for size, stride, start in [
            ((9,), (1,), 0), ((4,), (3,), 0), ((4,), (1,), 5), ((4,), (1,), -1), ((-1,), (1,), 0), ((2, 2), (1,), 0),
            ((0,), (1,), 100), ((), (), 8), ((3, 3), (3, 1), 0), ((2, 2), (0, 0), 0),
        ]:  # fmt: skip
            for given in (L.arange(8.0), L.arange(8.0).untyped_storage(), L.arange(8.0).storage()):
                yield answer(shape, L, given, start, size, stride)
                yield getattr(given, "untyped_storage", lambda given=given: given)().nbytes()
            yield answer(L.arange(8.0).as_strided, size, stride, start)
            yield answer(L.arange(8.0)[2:].as_strided, size, stride)
        yield answer(lambda: L.empty(0, dtype=L.int64).set_(L.arange(8.0).storage()))
        held = L.frombuffer(bytearray(8), dtype=L.float32)
        yield answer(lambda: L.empty(0).set_(held.untyped_storage(), 0, (3,), (1,)))

    def plain(results):
        return [r if isinstance(r, int) else r[0] for r in results]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert plain(go(taeda)) == plain(go(torch))


LOSSES = ["mse_loss", "l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"]
SIZES = [(2, 4), (4, 2), (2,), (4,), (), (2, 4, 1), (0,), (3,), (2, 3, 3), (2, 1), (1, 4), (0, 4), (1,)]


def numbers(L, size, dtype=None):
    n = 1
    for s in size:
        n *= s
    t = ((L.arange(n, dtype=L.float32) * 0.37).sin() * 0.4 + 0.5).reshape(size)
    return t if dtype is None else (L.arange(n) % 2).reshape(size).to(getattr(L, dtype))


@pytest.mark.parametrize("shape", [(2, 4), (4,), (2, 4, 3), ()])
def test_sizes_of_losses(shape):
    def go(L):
        F = L.nn.functional
        x = numbers(L, shape)
        for size in SIZES:
            t, whole = numbers(L, size), numbers(L, size, "int64")
            for name in LOSSES:
                yield name, size, answer(lambda name=name, t=t: getattr(F, name)(x, x, weight=t))
                yield name, size, answer(lambda name=name, t=t: getattr(F, name)(x, t))
            for name in ("soft_margin_loss", "multilabel_soft_margin_loss", "kl_div", "hinge_embedding_loss"):
                yield name, size, answer(lambda name=name, t=t: getattr(F, name)(x, t))
            yield size, answer(lambda t=t: F.binary_cross_entropy_with_logits(x, x, pos_weight=t))
            yield size, answer(lambda whole=whole: F.multi_margin_loss(x, whole))
            first = numbers(L, shape[:1], "int64")
            yield size, answer(lambda first=first, t=t: F.multi_margin_loss(x, first, weight=t))
        for dtype in ("uint8", "bool", "int64"):
            yield answer(lambda dtype=dtype: F.soft_margin_loss(x, numbers(L, shape, dtype)))
        for dtype in ("float64", "float16", "int64", "bool"):
            weight = L.ones(4).to(getattr(L, dtype))
            for name in ("cross_entropy", "nll_loss", "multi_margin_loss"):
                loss, whole = getattr(F, name), L.tensor([0, 1])
                yield name, dtype, answer(lambda loss=loss, w=weight, t=whole: loss(numbers(L, (2, 4)), t, weight=w))
        for name in ("cross_entropy", "nll_loss"):
            yield name, answer(lambda name=name: getattr(F, name)(numbers(L, (2, 4)), L.tensor(1)))

    for ours, theirs in zip(go(taeda), go(torch), strict=True):
        *tag, (value, seen) = ours if isinstance(ours[-1], tuple) else [ours]
        *_, (want, told) = theirs if isinstance(theirs[-1], tuple) else [theirs]
        same = value == pytest.approx(want, abs=1e-5, nan_ok=True) if isinstance(want, float) else value == want
        assert same and seen == told, (tag, ours, theirs)

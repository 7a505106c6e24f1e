"""Strides of results, which are PyTorch's: of linear algebra by columns, of images as their inputs lie in memory."""

import pytest

import taeda

torch = pytest.importorskip("torch")

#: Calls of linear algebra by name: of the framework and well-conditioned square matrices.
LINALG = {
    "cholesky": lambda t, x: t.linalg.cholesky(x @ x.mT),
    "cholesky_inverse": lambda t, x: t.cholesky_inverse(x),
    "cholesky_solve": lambda t, x: t.cholesky_solve(x, x),
    "cholesky upper": lambda t, x: t.linalg.cholesky(x @ x.mT, upper=True),
    "eig": lambda t, x: t.linalg.eig(x),
    "eigh": lambda t, x: t.linalg.eigh(x + x.mT),
    "inv": lambda t, x: t.linalg.inv(x),
    "inv_ex": lambda t, x: t.linalg.inv_ex(x),
    "lu": lambda t, x: t.linalg.lu(x),
    "lu_factor": lambda t, x: t.linalg.lu_factor(x),
    "lu_solve": lambda t, x: t.linalg.lu_solve(*t.linalg.lu_factor(x), x),
    "lu_solve right": lambda t, x: t.linalg.lu_solve(*t.linalg.lu_factor(x), x, left=False),
    "matrix_power": lambda t, x: t.linalg.matrix_power(x, -1),
    "qr": lambda t, x: t.linalg.qr(x),
    "qr of columns": lambda t, x: t.linalg.qr(x[..., :1]),
    "qr complete": lambda t, x: t.linalg.qr(x[..., :3], mode="complete"),
    "qr r": lambda t, x: t.linalg.qr(x[..., :3, :], mode="r"),
    "solve": lambda t, x: t.linalg.solve(x, x[..., :3]),
    "solve right": lambda t, x: t.linalg.solve(x, x, left=False),
    "solve_triangular": lambda t, x: t.linalg.solve_triangular(x, x, upper=True),
    "solve_triangular right": lambda t, x: t.linalg.solve_triangular(x, x, upper=True, left=False),
    "svd": lambda t, x: t.linalg.svd(x),
}
MATRICES = {
    "one": lambda x: x[0],
    "batch": lambda x: x,
    "batch by columns": lambda x: x.mT,
    "by columns": lambda x: x[0].mT,
}
#: Calls that keep, or do not keep, the order in which an image lies in memory.
MOVES = {
    "adaptive_avg_pool2d": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 1),
    "flip": lambda t, x: x.flip(1, 3),
    "rot90": lambda t, x: (x.rot90(1, (2, 3)), x.rot90(0, (2, 3)), x.rot90(2, (2, 3))),
    "sort": lambda t, x: (*x.sort(1), *x.sort(), x.argsort(0)),
}
IMAGES = {
    "contiguous": lambda t, x: x,
    "channels last": lambda t, x: x.contiguous(memory_format=t.channels_last),
    "one image with channels last": lambda t, x: x[:1].contiguous(memory_format=t.channels_last),
    "permuted": lambda t, x: x.permute(1, 0, 3, 2),
    "reversed": lambda t, x: x.permute(3, 2, 1, 0),
    "sliced": lambda t, x: x[..., ::2],
}


def strides(result):
    return [x.stride() for x in (result if isinstance(result, (tuple, list)) else (result,))]


@pytest.mark.parametrize("size", [4, 40])
@pytest.mark.parametrize("form", MATRICES)
def test_linear_algebra_by_columns(form, size):
    plain = torch.randn(2, size, size) + 2 * size * torch.eye(size)
    differ = {}
    for name, call in LINALG.items():
        want = strides(call(torch, MATRICES[form](plain)))
        got = strides(call(taeda, MATRICES[form](taeda.from_numpy(plain.numpy()))))
        if got != want:
            differ[name] = (got, want)
    assert not differ


@pytest.mark.parametrize("form", IMAGES)
def test_images_stay_as_they_lie(form):
    plain = torch.randn(2, 3, 4, 6)
    for name, call in MOVES.items():
        want = strides(call(torch, IMAGES[form](torch, plain)))
        assert strides(call(taeda, IMAGES[form](taeda, taeda.from_numpy(plain.numpy())))) == want, name


@pytest.mark.parametrize("batch", [(), (2,)])
def test_pooled_volumes(batch):
    plain = torch.randn(*batch, 4, 4, 4, 3)
    order = (0, 4, 1, 2, 3) if batch else (3, 0, 1, 2)
    for call in (
        lambda t, x: t.nn.functional.max_pool3d(x, 2, return_indices=True),
        lambda t, x: t.nn.functional.max_pool3d(x, 2),
        lambda t, x: t.nn.functional.adaptive_avg_pool3d(x, 1),
    ):
        want = strides(call(torch, plain.permute(order)))
        assert strides(call(taeda, taeda.from_numpy(plain.numpy()).permute(order))) == want


def test_expanded():
    def calls(t):
        yield from (t.ones(5).expand(1, 1, 5), t.ones(1, 5).expand(1, 1, 5), t.ones(3, 1).expand(2, 1, 3, 4))
        yield from (t.ones(1).expand(1, 1), t.tensor(1.0).expand(1, 1, 1), t.ones(5)[::2].expand(1, 3))
        yield from (t.ones(4, 5).t().expand(1, 5, 4), t.ones(5).expand_as(t.ones(1, 5)), t.ones(4).expand(1, 3, 4))
        yield from t.broadcast_tensors(t.ones(5), t.ones(1, 1, 1))

    assert [x.stride() for x in calls(taeda)] == [x.stride() for x in calls(torch)]


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_convolutions_of_channels_last(n, dtype):
    """One operand with channels last is enough."""

    def calls(t):
        form, F = (t.channels_last, t.channels_last_3d)[n - 2], t.nn.functional
        x, w = (t.ones(*size, *(4,) * n, dtype=getattr(t, dtype)) for size in ((2, 3), (3, 3)))
        for a, b in ((x, w), (x.to(memory_format=form), w), (x, w.to(memory_format=form))):
            for name in ("conv", "conv_transpose"):
                yield getattr(F, f"{name}{n}d")(a, b, padding=1)

    assert [x.stride() for x in calls(taeda)] == [x.stride() for x in calls(torch)]


#: Entries of the operator database that are compared by default; the sweep compares all.
SAMPLE = (
    "add", "clamp", "clone", "exp", "fft.hfft", "fft.ifftn", "fft.ihfft2", "full_like", "index_put", "kthvalue",
    "masked_fill", "mul", "nn.functional.group_norm", "nn.functional.max_unpool2d", "put", "slice_scatter", "view_copy",
    "nn.functional.instance_norm", "nn.functional.relu", "renorm", "zeros_like",
)  # fmt: skip


@pytest.mark.parametrize("name", SAMPLE)
def test_strides_of_entries(name):
    pytest.importorskip("expecttest", reason="the database imports it")
    from .opdb.checks import entries
    from .opdb.layouts import check

    assert not check(entries()[name])


@pytest.mark.sweep
@pytest.mark.timeout(0)
def test_strides_of_every_entry():
    pytest.importorskip("expecttest", reason="the database imports it")
    from .opdb.checks import entries
    from .opdb.exceptions import LAYOUTS
    from .opdb.layouts import check

    differ = {name: bad for name, op in entries().items() if (bad := check(op, 3))}
    assert {name: differ[name] for name in differ if name not in LAYOUTS} == {}
    assert sorted(LAYOUTS - set(differ)) == []  # an entry that agrees by now is no exception


SINGLE = {
    "add": lambda t, x: x + x,
    "add a number": lambda t, x: x + 1,
    "add a row": lambda t, x: x + x[:, :, :1, :1],
    "batch_norm": lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True),
    "clone": lambda t, x: x.clone(),
    "compare": lambda t, x: x > 0,
    "contiguous": lambda t, x: x.contiguous(memory_format=t.channels_last),
    "double": lambda t, x: x.double(),
    "empty_like": lambda t, x: t.empty_like(x),
    "relu": lambda t, x: t.relu(x),
    "zeros_like": lambda t, x: t.zeros_like(x),
}


@pytest.mark.parametrize("shape", [(2, 3, 1, 1), (2, 1, 4, 5), (1, 3, 4, 1), (2, 3, 4, 5), (1, 1, 1, 2)])
def test_dimensions_of_one_element(shape):
    theirs = torch.empty(shape, memory_format=torch.channels_last).zero_()
    ours = taeda.empty_strided(shape, theirs.stride()).zero_()
    for name, call in SINGLE.items():
        assert call(taeda, ours).stride() == call(torch, theirs).stride(), name

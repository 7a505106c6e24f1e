"""taeda.masked, segment_reduce and the ``_scatter`` forms of views against PyTorch, with gradients."""

import pytest

torch = pytest.importorskip("torch")

import taeda  # noqa: E402

from .peer import compare, gradients  # noqa: E402

X = torch.tensor([[1.0, -2.0, 0.5, 3.0], [0.25, 4.0, -1.0, 2.0], [2.0, 2.5, -3.0, 1.0]], dtype=torch.float64)
MASK = torch.tensor([[True, False, True, True], [False, False, False, False], [True, True, True, False]])
REDUCTIONS = ("sum", "prod", "mean", "amax", "amin", "var", "std", "norm", "logsumexp")


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dim", [None, 1, (0, 1), -2])
def test_reductions(name, dim):
    for mask in (None, MASK, MASK[:, :1]):
        for keepdim in (False, True):

            def call(framework, x, mask=mask, keepdim=keepdim):
                return getattr(framework.masked, name)(
                    x, dim=dim, keepdim=keepdim, mask=None if mask is None else framework.tensor(mask.tolist())
                )

            compare(name, call, X)
            if dim is not None and mask is None:
                gradients(name, call, X)


@pytest.mark.parametrize(
    "name", ["cumsum", "cumprod", "softmax", "log_softmax", "softmin", "median", "argmax", "argmin"]
)
def test_along(name):
    for dim in (0, 1):
        compare(name, lambda f, x, m, dim=dim: getattr(f.masked, name)(x, dim, mask=m), X, MASK)
        compare(name, lambda f, x, dim=dim: getattr(f.masked, name)(x, dim), X)


def test_others():
    compare("normalize", lambda f, x, m: f.masked.normalize(x, 2.0, 1, mask=m), X, MASK)
    compare("logaddexp", lambda f, x, m: f.masked.logaddexp(x, x * 2, input_mask=m, other_mask=~m), X, MASK)
    compare("sum", lambda f, x, m: f.masked.sum(x, 1, mask=m), X.to(torch.int32), MASK)
    compare("amax", lambda f, x, m: f.masked.amax(x, 1, mask=m), X.to(torch.int8), MASK)
    compare("rank", lambda f, x, m: f.masked.sum(x[0], 0, mask=m), X, MASK, raises=IndexError)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod", "amax", "amin"])
@pytest.mark.parametrize("initial", [None, 2.0])
def test_segment_reduce(reduce, initial):
    for axis, lengths in ((0, [2, 0, 1]), (1, [[1, 3, 0], [4, 0, 0], [0, 2, 2]])):

        def call(framework, x, axis=axis, lengths=lengths):
            lengths = framework.tensor(lengths)
            return framework.segment_reduce(x, reduce, lengths=lengths, axis=axis, unsafe=False, initial=initial)

        compare(reduce, call, X)
        gradients(reduce, call, X)
    for bad in ([2, 2], [-1, 4]):
        compare("bad", lambda f, x, bad=bad: f.segment_reduce(x, reduce, lengths=f.tensor(bad)), X, raises=RuntimeError)
    compare("offsets", lambda f, x: f.segment_reduce(x, reduce, offsets=f.tensor([0, 1, 3]), initial=initial), X)


def test_scatters_of_views():
    src = torch.full((2, 2), 9.0, dtype=torch.float64)
    for call in (
        lambda f, x, s: f.as_strided_scatter(x, s, (2, 2), (4, 1), 1),
        lambda f, x, s: f.slice_scatter(x, s[:, :1].expand(2, 4), 0, 1),
        lambda f, x, s: f.select_scatter(x, s.reshape(-1), 0, 2),
        lambda f, x, s: f.diagonal_scatter(x, s[0], 2),
    ):
        compare("scatter", call, X, src)
    for call in (
        lambda f, x, s: f.slice_scatter(x, s[:, :1].expand(2, 4), 0, 1),
        lambda f, x, s: f.select_scatter(x, s.reshape(-1), 0, 2),
        lambda f, x, s: f.diagonal_scatter(x, s[0], 2),
    ):
        gradients("scatter", call, X, src)
    x, s = (taeda.randn(3, 4, dtype=taeda.float64, requires_grad=True), taeda.ones(2, 2, dtype=taeda.float64))
    s.requires_grad_()
    assert taeda.autograd.gradcheck(lambda x, s: taeda.as_strided_scatter(x, s, (2, 2), (4, 1), 1), (x, s))


def test_small_ops():
    for size in (0, 3, 20):
        compare("nonzero_static", lambda f, x, size=size: f.nonzero_static(x > 0, size=size, fill_value=-2), X)
    compare("nonzero_static", lambda f, x: f.nonzero_static(x, size=-1), X, raises=RuntimeError)
    compare("chunk_cat", lambda f, x: f._chunk_cat([x, x[:, :3]], 1, 2), X)
    compare("hash", lambda f, x: f.hash_tensor(x, 1).view(f.int64), X)
    compare("unravel_index", lambda f, x: f.unravel_index(x.to(f.uint8).abs() % 4, (2, 2)), X.abs())
    compare("take_along_dim", lambda f, x: f.take_along_dim(x, f.tensor([[-1, 0, -4, 2]]), 1), X)


# ---- MaskedTensor -------------------------------------------------------------------------------------------------------

OF_MASKED = """
x; x.sum(); x.sum(1); x.mean(0); x.prod(1); x.amax(1); x.amin(0); x.argmax(1); x.argmin(0); x.sum(1, keepdim=True)
t.sum(x, 1); x.std(); x.var(0); x.all(); x.amax(); t.mean(x, 0); x + 1; 1 + x; x + x; x * d; t.sqrt(x); x.exp(); -x
x > 2; x == x; x.to_tensor(9.0); x.get_data(); x.get_mask(); x.reshape(3, 2); x.t(); x[0]; t.where(m, x, x)
t.where(m, x, d); t.where(m, d, x)
t.softmax(x, 1); t.cat([x, x]); t.stack([x, x]); x.expand(2, 2, 3); x.unsqueeze(0); x.float(); x.clone(); x[:, 1:]
t.ones_like(x); x.clamp(0, 1); x**2; x / 2; t.maximum(x, x); x.int(); x.bool(); x.add_(1); x.round(); x.select(0, 0)
x.sum(0).to_tensor(0.0); t.masked.masked_tensor(t.arange(6), t.arange(6) > 2); t.isnan(x); x.detach()
t.masked.masked_tensor(t.tensor(3.0), t.tensor(True)); t.masked.masked_tensor(t.tensor(3.0), t.tensor(False))
t.masked.is_masked_tensor(x), t.masked.is_masked_tensor(d), x.shape, x.requires_grad
"""
OF_MASKED = [code.strip() for line in OF_MASKED.strip().splitlines() for code in line.split(";")]
GRADIENTS = [
    "(x * 2).sum()", "x.mean(1).sum()", "x.amax(1).sum()", "x.sqrt().sum()", "x.to_tensor(0.0).sum()", "x.std()",
    "x.prod(1).sum()", "x.exp().mean()", "(x * d).sum()", "(x * x).sum()", "x.t().sum()", "x.get_data().sum()",
    "x.reshape(3, 2).sum(1).sum()", "t.where(m, x.exp(), t.masked.masked_tensor(d, ~m)).sum()",
]  # fmt: skip
REFUSED = [
    "x + t.masked.masked_tensor(d, ~m)", "t.matmul(x, d.t())", "t.masked.masked_tensor(d, m.int())",
    "t.masked.masked_tensor(d, m[0])", "t.masked.masked_tensor([1.0], m)", "t.masked.masked_tensor(x, m)",
    "t.cumsum(x, 1)", "t.cat([x, d])", "t.stack([d, x])", "t.masked.masked_tensor(d, m.to_sparse())",
    "x.to_sparse_coo() + x",
]  # fmt: skip


def _names(t, requires_grad=False):
    d = t.arange(1.0, 7.0, dtype=t.float64).reshape(2, 3)
    m = t.tensor([[True, False, True], [False, False, True]])
    return {"t": t, "d": d, "m": m, "x": t.masked.masked_tensor(d, m, requires_grad=requires_grad)}


@pytest.mark.parametrize("code", OF_MASKED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_masked_tensor(code):
    expected, got = (eval(code, _names(t)) for t in (torch, taeda))
    assert repr(got).replace("taeda.", "torch.") == repr(expected)


@pytest.mark.parametrize("code", GRADIENTS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gradients_of_masked_tensors(code):
    shown = []
    for t in (torch, taeda):
        names = _names(t, True)
        eval(code, names).backward()
        shown.append(repr(names["x"].grad))
    assert shown[1] == shown[0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_masked_tensor_of_part_of_the_graph():
    shown = []
    for t in (torch, taeda):
        names = _names(t)
        leaf = names["d"].clone().requires_grad_()
        t.masked.as_masked_tensor(leaf * 2, names["m"]).sum().to_tensor(0.0).backward()
        shown.append(repr(leaf.grad))
    assert shown[1] == shown[0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_gradient_of_a_choice_that_is_the_result():
    shown = []
    for t in (torch, taeda):
        x = t.masked.masked_tensor(t.tensor(2.0), t.tensor(True), requires_grad=True)
        for chosen in (False, True):
            y = t.where(t.tensor(chosen), x / 4, t.ones(()))
            shown.append(repr((y, t.autograd.grad(y, x))))
    assert shown[2:] == shown[:2]


SPARSE = [
    "x.to_sparse_coo()", "x.to_sparse()", "x.to_sparse_csr()", "c.to_dense()", "c.get_data()", "r.get_data()",
    "c.get_mask()", "c.layout, r.layout, x.layout, c.is_sparse, r.is_sparse, x.is_sparse, c.shape, r.dtype",
    "c.is_sparse_coo(), r.is_sparse_coo(), r.is_sparse_csr(), x.is_sparse_csr()", "c.sin()", "-r", "c * 2", "c + c",
    "(r / r).get_data()", "c.sum()", "c.amin()", "d + c.pow(2).get_data()", "c.sqrt().add(1.0)",
    "t.masked.masked_tensor(d.to_sparse(), c.get_mask())", "t.masked.masked_tensor(d.to_sparse_csr(), r.get_mask())",
    "t.masked.masked_tensor(d.to_sparse(), c.get_mask()).get_data()",
]  # fmt: skip


@pytest.mark.parametrize("code", SPARSE)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sparse_masked_tensors(code):
    shown = []
    for t in (torch, taeda):
        names = _names(t)
        names |= {"c": names["x"].to_sparse_coo(), "r": names["x"].to_sparse_csr()}
        shown.append(repr(eval(code, names)).replace("taeda.", "torch."))
    assert shown[1] == shown[0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gradients_through_sparse_masked_tensors():
    for name in ("to_sparse_coo", "to_sparse_csr"):
        x = _names(taeda, True)["x"]
        (getattr(x, name)() * 2).sum().backward()
        assert repr(x.grad) == repr(taeda.masked.masked_tensor(taeda.full_like(x.get_data(), 2.0), x.get_mask()))


def test_a_masked_tensor_is_not_written_to_a_tensor_without_a_mask():
    names = _names(taeda)
    before = names["d"].tolist()
    for code in ("d.add_(x)", "d.copy_(x)"):
        with pytest.raises(TypeError, match="to_tensor"):
            eval(code, names)
    assert names["d"].tolist() == before


@pytest.mark.parametrize("code", REFUSED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_masked_tensors_refuse(code):
    kinds = []
    for t in (torch, taeda):
        with pytest.raises((TypeError, ValueError)) as found:
            eval(code, _names(t))
        kinds.append(found.type)
    assert kinds[1] is kinds[0]

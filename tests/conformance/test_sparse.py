"""Sparse tensors in coordinate form and sparse gradients, against PyTorch."""

import copy
import io
import pickle
import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")

from . import peer  # noqa: E402

BOTH = (torch, taeda)


def sample(framework):
    indices = framework.tensor([[0, 1, 1, 0], [2, 0, 0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return framework.sparse_coo_tensor(indices, framework.tensor([3.0, 4.0, -5.0, 1.0]), (2, 3))


def dense(x):
    return x.to_dense() if x.is_sparse else x


CASES = {
    "to_dense": lambda f, s: s.to_dense(),
    "coalesced values": lambda f, s: s.coalesce().values(),
    "coalesced indices": lambda f, s: s.coalesce().indices(),
    "add": lambda f, s: s + s,
    "sub": lambda f, s: s - s * 3,
    "alpha": lambda f, s: f.add(s, s, alpha=2),
    "mul": lambda f, s: s * 2.5,
    "rmul": lambda f, s: 2.5 * s,
    "div": lambda f, s: s / 4,
    "neg": lambda f, s: -s,
    "abs": lambda f, s: s.abs(),
    "pow": lambda f, s: s.pow(2),
    "asinh": lambda f, s: s.asinh(),
    "frac": lambda f, s: (s / 4).frac(),
    "sgn": lambda f, s: f.sgn(s),
    "isnan": lambda f, s: s.isnan(),
    "int": lambda f, s: s.int(),
    "functional relu": lambda f, s: f.nn.functional.relu(s),
    "csr isinf": lambda f, s: s.to_sparse_csr().isinf().to_sparse_coo(),
    "entries that stay apart": lambda f, s: f.tensor([x._nnz() for x in (-s, s.double(), s.abs())]),
    "dense sub": lambda f, s: f.ones(2, 3) - s,
    "dense sub alpha": lambda f, s: f.sub(f.ones(2, 3), s, alpha=2),
    "any": lambda f, s: s.any(),
    "any infinity": lambda f, s: s.isinf().any(),
    "empty_like": lambda f, s: f.tensor([f.empty_like(s)._nnz(), f.empty_like(s, dtype=f.float64).element_size()]),
    "zeros_like": lambda f, s: f.zeros_like(s, dtype=f.float64),
    "mask of a sparse one": lambda f, s: s.sparse_mask(f.eye(2, 3).to_sparse() + f.ones(2, 3).to_sparse()),
    "mask of fewer": lambda f, s: s.coalesce().sparse_mask(f.eye(2, 3).to_sparse()),
    "low rank": lambda f, s: (f.manual_seed(0), f.svd_lowrank(s.coalesce(), 1)[1])[1],
    "principal components": lambda f, s: (f.manual_seed(0), f.pca_lowrank(s.coalesce(), 1)[1])[1],
    "dense add": lambda f, s: f.ones(2, 3) + s,
    "dense add_": lambda f, s: f.ones(2, 3).add_(s, alpha=-0.5),
    "mm": lambda f, s: f.sparse.mm(s, f.arange(6.0).reshape(3, 2)),
    "matmul": lambda f, s: s @ f.arange(6.0).reshape(3, 2),
    "mv": lambda f, s: f.mv(s, f.arange(3.0)),
    "bmm": lambda f, s: f.bmm(f.stack([s, s * 2]).coalesce(), f.arange(12.0).reshape(2, 3, 2)),
    "addmm": lambda f, s: f.sparse.addmm(f.ones(2, 2), s, f.arange(6.0).reshape(3, 2), beta=2, alpha=3),
    "t": lambda f, s: s.t(),
    "transpose": lambda f, s: s.transpose(0, 1),
    "mT": lambda f, s: s.mT,
    "H": lambda f, s: (s * 1j).H,
    "mH": lambda f, s: (s * 1j).mH,
    "stack": lambda f, s: f.stack([s, s * 2]),
    "stack in the middle": lambda f, s: f.stack((s, s), 1),
    "mT of a batch": lambda f, s: s.unsqueeze(0).mT,
    "csr mT": lambda f, s: s.to_sparse_csr().mT.to_sparse_coo(),
    "csr H": lambda f, s: (s.to_sparse_csr() * 1j).H.to_sparse_coo(),
    "unbind": lambda f, s: f.unbind(s.coalesce(), 1)[2],
    "iterated": lambda f, s: list(s.coalesce())[1],
    "sum": lambda f, s: s.sum(),
    "sum of integers": lambda f, s: s.to(f.int8).sum(0),
    "sum 0 of integers": lambda f, s: f.sparse.sum(s.to(f.int8), 0),
    "sum 0": lambda f, s: f.sparse.sum(s, 0),
    "sum 1": lambda f, s: f.sparse.sum(s, [1]),
    "norm": lambda f, s: s.norm(),
    "softmax": lambda f, s: f.sparse.softmax(s, 1),
    "log_softmax": lambda f, s: f.sparse.log_softmax(s, 0),
    "double": lambda f, s: s.double(),
    "clone": lambda f, s: s.clone().mul_(3),
    "zero": lambda f, s: s.clone().zero_(),
    "deepcopy": lambda f, s: copy.deepcopy(s),
    "pickle": lambda f, s: pickle.loads(pickle.dumps(s)),
    "to_sparse": lambda f, s: f.eye(3).to_sparse(),
    "to_sparse 1": lambda f, s: f.tensor([[0.0, 1.0], [0.0, 0.0]]).to_sparse(1),
    "infers the size": lambda f, s: f.sparse_coo_tensor(f.tensor([[0, 2]]), f.ones(2, 3)),
    "no entries": lambda f, s: f.sparse_coo_tensor(size=(2, 3)) if f is torch else f.sparse_coo_tensor((2, 3)),
}


@pytest.mark.parametrize("act", [lambda s: s.cos(), lambda s: s.pow(0), lambda s: s.isfinite(), lambda s: s.fill_(1)])
def test_ops_that_do_not_keep_zero_are_refused(act):
    for f in BOTH:
        with pytest.raises(RuntimeError):
            act(sample(f))


@pytest.mark.parametrize("name", CASES)
def test_value(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, got = (CASES[name](f, sample(f)) for f in BOTH)
    assert got.is_sparse == want.is_sparse
    peer.close(dense(got), dense(want))


def test_the_sum_of_coalesced_tensors_is_coalesced():
    def kept(f):
        a = sample(f).coalesce()
        b = f.eye(2, 3).to_sparse()
        c = a.clone().add_(a * a, alpha=2)
        return [(s._nnz(), s.is_coalesced(), s._values().tolist()) for s in (a + b, a - a, c)] + [
            (b + sample(f)).is_coalesced()
        ]

    assert kept(taeda) == kept(torch)


def test_fewer_than_two_entries_are_coalesced():
    def kept(f):
        def entries(n, **kwargs):
            return f.sparse_coo_tensor(f.zeros((1, n), dtype=f.int64), f.ones(n), (3,), **kwargs)

        sums = [entries(a) + entries(b) for a in range(3) for b in range(3)]
        return (
            [(s.is_coalesced(), s.to_dense().tolist()) for s in sums],
            [entries(n).is_coalesced() for n in range(3)],
            [entries(n, is_coalesced=False).is_coalesced() for n in range(2)],
        )

    assert kept(taeda) == kept(torch)


@pytest.mark.parametrize("value", [3.0, 0.0])
def test_tensors_without_dimensions(value):
    def kept(f):
        x = f.tensor(value, requires_grad=True)
        s = x.to_sparse()
        (2 * s.to_dense()).backward()
        made = (s, s * s, s * f.tensor(2.0), s.t(), f.tensor(1.0).sparse_mask(s), x.to_sparse_coo())
        return x.grad.tolist(), [
            (m.sparse_dim(), m.is_coalesced(), tuple(m._indices().shape), m._values().tolist(), m.to_dense().tolist())
            for m in made
        ]

    assert kept(taeda) == kept(torch)
    for n in (-1, 1):
        for f in BOTH:
            with pytest.raises(RuntimeError):
                f.tensor(value).to_sparse(n)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16"])
def test_dtype_without_dimensions(dtype):
    def kept(f):
        s = f.sparse_coo_tensor(f.zeros(0, 3, dtype=f.int64), f.tensor([1, 1, 255]).to(getattr(f, dtype)), ())
        return str(s.to_dense().dtype).rpartition(".")[2], s.to_dense().item()

    assert kept(taeda) == kept(torch)


def test_what_it_says_of_itself():
    want, got = sample(torch), sample(taeda)
    for ask in ("sparse_dim", "dense_dim", "_nnz", "is_coalesced", "dim", "numel"):
        assert getattr(got, ask)() == getattr(want, ask)(), ask
    assert tuple(got.shape) == tuple(want.shape) and got.layout is taeda.sparse_coo
    assert repr(got).replace("taeda", "torch") == repr(want)
    assert str(got.dtype) == "taeda.float32"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda f, s: s.values(),
        lambda f, s: s.indices(),
        lambda f, s: s + 1,
        lambda f, s: f.sparse.mm(s, f.ones(2, 2)),
        lambda f, s: f.bmm(f.stack([s, s]), f.ones(2, 4, 2)),
        lambda f, s: f.bmm(f.stack([s, s]), f.ones(3, 2)),
        lambda f, s: f.sparse_coo_tensor(f.tensor([[0, 5]]), f.ones(2), (3,), check_invariants=True),
        lambda f, s: f.sparse_coo_tensor(f.tensor([[0, 1]]), f.ones(3), (3,), check_invariants=True),
        lambda f, s: s.cumsum(0),
    ],
)
def test_errors(wrong):
    for f in BOTH:
        with pytest.raises(RuntimeError):  # NotImplementedError among them
            wrong(f, sample(f))


def test_gradients():
    found = []
    for f in BOTH:
        values = f.tensor([1.0, 2.0, 3.0], requires_grad=True)
        right = f.arange(6.0).reshape(3, 2).requires_grad_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            s = f.sparse_coo_tensor(f.tensor([[0, 1, 0], [2, 0, 1]]), values, (2, 3))
        (f.sparse.mm(s, right).pow(2).sum() + s.to_dense().pow(3).sum()).backward()
        found.append((values.grad, right.grad))
    peer.close(found[1], found[0])


def embeddings(f, layer):
    layer = getattr(f.nn, layer)(
        6, 3, sparse=True, **({"mode": "sum"} if layer == "EmbeddingBag" else {"padding_idx": 1})
    )
    with f.no_grad():
        layer.weight.copy_(f.arange(18.0).reshape(6, 3))
    return layer


@pytest.mark.parametrize("layer", ["Embedding", "EmbeddingBag"])
def test_sparse_gradient_of_an_embedding(layer):
    found = []
    for f in BOTH:
        made = embeddings(f, layer)
        steps = []
        for rows in ([[0, 2], [2, 1]], [[3, 0], [5, 5]]):  # the second adds to the first
            made(f.tensor(rows)).pow(2).sum().backward()
            assert made.weight.grad.is_sparse
            steps.append(made.weight.grad.to_dense())
        made.weight.sum().backward()
        assert not made.weight.grad.is_sparse
        found.append([*steps, made.weight.grad])
    peer.close(found[1], found[0])


@pytest.mark.parametrize(
    "name, kwargs", [("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adagrad", {}), ("SparseAdam", {})]
)
def test_training_with_sparse_gradients(name, kwargs):
    found = []
    for f in BOTH:
        made = embeddings(f, "Embedding")
        optimizer = getattr(f.optim, name)(made.parameters(), **kwargs)
        for rows in ([0, 2, 2], [1, 4], [5, 0, 0, 3]):
            optimizer.zero_grad()
            made(f.tensor(rows)).sin().sum().backward()
            optimizer.step()
        found.append(made.weight.detach())
    peer.close(found[1], found[0])


@pytest.mark.parametrize("framework", BOTH)
def test_new_and_the_names_of_types_take_indices_values_and_a_size(framework):
    """What ``new`` of a strided tensor refuses: programs of PyTorch 0.4 made sparse tensors so."""
    s, indices, values = sample(framework), framework.tensor([[0, 1], [1, 2]]), framework.tensor([1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for make in (s.new, framework.sparse.FloatTensor):
            assert make(indices, values, (3, 4)).to_dense()[1].tolist() == [0.0, 0.0, 2.0, 0.0]
            assert make(indices, values).shape == (2, 3)
            assert [tuple(make(*size).shape) for size in ((2, 3), (framework.Size([2, 3]),), ())] == [
                (2, 3),
                (2, 3),
                (0,),
            ]
        assert s.new(indices, values.double(), (3, 4)).dtype == framework.float64
        for wrong in ([2, 3], s, values):
            with pytest.raises(TypeError):
                s.new(wrong)
        with pytest.raises(TypeError):
            values.new(indices, values, (3, 4))


@pytest.mark.parametrize("framework", BOTH)
def test_a_product_of_sparse_matrices_has_the_places_that_entries_meet(framework):
    """Entries that are 0 are kept, and no dense matrix is made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left = framework.sparse_coo_tensor(
            framework.tensor([[0, 2, 0], [1, 1, 0]]), framework.tensor([0.0, 2.0, 3.0]), (3, 2)
        )
        right = framework.sparse_coo_tensor(
            framework.tensor([[1, 1, 0, 1], [2, 0, 1, 2]]), framework.tensor([1.0, 4.0, 5.0, -3.0]), (2, 3)
        )
        product = left @ right
        assert product.is_coalesced()
        assert product.indices().tolist() == [[0, 0, 0, 2, 2], [0, 1, 2, 0, 2]]
        assert product.values().tolist() == [0.0, 15.0, 0.0, 8.0, -4.0]
        n = 300_000  # a dense result would have 360 GB
        large = framework.sparse_coo_tensor(
            framework.tensor([[5, n - 1], [n - 1, 7]]), framework.tensor([2.0, 3.0]), (n, n)
        )
        assert (large @ large).coalesce().indices().tolist() == [[5], [7]]


def test_gradients_of_a_difference_and_of_a_mask():
    found = []
    for f in BOTH:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, d = sample(f).coalesce().requires_grad_(), f.ones(2, 3, requires_grad=True)
            y = sample(f).coalesce().requires_grad_()
            (x.sparse_mask(f.eye(2, 3).to_sparse()).to_dense() * f.arange(6.0).reshape(2, 3)).sum().backward()
            ((d - y) ** 2).sum().backward()
            found.append((x.grad.to_dense() * (sample(f).to_dense() != 0), d.grad, y.grad.to_dense()))
    places = sample(taeda).to_dense() != 0  # of the rest of y, see docs/differences.md
    peer.close(found[1][:2], found[0][:2])
    assert ((found[1][2] - taeda.from_numpy(found[0][2].numpy())) * places).abs().max() == 0


def test_gradients_of_a_product_of_sparse_matrices():
    found = []
    for f in BOTH:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            left = f.sparse_coo_tensor(f.tensor([[0, 1], [0, 1]]), f.tensor([2.0, 3.0]), (2, 2)).requires_grad_()
            right = f.sparse_coo_tensor(
                f.tensor([[0, 1, 0], [1, 0, 0]]), f.tensor([5.0, 7.0, 11.0]), (2, 2)
            ).requires_grad_()
            ((left @ right).to_dense() * f.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
            places = left.detach().to_dense() != 0
            found.append(((left.grad.to_dense() * places).tolist(), right.grad.to_dense().tolist()))
    assert found[0] == found[1]


DUPLICATES = {
    "to_dense": lambda t, a, w: a.to_dense() ** 2,
    "mm": lambda t, a, w: t.sparse.mm(a, w),
    "sum": lambda t, a, w: t.sparse.sum(a) ** 2,
    "sum of rows": lambda t, a, w: t.sparse.sum(a, 0).to_dense() ** 2,
    "mul": lambda t, a, w: (a * a).to_dense(),
    "times 3": lambda t, a, w: (a * 3).to_dense() ** 2,
    "pow": lambda t, a, w: a.pow(2).to_dense(),
    "neg": lambda t, a, w: (-a).to_dense() ** 2,
    "add": lambda t, a, w: (a + a).to_dense() ** 2,
    "coalesce": lambda t, a, w: a.coalesce().values() ** 2,
    "t": lambda t, a, w: a.t().to_dense() ** 2,
    "addmm": lambda t, a, w: t.sparse.addmm(w, a, w) ** 2,
    "by a sparse one": lambda t, a, w: (a * w.to_sparse()).to_dense() ** 2,
}


@pytest.mark.parametrize("name", list(DUPLICATES))
def test_entries_of_one_place_have_its_gradient_once(name):
    found = []
    for t in (torch, taeda):
        values = t.tensor([1.0, 2.0, 3.0], dtype=t.float64)
        a = t.sparse_coo_tensor([[1, 1, 0], [2, 2, 1]], values, (3, 3), requires_grad=True)
        w = t.arange(9.0, dtype=t.float64).reshape(3, 3) + 1
        y = DUPLICATES[name](t, a, w)
        y.sum().backward()
        (again,) = t.autograd.grad(DUPLICATES[name](t, a, w).sum(), a)
        found.append((y.tolist(), a.grad.to_dense().tolist(), again.to_dense().tolist()))
    assert found[0] == found[1]
    a.grad = a.grad * 2
    assert a.grad.to_dense().tolist() == (again * 2).to_dense().tolist()


def test_a_tensor_as_target_gives_its_dtype_and_no_layout():
    for f in BOTH:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            coo, csr, strided = f.eye(2).to_sparse(), f.eye(2).to_sparse_csr(), f.ones(2, 2)
        for x in (coo, csr, strided):
            for other in (coo, csr, strided):
                made = x.to(other.double())
                assert made.layout is x.layout and made.dtype is f.float64
            made = x.type_as(x.double())
            assert made.layout is x.layout and made.dtype is f.float64


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin", "max", "min"])
def test_products_that_reduce(reduce):
    values = [[0.0, 2, -1], [0, 0, 0], [3, 0, 4]]
    right = [[1.0, -2], [3, 4], [-5, 6]]
    want = torch.sparse.mm(torch.tensor(values).to_sparse_csr(), torch.tensor(right), reduce)
    assert taeda.sparse.mm(taeda.tensor(values).to_sparse_csr(), taeda.tensor(right), reduce).tolist() == want.tolist()
    with pytest.raises(RuntimeError, match="prod"):
        taeda.sparse.mm(taeda.tensor(values).to_sparse_csr(), taeda.tensor(right), "prod")


#: Calls of the framework and a layout that give a tensor without entries, or that raise.
FACTORIES = {
    "zeros": lambda t, layout: t.zeros(2, 3, layout=layout, dtype=t.float64),
    "zeros of one dimension": lambda t, layout: t.zeros(3, layout=layout),
    "zeros of no dimensions": lambda t, layout: t.zeros((), layout=layout),
    "zeros of a size by name": lambda t, layout: t.zeros(size=(2, 3), layout=layout, requires_grad=True),
    "zeros on meta": lambda t, layout: t.zeros(2, 3, layout=layout, device="meta"),
    "zeros into out": lambda t, layout: t.zeros(2, 3, layout=layout, out=t.empty(0)),
    "zeros of a negative size": lambda t, layout: t.zeros(-1, 3, layout=layout),
    "empty": lambda t, layout: t.empty((2, 3), layout=layout, dtype=t.complex64, pin_memory=False),
    "empty of a batch": lambda t, layout: t.empty(2, 3, 4, layout=layout, memory_format=t.contiguous_format),
    "ones": lambda t, layout: t.ones(3, layout=layout),
    "arange": lambda t, layout: t.arange(3, layout=layout),
    "rand": lambda t, layout: t.rand(3, layout=layout),
    "new_zeros": lambda t, layout: t.ones(2, dtype=t.int64).new_zeros(2, 3, layout=layout),
    "new_empty": lambda t, layout: t.ones(2, dtype=t.int64).new_empty((2, 3), dtype=t.float16, layout=layout),
    "zeros_like": lambda t, layout: t.zeros_like(t.ones(2, 3), layout=layout),
    "empty_like": lambda t, layout: t.empty_like(t.ones(2, 3), layout=layout),
    "zeros_like of sparse": lambda t, layout: t.zeros_like(sample(t), layout=layout),
    "empty_like of sparse": lambda t, layout: t.empty_like(sample(t), layout=layout),
    "new_zeros of sparse": lambda t, layout: sample(t).new_zeros(2, 3, layout=layout),
    "new_empty of sparse as it is": lambda t, layout: sample(t).new_empty(4),
    "new_zeros of rows as they are": lambda t, layout: t.ones(2, 3).to_sparse_csr().new_zeros(4, 2),
    "zeros_like of rows": lambda t, layout: t.zeros_like(t.ones(2, 3).to_sparse_csr()),
    "empty_like of rows": lambda t, layout: t.empty_like(t.ones(2, 3).to_sparse_csr()),
}


def described(t, make, name):
    """Layout, sizes, dtype and entries of what is made; or that it raises."""
    try:
        x = make(t, getattr(t, name))
    except RuntimeError:
        return "raises"
    said = [str(x.layout).rpartition(".")[2], tuple(x.shape), str(x.dtype).rpartition(".")[2], x.requires_grad]
    said.append(x.device.type)
    if x.layout is t.sparse_coo:
        said += [x._nnz(), x.is_coalesced(), tuple(x._indices().shape), tuple(x._values().shape), x.sparse_dim()]
    elif x.layout is not t.strided:
        starts, others = (x.crow_indices, x.col_indices) if "csr" in str(x.layout) else (x.ccol_indices, x.row_indices)
        said += [tuple(starts().shape), tuple(others().shape), tuple(x.values().shape)]
    return said


@pytest.mark.parametrize("layout", ["strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
@pytest.mark.parametrize("name", FACTORIES)
def test_factories_make_tensors_without_entries(name, layout):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = described(torch, FACTORIES[name], layout)
    assert described(taeda, FACTORIES[name], layout) == theirs
    if theirs != "raises" and "zeros" in name and "meta" not in name:
        assert not FACTORIES[name](taeda, getattr(taeda, layout)).to_dense().any()


def test_a_product_goes_by_parts(monkeypatch):
    from taeda.ops import sparse_rules

    taeda.manual_seed(0)
    x = taeda.randn(7, 9).relu().to_sparse().requires_grad_()
    y = taeda.randn(9, 4, requires_grad=True)
    whole = taeda.sparse.mm(x, y)
    first = taeda.autograd.grad(whole.square().sum(), (x, y))
    monkeypatch.setattr(sparse_rules, "_AT_ONCE", 12)
    by_parts = taeda.sparse.mm(x, y)
    second = taeda.autograd.grad(by_parts.square().sum(), (x, y))
    assert taeda.equal(whole, by_parts)
    assert taeda.allclose(first[0].to_dense(), second[0].to_dense()) and taeda.allclose(first[1], second[1])


@pytest.mark.parametrize("other", ["float32", "float64", "int32"])
@pytest.mark.parametrize("own", ["float32", "int32"])
@pytest.mark.parametrize("name", ["add", "add_", "sub", "sub_", "mul", "mul_", "copy_"])
def test_dtypes_of_two_operands(name, own, other):
    def outcome(f, convert):
        x, y = convert(f, sample(f).coalesce()).to(getattr(f, own)), sample(f).coalesce().to(getattr(f, other))
        try:
            made = getattr(x, name)(y)
        except (RuntimeError, NotImplementedError):
            return "refused"
        assert (made is x) == name.endswith("_")
        return made.is_sparse, str(made.dtype).split(".")[-1], made.to_dense().tolist()

    both = [lambda f, s: s] if name == "copy_" else [lambda f, s: s, lambda f, s: f.ones(2, 3)]
    for convert in both:
        expected, made = (outcome(f, convert) for f in BOTH)
        assert made == expected, convert


def test_a_sum_with_an_integer_matrix_is_not_rounded():
    x = sample(taeda).coalesce() / 4
    assert (x + taeda.ones(2, 3, dtype=taeda.int32)).equal(x.to_dense() + 1)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_sparse_tensors_are_not_made_contiguous(layout):
    for t in BOTH:
        with pytest.raises(RuntimeError):
            t.eye(2).to_sparse(layout=getattr(t, layout)).contiguous()


def test_the_check_of_invariants_decorates_functions():
    for f in (torch, taeda):

        @f.sparse.check_sparse_tensor_invariants(enable=True)
        def double(x, f=f):
            return 2 * x if f.sparse.check_sparse_tensor_invariants.is_enabled() else x

        assert double(3) == 6


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_methods_asked_of_the_class(layout):
    """``Tensor.values(x)`` is ``x.values()``."""
    names = "values indices crow_indices col_indices ccol_indices row_indices _nnz sparse_dim dense_dim is_coalesced to_dense"
    seen = []
    for f in (torch, taeda):
        x = f.eye(4)
        x = x.to_sparse().coalesce() if layout == "sparse_coo" else getattr(x, f"to_{layout}")(*[2] * ("bs" in layout))
        seen.append([])
        for name in names.split():
            try:
                made = getattr(f.Tensor, name)(x)
                seen[-1].append(made.tolist() if isinstance(made, f.Tensor) else made)
            except RuntimeError:
                seen[-1].append("refused")
    assert seen[0] == seen[1]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32"])
def test_the_sum_of_entries_of_one_place(dtype):
    made = []
    for t in (taeda, torch):
        x = t.sparse_coo_tensor([[0, 0, 0]], t.tensor([1, 1, 255]).to(getattr(t, dtype)), (2,))
        made.append([t.sparse.sum(x).item(), t.sparse.sum(x, 0).item(), x.sum().item()])
    assert made[0] == made[1]


@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_a_file_is_read_to_device_meta(form):
    made = []
    for t in (taeda, torch):
        buffer = io.BytesIO()
        t.save(getattr(t.eye(3), form)(), buffer)
        buffer.seek(0)
        x = t.load(buffer, map_location="meta")
        made.append((str(x.device), str(x.layout).split(".")[1], tuple(x.shape), x._nnz()))
    assert made[0] == made[1]

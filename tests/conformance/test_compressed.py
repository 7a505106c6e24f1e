"""Sparse matrices compressed by rows or columns, and what lies between them and coordinate form, against PyTorch."""

import copy
import pickle
import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")

from . import peer  # noqa: E402

BOTH = (torch, taeda)


def dense(f):
    return f.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])


def right(f):
    return f.arange(6.0).reshape(3, 2)


CASES = {
    "starts of rows": lambda f, m: m.to_sparse_csr().crow_indices(),
    "columns": lambda f, m: m.to_sparse_csr().col_indices(),
    "starts of columns": lambda f, m: m.to_sparse_csc().ccol_indices(),
    "rows": lambda f, m: m.to_sparse_csc().row_indices(),
    "values by columns": lambda f, m: m.to_sparse_csc().values(),
    "mm": lambda f, m: f.mm(m.to_sparse_csr(), right(f)),
    "matmul": lambda f, m: m.to_sparse_csr() @ right(f),
    "mv": lambda f, m: m.to_sparse_csr().mv(f.arange(3.0)),
    "addmm": lambda f, m: f.addmm(f.ones(2, 2), m.to_sparse_csr(), right(f), beta=2, alpha=3),
    "csc mm": lambda f, m: m.to_sparse_csc() @ right(f),
    "sparse.mm": lambda f, m: f.sparse.mm(m.to_sparse_csr(), right(f)),
    "add": lambda f, m: (m.to_sparse_csr() + m.to_sparse_csr()).to_dense(),
    "mul": lambda f, m: (m.to_sparse_csr() * 2.5).values(),
    "neg": lambda f, m: (-m.to_sparse_csr()).values(),
    "double": lambda f, m: m.to_sparse_csr().to(f.float64).values(),
    "t": lambda f, m: m.to_sparse_csr().t().to_dense(),
    "sum": lambda f, m: m.to_sparse_csr().sum(),
    "coordinates": lambda f, m: m.to_sparse_csr().to_sparse_coo().coalesce().indices(),
    "from coordinates": lambda f, m: m.to_sparse().to_sparse_csr().col_indices(),
    "by layout": lambda f, m: m.to_sparse(layout=f.sparse_csr).values(),
    "made": lambda f, m: f.sparse_csr_tensor([0, 1, 3], [0, 0, 1], [1.0, 2.0, 3.0], (2, 2)).to_dense(),
    "made by columns": lambda f, m: f.sparse_csc_tensor([0, 1, 3], [0, 0, 1], [1.0, 2.0, 3.0], (2, 2)).to_dense(),
    "compressed": lambda f, m: f.sparse_compressed_tensor(
        [0, 1, 3], [0, 0, 1], [1.0, 2.0, 3.0], (2, 2), layout=f.sparse_csr
    ).to_dense(),
    "infers the size": lambda f, m: f.sparse_csr_tensor([0, 1, 3], [0, 0, 4], [1.0, 2.0, 3.0]).to_dense(),
    "sampled": lambda f, m: f.sparse.sampled_addmm(m.to_sparse_csr(), f.ones(2, 4), f.ones(4, 3), alpha=2).to_dense(),
    "pickle": lambda f, m: pickle.loads(pickle.dumps(m.to_sparse_csr())).to_dense(),
    "coo from csr": lambda f, m: f._convert_indices_from_csr_to_coo(f.tensor([0, 2, 2, 3]), f.tensor([1, 2, 0])),
    "csr from coo": lambda f, m: f._convert_indices_from_coo_to_csr(f.tensor([0, 0, 2]), 3),
    "spmm": lambda f, m: f.spmm(m.to_sparse(), right(f)),
    "smm": lambda f, m: f.smm(m.to_sparse(), right(f)).to_dense(),
    "cat": lambda f, m: f.cat([m.to_sparse(), m.to_sparse()], 1).to_dense(),
    "sparse times sparse": lambda f, m: (m.to_sparse() * (m + 1).to_sparse()).to_dense(),
    "row": lambda f, m: m.to_sparse()[1].to_dense(),
    "sparse_mask": lambda f, m: (m + 1).sparse_mask(m.to_sparse()).to_dense(),
    "spdiags": lambda f, m: f.sparse.spdiags(f.arange(9.0).reshape(3, 3), f.tensor([0, -1, 2]), (3, 3)).to_dense(),
}


@pytest.mark.parametrize("name", CASES)
def test_value(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, got = (CASES[name](f, dense(f)) for f in BOTH)
    peer.close(got, want)


def test_copies_are_independent():
    made = dense(taeda).to_sparse_csr()
    copied = copy.deepcopy(made)
    copied.values().zero_()
    assert made.values().tolist() == [1.0, 2.0, 3.0] and copied.to_dense().sum() == 0


def test_old_programs_make_them_by_the_name_of_a_type():
    made = taeda.sparse.FloatTensor(taeda.tensor([[0, 1], [1, 0]]), taeda.tensor([2.0, 3.0]), taeda.Size([2, 2]))
    assert made.is_sparse and made.to_dense().tolist() == [[0.0, 2.0], [3.0, 0.0]]


def test_what_it_says_of_itself():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for form in ("to_sparse_csr", "to_sparse_csc", "to_sparse"):
            for cast in ("float", "double", "long"):
                want, got = (getattr(getattr(dense(f), cast)(), form)() for f in BOTH)
                assert repr(got).replace("taeda", "torch") == repr(want)
                assert str(got.layout).rpartition(".")[2] == str(want.layout).rpartition(".")[2]
                assert (got.is_sparse_csr, got.is_sparse, got._nnz()) == (
                    want.is_sparse_csr,
                    want.is_sparse,
                    want._nnz(),
                )


def test_gradient_reaches_the_values():
    found = []
    for f in BOTH:
        values = f.tensor([1.0, 2.0, 3.0], requires_grad=True)
        x = right(f)[:2].clone().requires_grad_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matrix = f.sparse_csr_tensor(f.tensor([0, 1, 3]), f.tensor([1, 0, 1]), values, (2, 2))
            (matrix @ x).pow(2).sum().backward()
        found.append((values.grad, x.grad))
    peer.close(found[1], found[0])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda f: f.sparse_csr_tensor([0, 1, 4], [0, 0, 1], [1.0, 2.0, 3.0], (2, 2), check_invariants=True),
        lambda f: f.sparse_csr_tensor([0, 1, 3], [0, 0, 5], [1.0, 2.0, 3.0], (2, 2), check_invariants=True),
        lambda f: f.sparse_csr_tensor([0, 3], [0, 0, 1], [1.0, 2.0, 3.0], (2, 2), check_invariants=True),
        lambda f: dense(f).to_sparse_csc().crow_indices(),
        lambda f: dense(f).to_sparse_csr() @ dense(f),
        lambda f: dense(f).to_sparse_csr().cumsum(0),
    ],
)
def test_errors(wrong):
    for f in BOTH:
        with warnings.catch_warnings(), pytest.raises(RuntimeError):
            warnings.simplefilter("ignore")
            wrong(f)

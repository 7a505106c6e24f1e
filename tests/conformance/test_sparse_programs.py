"""Small programs over sparse tensors of every layout, against PyTorch: the same layout, entries, values and errors."""

import copy
import io
import pickle
import warnings

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")


def _samples(f, seed=0):
    """Tensors of each kind: the programs name those that they use."""
    rng = np.random.default_rng(seed)

    def coo(indices, values, size):
        return f.sparse_coo_tensor(f.tensor(indices), f.tensor(values, dtype=f.float64), size)

    dense = np.where(rng.random((4, 6)) < 0.4, rng.normal(size=(4, 6)), 0.0)
    dense[0, 1], dense[3, 5] = 1.5, -2.0
    d = f.tensor(dense.tolist(), dtype=f.float64)
    batch = f.stack([d, d * 2.0])
    hybrid = f.stack([d, d * 3.0 + (d != 0)], -1)
    return {
        "d": d,
        "s": d.to_sparse(),
        "u": coo([[0, 1, 1, 0, 3], [2, 0, 0, 1, 5]], [3.0, 4.0, -5.0, 1.0, 0.5], (4, 6)),
        "z": coo([[0, 1], [2, 0]], [3.0, 0.0], (4, 6)).coalesce(),
        "e": f.sparse_coo_tensor(size=(4, 6), dtype=f.float64),
        "h": hybrid.to_sparse(2),
        "hu": coo([[0, 1, 1], [2, 0, 0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (4, 6, 2)),
        "v": d[0].to_sparse(),
        "t3": batch.to_sparse(),
        "csr": d.to_sparse_csr(),
        "csc": d.to_sparse_csc(),
        "bsr": d.to_sparse_bsr((2, 2)),
        "bsc": d.to_sparse_bsc((2, 3)),
        "bcsr": batch.to_sparse_csr(),
        "bbsr": batch.to_sparse_bsr((2, 2)),
        "hcsr": hybrid.to_sparse_csr(dense_dim=1),
        "ecsr": f.zeros(4, 6, dtype=f.float64).to_sparse_csr(),
        "x": f.tensor(rng.normal(size=(6, 3)).tolist(), dtype=f.float64),
        "y": f.tensor(rng.normal(size=(4, 6)).tolist(), dtype=f.float64),
        "w": f.tensor(rng.normal(size=(6,)).tolist(), dtype=f.float64),
        "i": (d * 4).long().to_sparse(),
    }


class Given:
    def __init__(self, f):
        self.f = f
        for name, x in _samples(f).items():
            setattr(self, name, x)


COO = {
    "select": lambda f, g: [g.s[0], g.u[0], g.s[:, 1], g.h[0], g.h.select(2, 1), g.v[1], g.s[0, 1], g.z[1]],
    "select last": lambda f, g: [g.s[-1], g.u.select(1, -1), g.hu[1], g.hu[1, 0]],
    "select uncoalesced vector": lambda f, g: f.sparse_coo_tensor([[0, 0, 1]], [1.0, 2.0, 3.0], (3,))[0],
    "rows": lambda f, g: list(g.s),
    "unbind": lambda f, g: list(g.t3.unbind(0)),
    "permute": lambda f, g: [g.s.permute(1, 0), g.t3.permute(2, 0, 1), g.h.permute(1, 0, 2)],
    "permute dense": lambda f, g: f.stack([g.h.to_dense(), g.h.to_dense()], -1).to_sparse(2).permute(1, 0, 3, 2),
    "transpose": lambda f, g: [g.s.t(), g.u.t(), g.t3.transpose(0, 2), g.h.transpose(0, 1), g.v.t()],
    "index_select": lambda f, g: [
        g.s.index_select(0, f.tensor([3, 0, 0])),
        g.u.index_select(1, f.tensor([0, 2])),
        g.h.index_select(2, f.tensor([1, 0, 1])),
        g.s.index_select(0, f.tensor([], dtype=f.int64)),
    ],
    "narrow_copy": lambda f, g: [g.s.narrow_copy(0, 1, 2), g.u.narrow_copy(1, 0, 3), g.h.narrow_copy(2, 0, 1)],
    "unsqueeze": lambda f, g: [g.s.unsqueeze(0), g.s.unsqueeze(-1), g.h.unsqueeze(3), g.h.unsqueeze(1)],
    "squeeze": lambda f, g: g.s.unsqueeze(1).squeeze(1),
    "cat": lambda f, g: [f.cat([g.s, g.u]), f.cat([g.s, g.s], 1), f.cat([g.h, g.h], 0), f.cat([g.h, g.h], 2)],
    "stack": lambda f, g: [f.stack([g.s, g.u]), f.stack([g.s, g.s], 1), f.stack([g.s, g.s], 2)],
    "sum": lambda f, g: [f.sparse.sum(x) for x in (g.s, g.u, g.h, g.e)],
    "sum of dims": lambda f, g: [
        f.sparse.sum(g.s, 0),
        f.sparse.sum(g.u, 1),
        f.sparse.sum(g.h, 0),
        f.sparse.sum(g.h, 2),
        f.sparse.sum(g.h, (0, 2)),
        f.sparse.sum(g.h, (0, 1)),
        f.sparse.sum(g.s, (0, 1)),
        f.sparse.sum(g.t3, (0, 2)),
        f.sparse.sum(g.e, 0),
    ],
    "sum of dtype": lambda f, g: [f.sparse.sum(g.i, dtype=f.float32), f.sparse.sum(g.s, 0, dtype=f.float32)],
    "sum method": lambda f, g: [g.s.sum(), g.s.sum(0), g.s.sum((0, 1)), g.u.sum(-1), g.h.sum(2)],
    "sum keepdim": lambda f, g: [g.s.sum(0, keepdim=True), g.h.sum((1,), keepdim=True)],
    "mul dense": lambda f, g: [g.s * g.y, g.y * g.s, g.u * g.y, g.e * g.y],
    "mul row": lambda f, g: [g.s * g.y[:1], g.s * g.w],
    "mul column": lambda f, g: g.s * g.y[:, :1],
    "mul hybrid": lambda f, g: [g.h * g.h.to_dense(), g.h * f.tensor([2.0, 3.0], dtype=f.float64)],
    "mul broadcasts the sparse one": lambda f, g: [g.s * g.y.expand(2, 4, 6), g.v * g.y],
    "mul sparse": lambda f, g: [
        g.s * g.u.coalesce(),
        g.h * g.h,
        g.s * g.e,
        g.z * g.s,
        (g.u * g.s).to_dense(),
        (g.u * g.u).to_dense(),
    ],
    "mul scalar tensor": lambda f, g: [g.s * f.tensor(2.0), f.tensor(2.0) * g.s, g.s.mul(3)],
    "mul promotes": lambda f, g: [g.i * 2, g.i * 2.5, g.i * g.s, g.i.float() * g.s],
    "div": lambda f, g: [g.s / 2, g.i / 2, g.s.div(2, rounding_mode="floor"), g.u / f.tensor(4.0)],
    "floor_divide": lambda f, g: [g.s // 1, g.i // 2],
    "add": lambda f, g: [g.s + g.u, g.s - g.u, f.add(g.s, g.u, alpha=2), g.h + g.hu, g.s + g.e, g.i + g.s],
    "add dense": lambda f, g: [g.y + g.s, g.y - g.u, f.add(g.y, g.s, alpha=-2)],
    "add hybrid to dense": lambda f, g: g.h.to_dense() + g.hu,
    "add_": lambda f, g: [g.s.clone().add_(g.u), g.y.clone().add_(g.s), g.u.clone().sub_(g.s), g.y.clone().sub_(g.u)],
    "mul_": lambda f, g: [g.s.clone().mul_(2), g.s.clone().mul_(g.u.coalesce()), g.u.clone().mul_(g.s).to_dense()],
    "div_": lambda f, g: g.s.clone().div_(2),
    "unary": lambda f, g: [
        getattr(x, name)()
        for name in "abs neg sin tan asin atan sinh tanh asinh expm1 log1p sqrt ceil floor round trunc frac sign sgn "
        "square erf rad2deg deg2rad relu isnan isinf positive".split()
        for x in (g.s.abs() / 4, g.u / 8, g.e)
        if hasattr(x, name)
    ],
    "unary in place": lambda f, g: [
        getattr((g.s.abs() / 4).clone(), name + "_")()
        for name in "abs neg sin tan asin atan sinh tanh expm1 log1p sqrt ceil floor round trunc sign relu".split()
    ],
    "pow": lambda f, g: [g.s.pow(2), g.u.pow(3), g.s**2, f.pow(g.s, 2)],
    "integers": lambda f, g: [g.i.abs(), -g.i, g.i * g.i, g.i + g.i, g.i.sum(), g.i.to_dense(), g.i.float()],
    "zeros": lambda f, g: [f.zeros_like(g.s), f.zeros_like(g.h), g.s.clone().zero_(), f.empty_like(g.s).sparse_dim()],
    "norm": lambda f, g: [g.s.norm(), g.u.norm(), g.h.norm(), g.e.norm(), g.s.norm(1)],
    "mm": lambda f, g: [g.s @ g.x, g.u.mm(g.x), f.sparse.mm(g.s, g.x), f.mm(g.e, g.x), f.spmm(g.u, g.x)],
    "mm sparse": lambda f, g: [f.sparse.mm(g.s, g.s.t()), g.s @ g.u.t(), f.sparse.mm(g.e, g.s.t())],
    "dense @ sparse": lambda f, g: [g.y.t() @ g.s.to_dense() - g.y.t() @ g.s, g.x.t() @ g.s.t()],
    "mv": lambda f, g: [g.s @ g.w, g.u.mv(g.w), g.s.matmul(g.w)],
    "bmm": lambda f, g: [f.bmm(g.t3, f.stack([g.x, g.x])), g.t3 @ f.stack([g.x, g.x])],
    "addmm": lambda f, g: [
        f.sparse.addmm(g.y[:, :3], g.s, g.x),
        f.addmm(g.y[:, :3], g.s, g.x, beta=2, alpha=3),
        g.y[:, :3].addmm(g.u, g.x),
        g.y[:, :3].clone().addmm_(g.s, g.x),
    ],
    "hspmm": lambda f, g: [f.hspmm(g.s, g.x), f.hspmm(g.u, g.x), f.hspmm(g.e, g.x)],
    "sspaddmm": lambda f, g: [
        f.sspaddmm(g.s, f.eye(4, dtype=f.float64).to_sparse(), g.y),
        g.s.sspaddmm(g.s.clone(), g.s.to_dense().t() @ g.y),
    ],
    "smm": lambda f, g: [f.smm(g.s, g.x), g.u.smm(g.x)],
    "softmax": lambda f, g: [
        k(x, d) for k in (f.sparse.softmax, f.sparse.log_softmax) for x in (g.s, g.u, g.h, g.z) for d in (0, 1, -1)
    ],
    "softmax of dtype": lambda f, g: f.sparse.softmax(g.i, 0, dtype=f.float32),
    "spdiags": lambda f, g: [
        f.sparse.spdiags(f.arange(9.0).reshape(3, 3), f.tensor([0, -1, 2]), (3, 3)),
        f.sparse.spdiags(f.arange(1.0, 4.0), f.tensor(1), (4, 5)),
        f.sparse.spdiags(f.ones(2, 5), f.tensor([0, 1]), (3, 4), f.sparse_csr),
    ],
    "sparse_mask": lambda f, g: [g.y.sparse_mask(g.s), g.u.sparse_mask(g.s), g.h.to_dense().sparse_mask(g.h)],
    "to": lambda f, g: [g.s.to(f.float32), g.s.to(g.i), g.s.to("cpu"), g.s.float(), g.u.long(), g.s.type(f.float16)],
    "to other": lambda f, g: [g.s.to(f.ones(1)), g.i.to(g.s), g.s.type_as(f.ones(1))],
    "coalesce": lambda f, g: [g.u.coalesce(), g.hu.coalesce(), g.z, g.e.coalesce()],
    "to_dense": lambda f, g: [x.to_dense() for x in (g.s, g.u, g.h, g.hu, g.e, g.v)],
    "to_sparse": lambda f, g: [g.d.to_sparse(1), g.d.to_sparse(2), g.d.to_sparse_coo(), g.h.to_dense().to_sparse()],
    "clone": lambda f, g: [g.s.clone(), g.u.clone(), copy.deepcopy(g.hu), copy.copy(g.s)],
    "pickle": lambda f, g: [pickle.loads(pickle.dumps(x)) for x in (g.s, g.u, g.h, g.e)],
    "save": lambda f, g: [_saved(f, x) for x in (g.s, g.u, g.csr, g.csc, g.bsr, g.bsc, g.bcsr)],
    "resize_as_sparse_": lambda f, g: [
        g.e.clone().resize_as_sparse_(g.h),
        f.sparse_coo_tensor(size=(1,)).resize_as_sparse_(g.s),
        f.sparse_coo_tensor(size=(2, 2), dtype=f.float64).resize_as_sparse_(g.e),
    ],
    "sparse_resize_": lambda f, g: [
        g.s.clone().sparse_resize_((5, 7), 2, 0),
        g.h.clone().sparse_resize_((4, 6, 2), 2, 1),
    ],
    "sparse_resize_and_clear_": lambda f, g: g.s.clone().sparse_resize_and_clear_((5, 7, 2), 2, 1),
    "equal": lambda f, g: [f.equal(g.s, g.s.clone()), f.equal(g.s, g.z)],
    "any": lambda f, g: [g.s.bool().any(), g.e.bool().any()],
    "numbers": lambda f, g: [g.s.numel(), g.s._nnz(), g.h.sparse_dim(), g.h.dense_dim(), g.u.is_coalesced(), len(g.s)],
    "is_coalesced": lambda f, g: [(g.s + g.s).is_coalesced(), (g.s * 2).is_coalesced(), g.s.t().is_coalesced()],
    "nan_to_num": lambda f, g: [g.s.nan_to_num(), (g.s / 0).nan_to_num(1.0)],
    "threshold": lambda f, g: f.threshold(g.s, 0.5, 0.0),
    "isposinf": lambda f, g: [g.s.isposinf(), g.s.isneginf(), g.s.signbit()],
    "complex": lambda f, g: [
        (g.s * (1 + 2j)).conj(),
        (g.s * 1j).abs(),
        (g.s * (1 + 2j)).real,
        (g.s * 1j).imag,
        g.s.conj(),
        (g.s * 1j).angle(),
    ],
    "copy_": lambda f, g: [g.e.clone().copy_(g.s), g.s.clone().copy_(g.u)],
    "indices of duplicates": lambda f, g: [g.u._indices(), g.u._values(), g.u._nnz()],
    "made": lambda f, g: [
        f.sparse_coo_tensor([[0, 1], [1, 1]], [1.0, 2.0]),
        f.sparse_coo_tensor(f.tensor([[0, 2]]), f.ones(2, 3), (3, 3)),
        f.sparse_coo_tensor((2, 3)),
        f.sparse_coo_tensor(f.empty(0, 2, dtype=f.int64), f.tensor([1.0, 2.0]), ()),
        f.sparse_coo_tensor([[0]], [1], (2,), dtype=f.float16),
    ],
    "0-d": lambda f, g: [f.sparse_coo_tensor(f.empty(0, 2, dtype=f.int64), f.tensor([1.0, 2.0]), ()).to_dense()],
    "is_same_size": lambda f, g: [g.s.is_same_size(g.u), g.s.is_same_size(g.v)],
    "ones_like": lambda f, g: [f.ones_like(x) for x in (g.s, g.z, g.h)],
    "full_like": lambda f, g: [f.full_like(x, 2.0) for x in (g.s, g.csr, g.csc, g.bsr)],
    "item": lambda f, g: g.s.sum().item(),
    "where of values": lambda f, g: f.sparse_coo_tensor(g.s.indices(), g.s.values().clamp(min=0), g.s.shape),
}

LAYOUTS = {
    "parts": lambda f, g: [_parts(x) for x in _compressed(g)],
    "to_dense": lambda f, g: [x.to_dense() for x in _compressed(g)],
    "to_sparse": lambda f, g: [x.to_sparse().coalesce() for x in _compressed(g)],
    "between rows and columns": lambda f, g: [
        h(x)
        for x in (g.csr, g.csc, g.ecsr, g.s, g.u, g.d)
        for h in (lambda x: x.to_sparse_csr(), lambda x: x.to_sparse_csc())
    ],
    "to blocks": lambda f, g: [
        h(x)
        for x in (g.csr, g.csc, g.ecsr, g.s, g.u, g.d)
        for h in (
            lambda x: x.to_sparse_bsr((2, 3)),
            lambda x: x.to_sparse_bsc((2, 2)),
            lambda x: x.to_sparse_bsr((1, 1)),
        )
    ],
    "of blocks": lambda f, g: [g.bsr.to_sparse_bsr((2, 2)), g.bsc.to_sparse_bsc((2, 3)), g.bsr.to_sparse_bsc((2, 2))],
    "batches": lambda f, g: [g.bcsr.to_sparse_csc(), g.bcsr.to_sparse_csr(), g.bcsr.to_sparse()],
    "by layout": lambda f, g: [
        g.d.to_sparse(layout=f.sparse_csc),
        g.d.to_sparse(layout=f.sparse_bsr, blocksize=(2, 2)),
        g.s.to_sparse(layout=f.sparse_csr),
        g.csr.to_sparse(layout=f.sparse_coo),
        g.csr.to_sparse(layout=f.sparse_bsc, blocksize=(1, 2)),
        g.csr.to_sparse(layout=f.sparse_csr),
    ],
    "made of parts": lambda f, g: [
        f.sparse_csr_tensor([0, 1, 3], [0, 0, 1], [1.0, 2.0, 3.0]),
        f.sparse_csc_tensor([0, 1, 3], [0, 0, 1], [1.0, 2.0, 3.0], (2, 2)),
        f.sparse_bsr_tensor([0, 1, 2], [0, 1], f.ones(2, 2, 3), (4, 6)),
        f.sparse_bsc_tensor(f.tensor([0, 1, 2]), f.tensor([0, 1]), f.ones(2, 2, 3)),
        f.sparse_compressed_tensor([0, 1, 2], [0, 1], f.ones(2, 2, 3), (4, 6), layout=f.sparse_bsr),
        f.sparse_csr_tensor(f.tensor([[0, 1, 2], [0, 0, 2]]), f.tensor([[0, 1], [0, 1]]), f.ones(2, 2), (2, 2, 2)),
        f.sparse_csr_tensor(f.tensor([0, 1, 2]), f.tensor([0, 1]), f.ones(2, 3), (2, 2, 3)),
        f.sparse_csr_tensor(f.tensor([0, 1, 2], dtype=f.int32), f.tensor([0, 1], dtype=f.int32), f.ones(2), (2, 2)),
    ],
    "unsorted columns": lambda f, g: [
        f.sparse_csr_tensor([0, 3, 4], [2, 0, 1, 1], [1.0, 2.0, 3.0, 4.0], (2, 3)).to_dense(),
        f.sparse_csr_tensor([0, 3, 4], [2, 0, 1, 1], [1.0, 2.0, 3.0, 4.0], (2, 3)) @ f.arange(3.0),
    ],
    "select": lambda f, g: [g.csr[0], g.csc[1], g.csr[:, 1], g.csr[0, 1], g.bsr[0], g.bsr.select(1, 2), g.bcsr[0]],
    "select of batches": lambda f, g: [g.bcsr[1], g.bcsr[0, 1], g.bbsr[1], g.bcsr.select(0, -1), g.bcsr[1, 0, 1]],
    "rows": lambda f, g: [list(g.csr), list(g.bcsr), list(g.csc.unbind(1))],
    "transpose": lambda f, g: [g.csr.t(), g.csc.T, g.bsr.t(), g.bsc.transpose(0, 1), g.bcsr.transpose(1, 2), g.bcsr.mT],
    "matmul": lambda f, g: [x @ g.x for x in (g.csr, g.csc, g.bsr, g.ecsr)],
    "matrix vector": lambda f, g: [x @ g.w for x in (g.csr, g.csc, g.bsr)],
    "dense @ compressed": lambda f, g: [g.x.t() @ x.t() for x in (g.csr, g.csc)],
    "compressed @ compressed": lambda f, g: [
        (x.to_dense(), str(x.layout)[-3:], x._nnz())
        for x in (g.csr @ g.csr.t(), g.csr @ g.csc.t(), g.csc @ g.csc.t(), f.mm(g.csr, g.csr.t()))
    ],
    "addmm": lambda f, g: [f.addmm(g.y[:, :3], x, g.x, beta=0.5, alpha=2) for x in (g.csr, g.csc)],
    "addmv": lambda f, g: f.addmv(g.y[:, 0], g.csr, g.w, beta=0.5, alpha=2),
    "reducing mm": lambda f, g: [
        f.sparse.mm(x, g.x, r) for x in (g.csr, g.ecsr) for r in ("sum", "mean", "amax", "amin")
    ],
    "reducing mm of empty rows": lambda f, g: [
        f.sparse.mm(f.sparse_csr_tensor([0, 0, 2, 2], [0, 1], [-1.0, -2.0], (3, 2)), f.ones(2, 2), r)
        for r in ("sum", "mean", "amax", "amin")
    ],
    "add": lambda f, g: [g.csr + g.csr, f.add(g.csr, g.csr, alpha=2), g.csr + g.y, g.y + g.csr, g.csr + g.ecsr],
    "mul": lambda f, g: [g.csr * 2, g.csr * g.y, g.csr * g.csr, 3 * g.csc, g.bsr * 2, g.bcsr * 0.5],
    "div": lambda f, g: [x.div(2) for x in (g.s,)],
    "in place": lambda f, g: [
        g.csr.clone().add_(g.csr),
        g.csr.clone().mul_(2),
        g.bsr.clone().sin_(),
        g.csr.clone().neg_(),
    ],
    "in place is seen": lambda f, g: _written(g.csr.clone(), lambda x: x.mul_(3)),
    "add_ is seen": lambda f, g: _written(g.csr.clone(), lambda x: x.add_(x.clone())),
    "zero_": lambda f, g: _written(g.csr.clone(), lambda x: x.zero_()),
    "fill_": lambda f, g: _written(g.csr.clone(), lambda x: x.fill_(2)),
    "copy_": lambda f, g: _written(g.csr.clone(), lambda x: x.copy_(x * 2)),
    "unary": lambda f, g: [
        getattr(x, name)()
        for name in "abs neg sin tan asin atan sinh tanh asinh expm1 log1p sqrt ceil floor round trunc frac sign sgn "
        "erf rad2deg deg2rad relu isnan isinf".split()
        for x in (g.csr.abs() * 0.25, g.csc.abs(), g.bsr.abs(), g.bcsr.abs())
    ],
    "like": lambda f, g: [h(x) for x in _compressed(g) for h in (f.ones_like, f.zeros_like)],
    "like of dtype": lambda f, g: [f.ones_like(g.csr, dtype=f.float32), f.zeros_like(g.bsr, dtype=f.int64)],
    "clone": lambda f, g: [copy.deepcopy(x) for x in _compressed(g)] + [x.clone() for x in _compressed(g)],
    "pickle": lambda f, g: [pickle.loads(pickle.dumps(x)) for x in _compressed(g)],
    "casts": lambda f, g: [h(x) for x in _compressed(g) for h in (lambda x: x.float(), lambda x: x.to(f.float16))],
    "sum": lambda f, g: [g.csr.sum(), g.bsr.sum(), g.csr.sum(1, keepdim=True), g.csr.sum(0, keepdim=True), g.csc.sum()],
    "sampled_addmm": lambda f, g: [
        f.sparse.sampled_addmm(g.csr, g.y[:, :3], g.x.t(), beta=2, alpha=0.5),
        f.sparse.sampled_addmm(g.csr, g.y[:, :2], g.y[:2]),
    ],
    "sparse_mask": lambda f, g: [g.y.sparse_mask(x) for x in (g.csr, g.csc)] + [g.csr.sparse_mask(g.csr)],
    "triangular_solve": lambda f, g: _triangles(f, g),
    "says": lambda f, g: [str(x).replace("taeda", "torch") for x in _compressed(g)],
    "is_sparse": lambda f, g: [
        (x.is_sparse, x.is_sparse_csr, x._nnz(), x.sparse_dim(), x.dense_dim()) for x in _compressed(g)
    ],
    "row starts of a hybrid": lambda f, g: [g.hcsr.crow_indices(), g.hcsr.values()],
    "complex": lambda f, g: [(g.csr * (1 + 2j)).conj(), (g.csr * 1j).abs(), (g.csr * 1j).resolve_conj()],
    "resize_as_sparse_": lambda f, g: (
        f.zeros(2, 2, dtype=f.float64).to_sparse_csr().resize_as_sparse_(g.csr).col_indices()
    ),
    "resize_as_sparse_ of the same places": lambda f, g: [x.clone().resize_as_sparse_(x) for x in (g.csr, g.csc)],
    "zero_ is recorded": lambda f, g: [(x.clone().requires_grad_() * 1).zero_().requires_grad for x in (g.csr, g.csc)],
}

GRADIENTS = {
    "to_dense": (lambda f, g: [g.s], lambda f, s: s.to_dense()),
    "uncoalesced to_dense": (lambda f, g: [g.u], lambda f, s: s.to_dense()),
    "mm": (lambda f, g: [g.s, g.x], lambda f, s, x: f.sparse.mm(s, x)),
    "addmm": (lambda f, g: [g.s, g.x], lambda f, s, x: f.sparse.addmm(x.new_ones(4, 3), s, x)),
    "csr @": (lambda f, g: [g.csr, g.x], lambda f, s, x: s @ x),
    "csc @": (lambda f, g: [g.csc, g.x], lambda f, s, x: s @ x),
    "csr to_dense": (lambda f, g: [g.csr], lambda f, s: s.to_dense()),
    "mul": (lambda f, g: [g.s], lambda f, s: (s * 3).to_dense()),
    "mul dense": (lambda f, g: [g.s, g.y], lambda f, s, y: (s * y).to_dense()),
    "sum": (lambda f, g: [g.s], lambda f, s: f.sparse.sum(s)),
    "sum of a dim": (lambda f, g: [g.s], lambda f, s: f.sparse.sum(s, 0).to_dense()),
    "softmax": (lambda f, g: [g.s], lambda f, s: f.sparse.softmax(s, 1).to_dense()),
    "reducing mm": (lambda f, g: [g.csr.float(), g.x.float()], lambda f, s, x: f.sparse.mm(s, x, "amax")),
    "mean mm": (lambda f, g: [g.csr.float(), g.x.float()], lambda f, s, x: f.sparse.mm(s, x, "mean")),
    "sampled_addmm": (
        lambda f, g: [g.csr, g.y, g.x @ g.x.t()],
        lambda f, s, y, z: f.sparse.sampled_addmm(s, y, z).to_dense(),
    ),
    "dense to_sparse": (lambda f, g: [g.d], lambda f, d: d.to_sparse().to_dense()),
    "dense to csr": (lambda f, g: [g.d], lambda f, d: d.to_sparse_csr().to_dense()),
    "dense to bsr": (lambda f, g: [g.d], lambda f, d: d.to_sparse_bsr((2, 2)).to_dense()),
    "add": (lambda f, g: [g.s, g.u.coalesce()], lambda f, s, u: (s + u).to_dense()),
    "dense add": (lambda f, g: [g.y, g.s], lambda f, y, s: y + s),
    "bmm": (lambda f, g: [g.t3], lambda f, t: f.bmm(t, f.ones(2, 6, 3, dtype=f.float64))),
}

ERRORS = {
    "csr sizes": lambda f, g: g.csr @ g.y,
    "csr index": lambda f, g: g.csr[9],
    "batch of unequal": lambda f, g: f.stack([g.d, f.ones(4, 6, dtype=f.float64)]).to_sparse_csr(),
    "blocks that do not fit": lambda f, g: g.d.to_sparse_bsr((3, 2)),
    "select of a batch": lambda f, g: g.bcsr.select(1, 0),
    "crow of csc": lambda f, g: g.csc.crow_indices(),
    "indices of csr": lambda f, g: g.csr.indices(),
    "values of dense": lambda f, g: g.d.values(),
    "coalesce of dense": lambda f, g: g.d.coalesce(),
    "values of uncoalesced": lambda f, g: g.u.values(),
    "mm of sizes": lambda f, g: f.sparse.mm(g.s, g.y),
    "dims of to_sparse": lambda f, g: g.d.to_sparse(5),
    "index out of range": lambda f, g: f.sparse_coo_tensor([[5]], [1.0], (3,), check_invariants=True),
    "negative index": lambda f, g: f.sparse_coo_tensor([[-1]], [1.0], (3,), check_invariants=True),
    "values that do not fit": lambda f, g: f.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0]),
    "add of sizes": lambda f, g: g.s + g.v,
    "select out of range": lambda f, g: g.s[7],
    "unknown reduction": lambda f, g: f.sparse.mm(g.csr, g.x, "prod"),
    "backward of a sparse one": lambda f, g: g.s.requires_grad_().backward(),
    "item": lambda f, g: g.s.item(),
    "numpy": lambda f, g: g.s.numpy(),
    "exp": lambda f, g: g.csr.exp(),
    "a hybrid transposed": lambda f, g: g.h.transpose(0, 2),
    "add of a number": lambda f, g: g.s + 1,
    "copy_ of dense": lambda f, g: g.s.copy_(g.d),
    "strides": lambda f, g: g.csr.stride(),
    "view": lambda f, g: g.s.view(-1),
    "softmax of dense": lambda f, g: f.sparse.softmax(g.d, 0),
    "sparse_mask of sizes": lambda f, g: g.x.sparse_mask(g.s),
}


def _compressed(g):
    return [g.csr, g.csc, g.bsr, g.bsc, g.bcsr, g.bbsr, g.hcsr, g.ecsr]


def _parts(x):
    names = ("crow_indices", "col_indices") if str(x.layout)[-3:] in ("csr", "bsr") else ("ccol_indices", "row_indices")
    return [getattr(x, name)() for name in names] + [x.values()]


def _written(x, write):
    result = write(x)
    assert result is x
    return x


def _saved(f, x):
    buffer = io.BytesIO()
    f.save(x, buffer)
    buffer.seek(0)
    return f.load(buffer)


def _triangles(f, g):
    a = g.y[:, :4].clone()
    a.diagonal().add_(4.0)
    made = []
    for upper in (True, False):
        sparse = (a.triu() if upper else a.tril()).to_sparse_csr()
        for options in ({}, {"transpose": True}, {"unitriangular": True}):
            made.append(f.triangular_solve(g.y[:, :2], sparse, upper=upper, **options)[0])
    return made


def plain(f, x):
    """What a result is made of, as lists of numbers, to compare across frameworks."""
    if isinstance(x, (list, tuple)):
        return [plain(f, i) for i in x]
    if not isinstance(x, f.Tensor):
        return x
    layout, dtype = (str(y).rpartition(".")[2] for y in (x.layout, x.dtype))
    x = x.detach()
    if layout == "strided":
        return [layout, dtype, list(x.shape), x.resolve_conj().tolist()]
    if layout == "sparse_coo":
        y = x.coalesce()
        return [layout, dtype, list(x.shape), y.indices().tolist(), y.values().tolist()]
    return [layout, dtype, list(x.shape), *[p.tolist() for p in _parts(x)]]


def outcome(f, program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return program(f, Given(f))
        except Exception as error:
            return error


def assert_same(got, want):
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), (got, want)
        for a, b in zip(got, want, strict=True):
            assert_same(a, b)
    elif isinstance(want, (float, complex)):
        assert np.isclose(got, want, rtol=1e-4, atol=1e-6, equal_nan=True), (got, want)
    else:
        assert got == want, (got, want)


@pytest.mark.parametrize("table,name", [(t, n) for t, table in (("COO", COO), ("LAYOUTS", LAYOUTS)) for n in table])
def test_program(table, name):
    program = {"COO": COO, "LAYOUTS": LAYOUTS}[table][name]
    want, got = (outcome(f, program) for f in (torch, taeda))
    if not isinstance(want, Exception):
        assert not isinstance(got, Exception), got
        assert_same(plain(taeda, got), plain(torch, want))


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    want, got = (outcome(f, ERRORS[name]) for f in (torch, taeda))
    assert isinstance(want, Exception) and isinstance(got, Exception), (want, got)
    kinds = (type(want), NotImplementedError) if isinstance(want, RuntimeError) else (type(want),)
    assert isinstance(got, kinds), (want, got)


def _of_ones(f, x):
    if x.layout == f.sparse_coo:
        return f.sparse_coo_tensor(x._indices(), f.ones_like(x._values()), x.shape)
    return f.ones_like(x)


def _at_entries(f, x):
    """The gradient of ``x`` where it has entries: what PyTorch has elsewhere differs from op to op."""
    grad = x.grad if x.grad.layout == f.strided else x.grad.to_dense()
    if x.layout == f.strided:
        return grad
    return grad * (_of_ones(f, x.detach()).to_dense() != 0)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name):
    made = []
    make, program = GRADIENTS[name]
    for f in (torch, taeda):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inputs = [x.detach().requires_grad_() for x in make(f, Given(f))]
            out = program(f, *inputs)
            (out * f.arange(1.0, out.numel() + 1).reshape(out.shape)).sum().backward()
            made.append([plain(f, _at_entries(f, x)) for x in inputs])
    assert_same(made[1], made[0])


def _product_function(f):
    class Product(f.autograd.Function):
        @staticmethod
        def forward(ctx, s, x):
            ctx.save_for_backward(s, x)
            return s @ x

        @staticmethod
        def backward(ctx, g):
            s, x = ctx.saved_tensors
            of_s = (g @ x.t()).sparse_mask(s.coalesce()) if ctx.needs_input_grad[0] else None
            return of_s, s.t() @ g

    return Product.apply


def _to_sparse_function(f):
    class ToSparse(f.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.to_sparse()

        @staticmethod
        def backward(ctx, g):
            return g.to_dense() * 3

    return ToSparse.apply


def _doubling_function(f):
    class Twice(f.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 5

    return Twice.apply


def _jagged(f):
    parts = [f.ones(2, 3), f.ones(3, 3)]
    return f.nested.nested_tensor(parts, layout=f.jagged, requires_grad=True)


def _backward(result, *leaves):
    result.backward()
    return [x.grad for x in leaves]


FUNCTIONS = {
    "a sparse constant": lambda f, g: _backward(_product_function(f)(g.s, g.x.requires_grad_()).sum(), g.x),
    "a compressed constant": lambda f, g: _backward(_product_function(f)(g.csr, g.x.requires_grad_()).sum(), g.x),
    "a sparse leaf": lambda f, g: _backward(_product_function(f)(g.s.requires_grad_(), g.x).sum(), g.s),
    "a sparse result": lambda f, g: _backward(f.sparse.sum(_doubling_function(f)(g.s.requires_grad_() * 2)), g.s),
    "makes a sparse one": lambda f, g: _backward(f.sparse.sum(_to_sparse_function(f)(g.d.requires_grad_())), g.d),
    "a nested leaf": lambda f, g: (lambda x: _backward(_doubling_function(f)(x).values().sum(), x)[0].values())(
        _jagged(f)
    ),
    "within func.grad": lambda f, g: f.func.grad(lambda x: _setup_function(f)(g.s, x).sum())(g.x),
}


def _setup_function(f):
    class Product(f.autograd.Function):
        @staticmethod
        def forward(s, x):
            return s @ x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            return None, ctx.saved_tensors[0].t() @ g

    return Product.apply


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_sparse_and_nested_tensors(name):
    want, got = (outcome(f, FUNCTIONS[name]) for f in (torch, taeda))
    assert_same(plain(taeda, got), plain(torch, want))


CLOSE = [
    lambda f, g: (g.s, g.s.clone(), {}),
    lambda f, g: (g.s, g.s * 2, {}),
    lambda f, g: (g.s, g.z, {}),
    lambda f, g: (g.u, g.u.coalesce(), {}),
    lambda f, g: (g.s, g.s.to_dense(), {}),
    lambda f, g: (g.s, g.csr, {"check_layout": False}),
    lambda f, g: (g.csr, g.csc, {}),
    lambda f, g: (g.csr, g.csr * 3, {}),
    lambda f, g: (g.bsr, g.bsr.clone(), {}),
    lambda f, g: (g.csr, g.ecsr, {}),
    lambda f, g: (g.s, g.s.float(), {"check_dtype": False}),
]


@pytest.mark.parametrize("case", CLOSE)
def test_assert_close(case):
    made = []
    for f in (torch, taeda):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            actual, expected, options = case(f, Given(f))
            try:
                made.append(f.testing.assert_close(actual, expected, **options))
            except AssertionError as error:
                made.append(str(error).splitlines()[0].replace("taeda", "torch"))
    assert made[0] == made[1]


@pytest.mark.parametrize("masked", [True, False])
def test_gradcheck(masked):
    g = Given(taeda)
    check = taeda.autograd.gradcheck
    for x in (g.s, g.u, g.csr, g.bsr, g.hcsr):
        assert check(lambda t: t.to_dense() * 2, (x.detach().requires_grad_(),), masked=masked)
    assert check(taeda.sparse.mm, (g.s.requires_grad_(), g.x.requires_grad_()), masked=masked)
    with pytest.raises(taeda.autograd.gradcheck.__globals__["GradcheckError"]):
        check(lambda t: t.to_dense() * t.to_dense().detach(), (g.s,), masked=masked)
    with pytest.raises(ValueError, match="Sparse output"):
        check(lambda t: t * 2, (g.s,), masked=masked)


def test_copies_have_gradients():
    leaf = taeda.eye(2).to_sparse().requires_grad_()
    taeda.sparse.mm(leaf, taeda.ones(2, 2)).sum().backward()
    copied = copy.deepcopy(leaf)
    assert copied.requires_grad and copied.grad is not leaf.grad
    assert taeda.equal(copied.grad.to_dense(), leaf.grad.to_dense())
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(leaf * 2)


TRANSFORMS = {
    "grad": lambda f, g: f.func.grad(lambda s: (s @ g.x).sum())(g.s),
    "grad to_dense": lambda f, g: f.func.grad(lambda s: (s.to_dense() ** 2).sum())(g.s),
    "grad of a dense one": lambda f, g: f.func.grad(lambda x: ((g.s @ x) ** 2).sum())(g.x),
    "vjp": lambda f, g: f.func.vjp(lambda s: s @ g.x, g.s)[1](f.ones(4, 3, dtype=f.float64))[0],
    "vjp of a dense one": lambda f, g: f.func.vjp(lambda x: g.s @ x, g.x)[1](f.ones(4, 3, dtype=f.float64))[0],
    "both": lambda f, g: list(f.func.grad(lambda s, x: ((s @ x) ** 2).sum(), argnums=(0, 1))(g.s, g.x)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transformation(name):
    """Where PyTorch's gradient of a sparse tensor is dense, ours has its entries."""
    want, got = (outcome(f, TRANSFORMS[name]) for f in (torch, taeda))
    assert not isinstance(want, Exception) and not isinstance(got, Exception), (want, got)
    places = (Given(taeda).d != 0).double()
    for a, b in zip(*(x if isinstance(x, list) else [x] for x in (got, want)), strict=True):
        b = b if b.layout == torch.strided else b.to_dense()
        b = taeda.tensor(b.tolist(), dtype=taeda.float64)
        assert taeda.allclose(a.to_dense(), b if a.layout == taeda.strided else b * places)


def test_transformations_of_every_layout():
    g = Given(taeda)
    for s in (g.s, g.u, g.h, g.csr, g.csc, g.bsr, g.hcsr):
        made = taeda.func.grad(lambda t: (t.to_dense() ** 2).sum())(s)
        assert made.layout is s.layout and taeda.allclose(made.to_dense(), 2 * s.to_dense())
    n = taeda.nested.nested_tensor([taeda.ones(2, 3), taeda.ones(1, 3)], layout=taeda.jagged)
    assert taeda.func.grad(lambda t: (t * t).values().sum())(n).values().tolist() == [[2.0] * 3] * 3


def test_vmap_over_coordinates():
    s = Given(taeda).s
    for function in (lambda t: t * 2, lambda t: t.sum(), lambda t: t.to_dense(), lambda t: t.sin() + t):
        for dim in (0, 1):
            made = taeda.vmap(function, in_dims=dim)(s)
            taeda.testing.assert_close(
                made.to_dense() if made.is_sparse else made, taeda.vmap(function, in_dims=dim)(s.to_dense())
            )


@pytest.mark.parametrize("name", ["jvp", "jacrev", "jacfwd", "hessian", "vmap", "make_dual"])
def test_transformations_that_refuse(name):
    """A clear error, no wrong numbers."""
    g, f = Given(taeda), taeda.func
    for s in (g.s, g.csr)[name == "vmap" :]:  # over coordinates `vmap` runs
        with pytest.raises((NotImplementedError, RuntimeError)):
            if name == "jvp":
                f.jvp(lambda t: t @ g.x, (s,), (s,))
            elif name == "vmap":
                f.vmap(lambda t: t * 2)(s)
            elif name == "make_dual":
                with taeda.autograd.forward_ad.dual_level():
                    taeda.autograd.forward_ad.make_dual(s, s)
            else:
                getattr(f, name)(lambda t: (t @ g.x).sum())(s)

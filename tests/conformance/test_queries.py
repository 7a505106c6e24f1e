"""Every query of a tensor, of every kind of tensor, against PyTorch: what a method that computes nothing answers."""

import warnings

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

PROPERTIES = """dtype device layout ndim shape requires_grad grad grad_fn is_leaf _version names itemsize nbytes is_sparse
is_sparse_csr is_quantized is_mkldnn is_cuda is_cpu is_meta is_mps is_xpu is_nested is_ipu is_maia is_mtia is_vulkan
output_nr retains_grad _base _backward_hooks""".split()
METHODS = """size dim ndimension numel nelement stride storage_offset is_contiguous is_shared is_pinned element_size
is_inference is_conj is_neg is_floating_point is_complex is_signed has_names get_device is_coalesced sparse_dim dense_dim
_nnz __len__ _is_view is_set_to is_same_size data_ptr untyped_storage type""".split()
TWICE = {"is_set_to", "is_same_size"}  # asked with the tensor itself
ADDRESSES = {"data_ptr", "untyped_storage"}  # whether there is one


def _coo(f, dense=False, **kwargs):
    values = f.tensor([[1.0, 2.0], [3.0, 4.0]]) if dense else f.tensor([1.0, 2.0])
    return f.sparse_coo_tensor(f.tensor([[0, 1], [1, 0]]), values, (2, 3, 2) if dense else (2, 3), **kwargs)


def _masked(f):
    from torch.masked import masked_tensor as theirs

    from taeda.masked import masked_tensor as ours

    return (theirs if f is torch else ours)(f.ones(2), f.tensor([True, False]))


def _inference(f):
    with f.inference_mode():
        return f.ones(2, 3)


class _Mine:
    """A subclass without functions of its own, for each framework."""

    def __new__(cls, f):
        return f.ones(2, 3).as_subclass(type("Mine", (f.Tensor,), {}))


def _wrapper(f):
    class Wrapper(f.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return f.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise NotImplementedError(func)

    return Wrapper(f.ones(2, 3))


KINDS = {
    "dense": lambda f: f.ones(2, 3),
    "0-d": lambda f: f.tensor(1.5),
    "empty": lambda f: f.ones(0, 3),
    "transposed": lambda f: f.ones(2, 3, dtype=f.float64).t()[1:],
    "integers": lambda f: f.arange(4).view(2, 2),
    "leaf": lambda f: f.ones(2, 3, requires_grad=True),
    "result": lambda f: f.ones(2, 3, requires_grad=True) * 2,
    "coo": lambda f: _coo(f),
    "coalesced": lambda f: _coo(f).coalesce(),
    "hybrid": lambda f: _coo(f, dense=True),
    "coo leaf": lambda f: _coo(f, requires_grad=True),
    "coo result": lambda f: _coo(f, requires_grad=True) * 2,
    "coo empty": lambda f: f.sparse_coo_tensor(size=(2, 3)),
    "csr": lambda f: f.eye(2, 3).to_sparse_csr(),
    "csc": lambda f: f.eye(2, 3).to_sparse_csc(),
    "bsr": lambda f: f.eye(4, 6).to_sparse_bsr((2, 3)),
    "bsc": lambda f: f.eye(4, 6).to_sparse_bsc((2, 3)),
    "csr leaf": lambda f: f.eye(2, 3).to_sparse_csr().requires_grad_(),
    "batched csr": lambda f: f.ones(2, 2, 3).to_sparse_csr(),
    "hybrid csr": lambda f: f.ones(2, 2, 3).to_sparse_csr(dense_dim=1),
    "nested": lambda f: f.nested.nested_tensor([f.ones(2, 3), f.ones(3, 3)]),
    "jagged": lambda f: f.nested.nested_tensor([f.ones(2, 3), f.ones(3, 3)], layout=f.jagged),
    "jagged leaf": lambda f: f.nested.nested_tensor([f.ones(2, 3), f.ones(3, 3)], layout=f.jagged, requires_grad=True),
    "meta": lambda f: f.ones(2, 3, device="meta"),
    "conjugate view": lambda f: f.ones(2, 3, dtype=f.complex64).conj(),
    "negative view": lambda f: f.ones(2, 3, dtype=f.complex64).conj().imag,
    "subclass": _Mine,
    "wrapper subclass": _wrapper,
    "parameter": lambda f: f.nn.Parameter(f.ones(2, 3)),
    "buffer": lambda f: f.nn.Buffer(f.ones(2, 3)),
    "inference": _inference,
    "masked": _masked,
    "of numpy": lambda f: f.from_numpy(np.ones((2, 3))),
}


def plain(f, x):
    """The answer as something that compares across frameworks."""
    if isinstance(x, f.Tensor):
        return "a tensor"
    if isinstance(x, (tuple, list)):
        return tuple(plain(f, i) for i in x)
    if isinstance(x, (bool, int, float, type(None))):
        return x
    if type(x).__name__ == "SymInt":
        return "ragged"
    text = str(x).replace("taeda", "torch")
    if text.startswith("j") and text[1:].isdigit():
        return "ragged"
    return type(x).__name__ if text.startswith("<") else text


def answer(f, t, name):
    """What the query ``name`` of ``t`` gives: an answer, or the error's class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = getattr(t, name)
            if name in METHODS:
                found = found(*([t] if name in TWICE else []))
            if name in ADDRESSES:
                found = bool(found if name == "data_ptr" else found.nbytes())
            return plain(f, found)
        except Exception as error:
            return f"raises {type(error).__name__}"


def answers(f, t):
    return {name: answer(f, t, name) for name in PROPERTIES + METHODS if hasattr(torch.Tensor, name)}


def made(f, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KINDS[kind](f)


def within(f, kind):
    """The answers within a transformation."""
    found = {}

    def ask(x):
        found.update(answers(f, x))
        return (x * 2).sum()

    x = f.ones(4, 2, 3)
    if kind == "vmap":
        f.func.vmap(ask)(x)
    elif kind == "vmap of transposed":
        f.func.vmap(ask, in_dims=1)(x)
    elif kind == "grad":
        f.func.grad(ask)(x)
    elif kind == "vmap of grad":
        f.func.vmap(f.func.grad(ask))(x)
    elif kind == "grad of vmap":
        f.func.grad(lambda y: f.func.vmap(ask)(y).sum())(x)
    elif kind == "jvp":
        f.func.jvp(ask, (x,), (x,))
    elif kind == "dual":
        with f.autograd.forward_ad.dual_level():
            ask(f.autograd.forward_ad.make_dual(x, x))
    return found


WITHIN = ["vmap", "vmap of transposed", "grad", "vmap of grad", "grad of vmap", "jvp", "dual"]


def differences(want, got):
    return {k: (want[k], got[k]) for k in want if want[k] != got[k]}


#: Where the answers differ, and why: (kinds, queries).
DIFFERENT = [
    ({"nested", "jagged", "jagged leaf"}, "the parts are tensors of their own", """_base _is_view stride data_ptr
    untyped_storage is_coalesced sparse_dim dense_dim __len__"""),
    ({"subclass"}, "as_subclass gives no view", "_base _is_view"),
    ({"wrapper subclass", "masked", "meta", "conjugate view", "negative view"}, "answers where PyTorch's raises",
     "is_pinned is_coalesced sparse_dim dense_dim _nnz is_set_to is_same_size data_ptr"),
    (set(WITHIN), "forward mode and inner gradients are built on the recorded graph", """requires_grad grad_fn is_leaf
    _base _is_view is_shared is_pinned is_coalesced sparse_dim dense_dim _nnz data_ptr untyped_storage"""),
]  # fmt: skip


def same(kind, want, got):
    allowed = {"is_shared"} if want.get("layout") != "torch.strided" else set()
    if want.get("layout") in ("torch.sparse_csr", "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc"):
        allowed.add("type")
    for kinds, _, names in DIFFERENT:
        allowed |= set(names.split()) if kind in kinds else set()
    wrong = {k: v for k, v in differences(want, got).items() if k not in allowed}
    assert not wrong, wrong


@pytest.mark.parametrize("kind", KINDS)
def test_kind(kind):
    same(kind, answers(torch, made(torch, kind)), answers(taeda, made(taeda, kind)))


@pytest.mark.parametrize("kind", WITHIN)
def test_within_a_transformation(kind):
    same(kind, within(torch, kind), within(taeda, kind))


def test_functions_that_ask():
    """The functions beside the methods: ``taeda.is_inference(x)``."""
    for name in "is_floating_point is_complex is_conj is_neg is_inference is_signed numel get_device is_tensor".split():
        for kind in KINDS:
            if kind not in ("masked", "wrapper subclass", "fake"):
                want, got = (getattr(f, name)(made(f, kind)) for f in (torch, taeda))
                assert want == got, (name, kind)

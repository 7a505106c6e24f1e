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


# ---- every method ----------------------------------------------------------------------------------------------------

#: Arguments of a call: none, a number, another tensor of the kind.
ARGUMENTS = {"": lambda f, kind: (), "0": lambda f, kind: (0,), "another": lambda f, kind: (made(f, kind),)}
ASKED = ["coo", "coalesced", "hybrid", "csr", "jagged", "nested", "meta", "coo leaf"]
#: Methods that are not compared: they draw numbers, give what lies in fresh memory, an address or vectors of any sign,
#: or are not public.
NOT_COMPARED = set(
    """apply_ map_ map2_ storage storage_type untyped_storage data_ptr const_data_ptr random_ normal_ exponential_
    geometric_ cauchy_ log_normal_ uniform_ bernoulli bernoulli_ multinomial rand_like empty_like new_empty
    new_empty_strided new register_hook register_post_accumulate_grad_hook reinforce share_memory_ cuda xpu ipu hpu mtia
    svd module_load volatile grad_dtype to_mkldnn dequantize""".split()
)
#: What PyTorch's methods give and these refuse, or where results differ, by kind.
REFUSED = {
    "meta": """bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or
    bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ gcd gcd_ lcm lcm_ mvlgamma mvlgamma_
    diagonal_scatter resize_as_sparse_""",  # wrong arguments, which PyTorch does not look at on meta
    "jagged": "stride",  # a multiple of the ragged size
    "coo leaf": "backward",
}
#: Of numbers by which a sparse tensor is divided, and of 0 differences.
OF_SPARSE = "floor_divide floor_divide_ diff"
METHODS_OF_ALL = sorted(
    name for name in dir(torch.Tensor) if not name.startswith("_") and name not in NOT_COMPARED and name.islower()
)


def content(f, x):
    """What a result is: the kind of tensor, sizes and values, as numbers that compare across frameworks."""
    if isinstance(x, f.Tensor):
        said = [str(x.dtype).split(".")[-1], str(x.layout).split(".")[-1], x.requires_grad]
        x = x.detach()
        if x.is_nested:
            return said + [content(f, part) for part in x.unbind()]
        if x.is_meta:
            return [*said, tuple(x.shape)]
        return [*said, tuple(x.shape), content(f, x.to_dense().resolve_conj().resolve_neg().tolist())]
    if isinstance(x, (tuple, list)):
        return [content(f, y) for y in x]
    if isinstance(x, float):
        return round(x, 3) if abs(x) < float("inf") else str(x)
    return plain(f, x) if not isinstance(x, complex) else content(f, [x.real, x.imag])


def called(f, kind, name, arguments):
    """What a method gives and leaves behind; None if it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = made(f, kind)
        try:
            found = getattr(x, name)
            found = found(*ARGUMENTS[arguments](f, kind)) if callable(found) else found
            return content(f, found), content(f, x) if name.endswith("_") else None
        except Exception:
            return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ASKED)
def test_methods(kind):
    """Each method in its simplest calls: what PyTorch answers, this library answers alike."""
    expected = set(f"{REFUSED.get(kind, '')} {OF_SPARSE if kind.startswith(('co', 'hy')) else ''}".split())
    wrong = {}
    for name in METHODS_OF_ALL:
        for arguments in ARGUMENTS:
            want = called(torch, kind, name, arguments) if name not in expected else None
            if want is not None and (got := called(taeda, kind, name, arguments)) != want:
                wrong[name, arguments] = want, got
    assert not wrong

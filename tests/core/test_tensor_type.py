"""The class Tensor: methods that programs add and replace, and what small methods answer."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import taeda


def test_methods_of_tensor_may_be_set():
    taeda.Tensor.doubled = lambda self: self * 2
    try:
        assert taeda.ones(2).doubled().tolist() == [2.0, 2.0]
        assert taeda.nn.Parameter(taeda.ones(1)).doubled().item() == 2.0
    finally:
        del taeda.Tensor.doubled
    assert not hasattr(taeda.ones(1), "doubled")


def test_methods_and_operators_may_be_replaced_and_put_back():
    matmul, add = taeda.Tensor.matmul, taeda.Tensor.__add__
    calls = []
    try:
        taeda.Tensor.matmul = lambda self, other: calls.append("matmul") or matmul(self, other)
        taeda.Tensor.__add__ = lambda self, other: calls.append("add") or add(self, other)
        x = taeda.ones(2)
        assert x.matmul(x).item() == 2.0 and (x + 1).tolist() == [2.0, 2.0]
        assert calls == ["matmul", "add"]
    finally:
        taeda.Tensor.matmul, taeda.Tensor.__add__ = matmul, add
    assert (taeda.ones(1) + 1).item() == 2.0 and calls == ["matmul", "add"]


def test_dir_names_what_a_tensor_has():
    taeda.cuda.is_available()  # which makes the attribute of tensors on a GPU known
    x = taeda.ones(2, 2)
    x.note = 1
    names = dir(x)
    assert "note" in names and "shape" in names and "__cuda_array_interface__" not in names
    assert [name for name in names if name != "imag" and not hasattr(x, name)] == []


def test_new_alone_gives_a_tensor_with_memory():
    class Named(taeda.Tensor):
        pass

    for cls in (taeda.Tensor, Named):
        made = taeda.Tensor.__new__(cls)
        assert type(made) is cls and made.shape == (0,) and made.dtype is taeda.float32
        assert made.untyped_storage().nbytes() == 0 and (made + 1).tolist() == []
    assert taeda.Tensor.__new__(Named, [1.0, 2.0]).tolist() == [1.0, 2.0]


def test_equal_looks_at_every_element():
    x = taeda.arange(12.0).view(3, 4)
    other = x.clone()
    other[2, 3] = -1
    for a, b in ((x, other), (x.t(), other.t()), (x[:, ::2], (x + 1)[:, ::2]), (x, x.t())):
        assert taeda.equal(a, a) and not taeda.equal(a, b)
    assert not taeda.equal(x, x[:2]) and not taeda.equal(x * taeda.nan, x * taeda.nan)
    assert (
        taeda.equal(x.expand(2, 3, 4), x.expand(2, 3, 4)) and taeda.equal(x[:0], x[:0]) and taeda.equal(-x * 0, x * 0)
    )
    assert taeda.equal(x.clone().requires_grad_(), x.long()) and taeda.compile(taeda.equal)(x, x)
    z = taeda.complex(x, x)
    assert taeda.equal(z.conj(), z.conj().resolve_conj()) and not taeda.equal(z.conj(), z)
    with pytest.raises(RuntimeError):
        taeda.vmap(taeda.equal)(x, x)


def test_pieces_of_sizes_are_sizes():
    size = taeda.ones(2, 3, 4).shape
    one, wrong = (1,), ("a",)
    for made in (size[1:], size[::-1], size[:0], size + one, one + size, size * 2, 2 * size):
        assert type(made) is taeda.Size
    assert size[1:] == (3, 4) and one + size == (1, 2, 3, 4) and size + one == (2, 3, 4, 1) and type(size[0]) is int
    with pytest.raises(TypeError):
        size + wrong


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda t: t.Tensor(data=t.ones(2)), TypeError),
        (lambda t: t.Tensor(2, dtype=t.int32), TypeError),
        (lambda t: t.Tensor(device="meta"), RuntimeError),
        (lambda t: t.Tensor.__new__(t.Tensor, 2, device="meta"), RuntimeError),
        (lambda t: t.FloatTensor(device="meta"), RuntimeError),
        (lambda t: t.FloatTensor.__new__(t.Tensor), TypeError),
        pytest.param(
            lambda t: t.cuda.FloatTensor(2),
            TypeError,
            marks=pytest.mark.skipif(taeda.cuda.is_available(), reason="there is a GPU"),
        ),
    ],
)
def test_what_old_constructors_refuse(make, error):
    with pytest.raises(error):
        make(taeda)


def test_new_of_typed_tensors():
    assert taeda.FloatTensor.__new__(taeda.FloatTensor, [1, 2]).tolist() == [1.0, 2.0]
    assert taeda.LongTensor.__new__(taeda.LongTensor, 3).dtype is taeda.int64


def test_a_tensor_of_a_storage_shares_it():
    x = taeda.arange(4.0)
    for made in (
        taeda.tensor(x.storage()),
        taeda.tensor(x.untyped_storage(), dtype=x.dtype),
        x.new_tensor(x.storage()),
    ):
        assert made.data_ptr() == x.data_ptr() and made.tolist() == x.tolist()


def test_warnings_name_the_line_of_the_program():
    """A warning of a function names the line that calls it, however the function is made."""

    def program():
        taeda.tensor(taeda.ones(2))
        _ = (taeda.ones(1, requires_grad=True) * 2).grad
        taeda.frombuffer(b"abcd", dtype=taeda.uint8)
        taeda.from_numpy(np.frombuffer(b"abcd", dtype="u1"))
        taeda.ones(1).std()
        taeda.ones(2, dtype=taeda.complex64).float()
        taeda.add(taeda.ones(2), 1, out=taeda.empty(3))
        taeda.cat([taeda.ones(2)], out=taeda.empty(3))

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        program()
    first = program.__code__.co_firstlineno + 1
    assert [(w.filename, w.lineno - first) for w in found] == [(__file__, i) for i in range(8)]


def test_the_first_float_of_a_tensor_that_requires_grad_warns():
    """``item()`` and ``int`` do not, as in PyTorch."""
    code = """
import math, warnings
import taeda
x = taeda.ones(1, requires_grad=True)
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    x.item(), int(x), bool(x), float(x.detach())
    assert not found
    float(x), math.sqrt(x), complex(x)
assert [w.category for w in found] == [UserWarning] and "requires_grad" in str(found[0].message)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_old_names_of_linear_algebra_warn_once():
    code = """
import warnings
import taeda
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    eye = taeda.eye(2)
    for _ in range(2):
        taeda.qr(eye), taeda.cholesky(eye), taeda.lu(eye), taeda.chain_matmul(eye, eye)
assert [w.category for w in found] == [UserWarning] * 4 and all("deprecated" in str(w.message) for w in found)
assert {w.filename for w in found} == {"<string>"}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_sizes_of_many_forms():
    """Sizes are kept from tensor to tensor, and never mixed up."""
    for _ in range(2):
        for a in range(40):
            for b in range(40):
                x = taeda.empty(1).expand(a, b)
                assert x.shape == (a, b) and x.size() == taeda.Size([a, b]) and x.T.shape == (b, a)
                assert x[None].shape == (1, a, b) and type(x.shape) is taeda.Size


def test_the_dict_of_attributes_can_be_replaced():
    class Named(taeda.Tensor):
        pass

    x, y = taeda.ones(2), taeda.ones(2).as_subclass(Named)
    for t in (x, y):
        t.old = 1
        t.__dict__ = {"new": "x"}
        assert t.new == "x" and not hasattr(t, "old")
    y.__dict__ = x.__dict__
    x.new = "both"
    assert y.new == "both" and (y + 1).tolist() == [2, 2]


def test_classes_that_programs_extend_have_no_slots():
    """A function that stores arguments as attributes looks there for their names."""
    for kind in (taeda.nn.Module, taeda.optim.Optimizer, taeda.optim.lr_scheduler.LRScheduler, taeda.Tensor):
        assert not hasattr(kind, "__slots__")

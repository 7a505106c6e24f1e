"""Programs add methods to Tensor and replace some."""

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

"""Functions in the body of a class are no methods, as PyTorch's are none; methods of tensors are."""

import copy
import inspect
import pickle

import pytest

import taeda


class Holder:
    act = taeda.relu
    total = taeda.sum
    loss = taeda.nn.functional.mse_loss


def test_an_op_in_a_class_does_not_bind():
    x = taeda.tensor([-1.0, 2.0])
    assert Holder().act(x).tolist() == Holder.act(x).tolist() == [0.0, 2.0]
    assert Holder().total(x, 0).item() == 1.0
    assert Holder().loss(x, x).item() == 0.0


@pytest.mark.parametrize("name", ["add", "sum", "softmax", "to", "expand_as"])
def test_a_method_is_the_function_that_binds(name):
    method, x = getattr(taeda.Tensor, name), taeda.ones(2, 3)
    assert getattr(x, name).__self__ is x and getattr(x, name).__name__ == name == method.__name__
    assert method == method.function == method and hash(method) == hash(method.function)
    assert {method: 1}[method.function] == 1 and {method.function: 1}[method] == 1
    assert inspect.signature(method) == inspect.signature(method.function)
    assert pickle.loads(pickle.dumps(method)) is method and copy.copy(method) is method
    assert method.__doc__ == method.function.__doc__
    with pytest.raises(TypeError):
        method()
    assert method != taeda.Tensor.mul


@pytest.mark.parametrize("name", ["arccos", "negative_", "greater", "clip", "swapaxes", "det", "svd", "addbmm_"])
def test_a_method_has_the_name_that_it_is_looked_up_by(name):
    method = getattr(taeda.Tensor, name)
    assert method.__name__ == method.__qualname__ == name and repr(method) == f"<method '{name}' of 'Tensor' objects>"
    assert getattr(taeda.ones(2), name).__name__ == name
    assert pickle.loads(pickle.dumps(method)) is method


def test_two_names_of_a_method_are_equal():
    assert taeda.Tensor.arccos == taeda.Tensor.acos == taeda.acos
    assert hash(taeda.Tensor.arccos) == hash(taeda.Tensor.acos)


def test_overrides_are_told_the_function():
    seen = []

    class Told(taeda.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    t = taeda.ones(2).as_subclass(Told)
    t.add(1)
    taeda.add(t, 1)
    assert seen == [taeda.Tensor.add, taeda.add] == [taeda.add, taeda.Tensor.add]

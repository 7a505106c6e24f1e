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


@pytest.mark.parametrize(
    "name",
    ["arccos", "arccos_", "clip", "clip_", "concat", "divide", "det", "moveaxis", "negative", "less", "row_stack"],
)
def test_a_further_name_is_a_function_of_its_own(name):
    function = getattr(taeda, name)
    assert function.__name__ == function.__qualname__ == name and repr(function) == f"<function {name}>"
    assert inspect.signature(function) == inspect.signature(function.__wrapped__)
    assert function.__doc__ == function.__wrapped__.__doc__
    assert pickle.loads(pickle.dumps(function)) is function


def test_a_further_name_computes_what_the_first_does():
    x, out = taeda.tensor([0.25, -0.5], requires_grad=True), taeda.empty(2)
    y = taeda.arccos(x)
    assert y.tolist() == taeda.acos(x).tolist() and "Acos" in type(y.grad_fn).__name__ + repr(y.grad_fn)
    assert taeda.arccos(x.detach(), out=out) is out and out.tolist() == y.tolist()
    assert taeda.subtract(x, 1, alpha=2).tolist() == taeda.sub(x, 1, alpha=2).tolist()
    assert taeda.multiply(x.to_sparse(), 2).to_dense().tolist() == [0.5, -1.0]
    nested = taeda.nested.nested_tensor([taeda.ones(2), taeda.ones(3)], layout=taeda.jagged)
    assert [p.tolist() for p in taeda.negative(nested).unbind()] == [[-1.0] * 2, [-1.0] * 3]
    with pytest.raises(TypeError, match="acos"):
        taeda.arccos("x")


def test_overrides_are_told_the_name_that_was_called():
    seen = []

    class Told(taeda.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    taeda.clip(taeda.ones(2).as_subclass(Told), 0, 1)
    taeda.arccos(taeda.ones(2).as_subclass(Told))
    assert seen[0] is taeda.clip and taeda.arccos in seen


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

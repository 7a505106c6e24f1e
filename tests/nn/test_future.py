"""``taeda.__future__``: how modules change their parameters."""

import pytest

import taeda
from taeda import nn

future = taeda.__future__


@pytest.fixture
def swapping():
    future.set_swap_module_params_on_conversion(True)
    yield
    future.set_swap_module_params_on_conversion(False)


@pytest.fixture
def overwriting():
    future.set_overwrite_module_params_on_conversion(True)
    yield
    future.set_overwrite_module_params_on_conversion(False)


def with_gradient():
    layer = nn.Linear(2, 3)
    layer(taeda.ones(1, 2)).sum().backward()
    return layer, layer.weight, layer.weight.grad


def test_by_default_parameters_and_gradients_stay_the_same_objects():
    assert not future.get_swap_module_params_on_conversion()
    assert not future.get_overwrite_module_params_on_conversion()
    layer, weight, grad = with_gradient()
    layer.double()
    assert layer.weight is weight and weight.grad is grad
    assert weight.dtype is taeda.float64 and grad.dtype is taeda.float64


def test_overwriting(overwriting):
    layer, weight, grad = with_gradient()
    layer.double()
    assert layer.weight is not weight and weight.dtype is taeda.float32 and weight.grad is grad
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.grad.dtype is taeda.float64


def test_swapping(swapping):
    layer, weight, grad = with_gradient()
    layer.double()
    assert layer.weight is weight and weight.grad is grad and weight.requires_grad
    assert weight.dtype is taeda.float64 and grad.dtype is taeda.float64
    state = {name: x.float() for name, x in nn.Linear(2, 3).state_dict().items()}
    layer.load_state_dict(state, assign=True)
    assert layer.weight is weight and weight.dtype is taeda.float32 and taeda.equal(weight, state["weight"])
    state = {name: x * 2 for name, x in state.items()}
    layer.load_state_dict(state)
    assert layer.weight is weight and taeda.equal(weight, state["weight"])


def test_swapping_on_device_meta(swapping):
    with taeda.device("meta"):
        layer = nn.Linear(2, 3)
    weight, state = layer.weight, nn.Linear(2, 3).state_dict()
    layer.to_empty(device="cpu")
    layer.load_state_dict(state)
    assert layer.weight is weight and taeda.equal(weight, state["weight"])
    a, b = nn.Parameter(taeda.empty(2, device="meta")), nn.Parameter(taeda.ones(2))
    taeda.utils.swap_tensors(a, b)
    assert b.is_meta and not a.is_meta and a.sum().item() == 2


class Scaled(taeda.Tensor):
    """A tensor that holds another one and a number."""

    @staticmethod
    def __new__(cls, elem, scale):
        return taeda.Tensor._make_wrapper_subclass(cls, elem.shape, dtype=elem.dtype, device=elem.device)

    def __init__(self, elem, scale):
        self.elem, self.scale = elem, scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs):
        if func.__name__.split(".")[0] in ("detach", "_to_copy"):
            return cls(func(args[0].elem, *args[1:], **kwargs), args[0].scale)
        raise NotImplementedError(func)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is taeda.Tensor.module_load:
            return cls(args[1], args[0].scale)
        with taeda.overrides.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def test_subclasses_are_converted_and_loaded_whole(swapping):
    layer = nn.Linear(2, 3)
    layer.weight = weight = nn.Parameter(Scaled(layer.weight.detach(), 0.5))
    layer.bfloat16()
    assert layer.weight is weight and weight.elem.dtype is taeda.bfloat16
    with taeda.device("meta"):
        layer = nn.Linear(2, 3)
        layer.weight = weight = nn.Parameter(Scaled(layer.weight.detach(), 0.5))
    assert weight.is_meta
    state = nn.Linear(2, 3).state_dict()
    layer.load_state_dict(state, assign=True)
    assert layer.weight is weight and type(weight) is Scaled and weight.scale == 0.5
    assert taeda.equal(weight.elem, state["weight"]) and not weight.is_meta


def test_what_cannot_be_swapped_says_its_name(swapping):
    class Own(nn.Parameter):
        __slots__ = ("mark",)

    layer = nn.Linear(2, 3)
    layer.weight = Own(layer.weight.detach())
    with pytest.raises(RuntimeError, match=r"Couldn't swap Linear\.weight"):
        layer.double()


def test_swapping_warns_that_nothing_is_copied_to_meta(swapping):
    with taeda.device("meta"):
        layer = nn.Linear(2, 3)
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter"):
        layer.load_state_dict(nn.Linear(2, 3).state_dict())
    assert layer.weight.is_meta

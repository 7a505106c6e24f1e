"""Names inside ``torch.optim`` that packages use, and the helpers of its optimisers over lists of tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor, as_tensor, device, dtype, float32, float64
from taeda.nn import Parameter
from taeda.optim import lbfgs


def _cubic_interpolate(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[Any, Any] | None = None
) -> Any:
    """The place between the bounds at which the cubic with values ``f1``, ``f2`` and slopes ``g1``, ``g2`` is least."""
    return lbfgs._cubic_minimum(_point(x1, f1, g1), _point(x2, f2, g2), bounds)


def _point(t: Any, loss: Any, slope: Any, grad: Any = None) -> Any:
    return lbfgs._Point(t, float(loss), grad, as_tensor(slope))


def _strong_wolfe(
    obj_func: Callable, x: Any, t: Any, d: Tensor, f: Any, g: Tensor, gtd: Any, c1: float = 1e-4, c2: float = 0.9,
    tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[float, Tensor, Any, int]:  # fmt: skip
    """The step of L-BFGS's line search: the loss, its gradient, the step, and how often ``obj_func(x, t, d)`` ran."""

    def evaluate(step: Any) -> Any:
        loss, grad = obj_func(x, step, d)
        return _point(step, loss, grad.dot(d), grad.clone())

    found, count = lbfgs._wolfe_step(
        evaluate, _point(0.0, f, gtd, g.clone()), t, d.abs().max(), tolerance_change, max_ls, c1, c2
    )
    return found.loss, found.grad, found.t, count


def _device_has_foreach_support(device: device) -> bool:
    return device.type in ("cpu", "cuda")


def _has_foreach_support(tensors: list[Tensor | None], device: device) -> bool:
    return _device_has_foreach_support(device) and all(t is None or type(t) in (Tensor, Parameter) for t in tensors)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Tensor | None]], with_indices: bool = False
) -> dict[tuple[device, dtype], tuple[list[list[Tensor | None]], list[int]]]:
    """The lists, split by the device and dtype of the first list's tensors; with the places, where asked for."""
    groups: dict = {}
    for i, first in enumerate(tensorlistlist[0]):
        if first is None:
            raise RuntimeError("_group_tensors_by_device_and_dtype: the first list may have no None")
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for of_group, tensors in zip(lists, tensorlistlist, strict=True):
            if tensors:
                of_group.append(tensors[i])
        if with_indices:
            indices.append(i)
    return groups


_params_doc = "params (iterable): the parameters, or dicts that each define a group of them"
_foreach_doc = "foreach (bool, optional): whether parameters are stepped many at a time"
_fused_doc = "fused (bool, optional): whether a step is one kernel"
_capturable_doc = "capturable (bool, optional): whether steps can be captured in a graph (default: False)"
_differentiable_doc = "differentiable (bool, optional): whether gradients flow through a step (default: False)"
_maximize_doc = "maximize (bool, optional): whether the objective is maximised (default: False)"


def _use_grad_for_differentiable(func: Callable) -> Callable:
    """The step of an optimiser, which records gradients only where ``defaults["differentiable"]`` says so."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with taeda.set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def _disable_dynamo_if_unsupported(single_tensor_fn: Callable | None = None) -> Callable[[Callable], Callable]:
    """A decorator that leaves a function as it is."""
    return lambda func: func


def _default_to_fused_or_foreach(
    params: list[Tensor | None], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether an optimiser that is free to choose takes one kernel, and whether it takes lists of tensors."""
    given = [p for p in params if p is not None]
    if differentiable or any(type(p) not in (Tensor, Parameter) for p in given):
        return False, False
    fused = use_fused and all(p.device.type in ("cpu", "cuda") and p.is_floating_point() for p in given)
    return fused, not fused and all(p.device.type == "cuda" for p in given)


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    supported = ["cpu"] if cuda_unsupported else ["cuda", "cpu"]
    if p.device.type not in supported or not p.is_floating_point():
        raise RuntimeError(
            f"`fused=True` requires all the params to be floating point Tensors of supported devices: {supported} but "
            f"{p.dtype} and {p.device.type}"
        )


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _get_scalar_dtype(is_fused: bool | None = None) -> dtype:
    return float64 if taeda.get_default_dtype() is float64 and not is_fused else float32


def _get_value(x: Any) -> Any:
    if taeda.compiler.is_compiling():
        return x
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    return taeda.stack(x) if taeda.compiler.is_compiling() else x


def _to_scalar(x: Any) -> Any:
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put views as reals in the place of complex parameters, and of their gradients and states."""
    for i, p in enumerate(params):
        if p.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[i] = taeda.view_as_real(tensors[i])

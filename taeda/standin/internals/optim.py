"""Names inside ``torch.optim`` that packages use, and the helpers of its optimisers over lists of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda import Tensor, as_tensor, device, dtype
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

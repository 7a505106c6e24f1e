"""``torch._functorch.eager_transforms``."""

from __future__ import annotations

from typing import Any

from taeda.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp

__all__ = [
    "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp",
]  # fmt: skip


def _wrap_tensor_for_grad(maybe_tensor: Any, level: int) -> Any:
    """The argument: transformations here keep a tensor's class, for which packages wrap this function."""
    return maybe_tensor

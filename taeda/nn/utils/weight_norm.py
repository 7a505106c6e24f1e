"""Weight normalisation as a forward pre-hook (Salimans & Kingma 2016); prefer ``parametrizations.weight_norm``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..._core import Size
from ..._typed import Tensor
from ...ops.linalg import norm_except_dim
from ..modules.module import Module
from ..parameter import Parameter, UninitializedParameter

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def weight_of(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """``g v / |v|``."""
    return v * (g / norm_except_dim(v, 2, dim))


def undo_hook(module: Module, fits: Callable[[Any], bool]) -> bool:
    """Remove the first forward pre-hook that ``fits`` from ``module`` with what it did there. Whether there was one."""
    key = next((key for key, hook in module._forward_pre_hooks.items() if fits(hook)), None)
    if key is not None:
        module._forward_pre_hooks[key].remove(module)
        del module._forward_pre_hooks[key]
    return key is not None


class WeightNorm:
    """The hook: computes ``name`` from ``name_g`` and ``name_v`` before each call."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The normalised weight."""
        return weight_of(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Split the parameter and register the hook."""
        package = Size.__module__
        warnings.warn(
            f"`{package}.nn.utils.weight_norm` is deprecated in favor of "
            f"`{package}.nn.utils.parametrizations.weight_norm`.",
            FutureWarning, stacklevel=3,
        )  # fmt: skip
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        fn = WeightNorm(name, dim)
        weight = getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, 2, fn.dim).detach()))
        module.register_parameter(name + "_v", Parameter(weight.detach()))
        setattr(module, name, fn.compute_weight(module))
        module.register_forward_pre_hook(fn)
        return fn

    def remove(self, module: Module) -> None:
        """Put the product back as one parameter."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split a weight into length and direction, by a hook. :func:`parametrizations.weight_norm` is the newer form.

    ``w = g * v / norm(v)``, one length for each slice of ``dim`` (Salimans & Kingma 2016).

    Args:
        module: the module, which is changed.
        name: of its parameter. Any shape, floating-point.
        dim: the dimension whose slices have a length each; None for one length in all.

    Returns:
        ``module``.

    Examples:
        >>> layer = nn.utils.weight_norm(nn.Linear(4, 3))
        >>> layer.weight_g.shape, layer.weight_v.shape
        (taeda.Size([3, 1]), taeda.Size([3, 4]))
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo :func:`weight_norm`: the product becomes the parameter.

    Args:
        module: the module, which is changed.
        name: of its parameter.

    Returns:
        ``module``.

    Raises:
        ValueError: there is none.

    Examples:
        >>> layer = nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(4, 3)))
        >>> [name for name, p in layer.named_parameters()]
        ['bias', 'weight']
    """
    if not undo_hook(module, lambda hook: isinstance(hook, WeightNorm) and hook.name == name):
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    return module

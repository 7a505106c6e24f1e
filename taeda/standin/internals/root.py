"""Names that only ``torch`` itself has."""

from __future__ import annotations

import enum
import os
from typing import Any

import taeda
from taeda._core import contiguous_format as legacy_contiguous_format

from ..overlay import PyTorchFileReader, PyTorchFileWriter

__all__ = ["PyTorchFileReader", "PyTorchFileWriter", "legacy_contiguous_format"]

Tag = enum.Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order "
    "nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy",
    start=0,
    module="torch",
)
Tag.__doc__ = "What may be said of an op that is registered."


class classproperty:
    """A property of the class itself."""

    def __init__(self, function: Any) -> None:
        self.function = function if isinstance(function, (classmethod, staticmethod)) else classmethod(function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.function.__get__(instance, owner)()


def _check_with(error_type: type[Exception], cond: Any, message: Any = None) -> None:
    """Raise an ``error_type``, with what ``message()`` gives, where ``cond`` is False."""
    from ..._scalars import _checker

    _checker("_check_with", error_type)(cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Any = None) -> None:
    """Raise an ``error_type`` where an element of ``cond``, of bools, is False."""
    if not isinstance(cond, taeda.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not taeda.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, cond.all().item(), message)


def _check_tensor_all(cond: Any, message: Any = None) -> None:
    """Raise a RuntimeError where an element of ``cond``, of bools, is False."""
    _check_tensor_all_with(RuntimeError, cond, message)


def get_file_path(*path_components: str) -> str:
    """A path in the folder that the package is in."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(taeda.__file__))), *path_components)


def sym_fresh_size(size: Any = None) -> Any:
    """The number itself: sizes are numbers."""
    return size


def _amp_update_scale_(
    self: Any, growth_tracker: Any, found_inf: Any, scale_growth_factor: float, scale_backoff_factor: float,
    growth_interval: int,
) -> Any:  # fmt: skip
    """The scale of a loss after a step: less where gradients were not finite, more after enough steps in which they
    were."""
    if float(found_inf):
        self.mul_(scale_backoff_factor)
        growth_tracker.zero_()
    elif int(growth_tracker) + 1 == growth_interval:
        grown = self * scale_growth_factor
        if grown.isfinite().all():
            self.copy_(grown)
        growth_tracker.zero_()
    else:
        growth_tracker.add_(1)
    return self


def _has_compatible_shallow_copy_type(input: Any, from_: Any) -> bool:
    """Whether ``input.data`` may be set to ``from_``: both are dense, or both are sparse."""
    return input.layout == from_.layout


def _is_alias_of(tensor: Any, other: Any) -> bool:
    """Whether the two tensors share their memory."""
    return bool(tensor.untyped_storage()._cdata == other.untyped_storage()._cdata)


class SDPAParams:
    """The arguments of attention, for questions about kernels of GPUs."""

    def __init__(
        self, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout: float = 0.0, is_causal: bool = False,
        enable_gqa: bool = False,
    ) -> None:  # fmt: skip
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def _current_graph_task_id() -> int:
    """The number of the backward pass that runs now; -1 outside."""
    return taeda._core.current_task()


def _get_accelerator() -> Any:
    """The device beside the CPU, or that."""
    return taeda.device("cpu")


def _get_default_device() -> str:
    """The kind of device that new tensors are on."""
    return str(taeda.get_default_device())


class TracingContext:
    """The state of PyTorch's tracer, which is never there."""

    @staticmethod
    def try_get() -> None:
        """None."""


def amp_definitely_not_available() -> bool:
    """True: there is no GPU for ``torch.cuda.amp``."""
    return True

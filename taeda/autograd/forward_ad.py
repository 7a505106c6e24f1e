"""Forward-mode derivatives with dual tensors, ``x + e * tangent``.

A derivative in a direction is linear in the cotangent of the reverse mode. So it is computed by differentiating that
mode again (Townsend 2017, "A new trick for calculating Jacobian vector products"): every op that has a derivative has
this one. Under ``no_grad`` ops are recorded for it in nodes that reverse passes do not enter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .. import _core
from .._core import Tensor
from .._core.callbacks import callbacks
from ..ops.parts import OfParts
from .backward import grad
from .modes import forward_mode, on_values, passing_tangents

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_level: _Level | None = None


class UnpackedDualTensor(NamedTuple):
    """The result of :func:`unpack_dual`: the value, and its derivative or None.

    Attributes:
        primal: the value.
        tangent: the derivative, of its shape, or None.

    Examples:
        >>> import taeda.autograd.forward_ad as fwd
        >>> with fwd.dual_level():
        ...     fwd.unpack_dual(fwd.make_dual(taeda.tensor(2.0), taeda.tensor(1.0)) ** 2).tangent
        tensor(4.)
    """

    primal: Tensor
    tangent: Tensor | None


class _Level:
    """The dual tensors made since the level was entered: inputs, and the direction of each."""

    def __init__(self) -> None:
        self.duals: list[Tensor] = []
        self.inputs: list[Tensor] = []  # their places in the graph when they were made
        self.tangents: list[Tensor] = []
        self.own: list[Tensor] = []  # leaves that exist only so that duals are followed
        self.recording = _core.enter_forward_mode()


def enter_dual_level() -> int:
    """Begin a level in which dual tensors can be made: :func:`dual_level` without a block.

    Returns:
        The level's number, 0.

    Raises:
        RuntimeError: there is one already.

    Examples:
        >>> import taeda.autograd.forward_ad as fwd
        >>> fwd.enter_dual_level()
        0
        >>> fwd.exit_dual_level()
    """
    global _level
    if _level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment: use taeda.func.jvp, which nests")
    _level = _Level()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: tensors made in it are no longer dual.

    Args:
        level: its number; the present one if None.

    Raises:
        RuntimeError: there is none.

    Examples:
        >>> import taeda.autograd.forward_ad as fwd
        >>> _ = fwd.enter_dual_level()
        >>> fwd.exit_dual_level()
    """
    global _level
    if _level is None:
        raise RuntimeError("exit_dual_level: no dual level is entered")
    _core.exit_forward_mode(_level.recording)
    _level = None


@contextmanager
def dual_level() -> Iterator[int]:
    """A block in which dual tensors can be made, which carry a derivative along: forward-mode differentiation.

    One pass gives the derivative of all outputs in one direction, without keeping anything for later.

    Yields:
        The number of the level, from 0.

    Examples:
        >>> import taeda.autograd.forward_ad as fwd
        >>> with fwd.dual_level():
        ...     x = fwd.make_dual(taeda.tensor([1.0, 2.0]), taeda.tensor([1.0, 0.0]))
        ...     fwd.unpack_dual(x**2).tangent
        tensor([2., 0.])
    """
    number = enter_dual_level()
    try:
        yield number
    finally:
        exit_dual_level()


@on_values
def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor with the values of ``tensor``, whose derivative is ``tangent``.

    Args:
        tensor: any shape; floating-point or complex.
        tangent: the same shape, floating-point or complex; cast where it enters a result of another dtype.
        level: number of the level; the present one if None.

    Returns:
        A tensor of the shape and dtype of ``tensor``.

    Raises:
        RuntimeError: outside a level, or the sizes differ.
        ValueError: ``tensor`` or ``tangent`` is of another dtype.
        NotImplementedError: the tensor is made of others, such as a sparse one.

    Examples:
        >>> import taeda.autograd.forward_ad as fwd
        >>> with fwd.dual_level():
        ...     t = fwd.make_dual(taeda.tensor(0.0), taeda.tensor(1.0))
        ...     fwd.unpack_dual(t.sin()).tangent  # cos(0)
        tensor(1.)
    """
    if _level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, t in (("tensor", tensor), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"make_dual: expected a tangent of sizes {tuple(tensor.shape)}, as the tensor, got {tuple(tangent.shape)}"
        )
    if isinstance(tensor, OfParts):
        raise NotImplementedError(
            f"make_dual: not of {tensor._without_memory}; give tangents to the tensors that it is made of"
        )
    if _has_tangent(tensor):
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    if _has_tangent(tangent):
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported."
        )
    if not tensor.requires_grad:
        tensor = tensor.detach().requires_grad_()
        _level.own.append(tensor)
    dual = _followed(tensor)
    _level.duals.append(dual)
    _level.inputs.append(_core.same_edge(dual))
    _level.tangents.append(tangent)
    return dual


def _has_tangent(t: Tensor) -> bool:
    return _core.may_have_tangent(t) and unpack_dual(t).tangent is not None


def under_no_grad() -> bool:
    """Whether ops are recorded for forward mode alone."""
    return _core.is_recorded() and not _core.is_grad_enabled()


def hidden(t: Tensor) -> Tensor:
    """``t``, where ops are recorded for forward mode alone: with a node that reverse passes do not enter."""
    if t.grad_fn is not None and t.grad_fn.for_tangents:
        return t
    if hasattr(t, "_hidden"):  # under vmap
        return t._hidden()
    if isinstance(t, OfParts):
        return t._of_graph_parts([hidden(x) for x in t._graph_parts()])
    made = t.detach()
    _core.record_custom(list, "InputBackward", [t], [made])
    return made


def _hide_all(gradients: list) -> list:
    """Hide the results of the derivatives of such a node: an op may hand on its argument."""
    return [hidden(g) if g is not None and g.requires_grad else g for g in gradients]


callbacks.hide_all = _hide_all


def _followed(tensor: Tensor) -> Tensor:
    """``tensor``, as one that has a tangent."""
    dual = tensor.detach()
    _core.record_custom(list, "MakeDualBackward", [tensor], [dual], None, True)
    return dual


def _trimmed(tensor: Tensor, own: list[Tensor]) -> Tensor:
    """``tensor``, without its graph unless a leaf other than ``own`` is in it."""
    return tensor if _core.depends_on_others([tensor], own, _core.forward_levels() > 1) else tensor.detach()


@on_values
def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value of a dual tensor and its derivative; the latter is None where no dual tensor went into it.

    Both can be differentiated where a tensor that requires grad went into them, beside the dual ones.

    Args:
        tensor: any tensor.
        level: number of the level; the present one if None.

    Returns:
        An :class:`UnpackedDualTensor`; both have the shape and dtype of ``tensor``.

    Examples:
        >>> import taeda.autograd.forward_ad as fwd
        >>> with fwd.dual_level():
        ...     x = fwd.make_dual(taeda.tensor(3.0), taeda.tensor(1.0))
        ...     fwd.unpack_dual(x**2), fwd.unpack_dual(taeda.tensor(1.0)).tangent
        (UnpackedDualTensor(primal=tensor(9.), tangent=tensor(6.)), None)
    """
    if _level is None:
        return UnpackedDualTensor(tensor, None)
    for dual, place, tangent in zip(_level.duals, _level.inputs, _level.tangents, strict=True):
        if dual is tensor and dual.grad_fn is place.grad_fn:
            return UnpackedDualTensor(_trimmed(tensor, _level.own), tangent)
    if not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    primal = _trimmed(tensor, _level.own)
    with forward_mode(), passing_tangents():
        leaf = tensor.detach().new_zeros(tensor.shape).requires_grad_()
        weight = _followed(leaf)
        back = grad(tensor, _level.inputs, weight, create_graph=True, allow_unused=True)
        pairs = [(g, t) for g, t in zip(back, _level.tangents, strict=True) if g is not None and g.requires_grad]
        if not pairs:
            none = all(g is None for g in back)
            return UnpackedDualTensor(primal, None if none else tensor.detach().new_zeros(tensor.shape))
        (tangent,) = grad(
            [g for g, _ in pairs], [weight], [t.to(g.dtype) for g, t in pairs], create_graph=True, allow_unused=True
        )
    if tangent is None:
        tangent = tensor.detach().new_zeros(tensor.shape)
    return UnpackedDualTensor(primal, _trimmed(tangent, [*_level.own, leaf]))


callbacks.unpack_dual = unpack_dual

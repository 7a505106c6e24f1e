"""Ops over many tensors at once: the norm of gradients, their scaling and limits, an optimiser's step.

Each op is one launch over all tensors if they are contiguous and of one floating-point dtype, else one per tensor. A
mode sees one call. The ops write to the tensors of their lists and record no graph.
"""

from __future__ import annotations

import functools
import math

from .. import _core
from .._core import Tensor
from .._core import optim as core
from ..kernels import optim as kernels
from ..kernels.target import here
from .joining import stack
from .reduction import linalg_vector_norm
from .table import OPS, primitive

_ORDERS = {1.0: "1", 2.0: "2", math.inf: "inf"}


def _at_once(*lists) -> bool:
    """Whether one kernel can go over all of them."""
    tensors = [t for tensors in lists for t in tensors]
    return core.alike(tensors) and tensors[0].is_floating_point()


def _norm_by_tensor(tensors, order):
    norms = [linalg_vector_norm(t, order) for t in tensors]
    return linalg_vector_norm(stack(norms), order)


@primitive(method=False, out=False, decomposition=_norm_by_tensor)
def total_norm(tensors, order):
    """The norm of order ``order`` (a float) of all elements of ``tensors`` together; chunks are added in order."""
    if order not in _ORDERS or not _at_once(tensors):
        return _norm_by_tensor(tensors, order)
    name = _ORDERS[order]
    address = kernels.norm(tensors[0].dtype.name, name)
    together = here().vector_bytes >= 16  # else there are threads that join the chunks' norms
    made = core.norm(address, list(tensors), kernels.chunk(), name, together)
    if not together:
        made = made.amax() if name == "inf" else made.sum()
        made = made.sqrt() if name == "2" else made
    return made.to(tensors[0].dtype)


@primitive(
    method=False, out=False, decomposition=lambda tensors, order: stack([linalg_vector_norm(t, order) for t in tensors])
)  # fmt: skip
def each_norm(tensors, order):
    """The norm of order ``order`` (1, 2 or infinity) of each of some contiguous floating-point tensors of one dtype."""
    dtype, name = tensors[0].dtype.name, _ORDERS[order]
    addresses = kernels.norm(dtype, name), kernels.join_each(dtype, name)
    return core.norms(*addresses, list(tensors), kernels.chunk())


def _change_by_tensor(tensors, how, number, others):
    for i, t in enumerate(tensors):
        if how == "scale":
            t.mul_(number.to(t.dtype) if isinstance(number, Tensor) else number)
        elif how == "bound":
            t.clamp_(-number, number)
        else:
            t.lerp_(others[i], number)


@primitive(method=False, out=False, decomposition=_change_by_tensor)
def change_all(tensors, how, number, others=None):
    """Change every tensor in place.

    Args:
        tensors: a list.
        how: ``"scale"`` multiplies by ``number``, ``"bound"`` clamps to ``[-number, number]``, ``"lerp"`` goes that
            part of the way to the tensor that has the same place in ``others``.
        number: a float, or of "scale" a tensor without dimensions.
    """
    if isinstance(number, Tensor) and number.is_meta:
        return _change_by_tensor(tensors, how, number, others)
    number = number.to(_core.float64) if isinstance(number, Tensor) else float(number)
    if (how == "bound" and number < 0) or not _at_once(tensors, others or ()):
        return _change_by_tensor(tensors, how, number, others)
    core.change_all(
        kernels.each(tensors[0].dtype.name, how), list(tensors), kernels.chunk(), number, others and list(others)
    )


def _named(op, *values):
    return dict(zip(op.params, values, strict=False))  # what is left out has a default


@functools.cache
def _applied(name, letters):
    op = OPS[name]
    return kernels.applied(name, lambda *xs: op.body(**_named(op, *xs)), letters)


def _apply_by_tensor(tensors, name, letters, lists, numbers):
    for i, t in enumerate(tensors):
        given = {"n": iter(numbers), "t": iter(lists)}
        values = (next(given["n" if c == "n" else "t"])[i] for c in letters)
        t.copy_(OPS[name](**_named(OPS[name], *values)))


@primitive(method=False, out=False, decomposition=_apply_by_tensor)
def apply_all(tensors, name, letters, lists, numbers):
    """Write the result of a pointwise op to each tensor.

    Args:
        tensors: a list of contiguous floating-point tensors of one dtype.
        name: of the op.
        letters: for each argument of the op, ``t`` for tensors of these sizes, ``s`` for tensors of one element, ``n``
            for numbers. All tensors have one dtype.
        lists: for each argument that is a tensor, a list of those of all tensors.
        numbers: for each that is a number, a list of floats.
    """
    address = _applied(name, letters)(tensors[0].dtype.name)
    if not core.apply_to_all(address, list(tensors), list(map(list, lists)), numbers, kernels.chunk()):
        _apply_by_tensor(tensors, name, letters, lists, numbers)


def _update_by_tensor(params, grads, states, scalars, rule):
    for p, grad, own, numbers in zip(params, grads, states, scalars, strict=True):
        rule.update(p, grad, own, numbers)


@primitive(method=False, out=False, decomposition=_update_by_tensor)
def update_all(params, grads, states, scalars, rule):
    """An optimiser's step for parameters of one dtype.

    Args:
        params: the parameters, which are written.
        grads: their gradients.
        states: for each parameter a list of its state tensors, which are written.
        scalars: for each parameter a tuple of the rule's numbers.
        rule: has ``kernel(dtype name)``, the address of a kernel of :mod:`taeda.kernels.optim` or 0, and
            ``update(parameter, gradient, state tensors, numbers)``, the same in tensors.
    """
    address = rule.kernel(params[0].dtype.name) if all(map(_core.is_dense_tensor, params)) else 0
    if address:
        states = [tuple(own) for own in states]
        plan = core.Plan(address, list(params), states, ("",) * len(states[0]), (), len(scalars[0]), kernels.chunk())
        if plan.once(list(grads), list(scalars)):
            return
    _update_by_tensor(params, grads, states, scalars, rule)

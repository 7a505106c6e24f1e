"""Conjugated views: ``conj`` of a complex tensor shares its memory, and the sign is minded where elements are read or
written.

A tensor remembers that it shows the conjugates of its memory (the imaginary part of such a view: the negatives), and
its views do too. Kernels do not know about this: the call path looks for such *conjugate views* among the arguments of
ops. Views run as they are. Other ops run on copies that hold the conjugated values, and values written in place or into
``out`` are copied back into the shared memory. ``docs/notes/0010`` gives the reasons.
"""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Op, Tensor
from .._core import tensor as core
from .._core.callbacks import callbacks
from .copies import copy_
from .pointwise import conj_physical, conjugated, neg
from .table import composite, primitive, view


@view(core.view_conjugated, method=False, node="Conj")
def conjugated_view(input):
    """The conjugates of what ``input`` shows, on the same memory."""


conjugated_view.vjp(input=lambda g: conj_physical(g))


@primitive(method=False, out=False, node="Clone")
def resolved(input):
    """A copy of a conjugate view that holds what the view shows."""
    result = _core.empty_like(input)
    _core.copy_tensor(result, input)
    return result


resolved.vjp(input=lambda g: g)


@composite(additive=True, meta="form", canonical=True)
def conj(input):
    """The complex conjugate: ``a - bi`` for ``a + bi``. It is a view; nothing is computed before the elements are read.
    A real tensor is given back as it is.

    Under ``vmap`` and other modes that do something else with ops, the conjugates are computed.

    Returns:
        A view of the sizes and the dtype of ``input``; a tensor that is not complex is given back.
    Examples:
        >>> z = taeda.conj(taeda.tensor([1 + 2j, 3 - 4j]))
        >>> z, z.is_conj()
        (tensor([1.-2.j, 3.+4.j]), True)
    """
    if not input.is_complex():
        return input
    if not _core.is_mode_active() or all(hasattr(mode, "note_made") for mode in _core.mode_stack()):
        return conjugated_view(input)
    return conj_physical(input)  # modes other than those that record know no such views


@composite(meta="form")
def resolve_conj(input):
    """``input`` itself; of a conjugated view, a copy whose memory holds what the view shows.

    Returns:
        The sizes and the dtype of ``input``.
    Examples:
        >>> z = taeda.tensor([1 + 2j]).conj()
        >>> taeda.resolve_conj(z).is_conj()
        False
    """
    return resolved(input) if input.is_conj() else input


@composite(meta="form")
def resolve_neg(input):
    """``input`` itself; of the imaginary part of a conjugated view, a copy whose memory holds what the view shows.

    Returns:
        The sizes and the dtype of ``input``.
    Examples:
        >>> taeda.resolve_neg(taeda.tensor([1 + 2j]).conj().imag)
        tensor([-2.])
    """
    return resolved(input) if input.is_neg() else input


def _is_conjugate_view(x: Tensor) -> bool:
    return x.is_conj() or x.is_neg()


def resolve_all(x: Any) -> Any:
    """``x`` with copies in place of conjugate views, in lists and tuples too."""
    if isinstance(x, Tensor):
        return core.run_as_it_is(resolved, (x,), {}) if _is_conjugate_view(x) else x
    if type(x) in (list, tuple):
        return type(x)(resolve_all(item) for item in x)
    return x


def _call(op: Op, args: tuple, kwargs: dict) -> Any:
    """A call of an op with conjugate views among its arguments."""
    if op.kind == "view" and not _core.is_mode_active():
        return core.run_as_it_is(op, args, kwargs)
    if op.writes:
        return _write_in_place(op, args, kwargs)
    if kwargs.get("out") is not None:
        return _write_out(op, resolve_all(args), kwargs)
    return op(*resolve_all(args), **{key: resolve_all(x) for key, x in kwargs.items()})


def _write_back(target: Tensor, values: Tensor) -> None:
    core.run_as_it_is(copy_, (target, values), {})


def _write_in_place(op: Op, args: tuple, kwargs: dict) -> Tensor:
    name = op.params[0]
    if args:
        target, args = args[0], args[1:]
    else:
        name = name if name in kwargs else "self"
        target = kwargs[name]
    others = {key: resolve_all(x) for key, x in kwargs.items() if key != name}
    if not _is_conjugate_view(target):
        return op(target, *resolve_all(args), **others)
    _write_back(target, op(resolve_all(target), *resolve_all(args), **others))
    return target


def _write_out(op: Op, args: tuple, kwargs: dict) -> Any:
    out = kwargs["out"]
    room = resolve_all(out)
    made = op(*args, **{key: room if key == "out" else resolve_all(x) for key, x in kwargs.items()})
    for target, values in zip(out, room, strict=True) if isinstance(out, (tuple, list)) else ((out, room),):
        if values is target:
            continue
        if values.shape != target.shape:  # it was resized, and has memory of its own
            core.set_data(target, values)
        else:
            _write_back(target, values)
    if made is room:
        return out
    return type(made)(*out) if hasattr(made, "_fields") else type(made)(out)


core.bind_conjugate_views(conjugated, neg)
callbacks.conjugated = _call
callbacks.resolve = resolve_all

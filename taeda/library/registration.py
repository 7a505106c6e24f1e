"""Making ops of functions, finding them by name, and registering what else they have."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, overload

from .._schema import infer_schema, read_schema
from ..aten import DECLARED, OpOverload, OpOverloadPacket
from ..ops.registry import OPS
from .definition import CustomOpDef, FunctionT, device_types_of


class _Namespace:
    """The ops of a library by name; without a name, the libraries."""

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if not self._name and not name.startswith("__"):
            return _Namespace(name)
        label = f"{self._name}::{name}"
        if label in DECLARED:
            return DECLARED[label]._overload.overloadpacket
        if label in OPS:  # declared by a decorator of `taeda.ops.table`
            return OPS[label]
        raise AttributeError(f"there is no op {label}; make it with taeda.library.custom_op")


#: ``ops.my_library.my_op.default``.
ops = _Namespace()


def checked_tags(tags: Any) -> list:
    """``tags``, one or several, as a list.

    Args:
        tags: a ``torch.Tag``, several, or None.
    Returns:
        The list.
    Raises:
        TypeError: one is no ``torch.Tag``.
    """
    found = [] if tags is None else list(tags) if isinstance(tags, (list, tuple, set, frozenset)) else [tags]
    for tag in found:
        if not isinstance(tag, enum.Enum):
            raise TypeError(f"tags: expected a Tag or a sequence of them, got {tag!r}")
    return found


@overload
def custom_op(
    name: str, fn: Callable, /, *, mutates_args: Any, device_types: Any = None, schema: str | None = None,
    tags: Any = None,
) -> CustomOpDef: ...  # fmt: skip


@overload
def custom_op(
    name: str, fn: None = None, /, *, mutates_args: Any, device_types: Any = None, schema: str | None = None,
    tags: Any = None,
) -> Callable[[Callable], CustomOpDef]: ...  # fmt: skip


def custom_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: Any, device_types: Any = None,
    schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Make a function an op called ``library::op``; also a decorator.

    A call checks its arguments by the signature. Gradients do not see into the function: :func:`register_autograd`
    gives a derivative. ``vmap`` runs it example by example, or by :func:`register_vmap`; on device meta and in programs
    that are recorded it goes by :func:`register_fake`.

    Args:
        name: ``"library::op"``.
        fn: the function. It gives new tensors, no argument and no view of one.
        mutates_args: names of arguments that it writes into, or ``"unknown"`` for all tensors.
        device_types: types of devices, such as ``"cpu"``, that the function is for; None: all.
        schema: the signature, as ``"(Tensor x, float s) -> Tensor"``; None: from the function's type hints.
        tags: what is said of the op; kept in its ``tags``.

    Returns:
        The op; without ``fn``, a decorator that gives it.

    Raises:
        ValueError: a type hint is missing, or ``schema`` does not go with ``mutates_args``.
        RuntimeError: the schema cannot be read, or there is no such device.

    Examples:
        >>> @taeda.library.custom_op("docs::cube", mutates_args=())
        ... def cube(x: taeda.Tensor) -> taeda.Tensor:
        ...     return taeda.from_numpy(x.detach().numpy() ** 3)
        >>> def keep(ctx, inputs, output):
        ...     ctx.save_for_backward(*inputs)
        >>> def backward(ctx, grad):
        ...     (x,) = ctx.saved_tensors
        ...     return grad * 3 * x**2
        >>> cube.register_autograd(backward, setup_context=keep)
        >>> x = taeda.tensor([2.0], requires_grad=True)
        >>> cube(x).sum().backward()
        >>> x.grad
        tensor([12.])
    """
    kinds, kept = device_types_of(device_types), checked_tags(tags)

    def decorate(function: Callable) -> CustomOpDef:
        read = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        declared = read_schema(read).mutated
        if schema is not None and mutates_args != "unknown" and set(declared) != set(mutates_args):
            raise ValueError(
                f"custom_op: mutates_args is {set(mutates_args) or '()'}, and by its schema {schema} the op writes to "
                f"{set(declared) or 'nothing'}; let both say the same"
            )
        made = CustomOpDef(name, function, mutates_args, read, kept)
        made._by_device = dict.fromkeys(kinds, function)
        if "cpu" not in kinds and None not in kinds:
            made._use(None)
        return made

    return decorate if fn is None else decorate(fn)


def _find(op: Any) -> Any:
    if isinstance(op, (OpOverload, OpOverloadPacket)):
        op = op.name() if isinstance(op, OpOverload) else op._qualified_op_name
    return op if isinstance(op, CustomOpDef) else DECLARED.get(op)


def _named(op: Any, what: str, lib: Any) -> CustomOpDef:
    """The op of a name."""
    found = _find(f"{lib.ns}::{op}" if isinstance(op, str) and lib is not None and "::" not in op else op)
    if found is None:
        raise AttributeError(f"library.{what}: there is no op {op!r}; make it with taeda.library.custom_op or define")
    return found


@overload
def register_fake(
    op: Any, func: FunctionT, /, *, lib: Any = None, allow_override: bool = False, **kwargs: Any
) -> FunctionT: ...


@overload
def register_fake(
    op: Any, func: None = None, /, *, lib: Any = None, allow_override: bool = False, **kwargs: Any
) -> Callable[[FunctionT], FunctionT]: ...


def register_fake(
    op: Any, func: Callable | None = None, /, *, lib: Any = None, allow_override: bool = False, **kwargs: Any
) -> Any:
    """Register a function that gives an op's results without values, from tensors without values, to record programs.
    Also a decorator.

    For an op that was not made here it is accepted and not used.

    Args:
        op: a :class:`CustomOpDef` or its name.
        func: a function of the op's arguments; it gives tensors of the right sizes and dtypes.
        lib: the :class:`Library` that a name without ``::`` is of.
        allow_override: accepted.
        **kwargs: accepted.

    Returns:
        ``func``.

    Examples:
        >>> @taeda.library.custom_op("docs::flat", mutates_args=())
        ... def flat(x: taeda.Tensor) -> taeda.Tensor:
        ...     return taeda.from_numpy(x.numpy().ravel().copy())
        >>> @taeda.library.register_fake("docs::flat")
        ... def _(x):
        ...     return x.new_empty(x.numel())
        >>> flat(taeda.ones(2, 3, device="meta")).shape
        taeda.Size([6])
    """
    found = _find(f"{lib.ns}::{op}" if isinstance(op, str) and lib is not None and "::" not in op else op)

    def decorate(function: Callable) -> Callable:
        return function if found is None else found.register_fake(function)

    return decorate if func is None else decorate(func)


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """The derivative of a :func:`custom_op`.

    Args:
        op: a :class:`CustomOpDef` or its name.
        backward: gives the gradients by the arguments, one each or None: ``backward(ctx, *grads)``.
        setup_context: keeps what ``backward`` needs: ``setup_context(ctx, inputs, output)``.
        lib: accepted.

    Examples:
        >>> @taeda.library.custom_op("docs::half", mutates_args=())
        ... def half(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x / 2
        >>> taeda.library.register_autograd("docs::half", lambda ctx, grad: grad / 2)
        >>> x = taeda.ones(2, requires_grad=True)
        >>> half(x).sum().backward()
        >>> x.grad
        tensor([0.5000, 0.5000])
    """
    found = _named(op, "register_autograd", lib)
    found.register_autograd(backward, setup_context=setup_context)


@overload
def register_kernel(op: Any, device_types: Any, func: FunctionT, /, *, lib: Any = None) -> FunctionT: ...


@overload
def register_kernel(
    op: Any, device_types: Any, func: None = None, /, *, lib: Any = None
) -> Callable[[FunctionT], FunctionT]: ...


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Another implementation of a :func:`custom_op`, for some devices; also a decorator.

    Args:
        op: a :class:`CustomOpDef` or its name.
        device_types: ``"cpu"``, several such names, or None for any; others are accepted and not used.
        func: the function.
        lib: accepted.

    Returns:
        ``func``.

    Examples:
        >>> @taeda.library.custom_op("docs::inc", mutates_args=())
        ... def inc(x: taeda.Tensor) -> taeda.Tensor:
        ...     raise NotImplementedError
        >>> _ = taeda.library.register_kernel("docs::inc", "cpu", lambda x: x + 1)
        >>> inc(taeda.tensor(1.0))
        tensor(2.)
    """
    found = _find(op)
    if found is None:
        return func if func is not None else lambda function: function
    return found.register_kernel(device_types, func)


@overload
def register_vmap(op: Any, func: FunctionT, /, *, lib: Any = None) -> FunctionT: ...


@overload
def register_vmap(op: Any, func: None = None, /, *, lib: Any = None) -> Callable[[FunctionT], FunctionT]: ...


def register_vmap(op: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Register what :func:`taeda.vmap` runs on the whole batch of a :func:`custom_op`; also a decorator.

    Without it the op runs example by example.

    Args:
        op: a :class:`CustomOpDef` or its name.
        func: ``func(info, in_dims, *args)`` gives the result and its ``out_dims``.
        lib: accepted.

    Returns:
        ``func``.

    Raises:
        ValueError: ``op`` is of another type.
        NotImplementedError: there is no such op.

    Examples:
        >>> @taeda.library.custom_op("docs::total", mutates_args=())
        ... def total(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x.sum()
        >>> @taeda.library.register_vmap("docs::total")
        ... def _(info, in_dims, x):
        ...     return x.movedim(in_dims[0], 0).flatten(1).sum(1), 0
        >>> taeda.vmap(total)(taeda.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([3., 7.])
    """
    if not isinstance(op, (str, CustomOpDef, OpOverload)):
        raise ValueError(f"register_vmap({op}): got unexpected type for op: {type(op)}")
    return _named(op, "register_vmap", lib).register_vmap(func)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Callable | None = None, /, **kwargs: Any) -> Any:
    """Accepted: classes and modes see custom ops through ``__torch_function__``.

    Args:
        op: a :class:`CustomOpDef` or its name.
        torch_dispatch_class: a class of tensors or of modes.
        func: the function; without it, a decorator.
        **kwargs: accepted.

    Returns:
        ``func``.

    Examples:
        >>> taeda.library.register_torch_dispatch("docs::any", object, len) is len
        True
    """
    return func if func is not None else lambda function: function


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """The dtype that a :func:`custom_op` casts tensors to under autocast: see :meth:`CustomOpDef.register_autocast`.

    Args:
        op: a :class:`CustomOpDef` or its name.
        device_type: the device whose autocast is meant.
        cast_inputs: the dtype.
        lib: accepted.

    Examples:
        >>> @taeda.library.custom_op("docs::same", mutates_args=())
        ... def same(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x.clone()
        >>> taeda.library.register_autocast("docs::same", "cpu", taeda.bfloat16)
        >>> with taeda.autocast("cpu", dtype=taeda.bfloat16):
        ...     same(taeda.ones(2)).dtype
        taeda.bfloat16
    """
    found = _named(op, "register_autocast", lib)
    found.register_autocast(device_type, cast_inputs)

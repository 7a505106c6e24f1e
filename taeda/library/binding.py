"""Ops of functions in C."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from .._core import Tensor
from ..ops.creation import zeros
from ..ops.joining import stack
from ..ops.meta import check_all_on_meta
from . import _c_functions
from .definition import CustomOpDef


def bind(
    declaration: str, library: Any = None, *, name: str | None = None, mutates_args: Sequence[str] = (),
    threads: str | None = None, backward: Callable | None = None, setup_context: Callable | None = None,
    no_grad: bool = False,
) -> CustomOpDef:  # fmt: skip
    """Make an op of a function in C that reads and writes the memory of tensors.

    The declaration says what is what. A pointer to const is a tensor that is read; another pointer is a result, a new
    tensor, unless ``mutates_args`` names it: then it is given, and written. ``float *x`` is a tensor of any shape. All
    such have one shape, and ``int64_t n`` is their number of elements. ``float x[rows][columns]`` is a tensor with
    these sizes, and the whole number ``rows`` is its first size. A call gives what is left, in the order of the
    declaration: tensors that are read or written, numbers, and sizes that no given tensor has. It gives back the
    results: None, a tensor, or a tuple.

    Dtypes, shapes and contiguity are checked. Python's lock is released while the function runs. On tensors without
    memory of their own (meta, batched by vmap) the op goes by its shapes, or example by example.

    Args:
        declaration: as in C: ``"void f(const float *x, float *y, int64_t n)"``. It gives nothing back but through
            pointers. Half floats are ``_Float16`` and ``__bf16``, complex numbers ``float _Complex``.
        library: file of the shared library, one that ``ctypes`` has opened, or None for this program.
        name: of the op; default: ``"<library>::<function>"``.
        mutates_args: names of parameters that are given, read and written.
        threads: a size that is the first dimension of every tensor: threads call the function with parts of it.
        backward: the derivative, as for :func:`register_autograd`. Without one a call with a tensor that requires grad
            is an error.
        setup_context: what it needs, as for :func:`register_autograd`.
        no_grad: without a derivative, results do not require grad, whatever the arguments do.

    Returns:
        The op.

    Raises:
        ValueError: the declaration cannot be read, or does not go with the other arguments.
        OSError: the library cannot be loaded.
        AttributeError: it has no function of that name.

    Examples:
        >>> declaration = "void swab(const uint8_t *x, uint8_t *y, int64_t n)"  # of the C library: swaps neighbours
        >>> swap = taeda.library.bind(declaration, name="docs::swap")
        >>> swap(taeda.tensor([1, 2, 3, 4], dtype=taeda.uint8))
        tensor([2, 1, 4, 3], dtype=taeda.uint8)
    """
    declared = _c_functions.parse(declaration)
    opened = _c_functions.load(library)
    address = _c_functions.address_of(opened, declared[0])
    if name is None:
        stem = re.sub(r"^lib|\W.*$", "", str(opened._name or "program").replace("\\", "/").rpartition("/")[2])
        name = f"{re.sub(r'^(?=[0-9])|^$', '_', stem)}::{declared[0]}"
    return bind_declared(name, declared, address, opened, mutates_args, threads, backward, setup_context, no_grad)


def bind_declared(
    name: str, declared: tuple, address: int, opened: Any, mutates_args: Sequence[str] = (), threads: str | None = None,
    backward: Callable | None = None, setup_context: Callable | None = None, no_grad: bool = False,
) -> CustomOpDef:  # fmt: skip
    mutates = (mutates_args,) if isinstance(mutates_args, str) else tuple(mutates_args)
    bound = _c_functions.as_op(name, declared, address, mutates, threads, opened)
    if no_grad and backward is not None:
        raise ValueError(f"library.bind: {name} is given a derivative and no_grad=True")

    made = CustomOpDef(name, bound.function, mutates, bound.schema)
    made.__doc__ = f"{name}{bound.schema}: a function in C."

    def results(args: tuple, batch: tuple = (), device: str = "meta") -> Any:
        found = [zeros((*batch, *shape), dtype=dtype, device=device) for shape, dtype in bound.function.shapes(args)]
        return found[0] if len(found) == 1 else tuple(found) if found else None

    def by_example(info: Any, in_dims: tuple, *args: Any) -> tuple:
        rows = [
            made(*(a if d is None else a.select(d, i).contiguous() for a, d in zip(args, in_dims, strict=True)))
            for i in range(info.batch_size)
        ]
        if not rows:
            one = tuple(
                a if d is None else zeros([n for i, n in enumerate(a.shape) if i != d], dtype=a.dtype, device="meta")
                for a, d in zip(args, in_dims, strict=True)
            )
            out = results(one, (0,), "cpu")
        else:
            out = stack(rows) if isinstance(rows[0], Tensor) else tuple(map(stack, zip(*rows, strict=True)))
        return out, 0 if isinstance(out, Tensor) else (0,) * len(out)

    def empty(*args: Any) -> Any:
        check_all_on_meta(name, args)
        return results(args)

    made.register_fake(empty)
    if not mutates:
        made.register_vmap(by_example)
    if backward is not None:
        made.register_autograd(backward, setup_context=setup_context)
    made.without_derivative = "constant" if no_grad else "error"
    return made

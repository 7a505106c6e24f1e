"""Services of Python for the C functions of ``native``: ops by name and signature, memory of a library as a tensor."""

from __future__ import annotations

import ctypes
import functools
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda._schema import Argument, Schema, parse_schema
from taeda.aten import DECLARED, packet
from taeda.aten.signatures import signature

#: The kind of a value, and whether None is taken, whether it is a list, and whether None is taken in the list.
Form = tuple[str, bool, bool, bool]

#: A native op that scripts may not call, since it reads files. Libraries may.
FROM_FILE = parse_schema(
    "from_file(str filename, bool? shared=None, int? size=0, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor"
)

#: What a library said as it was loaded: ``((namespace, kind, key), schema)``; and a function's name and address.
declared: list[tuple[tuple[str, str, str], str]] = []
implemented: list[tuple[tuple[str, str, str], str, int]] = []


def form(a: Argument) -> Form:
    return a.kind, a.optional, a.listed, a.inner_optional


def forms(schema: Schema) -> tuple[list[Form], list[Form]]:
    """Forms of the arguments of an op, and of its results."""
    return [form(a) for a in schema.arguments], [form(a) for a in schema.returns]


def native(name: str) -> Callable:
    """The function that computes a native op."""
    return packet(name).computes("")


@functools.cache
def op_of(name: str, overload: str) -> tuple[Callable, list[Form], list[Form]]:
    """An op as a function from the list of its arguments to the sequence of its results, and their forms.

    Raises:
        RuntimeError: there is none.
    """
    library, _, label = name.partition("::")
    own = DECLARED.get(name)
    schema = None if own is None else own._read
    if library == "aten":
        schema = FROM_FILE if (label, overload) == ("from_file", "") else signature(label, overload)
    if schema is None:
        raise RuntimeError(f"a library calls the op {name}.{overload or 'default'}, which is not there")
    function: Any = packet(label).computes(overload) if library == "aten" else own
    places = sum(not a.keyword_only for a in schema.arguments)
    names = [a.name for a in schema.arguments[places:]]
    count = len(schema.returns)

    def run(args: list) -> Sequence:
        named = {name: x for name, x in zip(names, args[places:], strict=True) if x is not None}
        made = function(*args[:places], **named)
        return () if count == 0 else (made,) if count == 1 else made

    return run, *forms(schema)


def over_memory(
    address: int, sizes: list[int], strides: list[int], offset: int, dtype: Any, end: Callable | None
) -> taeda.Tensor:
    """A tensor over memory of a library. ``end`` gives it back when no tensor has it."""
    if 0 in sizes:
        if end is not None:
            end()
        return taeda.empty(sizes, dtype=dtype)
    last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    memory = (ctypes.c_char * ((last + 1) * dtype.itemsize)).from_address(address)
    if end is not None:
        weakref.finalize(memory, end)
    whole = taeda.frombuffer(memory, dtype=dtype, count=last + 1)
    return whole.as_strided(sizes, strides, offset) if math.prod(sizes) else whole

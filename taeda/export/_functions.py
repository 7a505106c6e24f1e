"""The functions that a program in a file may name, and their names there.

====================  ===================================================================================
``relu``              a public op or function of ops, ``nn.functional.linear`` as well
``Tensor.add_``       an op that is a method alone
``op._attention``     an op that the bodies of others are written in
``operator.getitem``  a function of Python's ``operator`` and ``math`` for sizes and tuples
``custom.lib::op``     an op of the user's own (``taeda.library``), which must be there when the file is loaded
``step.sym_size``     a function of ``_steps.py`` and ``func.control_steps``
====================  ===================================================================================
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Hashable
from typing import Any

from taeda._core import Composite, Method, Op, Tensor
from taeda._core.tensor import ALIASES, FIRST
from taeda.aten import DECLARED, OpOverload
from taeda.fx import _names
from taeda.fx.experimental.symbolic_shapes import _FUNCTIONS
from taeda.library import CustomOpDef
from taeda.nn import lower
from taeda.ops.table import OPS, trait

from . import _control_flow, _steps

#: Functions that read or write files: no program in a file may call them.
_REFUSED = frozenset({"from_file"})

#: Functions of Python for sizes and tuples.
_PYTHON: dict[str, Any] = {
    f"{f.__module__.lstrip('_')}.{f.__name__}": f
    for f in (operator.getitem, operator.setitem, *(f for f, _, _ in _FUNCTIONS.values()))
    if f.__module__ in ("_operator", "math")
}
_STEPS: dict[str, Any] = {
    **{f"step.{n}": getattr(_steps, n) for n in _steps.__all__},
    **{f"step.{n}": f for n, f in _control_flow.STEPS.items()},
    **{n: getattr(lower, n) for n in ("lstm", "gru", "rnn_tanh", "rnn_relu")},
}


@functools.cache
def table() -> dict[str, Any]:
    """The functions by name."""
    found: dict[str, Any] = {**_PYTHON, **_STEPS}
    for name, function in OPS.items():
        found[f"op.{name}"] = function
    for name, method in vars(Tensor).items():
        if isinstance(method, Method):
            found[f"Tensor.{name}"] = method.function
    for function, (space, name) in _names._functions().items():
        if isinstance(function, (Op, Composite)):
            found[f"{space}.{name}".lstrip(".")] = function
    return {name: f for name, f in found.items() if f.__name__ not in _REFUSED}


@functools.cache
def _by_function() -> dict[Any, str]:
    names: dict[Any, str] = {}
    for name, function in table().items():
        names[function] = name  # the last one is the public name
    return names


def find_name(function: Any) -> str | None:
    """The name of a function in files, None if it has none."""
    if isinstance(function, OpOverload) and isinstance(function.overloadpacket.function, CustomOpDef):
        return f"custom.{function.overloadpacket.function._qualname}"
    return _by_function().get(function) if isinstance(function, Hashable) else None


def name_of(function: Any) -> str:
    """The name of a function in files."""
    found = find_name(function)
    if found is None:
        raise ValueError(f"export: {getattr(function, '__name__', function)!r} cannot be written to a file")
    return found


def function_of(name: Any) -> Any:
    """The function of a name in a file; None if there is none."""
    if not isinstance(name, str):
        return None
    if not name.startswith("custom."):
        return table().get(name)
    own = DECLARED.get(name.removeprefix("custom."))
    if own is None:
        raise ValueError(f"export.load: the op {name[7:]!r:.80} is not there; import what defines it before loading")
    return own._overload


@functools.cache
def _signature(function: Callable) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def own_names(function: Any, kwargs: dict) -> dict:
    """``kwargs`` by the names of the parameters, which are PyTorch's: ``axis`` is ``dim`` and ``x1`` is ``input``."""
    known = _parameters(function) if kwargs else ()
    if not known or all(name in known for name in kwargs):
        return kwargs
    also = trait(function, "also") or {}

    def own(name: str) -> str:
        found = also.get(ALIASES.get(name, name), ALIASES.get(name, name))
        if found in FIRST and found not in known:
            found = "input" if "input" in known else known[0]
        return found if found in known else name

    return {name if name in known else own(name): value for name, value in kwargs.items()}


@functools.cache
def _parameters(function: Any) -> tuple[str, ...]:
    if isinstance(function, Op):
        return (*function.params, "out")
    if not isinstance(function, Composite):
        return ()
    signature = _signature(function)
    return () if signature is None else tuple(signature.parameters)


def check_call(name: str, function: Any, args: tuple, kwargs: dict) -> None:
    """Raise a ValueError for arguments that ``function`` has no parameters for."""
    if isinstance(function, Op):
        room = len(function.params) if function.traits.get("variadic") is None else len(args)
        unknown = [k for k in kwargs if k not in function.params and k != "out"]
        if len(args) > room or unknown:
            raise ValueError(
                f"export: {name} takes {', '.join(function.params)}; got {len(args)} arguments and {unknown}"
            )
        return
    signature = _signature(function)
    if signature is not None:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ValueError(f"export: {name}: {error}") from None

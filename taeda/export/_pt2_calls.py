"""Calls of PyTorch's native ops as calls of functions here, for the reader of its files.

``taeda/aten/spellings.py`` says which; here is what only files have.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from taeda.aten import spellings
from taeda.fx import Graph, Node
from taeda.ops.table import METHODS, OPS

from .. import _core
from . import _control_flow, _functions, _steps
from ._encoding import bad

#: Arguments that say where a result is, which is always the CPU.
_PLACES = ("device", "pin_memory", "layout", "non_blocking")
#: Steps that check conditions which always hold here.
_CHECKS = ("_assert_tensor_metadata", "sym_constrain_range", "sym_constrain_range_for_size")


def step_of(graph: Graph, target: str, args: list, kwargs: dict, name: str) -> Node | None:
    """The step for a target; None if no step is needed."""
    if target.startswith("torch.ops.higher_order."):
        return _higher_order(graph, target.rpartition(".")[2], args, name)
    if target.startswith(("_operator.", "math.")):
        known = _functions.table()
        label = target.replace("_operator.", "operator.").rstrip("_")
        function = known.get(label) or known.get(f"{label}_")
        if function is None:
            raise bad(f"{target!r:.80} is no function that programs may call")
        return graph.call_function(function, tuple(args), name=name)
    if target == "torch.sym_float" and len(args) == 1:
        return graph.call_function(operator.truediv, (args[0], 1), name=name)
    if target.startswith("torch._functorch.predispatch."):
        raise bad("the program has steps of vmap, of an associative_scan. Call run_decompositions() before saving it")
    if not target.startswith("torch.ops.aten."):
        library, _, op = target.removeprefix("torch.ops.").removesuffix(".default").partition(".")
        if not target.startswith("torch.ops.") or not op:
            raise bad(f"{target!r:.80} is no op that is known here")
        function = _functions.function_of(f"custom.{library}::{op}")
        return graph.call_function(function, tuple(args), kwargs, name=name)
    op, _, overload = target[len("torch.ops.aten.") :].partition(".")
    if op in _CHECKS:
        return None
    kwargs = {k: v for k, v in kwargs.items() if k not in _PLACES}
    named = f"{op}.{overload}"
    record = _IN_FILES.get(named) or _IN_FILES.get(op) or spellings.record_of(op, overload)
    if record is None:
        function = spellings.same_name(op)
        if function is None:
            raise bad(f"the op {op!r:.80} of PyTorch is not known here")
    else:
        try:
            function, args, kwargs = record(*args, **kwargs)
        except (TypeError, ValueError, LookupError, RuntimeError) as error:
            raise bad(f"{target!r:.80}: {error}") from None
    if function is spellings.itself:
        return args[0]
    called = _functions.find_name(function)
    if called is None:  # a function that programs in files may not call
        raise bad(f"the op {op!r:.80} of PyTorch is not known here")
    if not called.startswith(("step.", "operator.")):
        _functions.check_call(target, function, tuple(args), kwargs)
    return graph.call_function(function, tuple(args), kwargs, name=name)


def _higher_order(graph: Graph, name: str, args: list, label: str) -> Node:
    if name == "wrap_with_set_grad_enabled" and len(args) >= 2:
        mode, inner, *rest = args
        return graph.call_function(_steps.with_grad_enabled, (mode, inner, tuple(rest)), name=label)
    if name == "cond" and len(args) == 4:
        return graph.call_function(_control_flow.cond, (*args[:3], tuple(args[3])), name=label)
    if name == "while_loop" and len(args) == 4:
        return graph.call_function(_control_flow.while_loop, (*args[:2], tuple(args[2]), tuple(args[3])), name=label)
    if name == "map_impl" and len(args) == 3:
        return graph.call_function(_control_flow.map, (args[0], tuple(args[1]), tuple(args[2])), name=label)
    if name == "scan" and len(args) == 4:
        given = args[0], tuple(args[1]), tuple(args[2]), 0, False, tuple(args[3])
        return graph.call_function(_control_flow.scan, given, name=label)
    raise bad(f"the step {name!r:.80} is not known here")


def _cast(x: Any, *given: Any, dtype: Any = None, copy: bool = False, memory_format: Any = None) -> Any:
    """``to``, of which only the dtype and the memory format matter: all is on the CPU."""
    dtype = dtype or next((y for y in given if isinstance(y, _core.dtype)), None)
    made = {"memory_format": memory_format} if memory_format is not None else {}
    copies = {"copy": True} if copy or given[2:3] == (True,) else {}
    return METHODS["to"], (x, "cpu" if dtype is None else dtype), {**made, **copies}


def _functional_batch_norm(*args: Any) -> Any:
    return _steps.batch_norm_functional, args, {}


def _item(x: Any) -> Any:
    return _steps.item, (x,), {}


def _assert(condition: Any, message: str = "an assertion of the program", *rest: Any) -> Any:
    return _steps.assert_scalar, (condition, message), {}


def _reshape(x: Any, size: Any) -> Any:
    """A view, where strides may be others here."""
    return OPS["reshape"], (x, size), {}


#: Ops that differ between a file and a call: steps of programs, and ops that depend on device and memory format.
_IN_FILES: dict[str, Callable] = {
    "to": _cast, "to.other": lambda x, other, *rest, **more: (METHODS["to"], (x, other), {}),
    "view.default": _reshape, "_unsafe_view": _reshape, "item": _item, "_local_scalar_dense": _item,
    "sym_size": lambda x, dim: (_steps.sym_size, (x, dim), {}), "sym_numel": lambda x: (OPS["numel"], (x,), {}),
    "_assert_async": _assert, "_assert_scalar": _assert, "_native_batch_norm_legit_functional": _functional_batch_norm,
}  # fmt: skip

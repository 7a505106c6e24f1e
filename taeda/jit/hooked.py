"""Forward hooks of modules, compiled, for calls of such modules inside of scripts and from Python."""

from __future__ import annotations

import types
from typing import Any

from .. import nn
from . import ir
from .types import NONE, ClassType, is_subtype, is_tuple, tuple_of

#: The method that calls of such a module from scripts become.
CALLED = "_forward_with_hooks"
#: In front of a hook's name, the method that :data:`CALLED` runs: for PyTorch a hook itself is no method.
METHOD = "_hook_"


def names_of(module: nn.Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """The functions of a module's forward pre-hooks and forward hooks, by name."""
    if module._forward_pre_hooks_with_kwargs or module._forward_hooks_with_kwargs:
        raise RuntimeError(
            f"script: hooks of {type(module).__name__} take keyword arguments, which scripts do not have"
        )
    found = []
    for table in (module._forward_pre_hooks, module._forward_hooks):
        functions: dict[str, Any] = {}
        for hook in table.values():
            name = getattr(hook, "__name__", "")
            if not isinstance(hook, types.FunctionType) or not name.isidentifier():
                raise RuntimeError(
                    f"script: the hook {hook!r} of {type(module).__name__} cannot be compiled: expected a function "
                    "with a name and type annotations. Remove it before scripting (as remove_weight_norm does)"
                )
            if hasattr(module, name) or functions.get(name, hook) is not hook:
                raise RuntimeError(
                    f"script: the hook '{name}' of {type(module).__name__} has the name of something else; rename it"
                )
            functions[name] = hook
        found.append(functions)
    return found[0], found[1]


def called(kind: ClassType) -> ir.Function:
    """The method of a module that runs its hooks and ``forward``."""
    made = kind.method(CALLED)
    if made is not None:
        return made
    forward = kind.method("forward")
    if not isinstance(forward, ir.Function):
        raise RuntimeError(f"script: '{kind.short}' has hooks, and no single forward that is compiled")
    made = ir.Function(f"{kind.name}.{CALLED}", forward.parameters, forward.result, None, kind)
    kind.methods[CALLED] = made
    own = [ir.Var(i, p.name, p.type) for i, p in enumerate(forward.parameters)]
    items: list[ir.Expr] = list(own[1:])
    for name in kind.pre_hooks:
        given = _held(made, "given", ir.MakeTuple(items, tuple_of(*(x.type for x in items))))
        result = _run(made, kind, name, [own[0], given])
        if result.type == NONE:
            made.body.append(ir.Do(result))
            items = [ir.TupleItem(given, i, t) for i, t in enumerate(given.type.args)]
            continue
        value = _held(made, "changed", result)
        items = [ir.TupleItem(value, i, t) for i, t in enumerate(value.type.args)] if is_tuple(value.type) else [value]
    given = _held(made, "given", ir.MakeTuple(items, tuple_of(*(x.type for x in items))))
    items = [ir.TupleItem(given, i, t) for i, t in enumerate(given.type.args)]
    wanted = [p.type for p in forward.parameters[1:]]
    if len(items) != len(wanted) or not all(map(is_subtype, (x.type for x in items), wanted)):
        raise RuntimeError(f"script: hooks of '{kind.short}' give forward {given.type}, expected {tuple_of(*wanted)}")
    out = _held(made, "out", ir.Call(forward, [own[0], *items], forward.result))
    for name in kind.hooks:
        result = _run(made, kind, name, [own[0], given, out])
        if result.type == NONE:
            made.body.append(ir.Do(result))
        else:
            out = _held(made, "out", result)
    made.body.append(ir.Return(out))
    made.result = out.type
    return made


def _held(function: ir.Function, name: str, value: ir.Expr) -> ir.Var:
    """A variable with this value."""
    variable = ir.Var(function.slots, f"{name}_{function.slots}", value.type)
    function.slots += 1
    function.body.append(ir.Assign(variable, value))
    return variable


def _method(kind: ClassType, name: str) -> ir.Function:
    return kind.method(METHOD + name) or kind.method(name)


def _run(function: ir.Function, kind: ClassType, name: str, args: list[ir.Expr]) -> ir.Call:
    hook = _method(kind, name)
    wanted, got = [p.type for p in hook.parameters], [a.type for a in args]
    if len(wanted) != len(got) or not all(map(is_subtype, got, wanted)):
        raise RuntimeError(
            f"script: hook '{name}' of '{kind.short}': expected parameters ({', '.join(map(str, got))}), got "
            f"({', '.join(map(str, wanted))})"
        )
    return ir.Call(hook, args, hook.result)


def attach(module: Any) -> None:
    """Let calls of a script module from Python run its hooks."""
    for name in module._kind.pre_hooks:
        module.register_forward_pre_hook(_Hook(name))
    for name in module._kind.hooks:
        module.register_forward_hook(_Hook(name))


class _Hook:
    """A hook that runs a compiled method of the module."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Any, *args: Any) -> Any:
        return module._kind.method(self.name)(module, *args)

"""``freeze``: a module whose parameters and attributes are constants of its code, with its modules' methods as its
own."""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from typing import Any

from .._core import Tensor
from . import hooked, ir
from .folding import optimize
from .interpreter import read_attribute
from .modules import RecursiveScriptModule, ScriptModule
from .types import BOOL, REQUIRED, ClassType, FunctionType, Parameter, type_of

#: End of the names of frozen modules' classes.
FROZEN = "Frozen"


class _Mutable(Exception):
    """The program sets attributes: they cannot be constants."""


class _Freezer:
    """Makes the methods of the frozen module: one for each method of each module that is called."""

    def __init__(self, root: RecursiveScriptModule, kept: set[str]) -> None:
        self.root, self.kept = root, kept
        self.kind = ClassType(root._kind.name + FROZEN, True)
        self.kind.attributes["training"] = BOOL
        self.made = RecursiveScriptModule(self.kind)
        self.done: dict[tuple[int, str], ir.Function] = {}
        for name in kept:
            t = root._kind.attributes.get(name)
            if t is not None:
                self._keep(name, t)

    def _keep(self, name: str, t: Any) -> None:
        self.kind.attributes[name] = t
        value = read_attribute(self.root, name)
        space = self.made.__dict__
        for table, names in (("_parameters", "parameters"), ("_buffers", "buffers")):
            if name in getattr(self.root._kind, names):
                getattr(self.kind, names).add(name)
                space[table][name] = value
                return
        space["_modules" if isinstance(value, RecursiveScriptModule) else "_attributes"][name] = value

    def method(self, module: RecursiveScriptModule, name: str, own: str) -> ir.Function:
        """The method of ``module``, as one of the frozen module called ``own``."""
        key = id(module), name
        if key in self.done:
            return self.done[key]
        function = module._kind.method(name).define()
        parameters = [Parameter("self", self.kind, REQUIRED), *function.parameters[1:]]
        made = self.done[key] = ir.Function(f"{self.kind.name}.{own}", parameters, function.result, None, self.kind)
        made.body = self.statements(function.body, module, {0: module})
        made.slots = function.slots
        self.kind.methods[own] = made
        return made

    def statements(self, body: list[Any], me: Any, known: dict[int, Any]) -> list[Any]:
        """Statements with known values substituted."""
        out: list[Any] = []
        for s in body:
            if isinstance(s, ir.SetAttr):
                raise _Mutable
            if isinstance(s, ir.If):
                condition = self.rewrite(s.condition, known)
                if isinstance(condition, ir.Const):
                    out += self.statements(s.then if condition.value else s.other, me, known)
                    continue
                then, other = (self.statements(b, me, known) for b in (s.then, s.other))
                out.append(ir.If(condition, then, other, s.line))
                continue
            if isinstance(s, ir.Assign):
                target = self.module_of(s.value, known)
                if target is not None:
                    known[s.target.slot] = target
                    continue
            changes = {}
            for f in fields(s):
                value = getattr(s, f.name)
                if isinstance(value, ir.Expr) and f.name != "target":
                    changes[f.name] = self.rewrite(value, known)
                elif f.name == "body":
                    changes[f.name] = self.statements(value, me, known)
            out.append(replace(s, **changes))
        return out

    def module_of(self, e: Any, known: dict[int, Any]) -> RecursiveScriptModule | None:
        """The module that an expression is, or None."""
        if isinstance(e, ir.Var) and isinstance(e.type, ClassType) and e.type.is_module:
            return known.get(e.slot)
        if isinstance(e, ir.GetAttr):
            owner = self.module_of(e.object, known)
            value = owner._modules.get(e.name) if owner is not None else None
            return value if isinstance(value, RecursiveScriptModule) else None
        return None

    def rewrite(self, e: Any, known: dict[int, Any]) -> Any:
        """An expression with attributes as constants, and methods of modules as the frozen module's."""
        if isinstance(e, ir.GetAttr):
            owner = self.module_of(e.object, known)
            if owner is not None and not (owner is self.root and e.name in self.kept):
                return self.constant(read_attribute(owner, e.name), e.type)
        if isinstance(e, ir.Call) and e.args and e.function.owner is not None and e.function.owner.is_module:
            owner = self.module_of(e.args[0], known)
            if owner is None:
                raise _Mutable
            return self.call(owner, e.function.name, e.args[1:], e.type, known)
        if isinstance(e, ir.Invoke):
            owner = self.module_of(e.object, known)
            if owner is not None:
                return self.call(owner, e.name, e.args, e.type, known)
        changes: dict[str, Any] = {}
        for f in fields(e):
            value = getattr(e, f.name)
            if isinstance(value, ir.Expr):
                changes[f.name] = self.rewrite(value, known)
            elif isinstance(value, list) and any(isinstance(v, ir.Expr) for v in value):
                changes[f.name] = [self.rewrite(v, known) if isinstance(v, ir.Expr) else v for v in value]
            elif f.name == "body":
                changes[f.name] = self.statements(value, None, known)
        if isinstance(e, ir.Var) and isinstance(e.type, ClassType) and e.type.is_module:
            return ir.Var(0, "self", self.kind)
        return replace(e, **changes) if changes else e

    def call(self, owner: Any, name: str, args: list[Any], t: Any, known: dict[int, Any]) -> ir.Call:
        """A call of a module's method."""
        own = name if owner is self.root else f"{name}_{len(self.done)}"
        function = self.method(owner, name, own)
        return ir.Call(function, [ir.Var(0, "self", self.kind), *(self.rewrite(a, known) for a in args)], t)

    def constant(self, value: Any, t: Any) -> Any:
        if isinstance(value, Tensor):
            return ir.Const(value.detach(), t)
        if isinstance(t, FunctionType) or isinstance(value, RecursiveScriptModule):
            raise _Mutable
        if isinstance(value, list):
            return ir.MakeList([self.constant(v, t.element if t.name == "List" else type_of(v)) for v in value], t)
        if isinstance(value, tuple):
            return ir.MakeTuple([self.constant(v, part) for v, part in zip(value, t.args, strict=True)], t)
        if isinstance(value, dict):
            keys = [self.constant(k, t.args[0]) for k in value]
            return ir.MakeDict(keys, [self.constant(v, t.args[1]) for v in value.values()], t)
        return ir.Const(value, t)


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> RecursiveScriptModule:
    """A copy of a script module in evaluation mode, whose parameters and attributes are constants of its code.

    A program that sets its own attributes keeps them: it is copied as it is.

    Args:
        mod: what :func:`script`, :func:`trace` or :func:`load` gave.
        preserved_attrs: attributes and methods to keep, besides ``forward``.
        optimize_numerics: fold batch normalisation, and sums and products with constants, into the convolutions and
            linear layers before them. Results may differ in the last bits.
    Raises:
        RuntimeError: it is no script module, or in training mode.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use taeda.jit.script or taeda.jit.trace to script your "
            "'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module first"
        )
    mod, kept = mod._script(), set(preserved_attrs or ())
    for name in kept:
        if name not in mod._kind.attributes and mod._kind.method(name) is None:
            raise RuntimeError(f"freeze: the module has no attribute or method {name!r} to preserve")
    freezer = _Freezer(mod, kept)
    freezer.kind.pre_hooks, freezer.kind.hooks = mod._kind.pre_hooks, mod._kind.hooks
    hooks = [*mod._kind.pre_hooks, *mod._kind.hooks]
    try:
        for name in ["forward", *hooks, *sorted(kept)]:
            if isinstance(mod._kind.method(name), ir.Function):
                freezer.method(mod, name, name)
    except _Mutable:
        made = copy.deepcopy(mod)
        for p in made.parameters():
            p.requires_grad_(False)
        return made
    made = freezer.made.eval()
    hooked.attach(made)
    if optimize_numerics:
        run_frozen_optimizations(made, preserved_methods=list(kept))
    return made


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> RecursiveScriptModule:
    """The frozen module, with batch normalisation folded: see :func:`freeze`.

    Args:
        mod: a script module. One that is frozen already is changed itself.
        other_methods: methods to keep, besides ``forward``.
    """
    if isinstance(mod, RecursiveScriptModule) and mod._kind.name.endswith(FROZEN):
        run_frozen_optimizations(mod, preserved_methods=other_methods)
        return mod
    if getattr(mod, "training", False):
        mod = mod.eval()
    return freeze(mod, other_methods)


def run_frozen_optimizations(
    mod: RecursiveScriptModule, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Fold layers of a frozen module, in place: see :func:`freeze`.

    Calls of methods are written out, and dropout, which does nothing in evaluation, is left out.
    """
    if not optimize_numerics:
        return
    names = ("forward", *mod._kind.pre_hooks, *mod._kind.hooks, *(preserved_methods or ()))
    methods = (mod._kind.methods.get(name) for name in names)
    optimize(mod._kind, [m for m in methods if isinstance(m, ir.Function)])

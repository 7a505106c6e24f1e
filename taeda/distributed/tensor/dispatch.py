"""Ops on DTensors: choose placements by the op's rule, redistribute to them, and run it on the parts.

An op without a rule runs on whole tensors, at every process. Composites run as they are written, in ops. A replicated
tensor that meets a cut one gets gradients that are terms of a sum: :func:`.moves.spread` adds them up.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from taeda._core import Composite, Op
from taeda.func.batching import _bind
from taeda.ops.table import OPS
from taeda.overrides import DisableTorchFunctionSubclass
from taeda.utils._pytree import tree_leaves, tree_map

from ..._typed import Tensor
from ...autograd import is_grad_enabled, no_grad
from ..device_mesh import DeviceMesh
from ..watching import WATCHERS
from . import rules, views
from .dtensor import RUN, DTensor, implicit_replication, mixing, wrap
from .layout import Layout, replicated
from .moves import redistribute, spread
from .placement_types import Partial, Placement, Replicate, Shard
from .rules import Call, Dims, Key

#: Functions ``function(op, values)`` that run ops in place of a rule, by name.
OWN: dict[str, Callable] = {}
#: The ops among them that work on many tensors, each by itself. Some of the tensors may be plain.
LISTS = frozenset(("change_all", "total_norm", "update_all"))
#: The same of composites and methods: ``function(func, *args, **kwargs)``.
COMPOSITES: dict[str, Callable] = {}

#: Composites that take plain tensors beside DTensors now, as what every process has.
WITH_PLAIN: set[str] = set()

_ALIASES = {"axis": "dim", "keepdims": "keepdim", "axes": "dims"}


def run(func: Any, args: tuple, kwargs: dict) -> Any:
    """A call with DTensors among its arguments."""
    if kwargs.get("out") is not None:
        raise NotImplementedError(f"{func}: out= is not there for DTensors; assign the result")
    if type(func) is Op:
        return run_op(func, args, {k: v for k, v in kwargs.items() if k != "out"})
    if isinstance(func, Composite):
        if func.__name__ not in WITH_PLAIN:
            _check_mixed(func.__name__, (args, kwargs))
        own = COMPOSITES.get(func.__name__)
        if own is not None:
            made = own(func, *args, **kwargs)
            if made is not NotImplemented:
                return made
        known = _parameters(func.__wrapped__)
        kwargs = {k if k in known else _ALIASES.get(k, k): v for k, v in kwargs.items()}
        with implicit_replication():
            return func.__wrapped__(*args, **kwargs)
    own = COMPOSITES.get(name_of(func))
    if own is not None:
        return own(func, *args, **kwargs)
    owner = getattr(func, "__self__", None)
    if isinstance(owner, property) and owner.fget is not None:  # written in ops, as T is
        with implicit_replication():
            return owner.fget(args[0])
    with DisableTorchFunctionSubclass():  # the object has the sizes of the whole, and no memory
        made = func(*args, **kwargs)
    if any(isinstance(x, Tensor) and not isinstance(x, DTensor) for x in tree_leaves(made)):
        raise NotImplementedError(f"{name_of(func)}: not of a DTensor; use to_local() or full_tensor()")
    return made


def name_of(func: Any) -> str:
    """The name of a method, or of the attribute whose getter ``func`` is."""
    name = getattr(func, "__name__", "")
    if name != "__get__":
        return name
    return getattr(func.__self__, "__name__", name)


@functools.cache
def _parameters(function: Callable) -> frozenset:
    return frozenset(inspect.signature(function).parameters)


def _check_mixed(name: str, values: Any) -> None:
    """Raise where a plain tensor that is no number meets DTensors."""
    if mixing():
        return
    for x in tree_leaves(values):
        if isinstance(x, Tensor) and not isinstance(x, DTensor) and x.dim() > 0 and x.numel() != 1:
            raise RuntimeError(
                f"{name}: got mixed taeda.Tensor and DTensor, need to convert all taeda.Tensor to DTensor before "
                f"calling distributed operators! A plain tensor of sizes {list(x.shape)} came; use distribute_tensor, "
                f"or implicit_replication() where all processes have the same"
            )


def run_op(op: Op, args: tuple, kwargs: dict) -> Any:
    """An op of the table."""
    for watcher in WATCHERS:
        watcher.op(op, args, kwargs)
    values = _bind(op, args, kwargs)
    if op.name in LISTS:
        return OWN[op.name](op, values)
    _check_mixed(op.name, list(values.values()))
    if op.name in OWN:
        made = OWN[op.name](op, values)
        if made is not NotImplemented:
            return made
    call = Call(op, values)
    mesh = mesh_of(op.name, call)
    if "generator" in op.params:
        return _random(call, mesh)
    shapes = None
    copied = False
    if op.kind == "view":
        found = views.rule(call, functools.partial(_call, op))
        dims, shapes = (None, None) if found is None else found
    else:
        rule = rules.rule_of(op)
        dims = None if rule is None else rule(call)
    if dims is None or dims is NotImplemented:
        return _mark(op, _whole(call, mesh), True)
    plan = _Plan(call, mesh, dims)
    if plan.impossible:
        return _whole(call, mesh)
    copied = any(plan.layouts[key].placements != plan.chosen[key] for key in call.tensors)
    return _mark(op, plan.run(shapes), copied)


def _mark(op: Op, made: Any, copied: bool) -> Any:
    """Remember of a view that had to be gathered that it is none."""
    if op.kind == "view" and copied:
        for t in made if isinstance(made, (tuple, list)) else [made]:
            t._copied = True
    return made


def mesh_of(name: str, call: Call) -> DeviceMesh:
    """The mesh of all DTensors of a call.

    Args:
        name: of the op, for messages.
        call: the call.

    Returns:
        The mesh.

    Raises:
        RuntimeError: they have different ones.
    """
    meshes = [x.device_mesh for x in call.tensors.values() if isinstance(x, DTensor)]
    for mesh in meshes[1:]:
        if mesh != meshes[0]:
            raise RuntimeError(f"{name}: expected DTensors of one mesh, got {meshes[0]} and {mesh}")
    return meshes[0]


def layout_of(x: Tensor, mesh: DeviceMesh) -> Layout:
    """The layout of ``x``; a plain tensor is replicated."""
    return x._layout if isinstance(x, DTensor) else Layout(mesh, replicated(mesh), tuple(x.shape))


def part_of(x: Tensor) -> Tensor:
    """The part of a DTensor, or the tensor."""
    return x._local if isinstance(x, DTensor) else x


def is_in_place(op: Op) -> bool:
    """Whether ``op`` writes to its first argument."""
    return "functional" in op.traits or (op.kind == "mutates" and op.name.endswith("_"))


def _call(op: Op, values: dict[str, Any]) -> Any:
    variadic = op.traits.get("variadic")
    n = op.npositional if variadic is None else op.params.index(variadic) + 1
    return op(*[values[p] for p in op.params[:n]], **{p: values[p] for p in op.params[n:]})


def _replace(values: dict[str, Any], parts: dict[Key, Tensor]) -> dict[str, Any]:
    """The arguments with other tensors."""
    made = {}
    for name, value in values.items():
        if isinstance(value, (list, tuple)) and any((name, i) in parts for i in range(len(value))):
            made[name] = type(value)(parts.get((name, i), x) for i, x in enumerate(value))
        else:
            made[name] = parts.get((name, 0), value)
    return made


class _Plan:
    """Placements for the tensors of a call, found for each dimension of the mesh in turn."""

    def __init__(self, call: Call, mesh: DeviceMesh, dims: Dims) -> None:
        self.call, self.mesh, self.dims = call, mesh, dims
        self.layouts = {key: layout_of(x, mesh) for key, x in call.tensors.items()}
        self.target = next(iter(call.tensors)) if is_in_place(call.op) else None
        self.impossible = False
        chosen: dict[Key, list[Placement]] = {key: [] for key in call.tensors}
        self.outputs: list[Placement] = []
        for j in range(mesh.ndim):
            places, output = self._choose(j)
            for key, place in places.items():
                chosen[key].append(place)
            self.outputs.append(output)
        self.chosen = {key: tuple(places) for key, places in chosen.items()}

    def _choose(self, j: int) -> tuple[dict[Key, Placement], Placement]:
        now = {key: layout.placements[j] for key, layout in self.layouts.items()}
        options: list[tuple[dict[Key, Placement], Placement]] = []
        for key, p in now.items():
            letters = self.dims.inputs.get(key, ())
            if isinstance(p, Shard) and p.dim < len(letters) and letters[p.dim] is not None:
                options.append(self._cut(letters[p.dim], p))
        for terms in self.dims.terms:
            kinds = {now[key] for key in terms}
            if len(kinds) == 1 and isinstance(kind := next(iter(kinds)), Partial) and kind.reduce_op in ("sum", "avg"):
                options.append(({key: kind if key in terms else Replicate() for key in now}, kind))
        options.append((dict.fromkeys(now, Replicate()), Replicate()))
        if self.target is not None:
            options = [o for o in options if o[0][self.target] == now[self.target] == o[1]]
            if not options:
                self.impossible = True
                return dict.fromkeys(now, Replicate()), Replicate()
        return min(options, key=lambda option: sum(self._cost(key, now[key], p) for key, p in option[0].items()))

    def _cut(self, letter: Any, like: Shard) -> tuple[dict[Key, Placement], Placement]:
        places: dict[Key, Placement] = {}
        output = self.dims.output
        for key in self.call.tensors:
            letters = self.dims.inputs.get(key, ())
            if letter in letters:
                places[key] = like.at(letters.index(letter))
            else:
                added = key[0] in self.dims.added and letter not in output
                places[key] = Partial() if added else Replicate()
        return places, like.at(output.index(letter)) if letter in output else Partial()

    def _cost(self, key: Key, old: Placement, new: Placement) -> int:
        """About how many bytes move: counted of the whole, as all processes have to choose the same."""
        if old == new or isinstance(old, Replicate):
            return 0
        x = self.call.tensors[key]
        size = max(x.numel() * x.element_size(), 1)
        return 2 * size if isinstance(old, Partial) and isinstance(new, Replicate) else size

    def _parts(self) -> dict[Key, Tensor]:
        parts = {}
        for key, x in self.call.tensors.items():
            part = redistribute(part_of(x), self.layouts[key], self.chosen[key])
            if part.requires_grad and is_grad_enabled():
                for j, p in enumerate(self.chosen[key]):
                    if isinstance(p, Replicate) and any(c[j] != p for c in self.chosen.values()):
                        part = spread(part, self.mesh.get_group(j))
            parts[key] = part
        return parts

    def run(self, shapes: list[tuple[int, ...]] | None) -> Any:
        """Run the op on the parts; ``shapes`` are the whole sizes of the results, where they are known."""
        if self.target is not None:
            _refuse_copy(self.call.op.name, self.call.tensors[self.target])
        values = _replace(self.call.values, self._parts())
        made = self.dims.run(**values) if self.dims.run is not None else _call(self.call.op, values)
        if self.target is not None:
            return self.call.tensors[self.target]
        if isinstance(made, Tensor):
            return self._wrap(made, shapes[0] if shapes else None)
        items = [
            self._wrap(t, shapes[i] if shapes else None) if isinstance(t, Tensor) else t for i, t in enumerate(made)
        ]
        return type(made)(*items) if hasattr(made, "_fields") else type(made)(items)

    def _wrap(self, part: Tensor, shape: tuple[int, ...] | None) -> DTensor:
        letters = self.dims.output
        if letters and letters[-1] is ...:
            letters = (*letters[:-1], *[None] * (part.dim() - len(letters) + 1))
        if shape is None:
            sizes = {
                letter: x.shape[i]
                for key, x in self.call.tensors.items()
                for i, letter in enumerate(self.dims.inputs.get(key, ()))
                if letter is not None
            }
            shape = tuple(sizes.get(letter, n) for letter, n in zip(letters, part.shape, strict=True))
        layout = Layout(self.mesh, tuple(self.outputs), shape)
        if layout.local_shape() != tuple(part.shape):
            raise RuntimeError(
                f"{self.call.op.name}: DTensor expected a part of sizes {layout.local_shape()} of a result of {shape} "
                f"as {layout.placements}, and the op gave {tuple(part.shape)}; redistribute the arguments to "
                "Replicate() first"
            )
        return wrap(part, layout)


# ---- whole tensors ---------------------------------------------------------------------------------------------------


def _whole_parts(call: Call, mesh: DeviceMesh) -> dict[Key, Tensor]:
    whole = replicated(mesh)
    return {key: redistribute(part_of(x), layout_of(x, mesh), whole) for key, x in call.tensors.items()}


def _wrapped(made: Any, mesh: DeviceMesh) -> Any:
    def of(t: Any) -> Any:
        return wrap(t, Layout(mesh, replicated(mesh), tuple(t.shape))) if isinstance(t, Tensor) else t

    return tree_map(of, made)


def _whole(call: Call, mesh: DeviceMesh) -> Any:
    """The op on whole tensors, at every process."""
    parts = _whole_parts(call, mesh)
    if not is_in_place(call.op):
        return _wrapped(_call(call.op, _replace(call.values, parts)), mesh)
    key, target = next(iter(call.tensors.items()))
    if not isinstance(target, DTensor):
        raise RuntimeError(f"{call.op.name}: a plain tensor cannot be changed in place to a DTensor")
    _refuse_copy(call.op.name, target)
    written = parts[key]
    if written is target._local:
        _call(call.op, _replace(call.values, parts))
        return target
    parts[key] = written = written.clone()
    _call(call.op, _replace(call.values, parts))
    target._local.copy_(redistribute(written, layout_of(written, mesh), target.placements))
    return target


def _refuse_copy(name: str, target: Any) -> None:
    if getattr(target, "_copied", False):
        raise RuntimeError(
            f"{name}: this DTensor is a view of one that had to be gathered for it, and what is written would be lost; "
            f"redistribute the tensor to Replicate() before the view"
        )


# ---- random numbers --------------------------------------------------------------------------------------------------


def _random(call: Call, mesh: DeviceMesh) -> Any:
    """The numbers of the whole, drawn at every process, of which each keeps its part: those that one process draws."""
    first = call.op.params[0]
    target = call.values[first]
    if not is_in_place(call.op) or not isinstance(target, DTensor):
        return _whole(call, mesh)
    if any(isinstance(p, Partial) for p in target.placements):
        raise RuntimeError(f"{call.op.name}: not in place of a DTensor that is partial; redistribute it first")
    _refuse_copy(call.op.name, target)
    parts = _whole_parts(Call(call.op, {k: v for k, v in call.values.items() if k != first}), mesh)
    drawn = target.to_local().new_empty(tuple(target.shape))
    with no_grad():
        _call(call.op, _replace({**call.values, first: drawn}, parts))
        part = redistribute(drawn, layout_of(drawn, mesh), target.placements)
    target._local.copy_(part)
    return target


RUN.append(run)
__all__ = ["COMPOSITES", "OPS", "OWN", "run"]

"""``Node``: one step of a Graph, and the functions that walk its arguments."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from taeda._asserts import _assert
from taeda._core import Tensor, device, dtype, layout, memory_format

from .. import _core
from . import _names
from .immutable_collections import immutable_dict, immutable_list
from .operator_schemas import draws, method, normalize_function, normalize_module, writes

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Argument = Any
Target = Any

#: Types of arguments besides nodes and containers of nodes.
BASE_TYPES = (str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout)
base_types = BASE_TYPES

KINDS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")

#: Functions whose calls are kept even if their results are not used.
_impure: set[Any] = {operator.setitem, _assert, _core.set_grad_enabled}


def _changes(module: Any) -> bool:
    """Whether a call of a layer changes its argument or its own running statistics."""
    moves = module.training and getattr(module, "track_running_stats", False)
    return bool(moves or getattr(module, "inplace", False))


def has_side_effect(fn: Callable) -> Callable:
    """Mark ``fn``: dead-code elimination keeps its calls. Gives ``fn`` back."""
    _impure.add(fn)
    return fn


def unmark(fn: Callable) -> None:
    """Take back what `has_side_effect` said of ``fn``."""
    _impure.discard(fn)


# ---- walking arguments -----------------------------------------------------------------------------------------------


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """``a`` with ``fn`` applied to everything in it that is no tuple, list, dict or slice."""
    if isinstance(a, tuple):
        items = [map_aggregate(x, fn) for x in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict({k: map_aggregate(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """``a`` with ``fn`` applied to every Node in it.

    Args:
        a: Nodes in tuples, lists, dicts and slices.
        fn: gives what takes a Node's place.

    Returns:
        The same structure.

    Raises:
        AssertionError: ``fn`` cannot be called.
    """
    if not callable(fn):
        raise AssertionError(f"taeda.fx.map_arg(a, fn): fn must be a callable, got {type(fn)}")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


# ---- writing targets and arguments -----------------------------------------------------------------------------------


def _get_qualified_name(func: Any) -> str:
    return _names.qualified_name(func)


def _type_repr(obj: Any) -> str:
    """A type as annotations show it."""
    if isinstance(obj, type):
        return obj.__qualname__ if obj.__module__ == "builtins" else f"{obj.__module__}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    return obj.__name__ if inspect.isfunction(obj) else repr(obj)


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    if isinstance(arg, (list, tuple)):
        items = ", ".join(_format_arg(x) for i, x in enumerate(arg) if i < max_list_len)
        if len(arg) > max_list_len:
            items += f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{items}]"
        return f"({items},)" if len(arg) == 1 else f"({items})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


# ---- the node --------------------------------------------------------------------------------------------------------


class Node:
    """One step: an input, an attribute, a call, or the result.

    ``op`` is one of ``placeholder``, ``get_attr``, ``call_function``, ``call_module``, ``call_method`` and ``output``.
    ``target`` is what is called or fetched; ``args`` and ``kwargs`` are its arguments, with Nodes for values of other
    steps. ``users`` are the Nodes that use this one, in order; ``meta`` is a dict for programs.
    """

    def __init__(
        self, graph: Graph, name: str, op: str, target: Target, args: tuple, kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:  # fmt: skip
        if op not in KINDS:
            raise AssertionError(f"op '{op}' is not in _legal_ops: {', '.join(KINDS)}")
        if op == "call_function":
            if not callable(target):
                raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} "
                                 "but a Callable is expected")  # fmt: skip
        elif not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} "
                             "but a str is expected")  # fmt: skip
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._args: tuple = ()
        self._kwargs: dict[str, Any] = immutable_dict()
        self._set_arguments(args, kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        found = self.graph._index.get((self.op, self.target), {}) if name in ("op", "target") and self._placed() else {}
        super().__setattr__(name, value)
        if self in found:  # the Graph finds Nodes by op and target
            del found[self]
            self.graph._index.setdefault((self.op, self.target), {})[self] = None

    def _placed(self) -> bool:
        """Whether the Node is complete."""
        return "_kwargs" in self.__dict__

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    def __copy__(self) -> Node:
        raise TypeError("a Node cannot be copied alone: use Graph.node_copy")

    # ---- order ----

    @property
    def next(self) -> Node:
        """The Node behind this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The Node in front of this one."""
        return self._prev

    def __lt__(self, other: Node) -> bool:
        return self.graph._position(self) < self.graph._position(other)

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self

    def prepend(self, x: Node) -> None:
        """Put ``x`` in front of this Node."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        self.graph._moved()

    def append(self, x: Node) -> None:
        """Put ``x`` behind this Node."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self.graph._moved()

    # ---- arguments ----

    @property
    def args(self) -> tuple:
        """Positional arguments. Assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, a: tuple) -> None:
        self._set_arguments(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Arguments by name. Assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._set_arguments(self._args, k)

    def _set_arguments(self, args: Any, kwargs: Any) -> None:
        if not isinstance(args, (tuple, list)) or not isinstance(kwargs, Mapping):
            raise AssertionError(f"args must be a tuple and kwargs a dict, got {type(args)} and {type(kwargs)}")
        for old in self._input_nodes:
            old.users.pop(self, None)
        found: dict[Node, None] = {}

        def use(x: Any) -> Any:
            if isinstance(x, Node):
                found[x] = None
                x.users[self] = None
            return x

        self._input_nodes = found
        self._args = map_aggregate(tuple(args), use)
        self._kwargs = map_aggregate(dict(kwargs), use)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The Nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Set the positional argument ``idx``."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Put ``arg`` in front of the positional argument ``idx``.

        Args:
            idx: the place.
            arg: the argument.

        Raises:
            AssertionError: ``idx`` is not between 0 and the number of arguments.
        """
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set the argument ``key``."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use ``new_input`` wherever ``old_input`` is an argument."""
        self._tell_replaced(old_input, new_input)

        def change(x: Node) -> Node:
            return new_input if x is old_input else x

        self._set_arguments(map_arg(self.args, change), map_arg(self.kwargs, change))

    def _tell_replaced(self, old: Node, new: Any) -> None:
        module = self.graph.owning_module
        for hook in getattr(module, "_replace_hooks", None) or ():
            hook(old=old, new=getattr(new, "name", new), user=self)

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *, propagate_meta: bool = False,
    ) -> list[Node]:  # fmt: skip
        """Use ``replace_with`` in place of this Node, in every user for which ``delete_user_cb`` is true.

        Args:
            replace_with: the Node to use instead.
            delete_user_cb: which users to change; all by default.
            propagate_meta: give ``replace_with`` this Node's ``meta``, which it must not have of its own.
        Returns:
            The users as they were before.
        Raises:
            AssertionError: ``propagate_meta``, and the other Node has ``meta`` already.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already "
                    "has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = []
        for user in list(self.users):
            if delete_user_cb is None or delete_user_cb(user):
                changed.append(user)
                user.replace_input_with(self, replace_with)
        return changed

    # ---- questions ----

    @property
    def stack_trace(self) -> str | None:
        """The source of the step, if the Tracer recorded it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the step does more than give a value: dead-code elimination keeps it.

        Args:
            impure_random: count calls that draw random numbers.

        Returns:
            True where it does.

        Raises:
            AssertionError: the module that it calls is not known.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in _impure:
                return True
            return writes(self.target) or (impure_random and draws(self.target) is True)
        if self.op == "call_method":
            if self.target.startswith("__"):  # as in PyTorch; `writes` knows `__setitem__`
                return False
            return self.writes() or (impure_random and draws(method(self.target)) is True)
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            target = module.get_submodule(self.target)
            if target is None:
                raise AssertionError(f"Did not find expected submodule target {self.target}")
            return getattr(target, "_is_impure", False)
        return False

    def writes(self) -> bool:
        """Whether the step, with its arguments, changes one of them, or the state of a module."""
        if self.op in ("call_function", "call_method"):
            target = method(self.target) if self.op == "call_method" else self.target
            return writes(target, self.args, dict(self.kwargs))
        if self.op == "call_module" and self.graph.owning_module is not None:
            return any(map(_changes, self.graph.owning_module.get_submodule(self.target).modules()))
        return False

    def normalized_arguments(
        self, root: Any, arg_types: tuple | None = None, kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:  # fmt: skip
        """The arguments by name, as far as the signature of the target tells; None if it does not."""
        if self.op == "call_function":
            return normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    # ---- writing ----

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        if hasattr(target, "__module__"):
            name = getattr(target, "__name__", None)
            if name is None:
                return _names.qualified_name(target)
            if target.__module__ in ("builtins", "_operator"):
                return f"{target.__module__.lstrip('_')}.{name}"
        return _names.qualified_name(target)

    def format_node(
        self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None, *,
        include_tensor_metadata: bool = False,
    ) -> str | None:  # fmt: skip
        """The Node as ``print(graph)`` shows it."""
        shown = f"{_type_repr(self.type)} " if self.type else ""
        head = f"%{self.name} : {shown}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names:
                placeholder_names.append(f"{self.target}{': ' + _type_repr(self.type) if self.type else ''}")
                return None
            return f"{head}[target={self.target}]" + (f"(default={self.args[0]})" if self.args else "")
        if self.op == "get_attr":
            return f"{head}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        return (
            f"{head}[target={self._pretty_print_target(self.target)}]"
            f"(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
        )

    def _rename(self, candidate: str) -> None:
        if candidate == self.name:
            return
        self.name = self.graph._graph_namespace.create_name(candidate, None)
        self.graph._graph_namespace._rename_object(self, self.name)

"""``Proxy``: a value that does not exist yet. Operations on it become Nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from taeda._core import Tensor
from taeda._core.settings import within

from . import _names
from . import traceback as fx_traceback
from ._codegen import magic_methods, reflectable_magic_methods
from .graph import Graph
from .node import BASE_TYPES, Node, map_aggregate
from .operator_schemas import check_for_mutable_operation

__all__ = [
    "Attribute", "GraphAppendingTracer", "MetaProxy", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager",
    "TraceError", "TracerBase",
]  # fmt: skip


class TraceError(ValueError):
    """The program asks a Proxy what only a value can tell."""


class Scope:
    """The module whose forward is being traced: its path and its class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


def ScopeContextManager(scope: Scope, current_scope: Scope) -> AbstractContextManager[Scope]:
    """Let ``scope`` be ``current_scope`` within it."""
    return within(scope, module_path=current_scope.module_path, module_type=current_scope.module_type)


def _no_nodes(key: Any) -> None:
    def refuse(x: Any) -> Any:
        if isinstance(x, Node):
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
        return x

    map_aggregate(key, refuse)


class TracerBase:
    """Turns operations on Proxies into Nodes of ``graph``."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: Any
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self, kind: str, target: Any, args: tuple, kwargs: dict[str, Any], name: str | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Put a Node into the graph. Arguments are Nodes, not Proxies."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = getattr(self, "scope", None)
        if scope is not None:
            self.node_name_to_scope[node.name] = scope.module_path, scope.module_type
        if fx_traceback.has_preserved_node_meta():
            node.meta.update({k: v for k, v in fx_traceback.get_current_meta().items() if k not in node.meta})
        elif getattr(self, "module_stack", None):
            from collections import OrderedDict

            node.meta["nn_module_stack"] = OrderedDict(self.module_stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """The Proxy for ``node``."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: tuple, kwargs: dict[str, Any], name: str | None = None,
        type_expr: Any = None, proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Any:  # fmt: skip
        """Put a Node into the graph, from arguments with Proxies in them; gives its Proxy.

        Args:
            kind: the kind of the Node.
            target: what it calls or names.
            args: its positional arguments.
            kwargs: its arguments by name.
            name: a suggestion for its name.
            type_expr: the type of its value, for annotations.
            proxy_factory_fn: makes the Proxy; :meth:`proxy` by default.

        Returns:
            The Proxy.
        """
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("create_arg changed the kind of the arguments")
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        made = proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)
        if self.record_stack_traces and not made.node.stack_trace:
            stack = _names.user_stack()
            if stack:
                made.node.stack_trace = stack
        return made

    def create_arg(self, a: Any) -> Any:
        """``a`` as an argument of a Node: Proxies become Nodes, containers are walked.

        Args:
            a: the object.

        Returns:
            What the Node keeps.

        Raises:
            NotImplementedError: an argument of such a type cannot be in a Graph.
            RuntimeError: a key of a dict has a Node in it.
        """
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple):
            items = [self.create_arg(x) for x in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            made = {}
            for key, value in a.items():
                key = self.create_arg(key)
                _no_nodes(key)
                made[key] = self.create_arg(value)
            return made
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, (Node, *BASE_TYPES, *_names.OPS)) or a is None or a is ...:
            return a
        if type(a).__module__ == "enum" or hasattr(type(a), "__members__"):
            return a
        if hasattr(type(a), "__dataclass_fields__"):
            fields = {f: self.create_arg(getattr(a, f)) for f in type(a).__dataclass_fields__}
            return self.create_node("call_function", type(a), (), fields)
        raise NotImplementedError(f"argument of type: {type(a)}")

    # ---- hooks for operations that need a value ----

    def to_bool(self, obj: Proxy) -> bool:
        """Called by ``if proxy:``. A subclass may answer.

        Args:
            obj: the Proxy.

        Returns:
            What ``if`` sees.

        Raises:
            TraceError: always, unless a subclass answers.
        """
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator:
        """Called by ``for x in proxy``. A subclass may answer.

        Args:
            obj: the Proxy.

        Returns:
            What ``for`` goes through.

        Raises:
            TraceError: always, unless a subclass answers.
        """
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Called by ``**proxy``: an Attribute, which is then iterated over."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Appends to an existing Graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack: dict = {}
        self.node_name_to_scope = {}


def assert_fn(x: Any) -> None:
    """``assert x``, as a call that can be in a Graph."""
    if not x:
        raise AssertionError("Assertion failed")


class Proxy:
    """A value of the program that is being traced. Operators, attributes, methods and functions of it become Nodes.

    Operations that need the value itself (``if x:``, ``for a in x``, ``len(x)``, ``int(x)``) raise TraceError or
    TypeError: use a constant, unpack a fixed number of values (``a, b = x``), or ``fx.wrap`` the function that needs
    the value.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in ("__index__", "__array__", "__array_interface__", "__dlpack__"):  # a value is asked for
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict) -> Proxy:
        import copy

        made = Proxy.__new__(type(self))
        memo[id(self)] = made
        made.__dict__ = {k: v if k in ("node", "tracer") else copy.deepcopy(v, memo) for k, v in self.__dict__.items()}
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        count = _unpacked(_names.user_frame(2))
        return iter([operator.getitem(self, i) for i in range(count)]) if count else self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _asserts(_names.user_frame(2)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Asks the Tracer: see :meth:`TracerBase.keys`."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "taeda.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Callable, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        found: dict[Any, None] = {}

        def find(x: Any) -> Any:
            if isinstance(x, cls):
                found[x.tracer] = None
            return x

        map_aggregate((args, kwargs), find)
        if len(found) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(found)} while trying to trace operations {orig_method}"
            )
        tracer = next(iter(found))
        name = getattr(orig_method, "__name__", "")
        if args and isinstance(args[0], Tensor) and hasattr(Tensor, name):
            if _names.space_of(orig_method) is None or _names.is_method_call(
                _names.user_frame(2), len(args) + len(kwargs)
            ):
                return tracer.create_proxy("call_method", name, args, kwargs)
        args, kwargs = _names.as_passed(orig_method, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=None)


class MetaProxy(Proxy):
    """A Proxy that knows what its value will be like: ``node.meta["val"]``."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"


class Attribute(Proxy):
    """An attribute of a Proxy. It becomes a Node when it is used as a value; called, it is a method."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The Node, made now if there is none."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A Proxy for a parameter, which knows the parameter's shape: its sizes are numbers."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's shape."""
        return self.param.shape

    def size(self, *dim: int) -> Any:
        """The parameter's size."""
        return self.param.size(*dim)

    def dim(self) -> int:
        """The parameter's number of dimensions."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The parameter's number of dimensions."""
        return self.param.ndim

    def numel(self) -> int:
        """The parameter's number of elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """The parameter's number of elements."""
        return self.param.nelement()


# ---- information from the caller's bytecode --------------------------------------------------------------------------


def _steps_from(frame: Any) -> Iterator[Any]:
    """The instructions of ``frame``, from the one that runs now."""
    import dis

    for step in dis.get_instructions(frame.f_code):
        if step.offset >= frame.f_lasti and step.opname != "CACHE":
            yield step


def _unpacked(frame: Any) -> int:
    """How many values ``a, b = proxy`` in ``frame`` takes; 0 where nothing of the kind runs."""
    if frame is None:
        return 0
    step = next(_steps_from(frame), None)
    return step.arg if step is not None and step.opname == "UNPACK_SEQUENCE" else 0


def _asserts(frame: Any) -> bool:
    """Whether ``frame`` runs an ``assert``."""
    steps = [] if frame is None else list(_steps_from(frame))[:3]
    names = [step.opname for step in steps]
    return bool(names) and "JUMP" in names[0] and "LOAD_ASSERTION_ERROR" in names[1:]


# ---- operators -------------------------------------------------------------------------------------------------------


def _define(name: str, reflected: bool) -> None:
    function = getattr(operator, name, None) or getattr(operator, name.rstrip("_"), None)
    if function is None:
        return

    def method(*args: Any, **kwargs: Any) -> Any:
        tracer = args[0].tracer
        return tracer.create_proxy("call_function", function, args, kwargs)

    def reflected_method(self: Proxy, rhs: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (rhs, self), {})

    made = reflected_method if reflected else method
    made.__name__ = f"__{'r' if reflected else ''}{name.strip('_')}__"
    made.__qualname__ = f"Proxy.{made.__name__}"
    setattr(Proxy, made.__name__, made)


for _name in magic_methods:
    _define(_name, False)
for _name in reflectable_magic_methods:
    _define(_name, True)

Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]

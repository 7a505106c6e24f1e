"""``Tracer``: runs a module's forward, or a function, on Proxies, and records the calls as a Graph."""

from __future__ import annotations

import collections
import copy
import inspect
import math
import types
from collections.abc import Callable
from typing import Any

from taeda._asserts import _assert
from taeda._core import Tensor
from taeda.nn import Module, Parameter, Sequential
from taeda.utils import _pytree as pytree

from . import _names, _patch
from ._codegen import _PyTreeCodeGen, _PyTreeInfo
from .graph import Graph
from .node import Node
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

__all__ = ["PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer"]

_VARIABLE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

_proxyable: set[type] = set()


class ProxyableClassMeta(type):
    """The metaclass of classes whose making with Proxies, within a trace, becomes a call."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable.add(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made: Any = cls.__new__(cls, *args, **kwargs)  # type: ignore[arg-type]
        if _patch.is_tracing():
            found = [x.tracer for x in (*args, *kwargs.values()) if isinstance(x, Proxy)]
            if found:
                return found[0].create_proxy("call_function", cls, args, kwargs)
        cls.__init__(made, *args, **kwargs)  # type: ignore[misc]
        return made


class PHBase:
    """Stands in ``concrete_args`` for a value that is to be an argument."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A :class:`PHBase` whose attributes go to the Node's ``meta``."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def _with_positional(function: Any, count: int) -> Callable:
    """``function`` with all its parameters, ``*args`` and ``**kwargs`` too, taken by position."""
    code = function.__code__.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=function.__code__.co_flags & ~_VARIABLE
    )
    return types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )


class Tracer(TracerBase):
    """Symbolic tracing. Subclass it to say which modules stay calls (:meth:`is_leaf_module`) and how Nodes are made.

    Args:
        autowrap_modules: modules of Python whose functions become calls.
        autowrap_functions: functions that become calls.
        param_shapes_constant: sizes of parameters are numbers, not Nodes.
    """

    def __init__(
        self, autowrap_modules: tuple[types.ModuleType, ...] = (math,), autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        found = [function for module in autowrap_modules for _, function in _patch.functions_in(vars(module))]
        self._autowrap_function_ids = {id(function) for function in (*found, *autowrap_functions)}
        self._autowrap_search: list[types.ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack: collections.OrderedDict = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope: dict[str, tuple[str, Any]] = {}
        self.tensor_attrs: dict[Any, str] = {}
        self.root: Module

    # ---- arguments ----

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that the root has no attribute of."""
        i = 0
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        return f"{prefix}{i}"

    def create_arg(self, a: Any) -> Any:
        """``a`` as an argument of a Node; parameters, buffers and other tensors become attributes of the root.

        Raises:
            NameError: a parameter is not of the module that is traced.
        """
        if isinstance(a, Parameter):
            return self._attribute_of(a, self.root.named_parameters(), "parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if a is buffer:
                    return self.create_node("get_attr", name, (), {})
            name = self.tensor_attrs.get(a, "")
            if not name:
                name = self.get_fresh_qualname("_tensor_constant")
                self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Module):
            return self._attribute_of(a, self.root.named_modules(), "module is not a member of this module")
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(x) for x in a), {})
        if type(a) in _proxyable:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _attribute_of(self, a: Any, named: Any, message: str) -> Node:
        for name, value in named:
            if a is value:
                return self.create_node("get_attr", name, (), {})
        raise NameError(message)

    # ---- modules ----

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of ``m`` stays one Node. By default calls of the framework's modules do, except Sequential.

        Args:
            m: the module.
            module_qualified_name: its path, such as ``layer1.0``.
        """
        own = m.__module__.startswith(("taeda.nn", "torch.nn", "torch.ao.nn")) or m.__module__ in ("taeda", "torch")
        return own and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The path of ``mod`` from the root."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if mod is module:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a call of ``m``: a Proxy for a leaf, else the result of its forward.

        Args:
            forward: runs ``m`` on Proxies.
        """
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            count = self.num_calls.get(path, 0)
            self.num_calls[path] = count + 1
            key = f"{self.scope.module_path}@{count}" if count else self.scope.module_path
            self.module_stack[key] = (path, self.scope.module_type)
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem(last=True)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """The result of looking up a parameter, buffer or child: a Proxy for parameters.

        Args:
            attr: its name.
            attr_val: its value.
            parameter_proxy_cache: the Proxies of this trace, by path.
        """
        if isinstance(attr_val, Parameter):
            return self._proxy_of(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            return self._proxy_of(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _proxy_of(self, value: Any, named: Any, cache: dict[str, Proxy]) -> Any:
        for name, held in named:
            if value is held:
                if name not in cache:
                    options: dict[str, Any] = {}
                    # a subclass whose method takes no factory gets plain Proxies
                    if (
                        self.param_shapes_constant
                        and "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters
                    ):
                        options["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, name, value)  # noqa: B023
                    cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
                return cache[name]
        return value

    # ---- arguments of the root ----

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: dict[str, Any] | tuple | None = None
    ) -> tuple[Any, list[Any]]:
        """Placeholders for the parameters of ``root_fn``; gives the function to call and its arguments.

        Args:
            is_module: ``root_fn`` is a method; its first argument is the root.
            concrete_args: values for some parameters, by name. ``PH`` within a value stands for an argument.
        """
        analysed = inspect.unwrap(root_fn)
        code = analysed.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args: list[Any] = []
        start = 0
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
            start = 1
        signature = inspect.signature(analysed)
        if isinstance(concrete_args, tuple):
            if len(names[start:total]) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {total - start} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(names[start:total], concrete_args, strict=True))
        made = [self._proxy_placeholder(name, concrete_args, signature, analysed) for name in names[start:total]]
        if not isinstance(concrete_args, dict) and concrete_args is not None:
            raise TypeError("concrete_args must be a dict or a tuple")
        args.extend(made)
        if code.co_kwonlyargcount > 0 or code.co_flags & _VARIABLE:
            rest = iter(names[total:])
            if code.co_flags & inspect.CO_VARARGS:
                args.append(self._proxy_placeholder("*" + next(rest), concrete_args, signature, analysed))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(self._proxy_placeholder("**" + next(rest), concrete_args, signature, analysed))
            root_fn = _with_positional(root_fn, len(args))
        leaves, spec = pytree.tree_flatten(tuple(args))
        if not any(not leaf.is_leaf() for leaf in spec.children_specs):
            return root_fn, args
        return self._flattened(root_fn, leaves, spec, names[:total])

    def _flattened(self, root_fn: Callable, leaves: list, spec: Any, names: list[str]) -> tuple[Any, list[Any]]:
        """A function of the leaves, for arguments that nest."""
        own = [isinstance(leaf, Module) for leaf in leaves]
        inner = pytree.tree_structure(tuple(
            pytree.tree_unflatten(range(s.num_leaves), s)
            for s, is_root in zip(spec.children_specs, [own[0], *[False] * (len(spec.children_specs) - 1)], strict=True)
            if not is_root
        ))  # fmt: skip
        self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, inner, None))

        def flatten_fn(*args: Any) -> Any:
            out = root_fn(*pytree.tree_unflatten(list(args), spec))
            values, out_spec = pytree.tree_flatten(out)
            codegen = self.graph._codegen
            if not isinstance(codegen, _PyTreeCodeGen):
                raise AssertionError("the trace changed how its arguments nest")
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return values

        return flatten_fn, leaves

    def _proxy_placeholder(
        self, name: str, concrete_args: dict[str, Any] | None, sig: inspect.Signature,
        fn_for_analysis: Callable[..., Any],
    ) -> Any:  # fmt: skip
        default: tuple = ()
        if not name.startswith("*"):
            parameter = sig.parameters[name]
            default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
        if concrete_args is not None and name in concrete_args:
            count = 0

            def replace(x: Any) -> Any:
                nonlocal count
                count += 1
                return self._concrete(name, count, default, x)

            return pytree.tree_map(replace, concrete_args[name])
        return self.create_proxy(
            "placeholder", name, default, {}, type_expr=fn_for_analysis.__annotations__.get(name, None)
        )

    def _concrete(self, name: str, count: int, default: tuple, x: Any) -> Any:
        """One leaf of a concrete argument: a placeholder, and unless ``x`` is PH a check that it has its value."""
        out = self.create_proxy("placeholder", f"{name}_{count}", default, {})
        if isinstance(x, PHBase):
            if type(x) is not PHBase:
                out.node.meta.update({k: v for k, v in vars(x).items() if k not in out.node.meta})
            return out
        message = f"{name} has been specialized to have value {x} but got another value"
        if type(x) is bool or isinstance(x, (int, float, str)):
            self.create_proxy("call_function", _assert, (out == x, message), {})
        elif x is None:
            self.create_proxy("call_function", _assert_is_none, (out, message), {})
        else:
            import warnings

            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to "
                "the user to make sure that your inputs match the inputs you specialized the function with.",
                stacklevel=2,
            )
        return x

    # ---- the trace ----

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The Graph of ``root``.

        Args:
            root: a module, whose forward is traced, or a function.
            concrete_args: values for some parameters, which are then no arguments of the Graph.
        Raises:
            TraceError: the program's control flow depends on a value.
        """
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name() if hasattr(root, "_get_name") else type(root).__name__
            self.submodule_paths = {mod: name for name, mod in root.named_modules()}
        else:
            self.root = Module()
            fn = root
            self.submodule_paths = None
        self.graph = Graph(tracer_cls=self._tracer_class(), tracer_extras=getattr(self, "_tracer_extras", None))
        self.tensor_attrs = {}
        _collect_tensors(self.root, "", self.tensor_attrs)
        function: Any = inspect.unwrap(fn) if type(fn) not in _names.OPS else fn
        if not isinstance(function, (types.FunctionType, types.MethodType)):
            raise AssertionError(f"Expected FunctionType, got {type(fn)}")
        fn_globals: dict[str, Any] = getattr(function, "__globals__")  # noqa: B009
        fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
        cache: dict[str, Proxy] = {}

        def call(module: Module, args: tuple, kwargs: dict) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _patch.plain_call(module, *args, **kwargs)

            own = getattr(getattr(module, "forward", None), "__globals__", {})
            patches.autowrap(own, self._autowrap_function_ids)
            return self.call_module(module, forward, args, kwargs)

        def look_up(module: Module, name: str) -> Any:
            return self.getattr(name, _patch.plain_getattr(module, name), cache)

        with _patch.tracing(call, look_up) as patches:
            for names in (fn_globals, *map(vars, self._autowrap_search)):
                patches.autowrap(names, self._autowrap_function_ids)
            annotation = function.__annotations__.get("return", None)
            self.create_node("output", "output", (self.create_arg(fn(*args)),), {}, type_expr=annotation)
        self.submodule_paths = None
        return self.graph

    def _tracer_class(self) -> type[Tracer] | None:
        return None if "<locals>" in type(self).__qualname__ else type(self)

    def __deepcopy__(self, memo: dict) -> Tracer:
        made = Tracer.__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            held = name in ("_autowrap_search", "root", "submodule_paths", "tensor_attrs")
            made.__dict__[name] = copy.copy(value) if held and name != "root" else copy.deepcopy(value, memo)
        return made


class KeepModules(Tracer):
    """A Tracer for which every module is a leaf."""

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


def _collect_tensors(module: Module, path: str, found: dict[Any, str]) -> None:
    """The tensors that a module and those below it have as plain attributes."""
    for name, value in vars(module).items():
        if isinstance(value, Tensor):
            found[value] = f"{path}{name}"
    for name, child in module.named_children():
        _collect_tensors(child, f"{path}{name}.", found)

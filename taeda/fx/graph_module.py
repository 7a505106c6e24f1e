"""``GraphModule``: a module whose forward is the code of a Graph."""

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import os
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from taeda._core import Tensor
from taeda.nn import Module, Parameter

from . import _folder, _names
from ._codegen import PythonCode, _PyTreeCodeGen, is_local
from ._tracer import KeepModules
from .graph import Graph

__all__ = ["GraphModule", "reduce_graph_module"]

_counter = itertools.count()

#: In ``meta``: attributes that programs set and that new modules of the Graph get.
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"

#: The hooks of a GraphModule: on replacing inputs, making and erasing Nodes, and copying.
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> Callable[..., Any]:
    return _method_from_src("forward", src, globals)


def _method_from_src(name: str, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> Callable:
    """The function ``name`` of the code ``src``, whose lines tracebacks can show as long as it is there."""
    scope = dict(globals)
    key = f"<eval_with_key>.{next(_counter)}"
    linecache.cache[key] = len(src), None, src.splitlines(keepends=True), key
    exec(compile(src, key, "exec"), scope)
    weakref.finalize(scope[name].__code__, linecache.cache.pop, key, None).atexit = False
    return scope[name]


def _assign_attr(value: Any, target: Module, path: str) -> None:
    """Put ``value`` at ``path``, with empty modules on the way."""
    *prefix, name = path.split(".")
    for part in prefix:
        if getattr(target, part, None) is None:
            setattr(target, part, Module())
        target = getattr(target, part)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        target.register_buffer(name, value)
    else:
        setattr(target, name, value)


def _copy_attr(source: Module, target: Module, path: str) -> None:
    """Give ``target`` what ``source`` has at ``path``, with empty modules on the way."""
    *prefix, name = path.split(".")
    held: Any = source
    there: Any = target
    for part in prefix:
        held, there = getattr(held, part), getattr(there, part, None)
        if there is held:  # an existing parent has it
            return
    _assign_attr(getattr(held, name), target, path)


def _get_attr(model: Module, path: str) -> Any:
    value: Any = model
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _explain(frame: traceback.FrameSummary) -> str:
    """The lines of the generated code around the one that failed."""
    number = frame.lineno or 0
    lines = linecache.getlines(frame.filename)
    before = "".join(lines[max(number - 3, 0) : number]).rstrip("\n")
    after = "".join(lines[number : number + 2])
    return (
        f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:\n"
        f"{before}\n    ~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE\n{after}"
    )


def _call(cls: Any, module: Any, args: tuple, kwargs: dict) -> Any:
    try:
        return super(cls, module).__call__(*args, **kwargs)
    except Exception as error:
        where = traceback.TracebackException(type(error), error, error.__traceback__).stack
        if where and where[-1].filename.startswith("<eval_with_key>"):  # not inside functions that the code calls
            print(_explain(where[-1]), file=sys.stderr)
        raise


class GraphModule(Module):
    """A module made of a Graph. Setting ``graph``, or :meth:`recompile`, writes its forward anew.

    Args:
        root: the module that the Graph's paths start from, or a dict from paths to modules and tensors.
        graph: the Graph. Only what it names is taken from ``root``.
        class_name: the name of the class.

    Raises:
        RuntimeError: ``root`` is neither a module nor a dict.
    """

    _deepcopy_hooks: list[Callable]
    _graph: Graph

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # each has a class of its own, since forward is an attribute of the class
        for base in cls.__mro__:
            if "GraphModuleImpl" not in base.__qualname__:
                break
        made = type("GraphModuleImpl", (base,), {"__qualname__": "GraphModule.__new__.<locals>.GraphModuleImpl"})
        made.__module__ = GraphModule.__module__
        return super().__new__(made)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            self._take(root, graph)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self._code = ""
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = dict(getattr(root, "meta", {})) if isinstance(root, GraphModule) else {}
        for hooks in _HOOKS:
            setattr(self, hooks, [])
        self.shape_env = None
        for name, value in self.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(self, name, value)
        self.graph = graph

    def _take(self, root: dict[str, Any], graph: Graph) -> None:
        wanted = []
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
                wanted.append(node.target)
        for path in sorted(wanted, key=lambda target: target.count(".")):  # parents first
            _assign_attr(root[path], self, path)

    @property
    def graph(self) -> Graph:
        """The Graph. Assigning one recompiles."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    # ---- code ----

    @property
    def code(self) -> str:
        """The Python code of forward.

        Raises:
            RuntimeError: there is none yet.
        """
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Write forward anew from the Graph, after changes to it."""
        if isinstance(self._graph._codegen, _PyTreeCodeGen):
            self._in_spec = self._graph._codegen.pytree_info.in_spec
            self._out_spec = self._graph._codegen.pytree_info.out_spec
        code = self._graph.python_code("self")
        self._code = code.src
        self._lineno_map, self._prologue_start = code._lineno_map, code._prologue_start
        cls: Any = type(self)
        function = self._graph._codegen._func_name
        cls.forward = _method_from_src(function, code.src, code.globals)
        if "__call__" not in vars(cls):
            cls.__call__ = lambda self, *args, **kwargs: _call(cls, self, args, kwargs)
        return code

    def to_folder(self, folder: str | os.PathLike, module_name: str = "FxModule") -> None:
        """Write the module as a Python package, with its parameters.

        Args:
            folder: where; made if it is not there.
            module_name: the name of the class.
        """
        _folder.write(self, Path(folder), module_name)

    def print_readable(
        self, print_output: bool = True, include_stride: bool = False, include_device: bool = False,
        colored: bool = False, **options: Any,
    ) -> str:  # fmt: skip
        """Print the code, and that of GraphModules inside, with shapes and origins as comments. Returns the text."""
        text = _readable(self, self._get_name(), include_stride=include_stride, include_device=include_device)
        if print_output:
            print(text)
        return text

    # ---- submodules ----

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put ``m`` at a path, with empty modules on the way; gives whether that was possible."""
        *prefix, name = target.split(".")
        module: Module = self
        for part in prefix:
            inner = getattr(module, part, None)
            if inner is None:
                inner = Module()
                setattr(module, part, inner)
            if not isinstance(inner, Module):
                return False
            module = inner
        module.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take away the submodule at a path; gives whether there was one."""
        *prefix, name = target.split(".")
        module: Module = self
        for part in prefix:
            module = getattr(module, part, None)  # type: ignore[assignment]
            if not isinstance(module, Module):
                return False
        if not isinstance(getattr(module, name, None), Module):
            return False
        delattr(module, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take away the submodules that the Graph neither calls nor gets anything from."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
            if node.op == "call_module":
                called = dict(self.named_modules()).get(node.target)
                used.update(f"{node.target}.{name}" for name, _ in (called.named_modules() if called else ()) if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- copies ----

    def __deepcopy__(self, memo: dict) -> Any:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", *_HOOKS)}
        state = copy.deepcopy(state, memo)
        made.__dict__.update(state)
        type(made).__name__ = type(self).__name__
        for hooks in _HOOKS:
            made.__dict__[hooks] = list(getattr(self, hooks, ()))
        made.graph = copy.deepcopy(self._graph, memo)
        made.meta = {**getattr(self, "meta", {})}  # subclasses may have an __init__ of their own
        for hook in made._deepcopy_hooks:
            hook(made)
        return made

    def __copy__(self) -> Any:
        made = GraphModule(self, self.graph)
        made.meta = dict(self.meta)
        return made

    def __reduce__(self) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k not in _HOOKS}
        tracer = state.get("_tracer_cls")
        state["_tracer_cls"] = None if is_local(tracer) else tracer
        base = next(c for c in type(self).__mro__ if "GraphModuleImpl" not in c.__qualname__)
        return _rebuild, (base, type(self).__name__, state)

    def _replicate_for_data_parallel(self) -> Any:
        made = self.__copy__()
        made.__dict__["_is_replica"] = True
        return made

    def __str__(self) -> str:
        return "\n".join(
            [super().__str__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"]
        )

    # ---- hooks ----

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)


def _add_hooks(kind: str, name: str) -> None:
    def register(self: Any, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise AssertionError(f"{name} hook must be a callable.")
        getattr(self, kind).append(f)

    def unregister(self: Any, f: Callable[..., Any]) -> None:
        getattr(self, kind).remove(f)

    for prefix, function in (("_register", register), ("_unregister", unregister)):
        function.__name__ = f"{prefix}_{name}_hook"
        function.__doc__ = f"{prefix[1:].capitalize()} a hook: see ``{kind}``."
        setattr(GraphModule, function.__name__, function)


for _kind, _name in zip(_HOOKS, ("replace_node", "create_node", "erase_node", "deepcopy"), strict=True):
    _add_hooks(_kind, _name)


def _readable(module: Any, name: str, **options: Any) -> str:
    """The code of a module as a class, GraphModules inside it after it."""
    code = module._graph.python_code("self", verbose=True, **options).src.lstrip("\n")
    code = code.rstrip("\n").rstrip(" ").rstrip("\n")
    inner = [
        _readable(child, label, **options) for label, child in module.named_children() if isinstance(child, GraphModule)
    ]
    text = f"class {name}({_names.namespace()}.nn.Module):\n"
    text += "\n".join(f"    {line}" if line.strip() else "" for line in code.split("\n")) + "\n"
    for part in inner:
        text += "\n" + "\n".join(f"    {line}" if line else "" for line in part.split("\n"))
    return text


def _rebuild(base: Any, name: str, state: dict[str, Any]) -> Any:
    """The GraphModule of a pickle."""
    made: Any = base.__new__(base)
    graph = state.pop("_graph")
    made.__dict__.update(state)
    type(made).__name__ = name
    for hooks in _HOOKS:
        made.__dict__[hooks] = []
    made.graph = graph
    return made


class _CodeOnlyModule(Module):
    """A module that has the attributes of ``body`` alone: torchvision copies its feature extractors by it."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Any:
    """The GraphModule of code and attributes, as pickles of PyTorch keep it: the code is traced anew.

    Args:
        body: the attributes of the module, and its code as ``_code``.
        import_block: the imports that the code needs.

    Returns:
        The module.
    """
    code = body.get("_code") or body["code"]
    forward = _forward_from_src(import_block + code, {})
    holder = Module()
    holder.__dict__.update(body)

    class Forward(type(holder)):  # type: ignore[misc]
        pass

    Forward.forward = forward
    holder.__class__ = Forward

    made = GraphModule(holder, KeepModules().trace(holder), body.get("_graphmodule_cls_name", "GraphModule"))
    for name, value in body.items():
        if not hasattr(made, name):
            made.__dict__[name] = value
    return made

"""``Interpreter`` runs a Graph Node by Node; ``Transformer`` makes a new one of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taeda.nn import Module

from . import traceback as fx_traceback
from ._codegen import _last_uses
from ._tracer import KeepModules
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a module's Graph. Subclass it and override a method to change how a kind of Node runs.

    Args:
        module: the module that the Graph's paths start from.
        garbage_collect_values: forget values after their last use.
        graph: the Graph; ``module.graph`` by default.
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        if garbage_collect_values:
            self.user_to_last_uses = _last_uses(list(self.graph.nodes))

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Run the Graph.

        Args:
            args: the arguments of the module, by position.
            initial_env: values of Nodes that are known already.
            enable_io_processing: nest arguments and result as the code of the Graph does.
        Returns:
            The value of the output.
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    self._explain(error, node)
                raise
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
            if self.garbage_collect_values:
                for unused in self.user_to_last_uses.get(node, ()):
                    self.env.pop(unused, None)
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """:meth:`run` with the arguments in a list, which is emptied."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args, enable_io_processing=False)

    def _explain(self, error: Exception, node: Node) -> None:
        """Say at which Node it was."""
        if hasattr(error, "node") or isinstance(error, KeyError):
            return  # an inner program's, which has said it
        error.node = node  # type: ignore[attr-defined]
        text = f"While executing {node.format_node()}"
        if node.stack_trace:
            text += f"\nOriginal traceback:\n{node.stack_trace}"
        first = str(error.args[0]) if error.args else str(error)
        error.args = (f"{first}\n\n{text}" if first else text, *error.args[1:])

    @contextmanager
    def _set_current_node(self, node: Node) -> Iterator[None]:
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def run_node(self, n: Node) -> Any:
        """The value of a Node: its method below, with the values of its arguments."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The next argument.

        Args:
            target: the argument's name.
            args: its default, if there is one.
            kwargs: empty.

        Returns:
            The argument.

        Raises:
            RuntimeError: there are too few.
        """
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An attribute of the module, by its path."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a method of the first argument."""
        receiver, *rest = args
        return getattr(receiver, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The object at a path of the module.

        Args:
            target: the path, with dots.

        Returns:
            The object.

        Raises:
            RuntimeError: there is nothing.
        """
        value: Any = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """The arguments of a Node, with values for Nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """``args`` with values for Nodes.

        Args:
            args: Nodes in tuples, lists and dicts.
            n: the Node whose arguments they are, for messages.

        Returns:
            The same structure.

        Raises:
            RuntimeError: a Node has no value yet.
        """

        def value_of(used: Node) -> Any:
            if used not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {used}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[used]

        return map_arg(args, value_of)


class Transformer(Interpreter):
    """Runs a Graph on Proxies, so that what its methods do becomes a new Graph: :meth:`transform`."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = KeepModules()
        self.tracer.graph, self.tracer.root = self.new_graph, module

    def placeholder(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """A placeholder of the new Graph."""
        default = next(iter(args), ...)
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """An attribute in the new Graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a submodule in the new Graph."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a function in the new Graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new Graph."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:

            def strip(x: Any) -> Any:
                return x.node if isinstance(x, Proxy) else x

            output = self.new_graph.output(map_aggregate(result, strip))
            for old in self.graph.find_nodes(op="output"):
                output.meta = dict(old.meta)
        return GraphModule(self.module, self.new_graph)

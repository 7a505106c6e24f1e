"""``Graph``: the steps of a program, in order, as a linked list of Nodes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import _names
from ._codegen import CodeGen, PythonCode, _is_magic, _Namespace, _snake_case, is_local
from .node import Node, map_aggregate, map_arg

if TYPE_CHECKING:
    from ._tracer import Tracer
    from .graph_module import GraphModule

__all__ = ["CodeGen", "Graph", "PythonCode"]


class _InsertPoint:
    """The place at which a Graph puts new Nodes; as a context manager it is restored at the end."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self._before, graph._insert = graph._insert, insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        self.graph._insert = self._before


class _node_list:
    """The Nodes of a Graph. They may be erased and inserted while it is walked."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class Graph:
    """The steps of a program. A Tracer makes it; so can programs, with one method for each kind of Node.

    ::

        graph = fx.Graph()
        x = graph.placeholder("x")
        y = graph.call_function(operator.add, (x, 1))
        graph.output(y)
        module = fx.GraphModule({}, graph)
    """

    def __init__(
        self, owning_module: GraphModule | None = None, tracer_cls: type[Tracer] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._index: dict[tuple[str, Any], dict[Node, None]] = {}
        self._len = 0
        self._numbers: dict[Node, int] | None = None
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._owners = 0
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen: CodeGen = CodeGen()
        self._root: Node = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend

    @property
    def owning_module(self) -> GraphModule | None:
        """The GraphModule whose Graph this is."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: GraphModule | None) -> None:
        self._owning_module = mod

    # ---- nodes ----

    @property
    def nodes(self) -> _node_list:
        """The Nodes in order. Walk backwards with ``reversed(graph.nodes)``."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The output Node.

        Returns:
            The Node.
        Raises:
            StopIteration: there is none.
        """
        return next(iter(self.find_nodes(op="output")))

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The Nodes of kind ``op`` and, if it is given, with this target.

        Args:
            op: the kind.
            target: the function, method, attribute or module.
            sort: in the order of the Graph.
        Returns:
            The Nodes.
        Raises:
            AssertionError: ``call_function`` without a target.
        """
        if op == "call_function" and target is None:
            raise AssertionError("find_nodes: call_function needs a target")
        if target is not None:
            found = list(self._index.get((op, target), ()))
        else:
            found = [node for (kind, _), nodes in self._index.items() if kind == op for node in nodes]
        return sorted(found) if sort else found

    def _position(self, node: Node) -> int:
        if self._numbers is None:
            self._numbers = {n: i for i, n in enumerate(self.nodes)}
        return self._numbers.get(node, -1)

    def _moved(self) -> None:
        self._numbers = None

    def create_node(
        self, op: str, target: Any, args: tuple | None = None, kwargs: dict[str, Any] | None = None,
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Put a new Node at the point of insertion.

        Args:
            op: ``call_function``, ``call_method``, ``get_attr``, ``call_module``, ``placeholder`` or ``output``.
            target: a function, or the name of a method, attribute, module or argument.
            args: positional arguments, with Nodes for the values of other steps.
            kwargs: arguments by name.
            name: a suggestion; by default the name is made of the target.
            type_expr: the type of the value, for annotations.
        Returns:
            The Node.
        Raises:
            AssertionError: there is no such kind.
            ValueError: the target does not fit the kind.
        """
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError(f"args must be a tuple and kwargs a dict, got {type(args)} and {type(kwargs)}")
        label = self._graph_namespace.create_name(name or self._target_to_str(target), None)
        node = Node(self, label, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(label, node)
        self._insert(node)
        self._index.setdefault((op, target), {})[node] = None
        self._len += 1
        for hook in getattr(self._owning_module, "_create_node_hooks", None) or ():
            hook(node)
        return node

    def _target_to_str(self, target: Any) -> str:
        if callable(target):
            name = _names.name_of(target)
        else:
            if not isinstance(target, str):
                raise AssertionError(f"Expected target to be str, got {type(target)}")
            name = target[2:-2] if _is_magic(target) else target
            return _snake_case(name)
        return _snake_case(name[2:-2] if _is_magic(name) else name)

    def erase_node(self, to_erase: Node) -> None:
        """Take a Node out of the Graph.

        Args:
            to_erase: the Node.
        Raises:
            RuntimeError: it has users, or is of another Graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self._owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        self._index[to_erase.op, to_erase.target].pop(to_erase, None)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._set_arguments((), {})

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """New Nodes go in front of ``n``; at the beginning if it is None. For ``with``, or for good."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """New Nodes go behind ``n``; to the end if it is None. For ``with``, or for good."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    # ---- makers ----

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An argument of the function."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or other attribute of the module, by its path. Warns where there is none."""
        module = self.owning_module
        if module is not None and not _has_attribute(module, qualified_name):
            warnings.warn(
                f"Graph.get_attr: the module has no '{qualified_name}'. Add it first: add_submodule, "
                "register_parameter or register_buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: tuple | None = None, kwargs: dict[str, Any] | None = None, type_expr: Any = None
    ) -> Node:
        """A call of the submodule with this path. Warns where there is none."""
        if self.owning_module is not None and not _has_attribute(self.owning_module, module_name):
            warnings.warn(
                f"Graph.call_module: the module has no submodule '{module_name}'. Add it first: add_submodule",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: tuple | None = None, kwargs: dict[str, Any] | None = None, type_expr: Any = None
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Callable, args: tuple | None = None, kwargs: dict[str, Any] | None = None,
        type_expr: Any = None, name: str | None = None,
    ) -> Node:  # fmt: skip
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """The result of the function."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    # ---- copies ----

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of ``node``, which may be of another Graph, at the point of insertion.

        Args:
            node: the Node to copy.
            arg_transform: the argument to use for each Node among ``node``'s arguments.
        Returns:
            The copy.
        Raises:
            AssertionError: ``arg_transform`` gives another kind of object for a tuple or dict.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("node_copy: arg_transform changed the kind of the arguments")
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Append the Nodes of ``g`` except its output. Returns the value that the output would have.

        Args:
            g: the Graph to copy.
            val_map: Nodes of ``g`` that stand for Nodes of this Graph already; the copies are added.
            return_output_node: give ``g``'s output Node too.
        Returns:
            A value, or a value and a Node.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict | None = None) -> Graph:
        memo = memo if memo is not None else {}
        copied = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        memo[id(self)] = copied
        values: dict[Node, Node] = {}
        found = copied.graph_copy(self, values, return_output_node=True)
        copied._codegen = self._codegen
        memo.update({id(old): new for old, new in values.items()})
        if found is not None:
            result, old = found
            memo[id(old)] = made = copied.output(result, type_expr=old.type)
            made.meta = dict(old.meta)
        return copied

    # ---- code ----

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, from the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result of a call, from the value of the output Node."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module: str, *, verbose: bool = False, **options: Any) -> PythonCode:
        """The Graph as Python.

        Args:
            root_module: the name of the module in the code, ``"self"``.
            verbose: with comments about shapes and where the steps come from.
            **options: for a code generator of the program's own.
        Returns:
            The code, and the objects that it names.
        """
        namespace = _Namespace()
        before = [(node, node._repr_fn) for node in self.nodes]
        for node, _ in before:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, verbose=verbose, **options)
        finally:
            for node, function in before:
                node._repr_fn = function

    def set_codegen(self, codegen: CodeGen) -> None:
        """Write code by ``codegen`` from now on."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Callable[[list[str]], list[str]]]) -> Any:
        """Change the lines of code that the Graph writes.

        Args:
            make_transformer: is given the present transformer or None, and gives a new one, ``lines -> lines``.
        Returns:
            A context manager that takes the transformer away at its end; leave it out to keep it.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextmanager
        def restore() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return restore()

    # ---- looking and mending ----

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    def print_tabular(self) -> None:
        """Print the Nodes as a table."""
        rows = [[node.op, node.name, str(node.target), str(node.args), str(node.kwargs)] for node in self.nodes]
        print(_table(["opcode", "name", "target", "args", "kwargs"], rows))

    def lint(self) -> None:
        """Check the Graph: names, order, and that targets are there.

        Raises:
            RuntimeError: something is wrong; the text says what and at which Node.
            ValueError: a target is of the wrong type.
        """
        seen: set[str] = set()
        done: set[Node] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an "
                        "argument! If you are copying nodes from another graph, use ``arg_transform`` on "
                        "node_copy() to remap values"
                    )
                if used not in done:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that "
                        f"Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in seen:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node.name)
            done.add(node)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                _lint_target(self.owning_module, node)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out the Nodes without users, but for those with side effects.

        Args:
            is_impure_node: which Nodes to keep although they have no users; by default those that are impure
                (``Node.is_impure``), or that write to what is passed to them.
        Returns:
            Whether anything was taken out.
        """
        self.lint()
        keep = is_impure_node or (lambda node: node.is_impure() or node.writes())
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not keep(node):
                self.erase_node(node)
                changed = True
        if self.owning_module is not None:
            for module in self.owning_module.children():
                inner = getattr(module, "graph", None)
                if isinstance(inner, Graph):
                    changed |= inner.eliminate_dead_code(is_impure_node)
        return changed

    # ---- pickling: as records, since a linked list would recurse ----

    def __getstate__(self) -> dict[str, Any]:
        place = {node: _Reference(i) for i, node in enumerate(self.nodes)}
        records = [
            (n.op, _names.space_of(n.target) or n.target, map_arg(n.args, place.__getitem__),
             map_arg(n.kwargs, place.__getitem__), n.name, n.type, {k: v for k, v in n.meta.items() if k in _KEPT})
            for n in self.nodes
        ]  # fmt: skip
        tracer = None if is_local(self._tracer_cls) else self._tracer_cls
        return {"records": records, "tracer": (tracer, self._tracer_extras), "codegen": self._codegen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Graph.__init__(self, None, *state["tracer"])
        self._codegen = state["codegen"]
        made: list[Node] = []

        def resolve(x: Any) -> Any:
            return made[x.place] if isinstance(x, _Reference) else x

        for op, target, args, kwargs, name, kind, meta in state["records"]:
            node = self.create_node(
                op, _names.function_of(target), tuple(map_aggregate(args, resolve)),
                dict(map_aggregate(kwargs, resolve)), name, kind,
            )  # fmt: skip
            node.meta.update(meta)
            made.append(node)


class _Reference:
    """The Node at a place of the Graph, in a pickle."""

    def __init__(self, place: int) -> None:
        self.place = place


#: Entries of the meta of Nodes that pickles keep.
_KEPT = ("is_wrapped", "stack_trace", "tensor_meta")


def _table(head: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(line) for row in (head, *rows) for line in row[i].split("\n")) for i in range(len(head))]
    widths = [max(width, len(title) + 2) for width, title in zip(widths, head, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _has_attribute(module: Any, path: str) -> bool:
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return module is not None


def _lint_target(owner: Any, node: Node) -> None:
    """Check that the module or attribute that ``node`` names exists and has the right type."""
    from taeda.nn import Module

    module: Any = owner
    path = node.target.split(".")
    for i, part in enumerate(path):
        if not hasattr(module, part):
            raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part} of "
                               f"{'.'.join(path[:i]) or 'the module'}")  # fmt: skip
        module = getattr(module, part)
    if node.op == "call_module" and not isinstance(module, Module):
        raise RuntimeError(f"Node {node} target {node.target} does not reference an nn.Module")

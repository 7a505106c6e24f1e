"""The mode that records a program: one step for each public op or function, run without values at several sizes."""

from __future__ import annotations

import functools
import itertools
import linecache
import math
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taeda._core import Tensor
from taeda._core.tensor import new_generation
from taeda._settings import get_default_device
from taeda.amp.autocast_mode import converts
from taeda.aten import OpOverload
from taeda.fx import Graph, GraphModule, Node
from taeda.fx.experimental.symbolic_shapes import (
    _FUNCTIONS,
    _OPPOSITE,
    Expr,
    GuardOnDataDependentSymNode,
    SymBool,
    SymInt,
    _Symbolic,
)
from taeda.fx.node import map_aggregate
from taeda.fx.operator_schemas import writes
from taeda.nn import Parameter
from taeda.nn._recorded import refuse_storages
from taeda.nn.modules import _hooks
from taeda.ops.meta import place_of, planning, without_values
from taeda.ops.table import OPS, trait
from taeda.utils import _pytree as pytree

from .. import _core
from ._control_flow import RECORDED
from ._functions import own_names
from ._numbers import Numbers, exact
from ._steps import assert_scalar, item, set_grad_enabled, sym_size
from ._unknown_sizes import rule_for, sizes_in, without_masks
from ._unknowns import Knowledge, Unknown, Unknowns
from ._values import Conflict, Traced, as_size, fake, refuse_value
from .graph_signature import InputKind, InputSpec, TensorArgument

_HERE = str(Path(__file__).parents[1])
_MOST = 1024  #: elements of results that are computed while a program is recorded, where they are constants


class Scope:
    """A graph that is being recorded: the program's, or that of a function given to ``cond`` and similar functions."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.graph = Graph()
        self.modules: dict[str, GraphModule] = {}
        self.nodes: dict[int, Node] = {}
        self.captured: dict[int, tuple[Traced, Node]] = {}
        self.sizes: dict[Any, Node] = {}
        self.last_input: Node | None = None

    def placeholder(self, name: str) -> Node:
        """A new input, after those that there are."""
        last = self.last_input
        with self.graph.inserting_before(None) if last is None else self.graph.inserting_after(last):
            self.last_input = made = self.graph.placeholder(name)
        if name not in {n.name for n in self.graph.nodes if n is not made}:  # names of built-in functions are free here
            made.name = name
            self.graph._graph_namespace._rename_object(made, name)
        return made


class Capture(Numbers):
    """The mode. ``samples`` are the values of the symbols at which every step is run; ``unknowns`` are those among
    them that a run finds, and ``bounds`` the ranges of the others."""

    composites = True

    def __init__(
        self, samples: list[dict[str, int]], unknowns: Unknowns | None = None, bounds: dict | None = None
    ) -> None:
        self.samples = samples
        self.again = False
        self.unknowns = Unknowns() if unknowns is None else unknowns
        self.knowledge = Knowledge(bounds or {})
        self.masks: dict[tuple[int, int] | None, str] = {}  # how many elements they select
        self.found: dict[str, Unknown] = {}  # numbers that were met, and sizes that follow from them
        self.scope = self.root = Scope()
        self.progress = 0
        self.guards: list[tuple[Expr, bool, str]] = []
        self.constants: dict[int, tuple[Tensor, Traced]] = {}
        self.made: dict[Any, Traced] = {}  # of Python's values in this run, by their places
        self.born = new_generation()
        self.read: list[Tensor] = []  # tensors from outside whose values Python has read
        self.unread: dict[int, tuple[Tensor, Scope]] = {}  # tensors of Python's values that no step has read yet
        self.alive: list[Any] = []
        self.modules: list[tuple[str, str, int]] = []  # path, class, and which call it is
        self.paths: dict[int, str] = {}
        self.grad_mode = _core.is_grad_enabled()
        self.lift: Callable[[Tensor], Traced] = lambda x: self.traced(self.root.placeholder("c_0"), [x], x.device)
        self._names = 0
        self.expressions: dict[tuple, Expr] = {}  # expressions of sizes, by their values at the samples

    # ---- making tensors ----

    def in_body(self) -> bool:
        """Whether the body of an op runs, in place of a step."""
        return False

    def new_name(self, values: tuple = ()) -> str:
        """A name for a size that has no expression."""
        self._names += 1
        name = f"u{self._names - 1}"
        if self._is_found(values):
            self.found[name] = Unknown(name, "size", 0, math.inf, self.where())
            self.knowledge.bounds[name] = 0, math.inf
        return name

    def _is_found(self, values: tuple) -> bool:
        """Whether a number with these values at the samples depends on numbers that only a run finds."""
        if not self.unknowns.symbols or not values:
            return False
        known = [{k: v for k, v in s.items() if k not in self.unknowns.symbols} for s in self.samples]
        return any(k == known[0] and v != values[0] for k, v in zip(known, values, strict=True))

    def traced(self, node: Node | None, metas: Sequence[Tensor], device: Any) -> Traced:
        """A tensor of the program with these forms, the value of ``node``."""
        metas = list(metas) * (len(self.samples) if len(metas) == 1 else 1)
        made = Tensor._make_subclass(Traced, metas[0])
        # a step may require grad: a body that asks saves the tensors for the derivative, and programs can be trained
        made.wants_grad = _core.is_grad_enabled() and (metas[0].is_floating_point() or metas[0].is_complex())
        made.metas, made.capture, made._device = metas, self, device
        self._measure(made)
        self.alive.append(made)
        if node is not None:
            self.scope.nodes[id(made)] = node
            node.meta["val"] = fake(metas[0], made._sizes, device)
        return made

    def _measure(self, made: Traced) -> None:
        """Set the sizes that ``made`` shows from its forms."""
        ranks = {m.dim() for m in made.metas}
        if len(ranks) > 1:
            sample = next(i for i, m in enumerate(made.metas) if m.dim() != made.metas[0].dim())
            raise Conflict(sample, self.progress, f"the number of dimensions of a result changes\n{self.where()}")
        made._sizes = tuple(
            as_size([m.shape[d] for m in made.metas], self.samples, self, ("size", made, d)) for d in range(ranks.pop())
        )

    def input_of(self, node: Node, tensor: Tensor) -> Traced:
        """The value of the placeholder ``node``: a tensor like ``tensor``, of the same sizes."""
        return self.traced(node, [without_values(tensor.shape, tensor.stride(), tensor.dtype)], tensor.device)

    def input(self, name: str, tensor: Tensor, sizes: Sequence[Any]) -> Traced:
        """A placeholder. ``sizes`` has an Expr for each size that is dynamic, else None."""
        node = self.root.placeholder(name)
        if not any(isinstance(s, Expr) for s in sizes):
            return self.input_of(node, tensor)
        metas = [
            _like(tensor, [_at(s, n, at) for s, n in zip(sizes, tensor.shape, strict=True)]) for at in self.samples
        ]
        made = self.traced(node, metas, tensor.device)
        shown: list[Any] = []
        for d, (size, known) in enumerate(zip(made._sizes, sizes, strict=True)):
            if isinstance(size, SymInt) and known is not None:
                size = SymInt(int(size))._become(known, size.samples, self, ("input", made, d))
                self.root.sizes.setdefault(repr(known), (node, d))  # type: ignore[arg-type]
            shown.append(size)
        made._sizes = tuple(shown)
        node.meta["val"]._sizes = made._sizes
        return made

    # ---- callbacks of the core ----

    def handle(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Called for every op and composite."""
        if converts(_core.mode_stack()):
            return _core.pass_through(self, function, args, kwargs)  # its conversions are steps, too
        if function.__name__ == "as_subclass" or any(callable(x) and not isinstance(x, (type, Tensor)) for x in args):
            return _core.pass_through(self, function, args, kwargs)
        if function is OPS["basic_index"]:  # of a constant; what is of the program is recorded so
            function = operator.getitem
        return self.call(function, args, kwargs)

    def custom_op(self, op: Any, args: tuple, kwargs: dict) -> Any:
        """A call of an op of the user's own: one step if its ``register_fake`` gives the sizes."""
        return NotImplemented if op._fake is None else self.handle(op._overload, args, kwargs)

    def item(self, x: Tensor) -> Any:
        """The value of a tensor that is not of the program, such as a constant; of one that is, an unknown number."""
        if isinstance(x, Traced):
            return self.number(x)
        self.read.append(x)
        with self.aside():
            return x.item()

    def by_python(self, what: str, source: Tensor | None) -> bool:
        """Values of a tensor from outside that Python reads. A write of Python's there would be lost."""
        if source is not None:
            self.read.append(source)
        return source is not None

    def note_detached(self, source: Tensor, made: Tensor) -> None:
        """``made`` is ``source.detach()`` or ``source.data`` of a tensor from outside, which no op makes."""
        if not isinstance(source, Traced):
            self.constants[id(made)] = made, self.call(OPS["detach"], (source,), {})

    def holds(self, storage: Any) -> bool:
        """Whether ``storage`` is memory of the program's tensors, or lasts from run to run."""
        return storage.born < self.born or storage.device.type == "meta"

    def note_made(self, x: Tensor) -> Tensor:
        """Stand-in for a tensor that the program makes of Python's values: every run begins with a copy of them."""
        with self.aside():
            if isinstance(x, Traced) or x.is_meta or type(x) is not Tensor:
                return x
            source = self._source_of(x)
            if source is not None:
                return self.call(OPS["detach"], (source,), {})
            made = self.traced(None, [without_values(x.shape, x.stride(), x.dtype)], x.device)
        made.wants_grad = x.requires_grad
        made.constant = x, made.metas[0]._version
        self.unread[id(made)] = x, self.scope
        self.constants[id(x)], self.made[place_of(x)] = (x, made), made
        return made

    def _source_of(self, x: Tensor) -> Tensor | None:
        """The tensor whose memory ``x`` shows by way of an array of its values; None if there is none."""
        place = place_of(x)
        if place is None or place in self.made:
            return self.made.get(place)
        for source in self.read:
            storage = None if place_of(source) is None else source.untyped_storage()
            if storage is not None and storage._address() <= place[0] < storage._address() + storage.nbytes():
                if place_of(source) != place:
                    raise RuntimeError(
                        f"export: an array of part of a tensor is made a tensor; index it\n{self.where()}"
                    )
                return source
        return None

    def value_of(self, x: Any) -> Any:
        """The values of a tensor of the program that are the same in every run, anything else as it is; None for a
        tensor without such."""
        if not isinstance(x, Traced):
            return x
        value, version = x.constant or (None, 0)
        return value if version == x.metas[0]._version else None

    def _begin(self, x: Traced) -> None:
        """Record the copy of Python's values that ``x`` begins with, in the graph whose function made it."""
        value, scope = self.unread.pop(id(x))
        with self.aside():
            value = value.detach().clone()
        now, self.scope = self.scope, scope
        try:
            node = scope.nodes[id(x)] = self.create(OPS["clone"], (self.node_of(self.lift(value)),), {})
            node.meta["val"] = fake(without_values(value.shape, value.stride(), value.dtype), value.shape, x._device)
        finally:
            self.scope = now

    def _compute(self, function: Any, given: tuple, made: Any) -> None:
        """Note the values of results that are the same in every run."""
        tensors = [x for x in _everything(given) if isinstance(x, Traced)]
        results = [x for x in pytree.tree_leaves(made) if isinstance(x, Traced)]
        written = writes(function, *given)
        if not tensors or any(x.constant is None for x in tensors) or trait(function, "random"):
            return
        if isinstance(function, OpOverload) or (written and (self.scope is not self.root or made is None)):
            return
        versions = {id(x): x.constant[1] for x in tensors}  # type: ignore[index]
        if any(versions[id(x)] != x.metas[0]._version for x in tensors if not written or x is not made):
            return
        if any(type(size) is not int for x in results for size in x.shape) or sum(x.numel() for x in results) > _MOST:
            return
        with self.aside():
            values = map_aggregate(given, lambda x: x.constant[0] if isinstance(x, Traced) and x.constant else x)
            if written:
                values = (values[0][0].clone(), *values[0][1:]), values[1]
            computed = [x for x in pytree.tree_leaves(function(*values[0], **values[1])) if isinstance(x, Tensor)]
        for x, value in zip(results, computed, strict=True):
            x.constant = value, x.metas[0]._version

    def on(self) -> _core.modes:
        """The mode is on within it, and autocast that was on before is off."""
        return _core.modes([*(m for m in _core.mode_stack() if not converts([m])), self])

    def also_on(self) -> _core.modes:
        """The mode is on within it, with the others."""
        stack = _core.mode_stack()
        return _core.modes([*stack, self] if self not in stack else stack)

    def aside(self) -> _core.modes:
        """No mode is on within it."""
        return _core.modes([])

    # ---- one step ----

    def call(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Run ``function`` at every sample, and record it if it gives tensors or writes to one."""
        try:
            return self._call(function, args, kwargs)
        except GuardOnDataDependentSymNode:
            numbers = map_aggregate((args, kwargs), self._as_number)  # a constant may stand for a size or an index
            if not any(x is not y for x, y in zip(_everything(numbers), _everything((args, kwargs)), strict=True)):
                raise
        return self.call(function, *numbers)

    def _as_number(self, x: Any) -> Any:
        """The number of a constant without dimensions that is an integer or a bool; anything else as it is."""
        whole = isinstance(x, Traced) and not x.dim() and not (x.is_floating_point() or x.is_complex())
        return x if not whole or self.value_of(x) is None else self.number(x)

    def _call(self, function: Any, args: tuple, kwargs: dict) -> Any:
        refuse_storages(function, args, kwargs)
        for x in _everything(sizes_in(function, args, kwargs)) if self.found else ():
            if isinstance(x, SymInt) and isinstance(x >= 0, SymBool):
                self.require(x >= 0)
        with self.aside():
            given = map_aggregate((args, kwargs), self._lifted)
            rule = rule_for(function, *given)
            if rule is not None or trait(function, "meta", "") == "values":
                values = map_aggregate(given, self.value_of)
                tensors = [x for x in _everything(given) if isinstance(x, Tensor)]
                if tensors and not any(self.value_of(x) is None for x in tensors) and given[1].get("out") is None:
                    made = function(*values[0], **values[1])
                    return pytree.tree_map(lambda x: self.note_made(x) if isinstance(x, Tensor) else x, made)
            if rule is None and trait(function, "meta", "") == "values":
                refuse_value(f"{function.__name__}(), the size of whose result depends on them,", self.where())
            found: dict[str, Any] = {}
            run = function if rule is None else functools.partial(self._of_unknown_size, *rule, found)
            own = isinstance(function, OpOverload)
            if own:
                run = functools.partial(self._of_own_op, function.overloadpacket.function, found)
            whole = own or rule is not None
            counted = range(len(self.samples)) if whole else self._counted(given)
            if len(counted) > 1:
                changed = given[0][:1] if trait(function, "meta", "") == "form" else given[1].get("out")
                for x in pytree.tree_leaves(changed):
                    if isinstance(x, Traced) and x.metas[0] is x.metas[-1]:  # each gets sizes of its own
                        form = x.metas[0].shape, x.metas[0].stride(), x.metas[0].dtype
                        x.metas = [x.metas[0], *(without_values(*form) for _ in x.metas[1:])]
            results = [self._run(function, run, given, i, whole) for i in counted]
        self.progress += 1
        if not writes(function, args, kwargs) and not any(
            isinstance(x, Tensor) for x in pytree.tree_leaves(results[0])
        ):
            return self._plain(function, results)
        if results[0] is not None and not _is_tree(results[0]):
            raise RuntimeError(f"export: {function.__name__} gives {type(results[0]).__name__}\n{self.where()}")
        made = self._record(function, given, results)
        self._compute(function, given, made)
        if "name" in found:
            self._name_size(pytree.tree_leaves(made), found["name"])
        return made

    def _counted(self, given: Any) -> range:
        """The samples to run: only the first where nothing varies."""
        varies = any(
            isinstance(x, _Symbolic) or (isinstance(x, Traced) and x.metas[0] is not x.metas[-1])
            for x in _everything(given)
        )
        return range(len(self.samples) if varies else 1)

    def _run(self, function: Any, run: Callable, given: tuple, sample: int, whole: bool = False) -> Any:
        args, kwargs = map_aggregate(given, functools.partial(_sample, sample))
        try:
            with planning(lambda: refuse_value(f"{function.__name__}()", self.where())):
                return run(sample, (args, kwargs)) if whole else run(*without_masks(function, args), **kwargs)
        except GuardOnDataDependentSymNode:
            raise
        except Exception as error:
            if sample == 0 and not self.found:
                raise
            text = f"{function.__name__} fails: {error}\n{self.where()}"
            raise Conflict(sample, self.progress, text, given=(function, given), error=error) from None

    def _plain(self, function: Any, results: list) -> Any:
        for i, result in enumerate(results):
            if result != results[0]:
                text = f"{function.__name__} gives {results[0]!r} in the example and {result!r} at other sizes"
                raise Conflict(i, self.progress, f"{text}\n{self.where()}")
        return results[0]

    def _lifted(self, x: Any) -> Any:
        """Tensors from outside as constants of the program."""
        if not isinstance(x, Tensor) or (isinstance(x, Traced) and x.capture is self):
            return x
        if id(x) not in self.constants:
            with self.aside():
                made = self.made.get(place_of(x)) if self.made else None
            self.constants[id(x)] = x, self.lift(x) if made is None else self.call(OPS["detach"], (made,), {})
        return self.constants[id(x)][1]

    def _record(self, function: Any, given: Any, results: list) -> Any:
        self._follow_grad_mode()
        args, kwargs = given[0], own_names(function, given[1])
        node = self.create(function, map_aggregate(args, self.node_of), map_aggregate(kwargs, self.node_of))
        if function is operator.setitem or results[0] is None:
            return None
        owners = {id(x.metas[0]): x for x in _everything(given) if isinstance(x, Traced)}
        device = _device_of(given)
        shapes = [pytree.tree_flatten(r) for r in results]
        for i, (_, spec) in enumerate(shapes):
            if spec != shapes[0][1]:
                raise Conflict(i, self.progress, f"{function.__name__} gives another number of results\n{self.where()}")
        leaves = list(zip(*(flat for flat, _ in shapes), strict=True))
        single = isinstance(results[0], Tensor)
        parts = results[0] if isinstance(function, OpOverload) and isinstance(results[0], tuple) else ()
        if any(isinstance(x, (tuple, list)) for x in parts):
            name = function.overloadpacket.function._qualname
            raise NotImplementedError(
                f"export: {name} gives a list of tensors beside other results, which is not recorded; give "
                f"one list, or each tensor by itself\n{self.where()}"
            )
        made = []
        for i, metas in enumerate(leaves):
            if not isinstance(metas[0], Tensor):
                made.append(metas[0])
                continue
            part = node if single else self.create(operator.getitem, (node, i), {})
            known = owners.get(id(metas[0]))
            if known is None:
                made.append(self.traced(part, metas, device))
                made[-1].wants_grad &= any(x.wants_grad for x in owners.values()) and function.__name__ != "detach"
                continue
            self._measure(known)  # the argument itself: it was written to
            self.scope.nodes[id(known)] = part
            part.meta["val"] = fake(known.metas[0], known._sizes, known._device)
            made.append(known)
        if not single:
            node.meta["val"] = tuple(
                x if not isinstance(x, Traced) else fake(x.metas[0], x._sizes, x._device) for x in made
            )
        return pytree.tree_unflatten(made, shapes[0][1])

    def create(self, target: Any, args: tuple, kwargs: dict, name: str | None = None) -> Node:
        """A step of the graph that is being recorded."""
        node = self.scope.graph.create_node("call_function", target, args, kwargs, name)
        node.meta["stack_trace"] = self.stack_trace()
        if self.modules:
            node.meta["nn_module_stack"] = {path: (path, kind) for path, kind, _ in self.modules}
            node.meta["module_calls"] = tuple(self.modules)
        return node

    def _follow_grad_mode(self) -> None:
        mode = _core.is_grad_enabled()
        if mode != self.grad_mode:
            self.create(set_grad_enabled, (mode,), {})
            self.grad_mode = mode

    # ---- arguments as nodes ----

    def node_of(self, x: Any) -> Any:
        """The node or constant of ``x`` in the graph that is being recorded."""
        if isinstance(x, Traced):
            return self._node_in(self.scope, x)
        if isinstance(x, _Symbolic):
            return self._number(x)
        return x

    def _node_in(self, scope: Scope, x: Traced) -> Node:
        if id(x) in self.unread:
            self._begin(x)
        node = scope.nodes.get(id(x))
        if node is not None:
            return node
        if scope.parent is None:
            raise RuntimeError(
                f"export: a tensor of a function given to cond or the like is used after it\n{self.where()}"
            )
        self._node_in(scope.parent, x)
        node = scope.placeholder(f"captured{len(scope.captured)}")
        node.meta["val"] = fake(x.metas[0], x._sizes, x._device)
        scope.nodes[id(x)], scope.captured[id(x)] = node, (x, node)
        return node

    def _number(self, x: Any) -> Any:
        """The node of a symbolic number."""
        kind, *args = x.source
        key: Any = repr(x.expr) if exact(x) else id(x)
        found: Any = self.scope.sizes.get(key)
        if isinstance(found, Node):
            return found
        if kind == "item":  # in a graph inside of the one that asked for it
            if args[0].metas[0]._version != args[1]:
                raise RuntimeError(f"export: the tensor of {x} was written to before it is used here\n{self.where()}")
            made = self.create(item, (self._node_in(self.scope, args[0]),), {})
        elif isinstance(found, tuple) or kind in ("size", "input"):
            source, dim = found if isinstance(found, tuple) else (self._node_in(self.scope, args[0]), args[1])
            made = self.create(sym_size, (source, dim), {})
        else:
            made = self.create(_FUNCTIONS[kind][0], tuple(map(self.node_of, args)), {})
        made.meta["val"] = type(x)(x.samples[0])._become(x.expr, x.samples)
        self.scope.sizes[key] = made
        self.alive.append(x)
        return made

    # ---- comparisons ----

    def guard(self, expr: Expr, values: list, source: tuple) -> bool:
        """The outcome of a comparison, which must be the same at every sample."""
        outcome = values[0]
        if self.unknown(expr):
            return self._condition(expr, values, source)
        if len(expr.args) == 2 and repr(expr.args[0]) == repr(expr.args[1]):
            return outcome  # a size equals itself
        known = all(exact(a) for a in source[1:])
        for i, value in enumerate(values):
            if value != outcome:
                text = f"'{expr}' is {outcome} in the example and {value} at other sizes\n{self.where()}"
                raise Conflict(i, self.progress, text, expr if known else None, outcome)
        if known:
            self.guards.append((expr, outcome, self.where()))
            return outcome
        name = source[0] if outcome else _OPPOSITE[source[0]]
        shown = Expr(name, *expr.args)
        if not any(
            node.target is assert_scalar and node.args[1] == f"expected {shown}" for node in self.scope.graph.nodes
        ):
            condition = self.create(_FUNCTIONS[name][0], tuple(map(self.node_of, source[1:])), {})
            condition.meta["val"] = SymBool(1.0)._become(shown, [True] * len(values))
            self.create(assert_scalar, (condition, f"expected {shown}"), {})
        return outcome

    # ---- functions given to ops ----

    def sub_graph(self, function: Callable, inputs: Sequence[Any]) -> tuple[Scope, list, Any]:
        """``function`` of ``inputs``, leaves, as a graph of its own: its scope, flat results, and their structure."""
        outer, mode = self.scope, self.grad_mode
        scope = self.scope = Scope(outer)
        try:
            with self.also_on():
                given = []
                for i, x in enumerate(inputs):
                    if not isinstance(x, Tensor):
                        given.append(x)
                        continue
                    x = self._lifted(x)
                    given.append(self.traced(scope.placeholder(f"arg{i}"), x.metas, x._device))
                flat, spec = pytree.tree_flatten(function(*given))
                flat = [self._lifted(x) for x in flat]
                scope.graph.output(tuple(self.node_of(x) for x in flat))
        finally:
            self.scope, self.grad_mode = outer, mode
        return scope, flat, spec

    def close(self, scopes: Sequence[Scope], names: Sequence[str]) -> tuple[list[Node], list[Node]]:
        """Make graphs that take the same tensors from outside, as ``get_attr`` nodes; and the nodes of those
        tensors."""
        union = {key: x for scope in scopes for key, (x, _) in scope.captured.items()}
        for scope in scopes:
            last = scope.last_input
            if scope.captured:
                first = [n for n in scope.graph.nodes if n.op == "placeholder"]
                own = [n for n in first if all(n is not node for _, node in scope.captured.values())]
                last = own[-1] if own else None
            for key, x in union.items():
                if key not in scope.captured:
                    self._node_in(scope, x)
                node = scope.captured[key][1]
                if last is not None:
                    last.append(node)
                else:
                    scope.graph._root.append(node)
                last = node
        nodes = []
        for scope, name in zip(scopes, names, strict=True):
            index = sum(key.startswith(f"{name}_") for key in self.scope.modules)
            path = f"{name}_{index}"
            self.scope.modules[path] = GraphModule(dict(scope.modules), scope.graph, name)
            nodes.append(self.scope.graph.create_node("get_attr", path, (), {}, path))
        return nodes, [self._node_in(self.scope, x) for x in union.values()]

    def results(self, node: Node, likes: Sequence[Any], spec: Any) -> Any:
        """The results of a step that gives a tuple of tensors like ``likes``."""
        made = []
        for i, x in enumerate(likes):
            if isinstance(x, Traced):
                x = self.traced(self.create(operator.getitem, (node, i), {}), x.metas, x._device)
            made.append(x)
        node.meta["val"] = tuple(fake(x.metas[0], x._sizes, x._device) for x in made if isinstance(x, Traced))
        self.progress += 1
        return pytree.tree_unflatten(made, spec)

    def control_flow(self, name: str, *args: Any) -> Any:
        """A call of ``cond``, ``while_loop`` and so on, as one step. NotImplemented where it is not needed."""
        return RECORDED[name](self, *args)

    # ---- where it is ----

    def frames(self) -> list[tuple[str, int, str]]:
        """File, line and function of the calls that are running, outermost first, without this machinery."""
        found: list[tuple[str, int, str]] = []
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_code is not _call_model.__code__:
            file = frame.f_code.co_filename
            if not file.startswith(_HERE) or (f"{_HERE}/nn/modules" in file and "module.py" not in file):
                found.append((file, frame.f_lineno, frame.f_code.co_name))
            frame = frame.f_back
        return found[::-1]

    def stack_trace(self) -> str:
        """The running calls as Python shows them."""
        return "".join(
            f'  File "{file}", line {line}, in {name}\n    {linecache.getline(file, line).strip()}\n'
            for file, line, name in self.frames()
        )

    def where(self) -> str:
        """The innermost line of the user's program."""
        lines = [f for f in self.frames() if not f[0].startswith(_HERE)] or self.frames()
        if not lines:
            return "  (line not known)"
        file, line, name = lines[-1]
        return f'  File "{file}", line {line}, in {name}\n    {linecache.getline(file, line).strip()}'

    @contextmanager
    def watching(self, model: Any) -> Iterator[None]:
        """Keep ``modules`` up to date while ``model`` runs."""
        self.paths = {id(m): name for name, m in model.named_modules()} if hasattr(model, "named_modules") else {}

        numbers = itertools.count()

        def enter(module: Any, args: Any) -> None:
            kind = f"{type(module).__module__}.{type(module).__qualname__}"
            self.modules.append((self.paths.get(id(module), ""), kind, next(numbers)))

        def leave(module: Any, args: Any, output: Any) -> None:
            self.modules.pop()

        with (
            _hooks.register_module_forward_pre_hook(enter),
            _hooks.register_module_forward_hook(leave, always_call=True),
        ):
            yield


class Recorded:
    """A program that ``capture`` has recorded at some sizes: its inputs, and the tensors from outside among them."""

    def __init__(self, capture: Capture, specs: list[InputSpec], constants: dict[str, Tensor]) -> None:
        self.capture, self.specs, self.constants = capture, specs, constants
        self.last_state: Node | None = None
        capture.lift = self._lift

    def _lift(self, x: Tensor) -> Traced:
        """A placeholder for a tensor from outside."""
        raise NotImplementedError

    def _state(self, name: str, x: Tensor) -> Traced:
        """A placeholder for a parameter or a buffer."""
        made = self.capture.input(name, x, [None] * x.dim())
        made.wants_grad = x.requires_grad
        self.last_state = self.capture.root.last_input
        return made

    def _new_path(self) -> str:
        return f"lifted_tensor_{sum(name.startswith('lifted_tensor_') for name in self.constants)}"

    def _constant(self, x: Tensor, path: str) -> Traced:
        """A placeholder for the constant ``x``, before those of arguments."""
        with self.capture.aside():
            self.constants[path] = x if isinstance(x, Parameter) else x.detach()
        graph, scope, last = self.capture.root.graph, self.capture.scope, self.last_state
        with graph.inserting_before(None) if last is None else graph.inserting_after(last):
            self.last_state = node = graph.placeholder(f"c_{path.replace('.', '_')}")
        self.capture.scope = self.capture.root
        made = self.capture.input_of(node, x)
        made.wants_grad = x.requires_grad
        self.capture.scope = scope
        index = sum(s.kind != InputKind.USER_INPUT for s in self.specs)
        self.specs.insert(index, InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), path))
        return made


def _call_model(model: Callable, args: Sequence, kwargs: dict) -> Any:
    """``model(*args, **kwargs)``: the frame at which stack traces begin."""
    return model(*args, **kwargs)


def _sample(i: int, x: Any) -> Any:
    if isinstance(x, Traced):
        return x.metas[i]
    return x.samples[i] if isinstance(x, _Symbolic) else x


def _at(expr: Expr | None, size: int, symbols: dict[str, int]) -> int:
    return size if expr is None else expr.value(symbols)


def _like(tensor: Tensor, sizes: Sequence[int]) -> Tensor:
    """A tensor on device meta of these sizes, dense, with dimensions in memory in the order that ``tensor`` has them
    in."""
    order = sorted(range(len(sizes)), key=lambda d: -tensor.stride(d))
    strides, step = [0] * len(sizes), 1
    for d in reversed(order):
        strides[d], step = step, step * max(sizes[d], 1)
    return without_values(sizes, None if tensor.is_contiguous() else strides, tensor.dtype)


def _everything(tree: Any) -> list:
    found: list = []
    map_aggregate(tree, found.append)
    return found


def _is_tree(x: Any) -> bool:
    return isinstance(x, (Tensor, tuple, list))


def _device_of(given: Any) -> Any:
    """The device that a program would see its result on."""
    named = given[1].get("device") if isinstance(given[1], dict) else None
    if named is not None:
        return named if isinstance(named, _core.device) else _core.device(named)
    device = next((x._device for x in _everything(given) if isinstance(x, Traced)), None)
    return device or get_default_device()

"""``run_decompositions``: a program in fewer ops, and without writes.

The graph is run again, without values, by a mode that does two things. It replaces a call of an op that is not
canonical by its stanza's decomposition, its expression or its body. And it keeps account of memory: a write to a tensor
makes a new value, which stands for that tensor, and for all views of it, from then on.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from taeda._core import Composite, MetaValueError, Op, Tensor
from taeda.fx import GraphModule, Interpreter, Node, _names
from taeda.fx.experimental.symbolic_shapes import Expr, GuardOnDataDependentSymNode, SymBool, ValueRanges
from taeda.fx.node import map_aggregate, map_arg
from taeda.fx.operator_schemas import writes, writes_in_place
from taeda.ops.creation import contiguous_strides
from taeda.ops.registry import is_in_place
from taeda.ops.table import METHODS, OPS, asked_for, spread, trait
from taeda.utils import _pytree as pytree

from .. import _core
from ._capture import Capture, Recorded, _everything
from ._functions import table as known_functions
from ._lowering import of_expression
from ._scatters import put, scattered
from ._steps import WITHOUT_WRITES, assert_scalar, batch_norm_functional
from ._unknown_sizes import _bound, numbers
from ._unknowns import Again, Unknowns
from ._values import Conflict, Traced, range_of, samples_of
from .graph_signature import InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument

__all__ = ["decomposed", "default_decompositions", "is_canonical"]

_UNKNOWN = MetaValueError, GuardOnDataDependentSymNode, Conflict  #: values or sizes are asked for that are not known


def is_canonical(function: Any) -> bool:
    """Whether a function is one of those that decomposed programs are written in."""
    return bool(trait(function, "canonical", False))


@functools.cache
def _rules() -> dict[Any, Callable]:
    found: dict[Any, Callable] = {}
    for name, function in known_functions().items():
        if is_canonical(function) or name.startswith(("step.", "operator.", "math.")):
            continue
        rule = trait(function, "lowering") or trait(function, "decomposition")
        if rule is not None:
            found[function] = functools.partial(_by_name, function, rule)
        elif isinstance(function, Composite):
            found[function] = functools.partial(_body, function)
        elif isinstance(function, Op) and function.traits.get("pointwise") is True:
            found[function] = functools.partial(of_expression, function)
    return found


def default_decompositions() -> dict[Any, Callable]:
    """From ops that are not canonical to functions that do the same in other ops: to change, and to give on.

    ``ExportedProgram.run_decompositions(table)`` takes it.

    Returns:
        A dict.

    Examples:
        >>> table = taeda.export.default_decompositions()
        >>> program = taeda.export.export(nn.Linear(3, 2), (taeda.randn(4, 3),)).run_decompositions(table)
        >>> type(program).__name__
        'ExportedProgram'
    """
    return dict(_rules())


def _body(composite: Composite, *args: Any, **kwargs: Any) -> Any:
    return composite.unwatched(args, kwargs)


def _by_name(function: Any, rule: Callable, *args: Any, **kwargs: Any) -> Any:
    """A decomposition, which asks for arguments by name."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return rule(*(bound.arguments[name] for name in asked_for(rule)))


# ---- the mode --------------------------------------------------------------------------------------------------------


class _Memory:
    """Memory that tensors share: its owner, and how often it was written to."""

    def __init__(self, base: Traced) -> None:
        self.base, self.version = base, 0


class _Lowering(Capture):
    """The mode."""

    def __init__(
        self, samples: list[dict[str, int]], rules: Mapping[Any, Callable], ranges: dict[str, ValueRanges],
        targets: Collection = (), unknowns: Unknowns | None = None,
    ) -> None:  # fmt: skip
        super().__init__(samples, unknowns, {name: (r.lower, r.upper) for name, r in ranges.items()})
        self.rules, self.ranges, self.targets = rules, ranges, targets
        self.memories: dict[int, _Memory] = {}  # by the address of meta memory
        self.versions: dict[int, int] = {}  # versions of memory, by address
        self.active: list[Any] = []  # calls that are being replaced
        self.views: dict[
            int, tuple[int, Callable[[Traced], Any]]
        ] = {}  # for tensors: version, and how they are made anew

    def in_body(self) -> bool:
        return bool(self.active)

    # ---- memory ----

    def call(self, function: Any, args: tuple, kwargs: dict) -> Any:
        result = super().call(function, args, kwargs)
        for x in [*_everything((args, kwargs)), *pytree.tree_leaves(result)]:
            if isinstance(x, Traced):
                self.versions[_address(x)] = x.metas[0]._version
        return result

    def _unseen(self, tensors: list) -> bool:
        """Whether one of the tensors was written to other than by a call that came here."""
        traced = [x for x in tensors if isinstance(x, Traced)]
        return any(self.versions.get(_address(x), x.metas[0]._version) != x.metas[0]._version for x in traced)

    def memory(self, x: Traced) -> _Memory:
        return self.memories.setdefault(_address(x), _Memory(x))

    def sub_graph(self, function: Callable, inputs: Sequence[Any]) -> tuple:
        before = dict(self.memories)
        try:
            return super().sub_graph(function, inputs)
        finally:
            self.memories = before  # its inputs stand for memory of the tensors outside

    def node_of(self, x: Any) -> Any:
        if isinstance(x, Traced):
            self._refresh(x)
        return super().node_of(x)

    def _refresh(self, x: Traced) -> None:
        """Make a view anew whose memory was written to since."""
        memory = self.memory(x)
        if x is memory.base or id(x) not in self.views:
            return
        version, make = self.views[id(x)]
        if version != memory.version:
            self.views[id(x)] = memory.version, make
            made = make(memory.base)
            self.scope.nodes[id(x)] = self._node_in(self.scope, made)

    def _set(self, x: Traced, value: Traced) -> None:
        """``x`` has the elements of ``value`` from now on, and so have the tensors that share its memory."""
        memory = self.memory(x)
        if x is not memory.base:
            make = self.views[id(x)][1]
            fixed = all(
                len({(*m.shape, *m.stride(), m.storage_offset()) for m in t.metas}) == 1 for t in (x, memory.base)
            )
            plain = x.dtype is memory.base.dtype and not (x.metas[0].is_conj() or x.metas[0].is_neg())
            through = None if fixed and plain else self._through(make, memory.base, value)
            if through is not None:
                value = through
            elif plain and len({(m.dim(), *m.shape, *m.stride(), m.storage_offset()) for m in x.metas}) == 1:
                form = tuple(x.metas[0].shape), tuple(x.metas[0].stride()), x.metas[0].storage_offset()
                value = self.call(OPS["as_strided_scatter"], (memory.base, value, *form), {})
            else:
                whole = self.call(OPS["clone"], (memory.base,), {})
                self.call(METHODS["copy_"], (make(whole), value), {})
                value = whole
        node = self._node_in(self.scope, value)
        memory.version += 1
        self.scope.nodes[id(memory.base)] = node

    def _through(self, make: Any, base: Traced, value: Traced) -> Traced | None:
        """The value of ``base`` after its view, which ``make`` makes, got a new value; None if no op computes it."""
        function, args, kwargs, source, before, part = make.args
        start = base if before is None else before[1](base)
        args, kwargs = map_aggregate((args, kwargs), lambda x: start if x is source else x)
        made = scattered(self.call, function, args, kwargs, part, start, value)
        return made if made is None or before is None else self._through(before[1], base, made)

    def _track(self, function: Any, args: tuple, kwargs: dict, result: Any) -> None:
        """Take note of results that are views of arguments."""
        given = {_address(x): x for x in reversed(_everything((args, kwargs))) if isinstance(x, Traced)}
        parts = result if isinstance(result, (tuple, list)) else [result]
        for i, part in enumerate(parts):
            if not isinstance(part, Traced) or any(part is x for x in given.values()):
                continue
            source = given.get(_address(part))
            if source is None:
                continue
            memory, before = self.memory(source), self.views.get(id(source))

            make = functools.partial(self._viewed, function, args, kwargs, source, before, i)
            self.views[id(part)] = memory.version, make

    def _viewed(
        self, function: Any, args: tuple, kwargs: dict, source: Traced, before: Any, i: int, base: Traced
    ) -> Any:
        """The view, result ``i`` of a call, of the memory that ``base`` owns."""
        start = base if before is None else before[1](base)
        made = self.call(function, *map_aggregate((args, kwargs), lambda x: start if x is source else x))
        return made[i] if isinstance(made, (tuple, list)) else made

    # ---- calls ----

    def handle(self, function: Any, args: tuple, kwargs: dict) -> Any:
        if function.__name__ == "as_subclass":
            return _core.pass_through(self, function, args, kwargs)
        if function is operator.setitem or is_in_place(function):
            return self._write(function, args, kwargs)
        if writes_in_place(function, args, kwargs):
            bound = _bound(function, args, kwargs)
            target = bound.pop("input")
            return self._write_to(target, self.handle(function, (target,), {**bound, "inplace": False}))
        if kwargs.get("out") is not None:
            made, spec = pytree.tree_flatten(self._step(function, args, {**kwargs, "out": None}))
            outs = pytree.tree_leaves(kwargs["out"])
            return pytree.tree_unflatten([*map(self._write_out, outs, made)], spec)
        return self._step(function, args, kwargs)

    def _step(self, function: Any, args: tuple, kwargs: dict) -> Any:
        without = WITHOUT_WRITES.get(getattr(function, "__name__", ""))
        if without is not None and writes(function, args, kwargs):
            return without(self.call, self._write_to, **_bound(function, args, kwargs))
        rule = self.rules.get(function)
        if rule is not None and function not in self.active:
            made = self._lowered(function, rule, args, kwargs)
            if made is not NotImplemented:
                return made
        kwargs = {k: v for k, v in kwargs.items() if not (k == "out" and v is None)}
        tensors = [x for x in _everything((args, kwargs)) if isinstance(x, Traced)]
        before = [x.metas[0]._version for x in tensors]
        for x in tensors:
            self._refresh(x)
        result = self.call(function, args, kwargs)
        changed = [x for x, version in zip(tensors, before, strict=True) if x.metas[0]._version != version]
        self._track(function, args, kwargs, result)
        for x in changed:
            self._copied(x)
        return result

    def _copied(self, x: Traced) -> None:
        """Let the last step write to a copy of its argument ``x``, which is the value of ``x`` afterwards."""
        last = next(n for n in reversed(self.scope.graph.nodes) if n.target is not operator.getitem)
        old = self._node_in(self.scope, x)
        with self.scope.graph.inserting_before(last):
            copied = self.create(OPS["clone"], (old,), {})
        copied.meta["val"] = old.meta.get("val")
        last.replace_input_with(old, copied)
        made = self.traced(copied, x.metas, x._device)
        self._set(x, made)

    def _lowered(self, function: Any, rule: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of the rule, if it leads to public ops; else NotImplemented, and nothing was recorded.

        Raises:
            Exception: raised by a rule of the caller's.
            RuntimeError: such a rule gives tensors of other sizes or dtypes than the op.
        """
        own = rule is not _rules().get(function)
        before = self._mark()
        self.active.append(function)
        count = len(self.alive)
        try:
            with self.also_on():
                made = pytree.tree_map(self._kept, rule(*args, **kwargs))
            fresh = [x for x in pytree.tree_leaves(made) if isinstance(x, Tensor) and not isinstance(x, Traced)]
            if fresh or self._unseen([*_everything((args, kwargs)), *self.alive[count:]]):
                made = NotImplemented  # its body makes tensors, or writes, where the mode does not see it
        except _UNKNOWN:  # the rule asks for values, or holds at some of the sizes alone
            if own:
                raise
            made = NotImplemented
        finally:
            self.active.pop()
        if made is not NotImplemented and not self.active:
            forms, wanted = self._forms(made), self._wanted(function, args, kwargs)
            if own and forms != wanted:
                raise RuntimeError(
                    f"run_decompositions: the decomposition given for {function.__name__} gives sizes and dtypes "
                    f"{forms[0]}, expected {wanted[0]}"
                )
            made = made if forms == wanted else NotImplemented
        public = own or all(n.target in self.targets or _is_public(n) for n in self._since(before))
        if made is NotImplemented or not public:
            self._back(before)
            return NotImplemented
        return made

    def _kept(self, x: Any) -> Any:
        """A tensor with values that a rule made of numbers, as a constant of the program."""
        return self._lifted(x) if isinstance(x, Tensor) and not isinstance(x, Traced) and not x.is_meta else x

    def _wanted(self, function: Any, args: tuple, kwargs: dict) -> list:
        """The forms of the results of ``function``, at each sample."""
        with self.aside():
            given = map_aggregate((args, kwargs), self._lifted)
            made = [self._run(function, function, given, i) for i in range(len(self.samples))]
        return [[(tuple(x.shape), x.dtype) for x in pytree.tree_leaves(m) if isinstance(x, Tensor)] for m in made]

    def _forms(self, made: Any) -> list:
        leaves = [x for x in pytree.tree_leaves(made) if isinstance(x, Tensor)]
        metas = [x.metas if isinstance(x, Traced) else [x] * len(self.samples) for x in leaves]
        return [[(tuple(m[i].shape), m[i].dtype) for m in metas] for i in range(len(self.samples))]

    def _mark(self) -> tuple:
        nodes = self.scope.graph._root._prev
        return (
            nodes, dict(self.scope.sizes), dict(self.scope.nodes), len(self.guards), dict(self.views), self.progress,
            [(m, m.version) for m in self.memories.values()],
        )  # fmt: skip

    def _since(self, mark: tuple) -> list[Node]:
        found, node = [], self.scope.graph._root._prev
        while node is not mark[0]:
            found.append(node)
            node = node._prev
        return found

    def _back(self, mark: tuple) -> None:
        for node in self._since(mark):
            self.scope.graph.erase_node(node)
        _, self.scope.sizes, self.scope.nodes, guards, self.views, self.progress, versions = mark
        del self.guards[guards:]
        for memory in self.memories.values():
            memory.version = 0  # the version of new memory
        for memory, version in versions:
            memory.version = version

    # ---- writes ----

    def _write(self, function: Any, args: tuple, kwargs: dict) -> Any:
        target = args[0]
        if not isinstance(target, Traced):
            target = self._lifted(target)
        name = function.__name__
        if function is operator.setitem:
            view, value = self._basic_view(target, args[1]), args[2]
            if view is None:
                return self._put(target, args, kwargs)
            target = view
        elif name in ("copy_", "fill_"):
            bound = _bound(function, args, kwargs)
            value = bound.get("src", bound.get("value"))
        elif name == "zero_":
            value = 0
        elif name in ("detach_", "requires_grad_"):
            return target
        elif name == "set_":
            given = _bound(function, args, kwargs)
            source = given.get("source")
            if not isinstance(source, Tensor):
                raise NotImplementedError("set_(): in a decomposed program its source is a tensor")
            source = self._lifted(source)
            if given.get("size") is None:
                return self._become(target, self.handle(OPS["detach"], (source,), {}))
            size = tuple(given["size"])
            form = size, given.get("stride") or contiguous_strides(size), given.get("storage_offset", 0)
            return self._become(target, self.handle(OPS["as_strided"], (source, *form), {}))
        elif name in ("resize_", "resize_as_") and target.is_contiguous() and "memory_format" not in kwargs:
            return self._resize(target, args[1].shape if name == "resize_as_" else spread(args[1:], kwargs.get("size")))
        else:
            other = trait(function, "functional")
            if other is None:
                return self._write_by_body(target, function, args, kwargs)
            value = self.handle(OPS.get(name[:-1], other), (target, *args[1:]), kwargs)
            if isinstance(value, Traced) and _address(value) == _address(target):
                return self._become(target, value)
        return self._write_to(target, value)

    def _write_out(self, out: Any, value: Traced) -> Traced:
        """Write a result to ``out``, which gets its sizes."""
        out = self._lifted(out)
        if [m.shape for m in out.metas] == [m.shape for m in value.metas]:
            return self._write_to(out, value)
        value = value if value.dtype is out.dtype else self.handle(METHODS["to"], (value, out.dtype), {})
        return self._become(out, self.handle(OPS["detach"], (value,), {}))

    def _write_by_body(self, target: Traced, function: Any, args: tuple, kwargs: dict) -> Any:
        """A write for which no op has a form without writing: use the writes of its body, or call the op itself on a
        copy.
        """
        if isinstance(function, Composite):
            made = self._lowered(function, functools.partial(_body, function), args, kwargs)
            if made is not NotImplemented:
                return made
        return self._write_to(target, self._written_copy(function, args, kwargs))

    def _become(self, x: Traced, view: Traced) -> Traced:
        """``x`` has the form of ``view``, a view of it or of another tensor, from now on."""
        if view is x or [*map(_seen, x.metas)] == [*map(_seen, view.metas)]:
            return x
        memory = self.memory(x)
        if x is memory.base:  # the memory is then owned by a tensor of the form that it had
            memory.base = base = self.traced(None, x.metas, x._device)
            base.wants_grad = x.wants_grad
            self.scope.nodes[id(base)] = self._node_in(self.scope, x)
        x.metas = view.metas
        self._measure(x)
        self.views[id(x)] = self.views[id(view)]
        self.scope.nodes[id(x)] = self._node_in(self.scope, view)
        return x

    def _resize(self, target: Traced, sizes: Any) -> Traced:
        """``target`` has ``sizes`` from now on; elements that are added are zeros."""
        count, before, meta = math.prod(sizes), target.numel(), target.metas[0]
        if all(isinstance(n, int) for n in (*sizes, before)):
            room = meta.untyped_storage().nbytes() // meta.element_size() - meta.storage_offset()
            if before < count <= room:  # it shows more of the memory that it is a view of
                form = tuple(sizes), contiguous_strides(sizes), meta.storage_offset()
                return self._become(target, self.handle(OPS["as_strided"], (target, *form), {}))
        flat = self.handle(OPS["reshape"], (target, (-1,)), {})
        if count > before:
            flat = self.handle(OPS["cat"], ([flat, self.handle(OPS["new_zeros"], (flat, count - before), {})],), {})
        elif count < before:
            flat = self.handle(OPS["narrow"], (flat, 0, 0, count), {})
        return self._become(target, self.handle(OPS["reshape"], (flat, tuple(sizes)), {}))

    def _put(self, target: Traced, args: tuple, kwargs: dict) -> Any:
        """A write to ``target`` at places that tensors say."""
        before = self._mark()
        try:
            made = put(self.handle, target, args[1], args[2])
        except _UNKNOWN:
            made = None
        if made is None or [m.shape for m in made[1].metas] != [m.shape for m in made[0].metas]:
            self._back(before)
            return self._write_to(target, self._written_copy(operator.setitem, args, kwargs))
        return self._write_to(*made)

    def _basic_view(self, target: Traced, index: Any) -> Any:
        """The view that a basic index gives; None if the index gives none."""
        items = index if isinstance(index, tuple) else (index,)
        if any(isinstance(i, (Tensor, list)) for i in items):
            return None
        return self.handle(operator.getitem, (target, index), {})

    def _written_copy(self, function: Any, args: tuple, kwargs: dict) -> Any:
        made = self.call(OPS["clone"], (args[0],), {})
        self.call(function, (made, *args[1:]), kwargs)
        if [m.shape for m in made.metas] != [m.shape for m in args[0].metas]:
            raise RuntimeError(
                f"run_decompositions: {function.__name__} changes sizes in place; there is no form without writes"
            )
        return made

    def _write_to(self, target: Traced, value: Any) -> Traced:
        if not isinstance(value, Tensor):
            value = self.handle(OPS["full_like"], (target, value), {})
        value = self._lifted(value)
        if value.dtype is not target.dtype:
            value = self.handle(METHODS["to"], (value, target.dtype), {})
        if [m.shape for m in value.metas] != [m.shape for m in target.metas]:
            value = self.handle(
                OPS["expand"] if "expand" in OPS else METHODS["expand"], (value, tuple(target.shape)), {}
            )
        strides = [[m.stride() for m in x.metas] for x in (value, target)]
        if strides[0] != strides[1] and target.is_contiguous():  # the target keeps its layout
            value = self.handle(METHODS["contiguous"], (value,), {})
        if value is not target:
            self._set(target, value)
        return target

    # ---- guards ----

    def guard(self, expr: Expr, values: list, source: tuple) -> bool:
        made = super().guard(expr, values, source)
        if self.guards and self.guards[-1][0] is expr:
            self.guards.pop()
            found = range_of(expr, values[0], {k: (r.lower, r.upper) for k, r in self.ranges.items()})
            if found is None:
                raise Conflict(0, self.progress, f"'{expr}' need not be {values[0]}")
            name, low, high = found
            if name and (low > max(1, self.ranges[name].lower) or high < self.ranges[name].upper):
                raise Conflict(0, self.progress, f"'{expr}' need not be {values[0]}")
            if name and low > self.ranges[name].lower:  # size 0 is not worth another program
                self.ranges[name] = ValueRanges(low, self.ranges[name].upper)
        return made


def _is_public(node: Node) -> bool:
    """Whether a step is one that programs write themselves, or a canonical one."""
    if node.op != "call_function" or not isinstance(node.target, (Op, Composite)):
        return True
    return is_canonical(node.target) or _names.space_of(node.target) is not None or _names.is_method(node.target)


def _seen(meta: Tensor) -> tuple:
    """Memory of a tensor, and what it shows of that."""
    return meta.untyped_storage()._cdata, meta.dtype, meta.shape, meta.stride(), meta.storage_offset(), meta.is_conj()


def _address(x: Traced) -> int:
    return x.metas[0].untyped_storage()._cdata


# ---- the program -----------------------------------------------------------------------------------------------------


class _Run(Interpreter):
    """Runs the graph under the mode; steps that Python's operators stand for go to the mode as well."""

    def __init__(self, module: GraphModule, mode: _Lowering) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.mode, self.extra_traceback = mode, False
        self.emitted: dict[str, list] = {}

    def run_node(self, n: Node) -> Any:
        before = self.mode.scope.graph._root._prev
        trace = n.meta.get("stack_trace", "")
        self.mode.stack_trace = lambda: trace  # type: ignore[method-assign]
        self.mode.where = lambda: "\n".join(trace.splitlines()[-2:])  # type: ignore[method-assign]
        result = super().run_node(n)
        made = self.mode._since((before,))
        self.emitted[n.name] = [(m.target, map_arg((m.args, m.kwargs), lambda _: "node")) for m in made]
        for m in made:
            m.meta.update({key: n.meta[key] for key in ("nn_module_stack", "module_calls") if key in n.meta})
        return result

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if target is assert_scalar and isinstance(args[0], SymBool):
            return self.mode.require(*args)
        if target in (operator.getitem, operator.setitem) and isinstance(args[0], Traced):
            return self.mode.handle(target, args, kwargs)
        if target is batch_norm_functional:
            return self.mode.call(target, args, kwargs)
        return super().call_function(target, args, kwargs)


class _Attempt(Recorded):
    """The program run again at some sizes; ``kept`` names the steps that are not to be replaced."""

    def __init__(
        self, ep: Any, rules: Mapping[Any, Callable], samples: list[dict[str, int]], kept: set[str],
        targets: Collection, unknowns: Unknowns,
    ) -> None:  # fmt: skip
        self.ep = ep
        ranges = {k: r for k, r in ep.range_constraints.items() if k in samples[0] and k not in unknowns.symbols}
        self.mode = mode = _Lowering(samples, rules, ranges, targets, unknowns)
        super().__init__(mode, copy.deepcopy(ep.graph_signature.input_specs), dict(ep.constants))
        sizes = {c.name: c.sizes for c in ep._checks.inputs}
        inputs = []
        self.inputs: list[tuple[InputSpec, Traced]] = []
        nodes = [n for n in ep.graph.nodes if n.op == "placeholder"]
        for node, spec in zip(nodes, self.specs, strict=True):
            if spec.kind != InputKind.USER_INPUT:
                constant, path = spec.kind == InputKind.CONSTANT_TENSOR, str(spec.target)
                made: Any = self._state(node.name, ep.constants[path] if constant else ep._state(path))
            elif isinstance(spec.arg, TensorArgument):
                x = node.meta["val"]
                made = mode.input(node.name, x, [e if isinstance(e, Expr) else None for e in sizes[node.name] or ()])
            else:
                mode.root.placeholder(node.name).meta["val"] = spec.arg.value
                made = spec.arg.value
            inputs.append(made)
            if isinstance(made, Traced):
                self.inputs.append((spec, made))
        self.run = _Run(ep.graph_module, mode)
        rules_all = mode.rules
        original = self.run.run_node

        def run_node(n: Node) -> Any:
            mode.rules = {} if n.name in kept else rules_all
            try:
                return original(n)
            except Conflict as conflict:
                conflict.args = (n.name,)
                raise

        self.run.run_node = run_node  # type: ignore[method-assign]
        before = _core.is_grad_enabled()
        try:
            with mode.complete(), mode.on():
                result = self.run.run(*inputs, enable_io_processing=False)
        finally:
            _core.set_grad_enabled(before)
        self._end(result)

    def _lift(self, x: Tensor) -> Traced:
        if x.is_meta:
            raise RuntimeError("a body made a view that the mode did not see")
        return self._constant(x, self._new_path())

    def _end(self, result: tuple) -> None:
        """Put the written tensors before the other outputs."""
        mode, values, self.outputs = self.mode, [], []
        kinds = {
            InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION, InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
            InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
        }  # fmt: skip
        for spec, x in sorted(self.inputs, key=lambda pair: pair[0].kind == InputKind.USER_INPUT):
            if id(x) in mode.views:
                name = spec.target or spec.arg.name
                raise RuntimeError(
                    f"run_decompositions: '{name}' gets other memory or another form in place, which a program without "
                    f"writes does not give back; copy to it, or change a view of it"
                )
            if spec.kind is InputKind.CONSTANT_TENSOR and mode.memory(x).version:
                raise RuntimeError(f"Constant {spec.target} is mutated in the forward method. Register it as a buffer")
            if spec.kind in kinds and mode.memory(x).version:
                node = mode.node_of(x)
                target = spec.arg.name if spec.kind == InputKind.USER_INPUT else spec.target
                values.append(node)
                self.outputs.append(OutputSpec(kinds[spec.kind], TensorArgument(node.name), target))
        for old, x in zip(self.ep.graph_signature.output_specs, result, strict=True):
            value = mode.node_of(x if not isinstance(x, Tensor) else mode._lifted(x))
            spec = copy.deepcopy(old)
            if isinstance(value, Node):
                spec.arg.name = value.name
            values.append(value)
            self.outputs.append(spec)
        mode.root.graph.output(tuple(values))


def decomposed(ep: Any, table: Any, targets: Collection = ()) -> Any:
    """See ``ExportedProgram.run_decompositions``. Ops of ``targets`` may be left though they are not public."""
    rules = _rules() if table is None else table
    known, unknowns = _samples(ep), Unknowns()
    kept: set[str] = set()
    for _ in range(len(ep.graph.nodes) + 200):
        samples = unknowns.extended(known)
        try:
            attempt = _Attempt(ep, rules, samples, kept, targets, unknowns)
            others = []
            for i in range(1, len(samples)):
                order = [samples[i], *(s for j, s in enumerate(samples) if j != i)]
                others.append(_Attempt(ep, rules, order, kept, targets, unknowns))
        except Again:
            continue
        except Conflict as conflict:
            if _narrowed(unknowns, conflict, samples):
                continue
            if conflict.args[0] in kept:
                step = conflict.args[0]
                raise RuntimeError(
                    f"run_decompositions: '{step}' has no form without writes for all sizes: {conflict.text}"
                ) from None
            kept.add(conflict.args[0])
            continue
        differ = {
            name
            for other in others
            for name, made in attempt.run.emitted.items()
            if made != other.run.emitted.get(name)
        }
        if differ <= kept:
            return _finished(ep, attempt)
        kept |= differ
    raise RuntimeError("run_decompositions: the program does something else at other sizes")


def _narrowed(unknowns: Unknowns, conflict: Conflict, samples: list[dict[str, Any]]) -> bool:
    """Whether a step failed for a number that only a run finds; that value is not tried again."""
    if conflict.given is None or not unknowns.symbols:
        return False
    sample = samples[conflict.sample]
    names = numbers(conflict.given[1], unknowns.free())
    return any(unknowns.narrow(name, sample[name]) for name in reversed(names))


def _finished(ep: Any, attempt: _Attempt) -> Any:
    graph = attempt.mode.root.graph
    graph.eliminate_dead_code()
    specs = []
    for node, spec in zip([n for n in graph.nodes if n.op == "placeholder"], attempt.specs, strict=True):
        if spec.kind == InputKind.CONSTANT_TENSOR and spec.target not in ep.constants and not node.users:
            graph.erase_node(node)
            del attempt.constants[str(spec.target)]
        else:
            specs.append(spec)
    module = GraphModule(dict(attempt.mode.root.modules), graph, "GraphModule")
    signature = type(ep.graph_signature)(specs, attempt.outputs)
    checks = copy.deepcopy(ep._checks)
    mode = attempt.mode
    found = {name: ValueRanges(*mode.knowledge.bounds[name]) for name in mode.found}
    checks.ranges = {**mode.ranges, **found}
    return ep._update(
        module, graph_signature=signature, constants=attempt.constants, checks=checks,
        range_constraints=checks.ranges, dialect="ATEN",
    )  # fmt: skip


def _samples(ep: Any) -> list[dict[str, int]]:
    """Sizes to run the program at, from those of its example."""
    hints: dict[str, int] = {}
    values = {n.name: n.meta.get("val") for n in ep.graph.nodes if n.op == "placeholder"}
    for check in ep._checks.inputs:
        for expr, size in zip(check.sizes or (), getattr(values[check.name], "shape", ()), strict=False):
            linear = expr.linear() if isinstance(expr, Expr) else None
            if linear and len(linear[0]) == 1:
                ((name, factor),) = linear[0].items()
                hints.setdefault(name, (int(size) - linear[1]) // factor)
    return samples_of(
        {name: (hints[name], int(r.lower), r.upper) for name, r in ep.range_constraints.items() if name in hints}
    )

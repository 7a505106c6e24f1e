"""``make_fx``: a Graph of the ops that a function really calls on given arguments."""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from operator import getitem
from typing import Any

from taeda import random
from taeda._core import Op, Size, Tensor
from taeda.autograd.graph import saved_tensors_hooks
from taeda.autograd.modes import no_grad
from taeda.nn import Module, Parameter
from taeda.nn._recorded import Recorder, distinct, is_value, refuse_storages, tensors_of
from taeda.ops.meta import place_of
from taeda.ops.table import asked_for, trait
from taeda.utils import _pytree as pytree

from ... import _core
from ..._warn import warn_caller
from .. import _names
from .._codegen import _PyTreeCodeGen, _PyTreeInfo
from .._tracer import Tracer
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_aggregate
from ..passes.shape_prop import _extract_tensor_metadata
from ..proxy import Proxy
from . import _control_flow
from ._sizes import Recording, assert_scalar, generalise, recorded_for, sym_size, symbol
from .symbolic_shapes import _FUNCTIONS, _OPPOSITE, Expr, SymInt, _Symbolic

__all__ = ["PythonKeyTracer", "dispatch_trace", "get_innermost_proxy_mode", "get_proxy_mode", "make_fx"]


class PythonKeyTracer(Tracer):
    """A Tracer whose tensors are real: parameters become ``_param_constant0`` and so on."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self.root = Module()
        self.graph = Graph(tracer_cls=type(self))

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, Parameter):
            for name, value in self.root.named_parameters():
                if a is value:
                    return self.create_node("get_attr", name, (), {})
            name = self.get_fresh_qualname("_param_constant")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)


class _Recorder(Recorder):
    """The mode. It records an op, and runs it."""

    records = True  #: what others write to memory it does not see

    def __init__(
        self, tracer: PythonKeyTracer, decompositions: dict[Any, Callable], outer: _Recorder | None = None,
        root: Any = None, tracing_mode: str = "real",
    ) -> None:  # fmt: skip
        super().__init__(root)
        self.tracer, self.outer, self.tracing_mode = tracer, outer, tracing_mode
        self._tracers = int(tracing_mode == "symbolic")
        self.placeholders: list[Node] = []  # of tensors
        self.sizes: dict[tuple[Node, int], SymInt] = {}
        self.guards: dict[str, tuple[Expr, bool]] = {}
        self.derived: dict[int, set[int]] = {}  # from which memory that lasts that of other tensors is computed
        self.read: set[int] = set()  # addresses of memory that lasts, whose values Python has
        self.captured: list[Tensor] = []  # tensors that the outer program made
        self.decompositions = decompositions
        self.known: dict[int, tuple[Tensor, Proxy]] = {}
        self.places: dict[Any, Proxy] = {}
        self.outside: dict[int, Tensor] = {}  # constants and parameters, that no step made
        self.varying: set[int] = set()  # addresses of memory whose values differ between runs

    def track(self, tensor: Tensor, proxy: Proxy, alone: bool = False) -> None:
        """Let ``proxy`` stand for ``tensor``, and unless it is ``alone`` for unknown aliases of it."""
        self.known[id(tensor)] = tensor, proxy  # the tensor lives on, so that its id and memory stay its own
        if not alone:
            self.places[_place(tensor)] = proxy
        proxy.node.meta.setdefault("val", tensor.detach())
        proxy.node.meta.setdefault("tensor_meta", _extract_tensor_metadata(tensor))

    def of(self, x: Any) -> Any:
        """The Proxy of a tensor that is known, or of one with the same memory, or of a size; anything else as it is."""
        if isinstance(x, _Symbolic):
            return self._number(x)
        if not isinstance(x, Tensor):
            return x
        if id(x) in self.known:
            return self.known[id(x)][1]
        if id(x) in self.outside:
            return x
        if self.outer is not None and isinstance(self.outer.known_of(x), Proxy):
            self.captured.append(x)
            self.track(x, self.tracer.create_proxy("placeholder", f"captured{len(self.captured)}", (), {}))
            return self.known[id(x)][1]
        found = self.places.get(_place(x))
        if found is None:
            self.outside[id(x)] = x
            self.lasting.note(x)
        return x if found is None else found

    # ---- sizes that Python reads ----

    def sizes_of(self, t: Tensor, plain: Size) -> Size:
        if not self._tracers:
            return plain
        with self.recording(None):
            proxy = self.known[id(t)][1] if id(t) in self.known else self.places.get(_place(t))
        return plain if proxy is None else Size([self._size(proxy, d, n) for d, n in enumerate(plain)])

    def _size(self, proxy: Proxy, dim: int, n: int) -> SymInt:
        key = proxy.node, dim
        if key not in self.sizes:
            step = self.tracer.create_proxy("call_function", sym_size, (proxy, dim), {})
            step.node.meta["val"] = n
            self.sizes[key] = SymInt(n)._become(Expr(symbol(*key)), (n,), self, step)
        return self.sizes[key]

    def _number(self, x: Any) -> Any:
        """The Proxy of a number that follows from sizes."""
        if x.owner is not self:  # of a graph outside of this one
            return _plain(x)
        if not isinstance(x.source, Proxy):
            name, *args = x.source
            step = self.tracer.create_proxy("call_function", _FUNCTIONS[name][0], tuple(map(self.of, args)), {})
            step.node.meta["val"] = _plain(x)
            x.source = step
        return x.source

    def unknown(self, expr: Expr) -> bool:
        """Whether a number is a step, though it is the same in all samples: there is one."""
        return True

    def guard(self, expr: Expr, values: list, source: tuple) -> bool:
        """The outcome of a comparison of sizes, which every run checks."""
        outcome, sides = values[0], [repr(a) for a in expr.args]
        if len(sides) != 2 or sides[0] == sides[1] or repr(expr) in self.guards:
            return outcome
        self.guards[repr(expr)] = expr, outcome
        name = source[0] if outcome else _OPPOSITE[source[0]]
        condition = tuple(map(self.of, source[1:]))
        proxy = self.tracer.create_proxy("call_function", _FUNCTIONS[name][0], condition, {})
        self.tracer.create_proxy("call_function", assert_scalar, (proxy, recorded_for(Expr(name, *expr.args))), {})
        return outcome

    def item(self, x: Tensor) -> Any:
        """The number of a tensor that is the same in every run."""
        self.by_python("number", x)
        with self.recording(None):
            return x.item()

    def by_python(self, what: str, source: Tensor | None) -> bool:
        """Values that leave the program by way of Python. Returns whether it has read them, so that a write by Python
        would be lost."""
        if source is not None and _memory(source) in self.varying:
            raise RuntimeError(
                f"make_fx: a tensor that depends on the inputs is converted to a Python {what}, which would be the "
                "example's in every run. Compute it with ops: cond for a condition, where for a choice"
            )
        if source is not None:
            with self.recording(None):
                self.read |= self._sources(source)
        return self.was_read(source)

    def alive(self) -> list[Tensor]:
        return [x for x, _ in self.known.values()]

    def holds(self, storage: Any) -> bool:
        return super().holds(storage) or (self.outer is not None and self.outer.holds(storage))

    def _sources(self, x: Tensor) -> set[int]:
        """The memory that lasts from which ``x`` is computed."""
        return {_memory(x)} if self.lasting.has(x) else self.derived.get(_memory(x), set())

    def _vary(self, function: Any, given: list, made: list) -> None:
        """Note which memory a call writes whose values differ between runs."""
        held, sources = {id(x) for x in given}, set().union(*map(self._sources, given))
        for x in made if sources else ():
            self.derived.setdefault(_memory(x), set()).update(sources)
        if trait(function, "random") or any(_memory(x) in self.varying for x in given):
            self.varying |= {_memory(x) for x in made}
        else:  # what lasts from run to run is written to
            self.varying |= {_memory(x) for x in made if id(x) in held and self.lasting.has(x)}
        if any(id(x) in held and _memory(x) in self.read for x in made):
            raise RuntimeError(
                "make_fx: a tensor is written to whose values Python has read before: they would be the example's in "
                "every run. Read them with ops"
            )

    def known_of(self, x: Tensor) -> Any:
        """As :meth:`of`, for a tensor that the function may just have made of Python's values."""
        self.make_anew(x)
        return self.of(x)

    # ---- functions given to cond and while_loop ----

    def control_flow(self, name: str, *args: Any) -> Any:
        """A call of ``cond`` or ``while_loop`` as one step; loops over rows are recorded row by row."""
        pred = None
        if name == "cond" and isinstance(args[0], Tensor):
            pred, *args = args  # type: ignore[assignment]
        elif name != "while_loop":
            return NotImplemented
        with self.recording(None):
            return _control_flow.record(self, name, args[:2], args[2], pred)

    def sub_graph(self, f: Callable, leaves: list, spec: Any, captured: list, outside: list) -> tuple:
        """The graph of ``f``, its flat results and their structure. It takes ``leaves`` and then ``outside``; other
        tensors of this program that it reads are added to ``captured``."""
        inner = _Recorder(PythonKeyTracer(), self.decompositions, self, tracing_mode=self.tracing_mode)
        given = [x.detach() for x in leaves]
        for i, x in enumerate((*given, *outside)):
            inner.track(x, inner.tracer.create_proxy("placeholder", f"arg{i}_1", (), {}))
        inner.varying = self.varying | set(map(_memory, given))
        with self.recording(inner):
            results, out_spec = pytree.tree_flatten(f(*pytree.tree_unflatten(given, spec)))
        inner.lasting.check("make_fx")
        value = tuple(inner.known_of(x) if isinstance(x, Tensor) else x for x in results)
        inner.tracer.create_node("output", "output", (inner.tracer.create_arg(value),), {})
        inner.tracer.graph.eliminate_dead_code()
        captured += [x for x in inner.captured if all(x is not other for other in captured)]
        return GraphModule(inner.tracer.root, inner.tracer.graph, "Function"), results, out_spec

    def add_module(self, module: GraphModule) -> Proxy:
        """A node that stands for ``module``."""
        name = self.tracer.get_fresh_qualname("graph_")
        setattr(self.tracer.root, name, module)
        return self.tracer.create_proxy("get_attr", name, (), {})

    def add_step(self, function: Callable, args: tuple, result: tuple) -> None:
        """A step of arguments that are Proxies."""
        self._track_all(result, self.tracer.create_proxy("call_function", function, args, {}))
        self.varying |= set(map(_memory, result))

    def make_anew(self, x: Any) -> None:
        """Record the copy of what :meth:`note_made` has seen, with its values before an op reads or writes it."""
        found = self.taken(x)
        if found is not None:
            self.track(found[0], self.tracer.create_proxy("call_method", "clone", found[1:], {}))

    def handle(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Called by the core for every op and composite."""
        if _core.is_mode_active():  # the others come first
            stack = _core.mode_stack()
            if isinstance(function, Op) or any(getattr(mode, "composites", False) for mode in stack):
                return _core.pass_through(self, function, args, kwargs)
            with _core.modes([self, *stack]):  # none of them asks for composites
                return function.unwatched(args, kwargs)
        other = self.decompositions.get(function)
        if other is not None:
            with self.recording(self):
                result = other(*args, **kwargs)
            if result is not NotImplemented:
                return result
        tensors = any(isinstance(x, Tensor) for x in pytree.tree_leaves((args, kwargs)))
        name, form = getattr(function, "__name__", ""), trait(function, "meta", "") == "form"
        by_no_op = form or name.startswith("new_") or name.endswith("_like")  # changes of form, and new memory
        if not isinstance(function, Op) and tensors and not by_no_op:
            result = _core.pass_through(self, function, args, kwargs)  # its ops are recorded
            if is_value(function, result):
                for x in pytree.tree_leaves((args, kwargs)):
                    self.by_python("boolean", x if isinstance(x, Tensor) else None)
            return result
        refuse_storages(function, args, kwargs)
        for x in pytree.tree_leaves((args, kwargs)):
            self.make_anew(x)
            self.of(x)  # as it is before the call
        rule = trait(function, "decomposition")
        if (
            rule is not None
            and _core.is_recorded()
            and any(isinstance(x, Tensor) and x.requires_grad for x in pytree.tree_leaves((args, kwargs)))
        ):  # then it runs, and its ops keep what derivatives need
            bound = dict(zip(function.params, function.defaults, strict=True))
            bound |= dict(zip(function.params, args, strict=False)) | kwargs
            with self.recording(self):
                return rule(*[bound[name] for name in asked_for(rule)])
        plain_args, plain_kwargs = self._without_symbols(args, kwargs)
        kept: list[_Kept] = []
        with _keeping(kept):
            result = function(*plain_args, **plain_kwargs)
        if any(isinstance(x, Tensor) for x in pytree.tree_leaves(result)):
            self.record(function, args, kwargs, result)
        with self.recording(self), no_grad():
            for saved in kept:
                saved.pack()
        return result

    def _without_symbols(self, args: tuple, kwargs: dict) -> tuple:
        """Arguments with the numbers of the example."""
        return map_aggregate((args, kwargs), _plain) if self._tracers else (args, kwargs)

    def run_backward(
        self, tensors: list, grads: list, keep: bool, create: bool, inputs: list | None, accumulate: bool
    ) -> Any:
        """The derivatives, whose ops are recorded; sums in ``.grad`` are not."""
        if accumulate:
            raise RuntimeError(
                "make_fx: backward() adds to .grad, which a program does not record: it would be the example's in "
                "every run. Use autograd.grad or func.grad"
            )
        return _core.differentiate(tensors, grads, keep, create, inputs, False)

    def custom_op(self, op: Any, args: tuple, kwargs: dict) -> Any:
        """A call of an op of the program's own: one step, whatever its implementation computes with."""
        if op.composite:
            return NotImplemented
        args, kwargs = op._without_defaults(args, kwargs)
        plain_args, plain_kwargs = self._without_symbols(args, kwargs)
        with self.recording(None):
            result = op._run(*plain_args, **plain_kwargs)
        self.record(op._overload, args, kwargs, result)
        return result

    def note_detached(self, source: Tensor, made: Tensor) -> None:
        """Record ``made``, which is ``source.detach()`` or ``source.data``: no op makes it, so no call tells of it."""
        self.make_anew(source)
        self.track(made, self.tracer.create_proxy("call_method", "detach", (self.of(source),), {}), alone=True)

    def record(self, function: Any, args: tuple, kwargs: dict, result: Any) -> None:
        """Make the Node."""
        kind, target = _names.step_of(function, args)
        given, made = (
            [x for x in pytree.tree_leaves(tree) if isinstance(x, Tensor)] for tree in ((args, kwargs), result)
        )
        if self.tracing_mode != "real" and made and trait(function, "meta") in ("values", "mixed"):
            self._warn_of_sizes(function, given)
        args, kwargs = map_aggregate(args, self.of), map_aggregate(kwargs, self.of)
        self._vary(function, given, made)
        proxy = self.tracer.create_proxy(kind, target, args, dict(kwargs))
        self._track_all(result, proxy)

    def _warn_of_sizes(self, function: Any, given: list) -> None:
        """Sizes that depend on values are numbers here, those of the example."""
        by_mask = trait(function, "meta") == "values" or any(x.dtype is _core.bool_ for x in given[1:])
        if by_mask and any(_memory(x) in self.varying for x in given):
            warn_caller(
                f"make_fx: the sizes of the result of '{function.__name__}' depend on values; where Python reads them"
                f"{' other than as shape' if self._tracers else ''}, they are the example's numbers in every run"
            )

    def _track_all(self, result: Any, proxy: Any) -> None:
        if isinstance(result, Tensor):
            self.track(result, proxy)
        elif isinstance(result, (tuple, list)):
            for i, part in enumerate(result):
                if isinstance(part, (Tensor, tuple, list)):
                    self._track_all(part, self.tracer.create_proxy("call_function", getitem, (proxy, i), {}))


class _Kept:
    """A tensor that an op saves under hooks. They are called once the op is recorded, and what they compute is too."""

    def __init__(self, tensor: Tensor, hooks: tuple[Callable, Callable]) -> None:
        self.value: Any = tensor
        self.hooks = hooks

    def pack(self) -> None:
        self.value = self.hooks[0](self.value)

    def unpack(self) -> Tensor:
        return self.hooks[1](self.value)


@contextlib.contextmanager
def _keeping(kept: list[_Kept]) -> Iterator[None]:
    """Hooks on saved tensors are not called within it: what they are for is added to ``kept``."""
    hooks = _core.saved_hooks()
    if hooks is None:
        yield
        return

    def pack(tensor: Tensor) -> _Kept:
        kept.append(_Kept(tensor, hooks))
        return kept[-1]

    with saved_tensors_hooks(pack, _Kept.unpack):
        yield


def _place(x: Tensor) -> Any:
    """A key that distinguishes views of one memory."""
    return place_of(x) or id(x)


def _memory(x: Tensor) -> int:
    return x.untyped_storage()._address() if x._without_memory is None else -id(x)


def _plain(x: Any) -> Any:
    """The number of the example in place of one that follows from sizes."""
    return x.__reduce__()[1][1] if isinstance(x, _Symbolic) else x


get_proxy_mode = get_innermost_proxy_mode = _Recorder.current


def _names_of(f: Any, count: int) -> list[str]:
    code = getattr(inspect.unwrap(f), "__code__", None)
    if code is None or isinstance(f, Module) or code.co_flags & inspect.CO_VARARGS or code.co_argcount < count:
        return [f"arg{i}" for i in range(count)]
    names = list(code.co_varnames[: code.co_argcount])
    return names[1:] if inspect.ismethod(f) else names


def dispatch_trace(root: Any, tracer: Tracer, concrete_args: tuple | None = None) -> GraphModule:
    """A symbolic trace by ``tracer``."""
    graph = tracer.trace(root, concrete_args)  # type: ignore[arg-type]
    return GraphModule(tracer.root, graph, getattr(root, "__name__", type(root).__name__))


def make_fx(
    f: Callable[..., Any], decomposition_table: dict[Any, Callable] | None = None, tracing_mode: str = "real",
    **options: Any,
) -> Callable[..., GraphModule]:  # fmt: skip
    """``make_fx(f)(*args)`` is a module with a Graph of the ops that ``f(*args)`` calls: those of derivatives and of
    ``func`` transformations too. Python's control flow is as it was for these arguments.

    Args:
        f: a function or module of tensors, and trees of tensors.
        decomposition_table: for some ops, functions to call in their place.
        tracing_mode: with ``"real"`` sizes are the numbers of the arguments, and with ``"fake"``, which warns of sizes
            that depend on values. With ``"symbolic"`` the graph is for other sizes, too, and raises an error at those
            for which it is not: sizes that Python reads are steps, and ``f`` runs several times, on arguments that are
            repeated to other sizes.
        **options: accepted.
    Returns:
        A function of the arguments.
    """

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        return _trace(f, args, decomposition_table or {}, tracing_mode)

    return wrapped


def _trace(f: Callable, args: tuple, decompositions: dict, tracing_mode: str) -> GraphModule:
    leaves, spec = pytree.tree_flatten(args)
    held = tensors_of(f).values() if isinstance(f, Module) and tracing_mode == "symbolic" else ()
    versions = {id(x): x._version for x in (*leaves, *held) if isinstance(x, Tensor)}
    module, mode = _record(f, args, decompositions, tracing_mode)
    if tracing_mode == "symbolic":
        places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]

        def again(inputs: list[Tensor]) -> Recording:
            given = list(leaves)
            for i, x in zip(places, inputs, strict=True):
                given[i] = x
            return _recording(*_record(f, pytree.tree_unflatten(given, spec), decompositions, tracing_mode))

        seen = [*mode.outside.values(), *mode.lasting.held.values(), *(leaves[i] for i in places)]
        with _state_kept([x for x in seen if versions.get(id(x)) != x._version]):
            generalise(_recording(module, mode), [leaves[i] for i in places], again)
    return module


def _recording(module: GraphModule, mode: _Recorder) -> Recording:
    return Recording(module, mode.placeholders, list(mode.guards.values()))


@contextlib.contextmanager
def _state_kept(tensors: list[Tensor]) -> Iterator[None]:
    """The values of ``tensors`` and the state of the generator are afterwards as before; warnings are not shown."""
    state = random.get_rng_state()
    before = [(x, x._version, x.detach().clone()) for x in tensors if not x.is_meta]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.set_rng_state(state)
        for x, version, values in before:
            if x._version != version:
                x.detach().copy_(values)


def _record(f: Callable, args: tuple, decompositions: dict, tracing_mode: str) -> tuple[GraphModule, _Recorder]:
    tracer = PythonKeyTracer()
    mode = _Recorder(tracer, decompositions, root=f, tracing_mode=tracing_mode)
    names = _names_of(f, len(args))
    args = distinct(args, mode.lasting.held.values())
    leaves, spec = pytree.tree_flatten(args)
    counts: dict[str, int] = {}
    for name, value in zip(names, args, strict=False):
        for leaf in pytree.tree_leaves(value):
            counts[name] = counts.get(name, 0) + 1
            proxy = tracer.create_proxy("placeholder", f"{name}_{counts[name]}", (), {})
            if isinstance(leaf, Tensor):
                mode.track(leaf, proxy)
                mode.placeholders.append(proxy.node)
                mode.varying.add(_memory(leaf))
    with mode.recording(mode):
        result = f(*pytree.tree_unflatten(leaves, spec))
    mode.lasting.check("make_fx")
    outputs, out_spec = pytree.tree_flatten(result)
    for x in outputs:
        mode.make_anew(x)
    nested = any(not child.is_leaf() for child in spec.children_specs)
    if nested:
        tracer.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names[: len(args)], spec, out_spec))
    value = [mode.of(x) for x in outputs] if nested else pytree.tree_map(mode.of, result)
    tracer.create_node("output", "output", (tracer.create_arg(value),), {})
    tracer.graph.eliminate_dead_code()
    return GraphModule(tracer.root, tracer.graph, getattr(f, "__name__", type(f).__name__)), mode

"""Graphs for a backend that is a function: the calls of a program are recorded, and run when a value is needed.

Python runs the program at every call, so its control flow is always right. A call of an op returns a tensor without
values: it has only dtype, sizes, strides and ``requires_grad``, found on the meta device. When a value is needed
(``item``, ``bool``, NumPy, ``print``, ``backward``, the end of the function), the ops so far become one graph. The
backend compiles each graph once for each form of its inputs; later the compiled function is called. Its results become
the values of the tensors, and recording continues.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import operator
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from taeda._core import Composite, Op, Tensor
from taeda._core.callbacks import callbacks
from taeda._core.tensor import as_subclass, become, swap_tensors
from taeda.aten import OpOverload
from taeda.autograd.modes import enable_grad, no_grad
from taeda.fx import _names
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import BASE_TYPES
from taeda.fx.operator_schemas import draws
from taeda.kernels.forks import free_in_children
from taeda.nn import Module, Parameter
from taeda.ops.creation import empty_strided
from taeda.overrides import TorchFunctionMode, _modes
from taeda.utils import _pytree as pytree

from .. import _core
from .._warn import caller
from .backends import BackendCompilerFailed, Unsupported

#: Counts of compiled graphs, as in PyTorch.
counters: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)


#: Methods and attributes that need no value.
_FORM = frozenset(
    "shape size dim ndim ndimension dtype layout stride storage_offset numel nelement element_size itemsize nbytes "
    "is_contiguous is_floating_point is_complex is_signed requires_grad is_leaf is_sparse is_quantized is_cuda is_mps "
    "is_xpu is_mkldnn is_nested is_inference is_conj is_neg __len__ names dense_dim output_nr".split()
)
#: Methods that need values; with ``fullgraph=True`` they are errors.
_VALUE = {
    "item", "tolist", "numpy", "__array__", "__bool__", "__int__", "__float__", "__index__", "__complex__",
    "__repr__", "__str__", "__format__", "data_ptr", "__contains__",
}  # fmt: skip
_INDEXING = {"__getitem__": operator.getitem, "__setitem__": operator.setitem}
_VIEWS = frozenset("T H mT mH real imag".split())


#: The memory of a stand-in: none, of a dtype that the buffer protocol lacks, so that NumPy asks for ``__array__``.
_HOLLOW = _core.empty((0,), _core.bfloat16)


@dataclass(frozen=True)
class Ref:
    """In the arguments of a call, a reference to the value with this number."""

    number: int


class Call(NamedTuple):
    """A recorded call: the kind of its node, its target, its arguments, and the number of its result."""

    kind: str
    target: Any
    args: tuple
    kwargs: dict
    result: int


class Break(NamedTuple):
    """Why a graph ended before its function did, and where."""

    reason: str
    user_stack: list
    graph_break: bool = True


class Stand(Tensor):
    """An argument or a buffer within a session: calls that write to it are recorded too.

    All its functions and methods are passed to its session, also after the session has ended.
    """

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        stand = next(x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Stand))
        return _states[id(stand)].session.call(func, args, kwargs)


class Pending(Stand):
    """A tensor without a value. When the value has been computed, this becomes an ordinary tensor."""


class State(NamedTuple):
    """The state of a stand-in: its session, its number in the graph, and the tensor that it stands for, if known."""

    session: Session
    number: int
    actual: Tensor | None
    ref: weakref.ref


#: By the ids of stand-ins. Their attributes would be copied and saved.
_states: dict[int, State] = {}


def _name_of(func: Any) -> str:
    """The name of a method, or of the attribute that it gets."""
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__"):
        attribute = func.__self__
        return name * (name == "__set__") + (getattr(attribute, "__name__", "") or attribute.fget.__name__)
    return name


class NoKey(TypeError):
    """A graph cannot hold an argument."""


def frozen(x: Any) -> Any:
    """A key for an argument: equal for equal arguments of equal types."""
    if isinstance(x, Ref):
        return x
    if isinstance(x, (tuple, list)):
        return type(x), *map(frozen, x)
    if isinstance(x, dict):
        return dict, *((k, frozen(v)) for k, v in x.items())
    if isinstance(x, slice):
        return slice, frozen(x.start), frozen(x.stop), frozen(x.step)
    if not isinstance(x, (*BASE_TYPES, slice, type(None), type(...))):
        raise NoKey(f"a graph cannot hold a {type(x).__name__}")
    return type(x), str(x) if isinstance(x, float) else x


def form_of(t: Tensor, dynamic: bool) -> tuple:
    """The properties of an input that a graph depends on."""
    free = range(t.dim()) if dynamic else vars(t).get("_dynamo_dynamic_indices", ())
    sizes = tuple(None if d in free else n for d, n in enumerate(t.shape))
    strides = () if free else t.stride()
    return type(t), t.dtype, sizes, strides, t.requires_grad, t.is_leaf


def forms_of(args: tuple, kwargs: dict) -> Any:
    """A key for the forms of the tensors among arguments."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    return str(spec), tuple(form_of(x, False) if isinstance(x, Tensor) else None for x in leaves)


def _on_values(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Call a transform: it makes inputs of its own, with places in the graph, which only values have."""
    session = next((m for m in reversed(_modes()) if isinstance(m, Session)), None)
    if session is None:  # there may be stand-ins all the same, in a function that runs on values
        args, kwargs = (pytree.tree_map(_actual, x) for x in (args, kwargs))
        return function(*args, **kwargs)
    with _without(session):
        return session.outside(function, args, kwargs)


callbacks.transform = _on_values


def call_outside(function: Callable, args: tuple, kwargs: dict, reason: str) -> Any:
    """Call ``function`` on values, with no session on this thread."""
    session = next((m for m in reversed(_modes()) if isinstance(m, Session)), None)
    if session is None:
        return function(*args, **kwargs)
    with _without(session):
        return session.outside(function, args, kwargs, reason)


class Captured:
    """A function whose graphs go to a backend.

    Args:
        function: what to call.
        backend: a function of a GraphModule and example inputs, which returns a function of the same inputs.
        fullgraph: raise an error if a value is needed.
        dynamic: one graph for all sizes.
        options: further keywords for the backend.
    Attributes:
        graphs: the compiled functions by graph and forms.
        breaks: the reasons why graphs ended, of all calls.
    """

    def __init__(
        self, function: Callable, backend: Callable, fullgraph: bool, dynamic: bool | None, options: dict[str, Any]
    ) -> None:
        self.function, self.backend, self.fullgraph = function, backend, fullgraph
        self.dynamic, self.options = bool(dynamic), options
        self.graphs: dict[Any, Callable] = {}
        self.breaks: list[Break] = []
        self.recompile = "compile"  # the action for a new graph; or "eager" or "fail"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Session(self).run(args, kwargs)

    def modules(self, args: tuple, kwargs: dict) -> dict[str, Module]:
        """The modules that the function visibly uses, by the prefix of the names of their inputs."""
        function = inspect.unwrap(self.function)
        found: dict[str, Any] = {}
        if inspect.isfunction(function):
            seen = inspect.getclosurevars(function)
            found = {f"G_{name}": x for name, x in seen.globals.items()}
            found.update({f"L_{name}": x for name, x in seen.nonlocals.items()})
        found["L_self"] = (
            self.function if isinstance(self.function, Module) else getattr(self.function, "__self__", None)
        )
        found.update({f"L_args_{i}": x for i, x in enumerate(args)}, **{f"L_{k}": x for k, x in kwargs.items()})
        return {name: x for name, x in found.items() if isinstance(x, Module)}

    def compiled(self, key: Any, make: Callable[[], tuple[GraphModule, list[Tensor]]]) -> Callable:
        """The function for this graph."""
        found = self.graphs.get(key)
        if found is not None:
            return found
        if self.recompile == "fail":
            code = getattr(inspect.unwrap(self.function), "__code__", None)
            where = code and f" filename: {code.co_filename!r}, function name: {code.co_name!r}, line number: "
            raise RuntimeError(
                "Detected recompile when taeda.compile stance is 'fail_on_recompile'."
                + (f"{where}{code.co_firstlineno}" if code else "")
            )
        module, inputs = make()
        if self.recompile == "eager":
            return module.forward
        counters["stats"]["unique_graphs"] += 1
        counters["stats"]["calls_captured"] += sum(n.op.startswith("call") for n in module.graph.nodes)
        try:
            made = self.backend(module, inputs, **self.options)
            if not callable(made):
                raise AssertionError("compiler_fn did not return callable")
        except Exception as error:
            raise BackendCompilerFailed(self.backend, error) from error
        self.graphs[key] = made
        return made


class Session(TorchFunctionMode):
    """One call of a captured function.

    Attributes:
        calls: the calls since the last graph.
        inputs: the tensors that the calls read, by number.
        made: weak references to the results of the calls, by number.
    """

    _sees_ops_alone = True

    def __init__(self, owner: Captured) -> None:
        super().__init__()
        self.owner = owner
        self.names: dict[int, str] = {}
        self.wrapped: list[Stand] = []
        self.stopped = False
        self.suspended = 0  # how many calls are running on values
        self.lock = free_in_children(threading.RLock())
        self.start()

    def start(self) -> None:
        """Begin a graph."""
        self.calls: list[Call] = []
        self.inputs: dict[int, Tensor] = {}
        self.forms: dict[int, Tensor] = {}
        self.made: dict[int, weakref.ref] = {}
        self.numbers: dict[int, int] = {}  # numbers of the inputs, by id
        self.written: dict[int, int] = {}  # versions of the inputs' stand-ins
        self.count = 0
        self.state: Any = None

    # ---- the call ----------------------------------------------------------------------------------------------------

    def run(self, args: tuple, kwargs: dict) -> Any:
        """Call the function."""
        from taeda.optim import optimizer

        counters["frames"]["total"] += 1
        handle = optimizer.register_optimizer_step_pre_hook(lambda *_: self.flush())
        modules = self.owner.modules(args, kwargs)
        swapped = []
        for variable, module in modules.items():
            for path, part in module.named_modules():
                place = "".join(f"modules_{p}_" for p in path.split(".") if p)
                for name, p in part._parameters.items():
                    self.names.setdefault(id(p), f"{variable}_{place}parameters_{name}_")
                for name, b in part._buffers.items():
                    if type(b) is Tensor:
                        wrapped = self.wrap(b, f"{variable}_{place}buffers_{name}_")
                        swapped.append((part, name, b, wrapped))
        for part, name, _, wrapped in swapped:
            part._buffers[name] = wrapped
        try:
            given = self.wrapped_arguments(args, kwargs)
            with self:
                result = self.owner.function(*given[0], **given[1])
                self.flush()
            counters["frames"]["ok"] += 1
            return pytree.tree_map(_actual, result)
        finally:
            handle.remove()
            for part, name, b, wrapped in swapped:
                if part._buffers.get(name) is wrapped:
                    part._buffers[name] = b
            try:
                self.flush()
            finally:
                self.stopped = True
                for stand in self.wrapped:
                    become(stand, _actual(stand))

    def wrapped_arguments(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments, with stand-ins for their tensors."""
        function = inspect.unwrap(self.owner.function)
        function = function.forward if isinstance(function, Module) else function
        try:
            names = list(inspect.signature(function).bind(*args, **kwargs).arguments)
        except (TypeError, ValueError):
            names = []
        known: dict[int, Any] = {}

        def wrap(path: str, x: Any) -> Any:
            if type(x) is not Tensor:
                return x
            if id(x) not in known:
                known[id(x)] = self.wrap(x, path)
            return known[id(x)]

        def walk(name: str, value: Any) -> Any:
            count = iter(range(1 << 30))
            leaves = len(pytree.tree_leaves(value))
            return pytree.tree_map(lambda x: wrap(f"L_{name}_{f'{next(count)}_' if leaves > 1 else ''}", x), value)

        positional = [walk(names[i] if i < len(names) else f"args_{i}", x) for i, x in enumerate(args)]
        return tuple(positional), {name: walk(name, x) for name, x in kwargs.items()}

    def wrap(self, t: Tensor, name: str) -> Stand:
        """A tensor that stands for ``t`` in the program."""
        self.names[id(t)] = name
        made = self.make(Stand, -1, t)
        self.wrapped.append(made)
        return made

    def make(self, kind: type, number: int, actual: Tensor | None = None) -> Any:
        made = Tensor._make_subclass(kind, _HOLLOW)
        key = id(made)
        _states[key] = State(self, number, actual, weakref.ref(made, lambda _: _states.pop(key, None)))
        return made

    # ---- one call of the program -------------------------------------------------------------------------------------

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return self.call(func, args, kwargs or {})

    def call(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """The result of a function, method or attribute within the program."""
        name = _name_of(func)
        leaves = pytree.tree_leaves((args, kwargs))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        others = any(isinstance(x, Stand) and _states[id(x)].session is not self for x in tensors)
        if self.stopped or self.suspended or others:
            return self.outside(func, args, kwargs)
        if isinstance(func, OpOverload) and tensors:  # a user's op, whose fake kernel gives the form of its result
            with self.lock:
                return self.record(func.overloadpacket.function._sizes, "call_function", func, args, kwargs)
        if name in _VALUE and tensors:
            return self.outside(func, args, kwargs, f"Graph break from `Tensor.{name}()`")
        if type(func) not in (Op, Composite) and tensors and isinstance(tensors[0], Stand):
            if name in _FORM:
                return func(self.form(tensors[0]), *args[1:], **kwargs)
            if name in ("device", "get_device", "is_meta", "is_cpu"):
                return {"device": _core.device("cpu"), "get_device": -1, "is_meta": False, "is_cpu": True}[name]
            if name == "__iter__":
                if not self.form(tensors[0]).dim():
                    raise TypeError("iteration over a 0-d tensor")
                return iter([args[0][i] for i in range(len(args[0]))])
        kind, target = self.target(func, name, args)
        if not kind or any(not isinstance(x, Stand) and not _is_plain(x) for x in tensors):
            return self.outside(func, args, kwargs)
        if not tensors:  # a new tensor is an input; random numbers are drawn in order
            return self.outside(func, args, kwargs) if draws(func) else func(*args, **kwargs)
        try:
            with self.lock:
                return self.record(func, kind, target, args, kwargs)
        except _core.MetaValueError:
            return self.outside(func, args, kwargs, f"Dynamic shape operator or data-dependent value: {name}")
        except NoKey:
            return self.outside(func, args, kwargs)
        except Exception:
            result = self.outside(func, args, kwargs)  # raises the error of the call on the values
            if not _core.saved_hooks_active():  # which are the program's, and may not know of device meta
                raise
            return result

    def target(self, func: Any, name: str, args: tuple) -> tuple[str, Any]:
        """The kind of the node for a call, and its target; ``""`` if it cannot be in a graph."""
        if name in _INDEXING:
            return "call_function", _INDEXING[name]
        if name == "detach":
            return "call_method", name
        if name in _VIEWS and type(func) not in (Op, Composite):
            return "attribute", name
        if type(func) not in (Op, Composite) or name == "manual_seed":
            return "", None
        return _names.step_of(func, args)

    def outside(self, func: Any, args: tuple, kwargs: dict, reason: str = "") -> Any:
        """Call ``func`` on the values. A ``reason`` says why they are needed before the end of the function."""
        if reason:
            frame = caller()
            line = None if frame is None else traceback.extract_stack(frame, 1)[0]
            if self.owner.fullgraph and not self.stopped:
                shown = "".join(traceback.format_list([line])) if line else ""
                raise Unsupported(f"{reason}\n\nfrom user code:\n{shown}")
            self.owner.breaks.append(Break(reason, [line] if line else []))
            counters["graph_break"][reason] += 1
        for session in {_states[id(x)].session for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Stand)} | {
            self
        }:
            session.flush()
        actual = [pytree.tree_map(_actual, a) for a in (args, kwargs)]
        self.suspended += 1
        try:
            return func(*actual[0], **actual[1])
        finally:
            self.suspended -= 1

    def form(self, t: Tensor) -> Tensor:
        """The tensor on the meta device with the form of ``t``, which gets a number if it has none."""
        number = self.number_of(t)
        return self.forms[number]

    def number_of(self, t: Tensor) -> int:
        """The number of a value of this graph. A value that is not one of its results becomes an input."""
        if isinstance(t, Stand):
            state = _states[id(t)]
            if state.actual is None:
                return state.number
            t = state.actual
        number = self.numbers.get(id(t))
        if number is None:
            form = _core_meta(t)
            number = self.numbers[id(t)] = self.count
            self.count += 1
            self.inputs[number], self.forms[number], self.written[number] = t, form, form._version
        return number

    def record(self, func: Any, kind: str, target: Any, args: tuple, kwargs: dict) -> Any:
        """Record the call; its result."""
        self.follow_state()
        held: dict[int, Tensor] = {}
        name = _name_of(func)

        def stand_in(x: Any) -> Any:
            if isinstance(x, Tensor):
                form = self.form(x)
                held[id(form)] = x
                return form
            named = isinstance(x, _core.device) or (isinstance(x, str) and name == "to")
            return _core.device("meta") if named else x

        noted = [pytree.tree_map(lambda x: Ref(self.number_of(x)) if isinstance(x, Tensor) else x, a)
                 for a in (args, kwargs)]  # fmt: skip
        frozen(noted)
        on_meta = [pytree.tree_map(stand_in, a) for a in (args, kwargs)]
        if isinstance(kwargs.get("device"), str):
            on_meta[1]["device"] = "meta"
        with _core_only():
            here = functools.partial(Tensor.to, device="meta") if name == "cpu" else func
            result = here(*on_meta[0], **on_meta[1])
        number = self.note(kind, target, noted[0], noted[1])
        given = self.result(result, number, held)
        changed = [i for i, version in self.written.items() if self.forms[i]._version != version]
        for i in changed:
            self.written[i] = self.forms[i]._version
        wrapped = {id(_actual(stand)) for stand in self.wrapped} if changed else ()
        if any(id(self.inputs[i]) not in wrapped for i in changed):  # others read it without calling this session
            self.flush()
        return given

    def note(self, kind: str, target: Any, args: tuple, kwargs: dict) -> int:
        number = self.count
        self.count += 1
        self.calls.append(Call(kind, target, args, kwargs, number))
        return number

    def result(self, result: Any, number: int, held: dict[int, Tensor]) -> Any:
        """The tensors that the program gets as a result."""
        if isinstance(result, Tensor):
            if id(result) in held:
                return held[id(result)]
            made = self.make(Pending, number)
            self.forms[number], self.made[number] = result, weakref.ref(made)
            return made
        if isinstance(result, (tuple, list)) and any(isinstance(x, Tensor) for x in pytree.tree_leaves(result)):
            parts = [
                self.result(x, self.note("call_function", operator.getitem, (Ref(number), i), {}), held)
                for i, x in enumerate(result)
            ]
            return tuple.__new__(type(result), parts) if isinstance(result, tuple) else parts
        return result

    def follow_state(self) -> None:
        """A change of grad mode becomes a call; a change of other modes begins a new graph."""
        state = _core.is_grad_enabled(), _core.is_inference_mode_enabled(), tuple(_core.mode_stack())
        if self.state is None:
            self.state = self.first = state
        elif state[1:] != self.state[1:]:
            self.flush()
            self.state = self.first = state
        elif state != self.state:
            self.note("call_function", _core.set_grad_enabled, (state[0],), {})
            self.state = state

    # ---- a graph -----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Compute the recorded calls."""
        with self.lock:  # other threads may hold pending tensors
            self.compute()

    def compute(self) -> None:
        """:meth:`flush`, on the only thread that does it."""
        if not self.calls:
            self.start()
            return
        calls, inputs, first = self.calls, self.inputs, self.first
        live = {i: p for i, ref in self.made.items() if (p := ref()) is not None and type(p) is Pending}
        used = {x.number for call in calls for x in pytree.tree_leaves((call.args, call.kwargs)) if isinstance(x, Ref)}
        inputs = {i: t for i, t in inputs.items() if i in used}
        self.start()
        owner = self.owner
        key = (
            tuple((c.kind, c.target, frozen(c.args), frozen(c.kwargs), c.result) for c in calls), tuple(live),
            tuple((i, form_of(t, owner.dynamic)) for i, t in inputs.items()), first[:2],
        )  # fmt: skip
        with _outside_of_modes(first):
            function = owner.compiled(
                key, lambda: (build(calls, inputs, tuple(live), self.names), list(inputs.values()))
            )
            results = function(*inputs.values())
            if not isinstance(results, (tuple, list)) or len(results) != len(live):
                raise BackendCompilerFailed(
                    owner.backend, AssertionError(f"expected {len(live)} results, got {type(results).__name__}")
                )
        owners: dict[int, Tensor] = {}  # owners of the memory that other results are views of, by the id of the result
        for pending, result in zip(live.values(), results, strict=True):
            _become(pending, result, owners.get(id(result._base)))
            owners[id(result)] = pending


@contextlib.contextmanager
def _without(session: Session) -> Iterator[None]:
    """Calls within are not passed to ``session``."""
    modes = _modes()
    if session not in modes:
        yield
        return
    place = modes.index(session)
    del modes[place]
    before = _core.change_overrides(0, 0 if modes else 2)
    try:
        yield
    finally:
        modes.insert(place, session)
        _core.change_overrides(before & 2, 0)


def _actual(x: Any) -> Any:
    """The tensor that a stand-in among arguments stands for."""
    return _states[id(x)].actual if type(x) is Stand else x


def _seen(method: Any, plain: Callable) -> Callable:
    """``plain``, which the core calls for ``method``; calls whose index alone is a stand-in go to its session."""

    def ask(t: Tensor, index: Any, *value: Any) -> Any:
        if any(isinstance(x, Stand) for x in pytree.tree_leaves(index)):
            session = next(_states[id(x)].session for x in pytree.tree_leaves(index) if isinstance(x, Stand))
            with _without(session):
                return session.call(method, (t, index, *value), {})
        return plain(t, index, *value)

    return ask


callbacks.getitem = _seen(Tensor.__getitem__, callbacks.getitem)
callbacks.setitem = _seen(Tensor.__setitem__, callbacks.setitem)


def _is_plain(x: Tensor) -> bool:
    """Whether ``x`` can be the input of a graph."""
    return type(x) in (Tensor, Parameter) and x.layout is _core.strided and x.device.type == "cpu"


def _become(pending: Pending, actual: Tensor, owner: Tensor | None) -> None:
    """Make ``pending`` an ordinary tensor: the same memory and the same place in the graph as ``actual``; a view of
    ``owner``, where ``actual`` is one of a tensor that became that."""
    del _states[id(pending)]
    pending.__class__ = Tensor
    if not actual._is_view() or weakref.getweakrefs(pending):
        become(pending, actual)
        return
    with _core_only():
        if owner is not None and _same_memory(owner, actual):
            with enable_grad() if actual.requires_grad else no_grad():
                fresh = owner.as_strided(actual.shape, actual.stride(), actual.storage_offset())
        else:
            fresh = as_subclass(actual, Tensor)  # another view of the same tensor: writes reach that
    vars(fresh).update(vars(pending))
    swap_tensors(pending, fresh)


def _same_memory(one: Tensor, two: Tensor) -> bool:
    """Whether one tensor can be a view of the other; ``set_`` gives a view other memory."""
    same = one.untyped_storage() is two.untyped_storage()
    return same and one.dtype is two.dtype and one.is_conj() == two.is_conj()


def _core_meta(t: Tensor) -> Tensor:
    """A tensor on the meta device with the form of ``t``."""
    with _core_only():
        form = empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta", requires_grad=t.requires_grad)
        if not t.is_leaf:
            with enable_grad():  # a copy: a view of a leaf may not be written to
                copied = form.clone()
                form = copied if copied.stride() == form.stride() else form.view_as(form)
    return form


@contextlib.contextmanager
def _core_only() -> Iterator[None]:
    """No override sees the calls within."""
    before = _core.change_overrides(8, 0) & 8
    try:
        yield
    finally:
        if not before:
            _core.change_overrides(0, 8)


@contextlib.contextmanager
def _outside_of_modes(state: tuple) -> Iterator[None]:
    """The modes and grad mode at the beginning of a graph, without the session."""
    grad, _, stack = state
    before = _core.set_grad_enabled(grad)
    try:
        with _core.modes(list(stack)), _core_only():
            yield
    finally:
        _core.restore_grad_mode(before)


def build(calls: list[Call], inputs: dict[int, Tensor], outputs: tuple[int, ...], names: dict[int, str]) -> GraphModule:
    """The graph of these calls, as a module."""
    graph = Graph()
    nodes: dict[int, Any] = {}
    for i, t in inputs.items():
        nodes[i] = graph.placeholder(names.get(id(t), f"G_tensor_{i}_"), type(t))
        nodes[i].meta["example_value"] = t
    for kind, target, args, kwargs, result in calls:
        args, kwargs = pytree.tree_map(lambda x: nodes[x.number] if isinstance(x, Ref) else x, (args, kwargs))
        if kind == "attribute":
            kind, target, args = "call_function", getattr, (args[0], target)
        nodes[result] = graph.create_node(kind, target, args, kwargs)
    graph.output(tuple(nodes[i] for i in outputs))
    return GraphModule(Module(), graph)

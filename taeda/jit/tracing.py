"""``trace``: records the ops that a function or module calls, as a function of the graph language.

Python's decisions are made once: branches and numbers of loops are the example's. ``script`` keeps them. Sizes that ops
get are read at each call (``sizes.py``).
"""

from __future__ import annotations

import ast
import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from .. import _core, nn, random
from .._core import Op, Tensor
from ..autograd import no_grad
from ..nn._recorded import Recorder as RecordingMode
from ..nn._recorded import distinct, is_value, refuse_storages
from ..ops.meta import place_of
from ..ops.recurrent import _layer_in_ops
from ..ops.table import asked_for, trait
from ..utils import _pytree as pytree
from . import graph, ir, sizes
from .dtypes import number
from .errors import CompileError, Source
from .frontend import FunctionRef, OpName
from .hooks import HOOKS
from .marks import enabled
from .modules import RecursiveScriptModule, ScriptFunction, TopLevelTracedModule
from .printer import code
from .python import Overloads, SourceFrontend
from .script import script_module
from .source import qualified_name
from .types import (
    ANY,
    FLOAT,
    INT,
    REQUIRED,
    STR,
    TENSOR,
    ClassType,
    NoType,
    Parameter,
    Type,
    dict_of,
    list_of,
    tuple_of,
    type_of,
)


class TracerWarning(Warning):
    """A trace may not hold for other inputs: Python read a value off a tensor, or results differ when it runs again."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Does nothing: taeda's own code raises no such warnings."""


class TracingCheckError(Exception):
    """A trace differs when the function runs again."""


class _NoForm(CompileError):
    """Scripts have no form of a call."""


class _NoSource(Source):
    """The source of a trace, which has no lines. A call that the front end refuses is recorded in another way."""

    def fail(self, node: Any, message: str, kind: type[Exception] = CompileError) -> NoReturn:
        raise _NoForm(message)


class Recorder(RecordingMode):
    """The recording mode.

    Args:
        function: what is recorded, whose parameters stand for ``values``.
        root: the module whose method is recorded.
    """

    _tracers = 1

    def __init__(self, function: ir.Function, values: list[Any], root: nn.Module | None = None) -> None:
        super().__init__(root)
        self.function = function
        self.front = SourceFrontend(function, _NoSource(""), lambda name: None)
        self.body: list[ir.Stmt] = []
        self.known: dict[int, ir.Expr] = {}
        self.kept: list[Any] = []  # the values of ``known``, which live on, so that ids are theirs
        self.node = ast.Pass()
        self.quiet = 0
        self.unread: dict[int, ir.Stmt] = {}  # sizes that no op was given yet
        self.modules: list[tuple[nn.Module, Any]] = []  # recorded as calls, with the called functions
        names = [p.name for p in function.parameters]
        if root is not None:
            e: Any = self.front.lookup(names.pop(0))
            if _runs_over_steps(root):
                self._keep_calls(root, e)
            self._parameters_of(root, e)
        for name, value in zip(names, values, strict=True):
            self.know(value, self.front.lookup(name))

    def _parameters_of(self, module: nn.Module, owner: Any) -> None:
        for table in (module._parameters, module._buffers):
            for name, value in table.items():
                if value is not None and id(value) not in self.known:
                    self.know(value, ir.GetAttr(owner, name, TENSOR))
        for name, child in module._modules.items():
            if child is not None:
                e = ir.GetAttr(owner, name, owner.type.attributes[name])
                if isinstance(child, RecursiveScriptModule) or _runs_over_steps(child):
                    self._keep_calls(child, e)
                self._parameters_of(child, e)

    def _keep_calls(self, module: nn.Module, e: Any) -> None:
        """Record calls of ``module`` as calls, because their inside depends on the inputs."""
        if module._forward_pre_hooks or module._forward_hooks:
            return
        several = [f for n in range(2) if (f := e.type.method(f"forward__{n}")) is not None]
        self.modules.append((module, Overloads(several, e) if several else e))

    def know(self, value: Any, e: Any) -> None:
        """Let ``e`` stand for a value, and for its elements."""
        if isinstance(value, Tensor):
            self.known[id(value)] = e
            self.kept.append(value)
        elif isinstance(value, (tuple, list)):
            for i, part in enumerate(value):
                inner: ir.Expr = (
                    ir.TupleItem(e, i, e.type.args[i]) if isinstance(value, tuple) else self._item(e, ir.Const(i, INT))
                )
                self.know(part, inner)
        elif isinstance(value, dict):
            for key, part in value.items():
                self.know(part, self._item(e, ir.Const(key, type_of(key))))

    def _know_named(self, value: Any, e: ir.Expr) -> None:
        """Let ``e``, or its elements, stand for named tuples: their types have names."""
        if hasattr(value, "_fields"):
            self.known[id(value)] = e
            self.kept.append(value)
        elif isinstance(value, tuple):
            for i, part in enumerate(value):
                if hasattr(part, "_fields"):
                    self._know_named(part, ir.TupleItem(e, i, e.type.args[i]))

    def _item(self, e: ir.Expr, key: ir.Expr) -> ir.Expr:
        return self.front.op("aten::__getitem__", [e, key], {}, self.node)

    def express(self, x: Any) -> ir.Expr:
        """The expression of a value in the trace. A tensor that the trace does not know is a constant."""
        if isinstance(x, sizes.Traced):
            plain = x.__reduce__()[1][0]
            return x.build() if x.recorder is self else ir.Const(plain, type_of(plain))
        if isinstance(x, Tensor):
            if id(x) not in self.known:
                e = self._anew(x) or self._detached(x)
                self.know(x, e or ir.Const(x.detach() if x.grad_fn is not None else x, TENSOR))
            if isinstance(self.known[id(x)], (ir.Const, ir.GetAttr)):
                self.lasting.note(x)
            return self.known[id(x)]
        code = number(x)
        if code is not None:
            return ir.Const(code, INT)
        if isinstance(x, tuple) and id(x) in self.known:
            return self.known[id(x)]
        if isinstance(x, (list, _core.Size)):
            items = [self.express(v) for v in x]
            return self.front.list_literal(items, None, self.node)
        if isinstance(x, tuple):
            return self.front.tuple_of_items([self.express(v) for v in x])
        if isinstance(x, dict):
            keys: list[Any] = [self.express(k) for k in x]
            return self.front._dict_of(keys, [self.express(v) for v in x.values()], None, self.node)
        return ir.Const(x, type_of(x))

    def _anew(self, x: Tensor) -> ir.Expr | None:
        """A copy of the values that ``x`` was made of: the program may write to it, in every run."""
        found = self.taken(x)
        if found is None:
            return None
        made, value = found
        variable = self.front.new_variable(f"v{self.front.places}", TENSOR)
        self.body.append(ir.Assign(variable, self.front.op("aten::clone", [ir.Const(value, TENSOR)], {}, self.node)))
        if made is x:
            return variable
        self.know(made, variable)
        return None

    def _detached(self, x: Tensor) -> ir.Expr | None:
        """The expression of ``t.detach()`` or ``t.data``, which no op makes, if the trace knows ``t``."""
        with self.recording(None):
            place = place_of(x)
            found = next((t for t in reversed(self.kept) if place is not None and place_of(t) == place), None)
        if found is None:
            return None
        variable = self.front.new_variable(f"v{self.front.places}", TENSOR)
        self.body.append(ir.Assign(variable, self.front.op("aten::detach", [self.known[id(found)]], {}, self.node)))
        return variable

    def sizes_of(self, t: Tensor, plain: _core.Size) -> _core.Size:
        """The sizes of a tensor, which ops may be given."""
        if id(t) not in self.known:
            return plain
        return _core.Size([self._size(self.known[id(t)], dim, n) for dim, n in enumerate(plain)])

    def _size(self, e: ir.Expr, dim: int, n: int) -> sizes.TracedSize:
        variable = self.front.new_variable(f"v{self.front.places}", INT)
        read = ir.Assign(variable, self.front.op("aten::size", [e, ir.Const(dim, INT)], {}, self.node))
        self.body.append(read)
        self.unread[id(read)] = read

        def build() -> ir.Expr:
            self.unread.pop(id(read), None)
            return variable

        return sizes.TracedSize(n, self, build)

    # ---- the mode ---------------------------------------------------------------------------------------------------
    def item(self, x: Tensor) -> Any:
        """A number that Python reads: it is a constant of the trace."""
        if not self.quiet:
            kind = "boolean" if x.dtype is _core.bool_ else "number"
            self.warn(f"Converting a tensor to a Python {kind} might cause the trace to be incorrect")
        with self.recording(None):
            return x.item()

    def warn(self, text: str, level: int = 4) -> None:
        """Warn with the line of the user's."""
        warnings.warn(
            f"{text}. We can't record the data flow of Python values, so this value will be treated as a constant in "
            f"the future. "
            "This means that the trace might not generalize to other inputs!",
            TracerWarning,
            stacklevel=level,
        )

    def note_detached(self, source: Tensor, made: Tensor) -> None:
        """``made`` is ``source.detach()`` or ``source.data``, which no op makes, or ``source`` after ``detach_``."""
        e = self.front.op("aten::detach", [self.express(source)], {}, self.node)
        self.known.pop(id(made), None)
        self.record(e, made)

    def alive(self) -> list[Any]:
        return self.kept

    def by_python(self, what: str, source: Tensor | None) -> bool:
        """Values that Python reads, or a tensor made of Python's values: constants of the trace. Returns whether the
        trace has read the values, so that a write by Python would be lost."""
        read = self.was_read(source)
        if self.quiet:
            return read
        if source is not None:
            kind = f"Python {what}" if what == "list" else what
            self.warn(f"Converting a tensor to a {kind} might cause the trace to be incorrect", 3)
        else:
            warnings.warn(
                f"{_core.Size.__module__}.{what} results are registered as constants in the trace. That is right for "
                "values that are the same in every call; what depends on the inputs is recorded where tensors are "
                "joined by ops such as stack and cat",
                TracerWarning,
                stacklevel=2,
            )
        return read

    def handle(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Called by the core for every op and composite."""
        if _core.is_mode_active():  # the others come first
            return _core.pass_through(self, function, args, kwargs)
        refuse_storages(function, args, kwargs)
        reads = sizes.reads((args, kwargs))
        if not reads and not self._makes(function):
            result = _core.pass_through(self, function, args, kwargs)
            self._warn_of(function, result)
            return result
        given = {k: v for k, v in kwargs.items() if k != "requires_grad" or v}
        try:
            e = self._call(function, args, given)
        except (_NoForm, NoType):
            e = None
        if e is None and not reads:  # a constant
            return _core.pass_through(self, function, args, kwargs)
        if e is None:
            return self._other(function, args, kwargs)
        result = function(*args, **kwargs)
        self._warn_of(function, result)
        return self.record(e, result)

    def _warn_of(self, function: Any, result: Any) -> None:
        """Warn of a bool that ``function`` has computed of values."""
        if is_value(function, result) and not self.quiet:
            what = f"Converting the result of {function.__name__}() to a Python boolean"
            self.warn(f"{what} might cause the trace to be incorrect", 5)

    def _makes(self, function: Any) -> bool:
        """Whether a function makes a tensor of none: a new one in each run, which the program may write to."""
        return trait(function, "meta", "") in ("sizes", "numbers") or bool(trait(function, "random", False))

    def _call(self, function: Any, args: tuple, kwargs: dict) -> ir.Expr | None:
        """The expression for a call; None if the language has no form of it."""
        name = getattr(function, "__name__", "")
        if name == "basic_index":
            return self._basic_index(*args)
        if name == "view" and any(isinstance(x, _core.dtype) for x in (*args, *kwargs.values())):
            return None  # dtypes are numbers in the language: this would be a size
        if name in _REFLECTED and not isinstance(args[1], Tensor):  # a number before the operator
            return _REFLECTED[name](self.front, self.express(args[1]), self.express(args[0]), self.node)
        sugar = OpName("aten::pow") if name == "power" else self.front.python_value(function, self.node)
        if not isinstance(sugar, (FunctionRef, OpName)):
            return None
        if isinstance(sugar, FunctionRef):
            wanted = {p.name: p.type for p in sugar.function.parameters}
            args = tuple(
                [_of_floats(a, t) for a, t in zip(args, wanted.values(), strict=False)] + [*args[len(wanted) :]]
            )
            kwargs = {k: _of_floats(v, wanted.get(k)) for k, v in kwargs.items()}
        values = [self.express(a) for a in args]
        named = {k: self.express(v) for k, v in kwargs.items() if v is not None and k != "generator"}
        if "input" in named and isinstance(sugar, OpName):
            named["self"] = named.pop("input")
        found = self.front.apply(sugar, values, named, self.node)
        return found if isinstance(found, ir.Expr) else None

    def _basic_index(self, x: Tensor, key: Any) -> ir.Expr:
        value, rank, dim = self.express(x), x.dim(), 0
        keys = key if isinstance(key, tuple) else (key,)
        for i, k in enumerate(keys):
            if k is Ellipsis:
                dim = rank - sum(o is not None for o in keys[i + 1 :])
                continue
            at = ir.Const(dim, INT)
            if k is None:
                value = self.front.op("aten::unsqueeze", [value, at], {}, self.node)
                rank += 1
            elif isinstance(k, slice):
                bounds = [self.express(b) for b in (k.start, k.stop, 1 if k.step is None else k.step)]
                value = self.front.op("aten::slice", [value, at, *bounds], {}, self.node)
            else:
                value = self.front.op("aten::select", [value, at, self.express(k)], {}, self.node)
                rank -= 1
                continue
            dim += 1
        return value

    def _other(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Record a call that has no expression: by its parts or, if it has none, as a call of Python."""
        name = getattr(function, "__name__", "")
        if name in _IN_OPS:
            run, count = _IN_OPS[name]
            with self.recording(self):
                made = tuple(run(*args[:-1]))
            return made + (None,) * (count - len(made))
        if not isinstance(function, Op):
            self.quiet += 1
            try:
                result = _core.pass_through(self, function, args, kwargs)
            finally:
                self.quiet -= 1
            self._warn_of(function, result)
            return result
        rule = trait(function, "lowering") or trait(function, "decomposition")
        if rule is not None and not function.writes:
            bound = dict(zip(function.params, function.defaults, strict=True))
            bound |= dict(zip(function.params, args, strict=False)) | kwargs
            with self.recording(self):
                return rule(*[bound[n] for n in asked_for(rule)])
        if trait(function, "batch") == "check":
            return function(*args, **kwargs)  # Python reads its result, and may raise: no step of a trace
        result = function(*args, **kwargs)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]

        def again(*tensors: Tensor) -> Any:
            filled = list(leaves)
            for i, t in zip(places, tensors, strict=True):
                filled[i] = t
            inner, named = pytree.tree_unflatten(filled, spec)
            return function(*inner, **named)

        t = TENSOR if isinstance(result, Tensor) else ANY
        if isinstance(result, (tuple, list)) and all(isinstance(r, Tensor) for r in result):
            t = tuple_of(*[TENSOR] * len(result))
        return self.record(ir.PythonCall(again, name, [self.express(leaves[i]) for i in places], t), result)

    def record(self, e: ir.Expr, result: Any) -> Any:
        """Append a call and note its result."""
        written = isinstance(result, Tensor) and id(result) in self.known and self.known[id(result)].type == TENSOR
        if written or result is None:
            self.body.append(ir.Do(e))  # in place
            return result
        variable = self.front.new_variable(f"v{self.front.places}", e.type)
        self.body.append(ir.Assign(variable, e))
        if isinstance(result, (tuple, list)) and e.type.name == "List":
            self.know(list(result), variable)
        elif isinstance(result, dict) and e.type.name == "Dict":
            self.know(result, variable)
        elif isinstance(result, Tensor) and e.type.name in ("Optional", "Union", "Any"):
            self.know(result, ir.Cast(variable, TENSOR))
        elif isinstance(result, (tuple, list)) and e.type.args:
            self.know(tuple(result), variable)
            self._know_named(result, variable)
        elif isinstance(result, Tensor) and e.type == TENSOR:
            self.know(result, variable)
        return result

    def call_function(self, function: ir.Function, args: tuple, kwargs: dict) -> Any:
        """A call of a compiled function within the trace: it keeps its control flow."""
        values = function.bind(args, kwargs)
        return self._keep(FunctionRef(function), lambda: function.run(*values), args, kwargs)

    def call_module(self, callee: Any, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """A call of a module whose ``forward`` is compiled: a script, or a layer that runs over steps."""
        return self._keep(callee, lambda: forward(*args, **kwargs), args, kwargs)

    def _keep(self, callee: Any, run: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of ``run``, recorded as a call of ``callee``, or as the ops in it if ``callee`` takes no such
        arguments."""
        try:
            given, named = [self.express(a) for a in args], {k: self.express(v) for k, v in kwargs.items()}
            e = self.front.apply(callee, given, named, self.node)
        except (_NoForm, NoType):
            return run()
        with self.recording(None):
            result = run()
            if isinstance(result, Tensor) and id(result) in self.known:  # it may be another tensor for other inputs
                result = result.view_as(result)
        return self.record(e, result)

    def call_library(self, function: Callable, run: Callable, args: tuple, kwargs: dict) -> Any:
        """A call of a Python function that the language has too, under the same name."""
        return self._keep(self.front.python_value(function, self.node), lambda: run(*args, **kwargs), args, kwargs)

    def control_flow(self, name: str, *args: Any) -> Any:
        """A call of ``cond`` and the like. What depends on values cannot be recorded."""
        if name == "while_loop" or (name == "cond" and isinstance(args[0], Tensor)):
            raise RuntimeError(f"jit.trace: a trace has no {name}, which would be the example's; script the function")
        return NotImplemented

    def custom_op(self, op: Any, args: tuple, kwargs: dict) -> Any:
        """A call of an op of the program's own: one step, whatever its implementation computes with."""
        places, named = op._complete(args, kwargs)
        given = [self.express(x) for x in places], {name: self.express(x) for name, x in named.items()}
        e = self.front.op(op._qualname, *given, self.node)
        with self.recording(None):
            result = op._run(*args, **kwargs)
        number = next((x for x in pytree.tree_leaves(result) if isinstance(x, (bool, int, float))), None)
        if number is not None:
            raise RuntimeError(
                f"jit.trace: {op._qualname} gives a number, {number!r}, which would be a constant of the program; "
                f"script the function that calls it"
            )
        return self.record(e, result)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Within it, calls of ``modules`` are recorded as calls."""
        for module, callee in self.modules:
            module.__dict__["forward"] = _kept(self, module, callee)
        try:
            yield
        finally:
            for module, _ in self.modules:
                module.__dict__.pop("forward", None)

    def finish(self, result: Any, strict: bool) -> None:
        """The result of the function."""
        value = self._result(result, strict)
        self.body.append(ir.Return(value))
        self.function.body = [step for step in self.body if id(step) not in self.unread]
        self.function.slots, self.function.result = self.front.places, value.type

    def _result(self, x: Any, strict: bool) -> ir.Expr:
        if isinstance(x, Tensor):
            return self.express(x)
        if isinstance(x, sizes.Traced):
            return self.front.op("aten::tensor", [self.express(x)], {}, self.node)
        if isinstance(x, tuple):
            return self.front.tuple_of_items([self._result(v, strict) for v in x])
        if isinstance(x, (list, dict)):
            if strict:
                raise RuntimeError(
                    f"Encountering a {type(x).__name__} at the output of the tracer might cause the trace to be "
                    f"incorrect, this is only "
                    "valid if the container structure does not change based on the module's inputs. Consider using a "
                    "constant "
                    "container instead (e.g. for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` "
                    "instead). If you "
                    "absolutely need this and know the side effects, pass strict=False to trace() to allow this "
                    "behavior."
                )
            if isinstance(x, list):
                return self.front.list_literal([self._result(v, strict) for v in x], None, self.node)
            return self.front._dict_of(
                [ir.Const(k, STR) for k in x], [self._result(v, strict) for v in x.values()], None, self.node
            )
        raise RuntimeError(
            f"Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions, "
            f"got {type(x).__name__}"
        )


def _runs_over_steps(module: nn.Module) -> bool:
    """Whether the language has the code of ``module``, which runs over as many steps as there are. A subclass may say
    otherwise, and computed weights are recorded."""
    plain = type(module).forward in (nn.LSTM.forward, nn.GRU.forward, nn.RNN.forward)
    return isinstance(module, nn.RNNBase) and plain and not hasattr(module, "parametrizations")


def _kept(recorder: Recorder, module: nn.Module, callee: Any) -> Callable:
    """``module.forward``, which ``recorder`` sees."""
    forward = module.forward

    def call(*args: Any, **kwargs: Any) -> Any:
        if Recorder.current() is not recorder:
            return forward(*args, **kwargs)
        return recorder.call_module(callee, forward, args, kwargs)

    return call


#: Ops of operators with a number on the left, whose operands are exchanged.
_REFLECTED: dict[str, Callable] = {
    "rdiv": lambda front, a, b, node: front.binary(ast.Div(), a, b, node),
    "rlshift": lambda front, a, b, node: front.op("aten::bitwise_left_shift", [a, b], {}, node),
    "rrshift": lambda front, a, b, node: front.op("aten::bitwise_right_shift", [a, b], {}, node),
}


def _of_floats(x: Any, wanted: Any) -> Any:
    """An argument for a list of floats, where Python may give integers, or one number for all."""
    inner = wanted.element if wanted is not None and wanted.name == "Optional" else wanted
    if inner != list_of(FLOAT):
        return x
    if type(x) is int:
        return float(x)
    return [float(v) for v in x] if isinstance(x, (tuple, list)) and {type(v) for v in x} <= {int, float} else x


#: Ops of recurrent networks, in ops that the language has, and how many results they have with what derivatives need.
_IN_OPS: dict[str, tuple[Callable, int]] = {"_recurrent_layer": (_layer_in_ops, 5)}


def _type_of_input(x: Any) -> Type:
    if isinstance(x, Tensor):
        return TENSOR
    if isinstance(x, tuple):
        return tuple_of(*map(_type_of_input, x))
    if isinstance(x, (list, dict)) and x:
        types = list(map(_type_of_input, x.values() if isinstance(x, dict) else x))
        if any(t != types[0] for t in types):
            raise RuntimeError(f"jit.trace: a {type(x).__name__} that is an input must have values of one type")
        return dict_of(type_of(next(iter(x))), types[0]) if isinstance(x, dict) else list_of(types[0])
    raise RuntimeError(
        f"Type '{type(x).__name__}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples of "
        f"Tensors can be "
        "traced"
    )


def _names_of(f: Callable, count: int) -> list[str]:
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [*plain[:count], *(f"argument_{i}" for i in range(len(plain), count))]


def _inputs(f: Callable, args: Any, kwargs: dict | None) -> tuple[list[Any], list[str], int]:
    """Values and names of the inputs, and how many are given by position."""
    positional = list(args) if isinstance(args, (tuple, list)) else [args] if args is not None else []
    names = _names_of(f, len(positional)) + list(kwargs or ())
    return [*positional, *(kwargs or {}).values()], names, len(positional)


def _record(
    f: Callable, args: Any, kwargs: dict | None, strict: bool, name: str, owner: ClassType | None = None,
    module: nn.Module | None = None,
) -> tuple[ir.Function, Any]:  # fmt: skip
    values, names, count = _inputs(f, args, kwargs)
    values = distinct(values, [] if module is None else [*module.parameters(), *module.buffers()])
    parameters = [Parameter(n, _type_of_input(v), REQUIRED) for n, v in zip(names, values, strict=True)]
    own = [Parameter("self", owner, REQUIRED)] if owner is not None else []
    function = ir.Function(name, [*own, *parameters], None, None, owner)
    recorder = Recorder(function, values, module)
    with recorder.recording(recorder), recorder.keeping():
        result = f(*values[:count], **dict(zip(names[count:], values[count:], strict=True)))
    recorder.lasting.check("jit.trace")  # of new tensors ``check_trace`` tells
    recorder.finish(result, strict)
    return function, result


def _clone(x: Any) -> Any:
    """A copy of all tensors. Repeated tensors stay one tensor."""
    made: dict[int, Tensor] = {}

    def clone(t: Any) -> Any:
        if not isinstance(t, Tensor):
            return t
        if id(t) not in made:
            made[id(t)] = t.detach().clone().requires_grad_(t.requires_grad)
        return made[id(t)]

    return pytree.tree_map(clone, x)


def _check(f: Callable, run: Callable, again: Callable, text: str, inputs: list, tolerance: float) -> None:
    """Run the function and its trace again, and compare; record it again, and compare the code."""
    for args, kwargs in inputs:
        args = args if isinstance(args, (tuple, list)) else (args,)
        state = random.get_rng_state()
        expected = f(*_clone(tuple(args)), **_clone(kwargs or {}))
        random.set_rng_state(state)
        got = run(*_clone(tuple(args)), **_clone(kwargs or {}))
        pairs = zip(pytree.tree_leaves(expected), pytree.tree_leaves(got), strict=True)
        for i, (a, b) in enumerate(pairs):
            same = not isinstance(a, Tensor) or (
                a.shape == b.shape and bool(((a - b).abs() <= tolerance * (1 + a.abs())).logical_or(a != a).all())
                if a.dtype.is_floating_point
                else a.shape == b.shape and bool((a == b).all())
            )
            if not same:
                warnings.warn(
                    f"Output nr {i + 1}. of the traced function does not match the corresponding output of the Python "
                    f"function. "
                    "Detailed error: Tensor-likes are not close!",
                    TracerWarning,
                    stacklevel=4,
                )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracerWarning)
        if again() != text:
            raise TracingCheckError(
                "Tracing failed sanity checks!\nERROR: Graphs differed across invocations!\nThe function does "
                "something else when it "
                "runs again: check_trace=False leaves this check out"
            )


def _shape_of(function: ir.Function) -> str:
    """The code of a trace, whatever its constants are."""
    import re

    try:
        return re.sub(r"CONSTANTS\.c\d+|___torch_mangle_\d+\.", "", code(function))
    except CompileError:
        return ""


def trace(
    func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_kwarg_inputs: dict | None = None, _store_inputs: bool = True,
) -> Any:  # fmt: skip
    """Record what ``func`` does with the example, as a function or module that runs without Python.

    Branches, loops and sizes are the example's; a :class:`TracerWarning` says where Python reads a value.

    Args:
        func: a function of tensors, or a module, whose ``forward`` is recorded.
        example_inputs: a tuple of tensors (or trees of them), or one tensor.
        check_trace: run and record it again, and compare.
        check_inputs: more tuples of inputs to compare with.
        check_tolerance: how far results may be apart, relative.
        strict: False allows lists and dictionaries as results.
        example_kwarg_inputs: inputs by name.
    Returns:
        A :class:`ScriptFunction`, or a :class:`TopLevelTracedModule` with the module's parameters.
    Raises:
        RuntimeError: an input or a result is no tensor, or no tree of them.
    """
    if isinstance(func, (ScriptFunction, RecursiveScriptModule)) or not enabled():
        return func
    if isinstance(func, nn.Module):
        inputs = {"forward": example_inputs if example_kwarg_inputs is None else example_kwarg_inputs}
        return trace_module(
            func, inputs, None, check_trace, None if check_inputs is None else [{"forward": c} for c in check_inputs],
            check_tolerance, strict, example_inputs_is_kwarg=example_kwarg_inputs is not None,
        )  # fmt: skip
    if not callable(func):
        raise AttributeError(f"trace: expected a function or module, got {type(func).__name__}")
    name = qualified_name(func)
    function, _ = _record(func, example_inputs, example_kwarg_inputs, strict, name)
    if check_trace:
        text = _shape_of(function)

        def again() -> str:
            return _shape_of(_record(func, _clone(example_inputs), _clone(example_kwarg_inputs), strict, name)[0])

        first = [(() if example_inputs is None else example_inputs, example_kwarg_inputs)]
        _check(func, function, again, text, [*first, *((c, None) for c in check_inputs or ())], check_tolerance)
    return ScriptFunction(function, func)


def trace_module(
    mod: nn.Module, inputs: dict[str, Any], optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_inputs_is_kwarg: bool = False, _store_inputs: bool = True,
) -> TopLevelTracedModule:  # fmt: skip
    """Record methods of a module: ``inputs`` has the example of each by its name. Arguments: see :func:`trace`."""
    if not enabled():
        return mod
    if not isinstance(mod, nn.Module):
        raise AttributeError(f"trace_module: expected a module, got {type(mod).__name__}")
    if not isinstance(inputs, dict):
        raise AttributeError("trace_module: expected a dictionary of examples by the name of the method")
    made = script_module(mod, shared=False)
    kind = made._kind
    if not _runs_over_steps(mod):
        kind.find = lambda name: None
    made.__class__ = TopLevelTracedModule
    scripts = {id(m) for m in mod.modules()}
    for inner in made.modules():
        if id(inner) not in scripts:
            inner.__dict__["_is_traced"] = True  # its class's name is shown
    for name, example in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        plain = mod.forward if name == "forward" else method
        args, kwargs = ((), example) if example_inputs_is_kwarg else (example, None)

        def run(*a: Any, _method: Any = method, **k: Any) -> Any:
            return _method(*a, **k)

        run.__signature__ = inspect.signature(plain)  # type: ignore[attr-defined]
        state = copy.deepcopy([dict(m._buffers) for m in mod.modules()]) if check_trace else []
        function, _ = _record(run, args, kwargs, strict, f"{kind.name}.{name}", kind, mod)
        kind.methods[name] = function
        if check_trace:
            text = _shape_of(function)

            def again(run: Any = run, args: Any = args, kwargs: Any = kwargs, name: str = name) -> str:
                return _shape_of(
                    _record(run, _clone(args), _clone(kwargs), strict, f"{kind.name}.{name}", kind, mod)[0]
                )

            def traced(*a: Any, _function: ir.Function = function, **k: Any) -> Any:
                return _function(made, *a, **k)

            more = [(c[name], None) for c in check_inputs or ()]
            _check(run, traced, again, text, [(args, kwargs), *more], check_tolerance)
            for module, buffers in zip(mod.modules(), state, strict=True):
                for key, value in buffers.items():
                    if value is not None:
                        with no_grad():
                            module._buffers[key].copy_(value)
    return made


def _get_trace_graph(
    f: Any, args: Any = (), kwargs: dict | None = None, strict: bool = True, _force_outplace: bool = False,
    return_inputs: bool = False, _return_inputs_states: bool = False,
) -> tuple:  # fmt: skip
    """The graph of a trace and the function's result."""
    args = args if isinstance(args, tuple) else (args,)
    if isinstance(f, nn.Module):
        made = script_module(f, shared=False)
        run = f.forward
        function, result = _record(run, args, kwargs, strict, f"{made._kind.name}.forward", made._kind, f)
    else:
        function, result = _record(f, args, kwargs, strict, qualified_name(f))
    return (graph.build(function), result, args) if return_inputs else (graph.build(function), result)


HOOKS["recorder"] = Recorder.current

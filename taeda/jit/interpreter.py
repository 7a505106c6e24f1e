"""Runs functions: each expression and statement becomes a closure once, which takes the frame, a list of values.

A statement gives None, or why its block ends: BREAK, CONTINUE or RETURN, whose value is the frame's last place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..futures import Future
from . import ir
from .builtins import raise_exception
from .dtypes import CONVERT
from .hooks import HOOKS
from .types import ClassType, Mismatch, NamedTupleType, ScriptObject, Type, _convert, is_kind, type_of

BREAK, CONTINUE, RETURN = "break", "continue", "return"
Closure = Callable[[list], Any]


def compile_function(function: ir.Function) -> Callable:
    """A callable that runs ``function`` on values of its parameters."""
    body = block(function.body)
    locals_ = [None] * (function.slots - len(function.parameters) + 1)

    def run(*args: Any) -> Any:
        frame = [*args, *locals_]
        return frame[-1] if body(frame) is RETURN else None

    return run


# ---- expressions -----------------------------------------------------------------------------------------------------
def expression(e: ir.Expr) -> Closure:
    """The closure that gives an expression's value."""
    return _EXPRESSIONS[type(e)](e)


def _const(e: ir.Const) -> Closure:
    value = e.value
    return lambda f: value


def _var(e: ir.Var) -> Closure:
    slot = e.slot
    return lambda f: f[slot]


def read_attribute(value: Any, name: str) -> Any:
    """An attribute of a module or object of a script, out of its tables; nothing of Python's own is reached."""
    if isinstance(value, ScriptObject):
        fields = value._fields
        if name in fields:
            return fields[name]
        raise RuntimeError(f"attribute '{name}' of {value._kind.short} has no value yet")
    space = vars(value)
    for table in ("_parameters", "_buffers", "_modules", "_attributes"):
        found = space[table]
        if name in found:
            return found[name]
    if name == "training":
        return value.training
    raise RuntimeError(f"attribute '{name}' of {type(value).__name__} has no value")


def write_attribute(target: Any, name: str, value: Any) -> None:
    """Set an attribute of a module or object of a script."""
    if isinstance(target, ScriptObject):
        target._fields[name] = value
        return
    space = vars(target)
    for table in ("_parameters", "_buffers", "_modules"):
        if name in space[table]:
            space[table][name] = value
            return
    if name == "training":
        target.training = value
    else:
        space["_attributes"][name] = value


def _get_attr(e: ir.GetAttr) -> Closure:
    inner, name = expression(e.object), e.name
    kind = e.object.type
    if not isinstance(kind, ClassType) or not kind.is_module:
        return lambda f: read_attribute(inner(f), name)
    if name in kind.parameters or name in kind.buffers:
        table = "_parameters" if name in kind.parameters else "_buffers"

        def tensor(f: list) -> Any:
            module = inner(f)
            space = module.__dict__[table]
            return space[name] if name in space else read_attribute(module, name)

        return tensor
    return lambda f: read_attribute(inner(f), name)


def _op(e: ir.Op) -> Closure:
    schema, function = e.schema, e.schema.function
    positional: list[Closure] = []
    keywords: dict[str, Closure] = {}
    given = [a is not None for a in e.args]
    shown = [not p.keyword and (g or p.name == "reduction") for p, g in zip(schema.parameters, given, strict=True)]
    last = max((i for i, needed in enumerate(shown) if needed), default=-1)
    for i, (p, arg) in enumerate(zip(schema.parameters, e.args, strict=True)):
        if p.keyword:
            none = isinstance(arg, ir.Const) and arg.value is None
            if arg is not None and not none and p.name not in ("pin_memory", "layout"):
                keywords[p.name] = _converted(arg, p.convert)
        elif i <= last:
            positional.append(_constant(p.default) if arg is None else _converted(arg, p.convert))
    positional += map(expression, e.rest)
    if keywords:
        items = list(keywords.items())

        def full(f: list) -> Any:
            named = {name: value for name, c in items if (value := c(f)) is not None}
            return function(*[c(f) for c in positional], **named)

        return full
    if len(positional) == 1:
        (a,) = positional
        return lambda f: function(a(f))
    if len(positional) == 2:
        a, b = positional
        return lambda f: function(a(f), b(f))
    if len(positional) == 3:
        a, b, c = positional
        return lambda f: function(a(f), b(f), c(f))
    return lambda f: function(*[c(f) for c in positional])


def _constant(value: Any) -> Closure:
    return lambda f: value


def _converted(e: ir.Expr, kind: str) -> Closure:
    inner = expression(e)
    if not kind:
        return inner
    change = CONVERT[kind]
    if isinstance(e, ir.Const):
        return _constant(change(e.value))
    return lambda f: change(inner(f))


def _call(e: ir.Call) -> Closure:
    function, args = e.function, [expression(a) for a in e.args]
    if len(args) == 1:
        (a,) = args
        return lambda f: function.run(a(f))
    if len(args) == 2:
        a, b = args
        return lambda f: function.run(a(f), b(f))
    return lambda f: function.run(*[c(f) for c in args])


def kind_of(value: Any) -> Any:
    """The ClassType of a module or object."""
    return value._kind if isinstance(value, ScriptObject) else vars(value).get("_kind")


def _invoke(e: ir.Invoke) -> Closure:
    target, name, args = expression(e.object), e.name, [expression(a) for a in e.args]

    def call(f: list) -> Any:
        value = target(f)
        method = kind_of(value).method(name)
        return method.run(value, *[c(f) for c in args])

    return call


def _python_call(e: ir.PythonCall) -> Closure:
    function, args, wanted = e.function, [expression(a) for a in e.args], e.type

    def call(f: list) -> Any:
        try:
            return _convert(function(*[c(f) for c in args]), wanted)
        except Mismatch:
            raise RuntimeError(f"{e.name}: expected a result of type {wanted}") from None

    return call


def _new(e: ir.New) -> Closure:
    kind, init, args = e.type, e.init, [expression(a) for a in e.args]

    def make(f: list) -> Any:
        made = ScriptObject(kind)
        if init is not None:
            init.run(made, *[c(f) for c in args])
        return made

    return make


def _make_tuple(e: ir.MakeTuple) -> Closure:
    items = [expression(i) for i in e.items]
    if isinstance(e.type, NamedTupleType):
        cls = e.type.cls
        return lambda f: cls(*[c(f) for c in items])
    return lambda f: tuple([c(f) for c in items])


def _make_list(e: ir.MakeList) -> Closure:
    items = [expression(i) for i in e.items]
    return lambda f: [c(f) for c in items]


def _make_dict(e: ir.MakeDict) -> Closure:
    pairs = [(expression(k), expression(v)) for k, v in zip(e.keys, e.values, strict=True)]
    return lambda f: {k(f): v(f) for k, v in pairs}


def _tuple_item(e: ir.TupleItem | ir.TupleSlice) -> Closure:
    inner, index = expression(e.object), e.index
    return lambda f: inner(f)[index]


def _both(e: ir.Both) -> Closure:
    a, b = expression(e.a), expression(e.b)
    return (lambda f: a(f) and b(f)) if e.is_and else (lambda f: a(f) or b(f))


def _choose(e: ir.Choose) -> Closure:
    condition, a, b = expression(e.condition), expression(e.a), expression(e.b)
    return lambda f: a(f) if condition(f) else b(f)


def _cast(e: ir.Cast) -> Closure:
    inner, wanted = expression(e.value), e.type
    if e.word not in ("convert", "tolist"):
        return inner

    def change(f: list) -> Any:
        try:
            return _convert(inner(f), wanted)
        except Mismatch:
            raise RuntimeError(f"expected a value of type {wanted}") from None

    return change


def _is_instance(e: ir.IsInstance) -> Closure:
    inner, types = expression(e.value), e.types
    return lambda f: is_instance(inner(f), types)


def is_instance(value: Any, types: list[Type]) -> bool:
    """Whether ``value`` is of one of ``types``."""
    found = type_of_any(value)
    return any(is_kind(found, t) or (found.name == t.name and value in ([], {})) for t in types)


def type_of_any(value: Any) -> Type:
    """The type of a value, of modules too."""
    kind = getattr(value, "_kind", None) if not isinstance(value, ScriptObject) else value._kind
    return kind if isinstance(kind, Type) else type_of(value)


def _iterate(e: ir.Iterate) -> Closure:
    parts = [expression(p) for p in e.parts]
    if e.word == "":
        (whole,) = parts
        return lambda f: list(whole(f))
    function: Callable = {"range": range, "enumerate": enumerate, "zip": zip}[e.word]
    return lambda f: function(*[c(f) for c in parts])


def target(targets: list[Any]) -> Callable[[list, Any], None]:
    """A function that stores a value at the targets of an assignment: at one name, or unpacked at several."""
    if len(targets) == 1 and isinstance(targets[0], ir.Var):
        slot = targets[0].slot

        def one(f: list, value: Any) -> None:
            f[slot] = value

        return one
    stars = [i for i, t in enumerate(targets) if isinstance(t, ir.Star)]
    parts = [
        target([t.target if isinstance(t, ir.Star) else t]) if not isinstance(t, list) else target(t) for t in targets
    ]
    star = stars[0] if stars else -1
    count = len(parts)

    def several(f: list, value: Any) -> None:
        if star >= 0:
            tail = count - star - 1
            end = len(value) - tail
            value = [*value[:star], value[star:end], *value[end:]]
        if len(value) != count:
            raise RuntimeError(f"Provided list of length {len(value)}, expected {count} elements to unpack")
        for store, x in zip(parts, value, strict=True):
            store(f, x)

    return several


def _comprehension(e: ir.Comprehension) -> Closure:
    store, over, value = target(e.target), expression(e.over), expression(e.value)
    condition = None if e.condition is None else expression(e.condition)
    key = None if e.key is None else expression(e.key)

    def items(f: list) -> Any:
        for x in over(f):
            store(f, x)
            if condition is None or condition(f):
                yield value(f) if key is None else (key(f), value(f))

    return (lambda f: list(items(f))) if key is None else (lambda f: dict(items(f)))


def _fork(e: ir.Fork) -> Closure:
    call = expression(e.call)

    def start(f: list) -> Any:
        future: Future = Future()
        try:
            future.set_result(call(f))
        except Exception as error:
            future.set_exception(error)
        return future

    return start


def _block(e: ir.Block) -> Closure:
    body, value = block(e.body), expression(e.value)

    def run(f: list) -> Any:
        body(f)
        return value(f)

    return run


_EXPRESSIONS: dict[type, Callable[[Any], Closure]] = {
    ir.Const: _const, ir.Var: _var, ir.GetAttr: _get_attr, ir.Op: _op, ir.Call: _call, ir.Invoke: _invoke,
    ir.PythonCall: _python_call, ir.New: _new, ir.MakeTuple: _make_tuple, ir.MakeList: _make_list,
    ir.MakeDict: _make_dict, ir.TupleItem: _tuple_item, ir.TupleSlice: _tuple_item, ir.Both: _both, ir.Choose: _choose,
    ir.Cast: _cast, ir.IsInstance: _is_instance, ir.Iterate: _iterate, ir.Comprehension: _comprehension,
    ir.Fork: _fork, ir.Block: _block,
}  # fmt: skip


# ---- statements ------------------------------------------------------------------------------------------------------
def block(statements: list[ir.Stmt]) -> Closure:
    """The closure that runs statements in turn, until one ends the block."""
    steps = [_STATEMENTS[type(s)](s) for s in statements]
    if len(steps) == 1:
        return steps[0]

    def run(f: list) -> Any:
        for step in steps:
            signal = step(f)
            if signal is not None:
                return signal
        return None

    return run


def _assign(s: ir.Assign) -> Closure:
    slot, value = s.target.slot, expression(s.value)

    def assign(f: list) -> None:
        f[slot] = value(f)

    return assign


def _unpack(s: ir.Unpack) -> Closure:
    store, value = target(s.targets), expression(s.value)
    if len(s.targets) == 1 and isinstance(s.targets[0], ir.Var):  # ``a, = b``

        def one(f: list) -> None:
            (x,) = value(f)
            store(f, x)

        return one
    return lambda f: store(f, value(f))


def _set_attr(s: ir.SetAttr) -> Closure:
    owner, name, value = expression(s.object), s.name, expression(s.value)
    return lambda f: write_attribute(owner(f), name, value(f))


def _do(s: ir.Do) -> Closure:
    value = expression(s.value)

    def run(f: list) -> None:
        value(f)

    return run


def _if(s: ir.If) -> Closure:
    condition, then, other = expression(s.condition), block(s.then), block(s.other)
    return lambda f: then(f) if condition(f) else other(f)


def _while(s: ir.While) -> Closure:
    condition, body = expression(s.condition), block(s.body)

    def loop(f: list) -> Any:
        while condition(f):
            signal = body(f)
            if signal is BREAK:
                break
            if signal is RETURN:
                return signal
        return None

    return loop


def _for(s: ir.For) -> Closure:
    store, over, body = target(s.target), expression(s.over), block(s.body)

    def loop(f: list) -> Any:
        for value in over(f):
            store(f, value)
            signal = body(f)
            if signal is BREAK:
                break
            if signal is RETURN:
                return signal
        return None

    return loop


def _with(s: ir.With) -> Closure:
    value, slot, body = expression(s.value), s.slot, block(s.body)
    where = None if s.target is None else s.target.slot

    def run(f: list) -> Any:
        manager = f[slot] = value(f)
        entered = s.enter.run(manager)
        if where is not None:
            f[where] = entered
        try:
            return body(f)
        finally:
            s.exit.run(manager, None, None, None)

    return run


def _leave(s: ir.Leave) -> Closure:
    word = BREAK if s.word == "break" else CONTINUE
    return lambda f: word


def _return(s: ir.Return) -> Closure:
    value = expression(s.value)

    def leave(f: list) -> str:
        f[-1] = value(f)
        return RETURN

    return leave


def _raise(s: ir.Raise) -> Closure:
    message, kind = None if s.message is None else expression(s.message), s.kind

    def fail(f: list) -> None:
        raise_exception("" if message is None else message(f), kind)

    return fail


_STATEMENTS: dict[type, Callable[[Any], Closure]] = {
    ir.Assign: _assign, ir.Unpack: _unpack, ir.SetAttr: _set_attr, ir.Do: _do, ir.If: _if, ir.While: _while,
    ir.For: _for, ir.With: _with, ir.Leave: _leave, ir.Return: _return, ir.Raise: _raise,
}  # fmt: skip

HOOKS["compile"] = compile_function

"""Custom kernels: a function over elements, over a row, or over an index space.

``elementwise`` makes an op of a function of numbers. The function is run on symbols once, when it is declared. Its
expression becomes vector code for this machine, and its derivative is found from the same expression, to any order.
``row`` makes an op of a function of a row of numbers, with ``sum``, ``max`` and the like over the row. ``grid`` makes
an op of a program that runs for each tile of an index space, with loads, stores, loops and products.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import linecache
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ._core import Tensor
from ._core.mends import not_tensor
from .ops.registry import label_of as _label_of
from .ops.table import composite as _composite
from .ops.table import pointwise as _pointwise

# ---- expressions -----------------------------------------------------------------------------------------------------


class Known(NamedTuple):
    """A function that expressions may have: of numbers, of scalars in a kernel, of tensors; and its derivatives."""

    number: Callable
    scalar: str  #: its name in ``kernels.scalar``, or an operator's
    tensor: str  #: its name in ``taeda``
    slopes: tuple[Callable | None, ...]  #: by each argument, of the arguments and then the result; None: it is 0


class Expression:
    """A value in an expression: its operation and operands. ``kind`` is the name of a function or an operator."""

    __slots__ = ("args", "kind")
    __array_ufunc__ = None

    def __init__(self, kind: str, args: tuple) -> None:
        self.kind, self.args = kind, args

    def __repr__(self) -> str:
        return f"<expression {self.kind}>"

    def __bool__(self) -> bool:
        raise TypeError(
            "a value of an expression is not known when it is declared, so `if`, `and`, `or`, `not`, `min` and `max` "
            "cannot ask for it: use kernel.where(condition, a, b), `&`, `|`, `~`, kernel.minimum and kernel.maximum"
        )

    def _no_number(self, *args: Any) -> Any:
        raise TypeError(
            f"a value of an expression is no number yet, so functions of math and numpy cannot take it: use those of "
            f"taeda.kernel ({', '.join(sorted(FUNCTIONS))})"
        )

    __float__ = __int__ = __index__ = __complex__ = __round__ = __floor__ = __ceil__ = __trunc__ = _no_number

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._no_number()

    def __iter__(self) -> Any:
        raise TypeError("a value of an expression is one number: it has no elements")

    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Any:
        return _made("neg", (self,))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _made("abs", (self,))

    def __invert__(self) -> Any:
        return _made("invert", (self,))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"a value of an expression is a number and has no {name!r}"
            + (f": use kernel.{name}(x)" if name in FUNCTIONS or name in _FOLDS else "")
        )


#: Operations in an expression that have no derivative: comparisons and logic.
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_TRUTHS = {*_COMPARISONS, "and", "or", "invert", "isnan", "isinf", "isfinite"}


def _operator(kind: str, swap: bool = False) -> Callable:
    def apply(self: Expression, other: Any) -> Any:
        if not isinstance(other, (Expression, int, float)):
            return NotImplemented
        return _made(kind, (other, self) if swap else (self, other))

    return apply


for _name in (*_COMPARISONS, *"add sub mul truediv floordiv mod pow and or".split()):
    setattr(Expression, f"__{_name}__", _operator(_name))
    if _name not in _COMPARISONS:
        setattr(Expression, f"__r{_name}__", _operator(_name, True))


def _made(kind: str, args: tuple) -> Any:
    """An expression, in the simplest form that is the same for all numbers."""
    a, b = (*args, None)[:2]
    if kind == "add" and (_is(a, 0) or _is(b, 0)):
        return b if _is(a, 0) else a
    if kind == "mul" and (_is(a, 1) or _is(b, 1)):
        return b if _is(a, 1) else a
    if kind in ("sub", "truediv", "pow") and _is(b, 0 if kind == "sub" else 1):
        return a
    if kind == "pow" and _is(b, 0):
        return 1.0
    return Expression(kind, args)


def _is(x: Any, number: float) -> bool:
    return type(x) in (int, float) and x == number


def _function(name: str) -> Callable:
    known = FUNCTIONS[name]

    def apply(*args: Any) -> Any:
        if len(args) != len(known.slopes):
            raise TypeError(f"kernel.{name} takes {len(known.slopes)} arguments, got {len(args)}")
        for x in args:
            if isinstance(x, Expression) and x.kind == "tile":
                return x._call(name, args)
        if any(isinstance(x, Expression) for x in args):
            wrong = [type(x).__name__ for x in args if not isinstance(x, (Expression, int, float))]
            if wrong:
                raise TypeError(f"kernel.{name}: expected numbers and values of the expression, got {wrong[0]}")
            return _made(name, args)
        if any(isinstance(x, Tensor) for x in args):
            import taeda

            if len(args) == 2:  # ops of two operands that take tensors alone
                like = next(x for x in args if isinstance(x, Tensor))
                args = tuple(x if isinstance(x, Tensor) else taeda.tensor(x, dtype=like.dtype) for x in args)
            return getattr(taeda, known.tensor)(*args)
        return known.number(*args)

    apply.__name__ = apply.__qualname__ = name
    apply.__module__ = __name__
    apply.__doc__ = f"``{name}`` in an expression; of a number or a tensor, its value."
    return apply


_PI = math.pi


def _one(number: Callable, slope: Callable | None, scalar: str = "", tensor: str = "") -> tuple:
    return number, scalar, tensor, (slope,)


if TYPE_CHECKING:
    cos: Any
    cosh: Any
    exp: Any
    log: Any
    rsqrt: Any
    sign: Any
    sin: Any
    sinh: Any
    where: Any

_UNARY: dict[str, tuple] = {
    "abs": _one(builtins.abs, lambda x, y: sign(x)),
    "acos": _one(math.acos, lambda x, y: -rsqrt(1 - x * x)),
    "acosh": _one(math.acosh, lambda x, y: rsqrt(x * x - 1)),
    "asin": _one(math.asin, lambda x, y: rsqrt(1 - x * x)),
    "asinh": _one(math.asinh, lambda x, y: rsqrt(x * x + 1)),
    "atan": _one(math.atan, lambda x, y: 1 / (1 + x * x)),
    "atanh": _one(math.atanh, lambda x, y: 1 / (1 - x * x)),
    "ceil": _one(lambda x: float(math.ceil(x)), None),
    "cos": _one(math.cos, lambda x, y: -sin(x)),
    "cosh": _one(math.cosh, lambda x, y: sinh(x)),
    "erf": _one(math.erf, lambda x, y: 2 / math.sqrt(_PI) * exp(-x * x)),
    "erfc": _one(math.erfc, lambda x, y: -2 / math.sqrt(_PI) * exp(-x * x)),
    "exp": _one(math.exp, lambda x, y: y),
    "exp2": _one(lambda x: 2.0**x, lambda x, y: y * math.log(2)),
    "expm1": _one(math.expm1, lambda x, y: y + 1),
    "floor": _one(lambda x: float(math.floor(x)), None),
    "isfinite": _one(math.isfinite, None),
    "isinf": _one(math.isinf, None),
    "isnan": _one(math.isnan, None),
    "log": _one(math.log, lambda x, y: 1 / x),
    "log10": _one(math.log10, lambda x, y: 1 / (x * math.log(10))),
    "log1p": _one(math.log1p, lambda x, y: 1 / (1 + x)),
    "log2": _one(math.log2, lambda x, y: 1 / (x * math.log(2))),
    "reciprocal": _one(lambda x: 1 / x, lambda x, y: -y * y),
    "round": _one(lambda x: float(builtins.round(x)), None),
    "rsqrt": _one(lambda x: 1 / math.sqrt(x), lambda x, y: -0.5 * y / x),
    "sigmoid": _one(lambda x: 1 / (1 + math.exp(-x)), lambda x, y: y * (1 - y)),
    "sign": _one(lambda x: float((x > 0) - (x < 0)), None),
    "sin": _one(math.sin, lambda x, y: cos(x)),
    "sinh": _one(math.sinh, lambda x, y: cosh(x)),
    "sqrt": _one(math.sqrt, lambda x, y: 0.5 / y),
    "tan": _one(math.tan, lambda x, y: 1 + y * y),
    "tanh": _one(math.tanh, lambda x, y: 1 - y * y),
    "trunc": _one(lambda x: float(math.trunc(x)), None),
}
#: If two numbers are equal, each of the two derivatives of their maximum is a half, as everywhere in taeda.
_OTHERS: dict[str, tuple] = {
    "atan2": (math.atan2, "", "", (lambda a, b, y: b / (a * a + b * b), lambda a, b, y: -a / (a * a + b * b))),
    "hypot": (math.hypot, "", "", (lambda a, b, y: a / y, lambda a, b, y: b / y)),
    "maximum": (builtins.max, "", "", (lambda a, b, y: _first(a > b, a == b), lambda a, b, y: _first(b > a, a == b))),
    "minimum": (builtins.min, "", "", (lambda a, b, y: _first(a < b, a == b), lambda a, b, y: _first(b < a, a == b))),
    "where": (
        lambda c, a, b: a if c else b, "select", "",
        (None, lambda c, a, b, y: where(c, 1.0, 0.0), lambda c, a, b, y: where(c, 0.0, 1.0)),
    ),
}  # fmt: skip


def _first(is_it: Any, both: Any) -> Any:
    return where(is_it, 1.0, where(both, 0.5, 0.0))


FUNCTIONS: dict[str, Known] = {
    name: Known(number, scalar or name, tensor or name, slopes)
    for name, (number, scalar, tensor, slopes) in {**_UNARY, **_OTHERS}.items()
}
#: Operators: the derivatives by their operands.
_OPERATORS: dict[str, tuple] = {
    "add": (lambda a, b, y: 1, lambda a, b, y: 1),
    "sub": (lambda a, b, y: 1, lambda a, b, y: -1),
    "mul": (lambda a, b, y: b, lambda a, b, y: a),
    "truediv": (lambda a, b, y: 1 / b, lambda a, b, y: -y / b),
    "floordiv": (None, None),
    "mod": (lambda a, b, y: 1, lambda a, b, y: -(a // b)),
    "neg": (lambda a, y: -1,),
    "pow": (lambda a, b, y: b * a ** (b - 1), lambda a, b, y: where(_made("eq", (y, 0)), 0.0, y * log(a))),
    **dict.fromkeys((*_COMPARISONS, "and", "or"), (None, None)),
    "invert": (None,),
}

(
    abs, acos, acosh, asin, asinh, atan, atanh, ceil, cos, cosh, erf, erfc, exp, exp2, expm1, floor, isfinite, isinf,
    isnan, log, log10, log1p, log2, reciprocal, round, rsqrt, sigmoid, sign, sin, sinh, sqrt, tan, tanh, trunc, atan2,
    hypot, maximum, minimum, where,
) = map(_function, FUNCTIONS)  # fmt: skip

#: Folds over a row, by name.
_FOLDS = ("sum", "mean", "max", "min", "prod", "var")

#: Further names for functions over an index space, in modules that are read when one is asked for.
_GRID = ("grid", "tune")
_TILES = ("arange", "cdiv", "dot", "full", "rand", "range", "scalar", "tiles", "whole", "zeros")

__all__ = ["elementwise", "row", *FUNCTIONS, *_FOLDS, *_GRID, *_TILES]


def __getattr__(name: str) -> Any:
    if name not in _GRID and name not in _TILES:
        raise AttributeError(f"module 'taeda.kernel' has no attribute {name!r}")
    from . import _grid, _tiles

    found = globals()[name] = getattr(_grid if name in _GRID else _tiles, name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


def _in_order(*ends: Any, known: Any = ()) -> Iterator[Expression]:
    """The expressions that ``ends`` depend on, each after its operands, without those behind ``known`` ids."""
    seen: set[int] = set(known)
    stack: list[tuple[Any, bool]] = [(x, False) for x in reversed(ends)]
    while stack:
        x, done = stack.pop()
        if not isinstance(x, Expression) or id(x) in seen:
            continue
        if done:
            seen.add(id(x))
            yield x
        else:
            stack.append((x, True))
            stack.extend((a, False) for a in reversed(x.args))


def _derivative(result: Any, by: Expression, g: Any) -> Any:
    """``g`` times the derivative of an expression by a symbol."""
    if not isinstance(result, Expression):
        return 0.0
    order = list(_in_order(result))
    depends = {id(by)}
    for x in order:
        if any(isinstance(a, Expression) and id(a) in depends for a in x.args):
            depends.add(id(x))
    if id(result) not in depends:
        return 0.0
    found: dict[int, Any] = {id(result): g}
    for x in reversed(order):
        if id(x) not in found or x is by:
            continue
        slopes = FUNCTIONS[x.kind].slopes if x.kind in FUNCTIONS else _OPERATORS[x.kind]
        for a, slope in zip(x.args, slopes, strict=True):
            if slope is None or not isinstance(a, Expression) or id(a) not in depends:
                continue
            more = found[id(x)] * slope(*x.args, x)
            found[id(a)] = more if id(a) not in found else found[id(a)] + more
    return found.get(id(by), 0.0)


#: Functions in an expression whose kernel has them in place. Those of a longer one are called: from 8 on that takes
#: 0.55 to 1.0 of the time (Zen 3: sin, exp, tanh, log, pow), as several vectors go through side by side; and LLVM takes
#: 10 s for one piece of code with 200 of `sin`.
MOST_IN_PLACE = 7


class _Scalars:
    """Operations of expressions on the values of kernels."""

    def __init__(self, like: Any, long: bool = False) -> None:
        from .kernels import scalar

        self.s, self.like = scalar, like
        self.long = long and like.fn.threads == 1  #: whether functions are called

    def run(self, kind: str, args: list) -> Any:
        s = self.s
        if kind in FUNCTIONS:
            name = FUNCTIONS[kind].scalar
            if name == "select":
                condition, *rest = args
                return s.select(condition, *(self._value(x) for x in rest))
            return self._function(name, args)
        if kind == "neg":
            return -args[0]
        if kind == "invert":
            return ~args[0]
        if kind == "pow":
            return self._power(*args)
        if kind in ("floordiv", "mod"):
            return self._function("floor_divide" if kind == "floordiv" else "remainder", args)
        a, b = args
        a = a if hasattr(a, "fn") else self._value(a)
        if hasattr(b, "fn") and b.type is not a.type:  # a truth value counts as 0 or 1
            a, b = (a.to(b.type), b) if a.type.kind == "b" else (a, b.to(a.type))
        return getattr(a, f"__{kind}__")(b)

    def _function(self, name: str, args: Sequence) -> Any:
        body, values = getattr(self.s, name), [self._value(x) for x in args]
        return self.like.fn.called(name, body, *values) if self.long else body(*values)

    def _value(self, x: Any) -> Any:
        return x if hasattr(x, "fn") else self.s.constant(self.like, x)

    def _power(self, a: Any, b: Any) -> Any:
        if isinstance(b, (int, float)) and b == int(b) and 0 < builtins.abs(b) <= 16:
            made: Any = None
            square, n = a, int(builtins.abs(b))
            while n:
                if n & 1:
                    made = square if made is None else made * square
                square, n = square * square, n >> 1
            return made if b > 0 else 1 / made
        if isinstance(b, (int, float)) and b == 0.5:
            return self.s.sqrt(a)
        return self._function("pow", (a, b))


#: Operators as functions of tensors, where these have other names.
_OF_TENSORS = {
    "truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder", "and": "logical_and",
    "or": "logical_or", "invert": "logical_not",
}  # fmt: skip


class _Tensors:
    """The same on tensors."""

    def run(self, kind: str, args: list) -> Any:
        import taeda

        if kind in FUNCTIONS:
            return globals()[kind](*args)
        if kind in _OF_TENSORS or kind == "pow":
            return getattr(taeda, _OF_TENSORS.get(kind, kind))(*args)
        import operator

        return getattr(operator, kind)(*args)


def _functions(end: Any) -> int:
    """The number of functions of an expression whose code may be long."""
    return builtins.sum(_is_function(x.kind) for x in _in_order(end))


def _is_function(kind: str) -> bool:
    return kind in FUNCTIONS or kind in ("floordiv", "mod", "pow")


def _evaluated(ends: Sequence, symbols: Sequence[Expression], values: Sequence, machine: Any) -> list:
    """``ends`` with ``values`` in the place of ``symbols``."""
    known = {id(x): value for x, value in zip(symbols, values, strict=True)}
    for x in _in_order(*ends, known=known):
        if id(x) not in known:
            args = [known[id(a)] if isinstance(a, Expression) else a for a in x.args]
            known[id(x)] = machine.run(x.kind, args)
    return [known[id(x)] if isinstance(x, Expression) else x for x in ends]


# ---- elements --------------------------------------------------------------------------------------------------------


class _Traced:
    """A function of numbers, by its result on symbols."""

    def __init__(self, function: Callable, label: str) -> None:
        self.function, self.label = function, label
        signature = inspect.signature(function)
        self.names = list(signature.parameters)
        kinds = {p.kind for p in signature.parameters.values()}
        if not kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}:
            raise TypeError(f"{label}: expected parameters that go by position, without * and **, got {signature}")
        empty = inspect.Parameter.empty
        self.defaults = [p.default for p in signature.parameters.values() if p.default is not empty]
        self.operands = len(self.names) - len(self.defaults)
        taken = {"g", "needs", "out"} & set(self.names)
        if taken:
            raise TypeError(f"{label}: {taken.pop()!r} has a meaning in derivatives; give the parameter another name")
        if not self.operands:
            raise TypeError(f"{label}: expected a parameter without a default, for a tensor, got {signature}")
        self.made: dict[tuple, tuple] = {}

    def on_symbols(self, values: Sequence) -> tuple[list, Any]:
        """The symbols of parameters that are numbers, None for others, and the expression; ``values`` has those."""
        fixed = tuple(None if i < self.operands or _is_value(x) else (x,) for i, x in enumerate(values))
        if fixed not in self.made:
            pairs = zip(self.names, fixed, strict=True)
            symbols = [Expression(f"symbol {n}", ()) if f is None else None for n, f in pairs]
            given = [s if f is None else f[0] for s, f in zip(symbols, fixed, strict=True)]
            self.made[fixed] = symbols, self.run(given)
        return self.made[fixed]

    def run(self, given: Sequence) -> Any:
        """The function's result; its errors name the line that they are about."""
        try:
            result = self.function(*given)
        except Exception as error:
            raise _with_line(self, error) from error
        if not isinstance(result, (Expression, int, float)):
            raise TypeError(
                f"{self.label}: expected the function to give one value of the expression, got {type(result).__name__}"
                f"{_place(self.function.__code__.co_filename, self.function.__code__.co_firstlineno)}"
            )
        return result

    def by_values(self, *values: Any) -> Any:
        """The expression on values of a kernel, or on symbols."""
        symbols, result = self.on_symbols(values)
        used = [(s, v) for s, v in zip(symbols, values, strict=True) if s is not None]
        if any(isinstance(v, Expression) for _, v in used):
            (made,) = _evaluated([result], [s for s, _ in used], [v for _, v in used], _Symbols())
            return made
        machine = _Scalars(values[0], _functions(result) > MOST_IN_PLACE)
        (made,) = _evaluated([result], [s for s, _ in used], [v for _, v in used], machine)
        return machine._value(made)

    def by_tensors(self, *values: Any) -> Any:
        """The expression as ops on tensors: what programs that are recorded have."""
        symbols, result = self.on_symbols(values)
        used = [(s, v) for s, v in zip(symbols, values, strict=True) if s is not None]
        (made,) = _evaluated([result], [s for s, _ in used], [v for _, v in used], _Tensors())
        return made


class _Symbols:
    """Operations of expressions on expressions."""

    def run(self, kind: str, args: list) -> Any:
        return _made(kind, tuple(args))


def _is_value(x: Any) -> bool:
    """Whether an argument reaches the expression as a number that it is computed with, and not as it is."""
    number = isinstance(x, (int, float)) and not isinstance(x, bool)
    return number or isinstance(x, (Expression, Tensor)) or hasattr(x, "fn")


def _place(file: str, line: int) -> str:
    return f'\n  File "{file}", line {line}\n    {linecache.getline(file, line).strip()}'


def _with_line(traced: Any, error: Exception, allowed: str | None = None) -> Exception:
    """``error`` with the user's line in which it is: the last one outside of this package."""
    at, found, package = error.__traceback__, None, __file__.rpartition("kernel.py")[0]
    while at is not None:
        if not at.tb_frame.f_code.co_filename.startswith((package, "taeda/", "<")):
            found = at.tb_frame.f_code.co_filename, at.tb_lineno
        at = at.tb_next
    kind = type(error) if isinstance(error, (TypeError, ValueError, AttributeError, NameError)) else TypeError
    text = f"{traced.label}: {error}"
    if not isinstance(error, (TypeError, AttributeError)) or "expression" not in str(error):
        known = ", ".join(sorted(FUNCTIONS))
        text += ". " + (
            allowed or f"In an expression stand + - * / // % ** comparisons & | ~, and of taeda.kernel {known}"
        )
    return kind(text + (_place(*found) if found is not None else ""))


def _named_function(names: Sequence[str], defaults: Sequence, run: Callable, like: Callable, doc: str | None) -> Any:
    """A function of parameters ``names``, the last of which have ``defaults``, that calls ``run`` with all of them."""
    first = len(names) - len(defaults)
    given = ", ".join(n if i < first else f"{n}=_defaults[{i - first}]" for i, n in enumerate(names))
    made = eval(f"lambda {given}: _run({', '.join(names)})", {"_run": run, "_defaults": list(defaults)})
    made.__name__ = made.__qualname__ = like.__name__
    made.__module__, made.__doc__ = like.__module__, doc
    return made


def _declare(traced: _Traced, name: str, promote: str, like: Callable, doc: str | None) -> Any:
    """The op of an expression, which differentiates itself when it is asked."""
    body = _named_function(traced.names, traced.defaults, traced.by_values, like, doc)
    decomposition = _named_function(traced.names, traced.defaults, traced.by_tensors, like, doc)
    return _pointwise(
        name=name, promote=promote, inplace=False, method=False, decomposition=decomposition,
        dtypes=("float",) if promote == "float" else ("int", "float"),
    )(body)  # fmt: skip


def _derived(op: Any, traced: _Traced, promote: str, like: Callable) -> None:
    """Give ``op`` derivatives by its operands, each an op that is made at its first use."""

    def of(i: int) -> Callable:
        @functools.cache
        def slope() -> Any:
            def gradient(g: Any, *values: Any) -> Any:
                symbols, result = traced.on_symbols(values)
                made = _derivative(result, symbols[i], g_symbol)
                pairs = [(s, v) for s, v in zip([g_symbol, *symbols], [g, *values], strict=True) if s is not None]
                (value,) = _evaluated([made], [s for s, _ in pairs], [v for _, v in pairs], _Symbols())
                return value

            g_symbol = Expression("symbol g", ())
            names = ["_g" * (builtins.max([n.count("_g") for n in traced.names]) + 1), *traced.names]
            label = f"{op.name}_by_{traced.names[i]}"
            function = _named_function(names, traced.defaults, gradient, like, None)
            function.__name__ = function.__qualname__ = label.rpartition("::")[2]
            inner = _Traced(function, label)
            doc = f"The derivative of :func:`{op.name}` by ``{traced.names[i]}``."
            made = _declare(inner, label, promote, like, doc)
            _derived(made, inner, promote, like)
            return made

        return lambda g, *values: slope()(g, *values)

    # a parameter of the function may be called g: it is `_g` to its derivative
    rules = {}
    for i, n in enumerate(traced.names[: traced.operands]):
        scope = {"_run": of(i)}
        rules[n] = eval(f"lambda g, {', '.join(traced.names)}: _run(g, {', '.join(traced.names)})", scope)
    op.vjp(**rules)


def _decorated(what: str, function: Any, decorate: Callable) -> Any:
    if function is None:
        return decorate
    if not callable(function):
        raise TypeError(
            f"kernel.{what}: expected a function, got {function!r}; the name of an op is a keyword: name={function!r}"
        )
    return decorate(function)


def elementwise(
    function: Callable | None = None, /, *, name: str | None = None, promote: str = "float",
    grad: dict[str, Callable] | Callable | None = None,
) -> Any:  # fmt: skip
    """Make an op of a function of numbers, which computes each element of its result from those at the same place.

    Parameters without a default are tensors or numbers, which broadcast. The others are numbers or settings that one
    call has for all elements. The function is written with operators and the functions of this module. It is compiled
    for the machine when it is first used, fused with its neighbours under ``taeda.compile``, and runs under ``vmap``
    and on device meta.

    Args:
        function: what is computed; also a decorator.
        name: of the op, ``"mylib::softabs"``; by default the function's name in the namespace of its package or file.
            An op never takes the place of one of the library's.
        promote: ``"float"``: integers are computed with as floating point. ``"type"``: in the operands' dtype.
        grad: the derivative, instead of the one that follows from the expression: by parameter, functions of ``g``, the
            gradient of the result, and of parameters, by their names; ``out`` is the result. They are written in ops.

    Returns:
        The op, a function of tensors, with the signature of ``function`` and ``out=``.

    Raises:
        TypeError: the function asks for what values of an expression do not have; the error shows the line.
        ValueError: the name is the library's, or is no name.

    Example:
        >>> @taeda.kernel.elementwise(name="doc::softabs")
        ... def softabs(x, sharpness=1.0):
        ...     return taeda.kernel.sqrt(1 + (sharpness * x) ** 2) - 1
        >>> x = taeda.tensor([0.0, 3.0], requires_grad=True)
        >>> softabs(x, 4 / 3).sum().backward()
        >>> x.grad
        tensor([0.0000, 1.2935])
    """

    def decorate(fn: Callable) -> Any:
        if promote not in ("float", "type"):
            raise ValueError(f"kernel.elementwise: expected promote 'float' or 'type', got {promote!r}")
        fn.__module__ = fn.__module__ or "__main__"  # code that is run by itself
        label = _label_of(fn, name)
        traced = _Traced(fn, label)
        _, made = traced.on_symbols([*(0.0,) * traced.operands, *traced.defaults])  # errors are the declaration's
        if any(x.kind.startswith("fold ") for x in _in_order(made)):
            raise TypeError(f"{label}: folds over a row, such as kernel.sum, are for kernel.row")
        if isinstance(made, Expression) and made.kind in _TRUTHS:
            raise TypeError(f"{label}: the function gives a truth value; give a number, kernel.where(c, 1.0, 0.0)")
        op = _declare(traced, label, promote, fn, fn.__doc__)
        if grad is None:
            _derived(op, traced, promote, fn)
        elif callable(grad):
            op.vjp(**{traced.names[0]: grad})
        elif grad:
            op.vjp(**grad)
        return op

    return _decorated("elementwise", function, decorate)


# ---- rows ------------------------------------------------------------------------------------------------------------


def _fold(name: str) -> Callable:
    def fold(x: Any, axis: int | None = None) -> Any:
        if isinstance(x, Expression) and x.kind == "tile":
            return x._fold(name, axis)
        if axis is not None:
            raise TypeError(
                f"kernel.{name}: an axis is for a tile of kernel.grid; a fold of kernel.row is over the row"
            )
        if not isinstance(x, (Expression, int, float)):
            raise TypeError(
                f"kernel.{name}: expected a value of the expression of a kernel.row, got {type(x).__name__}"
            )
        return Expression(f"fold {name}", (x,))

    fold.__name__ = fold.__qualname__ = name
    fold.__module__ = __name__
    fold.__doc__ = (
        f"The ``{name}`` over the row, in an expression of :func:`row`; in a function of :func:`grid` that of a tile, "
        f"over ``axis`` or all of it."
    )
    return fold


sum, mean, max, min, prod = map(_fold, ("sum", "mean", "max", "min", "prod"))


def var(x: Any) -> Any:
    """The variance over the row, with division by the number of elements, in an expression of :func:`row`."""
    apart = x - mean(x)
    return mean(apart * apart)


def _reduced(kind: str, x: Tensor, dim: int) -> Tensor:
    fold = kind.removeprefix("fold ")
    if fold in ("max", "min"):
        return x.amax(dim, True) if fold == "max" else x.amin(dim, True)
    return getattr(x, fold)(dim, keepdim=True)


def row(function: Callable | None = None, /, *, name: str | None = None) -> Any:
    """Make an op of a function of a row: of elements along one dimension, and of folds over them.

    ``sum``, ``mean``, ``var``, ``max``, ``min`` and ``prod`` of this module give one number for each row. Where nothing
    is recorded for a gradient, an expression of at most 100 operations on contiguous operands with rows of at most
    8192 elements along the last dimension is computed by one kernel for the whole row. Else what stands between folds
    is computed by kernels of :func:`elementwise`: the op is written in these and in reductions, so it has a derivative
    to any order, and runs under ``vmap``, ``taeda.compile``, on device meta and in exported programs.

    Args:
        function: what is computed of a row; also a decorator. Its parameters are tensors or numbers, which broadcast.
        name: of the op, as of :func:`elementwise`.

    Returns:
        The op: a function of tensors, and of ``dim``, the dimension of a row (-1). Where the function gives one
        number for each row, the result lacks that dimension.

    Raises:
        TypeError: the function asks for what values of an expression do not have; the error shows the line.
        ValueError: the name is the library's, or is no name.

    Example:
        >>> @taeda.kernel.row(name="doc::softmax")
        ... def softmax(x):
        ...     e = taeda.kernel.exp(x - taeda.kernel.max(x))
        ...     return e / taeda.kernel.sum(e)
        >>> softmax(taeda.tensor([[0.0, 0.0], [0.0, 200.0]]))
        tensor([[0.5000, 0.5000],
                [0.0000, 1.0000]])
    """

    def decorate(fn: Callable) -> Any:
        fn.__module__ = fn.__module__ or "__main__"  # code that is run by itself
        label = _label_of(fn, name)
        traced = _Traced(fn, label)
        if "dim" in traced.names:
            raise TypeError(
                f"{label}: 'dim' is the dimension of a row, which the op takes; call the parameter otherwise"
            )
        symbols = [Expression(f"symbol {n}", ()) for n in traced.names]
        result = traced.run(symbols)
        folds = [x for x in _in_order(result) if x.kind.startswith("fold ")]
        ends = [x.args[0] for x in folds] + ([] if any(result is x for x in folds) else [result])
        leaves = [*symbols, *folds]
        of_elements = symbols[: traced.operands]
        by_row = not any(x is y for x in _until(result, leaves) for y in of_elements)
        steps = [_part(f"{label}_part{i}", end, leaves, fn) for i, end in enumerate(ends)]

        @functools.cache
        def one_kernel() -> Any:
            from ._row import OneKernel

            return OneKernel(label, symbols, traced.names, result, by_row)

        def run(*given: Any) -> Tensor:
            *values, dim = given
            tensors = [x for x in values if isinstance(x, Tensor)]
            if not tensors:
                raise TypeError(f"{label}(): expected a tensor, got {', '.join(type(x).__name__ for x in values)}")
            for n, x in zip(traced.names, values, strict=True):
                if not isinstance(x, (Tensor, int, float)):
                    raise not_tensor(f"{label}(): argument {n!r}", x)
            rank = builtins.max(x.dim() for x in tensors)
            if not rank:
                raise IndexError(f"{label}(): expected a tensor with a dimension to be the row, got one of none")
            if not -rank <= dim < rank:
                raise IndexError(
                    f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
                )
            dim = dim - rank if dim >= 0 else dim  # operands of fewer dimensions broadcast: it counts from the end
            if folds:
                whole = one_kernel()(values, dim)
                if whole is not None:
                    return whole
            for fold, step in zip(folds, steps, strict=False):
                values.append(_reduced(fold.kind, _spread(step(values), tensors), dim))
            if len(steps) > len(folds):
                made = steps[-1](values)
            else:
                made = next(v for x, v in zip(leaves, values, strict=True) if x is result)
            return made.squeeze(dim) if by_row else made

        made = _named_function([*traced.names, "dim"], [*traced.defaults, -1], run, fn, fn.__doc__)
        made.__name__ = made.__qualname__ = label
        made.__annotations__ = {"dim": "int"}
        return _composite(method=False)(made)

    return _decorated("row", function, decorate)


def _spread(x: Any, tensors: Sequence[Tensor]) -> Tensor:
    """The operand of a fold: ``x``, broadcast to the sizes of the operands."""
    import taeda

    shape = taeda.broadcast_shapes(*(t.shape for t in tensors))
    if not isinstance(x, Tensor):
        return taeda.full(shape, x, dtype=tensors[0].dtype)
    return x if x.shape == shape else x.expand(taeda.broadcast_shapes(shape, x.shape))


def _part(label: str, end: Any, leaves: Sequence[Expression], like: Callable) -> Callable:
    """A function that computes an expression from the values of ``leaves``, those before it."""
    used = [i for i, x in enumerate(leaves) if any(x is y for y in _until(end, leaves))]
    if not isinstance(end, Expression) or any(end is x for x in leaves):
        return lambda values: values[used[0]] if used else end
    if len(used) > 7:
        raise TypeError(f"{label}: an expression between folds has at most 7 operands and folds, got {len(used)}")
    names = [f"x{i}" for i in used]
    chosen = [leaves[i] for i in used]

    def again(*values: Any) -> Any:
        return _evaluated([end], chosen, values, _Symbols())[0]

    function = _named_function(names, [], again, like, None)
    function.__name__ = function.__qualname__ = label.rpartition("::")[2]
    traced = _Traced(function, label)
    op = _declare(traced, label, "float", like, "A part of a kernel of rows.")
    _derived(op, traced, "float", like)
    return lambda values: op(*(values[i] for i in used))


def _until(end: Any, leaves: Sequence[Expression]) -> list:
    """The leaves that an expression is computed from; expressions behind a leaf do not count."""
    found, stack, seen = [], [end], set()
    while stack:
        x = stack.pop()
        if not isinstance(x, Expression) or id(x) in seen:
            continue
        seen.add(id(x))
        if any(x is leaf for leaf in leaves):
            found.append(x)
        else:
            stack.extend(x.args)
    return found

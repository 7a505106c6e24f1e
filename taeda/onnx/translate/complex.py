"""Complex numbers, which ONNX's ops do not have: pairs of real values."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from taeda.export._functions import table as known_functions
from taeda.fx.node import map_aggregate

from ..._core import bool_, complex32, complex64, complex128, float16, float32, float64, get_default_dtype
from ..._typed import Tensor
from ...ops.table import trait
from ..writer import Unsupported, Value, Writer
from .elementwise import atan2, floating
from .linear import matmul
from .table import TRANSLATORS

#: The dtype of the parts of a complex dtype.
PARTS = {complex64: float32, complex128: float64, complex32: float16}
#: Ops of which each part's result follows from the same part alone. Views and what moves elements are such ops too.
_APART = """
    identity as_strided tril triu constant_pad_nd operator.getitem gather add sub neg sum mean cumsum where where_select
    zeros ones full full_like select_scatter slice_scatter index_put scatter scatter_add index_add
""".split()
#: The arguments of those that are never complex, whatever dtype they have.
_REAL_FIRST = frozenset("where where_select".split())
COMPLEX: dict[str, Callable] = {}
#: Functions whose ops are written for complex numbers alone.
_ALWAYS: set[Callable] = set()


class Pair:
    """The real and the imaginary part of a value."""

    __slots__ = ("imag", "real")

    def __init__(self, real: Value, imag: Value) -> None:
        self.real, self.imag = real, imag

    def __iter__(self) -> Iterator[Value]:
        return iter((self.real, self.imag))

    def __getitem__(self, place: int) -> Value:
        return (self.real, self.imag)[place]

    @property
    def shape(self) -> Any:
        """The sizes of the complex tensor."""
        return self.real.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return self.real.rank


class Form(NamedTuple):
    """The sizes and the dtype of a part."""

    shape: Any
    dtype: Any


def is_complex(x: Any) -> bool:
    """Whether the form of a value has a complex dtype."""
    return isinstance(x, (Tensor, Value)) and x.dtype in PARTS


def of_pairs(names: str, always: bool = False) -> Callable:
    """Decorator: the function writes the ops ``names`` where an argument or a result is complex.

    With ``always`` the ops are written for complex numbers alone.
    """

    def register(function: Callable) -> Callable:
        if always:
            _ALWAYS.add(function)
        for name in names.split():
            COMPLEX[name] = function
        return function

    return register


@functools.cache
def _by_function() -> dict[Any, Callable]:
    known = known_functions()
    names = {n: known.get(f"op.{n}") or known[n] for n in (*TRANSLATORS, *COMPLEX)}
    apart = [n for n, f in names.items() if n in _APART or trait(f, "view") or trait(f, "moves")]
    return {names[n]: f for n, f in {**{n: functools.partial(_apart, n) for n in apart}, **COMPLEX}.items()}


def targets() -> set[Any]:
    """Ops that are written for complex numbers alone."""
    return {function for function, f in _by_function().items() if f in _ALWAYS}


def translator_of(function: Any) -> Callable:
    """The function that writes a call with complex numbers.

    Args:
        function: the function of taeda that is called.

    Returns:
        A translator.

    Raises:
        Unsupported: nothing does.
    """
    found = _by_function().get(function)
    if found is None:
        raise Unsupported(
            "ONNX's ops have no complex numbers, and this one is not written in real ones; use view_as_real"
        )
    return found


def _apart(name: str, g: Writer, *args: Any, **kwargs: Any) -> Any:
    """The op on the real parts, and on the imaginary parts."""
    form = g.result
    results = []
    for place in (0, 1):
        if isinstance(form, tuple):
            g.result = tuple(_part_form(f) for f in form)
        else:
            g.result = _part_form(form)
        given = args
        if name in _REAL_FIRST:
            given = (args[0], *(_part(g, x, place, True) for x in args[1:]))
        elif name in ("full", "full_like"):
            given = (*(_only(x, place) for x in args[:-1]), _part(g, args[-1], place, True))
        elif name == "ones" and place:
            made = TRANSLATORS[name](g, *map_aggregate(args, lambda x: _only(x, 0)), **kwargs)
            results.append(g.Mul(made, 0.0, shape=made.shape))
            continue
        elif name in ("add", "sub"):
            given = tuple(_part(g, x, place, True) for x in args)
        elif name in ("cat", "select_scatter", "slice_scatter"):
            given = map_aggregate(args, lambda x, place=place: _part(g, x, place))
        else:
            given = map_aggregate(args, lambda x, place=place: _only(x, place))
        results.append(TRANSLATORS[name](g, *given, **kwargs))
    g.result = form
    if isinstance(results[0], tuple):
        return tuple(Pair(a, b) for a, b in zip(*results, strict=True))
    return Pair(*results)


def _part_form(form: Any) -> Form:
    return Form(tuple(form.shape), PARTS.get(form.dtype, form.dtype))


def _only(x: Any, place: int) -> Any:
    return x[place] if isinstance(x, Pair) else x


def _part(g: Writer, x: Any, place: int, numbers: bool = False) -> Any:
    """The part of a value, which may be real, and of a number where ``numbers`` are elements; else the thing itself."""
    if isinstance(x, Pair):
        return x[place]
    if isinstance(x, complex):
        return (x.real, x.imag)[place]
    if isinstance(x, Value) and not x.is_size and x.dtype is not bool_ and place:
        return g.Mul(floating(g, x), 0.0, shape=x.shape)
    return 0.0 if numbers and place and isinstance(x, (int, float)) else x


def pair(g: Writer, x: Any, like: Any = None) -> Pair:
    """A value, or a number of the dtype of the parts of ``like``, as a pair."""
    if isinstance(x, Pair):
        return x
    if isinstance(x, Value):
        x = floating(g, g.scalar(x))
        return Pair(x, g.Mul(x, 0.0, shape=x.shape))
    dtype = like.real.dtype if isinstance(like, Pair) else get_default_dtype()
    number = complex(x)
    return Pair(g.constant(number.real, dtype), g.constant(number.imag, dtype))


def joined(g: Writer, x: Pair) -> Value:
    """The parts in a last dimension."""
    return g.Concat(*(g.Unsqueeze(part, [-1]) for part in x), axis=-1, shape=None if x.shape is None else (*x.shape, 2))


def parted(g: Writer, x: Value) -> Pair:
    """The two parts that a last dimension has."""
    shape = tuple(x.shape[:-1])
    return Pair(*(g.Squeeze(part, [-1], shape=shape) for part in g.split(x, [1, 1], -1)))


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def _times(g: Writer, a: Pair, b: Pair, product: Callable) -> Pair:
    return Pair(
        g.Sub(product(a.real, b.real), product(a.imag, b.imag)), g.Add(product(a.real, b.imag), product(a.imag, b.real))
    )


def _both(g: Writer, input: Any, other: Any) -> tuple[Pair, Pair]:
    a, b = pair(g, input, other), pair(g, other, input)
    dtype = PARTS[g.result.dtype] if is_complex(g.result) else a.real.dtype
    return tuple(Pair(*(g.cast(part, dtype) for part in x)) for x in (a, b))  # type: ignore[return-value]


@of_pairs("mul")
def mul(g: Writer, input: Any, other: Any) -> Pair:
    return _times(g, *_both(g, input, other), g.Mul)


@of_pairs("matmul mm bmm mv dot")
def product(g: Writer, input: Any, other: Any) -> Pair:
    return _times(g, *_both(g, input, other), lambda a, b: matmul(g, a, b))


@of_pairs("true_divide div")
def divide(g: Writer, input: Any, other: Any, **options: Any) -> Pair:
    a, b = _both(g, input, other)
    size = g.Add(g.Mul(b.real, b.real), g.Mul(b.imag, b.imag))
    made = _times(g, a, Pair(b.real, g.Neg(b.imag)), g.Mul)
    return Pair(*(g.Div(part, size) for part in made))


@of_pairs("reciprocal")
def reciprocal(g: Writer, input: Pair) -> Pair:
    return divide(g, 1.0, input)


of_pairs("square")(lambda g, input: mul(g, input, input))


@of_pairs("power pow")
def power(g: Writer, input: Pair, exponent: Any) -> Pair:
    if exponent not in (2, 3):
        raise Unsupported("powers of complex numbers other than 2 and 3")
    squared = mul(g, input, input)
    return squared if exponent == 2 else mul(g, squared, input)


@of_pairs("conj conj_physical conjugated conjugated_view", always=True)
def conj(g: Writer, input: Pair) -> Pair:
    return Pair(input.real, g.Neg(input.imag, shape=input.shape))


@of_pairs("abs")
def abs_(g: Writer, input: Pair) -> Value:
    return g.Sqrt(g.Add(g.Mul(input.real, input.real), g.Mul(input.imag, input.imag)))


@of_pairs("angle")
def angle(g: Writer, input: Pair) -> Value:
    return atan2(g, input.imag, input.real)


@of_pairs("exp")
def exp(g: Writer, input: Pair) -> Pair:
    size = g.Exp(input.real)
    return Pair(g.Mul(size, g.Cos(input.imag)), g.Mul(size, g.Sin(input.imag)))


@of_pairs("sigmoid")
def sigmoid(g: Writer, input: Pair) -> Pair:
    below = exp(g, Pair(g.Neg(input.real), g.Neg(input.imag)))
    return divide(g, 1.0, Pair(g.Add(below.real, 1.0), below.imag))


of_pairs("silu nn.functional.silu")(lambda g, input, inplace=False: mul(g, input, sigmoid(g, input)))


@of_pairs("log")
def log(g: Writer, input: Pair) -> Pair:
    return Pair(g.Log(abs_(g, input)), angle(g, input))


@of_pairs("eq")
def eq(g: Writer, input: Any, other: Any) -> Value:
    a, b = _both(g, input, other)
    return g.And(g.Equal(a.real, b.real), g.Equal(a.imag, b.imag))


# ---- parts -----------------------------------------------------------------------------------------------------------


@of_pairs("real")
def real(g: Writer, input: Any) -> Value:
    return pair(g, input).real


@of_pairs("imag imag_view", always=True)
def imag(g: Writer, input: Pair) -> Value:
    return input.imag


@of_pairs("view_as_real")
def view_as_real(g: Writer, input: Pair) -> Value:
    return joined(g, input)


@of_pairs("view_as_complex")
def view_as_complex(g: Writer, input: Value) -> Pair:
    return parted(g, input)


@of_pairs("complex", always=True)
def complex_(g: Writer, real: Value, imag: Value) -> Pair:
    shape = tuple(g.result.shape)
    zero = g.Mul(g.Add(real, imag), 0.0)
    return Pair(g.Add(real, zero, shape=shape), g.Add(imag, zero, shape=shape))


of_pairs("resolved resolve_conj resolve_neg")(lambda g, input: input)


@of_pairs("to_dtype Tensor.to Tensor.type")
def to(g: Writer, input: Any, *args: Any, **options: Any) -> Any:
    if not is_complex(g.result):
        return g.cast(input.real, g.result.dtype)
    return Pair(*(g.cast(part, PARTS[g.result.dtype]) for part in pair(g, input)))


of_pairs("step.sym_size")(lambda g, x, dim: g.size(x.real, dim))


# ---- Fourier transforms ----------------------------------------------------------------------------------------------


def _transform(g: Writer, x: Any, dim: int, forward: bool, onesided: bool = False) -> Any:
    """The node DFT along one dimension: the inverse has a factor of 1 / n. It wants a batch in front."""
    rank = x.rank
    signal = joined(g, x) if isinstance(x, Pair) else g.Unsqueeze(x, [-1])
    signal = g.Unsqueeze(signal, [0])
    axis, options = dim % rank + 1, {"inverse": int(not forward), "onesided": int(onesided)}
    if g.opset >= 20:
        made = g.DFT(signal, None, g.constant(axis), **options)
    else:
        made = g.DFT(signal, axis=axis, **options)
    made = g.Squeeze(made, [0], shape=(*([None] * rank), 2))
    return parted(g, made)


def _product(g: Writer, *factors: Any) -> Any:
    """A product of numbers, some of which may be sizes that are not fixed: then a float64 value."""
    values = [g.cast(x, float64) for x in factors if isinstance(x, Value)]
    known = math.prod(x for x in factors if not isinstance(x, Value))
    return functools.reduce(lambda a, b: g.Mul(a, b, shape=()), values, float(known)) if values else known


def _count(g: Writer, x: Pair, dims: Sequence[int]) -> Any:
    """The product of sizes: what undoes the factor of inverse transforms."""
    return _product(g, *(g.size(x.real, d) for d in dims))


def _scaled(g: Writer, x: Pair, factor: Any) -> Pair:
    if isinstance(factor, Value):
        return Pair(*(g.Mul(part, g.cast(factor, part.dtype)) for part in x))
    return x if factor == 1 else Pair(*(g.Mul(part, float(factor)) for part in x))


@of_pairs("fft_c2c", always=True)
def fft_c2c(g: Writer, input: Any, dims: Sequence[int], forward: bool, scale: float) -> Pair:
    x = pair(g, input)
    factor = scale if forward else _product(g, scale, _count(g, x, dims))
    for dim in dims:
        x = _transform(g, x, dim, forward)
    return _scaled(g, x, factor)


@of_pairs("fft_r2c", always=True)
def fft_r2c(g: Writer, input: Value, dims: Sequence[int], scale: float, onesided: bool = True) -> Pair:
    if not onesided:
        return fft_c2c(g, input, dims, True, scale)
    made = _transform(g, input, dims[-1], True, True)
    for dim in dims[:-1]:
        made = _transform(g, made, dim, True)
    return _scaled(g, made, scale)


@of_pairs("fft_c2r", always=True)
def fft_c2r(g: Writer, input: Any, dims: Sequence[int], n: int, scale: float) -> Value:
    """The other half of the last dimension is the conjugate of the first, backwards."""
    x = pair(g, input)
    scale = _product(g, scale, _count(g, x, dims[:-1]), n)
    middle, start = (
        (n // 2 + 1, (n - 1) // 2)
        if not isinstance(n, Value)
        else (g.Add(g.Div(n, 2), 1, shape=(1,)), g.Div(g.Sub(n, 1), 2, shape=(1,)))
    )
    for dim in dims[:-1]:
        x = _transform(g, x, dim, False)
    last, parts = dims[-1] % input.rank, []
    for part, sign in zip(x, (1.0, -1.0), strict=True):
        half = g.slice(part, [0], [middle], [last])
        tail = g.slice(part, [start], [0], [last], [-1])
        parts.append(g.Concat(half, g.Mul(tail, sign), axis=last, shape=input.shape))
    return _scaled(g, _transform(g, Pair(*parts), last, False), scale).real

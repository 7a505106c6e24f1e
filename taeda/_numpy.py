"""NumPy's functions on tensors that require grad: each is computed by ops, which are recorded.

``np.sin(t)`` and ``np.stack([t, u])`` come here by ``__array_ufunc__`` and ``__array_function__`` (``ops/exchange.py``)
where a tensor among the arguments requires grad. A rule has the name, the arguments and the defaults of NumPy's
function, and gives tensors. What has no rule is computed by NumPy, and is an error where that would lose a gradient.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

import taeda

from ._core import Tensor
from .ops.table import trait

#: By NumPy's function: what computes it.
FUNCTIONS: dict[Any, Callable] = {}
#: By ufunc: what computes it on tensors and numbers of one dtype.
UFUNCS: dict[Any, Callable] = {}
#: Functions whose results have no gradient: they are given the values.
CONSTANT: set = set()
#: Functions of :data:`CONSTANT` that need NumPy's arrays.
OF_ARRAYS: set = set()


def _found(path: str) -> Any:
    """A function of NumPy by its path; None if this NumPy has none."""
    at: Any = np
    for name in path.split("."):
        at = getattr(at, name, None)
    return at


def rule(*paths: str) -> Callable:
    """Decorator: the rule of NumPy's functions of these names, ``"linalg.solve"``."""

    def decorate(function: Callable) -> Callable:
        for path in paths:
            if _found(path) is not None:
                FUNCTIONS[_found(path)] = function
        return function

    return decorate


def run(function: Any, args: tuple, kwargs: dict) -> Any:
    """NumPy's ``function`` by its rule; NotImplemented where it has none.

    Raises:
        TypeError: the rule does not take an argument that was given.
    """
    if function in CONSTANT:
        given = _arrays if function in OF_ARRAYS else _values
        return function(*given(args), **given(kwargs))
    made = FUNCTIONS.get(function)
    if made is None:
        return NotImplemented
    kwargs = {k: v for k, v in kwargs.items() if v is not np._NoValue and not (k in _USUAL and v == _USUAL[k])}
    try:
        bound = inspect.signature(made).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"numpy.{function.__name__} of a tensor that requires grad: {error}") from None
    return made(*bound.args, **bound.kwargs)


#: Arguments of NumPy's functions that say nothing with these values.
_USUAL = {"out": None, "order": "K", "subok": False, "casting": "same_kind", "where": True}


def _values(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.detach()
    if isinstance(x, (list, tuple)):
        return type(x)(map(_values, x)) if not hasattr(x, "_fields") else type(x)(*map(_values, x))
    return {k: _values(v) for k, v in x.items()} if isinstance(x, dict) else x


def _arrays(x: Any) -> Any:
    x = _values(x)
    if isinstance(x, (list, tuple)):
        return type(x)(map(_arrays, x))
    return {k: _arrays(v) for k, v in x.items()} if isinstance(x, dict) else (
        x.resolve_conj().numpy() if isinstance(x, Tensor) else x)  # fmt: skip


def _fail(name: str, why: str) -> ValueError:
    return ValueError(f"numpy.{name}: {why}")


def _t(x: Any) -> Tensor:
    """A tensor of whatever NumPy makes an array of."""
    return x if isinstance(x, Tensor) else taeda.from_numpy(np.array(x))


def _together(*given: Any) -> list:
    """Tensors of one dtype, the one that NumPy has for all of them; Python's numbers stay as they are."""
    made = [x.item() if isinstance(x, np.generic) else x for x in given]
    made = [int(x) if isinstance(x, bool) else x for x in made]
    made = [x if isinstance(x, (int, float, complex)) else _t(x) for x in made]
    tensors = [x for x in made if isinstance(x, Tensor)]
    if any(x.dtype is taeda.bfloat16 for x in tensors):
        return made
    kinds = {str(x.dtype).rpartition(".")[2] for x in tensors}
    if len(kinds) < 2:
        return made
    common = getattr(taeda, np.result_type(*map(np.dtype, kinds)).name)
    return [x.to(common) if isinstance(x, Tensor) else x for x in made]


def _tensors(given: Any) -> list[Tensor]:
    return [_t(x) for x in _together(*given)]


def _as(x: Tensor, dtype: Any) -> Tensor:
    if dtype is None:
        return x
    wanted = getattr(taeda, np.dtype(dtype).name)
    if x.is_complex() and not wanted.is_complex:
        raise TypeError(
            f"a complex result has an imaginary part, which dtype={dtype!r} cannot hold; take np.real of it"
        )
    return x.to(wanted)


# ---- ufuncs ----------------------------------------------------------------------------------------------------------

#: Ufuncs of numbers with a fraction. Others have no derivative.
_FLOATING = {f for f in vars(np).values() if isinstance(f, np.ufunc) and any(kinds[0] == "d" for kinds in f.types)}
#: Those that give truth values or steps.
_CONSTANT_UFUNCS = {f for f in _FLOATING if all(kinds[-1] == "?" for kinds in f.types if kinds[0] == "d")}
_CONSTANT_UFUNCS.add(np.heaviside)
UFUNCS |= {f: function for f in _FLOATING - _CONSTANT_UFUNCS if (function := getattr(taeda, f.__name__, None))}
#: Ufuncs that have other names here, or other results.
_OTHERS: dict[str, Callable] = {
    "arctan2": taeda.atan2,
    "cbrt": lambda x: taeda.sign(x) * taeda.pow(taeda.abs(x), 1 / 3),
    "conjugate": lambda x: taeda.conj(x).resolve_conj(),
    "divmod": lambda x, y: (taeda.floor_divide(*_values((x, y))), taeda.remainder(x, y)),
    "fabs": taeda.abs,
    "floor_divide": lambda x, y: taeda.floor_divide(*_values((x, y))),  # a step function: it is constant
    "ldexp": lambda x, n: taeda.ldexp(_t(x), _t(n)),
    "modf": lambda x: (taeda.fmod(x, 1), taeda.trunc(x)),
    "power": taeda.pow,
    "rint": taeda.round,
    "vecdot": lambda x, y: taeda.linalg.vecdot(x, y),
    "radians": taeda.deg2rad,
    "degrees": taeda.rad2deg,
}
for _name, _function in _OTHERS.items():
    if _found(_name) is not None:
        UFUNCS[_found(_name)] = _function


def run_ufunc(ufunc: Any, method: str, inputs: tuple, kwargs: dict) -> Any:
    """A ufunc, or a reduction by one, on tensors of which some require grad; NotImplemented where there is no rule."""
    if ufunc in _CONSTANT_UFUNCS:
        return getattr(ufunc, method)(*_values(inputs), **_values(kwargs))
    dtype = kwargs.get("dtype")
    unknown = {k for k, v in kwargs.items() if k != "dtype" and not (k in _USUAL and v is _USUAL[k])}
    if method == "__call__" and ufunc in UFUNCS:
        if unknown:
            raise TypeError(
                f"numpy.{ufunc.__name__} of a tensor that requires grad does not take {sorted(unknown)[0]!r}; leave it "
                f"out, or give tensor.detach()"
            )
        given = _together(*inputs)
        if not all(isinstance(x, Tensor) for x in given) and trait(UFUNCS[ufunc], "tensors"):
            like = next(x for x in given if isinstance(x, Tensor))
            given = [x if isinstance(x, Tensor) else taeda.tensor(x, dtype=like.dtype) for x in given]
        made = UFUNCS[ufunc](*given)
        return made if isinstance(made, tuple) else _as(made, dtype)
    if method == "outer" and ufunc in UFUNCS and len(inputs) == 2 and not unknown:
        a, b = _tensors(inputs)
        return _as(UFUNCS[ufunc](a.reshape((*a.shape, *(1,) * b.dim())), b), dtype)
    reduced = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min}.get(ufunc)
    if method == "reduce" and reduced is not None:
        kwargs = {"axis": 0, **kwargs}
        return run(reduced, inputs, kwargs)
    largest = {np.maximum: taeda.cummax, np.minimum: taeda.cummin}.get(ufunc)
    if method == "accumulate" and largest is not None and set(kwargs) <= {"axis"}:
        return largest(_t(inputs[0]), kwargs.get("axis", 0))[0]
    accumulated = {np.add: np.cumsum, np.multiply: np.cumprod}.get(ufunc)
    if method == "accumulate" and accumulated is not None:
        return run(accumulated, inputs, {"axis": 0, **kwargs})
    return NotImplemented


# ---- along axes ------------------------------------------------------------------------------------------------------


def _axes(a: Tensor, axis: Any) -> tuple[int, ...]:
    """``axis`` as a tuple: all of them for None."""
    if axis is None:
        return tuple(range(a.dim()))
    return tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)


def _over(function: Callable) -> Callable:
    def reduced(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
        a = _as(_t(a), dtype)
        axes = _axes(a, axis)
        return function(a, axes, keepdims) if axes else a + 0

    return reduced


rule("sum")(_over(lambda a, axes, keep: a.sum(axes, keepdim=keep)))
rule("nansum")(_over(lambda a, axes, keep: a.nansum(axes, keepdim=keep)))
rule("mean")(_over(lambda a, axes, keep: a.mean(axes, keepdim=keep)))
rule("nanmean")(_over(lambda a, axes, keep: a.nanmean(axes, keepdim=keep)))


def _flat(a: Tensor, axes: tuple[int, ...]) -> Tensor:
    """``axes`` as one, the last."""
    rest = [d for d in range(a.dim()) if d not in {x % a.dim() for x in axes}]
    return a.permute(*rest, *(x % a.dim() for x in axes)).flatten(len(rest)) if a.dim() else a.reshape(1)


def _back(made: Tensor, a: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    for d in sorted(x % a.dim() for x in axes) if keepdims and a.dim() else ():
        made = made.unsqueeze(d)
    return made


@rule("prod")
def _prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    a = _as(_t(a), dtype)
    axes = _axes(a, axis)
    return _back(_flat(a, axes).prod(-1), a, axes, keepdims) if axes or not a.dim() else a + 0


def _extreme(function: Callable) -> Callable:
    def extreme(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
        a = _t(a)
        axes = _axes(a, axis)
        return function(a, axes, keepdim=keepdims) if axes or not a.dim() else a + 0

    return extreme


rule("max", "amax")(_extreme(taeda.amax))
rule("min", "amin")(_extreme(taeda.amin))


@rule("ptp")
def _ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    a = _t(a)
    return a.amax(_axes(a, axis), keepdim=keepdims) - a.amin(_axes(a, axis), keepdim=keepdims)


def _spread(function: Callable) -> Callable:
    def spread(
        a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *, correction: Any = None
    ) -> Tensor:  # fmt: skip
        a = _as(_t(a), dtype)
        axes, less = _axes(a, axis), ddof if correction is None else correction
        if not axes:  # each element is alone
            a, axes = a.unsqueeze(-1), (-1,)
            keepdims = False
        return function(a, axes, correction=less, keepdim=keepdims)

    return spread


rule("var")(_spread(taeda.var))
rule("std")(_spread(taeda.std))


@rule("average")
def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    a = _t(a)
    axes = _axes(a, axis)
    if weights is None:
        weights = taeda.ones(a.shape, dtype=a.dtype)
    else:
        a, weights = _tensors((a, weights))
        if weights.shape != a.shape:
            (only,) = axes
            weights = weights.reshape([-1 if d == only % a.dim() else 1 for d in range(a.dim())])
        weights = weights.expand(a.shape)
    total = weights.sum(axes, keepdim=keepdims)
    made = (a * weights).sum(axes, keepdim=keepdims) / total
    return (made, total) if returned else made


@rule("median")
def _median(a: Any, axis: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Tensor:
    return _quantile(a, 0.5, axis, overwrite_input=overwrite_input, keepdims=keepdims)


@rule("quantile")
def _quantile(
    a: Any, q: Any, axis: Any = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False,
    of: Callable = taeda.quantile,
) -> Tensor:  # fmt: skip
    a = _t(a)
    axes = _axes(a, axis)
    at = _t(q).to(a.dtype)
    made = of(_flat(a, axes), at.reshape(-1), -1, interpolation=method)
    made = taeda.stack([_back(x, a, axes, keepdims) for x in made]) if keepdims else made
    return made.reshape((*at.shape, *made.shape[1:]))


@rule("percentile")
def _percentile(
    a: Any, q: Any, axis: Any = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False
) -> Tensor:  # fmt: skip
    return _quantile(a, np.asarray(q) / 100 if np.ndim(q) else float(q) / 100, axis, False, method, keepdims)


@rule("nanmedian")
def _nanmedian(a: Any, axis: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Tensor:
    return _quantile(a, 0.5, axis, keepdims=keepdims, of=taeda.nanquantile)


@rule("nanquantile")
def _nanquantile(
    a: Any, q: Any, axis: Any = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False
) -> Tensor:  # fmt: skip
    return _quantile(a, q, axis, overwrite_input, method, keepdims, taeda.nanquantile)


def _scan(function: Callable) -> Callable:
    def scan(a: Any, axis: Any = None, dtype: Any = None) -> Tensor:
        a = taeda.atleast_1d(_as(_t(a), dtype))
        return function(a.reshape(-1), 0) if axis is None else function(a, axis)

    return scan


rule("cumsum")(_scan(taeda.cumsum))
rule("cumprod")(_scan(taeda.cumprod))


@rule("sort")
def _sort(a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Tensor:
    a = _t(a)
    return taeda.sort(a.reshape(-1) if axis is None else a, -1 if axis is None else axis)[0]


@rule("partition")
def _partition(a: Any, kth: Any, axis: Any = -1, kind: Any = None) -> Tensor:
    a = _t(a)
    a, axis = (a.reshape(-1), -1) if axis is None else (a, axis)
    return _take_along(a, np.argpartition(_arrays(a), kth, axis), axis)


@rule("linspace")
def _linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0,
) -> Any:  # fmt: skip
    start, stop = taeda.broadcast_tensors(*_tensors((start, stop)))
    start, stop = (x if x.is_floating_point() or x.is_complex() else x.double() for x in (start, stop))
    step = (stop - start) / max(num - bool(endpoint), 1)
    at = taeda.arange(num, dtype=start.real.dtype if start.is_complex() else start.dtype)
    made = start + step * at.reshape(-1, *(1,) * start.dim())
    if endpoint and num > 1:
        made = taeda.cat([made[:-1], stop.unsqueeze(0).to(made.dtype)])
    made = _as(made.movedim(0, axis), dtype)
    return (made, step) if retstep else made


@rule("diff")
def _diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    return taeda.diff(_t(a), n, axis)


@rule("gradient")
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    f = _t(f)
    axes = _axes(f, axis)
    spacing = [x if isinstance(x, (int, float)) else _t(x).to(f.dtype) for x in varargs] or [1.0]
    spacing = spacing * len(axes) if len(spacing) == 1 else spacing
    made, gradient = [], cast(Any, taeda.gradient)  # the stub knows one form of `spacing`
    for h, d in zip(spacing, axes, strict=True):
        even = isinstance(h, (int, float))
        made.append(gradient(f, spacing=h if even else (h,), dim=d if even else (d,), edge_order=edge_order)[0])
    single = (axis is not None and not isinstance(axis, (tuple, list))) or f.dim() == 1
    return made[0] if single else tuple(made)


@rule("trapezoid", "trapz")
def _trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    if x is None:
        return taeda.trapezoid(_t(y), dx=dx, dim=axis)
    y, x = _tensors((y, x))
    return taeda.trapezoid(y, x, dim=axis)


# ---- shapes ----------------------------------------------------------------------------------------------------------


@rule("reshape")
def _reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None) -> Tensor:
    shape = newshape if shape is None else shape
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if order == "C":
        return _t(a).reshape(sizes)
    if order != "F":
        raise TypeError(f"numpy.reshape of a tensor that requires grad: expected order 'C' or 'F', got {order!r}")
    return _transpose(_transpose(a).reshape(sizes[::-1]))


@rule("ravel")
def _ravel(a: Any, order: str = "C") -> Tensor:
    return _reshape(a, (-1,), order)


@rule("transpose", "permute_dims")
def _transpose(a: Any, axes: Any = None) -> Tensor:
    a = _t(a)
    return a.permute(tuple(range(a.dim()))[::-1] if axes is None else tuple(axes))


rule("matrix_transpose")(lambda x: _t(x).mT)
rule("swapaxes")(lambda a, axis1, axis2: _t(a).transpose(axis1, axis2))
rule("moveaxis")(lambda a, source, destination: taeda.movedim(_t(a), source, destination))
rule("broadcast_to")(lambda array, shape: _t(array).expand(shape))
rule("broadcast_arrays")(lambda *args: tuple(taeda.broadcast_tensors(*map(_t, args))))
rule("copy")(lambda a: _t(a).clone())
rule("real")(lambda val: _t(val).real if _t(val).is_complex() else _t(val))
rule("imag")(lambda val: _t(val).imag if _t(val).is_complex() else taeda.zeros_like(_t(val)))
rule("atleast_1d")(lambda *arys: _each(taeda.atleast_1d, arys))
rule("atleast_2d")(lambda *arys: _each(taeda.atleast_2d, arys))
rule("atleast_3d")(lambda *arys: _each(taeda.atleast_3d, arys))
rule("flipud")(lambda m: taeda.flipud(_t(m)))
rule("fliplr")(lambda m: taeda.fliplr(_t(m)))
rule("rot90")(lambda m, k=1, axes=(0, 1): taeda.rot90(_t(m), k, axes))
rule("tril")(lambda m, k=0: taeda.tril(_t(m), k))
rule("triu")(lambda m, k=0: taeda.triu(_t(m), k))
rule("diag")(lambda v, k=0: taeda.diag(_t(v), k))
rule("diagflat")(lambda v, k=0: taeda.diag(_t(v).reshape(-1), k))
rule("diagonal")(lambda a, offset=0, axis1=0, axis2=1: taeda.diagonal(_t(a), offset, axis1, axis2))
rule("trace")(lambda a, offset=0, axis1=0, axis2=1: taeda.diagonal(_t(a), offset, axis1, axis2).sum(-1))
rule("tile")(lambda A, reps: taeda.tile(_t(A), reps if isinstance(reps, (tuple, list)) else (reps,)))
rule("take")(lambda a, indices, axis=None: _take(a, indices, axis))
rule("take_along_axis")(lambda arr, indices, axis=-1: _take_along(_t(arr), indices, axis))
rule("compress")(lambda condition, a, axis=None: _take(a, np.nonzero(np.asarray(_values(condition)))[0], axis))


def _each(function: Callable, given: tuple) -> Any:
    made = tuple(function(_t(x)) for x in given)
    return made[0] if len(made) == 1 else made


@rule("squeeze")
def _squeeze(a: Any, axis: Any = None) -> Tensor:
    a = _t(a)
    if axis is None:
        return a.squeeze()
    if any(a.shape[d] != 1 for d in _axes(a, axis)):
        raise _fail("squeeze", f"an axis to squeeze out has size 1, got axis {axis} of shape {tuple(a.shape)}")
    return a.squeeze(axis)


def _take_along(a: Tensor, indices: Any, axis: int | None) -> Tensor:
    at = _t(indices).long()
    if axis is None:
        return a.reshape(-1).gather(0, taeda.where(at < 0, at + a.numel(), at))
    return taeda.take_along_dim(a, taeda.where(at < 0, at + a.shape[axis], at), axis)


def _take(a: Any, indices: Any, axis: int | None) -> Tensor:
    a = _t(a)
    a, axis = (a.reshape(-1), 0) if axis is None or not a.dim() else (a, axis % a.dim())
    at = _t(indices).long()
    chosen = a.index_select(axis, taeda.where(at < 0, at + a.shape[axis], at).reshape(-1))
    return chosen.reshape(*a.shape[:axis], *at.shape, *a.shape[axis + 1 :])


@rule("expand_dims")
def _expand_dims(a: Any, axis: Any) -> Tensor:
    a = _t(a)
    axes = _axes(a, axis)
    for d in sorted(x % (a.dim() + len(axes)) for x in axes):
        a = a.unsqueeze(d)
    return a


@rule("rollaxis")
def _rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    a = _t(a)
    axis, start = axis % a.dim(), start + a.dim() if start < 0 else start
    return taeda.movedim(a, axis, start - (axis < start))


@rule("roll")
def _roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    a = _t(a)
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return taeda.roll(a.reshape(-1), shift, 0).reshape(a.shape) if axis is None else taeda.roll(a, shift, axis)


@rule("flip")
def _flip(m: Any, axis: Any = None) -> Tensor:
    return taeda.flip(_t(m), _axes(_t(m), axis))


@rule("repeat")
def _repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    times = repeats if isinstance(repeats, int) else _t(repeats)
    return taeda.repeat_interleave(_t(a).reshape(-1) if axis is None else _t(a), times, 0 if axis is None else axis)


@rule("pad")
def _pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    a = _t(array)
    pairs = np.broadcast_to(np.asarray(pad_width), (a.dim(), 2))
    if mode != "constant":
        raise TypeError(f"numpy.pad of a tensor that requires grad: expected mode 'constant', got {mode!r}")
    values = np.broadcast_to(np.asarray(constant_values), (a.dim(), 2))
    for d, ((before, after), (low, high)) in enumerate(zip(pairs.tolist(), values.tolist(), strict=True)):
        around = [[*a.shape[:d], n, *a.shape[d + 1 :]] for n in (before, after)]
        parts = [taeda.full(s, v, dtype=a.dtype) for s, v in zip(around, (low, high), strict=True)]
        a = taeda.cat([parts[0], a, parts[1]], d)
    return a


@rule("concatenate", "concat")
def _concatenate(arrays: Any, /, axis: int | None = 0, *, dtype: Any = None) -> Tensor:
    given = _tensors(arrays)
    made = taeda.cat([x.reshape(-1) for x in given]) if axis is None else taeda.cat(given, axis)
    return _as(made, dtype)


rule("stack")(lambda arrays, axis=0, *, dtype=None: _as(taeda.stack(_tensors(arrays), axis), dtype))
rule("vstack", "row_stack")(lambda tup, *, dtype=None: _as(taeda.vstack(_tensors(tup)), dtype))
rule("hstack")(lambda tup, *, dtype=None: _as(taeda.hstack(_tensors(tup)), dtype))
rule("dstack")(lambda tup: taeda.dstack(_tensors(tup)))
rule("column_stack")(lambda tup: taeda.column_stack(_tensors(tup)))


@rule("append")
def _append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    return _concatenate((arr, values), axis)


@rule("array_split")
def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list:
    return list(taeda.tensor_split(_t(ary), indices_or_sections, axis))


@rule("split")
def _split(ary: Any, indices_or_sections: Any, axis: int = 0, least: int = 1) -> list:
    ary = _t(ary)
    if ary.dim() < least:
        raise _fail("split", f"expected at least {least} dimensions, got shape {tuple(ary.shape)}")
    if isinstance(indices_or_sections, (int, np.integer)) and ary.shape[axis] % indices_or_sections:
        raise _fail("split", f"{ary.shape[axis]} elements are not {indices_or_sections} equal parts; see array_split")
    return _array_split(ary, indices_or_sections, axis)


rule("vsplit")(lambda ary, indices_or_sections: _split(ary, indices_or_sections, 0, 2))
rule("hsplit")(lambda ary, indices_or_sections: _split(ary, indices_or_sections, int(_t(ary).dim() > 1)))
rule("dsplit")(lambda ary, indices_or_sections: _split(ary, indices_or_sections, 2, 3))


@rule("meshgrid")
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple:
    if sparse:
        raise TypeError("numpy.meshgrid of a tensor that requires grad does not take sparse=True")
    return tuple(taeda.meshgrid(*(x.reshape(-1) for x in map(_t, xi)), indexing=indexing))


# ---- choices and elements --------------------------------------------------------------------------------------------


@rule("where")
def _where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None:
        return np.where(_values(condition))
    x, y = _together(x, y)
    return taeda.where(_t(condition).bool(), x, y)


@rule("select")
def _select(condlist: Sequence, choicelist: Sequence, default: Any = 0) -> Tensor:
    made = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        made = _where(condition, choice, made)
    return made


@rule("clip")
def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Tensor:
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    if isinstance(low, (Tensor, np.ndarray)) or isinstance(high, (Tensor, np.ndarray)):
        made = _t(a)
        made = made if low is None else taeda.maximum(*_tensors((made, low)))
        return made if high is None else taeda.minimum(*_tensors((made, high)))
    return _t(a) + 0 if low is None and high is None else taeda.clamp(_t(a), low, high)


rule("round", "around")(lambda a, decimals=0: taeda.round(_t(a), decimals=decimals))
rule("fix")(lambda x: taeda.trunc(_t(x)))
rule("nan_to_num")(lambda x, copy=True, nan=0.0, posinf=None, neginf=None: taeda.nan_to_num(_t(x), nan, posinf, neginf))
rule("sinc")(lambda x: taeda.sinc(_t(x)))
rule("i0")(lambda x: taeda.i0(_t(x)))
rule("angle")(lambda z, deg=False: taeda.rad2deg(taeda.angle(_t(z))) if deg else taeda.angle(_t(z)))
rule("real_if_close")(lambda a, tol=100: a)


@rule("interp")
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Tensor:
    x, xp, fp = _tensors((x, xp, fp))
    if xp.dim() != 1 or xp.shape != fp.shape or not len(xp):
        raise _fail("interp", f"expected xp and fp of one length, got shapes {tuple(xp.shape)} and {tuple(fp.shape)}")
    if len(xp) == 1:  # no slope
        xp, fp = taeda.cat([xp, xp + 1]), taeda.cat([fp, fp])
        right = fp[0] if right is None else right
        last = xp[0]
    else:
        last = xp[-1]
    at = taeda.searchsorted(xp.detach(), x.detach(), right=True).clamp(1, len(xp) - 1)
    x0, x1, y0, y1 = xp[at - 1], xp[at], fp[at - 1], fp[at]
    made = y0 + (y1 - y0) / (x1 - x0) * (x - x0)
    made = taeda.where(x < xp[0], fp[0] if left is None else left, made)
    return taeda.where(x > last, fp[-1] if right is None else right, made)


# ---- products --------------------------------------------------------------------------------------------------------


@rule("dot")
def _dot(a: Any, b: Any) -> Tensor:
    a, b = _tensors((a, b))
    if not a.dim() or not b.dim():
        return a * b
    axes: Any = [a.dim() - 1], [max(b.dim() - 2, 0)]
    return taeda.tensordot(a, b, axes)


@rule("inner")
def _inner(a: Any, b: Any, /) -> Tensor:
    return taeda.inner(*_tensors((a, b)))


@rule("outer")
def _outer(a: Any, b: Any) -> Tensor:
    a, b = _tensors((a, b))
    return taeda.outer(a.reshape(-1), b.reshape(-1))


@rule("vdot")
def _vdot(a: Any, b: Any, /) -> Tensor:
    a, b = _tensors((a, b))
    return taeda.vdot(a.reshape(-1), b.reshape(-1))


@rule("tensordot")
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    if not isinstance(axes, int):
        axes = tuple([x] if isinstance(x, int) else list(x) for x in axes)
    a, b = _tensors((a, b))
    return taeda.tensordot(a, b, axes)


@rule("einsum")
def _einsum(subscripts: Any, *operands: Any, optimize: Any = False) -> Tensor:
    if isinstance(subscripts, str):
        return taeda.einsum(subscripts, *_tensors(operands))
    given = [subscripts, *operands]  # an operand, its subscripts, and so on; then the result's
    count = len(given) // 2
    pairs = zip(_tensors(given[: 2 * count : 2]), given[1 : 2 * count : 2], strict=True)
    return taeda.einsum(*(x for pair in pairs for x in pair), *given[2 * count :])


rule("kron")(lambda a, b: taeda.kron(*_tensors((a, b))))


@rule("cross", "linalg.cross")
def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Tensor:
    a, b = _tensors((a, b))
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = taeda.broadcast_tensors(a.movedim(axisa, -1), b.movedim(axisb, -1))
    return taeda.linalg.cross(a, b, dim=-1).movedim(-1, axisc)


@rule("convolve")
def _convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    a, v = map(taeda.atleast_1d, _tensors((a, v)))
    if a.dim() > 1 or v.dim() > 1:
        raise _fail("convolve", f"expected one dimension, got shapes {tuple(a.shape)} and {tuple(v.shape)}")
    if mode not in ("full", "same", "valid"):
        raise _fail("convolve", f"expected mode 'full', 'same' or 'valid', got {mode!r}")
    if not len(a) or not len(v):
        raise _fail("convolve", "expected elements, got none")
    if len(v) > len(a):
        a, v = v, a
    n, m = len(a), len(v)
    full = taeda.nn.functional.conv1d(a.reshape(1, 1, -1), v.flip(0).reshape(1, 1, -1), padding=m - 1).reshape(-1)
    return {"full": full, "same": full[(m - 1) // 2 : (m - 1) // 2 + n], "valid": full[m - 1 : n]}[mode]


@rule("polyval")
def _polyval(p: Any, x: Any) -> Tensor:
    p, x = _tensors((p, x))
    made = taeda.zeros_like(x)
    for c in p:
        made = made * x + c
    return made


@rule("vander")
def _vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    return taeda.vander(_t(x), N, increasing)


@rule("cov")
def _cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None) -> Tensor:
    a = taeda.atleast_2d(_t(m))
    a = a if rowvar or a.shape[0] == 1 else a.T
    if y is not None:
        b = taeda.atleast_2d(_t(y))
        a = taeda.cat(_tensors((a, b if rowvar or b.shape[0] == 1 else b.T)))
    return taeda.cov(a, correction=ddof if ddof is not None else int(not bias))


@rule("corrcoef")
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Tensor:
    c = taeda.atleast_2d(_cov(x, y, rowvar))
    scale = taeda.sqrt(taeda.diagonal(c))
    made = c / scale.unsqueeze(0) / scale.unsqueeze(1)
    return made.reshape(()) if made.numel() == 1 else made


# ---- linalg ----------------------------------------------------------------------------------------------------------

rule("linalg.inv")(lambda a: taeda.linalg.inv(_t(a)))
rule("linalg.pinv")(
    lambda a, rcond=None, hermitian=False, *, rtol=None: taeda.linalg.pinv(
        _lower(a) if hermitian else _t(a), rtol=rcond if rtol is None else rtol, hermitian=hermitian
    )
)
rule("linalg.det")(lambda a: taeda.linalg.det(_t(a)))
rule("linalg.slogdet")(lambda a: taeda.linalg.slogdet(_t(a)))
rule("linalg.matrix_power")(lambda a, n: taeda.linalg.matrix_power(_t(a), n))
rule("linalg.multi_dot")(lambda arrays: taeda.linalg.multi_dot(_tensors(arrays)))
rule("linalg.eigvals")(lambda a: _real_where_all_are(a, taeda.linalg.eigvals(_t(a)))[0])
rule("linalg.eig")(lambda a: _real_where_all_are(a, *taeda.linalg.eig(_t(a))))
rule("linalg.eigh")(lambda a, UPLO="L": taeda.linalg.eigh(_lower(a, UPLO), UPLO))
rule("linalg.eigvalsh")(lambda a, UPLO="L": taeda.linalg.eigvalsh(_lower(a, UPLO), UPLO))
rule("linalg.svdvals")(lambda x: taeda.linalg.svdvals(_t(x)))
rule("linalg.cond")(lambda x, p=None: taeda.linalg.cond(_t(x), p))
rule("linalg.tensorinv")(lambda a, ind=2: taeda.linalg.tensorinv(_t(a), ind))
rule("linalg.tensorsolve")(lambda a, b, axes=None: taeda.linalg.tensorsolve(_t(a), _t(b), axes))
rule("linalg.vecdot")(lambda x1, x2, /, *, axis=-1: taeda.linalg.vecdot(*_tensors((x1, x2)), dim=axis))
rule("linalg.matmul")(lambda x1, x2, /: taeda.matmul(*_tensors((x1, x2))))
rule("linalg.outer")(_outer)
rule("linalg.tensordot")(lambda x1, x2, /, *, axes=2: _tensordot(x1, x2, axes))
rule("linalg.matrix_transpose")(lambda x, /: _t(x).mT)
rule("linalg.diagonal")(lambda x, /, *, offset=0: taeda.diagonal(_t(x), offset, -2, -1))
rule("linalg.trace")(lambda x, /, *, offset=0, dtype=None: taeda.diagonal(_as(_t(x), dtype), offset, -2, -1).sum(-1))
rule("linalg.matrix_norm")(
    lambda x, /, *, keepdims=False, ord="fro": taeda.linalg.matrix_norm(_t(x), ord, keepdim=keepdims)
)
rule("linalg.vector_norm")(
    lambda x, /, *, axis=None, keepdims=False, ord=2: taeda.linalg.vector_norm(_t(x), ord, axis, keepdims)
)


def _lower(a: Any, UPLO: str = "L") -> Tensor:
    """The Hermitian matrix that NumPy reads from one triangle: its gradient is that triangle's."""
    a = _t(a) if UPLO in ("L", "l") else _t(a).mH
    half = a.tril(-1)
    diagonal = taeda.diagonal(a, 0, -2, -1)
    return half + half.mH + taeda.diag_embed(diagonal.real if a.is_complex() else diagonal)


def _real_where_all_are(a: Any, values: Tensor, *vectors: Tensor) -> tuple:
    """Eigenvalues, and vectors, of a real matrix: real ones where no eigenvalue is complex, as NumPy has them."""
    given = (values, *vectors)
    return given if _t(a).is_complex() or bool((values.imag != 0).any()) else tuple(x.real for x in given)


@rule("linalg.solve")
def _solve(a: Any, b: Any) -> Tensor:
    a, b = _tensors((a, b))
    return taeda.linalg.solve(a, b.unsqueeze(-1)).squeeze(-1) if b.dim() == 1 else taeda.linalg.solve(a, b)


@rule("linalg.cholesky")
def _cholesky(a: Any, /, *, upper: bool = False) -> Tensor:
    return taeda.linalg.cholesky(_lower(a, "U" if upper else "L"), upper=upper)


@rule("linalg.qr")
def _qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise TypeError(f"numpy.linalg.qr of a tensor that requires grad: got mode {mode!r}")
    made = taeda.linalg.qr(_t(a), mode)
    return made[1] if mode == "r" else made


@rule("linalg.svd")
def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = _lower(a) if hermitian else _t(a)
    return taeda.linalg.svd(a, full_matrices) if compute_uv else taeda.linalg.svdvals(a)


@rule("linalg.norm")
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    x = _t(x)
    if axis is None and (ord is None or x.dim() == 1):
        made = taeda.linalg.vector_norm(x, 2 if ord is None else ord)
        return made.reshape((1,) * x.dim()) if keepdims else made
    return taeda.linalg.norm(x, ord, axis, keepdims)


# ---- fft -------------------------------------------------------------------------------------------------------------


def _one(name: str) -> Callable:
    def transform(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
        return getattr(taeda.fft, name)(_t(a), n, axis, norm)

    return transform


def _several(name: str, last: tuple[int, int] | None) -> Callable:
    def transform(a: Any, s: Any = None, axes: Any = last, norm: str | None = None) -> Tensor:
        return getattr(taeda.fft, name)(_t(a), s, axes, norm)

    return transform


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    rule(f"fft.{_name}")(_one(_name))
for _name in ("fft", "ifft", "rfft", "irfft"):
    rule(f"fft.{_name}2")(_several(f"{_name}2", (-2, -1)))
    rule(f"fft.{_name}n")(_several(f"{_name}n", None))
rule("fft.fftshift")(lambda x, axes=None: taeda.fft.fftshift(_t(x), axes))
rule("fft.ifftshift")(lambda x, axes=None: taeda.fft.ifftshift(_t(x), axes))


# ---- without a gradient ----------------------------------------------------------------------------------------------

CONSTANT.update(
    _found(path)
    for path in (
        "all allclose any argmax argmin argpartition argsort argwhere array_equal array_equiv bincount count_nonzero "
        "digitize empty_like flatnonzero full_like histogram isclose iscomplex iscomplexobj isreal isrealobj lexsort "
        "linalg.matrix_rank nanargmax nanargmin ndim nonzero ones_like result_type searchsorted shape size zeros_like "
        "may_share_memory shares_memory can_cast min_scalar_type isneginf isposinf array2string array_repr array_str"
    ).split()
    if _found(path) is not None
)
OF_ARRAYS.update(
    _found(path) for path in "size isreal iscomplex argwhere isin array2string array_repr array_str".split()
)
CONSTANT |= OF_ARRAYS

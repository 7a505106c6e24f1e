"""``assert_close``: whether two results are equal up to rounding, and if not, where they differ most."""

from __future__ import annotations

import cmath
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .. import _core
from .._core import promote_types, result_type
from .._typed import Tensor
from ..ops.comparison import isclose
from ..ops.exchange import as_tensor, tensor
from ..ops.indexing import where
from ..ops.parts import OfValues
from ..ops.statistics import unravel_index

#: (rtol, atol) by the name of a floating-point dtype: what PyTorch allows; integers must be equal.
TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
_NUMBER_DTYPES = {float: "float64", complex: "complex128"}


class _Mismatch(Exception):
    """A difference that was found: the exception to raise, its text, and where in the containers it is."""

    def __init__(self, kind: type[Exception], text: str, path: tuple = ()):
        super().__init__(text)
        self.kind, self.text, self.path = kind, text, path

    def error(self, msg: Any) -> Exception:
        text = self.text
        if self.path:
            text += "\n\nThe failure occurred for item " + "".join(f"[{key!r}]" for key in self.path)
        if callable(msg):
            text = msg(text)
        elif msg:
            text = msg
        return self.kind(text)


class _Options(NamedTuple):
    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *dtypes: str) -> tuple[float, float]:
        """The ones given, or the largest of the defaults for ``dtypes``."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        both = [TOLERANCES.get(name, (0.0, 0.0)) for name in dtypes]
        return max(r for r, _ in both), max(a for _, a in both)


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: str | Callable[[str], str] | None = None,
) -> None:  # fmt: skip
    """Raise unless ``actual`` and ``expected`` are close: ``|actual - expected| <= atol + rtol * |expected|``.

    Infinities are close to themselves only. Tensors (and what shares memory with them, such as NumPy arrays), numbers,
    bools and None are compared; sequences and mappings of those, item by item.

    Args:
        actual: a tensor, a number, None, or a sequence or mapping of those.
        expected: of the same or a directly related type.
        allow_subclasses: whether a tensor may be compared with one of a subclass of its type.
        rtol: relative tolerance; None, as ``atol``, for that of the dtype: float16 ``1e-3``; bfloat16 ``1.6e-2``;
            float32 and complex64 ``1.3e-6``; float64 and complex128 ``1e-7``; others 0; of two dtypes the larger.
        atol: absolute tolerance; by default ``1e-7`` for float64 and complex128, ``1e-5`` for other floating-point
            dtypes, 0 for the rest.
        equal_nan: whether NaN is close to NaN.
        check_device: whether devices must agree.
        check_dtype: whether dtypes must agree; where they may differ, the promoted one is compared.
        check_layout: whether layouts must agree.
        check_stride: whether strides must agree.
        msg: the text of the error, or a function from the text that would be used to another.
    Raises:
        AssertionError: they differ; the text says how much and where.
        ValueError: only one tolerance was given.
        TypeError: objects of these types cannot be compared.
    """
    __tracebackhide__ = True
    if (rtol is None) != (atol is None):
        raise ValueError(
            "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{'rtol' if rtol is None else 'atol'}."
        )
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not value >= 0:
            raise RuntimeError(f"assert_close: {name} must not be negative, got {value}")
    options = _Options(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    try:
        pairs = list(_pairs(actual, expected, options, ()))
        for compare, a, e, path in pairs:
            try:
                compare(a, e, options)
            except _Mismatch as found:
                raise _Mismatch(found.kind, found.text, path) from None
    except _Mismatch as found:
        error = found.error(msg)
    else:
        return
    raise error


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True,
    msg: str = "",
) -> None:  # fmt: skip
    """Deprecated; :func:`assert_close` without the checks of device, dtype and strides. ``expected`` may be a
    number."""
    warnings.warn(
        "taeda.testing.assert_allclose() is deprecated; use taeda.testing.assert_close()", FutureWarning, stacklevel=2
    )
    actual = as_tensor(actual)
    expected = as_tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        both = [TOLERANCES.get(d.name, (0.0, 0.0)) for d in (actual.dtype, result_type(actual, expected))]
        rtol, atol = max(r for r, _ in both), max(a for _, a in both)
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False,
        check_stride=False, msg=msg or None,
    )  # fmt: skip


# ---- what is compared with what --------------------------------------------------------------------------------------


def _sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)


def _pairs(actual: Any, expected: Any, options: _Options, path: tuple) -> Iterator[tuple[Callable, Any, Any, tuple]]:
    """``(comparison, actual, expected, path)`` of every leaf, in order."""
    if _sequence(actual) and _sequence(expected):
        if len(actual) != len(expected):
            raise _Mismatch(
                AssertionError, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path
            )
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            yield from _pairs(a, e, options, (*path, i))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing, extra = set(expected) - set(actual), set(actual) - set(expected)
        if missing or extra:
            raise _Mismatch(
                AssertionError,
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {_ordered(missing)}\n"
                f"Additional keys in the actual mapping: {_ordered(extra)}",
                path,
            )
        for key in _ordered(actual):
            yield from _pairs(actual[key], expected[key], options, (*path, key))
    else:
        for accepts in (_as_nones, _as_bools, _as_numbers, _as_tensors):
            pair = accepts(actual, expected, options)
            if pair is not None:
                yield (*pair, path)
                return
        raise _Mismatch(
            TypeError,
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.",
            path,
        )


def _ordered(keys: Any) -> list:
    try:
        return sorted(keys)
    except TypeError:  # keys of several types have no order of their own
        return list(keys)


def _as_nones(actual: Any, expected: Any, options: _Options) -> tuple | None:
    return (_same_none, actual, expected) if actual is None or expected is None else None


def _same_none(actual: Any, expected: Any, options: _Options) -> None:
    if not (actual is None and expected is None):
        raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}")


def _numpy_scalar(x: Any, kind: str) -> bool:
    return (
        type(x).__module__ == "numpy"
        and hasattr(x, "item")
        and getattr(x, "shape", None) == ()
        and (not hasattr(x, "__setitem__") and x.dtype.kind in kind)
    )


def _as_bools(actual: Any, expected: Any, options: _Options) -> tuple | None:
    if all(isinstance(x, bool) or _numpy_scalar(x, "b") for x in (actual, expected)):
        return _same_bool, bool(actual), bool(expected)
    return None


def _same_bool(actual: bool, expected: bool, options: _Options) -> None:
    if actual is not expected:
        raise _Mismatch(AssertionError, f"Booleans mismatch: {actual} is not {expected}")


def _as_numbers(actual: Any, expected: Any, options: _Options) -> tuple | None:
    def number(x):
        return isinstance(x, (int, float, complex)) or _numpy_scalar(x, "biufc")

    if not (number(actual) and number(expected)):
        return None
    return (_close_numbers, *(x.item() if hasattr(x, "item") else x for x in (actual, expected)))


def _as_tensors(actual: Any, expected: Any, options: _Options) -> tuple | None:
    if isinstance(actual, OfValues) or isinstance(expected, OfValues):  # of whatever layouts
        related = isinstance(actual, Tensor) and isinstance(expected, Tensor)
    else:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if not related or (not options.allow_subclasses and type(actual) is not type(expected)):
        return None
    if isinstance(actual, (str, int, float, complex, Mapping)):
        return None
    try:
        return _close_tensors, *(x if isinstance(x, Tensor) else as_tensor(x) for x in (actual, expected))
    except (TypeError, ValueError, RuntimeError):
        return None


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _close_numbers(actual: Any, expected: Any, options: _Options) -> None:
    if options.check_dtype and type(actual) is not type(expected):
        raise _Mismatch(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    rtol, atol = options.tolerances(*(_NUMBER_DTYPES.get(type(x), "") for x in (actual, expected)))
    if actual == expected or (options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    difference, size = abs(actual - expected), abs(expected)
    if difference != float("inf") and difference <= atol + rtol * size:
        return
    relative = float("inf") if size == 0 else difference / size
    exact = rtol == 0 and atol == 0
    raise _Mismatch(
        AssertionError,
        f"Scalars are not {'equal' if exact else 'close'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed(atol, exact)}\n"
        f"Relative difference: {relative}{_allowed(rtol, exact)}",
    )


def _allowed(tolerance: float, exact: bool) -> str:
    return "" if exact else f" (up to {tolerance} allowed)"


# ---- tensors ---------------------------------------------------------------------------------------------------------


def _close_tensors(actual: Tensor, expected: Tensor, options: _Options) -> None:
    _same_attributes(actual, expected, options)
    actual, expected = actual.detach(), expected.detach()
    rtol, atol = options.tolerances(actual.dtype.name, expected.dtype.name)
    if actual.dtype != expected.dtype:
        common = promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(common), expected.to(common)
    if actual.layout != expected.layout:
        actual, expected = actual.to_dense(), expected.to_dense()
    if isinstance(actual, OfValues):
        _close_sparse(actual, expected, rtol, atol, options.equal_nan)
    else:
        _close_values("Tensor-likes", actual, expected, rtol, atol, options.equal_nan)


def _close_values(
    what: str, actual: Tensor, expected: Tensor, rtol: float, atol: float, equal_nan: bool = False
) -> None:
    """Raise unless all elements are close.

    Args:
        what: what they are, for the text of the error.
    """
    close = isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if bool(close.all()):
        return
    if not actual.shape:
        _raise_as_numbers(actual, expected, rtol, atol)
    raise _Mismatch(AssertionError, _difference_text(what, actual, expected, ~close, rtol, atol))


def _close_sparse(actual: Any, expected: Any, rtol: float, atol: float, equal_nan: bool) -> None:
    """Raise unless two tensors of one sparse layout have the same indices and close values."""
    kind = str(actual.layout).rpartition("_")[2].upper()
    if kind == "COO":
        indices, values = ["_indices"], "_values"
    else:
        lines = ("crow", "col") if kind in ("CSR", "BSR") else ("ccol", "row")
        indices, values = [f"{name}_indices" for name in lines], "values"
    if actual._nnz() != expected._nnz():
        raise _Mismatch(
            AssertionError,
            f"The number of specified values in sparse {kind} tensors does not match: "
            f"{actual._nnz()} != {expected._nnz()}",
        )
    for name in indices:
        _close_values(f"Sparse {kind} {name.lstrip('_')}", getattr(actual, name)(), getattr(expected, name)(), 0, 0)
    a, e = (getattr(x, values)() for x in (actual, expected))
    _close_values(f"Sparse {kind} values", a, e, rtol, atol, equal_nan)


def _same_attributes(actual: Tensor, expected: Tensor, options: _Options) -> None:
    def differ(name: str, a: Any, e: Any) -> None:
        if a != e:
            raise _Mismatch(AssertionError, f"The values for attribute '{name}' do not match: {a} != {e}.")

    differ("shape", actual.shape, expected.shape)
    if options.check_layout:
        differ("layout", actual.layout, expected.layout)
    if options.check_stride:
        differ("stride()", actual.stride(), expected.stride())
    if options.check_device:
        differ("device", actual.device, expected.device)
    if options.check_dtype:
        differ("dtype", actual.dtype, expected.dtype)


def _raise_as_numbers(actual: Tensor, expected: Tensor, rtol: float, atol: float) -> None:
    """Tensors of no dimensions read like numbers."""
    a, e = _wide(actual), _wide(expected)
    difference = (a - e).abs()
    relative = difference / e.abs()
    exact = rtol == 0 and atol == 0
    raise _Mismatch(
        AssertionError,
        f"Scalars are not {'equal' if exact else 'close'}!\n\n"
        f"Expected {expected.item()} but got {actual.item()}.\n"
        f"Absolute difference: {difference.item()}{_allowed(atol, exact)}\n"
        f"Relative difference: {relative.item()}{_allowed(rtol, exact)}",
    )


def _wide(t: Tensor) -> Tensor:
    """Integers as int64, so that differences do not wrap around."""
    return t if t.dtype.is_floating_point or t.dtype.is_complex else t.to(_core.int64)


def _difference_text(what: str, actual: Tensor, expected: Tensor, wrong: Tensor, rtol: float, atol: float) -> str:
    count, total = int(wrong.sum()), wrong.numel()
    actual, expected = _wide(actual).reshape(-1), _wide(expected).reshape(-1)
    shape, wrong = wrong.shape, wrong.reshape(-1)
    exact = rtol == 0 and atol == 0

    def greatest(name: str, values: Tensor, tolerance: float) -> str:
        values = where(wrong, values, 0)  # where both are infinite the difference is NaN, and yet they are close
        at = int(values.argmax())
        index = tuple(int(i) for i in unravel_index(tensor(at), shape))
        return f"Greatest {name} difference: {values[at].item()} at index {index}{_allowed(tolerance, exact)}"

    difference = (actual - expected).abs()
    return (
        f"{what} are not {'equal' if exact else 'close'}!\n\n"
        f"Mismatched elements: {count} / {total} ({count / total:.1%})\n"
        + greatest("absolute", difference, atol)
        + "\n"
        + greatest("relative", difference / expected.abs(), rtol)
    )

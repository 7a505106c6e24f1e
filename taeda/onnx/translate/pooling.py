"""Pooling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core import float16, float32, float64, int8, int64, uint8
from ...types import iinfo
from ..writer import Value, Writer, is_static
from .convolution import several
from .shape import padded, static_size
from .table import translates


def _batched(g: Writer, x: Value, count: int) -> tuple[Value, bool]:
    """``x`` with a batch in front, and whether it had none."""
    single = x.rank == count + 1
    return (g.unsqueeze(x, [0]) if single else x), single


def _ends(
    g: Writer, x: Value, out: Any, kernel: list, stride: list, padding: list, dilation: list, ceil_mode: bool
) -> list[Any]:
    """The padding after each dimension: with ``ceil_mode`` as much as the last window needs."""
    if not ceil_mode:
        return padding
    ends = []
    for i, (k, s, p, d) in enumerate(zip(kernel, stride, padding, dilation, strict=True)):
        place = i - len(kernel)
        if not is_static([x.shape[place], out[place]]):
            ends.append(_end(g, g.size(x, place), k, s, p, d))
            continue
        ends.append(max((int(out[place]) - 1) * s + d * (k - 1) + 1 - int(x.shape[place]) - p, 0))
    return ends


def _end(g: Writer, n: Value, k: int, s: int, p: int, d: int) -> Value:
    """The same for a size that is not fixed, at least ``p``. A last window that begins in the padding is left out."""
    span = d * (k - 1) + 1
    last = g.Div(g.Add(n, 2 * p - span + s - 1), s)
    last = g.Sub(last, g.cast(g.GreaterOrEqual(g.Mul(last, s), g.Add(n, p)), int64))
    end = g.Max(g.Sub(g.Add(g.Mul(last, s), span - p), n), p)
    end.is_size = True
    return end


def _max_pool(
    g: Writer, input: Value, count: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    indices: bool,
) -> Any:  # fmt: skip
    kernel = several(kernel_size, count)
    stride = several(stride, count) if stride not in (None, (), []) else kernel
    padding, dilation = several(padding, count), several(dilation, count)
    result = g.result[0] if isinstance(g.result, tuple) else g.result
    x, single = _batched(g, input, count)
    ends = _ends(g, x, result.shape, kernel, stride, padding, dilation, ceil_mode)
    sizes, before = x.shape[2:], [0] * count
    if any(isinstance(n, Value) or n >= k for n, k in zip([*padding, *ends], kernel * 2, strict=True)):  # or refused
        low = -math.inf if x.dtype.is_floating_point else iinfo(x.dtype).min
        x = padded(g, x, [n for pair in zip(padding[::-1], ends[::-1], strict=True) for n in pair], "constant", low)
        before, padding, ends = padding, [0] * count, [0] * count
    narrow = x.dtype not in (float16, float32, float64, int8, uint8)
    (given,) = [g.cast(x, float64)] if narrow else [x]
    options = {"kernel_shape": kernel, "strides": stride, "pads": [*padding, *ends], "dilations": dilation}
    options["dilations"] = None if set(dilation) == {1} else dilation
    if not indices:
        made = g.MaxPool(given, **options)
        return g.Squeeze(made, [0]) if single else made
    made, places = g.MaxPool(given, outputs=2, **options)
    places.dtype = int64
    places = _in_plane(g, x, places, sizes, before)
    return (g.Squeeze(made, [0]), g.Squeeze(places, [0])) if single else (made, places)


def _in_plane(g: Writer, x: Value, places: Value, sizes: Any, before: list[int]) -> Value:
    """Places in the whole of ``x`` as places in a plane of these sizes, ``before`` whose elements padding was put."""
    count = len(sizes)
    wide = [static_size(x, d - count, "max_pool with indices") for d in range(count)]
    places = g.Mod(places, math.prod(wide))
    if not any(before):
        return places
    total, step = None, 1
    for n, m, p in zip(reversed(wide), reversed(sizes), reversed(before), strict=True):
        line = g.Mul(g.Sub(g.Mod(places, n), p), step)
        total = line if total is None else g.Add(total, line)
        places, step = g.Div(places, n), step * int(m)
    return total


def _register_max(count: int) -> None:
    @translates(f"nn.functional.max_pool{count}d")
    def max_pool(
        g: Writer, input: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        return _max_pool(g, input, count, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    @translates(f"nn.functional.max_pool{count}d_with_indices")
    def with_indices(
        g: Writer, input: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = True,
    ) -> Any:  # fmt: skip
        return _max_pool(g, input, count, kernel_size, stride, padding, dilation, ceil_mode, True)

    @translates("avg_pool1d" if count == 1 else f"nn.functional.avg_pool{count}d")
    def avg_pool(
        g: Writer, input: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: Any = None,
    ) -> Value:  # fmt: skip
        kernel = several(kernel_size, count)
        steps = several(stride, count) if stride not in (None, (), []) else kernel
        return _avg_pool(
            g, input, kernel, steps, several(padding, count), ceil_mode, count_include_pad, divisor_override
        )

    @translates("adaptive_avg_pool1d" if count == 1 else f"nn.functional.adaptive_avg_pool{count}d")
    def adaptive_avg(g: Writer, input: Value, output_size: Any) -> Value:
        return _adaptive_avg(g, input, _wanted(input, output_size, count))

    @translates(f"nn.functional.adaptive_max_pool{count}d")
    def adaptive_max(g: Writer, input: Value, output_size: Any, return_indices: bool = False) -> Any:
        return _adaptive_max(g, input, _wanted(input, output_size, count), return_indices)


def _avg_pool(
    g: Writer, input: Value, kernel: list, stride: list, padding: list, ceil_mode: bool, include: bool, divisor: Any
) -> Value:
    count = len(kernel)
    x, single = _batched(g, input, count)
    ends = _ends(g, x, g.result.shape, kernel, stride, padding, [1] * count, ceil_mode)
    options = {"kernel_shape": kernel, "strides": stride}
    if not ceil_mode and divisor is None:
        made = g.AveragePool(x, pads=padding * 2, count_include_pad=int(include), **options)
        return g.Squeeze(made, [0]) if single else made
    pads = [n for pair in zip(padding[::-1], ends[::-1], strict=True) for n in pair]
    total = g.Mul(g.AveragePool(padded(g, x, pads), **options), float(math.prod(kernel)))
    if divisor is None and any(isinstance(n, Value) for n in ends):
        ones = g.Expand(
            g.constant(1, x.dtype), g.Concat([1, 1], g.Shape(x, start=2), axis=0), shape=(1, 1, *x.shape[2:])
        )
        inner = [n for p in padding[::-1] for n in (p, p)]
        rest = [n for e, p in zip(ends[::-1], padding[::-1], strict=True) for n in (0, _less(g, e, p))]
        ones = padded(g, padded(g, ones, inner, "constant", int(include)), rest)
        made = g.Div(total, g.Mul(g.AveragePool(ones, **options), float(math.prod(kernel))))
    elif divisor is None:
        sizes = [static_size(x, d - count, "avg_pool with ceil_mode") for d in range(count)]
        counted: Any = 1.0
        for n, m, k, s, p in zip(sizes, g.result.shape[-count:], kernel, stride, padding, strict=True):
            begin = np.arange(int(m)) * s - p
            low, high = (begin, n + p) if include else (np.maximum(begin, 0), n)
            counted = np.multiply.outer(counted, np.minimum(begin + k, high) - low)
        made = g.Div(total, g.constant(np.asarray(counted, np.float64), x.dtype))
    else:
        made = g.Div(total, float(divisor))
    return g.Squeeze(made, [0]) if single else made


def _less(g: Writer, n: Any, p: int) -> Any:
    """A size less ``p``, at least 0."""
    return g.Max(g.Sub(n, p), 0, shape=(1,)) if isinstance(n, Value) else max(n - p, 0)


def _wanted(x: Value, output_size: Any, count: int) -> list[Any]:
    """The sizes of the result; None for one that is not fixed and stays."""
    given = list(output_size) if isinstance(output_size, (tuple, list)) else [output_size]
    given = given * count if len(given) == 1 else given
    return [_known(x, i - count) if n is None else int(n) for i, n in enumerate(given)]


def _known(x: Value, dim: int) -> int | None:
    return int(x.shape[dim]) if is_static([x.shape[dim]]) else None


def _parts(n: int, m: int) -> list[tuple[int, int]]:
    """The start and end of the ``m`` windows of ``n`` elements."""
    return [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


def _ranges(g: Writer, n: Value, m: int) -> tuple[Value, Value]:
    """The same of a size that is not fixed, as two tensors."""
    j = g.constant(list(range(m)), int64)
    return g.Div(g.Mul(j, n), m), g.Div(g.Add(g.Mul(g.Add(j, 1), n), m - 1), m)


def _means(g: Writer, n: Any, m: int, dtype: Any) -> Value:
    """The matrix of ``n`` rows that takes elements to the means of ``m`` windows."""
    if isinstance(n, Value):
        begin, end = _ranges(g, n, m)
        row = g.Unsqueeze(g.Range(0, g.scalar(n), 1, dtype=int64), [1])
        inside = g.And(g.GreaterOrEqual(row, begin), g.Less(row, end))
        return g.Div(g.cast(inside, dtype), g.cast(g.Sub(end, begin), dtype))
    table = np.zeros((n, m))
    for j, (begin, end) in enumerate(_parts(n, m)):
        table[begin:end, j] = 1 / (end - begin)
    return g.constant(table, dtype)


def _adaptive_avg(g: Writer, x: Value, out: list[Any]) -> Value:
    count = len(out)
    if all(n == 1 for n in out):
        return g.reduce("ReduceMean", x, list(range(x.rank - count, x.rank)), True)
    sizes = [g.size(x, i - count) for i in range(count)]
    if is_static(sizes) and all(n % m == 0 for n, m in zip(sizes, out, strict=True)):
        kernel = [n // m for n, m in zip(sizes, out, strict=True)]
        return _avg_pool(g, x, kernel, kernel, [0] * count, False, True, None)
    for i, (n, m) in enumerate(zip(sizes, out, strict=True)):
        if m is None:
            continue
        order = list(range(x.rank))
        place = x.rank - count + i
        order[place], order[-1] = order[-1], order[place]
        x = g.transpose(x, order)
        made = g.MatMul(x, _means(g, n, m, x.dtype), shape=[*x.shape[:-1], m])
        x = g.transpose(made, order)
    return x


def _adaptive_max_of_any(g: Writer, x: Value, out: list[Any]) -> Value:
    """Along one dimension after the other, with sizes that are not fixed."""
    for i, m in enumerate(out):
        place = x.rank - len(out) + i
        n = g.size(x, place)
        if m is None:
            continue
        n = n if isinstance(n, Value) else g.constant([n], int64)
        begin, end = _ranges(g, n, m)
        line = g.Range(0, g.scalar(g.Squeeze(g.Add(g.Div(n, m), 2), [0])), 1, dtype=int64)
        places = g.Min(g.Add(g.Unsqueeze(begin, [1]), line), g.Unsqueeze(g.Sub(end, 1), [1]))
        shape = [*x.shape[:place], m, *x.shape[place + 1 :]]
        x = g.reduce("ReduceMax", g.Gather(x, places, axis=place), [place + 1])
        x.shape = tuple(shape)
    return x


def _adaptive_max(g: Writer, input: Value, out: list[Any], indices: bool) -> Any:
    """The windows are gathered. Windows with fewer elements repeat their last one."""
    count = len(out)
    if not indices and not is_static(input.shape[-count:]):
        return _adaptive_max_of_any(g, input, out)
    sizes = [static_size(input, i - count, "adaptive pooling") for i in range(count)]
    lines = []
    for n, m in zip(sizes, out, strict=True):
        parts = _parts(n, m)
        length = max(end - begin for begin, end in parts)
        lines.append(np.array([np.minimum(np.arange(begin, begin + length), end - 1) for begin, end in parts]))
    places = np.zeros((), np.int64)
    for line, n in zip(lines, sizes, strict=True):  # (*windows, *elements)
        places = places[..., None, None] * n + line
    windows = [*range(0, 2 * count, 2), *range(1, 2 * count, 2)]
    places = places.transpose(windows).reshape(*out, -1)
    lead = list(input.shape[: input.rank - count])
    line = g.Reshape(input, [*([0] * len(lead)), math.prod(sizes)])
    found = g.Gather(line, g.constant(places), axis=len(lead))
    made = g.reduce("ReduceMax", found, [-1])
    if not indices:
        return made
    chosen = g.Unsqueeze(g.ArgMax(found, axis=-1, keepdims=0), [-1])
    known = g.Expand(g.constant(places), g.Shape(found))
    return made, g.Squeeze(g.GatherElements(known, chosen, axis=-1), [-1])


for _count in (1, 2, 3):
    _register_max(_count)

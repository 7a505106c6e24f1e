"""Convolutions and windows of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..writer import Unsupported, Value, Writer, is_static
from .shape import static_size
from .table import translates


def several(x: Any, count: int) -> list[int]:
    """A number for each of ``count`` dimensions."""
    given = list(x) if isinstance(x, (tuple, list)) else [x]
    return [int(n) for n in (given * count if len(given) == 1 else given)]


@translates("convolution")
def convolution(
    g: Writer, input: Value, weight: Value, bias: Value | None, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> Value:  # fmt: skip
    count = weight.rank - 2
    single = input.rank == count + 1
    x = g.unsqueeze(input, [0]) if single else input
    sides = several(padding, count)
    more = several(output_padding, count) if transposed else [0] * count
    ends, rest = sides, [0] * count
    if any(m >= s for m, s in zip(more, several(stride, count), strict=True)):  # ONNX wants less than a step
        ends, more = [n - m for n, m in zip(sides, more, strict=True)], [0] * count
        ends, rest = [max(0, n) for n in ends], [max(0, -n) for n in ends]
    options = {
        "kernel_shape": [int(n) for n in weight.shape[2:]] if is_static(weight.shape[2:]) else None,
        "strides": several(stride, count), "dilations": several(dilation, count), "group": groups,
        "pads": [*sides, *ends],
        "output_padding": more if any(more) else None,
    }  # fmt: skip
    made = g.op("ConvTranspose" if transposed else "Conv", x, weight, None if any(rest) else bias, **options)
    if any(rest):  # no window reaches these: they have the bias alone
        made = g.Pad(made, [0] * (count + 2) + [0, 0, *rest])
        made = made if bias is None else g.Add(made, g.Reshape(bias, [1, -1] + [1] * count))
    return g.Squeeze(made, [0]) if single else made


def _windows(g: Writer, x: Value, kernel: list, dilation: list, padding: list, stride: list) -> tuple[list, np.ndarray]:
    """The number of windows along each dimension, and the places of their elements in a padded image."""
    sizes = [static_size(x, d, "unfold") + 2 * p for d, p in zip((-2, -1), padding, strict=True)]
    lines, counts = [], []
    for n, k, d, s in zip(sizes, kernel, dilation, stride, strict=True):
        count = (n - d * (k - 1) - 1) // s + 1
        counts.append(count)
        lines.append(np.arange(k)[:, None] * d + np.arange(count) * s)  # (kernel, windows)
    places = lines[0][:, None, :, None] * sizes[1] + lines[1][None, :, None, :]
    return counts, places.reshape(math.prod(kernel), math.prod(counts))


def _image(g: Writer, x: Value, padding: list[int]) -> Value:
    """``x``, (N, C, H, W), padded."""
    if not any(padding):
        return x
    pads = [0, 0, padding[0], padding[1]] * 2
    h, w = x.shape[-2:]
    return g.Pad(x, pads, shape=[*x.shape[:2], h + 2 * padding[0], w + 2 * padding[1]])


@translates("nn.functional.unfold")
def unfold(
    g: Writer, input: Value, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Value:  # fmt: skip
    kernel, dilation, padding, stride = (several(x, 2) for x in (kernel_size, dilation, padding, stride))
    x = input if input.rank == 4 else g.unsqueeze(input, [0])
    counts, places = _windows(g, x, kernel, dilation, padding, stride)
    c = static_size(x, 1, "unfold")
    image = _image(g, x, padding)
    line = g.Reshape(image, [0, c, int(image.shape[2]) * int(image.shape[3])])
    made = g.Reshape(g.Gather(line, g.constant(places), axis=2), [0, c * math.prod(kernel), math.prod(counts)])
    return made if input.rank == 4 else g.Squeeze(made, [0])


@translates("nn.functional.fold")
def fold(
    g: Writer, input: Value, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Value:
    if g.opset < 18:
        raise Unsupported("fold is from opset 18 on (Col2Im); pass opset_version=18")
    x = input if input.rank == 3 else g.unsqueeze(input, [0])
    made = g.Col2Im(
        x, g.ints(several(output_size, 2)), g.ints(several(kernel_size, 2)), dilations=several(dilation, 2),
        pads=several(padding, 2) * 2, strides=several(stride, 2),
    )  # fmt: skip
    return made if input.rank == 3 else g.Squeeze(made, [0])

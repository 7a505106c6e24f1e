"""Views of DTensors: which dimensions of the result are dimensions of the input, read off a view of the same sizes on
meta."""

from __future__ import annotations

import math
from typing import Any

from ..._typed import Tensor
from ...ops.creation import empty_strided
from .placement_types import Shard
from .rules import Call, Dims, Letters

_INPUT = ("input", 0)


def rule(call: Call, repeat: Any) -> tuple[Dims, list[tuple[int, ...]]] | None:
    """The cut dimensions of a view's results, and their sizes; None if the view needs the whole tensor.

    Args:
        call: the call.
        repeat: runs the op with other arguments.
    Returns:
        Dimensions and sizes of each result, or None.
    """
    x, op = call["input"], call.op
    values = dict(call.values)
    if any(name != "input" for name, _ in call.tensors) or values.get("dtype") is not None:
        return None
    if op.name in ("view_as_real", "view_as_complex", "real", "imag_view", "conjugated_view", "strided_window"):
        return None
    probe, steps = _probe(x, contiguous=op.name in ("view", "reshape"))
    made = repeat({**values, "input": probe})
    if (made[0] if isinstance(made, (tuple, list)) else made).dtype != x.dtype:
        return None
    shapes = [tuple(t.shape) for t in (made if isinstance(made, (tuple, list)) else [made])]
    if op.name in ("view", "reshape"):
        inputs, output, scales = _regrouped(call, tuple(x.shape), shapes[0])
        run = _resized(op.name, shapes[0], scales)
    else:
        first = made[0] if isinstance(made, (tuple, list)) else made
        sources = [
            next((i for i, n in enumerate(x.shape) if steps[i] == step and n == size), None)
            for size, step in zip(first.shape, first.stride(), strict=True)
        ]
        inputs = tuple(i if i in sources else None for i in range(x.dim()))
        output, run = tuple(sources), None
        if op.name == "expand":
            run = _resized("expand", shapes[0], {j: (i, 1, 1) for j, i in enumerate(sources) if i is not None})
        elif op.name == "squeeze":
            dims = values["dim"]
            dims = range(x.dim()) if dims is None else dims if isinstance(dims, (tuple, list)) else [dims]
            values["dim"] = tuple(d % max(x.dim(), 1) for d in dims if x.dim() and x.shape[d] == 1)
            run = _squeezed(values["dim"])
    return Dims({_INPUT: inputs}, output, [{_INPUT}], run=run), shapes


def _probe(x: Tensor, contiguous: bool) -> tuple[Tensor, list[int]]:
    """A tensor without values of the sizes of ``x``, and its strides, of which no two are alike."""
    steps: list[int] = []
    step = 1
    for n in reversed(x.shape):
        steps.insert(0, step)
        step *= max(n, 1) if contiguous else n + 2
    return empty_strided(tuple(x.shape), tuple(steps), dtype=x.dtype, device="meta"), steps


def _resized(name: str, shape: tuple[int, ...], scales: dict[int, tuple[int, int, int]]) -> Any:
    """The view ``name`` to ``shape``, of which dimension ``j`` is ``a / b`` times dimension ``i`` of the part."""

    def run(input: Tensor, **other: Any) -> Tensor:
        sizes = list(shape)
        for j, (i, a, b) in scales.items():
            sizes[j] = input.shape[i] * a // b
        return getattr(input, name.rstrip("_"))(sizes)

    return run


def _squeezed(dims: tuple[int, ...]) -> Any:
    def run(input: Tensor, **other: Any) -> Tensor:
        return input.squeeze(dims) if dims else input.view_as(input)

    return run


def _groups(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Runs of dimensions of both that hold the same elements, as short as can be."""
    groups = []
    i = j = 0
    while i < len(old) or j < len(new):
        a, b = [i] if i < len(old) else [], [j] if j < len(new) else []
        i, j = i + len(a), j + len(b)
        while (x := math.prod(old[d] for d in a)) != (y := math.prod(new[d] for d in b)):
            if x < y:
                a.append(i)
                i += 1
            else:
                b.append(j)
                j += 1
        groups.append((a, b))
    return groups


def _regrouped(
    call: Call, old: tuple[int, ...], new: tuple[int, ...]
) -> tuple[Letters, Letters, dict[int, tuple[int, int, int]]]:
    """A cut dimension stays cut where it is the first of its run and so is the dimension that it becomes."""
    inputs: list = [None] * len(old)
    output: list = [None] * len(new)
    scales: dict[int, tuple[int, int, int]] = {}
    if 0 in old:
        return tuple(inputs), tuple(output), scales
    x: Any = call["input"]
    cuts = [p.dim for p in x.placements if isinstance(p, Shard)]
    n = math.prod(x.device_mesh.size(j) for j, p in enumerate(x.placements) if isinstance(p, Shard))
    for a, b in _groups(old, new):
        a, b = [d for d in a if old[d] > 1], [d for d in b if new[d] > 1]
        if not a or not b:
            continue
        i, j = a[0], b[0]
        whole = len(a) == len(b) == 1
        if whole or i not in cuts or (old[i] % n == 0 and new[j] % n == 0):
            inputs[i] = output[j] = i
            scales[j] = i, new[j], old[i]
    return tuple(inputs), tuple(output), scales

"""``histograms``: how the activations, gradients and parameters of a model are distributed in a step."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from .. import nn
from .._core import Tensor
from ..autograd import no_grad
from ..profiler.table import lay_out
from . import _charts
from ._calls import tensors

__all__ = ["Histogram", "Histograms", "histograms"]


@dataclass(frozen=True)
class Histogram:
    """The numbers of a tensor, counted.

    Attributes:
        module: the path of the module; for a parameter its name.
        kind: ``activation``, ``gradient`` (of that activation), ``parameter`` or ``parameter gradient``.
        shape: sizes of the tensor.
        counts: how many numbers are in each bin. Bins have equal widths, from ``low`` to ``high``.
        low: the least finite number.
        high: the largest finite number.
        mean: of the finite numbers.
        std: their standard deviation.
        zeros: the share of numbers that are 0.
        lost: how many are NaN or infinite.
    """

    module: str
    kind: str
    shape: tuple[int, ...]
    counts: tuple[int, ...]
    low: float
    high: float
    mean: float
    std: float
    zeros: float
    lost: int

    @property
    def notes(self) -> str:
        """Signs of trouble: NaN, all zeros, mostly zeros, very small gradients."""
        found = []
        if self.lost:
            found.append(f"{self.lost} NaN or infinite")
        if self.zeros == 1:
            found.append("all 0")
        elif self.zeros > 0.9:
            found.append(f"{100 * self.zeros:.0f}% are 0")
        if "gradient" in self.kind and 0 < max(abs(self.low), abs(self.high)) < 1e-7:
            found.append("vanishing")
        return ", ".join(found)


class Histograms:
    """The result of :func:`histograms`. ``print`` shows a table with small bars, notebooks show one with pictures.

    Attributes:
        rows: every :class:`Histogram`, in the order of the forward pass; parameters last.
        result: what the step returned.
    """

    def __init__(self, rows: list[Histogram], result: Any) -> None:
        self.rows, self.result = rows, result

    def of(self, module: str, kind: str = "activation") -> Histogram:
        """The last one of a module.

        Args:
            module: its path, or a parameter's name.
            kind: as in :class:`Histogram`.
        Raises:
            KeyError: there is none.
        """
        for row in reversed(self.rows):
            if (row.module, row.kind) == (module, kind):
                return row
        raise KeyError(f"no {kind} of {module!r}; there are {sorted({row.module for row in self.rows})}")

    def _cells(self, row: Histogram) -> list[str]:
        numbers = [f"{v:.3g}" for v in (row.low, row.high, row.mean, row.std)]
        return [row.module, row.kind, str(list(row.shape)), *numbers, f"{100 * row.zeros:.0f}%", row.notes]

    def __str__(self) -> str:
        heads = ["Module", "What", "Sizes", "Least", "Most", "Mean", "Std", "Zeros", "Note"]
        rows = [[*self._cells(row), _charts.sparkline(row.counts)] for row in self.rows]
        heads.append("From least to most")
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        sides = ["<", "<", "<", ">", ">", ">", ">", ">", "<", "<"]
        return lay_out(list(zip(heads, widths, sides, strict=True)), rows).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads = ["Module", "What", "Sizes", "Least", "Most", "Mean", "Std", "Zeros", "Note", "From least to most"]
        body = []
        for row in self.rows:
            step = (row.high - row.low) / max(len(row.counts), 1)
            hints = [f"{row.low + i * step:.3g}: {count}" for i, count in enumerate(row.counts)]
            cells = [f"<td>{escape(cell)}</td>" for cell in self._cells(row)]
            cells[-1] = f'<td style="color:#d55e00">{escape(row.notes)}</td>'
            body.append(f"<tr>{''.join(cells)}<td>{_charts.bars(row.counts, hints)}</td></tr>")
        head = "".join(f"<th>{name}</th>" for name in heads)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"

    def save(self, path: Any) -> None:
        """Write a page of its own.

        Args:
            path: it ends in ``.html``.
        Raises:
            ValueError: it has another ending.
        """
        if Path(path).suffix != ".html":
            raise ValueError(f"Histograms.save(): expected a path that ends in .html, got {str(path)!r}")
        style = "body{font-family:sans-serif;color-scheme:light dark}td,th{padding:2px 10px;text-align:left}"
        Path(path).write_text(
            f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>Histograms</title><style>{style}</style></head>'
            f"<body>{self._repr_html_()}</body></html>", encoding="utf-8",
        )  # fmt: skip


def _count(module: str, kind: str, t: Tensor, bins: int) -> Histogram:
    with no_grad():
        x = t.detach().flatten()
        x = (x.abs() if x.is_complex() else x).double()
        finite = x[x.isfinite()]
        n, total = finite.numel(), x.numel()
        low, high = (finite.min().item(), finite.max().item()) if n else (math.nan, math.nan)
        counts = finite.histc(bins, low, high).long().tolist() if n else [0] * bins
        mean = finite.mean().item() if n else math.nan
        std = finite.std(correction=0).item() if n else math.nan
        zeros = (x == 0).sum().item() / total if total else 0.0
    return Histogram(module, kind, tuple(t.shape), tuple(counts), low, high, mean, std, zeros, total - n)


def histograms(step: Callable[[], Any], model: nn.Module, *, bins: int = 24, parameters: bool = True) -> Histograms:
    """Run ``step()`` once, and count how activations, gradients and parameters of ``model`` are distributed.

    Activations are the outputs of the innermost modules, and their gradients are those that the backward pass brings,
    if the step has one. So a layer that is dead, a gradient that vanishes with depth, or a NaN is seen at once.

    It is a real step: if it changes parameters, they are changed. Parameters are counted as they are after it.

    Args:
        step: takes no arguments, and does what a step of training does, or only calls the model.
        model: the Module whose modules are looked at.
        bins: of each histogram.
        parameters: count parameters and their gradients too.
    Returns:
        :class:`Histograms`: ``print`` them, look at them in a notebook, or ``save("histograms.html")``.
    Raises:
        TypeError: ``model`` is no Module.

    Example:
        >>> model = taeda.nn.Sequential(taeda.nn.Linear(8, 32), taeda.nn.ReLU(), taeda.nn.Linear(32, 1))
        >>> x = taeda.randn(64, 8)
        >>> found = taeda.utils.histograms(lambda: model(x).sum().backward(), model)
        >>> found.of("1").low, sum(found.of("1").counts)
        (0.0, 2048)
        >>> found.of("2", "gradient").mean
        1.0
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"histograms(): expected a Module, got {type(model).__name__}")
    rows: list[Histogram] = []

    def watch(name: str) -> Callable:
        def hook(module: Any, args: Any, output: Any) -> None:
            for t in tensors(output):
                rows.append(_count(name, "activation", t, bins))
                if t.requires_grad:
                    place = len(rows)
                    rows.append(rows[-1])  # its gradient's, if one comes
                    t.register_hook(lambda g, place=place: _put(place, name, g))

        return hook

    def _put(place: int, name: str, g: Tensor) -> None:
        rows[place] = _count(name, "gradient", g, bins)

    with ExitStack() as stack:
        for name, module in model.named_modules():
            if not module._modules:
                stack.callback(module.register_forward_hook(watch(name)).remove)
        result = step()
    found = [row for i, row in enumerate(rows) if i == 0 or row is not rows[i - 1]]
    for name, p in model.named_parameters() if parameters else ():
        found.append(_count(name, "parameter", p, bins))
        if p.grad is not None:
            found.append(_count(name, "parameter gradient", p.grad, bins))
    return Histograms(found, result)

"""``Curves``: what a training run measures, drawn in a terminal and in a notebook as it comes."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from . import _charts

__all__ = ["Curves"]


class Curves:
    """Numbers that a training run gives, by name, and their curves.

    ``print`` draws them as text, a notebook as a picture. With ``live`` the drawing is made again while numbers come:
    in the place of the one before, in a notebook and in a terminal.

    Args:
        live: draw while numbers come, at most once in so many seconds; None: only when asked.
        log: a logarithmic axis. Numbers that are not positive are left out.
        together: curves of a picture, as a list of tuples of names; default: each name has a picture of its own.

    Attributes:
        steps: the steps of each name.
        values: the numbers of each name.

    Examples:
        >>> curves = taeda.utils.Curves()
        >>> for step in range(100):
        ...     curves.add(loss=1 / (1 + step), accuracy=step / 100)
        >>> curves.values["loss"][:3]
        [1.0, 0.5, 0.3333333333333333]
        >>> print(curves.text(width=30, height=4).splitlines()[0])
        loss, now 0.01
    """

    def __init__(
        self, *, live: float | None = None, log: bool = False, together: list[tuple[str, ...]] | None = None
    ) -> None:
        self.live, self.log, self.together = live, log, together or []
        self.steps: dict[str, list[float]] = {}
        self.values: dict[str, list[float]] = {}
        self._drawn = time.monotonic()
        self._handle: Any = None
        self._lines = 0

    def add(self, step: float | None = None, /, **values: Any) -> None:
        """Numbers of a step.

        Args:
            step: its number; default: one more than the last of the same name.
            **values: numbers, or tensors of one element, by name.
        """
        for name, value in values.items():
            steps = self.steps.setdefault(name, [])
            steps.append(step if step is not None else steps[-1] + 1 if steps else 0)
            self.values.setdefault(name, []).append(float(value))
        if self.live is not None and time.monotonic() - self._drawn >= self.live:
            self.show()

    def _groups(self) -> list[list[str]]:
        """The names of each picture."""
        grouped = {name for group in self.together for name in group}
        groups = [[name for name in group if name in self.values] for group in self.together]
        return [g for g in groups if g] + [[name] for name in self.values if name not in grouped]

    def text(self, width: int = 60, height: int = 8) -> str:
        """The curves as text, one below the other.

        Args:
            width: characters of a curve.
            height: lines of a curve.
        """
        series = {name: (self.steps[name], self.values[name]) for group in self._groups() for name in group}
        return _charts.text_lines(series, log=self.log, width=width, height=height)

    __str__ = text

    def __repr__(self) -> str:
        return f"<Curves of {', '.join(f'{name} ({len(v)})' for name, v in self.values.items()) or 'nothing'}>"

    def svg(self, *names: str) -> str:
        """A picture with the curves of some names as SVG.

        Args:
            *names: which; default: all.
        """
        series = {name: (self.steps[name], self.values[name]) for name in names or self.values}
        return _charts.lines(series, xlabel="step", log=self.log)

    def _repr_html_(self) -> str:
        pictures = "".join(self.svg(*group) for group in self._groups())
        return f'<div style="display:flex;flex-wrap:wrap;gap:1em">{pictures}</div>'

    def show(self) -> None:
        """Draw now: in a notebook in the place of the drawing before, in a terminal over it, else below it."""
        self._drawn = time.monotonic()
        if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()) is not None:
            if hasattr(shell, "kernel"):
                from IPython.display import display  # type: ignore[import-not-found]

                if self._handle is None:
                    self._handle = display(self, display_id=True)
                else:
                    self._handle.update(self)
                return
        text = self.text()
        back = f"\x1b[{self._lines}F\x1b[J" if self._lines and sys.stdout.isatty() else ""
        print(f"{back}{text}", flush=True)
        self._lines = text.count("\n") + 1

    def save(self, path: Any) -> None:
        """Write the picture with all curves to a file.

        Args:
            path: it ends in ``.svg``.
        Raises:
            ValueError: it has another ending.
        """
        if Path(path).suffix != ".svg":
            raise ValueError(f"Curves.save(): expected a path that ends in .svg, got {str(path)!r}")
        Path(path).write_text(self.svg(), encoding="utf-8")

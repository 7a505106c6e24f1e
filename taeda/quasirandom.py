"""Sobol' sequences: points that fill the unit cube more evenly than random ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import taeda

from ._typed import Tensor

__all__ = ["SobolEngine"]


def _directions(dimension: int, bits: int) -> list[list[int]]:
    """The direction numbers of each dimension, as integers of ``bits`` bits, first bit highest.

    From the primitive polynomials and initial numbers of Joe & Kuo 2008, criterion D(6): a line of ``_sobol.txt`` for
    each dimension from the second on, the polynomial's inner coefficients and then its initial numbers.
    """
    rows = [[1] * bits]
    with Path(__file__).with_name("_sobol.txt").open() as lines:
        for _ in range(1, dimension):
            inner, *numbers = map(int, next(lines).split())
            degree = len(numbers)
            for i in range(degree, bits):
                new = numbers[i - degree] ^ (numbers[i - degree] << degree)
                for k in range(1, degree):
                    if inner >> (degree - 1 - k) & 1:
                        new ^= numbers[i - k] << k
                numbers.append(new)
            rows.append(numbers[:bits])
    return [[m << (bits - 1 - i) for i, m in enumerate(row)] for row in rows]


class SobolEngine:
    """Draws the points of a Sobol' sequence in order.

    Args:
        dimension: of the cube, at most ``MAXDIM``.
        scramble: randomise the points and keep their evenness (Matousek 1998: a random lower triangular matrix and a
            random shift for each dimension).
        seed: of the scrambling; taken from the default generator where it is not given.
    Raises:
        ValueError: the dimension is out of range.
    """

    MAXBIT = 30
    MAXDIM = 1024

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got {dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        self.shift = taeda.zeros(dimension, dtype=taeda.int64)
        self.sobolstate = taeda.tensor(_directions(dimension, self.MAXBIT))
        if scramble:
            self._scramble()

    def _scramble(self) -> None:
        generator = None if self.seed is None else taeda.Generator().manual_seed(self.seed)
        bits = self.MAXBIT
        shift = taeda.randint(2, (self.dimension, bits), generator=generator)
        self.shift = (shift << taeda.arange(bits)).sum(1)
        matrix = taeda.randint(2, (self.dimension, bits, bits), generator=generator).tril().float()
        matrix.diagonal(0, -2, -1).fill_(1)
        places = taeda.arange(bits - 1, -1, -1)
        columns = (self.sobolstate.unsqueeze(-1) >> places) & 1
        scrambled = (columns.float() @ matrix.mT).long() & 1
        self.sobolstate = (scrambled << places).sum(-1)

    def _points(self, first: int, n: int) -> Tensor:
        """Points ``first`` to ``first + n - 1`` as integers: each bit of the index's Gray code adds a direction."""
        index = taeda.arange(first, first + n)
        gray = index ^ (index >> 1)
        points = self.shift.expand(n, -1)
        for bit in range((first + n).bit_length()):
            points = points ^ (((gray >> bit) & 1).unsqueeze(1) * self.sobolstate[:, bit])
        return points

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``n`` points, ``(n, dimension)``, in [0, 1)."""
        points = self._points(self.num_generated, n)
        self.num_generated += n
        result = points.to(dtype or taeda.get_default_dtype()) / 2**self.MAXBIT
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``2**m`` points.

        Args:
            m: the exponent.
            out: where the points go.
            dtype: of the points; the default dtype if None.
        Returns:
            ``(2**m, dimension)``.
        Raises:
            ValueError: with them the number of points drawn would not be a power of two.
        """
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use 'SobolEngine.draw()' "
                "instead."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin again with the first point."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next ``n`` points."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        parts += ["scramble=True"] if self.scramble else []
        parts += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(parts)})"

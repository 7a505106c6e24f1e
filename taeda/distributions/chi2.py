"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from .._core import Tensor
from . import constraints
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of the squares of ``df`` normal numbers: a gamma distribution.

    Args:
        df: degrees of freedom.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints: ClassVar[dict] = {"df": constraints.positive}
    _batched: ClassVar[dict[str, int]] = {"concentration": 0, "rate": 0}

    def __init__(self, df: Any, validate_args: bool | None = None):
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """Degrees of freedom."""
        return self.concentration * 2

"""The class Tensor with its types, which type checkers do not see in the core: that is compiled.

Modules whose types programs see import it from here.
"""

from __future__ import annotations

from ._core import Tensor

__all__ = ["Tensor"]

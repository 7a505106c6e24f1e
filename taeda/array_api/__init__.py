"""The Python array API standard, version 2024.12: the same tensors, under the standard's names and rules.

``x.__array_namespace__()`` gives this module. It is apart from ``taeda`` because the two ask for different things under
one name: PyTorch's ``max(x, dim)`` gives indices too, its ``sum`` of uint8 is int64, its arrays of no dimensions give
way in promotion. What remains different is listed in ``docs/array-api.md``.
"""

from __future__ import annotations

from math import e, inf, nan, pi

from .._core import bool_ as bool
from .._core import complex64, complex128, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64
from . import _arranging, _creation, _dtypes, _elementwise, _reductions, fft, linalg
from ._arranging import *  # noqa: F403
from ._creation import *  # noqa: F403
from ._dtypes import *  # noqa: F403
from ._dtypes import __array_namespace_info__
from ._elementwise import *  # noqa: F403
from ._reductions import *  # noqa: F403

__array_api_version__ = "2024.12"

newaxis = None

__all__ = [
    *_arranging.__all__, *_creation.__all__, *_dtypes.__all__, *_elementwise.__all__, *_reductions.__all__,
    "__array_api_version__", "bool", "complex64", "complex128", "e", "fft", "float32", "float64", "inf", "int8",
    "int16", "int32", "int64", "linalg", "nan", "newaxis", "pi", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip

"""Ops of ONNX that are functions of taeda, element by element. Loading and exporting read the same table."""

from __future__ import annotations

from collections.abc import Callable

from ..nn import functional as F
from ..ops.comparison import ge, gt, le, lt
from ..ops.elementary import acos, acosh, asin, asinh, atan, atanh, cos, cosh, exp, log, sigmoid, sin, sinh, tan, tanh
from ..ops.pointwise import abs, mul, neg, sign
from ..ops.powers import reciprocal, sqrt
from ..ops.special import erf

#: Of floating-point numbers alone.
FLOATING: dict[str, Callable] = {
    "Acos": acos, "Acosh": acosh, "Asin": asin, "Asinh": asinh, "Atan": atan, "Atanh": atanh, "Cos": cos,
    "Cosh": cosh, "Erf": erf, "Exp": exp, "HardSwish": F.hardswish, "Log": log, "Reciprocal": reciprocal,
    "Sigmoid": sigmoid, "Sin": sin, "Sinh": sinh, "Softsign": F.softsign, "Sqrt": sqrt, "Tan": tan, "Tanh": tanh,
}  # fmt: skip
#: Of all numbers: one operand, and two.
UNARY: dict[str, Callable] = {"Abs": abs, "Neg": neg, "Relu": F.relu, "Sign": sign}
BINARY: dict[str, Callable] = {"Mul": mul, "Less": lt, "LessOrEqual": le, "Greater": gt, "GreaterOrEqual": ge}

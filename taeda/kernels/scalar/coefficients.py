"""Coefficients of scalar functions by name, from the JSON files in this folder, which ``tools/fit.py`` writes and
explains.

Polynomials, by type, have the constant term first. Constants that need more digits than a float has are sums of floats,
largest first.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def _frozen(x: Any) -> Any:
    """Lists as tuples: they are parts of kernels' keys."""
    if isinstance(x, dict):
        return {name: _frozen(value) for name, value in x.items()}
    return tuple(map(_frozen, x)) if isinstance(x, list) else x


def _read(name: str) -> SimpleNamespace:
    return SimpleNamespace(**_frozen(json.loads((Path(__file__).parent / f"{name}.json").read_text())))


tables = _read("tables")
bessel_tables = _read("bessel_tables")
piece_tables = _read("piece_tables")

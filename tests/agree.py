"""Whether results agree: the structure, dtypes, sizes, and values. Either side may be of taeda, PyTorch or NumPy.

An error is no result: a test that expects one says which (:func:`tests.conformance.peer.compare` takes ``raises``).
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

WIDE = ("float32", "float64", "complex64", "complex128")


def is_tensor(x: Any) -> bool:
    """Whether ``x`` has elements."""
    return isinstance(x, np.ndarray) or hasattr(x, "detach")


def elements(x: Any) -> tuple[str, np.ndarray]:
    """The name of the dtype, and the elements: of smaller floats as float32."""
    if isinstance(x, np.ndarray):
        return x.dtype.name, x
    name = str(x.dtype).split(".")[1]
    x = x.detach().resolve_conj().resolve_neg()
    if name not in WIDE and (x.is_floating_point() or x.is_complex()):
        x = x.cfloat() if x.is_complex() else x.float()
    return name, x.cpu().numpy()


def close(got: Any, want: Any, where: str = "result", rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """Tensors to the tolerances, NaN like NaN; everything else is equal. With tolerances of 0 all numbers are."""
    if is_tensor(want):
        assert is_tensor(got), f"{where}: {got!r} instead of a tensor"
        (name, x), (wanted, y) = elements(got), elements(want)
        assert (name, x.shape) == (wanted, y.shape), where
        if y.dtype.kind in "fc":
            np.testing.assert_allclose(x, y, rtol, atol, err_msg=where)
        else:
            np.testing.assert_array_equal(x, y, err_msg=where)
    elif isinstance(want, dict):
        assert list(got) == list(want), where
        for key in want:
            close(got[key], want[key], f"{where}[{key!r}]", rtol, atol)
    elif isinstance(want, (tuple, list)):
        assert isinstance(got, (tuple, list)) and len(got) == len(want), where
        for i, (x, y) in enumerate(zip(got, want, strict=True)):
            close(x, y, f"{where}[{i}]", rtol, atol)
    elif isinstance(want, float):
        assert type(got) is float and got == pytest.approx(want, rel=min(rtol, 1e-6), nan_ok=True), where
    else:
        assert got == want and isinstance(got, bool) == isinstance(want, bool), where


def imported(path: Path) -> ModuleType:
    """The module in a file, under its name: scripts look for their source there."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    sys.modules[path.stem] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

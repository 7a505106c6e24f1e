"""``torch.testing._internal.common_utils``: the test case that packages derive theirs from."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any

import taeda
from taeda.testing import assert_close

__all__ = ["TestCase", "run_tests"]

SEED = 1234


class TestCase(unittest.TestCase):
    """A test case whose ``assertEqual`` compares tensors, numbers and nests of them as ``assert_close`` does."""

    precision: float = 0
    rel_tol: float = 0

    def setUp(self) -> None:
        """Equal random numbers for every test."""
        taeda.manual_seed(SEED)

    def assertEqual(
        self, x: Any, y: Any, msg: str | Callable[[str], str] | None = None, *, atol: float | None = None,
        rtol: float | None = None, equal_nan: bool = True, exact_dtype: bool = True, exact_device: bool = False,
        exact_layout: bool = False, exact_stride: bool = False, exact_is_coalesced: bool = False,
    ) -> None:  # fmt: skip
        """Compare ``x`` with ``y``; what is no tensor, number or nest of them by ``==``."""
        exact = {"exact_device": exact_device, "exact_layout": exact_layout, "exact_stride": exact_stride}
        options: dict[str, Any] = {
            "atol": atol, "rtol": rtol, "equal_nan": equal_nan, "exact_dtype": exact_dtype, **exact,
        }  # fmt: skip
        nests = (list, tuple)
        if isinstance(x, Mapping) and isinstance(y, Mapping) and x.keys() == y.keys():
            for key in x:
                self.assertEqual(x[key], y[key], msg, **options)
            return
        if isinstance(x, nests) and isinstance(y, nests) and len(x) == len(y):
            for a, b in zip(x, y, strict=True):
                self.assertEqual(a, b, msg, **options)
            return
        if isinstance(x, taeda.Tensor) and isinstance(y, nests):
            y = taeda.as_tensor(y, dtype=x.dtype)
        if atol is None and rtol is None and (self.precision or self.rel_tol):
            atol, rtol = self.precision, self.rel_tol
        try:
            assert_close(
                x, y, atol=atol, rtol=rtol, equal_nan=equal_nan, msg=msg, check_device=exact_device,
                check_dtype=exact_dtype and not isinstance(x, Number), check_layout=exact_layout,
                check_stride=exact_stride,
            )  # fmt: skip
        except TypeError:  # other kinds of objects
            super().assertEqual(x, y, msg if isinstance(msg, str) else None)

    def assertNotEqual(self, x: Any, y: Any, msg: str | None = None, **options: Any) -> None:  # type: ignore[override]
        """Fail where :meth:`assertEqual` passes."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, **options)


def run_tests(argv: list[str] | None = None) -> None:
    """Run the tests of the main module."""
    unittest.main(argv=argv)

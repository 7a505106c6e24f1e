"""``torch._dynamo.testing``: backends that count what they are given, and comparing nests of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import fx

from . import lookup_backend


class CompileCounterWithBackend:
    """A backend that counts graphs (``frame_count``) and their calls of ops (``op_count``), and hands them to
    another."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.clear()

    def __call__(self, gm: fx.GraphModule, example_inputs: list) -> Callable:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)

    def clear(self) -> None:
        """Count from nothing."""
        self.frame_count = self.op_count = 0
        self.graphs: list[fx.GraphModule] = []


class CompileCounter(CompileCounterWithBackend):
    """The same, of which the graphs are run as they are."""

    def __init__(self) -> None:
        super().__init__("eager")


class EagerAndRecordGraphs(CompileCounterWithBackend):
    """A backend that keeps its graphs, and runs them as they are."""

    def __init__(self) -> None:
        super().__init__("eager")


def same(a: Any, b: Any, tol: float = 1e-4, equal_nan: bool = False) -> bool:
    """Whether two nests of tensors and numbers are equal to within ``tol``, absolute and relative."""
    try:
        taeda.testing.assert_close(a, b, rtol=tol, atol=tol, equal_nan=equal_nan, check_dtype=False)
    except AssertionError:
        return False
    return True


def rand_strided(size: Any, stride: Any, dtype: Any = taeda.float32, device: Any = "cpu", extra_size: int = 0) -> Any:
    """Random numbers in a tensor of these strides."""
    needed = sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1 + extra_size
    flat = taeda.randn(needed).to(dtype) if dtype.is_floating_point else taeda.randint(0, 2, (needed,), dtype=dtype)
    return taeda.as_strided(flat, size, stride).to(device)

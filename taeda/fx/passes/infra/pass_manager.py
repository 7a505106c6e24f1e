"""``PassManager``: passes in an order that meets constraints, until nothing changes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from taeda.nn import Module

from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn: Callable) -> Callable:
    """``fn``, whose result is a PassResult: where it gives nothing, the module counts as changed."""
    if fn is None:
        return None

    @functools.wraps(fn)
    def wrapped(gm: Any) -> PassResult:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        return result if isinstance(result, PassResult) else PassResult(result, True)

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable[[Callable, Callable], bool]:
    """The constraint that ``this`` comes before ``that``."""

    def holds(a: Callable, b: Callable) -> bool:
        return a != that or b != this

    return holds


class PassManager:
    """Runs passes one after the other.

    Args:
        passes: callables that take a module, and give a PassResult.
        constraints: ``f(a, b)`` says whether pass ``a`` may come before ``b``.
        steps: how often to run them all.
        run_checks_after_each_pass: run the checks (:meth:`add_checks`) after each.
        suppress_check_failures: an order that breaks a constraint is no error.
    """

    def __init__(
        self, passes: list[Callable] | None = None,
        constraints: list[Callable[[Callable, Callable], bool]] | None = None, steps: int | None = None,
        run_checks_after_each_pass: bool = False, suppress_check_failures: bool = False,
    ) -> None:  # fmt: skip
        self.passes = list(passes or ())
        self.constraints = list(constraints or ())
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Callable) -> None:
        """Run this pass too."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[[Callable, Callable], bool]) -> None:
        """Keep this constraint too."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Check the order of the passes.

        Raises:
            RuntimeError: it breaks a constraint.
        """
        if self._validated:
            return
        for i, first in enumerate(self.passes):
            for second in self.passes[i + 1 :]:
                if not all(constraint(first, second) for constraint in self.constraints):
                    raise RuntimeError(
                        f"pass schedule constraint violated. Expected {first} before {second} but found it after"
                    )
        self._validated = True

    def solve_constraints(self) -> None:
        """Put the passes in an order that meets the constraints.

        Raises:
            RuntimeError: there is none.
        """
        left, order = list(self.passes), []
        while left:
            for candidate in left:
                others = [p for p in left if p is not candidate]
                if all(constraint(candidate, p) for constraint in self.constraints for p in others):
                    order.append(candidate)
                    left.remove(candidate)
                    break
            else:
                raise RuntimeError(f"Circular dependency detected within the following passes: {left}")
        self.passes = order
        self._validated = True

    def add_checks(self, check: Callable[[Module], None]) -> None:
        """Run ``check(module)`` after passes.

        Args:
            check: the function.

        Raises:
            TypeError: it does not take one argument called ``module``.
        """
        if list(inspect.signature(check).parameters) != ["module"]:
            raise TypeError("PassManager check function should only take in one variable, a module")
        setattr(self, "check", check)  # noqa: B010

    def check(self, module: Module) -> None:
        """The checks after passes: none, unless :meth:`add_checks` was called."""

    def __call__(self, module: Module) -> PassResult:
        """Run the passes.

        Args:
            module: the module.

        Returns:
            The module, and whether a pass changed it.

        Raises:
            Exception: a pass failed; its name and those of the passes before it are in the text.
            TypeError: a pass gave no PassResult.
        """
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            modified = False
            for i, step in enumerate(self.passes):
                name = getattr(step, "__name__", type(step).__name__)
                try:
                    result = step(module)
                    if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
                        raise TypeError(
                            f"The result of the pass {name} should be type PassResult. Please wrap it with "
                            "pass_result_wrapper()"
                        )
                except Exception as error:
                    before = [getattr(p, "__name__", type(p).__name__) for p in self.passes[:i]]
                    raise Exception(
                        f"An error occurred when running the '{name}' pass after the following passes: {before}"
                    ) from error
                module, modified = result.graph_module, modified or result.modified
                if isinstance(module, GraphModule):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)

"""``torch.utils._contextlib``: context managers that are decorators too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["_DecoratorContextManager", "context_decorator"]


def context_decorator(ctx: Any, func: Callable) -> Callable:
    """``func`` called within a context: ``ctx`` itself, or what ``ctx()`` gives each time."""

    def make() -> Any:
        return ctx() if callable(ctx) and not hasattr(ctx, "__enter__") else ctx

    if inspect.isgeneratorfunction(func):

        @functools.wraps(func)
        def steps(*args: Any, **kwargs: Any) -> Any:
            generator, sent = func(*args, **kwargs), None
            while True:
                try:
                    with make():
                        value = generator.send(sent)
                except StopIteration as stop:
                    return stop.value
                sent = yield value

        return steps

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return wrapped


class _DecoratorContextManager:
    """A context manager that can stand above a function."""

    def __call__(self, func: Callable) -> Callable:
        return context_decorator(self.clone, func)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *exc: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Another of the same kind."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without arguments: the class itself may stand above a function."""

    def __new__(cls, orig_func: Callable | None = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)

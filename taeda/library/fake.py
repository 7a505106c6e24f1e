"""Results of an op without values: what a function of ``register_fake`` may ask for."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from .._core.settings import within

#: What `get_ctx` gives, by thread, within a function of ``register_fake``.
_fake = threading.local()


class FakeImplCtx:
    """The object that a function of ``register_fake`` may ask for sizes; :func:`get_ctx` gives it."""

    def __init__(self, size: Callable) -> None:
        self._size = size

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        """A size of the result that depends on values.

        Args:
            min: the least that it can be.
            max: the most that it can be; None: there is no limit.

        Returns:
            The size, a number that a program knows by name.

        Raises:
            ValueError: the range is not one of sizes.
        """
        if not (isinstance(min, int) and (max is None or isinstance(max, int))):
            raise ValueError(f"new_dynamic_size(min={min}, max={max}): expected numbers that do not depend on sizes")
        if min < 0:
            raise ValueError(f"new_dynamic_size(min={min}): a size is not negative")
        return self._size(min, max)

    def create_unbacked_symint(self, *, min: int = 2, max: int | None = None) -> Any:
        """The older name of :meth:`new_dynamic_size`."""
        warnings.warn(
            "`create_unbacked_symint` is deprecated, please use `new_dynamic_size` instead", FutureWarning, stacklevel=2
        )
        return self.new_dynamic_size(min=min, max=max)


def fake_context(context: Callable) -> AbstractContextManager:
    """Within it, :func:`get_ctx` gives what ``context()`` gives."""
    return within(_fake, context=context)


def get_ctx() -> FakeImplCtx | None:
    """The object that a function of ``register_fake`` asks for a size that depends on values.

    Returns:
        An object with ``new_dynamic_size(min=0, max=None)``; None outside such functions.

    Raises:
        RuntimeError: the op was called on device meta, where such sizes are not known.

    Examples:
        >>> @taeda.library.custom_op("docs::positive", mutates_args=())
        ... def positive(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x[x > 0]
        >>> @positive.register_fake
        ... def _(x):
        ...     return x.new_empty(taeda.library.get_ctx().new_dynamic_size(max=x.numel()))
    """
    context = getattr(_fake, "context", None)
    return None if context is None else context()

"""Switches of recording: ``no_grad``, ``enable_grad``, ``set_grad_enabled`` and ``inference_mode``.

Each is a context manager and a decorator. The switch itself is one thread-local word in the core.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _core
from .._core.callbacks import callbacks
from .._warn import warn_caller

_F = TypeVar("_F", bound=Callable[..., Any])

is_grad_enabled = _core.is_grad_enabled
is_inference_mode_enabled = _core.is_inference_mode_enabled


def on_values(function: Callable) -> Callable:
    """``function``, a transform. It gets values in a program that is recorded for a backend, not stand-ins for them."""

    @functools.wraps(function)
    def transform(*args: Any, **kwargs: Any) -> Any:
        if callbacks.transform is None:
            return function(*args, **kwargs)
        return callbacks.transform(function, args, kwargs)

    return transform


class _Mode:
    """A context manager that is also a decorator of functions, generators and classes."""

    def _clone(self) -> _Mode:
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def __call__(self, function: _F) -> _F:
        return self._wrapped(function)

    def _wrapped(self, function: Callable) -> Any:
        if inspect.isclass(function):
            warn_caller("Decorating classes is deprecated: decorate its functions, or __init__ alone", FutureWarning)
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self._clone():
                return function(*args, **kwargs)

        return wrapped

    def _wrap_generator(self, function: Callable) -> Callable:
        """The mode holds while the generator runs, not while its caller does."""

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            try:
                with self._clone():
                    item = next(generator)
                while True:
                    try:
                        request = yield item
                    except GeneratorExit:
                        with self._clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        with self._clone():
                            item = generator.throw(error)
                    else:
                        with self._clone():
                            item = generator.send(request)
            except StopIteration as stop:
                return stop.value

        return wrapped


class _Recording(_Mode):
    """Recording is on or off, as ``_on`` says. ``with mode():``, ``@mode()`` or ``@mode``."""

    _on: bool

    if TYPE_CHECKING:  # `@no_grad` without parentheses gives a function, which the type of `__new__` cannot say

        def __init__(self, function: Callable | None = None) -> None: ...

    else:

        def __new__(cls, function: Callable | None = None):
            mode = super().__new__(cls)
            return mode if function is None else mode(function)

    def __enter__(self) -> None:
        self.previous = _core.set_grad_enabled(self._on)

    def __exit__(self, *exc: object) -> None:
        _core.restore_grad_mode(self.previous)


class no_grad(_Recording):
    """Ops inside are not recorded: their results do not require grad and keep nothing for a backward pass.

    Use it where no gradient is wanted, as in evaluation or an update of weights by hand: it saves memory and time. A
    context manager and a decorator: ``with no_grad():``, ``@no_grad()`` or ``@no_grad``. It holds for this thread
    alone.

    Args:
        function: the decorated function, if there are no parentheses.
    Examples:
        >>> weight = taeda.ones(2, requires_grad=True)
        >>> weight.sum().backward()
        >>> with taeda.no_grad():
        ...     weight -= 0.5 * weight.grad  # a step of gradient descent
        >>> weight
        tensor([0.5000, 0.5000], requires_grad=True)
    """

    _on = False


class enable_grad(_Recording):
    """Ops inside are recorded, also within :func:`no_grad`. A context manager and a decorator.

    Args:
        function: the decorated function, if there are no parentheses.
    Examples:
        >>> x = taeda.ones(1, requires_grad=True)
        >>> with taeda.no_grad():
        ...     with taeda.enable_grad():
        ...         y = 2 * x
        >>> y.requires_grad
        True
    """

    _on = True


class recording(_Recording):
    """As :func:`enable_grad`, also within :func:`inference_mode`: for the function that a transform differentiates."""

    def __enter__(self) -> None:
        self.previous = _core.record_again()


class unrecorded(recording):
    """As :func:`no_grad`; within :func:`inference_mode` it makes plain tensors: for what a transform gives."""

    def __enter__(self) -> None:
        super().__enter__()
        _core.set_grad_enabled(False)


class set_grad_enabled(_Mode):
    """Turns recording on or off: at once, or as a context manager until its end. A decorator too.

    Args:
        mode: whether ops are recorded.
    Raises:
        TypeError: ``mode`` is no bool.
    Examples:
        >>> x = taeda.ones(1, requires_grad=True)
        >>> for training in (True, False):
        ...     with taeda.set_grad_enabled(training):
        ...         print((2 * x).requires_grad)
        True
        False
    """

    def __init__(self, mode: bool) -> None:
        if mode is not True and mode is not False:
            _core.expect_bool("set_grad_enabled", "enabled", mode)
        self.mode = mode
        self.previous = _core.set_grad_enabled(mode)

    def _clone(self) -> set_grad_enabled:
        return type(self)(self.mode)

    def __call__(self, function: _F) -> _F:
        _core.restore_grad_mode(self.previous)
        return super().__call__(function)

    def __enter__(self) -> None:
        _core.set_grad_enabled(self.mode)

    def __exit__(self, *exc: object) -> None:
        _core.restore_grad_mode(self.previous)


class inference_mode(_Mode):
    """As :func:`no_grad`, and tensors made inside can never take part in recording later, which saves a little more. A
    context manager and a decorator.

    Args:
        mode: False leaves things as they are outside; or a function, as a decorator without parentheses.
    Raises:
        RuntimeError: later, such a tensor is to be saved for a backward pass, or changed in place outside.
    Examples:
        >>> @taeda.inference_mode()
        ... def predict(x):
        ...     return 2 * x
        >>> y = predict(taeda.ones(1, requires_grad=True))
        >>> y.requires_grad, y.is_inference()
        (False, True)
    """

    if not TYPE_CHECKING:  # see _Recording

        def __new__(cls, mode: bool | Callable = True):
            made = super().__new__(cls)
            if callable(mode):
                made.mode = True
                return made(mode)
            return made

    def __init__(self, mode: bool | Callable = True) -> None:
        self.mode = bool(mode)

    def _clone(self) -> inference_mode:
        return type(self)(self.mode)

    def __enter__(self) -> None:
        inference = _core.set_inference(self.mode)
        self.previous = inference, _core.record_nothing() if self.mode else _core.set_grad_enabled(True)

    def __exit__(self, *exc: object) -> None:
        _core.set_inference(self.previous[0])
        _core.restore_grad_mode(self.previous[1])


@contextmanager
def forward_mode() -> Iterator[None]:
    """Ops inside are recorded for forward mode, also under ``no_grad``: there in nodes that reverse passes do not
    enter."""
    setting = _core.enter_forward_mode()
    try:
        yield
    finally:
        _core.exit_forward_mode(setting)


@contextmanager
def passing_tangents() -> Iterator[None]:
    """Backward passes inside enter the nodes of forward mode."""
    previous = _core.pass_tangents(True)
    try:
        yield
    finally:
        _core.pass_tangents(previous)

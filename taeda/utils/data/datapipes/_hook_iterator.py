"""One valid iterator per pipe: ``__iter__`` of every class of pipes is wrapped by :func:`hooked`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any


def described(pipe: Any) -> str:
    """``Class(argument=value, ...)``, with the arguments that are attributes."""
    names = inspect.signature(type(pipe)).parameters
    found = [(name, vars(pipe)[name]) for name in sorted(names) if name in vars(pipe)]
    shown = (f"{name}={value.__name__ if inspect.isfunction(value) else repr(value)}" for name, value in found)
    return f"{type(pipe).__name__}({', '.join(shown)})"


class _Checked:
    """An iterator that ends with an error when the pipe has been given another."""

    def __init__(self, iterator: Iterator, pipe: Any, number: int):
        self.iterator = iterator
        self.datapipe = pipe
        self.iterator_id = number

    def __iter__(self) -> _Checked:
        return self

    def __next__(self) -> Any:
        self.datapipe._check_iterator(self.iterator_id)
        value = next(self.iterator)
        self.datapipe._number_of_samples_yielded += 1
        return value

    def __getattr__(self, name: str) -> Any:
        return getattr(self.iterator, name)


def hooked(function: Callable) -> Callable:
    """``function``, the ``__iter__`` of a pipe, so that it resets the pipe and ends older iterators."""

    @functools.wraps(function)
    def iterate(self: Any) -> Any:
        iterator = function(self)
        return _Checked(iterator, self, self._begin_iterator())

    @functools.wraps(function)
    def generate(self: Any) -> Any:
        steps = function(self)
        number = self._begin_iterator()
        try:
            value = next(steps)
            while True:
                self._number_of_samples_yielded += 1
                request = yield value
                self._check_iterator(number)
                value = steps.send(request)
        except StopIteration:
            return
        except Exception as error:
            _name_pipe(error, self)
            raise

    return generate if inspect.isgeneratorfunction(function) else iterate


def _name_pipe(error: Exception, pipe: Any) -> None:
    """Say in the message of ``error`` which pipe was running, the innermost alone."""
    text = f"\nThis exception is thrown by __iter__ of {described(pipe)}"
    if not error.args or not isinstance(error.args[0], str):
        error.args = (text,)
    elif "thrown by __iter__ of" not in error.args[0] and "another iterator has been created" not in error.args[0]:
        error.args = (error.args[0] + text, *error.args[1:])

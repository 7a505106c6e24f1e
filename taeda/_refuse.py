"""Placeholders for missing features. Programs can import them; using one raises an error that says what is missing."""

from __future__ import annotations

from typing import Any, NoReturn


def refuse(name: str, why: str) -> NoReturn:
    """Raise the error of something that taeda does not do.

    Raises:
        NotImplementedError: always; ``name``, then ``why`` (what is missing and what to use instead).
    """
    raise NotImplementedError(f"{name} is not available in taeda: {why}")


def refused_function(name: str, why: str) -> Any:
    """A function that refuses to be called."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        refuse(name, why)

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Refused: {why}"
    return function


def refused_class(name: str, why: str, bases: tuple[type, ...] = ()) -> Any:
    """A class that nothing is an instance of: it can be named, subclassed and asked about, not made."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        refuse(name, why)

    return type(
        name.rpartition(".")[2], bases, {"__init__": __init__, "__doc__": f"Refused: {why}", "__module__": "taeda"}
    )

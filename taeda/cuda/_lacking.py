"""Names of ``torch.cuda`` that are there, and raise where they are used."""

from __future__ import annotations

from typing import Any, NoReturn

from .devices import need


def lacking(name: str) -> NoReturn:
    """Raise: there is no GPU, or no such thing yet."""
    need(name)
    raise NotImplementedError(f"cuda.{name}: not there yet (docs/cuda.md)")


def refused(module: str, name: str) -> Any:
    """A function of a module that raises."""

    label = f"{module}.{name}".partition("cuda.")[2]

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        lacking(label)

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = module, "Refused: not there yet."
    return function


def refused_class(module: str, name: str) -> Any:
    """A class of a module that raises where it is made."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        lacking(name)

    return type(name, (), {"__init__": __init__, "__doc__": "Refused: not there yet.", "__module__": module})

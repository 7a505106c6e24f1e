"""Namespaces of absent devices: tables of the queries and their answers, and of the functions that need the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._refuse import refused_class

#: The functions of the namespace of any such device, and their results.
ANSWERS = """
    is_available() = False: Whether tensors can be put on one: False.
    is_bf16_supported(including_emulation=True) = False: Whether one computes in bfloat16: False.
    device_count() = 0: The number of such devices: 0.
    empty_cache() = None: Give their unused memory back: nothing.
    synchronize(device=None) = None: Wait for them: nothing.
    current_allocated_memory() = 0: Bytes in use: 0.
    is_initialized() = False: Whether one is in use: False.
"""


def answering(module: str, table: str) -> dict[str, Any]:
    """Functions that always give the same answer.

    Args:
        module: the module that they belong to.
        table: a line each: ``name(parameters) = answer: its documentation``.
    """
    made = {}
    for line in table.strip().splitlines():
        head, _, doc = line.strip().partition(": ")
        call, _, answer = head.partition(" = ")
        name, _, parameters = call.partition("(")
        function = eval(f"lambda {parameters[:-1]}: {answer}")
        function.__name__ = function.__qualname__ = name
        function.__module__, function.__doc__ = module, doc
        made[name] = function
    return made


def refusing(module: str, names: str, refuse: Callable[[str], Any], doc: str) -> dict[str, Any]:
    """Functions that call ``refuse`` with their own name, whatever they are given.

    Args:
        module: the module that they belong to.
        names: of the functions.
        refuse: raises the error.
        doc: their documentation.
    """

    def make(name: str) -> Any:
        def function(*args: Any, **kwargs: Any) -> Any:
            refuse(name)

        function.__name__ = function.__qualname__ = name
        function.__module__, function.__doc__ = module, doc
        return function

    return {name: make(name) for name in names.split()}


def manual_seed(seed: int) -> None:
    """Seed their generators: nothing."""
    int(seed)


def absent(module: str) -> dict[str, Any]:
    """All names of the namespace ``module`` of a kind of GPU."""
    made = {name: refused_class(f"{module[6:]}.{name}", "there is no such device") for name in ("Event", "Stream")}
    return answering(module, ANSWERS) | made | {"manual_seed": manual_seed, "manual_seed_all": manual_seed}

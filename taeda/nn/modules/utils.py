"""Helpers of the layers: an int as a tuple, reversed padding."""

from __future__ import annotations

import collections.abc
import itertools

from ...ops.creation import empty
from ..parameter import Parameter

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse"):
    """A function that repeats one value ``n`` times and makes any iterable a tuple."""

    def parse(x):
        return tuple(x) if isinstance(x, collections.abc.Iterable) else tuple(itertools.repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _make_parameters(module, device, dtype, **shapes) -> None:
    """Uninitialised parameters of ``module`` by name and shape; where the shape is None there is none."""
    for name, shape in shapes.items():
        made = None if shape is None else Parameter(empty(shape, device=device, dtype=dtype))
        module.register_parameter(name, made)


def _reverse_repeat_tuple(t, n: int) -> tuple:
    """Each element ``n`` times, last first: padding per dimension as ``functional.pad`` wants it."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _unless(module, **defaults) -> str:
    """For ``extra_repr``: ``, name=value`` of each of these attributes that differs from its default."""
    found = ((name, getattr(module, name), default) for name, default in defaults.items())
    return "".join(
        f", {name}={value}"
        for name, value, default in found
        if (value is not default if isinstance(default, bool) else value != default)
    )


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Strip ``prefix`` from the keys of ``state_dict`` in place (and from its metadata)."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in list(metadata):
            if key == prefix.rstrip("."):
                metadata[""] = metadata.pop(key)
            elif key.startswith(prefix):
                metadata[key[len(prefix) :]] = metadata.pop(key)

"""Nested lists, tuples and dicts whose leaves belong to either framework."""

import torch

import taeda


def mapped(function, thing):
    """``thing`` with ``function`` of each leaf in its place; a named tuple keeps its class."""
    if isinstance(thing, dict):
        return {k: mapped(function, v) for k, v in thing.items()}
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        return type(thing)(*(mapped(function, x) for x in thing))
    if isinstance(thing, (list, tuple)) and type(thing) in (list, tuple):
        return type(thing)(mapped(function, x) for x in thing)
    return function(thing)


def rebuilt(thing, tensors):
    """``thing`` with the next of ``tensors``, an iterator, for each tensor."""
    return mapped(lambda x: next(tensors) if isinstance(x, (taeda.Tensor, torch.Tensor)) else x, thing)

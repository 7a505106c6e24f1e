"""The table of ONNX ops: which function runs an op of a domain, from which version of its opset on."""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..ops.creation import arange

ML = "ai.onnx.ml"
TRAINING = "ai.onnx.preview.training"


class NodeError(RuntimeError):
    """An op of an ONNX model failed: the message names the op, the node and its inputs."""


class Entry(NamedTuple):
    """The function of an op: ``run(*inputs, **attributes)``, and ``outputs=``, their number, if it takes that."""

    since: int
    run: Callable[..., Any]
    counts_outputs: bool


#: (domain, op type): its entries, in the order of their opsets.
OPS: dict[tuple[str, str], list[Entry]] = {}


def op(names: str, since: int = 1, *, domain: str = "", outputs: bool = False, moves: bool = False) -> Callable:
    """Decorator: the function runs the ops ``names`` of ``domain`` from opset ``since`` on, up to a later entry.

    Inputs come by position, None where one is left out, and attributes by name. A tuple is several outputs.

    Args:
        names: names of ops, with spaces between.
        since: the first opset.
        domain: ``""`` for that of ONNX itself.
        outputs: also give it ``outputs``, the number of outputs that the node names.
        moves: it only moves elements of its first input: arrays of strings and of narrow integers may come too.
    Returns:
        The decorator.
    """

    def register(function: Callable) -> Callable:
        run = _moving(function) if moves else function
        for name in names.split():
            entries = OPS.setdefault((domain, name), [])
            entries.insert(bisect_right([entry.since for entry in entries], since), Entry(since, run, outputs))
        return function

    return register


def find(domain: str, name: str, version: int) -> Entry | None:
    """The entry of an op in version ``version`` of its opset; None if there is none."""
    entries = OPS.get((domain, name), [])
    place = bisect_right([entry.since for entry in entries], version)
    return entries[place - 1] if place else None


def _moving(function: Callable) -> Callable:
    """``function``, for NumPy arrays as well: it moves the places of elements, and the elements are then fetched."""

    @functools.wraps(function)
    def run(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return function(x, *args, **kwargs)
        moved = function(arange(x.size).reshape(x.shape), *args, **kwargs)
        if isinstance(moved, tuple):
            return tuple(x.reshape(-1)[part.numpy()] for part in moved)
        return np.asarray(x.reshape(-1)[moved.numpy()], dtype=x.dtype)

    return run

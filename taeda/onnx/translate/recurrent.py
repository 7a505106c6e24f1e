"""Recurrent layers as ONNX's own nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..writer import Unsupported, Value, Writer
from .linear import linear
from .shape import static_size
from .table import translates

#: For each kind of layer: its node, and where ONNX has each part of the weights.
_KINDS = {"LSTM": ("LSTM", [0, 3, 1, 2]), "GRU": ("GRU", [1, 0, 2]), "RNN_TANH": ("RNN", [0]), "RNN_RELU": ("RNN", [0])}


@translates("_recurrent_layer")
def recurrent_layer(
    g: Writer, mode: str, gates: Value, h0: Value, c0: Value | None, w_hh: Value, b_hh: Value | None, sizes: Sequence,
    reverse: bool, save: bool,
) -> tuple:  # fmt: skip
    """One layer in one direction, of which each step has its own number of rows."""
    return _layer(g, mode, gates, (h0, c0), w_hh, b_hh, reverse, lambda x: _Rows(g, x, sizes))


@translates("_recurrent_steps")
def recurrent_steps(
    g: Writer, mode: str, gates: Value, h0: Value, c0: Value | None, w_hh: Value, b_hh: Value | None, steps: Any,
    reverse: bool, save: bool,
) -> tuple:  # fmt: skip
    """One layer in one direction, of any number of steps of the whole batch."""
    return _layer(g, mode, gates, (h0, c0), w_hh, b_hh, reverse, lambda x: _Steps(g, x, steps, g.size(h0, 0)))


def _layer(
    g: Writer, mode: str, gates: Value, state: tuple, w_hh: Value, b_hh: Value | None, reverse: bool, rows_of: Callable
) -> tuple:
    """A node that does the layer.

    The gates are the product of the input and weights: where that product is a step of its own, its factors are
    given to the node, and the step is left out for want of use. Else the node multiplies by the identity.
    """
    kind, order = _KINDS[mode]
    hidden, parts = static_size(w_hh, 1, mode), len(order)
    x, w_ih, b_ih = _factors(g, gates, parts * hidden)
    rows = rows_of(x)
    zeros = g.constant(np.zeros(parts * hidden), gates.dtype)
    biases = [_ordered(g, b, order, hidden) if b is not None else zeros for b in (b_ih, b_hh)]
    weights = [g.Unsqueeze(_ordered(g, w, order, hidden), [0]) for w in (w_ih, w_hh)]
    bias = g.Unsqueeze(g.Concat(*biases, axis=0), [0])
    states = [g.Unsqueeze(s, [0]) for s in state if s is not None]
    made = g.op(
        kind, rows.padded, *weights, bias, rows.lengths, *states, outputs=3 if kind == "LSTM" else 2,
        direction="reverse" if reverse else "forward", hidden_size=hidden,
        linear_before_reset=1 if kind == "GRU" else None, activations=["Relu"] if mode == "RNN_RELU" else None,
    )  # fmt: skip
    out = rows.joined(g.Squeeze(made[0], [1]), hidden)
    finals = [g.Squeeze(s, [0]) for s in made[1:]]
    return (out, *finals, None, None, None, None)[:5]


def _factors(g: Writer, gates: Value, width: int) -> tuple[Value, Value, Value | None]:
    """The input, the weights and the bias whose product the gates are."""
    made = g.root.calls.get(gates.name)
    if made is not None and made[0] is linear:
        x, weight, bias = (*made[1], None)[:3]
        return x, weight, bias
    return gates, g.constant(np.eye(width), gates.dtype), None


def _ordered(g: Writer, x: Value, order: list[int], hidden: int) -> Value:
    if order == [0]:
        return x
    parts = g.split(x, [hidden] * len(order), 0)
    return g.Concat(*(parts[i] for i in order), axis=0)


class _Rows:
    """The rows of all steps, ``(rows, width)``, as steps of the same batch, ``(steps, batch, width)``."""

    def __init__(self, g: Writer, x: Value, sizes: Sequence) -> None:
        self.g, self.places, self.lengths = g, None, None
        names = [n.name if isinstance(n, Value) else int(n) for n in sizes]
        width = static_size(x, -1, "a recurrent layer")
        if len(set(names)) == 1:
            self.padded = g.Reshape(x, [len(sizes), -1, width])
            return
        if any(isinstance(n, Value) for n in sizes):
            raise Unsupported("packed sequences whose lengths are not fixed; pass them as numbers")
        starts = np.concatenate([[0], np.cumsum(names)[:-1]])
        batch = np.arange(max(names))
        places = np.where(batch < np.array(names)[:, None], starts[:, None] + batch, 0)
        self.padded = g.Gather(x, g.constant(places.astype(np.int64)), axis=0)
        lengths = (np.array(names)[:, None] > batch).sum(0)
        self.lengths = g.constant(lengths.astype(np.int32))
        self.places = np.concatenate([t * max(names) + np.arange(n) for t, n in enumerate(names)])

    def joined(self, out: Value, hidden: int) -> Value:
        """The results of the steps, ``(steps, batch, hidden)``, row by row."""
        flat = self.g.Reshape(out, [-1, hidden])
        return flat if self.places is None else self.g.Gather(flat, self.g.constant(self.places), axis=0)


class _Steps:
    """As :class:`_Rows`, of steps of the whole batch whose number may change."""

    def __init__(self, g: Writer, x: Value, steps: Any, batch: Any) -> None:
        self.g, self.lengths = g, None
        self.padded = g.Reshape(x, [steps, batch, static_size(x, -1, "a recurrent layer")])

    def joined(self, out: Value, hidden: int) -> Value:
        """The results of the steps row by row."""
        return self.g.Reshape(out, [-1, hidden])

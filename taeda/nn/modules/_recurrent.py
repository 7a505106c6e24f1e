"""Layers, directions, dropout and projections of RNN, LSTM and GRU over whole, also packed, sequences.

The products with ``W_ih`` do not depend on the state, so they are one product for the whole sequence; the recurrence
itself is ``taeda/ops/recurrent.py``.
"""

from __future__ import annotations

from typing import Any

from ... import _core
from ..._typed import Tensor
from ...ops.joining import cat, stack
from ...ops.recurrent import _recurrent_steps, cell, recurrent_layer
from .. import functional as F


def _projected(
    gates: Tensor, state: tuple[Tensor, ...], weights: list[Tensor], bias: bool, sizes: list[int], reverse: bool
) -> tuple[Tensor, ...]:
    """An LSTM layer whose state is projected by its last weight: step by step."""
    w_hh, b_hh, w_hr = weights[1], weights[3] if bias else None, weights[-1]
    starts = [sum(sizes[:t]) for t in range(len(sizes))]
    outputs: list[Tensor] = [gates] * len(sizes)
    for t in reversed(range(len(sizes))) if reverse else range(len(sizes)):
        n = sizes[t]
        h, c = (s[:n] for s in state)
        new_h, new_c = cell("LSTM", gates[starts[t] : starts[t] + n], F.linear(h, w_hh, b_hh), h, c)
        outputs[t] = F.linear(new_h, w_hr)
        new = (outputs[t], new_c)
        state = tuple(s if n == old.size(0) else cat([s, old[n:]]) for s, old in zip(new, state, strict=True))
    return (cat(outputs), *state)


def _projected_steps(
    gates: Tensor, state: tuple[Tensor, ...], weights: list[Tensor], bias: bool, steps: Any, reverse: bool
) -> tuple[Tensor, ...]:
    """The same for the whole batch in a program whose number of steps may change."""
    w_hh, b_hh, w_hr = weights[1], weights[3] if bias else None, weights[-1]

    def step(carry: tuple[Tensor, ...], x: Tensor) -> tuple:
        h, c = cell("LSTM", x, F.linear(carry[0], w_hh, b_hh), *carry)
        h = F.linear(h, w_hr)
        return (h, c), h.clone()

    from ...func.control_flow import scan  # few programs compile or export a loop

    gates = gates.reshape(steps, state[0].size(0), gates.size(-1))
    state, out = scan(step, state, gates.flip(0) if reverse else gates)  # files of PyTorch have loops forwards alone
    out = out.flip(0) if reverse else out
    return (out.reshape(-1, out.size(-1)), *state)


def _direction(
    mode: str, x: Tensor, state: tuple[Tensor, ...], weights: list[Tensor], bias: bool, sizes: Any, reverse: bool
) -> tuple[Tensor, ...]:
    """One layer in one direction over rows ``(total, width)``: the output of every row, and the final state.

    ``sizes`` are the rows of each step, or the number of steps of the whole batch.
    """
    if mode == "LSTM" and len(weights) == (5 if bias else 3):
        gates = F.linear(x, weights[0], weights[2] if bias else None)
        run = _projected if isinstance(sizes, list) else _projected_steps
        return run(gates, state, weights, bias, sizes, reverse)
    b_hh = weights[3] if bias else None
    b_ih = weights[2] if bias else None
    if (
        b_ih is not None and b_hh is not None and mode != "GRU"
    ):  # only the sum of the two counts: add it once for all steps
        b_ih, b_hh = b_ih + b_hh, None
    gates = F.linear(x, weights[0], b_ih)
    c = state[1] if mode == "LSTM" else None
    save = _core.is_recorded() and (gates.requires_grad or state[0].requires_grad or weights[1].requires_grad)
    if isinstance(sizes, list):
        results = recurrent_layer(mode, gates, state[0], c, weights[1], b_hh, tuple(sizes), reverse, save)
    else:
        results = _recurrent_steps(mode, gates, state[0], c, weights[1], b_hh, sizes, reverse, save)
    return results[: 3 if mode == "LSTM" else 2]


def recurrent(
    mode: str, x: Tensor, hx: Any, weights: list[list[Tensor]], bias: bool, num_layers: int, dropout: float,
    training: bool, bidirectional: bool, batch_first: bool, sizes: list[int] | None,
) -> tuple[Tensor, Tensor | tuple[Tensor, ...]]:  # fmt: skip
    """Run all layers.

    Args:
        mode: ``"LSTM"``, ``"GRU"``, ``"RNN_TANH"`` or ``"RNN_RELU"``.
        x: ``(L, N, width)``, or ``(N, L, width)`` if ``batch_first``, or ``(total, width)`` with ``sizes``.
        hx: the first state, ``(layers * directions, N, hidden)``; for LSTM a pair.
        weights: the parameters of each layer and direction: w_ih, w_hh, and if there are any b_ih, b_hh, w_hr.
        bias: whether the biases are there.
        num_layers: how many layers.
        dropout: probability of dropout between layers.
        training: whether it is done.
        bidirectional: whether there are two directions.
        batch_first: which dimension is the batch.
        sizes: the batch of each step of a packed sequence.

    Returns:
        The last layer's output at every step, in the layout of ``x``, and the final state.
    """
    states = hx if mode == "LSTM" else (hx,)
    directions = 2 if bidirectional else 1
    if batch_first:
        x = x.transpose(0, 1)
    shape = x.shape[:-1]
    rows: Any = sizes
    if sizes is None:  # a program that is recorded keeps a number of steps that may change
        rows = [shape[1]] * shape[0] if type(shape[0]) is int else shape[0]
    if not rows:
        raise RuntimeError(
            f"{mode}: Expected sequence length to be larger than 0 in RNN, got input of shape {tuple(x.shape)}"
        )
    x = x.reshape(-1, x.size(-1))
    finals = []
    for layer in range(num_layers):
        outputs = []
        for d in range(directions):
            k = layer * directions + d
            output, *final = _direction(mode, x, tuple(s[k] for s in states), weights[k], bias, rows, bool(d))
            outputs.append(output)
            finals.append(final)
        x = outputs[0] if directions == 1 else cat(outputs, -1)
        if dropout and training and layer < num_layers - 1:
            x = F.dropout(x, dropout, True)
    state = tuple(stack(parts) for parts in zip(*finals, strict=True))
    x = x.view(*shape, x.size(-1))
    return (x.transpose(0, 1) if batch_first else x), (state if mode == "LSTM" else state[0])

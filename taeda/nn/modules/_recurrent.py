"""The recurrence of RNN, LSTM and GRU layers over whole (also packed) sequences, written in public ops.

The products with ``W_ih`` do not depend on the state, so they are one product for the whole sequence; only ``W_hh h`` is
done step by step.
"""

from __future__ import annotations

from collections.abc import Callable

import taeda
from taeda import Tensor

from .. import functional as F


def _lstm_step(gates: Tensor, state: tuple[Tensor, ...], w_hr: Tensor | None) -> tuple[Tensor, ...]:
    i, f, g, o = gates.chunk(4, 1)
    c = taeda.sigmoid(f) * state[1] + taeda.sigmoid(i) * taeda.tanh(g)
    h = taeda.sigmoid(o) * taeda.tanh(c)
    return (h if w_hr is None else F.linear(h, w_hr)), c


def _direction(
    mode: str, steps: list[Tensor], state: tuple[Tensor, ...], weights: list[Tensor], bias: bool, sizes: list[int] | None
) -> tuple[list[Tensor], tuple[Tensor, ...]]:
    """One layer in one direction over per-step gate inputs ``x W_ih^T + b_ih`` in the order they are read.

    ``sizes`` gives the batch of each step where they differ; growing (a packed sequence read backwards) as well as
    shrinking.
    """
    w_hh = weights[1]
    b_hh = weights[3] if bias else None
    w_hr = weights[-1] if mode == "LSTM" and len(weights) == (5 if bias else 3) else None
    act: Callable = taeda.relu if mode == "RNN_RELU" else taeda.tanh
    outputs: list[Tensor] = []
    first = state  # states of sequences that have not begun yet, when reading backwards
    done: list[tuple[Tensor, ...]] = []  # final states of sequences that have ended, shortest first
    if sizes is not None:
        state = tuple(s[: sizes[0]] for s in state)
    for t, x in enumerate(steps):
        if sizes is not None and t:
            now, before = sizes[t], sizes[t - 1]
            if now < before:
                done.append(tuple(s[now:before] for s in state))
                state = tuple(s[:now] for s in state)
            elif now > before:
                state = tuple(taeda.cat([s, f[before:now]]) for s, f in zip(state, first, strict=True))
        hidden = F.linear(state[0], w_hh, b_hh)
        if mode == "LSTM":
            state = _lstm_step(x + hidden, state, w_hr)
        elif mode == "GRU":
            ri, zi, ni = x.chunk(3, 1)
            rh, zh, nh = hidden.chunk(3, 1)
            r, z = taeda.sigmoid(ri + rh), taeda.sigmoid(zi + zh)
            n = taeda.tanh(ni + r * nh)
            state = ((state[0] - n) * z + n,)
        else:
            state = (act(x + hidden),)
        outputs.append(state[0])
    if done:
        done.append(state)
        state = tuple(taeda.cat(parts) for parts in zip(*reversed(done), strict=True))
    return outputs, state


def recurrent(
    mode: str, x: Tensor, hx, weights: list[list[Tensor]], bias: bool, num_layers: int, dropout: float, training: bool,
    bidirectional: bool, batch_first: bool, sizes: list[int] | None,
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
    finals: list[tuple[Tensor, ...]] = []
    for layer in range(num_layers):
        per_direction = []
        for d in range(directions):
            w = weights[layer * directions + d]
            gates = F.linear(x, w[0], w[2] if bias else None)
            steps = list(gates.unbind(0)) if sizes is None else list(gates.split(sizes))
            order = sizes
            if d:
                steps.reverse()
                order = None if sizes is None else sizes[::-1]
            state = tuple(s[layer * directions + d] for s in states)
            outputs, final = _direction(mode, steps, state, w, bias, order)
            if d:
                outputs.reverse()
            per_direction.append(taeda.stack(outputs) if sizes is None else taeda.cat(outputs))
            finals.append(final)
        x = per_direction[0] if directions == 1 else taeda.cat(per_direction, -1)
        if dropout and training and layer < num_layers - 1:
            x = F.dropout(x, dropout, True)
    state = tuple(taeda.stack(parts) for parts in zip(*finals, strict=True))
    return (x.transpose(0, 1) if batch_first else x), (state if mode == "LSTM" else state[0])

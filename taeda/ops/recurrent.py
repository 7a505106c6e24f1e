"""The recurrence of RNN, LSTM and GRU: single steps, and whole layers with one product for all steps' weight gradients.

The steps' elements enter as gate inputs ``x W_ih^T + b_ih``, which do not depend on the state. A packed sequence gives the
number of rows of each step; states of sequences that have ended, or not begun yet, stay as they are.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from .. import _core
from .._core import Tensor, empty, is_grad_enabled, launch
from ..kernels import recurrent as kernels
from . import flops
from .activation import relu
from .elementary import sigmoid, tanh
from .joining import cat
from .matmul import addmm, linear, matmul
from .table import primitive
from .views import chunk

_SAVED = {"LSTM": 4, "GRU": 4, "RNN_TANH": 0, "RNN_RELU": 0}  # gates kept for backward
_PIECE = 8192  # elements of one thread's piece


# ---- in public ops --------------------------------------------------------------------------------------------------


def step_in_ops(mode: str, x: Tensor, hidden: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """One step from gate inputs ``x`` and ``hidden``, written in differentiable ops."""
    if mode == "LSTM":
        i, f, g, o = chunk(x + hidden, 4, 1)
        c = sigmoid(f) * state[1] + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(c), c
    if mode == "GRU":
        ri, zi, ni = chunk(x, 3, 1)
        rh, zh, nh = chunk(hidden, 3, 1)
        z = sigmoid(zi + zh)
        n = tanh(ni + sigmoid(ri + rh) * nh)
        return ((state[0] - n) * z + n,)
    return ((relu if mode == "RNN_RELU" else tanh)(x + hidden),)


def _blocks(sizes: tuple[int, ...], reverse: bool) -> list[tuple[int, int]]:
    """(first row, rows) of each step in the order in which they are done."""
    starts = [0, *accumulate(sizes)]
    blocks = list(zip(starts, sizes, strict=False))
    return blocks[::-1] if reverse else blocks


def _layer_in_ops(mode, gates, h0, c0, w_hh, b_hh, sizes, reverse):
    """The same as :func:`recurrent_layer` in differentiable ops: output, h, c."""
    state = (h0,) if c0 is None else (h0, c0)
    outputs = [None] * len(sizes)
    blocks = _blocks(sizes, reverse)
    for k, (start, n) in enumerate(blocks):
        now = tuple(s[:n] for s in state)
        new = step_in_ops(mode, gates[start : start + n], linear(now[0], w_hh, b_hh), now)
        outputs[len(sizes) - 1 - k if reverse else k] = new[0]
        state = tuple(s if n == old.shape[0] else cat((s, old[n:])) for s, old in zip(new, state, strict=True))
    return (cat(outputs), *state)


def _backward_in_ops(mode, grads, gates, h0, c0, w_hh, b_hh, sizes, reverse):
    """Gradients written in differentiable ops, for second derivatives: backpropagation step by step."""
    state = (h0,) if c0 is None else (h0, c0)
    before = []
    blocks = _blocks(sizes, reverse)
    for start, n in blocks:
        now = tuple(s[:n] for s in state)
        before.append(now)
        new = step_in_ops(mode, gates[start : start + n], linear(now[0], w_hh, b_hh), now)
        state = tuple(s if n == old.shape[0] else cat((s, old[n:])) for s, old in zip(new, state, strict=True))
    g_out, g_h = grads[0], grads[1]
    g_c = grads[2] if c0 is not None else None
    d_gates, d_w, d_b = {}, None, None
    for (start, n), now in zip(reversed(blocks), reversed(before), strict=True):
        dh = g_h[:n] + g_out[start : start + n]
        x, hidden = gates[start : start + n], linear(now[0], w_hh, b_hh)
        dx, dhidden, direct, dc = _step_gradient(mode, x, hidden, now, dh, None if g_c is None else g_c[:n])
        d_gates[start] = dx
        d_w = _plus(d_w, matmul(dhidden.transpose(0, 1), now[0]))
        d_b = _plus(d_b, dhidden.sum(0))
        g_h = cat((_plus(direct, matmul(dhidden, w_hh)), g_h[n:]))
        g_c = None if g_c is None else cat((dc, g_c[n:]))
    return cat([d_gates[start] for start in sorted(d_gates)]), g_h, g_c, d_w, None if b_hh is None else d_b


def _plus(a, b):
    return b if a is None else a + b


def _step_gradient(mode, x, hidden, state, dh, dc):
    """Gradients of a step: of ``x``, of ``hidden``, of the state apart from ``hidden``, and of the cell."""
    if mode == "LSTM":
        i, f, g, o = chunk(x + hidden, 4, 1)
        i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
        t = tanh(f * state[1] + i * g)
        dc = dc + dh * o * (1 - t * t)
        parts = (dc * g * i * (1 - i), dc * state[1] * f * (1 - f), dc * i * (1 - g * g), dh * t * o * (1 - o))
        d = cat(parts, 1)
        return d, d, None, dc * f
    if mode == "GRU":
        ri, zi, ni = chunk(x, 3, 1)
        rh, zh, nh = chunk(hidden, 3, 1)
        r, z = sigmoid(ri + rh), sigmoid(zi + zh)
        n = tanh(ni + r * nh)
        dn = dh * (1 - z) * (1 - n * n)
        dr, dz = dn * nh * r * (1 - r), dh * (state[0] - n) * z * (1 - z)
        return cat((dr, dz, dn), 1), cat((dr, dz, dn * r), 1), dh * z, None
    total = x + hidden
    d = dh * (total > 0).to(dh.dtype) if mode == "RNN_RELU" else dh * (1 - tanh(total) * tanh(total))
    return d, d, None, None


# ---- fused ----------------------------------------------------------------------------------------------------------

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _expect(what: str, dtype: Any, **shapes: tuple[Tensor | None, tuple[int, ...]]) -> None:
    """Refuse operands that the kernels, which trust sizes and dtypes, would read beyond their end."""
    if dtype.name not in ("float32", "float64", "float16", "bfloat16"):
        raise RuntimeError(f"{what}: expected a floating-point state, got {dtype}")
    for name, (x, shape) in shapes.items():
        if x is not None and (x.dtype is not dtype or tuple(x.shape) != shape):
            raise RuntimeError(
                f"{what}: expected {name} of shape {list(shape)} and dtype {dtype}, the state's, but got {list(x.shape)}, "
                f"{x.dtype}"
            )


def _forward_kernel(mode: str, dtype: str, save: bool) -> int:
    if mode == "LSTM":
        return kernels.lstm(dtype, save)
    return kernels.gru(dtype, save) if mode == "GRU" else kernels.rnn(dtype, mode == "RNN_RELU", save)


@primitive(
    method=False, out=False, outputs=("out", "h", "c", "saved", "old_c", "old_h"), differentiable=(0, 1, 2),
    name="_recurrent_layer", flops=flops.recurrent,
)  # fmt: skip
def recurrent_layer(mode, gates, h0, c0, w_hh, b_hh, sizes, reverse, save):
    """One layer in one direction.

    Args:
        mode: ``"LSTM"``, ``"GRU"``, ``"RNN_TANH"`` or ``"RNN_RELU"``.
        gates: gate inputs of all steps, ``(rows, gates * hidden)``.
        h0: first state, ``(batch, hidden)``.
        c0: first cell of an LSTM, else None.
        w_hh: ``(gates * hidden, hidden)``.
        b_hh: ``(gates * hidden)`` or None.
        sizes: rows of each step, a tuple.
        reverse: read the steps from the last to the first.
        save: keep what backward needs.

    Returns:
        The output of every step ``(rows, hidden)``, the last state and cell, and what backward needs.
    """
    dtype = h0.dtype
    gates = gates.contiguous()
    rows, hidden = sum(sizes), h0.shape[-1] if h0.dim() else 0
    _expect(
        mode, dtype, h0=(h0, (max(0, *h0.shape[:1], *sizes), hidden)),
        c0=(c0, tuple(h0.shape)), gates=(gates, (rows, _GATES[mode] * hidden)),
        w_hh=(w_hh, (_GATES[mode] * hidden, hidden)), b_hh=(b_hh, (_GATES[mode] * hidden,)),
    )  # fmt: skip
    h = h0.clone(memory_format=_core.contiguous_format)
    c = c0.clone(memory_format=_core.contiguous_format) if c0 is not None else empty((0,), dtype)
    out = empty((rows, hidden), dtype)
    kept = _SAVED[mode] * hidden if save else 0
    saved = empty((rows, kept), dtype)
    old_c = empty((rows, hidden if save and c0 is not None else 0), dtype)
    old_h = empty((rows, hidden if save else 0), dtype)
    address = _forward_kernel(mode, dtype.name, save)
    item = dtype.itemsize
    p_out, p_saved, p_c, p_h, p_x = (t.data_ptr() for t in (out, saved, old_c, old_h, gates))
    grain = max(1, _PIECE // max(1, hidden))
    width = gates.shape[1]
    batch = h.shape[0]
    w = w_hh.t().contiguous() if len(sizes) > 1 else w_hh.t()  # once, rather than in the product of every step
    for start, n in _blocks(sizes, reverse):
        if not n:
            continue
        now = h if n == batch else h[:n]
        inner = matmul(now, w) if b_hh is None else addmm(b_hh, now, w)
        at = start * hidden * item
        if mode == "LSTM":
            tensors = (p_out + at, h, c, p_saved + 4 * at, p_c + at, p_h + at, p_x + start * width * item, inner)
        elif mode == "GRU":
            tensors = (p_out + at, h, p_saved + 4 * at, p_h + at, p_x + start * width * item, inner)
        else:
            tensors = (p_out + at, h, p_h + at, p_x + start * width * item, inner)
        launch(address, tensors, (hidden,), n, grain)
    return out, h, c, saved, old_c, old_h


@recurrent_layer.vjp_all("gates", "h0", "c0", "w_hh", "b_hh")
def _(g, out, saved, old_c, old_h, mode, gates, h0, c0, w_hh, b_hh, sizes, reverse):
    g = tuple(g)
    like = (out, h0, c0)
    grads = [
        x if x is not None else None if t is None else t.new_zeros(t.shape) for x, t in zip(g[:3], like, strict=True)
    ]
    if is_grad_enabled():
        return _backward_in_ops(mode, grads, gates, h0, c0, w_hh, b_hh, sizes, reverse)
    dtype, item, hidden = out.dtype, out.dtype.itemsize, out.shape[1]
    g_out = grads[0].contiguous()
    g_h = grads[1].clone(memory_format=_core.contiguous_format)
    g_c = grads[2].clone(memory_format=_core.contiguous_format) if c0 is not None else None
    rows, batch, width = out.shape[0], h0.shape[0], w_hh.shape[0]
    d_x = empty((rows, width), dtype)
    d_h = empty((rows, width), dtype) if mode == "GRU" else d_x
    if mode == "LSTM":
        address = kernels.lstm_backward(dtype.name)
    else:
        address = (
            kernels.gru_backward(dtype.name) if mode == "GRU" else kernels.rnn_backward(dtype.name, mode == "RNN_RELU")
        )
    p_x, p_h, p_out, p_saved, p_c, p_old = (t.data_ptr() for t in (d_x, d_h, g_out, saved, old_c, old_h))
    p_result = out.data_ptr()
    grain = max(1, _PIECE // max(1, hidden))
    for start, n in reversed(_blocks(sizes, reverse)):
        if not n:
            continue
        at, wide = start * hidden * item, start * width * item
        if mode == "LSTM":
            tensors = (p_x + wide, g_c, g_h, p_out + at, p_saved + 4 * at, p_c + at)
        elif mode == "GRU":
            tensors = (p_x + wide, p_h + wide, g_h, p_out + at, p_saved + 4 * at, p_old + at)
        else:
            tensors = (p_x + wide, g_h, p_out + at, p_result + at)
        launch(address, tensors, (hidden,), n, grain)
        through = matmul(d_h[start : start + n], w_hh)
        target = g_h if n == batch else g_h[:n]
        if mode == "GRU":
            target.add_(through)
        elif n == batch:
            g_h = through
        else:
            target.copy_(through)
    d_w = matmul(d_h.transpose(0, 1), old_h)
    return d_x, g_h, g_c, d_w, None if b_hh is None else d_h.sum(0)


@primitive(method=False, out=False, outputs=("h_new", "c_new", "gates"), differentiable=(0, 1), name="_lstm_cell")
def lstm_cell(x, hidden, c, save):
    """One step of an LSTM from gate inputs ``x`` and ``hidden``: the new h and c, and what backward needs if ``save``."""
    x, hidden, c = x.contiguous(), hidden.contiguous(), c.contiguous()
    n, width = c.shape
    _expect("lstm_cell", c.dtype, gates=(x, (n, 4 * width)), hidden=(hidden, (n, 4 * width)))
    h_new, c_new = empty((n, width), c.dtype), empty((n, width), c.dtype)
    gates = empty((n, 4 * width if save else 0), c.dtype)
    address = kernels.lstm_cell(c.dtype.name, save)
    launch(address, (h_new, c_new, gates, x, hidden, c), (width,), n, _PIECE // max(1, width) + 1)
    return h_new, c_new, gates


@lstm_cell.vjp_all("x", "hidden", "c")
def _(g, gates, x, hidden, c):
    dh, dc = g[0], g[1]
    if is_grad_enabled():
        zero = c.new_zeros(c.shape)
        dx, _, _, dc = _step_gradient(
            "LSTM", x, hidden, (None, c), zero if dh is None else dh, zero if dc is None else dc
        )
        return dx, dx, dc
    c = c.contiguous()
    n, width = c.shape
    d_x, d_c = empty((n, 4 * width), c.dtype), empty((n, width), c.dtype)
    address = kernels.lstm_cell_backward(c.dtype.name, dh is not None, dc is not None)
    given = tuple(0 if t is None else t.contiguous() for t in (dh, dc))
    launch(address, (d_x, d_c, *given, gates, c), (width,), n, _PIECE // max(1, width) + 1)
    return d_x, d_x, d_c


@primitive(method=False, out=False, outputs=("h_new", "saved"), differentiable=(0,), name="_gru_cell")
def gru_cell(x, hidden, h, save):
    """One step of a GRU from gate inputs ``x`` and ``hidden``: the new h, and what backward needs if ``save``."""
    x, hidden, h = x.contiguous(), hidden.contiguous(), h.contiguous()
    n, width = h.shape
    _expect("gru_cell", h.dtype, gates=(x, (n, 3 * width)), hidden=(hidden, (n, 3 * width)))
    h_new, saved = empty((n, width), h.dtype), empty((n, 4 * width if save else 0), h.dtype)
    launch(kernels.gru_cell(h.dtype.name, save), (h_new, saved, x, hidden, h), (width,), n, _PIECE // max(1, width) + 1)
    return h_new, saved


@gru_cell.vjp_all("x", "hidden", "h")
def _(g, saved, x, hidden, h):
    if is_grad_enabled():
        return _step_gradient("GRU", x, hidden, (h,), g, None)[:3]
    g, h = g.contiguous(), h.contiguous()
    n, width = h.shape
    d_x, d_hidden, d_h = empty((n, 3 * width), h.dtype), empty((n, 3 * width), h.dtype), empty((n, width), h.dtype)
    tensors = (d_x, d_hidden, d_h, g, saved, h)
    launch(kernels.gru_cell_backward(h.dtype.name), tensors, (width,), n, _PIECE // max(1, width) + 1)
    return d_x, d_hidden, d_h


def cell(mode: str, x: Tensor, hidden: Tensor, h: Tensor, c: Tensor | None) -> tuple[Tensor, ...]:
    """One step from gate inputs: the new state."""
    if mode == "LSTM":
        return lstm_cell(x, hidden, c, x.requires_grad or hidden.requires_grad or c.requires_grad)[:2]
    if mode == "GRU":
        return gru_cell(x, hidden, h, x.requires_grad or hidden.requires_grad or h.requires_grad)[:1]
    return step_in_ops(mode, x, hidden, (h,))

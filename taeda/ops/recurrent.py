"""The recurrence of RNN, LSTM and GRU: single steps, and whole layers with one product for all steps' weight gradients.

The steps' elements enter as gate inputs ``x W_ih^T + b_ih``, which do not depend on the state. A packed sequence gives
the number of rows of each step; states of sequences that have ended, or not begun yet, stay as they are.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import Any

from .. import _core
from .._core import Tensor, empty, launch
from .._core.planners import kept
from ..kernels import gemm, packing, target, tile
from ..kernels import recurrent as kernels
from . import flops
from .activation import relu
from .elementary import sigmoid, tanh
from .joining import cat, chunk
from .matmul import addmm, linear, matmul
from .table import composite, primitive
from .views import narrow

_SAVED = {"LSTM": 4, "GRU": 4, "RNN_TANH": 0, "RNN_RELU": 0}  # gates kept for backward
_FLOATING = frozenset(("float32", "float64", "float16", "bfloat16"))
_PIECE = 8192  # elements of one thread's piece
_TILE = 6  # rows of the product's tile
_SMALL = 384 << 10  # bytes of weights that stay in the second-level cache
_WORK = 1 << 20  # multiplications of one thread's piece


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


def _layer_gradient(mode, g_out, g_h, g_c, gates, h0, c0, w_hh, b_hh, sizes, reverse):
    """Backpropagation step by step."""
    state = (h0,) if c0 is None else (h0, c0)
    before = []
    blocks = _blocks(sizes, reverse)
    for start, n in blocks:
        now = tuple(s[:n] for s in state)
        before.append(now)
        new = step_in_ops(mode, gates[start : start + n], linear(now[0], w_hh, b_hh), now)
        state = tuple(s if n == old.shape[0] else cat((s, old[n:])) for s, old in zip(new, state, strict=True))
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


def _expect(what: str, dtype: Any, **shapes: tuple[Tensor | None, tuple[int, ...]]) -> None:
    """Refuse operands that the kernels, which trust sizes and dtypes, would read beyond their end."""
    if dtype.name not in _FLOATING:
        raise RuntimeError(f"{what}: expected a floating-point state, got {dtype}")
    for name, (x, shape) in shapes.items():
        if x is not None and (x.dtype is not dtype or x.shape != shape):
            raise RuntimeError(
                f"{what}: expected {name} of shape {list(shape)} and dtype {dtype}, the state's, but got "
                f"{list(x.shape)}, {x.dtype}"
            )


def _whole(x: Tensor) -> Tensor:
    """``x.contiguous()``, without a call of an op where nothing is to be done."""
    return x if x.is_contiguous() else x.contiguous()


def _copy_of(x: Tensor) -> Tensor:
    """A contiguous copy."""
    made = empty(x.shape, x.dtype)
    _core.copy_tensor(made, x)
    return made


def _table(blocks: list[tuple[int, int]]) -> bytes:
    """For each step, its block and the block of the step before it."""
    pairs = zip(blocks, [(0, 0), *blocks], strict=False)
    return array("q", [x for now, before in pairs for x in (*now, *before)]).tobytes()


@kept
class _Steps:
    """The steps of a layer in the order in which they are done, and how they are shared among threads.

    ``entries``, ``backward``: first row and rows of each step, and of the one that is done before it, as kernels read
    them; in the order of the forward and of the backward pass.
    """

    def __init__(self, sizes: tuple[int, ...], reverse: bool, dtype: Any, batch: int, hidden: int, gates: int):
        blocks = [block for block in _blocks(sizes, reverse) if block[1]]
        self.entries, self.backward = _table(blocks), _table(blocks[::-1])
        self.dtype, self.hidden, self.gates = dtype, hidden, gates
        self.width = tile.panel(dtype.name, target.here().vector_bytes)
        self.panels = -(-hidden // self.width)
        #: Small weights stay in the second-level cache, where every thread has them for its own rows.
        self.by_rows = gates * hidden * hidden * dtype.itemsize <= _SMALL
        parts = -(-batch // _TILE)
        self.block = -(-batch // (parts + parts % 2)) if batch >= _TILE else max(batch, 1)
        self.tasks = -(-batch // self.block)
        self.pack_kernel, self.tiles = packing.pack_b(dtype.name), gemm.panel_product(dtype.name)

    def pack(self, w_hh: Tensor, transposed: bool) -> Tensor:
        """The panels of each gate's weights as columns (``transposed``), or of all gates' weights as rows."""
        n, item, w = self.hidden, self.dtype.itemsize, _whole(w_hh)
        depth, parts, strides = (
            (n, self.gates, (n * item, item)) if transposed else (n * self.gates, 1, (item, n * item))
        )
        size, grain = self.panels * self.width * depth, _PIECE // (depth * self.width) + 1
        packed = empty((parts, size), self.dtype)
        for k in range(parts):
            at = (packed, k * size * item), (w, k * n * n * item)
            launch(self.pack_kernel, at, (n, depth, *strides, depth), self.panels, grain)
        return packed

    def run(self, address: int, tensors: tuple, entries: bytes, bias: bool = False) -> None:
        """Launch a layer's kernel; ``tensors`` are those before its last two pointers."""
        size = 8 * kernels.STEP_ITEMS
        steps = len(entries) // size
        if self.by_rows or self.panels == 1:
            work = steps * self.block * self.gates * self.hidden**2
            args, total = (self.hidden, steps, self.block, bias), self.tasks if self.by_rows else 1
            launch(address, (*tensors, self.tiles, entries), args, total, -(-_WORK // max(work, 1)))
            return
        args = self.hidden, 1, 0, bias
        for at in range(0, len(entries), size):
            launch(address, (*tensors, self.tiles, entries[at : at + size]), args, self.panels, 1)


@composite(method=False)
def _recurrent_steps(mode, gates, h0, c0, w_hh, b_hh, steps, reverse, save):
    """:func:`recurrent_layer` of ``steps`` steps of the whole batch: one step of a program, whatever their number."""
    return recurrent_layer(mode, gates, h0, c0, w_hh, b_hh, (h0.shape[0],) * steps, reverse, save)


def _as_layer(dtype: Any, sizes: tuple[int, ...], hidden: int) -> bool:
    """Whether a layer's kernel does the products too: where packing the weights pays, and products are of this
    dtype."""
    return dtype.name in ("float32", "float64") and len(sizes) > 1 and hidden > 0


@primitive(
    method=False, out=False, outputs=("out", "h", "c", "saved", "old_c"), differentiable=(0, 1, 2),
    name="_recurrent_layer", flops=flops.recurrent, planned=True,
    autocast=lambda mode, *args: (  # the state of a GRU stays wide, and that of an LSTM on a packed sequence
        "widest" if mode == "GRU" or (mode == "LSTM" and len(set(args[5])) > 1) else "lower"
    ),
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
    gates = _whole(gates)
    batch, hidden = (*h0.shape, 0, 0)[:2]
    rows, width = sum(sizes), kernels.GATES[mode] * hidden
    state = max(batch, *sizes, 0), hidden
    _expect(
        mode, dtype, h0=(h0, state), c0=(c0, state), gates=(gates, (rows, width)),
        w_hh=(w_hh, (width, hidden)), b_hh=(b_hh, (width,)),
    )  # fmt: skip
    h, c = _copy_of(h0), empty((0,), dtype) if c0 is None else _copy_of(c0)
    out = empty((rows, hidden), dtype)
    saved = empty((rows, _SAVED[mode] * hidden if save else 0), dtype)
    old_c = empty((rows, hidden if save and c0 is not None else 0), dtype)
    if _as_layer(dtype, sizes, hidden):
        steps = _Steps(sizes, reverse, dtype, h0.shape[0], hidden, kernels.GATES[mode])
        first, bias = _whole(h0), 0 if b_hh is None else _whole(b_hh)
        tensors = (out, h, c, saved, old_c, gates, first, steps.pack(w_hh, True), bias)
        steps.run(kernels.forward(dtype.name, mode, save, steps.by_rows), tensors, steps.entries, b_hh is not None)
    else:
        _step_by_step(mode, gates, h, c, w_hh, b_hh, _blocks(sizes, reverse), save, (out, saved, old_c))
    return out, h, c, saved, old_c


def _step_by_step(mode, gates, h, c, w_hh, b_hh, blocks, save, results):
    """The products as an op; ``h``, ``c`` and ``results`` are written."""
    dtype, item, (batch, hidden), width = h.dtype, h.dtype.itemsize, h.shape, gates.shape[1]
    address = kernels.step(dtype.name, mode, save)
    out, saved, old_c = results
    grain = max(1, _PIECE // max(1, hidden))
    w = w_hh.t().contiguous() if len(blocks) > 1 else w_hh.t()  # once, rather than in the product of every step
    for start, n in blocks:
        if not n:
            continue
        now = h if n == batch else h[:n]
        inner = matmul(now, w) if b_hh is None else addmm(b_hh, now, w)
        at = start * hidden * item
        tail = (old_c, at) if mode == "LSTM" else h
        state = (h, c) if mode == "LSTM" else (h,)
        tensors = (
            (out, at), *state, (saved, 4 * at if saved.numel() else 0), tail, (gates, start * width * item), inner,
        )  # fmt: skip
        launch(address, tensors, (hidden,), n, grain)


def _states_before(out: Tensor, h0: Tensor, sizes: tuple[int, ...], reverse: bool) -> Tensor:
    """The state before each step, for every row of ``out``."""
    if not out.shape[0]:
        return out
    if len(set(sizes)) == 1:  # neighbours in memory, in one piece
        return cat([out[sizes[0] :], h0] if reverse else [h0, out[: -sizes[0]]])
    blocks = sorted((*now, *before) for now, before in _pairs(_blocks(sizes, reverse)))
    parts = []
    for _, n, before, met in blocks:
        if min(n, met):
            parts.append(out[before : before + min(n, met)])
        if n > met:
            parts.append(h0[met:n])
    return cat(parts)


def _pairs(blocks: list[tuple[int, int]]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Each step with rows, and the one before it."""
    blocks = [block for block in blocks if block[1]]
    return list(zip(blocks, [(0, 0), *blocks], strict=False))


@recurrent_layer.vjp_all("gates", "h0", "c0", "w_hh", "b_hh")
def _(g, out, saved, old_c, mode, gates, h0, c0, w_hh, b_hh, sizes, reverse, needs):
    g_c = None if c0 is None else g[2]
    if saved.shape[1] != _SAVED[mode] * h0.shape[-1]:
        raise RuntimeError("_recurrent_layer: expected save=True, as a derivative is asked for; got save=False")
    given = gates, h0, c0, w_hh, b_hh, sizes, reverse
    return _recurrent_layer_backward(mode, g[0], g[1], g_c, *given, out, saved, old_c, needs)


@primitive(method=False, out=False, decomposition=_layer_gradient, flops=flops.recurrent_backward, planned=True)
def _recurrent_layer_backward(
    mode, g_out, g_h, g_c, gates, h0, c0, w_hh, b_hh, sizes, reverse, out, saved, old_c, needs
):
    """The gradients of a layer, None where there is no operand or none is needed. ``g_c`` is None but of an LSTM."""
    old_h = _states_before(out, h0, sizes, reverse) if mode == "GRU" or needs[3] else None
    d_x, d_h, g_h, g_c = _steps_back(mode, w_hh, g_out, g_h, g_c, out, saved, old_c, old_h, sizes, reverse, needs[1])
    d_w = matmul(d_h.transpose(0, 1), old_h) if needs[3] else None
    return d_x, g_h if needs[1] else None, g_c, d_w, None if b_hh is None else d_h.sum(0)


def _steps_back(mode, w_hh, g_out, g_h, g_c, out, saved, old_c, old_h, sizes, reverse, first):
    """Gradients of the gates' two inputs (of a GRU alone they differ), of the first state and cell.

    The gradient of the state lacks the products of the rows that begin later, unless ``first``.
    """
    (rows, hidden), width, dtype, g_out = out.shape, w_hh.shape[0], out.dtype, _whole(g_out)
    g_h, g_c = _copy_of(g_h), None if g_c is None else _copy_of(g_c)
    d_x = empty((rows, width), dtype)
    d_h = empty((rows, width), dtype) if mode == "GRU" else d_x
    given = (g_out, saved, old_c, old_h, out)
    if _as_layer(dtype, sizes, hidden):
        steps = _Steps(sizes, reverse, dtype, g_h.shape[0], hidden, kernels.GATES[mode])
        tensors = tuple(0 if t is None else t for t in (d_x, d_h, g_c, g_h, *given, steps.pack(w_hh, False)))
        steps.run(kernels.backward(dtype.name, mode, steps.by_rows), tensors, steps.backward)
        if first:
            for (start, n), (_, met) in _pairs(_blocks(sizes, reverse)):
                if n > met:
                    begun = g_h[met:n]
                    begun += matmul(d_h[start + met : start + n], w_hh)
    else:
        g_h = _gradient_step_by_step(mode, g_h, g_c, w_hh, _blocks(sizes, reverse), (d_x, d_h), given)
    return d_x, d_h, g_h, g_c


def _gradient_step_by_step(mode, g_h, g_c, w_hh, blocks, results, given):
    """The products as an op; ``results`` are written, as is ``g_c``. The gradient of the first state."""
    (batch, hidden), width, dtype = g_h.shape, w_hh.shape[0], g_h.dtype
    address, item = kernels.step_gradient(dtype.name, mode), dtype.itemsize
    (d_x, d_h), spans = results, [_SAVED[mode] if t is given[1] else 1 for t in given]
    grain = max(1, _PIECE // max(1, hidden))
    for start, n in reversed(blocks):
        if not n:
            continue
        at, wide = start * hidden * item, start * width * item
        rest = [0 if t is None else (t, at * k) for t, k in zip(given, spans, strict=True)]
        tensors = ((d_x, wide), (d_h, wide), 0 if g_c is None else g_c, g_h, *rest)
        launch(address, tensors, (hidden,), n, grain)
        through = matmul(results[1][start : start + n], w_hh)
        target = g_h if n == batch else g_h[:n]
        if mode == "GRU":
            target.add_(through)
        elif n == batch:
            g_h = through
        else:
            target.copy_(through)
    return g_h


def _cell_in_ops(mode: str, save: bool, x: Tensor, hidden: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
    """The results of a cell's op, in differentiable ops.

    The first result is the new state. The op keeps the others for its own derivative; only their form matters here.
    """
    kept = 4 * state[-1].shape[1] if save else 0
    return *step_in_ops(mode, x, hidden, state), narrow(x, 1, 0, 1).expand(-1, kept)


@primitive(
    method=False, out=False, outputs=("h_new", "c_new", "gates"), differentiable=(0, 1), name="_lstm_cell",
    batch="rows", autocast="widest", planned=True,
    lowering=lambda x, hidden, c, save: _cell_in_ops("LSTM", save, x, hidden, c, c),
)  # fmt: skip
def lstm_cell(x, hidden, c, save):
    """One step of an LSTM from gate inputs ``x`` and ``hidden``: the new h and c, and what backward needs if
    ``save``."""
    x, hidden, c = x.contiguous(), hidden.contiguous(), c.contiguous()
    n, width = c.shape
    _expect("lstm_cell", c.dtype, gates=(x, (n, 4 * width)), hidden=(hidden, (n, 4 * width)))
    h_new, c_new = empty((n, width), c.dtype), empty((n, width), c.dtype)
    gates = empty((n, 4 * width if save else 0), c.dtype)
    address = kernels.lstm_cell(c.dtype.name, save)
    launch(address, (h_new, c_new, gates, x, hidden, c), (width,), n, _PIECE // max(1, width) + 1)
    return h_new, c_new, gates


def _lstm_cell_gradient(dh, dc, x, hidden, c):
    dx, _, _, dc = _step_gradient("LSTM", x, hidden, (None, c), dh, dc)
    return dx, dc


@primitive(method=False, out=False, decomposition=_lstm_cell_gradient, batch="rows", planned=True)
def _lstm_cell_backward(dh, dc, gates, x, hidden, c):
    """The gradients of both gate inputs and of the cell."""
    c = c.contiguous()
    n, width = c.shape
    d_x, d_c = empty((n, 4 * width), c.dtype), empty((n, width), c.dtype)
    given = (d_x, d_c, dh.contiguous(), dc.contiguous(), gates.contiguous(), c)
    launch(kernels.lstm_cell_backward(c.dtype.name), given, (width,), n, _PIECE // max(1, width) + 1)
    return d_x, d_c


@lstm_cell.vjp_all("x", "hidden", "c")
def _(g, gates, x, hidden, c):
    d_x, d_c = _lstm_cell_backward(g[0], g[1], gates, x, hidden, c)
    return d_x, d_x, d_c


@primitive(
    method=False, out=False, outputs=("h_new", "saved"), differentiable=(0,), name="_gru_cell", batch="rows",
    autocast="widest", planned=True,
    lowering=lambda x, hidden, h, save: _cell_in_ops("GRU", save, x, hidden, h),
)  # fmt: skip
def gru_cell(x, hidden, h, save):
    """One step of a GRU from gate inputs ``x`` and ``hidden``: the new h, and what backward needs if ``save``."""
    x, hidden, h = x.contiguous(), hidden.contiguous(), h.contiguous()
    n, width = h.shape
    _expect("gru_cell", h.dtype, gates=(x, (n, 3 * width)), hidden=(hidden, (n, 3 * width)))
    h_new, saved = empty((n, width), h.dtype), empty((n, 4 * width if save else 0), h.dtype)
    launch(kernels.gru_cell(h.dtype.name, save), (h_new, saved, x, hidden, h), (width,), n, _PIECE // max(1, width) + 1)
    return h_new, saved


def _gru_cell_gradient(g, x, hidden, h):
    return _step_gradient("GRU", x, hidden, (h,), g, None)[:3]


@primitive(method=False, out=False, decomposition=_gru_cell_gradient, batch="rows", planned=True)
def _gru_cell_backward(g, saved, x, hidden, h):
    """The gradients of the gate inputs and of the state."""
    g, h = g.contiguous(), h.contiguous()
    n, width = h.shape
    d_x, d_hidden, d_h = empty((n, 3 * width), h.dtype), empty((n, 3 * width), h.dtype), empty((n, width), h.dtype)
    tensors = (d_x, d_hidden, d_h, g, saved.contiguous(), h)
    launch(kernels.gru_cell_backward(h.dtype.name), tensors, (width,), n, _PIECE // max(1, width) + 1)
    return d_x, d_hidden, d_h


gru_cell.vjp_all("x", "hidden", "h")(lambda g, saved, x, hidden, h: _gru_cell_backward(g, saved, x, hidden, h))


def cell(mode: str, x: Tensor, hidden: Tensor, h: Tensor, c: Tensor | None) -> tuple[Tensor, ...]:
    """One step from gate inputs: the new state."""
    if mode == "LSTM":
        return lstm_cell(x, hidden, c, x.requires_grad or hidden.requires_grad or c.requires_grad)[:2]
    if mode == "GRU":
        return gru_cell(x, hidden, h, x.requires_grad or hidden.requires_grad or h.requires_grad)[:1]
    return step_in_ops(mode, x, hidden, (h,))

"""One step of an RNN, LSTM or GRU over a batch, forward and backward: everything of it but the products.

All operands are contiguous rows; ``arg[0]`` is the hidden size, the parallel dimension is the batch. ``x`` and ``h`` below
are the gates' inputs from the step's element and from the state, biases included. The state is updated in place.
"""

from __future__ import annotations

from .build import kernel
from .ir import BF16, F16, F32, TYPES, Function, Type, Value
from .scalar import sigmoid, tanh


class _Rows:
    """Loads and stores of ``lanes`` hidden units of the present row."""

    def __init__(self, f: Function, t: Type, size: Value, row: Value):
        self.f, self.t, self.size, self.row = f, t, size, row
        self.work = F32 if t in (F16, BF16) else t
        self.lanes = f.lanes(self.work)

    def at(self, column: Value, mask: Value | None) -> None:
        """Move to hidden units from ``column``."""
        self.column, self.mask = column, mask

    def _place(self, operand: int, gate: int, gates: int) -> Value:
        element = (self.row * gates + gate) * self.size + self.column
        return self.f.offset(self.f.data(operand), element * self.t.bytes)

    def load(self, operand: int, gate: int = 0, gates: int = 1) -> Value:
        """A vector of operand ``operand``, which has ``gates`` blocks per row."""
        return self.f.load(self._place(operand, gate, gates), self.t, self.lanes, self.mask).to(self.work)

    def store(self, operand: int, x: Value, gate: int = 0, gates: int = 1) -> None:
        """Write a vector."""
        self.f.store(self._place(operand, gate, gates), x.to(self.t), self.mask)


def _each(f: Function, dtype: str, body) -> None:
    """Run ``body(rows)`` for every vector of hidden units of every row."""
    t = TYPES[dtype]
    size = f.size(0)
    with f.loop(f.begin, f.end) as L:
        rows = _Rows(f, t, size, L.index)
        whole = size - size % rows.lanes
        with f.loop(f.i64(0), whole, rows.lanes) as inner:
            rows.at(inner.index, None)
            body(rows)
        with f.when(whole < size):
            rows.at(whole, f.first(size - whole, rows.lanes))
            body(rows)


@kernel
def lstm(f: Function, dtype: str, save: bool) -> None:
    """``ptr = [out, h state, c state, gates, old c, old h, x, h]``; the second three are written if ``save``."""

    def body(r: _Rows) -> None:
        i, forget, g, o = (r.load(6, k, 4) + r.load(7, k, 4) for k in range(4))
        i, forget, g, o = sigmoid(i), sigmoid(forget), tanh(g), sigmoid(o)
        c = r.load(2)
        if save:
            for k, gate in enumerate((i, forget, g, o)):
                r.store(3, gate, k, 4)
            r.store(4, c)
            r.store(5, r.load(1))
        c = f.fma(forget, c, i * g)
        h = o * tanh(c)
        r.store(2, c)
        r.store(1, h)
        r.store(0, h)

    _each(f, dtype, body)


@kernel
def lstm_backward(f: Function, dtype: str) -> None:
    """``ptr = [gradient of the gates, of the c state, of the h state, of out, gates, old c]``."""

    def body(r: _Rows) -> None:
        i, forget, g, o = (r.load(4, k, 4) for k in range(4))
        old = r.load(5)
        t = tanh(f.fma(forget, old, i * g))
        dh = r.load(3) + r.load(2)
        dc = r.load(1) + dh * o * (1.0 - t * t)
        r.store(0, dc * g * i * (1.0 - i), 0, 4)
        r.store(0, dc * old * forget * (1.0 - forget), 1, 4)
        r.store(0, dc * i * (1.0 - g * g), 2, 4)
        r.store(0, dh * t * o * (1.0 - o), 3, 4)
        r.store(1, dc * forget)

    _each(f, dtype, body)


@kernel
def lstm_cell(f: Function, dtype: str, save: bool) -> None:
    """A single step: ``ptr = [h, c, gates, x, h, c]``; the gates are written if ``save``."""

    def body(r: _Rows) -> None:
        i, forget, g, o = (r.load(3, k, 4) + r.load(4, k, 4) for k in range(4))
        i, forget, g, o = sigmoid(i), sigmoid(forget), tanh(g), sigmoid(o)
        if save:
            for k, gate in enumerate((i, forget, g, o)):
                r.store(2, gate, k, 4)
        c = f.fma(forget, r.load(5), i * g)
        r.store(1, c)
        r.store(0, o * tanh(c))

    _each(f, dtype, body)


@kernel
def lstm_cell_backward(f: Function, dtype: str, has_h: bool, has_c: bool) -> None:
    """``ptr = [gradient of the gates, of c, of the new h, of the new c, gates, c]``; absent gradients are zero."""

    def body(r: _Rows) -> None:
        i, forget, g, o = (r.load(4, k, 4) for k in range(4))
        old = r.load(5)
        t = tanh(f.fma(forget, old, i * g))
        zero = f.const(r.work, 0.0, r.lanes)
        dh = r.load(2) if has_h else zero
        dc = f.fma(dh * o, 1.0 - t * t, r.load(3) if has_c else zero)
        r.store(0, dc * g * i * (1.0 - i), 0, 4)
        r.store(0, dc * old * forget * (1.0 - forget), 1, 4)
        r.store(0, dc * i * (1.0 - g * g), 2, 4)
        r.store(0, dh * t * o * (1.0 - o), 3, 4)
        r.store(1, dc * forget)

    _each(f, dtype, body)


@kernel
def gru_cell(f: Function, dtype: str, save: bool) -> None:
    """A single step: ``ptr = [h, (r, z, n, hidden n), x, hidden, h]``; the second is written if ``save``."""

    def body(r: _Rows) -> None:
        reset = sigmoid(r.load(2, 0, 3) + r.load(3, 0, 3))
        z = sigmoid(r.load(2, 1, 3) + r.load(3, 1, 3))
        hidden = r.load(3, 2, 3)
        n = tanh(f.fma(reset, hidden, r.load(2, 2, 3)))
        if save:
            for k, x in enumerate((reset, z, n, hidden)):
                r.store(1, x, k, 4)
        r.store(0, f.fma(r.load(4) - n, z, n))

    _each(f, dtype, body)


@kernel
def gru_cell_backward(f: Function, dtype: str) -> None:
    """``ptr = [gradient of x, of hidden, of h, of the new h, (r, z, n, hidden n), h]``."""

    def body(r: _Rows) -> None:
        reset, z, n, hidden = (r.load(4, k, 4) for k in range(4))
        dh = r.load(3)
        dn = dh * (1.0 - z) * (1.0 - n * n)
        dr = dn * hidden * reset * (1.0 - reset)
        dz = dh * (r.load(5) - n) * z * (1.0 - z)
        for k, x in enumerate((dr, dz, dn)):
            r.store(0, x, k, 3)
        for k, x in enumerate((dr, dz, dn * reset)):
            r.store(1, x, k, 3)
        r.store(2, dh * z)

    _each(f, dtype, body)


@kernel
def gru(f: Function, dtype: str, save: bool) -> None:
    """``ptr = [out, h state, (r, z, n, hidden n), old h, x, h]``; the second two are written if ``save``."""

    def body(r: _Rows) -> None:
        reset = sigmoid(r.load(4, 0, 3) + r.load(5, 0, 3))
        z = sigmoid(r.load(4, 1, 3) + r.load(5, 1, 3))
        hidden = r.load(5, 2, 3)
        n = tanh(f.fma(reset, hidden, r.load(4, 2, 3)))
        h = r.load(1)
        if save:
            for k, x in enumerate((reset, z, n, hidden)):
                r.store(2, x, k, 4)
            r.store(3, h)
        h = f.fma(h - n, z, n)
        r.store(1, h)
        r.store(0, h)

    _each(f, dtype, body)


@kernel
def gru_backward(f: Function, dtype: str) -> None:
    """``ptr = [gradient of x, of h, of the h state, of out, (r, z, n, hidden n), old h]``.

    The h state's gradient becomes the part that does not go through ``h``.
    """

    def body(r: _Rows) -> None:
        reset, z, n, hidden = (r.load(4, k, 4) for k in range(4))
        dh = r.load(3) + r.load(2)
        dn = dh * (1.0 - z) * (1.0 - n * n)
        dr = dn * hidden * reset * (1.0 - reset)
        dz = dh * (r.load(5) - n) * z * (1.0 - z)
        for k, x in enumerate((dr, dz, dn)):
            r.store(0, x, k, 3)
        for k, x in enumerate((dr, dz, dn * reset)):
            r.store(1, x, k, 3)
        r.store(2, dh * z)

    _each(f, dtype, body)


@kernel
def rnn(f: Function, dtype: str, relu: bool, save: bool) -> None:
    """``ptr = [out, h state, old h, x, h]``; the third is written if ``save``."""

    def body(r: _Rows) -> None:
        x = r.load(3) + r.load(4)
        if save:
            r.store(2, r.load(1))
        h = f.select(x > 0.0, x, 0.0) if relu else tanh(x)
        r.store(1, h)
        r.store(0, h)

    _each(f, dtype, body)


@kernel
def rnn_backward(f: Function, dtype: str, relu: bool) -> None:
    """``ptr = [gradient of the gates, of the h state, of out, out]``."""

    def body(r: _Rows) -> None:
        dh, h = r.load(2) + r.load(1), r.load(3)
        r.store(0, f.select(h > 0.0, dh, 0.0) if relu else dh * (1.0 - h * h))

    _each(f, dtype, body)

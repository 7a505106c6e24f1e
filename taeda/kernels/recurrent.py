"""The recurrence of an RNN, LSTM or GRU, forward and backward: one step over a batch, and whole layers.

A *cell* is a step without its products, written once for all kernels below. ``x`` and ``hidden`` are the gates' inputs
from the step's element and from the state, biases included. Every operand is contiguous rows with a block of the hidden
size for each gate.

A *layer* runs steps with their products. The weights are packed in panels (``packing.pack_b``, each gate by itself).
Rows of the state times a panel go to the stack, where the cell reads them. Within a step, panels of hidden units are
independent of each other; rows of the batch are independent throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .build import kernel
from .gemm import K_BLOCK, Block
from .ir import BF16, F16, F32, I64, TYPES, Function, Type, Value
from .scalar import sigmoid, tanh
from .tile import panel, smaller, tile_shape

#: Blocks of the hidden size per row.
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class _Rows:
    """Loads and stores ``lanes`` hidden units of the current row, of operands by name."""

    def __init__(self, f: Function, t: Type):
        self.f, self.t = f, t
        self.work = F32 if t in (F16, BF16) else t
        self.lanes = f.lanes(self.work)
        self.places: dict[str, tuple[Value, Value]] = {}

    def place(self, name: str, row: Value, step: Value) -> None:
        """Set the row of operand ``name`` to pointer ``row``; its gates are ``step`` bytes apart."""
        self.places[name] = row, step

    def each(self, first: Value, end: Value, body: Callable[[_Rows], None]) -> None:
        """Run ``body`` for every vector of the hidden units ``[first, end)``."""
        for column, _, mask in self.f.strips(first, end, self.lanes):
            self.column, self.mask = column, mask
            body(self)

    def _at(self, name: str, gate: int) -> Value:
        row, step = self.places[name]
        return self.f.offset(row, step * gate + self.column * self.t.bytes)

    def load(self, name: str, gate: int = 0) -> Value:
        """A vector of block ``gate`` of an operand."""
        return self.f.load(self._at(name, gate), self.t, self.lanes, self.mask).to(self.work)

    def store(self, name: str, x: Value, gate: int = 0) -> None:
        """Write a vector."""
        self.f.store(self._at(name, gate), x.to(self.t), self.mask)


# ---- cells ----------------------------------------------------------------------------------------------------------


def _lstm(r: _Rows, save: bool) -> tuple[Value, Value]:
    """The new h and c; with ``save`` the gates are stored to ``saved``."""
    i, forget, g, o = (r.load("x", k) + r.load("hidden", k) for k in range(4))
    i, forget, g, o = sigmoid(i), sigmoid(forget), tanh(g), sigmoid(o)
    if save:
        for k, gate in enumerate((i, forget, g, o)):
            r.store("saved", gate, k)
    c = r.f.fma(forget, r.load("c"), i * g)
    return o * tanh(c), c


def _lstm_gradient(r: _Rows, dh: Value, dc: Value) -> Value:
    """Store the gradient of the gates to ``d_x``; return the gradient of c. ``dc``: the gradient that reaches the new c
    directly.
    """
    i, forget, g, o = (r.load("saved", k) for k in range(4))
    old = r.load("old_c")
    t = tanh(r.f.fma(forget, old, i * g))
    dc = dc + dh * o * (1.0 - t * t)
    r.store("d_x", dc * g * i * (1.0 - i), 0)
    r.store("d_x", dc * old * forget * (1.0 - forget), 1)
    r.store("d_x", dc * i * (1.0 - g * g), 2)
    r.store("d_x", dh * t * o * (1.0 - o), 3)
    return dc * forget


def _gru(r: _Rows, save: bool) -> Value:
    """The new h; with ``save``, r, z, n and the hidden part of n are stored to ``saved``."""
    reset = sigmoid(r.load("x", 0) + r.load("hidden", 0))
    z = sigmoid(r.load("x", 1) + r.load("hidden", 1))
    hidden = r.load("hidden", 2)
    n = tanh(r.f.fma(reset, hidden, r.load("x", 2)))
    if save:
        for k, x in enumerate((reset, z, n, hidden)):
            r.store("saved", x, k)
    return r.f.fma(r.load("old_h") - n, z, n)


def _gru_gradient(r: _Rows, dh: Value) -> Value:
    """Store gradients of the gates to ``d_x`` and ``d_h``; return the part of h's gradient that bypasses ``hidden``."""
    reset, z, n, hidden = (r.load("saved", k) for k in range(4))
    dn = dh * (1.0 - z) * (1.0 - n * n)
    dr = dn * hidden * reset * (1.0 - reset)
    dz = dh * (r.load("old_h") - n) * z * (1.0 - z)
    for k, x in enumerate((dr, dz, dn)):
        r.store("d_x", x, k)
    for k, x in enumerate((dr, dz, dn * reset)):
        r.store("d_h", x, k)
    return dh * z


def _rnn(r: _Rows, relu: bool) -> Value:
    """The new h."""
    x = r.load("x") + r.load("hidden")
    return r.f.select(x > 0.0, x, 0.0) if relu else tanh(x)


def _rnn_gradient(r: _Rows, dh: Value, relu: bool) -> None:
    """Store the gradient of the gate to ``d_x``."""
    h = r.load("out")
    r.store("d_x", r.f.select(h > 0.0, dh, 0.0) if relu else dh * (1.0 - h * h))


def _step(r: _Rows, mode: str, save: bool) -> None:
    """The cell within a layer: stores ``out``, ``h`` and, for an LSTM, ``c`` and ``old_c``."""
    if mode == "LSTM":
        if save:
            r.store("old_c", r.load("c"))
        h, c = _lstm(r, save)
        r.store("c", c)
    else:
        h = _gru(r, save) if mode == "GRU" else _rnn(r, mode == "RNN_RELU")
    r.store("h", h)
    r.store("out", h)


def _step_gradient(r: _Rows, mode: str, dh: Value) -> Value | None:
    """The gradient of :func:`_step`: ``d_x``, ``d_h``, ``g_c``; return the part of the old h's that bypasses the
    products."""
    if mode == "LSTM":
        r.store("g_c", _lstm_gradient(r, dh, r.load("g_c")))
    elif mode == "GRU":
        return _gru_gradient(r, dh)
    else:
        _rnn_gradient(r, dh, mode == "RNN_RELU")
    return None


# ---- single steps: the parallel dimension is the batch, arg[0] the hidden size ---------------------------------------


def _each(f: Function, dtype: str, operands: str, body: Callable[[_Rows], None]) -> None:
    """Run ``body`` for every vector of hidden units of every row. ``operands``: names, with ``:gates`` unless one."""
    t = TYPES[dtype]
    size = f.size(0)
    with f.loop(f.begin, f.end) as L:
        rows = _Rows(f, t)
        for i, text in enumerate(operands.split()):
            name, _, gates = text.partition(":")
            step = size * t.bytes
            rows.place(name, f.offset(f.data(i), L.index * step * int(gates or 1)), step)
        rows.each(f.i64(0), size, body)


def step_operands(mode: str) -> str:
    """The operands of :func:`step`."""
    g = GATES[mode]
    if mode == "LSTM":
        return f"out h c saved:4 old_c x:{g} hidden:{g}"
    return f"out h saved:4 old_h x:{g} hidden:{g}"


@kernel
def step(f: Function, dtype: str, mode: str, save: bool) -> None:
    """A step of a layer after its product: ``ptr`` as in :func:`step_operands`; ``saved`` is written only if
    ``save``."""
    _each(f, dtype, step_operands(mode), lambda r: _step(r, mode, save))


@kernel
def step_gradient(f: Function, dtype: str, mode: str) -> None:
    """Backward of :func:`step`: ``ptr = [d_x, d_h, g_c, g_h, g_out, saved, old_c, old_h, out]``.

    ``g_h`` is the gradient of the new state. For a GRU it becomes the part of the old state's that bypasses the
    products.
    """

    def body(r: _Rows) -> None:
        direct = _step_gradient(r, mode, r.load("g_out") + r.load("g_h"))
        if direct is not None:
            r.store("g_h", direct)

    g = GATES[mode]
    _each(f, dtype, f"d_x:{g} d_h:{g} g_c g_h g_out saved:4 old_c old_h out", body)


@kernel
def lstm_cell(f: Function, dtype: str, save: bool) -> None:
    """``LSTMCell``: ``ptr = [h, new c, gates, x, hidden, c]``; the gates are written if ``save``."""

    def body(r: _Rows) -> None:
        h, c = _lstm(r, save)
        r.store("new_c", c)
        r.store("h", h)

    _each(f, dtype, "h new_c saved:4 x:4 hidden:4 c", body)


@kernel
def lstm_cell_backward(f: Function, dtype: str) -> None:
    """``ptr = [gradient of the gates, of c, of the new h, of the new c, gates, c]``."""

    def body(r: _Rows) -> None:
        r.store("d_c", _lstm_gradient(r, r.load("g_h"), r.load("g_c")))

    _each(f, dtype, "d_x:4 d_c g_h g_c saved:4 old_c", body)


@kernel
def gru_cell(f: Function, dtype: str, save: bool) -> None:
    """``GRUCell``: ``ptr = [h, (r, z, n, hidden n), x, hidden, old h]``; the second is written if ``save``."""
    _each(f, dtype, "h saved:4 x:3 hidden:3 old_h", lambda r: r.store("h", _gru(r, save)))


@kernel
def gru_cell_backward(f: Function, dtype: str) -> None:
    """``ptr = [gradient of x, of hidden, of h, of the new h, (r, z, n, hidden n), h]``."""
    _each(f, dtype, "d_x:3 d_h:3 d_old g_h saved:4 old_h", lambda r: r.store("d_old", _gru_gradient(r, r.load("g_h"))))


# ---- layers ----------------------------------------------------------------------------------------------------------

#: Arguments of the layers' kernels: hidden units, steps in the table, rows of a task (``by_rows``), whether there is a
#: bias.
LAYER_ARGS = ("size", "steps", "block", "bias")
#: Pointers. ``steps`` is a table of int64: the first row and the number of rows of the step, and of the step before it
#: (backward: after it), whose states (gradients) it continues. Rows beyond those have their first (last) step here.
FORWARD = ("out", "h", "c", "saved", "old_c", "x", "h0", "weights", "bias", "tiles", "steps")
BACKWARD = ("d_x", "d_h", "g_c", "g_h", "g_out", "saved", "old_c", "old_h", "out", "weights", "tiles", "steps")
STEP_ITEMS = 4
_CHUNK = 96  # rows whose products are on the stack at a time: 96 KiB for four gates


class _Layer:
    """Tasks, and the products of a task, within a kernel."""

    def __init__(self, f: Function, dtype: str, names: tuple[str, ...], gates: int):
        self.f, self.t = f, TYPES[dtype]
        self.data = {name: f.data(i) for i, name in enumerate(names)}
        self.size, self.steps, self.block, self.bias = (f.size(i) for i in range(len(LAYER_ARGS)))
        self.item, self.width = self.t.bytes, panel(dtype, f.vector_bytes)
        self.units = (self.size + (self.width - 1)) / self.width
        self.product = Block(f, self.t, self.data["tiles"])
        self.line = f.i64(self.width * self.item)  # bytes of a row of a panel, also of the results
        self.pitch = gates * self.width * self.item
        self.results = f.scratch(_CHUNK * self.pitch)

    def row(self, name: str, row: Value, gates: int = 1) -> Value:
        """The address of a row of an operand."""
        return self.f.offset(self.data[name], row * self.size * (gates * self.item))

    @contextmanager
    def tasks(self, by_rows: bool) -> Iterator[tuple[Value, tuple[Value, ...], Value, Value]]:
        """The range's work: a panel of units, a step of the table, and the first and last row of it.

        The range counts blocks of rows, each of which does all steps (``by_rows``), or panels, step by step.
        """
        f = self.f
        outer, inner = (f.i64(0), self.steps), (f.i64(0), self.units)
        blocks = (f.begin, f.end) if by_rows else (f.i64(0), f.i64(1))
        if not by_rows:
            inner = f.begin, f.end
        with f.loop(*blocks) as B, f.loop(*outer) as T:
            at = f.offset(self.data["steps"], T.index * (8 * STEP_ITEMS))
            entry = tuple(f.load(f.offset(at, 8 * i), I64) for i in range(STEP_ITEMS))
            first = B.index * self.block if by_rows else f.i64(0)
            end = smaller(f, entry[1], first + self.block) if by_rows else entry[1]
            with f.loop(*inner) as U:
                yield U.index, entry, first, end

    @contextmanager
    def chunks(self, first: Value, end: Value, met: Value) -> Iterator[tuple[Value, Value, Value]]:
        """Rows from ``first`` to ``end``, at most ``_CHUNK`` at a time: start, count, and whether they are beyond
        ``met``."""
        f = self.f
        with f.loop(0, 2) as S:
            beyond = S.index == 1
            start = f.select(beyond, f.select(first < met, met, first), first)
            stop = f.select(beyond, end, smaller(f, end, met))
            with f.loop(start, stop, _CHUNK) as R:
                yield R.index, smaller(f, stop - R.index, _CHUNK), beyond

    def columns(self, unit: Value) -> tuple[Value, Value]:
        """First and last hidden unit of a panel."""
        first = unit * self.width
        return first, smaller(self.f, self.size, first + self.width)

    def multiply(
        self, a: Value, k: Value, weights: Value, unit: Value, gate: int, m: Value, bias: Value | None
    ) -> None:
        """``m`` rows of ``k`` numbers at ``a`` times a panel, into the results of ``gate``."""
        f, block = self.f, self.product
        first, end = self.columns(unit)
        to = f.offset(self.results, gate * self.width * self.item)
        init = f.i64(0) if bias is None else self.bias
        d = self.results if bias is None else f.offset(bias, (self.size * gate + first) * self.item)
        panel = f.offset(weights, (unit + self.units * gate) * (k * self.line))
        a_m = k * self.item
        tile = tile_shape(f.vector_bytes).rows
        whole = f.select(m <= tile, k, f.i64(K_BLOCK))  # a panel that one tile reads need not fit a cache
        with f.loop(0, k, whole) as K:
            depth = smaller(f, k - K.index, whole)
            part = f.offset(panel, K.index * self.line)
            block.context.set(k=depth, a_m=a_m, a_k=f.i64(self.item), b_k=self.line)
            block.context.set(a_tile=a_m * tile)
            block.set_c(K.index == 0, init, to, f.i64(self.pitch), d, f.i64(0))
            yes = depth > 0
            block.prefetch_panel(f.offset(part, depth * self.line), self.line, depth, yes, f.i64(0), yes)
            block.multiply(f.offset(a, K.index * self.item), part, f.i64(0), end - first, m, f.i64(0))

    @contextmanager
    def rows(self, start: Value, count: Value, unit: Value, names: dict[str, int]) -> Iterator[tuple[_Rows, Value]]:
        """Each of ``count`` rows from ``start``: its results as ``hidden``, and the operands with one row per
        sequence."""
        f = self.f
        with f.loop(0, count) as R:
            r = _Rows(f, self.t)
            shift = R.index * self.pitch - unit * self.line
            r.place("hidden", f.offset(self.results, shift), self.line)
            for name in names:
                r.place(name, self.row(name, start + R.index, names[name]), self.size * self.item)
            yield r, start + R.index


@kernel
def forward(f: Function, dtype: str, mode: str, save: bool, by_rows: bool) -> None:
    """Steps of a layer; see :data:`FORWARD`, :data:`LAYER_ARGS` and :meth:`_Layer.tasks`."""
    gates = GATES[mode]
    layer = _Layer(f, dtype, FORWARD, gates)
    step = layer.size * layer.item
    states = {"h": 1, "c": 1} if mode == "LSTM" else {"h": 1}
    with (
        layer.tasks(by_rows) as (unit, (start, _, before, met), first, end),
        layer.chunks(first, end, met) as (at, m, beyond),
    ):
        old = f.select(beyond, layer.row("h0", at), layer.row("out", before + at))
        for k in range(gates):
            layer.multiply(old, layer.size, layer.data["weights"], unit, k, m, layer.data["bias"])
        with layer.rows(at, m, unit, states) as (r, row):
            r.place("old_h", f.offset(old, (row - at) * step), f.i64(0))
            for name, blocks in {"out": 1, "saved": 4, "old_c": 1, "x": gates}.items():
                r.place(name, layer.row(name, start + row, blocks), step)
            r.each(*layer.columns(unit), lambda r: _step(r, mode, save))


@kernel
def backward(f: Function, dtype: str, mode: str, by_rows: bool) -> None:
    """The gradient of :func:`forward`, steps in reverse order; see :data:`BACKWARD`.

    ``g_h`` is the gradient of the last state, and becomes the part of the first state's that bypasses the products.
    """
    gates = GATES[mode]
    layer = _Layer(f, dtype, BACKWARD, 1)
    step = layer.size * layer.item

    def body(r: _Rows) -> None:
        direct = _step_gradient(r, mode, r.load("g_out") + r.load("g_h") + r.load("hidden"))
        r.store("g_h", f.const(r.work, 0.0, r.lanes) if direct is None else direct)

    with (
        layer.tasks(by_rows) as (unit, (start, _, after, met), first, end),
        layer.chunks(first, end, met) as (at, m, beyond),
    ):
        with f.branch(beyond) as B:
            with f.loop(0, m * layer.line, f.lanes(layer.t) * layer.item) as Z:
                f.store(f.offset(layer.results, Z.index), f.const(layer.t, 0, f.lanes(layer.t)))
            B.otherwise()
            through = layer.row("d_h", after + at, gates)
            layer.multiply(through, layer.size * gates, layer.data["weights"], unit, 0, m, None)
        with layer.rows(at, m, unit, {"g_c": 1, "g_h": 1}) as (r, row):
            for name, blocks in {
                "d_x": gates, "d_h": gates, "g_out": 1, "saved": 4, "old_c": 1, "old_h": 1, "out": 1
            }.items():  # fmt: skip
                r.place(name, layer.row(name, start + row, blocks), step)
            r.each(*layer.columns(unit), body)

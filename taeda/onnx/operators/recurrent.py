"""ONNX's recurrent layers: a loop over steps, with everything that the format allows of a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import taeda.nn.functional as F

from ..._core import int64
from ..._typed import Tensor
from ...ops.creation import arange
from ...ops.elementary import sigmoid, tanh
from ...ops.extrema import clamp
from ...ops.indexing import where
from ...ops.joining import stack
from ...ops.scatter import gather
from ...ops.shape import flip
from ..table import op
from .elementwise import softplus

#: Activations by their names in lower case: (function of x, alpha and beta, default alpha, default beta).
_ACTIVATIONS: dict[str, tuple[Callable[[Tensor, float, float], Tensor], float, float]] = {
    "relu": (lambda x, a, b: F.relu(x), 0, 0), "tanh": (lambda x, a, b: tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: sigmoid(x), 0, 0), "affine": (lambda x, a, b: a * x + b, 1, 0),
    "leakyrelu": (lambda x, a, b: F.leaky_relu(x, a), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: where(x >= a, x, 0), 1, 0),
    "scaledtanh": (lambda x, a, b: a * tanh(b * x), 1, 1),
    "hardsigmoid": (lambda x, a, b: clamp(a * x + b, 0, 1), 0.2, 0.5), "elu": (lambda x, a, b: F.elu(x, a), 1, 0),
    "softsign": (lambda x, a, b: F.softsign(x), 0, 0), "softplus": (lambda x, a, b: softplus(x), 0, 0),
}  # fmt: skip
#: Functions that take numbers from the lists of alphas and betas, and how many of each.
_TAKES = {
    "affine": (1, 1), "leakyrelu": (1, 0), "thresholdedrelu": (1, 0), "scaledtanh": (1, 1), "hardsigmoid": (1, 1),
    "elu": (1, 0),
}  # fmt: skip


class Options(NamedTuple):
    """The options that the three layers share. ``activations`` are one direction's."""

    activations: list[Callable[[Tensor], Tensor]]
    clip: float | None
    linear_before_reset: int
    input_forget: int

    def bounded(self, gates: Tensor) -> Tensor:
        """The inputs of the gates' activations, clipped. As in onnxruntime, the cell of an LSTM is not clipped."""
        return gates if self.clip is None else clamp(gates, -self.clip, self.clip)


def _activations(names: list[str], alphas: list[float], betas: list[float]) -> Iterator[Callable[[Tensor], Tensor]]:
    """The activations, each with its numbers."""
    left, right = iter(alphas), iter(betas)
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            raise NotImplementedError(f"expected an activation of {sorted(_ACTIVATIONS)}, got {name!r}")
        function, alpha, beta = _ACTIVATIONS[name.lower()]
        takes = _TAKES.get(name.lower(), (0, 0))
        alpha = next(left, alpha) if takes[0] else alpha
        beta = next(right, beta) if takes[1] else beta
        yield lambda x, function=function, alpha=alpha, beta=beta: function(x, alpha, beta)


# ---- cells: (x @ W' + Wb, state, R', Rb, peepholes, options) -> state ------------------------------------------------
def _rnn(x: Tensor, state: tuple, weight: Tensor, bias: Tensor, peepholes: Any, options: Options) -> tuple:
    (f,) = options.activations
    return (f(options.bounded(x + state[0] @ weight + bias)),)


def _gru(x: Tensor, state: tuple, weight: Tensor, bias: Tensor, peepholes: Any, options: Options) -> tuple:
    f, g = options.activations
    (h,), n = state, state[0].shape[-1]
    gates = f(options.bounded(x[:, : 2 * n] + h @ weight[:, : 2 * n] + bias[: 2 * n]))
    update, reset = gates[:, :n], gates[:, n:]
    if options.linear_before_reset:
        new = x[:, 2 * n :] + reset * (h @ weight[:, 2 * n :] + bias[2 * n :])
    else:
        new = x[:, 2 * n :] + (reset * h) @ weight[:, 2 * n :] + bias[2 * n :]
    new = g(options.bounded(new))
    return ((1 - update) * new + update * h,)


def _lstm(x: Tensor, state: tuple, weight: Tensor, bias: Tensor, peepholes: Any, options: Options) -> tuple:
    f, g, h = options.activations
    hidden, cell = state
    i, o, forget, c = (x + hidden @ weight + bias).chunk(4, 1)
    pi, po, pf = peepholes.chunk(3) if peepholes is not None else (None, None, None)
    i = f(options.bounded(i if pi is None else i + pi * cell))
    forget = 1 - i if options.input_forget else f(options.bounded(forget if pf is None else forget + pf * cell))
    cell = forget * cell + i * g(options.bounded(c))
    o = f(options.bounded(o if po is None else o + po * cell))
    return o * h(cell), cell


# ---- layers ----------------------------------------------------------------------------------------------------------
def _direction(
    cell: Callable, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Any, state: tuple, p: Any,
    options: Options,
) -> tuple[Tensor, tuple]:  # fmt: skip
    """All outputs and the last state of one direction; steps past an example's length give 0 and keep its state."""
    gates = w.shape[0]
    bias = x.new_zeros(2 * gates) if b is None else b
    inputs, weight, results = x @ w.T + bias[:gates], r.T, []
    for step in range(x.shape[0]):
        new = cell(inputs[step], state, weight, bias[gates:], p, options)
        output = new[0]
        if lengths is not None:
            active = (step < lengths).unsqueeze(1)
            output = where(active, output, 0)
            new = tuple(where(active, a, b) for a, b in zip(new, state, strict=True))
        state = new
        results.append(output)
    return (stack(results) if results else x.new_zeros(0, *state[0].shape)), state


def _reversed(x: Tensor, lengths: Tensor | None) -> Tensor:
    """The steps of each example in reverse, its padding in place."""
    if lengths is None:
        return flip(x, [0])
    steps = arange(x.shape[0]).unsqueeze(1)
    places = where(steps < lengths, lengths - 1 - steps, steps)
    return gather(x, 0, places.unsqueeze(-1).expand(x.shape))


def _layer(
    cell: Callable, names: list[str], x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None,
    states: list[Tensor | None], p: Tensor | None = None, *, hidden_size: int | None = None,
    activations: list[str] | None = None, activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None, clip: float | None = None, direction: str = "forward",
    input_forget: int = 0, layout: int = 0, linear_before_reset: int = 0, output_sequence: int = 0,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Outputs (steps, directions, batch, size) and last states (directions, batch, size); batch first in ``layout``
    1."""
    x = x.transpose(0, 1) if layout else x
    count, size = w.shape[0], r.shape[-1]
    first = [s if s is None or not layout else s.transpose(0, 1) for s in states]
    full = [x.new_zeros(count, x.shape[1], size) if s is None else s for s in first]
    names = activations or names * count
    functions = list(_activations(names, activation_alpha or [], activation_beta or []))
    each = len(functions) // count
    lengths = None if lengths is None else lengths.to(int64)
    outputs, lasts = [], []
    for d in range(count):
        backward = direction == "reverse" or d == 1
        options = Options(functions[d * each : (d + 1) * each], clip, linear_before_reset, input_forget)
        steps = _reversed(x, lengths) if backward else x
        state = tuple(s[d] for s in full)
        own = None if b is None else b[d], lengths, state, None if p is None else p[d], options
        y, last = _direction(cell, steps, w[d], r[d], *own)
        outputs.append(_reversed(y, lengths) if backward else y)
        lasts.append(last)
    y = stack(outputs, 1)
    ends = tuple(stack(parts) for parts in zip(*lasts, strict=True))
    if layout:
        return y.permute(2, 0, 1, 3), *(end.transpose(0, 1) for end in ends)
    return y, *ends


@op("RNN")
def rnn(x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h: Any = None, **attributes: Any) -> tuple:
    return _layer(_rnn, ["Tanh"], x, w, r, b, lengths, [h], **attributes)


@op("GRU")
def gru(x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h: Any = None, **attributes: Any) -> tuple:
    return _layer(_gru, ["Sigmoid", "Tanh"], x, w, r, b, lengths, [h], **attributes)


@op("LSTM")
def lstm(
    x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h: Any = None, c: Any = None, p: Any = None,
    **attributes: Any,
) -> tuple:  # fmt: skip
    return _layer(_lstm, ["Sigmoid", "Tanh", "Tanh"], x, w, r, b, lengths, [h, c], p, **attributes)

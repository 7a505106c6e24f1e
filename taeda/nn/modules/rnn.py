"""Recurrent layers: RNN, LSTM, GRU over whole sequences, and their single-step cells."""

from __future__ import annotations

import math
import numbers
import operator
import warnings
from typing import Any, Self

from ..._typed import Tensor
from ...amp.autocast_mode import is_autocast_enabled
from ...ops.creation import empty
from ...ops.recurrent import cell
from .. import functional as F
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from ._recurrent import recurrent
from .module import Module
from .utils import _make_parameters, _unless

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """``tensor.index_select(dim, permutation)``."""
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """The base of :class:`RNN`, :class:`LSTM` and :class:`GRU`: weights by layer and direction, and the loop over time.

    ``weight_ih_l0`` is ``(gates * hidden_size, input_size)``, ``weight_hh_l0`` is ``(gates * hidden_size,
    hidden_size)``, with 1, 4 or 3 gates; further layers are ``_l1``, ..., the backward direction ends in ``_reverse``.
    All parameters start uniform in ``+- 1 / sqrt(hidden_size)``.

    Args:
        mode: ``"LSTM"``, ``"GRU"``, ``"RNN_TANH"`` or ``"RNN_RELU"``: the subclasses fill it in.
        input_size: size of each input element.
        hidden_size: size of the hidden state.
        num_layers: layers, each of which reads the outputs of the one before.
        bias: whether there are ``bias_ih`` and ``bias_hh``.
        batch_first: sequences are ``(N, L, *)`` rather than ``(L, N, *)``; the states are not concerned.
        dropout: probability of dropout between layers, in training.
        bidirectional: a second set of weights reads the sequence backwards.
        proj_size: project the hidden state to this size (LSTM only).
        device: of the parameters.
        dtype: of the parameters.

    Shape:
        input: ``(L, N, input_size)``, ``(L, input_size)`` or a :class:`taeda.nn.utils.rnn.PackedSequence`.
            Floating-point.
        hx: ``(D * num_layers, N, hidden_size)`` with ``D`` 1 or 2 directions; zero if not given.
        output: ``(L, N, D * hidden_size)``, the last layer's states; and the last states, of the shape of ``hx``.

    Raises:
        ValueError: a size, the number of layers or the dropout is out of range.
        RuntimeError: in a call, the shapes do not fit.

    Examples:
        >>> lstm = taeda.nn.RNNBase("LSTM", 10, 20)
        >>> {name: tuple(p.shape) for name, p in lstm.named_parameters()}
        {'weight_ih_l0': (80, 10), 'weight_hh_l0': (80, 20), 'bias_ih_l0': (80,), 'bias_hh_l0': (80,)}
    """

    __constants__ = (
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
        "proj_size",
    )  # fmt: skip

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._check(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        gates = _GATES[mode] * hidden_size
        state = proj_size or hidden_size
        directions = 2 if bidirectional else 1
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:directions]:
                width = input_size if layer == 0 else state * directions
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, width), "weight_hh": (gates, state)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = []
                for name, shape in shapes.items():
                    names.append(f"{name}_l{layer}{suffix}")
                    setattr(self, names[-1], Parameter(empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(names)
        self.reset_parameters()

    @staticmethod
    def _check(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout: Any, proj_size) -> None:
        is_number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
        if not is_number or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=4,
            )
        for name, value, kind in (
            ("bias", bias, bool), ("batch_first", batch_first, bool), ("input_size", input_size, int),
            ("hidden_size", hidden_size, int),
        ):  # fmt: skip
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        """The weights for ``forward``: the ones assigned here, until one of the parameters is replaced."""
        own = [getattr(self, name) for name in self._flat_weights_names]
        given, then = self.__dict__.get("_given_weights", (None, own))
        return given if given is not None and all(map(operator.is_, own, then)) else own

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Tensor]) -> None:
        own = [getattr(self, name, None) for name in self._flat_weights_names]
        self.__dict__["_given_weights"] = (weights, own)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        self.__dict__.pop("_given_weights", None)
        return super()._apply(fn, recurse)

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters by layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _weights(self) -> list[list[Tensor]]:
        """The weights to compute with, by layer and direction."""
        if "_given_weights" not in self.__dict__:
            return self.all_weights
        flat = iter(self._flat_weights)
        return [[next(flat) for _ in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """PyTorch packs the parameters for cuDNN here; taeda's kernels take them where they are."""

    def reset_parameters(self) -> None:
        """Initialise the parameters again."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # ---- checks -----------------------------------------------------------------------------------------------------
    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise unless ``input`` has the right dtype, dimensions and width."""
        weight = getattr(self, self._all_weights[0][0])
        if input.dtype != weight.dtype and not is_autocast_enabled("cpu"):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        dims = 2 if batch_sizes is not None else 3
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)} (input "
                f"shape {tuple(input.shape)}); a layer with input_size={input.size(-1)} takes it"
            )

    def _state_shape(self, input: Tensor, batch_sizes: Tensor | None, width: int) -> tuple[int, int, int]:
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return (self.num_layers * (2 if self.bidirectional else 1), batch, width)

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the hidden state for ``input``."""
        return self._state_shape(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise unless ``hx`` has that shape."""
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden, batch_sizes: Tensor | None) -> None:
        """Raise unless input and state fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation: Tensor | None):
        """The state with its batch in another order."""
        return hx if permutation is None else apply_permutation(hx, permutation)

    # ---- forward ----------------------------------------------------------------------------------------------------
    def _zero_state(self, input: Tensor, batch_sizes: Tensor | None):
        return input.new_zeros(self.get_expected_hidden_size(input, batch_sizes))

    def _state_dims(self, hx) -> tuple[int, ...]:
        return (hx.dim(),)

    def _map_state(self, hx, fn):
        return fn(hx)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The output of the last layer at every step, and the final state of every layer.

        Args:
            input: ``(L, N, input_size)``, ``(N, L, input_size)`` if ``batch_first``, ``(L, input_size)``, or a
                PackedSequence.
            hx: the first state, ``(num_layers * directions, N, hidden_size)``; zero if None. For an LSTM the pair
                ``(h, c)``.

        Returns:
            The outputs, and the last states.

        Raises:
            ValueError: the input has other than two or three dimensions.
            RuntimeError: ``hx`` has another number of dimensions or other sizes.
        """
        packed = input if isinstance(input, PackedSequence) else None
        batched = True
        if packed is not None:
            x, sizes, order, back = packed
            hx = self._zero_state(x, sizes) if hx is None else self.permute_hidden(hx, order)
        else:
            x, sizes, back = input, None, None
            if x.dim() not in (2, 3):
                raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {x.dim()}D instead")
            batched = x.dim() == 3
            if hx is not None and any(d != (3 if batched else 2) for d in self._state_dims(hx)):
                what, dims = ("batched 3-D", 3) if batched else ("unbatched 2-D", 2)
                got = ", ".join(f"{d}-D" for d in self._state_dims(hx))
                raise RuntimeError(f"For {what} input, hx should also be {dims}-D but got {got} tensor")
            if not batched:
                x = x.unsqueeze(0 if self.batch_first else 1)
                hx = hx if hx is None else self._map_state(hx, lambda t: t.unsqueeze(1))
            hx = self._zero_state(x, None) if hx is None else hx
        self.check_forward_args(x, hx, sizes)
        output, state = recurrent(
            self.mode, x, hx, self._weights(), self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional, self.batch_first and packed is None, None if sizes is None else sizes.tolist(),
        )  # fmt: skip
        if packed is not None:
            return PackedSequence(output, sizes, order, back), self.permute_hidden(state, back)
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            state = self._map_state(state, lambda t: t.squeeze(1))
        return output, state

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + _unless(
            self, proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0, bidirectional=False
        )  # fmt: skip


class RNN(RNNBase):
    """The simplest recurrent network: ``h[t] = tanh(W_ih x[t] + b_ih + W_hh h[t - 1] + b_hh)``.

    It takes the arguments of :class:`RNNBase` without ``mode``, and ``nonlinearity``: ``"tanh"`` or ``"relu"`` (Elman
    1990).

    Args:
        *args: as for :class:`RNNBase`, without ``mode``; ``nonlinearity`` stands fourth.
        **kwargs: the same by name.

    Raises:
        ValueError: the nonlinearity is unknown; ``proj_size`` is given, which :class:`LSTM` alone has; or a size is not
            positive.

    Examples:
        >>> rnn = nn.RNN(input_size=3, hidden_size=4)
        >>> output, last = rnn(taeda.randn(7, 2, 3))  # 7 steps, 2 sequences
        >>> output.shape, last.shape
        (taeda.Size([7, 2, 4]), taeda.Size([1, 2, 4]))
        >>> bool((output[-1] == last[0]).all())
        True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:  # nonlinearity stands fourth
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent unit: a recurrent network whose gates decide what of the state is kept.

    With ``r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)`` and ``z`` likewise::

        n = tanh(W_in x + b_in + r * (W_hn h + b_hn))
        h = (1 - z) * n + z * h

    The rows of ``weight_ih_l0`` are those of ``r``, ``z``, ``n``. Takes the arguments of :class:`RNNBase` without
    ``mode``. Source: Cho et al. 2014, "Learning Phrase Representations using RNN Encoder-Decoder for Statistical
    Machine Translation".

    Args:
        *args: as for :class:`RNNBase`, without ``mode``.
        **kwargs: the same by name.

    Raises:
        ValueError: ``proj_size`` is given, which :class:`LSTM` alone has, or a size is not positive.

    Examples:
        >>> gru = nn.GRU(3, 4, num_layers=2, batch_first=True)
        >>> output, last = gru(taeda.randn(2, 7, 3))
        >>> output.shape, last.shape
        (taeda.Size([2, 7, 4]), taeda.Size([2, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory: a recurrent network with a cell state, which gates write, read and erase.

    With ``i = sigmoid(W_ii x + b_ii + W_hi h + b_hi)``, ``f`` and ``o`` likewise, and ``g`` with tanh::

        c = f * c + i * g
        h = o * tanh(c)

    With ``proj_size`` the state is ``weight_hr h``. The rows of ``weight_ih_l0`` are those of ``i``, ``f``, ``g``,
    ``o``. Takes the arguments of :class:`RNNBase` without ``mode``. Source: Hochreiter & Schmidhuber 1997, "Long
    Short-Term Memory".

    Args:
        *args: as for :class:`RNNBase`, without ``mode``.
        **kwargs: the same by name.

    Shape:
        input: ``(L, N, input_size)``, ``(L, input_size)`` or a :class:`taeda.nn.utils.rnn.PackedSequence`.
            Floating-point.
        hx: the pair ``(h, c)``, ``(D * num_layers, N, proj_size or hidden_size)`` and ``(D * num_layers, N,
            hidden_size)``; zero if not given.
        output: ``(L, N, D * (proj_size or hidden_size))``; and the last ``(h, c)``.

    Examples:
        >>> lstm = nn.LSTM(3, 4, bidirectional=True)
        >>> output, (h, c) = lstm(taeda.randn(7, 2, 3))
        >>> output.shape, h.shape, c.shape
        (taeda.Size([7, 2, 8]), taeda.Size([2, 2, 4]), taeda.Size([2, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the cell state for ``input``."""
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx, permutation: Tensor | None):
        return hx if permutation is None else tuple(apply_permutation(t, permutation) for t in hx)

    def _zero_state(self, input: Tensor, batch_sizes: Tensor | None):
        return (
            input.new_zeros(self.get_expected_hidden_size(input, batch_sizes)),
            input.new_zeros(self.get_expected_cell_size(input, batch_sizes)),
        )

    def _state_dims(self, hx) -> tuple[int, ...]:
        return tuple(t.dim() for t in hx)

    def _map_state(self, hx, fn):
        return tuple(fn(t) for t in hx)


class RNNCellBase(Module):
    """The base of the cells: ``weight_ih``, ``weight_hh``, ``bias_ih``, ``bias_hh`` for ``num_chunks`` gates.

    Args:
        input_size: size of the input.
        hidden_size: size of the state.
        bias: whether there are biases.
        num_chunks: number of gates: 1, 3 or 4.
        device: of the parameters.
        dtype: of the parameters.

    Shape:
        input: ``(N, input_size)`` or ``(input_size,)``. Floating-point.
        hx: ``(N, hidden_size)`` or ``(hidden_size,)``; zero if not given.
        output: the shape of ``hx``.

    Raises:
        ValueError: in a call, there are other dimensions.
        RuntimeError: in a call, the sizes do not fit.

    Examples:
        >>> taeda.nn.RNNCellBase(3, 4, bias=True, num_chunks=3).weight_ih.shape
        taeda.Size([12, 3])
    """

    __constants__: tuple[str, ...] = ("input_size", "hidden_size", "bias")

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        _make_parameters(self, device, dtype, weight_ih=(gates, input_size), weight_hh=(gates, hidden_size))
        _make_parameters(self, device, dtype, **dict.fromkeys(("bias_ih", "bias_hh"), (gates,) if bias else None))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters again."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _inputs(self, input: Tensor, states: tuple[Tensor, ...] | None, count: int) -> tuple[Tensor, ...]:
        """A batch of inputs and of states, zero where there are none, whatever was given."""
        for name, t in zip(("input", "hidden", "cell"), (input, *(states or ())), strict=False):
            if t.dim() not in (1, 2):
                raise ValueError(f"{self._get_name()}: Expected {name} to be 1D or 2D, got {t.dim()}D instead")
        x = input if input.dim() == 2 else input.unsqueeze(0)
        if states is None:
            states = (x.new_zeros((x.size(0), self.hidden_size)),) * count
        elif input.dim() == 1:
            states = tuple(s.unsqueeze(0) for s in states)
        return (x, *states)

    def _gates(self, input: Tensor, *states: Tensor) -> tuple[Tensor, Tensor]:
        """Gate inputs of the element and of the state."""
        x = F.linear(input, self.weight_ih, self.bias_ih)
        hidden = F.linear(states[0], self.weight_hh, self.bias_hh)
        if x.shape != hidden.shape or states[-1].shape != states[0].shape:
            width = (input.size(0), self.hidden_size)
            raise RuntimeError(
                f"{self._get_name()}: expected states of shape {width} for an input of shape {tuple(input.shape)}, got "
                f"{', '.join(str(tuple(s.shape)) for s in states)}"
            )
        return x, hidden

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}" + _unless(self, bias=True)
        return text + (_unless(self, nonlinearity="tanh") if hasattr(self, "nonlinearity") else "")


class RNNCell(RNNCellBase):
    """One step of a recurrent network: ``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``.

    Use it in your own loops; :class:`RNN` runs whole sequences faster.

    Args:
        input_size: size of the input.
        hidden_size: size of the state.
        bias: whether there are biases.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        device: of the parameters.
        dtype: of the parameters.

    Examples:
        >>> cell = nn.RNNCell(3, 4)
        >>> h = taeda.zeros(2, 4)
        >>> for x in taeda.randn(7, 2, 3):
        ...     h = cell(x, h)
        >>> h.shape
        taeda.Size([2, 4])
    """

    __constants__ = ("input_size", "hidden_size", "bias", "nonlinearity")

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        batched = input.dim() == 2
        if hx is None or not batched or hx.dim() != 2:
            input, hx = self._inputs(input, None if hx is None else (hx,), 1)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        (result,) = cell(f"RNN_{self.nonlinearity.upper()}", *self._gates(input, hx), hx, None)
        return result if batched else result.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: ``(h', c')`` of ``x`` and ``(h, c)``. The formula is that of :class:`LSTM`.

    Args:
        input_size: size of the input.
        hidden_size: size of the state.
        bias: whether there are biases.
        device: of the parameters.
        dtype: of the parameters.

    Shape:
        input: ``(N, input_size)`` or ``(input_size,)``. Floating-point.
        hx: the pair ``(h, c)``, each ``(N, hidden_size)`` or ``(hidden_size,)``; zero if not given.
        output: the pair ``(h', c')``.

    Examples:
        >>> cell = nn.LSTMCell(3, 4)
        >>> h, c = cell(taeda.randn(2, 3))
        >>> h.shape, c.shape
        (taeda.Size([2, 4]), taeda.Size([2, 4]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        batched = input.dim() == 2
        if hx is None or not batched or hx[0].dim() != 2 or hx[1].dim() != 2:
            input, *hx = self._inputs(input, None if hx is None else tuple(hx), 2)  # type: ignore[assignment]
        h, c = hx  # type: ignore[misc]
        h, c = cell("LSTM", *self._gates(input, h, c), h, c)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a GRU: ``h'`` of ``x`` and ``h``. The formula is that of :class:`GRU`.

    Args:
        input_size: size of the input.
        hidden_size: size of the state.
        bias: whether there are biases.
        device: of the parameters.
        dtype: of the parameters.

    Examples:
        >>> nn.GRUCell(3, 4)(taeda.randn(2, 3)).shape
        taeda.Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        batched = input.dim() == 2
        if hx is None or not batched or hx.dim() != 2:
            input, hx = self._inputs(input, None if hx is None else (hx,), 1)
        (result,) = cell("GRU", *self._gates(input, hx), hx, None)
        return result if batched else result.squeeze(0)

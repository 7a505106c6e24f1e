"""The functions under the layers by the names they have in PyTorch's own namespace: ``torch.lstm``,
``torch.native_batch_norm``, ``torch.grid_sampler``, ``torch.embedding_bag`` and their like.

They differ from the functions of ``nn.functional`` only in their arguments: numbers for modes, all parameters of a
network in one list, statistics among the results.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import taeda

from .. import _core
from .._typed import Tensor
from ..ops import attention as _attention
from ..ops import batch_norm as _batch_norm
from ..ops import interpolation as _interpolation
from ..ops import normalization as _normalization
from ..ops import pooling as _pooling
from ..ops.conv import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from ..ops.recurrent import cell as _cell
from ..ops.table import checked, composite, expect_tensors, is_index, traits
from . import functional as F
from .modules._recurrent import recurrent as _recurrent


def _listed(function: Any) -> Any:
    """A function that modes see before its ops, and whose arguments have NumPy's names too."""
    return _core.Composite(function, **checked(function))


# ---- recurrent networks ---------------------------------------------------------------------------------------------


_PARAMETERS = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")


def _network(mode: str, args: tuple, named: dict[str, Any]) -> tuple[Tensor, Any]:
    """``(input, hx, params, ..., batch_first)`` or ``(data, batch_sizes, hx, params, ...)`` of a packed sequence."""
    names = "input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first"
    if named:
        named = {"input" if name in ("x", "a", "x1") else name: value for name, value in named.items()}
        order = (
            ("data", "batch_sizes", *_PARAMETERS) if "data" in named or "batch_sizes" in named else names.split(", ")
        )
        given = dict(zip(order, args, strict=False)) | named
        args = tuple(given[name] for name in order if name in given)
    if len(args) != 9:
        raise TypeError(f"{mode.lower()}() takes 9 arguments, {names}, but {len(args)} were given")
    if isinstance(args[3], bool):
        x, hx, params, biases, layers, dropout, train, bidirectional, batch_first = args
        sizes = None
    else:
        x, batch_sizes, hx, params, biases, layers, dropout, train, bidirectional = args
        expect_tensors(mode.lower(), input=x, batch_sizes=batch_sizes)
        sizes, batch_first = batch_sizes.tolist(), False
    expect_tensors(mode.lower(), input=x, **dict(zip(("h", "c"), hx if mode == "LSTM" else (hx,), strict=False)))
    if not isinstance(params, (list, tuple)) or not is_index(layers) or layers < 1:
        raise TypeError(
            f"{mode.lower()}(): expected params, a list of the parameters of {layers} layers; arguments are {names}"
        )
    layers = int(layers)
    parts = layers * (2 if bidirectional else 1)
    count = len(params) // parts
    if len(params) < parts * (4 if biases else 2):  # with projections more
        raise RuntimeError(
            f"{mode.lower()}: got an incorrect number of RNN parameters: expected at least "
            f"{parts * (4 if biases else 2)} for {layers} layers, got {len(params)}"
        )
    weights = [list(params[i : i + count]) for i in range(0, len(params), count)]
    return _recurrent(mode, x, hx, weights, biases, layers, dropout, train, bidirectional, batch_first, sizes)


@traits(random="noise")
def lstm(*args: Any, **named: Any) -> tuple[Tensor, Tensor, Tensor]:
    """A long short-term memory network (Hochreiter and Schmidhuber 1997) from its parameters. :class:`taeda.nn.LSTM`
    keeps them.

    Args:
        args: ``(input, (h, c), params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`` or, for a
            packed sequence, ``(data, batch_sizes, (h, c), params, has_biases, num_layers, dropout, train,
            bidirectional)``; ``params`` are those of :class:`taeda.nn.LSTM` in order.
        named: the same by name.
    Returns:
        The last layer's output, and the final h and c, of the dtype of ``input``.
    Raises:
        RuntimeError: the sizes do not fit, or the dtypes differ.
    Examples:
        >>> net, x, state = taeda.nn.LSTM(4, 8), taeda.zeros(5, 3, 4), taeda.zeros(1, 3, 8)
        >>> output, h, c = taeda.lstm(x, (state, state), list(net.parameters()), True, 1, 0.0, False, False, False)
        >>> output.shape, h.shape
        (taeda.Size([5, 3, 8]), taeda.Size([1, 3, 8]))
    """
    out, (h, c) = _network("LSTM", args, named)
    return out, h, c


def _of_one_state(mode: str, layer: str, what: str) -> Any:
    """The function of a network with one state; ``what`` says which."""

    @traits(random="noise")
    def network(*args: Any, **named: Any) -> tuple[Tensor, Tensor]:
        return _network(mode, args, named)

    network.__name__ = network.__qualname__ = name = mode.lower()
    network.__doc__ = f"""{what}, from its parameters. :class:`taeda.nn.{layer}` keeps them.

    Args:
        args: as of :func:`lstm`, with one state ``h`` in place of ``(h, c)``.
        named: the same by name.
    Returns:
        The last layer's output, and the final h.
    Examples:
        >>> net, x, state = taeda.nn.{layer}(4, 8), taeda.zeros(5, 3, 4), taeda.zeros(1, 3, 8)
        >>> output, h = taeda.{name}(x, state, list(net.parameters()), True, 1, 0.0, False, False, False)
        >>> output.shape, h.shape
        (taeda.Size([5, 3, 8]), taeda.Size([1, 3, 8]))
    """
    return network


gru = _of_one_state("GRU", "GRU", "A gated recurrent network (Cho et al. 2014)")
rnn_tanh, rnn_relu = (
    _of_one_state(f"RNN_{f.upper()}", "RNN", f"An Elman network, ``h' = {f}(w_ih @ x + b_ih + w_hh @ h + b_hh)``")
    for f in ("tanh", "relu")
)


def _step(mode: str, input: Tensor, h: Tensor, c: Tensor | None, w_ih, w_hh, b_ih, b_hh) -> tuple[Tensor, ...]:
    return _cell(mode, F.linear(input, w_ih, b_ih), F.linear(h, w_hh, b_hh), h, c)


@_listed
def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """One step of a long short-term memory network: ``i, f, g, o`` are the four parts of ``w_ih @ x + b_ih + w_hh @ h +
    b_hh``; ``c' = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and ``h' = sigmoid(o) * tanh(c')``.

    Args:
        input: ``(batch, inputs)``.
        hx: ``(h, c)``, each ``(batch, hidden)``.
        w_ih: ``(4 * hidden, inputs)``.
        w_hh: ``(4 * hidden, hidden)``.
        b_ih: ``(4 * hidden,)`` or None.
        b_hh: ``(4 * hidden,)`` or None.
    Returns:
        The new ``h`` and ``c``, each ``(batch, hidden)``, of the dtype of ``input``.
    Raises:
        RuntimeError: the sizes do not fit, or the dtypes differ.
    Examples:
        >>> h = c = taeda.zeros(1, 2)
        >>> h, c = taeda.lstm_cell(taeda.ones(1, 3), (h, c), taeda.ones(8, 3), taeda.ones(8, 2))
        >>> h.shape, c.shape
        (taeda.Size([1, 2]), taeda.Size([1, 2]))
    """
    h, c = _step("LSTM", input, hx[0], hx[1], w_ih, w_hh, b_ih, b_hh)
    return h, c


@_listed
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a gated recurrent network: with ``r, z, n`` the three parts of ``w_ih @ x + b_ih`` and of ``w_hh @ h
    + b_hh``, ``h' = (1 - sigmoid(z + z')) * tanh(n + sigmoid(r + r') * n') + sigmoid(z + z') * h``.

    Args:
        input: ``(batch, inputs)``.
        hx: ``(batch, hidden)``.
        w_ih: ``(3 * hidden, inputs)``.
        w_hh: ``(3 * hidden, hidden)``.
        b_ih: ``(3 * hidden,)`` or None.
        b_hh: ``(3 * hidden,)`` or None.
    Returns:
        The new state, ``(batch, hidden)``, of the dtype of ``input``.
    Raises:
        RuntimeError: the sizes do not fit, or the dtypes differ.
    Examples:
        >>> taeda.gru_cell(taeda.ones(1, 3), taeda.zeros(1, 2), taeda.ones(6, 3), taeda.ones(6, 2)).shape
        taeda.Size([1, 2])
    """
    return _step("GRU", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


@_listed
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of an Elman network: ``tanh(w_ih @ x + b_ih + w_hh @ h + b_hh)``. The rest as of :func:`gru_cell`.

    Args:
        w_ih: ``(hidden, inputs)``.
        w_hh: ``(hidden, hidden)``.
        b_ih: ``(hidden,)`` or None.
        b_hh: ``(hidden,)`` or None.

    Returns:
        The new state, ``(batch, hidden)``, of the dtype of ``input``.

    Raises:
        RuntimeError: the sizes do not fit, or the dtypes differ.

    Examples:
        >>> taeda.rnn_tanh_cell(taeda.ones(1, 1), taeda.zeros(1, 2), taeda.tensor([[0.5], [1.0]]), taeda.eye(2))
        tensor([[0.4621, 0.7616]])
    """
    return _step("RNN_TANH", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


@_listed
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of an Elman network: ``relu(w_ih @ x + b_ih + w_hh @ h + b_hh)``. Arguments as of :func:`rnn_tanh_cell`.

    Returns:
        The new state, ``(batch, hidden)``, of the dtype of ``input``.

    Raises:
        RuntimeError: the sizes do not fit, or the dtypes differ.

    Examples:
        >>> taeda.rnn_relu_cell(taeda.ones(1, 1), taeda.zeros(1, 2), taeda.tensor([[0.5], [-1.0]]), taeda.eye(2))
        tensor([[0.5000, 0.0000]])
    """
    return _step("RNN_RELU", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


# ---- normalisation --------------------------------------------------------------------------------------------------


@composite(method=False, out="same", writes=_batch_norm._moves)
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """:func:`taeda.batch_norm`, with the batch's mean and inverse deviation per channel.

    Args:
        input: ``(N, C, *)``, floating point.
        weight: a factor per channel, or None.
        bias: what is added per channel, or None.
        running_mean: ``(C,)``, moved towards the mean of the batch, or None.
        running_var: ``(C,)``, moved towards its variance, or None.
        training: whether the batch's own mean and variance are used.
        momentum: how far the running ones move.
        eps: added to the variance.
    Returns:
        ``(result, mean, inverse deviation)``; the latter two are ``(C,)``, and empty where not ``training``.
    Examples:
        >>> x = taeda.tensor([[1.0], [3.0]])
        >>> y, mean, inverse = taeda.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)
        >>> y.flatten(), mean, inverse
        (tensor([-1.,  1.]), tensor([2.]), tensor([1.]))
    """
    _normalization._require_float("native_batch_norm", input)
    y, mean, rstd = _batch_norm._fused_batch_norm(
        input, weight, bias, running_mean, running_var, bool(training), momentum, eps
    )
    dtype = input.dtype if weight is None else weight.dtype
    return y, mean.detach().to(dtype), rstd.detach().to(dtype)


@composite(method=False, out=True, writes=lambda args: True)
def _native_batch_norm_legit(input, weight, bias, *args):
    """:func:`native_batch_norm`; the running statistics may be left out."""
    if len(args) == 3:
        args = (None, None, *args)
    return native_batch_norm(input, weight, bias, *args)


@composite(method=False, out=True)
def _native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    """:func:`native_batch_norm` by the running statistics."""
    return native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@composite(method=False, out=True, writes=lambda running_mean: running_mean is not None)
def _batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    """:func:`native_batch_norm` in training, and an empty tensor where other libraries keep room for the backward
    pass."""
    results = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*results, taeda.empty(0, dtype=taeda.uint8))


@composite(method=False, out=True)
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """:func:`taeda.group_norm`, with the mean and the inverse deviation of each group.
    Arguments as of :func:`native_batch_norm`.

    Args:
        N: the size of the batch.
        C: the number of channels.
        HxW: the number of positions.
        group: the number of groups.
    Returns:
        The result in the sizes of ``input``; mean and inverse deviation, ``(N, group)``.
    Examples:
        >>> x = taeda.tensor([[[1.0], [3.0]]])
        >>> taeda.native_group_norm(x, None, None, 1, 2, 1, 1, 0.0)[1]
        tensor([[2.]])
    """
    out = taeda.group_norm(input, group, weight, bias, eps)
    x = input.reshape(N, group, C // group * HxW)
    var, mean = taeda.var_mean(x.to(_normalization._working(x.dtype)), -1, correction=0)
    return out, mean.to(input.dtype), (var + eps).rsqrt().to(input.dtype)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """``g v / |v|``, the norm over all dimensions but ``dim`` (Salimans and Kingma 2016)."""
    return v * (g / taeda.norm_except_dim(v, 2, dim))


# ---- softmax --------------------------------------------------------------------------------------------------------


@composite(method=False, out=True)
def _softmax(input, dim, half_to_float):
    """:func:`taeda.softmax`; ``half_to_float`` is for other devices."""
    _whole(half_to_float, "softmax")
    return taeda.softmax(input, dim)


@composite(method=False, out=True)
def _log_softmax(input, dim, half_to_float):
    """:func:`taeda.log_softmax`; ``half_to_float`` is for other devices."""
    _whole(half_to_float, "log_softmax")
    return taeda.log_softmax(input, dim)


def _whole(half_to_float: bool, name: str) -> None:
    if half_to_float:
        raise RuntimeError(f"_{name}: half_to_float is not supported on the CPU; give {name}() a dtype instead")


def _with_total(input, target, weight, reduction: int, ignore_index: int) -> tuple[Tensor, Tensor]:
    """A loss by class, and the sum of the weights that a mean divides by; 0 where the loss is no mean or sum."""
    result = F.nll_loss(input, target, weight, None, ignore_index, None, ("none", "mean", "sum")[reduction])
    if reduction == 0:
        return result, input.new_zeros(())
    kept = target != ignore_index
    if weight is None:
        return result, kept.sum().to(input.dtype)
    return result, (weight.detach()[target * kept] * kept).sum()


@composite(method=False, out=False)
def nll_loss_forward(input, target, weight, reduction: int, ignore_index: int):
    """:func:`nn.functional.nll_loss` of ``(N, C)``, with the sum of the weights."""
    return _with_total(input, target, weight, reduction, ignore_index)


@composite(method=False, out=False)
def nll_loss2d_forward(input, target, weight, reduction: int, ignore_index: int):
    """:func:`nn.functional.nll_loss` of ``(N, C, H, W)``, with the sum of the weights."""
    return _with_total(input, target, weight, reduction, ignore_index)


@composite(method=False, out=False, random="noise")
def _scaled_dot_product_flash_attention_for_cpu(
    query, key, value, dropout_p: Any = 0.0, is_causal=False, *, attn_mask=None, scale=None
):
    """:func:`nn.functional.scaled_dot_product_attention`, with the logarithm of each row's sum of exponentials."""
    return _attention.with_sums(query, key, value, attn_mask, dropout_p, is_causal, scale)


@composite(method=False)
def _safe_softmax(input, dim, dtype=None):
    """:func:`taeda.softmax`, 0 rather than NaN where a row is all ``-inf``."""
    nothing = (input == float("-inf")).all(dim, keepdim=True)
    return taeda.softmax(input.masked_fill(nothing, 0.0), dim, dtype).masked_fill(nothing, 0.0)


@composite(method=False)
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of softmax by its input, from the gradient by its ``output`` and that."""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)


@composite(method=False)
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of log_softmax by its input, from the gradient by its ``output`` and that."""
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


# ---- dropout, embedding ---------------------------------------------------------------------------------------------


@composite(method=False, out=True, canonical=True, random="noise")
def native_dropout(input, p, train: Any = True):
    """:func:`dropout`, with a mask of the elements kept.

    Args:
        input: floating point, any sizes.
        p: the probability that an element is dropped.
        train: whether to drop anything; None is False.
    Returns:
        ``(result, mask)``, of the sizes of ``input``; ``mask`` is ``bool``.
    Examples:
        >>> result, mask = taeda.native_dropout(taeda.ones(3), 0.5, False)
        >>> result, mask
        (tensor([1., 1., 1.]), tensor([True, True, True]))
    """
    p = float(p)
    if train is False or p == 0 or input.numel() == 0:
        return input.clone(), taeda.ones_like(input, dtype=taeda.bool)
    if not input.is_floating_point() and not input.is_complex():
        raise RuntimeError(f"native_dropout: result type Float can't be cast to {input.dtype}: convert the input first")
    if p == 1:
        return taeda.zeros_like(input), taeda.zeros_like(input, dtype=taeda.bool)
    mask = taeda.empty_like(input, dtype=taeda.bool).bernoulli_(1 - p)
    return input * mask * (1 / (1 - p)), mask


@composite(method=False)
def native_dropout_backward(grad_output, mask, scale):
    """The gradient of :func:`native_dropout` by its input: the kept elements, times ``scale``."""
    return grad_output * mask * scale


@composite(method=False, out=False)
def embedding_bag(
    weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
    include_last_offset=False, padding_idx=None,
):  # fmt: skip
    """:func:`taeda.nn.functional.embedding_bag`, with the bag of each index, the bags' sizes and the maxima's places.

    Args:
        weight: ``(rows, width)``.
        indices: a vector that ``offsets`` cuts into bags.
        offsets: a vector: where each bag begins.
        scale_grad_by_freq: divide a row's gradient by how often it was asked for.
        mode: 0 for sums, 1 for means, 2 for maxima.
        sparse: make the gradient of ``weight`` sparse.
        per_sample_weights: what each index counts, for sums, or None.
        include_last_offset: whether ``offsets`` ends with the number of indices.
        padding_idx: an index that counts as nothing, or None.
    Returns:
        ``(bags, width)``, and ``int64`` vectors of one element per index and per bag; the last is empty but for maxima.
    Examples:
        >>> weight = taeda.tensor([[1.0, 1.0], [10.0, 10.0]])
        >>> taeda.embedding_bag(weight, taeda.tensor([0, 1, 1]), taeda.tensor([0, 2]))[0]
        tensor([[11., 11.],
                [10., 10.]])
    """
    if mode not in (0, 1, 2):
        raise RuntimeError(f"embedding_bag: expected mode to be 0 (sum), 1 (mean) or 2 (max), got {mode}")
    out = F.embedding_bag(
        indices, weight, offsets, None, 2, scale_grad_by_freq, ("sum", "mean", "max")[mode], sparse,
        per_sample_weights, include_last_offset, padding_idx,
    )  # fmt: skip
    edges = offsets.to(taeda.int64)
    ends = taeda.cat([edges[1:], edges.new_full((1,), indices.numel())])
    sizes = ends - edges
    if include_last_offset:
        sizes = sizes[:-1]
    bag = taeda.repeat_interleave(sizes)
    if padding_idx is not None:
        kept = indices != padding_idx % weight.shape[0]
        sizes = bag[kept].bincount(minlength=sizes.numel())
    return out, bag, sizes, _places(weight, indices, bag, sizes, out) if mode == 2 else sizes.new_zeros(sizes.shape)


def _places(weight: Tensor, indices: Tensor, bag: Tensor, sizes: Tensor, out: Tensor) -> Tensor:
    """For each maximum of a bag, the row of ``weight`` that it comes from; 0 for an empty bag."""
    with taeda.no_grad():
        found = taeda.where(weight[indices] == out[bag], indices.unsqueeze(1), weight.shape[0])
        first = out.new_full(out.shape, weight.shape[0], dtype=taeda.int64)
        first = first.scatter_reduce(0, bag.unsqueeze(1).expand_as(found), found, "amin")
        return first.masked_fill(first == weight.shape[0], 0)


# ---- normalisation, losses -------------------------------------------------------------------------------------------


@_listed
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """``(input - mean) / sqrt(var + eps) * weight + bias`` per channel: :func:`taeda.nn.functional.batch_norm` with its
    arguments in another order (Ioffe and Szegedy 2015, "Batch Normalization").
    Arguments as of :func:`native_batch_norm`.

    Args:
        running_mean: ``(C,)``, moved towards the mean of the batch in training, or None.
        running_var: ``(C,)``, moved towards its variance in training, or None.
    Returns:
        The sizes of ``input``.
    Examples:
        >>> x = taeda.tensor([[1.0], [3.0]])
        >>> taeda.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
        tensor([[-1.0000],
                [ 1.0000]])
    """
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@_listed
def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """``(input - mean) / sqrt(var + eps) * weight + bias`` per channel of each example:
    :func:`taeda.nn.functional.instance_norm` with its arguments in another order (Ulyanov et al. 2016, "Instance
    Normalization"). The rest as of :func:`batch_norm`.

    Args:
        running_mean: ``(C,)`` or None.
        running_var: ``(C,)`` or None.
        use_input_stats: whether the examples' own mean and variance are used, rather than the running ones.
    Examples:
        >>> x = taeda.tensor([[[1.0, 3.0], [10.0, 14.0]]])
        >>> taeda.instance_norm(x, None, None, None, None, True, 0.1, 0.0, False)
        tensor([[[-1.,  1.],
                 [-1.,  1.]]])
    """
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def _loss(name: str, parameters: str, call: str, result: str) -> Any:
    """The loss of ``nn.functional`` of that name, whose reduction is a number, with PyTorch's other list of parameters;
    ``call`` and its ``result`` are an example."""
    function, signature = getattr(F, name), inspect.signature(eval(f"lambda {parameters}: None"))

    def loss(*args: Any, **kwargs: Any) -> Tensor:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        reduction = given.arguments["reduction"]
        if reduction not in (0, 1, 2):
            raise ValueError(f"{name}: expected reduction to be 0 (none), 1 (mean) or 2 (sum), got {reduction!r}")
        return function(**{**given.arguments, "reduction": ("none", "mean", "sum")[reduction]})

    loss.__name__ = loss.__qualname__ = name
    loss.__signature__ = signature  # type: ignore[attr-defined]
    loss.__doc__ = f"""
    :func:`taeda.nn.functional.{name}` with a number as ``reduction``. Arguments as of
    :func:`taeda.nn.functional.{name}`.

    Args:
        reduction: 0 for none (the default here, as in PyTorch), 1 for the mean, 2 for the sum.
    Returns:
        One loss per example, or without dimensions.
    Raises:
        ValueError: ``reduction`` is another number.
    Examples:
        >>> taeda.{name}({call})
        {result}
    """
    return _core.Composite(loss, params=(*signature.parameters,), defaults=(None,) * len(signature.parameters))


_LOSSES = (
    ("binary_cross_entropy_with_logits", "input, target, weight=None, pos_weight=None, reduction=0",
     "taeda.zeros(2), taeda.ones(2), reduction=1", "tensor(0.6931)"),
    ("cosine_embedding_loss", "input1, input2, target, margin=0.0, reduction=0",
     "taeda.eye(2), taeda.tensor([[1.0, 0.0], [1.0, 0.0]]), taeda.tensor([1, 1])", "tensor([0., 1.])"),
    ("ctc_loss", "log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False",
     "taeda.full((2, 1, 2), 0.5).log(), taeda.tensor([[1]]), taeda.tensor([2]), taeda.tensor([1])", "tensor([0.2877])"),
    ("hinge_embedding_loss", "input, target, margin=1.0, reduction=0",
     "taeda.tensor([0.25, 0.25]), taeda.tensor([1.0, -1.0])", "tensor([0.2500, 0.7500])"),
    ("kl_div", "input, target, reduction=0, log_target=False",
     "taeda.tensor([0.5, 0.5]).log(), taeda.tensor([1.0, 0.0]), reduction=2", "tensor(0.6931)"),
    ("margin_ranking_loss", "input1, input2, target, margin=0.0, reduction=0",
     "taeda.tensor([1.0]), taeda.tensor([3.0]), taeda.tensor([1.0])", "tensor([2.])"),
    ("poisson_nll_loss", "input, target, log_input, full, eps, reduction",
     "taeda.zeros(2), taeda.tensor([0.0, 3.0]), True, False, 1e-8, 0", "tensor([1., 1.])"),
    ("triplet_margin_loss", "anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=0",
     "taeda.zeros(1, 2), taeda.tensor([[3.0, 4.0]]), taeda.tensor([[0.0, 1.0]])", "tensor([5.0000])"),
)  # fmt: skip
globals().update({example[0]: _loss(*example) for example in _LOSSES})


# ---- sampling, pooling, convolution ----------------------------------------------------------------------------------


@_listed
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Values of images at the points of a grid: :func:`taeda.nn.functional.grid_sample` with numbers for its modes.

    Args:
        input: ``(N, C, H, W)`` or ``(N, C, D, H, W)``.
        grid: ``(N, H_out, W_out, 2)`` or ``(N, D_out, H_out, W_out, 3)``: points ``(x, y)`` or ``(x, y, z)`` in [-1,
            1].
        interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic.
        padding_mode: 0 zeros, 1 border, 2 reflection.
        align_corners: whether -1 and 1 are the centres of the outer pixels, rather than their edges.
    Returns:
        ``(N, C, H_out, W_out)`` or ``(N, C, D_out, H_out, W_out)``, of the dtype of ``input``.
    Raises:
        RuntimeError: the dtypes differ, or the last dimension of ``grid`` has not a size for each dimension of the
            images.
        NotImplementedError: the dtype is no floating-point one.
    Examples:
        >>> image, centre = taeda.tensor([[[[0.0, 1.0], [2.0, 3.0]]]]), taeda.zeros(1, 1, 1, 2)
        >>> taeda.grid_sampler(image, centre, 0, 0, False).item()
        1.5
    """
    modes = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    for value, name, known in (
        (interpolation_mode, "interpolation_mode", modes[0]),
        (padding_mode, "padding_mode", modes[1]),
    ):
        if value not in (0, 1, 2):
            raise RuntimeError(f"grid_sampler(): expected {name} to be 0, 1 or 2 for {', '.join(known)}, got {value}")
    return _interpolation.grid_sample(
        input, grid, modes[0][interpolation_mode], modes[1][padding_mode], bool(align_corners)
    )


@composite(method=False, out=True, canonical=True)
def grid_sampler_2d(input, grid, interpolation_mode: int, padding_mode: int, align_corners):
    """:func:`grid_sampler` of images ``(N, C, H, W)``. Arguments as of :func:`grid_sampler`.

    Returns:
        ``(N, C, H_out, W_out)``.
    Examples:
        >>> image, centre = taeda.tensor([[[[0.0, 1.0], [2.0, 3.0]]]]), taeda.zeros(1, 1, 1, 2)
        >>> taeda.grid_sampler_2d(image, centre, 0, 0, False).item()
        1.5
    """
    if input.dim() != 4:
        raise RuntimeError(f"grid_sampler_2d(): expected 4D input, but got input with sizes {list(input.shape)}")
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@composite(method=False, out=True)
def grid_sampler_3d(input, grid, interpolation_mode: int, padding_mode: int, align_corners):
    """:func:`grid_sampler` of volumes ``(N, C, D, H, W)``. Arguments as of :func:`grid_sampler`.

    Returns:
        ``(N, C, D_out, H_out, W_out)``.
    Examples:
        >>> taeda.grid_sampler_3d(taeda.ones(1, 1, 2, 2, 2), taeda.zeros(1, 1, 1, 1, 3), 0, 0, False).item()
        1.0
    """
    if input.dim() != 5:
        raise RuntimeError(f"grid_sampler_3d(): expected 5D input, but got input with sizes {list(input.shape)}")
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@composite(method=False, out=True)
def affine_grid_generator(theta, size, align_corners):
    """The points that :func:`taeda.grid_sampler` takes for an affine map: :func:`taeda.nn.functional.affine_grid`.

    Args:
        theta: ``(N, 2, 3)`` or ``(N, 3, 4)``: the maps.
        size: that of the images, ``(N, C, H, W)`` or ``(N, C, D, H, W)``.
        align_corners: whether -1 and 1 are the centres of the outer pixels, rather than their edges.
    Returns:
        ``(N, H, W, 2)`` or ``(N, D, H, W, 3)``.
    Examples:
        >>> identity = taeda.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> taeda.affine_grid_generator(identity, (1, 1, 2, 2), True)[0, 0]
        tensor([[-1., -1.],
                [ 1., -1.]])
    """
    return _interpolation.affine_grid(theta, size, align_corners)


@_listed
def max_pool1d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """:func:`taeda.max_pool1d`, and where each maximum was found. Arguments as of :func:`taeda.max_pool1d`.

    Returns:
        ``(values, indices)``; ``indices`` are ``int64``.
    Examples:
        >>> taeda.max_pool1d_with_indices(taeda.tensor([[1.0, 3.0, 2.0, 5.0]]), 2)
        (tensor([[3., 5.]]), tensor([[1, 3]]))
    """
    return tuple(_pooling.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True))


@composite(method=False, out=False)
def max_unpool_to(input, indices, output_size):
    """:func:`taeda.nn.functional.max_unpool2d` and its kin, told the sizes of the images instead of the windows."""
    return _pooling.unpooled("max_unpool", input, indices, tuple(output_size))


@composite(method=False, out=True, canonical=True)
def max_pool2d_with_indices_backward(grad_output, input, kernel_size, stride, padding, dilation, ceil_mode, indices):
    """The gradient of ``max_pool2d`` by its input: ``grad_output`` at the places that ``indices`` name."""
    return _pooling._max_pool_adjoint(grad_output, indices, tuple(input.shape[-2:]))


@composite(method=False, out=True)
def _upsample_bilinear2d_aa(input, output_size, align_corners, scales_h=None, scales_w=None):
    """Antialiased bilinear interpolation; ``scales`` (or ``scales_h`` and ``scales_w``) stand for the sizes' ratios."""
    return _antialiased("bilinear", input, output_size, align_corners, scales_h, scales_w)


@composite(method=False, out=True)
def _upsample_bicubic2d_aa(input, output_size, align_corners, scales_h=None, scales_w=None):
    """Antialiased bicubic interpolation. Arguments as of :func:`_upsample_bilinear2d_aa`."""
    return _antialiased("bicubic", input, output_size, align_corners, scales_h, scales_w)


def _antialiased(mode: str, input: Tensor, size: Any, align_corners: bool, height: Any, width: Any) -> Tensor:
    if isinstance(height, (list, tuple)):
        height, width = height
        if size is None:
            return F.interpolate(input, None, (height, width), mode, align_corners, False, True)
    return _interpolation.to_size(input, list(size), [height or 0.0, width or 0.0], mode, bool(align_corners), True)


@_listed
def adaptive_max_pool1d(input, output_size):
    """:func:`taeda.nn.functional.adaptive_max_pool1d`, and where each maximum was found.

    Args:
        input: ``(n, channels, w)``, or without ``n``.
        output_size: the size of the result; None keeps it.
    Returns:
        ``(values, indices)``, of size ``output_size`` in the last dimension; ``indices`` are ``int64``.
    Examples:
        >>> taeda.adaptive_max_pool1d(taeda.tensor([[1.0, 3.0, 2.0, 5.0]]), 2)
        (tensor([[3., 5.]]), tensor([[1, 3]]))
    """
    return F.adaptive_max_pool1d(input, output_size, return_indices=True)


@composite(method=False, out=True, canonical=True, native=True)
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """A convolution, or a transposed one, in as many dimensions as ``input`` has; see :func:`conv2d` and
    :func:`conv_transpose2d`.

    Args:
        input: ``(N, C, *)`` of one to three spatial dimensions.
        weight: as of :func:`taeda.conv2d`, or of :func:`taeda.conv_transpose2d` if ``transposed``.
        bias: ``(out_channels,)`` or None.
        stride: one int per spatial dimension.
        padding: one int per spatial dimension.
        dilation: one int per spatial dimension.
        transposed: whether it is a transposed convolution.
        output_padding: added to one side of the result of a transposed convolution, one int per spatial dimension.
        groups: channels are split into that many groups, each of which sees its own input alone.
    Returns:
        ``(N, out_channels, *)``.
    Raises:
        RuntimeError: sizes, dtypes or ``groups`` do not fit.
    Examples:
        >>> x, weight = taeda.ones(1, 3, 8, 8), taeda.ones(6, 3, 2, 2)
        >>> taeda.convolution(x, weight, None, (2, 2), (0, 0), (1, 1), False, (0, 0), 1).shape
        taeda.Size([1, 6, 4, 4])
    """
    n = weight.dim() - 2
    if n not in (1, 2, 3):
        raise RuntimeError(f"convolution: expected weight of 3 to 5 dimensions, got {list(weight.shape)}")
    if transposed:
        function = (conv_transpose1d, conv_transpose2d, conv_transpose3d)[n - 1]
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return (conv1d, conv2d, conv3d)[n - 1](input, weight, bias, stride, padding, dilation, groups)

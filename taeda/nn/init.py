"""First values for parameters; each function fills its tensor in place, outside the graph, and returns it.

With equal seeds the draws equal PyTorch's, so a new model has the same weights in both.
"""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

import taeda

from .. import _core
from .._typed import Tensor
from ..overrides import handle_torch_function, has_torch_function

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse",
    "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform",
    "xavier_uniform_", "zeros_",
]  # fmt: skip

_GAINS = {
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,  # found by experiment, as PyTorch has it
} | {f: 1 for f in ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that makes up for how ``nonlinearity`` shrinks a standard deviation.

    1 for linear layers, convolutions and the sigmoid, 5/3 for tanh, ``sqrt(2)`` for ReLU,
    ``sqrt(2 / (1 + negative_slope ** 2))`` for leaky ReLU, 3/4 for SELU.

    Args:
        nonlinearity: its name in ``nn.functional``, such as ``"relu"``.
        param: ``negative_slope`` of ``"leaky_relu"``; 0.01 if None.

    Returns:
        A float.

    Raises:
        ValueError: the name is unknown, or ``param`` is no number.

    Examples:
        >>> round(nn.init.calculate_gain("relu"), 4)
        1.4142
    """
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, int | float):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _overridable(function: Callable) -> Callable:
    """``function``, whose calls a mode or a subclass of Tensor is asked about. It names all arguments then."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not has_torch_function((tensor,)):
            return function(tensor, *args, **kwargs)
        given = signature.bind(tensor, *args, **kwargs)
        given.apply_defaults()
        return handle_torch_function(call, (tensor,), **given.arguments)

    return call


@_overridable
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from the uniform distribution on ``[a, b)``.

    Args:
        tensor: filled in place. Any shape, floating-point.
        a: lower bound.
        b: upper bound.
        generator: a :class:`taeda.Generator` to draw from; the global one if None.

    Returns:
        ``tensor``.

    Raises:
        NotImplementedError: ``tensor`` is of integers or bools.

    Examples:
        >>> w = nn.init.uniform_(taeda.empty(3, 5), -0.1, 0.1)
        >>> bool((w.abs() <= 0.1).all())
        True
    """
    return _drawn_uniform(tensor, a, b, generator)


@_overridable
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from the normal distribution with that mean and standard deviation.

    Args:
        tensor: filled in place. Any shape, floating-point.
        mean: the mean.
        std: the standard deviation.
        generator: a :class:`taeda.Generator` to draw from; the global one if None.

    Returns:
        ``tensor``.

    Raises:
        NotImplementedError: ``tensor`` is of integers or bools.

    Examples:
        >>> w = nn.init.normal_(taeda.empty(10_000), std=0.02)
        >>> round(w.std().item(), 2)
        0.02
    """
    return _drawn_normal(tensor, mean, std, generator)


def _drawn_uniform(tensor: Tensor, a: float, b: float, generator: Any) -> Tensor:
    previous = _core.set_grad_enabled(False)  # less than the time of a context manager's object
    try:
        return tensor.uniform_(a, b, generator=generator)
    finally:
        _core.restore_grad_mode(previous)


def _drawn_normal(tensor: Tensor, mean: float, std: float, generator: Any) -> Tensor:
    previous = _core.set_grad_enabled(False)
    try:
        return tensor.normal_(mean, std, generator=generator)
    finally:
        _core.restore_grad_mode(previous)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill with draws from the normal distribution, where those outside ``[a, b]`` are drawn again.

    Args:
        tensor: filled in place. Any shape, floating-point.
        mean: the mean before the cut.
        std: the standard deviation before the cut.
        a: lower bound.
        b: upper bound.
        generator: a :class:`taeda.Generator` to draw from; the global one if None.

    Returns:
        ``tensor``.

    Raises:
        NotImplementedError: ``tensor`` is of integers or bools.

    Examples:
        >>> w = nn.init.trunc_normal_(taeda.empty(1000))
        >>> bool((w.abs() <= 2).all())
        True
    """

    def cdf(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )
    with taeda.no_grad():
        if cdf((b - mean) / std) - cdf((a - mean) / std) > 0.3:
            return _reject_normal(tensor, mean, std, a, b, generator)
        return _reject_uniform(tensor, mean, std, a, b, generator)


def _reject_normal(tensor: Tensor, mean: float, std: float, a: float, b: float, generator) -> Tensor:
    """Draw the normals that fall outside again."""
    low, high = tensor.new_tensor(a).item(), tensor.new_tensor(b).item()
    result = tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (result < low) | (result > high)
        if not outside.any():
            return tensor.copy_(result) if result is not tensor else tensor
        result = taeda.where(outside, taeda.empty_like(result).normal_(mean, std, generator=generator), result)


def _reject_uniform(tensor: Tensor, mean: float, std: float, a: float, b: float, generator) -> Tensor:
    """Accept uniform draws with the density's probability: for intervals in a tail."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

    def log_density(x: Tensor) -> Tensor:
        return x.clone().sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)

    result = tensor.uniform_(a, b, generator=generator)
    coin = taeda.empty_like(tensor)
    pending = coin.uniform_(generator=generator).log_().gt(log_density(result))
    while pending.any():
        fresh = taeda.empty_like(tensor).uniform_(a, b, generator=generator)
        result = taeda.where(pending, fresh, result)
        refused = coin.uniform_(generator=generator).log_().gt(log_density(fresh))
        pending = taeda.where(pending, refused, pending)
    return tensor.copy_(result) if result is not tensor else tensor


@_overridable
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with ``val``.

    Args:
        tensor: filled in place. Any shape and dtype.
        val: a number.

    Returns:
        ``tensor``.

    Raises:
        RuntimeError: the dtype of ``tensor`` cannot hold ``val``.

    Examples:
        >>> nn.init.constant_(taeda.empty(3), 0.3)
        tensor([0.3000, 0.3000, 0.3000])
    """
    with taeda.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1.

    Args:
        tensor: filled in place. Any shape and dtype.

    Returns:
        ``tensor``.

    Examples:
        >>> nn.init.ones_(taeda.empty(3))
        tensor([1., 1., 1.])
    """
    with taeda.no_grad():
        return tensor.fill_(1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0.

    Args:
        tensor: filled in place. Any shape and dtype.

    Returns:
        ``tensor``.

    Examples:
        >>> layer = nn.Linear(2, 3)
        >>> nn.init.zeros_(layer.bias)
        Parameter containing:
        tensor([0., 0., 0.], requires_grad=True)
    """
    with taeda.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fill with the identity matrix, so that a linear layer passes its input on.

    Args:
        tensor: filled in place: a matrix ``(n, m)``, any dtype.

    Returns:
        ``tensor``.

    Raises:
        ValueError: it is no matrix.

    Examples:
        >>> nn.init.eye_(taeda.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with taeda.no_grad():
        return tensor.copy_(taeda.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a kernel so that the convolution passes its input on, as far as there are channels.

    Args:
        tensor: filled in place: ``(C_out, C_in, *kernel_size)``, three to five dimensions, any dtype.
        groups: number of groups of output channels, each of which passes the input on.

    Returns:
        ``tensor``.

    Raises:
        ValueError: it has other dimensions, or ``groups`` does not divide ``C_out``.

    Examples:
        >>> layer = nn.Conv1d(2, 2, 3, padding=1, bias=False)
        >>> nn.init.dirac_(layer.weight).shape
        taeda.Size([2, 2, 3])
        >>> layer(taeda.tensor([[1.0, 2.0], [3.0, 4.0]])).detach()
        tensor([[1., 2.],
                [3., 4.]])
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    centre = tuple(n // 2 for n in sizes[2:])
    with taeda.no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(per_group, sizes[1])):
                tensor[(g * per_group + d, d, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Inputs and outputs of one unit of a linear or convolution weight."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    inputs, outputs = tensor.size(1), tensor.size(0)
    field = math.prod(tensor.shape[2:]) if tensor.dim() > 2 else 1
    return inputs * field, outputs * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from the uniform distribution on ``+- gain * sqrt(6 / (fan_in + fan_out))``.

    It keeps the variance of activations and gradients from layer to layer. Source: Glorot & Bengio 2010, "Understanding
    the difficulty of training deep feedforward neural networks".

    Args:
        tensor: filled in place: ``(fan_out, fan_in)``, or a kernel, whose window counts in both. Floating-point.
        gain: a factor, as of :func:`calculate_gain`.
        generator: a :class:`taeda.Generator` to draw from; the global one if None.

    Returns:
        ``tensor``.

    Raises:
        ValueError: it has fewer than two dimensions.

    Examples:
        >>> w = nn.init.xavier_uniform_(taeda.empty(100, 50))
        >>> bool((w.abs() <= 0.2).all())  # sqrt(6 / 150)
        True
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(fan_in + fan_out)))
    return _drawn_uniform(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from the normal distribution with standard deviation ``gain * sqrt(2 / (fan_in + fan_out))``.

    Source: Glorot & Bengio 2010, "Understanding the difficulty of training deep feedforward neural networks".

    Args:
        tensor: filled in place: ``(fan_out, fan_in)``, or a kernel, whose window counts in both. Floating-point.
        gain: a factor, as of :func:`calculate_gain`.
        generator: a :class:`taeda.Generator` to draw from; the global one if None.

    Returns:
        ``tensor``.

    Raises:
        ValueError: it has fewer than two dimensions.

    Examples:
        >>> w = nn.init.xavier_normal_(taeda.empty(100, 100))
        >>> round(w.std().item(), 1)  # sqrt(2 / 200)
        0.1
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return _drawn_normal(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


@_overridable
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill with draws from the uniform distribution on ``+- gain * sqrt(3 / fan)``, for layers before ReLUs.

    Source: He et al. 2015, "Delving Deep into Rectifiers: Surpassing Human-Level Performance on ImageNet
    Classification".

    Args:
        tensor: filled in place: ``(fan_out, fan_in)``, or a kernel, whose window counts in both. Floating-point.
        a: negative slope of ``"leaky_relu"``; 0 is a ReLU.
        mode: ``"fan_in"``, which keeps the variance of activations, or ``"fan_out"``, of gradients.
        nonlinearity: what :func:`calculate_gain` gives ``gain`` for.
        generator: a :class:`taeda.Generator` to draw from; the global one if None.

    Returns:
        ``tensor``.

    Raises:
        ValueError: it has fewer than two dimensions, or a name is unknown.

    Examples:
        >>> w = nn.init.kaiming_uniform_(taeda.empty(100, 600), nonlinearity="relu")
        >>> bool((w.abs() <= 0.1).all())  # sqrt(2) * sqrt(3 / 600)
        True
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else _drawn_uniform(tensor, -math.sqrt(3.0) * std, math.sqrt(3.0) * std, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill with draws from the normal distribution with standard deviation ``gain / sqrt(fan)``, for layers before
    ReLUs.

    Source: He et al. 2015, "Delving Deep into Rectifiers: Surpassing Human-Level Performance on ImageNet
    Classification".

    Args:
        tensor: filled in place: ``(fan_out, fan_in)``, or a kernel, whose window counts in both. Floating-point.
        a: negative slope of ``"leaky_relu"``; 0 is a ReLU.
        mode: ``"fan_in"``, which keeps the variance of activations, or ``"fan_out"``, of gradients.
        nonlinearity: what :func:`calculate_gain` gives ``gain`` for.
        generator: a :class:`taeda.Generator` to draw from; the global one if None.

    Returns:
        ``tensor``.

    Raises:
        ValueError: it has fewer than two dimensions, or a name is unknown.

    Examples:
        >>> w = nn.init.kaiming_normal_(taeda.empty(100, 200), nonlinearity="relu")
        >>> round(w.std().item(), 1)  # sqrt(2 / 200)
        0.1
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else _drawn_normal(tensor, 0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with an orthogonal matrix, or orthogonal rows or columns, drawn uniformly among them (Mezzadri 2006).

    It keeps the length of vectors that it multiplies. Source: Saxe et al. 2013, "Exact solutions to the nonlinear
    dynamics of learning in deep linear neural networks".

    Args:
        tensor: filled in place: ``(n, *)``, whose further dimensions count as columns. Floating-point.
        gain: a factor of the result.
        generator: a :class:`taeda.Generator` to draw from; the global one if None.

    Returns:
        ``tensor``.

    Raises:
        ValueError: it has fewer than two dimensions.

    Examples:
        >>> w = nn.init.orthogonal_(taeda.empty(3, 5))
        >>> bool(taeda.allclose(w @ w.T, taeda.eye(3), atol=1e-6))
        True
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with taeda.no_grad():
        drawn = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
        q, r = taeda.linalg.qr(drawn.t() if rows < cols else drawn)
        q *= r.diagonal().sign()  # without the signs the distribution would depend on the algorithm of the QR
        return tensor.copy_((q.t() if rows < cols else q).reshape(tensor.shape)).mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill with draws from the normal distribution, with a part of each column zero (Martens 2010).

    Args:
        tensor: filled in place: a matrix ``(n, m)``. Floating-point.
        sparsity: part of the elements of each column that is zero, rounded up.
        std: standard deviation of the others.
        generator: a :class:`taeda.Generator` to draw them from; the global one if None.

    Returns:
        ``tensor``.

    Raises:
        ValueError: it is no matrix.

    Examples:
        >>> w = nn.init.sparse_(taeda.empty(10, 3), sparsity=0.2)
        >>> (w == 0).sum(0)
        tensor([2, 2, 2])
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with taeda.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[taeda.randperm(rows)[:zeros], col] = 0
    return tensor


def _older(function: Callable) -> Callable:
    """The name without the underscore, which PyTorch keeps with a warning."""
    name = function.__name__[:-1]

    def older(*args, **kwargs):
        warnings.warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    older.__name__ = name
    older.__doc__ = f"Older name of :func:`{name}_`."
    return older


uniform = _older(uniform_)
normal = _older(normal_)
constant = _older(constant_)
eye = _older(eye_)
dirac = _older(dirac_)
xavier_uniform = _older(xavier_uniform_)
xavier_normal = _older(xavier_normal_)
kaiming_uniform = _older(kaiming_uniform_)
kaiming_normal = _older(kaiming_normal_)
orthogonal = _older(orthogonal_)
sparse = _older(sparse_)

"""Random numbers: tensors filled with a distribution, samples, permutations and dropout, in PyTorch's CPU streams.

``_core/random.pyx`` makes the numbers. An op fills a tensor in the order of its memory, as PyTorch does, so equal seeds
and calls give equal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor, factories
from .._core import sampling as core
from .._core import tensor as core_tensor
from .._core.callbacks import callbacks
from .._core.factories import finish
from .._core.nearest import nearest
from .out import warn_resized
from .reduction import extent
from .table import OPS, _make, _register, composite, primitive

#: The largest integer up to which every integer is a value of the dtype, and its smallest value.
_INTEGER_RANGE = {
    "bool": (0, 1), "uint8": (0, 2**8 - 1), "int8": (-(2**7), 2**7 - 1), "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "uint16": (0, 2**16 - 1), "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1), "float16": (-(2**11), 2**11), "bfloat16": (-(2**8), 2**8), "float32": (-(2**24), 2**24),
    "float64": (-(2**53), 2**53),
}  # fmt: skip
_FLOAT_MAX = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}
_WIDE = 2**28  # from this range on, an integer takes two words


def _fills(function: Callable) -> Any:
    """Declare an in-place op whose body overwrites its first argument. The gradient of the old values is 0.

    Some have a body in ``_core/sampling.pyx`` that does the common case and leaves the others to ``function``.
    """
    name = function.__name__
    core.SLOW[name] = function
    op = _make(
        function, "mutates", getattr(core, name, None), function.__name__, inplace=True,
        traits={"also": {"from": "from_"}, "random": True},
    )  # fmt: skip
    op.vjp(input=lambda g: g.new_zeros(g.shape))
    _register(op.name, op, True)
    return op


def _check_memory(name: str, input: Tensor) -> None:
    """Refuse a tensor in which several elements are one place in memory."""
    if any(stride == 0 and size > 1 for size, stride in zip(input.shape, input.stride(), strict=True)):
        raise RuntimeError(
            f"{name}: unsupported operation: more than one element of the written-to tensor refers to a single memory "
            f"location (sizes {tuple(input.shape)}, strides {input.stride()}); clone() the tensor first"
        )


def _fill(name: str, kernel: str, input: Tensor, a: Any, b: Any, generator: Any) -> None:
    if not input.is_contiguous():
        _check_memory(name, input)
    core.fill(input, kernel, a, b, generator)


def _parts(input: Tensor) -> Tensor:
    """The real and imaginary parts of a complex tensor, as a real one over the same memory."""
    real = input.dtype.to_real()
    strides = (*(2 * s for s in input.stride()), 1)
    return _core.reinterpret(input, real, (*input.shape, 2), strides)


# ---- in place --------------------------------------------------------------------------------------------------------


@_fills
def uniform_(input, from_=0.0, to=1.0, *, generator=None):
    """Fills ``input`` with random numbers, uniform in [from, to), in place.

    Args:
        input: floating point or complex, any sizes.
        from_: the smallest number (``from`` by name).
        to: the bound above.
    Returns:
        ``input``.
    Raises:
        RuntimeError: ``from`` is above ``to``, or ``input`` is of integers.
    Examples:
        >>> x = taeda.empty(1000).uniform_(-1.0, 1.0)
        >>> bool(x.min() >= -1), bool(x.max() < 1)
        (True, True)
    """
    dtype = input.dtype
    if dtype.is_complex:
        input = _parts(input)
        dtype = input.dtype
    if not dtype.is_floating_point:
        raise NotImplementedError(f"uniform_: expected a floating-point tensor, got {dtype}")
    low, high = float(from_), float(to)
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_} > to={to}")
    if high - low > _FLOAT_MAX.get(dtype.name, 1.7976931348623157e308):
        raise RuntimeError(f"uniform_ expects to-from to be a value of {dtype}, but found from={from_} and to={to}")
    _fill("uniform_", "uniform", input, low, high, generator)


def _normal(input: Tensor, mean: float, std: float, generator: Any) -> None:
    dtype = input.dtype
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if dtype.is_complex:
        if isinstance(mean, complex):
            raise NotImplementedError(
                "normal_: expected a real mean for a complex tensor; add the complex mean afterwards"
            )
        input = _parts(input)
        std = std / math.sqrt(2)
    elif not dtype.is_floating_point:
        if not input.numel():
            return
        raise NotImplementedError(f"normal_: expected a floating-point tensor, got {dtype}")
    if not input.is_contiguous():
        _check_memory("normal_", input)
    core.fill_normal(input, mean, std, generator)


@_fills
def normal_(input, mean=0.0, std=1.0, *, generator=None):
    """Fills ``input`` with random normal numbers, in place: ``mean + std * z``. Half of the variance of a complex
    number is in each part.

    Args:
        input: floating point or complex, any sizes.
        mean: a number.
        std: a number, not negative.
    Returns:
        ``input``.
    Raises:
        RuntimeError: ``std`` is negative, or ``input`` is of integers.
    Examples:
        >>> x = taeda.empty(10000).normal_(5.0, 2.0)
        >>> bool(4.9 < x.mean() < 5.1), bool(1.9 < x.std() < 2.1)
        (True, True)
    """
    _normal(input, mean, std, generator)


@_fills
def log_normal_(input, mean=1.0, std=2.0, *, generator=None):
    """Fills ``input`` with random numbers whose logarithm is normal, in place: ``exp(mean + std * z)``.

    Args:
        input: floating point, any sizes.
        mean: of the logarithm.
        std: of the logarithm, positive.
    Returns:
        ``input``.
    Raises:
        RuntimeError: ``std`` is not positive, or ``input`` is of integers.
    Examples:
        >>> taeda.empty(1000).log_normal_().min() > 0
        tensor(True)
    """
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"log_normal_: expected a floating-point tensor, got {input.dtype}")
    if not input.is_contiguous():
        _check_memory("log_normal_", input)
    core.fill_normal(input, mean, std, generator, True)


def _integers(name: str, input: Tensor, low: int, high: int, generator: Any) -> None:
    """Uniform integers in [low, high)."""
    least: float
    most: float
    least, most = _INTEGER_RANGE.get(input.dtype.name, (0, 0))
    if input.dtype.is_complex:
        raise NotImplementedError(f"{name}: expected a real tensor, got {input.dtype}")
    if low >= high:
        raise RuntimeError(f"{name} expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if input.dtype.is_floating_point:
        least, most = -math.inf if input.dtype.name != "float16" else -65504, math.inf
        most = 65504 if input.dtype.name == "float16" else most
    if low < least or low > most:
        raise RuntimeError(
            f"from is out of bounds for {input.dtype}: {name} got from={low}, expected {least} to {most}"
        )
    if high - 1 > most:
        raise RuntimeError(
            f"to - 1 is out of bounds for {input.dtype}: {name} got to={high}, expected at most {most + 1}"
        )
    span = high - low
    if span == 2**64:  # all bits are random: PyTorch adds nothing
        low = 0
    if span < _WIDE:
        _fill(name, "integers", input, low, span, generator)
    else:
        _fill(name, "wide_integers", input, _signed(low), _signed(span), generator)


def _signed(x: int) -> int:
    """The low 64 bits of ``x``, as an int64."""
    return (x + 2**63) % 2**64 - 2**63


@_fills
def random_(input, from_=None, to: Any = ..., *, generator=None):
    """Fills ``input`` with random integers, uniform, in place: ``random_(to)`` in [0, to), ``random_(from, to)`` in
    [from, to).

    ``random_()`` takes all values of the dtype that are not negative (of a float dtype, the integers that it holds
    exactly), ``random_(from, None)`` all from there on.

    Args:
        from_: the smallest number, or ``to`` where that is all.
        to: the bound above, which is not drawn.
    Returns:
        ``input``.
    Raises:
        RuntimeError: the range is empty, or the dtype does not hold it.
    Examples:
        >>> x = taeda.empty(1000).random_(6)
        >>> x.min(), x.max()
        (tensor(0.), tensor(5.))
    """
    name = input.dtype.name
    if from_ is None and to is ...:
        if name not in _INTEGER_RANGE:
            raise NotImplementedError(
                f"random_: expected a real tensor of a dtype that ops compute with, got {input.dtype}"
            )
        most = _INTEGER_RANGE[name][1]
        if name in ("int64", "uint64", "float64"):
            _fill("random_", "wide_integers", input, 0, _signed(most + 1), generator)
        else:
            _fill("random_", "integers", input, 0, most + 1, generator)
        return
    if to is ...:
        from_, to = 0, from_
    elif to is None:
        to = _INTEGER_RANGE.get(name, (0, 0))[1] + 1
    _integers("random_", input, int(from_ or 0), int(to), generator)


@_fills
def bernoulli_(input, p: Any = 0.5, *, generator=None):
    """Fills ``input`` with ones, with probability ``p``, and zeros, in place.

    Args:
        p: a number, or a tensor of probabilities that broadcasts to ``input``.
    Returns:
        ``input``.
    Raises:
        RuntimeError: a probability is not in [0, 1].
    Examples:
        >>> taeda.empty(2, 2).bernoulli_(1.0)
        tensor([[1., 1.],
                [1., 1.]])
    """
    if input.dtype.is_complex:
        raise NotImplementedError(f"bernoulli_: expected a real tensor, got {input.dtype}")
    if isinstance(p, Tensor):
        _bernoulli_each(input, p, generator)
        return
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    _fill("bernoulli_", "bernoulli", input, float(p), 1.0, generator)


def _bernoulli_each(input: Tensor, p: Tensor, generator: Any) -> None:
    if not p.dtype.is_floating_point:
        raise NotImplementedError(f"bernoulli: expected floating-point probabilities, got {p.dtype}")
    if _core.memory_overlap(input, p) == 2:
        raise RuntimeError(
            "bernoulli_: unsupported operation: some elements of the probabilities and the written-to tensor refer to "
            "a single memory location. Please clone() the tensor before performing the operation."
        )
    if input.is_contiguous() and p.is_contiguous() and core_tensor.same_shape(p, input) and p.itemsize >= 4:
        core.fill_bernoulli(input, p, generator)
        return
    _check_memory("bernoulli_", input)
    order = core.memory_order(input)
    p = p.detach().to(_core.float64 if p.dtype.name == "float64" else _core.float32)
    chances = p.expand(input.shape).permute(order).contiguous()
    target = input.detach().permute(order)
    block = target if target.is_contiguous() else _core.empty(target.shape, target.dtype)
    core.fill_bernoulli(block, chances, generator)
    if block is not target:
        _core.copy_tensor(target, block)


def _continuous(name: str, input: Tensor) -> None:
    if not input.dtype.is_floating_point:
        raise (RuntimeError if name in ("exponential_", "cauchy_") else NotImplementedError)(
            f"{name}: the distribution is continuous: expected a floating-point tensor, got {input.dtype}"
        )


@_fills
def exponential_(input, lambd=1.0, *, generator=None):
    """Fills ``input`` with random numbers of the exponential distribution, in place: ``-log(u) / lambd`` for uniform
    ``u``. Their mean is ``1 / lambd``.

    Args:
        input: floating point, any sizes.
        lambd: the rate, positive.
    Returns:
        ``input``.
    Raises:
        RuntimeError: ``lambd`` is not positive, or ``input`` is of integers.
    Examples:
        >>> x = taeda.empty(1000).exponential_(2.0)
        >>> x.min() > 0, bool(0.4 < x.mean() < 0.6)
        (tensor(True), True)
    """
    _continuous("exponential_", input)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    _fill("exponential_", "exponential", input, float(lambd), 0.0, generator)


@_fills
def geometric_(input, p, *, generator=None):
    """Fills ``input`` with random numbers of trials up to the first success, in place: ``P(k) = (1 - p) ** (k - 1) *
    p``.

    Args:
        p: the probability of success, in (0, 1).
    Returns:
        ``input``.
    Raises:
        RuntimeError: ``p`` is out of range.
    Examples:
        >>> taeda.empty(1000).geometric_(0.5).min()
        tensor(1.)
    """
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    if input.dtype.is_complex or input.dtype.name == "bool":
        raise NotImplementedError(f"geometric_: expected a tensor of numbers, got {input.dtype}")
    _fill("geometric_", "geometric", input, math.log1p(-p), 0.0, generator)


@_fills
def cauchy_(input, median=0.0, sigma=1.0, *, generator=None):
    """Fills ``input`` with random numbers of the Cauchy distribution, in place: ``median + sigma * tan(pi * (u -
    1/2))`` for uniform ``u``.

    Args:
        input: floating point, any sizes.
        median: the middle.
        sigma: half of the width at half of the height, positive.
    Returns:
        ``input``.
    Raises:
        RuntimeError: ``sigma`` is not positive, or ``input`` is of integers.
    Examples:
        >>> taeda.empty(1000).cauchy_().median().abs() < 0.5
        tensor(True)
    """
    _continuous("cauchy_", input)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    _fill("cauchy_", "cauchy", input, float(median), float(sigma), generator)


# ---- new tensors -----------------------------------------------------------------------------------------------------


@primitive(method=False, out=False, random=True)
def _filled(input, fill, numbers, generator):
    """``input``, which was just made, filled with random numbers: under ``vmap`` with others for each example."""
    return finish(fill(input.clone(), *numbers, generator=generator), None, False)


def _fresh_under_mode(
    fill: Any, t: Tensor, a: Any, b: Any, generator: Any, requires_grad: bool = False, out: Any = None
) -> Tensor:
    """``t``, which is new or ``out``, filled by ``fill(t, a, b)``, also where a mode is active."""
    if out is None and not _core.is_mode_active():
        fill(t, a, b, generator=generator)
        return finish(t, None, requires_grad)
    t = _filled(t, fill, (a, b), generator) if out is None else fill(t, a, b, generator=generator)
    return t.requires_grad_() if requires_grad else t


callbacks.fresh = _fresh_under_mode
_fresh = factories.fresh


@composite(method=False, meta="sizes", canonical=True, native=True, random=True)
def rand(
    *size, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **kw
):
    """Random numbers, uniform in [0, 1).

    The same seed gives the same numbers on every machine, and as PyTorch gives on the CPU.

    Args:
        size: the sizes, one by one or as one list or tuple; also by name.
        dtype: a floating-point or complex dtype; of complex numbers both parts are drawn. Default: that of
            :func:`get_default_dtype`.
        kw: ``size`` by name.
    Returns:
        A tensor of those sizes.
    Raises:
        RuntimeError: a size is negative, or the dtype is one of integers.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> taeda.rand(3)
        tensor([0.4963, 0.7682, 0.0885])
        >>> taeda.rand(2, 3).shape
        taeda.Size([2, 3])
    """
    named = _only_size("rand", kw) if kw else None
    t = factories.new("rand", size, named, dtype, out, device)
    return _fresh(uniform_, t, 0.0, 1.0, generator, requires_grad, out)


@composite(method=False, meta="sizes", canonical=True, native=True, random=True)
def randn(
    *size, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **kw
):
    """Random numbers, normal with mean 0 and variance 1.

    For mean ``m`` and standard deviation ``s``: ``m + s * randn(...)``. The same seed gives the same numbers each time.
    The rest as of :func:`rand`.

    Args:
        dtype: a floating-point or complex dtype; of complex numbers each part has variance 1/2. Default: that of
            :func:`get_default_dtype`.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> x = taeda.randn(10000)
        >>> abs(x.mean().item()) < 0.05, abs(x.std().item() - 1) < 0.05
        (True, True)
        >>> again = taeda.manual_seed(0)
        >>> taeda.equal(x, taeda.randn(10000))
        True
    """
    named = _only_size("randn", kw) if kw else None
    t = factories.new("randn", size, named, dtype, out, device)
    return _fresh(normal_, t, 0.0, 1.0, generator, requires_grad, out)


def _only_size(name: str, keywords: dict) -> Any:
    size = keywords.pop("size", None)
    _no_more(name, keywords)
    return size


def _no_more(name: str, keywords: dict) -> None:
    keywords.pop("names", None)
    keywords.pop("memory_format", None)
    for given in keywords:
        known = ("size", "low", "high", *OPS[name].__kwdefaults__)
        raise TypeError(f"{name}() got an unexpected keyword argument '{given}'{nearest(given, known)}")


@composite(method=False, meta="numbers", native=True, random=True)
def randint(
    *args, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **kw
):
    """Random integers, uniform: ``randint(high, size)`` in [0, high), ``randint(low, high, size)`` in [low, high).

    Args:
        args: ``low`` (0 if left out), ``high`` and ``size``, a list or tuple; also by name.
        dtype: dtype of the result. Default: ``int64``.
        kw: ``size``, ``low`` and ``high`` by name.
    Returns:
        A tensor of sizes ``size``.
    Raises:
        RuntimeError: the range is empty, or the dtype does not hold it.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> taeda.randint(10, (2, 3))
        tensor([[4, 9, 3],
                [0, 3, 9]])
        >>> dice = taeda.randint(1, 7, (1000,))
        >>> dice.min(), dice.max()
        (tensor(1), tensor(6))
    """
    if not kw and len(args) in (2, 3) and out is None and device is None and isinstance(args[-1], (tuple, list)):
        t = factories.new("randint", args[-1:], None, dtype or _core.int64, None, None)
        high = _core.whole_numbers(args[-2], "randint", "high")
        low = _core.whole_numbers(args[0], "randint", "low") if len(args) == 3 else 0
        return _fresh(random_, t, low, high, generator, requires_grad)
    given = list(args)
    size = kw.pop("size", None)
    if size is None:
        if not given or hasattr(given[-1], "__index__"):
            raise TypeError("randint() missing required argument 'size' (a tuple of ints)")
        size = given.pop()
    high = kw.pop("high", None)
    low = kw.pop("low", None)
    if high is None:
        if not given:
            raise TypeError("randint() missing required argument 'high'")
        high = given.pop()
    if low is None:
        low = given.pop() if given else 0
    if given:
        raise TypeError(f"randint() takes low, high and size, but {len(args)} positional arguments were given")
    _no_more("randint", kw)
    t = factories.new("randint", (), size, dtype or (_core.int64 if out is None else None), out, device)
    return _fresh(random_, t, *_bounds("randint", low, high), generator, requires_grad, out)


def _bounds(name: str, low: Any, high: Any) -> tuple[int, int]:
    return _core.whole_numbers(low, name, "low"), _core.whole_numbers(high, name, "high")


def _like(input: Tensor, dtype: Any, device: Any, memory_format: Any) -> Tensor:
    if device is not None:
        _core.require_device(device)
    if memory_format is None or memory_format is _core.preserve_format:
        return _core.empty_like(input, dtype)
    return _core.empty_like(input.contiguous(memory_format=memory_format), dtype)


@composite(
    method=False, pointwise="form", random=True,
    lowering=lambda input, dtype, device, generator: _drawn_like(rand, input, dtype, device, generator),
)  # fmt: skip
def rand_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, generator=None,
    pin_memory=False,
):  # fmt: skip
    """Random numbers, uniform in [0, 1), in the sizes of ``input``.

    Returns:
        A tensor of those sizes.
    Raises:
        RuntimeError: the dtype is one of integers.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> noise = taeda.rand_like(taeda.zeros(2, 3, dtype=taeda.float64))
        >>> noise.shape, noise.dtype
        (taeda.Size([2, 3]), taeda.float64)
    """
    return _fresh(uniform_, _like(input, dtype, device, memory_format), 0.0, 1.0, generator, requires_grad)


def _drawn_like(draw, input, dtype, device, generator):
    device = input.device if device is None else device
    return draw(input.shape, dtype=dtype or input.dtype, device=device, generator=generator)


@composite(
    method=False, pointwise="form", random=True,
    lowering=lambda input, dtype, device, generator: _drawn_like(randn, input, dtype, device, generator),
)  # fmt: skip
def randn_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, generator=None,
    pin_memory=False,
):  # fmt: skip
    """Random numbers, normal with mean 0 and variance 1, in the sizes of ``input``.

    Returns:
        A tensor of those sizes.
    Raises:
        RuntimeError: the dtype is one of integers.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> image = taeda.ones(2, 2)
        >>> noisy = image + 0.1 * taeda.randn_like(image)
        >>> noisy.shape
        taeda.Size([2, 2])
    """
    return _fresh(normal_, _like(input, dtype, device, memory_format), 0.0, 1.0, generator, requires_grad)


@composite(method=False, native=True, random=True)
def randint_like(
    input, low=0, high=None, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None,
    generator=None, pin_memory=False,
):  # fmt: skip
    """Random integers, uniform in [low, high), in the sizes of ``input``.

    Args:
        low: the smallest number; if ``high`` is left out, the bound above, and numbers begin at 0.
        high: the bound above, which is not drawn.
    Returns:
        A tensor of those sizes, in the dtype of ``input`` unless ``dtype`` is given.
    Raises:
        RuntimeError: the range is empty, or the dtype does not hold it.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> taeda.randint_like(taeda.zeros(4), 3)
        tensor([2., 0., 2., 0.])
    """
    if high is None:
        low, high = 0, low
    bounds = _bounds("randint_like", low, high)
    return _fresh(random_, _like(input, dtype, device, memory_format), *bounds, generator, requires_grad)


@composite(method=False, meta="numbers", canonical=True, native=True, random=True)
def randperm(
    n, *, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A random order of the numbers 0 to ``n - 1``.

    Args:
        n: how many, 0 or more.
        dtype: dtype of the result. Default: ``int64``.
    Returns:
        A vector of ``n`` elements, each number once.
    Raises:
        RuntimeError: ``n`` is negative, or the dtype does not hold ``n - 1``.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> order = taeda.randperm(5)
        >>> order
        tensor([4, 0, 1, 3, 2])
        >>> data = taeda.tensor([10, 11, 12, 13, 14])
        >>> data[order]  # the same examples, shuffled
        tensor([14, 10, 11, 13, 12])
    """
    if device is not None:
        _core.require_device(device)
    if n < 0:
        raise RuntimeError(f"randperm: Trying to create tensor with negative dimension {n}: [{n}]")
    wanted = dtype or (_core.int64 if out is None else out.dtype)
    if wanted.is_complex or wanted.name == "bool":
        raise NotImplementedError(f"randperm: expected an integer or floating-point dtype, got {wanted}")
    if wanted.name != "bfloat16" and n - 1 > _INTEGER_RANGE[wanted.name][1]:
        raise RuntimeError(f"randperm: value cannot be converted to type {wanted.name} without overflow: {n - 1}")
    t = _permutation(n, generator)
    if wanted is not t.dtype:
        t = t.to(wanted)
    return finish(t, out, requires_grad, None, "randperm")


@primitive(core.permutation, method=False, out=False, random=True)
def _permutation(n, generator):
    """0 to ``n - 1`` in random order."""


# ---- from tensors ----------------------------------------------------------------------------------------------------


@composite(method=False, meta="numbers", native=True, random=True)
def normal(
    mean, std=None, size=None, *, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False,
    pin_memory=False, **kw
):  # fmt: skip
    """Random numbers, normal with the means and standard deviations given: ``mean + std * z``.

    Args:
        mean: a number, or a tensor of means.
        std: a number (default 1), or a tensor of standard deviations; it broadcasts with ``mean``.
        size: the sizes, if ``mean`` and ``std`` are numbers.
        kw: none; an unknown keyword is an error.
    Returns:
        A tensor of sizes ``size``, or those to which ``mean`` and ``std`` broadcast, in their dtype.
    Raises:
        RuntimeError: a standard deviation is negative.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> taeda.normal(taeda.tensor([0.0, 100.0]), taeda.tensor([1.0, 0.0]))[1]
        tensor(100.)
        >>> taeda.normal(5.0, 2.0, (2, 3)).shape
        taeda.Size([2, 3])
    """
    if kw:
        _no_more("normal", kw)
    std = 1.0 if std is None else std
    if size is not None and not (mean.__class__ is float is std.__class__):
        # tensors without dimensions, which count as numbers
        mean, std = (x.item() if isinstance(x, Tensor) and not x.dim() else x for x in (mean, std))
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if size is None:
            raise TypeError("normal(): expected 'size' where mean and std are numbers, got none")
        given, named = ((size,), None) if size.__class__ is tuple else ((), size)
        t = factories.new("normal", given, named, dtype, out, device)
        return _fresh(normal_, t, mean, std, generator, requires_grad, out)
    if isinstance(std, Tensor):
        if std.dtype.is_complex:
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.numel() and not std.is_meta and not extent(std)[0] >= 0:
            raise RuntimeError("normal expects all elements of std >= 0.0")
    like = mean if isinstance(mean, Tensor) else std
    if isinstance(mean, Tensor) and isinstance(std, Tensor) and not core_tensor.same_shape(mean, std):
        sizes = tuple(_broadcast(mean.shape, std.shape))
    else:
        sizes = tuple(like.shape)
    if out is None:
        return finish(_normal_of(mean, std, sizes, like.dtype, device, generator), None, requires_grad)
    if tuple(out.shape) != sizes and out.numel():
        warn_resized(out, sizes)
    return _fill_normal_of(factories.new("normal", (), sizes, None, out, device), mean, std, generator, out)


def _fill_normal_of(t: Tensor, mean: Any, std: Any, generator: Any, out: Any = None) -> Tensor:
    if isinstance(std, Tensor):
        return _fresh(normal_, t, 0.0, 1.0, generator, out=out).mul_(std).add_(mean)
    return _fresh(normal_, t, 0.0, std, generator, out=out).add_(mean)


def _normal_from(mean, std, sizes, dtype, device, generator):
    return _fill_normal_of(factories.new("normal", (sizes,), None, dtype, None, device), mean, std, generator)


@primitive(_normal_from, method=False, out=False, decomposition=_normal_from, random=True)
def _normal_of(mean, std, sizes, dtype, device, generator):
    """Normal numbers of the given means and deviations, of which they are, as in PyTorch, no functions."""


_normal_of.vjp(
    mean=lambda g, mean_shape, mean_dtype: g.new_zeros(mean_shape, dtype=mean_dtype),
    std=lambda g, std_shape, std_dtype: g.new_zeros(std_shape, dtype=std_dtype),
)


def _broadcast(a: Any, b: Any) -> list[int]:
    """The shape to which two shapes broadcast."""
    n = max(len(a), len(b))
    result = []
    for i in range(-n, 0):
        x = a[i] if -i <= len(a) else 1
        y = b[i] if -i <= len(b) else 1
        if x != y and 1 not in (x, y):
            raise RuntimeError(
                f"normal: The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension "
                f"{i + n}: mean has sizes {tuple(a)} and std {tuple(b)}"
            )
        result.append(y if x == 1 else x)
    return result


@primitive(out="any", out_aligned=("input",), moves=False, random=True)
def bernoulli(input, p=None, *, generator=None):
    """Ones and zeros: a one with the probability that ``input`` holds at that place.

    Args:
        input: probabilities, floating point, any sizes. With ``p`` it gives only sizes and dtype.
        p: one probability for all elements.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: a probability is not in [0, 1].
    Examples:
        >>> taeda.bernoulli(taeda.tensor([0.0, 1.0, 1.0]))
        tensor([0., 1., 1.])
        >>> generator = taeda.manual_seed(0)
        >>> taeda.bernoulli(taeda.full((1000,), 0.25)).mean() < 0.3
        tensor(True)
    """
    result = _core.empty(input.shape, input.dtype)
    if p is None:
        _bernoulli_each(result, input, generator)
    else:
        bernoulli_(result, float(p), generator=generator)
    return result


def _bernoulli_by_rand(input, p, generator):
    drawn = rand(input.shape, device=input.device, generator=generator)
    return (drawn < (input if p is None else p)).to(input.dtype)


bernoulli.traits["lowering"] = _bernoulli_by_rand
bernoulli.vjp(input=lambda g: g.new_zeros(g.shape))


@primitive(random=True)
def poisson(input, generator=None):
    """Random numbers of Poisson's distribution, ``P(k) = rate ** k * exp(-rate) / k!``, with the rates in ``input``.

    Args:
        input: rates, floating point, not negative, any sizes.
    Returns:
        The sizes and the dtype of ``input``; whole numbers.
    Raises:
        RuntimeError: a rate is negative.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> counts = taeda.poisson(taeda.full((1000,), 4.0))
        >>> bool(3.7 < counts.mean() < 4.3)
        True
    """
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"poisson: expected floating-point rates, got {input.dtype}")
    rates = (input if input.itemsize >= 4 else input.to(_core.float64)).contiguous()
    numbers = _core.empty_like(rates)
    core.fill_poisson(numbers, rates, generator)
    return numbers if rates.dtype is input.dtype else numbers.to(input.dtype)


poisson.vjp(input=lambda g: g.new_zeros(g.shape))


@primitive(differentiable=(), out="same", random=True)
def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Indices drawn with the weights in each row: index ``i`` with probability ``row[i] / sum(row)``.

    Args:
        input: weights ``(n)`` or ``(rows, n)``, floating point, not negative; a row need not sum to 1.
        num_samples: how many to draw from each row.
        replacement: whether an index may be drawn again.
    Returns:
        ``int64``, ``(num_samples)`` or ``(rows, num_samples)``.
    Raises:
        RuntimeError: a row has a negative, infinite or NaN weight or the sum 0, or, without replacement, fewer than
            ``num_samples`` elements.
    Examples:
        >>> weights = taeda.tensor([0.0, 3.0, 0.0, 1.0])
        >>> generator = taeda.manual_seed(0)
        >>> taeda.multinomial(weights, 2).sort().values
        tensor([1, 3])
        >>> taeda.multinomial(weights, 1000, replacement=True).bincount()[[0, 2]]
        tensor([0, 0])
    """
    if input.dim() not in (1, 2):
        raise RuntimeError(f"multinomial: prob_dist must be 1 or 2 dim, got sizes {tuple(input.shape)}")
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.dtype}")
    n = input.shape[-1]
    if num_samples <= 0:
        raise RuntimeError(f"multinomial: cannot sample n_sample <= 0 samples, got {num_samples}")
    if not replacement and num_samples > n:
        raise RuntimeError(
            f"multinomial: cannot sample n_sample > prob_dist.size(-1) without replacement: {num_samples} of {n}"
        )
    if n > 2**24:
        raise RuntimeError(f"multinomial: number of categories cannot exceed 2^24, got {n}")
    shape = (*input.shape[:-1], num_samples)
    if input.numel() == 0:
        return _core.empty(shape, _core.int64)
    if not replacement or num_samples == 1:
        return _race(input, num_samples, generator)
    rows = (input if input.itemsize >= 4 else input.to(_core.float32)).contiguous()
    drawn = _core.empty(shape, _core.int64)
    core.choose(rows, drawn, generator)
    return drawn


def _race(input: Tensor, count: int, generator: Any) -> Tensor:
    """Draw without replacement: each index arrives after an exponential time of its rate, the first ones win."""
    if not input.is_meta and not bool(((input >= 0) & (input < math.inf)).all()):
        raise RuntimeError("multinomial: probability tensor contains either `inf`, `nan` or element < 0")
    if not input.is_meta and bool((input.sum(-1) == 0).any()):
        raise RuntimeError("multinomial: invalid multinomial distribution (sum of probabilities <= 0)")
    times = exponential_(_core.empty_like(input), 1.0, generator=generator)
    speed = input / times
    return speed.argmax(-1, True) if count == 1 else speed.topk(count)[1]

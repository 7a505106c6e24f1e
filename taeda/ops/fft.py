"""Discrete Fourier transforms, by the library below ``scipy.fft`` where that is installed, else by ``numpy.fft``.

Three unnormalised primitives carry every public function: complex to complex, real to half-complex, and back. Their
adjoints are each other's, so derivatives of any order are transforms again.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from .. import _core
from .._core import Tensor
from .._core import tensor as core
from .._core.apart import run_apart
from .._core.mends import not_tensor
from .._core.plan import once_per_form
from ..kernels.forks import loading
from .creation import arange
from .exchange import array_of, from_numpy
from .out import write_out
from .shape import pad, roll
from .table import composite, primitive

_COMPLEX = {_core.float32: _core.complex64, _core.float64: _core.complex128}


@functools.cache
def _pocketfft() -> Any:
    """The functions below SciPy's public ones, which put several rows in a vector and write into taeda's memory. None
    without them.

    They are private, so a trial checks first that they have not changed. SciPy's dispatch took 2.5 of the 3.7 us of a
    transform of 8 numbers.
    """
    try:
        with loading:
            import numpy as np
            from scipy.fft._pocketfft import pypocketfft as direct

        half, real = np.empty(2, np.complex64), np.empty(2, np.float32)
        direct.c2c(np.ones(2, np.complex64), (0,), True, 0, half, 1)
        direct.c2r(half, (0,), 2, False, 2, real, 1)
        direct.r2c(real, (0,), True, 1, half, 1)
        return direct if real.tolist() == [1, 1] and abs(half[0] - 2**0.5) < 1e-6 else None
    except (ImportError, AttributeError, TypeError, ValueError):
        return None


#: Number of elements from which SciPy gets the number of threads, which costs a third of the time of a short transform.
SHARED = 1 << 14
#: Elements from which a transform may take so long that Ctrl-C must end the wait for it.
LARGE = 1 << 20


def _result(name: str, input: Tensor, dims: tuple, shape: tuple, dtype: Any) -> Tensor:
    """Memory for a transform of ``input`` over ``dims``, laid out as PyTorch's: the dimensions that are transformed are
    innermost, and either kind lies as in the input, but for the last of ``dims`` of a real transform."""
    nd = len(shape)
    dims = tuple(d % nd for d in dims)
    strides, others = input.stride(), [d for d in range(nd) if d not in dims]

    def laid(these):
        return sorted(these, key=lambda d: -strides[d])

    if dtype.is_complex and name != "rfft":
        order = laid(others) + laid(dims)
    elif dtype.is_complex or len(dims) == 1:
        order = laid(others) + laid(dims[:-1]) + [dims[-1]]
    else:  # complex to real: first a complex transform over all but the last
        order, step = laid([*others, dims[-1]]) + laid(dims[:-1]), 1
        strides = [0] * nd
        for d in reversed(order):
            strides[d], step = step, step * input.shape[d]
        order = [*laid(d for d in range(nd) if d != dims[-1]), dims[-1]]
    back = [order.index(d) for d in range(nd)]
    return core.view_permute(_core.empty([shape[d] for d in order], dtype), back)


@once_per_form
def _form(name: str, shape: tuple, dims: tuple, n: int | None, scale: float) -> tuple | None:
    """``(sizes of the result, pocketfft's number of this scale or None, elements, whether dims are innermost)``; None
    where pocketfft cannot do it: of an empty tensor, and where the last of ``dims`` is not half of ``n``."""
    nd, at = len(shape), dims[-1] % len(shape)
    sizes, elements = [shape[d] for d in dims], math.prod(shape)
    if not elements or (n is not None and shape[at] != n // 2 + 1):
        return None
    if n is not None:
        sizes[-1] = n
    count = math.prod(sizes)
    norm = 0 if scale == 1 else 2 if scale == 1 / count else 1 if scale == 1 / math.sqrt(count) else None
    if n is not None or name == "rfft":
        shape = (*shape[:at], shape[at] // 2 + 1 if n is None else n, *shape[at + 1 :])
    return tuple(shape), norm, elements, [d % nd for d in dims] == list(range(nd - len(dims), nd))


def _transform(name: str, input: Tensor, dims: tuple, n: int | None, forward: bool, scale: float, dtype: Any) -> Tensor:
    """``scale`` times the transform ``name`` over ``dims``, the last of which gets ``n`` elements (None: as it is)."""
    shape = input.shape
    direct = None if input.is_meta else _pocketfft()
    form = None if direct is None else _form(name, shape, dims, n, scale)
    if form is not None:
        shape, norm, elements, inner = form
        contiguous = input.is_contiguous()
        source = array_of(input if contiguous else input.detach().contiguous())
        result = _core.empty(shape, dtype) if inner and contiguous else _result(name, input, dims, shape, dtype)
        workers = _core.get_num_threads() if elements >= SHARED else 1
        run = direct.c2r if n is not None else direct.r2c if name == "rfft" else direct.c2c  # which takes real ones too
        points = () if n is None else (n,)
        given = (source, dims, *points, forward, norm or 0, array_of(result), workers)
        run(*given) if elements < LARGE else run_apart(run, *given)
        return result if norm is not None else result.mul_(scale)
    sizes = [shape[d] for d in dims]
    if n is not None:
        sizes[-1] = n
    count = math.prod(sizes)
    if input.is_meta:
        last = dims[-1] % len(shape)
        n = sizes[-1] // 2 + 1 if name == "rfft" else sizes[-1]
        return _result(name, input, dims, (*shape[:last], n, *shape[last + 1 :]), dtype)
    with loading:
        from numpy import fft as library

    norm = _norm(scale, count, forward)
    array, given = input.detach().contiguous().numpy(), norm or ("backward" if forward else "forward")
    if len(dims) == 1:
        made = _run(array.size, getattr(library, name), array, n, dims[0], given)
    else:
        made = _run(array.size, getattr(library, name + "n"), array, None if n is None else sizes, dims, given)
    if norm is None:
        made *= scale
    result, made = _result(name, input, dims, made.shape, dtype), from_numpy(made)
    if made.dtype is dtype and made.stride() == result.stride():
        return made
    return result.copy_(made)


def _run(count: int, function: Any, *args: Any) -> Any:
    return function(*args) if count < LARGE else run_apart(function, *args)


def _norm(scale: float, count: int, forward: bool) -> str | None:
    """The libraries' name of this scale of a transform of ``count`` points; None if they have none."""
    if scale == 1:
        return "backward" if forward else "forward"
    if scale == 1 / count:
        return "forward" if forward else "backward"
    return "ortho" if scale == 1 / math.sqrt(count) else None


@primitive(method=False, batch="along", canonical=True, node="FftC2C", on_host=True)
def fft_c2c(input, dims, forward, scale):
    """``scale`` times the sum of ``input * exp(-+ 2 pi i k n / N)`` over ``dims``."""
    return _transform("fft" if forward else "ifft", input, dims, None, forward, scale, input.dtype)


fft_c2c.vjp(input=lambda g, dims, forward, scale: fft_c2c(g, dims, not forward, scale))


@primitive(method=False, batch="along", canonical=True, node="FftR2C", on_host=True)
def fft_r2c(input, dims, scale, onesided=True):
    """The forward transform of a real tensor; with ``onesided`` the last of ``dims`` keeps its non-negative half."""
    return _transform("rfft" if onesided else "fft", input, dims, None, True, scale, input.dtype.to_complex())


def _r2c_backward(g, input_shape, dims, scale, onesided):
    full = _resized(g, dims[-1:], (input_shape[dims[-1]],)) if onesided else g
    return fft_c2c(full, dims, False, scale).real


fft_r2c.vjp(input=_r2c_backward)


@primitive(method=False, batch="along", canonical=True, node="FftC2R", on_host=True)
def fft_c2r(input, dims, n, scale):
    """The unnormalised inverse of a half-complex tensor; the last of ``dims`` gets ``n`` elements."""
    return _transform("irfft", input, dims, n, False, scale, input.dtype.to_real())


def _c2r_backward(g, dims, n, scale):
    half = fft_r2c(g, dims, scale)
    last = dims[-1]
    weights = g.new_full((half.shape[last],), 2.0)
    weights[0] = 1.0
    if n % 2 == 0:
        weights[-1] = 1.0
    return half * weights.reshape([-1 if d == last % half.dim() else 1 for d in range(half.dim())])


fft_c2r.vjp(input=_c2r_backward)


def _native(op: Any, sizes: Any, scale: float, *call: Any) -> tuple:
    """The call of PyTorch's library, which has numbers for scales: 0 is 1, 1 is ``1 / sqrt(n)`` and 2 is ``1 / n``."""
    count = math.prod(sizes) or 1
    for number in range(3):
        if math.isclose(scale, count ** (-number / 2), rel_tol=1e-12):
            x, dims, last = call
            return f"_{op.name}.default", (x, dims, number, last)
    return f"{op.name}.default", (*call[:2], *((scale, call[2]) if op is fft_r2c else (call[2], scale)))


fft_c2c.traits["native_call"] = lambda x, dims, forward, scale: _native(
    fft_c2c, (x.shape[d] for d in dims), scale, x, dims, forward
)
fft_r2c.traits["native_call"] = lambda x, dims, scale, onesided=True: _native(
    fft_r2c, (x.shape[d] for d in dims), scale, x, dims, onesided
)
fft_c2r.traits["native_call"] = lambda x, dims, n, scale: _native(
    fft_c2r, (*(x.shape[d] for d in dims[:-1]), n), scale, x, dims, n
)


# ---- arguments -------------------------------------------------------------------------------------------------------


def _resized(x: Tensor, dims, sizes) -> Tensor:
    """Cut or zero-pad ``dims`` to ``sizes``."""
    if [x.shape[d] for d in dims] == list(sizes):
        return x
    widths = [0] * (2 * x.dim())
    for d, n in zip(dims, sizes, strict=True):
        have = x.shape[d]
        if n < have:
            x = x.narrow(d, 0, n)
        elif n > have:
            widths[2 * (x.dim() - 1 - d % x.dim()) + 1] = n - have
    return pad(x, widths) if any(widths) else x


def _whole(x, name):
    """One or several whole numbers as a tuple."""
    x = _core.whole_numbers(x, "fft", name)
    return x if isinstance(x, tuple) else (x,)


def _scale(norm, count, forward, name):
    """The factor of PyTorch's ``norm``: by default the inverse is divided by the number of points."""
    if norm not in (None, "forward", "backward", "ortho"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return 1 / math.sqrt(count) if type(count) is int else 1 / count**0.5  # a size that may change
    return 1 / count if (norm == "forward") == forward else 1.0


def _floating(x, name, complex_too=True):
    if not isinstance(x, Tensor):
        raise not_tensor(f"{name}(): argument 'input'", x)
    if x.dtype in _COMPLEX:
        return x
    if x.is_complex() and not complex_too:
        raise RuntimeError(f"{name} expects a real input tensor, but got {x.dtype}")
    if not x.is_complex() and not x.is_floating_point():
        x = x.to(_core.get_default_dtype())
    if x.dtype.to_real().itemsize < 4 and not (x.is_meta and x.dtype in (_core.float16, _core.complex32)):
        raise RuntimeError(f"{name}: Unsupported dtype {x.dtype}; convert it with .to(taeda.float32)")
    return x


def _as_complex(x):
    return x if x.is_complex() else x.to(x.dtype.to_complex())


@once_per_form
def _scaled_axes(shape, s, dim, norm, forward, name):
    """Result of :func:`_axes`, and the factor of the transform."""
    dim, sizes = _axes(shape, s, dim, name)
    return dim, sizes, _scale(norm, math.prod(sizes), forward, name) if dim else 1.0


def _axes(shape, s, dim, name):
    """Dimensions and sizes (None: as they are) as tuples."""
    if len(shape) == 0 and dim is not None and len(dim):
        raise IndexError(f"{name}: Dimension specified as {dim[0]} but tensor has no dimensions")
    if dim is not None:
        dim = _whole(dim, "dim")
        dim = tuple(_core.wrapped_dim(d, len(shape), name) for d in dim)
        if len(set(dim)) != len(dim):
            raise RuntimeError(f"{name}: FFT dims must be unique")
    if s is not None:
        s = _whole(s, "s")
        if dim is None:
            if len(s) > len(shape):
                raise RuntimeError(
                    f"{name}: Got shape with {len(s)} values but input tensor only has {len(shape)} dimensions."
                )
            dim = tuple(range(len(shape) - len(s), len(shape)))
        if len(s) != len(dim):
            raise RuntimeError(f"{name}: When given, dim and shape arguments must have the same length")
    elif dim is None:
        dim = tuple(range(len(shape)))
    sizes = [shape[d] if n == -1 else n for d, n in zip(dim, s or (-1,) * len(dim), strict=True)]
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"{name}: Invalid number of data points ({n}) specified")
    return dim, tuple(sizes)


def _complex_transform(x, s, dim, norm, forward, name):
    x = _floating(x, name)
    dim, sizes, scale = _scaled_axes(x.shape, s, dim, norm, forward, name)
    if not dim:
        return _as_complex(x)
    x = x if s is None else _resized(x, dim, sizes)
    if forward and not x.is_complex():
        return fft_r2c(x, dim, scale, False)
    return fft_c2c(_as_complex(x), dim, forward, scale)


def _real_transform(x, s, dim, norm, forward, name):
    """Real to half-complex; the inverse of a real tensor is the conjugate of the forward one."""
    x = _floating(x, name, False)
    dim, sizes, scale = _scaled_axes(x.shape, s, dim, norm, forward, name)
    if not dim:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = x if s is None else _resized(x, dim, sizes)
    if forward:
        return fft_r2c(x, dim, scale)
    made = fft_r2c(x, dim[-1:], scale).conj_physical()
    return made if len(dim) == 1 else fft_c2c(made, dim[:-1], False, 1.0)


def _half_transform(x, s, dim, norm, forward, name):
    """Half-complex to real."""
    x = _as_complex(_floating(x, name))
    given = s is not None and (s if type(s) is tuple else _whole(s, "s"))[-1:] != (-1,)
    dim, sizes = _axes(x.shape, s, dim, name)
    if not dim:
        raise RuntimeError(f"{name} must transform at least one axis")
    n = sizes[-1] if given else 2 * (x.shape[dim[-1]] - 1)
    if n < 1:
        raise RuntimeError(f"{name}: Invalid number of data points ({n}) specified")
    sizes = [*sizes[:-1], n // 2 + 1]
    x = _resized(x, dim, sizes)
    scale = _scale(norm, math.prod(sizes[:-1]) * n, forward, name)
    return fft_c2r(x.conj_physical() if forward else x, dim, n, scale)


# ---- public ----------------------------------------------------------------------------------------------------------

#: Arguments that mean the same in every transform.
_ARGUMENTS = """
    Args:
        n: points of the transform: ``dim`` is cut, or filled with zeros, to what that needs. Default: those there are.
        s: points of the transform in each of ``dim``; -1 keeps a size. Default: those there are.
        dim: the dimension, or dimensions, that are transformed. None stands for all, or for the last ``len(s)``.
        norm: ``"backward"`` (default) divides the inverse transform by the number of points, ``"forward"`` the other
            one, ``"ortho"`` both by its square root.
    Raises:
        RuntimeError: the number of points is not positive, ``norm`` is another word, or a real tensor is needed and
            ``input`` is complex.
        IndexError: there is no such dimension.
    """


def _one(transform, forward, name, text):
    def function(input, n=None, dim=-1, norm=None, *, out=None):
        if type(n) is int and n < 1:  # among several sizes -1 keeps one
            raise RuntimeError(f"{name}: Invalid number of data points ({n}) specified")
        made = transform(input, None if n is None else (n,), (dim,), norm, forward, name)
        return made if out is None else write_out(function, out, made)

    return _named(function, name, text)


def _many(transform, forward, name, text, default):
    def function(input, s=None, dim=default, norm=None, *, out=None):
        made = transform(input, s, dim, norm, forward, name)
        return made if out is None else write_out(function, out, made)

    return _named(function, name, text)


def _named(function, name, text):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text + _ARGUMENTS
    return composite(method=False, autocast="float32")(function)


fft = _one(
    _complex_transform, True, "fft_fft",
    """The discrete Fourier transform along ``dim``: ``out[k]`` is the sum of ``input[j] * exp(-2 pi i j k / n)`` over
    ``j``.

    Args:
        input: a tensor of at least one dimension; real ones count as complex.
    Returns:
        Complex, the sizes of ``input`` with ``n`` in ``dim``. Element ``k`` belongs to ``k`` periods in ``n`` points;
        see :func:`taeda.fft.fftfreq`.
    Examples:
        >>> taeda.fft.fft(taeda.tensor([1.0, 0.0, 0.0, 0.0])).real  # an impulse has all frequencies
        tensor([1., 1., 1., 1.])
        >>> taeda.fft.fft(taeda.tensor([0.0, 1.0, 0.0, -1.0])).abs()  # a sine has one, and its mirror image
        tensor([0., 2., 0., 2.])
    """,
)  # fmt: skip
ifft = _one(
    _complex_transform, False, "fft_ifft",
    """The inverse of :func:`taeda.fft.fft`: ``out[j]`` is the sum of ``input[k] * exp(2 pi i j k / n)`` over ``k``,
    divided by ``n``.

    Args:
        input: a tensor of at least one dimension.
    Returns:
        Complex, the sizes of ``input`` with ``n`` in ``dim``.
    Examples:
        >>> x = taeda.tensor([1.0, 2.0, 3.0, 4.0])
        >>> taeda.fft.ifft(taeda.fft.fft(x)).real
        tensor([1., 2., 3., 4.])
    """,
)  # fmt: skip
rfft = _one(
    _real_transform, True, "fft_rfft",
    """The discrete Fourier transform of a real tensor: the frequencies from 0 to ``n // 2`` of :func:`taeda.fft.fft`.
    The others are their conjugates.

    Args:
        input: a real tensor of at least one dimension.
    Returns:
        Complex, the sizes of ``input`` with ``n // 2 + 1`` in ``dim``.
    Examples:
        >>> taeda.fft.rfft(taeda.tensor([0.0, 1.0, 0.0, -1.0])).abs()
        tensor([0., 2., 0.])
    """,
)  # fmt: skip
irfft = _one(
    _half_transform, False, "fft_irfft",
    """The inverse of :func:`taeda.fft.rfft`: a real tensor.

    Args:
        input: a tensor of at least one dimension, the half of a spectrum.
    Returns:
        Real, the sizes of ``input`` with ``n`` in ``dim``; ``n`` is by default ``2 * (size - 1)``. Give it where the
        signal had an odd number of points.
    Examples:
        >>> x = taeda.tensor([1.0, 2.0, 3.0])
        >>> taeda.fft.irfft(taeda.fft.rfft(x), n=3).round(decimals=4)
        tensor([1., 2., 3.])
    """,
)  # fmt: skip
hfft = _one(
    _half_transform, True, "fft_hfft",
    """The discrete Fourier transform of a signal with Hermitian symmetry, ``x[-j] = conj(x[j])``, of which a half is
    given. The result is real.

    Args:
        input: a tensor of at least one dimension, the half of a signal.
    Returns:
        Real, the sizes of ``input`` with ``n`` in ``dim``; ``n`` is by default ``2 * (size - 1)``.
    Examples:
        >>> taeda.fft.hfft(taeda.tensor([1.0, 2.0, 1.0]))
        tensor([ 6.,  0., -2.,  0.])
    """,
)  # fmt: skip
ihfft = _one(
    _real_transform, False, "fft_ihfft",
    """The inverse of :func:`taeda.fft.hfft`: the half of a signal with Hermitian symmetry.

    Args:
        input: a real tensor of at least one dimension.
    Returns:
        Complex, the sizes of ``input`` with ``n // 2 + 1`` in ``dim``.
    Examples:
        >>> taeda.fft.ihfft(taeda.tensor([6.0, 0.0, -2.0, 0.0])).real
        tensor([1., 2., 1.])
    """,
)  # fmt: skip
fft2 = _many(
    _complex_transform, True, "fft_fft2",
    """The discrete Fourier transform along two dimensions: that of images.

    Args:
        input: a tensor of at least two dimensions.
    Returns:
        Complex, the sizes of ``input`` with ``s`` in ``dim``.
    Examples:
        >>> taeda.fft.fft2(taeda.ones(2, 2)).real  # a constant has frequency 0 only
        tensor([[4., 0.],
                [0., 0.]])
    """,
    (-2, -1),
)  # fmt: skip
ifft2 = _many(
    _complex_transform, False, "fft_ifft2",
    """The inverse of :func:`taeda.fft.fft2`.

    Args:
        input: a tensor of at least two dimensions.
    Returns:
        Complex, the sizes of ``input`` with ``s`` in ``dim``.
    Examples:
        >>> x = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> taeda.fft.ifft2(taeda.fft.fft2(x)).real
        tensor([[1., 2.],
                [3., 4.]])
    """,
    (-2, -1),
)  # fmt: skip
rfft2 = _many(
    _real_transform, True, "fft_rfft2",
    """The discrete Fourier transform of a real tensor along two dimensions: of the last one, half of the frequencies.

    Args:
        input: a real tensor of at least two dimensions.
    Returns:
        Complex, the sizes of ``input`` with ``s`` in ``dim``, and ``s[-1] // 2 + 1`` in the last of them.
    Examples:
        >>> taeda.fft.rfft2(taeda.ones(4, 6)).shape
        taeda.Size([4, 4])
    """,
    (-2, -1),
)  # fmt: skip
irfft2 = _many(
    _half_transform, False, "fft_irfft2",
    """The inverse of :func:`taeda.fft.rfft2`: a real tensor.

    Args:
        input: a tensor of at least two dimensions, the half of a spectrum.
    Returns:
        Real, the sizes of ``input`` with ``s`` in ``dim``; the last of them is by default ``2 * (size - 1)``.
    Examples:
        >>> x = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> taeda.fft.irfft2(taeda.fft.rfft2(x))
        tensor([[1., 2.],
                [3., 4.]])
    """,
    (-2, -1),
)  # fmt: skip
hfft2 = _many(
    _half_transform, True, "fft_hfft2",
    """The discrete Fourier transform along two dimensions of a signal with Hermitian symmetry, of which a half is
    given.

    Args:
        input: a tensor of at least two dimensions, the half of a signal.
    Returns:
        Real, the sizes of ``input`` with ``s`` in ``dim``; the last of them is by default ``2 * (size - 1)``.
    Examples:
        >>> taeda.fft.hfft2(taeda.ones(3, 3)).shape
        taeda.Size([3, 4])
    """,
    (-2, -1),
)  # fmt: skip
ihfft2 = _many(
    _real_transform, False, "fft_ihfft2",
    """The inverse of :func:`taeda.fft.hfft2`.

    Args:
        input: a real tensor of at least two dimensions.
    Returns:
        Complex, the sizes of ``input`` with ``s`` in ``dim``, and ``s[-1] // 2 + 1`` in the last of them.
    Examples:
        >>> taeda.fft.ihfft2(taeda.ones(3, 4)).shape
        taeda.Size([3, 3])
    """,
    (-2, -1),
)  # fmt: skip
fftn = _many(
    _complex_transform, True, "fft_fftn",
    """The discrete Fourier transform along several dimensions, one after the other.

    Returns:
        Complex, the sizes of ``input`` with ``s`` in ``dim``.
    Examples:
        >>> taeda.fft.fftn(taeda.ones(2, 2, 2)).real.sum()
        tensor(8.)
    """,
    None,
)  # fmt: skip
ifftn = _many(
    _complex_transform, False, "fft_ifftn",
    """The inverse of :func:`taeda.fft.fftn`.

    Returns:
        Complex, the sizes of ``input`` with ``s`` in ``dim``.
    Examples:
        >>> x = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> taeda.fft.ifftn(taeda.fft.fftn(x)).real
        tensor([[1., 2.],
                [3., 4.]])
    """,
    None,
)  # fmt: skip
rfftn = _many(
    _real_transform, True, "fft_rfftn",
    """The discrete Fourier transform of a real tensor along several dimensions: of the last one, half of the
    frequencies.

    Args:
        input: a real tensor.
    Returns:
        Complex, the sizes of ``input`` with ``s`` in ``dim``, and ``s[-1] // 2 + 1`` in the last of them.
    Examples:
        >>> taeda.fft.rfftn(taeda.ones(4, 6, 8)).shape
        taeda.Size([4, 6, 5])
    """,
    None,
)  # fmt: skip
irfftn = _many(
    _half_transform, False, "fft_irfftn",
    """The inverse of :func:`taeda.fft.rfftn`: a real tensor.

    Args:
        input: a tensor, the half of a spectrum.
    Returns:
        Real, the sizes of ``input`` with ``s`` in ``dim``; the last of them is by default ``2 * (size - 1)``.
    Examples:
        >>> x = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> taeda.fft.irfftn(taeda.fft.rfftn(x))
        tensor([[1., 2.],
                [3., 4.]])
    """,
    None,
)  # fmt: skip
hfftn = _many(
    _half_transform, True, "fft_hfftn",
    """The discrete Fourier transform along several dimensions of a signal with Hermitian symmetry, of which a half is
    given.

    Args:
        input: a tensor, the half of a signal.
    Returns:
        Real, the sizes of ``input`` with ``s`` in ``dim``; the last of them is by default ``2 * (size - 1)``.
    Examples:
        >>> taeda.fft.hfftn(taeda.ones(3, 3)).shape
        taeda.Size([3, 4])
    """,
    None,
)  # fmt: skip
ihfftn = _many(
    _real_transform, False, "fft_ihfftn",
    """The inverse of :func:`taeda.fft.hfftn`.

    Args:
        input: a real tensor.
    Returns:
        Complex, the sizes of ``input`` with ``s`` in ``dim``, and ``s[-1] // 2 + 1`` in the last of them.
    Examples:
        >>> taeda.fft.ihfftn(taeda.ones(3, 4)).shape
        taeda.Size([3, 3])
    """,
    None,
)  # fmt: skip


def _check_frequencies(name, dtype):
    if dtype is not None and not dtype.is_floating_point and not dtype.is_complex:
        raise RuntimeError(f"{name} requires a floating point or complex dtype, got {dtype}")


@composite(method=False)
def fftfreq(n, d=1.0, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, out=None):
    """The frequencies that belong to the elements of :func:`taeda.fft.fft`: ``[0, 1, ..., (n - 1) // 2, -(n // 2), ...,
    -1] / (n * d)``.

    Args:
        n: points of the transform.
        d: the time from one point to the next; frequencies are in periods per unit of it.
    Returns:
        A vector of ``n`` elements.
    Raises:
        RuntimeError: ``dtype`` has whole numbers only.
    Examples:
        >>> taeda.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
        >>> taeda.fft.fftfreq(4, d=0.25)  # four samples a second: in hertz
        tensor([ 0.,  1., -2., -1.])
    """
    _check_frequencies("fftfreq", dtype)
    made = roll(arange(n, dtype=dtype or _core.get_default_dtype()) - n // 2, -(n // 2)) / (n * d)
    return made.requires_grad_(requires_grad) if out is None else write_out(fftfreq, out, made)


@composite(method=False)
def rfftfreq(n, d=1.0, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, out=None):
    """The frequencies that belong to the elements of :func:`taeda.fft.rfft`: ``[0, 1, ..., n // 2] / (n * d)``.

    Args:
        n: points of the transform.
        d: the time from one point to the next; frequencies are in periods per unit of it.
    Returns:
        A vector of ``n // 2 + 1`` elements.
    Raises:
        RuntimeError: ``dtype`` has whole numbers only.
    Examples:
        >>> taeda.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """
    _check_frequencies("rfftfreq", dtype)
    made = arange(n // 2 + 1, dtype=dtype or _core.get_default_dtype()) / (n * d)
    return made.requires_grad_(requires_grad) if out is None else write_out(rfftfreq, out, made)


def _shift(input, dim, sign):
    dims = range(input.dim()) if dim is None else _whole(dim, "dim")
    shifts = [input.shape[d] // 2 if sign > 0 else (input.shape[d] + 1) // 2 for d in dims]
    return roll(input, shifts, list(dims)) if shifts else input.clone()


@composite(method=False)
def fftshift(input, dim=None):
    """The elements in order of frequency, frequency 0 in the middle: the second half of each dimension comes first.

    Args:
        input: a tensor, in the order of :func:`taeda.fft.fft`.
        dim: a dimension, or several in a tuple. Default: all.
    Returns:
        The sizes and the dtype of ``input``.
    Examples:
        >>> taeda.fft.fftshift(taeda.fft.fftfreq(4))
        tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shift(input, dim, 1)


@composite(method=False)
def ifftshift(input, dim=None):
    """The inverse of :func:`taeda.fft.fftshift`: frequency 0 comes first again.

    Args:
        dim: a dimension, or several in a tuple. Default: all.
    Returns:
        The sizes and the dtype of ``input``.
    Examples:
        >>> taeda.fft.ifftshift(taeda.tensor([-2, -1, 0, 1]))
        tensor([ 0,  1, -2, -1])
    """
    return _shift(input, dim, -1)

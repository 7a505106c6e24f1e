"""Functions and products of matrices and vectors: exponentials, cross products, chains, Vandermonde's matrix."""

from __future__ import annotations

import itertools
import math

from ..._core import Size, Tensor, int64, wrapped_dim
from ..._warn import warn_once
from ..indexing import where
from ..joining import cat
from ..matmul import chain_matmul, matmul
from ..table import alias, composite, primitive
from .lapack import H, check, check_same_dtype, eye_like
from .solve import linalg_solve_ex

#: Coefficients of the diagonal Pade approximants of exp, and the 1-norms up to which they are exact to double
#: precision: Higham, "The scaling and squaring method for the matrix exponential revisited" (2005), table 2.3.
_PADE = ((3, 1.495585217958292e-2), (5, 2.539398330063230e-1), (7, 9.504178996162932e-1), (9, 2.097847961257068))
_LARGEST = 5.371920351148152


def _pade(A: Tensor, degree: int) -> Tensor:
    """The approximant of ``degree``, even and odd powers apart."""
    c = [math.factorial(2 * degree - j) / (math.factorial(degree - j) * math.factorial(j)) for j in range(degree + 1)]
    c = [x / c[0] for x in c]
    one, square = eye_like(A), matmul(A, A)
    even, odd, power = one * c[0], one * c[1], one
    for j in range(2, degree + 1, 2):
        power = square if j == 2 else matmul(power, square)
        even = even + power * c[j]
        if j + 1 <= degree:
            odd = odd + power * c[j + 1]
    odd = matmul(A, odd)
    return linalg_solve_ex(even - odd, even + odd).result.contiguous()


@primitive(batch="leading")
def matrix_exp(input):
    """The exponential of matrices, ``sum(input^k / k!)``: the solution at time 1 of ``x' = input @ x``. By Pade
    approximants, scaling and squaring (Higham 2005).

    Args:
        input: square matrices ``(..., n, n)``, floating point or complex.
    Returns:
        ``(..., n, n)``.
    Raises:
        RuntimeError: the matrices are not square.
    Examples:
        >>> taeda.matrix_exp(taeda.tensor([[0.0, 1.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [0., 1.]])
    """
    half = isinstance(input, Tensor) and input.is_floating_point() and input.dtype.itemsize == 2
    if half:  # as everywhere, computed in float32
        return matrix_exp(input.float()).to(input.dtype)
    check(input, "linalg.matrix_exp")
    if not input.numel():
        return input.clone()
    if input.shape[-1] == 1:
        return input.exp()
    if input.is_meta:  # how often it squares depends on values
        return _squared(input, 1)
    norms = input.abs().sum(-2).amax(-1)
    norm = float(norms.amax())
    if not math.isfinite(norm) and input.dim() > 2:  # the others of the batch know nothing of it
        bad = ~norms.isfinite()[..., None, None]
        return matrix_exp(input.masked_fill(bad, 0)).masked_fill(bad, math.nan)
    if not math.isfinite(norm):
        return input * math.nan if math.isnan(norm) else _squared(input, 0)
    for degree, limit in _PADE:
        if norm <= limit:
            return _pade(input, degree)
    if norm <= _LARGEST or input.dim() == 2:
        return _squared(input, max(0, math.ceil(math.log2(norm / _LARGEST))))
    # The matrices of a batch are scaled each as it needs, and squared until the largest is done.
    times = (norms / _LARGEST).log2().ceil().clamp(min=0)
    result = _pade(input * (-times).exp2().to(input.dtype)[..., None, None], 13)
    for k in range(int(times.amax())):
        result = where((times > k)[..., None, None], matmul(result, result), result)
    return result


def _squared(A: Tensor, times: int) -> Tensor:
    result = _pade(A * 2.0**-times, 13)
    for _ in range(times):
        result = matmul(result, result)
    return result


@matrix_exp.vjp_all("input")
def _matrix_exp_backward(g, input):
    """A block of the exponential of a matrix twice as large (Mathias, "A chain rule for matrix functions", 1996)."""
    n = input.shape[-1]
    A = H(input)
    top, bottom = cat((A, g), -1), cat((A.new_zeros(A.shape), A), -1)
    return (matrix_exp(cat((top, bottom), -2))[..., :n, n:],)


alias(matrix_exp, "linalg_matrix_exp", method=False)


# ---- vectors ---------------------------------------------------------------------------------------------------------


@composite(out="same", out_apart=("input", "other"))
def cross(input, other, dim=None):
    """The cross product of vectors of three elements, at right angles to both: ``(a2 b3 - a3 b2, a3 b1 - a1 b3, a1 b2 -
    a2 b1)``.

    Args:
        input: a tensor with 3 elements in ``dim``.
        other: another; the other dimensions broadcast.
        dim: the dimension of the vectors. Default: the first of size 3. Name it: that depends on the other sizes.
    Returns:
        The sizes to which both broadcast, of the dtype that both have.
    Raises:
        RuntimeError: the dimension has another size.
    Examples:
        >>> taeda.cross(taeda.tensor([1, 0, 0]), taeda.tensor([0, 1, 0]), dim=0)
        tensor([0, 0, 1])
    """
    if dim is None:
        package = Size.__module__
        warn_once(
            f"Using {package}.cross without specifying the dim arg is deprecated.\n"
            f"Please either pass the dim explicitly or simply use {package}.linalg.cross."
        )
        dim = next((d for d in range(input.dim()) if input.shape[d] == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
        if other.dim() == input.dim() and other.shape[dim] != 3:
            raise RuntimeError(
                f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and "
                f"{other.shape[dim]}"
            )
    return linalg_cross(input, other, dim=dim)


@composite(method=False, out="same", out_apart=("input", "other"))
def linalg_cross(input, other, *, dim=-1):
    """The cross product of vectors of three elements, at right angles to both: ``(a2 b3 - a3 b2, a3 b1 - a1 b3, a1 b2 -
    a2 b1)``. The rest as of :func:`cross`.

    Args:
        dim: the dimension of the vectors.
    Examples:
        >>> taeda.linalg.cross(taeda.tensor([1, 0, 0]), taeda.tensor([0, 1, 0]))
        tensor([0, 0, 1])
    """
    check_same_dtype("linalg.cross", input, other)
    if input.dim() != other.dim():
        raise RuntimeError(
            f"linalg.cross: inputs must have the same number of dimensions, got {list(input.shape)} and "
            f"{list(other.shape)}"
        )
    dim = wrapped_dim(dim, input.dim(), "linalg.cross")
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
        )
    return input.roll(-1, dim) * other.roll(-2, dim) - input.roll(-2, dim) * other.roll(-1, dim)


@composite(method=False, out="same", autocast="lower")
def linalg_vecdot(x, y, *, dim=-1):
    """Inner products along ``dim``: sums of ``conj(x) * y``.

    Args:
        x: a tensor.
        y: a tensor; the two broadcast.
        dim: the dimension of the vectors.
    Returns:
        The sizes to which both broadcast, without ``dim``.
    Raises:
        RuntimeError: the sizes in ``dim`` differ.
    Examples:
        >>> taeda.linalg.vecdot(taeda.tensor([[1, 2], [3, 4]]), taeda.tensor([1, 10]))
        tensor([21, 43])
    """
    check_same_dtype("linalg.vecdot", x, y)
    return (x.conj_physical() * y).sum(dim)


@composite(method=False)
def linalg_vander(x, *, N: int | None = None):
    """Rows of powers: ``out[..., i, j] = x[..., i] ** j``.

    Args:
        x: ``(..., n)``.
        N: how many powers. Default: ``n``.
    Returns:
        ``(..., n, N)``.
    Raises:
        RuntimeError: ``N`` is below 2.
    Examples:
        >>> taeda.linalg.vander(taeda.tensor([1, 2, 3]))
        tensor([[1, 1, 1],
                [1, 2, 4],
                [1, 3, 9]])
    """
    if x.dtype.name == "bool":
        x = x.to(int64)
    x = x if x.dim() else x.unsqueeze(0)
    N = x.shape[-1] if N is None else N
    if N <= 1:
        raise RuntimeError(f"N must be greater than 1, got {N}")
    powers = x.unsqueeze(-1).expand(*x.shape, N - 1).cumprod(-1)
    return cat((x.new_ones((*x.shape, 1), dtype=powers.dtype), powers), -1)


# ---- chains ----------------------------------------------------------------------------------------------------------


@composite(method=False, out="same", autocast="lower")
def linalg_multi_dot(tensors):
    """The product of several matrices, in the order that needs the fewest multiplications.

    Args:
        tensors: a list of two or more matrices; the first and the last may be vectors.
    Returns:
        Their product.
    Raises:
        RuntimeError: the sizes do not fit, or there is only one.
    Examples:
        >>> a, b, c = taeda.ones(2, 30), taeda.ones(30, 40), taeda.ones(40)
        >>> taeda.linalg.multi_dot([a, b, c])  # b @ c first
        tensor([1200., 1200.])
    """
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for i, x in enumerate(tensors):
        inner = 0 < i < len(tensors) - 1
        if x.dim() not in ((2,) if inner else (1, 2)):
            raise RuntimeError(
                f"multi_dot(): tensor {i} must be {'2D' if inner else '1D or 2D'} but got {x.dim()}D: shape "
                f"{list(x.shape)}"
            )
        if x.dtype is not tensors[0].dtype:
            raise RuntimeError(f"multi_dot(): expected tensors of one dtype, got {tensors[0].dtype} and {x.dtype}")
    for i, (a, b) in enumerate(itertools.pairwise(tensors)):
        if a.shape[-1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a.shape)} and {list(b.shape)} cannot be "
                "multiplied"
            )
    first, last = tensors[0], tensors[-1]
    middle = [first[None] if first.dim() == 1 else first, *tensors[1:-1], last[:, None] if last.dim() == 1 else last]
    made = chain_matmul(*middle)
    return made.reshape(made.shape[: 2 - (last.dim() == 1)][first.dim() == 1 :])

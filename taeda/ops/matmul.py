"""Products of matrices and vectors. The arithmetic is ``_core.gemm``; here are the ranks, the checks and the
derivatives."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import Composite, Size, Tensor, bool_, gemm, install, renamed
from .._core import tensor as core
from .._warn import warn_once
from . import flops
from .copies import convert
from .creation import eye
from .pointwise import addcmul, check_factor
from .table import METHODS, composite, primitive
from .views import broadcast_shapes, reshape, sum_to, transpose, unsqueeze


def _conj(x: Tensor) -> Tensor:
    return x.conj_physical() if x.is_complex() else x


def _transposed(x: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    return transpose(x.conj_physical() if x.is_complex() else x, -2, -1)


def _rows(x: Tensor) -> Tensor:
    """All leading dimensions as one."""
    return x if x.dim() == 2 else reshape(x, (-1, x.shape[-1]) if x.numel() else (x.shape[:-1].numel(), x.shape[-1]))


# ---- any rank --------------------------------------------------------------------------------------------------------


def _rank(saved, name):
    x = saved.get(name)
    return len(saved[name + "_shape"]) if name + "_shape" in saved else 2 if x is None else x.dim()


def _product_name(saved):
    """PyTorch's name for the product of these ranks."""
    names = {(2, 2): "Mm", (2, 1): "Mv", (1, 1): "Dot", (1, 2): "Squeeze"}
    return names.get((_rank(saved, "input"), _rank(saved, "other")), "UnsafeView")


def _linear_name(saved):
    """PyTorch's name for a layer with or without bias, of rows or of anything."""
    if _rank(saved, "input") == 2:
        return "Addmm" if "bias_shape" in saved else "Mm"
    return "View" if "bias_shape" in saved else "UnsafeView"


@primitive(
    gemm.matmul, node=_product_name, flops=flops.product, sums_over=-1, out="same", autocast="lower",
    samples=lambda m: [((m(3, 4), m(4, 2)), {}), ((m(2, 3, 4), m(4, 2)), {}), ((m(4), m(2, 4, 3)), {})],
)  # fmt: skip
def matmul(input, other: Tensor):
    """The matrix product ``input @ other``: ``out[..., i, j]`` is the sum of ``input[..., i, k] * other[..., k, j]``
    over ``k``.

    Args:
        input: a vector ``(k,)``, a matrix ``(m, k)`` or a batch of them ``(..., m, k)``.
        other: ``(k,)`` or ``(..., k, n)``, of the same dtype; leading dimensions broadcast.
    Returns:
        ``(..., m, n)``, without ``m`` or ``n`` where that operand is a vector.
    Raises:
        RuntimeError: the inner sizes or the dtypes differ, leading dimensions do not broadcast, or an operand has no
            dimension.
    Examples:
        >>> a = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> taeda.matmul(a, a)
        tensor([[ 7., 10.],
                [15., 22.]])
        >>> a @ taeda.tensor([1.0, 10.0])
        tensor([21., 43.])
        >>> taeda.matmul(taeda.zeros(8, 1, 5, 3), taeda.zeros(4, 3, 2)).shape
        taeda.Size([8, 4, 5, 2])
    """


def _matmul_by_bmm(input, other):
    if input.dim() == 1:
        return _matmul_by_bmm(input.unsqueeze(0), other).squeeze(-1 if other.dim() == 1 else -2)
    if other.dim() == 1:
        return _matmul_by_bmm(input, other.unsqueeze(1)).squeeze(-1)
    if input.dim() == other.dim() == 2:
        return input.mm(other)
    batch = input.shape[:-2]
    if batch != other.shape[:-2]:
        batch = broadcast_shapes(batch, other.shape[:-2])
        input, other = (x.expand((*batch, *x.shape[-2:])) for x in (input, other))
    left, right = (x.reshape((-1, *x.shape[-2:])) for x in (input, other))
    return left.bmm(right).reshape((*batch, input.shape[-2], other.shape[-1]))


matmul.traits["lowering"] = _matmul_by_bmm


@composite(method=False)
def rmatmul(input: Any, other):
    """``other @ input``."""
    return matmul(other, input)


def _matmul_input(g, input_shape, other):
    if other.dim() == 2 and g.dim() > 1:
        return matmul(g, _transposed(other))
    if other.dim() == 1:
        if len(input_shape) == 1:
            return g * _conj(other)
        return unsqueeze(g, -1) * _conj(other)
    if len(input_shape) == 1:
        r = reshape(matmul(_conj(other), unsqueeze(g, -1)), (*other.shape[:-2], *input_shape))
        return sum_to(r, input_shape)
    return sum_to(matmul(g, _transposed(other)), input_shape)


def _matmul_other(g, input, other_shape):
    if len(other_shape) == 2 and input.dim() == 2:
        return matmul(_transposed(input), g)
    if len(other_shape) == 1:
        if input.dim() == 1:
            return g * _conj(input)
        return matmul(transpose(_rows(_conj(input)), 0, 1), reshape(g, (-1,)))
    if input.dim() == 1:
        return sum_to(unsqueeze(_conj(input), -1) * unsqueeze(g, -2), other_shape)
    if len(other_shape) == 2:  # one product over all rows, rather than a sum of products
        return matmul(_transposed(_rows(input)), _rows(g))
    return sum_to(matmul(_transposed(input), g), other_shape)


matmul.vjp(input=_matmul_input, other=_matmul_other)


@primitive(method=False, flops=flops.product)
def _int_mm(input, mat2):
    """The product of two int8 matrices, ``[m, k]`` and ``[k, n]``, in int32.

    Args:
        input: ``(m, k)``, int8.
        mat2: ``(k, n)``, int8.
    Raises:
        RuntimeError: an operand is not a matrix of int8, or the inner sizes differ.
    """
    for label, x in (("self", input), ("mat2", mat2)):
        if x.dim() != 2:
            raise RuntimeError(f"_int_mm: Expected {label} to be of dimension 2 but got {x.dim()}")
        if x.dtype.name != "int8":
            raise RuntimeError(f"_int_mm: Expected {label} dtype to be of type int8 but got {x.dtype.name}")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"_int_mm: self.size(1) needs to match mat2.size(0) but got {input.shape[1]} and {mat2.shape[0]}"
        )
    return gemm.multiply_bytes(input, mat2)


@primitive(
    gemm.linear, method=False, node=_linear_name, flops=flops.product, sums_over=-1, out="same", autocast="lower"
)
def linear(input, weight: Tensor, bias=None):
    """``input @ weight.T + bias``: every output is a weighted sum of all inputs.

    Args:
        input: ``(*, n_in)``; floating-point or complex.
        weight: ``(n_out, n_in)`` or ``(n_in,)``, of the same dtype.
        bias: ``(n_out,)``, or None.

    Returns:
        ``(*, n_out)``, or ``(*)`` where ``weight`` has one dimension.

    Raises:
        RuntimeError: sizes or dtypes do not match.

    Examples:
        >>> F.linear(taeda.tensor([[1.0, 2.0]]), taeda.tensor([[1.0, 0.0], [10.0, 1.0]]), taeda.tensor([0.0, 0.5]))
        tensor([[ 1.0000, 12.5000]])
    """


def _linear_by_mm(input, weight, bias):
    rows = input.reshape(-1, input.shape[-1])
    made = rows.mm(weight.t()) if bias is None else bias.addmm(rows, weight.t())
    return made if input.dim() == 2 else made.reshape((*input.shape[:-1], weight.shape[0]))


linear.traits["lowering"] = _linear_by_mm


def _linear_input(g, weight):
    return matmul(g, _conj(weight)) if weight.dim() == 2 else unsqueeze(g, -1) * _conj(weight)


def _linear_weight(g, input, weight_shape):
    if len(weight_shape) == 1:
        return _matmul_other(g, input, weight_shape)
    return matmul(transpose(_rows(g), 0, 1), _rows(_conj(input)))


linear.vjp(input=_linear_input, weight=_linear_weight, bias=lambda g, bias_shape: sum_to(g, bias_shape))


@composite(method=False, autocast="widest")
def bilinear(input1, input2, weight, bias=None):
    """A number for each pair of vectors: ``y[..., o] = input1[..., i] * weight[o, i, j] * input2[..., j] + bias[o]``,
    summed over ``i`` and ``j``.

    Args:
        input1: ``(..., in1)``.
        input2: ``(..., in2)``, with the same leading sizes.
        weight: ``(out, in1, in2)``.
        bias: ``(out,)`` or None.
    Returns:
        ``(..., out)``, of the dtype that all have.
    Raises:
        RuntimeError: the sizes do not fit.
    Examples:
        >>> x, y = taeda.tensor([[1.0, 2.0]]), taeda.tensor([[3.0, 4.0]])
        >>> taeda.bilinear(x, y, taeda.eye(2)[None])  # with the identity the inner product
        tensor([[11.]])
    """
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear: leading sizes differ: input1 {tuple(input1.shape)}, input2 {tuple(input2.shape)}"
        )
    if tuple(weight.shape[1:]) != (input1.shape[-1], input2.shape[-1]):
        raise RuntimeError(
            f"bilinear: weight {tuple(weight.shape)} expects inputs of {weight.shape[1]} and {weight.shape[2]} "
            f"features, got {input1.shape[-1]} and {input2.shape[-1]}"
        )
    if bias is not None and (bias.dtype is not input1.dtype or tuple(bias.shape) != tuple(weight.shape[:1])):
        raise RuntimeError(
            f"bilinear: expected bias of {input1.dtype} and size {weight.shape[0]}, got {bias.dtype} "
            f"{tuple(bias.shape)}"
        )
    a, b = _rows(input1), _rows(input2)
    # For every output the rows of a through its matrix, then row by row against b.
    through = transpose(matmul(a, weight), 0, 1)  # [rows, out, j]
    y = reshape(matmul(through, unsqueeze(b, -1)), (*input1.shape[:-1], weight.shape[0]))
    return y if bias is None else y + bias


# ---- fixed rank ------------------------------------------------------------------------------------------------------


def _check_bmm(name: str, input: Tensor, mat2: Tensor) -> None:
    a, b = ("input", "mat2") if name == "bmm" else ("batch1", "batch2")
    gemm.need_rank(name, a, input, 3)
    gemm.need_rank(name, b, mat2, 3)
    (batches, _, k), (others, rows, _) = input.shape, mat2.shape
    if batches != others or k != rows:
        raise RuntimeError(
            f"{name}: Expected size for first two dimensions of {b} tensor to be: "
            f"[{batches}, {k}] but got: [{others}, {rows}]."
        )


@primitive(gemm.mm, flops=flops.product, sums_over=-1, out="same", autocast="lower", canonical=True)
def mm(input, mat2):
    """The product of two matrices; see :func:`matmul` for batches and vectors.

    Args:
        input: ``(m, k)``.
        mat2: ``(k, n)``, of the same dtype.
    Returns:
        ``(m, n)``, of that dtype.
    Raises:
        RuntimeError: the shapes do not fit, or the dtypes differ.
    Examples:
        >>> taeda.mm(taeda.tensor([[1, 2], [3, 4]]), taeda.tensor([[1], [10]]))
        tensor([[21],
                [43]])
    """


mm.vjp(input=lambda g, mat2: mm(g, _transposed(mat2)), mat2=lambda g, input: mm(_transposed(input), g))


@primitive(
    flops=flops.product, out="same", autocast="lower", canonical=True,
    samples=lambda m: [((m(2, 3, 4), m(2, 4, 2)), {})],
)  # fmt: skip
def bmm(input, mat2):
    """The products of matrices, one per batch: ``out[b] = input[b] @ mat2[b]``. Batches do not broadcast; see
    :func:`matmul`.

    Args:
        input: ``(b, m, k)``.
        mat2: ``(b, k, n)``, of the same dtype.
    Returns:
        ``(b, m, n)``, of that dtype.
    Raises:
        RuntimeError: the shapes do not fit, or the dtypes differ.
    Examples:
        >>> taeda.bmm(taeda.ones(10, 3, 4), taeda.ones(10, 4, 5)).shape
        taeda.Size([10, 3, 5])
    """
    _check_bmm("bmm", input, mat2)
    return gemm.matmul(input, mat2)


bmm.vjp(input=lambda g, mat2: bmm(g, _transposed(mat2)), mat2=lambda g, input: bmm(_transposed(input), g))


@primitive(gemm.mv, flops=flops.product, out="same")
def mv(input, vec):
    """The product of a matrix and a vector.

    Args:
        input: ``(m, k)``.
        vec: ``(k,)``, of the same dtype.
    Returns:
        ``(m,)``, of that dtype.
    Raises:
        RuntimeError: the shapes do not fit, or the dtypes differ.
    Examples:
        >>> taeda.mv(taeda.tensor([[1, 2], [3, 4]]), taeda.tensor([1, 10]))
        tensor([21, 43])
    """


mv.traits["lowering"] = lambda input, vec: input.mm(vec.unsqueeze(1)).squeeze(1)


mv.vjp(input=lambda g, vec: unsqueeze(g, -1) * _conj(vec), vec=lambda g, input: mv(_transposed(input), g))


@primitive(flops=flops.product, out="same")
def dot(input, tensor):
    """The inner product of two vectors: the sum of ``input[i] * tensor[i]``. Complex numbers are not conjugated; see
    :func:`vdot`.

    Args:
        input: a vector.
        tensor: a vector of the same size and dtype.
    Returns:
        A tensor without dimensions, of that dtype.
    Raises:
        RuntimeError: an argument is no vector, or the sizes or the dtypes differ.
    Examples:
        >>> taeda.dot(taeda.tensor([1, 2, 3]), taeda.tensor([4, 5, 6]))
        tensor(32)
    """
    gemm.check_dot("dot", input, tensor)
    sums = gemm.dot(input, tensor)
    if sums is None:
        return (input * tensor).sum(dtype=input.dtype)
    return convert(sums if sums.dim() == 0 else sums.sum(), input.dtype)


dot.traits["lowering"] = lambda input, tensor: (input * tensor).sum(dtype=input.dtype)


dot.vjp(input=lambda g, tensor: g * _conj(tensor), tensor=lambda g, input: g * _conj(input))


@composite(out="same")
def vdot(input, other):
    """The inner product of two vectors, the first conjugated: the sum of ``conj(input[i]) * other[i]``.

    Args:
        input: a vector.
        other: a vector of the same size and dtype.
    Returns:
        A tensor without dimensions, of that dtype.
    Raises:
        RuntimeError: an argument is no vector, or the sizes or the dtypes differ.
    Examples:
        >>> z = taeda.tensor([1 + 2j, 3j])
        >>> taeda.vdot(z, z)  # the square of its length
        tensor(14.+0.j)
    """
    gemm.check_dot("vdot", input, other)
    return _vdot(input, other) if input.is_complex() else dot(input, other)


@primitive(method=False, out=False, flops=flops.product, node="Vdot")
def _vdot(input, other):
    """:func:`vdot` of complex vectors."""
    sums = gemm.dot(input, other, True)
    if sums is None:
        return (input.conj_physical() * other).sum()
    return sums if sums.dim() == 0 else sums.sum()


_vdot.vjp(input=lambda g, other: _conj(g) * other, other=lambda g, input: g * input)


@composite(out="same", out_aligned=("other",))
def inner(input, other):
    """The sums of products along the last dimensions: ``out[..., ---]`` is the sum of ``input[..., k] * other[---,
    k]``.

    Args:
        input: ``(..., k)``; a tensor without dimensions multiplies.
        other: ``(---, k)``, of the same dtype.
    Returns:
        ``(..., ---)``.
    Raises:
        RuntimeError: the last sizes differ.
    Examples:
        >>> taeda.inner(taeda.tensor([[1, 2], [3, 4]]), taeda.tensor([1, 10]))
        tensor([21, 43])
    """
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and "
            f"{list(other.shape)}"
        )
    if input.dim() == 1 and other.dim() == 1:
        return dot(input, other)
    r = matmul(_rows(input), transpose(_rows(other), 0, 1))
    return reshape(r, (*input.shape[:-1], *other.shape[:-1]))


@composite(names=("ger",), out=True, out_apart=("input", "vec2"))
def outer(input, vec2):
    """The products of every pair: ``out[i, j] = input[i] * vec2[j]``.

    Args:
        input: a vector ``(n,)``.
        vec2: a vector ``(m,)``.
    Returns:
        ``(n, m)``, in the dtype to which both promote.
    Raises:
        RuntimeError: an argument is no vector.
    Examples:
        >>> taeda.outer(taeda.tensor([1, 2, 3]), taeda.tensor([1, 10]))
        tensor([[ 1, 10],
                [ 2, 20],
                [ 3, 30]])
    """
    if input.dim() != 1 or vec2.dim() != 1:
        label, n = ("self", input.dim()) if input.dim() != 1 else ("vec2", vec2.dim())
        raise RuntimeError(f"outer: Expected 1-D argument {label}, but got {n}-D")
    return unsqueeze(input, -1) * vec2


ger = renamed(outer, "ger")


@composite(method=False, autocast="lower")
def chain_matmul(*matrices):
    """The product of several matrices in the order that takes the fewest multiplications. Deprecated: use
    :func:`taeda.linalg.multi_dot`, which takes a list.

    Args:
        matrices: two or more matrices.
    Returns:
        Their product, a matrix of the dtype that all have.
    Raises:
        RuntimeError: the sizes do not fit.
    Examples:
        >>> import warnings
        >>> a, b, c = taeda.ones(2, 3), taeda.ones(3, 4), taeda.ones(4, 2)
        >>> with warnings.catch_warnings(action="ignore"):
        ...     taeda.chain_matmul(a, b, c)
        tensor([[12., 12.],
                [12., 12.]])
    """
    package = Size.__module__
    warn_once(f"{package}.chain_matmul is deprecated. Use {package}.linalg.multi_dot, which takes a list.")
    return multi_dot(matrices[0] if len(matrices) == 1 and not isinstance(matrices[0], Tensor) else matrices)


def multi_dot(tensors):
    """Product of matrices (the first and last may be vectors), in the order that takes the fewest multiplications."""
    if isinstance(tensors, Tensor) or not hasattr(tensors, "__iter__"):
        raise TypeError(
            f"multi_dot(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("multi_dot(): expected at least 1 tensor but got 0")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"multi_dot(): expected Tensor as element {i} of 'tensors', not {type(x).__name__}")
    if len(tensors) < 3:
        return tensors[0] if len(tensors) == 1 else matmul(*tensors)
    sizes = [1 if tensors[0].dim() == 1 else tensors[0].shape[0], *(x.shape[0] for x in tensors[1:])]
    sizes.append(1 if tensors[-1].dim() == 1 else tensors[-1].shape[-1])
    sizes[1] = tensors[0].shape[-1]
    n = len(tensors)
    if n == 3:  # PyTorch's order where costs are equal
        a, b, c, d = sizes
        x, y, z = tensors
        return matmul(x, matmul(y, z)) if a * c * (b + d) > b * d * (a + c) else matmul(matmul(x, y), z)
    cost = [[0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for length in range(1, n):  # the textbook dynamic programme over sub-chains
        for i in range(n - length):
            j = i + length
            best = [cost[i][c] + cost[c + 1][j] + sizes[i] * sizes[c + 1] * sizes[j + 1] for c in range(i, j)]
            cost[i][j] = min(best)
            cut[i][j] = i + best.index(cost[i][j])

    def product(i, j):
        return tensors[i] if i == j else matmul(product(i, cut[i][j]), product(cut[i][j] + 1, j))

    return product(0, n - 1)


@composite(out=True)
def matrix_power(input, n):
    """``input @ input @ ...``, ``n`` times, by repeated squaring.

    Args:
        input: square matrices ``(..., m, m)``.
        n: a whole number; 0 gives the identity, negative ones take powers of the inverse.
    Returns:
        ``(..., m, m)``. The dtype is that of ``input``.
    Raises:
        RuntimeError: the matrices are not square.
    Examples:
        >>> fibonacci = taeda.tensor([[1, 1], [1, 0]])
        >>> taeda.matrix_power(fibonacci, 10)
        tensor([[89, 55],
                [55, 34]])
    """
    if input.dim() < 2 or input.shape[-1] != input.shape[-2]:
        raise RuntimeError(f"matrix_power: input must be batches of square matrices, got {tuple(input.shape)}")
    if n < 0:
        input, n = input.inverse(), -n
    if n == 0:
        return eye(input.shape[-1], dtype=input.dtype).expand(input.shape).clone()
    result = None
    while n:
        if n & 1:
            result = input if result is None else matmul(result, input)
        n = n >> 1  # not in place: it may be a tensor
        if n:
            input = matmul(input, input)
    return result.clone() if result is input else result


# ---- products that are added to something ----------------------------------------------------------------------------


def _scales(input: Tensor, *factors):
    """The factors as PyTorch reads them: numbers that the dtype holds, or float32 for the narrower ones."""
    dtype = input.dtype
    work = _core.float32 if dtype.is_floating_point and dtype.itemsize < 4 else dtype
    return [x if type(x) is int and x == 1 else _core.fitting(x, work) for x in factors]


def _check_addend(name: str, input: Tensor, shape: tuple) -> None:
    if not gemm.broadcasts_to(input, shape):
        raise RuntimeError(
            f"{name}: input of shape {tuple(input.shape)} cannot be broadcast to the product's shape {shape}: The "
            f"expanded size of the tensor must match the existing size at every non-singleton dimension"
        )


def _add(name: str, input: Tensor, a: Tensor, b: Tensor, shape: tuple, beta, alpha) -> Tensor:
    """``beta * input + alpha * (a @ b)``. The product is added to ``input`` as it is computed; only ``alpha`` needs
    another pass over the result.
    """
    _check_addend(name, input, shape)
    if input.dtype is not a.dtype:
        raise RuntimeError(
            f"{name}: expected input to have the dtype of the matrices, but got: {input.dtype.name} != {a.dtype.name}"
        )
    if beta.__class__ is int is alpha.__class__ and beta == 1 == alpha and not a.is_complex():  # the common case, first
        return gemm.multiply_add(name, a, b, input)
    whole = not (input.is_floating_point() or input.is_complex())
    if whole and not a.shape[-1] and beta and isinstance(beta, (float, complex)) and name != "addmv" and 0 not in shape:
        raise RuntimeError(  # PyTorch multiplies `input` by it where there is no product
            f"{name}: result type of a product with beta={beta} can't be cast to the desired output type {input.dtype}"
        )
    beta, alpha = _scales(input, beta, alpha)
    if beta and (beta != 1 or alpha != 1) and a.dtype.itemsize == 2 and a.is_floating_point():  # rounded once
        return _add(name, input.float(), a.float(), b.float(), shape, beta, alpha).to(a.dtype)
    small = input.numel() < math.prod(shape)
    if alpha == 1 and beta != 0 and not a.is_complex() and (beta == 1 or small):
        return gemm.multiply_add(name, a, b, input if beta == 1 else input * beta)
    product = gemm.matmul(a, b)
    if alpha != 1:
        product.mul_(alpha)
    if beta == 0:  # PyTorch: NaN in input is not propagated
        return product
    return product.add_(input, alpha=beta)


def _scaled(x: Tensor, by) -> Tensor:
    return x if by == 1 else x * (by.conjugate() if isinstance(by, complex) else by)


@primitive(
    inplace=True, flops=flops.added_product, out="same", out_aligned=("input",), factors=("beta", "alpha"),
    autocast="lower",
    canonical=True,
)  # fmt: skip
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """``beta * input + alpha * (mat1 @ mat2)``. With ``beta`` 0 ``input`` is not read, so NaN in it does not count.

    Args:
        input: a tensor that broadcasts to ``(m, n)``.
        mat1: ``(m, k)``.
        mat2: ``(k, n)``, of the same dtype.
        beta: a number.
        alpha: a number.
    Returns:
        ``(m, n)``.
    Raises:
        RuntimeError: the shapes do not fit, or the dtypes differ.
    Examples:
        >>> x, weight, bias = taeda.ones(2, 3), taeda.ones(3, 2), taeda.tensor([0.5, -0.5])
        >>> taeda.addmm(bias, x, weight)  # a linear layer
        tensor([[3.5000, 2.5000],
                [3.5000, 2.5000]])
    """
    gemm.need_rank("addmm", "mat1", mat1, 2)
    gemm.need_rank("addmm", "mat2", mat2, 2)
    (m, k), (rows, n) = mat1.shape, mat2.shape
    if k != rows:
        gemm.matmul(mat1, mat2)  # raises
    return _add("addmm", input, mat1, mat2, (m, n), beta, alpha)


addmm.vjp(
    input=lambda g, input_shape, beta: sum_to(_scaled(g, beta), input_shape),
    mat1=lambda g, mat2, alpha: _scaled(mm(g, _transposed(mat2)), alpha),
    mat2=lambda g, mat1, alpha: _scaled(mm(_transposed(mat1), g), alpha),
)


@primitive(inplace=True, flops=flops.added_product, out="same", out_aligned=("input",), factors=("beta", "alpha"))
def addmv(input, mat, vec, *, beta=1, alpha=1):
    """``beta * input + alpha * (mat @ vec)``. With ``beta`` 0 ``input`` is not read. The rest as of :func:`addmm`.

    Args:
        input: a tensor that broadcasts to ``(m,)``.
        mat: ``(m, k)``.
        vec: ``(k,)``, of the same dtype.
    Returns:
        ``(m,)``.
    Examples:
        >>> taeda.addmv(taeda.tensor([1, 1]), taeda.tensor([[1, 2], [3, 4]]), taeda.tensor([1, 10]))
        tensor([22, 44])
    """
    gemm.need_rank("addmv", "mat", mat, 2)
    gemm.need_rank("addmv", "vec", vec, 1)
    if mat.shape[1] != vec.shape[0]:
        gemm.matmul(mat, vec)  # raises
    _check_addend("addmv", input, (mat.shape[0],))
    column = input if input.dim() == 0 else unsqueeze(input, -1)
    return reshape(_add("addmv", column, mat, unsqueeze(vec, -1), (mat.shape[0], 1), beta, alpha), (mat.shape[0],))


addmv.traits["lowering"] = lambda input, mat, vec, beta, alpha: input * beta + mat.mv(vec) * alpha


addmv.vjp(
    input=lambda g, input_shape, beta: sum_to(_scaled(g, beta), input_shape),
    mat=lambda g, vec, alpha: _scaled(outer(g, _conj(vec)), alpha),
    vec=lambda g, mat, alpha: _scaled(mv(_transposed(mat), g), alpha),
)


@primitive(
    inplace=True, flops=flops.added_product, out="same", out_aligned=("input",), factors=("beta", "alpha"),
    autocast="lower",
)  # fmt: skip
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """``beta * input + alpha * (batch1 @ batch2)``, batch by batch. With ``beta`` 0 ``input`` is not read.
    The rest as of :func:`addmm`.

    Args:
        input: a tensor that broadcasts to ``(b, m, n)``.
        batch1: ``(b, m, k)``.
        batch2: ``(b, k, n)``, of the same dtype.
    Returns:
        ``(b, m, n)``.
    Examples:
        >>> query, key, mask = taeda.ones(1, 2, 4), taeda.ones(1, 4, 2), taeda.tensor([[0.0, -9.0], [0.0, 0.0]])
        >>> taeda.baddbmm(mask, query, key, alpha=0.5)  # scores of attention
        tensor([[[ 2., -7.],
                 [ 2.,  2.]]])
    """
    _check_bmm("baddbmm", batch1, batch2)
    shape = (batch1.shape[0], batch1.shape[1], batch2.shape[2])
    return _add("baddbmm", input, batch1, batch2, shape, beta, alpha)


baddbmm.traits["lowering"] = lambda input, batch1, batch2, beta, alpha: input * beta + batch1.bmm(batch2) * alpha


baddbmm.vjp(
    input=lambda g, input_shape, beta: sum_to(_scaled(g, beta), input_shape),
    batch1=lambda g, batch2, alpha: _scaled(bmm(g, _transposed(batch2)), alpha),
    batch2=lambda g, batch1, alpha: _scaled(bmm(_transposed(batch1), g), alpha),
)


@composite(out="same", out_aligned=("input",), factors=("beta", "alpha"), autocast="lower")
def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """``beta * input + alpha * sum_b(batch1[b] @ batch2[b])``: one product, with the batch folded into the sum.
    The rest as of :func:`addmm`.

    Args:
        batch1: ``(b, m, k)``.
        batch2: ``(b, k, n)``, of the same dtype.
        beta: a number; with 0 ``input`` is not read.

    Raises:
        RuntimeError: the sizes do not fit, or the dtypes of the batches differ.

    Examples:
        >>> taeda.addbmm(taeda.zeros(2, 2), taeda.ones(5, 2, 3), taeda.ones(5, 3, 2))
        tensor([[15., 15.],
                [15., 15.]])
    """
    _check_bmm("addbmm", batch1, batch2)
    b, m, k = batch1.shape
    wide = reshape(transpose(batch1, 0, 1), (m, b * k))
    return addmm(input, wide, reshape(batch2, (b * k, batch2.shape[2])), beta=beta, alpha=alpha)


def _addbmm_inplace(input, batch1, batch2, *, beta=1, alpha=1):
    """In-place form of :func:`addbmm`. Where ``input`` is broadcast it becomes the result, of the result's size, as in
    PyTorch.

    Args:
        input: a tensor that broadcasts to ``(m, n)``.
        batch1: ``(b, m, k)``.
        batch2: ``(b, k, n)``, of the same dtype.
        beta: a number.
        alpha: a number.
    Returns:
        ``input``.
    Examples:
        >>> taeda.zeros(2, 2).addbmm_(taeda.ones(5, 2, 3), taeda.ones(5, 3, 2))
        tensor([[15., 15.],
                [15., 15.]])
    """
    result = addbmm(input, batch1, batch2, beta=beta, alpha=alpha)
    return input.copy_(result) if input.shape == result.shape else core.change_form(input, result)


_addbmm_inplace.factors, _addbmm_inplace.functional = ("beta", "alpha"), addbmm  # type: ignore[attr-defined]
METHODS["addbmm_"] = Composite(_addbmm_inplace, "addbmm_")
install("addbmm_", METHODS["addbmm_"])


@composite(inplace=True, out=True, out_aligned=("input",), factors=("beta", "alpha"))
def addr(input, vec1, vec2, *, beta=1, alpha=1):
    """``beta * input + alpha * outer(vec1, vec2)``. Arguments as of :func:`addbmm`.

    Args:
        input: a tensor that broadcasts to ``(n, m)``.
        vec1: a vector ``(n,)``.
        vec2: a vector ``(m,)``.
    Returns:
        ``(n, m)``, of the dtype to which all promote.
    Raises:
        RuntimeError: an argument is no vector, or the sizes do not fit.
    Examples:
        >>> taeda.addr(taeda.zeros(2, 2), taeda.tensor([1.0, 2.0]), taeda.tensor([3.0, 4.0]))
        tensor([[3., 4.],
                [6., 8.]])
    """
    gemm.need_rank("addr", "vec1", vec1, 1)
    gemm.need_rank("addr", "vec2", vec2, 1)
    _check_addend("addr", input, (vec1.shape[0], vec2.shape[0]))
    dtype = input.dtype
    common = _core.promote_types(dtype, _core.promote_types(vec1.dtype, vec2.dtype))
    for name, x in (("beta", beta), ("alpha", alpha)):
        check_factor(name, x, common) if x != 1 or isinstance(x, bool) else None
    if common is not bool_:
        beta, alpha = _core.fitting(beta, common), _core.fitting(alpha, common)
    if (
        dtype is vec1.dtype is vec2.dtype
        and dtype.itemsize >= 4
        and (dtype.is_floating_point or dtype.is_complex)
        and beta
    ):
        return addcmul(input if beta == 1 else input * beta, vec1.unsqueeze(-1), vec2, value=alpha)
    product = outer(vec1.to(common), vec2.to(common))  # so that small integers do not wrap
    if common is bool_:  # numbers count as true or false
        alpha, beta = bool(alpha), bool(beta)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return (input if beta == 1 else input.to(common) * beta) + product

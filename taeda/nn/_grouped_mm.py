"""Products of groups of matrices of unequal sizes, and of float8 matrices with scales."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from .. import _core
from .._typed import Tensor
from ..ops.joining import cat, stack
from ..ops.matmul import matmul

__all__ = ["ScalingType", "SwizzleType", "grouped_mm", "scaled_mm"]


class ScalingType(enum.Enum):
    """Elements that share a scale in :func:`scaled_mm`."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.Enum):
    """The order of scales in memory in :func:`scaled_mm`."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """A matrix product for each of several groups, as of the experts in a mixture of experts.

    Where a factor is a matrix, its rows (of ``mat_a``), its columns (of ``mat_b``) or the dimension that is summed over
    (of both) is divided into the groups; a factor of three dimensions holds a matrix for each.

    Args:
        mat_a: ``(M, K)`` or ``(groups, M, K)``; float32, bfloat16 or float16.
        mat_b: ``(K, N)`` or ``(groups, K, N)``, of that dtype.
        offs: ``int32``, where each group ends; None if both factors have three dimensions.
        bias: must be None.
        out_dtype: must be the dtype of the factors, if given.

    Returns:
        ``(M, N)`` if one factor is a matrix, else ``(groups, M, N)``. Rows or columns behind the last group are zero.

    Raises:
        RuntimeError: the dtypes or sizes do not fit, or ``offs`` is missing, superfluous or not ascending.

    Examples:
        >>> tokens, experts = taeda.ones(3, 2), taeda.tensor([[[1.0], [1.0]], [[10.0], [10.0]]])
        >>> F.grouped_mm(tokens, experts, offs=taeda.tensor([1, 3], dtype=taeda.int32))
        tensor([[ 2.],
                [20.],
                [20.]])
    """
    for name, x in (("mat_a", mat_a), ("mat_b", mat_b)):
        if x.dtype not in (_core.float32, _core.bfloat16, _core.float16):
            raise RuntimeError(f"grouped_mm: expected {name} of float32, bfloat16 or float16, got {x.dtype}")
        if x.dim() not in (2, 3):
            raise RuntimeError(f"grouped_mm: expected {name} of 2 or 3 dimensions, got {x.dim()}")
    if mat_a.dtype != mat_b.dtype or out_dtype not in (None, mat_a.dtype):
        raise RuntimeError(
            f"grouped_mm: the factors and the result have one dtype, got {mat_a.dtype}, {mat_b.dtype} and {out_dtype}"
        )
    if bias is not None:
        raise RuntimeError("grouped_mm: bias is not supported; add it to the result")
    if (offs is None) != (mat_a.dim() == mat_b.dim() == 3):
        raise RuntimeError("grouped_mm: offs must be given if a factor is a matrix, and only then")
    if offs is None:
        if mat_a.shape[0] != mat_b.shape[0]:
            raise RuntimeError(f"grouped_mm: mat_a has {mat_a.shape[0]} groups, mat_b {mat_b.shape[0]}")
        return matmul(mat_a, mat_b)
    if offs.dtype is not _core.int32 or offs.dim() != 1:
        raise RuntimeError(f"grouped_mm: expected a vector of int32 for offs, got {offs.dtype} of {list(offs.shape)}")
    form, groups = (mat_a.dim(), mat_b.dim()), offs.shape[0]
    if form != (2, 2) and groups != (mat_a if form == (3, 2) else mat_b).shape[0]:
        raise RuntimeError(f"grouped_mm: offs has {groups} groups, the factor of three dimensions another number")
    if offs.is_meta:
        sizes = (mat_a.shape[-2], mat_b.shape[-1])
        return mat_a.new_empty((groups, *sizes) if form == (2, 2) else sizes)
    size = mat_b.shape[1] if form == (3, 2) else mat_a.shape[form == (2, 2)]
    ends = [0, *(min(end, size) for end in offs.tolist())]
    if ends != sorted(ends):
        raise RuntimeError(f"grouped_mm: expected ascending ends of groups in offs, got {offs.tolist()}")
    spans = [slice(start, end) for start, end in pairwise(ends)]
    if form == (2, 2) and groups == 0:
        return mat_a.new_zeros((0, mat_a.shape[0], mat_b.shape[1]))
    if form == (2, 2):
        return stack([matmul(mat_a[:, span], mat_b[span]) for span in spans])
    if form == (2, 3):
        made = [matmul(mat_a[span], b) for span, b in zip(spans, mat_b.unbind(), strict=True)]
    else:
        made = [matmul(a, mat_b[:, span]) for span, a in zip(spans, mat_a.unbind(), strict=True)]
    dim, left = form[0] - 2, size - ends[-1]
    rest = mat_a.new_zeros((left, mat_b.shape[-1]) if dim == 0 else (mat_a.shape[1], left))
    return cat([*made, rest], dim)


def _only(x: Any) -> Any:
    return x[0] if isinstance(x, list) and len(x) == 1 else x


def _checked(scale: Tensor, recipe: Any, shape: tuple[int, int]) -> Tensor:
    if recipe not in (ScalingType.TensorWise, ScalingType.RowWise):
        raise NotImplementedError(f"scaled_mm: {recipe} is not supported, use ScalingType.TensorWise or RowWise")
    fits = scale.numel() == 1 if recipe is ScalingType.TensorWise else tuple(scale.shape) == shape
    if not fits or scale.dtype is not _core.float32:
        raise ValueError(
            f"scaled_mm: expected a float32 scale of {'one number' if recipe is ScalingType.TensorWise else shape} for "
            f"{recipe.name}, got {scale.dtype} of {list(scale.shape)}"
        )
    return scale.reshape(()) if recipe is ScalingType.TensorWise else scale


def scaled_mm(
    mat_a: Tensor, mat_b: Tensor, scale_a: Any, scale_recipe_a: Any, scale_b: Any, scale_recipe_b: Any,
    swizzle_a: Any = None, swizzle_b: Any = None, bias: Tensor | None = None, output_dtype: Any = _core.bfloat16,
    contraction_dim: Sequence[int] = (), use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """The product of two float8 matrices times scales, plus ``bias``, computed in float32.

    Args:
        mat_a: ``(M, K)``, float8.
        mat_b: ``(K, N)``, float8.
        scale_a: float32: one number for ``mat_a``, or ``(M, 1)``, one for each of its rows.
        scale_recipe_a: ``ScalingType.TensorWise`` or ``RowWise``, which of them.
        scale_b: float32: one number for ``mat_b``, or ``(1, N)``, one for each of its columns.
        scale_recipe_b: the same.
        swizzle_a: None or ``SwizzleType.NO_SWIZZLE``.
        swizzle_b: as ``swizzle_a``.
        bias: ``(N,)``.
        output_dtype: the dtype of the result; that of ``mat_a`` if None.
        contraction_dim: accepted; it is ``K``.
        use_fast_accum: accepted for compatibility.

    Returns:
        ``(M, N)``.

    Raises:
        NotImplementedError: another recipe or order of scales.
        ValueError: a factor is not float8, the recipes differ, or a scale or the bias does not fit.

    Examples:
        >>> x = taeda.eye(2).to(taeda.float8_e4m3fn)
        >>> F.scaled_mm(x, x, taeda.tensor(2.0), F.ScalingType.TensorWise, taeda.tensor(3.0), F.ScalingType.TensorWise)
        tensor([[6., 0.],
                [0., 6.]], dtype=taeda.bfloat16)
    """
    if any(s not in (None, SwizzleType.NO_SWIZZLE) for s in (swizzle_a, swizzle_b)):
        raise NotImplementedError("scaled_mm: scales in another order (swizzled) are not supported")
    for name, x in (("mat_a", mat_a), ("mat_b", mat_b)):
        if x.dim() != 2:
            raise RuntimeError(f"scaled_mm: expected a matrix for {name}, got {list(x.shape)}")
        if not x.dtype.name.startswith("float8"):
            raise ValueError(f"scaled_mm: expected {name} of float8, got {x.dtype}")
    scale_a, recipe_a, scale_b, recipe_b = map(_only, (scale_a, scale_recipe_a, scale_b, scale_recipe_b))
    scale_a = _checked(scale_a, recipe_a, (mat_a.shape[0], 1))
    scale_b = _checked(scale_b, recipe_b, (1, mat_b.shape[1]))
    if recipe_a is not recipe_b:
        raise ValueError(f"scaled_mm: expected one recipe for both scales, got {recipe_a.name} and {recipe_b.name}")
    if bias is not None and bias.numel() != mat_b.shape[1]:
        raise ValueError(f"scaled_mm: expected a bias of {mat_b.shape[1]} elements, got {list(bias.shape)}")
    product = matmul(mat_a.float(), mat_b.float()) * scale_a * scale_b
    if bias is not None:
        product = product + bias.reshape(-1)
    return product.to(output_dtype or mat_a.dtype)

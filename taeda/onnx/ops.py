"""``taeda.onnx.ops``: ONNX's own operators as functions, and nodes of any name for models that are written as ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda.library import CustomOpDef

from .._typed import Tensor
from .operators.attention import attention as _attention
from .values import DTYPES

__all__ = ["attention", "rotary_embedding", "symbolic", "symbolic_multi_out", "translations"]


def attention(
    Q: Tensor, K: Tensor, V: Tensor, attn_mask: Tensor | None = None, past_key: Tensor | None = None,
    past_value: Tensor | None = None, *, is_causal: bool = False, kv_num_heads: int = 0, q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0, scale: float | None = None, softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """ONNX's ``Attention``: the result, keys and values joined to the past ones, and the matrix of one of four steps.

    Args:
        Q: ``(batch, heads, steps, size)``, or ``(batch, steps, heads * size)`` with the numbers of heads.
        K: the same, of the keys.
        V: the same, of the values.
        attn_mask: true where a key is seen, or what is added to the products.
        past_key: keys of earlier steps.
        past_value: values of earlier steps.
        is_causal: a query sees keys up to its own place.
        kv_num_heads: heads of inputs of three dimensions.
        q_num_heads: heads of inputs of three dimensions.
        qk_matmul_output_mode: which matrix to give, 0 to 3, as in ONNX.
        scale: factor of the products; ``1 / sqrt(size)`` if None.
        softcap: limit of the scores, ``softcap * tanh(score / softcap)``; 0: none.
        softmax_precision: the type of the softmax, as a number of ONNX.
    Returns:
        The result, the keys, the values and the matrix.
    """
    made = _attention(
        Q, K, V, attn_mask, past_key, past_value, outputs=4, is_causal=int(is_causal),
        kv_num_heads=kv_num_heads or None, q_num_heads=q_num_heads or None,
        qk_matmul_output_mode=qk_matmul_output_mode, scale=scale or None, softcap=softcap,
        softmax_precision=softmax_precision,
    )  # fmt: skip
    return tuple(made)


def rotary_embedding(
    X: Tensor, cos_cache: Tensor, sin_cache: Tensor, position_ids: Tensor | None = None, *, interleaved: bool = False,
    num_heads: int = 0, rotary_embedding_dim: int = 0,
) -> Tensor:  # fmt: skip
    """ONNX's ``RotaryEmbedding``: pairs of numbers turned by angles that depend on their positions.

    Args:
        X: ``(batch, heads, steps, size)``, or ``(batch, steps, heads * size)`` with ``num_heads``.
        cos_cache: cosines, ``(positions, size / 2)`` with ``position_ids``, else ``(batch, steps, size / 2)``.
        sin_cache: sines, of the same sizes.
        position_ids: ``(batch, steps)``.
        interleaved: pairs are neighbours; by default their halves are.
        num_heads: of an input of three dimensions.
        rotary_embedding_dim: how many of the numbers of a head are turned; all by default.
    Returns:
        The sizes of ``X``.
    Raises:
        ValueError: an input of three dimensions without ``num_heads``.
    """
    flat = X.dim() == 3
    if flat and not num_heads:
        raise ValueError("rotary_embedding: expected num_heads for an input of 3 dimensions")
    x = X.unflatten(-1, (num_heads, -1)) if flat else X.transpose(1, 2)  # batch, steps, heads, size
    cos, sin = (c if position_ids is None else c[position_ids] for c in (cos_cache, sin_cache))
    size = rotary_embedding_dim or x.shape[-1]
    cos, sin = (c[..., : size // 2].unsqueeze(2) for c in (cos, sin))
    turned, rest = x[..., :size], x[..., size:]
    first, second = (turned[..., ::2], turned[..., 1::2]) if interleaved else turned.chunk(2, -1)
    parts = cos * first - sin * second, sin * first + cos * second
    made = taeda.stack(parts, -1).flatten(-2) if interleaved else taeda.cat(parts, -1)
    made = taeda.cat([made, rest], -1)
    return made.flatten(2) if flat else made.transpose(1, 2)


# ---- nodes of any name -----------------------------------------------------------------------------------------------


def _zeros(inputs: Sequence[Tensor], op: str, attributes: tuple, dtypes: tuple, shapes: tuple) -> tuple[Tensor, ...]:
    return tuple(taeda.zeros(tuple(s), dtype=d) for d, s in zip(dtypes, shapes, strict=True))


_node = CustomOpDef("onnx_symbolic::node", _zeros, ())
_node.register_fake(_zeros)


def symbolic_multi_out(
    domain_op: str, /, inputs: Sequence[Tensor | None], attrs: dict[str, Any] | None = None, *, dtypes: Sequence[Any],
    shapes: Sequence[Sequence[int]], version: int | None = None, metadata_props: dict[str, str] | None = None,
) -> Sequence[Tensor]:  # fmt: skip
    """A node with several results, in a model that is written as ONNX; zeros where it runs here.

    Args:
        domain_op: ``"domain::Name"``.
        inputs: tensors, and None for those that are left out.
        attrs: attributes: numbers, texts and lists of them.
        dtypes: those of the results.
        shapes: those of the results.
        version: accepted.
        metadata_props: accepted.
    Returns:
        The results.
    """
    kinds = tuple(DTYPES[d] if isinstance(d, int) else d for d in dtypes)
    return _node(list(inputs), domain_op, tuple((attrs or {}).items()), kinds, tuple(map(tuple, shapes)))


def symbolic(
    domain_op: str, /, inputs: Sequence[Tensor | None], attrs: dict[str, Any] | None = None, *, dtype: Any,
    shape: Sequence[int], version: int | None = None, metadata_props: dict[str, str] | None = None,
) -> Tensor:  # fmt: skip
    """:func:`symbolic_multi_out` with one result."""
    return symbolic_multi_out(domain_op, inputs, attrs, dtypes=[dtype], shapes=[shape])[0]


def _written(g: Any, inputs: Sequence, op: str, attributes: tuple, dtypes: tuple, shapes: tuple) -> tuple:
    domain, _, kind = op.rpartition("::")
    made = g.op(kind, *inputs, outputs=len(dtypes), domain=domain, **dict(attributes))
    made = made if isinstance(made, tuple) else (made,)
    for x, dtype in zip(made, dtypes, strict=True):
        x.dtype = dtype
    return made


def translations() -> dict[Any, Callable]:
    """The way in which :func:`symbolic` is written."""
    return {_node._overload: _written}

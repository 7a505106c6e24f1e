"""Masks of attention by their meaning: causal ones."""

from __future__ import annotations

import warnings
from enum import IntEnum, auto
from typing import Any

from taeda.nn import functional
from taeda.overrides import DisableTorchFunctionSubclass

from ..._core import bool_
from ..._typed import Tensor
from ...ops.creation import ones

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """The corner that the diagonal of a non-square mask goes through."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """A bool mask ``(queries, keys)`` that ``scaled_dot_product_attention`` knows for a causal one.

    To every other function it is the tensor of the mask.

    Args:
        variant: which corner the diagonal goes through.
        seq_len_q: number of queries.
        seq_len_kv: number of keys.
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"CausalBias: expected a CausalVariant, got {variant!r}")
        lower = variant is CausalVariant.LOWER_RIGHT
        if lower and seq_len_q > seq_len_kv:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=3
            )
        mask = ones((seq_len_q, seq_len_kv), dtype=bool_).tril(seq_len_kv - seq_len_q if lower else 0)
        return mask.as_subclass(cls)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv

    def __repr__(self, **kwargs: Any) -> str:
        return repr(self.as_subclass(Tensor))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        with DisableTorchFunctionSubclass():
            if func is not functional.scaled_dot_product_attention:
                return func(*args, **(kwargs or {}))
            given = dict(zip(("query", "key", "value", "attn_mask", "dropout_p", "is_causal"), args, strict=False))
            given |= kwargs or {}
            if given.get("is_causal"):
                raise ValueError("CausalBias should not be used with causal=True")
            bias = given["attn_mask"]
            square = bias.seq_len_q == bias.seq_len_kv
            if bias.variant is CausalVariant.UPPER_LEFT or square:
                return func(**{**given, "attn_mask": None, "is_causal": True})
            return func(**{**given, "attn_mask": bias.as_subclass(Tensor)})


def _causal(name: str, variant: CausalVariant, size: tuple) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors, got {len(size)} sizes")
    return CausalBias(variant, *size)


def causal_upper_left(*size: int) -> CausalBias:
    """A mask ``(queries, keys)``: query ``i`` sees keys ``0..i``."""
    return _causal("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """A mask ``(queries, keys)`` in which the last query sees every key."""
    return _causal("causal_lower_right", CausalVariant.LOWER_RIGHT, size)

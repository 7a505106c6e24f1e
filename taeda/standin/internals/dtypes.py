"""Kinds of quantised tensors, which can be named: there are none."""

from __future__ import annotations


class qscheme:
    """The way in which a quantised tensor would be scaled."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


qscheme.__module__ = "torch"
per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric, per_channel_affine_float_qparams = (
    map(
        qscheme,
        "per_tensor_affine per_channel_affine per_tensor_symmetric per_channel_symmetric "
        "per_channel_affine_float_qparams".split(),
    )
)

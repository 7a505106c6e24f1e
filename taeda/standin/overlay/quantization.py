"""``torch.quantization``: the older name of ``torch.ao.quantization``."""

from .ao.quantization import *  # noqa: F403
from .ao.quantization import (
    DeQuantStub,
    QuantStub,
    convert,
    fuse_modules,
    prepare,
    prepare_qat,
    quantize,
    quantize_dynamic,
)

__all__ = [
    "DeQuantStub", "QuantStub", "convert", "fuse_modules", "prepare", "prepare_qat", "quantize", "quantize_dynamic",
]  # fmt: skip

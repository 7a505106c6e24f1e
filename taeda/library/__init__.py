"""Custom ops with a name: ``custom_op`` makes one, and so do ``define`` and ``impl`` in separate steps.

The stand-in has them as ``torch.ops.<library>.<op>``.
"""

from __future__ import annotations

import importlib
from typing import Any

from .._refuse import refused_function
from .._schema import infer_schema
from .definition import CustomOpDef, EffectType, _declared  # the last: pickles name it
from .fake import FakeImplCtx, get_ctx
from .libraries import Library, define, impl
from .registration import (
    custom_op,
    impl_abstract,
    ops,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
)

__all__ = [
    "CustomOpDef", "Library", "bind", "custom_op", "define", "get_ctx", "impl", "impl_abstract", "infer_schema",
    "register_autocast", "register_autograd", "register_fake", "register_kernel", "register_torch_dispatch",
    "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip
#: What is imported when it is first used, and its module: compilers of C, and graphs.
_LATER = {"bind": "binding", "opcheck": "checking", "OpCheckError": "checking"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)


_NO_TRITON = (
    "there is no Triton, whose kernels are compiled for GPUs. Make the op with taeda.library.custom_op, with "
    "taeda.library.bind from C, or from an expression with taeda.kernel"
)
wrap_triton = refused_function("library.wrap_triton", _NO_TRITON)
triton_op = refused_function("library.triton_op", _NO_TRITON)

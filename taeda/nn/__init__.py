"""Neural networks: modules, parameters, losses, initialisation and utilities, with PyTorch's names and meanings."""

from __future__ import annotations

from . import attention, functional, grad, init, modules, parallel, parameter, utils
from .modules import *  # noqa: F403 - exactly modules.__all__
from .modules.module import Module
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    *modules.__all__, "Buffer", "DataParallel", "Module", "Parameter", "UninitializedBuffer", "UninitializedParameter",
    "attention", "functional", "grad", "init", "modules", "parallel", "parameter", "utils",
]  # fmt: skip

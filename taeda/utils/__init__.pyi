"""Names of taeda.utils. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from .. import Number, Size, Tensor, _device, _dtype
from ..utils._curves import Curves as Curves
from . import benchmark as benchmark
from ..utils._check_step import check_step as check_step
from . import checkpoint as checkpoint
from . import data as data
from . import deterministic as deterministic
from . import dlpack as dlpack
from . import dot as dot
from ..utils._draw import draw as draw
from ..utils._histograms import histograms as histograms
from ..utils._memory_use import memory_use as memory_use
from ..utils._summary import summary as summary

swap_tensors: Any

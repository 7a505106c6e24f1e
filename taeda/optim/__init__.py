"""Optimisers, one file each, their learning-rate schedules and weight averaging."""

from __future__ import annotations

import sys

from .._docstrings import complete_docstrings
from . import lr_scheduler, swa_utils
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .adamax import Adamax
from .asgd import ASGD
from .lbfgs import LBFGS
from .muon import Muon
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler", "swa_utils",
]  # fmt: skip

complete_docstrings(
    value
    for module in (sys.modules[__name__], lr_scheduler, swa_utils)
    for value in list(vars(module).values())
    if isinstance(value, type) and value.__module__.startswith(__name__)
)

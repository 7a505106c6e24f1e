"""The layers, a family per file."""

# ruff: noqa: I001, F403 - the list of names is a paragraph; each family says what its names are

from __future__ import annotations

from .._linear_cross_entropy import LinearCrossEntropyOptions
from . import (
    activation, adaptive, batchnorm, channelshuffle, container, conv, distance, dropout, flatten, fold,
    instancenorm, linear, loss, normalization, padding, pixelshuffle, pooling, rnn, sparse, transformer, upsampling,
)  # fmt: skip
from .activation import *
from .adaptive import *
from .batchnorm import *
from .channelshuffle import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .flatten import *
from .fold import *
from .instancenorm import *
from .linear import *
from .loss import *
from .module import Module
from .normalization import *
from .padding import *
from .pixelshuffle import *
from .pooling import *
from .rnn import *
from .sparse import *
from .transformer import *
from .upsampling import *
from .utils import complete_docstrings

__all__ = [
    "LinearCrossEntropyOptions", "Module", *activation.__all__, *adaptive.__all__, *batchnorm.__all__,
    *channelshuffle.__all__, *container.__all__, *conv.__all__, *distance.__all__, *dropout.__all__,
    *flatten.__all__, *fold.__all__, *instancenorm.__all__, *linear.__all__, *loss.__all__, *normalization.__all__,
    *padding.__all__, *pixelshuffle.__all__, *pooling.__all__, *rnn.__all__, *sparse.__all__, *transformer.__all__,
    *upsampling.__all__,
]  # fmt: skip

complete_docstrings(value for value in list(globals().values()) if isinstance(value, type))

"""The functions that run ONNX ops, a file per family. Importing this fills the table."""

from ..table import find
from . import (
    attention,
    control,
    conversion,
    convolution,
    elementwise,
    image,
    indexing,
    linear,
    loss,
    ml,
    normalization,
    pooling,
    quantised,
    random,
    recurrent,
    reduction,
    sequence,
    shape,
    signal,
    text,
    training,
    trees,
)

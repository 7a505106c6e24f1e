"""The functions that write ops as ONNX nodes, a file per family. Importing this fills the table."""

from . import (
    activation,
    attention,
    bags,
    control,
    convolution,
    creation,
    ctc,
    elementwise,
    found,
    image,
    indexing,
    linear,
    logic,
    loss,
    normalization,
    pooling,
    random,
    recurrent,
    reduction,
    shape,
    sizes,
    special,
    spectrogram,
    writing,
)
from .table import by_function, translates

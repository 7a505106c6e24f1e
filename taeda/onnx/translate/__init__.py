"""The functions that write ops as ONNX nodes, a file per family. Importing this fills the table."""

from . import (
    activation,
    attention,
    control,
    convolution,
    creation,
    elementwise,
    image,
    indexing,
    linear,
    loss,
    normalization,
    pooling,
    random,
    recurrent,
    reduction,
    shape,
    sizes,
    special,
)
from .table import by_function, translates

"""The pipe that leaves samples out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _check_unpickable_fn, chosen, validate_input_col

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """A pipe of the samples for which ``filter_fn`` is True (``pipe.filter(filter_fn)``).

    Args:
        datapipe: where samples come from.
        filter_fn: gives a bool.
        input_col: the items of a sample that it is given, by index or key: one, or a list. Default: the sample.
    """

    def __init__(self, datapipe: IterDataPipe, filter_fn: Callable, input_col: Any = None):
        super().__init__()
        _check_unpickable_fn(filter_fn)
        validate_input_col(filter_fn, input_col)
        self.datapipe = datapipe
        self.filter_fn = filter_fn
        self.input_col = input_col

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            kept = chosen(self.filter_fn, data, self.input_col)
            if not isinstance(kept, bool):
                raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(kept))
            if kept:
                yield data
            else:
                StreamWrapper.close_streams(data)

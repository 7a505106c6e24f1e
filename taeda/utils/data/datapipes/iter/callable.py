"""Pipes that call a function for each sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..._utils.collate import default_collate
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe, length_of
from ..utils.common import _check_unpickable_fn, chosen, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """A pipe of ``fn(sample)`` (``pipe.map(fn)``).

    Args:
        datapipe: where samples come from.
        fn: what is called.
        input_col: the items of a sample that ``fn`` is given, by index or key: one, or a list. Default: the sample.
        output_col: where the result is put; -1 appends it. Default: in place of the (first) input, and the other inputs
            are taken out.
    """

    def __init__(self, datapipe: IterDataPipe, fn: Callable, input_col: Any = None, output_col: Any = None):
        super().__init__()
        _check_unpickable_fn(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        validate_input_col(fn, input_col)
        self.datapipe = datapipe
        self.fn = fn
        self.input_col = input_col
        self.output_col = output_col

    def _apply_fn(self, data: Any) -> Any:
        result = chosen(self.fn, data, self.input_col)
        if self.input_col is None:
            return result
        parts = list(data) if isinstance(data, tuple) else data
        if self.output_col == -1:
            parts.append(result)
        elif self.output_col is not None:
            parts[self.output_col] = result
        elif isinstance(self.input_col, (list, tuple)):
            parts[self.input_col[0]] = result
            for place in sorted(self.input_col[1:], reverse=True):
                del parts[place]
        else:
            parts[self.input_col] = result
        return tuple(parts) if isinstance(data, tuple) else parts

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self) -> int:
        return length_of(self, self.datapipe)[0]


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """A pipe of collated batches (``pipe.collate()``).

    Args:
        datapipe: where batches come from.
        conversion: makes tensors of a list of samples.
        collate_fn: the same; it goes first.
    """

    def __init__(
        self, datapipe: IterDataPipe, conversion: Callable = default_collate, collate_fn: Callable | None = None
    ):
        super().__init__(datapipe, fn=conversion if collate_fn is None else collate_fn)

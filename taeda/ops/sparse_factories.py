"""Sparse tensors without entries: what factories make that are asked for a sparse layout."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._core.callbacks import callbacks
from .compressed import FORMS, OWN_RULES, compressed_of
from .creation import empty, zeros
from .sparse import RULES, make
from .table import OPS, spread


def without_entries(name: str, size: Sequence[int], layout: Any, requires_grad: Any = False, **options: Any) -> Tensor:
    """The tensor of zeros of ``size`` that has no entries, or a dense one for ``taeda.strided``.

    Raises:
        RuntimeError: the layout is one of blocks, or a compressed one of fewer than two dimensions.
    """
    size = _core.whole_numbers(size, name, "size")
    indices = {**options, "dtype": _core.int64}
    if layout is _core.strided:
        made = zeros(size, **options)
    elif layout is _core.sparse_coo:
        made = make(empty((len(size), 0), **indices), empty((0,), **options), size, True)
    else:
        by_rows, blocked = FORMS[layout]
        if blocked:
            raise RuntimeError(
                f"{name}: expected layout sparse_coo, sparse_csr or sparse_csc, got {layout}; make one of those, and "
                f"convert it with .to_sparse(layout={layout}, blocksize=...)"
            )
        if len(size) < 2:
            raise RuntimeError(f"{name}: expected at least two dimensions for layout {layout}, got size {list(size)}")
        *batch, rows, columns = size
        starts = zeros((*batch, (rows if by_rows else columns) + 1), **indices)
        made = compressed_of(starts, empty((*batch, 0), **indices), empty((*batch, 0), **options), size, by_rows)
    return made.requires_grad_(bool(requires_grad))


def _of_size(name: str, args: tuple = (), size: Any = None, **options: Any) -> Tensor:
    return without_entries(name, spread(args, size), **options)


def _of_input(
    name: str, input: Tensor, args: tuple = (), size: Any = None, layout: Any = None, dtype: Any = None,
    device: Any = None, **options: Any,
) -> Tensor:  # fmt: skip
    options["dtype"] = dtype or input.dtype
    options["device"] = input.device if device is None else device
    return without_entries(name, spread(args, size), layout or input.layout, **options)


def _like(name: str, input: Tensor, **options: Any) -> Tensor:
    return _of_input(name, input, size=input.shape, **options)


#: The maker of a tensor, by the name of the called function.
FACTORIES: dict[str, Callable] = {
    "zeros": _of_size, "empty": _of_size, "new_zeros": _of_input, "new_empty": _of_input, "zeros_like": _like,
    "empty_like": _like,
}  # fmt: skip


def _made(name: str, args: tuple, kwargs: dict) -> Tensor:
    """The factory's tensor, from the arguments of the call."""
    given = inspect.signature(OPS[name]).bind(*args, **kwargs).arguments
    given.pop("memory_format", None)
    if given.pop("out", None) is not None:
        raise RuntimeError(f"{name}: expected an out of layout {given['layout']}, got a dense tensor")
    return FACTORIES[name](name, **given)


def _laid_out(function: Any, args: tuple, kwargs: dict) -> Any:
    """The call of a function that is given a sparse layout; NotImplemented where it makes no tensor without entries."""
    name = function.__name__
    if name in FACTORIES and name != "empty_like" and kwargs.get("layout") in (_core.sparse_coo, *FORMS):
        return _made(name, args, kwargs)
    return NotImplemented


callbacks.laid_out = _laid_out


def _note(rules: dict[str, Callable], name: str) -> None:
    """Note the rule of a factory for a sparse first argument: the one it has keeps the layout."""
    own = rules.get(name)

    def rule(*args: Any, **kwargs: Any) -> Tensor:
        if own is not None and kwargs.get("layout") in (None, args[0].layout):
            return own(*args, **kwargs)
        return _made(name, args, kwargs)

    rules[name] = rule


for _rules in (RULES, OWN_RULES):
    for _name in ("new_zeros", "new_empty", "zeros_like", "empty_like"):
        _note(_rules, _name)

"""The ``reduction`` argument of losses, in its present and its older spelling."""

from __future__ import annotations

import warnings


def get_enum(reduction: str) -> int:
    """0, 1 or 2 for ``"none"``, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: it is none of them.
    """
    try:
        return {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}[reduction]
    except KeyError:
        raise ValueError(f"{reduction} is not a valid value for reduction") from None


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The ``reduction`` that ``size_average`` and ``reduce`` meant."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=4,
        )
    return reduction


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """:func:`legacy_get_string` as a number."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))

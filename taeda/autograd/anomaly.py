"""Anomaly detection: finds the forward op whose gradient fails or is NaN."""

from __future__ import annotations

import traceback
import warnings
from typing import Any

from .. import _core
from .._core.callbacks import callbacks


class detect_anomaly:
    """A context in which every node remembers the line that recorded it and every gradient is checked for NaN.

    For finding where a NaN comes from: the error names the operation and shows its line. It makes training slower.

    Args:
        check_nan: raise an error when a derivative gives NaN; without it an error in backward only names the line.

    Raises:
        RuntimeError: in ``backward``, a derivative gave NaN.

    Examples:
        >>> x = taeda.tensor([0.0], requires_grad=True)
        >>> with taeda.autograd.detect_anomaly():
        ...     try:
        ...         (x.sqrt() * 0).sum().backward()
        ...     except RuntimeError as error:
        ...         print(str(error).splitlines()[0][:44])
        Function 'SqrtBackward0' returned nan values
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.previous = _core.set_anomaly(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        _core.set_anomaly(*self.previous)


class set_detect_anomaly:
    """Turn anomaly detection on or off at once; as a context manager, until its end. See :class:`detect_anomaly`.

    Args:
        mode: whether it is on.
        check_nan: whether gradients are checked for NaN.

    Examples:
        >>> with taeda.autograd.set_detect_anomaly(True):
        ...     taeda.is_anomaly_enabled()
        True
        >>> taeda.is_anomaly_enabled()
        False
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.previous = _core.set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _core.set_anomaly(*self.previous)


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Turns anomaly detection on or off: a backward pass then says which op of the forward pass gave a NaN gradient.
    Slow; for finding faults.

    Args:
        enabled: on or off.
        check_nan: whether gradients are checked for NaN.
    Examples:
        >>> taeda.set_anomaly_enabled(True)
        >>> taeda.is_anomaly_enabled()
        True
        >>> taeda.set_anomaly_enabled(False)
    """
    _core.set_anomaly(enabled, check_nan)


def _anomaly() -> tuple[bool, bool]:
    """Whether anomaly detection is on, and whether it checks for NaN."""
    state = _core.set_anomaly(False, False)
    _core.set_anomaly(*state)
    return state


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on; see :func:`set_anomaly_enabled`.

    Returns:
        A bool.
    Examples:
        >>> taeda.is_anomaly_enabled()
        False
    """
    return bool(_anomaly()[0])


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection, where it is on, checks gradients for NaN.

    Returns:
        A bool.
    Examples:
        >>> taeda.is_anomaly_check_nan_enabled()
        True
    """
    return bool(_anomaly()[1])


def _check_nan(name: str, grads: list, trace: Any) -> None:
    """Raise if a gradient made by node ``name`` is NaN; ``trace`` is where the node was recorded."""
    previous = _core.record_nothing()
    try:
        for i, g in enumerate(grads):
            if g is not None and (g.is_floating_point() or g.is_complex()) and bool((g != g).any()):
                where = "" if trace is None else " It was recorded at:\n" + "".join(traceback.format_list(trace[-6:]))
                raise RuntimeError(f"Function '{name}' returned nan values in its {i}th output.{where}")
    finally:
        _core.restore_grad_mode(previous)


callbacks.check_nan = _check_nan

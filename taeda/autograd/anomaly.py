"""Anomaly detection: finds the op whose result or gradient is NaN, and the forward op whose gradient fails."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterable
from types import CodeType
from typing import Any

from .. import _core
from .._core.callbacks import callbacks
from .._warn import PACKAGE

#: Advice on NaN, in the forward and in the backward pass.
MEND = "look at the values that go in: a logarithm or root of negative numbers, 0 / 0, inf - inf"
BACKWARD_MEND = (
    "keep away from where the derivative is infinite, as of a logarithm, root or norm at 0: add a small number inside, "
    "or choose with where() before the op"
)


class detect_anomaly:
    """A context in which every node remembers the line that recorded it, and results and gradients are checked for NaN.

    For finding where a NaN comes from: the error names the operation and shows its line, and the module in which it was
    called. It makes training slower, by a tenth to a half.

    NaN in the forward pass is reported by ``backward``, if what it begins with is NaN: NaN that the program replaces,
    as ``where`` does, is no fault.

    Args:
        check_nan: raise an error when a derivative gives NaN, or the forward pass did; without it an error in backward
            only names the line.

    Raises:
        RuntimeError: in ``backward``, a derivative gave NaN, or the tensor to differentiate is NaN.

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
        self.previous = _set(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        _set(*self.previous)


class set_detect_anomaly:
    """Turn anomaly detection on or off at once; as a context manager, until its end. See :class:`detect_anomaly`.

    Args:
        mode: whether it is on.
        check_nan: whether gradients are checked for NaN.

    Raises:
        TypeError: ``mode`` is no bool.

    Examples:
        >>> with taeda.autograd.set_detect_anomaly(True):
        ...     taeda.is_anomaly_enabled()
        True
        >>> taeda.is_anomaly_enabled()
        False
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.previous = _set(_core.expect_bool("set_detect_anomaly", "enabled", mode), check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _set(*self.previous)


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Turns anomaly detection on or off: a backward pass then says which op of the forward pass gave a NaN gradient.
    Slow; for finding faults.

    Args:
        enabled: on or off.
        check_nan: whether gradients are checked for NaN.
    Raises:
        TypeError: ``enabled`` is no bool.
    Examples:
        >>> taeda.set_anomaly_enabled(True)
        >>> taeda.is_anomaly_enabled()
        True
        >>> taeda.set_anomaly_enabled(False)
    """
    _set(_core.expect_bool("set_anomaly_enabled", "enabled", enabled), check_nan)


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


def _set(enabled: bool, check_nan: bool) -> tuple[bool, bool]:
    """Turn it on or off. Gives the setting before."""
    callbacks.follow_modules(enabled)
    return _core.set_anomaly(enabled, check_nan)


class Trace:
    """Place where a node was recorded: lines of the program, and the module that was called.

    Args:
        frames: see the attribute.
        modules: see the attribute.

    Attributes:
        frames: functions outside of the package with the line that they were at, the innermost first; at most 6.
        modules: the outermost and the innermost module under way; empty outside.
        nan: how NaN got into the result, in words; empty where there is none.
        op: the op that the node was recorded for; empty while its result was not looked at.
    """

    __slots__ = ("frames", "modules", "nan", "op")

    def __init__(self, frames: list[tuple[CodeType, int]], modules: tuple) -> None:
        self.frames, self.modules, self.nan, self.op = frames, modules, "", ""

    def __str__(self) -> str:
        frames = [traceback.FrameSummary(c.co_filename, n, c.co_name) for c, n in reversed(self.frames)]
        return "".join(traceback.format_list(frames)) + callbacks.describe_modules(*self.modules)


def _trace() -> Trace:
    return Trace(_core.frames_outside(PACKAGE, 6), callbacks.modules_under_way())


def origin_of_nan(inputs: Iterable[Any]) -> str:
    """How an op that was given ``inputs`` came to give NaN, in words."""
    values = [t for t in inputs if isinstance(t, _core.Tensor) and t.is_floating_point()]
    if any(_core.has_nan(t) for t in values):
        return "was given NaN, which came in from outside, with the data or a parameter"
    infinite = any(not t.is_meta and bool(t.detach().isinf().any()) for t in values)
    return f"gives the first NaN of the forward pass, from {'infinite' if infinite else 'finite'} values"


def _look_forward(op: str, trace: Trace, inputs: list, results: Iterable[Any]) -> None:
    """Note in the trace of a node that a result of its op is NaN."""
    trace.op = op
    if any(_core.has_nan(t) for t in results):
        trace.nan = origin_of_nan([t for x in inputs for t in (x if isinstance(x, (list, tuple)) else [x])])


def _check_roots(roots: Iterable[Any]) -> None:
    """Raise if a tensor to differentiate is NaN because an op of its graph gave NaN."""
    for i, root in enumerate(roots):
        if not _core.has_nan(root) or root.grad_fn is None:
            continue
        stack, seen, first = [root.grad_fn], set(), None
        while stack:
            node = stack.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            trace = node._recorded_at() if isinstance(node, _core.Node) else None
            if trace is not None and trace.nan and (first is None or node._sequence_nr() < first[0]):
                first = (node._sequence_nr(), trace)
            stack += [n for n, _ in node.next_functions]
        if first is not None:
            trace = first[1]
            raise RuntimeError(
                f"Function '{trace.op}' of the forward pass returned nan values in its 0th output, so that tensor {i} "
                f"of backward() is NaN: {trace.op}() {trace.nan}; {MEND}. It was recorded at:\n{trace}"
            )


def _check_nan(name: str, grads: list, trace: Trace | None) -> None:
    """Raise if a gradient made by node ``name`` is NaN; ``trace`` is where the node was recorded."""
    for i, g in enumerate(grads):
        if _core.has_nan(g):
            where = "" if trace is None else f" It was recorded at:\n{trace}"
            raise RuntimeError(
                f"Function '{name}' returned nan values in its {i}th output. Mend: {BACKWARD_MEND}.{where}"
            )


callbacks.follow_modules = lambda on: None  # until there are modules
callbacks.modules_under_way = tuple
callbacks.describe_modules = lambda: ""
callbacks.trace = _trace
callbacks.look_forward = _look_forward
callbacks.check_roots = _check_roots
callbacks.check_nan = _check_nan

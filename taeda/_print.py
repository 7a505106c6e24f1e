"""Text of tensors: the same text, character for character, as PyTorch gives.

Reads tensors through ``shape``, ``dtype``, ``device``, indexing and ``tolist()`` only. The layout is chosen from the
values that will be shown, so that every element of a tensor has one width and one notation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._core import Tensor, float4_e2m1fn_x2, forward_levels, get_default_dtype, install, mode_stack, modes, uint8
from ._core.callbacks import callbacks

__all__ = ["get_printoptions", "printoptions", "set_printoptions", "sparse_repr", "tensor_repr"]


class _Options:
    """The settings of :func:`set_printoptions`."""  # no dataclass: importing those costs as much as all of this module

    def __init__(self) -> None:
        self.precision: int = 4
        self.threshold: float = 1000
        self.edgeitems: int = 3
        self.linewidth: int = 80
        self.sci_mode: bool | None = None


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
_options = _Options()


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Sets how tensors are printed. An argument left out keeps its value, but ``sci_mode`` goes back to automatic.

    Args:
        precision: digits after the point of floating-point numbers (4).
        threshold: tensors of more elements than this are shortened (1000).
        edgeitems: elements kept at each end of a shortened dimension (3).
        linewidth: characters a line (80).
        profile: ``"default"``, ``"short"`` or ``"full"``, set before the other arguments.
        sci_mode: scientific notation on or off; None chooses by the values.
    Raises:
        TypeError: an option is no number.
        ValueError: there is no such profile.
    Examples:
        >>> taeda.set_printoptions(precision=2)
        >>> taeda.tensor([1 / 3])
        tensor([0.33])
        >>> taeda.set_printoptions(profile="default")
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        if not hasattr(type(value), "__float__"):
            raise TypeError(f"set_printoptions: {name} must be a number, got {type(value).__name__}")
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"set_printoptions: profile must be one of {', '.join(_PROFILES)}; got {profile!r}")
    vars(_options).update({**_PROFILES.get(profile or "", {}), **given, "sci_mode": sci_mode})


def get_printoptions() -> dict[str, Any]:
    """The print options now in force, as :func:`set_printoptions` takes them.

    Returns:
        A dict.
    Examples:
        >>> taeda.get_printoptions()["precision"]
        4
    """
    return dict(vars(_options))


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Sets print options inside a ``with`` block.

    Args:
        kwargs: as :func:`set_printoptions` takes them.

    Raises:
        ValueError: there is no such profile.

    Examples:
        >>> with taeda.printoptions(precision=2):
        ...     print(taeda.tensor([1 / 3]))
        tensor([0.33])
    """
    before = get_printoptions()
    try:
        set_printoptions(**kwargs)
        yield
    finally:
        vars(_options).update(before)


class _Column:
    """One notation and width for a set of real numbers.

    Floats are written without decimals when all are whole, and in scientific notation when they are very large, very
    small or far apart. Zeros and non-finite numbers take no part in that choice.
    """

    def __init__(self, numbers: list[Any], floating: bool):
        self.floating = floating
        self.width = 1
        self.whole = self.scientific = False
        if not floating:
            self.width = max([1, *(len(str(x)) for x in numbers)])
            return
        relevant = [x for x in numbers if x and math.isfinite(x)]
        self.whole = all(x == math.ceil(x) for x in relevant)
        if not relevant:
            return
        largest = max(map(abs, relevant))
        smallest = min(map(abs, relevant))
        far = largest / smallest > 1000 if smallest else True
        self.scientific = far or largest > 1e8 or (not self.whole and smallest < 1e-4)
        if _options.sci_mode is not None:
            self.scientific = _options.sci_mode
        self.width = max(len(self._digits(x)) for x in relevant)

    def _digits(self, x: float) -> str:
        if self.scientific:
            return f"{x:.{_options.precision}e}"
        if not self.whole:
            return f"{x:.{_options.precision}f}"
        return f"{x:.0f}." if math.isfinite(x) else f"{x:.0f}"

    def text(self, x: Any) -> str:
        """``x`` padded on the left to the width of the column."""
        return (self._digits(x) if self.floating else str(x)).rjust(self.width)


class _ComplexColumn:
    """Real and imaginary parts, each with a notation of its own."""

    def __init__(self, numbers: list[complex]):
        self.real = _Column([z.real for z in numbers], True)
        self.imag = _Column([z.imag for z in numbers], True)
        self.width = self.real.width + self.imag.width + 1

    def text(self, z: complex) -> str:
        imag = self.imag.text(z.imag).lstrip()
        return f"{self.real.text(z.real)}{'' if imag[0] == '-' else '+'}{imag}j"


_GAP = object()  # stands for the elements that a summary leaves out


def _shown(t: Any, summarise: bool) -> Any:
    """The elements of ``t`` to show as nested lists, with ``_GAP`` where some were left out."""
    edge = _options.edgeitems
    if not summarise or t.dim() == 0:
        return t.tolist()
    n = t.shape[0]
    if n <= 2 * edge:
        parts = [t[i] for i in range(n)] if t.dim() > 1 else t.tolist()
    elif t.dim() > 1:
        parts = [t[i] for i in range(edge)] + [_GAP] + [t[i] for i in range(n - edge, n)]
    else:
        return t[:edge].tolist() + [_GAP] + (t[n - edge :].tolist() if edge else [])
    return [x if x is _GAP else _shown(x, True) for x in parts] if t.dim() > 1 else parts


def _flatten(nested: Any) -> Iterator[Any]:
    if isinstance(nested, list):
        for x in nested:
            yield from _flatten(x)
    elif nested is not _GAP:
        yield nested


def _vector(items: list[Any], column: _Column | _ComplexColumn, indent: int) -> str:
    words = [" ..." if x is _GAP else column.text(x) for x in items]
    per_line = max(1, (_options.linewidth - indent) // (column.width + 2))
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _layout(nested: Any, dims: int, column: _Column | _ComplexColumn, indent: int) -> str:
    if dims == 0:
        return column.text(nested)
    if dims == 1:
        return _vector(nested, column, indent)
    rows = ["..." if row is _GAP else _layout(row, dims - 1, column, indent + 1) for row in nested]
    return "[" + ("," + "\n" * (dims - 1) + " " * (indent + 1)).join(rows) + "]"


def _body(t: Any, indent: int) -> str:
    """The values of ``t`` between the brackets; ``indent`` is the width of the text before them."""
    with modes([mode for mode in mode_stack() if not hasattr(mode, "note_made")]):  # no step of a program shows tensors
        return _shown_body(t, indent)


def _shown_body(t: Any, indent: int) -> str:
    plain = t.detach()
    if t.dtype is float4_e2m1fn_x2:  # no number is one element: its bytes
        plain = plain.view(uint8).float()
    nested = _shown(plain, plain.numel() > _options.threshold)
    flat = list(_flatten(nested))
    kind = str(t.dtype)
    if "complex" in kind:
        return _layout(nested, t.dim(), _ComplexColumn(flat), indent)
    return _layout(nested, t.dim(), _Column(flat, "float" in kind), indent)


def _with_suffixes(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    """Append ``, suffix`` for each suffix and the closing bracket, on a new line where the line would grow too long
    (the first suffix always, if ``new_line``)."""
    length = len(text) - text.rfind("\n") + 1  # as PyTorch counts: two more than the line has
    parts = [text]
    for suffix in suffixes:
        if new_line or length + len(suffix) + 2 > _options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            length, new_line = indent + len(suffix), False
        else:
            parts.append(", " + suffix)
            length += len(suffix) + 2
    return "".join(parts) + ")"


def _is_default(t: Any, default: Any) -> bool:
    """Whether literals of ``t``'s kind would be given ``t``'s dtype, so that it need not be written."""
    name = str(t.dtype).rpartition(".")[2]
    complex_default = {"float64": "complex128", "float32": "complex64", "float16": "complex32"}
    float_default = str(default).rpartition(".")[2]
    return name in ("bool", "int64", float_default, complex_default.get(float_default, "complex64"))


def tensor_repr(t: Any, default_dtype: Any = None, contents: str | None = None) -> str:
    """The text of ``repr(t)``.

    Args:
        t: a tensor.
        default_dtype: the dtype of floating point literals; asked of taeda when not given.
        contents: what stands for the numbers, where it is given.
    """
    default = get_default_dtype() if default_dtype is None else default_dtype
    name = type(t).__name__
    prefix = "tensor(" if name in ("Tensor", "Parameter", "Buffer") else f"{name}("
    indent = len(prefix)
    suffixes: list[str] = []
    meta = str(t.device) == "meta"
    if str(t.device) != "cpu":
        suffixes.append(f"device='{t.device}'")
    if meta:
        body = "..."
        suffixes.append(f"size={tuple(t.shape)}")
        if t.dtype != default:
            suffixes.append(f"dtype={t.dtype}")
    elif t.numel() == 0:
        body = "[]"
        if t.dim() != 1:
            suffixes.append(f"size={tuple(t.shape)}")
        if t.dtype != default:
            suffixes.append(f"dtype={t.dtype}")
    else:
        body = _body(t, indent) if contents is None else contents
        if not _is_default(t, default):
            suffixes.append(f"dtype={t.dtype}")
    tangent = None
    if forward_levels() and callbacks.unpack_dual is not None:
        t, tangent = callbacks.unpack_dual(t)
    if t.grad_fn is not None:
        suffixes.append(f"grad_fn=<{t.grad_fn.name().rpartition('::')[2]}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return _with_suffixes(prefix + (body if contents is None else contents), suffixes, indent)


def sparse_repr(t: Any, new_line: bool, **parts: Any) -> str:
    """The text of a sparse tensor.

    Args:
        t: the tensor, of which sizes, dtype, layout and graph are shown.
        new_line: whether its sizes begin a line.
        parts: the dense tensors that it consists of, in the order in which they are shown.
    """
    indent = len("tensor(")
    texts = []
    for name, part in parts.items():
        empty = part.numel() == 0
        body = "[]" if empty else _body(part, indent + len(name) + len("=tensor("))
        texts.append(f"{name}=tensor({body}{f', size={tuple(part.shape)}' if empty else ''})")
    suffixes = [f"size={tuple(t.shape)}", f"nnz={t._nnz()}"]
    if not _is_default(t, get_default_dtype()):
        suffixes.append(f"dtype={t.dtype}")
    suffixes.append(f"layout={t.layout}")
    values = parts["values"]
    if values.grad_fn is not None:
        suffixes.append(f"grad_fn=<{values.grad_fn.name().rpartition('::')[2]}>")
    elif values.requires_grad:
        suffixes.append("requires_grad=True")
    return _with_suffixes("tensor(" + (",\n" + " " * indent).join(texts), suffixes, indent, new_line)


callbacks.repr = tensor_repr

_plain_repr = Tensor.__repr__


def _repr(self: Any, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor; ``tensor_contents`` stands for its numbers, where a subclass gives them."""
    return _plain_repr(self) if tensor_contents is None else tensor_repr(self, contents=tensor_contents)


_repr.__name__, _repr.__qualname__ = "__repr__", "Tensor.__repr__"
install("__repr__", _repr)


def _tensor_html(self: Any) -> str:
    """The form in which a notebook shows a tensor."""
    from ._html import tensor

    return tensor(self)


install("_repr_html_", _tensor_html)

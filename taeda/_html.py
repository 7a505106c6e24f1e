"""HTML for notebooks: small pieces, with all text escaped. Imported when the first one is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["fold", "module", "pre", "table", "tensor"]


def pre(text: str) -> str:
    """Text as it is."""
    return f'<pre style="margin:0">{escape(text)}</pre>'


def fold(line: str, inside: str, is_open: bool = False) -> str:
    """A line of text, and what unfolds below it: HTML."""
    start = " open" if is_open else ""
    return (
        f'<details{start} style="margin-left:1em"><summary style="cursor:pointer">{escape(line)}</summary>{inside}'
        "</details>"
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of text; the first column to the left, the others to the right."""
    cell = '<td style="text-align:{}">{}</td>'
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        f"<tr>{''.join(cell.format('right' if i else 'left', escape(text)) for i, text in enumerate(row))}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def tensor(t: Any) -> str:
    """The sizes and dtype of a tensor, and its values as ``repr`` has them."""
    kind = str(t.dtype).rpartition(".")[2]
    facts = [f"{type(t).__name__} {list(t.shape)}", kind, str(t.device)]
    if t.grad_fn is not None:
        facts.append(f"grad_fn {t.grad_fn.name().rpartition('::')[2]}")
    elif t.requires_grad:
        facts.append("requires grad")
    return f"<div><small>{escape(' · '.join(facts))}</small>{pre(repr(t))}</div>"


def module(m: Any, count: Callable[[Any], int], name: str = "", outermost: bool = True) -> str:
    """A module with those inside, to unfold, and the number of its parameters, which ``count`` tells."""
    children = {key: child for key, child in m._modules.items() if child is not None}
    line, number = f"{name}: " * bool(name) + f"{m._get_name()}({m.extra_repr()})", count(m)
    line += f" · {number:,} parameters" * bool(number)
    if not children:
        return f'<div style="margin-left:2em">{escape(line)}</div>'
    return fold(line, "".join(module(child, count, key, False) for key, child in children.items()), outermost)

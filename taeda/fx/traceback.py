"""The ``meta`` of new Nodes: the annotations of the program, and the Node that is being interpreted."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from taeda._core.settings import within

__all__ = [
    "annotate", "annotate_fn", "format_stack", "get_current_meta", "get_current_replay_node", "has_preserved_node_meta",
    "preserve_node_meta", "reset_grad_fn_seq_nr", "set_current_meta", "set_current_replay_node", "set_grad_fn_seq_nr",
    "set_stack_trace",
]  # fmt: skip


class _State(threading.local):
    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.preserve = False
        self.replayed: Any = None


_state = _State()


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Within it, new Nodes get the current meta."""
    with within(_state, preserve=enable, meta=dict(_state.meta)):
        yield


def has_preserved_node_meta() -> bool:
    """Whether new Nodes get the current meta."""
    return _state.preserve


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Within it, new Nodes get ``annotation_dict`` as ``meta["custom"]``, where the meta is preserved."""
    with within(_state, meta={**_state.meta, "custom": {**_state.meta.get("custom", {}), **annotation_dict}}):
        yield


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable], Callable]:
    """:func:`annotate` as a decorator."""
    return annotate(annotation_dict)


def set_stack_trace(stack: list[str]) -> None:
    """The stack trace of new Nodes."""
    if _state.preserve and stack:
        _state.meta["stack_trace"] = "".join(stack)


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """The number of the node of autograd that runs."""
    if _state.preserve:
        _state.meta.setdefault("grad_fn_seq_nr", []).append(seq_nr)


def reset_grad_fn_seq_nr() -> None:
    """The node of autograd has run."""
    if _state.preserve and _state.meta.get("grad_fn_seq_nr"):
        _state.meta["grad_fn_seq_nr"].pop()


def format_stack() -> list[str]:
    """The current stack trace."""
    if _state.preserve:
        return [_state.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """Within it, new Nodes get the meta of ``node``, where the meta is preserved."""
    with within(_state, meta=dict(node.meta) if _state.preserve and node.meta else _state.meta):
        yield


def get_current_meta() -> dict[str, Any]:
    """The ``meta`` of new Nodes."""
    return _state.meta


def set_current_replay_node(node: Any) -> AbstractContextManager:
    """Within it, ``node`` is the one that is run again."""
    return within(_state, replayed=node)


def get_current_replay_node() -> Any:
    """The Node that is run again, or None."""
    return _state.replayed

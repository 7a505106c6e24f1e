"""Checks of functions, names of files and open files, for data pipes."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from ..datapipe import dill

__all__ = [
    "StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root", "match_masks",
    "validate_input_col",
]  # fmt: skip


def validate_input_col(fn: Callable, input_col: Any) -> None:
    """Check that ``fn`` takes as many arguments as there are columns.

    Args:
        fn: the function that a pipe calls on samples.
        input_col: a column, several, or None for the whole sample.
    Raises:
        ValueError: it does not.
    """
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # a function in C without a signature
        return
    needed = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    name = getattr(fn.func if isinstance(fn, functools.partial) else fn, "__name__", repr(fn))
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if named:
        raise ValueError(
            f"The function {name} takes {len(named)} non-default keyword-only parameters, which is not allowed."
        )
    too_few = len(places) < needed and not any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if too_few or any(p.default is p.empty for p in places[needed:]):
        raise ValueError(f"The function {name} takes {len(places)} parameters, but {needed} are required.")


def _check_unpickable_fn(fn: Callable) -> None:
    """Warn of a function that cannot be sent to another process; TypeError for what is no function."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    while isinstance(fn, functools.partial):
        fn = fn.func
    code = getattr(fn, "__code__", None)
    local = (
        code.co_flags & inspect.CO_NESTED if code else "<locals>" in getattr(fn, "__qualname__", type(fn).__qualname__)
    )
    kind = "Local" if local else "Lambda" if getattr(fn, "__name__", "") == "<lambda>" else None
    if kind and dill() is None:
        warnings.warn(
            f"{kind} function is not supported by pickle, please use regular python function or functools.partial "
            "instead.",
            stacklevel=3,
        )


def chosen(fn: Callable, data: Any, column: Any) -> Any:
    """``fn`` of ``data``, or of the items of ``data`` that ``column`` names."""
    if column is None:
        return fn(data)
    return fn(*(data[c] for c in column)) if isinstance(column, (list, tuple)) else fn(data[column])


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether ``name`` fits one of the patterns; without patterns it does."""
    return not masks or any(fnmatch.fnmatch(name, m) for m in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(
    root: str, masks: str | list[str], recursive: bool = False, abspath: bool = False, non_deterministic: bool = False
) -> Iterator[str]:
    """The files in a folder, in order of their names."""

    def failed(error: OSError) -> None:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    if os.path.isfile(root):
        path = os.path.abspath(root) if abspath else root
        if match_masks(os.path.basename(path), masks):
            yield path
        return
    for folder, folders, files in os.walk(root, onerror=failed):
        if not non_deterministic:
            files.sort()
            folders.sort()
        at = os.path.abspath(folder) if abspath else folder
        yield from (os.path.join(at, name) for name in files if match_masks(name, masks))
        if not recursive:
            break


def get_file_binaries_from_pathnames(pathnames: Any, mode: str, encoding: str | None = None) -> Iterator[tuple]:
    """Pairs of a path and its file, opened."""
    for path in pathnames if isinstance(pathnames, Iterable) else [pathnames]:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        file = open(path, f"r{mode}" if mode in ("b", "t") else mode, encoding=encoding)  # noqa: SIM115
        yield path, StreamWrapper(file)


class StreamWrapper:
    """An open file that is closed when nothing refers to it, or to the streams read from it."""

    session_streams: ClassVar[dict[Any, int]] = {}
    debug_unclosed_streams: ClassVar[bool] = False

    def __init__(self, file_obj: Any, parent_stream: StreamWrapper | None = None, name: str | None = None):
        self.file_obj = file_obj
        self.child_counter = 0
        self.parent_stream = parent_stream
        self.close_on_last_child = False
        self.name = name
        self.closed = False
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Close the streams in lists, tuples and dicts."""
        if isinstance(v, StreamWrapper):
            v.close()
        elif depth <= 10 and isinstance(v, (dict, list, tuple)):
            for item in v.values() if isinstance(v, dict) else v:
                cls.close_streams(item, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["file_obj"], name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the file, and the parent that waits for its last child."""
        if self.closed:
            return
        StreamWrapper.session_streams.pop(self, None)
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        if hasattr(self.file_obj, "close"):
            self.file_obj.close(*args, **kwargs)
        self.closed = True

    def autoclose(self) -> None:
        """Close when the last child is closed; at once if there is none."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __dir__(self) -> list[str]:
        return list({*vars(self), *vars(StreamWrapper), *dir(self.file_obj)})

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __iter__(self) -> Iterator:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return f"StreamWrapper<{'' if self.name is None else f'{self.name},'}{self.file_obj!r}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, state: Any) -> None:
        self.__init__(state)  # type: ignore[misc]

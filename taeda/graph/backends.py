"""The backends of ``compile``: their names, and the errors of PyTorch's tracer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "BackendCompilerFailed", "InvalidBackend", "Unsupported", "list_backends", "lookup_backend", "register_backend",
]  # fmt: skip


class TorchDynamoException(RuntimeError):
    """The base of the errors that ``compile`` itself raises."""


class InvalidBackend(TorchDynamoException):
    """No backend has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid backend: {name!r}, see `taeda.compiler.list_backends()` for available backends.")


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised an error, or returned an object that cannot be called."""

    def __init__(self, backend_fn: Any, inner_exception: Exception) -> None:
        self.backend_name = getattr(backend_fn, "__name__", "?") if callable(backend_fn) else str(backend_fn)
        self.inner_exception = inner_exception
        super().__init__(f"backend={self.backend_name!r} raised:\n{type(inner_exception).__name__}: {inner_exception}")


class InternalTorchDynamoError(TorchDynamoException):
    """A defect of PyTorch's tracer, which ``compile`` does not have; programs name it to catch it."""


class Unsupported(TorchDynamoException):
    """``fullgraph=True``, and the program needs a value before its end."""


#: Backends that get no graph: the program runs as it is, with ops deferred or one by one.
FUSING = ("inductor", "cudagraphs")
EAGER = (
    "aot_eager", "aot_eager_decomp_partition", "aot_eager_default_partitioner", "eager", "eager_debug",
    "eager_noexcept",
)  # fmt: skip

#: The registered backends: the function (None for those above) and its tags.
_backends: dict[str, tuple[Callable | None, tuple[str, ...]]] = {
    **{name: (None, ()) for name in FUSING},
    **{name: (None, ("debug",)) for name in EAGER},
}


def register_backend(compiler_fn: Callable | None = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Make ``compile(backend=name)`` use ``compiler_fn(graph_module, example_inputs)``; also a decorator.

    Raises:
        AssertionError: ``compiler_fn`` cannot be called, or there is such a name.
    """
    if compiler_fn is None:
        return lambda function: register_backend(function, name, tags)
    if not callable(compiler_fn):
        raise AssertionError(f"compiler_fn must be callable, got {type(compiler_fn)}")
    name = name or compiler_fn.__name__
    if name in _backends:
        raise AssertionError(f"duplicate name: {name}")
    _backends[name] = compiler_fn, tuple(tags)
    return compiler_fn


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names of the backends without those that have one of ``exclude_tags``."""
    excluded = set(exclude_tags or ())
    return sorted(name for name, (_, tags) in _backends.items() if not excluded.intersection(tags))


def lookup_backend(compiler_fn: Any) -> Any:
    """The function of the backend of that name; a name whose backend is no function of a graph, and anything else, as
    it is.

    Raises:
        InvalidBackend: there is none.
    """
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn not in _backends:
        raise InvalidBackend(compiler_fn)
    return _backends[compiler_fn][0] or compiler_fn

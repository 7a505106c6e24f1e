"""Ways for the processes of a group to find each other: an address, a file, or the environment that a launcher sets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlparse

from . import launched
from .stores import DEFAULT_TIMEOUT, FileStore, Store, TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

Meeting = tuple[Store, int, int]  # the store, the rank of this process, how many there are

_handlers: dict[str, Callable[..., Iterator[Meeting]]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[Meeting]]) -> None:
    """Let ``handler(url)`` answer for addresses that begin with ``scheme://``.

    Args:
        scheme: what addresses begin with.
        handler: the function.

    Raises:
        RuntimeError: there is one already.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[Meeting]:
    """The store at ``url``, the rank of this process and the number of processes.

    Args:
        url: the address.
        rank: of this process; -1: the address or the environment says.
        world_size: number of processes; -1: the address or the environment says.
        **kwargs: for the handler.

    Returns:
        An iterator over meetings, of which the first counts.

    Raises:
        ValueError: the address, or the environment, does not say all of it.
        RuntimeError: the scheme is not known.
    """
    scheme = urlparse(url).scheme
    if scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {scheme}://")
    return _handlers[scheme](url, rank, world_size, **kwargs)


def _error(scheme: str, what: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {what}")


def _asked(scheme: str, url: str, rank: int, world_size: int) -> tuple[int, int]:
    """Rank and number of processes, from the arguments or from the address."""
    query = {key: values[0] for key, values in parse_qs(urlparse(url).query).items()}
    rank = rank if rank >= 0 else int(query.get("rank", -1))
    world_size = world_size if world_size >= 0 else int(query.get("world_size", -1))
    if rank < 0:
        raise _error(scheme, "rank parameter missing")
    if world_size < 0:
        raise _error(scheme, "world size parameter missing")
    return rank, world_size


def _by_tcp(
    url: str, rank: int = -1, world_size: int = -1, timeout: timedelta = DEFAULT_TIMEOUT, **kwargs: Any
) -> Iterator[Meeting]:
    parts = urlparse(url)
    if not parts.port:
        raise _error("tcp", "port number missing")
    rank, world_size = _asked("tcp", url, rank, world_size)
    store = TCPStore(parts.hostname or "localhost", parts.port, world_size, rank == 0, timeout)
    yield store, rank, world_size


def _by_file(
    url: str, rank: int = -1, world_size: int = -1, timeout: timedelta = DEFAULT_TIMEOUT, **kwargs: Any
) -> Iterator[Meeting]:
    path = urlparse(url).path
    if not path:
        raise _error("file", "path missing")
    rank, world_size = _asked("file", url, rank, world_size)
    store = FileStore(path, world_size)
    store.set_timeout(timeout)
    yield store, rank, world_size


def _by_environment(
    url: str, rank: int = -1, world_size: int = -1, timeout: timedelta = DEFAULT_TIMEOUT, **kwargs: Any
) -> Iterator[Meeting]:
    def variable(name: str) -> str:
        value = launched.variable(name)
        if not value:
            raise _error("env", f"environment variable {name} expected, but not set")
        return value

    rank = rank if rank >= 0 else int(variable("RANK"))
    world_size = world_size if world_size >= 0 else int(variable("WORLD_SIZE"))
    address, port = variable("MASTER_ADDR"), int(variable("MASTER_PORT"))
    # an elastic launcher keeps the store itself
    kept = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    yield TCPStore(address, port, world_size, rank == 0 and not kept, timeout), rank, world_size


_handlers.update(tcp=_by_tcp, file=_by_file, env=_by_environment)

"""Shared memory between the processes of one machine: one makes an anonymous file and hands its descriptor to the
others.

Nothing is left behind however the processes end: neither the file nor the socket for its handover has a place on disk.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ..._core.shared import Segment
from ..errors import DistBackendError
from ..links import Links
from .contract import Call

_SECRET = 16


def shared_segment(
    links: Links, ranks: Sequence[int], rank: int, call: Call, timeout: timedelta, nbytes: int
) -> Any | None:
    """Memory of ``nbytes`` zeros that the processes ``ranks`` share, or None where one of them cannot have it.

    Args:
        links: how they talk meanwhile.
        ranks: theirs in the world.
        rank: the number of this process among them; 0 makes the memory.
        call: the collective that they are about to do; one that does something else is an error.
        timeout: how long one waits for another.
        nbytes: the size.
    Returns:
        The memory, or None.
    """
    key = (call.group, "memory")

    def tell(to: int, word: bytes) -> None:
        links.send(ranks[to], key, call.doing, word, call.site)

    def hear(of: int) -> bytes:
        return bytes(links.receive([ranks[of]], key, call.doing, timeout, call.site)[2])

    others = range(1, len(ranks))
    if rank == 0:
        with contextlib.ExitStack() as stack:
            segment, server, word = _offer(nbytes)
            if server is not None:
                stack.enter_context(server)
            for other in others:
                tell(other, word)
            agreed = all([hear(other) == b"yes" for other in others]) and segment is not None
            for other in others:
                tell(other, b"yes" if agreed else b"no")
            if agreed:
                _hand_over(server, word, segment.fd, len(others), timeout)
                segment.close()
            return segment if agreed else None
    word = hear(0)
    connection = _reach(word)
    tell(0, b"yes" if connection is not None else b"no")
    agreed = hear(0) == b"yes"
    if connection is None:
        return None
    with connection:
        return _taken(connection, nbytes, timeout) if agreed else None


def _offer(nbytes: int) -> tuple[Any, Any, bytes]:
    """The memory, a socket to hand it over, and the socket's address; None and nothing if the system has none."""
    try:
        segment = Segment(nbytes)
        server = socket.socket(socket.AF_UNIX)
        name, secret = secrets.token_hex(8), secrets.token_bytes(_SECRET)
        server.bind(b"\0taeda-" + name.encode())  # an abstract name, which Linux has: no file
        server.listen(128)
        return segment, server, name.encode() + secret
    except (OSError, AttributeError):
        return None, None, b""


def _reach(word: bytes) -> socket.socket | None:
    if not word:
        return None
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(b"\0taeda-" + word[:-_SECRET])
        connection.sendall(word[-_SECRET:])
        return connection
    except OSError:
        return None


def _hand_over(server: socket.socket, word: bytes, fd: int, count: int, timeout: timedelta) -> None:
    """Send the descriptor to ``count`` processes that know the secret; the others of the machine get nothing."""
    end = time.monotonic() + timeout.total_seconds()
    while count:
        server.settimeout(max(end - time.monotonic(), 0.01))
        try:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(5)
                if secrets.compare_digest(connection.recv(_SECRET, socket.MSG_WAITALL), word[-_SECRET:]):
                    count -= 1  # also if it has ended, which its connections will tell
                    socket.send_fds(connection, [b"!"], [fd])
        except TimeoutError:
            if time.monotonic() >= end:
                raise DistBackendError(f"shared memory: {count} processes did not take it within {timeout}") from None
        except OSError:
            continue


def _taken(connection: socket.socket, nbytes: int, timeout: timedelta) -> Any:
    connection.settimeout(timeout.total_seconds())
    _, fds, _, _ = socket.recv_fds(connection, 1, 1)
    if not fds:
        raise DistBackendError("shared memory: the process that made it has ended")
    segment = Segment(nbytes, fds[0])
    segment.close()  # the memory stays
    return segment

"""Messages between the processes of a world: one TCP connection for each two of them.

A thread for each connection reads whatever comes and lays it out by its key, so that sending never waits for the other
side to ask. A message carries what its sender is doing; one that waits for something else, for a process that is gone, or
longer than the timeout, fails and says so, and lets the others know.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import struct
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import taeda

from .errors import DistBackendError, DistNetworkError
from .stores import Store, receive_exactly

Key = tuple[str, str]  # the group's name, and which of its messages
_HEAD = struct.Struct("<IQ")  # bytes of the header, bytes of the payload
_TOKEN = 16
_LARGE = 1 << 16


class Links:
    """The connections of process ``rank`` to all others of a world of ``size``, which find each other by ``store``."""

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self._changed = threading.Condition()
        self._arrived: dict[tuple[int, Key], deque[tuple[dict, memoryview]]] = defaultdict(deque)
        self._awaited: dict[Key, dict[int, str]] = defaultdict(dict)  # what others wait for, and do, by rank
        self._failed: dict[str, str] = {}  # groups of which a process has failed, and how
        self._gone: set[int] = set()
        self._peers: dict[int, socket.socket] = {}
        self._sending = {r: threading.Lock() for r in range(size)}
        self._meet(store)

    def _meet(self, store: Store) -> None:
        """Connect to all ranks below this one, and take the connections of those above."""
        token = secrets.token_bytes(_TOKEN)  # only who reads the store may connect
        server = socket.create_server(("", 0))
        with server:
            host = _own_address(store)
            store.set(f"address/{self.rank}", f"{host} {server.getsockname()[1]} {token.hex()}")
            for other in range(self.rank):
                address, port, word = store.get(f"address/{other}").decode().split()
                try:
                    peer = socket.create_connection((address, int(port)), self.timeout.total_seconds())
                    peer.sendall(bytes.fromhex(word) + struct.pack("<I", self.rank))
                except OSError as error:
                    raise DistNetworkError(
                        f"rank {self.rank} cannot connect to rank {other} at {address}:{port}: {error}"
                    ) from None
                self._add(other, peer)
            server.settimeout(self.timeout.total_seconds())
            while len(self._peers) < self.size - 1:
                try:
                    peer, _ = server.accept()
                    peer.settimeout(self.timeout.total_seconds())
                    hello = receive_exactly(peer, _TOKEN + 4)
                except TimeoutError:
                    lacking = sorted(set(range(self.size)) - {self.rank} - set(self._peers))
                    raise DistNetworkError(f"ranks {lacking} did not connect within {self.timeout}") from None
                except OSError:
                    continue
                if secrets.compare_digest(bytes(hello[:_TOKEN]), token):
                    self._add(struct.unpack("<I", hello[_TOKEN:])[0], peer)
                else:
                    peer.close()

    def _add(self, rank: int, peer: socket.socket) -> None:
        peer.settimeout(None)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peers[rank] = peer
        threading.Thread(target=self._read, args=(rank, peer), name=f"taeda-rank-{rank}", daemon=True).start()

    def _read(self, rank: int, peer: socket.socket) -> None:
        try:
            while True:
                header_size, size = _HEAD.unpack(receive_exactly(peer, _HEAD.size))
                header = json.loads(bytes(receive_exactly(peer, header_size)))
                # large ones go to memory that the allocator has had before: fresh pages cost as much as the transfer
                place = memoryview(taeda.empty(size, dtype=taeda.uint8).numpy()) if size > _LARGE else None
                payload = receive_exactly(peer, size, place)
                with self._changed:
                    key = (header["group"], header["message"])
                    if header["kind"] == "data":
                        self._arrived[rank, key].append((header, payload))
                    elif header["kind"] == "waiting":
                        self._awaited[key][rank] = header["doing"]
                    else:
                        self._failed.setdefault(header["group"], header["doing"])
                    self._changed.notify_all()
        except (OSError, ValueError):
            with self._changed:
                self._gone.add(rank)
                self._changed.notify_all()

    def _post(self, rank: int, kind: str, key: Key, doing: str, payload: Any = b"", **more: Any) -> None:
        header = json.dumps({"kind": kind, "group": key[0], "message": key[1], "doing": doing, **more}).encode()
        size = memoryview(payload).nbytes
        try:
            with self._sending[rank]:
                self._peers[rank].sendall(_HEAD.pack(len(header), size) + header)
                if size:
                    self._peers[rank].sendall(payload)
        except OSError:
            raise self._lost(rank, doing) from None

    @staticmethod
    def _lost(rank: int, doing: str) -> DistBackendError:
        return DistBackendError(
            f"{doing}: Connection closed by peer: rank {rank} has ended, or has left the group. Look at its output"
        )

    def send(self, rank: int, key: Key, doing: str, payload: Any = b"", **more: Any) -> None:
        """Send ``payload`` (bytes, or what lends its memory) to ``rank``.

        Args:
            rank: to whom.
            key: what the receiver waits for.
            doing: what this process is doing, in words that are equal where two agree.
            payload: the bytes.
            **more: entries of the header.
        Raises:
            DistBackendError: that process is gone, or one of the group has failed.
        """
        self.check(key[0])
        self._post(rank, "data", key, doing, payload, **more)

    def receive(
        self, ranks: Iterable[int], key: Key, doing: str, timeout: timedelta | None = None
    ) -> tuple[int, dict, memoryview]:
        """What one of ``ranks`` sent: its rank, the header and the bytes.

        Raises:
            DistBackendError: none came in time, a process is gone, or the processes do not do the same.
        """
        ranks = list(ranks)
        timeout = self.timeout if timeout is None else timeout
        end = time.monotonic() + timeout.total_seconds()
        told = False
        while True:
            with self._changed:
                found = self._look(ranks, key, doing)
                if found is not None:
                    break
                others = [(rank, what) for rank, what in self._awaited.get(key, {}).items() if what != doing]
                if others:
                    break
                if told or not key[1].isdigit():  # messages from one to one are not numbered
                    if not self._changed.wait(end - time.monotonic()) and time.monotonic() >= end:
                        raise DistBackendError(
                            f"{doing}: rank {self.rank} timed out after {timeout} waiting for rank "
                            f"{', '.join(map(str, ranks))}, which may be doing something else"
                        )
                    continue
            told = True
            for rank in ranks:
                with contextlib.suppress(DistBackendError):
                    self._post(rank, "waiting", key, doing)
        rank, header, payload = (others[0][0], {"doing": others[0][1]}, memoryview(b"")) if found is None else found
        if header["doing"] != doing:
            self.fail(key[0], f"mismatched collectives: rank {rank} does {header['doing']}, rank {self.rank} {doing}")
        return rank, header, payload

    def _look(self, ranks: list[int], key: Key, doing: str) -> tuple[int, dict, memoryview] | None:
        """What has come under ``key``, or None; called with the lock."""
        for rank in ranks:
            queue = self._arrived.get((rank, key))
            if queue:
                header, payload = queue.popleft()
                if not queue:
                    del self._arrived[rank, key]
                self._awaited.pop(key, None)
                return rank, header, payload
        if key[0] in self._failed:
            raise DistBackendError(self._failed[key[0]])
        gone = self._gone.intersection(ranks)
        if gone and len(gone) == len(ranks):
            raise self._lost(min(gone), doing)
        return None

    def has(self, ranks: Iterable[int], key: Key) -> bool:
        """Whether something from one of ``ranks`` has come under ``key``."""
        with self._changed:
            return any(self._arrived.get((rank, key)) for rank in ranks)

    def check(self, group: str) -> None:
        """Raise what a process of ``group`` failed with, if one did."""
        if group in self._failed:
            raise DistBackendError(self._failed[group])

    def fail(self, group: str, text: str) -> None:
        """Raise ``text`` as an error here and at every process that waits for one of ``group``."""
        self._failed[group] = text
        for rank in self._peers:
            with contextlib.suppress(DistBackendError):
                self._post(rank, "failed", (group, ""), text)
        raise DistBackendError(text)

    def close(self) -> None:
        """End the connections."""
        for peer in self._peers.values():
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
            peer.close()


def _own_address(store: Store) -> str:
    """The address by which others reach this process: that of its end of the way to the store's host."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    host, port = getattr(store, "host", None), getattr(store, "port", 0)
    if host is None:
        return "127.0.0.1"  # a file: the same machine
    try:
        with socket.create_connection((host, port), 10) as probe:
            return probe.getsockname()[0]
    except OSError:
        return "127.0.0.1"

"""Messages between the processes of a world: one TCP connection for each two of them.

Messages are read when they come, and kept by key: a sender never waits until the other side asks. The thread that waits
for a message reads it straight into its memory; if none waits, the connection's own thread reads it. A message says
which call its sender makes. A receiver fails if the sender makes another call, if its process is gone, or after the
timeout. The error says which, and the receiver tells the others.

A process puts a token into the store, and a connection must begin with it. Other connections are dropped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import select
import socket
import struct
import threading
import time
import weakref
from collections import defaultdict, deque
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from .._core import uint8
from ..ops.creation import empty
from .errors import DistBackendError, DistNetworkError
from .stores import Store, limit_transfer, receive_exactly

Key = tuple[str, str]  # the group's name, and which of its messages
_HEAD = struct.Struct("<IQ")  # bytes of the header, bytes of the payload
_TOKEN = 16
_HELLO = struct.Struct(f"<{_TOKEN}sI16s64s")  # the token, the rank, the machine, the host's name
_GREETING = 30.0  # seconds for a new connection to greet
_LARGE = 1 << 16
_MEMORY = 64  # collectives whose calls are remembered
_TEXT = 1 << 12  # characters of the description of a process's call
_EAGER = 0.05  # seconds during which the waiting thread reads by itself
_NAP = 0.005  # seconds that a connection's thread leaves reading to others, after one of them has read


_all_links: weakref.WeakSet[Links] = weakref.WeakSet()


class Header(NamedTuple):
    """The fields of a message beside its bytes."""

    kind: str  # "data", "waiting" or "failed"
    group: str
    message: str  # the name of the message in the group
    doing: str  # the sender's call
    site: str  # file and line of the call

    def encoded(self) -> bytes:
        """As it travels."""
        return "\0".join(part.replace("\0", " ") if "\0" in part else part for part in self).encode()

    @classmethod
    def decoded(cls, data: memoryview) -> Header:
        """Read a header from received bytes.

        Args:
            data: the bytes.

        Returns:
            The header.

        Raises:
            ValueError: that is none.
        """
        header = cls(*str(data, "utf-8").split("\0", 4))
        if header.kind not in ("data", "waiting", "failed"):
            raise ValueError("what came is not a message")
        return header


class Peer:
    """The other end of a connection.

    Args:
        connection: to it.
        machine: what tells one machine (or container) from another.
        host: its name.
    """

    def __init__(self, connection: socket.socket, machine: bytes, host: str) -> None:
        self.connection, self.machine, self.host = connection, machine, host
        self.reading = threading.Lock()  # held by the thread that reads a message, or waits for one
        self.claims = 0  # how often somebody other than the connection's thread did
        self.needed = threading.Event()  # the connection's thread has to read
        self._polls = select.poll(), select.poll()  # for the reading thread, and for the connection's thread
        for poll in self._polls:
            poll.register(connection, select.POLLIN)

    def wait(self) -> None:
        """Wait until something comes; for the connection's thread."""
        self._polls[1].poll()

    def has_come(self, seconds: float) -> bool:
        """Whether data comes within ``seconds``; for the reading thread."""
        return bool(self._polls[0].poll(seconds * 1000))

    def send(self, head: bytes, payload: memoryview) -> None:
        """Send both, in one call to the system where it takes that."""
        size = len(head) + payload.nbytes
        sent = self.connection.sendmsg([head, payload])
        while sent < size:
            left: list[Any] = [head[sent:], payload] if sent < len(head) else [payload[sent - len(head) :]]
            sent += self.connection.sendmsg(left)


class Links:
    """The connections of process ``rank`` to all others of a world of ``size``, which find each other by ``store``."""

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        _all_links.add(self)
        self._empty()
        self._meet(store)

    def _empty(self) -> None:
        """Start without messages and without known processes."""
        self.machine = this_machine()
        self._changed = threading.Condition()
        self._arrived: dict[tuple[int, Key], deque[tuple[Header, memoryview]]] = defaultdict(deque)
        self._awaited: dict[Key, dict[int, tuple[str, str]]] = defaultdict(dict)  # what others wait for, do, where
        self._failed: dict[str, str] = {}  # groups of which a process has failed, and how
        self._begun: dict[str, dict[int, tuple[str, str]]] = defaultdict(dict)  # by group: the last collectives
        self._gone: dict[int, str] = {}  # processes that send no more, and why, unless they have ended
        self._peers: dict[int, Peer] = {}
        self._sending = {r: threading.Lock() for r in range(self.size)}

    def _meet(self, store: Store) -> None:
        """Connect to all ranks below this one, and take the connections of those above."""
        token = secrets.token_bytes(_TOKEN)  # only processes that read the store may connect
        host = socket.gethostname()
        with socket.create_server(("", 0), backlog=self.size + 16) as server:
            where = f"{own_address(store)} {server.getsockname()[1]} {token.hex()} {self.machine.hex()} {host}"
            store.set(f"address/{self.rank}", where)
            for other in range(self.rank):
                address, port, word, machine, name = store.get(f"address/{other}").decode().split()
                try:
                    peer = socket.create_connection((address, int(port)), self.timeout.total_seconds())
                    peer.sendall(_hello(bytes.fromhex(word), self.rank, self.machine, host))
                except OSError as error:
                    raise DistNetworkError(
                        f"rank {self.rank} cannot connect to rank {other} at {address}:{port}: {error}"
                    ) from None
                self._add(other, Peer(peer, bytes.fromhex(machine), name))
            self._accept(server, token)

    def _accept(self, server: socket.socket, token: bytes) -> None:
        end = time.monotonic() + self.timeout.total_seconds()
        greeting: list[threading.Thread] = []
        while True:
            greeting = [thread for thread in greeting if thread.is_alive()]
            if len(self._peers) == self.size - 1:
                return
            # the process that greets may be the last one, and then no other thread wakes this one
            server.settimeout(min(max(end - time.monotonic(), 0.001), 0.01 if greeting else 1))
            try:
                connection, _ = server.accept()
            except OSError:
                if time.monotonic() >= end:
                    lacking = sorted(set(range(self.size)) - {self.rank} - set(self._peers))
                    raise DistNetworkError(f"ranks {lacking} did not connect within {self.timeout}") from None
                continue
            # a thread for each, so that a stranger that sends nothing delays no other process
            greeting.append(threading.Thread(target=self._greet, args=(connection, token), daemon=True))
            greeting[-1].start()

    def _greet(self, connection: socket.socket, token: bytes) -> None:
        """Take ``connection``, if it begins with the token and a rank that is expected."""
        connection.settimeout(_GREETING)
        try:
            said, rank, machine, host = _HELLO.unpack(receive_exactly(connection, _HELLO.size))
            if secrets.compare_digest(said, token) and self.rank < rank < self.size and rank not in self._peers:
                self._add(rank, Peer(connection, machine, host.rstrip(b"\0").decode(errors="replace")))
                return
        except OSError:
            pass
        connection.close()

    def _add(self, rank: int, peer: Peer) -> None:
        peer.connection.settimeout(None)
        _watch(peer.connection, self.timeout)
        self._peers[rank] = peer
        threading.Thread(target=self._read, args=(rank, peer), name=f"taeda-rank-{rank}", daemon=True).start()

    def on_one_machine(self, ranks: Iterable[int]) -> bool:
        """Whether all ``ranks`` can share memory."""
        return len({self.machine if rank == self.rank else self._peers[rank].machine for rank in ranks}) == 1

    def _read(self, rank: int, peer: Peer) -> None:
        """Read messages from ``rank`` while no other thread does. Waking two threads for each message costs time."""
        while rank not in self._gone:
            seen = -1
            while peer.claims != seen or peer.reading.locked():
                seen = peer.claims
                if peer.needed.wait(_NAP):
                    peer.needed.clear()
                    break
            peer.wait()
            if peer.reading.acquire(blocking=False):
                try:
                    if peer.has_come(0):
                        self._read_message(rank, peer)
                finally:
                    peer.reading.release()

    def _read_here(self, rank: int, key: Key, doing: str, into: memoryview | None, timeout: timedelta) -> None:
        """Read from ``rank`` until its message ``key`` is there or cannot come. It must begin within :data:`_EAGER`
        seconds, and may not stop for ``timeout``."""
        peer, end = self._peers[rank], time.monotonic() + min(_EAGER, timeout.total_seconds())
        hurried = timeout < self.timeout
        while (left := end - time.monotonic()) > 0:
            mine = peer.reading.acquire(blocking=False)
            try:
                with self._changed:
                    over = (rank, key) in self._arrived or rank in self._gone
                    if over or key[0] in self._failed or key in self._awaited:
                        return
                    if not mine:
                        self._changed.wait(min(left, _NAP))
                if mine:
                    peer.claims += 1
                    if peer.has_come(left):
                        if hurried:
                            _limit_reading(peer.connection, timeout)
                        self._read_message(rank, peer, key, doing, into)
            finally:
                if mine:
                    if hurried:
                        _limit_reading(peer.connection, self.timeout)
                    peer.claims += 1
                    peer.reading.release()

    def _read_message(
        self, rank: int, peer: Peer, key: Key | None = None, doing: str = "", into: memoryview | None = None
    ) -> None:
        """Read a message of ``rank`` and lay it out; the one for ``key``, ``into`` the memory that it is for."""
        try:
            header_size, size = _HEAD.unpack(receive_exactly(peer.connection, _HEAD.size))
            if header_size > _LARGE:
                raise ValueError("what came is not a message")
            first = receive_exactly(peer.connection, header_size + (size if size <= _LARGE else 0))
            header, payload = Header.decoded(first[:header_size]), first[header_size:]
            asked = header[:4] == ("data", *key, doing) if key else False
            if asked and into is not None and into.nbytes == size > 0:
                place = into
                place[: payload.nbytes] = payload
            elif size > _LARGE:
                # large ones go to memory that the allocator has had before: fresh pages cost as much as the transfer
                place = memoryview(empty(size, dtype=uint8).numpy())
            else:
                place = payload
            if size > _LARGE:
                receive_exactly(peer.connection, size, place)
            self._lay_out(rank, header, place)
        except BlockingIOError:
            self._leave(rank, f"rank {rank} stopped in the middle of a message for longer than the timeout")
        except (OSError, ValueError, KeyError, TypeError, MemoryError, RuntimeError):  # ended, or sends no message
            with self._changed:
                self._gone.setdefault(rank, "")
                self._changed.notify_all()

    def _lay_out(self, rank: int, header: Header, payload: memoryview) -> None:
        with self._changed:
            key = (header.group, header.message)
            if header.kind == "data":
                self._arrived[rank, key].append((header, payload))
                self._look_back(header.group)
            elif header.kind == "waiting":
                self._awaited[key][rank] = header.doing, header.site
            else:
                self._failed.setdefault(header.group, header.doing)
            self._changed.notify_all()

    def begin(self, group: str, number: int, doing: str, site: str) -> None:
        """Say that this process does collective ``number`` of ``group``: those before are over.

        Args:
            group: its name.
            number: of the collective, counted in the group.
            doing: its name, for messages.
            site: the line that called it, for messages.

        Raises:
            DistBackendError: something came for one of those, which this process did not take.
        """
        begun = self._begun[group]
        if number not in begun:  # only this thread adds it
            with self._changed:
                begun[number] = doing, site
                begun.pop(number - _MEMORY, None)
                self._look_back(group)
        self.check(group)

    def _look_back(self, group: str) -> None:
        """Fail, if a message came for a collective that is over; called with the lock."""
        begun = self._begun.get(group)
        if not begun or group in self._failed:
            return
        for (rank, (of, message)), waiting in self._arrived.items():
            if of == group and message.isdigit() and int(message) < max(begun):
                doing, site = begun.get(int(message), ("something else", "a line before"))
                header = waiting[0][0]
                self._failed[group] = (
                    f"mismatched collectives: rank {rank} does {header.doing} at {header.site}, rank {self.rank} "
                    f"{doing} at {site}"
                )
                threading.Thread(target=self.tell, args=(group, self._failed[group]), daemon=True).start()
                return

    def _post(self, rank: int, kind: str, key: Key, doing: str, payload: Any = b"", site: str = "") -> None:
        header = Header(kind, *key, doing[:_TEXT], site[-_TEXT:]).encoded()
        payload = memoryview(payload)
        peer = self._peers[rank]
        if payload.nbytes > _LARGE:
            peer.needed.set()  # if the other side sends as well, both wait until their messages are read
        try:
            with self._sending[rank]:
                peer.send(_HEAD.pack(len(header), payload.nbytes) + header, payload)
        except BlockingIOError:  # a message is on its way in part: nothing that comes later could be read
            self._leave(rank, f"rank {rank} took nothing for {self.timeout}")
            raise DistBackendError(
                f"{doing} at {site}: rank {self.rank} timed out after {self.timeout} sending to rank {rank} on host "
                f"{peer.host}, which takes nothing: it may be stopped, or its link broken"
            ) from None
        except OSError:
            raise self._lost(rank, doing) from None

    def _leave(self, rank: int, why: str) -> None:
        """Drop a process: it gets and sends no more messages."""
        with self._changed:
            self._gone.setdefault(rank, why)
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            self._peers[rank].connection.shutdown(socket.SHUT_RDWR)

    def _lost(self, rank: int, doing: str) -> DistBackendError:
        leave_word(rank)
        closed = f"Connection closed by peer: rank {rank} has ended, or has left the group"
        return DistBackendError(
            f"{doing}: {self._gone.get(rank) or closed}. It ran on host {self._peers[rank].host}: look at its output"
        )

    def send(self, rank: int, key: Key, doing: str, payload: Any = b"", site: str = "") -> None:
        """Send ``payload`` (bytes, or what lends its memory) to ``rank``.

        Args:
            rank: the receiver.
            key: what the receiver waits for.
            doing: what this process is doing, in words that are equal where two agree.
            payload: the bytes.
            site: file and line of the call.
        Raises:
            DistBackendError: that process is gone, or one of the group has failed.
        """
        self.check(key[0])
        self._post(rank, "data", key, doing, payload, site)

    def receive(
        self, ranks: Iterable[int], key: Key, doing: str, timeout: timedelta | None = None, site: str = "",
        into: memoryview | None = None,
    ) -> tuple[int, Header, memoryview]:  # fmt: skip
        """Receive a message of one of ``ranks``: its rank, the header and the bytes.

        If memory of the right size is given as ``into``, this thread reads the bytes into it, and returns it.

        Args:
            ranks: whose messages count.
            key: which message.
            doing: the name of the collective, for messages.
            timeout: how long to wait.
            site: the line that called it, for messages.
            into: where the bytes go; None: new memory.

        Returns:
            The rank, the header and the bytes.

        Raises:
            DistBackendError: none came in time, a process is gone, or the processes do not do the same.
        """
        ranks = list(ranks)
        timeout = self.timeout if timeout is None else timeout
        end = time.monotonic() + timeout.total_seconds()
        told = False
        doing = doing[:_TEXT]
        if len(ranks) == 1:
            self._read_here(ranks[0], key, doing, into, timeout)
        while True:
            with self._changed:
                found = self._look(ranks, key, doing)
                if found is not None:
                    break
                others = [(rank, what) for rank, what in self._awaited.get(key, {}).items() if what[0] != doing]
                if others:
                    break
                if told or not key[1].isdigit():  # messages from one to one are not numbered
                    if not self._changed.wait(end - time.monotonic()) and time.monotonic() >= end:
                        raise DistBackendError(
                            f"{doing} at {site}: rank {self.rank} timed out after {timeout} waiting for rank "
                            f"{', '.join(map(str, ranks))}, which may be doing something else"
                        )
                    continue
            told = True
            for rank in ranks:
                with contextlib.suppress(DistBackendError):
                    self._post(rank, "waiting", key, doing, site=site)
        if found is None:
            rank, (what, where) = others[0]
            payload, header = memoryview(b""), Header("waiting", *key, what, where)
        else:
            rank, header, payload = found
        if header.doing != doing:
            self.fail(
                key[0],
                f"mismatched collectives: rank {rank} does {header.doing} at {header.site}, rank {self.rank} "
                f"{doing} at {site}",
            )
        return rank, header, payload

    def _look(self, ranks: list[int], key: Key, doing: str) -> tuple[int, Header, memoryview] | None:
        """The message that has come under ``key``, or None. Called with the lock."""
        if key[1].isdigit():  # messages for this collective may have been sent before the mismatch was seen
            self.check(key[0])
        for rank in ranks:
            queue = self._arrived.get((rank, key))
            if queue:
                header, payload = queue.popleft()
                if not queue:
                    del self._arrived[rank, key]
                self._awaited.pop(key, None)
                return rank, header, payload
        self.check(key[0])
        gone = self._gone.keys() & ranks
        if gone and len(gone) == len(ranks):
            raise self._lost(min(gone), doing)
        return None

    def has(self, ranks: Iterable[int], key: Key) -> bool:
        """Whether something from one of ``ranks`` has come under ``key``."""
        with self._changed:
            return any(self._arrived.get((rank, key)) for rank in ranks)

    def check(self, group: str) -> None:
        """Raise the error that a process of ``group`` failed with, if there is one."""
        if group in self._failed:
            raise DistBackendError(self._failed[group])

    def trouble(self, ranks: Iterable[int], group: str, doing: str) -> None:
        """Raise, if a process of ``group`` has failed, or one of ``ranks`` is gone."""
        self.check(group)
        gone = self._gone.keys() & ranks
        if gone:
            raise self._lost(min(gone), doing)

    def tell(self, group: str, text: str) -> None:
        """Let every process that waits for one of ``group`` fail with ``text``, here too."""
        self._failed.setdefault(group, text)
        for rank in self._peers:
            with contextlib.suppress(DistBackendError):
                self._post(rank, "failed", (group, ""), text)

    def fail(self, group: str, text: str) -> NoReturn:
        """Raise ``text`` as an error here and at every process that waits for one of ``group``."""
        self.tell(group, text)
        raise DistBackendError(text)

    def close(self) -> None:
        """End the connections."""
        for peer in self._peers.values():
            with contextlib.suppress(OSError):
                peer.connection.shutdown(socket.SHUT_RDWR)
            peer.connection.close()


def _after_fork() -> None:
    """Close the sockets that a forked child (a worker of a DataLoader) holds, so that others can see its parent end."""
    for links in list(_all_links):
        for peer in links._peers.values():
            peer.connection.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def leave_word(rank: int) -> None:
    """Tell the launcher, where there is one, that this process fails because ``rank`` has ended."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if path:
        with contextlib.suppress(OSError), open(path, "x") as file:
            json.dump({"message": {"message": f"rank {rank} has ended"}, "follows": rank}, file)


def this_machine() -> bytes:
    """16 bytes that are equal for processes that can share memory: of one boot, user and network namespace.

    With ``TAEDA_DISTRIBUTED_SHARED_MEMORY=0`` each process is a machine of its own.
    """
    if os.environ.get("TAEDA_DISTRIBUTED_SHARED_MEMORY") == "0":
        return secrets.token_bytes(16)
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        network = os.stat("/proc/self/ns/net").st_ino
    except OSError:
        return secrets.token_bytes(16)
    return hashlib.sha256(f"{boot} {network} {os.getuid()}".encode()).digest()[:16]


def _hello(token: bytes, rank: int, machine: bytes, host: str) -> bytes:
    return _HELLO.pack(token, rank, machine, host.encode()[:64])


def _limit_reading(connection: socket.socket, timeout: timedelta) -> None:
    with contextlib.suppress(OSError):  # it may be closed
        limit_transfer(connection, socket.SO_RCVTIMEO, timeout.total_seconds())


def _watch(connection: socket.socket, timeout: timedelta) -> None:
    """No delay for small messages; a machine that does not answer for 30 seconds is gone, and transfers have a limit.

    A process that is stopped, or a machine on the way, may answer and transfer nothing: only the time limit ends that.
    A thread that waits for the beginning of a message polls for it without reading.
    """
    limit_transfer(connection, socket.SO_SNDTIMEO, timeout.total_seconds())
    _limit_reading(connection, timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # the last is in milliseconds; without it, nothing ends while sent data is not acknowledged
    for name, value in (("TCP_KEEPIDLE", 2), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def own_address(store: Store) -> str:
    """The address by which others reach this process: the local end of its connection to the store's host."""
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

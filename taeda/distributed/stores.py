"""Stores: tables of bytes that processes share, by which they find each other and agree.

A store that waits for a key gives up after its ``timeout`` with a :class:`DistStoreError` that names the key.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hmac
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from .errors import DistNetworkError, DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

DEFAULT_TIMEOUT = timedelta(seconds=300)
_LENGTH = struct.Struct("<I")  # length of a value in a queue


def _bytes(value: str | bytes | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _given(name: str, *values: str | bytes) -> tuple[bytes, ...]:
    """Keys or values that a program gave, as bytes."""
    for value in values:
        if not isinstance(value, (str, bytes)):
            raise TypeError(f"{name}(): expected keys and values of type str or bytes, got {type(value).__name__}")
    return tuple(map(_bytes, values))


class Store:
    """A table of bytes. A kind of store defines :meth:`_do`; everything else is written with it."""

    def __init__(self, timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        self._timeout = timeout

    def _do(self, what: str, key: str, *values: bytes) -> bytes | None:
        """Carry out ``what`` at once: get, set, add, compare_set, append, pop, check, delete, count. None if there is
        no such key.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it works")

    def _wait(self, keys: Sequence[str], timeout: timedelta) -> bool:
        """Whether all ``keys`` are there within ``timeout``."""
        end = time.monotonic() + timeout.total_seconds()
        while not all(self._do("check", key) for key in keys):
            if time.monotonic() >= end:
                return False
            time.sleep(0.01)
        return True

    @property
    def timeout(self) -> timedelta:
        """The time to wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Wait so long for a key."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Put ``value`` at ``key``."""
        self._do("set", key, _given("set", key, value)[1])

    def get(self, key: str) -> bytes:
        """The value at ``key``, once there is one.

        Args:
            key: its name.

        Returns:
            The value.

        Raises:
            DistStoreError: there was none in time.
        """
        self.wait([key])
        return self._do("get", key) or b""

    def add(self, key: str, amount: int) -> int:
        """Add ``amount`` to the number at ``key`` (0 where there is none); gives the sum."""
        return int(self._do("add", key, _bytes(int(amount))) or b"0")

    def append(self, key: str, value: str | bytes) -> None:
        """Append ``value`` to the value at ``key``."""
        self._do("append", key, _given("append", key, value)[1])

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Put ``desired_value`` at ``key`` if ``expected_value`` is there, or if it is empty and ``key`` is not set.
        Returns the value that is there afterwards.
        """
        _, *values = _given("compare_set", key, expected_value, desired_value)
        return self._do("compare_set", key, *values) or b""

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all ``keys`` are there."""
        return all(self._do("check", key) is not None for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all ``keys`` are there.

        Args:
            keys: their names.
            timeout: how long; that of the store by default.

        Raises:
            DistStoreError: they were not in time.
        """
        timeout = self._timeout if timeout is None else timeout
        if not self._wait(keys, timeout):
            lacking = [key for key in keys if self._do("check", key) is None]
            raise DistStoreError(
                f"wait timeout after {round(timeout.total_seconds() * 1000)}ms, keys: {', '.join(lacking)}"
            )

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values at ``keys``."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Put ``values`` at ``keys``."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def delete_key(self, key: str) -> bool:
        """Remove ``key``; whether it was there."""
        return self._do("delete", key) is not None

    def num_keys(self) -> int:
        """The number of keys."""
        return int(self._do("count", "") or b"0")

    def has_extended_api(self) -> bool:
        """True: there are ``append``, ``multi_get`` and ``multi_set``."""
        return True

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put ``value`` at the end of the queue ``key``."""
        packed = _given("queue_push", key, value)[1]
        self._do("append", key, _LENGTH.pack(len(packed)) + packed)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of the queue ``key``.

        Args:
            key: the queue's name.
            block: wait for a value.

        Returns:
            The value.

        Raises:
            DistStoreError: there was none in time.
            QueueEmptyError: there is none, and this is not to ``block``.
        """
        while (found := self._do("pop", key)) is None:
            if not block:
                raise QueueEmptyError(f"queue {key} is empty")
            self.wait([key])
        return found

    def queue_len(self, key: str) -> int:
        """The number of values in the queue ``key``."""
        packed, at, count = self._do("get", key) or b"", 0, 0
        while at < len(packed):
            at, count = at + _LENGTH.size + _LENGTH.unpack_from(packed, at)[0], count + 1
        return count


class _Table:
    """The table itself, for one process or for a server: each request is carried out under a lock."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.changed = threading.Condition()

    def do(self, what: str, key: str, *values: bytes) -> bytes | None:
        """See :meth:`Store._do`."""
        with self.changed:
            before = self.data.get(key)
            if what == "get":
                return before
            if what == "check":
                return None if before is None else b"1"
            if what == "count":
                return _bytes(len(self.data))
            if what == "delete":
                return self.data.pop(key, None)
            if what == "pop":
                whole = self.data.pop(key, None)
                end = _LENGTH.size + _LENGTH.unpack_from(whole)[0] if whole else 0
                if whole and whole[end:]:
                    self.data[key] = whole[end:]
                return whole and whole[_LENGTH.size : end]
            if what == "compare_set" and before != values[0] and (before is not None or values[0]):
                return values[0] if before is None else before
            if what == "add":
                after = _bytes(int(before or b"0") + int(values[0]))
            else:
                after = (before or b"") + values[0] if what == "append" else values[-1]
            self.data[key] = after
            self.changed.notify_all()
            return after

    def wait(self, keys: Sequence[str], seconds: float) -> bool:
        """Whether all ``keys`` are there within ``seconds``."""
        with self.changed:
            return self.changed.wait_for(lambda: all(key in self.data for key in keys), seconds)


class HashStore(Store):
    """A store for the threads of one process."""

    def __init__(self) -> None:
        super().__init__()
        table = _Table()
        self._do: Callable = table.do
        self._wait = lambda keys, timeout: table.wait(keys, timeout.total_seconds())  # type: ignore[method-assign]


class PrefixStore(Store):
    """``store``, with ``prefix`` and a slash before each key."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__(store.timeout)
        self.prefix = prefix
        self.underlying_store = store

    def _do(self, what: str, key: str, *values: bytes) -> bytes | None:
        return self.underlying_store._do(what, f"{self.prefix}/{key}", *values)

    def _wait(self, keys: Sequence[str], timeout: timedelta) -> bool:
        return self.underlying_store._wait([f"{self.prefix}/{key}" for key in keys], timeout)


class FileStore(Store):
    """A store in a file that all processes see: a log of all settings. Each process reads on from where it was.

    Args:
        file_name: the file; made where there is none, removed by the last process of ``world_size`` that lets go of it.
        world_size: how many processes use it; not known if not positive, and the file is left.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = file_name
        self._world_size = world_size
        self._table = _Table()
        self._read = 0
        self._file = open(file_name, "a+b", buffering=0)  # noqa: SIM115 (kept as long as the store)
        self.add("&users", 1)

    def _do(self, what: str, key: str, *values: bytes) -> bytes | None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            self._file.seek(self._read)
            log = self._file.read()
            at = 0
            while at < len(log):
                name, value, at = _unpack_record(log, at)
                if value is None:
                    self._table.data.pop(name, None)
                else:
                    self._table.data[name] = value
            self._read += at
            result = self._table.do(what, key, *values)
            if what in ("set", "add", "append", "pop", "compare_set", "delete"):
                record = _pack_record(key, self._table.data.get(key))
                self._file.write(record)
                self._read += len(record)
            elif what == "count":
                return _bytes(int(result or b"0") - 1)  # its users are not the caller's key
            return result
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def __del__(self) -> None:
        if not hasattr(self, "_file"):
            return
        try:
            if self._world_size > 0 and self.add("&gone", 1) >= self._world_size:
                os.unlink(self.path)
        except OSError:  # removed by another hand
            pass
        self._file.close()


def _pack_record(key: str, value: bytes | None) -> bytes:
    name = key.encode()
    return struct.pack("<Iq", len(name), -1 if value is None else len(value)) + name + (value or b"")


def _unpack_record(log: bytes, at: int) -> tuple[str, bytes | None, int]:
    n, m = struct.unpack_from("<Iq", log, at)
    at += 12
    value = None if m < 0 else log[at + n : at + n + m]
    return log[at : at + n].decode(), value, at + n + max(m, 0)


# Between a TCPStore and its server: first a challenge, which who knows the secret of the run can answer; then requests
# and answers: a count of fields, then each with its length. A length of -1 stands for None.

_MAGIC = b"taeda\0\1\0"  # followed by the protocol's version
_CHALLENGE = 16
_GREETING = 30.0  # seconds for the answer
_AT_ONCE = 1 << 20  # bytes
_LATE = 30.0  # seconds that a server's answer may take beyond the time it waits
_FIELDS, _FIELD = 4096, 1 << 28  # how many, and bytes of each


def _secret() -> bytes:
    """The secret of the run, which launchers put in the environment; empty if none did."""
    return os.environ.get("TAEDA_DISTRIBUTED_SECRET", "").encode()


def _answer(challenge: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, _MAGIC + challenge, "sha256")


def _send(connection: socket.socket, fields: Sequence[bytes | None]) -> None:
    parts = [struct.pack("<I", len(fields))]
    for field in fields:
        parts.append(struct.pack("<q", -1 if field is None else len(field)) + (field or b""))
    connection.sendall(b"".join(parts))


def limit_transfer(connection: socket.socket, way: int, seconds: float) -> None:
    """A call that sends (``SO_SNDTIMEO``) or reads (``SO_RCVTIMEO``) raises BlockingIOError after ``seconds`` in which
    nothing moved."""
    seconds = max(seconds, 0.001)
    connection.setsockopt(socket.SOL_SOCKET, way, struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6)))


def receive_exactly(connection: socket.socket, count: int, into: memoryview | None = None) -> memoryview:
    """``count`` bytes from ``connection``, in new memory or in ``into``.

    Args:
        connection: a socket.
        count: how many bytes.
        into: where they go; None: new memory.

    Returns:
        The bytes.

    Raises:
        ConnectionError: it was closed before.
    """
    buffer = memoryview(bytearray(count)) if into is None else into
    view = buffer
    while view:
        # few calls: each is a turn of the interpreter's lock. 24 MB at once took 23 ms, by 1 MB 20
        got = connection.recv_into(view[:_AT_ONCE], 0, socket.MSG_WAITALL)
        if not got:
            raise ConnectionError("the connection was closed")
        view = view[got:]
    return buffer


def _receive(connection: socket.socket) -> list[bytes | None]:
    (count,) = struct.unpack("<I", receive_exactly(connection, 4))
    if count > _FIELDS:
        raise ConnectionError("what came is not a request to a store")
    fields: list[bytes | None] = []
    for _ in range(count):
        (length,) = struct.unpack("<q", receive_exactly(connection, 8))
        if length > _FIELD:
            raise ConnectionError("what came is not a request to a store")
        fields.append(None if length < 0 else bytes(receive_exactly(connection, length)))
    return fields


class _Server:
    """Answers requests to a table, each connection on a thread of its own."""

    def __init__(self, port: int, listen_fd: int | None) -> None:
        self.table = _Table()
        self.secret = _secret()
        self.socket = socket.socket(fileno=listen_fd) if listen_fd is not None else _listening(port)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, name="taeda-store", daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
        self.socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:  # closed
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                if not self._greets(connection):
                    return
                while True:
                    what, *rest = (field or b"" for field in _receive(connection))
                    if what == b"wait":
                        there = self.table.wait([key.decode() for key in rest[1:]], float(rest[0]))
                        _send(connection, [b"1" if there else None])
                    else:
                        _send(connection, [self.table.do(what.decode(), rest[0].decode(), *rest[1:])])
            except (OSError, ValueError, IndexError, MemoryError, struct.error):  # gone, or not one of us
                return

    def _greets(self, connection: socket.socket) -> bool:
        """Whether the connecting process knows the secret."""
        challenge = secrets.token_bytes(_CHALLENGE)
        connection.settimeout(_GREETING)
        connection.sendall(_MAGIC + challenge)
        answer = receive_exactly(connection, 32)
        if not hmac.compare_digest(answer, _answer(challenge, self.secret)):
            return False
        connection.sendall(b"!")
        connection.settimeout(None)
        return True


def _listening(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise
    return socket.create_server(("", port))


class TCPStore(Store):
    """A store that one process keeps and others reach by TCP.

    Args:
        host_name: where the server is.
        port: its port; on the server 0 for any that is free, see :attr:`port`.
        world_size: how many processes will connect, the server among them; with ``wait_for_workers`` it waits for them.
        is_master: whether this process keeps it.
        timeout: how long to wait for the server, and for keys.
        wait_for_workers: whether the server waits for all processes.
        multi_tenant: a server that is there already is used.
        master_listen_fd: a socket that listens already.
        use_libuv: accepted.
    Raises:
        DistNetworkError: there is no server, or its port is taken.
        DistStoreError: the other processes did not come in time.
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT, wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(timeout)
        self._server = None
        if is_master:
            try:
                self._server = _Server(port, master_listen_fd)
            except OSError as error:
                if not multi_tenant:
                    raise DistNetworkError(f"TCPStore: cannot listen on port {port}: {error}") from None
        self.host = host_name
        self.port = self._server.port if self._server is not None else port
        self._lock = threading.Lock()
        self._connection = self._connect()
        if wait_for_workers and world_size is not None and world_size > 1:
            count = self.add("&workers", 1)
            if is_master:
                end = time.monotonic() + timeout.total_seconds()
                while count < world_size:
                    if time.monotonic() > end:
                        raise DistStoreError(
                            f"TCPStore: timed out after {timeout} waiting for clients: {count}/{world_size} joined"
                        )
                    time.sleep(0.01)
                    count = self.add("&workers", 0)

    def _connect(self) -> socket.socket:
        end = time.monotonic() + self._timeout.total_seconds()
        while True:
            try:
                left = max(end - time.monotonic(), 0.1)
                connection = socket.create_connection((self.host, self.port), timeout=left)
            except OSError as error:
                if time.monotonic() >= end or isinstance(error, socket.gaierror):
                    raise DistNetworkError(
                        f"TCPStore: no server at {self.host}:{self.port} within {self._timeout}: {error}"
                    ) from None
                time.sleep(0.05)
                continue
            self._introduce(connection)
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection

    def _introduce(self, connection: socket.socket) -> None:
        """Show the server that this process knows the secret."""
        try:
            connection.settimeout(max(self._timeout.total_seconds(), _GREETING))
            said = bytes(receive_exactly(connection, len(_MAGIC) + _CHALLENGE))
            if not said.startswith(_MAGIC):
                raise ConnectionError("what answers there is no store")
            connection.sendall(_answer(said[len(_MAGIC) :], _secret()))
            receive_exactly(connection, 1)
        except OSError as error:
            connection.close()
            raise DistNetworkError(
                f"TCPStore: {self.host}:{self.port} does not take this process for one of the run: {error}. The "
                "processes need the same TAEDA_DISTRIBUTED_SECRET in their environment, or none"
            ) from None

    def _ask(self, *fields: bytes, waits: float | None = None) -> bytes | None:
        """The server's answer. It may wait for ``waits`` seconds (None: the store's timeout)."""
        seconds = (self._timeout.total_seconds() if waits is None else waits) + _LATE
        with self._lock:
            try:
                limit_transfer(self._connection, socket.SO_RCVTIMEO, seconds)
                _send(self._connection, fields)
                return _receive(self._connection)[0]
            except BlockingIOError:
                self._connection.close()  # its answer could be taken for another question's
                raise DistNetworkError(
                    f"TCPStore: the server at {self.host}:{self.port} has not answered for {seconds:.0f} seconds"
                ) from None
            except OSError as error:
                raise DistNetworkError(f"TCPStore: lost the server at {self.host}:{self.port}: {error}") from None

    def _do(self, what: str, key: str, *values: bytes) -> bytes | None:
        if self._server is not None:
            return self._server.table.do(what, key, *values)
        return self._ask(what.encode(), key.encode(), *values)

    def _wait(self, keys: Sequence[str], timeout: timedelta) -> bool:
        if self._server is not None:
            return self._server.table.wait(keys, timeout.total_seconds())
        seconds = timeout.total_seconds()
        return self._ask(b"wait", _bytes(seconds), *(key.encode() for key in keys), waits=seconds) is not None  # type: ignore[arg-type]

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:
            self._connection.close()
        if getattr(self, "_server", None) is not None:
            self._server.close()  # type: ignore[union-attr]

    def __repr__(self) -> str:
        return f"TCPStore({self.host!r}, {self.port}, is_master={self._server is not None})"

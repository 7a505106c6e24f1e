"""Who does not know the run's secret gets no answer, and what is no message harms nobody."""

import random
import socket
import struct
import threading
from datetime import timedelta
from pathlib import Path

import pytest

import taeda.distributed as dist
from taeda.distributed import links, stores


def noise(draw):
    """Bytes of a stranger: nothing, random ones, headers that promise too much, requests cut short."""
    kind = draw.randrange(5)
    if kind == 0:
        return b""
    if kind == 1:
        return draw.randbytes(draw.randrange(200))
    if kind == 2:
        return struct.pack("<IQ", draw.randrange(1 << 32), draw.randrange(1 << 64)) + draw.randbytes(20)
    if kind == 3:
        return struct.pack("<Iq", draw.randrange(1, 9), draw.choice([1 << 62, -5, 3])) + b"set"
    whole = struct.pack("<Iq", 2, 3) + b"set" + struct.pack("<q", 1 << 40)
    return whole[: draw.randrange(len(whole))]


def shout(port, draw):
    try:
        with socket.create_connection(("127.0.0.1", port), 2) as connection:
            connection.settimeout(0.05)
            # closed at once: a hundred thousand that linger would take all ports
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(noise(draw))
            if draw.random() < 0.1:
                connection.recv(64)
    except OSError:
        pass


def store_fuzzed(count, monkeypatch):
    monkeypatch.setenv("TAEDA_DISTRIBUTED_SECRET", "of this run")
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    other = dist.TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=100), wait_for_workers=False)
    other.set("key", "value")
    draw = random.Random(5)
    for _ in range(count):
        shout(store.port, draw)
    assert store.num_keys() == 1 and other.get("key") == b"value"
    monkeypatch.setenv("TAEDA_DISTRIBUTED_SECRET", "of another run")
    with pytest.raises(dist.DistNetworkError, match="TAEDA_DISTRIBUTED_SECRET"):
        dist.TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=30), wait_for_workers=False)


def test_a_store_answers_to_who_knows_the_secret(monkeypatch):
    store_fuzzed(300, monkeypatch)


@pytest.mark.sweep
@pytest.mark.timeout(0)
def test_a_million_messages_of_strangers(monkeypatch):
    store_fuzzed(100_000, monkeypatch)
    messages_fuzzed(900_000)


def test_requests_of_members_that_are_cut_short(monkeypatch):
    """A member that sends nonsense loses its connection; the others keep theirs."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    other = dist.TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=100), wait_for_workers=False)
    draw = random.Random(7)
    for _ in range(50):
        bad = dist.TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=100), wait_for_workers=False)
        bad._connection.sendall(noise(draw))
        bad._connection.close()
        bad._connection = None
    other.set("a", "b")
    assert store.get("a") == b"b"


def test_strangers_at_the_port_of_a_process():
    """They come while two processes connect to each other, which they do all the same."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    made = {}

    def start(rank):
        made[rank] = links.Links(store, rank, 2, timedelta(seconds=200))

    first = threading.Thread(target=start, args=(0,))
    first.start()
    port = int(store.get("address/0").split()[1])
    token = bytes.fromhex(store.get("address/0").split()[2].decode())
    draw, silent = random.Random(3), socket.create_connection(("127.0.0.1", port))
    for _ in range(200):
        shout(port, draw)
    for rank in (0, 2, 77):  # with the token, but ranks that nobody waits for
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(links._hello(token, rank, b"m" * 16, "host"))
    start(1)
    first.join(100)
    made[0].send(1, ("g", "0"), "x", b"abc")
    assert made[1].receive([0], ("g", "0"), "x")[2] == b"abc"
    silent.close()
    for one in made.values():
        one.close()


def test_a_message_goes_straight_to_the_memory_that_waits_for_it():
    """Also when another one comes first, and when both send more than the system holds before one reads."""
    store, made = dist.HashStore(), {}
    makers = [
        threading.Thread(target=lambda r=r: made.update({r: links.Links(store, r, 2, timedelta(seconds=200))}))
        for r in range(2)
    ]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join(100)
    large, key, found = b"x" * 20_000_000, ("g", "0"), {}

    def exchange(rank):
        into = memoryview(bytearray(len(large)))
        made[rank].send(1 - rank, ("g", "tag 1"), "y", b"first")
        made[rank].send(1 - rank, key, "x", large)
        found[rank] = made[rank].receive([1 - rank], key, "x", into=into)[2]

    both = [threading.Thread(target=exchange, args=(rank,)) for rank in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(100)
    assert all(found[rank] == large for rank in range(2))
    for size in (0, 5, 100_000):
        into = memoryview(bytearray(size))
        waiting = threading.Timer(0.01, made[0].send, (1, ("g", f"tag {size}"), "z", b"z" * size))
        waiting.start()
        payload = made[1].receive([0], ("g", f"tag {size}"), "z", into=into)[2]
        assert payload == b"z" * size and (payload is not into or bytes(into) == b"z" * size)
        waiting.join()
    assert made[1].receive([0], ("g", "tag 1"), "y")[2] == b"first"
    for one in made.values():
        one.close()


def messages_fuzzed(count):
    """Random messages on a connection of a member: that member is gone for the other, and nothing else happens."""
    draw = random.Random(1)
    left = count
    while left > 0:
        here, there = socket.socketpair()
        one = links.Links.__new__(links.Links)
        one.rank, one.size, one.timeout = 0, 2, timedelta(seconds=5)
        links.Links._empty(one)
        one._peers[1] = links.Peer(here, b"", "there")
        reader = threading.Thread(target=one._read, args=(1, one._peers[1]), daemon=True)
        reader.start()
        for _ in range(draw.randrange(1, 20)):
            body = draw.randbytes(draw.randrange(40)) if draw.random() < 0.8 else b'{"kind": "data", "group": 3}'
            message = struct.pack("<IQ", len(body), draw.choice([0, 3, 1 << 60])) + body
            try:
                there.sendall(message[: draw.randrange(len(message) + 1)] if draw.random() < 0.2 else message)
            except OSError:
                break
            left -= 1
        there.close()
        reader.join(100)
        assert not reader.is_alive() and set(one._gone) == {1}
        with pytest.raises(dist.DistBackendError, match="rank 1 has ended"):
            one.receive([1], ("g", "0"), "x")
        here.close()


def test_messages_that_are_none():
    messages_fuzzed(300)


def test_fields_that_promise_too_much():
    here, there = socket.socketpair()
    there.sendall(struct.pack("<I", 1 << 30))
    with pytest.raises(ConnectionError, match="not a request"):
        stores._receive(here)
    there.sendall(struct.pack("<Iq", 1, 1 << 60))
    with pytest.raises(ConnectionError, match="not a request"):
        stores._receive(here)


def test_pickles_cross_where_objects_are_asked_for():
    """What moves messages reads none."""
    files = list(Path(links.__file__).parent.rglob("*.py"))
    with_pickle = {path.name for path in files if "import pickle" in path.read_text()}
    assert len(files) > 10 and "objects.py" in with_pickle
    moving = {"links.py", "stores.py", "collectives.py", "messages.py", "segment.py", "handover.py", "mpi.py"}
    assert moving <= {path.name for path in files} and not moving & with_pickle


def test_a_machine_that_says_nothing_keeps_nobody_waiting(monkeypatch):
    monkeypatch.setattr(stores, "_GREETING", 1e6)  # that one of them may take
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    silent = [socket.create_connection(("127.0.0.1", store.port)) for _ in range(20)]
    other = dist.TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=100), wait_for_workers=False)
    other.set("a", "1")
    assert store.get("a") == b"1"
    [one.close() for one in silent]


def test_a_server_of_a_store_that_says_nothing_keeps_nobody_waiting(monkeypatch):
    """A client gives up, and does not take an answer that comes late for that to its next question."""
    master = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    client = dist.TCPStore("127.0.0.1", master.port, timeout=timedelta(seconds=0.2))
    client.set("a", "1")
    monkeypatch.setattr(stores, "_LATE", 0.2)
    with master._server.table.changed, pytest.raises(dist.DistNetworkError, match="has not answered"):
        client.get("a")  # the server cannot look into its table
    with pytest.raises(dist.DistNetworkError, match="lost the server"):
        client.set("b", "2")
    assert dist.TCPStore("127.0.0.1", master.port).get("a") == b"1"

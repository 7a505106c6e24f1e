"""A relay between processes: connections with delay, jitter, fragments and little bandwidth, that are cut or fall silent.

``relay.py PORT PROGRAM ARGUMENTS`` runs a program whose connections go through the relay at ``PORT``.
"""

import asyncio
import os
import random
import runpy
import socket
import sys
import threading


class Relay:
    """Forwards connections, in a thread.

    Args:
        delay: seconds that bytes take, at least.
        jitter: seconds that they may take longer; they stay in order.
        fragment: bytes that go together, at most.
        bandwidth: bytes per second of each connection and direction.
    """

    def __init__(self, delay=0.0, jitter=0.0, fragment=1 << 16, bandwidth=float("inf"), seed=0):
        self.delay, self.jitter, self.fragment, self.bandwidth = delay, jitter, fragment, bandwidth
        self.draw = random.Random(seed)
        self.silent = self.forwarded = 0
        self.writers, self.tasks = [], []

    def __enter__(self):
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self.thread.start()
        assert started.wait(20)
        return self

    def __exit__(self, *exc):
        self.cut()
        self.loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks()])
        self.loop.call_soon_threadsafe(self.loop.call_soon, self.loop.stop)
        self.thread.join(20)

    def cut(self):
        """End all connections."""
        self.loop.call_soon_threadsafe(lambda: [writer.transport.abort() for writer in self.writers])

    def fall_silent(self):
        """From now on nothing is forwarded, and nothing ends."""
        self.silent = 1

    def _run(self, started):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self.loop.run_forever()

    async def _connected(self, reader, writer):
        host, port = (await reader.readline()).decode().split()
        there, back = await self._reach(host, int(port))
        self.writers += [writer, back]
        for source, target in ((reader, back), (there, writer)):
            queue = asyncio.Queue(64)
            self.tasks += [
                asyncio.ensure_future(self._take(source, queue)),
                asyncio.ensure_future(self._give(queue, target)),
            ]

    async def _reach(self, host, port):
        for _ in range(400):  # the listener may not have begun
            try:
                return await asyncio.open_connection(host, port)
            except OSError:
                await asyncio.sleep(0.05)
        raise TimeoutError(f"nobody listens at {host}:{port}")

    async def _take(self, reader, queue):
        due = 0.0
        data = b"."
        while data:
            try:
                data = await reader.read(self.draw.randint(1, self.fragment))
            except OSError:
                data = b""
            due = max(due, self.loop.time() + self.delay + self.draw.random() * self.jitter)
            await queue.put((due, data))

    async def _give(self, queue, writer):
        data = b"."
        while data:
            due, data = await queue.get()
            await asyncio.sleep(max(due - self.loop.time(), len(data) / self.bandwidth))
            while self.silent:
                await asyncio.sleep(3600)
            try:
                writer.write(data) if data else writer.close()
                self.forwarded += len(data)
                await writer.drain()
            except OSError:
                return


def through(port):
    """Let the connections that this process makes go through the relay at ``port``."""
    connect = socket.create_connection

    def relayed(address, timeout=None, *args, **kwargs):
        made = connect(("127.0.0.1", port), timeout, *args, **kwargs)
        made.sendall(f"{address[0]} {address[1]}\n".encode())
        return made

    socket.create_connection = relayed


if __name__ == "__main__":
    if int(os.environ["RANK"]):  # the others of the process that keeps the store
        through(int(sys.argv[1]))
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")

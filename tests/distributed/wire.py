"""A wire between two network namespaces, in this process: packets are late, lost, or go twice. The system's TCP sees a bad network."""

import fcntl
import heapq
import os
import random
import select
import struct
import threading
import time

_TUNSETIFF, _TUN, _WITHOUT_HEADER = 0x400454CA, 0x0001, 0x1000


class Wire:
    """Forwards packets between two devices, which are to be moved to the namespaces.

    Args:
        names: of the devices, 15 letters at most.
        delay: seconds that a packet takes, at least.
        jitter: seconds that it may take longer; packets may overtake each other.
        loss: the share of packets that do not arrive.
        twice: the share of packets that arrive twice.
    """

    def __init__(self, names, delay=0.0, jitter=0.0, loss=0.0, twice=0.0, seed=0):
        self.delay, self.jitter, self.loss, self.twice = delay, jitter, loss, twice
        self.draw = random.Random(seed)
        self.losses = random.Random(seed)  # one number a packet: of as many packets, as many are lost each time
        self.carried = self.dropped = 0
        self.ends = []
        for name in names:
            end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            self.ends.append(end)
            fcntl.ioctl(end, _TUNSETIFF, struct.pack("16sH", name.encode(), _TUN | _WITHOUT_HEADER))
        self.stopped = False
        self.thread = threading.Thread(target=self._carry, daemon=True)
        self.thread.start()

    def cut(self):
        """From now on nothing arrives."""
        self.loss = 1.0

    def close(self):
        """End; the devices are gone after it."""
        self.stopped = True
        self.thread.join(20)
        for end in self.ends:
            os.close(end)

    def _carry(self):
        under_way = []  # (when it arrives, a number, where, the packet)
        number = 0
        while not self.stopped:
            now = time.monotonic()
            while under_way and under_way[0][0] <= now:
                _, _, end, packet = heapq.heappop(under_way)
                try:
                    os.write(end, packet)
                except OSError:  # no room, or not up yet: lost, as on any network
                    self.dropped += 1
            wait = min(under_way[0][0] - now, 0.05) if under_way else 0.05
            for end in select.select(self.ends, [], [], wait)[0]:
                try:
                    packet = os.read(end, 1 << 16)
                except OSError:
                    continue
                other = self.ends[1 - self.ends.index(end)]
                if self.losses.random() < self.loss:
                    self.dropped += 1
                    continue
                self.carried += 1
                for _ in range(1 + (self.draw.random() < self.twice)):
                    number += 1
                    late = self.delay + self.jitter * self.draw.random()
                    heapq.heappush(under_way, (time.monotonic() + late, number, other, packet))

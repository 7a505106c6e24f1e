"""Graphs on the emulated devices: streams whose work is captured, and graphs that run it.

A captured stream's work becomes nodes, each with those it comes after. A launch of a graph gives each captured stream
a stream of its own, so that what the graph leaves open is open here too. The rules are those of CUDA's driver API
(CUDA 13, "Stream Management" and "Graph Management").
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

U64, INT = ctypes.c_uint64, ctypes.c_int
GLOBAL, THREAD_LOCAL, RELAXED = range(3)

ERRORS = {
    401: "CUDA_ERROR_ILLEGAL_STATE",
    900: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", 901: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
    902: "CUDA_ERROR_STREAM_CAPTURE_MERGE", 903: "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
    904: "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", 905: "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
    906: "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", 907: "CUDA_ERROR_CAPTURED_EVENT",
    908: "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
}  # fmt: skip

P, I, U = ctypes.c_uint64, ctypes.c_int, ctypes.c_uint
SIGNATURES: dict[str, tuple] = {
    "cuStreamBeginCapture_v2": (P, I), "cuStreamEndCapture": (P, P), "cuStreamIsCapturing": (P, P),
    "cuThreadExchangeStreamCaptureMode": (P,),
    "cuGraphInstantiateWithFlags": (P, P, P), "cuGraphLaunch": (P, P), "cuGraphExecDestroy": (P,),
    "cuGraphDestroy": (P,), "cuGraphGetNodes": (P, P, P), "cuGraphDebugDotPrint": (P, P, U),
}  # fmt: skip


class Failed(Exception):
    """A driver function gives an error."""

    def __init__(self, name: str):
        super().__init__(name)
        self.name = name


def put(pointer: int, value: int, kind: Any = U64) -> None:
    """Write a result to where the caller wants it."""
    if not pointer:
        raise Failed("INVALID_VALUE")
    kind.from_address(pointer).value = value


class Node:
    """Captured work: what it does, the nodes before it, and its stream."""

    def __init__(self, capture: Capture, stream: Any, do: Callable | None, after: set[Node]):
        self.capture, self.stream, self.do, self.after = capture, stream, do, after
        self.clock: dict = {}


class Capture:
    """The streams that are captured together, each with the nodes that its next one comes after."""

    def __init__(self, origin: Any, mode: int):
        self.origin, self.mode, self.thread = origin, mode, threading.get_ident()
        self.tips: dict[Any, set[Node]] = {origin: set()}
        self.nodes: list[Node] = []
        self.broken = False

    def fail(self, name: str) -> Failed:
        """The error, which also makes the capture invalid."""
        self.broken = True
        return Failed(name)

    def add(self, stream: Any, do: Callable | None) -> Node:
        if self.broken:
            raise Failed("STREAM_CAPTURE_INVALIDATED")
        node = Node(self, stream, do, self.tips[stream])
        self.tips[stream] = {node}
        self.nodes.append(node)
        return node

    def is_joined(self) -> bool:
        """Whether the stream that began comes after all that was captured."""
        seen: set[Node] = set()
        stack = list(self.tips[self.origin])
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack.extend(node.after)
        return len(seen) == len(self.nodes)


class Graph:
    def __init__(self, nodes: list[Node]):
        self.nodes = nodes


class Executable:
    """A graph that can be launched; its launches come one after another."""

    def __init__(self, graph: Graph):
        self.nodes = list(graph.nodes)
        self.streams: dict[tuple, Any] = {}  # by the context and the captured stream
        self.last: Any = None


class Capturing:
    """The functions of the driver for capture; a part of ``Driver``."""

    def begin_captures(self) -> None:
        self.captures: dict[Any, Capture] = {}  # by the stream

    def changed(self) -> None:
        """Launches run at once only where nothing is captured, and nothing waits for other processes."""
        self.native["AT_ONCE"] = self.whim is None and self.level == "fast" and not (self.captures or self.waiting)

    def captured(self, stream: Any, do: Callable | None) -> Node | None:
        """The node for work of a stream that is captured; None: it is not."""
        capture = self.captures.get(stream)
        if capture is not None:
            return capture.add(stream, do)
        if stream.blocking:
            for s, other in self.captures.items():
                if s.context is stream.context and s.blocking and (stream is self.default[stream.context]):
                    raise other.fail("STREAM_CAPTURE_IMPLICIT")
        return None

    def waits_for(self, context: Any) -> None:
        """The host waits for a device."""
        for stream, capture in self.captures.items():
            if stream.context is context:
                raise capture.fail("STREAM_CAPTURE_UNSUPPORTED")

    def asks(self, stream: Any) -> None:
        """The host waits for a stream, or asks for its state."""
        if stream in self.captures:
            raise self.captures[stream].fail("STREAM_CAPTURE_UNSUPPORTED")

    def asks_event(self, record: Any) -> None:
        if isinstance(record, Node):
            raise record.capture.fail("CAPTURED_EVENT")

    def unsafe(self) -> None:
        """A function that may wait for work: an error in the threads that a capture forbids it."""
        mode, thread = getattr(self.current, "capture_mode", GLOBAL), threading.get_ident()
        for capture in self.captures.values():
            own = capture.thread == thread
            if mode != RELAXED and ((own and capture.mode != RELAXED) or (not mode and not capture.mode)):
                raise capture.fail("STREAM_CAPTURE_UNSUPPORTED")

    def wait_captured(self, stream: Any, record: Any) -> bool:
        """A stream waits for an event: whether that was a part of a capture."""
        capture = self.captures.get(stream)
        if not isinstance(record, Node):
            if capture is not None and record is not None:
                raise capture.fail("STREAM_CAPTURE_ISOLATION")
            return capture is not None
        if record.capture not in self.captures.values():
            raise Failed("CAPTURED_EVENT")
        if capture not in (None, record.capture):
            raise capture.fail("STREAM_CAPTURE_MERGE")
        if capture is None:
            if stream is self.default[stream.context]:
                raise record.capture.fail("STREAM_CAPTURE_IMPLICIT")
            self.captures[stream] = record.capture
            record.capture.tips[stream] = set()
        tips = record.capture.tips
        tips[stream] = tips[stream] | {record}
        return True

    # ---- the driver's functions --------------------------------------------------------------------------------------

    def cuThreadExchangeStreamCaptureMode(self, mode: int) -> None:
        before, new = getattr(self.current, "capture_mode", GLOBAL), INT.from_address(mode).value
        if new not in (GLOBAL, THREAD_LOCAL, RELAXED):
            raise Failed("INVALID_VALUE")
        self.current.capture_mode = new
        put(mode, before, INT)

    def cuStreamBeginCapture(self, handle: int, mode: int) -> None:
        stream = self.stream(handle)
        if stream is self.default[stream.context]:
            raise Failed("STREAM_CAPTURE_UNSUPPORTED")
        if stream in self.captures:
            raise Failed("ILLEGAL_STATE")
        if mode not in (GLOBAL, THREAD_LOCAL, RELAXED):
            raise Failed("INVALID_VALUE")
        self.captures[stream] = Capture(stream, mode)
        self.changed()

    def cuStreamEndCapture(self, handle: int, to: int) -> None:
        stream = self.stream(handle)
        capture = self.captures.get(stream)
        if capture is None:
            raise Failed("ILLEGAL_STATE")
        if capture.mode != RELAXED and capture.thread != threading.get_ident():
            raise Failed("STREAM_CAPTURE_WRONG_THREAD")
        if stream is not capture.origin:
            raise capture.fail("STREAM_CAPTURE_UNMATCHED")
        self.captures = {s: c for s, c in self.captures.items() if c is not capture}
        self.changed()
        put(to, 0)
        if capture.broken:
            raise Failed("STREAM_CAPTURE_INVALIDATED")
        if not capture.is_joined():
            raise Failed("STREAM_CAPTURE_UNJOINED")
        self.give(to, Graph(capture.nodes))

    def cuStreamIsCapturing(self, handle: int, to: int) -> None:
        capture = self.captures.get(self.stream(handle))
        put(to, 0 if capture is None else 2 if capture.broken else 1, INT)

    def cuGraphInstantiateWithFlags(self, to: int, graph: int, flags: int) -> None:
        self.give(to, Executable(self.take(graph, Graph)))

    def cuGraphLaunch(self, handle: int, at: int) -> None:
        executable, stream = self.take(handle, Executable), self.stream(at)
        capture = self.captures.get(stream)
        if capture is not None:  # a graph in a graph
            made: dict[Node, Node] = {}
            first = capture.add(stream, None)
            for node in executable.nodes:
                made[node] = Node(capture, stream, node.do, {made[x] for x in node.after} or {first})
                capture.nodes.append(made[node])
            capture.tips[stream] = {first, *made.values()}
            return
        if executable.last is not None and not executable.last.done:
            stream.waits.append(executable.last)
        first = self.queue(stream, None)
        done: dict[Node, Any] = {}
        for node in executable.nodes:
            key = stream.context, node.stream
            own = executable.streams.get(key)
            if own is None:
                own = executable.streams[key] = self.new_stream(stream.context)
            own.waits += [first, *(done[x] for x in node.after)]
            done[node] = self.queue(own, node.do)
        stream.waits += [s.queue[-1] for s in executable.streams.values() if s.queue]
        stream.waits += done.values()
        executable.last = self.queue(stream, None)

    def cuGraphExecDestroy(self, handle: int) -> None:
        executable = self.take(handle, Executable)
        if executable.last is not None:
            self.finish(executable.last)
        for own in executable.streams.values():
            self.streams[own.context].remove(own)
        del self.handles[handle]

    def cuGraphDestroy(self, handle: int) -> None:
        self.take(handle, Graph)
        del self.handles[handle]

    def cuGraphGetNodes(self, handle: int, nodes: int, count: int) -> None:
        graph = self.take(handle, Graph)
        if nodes:
            raise Failed("NOT_SUPPORTED")
        put(count, len(graph.nodes))

    def cuGraphDebugDotPrint(self, handle: int, path: int, flags: int) -> None:
        graph = self.take(handle, Graph)
        number = {node: k for k, node in enumerate(graph.nodes)}
        lines = [f'  n{number[x]} [label="{x.do.__name__ if x.do else "event"}"];' for x in graph.nodes]
        lines += [f"  n{number[y]} -> n{number[x]};" for x in graph.nodes for y in x.after]
        with open(ctypes.string_at(path), "w") as file:
            file.write("digraph graph_1 {\n" + "\n".join(lines) + "\n}\n")

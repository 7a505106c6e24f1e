"""Profiles as files for ``chrome://tracing`` and https://ui.perfetto.dev (the Trace Event Format)."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from typing import Any

_CATEGORIES = {0: "cpu_op", 1: "cpu_op", 7: "user_annotation"}


def _complete(name: str, category: str, thread: int, start: float, length: float, args: dict) -> dict:
    return {
        "ph": "X", "cat": category, "name": name, "pid": os.getpid(), "tid": thread, "ts": round(start, 3),
        "dur": round(length, 3), "args": args,
    }  # fmt: skip


def _event(event: Any) -> dict:
    args: dict[str, Any] = {"External id": event.id}
    if event.sequence_nr >= 0:
        args["Sequence number"] = event.sequence_nr
    if event.structured_input_shapes:
        args["Input Dims"] = event.structured_input_shapes
        args["Concrete Inputs"] = [str(x) for x in event.concrete_inputs]
    if event.flops:
        args["flops"] = event.flops
    if event.moved:
        args["bytes"] = event.moved
    if event.stack:
        args["Call stack"] = ";".join(reversed(event.stack))
    category = "python_function" if event.is_python_function else _CATEGORIES[event.scope]
    times = event.time_range
    return _complete(event.name, category, event.thread, times.start, times.elapsed_us(), args)


def _run(run: Any) -> dict:
    args: dict[str, Any] = {"pieces": run.pieces, "busy us": round(run.busy, 3)}
    if run.moved:
        args["bytes"] = run.moved
    if run.flops:
        args["flops"] = run.flops
    return _complete(run.name, "kernel", run.thread, run.start, run.end - run.start, args)


def _arrows(events: Iterable[Any]) -> list[dict]:
    """From the op that left a node to the node's run."""
    made = []
    left = {event.sequence_nr: event for event in events if event.scope == 0 and event.sequence_nr >= 0}
    for event in events:
        start = left.get(event.sequence_nr) if event.scope == 1 else None
        if start is not None:
            for phase, at in (("s", start), ("f", event)):
                arrow = {"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": event.sequence_nr, "pid": os.getpid()}
                arrow |= {"tid": at.thread, "ts": round(at.time_range.start, 3)}
                made.append(arrow | ({"bp": "e"} if phase == "f" else {}))
    return made


def _memory(events: Iterable[Any]) -> list[dict]:
    return [
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "s": "t",
            "pid": os.getpid(),
            "tid": event.thread,
            "ts": round(event.time_range.end, 3),
            "args": {"Bytes": event.self_cpu_memory_usage, "Total Allocated": event.allocated, "Device Type": 0},
        }
        for event in events
        if event.self_cpu_memory_usage
    ]


def write_trace(path: str | os.PathLike, events: Any, runs: Iterable[Any], metadata: dict[str, Any]) -> None:
    """Write events and runs of kernels; compressed where ``path`` ends in ``.gz``."""
    threads = sorted({event.thread for event in events})
    helpers = sorted({run.thread for run in runs} - set(threads))
    named = [(t, f"thread {t} (Python)") for t in threads] + [(t, f"thread {t} (pool)") for t in helpers]
    entries: list[dict] = [{"ph": "M", "name": "process_name", "pid": os.getpid(), "tid": 0, "args": {"name": "taeda"}}]
    entries += [
        {"ph": "M", "name": "thread_name", "pid": os.getpid(), "tid": thread, "args": {"name": name}}
        for thread, name in named
    ]
    entries += map(_event, events)
    entries += map(_run, runs)
    entries += _arrows(events)
    if events._profile_memory:
        entries += _memory(events)
    content = {"schemaVersion": 1, "displayTimeUnit": "ms", **metadata, "traceEvents": entries}
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as file:
        json.dump(content, file)

"""Traces: an observed call of an entry, repeated from its launches on other memory, gives its results, bit for bit.

python -m tests.conformance.opdb.replays [REGEX [SAMPLES]]     (0: all samples)
"""

from __future__ import annotations

import taeda
from taeda._core.guard import key_of
from taeda._core.replay import MISS, Trace
from taeda._core.trace_record import record_trace
from taeda.graph.replay import guard
from taeda.kernels.build import is_kernel

from ..trees import rebuilt
from .checks import tensors
from .plans import copies, main, same


def attempt(function, args, kwargs) -> str:
    """The difference; ``""`` if there is none, ``"-"`` and the reason if the call is not repeated."""
    found = [t.detach() for t in tensors([list(args), kwargs])]

    def call(*given):
        at = iter(given)
        return function(*rebuilt(list(args), at), **rebuilt(kwargs, at))

    key = key_of(tuple(copies(found)), {})
    if key is None:
        return "- an argument is of a kind of its own"
    given, traces = [copies(found) for _ in range(5)], []
    call(*given[0])
    for mine in given[1:3]:
        taeda.manual_seed(1)
        result, trace = record_trace(call, tuple(mine), {}, mine)
        if not isinstance(trace, Trace):
            return f"- {trace[0]}"
        traces.append(trace)
    if traces[0].signature != traces[1].signature:
        return "- no two calls do the same"
    if any(is_address(word) for step in trace.signature if isinstance(step, tuple) for x in step
           if isinstance(x, bytes) for word in memoryview(x[: len(x) // 8 * 8]).cast("q")):  # fmt: skip
        return "an address, or what nobody set, among the numbers of a launch"
    trace.guard = guard([]).guard
    taeda.manual_seed(1)
    got = trace.attempt(given[3])
    taeda.manual_seed(1)
    want = tensors(call(*given[4]))
    for name, tried in (("observed", result), ("replayed", got)):
        if tried is MISS or len(want) != len(tensors(tried)):
            return f"{name} results"
        if not all(same(a, b) for a, b in zip(want, tensors(tried), strict=True)):
            return f"{name} results"
    for number in (2, 3):
        if not all(same(a, b) and a._version == b._version for a, b in zip(given[number], given[4], strict=True)):
            return "arguments written to"
    return ""


def is_address(word: int) -> bool:
    """Whether a word is where Linux puts memory that is mapped, or the heap; kernels are given to those that call them."""
    return word >> 40 in (0x55, 0x56, 0x7E, 0x7F) and not is_kernel(word)


if __name__ == "__main__":
    main(attempt)

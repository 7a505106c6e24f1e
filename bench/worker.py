"""One framework in one process: times the cases that it is asked for on standard input, a line of JSON for each."""

from __future__ import annotations

import functools
import gc
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any


def seconds_of_batches(
    fn: Callable[[], Any], batches: int, batch_seconds: float, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Seconds per call in each of ``batches`` batches of calls of about ``batch_seconds``; the last of the trials
    first."""
    fn()
    number = 1
    while True:
        start = clock()
        for _ in range(number):
            fn()
        took = clock() - start
        if took > batch_seconds / 2:
            break
        number = max(2 * number, int(number * batch_seconds / max(took, 1e-9) * 0.7))
    number = max(1, round(number * batch_seconds / took))
    found = [took / number] if number == 1 else []
    loop = range(number)
    while len(found) < batches + (number == 1):
        start = clock()
        for _ in loop:
            fn()
        found.append((clock() - start) / number)
    return found


def seconds_per_call(fn: Callable[[], Any], batches: int = 5, batch_seconds: float = 0.02) -> float:
    """The fastest of ``batches`` batches of calls, each of about ``batch_seconds``: what disturbs can only add time."""
    return min(seconds_of_batches(fn, batches, batch_seconds))


def by_turns(
    ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int = 5, batches: int = 5, batch_seconds: float = 0.002
) -> tuple[float, float, float]:
    """Median seconds per call of both, and the median of the ratios, over rounds in which each has a turn."""
    turns = [[seconds_per_call(f, batches, batch_seconds) for f in (ours, theirs)] for _ in range(rounds)]
    first, second = zip(*turns, strict=True)
    return statistics.median(first), statistics.median(second), statistics.median(a / b for a, b in turns)


@functools.cache
def floors_of(T: Any) -> Any:
    """The machine's rates, measured now."""
    return T.profiler.measure_floors(refresh=True)


def floor_of(T: Any, fn: Callable[[], Any]) -> float:
    """Seconds that the machine needs for a call at least: its bytes at the rate of a copy, its products at the
    tile's."""
    fn()
    with T.profiler.profile(with_flops=True) as prof:
        fn()
    return prof.events().floor_seconds(floors_of(T))


def main() -> None:
    name, threads = sys.argv[1], int(sys.argv[2])
    T = importlib.import_module(name)
    T.set_num_threads(threads)
    import limits
    from cases import CASES
    from ops import op_cases

    cases = {c.name: c for c in [*CASES, *limits.CASES, *op_cases(threads)]}
    ready: dict[str, Callable[[], Any]] = {}
    print(json.dumps({"version": T.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["name"] not in ready:
                ready.clear()
                T.manual_seed(0)
                ready[request["name"]] = cases[request["name"]].make(T)
            gc.collect()
            gc.disable()
            fn = ready[request["name"]]
            answer: dict[str, Any]
            if count := request["windows"]:
                # On one thread what other processes take of the processor is left out, not what they do to its caches.
                clock = time.thread_time if threads == 1 else time.perf_counter
                answer = {"windows": seconds_of_batches(fn, count, request["batch_seconds"], clock)[-count:]}
            else:
                answer = {"seconds": seconds_per_call(fn, batch_seconds=request["batch_seconds"])}
            if request.get("floor"):
                answer["floor"] = floor_of(T, fn)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        finally:
            gc.enable()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

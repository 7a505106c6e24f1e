"""Whole steps compiled, by taeda, PyTorch and JAX: ``run.py --compile``.

A process for each way to run them; they take turns. JAX may live in another environment: ``BENCH_JAX`` names its
Python. Each step's results are read, one element of each. ``python bench/compiled.py peaks`` prints memory of taeda's
steps alone.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
#: The framework and the mode of its compiler; None: eager.
WAYS: dict[str, tuple[str, str | None]] = {
    "taeda compiled": ("taeda", "default"),
    "taeda static": ("taeda", "reduce-overhead"),
    "taeda": ("taeda", None),
    "torch": ("torch", None),
    "torch.compile": ("torch", "default"),
    "torch reduce-overhead": ("torch", "reduce-overhead"),
    "jax.jit": ("jax", "default"),
}
STEPS = 3


# ---- one process -----------------------------------------------------------------------------------------------------
def _read(x: Any) -> list[float]:
    """An element of each result."""
    if isinstance(x, (list, tuple)):
        return [value for part in x for value in _read(part)]
    if hasattr(x, "detach"):
        return [float(x.detach().reshape(-1)[0])]
    return [float(x.ravel()[0])]


def make(way: str, name: str, threads: int) -> Callable[[], list[float]]:
    """A step, compiled that way, whose results are read."""
    import steps

    framework, mode = WAYS[way]
    program = next(p for p in steps.PROGRAMS if p.name == name)
    if framework == "jax":
        import jax_steps

        step = getattr(jax_steps, program.make.__name__)()
    else:
        T = _framework(framework, threads)
        step = program.make(T)
        step = step if mode is None else T.compile(step, mode=mode)
    return lambda: _read(step())


def _framework(name: str, threads: int) -> Any:
    import importlib

    T = importlib.import_module(name)
    T.set_num_threads(threads)
    T.manual_seed(0)
    return T


def once(way: str, name: str, threads: int) -> dict[str, Any]:
    """What a program costs in a process of its own: its first step, its memory at the peak, its values."""
    from costs import _resident

    _framework(WAYS[way][0], threads) if WAYS[way][0] != "jax" else __import__("jax")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _resident("VmRSS")
    start = time.perf_counter()
    step = make(way, name, threads)
    made = time.perf_counter()
    values = [step()]
    first = time.perf_counter() - made
    for _ in range(STEPS - 1):
        values.append(step())
    return {"first": first, "made": made - start, "peak": _resident("VmHWM") - before, "values": values}


def peak(way: str, name: str) -> dict[str, Any]:
    """Bytes of tensors at the peak of a step in a process of its own, parameters included; processor seconds that the
    first step takes, of all threads."""
    from taeda._core import memory

    start = memory.memory_stats()["allocated"]
    step = make(way, name, 1)
    before = time.process_time()
    step()
    first = time.process_time() - before
    for _ in range(4):
        step()
    memory.reset_peak_memory_stats()
    step()
    return {"peak": memory.memory_stats()["peak_allocated"] - start, "first": first}


def print_peaks() -> None:
    """A table of :func:`peak` for each program."""
    import steps
    from sweep import markdown

    rows = []
    for program in steps.PROGRAMS:
        with tempfile.TemporaryDirectory() as cache:
            eager, compiled, static = found = [
                _child(way, 1, program.name, "peak", cache=cache) for way in ("taeda", "taeda compiled", "taeda static")
            ]
            again = [_child(way, 1, program.name, "peak", cache=cache) for way in ("taeda", "taeda compiled")]
        cells = [f"{x['peak'] / 1e6:.3g} MB" for x in found]
        cells += [f"{x['peak'] / eager['peak']:.2f}" for x in (compiled, static)]
        cells += [f"{x:.2f} s" for x in (eager["first"], compiled["first"], again[0]["first"], again[1]["first"])]
        rows.append([program.name, *cells])
        print(*rows[-1], sep="; ", flush=True)
    print(markdown(
        ["step", "taeda", "compiled", "static", "compiled / taeda", "static / taeda", "first step: taeda, empty cache",
         "then compiled", "taeda, full cache", "compiled, full cache"], rows,
    ))  # fmt: skip


def new_batch(way: str, threads: int) -> dict[str, Any]:
    """Seconds that the first step of another batch size takes more than its later ones, and the kernels made for it."""
    import steps

    framework, mode = WAYS[way]
    T = _framework(framework, threads)
    step = T.compile(steps.batches(T), mode=mode)
    times = []
    for n in (12, 12, 12, 7, 7, 7):
        if len(times) == 3 and framework == "taeda":
            from taeda._core import fusion

            kernels = fusion.count_kernels()
        start = time.perf_counter()
        float(step(n).detach())
        times.append(time.perf_counter() - start)
    found: dict[str, Any] = {"more": times[3] - min(times[4:])}
    return found | ({"kernels": fusion.count_kernels() - kernels} if framework == "taeda" else {})


def serve(way: str, threads: int) -> None:
    """Time the steps that are asked for on standard input; a line of JSON for each."""
    from worker import seconds_per_call

    ready: dict[str, Callable] = {}
    for line in sys.stdin:
        name = line.strip()
        try:
            if name not in ready:
                ready.clear()
                ready[name] = make(way, name, threads)
                for _ in range(STEPS):
                    ready[name]()
            answer: dict[str, Any] = {"seconds": seconds_per_call(ready[name], batches=3, batch_seconds=0.05)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        print(json.dumps(answer), flush=True)


# ---- all of them -----------------------------------------------------------------------------------------------------
def _python(way: str) -> str:
    return os.environ.get("BENCH_JAX", sys.executable) if WAYS[way][0] == "jax" else sys.executable


def _environment(way: str, threads: int, cache: str | None = None) -> dict[str, str]:
    from timing import environment

    env = environment(threads)
    if cache:
        env |= {"TAEDA_CACHE": cache, "TORCHINDUCTOR_CACHE_DIR": cache, "JAX_COMPILATION_CACHE_DIR": cache}
    return env


def _pin(way: str, threads: int) -> Callable[[], None] | None:
    """XLA takes as many threads as it may run on."""
    if WAYS[way][0] != "jax":
        return None
    chosen = sorted(os.sched_getaffinity(0))[:threads]
    return lambda: os.sched_setaffinity(0, chosen)


def _child(way: str, threads: int, *what: str, cache: str | None = None) -> dict[str, Any]:
    done = subprocess.run(
        [_python(way), str(HERE / "compiled.py"), way, str(threads), *what], capture_output=True, text=True, cwd=HERE,
        env=_environment(way, threads, cache), preexec_fn=_pin(way, threads),
    )  # fmt: skip
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["?"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def _available() -> list[str]:
    """The ways that this machine has: torch.compile needs a C++ compiler, JAX its package."""
    has_jax = not subprocess.run([_python("jax.jit"), "-c", "import jax"], capture_output=True).returncode
    has_compiler = any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "clang++"))
    ways = [way for way in WAYS if has_jax or WAYS[way][0] != "jax"]
    return [way for way in ways if has_compiler or WAYS[way][0] != "torch" or WAYS[way][1] is None]


def _times(names: list[str], ways: list[str], threads: int, rounds: int) -> dict[tuple[str, str], list[float]]:
    """Seconds of each program and way, a number per round, the processes in turn; none where it failed."""
    workers = {
        way: subprocess.Popen(
            [_python(way), str(HERE / "compiled.py"), way, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, cwd=HERE, env=_environment(way, threads), preexec_fn=_pin(way, threads),
        )
        for way in ways
    }  # fmt: skip
    found: dict[tuple[str, str], list[float]] = {}
    for name in names:
        failed: set[str] = set()
        for i in range(rounds):
            for way in ways if i % 2 == 0 else ways[::-1]:
                worker = workers[way]
                if way in failed or worker.poll() is not None:
                    continue
                assert worker.stdin is not None and worker.stdout is not None
                worker.stdin.write(name + "\n")
                worker.stdin.flush()
                answer = json.loads(worker.stdout.readline() or '{"error": "the process ended"}')
                if "error" in answer:
                    failed.add(way)
                    print(f"{name}, {way}: {answer['error']}", flush=True)
                else:
                    found.setdefault((name, way), []).append(answer["seconds"])
        print(name, *(f"{way} {statistics.median(found[name, way]):.3g} s" for way in ways if (name, way) in found),
              sep="; ", flush=True)  # fmt: skip
    for worker in workers.values():
        assert worker.stdin is not None
        worker.stdin.close()
        worker.wait()
    return found


def _ratio(ours: list[float] | None, theirs: list[float] | None) -> float:
    """The median of the ratios of rounds; nan where one of them failed."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=False)) if ours and theirs else math.nan


def _judged(value: float, bar: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f} ({bar:.2f}{'' if value <= bar else ', no'})"


def _time_table(found: dict, names: list[str], ways: list[str], bars: dict[str, tuple[float, float]]) -> str:
    from sweep import geometric_mean, markdown
    from timing import _seconds

    rows, against_jax = [], []
    for name in names:
        seconds = {way: found.get((name, way)) for way in WAYS}
        peers = [way for way in ("torch.compile", "torch reduce-overhead") if seconds[way]]
        best = min(peers, key=lambda way: statistics.median(seconds[way] or [math.inf]), default="torch.compile")
        ours, jax = seconds["taeda compiled"], _ratio(seconds["taeda compiled"], seconds["jax.jit"])
        against_jax.append(jax)
        cells = [_seconds(statistics.median(seconds[way] or [])) if seconds[way] else "-" for way in ways]
        rows.append([name, *cells, _judged(_ratio(ours, seconds[best]), bars[name][0]),
                     _judged(_ratio(ours, seconds["taeda"]), bars[name][1]), _judged(jax, 0.80)])  # fmt: skip
    mean = _judged(geometric_mean(against_jax), 0.40)
    rows.append(["geometric mean", *[""] * (len(ways) + 2), mean])
    return markdown(["step", *ways, "of torch.compile", "of taeda", "of jax.jit"], rows)


def _cost_table(names: list[str], ways: list[str]) -> tuple[str, list[str]]:
    """Peak memory and first steps; and the programs whose values compiled differ from those run eagerly."""
    from sweep import markdown

    rows, different = [], []
    for name in names:
        found: dict[str, dict] = {}
        for way in ways:
            with tempfile.TemporaryDirectory() as cache:
                found[way] = _child(way, 1, name, cache=cache)
                if way in ("taeda compiled", "torch.compile"):
                    found[f"{way}, cached"] = _child(way, 1, name, cache=cache)
        for way in [w for w in ("taeda compiled", "taeda static") if w in ways]:
            if found.get(way, {}).get("values") != found["taeda"].get("values"):
                different.append(f"{name}, {way}")
        cells = [f"{found[way]['peak'] / 1e6:.0f} MB" if "peak" in found[way] else "-" for way in ways]
        firsts = [f"{found[w]['first']:.2f} s" if "first" in found.get(w, ()) else "-"
                  for w in ("taeda compiled", "taeda compiled, cached", "torch.compile",
                  "torch.compile, cached")]  # fmt: skip
        rows.append([name, *cells, *firsts])
        print("  ".join(rows[-1]), *(f"{w}: {r['error']}" for w, r in found.items() if "error" in r), flush=True)
    heads = ["taeda, empty cache", "taeda, full cache", "torch.compile, empty", "torch.compile, full"]
    return markdown(["step", *(f"{way}: peak" for way in ways), *(f"first step: {h}" for h in heads)], rows), different


def run(args: argparse.Namespace) -> None:
    """Measure, print the page, and with ``--write`` put it into RESULTS.md."""
    import steps
    import sweep

    programs = [p for p in steps.PROGRAMS if not args.only or any(text in p.name for text in args.only)]
    names, ways = [p.name for p in programs], _available()
    bars = {p.name: (p.compiled_bar, p.eager_bar) for p in programs}
    parts = [
        f"Measured {datetime.date.today().isoformat()} with `{args.command}`: medians of {args.rounds} rounds, the "
        "processes in turn; results are read. Ratios are of taeda compiled (default mode), to PyTorch's better mode; "
        "the highest that is aimed at in brackets. JAX runs on as many processors as the others have threads."
    ]
    parts += [f"{way}: not on this machine." for way in WAYS if way not in ways]
    for threads in args.threads:
        found = _times(names, ways, threads, args.rounds)
        parts += [f"{threads} thread{'s' * (threads > 1)}:", _time_table(found, names, ways, bars)]
    costs, different = _cost_table(names, ways)
    batch = {way: _child(way, 1, "new batch") for way in ways if WAYS[way][0] != "jax" and WAYS[way][1]}
    more = [f"{way} {1000 * r['more']:.1f} ms" + (f" and {r['kernels']} kernels" if "kernels" in r else "")
            for way, r in batch.items() if "more" in r]  # fmt: skip
    parts += [
        "Each in a process of its own, one thread: memory at the peak beyond the imported framework's, and the first "
        "step.",
        costs,
        f"The first step of the char-GPT with another size of batch takes more: {'; '.join(more)}.",
        f"Values of {STEPS} steps that differ from those of taeda eager: {', '.join(different) or 'none'}.",
    ]
    print("\n" + "\n\n".join(parts))
    if args.write:
        sweep.put(sweep.HEADINGS[3], "\n\n".join(parts))


if __name__ == "__main__":
    os.chdir(HERE)
    if sys.argv[1:] == ["peaks"]:
        print_peaks()
        sys.exit()
    chosen, count = sys.argv[1], int(sys.argv[2])
    if len(sys.argv) < 4:
        serve(chosen, count)
    elif sys.argv[4:] == ["peak"]:
        print(json.dumps(peak(chosen, sys.argv[3])))
    else:
        what = sys.argv[3]
        print(json.dumps(new_batch(chosen, count) if what == "new batch" else once(chosen, what, count)))

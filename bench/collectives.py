"""Collectives of two processes by size, and training steps, against gloo: ``python bench/collectives.py [--write]``.

Each engine runs the same calls in processes of its own, the engines in turn; a call's time is that of the slower
process. Printed are medians over the rounds, and the median of the ratios to gloo's time of the same round.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import sweep
from timing import _seconds, environment

SIZES = {"16 B": 4, "4 KB": 1 << 10, "64 KB": 1 << 14, "1 MB": 1 << 18, "24 MB": 6 << 20}
CALLS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "barrier")
ENGINES = {
    "shared memory": ("taeda", "gloo", {}),
    "TCP": ("taeda", "gloo", {"TAEDA_DISTRIBUTED_SHARED_MEMORY": "0"}),
    "MPI": ("taeda", "mpi", {}),
    "torch gloo": ("torch", "gloo", {}),
}
BARS = {"all_reduce": {"16 B": 1.0, "4 KB": 1.0, "24 MB": 1.5}}  # shared memory, of gloo's time


def measure(framework: str, backend: str) -> None:
    """In one of the processes: print the median seconds of each call, from process 0."""
    if framework == "torch":
        import torch as T
        import torch.distributed as dist
    else:
        import taeda as T
        import taeda.distributed as dist

    T.set_num_threads(1)
    dist.init_process_group(backend)
    world = dist.get_world_size()
    for call in CALLS:
        for size, n in SIZES.items():
            x, out = T.ones(n), T.zeros(n * world)
            mine = T.zeros(n // world)
            body = {
                "all_reduce": lambda x=x: dist.all_reduce(x),
                "all_gather": lambda x=x, out=out: dist.all_gather_into_tensor(out, x),
                "reduce_scatter": lambda mine=mine, x=x: dist.reduce_scatter_tensor(mine, x),
                "all_to_all": lambda x=x, out=out, n=n: dist.all_to_all_single(out[:n], x),
                "broadcast": lambda x=x: dist.broadcast(x, 0),
                "barrier": dist.barrier,
            }[call]
            times = T.tensor(timed(body, dist.barrier), dtype=T.float64)
            dist.all_reduce(times, dist.ReduceOp.MAX)  # the slower process, call by call
            if dist.get_rank() == 0:
                print("MEASURED", json.dumps([call, size, statistics.median(times.tolist())]), flush=True)
            if call == "barrier":
                break
    for kind in ("DDP", "fully_shard"):
        times = T.tensor(timed(training_step(T, kind), dist.barrier), dtype=T.float64)
        dist.all_reduce(times, dist.ReduceOp.MAX)
        if dist.get_rank() == 0:
            print(
                "MEASURED", json.dumps([f"char-GPT, {kind}", "a step", statistics.median(times.tolist())]), flush=True
            )
    dist.barrier()
    dist.destroy_process_group()


def training_step(T: Any, kind: str) -> Any:
    """A step of the char-GPT (0.8 M parameters) on 6 windows of 64 characters for each process."""
    import workloads

    T.manual_seed(1)
    model = workloads._gpt(T, 128, 4, 4, 97, 64)
    if kind == "DDP":
        model = T.nn.parallel.DistributedDataParallel(model)
    else:
        shard = importlib.import_module(f"{T.__name__}.distributed.fsdp").fully_shard
        make_mesh = importlib.import_module(f"{T.__name__}.distributed.device_mesh").init_device_mesh
        mesh = make_mesh("cpu", (T.distributed.get_world_size(),))
        for part in (*model.blocks, model):
            shard(part, mesh=mesh)
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-3)
    windows = T.randint(0, 97, (6, 65))

    def step() -> None:
        loss = T.nn.functional.cross_entropy(
            model(windows[:, :-1].contiguous()).flatten(0, 1), windows[:, 1:].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def timed(body: Any, barrier: Any) -> list[float]:
    """Seconds of several calls, as many in both processes."""
    for _ in range(3):
        body()
    found = []
    for _ in range(25):
        barrier()
        start = time.perf_counter()
        body()
        found.append(time.perf_counter() - start)
    return found


def run(engine: str, processes: int) -> dict[tuple[str, str], float]:
    """The seconds of every call, by call and size."""
    framework, backend, more = ENGINES[engine]
    start = [sys.executable, "-m", "taeda.distributed.run", f"--nproc-per-node={processes}"]
    done = subprocess.run(
        [*start, *(["--mpi"] if backend == "mpi" else []), __file__, "--worker", framework, backend],
        env={**environment(1), **more}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{engine}: {done.stderr[-2000:]}")
    rows = [json.loads(line.split(" ", 1)[1]) for line in done.stdout.splitlines() if line.startswith("MEASURED")]
    return {(call, size): seconds for call, size, seconds in rows}


def page(rounds: list[dict[str, dict]], names: list[str], processes: int) -> str:
    """The table in Markdown."""
    others = [name for name in names if name != "torch gloo"]
    head = ["call", "size", *names, *(f"{name} / gloo" for name in others), "at most", "met"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for call, size in rounds[0]["torch gloo"]:
        seconds = {name: [r[name][call, size] for r in rounds] for name in names}
        ratios = [
            statistics.median(a / b for a, b in zip(seconds[name], seconds["torch gloo"], strict=True))
            for name in others
        ]
        bar = BARS.get(call, {}).get(size)
        met = "" if bar is None else "yes" if ratios[0] <= bar else "no"
        cells = [
            call,
            "" if call == "barrier" else size,
            *(_seconds(statistics.median(seconds[name])) for name in names),
        ]
        cells += [*(f"{ratio:.2f}" for ratio in ratios), "" if bar is None else f"{bar:.2f}", met]
        lines.append("| " + " | ".join(cells) + " |")
    day = time.strftime("%Y-%m-%d")
    return (
        f"Measured {day} with `python bench/collectives.py --write`: {processes} processes of one thread on one "
        f"machine ({os.cpu_count()} processors, a load of {os.getloadavg()[1]:.0f} by all that ran), float32, medians "
        f"of {len(rounds)} rounds, the engines in turn; the slower process "
        "counts. The size is that of the tensor that a process gives. Ratios below 1: taeda is faster than gloo.\n\n"
        + "\n".join(lines)
        + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(ENGINES), help="these engines, and gloo")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return measure(*args.worker)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    names = [name for name in ENGINES if name != "MPI" or shutil.which("mpiexec", path=path)]
    if args.only:
        names = [name for name in names if name in args.only or name == "torch gloo"]
    rounds = [{name: run(name, args.processes) for name in names} for _ in range(args.rounds)]
    text = page(rounds, names, args.processes)
    print(text)
    if args.write:
        sweep.put(sweep.HEADINGS[4], text)


if __name__ == "__main__":
    main()

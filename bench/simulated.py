"""Steps that are simulated and steps that are run, on two or more processes of this machine.

    python -m taeda.distributed.run --nproc-per-node=2 bench/simulated.py

Each process measures its part of the model while the others measure theirs, and all of them the links, by messages and
``all_reduce``; what waits for what is the simulation's. Each row is the fastest of the steps that were run, and how
far the simulation is from it. Run it on a quiet machine with a core for each process.
"""

import argparse
import time
from dataclasses import replace

import taeda
import taeda.distributed as dist
from taeda import nn
from taeda.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from taeda.distributed.simulation import Device, Layer, Step, measure_network, simulate
from taeda.nn.parallel import DistributedDataParallel
from taeda.profiler import measure_floors


def blocks(width: int, count: int) -> nn.Module:
    """A part of the model."""
    made = [
        nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        for _ in range(count)
    ]
    return nn.Sequential(*made)


def loss_fn(out: taeda.Tensor, target: taeda.Tensor) -> taeda.Tensor:
    """Mean squared error."""
    return (out - target).square().mean()


def fastest(run, steps: int) -> float:
    """Seconds of ``run()``, from a start in common to the end of the last process."""
    times = []
    for _ in range(steps + 2):
        dist.barrier()
        start = time.perf_counter()
        run()
        dist.barrier()
        times.append(time.perf_counter() - start)
    return min(times[2:])


def measured_part(width: int, count: int, rows: int, steps: int) -> Layer:
    """So many blocks as a layer, with times of this machine: those of the slowest process."""
    with taeda.device("meta"):
        layer = Layer(blocks(width, count), (taeda.zeros(rows, width),))
    dist.barrier()
    x = taeda.randn(rows, width, requires_grad=True)
    layer = layer.measured(blocks(width, count), x, repeat=steps)
    times = taeda.tensor(layer.seconds, dtype=taeda.float64)
    dist.all_reduce(times, dist.ReduceOp.MAX)
    return replace(layer, seconds=tuple(times.tolist()))


class Bench:
    """The rows: a step that is run, and simulated."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        floors = measure_floors(1)
        self.device = Device(floors.flops, floors.bandwidth(1 << 26))
        self.network = measure_network(repeat=20)
        if self.rank == 0:
            print(f"{self.network.inside}, messages {self.network.messages}", flush=True)
        self.x = taeda.randn(options.rows, options.width)

    def report(self, name: str, run, microbatches: int, mesh: dict, schedule: str = "1f1b") -> None:
        """Run the step and simulate it."""
        o = self.options
        took = fastest(run, o.steps)
        part = measured_part(o.width, o.blocks, o.rows // microbatches, 2 * o.steps)
        step = Step([replace(part, count=mesh.get("pp", 1))], microbatches, schedule, state_bytes=0)
        found = simulate(step, mesh, self.network, self.device)
        if self.rank == 0:
            error = found.seconds / took - 1
            print(
                f"{name:24s} run {took * 1e3:8.2f} ms  simulated {found.seconds * 1e3:8.2f} ms  {error:+.1%}",
                flush=True,
            )

    def data_parallel(self) -> None:
        """Gradients are averaged over the processes."""
        model = DistributedDataParallel(blocks(self.options.width, self.options.blocks))
        optimizer = taeda.optim.SGD(model.parameters(), 0.01)

        def run() -> None:
            optimizer.zero_grad()
            loss_fn(model(self.x), self.x).backward()
            optimizer.step()

        self.report("data parallel", run, 1, {"dp": self.size})

    def pipeline(self, kind: type, name: str, microbatches: int) -> None:
        """A stage on each process."""
        module = blocks(self.options.width, self.options.blocks)
        schedule = kind(PipelineStage(module, self.rank, self.size, "cpu"), microbatches, loss_fn=loss_fn)
        optimizer = taeda.optim.SGD(module.parameters(), 0.01)

        def run() -> None:
            optimizer.zero_grad()
            schedule.step(*([self.x] if self.rank == 0 else []), target=self.x if self.rank == self.size - 1 else None)
            optimizer.step()

        self.report(f"{name}, {microbatches} microbatches", run, microbatches, {"pp": self.size}, name)


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--blocks", type=int, default=4, help="in each process")
    parser.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    dist.init_process_group()
    bench = Bench(options)
    bench.data_parallel()
    for kind, name in ((ScheduleGPipe, "gpipe"), (Schedule1F1B, "1f1b")):
        for microbatches in (2, 4, 8):
            bench.pipeline(kind, name, microbatches)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

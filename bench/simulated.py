"""Steps that are simulated and steps that are run, by the same programs, on two or more processes of this machine.

    OMP_NUM_THREADS=1 python -m taeda.distributed.run --nproc-per-node=2 bench/simulated.py

Each program makes a model, once with memory, which is run, and once on device meta, which is simulated. Steps are run
in turn with measurements of the rates of products and of memory, which all processes take at the same time; those of
links are measured first. Layers that sleep do not take the cores from each other, so they tell whether what waits for
what is right; layers that compute tell of all. The fastest of the steps and of the rates count. That needs a quiet
machine with a core for each process. ``--processor-time`` is for one that other programs use too: the processor time
of a step is compared with what the simulation says without waiting, and medians count.
"""

import argparse
import statistics
import time
from dataclasses import replace

import taeda
import taeda.distributed as dist
from taeda import nn
from taeda.distributed.fsdp import fully_shard
from taeda.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from taeda.distributed.simulation import Device, Network, measure_device, measure_network, simulate, spend
from taeda.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from taeda.nn.parallel import DistributedDataParallel

ROUNDS = 5


class Sleep(taeda.autograd.Function):
    """Takes so many seconds in each pass."""

    @staticmethod
    def forward(ctx, x, weight, forward, backward):
        ctx.backward_seconds = backward
        spend(forward)
        return x * weight

    @staticmethod
    def backward(ctx, g):
        spend(ctx.backward_seconds)
        return g, g.sum(), None, None


class Sleeper(nn.Module):
    """A layer that sleeps."""

    def __init__(self, forward: float, backward: float) -> None:
        super().__init__()
        self.weight, self.seconds = nn.Parameter(taeda.ones(())), (forward, backward)

    def forward(self, x):
        return Sleep.apply(x, self.weight, *self.seconds)


def block(width: int) -> nn.Module:
    """A layer that computes."""
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


def loss_fn(out: taeda.Tensor, target: taeda.Tensor) -> taeda.Tensor:
    """Mean squared error."""
    return (out - target).square().mean()


class Programs:
    """The rows: for each device a function of the mesh that gives that of a step."""

    def __init__(self, width: int, blocks: int, rows: int) -> None:
        self.width, self.blocks, self.rows = width, blocks, rows

    def model(self) -> nn.Module:
        """A process's part, or the whole."""
        return nn.Sequential(*[block(self.width) for _ in range(self.blocks)])

    def trained(self, wrap, device: str):
        """A program that trains what ``wrap(model, mesh)`` makes."""

        def program(mesh):
            with taeda.device(device):
                model, x = self.model(), taeda.zeros(self.rows, self.width)
            model = wrap(model, mesh["d"])
            optimizer = taeda.optim.AdamW(model.parameters())

            def step():
                optimizer.zero_grad()
                loss_fn(model(x), x).backward()
                optimizer.step()

            return step

        return program

    @staticmethod
    def data_parallel(model, mesh):
        """Gradients are averaged over the processes."""
        return DistributedDataParallel(model, device_mesh=mesh)

    @staticmethod
    def sharded(model, mesh):
        """Parameters are cut, and gathered for each pass."""
        for one in model:
            fully_shard(one, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    @staticmethod
    def tensor_parallel(model, mesh):
        """Each process has a part of the inner numbers."""
        for one in model:
            parallelize_module(one, mesh, {"1": ColwiseParallel(), "3": RowwiseParallel()})
        return model

    def pipeline(self, kind, microbatches: int, stages: int, sleeps: bool, device: str):
        """A program with ``stages`` stages a process."""

        def program(mesh):
            group, rank, size = mesh.get_group("pp"), mesh.get_local_rank("pp"), mesh.size()
            with taeda.device(device):
                parts = [Sleeper(0.02 / stages, 0.04 / stages) if sleeps else self.model() for _ in range(stages)]
                x = taeda.zeros(8, 4) if sleeps else taeda.zeros(self.rows, self.width)
            made = [
                PipelineStage(part, rank + i * size, stages * size, device, group=group) for i, part in enumerate(parts)
            ]
            schedule = kind(made if stages > 1 else made[0], microbatches, loss_fn=loss_fn)
            optimizer = taeda.optim.AdamW([p for part in parts for p in part.parameters()])

            def step():
                optimizer.zero_grad()
                schedule.step(*([x] if rank == 0 else []), target=x if rank == size - 1 else None)
                optimizer.step()

            return step

        return program


def measured(step, count: int, clock) -> list[float]:
    """Seconds of steps, each from a start in common to the end of the last process."""
    times = []
    for _ in range(count):
        dist.barrier()
        start = clock()
        step()
        if clock is time.perf_counter:
            dist.barrier()
        times.append(clock() - start)
    return times


def in_turn(step, o: argparse.Namespace, count: int, rows: int) -> tuple[float, Device]:
    """Seconds of a step, and what the device does meanwhile."""
    best, most, clock = (statistics.median, statistics.median, time.process_time) if o.processor_time else (
        min, max, time.perf_counter
    )  # fmt: skip
    times, devices = [], []
    measured(step, 2, clock)
    for _ in range(ROUNDS):
        times += measured(step, -(-count // ROUNDS), clock)
        dist.barrier()
        devices.append(measure_device((rows, o.width, 4 * o.width), 4 * rows * 4 * o.width, 2, clock))
    rate, bandwidth, overhead = zip(*((d.flops, d.bandwidth, d.overhead) for d in devices), strict=True)
    return best(times), replace(devices[0], flops=most(rate), bandwidth=most(bandwidth), overhead=best(overhead))


def row(name: str, program, dim: str, network: Network, o: argparse.Namespace, count: int, microbatches: int) -> None:
    """Run a program and simulate it."""
    size, rows = dist.get_world_size(), o.rows // microbatches
    step = program("cpu")(dist.init_device_mesh("cpu", (size,), mesh_dim_names=(dim,)))
    took, device = in_turn(step, o, count, rows)
    found = simulate(program("meta"), {dim: size}, network, device)
    expected = found.seconds
    if o.processor_time:
        total = taeda.tensor(took)
        dist.all_reduce(total, dist.ReduceOp.AVG)
        took, expected = total.item(), sum(s.end - s.start for s in found.spans) / found.stages
    if dist.get_rank() == 0:
        print(
            f"{name:34s} run {took * 1e3:8.2f} ms  simulated {expected * 1e3:8.2f} ms  {expected / took - 1:+.1%}",
            flush=True,
        )


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--only", choices=("sleep", "compute"))
    o = parser.parse_args()
    dist.init_process_group()
    programs = Programs(o.width, o.blocks, o.rows)
    network = measure_network(repeat=20, clock=time.process_time if o.processor_time else time.perf_counter)
    if dist.get_rank() == 0:
        print(f"{network.inside}, messages {network.messages}", flush=True)
    schedules = ((ScheduleGPipe, 4, 1), (Schedule1F1B, 8, 1), (ScheduleInterleaved1F1B, 4, 2))
    for sleeps in (True, False):
        if o.only == ("compute" if sleeps else "sleep"):
            continue
        for kind, m, stages in schedules:
            name = f"{kind.__name__}, {m} microbatches{', asleep' if sleeps else ''}"
            overlapping = replace(network, overlaps=sleeps)
            row(name, lambda where: programs.pipeline(kind, m, stages, sleeps, where), "pp", overlapping, o,  # noqa: B023
                5 if sleeps else o.steps, m)  # fmt: skip
    if o.only != "sleep":
        for wrap in (programs.data_parallel, programs.sharded, programs.tensor_parallel):
            row(wrap.__name__, lambda where: programs.trained(wrap, where), "d", network, o, o.steps, 1)  # noqa: B023
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

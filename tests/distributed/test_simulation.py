"""Simulated steps: what can be said by hand of time, memory and traffic; the files; and two real processes."""

import json
import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest

import taeda
import taeda.distributed as dist
from taeda import nn
from taeda.distributed import simulate
from taeda.distributed.fsdp import fully_shard
from taeda.distributed.pipelining import Schedule1F1B
from taeda.distributed.simulation import (
    Device,
    Layer,
    Link,
    Network,
    Step,
    Traffic,
    measure,
    measure_device,
    record,
    spend,
)
from taeda.distributed.simulation.layers import _Counting
from taeda.distributed.simulation.network import OpCost
from taeda.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from taeda.nn.parallel import DistributedDataParallel

from .launch import outputs
from .sleepers import NAMES, PIPELINES, pipeline

DEVICE = Device(1e12, 1e11, 1e9)
FREE = Network(Link(math.inf, 0.0))


def _layer(width=64, rows=32, **kwargs):
    with taeda.device("meta"):
        return Layer(nn.Linear(width, width), (taeda.zeros(rows, width),), **kwargs)


def _timed(forward=1.0, backward=2.0, **kwargs):
    return _layer(seconds=(forward, backward), **kwargs)


def _end_of_passes(simulation):
    return max(s.end for s in simulation.spans if s.kind in ("forward", "backward", "send", "collective"))


def test_pipelines_wait_as_long_as_the_formulas_say():
    p, m = 4, 8
    for schedule in ("gpipe", "1f1b"):
        found = simulate(Step([_timed(count=p)], m, schedule), {"pp": p}, FREE, DEVICE)
        assert math.isclose(_end_of_passes(found), 3 * (m + p - 1))
    for v in (2, 4):
        found = simulate(Step([_timed(1 / v, 2 / v, count=v * p)], m, "interleaved", v), {"pp": p}, FREE, DEVICE)
        assert math.isclose(_end_of_passes(found), 3 * (m + (p - 1) / v))
    one = simulate(Step([_timed(count=p)], m), {"dp": 1}, FREE, DEVICE)
    assert math.isclose(_end_of_passes(one), 3 * m * p) and one.busy() > 0.999


def test_activations_are_those_that_wait():
    saved = 32 * 64 * 4  # of one layer: its output; and its stage's input
    for schedule, held in (("gpipe", [8] * 4), ("1f1b", [4, 3, 2, 1])):
        found = simulate(Step([_layer(count=8)], 8, schedule), {"pp": 4}, FREE, DEVICE)
        assert [m.activations for m in found.memory] == [h * saved * 3 for h in held]


def test_the_plan_counts_arithmetic_and_bytes():
    found = simulate(Step([_layer()]), {"dp": 1}, FREE, DEVICE)
    n, w = 32, 64
    product = 2 * n * w * w
    assert 3 * product <= found.flops <= 3.1 * product
    read_and_written = 4 * (n * w + w * w + w + n * w) / DEVICE.bandwidth
    first = next(s for s in found.spans if s.kind == "forward")
    assert math.isclose(first.end - first.start, max(read_and_written, product / DEVICE.flops))
    slow = simulate(Step([_layer()]), {"dp": 1}, FREE, replace(DEVICE, flops=1e6, efficiency=0.5))
    assert math.isclose(slow.utilization, 0.5, rel_tol=0.05)
    assert simulate(Step([_layer()]), {"dp": 1}, FREE, replace(DEVICE, overhead=1.0)).seconds > 3


@pytest.mark.parametrize("overlaps", [True, False])
def test_gradients_go_beside_the_backward_pass_or_after_it(overlaps):
    network = Network(Link(1e6, 1e-3), overlaps=overlaps)
    step = Step([_timed(count=4)])
    nbytes = 4 * (64 * 64 + 64)
    ring = 2 * nbytes * 3 / 4 / 1e6 + 2 * 3 * 1e-3
    tree = 2 * (nbytes / 1e6 + 2 * 1e-3)
    found = simulate(step, {"dp": 4}, network, DEVICE)
    exposed = min(ring, tree) * (1 if overlaps else 4)
    assert math.isclose(_end_of_passes(found), 12 + exposed, rel_tol=1e-6)
    assert found.traffic == [{"dp": 4 * 2 * nbytes * 3 / 4}]


def test_sharding_divides_memory():
    whole = simulate(Step([_layer(count=6)]), {"dp": 8}, FREE, DEVICE).memory[0]
    state = simulate(Step([_layer(count=6)], sharding="optimizer"), {"dp": 8}, FREE, DEVICE).memory[0]
    full = simulate(Step([_layer(count=6)], sharding="full"), {"dp": 8}, FREE, DEVICE)
    nbytes = 6 * 4 * (64 * 64 + 64)
    assert (whole.parameters, whole.gradients, whole.state) == (nbytes, nbytes, 2 * nbytes)
    assert (state.parameters, state.state) == (nbytes, nbytes / 4)
    assert (full.memory[0].parameters, full.memory[0].gradients, full.memory[0].state) == (
        nbytes / 8, nbytes / 8, nbytes / 4,
    )  # fmt: skip
    assert math.isclose(full.traffic[0]["dp"], 3 * nbytes * 7 / 8)
    again = simulate(Step([_layer(count=6, recompute=True)]), {"dp": 1}, FREE, DEVICE)
    assert again.flops == simulate(Step([_layer(count=6)]), {"dp": 1}, FREE, DEVICE).flops


def test_memory_is_that_of_the_plan_of_a_whole_step():
    def block():
        return nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))

    with taeda.device("meta"):
        model = nn.Sequential(*[block() for _ in range(4)])
        x = taeda.zeros(512, 64, requires_grad=True)
        layer = Layer(block(), (x,), count=4)
    optimizer = taeda.optim.Adam(model.parameters())

    def run():
        model(x).sum().backward()
        optimizer.step()

    run()
    model.zero_grad(set_to_none=False)
    planned = taeda.profiler.plan(run).peak_bytes
    found = simulate(Step([layer]), {"dp": 1}, FREE, DEVICE).memory[0].total
    assert math.isclose(found, planned, rel_tol=0.1), (found, planned)


def test_links_inside_and_between_machines():
    network = Network(Link(100.0, 0.0), Link(10.0, 1.0), size=4)
    assert network.seconds("all_gather", range(4), 400) == 3.0
    assert network.seconds("all_gather", [0, 4], 400) == 200 / 10 + 1
    assert network.seconds("all_gather", range(8), 400) == 350 / 40 + 1  # four links between the machines
    assert network.seconds("send", [0, 5], 400) == 41 and network.seconds("all_reduce", [3], 400) == 0
    with pytest.raises(ValueError, match="kind of collective"):
        network.seconds("shuffle", range(4), 400)
    layer = _timed(traffic=(Traffic("all_reduce", "tp", 1000), Traffic("all_gather", "tp", 400, True, True)))
    found = simulate(Step([layer]), {"dp": 2, "tp": 4}, network, DEVICE)
    forward = network.seconds("all_reduce", range(4), 1000)
    assert math.isclose(next(s for s in found.spans if s.kind == "backward").end, forward + 1 + 3)
    assert found.traffic[0]["tp"] == 1500 + 300


def test_files(tmp_path):
    found = simulate(Step([_timed(count=4)], 4), {"pp": 2, "dp": 2}, Network(Link(1e6, 1e-3)), DEVICE)
    trace = found.trace(tmp_path / "step.json")
    assert json.loads((tmp_path / "step.json").read_text()) == trace
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {e["pid"] for e in spans} == {0, 1} and {"0F0", "1B3", "optimizer"} <= {e["name"] for e in spans}
    for pid in (0, 1):
        for tid in (0, 1, 2):
            lane = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if (e["pid"], e["tid"]) == (pid, tid))
            assert all(a[1] <= b[0] + 1e-3 for a, b in pairwise(lane))
    root = ElementTree.fromstring(found.svg(tmp_path / "step.svg"))
    assert len(root.findall(".//{http://www.w3.org/2000/svg}title")) > 16
    assert "4 processes" in repr(found)


def test_what_does_not_go_together_is_refused():
    for step, mesh, message in (
        (Step([Layer(nn.Linear(2, 2), (taeda.ones(2, 2),))]), {"dp": 2}, "device meta"),
        (Step([_layer()], schedule="zero"), {"dp": 2}, "schedule"),
        (Step([_layer()], sharding="some"), {"dp": 2}, "sharding"),
        (Step([_layer()]), {"pp": 2}, "do not fill 2 stages"),
        (Step([_layer()], interleave=2), {"pp": 1}, "interleaved"),
        (Step([_layer(traffic=(Traffic("all_reduce", "tp", 1),))]), {"dp": 2}, "exchange along"),
    ):
        with pytest.raises(ValueError, match=message):
            simulate(step, mesh, FREE, DEVICE)
    mesh = SimpleNamespace(mesh_dim_names=("pp", "dp"), shape=(2, 3))  # as a DeviceMesh has them
    assert simulate(Step([_layer(count=2)]), mesh, FREE, DEVICE).processes == 6
    with pytest.raises(TypeError, match="dict of sizes"):
        simulate(Step([_layer()]), [2, 2], FREE, DEVICE)
    with pytest.raises(ValueError, match="expected a kind"):
        Traffic("shuffle", "tp", 1)
    assert not simulate(Step([_layer()]), {"dp": 1}, FREE, replace(DEVICE, memory=10.0)).fits


def test_published_runs_are_met(monkeypatch, capsys):
    import runpy
    import sys
    from pathlib import Path

    monkeypatch.setattr(sys, "argv", ["simulate.py"])
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "simulate.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    errors = [abs(int(line.rpartition("(")[2].partition("%")[0])) for line in lines[:3]]
    assert len(errors) == 3 and max(errors) <= 10
    table = [line for line in lines if " x " in line and line.strip()[0].isdigit() and "does" not in line]
    assert len(table) == 3 and "(does not fit)" in lines[-4]


# ---- programs -----------------------------------------------------------------------------------------------------------


def block(width=64):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


def trained(wrap):
    """A program that trains four layers after ``wrap(model, mesh)``."""

    def program(mesh):
        with taeda.device("meta"):
            model, x = nn.Sequential(*[block() for _ in range(4)]), taeda.zeros(512, 64)
            model = wrap(model, mesh)
        optimizer = taeda.optim.Adam(model.parameters())

        def step():
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()

        return step

    return program


def sharded(model, mesh):
    for one in model:
        fully_shard(one, mesh=mesh["dp"])
    return fully_shard(model, mesh=mesh["dp"])


def tensor_parallel(model, mesh):
    for one in model:
        parallelize_module(one, mesh["tp"], {"1": ColwiseParallel(), "3": RowwiseParallel()})
    return model


def data_parallel(model, mesh):
    return DistributedDataParallel(model, device_mesh=mesh["dp"], bucket_cap_mb=0.1)


def test_pipelines_of_programs_wait_as_the_formulas_say():
    p, fast = 4, replace(DEVICE, bandwidth=1e15)
    for kind, m, v in PIPELINES:
        found = simulate(pipeline(kind, m, v, 1.0, "meta"), {"pp": p}, FREE, fast)
        assert math.isclose(found.seconds, 3 * (m + (p - 1) / v), rel_tol=1e-6)
        assert len(found.memory) == len(found.traffic) == p
    slow = Network(Link(1e9, 0.1))
    late = simulate(pipeline(Schedule1F1B, 8, 1, 1.0, "meta"), {"pp": p}, slow, fast)
    assert math.isclose(
        late.seconds, simulate(Step([_timed(count=p)], 8), {"pp": p}, slow, DEVICE).seconds, rel_tol=1e-3
    )
    assert late.traffic[1]["pp"] == 8 * 2 * 16


def test_a_program_takes_what_its_description_says():
    network = Network(Link(1e9, 1e-5))
    with taeda.device("meta"):
        layer = Layer(block(), (taeda.zeros(512, 64, requires_grad=True),), count=4)
    described = simulate(Step([layer]), {"dp": 4}, network, DEVICE)
    found = simulate(trained(data_parallel), {"dp": 4}, network, DEVICE)
    assert math.isclose(found.seconds, described.seconds, rel_tol=0.15), (found, described)
    assert math.isclose(found.peak_bytes, described.peak_bytes, rel_tol=0.15)
    assert (found.memory[0].parameters, found.memory[0].state) == (
        described.memory[0].parameters,
        described.memory[0].state + 4 * 4 * 6,
    )  # fmt: skip - Adam counts steps
    assert math.isclose(found.traffic[0]["dp"], described.traffic[0]["dp"])
    assert math.isclose(found.flops, described.flops, rel_tol=0.01)
    alone = simulate(trained(data_parallel), {"dp": 4}, replace(network, overlaps=False), DEVICE)
    assert alone.seconds > found.seconds and {s.kind for s in found.spans} >= {"forward", "backward", "optimizer"}


def test_programs_that_are_sharded():
    network, nbytes = Network(Link(1e9, 1e-5)), 4 * 4 * (2 * 64 + 64 * 256 * 2 + 256 + 64)
    whole = simulate(trained(data_parallel), {"dp": 8, "tp": 1}, network, DEVICE).memory[0]
    full = simulate(trained(sharded), {"dp": 8}, network, DEVICE)
    assert full.memory[0].parameters == nbytes / 8 and whole.parameters == nbytes
    assert math.isclose(full.traffic[0]["dp"], 3 * nbytes * 7 / 8)
    cut = simulate(trained(tensor_parallel), {"dp": 1, "tp": 4}, network, DEVICE)
    assert cut.memory[0].parameters < 0.3 * whole.parameters and list(cut.traffic[0]) == ["tp"]
    many = simulate(trained(data_parallel), {"dp": 16384}, network, DEVICE)
    assert (
        many.processes == 16384 and many.stages == 1 and math.isclose(many.traffic[0]["dp"], 2 * nbytes, rel_tol=1e-3)
    )


def test_a_programs_own_python_counts_where_the_host_does_not_run_ahead(monkeypatch):
    now = 0.0

    def slow():
        nonlocal now
        now += 1.0

    def program(mesh):
        model, x = nn.Linear(4, 4, device="meta"), taeda.zeros(2, 4, device="meta")

        def step():
            slow()
            dist.all_reduce(model(x))
            slow()

        return step

    monkeypatch.setattr(record, "time", SimpleNamespace(thread_time=lambda: now))
    ahead = simulate(program, {"dp": 2}, FREE, DEVICE)
    beside = simulate(program, {"dp": 2}, FREE, replace(DEVICE, host=10.0))
    assert math.isclose(beside.seconds, ahead.seconds + 20, rel_tol=1e-9) and beside.flops == ahead.flops
    assert beside.memory == ahead.memory and beside.traffic == ahead.traffic


def test_what_an_op_changes_is_read_and_written():
    x, y = (taeda.zeros(100, device="meta") for _ in range(2))
    with _Counting() as ops:
        x.add_(y)
        x + y
        y.fill_(1.0)
    assert [op.nbytes for op in ops] == [1200, 1200, 800]


def _computes(seconds):
    """A program whose process ``i`` computes for ``seconds[i]``, and then takes part in a collective."""

    def program(mesh):
        x = taeda.zeros(4, device="meta")

        def step():
            spend(seconds[mesh.get_rank()])
            dist.all_reduce(x)

        return step

    return program


def test_processors_that_are_shared_take_turns():
    free = replace(DEVICE, bandwidth=math.inf)
    for processors, seconds, expected in (
        (math.inf, (3.0, 3.0), 3.0), (1, (3.0, 3.0), 6.0), (1.5, (3.0, 3.0), 4.0), (1, (1.0, 5.0), 6.0),
        (2, (1.0, 2.0, 3.0), 3.5), (2, (2.0, 2.0, 2.0, 2.0), 4.0),
    ):  # fmt: skip
        found = simulate(_computes(seconds), {"pp": len(seconds)}, FREE, replace(free, processors=processors))
        assert math.isclose(found.seconds, expected, rel_tol=1e-9), (processors, seconds)
    alone = simulate(_computes((3.0,) * 4), {"dp": 4}, FREE, replace(free, processors=2))  # one stands for all
    assert alone.stages == 1 and math.isclose(alone.seconds, 6.0)


def test_a_collective_takes_the_processor_of_those_that_compute():
    def program(mesh):
        x = taeda.zeros(250, device="meta")

        def step():
            spend(1.0)
            work = dist.all_reduce(x, async_op=True)
            spend(2.0)
            work.wait()

        return step

    free, slow = replace(DEVICE, bandwidth=math.inf), Network(Link(1000.0, 0.0))
    assert math.isclose(simulate(program, {"dp": 2}, slow, free).seconds, 3.0)
    alone = simulate(program, {"dp": 2}, replace(slow, overlaps=False), free)
    assert math.isclose(alone.seconds, 4.0)
    assert [(s.kind, s.start, s.end) for s in alone.spans] == [
        ("forward", 0.0, 1.0), ("collective", 1.0, 2.0), ("forward", 2.0, 4.0),
    ]  # fmt: skip


def test_ops_and_collectives_that_were_measured():
    ops = [OpCost(100, 10, "matmul"), OpCost(1, 100, "exp")]
    assert Device(10.0, 10.0).seconds(ops) == 20.0
    assert Device(10.0, 10.0, factors={"exp": 1.5}).seconds(ops) == 25.0
    network = Network(Link(10.0, 1.0), Link(1.0, 1.0), size=2, links={"all_gather": Link(20.0, 3.0)})
    assert network.seconds("all_gather", [0, 1], 40) == 20 / 20 + 3
    assert network.seconds("all_gather", [0, 2], 40) == 20 / 1 + 1  # the other machine is behind another link
    assert network.seconds("reduce_scatter", [0, 1], 40) == 20 / 10 + 1


def test_a_step_that_is_measured_takes_what_its_ops_took(monkeypatch):
    now = 0.0

    def clock():
        nonlocal now
        now += 1.0  # each op takes a second, and so does each look at the clock between
        return now

    monkeypatch.setattr(measure, "time", SimpleNamespace(**dict.fromkeys(
        ("thread_time", "perf_counter", "process_time"), clock)))  # fmt: skip
    x, y = taeda.ones(8, 8), taeda.ones(64)

    def step():
        x @ x
        y.exp()
        y.exp()

    device = measure_device(step, repeat=3)
    with _Counting() as ops:
        step()
    assert [op.name for op in ops] == ["matmul", "exp", "exp"]
    assert math.isclose(device.seconds(ops), 3.0) and device.flops == 2 * 8**3 and device.host == 1.0
    with pytest.raises(ValueError, match="a step with arithmetic"):
        measure_device(lambda: None)


MEASURED = """
from taeda.distributed.simulation import measure_device, measure_network
network, device = measure_network(nbytes=1 << 16, repeat=2), measure_device(repeat=2)
assert set(network.links) >= {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send"}
assert not network.overlaps and {"linear", "matmul", "gelu", "layer_norm"} <= set(device.factors)
assert device.flops > 0 and 0 < device.processors < float("inf")
found = [None] * dist.get_world_size()
dist.all_gather_object(found, (repr(network), repr(device)))
print(len(set(found)))
"""


def test_what_processes_measure_is_the_same_at_all_of_them():
    assert [out.split() for out in outputs(MEASURED, 2)] == [["1"], ["1"]]


def test_programs_that_cannot_be_simulated():
    def lonely(mesh):
        x = taeda.zeros(4, device="meta")
        return lambda: dist.send(x, 1)

    def deaf(mesh):
        x = taeda.zeros(4)  # its values have to come
        return lambda: dist.recv(x, 1 - mesh.get_rank())

    with pytest.raises(RuntimeError, match="of which 1 is not simulated"):
        simulate(lonely, {"dp": 2}, FREE, DEVICE)
    with pytest.raises(RuntimeError, match="wait for each other: rank 0 waits for a message"):
        simulate(deaf, {"pp": 2}, FREE, DEVICE)
    with pytest.raises(TypeError, match="give the function of a step"):
        simulate(lambda mesh: None, {"dp": 2}, FREE, DEVICE)
    with pytest.raises(ZeroDivisionError):
        simulate(lambda mesh: lambda: 1 / 0, {"pp": 2}, FREE, DEVICE)
    with pytest.raises(ValueError, match="ranks from 0 to 1"):
        simulate(lonely, {"dp": 2}, FREE, DEVICE, ranks=[2])
    assert not dist.is_initialized()


SLEEPERS = """
import json, time
from tests.distributed.sleepers import PIPELINES, pipeline
mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("pp",))
for kind, m, v in PIPELINES:
    step, times = pipeline(kind, m, v, 0.01, "cpu")(mesh), []
    for _ in range(2):
        dist.barrier()
        start = time.perf_counter()
        step()
        dist.barrier()
        times.append(time.perf_counter() - start)
    print(json.dumps(min(times)))
"""


@pytest.mark.parametrize("size", [2, 4])
def test_real_processes_are_not_faster(size):
    """Layers that sleep need no processor, so the processes wait for each other as on machines of their own.

    How much slower a busy machine is, is not asked here: `bench/simulated.py` tells.
    """
    runs = [json.loads(line) for line in outputs(SLEEPERS, size)[0].splitlines()]
    assert len(runs) == 3
    for (kind, m, v), took in zip(PIPELINES, runs, strict=True):
        found = simulate(pipeline(kind, m, v, 0.01, "meta"), {"pp": size}, Network(Link(1e9, 2e-4)), DEVICE)
        described = Step([_timed(0.01 / v, 0.02 / v, count=v * size)], m, NAMES[kind], v)
        by_hand = simulate(described, {"pp": size}, Network(Link(1e9, 2e-4)), DEVICE)
        assert math.isclose(found.seconds, by_hand.seconds, rel_tol=0.02)
        assert 0 < found.seconds < 1.05 * took, (kind, took, found.seconds)

"""Profiles: what is seen, how it is nested, what the tables and files say, and that nothing remains afterwards."""

import gzip
import json
import os
import threading

import pytest

import taeda
from taeda import _core, nn
from taeda.kernels import build
from taeda.nn import functional as F
from taeda.profiler import (
    Floors,
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from taeda.utils.data._utils import iterating


def names(prof):
    return [event.name for event in prof.events()]


def named(prof, name):
    found = [event for event in prof.events() if event.name == name]
    assert found, f"no {name} among {sorted(set(names(prof)))}"
    return found[0]


@pytest.fixture
def net():
    taeda.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))


def train(net, optimizer, x, y):
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def data():
    return taeda.randn(4, 3, 8, 8), taeda.randint(10, (4,))


def test_ops_nodes_kernels_and_ranges_are_nested(net):
    x, y = data()
    optimizer = taeda.optim.AdamW(net.parameters())
    with profile() as prof, record_function("whole step"):
        train(net, optimizer, x, y)
    whole = named(prof, "whole step")
    assert whole.is_user_annotation and whole.cpu_parent is None
    for name in ("aten::conv2d", "aten::relu", "aten::linear", "ConvolutionBackward0", "AddmmBackward0"):
        event = named(prof, name)
        above = event
        while above.cpu_parent is not None:
            assert above in above.cpu_parent.cpu_children
            assert above.cpu_parent.time_range.start <= above.time_range.start
            assert above.time_range.end <= above.cpu_parent.time_range.end
            above = above.cpu_parent
        assert above is whole
    assert named(prof, "aten::_conv_weight").cpu_parent.name == "ConvolutionBackward0"
    assert named(prof, "ConvolutionBackward0").scope == 1
    assert "torch::autograd::AccumulateGrad" in names(prof)
    assert named(prof, "Optimizer.step#AdamW.step").cpu_parent is whole
    update = named(prof, "aten::update_all")
    assert update.cpu_parent.name == "Optimizer.step#AdamW.step"
    assert any("Adam" in run.name for run in update.kernels)
    assert named(prof, "aten::relu").kernels  # a kernel has the name of the first op with its code
    assert whole.self_cpu_time_total == pytest.approx(
        whole.cpu_time_total - sum(child.cpu_time_total for child in whole.cpu_children)
    )
    assert sum(event.self_cpu_time_total for event in prof.events()) == pytest.approx(
        sum(event.cpu_time_total for event in prof.events() if event.cpu_parent is None)
    )


def test_fetches_of_a_data_loader_are_ranges():
    data = taeda.utils.data.TensorDataset(taeda.arange(6.0))
    for workers, kind in ((0, "_SingleProcessDataLoaderIter"), (1, "_MultiProcessingDataLoaderIter")):
        loader = taeda.utils.data.DataLoader(data, batch_size=3, num_workers=workers)
        with profile() as prof:
            for (batch,) in loader:
                batch.exp()
        fetches = [e for e in prof.events() if e.name == f"enumerate(DataLoader)#{kind}.__next__"]
        assert len(fetches) == 3  # the third finds the end, as in PyTorch
        assert named(prof, "aten::exp").cpu_parent is None
        assert iterating.record_fetch is None


def test_a_profile_changes_no_result_and_takes_the_same_way(net):
    x, y = data()
    runs = []
    for watched in (False, True):
        taeda.manual_seed(3)
        copy = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)
        )
        optimizer = taeda.optim.AdamW(copy.parameters())
        if watched:
            with profile(
                record_shapes=True, profile_memory=True, with_flops=True, with_modules=True, with_stack=True
            ) as prof:
                losses = [train(copy, optimizer, x, y) for _ in range(3)]
        else:
            losses = [train(copy, optimizer, x, y) for _ in range(3)]
        runs.append([t.detach().numpy().tobytes() for t in (*losses, *copy.parameters())])
    assert runs[0] == runs[1]
    assert "aten::sqrt" not in names(prof)  # the optimiser's fused kernel ran, not its ops


def test_nothing_remains_after_a_profile():
    a = taeda.randn(8)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), profile(with_modules=True):
            nn.Linear(8, 8)(a)
            raise ZeroDivisionError
    assert not _core.is_mode_active() and _core.mode_stack() == []
    import ctypes

    assert all(ctypes.c_int64.from_address(probe).value == 0 for _, probe in build._probes)
    assert threading.getprofile() is None
    with profile() as prof:
        pass
    taeda.exp(a)
    assert len(prof.events()) == 0


def test_an_op_that_fails_closes_its_event():
    with profile() as prof:
        with pytest.raises(RuntimeError):
            taeda.randn(2, 3) @ taeda.randn(2, 3)
        taeda.ones(2).exp()
    failed, after = named(prof, "aten::matmul"), named(prof, "aten::exp")
    assert after.cpu_parent is None and after.time_range.start >= failed.time_range.end


def test_modules_have_ranges(net):
    with profile(with_modules=True) as prof:
        net(data()[0])
        net(data()[0])
    assert [name for name in names(prof) if "Sequential" in name] == ["nn.Module: Sequential_0"] * 2
    assert named(prof, "nn.Module: Conv2d_0").cpu_parent.name == "nn.Module: Sequential_0"
    assert named(prof, "aten::conv2d").cpu_parent.name == "nn.Module: Conv2d_0"


def test_shapes_and_groups():
    with profile(record_shapes=True) as prof:
        for n in (4, 4, 8):
            taeda.ones(n, 3) @ taeda.ones(3, n)
        taeda.cat([taeda.ones(2), taeda.ones(5)])
    rows = {
        str(row.input_shapes): row.count for row in prof.key_averages(group_by_input_shape=True) if "matmul" in row.key
    }
    assert rows == {"[[4, 3], [3, 4]]": 2, "[[8, 3], [3, 8]]": 1}
    assert named(prof, "aten::cat").structured_input_shapes[0] == [[2], [5]]
    assert {row.key: row.count for row in prof.key_averages()}["aten::matmul"] == 3
    assert "Input Shapes" in prof.key_averages(group_by_input_shape=True).table()
    assert "Input Shapes" not in prof.key_averages().table()


def test_products_nest_as_in_pytorch():
    """Below matmul and linear is the product by PyTorch's name, which took the time; below a node it is alone."""
    x, w = taeda.ones(4, 3), taeda.ones(5, 3, requires_grad=True)
    with profile(record_shapes=True) as prof:
        for a, b in ((x, x.t()), (x, x[0]), (x[0], x[1]), (x[0], x.t()), (taeda.ones(2, 4, 3), x.t())):
            a @ b
        taeda.ones(2, 4, 3) @ taeda.ones(2, 3, 4)
        taeda.mm(x, x.t())
        F.linear(x, w)
        F.linear(x, w, taeda.ones(5, requires_grad=True)).sum().backward()
    products = [e for e in prof.events() if e.name.split("::")[-1] in ("mm", "mv", "dot", "bmm", "addmm")]
    found = [(e.cpu_parent.name if e.cpu_parent else None, e.name) for e in products]
    inner = ["mm", "mv", "dot", "mm", "mm", "bmm"]
    assert found == [
        *(("aten::matmul", f"aten::{name}") for name in inner), (None, "aten::mm"), ("aten::linear", "aten::mm"),
        ("aten::linear", "aten::addmm"), ("AddmmBackward0", "aten::mm"),
    ]  # fmt: skip
    assert products[0].kernels and products[0].input_shapes == [[4, 3], [3, 4]]
    assert products[0].cpu_parent.self_cpu_time_total == 0 < products[0].self_cpu_time_total
    assert len({e.id for e in prof.events()}) == len(prof.events())


def test_flops():
    x, w = taeda.randn(2, 4, 8, 8), taeda.randn(6, 2, 3, 3)
    with profile(with_flops=True) as prof:
        taeda.randn(3, 4) @ taeda.randn(4, 5)
        F.conv2d(x, w, groups=2)
        F.conv_transpose2d(x, taeda.randn(4, 3, 2, 2))
        taeda.ones(7) + 1
    assert named(prof, "aten::mm").flops == 2 * 3 * 4 * 5
    assert named(prof, "aten::conv2d").flops == 2 * (2 * 6 * 6 * 6) * (2 * 3 * 3)
    assert named(prof, "aten::conv_transpose2d").flops == 2 * (2 * 4 * 8 * 8) * (3 * 2 * 2)
    assert named(prof, "aten::add").flops == 7
    assert prof.total_average().flops >= 2 * 3 * 4 * 5
    assert "FLOPs" in prof.key_averages().table()


def test_memory():
    with profile(profile_memory=True) as prof, record_function("range"):
        kept = taeda.ones(1 << 18).exp()
    assert named(prof, "aten::exp").cpu_memory_usage == kept.nbytes
    assert named(prof, "range").cpu_memory_usage == kept.nbytes
    table = prof.key_averages().table(sort_by="self_cpu_memory_usage")
    assert "Self CPU Mem" in table and "1.00 MB" in table


def test_stacks(tmp_path):
    def an_inner_function():
        return taeda.randn(200, 200) @ taeda.randn(200, 200)

    steps = schedule(wait=0, warmup=1, active=1)
    with profile(with_stack=True, schedule=steps) as prof:
        prof.step()
        with record_function("range"):
            an_inner_function()
    assert not any("profiler.py" in line and "test_" not in line for line in named(prof, "ProfilerStep#1").stack)
    assert "test_stacks" in named(prof, "range").stack[0]
    event = named(prof, "aten::matmul")
    assert "an_inner_function" in event.stack[0] and "test_profiler.py" in event.stack[0]
    assert prof.key_averages(group_by_stack_n=2)[0].stack == prof.events()[0].stack[:2]
    prof.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    line = next(line for line in (tmp_path / "stacks").read_text().splitlines() if "an_inner_function" in line)
    assert int(line.rsplit(" ", 1)[1]) > 0
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(tmp_path / "stacks"), "count")


def test_table():
    with profile() as prof:
        for _ in range(3):
            taeda.ones(64, 64) @ taeda.ones(64, 64)
    table = prof.key_averages().table(sort_by="count", row_limit=1, header="Mine", time_unit="ms")
    lines = table.splitlines()
    assert lines[0] == "Mine" and "Self CPU time total" in lines[-1] and lines[-1].endswith("ms")
    assert lines[2].split() == "Name Self CPU % Self CPU CPU total % CPU total CPU time avg # of Calls".split()
    assert len(lines) == 7
    floors = Floors(1, ((1 << 16, 1e9),), 1e9)
    wide = prof.key_averages().table(floors=floors)
    assert "GB/s" in wide and "% of floor" in wide
    row = next(row for row in prof.key_averages() if row.key == "aten::mm")
    assert row.moved == 3 * 3 * 64 * 64 * 4
    assert prof.key_averages().table(sort_by="self_cuda_time_total")
    with pytest.raises(AttributeError, match="sort_by"):
        prof.key_averages().table(sort_by="beauty")
    with pytest.raises(ValueError, match="time_unit"):
        prof.key_averages().table(time_unit="h")
    kernels = prof.kernel_averages()
    assert sum(k.runs for k in kernels if k.name.startswith("matmul")) >= 1
    assert "Kernel" in kernels.table(floors=floors)


def test_floors_are_the_longer_of_two_times():
    floors = Floors(1, ((100, 10.0), (10000, 1.0)), 50.0)
    assert floors.bandwidth(50) == 10.0 and floors.bandwidth(10**9) == 1.0
    assert floors.bandwidth(1000) == pytest.approx(5.5)
    assert floors.seconds(100, 100) == 10.0
    assert floors.seconds(100, 1000) == 20.0
    reading = Floors(1, ((100, 10.0),), 50.0, ((100, 30.0),))
    assert reading.bandwidth(100, 0.0) == 30.0 and reading.bandwidth(100, 0.25) == 20.0
    assert reading.bandwidth(100) == reading.bandwidth(100, 1.0) == 10.0
    assert reading.seconds(300, 0, written=0) == 10.0


def test_what_an_op_writes_is_told_apart():
    x = taeda.randn(1000)
    with profile() as prof:
        x.sum()
        x.exp()
        x.add_(1.0)
    assert [(e.moved, e.written) for e in prof.events()] == [(4004, 4), (8000, 4000), (8000, 4000)]


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_chrome_trace(tmp_path, net, suffix):
    x, y = data()
    optimizer = taeda.optim.SGD(net.parameters(), 0.1)
    with profile(record_shapes=True, profile_memory=True) as prof:
        train(net, optimizer, x, y)
    prof.add_metadata("who", "test")
    path = tmp_path / f"trace{suffix}"
    prof.export_chrome_trace(str(path))
    opener = gzip.open if suffix.endswith("gz") else open
    with opener(path, "rt") as file:
        content = json.load(file)
    assert content["who"] == "test"
    entries = content["traceEvents"]
    by_name = {entry["name"]: entry for entry in entries}
    op = by_name["aten::linear"]
    assert op["ph"] == "X" and op["cat"] == "cpu_op" and op["args"]["Input Dims"][0] == [4, 512]
    kernels = [e for e in entries if e.get("cat") == "kernel"]
    conv = by_name["aten::conv2d"]
    assert any(conv["ts"] <= k["ts"] and k["ts"] + k["dur"] <= conv["ts"] + conv["dur"] + 0.01 for k in kernels)
    starts = {e["id"] for e in entries if e["ph"] == "s"}
    ends = {e["id"] for e in entries if e["ph"] == "f"}
    assert starts and starts == ends
    assert by_name["ConvolutionBackward0"]["args"]["Sequence number"] == conv["args"]["Sequence number"]
    assert any(e["name"] == "[memory]" for e in entries)


def test_threads_that_start_inside_are_seen():
    def work():
        for _ in range(3):
            taeda.ones(16).exp()

    with profile() as prof:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        taeda.ones(16).tanh()
    exp = [event for event in prof.events() if event.name == "aten::exp"]
    assert len(exp) == 3
    assert exp[0].thread != named(prof, "aten::tanh").thread


def test_a_thread_that_outlives_the_profile_goes_on():
    begin, done, results = threading.Event(), threading.Event(), []

    def work():
        taeda.ones(4).exp()
        begin.set()
        done.wait(120)
        results.append(taeda.ones(4).sum().item())

    with profile():
        thread = threading.Thread(target=work)
        thread.start()
        begin.wait(120)
    done.set()
    thread.join()
    assert results == [4.0]


def test_large_kernels_on_the_pool_belong_to_their_op():
    taeda.set_num_threads(3)
    a = taeda.randn(2_000_000)
    with profile() as prof:
        a.sinc()  # a kernel that no other test has compiled by another name
    runs = [run for run in prof.kernels() if run.name.startswith("sinc")]
    assert runs and sum(run.pieces for run in runs) == -(-2_000_000 // 16384)
    mine = [run for run in runs if run.helps is None]
    assert all(run.event is named(prof, "aten::sinc") for run in mine)
    assert sum(k.moved for k in mine) == 2 * a.nbytes


def test_modes_inside_are_seen_as_what_they_compute():
    a, b = taeda.randn(4, 4), taeda.randn(4, 4)
    with profile() as prof, taeda.autocast("cpu"):
        c = a @ b
    assert c.dtype == taeda.bfloat16 and "aten::matmul" in names(prof)
    with taeda.autocast("cpu"), profile() as prof:
        c = a @ b
    assert c.dtype == taeda.bfloat16 and "aten::matmul" in names(prof)
    with profile() as prof:
        taeda.vmap(lambda x: x.exp().sum())(a)
    assert "aten::exp" in names(prof)


def test_record_function():
    @record_function("decorated")
    def function():
        return taeda.ones(2)

    function()
    with record_function("nobody listens"):
        pass
    with profile() as prof:
        function()
        with record_function("outer", "7"), record_function("inner"):
            pass
    assert names(prof)[0] == "decorated"
    assert named(prof, "inner").cpu_parent.name == "outer(7)"


def test_schedule_is_pytorchs():
    torch = pytest.importorskip("torch")
    for options in (
        {"wait": 1, "warmup": 1, "active": 2, "repeat": 2},
        {"wait": 2, "warmup": 1, "active": 1, "skip_first": 3},
        {"wait": 3, "warmup": 1, "active": 2, "repeat": 1, "skip_first": 2, "skip_first_wait": 1},
    ):
        ours, theirs = schedule(**options), torch.profiler.schedule(**options)
        for step in range(30):
            assert ours(step).name == theirs(step).name, (options, step)
    with pytest.raises(AssertionError, match="active=0"):
        schedule(wait=0, warmup=1, active=0)
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=0, warmup=0, active=1)


def test_steps():
    seen = []

    def ready(prof):
        seen.append((prof.step_num, [name for name in names(prof) if name.startswith("ProfilerStep#")]))

    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as prof:
        for _ in range(10):
            taeda.ones(4).exp()
            prof.step()
    assert seen == [(4, ["ProfilerStep#2", "ProfilerStep#3"]), (8, ["ProfilerStep#6", "ProfilerStep#7"])]
    assert names(prof).count("aten::exp") == 2
    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=3), acc_events=True) as prof:
        for _ in range(6):
            taeda.ones(4).exp()
            prof.step()
    assert names(prof).count("aten::exp") == 3
    once = []
    with profile(on_trace_ready=once.append) as prof:
        for _ in range(3):
            taeda.ones(4).exp()
            prof.step()
    assert once == [prof] and names(prof).count("aten::exp") == 3
    assert schedule(wait=1, warmup=1, active=1)(2) is ProfilerAction.RECORD_AND_SAVE


def test_tensorboard_files(tmp_path):
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"), "me", use_gzip=True)):
        taeda.ones(3) + 1
    (file,) = (tmp_path / "log").iterdir()
    assert file.name.startswith("me.") and file.name.endswith(".pt.trace.json.gz")


def test_refusals():
    assert supported_activities() == {ProfilerActivity.CPU}
    with profile(), pytest.raises(RuntimeError, match="already enabled"):
        profile().start()
    profile(experimental_config=object())  # it is for PyTorch's tracing library
    with pytest.raises(AssertionError):
        profile(activities=[])
    with pytest.raises(TypeError, match="activities"):
        profile(activities=["cpu"])
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(use_cuda=True)
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    with pytest.raises(AssertionError, match="stopped"):
        profile().events()
    with pytest.raises(NotImplementedError, match="memory_use"):
        profile().export_memory_timeline("x")


def test_the_older_interface():
    older = taeda.autograd.profiler
    with older.profile(record_shapes=True) as prof, older.record_function("mine"):
        taeda.ones(3, 3) @ taeda.ones(3, 3)
    assert "mine" in str(prof) and "aten::matmul" in prof.table(sort_by="cpu_time_total")
    assert prof.self_cpu_time_total > 0
    with taeda.autograd.profiler.profile(enabled=False):
        pass
    with pytest.raises(RuntimeError, match="NVIDIA"), taeda.autograd.profiler.emit_nvtx():
        pass
    with taeda.autograd.profiler.emit_nvtx(enabled=False):
        pass
    assert taeda.autograd.profiler_util.EventList is type(prof.function_events)


def test_many_events_take_little_room():
    a = taeda.ones(4)
    with profile() as prof:
        for _ in range(20_000):
            a.exp()
    assert len(prof.events()) == 20_000
    assert sum(run.event is not None for run in prof.kernels()) == 20_000


FORKS = """
import os, signal, threading, time
import taeda
from taeda._core.profile import _hold
from taeda.profiler import profile
thread = threading.Thread(target=_hold, args=(1_000_000_000,))
with profile():
    thread.start()
    time.sleep(0.3)
    child = os.fork()
    if child == 0:
        signal.alarm(200)
        taeda.ones(3).exp()
        os._exit(0)
    print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_forks_while_a_thread_notes_a_kernel(run_python):
    assert run_python(FORKS).split() == ["0"]

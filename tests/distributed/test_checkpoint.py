"""Checkpoints: written by some processes and read by others, whole whenever a process is killed, and without code."""

import io
import json
import os
import signal
import time
from dataclasses import replace

import pytest

import taeda
from taeda.distributed import checkpoint
from taeda.distributed.checkpoint.planner import LoadItemType, SavePlanner
from taeda.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult

from .forked import Forked
from .launch import meeting_place, outputs

HEAD = """
import taeda.distributed.checkpoint as dcp
from taeda import nn
from taeda.distributed.checkpoint.state_dict import *
from taeda.distributed.device_mesh import init_device_mesh
from taeda.distributed.fsdp import fully_shard
from taeda.distributed.tensor import DTensor
from tests.distributed.gpt import GPT, tensor_parallel, train
n = dist.get_world_size()
def mean(loss):
    t = loss.clone()
    dist.all_reduce(t, dist.ReduceOp.AVG)
    return t.item()
def build(mesh=None, change=lambda model: model):
    model = change(GPT(1))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    model = fully_shard(model, mesh=mesh)
    return model, taeda.optim.AdamW(model.parameters(), 1e-2)
def state_of(model, adam):
    return dict(zip(("model", "optimizer"), get_state_dict(model, adam)))
"""

SAVE = """
taeda.manual_seed(1)
model, adam = build()
train(model, n, rank, rows=12, mean=mean, optimizer=adam)
state = {**state_of(model, adam), "epoch": 3, "names": ["a", None, 1.5]}
dcp.save(state, checkpoint_id=FOLDER)
future = dcp.async_save(state, checkpoint_id=FOLDER + "-later")
after = train(model, n, rank, rows=12, mean=mean, optimizer=adam)
future.result()
print(after)
"""

LOAD = """
taeda.manual_seed(100 + rank)
for folder in (FOLDER, FOLDER + "-later"):
    if n == 4:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        model, adam = build(mesh["dp"], lambda m: tensor_parallel(m, mesh["tp"]))
        parts, part = 2, rank // 2
    elif n == 1:
        model = GPT(1)
        adam = taeda.optim.AdamW(model.parameters(), 1e-2)
        parts, part = 1, 0
    else:
        model, adam = build()
        parts, part = n, rank
    state = {**state_of(model, adam), "epoch": 0, "names": None}
    dcp.load(state, checkpoint_id=folder)
    assert state["epoch"] == 3 and state["names"] == ["a", None, 1.5]
    set_state_dict(model, adam, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    print(train(model, parts, part, rows=12, mean=mean, optimizer=adam))
full = StateDictOptions(full_state_dict=True)
whole = get_model_state_dict(model, options=full), get_optimizer_state_dict(model, adam, options=full)
assert not any(isinstance(t, DTensor) for t in whole[0].values())
assert list(whole[0]) == list(GPT(1).state_dict()) and whole[1]["state"]["head.weight"]["exp_avg"].shape == (40, 64)
first = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
if n > 1:
    with taeda.no_grad():
        for p in model.parameters():
            p.zero_()
    given = whole if rank == 0 else ({}, {})
    set_state_dict(model, adam, model_state_dict=given[0], optim_state_dict=given[1], options=first)
    assert all(a.equal(whole[0][k]) for k, a in get_model_state_dict(model, options=full).items())
"""


def test_other_numbers_of_processes(tmp_path):
    """Two processes save, and go on; one, three, and a grid of four load, and go on in the same way."""
    where = f"FOLDER = {str(tmp_path / 'saved')!r}\n"
    (line,) = {out.strip() for out in outputs(where + HEAD + SAVE, 2)}
    expected = [x for pair in json.loads(line.replace("(", "[").replace(")", "]")) for x in pair]
    for world in (1, 3, 4):
        for out in outputs(where + HEAD + LOAD, world):
            lines = out.strip().splitlines()
            assert len(lines) == 2
            for line in lines:
                got = [x for pair in json.loads(line.replace("(", "[").replace(")", "]")) for x in pair]
                assert got == pytest.approx(expected, abs=1e-3), (world, got, expected)
    sizes = [sum(f.stat().st_size for f in (tmp_path / "saved").glob(f"*-{i}.safetensors")) for i in range(2)]
    assert min(sizes) > 0.8 * max(sizes)


WRITER = """
import taeda, taeda.distributed as dist, taeda.distributed.checkpoint as dcp
from taeda.distributed.device_mesh import init_device_mesh
from taeda.distributed.tensor import Shard, full, distribute_tensor
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
for step in range(10**6):
    t = full((256, 1024), float(step), device_mesh=mesh, placements=[Shard(0)])
    dcp.save({"t": t, "u": taeda.full((1000,), float(step)), "step": step}, checkpoint_id=sys.argv[1])
    print(step, flush=True)
"""


def _kill_while_saving(folder, delay):
    """Start two processes that save again and again, and kill both ``delay`` seconds after the third time."""
    where, (end, printed) = {**os.environ, **meeting_place(2)}, os.pipe()
    program = WRITER.replace("sys.argv[1]", repr(folder))
    with open(end) as lines:
        processes = [Forked(program, {**where, "RANK": str(rank)}, None if rank else printed) for rank in range(2)]
        os.close(printed)
        try:
            seen = [int(lines.readline()) for _ in range(3)]
            time.sleep(delay)
        finally:
            for p in processes:
                os.kill(p.pid, signal.SIGKILL)
        rest = lines.read()
    for p in processes:
        p.communicate(100)
    return max([*seen, *map(int, rest.split())])


def test_a_kill_leaves_a_whole_checkpoint(tmp_path):
    for i, delay in enumerate((0.0, 0.0037, 0.0113, 0.0171)):
        folder = str(tmp_path / str(i))
        last = _kill_while_saving(folder, delay)
        state = {"t": taeda.empty(256, 1024), "u": taeda.empty(1000), "step": 0}
        checkpoint.load(state, checkpoint_id=folder)
        assert last <= state["step"] <= last + 1
        assert state["t"].eq(state["step"]).all() and state["u"].eq(state["step"]).all()


def test_one_process(tmp_path):
    linear = taeda.nn.Linear(3, 2)
    state = {"m": linear, "x": {"y": [taeda.arange(3), taeda.zeros(0, 2)]}, "t": taeda.arange(6).reshape(2, 3).t()}
    metadata = checkpoint.save(state, checkpoint_id=tmp_path / "a")
    assert sorted(metadata.state_dict_metadata) == ["m.bias", "m.weight", "t", "x.y.0", "x.y.1"]
    other = {"m": taeda.nn.Linear(3, 2), "x": {"y": [taeda.empty(3, dtype=taeda.int64), taeda.empty(0, 2)]}, "t": None}
    checkpoint.load(other, checkpoint_id=tmp_path / "a")
    assert (
        other["m"].weight.equal(linear.weight)
        and other["t"].equal(state["t"])
        and other["x"]["y"][0].tolist() == [0, 1, 2]
    )
    with pytest.raises(checkpoint.CheckpointException, match="hold no objects"):
        checkpoint.save({"f": print}, checkpoint_id=tmp_path / "a")
    with pytest.raises(checkpoint.CheckpointException, match="Missing key"):
        checkpoint.load({"z": taeda.empty(3)}, checkpoint_id=tmp_path / "a")
    with pytest.raises(checkpoint.CheckpointException, match="Size mismatch"):
        checkpoint.load({"t": taeda.empty(3)}, checkpoint_id=tmp_path / "a")
    with pytest.raises(checkpoint.CheckpointException, match="overwrite"):
        checkpoint.save(state, storage_writer=checkpoint.FileSystemWriter(tmp_path / "a", overwrite=False))
    with pytest.raises(checkpoint.CheckpointException, match="no checkpoint"):
        checkpoint.load(other, checkpoint_id=tmp_path / "b")


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["tensors"]["t"]["chunks"][0].update(file="../a/x.safetensors"),
        lambda m: m["tensors"]["t"]["chunks"][0].update(offsets=[1]),
        lambda m: m["tensors"]["t"].update(size=[5]),
        lambda m: m["tensors"]["t"].update(dtype="object"),
        lambda m: m["tensors"]["t"]["chunks"].clear(),
        lambda m: m["tensors"]["t"]["chunks"][0].update(name="other"),
        lambda m: m.update(version=2),
        lambda m: m.clear(),
    ],
)
def test_damaged_metadata(tmp_path, change):
    checkpoint.save({"t": taeda.arange(4)}, checkpoint_id=tmp_path)
    path = tmp_path / "metadata.json"
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))
    with pytest.raises(checkpoint.CheckpointException):
        checkpoint.load({"t": taeda.empty(4, dtype=taeda.int64)}, checkpoint_id=tmp_path)


class Doubling(checkpoint.DefaultSavePlanner):
    """Writes twice the tensors, in float64, and text in capitals that is no JSON."""

    def create_local_plan(self):
        plan, items = super().create_local_plan(), []
        for item in plan.items:
            if item.tensor_data is not None:
                properties = replace(item.tensor_data.properties, dtype=taeda.float64)
                item = replace(item, tensor_data=replace(item.tensor_data, properties=properties))
            items.append(item)
        return replace(plan, items=items)

    def resolve_data(self, write_item):
        data = super().resolve_data(write_item)
        return 2 * data.double() if isinstance(data, taeda.Tensor) else io.BytesIO(b"\xff" + data.getvalue().upper())


class Reading(checkpoint.DefaultLoadPlanner):
    """Takes the text as it is."""

    def load_bytes(self, read_item, value):
        self.original_state_dict[read_item.dest_index.fqn] = value.getvalue()


def test_planners_of_a_program(tmp_path):
    state = {"t": taeda.arange(6.0).view(2, 3), "name": "abc"}
    metadata = checkpoint.save(state, checkpoint_id=tmp_path, planner=Doubling())
    assert metadata.state_dict_metadata["t"].properties.dtype is taeda.float64
    for future in (None, checkpoint.async_save(state, checkpoint_id=tmp_path, planner=Doubling())):
        if future is not None:
            future.result()
        read = {"t": taeda.zeros(2, 3), "name": ""}
        checkpoint.load(read, checkpoint_id=tmp_path, planner=Reading())
        assert read["t"].tolist() == [[0, 2, 4], [6, 8, 10]] and read["name"] == b'\xff"ABC"'
    with pytest.raises(checkpoint.CheckpointException, match="name: the saved value cannot be read"):
        checkpoint.load(read, checkpoint_id=tmp_path)


class Kept(StorageWriter, StorageReader):
    """Keeps what is written in memory."""

    def __init__(self):
        self.asked, self.data, self.metadata = [], {}, None

    def reset(self, checkpoint_id=None):
        self.asked.append(("reset", checkpoint_id))

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        self.asked.append((is_coordinator, kwargs))

    def set_up_storage_reader(self, metadata, is_coordinator):
        assert metadata is self.metadata and is_coordinator

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        self.asked.append(len(plans))
        return plans

    def write_data(self, plan, planner):
        done = taeda.futures.Future()
        results = []
        for item in plan.items:
            data = planner.resolve_data(item)
            self.data[item.index] = data.getvalue() if isinstance(data, io.BytesIO) else data.clone()
            results.append(WriteResult(item.index, 1, None))
        done.set_result(results)
        return done

    def finish(self, metadata, results):
        self.metadata = metadata
        self.asked.append(sorted(r.index.fqn for r in results[0]))

    def read_metadata(self, *args, **kwargs):
        return self.metadata

    def read_data(self, plan, planner):
        for item in plan.items:
            data = self.data[item.storage_index]
            if item.type is LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(data))
            else:
                planner.resolve_tensor(item).copy_(data)
        done = taeda.futures.Future()
        done.set_result(None)
        return done

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True


def test_storages_of_a_program():
    kept, state = Kept(), {"a": {"t": taeda.arange(3.0)}, "n": [1, None]}
    assert checkpoint.save(state, checkpoint_id="here", storage_writer=kept) is kept.metadata
    assert kept.asked == [("reset", "here"), (True, {"rank": 0, "use_collectives": True}), 1, ["a.t", "n"]]
    state["a"]["t"].zero_()
    read = {"a": {"t": taeda.zeros(3)}, "n": None}
    checkpoint.load(read, storage_reader=kept)
    assert read["a"]["t"].tolist() == [0, 1, 2] and read["n"] == [1, None] and kept.asked[4:] == [1]
    kept.write_data = None
    with pytest.raises(checkpoint.CheckpointException, match="TypeError"):
        checkpoint.save(state, storage_writer=kept)
    for kind in (StorageWriter, StorageReader, SavePlanner):
        with pytest.raises(TypeError, match="abstract"):
            kind()


FAILS = """
import taeda.distributed.checkpoint as dcp
class Full(dcp.FileSystemWriter):
    def write_data(self, plan, planner):
        if rank == 1:
            raise OSError("the disk is full")
        return super().write_data(plan, planner)
class Refusing(dcp.DefaultSavePlanner):
    def create_global_plan(self, all_plans):
        raise KeyError("not today")
whole = {"t": taeda.arange(4)}
dcp.save(whole, checkpoint_id=FOLDER)
for writer, planner, text in ((Full(FOLDER), None, "rank 1: OSError: the disk is full"), (None, Refusing(), "not today")):
    try:
        dcp.save({"t": taeda.zeros(4)}, checkpoint_id=FOLDER, storage_writer=writer, planner=planner)
        raise AssertionError
    except dcp.CheckpointException as error:
        assert text in str(error), error
read = {"t": taeda.zeros(4, dtype=taeda.int64)}
dcp.load(read, checkpoint_id=FOLDER)
assert read["t"].equal(whole["t"])
"""


def test_what_fails_at_one_process_fails_at_all(tmp_path):
    outputs(f"FOLDER = {str(tmp_path / 'saved')!r}\n" + FAILS, 2)

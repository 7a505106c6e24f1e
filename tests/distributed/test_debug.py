"""``taeda.distributed.tensor.debug``: collectives counted by op and by module, and the table of a DTensor's parts."""

import json

import pytest

import taeda
import taeda.distributed as dist
from taeda.distributed.tensor import Shard, distribute_tensor
from taeda.distributed.tensor.debug import CommDebugMode, visualize_sharding

from .launch import outputs

COUNTED = """
import json, re
from taeda import nn
from taeda.distributed._functional_collectives import all_gather_tensor, all_to_all_single, broadcast
from taeda.distributed.tensor import Replicate, Shard, distribute_tensor
from taeda.distributed.tensor.debug import CommDebugMode
from taeda.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return self.down(self.up(x).relu())

def counts(mode):
    return {str(k): n for k, n in mode.get_comm_counts().items()}

mesh = dist.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
plain = parallelize_module(Net(), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
mode = CommDebugMode()
with mode:
    plain(taeda.ones(4, 8)).sum().backward()
assert counts(mode) == {"c10d_functional.all_reduce": 1} and mode.get_total_counts() == 1
one = {"forward": {"c10d_functional.all_reduce": 1}, "backward": {}}
found = {k: {way: {str(o): n for o, n in c.items()} for way, c in v.items()} for k, v in mode.comm_module_counts.items()}
assert found == {"Global": one, "Net": one, "Net.down": one}, found
assert mode.get_sharding_info() == {
    "Net.up.weight": (Shard(0),), "Net.up.bias": (Shard(0),), "Net.down.weight": (Shard(1),),
    "Net.down.bias": (Replicate(),)}
assert list(mode.get_parameter_info()) == ["Net.up", "Net.down"]
table = re.sub(r"\\033\\[[0-9;]*m", "", mode.generate_comm_debug_tracing_table(noise_level=0))
print(json.dumps(table))
more = mode.generate_comm_debug_tracing_table(noise_level=1)
assert "*module type: class 'taeda.nn.modules.linear.Linear'" in more and " *weight: (Shard(dim=1),)" in more
assert "**aten.addmm.default" in more and "device mesh: DeviceMesh((tp=2), 'cpu', stride=(1,))" in more
assert "aten.t.default" not in more and len(mode.generate_comm_debug_tracing_table()) > len(more)

cut = parallelize_module(Net(), mesh, {
    "up": ColwiseParallel(input_layouts=Shard(0)), "down": RowwiseParallel(output_layouts=Shard(0))})
with mode:
    cut(taeda.ones(4, 8)).sum().backward()
assert counts(mode) == {"c10d_functional.all_gather_into_tensor": 2, "c10d_functional.reduce_scatter_tensor": 1}
backward = mode.comm_module_counts["Net.down"]["backward"]
assert {str(k): n for k, n in backward.items()} == {"c10d_functional.all_gather_into_tensor": 1}

x, y = taeda.ones(4, 4), taeda.ones(8, 4)
with mode:
    dist.all_reduce(x); dist.broadcast(x, 0); dist.all_gather_into_tensor(y, x); dist.barrier()
    dist.reduce_scatter_tensor(x, y); dist.all_to_all_single(y, y.clone())
    all_gather_tensor(x, 0, mesh); broadcast(x, 0, mesh); all_to_all_single(x, None, None, mesh)
    distribute_tensor(y, mesh, [Shard(0)]).redistribute(mesh, [Shard(1)]).full_tensor()
assert counts(mode) == {
    "c10d.allreduce_": 1, "c10d.broadcast_": 2, "c10d._allgather_base_": 1, "c10d._reduce_scatter_base_": 1,
    "c10d.alltoall_base_": 1, "c10d_functional.all_gather_into_tensor": 2, "c10d_functional.broadcast": 1,
    "c10d_functional.all_to_all_single": 2}, counts(mode)
dist.all_reduce(x)  # nobody counts any more
assert mode.get_total_counts() == 11
"""

TABLE = """Global
  FORWARD PASS
    *c10d_functional.all_reduce: 1
    Net
      FORWARD PASS
        *c10d_functional.all_reduce: 1
        Net.up
        Net.down
          FORWARD PASS
            *c10d_functional.all_reduce: 1
"""


def test_collectives_are_counted_by_op_and_by_module():
    assert [json.loads(out) for out in outputs(COUNTED, 2)] == [TABLE, TABLE]


PARTS = """
from taeda.distributed.tensor import Replicate, Shard, distribute_tensor
from taeda.distributed.tensor.debug import visualize_sharding
mesh = dist.init_device_mesh("cpu", (2,))
for sizes, place in (((5, 4), Shard(0)), ((4, 6), Shard(1)), ((7,), Shard(0)), ((3, 3), Replicate()), ((0, 3), Shard(0))):
    visualize_sharding(distribute_tensor(taeda.ones(*sizes), mesh, [place]), header="not shown")
grid = dist.init_device_mesh("cpu", (1, 2))
visualize_sharding(distribute_tensor(taeda.ones(2, 4), grid, [Shard(0), Shard(1)]))
"""

TABLES = """\
         Col 0-3
-------  ---------
Row 0-2  cpu:0
Row 3-4  cpu:1
         Col 0-2    Col 3-5
-------  ---------  ---------
Row 0-3  cpu:0      cpu:1
         Col 0-0
-------  ---------
Row 0-3  cpu:0
Row 4-6  cpu:1
         Col 0-2
-------  ---------
Row 0-2  cpu:0,1
         Col 0-1    Col 2-3
-------  ---------  ---------
Row 0-1  cpu:0      cpu:1
"""


def test_a_table_shows_who_has_what():
    assert [out.strip() for out in outputs(PARTS, 2)] == [TABLES.strip(), ""]


@pytest.fixture
def mesh():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.init_device_mesh("cpu", (1,), mesh_dim_names=("tp",))
    dist.destroy_process_group()


def test_files_and_refusals(mesh, tmp_path):
    mode, layer = CommDebugMode(), taeda.nn.Sequential(taeda.nn.Linear(2, 2))
    with mode:
        layer(taeda.ones(1, 2))
        dist.all_reduce(taeda.ones(2))
    assert repr(mode) == "CommDebugMode(get_total_counts()=1)"
    mode.log_comm_debug_tracing_table_to_file(tmp_path / "table.txt")
    text = (tmp_path / "table.txt").read_text()
    assert "\033" not in text and "*c10d.allreduce_: 1" in text and "**aten.addmm.default" in text
    mode.generate_json_dump(tmp_path / "tree.json")
    tree = json.loads((tmp_path / "tree.json").read_text())
    assert tree["fqn"] == "Global" and tree["collectives_forward"] == ["c10d.allreduce_: 1"]
    assert [one["fqn"] for one in tree["children"][0]["children"]] == ["Sequential.0"]
    with pytest.raises(RuntimeError, match="only 1D or 2D"):
        visualize_sharding(distribute_tensor(taeda.ones(2, 2, 2), mesh, [Shard(0)]))

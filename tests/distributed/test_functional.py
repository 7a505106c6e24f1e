"""Functional collectives, ``local_map``, meshes that change, and averages of parameters: against PyTorch with gloo, and by hand."""

import pytest

from . import launch as launching
from .launch import outputs

FUNCTIONAL = """
import taeda.distributed._functional_collectives as fc
from taeda.distributed.device_mesh import init_device_mesh
n = dist.get_world_size()
mesh = init_device_mesh("cpu", (n,))
group = dist.group.WORLD
t = (taeda.arange(8.0).reshape(4, 2) + 10 * rank).requires_grad_()
weight = taeda.arange(64.0).reshape(8, 8) / 7 + rank
def show(name, made):
    if isinstance(made, fc.AsyncCollectiveTensor):
        made = made.wait()
    t.grad = None
    if made.requires_grad:
        (made * weight[: made.shape[0], : made.shape[1]]).sum().backward()
    print(name, made.tolist(), None if t.grad is None else t.grad.tolist())
for where in (group, mesh, (mesh, 0)):
    show("sum", fc.all_reduce(t.detach(), "sum", where))
    show("max", fc.all_reduce(t.detach(), "max", where))
    show("gather", fc.all_gather_tensor(t.detach(), 1, where))
    show("scatter", fc.reduce_scatter_tensor(t.detach(), "avg", 0, where))
show("gather", fc.all_gather_tensor_autograd(t, 0, group))
show("gather 1", fc.all_gather_tensor_autograd(t, 1, group))
show("scatter", fc.reduce_scatter_tensor_autograd(t, "sum", 0, group))
show("scatter 1", fc.reduce_scatter_tensor_autograd(t, "sum", 1, group))
show("equal", fc.all_to_all_single_autograd(t, [2, 2], [2, 2], group))
show("rows", fc.all_to_all_single_autograd(t, [1 + 2 * rank] * 2, [1, 3], group))
show("broadcast", fc.broadcast(t.detach(), 1, group))
for one in fc.all_reduce_coalesced([t.detach(), t.detach() * 2], "sum", group):
    show("several", one)
"""

LOCAL = """
from taeda.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from taeda.distributed.tensor.experimental import local_map
from taeda.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("cpu", (2,))
x, w = taeda.arange(12.0).reshape(4, 3), taeda.arange(6.0).reshape(3, 2) / 5
a = distribute_tensor(x, mesh, [Shard(1)]).requires_grad_()
b = distribute_tensor(w, mesh, [Shard(0)]).requires_grad_()
def product(a, b, scale):
    return a @ b * scale, scale
mapped = local_map(product, ([Partial()], None), ([Shard(1)], [Shard(0)], None), device_mesh=mesh)
made, scale = mapped(a, b, 3)
made.full_tensor().sum().backward()
print(made.full_tensor().tolist(), made.placements == (Partial(),), scale)
print(a.grad.full_tensor().tolist(), b.grad.full_tensor().tolist())
whole = distribute_tensor(x, mesh, [Replicate()])
moved = local_map(lambda a: a.sum(1), [Replicate()], ([Replicate()],), redistribute_inputs=True)
print(moved(a.detach()).to_local().tolist())
c = distribute_tensor(x, mesh, [Replicate()]).requires_grad_()
def mine(c):
    return c * (1 + mesh.get_local_rank())
summed = local_map(mine, [Partial()], ([Replicate()],), ([Partial()],))(c)
summed.full_tensor().sum().backward()
print(summed.full_tensor().tolist(), c.grad.full_tensor().tolist())
try:
    local_map(product, ([Partial()], None), ([Shard(0)], [Shard(0)], None))(a, b, 3)
except ValueError as error:
    print("ValueError")
"""


@pytest.mark.parametrize("code", [FUNCTIONAL, LOCAL])
def test_numbers_are_those_of_pytorch(code, monkeypatch):
    pytest.importorskip("torch")
    ours = outputs(code, 2)
    monkeypatch.setattr(launching, "HEAD", launching.HEAD.replace("taeda", "torch"))
    theirs = outputs(code.replace("taeda", "torch"), 2)
    assert ours == theirs and all(len(text.splitlines()) > 4 for text in ours)


OTHERS = """
import taeda.distributed._functional_collectives as fc
from taeda.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from taeda.distributed.tensor.experimental import local_map
from taeda.distributed.device_mesh import DeviceMesh, init_device_mesh
def refuses(kind, what, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as error:
        assert what in str(error), error
    else:
        raise AssertionError(what)
t = taeda.ones(4, 2, requires_grad=True)
refuses(ValueError, "a multiple of group_size", fc.reduce_scatter_tensor, t[:3], "sum", 0, dist.group.WORLD)
refuses(ValueError, "a reduction such as", fc.all_reduce, t, "mean", dist.group.WORLD)
refuses(ValueError, "expected a ProcessGroup", fc.all_reduce, t, "sum", 3)
refuses(ValueError, "new_group made", fc.all_reduce, t, "sum", [0])
refuses(ValueError, "a permutation of 4", fc.permute_tensor, t, [0, 1, 2, 2], dist.group.WORLD)
assert fc.permute_tensor(t * rank, [1, 2, 3, 0], dist.group.WORLD).eq((rank - 1) % 4).all()
assert fc.wait_tensor(fc.all_reduce(t, "sum", [0, 1, 2, 3])).tolist() == [[4.0] * 2] * 4
refuses(RuntimeError, "only 'sum' and 'avg'", fc.all_reduce(t, "max", dist.group.WORLD).sum().backward)
(fc.all_reduce(t, "avg", dist.group.WORLD) * (rank + 1)).sum().backward()
assert t.grad.eq(2.5).all()

line, grid = init_device_mesh("cpu", (4,)), init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
backwards = DeviceMesh("cpu", [3, 1, 2, 0])
x = taeda.arange(30.0).reshape(6, 5)
for mesh, places in ((grid, [Shard(0), Shard(1)]), (backwards, [Shard(0)]), (grid, [Replicate(), Shard(1)])):
    a = distribute_tensor(x, line, [Shard(0)]).requires_grad_()
    b = a.redistribute(mesh, places)
    assert b.device_mesh == mesh and b.placements == tuple(places) and b.full_tensor().equal(x)
    (b * b).sum().backward()
    assert a.grad.device_mesh == line and a.grad.full_tensor().equal(2 * x)
refuses(NotImplementedError, "of different processes", a.redistribute, grid["a"], [Shard(0)])
refuses(RuntimeError, "redistribute to Partial", a.redistribute, grid, [Partial(), Replicate()])
refuses(ValueError, "does not match the number of input args", local_map(lambda a: a, [Shard(0)], ([Shard(0)], None)), a)
refuses(ValueError, "for each output value", local_map(lambda a: (a, a), [Shard(0)]), a)
refuses(RuntimeError, "expected DTensors on", local_map(lambda a: a, [Shard(0)], device_mesh=grid), a)

half, _ = dist.new_subgroups(2)
quarter, found = dist.new_subgroups(1, half)
assert len(found) == 2 and dist.get_process_group_ranks(quarter) == [rank]
"""


def test_meshes_that_change_and_what_is_refused():
    outputs(OTHERS, 4)


AVERAGED = """
from taeda import nn
from taeda.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from taeda.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
from taeda.distributed.algorithms.model_averaging.utils import average_parameters
from taeda.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from taeda.distributed.optim import PostLocalSGDOptimizer
from taeda.nn.parallel import DistributedDataParallel
def model():
    taeda.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
def show(name, m):
    print(name, [round(v, 5) for p in m.parameters() for v in p.flatten().tolist()])
x = taeda.arange(36.0).reshape(3, 4, 3) / 20 + rank
whole = DistributedDataParallel(model(), bucket_cap_mb=0.00001)
pairs, _ = dist.new_subgroups(1 if dist.get_world_size() == 2 else 2)
whole.register_comm_hook(PostLocalSGDState(None, pairs, 3), post_localSGD_hook)
optimizer = PostLocalSGDOptimizer(
    taeda.optim.SGD(whole.parameters(), 0.1, momentum=0.5), PeriodicModelAverager(period=2, warmup_steps=3))
for step in range(7):
    optimizer.zero_grad()
    whole(x[step % 3]).square().mean().backward()
    optimizer.step()
    show(step, whole)
print(optimizer.state_dict()["step"])
again = PostLocalSGDOptimizer(taeda.optim.SGD(whole.parameters(), 0.1, momentum=0.5), PeriodicModelAverager(2, 3))
again.load_state_dict(optimizer.state_dict())
assert again.averager.step == 7
own = model()
averager = HierarchicalModelAverager({1: 1, 2: dist.get_world_size()}, warmup_steps=1)
for step in range(4):
    own(x[0]).square().mean().backward()
    with taeda.no_grad():
        for p in own.parameters():
            p -= 0.1 * p.grad
    averager.average_parameters(own.parameters())
    show(step, own)
average_parameters(iter([*own.parameters()]), dist.group.WORLD)
show("last", own)
for wrong in ((0,), (2, -1)):
    try:
        PeriodicModelAverager(*wrong)
    except ValueError as error:
        print(error)
"""


def test_averages_of_parameters_are_those_of_pytorch(monkeypatch):
    pytest.importorskip("torch")
    ours = outputs(AVERAGED, 2)
    monkeypatch.setattr(launching, "HEAD", launching.HEAD.replace("taeda", "torch"))
    theirs = outputs(AVERAGED.replace("taeda", "torch"), 2)
    for a, b in zip(ours, theirs, strict=True):
        pairs = list(zip(a.split(), b.split(), strict=True))
        assert len(pairs) > 200
        for mine, other in pairs:
            try:
                assert float(mine.strip("[],")) == pytest.approx(float(other.strip("[],")), abs=3e-5)
            except ValueError:
                assert mine == other

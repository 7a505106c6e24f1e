"""Sharded training in PyTorch's names, after its tutorials: run by PyTorch and by taeda, which have to print the same."""

import json
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel as DDP

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("dp",))
found = {}
g = torch.Generator().manual_seed(0)
X, Y = torch.randn(4, 8, 16, generator=g), torch.randn(4, 8, 16, generator=g)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1, self.norm, self.net2 = nn.Linear(16, 32), nn.LayerNorm(32), nn.Linear(32, 16)

    def forward(self, x):
        return self.net2(F.gelu(self.norm(self.net1(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([MLP() for _ in range(3)])
        self.out = nn.Linear(16, 16)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return self.out(x)


def seeded():
    torch.manual_seed(0)
    return Model()


def train(model, part=lambda t: t.chunk(world)[rank], opt=None, clip=True):
    opt = opt or torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for x, y in zip(X, Y, strict=True):
        opt.zero_grad()
        loss = F.mse_loss(model(part(x)), part(y))
        loss.backward()
        if clip:
            total = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            losses.append(float(total.full_tensor() if isinstance(total, DTensor) else total))
        opt.step()
        loss = loss.detach().clone()
        dist.all_reduce(loss)
        losses.append(loss.item() / world)
    return losses


def whole(t):
    return t


found["one"] = train(seeded(), whole)
m = seeded()
for layer in m.layers:
    fully_shard(layer, mesh=mesh)
fully_shard(m, mesh=mesh)
opt = torch.optim.Adam(m.parameters(), lr=1e-2)
found["fsdp2"] = train(m, opt=opt)
found["placements"] = str(m.out.weight.placements)
folder = sys.argv[1]
ms, os_ = get_state_dict(m, opt)
dcp.save({"m": ms, "o": os_}, checkpoint_id=folder)
found["keys"] = sorted(ms)
found["optkeys"] = sorted(os_["state"])
found["more"] = train(m, opt=opt)
ms, os_ = get_state_dict(m, opt)
state = {"m": ms, "o": os_}
dcp.load(state, checkpoint_id=folder)
set_state_dict(m, opt, model_state_dict=state["m"], optim_state_dict=state["o"])
found["again"] = train(m, opt=opt)
m = seeded()
for layer in m.layers:
    fully_shard(
        layer,
        mesh=mesh,
        mp_policy=MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float32
        ),
    )
fully_shard(m, mesh=mesh)
found["~mixed"] = train(m)
m = seeded()
plan = {}
for i in range(3):
    plan[f"layers.{i}.net1"] = ColwiseParallel(input_layouts=Replicate(), output_layouts=Replicate())
    plan[f"layers.{i}.net2"] = RowwiseParallel(input_layouts=Replicate())
m = parallelize_module(m, mesh, plan)
found["tp"] = train(m, whole, opt=torch.optim.Adam(m.parameters(), lr=1e-2, foreach=False), clip=False)
m = seeded()
sp = {}
for i in range(3):
    sp[f"layers.{i}"] = PrepareModuleInput(
        input_layouts=Replicate(), desired_input_layouts=Replicate(), use_local_output=True
    )
    sp[f"layers.{i}.net1"] = ColwiseParallel(output_layouts=Shard(0), use_local_output=False)
    sp[f"layers.{i}.norm"] = SequenceParallel(sequence_dim=0)
    sp[f"layers.{i}.net2"] = RowwiseParallel(input_layouts=Shard(0))
m = parallelize_module(m, mesh, sp)
found["sp"] = train(m, whole, opt=torch.optim.Adam(m.parameters(), lr=1e-2, foreach=False), clip=False)
opt = torch.optim.Adam(m.parameters(), lr=1e-2)
m = DDP(seeded())
m.register_comm_hook(None, default_hooks.fp16_compress_hook)
found["~fp16"] = train(m)
m = DDP(seeded())
found["zero"] = train(m, opt=ZeroRedundancyOptimizer(m.parameters(), optimizer_class=torch.optim.Adam, lr=1e-2))
m = DDP(seeded())
opt = torch.optim.SGD(m.parameters(), lr=1e-2)
with m.join():
    for x, y in list(zip(X, Y, strict=True))[: 2 + rank]:
        opt.zero_grad()
        F.mse_loss(m(x), y).backward()
        opt.step()
found["join"] = [p.detach().sum().item() for p in m.parameters()]
d = distribute_tensor(torch.arange(20.0).reshape(5, 4), mesh, [Shard(0)])
found["softmax"] = [d.softmax(0).full_tensor().sum().item()]
found["dtensor"] = [
    d.to_local().tolist(),
    d.sum().placements[0].__class__.__name__,
    (d @ d.t()).full_tensor().tolist(),
    d.t().placements == (Shard(1),),
    d.sum(1).placements == (Shard(0),),
    str(d.placements),
]
if rank == 0:
    print(json.dumps(found))
dist.destroy_process_group()

"""Training jobs that begin again, change the number of processes, and cut models in several ways: run by both."""

import json
import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.checkpoint as dcp
import torch.distributed.nn.functional as differentiable
import torch.nn.functional as F
from peer_common import X, Y, fit, net, raised, report
from torch import nn, optim
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_state_dict
from torch.distributed.constants import default_pg_timeout
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.fsdp import LocalOptimStateDictConfig, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp.fully_sharded_data_parallel import CPUOffload
from torch.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torch.distributed.fsdp.wrap import enable_wrap, wrap
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe, SplitPoint, pipeline
from torch.distributed.pipelining.schedules import (
    ScheduleDualPipeV,
    ScheduleInterleavedZeroBubble,
    ScheduleZBVZeroBubble,
)
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def resume(rank, size, folder):
    """Two epochs, a checkpoint of rank 0, and the third in a new model; against three epochs without a stop."""
    data, path = TensorDataset(X, Y), os.path.join(folder, "resume.pt")

    def build():
        model = DDP(net(), gradient_as_bucket_view=True)
        opt = optim.AdamW(model.parameters(), lr=1e-2)
        return model, opt, optim.lr_scheduler.StepLR(opt, 1, 0.5), DistributedSampler(data, seed=5)

    def epoch(number, model, opt, schedule, sampler):
        sampler.set_epoch(number)
        losses = []
        for x, y in DataLoader(data, batch_size=4, sampler=sampler):
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        schedule.step()
        return losses

    job = build()
    losses = epoch(0, *job) + epoch(1, *job)
    if rank == 0:
        torch.save({"model": job[0].module.state_dict(), "opt": job[1].state_dict(), "lr": job[2].state_dict()}, path)
    dist.barrier()
    straight = epoch(2, *job)
    job, saved = build(), torch.load(path, map_location="cpu", weights_only=True)
    job[0].module.load_state_dict(saved["model"])
    job[1].load_state_dict(saved["opt"])
    job[2].load_state_dict(saved["lr"])
    again = epoch(2, *job)
    return [*losses, *again, again == straight]


def rough_mixed(rank, size, folder):
    """FSDP2 in bfloat16; the checkpoint is read by one process, into a model that is not cut."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model, where = net(), os.path.join(folder, "mixed")
    fully_shard(model[0], mp_policy=policy)
    fully_shard(model, mp_policy=policy, reshard_after_forward=False)
    opt = optim.AdamW(model.parameters(), lr=1e-2)
    found = fit(model, rank, size, opt)
    dcp.save(dict(zip(("model", "opt"), get_state_dict(model, opt), strict=True)), checkpoint_id=where)
    if rank == 0:
        whole = net()
        state = {"model": whole.state_dict()}
        dcp.load(state, checkpoint_id=where, no_dist=True)
        whole.load_state_dict(state["model"])
        found += [F.mse_loss(whole(X), Y).item()]
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    return [*found, sorted(get_model_state_dict(model, options=options))]


class Block(nn.Module):
    """A transformer's block, whose heads are as many as its processes have."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def attention(self, x):
        q, k, v = (f(x).unflatten(-1, (-1, 4)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def tensor_and_sequence(rank, size, folder):
    """A block cut by columns and rows, with activations cut along the sequence between them."""
    torch.manual_seed(3)
    model, x = Block(), torch.randn(2, 8, 16)
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
    plan = {"norm1": SequenceParallel(), "norm2": SequenceParallel()}
    plan |= {name: ColwiseParallel(input_layouts=Shard(1)) for name in ("q", "k", "v", "up")}
    plan |= {name: RowwiseParallel(output_layouts=Shard(1), use_local_output=False) for name in ("o", "down")}
    enter = PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Shard(1),), use_local_output=False)
    parallelize_module(model, mesh, {"": enter} | plan)
    opt, found = optim.SGD(model.parameters(), lr=0.1), []
    for _ in range(3):
        out = model(x)
        loss = out.full_tensor().square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        found += [loss.item(), str(out.placements)]
    return [*found, model.q.weight.full_tensor().sum().item(), str(model.o.weight.placements)]


def front(rank, size, folder):
    """``pipeline`` cuts a model that it traces; the schedule runs its parts."""
    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(4)))
    torch.manual_seed(2)
    for p in model.parameters():
        nn.init.normal_(p, std=0.3)
    pipe = pipeline(model, mb_args=(X[:4],), split_spec={"2": SplitPoint.BEGINNING})
    stage = pipe.build_stage(rank, torch.device("cpu"))
    losses = []
    schedule = ScheduleGPipe(stage, 4, loss_fn=lambda out, y: (out[:, :4] - y).square().mean())
    opt = optim.SGD(stage.submod.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        if rank == 0:
            schedule.step(X)
        else:
            step = []
            schedule.step(target=Y, losses=step)
            losses += [loss.item() for loss in step]
        opt.step()
    return [pipe.num_stages, *losses, sum(p.sum().item() for p in stage.submod.parameters())]


def schedules(rank, size, folder):
    """Two stages a process, in a loop and in the form of a V."""
    found = []
    for kind in (ScheduleInterleavedZeroBubble, ScheduleZBVZeroBubble, ScheduleDualPipeV):
        torch.manual_seed(4)
        layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(4)]
        mine = (rank, 2 + rank) if kind is ScheduleInterleavedZeroBubble else (rank, 3 - rank)
        stages = [PipelineStage(layers[i], i, 4, torch.device("cpu")) for i in mine]
        schedule = kind(stages, 8, loss_fn=lambda out, y: (out[:, :4] - y).square().mean())
        losses, last = [], any(stage.is_last for stage in stages)
        inputs = {"target": Y, "losses": losses} if last else {}
        schedule.step(*([X] if rank == 0 else []), **inputs)
        found += [loss.item() for loss in losses]
        found += [p.grad.sum().item() for i in mine for p in layers[i].parameters()]
    return found


def hybrid(rank, size, folder):
    """Copies of shards on a mesh of two dimensions, in both directions."""
    found = []
    for shape in ((1, size), (size, 1)):
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("copies", "parts"))
        model = net()
        fully_shard(model[0], mesh=mesh)
        fully_shard(model, mesh=mesh)
        found += [*fit(model, rank, size), str(model[0].weight.placements), mesh["parts"].size()]
    return found


def collectives(rank, size, folder):
    """Collectives with gradients, and those that return their result."""
    found = []
    for call in (
        lambda x: differentiable.all_reduce(x * (rank + 1)),
        lambda x: torch.stack(differentiable.all_gather(x)) * (rank + 2),
        lambda x: differentiable.broadcast(x, 1),
        lambda x: differentiable.all_to_all_single(torch.empty(4), x * (rank + 1)),
    ):
        x = torch.arange(4.0).add(rank).requires_grad_()
        y = call(x)
        (y * y).sum().backward()
        found += [*y.flatten().tolist(), *x.grad.tolist()]
    x = torch.arange(4.0) + rank
    for y in (
        functional.all_reduce(x, "sum", dist.group.WORLD),
        functional.all_gather_tensor(x, 0, dist.group.WORLD),
        functional.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD),
        functional.all_to_all_single(x, [2, 2], [2, 2], dist.group.WORLD),
    ):
        found += functional.wait_tensor(y).tolist()
    return found


def older(rank, size, folder):
    """FSDP's older names: its module, ``wrap``, and the scaler of sharded gradients."""
    with enable_wrap(wrapper_cls=FSDP, device_id=torch.device("cpu"), use_orig_params=True):
        inner = wrap(net())
    plain, found = wrap(nn.Linear(2, 2)), []
    opt, scaler = optim.SGD(inner.parameters(), lr=0.1), ShardedGradScaler(device="cpu", init_scale=4.0)
    for step in range(4):
        opt.zero_grad()
        loss = inner(X.chunk(size)[rank]).square().mean()
        if step == 2 and rank == 1:
            loss = loss * float("inf")  # at one process alone
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        found += [loss.item() if step != 2 else 0, scaler.get_scale()]
    kinds = [type(inner) is FSDP, type(plain) is nn.Linear, CPUOffload().offload_params]
    return [*found, *kinds, LocalOptimStateDictConfig().offload_to_cpu, str(default_pg_timeout)]


def elastic(rank, size, folder):
    """An error of a program's main function is written for the launcher."""
    before = os.environ.get("TORCHELASTIC_ERROR_FILE")
    os.environ["TORCHELASTIC_ERROR_FILE"] = path = os.path.join(folder, f"error{rank}.json")

    @record
    def fails():
        raise KeyError("of the program")

    found = raised(fails)
    if before is None:
        del os.environ["TORCHELASTIC_ERROR_FILE"]
    with open(path) as file:
        said = json.load(file)["message"]
    return [found, said["message"], sorted(said["extraInfo"])]


if __name__ == "__main__":
    dist.init_process_group("gloo")
    report([resume, rough_mixed, tensor_and_sequence, front, schedules, hybrid, collectives, older, elastic])
    os._exit(0)

"""Programs after PyTorch's tutorials of torch.distributed, in its names: run by PyTorch and by taeda, which print the same."""

import functools
import json
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn, optim
from torch.distributed._composable.fsdp import fully_shard as composed
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    apply_activation_checkpointing,
    checkpoint_wrapper,
)
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.distributed_c10d import _get_default_group
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, SplitPoint, pipeline
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor, ones, zeros
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

found = {}
G = torch.Generator().manual_seed(1)
DATA, LABELS = torch.randn(64, 10, generator=G), torch.randint(5, (64,), generator=G)


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1, self.relu, self.net2 = nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, 10)) for _ in range(4)])
        self.head = nn.Linear(10, 5)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def seeded(kind):
    torch.manual_seed(0)
    return kind()


def part(t, rank, size):
    return t.chunk(size)[rank]


def train(model, optimizer, rank, size, steps=3):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(part(DATA, rank, size)), part(LABELS, rank, size))
        loss.backward()
        optimizer.step()
        loss = loss.detach().clone()
        dist.all_reduce(loss, op=dist.ReduceOp.SUM)
        losses.append(loss.item() / size)
    return losses


def ddp(rank, size, folder):
    """Getting started with DDP: a basic model, and one saved by one process and loaded by all."""
    model = DDP(seeded(ToyModel))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    losses = train(model, optimizer, rank, size)
    path = os.path.join(folder, "model.pt")
    if rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    other = DDP(ToyModel())
    other.load_state_dict(torch.load(path, map_location={"cuda:0": "cpu"}, weights_only=True))
    return [*losses, *train(other, optim.SGD(other.parameters(), lr=0.1), rank, size)]


def sampler(rank, size, folder):
    """Multi-process training with DistributedSampler, as in the series on DDP."""
    data = DataLoader(TensorDataset(DATA, LABELS), batch_size=8, sampler=DistributedSampler(range(64), seed=3))
    model = DDP(seeded(ToyModel))
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for epoch in range(2):
        data.sampler.set_epoch(epoch)
        for x, y in data:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return losses


def applications(rank, size, folder):
    """Writing distributed applications: messages, a group, gradients averaged by hand, and a hand-written ring."""
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        dist.isend(tensor=tensor, dst=1).wait()
    else:
        dist.irecv(tensor=tensor, src=0).wait()
    both = torch.ones(1)
    dist.all_reduce(both, op=dist.ReduceOp.SUM, group=dist.new_group([0, 1]))
    model = seeded(ToyModel)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.nll_loss(F.log_softmax(model(part(DATA, rank, size)), 1), part(LABELS, rank, size))
        losses.append(loss.item())
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad.data, op=dist.ReduceOp.SUM)
            p.grad.data /= float(size)
        optimizer.step()
    send, received = torch.full((4,), rank + 1.0), torch.zeros(4)
    total = send.clone()
    for _ in range(size - 1):
        request = dist.isend(send, (rank + 1) % size)
        dist.recv(received, (rank - 1) % size)
        total += received
        request.wait()
        send = received.clone()
    return [tensor.item(), both.item(), *losses, *total.tolist()]


def meshes(rank, size, folder):
    """Getting started with DeviceMesh: hybrid sharding over two dimensions."""
    mesh = init_device_mesh("cpu", (1, size), mesh_dim_names=("replicate", "shard"))
    model = composed(seeded(ToyModel), mesh=mesh)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    losses = train(model, optimizer, rank, size)
    shapes = [mesh.ndim, mesh.size(), mesh["shard"].size(), dist.get_world_size(mesh.get_group("shard"))]
    return [*losses, *map(float, shapes), float(mesh.get_local_rank("shard") == rank)]


def tensors(rank, size, folder):
    """DTensor: constructors, placements, distribute_module."""
    mesh = init_device_mesh("cpu", (size,))
    big = distribute_tensor(torch.arange(24.0).reshape(8, 3), mesh, [Shard(0)])
    again = big.redistribute(mesh, [Replicate()])
    ready = ones(8, 3, device_mesh=mesh, placements=[Shard(0)]) + zeros(8, 3, device_mesh=mesh, placements=[Shard(0)])
    made = DTensor.from_local(torch.full((2, 2), float(rank)), mesh, [Shard(0)], run_check=False)

    def cut(name, module, mesh):
        for key, p in module.named_parameters(recurse=False):
            module.register_parameter(key, nn.Parameter(distribute_tensor(p, mesh, [Shard(0)])))

    model = distribute_module(seeded(ToyModel), mesh, cut)
    out = model(distribute_tensor(DATA, mesh, [Replicate()]))
    loss = out.square().mean()
    loss.backward()
    grads = [p.grad.full_tensor().sum().item() for p in model.parameters()]
    return [big.to_local().sum().item(), again.to_local().sum().item(), ready.sum().full_tensor().item(),
            made.full_tensor().sum().item(), loss.full_tensor().item(), *grads]  # fmt: skip


def tensor_parallel(rank, size, folder):
    """Large scale training with tensor parallelism: cut layers, and a loss over cut scores."""
    mesh = init_device_mesh("cpu", (size,))
    plan = {"net1": ColwiseParallel(), "net2": RowwiseParallel()}
    model = parallelize_module(seeded(ToyModel), mesh, plan)
    head = parallelize_module(nn.Linear(5, 6), mesh, ColwiseParallel(output_layouts=Shard(-1), use_local_output=False))
    with torch.no_grad():
        for p in head.parameters():
            p.copy_(distribute_tensor(torch.ones(p.shape), mesh, p.placements) * 0.1)
    losses = []
    for p in (model, head):
        assert all(isinstance(q, DTensor) for q in p.parameters())
    optimizer = optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        with loss_parallel():
            loss = F.cross_entropy(head(model(DATA)), LABELS)
            loss.backward()
        optimizer.step()
        losses.append(loss.full_tensor().item() if isinstance(loss, DTensor) else loss.item())
    return losses


def pipelines(rank, size, folder):
    """Introduction to distributed pipeline parallelism: stages by hand, and by tracing."""
    results = []
    for kind in (ScheduleGPipe, Schedule1F1B):
        model = seeded(Deep)
        layers = model.layers[:2] if rank == 0 else model.layers[2:]
        module = nn.Sequential(*layers) if rank == 0 else nn.Sequential(*layers, model.head)
        schedule = kind(
            PipelineStage(module, rank, size, torch.device("cpu")), n_microbatches=4, loss_fn=F.cross_entropy
        )
        losses = []
        if rank == 0:
            schedule.step(DATA)
        else:
            schedule.step(target=LABELS, losses=losses)
        results.append(torch.stack(losses).mean().item() if losses else 0.0)
        grads = sum(p.grad.square().sum().item() for p in module.parameters())
        results.append(grads)
    model = seeded(Deep)
    pipe = pipeline(model, mb_args=(DATA.chunk(4)[0],), split_spec={"layers.2": SplitPoint.BEGINNING})
    stage = pipe.build_stage(rank, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 4)
    with torch.no_grad():
        out = schedule.step(DATA) if rank == 0 else schedule.step()
    results.append(0.0 if out is None else out.square().sum().item())
    total = torch.tensor(results)
    dist.all_reduce(total)
    return total.tolist()


class AppState(Stateful):
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optimizer}

    def load_state_dict(self, state):
        set_state_dict(
            self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"]
        )  # fmt: skip


def checkpoints(rank, size, folder):
    """Getting started with distributed checkpoints, and the asynchronous ones."""
    mesh = init_device_mesh("cpu", (size,))
    model = composed(seeded(ToyModel), mesh=mesh)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    losses = train(model, optimizer, rank, size, 2)
    where = os.path.join(folder, "dcp")
    dcp.save({"app": AppState(model, optimizer)}, checkpoint_id=where, planner=DefaultSavePlanner())
    losses += train(model, optimizer, rank, size, 2)
    state = {"app": AppState(model, optimizer)}
    dcp.load(state_dict=state, checkpoint_id=where)
    losses += train(model, optimizer, rank, size, 2)
    future = dcp.async_save(
        {"app": AppState(model, optimizer)},
        checkpoint_id=where + "2",
        planner=DefaultSavePlanner(dedup_save_to_lowest_rank=True),
    )
    future.result()
    more = {"model": get_model_state_dict(model), "new": torch.full((2,), 7.0)}
    more = {"app": {"model": more["model"]}, "new": more["new"]}
    dcp.load(more, checkpoint_id=where + "2", planner=DefaultLoadPlanner(allow_partial_load=True))
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    return [*losses, *more["new"].tolist(), sum(t.sum().item() for t in whole.values())]


def fsdp1(rank, size, folder):
    """FullyShardedDataParallel with a policy, activation checkpoints, and a state dict of whole tensors."""
    policy = functools.partial(size_based_auto_wrap_policy, min_num_params=200)
    model = seeded(Deep)
    apply_activation_checkpointing(
        model,
        checkpoint_wrapper_fn=functools.partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.NO_REENTRANT),
        check_fn=lambda m: isinstance(m, nn.Sequential),
    )
    names = sorted(model.state_dict()) == sorted(Deep().state_dict()) == sorted(n for n, _ in model.named_parameters())
    plain = seeded(Deep)
    optimizer = optim.Adam(plain.parameters(), lr=1e-2)
    losses = train(DDP(plain), optimizer, rank, size)
    wrapped = DDP(model)
    losses += train(wrapped, optim.Adam(wrapped.parameters(), lr=1e-2), rank, size)
    sharded = FSDP(seeded(Deep), auto_wrap_policy=policy, device_id=torch.device("cpu"))
    losses += train(sharded, optim.Adam(sharded.parameters(), lr=1e-2), rank, size)
    return [*losses, float(names)]


def fsdp1_state(rank, size, folder):
    """The state dict of whole tensors."""
    sharded = FSDP(seeded(Deep), device_id=torch.device("cpu"))
    with FSDP.state_dict_type(sharded, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True)):
        state = sharded.state_dict()
    return [float(len(state)), sum(t.sum().item() for t in state.values())]


PROGRAMS = [ddp, sampler, applications, meshes, tensors, tensor_parallel, pipelines, checkpoints, fsdp1, fsdp1_state]


@record
def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    assert _get_default_group() is dist.group.WORLD
    for program in PROGRAMS:
        if len(sys.argv) > 2 and program.__name__ not in sys.argv[2:]:
            continue
        try:
            found[program.__name__] = program(rank, size, sys.argv[1])
        except (RuntimeError, ValueError, NotImplementedError, TypeError, AttributeError) as error:
            found[program.__name__] = f"{type(error).__name__}: {str(error)[:300]}"
            if os.environ.get("SHOW"):
                raise
        dist.barrier()
    if rank == 0:
        print(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

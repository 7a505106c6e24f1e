"""Programs as strangers write them for torch.distributed, with their mistakes: run by PyTorch and by taeda."""

import copy
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from peer_common import fit, net, raised, report
from torch import nn, optim
from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, debugging_hooks, register_ddp_comm_hook
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullStateDictConfig, ShardingStrategy, StateDictType, fully_shard
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.tensor import distribute_tensor
from torch.nn.parallel import DistributedDataParallel as DDP

CPU = torch.device("cpu")


def mistakes(rank, size, folder):
    """Errors of the same types."""
    store = dist.HashStore()
    again = {"store": store, "rank": 0, "world_size": 1}
    dist.destroy_process_group()
    early = [
        raised(lambda: dist.init_process_group("nccl", **again)),
        raised(lambda: dist.init_process_group("ucc", **again)),
        raised(lambda: dist.init_process_group("pigeon", **again)),
        raised(lambda: dist.init_process_group("gloo", device_id=torch.device("cuda:0"), **again)),
        raised(lambda: store.set("a", 3)),
        raised(lambda: store.set(3, "a")),
    ]
    dist.init_process_group(**again)
    early += [dist.get_backend(), dist.get_backend_config(), dist.get_default_backend_for_device("cuda")]
    dist.destroy_process_group()
    begin(folder, "second")
    model = DDP(nn.Linear(2, 2))

    def of_a_number(state, bucket: int):
        return None

    def to_a_number(state, bucket) -> int:
        return 3

    return [
        *early,
        raised(lambda: DDP(nn.Linear(2, 2), device_ids=[0])),
        raised(lambda: model.register_comm_hook(None, of_a_number)),
        raised(lambda: model.register_comm_hook(None, to_a_number)),
        raised(lambda: dist.batch_isend_irecv([3])),
        raised(lambda: fully_shard(fully_shard(nn.Linear(4, 4)))),
        raised(lambda: init_device_mesh("cpu:0", (size,))),
        raised(lambda: FSDP(net(), sharding_strategy="full", device_id=CPU)),
        model.is_multi_device_module,
    ]


def hooks(rank, size, folder):
    """Hooks from a configuration, and one that does nothing."""
    found = []
    for kind in (DDPCommHookType.ALLREDUCE, DDPCommHookType.NOOP):
        model = DDP(net())
        register_ddp_comm_hook(comm_hook_type=kind, model=model, state=None)
        found += fit(model, rank, size)
    model = DDP(net())
    model.register_comm_hook(None, debugging_hooks.noop_hook)
    return found + fit(model, rank, size)


def sparse(rank, size, folder):
    """Embeddings with sparse gradients, of which processes see different rows."""
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.Linear(4, 1)))
    losses, rows = [], optim.SparseAdam([model.module[0].weight], lr=0.1)
    for i in range(3):
        rows.zero_grad()
        loss = model(torch.tensor([rank, 2 + i, 2])).square().sum()
        loss.backward()
        rows.step()
        losses.append(loss.item())
    total = torch.eye(3).to_sparse() * (rank + 1)
    dist.all_reduce(total)
    return [*losses, model.module[0].weight.sum().item(), *total.to_dense().flatten().tolist()]


def on_meta(rank, size, folder):
    """FSDP2's tutorial: a model on device meta, cut, given memory, and loaded from whole tensors."""
    with torch.device("meta"):
        model = net()
    fully_shard(model[0])
    fully_shard(model)
    model.to_empty(device="cpu")
    cut = model.state_dict()
    whole = net().state_dict()
    parts = {k: nn.Parameter(distribute_tensor(v, cut[k].device_mesh, cut[k].placements)) for k, v in whole.items()}
    model.load_state_dict(parts, assign=True)
    losses = fit(model, rank, size)
    model[2].weight.requires_grad_(False)
    return losses + fit(model, rank, size, optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1))


def init(module):
    module.to_empty(device="cpu")
    torch.manual_seed(0)
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()


def older(rank, size, folder):
    """FSDP1 with groups, modules on device meta, and the optimiser's state."""
    with torch.device("meta"):
        empty = net()
    options = {"device_id": CPU, "use_orig_params": True}
    losses = fit(FSDP(empty, param_init_fn=init, **options), rank, size)
    losses += fit(FSDP(net(), process_group=dist.group.WORLD, **options), rank, size)
    mesh = init_device_mesh("cpu", (1, size), mesh_dim_names=("copies", "parts"))
    groups = mesh.get_group("parts"), mesh.get_group("copies")
    hybrid = {"process_group": groups, "sharding_strategy": ShardingStrategy.HYBRID_SHARD}
    model = FSDP(net(), **hybrid, **options)
    opt = optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    losses += fit(model, rank, size, opt)
    other = FSDP(net(), **options)
    again = optim.SGD(other.parameters(), lr=1e-2, momentum=0.9)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig()):
        kind = str(FSDP.get_state_dict_type(model).state_dict_type)
        state, named = model.state_dict(), copy.deepcopy(FSDP.optim_state_dict(model, opt))
    with FSDP.state_dict_type(other, StateDictType.FULL_STATE_DICT, FullStateDictConfig()):
        other.load_state_dict(state)
        again.load_state_dict(FSDP.optim_state_dict_to_load(other, again, named))
    return [*losses, *fit(model, rank, size, opt), *fit(other, rank, size, again), len(named["state"]), kind]


def one_file(rank, size, folder):
    """A checkpoint as one file, and back."""
    where, state = os.path.join(folder, "dcp"), {"w": {"a": torch.arange(6.0).reshape(2, 3)}, "l": [torch.ones(2), 3]}
    dcp.save(state, checkpoint_id=where)
    found = []
    if rank == 0:
        dcp_to_torch_save(where, where + ".pt")
        read = torch.load(where + ".pt", weights_only=True)
        found += [*read["w"]["a"].flatten().tolist(), *read["l"][0].tolist(), read["l"][1]]
        torch_save_to_dcp(where + ".pt", where + "2")
        target = {"w": {"a": torch.zeros(2, 3)}}
        dcp.load(target, checkpoint_id=where + "2", no_dist=True)
        found += target["w"]["a"].flatten().tolist()
    return found


PROGRAMS = [mistakes, hooks, sparse, on_meta, older, one_file]


def begin(folder, name):
    """The processes meet at a file."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{folder}/{name}", rank=rank, world_size=size)


def main():
    begin(sys.argv[1], "first")
    report(PROGRAMS)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

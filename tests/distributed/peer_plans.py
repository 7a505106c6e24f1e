"""Planners and storages of a program's own, collectives that are counted, meshes, uneven parts, messages, resumed samplers."""

import dataclasses
import io
import os
import pickle
import re
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.distributed.checkpoint as dcp
from peer_common import net, raised, report
from torch import nn
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.metadata import MetadataIndex, StorageMeta, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadItemType, SavePlan, WriteItemType
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.experimental import implicit_replication, local_map
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.futures import Future
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def full(x):
    return x.full_tensor().tolist() if isinstance(x, DTensor) else x.tolist()


# ---- counts
# ------------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)).relu())


def counted(rank, size, folder):
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
    found = []
    for plan in (
        {"up": ColwiseParallel(), "down": RowwiseParallel()},
        {"up": ColwiseParallel(use_local_output=False), "down": RowwiseParallel(output_layouts=Shard(1))},
        {"up": ColwiseParallel(input_layouts=Shard(1)), "down": RowwiseParallel(output_layouts=Shard(1))},
    ):
        torch.manual_seed(0)
        block, mode = Block(), CommDebugMode()
        parallelize_module(block, mesh, plan)
        with mode:
            out = block.down(block.up(torch.ones(2, 4, 8)).relu())
        counts = {str(k): n for k, n in mode.get_comm_counts().items()}
        of_modules = {
            name: {way: {str(k): n for k, n in c.items()} for way, c in both.items()}
            for name, both in mode.comm_module_counts.items()
        }
        found += [mode.get_total_counts(), counts, of_modules, list(out.shape)]
    x = torch.ones(4, 4)
    with mode:
        dist.all_reduce(x), dist.broadcast(x, 0), dist.barrier()
        funcol.all_reduce(x, "sum", mesh), funcol.all_gather_tensor(x, 1, mesh)
        funcol.reduce_scatter_tensor(x, "sum", 1, mesh)
    found += [{str(k): n for k, n in mode.get_comm_counts().items()}, repr(mode)]
    found.append(mode.get_comm_counts()[torch.ops.c10d_functional.all_reduce])
    table = re.sub(r"\033\[[0-9;]*m", "", mode.generate_comm_debug_tracing_table(noise_level=0))
    return [*found, table, repr(mesh)]


# ---- planners and storages -------------------------------------------------------------------------------------------


class Renaming(DefaultSavePlanner):
    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        super().set_up_planner({"renamed": state_dict}, storage_meta, is_coordinator)


class Half(DefaultSavePlanner):
    """Writes tensors with 16 bits."""

    def create_local_plan(self):
        plan = super().create_local_plan()
        items = []
        for item in plan.items:
            if item.type != WriteItemType.BYTE_IO:
                properties = dataclasses.replace(item.tensor_data.properties, dtype=torch.bfloat16)
                item = dataclasses.replace(
                    item, tensor_data=dataclasses.replace(item.tensor_data, properties=properties)
                )
            items.append(item)
        return dataclasses.replace(plan, items=items)

    def resolve_data(self, write_item):
        data = super().resolve_data(write_item)
        return data if write_item.type == WriteItemType.BYTE_IO else data.to(torch.bfloat16)


class Only(DefaultLoadPlanner):
    """Reads entries of some names, of a state dict that was saved under another, and records its calls."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        self.calls.append(("set_up_planner", sorted(metadata.state_dict_metadata), is_coordinator))
        super().set_up_planner({"renamed": state_dict}, metadata, is_coordinator)

    def create_local_plan(self):
        plan = super().create_local_plan()
        self.calls.append(("create_local_plan", sorted(item.dest_index.fqn for item in plan.items)))
        return plan

    def create_global_plan(self, global_plan):
        self.calls.append(("create_global_plan", len(global_plan)))
        return super().create_global_plan(global_plan)

    def finish_plan(self, central_plan):
        self.calls.append(("finish_plan",))
        return super().finish_plan(central_plan)

    def commit_tensor(self, read_item, tensor):
        self.calls.append(("commit_tensor", read_item.dest_index.fqn, list(read_item.lengths), list(tensor.shape)))


def planners(rank, size, folder):
    mesh = init_device_mesh("cpu", (size,))
    state = {
        "w": distribute_tensor(torch.arange(10.0).view(5, 2), mesh, [Shard(0)]), "b": torch.arange(3.0), "step": 7,
        "more": {"names": ["a", "b"]},
    }  # fmt: skip
    where, calls = os.path.join(folder, "renamed"), []
    written = dcp.save(state, checkpoint_id=where, planner=Renaming())
    found = [sorted(written.state_dict_metadata), type(written).__name__]
    w = written.state_dict_metadata["renamed.w"]
    found += [isinstance(w, TensorStorageMetadata), list(w.size), [[list(c.offsets), list(c.sizes)] for c in w.chunks]]
    read = {"w": distribute_tensor(torch.zeros(5, 2), mesh, [Shard(1)]), "step": 0}
    dcp.load(read, checkpoint_id=where, planner=Only(calls))
    planned = [call for call in calls if call[0] != "commit_tensor"]
    found += [full(read["w"]), read["step"], planned, sorted(call for call in calls if call not in planned)]
    where = os.path.join(folder, "half")
    state["w"] = state["w"] + 1 / 512
    dcp.save(state, checkpoint_id=where, planner=Half())
    kept = dcp.FileSystemReader(where).read_metadata().state_dict_metadata
    found.append([str(kept[k].properties.dtype) for k in ("w", "b")])
    read = {"w": torch.zeros(5, 2), "b": torch.zeros(3), "step": 0, "more": {"names": []}}
    dcp.load(read, checkpoint_id=where)
    return [*found, full(read["w"]), full(read["b"]), read["step"], read["more"]]


def refused(call):
    try:
        call()
    except dcp.CheckpointException:
        return True
    return False


class OwnWriter(StorageWriter):
    """A file for each process and one for all, with pickles; it records its calls."""

    def __init__(self, folder):
        self.folder, self.calls = folder, []

    def reset(self, checkpoint_id=None):
        self.calls.append(("reset", checkpoint_id is not None))
        self.folder = checkpoint_id or self.folder

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        self.calls.append(("set_up_storage_writer", is_coordinator, sorted(kwargs), kwargs.get("rank")))

    def prepare_local_plan(self, plan):
        self.calls.append(("prepare_local_plan", sorted(item.index.fqn for item in plan.items)))
        os.makedirs(self.folder, exist_ok=True)
        return dataclasses.replace(plan, storage_data=f"of {dist.get_rank()}")

    def prepare_global_plan(self, plans):
        self.calls.append(("prepare_global_plan", [plan.storage_data for plan in plans]))
        return [dataclasses.replace(plan, storage_data=f"file{i}") for i, plan in enumerate(plans)]

    def write_data(self, plan, planner):
        kept, results = {}, []
        for item in plan.items:
            data = planner.resolve_data(item)
            data = data.getvalue() if isinstance(data, io.BytesIO) else data.detach().contiguous().numpy().tobytes()
            kept[item.index.fqn, item.index.offset and tuple(item.index.offset)] = data
            results.append(WriteResult(item.index, len(data), plan.storage_data))
        with open(os.path.join(self.folder, plan.storage_data), "wb") as out:
            pickle.dump(kept, out)
        self.calls.append(("write_data", plan.storage_data, sorted(name for name, _ in kept)))
        done = Future()
        done.set_result(results)
        return done

    def finish(self, metadata, results):
        self.calls.append(("finish", len(results), sorted({r.storage_data for part in results for r in part})))
        where = {(r.index.fqn, r.index.offset and tuple(r.index.offset)): r.storage_data for p in results for r in p}
        metadata.storage_data = where
        with open(os.path.join(self.folder, "all"), "wb") as out:
            pickle.dump(metadata, out)

    def storage_meta(self):
        return StorageMeta(self.folder)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True


class OwnReader(StorageReader):
    def __init__(self, folder):
        self.folder, self.calls = folder, []

    def reset(self, checkpoint_id=None):
        self.calls.append(("reset", checkpoint_id is not None))

    def read_metadata(self, *args, **kwargs):
        with open(os.path.join(self.folder, "all"), "rb") as file:
            return pickle.load(file)

    def set_up_storage_reader(self, metadata, is_coordinator):
        self.calls.append(("set_up_storage_reader", is_coordinator))
        self.metadata = metadata

    def prepare_local_plan(self, plan):
        self.calls.append(("prepare_local_plan", sorted(item.dest_index.fqn for item in plan.items)))
        return plan

    def prepare_global_plan(self, plans):
        self.calls.append(("prepare_global_plan", len(plans)))
        return plans

    def read_data(self, plan, planner):
        for item in plan.items:
            key = item.storage_index.fqn, item.storage_index.offset and tuple(item.storage_index.offset)
            with open(os.path.join(self.folder, self.metadata.storage_data[key]), "rb") as file:
                data = pickle.load(file)[key]
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(data))
                continue
            saved = self.metadata.state_dict_metadata[item.storage_index.fqn]
            chunk = next(c for c in saved.chunks if c.offsets == item.storage_index.offset)
            whole = torch.frombuffer(bytearray(data), dtype=saved.properties.dtype).view(list(chunk.sizes))
            for dim, (start, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
                whole = whole.narrow(dim, start, length)
            target = planner.resolve_tensor(item).detach()
            target.copy_(whole)
            planner.commit_tensor(item, target)
        done = Future()
        done.set_result(None)
        return done

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True


def storages(rank, size, folder):
    mesh = init_device_mesh("cpu", (size,))
    state = {
        "w": distribute_tensor(torch.arange(15.0).view(5, 3), mesh, [Shard(0)]),
        "u": distribute_tensor(torch.arange(4.0), mesh, [Replicate()]), "n": 3, "t": {"x": torch.ones(2)},
    }  # fmt: skip
    writer = OwnWriter(os.path.join(folder, "nowhere"))
    where = os.path.join(folder, "own")
    planner = DefaultSavePlanner(dedup_save_to_lowest_rank=True)
    made = dcp.save(state, checkpoint_id=where, storage_writer=writer, planner=planner)
    found = [writer.calls, str(made.storage_data is not None) if rank == 0 else ""]
    reader = OwnReader(where)
    read = {
        "w": distribute_tensor(torch.zeros(5, 3), mesh, [Shard(1)]), "u": torch.zeros(4), "n": 0,
        "t": {"x": torch.zeros(2)},
    }  # fmt: skip
    dcp.load(read, storage_reader=reader)
    found += [reader.calls, full(read["w"]), full(read["u"]), read["n"], full(read["t"]["x"])]
    index = MetadataIndex("w", [0, 0], 5)
    found += [index == MetadataIndex("w", torch.Size([0, 0])), index == MetadataIndex("w"), SavePlan([]).usable]

    class Broken(OwnWriter):
        def write_data(self, plan, planner):
            if rank == 1:
                raise OSError("the disk is full")
            return super().write_data(plan, planner)

    found.append(refused(lambda: dcp.save(state, storage_writer=Broken(os.path.join(folder, "broken")))))
    return [*found, refused(lambda: dcp.load({"other": 1}, storage_reader=OwnReader(where)))]


def resharded(rank, size, folder):
    """Uneven parts, saved in one way and loaded in all others."""
    mesh = init_device_mesh("cpu", (size,))
    whole, found = torch.arange(21.0).view(7, 3), []
    ways = ([Shard(0)], [Shard(1)], [Replicate()])
    for i, way in enumerate(ways):
        where = os.path.join(folder, f"way{i}")
        state = {"w": distribute_tensor(whole, mesh, way), "one": distribute_tensor(torch.ones(1), mesh, [Shard(0)])}
        dcp.save(state, checkpoint_id=where)
        for other in ways:
            read = {"w": distribute_tensor(torch.zeros(7, 3), mesh, other), "one": torch.zeros(1)}
            dcp.load(read, checkpoint_id=where)
            found.append([full(read["w"]) == whole.tolist(), list(read["w"].to_local().shape), full(read["one"])])
        plain = {"w": torch.zeros(7, 3)}
        dcp.load(plain, checkpoint_id=where, no_dist=True)
        found.append(plain["w"].equal(whole))
    wrong = {"w": torch.zeros(7, 4)}
    found.append(refused(lambda: dcp.load(wrong, checkpoint_id=where)))
    return found


# ---- meshes and DTensors ---------------------------------------------------------------------------------------------


def slices(rank, size, folder):
    mesh = init_device_mesh("cpu", (1, size, 1), mesh_dim_names=("pp", "dp", "tp"))
    found = [
        repr(mesh).partition("stride")[0],
        mesh.size(),
        mesh.ndim,
        list(mesh.shape),
        mesh.get_coordinate(),
        mesh.mesh.tolist(),
    ]
    for names in ("dp", ("dp", "tp"), ("pp", "dp"), ("tp", "dp")):
        part = mesh[names]
        found += [
            repr(part).partition("stride")[0],
            list(part.mesh_dim_names),
            list(part.shape),
            part.size(),
            part.mesh.tolist(),
        ]
    both = mesh["pp", "dp"]
    found += [both["dp"].get_local_rank(), both.get_group("dp").size(), mesh.get_local_rank("dp")]
    found += [dist.get_process_group_ranks(mesh.get_group("dp")), len(mesh.get_all_groups()), mesh.get_rank()]
    flat = mesh["dp", "tp"]._flatten("dp_tp")
    found += [repr(flat), mesh["dp_tp"].size(), dist.get_process_group_ranks(mesh["dp_tp"].get_group())]
    found += [
        mesh == init_device_mesh("cpu", (1, size, 1), mesh_dim_names=("pp", "dp", "tp")),
        mesh["dp"] == mesh["dp"],
    ]
    for wrong in (lambda: mesh["no"], lambda: mesh["no", "dp"], lambda: mesh.get_group(), lambda: mesh["dp", "dp"],
                  lambda: init_device_mesh("cpu", (3, size)), lambda: init_device_mesh("cpu", (size,), mesh_dim_names=("a", "b")),
                  lambda: init_device_mesh("cpu", (1, size), mesh_dim_names=("a", "a")), lambda: mesh.get_local_rank()):  # fmt: skip
        found.append(raised(wrong)[0])
    return found


def uneven(rank, size, folder):
    mesh, found = init_device_mesh("cpu", (size,)), []
    for n in (1, 3, 5):
        whole = torch.arange(float(n * 4)).view(n, 4) + 1
        d = distribute_tensor(whole, mesh, [Shard(0)])
        local = d.to_local()
        found += [list(local.shape), local.tolist(), list(d.shape), d.stride(), d.numel()]
        for made in (d.sum(), d.mean(0), d.sum(1), d * 2 + 1, d.t(), d @ distribute_tensor(torch.ones(4, 2), mesh, [Replicate()]), d.softmax(1), d.softmax(0),
                     d.redistribute(mesh, [Shard(1)]), d.redistribute(mesh, [Replicate()]), d.cumsum(0), d[:1]):  # fmt: skip
            found.append([list(made.shape), [round(v, 5) for v in made.full_tensor().reshape(-1).tolist()]])
        wanting = distribute_tensor(whole, mesh, [Shard(0)]).requires_grad_()
        (wanting * wanting).sum().backward()
        found += [
            str(wanting.grad.placements) if n > 1 else "",
            full(wanting.grad),
        ]  # for one row PyTorch's is replicated
    pieces = DTensor.from_local(torch.full((3 - rank, 2), float(rank)), mesh, [Shard(0)], shape=(5, 2), stride=(2, 1))
    found += [list(pieces.shape), list(pieces.to_local().shape)]
    terms = DTensor.from_local(torch.full((3,), rank + 1.0), mesh, [Partial()])
    found += [
        full(terms),
        full(terms.redistribute(mesh, [Shard(0)])),
        list(terms.redistribute(mesh, [Shard(0)]).to_local().shape),
    ]
    return found


def experiments(rank, size, folder):
    mesh = init_device_mesh("cpu", (size,))
    x = distribute_tensor(torch.arange(8.0).view(4, 2), mesh, [Shard(0)])
    w = distribute_tensor(torch.arange(4.0).view(2, 2), mesh, [Replicate()])

    def product(a, b):
        return a @ b

    rows = local_map(product, out_placements=[Shard(0)], in_placements=([Shard(0)], [Replicate()]), device_mesh=mesh)
    made = rows(x, w)
    found = [str(made.placements), full(made)]
    terms = local_map(product, out_placements=[Partial()], in_placements=([Shard(1)], [Shard(0)]), device_mesh=mesh,
                      redistribute_inputs=True)(x, w)  # fmt: skip
    found += [str(terms.placements), full(terms)]
    with implicit_replication():
        found.append(full(x + torch.ones(4, 2)))
    return [*found, raised(lambda: rows(w, x))[0], raised(lambda: x + torch.ones(4, 2))[0]]


# ---- messages, collectives and data ----------------------------------------------------------------------------------


def exchange(rank, size, folder):
    other, found = (rank + 1) % size, []
    sent = [torch.full((3,), 10.0 * rank + i) for i in range(3)]
    got = [torch.zeros(3) for _ in range(3)]
    work = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, t, other, tag=i) for i, t in enumerate(sent)]
        + [dist.P2POp(dist.irecv, t, other, tag=2 - i) for i, t in enumerate(got)]
    )
    for w in work:
        w.wait()
    found += [[t.tolist() for t in got], len(work)]
    group = dist.new_group([0, 1])
    ring = [dist.P2POp(dist.isend, sent[0], group=group, group_peer=1 - rank),
            dist.P2POp(dist.irecv, got[0], group=group, group_peer=1 - rank)]  # fmt: skip
    for w in dist.batch_isend_irecv(ring):
        w.wait()
    found += [got[0].tolist(), repr(ring[0]).split("pg=")[0], repr(ring[1]).partition("group_src")[2]]
    mixed = [ring[0], dist.P2POp(dist.irecv, got[0], other)]
    for wrong in (lambda: dist.batch_isend_irecv(mixed), lambda: dist.batch_isend_irecv(sent),
                  lambda: dist.P2POp(dist.send, sent[0], other), lambda: dist.P2POp(dist.isend, 3, other),
                  lambda: dist.P2POp(dist.isend, sent[0])):  # fmt: skip
        found.append(raised(wrong)[0])
    return found


def coalesced(rank, size, folder):
    from torch.distributed.distributed_c10d import _coalescing_manager

    parts = [torch.arange(float(n)) + 10 * rank for n in (2, 3)]
    wholes = [torch.zeros(size * n) for n in (2, 3)]
    with _coalescing_manager():
        for whole, part in zip(wholes, parts, strict=True):
            dist.all_gather_into_tensor(whole, part)
    found = [t.tolist() for t in wholes]
    with _coalescing_manager(async_ops=True) as manager:
        for part in parts:
            dist.all_reduce(part)
    manager.wait()
    found += [t.tolist() for t in parts]
    dist.all_reduce_coalesced(parts)
    stacked = torch.zeros(size, 2)
    dist.all_gather_into_tensor(stacked, parts[0].view(1, 2))
    return [*found, [t.tolist() for t in parts], stacked.tolist()]


def functional(rank, size, folder):
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("x",))
    x = torch.arange(8.0).view(2, 4) + rank
    found = [funcol.all_reduce(x, op, mesh).tolist() for op in ("sum", "max", "min", "product")]
    found += [funcol.all_gather_tensor(x, dim, mesh).tolist() for dim in (0, 1)]
    found += [funcol.reduce_scatter_tensor(x, "sum", dim, (mesh, 0)).tolist() for dim in (0, 1)]
    found.append(funcol.broadcast(x, 1, mesh).tolist())
    rows = torch.arange(3.0) + 10 * rank
    mine, theirs = ([1, 2], [1, 2]) if rank == 0 else ([2, 1], [2, 1])
    found.append(funcol.all_to_all_single(rows, theirs, mine, mesh).tolist())
    found.append([t.tolist() for t in funcol.all_reduce_coalesced([x, rows], "sum", mesh)])
    found.append([t.tolist() for t in funcol.all_gather_into_tensor_coalesced([x, rows], mesh)])
    found.append(funcol.wait_tensor(funcol.all_reduce(x, "sum", dist.group.WORLD)).tolist())
    leaf = x.clone().requires_grad_()
    (funcol.all_gather_tensor_autograd(leaf, 0, mesh) * torch.arange(16.0).view(4, 4)).sum().backward()
    found.append(leaf.grad.tolist())
    leaf = x.clone().requires_grad_()
    (funcol.reduce_scatter_tensor_autograd(leaf, "sum", 0, mesh) ** 2).sum().backward()
    found.append(leaf.grad.tolist())
    for wrong in (lambda: funcol.all_reduce(x, "no", mesh), lambda: funcol.reduce_scatter_tensor(rows, "sum", 0, mesh)):
        found.append(raised(wrong) != "no error")
    return found


def resumed(rank, size, folder):
    """A sampler that goes on in the middle of an epoch, and uneven data."""
    data, found = TensorDataset(torch.arange(11.0)), []
    for drop, shuffle in ((False, True), (True, True), (False, False)):
        sampler = DistributedSampler(data, shuffle=shuffle, seed=5, drop_last=drop)
        for epoch in (0, 1):
            sampler.set_epoch(epoch)
            indices = list(sampler)
            found += [len(sampler), indices, indices[2:]]
        loader = DataLoader(data, batch_size=2, sampler=sampler)
        found.append([batch[0].tolist() for batch in loader])
    few = DistributedSampler(TensorDataset(torch.arange(1.0)), num_replicas=4, rank=rank, shuffle=False)
    found += [list(few), len(few)]
    for wrong in (lambda: DistributedSampler(data, num_replicas=2, rank=2), lambda: DistributedSampler(data, 2, -1)):
        found.append(raised(wrong)[0])
    return found


def barriers(rank, size, folder):
    dist.monitored_barrier(timeout=timedelta(seconds=60))
    found = []
    group = dist.new_group([0, 1], timeout=timedelta(seconds=60))
    dist.monitored_barrier(group, wait_all_ranks=True)
    if rank == 0:
        late = dist.new_group([0, 1], timeout=timedelta(seconds=60))
        try:
            dist.monitored_barrier(late, timedelta(seconds=1), wait_all_ranks=True)
        except RuntimeError as error:
            found.append(bool(re.search(r"[Rr]anks? 1\b", str(error))))
    else:
        dist.new_group([0, 1], timeout=timedelta(seconds=60))
    model = net()
    return [*found, sum(p.numel() for p in model.parameters())]


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    report([counted, planners, storages, resharded, slices, uneven, experiments, exchange, coalesced, functional,
            resumed, barriers])  # fmt: skip
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

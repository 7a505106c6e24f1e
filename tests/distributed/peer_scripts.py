"""Fourteen scripts as people start them with ``torchrun``: run by PyTorch and by taeda on two processes."""

import contextlib
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
import torch.nn.functional as F
from peer_common import X, Y, fit, net, raised, report
from torch import nn, optim
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

SOON = timedelta(milliseconds=100)


def rough_ensemble(rank, size, folder):
    """Accumulated gradients, autocast, clipping, a schedule, and an average of the weights."""
    model = DDP(net())
    average = optim.swa_utils.AveragedModel(model.module, avg_fn=lambda a, b, n: 0.9 * a + 0.1 * b)
    opt = optim.AdamW(model.parameters(), lr=1e-2)
    schedule, scaler = optim.lr_scheduler.CosineAnnealingLR(opt, 6), torch.amp.GradScaler("cpu", enabled=False)
    data, found = TensorDataset(X, Y), []
    sampler = DistributedSampler(data, shuffle=True, seed=3)
    loader = DataLoader(data, batch_size=2, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            with contextlib.nullcontext() if i % 2 else model.no_sync():
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = F.mse_loss(model(x), y.to(torch.bfloat16)) / 2
                scaler.scale(loss).backward()
            if i % 2:
                scaler.unscale_(opt)
                norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(opt)
                scaler.update()
                schedule.step()
                opt.zero_grad(set_to_none=True)
                average.update_parameters(model.module)
                found += [loss.item(), norm.item()]
    return [*found, sum(p.abs().mean().item() for p in average.parameters()), schedule.get_last_lr()[0]]


def samplers(rank, size, folder):
    data, found = TensorDataset(torch.arange(11.0)), []
    for options in ({}, {"shuffle": False}, {"drop_last": True}, {"seed": 7, "drop_last": True}):
        sampler = DistributedSampler(data, **options)
        for epoch in (0, 3):
            sampler.set_epoch(epoch)
            found += [list(sampler), len(sampler)]
    return [*found, raised(lambda: DistributedSampler(data, num_replicas=2, rank=2))]


def objects(rank, size, folder):
    everyone, mine = [None] * size, [None]
    dist.all_gather_object(everyone, {"rank": rank, "list": torch.tensor([rank]).tolist()})
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(("x", rank), gathered, dst=0)
    sent = [{"a": 1}, [1, 2]] if rank == 0 else [None, None]
    dist.broadcast_object_list(sent, src=0)
    dist.scatter_object_list(mine, ["for 0", "for 1"] if rank == 0 else None, src=0)
    two = [1, "z"] if rank == 0 else [None, None]
    if rank == 0:
        dist.send_object_list(two, dst=1)
    else:
        dist.recv_object_list(two, src=0)
    return [everyone, gathered, sent, mine, two, raised(lambda: dist.all_gather_object(everyone, lambda: 3))]


def messages(rank, size, folder):
    other = 1 - rank
    a, b, c = torch.full((3,), float(rank)), torch.empty(3), torch.empty(2)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, a, other), dist.P2POp(dist.irecv, b, other)]):
        work.wait()
    found = b.tolist()
    for tag in (4, 5):
        if rank == 0:
            dist.send(torch.tensor([1.0, tag]), 1, tag=tag)
        else:
            found += [dist.recv(c, tag=tag), *c.tolist()]
    receiving, sending = dist.irecv(b, other), dist.isend(a * 2, other)
    sending.wait()
    found += [bool(receiving.wait()), receiving.is_completed(), *b.tolist()]
    wrong = [
        lambda: dist.send(a, rank), lambda: dist.P2POp("x", a, other), lambda: dist.P2POp(dist.isend, a),
        lambda: dist.send([1], other), lambda: dist.batch_isend_irecv([3]), lambda: dist.P2POp(dist.all_reduce, a, 0),
    ]  # fmt: skip
    return [found, *map(raised, wrong)]


def waiting(rank, size, folder):
    """Timeouts of works, groups and barriers."""
    group, late = dist.new_group([0, 1], timeout=timedelta(seconds=100)), dist.new_group([0, 1])
    ones = torch.ones(2)
    work = dist.all_reduce(ones, group=group, async_op=True)
    found = [work.wait(timedelta(seconds=100)), work.is_completed(), ones.tolist()]
    if rank == 0:
        found.append(raised(lambda: dist.monitored_barrier(late, timeout=timedelta(seconds=1))))
    dist.barrier()
    dist.monitored_barrier(timeout=timedelta(seconds=100), wait_all_ranks=True)
    silent = dist.new_group([0, 1])
    if rank == 0:
        receiving = dist.irecv(torch.zeros(2), 1, group=silent)
        found.append(raised(lambda: receiving.wait(SOON)))
    dist.barrier()
    return [*found, raised(lambda: dist.monitored_barrier(timeout=3))]


def stores(rank, size, folder):
    shared = dist.FileStore(os.path.join(folder, "store"), size)
    prefixed = dist.PrefixStore("a/b", shared)
    if rank == 0:
        prefixed.set("k", "v")
    prefixed.wait(["k"])
    shared.add("count", 2)
    dist.barrier()
    found = [prefixed.get("k").decode(), shared.get("a/b/k").decode(), shared.add("count", 0)]
    table = dist.HashStore()
    table.set("x", "1")
    found += [
        table.get("x").decode(),
        table.add("n", 5),
        table.add("n", -2),
        table.delete_key("x"),
        table.delete_key("x"),
    ]
    for expected, wanted in (("", "first"), ("wrong", "second"), ("first", "third")):
        found.append(table.compare_set("c", expected, wanted).decode())
    found += [table.num_keys(), table.check(["c"]), table.check(["c", "zz"])]
    table.set_timeout(SOON)
    found += [raised(lambda: table.get("never")), raised(lambda: table.wait(["never"], SOON)), str(table.timeout)]
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    client = dist.TCPStore("127.0.0.1", server.port, 2, False, wait_for_workers=False)
    server.multi_set(["p", "q"], ["1", "2"])
    for value in ("one", "two"):
        client.queue_push("line", value)
    found += [client.queue_len("line"), client.queue_pop("line").decode(), client.queue_pop("line").decode()]
    found += [[value.decode() for value in client.multi_get(["p", "q"])], client.host, client.has_extended_api()]
    client.append("p", "34")
    found.append(client.get("p").decode())
    client.set_timeout(SOON)
    again = {"is_master": True, "wait_for_workers": False}
    wrong = [
        lambda: client.get("nope"), lambda: client.queue_pop("empty", block=False), lambda: dist.PrefixStore("a"),
        lambda: dist.TCPStore("127.0.0.1", server.port, **again), lambda: table.set("a", 3), lambda: table.set(3, "a"),
    ]  # fmt: skip
    return [*found, *map(raised, wrong)]


def before(rank, size, folder):
    """Without a group; then groups by a file and by an address."""
    dist.destroy_process_group()
    x, names = torch.ones(2), ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    calls = [
        dist.get_rank, dist.get_world_size, lambda: dist.all_reduce(x), dist.barrier, lambda: dist.new_group([0]),
        dist.destroy_process_group, lambda: DDP(net()), dist.get_backend, lambda: DistributedSampler([1, 2]),
        lambda: dist.init_process_group("gloo", init_method="ftp://127.0.0.1:0", rank=0, world_size=1),
        lambda: dist.init_process_group("gloo", timeout=3), lambda: dist.init_process_group(3),
        lambda: dist.init_process_group("pigeon", rank=0, world_size=1, store=dist.HashStore()),
    ]  # fmt: skip
    found = [dist.is_initialized(), dist.is_available(), *map(raised, calls)]
    saved = {name: os.environ.pop(name) for name in names}
    for name, value in zip(names, ("0", "1", "127.0.0.1", "1"), strict=True):
        found.append(raised(lambda: dist.init_process_group("gloo")))
        os.environ[name] = value
    os.environ.update(saved)
    place = [None]
    dist.init_process_group("gloo", init_method=f"file://{folder}/again", rank=rank, world_size=size)
    if rank == 0:
        server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        place, server = [server.port], None
    dist.broadcast_object_list(place, 0)
    found.append(raised(lambda: dist.init_process_group("gloo")))
    dist.destroy_process_group()
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{place[0]}", rank=rank, world_size=size)
    dist.all_reduce(x)
    return [*found, x.tolist()]


def wrong(rank, size, folder):
    """Arguments that no process can mean."""
    t, many = torch.ones(4), [torch.ones(4)] * size
    calls = [
        lambda: dist.all_reduce([1, 2]), lambda: dist.all_reduce(t, op="sum"), lambda: dist.broadcast(t),
        lambda: dist.broadcast(t, 5), lambda: dist.all_gather(t, t), lambda: dist.all_gather([t], t),
        lambda: dist.all_gather([torch.ones(3)] * size, t), lambda: dist.reduce_scatter(t, [t]),
        lambda: dist.all_gather([torch.ones(4, dtype=torch.int64)] * size, t), lambda: dist.get_rank("x"),
        lambda: dist.scatter(t, many, src=1 - rank), lambda: dist.gather(t, many, dst=1 - rank),
        lambda: dist.all_gather_into_tensor(torch.ones(7), t), lambda: dist.reduce_scatter_tensor(torch.ones(3), t),
        lambda: dist.all_to_all_single(torch.ones(4), t, [1, 2], [2, 2]), lambda: dist.new_group([9]),
        lambda: dist.all_reduce(torch.ones(2, dtype=torch.complex64), op=dist.ReduceOp.MAX), lambda: dist.reduce(t, 9),
        lambda: dist.barrier(device_ids=3), lambda: dist.new_group([0, 1], timeout=3), lambda: dist.ReduceOp("sum"),
        lambda: dist.all_reduce(t, group=3), lambda: dist.new_subgroups(3), lambda: dist.new_group([0, 0]),
        lambda: dist.all_reduce(t, dist.ReduceOp.BAND), lambda: init_device_mesh("cpu", (3,)),
        lambda: init_device_mesh("cpu", (size,), mesh_dim_names=("a", "b")), lambda: dist.all_gather_object("x", 1),
        lambda: init_device_mesh("cpu", (size,), mesh_dim_names=("a",))["b"],
        lambda: dist.scatter_object_list([], [1, 2], src=0),
    ]  # fmt: skip
    return [str(dist.ReduceOp.SUM), repr(dist.ReduceOp.MAX), *map(raised, calls)]


def zero(rank, size, folder):
    model = DDP(net())
    opt = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=optim.Adam, lr=1e-2)
    found = fit(model, rank, size, opt)
    opt.consolidate_state_dict(to=0)
    found.append(raised(opt.state_dict) if rank else len(opt.state_dict()["state"]))
    opt.add_param_group({"params": [nn.Parameter(torch.ones(3))], "lr": 0.5})
    return [*found, len(opt.param_groups), raised(lambda: ZeroRedundancyOptimizer([], optimizer_class=optim.Adam))]


def joins(rank, size, folder):
    model, found = DDP(net()), []
    opt = optim.SGD(model.parameters(), lr=0.1)
    batches = [(X[i : i + 2], Y[i : i + 2]) for i in range(0, 4 + 4 * rank, 2)]
    with Join([model]):
        for x, y in batches:
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            opt.step()
            found.append(loss.item())

    def until_the_first_ends():
        with Join([model], throw_on_early_termination=True):
            for x, y in batches:
                F.mse_loss(model(x), y).backward()

    total = sum(p.sum().item() for p in model.parameters())
    return [*found, total, raised(until_the_first_ends), raised(lambda: Join([]))]


def rough_hooks(rank, size, folder):
    def averages(state, bucket):
        state.append(bucket.index())
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] / size)

    low_rank = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    local = post_localSGD_hook.PostLocalSGDState(None, dist.new_subgroups(1)[0], start_localSGD_iter=2)
    found, seen = [], []
    for state, hook in [
        (None, default_hooks.fp16_compress_hook),
        (dist.group.WORLD, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)),
        (low_rank, powerSGD_hook.powerSGD_hook),
        (seen, averages),
        (local, post_localSGD_hook.post_localSGD_hook),
    ]:
        model = DDP(net(), bucket_cap_mb=0.0005 if state is seen else 25)
        model.register_comm_hook(state, hook)
        opt = optim.SGD(model.parameters(), lr=0.1)
        if state is local:
            opt = PostLocalSGDOptimizer(optim=opt, averager=PeriodicModelAverager(period=2, warmup_steps=2))
        found += fit(model, rank, size, opt, 2 if state is low_rank else 4)
    return [*found, sorted(set(seen)) == list(range(max(seen) + 1)), len(set(seen)) > 1]


def checkpoints(rank, size, folder):
    """Saved beside the training, loaded into another model; a writer and a reader of files."""
    where, other = os.path.join(folder, "saved"), os.path.join(folder, "other")

    def build():
        model = net()
        fully_shard(model[0])
        fully_shard(model)
        return model, optim.AdamW(model.parameters(), lr=1e-2)

    model, opt = build()
    found = fit(model, rank, size, opt, 2)
    state, of_opt = get_state_dict(model, opt)
    dcp.async_save({"model": state, "opt": of_opt, "step": 2}, checkpoint_id=where).result()
    found += fit(model, rank, size, opt, 2)
    model, opt = build()
    state, of_opt = get_state_dict(model, opt)
    loaded = {"model": state, "opt": of_opt, "step": 0}
    dcp.load(loaded, checkpoint_id=where)
    set_state_dict(model, opt, model_state_dict=loaded["model"], optim_state_dict=loaded["opt"])
    found += [loaded["step"], *fit(model, rank, size, opt, 2)]
    dcp.save({"x": torch.arange(4.0)}, storage_writer=dcp.FileSystemWriter(other))
    read = {"x": torch.zeros(4)}
    dcp.load(read, storage_reader=dcp.FileSystemReader(other))
    names = dcp.FileSystemReader(where).read_metadata().state_dict_metadata
    return [
        *found,
        *read["x"].tolist(),
        sorted(n for n in names if n.startswith("model.")),
        raised(lambda: dcp.save({})),
    ]


def groups(rank, size, folder):
    alone, t, x = [dist.new_group([r]) for r in range(size)], torch.ones(2) * (rank + 1), torch.arange(4.0) + rank
    found = [dist.get_rank(alone[0]), dist.get_world_size(alone[1]), dist.get_process_group_ranks(alone[rank])]
    found += [dist.get_backend(alone[rank]), alone[rank].rank(), alone[rank].size()]
    dist.all_reduce(t, group=alone[rank])
    found += [*t.tolist(), dist.all_reduce(t, group=alone[1 - rank])]
    dist.broadcast(t, src=1, group=dist.new_group([1, 0]))
    mine, everyone = dist.new_subgroups(1)
    found += [*t.tolist(), dist.get_world_size(mine), len(everyone)]
    found.append(dist.get_rank(dist.new_subgroups_by_enumeration([[0], [1]])[0]))
    four, two, eight = torch.empty(4), torch.empty(2), torch.empty(8)
    dist.all_to_all_single(four, x, [2, 2], [2, 2])
    dist.reduce_scatter_tensor(two, x)
    dist.all_gather_into_tensor(eight, x)
    found += [*four.tolist(), *two.tolist(), *eight.tolist()]
    for op in (dist.ReduceOp.MIN, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT, dist.ReduceOp.AVG):
        y = x.clone()
        dist.all_reduce(y, op)
        found += y.tolist()
    whole, complex_ = torch.tensor([6 + rank]), torch.ones(1, dtype=torch.complex64) * (1 + 1j)
    dist.all_reduce(whole, dist.ReduceOp.BXOR)
    dist.all_reduce(complex_)
    return [*found, *whole.tolist(), str(complex_.tolist()), str(dist.Backend("GLOO")), dist.is_gloo_available()]


def fails(rank, count):
    if rank:
        raise ValueError(f"child {rank} of {count}")


def works(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/spawned", rank=rank, world_size=2)
    total = torch.ones(1) + rank
    dist.all_reduce(total)
    with open(os.path.join(folder, f"child{rank}"), "w") as file:
        file.write(str(total.item()))
    dist.barrier()
    dist.destroy_process_group()


def spawned(rank, size, folder):
    """Children, and their errors."""
    if rank:
        return []
    found = []
    for function, args in ((fails, (3,)), (works, (folder,))):
        try:
            mp.spawn(function, args=args, nprocs=2)
        except Exception as error:
            found += [type(error).__name__, "child 1 of 3" in str(error), error.error_index]
    with open(os.path.join(folder, "child0")) as file:
        return [*found, file.read()]


PROGRAMS = [
    rough_ensemble, samplers, objects, messages, waiting, stores, wrong, zero, joins, rough_hooks, checkpoints, groups,
    spawned, before,
]  # fmt: skip


@record
def main():
    dist.init_process_group("gloo", init_method="env://")
    assert int(os.environ["LOCAL_RANK"]) == dist.get_rank() == int(os.environ["RANK"])
    report(PROGRAMS)
    os._exit(0)


if __name__ == "__main__":
    main()

"""Programs of two processes, each with a GPU: collectives by NCCL, and training on them. Run by ``test_several.py``."""

import copy
import math
import os
import sys
import time
from datetime import timedelta

import taeda
import taeda.distributed as dist
from taeda import nn

F = nn.functional


def begin(backend="nccl", **options):
    """This process's rank and its GPU."""
    dist.init_process_group(backend, **options)
    rank = dist.get_rank()
    taeda.cuda.set_device(rank)
    return rank, taeda.device("cuda", rank)


def raised(call):
    """The error of a call, in words."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def of(device, dtype=taeda.float32, *sizes):
    """Values that each process has its own of, exact in every dtype."""
    n = 1
    for size in sizes or (5,):
        n *= size
    return (taeda.arange(n) + 10 * device.index).to(dtype).reshape(sizes or (5,)).to(device)


def collectives():
    rank, device = begin()
    if len(sys.argv) > 2:  # races too, in an order that few programs expect
        taeda.zeros(1, device=device)
        sys.modules["tests.cuda.emulator"].driver().check("full", int(sys.argv[2]))
    assert dist.get_backend() == "nccl" and dist.is_nccl_available() and dist.get_backend_config() == "cuda:nccl"
    assert taeda.cuda.nccl.version()[0] == 2
    both = [of(taeda.device("cuda", r)).cpu() for r in range(2)]
    total = both[0] + both[1]
    kinds = (
        taeda.float32,
        taeda.float64,
        taeda.float16,
        taeda.bfloat16,
        taeda.int8,
        taeda.uint8,
        taeda.int32,
        taeda.int64,
    )
    for dtype in kinds:
        x = of(device, dtype)
        dist.all_reduce(x)
        assert x.dtype == dtype and x.device == device and taeda.equal(x.cpu(), total.to(dtype)), dtype
    x = of(device)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    assert taeda.equal(x.cpu(), total / 2)
    for op, expected in (
        (dist.ReduceOp.MAX, both[1]),
        (dist.ReduceOp.MIN, both[0]),
        (dist.ReduceOp.PRODUCT, both[0] * both[1]),
    ):
        x = of(device)
        dist.all_reduce(x, op)
        assert taeda.equal(x.cpu(), expected), op
    truth = taeda.tensor([False, rank == 0, True], device=device)
    dist.all_reduce(truth)
    assert truth.tolist() == [False, True, True]
    z = taeda.complex(of(device), of(device))
    dist.all_reduce(z)
    assert taeda.equal(z.cpu(), taeda.complex(total, total))

    x = of(device)
    dist.broadcast(x, 1)
    assert taeda.equal(x.cpu(), both[1])
    x = of(device)
    dist.reduce(x, 1)
    assert taeda.equal(x.cpu(), total if rank else both[0])
    slots = [taeda.empty(5, device=device) for _ in range(2)]
    dist.all_gather(slots, of(device))
    assert all(taeda.equal(a.cpu(), b) for a, b in zip(slots, both, strict=True))
    whole = taeda.empty(2, 5, device=device)
    dist.all_gather_into_tensor(whole, of(device))
    assert taeda.equal(whole.cpu(), taeda.stack(both))
    dist.all_gather_into_tensor(whole, whole[rank])  # in place
    assert taeda.equal(whole.cpu(), taeda.stack(both))
    part = taeda.empty(5, device=device)
    dist.reduce_scatter_tensor(part, whole.reshape(-1))
    assert taeda.equal(part.cpu(), 2 * both[rank])
    dist.reduce_scatter(part, [of(device), of(device) + 1])
    assert taeda.equal(part.cpu(), total + 2 * rank)
    gathered = [taeda.empty(5, device=device) for _ in range(2)] if rank == 0 else None
    dist.gather(of(device), gathered)
    assert rank or all(taeda.equal(a.cpu(), b) for a, b in zip(gathered, both, strict=True))
    dist.scatter(part, [b.to(device) for b in both] if rank == 1 else None, src=1)
    assert taeda.equal(part.cpu(), both[rank])
    outs = [taeda.empty(r + 1 + rank, device=device) for r in range(2)]
    dist.all_to_all(outs, [taeda.full((rank + 1 + r,), 10.0 * rank + r, device=device) for r in range(2)])
    assert [o.tolist() for o in outs] == [[10.0 * r + rank] * (r + 1 + rank) for r in range(2)]
    even = taeda.empty(4, device=device)
    dist.all_to_all_single(even, taeda.arange(4.0, device=device) + 10 * rank)
    assert even.tolist() == [2 * rank, 2 * rank + 1, 2 * rank + 10, 2 * rank + 11]

    # messages in both directions, and in one batch; strided tensors
    here, there = of(device), taeda.empty(5, device=device)
    if rank:
        assert dist.recv(there, 0) == 0
        dist.send(here, 0)
    else:
        dist.send(here, 1)
        assert dist.recv(there) == 1
    assert taeda.equal(there.cpu(), both[1 - rank])
    works = [dist.irecv(there.zero_(), 1 - rank), dist.isend(here, 1 - rank)]
    for work in works:
        work.wait()
    assert taeda.equal(there.cpu(), both[1 - rank])
    grid = taeda.zeros(5, 2, device=device)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, here, 1 - rank), dist.P2POp(dist.irecv, grid[:, 1], 1 - rank)]
    )
    assert len(works) == 1 and works[0].wait()
    assert taeda.equal(grid[:, 1].cpu(), both[1 - rank]) and not grid[:, 0].any()
    dist.all_reduce(grid[:, 1])
    assert taeda.equal(grid[:, 1].cpu(), total)

    # work that is not waited for orders streams; its memory is not given out before
    x = of(device)
    work = dist.all_reduce(x, async_op=True)
    y = x.new_zeros(5)
    assert work.wait() and taeda.equal((x + y).cpu(), total) and work.is_completed() and work.result()[0] is x
    later = dist.all_reduce(of(device), async_op=True).get_future().then(lambda f: f.value()[0] * 2)
    assert taeda.equal(later.wait().cpu(), 2 * total)
    dist.all_reduce(of(device), async_op=True)
    dist.barrier()
    dist.barrier(device_ids=[rank])
    assert dist.barrier(async_op=True).wait()

    # objects, groups of some, and what is refused
    everyones = [None, None]
    dist.all_gather_object(everyones, {"rank": rank})
    assert everyones == [{"rank": 0}, {"rank": 1}]
    some = dist.new_group([1])
    if rank:
        x = of(device)
        dist.all_reduce(x, group=some)
        assert taeda.equal(x.cpu(), both[1])
    cpu = dist.new_group(backend="gloo")
    t = taeda.ones(2)
    dist.all_reduce(t, group=cpu)
    assert t.tolist() == [2.0, 2.0]
    assert raised(lambda: dist.all_reduce(t)).startswith(
        "RuntimeError: No backend type associated with device type cpu"
    )
    assert raised(lambda: dist.all_reduce(of(device), group=cpu)).startswith(
        "RuntimeError: No backend type associated with device type cuda"
    )
    assert raised(lambda: dist.all_gather([t, t], of(device, taeda.float32, 2))).startswith(
        "ValueError: Tensors must be CUDA and dense"
    )
    assert raised(lambda: dist.all_reduce(of(device, taeda.int16))).startswith(
        "TypeError: Input tensor data type is not supported for NCCL"
    )
    assert "BAND" in raised(lambda: dist.all_reduce(of(device, taeda.int32), dist.ReduceOp.BAND))
    dist.destroy_process_group()


def network():
    taeda.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 3))


def train(model, device, steps=3, optimizer=None):
    """Losses, of this process's half of each batch, and norms of gradients."""
    optimizer = optimizer or taeda.optim.AdamW(model.parameters(), lr=1e-2)
    rank, seen = dist.get_rank(), []
    for step in range(steps):
        taeda.manual_seed(step)
        x, y = (t.chunk(2)[rank].to(device) for t in (taeda.randn(16, 8), taeda.randint(0, 3, (16,))))
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen += [loss.item(), norm.item()]
    return seen


def data_parallel():
    """The bits of the CPU's processes, with kernels of one lane there."""
    rank, device = begin("cpu:gloo,cuda:nccl")
    DDP = nn.parallel.DistributedDataParallel
    for options in ({}, {"bucket_cap_mb": 0.0005}, {"find_unused_parameters": True}):
        here = train(DDP(network(), **options), "cpu")
        model = DDP(network().to(device), device_ids=[rank], output_device=rank, **options)
        assert train(model, device) == here, options
    assert all(p.device == device and p.grad.device == device for p in model.parameters())
    from taeda.distributed import optim
    from taeda.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    from taeda.distributed.algorithms.join import Join

    seen = []
    for place in ("cpu", device):
        model = DDP(network().to(place))
        model.register_comm_hook(None, default_hooks.bf16_compress_hook)
        cut = optim.ZeroRedundancyOptimizer(model.parameters(), optimizer_class=taeda.optim.AdamW, lr=1e-2)
        seen.append(train(model, place, optimizer=cut))
    assert seen[0] == seen[1]
    model = DDP(network().to(device))
    state = powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2, min_compression_rate=1)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    assert all(map(math.isfinite, train(model, device))) and state.q_memory_dict
    with Join([model]):
        for _ in range(1 + rank):
            model(taeda.ones(2, 8, device=device)).sum().backward()
    seen = []
    for place in ("cpu", device):
        model = nn.SyncBatchNorm.convert_sync_batchnorm(
            nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))
        )
        taeda.manual_seed(1)
        for p in model.parameters():
            nn.init.uniform_(p, -0.5, 0.5)
        seen.append(train(DDP(model.to(place)), place))
    assert seen[0] == seen[1]
    dist.destroy_process_group()


def sharded():
    """``fully_shard``, its states and checkpoints: losses of the CPU's processes, bit for bit."""
    import tempfile

    from taeda.distributed import checkpoint
    from taeda.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_model_state_dict,
        get_state_dict,
        set_model_state_dict,
        set_state_dict,
    )
    from taeda.distributed.device_mesh import init_device_mesh
    from taeda.distributed.fsdp import CPUOffloadPolicy, FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
    from taeda.distributed.tensor import DTensor

    rank, device = begin("cpu:gloo,cuda:nccl", device_id=taeda.device("cuda", int(os.environ["RANK"])))

    def build(kind, **options):
        model = network()
        mesh = init_device_mesh(kind, (2,))
        for layer in (model[0], model[3]):
            fully_shard(layer, mesh=mesh, **options)
        return fully_shard(model, mesh=mesh, **options)  # moves what is on the CPU

    low = MixedPrecisionPolicy(param_dtype=taeda.bfloat16, reduce_dtype=taeda.float32)
    for options in ({}, {"mp_policy": low}):
        here, model = train(build("cpu", **options), "cpu"), build("cuda", **options)
        there = train(model, device)
        assert there == here, (options, here, there)
    wrapped = [train(FullyShardedDataParallel(network().to(place)), place) for place in ("cpu", device)]
    assert wrapped[0] == wrapped[1]
    assert all(isinstance(p, DTensor) and p.device == p.grad.to_local().device == device for p in model.parameters())
    assert fully_shard(network().to(device))[0].weight.device_mesh.device_type == "cuda"
    assert raised(lambda: fully_shard(network().to(device), offload_policy=CPUOffloadPolicy())).startswith(
        "NotImplementedError"
    )

    # a checkpoint of the GPUs is read by both kinds of device; a whole state goes to the host of rank 0
    optimizer = taeda.optim.AdamW(model.parameters(), lr=1e-2)
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    train(model, device, 1, optimizer)
    kept, states = get_state_dict(model, optimizer)
    checkpoint.save({"model": kept, "optimizer": states}, checkpoint_id=folder[0])
    seen = []
    for kind, place in (("cpu", "cpu"), ("cuda", device)):
        other = build(kind, mp_policy=low)
        with taeda.no_grad():
            for p in other.parameters():
                p.zero_()
        read = taeda.optim.AdamW(other.parameters(), lr=1e-2)
        parts, state = get_state_dict(other, read)
        checkpoint.load({"model": parts, "optimizer": state}, checkpoint_id=folder[0])
        set_state_dict(other, read, model_state_dict=parts, optim_state_dict=state)
        seen.append(train(other, place, 2, read))
    assert seen[0] == seen[1] == train(model, device, 2, optimizer)
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    assert bool(whole) == (rank == 0) and all(t.device.type == "cpu" for t in whole.values())
    other = build("cuda")
    set_model_state_dict(other, whole, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    same = [
        taeda.equal(p.to_local(), q.to_local()) for p, q in zip(other.parameters(), model.parameters(), strict=True)
    ]
    assert all(same) and all(p.device == device for p in other.parameters())
    dist.destroy_process_group()


def cut():
    """DTensor: moves between layouts, and layers that are cut over two GPUs."""
    from taeda.distributed.device_mesh import init_device_mesh
    from taeda.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
    from taeda.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

    rank, device = begin("nccl", device_id=taeda.device("cuda", int(os.environ["RANK"])))
    mesh = init_device_mesh("cuda", (2,))
    whole = taeda.arange(15.0).reshape(5, 3)
    x = distribute_tensor(whole.to(device), mesh, [Shard(0)])
    assert x.to_local().device == device and x.to_local().shape == ((3, 3), (2, 3))[rank]
    for places in (Replicate(), Shard(1), Shard(0)):
        x = x.redistribute(mesh, [places])
        assert taeda.equal(x.full_tensor().cpu(), whole)
    assert taeda.equal(DTensor.from_local(whole.to(device), mesh, [Partial()]).full_tensor().cpu(), 2 * whole)
    assert (x @ x.t()).sum().full_tensor().item() == (whole @ whole.t()).sum().item()

    def build():
        taeda.manual_seed(1)
        return nn.Sequential(
            nn.Embedding(20, 8), nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8), nn.LayerNorm(8), nn.Linear(8, 20)
        )  # fmt: skip

    def losses(model, place):
        optimizer, seen = taeda.optim.SGD(model.parameters(), 0.1), []
        tokens = (taeda.arange(14) * 7 % 20).reshape(2, 7)
        for _ in range(3):
            scores = model(tokens[:, :-1].to(place))
            scores = scores.full_tensor() if isinstance(scores, DTensor) else scores
            loss = F.cross_entropy(scores.reshape(-1, 20), tokens[:, 1:].reshape(-1).to(place))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        return taeda.tensor(seen)

    expected = losses(build(), "cpu")
    layers = {"2": ColwiseParallel(), "4": RowwiseParallel(), "6": ColwiseParallel(output_layouts=Replicate())}
    along = {
        "0": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False),
        "1": SequenceParallel(),
        "2": ColwiseParallel(input_layouts=Shard(1)),
        "4": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "5": SequenceParallel(),
        "6": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    for plan in ({"0": RowwiseParallel(input_layouts=Replicate()), **layers}, along):
        model = parallelize_module(build().to(device), mesh, plan)
        taeda.testing.assert_close(losses(model, device), expected, atol=1e-5, rtol=0)
    dist.destroy_process_group()


def pipeline():
    """Stages on two GPUs: losses and gradients of one process."""
    from taeda.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B

    rank, device = begin()
    x, y = taeda.randn(8, 8, generator=taeda.Generator().manual_seed(2)), taeda.arange(8) % 3
    model = network()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    layers = [
        nn.Sequential(*model[:2]),
        nn.Sequential(model[2], model[3]),
        nn.Sequential(model[4]),
        nn.Sequential(model[5]),
    ]
    for kind, stages in ((Schedule1F1B, 2), (ScheduleInterleaved1F1B, 4)):
        each = 4 // stages
        own = [s for s in range(stages) if s % 2 == rank]
        parts = [nn.Sequential(*layers[s * each : (s + 1) * each]) for s in own]
        grads = [[p.grad.clone() for p in part.parameters()] for part in parts]
        copies = [copy.deepcopy(part).to(device) for part in parts]
        for part in copies:
            part.zero_grad()
        made = [PipelineStage(part, s, stages, device) for part, s in zip(copies, own, strict=True)]
        schedule = kind(made if stages == 4 else made[0], 4, loss_fn=F.cross_entropy)
        for _ in range(2):
            for part in copies:
                part.zero_grad()
            losses = []
            if rank == 0:
                schedule.step(x.to(device))
            else:
                schedule.step(target=y.to(device), losses=losses)
        for part, expected in zip(copies, grads, strict=True):
            for p, g in zip(part.parameters(), expected, strict=True):
                assert p.device == device
                taeda.testing.assert_close(p.grad.cpu(), g, atol=1e-5, rtol=1e-4)
        if rank:
            taeda.testing.assert_close(taeda.stack(losses).mean().cpu(), loss.detach(), atol=1e-5, rtol=0)
    dist.destroy_process_group()


def different():
    """Two processes with one GPU; calls that differ, which the host compares."""
    rank, device = begin()
    one = dist.new_group()
    said = raised(lambda: dist.all_reduce(taeda.ones(1, device="cuda:0"), group=one))
    assert (
        said.startswith("DistBackendError: NCCL error in ncclCommInitRank: invalid usage") and "Duplicate GPU" in said
    )
    x = of(device)
    said = raised(lambda: dist.broadcast(x, 0) if rank else dist.all_reduce(x))
    assert said.startswith("DistBackendError: mismatched collectives: ") and "broadcast(float32[5], src=0)" in said, (
        said
    )
    os._exit(print("done", flush=True) or 0)


def unordered():
    """A program that reads what a collective writes, without waiting for it, has a race."""
    from taeda.distributed.engines import guard

    guard._EACH = 60.0  # the emulator takes what the guard asks for what the program knows
    _, device = begin()
    emulator = sys.modules["tests.cuda.emulator"]
    x = of(device)
    (x + 1).tolist()
    dist.all_reduce(x)
    emulator.driver().check("full", 1)
    work = dist.all_reduce(x, async_op=True)
    x + 1
    assert "CUDA error" in raised(taeda.cuda.synchronize)
    assert any("nothing orders" in str(fault) for fault in emulator.faults()), emulator.faults()
    del work
    sys.modules["tests.cuda.emulator.nccl"].nccl().leave()
    print("done", flush=True)
    os._exit(0)  # nothing works on a GPU that has failed


def lost():
    """The other process ends, or does not come."""
    rank, device = begin(timeout=timedelta(seconds=60 if sys.argv[2] == "ends" else 3))
    x = of(device)
    dist.all_reduce(x)
    x.tolist()
    if rank:
        time.sleep(0 if sys.argv[2] == "ends" else 60)
        os._exit(3)
    dist.all_reduce(x)
    print("not reached", x.tolist())


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("done", flush=True)

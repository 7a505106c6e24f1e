"""Two and three processes: what collectives give, and that those that do not agree fail at once."""

import subprocess
import sys

import pytest

from .launch import launch, outputs


def test_collectives():
    code = """
    size = dist.get_world_size()
    t = taeda.arange(4) + 10 * rank
    def show(name, *values):
        print(name, [v.tolist() if isinstance(v, taeda.Tensor) else v for v in values])
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX, dist.ReduceOp.BXOR):
        x = t.clone(); dist.all_reduce(x, op); show(op.name, x)
    for dtype in (taeda.float16, taeda.bfloat16, taeda.complex64, taeda.uint8, taeda.float64):
        x = t.to(dtype).reshape(2, 2).t(); dist.all_reduce(x); show(dtype, x.cpu())
    x = t.float(); dist.all_reduce(x, dist.ReduceOp.AVG); show("mean", x)
    x = taeda.tensor(1.0 + rank); dist.all_reduce(x); show("0-d", x)
    x = taeda.zeros(0); dist.all_reduce(x); show("empty", x)
    x = t.clone(); dist.broadcast(x, 1); show("broadcast", x)
    x = t.clone(); dist.reduce(x, 1); show("reduce", x if rank == 1 else "kept" if x.equal(t) else "written")
    xs = [taeda.zeros_like(t) for _ in range(size)]; dist.all_gather(xs, t); show("all_gather", *xs)
    x = taeda.zeros(size * 4, dtype=t.dtype); dist.all_gather_into_tensor(x, t); show("into", x)
    xs = [taeda.zeros_like(t) for _ in range(size)]; dist.gather(t, xs if rank == 0 else None); show("gather", *xs)
    x = taeda.zeros_like(t); dist.scatter(x, [t + i for i in range(size)] if rank == 1 else None, src=1); show("scatter", x)
    xs = [taeda.zeros_like(t) for _ in range(size)]; dist.all_to_all(xs, [t + 100 * i for i in range(size)]); show("a2a", *xs)
    x = taeda.zeros(sum(range(1, size + 1)), dtype=t.dtype)
    dist.all_to_all_single(x, taeda.full((size * (rank + 1),), rank), [i + 1 for i in range(size)], [rank + 1] * size)
    show("single", x)
    x = taeda.zeros_like(t); dist.reduce_scatter(x, [t + i for i in range(size)]); show("reduce_scatter", x)
    objects = [None] * size; dist.all_gather_object(objects, {"rank": rank}); show("objects", objects)
    objects = [rank, "a" * (rank + 1)]; dist.broadcast_object_list(objects, src=1); show("objects", objects)
    works = [dist.all_reduce(t * i, async_op=True) for i in range(5)]
    x = t.clone(); dist.all_reduce(x); show("meanwhile", x, *[w.wait() for w in works], works[3].result()[0])
    if rank == 0:
        dist.send(t, 1); dist.send(t + 1, 1, tag=7); dist.send_object_list([{"a": 1}], 1)
    if rank == 1:
        a, b = taeda.zeros_like(t), taeda.zeros_like(t); later = dist.irecv(b, 0, tag=7)
        sender = dist.recv(a); later.wait(); objects = [None]; dist.recv_object_list(objects, 0)
        show("sent", sender, a, b, objects)
    ring = dist.batch_isend_irecv([dist.P2POp(dist.irecv, x, (rank - 1) % size), dist.P2POp(dist.isend, t, (rank + 1) % size)])
    [w.wait() for w in ring]; show("ring", x)
    group = dist.new_group([1, 0], sort_ranks=False)
    if rank < 2:
        x = t.clone(); dist.broadcast(x, 1, group=group); show("group", dist.get_rank(group), x, dist.get_global_rank(group, 0))
    if rank != 1:  # only its members make it
        alone = dist.new_group([0, size - 1][: 1 + (size == 3)], use_local_synchronization=True)
        x = t.clone(); dist.all_reduce(x, group=alone); show("local", x)
    x = t.clone(); dist.all_reduce(x, group=dist.new_group()); show("then", x)
    dist.barrier()
    dist.destroy_process_group()
    """
    for size in (2, 3):
        t = [[i + 10 * r for i in range(4)] for r in range(size)]
        summed = [sum(column) for column in zip(*t, strict=True)]
        got = [dict(line.split(" ", 1) for line in out.splitlines()) for out in outputs(code, size)]
        for rank, lines in enumerate(got):
            xor = [column[0] ^ column[1] ^ (column[2] if size == 3 else 0) for column in zip(*t, strict=True)]
            expected = {
                "SUM": [summed],
                "MIN": [t[0]],
                "MAX": [t[-1]],
                "BXOR": [xor],
                "mean": [[s / size for s in summed]],
                "0-d": [size * (size + 1) / 2],
                "empty": [[]],
                "broadcast": [t[1]],
                "reduce": [summed if rank == 1 else "kept"],
                "all_gather": t,
                "into": [[v for row in t for v in row]],
                "gather": t if rank == 0 else [[0] * 4] * size,
                "scatter": [[v + rank for v in t[1]]],
                "a2a": [[v + 100 * rank for v in row] for row in t],
                "single": [[i for i in range(size) for _ in range(i + 1)]],
                "reduce_scatter": [[v + size * rank for v in summed]],
                "objects": [[1, "aa"]],
                "meanwhile": [summed, *[True] * 5, [3 * v for v in summed]],
                "ring": [t[(rank - 1) % size]],
            }
            if rank == 1:
                expected["sent"] = [0, t[0], [v + 1 for v in t[0]], [{"a": 1}]]
            expected["then"] = [summed]
            if rank != 1:
                expected["local"] = [[a + b for a, b in zip(t[0], t[2], strict=True)] if size == 3 else t[0]]
            if rank < 2:
                expected["group"] = [1 - rank, t[1], 1]
            for name, value in expected.items():
                assert lines[name] == str(value), (size, rank, name)
        assert all(lines["torch.float16" if "torch.float16" in lines else "taeda.float16"] for lines in got)
        for name in ("float16", "bfloat16", "complex64", "uint8", "float64"):
            assert len({line for lines in got for key, line in lines.items() if key.endswith("." + name)}) == 1


@pytest.mark.parametrize(
    "ours, theirs, what",
    [
        ("dist.all_reduce(x)", "dist.barrier()", "mismatched collectives"),
        ("dist.all_reduce(x)", "dist.all_reduce(x[1:])", "mismatched collectives"),
        ("dist.all_reduce(x)", "dist.all_reduce(x.double())", "mismatched collectives"),
        ("dist.broadcast(x, 0)", "dist.barrier()", "mismatched collectives"),
        ("dist.broadcast(x, 1)", "dist.broadcast(x, 0)", ""),
        ("dist.recv(x, 1)", "sys.exit()", "rank 1 has ended"),
        ("dist.all_reduce(x)", "raise SystemError('mine')", "rank 1 has ended"),
        (
            "dist.all_reduce(x)",
            "dist.destroy_process_group(); import time; time.sleep(2)",
            "rank 1 has ended, or has left",
        ),
    ],
)
def test_what_does_not_agree_fails_at_once(ours, theirs, what):
    done = launch(f"x = taeda.ones(3)\n{ours} if rank == 0 else 0\nif rank: {theirs}\ndist.barrier()", 2)
    assert any(code for _, _, code in done) and (not what or any(what in err for _, err, _ in done)), done
    assert "timed out" not in "".join(err for _, err, _ in done)


def test_who_does_not_come_is_named():
    code = """
    group = dist.new_group(timeout=timedelta(seconds=2))
    dist.recv(taeda.ones(1), 0) if rank else dist.barrier(group)  # rank 1 waits until rank 0 is gone
    """
    done = launch(code, 2)
    assert "timed out after 0:00:02 waiting for rank 1" in done[0][1]
    code = """
    try:
        dist.init_process_group(init_method=f"tcp://127.0.0.1:{sys.argv[1:] or __import__('os').environ['MASTER_PORT']}",
                                rank=0, world_size=2, timeout=timedelta(seconds=1))
    except RuntimeError as error:
        print(error)
    """
    assert "1/2 joined" in outputs(code, 1, init=False)[0]


TRAIN = """
from taeda.nn.parallel import DistributedDataParallel
from taeda.utils.data import DataLoader, DistributedSampler, TensorDataset
taeda.manual_seed(rank)  # parameters begin as those of rank 0
class Model(taeda.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = taeda.nn.Linear(4, 8)
        self.norm = taeda.nn.BatchNorm1d(8)
        self.unused = taeda.nn.Linear(2, 2)
        self.sometimes = taeda.nn.Linear(8, 8)
        self.last = taeda.nn.Linear(8, 1)
    def forward(self, x, more):
        x = self.norm(self.first(x)).relu()
        return self.last(self.sometimes(x) if more else x)
model = DistributedDataParallel(Model(), find_unused_parameters=True, bucket_cap_mb=0.0001)
generator = taeda.Generator().manual_seed(3)
x, y = taeda.randn(32, 4, generator=generator), taeda.randn(32, 1, generator=generator)
data = TensorDataset(x, y)
sampler = DistributedSampler(data, seed=1)
optimizer = taeda.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for i, (a, b) in enumerate(DataLoader(data, 8, sampler=sampler)):
        with model.no_sync():
            (model(a, False) - b).square().mean().backward()
        (model(a, rank == 0 and i == 1) - b).square().mean().backward()
        if i == 0 and epoch == 0:
            print("first", [g.grad is not None for g in model.parameters()], model.module.last.weight.grad.tolist())
        optimizer.step()
        optimizer.zero_grad()
parameters = taeda.cat([p.detach().reshape(-1) for p in model.parameters()])
everyone = [taeda.empty_like(parameters) for _ in range(2)]
dist.all_gather(everyone, parameters)
assert everyone[0].equal(everyone[1]) and parameters.isfinite().all()
print("gone through", sorted(sampler)[:3])
"""


def test_data_parallel():
    one, two = outputs(TRAIN, 2)
    assert one.splitlines()[0] == two.splitlines()[0]
    used = eval(one.splitlines()[0].split(" ", 1)[1].partition("]")[0] + "]")
    assert used == [True] * 4 + [False] * 4 + [True] * 2


def test_backward_averages_what_a_forward_without_it_gave():
    """As ``Accelerator.trigger_sync_in_backward`` of accelerate does it."""
    code = """
model = taeda.nn.parallel.DistributedDataParallel(taeda.nn.Linear(3, 1))
with model.no_sync():
    losses = [model(taeda.full((2, 3), float(rank + i))).sum() for i in range(2)]
    losses[0].backward()
print("apart", model.module.weight.grad.tolist())
model.require_backward_grad_sync = True
model.reducer.prepare_for_backward([])
losses[1].backward()
print("equal", model.module.weight.grad.tolist())
"""
    for rank, text in enumerate(outputs(code, 2)):
        apart, equal = (eval(line.split(" ", 1)[1]) for line in text.splitlines()[:2])
        assert apart == [[2.0 * rank] * 3] and equal == [[4.0] * 3]


def test_gradients_are_those_of_the_whole_batch():
    code = """
    from taeda.nn.parallel import DistributedDataParallel
    import taeda.distributed.nn as dnn
    model = taeda.nn.Linear(3, 1, bias=False)
    taeda.nn.init.ones_(model.weight)
    x = taeda.arange(12.0).reshape(4, 3)
    wrapped = DistributedDataParallel(model)
    wrapped(x[2 * rank : 2 * rank + 2]).square().mean().backward()
    mine = model.weight.grad.clone()
    model.weight.grad = None
    model(x).square().mean().backward()
    assert taeda.allclose(mine, model.weight.grad)
    w = taeda.tensor([1.0 + rank], requires_grad=True)
    a, b = dnn.all_gather(w)
    (a * b * (rank + 1)).sum().backward()  # 3ab in all
    assert w.grad.item() == 3 * (2 - rank)
    w.grad = None
    (dnn.all_reduce(w) ** 2).backward()
    assert w.grad.item() == 12
    """
    outputs(code, 2)


def test_models_that_differ():
    code = """
    from taeda.nn.parallel import DistributedDataParallel
    DistributedDataParallel(taeda.nn.Linear(3, 1 + rank))
    """
    done = launch(code, 2)
    assert all("expects same model across all ranks" in err for _, err, _ in done)


def test_the_launcher(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(
        "import os, sys, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "x = torch.ones(2) * (dist.get_rank() + 1)\n"
        "dist.all_reduce(x)\n"
        "open(f'{sys.argv[1]}/{os.environ[\"LOCAL_RANK\"]}', 'w').write(str(x.tolist()))\n"
        "dist.destroy_process_group()\n"
        "if dist.is_available() and len(sys.argv) > 2 and os.environ['RANK'] == '1': sys.exit(3)\n"
    )
    run = [sys.executable, "-m", "taeda.standin", "-m", "torch.distributed.run", "--nproc_per_node=2", str(program)]
    subprocess.run([*run, str(tmp_path)], check=True)
    assert (tmp_path / "0").read_text() == (tmp_path / "1").read_text() == "[3.0, 3.0]"
    done = subprocess.run([*run, str(tmp_path), "fail"], capture_output=True, text=True)
    assert done.returncode == 3 and "rank 1 (local rank 1)" in done.stderr and "exit code 3" in done.stderr

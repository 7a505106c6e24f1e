"""Pipelines: the losses, outputs and gradients of one process, for every schedule, alone and with sharded stages."""

from .launch import outputs

CODE = """
from taeda import nn
from taeda.distributed.device_mesh import init_device_mesh
from taeda.distributed.fsdp import fully_shard
from taeda.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from taeda.distributed.tensor import DTensor
from taeda.nn.parallel import DistributedDataParallel as DDP
from tests.distributed.gpt import F, GPT, VOCABULARY, batches, tensor_parallel
n = dist.get_world_size()
class Part(nn.Module):
    def __init__(self, whole, index, parts):
        super().__init__()
        blocks = list(whole.blocks)
        size = len(blocks) // parts
        self.emb = whole.emb if index == 0 else None
        self.blocks = nn.ModuleList(blocks[index * size : (index + 1) * size])
        self.norm, self.head = (whole.norm, whole.head) if index == parts - 1 else (None, None)
    def forward(self, x):
        x = x if self.emb is None else self.emb(x)
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else self.head(self.norm(x))
def loss_of(scores, targets):
    return F.cross_entropy(scores.reshape(-1, VOCABULARY), targets.reshape(-1))
def seeded():
    taeda.manual_seed(1)
    return GPT(4)
batch = batches(1, 8)[0]
one = seeded()
scores = one(batch[:, :-1])
expected = loss_of(scores, batch[:, 1:])
expected.backward()
wanted = {id(p): None for p in one.parameters()}
def check(made, names):
    theirs = dict(one.named_parameters())
    for name, p in made.named_parameters():
        g = p.grad.full_tensor() if isinstance(p.grad, DTensor) else p.grad
        assert taeda.allclose(g, theirs[names[name]].grad, atol=1e-6), name
def run(kind, count, group=None, size=n, here=rank, change=lambda part: part, rows=batch):
    model = seeded()
    named = {id(p): name for name, p in model.named_parameters()}
    parts = [Part(model, i, count) for i in range(here, count, size)]
    names = [{k: named[id(p)] for k, p in part.named_parameters()} for part in parts]
    parts = [change(part) for part in parts]
    stages = [PipelineStage(part, i, count, group=group) for part, i in zip(parts, range(here, count, size))]
    schedule = kind(stages if kind is ScheduleInterleaved1F1B else stages[0], 4, loss_fn=loss_of)
    losses = []
    given = (rows[:, :-1],) if stages[0].is_first else ()
    last = stages[-1].is_last
    made = schedule.step(*given, **({"target": rows[:, 1:], "losses": losses} if last else {}))
    return made, losses, parts, names, schedule
"""


def test_schedules():
    code = """
    for kind, count in ((ScheduleGPipe, 2), (Schedule1F1B, 2), (ScheduleInterleaved1F1B, 4), (ScheduleInterleaved1F1B, 2)):
        made, losses, parts, names, schedule = run(kind, count)
        for part, own in zip(parts, names):
            check(part, own)
        if rank == n - 1:
            assert taeda.allclose(made, scores, atol=1e-5) and len(losses) == 4
            assert abs(sum(losses).item() / 4 - expected.item()) < 1e-6
        else:
            assert made is None
        made = schedule.eval(*((batch[:, :-1],) if rank == 0 else ()))
        assert made is None or taeda.allclose(made, scores, atol=1e-5)
    """
    outputs(CODE + code.replace("\n    ", "\n"), 2)


def test_with_data_parallel_stages():
    """Two stages, each of two processes: DDP, and fully_shard."""
    code = """
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    rows = batch.chunk(2)[mesh["dp"].get_local_rank()]
    changes = (lambda part: DDP(part, process_group=mesh.get_group("dp")), lambda part: fully_shard(part, mesh=mesh["dp"]))
    for kind in (ScheduleGPipe, Schedule1F1B):
        for change in changes:
            here = mesh["pp"].get_local_rank()
            made, losses, parts, names, _ = run(kind, 2, mesh.get_group("pp"), 2, here, change, rows)
            check(getattr(parts[0], "module", parts[0]), names[0])
    """
    outputs(CODE + code.replace("\n    ", "\n"), 4)


def test_with_tensor_parallelism():
    """Two stages, each cut over two processes; and the whole, cut over two, with DDP over the other two."""
    code = """
    from tests.distributed.gpt import train
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("other", "tp"))
    def cut(part):
        from taeda.distributed.tensor import Replicate
        from taeda.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        plan = {f"blocks.*.{name}": ColwiseParallel() for name in ("q", "k", "v", "up")}
        plan.update({f"blocks.*.{name}": RowwiseParallel() for name in ("o", "down")})
        return parallelize_module(part, mesh["tp"], plan)
    made, losses, parts, names, _ = run(Schedule1F1B, 2, mesh.get_group("other"), 2, rank // 2, cut)
    check(parts[0], names[0])
    assert rank // 2 == 0 or taeda.allclose(made, scores, atol=1e-5)
    def mean(loss):
        t = loss.clone()
        dist.all_reduce(t, dist.ReduceOp.AVG)
        return t.item()
    expected = train(seeded(), rows=8)
    model = DDP(tensor_parallel(seeded(), mesh["tp"]), process_group=mesh.get_group("other"))
    got = train(model, 2, rank // 2, rows=8, mean=mean)
    assert all(abs(a - b) < 1e-5 for x, y in zip(expected, got) for a, b in zip(x, y)), (expected, got)
    """
    outputs(CODE + code.replace("\n    ", "\n"), 4)

"""Pipelines: losses and gradients of one process, and of PyTorch; no order that locks; errors that say where."""

import json
import math

import pytest

import taeda
from taeda.distributed.pipelining import SplitPoint, bubbles, orders, pipe_split, pipeline
from taeda.distributed.pipelining.microbatch import TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks
from taeda.distributed.pipelining.split import SplitBackward

from . import launch as launching
from .launch import launch, outputs

MODEL = """
import json
from taeda import nn
from taeda.distributed.pipelining import *
def layers(count=4):
    taeda.manual_seed(0)
    return [nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(count)]
x, y = taeda.randn(8, 6, generator=taeda.Generator().manual_seed(1)), taeda.zeros(8, 6)
loss_fn = nn.functional.mse_loss
size = dist.get_world_size()
def grads(module):
    return [p.grad.flatten().tolist() for p in module.parameters()]
"""

SCHEDULES = """
for name, n in (("ScheduleGPipe", 4), ("Schedule1F1B", 4), ("Schedule1F1B", 8), ("ScheduleGPipe", 2),
                ("ScheduleInterleaved1F1B", 4), ("ScheduleLoopedBFS", 4), ("ScheduleInterleavedZeroBubble", 4),
                ("ScheduleZBVZeroBubble", 8), ("ScheduleDualPipeV", 8)):
    parts = layers(8)
    several, vee = name not in ("ScheduleGPipe", "Schedule1F1B"), "V" in name
    stages = 2 * size if several else size
    each = 8 // stages
    here = [rank, stages - 1 - rank] if vee else range(rank, stages, size)
    own = {s: nn.Sequential(*parts[s * each : s * each + each]) for s in here}
    built = [PipelineStage(m, s, stages, taeda.device("cpu")) for s, m in own.items()]
    schedule = globals()[name](built if several else built[0], n, loss_fn=loss_fn)
    for step in range(2):
        losses = []
        for m in own.values():
            m.zero_grad()
        last = {"target": y, "losses": losses} if stages - 1 in own else {}
        out = schedule.step(*([x] if rank == 0 else []), **last)
    print(json.dumps([name, n, [l.item() for l in losses], out.tolist() if out is not None else None,
                      {s: grads(m) for s, m in own.items()}]))
"""


TUTORIAL = """
import copy
class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.Embedding(50, 16)
        self.layers = nn.ModuleDict({str(i): nn.TransformerDecoderLayer(16, 4, 32, dropout=0.0) for i in range(2)})
        self.norm, self.output = nn.LayerNorm(16), nn.Linear(16, 50)
    def forward(self, tokens):
        h = self.embeddings(tokens) if self.embeddings is not None else tokens
        for layer in self.layers.values():
            h = layer(h, h)
        h = self.norm(h) if self.norm is not None else h
        return self.output(h) if self.output is not None else h
taeda.manual_seed(0)
model = Transformer()
tokens, target = taeda.randint(0, 50, (8, 6)), taeda.randint(0, 50, (8, 6))
def tokenwise_loss(out, target):
    return nn.CrossEntropyLoss()(out.reshape(-1, 50), target.reshape(-1))
part = copy.deepcopy(model)
del part.layers[str(1 - rank)]
if rank == 0:
    part.norm = part.output = None
else:
    part.embeddings = None
by_hand = PipelineStage(part, rank, 2, taeda.device("cpu"))
pipe = pipeline(module=model, mb_args=(tokens.chunk(4)[0],), split_spec={"layers.1": SplitPoint.BEGINNING})
traced = pipe.build_stage(rank, taeda.device("cpu"), dist.group.WORLD)
for stage, kind in ((by_hand, ScheduleGPipe), (traced, Schedule1F1B)):
    schedule = kind(stage, n_microbatches=4, loss_fn=tokenwise_loss)
    losses = []
    schedule.step(*([tokens] if rank == 0 else []), **({"target": target, "losses": losses} if rank else {}))
    size_of_grads = sum(p.grad.abs().sum().item() for p in stage.submod.parameters() if p.grad is not None)
    print(json.dumps(["tutorial", 4, [l.item() for l in losses], None, {"all": [size_of_grads]}]))
"""


def _close(a, b, tolerance=1e-6):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(_close(x, y, tolerance) for x, y in zip(a, b, strict=True))
    return math.isclose(a, b, rel_tol=tolerance * 10, abs_tol=tolerance)


ACCUMULATED = """
for kind in (ScheduleGPipe, Schedule1F1B):
    for n in (1, 3, 8):
        parts = layers(4)
        whole = nn.Sequential(*parts)
        for a, b in zip(x.tensor_split(n), y.tensor_split(n)):
            loss = loss_fn(whole(a), b)
            loss.backward(taeda.full_like(loss, 1 / n))
        own = nn.Sequential(*parts[2 * rank : 2 * rank + 2])
        expected = grads(own)
        own.zero_grad()
        stage = PipelineStage(own, rank, 2, "cpu")
        kind(stage, 2).step(*([x[:6]] if rank == 0 else []))  # another schedule may have other sizes
        own.zero_grad()
        schedule = kind(stage, n, loss_fn=loss_fn)
        schedule.step(*([x] if rank == 0 else []), target=y if rank else None)
        assert grads(own) == expected, (kind, n)
"""


def test_gradients_are_bitwise_those_of_accumulated_microbatches():
    outputs(MODEL + ACCUMULATED, 2)


def test_schedules_have_names():
    from taeda.distributed.pipelining import schedules

    assert schedules.get_schedule_class("1f1b") is schedules.Schedule1F1B
    assert schedules.get_schedule_class("ScheduleInterleaved1F1B") is schedules.ScheduleInterleaved1F1B
    assert schedules.get_schedule_class("DualPipeV") is schedules.ScheduleDualPipeV
    with pytest.raises(ValueError, match="Unknown schedule name"):
        schedules.get_schedule_class("2F2B")


def _whole_model():
    space = {"dist": type("dist", (), {"get_world_size": staticmethod(lambda: 1)})}
    exec("import taeda\n" + MODEL, space)
    parts = space["layers"](8)
    out = taeda.nn.Sequential(*parts)(space["x"])
    space["loss_fn"](out, space["y"]).backward()
    return out.tolist(), [p.grad.flatten().tolist() for part in parts for p in part.parameters()]


@pytest.mark.parametrize("size", [2, 4])
def test_every_schedule_gives_the_gradients_of_one_process(size):
    out, expected = _whole_model()
    processes = [[json.loads(line) for line in text.splitlines()] for text in outputs(MODEL + SCHEDULES, size)]
    assert all(len(lines) == 9 for lines in processes)
    for runs in zip(*processes, strict=True):
        found = {int(s): g for run in runs for s, g in run[4].items()}
        assert _close([g for s in sorted(found) for g in found[s]], expected), runs[0][0]
        end = 0 if "V" in runs[0][0] else -1
        assert _close(runs[end][3], out) and len(runs[end][2]) == runs[end][1]
        assert sum(run[3] is None and run[2] == [] for run in runs) == size - 1


def test_numbers_are_those_of_pytorch(monkeypatch):
    pytest.importorskip("torch")
    ours = outputs(MODEL + SCHEDULES + TUTORIAL, 2)
    monkeypatch.setattr(launching, "HEAD", launching.HEAD.replace("taeda", "torch"))
    theirs = outputs((MODEL + SCHEDULES + TUTORIAL).replace("taeda", "torch"), 2)
    assert all(len(text.splitlines()) == 11 for text in ours + theirs)
    for a, b in zip(ours, theirs, strict=True):
        for mine, other in zip(map(json.loads, a.splitlines()), map(json.loads, b.splitlines()), strict=True):
            assert mine[:2] == other[:2] and _close(mine[2], other[2]), mine[:2]
            assert mine[4].keys() == other[4].keys()
            assert all(_close(mine[4][s], other[4][s]) for s in mine[4]), mine[:2]


def test_tensors_of_many_kinds_pass_between_stages():
    code = """
    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(taeda.ones(3))
        def forward(self, x, ids):
            return x * self.weight, ids, x.to(taeda.bfloat16).t(), self.weight
    class Last(nn.Module):
        def forward(self, a, ids, b, unused, factor=1):
            assert ids.dtype == taeda.int64 and not ids.requires_grad and not b.requires_grad
            assert a.requires_grad == taeda.is_grad_enabled()
            return {"sum": a.sum(1) + ids * factor, "b": b.t()}
    module = (First if rank == 0 else Last)()
    stage = PipelineStage(module, rank, 2, "cpu")
    schedule = Schedule1F1B(stage, 3, loss_fn=lambda out, target: (out["sum"] - target).sum(), scale_grads=False)
    x, ids, target = taeda.arange(21.0).reshape(7, 3), taeda.arange(7), taeda.zeros(7)  # 3, 2 and 2 rows
    for _ in range(2):
        losses = []
        out = schedule.step(*([x, ids] if rank == 0 else []), target=target if rank else None, losses=losses,
                            **({"factor": 10} if rank else {}))
    if rank:
        assert out["sum"].equal(x.sum(1) + ids * 10) and out["b"].equal(x.bfloat16()) and len(losses) == 3
        assert sum(l.item() for l in losses) == out["sum"].sum().item()
        assert schedule.eval()["sum"].grad_fn is None
    else:
        assert module.weight.grad.equal(2 * x.sum(0))
        schedule.eval(x, ids)
        try:
            schedule.step(x[:6], ids[:6])
        except RuntimeError as error:
            print(error)
    """
    done = launch(MODEL + code.replace("\n    ", "\n"), 2)
    assert all(code == 0 for *_, code in done), done
    assert done[0][0].startswith("[Stage 0] forward of microbatch 0 failed") and "float32[2, 3]" in done[0][0]


def test_failures_name_stage_and_microbatch():
    code = """
    class Bad(nn.Module):
        def forward(self, x):
            if x[0, 0] > 3:
                raise ValueError("too much")
            return x * taeda.ones(1, requires_grad=True)
    stage = PipelineStage(Bad(), rank, 2, "cpu")
    schedule = ScheduleGPipe(stage, 4, loss_fn=lambda out, target: out.sum())
    schedule.step(*([taeda.arange(8.0).reshape(8, 1)] if rank == 0 else []))
    """
    done = launch(MODEL + code.replace("\n    ", "\n"), 2)
    assert "[Stage 0] forward of microbatch 2 failed: ValueError: too much" in done[0][1]
    assert "[Stage 1] forward of microbatch 2 failed" in done[1][1] and "rank 0 has ended" in done[1][1]


def test_pipelines_beside_data_parallel():
    code = """
    from taeda.nn.parallel import DistributedDataParallel
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    dp, pp = mesh.get_local_rank("dp"), mesh.get_local_rank("pp")
    parts = layers(4)
    whole = nn.Sequential(*parts)
    loss_fn(whole(x), y).backward()
    expected = grads(nn.Sequential(*parts[2 * pp : 2 * pp + 2]))
    whole.zero_grad()
    wrapped = DistributedDataParallel(nn.Sequential(*parts[2 * pp : 2 * pp + 2]), process_group=mesh.get_group("dp"))
    for kind in (ScheduleGPipe, Schedule1F1B, ScheduleInterleavedZeroBubble):
        wrapped.zero_grad()
        stage = PipelineStage(wrapped, pp, 2, "cpu", group=mesh.get_group("pp"))
        schedule = kind([stage] if kind is ScheduleInterleavedZeroBubble else stage, 2, loss_fn=loss_fn)
        half = slice(4 * dp, 4 * dp + 4)
        schedule.step(*([x[half]] if pp == 0 else []), **({"target": y[half]} if pp else {}))
        for a, b in zip(grads(wrapped), expected):
            assert taeda.allclose(taeda.tensor(a), taeda.tensor(b), atol=1e-6)
    """
    outputs(MODEL + code.replace("\n    ", "\n"), 4)


class Tied(taeda.nn.Module):
    """Embedding and head share a weight, and the first stage's mask is used by the last."""

    def __init__(self, explicit=False):
        super().__init__()
        self.embedding = taeda.nn.Embedding(10, 8)
        self.layers = taeda.nn.ModuleList([taeda.nn.Linear(8, 8) for _ in range(3)])
        self.explicit = explicit

    def forward(self, ids, mask=None):
        h = self.embedding(ids)
        for i, layer in enumerate(self.layers):
            if self.explicit and i == 1:
                pipe_split()
            h = layer(h).tanh()
        if mask is not None:
            h = h * mask
        return {"logits": h @ self.embedding.weight.t()}


@pytest.mark.parametrize(
    "spec", [None, {"layers.1": SplitPoint.BEGINNING}, {"embedding": SplitPoint.END, "layers.2": SplitPoint.BEGINNING}]
)
def test_models_are_cut_at_marks(spec):
    model = Tied(explicit=spec is None)
    ids, mask = taeda.randint(10, (3, 4)), taeda.rand(3, 4, 1)
    pipe = pipeline(model, (ids,), {"mask": mask}, split_spec=spec)
    assert pipe.num_stages == (3 if spec and len(spec) == 2 else 2)
    ids = taeda.randint(10, (3, 4))
    assert pipe(ids, mask=mask)["logits"].equal(model(ids, mask)["logits"])
    names = [name for i in range(pipe.num_stages) for name in pipe.get_stage_module(i).state_dict()]
    assert sorted(names) == sorted(model.state_dict())
    assert pipe.get_stage_module(0).get_parameter("embedding.weight") is model.embedding.weight


def test_cuts_that_make_no_stage_are_refused():
    model = taeda.nn.Sequential(taeda.nn.Linear(2, 2), taeda.nn.ReLU())
    for spec in ({"0": SplitPoint.BEGINNING}, {"1": SplitPoint.END}, {"0": SplitPoint.END, "1": SplitPoint.BEGINNING}):
        with pytest.raises(RuntimeError, match="no steps"):
            pipeline(model, (taeda.ones(1, 2),), split_spec=spec)
    with pytest.raises(AttributeError):
        pipeline(model, (taeda.ones(1, 2),), split_spec={"2": SplitPoint.END})
    with pytest.raises(ValueError, match="Invalid stage index"):
        pipeline(model, (taeda.ones(1, 2),)).get_stage_module(1)


def test_cut_models_train_on_two_processes():
    code = """
    from tests.distributed.test_pipelining import Tied, SplitPoint
    taeda.manual_seed(0)
    model = Tied()
    ids, target = taeda.randint(10, (8, 4)), taeda.randint(10, (8, 4))
    mask = taeda.rand(8, 4, 1)
    loss_fn = lambda out, t: nn.functional.cross_entropy(out["logits"].flatten(0, 1), t.flatten())
    loss_fn(model(ids, mask), target).backward()
    expected = {name: p.grad for name, p in model.named_parameters()}
    model.zero_grad()
    pipe = pipeline(model, (ids[:2],), {"mask": mask[:2]}, split_spec={"layers.1": SplitPoint.BEGINNING})
    stage = pipe.build_stage(rank, "cpu")
    schedule = Schedule1F1B(stage, 4, loss_fn=loss_fn)
    schedule.step(*([ids] if rank == 0 else []), **({"mask": mask} if rank == 0 else {"target": target}))
    assert stage.submod.get_parameter(f"layers.{2 * rank}.weight").grad is not None
    for name, p in stage.submod.named_parameters():
        assert taeda.allclose(p.grad, expected[name], atol=1e-6), name
    """
    outputs(MODEL + code.replace("\n    ", "\n"), 2)


def test_no_order_waits_in_a_circle():
    tried = 0
    for ranks in range(1, 6):
        for local in range(1, 4):
            parts = {"F": "F", "B": "IW", "I": "I", "W": "W"}
            for microbatches in range(1, 12):
                plans = [orders.gpipe, orders.interleaved, orders.forward_only]
                for plan in plans + [orders.one_forward_one_backward] * (local == 1):
                    try:
                        found = orders.check(plan, ranks, ranks * local, microbatches)
                    except ValueError:
                        assert plan is orders.interleaved and microbatches % max(1, microbatches // ranks)
                        continue
                    each = local * microbatches * (1 if plan is orders.forward_only else 2)
                    assert all(len(order) == len(set(order)) == each for order in found)
                    tried += 1
                without = [bubbles.interleaved_zero_bubble, *[bubbles.vee_zero_bubble] * (local == 2)]
                for plan in without if microbatches % 4 == 0 else ():
                    found = orders.check(plan, ranks, ranks * local, microbatches)
                    assert all(len(order) == len(set(order)) == 3 * local * microbatches for order in found)
                if local == 2 and microbatches >= 2 * ranks:
                    found = orders.check(bubbles.dual_vee, ranks, 2 * ranks, microbatches)
                    done = [[(a.stage, k, a.microbatch) for a in order for k in parts[a.kind]] for order in found]
                    assert all(len(each) == len(set(each)) == 6 * microbatches for each in done)
    assert tried > 500
    with pytest.raises(ValueError, match="at least 4 microbatches"):
        bubbles.dual_vee(0, 2, 4, 3)
    with pytest.raises(RuntimeError, match="would wait for each other"):
        orders.check(lambda rank, *where: orders.gpipe(rank, *where)[:: -1 if rank else 1], 2, 2, 2)
    order = orders.one_forward_one_backward(0, 4, 4, 8)
    held = [sum(1 if a.kind == "F" else -1 for a in order[:i]) for i in range(len(order))]
    assert max(held) == 4


def _waiting(plan, ranks, stages, microbatches):
    """The share of a step in which a process waits, where a forward pass and each part of a backward pass take as long."""
    took = {"F": 1, "I": 1, "W": 1, "B": 2}
    ends, now = {}, [0] * ranks
    for rank, (stage, kind, m) in orders.in_turn(orders.check(plan, ranks, stages, microbatches), stages):
        before = {"F": [("F", stage - 1, m)], "W": [("I", stage, m)]}.get(kind, [("F", stage, m), (kind, stage + 1, m)])
        now[rank] = max(now[rank], *(ends.get(key, 0) for key in before)) + took[kind]
        ends[kind, stage, m] = now[rank]
    return 1 - 3 * microbatches * stages / ranks / max(now)


def test_weights_fill_the_time_in_which_processes_waited():
    for ranks, microbatches in ((2, 4), (4, 8), (8, 32)):
        plain = _waiting(orders.one_forward_one_backward, ranks, ranks, microbatches)
        twice = _waiting(orders.interleaved, ranks, 2 * ranks, microbatches)
        assert math.isclose(plain, (ranks - 1) / (microbatches + ranks - 1)) and twice < plain
        for plan in (bubbles.interleaved_zero_bubble, bubbles.vee_zero_bubble):
            assert _waiting(plan, ranks, 2 * ranks, microbatches) < 0.5 * twice
    with pytest.raises(ValueError, match="exactly 2 stages per rank"):
        bubbles.vee_zero_bubble(0, 2, 2, 4)


class Branches(taeda.nn.Module):
    """Layers, a parameter that two outputs share, and outputs that depend on one input, on none, or are an input."""

    def __init__(self, tied):
        super().__init__()
        self.first, self.second = taeda.nn.Linear(5, 5), taeda.nn.Linear(5, 5)
        self.norm, self.cell = taeda.nn.LayerNorm(5), taeda.nn.GRU(5, 5, batch_first=True)
        self.shared, self.own = taeda.nn.Parameter(taeda.rand(5)), taeda.nn.Parameter(taeda.rand(2))
        self.tied = tied

    def forward(self, x, z):
        h = self.norm(self.first(x).tanh())
        h = h + self.second(h) * (self.shared * self.shared.exp()).sum()
        h = self.first(h) if self.tied else h
        a, b = self.cell(h)[0].split(3, 1)
        return a, b * z, self.shared.exp(), z, x, self.own, self.own.exp()


@pytest.mark.parametrize("tied", [False, True])
def test_backward_in_two_parts_is_bitwise_the_whole(tied):
    model = Branches(tied)
    x, z, unused = (t.requires_grad_() for t in (taeda.randn(3, 6, 5), taeda.randn(1), taeda.randn(2)))
    outs = model(x, z)
    given = [taeda.randn(out.shape) for out in outs]
    taeda.autograd.backward(outs, given)
    inputs, expected = [x.grad, z.grad], {name: p.grad for name, p in model.named_parameters()}
    model.zero_grad()
    x.grad = z.grad = None
    split = SplitBackward(model(x, z), given, [x, z, unused])
    assert x.grad.equal(inputs[0]) and z.grad.equal(inputs[1]) and unused.grad is None
    early = {name for name, p in model.named_parameters() if p.grad is not None}
    assert early == {"shared"} | ({"first.weight", "first.bias"} if tied else set())
    split.weights()
    assert all(p.grad.equal(expected[name]) for name, p in model.named_parameters())


def test_batches_are_cut_and_put_together():
    args, kwargs = split_args_kwargs_into_chunks(
        (taeda.arange(5), 3), {"a": [taeda.ones(2, 4)]}, 2, None, {"a": [TensorChunkSpec(1)]}
    )
    assert [a[0].tolist() for a in args] == [[0, 1, 2], [3, 4]] and args[1][1] == 3
    assert kwargs[0]["a"][0].shape == (2, 2)
    assert merge_chunks(args, None)[0].tolist() == [0, 1, 2, 3, 4]
    assert merge_chunks(kwargs, {"a": [TensorChunkSpec(1)]})["a"][0].shape == (2, 4)
    with pytest.raises(ValueError, match="at least 3 rows"):
        split_args_kwargs_into_chunks((taeda.ones(2),), None, 3)

"""``fully_shard``: the losses, norms and parameters of one process on 2 to 4, alone and with tensor parallelism; memory."""

import pytest

from .launch import launch, outputs

HEAD = """
from taeda import nn
from taeda.distributed.device_mesh import init_device_mesh
from taeda.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from taeda.distributed.tensor import DTensor, Replicate, Shard
from tests.distributed.gpt import F, GPT, VOCABULARY, batches, tensor_parallel, train
n = dist.get_world_size()
def mean(loss):
    t = loss.clone()
    dist.all_reduce(t, dist.ReduceOp.AVG)
    return t.item()
def build(mesh=None, change=lambda model: model, layers=2, **options):
    taeda.manual_seed(1)
    model = change(GPT(layers))
    for block in model.blocks:
        fully_shard(block, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)
def loss_of(model, batch):
    return F.cross_entropy(model(batch[:, :-1]).reshape(-1, VOCABULARY), batch[:, 1:].reshape(-1))
def close(a, b, tolerance=1e-5):
    assert all(abs(x - y) < tolerance for one, two in zip(a, b) for x, y in zip(one, two)), (a, b)
taeda.manual_seed(1)
one = GPT(2)
expected = train(one, rows=12)
"""

ALONE = (
    HEAD
    + """
for options in ({}, {"reshard_after_forward": True}, {"reshard_after_forward": False},
                {"shard_placement_fn": lambda p: Shard(p.dim() - 1)}):
    model = build(**options)
    close(expected, train(model, n, rank, rows=12, mean=mean))
    assert all(isinstance(p, DTensor) for p in model.parameters()) and isinstance(model, (FSDPModule, GPT))
assert rank or model.blocks[0].up.weight.to_local().shape == (256, -(-64 // n))
low = build(mp_policy=MixedPrecisionPolicy(param_dtype=taeda.bfloat16, reduce_dtype=taeda.float32))
close(expected, train(low, n, rank, rows=12, mean=mean), 0.02)
assert low.head.weight.dtype == taeda.float32

# gradients that are added up before they are reduced; parameters without gradients; frozen ones
taeda.manual_seed(1)
plain, model = GPT(2), build()
for m in (plain, model):
    m.blocks[0].up.weight.requires_grad_(True)
batch = batches(1, 12)[0]
loss_of(plain, batch).backward()
mine = batch.chunk(n)[rank].chunk(2)
model.set_requires_gradient_sync(False)
(loss_of(model, mine[0]) / 2).backward()
assert all(p.grad is None for p in model.parameters())
model.set_requires_gradient_sync(True)
(loss_of(model, mine[1]) / 2).backward()
for (name, p), q in zip(plain.named_parameters(), model.named_parameters()):
    assert name == q[0] and taeda.allclose(p.grad, q[1].grad.full_tensor(), atol=1e-6), name
state = model.state_dict()
assert all(isinstance(v, DTensor) for v in state.values()) and list(state) == list(plain.state_dict())
model.load_state_dict({k: v * 0 + 1 for k, v in state.items()})
assert model.head.weight.full_tensor().eq(1).all()
with taeda.no_grad():
    model(batch[:, :-1])
assert all(isinstance(v, DTensor) for v in model.state_dict().values())
model.unshard()
assert not isinstance(model.head.weight, DTensor) and model.head.weight.shape == (40, 64)
model.reshard()
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
        self.a.requires_grad_(False)
    def forward(self, x):
        return self.b(self.a(self.b(x)))
taeda.manual_seed(2)
p = Part()
taeda.manual_seed(2)
q = fully_shard(Part())
x = taeda.randn(4, 3, requires_grad=True)
for m in (p, q):
    m(x).square().sum().backward()
assert taeda.allclose(p.b.weight.grad, q.b.weight.grad.full_tensor()) and q.a.weight.grad is q.c.weight.grad is None
# explicit prefetch, several optimisers
model = build()
model.set_modules_to_forward_prefetch([model.blocks[0]])
model.blocks[0].set_modules_to_forward_prefetch([model.blocks[1]])
close(expected, train(model, n, rank, rows=12, mean=mean))
for kind in (taeda.optim.SGD, taeda.optim.Adagrad, taeda.optim.Adafactor):
    taeda.manual_seed(1)
    plain = GPT(1)
    model = build(layers=1)
    a = train(plain, rows=12, optimizer=kind(plain.parameters(), 1e-2))
    close(a, train(model, n, rank, rows=12, mean=mean, optimizer=kind(model.parameters(), 1e-2)), 1e-4)
"""
)


@pytest.mark.parametrize("world", [2, 3])
def test_alone(world):
    outputs(ALONE, world)


NEAR = (
    HEAD
    + """
mesh = init_device_mesh("cpu", (4,))
model = build(mesh, reshard_after_forward=2)
close(expected, train(model, n, rank, rows=12, mean=mean))
unit, leaf = model.blocks[0]._fsdp_state.unit, model.blocks[0]._fsdp_state.unit.parameters[0].leaf
batch = batches(1, 12)[0].chunk(n)[rank]
loss = loss_of(model, batch)
kept = sum(v.numel() for _, v in unit._near_parts)
assert not unit.whole and kept == sum(p.padded(2) for p in unit.parameters) and unit.near.size() == 2
with taeda.no_grad():  # a step between forward and forward: what was kept is old
    for p in model.parameters():
        p.mul_(0.5)
other = loss_of(model, batch)
assert abs(other.item() - loss.item()) > 1e-3
with taeda.no_grad():
    assert loss_of(model, batch).item() == other.item() and not unit._near_parts
again = loss_of(model, batch)
again.backward()
assert again.item() == other.item() and not unit._near_parts and not unit.whole
model.zero_grad()
model.set_reshard_after_forward(True)
loss_of(model, batch)
assert not unit._near_parts
grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "parts"))
close(expected, train(build(grid, reshard_after_forward=1), n, rank, rows=12, mean=mean))
for wrong in (3, 0, 8):
    try:
        fully_shard(nn.Linear(2, 2), mesh=mesh, reshard_after_forward=wrong)
    except ValueError as error:
        assert "a factor of 4" in str(error)
    else:
        raise AssertionError(wrong)
"""
)


def test_parts_among_neighbours_between_forward_and_backward():
    outputs(NEAR, 4)


def test_on_a_grid():
    """With tensor parallelism, and with copies of the parts, on 2 x 2 processes."""
    code = """
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = build(mesh["dp"], lambda m: tensor_parallel(m, mesh["tp"]))
    close(expected, train(model, 2, rank // 2, rows=12, mean=mean))
    assert model.blocks[0].up.weight.to_local().shape == (64, 64) and model.blocks[0].down.weight.to_local().shape == (32, 128)
    for (name, p), q in zip(one.named_parameters(), model.parameters()):
        assert name.endswith("k.bias") or taeda.allclose(p, q.full_tensor(), atol=1e-4), name  # that has no gradient but noise
    copies = build(init_device_mesh("cpu", (2, 2), mesh_dim_names=("copy", "part")))
    close(expected, train(copies, 4, rank, rows=12, mean=mean))
    assert copies.head.weight.placements == (Replicate(), Shard(0))
    """
    outputs(HEAD + code.replace("\n    ", "\n"), 4)


def test_memory():
    """Parameters, gradients and the state of Adam at each process: at most 1/N + 5 % of those of one process."""
    code = """
    import gc
    def in_use():
        gc.collect()
        return taeda._core.memory.memory_stats()["allocated"]
    def held(make):
        before = in_use()
        model = make()
        adam = taeda.optim.Adam(model.parameters(), 1e-3)
        train(model, n, rank, rows=12, steps=2, mean=mean, optimizer=adam)
        return in_use() - before
    held(lambda: GPT(1))
    whole, part = held(lambda: GPT(4)), held(lambda: build(layers=4))
    assert part <= (1 / n + 0.05) * whole, (part, whole)
    print(part / whole)
    """
    print(outputs(HEAD + code.replace("\n    ", "\n"), 2)[0])


def test_a_dropped_parameter_is_not_read():
    code = """
    model = build()
    kept = []
    model.blocks[0].up.register_forward_hook(lambda m, a, out: kept.append(m.weight.t()) or kept.append(m.weight))
    model(batches(1)[0][:, :-1])
    print(kept[1].isnan().all().item())
    kept[1].square().sum().backward()
    """
    done = launch(HEAD + code.replace("\n    ", "\n"), 2)
    assert all("True" in out for out, _, _ in done)


def test_the_class():
    code = """
    import functools
    from taeda.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel as FSDP, MixedPrecision, ShardingStrategy
    from taeda.distributed.fsdp import StateDictType
    from taeda.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy
    from tests.distributed.gpt import Block
    by_size = functools.partial(size_based_auto_wrap_policy, min_num_params=20000)
    for strategy, policy in ((None, ModuleWrapPolicy({Block})), (ShardingStrategy.SHARD_GRAD_OP, by_size),
                             (ShardingStrategy.NO_SHARD, None)):
        taeda.manual_seed(1 + rank)
        model = FSDP(GPT(2), sharding_strategy=strategy, auto_wrap_policy=policy, sync_module_states=True)
        close(expected, train(model, n, rank, rows=12, mean=mean))
    taeda.manual_seed(1)
    model = FSDP(GPT(2), auto_wrap_policy=ModuleWrapPolicy({Block}))
    assert len(FSDP.fsdp_modules(model)) == 3 and isinstance(model.blocks[0], FSDP)
    train(model, n, rank, rows=12)
    state = model.state_dict()
    assert list(state) == list(one.state_dict()) and not any(isinstance(v, DTensor) for v in state.values())
    assert all(taeda.allclose(v, w, atol=1e-4) for (k, v), w in zip(state.items(), one.state_dict().values()) if "k.bias" not in k)
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        assert all(isinstance(v, DTensor) for v in model.state_dict().values())
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True)):
        assert len(model.state_dict()) == (0 if rank else len(state))
    fresh = FSDP(GPT(2), auto_wrap_policy=ModuleWrapPolicy({Block}))
    fresh.load_state_dict(state)
    assert all(v.equal(w) for v, w in zip(fresh.state_dict().values(), state.values()))
    with FSDP.summon_full_params(fresh):
        fresh.module.head.weight.data.fill_(3.0)
    assert fresh.state_dict()["head.weight"].eq(3).all()
    batch = batches(1, 12)[0].chunk(n)[rank]
    model.zero_grad()
    with model.no_sync():
        loss_of(model, batch).backward()
    assert model.module.head.weight.grad is None
    loss_of(model, batch).backward()
    assert model.clip_grad_norm_(0.5) > 0.5
    """
    outputs(HEAD + code.replace("\n    ", "\n"), 2)


META = (
    HEAD
    + """
from taeda.distributed.checkpoint.state_dict import StateDictOptions, _init_optim_state, get_model_state_dict
from taeda.distributed.checkpoint.state_dict import set_model_state_dict
def on_meta():
    with taeda.device("meta"):
        return build()
model = on_meta()
p = model.head.weight
whole = taeda.zeros_like(p, device="cpu"), taeda.full_like(p, 3.0, device="cpu"), p.to("meta")
assert [(x.device.type, x.placements) for x in whole] == [(d, p.placements) for d in ("cpu", "cpu", "meta")]
assert whole[1].full_tensor().unique().tolist() == [3.0]
model.to_empty(device=taeda.device("cpu"))
assert not any(p.is_meta or p._local_tensor.is_meta for p in model.parameters())
with taeda.no_grad():
    for p, q in zip(model.parameters(), GPT(2).parameters()):
        p.fill_(0.5)
options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
given = GPT(2).state_dict() if rank == 0 else {}
again = on_meta()
set_model_state_dict(again, given, options=options)  # there is no memory to copy to
own = get_model_state_dict(again, options=StateDictOptions(full_state_dict=True))
assert rank != 0 or all(t.equal(given[k]) for k, t in own.items())
adam = taeda.optim.Adam(again.parameters())
_init_optim_state(adam)
assert all(isinstance(s["exp_avg"], DTensor) for s in adam.state.values()) and adam.param_groups[0]["lr"] == 1e-3
print(bool(loss_of(again, batches(4)[0]).isfinite()))
"""
)


def test_from_device_meta():
    """What was cut on device meta gets memory, or the values of whole tensors."""
    for out in outputs(META, 2):
        assert out.split() == ["True"]

"""Names that programs use beside collectives: parts of groups, levels of checks, launchers, replicas, other keys."""

import signal
import warnings
from importlib.util import find_spec

import in_processes
import pytest

import taeda
import taeda.distributed as dist
from taeda.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std, to_map
from taeda.distributed.elastic.multiprocessing.errors import ChildFailedError
from taeda.distributed.fsdp import FullyShardedDataParallel, OptimStateKeyType
from taeda.distributed.launcher import LaunchConfig, elastic_launch

from .launch import launch, outputs

PARTS = """
def total(group):
    x = taeda.tensor([float(rank)]); dist.all_reduce(x, group=group)
    return x.item()
odd = dist.split_group(split_ranks=[[0, 2], [3, 1]], group_desc="halves")
assert dist.get_process_group_ranks(odd) == ([0, 2] if rank % 2 == 0 else [1, 3]) and odd.group_desc == "halves"
assert total(odd) == (2 if rank % 2 == 0 else 4)
one = dist.split_group(odd, [[1]])  # a part of a part, by ranks in that; the others are in none
assert (one is None) == (rank < 2) and (rank < 2 or total(one) == rank)
assert total(None) == 6
for wrong in ([[0, 1], [1]], [[4]], [[-1]]):
    try:
        dist.split_group(split_ranks=wrong)
    except ValueError as error:
        assert "different ranks from 0 to 3" in str(error)
    else:
        raise AssertionError(wrong)
"""


@pytest.mark.parametrize("memory", ["0", "1"])
def test_parts_of_groups(memory, monkeypatch):
    monkeypatch.setenv("TAEDA_DISTRIBUTED_SHARED_MEMORY", memory)
    outputs(PARTS, 4)


LEFT = """
import os, signal
x = taeda.ones(2)
other = dist.new_group([0, 2])
dist.all_reduce(x)
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    dist.all_reduce(x)
    raise AssertionError
except dist.DistBackendError as error:
    assert "rank 1 has ended" in str(error)
group = dist.shrink_group([1])
assert dist.group.WORLD is group and dist.get_rank() == rank // 2 and dist.get_world_size() == 2
x = taeda.tensor([1.0 + rank])
dist.all_reduce(x)
assert x.item() == 4 and dist.get_process_group_ranks() == [0, 1]
x = taeda.tensor([1.0 + rank])
dist.broadcast(x, 1, group=dist.new_group([0, 1]))
assert x.item() == 3
try:
    dist.barrier(other)
except ValueError as error:
    print("ended", dist.shrink_group([0]).size() if rank else "alone")
dist.destroy_process_group()
"""


@pytest.mark.parametrize("memory", ["0", "1"])
def test_who_is_left_goes_on_without_a_process_that_was_killed(memory, monkeypatch):
    monkeypatch.setenv("TAEDA_DISTRIBUTED_SHARED_MEMORY", memory)
    done = launch(LEFT, 3)
    assert [code for *_, code in done] == [0, -signal.SIGKILL, 0], done
    assert done[0][0] == "ended alone\n" and done[2][0] == "ended 1\n"


def test_what_a_group_of_one_cannot_leave_out():
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    try:
        for ranks, kind, what in (([], ValueError, "cannot be empty"), ([0], ValueError, "one is left"),
                                  ([1], ValueError, "from 0 to 0"), ([0, 0], ValueError, "different ranks")):  # fmt: skip
            with pytest.raises(kind, match=what):
                dist.shrink_group(ranks)
        with pytest.raises(ValueError, match="split_ranks cannot be None or empty"):
            dist.split_group()
        with pytest.raises(ValueError, match="communicate by"):
            dist.split_group(split_ranks=[[0]], backend="mpi")
    finally:
        dist.destroy_process_group()


def test_levels_of_checks(monkeypatch):
    frameworks = [dist]
    if find_spec("torch"):
        import torch.distributed

        frameworks.append(torch.distributed)
    for f in frameworks:
        before, level = f.get_debug_level(), f.DebugLevel
        for name in ("OFF", "info", "DETAIL"):
            monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", name)
            f.set_debug_level_from_env()
            assert f.get_debug_level() == getattr(level, name.upper())
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "much")
        with pytest.raises(ValueError, match="must be OFF, INFO, or DETAIL"):
            f.set_debug_level_from_env()
        with pytest.raises(TypeError):
            f.set_debug_level("INFO")
        f.set_debug_level(level.INFO)
        assert f.get_debug_level() == level.INFO and (str(level.INFO), int(level.DETAIL)) == ("DebugLevel.INFO", 2)
        f.set_debug_level(before)
        assert f.supports_complex(f.ReduceOp.SUM) and not f.supports_complex(f.ReduceOp.MAX)


def test_there_is_no_nccl():
    frameworks = [taeda]
    if find_spec("torch"):
        import torch

        frameworks.append(torch)
    for f in frameworks:
        nccl = f.cuda.nccl
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert nccl.is_available([f.ones(1)]) is False
        assert "not compiled with NCCL support" in str(seen[0].message)
        for call in (nccl.version, nccl.unique_id, lambda nccl=nccl, f=f: nccl.all_reduce([f.ones(1)])):
            with pytest.raises(AttributeError, match="nccl"):
                call()


def test_other_keys_of_an_optimizers_state():
    def keyed(f, wrapper, kinds):
        model = f.nn.Sequential(f.nn.Linear(2, 3), f.nn.Linear(3, 1))
        optimizer = f.optim.Adam([{"params": model[1].parameters(), "lr": 0.1}, {"params": model[0].parameters()}])
        model(f.ones(1, 2)).sum().backward()
        optimizer.step()
        state = optimizer.state_dict()
        named = wrapper.rekey_optim_state_dict(state, kinds.PARAM_NAME, model, optim=optimizer)
        again = wrapper.rekey_optim_state_dict(named, kinds.PARAM_ID, model, optim=optimizer)
        assert list(again["state"]) == list(state["state"])
        shapes = {key: tuple(value["exp_avg"].shape) for key, value in named["state"].items()}
        with pytest.raises(AssertionError):
            wrapper.rekey_optim_state_dict(state, "names", model)
        return shapes, [g["params"] for g in named["param_groups"]], [g["params"] for g in again["param_groups"]]

    ours = keyed(taeda, FullyShardedDataParallel, OptimStateKeyType)
    assert ours[0]["1.weight"] == (1, 3) and ours[1] == [["1.bias", "1.weight"], ["0.bias", "0.weight"]]
    if find_spec("torch"):
        import torch
        from torch.distributed import fsdp

        assert keyed(torch, fsdp.FullyShardedDataParallel, fsdp.OptimStateKeyType) == ours


REPLICAS = """
from taeda import nn
from taeda.distributed._composable import replicate
taeda.manual_seed(rank)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
names = list(model.state_dict())
made = replicate(model, ignored_modules=[model[2]])
assert made is model and isinstance(model, nn.Sequential) and list(model.state_dict()) == names
x = taeda.arange(12.0).reshape(4, 3) / 7
own = [p.detach().clone() for p in model[2].parameters()]
both = [taeda.empty(4, 3) for _ in range(2)]
dist.all_gather(both, model[0].weight.detach())
assert both[0].equal(both[1])
dist.all_gather(both, own[0].expand(4, 4)[:, :3].contiguous())
assert not both[0].equal(both[1])
for synchronise in (True, False):
    model.zero_grad()
    model.set_requires_gradient_sync(synchronise)
    model(x[2 * rank : 2 * rank + 2]).sum().backward()
    g = model[0].weight.grad
    dist.all_gather(both, g)
    assert both[0].equal(both[1]) == synchronise
plain = nn.Linear(3, 1); copied = nn.Linear(3, 1); copied.load_state_dict(plain.state_dict())
for one in (plain, copied):
    for p in one.parameters():
        dist.broadcast(p.detach(), 0)
replicate(copied)
plain(x).square().mean().backward()
copied(x[2 * rank : 2 * rank + 2]).square().mean().backward()
assert taeda.allclose(plain.weight.grad, copied.weight.grad, atol=1e-6)
for wrong, what in (({"device_ids": [0]}, "device_ids"), ({"device_id": "cuda:0"}, "the CPU")):
    try:
        replicate(nn.Linear(2, 2), **wrong)
    except (ValueError, RuntimeError) as error:
        assert what in str(error)
    else:
        raise AssertionError
try:
    replicate(model)
except RuntimeError as error:
    print(error)
"""


def test_replicas_without_a_wrapper():
    assert outputs(REPLICAS, 2) == ["replicate should only be applied once on a module\n"] * 2


def test_streams_by_rank(tmp_path):
    assert Std.from_str("3") == Std.ALL and Std.from_str("0:1,1:2") == {0: Std.OUT, 1: Std.ERR}
    assert to_map(Std.OUT, 2) == {0: Std.OUT, 1: Std.OUT} and to_map({1: Std.ERR}, 2) == {0: Std.NONE, 1: Std.ERR}
    for wrong in ("4", "x", "0:1,2", "a:1"):
        with pytest.raises(ValueError, match="expected streams"):
            Std.from_str(wrong)


def test_functions_in_processes(tmp_path):
    logs = DefaultLogsSpecs(str(tmp_path), redirects=Std.ALL)
    config = LaunchConfig(1, 1, 2, logs, "job", max_restarts=0, rdzv_backend="c10d", rdzv_endpoint="localhost:0")
    assert elastic_launch(config, in_processes.add)(2, 3) == {0: (5, 2, "0", "job"), 1: (6, 2, "0", "job")}
    printed = {p.parent.name: p.read_text() for p in tmp_path.rglob("stdout.log")}
    assert printed == {"0": "from 0\n", "1": "from 1\n"}
    once = LaunchConfig(1, 1, 1, logs, max_restarts=1)
    assert elastic_launch(once, in_processes.fail_once)() == {0: "again"}
    with pytest.raises(ChildFailedError, match="KeyError: 'always'") as ended:
        elastic_launch(LaunchConfig(1, 1, 1, logs, max_restarts=0), in_processes.fail)()
    rank, failure = ended.value.get_first_failure()
    assert (rank, failure.local_rank, failure.exitcode, failure.signal_name()) == (0, 0, 1, "<N/A>")
    assert elastic_launch(config, "true")() == {0: None, 1: None}
    with pytest.raises(ChildFailedError) as ended:
        elastic_launch(LaunchConfig(1, 1, 1, max_restarts=0), "sh")("-c", "kill -9 $$")
    assert ended.value.failures[0].signal_name() == "SIGKILL"


def test_launches_that_make_no_sense():
    for config, what in (
        (LaunchConfig(1, 2, 1), "'static' or 'c10d'"),
        (LaunchConfig(2, 2, 1, rdzv_backend="static"), "host:port"),
    ):
        with pytest.raises(ValueError, match=what):
            elastic_launch(config, in_processes.add)(1, 2)
    with pytest.raises(ValueError, match="a function or a command"):
        elastic_launch(LaunchConfig(1, 1, 1), None)()

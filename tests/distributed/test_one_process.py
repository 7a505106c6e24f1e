"""A group of one process: collectives copy input to output, with PyTorch's checks."""

import datetime

import pytest

import taeda
import taeda.distributed as dist
import taeda.distributed.device_mesh
import taeda.distributed.fsdp
import taeda.distributed.tensor
from taeda.nn.parallel import DistributedDataParallel
from taeda.utils.data import DistributedSampler

from .launch import kept_port


@pytest.fixture(params=["tcp", "file", "store"])
def group(request, tmp_path):
    if request.param == "store":
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    else:
        where = f"tcp://127.0.0.1:{kept_port()}" if request.param == "tcp" else f"file://{tmp_path}/meet"
        dist.init_process_group("gloo", init_method=where, rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()
    assert not dist.is_initialized() and not (tmp_path / "meet").exists()


@pytest.fixture
def alone():
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_questions(group):
    assert dist.is_available() and dist.is_initialized() and group is dist.group.WORLD
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    assert dist.get_process_group_ranks(group) == [0] and dist.get_global_rank(group, 0) == 0
    other = dist.new_group([0])
    assert other is not group and dist.get_rank(other) == 0 and other.size() == 1
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(ValueError, match="world size"):
        dist.new_group([0, 1])


def test_collectives_copy(group):
    x, y = taeda.arange(3.0), taeda.zeros(3)
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX):
        assert dist.all_reduce(x, op) is None and x.tolist() == [0, 1, 2]
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed() and work.result()[0] is x
    assert work.get_future().then(lambda f: f.value()[0].sum().item()).wait() == 3
    dist.broadcast(x, 0)
    dist.reduce(x, 0)
    dist.barrier()
    slots = [taeda.zeros(3)]
    dist.all_gather(slots, x)
    assert slots[0].tolist() == [0, 1, 2]
    dist.gather(x + 1, slots)
    dist.scatter(y, slots)
    assert y.tolist() == [1, 2, 3]
    dist.all_to_all(slots, [x])
    dist.all_to_all_single(y, slots[0])
    assert y.tolist() == [0, 1, 2]
    dist.reduce_scatter(y, [x + 4])
    dist.reduce_scatter_tensor(x, y)
    dist.all_gather_into_tensor(y, x - 4)
    assert y.tolist() == [0, 1, 2]
    everyone, both = [None], [1, {"a": 2}]
    dist.all_gather_object(everyone, {"loss": 0.5})
    dist.broadcast_object_list(both, 0)
    assert everyone == [{"loss": 0.5}] and both == [1, {"a": 2}]
    dist.gather_object("x", everyone)
    dist.scatter_object_list(both, everyone)
    assert both[0] == everyone[0] == "x"
    leaf = taeda.ones(2, requires_grad=True)
    dist.all_reduce(leaf)
    dist.broadcast(leaf, 0)


@pytest.mark.parametrize(
    "error, call",
    {
        "not a tensor": (TypeError, lambda x: dist.all_reduce([x])),
        "not an op": (TypeError, lambda x: dist.all_reduce(x, "sum")),
        "bits of floats": (RuntimeError, lambda x: dist.all_reduce(x, dist.ReduceOp.BAND)),
        "mean of integers": (RuntimeError, lambda x: dist.all_reduce(x.int(), dist.ReduceOp.AVG)),
        "largest complex number": (ValueError, lambda x: dist.all_reduce(x + 1j, dist.ReduceOp.MAX)),
        "sparse": (ValueError, lambda x: dist.broadcast(x.to_sparse(), 0)),
        "no root": (ValueError, lambda x: dist.broadcast(x)),
        "no such root": (RuntimeError, lambda x: dist.broadcast(x, 1)),
        "two roots": (ValueError, lambda x: dist.broadcast(x, 0, group_src=0)),
        "list of another length": (RuntimeError, lambda x: dist.all_gather([x, x], x)),
        "other size": (RuntimeError, lambda x: dist.all_gather([x[1:]], x)),
        "other dtype": (ValueError, lambda x: dist.all_gather([x.int()], x)),
        "nowhere to gather": (ValueError, lambda x: dist.gather(x)),
        "nothing to scatter": (ValueError, lambda x: dist.scatter(x)),
        "too many parts": (RuntimeError, lambda x: dist.all_to_all([x], [x, x])),
        "splits": (RuntimeError, lambda x: dist.all_to_all_single(x, x, [2], [3])),
        "to itself": (ValueError, lambda x: dist.send(x, 0)),
        "from itself": (ValueError, lambda x: dist.recv(x, 0)),
        "no ranks": (TypeError, lambda x: dist.new_group([])),
    }.values(),
)
def test_what_is_refused(alone, error, call):
    with pytest.raises(error):
        call(taeda.arange(3.0))
    dist.barrier()  # the group is as good as before


def test_without_a_group(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    x = taeda.ones(2)
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, lambda: dist.all_reduce(x)):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    with pytest.raises(ValueError, match="has not been initialized"):
        DistributedDataParallel(taeda.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="has not been initialized"):
        DistributedSampler([1, 2])
    with pytest.raises(ValueError, match="RANK expected, but not set"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="rank parameter missing"):
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:1", world_size=1)
    with pytest.raises(RuntimeError, match="No rendezvous handler for smoke://"):
        dist.init_process_group("gloo", init_method="smoke://x", world_size=1, rank=0)
    with pytest.raises(RuntimeError, match="NCCL built in"):
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(AssertionError, match="Unknown backend type pigeon"):
        dist.init_process_group("pigeon", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(ValueError, match="from 0 to 0"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=3, world_size=1)
    assert not dist.is_initialized()


def test_the_environment_of_a_launcher(monkeypatch):
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "localhost", "MASTER_PORT": kept_port()}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("LOCAL_RANK", "0")
    dist.init_process_group()
    assert dist.get_rank() == dist.get_node_local_rank() == 0 and dist.get_backend() == "undefined"
    assert list(DistributedSampler(range(5), shuffle=False)) == [0, 1, 2, 3, 4]
    dist.destroy_process_group()


def _stores(tmp_path):
    tcp = dist.TCPStore("127.0.0.1", 0, 1, True)
    return {
        "hash": (dist.HashStore(),) * 2,
        "file": (dist.FileStore(str(tmp_path / "a"), 2), dist.FileStore(str(tmp_path / "a"), 2)),
        "tcp": (tcp, dist.TCPStore("127.0.0.1", tcp.port, 1, False)),
        "prefix": (dist.PrefixStore("p", tcp), dist.PrefixStore("p", tcp)),
    }


@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "prefix"])
def test_stores(kind, tmp_path):
    one, two = _stores(tmp_path)[kind]
    one.set("a", "b")
    assert two.get("a") == b"b" and two.check(["a"]) and not two.check(["a", "z"])
    assert one.add("n", 3) == 3 and two.add("n", -1) == 2 and one.get("n") == b"2"
    two.append("a", b"\x00c")
    assert one.get("a") == b"b\x00c"
    assert one.compare_set("n", "2", "9") == b"9" and two.compare_set("n", "2", "7") == b"9"
    assert one.compare_set("new", "", "x") == b"x" and one.compare_set("none", "y", "x") == b"y"
    assert two.delete_key("a") and not one.delete_key("a") and not one.check(["a"])
    two.set_timeout(datetime.timedelta(milliseconds=30))
    for wait in (lambda: two.get("z"), lambda: two.wait(["n", "z"])):
        with pytest.raises(dist.DistStoreError, match=r"wait timeout after 30ms, keys: .*z"):
            wait()


class Twins(taeda.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = taeda.nn.Linear(2, 2), taeda.nn.Linear(2, 2)

    def forward(self, x):
        return self.a(x)


def test_data_parallel(alone):
    model = taeda.nn.Linear(2, 2)
    wrapped = DistributedDataParallel(model)
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"] and wrapped.module is model
    for _ in range(2):
        with wrapped.no_sync():
            wrapped(taeda.ones(1, 2)).sum().backward()
        wrapped(taeda.ones(1, 2)).sum().backward()
    assert model.weight.grad.tolist() == [[4, 4], [4, 4]]
    with pytest.raises(RuntimeError, match="not needed"):
        DistributedDataParallel(taeda.nn.ReLU())
    logged = wrapped._get_ddp_logging_data()
    assert logged["world_size"] == 1 and not logged.get("can_set_static_graph")


def test_parameters_that_are_not_used(alone):
    wrapped = DistributedDataParallel(Twins())
    wrapped(taeda.ones(1, 2))
    wrapped(taeda.ones(1, 2)).sum().backward()  # a pass without backward is no mistake
    with pytest.raises(RuntimeError, match=r"find_unused_parameters=True.*gradient: b\.weight, b\.bias"):
        wrapped(taeda.ones(1, 2))
    wrapped = DistributedDataParallel(Twins(), find_unused_parameters=True)
    for _ in range(2):
        wrapped(taeda.ones(1, 2)).sum().backward()
    assert wrapped.module.b.weight.grad is None and wrapped.module.a.weight.grad is not None


def test_meshes(alone):
    mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    assert mesh.ndim == 2 and mesh.get_local_rank("tp") == 0 and mesh["dp"].get_group().size() == 1
    with pytest.raises(RuntimeError, match="world size"):
        dist.init_device_mesh("cpu", (2,))


def test_backends_of_devices():
    dist.init_process_group("cpu:gloo,cuda:nccl", store=dist.HashStore(), rank=0, world_size=1)
    assert dist.get_backend() == dist.get_backend_config() == "cpu:gloo,cuda:nccl"
    x = taeda.ones(2)
    dist.all_reduce(x)
    assert x.tolist() == [1, 1] and not dist.is_nccl_available()
    with pytest.raises(RuntimeError, match="No backend type associated with device type meta"):
        dist.all_reduce(taeda.ones(2, device="meta"))
    dist.destroy_process_group()
    dist.init_process_group("cpu:gloo,cuda:gloo,xpu:xccl", store=dist.HashStore(), rank=0, world_size=1)
    dist.all_reduce(x)
    assert x.tolist() == [1, 1]
    dist.destroy_process_group()
    with pytest.raises(ValueError, match="expected a backend"):
        dist.init_process_group("gloo,mpi", store=dist.HashStore(), rank=0, world_size=1)


def test_a_hook_of_one_process_is_called(alone):
    from taeda.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

    model = taeda.nn.parallel.DistributedDataParallel(taeda.nn.Linear(6, 6))
    state = power.PowerSGDState(None, 6, start_powerSGD_iter=1, use_error_feedback=False, warm_start=False)
    model.register_comm_hook(state, power.batched_powerSGD_hook)
    for _ in range(2):  # the second is compressed, by matrices of rank 6 of one of 7 x 7
        model.zero_grad()
        model(taeda.eye(6)).square().sum().backward()
    assert state.iter == 2 and state.q_memory_dict[0][0].shape == (7, 6)
    expected = 2 * model.module(taeda.eye(6)).detach().t()
    assert 0 < (model.module.weight.grad - expected).norm() < expected.norm() / 2


def test_a_parameter_that_was_replaced_by_something_else(alone):
    from taeda.distributed.fsdp import fully_shard

    model = fully_shard(taeda.nn.Linear(4, 4))
    model.weight = taeda.nn.Parameter(taeda.ones(4, 4))
    with pytest.raises(RuntimeError, match="'weight' of FSDPLinear was replaced; expected a DTensor"):
        model(taeda.ones(1, 4))


def test_a_model_on_meta_gets_memory_where_it_is_cut(alone):
    mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
    with taeda.device("meta"):
        model = taeda.nn.Sequential(taeda.nn.Linear(2, 3), taeda.nn.Linear(3, 2))
    dist.fsdp.fully_shard(model, mesh=mesh)
    model.to_empty(device="cpu")
    assert all(p.device.type == p.to_local().device.type == "cpu" for p in model.parameters())
    whole = taeda.nn.Sequential(taeda.nn.Linear(2, 3), taeda.nn.Linear(3, 2)).state_dict()
    model.load_state_dict({k: dist.tensor.distribute_tensor(v, mesh, [dist.tensor.Shard(0)]) for k, v in whole.items()})
    assert model[0].weight.full_tensor().equal(whole["0.weight"])
    part = dist.tensor.distribute_tensor(taeda.ones(2, 2), mesh, [dist.tensor.Shard(0)])
    assert taeda.zeros_like(part, device="meta").to_local().is_meta and not taeda.ones_like(part).to_local().is_meta

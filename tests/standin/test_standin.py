"""``import torch`` means taeda: each test runs programs in a new interpreter, where PyTorch itself must not be loaded."""

import pickle
import subprocess
import sys
import textwrap

import pytest


def run(code, *args, how="-c", expect=0):
    """Standard output of a program under the stand-in."""
    target = textwrap.dedent(code) if how == "-c" else code
    done = subprocess.run(
        [sys.executable, "-m", "taeda.standin", *((how,) if how else ()), target, *args], capture_output=True, text=True
    )
    assert done.returncode == expect, done.stderr
    return done.stdout if expect == 0 else done.stderr


def test_names_versions_and_reprs():
    out = run(
        """
        import importlib.metadata, importlib.util, sys
        import torch, torch.nn as nn, torch.nn.functional as F, torch.cuda.amp, torch.backends.cudnn as cudnn
        from torch.utils.data import DataLoader
        from torch.utils.data.dataloader import default_collate
        from torch.optim.lr_scheduler import StepLR
        from torch.autograd.grad_mode import no_grad
        import taeda
        assert torch.nn is nn is taeda.nn and nn.functional is F and torch.Tensor is taeda.Tensor
        assert torch.__version__.startswith("2.13.0+taeda") and torch.__version__ >= "2.1" and torch.__version__ >= (2, 13)
        assert not torch.__version__ < "2.13" and torch.__version__ < "3" and torch.__version__ != "2.12"
        assert importlib.util.find_spec("torch") is not None and importlib.metadata.version("torch") == torch.__version__
        assert torch.version.cuda is None and not torch.cuda.is_available() and torch.cuda.device_count() == 0
        assert torch.no_grad is no_grad and torch.torch is torch
        cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.cuda.manual_seed_all(0)
        print(torch.float32, torch.Size([2, 3]), torch.ones(2, dtype=torch.int8), torch.strided)
        assert "[torch.float32 of size 2]" in repr(nn.ParameterList([nn.Parameter(torch.ones(2))]))
        assert "torch._C._VariableFunctions" not in sys.modules and "torch/lib" not in str(torch.__file__)
        """
    )
    assert out == "torch.float32 torch.Size([2, 3]) tensor([1, 1], dtype=torch.int8) torch.strided\n"


def test_types_say_torch(tmp_path):
    out = run(
        f"""
        import copy, pickle, torch, torch.nn as nn
        from torch.distributions import Normal
        x = torch.ones(2)
        print(type(x), type(nn.Parameter(x)), type(x.shape), type(x.dtype), type(x.device), nn.Linear, Normal, torch.finfo)
        print(type(torch.optim.SGD([x], 0.1)), torch.no_grad, torch.utils.data.DataLoader)
        model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        assert str(pickle.loads(pickle.dumps(model))) == str(copy.deepcopy(model)) == str(model)
        assert pickle.loads(pickle.dumps((x.dtype, x.device, x.shape)))[2] == (2,)
        assert Normal(x, x).expand((3, 2)).batch_shape == (3, 2)
        torch.save(model, {str(tmp_path / "model.pt")!r})
        assert str(torch.load({str(tmp_path / "model.pt")!r}, weights_only=False)) == str(model)
        """
    ).splitlines()
    names = "Tensor nn.parameter.Parameter Size dtype device nn.modules.linear.Linear distributions.normal.Normal finfo"
    assert out[0] == " ".join(f"<class 'torch.{name}'>" for name in names.split())
    names = "optim.sgd.SGD autograd.grad_mode.no_grad utils.data.dataloader.DataLoader"
    assert out[1] == " ".join(f"<class 'torch.{name}'>" for name in names.split())
    torch = pytest.importorskip("torch")
    assert str(torch.load(tmp_path / "model.pt", weights_only=False)).startswith("Sequential(")


def test_what_is_missing_is_named():
    out = run(
        """
        import torch
        for look in (lambda: torch.nothing, lambda: torch.nn.nothing, lambda: __import__("torch.nothing.more")):
            try:
                look()
            except (AttributeError, ImportError) as error:
                print(type(error).__name__, error)
        try:
            torch.jit.load("x.pt")
        except ValueError as error:
            print(error)
        """
    ).splitlines()
    assert out[0].startswith("AttributeError module 'torch' has no attribute 'nothing'")
    assert "torch.nn.nothing" in out[1]
    assert out[2].startswith("ModuleNotFoundError No module named 'torch.nothing'")
    assert out[3] == "The provided filename x.pt does not exist"


@pytest.mark.parametrize("how", ["file", "module", "folder"])
def test_programs_get_their_arguments(tmp_path, monkeypatch, how):
    (tmp_path / "helper.py").write_text("import torch\nvalue = torch.arange(3).sum().item()\n")
    code = "import sys, torch, helper\nif __name__ == '__main__':\n    print(sys.argv[1:], helper.value)\n"
    name = "__main__.py" if how == "folder" else "program.py"
    (tmp_path / name).write_text(code)
    monkeypatch.chdir(tmp_path)
    if how == "module":
        assert run("program", "--epochs", "3", how="-m") == "['--epochs', '3'] 3\n"
    else:
        target = tmp_path if how == "folder" else tmp_path / name
        assert run(str(target), "--epochs", "3", how=None) == "['--epochs', '3'] 3\n"


def test_errors_of_the_command_line():
    assert "no such file" in run("no_such_program.py", how=None, expect=1)
    assert "usage" in run("--help", how=None)


def test_install_and_uninstall():
    code = """
    import sys
    import taeda.standin
    torch = taeda.standin.install()
    assert taeda.standin.install() is torch and taeda.standin.is_installed()
    import torch.nn
    assert repr(torch.float32) == "torch.float32"
    taeda.standin.uninstall()
    assert "torch" not in sys.modules and "torch.nn" not in sys.modules and repr(taeda.float32) == "taeda.float32"
    sys.modules["torch"] = sys
    try:
        taeda.standin.install()
    except RuntimeError as error:
        assert "imported already" in str(error)
    else:
        raise AssertionError
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_parts_of_distributed_that_packages_name():
    run(
        """
        import torch, torch.distributed as dist, torch.distributed.checkpoint, torch.distributed.nn.functional
        from torch.distributed.tensor import DTensor, DeviceMesh as A, Shard
        from torch.distributed.device_mesh import DeviceMesh as B
        from torch.distributed.fsdp import FullyShardedDataParallel as C, ShardingStrategy
        from torch.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel as D
        from torch.distributed.elastic.multiprocessing.errors import record
        from torch.nn.parallel import DistributedDataParallel as E
        from torch.nn.parallel.distributed import DistributedDataParallel as F
        assert A is B and C is D and E is F is torch.nn.parallel.DistributedDataParallel
        assert not isinstance(torch.ones(2), DTensor) and Shard(0) == Shard(0) != Shard(1)
        assert ShardingStrategy.FULL_SHARD.name == "FULL_SHARD" and record(lambda: 3)() == 3
        from torch.distributed._composable.fsdp import fully_shard as G
        from torch.distributed._tensor import DTensor as H
        from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
        from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
        from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
        import torch.distributed.fsdp, taeda.distributed.fsdp
        assert G is torch.distributed.fsdp.fully_shard is taeda.distributed.fsdp.fully_shard and H is DTensor
        assert DefaultLoadPlanner(allow_partial_load=True).allow_partial_load
        from torch.distributed.optim import DistributedOptimizer
        from torch.distributed.rpc import init_rpc
        from torch.distributed.tensor.experimental import local_map
        assert issubclass(PostLocalSGDOptimizer, torch.optim.Optimizer) and PeriodicModelAverager.average_parameters
        for refuse in (DistributedOptimizer, init_rpc):
            try:
                refuse()
            except NotImplementedError as error:
                assert "no such part" in str(error)
            else:
                raise AssertionError
        """
    )


def test_what_programs_ask_of_a_machine_without_gpus():
    run(
        """
        import torch, warnings
        assert not torch.backends.mps.is_available() and not torch.distributed.is_initialized()
        for refuse in (lambda: torch.cuda.Stream(), lambda: torch.cuda.current_device(), lambda: torch.ones(1).cuda()):
            try:
                refuse()
            except (RuntimeError, AssertionError) as error:
                assert "CUDA" in str(error), error
            else:
                raise AssertionError
        with torch.cuda.device(None):
            torch.cuda.synchronize if False else torch.cuda.empty_cache()
        with torch.backends.cudnn.flags(enabled=True, deterministic=True):
            assert torch.backends.cudnn.deterministic
        assert not torch.backends.cudnn.deterministic
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            scaler = torch.cuda.amp.GradScaler()
            with torch.autocast("cuda"):
                assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32
        assert [w.category for w in seen] == [FutureWarning, UserWarning, UserWarning] and not scaler.is_enabled()
        """
    )


def test_decorators_of_compilers(tmp_path):
    path = tmp_path / "program.py"  # scripts are read from their source
    path.write_text(
        textwrap.dedent(
            """
        import torch
        from typing import List

        @torch.jit.script
        def double(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @torch.compile(mode="max-autotune")
        def triple(x):
            return x * 3

        @torch.compiler.disable
        def four(x):
            return x * 4

        class M(torch.nn.Module):
            __constants__ = ["n"]
            def __init__(self):
                super().__init__()
                self.n: torch.jit.Final[int] = 2
                self.l = torch.nn.Linear(2, 2)
            @torch.jit.ignore
            def helper(self):
                return 1
            @torch.jit.export
            def forward(self, x):
                return self.l(x) if not torch.jit.is_scripting() else x

        x = torch.ones(2)
        assert double(x).sum() == 4 and triple(x).sum() == 6 and four(x).sum() == 8
        m = M()
        traced = torch.jit.trace(torch.jit.script(m), (x,))
        assert torch.equal(traced(x), x) and not torch.equal(m(x), x) and torch.jit.annotate(List[int], [1]) == [1]
        c = torch.compile(m)
        assert torch.equal(c(x), m(x)) and c._orig_mod is m and list(c.state_dict()) == ["_orig_mod.l.weight", "_orig_mod.l.bias"]
        c.l.bias.data.zero_()
        c.eval()
        assert not m.training and c.n == 2
        """
        )
    )
    run(str(path), how="")


def test_names_without_a_device_or_a_compiler():
    out = run(
        """
        import torch
        from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, load
        assert CUDA_HOME is None and isinstance(torch._C.default_generator, torch.Generator)
        assert torch._C.get_num_threads() == torch.get_num_threads() and not torch._C.is_anomaly_enabled()
        with torch.cpu.stream(torch.cpu.Stream()), torch.accelerator.device_index(None):
            torch.cpu.current_stream().wait_stream(torch.cpu.Stream())
        for call in (
            lambda: load("name", ["file.cpp"]), lambda: torch.accelerator.memory_allocated(), lambda: torch._C.nothing
        ):
            try:
                call()
            except Exception as error:
                print(type(error).__name__)
        """
    )
    assert out.split() == ["NotImplementedError", "RuntimeError", "AttributeError"]


def test_pickles_of_torch_by_pickle_itself(tmp_path):
    torch = pytest.importorskip("torch")
    x = torch.arange(6.0).reshape(2, 3).t()
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps({"x": x, "p": torch.nn.Parameter(x[0]), "s": x.untyped_storage()}))
    out = run(
        f"""
        import pickle, torch
        with open({str(path)!r}, "rb") as file:
            d = pickle.load(file)
        print(d["x"].tolist(), d["x"].stride(), type(d["p"]).__name__, d["p"].tolist(), d["s"].nbytes())
        from torch.utils._pytree import _namedtuple_flatten, _tuple_flatten
        """
    )
    assert out == "[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] (1, 3) Parameter [0.0, 3.0] 24\n"


def test_processes_started_afresh_inherit_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import multiprocessing, subprocess, sys
            import torch

            def work(x):
                return type(x).__module__, torch.__version__, (x * 2).tolist()

            if __name__ == "__main__":
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    print(pool.map(work, [torch.ones(2)]))
                code = "import torch.nn; print(torch.__version__, torch.nn.Linear.__module__)"
                print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/").stdout)
            """
        )
    )
    out = run(str(program), how="").split("\n")
    assert "'torch', '2.13.0+taeda" in out[0] and "[2.0, 2.0]" in out[0]
    assert out[1].startswith("2.13.0+taeda") and out[1].endswith("torch.nn.modules.linear")


def test_private_names_that_packages_take():
    out = run(
        """
        import torch
        from torch.utils.checkpoint import get_device_states, set_device_states
        from torch.nn.modules.transformer import _get_activation_fn
        from torch._utils import _element_size, _get_device_index
        set_device_states(*get_device_states(torch.ones(1)))
        assert not torch.cuda._initialized and _element_size(torch.float64) == 8 and _get_device_index("cuda:2") == 2
        print(torch._shape_as_tensor(torch.ones(2, 3)), torch._check(True), torch._check_is_size(3, max=3))
        print(torch._segment_reduce(torch.ones(3), "sum", lengths=torch.tensor([1, 2])))
        for check, args in (
            (torch._check, (False, lambda: "why")), (torch._check, (1,)), (torch._check_value, (False,)),
            (torch._check_index, (False,)), (torch._check_is_size, (-1,)), (set_device_states, ([0], [None])),
        ):
            try:
                check(*args)
            except Exception as error:
                print(type(error).__name__, end=" ")
        """
    )
    assert out.split("\n") == [
        "tensor([2, 3]) None None",
        "tensor([1., 2.])",
        "RuntimeError TypeError ValueError IndexError RuntimeError RuntimeError ",
    ]


def test_functorch():
    run(
        """
        import pytest, torch
        from functorch import combine_state_for_ensemble, grad, jacrev, make_functional, make_functional_with_buffers, vmap
        x = torch.randn(5, 3)
        net = torch.nn.Linear(3, 2)
        f, params = make_functional(net)
        assert torch.equal(f(params, x), net(x)) and [p.shape for p in params] == [(2, 3), (2,)]
        assert not list(f.parameters()) and params[0] is not net.weight and params[0].requires_grad
        assert not make_functional(net, disable_autograd_tracking=True)[1][0].requires_grad
        g = grad(lambda p: f(p, x).sum())(params)
        assert torch.allclose(g[1], torch.full((2,), 5.0))
        assert jacrev(f)(params, x[0])[0].shape == (2, 2, 3)
        bn = torch.nn.BatchNorm1d(3).eval()
        f, params, buffers = make_functional_with_buffers(bn)
        assert torch.equal(f(params, buffers, x), bn(x)) and len(buffers) == 3
        with pytest.raises(RuntimeError, match="make_functional_with_buffers"):
            make_functional(bn)
        with pytest.raises(ValueError, match="expected 2 parameters"):
            f(params[:1], buffers, x)
        nets = [torch.nn.Linear(3, 2) for _ in range(4)]
        f, params, buffers = combine_state_for_ensemble(nets)
        got = vmap(f, in_dims=(0, 0, None))(params, buffers, x)
        assert torch.allclose(got, torch.stack([n(x) for n in nets]), atol=1e-6)
        from functorch import make_fx
        from functorch.experimental import chunk_vmap

        x = torch.arange(6.0).view(3, 2)
        assert chunk_vmap(lambda v, *, k: v.sum() * k)(x, k=2).tolist() == [2, 10, 18]
        assert make_fx(lambda v: v * 2)(x)(x).equal(x * 2)
        with pytest.raises(ModuleNotFoundError, match="functorch.dim"):
            import functorch.dim
        """
    )


def test_floating_point_operations_are_counted():
    out = run(
        """
        import torch
        from torch.utils.flop_counter import FlopCounterMode
        with FlopCounterMode(display=False) as counter:
            torch.mm(torch.ones(2, 3), torch.ones(3, 4))
        print(counter.get_total_flops())
        """
    )
    assert out == "48\n"


def test_names_that_are_listed_are_there():
    run(
        """
        import torch
        listed = dir(torch)
        assert "_core" not in listed and "nn" in listed
        for name in listed:
            getattr(torch, name)
        """
    )


def test_a_recorded_resampling():
    run(
        """
        import torch
        from torch.fx.experimental.proxy_tensor import make_fx
        f = lambda x: torch.nn.functional.interpolate(x, scale_factor=1.5)
        x = torch.rand(1, 2, 4, 4)
        assert make_fx(f)(x)(x + 1).equal(f(x + 1))
        """
    )

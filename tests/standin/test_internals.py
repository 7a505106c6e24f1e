"""Private names that packages import from PyTorch: they behave as there."""

import subprocess
import sys

import pytest

PROGRAM = """
import torch
from torch.autograd.functional import _as_tuple, _construct_standard_basis_for, _grad_postprocess, _tuple_postprocess
from torch.autograd.function import InplaceFunction
from torch.autograd._functions.utils import maybe_unexpand, maybe_view
from torch.autograd.profiler_util import _format_memory, _format_time
from torch.nn.modules.module import _EXTRA_STATE_KEY_SUFFIX, _global_forward_hooks
from torch.nn.parallel._functions import Broadcast, Gather, Scatter
from torch.ops import aten
from torch.optim.lbfgs import _cubic_interpolate, _strong_wolfe
from torch.optim.lr_scheduler import EPOCH_DEPRECATION_WARNING
from torch.utils._foreach_utils import _device_has_foreach_support, _group_tensors_by_device_and_dtype, _has_foreach_support
from torch.utils._mode_utils import no_dispatch
from torch._vmap_internals import _vmap

basis = _construct_standard_basis_for((torch.ones(1), torch.ones(2, dtype=torch.float64)), (1, 2))
print([(b.tolist(), b.dtype) for b in basis])
print(_as_tuple(3), _as_tuple((1, 2)), _tuple_postprocess(((1,), (2,)), (True, False)))
x = torch.ones(2, requires_grad=True)
print([t.requires_grad for t in _grad_postprocess((x, x), False)], _grad_postprocess(((x,), (x,)), True)[0][0] is x)
print(maybe_unexpand(torch.ones(3, 2), (1, 2)).tolist(), maybe_view(torch.ones(3, 2), (6,)).shape)
print(_format_time(12.3), _format_time(1e5), _format_time(2e6), _format_memory(1536))
print(torch.autograd._functions.Resize.apply(x, (2, 1)).shape, torch.autograd._functions.Type.apply(x, torch.float64).dtype)
print(_EXTRA_STATE_KEY_SUFFIX, len(_global_forward_hooks), EPOCH_DEPRECATION_WARNING[:30])
handle = torch.nn.modules.module.register_module_forward_hook(print)
print(len(_global_forward_hooks), bool(torch.nn.modules.module._has_any_global_hook()))
handle.remove()
print(aten.mm.default, aten.mm, aten.add.Tensor(torch.ones(2), 1).tolist(), isinstance(aten.mm.default, torch._ops.OpOverload))
print(_vmap(lambda a: (a.sum(), None), 0, 0, allow_none_pass_through=True)(torch.ones(2, 3)))
with no_dispatch():
    print(torch.nn.functional.torch is torch, torch.types.Device is not None, torch.autograd.kineto_available())
print(round(float(_cubic_interpolate(0.0, torch.tensor(1.0), torch.tensor(-1.0), 1.0, torch.tensor(0.7), torch.tensor(0.5))), 5))
evaluate = lambda x, t, d: (float(((x + t * d) ** 2).sum()), 2 * (x + t * d))
found = _strong_wolfe(evaluate, torch.ones(2), 1.0, -torch.ones(2) * 0.3, 2.0, 2 * torch.ones(2), torch.tensor(-1.2))
print([round(float(v), 4) for v in (found[0], found[1].sum(), found[2], found[3])])
class Inplace(InplaceFunction):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
print(torch.autograd.grad(Inplace.apply(x).sum(), x)[0].tolist(), Inplace(True).inplace)
params = [torch.ones(1), torch.ones(2).double(), torch.ones(3)]
for key, (lists, places) in sorted(_group_tensors_by_device_and_dtype([params, [None] * 3, []], True).items(), key=str):
    print(key, lists, places)
print(_device_has_foreach_support(x.device), _has_foreach_support([x, None], x.device))
for check, given in ((torch._check_with, False), (torch._check_tensor_all_with, torch.tensor([True, False]))):
    check(KeyError, torch.tensor([True]) if check is torch._check_tensor_all_with else True, str)
    try:
        check(KeyError, given, lambda: "told")
    except KeyError as error:
        print(check.__name__, error)
"""


GUARDS = """
import torch
lib = torch.library.Library("guarded", "DEF")
lib.define("plus(Tensor x) -> Tensor"); lib.impl("plus", lambda x: x + 1, "CPU")
keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)
def cast(x):
    with torch._C._ExcludeDispatchKeyGuard(keys):
        return torch.ops.guarded.plus(x.float()), torch.is_autocast_enabled("cpu"), (torch.ones(1, 1) @ torch.ones(1, 1)).dtype
def cast2(x):
    made, *seen = cast(x)
    print(*seen, made.dtype)
    return made
lib.impl("plus", cast2, "AutocastCPU")
half = torch.ones(1, dtype=torch.bfloat16)
with torch.autocast("cpu"):
    print(torch.ops.guarded.plus(half).dtype, torch.is_autocast_enabled("cpu"))
    with torch._C._DisableAutocast():
        print(torch.ops.guarded.plus(half).dtype, torch.is_autocast_enabled("cpu"))
print(torch._custom_ops.get_ctx(), torch._C._LinAlgError is torch.linalg.LinAlgError)
from torch._library.effects import EffectType
print(list(EffectType))
"""

COPIED = """
import torch
from torch.nn.init import _no_grad_fill_, _no_grad_normal_, _no_grad_trunc_normal_, _no_grad_uniform_, _no_grad_zero_
from torch.optim.optimizer import (
    DeviceDict, DeviceDtypeDict, ParamsT, _capturable_doc, _default_to_fused_or_foreach, _device_dtype_check_for_fused,
    _differentiable_doc, _disable_dynamo_if_unsupported, _foreach_doc, _fused_doc, _get_capturable_supported_devices,
    _get_scalar_dtype, _get_value, _maximize_doc, _params_doc, _stack_if_compiling, _to_scalar,
    _use_grad_for_differentiable, _view_as_real,
)
w = torch.nn.Parameter(torch.ones(2))
print([_default_to_fused_or_foreach([w, None], *flags) for flags in ((False,), (False, True), (True, True))])
print(_get_capturable_supported_devices(), _get_capturable_supported_devices(supports_xla=False))
print(_get_scalar_dtype(), _get_value(torch.tensor(2.0)), _get_value(3), _stack_if_compiling([w]) == [w], _to_scalar(torch.ones(1)))
class Mine(torch.optim.Optimizer):
    @_use_grad_for_differentiable
    def step(self):
        return torch.is_grad_enabled()
print([Mine([w], {"differentiable": d}).step() for d in (False, True)], torch.is_grad_enabled())
lists = [[torch.ones(1) * 1j, w], [torch.ones(1) * 1j, w]]
_view_as_real(*lists)
print(lists, _disable_dynamo_if_unsupported(single_tensor_fn=_get_value)(_to_scalar)(4))
_device_dtype_check_for_fused(w)
for p, no_gpu in ((torch.ones(1, dtype=torch.int64), False), (torch.ones(1, dtype=torch.bool), True)):
    try:
        _device_dtype_check_for_fused(p, no_gpu)
    except RuntimeError as error:
        print(type(error).__name__)
print([f(w, *to).tolist() for f, *to in ((_no_grad_fill_, 2.0), (_no_grad_zero_,), (_no_grad_uniform_, 1.0, 1.0))])
print(_no_grad_normal_(w, 1.0, 0.0).tolist(), bool(_no_grad_trunc_normal_(w, 0.0, 1.0, 0.0, 2.0).min() >= 0))
print(torch.jit._recursive.concrete_type_store.type_store.pop(Mine, None), torch.backends.flags_frozen())
x, lstm, state = torch.ones(2, 1, 3), torch.nn.LSTM(3, 2), torch.zeros(1, 1, 2)
print([t.shape for t in torch._VF.lstm(x, (state, state), lstm._flat_weights, True, 1, 0.0, False, False, False)])
print(torch._VF.norm(w, 2).shape, torch._C._VariableFunctions.relu(w).shape, hasattr(torch._VF, "nothing"))
print(torch._tensor_str._tensor_str(torch.ones(2), 4), torch._tensor_str._str_intern(w, tensor_contents="here"))
class Sub(torch.Tensor):
    pass
for t in (torch.ones(0, 2), torch.ones(1, dtype=torch.int32).as_subclass(Sub), w * 2, torch.ones(2, device="meta")):
    print(torch._tensor_str._str(t, tensor_contents="here"))
"""


@pytest.mark.parametrize(
    "program, lines", [(PROGRAM, 19), (GUARDS, 5), (COPIED, 19)], ids=["names", "guards", "copied"]
)
def test_names_behave_as_there(program, lines):
    def run(*command):
        done = subprocess.run([sys.executable, "-W", "ignore", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    got = run("-m", "taeda.standin", "-c", program)
    assert len(got) == lines
    try:
        import torch
    except ImportError:
        return
    assert torch.__version__.startswith("2.13")
    assert got == run("-c", program)


def test_every_name_of_the_tables_is_there():
    code = """
import importlib, torch
from taeda.standin.internals import NAMES, REFUSED, _homes
for module in NAMES:
    if module != "utils.tensorboard.summary":  # needs tensorboard
        there = importlib.import_module(f"torch.{module}".rstrip("."))
        for name in _homes(module):
            getattr(there, name)
assert torch.masked._ops.median is torch.masked.median
for module, (why, names) in REFUSED.items():
    there = importlib.import_module(f"torch.{module}".rstrip("."))
    for name in names.split():
        try:
            getattr(there, name)()
        except NotImplementedError as error:
            assert why in str(error) and f"torch.{module}".rstrip(".") in str(error), error
        else:
            raise AssertionError(f"{module}.{name}")
"""
    done = subprocess.run([sys.executable, "-m", "taeda.standin", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_packages_ask_of_tensors_modules_and_groups():
    code = """
import warnings
import torch
import torch.distributed as dist
p = torch.nn.Parameter(torch.ones(2))
assert p._cdata == p._cdata != p.data._cdata
assert torch.compile(torch.nn.Linear(2, 2)).dynamo_ctx(lambda x: x.exp())(torch.zeros(1)).item() == 1
assert torch._C._is_alias_of(p, p.detach()[1:]) and not torch._C._is_alias_of(p, p.clone())
asks = torch._C._is_torch_function_mode_enabled
with torch.overrides.BaseTorchFunctionMode():
    with torch._C.DisableTorchFunctionSubclass():
        assert asks()
    with torch._C.DisableTorchFunction():
        assert not asks()
assert not asks()
groups = dist.distributed_c10d._pg_map
assert not groups and object() not in groups
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
assert list(groups) == [dist.group.WORLD] and groups[dist.group.WORLD][0] == "gloo"
assert dist._rank_not_in_group(dist.GroupMember.NON_GROUP_MEMBER) and not dist._rank_not_in_group(None)
assert dist.distributed_c10d._get_process_group_name(dist.group.WORLD) == dist.group.WORLD.group_name
dist.destroy_process_group()
with warnings.catch_warnings():
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "torch.tensor results are registered as constants in the trace")
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    torch.jit.trace(lambda x: x + torch.tensor(1.0), torch.ones(2))
"""
    done = subprocess.run([sys.executable, "-m", "taeda.standin", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_limits_of_recompiling():
    code = """
import sys
import torch, torch._dynamo.config as config
from torch._dynamo.utils import disable_cache_limit
from torch.cuda.amp.common import amp_definitely_not_available
from torch.cuda.comm import broadcast, gather
assert amp_definitely_not_available()
from torch.distributed._tensor.experimental import implicit_replication
from torch.distributed.distributed_c10d import _get_global_rank
with disable_cache_limit():
    assert config.recompile_limit == config.accumulated_recompile_limit == sys.maxsize
print(config.recompile_limit)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "taeda.standin", "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "8\n"


def test_ranges_in_graphs():
    """The ops that begin and end a range of the profiler are nodes of a traced graph, and run there."""
    code = """
import torch
from torch.distributed._tensor.api import DTensor
from torch.distributed._tensor.device_mesh import DeviceMesh
from torch.distributed._tensor.placement_types import Shard
def f(x):
    handle = torch.ops.profiler._record_function_enter_new("part", None)
    x = x + 1
    torch.ops.profiler._record_function_exit(handle)
    return x
graph = torch.fx.Graph()
x = graph.placeholder("x")
handle = graph.call_function(torch.ops.profiler._record_function_enter, ("part",))
y = graph.call_function(torch.relu, (x,))
graph.call_function(torch.ops.profiler._record_function_exit, (handle,))
graph.output(y)
made = torch.fx.GraphModule(torch.nn.Module(), graph)
print(made.code.count("torch.ops.profiler._record_function_"))
for run in (f, made):
    run(torch.ones(2))
    with torch.autograd.profiler.profile() as prof:
        run(torch.ones(2))
    print([e.name for e in prof.function_events if e.name in ("part", "aten::add", "aten::relu")])
proxy = torch.fx.Proxy(torch.fx.Graph().placeholder("x"))
print(type(torch.ops.profiler._record_function_exit(proxy)) is torch.fx.Proxy)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "taeda.standin", "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:4] == ["2", "['part', 'aten::add']", "['part', 'aten::relu']", "True"]


def test_graphs_name_functions_that_are_there():
    code = """
import operator
import torch
from taeda.fx._names import _functions, qualified_name
names = {qualified_name(function): function for function in _functions()}
print([name for name, function in names.items() if operator.attrgetter(name[6:])(torch) != function], len(names) > 800)
class Model(torch.nn.Module):
    def forward(self, x):
        y = torch.linalg.inv(x) @ torch.fft.rfft(x).real + torch.special.i0e(x).sum()
        return torch.nn.functional.softplus(torch.nn.functional.hardtanh_(y))
x = torch.eye(3) + 1
for made in (torch.fx.symbolic_trace(Model()), torch.export.export(Model(), (x,)).module()):
    print(torch.equal(made(x), Model()(x)))
def halves(x):
    with torch.no_grad():
        y = x * 2
    return x + y
made = torch.compile(halves, backend=lambda graph, inputs: graph.recompile() and graph)
print(torch.equal(made(x.requires_grad_()), halves(x)))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "taeda.standin", "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:4] == ["[] True", "True", "True", "True"]


def test_native_ops_are_there_whatever_was_imported():
    """Also those of layers, which are declared when they are first named."""
    names = ["mse_loss", "convolution", "max_pool2d_with_indices_backward", "no_such_op"]
    program = f"import taeda; print([hasattr(taeda.ops.aten, name) for name in {names}])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[True, True, True, False]\n", done.stderr


def test_functions_that_packages_wrap_to_keep_a_class():
    """pypose wraps three of PyTorch's functions while it differentiates: they are where PyTorch has them, and ``vmap``
    and derivatives call them."""
    code = """
import torch
from torch._functorch import eager_transforms, vmap
class Pose(torch.Tensor):
    def twice(self):
        return self * 2
def inverse(x):
    assert type(x) is Pose
    return x**2
seen = []
def keeping(function):
    def wrapped(x, *rest):
        seen.append(function.__name__)
        made = function(x, *rest)
        return made.as_subclass(Pose) if type(x) is Pose else made
    return wrapped
assert torch.autograd.forward_ad.make_dual and eager_transforms._wrap_tensor_for_grad(1.0, 0) == 1.0
vmap._add_batch_dim = keeping(vmap._add_batch_dim)
eager_transforms._wrap_tensor_for_grad = keeping(eager_transforms._wrap_tensor_for_grad)
pose = torch.tensor([1.0, 2.0]).as_subclass(Pose)
print(torch.func.jacrev(inverse)(pose).tolist(), seen)
print(torch.func.vmap(lambda x: x.twice())(pose).tolist(), seen[2:])
print(eager_transforms.jacrev is torch.func.jacrev)
"""
    done = subprocess.run([sys.executable, "-m", "taeda.standin", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "[[2.0, 0.0], [0.0, 4.0]] ['_wrap_tensor_for_grad', '_add_batch_dim']\n[2.0, 4.0] ['_add_batch_dim']\nTrue\n"
    )


TRACER = """
import pickle
import torch
import torch.fx._symbolic_trace as st
from torch import fx, nn

class Doubled(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(3))
        self.offset = torch.arange(3.0)

    def forward(self, x):
        return len(x) * self.inner(x) * self.scale + self.offset

def tracer():
    class Tracer(fx.Tracer):
        def is_leaf_module(self, module, *rest):
            return not isinstance(module, nn.Sequential)

        @st.compatibility(is_backward_compatible=True)
        def trace(self, root, concrete_args=None):
            self.root, fn = root, type(root).forward
            self.submodule_paths = {module: name for name, module in root.named_modules()}
            self.graph = fx.Graph(tracer_cls=type(self))
            self.tensor_attrs = {v: k for k, v in vars(root).items() if isinstance(v, (torch.Tensor, st.ScriptObject))}
            assert isinstance(fn, st.FunctionType)
            names = fn.__globals__
            fn, args = self.create_args_for_root(fn, True, concrete_args)
            cache = {}

            @st.functools.wraps(st._orig_module_getattr)
            def look_up(module, name):
                return self.getattr(name, st._orig_module_getattr(module, name), cache)

            @st.functools.wraps(st._orig_module_call)
            def call(module, *args, **kwargs):
                def forward(*args, **kwargs):
                    return st._orig_module_call(module, *args, **kwargs)
                st._autowrap_check(patcher, module.forward.__globals__, self._autowrap_function_ids)
                return self.call_module(module, forward, args, kwargs)

            with st._Patcher() as patcher:
                patcher.patch_method(nn.Module, "__getattr__", look_up, deduplicate=False)
                patcher.patch_method(nn.Module, "__call__", call, deduplicate=False)
                patcher.patch(names, "len", lambda x: 3)
                patcher.patch(names, "len", lambda x: 2)
                st._patch_wrapped_functions(patcher)
                st._autowrap_check(patcher, names, self._autowrap_function_ids)
                self.create_node("output", "output", (self.create_arg(fn(*args)),), {})
            return self.graph
    return Tracer()

module = Doubled()
before = dict(vars(nn.Module))
for _ in range(2):
    traced = fx.GraphModule(module, tracer().trace(module))
    print([(n.op, str(n.target).split(".")[0]) for n in traced.graph.nodes if n.op in ("get_attr", "call_module")])
    print("len" in globals(), dict(vars(nn.Module)) == before)
x = torch.randn(2, 2)
print(torch.equal(traced(x), module(x)), torch.equal(pickle.loads(pickle.dumps(traced))(x), module(x)))
"""


def test_a_tracer_that_replaces_the_methods_of_modules_itself():
    """As PyG's does. Afterwards all is as it was, and what it traced can be pickled."""
    command = [sys.executable, "-m", "taeda.standin", "-c", TRACER]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    nodes = "[('call_module', 'inner'), ('call_module', 'inner'), ('get_attr', 'scale'), ('get_attr', 'offset')]"
    assert done.stdout.split("\n")[:5] == [nodes, "False True"] * 2 + ["True True"]


def test_the_test_case_of_pytorchs_tests():
    """Packages' tests derive theirs from it."""
    program = """
import torch
from torch.testing._internal.common_utils import TestCase, run_tests
class Case(TestCase):
    def test_equal(self):
        self.assertEqual(torch.ones(2), [1.0, 1.0])
        self.assertEqual({"a": torch.ones(1), "b": 1}, {"a": torch.ones(1), "b": 1.0})
        self.assertEqual("text", "text")
        self.assertNotEqual(torch.ones(1), torch.ones(1).double())
        self.assertEqual(torch.ones(1), torch.ones(1).double() + 1e-3, exact_dtype=False, atol=1e-2, rtol=0)
        with self.assertRaises(AssertionError):
            self.assertEqual(torch.ones(1), torch.zeros(1))
run_tests()
"""
    done = subprocess.run([sys.executable, "-m", "taeda.standin", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_ranges_of_sizes_by_their_private_path():
    program = """
import torch
from torch.utils._sympy.numbers import IntInfinity, int_oo
from torch.utils._sympy.value_ranges import ValueRanges
program = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(3, 2),), dynamic_shapes=({0: torch.export.Dim("n", min=2)},))
(found,) = program.range_constraints.values()
assert isinstance(found, ValueRanges) and isinstance(found.upper, IntInfinity) and found.upper == int_oo
assert not isinstance(found.lower, IntInfinity)
"""
    done = subprocess.run([sys.executable, "-m", "taeda.standin", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_mode_recognises_functions_that_initialise():
    program = """
import torch
found = []
class Empty(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "__module__", None) == "torch.nn.init":
            found.append(function.__name__)
            return kwargs["tensor"]
        return function(*args, **(kwargs or {}))
with Empty():
    torch.nn.Linear(2, 2), torch.nn.Embedding(2, 2)
assert found == ["kaiming_uniform_", "uniform_", "normal_"], found
"""
    done = subprocess.run([sys.executable, "-m", "taeda.standin", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

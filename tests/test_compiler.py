"""``compile``'s arguments and their errors, ``compiler``'s functions, and what they share with PyTorch's."""

import copy
import inspect
import pickle
import re
import subprocess
import sys

import pytest

import taeda
from taeda import compiler, nn
from taeda._core import fusion
from taeda.graph import options
from taeda.graph.backends import InvalidBackend


def double(x):
    return x * 2


@pytest.fixture
def counting():
    """A backend that counts its graphs."""
    graphs = []

    def backend(module, inputs, **given):
        graphs.append(given)
        return module.forward

    backend.graphs = graphs
    yield backend
    compiler.set_stance("default")
    compiler.set_default_backend(None)


# ---- arguments ---------------------------------------------------------------------------------------------------------

WRONG = {
    "mode": dict(mode="foo"), "options": dict(options={"foo": 1}), "type": dict(options={"max_autotune": "x"}),
    "both": dict(options={}, mode="default"), "backend": dict(backend="foo"), "model": dict(model=5),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    kwargs = dict(WRONG[case])
    model = kwargs.pop("model", double)
    kind = {"backend": InvalidBackend, "model": AssertionError}.get(case, RuntimeError)
    with pytest.raises(kind) as ours:
        taeda.compile(model, **kwargs)
    torch = pytest.importorskip("torch")
    with pytest.raises((RuntimeError, AssertionError)) as theirs:
        torch.compile(model, **kwargs)
    assert type(ours.value).__name__ == type(theirs.value).__name__
    assert str(ours.value)[:28] == str(theirs.value)[:28]  # PyTorch's goes on with the names of its modules


def test_arguments_and_modes_are_pytorchs():
    torch, inductor = pytest.importorskip("torch"), pytest.importorskip("torch._inductor")
    assert list(inspect.signature(taeda.compile).parameters) == list(inspect.signature(torch.compile).parameters)
    assert set(options.MODES) == set(inductor.list_mode_options())
    known = inductor.list_options()
    assert [name for name in options.OPTIONS if name not in known] == []
    missing = {name for name in torch.compiler.__all__ if not hasattr(compiler, name)}
    assert missing == {"load_compiled_function"}


@pytest.mark.parametrize("backend", ["inductor", "eager", "aot_eager", "cudagraphs"])
@pytest.mark.parametrize(
    "mode", [None, "default", "lite", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]
)
def test_every_backend_and_mode(backend, mode):
    function = taeda.compile(double, backend=backend, mode=mode)
    for _ in range(3):
        assert function(taeda.ones(2)).tolist() == [2.0, 2.0]


def test_options_and_disable():
    for given in ({"max-autotune": True}, {"triton.cudagraphs": True}, {"max_autotune": False, "dce": True}, {}):
        assert taeda.compile(double, options=given)(taeda.ones(1)) == 2
    assert taeda.compile(double, disable=True) is double and taeda.compile(nn.Linear) is nn.Linear


def test_functions_methods_and_decorators(counting):
    class Thing:
        scale = 3.0

        @taeda.compile(backend=counting)
        def method(self, x):
            return x * self.scale

        @taeda.compile
        def other(self, x):
            """Says something."""
            return x + self.scale

    thing = Thing()
    assert (
        thing.method(taeda.ones(1)) == 3
        and thing.other(taeda.ones(1)) == 4
        and Thing.other.__doc__ == "Says something."
    )
    assert taeda.compile(thing.method)(taeda.ones(1)) == 3
    assert taeda.compile(taeda.compile(double, backend=counting))(taeda.ones(1)) == 2
    assert len(counting.graphs) == 1


def test_modules_in_place_and_around(counting):
    taeda.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    x = taeda.randn(3, 2)
    want = module(x)
    around = taeda.compile(module, backend=counting)
    assert taeda.equal(around(x), want) and around._orig_mod is module and len(counting.graphs) == 1
    assert taeda.compile(around)._orig_mod is module
    assert list(around.state_dict()) == ["_orig_mod." + name for name in module.state_dict()]
    module.compile(backend=counting)
    assert taeda.equal(module(x), want) and len(counting.graphs) == 2 and module._compiled_call_impl is not None
    module.compile()
    assert taeda.equal(module(x), want) and len(counting.graphs) == 2
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert twin._compiled_call_impl is None and taeda.equal(twin(x), want)


def test_backends_by_name(counting):
    taeda.compiler.register_backend(counting, name="counting", tags=("experimental",))
    assert taeda.compile(double, backend="counting", options={"a": 1})(taeda.ones(1)) == 2
    assert taeda.compile(double, backend=counting, mode="anything")(taeda.ones(1)) == 2
    assert counting.graphs == [{"options": {"a": 1}}, {"mode": "anything"}]
    assert "counting" not in compiler.list_backends() and "counting" in compiler.list_backends(exclude_tags=None)
    assert "inductor" in compiler.list_backends() and "eager" not in compiler.list_backends()
    with pytest.raises(AssertionError, match="duplicate name: counting"):
        compiler.register_backend(counting, name="counting")
    with pytest.raises(AssertionError, match="compiler_fn must be callable"):
        compiler.register_backend(5)
    compiler.set_default_backend(counting)
    assert taeda.compile(double)(taeda.ones(1)) == 2 and len(counting.graphs) == 3
    with pytest.raises(TypeError, match="string or callable"):
        compiler.set_default_backend(5)


# ---- while it runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["inductor", "eager", lambda module, inputs: module.forward])
def test_is_compiling_and_what_is_disabled(backend):
    seen = []

    @compiler.disable
    def part(x):
        y = x + 1
        seen.append((compiler.is_compiling(), fusion.is_computed(y)))
        return inner(y)

    @taeda.compile(backend=backend)
    def inner(x):
        seen.append(compiler.is_compiling())
        return x * 2

    def function(x):
        seen.append(compiler.is_compiling())
        y = part(x)
        seen.append(compiler.is_dynamo_compiling())
        return y

    assert taeda.equal(taeda.compile(function, backend=backend)(taeda.ones(8192)), taeda.full((8192,), 4.0))
    assert seen == [True, (False, True), False, True] and not compiler.is_compiling() and not compiler.is_exporting()


def test_ops_are_deferred_while_a_compiled_function_runs_and_no_longer():
    seen = []

    @taeda.compile
    def function(x):
        y = x * 2
        seen.append(fusion.is_computed(y))
        if x[0] > 1:
            raise KeyError
        return y

    assert fusion.is_computed(function(taeda.zeros(8192)))
    with pytest.raises(KeyError):
        function(taeda.ones(8192) * 2)
    assert seen == [False, False] and fusion.is_computed(taeda.ones(8192) * 3)


def test_stances(counting):
    x, y = taeda.ones(2), taeda.ones(3)

    def made():
        return taeda.compile(lambda x: x + 1, backend=counting), len(counting.graphs)

    function, before = made()
    with compiler.set_stance("force_eager"):
        function(x)
    assert len(counting.graphs) == before
    with compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="Detected recompile"):
        function(x)
    function(x)
    with compiler.set_stance("eager_on_recompile"):
        assert function(y).tolist() == [2.0] * 3 and function(x).tolist() == [2.0] * 2
    with compiler.set_stance("fail_on_recompile"):
        function(x)
    assert len(counting.graphs) == before + 1
    function, before = made()

    @compiler.set_stance("eager_then_compile")
    def twice():
        return function(x), len(counting.graphs) - before, function(x), len(counting.graphs) - before

    assert twice()[1::2] == (0, 1)
    compiler.set_stance(force_backend=counting)
    assert taeda.compile(double)(x).tolist() == [2.0] * 2 and len(counting.graphs) == before + 2
    compiler.set_stance("default")
    with pytest.raises(RuntimeError, match="invalid taeda"):
        compiler.set_stance("foo")
    with pytest.raises(RuntimeError, match="non-default stance cannot have force_backend"):
        compiler.set_stance("force_eager", force_backend="eager")
    with pytest.raises(RuntimeError, match="set_stance"):
        taeda.compile(lambda: compiler.set_stance("force_eager"))()


def test_reset_forgets_graphs(counting):
    function = taeda.compile(double, backend=counting)
    for _ in range(2):
        function(taeda.ones(2))
    compiler.reset()
    function(taeda.ones(2))
    assert len(counting.graphs) == 2


def test_functions_for_parts_of_programs():
    import numpy as np

    assert compiler.wrap_numpy(lambda a: np.sin(a) * 2)(taeda.zeros(2)).tolist() == [0.0, 0.0]
    for wrap in (compiler.allow_in_graph, compiler.assume_constant_result, compiler.nested_compile_region):
        assert wrap(double) is double
        with pytest.raises(AssertionError):
            wrap(5)
    assert compiler.substitute_in_graph(double)(lambda x: x)(3) == 3
    with pytest.raises(TypeError, match="Signature mismatch"):
        compiler.substitute_in_graph(double)(lambda other, more: 1)
    with pytest.raises(TypeError, match="expects a function"):
        compiler.substitute_in_graph(5)
    with pytest.raises(AssertionError, match="must be callable"):
        compiler.disable(5)
    layer = nn.Linear(2, 2)
    assert taeda.equal(compiler.disable(layer)(taeda.ones(2)), layer(taeda.ones(2)))
    assert compiler.skip_guard_on_globals_unsafe([1, 2]) == [True, True]


# ---- looking into it ---------------------------------------------------------------------------------------------------


def test_explain_tells_kernels_lines_and_floors():
    w = taeda.randn(1024, requires_grad=True)

    def function(x):
        y = (x * w).tanh()
        z = taeda.sigmoid(y) + x
        return (z * z).sum()

    def step(x):
        loss = function(x)
        (grad,) = taeda.autograd.grad(loss, w)
        return loss, grad

    x = taeda.randn(256, 1024)
    found = compiler.explain(step)(x)
    assert taeda.equal(found.result[0], function(x)) and fusion.watch(None) is None
    forward = next(k for k in found.kernels if "tanh" in k.ops and "tanh_backward" not in k.ops)
    assert forward.ops == ["mul", "tanh", "sigmoid", "add", "mul"] and forward.flops > 0 and forward.floor > 0
    start = inspect.getsourcelines(function)[1]
    assert forward.lines == [f"test_compiler.py:{start + i}" for i in (1, 2, 3)]
    backward = next(k for k in found.kernels if "tanh_backward" in k.ops)
    assert f"test_compiler.py:{start + 1} backward" in backward.lines
    table = str(found)
    assert "mul tanh sigmoid add mul" in table and "Of floor" in table and f"{len(found.kernels)} kernels" in table
    drawing = found.svg()
    assert drawing.count("<rect") == 2 * len(found.kernels) and drawing.endswith("</svg>")
    import xml.etree.ElementTree as tree

    assert tree.fromstring(drawing).tag.endswith("svg")


def test_a_profile_names_fused_kernels():
    function = taeda.compile(lambda x: ((x * 2).exp() + 1).sum())
    x = taeda.randn(8192)
    function(x)
    with taeda.profiler.profile() as record:
        function(x)
    assert any(run.name.startswith("mul exp add") for run in record.kernels())


def run_module(cache, *args):
    import os

    env = {**os.environ, "TAEDA_CACHE": str(cache)}
    done = subprocess.run([sys.executable, *args], env=env, capture_output=True, text=True, check=True, timeout=250)
    return done.stdout


def test_the_cache_is_shown_cleared_saved_and_loaded(tmp_path, monkeypatch):
    code = "import taeda; taeda.compile(lambda x: (x * 3.5).tan().sum())(taeda.randn(9999))"
    run_module(tmp_path, "-c", code)
    shown = run_module(tmp_path, "-m", "taeda.compiler")
    count = int(re.search(r"(\d+) kernels", shown)[1])
    assert count > 0
    monkeypatch.setenv("TAEDA_CACHE", str(tmp_path))
    packed, info = compiler.save_cache_artifacts()
    assert len(info.artifacts["kernel"]) == count
    run_module(tmp_path, "-m", "taeda.compiler", "--clear")
    assert run_module(tmp_path, "-m", "taeda.compiler").split(": ")[1].startswith("0 kernels")
    assert compiler.save_cache_artifacts() is None
    assert compiler.load_cache_artifacts(packed).artifacts == info.artifacts
    assert compiler.save_cache_artifacts()[1] == info and compiler.load_cache_artifacts(b"abc") is None


def test_a_function_that_sets_a_stance_is_refused_in_a_compiled_one():
    @compiler.set_stance("force_eager")
    def inner(x):
        return x + 1

    assert inner(taeda.zeros(1)).item() == 1
    with pytest.raises(RuntimeError, match="compile region"):
        taeda.compile(lambda x: inner(x))(taeda.zeros(1))

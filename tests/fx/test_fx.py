"""What taeda.fx does of its own: modules stay as they are, every op meets a Proxy, copies, files, errors."""

import copy
import gc
import importlib
import linecache
import math
import operator
import pickle
import sys
import threading
import warnings

import pytest

import taeda
from taeda import fx, nn
from taeda._core import Composite, Op
from taeda.fx.experimental.proxy_tensor import make_fx
from taeda.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from taeda.fx.passes.graph_drawer import FxGraphDrawer
from taeda.fx.passes.graph_manipulation import get_size_of_all_nodes, replace_target_nodes_with
from taeda.fx.passes.infra.pass_base import PassBase, PassResult
from taeda.fx.passes.infra.pass_manager import PassManager, this_before_that_pass_constraint
from taeda.fx.passes.param_fetch import lift_lowering_attrs_to_nodes
from taeda.fx.passes.shape_prop import ShapeProp
from taeda.fx.passes.split_module import split_module
from taeda.fx.passes.tools_common import legalize_graph
from taeda.fx.passes.utils.common import compare_graphs, lift_subgraph_as_module


def helper(x, n):
    return x * n if n > 1 else x


fx.wrap("helper")
fx.wrap("len")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.scale = nn.Parameter(taeda.ones(3))
        self.register_buffer("shift", taeda.ones(3))

    def forward(self, x):
        return self.body(self.fc(x)) * self.scale + self.shift


@pytest.fixture
def net():
    taeda.manual_seed(0)
    return Net()


X = taeda.arange(6.0).reshape(2, 3)


def same(a, b):
    return bool((a == b).all())


def _functions():
    for space in ("", ".nn.functional", ".linalg", ".fft", ".special"):
        module = importlib.import_module(f"taeda{space}")
        for name, function in vars(module).copy().items():
            if not name.startswith("_") and isinstance(function, (Op, Composite)):
                yield f"{space}.{name}", function


def test_every_public_op_meets_a_proxy():
    taken, left = 0, []
    for name, function in _functions():
        graph = fx.Graph()
        proxy = fx.Proxy(graph.placeholder("x"))
        for count in range(1, 5):
            try:
                made = function(*[proxy] * count)
            except TypeError:  # another number of arguments
                continue
            assert isinstance(made, fx.Proxy), name
            fx.GraphModule({}, _closed(graph, made))  # and can be written as code
            taken += 1
            break
        else:
            left.append(name)
    assert taken > 700, taken
    assert left == []


@pytest.mark.parametrize("function", [taeda.result_type, taeda.can_cast, taeda.promote_types])
def test_functions_of_dtypes_refuse_a_proxy(function):
    proxy = fx.Proxy(fx.Graph().placeholder("x"))
    with pytest.raises(TypeError, match="got Proxy"):
        function(proxy, proxy)


def _closed(graph, proxy):
    graph.output(proxy.node)
    return graph


def _state():
    """All that a trace replaces."""
    module = nn.Module
    held = [module.__call__, module.__getattr__, type(Net()).__getattribute__, nn.Linear.__getattribute__]
    return [*held, dict(vars(module)), helper, globals().get("len"), dict(vars(math)), fx._patch._replaced.copy()]


class Rooted(nn.Module):
    """A root of a number and a wrapped function, after which ``inside`` runs."""

    def __init__(self, inside):
        super().__init__()
        self.inside, self.fc = inside, nn.Linear(3, 3)

    def forward(self, x):
        y = math.sqrt(x.numel()) * helper(self.fc(x), 2)
        self.inside()
        return helper(self.fc(y), math.floor(y.numel()))


ROOTED = ["x", "numel", "sqrt", "fc", "helper", "mul", "fc_1", "numel_1", "floor", "helper_1", "output"]


def _names(graph):
    return [n.name for n in graph.nodes]


def test_everything_is_as_it_was_after_a_trace(net):
    before = _state()
    fx.symbolic_trace(net)
    assert _state() == before
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda x: 1 if x else 2)
    for error in (ValueError, KeyboardInterrupt, GeneratorExit):

        def fail(error=error):
            assert fx._symbolic_trace.is_fx_tracing() and _state() != before
            raise error

        with pytest.raises(error):
            fx.symbolic_trace(Rooted(fail))
        assert _state() == before and not fx._symbolic_trace.is_fx_tracing()
    assert isinstance(net.fc.weight, nn.Parameter)
    net(X).sum().backward()
    assert net.scale.grad is not None


def test_a_trace_inside_a_trace(net):
    before, inner = _state(), []

    def inside():
        inner.append(fx.symbolic_trace(Rooted(lambda: None)).graph)
        with pytest.raises(fx.proxy.TraceError):
            fx.symbolic_trace(lambda x: 1 if x else 2)

    outer = fx.Tracer().trace(Rooted(inside))
    assert _names(outer) == _names(inner[0]) == ROOTED
    assert [n.target for n in inner[0].nodes] == [n.target for n in outer.nodes]
    assert [n.target for n in outer.nodes if n.name in ("helper", "sqrt")] == [math.sqrt, helper]
    assert _state() == before


def test_other_threads_do_not_see_a_trace(net):
    before, expected, found = _state(), net(X), []

    def other():
        found.append(same(net(X), expected) and isinstance(net.fc.weight, nn.Parameter) and helper(X, 1) is X)
        found.append(not fx._symbolic_trace.is_fx_tracing())
        found.append(_names(fx.symbolic_trace(net).graph) == _names(alone))

    def inside():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    alone = fx.symbolic_trace(net).graph
    assert _names(fx.symbolic_trace(Rooted(inside)).graph) == ROOTED
    assert found == [True, True, True]
    assert _state() == before


def test_traces_that_end_in_another_order_than_they_begin():
    before, graphs = _state(), {}
    began, ended = threading.Event(), threading.Event()

    def first():
        graphs[1] = fx.symbolic_trace(Rooted(lambda: (began.set(), second_is_in.wait(200)))).graph
        ended.set()

    second_is_in = threading.Event()
    thread = threading.Thread(target=first)
    thread.start()
    began.wait(200)
    graphs[2] = fx.symbolic_trace(Rooted(lambda: (second_is_in.set(), ended.wait(200)))).graph
    thread.join()
    assert _names(graphs[1]) == _names(graphs[2]) == ROOTED
    assert ended.is_set() and _state() == before


def test_a_trace_of_a_trace(net):
    once = fx.symbolic_trace(net)
    twice = fx.symbolic_trace(once)
    assert once.code == twice.code and same(twice(X), net(X))
    assert [n for n, _ in twice.named_parameters()] == [n for n, _ in once.named_parameters()]
    assert twice.fc.weight is net.fc.weight


@pytest.mark.parametrize("make", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(net, make):
    traced = fx.symbolic_trace(net)
    other = make(traced)
    assert other.code == traced.code and same(other(X), traced(X))
    assert other.fc.weight is not net.fc.weight
    assert [n.format_node() for n in other.graph.nodes] == [n.format_node() for n in traced.graph.nodes]
    assert other.graph.owning_module is other
    assert type(other).__name__ == "Net" and isinstance(other, fx.GraphModule)
    with taeda.no_grad():
        other.scale.mul_(2)
    assert not same(other(X), traced(X))


def test_every_public_function_is_copied_by_pickles():
    graph = fx.Graph()
    x = graph.placeholder("x")
    made = [graph.call_function(function, (x,)) for function in {f for _, f in _functions()}]
    other = pickle.loads(pickle.dumps(graph))
    assert len(made) > 650
    assert [n.target for n in other.nodes] == [n.target for n in graph.nodes]


class TwoGraphs(fx.GraphModule):
    """As torchvision's feature extractors: two Graphs, and an ``__init__`` that does not call GraphModule's."""

    def __init__(self, root, graphs):
        super(fx.GraphModule, self).__init__()
        for node in (node for graph in graphs for node in graph.nodes if node.op in ("get_attr", "call_module")):
            fx.graph_module._copy_attr(root, self, node.target)
        self.one, self.two = graphs
        self.graph = self.one


@pytest.mark.parametrize("make", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_of_a_class_with_two_graphs(net, make):
    made = TwoGraphs(net, [fx.Tracer().trace(net), fx.symbolic_trace(Net.forward).graph])
    other = make(made)
    assert isinstance(other, TwoGraphs) and other.graph is other.one and same(other(X), net(X))
    assert other.one is not made.one and _names(other.two) == _names(made.two)


def test_a_module_is_saved_and_loaded(net, tmp_path):
    traced = fx.symbolic_trace(net)
    taeda.save(traced, tmp_path / "m.pt")
    assert same(taeda.load(tmp_path / "m.pt", weights_only=False)(X), net(X))


def double(x):
    return x + x


def test_a_tracer_notes_the_lines_of_the_program():
    class Noting(fx.Tracer):
        record_stack_traces = True

    class Outer(Net):
        def forward(self, x):
            return double(super().forward(x))

    graph = Noting().trace(Outer())
    lines = {n.name: [line.strip() for line in (n.stack_trace or "").split("\n")] for n in graph.nodes}
    assert lines["x"] == lines["output"] == [""]
    assert lines["add_1"][1::2] == ["return double(super().forward(x))", "return x + x"]
    assert lines["fc"][3] == "return self.body(self.fc(x)) * self.scale + self.shift"
    assert not any("/taeda/fx/" in line for found in lines.values() for line in found)
    text = graph.python_code("self", verbose=True).src
    assert ", code: return x + x" in text and "in double" in text


def test_wrapped_functions_are_calls():
    graph = fx.symbolic_trace(lambda x: helper(x, len(x)))
    assert [n.op for n in graph.graph.nodes] == ["placeholder", "call_function", "call_function", "output"]
    assert 'taeda.fx._symbolic_trace.wrap("' in graph.code
    assert same(graph(X), X * 2)
    assert helper(X, 1) is X and len([1]) == 1


def test_to_folder(net, tmp_path, monkeypatch):
    fx.symbolic_trace(net).to_folder(tmp_path / "made", "Made")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert same(importlib.import_module("made").Made()(X), net(X))
    finally:
        sys.modules.pop("made"), sys.modules.pop("made.module")


def test_the_line_of_a_failure_is_shown(capsys):
    traced = fx.symbolic_trace(lambda x: x.relu().no_such_method() + 1)
    with pytest.raises(AttributeError):
        traced(X)
    text = capsys.readouterr().err
    assert "no_such_method()" in text and "<--- HERE" in text


def test_an_interpreter_says_at_which_node():
    traced = fx.symbolic_trace(lambda x: taeda.mm(x, x))
    with pytest.raises(RuntimeError, match=r"While executing %mm : .*call_function\[target=taeda.mm\]"):
        fx.Interpreter(traced).run(X)
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(traced).run()


@fx.wrap
def refuses(x):
    raise RuntimeError("While executing my program: no")


def test_an_interpreter_says_at_which_node_whatever_the_error_says():
    traced = fx.symbolic_trace(lambda x: refuses(x))
    with pytest.raises(RuntimeError, match="my program: no\n\nWhile executing %refuses"):
        fx.Interpreter(traced).run(X)


def test_an_error_of_a_code_generator_is_its_own():
    class Broken(fx.CodeGen):
        def generate_output(self, output_args, *, repr_fn=repr):
            if repr_fn is not repr:
                raise TypeError("broken, whatever repr_fn is")
            return "return None"

    traced = fx.symbolic_trace(lambda x: x + 1)
    traced.graph.set_codegen(Broken())
    with pytest.raises(TypeError, match="broken"):
        traced.recompile()


def test_table(capsys):
    graph = fx.symbolic_trace(lambda x: taeda.relu(x) + 1).graph
    graph.print_tabular()
    assert capsys.readouterr().out == (
        "opcode         name    target                   args       kwargs\n"
        "-------------  ------  -----------------------  ---------  --------\n"
        "placeholder    x       x                        ()         {}\n"
        "call_function  relu    <op relu>                (x,)       {}\n"
        "call_function  add     <built-in function add>  (relu, 1)  {}\n"
        "output         output  output                   (add,)     {}\n"
    )


def test_lint_finds_what_is_wrong(net):
    traced = fx.symbolic_trace(net)
    nodes = list(traced.graph.nodes)
    nodes[-1].prepend(nodes[1])
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        traced.graph.lint()
    traced = fx.symbolic_trace(net)
    del traced.fc
    with pytest.raises(RuntimeError, match="nonexistent attribute fc"):
        traced.graph.lint()


def test_dead_code():
    def program(x):
        x.sin()
        y = x.clone()
        y.add_(1)
        taeda.cos(x)
        return y

    traced = fx.symbolic_trace(program)
    assert traced.graph.eliminate_dead_code()
    traced.recompile()
    assert [n.target for n in traced.graph.nodes if n.op == "call_method"] == ["clone", "add_"]
    assert same(traced(X), X + 1)


def test_hooks_see_changes(net):
    traced = fx.symbolic_trace(net)
    seen = []
    hooks = {
        "create_node": lambda n: seen.append(("new", n.name)),
        "erase_node": lambda n: seen.append(("gone", n.name)),
        "replace_node": lambda old, new, user: seen.append((old.name, new, user.name)),
    }
    for name, hook in hooks.items():
        getattr(traced, f"_register_{name}_hook")(hook)
    fc = traced.graph.find_nodes(op="call_module", target="fc")[0]
    with traced.graph.inserting_after(fc):
        made = traced.graph.call_function(taeda.tanh, (fc.args[0],))
    fc.replace_all_uses_with(made)
    traced.graph.erase_node(fc)
    assert seen == [("new", "tanh"), ("fc", "tanh", "body_0"), ("gone", "fc")]
    for name, hook in hooks.items():
        getattr(traced, f"_unregister_{name}_hook")(hook)
    traced.graph.call_function(taeda.tanh, (made,))
    assert len(seen) == 3


def test_code_can_be_changed():
    traced = fx.symbolic_trace(lambda x: x + 1)
    with traced.graph.on_generate_code(lambda before: lambda body: ["x = x * 2\n", *body]):
        traced.recompile()
        assert same(traced(X), X * 2 + 1)
    traced.recompile()
    assert same(traced(X), X + 1)

    class Listed(fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, args_list):\n    {', '.join(free_vars)}, = args_list"

        def process_inputs(self, *inputs):
            return inputs[0]

    traced.graph.set_codegen(Listed())
    traced.recompile()
    assert same(traced([X]), X + 1) and same(fx.Interpreter(traced).run([X]), X + 1)


# ---- passes ----------------------------------------------------------------------------------------------------------


def test_parts_that_depend_on_each_other_are_refused():
    def program(x):
        return taeda.sin(taeda.cos(taeda.sin(x)))

    traced = fx.symbolic_trace(program)
    with pytest.raises(RuntimeError, match="cycle"):
        split_module(traced, traced, lambda n: "a" if n.target is taeda.sin else "b")


def test_sizes(net):
    traced = fx.symbolic_trace(net)
    get_size_of_all_nodes(traced, [X])
    fc = traced.graph.find_nodes(op="call_module", target="fc")[0]
    assert fc.size_bytes == (24, 24 + 4 * 12)
    assert fc.meta["tensor_meta"].shape == (2, 3) and fc.meta["type"] is taeda.Tensor


def test_drawing(net, tmp_path):
    traced = fx.symbolic_trace(net)
    ShapeProp(traced).propagate(X)
    FxGraphDrawer(traced, "net").get_dot_graph().write(tmp_path / "net.dot")
    text = (tmp_path / "net.dot").read_text()
    assert text.startswith('digraph "net" {') and '"fc" -> "body_0"' in text and "shape=(2, 3)" in text
    assert '"fc.weight" -> "fc"' in text


def test_other_passes(net):
    traced = fx.symbolic_trace(lambda x: taeda.sin(x) + taeda.sin(x) + taeda.rand_like(x) * taeda.rand_like(x))
    shared = CSEPass()(traced)
    names = [n.name for n in shared.graph_module.graph.nodes]
    assert shared.modified and names.count("sin_1") == 0 and "rand_like_1" in names
    replace_target_nodes_with(traced, "call_function", taeda.sin, "call_function", taeda.cos)
    assert "taeda.sin" not in traced.code and "taeda.cos" in traced.code
    layers = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 3)))
    lift_lowering_attrs_to_nodes(layers)
    assert next(n for n in layers.graph.nodes if n.op == "call_module").attrs_for_lowering["weight"].shape == (3, 3)
    one, two = fx.symbolic_trace(net), fx.symbolic_trace(net)
    assert compare_graphs(one.graph, two.graph) and not compare_graphs(one.graph, traced.graph)
    lifted, paths = lift_subgraph_as_module(one, copy.deepcopy(one.graph), "part")
    assert same(lifted(X), net(X)) and paths["part.body.0"] == "body.0"


WRITES = {
    "method": lambda x: x.add_(1),
    "function": lambda x: taeda.relu_(x),
    "item": lambda x: x.__setitem__(0, 1.0),
    "out": lambda x: taeda.add(x, 1, out=x),
    "inplace": lambda x: nn.functional.relu(x, inplace=True),
    "module": nn.Sequential(nn.ReLU(inplace=True)),
    "tuple": lambda x: taeda.sort(x, out=(x, taeda.empty(2, dtype=taeda.int64))),
}


@pytest.mark.parametrize("write", WRITES)
def test_nothing_is_shared_where_something_is_written(write):
    class Program(nn.Module):
        def __init__(self):
            super().__init__()
            self.write = WRITES[write] if write == "module" else nn.Identity()

        def forward(self, x):
            a, b = taeda.sin(x), taeda.sin(x)
            (self.write if write == "module" else WRITES[write])(a)
            return a, b

    program, x = Program(), taeda.tensor([-1.0, -2.0])
    shared = CSEPass()(fx.symbolic_trace(program))
    assert not shared.modified
    assert all(same(a, b) for a, b in zip(shared.graph_module(x), program(x), strict=True))
    live = fx.symbolic_trace(program)
    live.graph.eliminate_dead_code()
    live.recompile()
    assert all(same(a, b) for a, b in zip(live(x), program(x), strict=True)) and not same(*program(x))


aten = taeda.ops.aten
DRAWS = {
    "dropout": lambda x: nn.functional.dropout(x, 0.5),
    "feature_dropout": lambda x: taeda.feature_dropout(x, 0.5, True),
    "feature_alpha_dropout": lambda x: nn.functional.feature_alpha_dropout(x, 0.5, True),
    "rrelu": lambda x: nn.functional.rrelu(-x, 0.1, 0.9, True),
    "gumbel_softmax": lambda x: nn.functional.gumbel_softmax(x),
    "attention": lambda x: nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
    "pooling": lambda x: nn.functional.fractional_max_pool2d(x, 1, 5),
    "bernoulli": lambda x: taeda.bernoulli(x, 0.5),
    "poisson": lambda x: taeda.poisson(x),
    "binomial": lambda x: taeda.binomial(x, x / 64),
    "normal": lambda x: taeda.normal(x, 1.0),
    "randint_like": lambda x: taeda.randint_like(x, 1000),
    "native": lambda x: aten.native_dropout.default(x, 0.5, True)[0],
    "overload": lambda x: aten.poisson.default(x),
}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("banned", [None, get_CSE_banned_ops()], ids=["alone", "banned"])
def test_two_draws_are_never_one(draw, banned):
    x = taeda.arange(1.0, 65).reshape((1, 64, 1, 1) if draw.startswith("feature") else (1, 1, 8, 8))
    traced = fx.symbolic_trace(lambda x: (DRAWS[draw](x), DRAWS[draw](x)))
    shared = CSEPass(banned)(traced).graph_module
    taeda.manual_seed(0)
    want = traced(x)
    taeda.manual_seed(0)
    got = shared(x)
    assert not same(*want) and all(same(a, b) for a, b in zip(got, want, strict=True))


def test_dead_noise_is_left_out():
    traced = fx.symbolic_trace(lambda x: (nn.functional.dropout(x), taeda.rand_like(x), x)[2])
    assert traced.graph.eliminate_dead_code()
    assert [n.name for n in traced.graph.nodes] == ["x", "rand_like", "output"]


NATIVE_WRITES = {
    "packet": lambda x, rows, rest: (aten.add_, (x, x), {}),
    "overload": lambda x, rows, rest: (aten.add_.Tensor, (x, x), {}),
    "out": lambda x, rows, rest: (aten.mul.out, (x, x), {"out": x}),
    "values": lambda x, rows, rest: (aten.sort.values, (x,), {"values": x, "indices": rest}),
    "grad_input": lambda x, rows, rest: (aten.gelu_backward.grad_input, (x, x), {"grad_input": x}),
    "statistics": lambda x, rows, rest: (aten.batch_norm, (rows, None, None, x, rest, True, 0.5, 0.1, False), {}),
    "buffers": lambda x, rows, rest: (
        aten._native_batch_norm_legit.default, (rows, None, None, x, rest, True, 0.5, 0.1), {}
    ),
    "operator": lambda x, rows, rest: (operator.iadd, (x, 1.0), {}),
}  # fmt: skip


@pytest.mark.parametrize("write", NATIVE_WRITES)
def test_native_ops_that_write(write):
    graph = fx.Graph()
    x, rows, rest = (graph.placeholder(name) for name in ("x", "rows", "rest"))
    first, second = graph.call_function(taeda.sin, (x,)), graph.call_function(taeda.sin, (x,))
    graph.call_function(*NATIVE_WRITES[write](first, rows, rest))
    graph.output((first, second))
    program = fx.GraphModule(nn.Module(), graph)
    kept = taeda.empty(2, dtype=taeda.int64) if write == "values" else taeda.ones(2)
    given = taeda.tensor([-1.0, -2.0]), taeda.tensor([[1.0, 2.0], [4.0, 3.0]]), kept
    want = program(*given)
    assert not same(*want) and not CSEPass()(program).modified
    program.graph.eliminate_dead_code()
    program.recompile()
    assert all(same(a, b) for a, b in zip(program(*given), want, strict=True))


CHANGES = {
    "bernoulli": lambda x: x.bernoulli(0.5),
    "bernoulli_": lambda x: x.bernoulli_(0.5),
    "addbmm_": lambda x: x.addbmm_(x[None], x[None]),
    "hook": lambda x: x.retain_grad(),
    "backward": lambda x: x.sum().backward(),
    "iadd": lambda x: x.__iadd__(1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_dead_methods_that_change_something_stay(change):
    traced = fx.symbolic_trace(lambda x: (CHANGES[change](x), x.abs(), x)[2])
    before = len(traced.graph.nodes)
    assert traced.graph.eliminate_dead_code() and len(traced.graph.nodes) == before - 1


def test_nodes_are_put_in_order():
    traced = fx.symbolic_trace(lambda x: taeda.cos(taeda.sin(x)))
    sin, cos = (traced.graph.find_nodes(op="call_function", target=f)[0] for f in (taeda.sin, taeda.cos))
    cos.append(sin)
    legalize_graph(traced).graph.lint()


def test_pass_manager():
    order = []

    def first(gm):
        order.append("first")
        return PassResult(gm, False)

    class Second(PassBase):
        def call(self, graph_module):
            order.append("second")
            return PassResult(graph_module, False)

    second = Second()
    traced = fx.symbolic_trace(lambda x: x + 1)
    manager = PassManager([second, first], [this_before_that_pass_constraint(first, second)], steps=3)
    assert manager(traced).graph_module is traced and order == ["first", "second"]
    with pytest.raises(RuntimeError):
        constraints = [this_before_that_pass_constraint(a, b) for a, b in ((first, second), (second, first))]
        PassManager([second, first], constraints)(traced)


# ---- real calls ------------------------------------------------------------------------------------------------------


def _mlp(x, w):
    return (taeda.tanh(x @ w) ** 2).sum()


CALLS = {
    "operators": (lambda x, w: x @ w + x.sum(1, keepdim=True) * 2, (X, taeda.ones(3, 3))),
    "gradient": (taeda.func.grad(_mlp, argnums=(0, 1)), (X, taeda.ones(3, 3) * 0.1)),
    "vmap": (taeda.vmap(lambda a, b: taeda.dot(a, b).exp()), (X, X * 0.1)),
    "backward": (lambda x: taeda.autograd.grad((x.requires_grad_() ** 3).sum(), x)[0], (X.clone(),)),
    "writing": (lambda x: x.clone().mul_(2).add_(x)[0], (X,)),
    "tuples": (lambda x: x.topk(2)[0] + taeda.sort(x)[0][:, :2], (X,)),
    "views": (lambda x: x.t().reshape(-1)[1:4].unsqueeze(0).expand(2, 3), (X,)),
    "trees": (lambda d: {"a": d["x"] * 2, "b": [d["y"][0].relu()]}, ({"x": X, "y": [X - 2]},)),
    "making": (lambda x: x + taeda.zeros(2, 3) + taeda.full((3,), 2.0) + taeda.arange(3), (X,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_make_fx_records_real_calls(name):
    f, args = CALLS[name]
    graph = make_fx(f)(*copy.deepcopy(args))
    graph.graph.lint()
    changed = taeda.utils._pytree.tree_map(lambda t: t.detach() * 1.5 + 0.25, args)
    got, expected = graph(*copy.deepcopy(changed)), f(*copy.deepcopy(changed))
    for a, b in zip(*map(taeda.utils._pytree.tree_leaves, (got, expected)), strict=True):
        assert taeda.allclose(a, b)


def _written(x):
    y = x * 1
    y.detach().mul_(3)
    return y * x


DETACHED = {
    "detach": (lambda x: x.detach() * x, [1.0, 2.0]),
    "function": (lambda x: taeda.detach(x) * x, [1.0, 2.0]),
    "of a result": (lambda x: (x * 2).detach() * x, [2.0, 4.0]),
    "data": (lambda x: x.data * x, [1.0, 2.0]),
    "and a view": (lambda x: x.detach().view(2, 1).sum(1) * x, [1.0, 2.0]),
    "of a view": (lambda x: x[:1].detach() * x, [1.0, 1.0]),
    "and the tensor again": (lambda x: x.detach() * x + x * x, [3.0, 6.0]),
    "written": (_written, [4.0, 8.0]),
}


@pytest.mark.parametrize("name", DETACHED)
def test_make_fx_records_what_no_gradient_flows_through(name):
    f, gradient = DETACHED[name]
    graph = make_fx(f)(taeda.tensor([1.0, 2.0]))
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    y = graph(x)
    assert y.tolist() == f(x).tolist()
    assert taeda.autograd.grad(y.sum(), x)[0].tolist() == gradient


FORMS = {
    "transpose_": lambda y: y.transpose_(0, 1).add_(1),
    "t_": lambda y: y.t_(),
    "unsqueeze_": lambda y: y.unsqueeze_(0),
    "as_strided_": lambda y: y.as_strided_((2,), (0,)),
    "resize_": lambda y: y.resize_(1),
    "resize_as_": lambda y: y.resize_as_(taeda.ones(1)),
}


@pytest.mark.parametrize("name", FORMS)
def test_make_fx_records_changes_of_form(name):
    def f(x):
        y = (x * 1).view(1, 2)
        FORMS[name](y)
        return y * 2

    x = taeda.tensor([1.0, 2.0])
    assert make_fx(f)(x)(x + 1).equal(f(x + 1))


def test_make_fx_records_composites_under_vmap():
    graph = make_fx(taeda.func.vmap(lambda x: taeda.narrow(x, 0, 0, 1) * taeda.detach(x)))(X[None])
    assert graph(X[None]).tolist() == (X[None, :1] * X[None]).tolist()
    assert "detach" in graph.code


def test_make_fx_names_and_decompositions():
    graph = make_fx(lambda x, y: taeda.sin(x) * y)(X, X)
    assert [n.name for n in graph.graph.nodes] == ["x_1", "y_1", "sin", "mul", "output"]
    table = {taeda.sin: lambda x: x - x**3 / 6}
    names = [n.name for n in make_fx(lambda x: taeda.sin(x), table)(X).graph.nodes]
    assert names == ["x_1", "cube", "true_divide", "sub", "output"]
    layer = nn.Linear(3, 2)
    traced = make_fx(layer)(X)
    assert set(dict(traced.named_parameters())) == {"_param_constant0", "_param_constant1"} and same(
        traced(X), layer(X)
    )


def test_targets_are_called_by_public_names():
    for function, text in {
        taeda.relu: "taeda.relu", nn.functional.relu: "taeda.nn.functional.relu", taeda.linalg.norm: "taeda.linalg.norm",
        operator.add: "_operator.add", len: "len", taeda.fft.rfft: "taeda.fft.rfft", taeda.tensor: "taeda.tensor",
        taeda.from_numpy: "taeda.from_numpy", nn.functional.relu_: "taeda.relu_", taeda.istft: "taeda.istft",
        taeda.split: "taeda.functional.split", taeda.broadcast_shapes: "taeda.functional.broadcast_shapes",
        nn.functional.threshold_: "taeda.threshold_", nn.functional.rrelu_: "taeda.rrelu_",
    }.items():  # fmt: skip
        assert fx.node._get_qualified_name(function) == text


def test_code_lives_as_long_as_its_module():
    module = fx.symbolic_trace(nn.ReLU())
    file = module.forward.__code__.co_filename
    assert linecache.getline(file, 4).strip()
    del module
    gc.collect()
    assert file not in linecache.cache


def test_make_fx_records_control_flow():
    from taeda.func.control_flow import while_loop
    from taeda.fx.experimental.proxy_tensor import make_fx

    k = taeda.tensor([3.0, 4.0])

    def branch(x):
        t, u = taeda.tensor([5.0, 6.0]), x * 2
        inner = lambda x: taeda.cond(x[0] > 2, lambda x: x + t * u + k, lambda x: x - u, (x,))  # noqa: E731
        y = taeda.cond(x.sum() > 0, inner, lambda x: x - t, (x,))
        t.add_(1)
        return y * t

    def loop(x):
        n = x * 0.1
        return while_loop(lambda i, t: i < t.sum(), lambda i, t: (i + 1, t - n), (taeda.tensor(0.0), x))[1]

    x = taeda.tensor([1.0, 2.0])
    for function in (branch, loop):
        module = make_fx(function)(x)
        for given in (x, -x, x * 3):
            assert module(given).equal(function(given))
        if function is branch:
            with pytest.raises(RuntimeError, match="a trace has no cond"):
                taeda.jit.trace(branch, x)
    with pytest.raises(RuntimeError, match="writes to a tensor from outside"):
        make_fx(lambda x: taeda.cond(x.sum() > 0, lambda x: x.add_(1), lambda x: x * 1, (x,)))(x)
    w = taeda.ones(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="derivative of cond"):
        make_fx(lambda x: taeda.autograd.grad(taeda.cond(x.sum() > 0, lambda x: x * w, lambda x: x, (x,)).sum(), w))(x)


def test_make_fx_refuses_values_that_leave_the_program():
    from taeda.fx.experimental.proxy_tensor import make_fx

    x = taeda.tensor([1.0, 2.0])
    for function in (
        lambda x: x * x.sum().item(), lambda x: x if x.sum() > 0 else -x, lambda x: taeda.tensor(x.tolist()),
        lambda x: x * float(x.numpy()[0]),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="depends on the inputs is converted to a Python"):
            make_fx(function)(x)
    module = make_fx(lambda x: x * int(taeda.tensor(3) + 1) * len(repr(x)))(x)
    assert module(-x).equal(-x * 4 * len(repr(x)))


def test_make_fx_makes_new_memory_in_every_run():
    from taeda.fx.experimental.proxy_tensor import make_fx

    module = make_fx(lambda x: (x.new_ones(2), taeda.zeros_like(x)))(taeda.ones(2))
    first = module(taeda.ones(2))
    module(taeda.ones(2))[0].add_(5)
    assert first[0].tolist() == [1.0, 1.0]


def test_masks_without_dimensions():
    from taeda.fx.experimental.proxy_tensor import make_fx

    def function(x):
        y = x * 1
        y[x.sum() > 2] = 1
        return y

    x = taeda.ones(3)
    for program in (make_fx(function)(x), taeda.jit.trace(function, x)):
        assert program(-x).equal(function(-x))


def test_a_tracer_whose_create_proxy_takes_no_factory(net):
    """As in torchvision's and timm's feature extraction: parameters get plain Proxies."""

    class Tracer(fx.Tracer):
        def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, *_):
            return super().create_proxy(kind, target, args, kwargs, name, type_expr)

    graph = Tracer(param_shapes_constant=True).trace(net)
    assert same(fx.GraphModule(net, graph)(X), net(X))


@pytest.mark.parametrize("f", [lambda x: x[x > 1] * 2, lambda x: x.nonzero(), lambda x: x.unique()])
def test_sizes_that_depend_on_values_are_told_of(f):
    x = taeda.tensor([1.0, 2.0, 3.0])
    for mode in ("fake", "symbolic"):
        with pytest.warns(UserWarning, match="sizes of the result of .* depend on values"):
            made = make_fx(f, tracing_mode=mode)(x)
        assert made(x * 2).equal(f(x * 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_fx(f)(x)  # as PyTorch's
        make_fx(lambda x: x[taeda.tensor([0, 1])], tracing_mode="fake")(x)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("pool", [nn.functional.max_pool1d, nn.functional.adaptive_max_pool1d])
def test_gradients_of_other_inputs(pool, again):
    """What a derivative keeps is of the run, not of the example, also where ``checkpoint`` stops within an op."""

    def function(x):
        y = (
            taeda.utils.checkpoint.checkpoint(lambda x: pool(x, 2).tanh(), x, use_reentrant=False)
            if again
            else pool(x, 2)
        )
        return taeda.autograd.grad(y.sum(), x)[0]

    a, b = taeda.tensor([[1.0, 2.0, 3.0, 4.0]]), taeda.tensor([[2.0, 1.0, 4.0, 3.0]])
    assert make_fx(function)(a.requires_grad_())(b.requires_grad_()).equal(function(b))


def test_detach_in_place_is_recorded():
    def function(x, w):
        return (x * w).detach_() * w

    x, w = taeda.ones(2), taeda.tensor([3.0, 4.0], requires_grad=True)
    exported = taeda.export.export(CallsFunction(function), (x, w)).module()
    traced = taeda.jit.trace(function, (x, w), check_trace=False)
    for program in (exported, traced):
        assert taeda.autograd.grad(program(x, w).sum(), w)[0].tolist() == [3.0, 4.0]
    slope = make_fx(lambda x, w: taeda.autograd.grad(function(x, w).sum(), w)[0])(x, w)
    assert slope(2 * x, w).tolist() == [6.0, 8.0]


class CallsFunction(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def test_sums_of_gradients_are_not_recorded():
    def function(x):
        x.cos().sum().backward()
        return x.grad

    with pytest.raises(RuntimeError, match="Use autograd"):
        make_fx(function)(taeda.ones(2, requires_grad=True))


@pytest.mark.parametrize(
    ("pack", "unpack"),
    [
        (lambda t: t * 1, lambda t: t), (lambda t: t, lambda t: t * 1), (lambda t: (t * 2, 1), lambda p: p[0] / 2),
        (lambda t: t.detach().clone(), lambda t: t), (lambda t: t.double(), lambda t: t.float()),
    ],
)  # fmt: skip
def test_what_hooks_on_saved_tensors_compute_is_recorded(pack, unpack):
    def f(x):
        with taeda.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = (x * x).sin().exp()
        return taeda.autograd.grad(y.sum(), x)[0]

    a, b = (taeda.tensor(x, requires_grad=True) for x in ([1.0, 2.0], [0.3, 0.5]))
    assert make_fx(f)(a)(b).allclose(f(b))

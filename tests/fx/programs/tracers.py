"""Tracers, interpreters and Graphs as PyTorch's documentation shows them, and what lies beside."""

# ruff: noqa
import copy, dataclasses, operator, math
from typing import NamedTuple, Optional
import torch
from torch import fx, nn
from torch.nn import functional as F

torch.manual_seed(0)


@fx.wrap
def wrapped(x, n: int = 2):
    return x * n if n > 1 else x


@fx.wrap
def pair(x, *rest, key=None):
    return x, rest, key


def mine(x):
    return x + 1


fx.wrap("len")


def show(name, f):
    try:
        r = f()
        print(name, "->", r)
        return r
    except Exception as e:
        print(name, "!", type(e).__name__, str(e).split("\n")[0][:90])


x = torch.arange(6.0).reshape(2, 3)
g = fx.symbolic_trace(lambda x: wrapped(x, n=len(x)) + pair(x, 1, x, key={"a": x})[0] + wrapped(3))
print(g.code, g.graph)
show("run", lambda: g(x).tolist())


# wrapping the output
def wrap_output(traced):
    out = next(iter(reversed(traced.graph.nodes)))
    with traced.graph.inserting_before(out):
        new = traced.graph.call_function(torch.tanh, tuple(out.args))
        traced.graph.output(new)
    traced.graph.erase_node(out)
    traced.recompile()
    traced.graph.lint()
    return traced


w = wrap_output(fx.symbolic_trace(nn.Sequential(nn.Linear(3, 2), nn.ReLU())))
print(w.code, w)


# dynamic output wrapping through proxies
def proxied(traced):
    out = traced.graph.output_node()
    with traced.graph.inserting_before(out):
        y = fx.Proxy(out.args[0])
        z = (y.relu() ** 2 / 3).neg()
        out.args = (z.node,)
    traced.recompile()
    return traced


print(proxied(fx.symbolic_trace(lambda x: x.sin())).code)


class Sub(nn.Module):
    def __init__(s):
        super().__init__()
        s.lin = nn.Linear(3, 3)
        s.p = nn.Parameter(torch.ones(3))
        s.drop = nn.Dropout(0.2)

    def forward(s, x, *, scale=1.0, flag: bool = False):
        y = s.drop(s.lin(x)) + s.p
        if flag:
            y = y.relu()
        return y * scale


class Top(nn.Module):
    def __init__(s):
        super().__init__()
        s.a = Sub()
        s.b = Sub()
        s.c = s.a
        s.ml = nn.ModuleList([Sub(), nn.Identity()])
        s.md = nn.ModuleDict({"k": nn.Tanh()})
        s.pl = nn.ParameterList([nn.Parameter(torch.ones(3))])
        s.register_buffer("buf", torch.ones(3), persistent=False)
        s.const = torch.full((3,), 2.0)

    def forward(s, x, mask: Optional[torch.Tensor] = None):
        for m in s.ml:
            x = m(x)
        x = s.a(x, scale=0.5) + s.c(x, flag=True) + s.md["k"](x) + s.pl[0] + s.buf + s.const
        if mask is not None:
            x = x * mask
        return {"x": x, "y": (s.b(x), [x.shape, x.size(0)])}


top = Top().eval()
for ca in (None, {"mask": None}, {"mask": fx.PH}):
    t = show("top", lambda: fx.symbolic_trace(top, concrete_args=ca))
    if t is not None:
        print(
            t.graph,
            sorted(n for n, _ in t.named_parameters()),
            sorted(n for n, _ in t.named_buffers()),
            sorted(n for n, _ in t.named_modules()),
            sorted(t.state_dict()),
        )


class T1(fx.Tracer):
    def is_leaf_module(s, m, q):
        print("leaf?", type(m).__name__, q, s.path_of_module(m))
        return isinstance(m, Sub)

    def call_module(s, m, forward, args, kwargs):
        print("call", s.path_of_module(m), args, kwargs, s.scope.module_path, list(s.module_stack))
        return super().call_module(m, forward, args, kwargs)

    def getattr(s, attr, val, cache):
        print("getattr", attr, type(val).__name__, sorted(cache))
        return super().getattr(attr, val, cache)

    def create_arg(s, a):
        if isinstance(a, complex):
            return "complex!"
        return super().create_arg(a)

    def proxy(s, node):
        p = super().proxy(node)
        return p

    def create_node(s, kind, target, args, kwargs, name=None, type_expr=None):
        n = super().create_node(kind, target, args, kwargs, name, type_expr)
        n.meta["mine"] = kind
        return n


t1 = T1()
gr = t1.trace(top, {"mask": None})
print(
    gr,
    [n.meta.get("mine") for n in gr.nodes],
    t1.root is top,
    t1.num_calls,
    {k: v[0] for k, v in t1.node_name_to_scope.items()},
)
for n in gr.nodes:
    print(n.name, [(k, v[0], getattr(v[1], "__name__", v[1])) for k, v in n.meta.get("nn_module_stack", {}).items()])
t2 = fx.Tracer(autowrap_modules=(math,), autowrap_functions=(mine,))
print(t2.trace(lambda x: mine(x) + math.floor(x.sum()) + math.pi))
print(fx.Tracer(autowrap_functions=(F.relu,)).trace(lambda x: F.relu(x)))


class Quantity(NamedTuple):
    v: torch.Tensor
    unit: str


@dataclasses.dataclass
class Box:
    a: torch.Tensor
    b: int = 3


def structures(x):
    q = Quantity(x, "m")
    return (
        q,
        Box(x, 4),
        {"k": slice(x, None, 2)},
        range(3),
        (x,),
        [x, (x, None)],
        ...,
        torch.float64,
        torch.Size([1, 2]),
    )


t3 = show("structures", lambda: fx.symbolic_trace(structures))
if t3 is not None:
    print(t3.code)
print(fx.symbolic_trace(lambda x: Quantity(x.v * 2, x.unit)).code)


# a metaclass
class ZS(metaclass=fx.ProxyableClassMeta):
    def __init__(self, l, r):
        self.l, self.r = l, r

    def add(self, other):
        return ZS(self.l + other.l, self.r + other.r)


def zs(x, y):
    z = ZS(x, y)
    z2 = z.add(ZS(y, x))
    return z2.l * z2.r


tz = fx.symbolic_trace(zs)
print(tz.graph, tz(x, x).tolist())

# interpreters
traced = fx.symbolic_trace(top, {"mask": None})


class Log(fx.Interpreter):
    def run_node(s, n):
        r = super().run_node(n)
        print("ran", n.op, n.name, len(s.env))
        return r

    def placeholder(s, *a):
        print("placeholder", a[0], a[2])
        return super().placeholder(*a)

    def get_attr(s, *a):
        print("get_attr", a[0])
        return super().get_attr(*a)

    def call_module(s, t, a, k):
        print("module", t, len(a), sorted(k))
        return super().call_module(t, a, k)

    def output(s, *a):
        print("output", type(a[1][0]).__name__)
        return super().output(*a)


show("log", lambda: sorted(Log(traced).run(x, None)))
g4 = fx.symbolic_trace(lambda a, b=2, *c, **d: (a + b, c, d))
print(g4.code)
show("interp", lambda: fx.Interpreter(g4).run(x[0], 1))
show("call", lambda: g4(x[0], 1))
g5 = fx.symbolic_trace(lambda a, b: (a * b).sum() - b)
n0 = list(g5.graph.nodes)
show("env", lambda: fx.Interpreter(g5).run(x, 2.0, initial_env={n0[2]: torch.ones(3)}).tolist())
show("boxed", lambda: fx.Interpreter(g5).boxed_run([x, 1.0]).tolist())
show("few", lambda: fx.Interpreter(g5).run(x))
show("keep", lambda: len((lambda i: (i.run(x, 1.0), i.env)[1])(fx.Interpreter(g5, garbage_collect_values=False))))
sg = fx.Graph()
a = sg.placeholder("a")
sg.output(sg.call_module("lin", (a,)))
show("graph=", lambda: tuple(fx.Interpreter(top.a, graph=sg).run(x).shape))


class Twice(fx.Transformer):
    def call_function(s, t, a, k):
        r = super().call_function(t, a, k)
        return r * 2 if t is operator.add else r

    def call_module(s, t, a, k):
        return a[0] if t.endswith("drop") else super().call_module(t, a, k)

    def get_attr(s, t, a, k):
        return super().get_attr(t, a, k).abs()


print(Twice(traced).transform().code)

# editing and errors
h = fx.symbolic_trace(lambda x: (x.relu() + x.relu()) * 2)
ns = list(h.graph.nodes)
show("erase", lambda: h.graph.erase_node(ns[1]))
ns[3].replace_input_with(ns[2], ns[1])
h.graph.erase_node(ns[2])
print(h.graph, [n.name for n in ns[1].users], ns[3].all_input_nodes, len(h.graph.nodes))
ns[3].append(c1 := h.graph.create_node("call_method", "neg", (ns[3],)))
ns[4].update_arg(0, c1)
print(h.graph)
h.graph.lint()
ns[4].update_kwarg("k", ns[1])
print(ns[4].kwargs, ns[4].format_node())
ns[4].kwargs = {}
with h.graph.inserting_before(ns[1]):
    p = h.graph.placeholder("extra", torch.Tensor, default_value=3)
h.recompile()
print(h.code, [n.name for n in reversed(h.graph.nodes)], ns[1].prev, ns[1] > p, sorted([ns[4], ns[1], p]))
show("set op", lambda: setattr(ns[4], "target", operator.sub))
h.recompile()
print(
    h.code,
    h.graph.find_nodes(op="call_function", target=operator.sub),
    h.graph.find_nodes(op="call_function", target=operator.mul),
)
gx = fx.Graph()
y = gx.placeholder("y")
vm = {}
print(gx.graph_copy(h.graph, vm), sorted((k.name, v.name) for k, v in vm.items()))
print(gx)
show("foreign", lambda: gx.output((ns[1],)) and gx.lint())
print([str(n.args) for n in copy.deepcopy(h).graph.nodes], copy.copy(h).code == h.code, type(copy.copy(h)).__name__)
print(h.graph.python_code("self").src, h.graph.python_code("obj", verbose=True).src)
nest = fx.symbolic_trace(nn.Sequential(fx.symbolic_trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU())), nn.Tanh()))
print(nest.graph)


class LeafGM(fx.Tracer):
    def is_leaf_module(s, m, q):
        return isinstance(m, fx.GraphModule) or super().is_leaf_module(m, q)


outer = nn.Sequential(fx.symbolic_trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU())), nn.Tanh())
go = fx.GraphModule(outer, LeafGM().trace(outer))
print(go.graph)
go.print_readable()
for args in ((F.relu, (x,), {}), (torch.add, (x, x), {"alpha": 2}), (F.linear, (x, x), {}), (operator.add, (x, 1), {})):
    from torch.fx.operator_schemas import normalize_function

    r = normalize_function(
        args[0],
        args[1],
        args[2],
        arg_types=(torch.Tensor, torch.Tensor)[: len(args[1])],
        normalize_to_only_use_kwargs=True,
    )
    print(r and sorted(r.kwargs))
for n in fx.symbolic_trace(nn.Sequential(nn.Conv2d(1, 1, 1), nn.ReLU())).graph.nodes:
    if n.op == "call_module":
        print(n.normalized_arguments(n.graph.owning_module, normalize_to_only_use_kwargs=True))
from torch.fx.node import map_arg, map_aggregate

print(
    map_aggregate({"a": [1, (2, slice(3, 4))], "b": Quantity(5, "x")}, lambda v: v),
    map_arg((ns[1], [ns[3], 2]), lambda n: n.name),
)
tr = fx.symbolic_trace(
    lambda x, y: (
        torch.cat([x, y], dim=1).chunk(2, 1)[0].contiguous().to(torch.float16).type(torch.float32).view(-1).unsqueeze(0)
    )
)
print(tr.code)
show("cat", lambda: tuple(tr(x, x).shape))
gm = fx.GraphModule(
    {"w": torch.ones(2), "m.n": nn.ReLU()},
    (lambda g: (g.output(g.call_module("m.n", (g.get_attr("w"),))), g)[1])(fx.Graph()),
)
print(gm, sorted(gm.state_dict()), gm().tolist())
show("warn", lambda: gm.graph.get_attr("zz").target)
show(
    "einsum",
    lambda: fx.symbolic_trace(lambda x, y: torch.einsum("ij,ij->i", [x, y]) + torch.einsum("ij,ij->i", x, y)).code,
)


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(6.0).reshape(3, 2))

    def forward(self, i):
        return self.table[i] + self.table[i.shape[0] - 1, None] + self.table[:, i].sum()


table = fx.symbolic_trace(Table())
print(table.graph, table(torch.tensor([1, 0])).tolist())

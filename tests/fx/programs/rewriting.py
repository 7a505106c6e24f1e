"""Fusion, rewriting, matching, splitting and passes, and their output."""

# ruff: noqa
import copy, operator
import torch
from torch import fx, nn
from torch.nn import functional as F
from torch.fx.passes.split_module import split_module
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.experimental.optimization import fuse, remove_dropout, extract_subgraph
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher
from torch.fx.subgraph_rewriter import replace_pattern, replace_pattern_with_filters

torch.manual_seed(0)


def show(name, f):
    try:
        r = f()
        print(name, "->", r)
        return r
    except Exception as e:
        print(name, "!", type(e).__name__, str(e).split("\n")[0][:90])


# fusion
class CB(nn.Module):
    def __init__(s):
        super().__init__()
        s.c1, s.b1 = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)
        s.c2, s.b2 = nn.Conv1d(2, 2, 1, bias=False), nn.BatchNorm1d(2, affine=False)
        s.nested = nn.Sequential(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.Dropout(), nn.ReLU(), nn.Dropout(0.3))
        s.c3, s.b3 = nn.Conv3d(1, 2, 1), nn.BatchNorm3d(2)
        s.shared = nn.Conv2d(2, 2, 1)
        s.b4 = nn.BatchNorm2d(2)
        s.b5 = nn.BatchNorm2d(2, track_running_stats=False)

    def forward(s, x):
        x = s.nested(s.b1(s.c1(x)))
        y = s.shared(x)
        x = s.b4(y) + y
        x = s.b5(s.shared(x))
        z = s.b2(s.c2(x.flatten(2)))
        return z, s.b3(s.c3(x[:, :1, None]))


m = CB().eval()
for b in m.modules():
    if isinstance(b, nn.modules.batchnorm._BatchNorm) and b.track_running_stats:
        b.running_mean.uniform_()
        b.running_var.uniform_(0.5, 1)
x = torch.rand(2, 1, 6, 6)
f = show("fuse", lambda: fuse(m))
print(f.code, all(torch.allclose(a, b, atol=1e-5) for a, b in zip(f(x), m(x))), sorted(f.state_dict()))
d = remove_dropout(m)
print(d.code, type(d).__name__)
show("inplace", lambda: fuse(copy.deepcopy(m), inplace=True).code == f.code)


# rewriting
def both(prog, pat, rep, **k):
    g = fx.symbolic_trace(prog)
    r = show("replace", lambda: len((replace_pattern_with_filters if k else replace_pattern)(g, pat, rep, **k)))
    print(g.code)
    show("lint", lambda: g.graph.lint())
    return g


both(lambda x, y: torch.relu(x + y) + torch.relu(y + x), lambda a, b: torch.relu(a + b), lambda a, b: torch.relu(b) * a)
both(lambda x: torch.neg(torch.neg(torch.neg(x))), lambda x: torch.neg(torch.neg(x)), lambda x: x)
both(lambda x: x + x, lambda x: x + x, lambda x: 2 * x)
both(lambda x, y: x + y, lambda x: x + x, lambda x: 2 * x)
both(lambda x: (x.sin(), x.cos()), lambda x: (x.sin(), x.cos()), lambda x: (x.cos(), x.sin()))
both(lambda x: torch.split(x, 2)[0] + torch.split(x, 2)[1], lambda x: torch.split(x, 2), lambda x: torch.chunk(x, 2))
both(lambda x: F.relu(x, inplace=True).clamp(0, 6), lambda x: F.relu(x, inplace=True).clamp(0, 6), lambda x: F.relu6(x))
both(lambda x: F.relu(x).clamp(0, 6), lambda x: F.relu(x, inplace=True).clamp(0, 6), lambda x: F.relu6(x))
both(lambda x: x.clamp(0, 6) + x.clamp(0, 5), lambda x: x.clamp(0, 6), lambda x: x.abs(), ignore_literals=True)
both(
    lambda x: torch.sum(x, dim=0, keepdim=True),
    lambda x, d: torch.sum(x, dim=d, keepdim=True),
    lambda x, d: torch.mean(x, dim=d, keepdim=True),
)
both(lambda x: x.relu().sin().relu(), lambda x: x.relu(), lambda x: x.tanh().tanh())
both(lambda x, y: (x * y).sum() + x, lambda x, y: (x * y).sum(), lambda x, y: torch.dot(x, y))
both(lambda x: x.sin() + x.sin().cos(), lambda x: x.sin().cos(), lambda x: x + 1)
both(lambda x: (lambda s: s + s.cos())(x.sin()), lambda x: x.sin().cos(), lambda x: x + 1)
both(lambda x: torch.cat([x, x.relu()], 1), lambda a, b: torch.cat([a, b], 1), lambda a, b: torch.cat((b, a), dim=-1))


class P(nn.Module):
    def __init__(s):
        super().__init__()
        s.lin = nn.Linear(3, 3)
        s.w = nn.Parameter(torch.ones(3))

    def forward(s, x):
        return s.lin(x) + s.w


class Rp(nn.Module):
    def __init__(s):
        super().__init__()
        s.lin = nn.Linear(3, 3)
        s.new = nn.Sequential(nn.Tanh())
        s.v = nn.Parameter(torch.zeros(3))

    def forward(s, x):
        return s.new(s.lin(x)) * s.v


class Host(nn.Module):
    def __init__(s):
        super().__init__()
        s.lin = nn.Linear(3, 3)
        s.w = nn.Parameter(torch.ones(3))
        s.unused = nn.ReLU()
        s.inner = P()

    def forward(s, x):
        return (s.lin(x) + s.w).relu() + s.inner(x)


h = fx.symbolic_trace(Host())
show("mod", lambda: len(replace_pattern(h, P(), Rp())))
print(h.code, sorted(n for n, _ in h.named_modules()), sorted(h.state_dict()))
h = fx.symbolic_trace(Host())
show("mod", lambda: len(replace_pattern(h, fx.symbolic_trace(P()), fx.symbolic_trace(Rp()))))
print(h.code, sorted(n for n, _ in h.named_modules()), sorted(h.state_dict()))
ma = SubgraphMatcher(
    fx.symbolic_trace(lambda a, b: (a + b).relu()).graph,
    match_output=False,
    match_placeholder=False,
    remove_overlapping_matches=True,
)
for r in ma.match(fx.symbolic_trace(lambda x: ((x + 1).relu() + x).relu()).graph):
    print(
        r.anchors,
        sorted((k.name, getattr(v, "name", v)) for k, v in r.nodes_map.items()),
        r.placeholder_nodes,
        r.returning_nodes,
    )


# splitting
class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.l = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))
        s.p = nn.Parameter(torch.ones(3))
        s.register_buffer("q", torch.ones(3))

    def forward(s, x, y=None):
        a = s.l[0](x) + s.p
        b = s.l[1](a) * s.q
        c, d = b.chunk(2, 0)
        e = s.l[2](a) + c
        return s.l[3](e).relu() + d, a, b


net = Net()
t = fx.symbolic_trace(net, {"y": None})
xs = torch.ones(2, 3)
where = {n.name: i for i, n in enumerate(t.graph.nodes)}
for cb, k in (
    (lambda n: where[n.name] // 5, {}),
    (lambda n: int("l_" in n.name), {}),
    (lambda n: where[n.name] // 6, {"keep_original_order": True}),
    (lambda n: 0, {}),
    (lambda n: where[n.name] // 4, {"partition_affix": "z"}),
):
    q = {}
    s = show("split", lambda: split_module(t, net, cb, q, **k))
    if s is not None:
        print(s.code, [n for n, _ in s.named_children()], q)
        for n, c in s.named_children():
            if isinstance(c, fx.GraphModule):
                print(n, c.code, sorted(c.state_dict()))
        print(sorted(s.state_dict()), all(torch.equal(a, b) for a, b in zip(s(xs, None), net(xs))))
ShapeProp(t).propagate(xs, None)
for n in t.graph.nodes:
    print(n.name, n.meta.get("tensor_meta"), n.meta.get("type"))
show("shape", lambda: ShapeProp(t).propagate(torch.ones(2, 4), None))
from torch.fx.passes.graph_manipulation import replace_target_nodes_with, get_size_of_all_nodes

r = fx.symbolic_trace(lambda x: torch.sin(x) + x.sin())
replace_target_nodes_with(r, "call_function", torch.sin, "call_method", "cos")
print(r.code)
from torch.fx.passes.utils.common import lift_subgraph_as_module
from torch.fx.passes.tools_common import legalize_graph, get_node_target, is_node_output_tensor

print(
    [get_node_target(dict(t.named_modules()), n) for n in t.graph.nodes if n.op.startswith("call")],
    [is_node_output_tensor(n) for n in t.graph.nodes],
)
from torch.fx.passes.infra.pass_base import PassBase, PassResult


class RP(PassBase):
    def call(s, gm):
        for n in gm.graph.find_nodes(op="call_method", target="relu"):
            n.target = "tanh"
        gm.recompile()
        return PassResult(gm, True)

    def requires(s, gm):
        print("requires")

    def ensures(s, gm):
        print("ensures")


print(RP()(fx.symbolic_trace(lambda x: x.relu())).graph_module.code)
from torch.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper

show(
    "checks",
    lambda: PassManager([RP()], run_checks_after_each_pass=True)(fx.symbolic_trace(lambda x: x.relu())).modified,
)
show("bad", lambda: PassManager([lambda g: 3])(fx.symbolic_trace(lambda x: x.relu())))
from torch.fx.passes.dialect.common.cse_pass import CSEPass

c = CSEPass()(fx.symbolic_trace(lambda x: (x + 1) * (x + 1) + torch.sum(x, 0) + torch.sum(x, 0) + torch.sum(x, 1)))
print(c.modified, c.graph_module.code)

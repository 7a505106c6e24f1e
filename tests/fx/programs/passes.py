"""Passes, rewriting, interpreters, copies, editing, custom tracers."""

# ruff: noqa
import torch, torch.fx as fx, operator, copy, pickle
from torch.fx.passes.split_module import split_module
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.passes.dialect.common.cse_pass import CSEPass
from torch.fx.experimental.optimization import fuse, remove_dropout
from torch.fx.passes.infra.pass_manager import *
import torch.nn.functional as F

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(s):
        super().__init__()
        s.conv = torch.nn.Conv2d(3, 4, 3)
        s.bn = torch.nn.BatchNorm2d(4)
        s.d = torch.nn.Dropout()
        s.fc = torch.nn.Linear(4, 2)
        s.p = torch.nn.Parameter(torch.ones(2))
        s.register_buffer("buf", torch.ones(2))
        s.sub = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())

    def forward(s, x, flag=True):
        x = s.bn(s.conv(x)).relu().mean((2, 3))
        x = s.d(x)
        y = s.sub(s.fc(x)) + s.p
        z = y * s.buf + torch.sin(y)
        return z, torch.sin(y)


m = Net().eval()
g = fx.symbolic_trace(m)
print(g.code)
print(g.graph)
x = torch.ones(1, 3, 5, 5)
ShapeProp(g).propagate(x)
for n in g.graph.nodes:
    print(
        n.name, n.meta.get("tensor_meta") if not isinstance(n.meta.get("tensor_meta"), list) else 0, n.meta.get("type")
    )
f = fuse(m)
print(f.code)
print((f(x)[0] - m(x)[0]).abs().max() < 1e-5, f)
print(remove_dropout(m).code)
c = CSEPass()(g)
print(c.modified, c.graph_module.code)
k = [0]


def cb(n):
    k[0] += 1
    return (k[0] - 1) // 5


q = {}
s = split_module(g, m, cb, q)
print(s.code)
print(s.submod_0.code, s.submod_1.code)
print(q)
print((s(x)[0] - m(x)[0]).abs().max() < 1e-6)
print([n for n, _ in s.named_modules()])


# rewriting
def pat(a):
    return torch.sin(a)


def rep(a):
    return torch.cos(a) * 2


g2 = copy.deepcopy(g)
ms = fx.replace_pattern(g2, pat, rep)
print(len(ms), ms[0].anchor, g2.code)


def prog(x, w1, w2):
    v = torch.cat([w1, w2]).sum()
    v2 = torch.cat([w2, w1]).sum()
    return x + v + v2 * torch.relu(x) + torch.relu(x).add(3)


g3 = fx.symbolic_trace(prog)
ms = fx.replace_pattern(g3, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.stack([a, b]))
print(len(ms), g3.code, g3.graph)
g3 = fx.symbolic_trace(prog)
print(fx.replace_pattern(g3, lambda a, b: a + b, lambda a, b: a - b).__len__(), g3.code)
from torch.fx.subgraph_rewriter import replace_pattern_with_filters

g3 = fx.symbolic_trace(lambda x: (x + 1) * (x + 2) * (x + 1))
r = replace_pattern_with_filters(g3, lambda a: a + 1, lambda a: a - 1, [lambda m, o, p: True], ignore_literals=True)
print(len(r), r[0].replacements, g3.code)
g3 = fx.symbolic_trace(lambda x: x.relu() + x.relu().sigmoid())
r = replace_pattern_with_filters(
    g3, lambda a: a.relu(), lambda a: a.tanh(), [lambda m, o, p: len(m.returning_nodes[0].users) == 1]
)
print(len(r), g3.code)


# interpreter / transformer
class Neg(fx.Interpreter):
    def call_function(s, t, a, k):
        if t is torch.sin:
            return torch.cos(*a, **k)
        return super().call_function(t, a, k)

    def call_method(s, t, a, k):
        print(t)
        return super().call_method(t, a, k)


print(Neg(g).run(x)[1].shape, fx.Interpreter(g).run(x)[0] == g(x)[0])


class T(fx.Transformer):
    def call_function(s, t, a, k):
        if t is torch.sin:
            return super().call_function(torch.neg, a, k)
        return super().call_function(t, a, k)


t = T(g).transform()
print(t.code)
print(t.graph)
# pickling, copies
p = pickle.loads(pickle.dumps(t))
print(p.code)
print((p(x)[0] == t(x)[0]).all())
d = copy.deepcopy(t)
print(d.code == t.code, type(d).__name__, [n for n, _ in d.named_parameters()], [n for n, _ in d.named_buffers()])
# editing
g4 = fx.symbolic_trace(m)
for n in g4.graph.nodes:
    if n.op == "call_function" and n.target is operator.add:
        with g4.graph.inserting_after(n):
            nn = g4.graph.call_function(torch.mul, (n, 2))
            n.replace_all_uses_with(nn)
            nn.update_arg(0, n)
g4.graph.lint()
g4.recompile()
print(
    g4.code,
    g4.graph.find_nodes(op="call_function", target=torch.mul),
    g4.graph.find_nodes(op="call_module"),
    g4.graph.output_node().args,
)
print(
    g4.delete_submodule("d"),
    g4.delete_submodule("zz"),
    g4.add_submodule("a.b.c", torch.nn.ReLU()),
    [n for n, _ in g4.named_modules()],
)
g4.delete_all_unused_submodules()
print([n for n, _ in g4.named_modules()])
n = list(g4.graph.nodes)[3]
print(n.all_input_nodes, n.users, n.next, n.prev, n.args, n.kwargs, n < n.next, n.format_node())
try:
    g4.graph.erase_node(n)
except RuntimeError as e:
    print(e)
a = fx.Graph()
xx = a.placeholder("x")
y = a.call_method("relu", (xx,))
w = a.call_function(torch.add, (y, xx), {"alpha": 2})
a.output((w, {"k": y}))
w.prepend(a.create_node("call_method", "neg", (y,))) if 0 else None
print(a, a.python_code("self").src)
b = fx.Graph()
vm = {}
print(b.graph_copy(a, vm), vm, b)
gm = fx.GraphModule({}, a, "Foo")
print(gm, gm(torch.ones(1)))
try:
    gm("a")
except AttributeError as e:
    print(e)
try:
    gm.graph.eliminate_dead_code()
    gm.recompile()
    print(gm.code)
except Exception as e:
    print(e)


def pass1(gm):
    gm.meta["a"] = 1
    return gm


pm = PassManager(passes=[pass_result_wrapper(pass1)], steps=2)
print(pm(gm).modified, gm.meta)


class CT(fx.Tracer):
    def is_leaf_module(s, m, q):
        print(q)
        return isinstance(m, torch.nn.Conv2d) or super().is_leaf_module(m, q) and not isinstance(m, torch.nn.Tanh)


tr = CT(param_shapes_constant=True)
gr = tr.trace(m)
print(gr)
print({k: (v[0], v[1].__name__ if v[1] else None) for k, v in tr.node_name_to_scope.items()})


class CT2(fx.Tracer):
    proxy_buffer_attributes = True

    def to_bool(s, o):
        return True

    def iter(s, o):
        return iter([o[0], o[1]])


def ff(x):
    if x.sum() > 0:
        x = x + 1
    for i in x:
        x = x + i
    return x


gr = CT2().trace(ff)
print(gr)
print(CT2().trace(m).python_code("self").src)


class PM(torch.nn.Module):
    def __init__(s):
        super().__init__()
        s.w = torch.nn.Parameter(torch.ones(3, 2))
        s.t = torch.ones(2)

    def forward(s, x):
        return x.view(s.w.shape[0], -1) + s.w.size()[1] + s.w.dim() + s.t + torch.tensor(3.0)


tr = fx.Tracer(param_shapes_constant=True)
print(tr.trace(PM()))
pmod = PM()
gp = fx.symbolic_trace(pmod)
print(gp.code, dict(gp.named_buffers()), gp)
for bad in (
    lambda: fx.symbolic_trace(lambda x: torch.nn.Linear(2, 2)(x)),
    lambda: fx.symbolic_trace(3),
    lambda: fx.symbolic_trace(torch.relu),
    lambda: fx.symbolic_trace(lambda x, y: x, concrete_args={"z": 1}).code,
    lambda: fx.symbolic_trace(lambda x: float(x)),
    lambda: fx.symbolic_trace(lambda x: int(x)),
    lambda: fx.symbolic_trace(lambda x: list(x)),
    lambda: fx.symbolic_trace(lambda x: f(*x)),
    lambda: fx.symbolic_trace(lambda x: [0] * x).code,
    lambda: fx.symbolic_trace(lambda x: f"{x}").code,
    lambda: fx.symbolic_trace(lambda x: not x),
    lambda: fx.symbolic_trace(lambda x: x and 1),
    lambda: fx.symbolic_trace(lambda x: setattr(x, "y", 1)).code,
    lambda: fx.symbolic_trace(lambda x: x.__setitem__(0, 1)).code,
    lambda: fx.symbolic_trace(lambda x: hash(x)).graph.nodes.__len__(),
    lambda: fx.symbolic_trace(lambda x: x(3)).code,
    lambda: fx.symbolic_trace(lambda x: max(x, 1)),
    lambda: fx.symbolic_trace(lambda x: isinstance(x, torch.Tensor)).code,
    lambda: fx.symbolic_trace(lambda x: torch.is_tensor(x)).code,
    lambda: fx.symbolic_trace(lambda x: torch.jit.is_scripting()).code,
    lambda: fx.symbolic_trace(lambda x: x.shape[0] // 2 * x.ndim).code,
    lambda: fx.symbolic_trace(lambda x: divmod(x, 2)),
    lambda: fx.symbolic_trace(lambda x: round(x)),
    lambda: fx.symbolic_trace(lambda x: x << True).code,
    lambda: fx.symbolic_trace(lambda x: torch.is_floating_point(x)).code,
    lambda: fx.symbolic_trace(lambda x: x.new_zeros(x.size())).code,
    lambda: fx.symbolic_trace(lambda x: torch.manual_seed(0) and x).code,
    lambda: fx.symbolic_trace(lambda x: torch.broadcast_tensors(x, x)).code,
    lambda: fx.symbolic_trace(lambda x: torch.einsum("i,i", x, x)).code,
    lambda: fx.symbolic_trace(lambda x: torch.split(x, 2)[0]).code,
    lambda: fx.symbolic_trace(lambda x: torch.meshgrid(x, x)).code,
    lambda: fx.symbolic_trace(lambda x: torch.cdist(x, x)).code,
    lambda: fx.symbolic_trace(lambda x: torch.unique(x)).code,
    lambda: fx.symbolic_trace(lambda x: torch.stft(x, 4)).code,
    lambda: fx.symbolic_trace(lambda x: torch.tensordot(x, x)).code,
    lambda: fx.symbolic_trace(lambda x: torch.linalg.norm(x)).code,
    lambda: fx.symbolic_trace(lambda x: torch.fft.rfft(x, dim=1)).code,
):
    try:
        print(bad())
    except BaseException as e:
        print(type(e).__name__)

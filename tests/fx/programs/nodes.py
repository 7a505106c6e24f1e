"""Nodes made by hand: names, code, purity, and wrong calls."""

# ruff: noqa
import torch, torch.fx as fx, operator
import torch.nn.functional as F
import inspect


def f(x):
    a = F.dropout(x)
    b = torch.rand(2) if 0 else torch.rand_like(x)
    c = x.add_(1)
    d = torch.relu_(x)
    e = operator.setitem(x, 0, 1)
    g = x.relu()
    h = F.relu(x, inplace=True)
    i = torch._assert(x, "a")
    j = torch.bernoulli(x)
    k = operator.iadd(x, 1)
    torch.add(x, 1, out=x)
    return x


fx.wrap("operator")


class T(fx.Tracer):
    pass


g = fx.Graph()
x = g.placeholder("x")
import builtins

for fn, a, k in [
    (F.dropout, (x,), {}),
    (torch.rand_like, (x,), {}),
    (operator.setitem, (x, 0, 1), {}),
    (F.relu, (x,), {"inplace": True}),
    (torch._assert, (x, "a"), {}),
    (torch.bernoulli, (x,), {}),
    (operator.iadd, (x, 1), {}),
    (torch.add, (x, 1), {"out": x}),
    (print, (x,), {}),
    (getattr, (x, "shape"), {}),
    (operator.mul, (x, 2), {}),
    (torch.rand, (2,), {}),
    (setattr, (x, "a", 1), {}),
]:
    n = g.call_function(fn, a, k)
    print(n, n.is_impure())
for m in ["relu", "__setitem__", "__iadd__", "item"]:
    n = g.call_method(m, (x,))
    print(n, n.is_impure())
g.output(x)
print(g)
print(fx.GraphModule({}, g).code)
n = list(g.nodes)[3]
for bad in [
    lambda: n.args.__class__,
    lambda: n.kwargs.update({}),
    lambda: g.call_function(torch.cat, ([x],)).args[0].append(1),
    lambda: g.erase_node(x),
    lambda: g.call_function("a"),
    lambda: g.call_method(3),
    lambda: g.create_node("foo", "a"),
    lambda: n.insert_arg(9, 1),
    lambda: g.inserting_before(fx.Graph().placeholder("q")),
    lambda: x.prepend(fx.Graph().placeholder("q")),
    lambda: g.erase_node(fx.Graph().placeholder("z")),
    lambda: fx.Graph().output_node(),
    lambda: fx.map_arg(1, 2),
    lambda: fx.GraphModule(torch.nn.ReLU(), g).delete_submodule("a"),
    lambda: fx.symbolic_trace(torch.nn.Linear(2, 2)).graph.get_attr("foo"),
    lambda: fx.wrap(3),
    lambda: fx.wrap("a"),
    lambda: g.find_nodes(op="call_function", target=None),
    lambda: g.find_nodes(op="call_function", target=F.relu),
    lambda: g.create_node("call_function", torch.relu, (x,), name="x").name,
    lambda: g.placeholder("x").name,
    lambda: setattr(n, "args", [1]),
    lambda: n.name.__class__,
    lambda: n < x,
    lambda: repr(n.users),
    lambda: repr(n._input_nodes),
    lambda: str(n.next),
    lambda: fx.Proxy(n),
    lambda: fx.Proxy(n).x,
    lambda: repr(fx.Proxy(n).x.y),
    lambda: fx.GraphModule(3, g),
    lambda: g.lint(),
]:
    try:
        print(bad())
    except BaseException as e:
        print(type(e).__name__)
g = fx.Graph()
x = g.placeholder("x")
g.call_module("q", (x,))
for bad in [lambda: fx.GraphModule({}, g), lambda: fx.GraphModule(torch.nn.ReLU(), g), lambda: g.lint()]:
    try:
        print(bad())
    except BaseException as e:
        print(type(e).__name__)
gm = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
try:
    gm(torch.ones(3))
except Exception as e:
    print("X", type(e))

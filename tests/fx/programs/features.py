"""Features from the middle of a model, as torchvision and timm take them: paths of Nodes, and two Graphs."""

# ruff: noqa
import re, copy
from collections import OrderedDict
import torch
from torch import fx, nn
from torch.nn import functional as F


class LeafTracer(fx.Tracer):
    def __init__(self, *args, **kwargs):
        self.leaf_modules = kwargs.pop("leaf_modules", ())
        super().__init__(*args, **kwargs)

    def is_leaf_module(self, m, q):
        return (
            isinstance(m, tuple(self.leaf_modules))
            if self.leaf_modules and isinstance(m, tuple(self.leaf_modules))
            else super().is_leaf_module(m, q)
        )


class NodePathTracer(LeafTracer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.current_module_qualname = ""
        self.node_to_qualname = OrderedDict()

    def call_module(self, m, forward, args, kwargs):
        old = self.current_module_qualname
        try:
            self.current_module_qualname = self.path_of_module(m)
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.current_module_qualname = old

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, *_):
        proxy = super().create_proxy(kind, target, args, kwargs, name, type_expr)
        self.node_to_qualname[proxy.node] = self._node_qualname(self.current_module_qualname, proxy.node)
        return proxy

    def _node_qualname(self, path, node):
        name = node.name if node.op != "call_module" else None
        full = path
        if node.op != "call_module":
            base = re.match(r"(.+)_[0-9]+$", node.name)
            name = base.group(1) if base else node.name
            full = f"{path}.{name}" if path else name
        count = 0
        for q in reversed(self.node_to_qualname.values()):
            m = re.match(rf"{re.escape(full)}(_[0-9]+)?$", q)
            if m is not None:
                count = int(m.group(1)[1:]) + 1 if m.group(1) else 1
                break
        return f"{full}_{count}" if count else full


class DualGraphModule(fx.GraphModule):
    def __init__(self, root, train_graph, eval_graph, class_name="GraphModule"):
        super(fx.GraphModule, self).__init__()
        self.__class__.__name__ = class_name
        self.train_graph, self.eval_graph = train_graph, eval_graph
        for node in [*train_graph.nodes, *eval_graph.nodes]:
            if node.op in ("get_attr", "call_module"):
                if not isinstance(node.target, str):
                    raise TypeError
                fx.graph_module._copy_attr(root, self, node.target)
        self.train()
        self.graph = train_graph
        if self.eval_graph._tracer_cls != self.train_graph._tracer_cls:
            raise TypeError
        self._tracer_cls = None
        if self.graph._tracer_cls and "<locals>" not in self.graph._tracer_cls.__qualname__:
            self._tracer_cls = self.graph._tracer_cls

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        body = fx.graph_module._CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        DualGraphModule.__init__(made, body, body.train_graph, body.eval_graph)
        return made

    def train(self, mode=True):
        if mode and not self.training:
            self.graph = self.train_graph
        elif not mode and self.training:
            self.graph = self.eval_graph
        return super().train(mode=mode)


def extract(model, nodes, **tracer_kwargs):
    training = model.training
    graphs = {}
    for mode in ("train", "eval"):
        model.train(mode == "train")
        tracer = NodePathTracer(**tracer_kwargs)
        graph = tracer.trace(model)
        name = model.__class__.__name__ if isinstance(model, nn.Module) else model.__name__
        gm = fx.GraphModule(tracer.root, graph, name)
        names = list(tracer.node_to_qualname.values())
        print(mode, names)
        for q in nodes:
            assert any(re.match(rf"^{q}(\.|$)", n) for n in names), q
        old = [n for n in gm.graph.nodes if n.op == "output"]
        for n in old:
            gm.graph.erase_node(n)
        left = dict(nodes)
        out = OrderedDict()
        for n in reversed(gm.graph.nodes):
            q = tracer.node_to_qualname.get(n)
            if q is None or n.op == "placeholder":
                continue
            for query in list(left):
                if ".".join(q.split(".")[: len(query.split("."))]) == query:
                    out[left.pop(query)] = n
                    break
        out = OrderedDict(reversed(list(out.items())))
        with gm.graph.inserting_after(list(gm.graph.nodes)[-1]):
            gm.graph.output(out)
        gm.graph.eliminate_dead_code()
        gm.recompile()
        graphs[mode] = gm.graph
        print(gm.graph)
        print(gm.code)
    model.train(training)
    made = DualGraphModule(model, graphs["train"], graphs["eval"], class_name=name)
    return made.train(training)


class Stem(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.conv, s.bn, s.drop = nn.Conv2d(3, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.Dropout(0.5)

    def forward(s, x):
        return s.drop(F.relu(s.bn(s.conv(x)), inplace=True))


class Res(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.conv1, s.conv2, s.act = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1), nn.ReLU(inplace=True)
        s.gamma = nn.Parameter(torch.ones(1, c, 1, 1))

    def forward(s, x):
        y = s.act(s.conv1(x))
        y = s.act(s.conv2(y) * s.gamma)
        if s.training:
            y = y * 2
        x += y
        return x


class Attn(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.qkv, s.proj, s.h = nn.Linear(c, 3 * c), nn.Linear(c, c), 2

    def forward(s, x):
        B, N, C = x.shape
        q, k, v = s.qkv(x).reshape(B, N, 3, s.h, C // s.h).permute(2, 0, 3, 1, 4).unbind(0)
        a = (q @ k.transpose(-2, -1)) * C**-0.5
        return s.proj((a.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, N, C))


class Model(nn.Module):
    def __init__(s):
        super().__init__()
        s.stem = Stem(4)
        s.layers = nn.Sequential(Res(4), Res(4))
        s.attn = Attn(4)
        s.norm = nn.LayerNorm(4)
        s.fc = nn.Linear(4, 2)
        s.pos = nn.Parameter(torch.zeros(1, 16, 4))
        s.register_buffer("scale", torch.ones(4))

    def forward(s, x):
        x = s.layers(s.stem(x))
        x = torch.flatten(x, 2).transpose(1, 2) + s.pos
        x = x + s.attn(s.norm(x)) * s.scale
        x = torch.cat([x, F.adaptive_avg_pool1d(x, 4)], dim=1).mean(1)
        return s.fc(x)


torch.manual_seed(0)
m = Model()
f = extract(m, {"stem": "s", "layers.0": "a", "layers.1.conv1": "b", "attn": "t", "fc": "out", "mean": "m"})
x = torch.arange(2 * 3 * 16.0).reshape(2, 3, 4, 4) / 50
f.eval()
for k, v in f(x).items():
    print(k, tuple(v.shape), [round(float(t), 3) for t in v.flatten()[:3]])
f.train()
print(list(f(x)), f.training, f.graph is f.train_graph)
print(sorted(n for n, _ in f.named_parameters()))
c = copy.deepcopy(f.eval())
print(c.graph is c.train_graph, c.train_graph is f.train_graph, c.eval().graph is c.eval_graph)
print(isinstance(c, DualGraphModule), c.training)
print(bool((c(x)["out"] - f(x)["out"]).abs().max() < 1e-5))

g = extract(m, {"stem": "s", "attn": "t"}, leaf_modules=[Attn, Stem])
print(list(g.eval()(x)))

"""PyTorch's own examples of fx, written anew."""

import operator
import time

import torch
from torch import fx, nn
from torch.nn import functional as F

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.fc = nn.Linear(4, 5)
        self.scale = nn.Parameter(torch.full((5,), 2.0))

    def forward(self, x):
        x = self.block(x).mean(dim=(2, 3))
        return torch.relu(self.fc(x)) * self.scale + torch.sigmoid(x.sum())


net = Net().eval()
x = torch.arange(2 * 3 * 4 * 4).reshape(2, 3, 4, 4) / 50
traced = fx.symbolic_trace(net)


def same(a, b):
    return bool(((a - b).abs() < 1e-5).all())


# an interpreter that measures every Node


class Profiler(fx.Interpreter):
    def __init__(self, module):
        super().__init__(fx.symbolic_trace(module))
        self.total, self.times = [], {}

    def run(self, *args):
        start = time.perf_counter()
        value = super().run(*args)
        self.total.append(time.perf_counter() - start)
        return value

    def run_node(self, n):
        start = time.perf_counter()
        value = super().run_node(n)
        self.times.setdefault(n, []).append(time.perf_counter() - start)
        return value


profiler = Profiler(net)
print(same(profiler.run(x), net(x)), [n.name for n in profiler.times], len(profiler.total))


# a tracer that notes the module of every Node


class ModuleTracer(fx.Tracer):
    def __init__(self):
        super().__init__()
        self.current, self.of = [], {}

    def is_leaf_module(self, m, module_qualified_name):
        return isinstance(m, (nn.Conv2d, nn.BatchNorm2d))

    def call_module(self, m, forward, args, kwargs):
        self.current.append(self.path_of_module(m))
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.current.pop()

    def create_node(self, *args, **kwargs):
        node = super().create_node(*args, **kwargs)
        self.of[node.name] = self.current[-1] if self.current else ""
        return node


tracer = ModuleTracer()
print(tracer.trace(net))
print(tracer.of)


# inverting a function Node by Node

INVERSE = {torch.sin: torch.arcsin, torch.tanh: torch.atanh, torch.exp: torch.log}


def invert(module):
    graph, last = fx.Graph(), None
    for node in reversed(module.graph.nodes):
        if node.op == "output":
            last = graph.placeholder("x")
        elif node.op == "call_function" and node.target in INVERSE:
            last = graph.call_function(INVERSE[node.target], (last,))
    graph.output(last)
    return fx.GraphModule({}, graph)


forward = fx.symbolic_trace(lambda x: torch.exp(torch.tanh(torch.sin(x))))
backward = invert(forward)
print(len(backward.graph.nodes), same(backward(forward(x * 0.01)), x * 0.01))


# putting functions in the place of others


def replace(module, old, new):
    module = fx.symbolic_trace(module)
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target == old:
            with module.graph.inserting_after(node):
                made = module.graph.call_function(new, node.args, node.kwargs)
                node.replace_all_uses_with(made)
            module.graph.erase_node(node)
    module.graph.lint()
    module.recompile()
    return module


changed = replace(net, torch.relu, F.gelu)
print(changed.graph)


# primitives in terms of others, by Proxies on a new Graph


def relu_by_parts(x):
    return (x > 0) * x


RULES = {torch.relu: relu_by_parts}


def decompose(module):
    old = fx.Tracer().trace(module)
    graph, env = fx.Graph(), {}
    tracer = fx.proxy.GraphAppendingTracer(graph)
    for node in old.nodes:
        if node.op == "call_function" and node.target in RULES:
            env[node.name] = RULES[node.target](*[fx.Proxy(env[a.name], tracer) for a in node.args]).node
        else:
            env[node.name] = graph.node_copy(node, lambda n: env[n.name])
    return fx.GraphModule(module, graph)


parts = decompose(net)
print(parts.code, same(parts(x), net(x)))


# rewriting a pattern with modules and parameters


class Pattern(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        return torch.relu(self.fc(x))


class Replacement(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 5)
        self.other = nn.Linear(5, 5)

    def forward(self, x):
        return torch.tanh(self.other(self.fc(x)))


rewritten = fx.symbolic_trace(net)
matches = fx.replace_pattern(rewritten, fx.symbolic_trace(Pattern()), fx.symbolic_trace(Replacement()))
print(len(matches), rewritten.code, sorted(name for name, _ in rewritten.named_modules()))


# operators in the place of functions, and back

NAMES = {operator.add: torch.add, operator.mul: torch.mul}


class Functions(fx.Transformer):
    def call_function(self, target, args, kwargs):
        return super().call_function(NAMES.get(target, target), args, kwargs)


print(Functions(traced).transform().graph)

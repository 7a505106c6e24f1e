"""Module, containers, hooks, initialisation and utilities: the same small programs give the same results as PyTorch's."""

import contextlib
import copy
import io
import pickle
import warnings
from collections import OrderedDict

import numpy as np
import pytest

import taeda
import taeda.nn
import taeda.nn.attention.bias
import taeda.optim
import taeda.utils.checkpoint

torch = pytest.importorskip("torch")
import torch.nn.attention.bias  # noqa: E402, F811
import torch.nn.utils.parametrizations  # noqa: E402
import torch.nn.utils.prune  # noqa: E402
import torch.utils.checkpoint  # noqa: E402

from .peer import failure  # noqa: E402

PROGRAMS = []


def program(function):
    PROGRAMS.append(pytest.param(function, id=function.__name__))
    return function


def plain(x):
    """Tensors as lists of rounded numbers, containers as they are: comparable between the two libraries."""
    if isinstance(x, (taeda.Tensor, torch.Tensor)):
        values = np.round(np.array(x.tolist(), dtype=complex if x.is_complex() else float), 4) + 0.0
        return str(x.dtype).split(".")[1], bool(x.requires_grad), values.tolist()
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    return x


# ---- Module ---------------------------------------------------------------------------------------------------------


def small(L):
    nn = L.nn

    class Block(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.a = nn.Linear(n, n)
            self.register_buffer("scale", L.ones(n))
            self.register_buffer("hidden", L.zeros(2), persistent=False)
            self.extra = nn.Parameter(L.zeros(n, 1), requires_grad=False)
            self.missing = None
            self.register_parameter("none", None)

        def forward(self, x, *, gain=1.0):
            return self.a(x) * self.scale * gain

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(3), Block(3)])
            self.shared = self.blocks[0].a
            self.head = nn.Sequential(OrderedDict(one=nn.Linear(3, 2), two=nn.ReLU()))

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    L.manual_seed(0)
    return Net()


@program
def names_and_walks(L):
    m = small(L)
    yield [n for n, _ in m.named_parameters()]
    yield [n for n, _ in m.named_parameters(remove_duplicate=False)]
    yield [n for n, _ in m.named_parameters("p", recurse=False)]
    yield [n for n, _ in m.named_buffers()]
    yield [n for n, _ in m.named_modules()]
    yield [n for n, _ in m.named_modules(remove_duplicate=False)]
    yield [n for n, _ in m.named_children()]
    yield len(list(m.parameters())), len(list(m.modules())), len(list(m.children())), len(list(m.buffers()))
    yield repr(m)
    yield m.get_submodule("blocks.1.a").extra_repr(), m.get_parameter("blocks.0.a.bias"), m.get_buffer("blocks.1.scale")
    yield [failure(m.get_submodule, t) for t in ("nope", "blocks.7", "blocks.0.scale")]
    yield (
        [failure(m.get_parameter, t) for t in ("head.one.nope", "blocks.0.scale")],
        failure(m.get_buffer, "head.one.bias"),
    )
    yield [n for n in dir(m) if n in ("blocks", "shared", "head", "forward")]


@program
def walks_of_modules_with_methods_of_their_own(L):
    """What is below a module is found through the methods that subclasses, or instances, put in place of Module's."""
    nn = L.nn

    class Hiding(nn.Linear):
        def named_modules(self, memo=None, prefix="", remove_duplicate=True):
            yield from super().named_modules(memo, prefix + "!", remove_duplicate)

    class Renaming(nn.Linear):
        def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
            for name, p in super().named_parameters(prefix, recurse, remove_duplicate):
                if name != "bias":
                    yield name.upper(), p

    class Childless(nn.Sequential):
        def named_children(self):
            return iter(())

    class Selecting(nn.Sequential):
        def _named_members(self, members, prefix="", recurse=True, remove_duplicate=True):
            return ((n, p) for n, p in super()._named_members(members, prefix, recurse, remove_duplicate) if "1" in n)

    for m in (
        nn.Sequential(nn.Sequential(Hiding(1, 2)), nn.ReLU()),
        Hiding(1, 2),
        nn.Sequential(Renaming(1, 2), None),
        Renaming(1, 2),
        Childless(nn.Linear(1, 2)),
        Selecting(nn.Linear(1, 2), nn.BatchNorm1d(2)),
    ):
        yield [n for n, _ in m.named_modules()], [n for n, _ in m.named_modules(prefix="p", remove_duplicate=False)]
        yield [n for n, _ in m.named_parameters()], [n for n, _ in m.named_parameters("p", False)]
        yield [n for n, _ in m.named_buffers()], len(list(m.buffers())), [n for n, _ in m.named_children()]
        yield [tuple(p.shape) for p in m.parameters()], [type(x).__name__ for x in m.modules()]
        yield [type(x).__name__ for x in m.children()], [n for n, _ in m.named_modules({m})]
        m.eval()
        yield [x.training for x in m.modules()]
    m = nn.Sequential(nn.Linear(1, 2))
    m.named_parameters = lambda *args, **kwargs: iter([("one", m[0].bias)])
    yield [tuple(p.shape) for p in m.parameters()]
    m = nn.Sequential(nn.Linear(1, 2), nn.Linear(2, 1))
    m._modules = OrderedDict(m._modules)
    for name, child in m.named_children():
        setattr(m, name, nn.Sequential(child, nn.ReLU()))
    yield [n for n, _ in m.named_parameters()], next(m.parameters()).shape[0]


@program
def walks_of_modules_that_the_loop_changes(L):
    """What is below a module is looked up when the walk comes there, so that a loop may replace it."""
    nn = L.nn

    def nested():
        return nn.Sequential(*[nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)) for _ in range(3)])

    def walk(names, change):
        met = []
        try:
            for name, _ in names:
                met.append(name)
                if len(met) == 2:
                    change()
        except RuntimeError as error:
            met.append(str(error))
        return met

    for find in ("named_modules", "named_parameters", "named_children"):
        m = nested()
        yield walk(getattr(m, find)(), lambda: setattr(m[0], "1", nn.Identity()))  # noqa: B023
        m = nested()
        yield walk(getattr(m, find)(), lambda: setattr(m, "1", nn.ReLU()))  # noqa: B023
        m = nested()
        yield walk(getattr(m, find)(), lambda: m.append(nn.Linear(1, 1)))  # noqa: B023
        m = nested()
        yield walk(getattr(m, find)(), lambda: delattr(m, "2"))  # noqa: B023
    m = nested()
    for x in m.modules():
        for name, child in x.named_children():
            if isinstance(child, nn.Linear):
                setattr(x, name, nn.ReLU())
        yield type(x).__name__
    m = nested()
    m[0].append(m)
    yield failure(list, m.named_buffers(remove_duplicate=False))


@program
def state_dicts(L):
    m = small(L)
    s = m.state_dict()
    yield list(s), dict(s._metadata), s["blocks.0.scale"]
    yield list(m.state_dict(prefix="x.", keep_vars=True))
    other = small(L)
    with L.no_grad():
        for p in other.parameters():
            p.zero_()
    yield str(other.load_state_dict(s)), list(other.state_dict().values())
    partial = OrderedDict((k, v) for k, v in s.items() if "head" not in k)
    partial["strange"] = L.zeros(1)
    partial["blocks.9.x"] = L.zeros(1)
    result = other.load_state_dict(partial, strict=False)
    yield result.missing_keys, result.unexpected_keys, str(result)
    yield failure(other.load_state_dict, partial)
    try:
        other.load_state_dict(partial)
    except RuntimeError as e:
        yield str(e).replace("\n", "|").split("module:")[0].split("|\tMake the module")[0]  # how to mend it is ours
    wrong = OrderedDict(s)
    wrong["head.one.weight"] = L.zeros(5, 5)
    try:
        other.load_state_dict(wrong)
    except RuntimeError as e:
        yield str(e).replace("taeda.", "torch.")
    yield failure(other.load_state_dict, [1])
    half = OrderedDict((k, v.double()) for k, v in s.items())
    other.load_state_dict(half)
    yield other.head.one.weight
    third = small(L)
    third.load_state_dict(half, assign=True)
    yield third.head.one.weight, third.blocks[0].scale, type(third.head.one.weight).__name__


@program
def attributes(L):
    nn = L.nn
    m = nn.Module()
    m.w = nn.Parameter(L.ones(2))
    m.plain = L.zeros(2)
    m.child = nn.Linear(1, 1)
    yield sorted(m._parameters), sorted(m._buffers), sorted(m._modules), "plain" in m.__dict__
    yield failure(setattr, m, "w", L.zeros(2)), failure(setattr, m, "child", 3), failure(setattr, m, "w", 3)
    m.w = None
    yield m.w, "w" in m._parameters
    m.w = nn.Parameter(L.zeros(1))
    m.child = None
    yield sorted(m._modules), m.child
    m.plain = nn.Parameter(L.zeros(1))
    yield "plain" in m.__dict__, sorted(m._parameters)
    m._parameters["w"] = nn.Parameter(L.full((1,), 5.0))
    yield m.w
    m.buf = nn.Buffer(L.ones(1), persistent=False)
    yield sorted(m._buffers), list(m.state_dict()), type(m.buf).__name__
    m.buf = L.zeros(3)
    yield m.buf, failure(setattr, m, "buf", "text")
    del m.buf
    del m.w
    yield hasattr(m, "buf"), hasattr(m, "w"), failure(getattr, m, "nope"), failure(delattr, m, "nope")
    yield failure(m.register_parameter, "a.b", None), failure(m.register_parameter, "", None)
    yield failure(m.register_parameter, "plain2", L.zeros(1)), failure(m.register_parameter, 3, None)
    yield failure(m.register_buffer, "forward", L.zeros(1)), failure(m.register_buffer, "b", 3)
    yield (
        failure(m.add_module, "x", 3),
        failure(m.add_module, "a.b", None),
        failure(m.add_module, "training", nn.ReLU()),
    )
    bare = nn.Module.__new__(nn.Module)
    yield failure(setattr, bare, "w", nn.Parameter(L.zeros(1))), failure(setattr, bare, "m", nn.ReLU())

    class Typed(nn.Module):
        kind = "class attribute"

        @property
        def broken(self):
            raise AttributeError("inner")

    t = Typed()
    yield t.kind, failure(getattr, t, "broken"), failure(t, 1)
    yield failure(nn.Module, 3), failure(nn.Linear(1, 1).train, "yes")


@program
def copies(L):
    m = small(L)
    x = L.ones(1, 3)
    y = m(x)
    deep = copy.deepcopy(m)
    yield y, deep(x), deep.shared is deep.blocks[0].a, deep.head.one.weight is m.head.one.weight
    shallow = copy.copy(m)
    yield shallow(x), shallow.head is m.head
    lin = L.nn.Linear(3, 2)
    again = pickle.loads(pickle.dumps(lin))
    yield lin(x), again(x), type(again.weight).__name__, again.weight.requires_grad


@program
def conversion(L):
    m = small(L)
    p = m.head.one.weight
    m.double()
    yield m.head.one.weight is p, p, m.blocks[0].scale
    yield m.half().head.one.bias.dtype == L.float16, m.bfloat16().head.one.bias.dtype == L.bfloat16
    m.to(L.float32)
    yield p
    m.to("cpu", dtype=L.float64, non_blocking=True)
    yield p
    m.to(L.zeros(1))
    yield p, failure(m.to, L.int64), failure(m.to, "cpu", nonsense=1)
    m.type(L.float64)
    yield p
    m.requires_grad_(False)
    yield [q.requires_grad for q in m.parameters()]
    m.train(False)
    yield [q.training for q in m.modules()]
    m.train()
    yield [q.training for q in m.modules()]
    seen = []
    yield m.apply(lambda q: seen.append(type(q).__name__)) is m, seen
    m.float().requires_grad_(True)
    m(L.ones(1, 3)).sum().backward()
    m.zero_grad(set_to_none=False)
    yield m.head.one.weight.grad
    m.zero_grad()
    yield m.head.one.weight.grad
    yield failure(m.to_empty), m.to_empty(device="cpu") is m
    m.set_submodule("head.one", L.nn.Identity())
    yield repr(m.head), failure(m.set_submodule, "", m), failure(m.set_submodule, "nope.x", m)


@program
def hooks(L):
    nn = L.nn
    log = []
    m = nn.Linear(2, 2)
    with L.no_grad():
        m.weight.fill_(1.0)
        m.bias.zero_()
    h1 = m.register_forward_pre_hook(lambda mod, args: log.append(("pre", len(args))))
    m.register_forward_pre_hook(lambda mod, args: (args[0] * 2,), prepend=True)
    m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {**kwargs}), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: log.append(("post", plain(args[0]), plain(out.detach()))))
    m.register_forward_hook(lambda mod, args, kwargs, out: out + 1, with_kwargs=True)
    x = L.ones(1, 2, requires_grad=True)
    yield m(x), list(log)
    h1.remove()
    log.clear()
    with m.register_forward_hook(lambda *a: log.append("inside")):
        m(x)
    m(x)
    yield len(log), len(m._forward_hooks), len(m._forward_pre_hooks)

    b = nn.Linear(2, 1)
    with L.no_grad():
        b.weight.fill_(2.0)
    grads = []
    b.register_full_backward_pre_hook(lambda mod, g: grads.append(("pre", plain(g))))
    b.register_full_backward_pre_hook(lambda mod, g: (g[0] * 3,))
    b.register_full_backward_hook(lambda mod, gi, go: grads.append(("full", plain(gi), plain(go))))
    b.register_full_backward_hook(lambda mod, gi, go: (gi[0] + 1,))
    z = L.ones(1, 2, requires_grad=True)
    b(z).sum().backward()
    yield grads, z.grad, b.weight.grad
    grads.clear()
    c = nn.Linear(2, 1)
    c.register_full_backward_hook(lambda mod, gi, go: grads.append((plain(gi), plain(go))))
    c(L.ones(1, 2)).sum().backward()
    yield grads
    yield failure(c.register_backward_hook, lambda *a: None)

    always = []
    d = nn.Module()
    d.forward = lambda x: 1 / 0
    d.register_forward_hook(lambda *a: always.append(a[2]), always_call=True)
    yield failure(d, 1), always

    order = []
    e = nn.Identity()
    g1 = nn.modules.module.register_module_forward_hook(lambda *a: order.append("global"))
    g2 = nn.modules.module.register_module_forward_pre_hook(lambda *a: order.append("global pre"))
    e.register_forward_hook(lambda *a: order.append("own"))
    e(1)
    g1.remove()
    g2.remove()
    e(1)
    yield order
    bad = nn.Identity()
    bad.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True)
    yield failure(bad, 1)


@program
def state_hooks(L):
    nn = L.nn
    m = nn.Linear(1, 1)
    with L.no_grad():
        m.weight.fill_(1.0)
        m.bias.fill_(2.0)
    log = []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: log.append(("pre", prefix, keep)))
    m.register_state_dict_post_hook(lambda mod, sd, prefix, meta: sd.update({prefix + "more": L.zeros(1)}))
    m.register_load_state_dict_pre_hook(
        lambda mod, sd, prefix, *rest: (log.append(sorted(sd)), sd.pop("more", None))[0]
    )
    m.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
    s = m.state_dict()
    yield list(s), list(log)
    s.pop("bias")
    yield str(m.load_state_dict(s)), log[1:]

    class Extra(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 3

        def get_extra_state(self):
            return {"n": self.n}

        def set_extra_state(self, state):
            self.n = state["n"]

    a, b = nn.Sequential(Extra()), nn.Sequential(Extra())
    a[0].n = 7
    b.load_state_dict(a.state_dict())
    yield b[0].n, list(a.state_dict()), failure(b.load_state_dict, {})


@program
def containers(L):
    nn = L.nn
    s = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 3))
    yield len(s), repr(s[0]), repr(s[-1]), repr(s[1:]), failure(lambda: s[5]), failure(lambda: s[-7])
    s.append(nn.Tanh())
    s.insert(1, nn.Sigmoid())
    s[0] = nn.Identity()
    yield repr(s)
    del s[1]
    yield repr(s), repr(s.pop(0)), repr(s)
    s.extend([nn.ReLU()])
    yield (
        repr(s + nn.Sequential(nn.GELU())),
        repr(2 * nn.Sequential(nn.ReLU())),
        failure(lambda: s + 3),
        failure(lambda: s * 0),
    )
    yield [type(q).__name__ for q in s]
    ml = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    ml += [nn.ReLU()]
    ml.insert(0, nn.Tanh())
    yield repr(ml), len(ml), repr(ml[1:3]), failure(lambda: ml[9]), failure(ml.extend, 3)
    del ml[0]
    yield repr(ml), repr(ml.pop(-1)), repr(ml.__add__([nn.ELU()]))
    md = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 1)})
    md["c"] = nn.Tanh()
    md.update([("d", nn.ELU())])
    yield (
        repr(md),
        list(md),
        list(md.keys()),
        "a" in md,
        len(md),
        repr(md.pop("a")),
        failure(md.update, 3),
        failure(md.update, [1]),
    )
    md.clear()
    yield len(md)
    pl = nn.ParameterList([L.ones(2), nn.Parameter(L.zeros(1)), 5])
    pl.append(L.ones(1))
    pl += [L.zeros(2)]
    yield len(pl), [type(p).__name__ for p in pl], pl[0], [n for n, _ in pl.named_parameters()], failure(pl), pl[1:3][0]
    pl[0] = L.zeros(3)
    yield pl[0], failure(lambda: pl[9])
    pd = nn.ParameterDict({"b": L.ones(1), "a": nn.Parameter(L.zeros(1))})
    pd["c"] = 3
    yield (
        list(pd.keys()),
        len(pd),
        "a" in pd,
        pd["a"],
        pd.get("zz", 4),
        pd.setdefault("n", L.ones(1)),
        list(pd),
        pd.pop("c"),
    )
    yield (
        pd.popitem()[0],
        list((pd | nn.ParameterDict({"z": L.ones(1)})).keys()),
        list(pd.copy().keys()),
        failure(pd, 1),
    )


# ---- init -----------------------------------------------------------------------------------------------------------


@program
def initialisation(L):
    i = L.nn.init
    L.manual_seed(3)
    for name, args in [
        ("uniform_", (-1, 2)), ("normal_", (1.0, 2.0)), ("constant_", (3,)), ("ones_", ()), ("zeros_", ()), ("eye_", ()),
        ("xavier_uniform_", (2.0,)), ("xavier_normal_", ()), ("kaiming_uniform_", (0.5, "fan_out")),
        ("kaiming_normal_", (0, "fan_in", "relu")), ("orthogonal_", (1.5,)), ("sparse_", (0.4,)), ("trunc_normal_", ()),
        ("trunc_normal_", (0.0, 1.0, 1.0, 3.0)),
    ]:  # fmt: skip
        t = L.empty(5, 8)
        yield name, getattr(i, name)(t, *args) is t, t
    for shape in [(6, 3, 4), (4, 4, 3, 3), (4, 2, 3, 3, 3)]:
        yield i.dirac_(L.empty(*shape), 2), i.kaiming_normal_(L.empty(*shape)), i.orthogonal_(L.empty(*shape))
    yield [i.calculate_gain(n) for n in ("linear", "conv2d", "sigmoid", "tanh", "relu", "selu", "leaky_relu")]
    yield (
        i.calculate_gain("leaky_relu", 0.3),
        failure(i.calculate_gain, "nope"),
        failure(i.calculate_gain, "leaky_relu", "x"),
    )
    yield (
        failure(i.xavier_uniform_, L.empty(3)),
        failure(i.eye_, L.empty(3)),
        failure(i.kaiming_normal_, L.empty(2, 2), 0, "x"),
    )
    p = L.nn.Parameter(L.zeros(3, 3))
    yield i.normal_(p) is p, p.requires_grad, p


# ---- utils ----------------------------------------------------------------------------------------------------------


def with_grads(L):
    L.manual_seed(1)
    m = L.nn.Sequential(L.nn.Linear(3, 4), L.nn.Linear(4, 2))
    (m(L.ones(2, 3)) ** 2).sum().backward()
    return m


@program
def clipping(L):
    u = L.nn.utils
    for norm in (2.0, 1.0, 3, float("inf")):
        m = with_grads(L)
        yield u.clip_grad_norm_(m.parameters(), 0.5, norm), [p.grad for p in m.parameters()]
    m = with_grads(L)
    u.clip_grad_value_(m.parameters(), 0.1)
    yield [p.grad for p in m.parameters()], u.get_total_norm([p.grad for p in m.parameters()])
    m[0].weight.grad[0, 0] = float("nan")
    yield failure(u.clip_grad_norm_, m.parameters(), 1.0, error_if_nonfinite=True)
    v = u.parameters_to_vector(m.parameters())
    u.vector_to_parameters(v * 0 + 1, m.parameters())
    yield v.shape[0], m[1].weight, failure(u.vector_to_parameters, [1], m.parameters())


@program
def weight_norms(L):
    u = L.nn.utils
    x = L.ones(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dim in (0, 1, None):
            L.manual_seed(2)
            m = u.weight_norm(L.nn.Linear(3, 4), dim=dim)
            y = m(x)
            y.sum().backward()
            yield list(m.state_dict()), y, m.weight_g.grad, m.weight_v.grad
            yield failure(u.weight_norm, m)
            u.remove_weight_norm(m)
            yield list(m.state_dict()), m(x), failure(u.remove_weight_norm, m)
    L.manual_seed(2)
    m = L.nn.utils.parametrizations.weight_norm(L.nn.Linear(3, 4))
    yield list(m.state_dict()), m(x), repr(m)
    for train in (True, False):
        L.manual_seed(2)
        s = u.spectral_norm(L.nn.Linear(3, 4)).train(train)
        y = s(x)
        y.sum().backward()
        yield list(s.state_dict()), y, s.weight_orig.grad, s.weight_u, s(x)
    u.remove_spectral_norm(s)
    yield list(s.state_dict()), s(x)
    L.manual_seed(2)
    m = L.nn.utils.parametrizations.spectral_norm(L.nn.Conv2d(2, 3, 2))
    y = m(L.ones(1, 2, 3, 3))
    yield list(m.state_dict()), y, m(L.ones(1, 2, 3, 3))


@program
def parametrisation(L):
    nn, p = L.nn, L.nn.utils.parametrize

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, a):
            return a.triu()

    class Pair(nn.Module):
        def forward(self, a, b):
            return a + b

        def right_inverse(self, x):
            return x / 2, x / 2

    class Narrow(nn.Module):
        def forward(self, x):
            return x[:1]

    L.manual_seed(0)
    m = nn.Linear(3, 3)
    p.register_parametrization(m, "weight", Symmetric())
    yield type(m).__name__, m.weight, p.is_parametrized(m), p.is_parametrized(m, "bias"), list(m.state_dict())
    m(L.ones(1, 3)).sum().backward()
    yield m.parametrizations.weight.original.grad
    m.weight = L.eye(3)
    yield m.weight, repr(m), p.type_before_parametrizations(m).__name__
    with p.cached():
        yield m.weight is m.weight
    yield m.weight is m.weight, failure(pickle.dumps, m)
    clone = copy.deepcopy(m)
    yield clone.weight, type(clone).__name__
    yield (
        failure(p.register_parametrization, m, "nope", Symmetric()),
        failure(p.register_parametrization, m, "bias", Narrow()),
    )
    p.remove_parametrizations(m, "weight")
    yield type(m).__name__, m.weight, list(m.state_dict())
    p.register_parametrization(m, "bias", Pair())
    yield m.bias, list(m.state_dict()), failure(p.remove_parametrizations, m, "bias", leave_parametrized=False)
    p.remove_parametrizations(m, "bias")
    yield m.bias, failure(p.remove_parametrizations, m, "bias")
    for shape, kind in [((4, 4), "matrix_exp"), ((4, 4), "cayley"), ((3, 5), None), ((5, 3), "householder")]:
        L.manual_seed(5)
        o = nn.utils.parametrizations.orthogonal(nn.Linear(shape[1], shape[0]), orthogonal_map=kind)
        w = o.weight
        yield shape, kind, w @ w.mT if shape[0] <= shape[1] else w.mT @ w


@program
def pruning(L):
    nn, prune = L.nn, L.nn.utils.prune
    m = nn.Linear(4, 3)
    with L.no_grad():
        m.weight.copy_(L.arange(12.0).reshape(3, 4) - 5)
    prune.l1_unstructured(m, "weight", 3)
    yield m.weight, list(m.state_dict()), prune.is_pruned(m)
    prune.l1_unstructured(m, "weight", 0.25)
    yield m.weight, m.weight_mask
    m(L.ones(1, 4)).sum().backward()
    yield m.weight_orig.grad
    prune.remove(m, "weight")
    yield m.weight, list(m.state_dict()), failure(prune.remove, m, "weight")
    prune.ln_structured(m, "weight", 1, n=2, dim=0)
    yield m.weight
    L.manual_seed(0)
    r = nn.Linear(4, 3)
    prune.random_unstructured(r, "weight", 0.5)
    prune.random_structured(r, "weight", 1, dim=1)
    yield r.weight
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=6)
    yield a.weight_mask, b.weight_mask
    c = nn.Linear(2, 2)
    prune.custom_from_mask(c, "bias", L.tensor([0, 1]))
    yield c.bias, failure(prune.l1_unstructured, c, "weight", -1), failure(prune.l1_unstructured, c, "weight", 1.5)


@program
def fusion_and_more(L):
    nn, u = L.nn, L.nn.utils
    L.manual_seed(0)
    conv, bn = nn.Conv2d(2, 3, 2, bias=False), nn.BatchNorm2d(3)
    bn(L.randn(4, 3, 5, 5))
    conv.eval(), bn.eval()
    x = L.randn(1, 2, 4, 4)
    fused = u.fuse_conv_bn_eval(conv, bn)
    yield fused(x), bn(conv(x)), list(fused.state_dict())
    lin, bn1 = nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval()
    yield (
        u.fuse_linear_bn_eval(lin, bn1)(L.ones(2, 3)),
        bn1(lin(L.ones(2, 3))),
        failure(u.fuse_linear_bn_eval, lin.train(), bn1),
    )
    before = L.get_rng_state().tolist()
    made = u.skip_init(nn.Linear, 3, 4)
    yield type(made).__name__, before == L.get_rng_state().tolist(), failure(u.skip_init, nn.ReLU)

    class Normal(nn.Module):
        def __init__(self, n, device=None):
            super().__init__()
            self.weight = nn.Parameter(L.randn(n, device=device))
            nn.init.normal_(self.weight)

    made = u.skip_init(Normal, 3)
    yield made.weight.device.type, tuple(made.weight.shape), before == L.get_rng_state().tolist()
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    values = {k: L.zeros_like(v) for k, v in m.named_parameters()}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call = u.stateless.functional_call
        given = call(m, values, (L.ones(3, 2),)), m[0].weight is dict(m.named_parameters())["0.weight"]
        failed = (
            failure(call, m, values, L.ones(3, 2), strict=True),
            failure(call, m, {"nope": L.zeros(1)}, L.ones(3, 2)),
        )
    yield given, failed, FutureWarning in [w.category for w in told]


LAZY = ["Linear", "Conv1d", "Conv2d", "ConvTranspose2d", "BatchNorm1d", "BatchNorm2d", "InstanceNorm2d"]


@program
def lazy_states(L):
    """What has no shape is copied, saved and loaded as what has no shape."""
    for name in LAZY:
        size = (2, 4) + (5,) * (int(name[-2]) if name[-1] == "d" else 0)
        extra = {"Linear": (3,), "Batch": (), "Insta": ()}.get(name if name == "Linear" else name[:5], (3, 2))

        def make(name=name, extra=extra):
            return getattr(L.nn, "Lazy" + name)(*extra)

        def kinds(m):
            return [type(t).__name__ for t in m.state_dict().values()], type(m).__name__

        started, loaded, there = make(), make(), io.BytesIO()
        started(L.ones(size))
        yield str(loaded.load_state_dict(make().state_dict())), kinds(loaded), list(loaded(L.ones(size)).shape)
        loaded = make()
        yield str(loaded.load_state_dict(started.state_dict())), [list(t.shape) for t in loaded.state_dict().values()]
        yield failure(started.load_state_dict, make().state_dict()), failure(make().load_state_dict, {"weight": 1})
        yield failure(make().load_state_dict, make().state_dict(), assign=True)
        yield kinds(pickle.loads(pickle.dumps(make()))), failure(lambda make=make: kinds(copy.deepcopy(make())))
        L.save(make().state_dict(), there)
        there.seek(0)
        loaded.load_state_dict(started.state_dict())
        yield [type(t).__name__ for t in L.load(there, weights_only=False).values()]
        there.seek(0)
        yield failure(L.load, there)
    for kind in (L.nn.UninitializedParameter, L.nn.UninitializedBuffer):
        t = kind()
        yield failure(lambda t=t: t + 1), failure(t.clone), failure(t.numel), failure(t.detach), list(t.size())


@program
def parameters(L):
    nn = L.nn
    p = nn.Parameter(L.ones(2))
    yield p, isinstance(p, L.Tensor), isinstance(p, nn.Parameter), isinstance(L.ones(1), nn.Parameter), p.is_leaf
    yield (
        copy.deepcopy(p),
        pickle.loads(pickle.dumps(p)),
        type(p * 2).__name__,
        type(p.data).__name__,
        type(p.detach()).__name__,
    )
    yield nn.Parameter(L.ones(2), requires_grad=False), nn.Parameter().shape[0]
    u = nn.UninitializedParameter()
    yield failure(lambda: u.shape), repr(u), isinstance(u, nn.Parameter)
    u.materialize((2, 3))
    yield list(u.shape), type(u).__name__
    lazy = nn.LazyLinear(3)
    yield repr(lazy), failure(lambda: lazy.weight.shape), lazy.has_uninitialized_params()
    lazy.load_state_dict(nn.Linear(2, 3).state_dict())
    yield list(lazy.weight.shape), lazy(L.ones(1, 2)).shape[1], type(lazy).__name__


@pytest.mark.parametrize("function", PROGRAMS)
def test_program(function):
    with warnings.catch_warnings(), every_warning():
        warnings.simplefilter("ignore")
        for step, (ours, theirs) in enumerate(zip(function(taeda), function(torch), strict=True)):
            assert plain(ours) == plain(theirs), f"step {step}"


@contextlib.contextmanager
def every_warning():
    """PyTorch gives some warnings once in a process, which another test may have had."""
    before = [(lib, lib.is_warn_always_enabled()) for lib in (taeda, torch)]
    for lib, _ in before:
        lib.set_warn_always(True)
    try:
        yield
    finally:
        for lib, always in before:
            lib.set_warn_always(always)


def _warned(call, lib):
    with every_warning(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(lib, lib.nn.functional)
    return [w.category for w in caught]


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, F: F.kl_div(lib.ones(2), lib.ones(2)),
        lambda lib, F: F.kl_div(lib.ones(2), lib.ones(2), reduction="batchmean"),
        lambda lib, F: F.kl_div(lib.ones(2), lib.ones(2), reduction="sum"),
        lambda lib, F: lib.ones(2, dtype=lib.complex64).to(lib.float64),
        lambda lib, F: lib.ones(2, dtype=lib.complex64).to(lib.bool),
        lambda lib, F: lib.ones(2, dtype=lib.complex64).to(lib.complex128),
    ],
)
def test_results_that_are_likely_wrong_warn(call):
    assert _warned(call, taeda) == _warned(call, torch)


@program
def causal_biases(L):
    make, attend = L.nn.attention.bias, L.nn.functional.scaled_dot_product_attention
    L.manual_seed(0)
    q, k, v = (L.randn(1, 2, n, 4, dtype=L.float64, requires_grad=True) for n in (3, 5, 5))
    for bias in (make.causal_upper_left(3, 5), make.causal_lower_right(3, 5)):
        yield type(bias).__name__, bias.variant, bias.seq_len_q, bias.seq_len_kv, repr(bias)
        y = attend(q, k, v, attn_mask=bias, scale=0.5)
        yield type(y).__name__, y, L.autograd.grad(y.sum(), (q, k, v)), attend(q, k, v, bias)
        yield failure(attend, q, k, v, bias, is_causal=True), failure(make.causal_lower_right, 5)
    yield warned(make.causal_lower_right, 5, 3)


def warned(function, *args, **kwargs):
    """Kinds and first words of the warnings."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        function(*args, **kwargs)
    return [(w.category.__name__, str(w.message)[:45]) for w in given if w.category is UserWarning]


@program
def warnings_of_what_is_left_out(L):
    again = L.utils.checkpoint.checkpoint
    yield warned(again, L.neg, L.ones(2), use_reentrant=True)
    yield warned(again, L.neg, L.ones(2, requires_grad=True), use_reentrant=True)
    yield warned(L.stft, L.ones(40), 16, return_complex=True)
    spectrum = L.stft(L.ones(40), 16, window=L.ones(16), return_complex=True)
    yield warned(L.istft, spectrum, 16), warned(L.istft, spectrum, 16, window=L.ones(16))


@pytest.mark.parametrize("name", ["max_pool1d", "adaptive_max_pool1d"])
def test_indices_come_in_a_plain_tuple(name):
    pairs = [getattr(lib.nn.functional, name)(lib.ones(1, 1, 4), 2, return_indices=True) for lib in (torch, taeda)]
    assert [type(p) for p in pairs] == [tuple, tuple]


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_one_sample_with_its_class_in_a_vector(name):
    for reduction in ("mean", "sum", "none"):  # PyTorch has no gradient there
        want = getattr(torch.nn.functional, name)(torch.arange(4.0), torch.tensor([2]), reduction=reduction)
        grads = []
        for target in (taeda.tensor([2]), taeda.tensor(2)):
            x = taeda.arange(4.0).requires_grad_()
            y = getattr(taeda.nn.functional, name)(x, target, reduction=reduction)
            y.backward()
            assert y.shape == () == tuple(want.shape) and y.item() == pytest.approx(want.item())
            grads.append(x.grad.tolist())
        assert grads[0] == grads[1]
    for n in (0, 2):
        with pytest.raises(ValueError, match="1D target must have size 1"):
            getattr(taeda.nn.functional, name)(taeda.arange(4.0), taeda.zeros(n, dtype=taeda.int64))


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_attention_with_a_mask_that_is_causal_too(kind):
    found = []
    for t in (torch, taeda):
        q = (t.arange(64.0).reshape(1, 2, 4, 8) / 10).sin()
        keep = t.tensor([[True, False, True, True]] * 4)
        mask = keep if kind == "bool" else t.zeros(4, 4).masked_fill(~keep, -1.0)
        attention = t.nn.functional.scaled_dot_product_attention
        found.append(attention(q, q, q, attn_mask=mask, is_causal=True).flatten().tolist())
        with pytest.raises(RuntimeError, match="attn_mask should not be set"):
            attention(q[0], q[0], q[0], attn_mask=mask, is_causal=True)
    assert found[0] == pytest.approx(found[1], rel=1e-4, abs=1e-6)

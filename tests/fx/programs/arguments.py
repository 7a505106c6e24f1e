"""Kinds of parameters, concrete arguments, annotations, and what cannot be traced."""

# ruff: noqa
import torch, torch.fx as fx, operator, math
from typing import *


def show(f, **k):
    try:
        g = fx.symbolic_trace(f, **k)
        print(g.code)
        print(g.graph)
        return g
    except BaseException as e:
        print(type(e), e)


def f1(x, y, z=2):
    if y is None:
        return x
    return x + y + z


show(f1, concrete_args={"y": 3})
show(f1, concrete_args={"y": None})


def f2(x, d):
    return x + d["a"] + d["b"][0]


g = show(
    f2, concrete_args={"d": {"a": fx.PH if hasattr(fx, "PH") else fx._symbolic_trace.PH, "b": (fx._symbolic_trace.PH,)}}
)
print(g(torch.ones(1), {"a": torch.ones(1), "b": (torch.ones(1),)}))


def f2b(x, d):
    return {"r": x + d[0]}


show(f2b, concrete_args={"d": [fx._symbolic_trace.PH, 4.5, True, "abc"]})


def f3(*args, **kw):
    return args[0] + kw["a"]


show(f3)


def f4(x: torch.Tensor, l: List[torch.Tensor], o: Optional[int] = None, t: "int" = 3) -> Tuple[torch.Tensor, int]:
    return x


show(f4)


def f5(x):
    return math.sqrt(x.shape[0]) + x


show(f5)


def f6(x):
    if x.sum() > 0:
        return x
    return -x


show(f6)


def f7(x):
    for a in x:
        pass


show(f7)


def f8(x):
    return len(x)


show(f8)


def f9(x):
    a, b = x.chunk(2)
    return a + b


g = show(f9)


def f10(x):
    return {**x}


show(f10)


def f11(x):
    assert x.shape[0] == 2
    return x


show(f11)


def f12(x):
    return range(x)


show(f12)


def f13(x):
    return 3 in x


show(f13)


def f14(x):
    return x.foo(*x.bar)


show(f14)


def f15(x):
    return torch.zeros((2, 2), dtype=torch.float32, device=torch.device("cpu")) + float("inf") + float("nan")


show(f15)


def f16(x):
    return x.to(float)


show(f16)


def f17(x):
    return torch.ones(2, 2).mm(x) + object()


show(f17)


def f18(x):
    return x.where(x > 0, {1: x}), {x: 1}


show(f18)
import collections

NT = collections.namedtuple("NT", "a b")


def f19(x):
    return NT(x, x + 1)


show(f19)
import enum


def f20(x):
    y = x
    y @= x
    y //= 2
    y **= 2
    y %= 3
    return (
        operator.iadd(y, 2) + x.__add__(3),
        (x < 2) & (x >= 1) | (x != 3) ^ (x == 2),
        x << 1,
        x >> 2,
        2**x,
        2 - x,
        5 % x,
        +x,
        not_(x) if 0 else x.data,
        divmod,
    )


show(f20)


def f21(x):
    return x[0, ..., :2], x[None], x["k"], x[x > 0], x[[0, 1]], x[x.shape[0] :]


show(f21)
g = show(
    lambda x: (
        torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.1) + torch.sym_max(1, 2)
        if 0
        else x.sum().item()
    )
)
n = list(g.graph.nodes)
print([x.meta for x in n], [x.stack_trace for x in n])


class A(torch.nn.Module):
    def __init__(s):
        super().__init__()
        s.l = torch.nn.Linear(2, 2)

    def forward(s, x):
        return s.l(x).relu()


t = fx.Tracer()
gr = t.trace(A())
print([x.meta for x in gr.nodes])
print([x.stack_trace for x in gr.nodes], t.record_stack_traces)
g = fx.GraphModule(A(), gr)
print(g)
g.print_readable()
print(gr.python_code("self").src, list(gr.python_code("self").globals))

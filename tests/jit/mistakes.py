"""Functions that scripts refuse, or take for PyTorch's reasons; each is compiled by both."""

from __future__ import annotations

from typing import List, Optional, Tuple

import torch
from torch import Tensor

TENSOR = torch.ones(1)


def try_(x):
    try:
        return x
    except Exception:
        return x


def types(x: int) -> str:
    return x


def undefined(x):
    return y


def branches(x: bool):
    if x:
        y = 1
    return y


def kinds(x: bool):
    if x:
        y = 1
    else:
        y = "a"
    return y


def loops(x: int):
    y = 1
    for i in range(x):
        y = "a"
    return y


def arguments(x):
    return torch.add(x, "a")


def missing(x):
    return x.nothing()


def optionals(x: Optional[Tensor]):
    return x + 1


def lambdas(x):
    f = lambda y: y
    return f(x)


def sets(x):
    return {1, 2}


def globals_(x):
    global z
    z = 1
    return x


def generators(x):
    yield x


def variadic(*x):
    return x


def inner(x):
    def g(y):
        return y

    return g(x)


def lists(x):
    return [1, "a"]


def strings(x: str):
    if x:
        return 1
    return 2


def returns(x: int):
    if x > 1:
        return 1


def returns2(x: int):
    if x > 1:
        return 1
    return "a"


def tuples(x):
    a, b, c = (1, 2)
    return a


def index(x: Tuple[int, str]):
    return x[2]


def imports(x):
    import os

    return os.getcwd()


def withs(x):
    with open("f") as f:
        return x


def keywords(x):
    return torch.sum(x, nothing=1)


def walrus(x: int):
    if (y := x) > 1:
        return y
    return 0


def unknown(x: Nothing):
    return x


def closed(x):
    return x + TENSOR


def fstring(x: float):
    return f"{x:.2f}"


def assertion(x: int):
    x += "a"
    return x


def recursive(x: int):
    return recursive(x)


def dunder(x):
    return x.__class__


def starred(x: List[int]):
    return max(*x)


def calls(x: int):
    return x(1)

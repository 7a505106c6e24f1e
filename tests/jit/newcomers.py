"""Eleven more programs after PyTorch's reference of the language: methods of containers and texts, attributes, inheritance."""

import math
from typing import Any, Dict, Final, List, Optional, Tuple, Union

import torch
from torch import Tensor, nn

NEWCOMERS = {}


def newcomer(*calls):
    """Add a program with the arguments of its calls."""

    def add(make):
        NEWCOMERS[make.__name__] = make, calls
        return make

    return add


def row(n: int) -> Tensor:
    return torch.arange(n).to(torch.float32) / 4 - 1


@newcomer(([3, 1, 2],), ([5],), ([],))
def methods_of_lists():
    def run(xs: List[int]) -> Tuple[List[int], List[int], int, int, bool, List[int]]:
        ys = xs.copy()
        ys.append(7)
        ys.extend([1, 9])
        ys.insert(1, 4)
        last = ys.pop()
        if 7 in ys:
            ys.remove(7)
        where = ys.index(4)
        ys.sort(reverse=True)
        zs = sorted(ys)
        zs.reverse()
        del ys[0]
        ys[-1] = 8
        many = [0] * 2 + ys[-2:]
        zs.clear()
        return ys, zs, last, where + ys.count(8), ys == many, many

    return run


@newcomer(({"a": 1.5, "b": 2.0}, "a"), ({"b": 1.0}, "z"), ({}, "q"))
def methods_of_dicts():
    def run(d: Dict[str, float], key: str) -> Tuple[float, List[str], List[float], int, Dict[str, float]]:
        e = d.copy()
        found = e.get(key, -1.0)
        e.setdefault("new", 3.0)
        e.update({"more": 4.0})
        total = 0.0
        for k, v in e.items():
            total += v * len(k)
        if key in e:
            e.pop(key)
        maybe = e.get("missing")
        if maybe is not None:
            total += maybe
        made: Dict[str, float] = {k + "!": v for k, v in e.items()}
        made["total"] = total
        del made["more!"]
        return found, list(e.keys()), list(e.values()), len(made), made

    return run


@newcomer(("Hello world, hello", 3), ("", 1), ("  ab\tc ", 12))
def methods_of_texts():
    def run(s: str, n: int) -> List[str]:
        made = [s.upper(), s.lower(), s.strip(), s.lstrip(), s.rstrip(), s.replace("l", "L"), s.title(), s.capitalize()]
        made.append(s.center(22, "*") + s.ljust(20) + s.rjust(20) + s.zfill(21))
        made.extend(s.split(","))
        made.extend(s.split())
        made.append("-".join(s.partition("o")) + "-".join(s.rpartition("o")))
        made.append(f"{s} has {len(s)} and {n}; {s.find('o')} {s.rfind('o')} {s.count('l')}")
        made.append("{} and {}".format(n, s) + "%d%s" % (n, "x"))
        made.append(s[1:4] + s[-3:])
        flags = [s.startswith("H"), s.endswith("o"), s.isdigit(), s.isalpha(), s.isspace(), s.islower(), s.istitle()]
        made.append("".join(["1" if f else "0" for f in flags]))
        made.extend(s.splitlines())
        made.append(s.expandtabs(4) + s.swapcase())
        return made

    return run


@newcomer((row(6), 2), (row(6), 0), (row(8), -3))
def unpacking():
    def pair(x: Tensor, k: int = 1, scale: float = 2.0) -> Tuple[Tensor, int]:
        return x * scale, k + 1

    def run(x: Tensor, n: int) -> Tuple[Tensor, List[int], List[Tuple[int, float]], float]:
        (a, k), b = pair(x, n), pair(x, scale=0.5)[0]
        first, (second, third) = 1, (2.0, [3, 4])
        places: List[int] = []
        for i, (y, z) in enumerate(zip(a, b)):
            places.append(i if bool(y > z) else -i)
        for i in range(len(places) - 1, 0, -2):
            places[i] += k
        both = [(j, float(v)) for j, v in enumerate(b[: third[0]].tolist())] if False else [(j, 0.5 * j) for j in third]
        lowest, highest = min(places), max(places)
        x = a[1::2] + b[::2] if x.size(0) % 2 == 0 else a
        return x, places, both, first + second + lowest * highest

    return run


@newcomer((row(4),), (-row(4),))
def inherited():
    class Base(nn.Module):
        scale: Final[int] = 3
        offset: float

        def __init__(self, n: int):
            super().__init__()
            self.offset = 0.25
            self.names = torch.jit.Attribute([], List[str])
            self.table = torch.jit.Attribute({"w": n}, Dict[str, int])
            self.maybe = torch.jit.Attribute(None, Optional[Tensor])

        def prepare(self, x: Tensor) -> Tensor:
            return x * self.scale + self.offset

        def forward(self, x: Tensor) -> Tensor:
            return self.prepare(x)

    class Child(Base):
        def prepare(self, x: Tensor) -> Tensor:
            return x - self.table["w"]

        @torch.jit.export
        def remember(self, x: Tensor) -> int:
            self.maybe = x
            self.names.append("x")
            return len(self.names)

        def forward(self, x: Tensor) -> Tensor:
            count = self.remember(x)
            held = self.maybe
            assert held is not None
            return self.prepare(held) + count

    return Child(5)


@newcomer((row(3), 1), (row(3), 0), (row(3), 7))
def indexed_layers():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Softplus()])
            self.by_name = nn.ModuleDict({"up": nn.Upsample(scale_factor=2.0), "id": nn.Identity()})
            self.weights = nn.ParameterList([nn.Parameter(torch.full((3,), float(i))) for i in range(2)])

        def forward(self, x: Tensor, k: int) -> Tensor:
            x = self.layers[0](x) + self.layers[-1](x)
            for i, layer in enumerate(self.layers):
                if i == k:
                    x = layer(x) * len(self.layers)
            for layer in self.layers[1:]:
                x = layer(x)
            if "up" in self.by_name:
                x = self.by_name["up"](x.view(1, 1, -1)).flatten()
            for key, layer in self.by_name.items():
                x = layer(x) if key == "id" else x
            for w in self.weights:
                x = x[:3] * w + 1
            return x

    return Net()


@newcomer(([1, 2, 2],), (["a", "b"],), (3,), (2.5,))
def kinds():
    def run(x: Union[List[int], List[str], int, float]) -> str:
        if torch.jit.isinstance(x, List[int]):
            total = 0
            for i in x:
                total += i
            return f"ints {total}"
        if isinstance(x, list):
            return "texts"
        elif isinstance(x, int):
            return "int " + str(x + 1)
        return f"float {int(x * 2)}"

    return run


@newcomer((row(5), 0.5), (row(5), -1.0), (row(1), 2.0))
def numbers_and_modes():
    def run(x: Tensor, eps: float) -> Tuple[Tensor, float, int, bool, complex]:
        with torch.no_grad():
            y = x.sigmoid()
        y = y if eps > 0 else -y
        total = math.floor(eps) + math.ceil(eps) + math.sqrt(abs(eps)) + math.pi + pow(eps, 2.0) + float("inf" == "x")
        whole = int(eps) // 2 + 7 % 3 - (5 << 1) + (6 ^ 3 | 8 & 12) + int(round(2.6)) - -7 // 2
        ok = not (eps > 0 and x.dim() == 1) or all([True, eps < 1]) and any([False, bool(x[0] > 0)])
        while True:
            total -= 1.0
            if total < 0.0:
                break
            elif total > 3.0:
                continue
            else:
                whole += 1
        return y.clamp_(min=-0.4), total, whole, ok, complex(eps, 1.0) * 2

    return run


@newcomer((row(4), "mean"), (row(4), "sum"), (row(4), "other"), (row(0), "mean"))
def errors_and_ends():
    def checked(x: Tensor, kind: str) -> Tensor:
        if x.numel() == 0:
            raise ValueError(f"empty: {kind}")
        if kind == "mean":
            return x.mean()
        elif kind == "sum":
            return x.sum()
        else:
            raise NotImplementedError("no kind " + kind)

    def run(x: Tensor, kind: str) -> Tensor:
        assert x.dim() == 1, "one dimension"
        return checked(x, kind) if kind != "" else x

    return run


@newcomer((row(6), [2, 3]), (row(6), [1, -1]), (row(6), None))
def shapes_and_options():
    def run(x: Tensor, size: Optional[List[int]]) -> Tuple[Tensor, List[int], str, torch.dtype, Tensor]:
        if size is None:
            size = list(x.shape) + [1]
        y = x.reshape(size)
        rows: List[Tensor] = []
        for r in y:
            rows.append(r.sum())
        z = torch.stack(rows) if len(rows) > 1 else torch.cat([rows[0].view(1), x])
        z[z < 0] = 0.0
        y = y.to(dtype=torch.float64, device=x.device).masked_fill(y > 0.2, 9.0)[..., None, :1]
        return z, y.size(), "a" if x.is_floating_point() else "b", y.dtype, y

    return run


@newcomer((row(6), 0, True), (row(6), 1, False))
def sides():
    """Numbers to the left of tensors, truth values among masks, methods of ops whose first argument is another."""

    def run(x: Tensor, k: int, flag: bool) -> Tuple[Tensor, Tensor, List[Tensor], Tensor, Tensor]:
        between = (k <= x) & (0.25 > x)
        chosen = x.where(between, torch.zeros_like(x)) + x.where(x > 0, other=torch.ones_like(x))
        made = [k == x, 0.5 != x, k - x, k / (x + 9.0), 2 * x, x * flag, x + flag, 1 >= x.to(torch.int64)]
        counts = torch.arange(3) & flag & (k < 5)
        return chosen, between, made, counts, (x.abs() + 1.5).lgamma()

    return run


@newcomer(([1],), ((1, 2.0),), (3,), (["a"],), (2.0,))
def kinds_of_what_may_be_anything():
    def run(x: Any) -> int:
        if isinstance(x, list):
            return 1
        if isinstance(x, (tuple, int)):
            return 2
        return 0

    return run

"""Programs as strangers write them: each is a module or a function to script, with calls. Some calls raise."""

import enum
import typing
from collections import OrderedDict
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

STRANGERS = {}


def stranger(*calls):
    """Add a program with the arguments of its calls."""

    def add(make):
        STRANGERS[make.__name__] = make, calls
        return make

    return add


def row(n: int) -> Tensor:
    return torch.arange(n).to(torch.float32) / 4 - 1


class Box(NamedTuple):
    corner: Tuple[int, int]
    size: Tuple[int, int]
    label: Optional[str] = None
    score: float = 0.5


class Mode(enum.Enum):
    MEAN = "mean"
    SUM = "sum"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


@torch.jit.script
class Stack:
    def __init__(self, limit: int):
        self.items: List[Tensor] = []
        self.limit = limit
        self.names = torch.jit.annotate(Dict[str, int], {})

    def push(self, x: Tensor, name: str):
        if len(self.items) >= self.limit:
            raise RuntimeError("the stack is full: {} items".format(len(self.items)))
        self.items.append(x)
        self.names[name] = len(self.items)

    def pop(self) -> Optional[Tensor]:
        if len(self.items) == 0:
            return None
        return self.items.pop()

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __add__(self, other: "Stack") -> "Stack":
        made = Stack(self.limit + other.limit)
        for x in self.items:
            made.push(x, "x")
        for x in other.items:
            made.push(x, "other")
        return made


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass

    def width(self, n: int) -> int:
        pass


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2

    @torch.jit.export
    def width(self, n: int) -> int:
        return n * 2


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = 2

    def forward(self, x: Tensor) -> Tensor:
        return x / self.by

    @torch.jit.export
    def width(self, n: int) -> int:
        return n // self.by


@stranger((row(4), 3), (row(4), 1), (row(4), 0))
def stacks():
    def run(x: Tensor, n: int):
        s = Stack(2)
        for i in range(n):
            s.push(x * i, f"n{i}")
        t = Stack(1)
        t.push(x, "x")
        both = s + t
        total = torch.zeros_like(x)
        while len(both) > 0:
            last = both.pop()
            if last is not None:
                total = total + last
        assert both.pop() is None
        return total, len(s), "n1" in s, both.names

    return run


@stranger(((1, 2), "cat", 0.25), ((3, 4), None, 0.75))
def boxes():
    def run(corner: Tuple[int, int], label: Optional[str], score: float) -> Tuple[Box, float, int, str]:
        b = Box(corner, (corner[1], corner[0]), label, score)
        area = float(b.size[0] * b.size[1])
        name = b.label
        if name is None:
            name = "none"
        (x, y), (w, h), _, s = b
        plain = Box((0, 0), (1, 1))
        return b, area * s + plain.score, x + y + w * h, name + str(plain.label is None)

    return run


@stranger((row(5), "mean"), (row(5), "sum"), (row(5), "max"))
def modes():
    class Reduce(nn.Module):
        def __init__(self):
            super().__init__()
            self.level = Level.HIGH

        def pick(self, name: str) -> Mode:
            if name == Mode.MEAN.value:
                return Mode.MEAN
            if name == Mode.SUM.value:
                return Mode.SUM
            raise ValueError("unknown mode " + name)

        def forward(self, x: Tensor, name: str) -> Tuple[Tensor, str, int]:
            mode = self.pick(name)
            y = x.mean() if mode == Mode.MEAN else x.sum()
            if mode != Mode.MEAN and self.level == Level.HIGH:
                y = y * self.level.value
            return y, mode.name, self.level.value

    return Reduce()


@stranger(([(1, 2.5), (3, -1.0), (2, 0.5)],), ([],))
def pairs():
    def run(xs: List[Tuple[int, float]]) -> Tuple[int, float, List[float], List[Tuple[float, int]], Dict[int, float]]:
        count, total = 0, 0.0
        table = torch.jit.annotate(Dict[int, float], {})
        for i, (n, weight) in enumerate(xs):
            count += n * i
            total += weight
            table[n] = weight
        turned = [(w, n) for n, w in xs]
        turned.sort()
        return count, total, [w * 2 for _, w in xs], turned, table

    return run


@stranger((row(6), None, None), (row(6), row(6) * 2, 3), (row(6), None, 9))
def optionals():
    def run(x: Tensor, mask: Optional[Tensor], n: Optional[int]) -> Optional[Tensor]:
        if mask is None and n is None:
            return None
        if n is not None and n > 5:
            n = None
        k = n if n is not None else -1
        if mask is not None:
            x = x * mask
        assert k != 0, "zero"
        return x[:k]

    return run


@stranger(([3, 5, 8, 9], 8), ([1], 4), ([], 1))
def search():
    def run(xs: List[int], wanted: int) -> Tuple[int, List[int]]:
        seen: List[int] = []
        for i, x in enumerate(xs):
            seen.append(x)
            if x % 2 == 1:
                continue
            j = 0
            while True:
                j += x
                if j > 20:
                    break
                if j == wanted:
                    return i, seen
        return -1, seen[::-1]

    return run


@stranger(({"b": 2, "a": 1},), ({},))
def tables():
    def run(given: Dict[str, int]) -> Tuple[List[str], int, List[Tuple[str, int]], Dict[int, str], int]:
        total = 0
        for key in given:
            total += given[key]
        for key, value in given.items():
            total += value * len(key)
        back = {v: k for k, v in given.items()}
        copied = given.copy()
        copied.update({"z": 26})
        first = copied.pop("z") + copied.get("a", 10) + copied.setdefault("q", 4)
        del copied["q"]
        return list(given.keys()), total, list(copied.items()), back, first + int("b" in copied)

    return run


@stranger((3, 2.5, "x", [1, 2]), (-3, 0.125, "it's", [7]))
def texts():
    def run(n: int, x: float, s: str, xs: List[int]) -> List[str]:
        return [
            f"{n} of {x} in {s}!",
            "{} {} {}".format(n, s, xs),
            "%d %s" % (n, s),
            "a" + s + str(x) + str(xs) + str(n > 0),
            ", ".join([str(i) for i in range(abs(n))]),
            s.ljust(4) + "|" + s.rjust(5, "."),
            "  b ".strip() + s.title() + s.lower(),
        ]

    return run


@stranger((row(3),))
def ignored():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)
            self.linear.weight.data.copy_(row(6).reshape(2, 3))
            self.linear.bias.data.zero_()
            self.steps = 0

        @torch.jit.unused
        def debug(self, x: Tensor) -> Tensor:
            import pdb

            pdb.set_trace()
            return x

        @torch.jit.export
        def twice(self, x: Tensor) -> Tensor:
            return self(x) + self.forward(x)

        def forward(self, x: Tensor) -> Tensor:
            if not torch.jit.is_scripting():
                x = x.numpy()
            self.steps += 1
            if self.steps > 99:
                x = self.debug(x)
            return self.linear(x) * self.steps

    return Net()


@stranger((row(4), 3))
def futures():
    def work(x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = x + 1
        return x

    def run(x: Tensor, n: int) -> Tuple[Tensor, List[Tensor]]:
        waiting: List[torch.jit.Future[Tensor]] = []
        for i in range(n):
            waiting.append(torch.jit.fork(work, x, i))
        results: List[Tensor] = []
        for w in waiting:
            results.append(torch.jit.wait(w))
        return torch.stack(results).sum(0), results

    return run


@stranger((row(4), 0), (row(4), 1), (row(4), -1))
def items_of_lists():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Double(), Half(), nn.Sequential(Double(), Double())])
            self.named = nn.ModuleDict({"one": nn.ReLU(), "two": nn.Tanh()})

        def forward(self, x: Tensor, n: int) -> Tuple[Tensor, List[str]]:
            y = self.layers[-1](self.layers[0](x))
            names: List[str] = []
            for name, layer in self.named.items():
                y = layer(y)
                names.append(name)
            for i, layer in enumerate(self.layers[1:]):
                if i == n:
                    y = layer(y)
            for key in self.named:
                names.append(key + "!")
            return y + len(self.layers) + float("one" in self.named), names

    return Net()


@stranger((row(4), True), (row(4), False))
def interfaces():
    class Net(nn.Module):
        layer: Layer
        other: Layer

        def __init__(self):
            super().__init__()
            self.layer = Double()
            self.other = Half()

        def forward(self, x: Tensor, swap: bool) -> Tuple[Tensor, int]:
            if swap:
                return self.other.forward(x), self.other.width(8)
            return self.layer.forward(x), self.layer.width(8)

    return Net()


@stranger((row(4),))
def hooks():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Double()

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x) + 1

    def before(self, given: Tuple[Tensor]) -> Tuple[Tensor]:
        return (given[0] + 10,)

    def after(self, given: Tuple[Tensor], result: Tensor) -> Tensor:
        return result - given[0]

    net = Net()
    net.inner.register_forward_pre_hook(before)
    net.inner.register_forward_hook(after)
    return net


@stranger((row(3), 2))
def constants():
    class Net(nn.Module):
        __constants__ = ["scale", "names"]
        depth: torch.jit.Final[int]
        bias: Optional[Tensor]

        def __init__(self):
            super().__init__()
            self.scale, self.names, self.depth = 0.5, ("a", "b"), 3
            self.register_buffer("table", row(3))
            self.register_parameter("gone", None)
            self.bias = None
            self.widths: List[int] = [1, 2, 3]
            self.lookup: Dict[str, float] = {"a": 1.5, "b": -1.0}

        def forward(self, x: Tensor, n: int) -> Tensor:
            for i in range(self.depth):
                x = x * self.scale + self.table[i]
            if self.gone is not None:
                x = x + self.gone
            b = self.bias
            if b is not None:
                x = x + b
            for name in self.names:
                x = x + self.lookup[name]
            return x * self.widths[n]

    return Net()


@stranger((row(4), 1), (row(4), "two"), (row(4), 3.5))
def unions():
    def run(x: Tensor, n: Union[int, float, str]) -> Tensor:
        if isinstance(n, int):
            return x + n
        if isinstance(n, str):
            return x * len(n)
        return x - n

    return run


@stranger((torch.arange(12).to(torch.float32).reshape(3, 4), torch.tensor([4, 2, 1])))
def packed():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(1, 3, batch_first=True)
            for p in self.rnn.parameters():
                p.data.copy_((row(p.numel()) / 5).reshape(p.shape))

        def forward(self, x: Tensor, lengths: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
            x = nn.utils.rnn.pack_padded_sequence(x.unsqueeze(-1), lengths, batch_first=True)
            y, state = self.rnn(x)
            y, sizes = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
            return y, state, sizes

    return Net()


@stranger((row(4), 4), (row(4), 0), (row(4), -3))
def errors():
    class Net(nn.Module):
        def check(self, n: int) -> int:
            if n < 0:
                raise ValueError(f"expected n >= 0, got {n}")
            assert n != 0, f"n is {n}"
            return n

        def forward(self, x: Tensor, n: int) -> Tensor:
            y = x.reshape(2, self.check(n))
            return y

    return Net()


@stranger((row(6),))
def slices():
    def run(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, List[int]]:
        y = x.reshape(2, 3)
        y[0, 1] = 7.0
        y[:, -1] += 1
        y[1] = torch.zeros(3)
        z = y[None, ..., 1:]
        w = y[[1, 0]]
        mask = y > 0
        y[mask] = -1.0
        shape = list(z.shape)
        return y, z, w, x[x < 0], shape + [y.size(-1), x.numel()]

    return run


@stranger((2, 5), (0, 1))
def nested():
    def inner(n: int, m: int = 3) -> Tuple[int, int]:
        if n > 0:
            a, b = n // m, n % m
            return a, b
        return 0, m

    def run(n: int, m: int) -> List[Tuple[int, int]]:
        made = [inner(n), inner(n, m), inner(n=m, m=m + 1)]
        made += [inner(i) for i in range(n)]
        x, (y, z) = 1, inner(m)
        x, y = y, x
        made.append((x + z, y))
        return made

    return run


@stranger((row(4), [row(2), row(3)]))
def sequences():
    def sorted_by_size(xs: List[Tensor]) -> List[Tensor]:
        order = torch.tensor([t.numel() for t in xs]).argsort(descending=True)
        picked = torch.jit.annotate(List[Tensor], [])
        places: List[int] = order.tolist()
        for i in places:
            picked.append(xs[i])
        return picked

    class Net(nn.Module):
        def forward(self, x: Tensor, xs: List[Tensor]) -> Tuple[Tensor, List[Tensor], int, Tensor]:
            xs = xs + [x]
            a, b = x.chunk(2)
            total = 0
            for t in xs:
                total += t.shape[0]
            for p, q in zip(xs, [1, 2, 3]):
                total += q * len(p)
            rows = torch.stack([t.sum() for t in xs])
            best = max([len(t) for t in xs])
            padded = [F.pad(t, [0, best - len(t)]) for t in xs]
            return torch.cat(padded, dim=-1), sorted_by_size(xs), total, rows * b[0] + a.sum()

    return Net()


@stranger((row(4),), (row(3),))
def states():
    class Stream(nn.Module):
        past: Tensor
        memory: Dict[str, Tensor]
        history: List[int]

        def __init__(self):
            super().__init__()
            self.register_buffer("past", torch.zeros(4))
            self.memory = {}
            self.history = []

        @torch.jit.export
        def reset(self):
            self.past = torch.zeros(4)
            self.history.clear()

        def forward(self, x: Tensor) -> Tuple[Tensor, List[int], int]:
            if x.size(0) != self.past.size(0):
                self.reset()
                x = F.pad(x, (0, self.past.size(0) - x.size(0)))
            self.past = 0.5 * self.past + x
            self.memory["last"] = x
            self.history.append(x.size(0))
            return self.past, self.history, len(self.memory)

    return Stream()


@stranger((3,), (0,))
def any_values():
    def describe(x: Any) -> str:
        if isinstance(x, int):
            return "int"
        elif isinstance(x, (float, bool)):
            return "number"
        elif isinstance(x, List[int]):
            return "ints"
        return "other"

    def run(n: int) -> List[str]:
        return [describe(n), describe(n / 2), describe([n]), describe("s"), describe(n > 1), describe((n, n))]

    return run


@stranger((row(4), 2), (row(4), 5))
def numbers():
    def run(x: Tensor, n: int) -> Tuple[float, float, bool, Tensor, float, float, complex]:
        y = x.clamp(min=0.0).sum().item()
        k = int(x.abs().max()) + n**2 - (n << 1) + (n ^ 3) + (n | 8)
        big = n if 1 < n <= 4 else -n
        flag = not (n == 2 or big < 0) and bool(x[0] < 0)
        z = x if n > 3 else -x
        return (
            float(y),
            k,
            flag,
            z.masked_fill(z > 0.5, float("-inf")),
            max(n, 3) + min(n, k),
            round(2.5) + float(7 % -3),
            1j * n,
        )

    return run


@stranger((row(8), 2))
def contexts():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(row(8))

        def forward(self, x: Tensor, n: int) -> Tuple[Tensor, bool, bool]:
            with torch.no_grad():
                y = self.w * x
                if n > 1:
                    y = y + 1
            z = self.w + y
            return z.detach(), y.requires_grad, z.requires_grad

    return Net()


@stranger((row(4),), (row(9),))
def submodules():
    class Gate(nn.Module):
        def __init__(self, n: int):
            super().__init__()
            self.n = n

        def forward(self, x: Tensor, scale: float = 1.0, shift: float = 0.0) -> Dict[str, Tensor]:
            return {"y": x[: self.n] * scale + shift, "x": x}

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.gates = nn.ModuleDict(OrderedDict([("a", Gate(2)), ("b", Gate(3))]))
            self.act = nn.Sequential(OrderedDict([("one", nn.Hardtanh(-0.5, 0.5)), ("two", nn.ReLU6())]))

        def forward(self, x: Tensor) -> Dict[str, Tensor]:
            made: Dict[str, Tensor] = {}
            for name, gate in self.gates.items():
                out = gate(x, scale=2.0)
                if out["y"].numel() > 2:
                    made[name] = self.act(out["y"])
                else:
                    made[name] = out["x"].view(-1, 4).sum(0)
            return made

    return Net()


@stranger((row(8), True), (row(8), False))
def conditions_decided_by_their_second_part():
    def run(x: Tensor, flag: bool):
        if flag or not typing.TYPE_CHECKING or torch.jit.is_tracing():
            y = x * 2
        else:
            y = typing.nothing_of_that_name(x)
        if flag and typing.TYPE_CHECKING:
            y = typing.nothing_of_that_name(x)
        return y, flag or not typing.TYPE_CHECKING, flag and typing.TYPE_CHECKING

    return run

"""Functions in the language of scripts, one feature after the other; ``EXAMPLES`` has each with arguments."""

import math
from typing import Dict, List, Optional, Tuple, Union

import torch
import torch.nn.functional as F

EXAMPLES = {}


def example(*args):
    """Add a function with its arguments."""

    def add(function):
        EXAMPLES[function.__name__] = function, args
        return function

    return add


@example(3, 2)
def powers(x: int, y: int):
    return x**y, x // y, x % y, x / y, -x // y, divmod(x, y), abs(-x)


@example(2.5)
def floats(x: float):
    return round(x), int(x), math.floor(x), math.ceil(x), str(x), x // 0.7, x % 0.3


@example("hello")
def text(s: str):
    return (
        s.split(),
        s.upper(),
        s[1:-1],
        s[::-1],
        s.replace("a", "b"),
        s.find("l"),
        s.strip("h"),
        "x" in s,
        len(s),
        s.join(["a", "b"]),
        s.startswith("he"),
        s.endswith("o", 1),
        s.count("l"),
        s.zfill(9),
        ord(s[0]),
        s.partition("l"),
    )


@example([3, 1, 2])
def lists(xs: List[int]):
    xs = xs.copy()
    xs.append(4)
    xs.insert(0, 9)
    xs.extend([1, 2])
    xs.reverse()
    y = xs.pop(1)
    xs.sort(reverse=True)
    xs.remove(2)
    return (
        xs,
        y,
        xs.index(9),
        xs.count(1),
        sum(xs),
        min(xs),
        max(xs),
        sorted(xs),
        xs[1:3],
        xs[-1],
        3 in xs,
        any([x > 3 for x in xs]),
        xs + [7],
        xs * 2,
        xs == [1],
    )


@example({"a": 1, "b": 2})
def dictionaries(d: Dict[str, int]):
    d = dict(d.items())
    d["z"] = 5
    d.update({"q": 1})
    e = d.copy()
    e.pop("z")
    return (
        list(d.keys()),
        list(d.values()),
        d.items(),
        len(d),
        "a" in d,
        d.get("no"),
        d.get("no", 3),
        d.setdefault("w", 8),
        e,
        d.pop("a", 1),
    )


@example(torch.ones(2))
def branches(x):
    if x.sum() > 0:
        y = 1
    else:
        y = 2
    z = y if y > 1 else 5
    while z > 0 and y < 10:
        z -= 1
        if z == 3:
            continue
        y += z
    else_ = not (z > 0 or y < 0)
    return y, z, else_, 1 < y < 100, y != z, y is None


@example(2)
def loops(n: int):
    out = torch.jit.annotate(List[Tuple[int, str]], [])
    for i, c in enumerate("abc"):
        for a, b in zip(range(n), [1.5, 2.5]):
            out.append((i + a, c + str(b)))
    return out, [i * i for i in range(4)], {str(k): k for k in [1, 2]}


@example(None, "abc")
def optionals_(x: Optional[int], y: Optional[str] = None):
    if x is None:
        x = 3
    z = x + 1
    if y is not None and len(y) > 2:
        z += len(y)
    return z, y, x if x is not None else 7


@example(torch.ones(2, 3))
def tensors(x):
    a, (b, c), *d = (x, (1, 2), 3, 4.0)
    a += 1
    x[0, 0] = 7
    x[1:] *= 2
    del_ = [x, a]
    del del_[0]
    return (
        a,
        b,
        c,
        d,
        x,
        len(del_),
        x.shape,
        x.size(0),
        x.dtype,
        x.dim(),
        x.T,
        x[:, -1],
        x[None].shape,
        x[[0, 1]],
        x[x > 3],
    )


@example(torch.ones(2, 3))
def more_tensors(x):
    y: List[Optional[torch.Tensor]] = [None, x]
    n = 0
    for t in y:
        if t is not None:
            n += t.numel()
    assert n > 0, "n is {}".format(n)
    return (
        n,
        torch.stack([x, x]).sum(dim=[0, 1]),
        torch.cat((x, x), dim=-1),
        x.mean(0, keepdim=True),
        x.view(-1),
        x.reshape(3, 2),
        x.permute(1, 0),
        torch.zeros(2, 3).to(x),
        torch.full((2,), 3),
        x.new_full((1,), 2.0),
        torch.arange(3, dtype=torch.float),
        x.float().long(),
    )


@example(3)
def early(n: int) -> int:
    if n == 0:
        return 1
    for i in range(n):
        if i == 2:
            return i * 10
    return -1


@example([1, 2])
def unions_(x: Union[int, float, str, List[int]]):
    if isinstance(x, (int, float)):
        return "number"
    elif isinstance(x, str):
        return x
    else:
        return str(len(x))


@example(torch.ones(2, 3))
def functions(x, dim: int = 1, flag: bool = True):
    return (
        F.softmax(x, dim=dim),
        F.relu(x) if flag else x,
        F.dropout(x, 0.5, False),
        F.linear(x, x),
        F.layer_norm(x, [3]),
        F.gelu(x),
        F.normalize(x),
        F.pad(x, (1, 1)),
        F.one_hot(x.long(), 3),
        F.cross_entropy(x, torch.tensor([0, 1])),
        F.mse_loss(x, x * 2),
        F.max_pool1d(x[None], 2),
        F.interpolate(x[None], scale_factor=2.0),
        F.leaky_relu(x, 0.1),
        F.cosine_similarity(x, x + 1),
        F.log_softmax(x, -1),
        F.softplus(x),
        F.elu(x),
        F.hardtanh(x),
        F.avg_pool1d(x[None], 3),
    )


@example(torch.arange(12.0).reshape(3, 4))
def written_slices(x):
    return (
        x[(slice(None, None, None), slice(1, x.shape[0]))], x[slice(2)], x[(Ellipsis, slice(0, 4, 2))],
        x[(slice(None), None, 0)], [1, 2, 3][slice(1, None)],
    )  # fmt: skip


@example(torch.arange(12.0).reshape(3, 4), torch.arange(8.0).reshape(2, 4))
def called_otherwise_than_aten(a: torch.Tensor, b: torch.Tensor):
    """Functions whose parameters in Python are not those of the op of that name."""
    pieces = torch.stft(a[0], 4, return_complex=True), torch.stft(a[0], 2, 1, window=b[0, :2], return_complex=True)
    same = torch.unique_consecutive(b, return_counts=True), torch.unique(b, True, True), torch.unique(b, dim=0)
    sums = torch.tensordot(a, b, dims=([1], [1])), torch.tensordot(a, b.t(), 1), torch.tensordot(a, b, [[1], [1]])
    sizes = torch.norm(a, dim=1), torch.norm(a, "fro", dim=[0, 1]), torch.chain_matmul(a, b.t(), b)
    return pieces, same, sums, sizes, torch.lu(b @ b.t())


@example(torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]]))
def tensor_ops(x):
    values, idx = torch.sort(x, dim=-1, descending=True)
    v, i = x.topk(2)
    m = torch.max(x, 1)
    u = torch.unique(x)
    return (
        values,
        idx,
        v,
        m.values,
        m[1],
        u,
        torch.where(x > 0, x, -x),
        x.clamp(min=0.0),
        x.clamp(0, 1),
        torch.einsum("ij,kj->ik", x, x),
        x @ x.t(),
        x.masked_fill(x > 0, 2),
        x.nonzero(),
        torch.nonzero(x > 0),
        x.std(),
        x.norm(),
        torch.linalg.norm(x),
        x.cumsum(0),
        x.chunk(2, 1),
        x.split(1),
        torch.meshgrid(x[0], x[1], indexing="ij"),
        x.expand(2, 2, 3),
        x.repeat(2, 1),
        x.flatten(),
        x.unbind(0),
        x.tolist() if False else 0,
        torch.tensor([[1, 2], [3, 4]]),
        torch.logical_and(x > 0, x < 2),
        x.item() if x.numel() == 1 else 0.0,
        2 - x,
        1 / (x + 5),
        3 * x,
        x % 2,
        x // 2,
        x**2,
        2**x,
        -x,
        ~(x > 0),
        x > 1,
        (x > 0) & (x < 2),
        x.eq(1).all(),
        x.any(),
        float(x.sum()),
        int(x[0, 0]),
        bool(x.sum() > 0),
    )


@example(5)
def breaks(x: int) -> List[str]:
    out: List[str] = []
    try_ = 0
    while True:
        x, try_ = x - 1, try_ + 1
        if x < 0:
            break
        if x % 2 == 0:
            out.append(f"{x}-{try_}")
        else:
            out += ["odd%d" % x, "%s %s" % ("s", 1.5)]
    return out


@example(torch.ones(1))
def constants(x):
    def_ = x.requires_grad
    y = x.detach()
    with torch.no_grad():
        z = y * 2
    return (
        def_,
        z.requires_grad,
        math.pi,
        math.sqrt(2),
        math.inf,
        float("nan") != float("nan"),
        1e-3,
        1j * 2,
        True and not False,
        None,
    )


@example((1, "a", 2.0), [(1, 2), (3, 4)])
def tuples(x: Tuple[int, str, float], y: List[Tuple[int, int]]):
    a, b, c = x
    t = x + (1,)
    s = 0
    for p, q in y:
        s += p * q
    return a, b, c, t, x[0], x[-1], x[1:], len(x), s, (1, 2) == (1, 2), [1, 2] == [1, 2], y[0][1]


@example(2.5, 2)
def numbers(x: float, n: int):
    return (
        x * n,
        n * x,
        n + 1.5,
        x > n,
        n == 2.0,
        int(3.7),
        float(2),
        bool(0),
        x**n,
        n**x,
        min(n, 3),
        max(x, 1.0),
        abs(-x),
        pow(x, 2),
        n << 2,
        n >> 1,
        n & 1,
        n | 4,
        n ^ 3,
        hex(n),
        bin(n),
        oct(n),
        chr(n + 60),
    )

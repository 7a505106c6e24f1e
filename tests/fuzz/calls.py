"""Random calls of the ops in the table: shapes with zeros and ones, every dtype, strides of every sign, arguments in and
out of range. Call ``i`` of a family under a seed is always the same call."""

from __future__ import annotations

import inspect
import math
import random

import taeda
from taeda._core import REQUIRED
from taeda.ops.table import OPS

#: Which files of ``taeda/ops`` make a family, by the beginning of their names.
FAMILIES = {
    "pointwise": ("pointwise", "elementary", "comparison", "activation", "special", "bessel", "zeta", "gamma", "poly"),
    "reduction": ("reduction", "statistics", "scan", "softmax", "histogram"),
    "shape": ("views", "shape", "joining", "view_copies", "conversion"),
    "indexing": ("indexing",),
    "scatter": ("scatter", "segment"),
    "sort": ("sorting", "unique", "selection"),
    "linalg": ("linalg", "matmul", "einsum", "lu", "lowrank", "least"),
    "fft": ("fft", "stft", "window", "signal"),
    "functional": (
        "loss",
        "conv",
        "pooling",
        "resample",
        "normalization",
        "attention",
        "embedding",
        "ctc",
        "recurrent",
        "grid",
    ),
    "creation": ("creation",),
    "random": ("random", "variates", "sampling"),
}

#: Ops that are not functions of their arguments alone, or change settings of the process.
LEFT_OUT = {"from_dlpack", "from_file", "share_memory_", "pin_memory", "cuda", "set_", "frombuffer"}

DTYPES = "float32 float64 float16 bfloat16 complex64 complex128 int64 int32 int16 int8 uint8 uint16 uint32 uint64 bool"
DTYPES = [getattr(taeda, name) for name in DTYPES.split()]
FLOATS = [taeda.float32, taeda.float64]
SIZES = (0, 1, 1, 2, 2, 3, 4, 5, 8, 17)
MOST = 1 << 13  # elements of a tensor

DIMS = {"dim", "dim0", "dim1", "dim2", "axis", "axis0", "axis1", "start_dim", "end_dim", "source", "destination"}
LENGTHS = {
    "size", "shape", "sizes", "kernel_size", "stride", "padding", "dilation", "output_padding", "output_size", "dims",
    "repeats", "shifts", "s", "pad", "normalized_shape", "split_size", "split_sizes", "indices_or_sections", "sections",
    "chunks", "repetitions", "block_size", "n", "k", "diagonal", "offset", "groups", "num_groups", "step", "length",
    "start", "end", "storage_offset", "upscale_factor", "downscale_factor", "num_classes", "num_samples", "bins",
}  # fmt: skip
INDICES = {
    "index",
    "indices",
    "target",
    "sorter",
    "offsets",
    "target_lengths",
    "input_lengths",
    "pivots",
    "batch_sizes",
}
LISTS = {"tensors", "arrays", "operands", "matrices"}
WORDS = [
    "none", "mean", "sum", "constant", "reflect", "replicate", "circular", "nearest", "linear", "bilinear", "bicubic",
    "area", "border", "zeros", "left", "right", "reduced", "complete", "ij", "xy", "fro", "nuc", "amax", "amin", "prod",
    "floor", "trunc", "tanh", "ortho", "forward", "backward", "L", "U", "lower", "higher", "midpoint", "valid", "same",
    "ij,jk->ik", "ii", "...i->...", "i,i", "nonsense", "",
]  # fmt: skip
NUMBERS = [
    0,
    1,
    2,
    3,
    -1,
    -2,
    5,
    17,
    0.0,
    0.5,
    1.0,
    -1.5,
    2.5,
    1e-3,
    1e30,
    math.inf,
    -math.inf,
    math.nan,
    True,
    False,
    1j,
]
HUGE = [2**31, -(2**31), 2**40, 2**62, -(2**63), 2**63, 2**70]


def is_public(name: str) -> bool:
    """Whether users call it: what only derivatives and composites use may trust its arguments."""
    if name in LEFT_OUT or name.startswith("_") or name.endswith("_backward"):
        return False
    short = name.removeprefix("linalg_").removeprefix("fft_").removeprefix("special_")
    homes = (taeda, taeda.nn.functional, taeda.linalg, taeda.fft, taeda.special)
    return any(hasattr(home, short) for home in homes) or (name.endswith("_") and hasattr(taeda.Tensor, name))


def ops_of(family: str) -> list[str]:
    """The names of a family's ops, in order."""
    found = []
    for name, op in OPS.items():
        module = getattr(op, "__module__", "") or ""
        if module.startswith("taeda.ops.") and module[10:].startswith(FAMILIES[family]) and is_public(name):
            found.append(name)
    return sorted(found)


class Call:
    """One random call: the op's name and its arguments; ``str`` tells them."""

    def __init__(self, family: str, seed: int, index: int):
        self.rng = random.Random(f"{family} {seed} {index}")
        names = ops_of(family)
        self.name = names[index % len(names)]
        self.op = OPS[self.name]
        self.shape = self.a_shape()
        if family == "linalg" and self.rng.random() < 0.6:  # square matrices
            side = self.rng.choice((0, 1, 2, 3, 3, 5))
            self.shape = (*self.shape[:-2][:2], side, side)
        self.dtype = self.a_dtype()
        self.args: list = []
        self.kwargs: dict = {}
        self.fill()

    # ---- tensors ---------------------------------------------------------------------------------------------------------
    def a_shape(self) -> tuple[int, ...]:
        r = self.rng
        shape: list[int] = []
        for _ in range(r.choice((0, 1, 1, 2, 2, 3, 3, 4, 5))):
            n = r.choice(SIZES)
            if math.prod(shape) * n <= MOST:
                shape.append(n)
        return tuple(shape)

    def a_dtype(self):
        return self.rng.choice(FLOATS if self.rng.random() < 0.5 else DTYPES)

    def near_shape(self) -> tuple[int, ...]:
        """The call's own shape, one that broadcasts with it, or another."""
        r = self.rng
        if r.random() < 0.5:
            return self.shape
        if r.random() < 0.5:
            return tuple(1 if r.random() < 0.3 else n for n in self.shape)[r.randrange(len(self.shape) + 1) :]
        return self.a_shape()

    def tensor(self, shape=None, dtype=None, low=-4, high=4):
        """A tensor with any strides: dense, transposed, every second element, reversed, expanded, inside a larger one."""
        r = self.rng
        shape = self.near_shape() if shape is None else shape
        dtype = (self.dtype if r.random() < 0.75 else self.a_dtype()) if dtype is None else dtype
        layout = r.choice(("dense", "dense", "dense", "turned", "stepped", "reversed", "expanded", "inside"))
        if layout == "turned":
            return self.values(shape[::-1], dtype, low, high).permute(tuple(range(len(shape)))[::-1])
        if not shape or layout == "dense":
            return self.values(shape, dtype, low, high)
        at = r.randrange(len(shape))
        inner = list(shape)
        pick: list = [slice(None)] * len(shape)
        if layout == "stepped":
            inner[at], pick[at] = 2 * shape[at], slice(None, None, 2)
        elif layout == "reversed":
            pick[at] = slice(None, None, -1)
        elif layout == "inside":
            inner[at], pick[at] = shape[at] + 3, slice(2, shape[at] + 2)
        else:
            inner[at] = 1
            return self.values(inner, dtype, low, high).expand(shape)
        return self.values(inner, dtype, low, high)[tuple(pick)]

    def values(self, shape, dtype, low, high):
        generator = taeda.Generator().manual_seed(self.rng.randrange(1 << 30))
        made = taeda.randint(low, high, tuple(shape), generator=generator)
        if dtype.is_floating_point or dtype.is_complex:
            made = made.to(taeda.float64) * 0.75
            if made.numel() and self.rng.random() < 0.1:
                made.view(-1)[self.rng.randrange(made.numel())] = self.rng.choice((math.nan, math.inf, -math.inf))
            if dtype.is_complex:
                made = taeda.complex(made, made.flip(0) if made.dim() else made)
        return made.to(dtype)

    def index(self):
        """Whole numbers that mostly are indices of some dimension."""
        r = self.rng
        limit = max(self.shape, default=1) if r.random() < 0.3 else min(self.shape, default=1)
        low = -1 if r.random() < 0.15 else 0
        dtype = taeda.int64 if r.random() < 0.85 else r.choice((taeda.int32, taeda.uint8, taeda.bool, taeda.float32))
        return self.tensor(dtype=dtype, low=low, high=max(limit, 1) + (r.random() < 0.1))

    # ---- arguments -------------------------------------------------------------------------------------------------------
    def small(self) -> int:
        r = self.rng
        return r.choice(HUGE) if r.random() < 0.02 else r.choice((0, 1, 1, 2, 2, 3, 4, 5, -1, -2))

    def a_dim(self):
        r, n = self.rng, len(self.shape)
        if r.random() < 0.2:
            return tuple(r.randint(-n, max(n - 1, 0)) for _ in range(r.randrange(4)))
        if r.random() < 0.05:
            return r.choice((None, "1", 0.5, r.choice(HUGE)))
        return r.randint(-n - (r.random() < 0.1), max(n - (r.random() < 0.9), 0))

    def lengths(self):
        r = self.rng
        if r.random() < 0.5:
            return self.small()
        return [self.small() for _ in range(r.choice((0, 1, 2, 2, 3, 4, 6)))]

    def argument(self, name: str, default):
        """Something for the parameter ``name``."""
        r = self.rng
        if name in LISTS:
            count = r.choice((0, 1, 2, 2, 3, 3))
            shape = self.shape
            return [self.tensor(shape if r.random() < 0.8 else None) for _ in range(count)]
        if name in DIMS:
            return self.a_dim()
        if name in INDICES:
            return self.index() if r.random() < 0.9 else self.small()
        if name in ("mask", "condition", "attn_mask", "where"):
            return self.tensor(dtype=taeda.bool) if r.random() < 0.85 else self.tensor()
        if name == "weight" and len(self.shape) > 1 and r.random() < 0.7:  # of a convolution or a linear layer
            lead = (r.choice((0, 1, 2, 4)), self.shape[1] if r.random() < 0.8 else 1)
            return self.tensor(lead + tuple(r.choice((1, 1, 2, 3)) for _ in self.shape[2:]))
        if name in ("dtype", "out_dtype"):
            return r.choice(DTYPES) if r.random() < 0.7 else None
        if name in LENGTHS:
            return self.lengths()
        if isinstance(default, bool):
            return r.random() < 0.5
        if isinstance(default, str):
            return default if r.random() < 0.3 else r.choice(WORDS)
        if isinstance(default, (int, float)):
            return r.choice(NUMBERS)
        if default is None:
            return None if r.random() < 0.6 else r.choice((self.tensor, self.lengths, lambda: r.choice(NUMBERS)))()
        if default is REQUIRED or default is inspect.Parameter.empty:
            pick = r.random()
            if pick < 0.75:
                return self.tensor()
            if pick < 0.9:
                return r.choice(NUMBERS)
            return r.choice(
                (self.lengths, lambda: r.choice(WORDS), lambda: None, lambda: [self.tensor(), self.tensor()])
            )()
        return default

    def fill(self) -> None:
        r = self.rng
        function = getattr(self.op, "__wrapped__", self.op)
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        for i, p in enumerate(parameters):
            if p.kind is p.VAR_KEYWORD or p.name in (
                "out",
                "device",
                "layout",
                "generator",
                "pin_memory",
                "requires_grad",
            ):
                continue
            if p.kind is p.VAR_POSITIONAL:
                for _ in range(r.randrange(4)):
                    whole = p.name in ("size", "sizes", "dims", "args", "repeats", "shape")
                    self.args.append(self.small() if whole else self.tensor())
                continue
            if p.default is not p.empty and r.random() < 0.5:
                continue
            if i == 0 and p.name in ("input", "self"):
                value = self.tensor(self.shape, self.dtype)
            else:
                value = self.argument(p.name, p.default)
            if p.kind is p.KEYWORD_ONLY or len(self.args) < i:
                self.kwargs[p.name] = value
            else:
                self.args.append(value)
        if r.random() < 0.05:
            self.kwargs["out"] = self.tensor()
        self.differentiate = r.random() < 0.25

    # ---- running ---------------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Call, differentiate where that was drawn, and look at every result."""
        if self.differentiate:
            for x in self.args:
                if isinstance(x, taeda.Tensor) and (x.is_floating_point() or x.is_complex()):
                    x.requires_grad_()
        results = flatten(self.op(*self.args, **self.kwargs))
        if self.differentiate:
            roots = [x for x in results if x.requires_grad and x.grad_fn is not None]
            if roots:
                taeda.autograd.backward(roots, [taeda.ones_like(x) for x in roots])
        for x in results:
            repr(x)
            if x.numel() <= MOST:
                x.detach().clone()

    def __str__(self) -> str:
        given = [tell(x) for x in self.args] + [f"{k}={tell(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}({', '.join(given)}){' and its gradient' if self.differentiate else ''}"


def flatten(x) -> list:
    """The tensors in a result."""
    if isinstance(x, taeda.Tensor):
        return [x]
    return [t for item in x for t in flatten(item)] if isinstance(x, (list, tuple)) else []


def tell(x) -> str:
    if isinstance(x, taeda.Tensor):
        return f"{x.dtype.name}{list(x.shape)} strides {list(x.stride())}"
    return f"[{', '.join(map(tell, x))}]" if isinstance(x, (list, tuple)) else repr(x)

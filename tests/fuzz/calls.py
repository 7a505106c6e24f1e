"""Random calls of public functions: shapes with zeros and ones, every dtype, strides of every sign, arguments in and
out of range and of the wrong type. Call ``i`` of a family under a seed is always the same call.
"""

from __future__ import annotations

import ast
import inspect
import math
import random
import re

import numpy as np
from families import members, public
from recipes import RECIPES

import taeda
from taeda._core import REQUIRED

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
NOT_GIVEN = {"out", "device", "layout", "generator", "pin_memory", "requires_grad", "memory_format"}
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
ODD = [
    None,
    "",
    "cpu",
    b"x",
    object(),
    ...,
    taeda.float32,
    np.float32(1.5),
    np.int64(1),
    np.ones(2),
    [[1], [2, 3]],
    {},
    1j,
    print,
]
HUGE = [2**31, -(2**31), 2**40, 2**62, -(2**63), 2**63, 2**70]


#: Functions that depend on strides, or on more than their arguments.
BY_LAYOUT = "_$|slice_inverse|strided|view|contiguous|dim_order|empty|resize|drop|rrelu|gumbel|fractional|lowrank|lobpcg|get_device"


class Call:
    """One random call: the function's name and its arguments; ``str`` tells them."""

    def __init__(self, family: str, seed: int, index: int):
        self.rng, self.family = random.Random(f"{family} {seed} {index}"), family
        names = members(family)
        self.name = names[index % len(names)]
        self.function = public()[self.name]
        self.shape = self.a_shape()
        if family == "linalg" and self.rng.random() < 0.6:  # square matrices
            side = self.rng.choice((0, 1, 2, 3, 3, 5))
            self.shape = (*self.shape[:-2][:2], side, side)
        self.dtype = self.a_dtype()
        self.sizes: dict[str, int] = {}
        self.compare = family not in ("random", "creation", "tensor") and not re.search(BY_LAYOUT, self.name)
        self.compare = self.compare and self.rng.random() < 0.3
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

    def a_key(self):
        """The content of the brackets."""
        r = self.rng
        parts: list = []
        for _ in range(r.choice((0, 1, 1, 1, 2, 2, 3, 5))):
            pick = r.random()
            if pick < 0.25:
                parts.append(self.small())
            elif pick < 0.5:
                parts.append(slice(*(r.choice((None, self.small())) for _ in range(3))))
            elif pick < 0.65:
                parts.append(self.index())
            elif pick < 0.75:
                parts.append(self.tensor(dtype=taeda.bool))
            else:
                parts.append(
                    r.choice((None, ..., True, [0, 0], [[0], [0]], np.zeros(2, dtype=np.int64), self.anything()))
                )
        return parts[0] if len(parts) == 1 and r.random() < 0.7 else tuple(parts)

    def anything(self):
        """An argument of whatever type."""
        r = self.rng
        pick = r.random()
        if pick < 0.75:
            return self.tensor()
        if pick < 0.9:
            return r.choice(NUMBERS)
        choices = (self.lengths, lambda: r.choice(WORDS), lambda: r.choice(ODD), lambda: [self.tensor(), self.tensor()])
        return r.choice(choices)()

    def argument(self, name: str, default):
        """Something for the parameter ``name``."""
        r = self.rng
        if r.random() < 0.02:
            return r.choice(ODD)
        if name == "key":
            return self.a_key()
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
        if name == "weight" and len(self.shape) > 1 and r.random() < 0.7:  # a convolution's or a linear layer's
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
            return self.anything()
        return default

    # ---- recipes ---------------------------------------------------------------------------------------------------------
    def size_of(self, letter: str) -> int:
        r = self.rng
        return self.sizes.setdefault(letter, r.choice(SIZES[3:]) if r.random() < 0.9 else r.choice(SIZES))

    def word(self, text: str):
        """The argument that a word of a recipe stands for."""
        if "|" in text:
            return [self.word(part) for part in text.split("|") if part]
        if re.fullmatch(r"(([a-z]|\[\d+\])+)(<[a-z]|[+?])?", text) is None:
            return ast.literal_eval(text)
        body, below, kind = re.fullmatch(r"((?:[a-z]|\[\d+\])+)(?:<([a-z])|([+?]))?", text).groups()
        shape = [int(n) if n else self.size_of(c) for n, c in re.findall(r"\[(\d+)\]|([a-z])", body)]
        if below:
            return self.tensor(shape, taeda.int64, 0, max(self.size_of(below), 1))
        if kind == "?":
            return self.tensor(shape, taeda.bool)
        dtype = self.dtype if self.dtype.is_floating_point or self.rng.random() < 0.3 else taeda.float32
        if kind == "+" and len(shape) > 1 and shape[-1] == shape[-2]:
            x = self.tensor(shape, taeda.float64)
            return (x @ x.mT + 8 * taeda.eye(shape[-1], dtype=taeda.float64)).to(dtype)
        return self.tensor(shape, dtype).abs() if kind == "+" and dtype.is_floating_point else self.tensor(shape, dtype)

    def follow(self, recipe: str) -> None:
        """Arguments that fit together; now and then one of them is replaced."""
        for text in recipe.split():
            name, found, value = text.rpartition("=")
            if found and name.isidentifier():
                self.kwargs[name] = self.word(value)
            else:
                self.args.append(self.word(text))
        if self.rng.random() < 0.3:
            i = self.rng.randrange(len(self.args))
            x = self.args[i]
            if isinstance(x, taeda.Tensor) and self.rng.random() < 0.7:
                change = self.rng.choice((self.tensor, lambda: x.to(self.a_dtype()), lambda: self.tensor(x.shape)))
                self.args[i] = change()
            else:
                self.args[i] = self.argument("", REQUIRED) if self.rng.random() < 0.5 else self.small()

    def fill(self) -> None:
        r = self.rng
        self.differentiate = r.random() < 0.25
        recipes = RECIPES.get(self.name)
        if recipes is not None and r.random() < 0.6:
            self.follow(r.choice(recipes.split("; ")))
            return
        try:
            parameters = list(inspect.signature(self.function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        for i, p in enumerate(parameters):
            if p.kind is p.VAR_KEYWORD or p.name in NOT_GIVEN:
                continue
            if p.kind is p.VAR_POSITIONAL:
                for _ in range(r.randrange(4)):
                    whole = p.name in ("size", "sizes", "dims", "args", "repeats", "shape") and r.random() < 0.9
                    self.args.append(self.small() if whole else self.anything())
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

    # ---- running ---------------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Call, differentiate if that was drawn, and look at every result; some calls run again with dense operands."""
        again = None
        if self.compare:
            again = [dense(x) for x in self.args], {k: dense(v) for k, v in self.kwargs.items()}
        if self.differentiate:
            for x in self.args:
                if isinstance(x, taeda.Tensor) and (x.is_floating_point() or x.is_complex()):
                    x.requires_grad_()
        results = flatten(self.function(*self.args, **self.kwargs))
        if self.differentiate:
            roots = [x for x in results if x.requires_grad and x.grad_fn is not None]
            if roots:
                taeda.autograd.backward(roots, [taeda.ones_like(x) for x in roots])
        for x in results:
            repr(x)
            if x.numel() <= MOST:
                x.detach().clone()
        if again is not None:
            self.expect_same(results, flatten(self.function(*again[0], **again[1])))

    def expect_same(self, results: list, others: list) -> None:
        """Check that results do not depend on the strides of the arguments."""
        for x, y in zip(results, others, strict=True):
            x, y = x.detach(), y.detach()
            if x.dtype.is_floating_point and x.element_size() == 2:
                x, y = x.float(), y.float()
            same = x.shape == y.shape and (
                x.allclose(y, 1e-2 if x.dtype == taeda.float32 else 1e-4, 1e-3, equal_nan=True)
                if x.dtype.is_floating_point or x.dtype.is_complex
                else x.equal(y)
            )
            if not same:
                raise AssertionError(f"another result with dense operands: {x.tolist()} and {y.tolist()}")

    def __str__(self) -> str:
        given = [tell(x) for x in self.args] + [f"{k}={tell(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}({', '.join(given)}){' and its gradient' if self.differentiate else ''}"


def dense(x):
    """``x`` with every tensor in it laid out without gaps, and not part of a graph."""
    if isinstance(x, taeda.Tensor):
        return x.detach().clone(memory_format=taeda.contiguous_format)
    return type(x)(dense(item) for item in x) if type(x) in (list, tuple) else x


def flatten(x) -> list:
    """The tensors in a result."""
    if isinstance(x, taeda.Tensor):
        return [x]
    return [t for item in x for t in flatten(item)] if isinstance(x, (list, tuple)) else []


def tell(x) -> str:
    if isinstance(x, taeda.Tensor):
        return f"{x.dtype.name}{list(x.shape)} strides {list(x.stride())}"
    return f"[{', '.join(map(tell, x))}]" if isinstance(x, (list, tuple)) else repr(x)

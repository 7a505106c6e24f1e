"""Random numbers by counters: each element is a function of the seed, the number of the call, and its index alone.

Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The counter of a block of four
words is its number (64 bits) and that of the call (64 bits), the key is the seed. An element that takes one word, two
or four takes them from block ``i / 4``, ``i / 2`` or ``i``, in their order. So threads need nothing from each other.
These are the kernels of devices that draw for themselves; :mod:`~taeda.kernels.random` has the processor's.
"""

from __future__ import annotations

import math

from . import random
from . import scalar as s
from .build import kernel
from .ir import F32, F64, I64, PTR, TYPES, U32, U64, Function, Type, Value
from .random import _sine_cosine, _stored, _unit32, _unit64, _wide

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)  # increments of the key
_ROUNDS = 10


def _halves(x: Value) -> tuple[Value, Value]:
    """The low and the high word of 64 bits."""
    x = x.bits(U64)
    return x.to(U32), (x >> 32).to(U32)


def _block(f: Function, index: Value, call: Value, seed: Value) -> list[Value]:
    """Block ``index`` of a call: four words."""
    counter, key = [*_halves(index), *_halves(call)], list(_halves(seed))
    for turn in range(_ROUNDS):
        if turn:
            key = [k + step for k, step in zip(key, _STEPS, strict=True)]
        (low0, high0), (low1, high1) = (
            _halves(counter[i].to(U64) * factor) for i, factor in zip((0, 2), _MULTIPLIERS, strict=True)
        )
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0]
    return counter


class _Words:
    """Draws the words of elements; ``arg[2]`` is the seed and ``arg[3]`` the number of the call.

    A graph that runs again draws other numbers: if ``arg[3]`` is negative, ``arg[2]`` is the address of the seed and of
    the first call's number, and the lower bits of ``arg[3]`` count from there.
    """

    def __init__(self, f: Function, saved: Value | None = None):
        """``saved``: where :func:`state` has put the two, in place of the arguments."""
        self.f = f
        if saved is not None:
            self.seed, self.call = f.load(saved, I64), f.load(f.offset(saved, 8), I64)
            return
        with f.while_([f.size(2), f.size(3)]) as L:  # once
            seed, call = L.carry
            L.test(call < 0)
            state = f.emit(f"inttoptr {seed.typed} to ptr", PTR)
            L.carry = f.load(state, I64), f.load(f.offset(state, 8), I64) + (call & ((1 << 63) - 1))
        self.seed, self.call = L.carry

    def block(self, index: Value) -> list[Value]:
        return _block(self.f, index, self.call, self.seed)

    def __call__(self, i: Value, source: Type, width: int = 1) -> Value:
        """The word of element ``i``, or its pair of words, the first in the lower half."""
        if width != 1:
            raise NotImplementedError("numbers by counters are drawn one element at a time")
        f = self.f
        if source is U32:
            a, b, c, d = self.block(i >> 2)
            odd, upper = (i & 1) != 0, (i & 2) != 0
            return f.select(upper, f.select(odd, d, c), f.select(odd, b, a))
        a, b, c, d = self.block(i >> 1)
        odd = (i & 1) != 0
        low, high = f.select(odd, c, a), f.select(odd, d, b)
        return low.to(U64) | (high.to(U64) << 32)


def _below(words: Value, limit: Value) -> Value:
    """Whether the uniform float64 of a pair of words is below a chance, whose :func:`_limit` is given."""
    return (_wide(words) & ((1 << 53) - 1)).bits(I64) < limit


def _limit(f: Function, chance: Value) -> Value:
    return f.unary("ceil", chance * 2.0**53).to(I64)


@kernel
def state(f: Function) -> None:
    """``ptr = [out]``, ``arg = [0, 0, seed, call]``: the seed and the number of the call, for later kernels."""
    words = _Words(f)
    for i, x in enumerate((words.seed, words.call)):
        f.store(f.offset(f.data(0), 8 * i), x)


@kernel
def fill(f: Function, name: str, dtype: str) -> None:
    """``ptr = [out]``, ``arg = [a, b, seed, call]``: a distribution of :mod:`~taeda.kernels.random` with its arguments.

    "normal" and "log_normal" take the mean and the standard deviation (Box & Muller 1958, the cosine alone).
    """
    words = _Words(f)
    if name == "bernoulli":
        _bernoulli(f, words, TYPES[dtype])
    elif name in ("normal", "log_normal"):
        _normal(f, words, TYPES[dtype], name == "log_normal")
    else:
        f.prologue = words
        getattr(random, name).emit(f, dtype)


def _bernoulli(f: Function, words: _Words, t: Type) -> None:
    limit, out = _limit(f, f.scalar(0, F64)), f.data(0)
    one = f.scalar(1, F64).to(t) if t.kind == "f" else f.const(TYPES["uint8"] if t.bytes == 1 else t, 1)
    if t.kind == "f" and t.bytes < 4:
        one = one.to(F32)
    with f.loop(f.begin, f.end) as L:
        x = f.select(_below(words(L.index, U64), limit), one, f.const(one.type, 0))
        f.store(f.offset(out, L.index * t.bytes), _stored(x, t))


def _normal(f: Function, words: _Words, t: Type, exponent: bool) -> None:
    work = F64 if t is F64 else F32
    mean, std, out = f.scalar(0, work), f.scalar(1, work), f.data(0)
    with f.loop(f.begin, f.end) as L:
        if t is F64:
            a, b, c, d = (w.to(U64) for w in words.block(L.index))
            first, second = _unit64(a | (b << 32)), _unit64(c | (d << 32))
        else:
            first, second = (_unit32(w) for w in _halves(words(L.index, U64)))
        radius = f.unary("sqrt", s.log(1.0 - first) * -2.0)
        _, cosine = _sine_cosine(f, second * f.const(work, 2 * math.pi))
        x = f.fma(radius * cosine, std, mean)
        f.store(f.offset(out, L.index * t.bytes), (s.exp(x) if exponent else x).to(t))


@kernel
def dropout(f: Function, dtype: str) -> None:
    """``ptr = [out, mask, x]``, ``arg = [p, value, seed, call]``: ``x * value`` with probability ``p``, else ``x * 0``;
    the choice goes to a bool mask."""
    t = TYPES[dtype]
    work = F64 if t is F64 else F32
    words, limit, value = _Words(f), _limit(f, f.scalar(0, F64)), f.scalar(1, F64).to(t).to(work)
    out, mask, source = (f.data(i) for i in range(3))
    with f.loop(f.begin, f.end) as L:
        chosen = _below(words(L.index, U64), limit)
        x = f.load(f.offset(source, L.index * t.bytes), t).to(work)
        f.store(f.offset(out, L.index * t.bytes), (x * f.select(chosen, value, f.const(work, 0))).to(t))
        f.store(f.offset(mask, L.index), chosen)

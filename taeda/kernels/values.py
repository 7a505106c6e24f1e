"""Typed SSA values: scalars and vectors, whose arithmetic appends LLVM instructions to a function (:mod:`.ir`)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ir import Function


@dataclass(frozen=True)
class Type:
    """A scalar type. ``kind`` is ``b`` (bool), ``i`` (signed), ``u`` (unsigned), ``f`` (float) or ``p`` (pointer)."""

    name: str
    llvm: str
    bits: int
    kind: str

    @property
    def bytes(self) -> int:
        """Size in memory; a bool takes one byte."""
        return max(self.bits // 8, 1)

    def __repr__(self) -> str:
        return self.name


BOOL = Type("bool", "i1", 1, "b")
I8, I16, I32, I64 = (Type(f"int{n}", f"i{n}", n, "i") for n in (8, 16, 32, 64))
U8, U16, U32, U64 = (Type(f"uint{n}", f"i{n}", n, "u") for n in (8, 16, 32, 64))
F16 = Type("float16", "half", 16, "f")
BF16 = Type("bfloat16", "bfloat", 16, "f")
F32 = Type("float32", "float", 32, "f")
F64 = Type("float64", "double", 64, "f")
PTR = Type("ptr", "ptr", 64, "p")


class _Types(dict[str, Type]):
    def __missing__(self, name: str) -> Type:
        raise NotImplementedError(
            f"not implemented for {name}: no kernel computes in it; convert with .to(dtype) first"
        )


#: Scalar type by taeda dtype name. Complex dtypes are pairs of these (see :mod:`taeda.kernels.pointwise`); float8 is
#: only stored.
TYPES = _Types((t.name, t) for t in (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64))

Number = int | float | bool


def llvm_type(t: Type, lanes: int) -> str:
    """The LLVM spelling of ``lanes`` values of type ``t``."""
    return t.llvm if lanes == 1 else f"<{lanes} x {t.llvm}>"


def _float_text(t: Type, x: float) -> str:
    if t is F64:
        return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
    if t is F32:
        try:
            x = struct.unpack("<f", struct.pack("<f", x))[0]
        except OverflowError:
            x = math.copysign(math.inf, x)
        return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
    if t is F16:
        try:
            bits = struct.unpack("<H", struct.pack("<e", x))[0]
        except OverflowError:
            bits = 0x7C00 if x > 0 else 0xFC00
        return f"0xH{bits:04X}"
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits = 0x7FC0 if math.isnan(x) else (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return f"0xR{bits:04X}"


def constant_text(t: Type, lanes: int, x: Number) -> str:
    """The LLVM text of the constant ``x``; out-of-range integers wrap."""
    if t.kind == "f":
        text = _float_text(t, float(x))
    elif t.kind == "b":
        text = "true" if x else "false"
    elif t.kind == "p":
        text = "null"
    else:
        x = int(x) & ((1 << t.bits) - 1)
        text = str(x - (1 << t.bits) if x >> (t.bits - 1) else x)
    return text if lanes == 1 else f"splat ({t.llvm} {text})"


_ARITH = {  # operator: (float, signed, unsigned, bool)
    "add": ("fadd", "add", "add", "or"),
    "sub": ("fsub", "sub", "sub", "xor"),
    "mul": ("fmul", "mul", "mul", "and"),
    "div": ("fdiv", "sdiv", "udiv", None),
    "rem": ("frem", "srem", "urem", None),
    "and": (None, "and", "and", "and"),
    "or": (None, "or", "or", "or"),
    "xor": (None, "xor", "xor", "xor"),
    "shl": (None, "shl", "shl", None),
    "shr": (None, "ashr", "lshr", None),
}
_KIND = {"f": 0, "i": 1, "u": 2, "b": 3}
_COMPARE = {  # unordered only for "ne": NaN != NaN is true, every other comparison with NaN is false
    "eq": ("oeq", "eq", "eq"),
    "ne": ("une", "ne", "ne"),
    "lt": ("olt", "slt", "ult"),
    "le": ("ole", "sle", "ule"),
    "gt": ("ogt", "sgt", "ugt"),
    "ge": ("oge", "sge", "uge"),
}


def _operator(op: str, swap: bool = False) -> Callable[[Any, Any], Value]:
    return lambda self, other: self._binary(op, other, swap)


def _comparison(op: str) -> Callable[[Any, Any], Value]:
    return lambda self, other: self._compare(op, other)


class Value:
    """One SSA value: ``lanes`` copies of a scalar ``type``. Operators append instructions to the function ``fn``.

    A Python number on either side becomes a constant of the other's type; a scalar with a vector is broadcast. Types
    are otherwise never converted implicitly: use :meth:`to`.
    """

    __slots__ = ("fn", "lanes", "text", "type")

    def __init__(self, fn: Function, t: Type, lanes: int, text: str):
        self.fn, self.type, self.lanes, self.text = fn, t, lanes, text

    def __repr__(self) -> str:
        return f"{self.typed}"

    @property
    def llvm(self) -> str:
        return llvm_type(self.type, self.lanes)

    @property
    def typed(self) -> str:
        """The operand with its type, as LLVM writes arguments."""
        return f"{self.llvm} {self.text}"

    # ---- arithmetic -------------------------------------------------------------------------------------------------
    def _pair(self, other: Value | Number) -> tuple[Value, Value]:
        if not isinstance(other, Value):
            return self, self.fn.const(self.type, other, self.lanes)
        if other.type is not self.type:
            raise TypeError(f"operands have types {self.type} and {other.type}; convert one with .to()")
        if other.lanes == self.lanes:
            return self, other
        if self.lanes == 1:
            return self.fn.splat(self, other.lanes), other
        return self, self.fn.splat(other, self.lanes)

    def _binary(self, op: str, other: Value | Number, swap: bool = False) -> Value:
        a, b = self._pair(other)
        if swap:
            a, b = b, a
        instruction = _ARITH[op][_KIND[a.type.kind]]
        if instruction is None:
            raise TypeError(f"{op} is not defined for {a.type}")
        return self.fn.emit(f"{instruction} {a.llvm} {a.text}, {b.text}", a.type, a.lanes)

    def _compare(self, op: str, other: Value | Number) -> Value:
        a, b = self._pair(other)
        kind = _KIND[a.type.kind] if a.type.kind != "p" else 2
        word, predicate = ("fcmp", _COMPARE[op][0]) if kind == 0 else ("icmp", _COMPARE[op][1 if kind == 1 else 2])
        return self.fn.emit(f"{word} {predicate} {a.llvm} {a.text}, {b.text}", BOOL, a.lanes)

    __add__, __radd__ = _operator("add"), _operator("add", swap=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", swap=True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", swap=True)
    __truediv__, __rtruediv__ = _operator("div"), _operator("div", swap=True)
    __mod__ = _operator("rem")  # C's remainder: the sign of the dividend
    __and__ = __rand__ = _operator("and")
    __or__ = __ror__ = _operator("or")
    __xor__ = __rxor__ = _operator("xor")
    __lshift__ = _operator("shl")
    __rshift__ = _operator("shr")  # arithmetic for signed types, logical for unsigned ones

    def __invert__(self):
        return self ^ (True if self.type.kind == "b" else -1)

    def __neg__(self):
        if self.type.kind == "f":
            return self.fn.emit(f"fneg {self.llvm} {self.text}", self.type, self.lanes)
        return self.fn.const(self.type, 0, self.lanes) - self

    __lt__, __le__, __gt__, __ge__ = map(_comparison, ("lt", "le", "gt", "ge"))
    __eq__, __ne__ = _comparison("eq"), _comparison("ne")  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self):
        raise TypeError("a kernel Value has no truth at build time; use f.select, f.when or f.while_")

    # ---- conversion -------------------------------------------------------------------------------------------------
    def to(self, t: Type) -> Value:
        """Convert numerically, as C does (float to integer truncates; anything to bool is ``!= 0``)."""
        s, f = self.type, self.fn
        if t is s:
            return self
        if t.kind == "b":
            return self != 0
        if {s, t} & {F16, BF16} and s is not F32 and t is not F32:
            return self.to(F32).to(t)  # as PyTorch: through float32
        if s is BF16:
            return (self.bits(U16).to(U32) << 16).bits(F32)
        if t is BF16:
            return (self._rounded_to_half() >> 16).to(U16).bits(BF16)
        target = llvm_type(t, self.lanes)
        if s.kind == "f" and t.kind == "f":
            word = "fpext" if t.bits > s.bits else "fptrunc"
        elif s.kind == "f":
            word = "fptosi" if t.kind == "i" else "fptoui"
        elif t.kind == "f":
            word = "sitofp" if s.kind == "i" else "uitofp"
        elif t.bits == s.bits:
            return Value(f, t, self.lanes, self.text)
        elif t.bits < s.bits:
            word = "trunc"
        else:
            word = "sext" if s.kind == "i" else "zext"
        return f.emit(f"{word} {self.typed} to {target}", t, self.lanes)

    def _rounded_to_half(self) -> Value:
        """Words whose upper halves are this float32 as bfloat16."""
        bits, f = self.bits(U32), self.fn
        if f.vector_bytes >= 64:  # a mask and a select are faster than a shift and a sum: 0.5 to 1.4 cycles of 18
            up = f.select((bits & 0x10000) != 0, f.const(U32, 0x8000, self.lanes), 0x7FFF)
        else:
            up = ((bits >> 16) & 1) + 0x7FFF
        rounded = bits + up
        return self.fn.select(self != self, self.fn.const(U32, 0x7FC00000, self.lanes), rounded)

    def to_bf16_with(self, other: Value) -> Value:
        """Two vectors of float32 as one of bfloat16, of twice the lanes."""
        lanes, f = self.lanes, self.fn
        halves = [f.emit(f"bitcast {w.typed} to {llvm_type(U16, 2 * lanes)}", U16, 2 * lanes)
                  for w in (self._rounded_to_half(), other._rounded_to_half())]  # fmt: skip
        return halves[0].shuffle(range(1, 4 * lanes, 2), halves[1]).bits(BF16)

    def bits(self, t: Type) -> Value:
        """The same bits read as ``t`` (of equal width)."""
        if t is self.type:
            return self
        if t.llvm == self.type.llvm:
            return Value(self.fn, t, self.lanes, self.text)
        return self.fn.emit(f"bitcast {self.typed} to {llvm_type(t, self.lanes)}", t, self.lanes)

    # ---- lanes ------------------------------------------------------------------------------------------------------
    def lane(self, i: int | Value) -> Value:
        """One lane as a scalar."""
        if self.lanes == 1:
            return self
        index = i.typed if isinstance(i, Value) else f"i64 {i}"
        return self.fn.emit(f"extractelement {self.typed}, {index}", self.type, 1)

    def with_lane(self, i: int | Value, x: Value) -> Value:
        """A copy with lane ``i`` replaced by the scalar ``x``."""
        if self.lanes == 1:
            return x
        index = i.typed if isinstance(i, Value) else f"i64 {i}"
        return self.fn.emit(f"insertelement {self.typed}, {x.typed}, {index}", self.type, self.lanes)

    def _shuffled_scalars(self, mask: Sequence[int], other: Value | None) -> Value:
        """:meth:`shuffle` of scalars, which LLVM does not have."""
        picked = [self if m <= 0 or other is None else other for m in mask]
        if len(picked) == 1:
            return picked[0]
        result = self.fn.splat(picked[0], len(picked))
        for i, x in enumerate(picked):
            result = result.with_lane(i, x)
        return result

    def shuffle(self, mask: Sequence[int], other: Value | None = None) -> Value:
        """Lanes picked by ``mask`` from ``self`` and then ``other``; -1 leaves a lane undefined."""
        if self.lanes == 1:
            return self._shuffled_scalars(mask, other)
        if len(mask) == 1:
            return (
                self.lane(max(mask[0], 0))
                if mask[0] < self.lanes or other is None
                else other.lane(mask[0] - self.lanes)
            )
        second = other.text if other is not None else "poison"
        picks = ", ".join("i32 poison" if m < 0 else f"i32 {m}" for m in mask)
        text = f"shufflevector {self.typed}, {self.llvm} {second}, <{len(mask)} x i32> <{picks}>"
        result = self.fn.emit(text, self.type, len(mask))
        return result.lane(0) if len(mask) == 1 else result

    def slice(self, start: int, lanes: int) -> Value:
        """``lanes`` consecutive lanes from ``start``."""
        return self.lane(start) if lanes == 1 else self.shuffle(range(start, start + lanes))

    def reduce(self, combine) -> Value:
        """Combine all lanes to a scalar by halving: a fixed tree, so the result does not depend on the target."""
        v = self
        while v.lanes > 1:
            half = v.lanes // 2
            v = combine(v.slice(0, half), v.slice(half, half))
        return v

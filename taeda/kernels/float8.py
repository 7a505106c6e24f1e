"""The five float8 formats: to float32 where a kernel loads them, from float32 where it stores them.

E4M3 and E5M2 are those of Micikevicius et al. 2022 ("FP8 formats for deep learning"), the ``fnuz`` ones of Noune et al.
2022 ("8-bit numerical formats for deep neural networks"). E8M0 is the scale of the OCP Microscaling specification 1.0.
No arithmetic is done in them. Rounding is to nearest, ties to even. As in PyTorch, larger numbers than the largest
become that number (``e4m3fn``), infinity (``e5m2``) or NaN (``fnuz``, which have neither infinities nor a negative
zero).
"""

from __future__ import annotations

from dataclasses import dataclass

from .ir import F32, U8, U32, Value


@dataclass(frozen=True)
class Format:
    """Bits of the mantissa, bias of the exponent, and where finite numbers end."""

    mantissa: int
    bias: int
    largest: int  # code of the largest finite number
    infinite: bool = False  # the code after `largest` is infinity, those after that NaN
    unsigned_zero: bool = False  # "fnuz": the code of a negative zero is the only NaN


FORMATS = {
    "float8_e4m3fn": Format(3, 7, 0x7E),
    "float8_e5m2": Format(2, 15, 0x7B, infinite=True),
    "float8_e4m3fnuz": Format(3, 8, 0x7F, unsigned_zero=True),
    "float8_e5m2fnuz": Format(2, 16, 0x7F, unsigned_zero=True),
}
SCALE = "float8_e8m0fnu"  # a power of two: only the exponent field of a float32

#: Dtypes that are stored as float8.
NAMES = (*FORMATS, SCALE)

_NAN = 0x7FC00000
_INFINITY = 0x7F800000


def decode(x: Value, dtype: str) -> Value:
    """The codes ``x`` (uint8) of format ``dtype`` as float32; exact."""
    f, code = x.fn, x.to(U32)
    if dtype == SCALE:
        bits = f.select(code == 0, f.const(U32, 1 << 22, x.lanes), code << 23)
        return f.select(code == 0xFF, f.const(U32, _NAN, x.lanes), bits).bits(F32)
    form = FORMATS[dtype]
    sign, rest = (code & 0x80) << 24, code & 0x7F
    shift = 23 - form.mantissa
    # subnormal numbers are converted as integers, so that no intermediate float32 is subnormal (and maybe flushed)
    small = (rest.to(F32) * 2.0 ** (1 - form.bias - form.mantissa)).bits(U32)
    bits = f.select(rest < 1 << form.mantissa, small, (rest << shift) + ((127 - form.bias) << 23))
    if form.unsigned_zero:
        return f.select(code == 0x80, f.const(U32, _NAN, x.lanes), bits | sign).bits(F32)
    beyond = f.const(U32, _NAN, x.lanes)
    if form.infinite:
        beyond = f.select(rest == form.largest + 1, f.const(U32, _INFINITY, x.lanes), beyond)
    return (f.select(rest > form.largest, beyond, bits) | sign).bits(F32)


def encode(x: Value, dtype: str) -> Value:
    """The codes (uint8) nearest to the float32 ``x`` in format ``dtype``."""
    f, bits = x.fn, x.bits(U32)
    rest = bits & 0x7FFFFFFF
    if dtype == SCALE:
        exponent, below = rest >> 23, rest & 0x7FFFFF
        # ties go up, but not from a subnormal number: 2**-127 and less is encoded as 2**-127
        up = (below > 0x400000) | ((below == 0x400000) & (exponent > 0))
        return f.select(exponent == 0xFF, exponent, exponent + up.to(U32)).to(U8)
    form = FORMATS[dtype]
    sign = (bits >> 24) & 0x80
    shift = 23 - form.mantissa
    moved = rest - ((127 - form.bias) << 23)
    large = (moved + ((1 << (shift - 1)) - 1) + ((moved >> shift) & 1)) >> shift
    # adding 2**23 times the smallest number rounds to multiples of it: the low bits of the sum are the subnormal code
    magic = f.const(F32, 2.0 ** (24 - form.bias - form.mantissa), x.lanes)
    small = (rest.bits(F32) + magic).bits(U32) - magic.bits(U32)
    code = f.select(rest < (128 - form.bias) << 23, small, large)
    if form.unsigned_zero:
        signed = f.select(code == 0, code, code | sign)
        return f.select((code > form.largest) | (rest > _INFINITY), f.const(U32, 0x80, x.lanes), signed).to(U8)
    code = f.select(code > form.largest, f.const(U32, form.largest + form.infinite, x.lanes), code)
    return (f.select(rest > _INFINITY, f.const(U32, 0x7F, x.lanes), code) | sign).to(U8)

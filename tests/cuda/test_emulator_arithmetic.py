"""What each instruction of PTX gives on the emulated device, against arithmetic with integers and fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from emulator import Refused, faults, reset
from emulator.calls import Calls

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
FLOATS = {"f16": (11, -14, 16), "bf16": (8, -126, 16), "f32": (24, -126, 32), "f64": (53, -1022, 64)}
NANS = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


def size(t):
    return int(t.lstrip("busfx"))


def signed(x, n):
    return x - (1 << n) if x >> (n - 1) & 1 else x


def number(bits, t):
    """A value of a type from its bits: an int, or for floats a Fraction, ±inf, or None for NaN; zeros keep the sign."""
    if t not in FLOATS:
        n = size(t)
        bits &= (1 << n) - 1
        return signed(bits, n) if t[0] == "s" else bits
    p, low, n = FLOATS[t]
    negative, exponent, part = bits >> (n - 1) & 1, bits >> (p - 1) & ((1 << (n - p)) - 1), bits & ((1 << (p - 1)) - 1)
    if exponent == (1 << (n - p)) - 1:
        return None if part else (-math.inf if negative else math.inf)
    value = Fraction(part + ((1 << (p - 1)) if exponent else 0)) * Fraction(2) ** (max(exponent, 1) - 1 + low - (p - 1))
    return (-value if negative else value) if value else (-0.0 if negative else 0.0)


def coded(value, t, mode="rn"):
    """The bits of ``value`` rounded to a type."""
    if t not in FLOATS:
        return int(value) & ((1 << size(t)) - 1)
    p, low, n = FLOATS[t]
    top = ((1 << (n - p)) - 1) << (p - 1)
    if value is None:
        return NANS.get(t, 0x7FF8 << 48)
    negative = sign(value) < 0
    high = (1 << (n - 1)) if negative else 0
    if value == 0:
        return high
    if not isinstance(value, Fraction) and math.isinf(value):
        return high | top
    a = abs(value)
    e = max(math.floor(math.log2(a.numerator) - math.log2(a.denominator)) - 1, low)
    while a >= Fraction(2) ** (e + 1):
        e += 1
    unit = Fraction(2) ** (e - (p - 1))
    whole, rest = divmod(a, unit)
    more = {
        "rn": rest * 2 > unit or (rest * 2 == unit and whole & 1), "rz": False, "rm": negative and rest > 0,
        "rp": not negative and rest > 0,
    }[mode]  # fmt: skip
    whole += more
    bits = whole if e == low else ((e - low) << (p - 1)) + whole
    if bits >= top:
        toward = mode == "rz" or (mode == "rm" and not negative) or (mode == "rp" and negative)
        bits = top - 1 if toward else top
    return high | int(bits)


def sign(x):
    return -1 if x < 0 or (isinstance(x, float) and math.copysign(1, x) < 0) else 1


def is_inf(x):
    return isinstance(x, float) and math.isinf(x)


def exact(kind):
    """Sum, product and so on of floats as fractions, with IEEE's rules for infinities, NaN and zeros."""

    def add(a, b):
        if a is None or b is None or (is_inf(a) and is_inf(b) and a != b):
            return None
        if is_inf(a) or is_inf(b):
            return a if is_inf(a) else b
        total = Fraction(a) + Fraction(b)
        return total if total else (-0.0 if sign(a) < 0 and sign(b) < 0 else 0.0)

    def mul(a, b):
        if a is None or b is None or (is_inf(a) and b == 0) or (is_inf(b) and a == 0):
            return None
        s = sign(a) * sign(b)
        if is_inf(a) or is_inf(b):
            return s * math.inf
        return Fraction(a) * Fraction(b) or s * 0.0

    def div(a, b):
        if a is None or b is None or (is_inf(a) and is_inf(b)) or (a == 0 and b == 0):
            return None
        s = sign(a) * sign(b)
        if is_inf(a) or b == 0:
            return s * math.inf
        return s * 0.0 if is_inf(b) or a == 0 else Fraction(a) / Fraction(b)

    return {
        "add": add, "sub": lambda a, b: add(a, None if b is None else -b), "mul": mul, "div": div,
        "rcp": lambda a: div(Fraction(1), a), "fma": lambda a, b, c: add(mul(a, b), c),
    }[kind]  # fmt: skip


def root(t):
    def of(a):
        if a is None or a == 0 or a == math.inf:
            return a
        if a < 0:
            return None
        p = 2 * FLOATS[t][0] + 8  # enough bits that a further rounding is the right one
        shift = max(0, p - (a.numerator.bit_length() - a.denominator.bit_length()) // 2)
        n = a.numerator << (2 * shift)
        r = math.isqrt(n // a.denominator)
        return Fraction(r, 1 << shift) + (Fraction(1, 1 << (shift + 2)) if r * r * a.denominator != n else 0)

    return of


def smaller(t, pick):
    def of(a, b):
        if a is None or b is None:
            return a if b is None else b
        if a == b == 0:
            return pick(sign(a), sign(b)) * 0.0
        return pick(a, b)

    return of


def trunc_div(a, b, n, t):
    if b == 0:
        return -1
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def extract(n, is_signed):
    def of(a, p, k):
        p, k = p & 255, k & 255
        v = number(a & ((1 << n) - 1), f"{'s' if is_signed else 'u'}{n}") >> p if p < n or is_signed else 0
        if k == 0:
            return 0
        if is_signed:
            last = min(p + k - 1, n - 1)
            sign = a >> last & 1
            part = v & ((1 << min(k, n)) - 1)
            return part | (-(1 << min(k, n)) if sign else 0)
        return v & ((1 << min(k, n)) - 1)

    return of


def insert(n):
    def of(a, b, p, k):
        p, k = p & 255, k & 255
        mask = ((1 << min(k, n)) - 1) << p & ((1 << n) - 1)
        return (b & ~mask) | (a << p & mask)

    return of


def permute(a, b, s):
    data = (a | b << 32).to_bytes(8, "little")
    out = 0
    for k in range(4):
        nibble = s >> 4 * k & 15
        byte = data[nibble & 7]
        out |= (255 * (byte >> 7) if nibble & 8 else byte) << 8 * k
    return out


def table(lut):
    def of(a, b, c):
        return sum(((lut >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1))) & 1) << i for i in range(32))

    return of


def integer_of(t, whole, source):
    """A float as an integer: rounded, then cut to what the type holds."""

    def of(x):
        n = size(t)
        if x is None:
            return 0 if source != "f64" and n < 64 else 1 << (n - 1)
        low, high = (-(1 << (n - 1)), (1 << (n - 1)) - 1) if t[0] == "s" else (0, (1 << n) - 1)
        if is_inf(x):
            return high if x > 0 else low
        return min(max(whole(x), low), high)

    return of


def at_most(k, n):
    return lambda a, b: (a << b if k == "l" else a >> b) if b < n else (-1 if a < 0 else 0) if k == "r" else 0


WHOLE = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
#: The instruction, the types of its operands, that of its result, what it is to give.
CASES = [
    *((f"{o}.{t}", (t, t), t, f) for t in ("s32", "u64", "s16", "u32") for o, f in (
        ("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul.lo", lambda a, b: a * b), ("min", min), ("max", max))),
    *((f"mul.hi.{t}", (t, t), t, lambda a, b, n=n: a * b >> n)
      for t, n in (("s32", 32), ("u32", 32), ("s64", 64), ("u64", 64), ("u16", 16))),
    *((f"mul.wide.{t}", (t, t), f"{t[0]}{2 * size(t)}", lambda a, b: a * b) for t in ("s32", "u32", "s16", "u16")),
    *((f"mad.lo.{t}", (t, t, t), t, lambda a, b, c: a * b + c) for t in ("s32", "u64")),
    ("mad.hi.s32", ("s32",) * 3, "s32", lambda a, b, c: (a * b >> 32) + c),
    ("mad.wide.s32", ("s32", "s32", "s64"), "s64", lambda a, b, c: a * b + c),
    *((f"div.{t}", (t, t), t, lambda a, b, t=t: trunc_div(a, b, size(t), t)) for t in ("s32", "u32", "s64", "u64")),
    *((f"rem.{t}", (t, t), t, lambda a, b, t=t: a - b * trunc_div(a, b, size(t), t) if b else a)
      for t in ("s32", "u32", "s64", "u64")),
    *((f"{o}.{t}", (t, t), t, f) for t in ("b16", "b32", "b64") for o, f in (
        ("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b))),
    *((f"not.{t}", (t,), t, lambda a: ~a) for t in ("b32", "b64")),
    *((f"neg.{t}", (t,), t, lambda a: -a) for t in ("s32", "s64")), *((f"abs.{t}", (t,), t, abs) for t in ("s32", "s64")),
    *((f"shl.{t}", (t, "n32"), t, at_most("l", size(t))) for t in ("b16", "b32", "b64")),
    *((f"shr.{t}", (t, "n32"), t, at_most("r", size(t))) for t in ("u32", "s32", "u64", "s64", "s16")),
    ("shf.l.wrap.b32", ("b32", "b32", "n32"), "b32", lambda a, b, n: (b << 32 | a) << (n & 31) >> 32),
    ("shf.r.wrap.b32", ("b32", "b32", "n32"), "b32", lambda a, b, n: (b << 32 | a) >> (n & 31)),
    ("shf.l.clamp.b32", ("b32", "b32", "n32"), "b32", lambda a, b, n: (b << 32 | a) << min(n, 32) >> 32),
    ("shf.r.clamp.b32", ("b32", "b32", "n32"), "b32", lambda a, b, n: (b << 32 | a) >> min(n, 32)),
    *((f"bfe.{t}", (f"b{size(t)}", "n32", "n32"), t, extract(size(t), t[0] == "s")) for t in ("u32", "s32", "u64", "s64")),
    *((f"bfi.{t}", (t, t, "n32", "n32"), t, insert(size(t))) for t in ("b32", "b64")),
    *((f"popc.{t}", (t,), "u32", lambda a: a.bit_count()) for t in ("b32", "b64")),
    *((f"clz.{t}", (t,), "u32", lambda a, n=n: n - a.bit_length()) for t, n in (("b32", 32), ("b64", 64))),
    *((f"brev.{t}", (t,), t, lambda a, n=n: int(f"{a:0{n}b}"[::-1], 2)) for t, n in (("b32", 32), ("b64", 64))),
    ("bfind.u32", ("u32",), "u32", lambda a: a.bit_length() - 1),
    ("bfind.s64", ("s64",), "u32", lambda a: (~a if a < 0 else a).bit_length() - 1),
    ("bfind.shiftamt.u32", ("u32",), "u32", lambda a: 32 - a.bit_length() if a else -1),
    ("prmt.b32", ("b32", "b32", "b32"), "b32", permute),
    ("sad.s32", ("s32", "s32", "s32"), "s32", lambda a, b, c: abs(a - b) + c),
    ("cnot.b32", ("b32",), "b32", lambda a: not a),
    ("slct.b32.s32", ("b32", "b32", "s32"), "b32", lambda a, b, c: a if c >= 0 else b),
    ("min.u16x2", ("b32", "b32"), "b32", lambda a, b: min(a & 65535, b & 65535) | min(a >> 16, b >> 16) << 16),
    *((f"cvt.{d}.{s}", (s,), d, lambda a: a) for d, s in (
        ("s64", "s32"), ("u64", "u32"), ("u32", "u64"), ("s32", "s16"), ("u16", "u32"), ("s64", "s16"), ("u32", "u16"))),
    *((f"{o}.rn.{t}", (t, t), t, exact(o)) for t in ("f32", "f64") for o in ("add", "sub", "mul", "div")),
    *((f"{o}.rn.f16", ("f16", "f16"), "f16", exact(o)) for o in ("add", "sub", "mul")),
    *((f"{o}.rn.bf16", ("bf16", "bf16"), "bf16", exact(o)) for o in ("add", "sub", "mul")),
    *((f"fma.rn.{t}", (t, t, t), t, exact("fma")) for t in ("f32", "f64", "f16", "bf16")),
    *((f"rcp.rn.{t}", (t,), t, exact("rcp")) for t in ("f32", "f64")),
    *((f"sqrt.rn.{t}", (t,), t, root(t)) for t in ("f32", "f64")),
    *((f"{o}.{t}", (t, t), t, smaller(t, f)) for t in ("f32", "f64") for o, f in (("min", min), ("max", max))),
    *((f"{o}.NaN.f32", ("f32", "f32"), "f32", lambda a, b, f=f: None if a is None or b is None else smaller("f32", f)(a, b))
      for o, f in (("min", min), ("max", max))),
    *((f"neg.{t}", (t,), t, lambda a: None if a is None else -a) for t in ("f32", "f64")),
    *((f"copysign.{t}", (t, t), t, lambda a, b: abs(b) * sign(a)) for t in ("f32", "f64")),
    *((f"cvt.{m}.{d}.f64", ("f64",), d, lambda a: a, m) for d in ("f32", "f16") for m in ("rn", "rz", "rm", "rp")),
    *((f"cvt.{m}.f16.f32", ("f32",), "f16", lambda a: a, m) for m in ("rn", "rz")),
    ("cvt.rn.bf16.f32", ("f32",), "bf16", lambda a: a),
    *((f"cvt.{d}.{s}", (s,), d, lambda a: a) for d, s in (("f64", "f32"), ("f32", "f16"), ("f64", "f16"), ("f32", "bf16"))),
    *((f"cvt.rn.{d}.{s}", (s,), d, lambda a: Fraction(a) or 0.0) for d in ("f32", "f64") for s in ("s32", "u32", "s64", "u64")),
    ("cvt.rn.f16.s32", ("s32",), "f16", lambda a: Fraction(a) or 0.0),
    *((f"cvt.{m}.{d}.{s}", (s,), d, integer_of(d, f, s)) for m, f in WHOLE.items()
      for d, s in (("s32", "f32"), ("u32", "f32"), ("s64", "f32"), ("s32", "f64"), ("u64", "f64"), ("s16", "f32"))),
    *((f"cvt.{m}.{t}.{t}", (t,), t, lambda a, f=f: a if a is None or is_inf(a) else Fraction(f(a)) or sign(a) * 0.0)
      for m, f in WHOLE.items() for t in ("f32", "f64")),
]  # fmt: skip
EDGES = {
    "f16": [0, 0x8000, 1, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x0400, 0x3C01, 0x5800],
    "bf16": [0, 0x8000, 1, 0x3F80, 0xBF80, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0x80, 0x3F81],
    "f32": [0, 0x80000000, 1, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00800000, 0x3F800001,
            0x477FF000, 0x477FEFFF, 0x33000000, 0x33000001, 0x3F000000, 0x40200000, 0x4F000000, 0xCF000000, 0x4B000001, 0xBF000000],
    "f64": [0, 1 << 63, 1, 0x3FF0000000000000, 0xBFF0000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000,
            0x7FF8000000000000, 0x3FF0000000000001, 0x3FF0000010000000, 0x3FF0000010000001, 0x3FF0020000000000, 0x40EFFE0000000000,
            0x3FE0000000000000, 0x4004000000000000, 0x41DFFFFFFFE00000, 0x36A0000000000000, 0x47EFFFFFF0000000, 0xBFE0000000000000],
    "n32": [0, 1, 5, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 1 << 31],
}  # fmt: skip
SAMPLES = 192
PARTS = 4  # modules


def inputs(types, rng):
    """Bits of operands: all pairs of the edges, as far as there is room, then chance."""
    columns = []
    for t in types:
        n = 32 if t == "n32" else FLOATS[t][2] if t in FLOATS else size(t)
        edges = EDGES.get(t) or [0, 1, (1 << n) - 1, 1 << (n - 1), (1 << (n - 1)) - 1, 2, 3, 0x7F]
        columns.append((n, edges))
    rows = list(itertools.product(*(e for _, e in columns)))
    rng.shuffle(rows)
    rows = [tuple(map(int, row)) for row in rows[: SAMPLES // 2]]
    while len(rows) < SAMPLES:
        row = []
        for (n, edges), t in zip(columns, types, strict=True):
            x = int(rng.integers(0, 1 << 63)) << 1 & ((1 << n) - 1) | int(rng.integers(0, 2))
            if t in FLOATS and rng.random() < 0.5:  # a number of a usual size
                p, _, width = FLOATS[t]
                bias = (1 << (width - p - 1)) - 1
                x = x & ~(((1 << (width - p)) - 1) << (p - 1)) | (bias + int(rng.integers(-12, 12))) << (p - 1)
            row.append(
                x % 70
                if t == "n32" and rng.random() < 0.9
                else edges[int(rng.integers(len(edges)))]
                if rng.random() < 0.1
                else x
            )
        rows.append(tuple(row))
    return rows


REGISTER = {16: "rs", 32: "r", 64: "rd"}


def width(t):
    return 32 if t == "n32" else FLOATS[t][2] if t in FLOATS else size(t)


def program(cases):
    """A kernel with one thread a sample: words of operands in, results as words of 8 bytes out."""
    body, at_in = [], 0
    for at_out, (op, types, result, *_) in enumerate(cases):
        for k, t in enumerate(types):
            body.append(f"ld.global.b{width(t)} %{REGISTER[width(t)]}{k + 10}, [%rd1+{8 * SAMPLES * at_in}];")
            at_in += 1
        names = ", ".join(f"%{REGISTER[width(t)]}{k + 10}" for k, t in enumerate(types))
        body.append(f"{op} %{REGISTER[width(result)]}20, {names};")
        body.append(f"st.global.b{width(result)} [%rd2+{8 * SAMPLES * at_out}], %{REGISTER[width(result)]}20;")
    lines = "\n    ".join(body)
    return f"""{HEAD}
.visible .entry k(.param .u64 in, .param .u64 out)
{{
    .reg .b16 %rs<24>;
    .reg .b32 %r<24>;
    .reg .b64 %rd<24>;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 8;
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    add.s64 %rd1, %rd1, %rd3;
    add.s64 %rd2, %rd2, %rd3;
    {lines}
    ret;
}}
"""


@pytest.mark.parametrize("part", range(PARTS))
def test_each_instruction(part):
    reset()
    calls = Calls()
    rng = np.random.default_rng(part)
    cases = CASES[part::PARTS]
    rows = [inputs(case[1], rng) for case in cases]
    columns = [[row[k] for row in r] for c, r in zip(cases, rows, strict=True) for k in range(len(c[1]))]
    words = np.array([np.array(c, np.uint64) for c in columns])
    out = calls.send(np.zeros((len(cases), SAMPLES), np.uint64))
    calls.launch(calls.function(program(cases), "k"), 1, SAMPLES, calls.send(words), out)
    calls.cuCtxSynchronize()
    assert not faults()
    found = calls.read(out, np.uint64, (len(cases), SAMPLES))
    wrong = []
    for (op, types, result, of, *mode), r, got in zip(cases, rows, found.tolist(), strict=True):
        for row, bits in zip(r, got, strict=True):
            values = [number(x, "u32" if t == "n32" else t) for x, t in zip(row, types, strict=True)]
            if op.startswith("copysign") and None in values:
                continue  # a NaN has no value whose sign could be set here
            want = coded(of(*values), result, *mode)
            if result in FLOATS and number(want, result) is None and (result == "f64" or op.startswith("neg")):
                if number(bits, result) is None:
                    continue  # which NaN it is of the many is open
            if bits != want:
                wrong.append(f"{op} {[hex(x) for x in row]}: {bits:#x}, not {want:#x}")
    reset()
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("op", [
    "ex2.approx.f32 %f1, %f2", "sin.approx.f32 %f1, %f2", "add.f32 %f1, %f2, %f2", "mul.ftz.f32 %f1, %f2, %f2",
    "div.full.f32 %f1, %f2, %f2", "add.sat.s32 %r1, %r2, %r2", "mov.u32 %r1, %smid", "tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [t, {%r1}]",
])  # fmt: skip
def test_what_is_not_known_is_refused_by_name(op):
    from emulator import ptx
    from emulator.translate import Translated

    text = f"{HEAD}.visible .entry k()\n{{\n.reg .f32 %f<9>;\n.reg .b32 %r<9>;\n{op};\nret;\n}}\n"
    with pytest.raises(Refused, match=r"line 8: ") as error:
        Translated(ptx.parse(text), "k")
    name = "%smid" if "smid" in op else "several coordinates" if "tex" in op else op.split()[0]
    assert name in str(error.value)

"""Whether a processor has the instructions that a library was compiled for, in IR."""

from __future__ import annotations

from taeda.kernels.ir import I32, I64, Value
from taeda.kernels.routine import Routine
from taeda.kernels.target import Target

GLOBALS = "@able = internal global i64 0, align 8\n"  # 0: not known yet; 1: yes; 2: no

#: Where CPUID tells of instructions: leaf and part, register (eax, ebx, ecx, edx), bits. Intel's manual, volume 2,
#: CPUID.
_Needs = dict[tuple[int, int, int], tuple[int, ...]]
_V2: _Needs = {(1, 0, 2): (0, 9, 13, 19, 20, 23)}  # SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT
_V3: _Needs = {
    (1, 0, 2): (12, 22, 27, 28, 29),
    (7, 0, 1): (3, 5, 8),
    (0x80000001, 0, 2): (5,),
}  # FMA, MOVBE, AVX, AVX2, BMI, LZCNT
_V4: _Needs = {(7, 0, 1): (16, 17, 28, 30, 31)}  # AVX512 F, DQ, CD, BW, VL
_MORE: dict[str, _Needs] = {
    "avx512bf16": {(7, 1, 0): (5,)},
    "avx512vnni": {(7, 0, 2): (11,)},
    "avx512vbmi": {(7, 0, 2): (1,)},
}
#: Registers that the system must keep for a process: bits of XCR0.
_YMM, _ZMM = 0x6, 0xE6


def _needed(target: Target) -> tuple[list[tuple[int, int, int, int]], int]:
    """The required answers of CPUID, as ``(leaf, part, register, mask)``, and the bits of XCR0."""
    level = int(target.cpu[-1])
    tables = [_V2, *([_V3] if level >= 3 else []), *([_V4] if level >= 4 else [])]
    tables += [_MORE[x[1:]] for x in target.features.split(",") if x.startswith("+")]
    found: dict[tuple[int, int, int], int] = {}
    for table in tables:
        for place, bits in table.items():
            found[place] = found.get(place, 0) | sum(1 << bit for bit in bits)
    return [(*place, mask) for place, mask in found.items()], {2: 0, 3: _YMM, 4: _ZMM}[level]


def _cpuid(f: Routine, leaf: int, part: int, register: int) -> Value:
    kinds = "{ i32, i32, i32, i32 }"
    constraints = "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"
    number = leaf - (1 << 32) if leaf >> 31 else leaf
    found = f.emit(f'call {kinds} asm sideeffect "cpuid", "{constraints}"(i32 {number}, i32 {part})', I32)
    return f.emit(f"extractvalue {kinds} {found.text}, {register}", I32)


def _is_missing(f: Routine, target: Target) -> Value:
    checks, registers = _needed(target)
    missing = f.const(I32, 0)
    for leaf, part, register, mask in checks:
        top = _cpuid(f, leaf & 0x80000000, 0, 0)  # the last leaf that there is, as an unsigned number
        has_leaf = top.to(I64) & 0x7FFFFFFF
        got = f.select(has_leaf >= (leaf & 0x7FFFFFFF), _cpuid(f, leaf, part, register), 0)
        missing = missing | ((got & mask) ^ mask)
    at = f.scratch(4, 4)
    f.store(at, missing)
    if registers:
        with f.when(missing == 0):  # otherwise the next instruction may not exist
            kinds = "{ i32, i32 }"
            found = f.emit(f'call {kinds} asm sideeffect "xgetbv", "={{ax}},={{dx}},{{cx}}"(i32 0)', I32)
            kept = f.emit(f"extractvalue {kinds} {found.text}, 0", I32)
            f.store(at, (kept & registers) ^ registers)
    return f.load(at, I32)


def is_able(target: Target) -> Routine:
    """1 where this processor, and the system, can run code for ``target``, else 0."""
    f = Routine("is_able", [], I64)
    if not target.triple.startswith("x86_64"):
        f.give(f.i64(1))  # the kernels for arm64 need what every such processor has
        return f
    known = f.symbol("able")
    with f.when(f.word(known) == 0):
        f.store(known, f.select(_is_missing(f, target) == 0, f.i64(1), 2))
    f.give((f.word(known) == 1).to(I64))
    return f

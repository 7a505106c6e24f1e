"""The kernel that calls a function in C: it loads the function's arguments and, where threads share it, their part."""

from __future__ import annotations

import functools

from .build import build
from .ir import F32, F64, I8, I16, I32, I64, PTR, Function, Type
from .target import here

#: Numbers in C, by the words of a key: the type, and the attribute that a compiler needs for narrow integers.
NUMBERS: dict[str, tuple[Type, str]] = {
    "i8": (I8, " signext"), "i16": (I16, " signext"), "i32": (I32, " signext"), "i64": (I64, ""),
    "u8": (I8, " zeroext"), "u16": (I16, " zeroext"), "u32": (I32, " zeroext"), "u64": (I64, ""),
    "f32": (F32, ""), "f64": (F64, ""),
}  # fmt: skip


@functools.cache
def call_c(params: tuple[str, ...], split: int) -> int:
    """The address of a kernel that calls a function in C whose address is its first number.

    Args:
        params: of each parameter of the function ``"pointer"``, or a key of ``NUMBERS``. The kernel's pointers and
            further numbers are theirs, in order; of a floating-point one the bits of a double.
        split: the parameter that is the size of the range; -1: the range has one place. A call gets its part of the
            range: so many places, and pointers moved by the bytes to a place, which follow in the numbers.
    """

    def refuse() -> Function:
        raise NotImplementedError(
            "a function in C that library.bind has bound is part of this process, and cannot be part of a library that "
            "taeda writes; write the op in Python, or link the function where the library is used"
        )

    return build(text(params, split), refuse)


def text(params: tuple[str, ...], split: int) -> Function:
    """The kernel of :func:`call_c` as IR."""
    f = Function(vector_bytes=here().vector_bytes)
    f.label = f"call_c({', '.join(params)}, {split})"
    numbers = 1 + sum(p != "pointer" for p in params)
    pointer, number, given, kinds = 0, 1, [], []
    for i, kind in enumerate(params):
        if kind == "pointer":
            x = f.data(pointer)
            if split >= 0:
                x = f.offset(x, f.begin * f.size(numbers + pointer))
            pointer += 1
            kinds.append("ptr")
            given.append(f"ptr {x.text}")
            continue
        t, extended = NUMBERS[kind]
        if i == split:
            x = f.end - f.begin
        else:
            x = f.scalar(number, F64) if t in (F32, F64) else f.size(number)
        number += 1
        if t is F32:
            x = f.emit(f"fptrunc {x.typed} to float", F32)
        elif t in (I8, I16, I32):
            x = f.emit(f"trunc {x.typed} to {t.llvm}", t)
        kinds.append(f"{t.llvm}{extended}")
        given.append(f"{t.llvm}{extended} {x.text}")
    function = f.emit(f"inttoptr {f.size(0).typed} to ptr", PTR)
    f.lines.append(f"  call void {function.text}({', '.join(given)})")
    return f

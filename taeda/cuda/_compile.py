"""Kernels as PTX: the text of a kernel for one lane, with an entry that gives each thread one unit of its range.

An entry takes the pointers and numbers of a launch by value, so that a launch is one call of the driver and needs no
table in the memory of the device. PTX is kept in the cache of kernels; the driver compiles it for its GPU.
"""

from __future__ import annotations

import functools
import hashlib
import re
from typing import Any

from ..kernels.build import cache_dir, compiler, read_entry, write_entry
from ..kernels.forks import loading
from ..kernels.target import Target

FORMAT = 4  # change it with the entry, or with the passes
THREADS = 128  # of a block
MOST_WORDS = 512  # of the parameters of a launch: 4 KiB, what every driver takes

#: The oldest GPUs that kernels are written for (Ampere, 2020), and the version of PTX (CUDA 12).
BASE = Target("nvptx64-nvidia-cuda", "sm_80", "+ptx80", 4)

_ENTRY = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
define ptx_kernel void @{name}(ptr byval([{words} x i64]) align 8 %all, i64 %first, i64 %total, ptr %slots, i64 %size)
    "nvvm.maxntid"="{threads}" {{
{room}
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block.wide = zext i32 %block to i64
  %thread.wide = zext i32 %thread to i64
  %before = mul i64 %block.wide, {threads}
  %place = add i64 %before, %thread.wide
  %unit = add i64 %place, %first
  %inside = icmp slt i64 %unit, %total
  br i1 %inside, label %do, label %done
do:
{body}
  br label %done
done:
  ret void
}}
"""


class _Lines:
    """The instructions of an entry."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.room: list[str] = []  # of the stack

    def words(self, count: int) -> str:
        """Words of the stack."""
        name = f"%own{len(self.room)}"
        self.room.append(f"  {name} = alloca [{max(count, 1)} x i64], align 8")
        return name

    def emit(self, instruction: str) -> str:
        """Append an instruction; the name of its result."""
        name = f"%t{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def at(self, base: str, word: int) -> str:
        """The address of a word."""
        return self.emit(f"getelementptr i8, ptr {base}, i64 {8 * word}")

    def load(self, word: int, type: str = "i64") -> str:
        """A word of the parameters."""
        return self.emit(f"load {type}, ptr {self.at('%all', word)}, align 8")

    def store(self, base: str, word: int, value: str, type: str = "i64") -> None:
        self.lines.append(f"  store {type} {value}, ptr {self.at(base, word)}, align 8")

    def run(self, pointers: str, numbers: str, begin: str) -> tuple[str, str]:
        """Call the kernel for one unit; the text of the stack and of all."""
        end = self.emit(f"add i64 {begin}, 1")
        self.lines.append(f"  call void @outer(ptr {pointers}, ptr {numbers}, i64 {begin}, i64 {end})")
        return "\n".join(self.room), "\n".join(self.lines)


def _each_unit(pointers: int) -> tuple[str, str]:
    """One unit of the range for each thread."""
    x = _Lines()
    return x.run("%all", x.at("%all", pointers), "%unit")


def _with_slots(pointers: int) -> tuple[str, str]:
    """The same, with memory of the thread as the last pointer."""
    x = _Lines()
    own = x.words(pointers + 1)
    for i in range(pointers):
        x.store(own, i, x.load(i, "ptr"), "ptr")
    offset = x.emit("mul i64 %place, %size")
    x.store(own, pointers, x.emit(f"getelementptr i8, ptr %slots, i64 {offset}"), "ptr")
    return x.run(own, x.at("%all", pointers), "%unit")


def _each_element(pointers: int, nd: int, narg: int) -> tuple[str, str]:
    """One element of a pointwise kernel: the numbers are those of ``run_piece`` (``kernels/hosted.py``)."""
    x = _Lines()
    own = x.words(pointers)
    numbers = x.words(narg)
    sizes, strides = pointers + 4, pointers + 4 + nd
    index, rest = [""] * nd, "%unit"
    for d in range(nd - 1, 0, -1):
        size = x.load(sizes + d)
        index[d] = x.emit(f"urem i64 {rest}, {size}")
        rest = x.emit(f"udiv i64 {rest}, {size}")
    index[0] = rest
    for k in range(pointers):
        at = x.load(k, "ptr")
        for d in range(nd):
            step = x.emit(f"mul i64 {index[d]}, {x.load(strides + k * nd + d)}")
            at = x.emit(f"getelementptr i8, ptr {at}, i64 {step}")
        x.store(own, k, at, "ptr")
    for i in range(narg):
        x.store(numbers, i, "1" if i < 2 else x.load(strides + pointers * nd + i))
    return x.run(own, numbers, "0")


_SCHEDULES: dict[str, Any] = {"slots": _with_slots, "elements": _each_element}

#: Functions of the C library that kernels call, in terms of LLVM's own.
_LIBRARY = {
    "memcpy": """define internal ptr @own.memcpy(ptr %to, ptr %from, i64 %n) alwaysinline {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  ret ptr %to
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
""",
    "memmove": """define internal ptr @own.memmove(ptr %to, ptr %from, i64 %n) alwaysinline {
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  ret ptr %to
}
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
""",
    "memset": """define internal ptr @own.memset(ptr %to, i32 %value, i64 %n) alwaysinline {
  %byte = trunc i32 %value to i8
  call void @llvm.memset.p0.i64(ptr %to, i8 %byte, i64 %n, i1 false)
  ret ptr %to
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
""",
}

_CALL = re.compile(r"call void (%\w+)\(ptr")  # of a kernel by its address


_LARGE = re.compile(r"^  (%s\d+) = alloca \[(\d{3,}) x i8\].*$", re.M)  # memory of a thread, a hundred bytes and more


class NoKernelError(NotImplementedError):
    """A kernel that cannot be written as PTX."""


def calls_another(text: str) -> bool:
    """Whether a kernel calls another one, whose address it is given."""
    return _CALL.search(text) is not None


def _internal(text: str, symbol: str) -> str:
    """The module of a kernel as a part of another: its function is ``symbol``, and all is inlined."""
    text = re.sub(r"define void @\w+\(", f"define internal void @{symbol}(", text, count=1)
    text = text.replace(" nounwind noinline", " nounwind").replace(" nounwind", " nounwind alwaysinline")
    text = text.replace('asm "", "=r,0"(', 'asm "", "=l,0"(')
    # hints to caches of a processor
    text = re.sub(r"^(  call|declare) void @llvm\.prefetch.*\n", "", text, flags=re.M)
    # Tiles read what lies behind the last column of a panel, and leave what they make of it: let it be zeros.
    text, clears = _LARGE.subn(r"\g<0>\n  call ptr @own.memset(ptr \1, i32 0, i64 \2)", text)
    for name, body in _LIBRARY.items():
        text, declared = re.subn(rf"^declare ptr @{name}\(.*\n", "", text, flags=re.M)
        if declared:
            text = text.replace(f"@{name}(", f"@own.{name}(")
        if declared or (clears and name == "memset"):
            text += body
    return text


def _entry(name: str, pointers: int, words: int, schedule: tuple | None) -> str:
    kind, *more = schedule or ("units",)
    room, body = _SCHEDULES[kind](pointers, *more) if schedule else _each_unit(pointers)
    return _ENTRY.format(name=name, words=words, threads=THREADS, room=room, body=body)


def symbol_of(label: str, digest: str) -> str:
    """The name of an entry: what a profiler shows."""
    return re.sub(r"\W+", "_", label.partition("(")[0])[:40] + "_" + digest[:16]


@functools.cache
def _versions() -> str:
    with loading:
        import llvmlite.binding as llvm

        return f"{FORMAT} {'.'.join(map(str, llvm.llvm_version_info))} {BASE.key}"


def ptx(label: str, text: str, inner: str, pointers: int, words: int, schedule: tuple | None) -> tuple[str, bytes]:
    """The name of the entry, and the PTX.

    Args:
        label: what the kernel is called in messages.
        text: the kernel's LLVM module.
        inner: that of the kernel that it calls, if any.
        pointers: of a launch.
        words: of pointers and numbers, at least those that a launch has.
        schedule: what a thread does, a name and its numbers: ``("slots",)``, with memory of its own as its last
            pointer; ``("elements", dimensions, numbers)``, an element of a pointwise kernel. None: a unit of the range.

    Raises:
        NotImplementedError: what the kernel does cannot be said in PTX.
    """
    body = f"{_versions()}\n{label}\n{text}\n{inner}\n{_entry('', pointers, words, schedule)}"
    digest = hashlib.sha256(body.encode()).hexdigest()[:32]
    name = symbol_of(label, digest)
    path = cache_dir() / digest[:2] / f"{digest}.ptx"
    kept = read_entry(path)
    if kept is None:
        kept = _compile(label, text, inner, _entry(name, pointers, words, schedule)).encode()
        write_entry(path, kept)
    return name, kept


def _compile(label: str, text: str, inner: str, entry: str) -> str:
    with loading:
        import llvmlite.binding as llvm

        made = compiler(BASE)
        head = f'target triple = "{BASE.triple}"\n'
        outer = _internal(text, "outer")
        if inner:
            outer = _CALL.sub("call void @inner(ptr", outer) + "\ndeclare void @inner(ptr, ptr, i64, i64)\n"
        elif _CALL.search(outer):
            raise NoKernelError(f"{label}: it calls a kernel, and was not given one")
        try:
            module = llvm.parse_assembly(head + outer + entry)
            if inner:
                other = _internal(inner, "inner").replace("define internal void @inner(", "define void @inner(", 1)
                module.link_in(llvm.parse_assembly(head + other))
                module.get_function("inner").linkage = "internal"
            module.verify()
            builder = llvm.create_pass_builder(made.machine, llvm.create_pipeline_tuning_options(speed_level=1))
            builder.getModulePassManager().run(module, builder)
            code = made.machine.emit_assembly(module)
        except RuntimeError as error:
            raise NoKernelError(f"{label}: LLVM has no PTX for it: {str(error).strip()[:300]}") from None
    unresolved = sorted(set(re.findall(r"^\.extern \.func.*?(\w+)\s*$", code, re.M)))
    if ".extern .func" in code:
        raise NoKernelError(f"{label}: it calls {', '.join(unresolved) or 'a function'} of the C library")
    return code

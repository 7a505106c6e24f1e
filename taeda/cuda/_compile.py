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
from ._convolution import convolution_tile
from ._products import product_tile
from ._warps import WARP, CannotShareError, threads_of

FORMAT = 6  # change it with the entry, or with the passes
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
  %own = {share}
  %unit = add i64 %own, %first
  %inside = {inside}
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
        self.outside: list[str] = []  # of the module

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
        return self.emit(f"getelementptr i8, ptr {base}, i64 {8 * word}")

    def load(self, word: int, type: str = "i64") -> str:
        return self.emit(f"load {type}, ptr {self.at('%all', word)}, align 8")

    def store(self, base: str, word: int, value: str, type: str = "i64") -> None:
        self.lines.append(f"  store {type} {value}, ptr {self.at(base, word)}, align 8")

    def tile(self, nbytes: int) -> str:
        """Bytes of the stack."""
        name = f"%own{len(self.room)}"
        self.room.append(f"  {name} = alloca [{nbytes} x i8], align {nbytes}")
        return name

    def move(self, to: str, source: str, nbytes: int, part: int, loads: bool) -> None:
        """Copy as many bytes as one access has between the stack, as numbers of ``part`` bytes, and memory."""
        own = f"<{nbytes // part} x i{8 * part}>"
        far = f"<{nbytes // 4} x i32>" if nbytes >= 4 else f"i{8 * nbytes}"
        first, second = (far, own) if loads else (own, far)
        x = self.emit(f"load {first}, ptr {source}, align {nbytes}")
        x = self.emit(f"bitcast {first} {x} to {second}")
        self.lines.append(f"  store {second} {x}, ptr {to}, align {nbytes}")

    def run(self, pointers: str, numbers: str, begin: str) -> None:
        """Call the kernel for one unit."""
        end = self.emit(f"add i64 {begin}, 1")
        self.lines.append(f"  call void @outer(ptr {pointers}, ptr {numbers}, i64 {begin}, i64 {end})")


def _each_unit(x: _Lines, pointers: int) -> None:
    """One unit of the range for each thread."""
    x.run("%all", x.at("%all", pointers), "%unit")


def _with_slots(x: _Lines, pointers: int) -> None:
    """The same, with memory of the thread as the last pointer."""
    own = x.words(pointers + 1)
    for i in range(pointers):
        x.store(own, i, x.load(i, "ptr"), "ptr")
    offset = x.emit("mul i64 %place, %size")
    x.store(own, pointers, x.emit(f"getelementptr i8, ptr %slots, i64 {offset}"), "ptr")
    x.run(own, x.at("%all", pointers), "%unit")


def _each_element(
    x: _Lines, pointers: int, nd: int, narg: int, together: int, narrow: bool,
    operands: tuple[tuple[int, int, str], ...], outs: int,
) -> None:  # fmt: skip
    """``together`` neighbouring elements of a pointwise kernel: the numbers are those of ``run_piece``
    (``kernels/host_functions.py``), with the number of threads that have so many in the place of the first.

    What is contiguous is read and written by one access for all of them. Between, elements are in memory of the thread,
    which LLVM makes registers. The threads that follow have an element each: what is left of one dimension. ``narrow``:
    offsets in bytes have 31 bits.
    """
    sizes, strides = pointers + 4, pointers + 4 + nd
    word = "i32" if narrow else "i64"
    numbers = x.words(narg)
    for i in range(narg):
        x.store(numbers, i, "1" if i < 2 else x.load(strides + pointers * nd + i))

    def places(first: str) -> list[str]:
        """The place of element ``first`` of each operand."""
        rest = x.emit(f"trunc i64 {first} to i32") if narrow else first
        index = [""] * nd
        for d in range(nd - 1, 0, -1):
            size = x.load(sizes + d, word)
            index[d] = x.emit(f"urem {word} {rest}, {size}")
            rest = x.emit(f"udiv {word} {rest}, {size}")
        index[0], found = rest, []
        for k in range(pointers):
            offset = "0"
            for d in range(nd):
                step = x.emit(f"mul {word} {index[d]}, {x.load(strides + k * nd + d, word)}")
                offset = x.emit(f"add {word} {offset}, {step}")
            if narrow:
                offset = x.emit(f"sext i32 {offset} to i64")
            found.append(x.emit(f"getelementptr i8, ptr {x.load(k, 'ptr')}, i64 {offset}"))
        return found

    def run(at: list[str]) -> None:
        own = x.words(pointers)
        for k, place in enumerate(at):
            x.store(own, k, place, "ptr")
        x.run(own, numbers, "0")

    if together == 1:
        run(places("%unit"))
        return
    if nd == 1:
        whole = x.load(pointers)
        x.lines.append(f"  br i1 {x.emit(f'icmp slt i64 %unit, {whole}')}, label %many, label %one\nmany:")
    there = places(x.emit(f"mul i64 %unit, {together}"))
    tiles = [x.tile(together * item) if layout == "c" else "" for item, _, layout in operands]
    for k in range(outs, pointers):
        if tiles[k]:
            x.move(tiles[k], there[k], together * operands[k][0], operands[k][1], True)
    for i in range(together):
        run([
            x.emit(f"getelementptr i8, ptr {tile}, i64 {i * operand[0]}") if tile else place
            for tile, place, operand in zip(tiles, there, operands, strict=True)
        ])  # fmt: skip
    for k in range(outs):
        x.move(there[k], tiles[k], together * operands[k][0], operands[k][1], False)
    if nd == 1:
        x.lines.append("  br label %done\none:")
        after = x.emit(f"mul i64 {whole}, {together - 1}")
        run(places(x.emit(f"add i64 %unit, {after}")))


SIDE = 32  # of a tile of a transposed copy


def _transposed_tile(x: _Lines, pointers: int, item: int, ndims: int) -> None:
    """A tile of a transposed copy for each block, through shared memory: both sides are read and written by rows.

    Rows of the tile have one item more, or 4 bytes, so that the items of a column are in different banks. The numbers:
    rows and columns of the result, strides in bytes of a row of the result and of the source, tiles of a row, tiles of
    a matrix; then for each outer dimension, innermost first, its size and its stride in the result and in the source.
    """
    t = "<2 x i64>" if item == 16 else f"i{8 * item}"
    pitch, every = SIDE * item + max(item, 4), THREADS // SIDE
    x.outside += [
        f"@tile = internal addrspace(3) global [{SIDE * pitch} x i8] undef, align 16",
        "declare void @llvm.nvvm.barrier0()",
    ]
    rows, columns, dst_row, src_row = (x.load(pointers + i) for i in range(4))
    per_row, tiles = (x.load(pointers + i, "i32") for i in (4, 5))
    rest = x.emit(f"udiv i32 %block, {tiles}")
    inside = x.emit(f"urem i32 %block, {tiles}")
    first = [x.emit(f"{op} i32 {inside}, {per_row}") for op in ("udiv", "urem")]
    row, column = (x.emit(f"mul i64 {x.emit(f'zext i32 {i} to i64')}, {SIDE}") for i in first)
    to, source = x.load(0, "ptr"), x.load(1, "ptr")
    for d in range(ndims):
        size, index = x.load(pointers + 6 + 3 * d, "i32"), rest
        if d < ndims - 1:
            index, rest = x.emit(f"urem i32 {rest}, {size}"), x.emit(f"udiv i32 {rest}, {size}")
        wide = x.emit(f"zext i32 {index} to i64")
        to, source = (
            x.emit(f"getelementptr i8, ptr {at}, i64 {x.emit(f'mul i64 {wide}, {x.load(pointers + 6 + 3 * d + k)}')}")
            for k, at in ((1, to), (2, source))
        )
    along, across = x.emit("and i64 %thread.wide, 31"), x.emit("lshr i64 %thread.wide, 5")
    ends = [x.emit(f"add i64 {i}, {SIDE}") for i in (row, column)]
    fits = [x.emit(f"icmp sle i64 {end}, {size}") for end, size in zip(ends, (rows, columns), strict=True)]
    whole = x.emit(f"and i1 {fits[0]}, {fits[1]}")

    def shared(slow: str, fast: str) -> str:
        offset = x.emit(f"add i64 {x.emit(f'mul i64 {slow}, {pitch}')}, {x.emit(f'mul i64 {fast}, {item}')}")
        return x.emit(f"getelementptr i8, ptr addrspace(3) @tile, i64 {offset}")

    def move(name: str, base: str, stride: str, slow: tuple[str, str], fast: tuple[str, str], loads: bool) -> None:
        """A row of the tile for each warp, as often as it takes: of the source (``loads``), or of the result. ``slow``
        and ``fast``: the first index of the tile and the end, across rows and along them."""
        inner = x.emit(f"add i64 {fast[0]}, {along}")
        valid = x.emit(f"icmp slt i64 {inner}, {fast[1]}")
        places = []
        for k in range(0, SIDE, every):
            own = x.emit(f"add i64 {across}, {k}")
            outer = x.emit(f"add i64 {slow[0]}, {own}")
            offset = x.emit(f"add i64 {x.emit(f'mul i64 {outer}, {stride}')}, {x.emit(f'mul i64 {inner}, {item}')}")
            far = x.emit(f"getelementptr i8, ptr {base}, i64 {offset}")
            near = shared(own, along) if loads else shared(along, own)
            places.append((outer, far, near))
        x.lines.append(f"  br i1 {whole}, label %{name}.all, label %{name}.some\n{name}.all:")
        pairs = [(f"ptr {far}", f"ptr addrspace(3) {near}")[:: 1 if loads else -1] for _, far, near in places]
        found = [x.emit(f"load {t}, {a}, align {item}") for a, _ in pairs]
        x.lines += [f"  store {t} {v}, {b}, align {item}" for v, (_, b) in zip(found, pairs, strict=True)]
        x.lines.append(f"  br label %{name}.done\n{name}.some:")
        for k, ((outer, _, _), (a, b)) in enumerate(zip(places, pairs, strict=True)):
            both = x.emit(f"and i1 {valid}, {x.emit(f'icmp slt i64 {outer}, {slow[1]}')}")
            x.lines.append(f"  br i1 {both}, label %{name}.do{k}, label %{name}.next{k}\n{name}.do{k}:")
            x.lines.append(f"  store {t} {x.emit(f'load {t}, {a}, align {item}')}, {b}, align {item}")
            x.lines.append(f"  br label %{name}.next{k}\n{name}.next{k}:")
        x.lines.append(f"  br label %{name}.done\n{name}.done:")

    move("read", source, src_row, (column, columns), (row, rows), True)
    x.lines.append("  call void @llvm.nvvm.barrier0()")
    move("write", to, dst_row, (row, rows), (column, columns), False)


def _from_unit_on(x: _Lines, pointers: int) -> None:
    """The same, also for threads past the end of the range: the kernel looks."""
    numbers = x.at("%all", pointers)
    x.lines.append(f"  call void @outer(ptr %all, ptr {numbers}, i64 %unit, i64 %total)")


_SCHEDULES: dict[str, Any] = {
    "transpose": _transposed_tile,
    "product": product_tile,
    "convolution": convolution_tile,  # of a block
    "units": _each_unit,
    "rows": _each_unit,  # of a warp
    "block": _each_unit,  # of a block
    "warp": _each_unit,
    "lines": _from_unit_on,
    "slots": _with_slots,
    "elements": _each_element,
}

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
    text = text.replace("  fence seq_cst\n", "")  # of stores past the caches of a processor
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
    x = _Lines()
    _SCHEDULES[kind](x, pointers, *more)
    together = {"rows": WARP, "warp": WARP, "block": THREADS, "convolution": THREADS}.get(kind)
    share = f"lshr i64 %place, {together.bit_length() - 1}" if together else "add i64 %place, 0"
    inside = "icmp eq i64 0, 0" if kind == "lines" else "icmp slt i64 %unit, %total"
    return "\n".join(x.outside) + _ENTRY.format(
        name=name, words=words, threads=THREADS, share=share, inside=inside, room="\n".join(x.room),
        body="\n".join(x.lines),
    )  # fmt: skip


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
            pointer; ``("elements", dimensions, numbers, together, narrow, operands, outs)``, elements of a pointwise
            kernel; ``("transpose", bytes of an item, dimensions)``, a tile for each block, without a kernel;
            ``("product", *Product)``, likewise (``_products.py``); ``("convolution", dtype, form)``, a tile for each
            unit, without a kernel (``_convolution.py``);
            ``("rows",)``, a warp has a unit of the range, and each thread a lane of its vectors; ``("block",)``, a
            block has a unit (:mod:`._blocks`); ``("warp",)``, a warp has; ``("lines",)``, a thread has, and those past
            the end run too.
            None: a thread has a unit.

    Raises:
        NotImplementedError: what the kernel does cannot be said in PTX.
    """
    body = f"{_versions()}\n{label}\n{text}\n{inner}\n{_entry('', pointers, words, schedule)}"
    digest = hashlib.sha256(body.encode()).hexdigest()[:32]
    name = symbol_of(label, digest)
    path = cache_dir() / digest[:2] / f"{digest}.ptx"
    kept = read_entry(path)
    if kept is None:
        if schedule == ("rows",):
            try:
                text = threads_of(text)
            except CannotShareError as error:
                raise NoKernelError(f"{label}: the threads of a warp cannot share {error}") from None
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

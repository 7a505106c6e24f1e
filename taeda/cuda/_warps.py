"""The text of a kernel of vectors as one of threads: each thread of a warp has a lane of every vector.

A kernel whose unit is shared by threads (``Function.threads``) is written with vectors of 32 lanes, or of a multiple
of it. The CPU runs it as it is. Here a vector becomes a number of each thread, and a longer one as many numbers as it
has times 32 lanes: lane ``32 * j + i`` is number ``j`` of thread ``i``. So the sums of a row are the same, in the same
order.

What is no vector has the same value in all threads, so that all take the same way through the kernel. One of them
stores it, while the others wait. Loads of vectors are loads of neighbouring threads. What goes from lane to lane is a
shuffle. Of vectors with less than 32 lanes, the other threads have a number that nothing depends on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..kernels.rowwise import WARP

_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_NAME = re.compile(r"%\w+")
_SPLAT = re.compile(r"splat \(\w+ (\S+?)\)")
_LITERAL = re.compile(r"<(\w+ [^<>]*,[^<>]*)>")  # <i32 0, i32 1>
_SUFFIX = re.compile(r"\.v\d+(?=[a-z])")  # of an intrinsic's name
_DEFINED = re.compile(r"  (%\w+) = (.*)")

#: The parts of instructions that are not element by element.
_LOAD = re.compile(r"load <(\d+) x (\w+)>, ptr (%\w+), align (\d+)")
_STORE = re.compile(r"  store <(\d+) x (\w+)> (.+), ptr (%\w+), align (\d+)(?:, !nontemporal !0)?")
_ONE_STORE = re.compile(r"  store (\w+) (.+), ptr (%\w+), align (\d+)(?:, !nontemporal !0)?")
_MASKED_LOAD = re.compile(
    r"call <(\d+) x (\w+)> @llvm\.masked\.(load|gather)\.\S+?\((?:ptr|<\d+ x ptr>) (%\w+), i32 (\d+), <\d+ x i1> (.+), "
    r"<\d+ x \w+> (.+)\)"
)
_MASKED_STORE = re.compile(
    r"  call void @llvm\.masked\.(store|scatter)\.\S+?\(<(\d+) x (\w+)> (.+), (?:ptr|<\d+ x ptr>) (%\w+), i32 (\d+), "
    r"<\d+ x i1> (.+)\)"
)
_EXTRACT = re.compile(r"extractelement <(\d+) x (\w+)> (%\w+), i64 (\d+)")
_INSERT = re.compile(r"insertelement <(\d+) x (\w+)> (.+), \w+ (\S+), i64 (\d+)")
_SHUFFLE = re.compile(r"shufflevector <(\d+) x (\w+)> (.+), <\d+ x \w+> (.+), <(\d+) x i32> <(.+)>")
_BALLOT = re.compile(r"bitcast <(\d+) x i1> (%\w+) to i(\d+)$")

_BITS = {"float": 32, "double": 64, "half": 16, "bfloat": 16}

# The entry, which is in the same module, declares the number of the thread.
_HEAD = """

declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare void @llvm.nvvm.bar.warp.sync(i32)
define internal i32 @lane() alwaysinline {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %lane = and i32 %thread, 31
  ret i32 %lane
}
"""

#: ``x`` of another thread.
_PICK = """define internal T @pick.T(T %x, i32 %lane) alwaysinline {
  %bits = bitcast T %x to iN
  %word = WIDEN iN %bits to i32
  %other = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %word, i32 %lane, i32 31)
  %found = NARROW i32 %other to iN
  %y = bitcast iN %found to T
  ret T %y
}
"""
_PICK_LONG = """define internal T @pick.T(T %x, i32 %lane) alwaysinline {
  %bits = bitcast T %x to i64
  %low = trunc i64 %bits to i32
  %above = lshr i64 %bits, 32
  %high = trunc i64 %above to i32
  %low.other = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %low, i32 %lane, i32 31)
  %high.other = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %high, i32 %lane, i32 31)
  %low.wide = zext i32 %low.other to i64
  %high.wide = zext i32 %high.other to i64
  %up = shl i64 %high.wide, 32
  %both = or i64 %up, %low.wide
  %y = bitcast i64 %both to T
  ret T %y
}
"""
_READ = """define internal T @read.T(ptr %p, i1 %here, T %other) alwaysinline {
  br i1 %here, label %do, label %done
do:
  %x = load T, ptr %p, align SIZE
  br label %done
done:
  %y = phi T [ %x, %do ], [ %other, %0 ]
  ret T %y
}
"""
_WRITE = """define internal void @write.T(ptr %p, T %x, i1 %here) alwaysinline {
  br i1 %here, label %do, label %done
do:
  store T %x, ptr %p, align SIZE
  br label %done
done:
  ret void
}
"""
_ONCE = """define internal void @once.T(ptr %p, T %x) alwaysinline {
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %lane = call i32 @lane()
  %first = icmp eq i32 %lane, 0
  br i1 %first, label %do, label %done
do:
  store T %x, ptr %p, align SIZE
  br label %done
done:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  ret void
}
"""


class CannotShareError(Exception):
    """An instruction that has no form for threads."""


def _bits(t: str) -> int:
    return _BITS.get(t) or int(t[1:])


class _Threads:
    """The text of one module."""

    def __init__(self, text: str) -> None:
        self.lines: list[str] = []
        self.helpers: dict[str, str] = {}
        self.declared: dict[str, None] = {}
        self.count = 0
        for function in re.split(r"(?m)^(?=define )", text):
            self.vectors: dict[str, int] = {}  # lanes, by name
            self.uniform: dict[str, str] = {}  # a number that is in all lanes, by the vector's name
            self.own: set[str] = set()  # pointers to the stack
            lines = function.split("\n")
            for line in lines:
                self.note(line)
            for line in lines:
                self.line(line)

    def text(self) -> str:
        return "\n".join(self.lines) + _HEAD + "".join(self.helpers.values()) + "\n".join(self.declared) + "\n"

    def note(self, line: str) -> None:
        """Remember what a line defines: a vector, a pointer to the stack."""
        defined = _DEFINED.match(line)
        if not defined:
            return
        name, what = defined.groups()
        vector = _VECTOR.search(what)
        if what.startswith("alloca ") or (
            what.startswith(("getelementptr", "phi ptr", "select i1")) and self.own.intersection(_NAME.findall(what))
        ):
            self.own.add(name)
        elif what.startswith("shufflevector "):
            self.vectors[name] = int(_VECTOR.findall(what)[-1][0])
        elif vector and not what.startswith("extractelement ") and not _BALLOT.match(what):
            self.vectors[name] = int(vector[1])

    # ---- pieces ------------------------------------------------------------------------------------------------------
    def emit(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"  %w{self.count} = {instruction}")
        return f"%w{self.count}"

    def lane(self) -> str:
        return self.emit("call i32 @lane()")

    def helper(self, kind: str, text: str, t: str) -> str:
        """The name of a function of :data:`_PICK` and the like for a type."""
        name, size = f"{kind}.{t}", _bits(t)
        if name not in self.helpers:
            for word, value in (
                ("SIZE", str(max(size // 8, 1))), ("WIDEN", "zext" if size < 32 else "bitcast"),
                ("NARROW", "trunc" if size < 32 else "bitcast"), ("iN", f"i{size}"), ("T", t),
            ):  # fmt: skip
                text = re.sub(rf"(?<![a-z]){word}\b", value, text)
            self.helpers[name] = text
        return f"@{name}"

    def pick(self, t: str, x: str, lane: str) -> str:
        """A number of another thread."""
        name = self.helper("pick", _PICK_LONG if _bits(t) == 64 else _PICK, t)
        return self.emit(f"call {t} {name}({t} {x}, i32 {lane})")

    def part(self, operand: str, j: int) -> str:
        """Number ``j`` of an operand."""
        splat = _SPLAT.fullmatch(operand)
        if splat:
            return splat[1]
        literal = _LITERAL.fullmatch(operand)
        if literal:
            return self.literal(literal[1], j)
        if operand in ("poison", "undef", "zeroinitializer"):
            return operand
        return f"{operand}.{j}"

    def literal(self, items: str, j: int) -> str:
        """Number ``j`` of a vector that is written out: integers in steps of one."""
        t = items.split()[0]
        own = [item.split()[1] for item in items.split(", ")][WARP * j : WARP * (j + 1)]
        try:
            first = int(own[0])
            regular = [int(x) for x in own] == list(range(first, first + len(own)))
        except ValueError:
            regular = False
        if not regular:
            raise CannotShareError(f"<{items}>")
        lane = self.lane()
        size = _bits(t)
        if size != 32:
            lane = self.emit(f"{'zext' if size > 32 else 'trunc'} i32 {lane} to {t}")
        return self.emit(f"add {t} {lane}, {first}") if first else lane

    def place(self, pointer: str, t: str, j: int, lanes: int) -> str:
        """The place of this thread's number ``j`` of a vector in memory."""
        lane = self.lane()
        if lanes < WARP:
            lane = self.emit(f"and i32 {lane}, {lanes - 1}")
        wide = self.emit(f"zext i32 {lane} to i64")
        offset = self.emit(f"mul i64 {wide}, {_bits(t) // 8}")
        near = self.emit(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        return self.emit(f"getelementptr i8, ptr {near}, i64 {WARP * j * _bits(t) // 8}") if j else near

    def names(self, name: str, t: str, numbers: Sequence[str]) -> None:
        """Give the numbers of a vector their names."""
        for j, x in enumerate(numbers):
            self.lines.append(f"  {name}.{j} = bitcast {t} {x} to {t}")

    # ---- lines -------------------------------------------------------------------------------------------------------
    def line(self, line: str) -> None:
        if line.startswith("declare "):
            if "@llvm.masked." not in line:
                self.declared[_of_numbers(line)] = None
            return
        defined = _DEFINED.match(line)
        if defined:
            self.defined(*defined.groups())
        elif _VECTOR.search(line):
            self.stored(line)
        else:
            one = _ONE_STORE.match(line)
            if one and one[3] not in self.own:
                t, x, pointer, _ = one.groups()
                self.lines.append(f"  call void {self.helper('once', _ONCE, t)}(ptr {pointer}, {t} {x})")
            else:
                self.lines.append(line)

    def stored(self, line: str) -> None:
        plain, masked = _STORE.match(line), _MASKED_STORE.match(line)
        if plain:
            (lanes, t, x, pointer, align), kind, mask = plain.groups(), "store", "splat (i1 true)"
        elif masked:
            kind, lanes, t, x, pointer, align, mask = masked.groups()
        else:
            raise CannotShareError(line.strip())
        if int(lanes) % WARP:
            raise CannotShareError(line.strip())
        for j in range(int(lanes) // WARP):
            place = self.place(pointer, t, j, int(lanes)) if kind == "store" else f"{pointer}.{j}"
            value, here = self.part(x, j), self.part(mask, j)
            if here == "true":
                self.lines.append(f"  store {t} {value}, ptr {place}, align {align}")
            else:
                name = self.helper("write", _WRITE, t)
                self.lines.append(f"  call void {name}(ptr {place}, {t} {value}, i1 {here})")

    def defined(self, name: str, what: str) -> None:
        """A line that gives a name to a value."""
        lanes = self.vectors.get(name, 0)
        for pattern, write in (
            (_LOAD, self.load), (_MASKED_LOAD, self.masked_load), (_EXTRACT, self.extract), (_INSERT, self.insert),
            (_SHUFFLE, self.shuffle), (_BALLOT, self.ballot),
        ):  # fmt: skip
            found = pattern.match(what)
            if found:
                write(name, *found.groups())
                return
        if not lanes and not _VECTOR.search(what):
            self.lines.append(f"  {name} = {what}")
            return
        if any(int(n) != lanes for n, _ in _VECTOR.findall(what)):
            raise CannotShareError(what)
        for j in range(_numbers(lanes)):
            self.lines.append(f"  {name}.{j} = {self.number(what, j)}")

    def number(self, what: str, j: int) -> str:
        """Number ``j`` of what is element by element."""
        text = _SPLAT.sub(r"\1", what)
        text = _LITERAL.sub(lambda m: self.literal(m[1], j), text)
        text = _NAME.sub(lambda m: f"{m[0]}.{j}" if m[0] in self.vectors else m[0], text)
        return _of_numbers(text)

    def load(self, name: str, lanes: str, t: str, pointer: str, align: str) -> None:
        for j in range(_numbers(int(lanes))):
            self.lines.append(f"  {name}.{j} = load {t}, ptr {self.place(pointer, t, j, int(lanes))}, align {align}")

    def masked_load(
        self, name: str, lanes: str, t: str, kind: str, pointer: str, _: str, mask: str, other: str
    ) -> None:
        read = self.helper("read", _READ, t)
        for j in range(_numbers(int(lanes))):
            place = self.place(pointer, t, j, int(lanes)) if kind == "load" else f"{pointer}.{j}"
            here, rest = self.part(mask, j), self.part(other, j)
            self.lines.append(f"  {name}.{j} = call {t} {read}(ptr {place}, i1 {here}, {t} {rest})")

    def extract(self, name: str, lanes: str, t: str, x: str, lane: str) -> None:
        j, i = divmod(int(lane), WARP)
        found = self.uniform.get(x) or self.pick(t, self.part(x, j), str(i))
        self.lines.append(f"  {name} = bitcast {t} {found} to {t}")

    def insert(self, name: str, lanes: str, t: str, x: str, value: str, lane: str) -> None:
        k, i = divmod(int(lane), WARP)
        count = _numbers(int(lanes))
        if x == "poison":  # what follows puts it in all lanes
            self.uniform[name] = value
            self.names(name, t, [value] * count)
            return
        here = self.emit(f"icmp eq i32 {self.lane()}, {i}")
        numbers = [self.part(x, j) for j in range(count)]
        numbers[k] = self.emit(f"select i1 {here}, {t} {value}, {t} {numbers[k]}")
        self.names(name, t, numbers)

    def shuffle(self, name: str, lanes: str, t: str, x: str, y: str, count: str, mask: str) -> None:
        picks = [-1 if item.endswith("poison") else int(item.split()[1]) for item in mask.split(", ")]
        if x in self.uniform and max(picks) < int(lanes):
            self.uniform[name] = self.uniform[x]
            self.names(name, t, [self.uniform[x]] * _numbers(int(count)))
            return
        parts = (picks[WARP * j : WARP * (j + 1)] for j in range(_numbers(int(count))))
        self.names(name, t, [self.picked(t, x, y, int(lanes), part) for part in parts])

    def picked(self, t: str, x: str, y: str, lanes: int, picks: Sequence[int]) -> str:
        """One number of a shuffle: from each number that lanes come from, those of some threads."""
        sources: dict[tuple[str, int], dict[int, int]] = {}
        for i, pick in enumerate(picks):
            operand, at = (x, pick) if pick < lanes else (y, pick - lanes)
            if pick >= 0:
                sources.setdefault((operand, at // WARP), {})[i] = at % WARP
        found = ""
        for (operand, k), lane_of in sources.items():
            own = self.from_lanes(t, self.part(operand, k), operand, lane_of)
            if found:
                threads = sum(1 << i for i in lane_of)
                bit = self.emit(f"lshr i32 {threads - (threads >> 31 << 32)}, {self.lane()}")
                here = self.emit(f"trunc i32 {bit} to i1")
                own = self.emit(f"select i1 {here}, {t} {own}, {t} {found}")
            found = own
        return found

    def from_lanes(self, t: str, x: str, operand: str, lane_of: dict[int, int]) -> str:
        """``x`` of thread ``lane_of[i]``, for each thread i that is named there."""
        if not operand.startswith("%") or all(i == at for i, at in lane_of.items()):
            return x
        for factor, shift in ((0, 0), (1, 0), (2, 0), (1, 1), (-1, 0)):
            first = next(iter(lane_of.items()))
            plus = first[1] - (first[0] * factor >> shift)
            if all((i * factor >> shift) + plus & 31 == at for i, at in lane_of.items()):
                if not factor:
                    return self.pick(t, x, str(plus & 31))
                lane = self.lane()
                lane = lane if factor == 1 else self.emit(f"mul i32 {lane}, {factor}")
                lane = self.emit(f"ashr i32 {lane}, {shift}") if shift else lane
                lane = self.emit(f"add i32 {lane}, {plus}") if plus else lane
                return self.pick(t, x, self.emit(f"and i32 {lane}, 31"))
        raise CannotShareError(f"a shuffle of {lane_of}")

    def ballot(self, name: str, lanes: str, x: str, size: str) -> None:
        """A vector of bools as an integer."""
        if int(lanes) % WARP:
            raise CannotShareError(f"<{lanes} x i1> as an integer")
        words = [
            self.emit(f"call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 {self.part(x, j)})")
            for j in range(int(lanes) // WARP)
        ]
        found = words[0]
        if len(words) > 1:
            found = "0"
            for j, word in enumerate(words):
                wide = self.emit(f"zext i32 {word} to i{size}")
                found = self.emit(f"or i{size} {found}, {self.emit(f'shl i{size} {wide}, {WARP * j}')}")
        self.lines.append(f"  {name} = bitcast i{size} {found} to i{size}")


def _of_numbers(text: str) -> str:
    """Types and names of intrinsics without their lanes."""
    return _SUFFIX.sub(".", _VECTOR.sub(r"\2", text))


def _numbers(lanes: int) -> int:
    """The size of a vector in numbers of a thread."""
    if lanes > WARP and lanes % WARP:
        raise CannotShareError(f"vectors of {lanes} lanes")
    return max(lanes // WARP, 1)


def threads_of(text: str) -> str:
    """The text of a kernel for each thread of a warp.

    Args:
        text: of a kernel whose vectors have 32 lanes, a multiple, or less.

    Raises:
        CannotShareError: an instruction that has no such form.
    """
    return _Threads(text).text()

"""Products by tiles: a block of threads computes a tile of the result from tiles of both operands in shared memory.

Each number of the result is the sum that a task of ``product_elements`` (``kernels/gemm.py``) computes, in the same
order: over blocks of k, each from zero by fused additions, then added to the sum so far. So the bits are the same. What
fills the last tile of k leaves a sum as it is, its sign too: +0 times -0.

Tiles lie in two stages: while one is multiplied, the next is on its way from memory through registers. An operand is
read along the dimension in which it is contiguous, by 16 bytes where ``wide`` says that all is aligned, else by single
numbers. In shared memory numbers lie one k after the other. Their places are permuted (:meth:`_Tile.keep`), so that
neither the threads that write columns of a tile nor those that read rows meet at a bank.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..kernels.gemm import ELEMENT_ARGS

THREADS = 128  # of a block: four warps, two by two; _compile.py
GROUP = 8  # tiles of a column that blocks do one after the other, so that they find the other operand in the caches

#: LLVM's types of numbers, and their bytes.
TYPES = {
    "float32": ("float", 4), "float64": ("double", 8), "int32": ("i32", 4), "int64": ("i64", 8), "float16": ("half", 2),
    "bfloat16": ("bfloat", 2),
}  # fmt: skip


#: The numbers of a launch; tiles along m and along n.
ARGS = (*ELEMENT_ARGS, "down", "across")


class Product(NamedTuple):
    """The way in which a product is computed."""

    dtype: str
    pieces: int  # of a thread's numbers along m and n; each has 16 bytes by 16 bytes
    a_along_k: bool  # A is contiguous along k, else along m
    a_wide: bool
    b_along_k: bool  # B is contiguous along k, else along n
    b_wide: bool
    c_wide: bool
    addend: int  # the first block of k is added to: 0 nothing, 1 D, 2 zero, 3 D by 16 bytes, 4 a number for each row
    several: bool  # blocks of k


def item_of(dtype: str) -> int:
    """Bytes of a number whose products have tiles; 0: they have none."""
    return TYPES[dtype][1] if dtype in TYPES else 0


def form_of(dtype: str, bits: int) -> Product:
    """Properties of a product that ``launch_product`` (``_native.pyx``) packs into one number."""
    a_along_k, a_wide, b_along_k, b_wide, c_wide, several, large = (bool(bits >> i & 1) for i in range(7))
    return Product(dtype, 1 + large, a_along_k, a_wide, b_along_k, b_wide, c_wide, bits >> 7, several)


def tile_of(item: int, pieces: int) -> tuple[int, int, int]:
    """Rows, columns and depth of a tile, for numbers of so many bytes."""
    v = 16 // item
    return (8 * v * pieces, 16 * v * pieces, 4 * v) if item > 2 else (32 * pieces, 64 * pieces, 32)


class _Side:
    """One operand. Its rows are along m or n; a thread moves some lines of each of its tiles.

    ``size`` is the number of rows of a tile, ``at`` where it lies in a stage, ``pad`` what is behind the last k.
    """

    base: str  # where it begins
    end: str  # behind its last row
    stride: str  # of a row
    step: str  # of k
    far: str  # from a line to the next one, or where lines are along k, from a tile to the next one
    pointers: list[str]  # of the first tile: the lines, or the first of them where the others are evenly spaced
    types: list[str]  # of these

    def __init__(self, name: str, size: int, at: int, along_k: bool, wide: bool, pad: str) -> None:
        self.name, self.size, self.at = name, size, at
        self.along_k, self.wide, self.pad = along_k, wide, pad
        self.k: list[str] = []  # of each line, within its tile
        self.row: list[str] = []
        self.places: list[tuple[str, str]] = []  # the same two within the tile, in 32 bits
        self.types = []


class _Tile:
    """Writes the entry of a product. ``x`` collects its lines (``_compile.py``)."""

    names = ARGS  # of the numbers of the launch

    def __init__(self, x: Any, pointers: int, p: Product) -> None:
        self.x, self.pointers, self.p = x, pointers, p
        self.t, self.item = TYPES[p.dtype]
        self.result = self.t
        self.float = "float" in p.dtype
        self.v = 16 // self.item
        self.rows, self.columns, self.depth = tile_of(self.item, p.pieces)
        self.vector = f"<{self.v} x {self.t}>"
        self.count = (self.v * p.pieces) ** 2  # numbers of the result that a thread has
        self.zero, self.nothing = ("0.0", "-0.0") if self.float else ("0", "0")
        self.stage = (self.rows + self.columns) * self.depth  # numbers
        self.labels = 0
        x.outside += [
            f"@tiles = internal addrspace(3) global [{2 * self.stage * self.item} x i8] undef, align 16",
            "declare void @llvm.nvvm.barrier0()",
        ]
        if self.float and self.item > 2:
            x.outside.append(f"declare {self.t} @llvm.fma.f{8 * self.item}({self.t}, {self.t}, {self.t})")
        self.a = _Side("a", self.rows, 0, p.a_along_k, p.a_wide, self.zero)
        self.b = _Side("b", self.columns, self.rows * self.depth, p.b_along_k, p.b_wide, self.nothing)

    # ---- pieces ------------------------------------------------------------------------------------------------------
    def emit(self, text: str) -> str:
        return self.x.emit(text)

    def do(self, text: str) -> None:
        self.x.lines.append("  " + text)

    def label(self, name: str) -> None:
        self.x.lines.append(f"{name}:")

    def new(self, name: str) -> str:
        self.labels += 1
        return f"{name}.{self.labels}"

    def number(self, name: str) -> str:
        return self.x.load(self.pointers + self.names.index(name))

    def plus(self, a: str, b: str | int) -> str:
        return self.emit(f"add i64 {a}, {b}")

    def times(self, a: str, b: str | int) -> str:
        return self.emit(f"mul i64 {a}, {b}")

    def move(self, pointer: str, offset: str) -> str:
        return self.emit(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def least(self, a: str, b: str) -> str:
        return self.emit(f"select i1 {self.emit(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def shared(self, offset: str) -> str:
        """The place of a number of the stages."""
        nbytes = self.emit(f"shl i32 {offset}, {self.item.bit_length() - 1}")
        return self.emit(f"getelementptr i8, ptr addrspace(3) @tiles, i32 {nbytes}")

    def put_together(self, numbers: list[str]) -> str:
        x = "poison"
        for i, one in enumerate(numbers):
            x = self.emit(f"insertelement {self.vector} {x}, {self.t} {one}, i32 {i}")
        return x

    def parts(self, vector: str) -> list[str]:
        return [self.emit(f"extractelement {self.vector} {vector}, i32 {i}") for i in range(self.v)]

    def store_where(self, condition: str, instruction: str) -> None:
        """A store where a condition holds."""
        do, done = self.new("store"), self.new("stored")
        self.do(f"br i1 {condition}, label %{do}, label %{done}")
        self.label(do)
        self.do(instruction)
        self.do(f"br label %{done}")
        self.label(done)

    # ---- tiles from memory -------------------------------------------------------------------------------------------
    def begin(self, s: _Side, base: str, first: str, end: str, stride: str, step: str) -> None:
        """A thread's pointers to the first tile: ``first`` is its first row, ``end`` that behind the last one."""
        v, thread = self.v, "%thread.wide"
        s.base, s.stride, s.step, s.end = base, stride, step, end
        across = 4 if s.along_k else s.size // v  # threads that move a line
        lines = THREADS // across  # of a pass
        passes = (s.size if s.along_k else self.depth) // lines
        along = self.times(self.emit(f"and i64 {thread}, {across - 1}"), v)
        line = self.emit(f"lshr i64 {thread}, {across.bit_length() - 1}")
        s.pointers = []
        for i in range(passes):
            other = self.plus(line, i * lines)
            k, row = (along, other) if s.along_k else (other, along)
            near = self.emit(f"trunc i64 {k} to i32"), self.emit(f"trunc i64 {row} to i32")
            s.places.append(near)
            row = self.plus(row, first)
            if s.along_k:  # rows behind the last one are not stored: any will do
                row = self.least(row, self.plus(end, -1))
            elif s.wide:
                row = self.least(row, self.plus(end, -v))
            s.k.append(k)
            s.row.append(row)
            if s.along_k or not i:  # along the other dimension, each line is as far from the one before
                offset = self.plus(self.times(row, stride), self.times(k, step))
                s.pointers.append(self.move(base, offset))
        s.far = self.times(step, self.depth if s.along_k else lines)
        s.types = ["ptr"] * len(s.pointers)

    def lines(self, s: _Side, pointers: list[str], count: int) -> list[str]:
        """Pointers to the lines that a thread reads of a tile."""
        pointers = list(pointers)
        while len(pointers) < count:
            pointers.append(self.move(pointers[-1], s.far))
        return pointers

    def following(self, s: _Side, pointers: list[str]) -> list[str]:
        """The pointers for the next tile."""
        if s.along_k:
            return [self.move(pointer, s.far) for pointer in pointers]
        return self.lines(s, pointers, len(s.k) + 1)[-1:]

    def fetch(self, s: _Side, pointers: list[str], depth: str, whole: bool) -> list[str]:
        """The numbers of a tile that a thread moves, each list of V as a vector. ``depth``: how much of k is left."""
        v, t, found = self.v, self.t, []
        for at, k, row in zip(self.lines(s, pointers, len(s.k)), s.k, s.row, strict=True):
            if s.wide and whole:
                found.append(self.emit(f"load {self.vector}, ptr {at}, align 16"))
                continue
            if s.wide:
                inside = self.emit(f"icmp slt i64 {k}, {depth}")
                at = self.emit(f"select i1 {inside}, ptr {at}, ptr {s.base}")
                x = self.emit(f"load {self.vector}, ptr {at}, align 16")
                full = f"splat ({t} {s.pad})"
                found.append(self.emit(f"select i1 {inside}, {self.vector} {x}, {self.vector} {full}"))
                continue
            numbers = []
            for j in range(v):
                deep = self.emit(f"icmp slt i64 {self.plus(k, j) if s.along_k else k}, {depth}")
                inside = deep
                if not s.along_k:
                    inside = self.emit(f"and i1 {deep}, {self.emit(f'icmp slt i64 {self.plus(row, j)}, {s.end}')}")
                here = self.move(at, self.times(s.step if s.along_k else s.stride, j))
                here = self.emit(f"select i1 {inside}, ptr {here}, ptr {s.base}")
                x = self.emit(f"load {t}, ptr {here}, align {self.item}")
                numbers.append(self.emit(f"select i1 {deep}, {t} {x}, {t} {s.pad}"))
            found.append(self.put_together(numbers))
        return found

    def keep(self, s: _Side, stage: str, vectors: list[str]) -> None:
        """Write a tile to shared memory, one k after the other."""
        for (k, row), vector in zip(s.places, vectors, strict=True):
            turned = self.emit(f"lshr i32 {k}, {self.v.bit_length() - 1}")
            turned = self.emit(f"shl i32 {self.emit(f'and i32 {turned}, 3')}, {self.v.bit_length()}")
            place = self.emit(f"add i32 {self.emit(f'mul i32 {k}, {s.size}')}, {self.emit(f'xor i32 {row}, {turned}')}")
            place = self.emit(f"add i32 {place}, {self.emit(f'add i32 {stage}, {s.at}')}")
            if not s.along_k:
                self.do(f"store {self.vector} {vector}, ptr addrspace(3) {self.shared(place)}, align 16")
                continue
            at = self.shared(place)
            for j, x in enumerate(self.parts(vector)):
                to = self.emit(f"getelementptr i8, ptr addrspace(3) {at}, i32 {j * s.size * self.item}")
                self.do(f"store {self.t} {x}, ptr addrspace(3) {to}, align {self.item}")

    # ---- sums --------------------------------------------------------------------------------------------------------
    def multiply_add(self, a: str, b: str, c: str) -> str:
        if self.float:
            return self.emit(f"call {self.t} @llvm.fma.f{8 * self.item}({self.t} {a}, {self.t} {b}, {self.t} {c})")
        return self.emit(f"add {self.t} {self.emit(f'mul {self.t} {a}, {b}')}, {c}")

    def add(self, a: str, b: str) -> str:
        return self.emit(f"{'fadd' if self.float else 'add'} {self.t} {a}, {b}")

    def phis(
        self, name: str, t: str | list[str], count: int, start: tuple[str, list[str]], again: str
    ) -> tuple[list[str], list]:
        """Numbers that go round a loop; what they are ``again`` is said later, by the list."""
        names = [f"%{name}.{i}" for i in range(count)]
        after: list[str] = []
        for i, own in enumerate(names):
            at, kind = len(self.x.lines), t if isinstance(t, str) else t[i]
            self.x.lines.append("")
            after.append(f"{at}|  {own} = phi {kind} [ {start[1][i]}, %{start[0]} ], [ AGAIN, %{again} ]")
        return names, after

    def close(self, after: list[str], values: list[str]) -> None:
        for line, value in zip(after, values, strict=True):
            at, text = line.split("|", 1)
            self.x.lines[int(at)] = text.replace("AGAIN", value)

    def multiply(self, stage: str, sums: list[str], came_from: str) -> tuple[list[str], str]:
        """The sums after one tile of k, and the block where that ends."""
        v, pieces = self.v, self.p.pieces
        self.do("br label %steps")
        self.label("steps")
        (q,), q_after = self.phis("step", "i32", 1, (came_from, ["0"]), "steps")
        acc, acc_after = self.phis("sum", self.t, len(sums), (came_from, sums), "steps")
        turned = self.emit(f"shl i32 {q}, {v.bit_length()}")
        starts = []
        for s, own in ((self.a, self.thread_row), (self.b, self.thread_column)):
            lines = self.emit(f"mul i32 {q}, {v * s.size}")
            place = self.emit(f"add i32 {lines}, {self.emit(f'xor i32 {own}, {turned}')}")
            starts.append(self.shared(self.emit(f"add i32 {place}, {self.emit(f'add i32 {stage}, {s.at}')}")))
        acc = list(acc)
        for j in range(v):
            lists = []
            for s, at in zip((self.a, self.b), starts, strict=True):
                numbers: list[str] = []
                for piece in range(pieces):
                    offset = (j * s.size + piece * (s.size // pieces)) * self.item
                    here = self.emit(f"getelementptr i8, ptr addrspace(3) {at}, i32 {offset}")
                    numbers += self.parts(self.emit(f"load {self.vector}, ptr addrspace(3) {here}, align 16"))
                lists.append(numbers)
            for r, a in enumerate(lists[0]):
                for c, b in enumerate(lists[1]):
                    n = r * len(lists[1]) + c
                    acc[n] = self.multiply_add(a, b, acc[n])
        following = self.emit(f"add i32 {q}, 1")
        self.close(q_after, [following])
        self.close(acc_after, acc)
        self.do(f"br i1 {self.emit(f'icmp ult i32 {following}, 4')}, label %steps, label %steps.done")
        self.label("steps.done")
        return acc, "steps.done"

    # ---- the result --------------------------------------------------------------------------------------------------
    def positions(self) -> list[tuple[str, list[str]]]:
        """Index in the result of each row of a thread's numbers, and the first column of each vector."""
        v, found = self.v, []
        for piece in range(self.p.pieces):
            for i in range(v):
                own = self.emit(f"zext i32 {self.thread_row} to i64")
                row = self.plus(self.plus(own, self.first_row), piece * (self.rows // self.p.pieces) + i)
                columns = []
                for other in range(self.p.pieces):
                    own = self.emit(f"zext i32 {self.thread_column} to i64")
                    step = other * (self.columns // self.p.pieces)
                    columns.append(self.plus(self.plus(own, self.first_column), step))
                found.append((row, columns))
        return found

    def addends(self) -> list[str]:
        """Numbers to which the sums are added. Behind the last row and column any number will do."""
        p, v = self.p, self.v
        count = (v * p.pieces) ** 2
        if p.addend in (0, 2):
            return [self.nothing if p.addend == 0 else self.zero] * count
        down, across = self.number("d_m"), self.number("d_n")
        found = []
        for row, columns in self.positions():
            line = self.move(self.d, self.times(self.least(row, self.plus(self.m, -1)), down))
            if p.addend == 4:
                found += [self.emit(f"load {self.t}, ptr {line}, align {self.item}")] * (v * len(columns))
                continue
            for column in columns:
                if p.addend == 3:
                    at = self.move(line, self.times(self.least(column, self.plus(self.n, -v)), self.item))
                    found += self.parts(self.emit(f"load {self.vector}, ptr {at}, align 16"))
                    continue
                for j in range(v):
                    at = self.move(line, self.times(self.least(self.plus(column, j), self.plus(self.n, -1)), across))
                    found.append(self.emit(f"load {self.t}, ptr {at}, align {self.item}"))
        return found

    def column_at(self, line: str, column: str, stride: str) -> str:
        """Pointer to a column of the result, in a row that begins at ``line``."""
        return self.move(line, self.times(column, stride))

    def store(self, sums: list[str]) -> None:
        v, width = self.v, self.v * self.p.pieces
        down, across = self.number("c_m"), self.number("c_n")
        for i, (row, columns) in enumerate(self.positions()):
            below = self.emit(f"icmp slt i64 {row}, {self.m}")
            line = self.move(self.c, self.times(row, down))
            for k, column in enumerate(columns):
                own = sums[i * width + k * v : i * width + (k + 1) * v]
                for j, x in enumerate([self.put_together(own)] if self.p.c_wide else own):
                    here = self.plus(column, j)
                    inside = self.emit(f"and i1 {below}, {self.emit(f'icmp slt i64 {here}, {self.n}')}")
                    at = self.column_at(line, here, str(self.item) if self.p.c_wide else across)
                    t, align = (self.vector, 16) if self.p.c_wide else (self.t, self.item)
                    self.store_where(inside, f"store {t} {x}, ptr {at}, align {align}")

    # ---- all of it ---------------------------------------------------------------------------------------------------
    def place(self) -> None:
        """Tile of the block, and where both operands and the result begin."""
        down, across = self.number("down"), self.number("across")
        self.m, self.n, self.k = (self.number(name) for name in "mnk")
        block, tiles = "%block.wide", self.times(down, across)
        batch, inside = self.emit(f"udiv i64 {block}, {tiles}"), self.emit(f"urem i64 {block}, {tiles}")
        n1 = self.number("n1")
        outer, inner = self.emit(f"udiv i64 {batch}, {n1}"), self.emit(f"urem i64 {batch}, {n1}")
        group = self.times(across, GROUP)
        first = self.times(self.emit(f"udiv i64 {inside}, {group}"), GROUP)
        height = self.least(self.emit(f"sub i64 {down}, {first}"), str(GROUP))
        rest = self.emit(f"urem i64 {inside}, {group}")
        row = self.plus(first, self.emit(f"urem i64 {rest}, {height}"))
        column = self.emit(f"udiv i64 {rest}, {height}")
        self.first_row, self.first_column = self.times(row, self.rows), self.times(column, self.columns)
        self.c, at_a, at_b, self.d = (
            self.move(
                self.x.load(i, "ptr"),
                self.plus(self.times(outer, self.number(f"{s}_b0")), self.times(inner, self.number(f"{s}_b1"))),
            )
            for i, s in enumerate("cabd")
        )
        # Warps are two by two, the threads of one four by eight.
        warp, lane = self.emit("lshr i32 %thread, 5"), self.emit("and i32 %thread, 31")
        y, z = self.emit(f"lshr i32 {warp}, 1"), self.emit(f"and i32 {warp}, 1")
        y = self.emit(f"add i32 {self.emit(f'shl i32 {y}, 2')}, {self.emit(f'lshr i32 {lane}, 3')}")
        z = self.emit(f"add i32 {self.emit(f'shl i32 {z}, 3')}, {self.emit(f'and i32 {lane}, 7')}")
        self.thread_row, self.thread_column = (self.emit(f"mul i32 {i}, {self.v}") for i in (y, z))
        self.outer = outer
        self.begin_sides(at_a, at_b)

    def begin_sides(self, at_a: str, at_b: str) -> None:
        """Pointers of a thread to the first tile of each operand, of which this block's matrix begins there."""
        self.begin(self.a, at_a, self.first_row, self.m, self.number("a_m"), self.number("a_k"))
        self.begin(self.b, at_b, self.first_column, self.n, self.number("b_n"), self.number("b_k"))

    def first_depth(self) -> str:
        """The part of k that there is for the first tile."""
        return self.k

    def go_on(self, left: str) -> tuple[str, str]:
        """The part of k left after a tile, and the part of that for the next one. Loops may begin here."""
        rest = self.plus(left, -self.depth)
        return rest, rest

    def goes_on(self) -> None:
        """The end of the round that :meth:`go_on` began."""

    def ends_block(self, left: str, more: str) -> str:
        """Whether a block of k ends, of which so much is left, and there may be ``more`` of k."""
        return self.emit(f"or i1 {self.emit(f'icmp sle i64 {left}, 0')}, {self.emit(f'xor i1 {more}, true')}")

    def read(self, name: str, pointers: list[list[str]], depth: str) -> list[list[str]]:
        """A tile of both operands. ``depth``: how much of k is left."""
        sides = self.a, self.b
        if not any(s.wide for s in sides):
            return [self.fetch(s, own, depth, False) for s, own in zip(sides, pointers, strict=True)]
        self.do(f"br i1 {self.emit(f'icmp sge i64 {depth}, {self.depth}')}, label %{name}.all, label %{name}.some")
        found = []
        for way in ("all", "some"):
            self.label(f"{name}.{way}")
            found.append([self.fetch(s, own, depth, way == "all") for s, own in zip(sides, pointers, strict=True)])
            self.do(f"br label %{name}.read")
        self.label(f"{name}.read")
        return [
            [
                self.emit(f"phi {self.vector} [ {x}, %{name}.all ], [ {y}, %{name}.some ]")
                for x, y in zip(a, b, strict=True)
            ]
            for a, b in zip(*found, strict=True)
        ]

    def write(self) -> None:
        p = self.p
        self.place()
        sides = self.a, self.b
        counts = [len(s.pointers) for s in sides]
        count = self.count
        tiles = self.read("first", [s.pointers for s in sides], self.first_depth())
        for s, vectors in zip(sides, tiles, strict=True):
            self.keep(s, "0", vectors)
        self.do("call void @llvm.nvvm.barrier0()")
        start = self.addends() if p.several else []
        depth = self.number("kc")
        self.do("br label %ready")
        self.label("ready")
        self.do("br label %round")
        self.label("round")
        again = "next"
        (left,), left_after = self.phis("left", "i64", 1, ("ready", [self.k]), again)
        (stage,), stage_after = self.phis("stage", "i32", 1, ("ready", ["0"]), again)
        (block,), block_after = self.phis("block", "i64", 1, ("ready", [depth]), again)
        at, at_after = [], []
        for s, n in zip(sides, counts, strict=True):
            own, after = self.phis(f"at.{s.name}", s.types, n, ("ready", s.pointers), again)
            at.append(own)
            at_after.append(after)
        sums, sums_after = self.phis("acc", self.t, count, ("ready", [self.zero] * count), again)
        totals, totals_after = self.phis("total", self.t, len(start), ("ready", start), again)
        # The next tile comes while this one is multiplied.
        rest, deep = self.go_on(left)
        more = self.emit(f"icmp sgt i64 {rest}, 0")
        moved = [self.following(s, own) for s, own in zip(sides, at, strict=True)]
        self.do(f"br i1 {more}, label %fetch, label %compute")
        self.label("fetch")
        tiles = self.read("following", moved, deep)
        last = "following.read" if any(s.wide for s in sides) else "fetch"
        self.do("br label %compute")
        self.label("compute")
        tiles = [
            [self.emit(f"phi {self.vector} [ {x}, %{last} ], [ zeroinitializer, %round ]") for x in own]
            for own in tiles
        ]
        made, _ = self.multiply(stage, sums, "compute")
        other = self.emit(f"sub i32 {self.stage}, {stage}")
        for s, vectors in zip(sides, tiles, strict=True):
            self.keep(s, other, vectors)
        self.do("call void @llvm.nvvm.barrier0()")
        following = self.plus(block, -self.depth)
        if p.several:
            ends = self.ends_block(following, more)
            self.do(f"br i1 {ends}, label %end, label %next")
            self.label("end")
            added = [self.add(x, y) for x, y in zip(made, totals, strict=True)]
            self.do("br label %next")
            self.label("next")

            def either(t: str, x: str, y: str) -> str:
                return self.emit(f"phi {t} [ {x}, %end ], [ {y}, %steps.done ]")

            made = [either(self.t, self.zero, x) for x in made]
            added = [either(self.t, x, y) for x, y in zip(added, totals, strict=True)]
            following = either("i64", depth, following)
        else:
            self.do("br label %next")
            self.label("next")
            added = []
        for after, values in (
            (left_after, [rest]), (stage_after, [other]), (block_after, [following]),
            *zip(at_after, moved, strict=True), (sums_after, made), (totals_after, added),
        ):  # fmt: skip
            self.close(after, values)
        self.goes_on()
        self.do(f"br i1 {more}, label %round, label %result")
        self.label("result")
        if not p.several:
            added = [self.add(x, y) for x, y in zip(made, self.addends(), strict=True)]
        self.store(added)


class _Matrices(_Tile):
    """Products of float16 and bfloat16 by the matrix units, summed in float32.

    A warp has ``16 x 8`` numbers of the result many times, by ``mma.m16n8k16``. A tile lies in shared memory as it lies
    in memory, by lines of 4 to 16 chunks of 16 bytes, whose places are permuted by the line. ``ldmatrix`` turns it
    where it does not lie along k. The order in which the units add is not documented: the bits may not be the CPU's.
    """

    def __init__(self, x: Any, pointers: int, p: Product) -> None:
        super().__init__(x, pointers, p)
        self.kept = self.t  # in memory
        self.vector = "<8 x i16>"
        self.a.pad, self.b.pad = "0", "-32768"  # +0 and -0
        self.down, self.across = p.pieces, 4 * p.pieces  # matrices of a warp, along m and along n
        self.t, self.zero, self.nothing = "float", "0.0", "-0.0"  # of sums
        self.four = "{ float, float, float, float }"
        self.words = "{ i32, i32, i32, i32 }"
        part, name = ("<2 x half>", "f32.f32") if p.dtype == "float16" else ("i32", "bf16")
        self.part, self.mma = part, f"@llvm.nvvm.mma.m16n8k16.row.col.{name}"
        self.ld = "@llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"
        self.count = 4 * self.down * self.across
        x.outside += [
            f"declare {self.four} {self.mma}({', '.join([part] * 6 + ['float'] * 4)})",
            *(
                f"declare {self.words} {name}(ptr addrspace(3))"
                for name in (self.ld, self.ld.replace("b16", "trans.b16"))
            ),
        ]

    def fetch(self, s: _Side, pointers: list[str], depth: str, whole: bool) -> list[str]:
        sums, self.t = self.t, "i16"
        found = super().fetch(s, pointers, depth, whole)
        self.t = sums
        return found

    def line(self, s: _Side) -> int:
        """Bytes of a line of a tile in shared memory."""
        return 2 * (self.depth if s.along_k else s.size)

    def turned(self, s: _Side, line: str) -> str:
        """By what the places of the chunks of a line are permuted."""
        if self.line(s) > 64:
            return self.emit(f"and i32 {line}, 7")
        return self.emit(f"and i32 {self.emit(f'lshr i32 {line}, 1')}, 3")

    def keep(self, s: _Side, stage: str, vectors: list[str]) -> None:
        for (k, row), vector in zip(s.places, vectors, strict=True):
            line, along = (row, k) if s.along_k else (k, row)
            chunk = self.emit(f"xor i32 {self.emit(f'lshr i32 {along}, 3')}, {self.turned(s, line)}")
            place = self.emit(
                f"add i32 {self.emit(f'mul i32 {line}, {self.line(s)}')}, {self.emit(f'shl i32 {chunk}, 4')}"
            )
            first = self.emit(f"add i32 {stage}, {s.at}")
            place = self.emit(f"add i32 {place}, {self.emit(f'shl i32 {first}, 1')}")
            at = self.emit(f"getelementptr i8, ptr addrspace(3) @tiles, i32 {place}")
            self.do(f"store {self.vector} {vector}, ptr addrspace(3) {at}, align 16")

    def place(self) -> None:
        super().place()
        lane, warp = self.emit("and i32 %thread, 31"), self.emit("lshr i32 %thread, 5")
        self.lane = lane
        self.warp_row = self.emit(f"mul i32 {self.emit(f'lshr i32 {warp}, 1')}, {self.rows // 2}")
        self.warp_column = self.emit(f"mul i32 {self.emit(f'and i32 {warp}, 1')}, {self.columns // 2}")
        near = self.emit(f"and i32 {lane}, 7")
        bits = [self.emit(f"and i32 {self.emit(f'lshr i32 {lane}, {n}')}, 1") for n in (3, 4)]
        # Where a lane's row of the first matrices is: bytes of lines, and the chunk.
        self.own = []
        for s, first, (across, deep) in ((self.a, self.warp_row, bits), (self.b, self.warp_column, bits[::-1])):
            ahead, other = (across, deep) if s.along_k else (deep, across)
            line = self.emit(f"add i32 {near}, {self.emit(f'shl i32 {ahead}, 3')}")
            if s.along_k:
                line = self.emit(f"add i32 {line}, {first}")
            else:
                other = self.emit(f"add i32 {other}, {self.emit(f'lshr i32 {first}, 3')}")
            chunk = self.emit(f"xor i32 {other}, {self.turned(s, near)}")
            self.own.append((self.emit(f"mul i32 {line}, {self.line(s)}"), self.emit(f"shl i32 {chunk}, 4")))

    def matrices(self, s: _Side, stage: str, k: int, n: int) -> list[str]:
        """Four matrices of 8 x 8, ``16 * n`` rows from the first, at ``k``."""
        lines, chunk = self.own[0 if s is self.a else 1]
        far, along = (16 * n, k) if s.along_k else (k, 16 * n)
        place = self.emit(f"add i32 {lines}, {self.emit(f'xor i32 {chunk}, {2 * along}')}")
        place = self.emit(f"add i32 {place}, {self.emit(f'shl i32 {stage}, 1')}")
        at = self.emit(f"getelementptr i8, ptr addrspace(3) @tiles, i32 {place}")
        at = self.emit(f"getelementptr i8, ptr addrspace(3) {at}, i32 {2 * s.at + far * self.line(s)}")
        name = self.ld if s.along_k else self.ld.replace("b16", "trans.b16")
        found = self.emit(f"call {self.words} {name}(ptr addrspace(3) {at})")
        words = [self.emit(f"extractvalue {self.words} {found}, {i}") for i in range(4)]
        return words if self.part == "i32" else [self.emit(f"bitcast i32 {x} to {self.part}") for x in words]

    def multiply(self, stage: str, sums: list[str], came_from: str) -> tuple[list[str], str]:
        acc = list(sums)
        for k in range(0, self.depth, 16):
            a = [self.matrices(self.a, stage, k, n) for n in range(self.down)]
            b = [self.matrices(self.b, stage, k, n) for n in range(self.across // 2)]
            for i in range(self.down):
                for j in range(self.across):
                    at = 4 * (i * self.across + j)
                    given = [f"{self.part} {x}" for x in (*a[i], *b[j // 2][2 * (j % 2) : 2 * (j % 2) + 2])]
                    given += [f"float {x}" for x in acc[at : at + 4]]
                    made = self.emit(f"call {self.four} {self.mma}({', '.join(given)})")
                    acc[at : at + 4] = [self.emit(f"extractvalue {self.four} {made}, {n}") for n in range(4)]
        self.do("br label %steps.done")
        self.label("steps.done")
        return acc, "steps.done"

    def own_places(self) -> list[tuple[str, str]]:
        """Row and column within the tile of each pair of neighbouring numbers that a thread has."""
        row = self.emit(f"add i32 {self.warp_row}, {self.emit(f'lshr i32 {self.lane}, 2')}")
        pair = self.emit(f"shl i32 {self.emit(f'and i32 {self.lane}, 3')}, 1")
        column = self.emit(f"add i32 {self.warp_column}, {pair}")
        return [
            (self.emit(f"add i32 {row}, {16 * i + 8 * half}"), self.emit(f"add i32 {column}, {8 * j}"))
            for i in range(self.down) for j in range(self.across) for half in range(2)
        ]  # fmt: skip

    def wide(self, x: str, first: str) -> str:
        return self.plus(self.emit(f"zext i32 {x} to i64"), first)

    def addends(self) -> list[str]:
        if self.p.addend in (0, 2):
            return [self.nothing if self.p.addend == 0 else self.zero] * self.count
        down, across = self.number("d_m"), self.number("d_n")
        found = []
        for row, column in self.own_places():
            own = self.least(self.wide(row, self.first_row), self.plus(self.m, -1))
            line = self.move(self.d, self.times(own, down))
            if self.p.addend == 4:
                x = self.emit(f"load {self.kept}, ptr {line}, align 2")
                found += [self.emit(f"fpext {self.kept} {x} to float")] * 2
                continue
            for j in range(2):
                own = self.least(self.plus(self.wide(column, self.first_column), j), self.plus(self.n, -1))
                x = self.emit(f"load {self.kept}, ptr {self.move(line, self.times(own, across))}, align 2")
                found.append(self.emit(f"fpext {self.kept} {x} to float"))
        return found

    def store(self, sums: list[str]) -> None:
        down, across = self.number("c_m"), self.number("c_n")
        numbers = sums
        if self.result != "float":
            numbers = [self.emit(f"fptrunc float {x} to {self.kept}") for x in sums]
        pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
        if not self.p.c_wide:
            for (row, column), pair in zip(self.own_places(), pairs, strict=True):
                at_row = self.wide(row, self.first_row)
                below = self.emit(f"icmp slt i64 {at_row}, {self.m}")
                line = self.move(self.c, self.times(at_row, down))
                for j, x in enumerate(pair):
                    here = self.plus(self.wide(column, self.first_column), j)
                    inside = self.emit(f"and i1 {below}, {self.emit(f'icmp slt i64 {here}, {self.n}')}")
                    at = self.column_at(line, here, across)
                    align = 4 if self.result == "float" else 2
                    self.store_where(inside, f"store {self.result} {x}, ptr {at}, align {align}")
            return
        # By way of shared memory, so that a thread writes 16 bytes.
        chunks = self.columns // 8
        for (row, column), pair in zip(self.own_places(), pairs, strict=True):
            both = "poison"
            for j, x in enumerate(pair):
                both = self.emit(f"insertelement <2 x {self.kept}> {both}, {self.kept} {x}, i32 {j}")
            at = self.chunk(row, self.emit(f"lshr i32 {column}, 3"), chunks)
            offset = self.emit(f"shl i32 {self.emit(f'and i32 {column}, 7')}, 1")
            at = self.emit(f"getelementptr i8, ptr addrspace(3) {at}, i32 {offset}")
            self.do(f"store <2 x {self.kept}> {both}, ptr addrspace(3) {at}, align 4")
        self.do("call void @llvm.nvvm.barrier0()")
        for i in range(self.rows * chunks // THREADS):
            own = self.emit(f"add i32 %thread, {i * THREADS}")
            row, chunk = self.emit(f"udiv i32 {own}, {chunks}"), self.emit(f"urem i32 {own}, {chunks}")
            x = self.emit(f"load {self.vector}, ptr addrspace(3) {self.chunk(row, chunk, chunks)}, align 16")
            at_row = self.wide(row, self.first_row)
            here = self.wide(self.emit(f"shl i32 {chunk}, 3"), self.first_column)
            below = self.emit(f"icmp slt i64 {at_row}, {self.m}")
            inside = self.emit(f"and i1 {below}, {self.emit(f'icmp slt i64 {here}, {self.n}')}")
            at = self.column_at(self.move(self.c, self.times(at_row, down)), here, "2")
            self.store_where(inside, f"store {self.vector} {x}, ptr {at}, align 16")

    def chunk(self, row: str, chunk: str, chunks: int) -> str:
        """Place in shared memory where 8 numbers of a row of the result wait."""
        turned = self.emit(f"xor i32 {chunk}, {self.emit(f'and i32 {row}, 7')}")
        place = self.emit(f"add i32 {self.emit(f'mul i32 {row}, {chunks}')}, {turned}")
        return self.emit(f"getelementptr i8, ptr addrspace(3) @tiles, i32 {self.emit(f'shl i32 {place}, 4')}")


def product_tile(x: Any, pointers: int, *form: Any) -> None:
    """The schedule ``("product", *Product)``."""
    p = Product(*form)
    (_Matrices if TYPES[p.dtype][1] == 2 else _Tile)(x, pointers, p).write()

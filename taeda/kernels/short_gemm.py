"""Products of bfloat16 and 8-bit matrices by the instructions that multiply small groups of numbers at once.

A *word* is 32 bits: two bfloat16 or four 8-bit integers that follow each other along k. Both operands are packed into
blocks of 16 x 16 words, one after the other along k, zeros where there is nothing: of A with a row of C for each row of
the block, of B with a row of the block for each word of k. That is what the tile registers of AMX load and, row by row,
what the dot-product instructions of AVX-512 take, so one packing serves both *engines*:

* ``amx``: 32 x 32 numbers of C in four tile registers; one instruction multiplies two blocks.
* ``dot``: 8 x 32 numbers of C in vector registers, a word of A at a time. The instruction for integers wants those of
  A unsigned: 128 is added to them where they are packed, and 128 times the sum of a column of B taken off the result.

bfloat16 is summed in float32, and denormal numbers are taken as zero, as these instructions do; integers are exact. The
sum over k is never cut, so results depend on nothing but the operands.
"""

from __future__ import annotations

from .build import kernel
from .gemm import transpose
from .ir import F32, I32, I64, PTR, TYPES, U8, U16, U32, Function, Helper, Type, Value
from .target import amx, host, vendor

SIDE = 16  # of a block, in words
BLOCK = SIDE * SIDE * 4  # bytes
ROWS = 8  # of C that the engine ``dot`` does at a time
TASK = 256  # rows and columns of C in a task, at most: its sums take 256 KiB of the stack
DEPTH = 8  # blocks along k that are multiplied at a time: those of B then stay in the first-level cache while A passes
SUMS = {"bfloat16": F32, "int8": I32}
TURN = 0x80808080  # adds 128 to, or takes it from, each number of a word

#: Arguments of ``pack``: the size along m or n, that along k, and the strides in bytes; two batch dimensions, of which
#: ``n1`` is the inner one's size.
PACK_ARGS = ("size", "k", "x_o", "x_k", "n1", "x_b0", "x_b1")
#: Arguments of ``product``: ``steps`` is the number of blocks along k; ``init`` says whether D is added, ``d_n`` is 0
#: where a row of D is one number; ``task`` is the side of the part of C in a task; ``a_step``
#: and ``b_step`` are the bytes from one packed matrix of the batch to the next.
PRODUCT_ARGS = tuple("m n steps c_m d_m d_n init task n1 c_b0 c_b1 d_b0 d_b1 a_step b_step".split())


def engine(dtype: str) -> str:
    """What this machine multiplies ``dtype`` with: ``"amx"``, ``"dot"`` or, where it has neither, ``""``."""
    target = host()
    if dtype not in SUMS or target.vector_bytes < 64:
        return ""
    if {"bfloat16": "amx-bf16", "int8": "amx-int8"}[dtype] in amx():
        return "amx"
    if dtype == "int8":
        return "dot" if "+avx512vnni" in target.features else ""
    # Intel's processors take two cycles or more for what AMD's do in one: there float32 is as fast.
    return "dot" if "+avx512bf16" in target.features and vendor() == "AuthenticAMD" else ""


def is_unsigned(dtype: str, kind: str) -> bool:
    """Whether the engine ``kind`` wants 128 added to the numbers of A."""
    return dtype == "int8" and kind == "dot"


def group(dtype: str) -> int:
    """Numbers in a word."""
    return 4 // TYPES[dtype].bytes


def _smaller(f: Function, a: Value, b: int) -> Value:
    return f.select(a < b, a, f.i64(b))


def _words_along(f: Function, x: Value, t: Type, count: Value) -> Value:
    """A row of words that are contiguous in memory; numbers from ``count`` on are 0."""
    n = SIDE * 4 // t.bytes
    carrier = U16 if t.bytes == 2 else U8
    row = f.load(x, carrier, n, f.first(count, n))
    return f.emit(f"bitcast {row.typed} to <{SIDE} x i32>", U32, SIDE)


def _words_across(f: Function, x: Value, t: Type, step: Value, count: Value, mask: Value) -> Value:
    """The words of 16 neighbours whose numbers are ``step`` apart; numbers from ``count`` on are 0."""
    carrier = U16 if t.bytes == 2 else U8
    word = f.const(U32, 0, SIDE)
    none = f.const(mask.type, 0, SIDE)
    for i in range(4 // t.bytes):
        inside = f.select(count > i, mask, none)
        part = f.load(f.offset(x, step * i), carrier, SIDE, inside).to(U32)
        word = word | (part << (8 * t.bytes * i)) if i else part
    return word


@kernel
def pack(f: Function, dtype: str, left: bool, along: bool, kind: str = "") -> None:
    """Blocks of A (``left``) or B: ``ptr = [blocks, x]``, see :data:`PACK_ARGS`; the range counts pairs of rows of blocks.

    ``along``: x is contiguous along k, else along the other dimension, of which a pair of blocks takes a cache line.
    ``kind``: the engine that takes the blocks, this machine's if it is not given.
    """
    t = TYPES[dtype]
    g = {name: f.size(i) for i, name in enumerate(PACK_ARGS)}
    size = group(dtype)
    unsigned = left and is_unsigned(dtype, kind or engine(dtype))
    n = SIDE * size  # numbers of k in a block
    steps = (g["k"] + (n - 1)) / n
    tiles = (g["size"] + (SIDE - 1)) / SIDE
    pairs = (tiles + 1) / 2

    def block(target: Value, source: Value, rest: Value, count: Value) -> None:
        if along:
            none = f.i64(0)
            rows = [
                _words_along(f, f.offset(source, g["x_o"] * i), t, f.select(rest > i, count, none)) for i in range(SIDE)
            ]
        else:
            mask = f.first(rest, SIDE)
            rows = [
                _words_across(f, f.offset(source, g["x_k"] * (i * size)), t, g["x_k"], count - i * size, mask)
                for i in range(SIDE)
            ]
        for i, row in enumerate(rows if along is left else transpose(rows)):
            f.store(f.offset(target, i * 4 * SIDE), row ^ f.const(U32, TURN, SIDE) if unsigned else row)

    with f.loop(f.begin, f.end) as T:
        batch, tile = T.index / pairs, T.index % pairs * 2
        rest = g["size"] - tile * SIDE
        x = f.offset(f.data(1), batch / g["n1"] * g["x_b0"] + batch % g["n1"] * g["x_b1"] + tile * SIDE * g["x_o"])
        to = f.offset(f.data(0), (batch * tiles + tile) * steps * BLOCK)
        with f.loop(0, steps) as S:
            count = g["k"] - S.index * n
            source, target = f.offset(x, S.index * n * g["x_k"]), f.offset(to, S.index * BLOCK)
            block(target, source, rest, count)
            with f.when(rest > SIDE):
                block(f.offset(target, steps * BLOCK), f.offset(source, g["x_o"] * SIDE), rest - SIDE, count)


def _tile(h: Function, text: str, *types: str) -> None:
    """An AMX instruction that gives nothing back; ``text`` is its name and arguments."""
    name = text.split("(")[0]
    h.declarations[name] = f"declare void @{name}({', '.join(types)})"
    h.lines.append(f"  call void @{text}")


def _amx_block(f: Function, dtype: str, down: int, across: int) -> Helper:
    """``block(sums, a, b, row, depth, first)``: ``down x across`` blocks of C from rows of blocks of A and B.

    ``row`` and ``depth`` are the bytes of a row of blocks and of the part of it that is multiplied, ``sums`` has 32 x 32
    numbers, to which is added unless this is the ``first`` part.
    """
    h = f.helper(f"block_{down}x{across}", PTR, PTR, PTR, I64, I64, I64)
    sums, a, b, row, depth, first = h.params
    name = {"bfloat16": "tdpbf16ps", "int8": "tdpbssd"}[dtype]
    line, pitch = h.i64(4 * SIDE), h.i64(8 * SIDE)

    def move(what: str, tile: int, at: Value, stride: Value) -> None:
        _tile(h, f"llvm.x86.tile{what}d64(i8 {tile}, {at.typed}, {stride.typed})", "i8 immarg", "ptr", "i64")

    places = {i * across + j: h.offset(sums, (i * 2 * SIDE + j) * SIDE * 4) for i in range(down) for j in range(across)}
    with h.branch(first != 0) as B:
        for i in places:
            _tile(h, f"llvm.x86.tilezero(i8 {i})", "i8 immarg")
        B.otherwise()
        for i, at in places.items():
            move("load", i, at, pitch)
    with h.loop(0, depth, BLOCK) as K:
        for i in range(down):
            move("load", 4 + i, h.offset(a, K.index + row * i), line)
        for j in range(across):
            move("load", 6 + j, h.offset(b, K.index + row * j), line)
        for i in range(down):
            for j in range(across):
                _tile(h, f"llvm.x86.{name}(i8 {i * across + j}, i8 {4 + i}, i8 {6 + j})", *["i8 immarg"] * 3)
    for i, at in places.items():
        move("store", i, at, pitch)
    return h


def _dot(h: Function, dtype: str, acc: Value, a: Value, b: Value) -> Value:
    """``acc`` plus the products of the numbers in each word, summed; for integers those of ``a`` are unsigned."""
    pieces = (SIDE * 2, "bfloat") if dtype == "bfloat16" else (SIDE * 4, "i8")
    spelled = f"<{pieces[0]} x {pieces[1]}>"
    a, b = (h.emit(f"bitcast {x.typed} to {spelled}", x.type, x.lanes) for x in (a, b))
    name = "llvm.x86.avx512bf16.dpbf16ps.512" if dtype == "bfloat16" else "llvm.x86.avx512.vpdpbusd.512"
    h.declarations[name] = f"declare {acc.llvm} @{name}({acc.llvm}, {spelled}, {spelled})"
    text = f"call {acc.llvm} @{name}({acc.typed}, {spelled} {a.text}, {spelled} {b.text})"
    return h.emit(text, acc.type, SIDE)


def _dot_block(f: Function, dtype: str, across: int) -> Helper:
    """``block(sums, a, b, row, depth, first, rows)``: as :func:`_amx_block` for so many rows of one row of blocks of A."""
    h = f.helper(f"block_{across}", PTR, PTR, PTR, I64, I64, I64, I64)
    sums, a, b, row, depth, first, count = h.params
    t = SUMS[dtype]
    zero = h.const(t, 0, SIDE)
    with h.loop(0, count, ROWS) as R:
        with h.loop(0, depth, BLOCK, carry=[zero] * (ROWS * across)) as K:
            with h.loop(0, SIDE, carry=list(K.carry)) as W:
                acc = list(W.carry)
                line = K.index + W.index * (4 * SIDE)
                words = [h.load(h.offset(b, line + row * j), U32, SIDE) for j in range(across)]
                at = h.offset(a, K.index + R.index * (4 * SIDE) + W.index * 4)
                for i in range(ROWS):
                    x = h.splat(h.load(h.offset(at, i * 4 * SIDE), U32), SIDE)
                    for j in range(across):
                        acc[i * across + j] = _dot(h, dtype, acc[i * across + j], x, words[j])
                W.carry = tuple(acc)
            K.carry = W.carry
        for i in range(ROWS):
            for j in range(across):
                at = h.offset(sums, (R.index + i) * (8 * SIDE) + j * 4 * SIDE)
                h.store(at, K.carry[i * across + j] + h.select(first != 0, zero, h.load(at, t, SIDE)))
    return h


def _column_sums(f: Function, across: int) -> Helper:
    """``columns(sums, b, row, depth, first)``: 128 times the sums of columns of ``across`` blocks of B."""
    h = f.helper(f"columns_{across}", PTR, PTR, I64, I64, I64)
    sums, b, row, depth, first = h.params
    zero, turn = h.const(I32, 0, SIDE), h.const(U32, TURN, SIDE)
    with h.loop(0, depth, 4 * SIDE, carry=[zero] * across) as W:
        words = [h.load(h.offset(b, W.index + row * j), U32, SIDE) for j in range(across)]
        W.carry = [_dot(h, "int8", acc, turn, word) for acc, word in zip(W.carry, words, strict=True)]
    for j, acc in enumerate(W.carry):
        at = h.offset(sums, j * 4 * SIDE)
        h.store(at, acc + h.select(first != 0, zero, h.load(at, I32, SIDE)))
    return h


class _Blocks:
    """What computes 32 x 32 sums on one engine."""

    def __init__(self, f: Function, dtype: str, kind: str):
        self.f, self.kind = f, kind
        if kind == "amx":
            f.features = ("amx-tile", {"bfloat16": "amx-bf16", "int8": "amx-int8"}[dtype])
            self.helpers = {(d, a): _amx_block(f, dtype, d, a) for d in (1, 2) for a in (1, 2)}
        else:
            self.rows = {a: _dot_block(f, dtype, a) for a in (1, 2)}
        self.column_sums = {a: _column_sums(f, a) for a in (1, 2)} if is_unsigned(dtype, kind) else {}

    def begin(self) -> None:
        """Configure the tile registers: eight of 16 rows of 64 bytes."""
        f = self.f
        if self.kind == "amx":
            shape = f.scratch(64)
            f.store(shape, f.const(U8, 0, 64))
            f.store(shape, f.const(U8, 1))
            for i in range(8):
                f.store(f.offset(shape, 16 + 2 * i), f.const(U16, 4 * SIDE))
                f.store(f.offset(shape, 48 + i), f.const(U8, SIDE))
            _tile(f, f"llvm.x86.ldtilecfg({shape.typed})", "ptr")

    def end(self) -> None:
        """Give the tile registers back, so that the system need not save them."""
        if self.kind == "amx":
            _tile(self.f, "llvm.x86.tilerelease()")

    def compute(self, sums: Value, a: Value, b: Value, part: tuple[Value, Value, Value], m: Value, n: Value) -> None:
        """The sums of up to 32 rows and columns; ``part`` is ``(row, depth, first)``."""
        f = self.f
        with f.branch(n > SIDE) as N:
            self._columns(sums, a, b, part, m, 2)
            N.otherwise()
            self._columns(sums, a, b, part, m, 1)

    def sum_columns(self, sums: Value, b: Value, part: tuple[Value, Value, Value], n: Value) -> None:
        """What to take off the sums of up to 32 columns, for the engine that wants the numbers of A unsigned."""
        f = self.f
        with f.branch(n > SIDE) as N:
            f.call(self.column_sums[2], sums, b, *part)
            N.otherwise()
            f.call(self.column_sums[1], sums, b, *part)

    def _columns(self, sums: Value, a: Value, b: Value, part, m: Value, across: int) -> None:
        f = self.f
        if self.kind == "amx":
            with f.branch(m > SIDE) as M:
                f.call(self.helpers[2, across], sums, a, b, *part)
                M.otherwise()
                f.call(self.helpers[1, across], sums, a, b, *part)
            return
        f.call(self.rows[across], sums, a, b, *part, _smaller(f, m, SIDE))
        with f.when(m > SIDE):
            below = f.offset(sums, SIDE * 8 * SIDE)
            f.call(self.rows[across], below, f.offset(a, part[0]), b, *part, _smaller(f, m - SIDE, SIDE))


@kernel
def product(f: Function, dtype: str, out: str, kind: str) -> None:
    """``C = A @ B + D`` from packed operands: ``ptr = [C, A, B, D]``, see :data:`PRODUCT_ARGS`; the range counts tasks.

    A task is up to ``TASK x TASK`` numbers of C. Its sums stay in the stack while parts of ``DEPTH`` blocks along k are added.
    """
    t, to_type, acc = TYPES[dtype], TYPES[out], SUMS[dtype]
    g = {name: f.size(i) for i, name in enumerate(PRODUCT_ARGS)}
    blocks = _Blocks(f, dtype, kind)
    pair, row = 2 * SIDE, g["steps"] * BLOCK
    room, column_sums = f.scratch(TASK * TASK * 4), f.scratch(TASK * 4)
    parts = (g["steps"] + (DEPTH - 1)) / DEPTH
    most = (g["steps"] + (parts - 1)) / parts * BLOCK
    mt, nt = ((g[x] + (g["task"] - 1)) / g["task"] for x in "mn")

    def finish(sums: Value, c: Value, d: Value, m: Value, n: Value, columns: Value) -> None:
        """Convert the sums and add D."""
        masks = [f.first(n, SIDE), f.first(n - SIDE, SIDE)]
        with f.loop(0, m) as R:
            to, add = f.offset(c, R.index * g["c_m"]), f.offset(d, R.index * g["d_m"])
            for j, mask in enumerate(masks):
                at = f.offset(sums, R.index * (8 * SIDE) + j * 4 * SIDE)
                if blocks.column_sums:
                    f.store(at, f.load(at, acc, SIDE) - f.load(f.offset(columns, j * 4 * SIDE), acc, SIDE))
                with f.when(g["init"] != 0), f.branch(g["d_n"] == 0) as B:
                    x = f.splat(f.load(add, t), SIDE)
                    f.store(at, f.load(at, acc, SIDE) + x.to(acc))
                    B.otherwise()
                    x = f.load(f.offset(add, j * SIDE * t.bytes), t, SIDE, mask)
                    f.store(at, f.load(at, acc, SIDE) + x.to(acc))
                f.store(f.offset(to, j * SIDE * to_type.bytes), f.load(at, acc, SIDE).to(to_type), mask)

    blocks.begin()
    with f.loop(f.begin, f.end) as T:
        batch, inside = T.index / (mt * nt), T.index % (mt * nt)
        i, j = batch / g["n1"], batch % g["n1"]
        top, left = inside / nt * g["task"], inside % nt * g["task"]
        m_end, n_end = (f.select(x - s < g["task"], x, s + g["task"]) for x, s in ((g["m"], top), (g["n"], left)))
        c = f.offset(f.data(0), i * g["c_b0"] + j * g["c_b1"])
        d = f.offset(f.data(3), i * g["d_b0"] + j * g["d_b1"])
        a, b = f.offset(f.data(1), batch * g["a_step"]), f.offset(f.data(2), batch * g["b_step"])
        with f.loop(0, row, most) as K:
            rest = row - K.index
            depth, last = f.select(rest < most, rest, most), rest <= most
            with f.loop(left, n_end, pair) as N, f.loop(top, m_end, pair) as M:
                m, n = m_end - M.index, n_end - N.index
                sums = f.offset(room, (N.index - left) * (TASK * 4) + (M.index - top) * (pair * 4))
                at_a = f.offset(a, M.index / SIDE * row + K.index)
                at_b = f.offset(b, N.index / SIDE * row + K.index)
                part, columns = (row, depth, (K.index == 0).to(I64)), f.offset(column_sums, (N.index - left) * 4)
                blocks.compute(sums, at_a, at_b, part, m, n)
                if blocks.column_sums:
                    with f.when(M.index == top):
                        blocks.sum_columns(columns, at_b, part, n)
                with f.when(last):
                    to = f.offset(c, M.index * g["c_m"] + N.index * to_type.bytes)
                    add = f.offset(d, M.index * g["d_m"] + N.index * g["d_n"])
                    finish(sums, to, add, _smaller(f, m, pair), n, columns)
    blocks.end()

"""Products of bfloat16 and 8-bit matrices by instructions that multiply small groups of numbers at once.

A *word* is 32 bits: two bfloat16 or four 8-bit integers that are consecutive along k. Both operands are packed into
blocks of 16 x 16 words, one after the other along k, padded with zeros. A block of A has one row for each row of C; a
block of B has one row for each word of k. The tile registers of AMX load such blocks, and the dot-product instructions
of AVX-512 take them row by row, so one packing serves both *engines*:

* ``amx``: 32 x 32 numbers of C in four tile registers; one instruction multiplies two blocks.
* ``dot``: 8 x 32 numbers of C in vector registers, one word of A at a time, which may then be read in place. The
  instruction for integers takes those of B unsigned: packing adds 128 to them, and 128 times the sum of a row of A is
  subtracted from the result.

As in these instructions, bfloat16 is summed in float32 and denormal numbers count as zero. Integers are exact. The sum
over k is never split between tasks, so results depend on the operands alone.
"""

from __future__ import annotations

from typing import NamedTuple

from .build import kernel
from .dot import fold
from .ir import F32, I32, I64, PTR, TYPES, U8, U16, U32, Function, Helper, Type, Value
from .target import amx, here, vendor
from .tile import smaller, transpose

SIDE = 16  # side of a block, in words
BLOCK = SIDE * SIDE * 4  # bytes
ROWS = 8  # rows of C that the engine ``dot`` does at a time
TASK, ROWS_OF_TASK = 256 * 256, 256  # most numbers and rows of C in a task: its sums take 256 KiB of the stack
#: Blocks along k that are multiplied at a time: B's blocks nearly stay in the first-level cache while A passes.
DEPTH = {"amx": 8, "dot": 16}
SUMS = {"bfloat16": F32, "int8": I32}
SIGN_BITS = 0x80808080  # adds 128 to, or subtracts it from, each number of a word

#: Arguments of ``pack``: the size along m or n, the size along k, and the strides in bytes; two batch dimensions, the
#: inner one of size ``n1``.
PACK_ARGS = ("size", "k", "x_o", "x_k", "n1", "x_b0", "x_b1")
#: Arguments of ``product``: ``steps`` blocks along k, and ``words`` words of A. A may be read in place (engine
#: ``dot``): ``a_m`` is the bytes from one row of words to the next, ``a_k`` and ``a_tile`` those between blocks along k
#: and along m. ``init``: whether D is added; ``d_n`` is 0 where a row of D is one number. ``down`` and ``across`` are
#: the rows and columns of C in a task; ``b_step`` the bytes from one packed B of the batch to the next.
PRODUCT_ARGS = tuple(
    "m n steps words a_m a_k a_tile c_m d_m d_n init down across n1 a_b0 a_b1 c_b0 c_b1 d_b0 d_b1 b_step".split()
)


def engine(dtype: str) -> str:
    """The engine for ``dtype`` on this machine: ``"amx"``, ``"dot"`` or, where it has neither, ``""``."""
    target = here()
    if dtype not in SUMS or target.vector_bytes < 64:
        return ""
    if {"bfloat16": "amx-bf16", "int8": "amx-int8"}[dtype] in amx():
        return "amx"
    if dtype == "int8":
        return "dot" if "+avx512vnni" in target.features else ""
    # Intel's processors take two cycles or more where AMD's take one: there float32 is as fast.
    return "dot" if "+avx512bf16" in target.features and vendor() == "AuthenticAMD" else ""


def is_unsigned(dtype: str, kind: str) -> bool:
    """Whether the engine ``kind`` takes the numbers of B with 128 added."""
    return dtype == "int8" and kind == "dot"


def group(dtype: str) -> int:
    """Numbers in a word."""
    return 4 // TYPES[dtype].bytes


def _smaller(f: Function, a: Value, b: int) -> Value:
    return f.select(a < b, a, f.i64(b))


def _words_along(f: Function, x: Value, t: Type, count: Value | None) -> Value:
    """A row of words that are contiguous in memory; numbers from ``count`` on are 0."""
    n = SIDE * 4 // t.bytes
    carrier = U16 if t.bytes == 2 else U8
    row = f.load(x, carrier, n, None if count is None else f.first(count, n))
    return f.emit(f"bitcast {row.typed} to <{SIDE} x i32>", U32, SIDE)


def _words_across(f: Function, x: Value, t: Type, step: Value, count: Value, mask: Value) -> Value:
    """The words of 16 neighbours whose numbers are ``step`` bytes apart; numbers from ``count`` on are 0."""
    carrier = U16 if t.bytes == 2 else U8
    word = f.const(U32, 0, SIDE)
    none = f.const(mask.type, 0, SIDE)
    for i in range(4 // t.bytes):
        inside = f.select(count > i, mask, none)
        part = f.load(f.offset(x, step * i), carrier, SIDE, inside).to(U32)
        word = word | (part << (8 * t.bytes * i)) if i else part
    return word


def interleaved(rows: list[Value]) -> list[Value]:
    """Rows of 32 columns as 32 words, in two vectors: the word of a column has its number of each row."""
    lanes = rows[0].lanes
    if len(rows) == 2:
        order = [i // 2 + lanes * (i % 2) for i in range(2 * lanes)]
        return [rows[0].shuffle(part, rows[1]) for part in (order[:lanes], order[lanes:])]
    first, second = (rows[i].shuffle([j // 2 + lanes * (j % 2) for j in range(2 * lanes)], rows[i + 1]) for i in (0, 2))
    order = [2 * (i // 4) + i % 2 + 2 * lanes * (i // 2 % 2) for i in range(4 * lanes)]
    return [first.shuffle(part, second) for part in (order[: 2 * lanes], order[2 * lanes :])]


@kernel
def pack(f: Function, dtype: str, left: bool, along: bool, kind: str = "") -> None:
    """Blocks of A (``left``) or B: ``ptr = [blocks, x]``, see :data:`PACK_ARGS`; the range counts pairs of rows of
    blocks.

    ``along``: x is contiguous along k; else along the other dimension, where a pair of blocks takes a cache line.
    ``kind``: the engine that takes the blocks; by default this machine's.
    """
    t = TYPES[dtype]
    g = {name: f.size(i) for i, name in enumerate(PACK_ARGS)}
    size = group(dtype)
    unsigned = not left and is_unsigned(dtype, kind or engine(dtype))
    n = SIDE * size  # numbers of k in a block
    steps = (g["k"] + (n - 1)) / n
    tiles = (g["size"] + (SIDE - 1)) / SIDE
    pairs = (tiles + 1) / 2

    def put(target: Value, i: int, row: Value) -> None:
        f.store(f.offset(target, i * 4 * SIDE), row ^ f.const(U32, SIGN_BITS, SIDE) if unsigned else row)

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
            put(target, i, row)

    def both(target: Value, source: Value, rest: Value, count: Value) -> None:
        block(target, source, rest, count)
        with f.when(rest > SIDE):
            block(f.offset(target, steps * BLOCK), f.offset(source, g["x_o"] * SIDE), rest - SIDE, count)

    def flat(row: Value) -> Value:
        return f.emit(f"bitcast {row.typed} to <{SIDE} x i32>", U32, SIDE)

    def whole_pair(target: Value, source: Value) -> None:
        """Two full blocks."""
        if along:
            for j in range(2):
                start = f.offset(source, g["x_o"] * (j * SIDE))
                rows = [_words_along(f, f.offset(start, g["x_o"] * i), t, None) for i in range(SIDE)]
                for i, row in enumerate(rows if left else transpose(rows)):
                    put(f.offset(target, j * steps * BLOCK), i, row)
            return
        carrier = U16 if t.bytes == 2 else U8
        words = []
        for i in range(SIDE):
            rows = [f.load(f.offset(source, g["x_k"] * (i * size + j)), carrier, 2 * SIDE) for j in range(size)]
            words.append([flat(row) for row in interleaved(rows)])
        for j, block in enumerate(zip(*words, strict=True)):
            for i, row in enumerate(transpose(list(block)) if left else block):
                put(f.offset(target, j * steps * BLOCK), i, row)

    with f.loop(f.begin, f.end) as T:
        batch, tile = T.index / pairs, T.index % pairs * 2
        rest = g["size"] - tile * SIDE
        x = f.offset(f.data(1), batch / g["n1"] * g["x_b0"] + batch % g["n1"] * g["x_b1"] + tile * SIDE * g["x_o"])
        to = f.offset(f.data(0), (batch * tiles + tile) * steps * BLOCK)
        with f.loop(0, steps) as S:
            count = g["k"] - S.index * n
            source, target = f.offset(x, S.index * n * g["x_k"]), f.offset(to, S.index * BLOCK)
            with f.branch((rest >= 2 * SIDE) & (count >= n)) as B:
                whole_pair(target, source)
                B.otherwise()
                both(target, source, rest, count)


def _tile(h: Function, text: str, *types: str) -> None:
    """An AMX instruction without a result; ``text`` is its name and arguments."""
    name = text.split("(")[0]
    h.declarations[name] = f"declare void @{name}({', '.join(types)})"
    h.lines.append(f"  call void @{text}")


def _amx_block(f: Function, dtype: str, down: int, across: int) -> Helper:
    """``block(sums, a, b, row, depth, first)``: ``down x across`` blocks of C from rows of blocks of A and B.

    ``row`` and ``depth`` are the bytes of a row of blocks and of the part of it that is multiplied. The product is
    added to the 32 x 32 ``sums``; the ``first`` part overwrites them.
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


def dot(h: Function, dtype: str, acc: Value, a: Value, b: Value) -> Value:
    """``acc`` plus the products of the numbers in each word, summed; for integers, ``a``'s numbers are unsigned."""
    pieces = (acc.lanes * 2, "bfloat") if dtype == "bfloat16" else (acc.lanes * 4, "i8")
    spelled = f"<{pieces[0]} x {pieces[1]}>"
    a, b = (h.emit(f"bitcast {x.typed} to {spelled}", x.type, x.lanes) for x in (a, b))
    name = f"llvm.x86.{'avx512bf16.dpbf16ps' if dtype == 'bfloat16' else 'avx512.vpdpbusd'}.{acc.lanes * 32}"
    h.declarations[name] = f"declare {acc.llvm} @{name}({acc.llvm}, {spelled}, {spelled})"
    text = f"call {acc.llvm} @{name}({acc.typed}, {spelled} {a.text}, {spelled} {b.text})"
    return h.emit(text, acc.type, acc.lanes)


def _dot_block(f: Function, dtype: str, across: int) -> Helper:
    """``block(sums, a, b, row, steps, words, first, a_m, a_k, m)``: as :func:`_amx_block` for up to ``ROWS`` rows of A.

    Rows past ``m`` repeat the last one, and words past ``words`` are not read: A may be in place.
    """
    h = f.helper(f"block_{across}", PTR, PTR, PTR, *[I64] * 7)
    sums, a, b, row, steps, words, first, a_m, a_k, m = h.params
    t = SUMS[dtype]
    zero = h.const(t, 0, SIDE)
    lines = [h.offset(a, a_m * (_smaller(h, m - 1, i) if i else 0)) for i in range(ROWS)]
    with h.loop(0, steps, carry=[h.i64(0), b, *[zero] * (ROWS * across)]) as K:
        start, panel, *acc = K.carry
        with h.loop(0, _smaller(h, words - K.index * SIDE, SIDE), carry=acc) as W:
            acc = list(W.carry)
            at = start + W.index * 4
            right = [h.load(h.offset(panel, W.index * (4 * SIDE) + row * j), U32, SIDE) for j in range(across)]
            for i in range(ROWS):
                left = h.splat(h.load(h.offset(lines[i], at), U32), SIDE)
                for j in range(across):
                    acc[i * across + j] = dot(h, dtype, acc[i * across + j], right[j], left)
            W.carry = tuple(acc)
        K.carry = (start + a_k, h.offset(panel, BLOCK), *W.carry)
    for i in range(ROWS):
        for j in range(across):
            at = h.offset(sums, i * (8 * SIDE) + j * 4 * SIDE)
            h.store(at, K.carry[2 + i * across + j] + h.select(first != 0, zero, h.load(at, t, SIDE)))
    return h


def _row_sums(f: Function) -> Helper:
    """``rows(sums, a, steps, words, first, a_m, a_k, m)``: 128 times the sums of ``ROWS`` rows of A, of which ``m``
    exist."""
    h = f.helper("row_sums", PTR, PTR, *[I64] * 6)
    sums, a, steps, words, first, a_m, a_k, m = h.params
    signs, zero = h.const(U32, SIGN_BITS, SIDE), h.const(I32, 0, SIDE)
    lines = [h.offset(a, a_m * (_smaller(h, m - 1, i) if i else 0)) for i in range(ROWS)]
    with h.loop(0, steps, carry=[h.i64(0), *[zero] * ROWS]) as K:
        start, *acc = K.carry
        mask = h.first(words - K.index * SIDE, SIDE)
        words_of = [h.load(h.offset(line, start), U32, SIDE, mask) for line in lines]
        K.carry = (start + a_k, *(dot(h, "int8", *pair) for pair in zip(acc, [signs] * ROWS, words_of, strict=True)))
    before = h.select(first != 0, zero.slice(0, ROWS), h.load(sums, I32, ROWS))
    h.store(sums, fold(list(K.carry[1:])) + before)
    return h


class _Part(NamedTuple):
    """A part of the sum over k: bytes of a row of blocks of B, its blocks and words, whether it is the first, A's
    steps."""

    row: Value
    steps: Value
    words: Value
    first: Value
    a_m: Value
    a_k: Value


class _Blocks:
    """Computes 32 columns of sums on one engine, ``down`` rows at a time."""

    def __init__(self, f: Function, dtype: str, kind: str):
        self.f, self.kind, self.down = f, kind, 2 * SIDE if kind == "amx" else ROWS
        if kind == "amx":
            f.features = ("amx-tile", {"bfloat16": "amx-bf16", "int8": "amx-int8"}[dtype])
            self.helpers = {(d, a): _amx_block(f, dtype, d, a) for d in (1, 2) for a in (1, 2)}
        else:
            self.helpers = {(1, a): _dot_block(f, dtype, a) for a in (1, 2)}
        self.row_sums = _row_sums(f) if is_unsigned(dtype, kind) else None

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
        """Release the tile registers, so that the system need not save them."""
        if self.kind == "amx":
            _tile(self.f, "llvm.x86.tilerelease()")

    def compute(self, sums: Value, a: Value, b: Value, part: _Part, m: Value, n: Value) -> None:
        """The sums of up to ``down`` rows and 32 columns."""
        with self.f.branch(n > SIDE) as N:
            self._columns(sums, a, b, part, m, 2)
            N.otherwise()
            self._columns(sums, a, b, part, m, 1)

    def sum_rows(self, sums: Value, a: Value, part: _Part, m: Value) -> None:
        """The correction of each row's sums, for the engine that takes the numbers of B unsigned."""
        self.f.call(self.row_sums, sums, a, part.steps, part.words, part.first, part.a_m, part.a_k, m)

    def _columns(self, sums: Value, a: Value, b: Value, part: _Part, m: Value, across: int) -> None:
        f = self.f
        if self.kind == "dot":
            f.call(
                self.helpers[1, across],
                sums, a, b, part.row, part.steps, part.words, part.first, part.a_m, part.a_k, m,
            )  # fmt: skip
            return
        depth = part.steps * BLOCK
        with f.branch(m > SIDE) as M:
            f.call(self.helpers[2, across], sums, a, b, part.row, depth, part.first)
            M.otherwise()
            f.call(self.helpers[1, across], sums, a, b, part.row, depth, part.first)


@kernel
def product(f: Function, dtype: str, out: str, kind: str) -> None:
    """``C = A @ B + D`` from packed operands: ``ptr = [C, A, B, D]``, see :data:`PRODUCT_ARGS`; the range counts tasks.

    A task is up to ``TASK`` numbers of C. Its sums stay on the stack while parts of ``DEPTH`` blocks along k are added.
    """
    t, to_type, acc = TYPES[dtype], TYPES[out], SUMS[dtype]
    g = {name: f.size(i) for i, name in enumerate(PRODUCT_ARGS)}
    blocks = _Blocks(f, dtype, kind)
    pair, row = 2 * SIDE, g["steps"] * BLOCK
    room, row_sums = f.scratch(TASK * 4), f.scratch(ROWS_OF_TASK * 4)
    parts = (g["steps"] + (DEPTH[kind] - 1)) / DEPTH[kind]
    most = (g["steps"] + (parts - 1)) / parts
    mt, nt = ((g[x] + (g[side] - 1)) / g[side] for x, side in (("m", "down"), ("n", "across")))

    def finish(sums: Value, c: Value, d: Value, m: Value, n: Value, taken: Value) -> None:
        """Convert the sums and add D."""
        masks = [f.first(n, SIDE), f.first(n - SIDE, SIDE)]

        def rows(masks: list[Value | None], added: bool) -> None:
            with f.loop(0, m, carry=[sums, c, d]) as R:
                line, to, add = R.carry
                one = f.splat(f.load(add, t), SIDE) if added else None
                for j, mask in enumerate(masks):
                    x = f.load(f.offset(line, j * 4 * SIDE), acc, SIDE)
                    if blocks.row_sums:
                        x = x - f.splat(f.load(f.offset(taken, R.index * 4), acc), SIDE)
                    if one is not None and mask is not None:
                        there = f.select(g["d_n"] == 0, f.const(mask.type, 0, SIDE), mask)
                        more = f.load(f.offset(add, j * SIDE * t.bytes), t, SIDE, there)
                        x = x + f.select(g["d_n"] == 0, one, more).to(acc)
                    f.store(f.offset(to, j * SIDE * to_type.bytes), x.to(to_type), mask)
                R.carry = (f.offset(line, 8 * SIDE), f.offset(to, g["c_m"]), f.offset(add, g["d_m"]))

        with f.branch(g["init"] != 0) as B:
            rows(masks, True)
            B.otherwise()
            with f.branch(n >= pair) as B2:
                rows([None, None], False)
                B2.otherwise()
                rows(masks, False)

    blocks.begin()
    with f.loop(f.begin, f.end) as T:
        batch, inside = T.index / (mt * nt), T.index % (mt * nt)
        i, j = batch / g["n1"], batch % g["n1"]
        # Down first: consecutive tasks share their columns of B, the larger part.
        top, left = inside % mt * g["down"], inside / mt * g["across"]
        m_end, n_end = smaller(f, g["m"], top + g["down"]), smaller(f, g["n"], left + g["across"])
        c = f.offset(f.data(0), i * g["c_b0"] + j * g["c_b1"])
        d = f.offset(f.data(3), i * g["d_b0"] + j * g["d_b1"])
        a = f.offset(f.data(1), i * g["a_b0"] + j * g["a_b1"])
        b = f.offset(f.data(2), batch * g["b_step"])
        with f.loop(0, g["steps"], most) as K:
            steps = smaller(f, g["steps"] - K.index, most)
            last = K.index + most >= g["steps"]
            part = _Part(row, steps, g["words"] - K.index * SIDE, (K.index == 0).to(I64), g["a_m"], g["a_k"])
            with f.loop(left, n_end, pair) as N, f.loop(top, m_end, blocks.down) as M:
                m, n = _smaller(f, m_end - M.index, blocks.down), n_end - N.index
                to = f.offset(c, M.index * g["c_m"] + N.index * to_type.bytes)
                with f.when(last), f.loop(0, m) as R:  # the lines of C arrive while the sums are computed
                    for at in range(0, pair * to_type.bytes, 64):
                        f.prefetch(f.offset(to, R.index * g["c_m"] + at))
                place = (N.index - left) * (g["down"] * 4) + (M.index - top) * (pair * 4)
                sums = f.offset(room, f.select(parts > 1, place, f.i64(0)))
                at_a = f.offset(a, M.index / SIDE * g["a_tile"] + M.index % SIDE * g["a_m"] + K.index * g["a_k"])
                at_b = f.offset(b, N.index / SIDE * row + K.index * BLOCK)
                blocks.compute(sums, at_a, at_b, part, m, n)
                taken = f.offset(row_sums, (M.index - top) * 4)
                if blocks.row_sums:
                    with f.when(N.index == left):
                        blocks.sum_rows(taken, at_a, part, m)
                with f.when(last):
                    finish(sums, to, f.offset(d, M.index * g["d_m"] + N.index * g["d_n"]), m, n, taken)
    blocks.end()

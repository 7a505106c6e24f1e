"""The functions of ``_core`` that launches run, as kernels: for exported libraries that run without ``_core``.

Most launches run a kernel. Some run a function of ``_core`` that cuts the range further and calls a kernel for each
part, or moves memory. Each has the same name and arguments here as there and gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable

from .copy import TRANSPOSE_ARGS
from .indexing import ROW_ARGS
from .ir import F32, F64, I32, I64, PTR, Function, Type, Value
from .routine import atomic_exchange, atomic_store

#: Where the address of a kernel is among the numbers of such a launch.
KERNEL_AT = {"run_piece": 0, "transpose_piece": len(TRANSPOSE_ARGS), "write_range": len(ROW_ARGS)}


def _call(f: Function, name: str, *args: Value) -> None:
    """A function of the C library whose result is an address."""
    f.intrinsic(name, PTR, 1, *args)


def _least(f: Function, a: Value, b: Value) -> Value:
    return f.select(a < b, a, b)


def _kernel(f: Function, number: Value) -> Value:
    return f.emit(f"inttoptr {number.typed} to ptr", PTR)


def _word(f: Function, base: Value, index: Value | int) -> Value:
    return f.load(f.offset(base, index * 8), I64)


def copy_piece(f: Function) -> None:
    """Copy bytes [begin, end); the two may overlap."""
    to, source = (f.offset(f.data(k), f.begin) for k in (0, 1))
    _call(f, "memmove", to, source, f.end - f.begin)


def zero_piece(f: Function) -> None:
    """Clear bytes [begin, end)."""
    f.intrinsic("memset", PTR, 1, f.offset(f.data(0), f.begin), f.const(I32, 0), f.end - f.begin)


def run_piece(f: Function) -> None:
    """Elements [begin, end) of a pointwise kernel, as rows and parts of rows.

    Numbers: the kernel, memory operands, dimensions, its own numbers; sizes, strides of each operand, and its own.
    """
    nmem, nd, narg = f.size(1), f.size(2), f.size(3)
    sizes = f.offset(f.arg, 32)
    strides = f.offset(sizes, nd * 8)
    local, at_ptr, index = f.scratch(8 * (2 + 2 * 14 + 2 * 32)), f.scratch(8 * 14), f.scratch(8 * 64)
    _call(f, "memcpy", local, f.offset(strides, nmem * nd * 8), narg * 8)
    n0 = _word(f, sizes, nd - 1)
    with f.while_([f.begin]) as pieces:
        at = pieces.carry[0]
        pieces.test(at < f.end)
        with f.loop(0, nd, carry=[at]) as L:
            d = nd - 1 - L.index
            size, rest = _word(f, sizes, d), L.carry[0]
            f.store(f.offset(index, d * 8), rest % size)
            L.carry = (rest / size,)
        with f.loop(0, nmem) as L:
            start = f.load(f.offset(f.ptr, L.index * 8), PTR)
            with f.loop(0, nd, carry=[start]) as D:
                step = _word(f, index, D.index) * _word(f, strides, L.index * nd + D.index)
                D.carry = (f.offset(D.carry[0], step),)
            f.store(f.offset(at_ptr, L.index * 8), D.carry[0])
        column = _word(f, index, nd - 1)
        left = f.end - at
        part = (column != 0) | (left < n0)
        wide = nd > 1
        second = f.select(wide, nd - 2, 0)
        limit = f.select(wide, _word(f, sizes, second) - _word(f, index, second), 1)
        length = f.select(part, _least(f, n0 - column, left), n0)
        rows = f.select(part, f.i64(1), _least(f, left / n0, limit))
        f.store(local, length)
        f.store(f.offset(local, 8), rows)
        f.call_kernel(_kernel(f, f.size(0)), at_ptr, local, f.i64(0), rows)
        pieces.carry = (at + length * rows,)


def transpose_piece(f: Function) -> None:
    """Units [begin, end) of a transposing kernel, for each position of the outer dimensions."""
    count = len(TRANSPOSE_ARGS)
    kernel, units, outside = (f.size(count + i) for i in range(3))
    pair = f.scratch(16)
    with f.while_([f.begin]) as L:
        at = L.carry[0]
        L.test(at < f.end)
        position = at / units
        first = at - position * units
        stop = _least(f, units, first + f.end - at)
        with f.loop(0, outside, carry=[position, f.data(0), f.data(1)]) as D:
            dims = f.offset(f.arg, (outside - 1 - D.index) * 24 + (count + 3) * 8)
            rest, to, source = D.carry
            size = _word(f, dims, 0)
            k = rest % size
            D.carry = (rest / size, f.offset(to, k * _word(f, dims, 1)), f.offset(source, k * _word(f, dims, 2)))
        f.store(pair, D.carry[1])
        f.store(f.offset(pair, 8), D.carry[2])
        f.call_kernel(_kernel(f, kernel), pair, f.arg, first, stop)
        L.carry = (at + stop - first,)


def copy_rows(f: Function) -> None:
    """Chunks [begin, end) of contiguous rows, to rows at a larger stride."""
    nbytes, target_row, chunk, chunks = (f.size(i) for i in range(4))
    with f.loop(f.begin, f.end) as L:
        row = L.index / chunks
        start = (L.index - row * chunks) * chunk
        to = f.offset(f.data(0), row * target_row + start)
        _call(f, "memcpy", to, f.offset(f.data(1), row * nbytes + start), _least(f, nbytes - start, chunk))


def sum_nothing(f: Function) -> None:
    """Rows [begin, end) of a product over an empty dimension: zeros, or the addend."""
    n, item = f.size(2), f.size(3)
    with f.loop(f.begin, f.end) as L:
        row, i, j = L.index % f.size(0), L.index / f.size(0) / f.size(1), L.index / f.size(0) % f.size(1)
        c = f.offset(f.data(0), i * f.size(5) + j * f.size(6) + row * f.size(7))
        d = f.offset(f.data(1), i * f.size(8) + j * f.size(9) + row * f.size(10))
        with f.branch(f.size(4) == 0) as b:
            f.intrinsic("memset", PTR, 1, c, f.const(I32, 0), n * item)
            b.otherwise()
            with f.loop(0, n) as column:
                at = f.offset(d, column.index * f.size(11))
                _call(f, "memcpy", f.offset(c, column.index * item), at, item)


def write_range(f: Function) -> None:
    """The rows of the indexed side that are in ranges [begin, end), by the whole index."""
    count = len(ROW_ARGS)
    kernel, units, low, nbytes = (f.size(count + i) for i in range(4))
    own = f.scratch(8 * count)
    _call(f, "memcpy", own, f.arg, f.i64(8 * count))
    for name, bound in (("low", f.begin), ("high", f.end)):
        f.store(f.offset(own, 8 * ROW_ARGS.index(name)), low + bound * nbytes)
    f.call_kernel(_kernel(f, kernel), f.ptr, own, f.i64(0), units)


def in_slot(f: Function) -> None:
    """Call the kernel in the first pointer with a free slot of memory as its last pointer."""
    count, size, pointers = f.size(0), f.size(1), f.size(2)
    own, memory = f.scratch(8 * 16), f.data(1)
    _call(f, "memcpy", own, f.offset(f.ptr, 16), pointers * 8)
    with f.while_([f.i64(0)]) as L:
        slot = L.carry[0]
        taken = atomic_exchange(f, f.offset(memory, slot * 64), f.i64(1))
        L.test(taken != 0)
        L.carry = ((slot + 1) % count,)
    f.store(f.offset(own, pointers * 8), f.offset(memory, count * 64 + slot * size))
    f.call_kernel(f.data(0), own, f.offset(f.arg, 24), f.begin, f.end)
    atomic_store(f, f.offset(memory, slot * 64), f.i64(0))


def transpose_groups(f: Function) -> None:
    """Weights of groups [begin, end) with inputs first: ``to[c, m, chosen taps]`` from ``w[m, c, taps]``."""
    item, m, c = f.size(0), f.size(3), f.size(4)
    kernel, first, every, count = ([f.size(k + i) for i in range(3)] for k in (5, 8, 11, 14))
    taps, kept = kernel[0] * kernel[1] * kernel[2], count[0] * count[1] * count[2]
    with f.loop(f.begin, f.end) as group:
        to = f.offset(f.data(0), group.index * f.size(1) * item)
        w = f.offset(f.data(1), group.index * f.size(2) * item)
        with f.loop(0, c) as i, f.loop(0, m) as j, f.loop(0, kept) as tap:
            z, rest = tap.index % count[2], tap.index / count[2]
            y, x = rest % count[1], rest / count[1]
            place = ((first[0] + x * every[0]) * kernel[1] + first[1] + y * every[1]) * kernel[2]
            source = f.offset(w, ((j.index * c + i.index) * taps + place + first[2] + z * every[2]) * item)
            target = f.offset(to, ((i.index * m + j.index) * kept + tap.index) * item)
            _call(f, "memcpy", target, source, item)


def _divide(f: Function, t: Type) -> None:
    f.store(f.data(0), f.load(f.data(0), t) / f.load(f.data(1), t))


def divide_float(f: Function) -> None:
    """One number by another."""
    _divide(f, F32)


def divide_double(f: Function) -> None:
    """One number by another."""
    _divide(f, F64)


def take_apart(f: Function) -> None:
    """Split complex numbers: so many real parts, then as many imaginary ones."""
    half, count = f.size(1) / 2, f.size(0)
    with f.loop(0, count) as L:
        for k in (0, 1):
            source = f.offset(f.data(1), (L.index * 2 + k) * half)
            _call(f, "memcpy", f.offset(f.data(0), (count * k + L.index) * half), source, half)


def join_parts(f: Function) -> None:
    """``x + i y`` of complex ``x`` and ``y``: numbers of the one, then of the other."""
    count = f.size(0)
    with f.branch(f.size(1) == 8) as b:
        _join(f, count, F32)
        b.otherwise()
        _join(f, count, F64)


def _join(f: Function, count: Value, t: Type) -> None:
    with f.loop(0, count) as L:
        at = L.index * (2 * t.bytes)
        to, x = f.offset(f.data(0), at), f.offset(f.data(1), at)
        y = f.offset(x, count * (2 * t.bytes))
        (a, b), (c, d) = ((f.load(z, t), f.load(f.offset(z, t.bytes), t)) for z in (x, y))
        f.store(to, a - d)
        f.store(f.offset(to, t.bytes), b + c)


LARGEST, ROOT = 2, 1  # how `join_norms` joins; other numbers: the sum


def join_norms(f: Function) -> None:
    """The norm of all, from the chunks' norms, added in order; for the order of infinity the largest, or a NaN."""
    largest = f.size(1) == LARGEST
    with f.loop(0, f.size(0), carry=[f.const(F64, 0)]) as L:
        x, total = f.load(f.offset(f.data(1), L.index * 8), F64), L.carry[0]
        kept = (x <= total) | (total != total)
        L.carry = (f.select(largest, f.select(kept, total, x), total + x),)
    total = L.carry[0]
    f.store(f.data(0), f.select(f.size(1) == ROOT, f.unary("sqrt", total), total))


def give_number(f: Function) -> None:
    """A number, or the one in memory."""
    source = f.data(1)
    with f.branch(f.address(source) == 0) as b:
        f.store(f.data(0), f.size(0))
        b.otherwise()
        f.store(f.data(0), f.load(source, I64))


#: By the name in ``_core``: a function that writes the kernel into a builder.
HOSTED: dict[str, Callable[[Function], None]] = {
    f.__name__: f
    for f in (
        run_piece, copy_piece, zero_piece, transpose_piece, copy_rows, sum_nothing, write_range, in_slot,
        transpose_groups, divide_float, divide_double, take_apart, join_parts, join_norms,
        give_number,
    )
} | {"zero_lines": zero_piece}  # fmt: skip


def hosted(name: str) -> Function:
    """The function of ``_core`` of that name as a kernel."""
    f = Function()
    f.label = name
    HOSTED[name](f)
    return f

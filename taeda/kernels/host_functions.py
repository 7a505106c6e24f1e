"""Kernels that launches of ``_core`` run around other kernels, and those that move memory.

Most launches run a kernel. Some run one of these, which cuts the range further and calls a kernel for each part, or
moves memory. Those that move bytes are also functions of ``_core``, which run where LLVM has not been loaded. They have
the same names and arguments here as there and give the same bits. The kernels here are for devices and for exported
libraries, which run without ``_core``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from .build import build
from .copy import TRANSPOSE_ARGS
from .indexing import ROW_ARGS
from .ir import I32, I64, PTR, Function, Type, Value
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


def _copy_words(f: Function, to: Value, source: Value, count: Value) -> None:
    with f.loop(0, count * 8, 8) as L:
        f.store(f.offset(to, L.index), f.load(f.offset(source, L.index), I64))


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
    _copy_words(f, local, f.offset(strides, nmem * nd * 8), narg)
    n0 = _word(f, sizes, nd - 1)
    with f.while_([f.begin]) as pieces:
        at = pieces.carry[0]
        pieces.test(at < f.end)
        with f.loop(1, nd, carry=[at]) as L:
            d = nd - L.index
            size, rest = _word(f, sizes, d), L.carry[0]
            f.store(f.offset(index, d * 8), rest % size)
            L.carry = (rest / size,)
        f.store(index, L.carry[0])
        with f.loop(0, nmem, carry=[strides]) as L:
            start = f.load(f.offset(f.ptr, L.index * 8), PTR)
            with f.loop(0, nd, carry=[start, *L.carry]) as D:
                step = _word(f, index, D.index) * f.load(D.carry[1], I64)
                D.carry = f.offset(D.carry[0], step), f.offset(D.carry[1], 8)
            f.store(f.offset(at_ptr, L.index * 8), D.carry[0])
            L.carry = (D.carry[1],)
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


def write_range(f: Function) -> None:
    """The rows of the indexed side that are in ranges [begin, end), by the whole index."""
    count = len(ROW_ARGS)
    kernel, units, low, nbytes = (f.size(count + i) for i in range(4))
    own = f.scratch(8 * count)
    _copy_words(f, own, f.arg, f.i64(count))
    for name, bound in (("low", f.begin), ("high", f.end)):
        f.store(f.offset(own, 8 * ROW_ARGS.index(name)), low + bound * nbytes)
    f.call_kernel(_kernel(f, kernel), f.ptr, own, f.i64(0), units)


def in_slot(f: Function) -> None:
    """Call the kernel in the first pointer with a free slot of memory as its last pointer."""
    count, size, pointers = f.size(0), f.size(1), f.size(2)
    own, memory = f.scratch(8 * 16), f.data(1)
    _copy_words(f, own, f.offset(f.ptr, 16), pointers)
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
    with f.loop(f.begin, f.end) as group:
        for t in (I32, I64):
            with f.when(f.size(0) == t.bytes):
                _transpose_group(f, group.index, t)


def _transpose_group(f: Function, group: Value, t: Type) -> None:
    """By blocks, for the cache."""
    m, c, item = f.size(3), f.size(4), t.bytes
    kernel, first, every, count = ([f.size(k + i) for i in range(3)] for k in (5, 8, 11, 14))
    taps, kept = kernel[0] * kernel[1] * kernel[2], count[0] * count[1] * count[2]
    to, w = (f.offset(f.data(k), group * f.size(k + 1) * item) for k in (0, 1))

    def for_each(copy: Callable[[Value, Value], None]) -> None:
        with f.loop(0, m, 16) as rows, f.loop(0, c, 16) as columns:
            last, stop = _least(f, columns.index + 16, c), _least(f, rows.index + 16, m)
            with f.loop(columns.index, last) as i:
                source = f.offset(w, (rows.index * c + i.index) * taps * item)
                target = f.offset(to, (i.index * m + rows.index) * kept * item)
                with f.loop(rows.index, stop, carry=[target, source]) as j:
                    copy(*j.carry)
                    j.carry = f.offset(j.carry[0], kept * item), f.offset(j.carry[1], c * taps * item)

    def nine(target: Value, source: Value) -> None:
        parts = [(8 * item * k // 2, f.load(f.offset(source, 8 * item * k // 2), t, 4)) for k in range(2)]
        parts.append((8 * item, f.load(f.offset(source, 8 * item), t)))
        for at, part in parts:
            f.store(f.offset(target, at), part)

    def whole(target: Value, source: Value) -> None:
        for at, lanes in f.groups(0, taps, 4):
            f.store(f.offset(target, at * item), f.load(f.offset(source, at * item), t, lanes))

    def chosen(target: Value, source: Value) -> None:
        with f.loop(0, count[0], carry=[target]) as x:
            with f.loop(0, count[1], carry=x.carry) as y:
                line = (first[0] + x.index * every[0]) * kernel[1] + first[1] + y.index * every[1]
                start = f.offset(source, (line * kernel[2] + first[2]) * item)
                with f.loop(0, count[2], carry=[*y.carry, start]) as z:
                    at, place = z.carry
                    f.store(at, f.load(place, t))
                    z.carry = f.offset(at, item), f.offset(place, every[2] * item)
                y.carry = z.carry[:1]
            x.carry = y.carry

    with f.branch(kept == taps) as all_taps:
        with f.branch(taps == 9) as known:
            for_each(nine)
            known.otherwise()
            for_each(whole)
        all_taps.otherwise()
        for_each(chosen)


#: By the name in ``_core``: a function that writes the kernel into a builder.
HOST_FUNCTIONS: dict[str, Callable[[Function], None]] = {
    f.__name__: f
    for f in (
        run_piece, copy_piece, zero_piece, transpose_piece, copy_rows, write_range, in_slot, transpose_groups,
    )
}  # fmt: skip

#: Names of those that were compiled for this processor, by address: devices and recorders tell them by it.
NAMES: dict[int, str] = {}


def host_function(name: str) -> Function:
    f = Function()
    f.label = name
    HOST_FUNCTIONS[name](f)
    return f


def _without_probe(name: str) -> Function:
    """The kernel of that name; profilers count what it calls."""
    f = host_function(name)
    f.inner = True
    return f


def address(name: str) -> int:
    """The address of the kernel of that name, compiled for this thread's place."""
    found = build(_without_probe(name), functools.partial(_without_probe, name))
    NAMES[found] = name
    return found

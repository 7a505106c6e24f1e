"""Kernels that read or write where an index says: rows, elements along a dimension, masks, counts.

Kernels that only move data know only the size of an item. An index is int64 and contiguous. A kernel that reads by
index checks it at the same time and reports errors through a slot (``bad``). A kernel that writes runs after
:func:`check_bounds`, so nothing is written before all of the index is checked. It reads the slot, because on a device
the check's result may not have been read yet. Writes to one place happen in the order of the index, whatever the number
of threads.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

from .build import kernel
from .copy import CARRIER, copy_bytes, copy_item, fill_bytes
from .ir import BF16, BOOL, F16, F32, F64, I32, I64, TYPES, U8, U16, U32, U64, Function, Type, Value
from .rowwise import WARP
from .scalar.basic import trunc, whole_number

ACCUMULATE = ("add", "mul", "min", "max")
GROUP = 512  # index positions whose offsets are computed together, on the stack


def checked(f: Function, i: Value, size: Value, wrap: bool) -> tuple[Value, Value]:
    """The index ``i`` within ``[0, size)`` (0 where it is out of range) and 1 where it was out of range, else 0."""
    if wrap:
        i = f.select(i < 0, i + size, i)
    good = i.to(U64) < size.to(U64)
    return f.select(good, i, 0), f.select(good, f.const(I64, 0, i.lanes), 1)


def report(f: Function, slot: Value, bad: Value) -> None:
    """Set the int64 at ``slot`` where ``bad`` is not zero. Threads may race, but they write the same value."""
    with f.when(bad != 0):
        f.store(slot, f.i64(1))


def end_if_good(f: Function) -> Value:
    """The end of the range of a kernel that writes: its beginning where the check before it has found an error."""
    return f.select(f.load(f.data(1), I64) == 0, f.end, f.begin)


def combine(f: Function, op: str, a: Value, b: Value) -> Value:
    """``a`` and ``b`` accumulated by ``op``; NaN wins in ``min`` and ``max``."""
    if op == "add":
        return a + b
    if op == "mul":
        return a * b
    if a.type is BOOL:
        return a | b if op == "max" else a & b
    better = a < b if op == "min" else a > b
    if a.type.kind == "f":
        better = better | (a != a)
    return f.select(better, a, b)


def accumulate(f: Function, dtype: str, op: str, to: Value, x: Value, mask: Value | None = None) -> None:
    """``*to = *to op x``; 16-bit floats compute in float32 and round at each step."""
    t = TYPES[dtype]
    old = f.load(to, t, x.lanes, mask)
    if t in (F16, BF16):
        f.store(to, combine(f, op, old.to(F32), x.to(F32)).to(t), mask)
    else:
        f.store(to, combine(f, op, old, x), mask)


def accumulate_run(f: Function, dtype: str, op: str, to: Value, at: Value, n: Value) -> None:
    """:func:`accumulate` of ``n`` contiguous items."""
    t = TYPES[dtype]
    wide = f.lanes(t)

    def some(i: Value, lanes: int, mask: Value | None = None) -> None:
        x = f.load(f.offset(at, i * t.bytes), t, lanes, mask)
        x = x.to(F32) if t in (F16, BF16) else x  # no vector of 16-bit floats may cross from one block to another
        accumulate(f, dtype, op, f.offset(to, i * t.bytes), x, mask)

    if f.threads > 1:
        for first, _, mask in f.strips(0, n, wide):
            some(first, wide, mask)
        return
    with f.loop(0, n - (4 * wide - 1), 4 * wide) as K:
        for k in range(4):
            some(K.index + k * wide, wide)
    with f.loop(n & f.i64(-4 * wide), n - (wide - 1), wide) as K:
        some(K.index, wide)
    with f.loop(n & f.i64(-wide), n) as K:
        some(K.index, 1)


# ---- index arithmetic -----------------------------------------------------------------------------------------------
def _each_vector(f: Function, body) -> Value:
    """Run ``body(index, lanes, mask)`` over ``[begin, end)`` in vectors of int64; return the or of the bits it
    returns."""
    wide = f.lanes(I64)
    with f.loop(f.begin, f.end, wide, carry=[f.const(I64, 0, wide)]) as L:
        mask = f.first(f.end - L.index, wide)
        bad = body(L.index, wide, mask)
        L.carry = (L.carry[0] | f.select(mask, bad, 0),)
    return L.carry[0].reduce(lambda a, b: a | b)


@kernel
def check_bounds(f: Function, wrap: bool) -> None:
    """Whether every index is in range: ``ptr = [bad, index]``, ``arg = [size]``, ``[begin, end)`` are positions."""
    size = f.size(0)

    def body(i, lanes, mask):
        x = f.load(f.offset(f.data(1), i * 8), I64, lanes, mask)
        return checked(f, x, f.splat(size, lanes), wrap)[1]

    report(f, f.data(0), _each_vector(f, body))


@kernel
def extent(f: Function) -> None:
    """The smallest and the largest of ``n`` indices, at least one: ``ptr = [found, index]``, ``arg = [n]``."""
    n, index = f.size(0), f.data(1)
    lanes = f.lanes(I64)

    def wider(x, low, high):
        return [f.select(x < low, x, low), f.select(x > high, x, high)]

    with f.loop(0, n - (lanes - 1), lanes, carry=[f.splat(f.load(index, I64), lanes)] * 2) as L:
        L.carry = wider(f.load(f.offset(index, L.index * 8), I64, lanes), *L.carry)
    found = [L.carry[0].lane(0), L.carry[1].lane(0)]
    for i in range(1, lanes):
        found = [wider(L.carry[0].lane(i), *found)[0], wider(L.carry[1].lane(i), *found)[1]]
    with f.loop(n & f.i64(-lanes), n, carry=found) as L:
        L.carry = wider(f.load(f.offset(index, L.index * 8), I64), *L.carry)
    for i in range(2):
        f.store(f.offset(f.data(0), 8 * i), L.carry[i])


@kernel
def offsets(f: Function, count: int) -> None:
    """Byte offsets of ``count`` indices taken together, negative ones counted from the end.

    ``ptr = [offset, bad, index 0, index 1, ...]``, ``arg = [size 0, stride 0, size 1, ...]``.
    """

    def body(i, lanes, mask):
        total, bad = f.const(I64, 0, lanes), f.const(I64, 0, lanes)
        for k in range(count):
            x = f.load(f.offset(f.data(2 + k), i * 8), I64, lanes, mask)
            x, wrong = checked(f, x, f.splat(f.size(2 * k), lanes), True)
            total, bad = total + x * f.size(2 * k + 1), bad | wrong
        f.store(f.offset(f.data(0), i * 8), total, mask)
        return bad

    report(f, f.data(1), _each_vector(f, body))


#: The arguments of :func:`rows`: index positions, columns and rows of what one moves, positions of the inner of two
#: outer dimensions; byte strides of all these on the indexed side and on the plain one; the size and the byte stride of
#: the indexed dimension. Of rows that are put only those at byte offsets within ``[low, high)`` are moved: threads that
#: keep the order of the index share these. Warps share ``parts`` of as many bytes, one behind the other.
ROW_ARGS = tuple(
    "nb n0 n1 pb far_n0 far_n1 far_pa far_pb near_b near_n0 near_n1 near_pa near_pb size stride low high parts".split()
)
#: The arguments of :func:`along` before those of outer dimensions: sizes of ``d`` and ``j``, and items of ``j`` in a
#: chunk; the size of the indexed dimension; byte strides on the indexed side, on the plain one and in the index.
ALONG_ARGS = tuple("nd nj chunk size far_d far_j near_d near_j index_d index_j".split())


class _Rows:
    """The addresses of :func:`rows`: the indexed side (``far``), the plain side (``near``) and the index."""

    def __init__(self, f: Function, how: str, trusted: bool):
        self.f, self.how, self.trusted = f, how, trusted
        self.numbers = {name: f.size(i) for i, name in enumerate(ROW_ARGS)}

    def __getattr__(self, name: str) -> Value:
        return self.numbers[name]

    def outer(self, p: Value, short: bool = False) -> tuple[Value, Value]:
        """Offsets of the outer position ``p`` on the far and on the near side; ``short``: it has 32 bits. A GPU divides
        64 bits by a call, which takes registers."""
        a = (p.to(U32) / self.pb.to(U32)).to(I64) if short else p / self.pb
        b = p - a * self.pb
        return a * self.far_pa + b * self.far_pb, a * self.near_pa + b * self.near_pb

    def index(self, b: Value, lanes: int = 1, mask: Value | None = None) -> tuple[Value, Value]:
        """Byte offsets of the index positions from ``b`` on, and whether they are out of range."""
        f, wrap = self.f, self.how == "wrap"
        at = f.load(f.offset(f.data(3), b * 8), I64, lanes, mask)
        good = f.const(I64, 0, lanes)
        if self.how == "offset":
            return at, good
        size = f.splat(self.size, lanes)
        if self.trusted:
            return (f.select(at < 0, at + size, at) if wrap else at) * self.stride, good
        at, bad = checked(f, at, size, wrap)
        return at * self.stride, bad if mask is None else f.select(mask, bad, 0)

    def owns(self, place: Value) -> Value:
        """Whether this task writes the row at that byte offset."""
        f = self.f
        return (place >= f.splat(self.low, place.lanes)) & (place < f.splat(self.high, place.lanes))

    def in_order(self, dst: Value, src: Value, body: Callable[[Value, Value], None]) -> None:
        """``body(to, from)`` for each run of the rows that are put, those to one place in the order of the index.

        A unit does all of the index for one ``p``; where threads share it, for one of the parts of the indexed side.
        They look at as many positions at once as they are.
        """
        f = self.f
        with f.loop(f.begin, end_if_good(f)) as P:
            p = P.index
            if f.threads > 1:
                few = (P.index.to(U32) / self.parts.to(U32)).to(I64)  # there is one part, or few units
                p = f.select(self.parts == 1, P.index, few)
                part = self.high - self.low
                low = self.low + (P.index - p * self.parts) * part
                self.numbers.update(low=low, high=low + part)
            far_p, near_p = self.outer(p, short=f.threads > 1)
            to, at = f.offset(dst, far_p), f.offset(src, near_p)
            if f.threads == 1:
                with f.loop(0, self.nb) as B:
                    self._run(to, at, B.index, body)
                return
            with f.loop(0, self.nb, f.threads) as G:
                mask = f.first(self.nb - G.index, f.threads)
                own = f.mask_bits(self.owns(self.index(G.index, f.threads, mask)[0]) & mask)
                with f.while_([own]) as B:
                    B.test(B.carry[0] != 0)
                    (left,) = B.carry
                    before = f.unary("ctpop", (left & -left) - 1)  # the lanes before the first one
                    self._run(to, at, G.index + before, body)
                    B.carry = (left & (left - 1),)

    def _run(self, to: Value, at: Value, b: Value, body: Callable[[Value, Value], None]) -> None:
        f, place = self.f, self.index(b)[0]
        to, at = f.offset(to, place), f.offset(at, b * self.near_b)
        with f.loop(0, f.select(self.owns(place), self.n1, f.i64(0))) as J:
            body(f.offset(to, J.index * self.far_n1), f.offset(at, J.index * self.near_n1))


def _share(f: Function) -> None:
    """Let the threads of a warp share a run of bytes, on a target without vectors."""
    if f.vector_bytes < 16:
        f.threads = WARP


@kernel
def rows(f: Function, item: int, action: str, inner: str, how: str) -> None:
    """Move rows between an indexed side and a plain side: ``far[p, index[b], q]`` and ``near[p, b, q]``.

    ``action`` is ``get`` (near from far) or ``put`` (far from near). ``inner`` is what a row is: ``1`` one item, where
    ``p`` is 1; ``e`` one item; ``c`` a run of bytes on both sides; ``v`` items at strides; ``f`` one item of the plain
    side, repeated (put only). With ``1`` and ``e`` a near side that is written is contiguous along the index. ``how``
    is what the index holds: ``offset`` bytes, or positions to be multiplied by a stride, ``plain`` or ``wrap``
    (negative ones count from the end). ``get`` checks positions; for ``put`` they must have been checked before.

    ``ptr = [dst, bad, src, index]``; see :data:`ROW_ARGS`. ``[begin, end)`` are pairs ``(p, b)``; with ``e``, and where
    rows are put, they are the ``p``.
    """
    dst, src = f.data(0), f.data(2)
    get = action == "get"
    if inner == "c" or (not get and inner in "vf"):
        _share(f)
    r = _Rows(f, how, not get)
    if not get and inner in "cvf":
        return r.in_order(dst, src, lambda to, at: _put_run(f, item, inner, to, r.far_n0, at, r.near_n0, r.n0))
    if inner == "e" or (get and inner == "1"):
        return _items(f, item, get, inner == "1", how, r)
    with f.loop(f.begin, f.end if get else end_if_good(f), carry=[f.i64(0)]) as L:
        p = L.index / r.nb if inner != "1" else f.i64(0)
        b = L.index - p * r.nb if inner != "1" else L.index
        place, bad = r.index(b)
        far, near = place, b * r.near_b
        if inner != "1":
            far_p, near_p = r.outer(p)
            far, near = far + far_p, near + near_p
        to, at = (near, far) if get else (far, near)
        to, at = f.offset(dst, to), f.offset(src, at)
        if inner == "1":
            copy_item(f, to, at, item)
        else:
            with f.loop(0, r.n1) as J:
                a, c = f.offset(to, J.index * r.near_n1), f.offset(at, J.index * r.far_n1)
                if inner == "c":
                    copy_bytes(f, a, c, r.n0 * item, item)
                else:
                    with f.loop(0, r.n0) as K:
                        copy_item(f, f.offset(a, K.index * r.near_n0), f.offset(c, K.index * r.far_n0), item)
        L.carry = (L.carry[0] | bad,)
    if get and how != "offset":
        report(f, f.data(1), L.carry[0])


def _put_run(
    f: Function, item: int, inner: str, to: Value, to_step: Value, at: Value, at_step: Value, n: Value
) -> None:
    """``n`` items, ``inner`` as in :func:`rows`; the threads of a warp have neighbouring ones."""
    t, lanes = CARRIER[item]
    if inner == "c":
        copy_bytes(f, to, at, n * item, item)
    elif f.threads > 1:
        for k in range(lanes):
            with f.while_([n, f.offset(to, k * t.bytes), f.offset(at, k * t.bytes)]) as L:
                left, a, b = L.carry
                L.test(left > 0)
                f.scatter(a, to_step, f.gather(b, at_step, t, f.threads, left), left)
                L.carry = (left - f.threads, f.offset(a, to_step * f.threads), f.offset(b, at_step * f.threads))
    elif inner == "f":
        x = f.load(at, t, lanes)
        with f.branch(to_step == item) as dense:
            fill_bytes(f, to, n * item, x, item)
            dense.otherwise()
            with f.loop(0, n) as K:
                f.store(f.offset(to, K.index * to_step), x)
    else:
        with f.loop(0, n) as K:
            copy_item(f, f.offset(to, K.index * to_step), f.offset(at, K.index * at_step), item)


def _items(f: Function, item: int, get: bool, flat: bool, how: str, r: _Rows) -> None:
    """Single items for each outer position (``flat``: there is one). A near side that is written is contiguous along
    the index."""
    if get:
        wide = f.lanes(I64)
        first, stop = (f.begin, f.end) if flat else (f.i64(0), r.nb)
        places = f.scratch(GROUP * 8)
        with f.loop(first, stop, GROUP, carry=[f.const(I64, 0, wide)]) as G:
            count = f.select(stop - G.index < GROUP, stop - G.index, f.i64(GROUP))

            def offsets_at(i: Value, mask: Value | None) -> tuple[Value, Value]:
                return r.index(G.index + i, wide, mask)

            G.carry = (G.carry[0] | _place(f, places, count, offsets_at),)
            to = f.offset(f.data(0), G.index * item)
            if flat:
                _fetch(f, item, to, f.data(2), places, count)
            else:
                with f.loop(f.begin, f.end) as P:
                    far, near = r.outer(P.index)
                    _fetch(f, item, f.offset(to, near), f.offset(f.data(2), far), places, count)
        if how != "offset":
            report(f, f.data(1), G.carry[0].reduce(lambda a, b: a | b))
        return
    with f.loop(f.begin, end_if_good(f)) as P:
        far, near = r.outer(P.index)
        to, at = f.offset(f.data(0), far), f.offset(f.data(2), near)
        _in_groups(f, r, lambda place, b: copy_item(f, f.offset(to, place), f.offset(at, b * r.near_b), item))


def _in_groups(f: Function, r: _Rows, body: Callable[[Value, Value], None]) -> None:
    """``body(byte offset, position)`` for all of the index in order; the index is read ahead of what the body
    writes."""

    def some(first: Value, count: int) -> None:
        places = [r.index(first + k)[0] for k in range(count)]
        for k, place in enumerate(places):
            body(place, first + k)

    for first, count in f.groups(0, r.nb, 4):
        some(first, count)


def _place(
    f: Function, places: Value, count: Value, offsets_at: Callable[[Value, Value | None], tuple[Value, Value]]
) -> Value:
    """Put ``count`` byte offsets into ``places``. Returns which are out of range, lane by lane.

    ``offsets_at`` gives a vector of them from a position on, and which are out of range.
    """
    wide, wrong = f.lanes(I64), f.const(I64, 0, f.lanes(I64))
    start: Value | int = 0
    for masked in False, True:  # only the last vector: masked loads are slow with AVX2
        with f.loop(start, count if masked else count - (wide - 1), wide, carry=[wrong]) as L:
            at, bad = offsets_at(L.index, f.first(count - L.index, wide) if masked else None)
            f.store(f.offset(places, L.index * 8), at)
            L.carry = (L.carry[0] | bad,)
        start, wrong = L.index, L.carry[0]
    return wrong


def _fetch(f: Function, item: int, to: Value, src: Value, places: Value, count: Value, unit: int = 1) -> None:
    """Items from ``src + unit * places[j]`` into contiguous memory.

    They are loaded one by one: on Zen 4 a gather instruction took about twice as long (docs/notes/0012).
    """
    group = 8

    def some(index: Value, n: int) -> None:
        at = [f.offset(src, f.load(f.offset(places, index * 8 + 8 * k), I64) * unit) for k in range(n)]
        for k in range(n):
            copy_item(f, f.offset(to, index * item + k * item), at[k], item)

    for first, n in f.groups(0, count, group):
        some(first, n)


@kernel
def accumulate_rows(f: Function, dtype: str, op: str, inner: str, how: str) -> None:
    """``far[p, index[b], q] op= near[p, b, q]``, in the order of ``b``. Arguments as in :func:`rows`.

    ``[begin, end)`` are the ``p``: one thread does all of ``b`` for the rows that it owns. ``op`` is one of
    ``ACCUMULATE``; ``inner`` is ``1`` (where it owns all rows), ``c`` or ``v``.
    """
    t = TYPES[dtype]
    dst, src = f.data(0), f.data(2)
    if inner in "cv":
        _share(f)
    r = _Rows(f, how, True)
    if inner == "c":
        return r.in_order(dst, src, lambda to, at: accumulate_run(f, dtype, op, to, at, r.n0))
    if inner == "v":

        def strided(to: Value, at: Value) -> None:
            if f.threads > 1:
                return _accumulate_strided(f, t, op, to, r.far_n0, at, r.near_n0, r.n0)
            with f.loop(0, r.n0) as K:
                here = f.load(f.offset(at, K.index * r.near_n0), t)
                accumulate(f, dtype, op, f.offset(to, K.index * r.far_n0), here)

        return r.in_order(dst, src, strided)
    with f.loop(f.begin, end_if_good(f)) as P:
        far_p, near_p = r.outer(P.index)
        base, origin = f.offset(dst, far_p), f.offset(src, near_p)

        def single(place: Value, b: Value) -> None:
            accumulate(f, dtype, op, f.offset(base, place), f.load(f.offset(origin, b * r.near_b), t))

        _in_groups(f, r, single)


def _accumulate_strided(
    f: Function, t: Type, op: str, to: Value, to_step: Value, at: Value, at_step: Value, n: Value
) -> None:
    """:func:`accumulate` of ``n`` items, of which the threads of a warp have neighbouring ones."""
    with f.loop(0, n, f.threads) as L:
        left, place = n - L.index, f.offset(to, L.index * to_step)
        half = t in (F16, BF16)  # as in `accumulate_run`: here LLVM makes blocks of the access to each item
        wide = F32 if half else t
        x = f.gather(f.offset(at, L.index * at_step), at_step, t, f.threads, left).to(wide)
        old = f.gather(place, to_step, t, f.threads, left).to(wide)
        new = combine(f, op, old, x).to(t)
        f.scatter(place, to_step, new.bits(U16) if half else new.to(U8) if t is BOOL else new, left)


# ---- along a dimension ----------------------------------------------------------------------------------------------
@kernel
def along(f: Function, what: int | str, action: str, layout: str, outer: int) -> None:
    """Gather from or scatter to ``far[o, index[o, d, j], j]`` with ``near[o, d, j]``.

    ``what`` is the item size for ``get`` and ``put``, the dtype for the accumulating actions. ``layout`` is ``last``
    where there is no inner dimension (``d`` is the last one); ``dense`` where, in addition, all three are contiguous
    along it; ``run`` where one index serves all ``j`` and the others are contiguous along ``j``; else ``any``. ``get``
    checks indices, and negative ones are out of range; for the other actions they must have been checked before.

    ``ptr = [dst, bad, src, index]``; after :data:`ALONG_ARGS` come, of each outer dimension, its size and its three
    byte strides. ``[begin, end)`` are pairs of an outer position and a chunk of ``j``.
    """
    dst, src, index = f.data(0), f.data(2), f.data(3)
    last, dense = layout in ("last", "dense"), layout == "dense"
    item = what if isinstance(what, int) else TYPES[what].bytes
    nd, nj, chunk, size, far_d, far_j, near_d, near_j, index_d, index_j = map(f.size, range(len(ALONG_ARGS)))
    if dense:
        far_d, near_d, index_d = f.i64(item), f.i64(item), f.i64(8)
    chunks = (nj + (chunk - 1)) / chunk

    def place(index_at: Value) -> tuple[Value, Value]:
        """The index and whether it is out of range."""
        i = f.load(index_at, I64)
        return checked(f, i, size, False) if action == "get" else (i, f.i64(0))

    def one(far_at: Value, near_at: Value, index_at: Value) -> Value:
        i, bad = place(index_at)
        far_at = f.offset(far_at, i * far_d)
        if action == "get":
            copy_item(f, near_at, far_at, what)
        elif action == "put":
            copy_item(f, far_at, near_at, what)
        else:
            accumulate(f, what, action, far_at, f.load(near_at, TYPES[what]))
        return bad

    def run(first: Value, stop: Value, row: list[Value]) -> Value:
        """Items ``first`` to ``stop`` of a row, all at one index."""
        i, bad = place(row[2])
        far_at, near_at = (f.offset(x, first * item) for x in (f.offset(row[0], i * far_d), row[1]))
        if action in ("get", "put"):
            to, at = (near_at, far_at) if action == "get" else (far_at, near_at)
            copy_bytes(f, to, at, (stop - first) * item, item)
        else:
            accumulate_run(f, what, action, far_at, near_at, stop - first)
        return bad

    far, near = (src, dst) if action == "get" else (dst, src)
    vectors = dense and action == "get"
    lanes = f.lanes(I64) if vectors else 1
    with f.loop(f.begin, f.end if action == "get" else end_if_good(f), carry=[f.const(I64, 0, lanes)]) as U:
        o = U.index if last else U.index / chunks
        rest, far_o, near_o, index_o = o, f.i64(0), f.i64(0), f.i64(0)
        for k in reversed(range(outer)):
            count, a, b, c = (f.size(len(ALONG_ARGS) + 4 * k + m) for m in range(4))
            i = rest
            if k:
                rest = rest / count
                i = i - rest * count
            far_o, near_o, index_o = far_o + i * a, near_o + i * b, index_o + i * c
        at = [f.offset(far, far_o), f.offset(near, near_o), f.offset(index, index_o)]
        if vectors:
            U.carry = (U.carry[0] | _gather_dense(f, item, nd, size, at),)
        elif dense and action != "get":
            _scatter_dense(f, what, item, action, nd, at)
        else:
            first = f.i64(0) if last else (U.index - o * chunks) * chunk
            stop = first + chunk
            stop = f.i64(1) if last else f.select(stop < nj, stop, nj)
            with f.loop(0, nd, carry=U.carry) as D:
                row = [at[0], f.offset(at[1], D.index * near_d), f.offset(at[2], D.index * index_d)]
                if last:
                    D.carry = (D.carry[0] | one(*row),)
                elif layout == "run":
                    D.carry = (D.carry[0] | run(first, stop, row),)
                elif action != "get":
                    _scatter_row(f, what, item, action, (first, stop), row, (far_d, far_j, near_j, index_j))
                    D.carry = (D.carry[0],)
                else:
                    with f.loop(first, stop, carry=D.carry) as J:
                        moved = [f.offset(x, J.index * s) for x, s in zip(row, (far_j, near_j, index_j), strict=True)]
                        J.carry = (J.carry[0] | one(*moved),)
                    D.carry = J.carry
            U.carry = D.carry
    if action == "get":
        report(f, f.data(1), U.carry[0].reduce(lambda a, b: a | b) if vectors else U.carry[0])


def _scatter_dense(f: Function, what: int | str, item: int, action: str, n: Value, at: list[Value]) -> None:
    """``far[index[d]] op= near[d]`` for contiguous operands, in order; ``at = [far, near, index]``."""
    steps = (f.i64(item), f.i64(0), f.i64(item), f.i64(8))
    _scatter_row(f, what, item, action, (f.i64(0), n), at, steps)


def _scatter_row(
    f: Function, what: int | str, item: int, action: str, run: tuple, at: list[Value], steps: tuple
) -> None:
    """``far[index[j], j] op= near[j]`` for ``j`` of a run, in order.

    ``at = [far, near, index]``; ``steps`` are the byte strides of far along the dimension and along ``j``, of near and
    of the index.
    """
    group = 4  # the index is read ahead of the writes
    (first, stop), (far_d, far_j, near_j, index_j) = run, steps

    def some(index: Value, count: int) -> None:
        places = [f.load(f.offset(at[2], (index + k) * index_j), I64) for k in range(count)]
        for k, place in enumerate(places):
            to = f.offset(at[0], place * far_d + (index + k) * far_j)
            here = f.offset(at[1], (index + k) * near_j)
            if action == "put":
                copy_item(f, to, here, item)
            else:
                accumulate(f, what, action, to, f.load(here, TYPES[what]))

    for index, count in f.groups(first, stop, group):
        some(index, count)


def _gather_dense(f: Function, item: int, n: Value, size: Value, at: list[Value]) -> Value:
    """``near[d] = far[index[d]]`` for contiguous ``at = [far, near, index]``. Returns which are out of range, lane by
    lane.
    """
    wide, none = f.lanes(I64), f.const(I64, 0, f.lanes(I64))
    places, wrong = f.scratch(GROUP * 8), f.scratch(8 * f.lanes(I64))
    with f.loop(0, n, GROUP, carry=[none]) as G:
        count = f.select(n - G.index < GROUP, n - G.index, f.i64(GROUP))
        index, to = f.offset(at[2], G.index * 8), f.offset(at[1], G.index * item)

        def offsets_at(i: Value, mask: Value | None) -> tuple[Value, Value]:
            x = f.load(f.offset(index, i * 8), I64, wide, mask)
            x, bad = checked(f, x, f.splat(size, wide), False)
            return x * item, bad if mask is None else f.select(mask, bad, 0)

        # Whole groups are checked first. If nothing is out of range, they need no places.
        with f.loop(0, f.select(count == GROUP, count, f.i64(0)), 4 * wide, carry=[none] * 4) as L:
            xs = [f.load(f.offset(index, (L.index + k * wide) * 8), I64, wide) for k in range(4)]
            L.carry = [y | x | (size - 1 - x) for x, y in zip(xs, L.carry, strict=True)]
        outside = f.count_true(functools.reduce(operator.or_, L.carry) < 0) > 0
        with f.branch(outside | (count < GROUP)) as B:
            f.store(wrong, _place(f, places, count, offsets_at))
            _fetch(f, item, to, at[0], places, count)
            B.otherwise()
            f.store(wrong, none)
            _fetch(f, item, to, at[0], index, count, item)
        G.carry = (G.carry[0] | f.load(wrong, I64, wide),)
    return G.carry[0]


# ---- masks ----------------------------------------------------------------------------------------------------------
BLOCK = 4096  # elements of a mask that are counted together


def _block(f: Function, index: Value, n: Value) -> tuple[Value, Value]:
    first = index * BLOCK
    return first, f.select(n - first < BLOCK, n, first + BLOCK)


@kernel
def count_mask(f: Function) -> None:
    """True bytes per block: ``ptr = [counts, mask]``, ``arg = [n]``, ``[begin, end)`` are blocks of ``BLOCK``."""
    n = f.size(0)
    wide = f.lanes(U8)
    with f.loop(f.begin, f.end) as L:
        first, stop = _block(f, L.index, n)
        whole = first + ((stop - first) & f.i64(-wide))
        with f.loop(first, whole, 255 * wide, carry=[f.i64(0)]) as P:  # a byte counts to 255
            last = f.select(whole - P.index < 255 * wide, whole, P.index + 255 * wide)
            with f.loop(P.index, last, wide, carry=[f.const(U8, 0, wide)]) as J:
                x = f.load(f.offset(f.data(1), J.index), U8, wide)
                J.carry = (J.carry[0] + (x != 0).to(U8),)
            P.carry = (P.carry[0] + J.carry[0].to(I64).reduce(lambda a, b: a + b),)
        with f.loop(whole, stop, carry=[P.carry[0]]) as K:
            K.carry = (K.carry[0] + (f.load(f.offset(f.data(1), K.index), U8) != 0).to(I64),)
        f.store(f.offset(f.data(0), L.index * 8), K.carry[0])


def _each_true(f: Function, block: Value, n: Value, mask: Value, starts: Value, body) -> None:
    """Run ``body(i, at)`` for elements of a block until all its true ones are done; ``at`` counts the true ones.

    The body also runs for false elements (its store goes to the place that the next true one overwrites), so the loop
    has no unpredictable branches.
    """
    first, _ = _block(f, block, n)
    start = f.load(f.offset(starts, block * 8), I64)
    end = f.load(f.offset(starts, block * 8 + 8), I64)
    with f.while_([first, start]) as J:
        i, at = J.carry
        J.test(at < end)
        hit = f.load(f.offset(mask, i), U8) != 0
        body(i, at)
        J.carry = (i + 1, at + f.select(hit, f.i64(1), f.i64(0)))


def _keep_true(
    f: Function, t: Type, block: Value, mask: Value, starts: Value, to: Value,
    values: Callable[[Value, Value | None], Value],
) -> None:  # fmt: skip
    """Store ``values(i, inside)``, a vector for positions from ``i`` on, where the mask is true."""
    first, stop = _block(f, block, f.size(0))
    lanes = f.lanes(t)
    begin, end = (f.load(f.offset(starts, block * 8 + k), I64) for k in (0, 8))

    def step(i: Value, at: Value, inside: Value | None) -> Value:
        hit = f.load(f.offset(mask, i), U8, lanes, inside) != 0
        x, place = f.compress(values(i, inside), hit), f.offset(to, at * t.bytes)
        after = at + f.count_true(hit)
        if f.vector_bytes >= 64:  # whole stores would take 1.25 of the time: each crosses cache lines
            f.store(place, x, f.first(after - at, lanes))
            return after
        with f.branch(at + lanes <= end) as B:  # the rest is overwritten
            f.store(place, x)
            B.otherwise()
            f.store(place, x, f.first(after - at, lanes))
        return after

    with f.loop(first, first + ((stop - first) & f.i64(-lanes)), lanes, carry=[begin]) as J:
        J.carry = (step(J.index, J.carry[0], None),)
    with f.when(J.index < stop):
        step(J.index, J.carry[0], f.first(stop - J.index, lanes))


@kernel
def mask_positions(f: Function, ndim: int) -> None:
    """Positions of the true bytes in row-major order: ``ndim`` coordinates each, one column of memory per dimension.

    ``ptr = [positions, mask, starts]``, ``arg = [n, sizes of dimensions 1 .. ndim - 1, positions]``; ``starts`` is how
    many come before each block, and after the last one. ``[begin, end)`` are blocks.
    """
    out, mask, starts = f.data(0), f.data(1), f.data(2)
    few, wide = f.lanes(I32), f.lanes(I64)
    found = f.scratch(BLOCK * 4 + f.vector_bytes)  # positions in the block
    with f.loop(f.begin, f.end) as L:
        first, _ = _block(f, L.index, f.size(0))
        begin, end = (f.load(f.offset(starts, L.index * 8 + k), I64) for k in (0, 8))
        to = f.offset(found, begin * -4)
        if f.compresses(I32):
            _keep_true(
                f, I32, L.index, mask, starts, to,
                lambda i, _, first=first: f.splat((i - first).to(I32), few) + f.iota(I32, few),
            )  # fmt: skip
        else:

            def one(i: Value, at: Value, first: Value = first, to: Value = to) -> None:
                f.store(f.offset(to, at * 4), (i - first).to(I32))

            _each_true(f, L.index, f.size(0), mask, starts, one)
        for at, _, inside in f.strips(0, end - begin, wide):
            rest = f.load(f.offset(found, at * 4), I32, wide).to(F64) + f.splat(first.to(F64), wide)
            for k in reversed(range(ndim)):
                coordinate = rest
                if k:  # positions are below 2**51, so the quotient truncates to the exact one
                    size = f.splat(f.size(k).to(F64), wide)
                    rest = trunc(coordinate / size)
                    coordinate = f.fma(-rest, size, coordinate)
                column = f.size(ndim) * k if k else f.i64(0)
                f.store(f.offset(out, (column + begin + at) * 8), whole_number(coordinate, I64), inside)


@kernel
def mask_select(f: Function, item: int) -> None:
    """The items where the mask is true: ``ptr = [dst, src, mask, starts]``, ``arg = [n]``; over blocks."""
    dst, src, mask, starts = (f.data(i) for i in range(4))
    t, parts = CARRIER[item]

    def vector(i: Value, inside: Value | None) -> Value:
        return f.load(f.offset(src, i * item), t, f.lanes(t), inside)

    def one(i: Value, at: Value) -> None:
        copy_item(f, f.offset(dst, at * item), f.offset(src, i * item), item)

    with f.loop(f.begin, f.end) as L:
        if parts == 1 and f.compresses(t):
            _keep_true(f, t, L.index, mask, starts, dst, vector)
        else:
            _each_true(f, L.index, f.size(0), mask, starts, one)


@kernel
def mask_scatter(f: Function, item: int) -> None:
    """Sets ``dst`` to the next item of ``src`` where the mask is true; operands as in :func:`mask_select`."""
    dst, src, mask, starts = (f.data(i) for i in range(4))
    t, parts = CARRIER[item]
    lanes = f.lanes(t) if parts == 1 and f.compresses(t) else 1
    with f.loop(f.begin, f.end) as L:
        first, stop = _block(f, L.index, f.size(0))
        whole = first + ((stop - first) & f.i64(-lanes)) if lanes > 1 else first
        with f.loop(first, whole, lanes, carry=[f.load(f.offset(starts, L.index * 8), I64)]) as V:
            hit = f.load(f.offset(mask, V.index), U8, lanes) != 0
            to, (seen,) = f.offset(dst, V.index * item), V.carry
            if lanes > 1:
                f.store(to, f.expand(f.offset(src, seen * item), hit, f.load(to, t, lanes)))
                V.carry = (seen + f.count_true(hit),)
        with f.loop(whole, stop, carry=V.carry) as J:
            hit = f.load(f.offset(mask, J.index), U8) != 0
            to = f.offset(dst, J.index * item)
            copy_item(f, to, f.select(hit, f.offset(src, J.carry[0] * item), to), item)
            J.carry = (J.carry[0] + f.select(hit, f.i64(1), f.i64(0)),)


@kernel
def running_total(f: Function) -> None:
    """``dst[i]`` = sum of the first ``i`` counts, one more of them than counts: ``ptr = [dst, src]``, ``arg = [n]``."""
    with f.loop(0, f.size(0), carry=[f.i64(0)]) as L:
        f.store(f.offset(f.data(0), L.index * 8), L.carry[0])
        L.carry = (L.carry[0] + f.load(f.offset(f.data(1), L.index * 8), I64),)
    f.store(f.offset(f.data(0), f.size(0) * 8), L.carry[0])


# ---- counts ---------------------------------------------------------------------------------------------------------
@kernel
def bincount(f: Function, dtype: str | None) -> None:
    """``counts[index[i]] += weight[i]`` (or 1): ``ptr = [counts, index, weights]``, ``arg = [n]``."""
    with f.loop(0, f.size(0)) as L:
        i = f.load(f.offset(f.data(1), L.index * 8), I64)
        if dtype is None:
            to = f.offset(f.data(0), i * 8)
            f.store(to, f.load(to, I64) + 1)
        else:
            t = TYPES[dtype]
            to = f.offset(f.data(0), i * t.bytes)
            f.store(to, f.load(to, t) + f.load(f.offset(f.data(2), L.index * t.bytes), t))


@kernel
def histogram(f: Function, dtype: str) -> None:
    """Counts (int64) in equal bins over ``[low, high]``; values outside and NaN are not counted.

    ``ptr = [counts, x]``, ``arg = [n, bins, low, high]``.
    """
    t = TYPES[dtype]
    work = F32 if t in (F16, BF16) else t
    n, bins = f.size(0), f.size(1)
    low, high = f.scalar(2, work), f.scalar(3, work)
    with f.loop(0, n) as L:
        x = f.load(f.offset(f.data(1), L.index * t.bytes), t).to(work)
        with f.when((x >= low) & (x <= high)):
            i = ((x - low) * bins.to(work) / (high - low)).to(I64)
            to = f.offset(f.data(0), f.select(i >= bins, bins - 1, i) * 8)
            f.store(to, f.load(to, I64) + 1)


@kernel
def search_sorted(f: Function, dtype: str, right: bool, out: str, rows: bool) -> None:
    """Binary search: where to insert each value into its row of a sorted sequence (``rows``), or into the only row.

    ``ptr = [dst, values, sequence]``, ``arg = [values per row, sequence length, sequence row stride in bytes]``, all
    contiguous, the sequence not empty; ``[begin, end)`` are values. NaN counts as larger than everything.
    """
    t = TYPES[dtype]
    o = TYPES[out]
    work = F32 if t in (F16, BF16) else t
    per_row, n, row_stride = (f.size(i) for i in range(3))

    def search(first: Value, count: int) -> None:
        """``count`` values together: each waits for memory at every step. Single loads beat a gather instruction."""
        places = [first + k for k in range(count)]
        items = [f.load(f.offset(f.data(1), i * t.bytes), t).to(work) for i in places]
        sequences = [f.offset(f.data(2), i / per_row * row_stride) if rows else f.data(2) for i in places]

        def goes_up(k: int, at: Value) -> Value:
            """1 if the answer of search ``k`` is past position ``at``, else 0."""
            item = f.load(f.offset(sequences[k], at * t.bytes), t).to(work)
            return (~(item > items[k] if right else item >= items[k])).to(I64)

        with f.while_([n, *[f.i64(0)] * count]) as S:
            length, *at = S.carry
            S.test(length > 1)
            half = length >> 1
            # A sum, not a select, which would be compiled to an unpredictable branch.
            S.carry = (length - half, *[at[k] + (half & -goes_up(k, at[k] + (half - 1))) for k in range(count)])
        for k, at in enumerate(S.carry[1:]):
            f.store(f.offset(f.data(0), places[k] * o.bytes), (at + goes_up(k, at)).to(o))

    for first, count in f.groups(f.begin, f.end, 8):
        search(first, count)


@kernel
def repeat_positions(f: Function) -> None:
    """``i`` repeated ``repeats[i]`` times: ``ptr = [dst, starts]``, ``[begin, end)`` are the ``i``."""
    with f.loop(f.begin, f.end) as L:
        start = f.load(f.offset(f.data(1), L.index * 8), I64)
        stop = f.load(f.offset(f.data(1), L.index * 8 + 8), I64)
        with f.loop(start, stop) as J:
            f.store(f.offset(f.data(0), J.index * 8), L.index)

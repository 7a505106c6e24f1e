"""Kernels of tiles: a program that runs once for each place of an index space, from the nodes of its trace.

A :class:`Node` is a tile: a scalar, or numbers in one or two dimensions whose sizes are powers of two. Nodes are
computed where they are used, one register after the other, unless they are *kept*: products, transposes, and costly
nodes that are used twice are written to memory on the stack. Folds, stores and kept nodes over tiles of the same sizes
share a pass as long as none waits for another. A load or store that reaches past its tensor is masked.
Where all columns of a row are inside, which is found once for each row, there is no mask.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .ir import BF16, BOOL, F16, F32, I64, U16, U32, U64, Function, Type, Value
from .pointwise import part
from .scalar import any_lane
from .scalar.exponential import exp_difference
from .target import here
from .tile import transpose

#: Bytes of the stack that the tiles of a program may take.
MOST_BYTES = 384 * 1024
#: Operations that a tile may take to be computed at each use of it, instead of once.
CHEAP = 3
#: Operations after which a tile of at most so many elements is kept anyway: a longer expression is computed in several
#: passes.
LONG, SMALL = 200, 2048
#: Nodes that read their operands at other places than their own.
PLACES = {"store", "load", "loop", "phi", "final", "dot", "trans", "expand", "full", "rand"}
#: Functions that take about as long as a sum.
LIGHT = {"abs", "neg", "maximum", "minimum", "where", "floor", "ceil", "trunc", "round", "sign", "isnan", "invert"}
_OPERATORS = {"add", "sub", "mul", "truediv", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "cast", "expand", "full"}


class Block:
    """Nodes in the order of the program: of all of it, or of the body of a loop."""

    def __init__(self, above: Block | None) -> None:
        self.above = above
        self.items: list[Node] = []

    def has(self, other: Block) -> bool:
        """Whether what ``other`` has is known here."""
        at: Block | None = self
        while at is not None and at is not other:
            at = at.above
        return at is not None


class Node:
    """A tile, or an action of a program: a store or a loop. ``data`` is what its kind needs beside the other nodes."""

    __slots__ = ("args", "block", "data", "dtype", "kind", "shape")

    def __init__(
        self, kind: str, args: Sequence[Node], shape: tuple[int, ...], dtype: str, data: Any, block: Block
    ) -> None:
        self.kind, self.args, self.shape, self.dtype, self.data = kind, tuple(args), shape, dtype, data
        self.block = block


class Memory(NamedTuple):
    """A tensor: its dtype, and for each dimension whether its elements are neighbours in memory."""

    dtype: str
    unit: tuple[bool, ...]


class Access(NamedTuple):
    """The target of a load or a store: the number of the tensor; ``mask`` and ``other`` are numbers of arguments."""

    tensor: int
    mask: int | None = None
    other: int | None = None


class Loop:
    """The data of a loop: its range, and its carried values as triples of the value inside, the first and the next."""

    def __init__(self, index: Node, body: Block, step: int) -> None:
        self.index, self.body, self.step = index, body, step
        self.carried: list[tuple[Node, Node, Node]] = []


class At(NamedTuple):
    """A place in a tile: ``lanes`` columns from ``column`` on. ``plain``: every access in line is inside its tensor."""

    row: Value
    column: Value
    lanes: int
    plain: bool
    inline: bool
    known: dict[Node, Value]


def nodes_of(block: Block) -> Iterator[Node]:
    """The nodes of a block, and of the bodies of its loops."""
    for n in block.items:
        yield n
        if n.kind == "loop":
            yield from nodes_of(n.data.body)


class Program(NamedTuple):
    """All of a kernel: dimensions of its grid, tensors (results first), its nodes, and how operations are computed."""

    label: str
    dims: int
    tensors: Sequence[Memory]
    block: Block
    machine: Callable[[Value], Any]


def two(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns."""
    return (shape[0], shape[1]) if len(shape) == 2 else (1, shape[0] if shape else 1)


def words(dims: int, tensors: Sequence[Memory]) -> tuple[list[int], int]:
    """Places in arguments of a kernel where the sizes of each tensor begin, then its strides in bytes; and where
    numbers begin."""
    at, found = dims, []
    for tensor in tensors:
        found.append(at)
        at += 2 * len(tensor.unit)
    return found, at


def step_of(n: Node) -> int | None:
    """The difference of a value from one column to the next; None if it varies."""
    if not n.shape:
        return 0
    if n.kind == "arange":
        return 1
    if n.kind in ("add", "sub") and n.dtype == "int64":
        a, b = map(step_of, n.args)
        return None if a is None or b is None else a + b if n.kind == "add" else a - b
    if n.kind == "mul" and n.dtype == "int64":
        for a, b in (n.args, n.args[::-1]):
            if a.kind == "const":
                step = step_of(b)
                return None if step is None else int(a.data) * step
    return None


def indices_of(n: Node, tensor: Memory) -> tuple[Node, ...]:
    """The places, one for each dimension, that a load or a store has."""
    return n.args[: len(tensor.unit)]


def guarded(n: Node) -> tuple[Node, Node] | None:
    """The places and the end of a comparison ``places < end`` or ``places <= end`` that holds for the first columns of
    a row, and for no others: it splits a row as the end of a tensor does."""
    if n.kind not in ("lt", "le") or not n.shape:
        return None
    places, end = n.args
    if places.kind == "expand" and places.data == 1:
        places = places.args[0]
    if len(places.shape) != 1 or places.dtype != "int64" or step_of(places) != 1 or two(end.shape)[1] != 1:
        return None
    return places, end


#: The end of the columns that a statement must compute: sizes, each as a tensor's number and a dimension, and scalars.
#: None means no end.
Ends = tuple | None


def past(n: Node, tensors: Sequence[Memory]) -> tuple[float, Ends] | None:
    """The one value that ``n`` has past the ends that are returned with it; None if it is not known."""
    if n.kind == "const":
        return n.data, ()
    if n.kind in ("cast", "full"):
        return past(n.args[0], tensors)
    if n.kind == "load":
        end, other = end_of_access(n, tensors), None if n.data.other is None else n.args[n.data.other]
        if end is None or (other is not None and other.kind != "const"):
            return None
        return 0 if other is None else other.data, end
    if n.kind == "where" and (guard := guarded(n.args[0])) is not None:
        places, end = guard
        other = past(n.args[2], tensors)
        if n.args[0].kind != "lt" or places.kind != "arange" or end.shape or other is None:
            return None
        return other[0], (*other[1], end.data if end.kind == "size" else end)
    if n.kind == "exp":
        found = past(n.args[0], tensors)
        return None if found is None or found[0] != -math.inf else (0, found[1])
    if n.kind in ("add", "sub", "mul") and n.shape:
        a, b = (past(x, tensors) for x in n.args)
        if a is not None and a[0] == -math.inf and is_difference(n):
            return a
        if a is not None and b is not None:
            value = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}[n.kind](a[0], b[0])
            return value, (*a[1], *b[1])
    return None


def is_difference(n: Node, places: Node | None = None) -> bool:
    """Whether ``n`` is ``x - max(x)`` by rows: past the end -inf where ``x`` is, or a NaN like all the row. With
    ``places`` it may be the largest at these alone."""
    if n.kind != "sub":
        return False
    x, by = n.args
    by = by.args[0] if by.kind == "expand" else by
    if by.kind != "reduce" or by.data != ("max", len(x.shape) - 1):
        return False
    of = by.args[0]
    return of is x or (places is not None and of.kind == "where" and of.args[0].args[0] is places and of.args[1] is x)


def _alike(a: Node, b: Node) -> bool:
    """Whether two nodes are computed from the same ones in the same way."""
    return a is b or (
        a.kind == b.kind != "load" and a.data == b.data and len(a.args) == len(b.args) > 0
        and all(map(_alike, a.args, b.args))
    )  # fmt: skip


def end_of_access(n: Node, tensors: Sequence[Memory]) -> Ends:
    """The end of the columns of a load or a store, if they are a tensor's from the first on, without a mask."""
    memory = tensors[n.data.tensor]
    tiles = [(d, i) for d, i in enumerate(indices_of(n, memory)) if i.shape]
    if not tiles or n.data.mask is not None:
        return None
    d, i = tiles[-1]
    if i.kind == "expand" and i.data == 1:
        i = i.args[0]
    return ((n.data.tensor, d),) if i.kind == "arange" and two(n.shape)[1] == i.shape[0] else None


class _Reach:
    """A load or store in the statement that is being written: addresses, and how many columns are inside."""

    def __init__(self, emitter: _Emitter, n: Node, columns: int) -> None:
        self.emitter, self.n = emitter, n
        f, data = emitter.f, n.data
        self.memory = emitter.program.tensors[data.tensor]
        sizes, strides = emitter.sizes[data.tensor], emitter.strides[data.tensor]
        self.base = emitter.pointers[data.tensor]
        self.pointer, self.inside = self.base, None
        tiles = []
        for i, size, stride, unit in zip(indices_of(n, self.memory), sizes, strides, self.memory.unit, strict=True):
            if i.shape:
                tiles.append((i, size, stride, unit))
                continue
            place = emitter.scalar(i)
            self.pointer = f.offset(self.pointer, place * stride)
            self.inside = self.both(self.inside, _within(place, size))
        self.rows = tiles[0] if len(tiles) == 2 else None
        self.columns = tiles[-1] if tiles else None
        self.step = step_of(tiles[-1][0]) if tiles else 0
        self.count: Value | None = f.i64(columns)
        if self.columns is None:
            return
        i, size, stride, unit = self.columns
        if self.step != 1 or data.mask is not None:
            self.count = f.i64(0)
        if self.step is None:
            return
        self.start = emitter.value(i, At(f.i64(0), f.i64(0), 1, False, False, {}))
        if self.step == 1 and data.mask is None:
            left = size - self.start
            left = f.select(left < columns, left, columns)
            self.count = f.select(_within(self.start, size), left, 0)

    def both(self, a: Value | None, b: Value) -> Value:
        return b if a is None else a & b

    def row(self, row: Value) -> _ReachRow:
        pointer, inside = self.pointer, self.inside
        if self.rows is not None:
            i, size, stride, _ = self.rows
            row = self.emitter.f.i64(0) if i.shape == (1,) else row  # one row, which broadcasts
            place = self.emitter.value(i, At(self.emitter.f.i64(0), row, 1, False, False, {}))
            pointer = self.emitter.f.offset(pointer, place * stride)
            inside = self.both(inside, _within(place, size))
        return _ReachRow(self, pointer, inside)


class _ReachRow:
    """The same for one row."""

    def __init__(self, reach: _Reach, pointer: Value, inside: Value | None) -> None:
        self.reach, self.inside = reach, inside
        f = reach.emitter.f
        self.count = reach.count if inside is None else f.select(inside, reach.count, 0)
        self.pointer = pointer
        self.first = pointer
        if reach.columns is not None and reach.step is not None:
            self.first = f.offset(pointer, reach.start * reach.columns[2])

    def place(self, at: At) -> tuple[Value, Value | None, Value | None]:
        """The address of the first lane, the places of the lanes as offsets from ``base`` where they are no
        neighbours, and the mask."""
        reach, f = self.reach, self.reach.emitter.f
        if reach.columns is None:
            return self.pointer, None, self._masked(self.inside, at)
        i, size, stride, unit = reach.columns
        if reach.step is None:
            lane = reach.emitter.child(i, at)
            mask = reach.both(self.inside, _within(lane, size))
            return self.pointer, lane * stride, self._masked(mask, at)
        moved = f.offset(self.first, at.column * reach.step * stride)
        if at.plain and reach.n.data.mask is None:
            return moved, None if unit and reach.step == 1 else f.iota(I64, at.lanes) * reach.step * stride, None
        lane = (reach.start + at.column * reach.step) + f.iota(I64, at.lanes) * reach.step
        mask = self._masked(reach.both(self.inside, _within(lane, size)), at)
        if unit and reach.step == 1:
            return moved, None, mask
        return self.pointer, lane * stride, mask

    def _masked(self, mask: Value | None, at: At) -> Value | None:
        asked = self.reach.n.data.mask
        if asked is not None:
            given = self.reach.emitter.child(self.reach.n.args[asked], at)
            mask = given if mask is None else mask & given
        return mask


def _within(place: Value, size: Value) -> Value:
    """Whether a place is at least 0 and less than ``size``."""
    return place.bits(U64) < size.bits(U64)


def identity(kind: str, t: Type) -> float:
    """The value that changes no result of a fold."""
    low = float("-inf") if t.kind == "f" else -(2 ** (t.bits - 1))
    high = float("inf") if t.kind == "f" else 2 ** (t.bits - 1) - 1
    return {"sum": 0, "prod": 1, "max": low, "min": high}[kind]


class _Task(NamedTuple):
    """The work of one pass over a tile at each place.

    ``state = begin(row)`` gives the first values of a row, and ``body(at, state, target)`` the next ones, where
    ``target`` is the row of what ``store`` writes. ``finish(row, states)`` takes the states of all registers that are
    computed side by side.
    """

    roots: Sequence[Node]
    shape: tuple[int, ...]
    dtype: str
    body: Callable
    begin: Callable = lambda row: ()
    finish: Callable = lambda row, states: None
    store: Node | None = None
    #: The kept tile that it computes and writes to memory.
    makes: Node | None = None
    #: The fold whose result is known when it has ended.
    fold: Node | None = None
    ends: Ends = None

    def lanes(self, f: Function) -> int:
        kind = F32 if self.dtype in ("bool", "int32") else part(self.dtype)
        return min(f.lanes(kind) if f.vector_bytes >= 16 else 1, two(self.shape)[1])


class _Statement:
    """One pass over a tile: its tasks, and the accesses in line with its columns."""

    def __init__(self, emitter: _Emitter, tasks: Sequence[_Task]) -> None:
        self.emitter, self.tasks = emitter, tasks
        self.rows, self.columns = two(tasks[0].shape)
        f = emitter.f
        self.lanes = tasks[0].lanes(f)
        self.lazy = emitter.lazy([n for t in tasks for n in t.roots], [t.makes for t in tasks if t.makes is not None])
        light = _OPERATORS | LIGHT | {"load"}
        work = sum(1 if n.kind in light else 8 for n, _ in self.lazy if n.kind not in ("arange", "expand", "full"))
        #: Random numbers of all registers of a turn are drawn side by side: a block is a chain of 30 instructions.
        self.drawn = [n for n, inline in self.lazy if inline and _in_pairs(n)]
        most = 1 if work >= 40 else 8 if self.drawn else 4 if work < 12 else 2
        self.unroll = 1
        while self.unroll < most and 2 * self.unroll * self.lanes <= self.columns:
            self.unroll *= 2
        self.guards = [(n, found) for n, inline in self.lazy if inline and (found := guarded(n)) is not None]
        nowhere = At(f.i64(0), f.i64(0), 1, False, False, {})
        self.starts = [emitter.value(places, nowhere) for _, (places, _) in self.guards]
        self.reaches = {n: _Reach(emitter, n, self.columns) for n, inline in self.lazy if n.kind == "load" and inline}
        self.stored = [None if t.store is None else _Reach(emitter, t.store, self.columns) for t in tasks]
        ends = None if any(t.ends is None for t in tasks) else tuple(e for t in tasks for e in t.ends or ())
        self.end = emitter.last(ends, self.columns, self.lanes)

    def run(self) -> None:
        f = self.emitter.f
        self.emitter.work(self.rows * self.columns)
        if self.rows == 1:
            self._row(f.i64(0))
            return
        with f.loop(0, self.rows) as L:
            self._row(L.index)

    def _row(self, row: Value) -> None:
        f, emitter, lanes = self.emitter.f, self.emitter, self.lanes
        emitter.reached = {n: reach.row(row) for n, reach in self.reaches.items()}
        targets = [None if reach is None else reach.row(row) for reach in self.stored]
        of_row: dict[Node, Value] = {}
        at = At(row, f.i64(0), 1, False, True, of_row)
        if self.columns > 1:
            for n, _ in self.lazy:
                if two(n.shape)[1] == 1:
                    emitter.child(n, at)
        ends = []
        for (n, (_, end)), start in zip(self.guards, self.starts, strict=True):
            left = emitter.child(end, at) - start + (n.kind == "le")
            left = f.select(left < self.columns, left, self.columns)
            ends.append(f.select(left < 0, 0, left))
        reached = [*emitter.reached.values(), *(t for t in targets if t is not None)]
        counts = [*ends, *(r.count for r in reached)]
        starts = [tuple(task.begin(row)) for task in self.tasks]
        widths = [len(start) for start in starts]
        first = tuple(v for start in starts for v in start)
        states = [first] * self.unroll
        wide = lanes * self.unroll
        count: Value | None = None
        for c in counts:
            count = c if count is None else f.select(c < count, c, count)
        whole = self.end if count is None else count & -lanes

        def parted(values: tuple) -> list[tuple]:
            rest = iter(values)
            return [tuple(next(rest) for _ in range(width)) for width in widths]

        def compute(column: Value, plain: bool, state: tuple, known: dict[Node, Value]) -> list:
            at = At(row, column, lanes, plain, True, dict(known))
            if len(self.tasks) > 1:
                for n, inline in self.lazy:
                    simple = n.kind == "load" and n.data.mask is None and n not in emitter.kept
                    if inline and simple and two(n.shape)[1] > 1:
                        emitter.value(n, at)
            pairs = zip(self.tasks, parted(state), targets, strict=True)
            return [v for task, own, target in pairs for v in task.body(at, own, target)]

        def stretch(lo: Value, hi: Value, plain: bool, side: int) -> None:
            flat = [v for state in states[:side] for v in state]
            with f.loop(lo, hi, lanes * side, carry=flat) as L:
                found, width = [], len(first)
                drawn = {n: emitter.value(n, At(row, L.index, wide, plain, True, dict(of_row))) for n in self.drawn
                         if side > 1}  # fmt: skip
                for u in range(side):
                    state = tuple(L.carry[u * width : (u + 1) * width])
                    column = L.index + u * lanes if u else L.index
                    parts = {n: x.shuffle(range(u * lanes, (u + 1) * lanes)) for n, x in drawn.items()}
                    found.extend(compute(column, plain, state, of_row | parts))
                L.carry = tuple(found)
            width = len(first)
            for u in range(side):
                states[u] = tuple(L.carry[u * width : (u + 1) * width])

        if count is None and self.columns == lanes:  # one vector, which has all it needs
            states = [tuple(compute(f.i64(0), True, first, of_row))]
        elif self.unroll > 1:
            many = whole & -wide
            stretch(f.i64(0), many, True, self.unroll)
            if whole.text != str(self.columns):
                stretch(many, whole, True, 1)
        else:
            stretch(f.i64(0), whole, True, 1)
        if count is not None:
            stretch(whole, self.end, False, 1)
        of_task = zip(*map(parted, states), strict=True)
        for task, own in zip(self.tasks, of_task, strict=True):
            task.finish(row, list(own))


class _Emitter:
    def __init__(self, f: Function, program: Program) -> None:
        self.f, self.program = f, program
        self.pointers = [f.data(i) for i in range(len(program.tensors))]
        places, self.numbers = words(program.dims, program.tensors)
        self.sizes = [
            [f.size(at + d) for d in range(len(t.unit))] for at, t in zip(places, program.tensors, strict=True)
        ]
        self.strides = [
            [
                f.i64(part(t.dtype).bytes) if unit else f.size(at + len(t.unit) + d)
                for d, unit in enumerate(t.unit)
            ]
            for at, t in zip(places, program.tensors, strict=True)
        ]  # fmt: skip
        self.known: dict[Node, Value] = {}
        self.buffers: dict[Node, Value] = {}
        self.reached: dict[Node, _ReachRow] = {}
        self.pending: list[Node] = []
        self.tasks: list[_Task] = []  # those of the next pass
        self.delayed: list[Node] = []  # scalars that need what the next pass folds
        self.bytes = 0
        self.cost, self.times = 0, 1
        self.users: dict[Node, list[tuple[Node, Block]]] = {}
        self._absorb(program.block)
        self._count(program.block)
        self.kept: set[Node] = set()
        self.late: set[Node] = set()
        self.costs: dict[Node, int] = {}
        self._keep(program.block)

    def work(self, n: int) -> None:
        """Count a program's work, so that programs can be shared among threads."""
        self.cost += n * self.times

    # ---- nodes that are kept
    # ---------------------------------------------------------------------------------------------
    def _count(self, block: Block) -> None:
        """Find the users of each node; only nodes that a store needs count."""
        self.users = {}
        needed: set[Node] = set()
        carried: set[Node] = set()
        stack: list[Node] = []
        loops = [n for n in nodes_of(block) if n.kind == "loop"]
        of_final = {n: loop.data for loop in loops for n in (c[0] for c in loop.data.carried)}
        self.finals: dict[Node, list[Node]] = {}
        for n in nodes_of(block):
            if n.kind == "final":
                self.finals.setdefault(n.data, []).append(n)

        def need(n: Node, by: Node, where: Block) -> None:
            self.users.setdefault(n, []).append((by, where))
            if n not in needed:
                needed.add(n)
                stack.append(n)

        for n in nodes_of(block):
            if n.kind == "store" or n.kind == "loop":
                for a in n.args:
                    need(a, n, n.block)
        while stack:
            n = stack.pop()
            for a in n.args:
                need(a, n, n.block)
            if n.kind in ("phi", "final"):
                inside = n if n.kind == "phi" else n.data
                data = of_final[inside]
                _, start, following = next(c for c in data.carried if c[0] is inside)
                if inside not in carried:
                    carried.add(inside)
                    needed.add(inside)
                    need(start, inside, start.block)
                    need(following, inside, data.body)
        self.needed = needed

    def _absorb(self, block: Block) -> None:
        """``x + dot(a, b)`` is a product that begins with ``x``."""
        self._count(block)
        for n in nodes_of(block):
            if n.kind != "add":
                continue
            for x, d in (n.args, n.args[::-1]):
                alone = d.kind == "dot" and len(d.args) == 2 and len(self.users.get(d, ())) == 1
                if alone and d.block is n.block and d.shape == n.shape and d.dtype == n.dtype:
                    n.kind, n.args, d.kind = "dot", (*d.args, x), "gone"
                    break

    def _price(self, n: Node) -> int:
        """Operations for one element, where it is not kept."""
        if not n.shape or n.kind in ("arange", "const"):
            return 0
        if n in self.kept or n.kind in ("phi", "final", "reduce"):
            return 1
        if n not in self.costs:
            if guarded(n) is not None:
                return 0
            own = 1 if n.kind in _OPERATORS or n.kind in LIGHT else 40 if n.kind == "rand" else 8
            if n.kind in ("expand", "full"):
                own = 0
            elif n.kind == "load":
                memory = self.program.tensors[n.data.tensor]
                tiles = [(i, unit) for i, unit in zip(indices_of(n, memory), memory.unit, strict=True) if i.shape]
                own = 1 if step_of(tiles[-1][0]) == 1 and tiles[-1][1] else 8
            self.costs[n] = own + (0 if n.kind == "load" else sum(map(self._price, n.args)))
        return self.costs[n]

    def _keep(self, block: Block) -> None:
        for n in nodes_of(block):
            if (
                not n.shape
                or n not in self.needed
                or n.kind in ("arange", "phi", "final", "reduce", "store", "loop", "full")
            ):
                continue
            users = self.users[n]
            if n.kind in ("dot", "trans"):
                self.kept.add(n)
                carried = len(users) == 1 and users[0][0].kind == "phi" and n.kind == "dot"
                if carried and self._reads(n) <= {users[0][0]}:
                    self.late.add(n)
                continue
            rows, columns = two(n.shape)
            spread = any(two(u.shape)[0] > rows and (columns > 1) for u, _ in users)
            deeper = any(where is not n.block for _, where in users)
            turned = any(u.kind == "expand" and u.data == 0 for u, _ in users)
            if (
                any(u.kind == "dot" and n in u.args[:2] for u, _ in users)
                or ((len({u for u, _ in users}) > 1 or spread or deeper or turned) and self._price(n) > CHEAP)
                or (self._price(n) > LONG and rows * columns <= SMALL)
            ):
                self.kept.add(n)

    def _reads(self, n: Node) -> set[Node]:
        """The carried tiles that ``n`` is computed from at its place; with a None where it is at another place."""
        found: set = set()
        stack = [(a, n) for a in (n.args[2:] if n.kind == "dot" else n.args)]
        while stack:
            x, _ = stack.pop()
            if not x.shape or x in self.kept:
                continue
            if x.kind == "phi":
                found.add(x)
            elif x.kind == "expand" and any(y.kind == "phi" for y in x.args):
                found.add(None)
            else:
                stack.extend((a, x) for a in x.args)
        return found

    def lazy(self, roots: Sequence[Node], whole: Sequence[Node] = ()) -> list[tuple[Node, bool]]:
        """The nodes to compute at each place for ``roots``, operands first, and whether each is in line with their
        columns. Nodes of ``whole`` are computed although they are kept.
        """
        found: dict[tuple[Node, bool], None] = {}

        def walk(n: Node, inline: bool) -> None:
            if not n.shape or (n, inline) in found or n.kind in ("reduce", "phi", "final"):
                return
            if n in self.kept and n not in whole:
                return
            memory = self.program.tensors[n.data.tensor] if n.kind == "load" else None
            for a in n.args:
                if memory is not None and any(a is i for i in indices_of(n, memory)):
                    if step_of(a) is None:
                        walk(a, inline)
                    continue
                walk(a, inline and not (n.kind == "expand" and n.data == 0))
            found[n, inline] = None

        for root in roots:
            walk(root, True)
        return list(found)

    def prepare(self, roots: Sequence[Node], whole: Sequence[Node] = ()) -> None:
        """Keep what ``roots`` need that is to be kept."""
        seen: set[Node] = set(whole)
        stack = list(roots)
        stack.extend(a for n in whole for a in n.args)
        while stack:
            n = stack.pop()
            if n in seen and n not in roots:
                continue
            seen.add(n)
            if n in self.kept and n not in whole:
                if n not in self.buffers:
                    self.materialize(n)
                continue
            if n.shape and n.kind not in ("reduce", "phi", "final"):
                stack.extend(a for a in n.args if a not in seen)

    # ---- ends -------------------------------------------------------------------------------------------------------
    def last(self, ends: Ends, columns: int, lanes: int) -> Value:
        """The number of columns that a statement computes, whole vectors."""
        f = self.f
        if ends is None or any(isinstance(e, Node) and e.kind != "const" and e not in self.known for e in ends):
            return f.i64(columns)
        found = f.i64(0)
        for end in dict.fromkeys(ends):
            value = self.scalar(end) if isinstance(end, Node) else self.sizes[end[0]][end[1]]
            found = f.select(value > found, value, found)
        found = f.select(found < columns, found, columns)
        return (found + (lanes - 1)) & -lanes

    def ends_of_fold(self, n: Node) -> Ends:
        """The ends past which a fold over columns meets what changes nothing."""
        (x,), (kind, axis) = n.args, n.data
        found = past(x, self.program.tensors) if axis == len(x.shape) - 1 else None
        return found[1] if found is not None and found[0] == identity(kind, part(n.dtype)) else None

    def ends_of_uses(self, n: Node) -> Ends:
        """The ends past which ``n``, a kept node, is never read."""
        ends: tuple = ()
        seen, stack = {n}, [n, *self.finals.get(n, ())]
        while stack:
            x = stack.pop()
            for by, _ in self.users.get(x, ()):
                if by in seen:
                    continue
                seen.add(by)
                if by.kind == "reduce":
                    found = self.ends_of_fold(by)
                elif by.kind == "store" and x.shape == by.shape and x not in indices_of(by, self._memory(by)):
                    found = end_of_access(by, self.program.tensors)
                elif by.kind == "phi" and x.shape == by.shape:
                    stack.extend([by, *self.finals.get(by, ())])
                    continue
                elif by.kind in PLACES or by.shape != x.shape:
                    return None
                else:
                    stack.append(by)
                    continue
                if found is None:
                    return None
                ends += found
        return ends

    def comes_back(self, n: Node) -> bool:
        """Whether a NaN of a row is in all that is made of ``n``, its maximum, even where ``n`` is that of the others:
        what is read is ``exp(x - n)``, whose sum is NaN then, and all else that is made of it is made of the sum too.
        """
        (x,) = n.args
        of = (x, x.args[1]) if x.kind == "where" else (x,)
        parts, sums, others = [n], [], []
        while parts:
            m = parts.pop()
            for by in self._users(m):
                inside = by.kind == "where" and x.kind == "where" and _alike(by.args[0], x.args[0]) and by.args[1] is m
                more = self._users(by) if inside else [by]
                difference = by.kind == "sub" and by.args[0] in of and by.args[1] is m
                if (m.kind, by.kind) in (("reduce", "expand"), ("sub", "exp")) or (
                    m.kind in ("reduce", "expand") and difference
                ):
                    parts.append(by)
                elif m.kind == "exp" and all(u.kind == "reduce" and u.data == ("sum", n.data[1]) for u in more):
                    sums += more
                else:
                    others.append(by)
        nans = set(sums)
        while sums:
            for by in self._users(sums.pop()) - nans:
                if by.kind in ("expand", "log", "add", "sub", "mul", "truediv"):
                    nans.add(by)
                    sums.append(by)
        return nans.issuperset(others)

    def _users(self, n: Node) -> set[Node]:
        return {by for by, _ in self.users.get(n, ())}

    def _memory(self, n: Node) -> Memory:
        return self.program.tensors[n.data.tensor]

    # ---- values -----------------------------------------------------------------------------------------------------
    def scalar(self, n: Node) -> Value:
        if n.kind == "const":
            return self.f.const(part(n.dtype), n.data)
        return self.known[n]

    def room(self, shape: tuple[int, ...], dtype: str) -> Value:
        rows, columns = two(shape)
        size = max(rows * columns * part(dtype).bytes, 1)
        self.bytes += size
        if self.bytes > MOST_BYTES:
            raise ValueError(
                f"{self.program.label}: its tiles take more than {MOST_BYTES // 1024} KiB, the most there is for a "
                f"program; use smaller tiles"
            )
        return self.f.scratch(size)

    def _address(self, buffer: Value, shape: tuple[int, ...], dtype: str, at: At) -> Value:
        rows, columns = two(shape)
        place = at.column if rows == 1 else at.row * columns + at.column
        return self.f.offset(buffer, place * part(dtype).bytes)

    def child(self, n: Node, at: At) -> Value:
        """The value of an operand at its user's place; a scalar where it has one column."""
        if not n.shape:
            return self.scalar(n)
        if two(n.shape)[1] == 1 and (at.lanes > 1 or at.inline):
            if n in at.known:
                return at.known[n]
            at = At(at.row, self.f.i64(0), 1, False, at.inline, at.known)
        return self.value(n, at)

    def value(self, n: Node, at: At) -> Value:
        if not n.shape:
            return self.scalar(n)
        if n in at.known:
            return at.known[n]
        if n in self.kept or n.kind in ("phi", "final", "reduce"):
            address = self._address(self.buffers[n], n.shape, n.dtype, at)
            return self.f.load(address, part(n.dtype), at.lanes)
        at.known[n] = self.expression(n, at)
        return at.known[n]

    def expression(self, n: Node, at: At) -> Value:
        f = self.f
        if n.kind == "arange":
            start = at.column
            return start if at.lanes == 1 else f.splat(start, at.lanes) + f.iota(I64, at.lanes)
        if n.kind == "expand":
            (x,) = n.args
            if n.data == 0:
                return self.value(x, At(f.i64(0), at.row, 1, False, False, {}))
            return self.value(x, At(f.i64(0), at.column, at.lanes, at.plain, at.inline, at.known))
        if n.kind == "full":
            return self.scalar(n.args[0])
        if n.kind == "load":
            return self._load(n, at)
        if at.plain and at.inline and guarded(n) is not None:
            return f.const(BOOL, True, at.lanes)
        args = [a.data if a.kind == "const" else self.child(a, at) for a in n.args]
        if n.kind == "cast":
            return self._cast(args[0], n, at)
        return self.apply(n, args)

    def _cast(self, x: Any, n: Node, at: At) -> Value:
        t = part(n.dtype)
        return x.to(t) if isinstance(x, Value) else self.f.const(t, x)

    def apply(self, n: Node, args: list) -> Value:
        """An operation on values; numbers are constants."""
        lanes = max([a.lanes for a in args if isinstance(a, Value)], default=1)
        args = [self.f.splat(a, lanes) if isinstance(a, Value) else a for a in args]
        values = [a for a in args if isinstance(a, Value)]
        if n.kind == "rand":
            seed, index = (a if isinstance(a, Value) else self.f.const(I64, a, lanes) for a in args)
            return _uniform(self.f, seed, index, _in_pairs(n) and lanes > 1)
        if n.kind == "exp" and (n.data == "difference" or is_difference(n.args[0])):
            return exp_difference(values[0])  # which does not overflow
        like = next((a for a in values if a.type is not BOOL), values[0])
        if n.kind == "where":
            like = self.f.const(part(n.dtype), 0, lanes)
        made = self.program.machine(like).run(n.kind, args)
        return made.to(part(n.dtype)) if made.type is not part(n.dtype) else made

    def _load(self, n: Node, at: At) -> Value:
        f, t, data = self.f, part(self.program.tensors[n.data.tensor].dtype), n.data
        reached = self.reached.get(n) if at.inline else None
        if reached is None:
            reach = _Reach(self, n, 1)
            row = reach.row(at.row)
            at = At(at.row, at.column, at.lanes, False, at.inline, at.known)
            reached = row
        pointer, offsets, mask = reached.place(at)
        raw = U16 if t in (F16, BF16) else t
        if mask is not None and at.lanes > 1:
            mask = f.splat(mask, at.lanes)
        if offsets is None:
            x = f.load(pointer, raw, at.lanes, mask)
        else:
            if mask is not None and reached.inside is not None:
                pointer = f.select(reached.inside, pointer, reached.reach.base)
            if at.lanes == 1:
                x = f.load(f.offset(pointer, offsets), raw, 1, mask)
            else:
                x = f.gather_at(pointer, offsets, raw, mask)
        x = x.bits(t).to(part(n.dtype))
        if mask is not None and data.other is not None:
            other = n.args[data.other]
            fill = f.const(part(n.dtype), other.data) if other.kind == "const" else self.child(other, at)
            x = f.select(mask, x, f.splat(fill, at.lanes))
        return x

    # ---- statements -------------------------------------------------------------------------------------------------
    def vector(self, at: At, compute: Callable[[At], Value], place: Value | None = None) -> Value:
        """The result of ``compute`` by the usual paths of functions, computed again for vectors where these are wrong.
        It is also stored to ``place``.
        """
        f = self.f
        f.rare = [] if at.plain and f.threads == 1 else None
        made = compute(at._replace(known=dict(at.known)))
        conditions, f.rare = f.rare, None
        if conditions and place is None:
            place = f.scratch(made.type.bytes * made.lanes)
        if place is not None:
            f.store(place, made)
        if conditions:
            with f.when(any_lane(functools.reduce(operator.or_, conditions))):
                f.again = True
                f.store(place, compute(at._replace(known=dict(at.known))))
                f.again = False
            made = f.load(place, made.type, made.lanes)
        return made

    def add(self, task: _Task) -> None:
        """Do a task in the next pass, along with others over a tile of the same sizes that it does not wait for.

        Results are written alone and operands read alone, so that stores to two results may change places with loads.
        """
        roots = [(n, True) for n in task.roots]
        if task.store is not None:
            roots += [(i, False) for i in indices_of(task.store, self._memory(task.store))]
        seen, waits = set(), False
        making = {t.makes for t in self.tasks}
        waiting = {*(t.fold for t in self.tasks), *self.delayed}
        while roots and not waits:
            n, here = roots.pop()
            if (n, here) in seen:
                continue
            seen.add((n, here))
            waits = n in waiting or (n in making and not (here and n.shape == task.shape))
            if n.shape and n.kind not in ("reduce", "phi", "final") and (n not in self.kept or n is task.makes):
                here = here and n.kind not in ("load", "lt", "le", "expand")
                roots.extend((a, here) for a in n.args)
        if self.tasks:
            last = self.tasks[-1]
            alike = last.shape == task.shape and last.lanes(self.f) == task.lanes(self.f)
            stored = {t.store.data.tensor for t in self.tasks if t.store is not None}
            if waits or not alike or (task.store is not None and task.store.data.tensor in stored):
                self.flush()
        self.tasks.append(task)

    def flush(self) -> None:
        """Write the next pass, and the scalars that wait for it."""
        tasks, self.tasks = self.tasks, []
        delayed, self.delayed = self.delayed, []
        if tasks:
            _Statement(self, tasks).run()
        for n in delayed:
            self._scalar(n)

    def fill(self, n: Node, buffer: Value, shape: tuple[int, ...], whole: bool, ends: Ends = None) -> None:
        """Write what ``n`` is at each place of ``shape`` to memory."""
        compute = self.expression if whole else self.child

        def body(at: At, state: tuple, target: _ReachRow | None) -> tuple:
            place = self._address(buffer, shape, n.dtype, at)
            made = self.vector(at, lambda at: self.f.splat(compute(n, at), at.lanes), place)
            if whole:
                at.known[n] = made
            return ()

        ends = self.ends_of_uses(n) if whole else ends
        self.add(_Task([n], shape, n.dtype, body, makes=n if whole else None, ends=ends))

    def materialize(self, n: Node) -> None:
        """Keep a tile."""
        if n.kind == "dot":
            self.product(n, self.room(n.shape, n.dtype))
            return
        if n.kind == "trans":
            self._transposed(n)
            return
        self.prepare([], [n])
        buffer = self.room(n.shape, n.dtype)
        self.fill(n, buffer, n.shape, True)
        self.buffers[n] = buffer

    def _transposed(self, n: Node) -> None:
        """Squares of a register's lanes are transposed by shuffles."""
        f, (x,), (rows, columns) = self.f, n.args, n.shape
        self.prepare([x])
        self.flush()
        buffer = self.room(n.shape, n.dtype)
        size = min(f.lanes(part(n.dtype)) if f.vector_bytes >= 16 else 1, rows, columns)
        st = _Statement(self, [_Task([x], (columns, rows), n.dtype, lambda at, state, target: ())])
        step = part(n.dtype).bytes
        self.work(rows * columns)
        with f.loop(0, columns, size) as down:
            reached, _known = [], []
            for i in range(size):
                row = down.index + i
                reached.append({m: reach.row(row) for m, reach in st.reaches.items()})
            counts = [r.count for rows_ in reached for r in rows_.values()]
            with f.loop(0, rows, size) as across:
                plain = None
                for count in counts:
                    fits = across.index + size <= count
                    plain = fits if plain is None else plain & fits

                def square(is_plain: bool, reached=reached, down=down, across=across) -> None:
                    vectors = []
                    for i in range(size):
                        self.reached = reached[i]
                        at = At(down.index + i, across.index, size, is_plain, True, {})
                        vectors.append(f.splat(self.child(x, at), size))
                    for i, v in enumerate(transpose(vectors) if size > 1 else vectors):
                        place = (across.index + i) * columns + down.index
                        f.store(f.offset(buffer, place * step), v)

                if st.guards:
                    square(False)
                elif plain is None:
                    square(True)
                else:
                    with f.branch(plain) as B:
                        square(True)
                        B.otherwise()
                        square(False)
        self.buffers[n] = buffer

    def product(self, n: Node, target: Value) -> None:
        """``target = init + a @ b`` by register tiles of four rows."""
        f, (a, b), t = self.f, n.args[:2], part(n.dtype)
        self.prepare([a, b, *n.args[2:]])
        (m, k), (_, width) = a.shape, b.shape
        first = n.args[2:]
        if first and first[0].kind == "full" and first[0].args[0].kind == "const" and first[0].args[0].data == 0:
            first = ()
        if first:
            if self.buffers.get(n.args[2]) is not target:
                self.fill(n.args[2], target, n.shape, False)
        self.flush()
        lanes = min(f.lanes(t) if f.vector_bytes >= 16 else 1, width)
        vectors = min(4 if f.vector_bytes != 32 else 2, width // lanes)
        rows = min(m, max(4, 16 // vectors) if f.vector_bytes != 32 else 4)
        size, unroll = t.bytes, min(k, 4)
        left, right = self.buffers[a], self.buffers[b]
        self.work(m * width * max(k // 8, 1))
        with f.loop(0, width, lanes * vectors) as across, f.loop(0, m, rows) as down:
            at = f.offset(target, (down.index * width + across.index) * size)
            places = [f.offset(at, (r * width + v * lanes) * size) for r in range(rows) for v in range(vectors)]
            if first:
                start = [f.load(p, t, lanes) for p in places]
            else:
                start = [f.const(t, 0, lanes)] * len(places)
            from_a = f.offset(left, down.index * (k * size))
            from_b = f.offset(right, across.index * size)
            with f.loop(0, k, unroll, carry=start) as L:
                sums = list(L.carry)
                a_k, b_k = f.offset(from_a, L.index * size), f.offset(from_b, L.index * (width * size))
                for u in range(unroll):
                    columns = [f.load(f.offset(b_k, (u * width + v * lanes) * size), t, lanes) for v in range(vectors)]
                    for r in range(rows):
                        one = f.splat(f.load(f.offset(a_k, (r * k + u) * size), t), lanes)
                        for v in range(vectors):
                            i = r * vectors + v
                            sums[i] = f.fma(one, columns[v], sums[i]) if t.kind == "f" else one * columns[v] + sums[i]
                L.carry = tuple(sums)
            for place, x in zip(places, L.carry, strict=True):
                f.store(place, x)
        self.buffers[n] = target

    def fold(self, n: Node) -> None:
        """A fold over columns, or over rows."""
        f, (x,), (kind, axis) = self.f, n.args, n.data
        t = part(n.dtype)
        nothing = identity(kind, t)
        name = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}[kind]

        def both(a: Value, b: Value) -> Value:
            if t.kind == "f" and kind in ("max", "min"):  # a NaN stays
                return f.select((b > a if kind == "max" else b < a) | (b != b), b, a)
            return self.program.machine(a).run(name, [a, b])

        # the largest, and a NaN if there was one: two chains of one instruction each
        alone = t.kind == "f" and (kind, axis) == ("max", len(x.shape) - 1) and self.comes_back(n)
        apart = t.kind == "f" and kind in ("max", "min") and not alone

        def a_nan(a: Value, b: Value) -> Value:
            return f.select(b != b, b, a)

        def joined(a: tuple, b: tuple) -> tuple:
            if not apart and not alone:
                return (both(a[0], b[0]),)
            larger = f.select(a[0] > b[0] if kind == "max" else a[0] < b[0], a[0], b[0])
            return (larger, *(a_nan(x, y) for x, y in zip(a[1:], b[1:], strict=True)))

        # a tile that is kept is computed along with the fold, where the fold is of it or of its part before an end
        kept = x.args[1] if x.kind == "where" and x not in self.kept and guarded(x.args[0]) is not None else x
        keep = kept in self.kept and kept not in self.buffers and kept.kind not in ("dot", "trans")
        keep = keep and kept.shape == x.shape
        self.prepare([] if keep and kept is x else [x], (kept,) if keep else ())
        room = self.room(kept.shape, kept.dtype) if keep else None
        ends, uses = self.ends_of_fold(n), self.ends_of_uses(kept) if keep else ()
        ends = None if ends is None or uses is None else ends + uses
        task = _Task([x], x.shape, x.dtype, lambda *_: (), makes=kept if keep else None, fold=n, ends=ends)
        out = self.room(n.shape, n.dtype) if n.shape else None
        lanes = task.lanes(f)

        def computed(at: At) -> Value:
            if room is None:
                return self.vector(at, lambda at: f.splat(self.child(x, at), at.lanes))
            place = self._address(room, kept.shape, kept.dtype, at)
            at.known[kept] = self.vector(at, lambda at: f.splat(self.expression(kept, at), at.lanes), place)
            return f.splat(self.child(x, at), at.lanes)

        if axis == 0 and len(x.shape) == 2:
            assert out is not None
            with f.loop(0, n.shape[0], lanes) as L:
                f.store(f.offset(out, L.index * t.bytes), f.const(t, nothing, lanes))

            def add(at: At, state: tuple, target: _ReachRow | None) -> tuple:
                place = f.offset(out, at.column * t.bytes)
                f.store(place, both(f.load(place, t, at.lanes), computed(at)))
                return ()

            self.add(task._replace(body=add))
        else:

            def finish(row: Value, states: list) -> None:
                total, *nan = functools.reduce(joined, states)
                if total.lanes > 1:
                    total = total.reduce(lambda a, b: joined((a,), (b,))[0])
                    nan = [x.reduce(a_nan) for x in nan]
                for x in nan:
                    total = f.select(x != x, x, total)
                if out is None:
                    self.known[n] = total
                else:
                    f.store(f.offset(out, row * t.bytes), total)

            start = (f.const(t, nothing, lanes), *([f.const(t, 0, lanes)] if apart else ()))

            def step(at: At, state: tuple, target: _ReachRow | None) -> tuple:
                x = computed(at)
                return joined(state, (x, x)[: len(state)])

            self.add(task._replace(begin=lambda row: start, body=step, finish=finish))
        if room is not None:
            self.buffers[kept] = room
        if out is not None:
            self.buffers[n] = out

    def store(self, n: Node) -> None:
        memory = self.program.tensors[n.data.tensor]
        value = n.args[len(memory.unit)]
        t = part(memory.dtype)
        self.prepare(n.args)
        roots = [value, *([n.args[n.data.mask]] if n.data.mask is not None else ())]
        roots += [i for i in indices_of(n, memory) if i.shape and step_of(i) is None]
        f = self.f

        def body(at: At, state: tuple, target: _ReachRow) -> tuple:
            x = self.vector(at, lambda at: f.splat(self.child(value, at), at.lanes)).to(t)
            raw = x.bits(U16) if t in (F16, BF16) else x.to(part("uint8")) if t is BOOL else x
            pointer, offsets, mask = target.place(at)
            if mask is not None and at.lanes > 1:
                mask = f.splat(mask, at.lanes)
            if offsets is None:
                f.store(pointer, raw, mask)
                return ()
            for lane in range(at.lanes):
                place = f.offset(pointer, offsets.lane(lane))
                if mask is None:
                    f.store(place, raw.lane(lane))
                else:
                    with f.when(mask.lane(lane)):
                        f.store(place, raw.lane(lane))
            return ()

        dtype = memory.dtype if t is not BOOL else "float32"
        self.add(_Task(roots, n.shape, dtype, body, store=n, ends=end_of_access(n, self.program.tensors)))

    def loop(self, n: Node) -> None:
        f, data = self.f, n.data
        for x in [p for p in self.pending if p not in self.buffers]:
            self.prepare([x])
        carried = [c for c in data.carried if c[0] in self.needed]
        tiles = [c for c in carried if c[0].shape]
        scalars = [c for c in carried if not c[0].shape]
        self.prepare([c[1] for c in tiles])
        for inside, start, _ in tiles:
            self.buffers[inside] = self.room(inside.shape, inside.dtype)
            self.fill(start, self.buffers[inside], inside.shape, False)
        self.flush()
        before, self.pending = self.pending, []
        self.times *= 8
        with f.loop(*(self.scalar(a) for a in n.args), data.step, carry=[self.scalar(c[1]) for c in scalars]) as L:
            self.known[data.index] = L.index
            for (inside, _, _), value in zip(scalars, L.carry, strict=True):
                self.known[inside] = value
            self.block(data.body)
            moved = [c for c in tiles if c[2] is not c[0]]
            self.prepare([c[2] for c in moved if c[2] not in self.late])
            self.prepare([a for c in moved if c[2] in self.late for a in c[2].args])
            copies, own = [], []  # values that read other carried tiles are computed before any of these is written
            for inside, _, following in moved:
                if (following in self.kept and following not in self.late) or following.kind in ("final", "reduce"):
                    copies.append((inside, self.buffers[following]))
                elif following in self.late or (following.kind != "phi" and self._reads(following) <= {inside}):
                    own.append((inside, following))
                else:
                    room = self.room(inside.shape, inside.dtype)
                    self.fill(following, room, inside.shape, False)
                    copies.append((inside, room))
            for inside, following in own:
                if following in self.late:
                    self.product(following, self.buffers[inside])
                else:
                    self.fill(following, self.buffers[inside], inside.shape, False, self.ends_of_uses(inside))
            self.flush()
            for inside, room in copies:
                self._copy(self.buffers[inside], room, inside)
            L.carry = tuple(self.scalar(c[2]) for c in scalars)
        self.times //= 8
        self.pending = before
        for (inside, _, _), value in zip(scalars, L.carry, strict=True):
            self.known[inside] = value

    def _copy(self, to: Value, source: Value, like: Node) -> None:
        f, t = self.f, part(like.dtype)
        rows, columns = two(like.shape)
        lanes = min(f.lanes(t) if f.vector_bytes >= 16 else 1, rows * columns)
        with f.loop(0, rows * columns, lanes) as L:
            f.store(f.offset(to, L.index * t.bytes), f.load(f.offset(source, L.index * t.bytes), t, lanes))

    def block(self, block: Block) -> None:
        for n in block.items:
            if n.kind == "store":
                self.store(n)
            elif n.kind == "loop":
                self.loop(n)
            elif n not in self.needed or n.kind == "gone":
                continue
            elif n.kind == "reduce":
                self.fold(n)
            elif n.kind == "final":
                if n.shape:
                    self.buffers[n] = self.buffers[n.data]
                else:
                    self.known[n] = self.known[n.data]
            elif not n.shape:
                self._scalar_in_order(n)
            elif n in self.kept and n not in self.late:
                if n.kind == "dot":
                    self.materialize(n)
                else:
                    self.pending.append(n)

    def _scalar_in_order(self, n: Node) -> None:
        waiting = {*(t.fold for t in self.tasks), *self.delayed}
        if any(a in waiting for a in n.args):
            self.delayed.append(n)
        else:
            self._scalar(n)

    def _scalar(self, n: Node) -> None:
        f = self.f
        if n.kind in ("const", "index", "phi", "program"):
            return
        if n.kind == "arg":
            self.known[n] = f.scalar(self.numbers + n.data, part(n.dtype))
        elif n.kind == "size":
            self.known[n] = self.sizes[n.data[0]][n.data[1]]
        elif n.kind == "load":
            self.known[n] = self._load(n, At(f.i64(0), f.i64(0), 1, False, False, {}))
        else:
            self.known[n] = self.expression(n, At(f.i64(0), f.i64(0), 1, False, False, {}))


def kernel(program: Program) -> tuple[Function, int]:
    """A kernel over the flat index of a grid for this thread's place, and about how many elements a program computes.

    ``arg`` has the sizes of the grid, sizes and strides in bytes of each tensor (:func:`words`), and numbers.
    """
    f = Function(vector_bytes=here().vector_bytes)
    f.label = program.label
    emitter = _Emitter(f, program)
    dims = [f.size(d) for d in range(program.dims)]
    programs = [n for n in nodes_of(program.block) if n.kind == "program"]
    with f.loop(f.begin, f.end) as L:
        rest, places = L.index, []
        for d in reversed(dims[1:]):
            places.append(rest % d)
            rest = rest / d
        places.append(rest)
        for n in programs:
            emitter.known[n] = places[::-1][n.data]
        try:
            emitter.block(program.block)
            emitter.flush()
        except RecursionError:
            raise ValueError(
                f"{program.label}: expression is too long for tiles of more than {SMALL} elements; use smaller tiles"
            ) from None
    return f, emitter.cost


def _even(n: Node) -> bool:
    """Whether the first column of every register has an even number."""
    if n.kind == "const":
        return int(n.data) % 2 == 0
    if n.kind == "arange":
        return n.shape[0] > 1
    return (n.kind == "add" and all(map(_even, n.args))) or (n.kind == "mul" and any(map(_even, n.args)))


def _in_pairs(n: Node) -> bool:
    """Whether random numbers are those of neighbours, the first one even: a block has the numbers of two."""
    if n.kind != "rand":
        return False
    seed, index = n.args
    return two(seed.shape)[1] == 1 and step_of(index) == 1 and _even(index)


def _uniform(f: Function, seed: Value, index: Value, pairs: bool) -> Value:
    """Philox2x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011): word ``index % 2`` of block
    ``index // 2``, as a float32 in [0, 1) of its upper 24 bits. The key is the lower word of the seed, whose upper word
    is joined to the counter's. ``pairs``: the places are neighbours, the first one even."""
    lanes = max(seed.lanes, index.lanes)
    seed, index = (f.splat(x.bits(U64), lanes) for x in (seed, index))
    if pairs:
        blocks = f.splat(index.lane(0) >> 1, lanes // 2) + f.iota(U64, lanes // 2)
        left, right = _block(f, f.splat(seed.lane(0), lanes // 2), blocks)
        both = left | (right << 32)
        words = f.emit(f"bitcast {both.typed} to <{lanes} x i32>", U32, lanes)
    else:
        left, right = _block(f, seed, index >> 1)
        words = f.select((index & 1) == 0, left, right).to(U32)
    return (words >> 8).to(F32) * 2.0**-24


def _block(f: Function, seed: Value, index: Value) -> tuple[Value, Value]:
    """Both words of a block of Philox, each in a register of 64 bits."""
    low, word = 0xFFFFFFFF, 32
    key, left, right = seed & low, index & low, (index >> word) ^ (seed >> word)
    for _ in range(10):
        product = (left & low) * 0xD256D193  # the instruction reads the lower words, so the mask takes none
        left, right = (product >> word) ^ key ^ right, product
        key = (key + 0x9E3779B9) & low
    return left & low, right & low

"""Functions over an index space for ``taeda.kernel.grid``: their language, and their trace.

The function runs once on symbols for each combination of dtypes, layouts and settings. Its operations are recorded as
nodes of ``kernels/programs.py``. A ``for`` over :func:`range` runs its body once. The loop carries the local names to
which the body gives another value. So a loop is written as in Python.
"""

from __future__ import annotations

import builtins
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .kernel import _COMPARISONS, _OPERATORS, _TRUTHS, FUNCTIONS, Expression, _is_function
from .kernels.programs import Access, Block, Loop, Memory, Node, nodes_of

_RANK = {"bool": 0, "int32": 1, "int64": 2, "float32": 3, "float64": 4}
#: A tile is worked through by one thread: more than this is a mistake, not a choice.
MOST_PLACES = 1 << 24
#: The computing dtype for elements of a dtype.
WORKING = {
    "float16": "float32", "bfloat16": "float32", "int8": "int32", "uint8": "int32", "int16": "int32",
    **{name: name for name in _RANK},
}  # fmt: skip
_OF_ANY = ("abs", "maximum", "minimum", "sign", "add", "sub", "mul", "floordiv", "mod", "neg", "where")
_tracing = threading.local()

#: The operations that a function of :func:`taeda.kernel.grid` may contain.
ALLOWED = (
    "In a function over an index space stand + - * / // % ** comparisons & | ~, x[i, j], out[i, j] = value, x.load, "
    "out.store, x.shape, and of taeda.kernel tiles, arange, whole, range, zeros, full, scalar, dot, sum, max, min, "
    "prod, rand, cdiv, and " + ", ".join(sorted(FUNCTIONS))
)


def _kind(dtype: str) -> int:
    return (_RANK[dtype] + 1) // 2


class Tile(Expression):
    """A value in a function over an index space: a number, or numbers in one or two dimensions."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        super().__init__("tile", ())
        self.node = node

    def __repr__(self) -> str:
        return f"<tile of {list(self.node.shape)}, {self.node.dtype}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, numbers that are known when the function is traced."""
        return self.node.shape

    @property
    def dtype(self) -> str:
        return self.node.dtype

    def _call(self, kind: str, args: Sequence) -> Tile:
        return _traced().operation(kind, args)

    def _fold(self, kind: str, axis: int | None) -> Tile:
        return _traced().fold(kind, self, axis)

    def __neg__(self) -> Tile:
        return self._call("neg", (self,))

    def __abs__(self) -> Tile:
        return self._call("abs", (self,))

    def __invert__(self) -> Tile:
        return self._call("invert", (self,))

    def __getitem__(self, key: Any) -> Tile:
        kind = [(slice, type(None)), (type(None), slice)]
        if isinstance(key, tuple) and tuple(map(type, key)) in kind and len(self.shape) == 1:
            axis = kind.index((type(key[0]), type(key[1])))
            n = self.shape[0]
            return _traced().make("expand", (self,), (n, 1) if axis == 0 else (1, n), self.dtype, axis)
        raise TypeError(
            f"a tile of the expression has no elements to pick: expected x[:, None] or x[None, :] of a tile of one "
            f"dimension, got {key!r} of a tile of {list(self.shape)}"
        )

    @property
    def T(self) -> Tile:
        """The transpose of a tile of two dimensions."""
        if len(self.shape) != 2:
            raise TypeError(f"only a tile of the expression with two dimensions has .T, got {list(self.shape)}")
        return _traced().make("trans", (self,), self.shape[::-1], self.dtype)

    def to(self, dtype: Any) -> Tile:
        """The same numbers in another dtype: float32, float64, int32, int64 or bool."""
        name = getattr(dtype, "name", dtype)
        if name not in _RANK:
            raise TypeError(f"a tile of the expression is of {', '.join(_RANK)}, got {dtype}; results are converted")
        return _traced().cast(self, name)


def _binary(kind: str, swap: bool = False) -> Callable:
    def apply(self: Tile, other: Any) -> Any:
        if not isinstance(other, (Tile, int, float)):
            return NotImplemented
        return self._call(kind, (other, self) if swap else (self, other))

    return apply


for _name in _OPERATORS:
    if _name not in ("neg", "invert"):
        setattr(Tile, f"__{_name}__", _binary(_name))
        if _name not in _COMPARISONS:
            setattr(Tile, f"__r{_name}__", _binary(_name, True))


class _Sizes(tuple):
    """The sizes of a tensor in a function over an index space."""

    def __getitem__(self, at: Any) -> Any:
        try:
            return super().__getitem__(at)
        except IndexError:
            raise TypeError(f"a tensor of {len(self)} dimensions has no size {at} in the expression") from None


class Reference:
    """A tensor in a function over an index space."""

    def __init__(self, trace: Trace, number: int, name: str, dtype: str, unit: tuple[bool, ...], written: bool) -> None:
        self._trace, self._number, self._name, self._written, self._unit = trace, number, name, written, unit
        self.dtype = WORKING[dtype]  # the computing dtype for its elements
        self.shape = _Sizes(
            trace.make("size", (), (), "int64", (number, d)) for d in builtins.range(len(unit))
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<tensor {self._name} of {len(self._unit)} dimensions, {self.dtype}>"

    __array_ufunc__ = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"a tensor of the expression has .shape, .dtype, .load and .store, and no {name!r}: read a tile of it "
            f"first, as in {self._name}[i]"
        )

    def __getitem__(self, key: Any) -> Tile:
        return self.load(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.store(key, value)

    def load(self, key: Any, *, mask: Any = None, other: float = 0) -> Tile:
        """A tile: for each dimension a number or a tile of one dimension, all of whose combinations are read.

        Places outside of the tensor, and where ``mask`` is false, are not read; there the tile has ``other``.
        """
        if self._written:
            raise TypeError(f"the result {self._name!r} cannot be read in the expression: it is written alone")
        return self._trace.load(self, key, mask, other)

    def store(self, key: Any, value: Any, *, mask: Any = None) -> None:
        """Write a tile; places outside of the tensor, and where ``mask`` is false, are left alone."""
        if not self._written:
            raise TypeError(f"{self._name!r} is an operand, which is read alone; results are those that out= names")
        self._trace.store(self, key, value, mask)


def _unread(self: Reference, *others: Any) -> Any:
    raise TypeError(
        f"{self._name!r} is a tensor, and the expression computes with tiles: read one first, as in {self._name}[i]"
        + (f", and write to it by {self._name}[i] = value" if self._written else "")
    )


for _name in _OPERATORS.keys() - {"eq", "ne"}:
    setattr(Reference, f"__{_name}__", _unread)
    setattr(Reference, f"__r{_name}__", _unread)


def _traced() -> Trace:
    found = getattr(_tracing, "stack", None)
    if not found:
        raise TypeError("this is of functions of taeda.kernel.grid, and no such function is running")
    return found[-1]


class Trace:
    """The nodes of one run of a function on symbols."""

    def __init__(self) -> None:
        self.top = Block(None)
        self.block = self.top
        self.grid: list[tuple[Node, int]] | None = None
        self.tensors: list[Memory] = []
        self.references: list[Reference] = []
        self.sizes: list[tuple[int, ...]] = []
        self.asked: dict[tuple[int, int], int] = {}
        self.numbers = 0
        self.loops = 0
        self.functions = 0
        self.tiled: dict[Node, Node] = {}

    def __enter__(self) -> Trace:
        if not hasattr(_tracing, "stack"):
            _tracing.stack = []
        _tracing.stack.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _tracing.stack.pop()

    # ---- making nodes -----------------------------------------------------------------------------------------------
    def node(self, kind: str, args: Sequence, shape: tuple[int, ...], dtype: str, data: Any = None) -> Node:
        for a in args:
            if a.kind == "invalid":
                raise TypeError(a.data)
            if not self.block.has(a.block):
                raise TypeError(
                    "a value of the expression that the body of a loop makes is not known after the loop: give the "
                    "name a value before the loop, and the loop carries it"
                )
        made = Node(kind, args, shape, dtype, data, self.block)
        self.block.items.append(made)
        return made

    def make(self, kind: str, args: Sequence, shape: tuple[int, ...], dtype: str, data: Any = None) -> Tile:
        return Tile(self.node(kind, [a.node for a in args], shape, dtype, data))

    def tile(self, x: Any, dtype: str | None = None) -> Tile:
        """A number as a value."""
        if isinstance(x, Tile):
            return x
        if isinstance(x, bool):
            return self.make("const", (), (), "bool", x)
        if isinstance(x, int):
            return self.make("const", (), (), dtype or "int64", float(x) if _kind(dtype or "int64") == 2 else x)
        if isinstance(x, float):
            return self.make("const", (), (), dtype if dtype and _kind(dtype) == 2 else "float64", x)
        raise TypeError(f"expected a number or a value of the expression, got {type(x).__name__}")

    def cast(self, x: Tile, dtype: str) -> Tile:
        if x.dtype == dtype:
            return x
        if x.node.kind == "const":
            kinds: dict[str, Any] = {"bool": bool, "int32": int, "int64": int}
            return self.make("const", (), (), dtype, kinds.get(dtype, float)(x.node.data))
        return self.make("cast", (x,), x.shape, dtype)

    def promoted(self, args: Sequence[Any], least: int = 0) -> list[Tile]:
        """Operands in one dtype: the tiles' before that of single numbers; at least of a kind (2: floats)."""
        tiles = [x for x in args if isinstance(x, Tile)]
        wide = [x.dtype for x in tiles if x.shape] or [x.dtype for x in tiles]
        dtype = builtins.max(wide, key=_RANK.__getitem__)
        for x in args:
            name = x.dtype if isinstance(x, Tile) else "bool" if isinstance(x, bool) else (
                "int64" if isinstance(x, int) else "float32")  # fmt: skip
            if _kind(name) > _kind(dtype):
                dtype = name if isinstance(x, Tile) and not wide else "float32" if _kind(name) == 2 else "int64"
        if _kind(dtype) < least:
            dtype = "float32" if least == 2 else "int64"
        return [self.cast(self.tile(x, dtype), dtype) for x in args]

    def shape_of(self, args: Sequence[Tile]) -> tuple[int, ...]:
        """The sizes that tiles broadcast to."""
        rank = builtins.max(len(a.shape) for a in args)
        made = [1] * rank
        for a in args:
            for d, n in enumerate(a.shape, rank - len(a.shape)):
                if n != 1 and made[d] != 1 and made[d] != n:
                    raise TypeError(
                        f"tiles of the expression have sizes {', '.join(str(list(a.shape)) for a in args)}, which do "
                        f"not broadcast; x[:, None] makes a column of a tile of one dimension"
                    )
                made[d] = builtins.max(made[d], n)
        return tuple(made)

    def operation(self, kind: str, args: Sequence) -> Tile:
        """An operator or a function of values."""
        if kind in FUNCTIONS and len(args) != len(FUNCTIONS[kind].slopes):
            raise TypeError(f"kernel.{kind} takes {len(FUNCTIONS[kind].slopes)} arguments, got {len(args)}")
        for x in args:
            if not isinstance(x, (Tile, int, float)):
                raise TypeError(f"{kind}: expected numbers and values of the expression, got {type(x).__name__}")
        if kind == "where":
            condition = self.cast(self.tile(args[0]), "bool")
            given = args[1:] if any(isinstance(x, Tile) for x in args[1:]) else [
                self.tile(x, "float32" if isinstance(x, float) else None) for x in args[1:]]  # fmt: skip
            operands = [condition, *self.promoted(given)]
        elif kind in ("and", "or", "invert"):
            operands = [self.cast(self.tile(x), "bool") for x in args]
        elif kind == "pow" and isinstance(args[1], int):
            operands = [self.promoted(args[:1], 1 if args[1] >= 0 else 2)[0], self.tile(args[1])]
        else:
            of_any = kind in _OF_ANY or kind in _COMPARISONS
            operands = self.promoted(args, (1 if kind not in _TRUTHS else 0) if of_any else 2)
        folded = self.simple(kind, operands)
        if folded is not None:
            return folded
        shape = self.shape_of(operands)
        dtype = "bool" if kind in _TRUTHS else operands[-1].dtype if kind == "where" else operands[0].dtype
        self.functions += _is_function(kind)
        if all(x.node.kind == "const" for x in operands):
            operands[0] = self.make("cast", (operands[0],), (), operands[0].dtype)  # a value, not a number
        return self.make(kind, operands, shape, dtype)

    def simple(self, kind: str, operands: Sequence[Tile]) -> Tile | None:
        """Sums with 0 and products with 1 are not computed."""
        if kind not in ("add", "sub", "mul", "truediv"):
            return None
        a, b = operands
        unit = 0 if kind in ("add", "sub") else 1
        if b.node.kind == "const" and b.node.data == unit and a.dtype == b.dtype:
            return Tile(a.node)
        if kind in ("add", "mul") and a.node.kind == "const" and a.node.data == unit and a.dtype == b.dtype:
            return Tile(b.node)
        return None

    def fold(self, kind: str, x: Tile, axis: int | None) -> Tile:
        if not x.shape:
            raise TypeError(f"kernel.{kind}: expected a tile of the expression, got a single number")
        if axis is None and len(x.shape) == 2:
            return self.fold(kind, self.fold(kind, x, 1), 0)
        rank = len(x.shape)
        axis = rank - 1 if axis is None else axis
        if not isinstance(axis, int) or not -rank <= axis < rank:
            raise TypeError(f"kernel.{kind}: the tile of the expression has sizes {list(x.shape)}, and no axis {axis}")
        if kind == "mean":
            return self.operation("truediv", (self.fold("sum", x, axis), x.shape[axis]))
        (x,) = self.promoted([x], 1)
        axis %= rank
        return self.make("reduce", (x,), tuple(n for d, n in enumerate(x.shape) if d != axis), x.dtype, (kind, axis))

    # ---- memory -----------------------------------------------------------------------------------------------------
    def places(self, tensor: Reference, key: Any) -> tuple[list[Tile], tuple[int, ...]]:
        given = key if isinstance(key, tuple) else (key,)
        if len(given) != len(tensor._unit):
            raise TypeError(
                f"{tensor._name!r} has {len(tensor._unit)} dimensions, and its index in the expression has {len(given)}"
            )
        found = []
        for i in given:
            if isinstance(i, slice):
                raise TypeError(
                    f"an index of {tensor._name!r} in the expression is a number or a tile such as kernel.arange(64), "
                    f"not a slice"
                )
            x = self.tile(i)
            if _kind(x.dtype) != 1:
                raise TypeError(f"an index of {tensor._name!r} must be of integers, in the expression it is {x.dtype}")
            if len(x.shape) > 1:
                raise TypeError(
                    f"an index of {tensor._name!r} in the expression has one dimension at most, and all combinations "
                    f"are taken: write x[i, j], not x[i[:, None], j[None, :]]"
                )
            found.append(self.cast(x, "int64"))
        shape = tuple(n for x in found for n in x.shape)
        if len(shape) > 2:
            raise TypeError(f"tiles have two dimensions at most, and {len(shape)} indices of {tensor._name!r} have one")
        return found, shape

    def load(self, tensor: Reference, key: Any, mask: Any, other: Any) -> Tile:
        args, shape = self.places(tensor, key)
        dtype = tensor.dtype
        at: list[int | None] = [None, None]
        if mask is not None:
            at[0] = len(args)
            args.append(self.fitting(self.cast(self.tile(mask), "bool"), shape, "mask"))
        if isinstance(other, Tile) or other != 0:
            at[1] = len(args)
            args.append(self.fitting(self.cast(self.tile(other, dtype), dtype), shape, "other"))
        return self.make("load", args, shape, dtype, Access(tensor._number, *at))

    def fitting(self, x: Tile, shape: tuple[int, ...], what: str) -> Tile:
        """A tile that broadcasts to ``shape``."""
        rank = len(shape) - len(x.shape)
        if rank < 0 or any(n not in (1, m) for n, m in zip(x.shape, shape[rank:], strict=True)):
            raise TypeError(
                f"{what} of sizes {list(x.shape)} does not fit places of sizes {list(shape)} in the expression"
            )
        return x

    def store(self, tensor: Reference, key: Any, value: Any, mask: Any) -> None:
        args, shape = self.places(tensor, key)
        dtype = tensor.dtype
        x = self.tile(value, dtype)
        if _kind(x.dtype) > _kind(dtype):
            raise TypeError(
                f"{tensor._name!r} is of {tensor.dtype}, and the value of the expression of {x.dtype}: convert it with "
                f".to({dtype!r})"
            )
        args.append(self.fitting(self.cast(x, dtype), shape, "a value"))
        at = None
        if mask is not None:
            at = len(args)
            args.append(self.fitting(self.cast(self.tile(mask), "bool"), shape, "mask"))
        self.node("store", [a.node for a in args], shape, dtype, Access(tensor._number, at))

    def covers(self) -> list[tuple[int, list[Any]]]:
        """Results that stores without a mask write in each dimension up to an end: a size, or where loops lead."""
        turns: dict[Node, Node] = {}
        found = []
        for n in nodes_of(self.top):
            if n.kind == "loop":
                turns[n.data.index] = n
            elif n.kind == "store" and n.data.mask is None:
                ends = self.ends_of(n, n.args[: len(self.tensors[n.data.tensor].unit)], turns)
                if ends is not None:
                    found.append((n.data.tensor, ends))
        return found

    def ends_of(self, store: Node, places: Sequence[Node], turns: dict[Node, Node]) -> list[Any] | None:
        used: set[Node] = set()  # programs and indices of loops, each for one dimension
        ends: list[Any] = []
        for place in places:
            size = self.tiled.get(place)
            if size is not None:
                by, end = {n for n in _leaves(place) if n.kind == "program"}, size.data
            else:
                index, lanes = place, 1
                if place.kind == "add":
                    index, tile = place.args if place.args[0].kind == "index" else place.args[::-1]
                    lanes = tile.shape[0] if tile.kind == "arange" else 0
                if index not in turns or turns[index].data.step != lanes:
                    return None
                end = turns[index].args
                leaves = [n for x in end for n in _leaves(x)]
                by = {index, *(n for n in leaves if n.kind == "program")}
                if len(by) > 2 or any(n.kind not in ("program", "const", "size") for n in leaves):
                    return None
            if by & used:
                return None
            used |= by
            ends.append(end)
        loops, at = {n.block for n in used if n.kind == "index"}, store.block
        while at is not self.top:  # a loop that none of the places runs over may have no turns
            if at not in loops or at.above is None:
                return None
            at = at.above
        return ends

    def whole(self, size: Any) -> Tile:
        """The places of a dimension, in one tile."""
        if isinstance(size, int):
            return self.arange(_power(size))
        if not isinstance(size, Tile) or size.node.kind != "size":
            raise TypeError("kernel.whole: expected a size of a tensor, as x.shape[1], or a number")
        number, d = size.node.data
        n = self.asked[number, d] = _power(self.sizes[number][d])
        made = self.arange(n)
        self.tiled[made.node] = size.node
        return made

    def arange(self, n: Any) -> Tile:
        return self.make("arange", (), (_checked_size(n, "arange"),), "int64")

    def tiles(self, sizes: Any, blocks: Any) -> Any:
        if self.grid is not None:
            raise TypeError("kernel.tiles: a function in an expression has one index space, and it was given before")
        if self.block is not self.top:
            raise TypeError("kernel.tiles: the index space of the expression is given before loops")
        single = isinstance(sizes, (Tile, int))
        listed = [sizes] if single else list(sizes.shape if isinstance(sizes, Reference) else sizes)
        per = [blocks] * len(listed) if isinstance(blocks, int) else list(blocks)
        if len(per) != len(listed):
            raise TypeError(f"kernel.tiles: {len(listed)} sizes and {len(per)} sizes of tiles in the expression")
        found, self.grid = [], []
        for d, (size, n) in enumerate(zip(listed, per, strict=True)):
            whole = self.cast(self.tile(size), "int64")
            if whole.shape:
                raise TypeError("kernel.tiles: a size is a single number of the expression")
            n = _checked_size(n, "tiles")
            self.grid.append((whole.node, n))
            at = self.make("program", (), (), "int64", d)
            made = at if n == 1 else self.operation("add", (self.operation("mul", (at, n)), self.arange(n)))
            if whole.node.kind == "size":
                self.tiled[made.node] = whole.node
            found.append(made)
        return found[0] if single else tuple(found)

    # ---- loops ------------------------------------------------------------------------------------------------------
    def range(self, lo: Any, hi: Any, step: Any, frame: Any) -> Iterator[Tile]:
        if type(step) is not int or step < 1:
            raise TypeError(
                f"kernel.range: expected a step that is a whole number above 0, got {step!r} in the expression"
            )
        ends = [self.cast(self.tile(x), "int64") for x in (lo, hi)]
        if any(x.shape for x in ends):
            raise TypeError("kernel.range: begin and end are single numbers of the expression")
        begin_and_end = [x.node for x in ends]
        outside = self.block
        inside = Block(outside)
        held = _Locals(frame)
        index = Node("index", (), (), "int64", None, inside)
        inside.items.append(index)
        data = Loop(index, inside, step)
        firsts: dict[int, tuple[Tile, Node, Node]] = {}
        for x in held.tiles():
            if id(x) in firsts or not outside.has(x.node.block) or x.node.kind == "invalid":
                continue
            phi = Node("phi", (), x.node.shape, x.node.dtype, None, inside)
            firsts[id(x)] = x, x.node, phi
            x.node = phi
        self.block = inside
        self.loops += 1
        counter = Tile(index)
        yield counter
        self.loops -= 1
        for x in held.numbers_changed():
            raise TypeError(
                f"the loop gives {x!r} another value, which is a number of Python and is computed once: begin with "
                f"kernel.scalar({x}) or kernel.zeros, and the loop of the expression carries it"
            )
        changed = held.changed(counter)
        carried: dict[int, Tile] = {}
        for name, before, after in changed:
            if id(before) not in firsts:
                continue
            shared = any(other is after and key != id(before) for key, other in carried.items())
            if carried.get(id(before), after) is not after or held.keeps(before) or held.keeps(after) or shared:
                raise TypeError(
                    f"two names have one value of the expression before or after the loop, which changes {name!r}: "
                    f"give it a value of its own, as in {name} = {name} + 0"
                )
            carried[id(before)] = after
        self.block = outside
        loop = Node("loop", begin_and_end, (), "int64", data, outside)
        replaced: dict[Node, Node] = {}
        for key, (x, first, phi) in firsts.items():
            following_tile = carried.get(key)
            if following_tile is None:
                x.node = replaced[phi] = first
                continue
            following = following_tile.node
            if following.shape != phi.shape or following.dtype != phi.dtype:
                if _uses(inside, phi):
                    raise TypeError(
                        f"a value that the loop carries is a tile of {list(phi.shape)}, {phi.dtype}, and goes on as "
                        f"one of {list(following.shape)}, {following.dtype}; begin it in this form of the expression"
                    )
                following_tile.node = Node(
                    "invalid", (), following.shape, following.dtype,
                    "a value of the expression that a loop makes in another form than before is not known after it",
                    outside,
                )  # fmt: skip
                continue
            data.carried.append((phi, first, following))
        _replace(inside, replaced)
        data.carried = [(p, replaced.get(s, s), replaced.get(n, n)) for p, s, n in data.carried]
        outside.items.append(loop)
        for key, (_, _, phi) in firsts.items():
            made = carried.get(key)
            if made is not None and made.node.kind != "invalid":
                final = Node("final", (), phi.shape, phi.dtype, phi, outside)
                outside.items.append(final)
                made.node = final


def _uses(block: Block, node: Node) -> bool:
    for n in block.items:
        if any(a is node for a in n.args):
            return True
        if n.kind == "loop" and (
            _uses(n.data.body, node) or any(node in (start, following) for _, start, following in n.data.carried)
        ):
            return True
    return False


def _leaves(n: Node) -> list[Node]:
    """Numbers from which a place is computed."""
    return [x for a in n.args for x in _leaves(a)] if n.args else [n]


def _replace(block: Block, by: dict[Node, Node]) -> None:
    for n in block.items:
        n.args = tuple(by.get(a, a) for a in n.args)
        if n.kind == "loop":
            _replace(n.data.body, by)
            n.data.carried = [(p, by.get(s, s), by.get(f, f)) for p, s, f in n.data.carried]


class _Locals:
    """The local names of a function, before the body of a loop and after it."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.before = dict(frame.f_locals)
        self.inside = {name: list(x) for name, x in self.before.items() if isinstance(x, (list, tuple))}
        self.inside |= {name: list(x.values()) for name, x in self.before.items() if isinstance(x, dict)}

    def tiles(self) -> list[Tile]:
        return [x for x in self.before.values() if isinstance(x, Tile)]

    def changed(self, counter: Tile) -> list[tuple[str, Tile, Tile]]:
        found = []
        self.after = dict(self.frame.f_locals)
        for name, x in self.before.items():
            now = self.after.get(name, x)
            if name in self.inside:
                held = (
                    list(now.values()) if isinstance(now, dict) else list(now) if isinstance(now, (list, tuple)) else []
                )
                same = len(held) == len(self.inside[name])
                if not same or any(a is not b for a, b in zip(held, self.inside[name], strict=True)):
                    raise TypeError(
                        f"the loop changes {name!r}, which is no value of the expression: a loop carries values that "
                        f"have names of their own"
                    )
            elif isinstance(x, Tile) and now is not x and now is not counter:
                if not isinstance(now, Tile):
                    raise TypeError(f"the loop gives {name!r} a value that is none of the expression, {now!r:.40}")
                found.append((name, x, now))
        return found

    def numbers_changed(self) -> list:
        after = dict(self.frame.f_locals)
        numbers = (bool, int, float, str)
        return [
            x for name, x in self.before.items()
            if isinstance(x, numbers) and (type(after.get(name)) is not type(x) or after.get(name) != x)
            and not (isinstance(after.get(name), Tile) and after[name].node.kind == "index")
        ]  # fmt: skip

    def keeps(self, x: Tile) -> bool:
        """Whether a name that had the value before the loop has it after it as well."""
        return any(before is x and self.after.get(name) is x for name, before in self.before.items())


def _power(n: int) -> int:
    return 1 << builtins.max(n - 1, 0).bit_length()


def _checked_size(n: Any, what: str) -> int:
    if type(n) is not int or n < 1 or n & (n - 1):
        raise TypeError(
            f"kernel.{what}: sizes of tiles in the expression are powers of two that are known beforehand, got {n!r}"
        )
    if n > MOST_PLACES:
        raise ValueError(
            f"kernel.{what}: a tile has at most {MOST_PLACES} places in a dimension, got {n}; use smaller ones"
        )
    return n


# ---- the functions of taeda.kernel -----------------------------------------------------------------------------------


def tiles(sizes: Any, blocks: Any) -> Any:
    """Cut an index space into tiles, one for each program: the places of this program, in each dimension.

    Args:
        sizes: a tensor, for its sizes; or sizes such as ``x.shape[0]``, one or a tuple.
        blocks: places of a program in each dimension, powers of two; where it is 1 the place is a number, not a tile.

    Returns:
        A tile of ``blocks[d]`` places for each dimension; of one size that is no tuple, the tile itself. The last tile
        of a dimension may reach past its end: loads and stores are masked there.

    Example:
        >>> @taeda.kernel.grid(name="doc::double", out=lambda x: x)
        ... def double(x, out):
        ...     i, j = taeda.kernel.tiles(out, (1, 16))
        ...     out[i, j] = 2 * x[i, j]
        >>> double(taeda.ones(1, 3))
        tensor([[2., 2., 2.]])
    """
    return _traced().tiles(sizes, blocks)


def arange(n: int) -> Tile:
    """``0, 1, ..., n - 1`` as a tile of int64, in a function of :func:`grid`; ``n`` is a power of two."""
    return _traced().arange(n)


def whole(size: Any) -> Tile:
    """``0, 1, ...`` up to the next power of two of a size, in a function of :func:`grid`: all places of a dimension.

    There is a kernel for each power of two.
    """
    return _traced().whole(size)


def range(lo: Any, hi: Any = None, step: int = 1) -> Iterator[Tile]:
    """A loop in a function of :func:`grid`: ``for k in kernel.range(0, n, 32)``.

    Its body is read once. Names that have a value before the loop and get another in the body are carried from one turn
    to the next. ``break``, ``continue`` and ``return`` cannot leave it.
    """
    if hi is None:
        lo, hi = 0, lo
    return _traced().range(lo, hi, step, sys._getframe(1))


def full(shape: Any, value: Any, dtype: Any = None) -> Tile:
    """A tile of equal numbers, in a function of :func:`grid`; by default float32."""
    trace = _traced()
    sizes = tuple(_checked_size(n, "full") for n in ((shape,) if isinstance(shape, int) else shape))
    if not 1 <= len(sizes) <= 2:
        raise TypeError(f"kernel.full: tiles of the expression have one or two dimensions, got {len(sizes)}")
    x = scalar(value, dtype if dtype is not None or isinstance(value, Tile) else "float32")
    return trace.make("full", (x,), sizes, x.dtype)


def zeros(shape: Any, dtype: Any = "float32") -> Tile:
    """A tile of zeros, in a function of :func:`grid`."""
    return full(shape, 0, dtype)


def scalar(value: Any, dtype: Any = None) -> Tile:
    """A number as a value that a loop may carry, in a function of :func:`grid`; by default float32 or int64."""
    trace = _traced()
    if dtype is None and isinstance(value, float):
        dtype = "float32"
    x = trace.tile(value)
    return x if dtype is None else x.to(dtype)


def dot(a: Any, b: Any) -> Tile:
    """The product of two tiles of two dimensions, in a function of :func:`grid`: in float32 or float64.

    ``acc + kernel.dot(a, b)`` adds to what ``acc`` has, without another tile.
    """
    trace = _traced()
    for x in (a, b):
        if not isinstance(x, Tile) or len(x.shape) != 2:
            raise TypeError(f"kernel.dot: expected two tiles of the expression with two dimensions, got {x!r}")
    if a.shape[1] != b.shape[0]:
        raise TypeError(f"kernel.dot: tiles of the expression have sizes {list(a.shape)} and {list(b.shape)}")
    a, b = trace.promoted([a, b], 2)
    return trace.make("dot", (a, b), (a.shape[0], b.shape[1]), a.dtype)


def rand(seed: Any, index: Any) -> Tile:
    """Uniform numbers in [0, 1), float32, in a function of :func:`grid`: Philox2x32-10 of a key and a counter (Salmon
    et al. 2011), so the same seed and place give the same number. A block of it has the numbers of two places; a tile
    of neighbours that begins at an even place computes each block once.

    Args:
        seed: a whole number.
        index: a whole number, or a tile of them: one for each result.
    """
    trace = _traced()
    given = [trace.cast(trace.tile(x), "int64") for x in (seed, index)]
    return trace.make("rand", given, trace.shape_of(given), "float32")


def cdiv(a: Any, b: Any) -> Any:
    """``a / b``, rounded up, of whole numbers."""
    return -(-a // b) if isinstance(a, int) and isinstance(b, int) else (a + (b - 1)) // b

"""Nodes of an ONNX graph as they are written: ``g.Add(x, 1)`` adds a node and gives its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taeda.fx.experimental.symbolic_shapes import _Symbolic

from .._core import bool_, get_default_dtype, int64, result_type
from .._typed import Tensor
from ..ops.creation import empty
from ..ops.exchange import from_numpy, tensor
from .values import DTYPES, to_array

#: Results that have another dtype than the first input.
_BOOL = frozenset("Equal Less LessOrEqual Greater GreaterOrEqual And Or Xor Not IsNaN IsInf".split())
_INT64 = frozenset("Shape Size ArgMax ArgMin NonZero".split())
CODES = {dtype: code for code, dtype in DTYPES.items()}


class Unsupported(Exception):
    """A translator cannot write this call; the text says what ONNX lacks, and what to use instead."""


class Value:
    """A value of the graph: its name, dtype, and sizes (ints and symbols; None if they are not known).

    ``is_size`` says that it stands for a Python number, and is held as a tensor of one element.
    """

    __slots__ = ("dtype", "is_size", "name", "shape")

    def __init__(self, name: str, dtype: Any, shape: Sequence | None = None, is_size: bool = False) -> None:
        self.name, self.dtype, self.is_size = name, dtype, is_size
        self.shape: Any = None if shape is None else tuple(shape)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape) if self.shape is not None else ''}"


def is_static(sizes: Any) -> bool:
    """Whether all of the sizes are plain numbers."""
    return sizes is not None and not any(isinstance(n, (_Symbolic, Value)) or n is None for n in sizes)


class Writer:
    """A graph that is being written. ``outer`` is the one around it, whose values may be used."""

    def __init__(self, opset: int, outer: Writer | None = None) -> None:
        self.opset, self.outer = opset, outer
        self.nodes: list[Any] = []
        self.root: Writer = outer.root if outer is not None else self
        self.scope = ""  # goes in front of names of nodes
        self.result: Any = None  # form of the translated call's result
        if outer is None:
            self.names: dict[str, int] = {}
            self.constants: dict[Any, Value] = {}
            self.initializers: dict[str, Any] = {}
            self.functions: dict[tuple[str, str], Any] = {}
            self.domains: dict[str, int] = {}
            self.calls: dict[str, tuple] = {}  # for values the translator that made them, and its arguments
            self.module_calls: tuple = ()  # the modules around the translated call
            self.made_in: dict[str, tuple] = {}  # for names of nodes those calls
            self.run: Any = None  # writes a graph: ``run(writer, module, inputs)``

    # ---- names and constants ----

    def name(self, wanted: str) -> str:
        """``wanted``, with a number if it is taken."""
        names = self.root.names
        while wanted in names:
            names[wanted] += 1
            wanted = f"{wanted}_{names[wanted]}"
        names[wanted] = 0
        return wanted

    def constant(self, x: Any, dtype: Any = None) -> Value:
        """A number, a list of numbers, an array or a tensor as an initializer; equal ones are one."""
        if isinstance(x, Tensor):
            array, dtype = to_array(x), x.dtype
        else:
            dtype = dtype or _dtype_of(x)
            if not isinstance(x, np.ndarray):
                x = _number(x, dtype)
            array = to_array(tensor(x.tolist() if isinstance(x, np.ndarray) else x, dtype=dtype))
        key = (array.tobytes(), array.shape, dtype)
        found = self.root.constants.get(key)
        if found is None:
            found = Value(self.name("const"), dtype, array.shape)
            self.root.constants[key] = found
            self.root.initializers[found.name] = array
        return found

    # ---- nodes ----

    def __getattr__(self, kind: str) -> Any:
        if not kind[:1].isupper():
            raise AttributeError(kind)
        return lambda *inputs, **attributes: self.op(kind, *inputs, **attributes)

    def op(
        self, kind: str, *inputs: Any, outputs: int = 1, dtype: Any = None, shape: Any = None, domain: str = "",
        **attributes: Any,
    ) -> Any:  # fmt: skip
        """A node; its result, or a tuple of ``outputs`` of them.

        Args:
            kind: the ONNX op.
            inputs: values; numbers, of the dtype of the first value; lists of ints; None for one that is left out.
            outputs: how many results it has.
            dtype: that of the results, by default that of the first value.
            shape: the sizes of the result, where they are of use later.
            domain: ``""`` for that of ONNX itself.
            attributes: those that are None are left out.
        Returns:
            A value, or a tuple of them.
        """
        from onnx import helper

        first = next((x for x in inputs if isinstance(x, Value)), None)
        given = [self._input(x, first) for x in inputs]
        while given and given[-1] == "":
            given.pop()
        name = self.name(f"{self.scope}{kind}")
        if self.outer is None:
            self.made_in[name] = self.module_calls
        results = [self.name(f"{kind.lower()}_out") for _ in range(outputs)]
        kept = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(kind, given, results, name, domain=domain, **kept))
        if domain:
            self.root.domains.setdefault(domain, 1)
        if dtype is None:
            dtype = bool_ if kind in _BOOL else int64 if kind in _INT64 else first and first.dtype
        made = [Value(r, dtype, shape) for r in results]
        return made[0] if outputs == 1 else tuple(made)

    def _input(self, x: Any, first: Value | None) -> str:
        if x is None:
            return ""
        if isinstance(x, Value):
            return x.name
        if isinstance(x, (list, tuple)):
            return self.ints(x).name
        return self.constant(x, first.dtype if first is not None and not isinstance(x, Tensor) else None).name

    # ---- what many translators need ----

    def cast(self, x: Any, dtype: Any) -> Value:
        """``x``, a value or number, as ``dtype``."""
        if not isinstance(x, Value):
            return self.constant(x, dtype)
        x = self.scalar(x)
        if x.dtype is dtype:
            return x
        if dtype.is_complex or x.dtype.is_complex:
            raise Unsupported("ONNX's ops have no complex numbers; keep real and imaginary parts in a last dimension")
        if x.dtype.is_floating_point and dtype is bool_:
            return self.Not(self.Equal(x, 0.0), shape=x.shape)  # NaN is true
        return self.Cast(x, to=CODES[dtype], dtype=dtype, shape=x.shape)

    def scalar(self, x: Any) -> Any:
        """A value that stands for a number, without its dimension."""
        if isinstance(x, Value) and x.is_size:
            return self.Squeeze(x, [0], shape=())
        return x

    def ints(self, sizes: Sequence) -> Value:
        """Numbers, some of which may be values, as one int64 tensor."""
        if not any(isinstance(n, Value) for n in sizes):
            return self.constant([int(n) for n in sizes], int64)
        parts = [self._one(n) if isinstance(n, Value) else self.constant([int(n)]) for n in sizes]
        return parts[0] if len(parts) == 1 else self.Concat(*parts, axis=0)

    def _one(self, n: Value) -> Value:
        """A number as an int64 tensor of one element."""
        n = n if n.is_size else self.Reshape(n, [1])
        return n if n.dtype is int64 else self.Cast(n, to=CODES[int64], dtype=int64)

    def sizes_of(self, x: Value, shape: Sequence | None = None) -> Value:
        """The sizes of ``x`` as a tensor: a constant where they are known."""
        shape = x.shape if shape is None else shape
        return self.constant(list(map(int, shape)), int64) if is_static(shape) else self.Shape(x)

    def size(self, x: Value, dim: int) -> Any:
        """One size of ``x``: a number where it is known."""
        dim = dim % x.rank
        known = x.shape[dim]
        if not isinstance(known, _Symbolic) and known is not None:
            return int(known)
        made = self.Shape(x, start=dim, end=dim + 1)
        made.is_size = True
        return made

    def reduce(self, kind: str, x: Value, axes: Sequence[int] | None = None, keepdim: bool = False) -> Value:
        """A reduction: its axes are an input from opset 18 on (of ReduceSum, from 13)."""
        axes = None if axes is None else [int(a) for a in axes]
        if kind == "ReduceSum" or self.opset >= 18:
            return self.op(kind, x, axes, keepdims=int(keepdim))
        return self.op(kind, x, axes=axes, keepdims=int(keepdim))

    def unsqueeze(self, x: Value, axes: Sequence[int]) -> Value:
        """``x`` with dimensions of one element, at these places of the result."""
        if not axes:
            return x
        shape = None
        if x.shape is not None:
            rest, rank = list(x.shape), x.rank + len(axes)
            places = {a % rank for a in axes}
            shape = [1 if i in places else rest.pop(0) for i in range(rank)]
        return self.Unsqueeze(x, list(axes), shape=shape)

    def squeeze(self, x: Value, axes: Sequence[int]) -> Value:
        """``x`` without these dimensions, which have one element."""
        if not axes:
            return x
        shape = None if x.shape is None else [n for i, n in enumerate(x.shape) if i not in {a % x.rank for a in axes}]
        return self.Squeeze(x, list(axes), shape=shape)

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        order = [int(d) % x.rank for d in order]
        if order == list(range(x.rank)):
            return x
        return self.Transpose(x, perm=order, shape=[x.shape[d] for d in order])

    def split(self, x: Value, sizes: Sequence, axis: int) -> tuple:
        if len(sizes) == 1:
            return (x,)
        shapes = [None if x.shape is None else _with(x.shape, axis, n) for n in sizes]
        parts = self.Split(x, self.ints(sizes), axis=axis, outputs=len(sizes))
        for part, shape in zip(parts, shapes, strict=True):
            part.shape = shape
        return parts

    def slice(self, x: Value, starts: Sequence, ends: Sequence, axes: Sequence[int], steps: Any = None) -> Value:
        return self.Slice(x, self.ints(starts), self.ints(ends), list(axes), steps)

    def reshape(self, x: Value, shape: Sequence, sizes: Sequence | None = None) -> Value:
        """``x`` with the sizes ``shape``. Where several are symbols, ``sizes`` has the values that they come from."""
        if x.shape is not None and tuple(map(str, x.shape)) == tuple(map(str, shape)):
            return x
        if is_static(shape):
            plain = [int(n) for n in shape]
            return self.Reshape(x, plain, allowzero=1 if 0 in plain else None, shape=shape)
        copied: list[Any] = []
        for i, n in enumerate(shape):
            known = x.shape is not None and i < len(x.shape) and isinstance(n, _Symbolic)
            copied.append(0 if known and str(x.shape[i]) == str(n) else n)
        left = [i for i, n in enumerate(copied) if isinstance(n, (_Symbolic, Value))]
        if len(left) == 1:
            copied[left[0]] = -1
        elif sizes is not None:
            copied = list(sizes)
        elif left:
            raise Unsupported("more than one size of the result is not known; pass the sizes as numbers")
        return self.Reshape(x, self.ints(copied), shape=shape)

    def expand(self, x: Value, shape: Sequence, sizes: Sequence | None = None) -> Value:
        """``x`` repeated along dimensions of one element, to the sizes ``shape``."""
        if x.shape is not None and tuple(map(str, x.shape)) == tuple(map(str, shape)):
            return x
        wanted = []
        own = (None,) * (len(shape) - x.rank) + x.shape
        for i, (n, m) in enumerate(zip(shape, own, strict=True)):
            if isinstance(n, _Symbolic):
                n = 1 if m is not None and str(m) == str(n) else sizes[i] if sizes is not None else None
            if n is None:
                raise Unsupported("a size of the result is not known; pass the sizes as numbers")
            wanted.append(n)
        return self.Expand(x, self.ints(wanted), shape=shape)

    def promoted(self, *xs: Any, floating: bool = False) -> list[Value]:
        """Values and numbers as values of the dtype that they have in common."""
        dtype = self.common(*xs)
        if floating and not dtype.is_floating_point and not dtype.is_complex:
            dtype = get_default_dtype()
        return [self.cast(x, dtype) for x in xs]

    def common(self, *xs: Any) -> Any:
        """The dtype that values and numbers have in common."""
        stands: list[Any] = [_stand_in(x) for x in xs]
        if len(stands) == 1:
            return stands[0].dtype if isinstance(stands[0], Tensor) else _dtype_of(stands[0])
        found = stands[0]
        for other in stands[1:]:
            dtype = result_type(found, other)
            ranks = [s.dim() if isinstance(s, Tensor) else 0 for s in (found, other)]
            found = empty((1,) * max(ranks), dtype=dtype, device="meta")
        return found.dtype

    def graph(self, name: str, inputs: Sequence[Any], outputs: Sequence[Value]) -> Any:
        """The nodes as a graph that is an attribute of a node; its outputs are made in it."""
        from onnx import helper

        given = [helper.make_tensor_value_info(x.name, CODES[x.dtype], dims(x.shape)) for x in inputs]
        made = [self.Identity(x, shape=x.shape) for x in outputs]
        infos = [helper.make_tensor_value_info(x.name, CODES[x.dtype], dims(x.shape)) for x in made]
        return helper.make_graph(self.nodes, name, given, infos)


def dims(shape: Any) -> list[Any] | None:
    """Sizes as ONNX names them: numbers, and expressions of symbols."""
    if shape is None:
        return None
    return [repr(n.expr) if isinstance(n, _Symbolic) else None if n is None else int(n) for n in shape]


def _with(shape: Sequence, axis: int, n: Any) -> list:
    made = list(shape)
    made[axis] = n if not isinstance(n, Value) else None
    return made


def _stand_in(x: Any) -> Any:
    if not isinstance(x, Value):
        return x
    if x.is_size:
        return 1 if x.dtype is int64 else 1.0
    return empty((1,) * (1 if x.shape is None else x.rank), dtype=x.dtype, device="meta")


def _dtype_of(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return _dtype_of(x[0]) if x else int64
    if isinstance(x, np.ndarray):
        return from_numpy(x).dtype
    if isinstance(x, complex):
        raise Unsupported("ONNX's ops have no complex numbers; keep real and imaginary parts in a last dimension")
    return bool_ if isinstance(x, bool) else int64 if isinstance(x, int) else get_default_dtype()


def _number(x: Any, dtype: Any) -> Any:
    """A number that ``dtype`` can hold: floats are cut off where it is an integer."""
    if isinstance(x, (list, tuple)):
        return [_number(n, dtype) for n in x]
    if dtype is bool_:
        return bool(x)
    return int(x) if not dtype.is_floating_point and isinstance(x, float) else x

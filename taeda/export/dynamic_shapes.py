"""``Dim`` and ``dynamic_shapes``, which say which sizes of a program's inputs may change."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taeda._core import Tensor
from taeda.fx.experimental.symbolic_shapes import Expr, int_oo
from taeda.utils import _pytree as pytree

__all__ = [
    "AdditionalInputs", "Dim", "ShapesCollection", "UserError", "dims", "refine_dynamic_shapes_from_suggested_fixes",
]  # fmt: skip


class UserError(RuntimeError):
    """A program cannot be exported as it was asked for. ``msg`` is the text."""

    def __init__(self, msg: str = "", *more: Any) -> None:
        super().__init__(msg, *more)
        self.msg = msg


class ConstraintsViolated(UserError):
    """A size that was named is tied to another, or fixed, by the program."""


class _DimHint:
    """``Dim.AUTO``, ``Dim.DYNAMIC`` or ``Dim.STATIC``; called, with a range: ``Dim.AUTO(min=2, max=64)``."""

    def __init__(self, kind: str, min: int | None = None, max: int | None = None) -> None:
        self.kind, self.min, self.max = kind, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        if self.kind == "STATIC":
            raise TypeError("Dim.STATIC has no range")
        return _DimHint(self.kind, min, max)

    def __repr__(self) -> str:
        ends = (f"{name}={x}" for name, x in (("min", self.min), ("max", self.max)) if x is not None)
        return f"DimHint({', '.join((self.kind, *ends))})"


class Dim:
    """A size that may change. Sizes with the same Dim are equal; ``2 * dim`` and ``dim + 1`` are sizes that follow from
    it.

    Args:
        name: an identifier. It stands for the size in the program's constraints.
        min: least size.
        max: largest size.

    Raises:
        AssertionError: the range is empty, or the name is no identifier.
        NotImplementedError: a size that follows from ``dim`` is not ``a * dim + b`` with whole numbers.

    Examples:
        >>> batch = taeda.export.Dim("batch", max=64)
        >>> model, x = nn.Linear(3, 2), taeda.randn(4, 3)
        >>> program = taeda.export.export(model, (x,), dynamic_shapes={"input": {0: batch}})
        >>> program.module()(taeda.randn(7, 3)).shape
        taeda.Size([7, 2])
    """

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name!r}")
        low, high = 0 if min is None else min, int_oo if max is None else max
        if high <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        self.name, self.__name__, self.min, self.max = name, name, low, high
        self.bounded = min is not None, max is not None
        self.root, self.factor, self.offset = self, 1, 0

    def _derived(self, factor: int, offset: int) -> Dim:
        made = Dim.__new__(Dim)
        shown = f"{self.factor * factor}*{self.root.name}" if self.factor * factor != 1 else self.root.name
        total = self.offset * factor + offset
        shown += f" + {total}" if total > 0 else f" - {-total}" if total else ""
        made.name = made.__name__ = shown
        made.min, made.max = self.min * factor + offset, self.max * factor + offset
        made.root, made.factor, made.offset = self.root, self.factor * factor, total
        return made

    def _whole(self, other: Any, what: str) -> int:
        if type(other) is not int:
            raise NotImplementedError(f"Attempted to {what} {other!r} to {self.name}, where an integer was expected")
        return other

    def __add__(self, other: Any) -> Dim:
        return self._derived(1, self._whole(other, "add"))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dim:
        return self._derived(1, -self._whole(other, "subtract"))

    def __mul__(self, other: Any) -> Dim:
        if self._whole(other, "multiply") <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {other} with {self.name}, where a positive integer was expected"
            )
        return self._derived(other, 0)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        if self.root is not self:
            return self.name
        return f"Dim('{self.name}', min={self.min}{'' if self.max == int_oo else f', max={self.max}'})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several :class:`Dim` with one range.

    Args:
        *names: their names.
        min: least size.
        max: largest size.

    Returns:
        A tuple of them.

    Raises:
        AssertionError: the range is empty, or a name is no identifier.

    Examples:
        >>> height, width = taeda.export.dims("height", "width", min=8)
        >>> height.__name__, width.__name__
        ('height', 'width')
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """Dynamic sizes by tensor, for arguments that nest deeply: ``shapes[tensor] = {0: dim}``.

    Examples:
        >>> model, x = nn.Linear(3, 2), taeda.randn(4, 3)
        >>> shapes = taeda.export.ShapesCollection()
        >>> shapes[x] = {0: taeda.export.Dim("batch")}
        >>> program = taeda.export.export(model, (x,), dynamic_shapes=shapes.dynamic_shapes(model, (x,)))
        >>> program.module()(taeda.randn(7, 3)).shape
        taeda.Size([7, 2])
    """

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[Tensor, Any]] = {}

    def __setitem__(self, t: Tensor, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        self._shapes[id(t)] = t, shape

    def __getitem__(self, t: Tensor) -> Any:
        if id(t) not in self._shapes:
            self._shapes[id(t)] = t, {}
        return self._shapes[id(t)][1]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: dict | None = None) -> Any:
        """The argument ``dynamic_shapes`` of ``export``.

        Args:
            m: the model.
            args: positional arguments.
            kwargs: arguments by name.

        Returns:
            Dims in the structure of the arguments.

        Raises:
            ValueError: a tensor is not among the arguments.
        """
        seen = {id(x) for x in pytree.tree_leaves((args, kwargs or {}))}
        if missing := [x for x, _ in self._shapes.values() if id(x) not in seen]:
            raise ValueError(f"{len(missing)} of the tensors in the collection are not among the inputs")
        named = named_arguments(m, args, kwargs or {})
        return pytree.tree_map(lambda x: self._shapes[id(x)][1] if id(x) in self._shapes else None, named)


class AdditionalInputs:
    """More example arguments: a size, or an int, that is not the same in all of them may change.

    Examples:
        >>> model = nn.Linear(3, 2)
        >>> inputs = taeda.export.AdditionalInputs()
        >>> inputs.add((taeda.randn(7, 3),))
        >>> program = taeda.export.export(model, (taeda.randn(4, 3),), dynamic_shapes=inputs)
        >>> program.module()(taeda.randn(9, 3)).shape
        taeda.Size([9, 2])
    """

    def __init__(self) -> None:
        self._examples: list[tuple[tuple, dict | None]] = []

    def add(self, args: tuple, kwargs: dict | None = None) -> None:
        """Take in arguments of a call.

        Args:
            args: positional arguments.
            kwargs: arguments by name.

        Raises:
            AssertionError: ``args`` is no tuple, or ``kwargs`` no dict.
        """
        if type(args) is not tuple or (kwargs is not None and type(kwargs) is not dict):
            raise AssertionError(f"Representative args must be a tuple and kwargs a dict or None, got {args}, {kwargs}")
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: dict | None = None) -> Any:
        """The argument ``dynamic_shapes`` of ``export``, nested as ``args`` and ``kwargs`` are.

        Args:
            m: the model.
            args: positional arguments.
            kwargs: arguments by name.

        Returns:
            Dims in the structure of the arguments.

        Raises:
            ValueError: arguments nest in another way, or numbers of dimensions and values that must be fixed differ.
        """
        first, spec = pytree.tree_flatten(named_arguments(m, args, kwargs or {}))
        rows = [first]
        for more in self._examples:
            leaves, other = pytree.tree_flatten(named_arguments(m, more[0], more[1] or {}))
            if other != spec:
                raise ValueError(f"The arguments {other} do not nest as those of the example, {spec}")
            rows.append(leaves)
        return pytree.tree_unflatten([_varying(column) for column in zip(*rows, strict=True)], spec)

    def verify(self, ep: Any) -> None:
        """Call the program with all of the arguments.

        Args:
            ep: the program.

        Raises:
            RuntimeError: it is not for one of them.
        """
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **(kwargs or {}))


def _varying(column: tuple) -> Any:
    """The sizes of an argument that differ between examples."""
    if not isinstance(column[0], Tensor):
        if any(type(x) is not type(column[0]) or x != column[0] for x in column):
            if not all(type(x) is int for x in column):
                raise ValueError(f"expected numbers to be the same in all examples, got {list(column)}")
            return Dim.DYNAMIC
        return None
    if len({x.dim() for x in column}) > 1:
        raise ValueError(f"expected as many dimensions in all examples, got shapes {[tuple(x.shape) for x in column]}")
    return tuple(Dim.DYNAMIC if len(set(sizes)) > 1 else None for sizes in zip(*(x.shape for x in column), strict=True))


def refine_dynamic_shapes_from_suggested_fixes(msg: str, dynamic_shapes: Any) -> Any:
    """``dynamic_shapes`` with the fixes that the text of an error suggests.

    Args:
        msg: the text of the ``UserError``.
        dynamic_shapes: what ``export`` was given: Dims in trees.
    Returns:
        The same structure.
    Raises:
        ValueError: the text suggests nothing.
    """
    _, found, text = msg.partition("Suggested fixes:")
    if not found:
        raise ValueError("refine_dynamic_shapes_from_suggested_fixes: the text has no suggested fixes")
    given = {d.root.name: d.root for d in pytree.tree_leaves(dynamic_shapes) if isinstance(d, Dim)}
    fixes: dict[str, Any] = {}
    for line in text.strip().splitlines():
        match = re.fullmatch(r"\s*(\w+) = (.+?)\s*", line)
        if match is None:
            break
        fixes[match[1]] = _fix(match[2], {**given, **fixes})

    def fixed(d: Any) -> Any:
        if not isinstance(d, Dim) or d.root.name not in fixes:
            return d
        made = fixes[d.root.name]
        return made * d.factor + d.offset

    return pytree.tree_map(fixed, dynamic_shapes)


def _fix(text: str, known: dict[str, Dim]) -> Any:
    """A size as errors suggest it: ``4``, ``b``, ``3*_a``, ``a + 1``, ``Dim('a', min=2, max=5)``."""
    if text.isdecimal():
        return int(text)
    match = re.fullmatch(r"Dim\('(\w+)'(?:, min=(\d+))?(?:, max=(\w+))?\)", text)
    if match is not None:
        high = match[3] if match[3] and match[3].isdecimal() else None
        return Dim(match[1], min=int(match[2]) if match[2] else None, max=int(high) if high else None)
    match = re.fullmatch(r"(?:(\d+)\*)?(\w+)(?: ([+-]) (\d+))?", text)
    if match is None:
        raise ValueError(f"refine_dynamic_shapes_from_suggested_fixes: {text!r} is no size")
    dim = known.get(match[2]) or Dim(match[2])
    offset = int(match[4] or 0) * (-1 if match[3] == "-" else 1)
    scaled = dim * int(match[1]) if match[1] else dim
    return scaled + offset if offset else scaled


@dataclass
class Root:
    """A symbol: its size in the example, range, and whether the program may fix it (``AUTO``), or tie it to another
    (``AUTO`` and ``DYNAMIC``)."""

    name: str
    hint: int
    low: int
    high: float
    free: bool
    bounded: tuple[bool, bool]
    where: str
    tied: bool = False


def named_arguments(model: Any, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments of a call by the names of the parameters."""
    function = getattr(model, "forward", model)
    try:
        return dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except ValueError:  # no signature is known
        return {**{f"arg{i}": x for i, x in enumerate(args)}, **kwargs}


class Reader:
    """Reads ``dynamic_shapes``: the symbols, and for each tensor the expression, or None, of each size."""

    def __init__(self) -> None:
        self.roots: dict[str, Root] = {}
        self.dims: dict[str, Dim] = {}
        self.count = 0

    def read(self, named: Mapping[str, Any], given: Any) -> list[list[Expr | None]]:
        """For each leaf of the arguments the expressions of its sizes (empty where it is no tensor).

        Args:
            named: the arguments by name.
            given: the argument ``dynamic_shapes``.

        Returns:
            A list of expressions for each leaf.

        Raises:
            UserError: ``given`` does not fit the arguments.
        """
        if isinstance(given, Mapping):
            if set(given) != set(named):
                raise UserError(
                    f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
                    f"{list(named)} of "
                    f"`inputs`, but here they are {list(given)}."
                )
            given = [given[name] for name in named]
        elif given is None:
            given = [None] * len(named)
        elif not isinstance(given, (tuple, list)) or len(given) != len(named):
            raise UserError(
                f"Expected `dynamic_shapes` to be a dict, or a tuple or list with one item for each of the arguments "
                f"{list(named)}, got {given!r}"
            )
        found: list[list[Expr | None]] = []
        for (name, value), spec in zip(named.items(), given, strict=True):
            self._walk(value, spec, name, found)
        return found

    def _walk(self, value: Any, spec: Any, where: str, found: list) -> None:
        if isinstance(value, Tensor):
            found.append(self._tensor(value, spec, where))
            return
        children, kind = pytree.tree_flatten(value, is_leaf=lambda x: x is not value)
        if kind.is_leaf():
            if spec is not None and not isinstance(spec, _DimHint):
                raise UserError(
                    f"dynamic_shapes: {where} is no tensor, so that it has no sizes; expected None, got {spec!r}"
                )
            if isinstance(spec, _DimHint) and spec.kind == "DYNAMIC" and isinstance(value, int):
                raise UserError(
                    f"dynamic_shapes: {where} is a number, and numbers are fixed; make it a tensor, and take its item()"
                )
            found.append([])
            return
        keys = kind.context if isinstance(value, dict) else range(len(children))
        if spec is None:
            specs = [None] * len(children)
        elif isinstance(value, (tuple, list, dict)) and not _alike(value, spec):
            raise _mismatch(where, f"is a {type(value)}", f"is a {type(spec)}, {spec!r:.80}")
        elif isinstance(spec, Mapping) and isinstance(value, dict):
            if set(spec) != set(keys):
                raise _mismatch(where, f"has the keys {list(keys)}", f"has the keys {list(spec)}")
            specs = [spec[key] for key in keys]
        elif isinstance(spec, Mapping):  # a dataclass by the names of its fields
            specs = [spec.get(key) for key in kind.context]
        else:
            specs = list(spec) if isinstance(spec, (tuple, list)) else pytree.tree_leaves(spec)
        if len(specs) != len(children):
            raise _mismatch(where, f"has {len(children)} elements", f"has {len(specs)} elements")
        for key, child, inner in zip(keys, children, specs, strict=True):
            self._walk(child, inner, f"{where}[{key!r}]", found)

    def _tensor(self, tensor: Tensor, spec: Any, where: str) -> list[Expr | None]:
        if spec is None:
            return [None] * tensor.dim()
        if isinstance(spec, _DimHint):
            spec = [spec] * tensor.dim()
        if isinstance(spec, Mapping):
            for d in spec:
                if not isinstance(d, int) or not -tensor.dim() <= d < tensor.dim():
                    raise UserError(f"dynamic_shapes: {where} has {tensor.dim()} dimensions, but {d!r} was given")
            wanted = {d % tensor.dim(): s for d, s in spec.items()}
            spec = [wanted.get(d) for d in range(tensor.dim())]
        if not isinstance(spec, (tuple, list)) or len(spec) != tensor.dim():
            raise UserError(
                f"dynamic_shapes: expected a dict, or {tensor.dim()} items, for the sizes {list(tensor.shape)} of "
                f"{where}, "
                f"got {spec!r}"
            )
        return [
            self._size(n, s, f"{where}.shape[{d}]") for d, (n, s) in enumerate(zip(tensor.shape, spec, strict=True))
        ]

    def _size(self, size: int, spec: Any, where: str) -> Expr | None:
        if spec is None or (isinstance(spec, _DimHint) and spec.kind == "STATIC"):
            return None
        if isinstance(spec, int) and not isinstance(spec, bool):
            if spec != size:
                raise UserError(f"Static shape constraint of {spec} does not match input size of {size}, for {where}")
            return None
        if isinstance(spec, _DimHint):
            free = spec.kind == "AUTO"
            if free and size < 2:
                return None
            self.count += 1
            low, high = spec.min or 0, int_oo if spec.max is None else spec.max
            bounded = spec.min is not None, spec.max is not None
            return self._root(Root(f"s{self.count - 1}", size, low, high, free, bounded, where, True))
        if not isinstance(spec, Dim):
            raise UserError(f"dynamic_shapes: expected a Dim, an int or None for {where}, got {spec!r}")
        return self._of_dim(size, spec, where)

    def _root(self, root: Root) -> Expr:
        if not root.low <= root.hint <= root.high:
            raise UserError(f"{root.where} = {root.hint} is not in the range [{root.low}, {root.high}] of {root.name}")
        self.roots[root.name] = root
        return Expr(root.name)

    def _of_dim(self, size: int, dim: Dim, where: str) -> Expr:
        root = dim.root
        known = self.dims.setdefault(root.name, root)
        if known is not root and (known.min, known.max) != (root.min, root.max):
            raise UserError(
                f"Found different definitions {known} and {root} for the same symbolic dimension {root.name!r}"
            )
        if (size - dim.offset) % dim.factor:
            raise UserError(f"Expected {where} = {size} to be of the form {dim.name}, where {root.name} is an integer")
        hint = (size - dim.offset) // dim.factor
        if root.name not in self.roots:
            self._root(Root(root.name, hint, root.min, root.max, False, root.bounded, where))
        elif self.roots[root.name].hint != hint:
            other = self.roots[root.name]
            raise ConstraintsViolated(
                f"Constraints violated ({root.name})! {where} = {size} and {other.where} must agree: they give "
                f"{hint} and "
                f"{other.hint} for {root.name}"
            )
        expr: Any = Expr(root.name) if dim.factor == 1 else Expr("mul", dim.factor, Expr(root.name))
        if dim.offset:
            expr = Expr("add" if dim.offset > 0 else "sub", expr, abs(dim.offset))
        return expr


def _alike(value: Any, spec: Any) -> bool:
    """Whether ``spec`` nests as ``value`` does, at the outermost level."""
    if isinstance(value, dict):
        return isinstance(spec, Mapping)
    return isinstance(spec, list if isinstance(value, list) else tuple)


def _mismatch(where: str, ours: str, theirs: str) -> UserError:
    """The error for ``dynamic_shapes`` that does not nest as the arguments do."""
    name, bracket, rest = where.partition("[")
    path = f"[{name!r}]{bracket}{rest}"
    return UserError(
        f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs{path}` {ours}, but "
        f"`dynamic_shapes{path}` {theirs}"
    )

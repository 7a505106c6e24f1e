"""Tensors of a program that is being recorded: sizes, dtype and device, but no values."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from taeda._core import Size, Tensor
from taeda.fx.experimental.symbolic_shapes import Expr, GuardOnDataDependentSymNode, SymInt, fitted
from taeda.ops.meta import place_of, without_values
from taeda.overrides import _disabled_torch_function_impl

from .. import _core

_WAYS = (
    "\nThree ways to mend it:\n"
    "  1. cond(pred, true_fn, false_fn, operands) keeps both branches in the program;\n"
    "  2. make the value an argument that is a Python number: it is then fixed;\n"
    "  3. compute without the value: torch.where or a mask, and torch._check for what must hold."
)


def refuse_value(what: str, where: str) -> NoReturn:
    """Raise for a program that asks for values."""
    raise GuardOnDataDependentSymNode(
        f"export: {what} needs the values of a tensor, which are not known while a program is recorded.\n{where}{_WAYS}"
    )


def undecided(condition: str, where: str, symbols: Sequence[tuple[str, str]]) -> NoReturn:
    """Raise for a program that branches on numbers that only a run finds."""
    origin = "".join(f"\n{name} comes from\n{line}" for name, line in symbols)
    raise GuardOnDataDependentSymNode(
        f"Could not guard on data-dependent expression {condition}: it needs the values of a tensor, which are not "
        f"known while a program is recorded.\n{where}{origin}{_WAYS}"
    )


class FakeTensor(Tensor):
    """A tensor on device meta that shows the sizes, some of which may be symbolic, and the device of another one."""

    __torch_function__ = _disabled_torch_function_impl
    _sizes: tuple = ()
    _device: Any = None

    @property
    def shape(self) -> Any:
        return Size(self._sizes)

    def size(self, dim: Any = None, *, axis: Any = None) -> Any:
        dim = axis if dim is None else dim
        if dim is None:
            return Size(self._sizes)
        rank = len(self._sizes)
        if not -rank <= dim < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
                if rank
                else "size: dimension specified as 0 but tensor has no dimensions"
            )
        return self._sizes[dim]

    def dim(self) -> int:
        return len(self._sizes)

    ndimension = dim

    @property
    def ndim(self) -> int:
        return len(self._sizes)

    def numel(self) -> Any:
        return math.prod(self._sizes)

    nelement = numel

    def __len__(self) -> int:
        if not self._sizes:
            raise TypeError("len() of a 0-d tensor")
        return int(self._sizes[0])

    @property
    def device(self) -> Any:
        return self._device

    @property
    def is_meta(self) -> bool:
        return self._device.type == "meta"

    @property
    def is_cpu(self) -> bool:
        return self._device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        return self._device.type == "cuda"

    def __repr__(self) -> str:
        return f"FakeTensor(..., size=({', '.join(map(str, self._sizes))}), dtype={self.dtype})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __deepcopy__(self, memo: dict) -> FakeTensor:
        return fake(self, self._sizes, self._device)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (self._sizes, self.stride(), self.dtype, str(self._device))


def _rebuild(sizes: Sequence, strides: Sequence, dtype: Any, device: str) -> FakeTensor:
    return fake(without_values([int(n) for n in sizes], strides, dtype), sizes, _core.device(device))


def fake(meta: Tensor, sizes: Sequence, device: Any) -> FakeTensor:
    """A FakeTensor with the form of ``meta``, which may itself be one."""
    made = Tensor._make_subclass(FakeTensor, meta)
    made._sizes, made._device = tuple(sizes), device
    return made


class Traced(FakeTensor):
    """A tensor of the program that is being recorded. ``metas`` are tensors on device meta, one for each sample of
    sizes."""

    metas: list[Tensor]
    capture: Any
    wants_grad: bool = False
    constant: tuple[Tensor, int] | None = None  # values that are the same in every run, of this version

    def __hash__(self) -> int:
        return id(self) >> 4

    @property
    def is_meta(self) -> bool:
        """Whether it has no values to look at, as bodies ask that check their arguments."""
        return self._device.type == "meta" or self.capture.in_body()

    @property
    def requires_grad(self) -> bool:
        return self.wants_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.wants_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Traced:
        self.wants_grad = requires_grad
        return self

    def detach(self) -> Any:
        return _core_detach(self)

    def detach_(self) -> Any:
        from taeda.ops.callables import detach_

        self.capture.handle(detach_, (self,), {})
        self.wants_grad = False
        return self

    def __copy__(self) -> Any:
        made = _core_detach(self)
        made.wants_grad = self.wants_grad
        return made

    def __deepcopy__(self, memo: dict) -> Any:
        made = memo[id(self)] = self.__copy__().clone()
        return made

    @property
    def data(self) -> Any:
        return _core_detach(self)

    @data.setter
    def data(self, value: Any) -> None:
        with self.capture.on():
            Tensor.data.__set__(self, value)  # refused, with the reason

    def __repr__(self) -> str:
        value = self.capture.value_of(self)
        return super().__repr__() if value is None else repr(value)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        value = self.capture.value_of(self)
        return super().__format__(spec) if value is None else format(value, spec)

    def __iter__(self) -> Iterator:
        if not self._sizes:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __getitem__(self, index: Any) -> Any:
        return self.capture.handle(operator.getitem, (self, _with_numbers(index)), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        self.capture.handle(operator.setitem, (self, _with_numbers(index), value), {})

    def item(self) -> Any:
        return self.capture.number(self)

    def tolist(self) -> Any:
        return self.item() if not self._sizes else [x.tolist() for x in self.unbind(0)]


def _with_numbers(index: Any) -> Any:
    """An index whose slices have numbers, not tensors, as bounds."""
    if isinstance(index, tuple):
        return tuple(map(_with_numbers, index))
    if not isinstance(index, slice):
        return index
    return slice(*(x.item() if isinstance(x, Traced) else x for x in (index.start, index.stop, index.step)))


def _core_detach(x: Traced) -> Any:
    from taeda.ops.callables import detach

    return x.capture.handle(detach, (x,), {})


def _needs_value(attribute: str, name: str) -> Any:
    def method(self: Traced, *args: Any, **kwargs: Any) -> Any:
        value = self.capture.value_of(self)
        if value is None or attribute == "data_ptr":
            refuse_value(name, self.capture.where())
        with self.capture.aside():
            made = getattr(value, attribute)(*map(self.capture.value_of, args), **kwargs)
        if attribute in ("numpy", "__array__"):
            self.capture.made.setdefault(place_of(value), self)  # a tensor of the array is a view
            made.flags.writeable = id(self) in self.capture.unread  # else the program has read the values
        return made

    return method


for _name, _what in {
    "__bool__": "a condition (if, while, and, or, not, assert)", "__int__": "int()",
    "__float__": "float()", "__complex__": "complex()", "__index__": "an index or a size", "numpy": "numpy()",
    "__array__": "a NumPy array", "data_ptr": "data_ptr()", "__contains__": "in",
}.items():  # fmt: skip
    setattr(Traced, _name, _needs_value(_name, _what))


# ---- sizes of results ------------------------------------------------------------------------------------------------


def samples_of(roots: dict[str, tuple[int, int, float]], avoid: Iterable[int] = ()) -> list[dict[str, int]]:
    """Values of the symbols to run a program at: the example's, one with each symbol changed, two with all changed.

    Args:
        roots: for each symbol its size in the example, and the range that it may be in.
        avoid: numbers that a program makes exceptions for.
    """
    base = {name: hint for name, (hint, _, _) in roots.items()}
    taken = {*base.values(), *avoid}
    names = list(roots)

    def other(name: str, used: set[int]) -> int:
        hint, low, high = roots[name]
        above = itertools.chain(itertools.islice(itertools.count(hint + 1), 200), range(hint - 1, max(low, 2) - 1, -1))
        inside = [n for n in itertools.islice(above, 400) if low <= n <= high and n != hint]
        free = [n for n in inside if n not in used and n not in taken and n >= 2]
        chosen = free[0] if free else inside[0] if inside else hint
        taken.add(chosen)
        return chosen

    if not names:
        return [base]
    found = [base, *({**base, name: other(name, set())} for name in names)]
    for _ in range(2):
        used = {n for sample in found for n in sample.values()}
        found.append({name: other(name, used) for name in names})
    return found


def as_size(values: Sequence[int], samples: list[dict[str, int]], owner: Any, source: Any) -> Any:
    """A size with these values: an int where they are one number."""
    if all(v == values[0] for v in values):
        return values[0]
    expr = owner.expressions.get(tuple(values))
    if expr is None:
        expr = fitted(values, samples) or Expr(owner.new_name(tuple(values)))
        owner.expressions[tuple(values)] = expr
    return SymInt(values[0])._become(expr, values, owner, source)


class Conflict(Exception):
    """A program does something else, or fails, at another sample of sizes.

    ``sample`` is the number of the sample, ``progress`` how many steps were recorded before, and ``guard`` a comparison
    whose outcome in the example is ``outcome``. ``given`` are the function that fails and its arguments.
    """

    def __init__(
        self, sample: int, progress: int, text: str, guard: Any = None, outcome: bool = True, given: Any = None,
        error: Exception | None = None,
    ) -> None:  # fmt: skip
        super().__init__(text)
        self.sample, self.progress, self.text, self.guard, self.outcome = sample, progress, text, guard, outcome
        self.given, self.error = given, error


def range_of(expr: Expr, outcome: bool, bounds: dict[str, tuple[int, float]]) -> tuple[str, int, float] | None:
    """The range of one symbol in which a comparison comes out so; no name where it always does, None where it says
    more.

    Args:
        expr: the comparison.
        outcome: how it comes out.
        bounds: the ranges that the symbols have already.
    """
    left, right = (a.linear() if isinstance(a, Expr) else ({}, a) if isinstance(a, int) else None for a in expr.args)
    if left is None or right is None:
        return None
    factors = {k: left[0].get(k, 0) - right[0].get(k, 0) for k in {**left[0], **right[0]}}
    factors = {k: v for k, v in factors.items() if v}
    constant = left[1] - right[1]
    head = expr.head if outcome else {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}[expr.head]
    if not factors or not set(factors) <= set(bounds):
        return None if factors else ("", 0, 0)
    low = constant + sum(f * bounds[k][0 if f > 0 else 1] for k, f in factors.items())
    high = constant + sum(f * bounds[k][1 if f > 0 else 0] for k, f in factors.items())
    always = {"ge": low >= 0, "gt": low > 0, "le": high <= 0, "lt": high < 0, "ne": low > 0 or high < 0, "eq": False}
    if always[head]:
        return "", 0, 0
    ((name, factor),) = list(factors.items())[:1]
    low, high = bounds[name]
    bound, strict = -constant / factor, head in ("gt", "lt")
    if len(factors) == 1 and head == "ne" and bound == low:
        return name, int(low) + 1, math.inf  # the least size is left out
    if len(factors) > 1 or head in ("eq", "ne"):
        return None
    if (head in ("gt", "ge")) == (factor > 0):  # the symbol is at least so large
        return name, math.ceil(bound) + (1 if strict and bound == int(bound) else 0), math.inf
    return name, 0, math.floor(bound) - (1 if strict and bound == int(bound) else 0)

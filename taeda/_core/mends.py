"""Advice at the end of errors about sizes and arguments. Imported once something has failed.

Every function gives the end of a message, from its separator on, or an empty text where nothing certain can be said.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any


def for_linear(input: Sequence[int], weight: Sequence[int]) -> str:
    """``input`` has another number of features than a layer with ``weight``."""
    got, want = input[-1], weight[-1]
    if len(weight) == 1:
        return ""
    for start in range(1, len(input) - 1):
        if prod(input[start:]) == want:
            return f"; give it input.flatten({start})"
    mend = f"; a layer Linear({got}, {weight[0]}) takes this input"
    if want in input[:-1]:
        mend += f"; if dimension {input.index(want)} has the features, give input.transpose({input.index(want)}, -1)"
    if weight[0] == got:
        mend += "; if the weight is [in_features, out_features], give weight.t()"
    return mend


def for_product(a: Sequence[int], b: Sequence[int]) -> str:
    """``a @ b`` of sizes that do not fit."""
    fits_second = len(b) > 1 and b[-1] == a[-1]
    fits_first = len(a) > 1 and a[-2] == b[-2 if len(b) > 1 else -1]
    mends = ["a @ b.mT"] * fits_second + ["a.mT @ b"] * fits_first
    if not mends and len(b) > 1 and len(a) > 1 and a[-2] == b[-1]:
        mends = ["b @ a"]
    return f"; {' or '.join(mends)} has sizes that fit" if mends else ""


def broadcast(a: Sequence[int], b: Sequence[int]) -> list[int] | None:
    """The sizes of ``a + b``; None if there are none."""
    n = max(len(a), len(b))
    pairs = list(zip((1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b), strict=True))
    return [y if x == 1 else x for x, y in pairs] if all(1 in (x, y) or x == y for x, y in pairs) else None


def for_broadcast(shapes: list[Sequence[int]]) -> str:
    """Sizes that do not broadcast."""
    rule = "; sizes are compared from the last on, and have to be equal or 1"
    if len(shapes) != 2:
        return rule
    found = []
    for name, x, other in (("b", shapes[1], shapes[0]), ("a", shapes[0], shapes[1])):
        if len(x) < len(other):
            places = range(len(x) + 1)
            found += [f"{name}.unsqueeze({i})" for i in places if broadcast((*x[:i], 1, *x[i:]), other) == list(other)]
        elif name == "b" and len(x) > 1 and broadcast((*x[:-2], x[-1], x[-2]), other) == list(other):
            found.append("b.mT")
    return f"{rule}: {' or '.join(found)} would fit" if found else rule


def for_cat(first: Sequence[int], other: Sequence[int], dim: int) -> str:
    """``cat`` of tensors that differ in other sizes than that of ``dim``."""
    apart = [d for d, (a, b) in enumerate(zip(first, other, strict=True)) if a != b]
    if len(apart) == 1:
        return f" cat(..., dim={apart[0]}) joins them along the size in which they differ."
    return " Cut or pad them to one size, as with nn.functional.pad."


def for_reshape(shape: Sequence[int], asked: Sequence[int], count: int) -> str:
    """``count`` elements of ``shape`` do not have the sizes ``asked``."""
    free = -1 in asked
    known = prod(n for n in asked if n != -1)
    mend = f": {count} is no multiple of {known}" if free else f": these sizes are for {known} elements"
    if len(shape) > 1 and len(asked) > 1 and (asked[0] == shape[0] or asked[0] == -1) and shape[0]:
        first, rest = [shape[0], *asked[1:-1]], prod(n for n in asked[1:-1])
        if -1 not in asked[1:-1] and rest and count % (shape[0] * rest) == 0:
            return f"{mend}; {[*first, -1]} would fit, and keep the first size"
    return mend + ("" if free else "; one size may be -1: it is worked out from the others")


def for_dim(n: int) -> str:
    """A dimension that a tensor of ``n`` dimensions has not."""
    if n == 0:
        return "; the tensor has no dimensions"
    return f"; the tensor has {n} dimension{'s' * (n > 1)}, the last is {n - 1} or -1"


def for_dtype(x: Any, names: Sequence[str], namespace: str) -> str:
    """``x``, a dtype's name or NumPy's dtype, in place of one of the dtypes ``names``."""
    text = x if isinstance(x, str) else getattr(x, "name", None) or getattr(x, "__name__", "")
    mend = f"{namespace}.{text}"
    return f"; give {mend}" if mend in names else ""


def for_class(target: int, classes: int) -> str:
    """A class number out of range."""
    if target < 0:
        return f"; with ignore_index={target} such targets are left out"
    if target == classes:
        return f"; classes are counted from 0: give target - 1 for classes 1 to {classes}, or {target + 1} scores each"
    return f"; classes are counted from 0: the model has to give at least {target + 1} scores each"


def for_pair(input: Sequence[int], target: Sequence[int]) -> str:
    """A loss of two tensors that have to have one size; only where a size of 1 is too many or lacking."""
    same = [n for n in input if n != 1] == [n for n in target if n != 1]
    return "; use target.view_as(input)" if same else ""


def not_tensor(what: str, x: Any) -> TypeError:
    """An argument, named by ``what``, that is no tensor."""
    hint = ""
    if hasattr(x, "_parameters") and hasattr(x, "forward"):
        hint = f"; a module is made first and called then, as in {type(x).__name__}()(x)"
    elif isinstance(x, list | tuple) and any(hasattr(item, "requires_grad") for item in x):
        hint = "; it holds tensors: take one of them, as in output, state = rnn(x), or join them with stack() or cat()"
    elif hasattr(x, "__array__") or isinstance(x, list | tuple | float | int):
        hint = "; as_tensor(...) makes one of it"
    return TypeError(f"{what} must be Tensor, not {type(x).__name__}{hint}")

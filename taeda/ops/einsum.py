"""Sums of products by index notation: ``einsum``, ``tensordot``, ``kron``. All of it becomes batched matrix
products."""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Container, Sequence
from typing import Any

from .._core import Tensor, wrapped_dim
from .._core.plan import once_per_form
from .contraction import order
from .matmul import dot, matmul
from .out import write_out
from .table import composite
from .views import diagonal, permute, reshape, unsqueeze, view_as_itself

_LETTERS = string.ascii_uppercase + string.ascii_lowercase


def _from_sublists(args: Sequence) -> tuple[str, list[Tensor]]:
    """``einsum(a, [0, 1], b, [1, 2], [0, 2])`` as an equation."""

    def text(sublist) -> str:
        if isinstance(sublist, Tensor) or not isinstance(sublist, (list, tuple)):
            kind = RuntimeError if isinstance(sublist, Tensor) else TypeError
            raise kind(
                f"einsum(): expected a list of subscripts after each operand, got {type(sublist).__name__}; or give an "
                f"equation string first"
            )
        for i in sublist:
            if i is not Ellipsis and not 0 <= i < 52:
                raise ValueError(f"einsum(): subscript {i} in subscript list is not within the valid range [0, 52)")
        return "".join("..." if i is Ellipsis else _LETTERS[i] for i in sublist)

    operands = list(args[: len(args) // 2 * 2 : 2])
    terms = [text(sub) for sub in args[1 : len(args) // 2 * 2 : 2]]
    equation = ",".join(terms)
    if len(args) % 2:
        equation += "->" + text(args[-1])
    return equation, operands


@functools.lru_cache(maxsize=512)
def _parse(equation: str, ranks: tuple[int, ...]) -> tuple[tuple[tuple, ...], tuple]:
    """The indices of every operand and of the result. The dimensions behind ``...`` are negative numbers from the
    right."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        more = "fewer" if len(terms) > len(ranks) else "more"
        raise RuntimeError(
            f"einsum(): {more} operands were provided than specified in the equation {equation!r}: {len(ranks)} "
            f"operands, {len(terms)} terms"
        )
    inputs, wild = [], 0
    for n, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        head, dots, tail = term.partition("...")
        if not (head + tail).isalpha() and head + tail:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {n} in {equation!r}: subscripts must be in [a-zA-Z]"
            )
        hidden = rank - len(head) - len(tail)
        if hidden < 0 or (hidden and not dots):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(head + tail)}) "
                f"{'is more than' if hidden < 0 else 'does not match'} the number of dimensions ({rank}) for operand "
                f"{n}{'' if dots else ' and no ellipsis was given'}"
            )
        wild = max(wild, hidden)
        inputs.append((*head, *range(-hidden, 0), *tail))
    if not arrow:
        letters = sorted(x for x in left if x.isalpha())
        once = [x for x in letters if letters.count(x) == 1]
        return tuple(inputs), (*range(-wild, 0), *once)
    head, dots, tail = right.partition("...")
    for x in head + tail:
        if not x.isalpha():
            raise RuntimeError(f"einsum(): invalid subscript given for the output in {equation!r}: must be in [a-zA-Z]")
        if (head + tail).count(x) > 1:
            raise RuntimeError(f"einsum(): output subscript {x} appears more than once in the output of {equation!r}")
        if x not in left:
            raise RuntimeError(
                f"einsum(): output subscript {x} does not appear in the equation for any input operand: {equation!r}"
            )
    return tuple(inputs), (*head, *(range(-wild, 0) if dots else ()), *tail)


def _check_sizes(equation: str, operands: Sequence[Tensor], inputs: Sequence[tuple]) -> None:
    sizes: dict = {}
    for n, (x, indices) in enumerate(zip(operands, inputs, strict=True)):
        own: dict = {}
        for size, i in zip(x.shape, indices, strict=True):
            if own.setdefault(i, size) != size:
                raise RuntimeError(
                    f"einsum(): subscript {i} is repeated for operand {n} but the sizes don't match, {size} != {own[i]}"
                )
            known = sizes.setdefault(i, size)
            if known == 1:
                sizes[i] = size
            elif size not in (1, known):
                raise RuntimeError(
                    f"einsum(): subscript {i if isinstance(i, str) else '...'} has size {size} for operand {n} which "
                    f"does not broadcast with previously seen size {known} (equation {equation!r}, shapes "
                    f"{', '.join(str(tuple(o.shape)) for o in operands)})"
                )


def _without_repeats(x: Tensor, indices: tuple) -> tuple[Tensor, tuple]:
    """Take the diagonal of indices that occur twice in one operand."""
    seen = list(indices)
    for i in set(indices):
        while seen.count(i) > 1:
            first = seen.index(i)
            second = seen.index(i, first + 1)
            if x.shape[first] != x.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {i} is repeated for an operand of shape {tuple(x.shape)} but the sizes don't "
                    f"match, {x.shape[second]} != {x.shape[first]}"
                )
            x = diagonal(x, 0, first, second)  # the diagonal becomes the last dimension
            del seen[second], seen[first]
            seen.append(i)
    return x, tuple(seen)


def _sum_out(x: Tensor, indices: tuple, keep: set) -> tuple[Tensor, tuple]:
    """Sum over the indices that nothing else needs."""
    dims = [d for d, i in enumerate(indices) if i not in keep]
    if dims:
        x = x.sum(dims)
        indices = tuple(i for i in indices if i in keep)
    return x, indices


def _pair(a: Tensor, ia: tuple, b: Tensor, ib: tuple, keep: set) -> tuple[Tensor, tuple]:
    """Contract two operands into one by a batched matrix product."""
    a, ia = _sum_out(a, ia, keep | set(ib))
    b, ib = _sum_out(b, ib, keep | set(ia))
    # A size of 1 against more is broadcasting, not an index to sum with: drop it on that side.
    sizes_b = dict(zip(ib, b.shape, strict=True))
    small = [d for d, i in enumerate(ia) if a.shape[d] == 1 and sizes_b.get(i, 1) != 1]
    if small:
        a, ia = a.sum(small), tuple(i for d, i in enumerate(ia) if d not in small)
    sizes_a = dict(zip(ia, a.shape, strict=True))
    small = [d for d, i in enumerate(ib) if b.shape[d] == 1 and sizes_a.get(i, 1) != 1]
    if small:
        b, ib = b.sum(small), tuple(i for d, i in enumerate(ib) if d not in small)
    a, ia = _sum_out(a, ia, keep | set(ib))
    b, ib = _sum_out(b, ib, keep | set(ia))
    sizes = {**dict(zip(ib, b.shape, strict=True)), **dict(zip(ia, a.shape, strict=True))}
    if set(ia) & set(ib) <= keep:  # no sum: an elementwise product
        result = _ordered(ia, ib, keep)[3]
        return _place(a, ia, result) * _place(b, ib, result), result
    left, right, shape, result = _matrices(ia, ib, keep, sizes)
    return _changed(matmul(_changed(a, *left), _changed(b, *right)), None, shape), result


def _ordered(ia: tuple, ib: tuple, keep: Container) -> tuple[list, list, list, tuple]:
    """The indices of a product of two: the summed ones, the rows, the columns, and the result's in order."""
    batch = [i for i in ia if i in ib and i in keep]
    summed = [i for i in ia if i in ib and i not in keep]
    rows, columns = [i for i in ia if i not in ib], [i for i in ib if i not in ia]
    return summed, rows, columns, (*batch, *rows, *columns)


def _matrices(ia: tuple, ib: tuple, keep: Container, sizes: dict) -> tuple[tuple, tuple, tuple | None, tuple]:
    """The steps that make two operands batches of matrices: for each the order of its dimensions and its new sizes.

    Also returns the sizes to reshape their product to, and its indices. None means no change.
    """
    summed, rows, columns, result = _ordered(ia, ib, keep)
    batch = result[: len(result) - len(rows) - len(columns)]
    lead = tuple(sizes[i] for i in batch)

    def count(indices: list) -> int:
        return math.prod(sizes[i] for i in indices)

    def change(given: tuple, wanted: tuple, shape: tuple) -> tuple:
        ordered = tuple(sizes[i] for i in wanted)
        return _reordered(given, wanted), None if ordered == shape else shape

    made = tuple(sizes[i] for i in result)
    return (
        change(ia, (*batch, *rows, *summed), (*lead, count(rows), count(summed))),
        change(ib, (*batch, *summed, *columns), (*lead, count(summed), count(columns))),
        None if made == (*lead, count(rows), count(columns)) else made,
        result,
    )


def _reordered(given: tuple, wanted: tuple) -> tuple | None:
    """The positions of the ``wanted`` indices among the ``given`` ones, None if they are the same."""
    return None if given == wanted else tuple(given.index(i) for i in wanted)


@functools.lru_cache(maxsize=1024)
def _product(equation: str, first: tuple, second: tuple) -> tuple | None:
    """A plan to contract operands of these sizes, or None where it takes more: as :func:`_matrices`, then the order of
    the result. Where nothing is summed, the operands broadcast in that order, and last comes True.

    A program contracts the same sizes again and again.
    """
    (ia, ib), output = _parse(equation, (len(first), len(second)))
    sizes = {**dict(zip(ib, second, strict=True)), **dict(zip(ia, first, strict=True))}
    if len(set(ia)) < len(ia) or len(set(ib)) < len(ib) or any(sizes[i] != n for i, n in zip(ib, second, strict=True)):
        return None
    summed, rows, columns, _ = _ordered(ia, ib, output)
    if not set(rows + columns) <= set(output):
        return None
    if not summed:
        left, right = (
            (_reordered(x, tuple(i for i in output if i in x)), tuple(sizes[i] if i in x else 1 for i in output))
            for x in (ia, ib)
        )
        return left, right, None, None, True
    left, right, shape, result = _matrices(ia, ib, output, sizes)
    return left, right, shape, _reordered(result, output), False


def _changed(x: Tensor, places: tuple | None, shape: tuple | None) -> Tensor:
    x = x if places is None else permute(x, places)
    return x if shape is None else reshape(x, shape)


def _place(x: Tensor, indices: tuple, target: tuple) -> Tensor:
    """``x`` with its dimensions in the order of ``target``, and size 1 for those it has not."""
    x = permute(x, [indices.index(i) for i in target if i in indices])
    for d, i in enumerate(target):
        if i not in indices:
            x = unsqueeze(x, d)
    return x


@composite(method=False)
def einsum(*args):
    """Sums of products of elements, with one letter per dimension: letters that the result does not have are summed
    over.

    With more than two operands, products are taken two at a time in the order that needs the fewest operations.

    Args:
        args: an equation such as ``"bij,bjk->bik"`` and the operands (or one list of them); or operands and lists of
            integers in turn, with a last list for the result. ``...`` stands for any leading dimensions. Without ``->``
            the result has the letters that occur once, in the order of the alphabet.
    Returns:
        A tensor with one dimension per letter of the result.
    Raises:
        RuntimeError: the equation does not fit the operands.
    Examples:
        >>> a = taeda.tensor([[1, 2], [3, 4]])
        >>> taeda.einsum("ij,jk->ik", a, a)  # a matrix product
        tensor([[ 7, 10],
                [15, 22]])
        >>> taeda.einsum("ii->", a), taeda.einsum("ij->j", a)  # the trace, sums of columns
        (tensor(5), tensor([4, 6]))
    """
    if len(args) == 3 and args[0].__class__ is str and args[1].__class__ is Tensor and args[2].__class__ is Tensor:
        plan = _product(args[0], tuple(args[1].shape), tuple(args[2].shape))
        if plan is not None:
            left, right, shape, places, apart = plan
            a, b = _changed(args[1], *left), _changed(args[2], *right)
            return a * b if apart else _changed(_changed(matmul(a, b), None, shape), places, None)
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or operands and their lists of "
            "subscripts"
        )
    if isinstance(args[0], str):
        equation, operands = args[0], list(args[1:])
    else:
        equation, operands = _from_sublists(args)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    if not operands:
        raise ValueError("einsum(): must provide at least one operand")
    for x in operands:
        if not isinstance(x, Tensor):
            raise TypeError(f"einsum(): expected Tensors as operands, got {type(x).__name__}")
    inputs, output = _parse(equation, tuple(x.dim() for x in operands))
    _check_sizes(equation, operands, inputs)
    pairs = [_without_repeats(x, i) for x, i in zip(operands, inputs, strict=True)]
    steps = order([x.shape for x, _ in pairs], [i for _, i in pairs], output) if len(pairs) > 1 else ()
    for i, j in steps:
        (a, ia), (b, ib) = pairs[i], pairs[j]
        rest = [p for n, p in enumerate(pairs) if n not in (i, j)]
        keep = set(output).union(*(indices for _, indices in rest))
        pairs = [*rest, _pair(a, ia, b, ib, keep)]
    x, indices = _sum_out(*pairs[0], set(output))
    x = _changed(x, _reordered(indices, output), None)
    return view_as_itself(x) if x is operands[0] else x


@composite(method=False)
def tensordot(a, b, dims: Any = 2, out=None):
    """Sums of products over several dimensions of ``a`` and ``b``.

    Args:
        a: a tensor.
        b: a tensor of the same dtype.
        dims: a number ``n``, for the last ``n`` dimensions of ``a`` with the first ``n`` of ``b``; or two lists of
            dimensions.
    Returns:
        The remaining dimensions of ``a``, then those of ``b``.
    Raises:
        RuntimeError: sizes that meet differ.
    Examples:
        >>> a, b = taeda.ones(3, 4, 5), taeda.ones(4, 5, 2)
        >>> taeda.tensordot(a, b).shape, taeda.tensordot(a, b, ([1], [0])).shape
        (taeda.Size([3, 2]), taeda.Size([3, 5, 5, 2]))
    """
    if isinstance(dims, Tensor):
        dims = dims.item() if dims.numel() == 1 else dims.tolist()
    if a.dtype != b.dtype:
        raise RuntimeError(f"tensordot: both inputs should have same dtype, got {a.dtype} and {b.dtype}")
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot expects dims <= {min(a.dim(), b.dim())}, the smaller rank, but got dims={dims}"
            )
        da, db = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        da, db = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(da) != len(db):
        raise RuntimeError(f"tensordot: both dimension lists should have same length, got {da} and {db}")
    da, db = [wrapped_dim(d, a.dim(), "tensordot") for d in da], [wrapped_dim(d, b.dim(), "tensordot") for d in db]
    for i, (p, q) in enumerate(zip(da, db, strict=True)):
        if a.shape[p] == b.shape[q]:
            continue
        if a.shape[p] == 1:
            b = b.sum(q, keepdim=True, dtype=b.dtype)
        elif b.shape[q] == 1:
            a = a.sum(p, keepdim=True, dtype=a.dtype)
        else:
            raise RuntimeError(
                f"tensordot: contracted dimensions need to match, but first has size {a.shape[p]} in dim {p} and "
                f"second has size {b.shape[q]} in dim {q} (pair {i})"
            )
    rest_a = [d for d in range(a.dim()) if d not in da]
    rest_b = [d for d in range(b.dim()) if d not in db]
    left, right = [a.shape[d] for d in rest_a], [b.shape[d] for d in rest_b]
    k = math.prod(a.shape[d] for d in da)
    x = reshape(permute(a, rest_a + da), (math.prod(left), k))
    y = reshape(permute(b, db + rest_b), (k, math.prod(right)))
    if not rest_a and not rest_b:  # one number, which autocast leaves in the dtype of the operands
        result = dot(reshape(x, (k,)), reshape(y, (k,)))
    else:
        result = reshape(matmul(x, y), (*left, *right))
    return result if out is None else write_out(matmul, out, result)


@composite(out=True)
def kron(input, other):
    """The Kronecker product: every element of ``input`` times the whole of ``other``.

    Args:
        other: a tensor; the shorter shape is filled with leading ones.
    Returns:
        The product of the sizes, in the dtype to which both promote.
    Examples:
        >>> taeda.kron(taeda.tensor([[1, 0], [0, 2]]), taeda.tensor([[1, 1]]))
        tensor([[1, 1, 0, 0],
                [0, 0, 2, 2]])
    """
    a, b, sizes = _kron_sizes(input.shape, other.shape)
    return reshape(reshape(input, a) * reshape(other, b), sizes)


@once_per_form
def _kron_sizes(a, b):
    """The sizes in which :func:`kron` multiplies tensors of sizes ``a`` and ``b``, and those of its result."""
    n = max(len(a), len(b))
    a, b = (*(1,) * (n - len(a)), *a), (*(1,) * (n - len(b)), *b)
    return (
        tuple(x for size in a for x in (size, 1)),
        tuple(x for size in b for x in (1, size)),
        tuple(p * q for p, q in zip(a, b, strict=True)),
    )

"""Along which dimensions an op may be cut, from what its stanza says (``kind`` and the trait ``batch``,
docs/notes/0005).

A rule names the dimensions of each tensor argument by letters, as an equation of ``einsum`` does. A letter stands for
one dimension in all arguments and in the result, along which the op does the same thing to each place: it may be cut
there. None stands for a dimension that has to be whole. A letter that the result lacks is summed over: of cut arguments
the result is partial. An op without a rule runs on whole tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ... import nn
from ..._typed import Tensor
from ...ops import reduction
from ...ops.registry import Rules

Letters = tuple
Key = tuple[str, int]  # a parameter, and a place in the list that it is

RULES = Rules()
rule, family = RULES.rule, RULES.family


@dataclass
class Dims:
    """The result of a rule for one call."""

    inputs: dict[Key, Letters]
    output: Letters  #: of each result; one that ends with ... goes on with dimensions that are whole
    terms: list[set[Key]] = field(
        default_factory=list
    )  #: sets of arguments: the op of sums of these is the sum of the ops
    added: tuple[str, ...] = ()  #: parameters that are added to the result
    run: Callable | None = None  #: runs on the parts in the op's place, with the arguments by name


class Call:
    """An op, its arguments by name, and the tensors among them."""

    def __init__(self, op: Any, values: dict[str, Any]) -> None:
        self.op, self.values = op, values
        self.tensors: dict[Key, Tensor] = {}
        for name, value in values.items():
            items = value if isinstance(value, (list, tuple)) else [value]
            self.tensors.update({(name, i): x for i, x in enumerate(items) if isinstance(x, Tensor)})

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def dim(self, name: str = "dim", rank: int | None = None) -> set[int]:
        """The dimensions that the argument ``name`` gives, all for None."""
        rank = max(self.tensors[next(iter(self.tensors))].dim(), 1) if rank is None else rank
        value = self.values[name]
        if value is None or (isinstance(value, (list, tuple)) and not value):
            return set(range(rank))
        return {d % rank for d in (value if isinstance(value, (list, tuple)) else [value])}


def rule_of(op: Any) -> Callable | None:
    """The rule of ``op``: its own, its family's, or its kind's."""
    found = RULES.of(op)
    if found is None and (op.kind == "pointwise" or op.traits.get("additive")):
        return _pointwise
    return found


# ---- element by element ----------------------------------------------------------------------------------------------


def broadcast(tensors: dict[Key, Tensor], own: int = 0) -> tuple[dict[Key, Letters], Letters]:
    """Letters of tensors that broadcast, their last ``own`` dimensions left out, and of the result."""
    shapes = {key: tuple(x.shape)[: x.dim() - own] for key, x in tensors.items()}
    rank = max(map(len, shapes.values()), default=0)
    sizes = [1] * rank
    for shape in shapes.values():
        for i, n in enumerate(shape, rank - len(shape)):
            sizes[i] = n if n != 1 else sizes[i]
    letters = {
        key: tuple(i if n == sizes[i] else None for i, n in enumerate(shape, rank - len(shape)))
        for key, shape in shapes.items()
    }
    return letters, tuple(range(rank))


@rule("copy_", "copy", "to_dtype", "clone_for", "resolved", "addcmul", "where_nonzero")
def _pointwise(call: Call) -> Dims:
    inputs, output = broadcast(call.tensors)
    keys = set(call.tensors)
    name = call.op.name.rstrip("_")
    terms: list[set[Key]] = []
    if name in ("add", "sub", "subtract", "copy"):
        terms = [keys] if len(keys) == 2 or name == "copy" else []
    elif name in ("mul", "multiply", "true_divide", "mul_conj", "div_conj"):
        terms = [{("input", 0)}] + ([{("other", 0)}] if name in ("mul", "multiply") else [])
    elif len(keys) == 1 and (call.op.traits.get("additive") or (name == "to_dtype" and _stays_linear(call))):
        terms = [keys]
    return Dims(inputs, output, [t & keys for t in terms])


def _stays_linear(call: Call) -> bool:
    """Whether a cast of terms loses nothing that a cast of their sum would keep."""
    old, new = call["input"].dtype, call["dtype"]
    return old.is_floating_point and new.is_floating_point and new.itemsize >= old.itemsize


# ---- families of docs/notes/0005 -------------------------------------------------------------------------------------


@family("reduction")
def _reduction(call: Call) -> Any:
    x, dims, keep = call["input"], call.dim(), call.values.get("keepdim", False)
    name = call.op.name
    summed = name in ("sum", "mean", "nansum") and (x.is_floating_point() or x.is_complex() or name == "sum")
    letters = tuple(i if summed or i not in dims else None for i in range(x.dim()))
    output = tuple(None if i in dims else i for i in range(x.dim()) if keep or i not in dims)
    run = None
    if name == "mean":
        count = 1
        for d in dims:
            count *= x.shape[d] if x.dim() else 1
        run = _mean(count)
    terms = [{("input", 0)}] if name in ("sum", "mean") else []
    return Dims({("input", 0): letters}, output, terms, run=run)


def _mean(count: int) -> Callable:
    """The sum of a part over the number of elements of the whole."""

    def run(input: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
        if not (dtype or input.dtype).is_floating_point and not (dtype or input.dtype).is_complex:
            return reduction.mean(input, dim, keepdim, dtype=dtype)  # refuses
        return reduction.sum(input, dim, keepdim, dtype=dtype) / count

    return run


@family("along")
def _along(call: Call) -> Any:
    first = call.op.params[0]
    x = call[first]
    if len(call.tensors) > 1 or not x.dim():
        return NotImplemented
    dims = call.dim("dim" if "dim" in call.values else "dims")
    letters = tuple(None if i in dims else i for i in range(x.dim()))
    linear = call.op.name in ("flip", "cumsum", "_reverse_cumsum")
    dropped = dims if call.values.get("keepdim") is False else ()
    output = tuple(letter for i, letter in enumerate(letters) if i not in dropped)
    return Dims({(first, 0): letters}, output, [{(first, 0)}] if linear else [])


@family("together")
def _together(call: Call) -> Any:
    shapes = [x.shape for x in call.tensors.values()]
    rank = len(shapes[0])
    if not rank or any(len(s) != rank for s in shapes):
        return NotImplemented
    dims = call.dim("dim", rank)
    letters = tuple(None if i in dims or len({s[i] for s in shapes}) > 1 else i for i in range(rank))
    return Dims(dict.fromkeys(call.tensors, letters), letters)


@family("leading")
def _leading(call: Call) -> Any:
    rank = {x.dim() for x in call.tensors.values()}
    if len(rank) > 1:
        return NotImplemented
    letters, _ = broadcast(call.tensors, 2)
    output = next(iter(letters.values()))
    if any(v != output for v in letters.values()):
        return NotImplemented
    return Dims({k: (*v, None, None) for k, v in letters.items()}, (*output, ...))


@family("trailing")
def _trailing(call: Call) -> Any:
    x = call["input"]
    n = len(call["pad"]) // 2 if "pad" in call.values else 2
    if len(call.tensors) > 1 or x.dim() < n:
        return NotImplemented
    letters = tuple(i if i < x.dim() - n else None for i in range(x.dim()))
    linear = "pad" not in call.values or not call.values.get("value")
    return Dims({("input", 0): letters}, letters, [{("input", 0)}] if linear else [])


@family("rows")
def _rows(call: Call) -> Any:
    letters = {k: ("n", *[None] * (x.dim() - 1)) for k, x in call.tensors.items()}
    return Dims(letters, ("n", ...))


@family("fold")
def _fold(call: Call) -> Any:
    return NotImplemented if any(x.dim() < 4 for x in call.tensors.values()) else _rows(call)


@family("indexed")
def _indexed(call: Call) -> Any:
    x, index = call["input"], call["index"]
    if index.dim() > 1 or not x.dim():
        return NotImplemented
    (dim,) = call.dim("dim", x.dim())
    letters = tuple(None if i == dim else i for i in range(x.dim()))
    inputs = {k: letters for k in call.tensors if k[0] in ("input", "source") and call[k[0]].dim() == x.dim()}
    return Dims(inputs, letters)


# ---- products --------------------------------------------------------------------------------------------------------


def _contraction(inputs: dict[Key, Letters], output: Letters, *added: str) -> Dims:
    return Dims(inputs, output, [{key} for key in list(inputs)[:2]] if not added else [], added)


@rule("linear")
def _linear(call: Call) -> Dims:
    x, bias = call["input"], call["bias"]
    rows = tuple(range(x.dim() - 1))
    out = ("o",) if call["weight"].dim() == 2 else ()
    inputs = {("input", 0): (*rows, "k"), ("weight", 0): (*out, "k")}
    if bias is None:
        return _contraction(inputs, (*rows, *out))
    return _contraction({**inputs, ("bias", 0): out[-bias.dim() :] if bias.dim() else ()}, (*rows, *out), "bias")


@rule("matmul", "mm", "bmm", "mv", "dot", "_vdot")
def _matmul(call: Call) -> Any:
    (first, a), (second, b) = call.tensors.items()
    if a.dim() == 1 or b.dim() == 1:
        heads = tuple(range(max(a.dim(), b.dim()) - 2))
        left = ("k",) if a.dim() == 1 else (*heads, "m", "k") if b.dim() == 1 else ("m", "k")
        right = ("k",) if b.dim() == 1 else (*heads, "k", "n")
        output = (*heads, *(("m",) if a.dim() > 1 else ()), *(("n",) if b.dim() > 1 else ()))
        return _contraction({first: left, second: right}, output)
    heads_of, heads = broadcast(call.tensors, 2)
    left, right = heads_of[first], heads_of[second]
    return _contraction({first: (*left, "m", "k"), second: (*right, "k", "n")}, (*heads, "m", "n"))


@rule("addmm", "addmv", "baddbmm")
def _addmm(call: Call) -> Dims:
    added, (first, a), (second, b) = call["input"], *list(call.tensors.items())[1:]
    heads = tuple(range(a.dim() - 2))
    matrix = b.dim() > 1
    output = (*heads, "m", "n") if matrix else ("m",)
    sizes = (*a.shape[:-1], b.shape[-1]) if matrix else (a.shape[0],)
    skipped = len(output) - added.dim()
    pairs = zip(output[skipped:], sizes[skipped:], added.shape, strict=True)
    of_added = tuple(letter if n == size else None for letter, size, n in pairs)
    right = (*heads, "k", "n") if matrix else ("k",)
    inputs = {("input", 0): of_added, first: (*heads, "m", "k"), second: right}
    return Dims(inputs, output, added=("input",))


# ---- layers ----------------------------------------------------------------------------------------------------------


@rule("embedding")
def _embedding(call: Call) -> Dims:
    index = tuple(range(call["indices"].dim()))
    return Dims({("weight", 0): (None, "e"), ("indices", 0): index}, (*index, "e"))


@rule("layer_norm", "_rms_norm")
def _norm(call: Call) -> Any:
    x, n = call["input"], call.values.get("dims")
    n = len(call["normalized_shape"]) if n is None else n if isinstance(n, int) else len(n)
    letters = tuple(i if i < x.dim() - n else None for i in range(x.dim()))
    return Dims({("input", 0): letters}, letters)


@rule("_attention")
def _attention(call: Call) -> Any:
    q, mask = call["query"], call["mask"]
    heads = tuple(range(q.dim() - 2))
    tensors = [call[name] for name in ("query", "key", "value")]
    if any(x.shape[:-2] != q.shape[:-2] for x in tensors):
        return NotImplemented
    inputs: dict[Key, Letters] = {(name, 0): (*heads, None, None) for name in ("query", "key", "value")}
    if mask is not None:
        offset = q.dim() - mask.dim()
        inputs["mask", 0] = tuple(
            i + offset if i + offset < q.dim() - 2 and n == q.shape[i + offset] else None
            for i, n in enumerate(mask.shape)
        )
    return Dims(inputs, (*heads, ...), run=functools.partial(_attention_of_part, call.op))


def _attention_of_part(op: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, causal: bool, scale: Any) -> Any:
    if query.numel() and key.numel():
        return op(query, key, value, mask, causal, scale)
    attention = nn.functional.scaled_dot_product_attention  # a part may be empty, which the op does not take
    made = attention(query, key, value, mask, is_causal=causal, scale=scale)
    return made, made.new_empty(made.shape[:-1])


@rule("_convolution", "conv1d", "conv2d", "conv3d")
def _convolution(call: Call) -> Any:
    if call["input"].dim() != call["weight"].dim():
        return NotImplemented
    return Dims({("input", 0): ("n", *[None] * (call["input"].dim() - 1))}, ("n", ...))


@rule("cat", "stack")
def _cat(call: Call) -> Any:
    tensors = call.tensors
    rank = {x.dim() for x in tensors.values()}
    if len(rank) != 1:
        return NotImplemented
    (n,) = rank
    stacked = call.op.name == "stack"
    dim = call["dim"] % (n + stacked)
    letters = tuple(i if stacked or i != dim else None for i in range(n))
    output = (*letters[:dim], None, *letters[dim:]) if stacked else letters
    return Dims(dict.fromkeys(tensors, letters), output, [set(tensors)])


rule("concat", "concatenate")(_cat)

"""``vmap`` and ``jvp`` of the database's entries: each against the op on the examples one by one.

python -m tests.conformance.opdb.batched [REGEX]
"""

from __future__ import annotations

import re
import sys
import warnings

import torch

import taeda
from taeda.func import batching

from .checks import UNSPECIFIED, Differs, close, describe, entries, explain, name_of, pick, tensors
from .translate import Missing, back, translate

RANDOM = (
    "dropout",
    "bernoulli",
    "multinomial",
    "normal",
    "rand",
    "uniform",
    "cauchy",
    "geometric",
    "exponential",
    "rrelu",
)
NOT_MAPPED = (
    "item",
    "nonzero",
    "unique",
    "argwhere",
    "masked_select",
    "allclose",
    "equal",
    "bincount",
    "tolist",
    "histc",
    "partial_views",  # reads memory beside the example
)


def is_mapped(op) -> bool:
    """Whether results have sizes that do not depend on values, and no randomness."""
    return not any(word in name_of(op) for word in (*RANDOM, *NOT_MAPPED)) and op.name not in UNSPECIFIED


class Calls:
    """Counts how often an op ran example by example."""

    def __enter__(self):
        self.plain, self.names = batching._by_example, []

        def counted(call):
            self.names.append(call.op.name)
            return self.plain(call)

        batching._by_example = counted
        return self

    def __exit__(self, *_):
        batching._by_example = self.plain


def pairs(op, limit, dtype):
    """Two samples of the same sizes and arguments at a time."""
    found = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(pick(op.sample_inputs("cpu", dtype, requires_grad=False), limit))
    for one, two in zip(*found, strict=False):
        if describe(one) == describe(two):
            yield one, two


def rebuilt(thing, leaves):
    """``thing`` with its tensors taken from ``leaves`` in order."""
    if isinstance(thing, (taeda.Tensor, torch.Tensor)):
        return next(leaves)
    if isinstance(thing, dict):
        return {k: rebuilt(v, leaves) for k, v in thing.items()}
    if isinstance(thing, (list, tuple)) and type(thing) in (list, tuple):
        return type(thing)(rebuilt(x, leaves) for x in thing)
    return thing


def refuses(op, one, two, dims) -> bool:
    """Whether PyTorch's ``vmap`` raises for these samples too: it would need values, or write into what is not batched."""
    example = ((one.input, *one.args), dict(one.kwargs))
    rows = [tensors([list((s.input, *s.args)), dict(s.kwargs)]) for s in (one, two)]

    def call(*leaves):
        args, kwargs = rebuilt(example, iter(leaves))
        return [t for t in tensors(op.op(*args, **kwargs)) if isinstance(t, torch.Tensor)]

    try:
        batch = [x if d is None else torch.stack([x, y]) for x, y, d in zip(*rows, dims, strict=True)]
        torch.func.vmap(call, in_dims=tuple(dims))(*batch)
    except Exception:
        return True
    return False


def check(op, limit=3) -> tuple[dict[str, str], set[str]]:
    """What differs, by a label; and which ops ran example by example. Where both frameworks raise, nothing differs."""
    bad: dict[str, str] = {}
    dtype = (
        torch.float64
        if torch.float64 in op.supported_dtypes("cpu")
        else next(iter(op.supported_dtypes("cpu")), torch.float32)
    )
    try:
        ours = translate(op.op)
    except Missing:
        return {}, set()
    slow: set[str] = set()
    for one, two in pairs(op, limit, dtype):
        try:
            translate((one.input, one.args, one.kwargs))
        except (Missing, RuntimeError, BufferError):
            continue
        first, second = (translate(((s.input, *s.args), dict(s.kwargs))) for s in (one, two))
        a, b = tensors(list(first)), tensors(list(second))
        if not a or any(x.dim() > 6 for x in a):
            continue
        ways = {"all": [0] * len(a)}
        if len(a) > 1:
            ways["first"] = [0] + [None] * (len(a) - 1)
            ways["others"] = [None] + [0] * (len(a) - 1)
        for way, dims in ways.items():
            label = f"{way} {describe(one)}"
            rows = [[x if d is None else y for x, y, d in zip(a, row, dims, strict=True)] for row in (a, b)]

            def call(*leaves, example=first):
                args, kwargs = rebuilt(example, iter(leaves))
                return [t for t in tensors(ours(*args, **kwargs)) if isinstance(t, taeda.Tensor)]

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    wanted = [call(*row) for row in rows]
                    if not wanted[0]:
                        continue
                    wanted = [taeda.stack(list(column)) for column in zip(*wanted, strict=True)]
                except Exception:
                    continue
                batch = [x if d is None else taeda.stack([x, y]) for x, y, d in zip(a, b, dims, strict=True)]
                with Calls() as calls:
                    try:
                        got = taeda.func.vmap(call, in_dims=tuple(dims))(*batch)
                        close(list(got), [back(w) for w in wanted], label)
                    except Differs as failure:
                        bad[label] = str(failure)
                    except Exception as error:
                        if not refuses(op, one, two, dims):
                            bad[label] = explain(error)
                slow.update(calls.names)
    return bad, slow


def main():
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    looped: dict[str, list[str]] = {}
    count = good = 0
    for name, op in entries().items():
        if not re.search(pattern, name) or not is_mapped(op):
            continue
        count += 1
        bad, slow = check(op)
        good += not bad
        for op_name in slow:
            looped.setdefault(op_name, []).append(name)
        for label, text in list(bad.items())[:2]:
            print(f"{name}: {label}: {text}"[:300], flush=True)
    print(f"{good} of {count} entries give under vmap what they give for each example")
    print(f"example by example: {len(looped)} ops")
    for op_name, names in sorted(looped.items(), key=lambda item: -len(item[1])):
        print(f"    {op_name}: {', '.join(names[:6])}")


if __name__ == "__main__":
    main()

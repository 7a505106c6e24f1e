"""Entries of the operator database as exported programs, decomposed: what they give, and in which ops.

``python -m tests.conformance.opdb.decomposed [expression]`` prints which entries are written in canonical ops alone.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter

import torch

import taeda
import taeda.export
from taeda.export._decompose import is_canonical
from taeda.ops.table import trait

from .checks import entries, name_of, pick, tensors
from .samples import is_plain
from .translate import translate

#: Steps that no op is for: parts of tuples and of tensors, sizes, arithmetic of sizes.
_PLAIN = ("operator", "_operator", "math", "taeda.export._steps", "taeda.export._control_flow")


class _Call(taeda.nn.Module):
    def __init__(self, function, kwargs):
        super().__init__()
        self.function, self.kwargs = function, kwargs

    def forward(self, *args):
        return self.function(*args, **self.kwargs)


def attempt(function, args, kwargs):
    """None where the call can't be exported; else the names of ops that are not canonical.

    Raises:
        AssertionError: the decomposed program gives something else.
    """
    want = tensors(function(*translate_copy(args), **kwargs))
    try:
        program = taeda.export.export(_Call(function, kwargs), translate_copy(args))
    except RuntimeError:
        return None
    try:
        fewer = program.run_decompositions()
    except RuntimeError as error:
        assert "changes sizes in place" in str(error)
        return None
    got = tensors(fewer.module()(*translate_copy(args)))
    unspecified = any(
        n.target.__name__.startswith(("empty", "new_empty")) for n in program.graph.nodes if callable(n.target)
    )
    random = any(trait(n.target, "random") for n in fewer.graph.nodes if n.op == "call_function")
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, b.shape, a.dtype, b.dtype)
        if not random and not unspecified:
            assert taeda.allclose(
                a.double() if not a.is_complex() else a, b.double() if not b.is_complex() else b, 1e-4, 1e-5, True
            ), "values"
    calls = [n.target for n in fewer.graph.nodes if n.op == "call_function"]
    return {f.__name__ for f in calls if f.__module__ not in _PLAIN and not is_canonical(f)}


def translate_copy(args):
    """``args`` with copies of the tensors in them."""
    return taeda.utils._pytree.tree_map(lambda x: x.clone() if isinstance(x, taeda.Tensor) else x, tuple(args))


def check(op, limit=1):
    """For each sample what :func:`attempt` says."""
    supported = op.supported_dtypes("cpu")
    if not supported:
        return
    dtype = next(d for d in (torch.float32, torch.complex64, *sorted(supported, key=str)) if d in supported)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = [s for s in op.sample_inputs("cpu", dtype, requires_grad=False) if is_plain(s)]
        function = translate(op.op)
        for sample in pick(samples, limit):
            args, kwargs = translate((sample.input, *sample.args)), translate(sample.kwargs)
            try:
                function(*translate_copy(args), **kwargs)
            except Exception:  # an error that the comparison of values is about
                continue
            yield attempt(function, args, kwargs)


def main() -> None:
    expression = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    counts, left = Counter(), Counter()
    for op in entries().values():
        name = name_of(op)
        if not expression.search(name):
            continue
        try:
            for found in check(op):
                kind = "not exported" if found is None else "canonical" if not found else "other ops"
                counts[kind] += 1
                left.update(found or ())
                if found and "-v" in sys.argv:
                    print(name, found)
        except Exception as error:
            counts["FAILS"] += 1
            print(name, "FAILS:", type(error).__name__, str(error)[:200].replace("\n", " "))
    print(dict(counts))
    print(*left.most_common(80))


if __name__ == "__main__":
    main()

"""Entries of the operator database as exported programs, decomposed: their results, and their ops.

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
_PLAIN = ("operator", "_operator", "math", "taeda.export._steps", "taeda.func.control_steps")


class _Call(taeda.nn.Module):
    def __init__(self, function, kwargs):
        super().__init__()
        self.function, self.kwargs = function, kwargs

    def forward(self, *args):
        return self.function(*args, **self.kwargs)


def attempt(function, args, kwargs):
    """None if the call can't be exported; else the names of ops that are not canonical.

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
        assert any(x in str(error) for x in ("changes sizes in place", "cannot resize variables"))
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
    if not random and not unspecified:
        compare_gradients(lambda *xs: function(*xs, **kwargs), fewer.module(), args)
    calls = [n.target for n in fewer.graph.nodes if n.op == "call_function"]
    return {f.__name__ for f in calls if f.__module__ not in _PLAIN and not is_canonical(f)}


def compare_gradients(function, module, args):
    """Raise an AssertionError if the gradients of ``module`` differ from those of ``function``."""
    want = gradients(function, args)
    if want is None:
        return
    for a, b in zip(gradients(module, args) or [None] * len(want), want, strict=True):
        if b is None:
            assert a is None or not a.any(), "gradient of what has none"
            continue
        known = b.isfinite()
        a = taeda.zeros_like(b) if a is None else a
        assert taeda.allclose(a[known], b[known], 1e-3, 1e-4), "gradients"


def gradients(function, args):
    """The gradients of a weighted sum of the results, by the arguments; None if there are none."""
    args = taeda.utils._pytree.tree_map(_leaf, tuple(args))
    leaves = [x for x in taeda.utils._pytree.tree_leaves(args) if isinstance(x, taeda.Tensor) and x.requires_grad]
    taeda.manual_seed(42)  # as the database's functions do
    try:
        made = [x for x in tensors(function(*args)) if x.requires_grad]
        parts = [part.double() for x in made for part in ((x.real, x.imag) if x.is_complex() else (x,))]
        weighted = [(x * taeda.arange(1, x.numel() + 1).reshape(x.shape).cos()).sum() for x in parts]
        return taeda.autograd.grad(sum(weighted), leaves, allow_unused=True) if made and leaves else None
    except (RuntimeError, NotImplementedError):  # there is no derivative
        return None


def _leaf(x):
    if not isinstance(x, taeda.Tensor):
        return x
    return x.clone().requires_grad_(x.is_floating_point() or x.is_complex())


def translate_copy(args):
    """``args`` with copies of the tensors in them."""
    return taeda.utils._pytree.tree_map(lambda x: x.clone() if isinstance(x, taeda.Tensor) else x, tuple(args))


def samples_of(op, limit):
    """Samples in float32 where there are some."""
    supported = op.supported_dtypes("cpu")
    if not supported:
        return []
    dtype = next(d for d in (torch.float32, torch.complex64, *sorted(supported, key=str)) if d in supported)
    torch.manual_seed(0)
    return pick([s for s in op.sample_inputs("cpu", dtype, requires_grad=False) if is_plain(s)], limit)


def left_by_pytorch(op):
    """Names of ops outside of the core set that PyTorch keeps for the first sample; None if it can't export it."""
    left = set()
    for sample in samples_of(op, 1):
        try:
            program = torch.export.export(_TorchCall(op.op, sample.kwargs), (sample.input, *sample.args))
            program = program.run_decompositions()
        except Exception:  # any of many
            return None
        targets = [n.target for n in program.graph.nodes if isinstance(n.target, torch._ops.OpOverload)]
        left |= {str(f) for f in targets if torch.Tag.core not in f.tags and "_assert_" not in str(f)}
    return left


class _TorchCall(torch.nn.Module):
    def __init__(self, function, kwargs):
        super().__init__()
        self.function, self.kwargs = function, kwargs

    def forward(self, *args):
        return self.function(*args, **self.kwargs)


def check(op, limit=1):
    """For each sample what :func:`attempt` says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples, function = samples_of(op, limit), translate(op.op)
        for sample in samples:
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

"""Forms on device meta: results and gradients of the database's entries, as PyTorch's on meta, or where that has none, on the CPU.

python -m tests.conformance.opdb.meta [REGEX [SAMPLES]]     (0: all samples)
"""

from __future__ import annotations

import warnings

import torch

import taeda

from ..trees import mapped
from .checks import UNSPECIFIED, explain, tensors
from .samples import dtype_of, plain_samples, report
from .translate import translate


def on_meta(thing):
    """``thing`` with tensors of the same form on device meta in place of its tensors, of either framework."""

    def moved(x):
        if not isinstance(x, (taeda.Tensor, torch.Tensor)):
            return x
        framework = torch if isinstance(x, torch.Tensor) else taeda
        made = framework.empty_strided(tuple(x.shape), tuple(x.stride()), dtype=x.dtype, device="meta")
        return made.requires_grad_(x.requires_grad)

    return mapped(moved, thing)


def form(t) -> tuple:
    """Sizes, dtype, and the strides of dimensions that have several elements."""
    steps = tuple(s if n > 1 else None for n, s in zip(t.shape, t.stride(), strict=True)) if 0 not in t.shape else None
    return tuple(t.shape), str(t.dtype).split(".")[-1], steps


def attempt(framework, function, args, kwargs, smooth):
    """(forms of results, forms of gradients), either of them None where it could not be had, and why."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = tensors(function(*args, **kwargs))
    except Exception as error:
        return None, None, error
    forms = [form(t) for t in made]
    roots = [t for t in made if t.requires_grad]
    leaves = [t for t in tensors([list(args), kwargs]) if t.requires_grad]
    if not smooth or not roots or not leaves:
        return forms, None, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = framework.autograd.grad(roots, leaves, [framework.ones_like(t) for t in roots], allow_unused=True)
    except Exception as error:
        return forms, None, error
    return forms, [None if g is None else (tuple(g.shape), str(g.dtype).split(".")[-1]) for g in found], None


def check(op, limit=1) -> list[str]:
    bad, dtype = [], dtype_of(op)
    if dtype is None:
        return []
    smooth = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    function = translate(op.op)
    for sample in plain_samples(op, limit, dtype, requires_grad=smooth):
        given = [sample.input, *sample.args], dict(sample.kwargs)
        ours = on_meta(translate(given[0])), on_meta(translate(given[1]))
        if any(str(v) == "cpu" for v in given[1].values()):
            continue  # names the device
        got, got_grads, error = attempt(taeda, function, *ours, smooth)
        want, want_grads, refused = attempt(torch, op.op, *on_meta(given), smooth)
        label = str([tuple(t.shape) for t in tensors(list(given[0]))])[:60]
        if want is None and got is None:
            if not isinstance(error, (RuntimeError, NotImplementedError, TypeError)):
                bad.append(f"{label}: {explain(error)}")
            continue
        if got is None:
            bad.append(f"{label}: raises {explain(error)}; PyTorch gives {want}")
            continue
        if want is None or (smooth and want_grads is None):
            on_cpu, cpu_grads, _ = attempt(torch, op.op, *given, smooth)
            want, want_grads = want or on_cpu, cpu_grads
        if (
            got != want and want and [f[:2] for f in got] == [f[:2] for f in want]
        ):  # strides: are they those of the CPU?
            want, _, _ = attempt(taeda, function, translate(given[0]), translate(given[1]), False)
        if op.name not in UNSPECIFIED and want is not None and got != want:
            bad.append(
                f"{label}: {got} instead of {want}" + (f" (PyTorch on meta: {explain(refused)})" if refused else "")
            )
        elif smooth and want_grads is not None and got_grads != want_grads:
            bad.append(f"{label}: gradients {explain(error) if error else got_grads} instead of {want_grads}")
    return bad


if __name__ == "__main__":
    report(check, 2)

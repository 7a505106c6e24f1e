"""Compiled calls: an op with deferred arguments gives what it gives eagerly, bit for bit, forward and backward.

python -m tests.conformance.opdb.compiled [REGEX [SAMPLES]]     (0: all samples)
"""

from __future__ import annotations

import taeda
from taeda._core import fusion

from ..trees import rebuilt
from .checks import tensors
from .plans import copies, same
from .samples import calls, chosen


def results(function, args, kwargs, given):
    """The results of a call on arguments that are results of pointwise ops, and its gradients; or its error."""
    taeda.manual_seed(1)
    leaves = [t.requires_grad_() if t.dtype.is_floating_point or t.dtype.is_complex else t for t in given]
    late = iter([t if t.dtype is taeda.bool or "float8" in str(t.dtype) else t * 1 for t in leaves])
    args, kwargs = rebuilt(list(args), late), rebuilt(kwargs, late)
    try:
        out = tensors(function(*args, **kwargs))
    except Exception as error:
        return type(error), str(error)
    out += tensors([args, kwargs])  # tensors that it wrote to
    sources = [t for t in leaves if t.requires_grad]
    through = [t for t in out if t.requires_grad]
    grads = []
    if sources and through:
        tops = [t * 2 + 1 for t in through]
        try:
            grads = taeda.autograd.grad(tops, sources, [t.detach().sin() for t in tops], allow_unused=True)
        except Exception as error:
            return type(error), str(error)
    return [t.detach() for t in (*out, *(g for g in grads if g is not None))]


def attempt(function, args, kwargs, **options) -> str:
    """The difference; ``""`` if there is none. ``options`` are those of ``compile``."""
    found = [t.detach() for t in tensors([list(args), kwargs])]
    want = results(function, args, kwargs, copies(found))
    before = fusion.set_least(0)
    try:
        got = taeda.compile(results, **options)(function, args, kwargs, copies(found))
    finally:
        fusion.set_least(before)
    if isinstance(want, tuple) or isinstance(got, tuple):
        return "" if want == got else f"{got if isinstance(got, tuple) else 'no error'} instead of {want}"[:200]
    if len(want) != len(got):
        return f"{len(got)} results instead of {len(want)}"
    return ", ".join(str(i) for i, (a, b) in enumerate(zip(want, got, strict=True)) if not same(a, b))


def attempt_pass(function, args, kwargs) -> str:
    """The difference in gradients when a backward pass is repeated from its launches; ``""`` if there is none."""
    found = [t.detach() for t in tensors([list(args), kwargs])]

    def run():
        taeda.manual_seed(1)
        given = [t.requires_grad_() if t.is_floating_point() or t.is_complex() else t for t in copies(found)]
        late = iter([t.clone() for t in given])  # so that ops may write to them
        try:
            out = tensors(function(*rebuilt(list(args), late), **rebuilt(kwargs, late)))
            through = [t for t in out if t.requires_grad]
            if through:
                taeda.autograd.backward(through, [t.detach().sin() for t in through])
        except Exception as error:
            return type(error), str(error)
        return [t.grad.to_dense() if t.grad.is_sparse else t.grad for t in given if t.grad is not None]

    want, compiled = run(), taeda.compile(run)
    for _ in range(3):  # as usual; its plan is made, and runs; the plan runs
        got = compiled()
        if isinstance(want, tuple) or isinstance(got, tuple):
            if want != got:
                return f"{got if isinstance(got, tuple) else 'no error'} instead of {want}"[:200]
        elif len(want) != len(got) or not all(map(same, want, got)):
            return "gradients"
    return ""


def check(op, limit=1, attempt=attempt, **options) -> list[str]:
    """For each sample what ``attempt`` says."""
    return [attempt(*call, **options) for call in calls(op, limit, fails=True)]


def main() -> None:
    good = total = 0
    for name, op, limit in chosen():
        found = check(op, limit)
        total += len(found)
        good += found.count("")
        for difference in filter(None, found):
            print(name, "DIFFERS:", difference, flush=True)
    print(f"{good} of {total} calls as eagerly")


if __name__ == "__main__":
    main()

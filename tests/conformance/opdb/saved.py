"""The tensors that an op keeps for its derivative, found by changing a tensor between the forward and the backward
pass.

Each entry of the database runs forward, one of its tensors (an argument or a result) is changed in one of `WAYS`, and
then comes backward. taeda must raise, or give the gradient of the computation as it was. If it raises where PyTorch
gives that gradient, it keeps a tensor that PyTorch does not.

``python -m tests.conformance.opdb.saved [REGEX [SAMPLES]]`` prints each case that is wrong, and counts.
"""

from __future__ import annotations

import warnings
from collections import Counter

import torch

import taeda

from ..trees import mapped
from .checks import Differs, close, name_of, seeded, tensors
from .samples import chosen, dtype_of, plain_samples
from .translate import Missing, back, translate

#: Writes to a tensor, by name: a function of the framework and the tensor.
WRITES = {
    "mul_": lambda _, t: t.logical_not_() if str(t.dtype).endswith("bool") else t.mul_(2),
    "write and .data": lambda _, t: setattr(t.zero_(), "data", t.detach().clone() + 1),
    "write to .detach()": lambda _, t: t.detach().zero_(),
}
FORMS = {
    "transpose_": lambda _, t: t.transpose_(0, -1),
    "swapaxes_": lambda _, t: t.swapaxes_(0, -1),
    "t_": lambda _, t: t.t_(),
    "unsqueeze_": lambda _, t: t.unsqueeze_(0),
    "squeeze_": lambda _, t: t.squeeze_(),
    "as_strided_": lambda _, t: t.as_strided_((1,), (1,)),
    "resize_": lambda _, t: t.resize_(3),
    "set_": lambda f, t: t.set_(f.zeros_like(t)),
    "set_ to nothing": lambda _, t: t.set_(),
    ".data": lambda f, t: setattr(t, "data", f.zeros_like(t)),
    ".data of other sizes": lambda f, t: setattr(t, "data", f.zeros(7, dtype=t.dtype)),
    "detach_": lambda _, t: t.detach_(),
}
WAYS = {**WRITES, **FORMS}
UNSAFE = ".data of other sizes"  # PyTorch reads beyond the end of embedding_bag's indices then


def _differentiable(t):
    return t.is_floating_point() or t.is_complex()


def _loss(outputs):
    """A number that every result enters with weights of its own."""
    total = 0
    for k, o in enumerate(outputs):
        part = o.real if o.is_complex() else o
        total = total + (part.reshape(-1) * (k + 1.0)).sum().double()
    return total


class Run:
    """One call of an op in one framework: ``leaves``, the tensors ``given`` to it and its ``outputs``."""

    def __init__(self, framework, function, args, kwargs, frozen=-1):
        self.framework = framework
        self.leaves, self.given = [], []

        def own(x):
            if not isinstance(x, framework.Tensor):
                return x
            x = x.detach().clone()
            if _differentiable(x) and len(self.given) != frozen:
                self.leaves.append(x.requires_grad_())
                x = x * 1
            self.given.append(x)
            return x

        args, kwargs = mapped(own, (args, kwargs))
        result, error = seeded(function, *args, **kwargs)
        if error is not None:
            raise error
        self.outputs = [o for o in tensors(result) if o.requires_grad]

    def gradients(self, way=None, at=0, output=False, cloned=False):
        """The gradients of the leaves after ``way`` changed argument or result ``at``, or the error. With ``cloned`` a
        copy of each result is changed, which no derivative can have kept."""
        outputs = [o.clone() for o in self.outputs] if cloned else self.outputs
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss = None if output else _loss(outputs)
                if way is not None:
                    target = outputs[at] if output else self.given[at]
                    try:
                        WAYS[way](self.framework, target)
                    except Exception as error:
                        return "refused", error
                loss = _loss(outputs) if output else loss
                found = self.framework.autograd.grad(loss, self.leaves, allow_unused=True)
        except Exception as error:
            return "error", error
        found = [g.to_dense() if g is not None and g.is_sparse else g for g in found]
        return "gradients", [None if g is None else g.detach().clone() for g in found]


def _same(got, want) -> bool:
    try:
        for g, w in zip(got, want, strict=True):
            zero = g if w is None else w
            if g is None or w is None:
                if zero is not None and bool((zero != 0).any()):
                    return False
            else:
                close(g, w if isinstance(w, torch.Tensor) else back(w))
    except Differs:
        return False
    return True


def _cases(run, ways):
    for way in ways:
        for at, t in enumerate(run.given):
            if way not in ("t_",) or t.dim() <= 2:
                yield way, at, False
        if way in WRITES or way in ("unsqueeze_", "transpose_"):
            for at in range(len(run.outputs)):
                yield way, at, True


def check(op, limit=1, ways=tuple(WAYS)):
    """For each case of an entry, the label and the fault: ``wrong gradient``, ``raises``, or None."""
    dtype = dtype_of(op, (torch.float64, torch.complex128))
    if not op.supports_autograd or dtype not in op.supported_backward_dtypes("cpu"):
        return
    for index, sample in enumerate(plain_samples(op, limit, dtype)):
        theirs, their_kwargs = (sample.input, *sample.args), dict(sample.kwargs)
        if not any(_differentiable(t) for t in tensors([theirs, their_kwargs])):
            continue
        try:
            ours, our_kwargs, function = translate(theirs), translate(their_kwargs), translate(op.op)
        except Missing:
            return

        def run(framework, frozen):
            if framework is torch:
                return Run(torch, op.op, theirs, their_kwargs, frozen)  # noqa: B023
            return Run(taeda, function, ours, our_kwargs, frozen)  # noqa: B023

        for frozen in (-1, 0):
            try:
                first, ours_first = run(torch, frozen), run(taeda, frozen)
            except Exception:
                continue
            if not first.outputs or len(first.outputs) != len(ours_first.outputs):
                continue
            kind, truth = first.gradients()
            if kind != "gradients" or not _same(ours_first.gradients()[1], truth):
                continue
            for way, at, output in _cases(first, ways):
                label = f"#{index} {way} of {'output' if output else 'input'} {at}, frozen {frozen}"
                yield label, _verdict(run, frozen, way, at, output, truth)


def _verdict(run, frozen, way, at, output, truth):
    if way == UNSAFE:
        their_kind, theirs = "gradients", truth
    else:
        their_kind, theirs = run(torch, frozen).gradients(way, at, output)
    if their_kind == "refused":
        return None
    our_kind, ours = run(taeda, frozen).gradients(way, at, output)
    if output and way in WRITES:  # the written values enter the result
        truth = run(torch, frozen).gradients(way, at, True, True)[1]
    theirs_right = their_kind == "gradients" and _same([translate(g) for g in theirs], truth)
    if our_kind == "gradients":
        right = _same(ours, truth) or (their_kind == "gradients" and _same(ours, theirs))
        return None if right else "wrong gradient"
    if theirs_right and way != "detach_":
        return f"raises {type(ours).__name__}: {str(ours)[:200]}"
    if not isinstance(ours, (RuntimeError, ValueError, IndexError, NotImplementedError)):
        return f"raises {type(ours).__name__} where PyTorch raises {type(theirs).__name__}: {str(ours)[:200]}"
    return None


def main() -> None:
    counts: Counter = Counter()
    for _name, op, limit in chosen():
        for label, wrong in check(op, limit):
            counts[wrong.split(":")[0] if wrong else "right"] += 1
            if wrong:
                print(name_of(op), "|", label, "|", wrong.replace("\n", " "), flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()

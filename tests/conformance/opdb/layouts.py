"""Strides of results: the database's entries on inputs that lie in memory in other ways, compared with PyTorch's.

python -m tests.conformance.opdb.layouts [REGEX [SAMPLES]]     (0: all samples)
"""

from __future__ import annotations

import torch

from ..trees import mapped
from .checks import seeded, tensors
from .samples import plain_samples, report
from .translate import Missing, translate

#: The order of dimensions from the outermost in memory to the innermost, by number of dimensions.
LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


def laid(x, order):
    """The elements of ``x`` in memory of their own, whose dimensions lie in ``order``, also those of one element."""
    made, step = [0] * x.dim(), 1
    for d in reversed(order):
        made[d] = step
        step *= max(x.shape[d], 1)
    return torch.empty_strided(x.shape, made, dtype=x.dtype).copy_(x)


def channels_last(x):
    return laid(x, LAST[x.dim()]) if x.dim() in LAST else x


def single(x):
    """Images of one element with channels last: the first elements of ``x`` after its second dimension, or ``x`` itself
    with more dimensions."""
    if x.dim() < 2 or x.dim() > 5:
        return x
    x = x[:, :, *(slice(1) for _ in x.shape[2:])] if x.dim() > 2 else x[:, :, None, None]
    return channels_last(x)


def permuted(x):
    return laid(x, tuple(reversed(range(x.dim()))))


def rotated(x):
    return laid(x, (*range(1, x.dim()), 0)) if x.dim() > 2 else x


def sliced(x):
    return torch.stack([x, x], -1).flatten(-2)[..., ::2] if x.dim() else x


FORMS = {
    "contiguous": lambda x: x,
    "channels last": channels_last,
    "sizes 1": single,
    "permuted": permuted,
    "rotated": rotated,
    "sliced": sliced,
}


def results(thing) -> list:
    return [t for t in tensors(thing) if str(t.layout).endswith("strided") and t.numel()]


def check(op, limit=2) -> list[str]:
    """The differences, one line for each call."""
    bad = []
    try:
        function = translate(op.op)
    except Missing:
        return []
    for sample in plain_samples(op, limit):
        plain = [sample.input, *sample.args], dict(sample.kwargs)
        for name, form in FORMS.items():
            args, kwargs = mapped(lambda x, form=form: form(x.detach()) if isinstance(x, torch.Tensor) else x, plain)
            given = tensors([args, kwargs])
            if name == "sizes 1" and not all(t.is_floating_point() for t in given):
                continue  # indices of elements that are gone: PyTorch does not check all of them
            if name != "contiguous" and all(
                t.stride() == s.stride() for t, s in zip(given, tensors(list(plain)), strict=True)
            ):
                continue
            where = f"{name} " + " ".join(f"{tuple(t.shape)}/{t.stride()}" for t in given[:3])
            memo: dict = {}
            our_args, our_kwargs = translate(args, memo), translate(kwargs, memo)
            want, refused = seeded(op.op, *args, **kwargs)
            if refused is not None:
                continue
            got, error = seeded(function, *our_args, **our_kwargs)
            if error is not None:
                bad.append(f"{where}: raises {type(error).__name__}")
                continue
            got, want = ([tuple(t.stride()) for t in results(r)] for r in (got, want))
            if got != want:
                bad.append(f"{where}: {got} instead of {want}")
    return bad


if __name__ == "__main__":
    report(check)

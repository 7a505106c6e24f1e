"""Samples of the database's entries for a check that takes one dtype, and its command line."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator

import torch

import taeda

from ..trees import mapped
from .checks import entries, pick, tensors
from .translate import translate


def is_plain(sample) -> bool:
    """Whether all tensors are strided, on the CPU, and not conjugate views."""
    return all(
        t.layout is torch.strided and t.device.type == "cpu" and not t.is_conj() and not t.is_neg()
        for t in tensors([sample.input, list(sample.args), sample.kwargs])
    )


def dtype_of(op, preferred=(torch.float32, torch.complex64)) -> torch.dtype | None:
    """The first of ``preferred`` that the entry takes on the CPU, else the first by name, else None."""
    supported = op.supported_dtypes("cpu")
    return next((d for d in (*preferred, *sorted(supported, key=str)) if d in supported), None)


def plain_samples(op, limit, dtype=None, requires_grad=False) -> list:
    """At most ``limit`` plain samples (None: all) of one dtype, by default :func:`dtype_of`."""
    dtype = dtype or dtype_of(op)
    if dtype is None:
        return []
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = op.sample_inputs("cpu", dtype, requires_grad=requires_grad)
        return pick([s for s in samples if is_plain(s)], limit)


def copied(thing):
    """``thing`` with copies of the tensors in it."""
    return mapped(lambda x: x.clone() if isinstance(x, taeda.Tensor) else x, thing)


def calls(op, limit, fails=False) -> Iterator[tuple]:
    """``(function, args, kwargs)`` of taeda for each plain sample; with ``fails`` also of those that raise.

    Other tests compare exceptions and results with PyTorch.
    """
    for sample in plain_samples(op, limit):
        function = translate(op.op)
        args, kwargs = translate((sample.input, *sample.args)), translate(sample.kwargs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if not fails:
                    function(*copied(args), **copied(kwargs))
            except Exception:
                continue
            yield function, args, kwargs


def chosen() -> Iterator[tuple]:
    """``(name, entry, limit)`` by the command line ``[REGEX [SAMPLES]]``; 0 samples are all of them, that is None."""
    pattern, limit = (*sys.argv[1:3], *("", "1")[len(sys.argv[1:3]) :])
    for name, op in entries().items():
        if re.search(pattern, name):
            yield name, op, int(limit) or None


def report(check: Callable, most: int | None = None) -> None:
    """Print the faults that ``check(op, limit)`` finds in each entry, at most so many of them, and how many agree."""
    differing = n = 0
    for name, op, limit in chosen():
        bad = check(op, limit)
        n += 1
        differing += bool(bad)
        for line in bad[:most]:
            print(f"{name}: {line[:400]}", flush=True)
    print(f"{n - differing} of {n} agree")

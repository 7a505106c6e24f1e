"""Calls of the database's samples with one argument spoiled: most of them must fail, and none may change a tensor."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Iterator
from pathlib import Path

import torch

import taeda

from .checks import describe, explain, pick, seeded, tensors
from .translate import Missing, translate

#: The exceptions that a call may raise; any other one is an accident of the implementation.
MEANT = (TypeError, ValueError, RuntimeError, IndexError, OverflowError, AssertionError)


def spoiled(x) -> Iterator[tuple[str, object]]:
    """Wrong or sometimes wrong values in place of ``x``: a description, and the value."""
    if isinstance(x, torch.Tensor) and x.layout is torch.strided:
        x = x.detach()
        for dtype in (torch.float64, torch.int64, torch.bool, torch.complex64):
            if dtype != x.dtype:
                yield str(dtype)[6:], (x.real if x.is_complex() else x).to(dtype)
        yield "one more dimension", x.clone().unsqueeze(0)
        yield "no dimensions", torch.ones((), dtype=x.dtype)
        yield "no elements", torch.ones(0, dtype=x.dtype)
        if x.dim():
            yield "longer at the end", torch.cat([x, x, x], -1)
            yield "longer at the front", torch.cat([x, x, x], 0)
        yield "seven dimensions", torch.ones((2,) * 7, dtype=x.dtype)
        yield "str", "x"
        yield "None", None
        yield "list", [1.0]
        if not x.is_floating_point() and not x.is_complex():
            yield "out of range", torch.full_like(x, 100)
            yield "negative", torch.full_like(x, -100)
    elif isinstance(x, bool):
        yield from (("str", "x"), ("None", None))
    elif isinstance(x, int):
        for value in (100, -100, 0, 1.5, "x", None, [1, 2], torch.ones(2), 2**70):
            yield repr(value)[:20], value
    elif isinstance(x, float):
        for value in (-1.0, float("nan"), "x", None, [1.0], torch.ones(2), 1j):
            yield repr(value)[:20], value
    elif type(x) in (tuple, list):
        yield from (("str", "x"), ("None", None), ("no items", type(x)()), ("twice", type(x)([*x, *x])))
        for i in range(min(len(x), 2)):
            for what, value in spoiled(x[i]):
                yield f"[{i}] {what}", type(x)([*x[:i], value, *x[i + 1 :]])
    else:
        yield "str", "nonsense"


def broken(args: tuple, kwargs: dict) -> Iterator[tuple[str, tuple, dict]]:
    """The call with one argument spoiled, missing or too many."""
    for i, x in enumerate(args):
        for what, value in spoiled(x):
            yield f"argument {i}: {what}", (*args[:i], value, *args[i + 1 :]), kwargs
    for key, x in kwargs.items():
        for what, value in spoiled(x):
            yield f"{key}: {what}", args, {**kwargs, key: value}
    yield "one missing", args[:-1], kwargs
    yield "an unknown keyword", args, {**kwargs, "nonsense": 1}


def state(things: list) -> list:
    """All that a call may change in tensors."""
    strided = torch.strided, taeda.strided
    return [
        (tuple(x.shape), x.stride(), x._version, x.requires_grad, x.is_leaf, repr(x.detach().tolist()))
        for x in things
        if x.layout in strided and x.device.type == "cpu" and x.numel() < 2000
    ]


def is_of_the_database(error: Exception) -> bool:
    """Whether a function of the database raised it, for a first argument that is no tensor."""
    return "torch" in Path(traceback.extract_tb(error.__traceback__)[-1].filename).parts


def refusals(op) -> list[str]:
    """The faults in how calls of ``op``, and of its in-place form, fail in taeda."""
    found = []
    dtype = next((d for d in (torch.float32, torch.int64, torch.bool) if d in op.supported_dtypes("cpu")), None)
    if dtype is None:
        return found
    torch.manual_seed(0)
    for sample in pick(op.sample_inputs("cpu", dtype, requires_grad=False), 1):
        for form in (op.op, op.inplace_variant):
            try:
                ours = None if form is None else translate(form)
            except Missing:
                ours = None
            if ours is None:
                continue
            for what, args, kwargs in broken((sample.input, *sample.args), dict(sample.kwargs)):
                try:
                    made = translate(copy.deepcopy((args, kwargs)), {})
                except Exception:
                    continue
                given = tensors(list(made))
                before = state(given)
                _, error = seeded(ours, *made[0], **made[1])
                label = f"{what} of {describe(sample)}: {explain(error) if error else ''}"
                if error is not None and not isinstance(error, MEANT) and not is_of_the_database(error):
                    found.append(f"an accident: {label}")
                if error is not None and state(given) != before:
                    found.append(f"a changed tensor: {label}")
    return found

"""Tensors to and from PyTorch, and comparison of a call in both frameworks."""

from __future__ import annotations

import warnings

import torch

import taeda
from taeda._core.dlpack import from_dlpack


def ours(x):
    """A taeda tensor on the memory of ``x``; containers are walked."""
    if isinstance(x, torch.Tensor):
        made = from_dlpack(x.detach())
        return made.requires_grad_() if x.requires_grad else made
    if isinstance(x, torch.dtype):
        return getattr(taeda, str(x).removeprefix("torch."))
    if isinstance(x, (list, tuple)):
        return type(x)(ours(item) for item in x)
    return x


def theirs(x):
    """A torch tensor with the values of ``x``; containers are walked."""
    if isinstance(x, taeda.Tensor):
        return torch.from_dlpack(x.detach().clone())
    if isinstance(x, (list, tuple)):
        return tuple(theirs(item) for item in x)
    return x


def close(got, want, **tolerance):
    """Same structure, sizes and dtypes, and values within ``tolerance`` (PyTorch's defaults for the dtype)."""
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            close(g, w, **tolerance)
        return
    got = theirs(got)
    if not isinstance(want, torch.Tensor):
        assert got == want
        return
    torch.testing.assert_close(got, want.detach(), equal_nan=True, **tolerance)


def outcome(fn, *args, **kwargs):
    """The outcome of a call: its value, or the exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(*args, **kwargs), None
    except Exception as error:
        return None, error


def failure(fn, *args, **kwargs):
    """The name of the class of the exception that a call raises."""
    _, error = outcome(fn, *args, **kwargs)
    return type(error).__name__ if error is not None else "no error"


#: What calls with wrong arguments raise. A mistake in a test raises something else, such as AttributeError.
ERRORS = (RuntimeError, ValueError, TypeError, IndexError, OverflowError)


def compare(name, fn, *args, tolerance=None, raises=(), may_raise=(), **kwargs):
    """``fn(framework, *args)`` in both gives the same values or, where ``raises`` says so, the same exception.

    ``may_raise`` is for tables of cases of which PyTorch refuses some: values, or one of these exceptions, in both.
    """
    want, theirs_error = outcome(fn, torch, *args, **kwargs)
    got, our_error = outcome(fn, taeda, *ours(args), **{k: ours(v) for k, v in kwargs.items()})
    if theirs_error is not None or raises:
        said = raises or may_raise
        assert isinstance(theirs_error, said), f"{name}: PyTorch gives {theirs_error!r}, the test expects {said}"
        assert our_error is not None, f"{name}: PyTorch raises {theirs_error!r}, taeda gives {got!r}"
        expected = (RuntimeError,) if isinstance(theirs_error, RuntimeError) else (type(theirs_error),)
        assert isinstance(our_error, expected), f"{name}: {our_error!r} instead of {theirs_error!r}"
        return
    if our_error is not None:
        raise AssertionError(f"{name}{args, kwargs}: taeda raises {our_error!r}") from our_error
    close(got, want, **(tolerance or {}))


def gradients(name, fn, *args, tolerance=None, second=False):
    """First (and second) derivatives of ``fn(framework, *tensors)`` agree, for random gradients of the outputs."""
    results = []
    for framework, convert in ((torch, lambda x: x), (taeda, ours)):
        generator = torch.Generator().manual_seed(0)

        def like(x, generator=generator, convert=convert):
            shape = tuple(x.shape)
            dtype = getattr(torch, str(x.dtype).split(".")[-1])
            return convert(torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype))

        inputs = [
            convert(a.detach().clone().requires_grad_(a.is_floating_point() or a.is_complex()))
            if isinstance(a, torch.Tensor)
            else a
            for a in args
        ]
        leaves = [x for x in inputs if isinstance(x, (torch.Tensor, taeda.Tensor)) and x.requires_grad]
        outs = fn(framework, *inputs)
        outs = [o for o in (outs if isinstance(outs, (tuple, list)) else (outs,)) if o.requires_grad]
        first = framework.autograd.grad(outs, leaves, [like(o) for o in outs], create_graph=second, allow_unused=True)
        found = [*first]
        if second:
            live = [g for g in first if g is not None and g.requires_grad]
            none = [None] * len(leaves)
            found += framework.autograd.grad(live, leaves, [like(g) for g in live], allow_unused=True) if live else none
        results.append(found)
    for want, got in zip(*results, strict=True):
        zero = want is None or not bool(want.any())
        if got is None or want is None:
            assert zero and (got is None or not bool(got.any())), f"{name}: {got} instead of {want}"
            continue
        close(got, want, **(tolerance or {}))

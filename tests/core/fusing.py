"""Tensors and comparisons for the tests of deferred ops."""

import copy

import numpy as np

import taeda


def draw(*shape, seed=0, **options):
    return taeda.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=taeda.float32, **options)


def check(function, *args):
    """Compiled it gives the bits that it gives eagerly, and leaves the same in its arguments."""
    ours, others = copy.deepcopy(args), copy.deepcopy(args)
    want, got = function(*ours), taeda.compile(function)(*others)
    want, got = [*taeda.utils._pytree.tree_leaves(want), *ours], [*taeda.utils._pytree.tree_leaves(got), *others]
    assert len(want) == len(got)
    for a, b in zip(want, got, strict=True):
        if isinstance(a, taeda.Tensor):
            assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
            assert np.array_equal(a.detach().numpy(), b.detach().numpy(), equal_nan=True)
            assert (a.grad is None) == (b.grad is None)
            assert a.grad is None or np.array_equal(a.grad.numpy(), b.grad.numpy(), equal_nan=True)
        else:
            assert a == b
    assert [t._version for t in ours if isinstance(t, taeda.Tensor)] == [
        t._version for t in others if isinstance(t, taeda.Tensor)
    ]

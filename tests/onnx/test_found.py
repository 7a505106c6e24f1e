"""Numbers, and sizes of results, that only a run finds, in onnxruntime: at other values than the example's."""

from __future__ import annotations

import numpy as np
import pytest

import taeda
import taeda.onnx
from taeda import nn
from taeda.export import Dim

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def prefix(x, n):
    k = n.item()
    taeda._check(k >= 1)
    taeda._check(k <= x.shape[0])
    return x[:k] * 2, x[-1], x[n.item()]


def made(x, n):
    k = n.item()
    taeda._check(k >= 0)
    return taeda.arange(k) * 2, taeda.zeros(k, 2).sum(1), taeda.ones(k) * x.mean().item(), k + 1, x[0].expand(k, 3)


def found(x, n):
    return x.nonzero(), taeda.where(x > 0), taeda.argwhere(x > 0.5), (x > 0).any().item()


def masks(x, n):
    rows = x[x.sum(1) > 0]
    y = taeda.masked_select(x, x > 0)
    return (
        x[x > 0],
        rows @ taeda.ones(3, 2),
        rows.reshape(-1),
        (y / y.numel()).softmax(0),
        x[:, taeda.tensor([True, False, True])],
    )


def distinct(x, n):
    values, inverse, counts = x.round().unique(return_inverse=True, return_counts=True)
    line = x.round().flatten().sort().values
    return values, inverse, counts, *line.unique_consecutive(return_inverse=True, return_counts=True)


def counted(x, n):
    places = (x.abs() * 2).long().flatten()
    return taeda.bincount(places, minlength=3), taeda.bincount(places, x.flatten().abs())


def repeated(x, n):
    many = x.abs().long()[:, 0]
    return (
        x.repeat_interleave(many, dim=0),
        x.repeat_interleave(n),
        many.repeat_interleave(many),
        taeda.repeat_interleave(many),
    )


def parts(x, n):
    return x.split(taeda.stack([n, 4 - n]).tolist())


def written(x, n):
    y = x.clone()
    y[x > 0] = 0
    y[x.sum(1) > 0] = taeda.tensor([1.0, 2.0, 3.0])
    y[x < -1] = x[x < -1] * 2
    y[: n.item()] += 1
    return y


FOUND = [prefix, made, found, masks, distinct, counted, repeated, parts, written]


def check(program, function, *args):
    want = taeda.utils._pytree.tree_leaves(function(*args))
    got = program(*args)
    assert len(got) == len(want)
    for x, y in zip(got, want, strict=True):
        y = y.numpy() if isinstance(y, taeda.Tensor) else np.asarray(y)
        assert x.shape == y.shape and np.allclose(x.numpy(), y, 1e-4, 1e-5)


@pytest.mark.parametrize("function", FOUND)
def test_what_only_a_run_finds(function):
    taeda.manual_seed(0)
    program = taeda.onnx.export(Calls(function), (taeda.randn(4, 3), taeda.tensor(2)))
    for n in (1, 2, 3):
        check(program, function, taeda.randn(4, 3) * 2, taeda.tensor(n))


def columns(x):
    y = x.clone()
    y[:, 1:] = 2
    y[:, 1:2] += x[:, :1]
    return y


def joined(x):
    y = taeda.zeros(x.shape[0], 6)
    y[:, :3] = x
    y[:, 3:] = x * 2
    y[0] = 7
    y[-1, 1] = 8
    y[1:, ::2] = 5
    return y


def views(x):
    y = x.clone()
    y.select(1, 0).mul_(3)
    y.transpose(0, 1)[1] = 9
    y.view(-1)[0] = 3
    y[..., 2].add_(1)
    y[:, None, 1:2] = 4
    first, second = y.chunk(2, 1)
    first.mul_(2)
    return y, second


def places(x):
    y = taeda.zeros(x.shape[0], 3)
    y[taeda.arange(x.shape[0]), x.argmax(1)] = 1
    y[:, taeda.tensor([0, 2])] += 5.0
    y[[0, 1], 1:] = x[[1, 0], 1:]
    y[1:-1] = 3
    return y


@pytest.mark.parametrize("function", [columns, joined, views, places])
@pytest.mark.parametrize("sizes", [None, ({0: Dim("b", min=2)},)])
def test_writes_to_views(function, sizes):
    wrapped = Calls(function)
    exported = taeda.export.export(wrapped, (taeda.randn(4, 3),), dynamic_shapes=None if sizes is None else (sizes,))
    program = taeda.onnx.export(exported)
    fewer = exported.run_decompositions()
    for n in (4,) if sizes is None else (2, 4, 7):
        x = taeda.randn(n, 3)
        check(program, function, x)
        check(fewer.module(), function, x) if isinstance(function(x), tuple) else check(
            lambda x: (fewer.module()(x),), function, x
        )
    names = [node.name for node in fewer.graph.nodes]
    assert not any(name.startswith(("copy_", "setitem")) for name in names)

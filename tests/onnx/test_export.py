"""Models written as ONNX give in onnxruntime what they give here."""

from __future__ import annotations

import io

import numpy as np
import pytest

import taeda
import taeda.onnx
from taeda import nn
from taeda.nn import functional as F
from taeda.utils import _pytree as pytree

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from .networks import NETWORKS  # noqa: E402


def leaves(result):
    return [x for x in pytree.tree_leaves(result) if isinstance(x, taeda.Tensor)]


def compare(program, model, *args, tolerance=1e-4):
    """The largest number counts: elements agree to 1e-4 of it."""
    with taeda.no_grad():
        wanted = leaves(model(*args))
    got = program(*args)
    assert len(got) == len(wanted)
    for x, y in zip(got, wanted, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        scale = float(y.double().abs().max()) if y.numel() else 0.0
        np.testing.assert_allclose(x.double().numpy(), y.double().numpy(), tolerance, tolerance * min(scale, 1) + 1e-7)


def kinds(program):
    return [node.op_type for node in program.model_proto.graph.node]


def changed(x, sizes):
    """Another tensor like ``x``, each of its named sizes one larger."""
    if not isinstance(x, taeda.Tensor):
        return x
    grown = [n + (1 if isinstance(sizes.get(d), str) else 2 if d in sizes else 0) for d, n in enumerate(x.shape)]
    if x.is_floating_point():
        return taeda.randn(grown)
    low, high = int(x.min()), int(x.max()) + 1
    return taeda.randint(low, max(high, low + 1), grown)


@pytest.mark.parametrize("opset", [None, 17, 23])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name, opset):
    taeda.manual_seed(0)
    model, args, sizes = NETWORKS[name]()
    model.eval()
    program = taeda.onnx.export(model, args, dynamic_shapes=sizes, opset_version=opset)
    compare(program, model, *args)
    flat, spec = pytree.tree_flatten(args)
    others = pytree.tree_leaves(sizes, is_leaf=lambda s: isinstance(s, dict))
    compare(program, model, *pytree.tree_unflatten([changed(x, s) for x, s in zip(flat, others, strict=True)], spec))

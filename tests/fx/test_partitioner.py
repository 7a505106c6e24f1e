"""Programs as parts that a backend can run."""

from __future__ import annotations

import pytest

import taeda
from taeda import fx
from taeda.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from taeda.fx.passes.operator_support import create_op_support


def cycle(x):
    a = taeda.sin(x)
    b = taeda.neg(a)
    return taeda.add(a, b) * taeda.cos(a)


def split(x):
    a, b = taeda.split(x, 2)
    c = taeda.sin(a) + b
    return taeda.relu(taeda.neg(c)), c


# The parts are those of torch.fx 2.13.
PROGRAMS = [
    (cycle, {"sin", "add", "cos", "mul"}, 4, True, [["add", "cos", "mul"], ["sin"]]),
    (split, {"split", "sin", "add", "relu"}, 4, False, None),
    (lambda x: taeda.neg(taeda.sin(x)) + taeda.sin(x), {"sin"}, 4, False, [["sin", "sin_1"]]),
    (lambda x: taeda.sin(x), {"sin"}, 4, False, []),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_parts(program):
    function, names, size, alone, wanted = program
    module = fx.symbolic_trace(function)
    support = create_op_support(lambda _, n: n.op == "call_function" and n.target.__name__ in names)
    partitioner = CapabilityBasedPartitioner(module, support, allows_single_node_partition=alone)
    parts = partitioner.propose_partitions()
    if wanted is not None:
        assert sorted(sorted(n.name for n in p.nodes) for p in parts) == wanted
    fused = partitioner.fuse_partitions(parts)
    fused.graph.lint()
    assert sum(n.op == "call_module" for n in fused.graph.nodes) == len(parts)
    x = taeda.randn(size)
    for got, y in zip(fused(x), function(x), strict=True):
        assert taeda.equal(got, y)

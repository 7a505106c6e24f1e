"""Graphs as DOT text."""

import re

import pytest

import taeda
from taeda.utils.dot import graph


def leaf(*shape):
    return taeda.ones(*shape).requires_grad_()


def test_nodes_and_edges():
    x, w = leaf(3), leaf(3)
    text = graph((x * w).exp().sum(), params={"x": x, "w": w})
    assert text.startswith("digraph")
    assert text.rstrip().endswith("}")
    labels = dict(re.findall(r'(\w+) \[label="([^"]*)"', text))
    names = {label.split("\\n")[0]: key for key, label in labels.items()}
    for source, target in [
        ("MulBackward0", "ExpBackward0"),
        ("ExpBackward0", "SumBackward0"),
        ("x", "MulBackward0"),
        ("w", "MulBackward0"),
    ]:
        assert f"{names[source]} -> {names[target]};" in text
    assert text.count("MulBackward0") == 1
    assert r"(3,)\ntaeda.float32" in text


def test_shared_nodes_are_drawn_once():
    x = leaf(2)
    h = x * 2
    text = graph((h + h.exp(), h.sin()))
    assert text.count("MulBackward0") == 1
    assert len(re.findall(r"-> o\d;", text)) == 2


def test_functions_modules_and_nodes():
    x = leaf(2)
    assert "SinBackward0" in graph(lambda a: a.sin(), x)
    assert "SinBackward0" in graph(x.sin().grad_fn)
    model = taeda.nn.Linear(2, 3)
    assert "weight" in graph(model, taeda.ones(1, 2))
    assert "weight" in graph(model(taeda.ones(1, 2)), params=model)


def test_saved_tensors():
    x = leaf(2)
    text = graph(x.exp(), show_saved=True)
    assert "dashed" in text
    assert "dashed" not in graph(x.exp())


def test_custom_functions():
    class Twice(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    text = graph(Twice.apply(leaf(2)), show_saved=True)
    assert "TwiceBackward" in text
    assert "saved 0" in text


def test_deep_graphs_and_limits():
    y = leaf(1)
    for _ in range(5000):
        y = y + 1
    assert graph(y).count("AddBackward0") == 5000
    with pytest.raises(ValueError, match="max_nodes"):
        graph(y, max_nodes=10)


def test_a_tensor_without_graph():
    assert "->" not in graph(taeda.ones(2))

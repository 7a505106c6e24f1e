"""The graph from outside: nodes and edges, hooks on saved tensors and on several gradients."""

import pytest

import taeda
from taeda import autograd
from taeda.autograd import graph
from taeda.nn import functional as F


def leaf(*values):
    return taeda.tensor(values, dtype=taeda.float64, requires_grad=True)


def test_nodes():
    x = leaf(1.0, 2.0)
    y = (x * 2).exp()
    node = y.grad_fn
    assert isinstance(node, graph.Node)
    assert node.name() == "ExpBackward0"
    ((product, nr),) = node.next_functions
    assert (product.name(), nr) == ("MulBackward0", 0)
    assert product.next_functions[0][0].variable is x
    assert product.next_functions[0][0] == (x + 1).grad_fn.next_functions[0][0]
    assert node._saved_result.tolist() == y.tolist()
    assert [name for name, _ in node.saved_items()] == ["out"]
    assert node(taeda.ones(2, dtype=taeda.float64)).tolist() == y.tolist()
    assert x.grad_fn is None
    assert repr(node).startswith("<ExpBackward0 object at")


def test_the_class_of_a_node_has_its_name():
    """Programs that draw graphs ask for ``type(node).__name__``."""
    x = leaf(1.0, 2.0)
    y = (x * 2).exp()
    todo, found = [y.grad_fn], []
    while todo:
        node = todo.pop()
        found.append(type(node).__name__)
        todo += [n for n, _ in node.next_functions if n is not None]
    assert found == ["ExpBackward0", "MulBackward0", "AccumulateGrad"]
    assert str(type(y.grad_fn)) == "<class 'ExpBackward0'>"
    assert y.grad_fn is y.grad_fn and isinstance(y.grad_fn, graph.Node)
    assert type((x * x).grad_fn) is type(y.grad_fn.next_functions[0][0])
    y.sum().backward()  # through nodes of two classes
    assert x.grad.tolist() == (y * 2).tolist()
    base = x * 1
    view = base[:1]
    before = view.grad_fn
    view.mul_(3)  # a node that is made anew, of a view that was looked at
    assert type(before).__name__ == "SliceBackward0" and "Backward" in type(view.grad_fn).__name__
    (g,) = taeda.autograd.grad(base.sum(), x)
    assert g.tolist() == [3, 1]


def test_a_long_chain_of_nodes_of_their_own_class_is_freed():
    x = leaf(1.0)
    y = x
    for _ in range(200_000):
        y = y + 1
    node = y.grad_fn
    while node.next_functions:
        node = node.next_functions[0][0]
    assert node.variable is x
    y.backward()
    del y, node
    assert x.grad.item() == 1


def test_what_a_node_keeps_has_a_name():
    x = leaf(1.0, 2.0, 3.0)
    node = x.split([1, 2])[0].grad_fn
    assert node._saved_split_sizes == [1, 2] and node._saved_dim == 0
    node = (x * x).grad_fn
    assert node._saved_self.tolist() == node._saved_other.tolist() == [1, 2, 3]
    assert {"_saved_self", "_saved_other", "next_functions", "name"} <= set(dir(node))
    assert "_saved_result" in dir(x.exp().grad_fn) and not hasattr(x.exp().grad_fn, "_saved_self")


def test_gradient_edges():
    x = leaf(1.0, 2.0)
    y = x * 3
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn
    z = (y * y).sum()
    (g,) = autograd.grad(z, edge, retain_graph=True)
    assert g.tolist() == [6.0, 12.0]
    (g,) = autograd.grad(z, graph.get_gradient_edge(x), retain_graph=True)
    assert g.tolist() == [18.0, 36.0]
    (g,) = autograd.grad(edge, x, taeda.ones(2, dtype=taeda.float64), retain_graph=True)
    assert g.tolist() == [3.0, 3.0]
    autograd.backward(edge, taeda.ones(2, dtype=taeda.float64))
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(taeda.ones(2))
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        autograd.backward(edge)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        autograd.backward(edge, taeda.ones(3))
    with pytest.raises(RuntimeError, match="sizes of this GradientEdge are not known"):
        autograd.backward(graph.GradientEdge(y.grad_fn, 0))
    _first, second = taeda.stack([x, x]).unbind(0)
    assert graph.get_gradient_edge(second).output_nr == 1


def test_edges_are_equal_by_node_and_number():
    """A walk over ``next_functions`` finds the edges that ``get_gradient_edge`` gave."""
    x = leaf(1.0, 2.0)
    y = x * 3
    edge = graph.get_gradient_edge(y)
    found = graph.GradientEdge(*(y + 1).grad_fn.next_functions[0])
    assert edge == found and hash(edge) == hash(found) and found in {edge}
    assert tuple(edge) == (y.grad_fn, 0, None) and repr(edge).endswith("output_nr=0, ownership_token=None)")
    assert edge != graph.get_gradient_edge(x * 3)


def test_an_edge_keeps_its_place_when_the_tensor_is_written():
    x = leaf(1.0, 2.0)
    y = x * 3
    edge = graph.get_gradient_edge(y)
    y.mul_(5)
    (g,) = autograd.grad(y.sum(), edge)
    assert g.tolist() == [5.0, 5.0]


def test_saved_tensors_hooks():
    packed = []

    def pack(t):
        packed.append(t)
        return t.tolist()

    def unpack(values):
        return taeda.tensor(values, dtype=taeda.float64) * 10

    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with graph.saved_tensors_hooks(pack, unpack):
        y = x * w
    assert len(packed) == 2
    y.sum().backward()
    assert x.grad.tolist() == [30.0, 40.0]
    assert w.grad.tolist() == [10.0, 20.0]
    (x * w).sum().backward()
    assert len(packed) == 2


@pytest.mark.parametrize(
    "function", [lambda x, w: x / w, taeda.atan2, lambda x, w: taeda.where(x > 0, x * w, w), lambda x, w: x**w]
)
def test_what_a_hook_packed_is_unpacked_once(function):
    packed, unpacked = [], []
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with graph.saved_tensors_hooks(
        lambda t: packed.append(t) or len(packed), lambda i: unpacked.append(i) or packed[i - 1]
    ):
        y = function(x, w)
    y.sum().backward()
    assert sorted(unpacked) == sorted(set(unpacked))
    assert all(map(taeda.allclose, (x.grad, w.grad), autograd.grad(function(x, w).sum(), (x, w))))


def test_saved_tensors_hooks_nest():
    x = leaf(2.0)
    order = []
    with graph.saved_tensors_hooks(lambda t: order.append("outer") or t, lambda t: t):
        y = x.exp()
        with graph.saved_tensors_hooks(lambda t: order.append("inner") or t, lambda t: t):
            y = y.exp()
        y = y.exp()
    assert order == ["outer", "inner", "outer"]
    y.backward()
    (expected,) = autograd.grad(x.exp().exp().exp(), x)
    assert x.grad.item() == expected.item()


def test_packed_tensors_keep_their_place_in_the_graph():
    x, w = leaf(0.5, 0.25), leaf(1.5, -0.5)

    def copied(x, w):
        with graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t.clone()):
            h = (x * w).exp()
            h[0].mul_(w[0])
            return h * x

    assert autograd.gradcheck(copied, (x, w))
    assert autograd.gradgradcheck(copied, (x, w))
    with graph.save_on_cpu():
        y = (x * w).sin() * x
    (g,) = autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    assert x.grad is not None
    assert w.grad is not None


def test_saved_tensors_hooks_are_checked():
    x = leaf(2.0)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: "text"):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type str"):
        y.backward()
    with (
        pytest.raises(RuntimeError, match="modifying its input in place"),
        graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t),
    ):
        (x * 1) * (x * 1)
    assert taeda.is_grad_enabled()


def test_an_error_in_a_pack_hook_leaves_everything_usable():
    x = leaf(2.0)

    def fail(t):
        raise KeyError("on purpose")

    with pytest.raises(KeyError), graph.saved_tensors_hooks(fail, lambda t: t):
        x.exp()
    assert taeda.is_grad_enabled()
    x.exp().backward()


def test_disabling_saved_tensors_hooks():
    hooks = graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    with graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), hooks:
        pass
    with hooks, pytest.raises(RuntimeError, match="too late"), graph.disable_saved_tensors_hooks("too late"):
        pass


def test_multi_grad_hook_on_all():
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    calls = []
    handle = graph.register_multi_grad_hook(
        (a, b, c), lambda grads: calls.append([None if g is None else g.item() for g in grads])
    )
    (a * b).sum().backward()
    (c * b).sum().backward(inputs=[b])
    (a * b * c).sum().backward()
    assert calls == [[2.0, 1.0, None], [None, 3.0, None], [6.0, 3.0, 2.0]]
    handle.remove()
    (a * b).sum().backward()
    assert len(calls) == 3


def test_multi_grad_hook_on_any():
    a, b = leaf(1.0), leaf(2.0)
    h = a + 5
    calls = []
    graph.register_multi_grad_hook((a, b, h), lambda g: calls.append(g.item()), mode="any")
    (h * b).sum().backward()
    (h * b).sum().backward()
    assert len(calls) == 2
    with pytest.raises(ValueError, match="mode"):
        graph.register_multi_grad_hook((a,), print, mode="some")


def test_mutation_of_saved_tensors():
    x = leaf(1.0, 2.0)
    with graph.allow_mutation_on_saved_tensors():
        h = x * 1
        y = (h * h).sum() + h.exp().sum()
        h.mul_(100)
        h[0] = 5
        y.backward()
    expected = [2 * v + taeda.tensor(v, dtype=taeda.float64).exp().item() for v in (1.0, 2.0)]
    assert x.grad.tolist() == pytest.approx(expected)
    with graph.allow_mutation_on_saved_tensors():
        y = x.exp()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):
        y.sum().backward()
    inner = graph.allow_mutation_on_saved_tensors()
    with graph.allow_mutation_on_saved_tensors(), pytest.raises(RuntimeError, match="cannot be nested"), inner:
        pass


def test_backward_to_edges():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    z = (x * w).sum()
    z.backward(inputs=(graph.get_gradient_edge(x), w), retain_graph=True)
    assert x.grad.tolist() == [3.0, 4.0] and w.grad.tolist() == [1.0, 2.0]
    autograd.backward(graph.get_gradient_edge(z), inputs=graph.get_gradient_edge(x))
    assert x.grad.tolist() == [6.0, 8.0] and w.grad.tolist() == [1.0, 2.0]
    y = x * 2
    (y * y).sum().backward(inputs=(graph.get_gradient_edge(y),))
    assert x.grad.tolist() == [6.0, 8.0] and y.grad is None
    (g,) = autograd.grad(graph.get_gradient_edge((x * 3).sum()), x)
    assert g.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="Tensors or GradientEdges"):
        z.backward(inputs=(3,))


def test_a_number_in_a_tensor_as_an_argument_that_the_derivative_needs():
    x = leaf(1.0, -2.0)
    for op, value in ((F.softplus, 2.0), (F.leaky_relu, 0.5), (F.celu, 0.5), (F.elu, 0.5), (F.softshrink, 0.25)):
        (expected,) = autograd.grad(op(x, value).sum(), x)
        (got,) = autograd.grad(op(x, taeda.tensor(value)).sum(), x)
        assert got.tolist() == expected.tolist(), op

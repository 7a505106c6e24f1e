"""Tensors that have no memory of their own: nothing reads some in their place, and gradients of them are of their kind."""

import pytest

import taeda
from taeda import nested


def coo(requires_grad=False):
    return taeda.sparse_coo_tensor([[0, 1], [1, 2]], [3.0, 4.0], (2, 3), requires_grad=requires_grad)


KINDS = {
    "coo": coo,
    "csr": lambda: coo().to_sparse_csr(),
    "nested": lambda: nested.nested_tensor([taeda.ones(2), taeda.ones(3)]),
    "meta": lambda: taeda.empty(2, 3, device="meta"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("read", [memoryview, taeda.Tensor.numpy, taeda.Tensor.tolist, taeda.utils.dlpack.to_dlpack])
def test_memory_is_not_read(kind, read):
    with pytest.raises((RuntimeError, TypeError, BufferError)):
        read(KINDS[kind]())


@pytest.mark.parametrize("kind", KINDS)
def test_the_core_refuses_them_where_no_rule_is_asked(kind):
    x = KINDS[kind]()
    with pytest.raises(NotImplementedError, match="needs elements in memory"):
        taeda._core.copy_tensor(taeda.empty(2, 3), x)
    with pytest.raises(NotImplementedError, match="needs elements in memory"):
        taeda._core.copy_tensor(taeda._core.strided_view(x, (), ()), taeda.ones(()))


def test_batched_tensors_are_refused_too():
    with pytest.raises(NotImplementedError, match="batched by vmap"):
        taeda.vmap(lambda x: taeda._core.copy_tensor(taeda.empty(3), x))(taeda.ones(2, 3))


def test_a_sparse_output_takes_sparse_and_dense_gradients():
    x = taeda.tensor([[0.0, 1, 2], [3, 0, 5]], requires_grad=True)
    g = taeda.arange(1.0, 7).reshape(2, 3)
    for y in (x.to_sparse(), x.to_sparse_csr()):
        for given in (g, g.to_sparse(), g.to_sparse_csr()):
            assert taeda.autograd.grad(y, x, given, retain_graph=True)[0].equal(g)


def test_a_sparse_tensor_of_values_gives_them_their_part_of_the_gradient():
    v = taeda.tensor([3.0, 4.0], requires_grad=True)
    g = taeda.tensor([[0.0, 2, 0], [7, 0, 0]])
    for given in (g, g.to_sparse(), g.to_sparse_csr()):
        y = taeda.sparse_coo_tensor([[0, 1], [1, 2]], v, (2, 3))
        assert taeda.autograd.grad(y, v, given)[0].tolist() == [2, 0]


def test_the_gradient_of_a_sparse_leaf_is_sparse():
    s = coo(True)
    (s * 2).to_dense().backward(taeda.arange(1.0, 7).reshape(2, 3))
    assert s.is_leaf and s.grad.is_sparse
    assert s.grad.to_dense().tolist() == [[0, 4, 0], [0, 0, 12]]
    (g,) = taeda.autograd.grad(taeda.sparse.mm(s, taeda.ones(3, 2)).sum(), s)
    assert g.to_dense().tolist() == [[0, 2, 0], [0, 0, 2]]
    s.grad = None
    assert s.grad is None
    c = coo().to_sparse_csr().requires_grad_()
    c.to_dense().sum().backward()
    assert c.grad.layout is taeda.sparse_csr and c.grad.values().tolist() == [1, 1]


@pytest.mark.parametrize("layout", [taeda.strided, taeda.jagged])
def test_gradients_of_nested_tensors(layout):
    a, b = taeda.ones(2, 3, requires_grad=True), taeda.ones(4, 3, requires_grad=True)
    x = nested.as_nested_tensor([a, b], layout=layout)
    g = nested.nested_tensor([taeda.ones(2, 3), taeda.full((4, 3), 2.0)], layout=layout)
    got = taeda.autograd.grad(x * 3, (a, b), g)
    assert got[0].equal(taeda.full((2, 3), 3.0)) and got[1].equal(taeda.full((4, 3), 6.0))
    leaf = nested.nested_tensor([taeda.ones(2), taeda.ones(3)], layout=layout, requires_grad=True)
    (leaf * 2).to_padded_tensor(0.0).sum().backward()
    assert leaf.grad.is_nested and [p.tolist() for p in leaf.grad.unbind()] == [[2, 2], [2, 2, 2]]
    rows = taeda.ones(2, 3, requires_grad=True)
    nested.as_nested_tensor(rows).sum().backward()
    assert rows.grad.equal(taeda.ones(2, 3))


def test_gradients_of_another_kind_are_refused():
    x = taeda.ones(2, 3, requires_grad=True)
    bad = {
        "layout": taeda.ones(2, 3).to_sparse_csr(),
        "got a nested tensor": nested.nested_tensor([taeda.ones(3), taeda.ones(3)]),
        "device cpu": taeda.ones(2, 3, device="meta"),
    }
    for match, g in bad.items():
        with pytest.raises(RuntimeError, match=match):
            (x * 2).backward(g)
    with pytest.raises(RuntimeError, match="expected layout"):
        taeda.autograd.grad(nested.as_nested_tensor(x), x, taeda.ones(2, 3))
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        taeda.autograd.grad(nested.as_nested_tensor(x), x, nested.nested_tensor([taeda.ones(3), taeda.ones(2)]))


def test_backward_on_device_meta_gives_gradients_of_the_right_form():
    x = taeda.empty(2, 3, device="meta", requires_grad=True)
    w = taeda.empty(4, 3, device="meta", requires_grad=True)
    taeda.nn.functional.linear(x, w).double().add_(1).sum().backward()
    for t in (x, w):
        assert t.grad.is_meta and t.grad.shape == t.shape and t.grad.dtype is t.dtype
    (g,) = taeda.autograd.grad((x * x).sum(), x, create_graph=True)
    assert taeda.autograd.grad(g.sum(), x)[0].shape == x.shape


def test_rules_are_for_the_kind_that_they_name():
    s, c, d = coo(), coo().to_sparse_csr(), taeda.ones(2, 3)
    n = nested.nested_tensor([d, d])
    calls = {
        "sin": lambda: taeda.sin(d, out=s),
        "sum": lambda: taeda.sum(d, s),
        "permute": lambda: taeda.permute(d, s),
        "div": lambda: 2.0 / s,
        "addmm_": lambda: taeda.Tensor.addmm_(2, d, d),
        "linear": lambda: taeda.nn.functional.linear(d, n),
        "cat": lambda: taeda.cat(n),
        "t": lambda: taeda.t(c, c),
        "where": lambda: taeda.where(n),
        "to_padded_tensor": lambda: nested.to_padded_tensor(d, 0.0),
    }
    for name, call in calls.items():
        with pytest.raises((RuntimeError, TypeError)):
            pytest.fail(f"{name} gave {call()}")
    assert c.transpose(0, 0).equal(c) and c.transpose(0, 1).shape == (3, 2)
    assert n.type() == "torch.FloatTensor"


def test_dimensions_of_nested_tensors_count_the_parts():
    n = nested.nested_tensor([taeda.ones(2, 3, 4), taeda.ones(5, 3, 4)])
    assert [x.shape for x in n.flatten(2).unbind()] == [(2, 12), (5, 12)]
    assert [x.shape for x in n.unflatten(3, (2, 2)).unbind()] == [(2, 3, 2, 2), (5, 3, 2, 2)]
    with pytest.raises(RuntimeError, match="dimension 0"):
        n.flatten()


def test_the_class_of_a_tensor_detaches_it():
    for make in KINDS.values():
        x = make()
        assert type(taeda.Tensor.detach(x)) is type(x)


def test_error_codes_of_every_example_are_read():
    A = taeda.stack([taeda.eye(3), taeda.zeros(3, 3)])
    with pytest.raises(taeda.linalg.LinAlgError, match="Batch element 1"):
        taeda.vmap(taeda.linalg.inv)(A)


def test_triangle_indices_make_no_matrix():
    assert taeda.tril_indices(1, 2**40).tolist() == [[0], [0]]
    assert taeda.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]


def test_a_dense_output_takes_a_sparse_gradient():
    x = taeda.tensor([[0.5, 1, 2], [3, 4, 5]], requires_grad=True)
    g = taeda.tensor([[0.0, 2, 0], [7, 0, 1]])
    functions = {
        "mul": lambda x: x * 2,
        "sin": taeda.sin,
        "broadcast": lambda x: x * taeda.tensor([1.0, 2, 3]),
        "expand": lambda x: x[:, :1].expand(2, 3),
        "to_dense": lambda x: x.to_sparse().to_dense(),
        "matmul": lambda x: x @ taeda.eye(3),
    }
    for name, f in functions.items():
        (got,) = taeda.autograd.grad(f(x), x, g.to_sparse())
        assert got.to_dense().allclose(taeda.autograd.grad(f(x), x, g)[0]), name


def test_in_place_views_under_vmap_change_the_whole_batch():
    x = taeda.arange(12.0).reshape(2, 2, 3)
    assert taeda.vmap(lambda v: v.clone().transpose_(0, 1) * 2)(x).equal(x.transpose(1, 2) * 2)
    y = taeda.ones(1, 3)
    with pytest.raises(RuntimeError, match="not batched"):
        taeda.vmap(lambda v: y.squeeze_(0, v))(x)


def test_a_node_is_called_with_a_gradient_for_each_output():
    node = (taeda.ones(2, requires_grad=True) * 2).grad_fn
    for wrong in ((), (3,), (taeda.ones(2), taeda.ones(2))):
        with pytest.raises(TypeError):
            node(*wrong)
    assert node(None) == (None, None) or node(None) is None
    with pytest.raises(TypeError):
        taeda.ones(2).data = None


def parted(kind, *values):
    """A tensor with parts."""
    if kind == "nested":
        return taeda.nested.nested_tensor([taeda.full((i + 1,), v) for i, v in enumerate(values)])
    dense = taeda.diag(taeda.tensor(values))
    return dense.to_sparse() if kind == "coo" else dense.to_sparse_csr()


@pytest.mark.parametrize("kind", ["coo", "csr", "nested"])
def test_data_of_a_tensor_with_parts(kind):
    t, new = parted(kind, 1.0, 2.0).requires_grad_(), parted(kind, 3.0, 4.0)
    y = (t * 1).values().sum() if kind == "nested" else t.to_dense().sum()
    t.data = new
    assert t.requires_grad and t.is_leaf and not new.requires_grad
    if kind == "nested":
        assert [x.tolist() for x in t.unbind()] == [[3], [4, 4]]
    else:
        assert t.to_dense().tolist() == [[3, 0], [0, 4]]
    y.backward()
    assert t.grad is not None
    t.data = t.data.double()
    assert t.dtype is taeda.float64 and t.requires_grad
    for other in {"coo", "csr", "nested"} - {kind}:
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            t.data = parted(other, 1.0, 2.0)
    for other in (taeda.ones(2, 2), taeda.ones(2, 2, device="meta")):
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            t.data = other
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            other.data = t


@pytest.mark.parametrize("layout", [taeda.strided, taeda.jagged])
def test_nested_tensors_are_not_written_into_dense_ones(layout):
    n = taeda.nested.nested_tensor([taeda.ones(2), taeda.ones(1)], layout=layout)
    d = taeda.zeros(2, 2)
    for write in (d.copy_, d.add_, d.mul_, lambda n: d.lerp_(n, 0.5), lambda n: taeda._foreach_copy_([d], [n])):
        with pytest.raises(RuntimeError, match="cannot be written"):
            write(n)
    assert not d.any()


def test_memory_of_a_batched_tensor_is_not_given_away():
    c = taeda.ones(3)

    def replace(v):
        with pytest.raises(RuntimeError, match="set_"):
            c.set_(v)
        with pytest.raises(RuntimeError, match="incompatible"):
            c.data = v
        with pytest.raises(RuntimeError, match="replaced"):
            v.data = c
        return v

    taeda.func.vmap(replace)(taeda.zeros(2, 3))
    assert (c + 1).tolist() == [2, 2, 2]

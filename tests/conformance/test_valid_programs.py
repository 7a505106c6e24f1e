"""Short programs that PyTorch runs: in both libraries they give the same."""

import pytest

torch = pytest.importorskip("torch")

import taeda  # noqa: E402

from .opdb.checks import close, seeded  # noqa: E402

EXPRESSIONS = """\
f.ones(2, 3).amax(dim=None)
f.amin(f.ones(2, 3), None, True)
f.empty(3, dtype=f.int8).random_(-128, None)
f.empty(3).random_(5, None)
f.empty(3, dtype=f.int64).random_(-(2**63), None)
f.asarray(f.ones(3).__dlpack__())
f.asarray(f.empty(0).untyped_storage())
f.histogramdd(f.tensor([[0.0, 1.0], [1.0, 0.0]]), [2, 2], None, f.ones(2), True)
f.linalg.vector_norm(f.ones(2, 3), axis=0)
f.linalg.vector_norm(input=f.ones(2, 3))
f.sparse_coo_tensor(size=(2, 3)).to_dense()
f.sparse_coo_tensor((2, 3)).shape
[f.ones(2).sparse_dim(), f.ones(2).dense_dim()]
f.ones(2, 3) @ f.eye(3).to_sparse()
f.ones(2, 3) @ f.eye(3).to_sparse_csr()
f.nn.functional.linear(f.ones(2, 3), f.eye(3).to_sparse())
f.nn.functional.linear(f.ones(2, 4, 3), f.eye(3).to_sparse())
f.nn.functional.linear(f.ones(2, 3), f.eye(3).to_sparse_csr())
f.bernoulli(f.ones(3), out=f.empty(3, dtype=f.int8))
f.bernoulli(f.ones(3), f.tensor(0.5))
f.nn.AdaptiveAvgPool1d(2)(f.ones(0, 3, 4))
f.nn.MaxUnpool1d(2)(f.ones(0, 3, 4), f.zeros(0, 3, 4, dtype=f.int64))
f.nn.MaxUnpool2d(2)(f.ones(0, 3, 4, 4), f.zeros(0, 3, 4, 4, dtype=f.int64))
f.ones((1,) * 64).sum(3).dim()
f.kl_div(f.ones(2, 3), f.ones(2, 3))
f.kl_div(f.ones(2, 3), f.ones(2, 3), 2)
f.ones(2, 1, 1).squeeze(1, 2)
f.hsplit(f.ones(2, 3), indices=[1])
f.norm_except_dim(f.tensor([1.0, -2.0]))
f.nuclear_norm(f.ones(2, 3, 3))
f.nn.functional.kl_div(f.ones(2, 3), f.ones(2, 3), 0)
f.nn.functional.avg_pool2d(x=f.ones(1, 4, 4), kernel_size=2)
f.logit(f.tensor([0.1, 0.9]), 1.0)
f.nn.functional.one_hot(x1=f.tensor([0, 1]))"""


@pytest.mark.parametrize("expression", EXPRESSIONS.splitlines())
def test_expression(expression):
    (want, error), (got, ours) = (seeded(eval, expression, {"f": f}) for f in (torch, taeda))
    assert error is None
    if ours is not None:
        raise ours
    close(list(got) if isinstance(got, taeda.Size) else got, list(want) if isinstance(want, torch.Size) else want)


def test_more_than_64_dimensions_are_an_error():
    for call in (lambda: taeda.ones((1,) * 65), lambda: taeda.ones((1,) * 64).unsqueeze(0)):
        with pytest.raises(RuntimeError, match="at most 64 dimensions"):
            call()


def test_flat_weights_of_a_recurrent_layer():
    def outputs(f):
        f.manual_seed(0)
        layer, x = f.nn.GRU(2, 3, bidirectional=True), f.ones(4, 1, 2)
        found = [layer(x)[0]]
        layer._flat_weights = [p * 2 for p in layer.parameters()]
        found.append(layer(x)[0])
        layer.weight_ih_l0 = f.nn.Parameter(f.ones(9, 2))
        layer._flat_weights = [p for p in layer.parameters()]
        return [*found, layer(x)[0]]

    close(outputs(taeda), outputs(torch))

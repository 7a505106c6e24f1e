"""What tensors are inside a function that ``vmap`` maps."""

import pytest

import taeda
import taeda.nn.functional as F
from taeda.func import grad, vmap


def test_no_attribute_of_a_batched_tensor_hides_a_method():
    hidden = []

    def look(v):
        hidden.extend(name for name in vars(v) if hasattr(taeda.Tensor, name))
        assert v.mode().values.shape == taeda.mode(v)[0].shape == ()
        return v.mode()[0]

    assert taeda.func.vmap(look)(taeda.tensor([[1.0, 1, 2], [3, 2, 2]])).tolist() == [1, 2]
    assert not hidden


@pytest.mark.parametrize("in_dim", [0, 1, 2])
def test_a_contiguous_example_has_the_strides_of_one(in_dim):
    x = taeda.arange(24.0).view(2, 3, 4)

    def function(v):
        w = v.mT.contiguous()
        assert w.is_contiguous() and w.stride() == v.mT.clone(memory_format=taeda.contiguous_format).stride()
        assert w.stride() == (w.shape[1], 1)
        return w.as_strided((3,), (1,))

    made = vmap(function, in_dims=in_dim)(x)
    assert made.tolist() == [v.mT.reshape(-1)[:3].tolist() for v in x.unbind(in_dim)]


def test_alignment_losses_of_examples_that_share_their_lengths():
    x = taeda.arange(48.0).view(3, 4, 4).sin()
    targets, steps, lengths = taeda.tensor([[1]]), taeda.tensor([4]), taeda.tensor([1])

    def loss(v):
        return F.ctc_loss(v[:, None].log_softmax(2), targets, steps, lengths)

    assert vmap(loss)(x).tolist() == pytest.approx([loss(v).item() for v in x])
    assert taeda.allclose(vmap(grad(loss))(x), taeda.stack([grad(loss)(v) for v in x]))


def test_the_same_numbers_in_all_chunks():
    taeda.manual_seed(0)
    made = vmap(lambda x: x + taeda.rand(2), randomness="same", chunk_size=2)(taeda.zeros(5, 2))
    taeda.manual_seed(0)
    assert taeda.equal(made, taeda.rand(2).expand(5, 2))


@pytest.mark.parametrize("inner", ["same", "different"])
def test_numbers_that_differ_for_the_examples_of_two_vmaps(inner):
    taeda.manual_seed(0)
    twice = vmap(vmap(lambda x: x + taeda.rand(2), randomness=inner), randomness="different")
    made = twice(taeda.zeros(2, 3, 2))
    taeda.manual_seed(0)
    expected = taeda.rand(2, 3 if inner == "different" else 1, 2)
    assert taeda.equal(made, expected.expand(2, 3, 2))


def test_distributions_check_what_all_examples_are_given():
    D = taeda.distributions
    x = taeda.tensor([0.5, 2.0])
    for function in (
        lambda s: D.Normal(0.0, s).log_prob(s),
        lambda s: D.Exponential(s).log_prob(s),
        lambda s: D.Categorical(logits=s.expand(3)).entropy(),
        lambda s: D.MultivariateNormal(taeda.zeros(2), s * taeda.eye(2)).log_prob(taeda.zeros(2)),
        lambda s: D.Dirichlet(s.expand(2)).entropy(),
    ):
        assert vmap(function)(x).tolist() == pytest.approx([function(s).item() for s in x])
    with pytest.raises(ValueError, match="scale"):
        vmap(lambda s: D.Normal(0.0, s).log_prob(s))(-x)
    with pytest.raises(ValueError, match="support"):
        vmap(vmap(lambda s: D.Exponential(1.0).log_prob(s)))(-x[:, None])
    taeda.manual_seed(0)
    drawn = vmap(lambda s: D.Categorical(logits=s).sample(), randomness="different")(taeda.zeros(50, 4))
    assert drawn.unique().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["median", "nanmedian", "max", "min", "amax", "prod", "norm", "std"])
def test_gradients_of_whole_examples_with_equal_numbers(name):
    x = taeda.tensor([[1.0, 2, 2, 3, 0], [5, 5, 5, 5, 5.5], [0, 0, 3, 3, 3]])
    function = getattr(taeda, name)
    expected = taeda.stack([grad(function)(v) for v in x])
    assert taeda.allclose(vmap(grad(function))(x), expected)
    assert taeda.allclose(vmap(grad(function), in_dims=1)(x.T), expected)
    assert taeda.allclose(grad(lambda x: vmap(function)(x).sum())(x), expected)
    assert taeda.allclose(vmap(function)(x), taeda.stack([function(v) for v in x]))


@pytest.mark.parametrize("chunk_size", [None, 1])
def test_keyword_arguments_are_the_same_for_every_example(chunk_size):
    x = taeda.arange(6.0).view(2, 3)
    assert vmap(taeda.add, chunk_size=chunk_size)(x, x, alpha=2).equal(x * 3)
    assert vmap(lambda a, *, b: a + b.sum(), chunk_size=chunk_size)(x, b=x).equal(x + 15)
    assert vmap(taeda.div, chunk_size=chunk_size)(x, x + 1, rounding_mode="trunc").equal(taeda.zeros(2, 3))
    with pytest.raises(ValueError, match="no inputs"):
        vmap(lambda *, a: a, chunk_size=chunk_size)(a=x)


def test_results_that_are_no_tensors_where_out_dims_is_none():
    x = taeda.arange(6.0).view(2, 3)
    total, number = vmap(lambda a: (a.sum(), "word"), out_dims=(0, None))(x)
    assert (total.tolist(), number) == ([3.0, 12.0], "word")
    assert vmap(lambda a: None, out_dims=None)(x) is None
    with pytest.raises(ValueError, match="must only return Tensors"):
        vmap(lambda a: (a.sum(), 3))(x)


def test_what_has_other_sizes_in_memory_is_not_resized():
    with pytest.raises(RuntimeError, match="not for a tensor batched by vmap"):
        taeda.vmap(lambda v: v.clone().resize_(2))(taeda.ones(2, 3))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("mm", [(3, 4, 5), (5, 4)]), ("mm", [(4,), (4,)]), ("mv", [(3, 4), (4, 1)]), ("bmm", [(3, 4), (4, 1)]),
        ("addmm", [(3,), (3,), (3, 3)]), ("baddbmm", [(3, 3), (3, 3), (3, 3)]),
    ],
)  # fmt: skip
def test_products_of_examples_with_other_dimensions_are_errors(name, shapes):
    with pytest.raises(RuntimeError, match="do not fit"):
        vmap(getattr(taeda, name))(*[taeda.ones(2, *shape) for shape in shapes])


def test_linear_takes_a_matrix_of_each_example():
    x, linear = taeda.ones(2, 4, 3), taeda.nn.functional.linear
    assert vmap(linear)(x, taeda.ones(2, 5, 3)).shape == (2, 4, 5)
    with pytest.raises(RuntimeError, match="1 or 2 dimensions"):
        vmap(linear)(x, taeda.ones(2, 4, 5, 3))


@pytest.mark.parametrize("in_dims", [(0, 0), (None, 0)])
def test_the_same_numbers_written_by_a_batched_probability_are_refused(in_dims):
    with pytest.raises(RuntimeError, match="same randomness"):
        vmap(lambda x, p: x.bernoulli_(p), in_dims, randomness="same")(taeda.zeros(3, 3), taeda.full((3, 3), 0.5))

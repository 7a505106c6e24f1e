"""What tensors are inside a function that ``vmap`` maps."""

import pytest

import taeda
from taeda.func import vmap


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

"""What tensors are inside a function that ``vmap`` maps."""

import taeda


def test_no_attribute_of_a_batched_tensor_hides_a_method():
    hidden = []

    def look(v):
        hidden.extend(name for name in vars(v) if hasattr(taeda.Tensor, name))
        assert v.mode().values.shape == taeda.mode(v)[0].shape == ()
        return v.mode()[0]

    assert taeda.func.vmap(look)(taeda.tensor([[1.0, 1, 2], [3, 2, 2]])).tolist() == [1, 2]
    assert not hidden

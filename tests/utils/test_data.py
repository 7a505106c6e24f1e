"""DataLoader without PyTorch: fast paths give what sample-by-sample loading gives; errors; warnings."""

import pytest

import taeda
from taeda.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, TensorDataset, default_collate


class Slow(Dataset):
    """The same samples as a TensorDataset, without its type."""

    def __init__(self, inner):
        self.inner = inner

    def __getitem__(self, index):
        return self.inner[index]

    def __len__(self):
        return len(self.inner)


def tensors(n=50):
    return taeda.rand(n, 3), taeda.arange(n), taeda.rand(n, 2, 2).transpose(1, 2), taeda.rand(n) > 0.5


def values(batches):
    return [[(t.dtype, tuple(t.shape), t.tolist()) for t in batch] for batch in batches]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("batch_size", [1, 7, 50, 64])
def test_gathering_equals_collating(shuffle, batch_size):
    data = TensorDataset(*tensors())
    for dataset in (data, Subset(data, [3, -1, 4, 1, -5, 9] * 3)):
        found = []
        for d in (dataset, Slow(dataset)):
            taeda.manual_seed(1)
            found.append(values(DataLoader(d, batch_size, shuffle)))
        assert found[0] == found[1]


def test_negative_and_missing_indices():
    data = TensorDataset(taeda.arange(5))
    batches = list(DataLoader(data, 3, sampler=[-1, 0, -5]))
    assert batches[0][0].tolist() == [4, 0, 0]
    with pytest.raises(IndexError):
        list(DataLoader(data, 2, sampler=[1, 5]))
    with pytest.raises(IndexError):
        list(DataLoader(data, 2, sampler=[1, -6]))


def test_gathered_batches_are_differentiable():
    x = taeda.rand(4, requires_grad=True)
    for (batch,) in DataLoader(TensorDataset(x), 3):
        batch.sum().backward()
    assert x.grad.tolist() == [1.0] * 4


def test_subclasses_of_tensor_dataset_are_asked():
    class Doubled(TensorDataset):
        def __getitem__(self, index):
            return tuple(2 * t for t in super().__getitem__(index))

    assert next(iter(DataLoader(Doubled(taeda.arange(4)), 4)))[0].tolist() == [0, 2, 4, 6]


def test_an_iterable_that_gives_more_than_it_promised():
    class Liar(IterableDataset):
        def __iter__(self):
            return iter(range(5))

        def __len__(self):
            return 3

    loader = DataLoader(Liar())
    assert len(loader) == 3
    with pytest.warns(UserWarning, match="reported to be 3") as caught:
        assert len(list(loader)) == 5
    assert len(caught) == 2  # for each that is too many


def test_base_classes_say_what_to_define():
    with pytest.raises(NotImplementedError, match="define __getitem__"):
        Dataset()[0]
    with pytest.raises(TypeError, match="found <class 'object'>"):
        default_collate([object()])
    assert ConcatDataset([[1, 2], [3]])[-1] == 3
    with pytest.raises(ValueError, match="should not exceed"):
        ConcatDataset([[1, 2], [3]])[-4]

"""Datasets, samplers and DataLoader against PyTorch's: the same batches in the same order, the same types."""

import collections

import numpy as np
import pytest

import taeda
import taeda.utils.data

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.data")

BOTH = [taeda, torch]


def plain(x):
    """Tensors as ("tensor", dtype, list), containers by type name: comparable between the two libraries."""
    if isinstance(x, (taeda.Tensor, torch.Tensor)):
        return "tensor", str(x.dtype).split(".")[1], x.tolist()
    if isinstance(x, dict):
        return type(x).__name__, {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [plain(v) for v in x]
    return x


def both(make):
    """``make(library)`` for each library, from equal seeds: results and the states of the generators afterwards."""
    found = []
    for f in BOTH:
        f.manual_seed(11)
        found.append((plain(make(f)), f.get_rng_state().numpy().tobytes()))
    assert found[0][0] == found[1][0]
    assert found[0][1] == found[1][1]
    return found[0][0]


def dataset(f, n=23):
    x = f.tensor(np.arange(n * 3.0).reshape(n, 3))
    return f.utils.data.TensorDataset(x, f.tensor(list(range(n))), x[:, 0] > 5)


OPTIONS = [
    {},
    {"batch_size": 4},
    {"batch_size": 4, "drop_last": True},
    {"batch_size": 4, "shuffle": True},
    {"batch_size": 23, "shuffle": True},
    {"batch_size": None},
    {"batch_size": None, "shuffle": True},
    {"batch_size": 5, "collate_fn": len},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_loader_over_tensors(options):
    both(lambda f: [list(f.utils.data.DataLoader(dataset(f), **options)) for _ in range(2)])


def test_two_passes_and_a_generator():
    def make(f):
        g = f.Generator().manual_seed(5)
        loader = f.utils.data.DataLoader(dataset(f), 4, True, generator=g)
        return [list(loader), list(loader), f.rand(2).tolist(), g.initial_seed(), len(loader)]

    both(make)


def test_interleaved_iterators():
    def make(f):
        loader = f.utils.data.DataLoader(dataset(f), 4, True)
        a, b = iter(loader), iter(loader)
        return [next(a), next(b), next(a), next(b)]

    both(make)


def samplers(f):
    d = f.utils.data
    n = range(37)
    yield d.SequentialSampler(n)
    yield d.RandomSampler(n)
    yield d.RandomSampler(n, True)
    yield d.RandomSampler(n, True, 100)
    yield d.RandomSampler(n, num_samples=80)
    yield d.RandomSampler(n, generator=f.Generator().manual_seed(3))
    yield d.SubsetRandomSampler([5, 3, 9, 1])
    yield d.WeightedRandomSampler([0.1, 0.5, 3.0, 0.0, 2], 40)
    yield d.WeightedRandomSampler([0.1, 0.5, 3.0, 0.0, 2], 4, False)
    yield d.BatchSampler(d.RandomSampler(n), 5, False)
    yield d.BatchSampler(d.SequentialSampler(n), 5, True)
    for rank in range(3):
        yield d.DistributedSampler(n, 3, rank, seed=4)
        yield d.DistributedSampler(n, 3, rank, shuffle=False, drop_last=True)


def test_samplers():
    both(lambda f: [[list(s), len(s)] for s in samplers(f)])


@pytest.mark.parametrize("lengths", [[10, 13], [23], [0.5, 0.5], [0.3, 0.3, 0.4], [1.0]])
def test_random_split(lengths):
    both(lambda f: [list(s.indices) for s in f.utils.data.random_split(dataset(f), lengths)])
    both(lambda f: list(f.utils.data.DataLoader(f.utils.data.random_split(dataset(f), lengths)[0], 4, True)))


def test_combined_datasets():
    def make(f):
        d = f.utils.data
        a, b = dataset(f, 5), dataset(f, 7)
        joined = a + b
        subset = d.Subset(joined, [3, 8, 1, 11])
        stack = d.StackDataset(a=a, b=d.Subset(b, range(5)))
        loader = d.DataLoader
        return [
            len(joined), joined[-1], joined[6], list(loader(joined, 5)), list(loader(subset, 3, True)), stack[2],
            list(loader(stack, 2)), list(loader(d.StackDataset(a, a), 3)), subset[1],
        ]  # fmt: skip

    both(make)


def test_iterable_datasets():
    def make(f):
        class Count(f.utils.data.IterableDataset):
            def __init__(self, n):
                self.n = n

            def __iter__(self):
                return iter(range(self.n))

        d = f.utils.data
        chain = Count(5) + Count(3)
        return [list(d.DataLoader(c, **o)) for c in (Count(7), chain) for o in ({}, {"batch_size": 3},
                {"batch_size": 3, "drop_last": True}, {"batch_size": None})]  # fmt: skip

    both(make)


Point = collections.namedtuple("Point", "x y")

SAMPLES = {
    "ints": lambda f: [1, 2, 3],
    "bools": lambda f: [True, False],
    "floats": lambda f: [1.5, 2.5],
    "strings": lambda f: ["a", "b"],
    "bytes": lambda f: [b"a", b"b"],
    "tensors": lambda f: [f.tensor([1.0, 2]), f.tensor([3.0, 4])],
    "arrays": lambda f: [np.array([1, 2]), np.array([3, 4])],
    "numpy scalars": lambda f: [np.float32(1), np.float32(2)],
    "float64 scalars": lambda f: [np.float64(1), np.float64(2)],
    "0-d arrays": lambda f: [np.array(1), np.array(2)],
    "tuples": lambda f: [(1, 2.0), (3, 4.0)],
    "lists": lambda f: [[1, "a"], [3, "b"]],
    "dicts": lambda f: [{"a": 1, "b": [1.0]}, {"a": 2, "b": [2.0]}],
    "ordered dicts": lambda f: [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    "namedtuples": lambda f: [Point(1, f.tensor(2.0)), Point(3, f.tensor(4.0))],
    "nested": lambda f: [{"a": (1, {"b": f.tensor([1])})}, {"a": (2, {"b": f.tensor([2])})}],
    "empty lists": lambda f: [[], []],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_default_collate(name):
    both(lambda f: f.utils.data.default_collate(SAMPLES[name](f)))
    both(lambda f: f.utils.data.default_convert(SAMPLES[name](f)))


ERRORS = [
    "d.DataLoader(x, sampler=[1], shuffle=True)",
    "d.DataLoader(x, batch_sampler=[[1]], batch_size=2)",
    "d.DataLoader(x, batch_size=None, drop_last=True)",
    "d.DataLoader(x, batch_size=0)",
    "d.DataLoader(x, num_workers=-1)",
    "d.DataLoader(x, timeout=-1)",
    "d.DataLoader(x, prefetch_factor=2)",
    "d.DataLoader(x, persistent_workers=True)",
    "d.DataLoader(d.ChainDataset([]), shuffle=True)",
    "d.DataLoader(d.ChainDataset([]), sampler=[1])",
    "d.DataLoader(d.TensorDataset(f.tensor([])), shuffle=True)",
    "d.RandomSampler(x, num_samples=0)",
    "d.RandomSampler(x, replacement=1)",
    "d.BatchSampler(x, 2, 0)",
    "d.WeightedRandomSampler([1.0], 0)",
    "d.random_split(x, [1, 2])",
    "d.random_split(x, [1.5, -0.5])",
    "d.TensorDataset(f.tensor([1]), f.tensor([1, 2]))",
    "d.ConcatDataset([])",
    "d.StackDataset()",
    "d.default_collate([object()])",
    "d.default_collate([[1], [1, 2]])",
    "d.default_collate([f.tensor([1]), f.tensor([1, 2])])",
    "d.default_collate([np.array(['a']), np.array(['b'])])",
    "list(d.DataLoader(x, 2, sampler=[0, 99]))",
    "d.DistributedSampler(x, 2, 2)",
]


@pytest.mark.parametrize("call", ERRORS)
def test_errors_have_the_same_type(call):
    raised = []
    for f in BOTH:
        with pytest.raises(Exception) as info:
            eval(call, {"f": f, "d": f.utils.data, "x": dataset(f), "np": np})
        raised.append(info.type)
    assert raised[0] is raised[1]


def test_collating_with_functions_of_ones_own():
    def make(f):
        collate = __import__(f"{f.__name__}.utils.data._utils.collate", fromlist=["x"])

        def total(batch, *, collate_fn_map=None):
            return sum(batch)

        own = {int: total, **collate.default_collate_fn_map, (set, frozenset): lambda b, *, collate_fn_map: len(b)}
        own[int] = total
        samples = [(1, {"a": f.tensor([1.0])}, {1}, np.arange(2)), (2, {"a": f.tensor([2.0])}, {2}, np.arange(2))]
        return collate.collate(samples, collate_fn_map=own)

    both(make)


def test_kinds_of_switches():
    both(lambda f: list(f.utils.data.DataLoader(dataset(f), 4, shuffle=1)))
    both(lambda f: list(f.utils.data.DataLoader(dataset(f), 4, shuffle="")))
    for f in (torch, taeda):
        with pytest.raises(ValueError, match="replacement should be a boolean"):
            f.utils.data.WeightedRandomSampler([1.0], 1, 3)
        with pytest.raises(TypeError, match="replacement should be a boolean"):
            f.utils.data.RandomSampler([1.0], 3)

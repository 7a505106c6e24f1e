"""DataLoader with worker processes against PyTorch's: the same batches in the same order, the same random streams."""

import collections
import random
import time

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

from .test_data import BOTH, both, dataset  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

Point = collections.namedtuple("Point", "x y")


def noisy(f):
    """A dataset whose samples show every random stream of the worker."""

    class Noisy(f.utils.data.Dataset):
        def __len__(self):
            return 11

        def __getitem__(self, i):
            info = f.utils.data.get_worker_info()
            return {
                "i": i,
                "own": f.rand(2),
                "numpy": np.random.rand(3),
                "python": random.random(),
                "worker": (info.id, info.num_workers, info.seed) if info else (),
                "threads": f.get_num_threads() if info else 1,
                "point": Point(f.tensor([i]), str(i)),
            }

    return Noisy()


def streams(f, sharded):
    class Stream(f.utils.data.IterableDataset):
        def __iter__(self):
            info = f.utils.data.get_worker_info()
            if info is None or not sharded:
                return iter(range(7))
            return iter(range(info.id, 13, info.num_workers))

    return Stream()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_order_and_streams(workers):
    def make(f):
        loader = f.utils.data.DataLoader(noisy(f), 2, True, num_workers=workers)
        return [list(loader), list(loader), f.rand(2)]

    both(make)


OPTIONS = [
    {"batch_size": 4, "shuffle": True, "generator": True},
    {"batch_size": 4, "drop_last": True, "prefetch_factor": 1},
    {"batch_size": None, "shuffle": True, "prefetch_factor": 5},
    {"batch_sampler": [[3, 1], [2], [0, 5, 9], [1, 1]]},
    {"sampler": [5, 3, 1, 0, 22]},
    {"batch_size": 5, "collate_fn": len},
    {"batch_size": 4, "in_order": False, "workers": 1},
    {"batch_size": 3, "timeout": 200},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_options(options):
    def make(f):
        given = dict(options)
        if given.get("generator"):
            given["generator"] = f.Generator().manual_seed(3)
        loader = f.utils.data.DataLoader(dataset(f), num_workers=given.pop("workers", 2), **given)
        return [list(loader), len(loader), f.rand(2)]

    both(make)


@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
@pytest.mark.parametrize("sharded", [False, True])
def test_streams(options, sharded):
    both(lambda f: list(f.utils.data.DataLoader(streams(f, sharded), num_workers=2, **options)))


def test_samplers_are_read_ahead_alike():
    """A sampler that draws from the global generator as it goes: the loader must ask for indices at the same moments."""

    def make(f):
        class Drawing(f.utils.data.Sampler):
            def __init__(self):
                pass

            def __iter__(self):
                for _ in range(9):
                    yield int(f.randint(0, 23, (1,)))

        seen = []
        for batch in f.utils.data.DataLoader(dataset(f), 2, sampler=Drawing(), num_workers=2):
            seen += [batch, f.rand(1)]
        return seen

    both(make)


def test_persistent_workers_keep_their_streams():
    def make(f):
        seen = []
        for d in (noisy(f), streams(f, True)):
            loader = f.utils.data.DataLoader(d, 3, num_workers=2, persistent_workers=True)
            seen += [list(loader), list(loader)]
            first = next(iter(loader))
            seen += [first, list(loader), f.rand(1)]
            del loader
        return seen

    both(make)


def set_seed(worker):
    np.random.seed(worker)


def test_worker_init_fn():
    def make(f):
        return list(f.utils.data.DataLoader(noisy(f), 4, num_workers=2, worker_init_fn=set_seed))

    both(make)


class Failing:
    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 4

    def __getitem__(self, i):
        if i == 2:
            raise self.error
        return i


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("k"), TwoArguments(1, 2), IndexError(), StopIteration()])
def test_errors_in_workers(error):
    seen = []
    for f in BOTH:
        iterator = iter(f.utils.data.DataLoader(Failing(error), 1, num_workers=2))
        got = []
        for _ in range(4):
            try:
                got.append(next(iterator).tolist())
            except Exception as caught:
                lines = str(caught).splitlines()
                got.append((type(caught), lines[0], "Traceback" in lines[1], "raise self.error" in str(caught)))
        with pytest.raises(StopIteration):
            next(iterator)
        seen.append(got)
    assert seen[0] == seen[1]


ERRORS = [
    "d.DataLoader(x, multiprocessing_context='fork')",
    "d.DataLoader(x, num_workers=1, multiprocessing_context='other')",
    "d.DataLoader(x, num_workers=1, multiprocessing_context=3)",
    "setattr(d.DataLoader(x), 'batch_size', 2)",
    "setattr(d.DataLoader(x), 'dataset', 2)",
    "next(iter(d.DataLoader(x, timeout=3)))",
    "__import__('pickle').dumps(iter(d.DataLoader(x)))",
]


@pytest.mark.parametrize("call", ERRORS)
def test_errors_have_the_same_type(call):
    raised = []
    for f in BOTH:
        with pytest.raises(Exception) as info:
            eval(call, {"f": f, "d": f.utils.data, "x": dataset(f)})
        raised.append(info.type)
    assert raised[0] is raised[1]


def test_batches_as_they_come():
    """Without ``in_order`` a slow batch does not hold the others up; each comes once."""
    go = taeda.tensor(False).share_memory_()

    class Slow(taeda.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            while i == 0 and not go.item():
                time.sleep(0.01)
            return i

    loader = taeda.utils.data.DataLoader(Slow(), 2, num_workers=2, in_order=False)
    iterator = iter(loader)
    first = next(iterator)
    go.fill_(True)
    batches = [tuple(b.tolist()) for b in (first, *iterator)]
    assert batches[0] != (0, 1)
    assert sorted(batches) == [(0, 1), (2, 3), (4, 5), (6, 7)]


def test_sharding_by_worker_init_fn():
    """The dataset that get_worker_info() gives is the one that is iterated."""

    def make(f):
        class Range(f.utils.data.IterableDataset):
            def __init__(self, start, end):
                self.start, self.end = start, end

            def __iter__(self):
                return iter(range(self.start, self.end))

        def share(worker):
            info = f.utils.data.get_worker_info()
            middle = (info.dataset.start + info.dataset.end) // 2
            if info.id == 0:
                info.dataset.end = middle
            else:
                info.dataset.start = middle

        return list(f.utils.data.DataLoader(Range(3, 10), 2, num_workers=2, worker_init_fn=share))

    both(make)


def test_private_names_that_other_libraries_use():
    for f in BOTH:
        module = f.utils.data.dataloader
        iterator = iter(f.utils.data.DataLoader(dataset(f), 4, num_workers=1))
        assert isinstance(iterator, module._MultiProcessingDataLoaderIter)
        assert isinstance(iterator, module._BaseDataLoaderIter)
        assert len(list(iterator)) == 6
        assert f.utils.data._DatasetKind.Map == 0
        loader = f.utils.data.DataLoader(dataset(f), 4)
        assert loader._auto_collation and loader._index_sampler is loader.batch_sampler

"""Data pipes against PyTorch's: samples, orders, lengths, warnings and errors."""

import copy
import pickle
import warnings

import pytest

import taeda
import taeda.utils.data.datapipes.iter
import taeda.utils.data.graph_settings

torch = pytest.importorskip("torch")
pipes = pytest.importorskip("torch.utils.data.datapipes")
pytest.importorskip("torch.utils.data.graph_settings")


def even(x):
    return x % 2 == 0


def square(x):
    return x * x


def third(x):
    return x % 3 if x % 3 < 2 else None


def add(x, y):
    return x + y


def plain(x):
    if isinstance(x, (taeda.Tensor, torch.Tensor)):
        return x.tolist()
    return [plain(y) for y in x] if isinstance(x, list) else x


def both(make):
    """What ``make(library, source of 20 numbers)`` gives or raises, and warns of, in each library, is the same."""
    found = []
    for f in (taeda, torch):
        f.manual_seed(7)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = plain(make(f, f.utils.data.datapipes.iter.IterableWrapper(range(20))))
            except Exception as error:
                result = type(error).__name__
        found.append((result, [w.category for w in caught]))
    assert found[0] == found[1]
    return found[0][0]


def own(f):
    """A pipe with ``__next__``."""

    class Own(f.utils.data.IterDataPipe):
        def __init__(self, n):
            self.n = n

        def reset(self):
            self.i = 0

        def __next__(self):
            if self.i == self.n:
                raise StopIteration
            self.i += 1
            return self.i

    return Own(3)


def invalidated(f, source):
    first = iter(source)
    next(first)
    second = iter(source)
    assert next(second) == 0
    next(first)


def restarted(f, source):
    a, b = source.fork(2)
    first = iter(a)
    found = [next(first), next(iter(b))]
    return found + list(a)


def graph(f, source):
    x, y = source.map(square).fork(2)
    settings = f.utils.data.graph_settings
    found = settings.get_all_graph_pipes(f.utils.data.graph.traverse_dps(x.zip(y).shuffle()))
    return [type(pipe).__name__ for pipe in found]


def columns(f, data, *args, **kwargs):
    return list(f.utils.data.datapipes.iter.IterableWrapper([data]).map(*args, **kwargs))


CHAINS = {
    "map": lambda f, s: list(s.map(square)),
    "map_not_callable": lambda f, s: list(s.map(3)),
    "map_lambda": lambda f, s: list(s.map(lambda x: 1 // (x - 3))),
    "columns": lambda f, s: columns(f, (1, 2, 3), add, input_col=[0, 2]),
    "columns_list": lambda f, s: columns(f, [1, 2, 3], square, input_col=1, output_col=-1),
    "columns_dict": lambda f, s: columns(f, {"a": 2}, square, input_col="a", output_col="b"),
    "columns_many": lambda f, s: columns(f, {"a": 2}, square, input_col=["a", "b"]),
    "columns_output_alone": lambda f, s: columns(f, {"a": 2}, square, output_col="b"),
    "collate": lambda f, s: list(s.batch(3).collate()),
    "filter": lambda f, s: list(s.filter(even)),
    "filter_no_bool": lambda f, s: list(s.filter(square)),
    "filter_length": lambda f, s: len(s.filter(even)),
    "batch": lambda f, s: [list(s.batch(3)), len(s.batch(3)), len(s.batch(3, drop_last=True))],
    "batch_of_none": lambda f, s: list(s.batch(0)),
    "unbatch": lambda f, s: list(s.batch(3, drop_last=True).unbatch()),
    "unbatch_all": lambda f, s: list(s.batch(2).batch(2).unbatch(unbatch_level=-1)),
    "unbatch_too_deep": lambda f, s: list(s.unbatch()),
    "groupby": lambda f, s: list(s.groupby(third)),
    "groupby_key": lambda f, s: list(s.groupby(even, group_size=2, buffer_size=4, keep_key=True)),
    "groupby_full": lambda f, s: list(s.groupby(square, group_size=3, buffer_size=3)),
    "groupby_drop": lambda f, s: list(
        s.groupby(third, group_size=3, buffer_size=3, guaranteed_group_size=2, drop_remaining=True)
    ),
    "shuffle": lambda f, s: [list(s.shuffle()), list(s.shuffle(buffer_size=3).set_seed(5))],
    "shuffle_off": lambda f, s: list(s.shuffle().set_shuffle(False)),
    "sampler": lambda f, s: list(f.utils.data.datapipes.iter.Sampler(s)),
    "concat": lambda f, s: [list(s.concat(s.batch(2))), len(s.concat(s))],
    "zip": lambda f, s: list(s.zip(f.utils.data.datapipes.iter.IterableWrapper("ab"))),
    "mux": lambda f, s: list(s.mux(f.utils.data.datapipes.iter.IterableWrapper("ab"))),
    "fork": lambda f, s: [list(pipe) for pipe in s.fork(3)],
    "fork_zip": lambda f, s: list((lambda a, b: a.zip(b))(*s.fork(2))),
    "fork_full": lambda f, s: [list(pipe) for pipe in s.fork(2, buffer_size=3)],
    "fork_restarted": restarted,
    "demux": lambda f, s: [list(pipe) for pipe in s.demux(2, even)],
    "demux_none": lambda f, s: [list(pipe) for pipe in s.demux(2, third, drop_none=True)],
    "demux_full": lambda f, s: [list(pipe) for pipe in s.demux(2, third, drop_none=True, buffer_size=2)],
    "demux_outside": lambda f, s: [list(pipe) for pipe in s.demux(2, square)],
    "invalidated": invalidated,
    "own": lambda f, s: [list(own(f)), list(own(f).batch(2))],
    "unknown": lambda f, s: s.nothing,
    "taken": lambda f, s: f.utils.data.functional_datapipe("map")(type(s)),
    "pickle": lambda f, s: list(pickle.loads(pickle.dumps(s.map(square).batch(2)))),
    "pickle_fork": lambda f, s: list(pickle.loads(pickle.dumps(s.fork(2)[0]))),
    "deepcopy": lambda f, s: list(copy.deepcopy(s.filter(even))),
    "graph": graph,
    "sharding": lambda f, s: list(f.utils.data.graph_settings.apply_sharding(s.sharding_filter().map(square), 3, 1)),
    "sharding_twice": lambda f, s: f.utils.data.graph_settings.apply_sharding(
        s.sharding_filter().sharding_filter(), 3, 1
    ),
    "iterator": lambda f, s: list(f.utils.data.datapipes.iter.IterableWrapper(x for x in range(3))),
    "files": lambda f, s: list(f.utils.data.datapipes.iter.FileLister(__file__).open_files("b").read_from_stream(1000)),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_chains(name):
    both(CHAINS[name])


MAPS = {
    "map": lambda m: [*m.map(square)],
    "batch": lambda m: [[*m.batch(2)], len(m.batch(2, drop_last=True))],
    "concat": lambda m: [m.concat(m)[9], len(m.concat(m))],
    "zip": lambda m: [m.zip(m)[2], len(m.zip(m))],
    "zip_outside": lambda m: m.zip(m)[20],
    "shuffle": lambda m: [list(m.shuffle()), list(m.shuffle().set_seed(3))],
}


@pytest.mark.parametrize("name", MAPS)
def test_maps(name):
    both(lambda f, s: MAPS[name](f.utils.data.datapipes.map.SequenceWrapper(list(range(7)))))


LOADERS = {
    "plain": (lambda s: s.shuffle().map(square), {"batch_size": 4}),
    "length": (lambda s: s.map(square), {"batch_size": 3}),
    "not_shuffled": (lambda s: s.shuffle().map(square), {"batch_size": 4, "shuffle": False}),
    "workers": (lambda s: s.shuffle().sharding_filter().map(square), {"batch_size": 4, "num_workers": 2}),
    "kept_workers": (
        lambda s: s.shuffle().sharding_filter(), {"batch_size": 4, "num_workers": 2, "persistent_workers": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOADERS)
def test_loaders(name):
    def load(f, source):
        chain, options = LOADERS[name]
        loader = f.utils.data.DataLoader(chain(source), **options)
        passes = [[batch for batch in loader] for _ in range(2)]
        return [*passes, list(f.empty(3).random_()), len(loader)]

    assert isinstance(both(load), list)


def test_shuffling_loader_adds_a_pipe():
    source = taeda.utils.data.datapipes.iter.IterableWrapper(range(20))
    with pytest.warns(UserWarning, match="Adding one at the end"):
        loader = taeda.utils.data.DataLoader(source, batch_size=None, shuffle=True)
    found = list(loader)
    assert found != sorted(found) and sorted(found) == list(range(20))

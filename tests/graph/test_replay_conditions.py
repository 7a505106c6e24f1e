"""Static replay: when calls are replayed and when they run: what is refused, and what may change between calls."""

import copy
import functools
import random
import re
import threading
from collections import OrderedDict, defaultdict, deque

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda.graph.replay import Static
from taeda.nn import functional as F

from .replayed import Twins, adam, assert_same, cnn, mlp, numbers, training


def test_item_is_refused_with_its_line():
    def step(x):
        total = (x * x).sum()
        return x / total.item()

    static = Static(step)
    line = step.__code__.co_firstlineno + 2
    for i in range(5):
        x = taeda.full((2,), i + 1.0)
        assert_same(static(x), step(x))
    assert static.refusals == [f"a number is read from a tensor, at {__file__}:{line}"]


@pytest.mark.parametrize("read", [
    lambda x: x * (2.0 if x.sum() > 0 else 3.0), lambda x: x * x.tolist()[0], lambda x: x * float(x.numpy()[0]),
    lambda x: taeda.tensor(memoryview(x).tolist()), lambda x: x[x > 0], lambda x: taeda.from_numpy(x.numpy() * 2),
    lambda x: taeda.linalg.eigvals(taeda.outer(x, x)), lambda x: taeda.fft.fft(x),
    lambda x: x * taeda.rand(2, generator=taeda.Generator()), lambda x: x + x.data_ptr() * 0,
    lambda x: x * x.untyped_storage()[0],
])  # fmt: skip
def test_what_reads_elements_is_refused(read):
    static = Static(read)
    for i in range(5):
        x = taeda.tensor([i - 2.0, 1.0])
        assert_same(static(x), read(x))
    assert len(static.refusals) == 1
    assert f"{__file__}:" in static.refusals[0]


def test_fullgraph():
    static = Static(lambda x: x * x.sum().item(), fullgraph=True)
    static(taeda.ones(2))
    with pytest.raises(RuntimeError, match=rf"a number is read from a tensor, at {re.escape(__file__)}:\d+"):
        static(taeda.ones(2))


def test_control_flow_that_depends_on_data():
    class Switch(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.a(x) if x.sum() > 0 else self.b(x)

    model = Switch()
    static = Static(model)
    with taeda.no_grad():
        for i in range(8):
            x = taeda.full((2, 3), (-1.0) ** (i // 2))
            assert_same(static(x), model(x))
    assert "a number is read" in static.refusals[0]


def test_numbers_of_python_that_change():
    twins = Twins(lambda: Counter())
    for _ in range(14):
        twins.call(taeda.ones(3))
    assert twins.replays == []
    assert twins.step.refusals == ["a call changes 'count'"]


class Counter:
    """Its step counts."""

    def __init__(self):
        self.count = 0

    def step(self, x):
        self.count += 1
        return x * self.count


def test_attributes_that_others_change_and_put_back():
    class Program:
        def __init__(self):
            self.model = nn.Linear(4, 4)

        def step(self, x):
            return self.model(x).detach()

    program = Program()
    step, x = Static(program.step), taeda.ones(2, 4)
    for _ in range(4):
        step(x)
    (form,) = step._forms.values()
    calls = form.calls
    for name, owner in (("training", program.model), ("model", program)):
        before = getattr(owner, name)
        setattr(owner, name, None)
        setattr(owner, name, before)
        assert taeda.equal(step(x), program.step(x)) and form.calls == calls  # repeated
    program.model = nn.Linear(4, 4)
    assert taeda.equal(step(x), program.step(x)) and form.calls == calls + 1  # run


def test_attributes_that_others_change():
    class Scaled:
        def __init__(self):
            self.scale, self.offsets = 1.0, [taeda.zeros(3)]

        def step(self, x):
            return x * self.scale + self.offsets[0]

    twins = Twins(Scaled)
    for i in range(18):
        for program in (twins.eager, twins.static):
            program.scale = 1.0 + i // 6
            if i == 9:
                program.offsets[0] = taeda.ones(3)
        twins.call(taeda.ones(3))
    assert len(twins.replays) == 4


BATCH = taeda.zeros(2)


def test_globals_that_others_change(monkeypatch):
    static = Static(lambda x: x + BATCH)
    for i in range(10):
        if i % 5 == 0:
            monkeypatch.setitem(globals(), "BATCH", taeda.full((2,), float(i)))
        assert static(taeda.ones(2)).tolist() == [i // 5 * 5 + 1.0] * 2


def test_lists_that_a_call_extends():
    seen = []

    def step(x):
        y = x * 2
        seen.append(y)
        return y

    static = Static(step)
    for i in range(12):
        static(taeda.full((2,), float(i)))
    assert [y.tolist() for y in seen] == [[2.0 * i] * 2 for i in range(12)]
    assert len(static.refusals) == 1


def test_an_error_inside():
    def make():
        program = training(mlp, adam, F.mse_loss)()
        inner = program.step

        def step(x, y, fails=False):
            value = inner(x, y)
            if fails:
                raise KeyError("inside")
            return value

        program.step = step
        return program

    twins = Twins(make)
    for i in range(12):
        if i % 3 == 2:
            for step in (twins.plain, twins.step):
                taeda.manual_seed(i)
                with pytest.raises(KeyError, match="inside"):
                    step(*numbers(), fails=True)
            twins.check()
        twins.call(*numbers())
    assert len(twins.replays) == 1


def test_an_index_out_of_range():
    table = taeda.arange(5.0)
    static = Static(lambda i: F.embedding(i, table.view(5, 1)) * 2)
    for i in range(5):
        assert static(taeda.tensor([i])).tolist() == [[2.0 * i]]
    for wrong in (7, -1):
        with pytest.raises(IndexError):
            static(taeda.tensor([wrong]))
    assert static(taeda.tensor([3])).tolist() == [[6.0]]


def test_arguments_that_share_memory():
    def step(x, y):
        x.mul_(2)
        return x + y

    static = Static(step)
    for i in range(12):
        ours, theirs = taeda.arange(6.0) + i, taeda.arange(6.0) + i
        first, second = (slice(0, 4), slice(2, 6)) if i % 2 else (slice(0, 4), slice(0, 4))
        assert_same(static(ours[first], ours[second]), step(theirs[first], theirs[second]))
        assert_same(ours, theirs)
    assert len(static._forms) == 2


def test_an_argument_in_the_memory_of_a_parameter():
    weight = taeda.ones(4)

    def step(x):
        x.mul_(2)
        return x + weight

    static = Static(step)
    for _ in range(12):
        weight.fill_(1.0)
        assert static(weight).tolist() == [4.0] * 4
    weight.fill_(1.0)
    for i in range(6):
        assert static(taeda.full((4,), float(i))).tolist() == [2.0 * i + 1] * 4


def test_views_of_arguments_are_given_back():
    static = Static(lambda x: (x, x[1:], x.t()))
    for i in range(6):
        x = taeda.full((3, 2), float(i))
        before = x._version
        same, part, turned = static(x)
        assert same is x
        part.add_(1)
        assert x[1].tolist() == [i + 1.0] * 2
        assert turned.stride() == (1, 2)
        assert x._version == before + 1


def test_writes_are_counted():
    model = nn.Linear(3, 2)

    def step(x):
        x.add_(1)
        x.mul_(2)
        return x

    static = Static(step)
    for _ in range(6):
        x = taeda.ones(2, 3)
        before = x._version
        loss = model(x).exp().sum()  # saves x
        static(x)
        assert x._version == before + 2
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_random_numbers_are_drawn_anew():
    static = Static(lambda x: F.dropout(x, 0.5) + taeda.randn(64) + taeda.rand(64).uniform_(1, 2))
    x = taeda.ones(64)
    found = [static(x) for _ in range(6)]
    assert len({tuple(f.tolist()) for f in found}) == 6


def test_grad_modes_are_apart():
    model = nn.Linear(3, 2)
    static = Static(lambda x: model(x) * 2)
    for i in range(24):
        with taeda.set_grad_enabled(i % 2 == 0):
            assert static(taeda.ones(1, 3)).requires_grad == (i % 2 == 0)
    assert "a tensor that requires grad is given back" in static.refusals[0]


def test_a_loss_that_is_done_with():
    twins = Twins(training(mlp, adam, F.mse_loss))
    for _ in range(6):
        losses = twins.call(*numbers())
    for loss in losses:
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()


def test_arguments_in_a_graph_run_as_usual():
    static = Static(lambda x: x.detach() * 2)
    w = taeda.ones(2, requires_grad=True)
    for _ in range(5):
        assert static(w * 3).tolist() == [6.0, 6.0]
    assert static._forms == {}


def test_two_threads():
    def make(seed):
        taeda.manual_seed(seed)
        program = training(mlp, adam, F.mse_loss)()
        return program

    batches = [numbers() for _ in range(30)]
    model = mlp()
    shared = Static(lambda x: model(x).detach() * 2)
    expected = [model(x).detach() * 2 for x, _ in batches]
    programs = [make(seed) for seed in (1, 2)]
    reference = [make(seed) for seed in (1, 2)]
    errors = []
    make(3).step(*numbers())  # modules of kernels load when they are first used, which is for one thread

    def work(program):
        try:
            step = Static(program.step)
            with taeda.enable_grad():
                for (x, y), want in zip(batches, expected, strict=True):
                    step(x, y)
                    assert_same(shared(x), want)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(program,)) for program in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for program, other in zip(programs, reference, strict=True):
        for x, y in batches:
            other.step(x, y)
        assert_same(program.model.state_dict(), other.model.state_dict())


def test_methods_and_decorators():
    class Doubler:
        @Static
        def double(self, x):
            """Twice."""
            return x * 2

    doubler = Doubler()
    assert [doubler.double(taeda.tensor([float(i)])).item() for i in range(5)] == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert Doubler.double.__doc__ == "Twice."
    assert len(next(iter(Doubler.double._forms.values())).traces) == 1


class Settings:
    scale = 1.0


def test_attributes_of_classes(monkeypatch):
    static = Static(lambda x: x * Settings.scale)
    for i in range(10):
        monkeypatch.setattr(Settings, "scale", 1.0 + i // 5)
        assert static(taeda.ones(1)).item() == 1.0 + i // 5
    assert len(next(iter(static._forms.values())).traces) == 2


CHOICES = [True] * 8 + [False] * 8


@pytest.mark.parametrize("choose", [
    lambda: random.random() < 0.8, lambda: np.random.rand() < 0.8, functools.partial(next, iter(CHOICES)),
    lambda known=list(CHOICES): known.pop(0), lambda known=deque(CHOICES): known.popleft(),
    lambda known=set(range(16)): known.pop() < 8,
])  # fmt: skip
def test_choices_of_python_code(choose):
    random.seed(0)
    np.random.seed(0)
    static = Static(lambda x: x + 1 if choose() else x - 1)
    found = [static(taeda.zeros(1)).item() for _ in range(16)]
    assert set(found) == {1.0, -1.0}
    assert len(static.refusals) == 1


def test_compile_reduces_overhead():
    model = cnn().eval()
    compiled = taeda.compile(model, mode="reduce-overhead")
    double = taeda.compile(lambda x: x * 2, mode="reduce-overhead")
    with taeda.no_grad():
        for _ in range(6):
            x = taeda.randn(2, 3, 8, 8)
            assert_same(compiled(x), model(x))
            assert_same(double(x), x * 2)
    for static in (compiled._call.runner, double.runner):
        assert [len(form.traces) for form in static._forms.values()] == [1]
    other = copy.deepcopy(compiled)
    other._orig_mod.requires_grad_(False)
    assert all(p.requires_grad for p in model.parameters()) and not hasattr(other._call, "runner")
    with taeda.no_grad():
        assert_same(other(x), model(x))


def test_state_in_classes_derived_from_dict_and_set():
    table, members = type("Table", (OrderedDict,), {})(a=2.0, b=3.0), type("Members", (set,), {})([1])
    static = Static(lambda x: x * next(iter(table.values())) + len(members) + counts["a"])
    counts = defaultdict(float, a=1.0)

    def change_and_compare():
        for _ in range(4):
            assert_same(static(taeda.ones(2)), static.function(taeda.ones(2)))

    change_and_compare()
    assert not static.refusals
    table.move_to_end("a")
    change_and_compare()
    members.add(2)
    change_and_compare()
    counts["a"] = table["b"] = 5.0
    change_and_compare()

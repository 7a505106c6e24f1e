"""Static replay: what a replayed call leaves behind is what the call itself leaves, bit for bit; else it is not replayed."""

import copy
import functools
import random
import re
import threading
import types
from collections import deque

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda.graph.replay import Static
from taeda.nn import functional as F


class Twins:
    """The same program twice: ``eager``, and ``static``, whose step is replayed."""

    def __init__(self, make):
        taeda.manual_seed(0)
        self.eager = make()
        taeda.manual_seed(0)
        self.static = make()
        self.plain = self.eager.step
        self.step = Static(self.static.step)
        self.calls = 0

    @property
    def replays(self):
        """How many launches each trace has."""
        return [trace.launches for form in self.step._forms.values() for trace in form.traces]

    def call(self, *args, **kwargs):
        """One step of both on copies of the arguments; their results, which are the same."""
        self.calls += 1
        results, states = [], []
        for step in (self.plain, self.step):
            given = [a.clone() if isinstance(a, taeda.Tensor) else a for a in args]
            taeda.manual_seed(self.calls)
            results.append(step(*given, **kwargs))
            states.append((given, taeda.get_rng_state()))
        assert_same(results[0], results[1])
        assert_same(states[0], states[1])
        self.check()
        return results

    def check(self):
        """Parameters, gradients, buffers and the optimiser's state are the same."""
        a, b = self.eager, self.static
        if hasattr(a, "model"):
            assert_same(a.model.state_dict(), b.model.state_dict())
            assert_same([p.grad for p in a.model.parameters()], [p.grad for p in b.model.parameters()])
        if hasattr(a, "optimizer"):
            assert_same(a.optimizer.state_dict(), b.optimizer.state_dict())


def assert_same(a, b):
    """The same numbers, bit for bit, in the same containers."""
    assert type(a) is type(b)
    if isinstance(a, taeda.Tensor):
        assert (a.shape, a.dtype, a.stride(), a.requires_grad) == (b.shape, b.dtype, b.stride(), b.requires_grad)
        assert bool(((a == b) | ((a != a) & (b != b))).all())
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for name in a:
            assert_same(a[name], b[name])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert a == b


def training(model, optimizer, loss, zero="before", clip=None):
    """A maker of a program that trains ``model()``."""

    def make():
        m = model()
        o = optimizer(m.parameters())

        def step(x, y):
            if zero == "before":
                o.zero_grad()
            value = loss(m(x), y)
            if zero == "inside":
                o.zero_grad()
            value.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(m.parameters(), clip)
            o.step()
            if zero == "after":
                o.zero_grad()
            return value

        return types.SimpleNamespace(model=m, optimizer=o, step=step)

    return make


def mlp():
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))


def numbers(n=8):
    return taeda.randn(n, 4), taeda.randn(n, 2)


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.Linear(72, 5),
    )


def images():
    return taeda.randn(4, 3, 8, 8), taeda.randint(0, 5, (4,))


class HandWritten(nn.Module):
    """A recurrent network as a loop."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer, self.last = nn.Linear(3, 16), nn.Linear(16, 16), nn.Linear(16, 5)

    def forward(self, x):
        h = taeda.zeros(x.shape[0], 16)
        for t in range(x.shape[1]):
            h = taeda.tanh(self.inner(x[:, t]) + self.outer(h))
        return self.last(h)


def sequences():
    return taeda.randn(4, 50, 3), taeda.randint(0, 5, (4,))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(11, 8), nn.LSTM(8, 8, batch_first=True)
        self.last = nn.Linear(8, 5)

    def forward(self, x):
        return self.last(self.lstm(self.embedding(x))[0][:, -1])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.embedding, self.encoder, self.last = (
            nn.Embedding(11, 16),
            nn.TransformerEncoder(layer, 2),
            nn.Linear(16, 5),
        )

    def forward(self, x):
        return self.last(self.encoder(self.embedding(x)).mean(1))


def words():
    return taeda.randint(0, 11, (4, 7)), taeda.randint(0, 5, (4,))


def adam(params):
    return taeda.optim.Adam(params, lr=1e-2)


def momentum(params):
    return taeda.optim.SGD(params, lr=1e-1, momentum=0.9)


STEPS = {
    "mlp": (training(mlp, adam, F.mse_loss), numbers),
    "momentum": (training(mlp, momentum, F.mse_loss), numbers),
    "clipped": (training(mlp, adam, F.mse_loss, clip=0.05), numbers),
    "loop": (training(HandWritten, adam, F.cross_entropy), sequences),
    "lstm": (training(Recurrent, adam, F.cross_entropy), words),
    "cnn": (training(cnn, momentum, F.cross_entropy), images),
    "transformer": (training(Transformer, taeda.optim.AdamW, F.cross_entropy), words),
    "zero after": (training(mlp, adam, F.mse_loss, zero="after"), numbers),
    "zero inside": (training(mlp, adam, F.mse_loss, zero="inside"), numbers),
    "never zero": (training(mlp, adam, F.mse_loss, zero="never"), numbers),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_the_same(name):
    make, batch = STEPS[name]
    twins = Twins(make)
    for _ in range(20):
        twins.call(*batch())
    assert len(twins.replays) == 1
    assert twins.step.refusals == []


@pytest.mark.parametrize(
    "name", ["SGD", "AdamW", "Adagrad", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"]
)
def test_optimizers(name):
    twins = Twins(training(mlp, getattr(taeda.optim, name), F.mse_loss))
    for _ in range(10):
        twins.call(*numbers())
    assert len(twins.replays) == 1


@pytest.mark.parametrize("largest", [1e-3, 1e6])
@pytest.mark.parametrize("order", [1.0, 2.0, float("inf"), 3.0])
def test_clipping(largest, order):
    def make():
        program = training(mlp, momentum, F.mse_loss)()

        def step(x, y):
            program.optimizer.zero_grad()
            F.mse_loss(program.model(x), y).backward()
            norm = nn.utils.clip_grad_norm_(program.model.parameters(), largest, order)
            program.optimizer.step()
            return norm

        program.step = step
        return program

    twins = Twins(make)
    for _ in range(8):
        twins.call(*numbers())
    assert len(twins.replays) == 1


@pytest.mark.parametrize("clip", [False, True])
def test_grad_scaler(clip):
    def make():
        program = training(mlp, adam, F.mse_loss)()
        program.scaler = taeda.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3)

        def step(x, y):
            program.optimizer.zero_grad()
            loss = F.mse_loss(program.model(x), y)
            program.scaler.scale(loss).backward()
            if clip:
                program.scaler.unscale_(program.optimizer)
                nn.utils.clip_grad_norm_(program.model.parameters(), 0.1)
            program.scaler.step(program.optimizer)
            program.scaler.update()
            return loss

        program.step = step
        return program

    twins, scales = Twins(make), set()
    for i in range(20):
        x, y = numbers()
        if i in (1, 7, 8, 15):
            x[0] = float("inf")
        twins.call(x, y)
        assert twins.eager.scaler.state_dict() == twins.static.scaler.state_dict()
        scales.add(twins.eager.scaler.get_scale())
    assert len(twins.replays) == 1
    assert len(scales) > 2


def test_schedulers_outside():
    twins = Twins(training(mlp, taeda.optim.AdamW, F.mse_loss))
    schedulers = [taeda.optim.lr_scheduler.CosineAnnealingLR(p.optimizer, 20) for p in (twins.eager, twins.static)]
    for _ in range(20):
        twins.call(*numbers())
        for scheduler in schedulers:
            scheduler.step()
    assert len(twins.replays) == 1


def test_a_scheduler_inside_is_not_replayed():
    def make():
        program = training(mlp, adam, F.mse_loss)()
        scheduler = taeda.optim.lr_scheduler.StepLR(program.optimizer, 2)
        inner = program.step

        def step(x, y):
            value = inner(x, y)
            scheduler.step()
            return value

        program.step = step
        return program

    twins = Twins(make)
    for _ in range(14):
        twins.call(*numbers())
    assert twins.replays == []
    assert twins.step.refusals == ["a call changes 'last_epoch'"]


def inference():
    model = cnn().eval()

    def step(x):
        with taeda.no_grad():
            return model(x)

    return types.SimpleNamespace(model=model, step=step)


def test_inference_with_several_batch_sizes():
    twins = Twins(inference)
    for i in range(15):
        twins.call(taeda.randn(2 + i % 3, 3, 8, 8))
    assert len(twins.replays) == 3


def test_training_with_several_batch_sizes():
    twins = Twins(training(mlp, adam, F.mse_loss))
    for i in range(15):
        twins.call(*numbers(3 + i % 2))
    assert len(twins.replays) == 2


def test_results_are_the_callers():
    step = Static(lambda x: (x * 2, [x + 1]))
    given = [taeda.full((3,), float(i)) for i in range(6)]
    found = [step(x) for x in given]
    assert [f[0].tolist() for f in found] == [[2.0 * i] * 3 for i in range(6)]
    assert [f[1][0].tolist() for f in found] == [[i + 1.0] * 3 for i in range(6)]
    assert len(next(iter(step._forms.values())).traces) == 1


def test_gradients_that_the_caller_keeps():
    twins = Twins(training(mlp, adam, F.mse_loss))
    kept = []
    for _ in range(8):
        twins.call(*numbers())
        kept.append([(p.grad, p.grad.clone()) for p in twins.static.model.parameters()])
    for grads in kept:
        for grad, copied in grads:
            assert_same(grad, copied)


def test_eval_and_train():
    twins = Twins(training(cnn, momentum, F.cross_entropy))
    for i in range(24):
        for program in (twins.eager, twins.static):
            program.model.train(i // 6 % 2 == 0)
        twins.call(*images())
    assert len(twins.replays) == 2


def test_state_dicts_are_loaded():
    twins = Twins(training(mlp, adam, F.mse_loss))
    for i in range(20):
        if i == 3:
            saved = twins.eager.model.state_dict(), twins.eager.optimizer.state_dict()
            saved = ({k: v.clone() for k, v in saved[0].items()}, taeda.optim.Adam(mlp().parameters()).state_dict())
        if i == 8:
            for program in (twins.eager, twins.static):
                program.model.load_state_dict(saved[0])
        if i == 13:
            for program in (twins.eager, twins.static):
                program.optimizer.load_state_dict(program.optimizer.state_dict())
        twins.call(*numbers())
    assert len(twins.replays) == 2


def test_parameters_are_changed_outside():
    twins = Twins(training(mlp, adam, F.mse_loss))
    for i in range(16):
        for program in (twins.eager, twins.static):
            weight = program.model[0].weight
            if i == 6:
                with taeda.no_grad():
                    weight.mul_(0.5)
            if i == 8:
                weight.data = weight.data.clone() + 1
            if i == 12:
                program.model[0] = nn.Linear(4, 16)
                program.model[0].load_state_dict({"weight": taeda.ones(16, 4), "bias": taeda.zeros(16)})
        twins.call(*numbers())
    assert len(twins.replays) >= 2


def test_parameters_are_frozen():
    twins = Twins(training(mlp, adam, F.mse_loss))
    for i in range(14):
        for program in (twins.eager, twins.static):
            program.model[0].weight.requires_grad_(not 6 <= i < 10)
        twins.call(*numbers())


def test_gradients_add_up():
    def make():
        program = training(mlp, adam, F.mse_loss)()
        program.step = lambda x, y: F.mse_loss(program.model(x), y).backward()
        return program

    twins = Twins(make)
    for i in range(24):
        twins.call(*numbers())
        if i % 4 == 3:
            for program in (twins.eager, twins.static):
                program.optimizer.step()
                program.optimizer.zero_grad(set_to_none=i % 8 == 3)
    assert len(twins.replays) == 2  # one for the first batch, which makes the gradients


def test_large_gradients_that_nobody_reads():
    def make():
        a, b = nn.Parameter(taeda.randn(100, 100)), taeda.zeros(100, 100)

        def step(x):
            a.grad = None
            (a * x).tanh().mul(2).sum().backward()
            with taeda.no_grad():
                b.copy_(x.exp() * 2 + a)
            return x.sin() + 1

        return types.SimpleNamespace(step=step, a=a, b=b)

    twins = Twins(make)
    for _ in range(8):
        twins.call(taeda.randn(100, 100))
        assert_same([twins.eager.a.grad, twins.eager.b], [twins.static.a.grad, twins.static.b])
    assert len(twins.replays) == 1


def test_gradients_of_arguments():
    static = Static(lambda x: (x * x).sum().backward())
    for i in range(6):
        x = taeda.full((3,), float(i)).requires_grad_()
        static(x)
        static(x)
        assert x.grad.tolist() == [4.0 * i] * 3
    assert [len(form.traces) for form in static._forms.values()] == [2]


def test_hooks_that_others_add():
    model = nn.Linear(2, 1)
    static = Static(lambda x: model(x).sum().backward())
    for i in range(12):
        if i % 4 == 0:
            model.weight.register_hook(lambda grad: grad * 2)
        model.zero_grad()
        static(taeda.ones(1, 2))
        assert model.weight.grad.tolist() == [[2.0 ** (i // 4 + 1)] * 2]
    assert len(next(iter(static._forms.values())).traces) >= 1


def test_two_leaves_with_one_gradient():
    def make():
        a, b = nn.Parameter(taeda.ones(3)), nn.Parameter(taeda.ones(3))
        a.grad = b.grad = taeda.zeros(3)

        def step(x):
            (a * x + b * 2).sum().backward()
            return a.grad.clone()

        return types.SimpleNamespace(step=step)

    twins = Twins(make)
    for _ in range(8):
        twins.call(taeda.randn(3))


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

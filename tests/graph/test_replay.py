"""Static replay: a replayed call leaves the same results, gradients and state as the call itself, bit for bit."""

import types

import pytest

import taeda
from taeda import nn
from taeda.graph.replay import Static
from taeda.nn import functional as F

from .replayed import Twins, adam, assert_same, cnn, images, mlp, momentum, numbers, training


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

"""Programs that run eagerly and replayed, for the tests of static replay."""

import types

import taeda
from taeda import nn
from taeda.graph.replay import Static


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


def adam(params):
    return taeda.optim.Adam(params, lr=1e-2)


def momentum(params):
    return taeda.optim.SGD(params, lr=1e-1, momentum=0.9)

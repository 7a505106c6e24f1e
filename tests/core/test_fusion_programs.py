"""Deferred ops in gradients, transformations, optimisers, threads and generators."""

import copy
import random
import threading

import pytest

import taeda
from taeda import _core, nn
from taeda._core import fusion

from .fusing import check, draw

F = nn.functional
pytestmark = pytest.mark.usefixtures("everything")


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 80), marks=pytest.mark.sweep)])
def test_programs_drawn_at_random(seeds):
    """Rows, pointwise ops, reductions, writing in place, forgetting: in any order, with and without gradients."""
    for seed in seeds:
        shape = random.Random(seed).choice([(5, 7), (3, 33), (2, 3, 40), (6, 1), (40,), (3, 4, 128)])

        def program(x, y, seed=seed):
            draws, live, found = random.Random(seed), [x, y, x * y], []
            for _ in range(15):
                a, b = draws.choice(live), draws.choice(live)
                kind = draws.randrange(11)
                if kind < 3:
                    live.append(draws.choice([taeda.softmax, taeda.log_softmax])(a, -1))
                elif kind < 5:
                    live.append(draws.choice([taeda.mul, taeda.add, taeda.maximum])(a, b))
                elif kind == 5:
                    live.append(taeda.tanh(a * 0.5 + 1) * a.sum(-1, keepdim=True))
                elif kind == 6 and not x.requires_grad:
                    draws.choice([lambda a, b: a.mul_(0.5), lambda a, b: a.add_(b)])(a, b)
                elif kind == 7:
                    found.append(taeda.cat([a, b])[1:])
                elif kind == 8:
                    draws.choice([live, found]).append(b * a.mean())
                elif kind == 9:
                    draws.choice([found, []]).append((a * b).amax())
                elif len(live) > 3:
                    del live[draws.randrange(2, len(live))]
                a = b = None
            if x.requires_grad:
                sum((t * t).sum() for t in live).backward()
            return [*found, *live[-2:]]

        check(program, draw(*shape, requires_grad=seed % 3 == 0), draw(*shape, seed=1))


def test_gradients():
    def function(x, w):
        y = taeda.tanh(x * w) + taeda.sigmoid(x) * F.gelu(w)
        loss = (y * y).mean() + y.exp().sum() * 0.1
        loss.backward()
        return loss

    check(function, draw(30, 4, requires_grad=True), draw(4, seed=1, requires_grad=True))

    def twice(x):
        y = (x.sin() * x).sum()
        (g,) = taeda.autograd.grad(y, x, create_graph=True)
        (h,) = taeda.autograd.grad((g * g).sum(), x)
        return g, h

    check(twice, draw(20, requires_grad=True))

    def accumulates(x):
        for i in range(3):
            ((x * i).exp().sum() + (x * x).sum()).backward()
        first = x.grad.clone()
        x.grad = None
        (x.relu() * 2).sum().backward()
        return first

    check(accumulates, draw(20, requires_grad=True))

    def hooks(x):
        seen = []
        y = x * 2
        y.register_hook(lambda g: seen.append(g.sum().item()) or g * 3)
        y.retain_grad()
        x.register_hook(lambda g: g + 1)
        (y * y).sum().backward()
        return seen, y.grad

    check(hooks, draw(10, requires_grad=True))

    def checkpointed(x):
        y = taeda.utils.checkpoint.checkpoint(lambda t: (t * 2).tanh() * t, x, use_reentrant=False)
        y.sum().backward()
        return y

    check(checkpointed, draw(10, requires_grad=True))

    class Square(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    check(lambda x: Square.apply(x * 2).sum().backward(), draw(10, requires_grad=True))

    def outside(x):
        return (x * 2).tanh() * x

    x = draw(10, requires_grad=True)
    taeda.compile(outside)(x).sum().backward()
    want = copy.deepcopy(x.detach()).requires_grad_()
    outside(want).sum().backward()
    assert taeda.equal(x.grad, want.grad)

    def spoiled(x):
        y = x.exp()
        z = y * 2
        y.add_(1)
        z.sum().backward()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        taeda.compile(spoiled)(draw(10, requires_grad=True))


def test_transformations_and_modes():
    x = draw(6, 5)
    check(lambda x: taeda.func.vmap(lambda t: (t * 2).tanh().sum())(x + 1), x)
    check(lambda x: taeda.func.jacrev(lambda t: (t * 2).tanh() * t)(x[0] * 1), x)
    check(lambda x: taeda.func.hessian(lambda t: ((t * 2).tanh() * t).sum())(x[0] * 1), x)
    check(lambda x: taeda.func.jvp(lambda t: (t * 2).tanh() * t, (x * 1,), (x * 2,)), x)

    def cast(x):
        with taeda.autocast("cpu"):
            return ((x * 2) @ (x * 3).t() * 2).float()

    check(cast, x)

    def random(x):
        taeda.manual_seed(3)
        y = taeda.rand_like(x) * x
        return F.dropout(y * 2, 0.5) + taeda.randn(5) * 2

    check(random, x)
    with taeda.device("meta"):
        assert taeda.compile(lambda: taeda.ones(3) * 2)().is_meta
    check(lambda x: taeda.linalg.svd(x * 2)[1] * 2, x)
    check(lambda x: (x + 1j * x).conj() * x, x)


def test_optimisers():
    def steps(model, x):
        optimizer = taeda.optim.AdamW(model.parameters(), lr=0.01)
        plain = taeda.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        losses = []
        for i in range(4):
            loss = (model(x * (i + 1)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            (optimizer if i % 2 else plain).step()
            losses.append(loss.item())
        return losses

    taeda.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3), nn.BatchNorm1d(3))
    ours, others = copy.deepcopy(model), copy.deepcopy(model)
    assert steps(ours, draw(6, 5)) == taeda.compile(steps)(others, draw(6, 5))
    for a, b in zip(ours.state_dict().values(), others.state_dict().values(), strict=True):
        assert taeda.equal(a, b)


def test_errors_leave_nothing_behind():
    @taeda.compile
    def function(x):
        y = x * 2
        raise ValueError(str(y.sum().item()))

    with pytest.raises(ValueError):
        function(draw(10))
    assert not _core.defer_ops(False)


def test_threads_that_share_deferred_tensors():
    """Many threads ask for the same values, and write to what they are made of."""
    want = (((draw(70000) * 2).tanh() + 1) ** 2).sum().item()

    def ask(x, y, z, results):
        results.append(z.sum().item())
        results.append((y * y).sum().item())
        x.add_(1)

    for _ in range(20):
        x, results = draw(70000), []
        _core.defer_ops(True)
        y = (x * 2).tanh() + 1
        z = y * y
        _core.defer_ops(False)
        threads = [threading.Thread(target=ask, args=(x, y, z, results)) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(results) == 8 and all(abs(r - want) <= 1e-6 * abs(want) for r in results)


def test_recording_is_of_one_thread():
    _core.defer_ops(True)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(fusion.is_computed(draw(10) * 2)))
    thread.start()
    thread.join()
    _core.defer_ops(False)
    assert seen == [True]


def test_generators_and_functions_that_call_each_other():
    @taeda.compile
    def inner(x):
        return x * 2 + 1

    def outer(x):
        for i in range(3):
            yield inner(x + i) * 2

    check(lambda x: list(outer(x)), draw(10))

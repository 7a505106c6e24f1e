"""Backward passes from several threads, and within one another."""

import threading

import pytest

import taeda
from taeda import autograd


def run_in_threads(n, function):
    errors = []

    def guarded(i):
        try:
            function(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []


def test_graphs_of_their_own():
    results = [None] * 8

    def work(i):
        x = taeda.full((50,), float(i), requires_grad=True)
        for _ in range(20):
            x.grad = None
            ((x * x).sum() + taeda.stack([x, x]).sum()).backward()
        results[i] = x.grad[0].item()

    run_in_threads(8, work)
    assert results == [2.0 * i + 2 for i in range(8)]


def test_one_leaf_for_all():
    x = taeda.zeros(300_000, requires_grad=True)  # large enough for kernels to let other threads run
    n, rounds = 6, 12

    def work(i):
        for _ in range(rounds):
            (x * 2.0).sum().backward()

    run_in_threads(n, work)
    assert x.grad.eq(2.0 * n * rounds).all()


def test_one_graph_for_all():
    x = taeda.ones(1000, requires_grad=True)
    y = (x * 3).exp().sum()
    (expected,) = autograd.grad(y, x, retain_graph=True)

    def work(i):
        for _ in range(10):
            (g,) = autograd.grad(y, x, retain_graph=True)
            assert g.equal(expected)

    run_in_threads(4, work)


def test_saved_tensors_hooks_are_a_threads_own():
    packed = []
    inside, done = threading.Event(), threading.Event()

    def other(i):
        if i == 0:
            with autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
                inside.set()
                assert done.wait(200)
        else:
            assert inside.wait(200)
            taeda.ones(2, requires_grad=True).exp()
            done.set()

    run_in_threads(2, other)
    assert packed == []


def test_a_backward_pass_inside_a_hook():
    x, w = taeda.ones(2, requires_grad=True), taeda.ones(2, requires_grad=True)
    y = x * 2

    def hook(g):
        assert not taeda.is_grad_enabled()
        with taeda.enable_grad():
            (w * w).sum().backward()
        return g * w.grad

    y.register_hook(hook)
    y.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]
    assert x.grad.tolist() == [4.0, 4.0]


def test_a_backward_pass_of_the_same_leaf_inside_a_hook():
    x = taeda.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: autograd.backward((x * 5).sum()) if taeda.is_grad_enabled() else None)
    y.sum().backward()
    y = x * 2

    def hook(g):
        with taeda.enable_grad():
            (x * 5).sum().backward()

    y.register_hook(hook)
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_passes_nest_deeply():
    class Nest(autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if ctx.depth == 0:
                return g * 2, None
            (x,) = ctx.saved_tensors
            with taeda.enable_grad():
                again = x.detach().requires_grad_()
                (inner,) = autograd.grad(Nest.apply(again, ctx.depth - 1), again, g)
            return inner, None

    x = taeda.ones(2, requires_grad=True)
    Nest.apply(x, 40).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_gradients_do_not_depend_on_the_number_of_threads(threads):
    taeda.manual_seed(3)
    x = taeda.randn(200, 300)
    w = taeda.randn(300, 100, requires_grad=True)
    taeda.set_num_threads(1)
    ((x @ w * 0.05).softmax(1).log() ** 2).sum().backward()
    expected, w.grad = w.grad, None
    taeda.set_num_threads(threads)
    ((x @ w * 0.05).softmax(1).log() ** 2).sum().backward()
    assert w.grad.equal(expected)

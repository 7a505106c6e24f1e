"""Memory is given back by reference counts alone: training steps with the cycle collector off keep memory flat."""

import gc
import resource
import weakref

import pytest

import taeda
from taeda import autograd


@pytest.fixture
def without_gc():
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def resident_kib():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() // 1024


class Scale(autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        result = x * w
        ctx.save_for_backward(x, w, result)
        return result

    @staticmethod
    def backward(ctx, g):
        x, w, _result = ctx.saved_tensors
        return g * w, (g * x).sum(0)


class Model:
    """Two layers, a Function and in-place ops on views between them."""

    def __init__(self):
        taeda.manual_seed(0)
        self.w1 = (taeda.randn(16, 8) * 0.3).requires_grad_()
        self.w2 = (taeda.randn(8, 1) * 0.3).requires_grad_()
        self.scale = taeda.ones(8).requires_grad_()
        self.x = taeda.randn(32, 16)
        self.y = self.x[:, :1] * 2
        self.parameters = (self.w1, self.w2, self.scale)

    def loss(self):
        h = (self.x @ self.w1).tanh()
        h = Scale.apply(h, self.scale)
        h = h * 1
        h[0].mul_(2.0)
        h.t()[1:].add_(0.1)
        return ((taeda.cat([h, h], 1)[:, :8] @ self.w2 - self.y) ** 2).mean()

    def update(self, grads):
        with taeda.no_grad():
            for p, g in zip(self.parameters, grads, strict=True):
                p.sub_(g, alpha=0.05)


def plain_step(model):
    model.loss().backward()
    model.update([p.grad for p in model.parameters])
    for p in model.parameters:
        p.grad = None


def create_graph_step(model):
    grads = autograd.grad(model.loss(), model.parameters, create_graph=True)
    penalty = sum((g * g).sum() for g in grads) * 0.01
    (model.loss() + penalty).backward()
    model.update([p.grad for p in model.parameters])
    for p in model.parameters:
        p.grad = None


@pytest.mark.filterwarnings("ignore:Using backward")
def create_graph_into_leaves_step(model):
    model.loss().backward(create_graph=True)
    penalty = sum((p.grad * p.grad).sum() for p in model.parameters)
    grads = autograd.grad(penalty, model.parameters)
    model.update(grads)
    for p in model.parameters:
        p.grad = None


def hooks_step(model):
    seen = []
    loss = model.loss()
    loss.register_hook(lambda g: seen.append(g) or g)
    loss.retain_grad()
    loss.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs))
    handle = model.w1.register_hook(lambda g: g * 1)
    loss.backward()
    handle.remove()
    model.update([p.grad for p in model.parameters])
    for p in model.parameters:
        p.grad = None


def abandoned_step(model):
    model.loss()
    h = model.loss()
    (g,) = autograd.grad(h, model.w1, create_graph=True)
    g.sum()


def failing_step(model):
    loss = model.loss()
    h = loss * 1

    def fail(g):
        raise ValueError

    h.register_hook(fail)
    with pytest.raises(ValueError):
        h.backward()


def live_tensors():
    return sum(issubclass(type(o), (taeda.Tensor, autograd.graph.Node)) for o in gc.get_objects())


STEPS = [plain_step, create_graph_step, create_graph_into_leaves_step, hooks_step, abandoned_step]


@pytest.mark.parametrize("step", STEPS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore:Using backward")
def test_training_steps_leave_nothing_behind(step, without_gc):
    model = Model()
    for _ in range(50):
        step(model)
    objects, memory = live_tensors(), resident_kib()
    allocated = taeda._core.memory_stats()["allocated"]
    for _ in range(1000):
        step(model)
    assert live_tensors() == objects
    assert taeda._core.memory_stats()["allocated"] == allocated
    assert resident_kib() - memory < 1500


def test_a_graph_dies_with_its_output(without_gc):
    model = Model()
    references = []

    def note(node):
        references.append(weakref.ref(node))
        for source, _ in node.next_functions:
            if isinstance(source, autograd.graph.Node):
                note(source)

    loss = model.loss()
    note(loss.grad_fn)
    loss.backward()
    del loss
    assert len(references) > 10
    assert [r() for r in references if r() is not None] == []


def test_a_failed_backward_frees_its_graph(without_gc):
    model = Model()
    failing_step(model)
    gc.collect()
    objects = live_tensors()
    for _ in range(20):
        failing_step(model)
    gc.collect()  # the traceback of the error holds frames in cycles
    assert live_tensors() == objects


def test_saved_tensors_are_freed_as_backward_goes(without_gc):
    x = taeda.ones(4, requires_grad=True)
    h = x * 1
    y = h.exp()
    reference = weakref.ref(h)
    z = y.sum()
    del h, y
    assert z.grad_fn is not None
    z.backward()
    assert reference() is None


def test_hooks_that_know_their_tensor_are_cycles_for_the_collector():
    x = taeda.ones(4, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g, y=y: g)
    reference = weakref.ref(y)
    del y
    gc.collect()
    assert reference() is None

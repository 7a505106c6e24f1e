"""Backward passes of compiled functions that are repeated from their launches (``_core/passes.pyx``)."""

import threading
import weakref

import pytest

import taeda
from taeda import nn
from taeda._core import passes
from taeda.utils._python_dispatch import TorchDispatchMode

from .test_fusion import assert_same
from .test_random_programs import SHAPES, draw, run

F = nn.functional
#: With these in a program its passes always run.
SEEN = {"hook", "retain_grad", "add_", "relu_", "write to a slice", "fill a slice", "add_ of another",
        "copy_ to a slice"}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_known():
    passes.forget_passes()
    yield
    passes.forget_passes()


def plans():
    return sum(type(x) is tuple for x in passes.known_passes())


class Net:
    """A step of a small network. ``look`` is called with the input, what lies between and the loss, before the pass."""

    def __init__(self, look=lambda *_: None, keep=False):
        taeda.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        self.x, self.y = taeda.randn(5, 4), taeda.randint(0, 3, (5,))
        self.look, self.keep = look, keep

    def __call__(self):
        hidden = self.model[:2](self.x)
        loss = F.cross_entropy(self.model[2](hidden), self.y)
        seen = self.look(self, hidden, loss)
        loss.backward(retain_graph=self.keep)
        return seen, [p.grad.clone() for p in self.model.parameters()]


def both(make, steps=5):
    """What steps give eagerly and compiled."""
    eager, compiled = make(), make()
    step = taeda.compile(compiled)
    return [eager() for _ in range(steps)], [step() for _ in range(steps)]


def assert_equal(want, got):
    for (_, a), (_, b) in zip(want, got, strict=True):
        assert_same(b, a)


def test_a_pass_is_repeated_from_the_third_on():
    step = taeda.compile(Net())
    known = []
    for _ in range(3):
        step()
        known.append(passes.known_passes())
    assert known[0] == [1]
    assert known[1] == known[2]
    assert known[1][0][0] > 3  # launches


def test_gradients_add_up_in_place():
    want, got = both(Net)
    assert_equal(want, got)
    assert plans() == 1
    net = Net()
    step = taeda.compile(net)
    for _ in range(3):
        step()
    grad = net.model[0].weight.grad
    step()
    assert net.model[0].weight.grad is grad


def test_an_eager_pass_is_not_repeated():
    net = Net()
    for _ in range(3):
        net()
    assert passes.known_passes() == []


def test_random_programs():
    met = 0
    for seed in range(40):
        lines = [line for line in draw(seed)[0] if seed % 4 == 0 or line[0] not in SEEN]
        want = run(lines, 0, seed, SHAPES[0])
        compiled = taeda.compile(run)
        passes.forget_passes()
        for _ in range(3):
            got = compiled(lines, 0, seed, SHAPES[0])
            if isinstance(want, str):
                assert got == want
            else:
                assert_same(got, want)
        met += plans()
    assert met > 20


@pytest.mark.parametrize("where", ["tensor", "leaf", "after accumulation", "node", "before a node", "retained"])
def test_who_looks_sees_every_pass(where):
    seen = []

    def look(net, hidden, loss):
        weight = net.model[0].weight
        if where == "tensor":
            hidden.register_hook(lambda g: (seen.append(g.clone()), g * 2)[1])
        elif where == "leaf":
            handle = weight.register_hook(lambda g: (seen.append(g.clone()), handle.remove(), g * 3)[2])
        elif where == "after accumulation":
            handle = weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()) or handle.remove())
        elif where == "node":
            loss.grad_fn.register_hook(lambda made, got: seen.extend(g.clone() for g in got[:1]))
        elif where == "before a node":
            hidden.grad_fn.register_prehook(lambda got: (seen.append(got[0].clone()), (got[0] * 2,))[1])
        else:
            hidden.retain_grad()
            seen.append(hidden)

    for _ in range(3):  # a plan is there when somebody begins to look
        taeda.compile(Net())()
    assert plans() == 1
    want, got = both(lambda: Net(look))
    assert_equal(want, got)
    assert len(seen) == 10
    values = [t.grad if where == "retained" else t for t in seen]
    assert_same(values[5:], values[:5])


@pytest.mark.parametrize("what", ["written", "released"])
def test_errors_of_the_engine(what):
    def look(net, hidden, loss):
        if what == "written":
            with taeda.no_grad():
                net.model[2].weight.add_(1)
        else:
            loss.backward()

    for _ in range(3):
        taeda.compile(Net())()
    assert plans() == 1
    errors = []
    for step in (Net(look), taeda.compile(Net(look))):
        with pytest.raises(RuntimeError) as caught:
            step()
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_a_graph_that_is_kept():
    def look(net, hidden, loss):
        loss.backward(retain_graph=True)

    want, got = both(lambda: Net(look, keep=True))
    assert_equal(want, got)
    assert plans() == 1


def test_what_a_pass_has_used_is_released():
    kept = []

    def look(net, hidden, loss):
        kept.append((weakref.ref(hidden), loss))

    step = taeda.compile(Net(look))
    for _ in range(4):
        step()
    assert plans() == 1
    assert all(hidden() is None for hidden, _ in kept)


def test_leaves_do_not_share_a_gradient():
    a, b, c = (taeda.ones(3, requires_grad=True) for _ in range(3))

    @taeda.compile
    def step():
        a.grad = b.grad = c.grad = None
        top = taeda.full((3,), 2.0)
        (a + b + c.view(3)).backward(top)
        return top

    for _ in range(4):
        top = step()
        for x in (a, b, c):
            x.grad.add_(1)
        assert [x.grad.tolist() for x in (a, b, c)] == [[3.0] * 3] * 3
        assert top.tolist() == [2.0] * 3
    assert plans() == 1


def test_other_forms_have_plans_of_their_own():
    w = taeda.arange(6.0).requires_grad_()
    v = taeda.arange(6.0)

    def program(n, number, both):
        w.grad = v.grad = None
        v.requires_grad_(both)
        (w[:n] * v[:n] * number).sum().backward()
        return [w.grad.clone(), *([v.grad.clone()] if both else [])]

    compiled = taeda.compile(program)
    cases = [(6, 2.0, False), (4, 2.0, False), (4, 3.0, False), (4, 2.0, True), (4, 2, True)]
    want = [program(*case) for case in cases]
    for _ in range(3):
        for case, expected in zip(cases, want, strict=True):
            assert_same(compiled(*case), expected)
    assert plans() == len(cases)


def test_a_mode_sees_every_pass():
    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    calls = []
    for step in (Net(), taeda.compile(Net())):
        for _ in range(3):
            step()
        names = []
        with Names():
            step()
        calls.append(names)
    assert calls[0] == calls[1]
    assert plans() == 1


def test_anomalies_are_looked_for():
    x = taeda.tensor([4.0, 1.0], requires_grad=True)

    @taeda.compile
    def step():
        x.grad = None
        (x.sqrt() * 0.5).sum().backward()
        return x.grad.clone()

    for _ in range(3):
        step()
    with taeda.no_grad():
        x[0] = -1.0
    assert bool(step()[0].isnan())
    assert plans() == 1
    with taeda.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="nan"):
        step()


def test_a_sparse_gradient():
    w = taeda.randn(6, 2, requires_grad=True)

    @taeda.compile
    def step():
        w.grad = None
        F.embedding(taeda.tensor([1, 4, 4]), w, sparse=True).sum().backward()
        return w.grad

    for _ in range(4):
        assert step().to_dense()[:, 0].tolist() == [0, 1, 0, 0, 2, 0]
    assert passes.known_passes() == ["a gradient is a SparseTensor"]


def test_large_tensors_are_left_to_fusion():
    x = taeda.randn(100, 100, requires_grad=True)
    step = taeda.compile(lambda: x.sin().sum().backward())
    for _ in range(3):
        step()
    assert passes.known_passes() == []


def test_threads():
    want = Net()()[1]
    wrong = []

    def work():
        for _ in range(20):
            net = Net.__new__(Net)
            net.__dict__.update(made)
            net.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
            net.model.load_state_dict(made["model"].state_dict())
            if not all(bool((a == b).all()) for a, b in zip(taeda.compile(net)()[1], want, strict=True)):
                wrong.append(1)

    made = vars(Net())
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert plans() == 1

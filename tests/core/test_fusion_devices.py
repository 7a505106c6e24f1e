"""Deferred ops on devices: `far`, whose memory the host cannot read, and `desk`, which has no kernels of several ops."""

import threading

import pytest

import taeda
from taeda import nn
from taeda._core import fusion

far = pytest.importorskip("taeda.testing.far", reason="the system has no mprotect", exc_type=OSError)

from .desk import DESKS  # noqa: E402


def draw(*sizes, seed=0, device="far"):
    return taeda.randn(*sizes, generator=taeda.Generator().manual_seed(seed)).to(device)


def launches(function, *args):
    """What the function gives, and how many launches that takes."""
    before = far.count_launches()
    made = function(*args)
    return made, far.count_launches() - before


def chain(x, y):
    return ((x * y + 1.5).tanh() - x).relu()


def sliced(x, y):
    z = x * 2 + y
    return z[1:] - y[:-1], z.t() * y.t()


def broadcast(x, y):
    return (x * y[0] + y[:, :1]).exp(), x.sum(0) * 2 - y[0]


def in_place(x, y):
    z = x * 3
    z.add_(y).mul_(x)
    x += z
    return z, x


def of_types(x, y):
    big = x > y
    return taeda.where(big, x, y).double() + big.int(), (x * 4).long() % 3


def joined(x, y):
    return taeda.cat([x * 2, y + 1], 1) * 0.5, taeda.stack([x - y, x + y])


def rows(x, y):
    return (x * 2).softmax(-1) + y, (x + y).log_softmax(0), nn.functional.layer_norm(x - y, (5,)) * y


def reduced(x, y):
    z = x * y
    return z.sum(), (z + x).mean(1), z.abs().amax(0), (z - 1).norm()


def no_elements(x, y):
    return x[:0] * 2 + y[:0]


@pytest.mark.parametrize("function", [chain, sliced, broadcast, in_place, of_types, joined, rows, reduced, no_elements])
def test_compiled_gives_the_bits_of_the_program(function):
    for sizes in ((3, 5), (130, 5)):
        want = function(draw(*sizes), draw(*sizes, seed=1))
        got = taeda.compile(function)(draw(*sizes), draw(*sizes, seed=1))
        for a, b in zip(*map(taeda.utils._pytree.tree_leaves, (want, got)), strict=True):
            assert b.device == a.device and (a.dtype, a.stride()) == (b.dtype, b.stride()) and a.cpu().equal(b.cpu())


def test_a_chain_is_one_launch():
    x, y = draw(7, 3), draw(7, 3, seed=1)
    want, eager = launches(chain, x, y)
    compiled = taeda.compile(chain)
    compiled(x, y)
    got, fused = launches(compiled, x, y)
    assert got.cpu().equal(want.cpu()) and (eager, fused) == (5, 1)


@pytest.mark.parametrize(
    "function, steps",
    [
        (lambda x, y: (x * y + 1).sum(), (3, 1)),
        (lambda x, y: (x * y).abs().amax(1), (3, 1)),
        (lambda x, y: (x - y).exp().mean(0), (3, 1)),
        (lambda x, y: (x * 2 + y[0]).softmax(-1), (3, 1)),
        (lambda x, y: (x * y).sigmoid().argmax(-1), (3, 1)),
        (lambda x, y: (x + y).var(1), (2, 1)),
    ],
)
def test_reductions_and_rows_compute_what_they_read(function, steps):
    for sizes in ((7, 3), (13, 300)):
        x, y = draw(*sizes), draw(*sizes, seed=1)
        want, eager = launches(function, x, y)
        compiled = taeda.compile(function)
        compiled(x, y)
        got, fused = launches(compiled, x, y)
        assert got.cpu().equal(want.cpu()) and (eager, fused) == steps


def test_training_gives_the_bits_of_the_program_in_fewer_launches():
    def train(wrap):
        taeda.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)).to("far")
        optimizer = taeda.optim.AdamW(model.parameters(), 0.01, foreach=False)

        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        step = wrap(step)
        made, count = launches(lambda: [step(draw(5, 6, seed=i), draw(5, 3, seed=i)) for i in range(3)])
        return [t.cpu() for t in (*made, *model.parameters())], count

    (want, eager), (got, fused) = train(lambda f: f), train(taeda.compile)
    assert all(a.equal(b) for a, b in zip(want, got, strict=True)) and fused < eager


def test_results_that_are_not_returned_are_computed_when_they_are_read():
    kept = []
    taeda.compile(lambda x: kept.append(x * 2 + 1))(draw(3, 4))
    assert not fusion.is_computed(kept[0])
    assert kept[0].cpu().equal(draw(3, 4, device="cpu") * 2 + 1) and fusion.is_computed(kept[0])
    taeda.compile(lambda x: kept.append(x * 2 + 1))(draw(3, 4))
    found = []
    thread = threading.Thread(target=lambda: found.append(kept[1].tolist()))
    thread.start()
    thread.join()
    assert found == [kept[0].tolist()]


def test_programs_on_two_devices():
    def both(x):
        here = x * 2 + 1  # deferred on the CPU
        there = here.to("far") * 3 - 1
        back = there.cpu() + here
        return here.to("far") + there, back, there * taeda.tensor(2.0)  # a number of the CPU

    x = draw(80, 100, device="cpu")
    for a, b in zip(both(x), taeda.compile(both)(x), strict=True):
        assert a.device == b.device and a.cpu().equal(b.cpu())


def test_a_device_without_kernels_of_several_ops_runs_them_one_by_one():
    x = draw(3, 4, device="cpu")
    DESKS[0].launched.clear()
    made = taeda.compile(lambda x: (x + x) * x)(x.to("desk"))
    assert DESKS[0].launched.count("pointwise") == 2 and made.cpu().equal((x + x) * x)


def test_copies_of_a_storage_have_what_was_deferred():
    x = draw(7, 3)
    held, want = x.untyped_storage(), x.cpu() * 3

    def function(x):
        x.mul_(3)
        return held.cpu()

    assert taeda.compile(function)(x).tolist() == want.untyped_storage().tolist()

"""Memory of compiled steps: deferred tensors have none, and a replay shares its own."""

import copy
import gc

import pytest

import taeda
from taeda import nn
from taeda._core import fusion, memory

N = 1 << 18
MB = N * 4


def peak_of(step):
    """Bytes at the peak of a step, beyond those in use before it."""
    step()
    step()
    step()
    gc.collect()
    memory.reset_peak_memory_stats()
    before = memory.memory_stats()["allocated"]
    step()
    return memory.memory_stats()["peak_allocated"] - before


def chain():
    x, w = taeda.randn(N, requires_grad=True), taeda.randn(N, requires_grad=True)

    def step():
        y = taeda.tanh(x * w + 1)
        return taeda.autograd.grad((y * taeda.sigmoid(x)).sum(), (x, w))

    return step


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_a_chain_takes_memory_for_its_results_alone(mode):
    step = chain()
    assert peak_of(taeda.compile(step, mode=mode)) <= 2.2 * MB < peak_of(step)


def test_updates_in_place_take_no_memory():
    p, g, v = ([taeda.rand(N // 4) for _ in range(4)] for _ in range(3))

    @taeda.compile
    def step():
        for i in range(4):
            v[i].mul_(0.9).addcmul_(g[i], g[i], value=0.1)
            p[i].addcdiv_(g[i], v[i].sqrt().add_(1e-8), value=-1e-3)

    expected = [q - 1e-3 * h / ((0.9 * u + 0.1 * h * h).sqrt() + 1e-8) for q, h, u in zip(p, g, v, strict=True)]
    step()
    for q, e in zip(p, expected, strict=True):
        taeda.testing.assert_close(q, e)
    assert peak_of(step) < MB // 4


def test_gradients_of_the_step_before_are_free_while_a_replay_makes_new_ones():
    net = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
    optimizer, x = taeda.optim.SGD(net.parameters(), lr=1e-3), taeda.randn(64, 512)

    def step():
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step()
    eager = peak_of(step)
    replayed = peak_of(taeda.compile(step, mode="reduce-overhead"))
    assert replayed < 0.75 * eager  # with them it would be 2 MB, five times the eager peak, more


def test_the_gradient_of_a_maximum_lies_where_the_activation_did():
    """ReLU's derivative is computed plane by plane, as the gradients are put into place, over ReLU's result."""
    x = taeda.randn(16, 16, 32, 32, requires_grad=True)

    def step():
        return taeda.autograd.grad(nn.functional.max_pool2d(taeda.relu(x), 2).square().sum(), x)

    images = x.numel() * 4  # ReLU's result, then the gradient; of the pooled: values, places of 8 bytes, gradient
    assert peak_of(taeda.compile(step)) <= 2.05 * images < peak_of(step)
    assert taeda.equal(taeda.compile(step)()[0], step()[0])


def test_an_output_without_derivative_gets_no_gradient_of_zeros():
    x = taeda.randn(4, 16, 64, 64, requires_grad=True)
    y, _places = nn.functional.max_pool2d(x, 2, return_indices=True)
    ones = taeda.ones_like(y)
    memory.reset_peak_memory_stats()
    before = memory.memory_stats()["allocated"]
    taeda.autograd.grad(y, x, ones)
    assert memory.memory_stats()["peak_allocated"] - before < 1.2 * x.numel() * 4  # places take half of that


USES = {
    "a view": lambda t: t.view(2, -1)[1],
    "a view of a view": lambda t: t.view(2, -1).t()[5:9, 1],
    "its storage": lambda t: taeda.tensor(list(t.untyped_storage()[:8])),
    "a copy": copy.deepcopy,
    "detached": lambda t: t.detach(),
    "data": lambda t: t.data,
    "as another dtype": lambda t: t.view(taeda.int32),
    "written in place": lambda t: t.mul_(2).add_(1),
    "set": lambda t: taeda.empty(0).set_(t.untyped_storage(), 3, (5,)),
    "data of another": lambda t: setattr(u := taeda.empty(N), "data", t) or u,
    "chunks": lambda t: taeda.cat(t.chunk(4)[::-1]),
    "as strided": lambda t: t.as_strided((3, 4), (5, 1), 2),
    "shared": lambda t: t.share_memory_(),
    "resized": lambda t: t.resize_(N + 7)[:N],
    "swapped": lambda t: taeda.utils.swap_tensors(t, u := taeda.empty(3)) or u,
    "NumPy": lambda t: taeda.from_numpy(t.numpy()),
}


@pytest.mark.parametrize("use", USES)
def test_what_has_no_memory_yet_gets_it_where_it_is_used(use):
    x = taeda.rand(N)
    expected = USES[use](x * 3 + 1)
    before = fusion.defer_ops(True)
    try:
        t = x * 3 + 1
        assert not fusion.is_computed(t)
        found = USES[use](t)
    finally:
        fusion.defer_ops(before)
    assert taeda.equal(found, expected)
    if use not in ("written in place", "swapped"):
        del t
        assert taeda.equal(found, expected)


def test_a_storage_outlives_its_tensor():
    x = taeda.rand(N)
    before = fusion.defer_ops(True)
    try:
        t = x + 1
        storage = t.untyped_storage()
        u = t * 2  # reads what the storage holds
        del t
        gc.collect()
    finally:
        fusion.defer_ops(before)
    assert taeda.equal(taeda.empty(0).set_(storage, 0, (N,)), x + 1)
    assert taeda.equal(u, (x + 1) * 2)


def test_no_memory_is_an_error_that_may_be_tried_again():
    x = taeda.rand(16 * N)
    before = fusion.defer_ops(True)
    try:
        t = x + 1
        memory.set_memory_limit(memory.memory_stats()["allocated"] + MB)
        with pytest.raises(RuntimeError, match="out of memory"):
            t[0].item()
    finally:
        memory.set_memory_limit(None)
        fusion.defer_ops(before)
    assert taeda.equal(t, x + 1)

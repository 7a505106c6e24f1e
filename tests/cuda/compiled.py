"""Compiled programs on device cuda give the bits of the same programs run op by op, in fewer launches.

``test_cuda.py`` runs these tests on the emulated device.
"""

import os

import pytest

import taeda
import taeda.nn.functional as F
from taeda import cuda, nn
from taeda._core import fusion
from taeda.cuda import _native

from .graphs import there

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="there is no CUDA device")


def launches(function, *args):
    """What the function gives, and how many launches that takes."""
    before = _native.count_launches()
    made = function(*args)
    return made, _native.count_launches() - before


def chain(x, y):
    return ((x * y + 1.5).tanh() - x).relu()


# ---- launches --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif("TAEDA_CUDA" not in os.environ, reason="only the emulated device counts bytes")
@pytest.mark.parametrize("sizes", [(7, 3), (128, 200)])
def test_a_chain_is_one_launch_that_moves_each_operand_once(sizes):
    from .emulator import driver

    x, y = there(*sizes), there(*sizes, seed=1)
    compiled = taeda.compile(chain)
    compiled(x, y)
    want, eager = launches(chain, x, y)
    driver().check("count")
    got, fused = launches(compiled, x, y)
    driver().check("fast")
    assert got.equal(want) and (eager, fused) == (5, 1)
    moved = [c.of("global", way).wanted for c in driver().counters.values() for way in ("load", "store")]
    assert sum(moved) == 3 * 4 * x.numel()


@pytest.mark.parametrize("sizes", [(7, 3), (6, 300), (3, 6000)])
@pytest.mark.parametrize("function", [
    lambda x, y: (x * y + 1).sum(), lambda x, y: (x * y).abs().amax(1), lambda x, y: (x - y).tanh().mean(0),
    lambda x, y: (x * 2 + y[0]).softmax(-1), lambda x, y: (x * y[:, :1]).sigmoid().argmax(-1),
    lambda x, y: (x + y).var(1), lambda x, y: (x * y.t().contiguous().t()).norm(dim=1), lambda x, y: (x > y).any(1),
    lambda x, y: (x * y).exp().log_softmax(1), lambda x, y: ((x * 9).long() % 5).prod(1), lambda x, y: (x - y).cumsum(1),
    lambda x, y: F.layer_norm(x - y, x.shape[1:]), lambda x, y: (x.double() * y).logsumexp(1),
    lambda x, y: F.cross_entropy(x.erf() + y, (x[:, 0] > 0).long()), lambda x, y: (x * y).std(), lambda x, y: (-x).median(),
])  # fmt: skip
def test_reductions_and_rows_compute_what_they_read(function, sizes):
    x, y = there(*sizes), there(*sizes, seed=1)
    want, eager = launches(function, x, y)
    compiled = taeda.compile(function)
    got, fused = launches(compiled, x, y)
    assert got.cpu().equal(want.cpu()) and fused <= eager


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.other = nn.LayerNorm(16), nn.LayerNorm(16)
        self.into, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.wide, self.back = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.into(self.norm(x)).chunk(3, -1))
        weights = (q @ k.transpose(-1, -2) * 8**-0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        return x + self.back(F.gelu(self.wide(self.other(x))))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 3))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3), nn.SiLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip


PROGRAMS = {"mlp": (mlp, (5, 6)), "cnn": (cnn, (3, 1, 8, 8)), "block": (Block, (2, 4, 16)), "lstm": (LSTM, (3, 4, 6))}


def trained(name, wrap):
    """Losses, parameters and buffers after three steps, and the launches of the last step."""
    make, sizes = PROGRAMS[name]
    taeda.manual_seed(2)
    model = make().cuda()
    optimizer = taeda.optim.AdamW(model.parameters(), 0.01, foreach=name != "mlp")

    def step(x):
        optimizer.zero_grad()
        y = model(x)
        loss = F.cross_entropy(y, there(len(y), seed=9).argsort() % 3) if y.ndim == 2 else (y.sin() - x).square().mean()
        (loss * 2 + model(x).abs().mean()).backward()
        optimizer.step()
        return loss.detach()

    step = wrap(step)
    made = []
    for seed in range(3):
        loss, count = launches(step, there(*sizes, seed=seed))
        made.append(loss)
    return [*made, *model.parameters(), *model.buffers()], count


@pytest.mark.parametrize("name", PROGRAMS)
def test_training_gives_the_bits_of_calls_in_fewer_launches(name):
    (want, eager), (got, fused) = trained(name, lambda f: f), trained(name, taeda.compile)
    assert all(a.equal(b) for a, b in zip(want, got, strict=True)) and fused < eager


def test_modes_that_replay_calls_on_the_cpu_give_the_bits_of_calls():
    want, eager = trained("mlp", lambda f: f)
    got, fused = trained("mlp", lambda f: taeda.compile(f, mode="reduce-overhead"))
    assert all(a.equal(b) for a, b in zip(want, got, strict=True)) and fused < eager


# ---- streams ---------------------------------------------------------------------------------------------------------


def test_work_of_two_streams_is_deferred_on_its_own_and_waited_for():
    x = there(200, 100)
    first, second = cuda.Stream(), cuda.Stream()

    def run(x):
        first.wait_stream(cuda.current_stream())
        with cuda.stream(first):
            a = x * 2 + 1
            event = first.record_event()
        with cuda.stream(second):
            second.wait_event(event)
            b = (a - x) * 3
            a.record_stream(second)
        del a
        with cuda.stream(first):
            c = x.exp() * x
        cuda.current_stream().wait_stream(second)
        cuda.current_stream().wait_stream(first)
        return b + c, b

    want, got = run(x), taeda.compile(run)(x)
    for a, b in zip(want, got, strict=True):
        assert a.cpu().equal(b.cpu())


def test_an_operand_of_another_stream_is_computed_there():
    """The launches of both streams are in the order of the calls: the event comes between them."""
    x, side = there(200, 100), cuda.Stream()

    def run(x):
        y = x * 2
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            z = y + x
            z.mul_(y)
        cuda.current_stream().wait_stream(side)
        return z - y, y.add_(z)

    for a, b in zip(run(x), taeda.compile(run)(x), strict=True):
        assert a.cpu().equal(b.cpu())


def test_what_is_deferred_runs_before_an_event_though_nobody_reads_it():
    x, kept = there(200, 100), []
    taeda.compile(lambda x: kept.append(x * 2 + 1))(x)
    assert not fusion.is_computed(kept[0])
    cuda.Event().record()
    assert fusion.is_computed(kept[0]) and kept[0].cpu().equal(x.cpu() * 2 + 1)
    side = cuda.Stream()
    with cuda.stream(side):
        side.wait_stream(cuda.default_stream())
        taeda.compile(lambda x: kept.append(x * 3 + 1))(x)
    assert not fusion.is_computed(kept[1])
    side.synchronize()
    assert fusion.is_computed(kept[1]) and kept[1].cpu().equal(x.cpu() * 3 + 1)


def test_a_backward_pass_over_two_streams():
    x, w, side = there(20, 30), there(20, 30, seed=1), cuda.Stream()

    def run(x, w):
        w = w.detach().requires_grad_()
        y = (x * w).tanh()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            z = (y * x + w).sigmoid()
        cuda.current_stream().wait_stream(side)
        loss = (z * y).sum()
        loss.backward()
        return loss.detach(), w.grad

    for a, b in zip(run(x, w), taeda.compile(run)(x, w), strict=True):
        assert a.cpu().equal(b.cpu())


# ---- graphs ----------------------------------------------------------------------------------------------------------


def test_a_compiled_function_in_a_graph():
    x, y = there(200, 100), there(200, 100, seed=1)
    compiled = taeda.compile(chain)
    with cuda.stream(cuda.Stream()):
        compiled(x, y)
    cuda.synchronize()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        made = compiled(x, y)
    x.copy_(there(200, 100, seed=2))
    graph.replay()
    assert made.equal(chain(x, y))


def test_what_reads_the_memory_of_a_graph_runs_before_its_next_launch():
    x, kept = there(200, 100), []
    with cuda.stream(cuda.Stream()):
        x * 2
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        made = x * 2
    graph.replay()
    want = made.cpu() + 1
    taeda.compile(lambda t: kept.append(t + 1))(made)
    x.zero_()
    graph.replay()
    assert kept[0].cpu().equal(want)


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_an_index_out_of_range_is_named_with_the_line_of_the_user():
    def run(x, i):
        y = x * 2 + 1
        return y[i] - 1  # the line

    line = run.__code__.co_firstlineno + 2
    run = taeda.compile(run)
    run(there(4, 3), there(2).argsort())
    made = run(there(4, 3), taeda.tensor([0, 9], device="cuda"))
    with pytest.raises(IndexError, match=rf"index\(\): an index is out of range; called in .*compiled.py, line {line}"):
        made.cpu()
    assert run(there(4, 3), taeda.tensor([0, 3], device="cuda")).cpu().equal((there(4, 3) * 2 + 1)[[0, 3]].cpu() - 1)

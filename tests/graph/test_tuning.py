"""Autotuning: all variants of a replay give the same bits; the fastest by the clock is cached, and read again."""

import json
import subprocess
import sys

import pytest

import taeda
from taeda import nn
from taeda.graph import tuning
from taeda.graph.replay import Static
from taeda.nn import functional as F


class Clock:
    """A clock that advances by ``cost(variant, alone)`` between two readings around a call."""

    def __init__(self, cost):
        self.cost, self.now, self.step, self.asked = cost, 0.0, None, 0

    def __call__(self):
        self.asked += 1
        self.now += self.cost(*contest_of(self.step).turn)
        return self.now


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TAEDA_CACHE", str(tmp_path))
    return tmp_path


def contest_of(step):
    (contest,) = [trace for form in step._forms.values() for trace in form.traces]
    return contest


def tuned(function, monkeypatch, cost):
    """``function``, tuned by a clock of that cost."""
    step, clock = Static(function, tunes=True), Clock(cost)
    clock.step = step
    monkeypatch.setattr(tuning, "clock", clock)
    return step


def settle(step, *args):
    """Call until the choice is made; it."""
    for _ in range(60):
        step(*args)
        if contest_of_or_none(step) is not None:
            return json.loads(tuning.build.read_entry(tuning.kept()[-1]))
    raise AssertionError("no choice was made")


def contest_of_or_none(step):
    found = [trace for form in step._forms.values() for trace in form.traces if trace.chosen is not None]
    return found[0] if found else None


class Program:
    """A training step with dropout, small activations, and an optimiser."""

    def __init__(self):
        taeda.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Dropout(0.5), nn.Linear(32, 4))
        self.optimizer = taeda.optim.Adam(self.model.parameters(), lr=0.1)

    def step(self, x):
        h = self.model(x)
        loss = ((h * 2).tanh() + h.sigmoid() * 0.5 - h.exp().neg()).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def state(self):
        parameters = list(self.model.parameters())
        moments = [x for state in self.optimizer.state.values() for x in state.values()]
        return [*parameters, *[p.grad for p in parameters], *moments]


@pytest.mark.parametrize("best", ["usual", "all", "none"])
def test_every_call_is_the_eager_one_while_ways_take_turns_and_after(best, cache, monkeypatch):
    eager, other = Program(), Program()
    step = tuned(other.step, monkeypatch, lambda variant, alone: 1.0 if variant == best else 2.0)
    x = taeda.randn(256, 8)
    for i in range(40):
        taeda.manual_seed(i)
        want = eager.step(x)
        state = taeda.get_rng_state()
        taeda.manual_seed(i)
        got = step(x)
        assert taeda.equal(want, got) and taeda.equal(state, taeda.get_rng_state()), i
        assert all(taeda.equal(a, b) for a, b in zip(eager.state(), other.state(), strict=True)), i
    assert set(contest_of(step).traces) == {best} and contest_of(step).chosen is not None
    assert json.loads(tuning.build.read_entry(tuning.kept()[0]))["variant"] == best


def test_a_way_that_gains_little_is_not_taken(cache, monkeypatch):
    step = tuned(Program().step, monkeypatch, lambda variant, alone: 1.0 if variant == "usual" else 0.99)
    assert settle(step, taeda.randn(256, 8))["variant"] == "usual"


def chain(x):
    return ((x * 2).tanh() + x).sum(0)


@pytest.mark.parametrize(("by_itself", "shared", "keeps"), [(1e-6, 2e-6, True), (2e-6, 1e-6, False), (1.0, 2.0, False)])
def test_short_launches_keep_to_one_thread_where_that_is_quicker(by_itself, shared, keeps, cache, monkeypatch):
    taeda.set_num_threads(2)
    step, x = tuned(chain, monkeypatch, lambda variant, alone: by_itself if alone else shared), taeda.randn(600, 200)
    choice = settle(step, x)
    assert choice["variant"] == "usual" and bool(choice["alone"]) == keeps
    assert taeda.equal(step(x), chain(x))


def test_with_one_thread_and_one_way_nothing_is_measured(cache, monkeypatch):
    taeda.set_num_threads(1)
    step = tuned(lambda x: x @ x, monkeypatch, lambda variant, alone: 1.0)
    assert settle(step, taeda.randn(8, 8)) == {"variant": "usual", "alone": [], "steps": 1}
    assert tuning.clock.asked == 0


def test_a_choice_that_is_known_is_not_measured_again(cache, monkeypatch):
    step, x = tuned(Program().step, monkeypatch, lambda kind, alone: 1.0 if kind == "all" else 2.0), taeda.randn(256, 8)
    settle(step, x)
    step = tuned(Program().step, monkeypatch, lambda variant, alone: 1.0)
    assert settle(step, x)["variant"] == "all" and set(contest_of(step).traces) == {"all"}
    assert tuning.clock.asked == 0
    step(taeda.randn(257, 8))  # another size is another choice
    assert len(step._forms) == 2


def test_a_torn_file_is_no_choice(cache, monkeypatch):
    step, x = tuned(Program().step, monkeypatch, lambda kind, alone: 1.0 if kind == "all" else 2.0), taeda.randn(256, 8)
    settle(step, x)
    (path,) = tuning.kept()
    path.write_bytes(path.read_bytes()[:-3])
    step = tuned(Program().step, monkeypatch, lambda variant, alone: 1.0 if variant == "none" else 2.0)
    assert settle(step, x)["variant"] == "none"


SECOND = """
import sys, taeda
from taeda.graph import tuning

now = 0.0
def clock():
    global now
    if sys.argv[1] == "second":
        raise AssertionError("measured again")
    now += 1.0
    return now

tuning.clock = clock
taeda.manual_seed(0)
w, x = taeda.randn(16, 16), taeda.randn(16, 16)
want = ((x * w).tanh() + w).sigmoid() * x
compiled = taeda.compile(lambda x: ((x * w).tanh() + w).sigmoid() * x, mode="max-autotune")
assert all(taeda.equal(compiled(x), want) for _ in range(40))
assert all(trace.chosen is not None for form in compiled.runner._forms.values() for trace in form.traces)
print(len(tuning.kept()), now > 0)
"""


def test_a_second_process_reads_what_the_first_has_measured(cache, run_python):
    assert run_python(SECOND, "first", TAEDA_CACHE=str(cache)) == "1 True\n"
    assert run_python(SECOND, "second", TAEDA_CACHE=str(cache)) == "1 False\n"
    done = subprocess.run(
        [sys.executable, "-m", "taeda.compiler", "--clear"], capture_output=True, text=True, check=True
    )
    assert "1 choices" in done.stdout and "removed" in done.stdout and tuning.kept() == []


def test_the_mode_measures_and_reduce_overhead_does_not(cache, monkeypatch):
    step = tuned(chain, monkeypatch, lambda variant, alone: 1.0)
    compiled, x = taeda.compile(chain, mode="reduce-overhead"), taeda.randn(16, 16)
    for _ in range(8):
        compiled(x)
    assert tuning.kept() == [] and tuning.clock.asked == 0 and not step._forms
    layer = nn.Linear(4, 4)
    compiled = taeda.compile(lambda x: F.relu(layer(x)), mode="max-autotune")
    tuning.clock.step = compiled
    assert compiled.__name__ and taeda.equal(compiled(taeda.ones(2, 4)), F.relu(layer(taeda.ones(2, 4))))
    assert compiled.runner.tunes

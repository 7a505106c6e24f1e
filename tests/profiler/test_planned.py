"""What a step would take, read off device meta, against formulas and against the step itself."""

import pytest

import taeda
from taeda import nn
from taeda._core.memory import memory_stats, reset_peak_memory_stats
from taeda.profiler import plan


def _step(model, x, optimizer):
    loss = nn.functional.cross_entropy(model(x), x.argmax(1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def _made(device):
    with taeda.device(device):
        model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512))
        return model, taeda.ones(256, 512), taeda.optim.AdamW(model.parameters())


def test_flops_of_a_step():
    found = plan(_step, *_made("meta"))
    product = 2 * 256 * 512 * 1024  # two layers; forward, and backward for each weight and for the second one's input
    assert found.flops == 5 * product == sum(found.flops_by_op.values())
    assert found.result.is_meta and found.result.shape == ()


def test_bytes_of_a_step():
    """The same as on the CPU, within what size classes round up."""
    model, x, optimizer = _made("meta")
    found = plan(_step, model, x, optimizer)
    kept = sum(t.nbytes for s in optimizer.state.values() for t in s.values() if t.is_meta)
    assert found.bytes_after - found.bytes_before == kept + found.result.nbytes

    model, x, optimizer = _made("cpu")
    before = memory_stats()["allocated"]
    reset_peak_memory_stats()
    _step(model, x, optimizer)
    peak = memory_stats()["peak_allocated"] - before
    assert found.peak_bytes - found.bytes_before == pytest.approx(peak, rel=0.15)


def test_nothing_is_allocated_and_the_generator_rests():
    state, before = taeda.get_rng_state(), memory_stats()["reserved"]
    with taeda.device("meta"):
        model, x = nn.Sequential(nn.Linear(1 << 16, 1 << 16), nn.Dropout(0.5)), taeda.empty(8, 1 << 16)
    found = plan(lambda: model(x).sum().backward())
    assert found.peak_bytes > 2 * 4 << 32  # the weight and its gradient
    assert memory_stats()["reserved"] - before < 1 << 20
    assert taeda.equal(state, taeda.get_rng_state())

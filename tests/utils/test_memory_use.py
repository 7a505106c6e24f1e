"""``taeda.utils.memory_use``: bytes by kind and module, beside what is known of the model."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda.utils import memory_use

WIDTH, BATCH = 256, 512


def make(**options):
    taeda.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(4)]).to(**options)
    optimizer = taeda.optim.Adam(model.parameters(), foreach=False)
    x = taeda.randn(BATCH, WIDTH, **options)

    def step():
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return model, optimizer, x, step


@pytest.fixture(scope="module")
def use():
    model, optimizer, _, step = make()
    step()
    return memory_use(step, model, optimizer)


def bytes_of(tensors):
    return sum(t.nbytes for t in tensors)


def test_kinds():
    model, optimizer, x, step = make()
    step()
    use = memory_use(step, model, optimizer)
    before, at_peak, after = use.by_kind(0.0), use.by_kind(), use.by_kind(use.seconds)
    own = bytes_of(model.parameters())
    for held in (before, at_peak, after):
        assert held["parameters"] == own
        assert 2 * own <= held["optimizer"] <= 2 * own + 64 * len(list(model.parameters()))
    assert before["gradients"] == after["gradients"] == own  # zero_grad() drops them, the backward pass makes new ones
    assert before["activations"] == after["activations"] == after["backward"] == 0
    assert at_peak["activations"] >= 4 * x.nbytes  # what the four tanh give
    assert use.peak >= at_peak["activations"] + own
    assert math.isfinite(use.result) and len(optimizer.state) == len(list(model.parameters()))


def test_modules(use):
    held = use.by_module()
    for i in range(4):
        assert held[f"{i}.1", "activations"] >= BATCH * WIDTH * 4
        assert held[f"{i}.0", "parameters"] == (WIDTH + 1) * WIDTH * 4
    shallow = use.by_module(depth=1)
    assert shallow["2", "activations"] == sum(n for (path, kind), n in held.items()
                                              if path[:1] == "2" and kind == "activations")  # fmt: skip
    made = [block for block in use.blocks if block.kind == "backward"]
    assert made and {block.module[:1] for block in made} >= {"0", "1", "2", "3"}


def test_blocks_end_when_they_are_freed(use):
    freed = [block for block in use.blocks if block.kind == "activations"]
    assert all(block.ended is not None and block.begun < block.ended <= use.seconds for block in freed)
    assert all(block.ended is None for block in use.blocks if block.kind in ("parameters", "optimizer"))
    gradients = [block for block in use.blocks if block.kind == "gradients"]
    old = [block for block in gradients if block.begun == 0]
    assert len(gradients) == 2 * len(old) and all(block.ended is not None for block in old)
    assert [block.nbytes for block in use.at(0.0)] == sorted((b.nbytes for b in use.at(0.0)), reverse=True)


def test_what_is_left_is_as_it_was():
    model, optimizer, _, step = make()
    other, _, _, plain = make()
    for _ in range(2):
        step()
        plain()
    memory_use(step, model, optimizer)
    plain()
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert taeda.equal(p, q)


def test_device_meta_tells_what_a_step_would_take():
    model, _, x, _ = make(device="meta")
    found = memory_use(lambda: model(x).sum().backward(), model)
    held = found.by_kind()
    assert held["parameters"] == bytes_of(model.parameters()) and held["activations"] >= 3 * x.nbytes
    assert found.by_kind(found.seconds)["gradients"] == bytes_of(model.parameters())


def test_an_error_in_the_step_leaves_nothing_on():
    model, optimizer, _, step = make()
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        memory_use(lambda: model(taeda.randn(2, 3)), model, optimizer)
    assert not taeda._core.mode_stack()
    step()
    assert all(p.grad is not None for p in model.parameters())


def test_memory_that_the_allocator_does_not_count_is_left_out():
    model, optimizer, _, step = make()
    step()
    kept = [
        taeda.from_numpy(np.zeros(1 << 22)),
        taeda.zeros(1 << 22, device="meta"),
        taeda.zeros(1 << 20).share_memory_(),
    ]
    made = memory_use(step, model, optimizer)
    assert max(map(sum, zip(*made._steps()[1].values(), strict=True))) <= 1.02 * made.peak
    del kept


def test_the_picture_is_no_higher_than_the_peak(use):
    xs, layers = use._steps()
    heights = [sum(values) for values in zip(*layers.values(), strict=True)]
    assert len(xs) == len(heights) + 1 and xs == sorted(xs)
    assert 0.8 * use.peak <= max(heights) <= 1.02 * use.peak
    assert heights[0] <= max(heights)


def test_pictures_and_text(use, tmp_path):
    text = str(use)
    assert text.startswith("at most ") and "activations" in text and "3.1" in text
    picture = ElementTree.fromstring(use.svg())
    titles = [e.text for e in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert {"parameters", "optimizer", "gradients", "activations", "backward"} <= set(titles[1:])
    assert "buffers" not in titles and "<svg" in use._repr_html_()
    for name in ("memory.svg", "memory.html"):
        use.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(ValueError, match="png"):
        use.save(tmp_path / "memory.png")


def test_without_a_model():
    use = memory_use(lambda: taeda.randn(1000, 1000).exp().sum())
    assert use.peak >= 8_000_000 and use.by_kind()["temporary"] == 8_000_000
    made = [block for block in use.blocks if block.nbytes == 4_000_000 and block.kind == "temporary"]
    assert [block.op for block in made] == ["made outside of ops", "exp"] and all(block.ended for block in made)

"""``taeda.utils.summary``: what it says of models, beside the flop counter and what is known of them."""

import re

import pytest

import taeda
from taeda import nn
from taeda.utils import summary
from taeda.utils.flop_counter import FlopCounterMode


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.5), nn.Linear(2 * width, width))

    def forward(self, x, scale=1.0):
        h = self.norm(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + scale * self.mlp(x)


def calls(table):
    return {row.call.path: row.call for row in table.rows()}


def test_layers_sizes_and_flops():
    model, x = Block(8), taeda.randn(2, 5, 8)
    table = summary(model, x)
    found = calls(table)
    assert list(found) == ["", "norm", "attention", "mlp", "mlp.0", "mlp.1", "mlp.2", "mlp.3"]
    assert found["mlp.0"].outputs[0].shape == (2, 5, 16)
    assert table.parameters == table.trained == sum(p.numel() for p in model.parameters())
    with FlopCounterMode(display=False) as counter:
        model(x)
    counts = counter.get_flop_counts()
    for path, call in found.items():
        name = "Block" + (f".{path}" if path else "")
        assert call.all_flops() == sum(counts.get(name, {}).values()), path
    assert found["mlp"].all_flops() == 2 * 2 * (2 * 5) * 8 * 16
    assert all(call.seconds > 0 for call in found.values())
    assert found[""].seconds >= found["mlp"].seconds >= found["mlp.0"].seconds


def test_memory_is_what_the_allocator_gave():
    model = nn.Sequential(nn.Linear(64, 4096), nn.Linear(4096, 1))
    with taeda.no_grad():
        found = calls(summary(model, taeda.randn(256, 64)))
    hidden = 256 * 4096 * 4
    assert hidden <= found["0"].peak < 1.3 * hidden
    assert found[""].peak >= hidden > found["1"].peak


def test_text_and_html():
    table = summary(Block(8), taeda.randn(2, 5, 8), depth=1, kwargs={"scale": 0.5})
    text = str(table)
    assert repr(table) == text
    assert re.search(r"^  mlp: Sequential +\[2, 5, 8\] +280 +5\.12 k +[\d.]+[mu]s", text, re.M)
    assert "Dropout" not in text  # deeper than 1
    assert "parameters: 584, of them trained: 584" in text
    page = table._repr_html_()
    assert page.count("<tr>") == 1 + 4
    assert "mlp: Sequential" in page


def test_layers_that_repeat_are_one_row():
    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = nn.ModuleList(Block(8) for _ in range(12))
            self.head = nn.Sequential(*[m for _ in range(3) for m in (nn.Linear(8, 8), nn.ReLU())])

        def forward(self, x):
            for block in self.h:
                x = block(x)
            return self.head(x)

    model, x = GPT(), taeda.randn(2, 5, 8)
    table = summary(model, x)
    text = str(table)
    rows = re.findall(r"^( +\S.*?)  ", text, re.M)
    assert rows == [
        "  h.0 ... 11: Block x 12", "    norm: LayerNorm", "    attention: MultiheadAttention", "    mlp: Sequential",
        "      0: Linear", "      1: GELU", "      2: Dropout", "      3: Linear",
        "  head: Sequential", "    2 layers x 3", "      0: Linear", "      1: ReLU",
    ]  # fmt: skip
    block = next(row for row in table.rows() if row.call.path == "h.0")
    assert [part[0].path for part in block.alike] == [f"h.{i}" for i in range(12)]
    assert re.search(r"Block x 12 +\[2, 5, 8\] +584 ", text)
    assert "the mean time" in text and "Block \N{MULTIPLICATION SIGN} 12" in table._repr_html_()
    every = summary(model, x, fold=False)
    assert len(list(every.rows())) == 1 + 12 * 8 + 7 and " x " not in str(every)


def test_names_are_escaped():
    class A(nn.Module):
        def forward(self, x):
            return x + 1

    A.__name__ = "<b>A</b>"
    page = summary(A(), taeda.ones(2))._repr_html_()
    assert "<b>" not in page and "&lt;b&gt;A" in page


def test_shared_modules_and_parameters_count_once():
    layer = nn.Linear(4, 4)
    table = summary(nn.Sequential(layer, layer), taeda.ones(1, 4))
    assert table.parameters == 20
    assert str(table).count("again") == 1


def test_the_model_is_as_before():
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5))
    x = taeda.randn(8, 4)
    taeda.manual_seed(3)
    summary(model, x)
    assert model[0].num_batches_tracked.item() == 0
    assert taeda.equal(model[0].running_mean, taeda.zeros(4))
    following = taeda.rand(3)
    taeda.manual_seed(3)
    assert taeda.equal(following, taeda.rand(3))
    assert model.training


def test_meta_has_memory_and_no_time():
    with taeda.device("meta"):
        model, x = nn.Linear(1000, 1000), taeda.randn(8, 1000)
        call = summary(model, x).call
    assert call.seconds == 0
    assert call.peak == 8 * 1000 * 4
    assert call.all_flops() == 2 * 8 * 1000 * 1000


def test_errors_pass_and_nothing_stays_on():
    with pytest.raises(RuntimeError, match="expects 12"):
        summary(nn.Sequential(nn.Linear(12, 8)), taeda.ones(4, 16))
    assert not taeda._core.mode_stack()
    assert not nn.modules._hooks.forward_hooks and not nn.modules._hooks.forward_pre_hooks
    with pytest.raises(TypeError, match=r"summary\(\): expected a Module, got function"):
        summary(lambda x: x, taeda.ones(1))
    with pytest.raises(TypeError, match=r"Sequential is called with input: give this after the model"):
        summary(nn.Sequential(nn.Linear(12, 8)))

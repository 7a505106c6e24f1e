"""``taeda.utils.Curves`` and ``taeda.utils.histograms``: their numbers, text and pictures."""

import math
import sys
import types
import xml.etree.ElementTree as ElementTree

import pytest

import taeda
from taeda import nn
from taeda.utils import Curves, _charts, histograms

SVG = "{http://www.w3.org/2000/svg}"


def test_numbers_and_steps():
    curves = Curves()
    for i in range(5):
        curves.add(loss=taeda.tensor(5.0 - i))
    curves.add(10, loss=0.5, accuracy=1)
    curves.add(accuracy=0.5)
    assert curves.values == {"loss": [5, 4, 3, 2, 1, 0.5], "accuracy": [1, 0.5]}
    assert curves.steps == {"loss": [0, 1, 2, 3, 4, 10], "accuracy": [10, 11]}
    assert repr(curves) == "<Curves of loss (6), accuracy (2)>" and repr(Curves()) == "<Curves of nothing>"


def test_text_shows_the_curve():
    curves = Curves()
    for i in range(40):
        curves.add(up=i)
    lines = curves.text(width=20, height=5).splitlines()
    assert lines[0] == "up, now 39" and lines[1].startswith("39 ┤") and lines[5].startswith(" 0 ┤")
    filled = [[c for c, char in enumerate(line.split("┤")[1]) if char != chr(0x2800)] for line in lines[1:6]]
    assert filled[0][-1] == 19 and filled[4][0] == 0 and filled[2][0] > filled[3][0] > filled[4][0]
    assert Curves().text() == ""


def test_what_is_not_finite_is_left_out():
    curves = Curves(log=True)
    for value in (1.0, math.nan, 0.1, 0.0, math.inf, 0.01):
        curves.add(loss=value)
    assert "loss, now 0.01" in curves.text() and "nan" not in curves.svg()
    empty = Curves()
    empty.add(loss=math.nan)
    assert empty.text().startswith("loss\n") and ElementTree.fromstring(empty.svg()) is not None


def test_pictures(tmp_path):
    curves = Curves(together=[("train", "valid")])
    for i in range(10):
        curves.add(train=1 / (1 + i), valid=2 / (1 + i), accuracy=i)
    html = curves._repr_html_()
    assert html.count("<svg") == 2
    picture = ElementTree.fromstring(curves.svg("train", "valid"))
    drawn = [path for path in picture.iter(f"{SVG}path") if path.get("stroke")]
    assert len(drawn) == 2 and all(path.get("d").count("L") == 9 for path in drawn)
    curves.save(tmp_path / "c.svg")
    assert ElementTree.parse(tmp_path / "c.svg") is not None
    with pytest.raises(ValueError, match="pdf"):
        curves.save(tmp_path / "c.pdf")


def test_live_in_a_terminal(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    curves = Curves(live=0.0)
    curves.add(loss=1.0)
    curves.add(loss=0.5)
    assert capsys.readouterr().out.count("loss, now") == 2
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    curves.add(loss=0.25)
    assert capsys.readouterr().out.startswith("\x1b[10F\x1b[J")
    quiet = Curves()
    quiet.add(loss=1.0)
    assert capsys.readouterr().out == ""


def test_live_in_a_notebook(monkeypatch, capsys):
    shown = []
    handle = types.SimpleNamespace(update=lambda thing: shown.append(("again", thing)))
    notebook = types.ModuleType("IPython")
    notebook.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    display = types.ModuleType("IPython.display")
    display.display = lambda thing, display_id: (shown.append(("first", thing)), handle)[1]
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    curves = Curves(live=0.0)
    curves.add(loss=1.0)
    curves.add(loss=0.5)
    assert shown == [("first", curves), ("again", curves)] and capsys.readouterr().out == ""


@pytest.mark.parametrize("low, high", [(0, 1), (-3, 7), (0, 1e-9), (12345, 12346), (0, 3e12), (5, 5)])
def test_ticks_are_round_and_inside(low, high):
    found = _charts.ticks(low, high)
    assert 1 <= len(found) <= 7 and all(low - 1e-9 * abs(low) <= t <= high + 1e-9 * abs(high) for t in found)


def test_histograms_count_every_number():
    taeda.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    x = taeda.randn(64, 8)
    found = histograms(lambda: model(x).sum().backward(), model)
    kinds = [(row.module, row.kind) for row in found.rows]
    assert kinds[:6] == [(m, k) for m in "012" for k in ("activation", "gradient")]
    assert ("0.weight", "parameter") in kinds and ("2.bias", "parameter gradient") in kinds
    with taeda.no_grad():
        h = model[0](x)
    row = found.of("0")
    assert sum(row.counts) == h.numel() and row.shape == (64, 32)
    assert (
        row.low == h.min().item()
        and row.high == h.max().item()
        and row.mean == pytest.approx(h.mean().item(), abs=1e-6)
    )
    assert row.std == pytest.approx(h.std(correction=0).item(), rel=1e-5)
    relu = found.of("1")
    assert relu.zeros == pytest.approx((h <= 0).float().mean().item()) and relu.low == 0
    gradient = found.of("1", "gradient")
    assert gradient.mean == pytest.approx(model[2].weight.mean().item(), abs=1e-6)
    with pytest.raises(KeyError, match=r"'3'"):
        found.of("3")


def test_histograms_say_what_looks_wrong():
    class Bad(nn.Module):
        def forward(self, x):
            return taeda.where(x > 100, x, taeda.zeros_like(x)), (x - 1000).log()

    model = nn.Sequential(nn.Linear(2, 2), Bad())
    found = histograms(lambda: model(taeda.ones(3, 2)), model, parameters=False)
    notes = [row.notes for row in found.rows]
    assert notes == ["", "all 0", "6 NaN or infinite"]
    assert found.rows[2].counts == (0,) * 24 and math.isnan(found.rows[2].mean)
    tiny = nn.Linear(2, 2)
    again = histograms(lambda: (tiny(taeda.ones(3, 2)) * 1e-9).sum().backward(), tiny, parameters=False)
    assert again.of("", "gradient").notes == "vanishing"


def test_histograms_as_text_and_page(tmp_path):
    model = nn.Sequential(nn.Embedding(10, 4), nn.LSTM(4, 3, batch_first=True))
    found = histograms(lambda: model(taeda.randint(10, (2, 5)))[0].sum().backward(), model)
    assert [row.kind for row in found.rows if row.module == "1"] == [
        "activation",
        "gradient",
        "activation",
        "activation",
    ]
    text = str(found)
    assert "█" in text and "weight_hh_l0" in text
    assert ElementTree.fromstring(found._repr_html_()) is not None
    found.save(tmp_path / "h.html")
    with pytest.raises(ValueError, match="svg"):
        found.save(tmp_path / "h.svg")
    with pytest.raises(TypeError, match="Module"):
        histograms(lambda: None, 3)


def test_hooks_are_gone():
    model = nn.Linear(2, 2)
    histograms(lambda: model(taeda.ones(1, 2)).sum().backward(), model)
    assert not model._forward_hooks

"""The programs in the documentation and the small examples run, and end where they should."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def _blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)


def _run(name: str, monkeypatch, *args: str) -> None:
    monkeypatch.setattr(sys, "argv", [name, *args])
    runpy.run_path(str(ROOT / name), run_name="__main__")


@pytest.mark.parametrize("page", ["README.md", "docs/kernels.md", "docs/profiling.md"])
def test_code_in_pages(page):
    names: dict = {}
    blocks = _blocks(page)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    if page == "README.md":
        assert names["loss"].item() < 0.5


def test_tour(monkeypatch, capsys):
    _run("docs/tour.py", monkeypatch)
    text = capsys.readouterr().out
    assert "right 100.0%" in text
    assert "gradient agrees with finite differences: True" in text


def test_regression(monkeypatch, capsys):
    _run("examples/regression.py", monkeypatch)
    assert capsys.readouterr().out.startswith("y = 3.0")


def test_custom_function(monkeypatch, capsys):
    _run("examples/custom_function.py", monkeypatch)
    assert "[3.0, -1.0, 4.0]" in capsys.readouterr().out


def test_digits(monkeypatch, capsys):
    pytest.importorskip("sklearn")
    _run("examples/digits.py", monkeypatch, "--epochs", "3")
    accuracy = float(capsys.readouterr().out.split()[-1].rstrip("%"))
    assert accuracy > 90


def test_vae(monkeypatch, capsys):
    pytest.importorskip("sklearn")
    _run("examples/vae.py", monkeypatch, "--epochs", "10")
    nats = float(capsys.readouterr().out.split(":")[1].split()[0])
    assert nats < 27


def test_char_gpt_learns(monkeypatch, capsys, tmp_path):
    pytest.importorskip("tqdm")
    pytest.importorskip("matplotlib")
    _run("examples/char_gpt.py", monkeypatch, "--steps", "60", "--plot", str(tmp_path / "curve.png"))
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"held-out loss: \d\.\d\d nats/char", last)
    assert float(last.split()[2]) < 3.0
    assert (tmp_path / "curve.png").stat().st_size > 5000

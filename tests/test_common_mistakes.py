"""Mistakes that people make, and what taeda says to them."""

import importlib.util
import sys
from pathlib import Path

import pytest
from common_mistakes import MISTAKES, finding, message, names

import taeda

ROOT = Path(__file__).parents[1]
#: On a machine with a GPU one of them is none.
without_gpu = pytest.mark.skipif(taeda.cuda.is_available(), reason="the GPU is there")
by_title = pytest.mark.parametrize(
    "one",
    [pytest.param(m, marks=without_gpu) if m.title == "a GPU that is not there" else m for m in MISTAKES],
    ids=[m.title for m in MISTAKES],
)


@by_title
def test_the_message_names_cause_and_mend(one):
    if one.works:
        one.program(taeda)
        return
    if one.error is None:
        text = finding(one, taeda)
    else:
        kind, text = message(one, taeda)
        assert kind is not None and issubclass(kind, one.error)
    assert names(one, text) == (bool(one.cause), bool(one.mend)), text
    assert not one.where or f"module: {one.where} = " in text or f"module: {one.where}(" in text, text


@by_title
def test_it_is_no_worse_than_pytorch_and_of_its_type(one):
    torch = pytest.importorskip("torch")
    if one.error is None and not one.works:
        pytest.skip("no error tells of it")
    kind, text = message(one, torch)
    assert kind is not None
    if one.works:
        return
    assert issubclass(one.error, kind)
    assert all(ours or not theirs for ours, theirs in zip((one.cause, one.mend), names(one, text), strict=True)), text
    assert one.torch == "".join(letter for letter, named in zip("cm", names(one, text), strict=True) if named)


def test_most_name_both():
    assert len(MISTAKES) == 83
    assert sum(bool(one.error and one.cause and one.mend) for one in MISTAKES) >= 65  # check_step's apart


@without_gpu
def test_the_page_shows_them():
    spec = importlib.util.spec_from_file_location("errors_page", ROOT / "tools" / "errors.py")
    page = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = page
    spec.loader.exec_module(page)
    assert (ROOT / "docs" / "errors.md").read_text() == page.render()

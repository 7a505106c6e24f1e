"""The examples in docstrings run and print what they say, and ever fewer public names are without one."""

import doctest
import math
from pathlib import Path

import numpy as np
import pytest

import taeda

TOOLS = Path(__file__).resolve().parents[1] / "tools"

#: Public names without an example, by namespace. A smaller number is written here when examples are added: it never
#: grows. What a row counts is said in tools/docs_coverage.py, and its ``--missing example`` lists the names.
WITHOUT_EXAMPLE = {
    "": 581,
    "Tensor": 452,
    "nn": 167,
    "nn.functional": 121,
    "nn.init": 15,
    "nn.utils": 18,
    "nn.utils.parametrizations": 3,
    "nn.utils.parametrize": 7,
    "nn.utils.prune": 17,
    "nn.utils.rnn": 8,
    "optim": 16,
    "optim.lr_scheduler": 16,
    "optim.swa_utils": 7,
    "utils.data": 19,
    "func": 13,
    "autograd": 16,
    "autograd.functional": 6,
    "autograd.graph": 10,
    "autograd.forward_ad": 6,
    "linalg": 42,
    "fft": 22,
    "special": 56,
    "signal.windows": 11,
    "sparse": 15,
    "distributions": 67,
    "distributions.constraints": 15,
    "library": 11,
    "profiler": 18,
    "export": 16,
}


@pytest.fixture(scope="module")
def coverage():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOOLS)
        import docs_coverage
    return docs_coverage


@pytest.fixture(scope="module")
def texts(coverage):
    """The distinct docstrings with examples, by namespace."""
    found = {}
    for namespace, name, doc in coverage.examples():
        found.setdefault(namespace, []).append((name, doc))
    return found


@pytest.mark.parametrize("namespace", WITHOUT_EXAMPLE)
def test_examples(namespace, texts, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    taeda.set_printoptions(profile="default")
    reports = []
    for name, doc in texts.get(namespace, ()):
        names = {"taeda": taeda, "nn": taeda.nn, "F": taeda.nn.functional, "math": math, "np": np}
        test = doctest.DocTestParser().get_doctest(doc, names, f"{namespace}.{name}".lstrip("."), None, 0)
        taeda.manual_seed(0)
        doctest.DocTestRunner(verbose=False).run(test, out=reports.append)
        assert taeda.is_grad_enabled() and taeda.get_default_dtype() is taeda.float32, (
            f"{name}'s example leaves a mode on"
        )
    assert not reports, "".join(reports)


def test_examples_become_more(coverage):
    counts = {
        namespace: sum(not facts["example"] for facts in names.values())
        for namespace, names in coverage.rows("taeda", coverage.NAMESPACES)
    }
    assert counts.keys() == WITHOUT_EXAMPLE.keys()
    assert {n: c for n, c in counts.items() if c > WITHOUT_EXAMPLE[n]} == {}, "new public names without an example"


def test_a_wrong_example_is_found(texts, monkeypatch, tmp_path):
    broken = {"": [("add", ">>> taeda.tensor(1) + 1\ntensor(3)\n")]}
    with pytest.raises(AssertionError, match="Failed example"):
        test_examples("", broken, monkeypatch, tmp_path)

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
    "": 0,
    "Tensor": 8,
    "nn": 0,
    "nn.functional": 25,
    "nn.init": 0,
    "nn.utils": 0,
    "nn.utils.parametrizations": 0,
    "nn.utils.parametrize": 0,
    "nn.utils.prune": 0,
    "nn.utils.rnn": 0,
    "optim": 0,
    "optim.lr_scheduler": 0,
    "optim.swa_utils": 0,
    "utils.data": 0,
    "func": 0,
    "autograd": 2,
    "autograd.functional": 0,
    "autograd.graph": 1,
    "autograd.forward_ad": 0,
    "linalg": 0,
    "fft": 0,
    "special": 0,
    "signal.windows": 0,
    "sparse": 2,
    "distributions": 0,
    "distributions.constraints": 0,
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

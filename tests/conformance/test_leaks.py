"""After every entry of the operator database, and its gradients of first and second order, no memory is left."""

import pytest

import taeda

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.checks import entries
from .opdb.leaks import attempt, check


@pytest.mark.parametrize("name", sorted(entries())[::60])
def test_some_entries(name):
    assert not any(check(entries()[name]))


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(entries()))
def test_entry(name):
    assert not any(check(entries()[name], 2))


def test_what_is_kept_is_found():
    kept = []

    def keep(x):
        kept.append(x * 2)
        return x

    def tie(x):
        cycle = [x * 2]
        cycle.append(cycle)
        return x

    assert "bytes of tensors" in attempt(keep, [taeda.ones(128)], {})
    assert "bytes of tensors" in attempt(tie, [taeda.ones(128)], {})
    assert not attempt(lambda x: x * 2, [taeda.ones(128)], {})

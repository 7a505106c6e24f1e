"""Device meta gives the forms that PyTorch gives: results and gradients of every entry of the operator database."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.checks import entries
from .opdb.exceptions import META
from .opdb.meta import check


def _check(name, limit):
    found = check(entries()[name], limit)
    assert not found or name in META, found


@pytest.mark.parametrize("name", sorted(entries()))
def test_entry(name):
    _check(name, 1)


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(entries()))
def test_all_samples(name):
    _check(name, None)

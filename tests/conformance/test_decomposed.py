"""Every entry of the operator database, exported and decomposed, gives what it gives."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.checks import entries
from .opdb.decomposed import check


@pytest.mark.parametrize("name", sorted(entries()))
def test_entry(name):
    for _ in check(entries()[name], 1):
        pass


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(entries()))
def test_all_samples(name):
    for _ in check(entries()[name], None):
        pass

"""Entries of the operator database, exported and decomposed, give what they give, and in as few ops as PyTorch's."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.checks import entries
from .opdb.decomposed import check, left_by_pytorch

NAMES = sorted(entries())


@pytest.mark.parametrize("name", NAMES[::7])
def test_some(name):
    for _ in check(entries()[name], 1):
        pass


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", NAMES)
def test_canonical_where_pytorch_is_core(name):
    found = list(check(entries()[name], 1))
    if any(found):
        assert left_by_pytorch(entries()[name]) != set(), found


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", NAMES)
def test_all_samples(name):
    for _ in check(entries()[name], None):
        pass

"""Every entry of the operator database gives compiled what it gives eagerly, bit for bit, forward and backward."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.checks import entries
from .opdb.compiled import attempt_pass, check

#: What is in their results is not said.
UNSPECIFIED = frozenset("empty empty_like empty_strided empty_permuted new_empty new_empty_strided".split())


@pytest.mark.parametrize("name", sorted(set(entries()) - UNSPECIFIED))
def test_entry(name):
    assert not any(check(entries()[name], 2))


@pytest.mark.parametrize("name", sorted(set(entries()) - UNSPECIFIED))
def test_entry_whose_backward_pass_is_repeated(name):
    assert not any(check(entries()[name], 2, attempt_pass))


@pytest.mark.parametrize("name", sorted(set(entries()) - UNSPECIFIED))
def test_entry_by_graphs_of_a_backend(name):
    assert not any(check(entries()[name], 1, backend=lambda module, inputs: module.forward))


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(set(entries()) - UNSPECIFIED))
def test_all_samples(name):
    assert not any(check(entries()[name], None))
    assert not any(check(entries()[name], None, attempt_pass))

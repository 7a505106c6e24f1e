"""Every entry of the operator database repeated from its plan gives what it gave, bit for bit, or says why there is no plan."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.checks import entries
from .opdb.plans import check

#: Why a call cannot be repeated from its launches.
REASONS = (
    "- LAPACK is called", "- the state of a generator", "- numbers are drawn", "- the body does something else on device meta", "- Cannot copy out of meta",
    "- RuntimeError: Tensor.item()", "- Size is given back",
    "- elements are counted", "- the body writes to a block",
)  # fmt: skip
#: What is in their results is not said.
UNSPECIFIED = frozenset("empty empty_like empty_strided empty_permuted new_empty new_empty_strided".split())


def _check(name, limit):
    for found in check(entries()[name], limit):
        assert not found or name in UNSPECIFIED or "depends on values" in found or found.startswith(REASONS), found


@pytest.mark.parametrize("name", sorted(entries()))
def test_entry(name):
    _check(name, 1)


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(entries()))
def test_all_samples(name):
    _check(name, None)

"""Every entry of the operator database, observed and replayed, gives what it gave, bit for bit, or says why it cannot be."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.checks import entries
from .opdb.plans import check
from .opdb.replays import attempt
from .test_plans import UNSPECIFIED

#: Why a call cannot be repeated from its launches.
REASONS = (
    "- LAPACK is called", "- the state of a generator", "- elements are", "- a number is read", "- Size is given back",
    "- a tensor of", "- an argument is of a kind",
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(entries()))
def test_entry(name):
    for found in check(entries()[name], 1, attempt):
        assert not found or name in UNSPECIFIED or found.startswith(REASONS), found

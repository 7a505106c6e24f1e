"""Every entry of the operator database as a shared library gives what it gives, bit for bit, or is refused with a reason."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.checks import entries
from .opdb.libraries import attempt
from .opdb.plans import check
from .test_plans import UNSPECIFIED

#: Why a call cannot be a library.
REASONS = (
    *(
        f"- build: the model cannot be written as launches: {why}"
        for why in ("LAPACK is called", "the state of a generator", "elements are", "a number is read")
    ),
    "- build: the model writes to input",
)


def _check(name):
    for found in check(entries()[name], 1, attempt):
        assert not found or name in UNSPECIFIED or found.startswith(REASONS), found


@pytest.mark.parametrize("name", sorted(entries())[::40])
def test_some_entries(name):
    _check(name)


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(entries()))
def test_entry(name):
    _check(name)

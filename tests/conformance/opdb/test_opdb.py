"""Every entry of PyTorch's operator database agrees with PyTorch, or is listed in ``exceptions`` with its reason.

By default two samples an entry and dtype; all of them with ``-m sweep``.
"""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .checks import entries
from .exceptions import MEANT, RARE
from .runner import Worker
from .table import unexpected

NAMES = sorted(entries())


@pytest.fixture(scope="module")
def worker():
    made = Worker()
    yield made
    made.stop()


@pytest.mark.parametrize("name", NAMES)
def test_entry(worker, name):
    found = unexpected(worker.check(name, 2), MEANT)
    assert not found, found


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_entry_all_samples(worker, name):
    worker.seconds = 1800
    found = unexpected(worker.check(name), MEANT | RARE)
    assert not found, found


def test_exceptions_are_entries():
    assert set(MEANT) | set(RARE) <= set(NAMES)
    assert not set(MEANT) & set(RARE)

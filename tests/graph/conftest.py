"""Fixtures for tests of compiled programs."""

import pytest

from taeda._core import fusion


@pytest.fixture
def everything():
    """Defer results of any size."""
    before = fusion.set_least(0)
    yield
    fusion.set_least(before)

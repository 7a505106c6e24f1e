"""Fixtures for the tests of deferred ops."""

import gc

import pytest

from taeda import _core
from taeda._core import fusion


@pytest.fixture
def everything():
    """Defer results of any size; nothing is left over."""
    before = fusion.set_least(0)
    yield
    fusion.set_least(before)
    assert not _core.defer_ops(False)
    gc.collect()
    assert fusion.count_deferred() == 0


@pytest.fixture
def kernels():
    """The kernels of deferred ops that run: the names of their ops."""
    found = []
    fusion.watch(lambda names, outs, *rest: found.append(names) if outs else None)
    yield found
    fusion.watch(None)

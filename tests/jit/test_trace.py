"""``trace``: what is recorded gives what Python gave, and is written as archives that PyTorch reads."""

import copy
import io
import warnings

import pytest

import taeda
from taeda import nn

torch = pytest.importorskip("torch")
from test_archive import TRACEABLE, same  # noqa: E402
from test_script import programs, theirs  # noqa: E402, F401 - a fixture


@pytest.mark.parametrize("name", TRACEABLE)
def test_programs(programs, name):  # noqa: F811
    taeda.manual_seed(0)
    module, calls = programs[name]()
    args = calls[0][1]
    expected = copy.deepcopy(module.eval())(*args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = taeda.jit.trace(module, args, strict=False)
    same(theirs(expected), traced(*args))
    buffer = io.BytesIO()
    traced.save(buffer)
    same(theirs(expected), taeda.jit.load(io.BytesIO(buffer.getvalue()))(*args))
    same(theirs(expected), ours_of(torch.jit.load(io.BytesIO(buffer.getvalue()))(*theirs(args))))


def ours_of(x):
    """PyTorch's results as taeda's tensors."""
    from test_archive import ours

    return ours(x)

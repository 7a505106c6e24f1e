"""Transformations give what a loop gives, for the entries of PyTorch's databases of operators and modules.

``vmap`` with mixtures of mapped and other arguments, nested, ``vmap(grad)``, several cotangents (``jacrev``), several tangents
(``jacfwd``), ``jvp`` of ``vjp`` (``hessian``).
"""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

import torch

from .opdb.checks import entries
from .opdb.transforms import check, check_module, is_mapped
from .opdb.translate import translate
from .test_module_db import ENTRIES, inputs, is_lazy, pair

MAPPED = sorted(name for name, op in entries().items() if is_mapped(op))

#: With what belongs to each example all at once, not one example after the other.
AT_ONCE = (
    "nn.functional.layer_norm", "nn.functional.group_norm", "nn.functional.rms_norm", "nn.functional.max_unpool2d", "quantile",
    "slice_scatter", "put", "take", "gather", "scatter", "scatter_add", "index_select", "index_add", "index_copy",
    "nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d", "nn.functional.conv_transpose1d",
    "nn.functional.conv_transpose2d", "nn.functional.conv_transpose3d",
)  # fmt: skip


def _check(name, limit, every):
    differences, one_by_one = check(entries()[name], limit, every)
    assert not differences, differences
    return one_by_one


@pytest.mark.parametrize("name", MAPPED)
def test_entry(name):
    assert not (_check(name, 1, False) and name in AT_ONCE)


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", MAPPED)
def test_all_samples(name):
    _check(name, None, True)


def _check_layers(name, limit):
    info = ENTRIES[name]
    for sample in inputs(info, torch.float64, False, limit=limit):
        ours, theirs = pair(info, sample, torch.float64, False)
        if is_lazy(theirs):
            return
        given = sample.forward_input.args, dict(sample.forward_input.kwargs)
        found = check_module(ours, theirs, given, (translate(list(given[0])), translate(given[1])), limit > 1)
        assert not found, (sample.desc, found)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_layer(name):
    _check_layers(name, 1)


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_all_samples_of_a_layer(name):
    _check_layers(name, 1000)

"""Sizes near the ends of 64 bits: an error or the right result, never a smaller tensor or the end of the process."""

import pytest

import taeda
from taeda.nn import functional as F

BIG = 2**63 - 1
ONES = taeda.ones(4)

REFUSED = {
    "repeat": lambda: ONES.repeat(2**62 + 1),
    "repeat to nothing": lambda: ONES.repeat(2**62),
    "repeat in two": lambda: ONES.repeat(2**32, 2**32),
    "tile": lambda: ONES.tile(2**62 + 1),
    "repeat_interleave": lambda: ONES.repeat_interleave(2**62),
    "counts": lambda: taeda.repeat_interleave(taeda.tensor([BIG, BIG, 4])),
    "counts of slices": lambda: ONES[:3].repeat_interleave(taeda.tensor([BIG, BIG, 4])),
    "pad": lambda: F.pad(ONES, (BIG, BIG)),
    "pad one side": lambda: F.pad(ONES, (0, BIG)),
    "pad off": lambda: F.pad(ONES, (-BIG, -BIG)),
    "replicate": lambda: F.pad(ONES.view(1, 1, 4), (BIG, BIG), "replicate"),
    "circular": lambda: F.pad(ONES.view(1, 1, 4), (BIG, BIG), "circular"),
    "conv dilation": lambda: F.conv1d(ONES.view(1, 1, 4), taeda.ones(1, 1, 2), dilation=2**62, padding=2**62),
    "conv padding": lambda: F.conv2d(ONES.view(1, 1, 2, 2), taeda.ones(1, 1, 2, 2), padding=2**62),
    "conv transpose": lambda: F.conv_transpose1d(ONES.view(1, 1, 4), taeda.ones(1, 1, 2), stride=2**62),
    "cat": lambda: taeda.cat([taeda.ones(1).expand(2**61)] * 8),
    "expand": lambda: taeda.ones(1).expand(2**62, 4),
    "expand again": lambda: taeda.ones(1).expand(2**62, 2),
    "as_strided": lambda: ONES.as_strided((2**62, 4), (0, 0)),
    "empty_strided": lambda: taeda.empty_strided((2**62, 4), (4, 2**62)),
    "combinations": lambda: taeda.combinations(ONES, 2**40, True),
}


@pytest.mark.parametrize("name", REFUSED)
def test_sizes_that_do_not_fit_are_refused(name):
    with pytest.raises(RuntimeError):
        REFUSED[name]()


def test_large_numbers_that_have_a_meaning():
    x = taeda.ones(3, 3)
    for big in (2**62, BIG):
        assert x.tril(big).tolist() == x.triu(-big).tolist() == x.tolist()
        assert x.tril(-big).sum() == x.triu(big).sum() == 0
        assert F.conv1d(taeda.arange(4.0).view(1, 1, 4), taeda.ones(1, 1, 2), stride=big).tolist() == [[[1.0]]]
        assert F.conv1d(taeda.ones(1, 1, 2), taeda.ones(1, 1, 1), dilation=big).tolist() == [[[1.0, 1.0]]]
        assert taeda.combinations(taeda.arange(5), big).shape == (0, big)
        assert taeda.triu_indices(big, 0).shape == taeda.tril_indices(0, big).shape == (2, 0)
    assert taeda.arange(3).roll(BIG).tolist() == taeda.arange(3).roll(BIG % 3).tolist()
    weight = taeda.ones(1, 1, 2, requires_grad=True)
    F.conv1d(taeda.arange(4.0).view(1, 1, 4), weight, stride=BIG).sum().backward()
    assert weight.grad.tolist() == [[[0.0, 1.0]]]
    assert taeda.tensor([1.26, -1e30]).round(decimals=2**40).isnan().all()
    assert taeda.tensor([1.26, -1e30]).round(decimals=-(2**40)).isnan().all()

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


EMPTY, GREAT = taeda.empty(0), 2**62
SPREAD = taeda.empty(0, 1, 1).expand(0, GREAT, 2)

#: Empty tensors whose strides do not fit.
LONG = {
    "empty": lambda: taeda.empty(0, GREAT, 2),
    "meta": lambda: taeda.empty(0, GREAT, 2, device="meta"),
    "zeros": lambda: taeda.zeros(0, GREAT, 2),
    "full": lambda: taeda.full((0, GREAT, 2), 1.0),
    "rand": lambda: taeda.rand(0, GREAT, 2),
    "randint": lambda: taeda.randint(5, (0, GREAT, 2)),
    "new_zeros": lambda: EMPTY.new_zeros(0, GREAT, 2),
    "channels last": lambda: taeda.empty(0, GREAT, 2, 2, memory_format=taeda.channels_last),
    "permuted": lambda: taeda.empty_permuted((0, GREAT, 2), (0, 1, 2)),
    "set_": lambda: taeda.empty(0).set_(EMPTY.untyped_storage(), 0, (0, GREAT, 2)),
    "resize_": lambda: taeda.empty(0).resize_(0, GREAT, 2),
    "reshape": lambda: EMPTY.reshape(0, GREAT, 2),
    "view": lambda: EMPTY.view(0, GREAT, 2),
    "unflatten": lambda: taeda.empty(0, GREAT).unflatten(0, (0, 2)),
    "add": lambda: SPREAD + 1,
    "repeat": lambda: taeda.empty(0, 1, 1).repeat(1, GREAT, 2),
    "cat": lambda: taeda.cat([taeda.empty(0, GREAT, 1)] * 2, 2),
    "broadcast": lambda: taeda.empty(0, GREAT, 1) * taeda.empty(0, 1, 2),
    "view of bytes": lambda: taeda.empty(0, 2, GREAT, dtype=taeda.int64).view(taeda.int8),
    "view as real": lambda: taeda.view_as_real(taeda.empty(0, 2, GREAT, dtype=taeda.complex64)),
}


@pytest.mark.parametrize("name", LONG)
def test_strides_that_do_not_fit_are_refused(name):
    with pytest.raises(RuntimeError):
        LONG[name]()


def test_empty_tensors_of_large_sizes():
    assert taeda.empty(GREAT, 0, 2).stride() == (2, 2, 1)
    assert taeda.empty(GREAT, 2, 0).stride() == (2, 1, 1)
    assert taeda.empty(0, GREAT).view(GREAT, 0).shape == (GREAT, 0)
    assert taeda.empty(0, GREAT).reshape(2, GREAT, 0).stride() == (GREAT, 1, 1)
    assert SPREAD.stride() == (1, 0, 0)
    assert taeda.empty_permuted((2, 0, 3), (2, 1, 0)).stride() == (1, 2, 2)


def test_eigenvalues_of_any_number_of_empty_matrices():
    x = taeda.zeros(2**50, 0, 0)
    assert taeda.linalg.eigh(x).eigenvectors.shape == (2**50, 0, 0)
    assert taeda.linalg.eigvalsh(x).shape == (2**50, 0)


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


def test_a_tensor_without_dimensions_has_no_stride():
    x = taeda.tensor(3.0)
    assert x.stride() == ()
    for dim in (0, -1):
        with pytest.raises(IndexError, match="no dimensions"):
            x.stride(dim)

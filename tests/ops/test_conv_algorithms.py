"""Every algorithm of convolutions gives what the general one gives: the one that unfolds the images."""

import pytest

import taeda
from taeda._core import conv as core
from taeda.ops.conv import without_algorithms

NAMES = core.NAMES_OF_ALGORITHMS
#: Sizes of images and weights, options: at least one for which each algorithm is chosen.
CASES = {
    "dense": ((4, 32, 20, 20), (48, 32, 3, 3), {"padding": 1}),
    "few images": ((1, 40, 28, 28), (40, 40, 3, 3), {"padding": 1}),
    "strided": ((4, 16, 21, 21), (17, 16, 3, 3), {"padding": 1, "stride": 2}),
    "dilated": ((2, 16, 20, 20), (24, 16, 3, 3), {"dilation": 2}),
    "first layer": ((2, 3, 64, 64), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
    "points": ((4, 256, 14, 14), (64, 256, 1, 1), {}),
    "strided points": ((4, 32, 14, 14), (64, 32, 1, 1), {"stride": 2}),
    "narrow points": ((8, 4, 32, 32), (4, 4, 1, 1), {}),
    "whole": ((8, 16, 5, 5), (32, 16, 5, 5), {}),
    "whole, in small groups": ((8, 16, 3, 3), (16, 4, 3, 3), {"groups": 4}),
    "whole, of one channel": ((8, 1, 3, 3), (3, 1, 3, 3), {}),
    "patches": ((4, 3, 32, 32), (24, 3, 8, 8), {"stride": 8}),
    "depthwise": ((2, 32, 24, 24), (32, 1, 3, 3), {"padding": 1, "groups": 32}),
    "small groups": ((2, 32, 24, 24), (32, 4, 3, 3), {"padding": 1, "groups": 8}),
    "one output": ((2, 32, 24, 24), (1, 32, 3, 3), {"padding": 1}),
    "small images": ((6, 64, 2, 2), (64, 64, 3, 3), {"padding": 1}),
    "sequence": ((4, 24, 100), (32, 24, 5), {"padding": 2}),
    "volume": ((2, 8, 8, 10, 12), (16, 8, 3, 3, 3), {"padding": 1}),
}
ROUNDING = {taeda.float32: 2e-5, taeda.bfloat16: 2e-2}


def drawn(case, dtype):
    """Images, weights and options of a case."""
    images, weights, options = CASES[case]
    g = taeda.Generator().manual_seed(1)
    return *(taeda.randn(*sizes, generator=g).to(dtype) for sizes in (images, weights)), options


def results(x, w, options, last=False):
    """The output and the two gradients."""
    if last:
        x = x.contiguous(memory_format=taeda.channels_last)
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = getattr(taeda.nn.functional, f"conv{x.dim() - 2}d")(x, w, **options)
    grads = taeda.autograd.grad(y, (x, w), taeda.ones_like(y) + y.detach())
    return [y.detach(), *grads]


@pytest.mark.parametrize("dtype", ROUNDING, ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("case", CASES)
def test_algorithms_agree(case, last, dtype):
    x, w, options = drawn(case, dtype)
    if last and x.dim() != 4:
        pytest.skip("channels last is a format of images")
    with without_algorithms(*NAMES):
        want = results(x, w, options, last)
    for left_out in [(), *[(name,) for name in NAMES]]:
        with without_algorithms(*left_out):
            for found, expected in zip(results(x, w, options, last), want, strict=True):
                size = expected.float().abs().max()
                assert (found.float() - expected.float()).abs().max() <= ROUNDING[dtype] * size, left_out


@pytest.mark.parametrize(
    "name, case",
    [
        ("whole", "whole"), ("points", "points"), ("windows", "dilated"), ("first channels", "depthwise"),
        ("winograd", "dense"), ("together", "strided"),
        ("narrow points", "narrow points"),
    ],
)  # fmt: skip
def test_what_is_left_out_does_not_run(name, case):
    """The others, "side by side" and "spread", sum in the order of the general one: their bits are the same."""
    given = drawn(case, taeda.float32)
    first = results(*given)
    with without_algorithms(name):
        assert not all(a.equal(b) for a, b in zip(results(*given), first, strict=True))  # other sums, other rounding
    assert all(a.equal(b) for a, b in zip(results(*given), first, strict=True))


def test_names_that_nothing_can_stand_for_are_refused():
    for name in ("unfolded", "fast"):
        with pytest.raises(ValueError, match=name), without_algorithms(name):
            pass
    with without_algorithms("windows"):
        assert core.leave_out(["windows"]) == ("windows",)
    assert core.leave_out([]) == ()

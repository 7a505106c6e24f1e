"""Printing of tensors: the exact text."""

import math

import pytest

import taeda
from taeda._print import get_printoptions, printoptions, set_printoptions

CASES = [
    ("taeda.tensor([1.0, 2.0, 3.0])", "tensor([1., 2., 3.])"),
    ("taeda.tensor([1.5, -2.25, 3.0])", "tensor([ 1.5000, -2.2500,  3.0000])"),
    ("taeda.tensor([1.0, math.nan, -math.inf])", "tensor([1., nan, -inf])"),
    ("taeda.tensor([1.5, math.nan, -math.inf])", "tensor([1.5000,    nan,   -inf])"),
    ("taeda.tensor([1e-5, 1.0])", "tensor([1.0000e-05, 1.0000e+00])"),
    ("taeda.tensor([1.0, 2000.0])", "tensor([1.0000e+00, 2.0000e+03])"),
    ("taeda.tensor([1e10])", "tensor([1.0000e+10])"),
    ("taeda.tensor(3)", "tensor(3)"),
    ("taeda.tensor(-0.5)", "tensor(-0.5000)"),
    ("taeda.tensor([True, False])", "tensor([ True, False])"),
    ("taeda.tensor([[1, -20], [300, 4]])", "tensor([[  1, -20],\n        [300,   4]])"),
    ("taeda.tensor([1, 2], dtype=taeda.int32)", "tensor([1, 2], dtype=taeda.int32)"),
    ("taeda.tensor([1.0], dtype=taeda.float64)", "tensor([1.], dtype=taeda.float64)"),
    ("taeda.tensor([1.0, 0.5], dtype=taeda.bfloat16)", "tensor([1.0000, 0.5000], dtype=taeda.bfloat16)"),
    ("taeda.tensor([1 + 2j, -0.5j])", "tensor([1.+2.0000j, -0.-0.5000j])"),
    ("taeda.zeros(0)", "tensor([])"),
    ("taeda.zeros(2, 0)", "tensor([], size=(2, 0))"),
    ("taeda.zeros(2, 0, dtype=taeda.int64)", "tensor([], size=(2, 0), dtype=taeda.int64)"),
    ("taeda.zeros(2, requires_grad=True)", "tensor([0., 0.], requires_grad=True)"),
    ("taeda.zeros(1, 2, 2)", "tensor([[[0., 0.],\n         [0., 0.]]])"),
    ("taeda.arange(1001)", "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    (
        "taeda.zeros(2, 2, 1000)",
        "tensor([[[0., 0., 0.,  ..., 0., 0., 0.],\n         [0., 0., 0.,  ..., 0., 0., 0.]],\n\n"
        "        [[0., 0., 0.,  ..., 0., 0., 0.],\n         [0., 0., 0.,  ..., 0., 0., 0.]]])",
    ),
]


@pytest.mark.parametrize(("expression", "text"), CASES)
def test_text(expression, text):
    assert repr(eval(expression, {"taeda": taeda, "math": math})) == text


def test_long_vectors_wrap_at_the_line_width():
    lines = repr(taeda.arange(40)).splitlines()
    assert lines[0] == "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,"
    assert lines[-1] == "        36, 37, 38, 39])"


def test_grad_fn_is_named():
    t = taeda.ones(2, requires_grad=True) * 2
    assert repr(t) == "tensor([2., 2.], grad_fn=<MulBackward0>)"


def test_parameter():
    assert repr(taeda.nn.Parameter(taeda.ones(2))) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


@pytest.mark.parametrize("name", ["precision", "threshold", "edgeitems", "linewidth"])
def test_an_option_that_is_no_number_is_refused(name):
    before = get_printoptions()
    for value in ("4", object(), [3]):
        with pytest.raises(TypeError, match=f"{name} must be a number"):
            set_printoptions(**{"profile": "short", name: value})
    with pytest.raises(ValueError, match="profile"):
        set_printoptions(precision=2, profile="long")
    assert get_printoptions() == before


def test_options_change_the_text_and_are_put_back():
    x = taeda.tensor([1 / 3, 2.0])
    with printoptions(precision=2):
        assert repr(x) == "tensor([0.33, 2.00])"
    with printoptions(sci_mode=True, precision=1):
        assert repr(x) == "tensor([3.3e-01, 2.0e+00])"
    with printoptions(threshold=3, edgeitems=1):
        assert repr(taeda.arange(5)) == "tensor([0,  ..., 4])"
    assert repr(x) == "tensor([0.3333, 2.0000])"


def test_profiles():
    try:
        taeda.set_printoptions(profile="short")
        assert repr(taeda.tensor([1 / 3])) == "tensor([0.33])"
        with pytest.raises(ValueError, match="profile must be one of"):
            taeda.set_printoptions(profile="tiny")
    finally:
        taeda.set_printoptions(profile="default")
    assert repr(taeda.tensor([1 / 3])) == "tensor([0.3333])"


def test_default_dtype_is_not_written():
    taeda.set_default_dtype(taeda.float64)
    try:
        assert repr(taeda.tensor([1.0])) == "tensor([1.])"
        assert repr(taeda.tensor([1.0], dtype=taeda.float32)) == "tensor([1.], dtype=taeda.float32)"
    finally:
        taeda.set_default_dtype(taeda.float32)


def test_summaries_read_only_the_corners():
    huge = taeda.zeros(1).expand(1 << 40)
    assert repr(huge) == "tensor([0., 0., 0.,  ..., 0., 0., 0.])"


def test_a_number_without_a_value_has_no_format():
    x = taeda.zeros((), device="meta")
    assert f"{x}" == str(x) == "tensor(..., device='meta', size=())"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{x:.2f}"
    assert f"{taeda.tensor(1.5, requires_grad=True):.2f} {taeda.tensor(2):d} {taeda.tensor(1 + 2j):.1f}" == (
        "1.50 2 1.0+2.0j"
    )


def test_a_subclass_gives_what_stands_for_the_numbers():
    class Shown(taeda.Tensor):
        def __repr__(self):
            return super().__repr__(tensor_contents="two ones")

    x = taeda.ones(2, dtype=taeda.float64).as_subclass(Shown)
    assert repr(x) == str(x) == "Shown(two ones, dtype=taeda.float64)"
    assert taeda.ones(2).__repr__() == repr(taeda.ones(2)) == "tensor([1., 1.])"

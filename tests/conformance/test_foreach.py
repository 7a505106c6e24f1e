"""Functions of lists of tensors, ``_foreach_*``, against PyTorch."""

import pytest

import taeda
from taeda import _foreach

torch = pytest.importorskip("torch")

from . import peer  # noqa: E402

BOTH = (torch, taeda)
PUBLIC = sorted(name for name in vars(_foreach) if name.startswith("_foreach_"))


def first(f):
    return [f.linspace(0.1, 0.9, 3), f.linspace(0.2, 0.7, 4).reshape(2, 2)]


def second(f):
    return [f.linspace(0.7, 0.3, 3), f.linspace(0.4, 0.9, 4).reshape(2, 2)]


def calls(f, name):
    """What ``name`` may be called with, beside the first list."""
    stem = name.removeprefix("_foreach_").rstrip("_")
    if stem in ("addcmul", "addcdiv"):
        return [(second(f), second(f)), (second(f), second(f), 0.5), (second(f), second(f), [0.5, 2.0])]
    if stem == "lerp":
        return [(second(f), 0.3), (second(f), first(f))]
    if stem == "mm":
        return [([first(f)[1], second(f)[1]],)]
    if stem == "copy":
        return [(second(f),)]
    if stem == "norm":
        return [(), (1,), (float("inf"),)]
    if stem in _foreach._BINARY:
        return [(0.5,), (second(f),), ([0.5, 2.0],)]
    return [()]


def test_there_are_as_many_as_there_should_be():
    assert len(PUBLIC) > 70 and all(hasattr(torch, name) for name in PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_value(name):
    for i in range(len(calls(taeda, name))):
        found = []
        for f in BOTH:
            tensors = first(f) if name != "_foreach_mm" else [second(f)[1], first(f)[1].mT]
            result = getattr(f, name)(tensors, *calls(f, name)[i])
            found.append(tensors if name.endswith("_") else list(result))
            assert (result is tensors) == name.endswith("_")
        peer.close(found[1], found[0])


def test_more_forms():
    for call in (
        lambda f: f._foreach_pow(2.0, first(f)),
        lambda f: f._foreach_add(first(f), second(f), alpha=2),
        lambda f: f._foreach_mul(first(f), f.tensor(2.0)),
        lambda f: f._foreach_lerp(first(f), second(f), weight=0.25),
    ):
        peer.close(list(call(taeda)), list(call(torch)))


def test_lists_of_unequal_length():
    for f in BOTH:
        with pytest.raises(RuntimeError):
            f._foreach_add(first(f), second(f)[:1])


def test_lerp_in_place_goes_by_pairs_where_one_kernel_does_not_fit():
    """Other dtypes, layouts and shapes that broadcast; and where gradients are recorded."""
    for change in (
        lambda f, tensors: [tensors[0].double(), tensors[1]],
        lambda f, tensors: [tensors[0], tensors[1].t()],
        lambda f, tensors: [tensors[0], tensors[1]],
    ):
        found = []
        for f in BOTH:
            tensors, ends = change(f, first(f)), change(f, second(f))
            f._foreach_lerp_(tensors, [ends[0], ends[1][:1]] if change(f, first(f))[1].is_contiguous() else ends, 0.3)
            found.append(tensors)
        peer.close(found[1], found[0])
    leaf = taeda.ones(3, requires_grad=True)
    tensors = [taeda.zeros(3)]
    _foreach._foreach_lerp_(tensors, [leaf], 0.25)
    tensors[0].sum().backward()
    assert leaf.grad.tolist() == [0.25] * 3

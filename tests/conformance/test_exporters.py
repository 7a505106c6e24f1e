"""In-place forms of ops, and layers with each of their options, agree after every way out of Python: ``export``,
``run_decompositions``, ``.pt2`` read here and by PyTorch, ONNX run by onnxruntime, and a trace."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from .opdb.exporters import AGREES, check_in_place, check_layer, check_sample, in_place, layers
from .test_module_db import ENTRIES

FEW = (
    "add clamp div.floor_rounding fill index_add masked_fill masked_scatter nan_to_num pow squeeze t unsqueeze".split()
)
OPTIONS = [
    ("Conv2d", {"bias": False}),
    ("ConvTranspose2d", {"groups": 2}),
    ("LeakyReLU", {"inplace": True}),
    ("Hardtanh", {"inplace": True}),
    ("Mish", {"inplace": True}),
    ("BatchNorm2d", {"affine": False}),
    ("LSTM", {"bias": False}),
    ("LPPool2d", {}),
    ("AdaptiveMaxPool2d", {"return_indices": True}),
]
_FILES = ("pt2", "pt2 in PyTorch")
#: What is not there, by layer and way out.
LACKING = {
    **{(f"MaxPool{n}d", "trace"): "scripts call max_pool_with_indices for the indices" for n in (1, 2, 3)},
    **{(f"{name}Cell", way): "a single step has no op of ATen" for name in ("GRU", "LSTM") for way in _FILES},
    **{("LSTM", way): "with proj_size, its steps have no op of ATen" for way in _FILES},
    **{("MultiLabelSoftMarginLoss", way): "of one dimension" for way in _FILES},
    **{("LinearCrossEntropyLoss", way): "its options are no argument of a graph" for way in ("export", *_FILES)},
    ("CTCLoss", "trace"): "lengths that are ints are no tensors",
}


def agree(found, label):
    """Nothing but what is known to be lacking differs."""
    for way, result in found:
        if (label.removeprefix("nn."), way) not in LACKING:
            assert result == AGREES, (label, way, result)


@pytest.mark.parametrize("name", FEW)
def test_in_place(name):
    found = list(check_in_place(name))
    assert len(found) > 3
    agree(found, name)


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
def test_layer(name, options):
    found = list(check_layer(name, options))
    assert len(found) == 6
    agree(found, name)


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", in_place())
def test_every_in_place_form(name):
    agree(check_in_place(name, 4), name)


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("name", "options"), layers(), ids=str)
def test_every_option(name, options):
    agree(check_layer(name, options), name)


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_every_layer_of_the_database(name):
    agree(check_sample(ENTRIES[name], 6), name)

"""Resizing by nearest elements, read and written: onnxruntime finds the same elements, also next to halves."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest

import taeda
import taeda.onnx
from taeda import nn
from taeda.nn import functional as F
from taeda.onnx.operators.image import resize

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

#: Pairs of sizes whose coordinates round to two sides, and a few plain ones.
PAIRS = [(14, 2), (7, 2), (7, 4), (14, 1), (10, 6), (9, 7), (13, 11), (22, 26), (29, 28), (3, 5), (4, 8), (8, 4)]
ALL = [*itertools.product(range(1, 31), repeat=2)]
TRANSFORMATIONS = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "tf_half_pixel_for_nn"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


class Resized(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, x):
        return F.interpolate(x, **self.options)


def session(model: bytes):
    runtime.set_default_logger_severity(4)
    return runtime.InferenceSession(model, providers=["CPUExecutionProvider"])


def check_written(pairs):
    for (length, size), mode in itertools.product(pairs, ("nearest", "nearest-exact")):
        x, module = taeda.arange(float(length)).view(1, 1, length), Resized(size=size, mode=mode)
        file = io.BytesIO()
        taeda.onnx.export(module, (x,), verbose=False).save(file)
        run = session(file.getvalue())
        (got,) = run.run(None, {run.get_inputs()[0].name: x.numpy()})
        assert got.tolist() == module(x).tolist(), (length, size, mode)


def check_read(pairs, transformation, by):
    for rounding in ROUNDINGS:
        options = {"coordinate_transformation_mode": transformation, "nearest_mode": rounding, "mode": "nearest"}
        helper, kinds = onnx.helper, onnx.TensorProto
        node = helper.make_node("Resize", ["x", "", "s"] if by == "scales" else ["x", "", "", "s"], ["y"], **options)
        kind = kinds.FLOAT if by == "scales" else kinds.INT64
        inputs = [
            helper.make_tensor_value_info("x", kinds.FLOAT, [1, 1, None]),
            helper.make_tensor_value_info("s", kind, [3]),
        ]
        result = helper.make_tensor_value_info("y", kinds.FLOAT, [None] * 3)
        graph = helper.make_graph([node], "g", inputs, [result])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        run = session(model.SerializeToString())
        for length, size in pairs:
            x = np.arange(length, dtype=np.float32).reshape(1, 1, -1)
            s = np.array([1, 1, size / length], np.float32) if by == "scales" else np.array([1, 1, size])
            (want,) = run.run(None, {"x": x, "s": s})
            given = taeda.from_numpy(s)
            got = resize(
                taeda.from_numpy(x),
                None,
                given if by == "scales" else None,
                given if by == "sizes" else None,
                **options,
            )
            assert got.tolist() == want.tolist(), (length, size, rounding)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_written_models_weigh_as_interpolate_does(mode, antialias):
    x = taeda.randn(1, 2, 4, 6)
    for options in ({"size": (3, 5)}, {"size": (1, 13)}, {"scale_factor": 0.7}, {"scale_factor": (1.5, 0.3)}):
        module, file = Resized(mode=mode, antialias=antialias, **options), io.BytesIO()
        taeda.onnx.export(module, (x,), verbose=False).save(file)
        run = session(file.getvalue())
        (got,) = run.run(None, {run.get_inputs()[0].name: x.numpy()})
        np.testing.assert_allclose(got, module(x), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(taeda.onnx.load(io.BytesIO(file.getvalue()))(x), module(x), rtol=1e-4, atol=1e-5)


def test_written_models_keep_the_elements_that_interpolate_keeps():
    check_written(PAIRS)


@pytest.mark.parametrize("by", ["sizes", "scales"])
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_read_models_keep_the_elements_that_onnxruntime_keeps(transformation, by):
    check_read(PAIRS, transformation, by)


def test_halves_of_a_model_that_is_read():
    x = taeda.arange(7.0).view(1, 1, 7)
    options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "round_prefer_ceil"}
    assert resize(x, None, None, taeda.tensor([1, 1, 2]), **options).tolist() == [[[0, 4]]]


@pytest.mark.sweep
def test_all_sizes_written():
    check_written(ALL)


@pytest.mark.sweep
@pytest.mark.parametrize("by", ["sizes", "scales"])
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_all_sizes_read(transformation, by):
    check_read(ALL, transformation, by)


def test_odd_powers_of_negative_sums_are_nan_in_both():
    x, module = -taeda.rand(1, 1, 4, 4), nn.LPPool2d(3.0, 2)
    file = io.BytesIO()
    taeda.onnx.export(module, (x,), verbose=False).save(file)
    run = session(file.getvalue())
    (got,) = run.run(None, {run.get_inputs()[0].name: x.numpy()})
    np.testing.assert_array_equal(np.isnan(got), np.isnan(module(x).numpy()))

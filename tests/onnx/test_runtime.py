"""taeda and onnxruntime give the same for models that PyTorch writes, and for ops that ONNX's own tests have little of."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
helper = pytest.importorskip("onnx.helper")
runtime = pytest.importorskip("onnxruntime")
from onnx import TensorProto  # noqa: E402

import taeda  # noqa: E402
import taeda.onnx  # noqa: E402
from taeda.onnx.values import to_array  # noqa: E402


def compare(model: bytes, inputs: dict[str, np.ndarray], tolerance: float = 1e-5) -> None:
    """Run ``model`` on both."""
    runtime.set_default_logger_severity(4)
    wanted = runtime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, inputs)
    module = taeda.onnx.load(model)
    with taeda.no_grad():
        results = module(**inputs)
    for got, want in zip(results if len(module.output_names) > 1 else [results], wanted, strict=True):
        if isinstance(want, list):
            assert [list(row) for row in got] == [list(row) for row in want]
            got, want = (np.array([list(row.values()) for row in rows]) for rows in (got, want))
        array = to_array(got)
        assert array.shape == want.shape
        if want.dtype == object:
            assert (array == want).all()
        else:
            assert array.dtype == want.dtype
            np.testing.assert_allclose(array, want, rtol=tolerance, atol=tolerance)


# ---- models that PyTorch writes --------------------------------------------------------------------------------------
def exported(module, x, new: bool) -> bytes:
    torch = pytest.importorskip("torch")
    if new:
        pytest.importorskip("onnxscript")
    file, logger = io.BytesIO(), logging.getLogger("torch.onnx")
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if not new:
            torch.onnx.export(module.eval(), (x,), file, dynamo=False, input_names=["x"])
            return file.getvalue()
        program = torch.onnx.export(module.eval(), (x,), dynamo=True, verbose=False, input_names=["x"])
        return program.model_proto.SerializeToString()


def networks(kind):
    torch = pytest.importorskip("torch")
    nn = torch.nn
    torch.manual_seed(0)

    class Recurrent(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.embed, self.out = nn.Embedding(50, 16), nn.Linear(24, 5)
            self.layer = layer(16, 12, 2, batch_first=True, bidirectional=True)

        def forward(self, x):
            return self.out(self.layer(self.embed(x))[0])

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
            self.embed, self.out = nn.Embedding(50, 32), nn.Linear(32, 50)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, x):
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return self.out(self.layers(self.embed(x), mask=mask, is_causal=True))

    class Resampled(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1)

        def forward(self, x):
            y = nn.functional.interpolate(self.conv(x), scale_factor=2, mode="bilinear", align_corners=False)
            small = nn.functional.interpolate(y, size=(7, 9), mode="bicubic")
            padded = nn.functional.pad(y, (1, 2, 1, 0), mode="reflect")
            return small, padded, nn.functional.avg_pool2d(y, 3, 2, 1, ceil_mode=True, count_include_pad=True)

    words = torch.randint(0, 50, (2, 7))
    if kind == "convolutional":
        layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)]
        layers += [nn.Conv2d(8, 16, 3, stride=2, groups=2), nn.GroupNorm(4, 16), nn.GELU(), nn.AdaptiveAvgPool2d(1)]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 10), nn.Softmax(-1)), torch.randn(2, 3, 17, 15)
    if kind in ("RNN", "LSTM", "GRU"):
        return Recurrent(getattr(nn, kind)), words
    return (Transformer(), words) if kind == "transformer" else (Resampled(), torch.randn(1, 3, 6, 5))


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("kind", ["convolutional", "RNN", "LSTM", "GRU", "transformer", "resampled"])
def test_models_that_pytorch_writes(kind, new):
    module, x = networks(kind)
    compare(exported(module, x, new), {"x": x.numpy()})


def test_models_that_come_with_onnxruntime():
    folder = Path(runtime.__file__).parent / "datasets"
    generator = np.random.default_rng(0)
    shapes = {"mul_1": ("X", (3, 2)), "sigmoid": ("x", (3, 4, 5))}
    for name, (key, shape) in shapes.items():
        path = folder / f"{name}.onnx"
        if path.exists():
            compare(path.read_bytes(), {key: generator.standard_normal(shape).astype(np.float32)})


# ---- single ops ------------------------------------------------------------------------------------------------------
def check(op, *inputs, outputs=1, opset=19, domain="", tolerance=1e-4, **attributes):
    names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
    results = [f"o{k}" for k in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    given = {name: x for name, x in zip(names, inputs, strict=True) if x is not None}
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()
    ]
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=name) for name in results])
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 3)] if domain else [])
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    inferred = onnx.shape_inference.infer_shapes(model)
    for output in inferred.graph.output:
        if not output.type.WhichOneof("value"):  # it is inferred for most ops
            output.type.tensor_type.elem_type = TensorProto.FLOAT
    compare(inferred.SerializeToString(), given, tolerance)


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("pads", [[0, 1, 1, 0], [1, 1, 1, 1]])
def test_windows(pads):
    x, options = normal(2, 4, 7, 8), {"strides": [2, 1], "pads": pads}
    check("Conv", x, normal(6, 2, 3, 2), normal(6), group=2, dilations=[1, 2], **options)
    check("ConvTranspose", x, normal(4, 3, 3, 2), normal(6), group=2, output_padding=[1, 0], **options)
    for ceil in (0, 1):
        check("MaxPool", x, outputs=2, kernel_shape=[3, 2], ceil_mode=ceil, dilations=[1, 2], **options)
        check("AveragePool", x, kernel_shape=[3, 2], ceil_mode=ceil, count_include_pad=ceil, **options)
    check("LpPool", x, kernel_shape=[3, 2], p=3, opset=18, **options)
    check("GlobalLpPool", x, p=3)
    for side in ("SAME_UPPER", "SAME_LOWER"):
        check("Conv", x, normal(6, 4, 3, 2), auto_pad=side, strides=[2, 1])
        check("ConvTranspose", x, normal(4, 3, 3, 2), auto_pad=side, strides=[2, 1])


@pytest.mark.parametrize("transformation", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"])
def test_resize(transformation):
    x, sizes = normal(1, 2, 5, 6), np.array([1, 2, 9, 4])
    options = {"coordinate_transformation_mode": transformation}
    for mode in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        check("Resize", x, None, None, sizes, mode="nearest", nearest_mode=mode, **options)
    for antialias in (0, 1):
        check("Resize", x, None, None, sizes, mode="linear", antialias=antialias, **options)
        check(
            "Resize", x, None, None, sizes, mode="cubic", antialias=antialias, exclude_outside=1 - antialias, **options
        )


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_recurrent(direction):
    d = 2 if direction == "bidirectional" else 1
    x, lengths, h = normal(5, 3, 4), np.array([5, 2, 3], dtype=np.int32), normal(d, 3, 6)
    for op, gates, more in [("RNN", 1, {}), ("GRU", 3, {}), ("GRU", 3, {"linear_before_reset": 1}), ("LSTM", 4, {})]:
        weights = normal(d, gates * 6, 4), normal(d, gates * 6, 6), normal(d, 2 * gates * 6)
        states = (h, normal(d, 3, 6), normal(d, 18)) if op == "LSTM" else (h,)
        options = {"hidden_size": 6, "direction": direction, "clip": 0.5, **more}
        check(op, x, *weights, lengths, *states, outputs=len(states[:2]) + 1, opset=14, **options)


def test_regions():
    boxes = np.array([[0, 1, 5, 6], [2, 2, 9, 8]], dtype=np.float32)
    x, images = normal(2, 3, 10, 10), np.array([1, 0])
    for mode in ("avg", "max"):
        for half in ("half_pixel", "output_half_pixel"):
            options = {"output_height": 2, "output_width": 3, "coordinate_transformation_mode": half}
            check("RoiAlign", x, boxes, images, mode=mode, **options)
    check("MaxRoiPool", x, np.concatenate([images[:, None], boxes], 1).astype(np.float32), pooled_shape=[2, 3])


TREES = {
    "nodes_treeids": [0] * 5 + [1] * 3, "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2], "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
    "nodes_values": [0.1, -0.2, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0], "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [4, 3, 0, 0, 0, 2, 0, 0], "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_GTE", "LEAF", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
}  # fmt: skip


@pytest.mark.parametrize("after", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_models_of_machine_learning(after):
    x = normal(6, 4)
    options = {"domain": "ai.onnx.ml", "post_transform": after}
    for labels in ([4, 5, 6], [4, 5]):
        weights = {"coefficients": normal(4 * len(labels)).tolist(), "intercepts": normal(len(labels)).tolist()}
        check("LinearClassifier", x, outputs=2, classlabels_ints=labels, **weights, **options)
    single = {"coefficients": normal(4).tolist(), "intercepts": [0.2]}
    check("LinearClassifier", x, outputs=2, classlabels_ints=[4, 5], **single, **options)
    check("LinearRegressor", x, targets=2, coefficients=normal(8).tolist(), intercepts=[0.1, 0.2], **options)
    x[0, 0] = np.nan
    places, weights = [[0, 0, 0, 1, 1], [2, 3, 4, 1, 2]], normal(5).tolist()
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        target = dict(zip(["target_treeids", "target_nodeids"], places, strict=True))
        target |= {"target_ids": [0, 0, 0, 1, 1], "target_weights": weights, "n_targets": 2, "base_values": [0.5, 1.0]}
        if aggregate == "SUM" or after == "NONE":
            check("TreeEnsembleRegressor", x, aggregate_function=aggregate, **target, **TREES, **options)
    for signs in (weights, np.abs(weights).tolist()):
        kinds = dict(zip(["class_treeids", "class_nodeids"], places, strict=True))
        kinds |= {"class_weights": signs, "classlabels_int64s": [0, 1]}
        for ids in ([0] * 5, [1] * 5):  # of both, onnxruntime does not take the larger score
            check("TreeEnsembleClassifier", x, outputs=2, class_ids=ids, **kinds, **TREES, **options)


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_support_vectors(kernel):
    x, options = normal(6, 4), {"domain": "ai.onnx.ml", "kernel_type": kernel, "kernel_params": [0.5, 0.2, 2.0]}
    options |= {"support_vectors": normal(28).tolist()}
    check("SVMRegressor", x, coefficients=normal(7).tolist(), n_supports=7, rho=[0.3], **options)
    kinds = {"vectors_per_class": [2, 2, 3], "classlabels_ints": [4, 5, 6], "rho": [0.1, -0.2, 0.3]}
    check("SVMClassifier", x, outputs=2, coefficients=normal(14).tolist(), **kinds, **options)
    kinds |= {"prob_a": [-1.0, -2.0, -0.5], "prob_b": [0.1, 0.2, -0.3]}
    # onnxruntime stops its iterations at an error of 0.005 / 3
    check("SVMClassifier", x, outputs=2, coefficients=normal(14).tolist(), tolerance=5e-3, **kinds, **options)


def test_preparation_of_features():
    x, ml = normal(3, 4), {"domain": "ai.onnx.ml"}
    for norm in ("MAX", "L1", "L2"):
        check("Normalizer", x, norm=norm, **ml)
    check("Scaler", x, offset=[1.0, 2.0, 3.0, 4.0], scale=[0.5, 1.0, 2.0, 3.0], **ml)
    holes = np.where(x > 0, np.nan, x).astype(np.float32)
    check("Imputer", holes, imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=float("nan"), **ml)
    check("FeatureVectorizer", x, normal(3, 1), inputdimensions=[4, 1], **ml)
    words = np.array(["a", "zz", "b"], dtype=object)
    check("CategoryMapper", words, cats_int64s=[1, 2], cats_strings=["a", "b"], **ml)
    check("OneHotEncoder", words, cats_strings=["a", "b"], **ml)

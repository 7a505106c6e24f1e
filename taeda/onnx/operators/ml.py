"""Ops of ai.onnx.ml but trees: encoders, scalers, linear models, support vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import taeda
import taeda.nn.functional as F

from ..._typed import Tensor
from ..table import ML, op
from ..values import from_array, to_array
from .conversion import cast


def post_transform(scores: Tensor, name: str) -> Tensor:
    """Scores of classes as the attribute ``post_transform`` says."""
    if name == "SOFTMAX":
        return F.softmax(scores, -1)
    if name == "LOGISTIC":
        return taeda.sigmoid(scores)
    if name == "SOFTMAX_ZERO":
        weights = taeda.where(scores == 0, 0, taeda.exp(scores - scores.amax(-1, keepdim=True)))
        return weights / weights.sum(-1, keepdim=True)
    if name == "PROBIT":
        return math.sqrt(2) * taeda.erfinv(2 * scores - 1)
    return scores


def labelled(places: Tensor, labels: list) -> Any:
    """The labels at ``places``: a tensor of int64 or an array of strings."""
    if labels and isinstance(labels[0], str):
        return np.array(labels, dtype=object)[places.numpy()]
    return taeda.tensor(labels, dtype=taeda.int64)[places]


def classified(scores: Tensor, labels: list, transform: str) -> tuple[Any, Tensor]:
    """Labels and scores. One column of scores for two labels belongs to the second; the first gets the rest up to 1."""
    if scores.shape[1] > 1 or len(labels) > 2:
        return labelled(taeda.argmax(scores, 1), labels), post_transform(scores, transform)
    chosen = (scores[:, 0] > 0).to(taeda.int64)
    second = taeda.sigmoid(scores) if transform == "LOGISTIC" else scores
    if len(labels) == 1:
        return labelled(taeda.zeros_like(chosen), labels), second
    return labelled(chosen, labels), taeda.cat([1 - second, second], 1)


def _strings_or(integers: list | None, strings: list | None) -> list:
    return list(strings or integers or [])


# ---- encoders --------------------------------------------------------------------------------------------------------
def _lookup(x: Any, table: dict, default: Any, dtype: Any) -> Any:
    """``table`` of each element; NaN is equal to itself here."""
    array = to_array(x)
    missing = next((v for k, v in table.items() if isinstance(k, float) and math.isnan(k)), default)
    found = [
        missing if isinstance(v, float) and math.isnan(v) else table.get(v, default) for v in array.reshape(-1).tolist()
    ]
    return from_array(np.array(found, dtype=dtype).reshape(array.shape))


@op("LabelEncoder", 1, domain=ML)
def label_encoder_1(
    x: Any, *, classes_strings: list[str], default_int64: int = -1, default_string: str = "_Unused"
) -> Any:
    if isinstance(x, np.ndarray):
        return _lookup(x, {name: i for i, name in enumerate(classes_strings)}, default_int64, np.int64)
    return _lookup(x, dict(enumerate(classes_strings)), default_string, object)


@op("LabelEncoder", 2, domain=ML)
def label_encoder(
    x: Any, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
    default_tensor: Any = None, **lists: Any,
) -> Any:  # fmt: skip
    """Keys and values are the attributes ``keys_*`` and ``values_*``, one of each."""
    keys = next(value for name, value in lists.items() if name.startswith("keys_"))
    kind, values = next((name, value) for name, value in lists.items() if name.startswith("values_"))
    keys, values = (to_array(v).reshape(-1).tolist() if not isinstance(v, list) else v for v in (keys, values))
    if kind == "values_tensor":
        default = to_array(default_tensor).reshape(-1)[0] if default_tensor is not None else None
        dtype = to_array(lists[kind]).dtype
        if default is None:
            default = {"O": default_string, "i": default_int64}.get(dtype.kind, default_float)
    else:
        default = {"values_strings": default_string, "values_int64s": default_int64}.get(kind, default_float)
        dtype = {"values_strings": object, "values_int64s": np.int64}.get(kind, np.float32)
    return _lookup(x, dict(zip(keys, values, strict=True)), default, dtype)


@op("CategoryMapper", domain=ML)
def category_mapper(
    x: Any, *, cats_int64s: list[int], cats_strings: list[str], default_int64: int = -1, default_string: str = "_Unused"
) -> Any:
    if isinstance(x, np.ndarray):
        return _lookup(x, dict(zip(cats_strings, cats_int64s, strict=True)), default_int64, np.int64)
    return _lookup(x, dict(zip(cats_int64s, cats_strings, strict=True)), default_string, object)


@op("OneHotEncoder", domain=ML)
def one_hot_encoder(
    x: Any, *, cats_int64s: list[int] | None = None, cats_strings: list[str] | None = None, zeros: int = 1
) -> Tensor:
    kinds = _strings_or(cats_int64s, cats_strings)
    places = _lookup(x, {kind: i for i, kind in enumerate(kinds)}, -1, np.int64)
    if not zeros and bool((places < 0).any()):
        raise ValueError(f"expected categories of {kinds}, got others")
    return (places.unsqueeze(-1) == taeda.arange(len(kinds))).float()


@op("DictVectorizer", domain=ML)
def dict_vectorizer(
    x: dict, *, int64_vocabulary: list[int] | None = None, string_vocabulary: list[str] | None = None
) -> Any:
    values = [x.get(key) for key in _strings_or(int64_vocabulary, string_vocabulary)]
    kind = next((type(value) for value in x.values()), float)
    return from_array(np.array([[kind() if v is None else v for v in values]], dtype=object if kind is str else None))


@op("CastMap", domain=ML)
def cast_map(x: dict, *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1) -> Any:
    items = sorted(x.items())
    if map_form == "SPARSE":
        items = [(i, x.get(i, 0.0)) for i in range(max_map)]
    codes = {"TO_FLOAT": 1, "TO_INT64": 7, "TO_STRING": 8}
    return cast(from_array(np.array([[value for _, value in items]])), to=codes[cast_to])


@op("ZipMap", domain=ML)
def zip_map(
    x: Tensor, *, classlabels_int64s: list[int] | None = None, classlabels_strings: list[str] | None = None
) -> list[dict]:
    labels = _strings_or(classlabels_int64s, classlabels_strings)
    return [dict(zip(labels, row, strict=True)) for row in x.reshape(-1, len(labels)).tolist()]


# ---- features --------------------------------------------------------------------------------------------------------
@op("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(x: Any, places: Tensor) -> Any:
    if isinstance(x, np.ndarray):
        return x[..., places.reshape(-1).numpy()]
    result = x.index_select(-1, places.reshape(-1))
    return result if x.ndim > 1 else result.unsqueeze(0)


@op("FeatureVectorizer", domain=ML)
def feature_vectorizer(*inputs: Tensor, inputdimensions: list[int] | None = None) -> Tensor:
    parts = [x.reshape(x.shape[0] if x.ndim > 1 else 1, -1).float() for x in inputs]
    return taeda.cat([x[:, :n] for x, n in zip(parts, inputdimensions or [x.shape[1] for x in parts], strict=True)], 1)


op("Binarizer", domain=ML)(lambda x, *, threshold=0.0: (x > threshold).to(x.dtype))


@op("Scaler", domain=ML)
def scaler(x: Tensor, *, offset: list[float] | None = None, scale: list[float] | None = None) -> Tensor:
    return (x.float() - taeda.tensor(offset or [0.0])) * taeda.tensor(scale or [1.0])


@op("Normalizer", domain=ML)
def normalizer(x: Tensor, *, norm: str = "MAX") -> Tensor:
    x = x.float()
    order = {"MAX": taeda.inf, "L1": 1, "L2": 2}[norm]
    size = x.amax(-1, keepdim=True) if norm == "MAX" else taeda.linalg.vector_norm(x, order, -1, keepdim=True)
    return x / taeda.where(size == 0, 1, size)


@op("Imputer", domain=ML)
def imputer(
    x: Tensor, *, imputed_value_floats: list[float] | None = None, imputed_value_int64s: list[int] | None = None,
    replaced_value_float: float = 0.0, replaced_value_int64: int = 0,
) -> Tensor:  # fmt: skip
    if not x.is_floating_point():
        return taeda.where(x == replaced_value_int64, taeda.tensor(imputed_value_int64s), x)
    missing = taeda.isnan(x) if math.isnan(replaced_value_float) else x == replaced_value_float
    return taeda.where(missing, taeda.tensor(imputed_value_floats, dtype=x.dtype), x)


# ---- linear models ---------------------------------------------------------------------------------------------------
def _rows(x: Tensor) -> Tensor:
    return (x if x.ndim > 1 else x.unsqueeze(0)).float()


@op("LinearRegressor", domain=ML)
def linear_regressor(
    x: Tensor, *, coefficients: list[float], intercepts: list[float] | None = None, post_transform: str = "NONE",
    targets: int = 1,
) -> Tensor:  # fmt: skip
    weight = taeda.tensor(coefficients).reshape(targets, -1)
    return _after(_rows(x) @ weight.T + (taeda.tensor(intercepts) if intercepts else 0.0), post_transform)


_after: Callable[[Tensor, str], Tensor] = post_transform  # the name of an attribute hides it


@op("LinearClassifier", domain=ML)
def linear_classifier(
    x: Tensor, *, coefficients: list[float], classlabels_ints: list[int] | None = None,
    classlabels_strings: list[str] | None = None, intercepts: list[float] | None = None, multi_class: int = 0,
    post_transform: str = "NONE",
) -> tuple[Any, Tensor]:  # fmt: skip
    rows = _rows(x)
    weight = taeda.tensor(coefficients).reshape(-1, rows.shape[1])
    scores = rows @ weight.T + (taeda.tensor(intercepts) if intercepts else 0.0)
    return classified(scores, _strings_or(classlabels_ints, classlabels_strings), post_transform)


# ---- support vectors -------------------------------------------------------------------------------------------------
def _kernel(x: Tensor, vectors: Tensor, kind: str, numbers: list[float]) -> Tensor:
    """The likeness of each row and each vector; ``numbers`` are gamma, coef0 and degree."""
    gamma, first, degree = numbers or [0.0, 0.0, 0.0]
    if kind == "RBF":
        return taeda.exp(-gamma * ((x.unsqueeze(1) - vectors) ** 2).sum(-1))
    products = x @ vectors.T
    if kind == "POLY":
        return (gamma * products + first) ** degree
    return taeda.tanh(gamma * products + first) if kind == "SIGMOID" else products


@op("SVMRegressor", domain=ML)
def svm_regressor(
    x: Tensor, *, coefficients: list[float], rho: list[float], kernel_params: list[float] | None = None,
    kernel_type: str = "LINEAR", n_supports: int = 0, one_class: int = 0, post_transform: str = "NONE",
    support_vectors: list[float] | None = None,
) -> Tensor:  # fmt: skip
    rows = _rows(x)
    weight = taeda.tensor(coefficients)
    if n_supports:
        vectors = taeda.tensor(support_vectors).reshape(n_supports, -1)
        scores = _kernel(rows, vectors, kernel_type, kernel_params or []) @ weight + rho[0]
    else:
        scores = rows @ weight + rho[0]
    scores = taeda.where(scores > 0, 1.0, -1.0) if one_class else scores
    return _after(scores.unsqueeze(1), post_transform)


def _coupled(scores: Tensor, count: int) -> Tensor:
    """Probabilities of classes from those of pairs, ``sigmoid(-score)`` for the first (Wu, Lin and Weng 2004, method
    2).
    """
    first, second = taeda.triu_indices(count, count, 1)
    pairs = scores.new_zeros(scores.shape[0], count, count)
    pairs[:, first, second] = taeda.sigmoid(-scores).clamp(1e-7, 1 - 1e-7)
    pairs[:, second, first] = taeda.sigmoid(scores).clamp(1e-7, 1 - 1e-7)
    system = scores.new_ones(scores.shape[0], count + 1, count + 1)  # with the sum of all as a condition
    system[:, :count, :count] = taeda.diag_embed((pairs * pairs).sum(1)) - pairs * pairs.mT
    system[:, count, count] = 0
    wanted = taeda.eye(count + 1)[count].expand(scores.shape[0], -1)
    return taeda.linalg.solve(system.double(), wanted.double())[:, :count].to(scores.dtype)


@op("SVMClassifier", domain=ML)
def svm_classifier(
    x: Tensor, *, coefficients: list[float], rho: list[float], classlabels_ints: list[int] | None = None,
    classlabels_strings: list[str] | None = None, kernel_params: list[float] | None = None, kernel_type: str = "LINEAR",
    post_transform: str = "NONE", prob_a: list[float] | None = None, prob_b: list[float] | None = None,
    support_vectors: list[float] | None = None, vectors_per_class: list[int] | None = None,
) -> tuple[Any, Tensor]:  # fmt: skip
    """One classifier for each pair of classes, which vote; without support vectors one for each class."""
    rows, labels = _rows(x), _strings_or(classlabels_ints, classlabels_strings)
    if not vectors_per_class:
        weight = taeda.tensor(coefficients).reshape(len(labels), -1)
        return classified(_kernel(rows, weight, kernel_type, kernel_params or []) + rho[0], labels, post_transform)
    count = len(vectors_per_class)
    vectors = taeda.tensor(support_vectors).reshape(sum(vectors_per_class), -1)
    parts = _kernel(rows, vectors, kernel_type, kernel_params or []).split(vectors_per_class, 1)
    weights = taeda.tensor(coefficients).reshape(count - 1, -1).split(vectors_per_class, 1)
    votes, scores, pair = taeda.zeros(rows.shape[0], count), [], 0
    for i in range(count):
        for j in range(i + 1, count):
            score = parts[i] @ weights[i][j - 1] + parts[j] @ weights[j][i] + rho[pair]
            votes[:, i] += score > 0
            votes[:, j] += score <= 0
            scores.append(score)
            pair += 1
    chosen = labelled(taeda.argmax(votes, 1), labels)
    if prob_a:
        return chosen, _coupled(taeda.stack(scores, 1) * taeda.tensor(prob_a) + taeda.tensor(prob_b), count)
    if count == 2:
        return chosen, _after(taeda.stack([-scores[0], scores[0]], 1), post_transform)
    return chosen, _after(taeda.stack(scores, 1), post_transform)

"""ONNX ops on strings, which are NumPy arrays of Python's strings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core import int64
from ..._typed import Tensor
from ...ops.exchange import from_numpy, tensor
from ..table import op


def _mapped(function: Callable, x: np.ndarray, dtype: Any = object) -> np.ndarray:
    result = np.empty(x.shape, dtype=dtype)
    result.reshape(-1)[:] = [function(text) for text in x.reshape(-1)]
    return result


op("StringConcat")(lambda a, b: np.asarray(np.add(a, b), dtype=object))


@op("StringSplit")
def string_split(x: np.ndarray, *, delimiter: str = "", maxsplit: int = -1) -> tuple[np.ndarray, Tensor]:
    """The parts of each string, filled up with empty ones to the same number, and how many there are."""
    parts = [text.split(delimiter or None, maxsplit) if text else [] for text in x.reshape(-1)]
    most = max(map(len, parts), default=0)
    rows = np.array([row + [""] * (most - len(row)) for row in parts], dtype=object)
    counts = tensor([len(row) for row in parts], dtype=int64)
    return rows.reshape(*x.shape, most), counts.reshape(x.shape)


@op("StringNormalizer")
def string_normalizer(
    x: np.ndarray, *, case_change_action: str = "NONE", is_case_sensitive: int = 0, locale: str = "",
    stopwords: list[str] | None = None,
) -> np.ndarray:  # fmt: skip
    """Stop words go, then the case changes. The locale is not used: Python's rules are Unicode's."""
    same = str if is_case_sensitive else str.lower
    stop = {same(word) for word in stopwords or ()}
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(case_change_action, str)
    kept = [change(word) for word in x.reshape(-1) if same(word) not in stop] or [""]
    return np.array(kept, dtype=object).reshape([1, -1] if x.ndim == 2 else [-1])


@op("RegexFullMatch")
def regex_full_match(x: np.ndarray, *, pattern: str) -> Tensor:
    """Python's regular expressions in place of RE2's, of which they have nearly all."""
    compiled = re.compile(pattern)
    return from_numpy(_mapped(lambda text: compiled.fullmatch(text) is not None, x, bool))


@op("TfIdfVectorizer")
def tf_idf_vectorizer(
    x: Any, *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str, ngram_counts: list[int],
    ngram_indexes: list[int], pool_int64s: list[int] | None = None, pool_strings: list[str] | None = None,
    weights: list[float] | None = None,
) -> Tensor:  # fmt: skip
    """The count of each n-gram of the pool, with skips, weighted as ``mode`` says."""
    pool: list = pool_strings or pool_int64s or []
    places: dict[tuple, int] = {}
    ends = [*ngram_counts, len(pool)]
    for n, (start, end) in enumerate(itertools.pairwise(ends), 1):
        for i in range(start, end, n):
            places[tuple(pool[i : i + n])] = len(places)
    rows = x.tolist() if x.ndim == 2 else [x.tolist()]
    counts = np.zeros((len(rows), max(ngram_indexes) + 1), dtype=np.float32)
    for row, words in zip(counts, rows, strict=True):
        for n in range(min_gram_length, max_gram_length + 1):
            for skip in range(1 if n == 1 else max_skip_count + 1):
                for start in range(len(words) - (n - 1) * (skip + 1)):
                    place = places.get(tuple(words[start : start + (n - 1) * (skip + 1) + 1 : skip + 1]))
                    if place is not None:
                        row[ngram_indexes[place]] += 1
    if mode != "TF":
        factors = np.ones(counts.shape[1], dtype=np.float32)
        factors[ngram_indexes] = weights if weights is not None else 1
        counts = (np.minimum(counts, 1) if mode == "IDF" else counts) * factors
    result = from_numpy(counts)
    return result if x.ndim == 2 else result[0]

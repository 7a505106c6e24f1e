"""Ensembles of decision trees of ai.onnx.ml: all trees of all rows go down one level at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import taeda

from ..._typed import Tensor
from ..table import ML, op
from .ml import classified, labelled, post_transform

_MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"]
_COMPARE = [taeda.le, taeda.lt, taeda.ge, taeda.gt, taeda.eq, taeda.ne]
_MEMBER, _LEAF = 6, 7


class Trees(NamedTuple):
    """Nodes of all trees: a leaf is its own child. ``weights`` (nodes, targets) are NaN where a leaf says nothing."""

    roots: Tensor
    features: Tensor
    modes: Tensor
    splits: Tensor
    yes: Tensor
    no: Tensor
    missing: Tensor
    weights: Tensor
    members: dict[int, Tensor]

    def leaves(self, x: Tensor) -> Tensor:
        """The leaf (rows, trees) that each row reaches in each tree.

        Args:
            x: ``(rows, features)``.

        Returns:
            Numbers of leaves, int64.

        Raises:
            ValueError: a tree has no leaf on the way.
        """
        at = self.roots.expand(x.shape[0], -1)
        for _ in range(self.modes.numel() + 1):
            modes = self.modes[at]
            if bool((modes == _LEAF).all()):
                return at
            value, split = taeda.gather(x, 1, self.features[at]), self.splits[at]
            right = taeda.zeros_like(modes, dtype=taeda.bool)
            for mode, compare in enumerate(_COMPARE):
                right = right | ((modes == mode) & compare(value, split))
            for node, members in self.members.items():
                right = right | ((at == node) & taeda.isin(value, members))
            right = right | (taeda.isnan(value) & self.missing[at])
            at = taeda.where(modes == _LEAF, at, taeda.where(right, self.yes[at], self.no[at]))
        raise ValueError("expected trees that end in leaves, got a cycle")

    def scores(self, x: Tensor, aggregate: str) -> Tensor:
        """The combined values of a row's leaves: (rows, targets)."""
        said = self.weights[self.leaves(x)]
        if aggregate in ("MIN", "MAX"):
            filler = taeda.inf if aggregate == "MIN" else -taeda.inf
            said = taeda.where(taeda.isnan(said), filler, said)
            result = said.amin(1) if aggregate == "MIN" else said.amax(1)
            return taeda.where(taeda.isinf(result), 0, result)
        total = taeda.nan_to_num(said).sum(1)
        return total / self.roots.numel() if aggregate == "AVERAGE" else total


def _whole(values: Sequence[int]) -> Tensor:
    return taeda.tensor(list(values), dtype=taeda.int64)


def _weights(
    nodes: int, targets: int, places: Sequence[tuple[int, int]], values: Sequence[float], dtype: Any
) -> Tensor:
    table = np.full((nodes, targets), np.nan)
    for (node, target), value in zip(places, values, strict=True):
        table[node, target] = np.nan_to_num(table[node, target]) + value
    return taeda.from_numpy(table).to(dtype)


def _old(prefix: str, targets: int, attributes: dict[str, Any]) -> Trees:
    """Trees by the attributes of the ops for classes and for regression, whose nodes are (tree, node)."""
    trees, ids = attributes["nodes_treeids"], attributes["nodes_nodeids"]
    place = {pair: i for i, pair in enumerate(zip(trees, ids, strict=True))}
    modes = [_MODES.index(mode) for mode in attributes["nodes_modes"]]

    def children(name: str) -> Tensor:
        pairs = zip(trees, attributes[name], modes, strict=True)
        return _whole([i if mode == _LEAF else place[tree, child] for i, (tree, child, mode) in enumerate(pairs)])

    def numbers(name: str) -> Any:
        given = attributes.get(name + "_as_tensor")
        return given if given is not None else taeda.tensor(attributes[name])

    splits, weights = numbers("nodes_values"), numbers(f"{prefix}_weights")
    owners = zip(attributes[f"{prefix}_treeids"], attributes[f"{prefix}_nodeids"], strict=True)
    said = [(place[owner], target) for owner, target in zip(owners, attributes[f"{prefix}_ids"], strict=True)]
    yes, no = children("nodes_truenodeids"), children("nodes_falsenodeids")
    below = {int(n) for i, mode in enumerate(modes) if mode != _LEAF for n in (yes[i], no[i])}
    roots = [i for i in range(len(modes)) if i not in below]
    missing = attributes.get("nodes_missing_value_tracks_true") or [0] * len(modes)
    table = _weights(len(modes), targets, said, weights.tolist(), weights.dtype)
    features = _whole(attributes["nodes_featureids"])
    return Trees(_whole(roots), features, _whole(modes), splits, yes, no, _whole(missing) > 0, table, {})


def _rows(x: Tensor) -> Tensor:
    return x if x.is_floating_point() else x.float()


@op("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(
    x: Tensor, *, n_targets: int, aggregate_function: str = "SUM", base_values: list[float] | None = None,
    base_values_as_tensor: Tensor | None = None, post_transform: str = "NONE", **attributes: Any,
) -> Tensor:  # fmt: skip
    base = base_values_as_tensor if base_values_as_tensor is not None else taeda.tensor(base_values or [0.0])
    scores = _old("target", n_targets, attributes).scores(_rows(x), aggregate_function) + base
    return _after(scores, post_transform)


_after = post_transform  # the name of an attribute hides it


@op("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(
    x: Tensor, *, base_values: list[float] | None = None, base_values_as_tensor: Tensor | None = None,
    classlabels_int64s: list[int] | None = None, classlabels_strings: list[str] | None = None,
    post_transform: str = "NONE", **attributes: Any,
) -> tuple[Any, Tensor]:  # fmt: skip
    """The second class is chosen above 0 where leaves score one of two classes only, or above a half if no weight is
    negative."""
    labels = list(classlabels_strings or classlabels_int64s or [])
    base = base_values_as_tensor if base_values_as_tensor is not None else taeda.tensor(base_values or [0.0])
    scores = _old("class", len(labels), attributes).scores(_rows(x), "SUM")
    said = set(attributes["class_ids"])
    if len(labels) != 2 or len(said) == 2:
        return classified(scores + base, labels, post_transform)
    weights = attributes.get("class_weights") or attributes["class_weights_as_tensor"].tolist()
    positive = min(weights) >= 0
    if said == {0}:  # one class's value is the score of the second
        second = scores[:, :1] + base
        if post_transform == "LOGISTIC":
            both = taeda.sigmoid(taeda.cat([-second, second], 1))
        else:
            both = taeda.cat([1 - second if positive else -second, second], 1)
    else:
        scores = scores + base if base.numel() == 2 else scores
        second, both = scores[:, 1:], _after(scores, post_transform)
    return labelled((second[:, 0] > (0.5 if positive else 0)).to(taeda.int64), labels), both


@op("TreeEnsemble", 5, domain=ML)
def tree_ensemble(
    x: Tensor, *, leaf_targetids: list[int], leaf_weights: Tensor, nodes_falseleafs: list[int],
    nodes_falsenodeids: list[int], nodes_featureids: list[int], nodes_modes: Tensor, nodes_splits: Tensor,
    nodes_trueleafs: list[int], nodes_truenodeids: list[int], tree_roots: list[int], aggregate_function: int = 1,
    membership_values: Tensor | None = None, n_targets: int = 1, nodes_hitrates: Tensor | None = None,
    nodes_missing_value_tracks_true: list[int] | None = None, post_transform: int = 0,
) -> Tensor:  # fmt: skip
    """Leaves are numbered apart from nodes; here they follow them."""
    n, leaves = len(nodes_featureids), len(leaf_targetids)

    def children(ids: list[int], leaf: list[int]) -> Tensor:
        return _whole([*(i + n * is_leaf for i, is_leaf in zip(ids, leaf, strict=True)), *range(n, n + leaves)])

    modes = nodes_modes.tolist()
    members: dict[int, Tensor] = {}
    if membership_values is not None:
        groups = np.split(membership_values.numpy(), np.flatnonzero(np.isnan(membership_values.numpy())))
        sets = [taeda.from_numpy(group[~np.isnan(group)]) for group in groups]
        members = dict(zip([i for i, mode in enumerate(modes) if mode == _MEMBER], sets, strict=False))
    places = [(n + i, target) for i, target in enumerate(leaf_targetids)]
    none = [0] * leaves
    missing = _whole([*(nodes_missing_value_tracks_true or [0] * n), *none]) > 0
    trees = Trees(
        _whole(tree_roots), _whole([*nodes_featureids, *none]), _whole([*modes, *([_LEAF] * leaves)]),
        taeda.cat([nodes_splits, nodes_splits.new_zeros(leaves)]), children(nodes_truenodeids, nodes_trueleafs),
        children(nodes_falsenodeids, nodes_falseleafs), missing,
        _weights(n + leaves, n_targets, places, leaf_weights.tolist(), leaf_weights.dtype), members,
    )  # fmt: skip
    scores = trees.scores(_rows(x), ["AVERAGE", "SUM", "MIN", "MAX"][aggregate_function])
    return _after(scores, ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"][post_transform])

"""The trees of ai.onnx.ml: of each the weights of the leaf to which a row leads, aggregated over trees."""
# ruff: noqa: N803 - inputs have the names that ONNX gives them

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.model.case import TensorValue
from harness.model.dtypes import Array
from harness.operators.base import Call
from harness.operators.machine_learning.support_vectors import classes_of

_MODES: dict[str, Any] = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}
"""The modes of nodes in the order of their numbers in TreeEnsemble."""
_AGGREGATES: dict[str, Any] = {"SUM": np.sum, "AVERAGE": np.mean, "MIN": np.min, "MAX": np.max}


class _Nodes(NamedTuple):
    """The nodes of trees, leaves among them: the feature and the value that each compares, and where it leads."""

    modes: Sequence[str]
    features: Sequence[int]
    values: Array
    missing: Sequence[int]
    """Where NaN leads to the true node; empty for nowhere."""
    true: Sequence[int]
    false: Sequence[int]


def _leaf(row: Array, root: int, nodes: _Nodes) -> int:
    """Walk from a root to a leaf, by no node twice."""
    at = root
    for _ in nodes.modes:
        if nodes.modes[at] == "LEAF":
            return int(at)
        value = row[nodes.features[at]]
        missing = nodes.missing and nodes.missing[at] and np.isnan(value)
        true = missing or _MODES[nodes.modes[at]](value, nodes.values[at])
        at = (nodes.true if true else nodes.false)[at]
    raise ValueError("the nodes of a tree form a circle")


def _weighed(X: Array, call: Call, of: str, targets: int) -> Array:
    """Return the aggregated weights of the leaves, [N, targets] of float64, base values added."""
    get = call.parameter
    places = {each: i for i, each in enumerate(zip(get("nodes_treeids"), get("nodes_nodeids"), strict=True))}
    true, false = (
        [places.get((tree, get(f"nodes_{way}nodeids")[i]), -1) for (tree, _), i in places.items()]
        for way in ("true", "false")
    )
    missing: Any = call.attributes.get("nodes_missing_value_tracks_true", ())
    values = np.asarray(get("nodes_values"), np.float32)
    nodes = _Nodes(get("nodes_modes"), get("nodes_featureids"), values, missing, true, false)
    roots = [places[tree, 0] for tree in dict.fromkeys(get("nodes_treeids"))]
    weights: dict[int, list[tuple[int, float]]] = {}
    for tree, at, target, weight in zip(
        *(get(f"{of}_{key}") for key in ("treeids", "nodeids", "ids", "weights")), strict=True
    ):
        weights.setdefault(places[tree, at], []).append((target, weight))
    function = str(call.attributes.get("aggregate_function", "SUM"))
    base = np.asarray(call.attributes.get("base_values") or 0.0, float)
    return np.asarray(_aggregated(X, roots, nodes, weights, targets, function) + base)


def _aggregated(
    X: Array, roots: Sequence[int], nodes: _Nodes, weights: Mapping[int, list[tuple[int, float]]], targets: int, function: str
) -> Array:  # fmt: skip
    found = np.zeros((len(X), len(roots), targets))
    for n, row in enumerate(X):
        for t, root in enumerate(roots):
            for target, weight in weights[_leaf(row, root, nodes)]:
                found[n, t, target] += weight
    return np.asarray(_AGGREGATES[function](found, 1))


def tree_ensemble_regressor(X: Array, n_targets: int, call: Call) -> Array:
    return _weighed(X, call, "target", n_targets).astype(np.float32)


def tree_ensemble_classifier(X: Array, call: Call) -> tuple[Array, Array]:
    """Label and score of three classes or more."""
    labels = classes_of(call, "classlabels_int64s")
    scores = _weighed(X, call, "class", len(labels))
    return labels[scores.argmax(-1)], scores.astype(np.float32)


def listed_tensor(value: Any) -> list[Any]:
    return list(value.elements) if isinstance(value, TensorValue) else list(value)


def tree_ensemble(X: Array, n_targets: int, call: Call) -> Array:
    """Nodes that branch and leaves have numbers of their own here: leaves follow the nodes."""
    get = call.parameter
    branches = len(get("nodes_featureids"))
    modes = [list(_MODES)[int(each)] for each in listed_tensor(get("nodes_modes"))]
    true, false = (
        [
            at + branches * leaf
            for at, leaf in zip(get(f"nodes_{way}nodeids"), get(f"nodes_{way}leafs"), strict=True)
        ]
        for way in ("true", "false")
    )
    missing: Any = call.attributes.get("nodes_missing_value_tracks_true", ())
    values = np.asarray(listed_tensor(get("nodes_splits")), X.dtype)
    leafs = ["LEAF"] * len(get("leaf_targetids"))
    nodes = _Nodes([*modes, *leafs], get("nodes_featureids"), values, missing, true, false)
    leaves = zip(get("leaf_targetids"), listed_tensor(get("leaf_weights")), strict=True)
    weights = {branches + i: [each] for i, each in enumerate(leaves)}
    function = list(_AGGREGATES)[{0: 1, 1: 0}.get(n := call.parameter("aggregate_function"), n)]
    return _aggregated(X, get("tree_roots"), nodes, weights, n_targets, function).astype(X.dtype)

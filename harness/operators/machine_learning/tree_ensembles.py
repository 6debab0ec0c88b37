"""The trees of ai.onnx.ml: of each tree the weights of the leaf to which a row leads, aggregated over trees."""
# ruff: noqa: N803 - inputs have the names that ONNX gives them

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.model.case import TensorValue
from harness.model.dtypes import Array
from harness.operators.base import Call, Undefined
from harness.operators.bounded import Bounded, concatenate, number
from harness.operators.machine_learning.support_vectors import (
    POST_TRANSFORMS,
    classes_of,
    columns,
    greatest_label,
    transformed,
)

_MODES: dict[str, Any] = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
    "BRANCH_MEMBER": np.isin,
}
"""The modes of nodes in the order of their numbers in TreeEnsemble, which alone has the last."""
NODE_MODES = (*list(_MODES)[:-1], "LEAF")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
"""The functions of aggregation in the order of their numbers in TreeEnsemble."""


class _Nodes(NamedTuple):
    """The nodes of trees, leaves among them: the feature and the value that each compares, and where it leads."""

    modes: Sequence[str]
    features: Sequence[int]
    values: Sequence[Any]
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
    raise Undefined("where a tree ends whose nodes form a circle")


def listed_tensor(value: Any) -> list[Any]:
    return value.tensor.array.tolist() if isinstance(value, TensorValue) else list(value)


def numbers_of(call: Call, name: str) -> list[Any]:
    """Return an attribute of numbers, which may stand in a tensor whose name ends with `_as_tensor`."""
    return listed_tensor(call.attributes.get(name) or call.attributes.get(f"{name}_as_tensor", ()))


def _scores(X: Bounded, call: Call, of: str, targets: int) -> Bounded:
    """Return the scores of an ensemble whose leaves are nodes, [N, targets]."""
    get = call.parameter
    places = {each: i for i, each in enumerate(zip(get("nodes_treeids"), get("nodes_nodeids"), strict=True))}
    true, false = (
        [places.get((tree, get(f"nodes_{way}nodeids")[i]), -1) for (tree, _), i in places.items()]
        for way in ("true", "false")
    )
    missing: Any = call.attributes.get("nodes_missing_value_tracks_true", ())
    nodes = _Nodes(
        get("nodes_modes"), get("nodes_featureids"), numbers_of(call, "nodes_values"), missing, true, false
    )
    roots = [places[tree, 0] for tree in dict.fromkeys(get("nodes_treeids"))]
    weights: dict[int, list[tuple[int, float]]] = {}
    for tree, at, target, weight in zip(
        *(get(f"{of}_{key}") for key in ("treeids", "nodeids", "ids")),
        numbers_of(call, f"{of}_weights"),
        strict=True,
    ):
        weights.setdefault(places[tree, at], []).append((target, weight))
    function = str(call.attributes.get("aggregate_function", "SUM"))
    found = _aggregated(X, roots, nodes, weights, targets, function, of == "class" and targets < 3)
    return found + np.asarray(numbers_of(call, "base_values") or 0.0, float)


def _aggregated(
    X: Bounded, roots: Sequence[int], nodes: _Nodes, weights: Mapping[int, list[tuple[int, float]]], targets: int, function: str,
    complete: bool = False,
) -> Bounded:  # fmt: skip
    """Return the weights that are aggregated; `complete` asks for one of each target in each leaf."""
    found = np.full((len(X), len(roots), targets), np.nan)
    for n, row in enumerate(X.value):
        for t, root in enumerate(roots):
            for target, weight in weights.get(_leaf(row, root, nodes), ()):
                found[n, t, target] = np.nan_to_num(found[n, t, target]) + weight
    if (complete or function in ("MIN", "MAX")) and np.isnan(found).any():
        raise Undefined("what a leaf without a weight of a target counts as")
    each = number(np.nan_to_num(found), X.arithmetic)
    if function in ("MIN", "MAX"):
        return each.min(1) if function == "MIN" else each.max(1)
    return each.sum(1) if function == "SUM" else each.mean(1)


def tree_ensemble_regressor(X: Bounded, n_targets: int, post_transform: str, call: Call) -> Bounded:
    return transformed(_scores(X, call, "target", n_targets), post_transform)


def tree_ensemble_classifier(X: Bounded, post_transform: str, call: Call) -> tuple[Any, Bounded]:
    """Label and score; of two classes, where each leaf has a weight of both, or none has one of the second.

    Weights of the first alone are then the score of the second, as in ONNX's reference implementation:
    https://github.com/onnx/onnx/blob/main/onnx/reference/ops/aionnxml/op_tree_ensemble_classifier.py
    """
    labels = classes_of(call, "classlabels_int64s")
    given = any(call.parameter("class_ids")) or numbers_of(call, "base_values")
    if given or len(labels) != 2 or post_transform not in ("NONE", "LOGISTIC"):
        scores = _scores(X, call, "class", len(labels))
    else:
        second = _scores(X, call, "class", 1)
        scores = concatenate([(1.0 if post_transform == "NONE" else 0.0) - second, second], 1)
    return greatest_label(scores, labels), transformed(scores, post_transform)


def tree_ensemble(X: Bounded, n_targets: int, post_transform: int, call: Call) -> Bounded:
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
    values, sets = listed_tensor(get("nodes_splits")), iter(sets_of(call))
    values = [
        next(sets) if mode == "BRANCH_MEMBER" else each for mode, each in zip(modes, values, strict=True)
    ]
    leafs = ["LEAF"] * len(get("leaf_targetids"))
    nodes = _Nodes([*modes, *leafs], get("nodes_featureids"), values, missing, true, false)
    leaves = zip(get("leaf_targetids"), listed_tensor(get("leaf_weights")), strict=True)
    weights = {branches + i: [each] for i, each in enumerate(leaves)}
    function = AGGREGATES[get("aggregate_function")]
    scores = _aggregated(X, get("tree_roots"), nodes, weights, n_targets, function)
    return transformed(scores, POST_TRANSFORMS[post_transform])


def sets_of(call: Call) -> list[list[float]]:
    """Return the sets of membership_values, which a NaN separates."""
    sets: list[list[float]] = [[]]
    for value in listed_tensor(call.parameter("membership_values", ())):
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(value)
    return sets if sets[-1] else sets[:-1]


def unlike_trees(call: Call) -> str | None:
    """Return the rule that the attributes of trees break."""
    get = call.parameter
    wanted = get("nodes_featureids", ())
    compared = [
        n for n, mode in zip(wanted, listed_tensor(get("nodes_modes", ())), strict=False) if mode != "LEAF"
    ]
    if not all(0 <= n < columns(call) for n in compared):
        return "X has the features that nodes compare"
    named = {"leaf_targetids": "leaf", "class_ids": "class"}
    of = next((each for key, each in named.items() if key in call.attributes), "target")
    keys = ("targetids", "weights") if of == "leaf" else ("treeids", "nodeids", "ids", "weights")
    if len({len(numbers_of(call, f"{of}_{key}")) for key in keys}) > 1:
        return "attributes of leaves have one length"
    others = ("splits", "trueleafs", "falseleafs") if of == "leaf" else ("values", "treeids", "nodeids")
    own = ("modes", "truenodeids", "falsenodeids", *others)
    if any(len(numbers_of(call, f"nodes_{key}")) != len(wanted) for key in own):
        return "attributes of nodes have one length"
    if len(get("nodes_missing_value_tracks_true", ())) not in (0, len(wanted)):
        return "attributes of nodes have one length"
    targets = len(classes_of(call, "classlabels_int64s")) if of == "class" else get("n_targets", 0)
    ids = get(f"{of}_{keys[-2]}", ())
    if not 0 <= min(ids, default=0) <= max(ids, default=0) < max(targets, 1):
        return "a weight is of one of the targets"
    fitting = len(numbers_of(call, "base_values")) in (0, targets)
    return None if fitting else "base_values has the size of the targets"

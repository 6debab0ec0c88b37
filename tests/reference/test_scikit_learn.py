"""Formulas of ai.onnx.ml against scikit-learn: a model is fitted to a few numbers, its parameters are written as attributes by
hand, and what both give is compared.

Attributes are float32, and scikit-learn computes in float64 with parameters of float64: numbers agree to 1e-5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor, TensorValue, Value
from harness.model.dtypes import Array
from harness.model.expected import Approx, Expected, OneOf, nearest
from harness.operators import OPERATORS
from tests.calling import call_of
from tests.needs import need

if find_spec("sklearn") is None:
    need("reference", "python -m pip install -e '.[reference]'")

RANDOM = np.random.default_rng(7)
X = (RANDOM.integers(-8, 9, (60, 3)) / 4).astype(np.float32)
Y = X[:, 0] * 2 - X[:, 1] ** 2 + X[:, 2] / 2
LABELS = np.array([3, 7, 9])[np.digitize(Y, np.quantile(Y, (0.3, 0.6)))]
TEXTS = np.array(["low", "ä", "high"], object)[np.digitize(Y, np.quantile(Y, (0.3, 0.6)))]


def learn(module: str) -> Any:
    """Return a module of scikit-learn, which takes longer to import than all other tests to collect."""
    return import_module(f"sklearn.{module}")


def tensor(array: Array) -> Tensor:
    return Tensor("string" if array.dtype == object else str(array.dtype), array)


def asked(operator: str, attributes: Mapping[str, Value], *inputs: Array) -> tuple[Expected, ...]:
    """Return what the oracle expects of a call."""
    given = [tensor(each) for each in inputs]
    call = call_of(f"ai.onnx.ml.{operator}", given, attributes)
    return OPERATORS[f"ai.onnx.ml.{operator}"].oracle(
        call, dict(zip(call.inputs, given, strict=True)), "opencl"
    )


def given(operator: str, attributes: Mapping[str, Value], *inputs: Array) -> list[Array]:
    return [nearest(each).array for each in asked(operator, attributes, *inputs)]


def numbers(array: Any) -> tuple[float, ...]:
    return tuple(np.ravel(array).tolist())


def close(found: Array, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["StandardScaler", "RobustScaler"])
def test_scaler(name: str) -> None:
    scaler = getattr(learn("preprocessing"), name)().fit(X)
    offset = getattr(scaler, "mean_", None)
    offset = scaler.center_ if offset is None else offset
    (found,) = given("Scaler", {"offset": numbers(offset), "scale": numbers(1 / scaler.scale_)}, X)
    close(found, scaler.transform(X))


@pytest.mark.parametrize("norm", ["max", "l1", "l2"])
def test_normalizer(norm: str) -> None:
    """Of numbers above 0: scikit-learn takes magnitudes for `max` and `l1`, ONNX does not."""
    above = np.abs(X) + np.float32(0.25)
    (found,) = given("Normalizer", {"norm": norm.upper()}, above)
    close(found, learn("preprocessing").normalize(above, norm))


def test_binarizer() -> None:
    (found,) = given("Binarizer", {"threshold": 0.5}, X)
    assert found.tolist() == learn("preprocessing").Binarizer(threshold=0.5).transform(X).tolist()


def test_imputer() -> None:
    lacking = np.where(X == 1, np.float32(np.nan), X)
    model = learn("impute").SimpleImputer().fit(lacking)
    attributes = {"imputed_value_floats": numbers(model.statistics_), "replaced_value_float": float("nan")}
    close(given("Imputer", attributes, lacking)[0], model.transform(lacking))


def test_one_hot_encoder() -> None:
    model = learn("preprocessing").OneHotEncoder(handle_unknown="ignore").fit(LABELS[:, None])
    known = np.append(LABELS, 4)
    (found,) = given("OneHotEncoder", {"cats_int64s": numbers(model.categories_[0])}, known)
    assert found.tolist() == model.transform(known[:, None]).toarray().tolist()


def test_label_encoder() -> None:
    model = learn("preprocessing").LabelEncoder().fit(TEXTS)
    attributes = {"keys_strings": numbers(model.classes_), "values_int64s": tuple(range(3))}
    assert given("LabelEncoder", attributes, TEXTS)[0].tolist() == model.transform(TEXTS).tolist()


def test_dict_vectorizer() -> None:
    model = learn("feature_extraction").DictVectorizer(sparse=False).fit([{"b": 1, "ä": 2}, {"a": 3}])
    row = {"ä": 0.5, "a": 4.0}
    inputs = np.array(list(row), object), np.array(list(row.values()), np.float32)
    attributes = {"string_vocabulary": tuple(model.get_feature_names_out().tolist())}
    assert given("DictVectorizer", attributes, *inputs)[0].tolist() == model.transform(row)[0].tolist()


@pytest.mark.parametrize("name", ["LinearRegression", "Ridge"])
def test_linear_regressor(name: str) -> None:
    model = getattr(learn("linear_model"), name)().fit(X, np.stack([Y, Y**2], -1))
    attributes = {
        "coefficients": numbers(model.coef_),
        "intercepts": numbers(model.intercept_),
        "targets": 2,
    }
    close(given("LinearRegressor", attributes, X)[0], model.predict(X))


def test_linear_classifier() -> None:
    model = learn("linear_model").LogisticRegression(max_iter=1000).fit(X, LABELS)
    attributes = {
        "coefficients": numbers(model.coef_),
        "intercepts": numbers(model.intercept_),
        "classlabels_ints": numbers(model.classes_),
        "post_transform": "SOFTMAX",
    }
    labels, scores = given("LinearClassifier", attributes, X)
    assert labels.tolist() == model.predict(X).tolist()
    close(scores, model.predict_proba(X))


KERNELS = ["linear", "rbf", "poly", "sigmoid"]


def kernel_of(model: Any) -> dict[str, Value]:
    """Return the attributes that both machines have."""
    return {
        "kernel_type": model.kernel.upper(),
        "kernel_params": (float(model._gamma), float(model.coef0), float(model.degree)),
        "support_vectors": numbers(model.support_vectors_),
    }


@pytest.mark.parametrize("kernel", KERNELS)
def test_svm_regressor(kernel: str) -> None:
    model = learn("svm").SVR(kernel=kernel, degree=2, coef0=0.5, gamma=0.25).fit(X, Y)
    attributes = kernel_of(model) | {
        "coefficients": numbers(model.dual_coef_),
        "n_supports": len(model.support_vectors_),
        "rho": numbers(model.intercept_),
    }
    close(given("SVMRegressor", attributes, X)[0][:, 0], model.predict(X))


def classifier_of(model: Any, sign: int = 1) -> dict[str, Value]:
    """Return the attributes of a machine; scikit-learn turns the signs of one for two classes."""
    texts = model.classes_.dtype == object
    return kernel_of(model) | {
        "coefficients": numbers(sign * model.dual_coef_),
        "rho": numbers(sign * model.intercept_),
        "vectors_per_class": numbers(model.n_support_),
        "classlabels_strings" if texts else "classlabels_ints": numbers(model.classes_),
    }


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("labels", [LABELS, TEXTS], ids=["integers", "texts"])
def test_svm_classifier(kernel: str, labels: Array) -> None:
    model = learn("svm").SVC(kernel=kernel, degree=2, coef0=0.5, gamma=0.25, decision_function_shape="ovo")
    model.fit(X, labels)
    chosen, scores = asked("SVMClassifier", classifier_of(model), X)
    assert isinstance(
        chosen, OneOf
    )  # of scores within their error of 0 either label; scikit-learn's is that of the value
    assert chosen.candidates[1].array.tolist() == model.predict(X).tolist()
    close(nearest(scores).array, model.decision_function(X))


@pytest.mark.parametrize("kernel", KERNELS)
def test_svm_classifier_of_two(kernel: str) -> None:
    model = learn("svm").SVC(kernel=kernel, degree=2, coef0=0.5, gamma=0.25).fit(X, Y > 0)
    attributes = classifier_of(model, -1) | {"classlabels_ints": (0, 1)}
    chosen, _ = asked("SVMClassifier", attributes, X)
    assert isinstance(chosen, OneOf)
    assert chosen.candidates[1].array.tolist() == model.predict(X).astype(int).tolist()


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_svm_probabilities(classes: int) -> None:
    """LIBSVM's own lie within the bound, and by it near: far from what other classes have."""
    labels = np.digitize(Y, np.quantile(Y, np.arange(1, classes) / classes))
    model = learn("svm").SVC(gamma=0.25, probability=True, random_state=0).fit(X, labels)
    attributes = classifier_of(model, -1 if classes == 2 else 1) | {
        "prob_a": numbers(model.probA_),
        "prob_b": numbers(model.probB_),
    }
    _, scores = asked("SVMClassifier", attributes, X)
    assert isinstance(scores, Approx)
    wanted = model.predict_proba(X)
    assert scores.bound.max() < 0.05
    assert (np.abs(scores.value - wanted) <= scores.bound + 1e-5).all()
    assert np.abs(scores.value - np.roll(wanted, 1, -1)).max() > 0.5


def nodes_of(trees: Iterable[Any]) -> dict[str, Value]:
    """Return the attributes `nodes_*` of scikit-learn's trees, all of which branch by <=."""
    found: dict[str, list[Any]] = {}
    for number, each in enumerate(trees):
        leaf = each.children_left < 0
        rows = {
            "treeids": [number] * each.node_count,
            "nodeids": list(range(each.node_count)),
            "featureids": np.where(leaf, 0, each.feature).tolist(),
            "values": np.where(leaf, 0, each.threshold).tolist(),
            "modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
            "truenodeids": np.where(leaf, 0, each.children_left).tolist(),
            "falsenodeids": np.where(leaf, 0, each.children_right).tolist(),
        }
        for key, row in rows.items():
            found.setdefault(f"nodes_{key}", []).extend(row)
    return {key: tuple(values) for key, values in found.items()}


def leaves_of(trees: Iterable[Any], of: str, scale: float = 1) -> dict[str, Value]:
    """Return the attributes of the weights of leaves: a value for each target, or the shares of classes."""
    found: list[tuple[int, int, int, float]] = []
    for number, each in enumerate(trees):
        values = each.value.reshape(each.node_count, -1)
        if of == "class":
            values = values / values.sum(-1, keepdims=True)
        for node in np.flatnonzero(each.children_left < 0).tolist():
            found += [
                (number, node, target, scale * weight) for target, weight in enumerate(values[node].tolist())
            ]
    keys = ("treeids", "nodeids", "ids", "weights")
    return {f"{of}_{key}": values for key, values in zip(keys, zip(*found, strict=True), strict=True)}


@pytest.mark.parametrize("targets", [1, 2])
def test_forest_of_regressors(targets: int) -> None:
    model = learn("ensemble").RandomForestRegressor(5, max_depth=4, random_state=0)
    model.fit(X, Y if targets == 1 else np.stack([Y, -(Y**2)], -1))
    trees = [each.tree_ for each in model.estimators_]
    attributes = {"n_targets": targets, "aggregate_function": "AVERAGE"}
    (found,) = given("TreeEnsembleRegressor", attributes | nodes_of(trees) | leaves_of(trees, "target"), X)
    close(found.reshape(len(X), -1), model.predict(X).reshape(len(X), -1))


def test_boosted_trees() -> None:
    model = learn("ensemble").GradientBoostingRegressor(n_estimators=7, max_depth=3, random_state=0).fit(X, Y)
    trees = [each.tree_ for (each,) in model.estimators_]
    leaves = leaves_of(trees, "target", model.learning_rate)
    base = {"n_targets": 1, "base_values": (float(Y.mean()),)}
    close(given("TreeEnsembleRegressor", base | nodes_of(trees) | leaves, X)[0][:, 0], model.predict(X))


@pytest.mark.parametrize("labels", [LABELS, TEXTS], ids=["integers", "texts"])
@pytest.mark.parametrize("count", [1, 5])
def test_trees_of_classes(labels: Array, count: int) -> None:
    model: Any = learn("tree").DecisionTreeClassifier(max_depth=3, random_state=0)
    if count > 1:
        model = learn("ensemble").RandomForestClassifier(count, max_depth=3, random_state=0)
    model.fit(X, labels)
    trees = [each.tree_ for each in getattr(model, "estimators_", [model])]
    key = "classlabels_strings" if labels.dtype == object else "classlabels_int64s"
    attributes = {key: numbers(model.classes_)} | nodes_of(trees) | leaves_of(trees, "class", 1 / count)
    found, scores = given("TreeEnsembleClassifier", attributes, X)
    assert found.tolist() == model.predict(X).tolist()
    close(scores, model.predict_proba(X))


def held(dtype: str, values: Iterable[Any]) -> TensorValue:
    elements = tuple(values)
    return TensorValue(dtype, (len(elements),), elements)


def test_tree_ensemble() -> None:
    """Nodes that branch have numbers of their own, and leaves have."""
    each = learn("tree").DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, Y)
    kept = each.tree_
    branches, leaves = np.flatnonzero(kept.children_left >= 0), np.flatnonzero(kept.children_left < 0)
    place = {node: n for nodes in (branches, leaves) for n, node in enumerate(nodes.tolist())}
    ways = {"true": kept.children_left[branches].tolist(), "false": kept.children_right[branches].tolist()}
    attributes: dict[str, Value] = {
        "n_targets": 1,
        "aggregate_function": 1,
        "tree_roots": (0,),
        "nodes_featureids": numbers(kept.feature[branches]),
        "nodes_modes": held("uint8", [0] * len(branches)),
        "nodes_splits": held("float32", kept.threshold[branches].tolist()),
        "leaf_targetids": (0,) * len(leaves),
        "leaf_weights": held("float32", kept.value[leaves].ravel().tolist()),
    }
    for way, nodes in ways.items():
        attributes[f"nodes_{way}nodeids"] = tuple(place[node] for node in nodes)
        attributes[f"nodes_{way}leafs"] = tuple(int(kept.children_left[node] < 0) for node in nodes)
    close(given("TreeEnsemble", attributes, X)[0][:, 0], each.predict(X))

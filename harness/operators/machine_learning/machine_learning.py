"""ONNX's operators for machine learning, those of its domain ai.onnx.ml, each in its newest version.

Inputs of other types count as the float32 numbers that they are; cases have only such.
"""
# ruff: noqa: N803 - inputs have the names that ONNX gives them

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Expected
from harness.operators.base import Call, Operator, Oracle, Relation, Shape, Undefined
from harness.operators.bounded import Bounded, where
from harness.operators.computing import Conditioned
from harness.operators.data_movement.moving import shapes_by_formula
from harness.operators.dimensioned import Chosen, Dimensioned, Dimensions
from harness.operators.formulas import Formula, bounded, decided, moved
from harness.operators.machine_learning.support_vectors import (
    classes_of,
    linear_classifier,
    linear_regressor,
    svm_classifier,
    svm_regressor,
)
from harness.operators.machine_learning.tree_ensembles import (
    listed_tensor,
    tree_ensemble,
    tree_ensemble_classifier,
    tree_ensemble_regressor,
)

# Scaler:                 Y = (X - offset) scale
# Normalizer:             Y = X / max X, X / sum X, or sqrt(X X / sum X X), of each row; the last two lose the sign of negative
#                         numbers, which no implementation does, and nothing is claimed of a row that has some
# Binarizer:              Y = 1 where X > threshold, else 0
# Imputer:                Y = X, but the imputed value where X is the replaced one
# ArrayFeatureExtractor:  Z[..., i] = X[..., Y[i]], of a vector one row
# OneHotEncoder:          Y[..., i] = 1 where X is the i-th category, else 0
# LabelEncoder:           Y = the value of the key that X is
# LinearRegressor:        Y = X W' + b
# LinearClassifier:       Z = X W' + b, Y the label of the greatest
# SVMRegressor:           Y = sum over i of c[i] K(v[i], X) + rho
# SVMClassifier:          f[i, j] = sum over v of class i of c[j-1, v] K(v, X) + sum over v of class j of c[i, v] K(v, X) + rho[i, j];
#                         Y the class with most votes, of which f[i, j] > 0 gives i one and j otherwise; Z = f, or probabilities
# CategoryMapper:         Y = the text beside the integer that X is, or the integer beside the text
# ZipMap:                 Z[n] = {key i: X[n, i]}
# DictVectorizer:         Y[i] = X[the i-th of the vocabulary], 0 where X has no such key
# CastMap:                Y[0, i] = X[the i-th key, ascending], or where sparse X[i]
# FeatureVectorizer:      Y[n] = X_0[n], X_1[n], .. as float32
# TreeEnsemble*:          of each tree the weights of the leaf to which X leads, aggregated over trees


def _as_float32(formula: Formula) -> Any:
    """Make the oracle of a formula whose inputs are taken as float32."""
    oracle = bounded(formula)

    def taken(call: Call, inputs: Mapping[str, Tensor], arithmetic: str) -> tuple[Expected, ...]:
        floats = {name: Tensor("float32", each.array.astype(np.float32)) for name, each in inputs.items()}
        return oracle(call, floats, arithmetic)

    return taken


def scaler(X: Bounded, offset: Any, scale: Any) -> Bounded:
    return (X - np.asarray(offset, float)) * np.asarray(scale, float)


def normalizer(X: Bounded, norm: str) -> Bounded:
    if norm == "MAX":
        return X / X.max(-1, keepdims=True)
    y = X / X.sum(-1, keepdims=True) if norm == "L1" else np.sqrt(X * X / (X * X).sum(-1, keepdims=True))
    signed = np.broadcast_to((X.value < 0).any(-1, keepdims=True), X.shape)
    return where(signed, X.unclaimed(), y)


def binarizer(X: Array, threshold: float) -> Array:
    return np.asarray(np.float32(threshold) < X).astype(X.dtype)


def imputer(X: Array, call: Call) -> Array:
    integers = X.dtype.kind == "i"
    imputed = call.parameter("imputed_value_int64s" if integers else "imputed_value_floats")
    replaced = call.parameter("replaced_value_int64" if integers else "replaced_value_float")
    missing = np.isnan(X) if replaced != replaced else np.asarray(replaced, X.dtype) == X
    return np.where(missing, np.asarray(imputed, X.dtype), X)


def array_feature_extractor(X: Array, Y: Array) -> Array:
    return np.atleast_2d(X[..., Y.reshape(-1)])


def one_hot_encoder(X: Array, call: Call) -> Array:
    categories = call.parameter("cats_strings" if X.dtype.kind == "O" else "cats_int64s")
    every = np.array(categories, object if X.dtype.kind == "O" else X.dtype)
    whole = np.trunc(X) if X.dtype.kind == "f" else X  # ONNX: the data will be cast to integers
    return np.asarray(whole[..., None] == every).astype(np.float32)


_LABELS = {"int64s": "int64", "floats": "float32", "strings": "string", "tensor": ""}
"""By the end of an attribute's name the element type of its labels; a tensor says its own."""


def _given(call: Call, of: str) -> tuple[str, Any]:
    """Return which of the attributes `keys_*` or `values_*` a call has, and its value."""
    ((end, value),) = ((end, found) for end in _LABELS if (found := call.attributes.get(f"{of}_{end}")))
    return end, value


def label_encoder(X: Array, call: Call) -> Array:
    """NaN is a key as any number is."""
    _, keys = _given(call, "keys")
    end, values = _given(call, "values")
    default = call.parameter(
        {"int64s": "default_int64", "floats": "default_float"}.get(end, "default_string")
    )
    if end == "tensor":
        default = call.parameter("default_tensor").elements[0]
    return _looked_up(
        X, np.asarray(listed_tensor(keys), X.dtype).tolist(), listed_tensor(values), default, call
    )


def category_mapper(X: Array, call: Call) -> Array:
    ints, texts = call.parameter("cats_int64s"), call.parameter("cats_strings")
    if X.dtype.kind == "O":
        return _looked_up(X, texts, ints, call.parameter("default_int64"), call)
    return _looked_up(X, ints, texts, call.parameter("default_string"), call)


def _looked_up(X: Array, keys: Sequence[Any], values: Sequence[Any], default: Any, call: Call) -> Array:
    table = dict(zip(map(_key, keys), values, strict=True))
    found = [table.get(_key(each), default) for each in X.reshape(-1).tolist()]
    return np.array(found, DTYPES[call.outputs[0]].storage).reshape(X.shape)


def _key(value: Any) -> Any:
    return "NaN" if value != value else value


def feature_vectorizer(X: Sequence[Array]) -> Array:
    return np.concatenate([np.atleast_2d(each) for each in X], -1).astype(np.float32)


def _columns(*attributes: str) -> Any:
    """Make the rule that attributes have one number, or one a column."""

    def rule(n: Dimensions, call: Call) -> str | None:
        lengths = [len(call.attributes[each]) for each in attributes if each in call.attributes]  # type: ignore[arg-type]
        return None if all(each in (1, n["C"]) for each in lengths) else "one number, or one for each column"

    return rule


def zip_map(X: Array, call: Call) -> tuple[Array, Array]:
    """Keys and values in the order of the keys."""
    keys = classes_of(call, "classlabels_int64s")
    if len(set(keys.tolist())) < len(keys):
        raise Undefined("which of two columns of one key counts")
    order, shape = np.argsort(keys), _maps(call)[0]
    return np.tile(keys[order], (len(X), 1)).reshape(shape), X[:, order].reshape(shape)


def _maps(call: Call) -> tuple[Shape, Shape]:
    """Return the shapes of keys and values; a sequence of no maps has no keys."""
    shape = call.first.shape
    return (shape, shape) if shape[:1] != (0,) else ((0, 0), (0, 0))


def dict_vectorizer(X_keys: Array, X_values: Array, call: Call) -> Array:
    held = dict(zip(X_keys.tolist(), X_values.tolist(), strict=True))
    if X_values.dtype.kind == "O" and len(held) < len(_vocabulary(call)):
        raise Undefined("which text is zero")
    return np.array([held.get(each, 0) for each in _vocabulary(call)], X_values.dtype)


def _vocabulary(call: Call) -> Any:
    return call.attributes.get("int64_vocabulary") or call.attributes.get("string_vocabulary", ())


def cast_map(X_keys: Array, X_values: Array, map_form: str, max_map: int, call: Call) -> Array:
    if map_form == "SPARSE" and len(X_keys) < max_map:
        raise Undefined("what stands where the map has no key")
    numbers, to = X_values.dtype.kind == "f", call.outputs[0]
    if numbers and to == "string":
        raise Undefined("how a number is written")
    if numbers and to == "int64" and not ((X_values == np.trunc(X_values)) & (abs(X_values) < 2.0**63)).all():
        raise Undefined("what integer a fraction is")
    cast: Any = {"string": str, "int64": int, "float32": np.float32}[to]
    ordered = X_values[np.argsort(X_keys)].tolist()
    return np.array([[cast(each) for each in ordered]], DTYPES[to].storage)


class _Map(Dimensioned):
    """A map, as its keys and its values; `options` of its operator is the rule that keys break."""

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """Keys that stand twice, or that the operator does not take."""
        keys = inputs["X_keys"].array.tolist()
        broken: str | None = operator.options(call, keys)
        return broken if len(set(keys)) == len(keys) else "the keys of a map are distinct"


def _not_in_vocabulary(call: Call, keys: Sequence[Any]) -> str | None:
    return None if set(keys) <= set(_vocabulary(call)) else "every key is in the vocabulary"


def _beyond_the_map(call: Call, keys: Sequence[int]) -> str | None:
    sparse = call.attributes["map_form"] == "SPARSE"
    inside = all(0 <= key < call.parameter("max_map") for key in keys)
    return None if inside or not sparse else "a key is an index of the sparse output"


class _Features(Conditioned):
    """Rows of features: tensors of one or two dimensions, as wide as each likes."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"X": ("of", "count", "others")}

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Any:
        """Return the shapes of `count` tensors: the first is `of`, the `others` are the same, wider (one column more with
        each further one), or of one row more (unlike)."""
        assert not isinstance(relation, str)
        first, others = relation["of"], relation.get("others", "same")
        wider, more = int(others == "wider"), int(others == "unlike")
        rows = tuple(extent + more for extent in first[:-1])
        return (
            first,
            *((*rows, first[-1] + n * wider) for n in range(1, int(str(relation.get("count", 2))))),
        )

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Tensors of other ranks, of unlike rows, or of other sizes than are said."""
        if any(len(shape) not in (1, 2) for shape in call.shapes):
            return "inputs have one or two dimensions"
        if len({shape[0] if shape[1:] else 1 for shape in call.shapes}) > 1:
            return "inputs have equally many rows"
        said = call.attributes.get("inputdimensions")
        return (
            None
            if said in (None, tuple(shape[-1] for shape in call.shapes))
            else "inputdimensions has the size of each input"
        )

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The shape that the formula gives."""
        return (call.first.shape,) if operator.broken_rule(call) else shapes_by_formula(operator, call)


def _cannot_classify(call: Call) -> str | None:
    a, b = (call.parameter(name, ()) for name in ("prob_a", "prob_b"))
    if len(a) != len(b):
        return "prob_b has the size of prob_a"
    classes, held = len(classes_of(call, "classlabels_ints")), call.parameter("vectors_per_class", ())
    if not (call.parameter("coefficients") and call.parameter("rho")):
        return "coefficients and rho are given"
    if not held:
        return None
    pairs = classes * (classes - 1) // 2
    vectors, coefficients, rho = (
        len(call.parameter(name, ())) for name in ("support_vectors", "coefficients", "rho")
    )
    fitting = (
        len(held) == classes > 1
        and vectors == sum(held) * call.first.shape[-1]
        and coefficients == (classes - 1) * sum(held)
        and rho == pairs
        and len(a) in (0, pairs)
    )
    return None if fitting else "attributes have the sizes that classes, vectors and columns give them"


def _one_given(call: Call, *names: str) -> str | None:
    given = sum(bool(call.attributes.get(name)) for name in names)
    return None if given == 1 else f"one of {' and '.join(names)} is given"


def _unlike_categories(call: Call) -> str | None:
    ints, texts = (call.parameter(name, ()) for name in ("cats_int64s", "cats_strings"))
    return None if len(ints) == len(texts) else "cats_int64s has the length of cats_strings"


def _classifier(
    name: str, integers: str, oracle: Oracle, rule: Callable[[Call], str | None] = lambda _: None
) -> Operator:
    """Make an operator of labels and scores; `integers` is the attribute of labels that are no texts."""
    types = lambda call: ("int64" if call.attributes.get(integers) else "string", "float32")  # noqa: E731
    family = Dimensioned("X: N C", "N; N E", types=types, count=2)
    return Operator(
        f"ai.onnx.ml.{name}",
        family,
        oracle,
        lambda call: _one_given(call, integers, "classlabels_strings") or rule(call),
        outputs=lambda call: (call.first.shape[:1], (call.first.shape[0], len(classes_of(call, integers)))),
    )


def _label_type(call: Call) -> tuple[str | None, ...]:
    end, values = _given(call, "values")
    return (values.dtype if end == "tensor" else _LABELS[end],)


_KEYS = (
    Chosen("distinct", lambda raw, _: np.argsort(raw)),
    Chosen("others", lambda raw, _: np.argsort(raw) + 9, "every key is in the vocabulary"),
)
_CAST = {"TO_FLOAT": "float32", "TO_INT64": "int64", "TO_STRING": "string"}
_COLUMNS = (
    Chosen("in_range", lambda raw, n: raw % n["C"]),
    Chosen("beyond", lambda raw, n: raw % 3 + n["C"], "indices within the last dimension"),
)


def _lacks_features(call: Call) -> str | None:
    wanted = max(call.parameter("nodes_featureids"), default=0)
    return None if wanted < call.first.shape[-1] else "X has the features that nodes compare"


_ROWS = Dimensioned("X: N C", "N n_targets")

OPERATORS = (
    Operator(
        "ai.onnx.ml.Scaler", Dimensioned("X: N C", "N C", rule=_columns("offset", "scale")), _as_float32(scaler)
    ),
    Operator("ai.onnx.ml.Normalizer", Dimensioned("X: N C", "N C"), _as_float32(normalizer)),
    Operator("ai.onnx.ml.Binarizer", Dimensioned("X: N C", "N C"), decided(binarizer)),
    Operator(
        "ai.onnx.ml.Imputer",
        Dimensioned("X: N C", "N C", rule=_columns("imputed_value_floats", "imputed_value_int64s")),
        decided(imputer),
    ),
    Operator(
        "ai.onnx.ml.ArrayFeatureExtractor",
        Dimensioned("X: ... C; Y: K", "... K", chosen={"Y": _COLUMNS}),
        moved(array_feature_extractor),
        outputs=lambda call: ((*(call.first.shape[:-1] or (1,)), prod(call.shapes[-1])),),
    ),
    Operator(
        "ai.onnx.ml.OneHotEncoder",
        Dimensioned("X: ...", "... "),
        decided(one_hot_encoder),
        outputs=lambda call: (
            (*call.first.shape, len(call.attributes.get("cats_int64s") or call.attributes["cats_strings"])),  # type: ignore[arg-type]
        ),
    ),
    Operator("ai.onnx.ml.LabelEncoder", Dimensioned("X: ...", "...", types=_label_type), decided(label_encoder)),
    Operator("ai.onnx.ml.LinearRegressor", Dimensioned("X: N C", "N targets"), _as_float32(linear_regressor)),
    _classifier("LinearClassifier", "classlabels_ints", _as_float32(linear_classifier)),
    Operator("ai.onnx.ml.SVMRegressor", Dimensioned("X: N C", "N 1"), _as_float32(svm_regressor)),
    _classifier("SVMClassifier", "classlabels_ints", _as_float32(svm_classifier), _cannot_classify),
    Operator(
        "ai.onnx.ml.CategoryMapper",
        Dimensioned(
            "X: ...",
            "...",
            rule=lambda _, call: _unlike_categories(call),
            types=lambda call: ("int64" if call.first.dtype == "string" else "string",),
        ),
        decided(category_mapper),
    ),
    Operator(
        "ai.onnx.ml.FeatureVectorizer",
        _Features(),
        decided(feature_vectorizer),
    ),
    Operator(
        "ai.onnx.ml.ZipMap",
        Dimensioned(
            "X: N C",
            "N C; N C",
            rule=lambda n, call: (
                None if len(classes_of(call, "classlabels_int64s")) == n["C"] else "as many columns as keys"
            ),
            types=lambda call: ("int64" if call.attributes.get("classlabels_int64s") else "string", "float32"),
            count=2,
        ),
        moved(zip_map),
        lambda call: _one_given(call, "classlabels_int64s", "classlabels_strings"),
        outputs=_maps,
    ),
    Operator(
        "ai.onnx.ml.DictVectorizer",
        _Map(
            "X_keys: K; X_values: K",
            "V",
            chosen={"X_keys": _KEYS},
            types=lambda call: (call.inputs["X_values"].dtype,),
        ),
        decided(dict_vectorizer),
        lambda call: (
            "keys and values differ in type"
            if len({each.dtype for each in call.inputs.values()}) < 2
            else _one_given(call, "int64_vocabulary", "string_vocabulary")
        ),
        outputs=lambda call: ((len(_vocabulary(call)),),),
        options=_not_in_vocabulary,
    ),
    Operator(
        "ai.onnx.ml.CastMap",
        _Map(
            "X_keys: K; X_values: K",
            "1 K",
            chosen={"X_keys": _KEYS[:1]},
            types=lambda call: (_CAST.get(call.parameter("cast_to")),),
        ),
        decided(cast_map),
        lambda call: (
            None
            if call.parameter("cast_to") in _CAST and call.parameter("map_form") in ("DENSE", "SPARSE")
            else "cast_to and map_form are words that ONNX names"
        ),
        outputs=lambda call: (
            (1, call.parameter("max_map") if call.parameter("map_form") == "SPARSE" else call.first.shape[0]),
        ),
        options=_beyond_the_map,
    ),
    Operator("ai.onnx.ml.TreeEnsembleRegressor", _ROWS, decided(tree_ensemble_regressor), _lacks_features),
    _classifier("TreeEnsembleClassifier", "classlabels_int64s", decided(tree_ensemble_classifier), _lacks_features),
    Operator("ai.onnx.ml.TreeEnsemble", _ROWS, decided(tree_ensemble), _lacks_features),
)  # fmt: skip

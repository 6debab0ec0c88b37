"""ONNX's operators for machine learning, those of its domain ai.onnx.ml, each in its newest version, and in those before whose
attributes it has.

Those whose results are float32 compute in it; numbers of other types that it does not hold are rounded to it.
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
from harness.operators.base import Call, Operator, Oracle, Relation, Shape, Undefined, variadic
from harness.operators.bounded import Bounded, number, where
from harness.operators.bounded import arithmetic as declared
from harness.operators.computing import Conditioned
from harness.operators.data_movement.moving import shapes_by_formula
from harness.operators.dimensioned import Chosen, Dimensioned, Dimensions
from harness.operators.formulas import Formula, FormulaOracle, bounded, decided, moved, values
from harness.operators.machine_learning.support_vectors import (
    KERNELS,
    POST_TRANSFORMS,
    classes_of,
    columns,
    linear_classifier,
    linear_regressor,
    svm_classifier,
    svm_regressor,
    unlike_kernel,
    unlike_supports,
    unlike_weights,
)
from harness.operators.machine_learning.tree_ensembles import (
    AGGREGATES,
    NODE_MODES,
    listed_tensor,
    sets_of,
    tree_ensemble,
    tree_ensemble_classifier,
    tree_ensemble_regressor,
    unlike_trees,
)

# Scaler:                 Y = (X - offset) scale
# Normalizer:             Y = X / max X, X / sum X, or sqrt(X X / sum X X), of each row, X where that divides by 0; the last two
#                         lose the sign of negative numbers, which no implementation does: nothing is claimed of a row that has some
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
    """Make the oracle of a formula that computes in float32 for inputs of any type."""
    oracle = FormulaOracle(formula, "bounded")

    def judged(call: Call, inputs: Mapping[str, Tensor], arithmetic: str) -> tuple[Expected, ...]:
        worked = declared(arithmetic, "float32")
        found = oracle.given(call, inputs, lambda each: number(values(each).astype(float), worked))
        return tuple(oracle.expected(dtype, one) for dtype, one in zip(call.outputs, found, strict=True))

    return judged


def scaler(X: Bounded, offset: Any = None, scale: Any = None) -> Bounded:
    if not offset or not scale:
        raise Undefined("an offset or a scale that is left out")
    if X.ndim != 2 and len(offset) > 1:
        raise Undefined("which axis of a tensor that is not [N, F] has the features")
    return (X - np.asarray(offset, float)) * np.asarray(scale, float)


def normalizer(X: Bounded, norm: str) -> Bounded:
    by = X.max(-1, keepdims=True) if norm == "MAX" else (X if norm == "L1" else X * X).sum(-1, keepdims=True)
    y = np.sqrt(X * X / by) if norm == "L2" else X / by
    signed = (X.value < 0).any(-1, keepdims=True) & (norm != "MAX")
    found = where(np.broadcast_to(by.value == 0, X.shape), X, y)
    return where(np.broadcast_to(signed, X.shape), X.unclaimed(), found)


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
    return np.asarray(_whole(X)[..., None] == np.array(categories, object)).astype(np.float32)


def _whole(X: Array) -> Array:
    """Return elements as ONNX casts them, floats to integers, so that they compare exactly."""
    return (np.trunc(X) if X.dtype.kind == "f" else X).astype(object)


def _no_category(_n: Dimensions, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
    known = one_hot_encoder(inputs["X"].array, call).any(-1).all()
    return None if known or call.parameter("zeros") else "where zeros is 0 an element is a category"


def _unlike_cats(call: Call) -> str | None:
    texts = call.first.dtype == "string"
    fitting = bool(call.attributes.get("cats_strings" if texts else "cats_int64s"))
    return _one_given(call, "cats_int64s", "cats_strings") or (
        None if fitting else "categories have the type of X"
    )


_LABELS = {"int64s": "int64", "floats": "float32", "strings": "string", "tensor": ""}
"""By the end of an attribute's name the element type of its labels; a tensor says its own."""


def _given(call: Call, of: str) -> tuple[str, Any]:
    """Return which of the attributes `keys_*` or `values_*` a call has, and its value."""
    return next(
        ((end, found) for end in _LABELS if (found := call.attributes.get(f"{of}_{end}"))), ("int64s", ())
    )


def _unlike_labels(call: Call) -> str | None:
    for of in ("keys", "values"):
        if wrong := _one_given(call, *(f"{of}_{end}" for end in _LABELS)):
            return wrong
    (end, keys), (_, values) = _given(call, "keys"), _given(call, "values")
    if (keys.dtype if end == "tensor" else _LABELS[end]) != call.first.dtype:
        return "keys have the type of X"
    paired = len(listed_tensor(keys)) == len(listed_tensor(values))
    return None if paired else "keys and values have one length"


def label_encoder(X: Array, call: Call) -> Array:
    """NaN is a key as any number is."""
    _, keys = _given(call, "keys")
    end, values = _given(call, "values")
    default = call.parameter(
        {"int64s": "default_int64", "floats": "default_float"}.get(end, "default_string")
    )
    if end == "tensor":
        unset = {"string": "_Unused", "float32": -0.0, "float64": -0.0}.get(values.dtype, -1)
        default = listed_tensor(call.parameter("default_tensor", (unset,)))[0]
    return _looked_up(
        X, np.asarray(listed_tensor(keys), X.dtype).tolist(), listed_tensor(values), default, call
    )


def category_mapper(X: Array, call: Call) -> Array:
    ints, texts = call.parameter("cats_int64s"), call.parameter("cats_strings")
    if len(set(texts if X.dtype.kind == "O" else ints)) < len(ints):
        raise Undefined("which of two entries for one counts")
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


def _unlike_columns(n: Dimensions, call: Call) -> str | None:
    lengths = [len(value) for value in call.attributes.values() if isinstance(value, tuple)]
    return None if all(each in (1, n["C"]) for each in lengths) else "one number, or one for each column"


def _unlike_scale(call: Call) -> str | None:
    offset, scale = (len(call.parameter(name, ())) for name in ("offset", "scale"))
    return "scale has the length of offset" if offset and scale and offset != scale else None


def _cannot_impute(call: Call) -> str | None:
    names = ("imputed_value_floats", "imputed_value_int64s")
    entry = DTYPES[call.first.dtype]
    imputed = call.parameter(names[entry.is_integer])
    if wrong := _one_given(call, *names):
        return wrong
    if not imputed:
        return "imputed values have the kind of the input"
    fitting = entry.is_float or entry.limits.min <= min(imputed) <= max(imputed) <= entry.limits.max
    return None if fitting else "imputed values fit the type of the input"


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
    try:
        return np.array([[cast(each) for each in ordered]], DTYPES[to].storage)
    except (OverflowError, ValueError) as error:
        raise Undefined("what number a text is that is none of the type") from error


def _keys_of(inputs: Mapping[str, Tensor]) -> tuple[list[Any], str | None]:
    """Return the keys of a map, and the rule that those break which stand twice."""
    keys = inputs["X_keys"].array.tolist()
    return keys, None if len(set(keys)) == len(keys) else "the keys of a map are distinct"


def _cannot_vectorize(call: Call) -> str | None:
    if len({each.dtype for each in call.inputs.values()}) < 2:
        return "keys and values differ in type"
    fitting = bool(call.attributes.get(f"{call.first.dtype}_vocabulary"))
    return _one_given(call, "int64_vocabulary", "string_vocabulary") or (
        None if fitting else "the vocabulary has the type of the keys"
    )


def _not_in_vocabulary(_n: Dimensions, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
    keys, twice = _keys_of(inputs)
    return twice or (None if set(keys) <= set(_vocabulary(call)) else "every key is in the vocabulary")


def _beyond_the_map(_n: Dimensions, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
    keys, twice = _keys_of(inputs)
    inside = all(0 <= key < call.parameter("max_map") for key in keys)
    fits = inside or call.attributes["map_form"] != "SPARSE"
    return twice or (None if fits else "a key is an index of the sparse output")


class _Features(Conditioned):
    """Rows of features: tensors of one or two dimensions, as wide as each likes."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"X": ("of", "count", "others")}

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Any:
        """Return the shapes of `count` tensors: the first is `of`, the `others` are the same, wider (one column more with
        each further one), or of one row more (unlike)."""
        assert not isinstance(relation, str)

        def other(word: str, first: Shape, place: int) -> Shape:
            rows = tuple(extent + (word == "unlike") for extent in first[:-1])
            return (*rows, first[-1] + (place if word == "wider" else 0))

        return variadic(relation, other)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Tensors of other ranks, of unlike rows, or of other sizes than are said."""
        if any(len(shape) not in (1, 2) for shape in call.shapes):
            return "inputs have one or two dimensions"
        if len({shape[0] if shape[1:] else 1 for shape in call.shapes}) > 1:
            return "inputs have equally many rows"
        said = call.attributes.get("inputdimensions")
        fitting = said in (None, tuple(shape[-1] for shape in call.shapes))
        return None if fitting else "inputdimensions has the size of each input"

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The shape that the formula gives."""
        return shapes_by_formula(operator, call)


def _cannot_classify(call: Call) -> str | None:
    a, b = (call.parameter(name, ()) for name in ("prob_a", "prob_b"))
    if len(a) != len(b):
        return "prob_b has the size of prob_a"
    classes, held = len(classes_of(call, "classlabels_ints")), call.parameter("vectors_per_class", ())
    if not (call.parameter("coefficients") and call.parameter("rho")):
        return "coefficients and rho are given"
    if not held:
        return unlike_kernel(call)
    if min(held) < 0:
        return "a number of vectors is not negative"
    pairs = classes * (classes - 1) // 2
    vectors, coefficients, rho = (
        len(call.parameter(name, ())) for name in ("support_vectors", "coefficients", "rho")
    )
    fitting = (
        len(held) == classes > 1
        and vectors == sum(held) * columns(call)
        and coefficients == (classes - 1) * sum(held)
        and rho == pairs
        and len(a) in (0, pairs)
    )
    if not fitting:
        return "attributes have the sizes that classes, vectors and columns give them"
    return unlike_kernel(call)


def _one_given(call: Call, *names: str) -> str | None:
    given = sum(bool(call.attributes.get(name)) for name in names)
    return None if given == 1 else f"one of {' and '.join(names)} is given"


def _unlike_categories(call: Call) -> str | None:
    ints, texts = (call.parameter(name, ()) for name in ("cats_int64s", "cats_strings"))
    return None if len(ints) == len(texts) else "cats_int64s has the length of cats_strings"


def _of_classes(integers: str) -> Callable[[Call], tuple[str, str]]:
    """Return what tells the types of labels, or keys, and of numbers; `integers` is the attribute of those that are
    no texts."""
    return lambda call: ("int64" if call.attributes.get(integers) else "string", "float32")


def _classifier(
    name: str, integers: str, oracle: Oracle, rule: Callable[[Call], str | None] = lambda _: None
) -> Operator:
    """Make an operator of labels and scores."""
    return Operator(
        f"ai.onnx.ml.{name}",
        Dimensioned("X: N C", "N; N E", types=_of_classes(integers), count=2),
        oracle,
        lambda call: _one_given(call, integers, "classlabels_strings") or rule(call),
        outputs=lambda call: (call.first.shape[:1], (call.first.shape[0], len(classes_of(call, integers)))),
    )


def _label_type(call: Call) -> tuple[str | None, ...]:
    end, given = _given(call, "values")
    return (given.dtype if end == "tensor" else _LABELS[end],)


_KEYS = (
    Chosen("distinct", lambda raw, _: np.argsort(raw)),
    Chosen("others", lambda raw, _: np.argsort(raw) + 9, "every key is in the vocabulary"),
)
_CAST = {"TO_FLOAT": "float32", "TO_INT64": "int64", "TO_STRING": "string"}
_COLUMNS = (
    Chosen("in_range", lambda raw, n: raw % n["C"]),
    Chosen("beyond", lambda raw, n: raw % 3 + n["C"], "indices within the last dimension"),
    Chosen("below", lambda raw, n: -1 - raw % (2 * n["C"]), "indices within the last dimension"),
)


def _unlike_sets(call: Call) -> str | None:
    """Return the rule that the attributes of a TreeEnsemble break."""
    get, modes = call.parameter, listed_tensor(call.parameter("nodes_modes"))
    known = (modes, 7), ([get("aggregate_function")], 4), ([get("post_transform")], 5)
    if any(not 0 <= each < count for numbers, count in known for each in numbers):
        return "modes, functions and transforms are numbers that ONNX names"
    return unlike_trees(call) or (
        None if len(sets_of(call)) == modes.count(6) else "each BRANCH_MEMBER has a set of membership_values"
    )


_WORDS: Mapping[str, Sequence[Any]] = {
    "aggregate_function": AGGREGATES,
    "cast_to": tuple(_CAST),
    "kernel_type": KERNELS,
    "map_form": ("DENSE", "SPARSE"),
    "nodes_modes": NODE_MODES,
    "norm": ("MAX", "L1", "L2"),
    "post_transform": POST_TRANSFORMS,
}
"""By attribute the words that ONNX names."""


def _with_words(operator: Operator) -> Operator:
    """Return an operator whose attributes are words that ONNX names, before it has rules of its own."""

    def rule(call: Call) -> str | None:
        for name, words in _WORDS.items():
            given: Any = call.attributes.get(name, ())
            for word in (given,) if isinstance(given, str) else given if type(given) is tuple else ():
                if word not in words:
                    return f"{name} is a word that ONNX names"
        return operator.rule(call)

    return operator._replace(rule=rule)


_ROWS = Dimensioned("X: N C", "N n_targets")

_OPERATORS = (
    Operator(
        "ai.onnx.ml.Scaler",
        Dimensioned("X: ... C", "... C", rule=_unlike_columns),
        _as_float32(scaler),
        _unlike_scale,
    ),
    Operator(
        "ai.onnx.ml.Normalizer",
        Dimensioned("X: N C | C", "*"),
        _as_float32(normalizer),
    ),
    Operator("ai.onnx.ml.Binarizer", Dimensioned("X: ...", "..."), decided(binarizer)),
    Operator(
        "ai.onnx.ml.Imputer",
        Dimensioned("X: ... C", "... C", rule=_unlike_columns),
        decided(imputer),
        _cannot_impute,
    ),
    Operator(
        "ai.onnx.ml.ArrayFeatureExtractor",
        Dimensioned("X: ... C; Y: K | 1 K", "... K", chosen={"Y": _COLUMNS}),
        moved(array_feature_extractor),
        outputs=lambda call: ((*(call.first.shape[:-1] or (1,)), prod(call.shapes[-1])),),
    ),
    Operator(
        "ai.onnx.ml.OneHotEncoder",
        Dimensioned("X: ...", "... ", by_values=_no_category),
        decided(one_hot_encoder),
        _unlike_cats,
        outputs=lambda call: (
            (*call.first.shape, len(call.parameter("cats_int64s") or call.parameter("cats_strings", ()))),
        ),
    ),
    Operator(
        "ai.onnx.ml.LabelEncoder",
        Dimensioned("X: ...", "...", types=_label_type),
        decided(label_encoder),
        _unlike_labels,
    ),
    Operator(
        "ai.onnx.ml.LinearRegressor",
        Dimensioned("X: N C", "N targets"),
        _as_float32(linear_regressor),
        unlike_weights,
    ),
    _classifier("LinearClassifier", "classlabels_ints", _as_float32(linear_classifier), unlike_weights),
    Operator(
        "ai.onnx.ml.SVMRegressor", Dimensioned("X: N C", "N 1"), _as_float32(svm_regressor), unlike_supports
    ),
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
            types=_of_classes("classlabels_int64s"),
            count=2,
        ),
        moved(zip_map),
        lambda call: _one_given(call, "classlabels_int64s", "classlabels_strings"),
        outputs=_maps,
    ),
    Operator(
        "ai.onnx.ml.DictVectorizer",
        Dimensioned(
            "X_keys: K; X_values: K",
            "V",
            chosen={"X_keys": _KEYS},
            by_values=_not_in_vocabulary,
            types=lambda call: (call.inputs["X_values"].dtype,),
        ),
        decided(dict_vectorizer),
        _cannot_vectorize,
        outputs=lambda call: ((len(_vocabulary(call)),),),
    ),
    Operator(
        "ai.onnx.ml.CastMap",
        Dimensioned(
            "X_keys: K; X_values: K",
            "1 K",
            chosen={"X_keys": _KEYS[:1]},
            by_values=_beyond_the_map,
            types=lambda call: (_CAST.get(call.parameter("cast_to")),),
        ),
        decided(cast_map),
        outputs=lambda call: (
            (1, call.parameter("max_map") if call.parameter("map_form") == "SPARSE" else call.first.shape[0]),
        ),
    ),
    Operator("ai.onnx.ml.TreeEnsembleRegressor", _ROWS, _as_float32(tree_ensemble_regressor), unlike_trees),
    _classifier(
        "TreeEnsembleClassifier", "classlabels_int64s", _as_float32(tree_ensemble_classifier), unlike_trees
    ),
    Operator("ai.onnx.ml.TreeEnsemble", _ROWS, bounded(tree_ensemble), _unlike_sets),
)
OPERATORS = tuple(map(_with_words, _OPERATORS))

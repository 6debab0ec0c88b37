"""The machines of ai.onnx.ml that weigh the features of a row: linear ones, and those of support vectors."""
# ruff: noqa: N803 - inputs have the names that ONNX gives them

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, Undefined
from harness.operators.bounded import Bounded, sigmoid
from harness.operators.formulas import Either
from harness.operators.normalization.norms import softmax

POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""The transforms in the order of their numbers in TreeEnsemble."""
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def transformed(scores: Bounded, post_transform: str) -> Bounded:
    if post_transform in ("SOFTMAX_ZERO", "PROBIT"):
        raise Undefined(f"what {post_transform} does")
    if post_transform == "LOGISTIC":
        return sigmoid(scores)
    return softmax(scores, -1) if post_transform == "SOFTMAX" else scores


def greatest_label(scores: Bounded, labels: Array) -> Either:
    """Return the label of the greatest score of each row, each of several where errors, ties or NaN leave it open."""
    low, high = scores.value - scores.error, scores.value + scores.error
    open_ = ~(high < low.max(-1, keepdims=True))
    best = scores.value.argmax(-1)
    return Either(labels[best], *(labels[np.where(open_[:, k], k, best)] for k in range(len(labels))))


def linear_regressor(
    X: Bounded, coefficients: Any, targets: int, post_transform: str, intercepts: Any = None
) -> Bounded:
    weights = np.asarray(coefficients, float).reshape(targets, X.shape[-1]).T
    return transformed(np.matmul(X, weights) + np.asarray(intercepts or 0.0, float), post_transform)


def columns(call: Call) -> int:
    return (call.first.shape or (0,))[-1]


def classes_of(call: Call, integers: str) -> Array:
    """Return the labels of classes, which stand in an attribute of integers or in `classlabels_strings`."""
    found: Any = call.attributes.get(integers) or call.attributes.get("classlabels_strings", ())
    return np.array(found, np.int64 if call.attributes.get(integers) else object)


def linear_classifier(
    X: Bounded, coefficients: Any, post_transform: str, call: Call, intercepts: Any = None
) -> Any:
    """Label and score. multi_class changes nothing, as in ONNX's reference implementation:
    https://github.com/onnx/onnx/blob/main/onnx/reference/ops/aionnxml/op_linear_classifier.py"""
    labels = classes_of(call, "classlabels_ints")
    if len(coefficients) < len(labels) * X.shape[-1]:
        raise Undefined("how one row of coefficients stands for two classes")
    scores = linear_regressor(X, coefficients, len(labels), "NONE", intercepts)
    return greatest_label(scores, labels), transformed(scores, post_transform)


def unlike_weights(call: Call) -> str | None:
    """Return the rule that the sizes of a linear machine's attributes break."""
    width, labels = columns(call), len(classes_of(call, "classlabels_ints"))
    rows = labels or call.parameter("targets", 0)
    weights, intercepts = (len(call.parameter(name, ())) for name in ("coefficients", "intercepts"))
    if rows < 1:
        return "there is a target"
    if labels == 2 and weights == width and intercepts < 2:
        return None
    fitting = weights == rows * width and intercepts in (0, rows)
    return None if fitting else "coefficients has the size of targets and columns, intercepts that of targets"


def _kernels(X: Bounded, vectors: Any, count: int, kernel_type: str, kernel_params: Any) -> Any:
    """Return the kernel of each row with each of the support vectors, [N, count]."""
    rows = np.asarray(vectors, float).reshape(count, -1)
    if not kernel_params and kernel_type != "LINEAR":
        raise Undefined("the parameters of a kernel that are left out")
    gamma, coef0, degree = kernel_params or (0.0, 0.0, 0.0)
    if kernel_type == "RBF":
        apart = X[:, None, :] - rows
        return np.exp((apart * apart).sum(-1) * -gamma)
    kernel = np.matmul(X, rows.T)
    if kernel_type != "LINEAR":
        kernel = kernel * gamma + coef0
        kernel = np.power(kernel, degree) if kernel_type == "POLY" else np.tanh(kernel)
    return kernel


def svm_regressor(
    X: Bounded, kernel_type: str, n_supports: int, one_class: int, post_transform: str, coefficients: Any = (), rho: Any = (),
    support_vectors: Any = (), kernel_params: Any = None
) -> Any:  # fmt: skip
    if one_class:
        raise Undefined("what a machine of one class gives")
    if not n_supports or len(rho) != 1:
        raise Undefined("what a machine without support vectors or without one rho gives")
    kernels = _kernels(X, support_vectors, n_supports, kernel_type, kernel_params)
    return transformed(np.matmul(kernels, np.asarray(coefficients, float)[:, None]) + rho[0], post_transform)


def unlike_supports(call: Call) -> str | None:
    """Return the rule that the sizes of a regressor's attributes break."""
    count = call.parameter("n_supports")
    if count < 0:
        return "a number of vectors is not negative"
    sizes = [len(call.parameter(name, ())) for name in ("support_vectors", "coefficients")]
    fitting = not count or sizes == [count * columns(call), count]
    return unlike_kernel(call) if fitting else "attributes have the sizes that vectors and columns give them"


def unlike_kernel(call: Call) -> str | None:
    """Return the rule that kernel_params breaks."""
    return None if len(call.parameter("kernel_params", ())) in (0, 3) else "kernel_params has three elements"


def svm_classifier(
    X: Bounded, coefficients: Any, kernel_type: str, post_transform: str, rho: Any, call: Call, support_vectors: Any = None,
    vectors_per_class: Any = None, kernel_params: Any = None, prob_a: Any = None, prob_b: Any = None
) -> Any:  # fmt: skip
    """LIBSVM's machine of all pairs of classes.

    ONNX has one score for each class, and without probabilities says of two classes not how their one pair makes
    two; nothing is claimed of these.
    """
    labels = classes_of(call, "classlabels_ints")
    if not vectors_per_class:
        raise Undefined("whose number rho is without support vectors")
    of = np.repeat(np.arange(len(labels)), vectors_per_class)
    weights = np.asarray(coefficients, float).reshape(len(labels) - 1, len(of))
    pairs = list(combinations(range(len(labels)), 2))
    parts = [np.where(of == i, weights[j - 1], np.where(of == j, weights[i], 0.0)) for i, j in pairs]
    kernels = _kernels(X, support_vectors, len(of), kernel_type, kernel_params)
    scores: Any = np.matmul(kernels, np.transpose(parts)) + np.asarray(rho, float)
    chosen = [_most_votes(scores.value + sign * scores.error, pairs, len(labels)) for sign in (-1, 0, 1)]
    if prob_a:
        scores = _probabilities(sigmoid(-(scores * np.array(prob_a) + np.array(prob_b))), pairs, len(labels))
        chosen.append(scores.value.argmax(-1))
    elif len(labels) > 3:
        raise Undefined("what the raw scores of more classes than three are: there are more pairs")
    elif len(labels) == 2:
        scores = np.concatenate([-scores, scores], -1)
        scores = Bounded(scores.value, np.full(scores.shape, np.inf), scores.arithmetic)
    return Either(*(labels[each] for each in chosen)), transformed(scores, post_transform)


def _most_votes(scores: Array, pairs: Sequence[tuple[int, int]], classes: int) -> Array:
    """Return the class of each row that wins most pairs, the first of those with equally many."""
    won = np.where(scores > 0, *np.transpose(pairs))
    return np.asarray((won[..., None] == np.arange(classes)).sum(1).argmax(-1))


def _probabilities(pairwise: Bounded, pairs: Sequence[tuple[int, int]], classes: int) -> Bounded:
    """Return the probabilities of classes p for which sum over i, j of (r[j, i] p[i] - r[i, j] p[j])**2 is least, r those
    of pairs (Wu, Lin, Weng 2004, "Probability estimates for multi-class classification by pairwise coupling", (15)).

    LIBSVM approaches them: it ends with Q p within 0.005 / k of a multiple of 1. What that and the errors of r make of p is
    the bound.
    """
    error = pairwise.error.max(-1)[:, None, None] + 1e-7  # LIBSVM keeps r so far from 0 and 1
    r = np.zeros((len(pairwise), classes, classes))
    for n, (i, j) in enumerate(pairs):
        r[:, i, j], r[:, j, i] = pairwise.value[:, n], 1 - pairwise.value[:, n]
    r = np.where(np.eye(classes), 0, np.clip(r, 1e-7, 1 - 1e-7))
    system = np.zeros((len(r), classes + 1, classes + 1))
    system[:, :classes, :classes] = np.where(
        np.eye(classes), (r**2).sum(1)[..., None], -r * r.transpose(0, 2, 1)
    )
    system[:, classes, :classes], system[:, :classes, classes] = 1, 1
    inverse: Any = np.linalg.inv(system)
    off = 0.005 / classes + 2 * classes * error
    bound: Any = (np.abs(inverse[:, :classes, :classes]) * off).sum(-1)
    return Bounded(inverse[:, :classes, classes], bound, pairwise.arithmetic)

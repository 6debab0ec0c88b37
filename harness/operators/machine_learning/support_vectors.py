"""The machines of ai.onnx.ml that weigh what a row has: linear ones, and those of support vectors."""
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
from harness.operators.functions import softmax


def transformed(scores: Bounded, post_transform: str) -> Bounded:
    if post_transform == "LOGISTIC":
        return sigmoid(scores)
    return softmax(scores, -1) if post_transform == "SOFTMAX" else scores


def linear_regressor(
    X: Bounded, coefficients: Any, targets: int, post_transform: str, intercepts: Any = None
) -> Bounded:
    weights = np.asarray(coefficients, float).reshape(targets, -1).T
    return transformed(np.matmul(X, weights) + np.asarray(intercepts or 0.0, float), post_transform)


def classes_of(call: Call, integers: str) -> Array:
    """Return the labels of classes, which stand in an attribute of integers or in `classlabels_strings`."""
    found: Any = call.attributes.get(integers) or call.attributes.get("classlabels_strings", ())
    return np.array(found, np.int64 if call.attributes.get(integers) else object)


def linear_classifier(
    X: Bounded, coefficients: Any, post_transform: str, call: Call, intercepts: Any = None
) -> Any:
    """Label and score; scores decide exactly where they are sums of whole numbers."""
    labels = classes_of(call, "classlabels_ints")
    scores = linear_regressor(X, coefficients, len(labels), "NONE", intercepts)
    return labels[scores.value.argmax(-1)], transformed(scores, post_transform)


def _kernels(X: Bounded, vectors: Any, count: int, kernel_type: str, kernel_params: Any) -> Any:
    """Return the kernel of each row with each of the support vectors, [N, count]."""
    rows = np.asarray(vectors, float).reshape(count, -1)
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
    X: Bounded, coefficients: Any, kernel_type: str, n_supports: int, rho: Any, support_vectors: Any, kernel_params: Any = None
) -> Any:  # fmt: skip
    kernels = _kernels(X, support_vectors, n_supports, kernel_type, kernel_params)
    return np.matmul(kernels, np.asarray(coefficients, float)[:, None]) + rho[0]


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

"""Inverse and CDist: inverses of matrices, and distances of their rows."""
# ruff: noqa: N803 - inputs have the names that ONNX Runtime gives them

from __future__ import annotations

import numpy as np

from harness.model.float_formats import Float64
from harness.operators.base import Operator, Undefined
from harness.operators.bounded import Bounded, sqrt
from harness.operators.bounded.number import surely_nan
from harness.operators.dimensioned import Chosen, Dimensioned
from harness.operators.formulas import bounded

# Inverse: X^-1; its error is at most c n |X^-1| |X| |X^-1| u for elimination with row exchanges that do not grow
#          (Higham, Accuracy and Stability, 2nd ed., 14.1), with c = 4 for the two triangles and the pivots
# CDist:   C[m, k] = sum over n of (A[m, n] - B[k, n])^2, and the root of it for euclidean; the document names further
#          distances without a formula


def inverse(X: Bounded) -> Bounded:
    """Invert by the formula above."""
    n = X.shape[-1]
    exact: Float64 = np.asarray(np.linalg.inv(X.value) if n else X.value, np.float64)
    grown = np.abs(exact) @ (np.abs(X.value) @ np.abs(exact))
    unit = np.max(X.arithmetic.form.spacing(np.ones(1))) / 2
    rounding = X.arithmetic.form.spacing(np.abs(exact))
    bound = 4 * n * unit * grown + rounding + np.abs(exact) * 2.0**-50 * n
    bound = np.where(np.isnan(bound), np.inf, bound)  # of what overflows nothing is claimed
    nan = surely_nan(X).all((-1, -2), keepdims=True)
    return Bounded(exact, np.where(nan, 0.0, bound), X.arithmetic)


def cdist(A: Bounded, B: Bounded, metric: str) -> Bounded:
    """Measure by the formula above, or by |a|^2 - 2 a b + |b|^2, which rounds more."""
    d = A[:, None, :] - B[None, :, :]
    if metric not in ("euclidean", "sqeuclidean"):
        raise Undefined(f"the formula of {metric}")
    written = (d * d).sum(-1)
    product = (A * A).sum(-1)[:, None] - 2.0 * (A @ B.T) + (B * B).sum(-1)[None, :]
    found = Bounded(written.value, np.maximum(written.error, product.error), A.arithmetic)
    return sqrt(found) if metric == "euclidean" else found


_METRICS = """
braycurtis canberra chebyshev cityblock correlation cosine dice euclidean hamming jaccard jensenshannon kulsinski mahalanobis
matching minkowski rogerstanimoto russellrao seuclidean sokalmichener sokalsneath sqeuclidean wminkowski yule
"""
OPERATORS = (
    Operator(
        "com.microsoft.Inverse",
        Dimensioned(
            "X: ... N N",
            "... N N",
            chosen={
                "X": (
                    Chosen("regular", lambda raw, n: (raw % 17 - 8) / 8 + 3 * n["N"] * np.eye(raw.shape[-1])),
                )
            },
        ),
        bounded(inverse),
    ),
    Operator(
        "com.microsoft.CDist",
        Dimensioned(
            "A: M N; B: K N",
            "M K",
            rule=lambda _, call: (
                None
                if call.parameter("metric") in _METRICS.split()
                else "metric is one that the document names"
            ),
        ),
        bounded(cdist),
    ),
)

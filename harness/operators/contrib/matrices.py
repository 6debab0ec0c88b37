"""Inverse, CDist and DynamicTimeWarping: inverses of matrices, distances of their rows, and cheapest paths through them."""
# ruff: noqa: N803 - inputs have the names that ONNX Runtime gives them

from __future__ import annotations

import numpy as np

from harness.model.dtypes import Array
from harness.model.float_formats import Float64
from harness.operators.base import UNKNOWN, Operator, Shape, Undefined
from harness.operators.bounded import Bounded, sqrt
from harness.operators.bounded.number import surely_nan
from harness.operators.dimensioned import Chosen, Dimensioned
from harness.operators.formulas import Either, bounded, decided

# Inverse: X^-1; its error is at most c n |X^-1| |X| |X^-1| u for elimination with row exchanges that do not grow
#          (Higham, Accuracy and Stability, 2nd ed., 14.1), with c = 4 for the two triangles and the pivots
# CDist:   C[m, k] = sum over n of (A[m, n] - B[k, n])^2, and the root of it for euclidean; the document names further
#          distances without a formula
# DynamicTimeWarping: the points (output[0, t], output[1, t]) of the path from (0, 0) to (M - 1, N - 1) whose sum of input is
#          lowest; each step goes one row, one column, or both on


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


def cheapest_path(input: Array) -> Either:
    """Find the paths by the formula above; of several of one cost, or that float32 may take for it, any is right."""
    cost = input.reshape(input.shape[-2:]).astype(np.float64)
    if not cost.size or not np.isfinite(cost).all():
        raise Undefined("the cheapest path where there is none, or a cost is not finite")
    rows, columns = len(cost), len(cost.T)
    whole = (cost == np.rint(cost)).all() and np.abs(cost).max() * (rows + columns) < _WHOLE
    slack = 0.0 if whole else (rows + columns) ** 2 / _WHOLE * float(np.abs(cost).max())
    least = np.full((rows + 1, columns + 1), np.inf)
    least[0, 0] = 0
    for i, j in np.ndindex(rows, columns):
        least[i + 1, j + 1] = cost[i, j] + min(least[i, j], least[i, j + 1], least[i + 1, j])
    found: list[Array] = []
    begun: list[tuple[tuple[Shape, ...], float]] = [(((rows, columns),), 0.0)]
    while begun:
        path, behind = begun.pop()
        i, j = path[0]
        if (i, j) == (1, 1):
            found.append(np.array(path, np.int32).T - np.int32(1))
            continue
        behind += float(cost[i - 1, j - 1])
        for before in ((i - 1, j - 1), (i - 1, j), (i, j - 1)):
            if least[before] + behind <= least[-1, -1] + slack:
                begun.append(((before, *path), behind))
        if len(found) + len(begun) > _MANY:
            raise Undefined("which of very many paths of one cost")
    if len({each.shape for each in found}) > 1:
        raise Undefined("which of several paths of one cost and unlike lengths")
    return Either(*found)


_WHOLE, _MANY = 2.0**24, 200
"""Sums of whole numbers that float32 holds; paths that are compared."""
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
    Operator(
        "com.microsoft.DynamicTimeWarping",
        Dimensioned(
            "input: M N | 1 M N",
            "2 P",
            chosen={"input": (Chosen("costs", lambda raw, _: raw % 2**18 - 2.0**16),)},
            types=lambda call: ("int32",),
        ),
        decided(cheapest_path),
        outputs=lambda call: ((2, UNKNOWN),),
    ),
)

"""Det: the determinants of square matrices."""

from __future__ import annotations

from functools import reduce
from itertools import permutations
from operator import add, mul
from typing import Any

import numpy as np

from harness.operators.base import Call, Operator
from harness.operators.bounded import Bounded, number
from harness.operators.bounded.number import surely_nan
from harness.operators.bounded.sums import gamma
from harness.operators.computing import Conditioned
from harness.operators.formulas import bounded

# det X = sum over all permutations p of sign(p) X[0, p0] X[1, p1] ...                        (Leibniz)
MOST = 5
"""The largest matrices of which something is claimed."""


def det(X: Bounded) -> Bounded:  # noqa: N803 - as ONNX calls it
    """Evaluate the formula above, with the bound of Gaussian elimination.

    With partial pivoting |L| <= 1, and elements grow by at most 2 ** (n - 1), so that the determinant is
    that of X + E with |E| <= gamma(n) n 2 ** (n - 1) max |X| (Higham, "Accuracy and Stability", 2nd ed.,
    theorem 9.3 and section 9.4), which moves it by at most the permanent of |X| + |E| less that of |X|; and
    n roundings of the product of the pivots.
    """
    n = X.shape[-1]
    if n == 0:
        return number(np.ones(X.shape[:-2]), X.arithmetic)
    exact = _expanded(X.value, True)
    spread = np.zeros(exact.shape)
    if X.arithmetic.errs:
        size = np.abs(X.value) + X.error
        unit = 2 * X.arithmetic.operations * X.arithmetic.form.unit
        moved = gamma(n, unit) * n * 2.0 ** (n - 1) * size.max((-1, -2), keepdims=True)
        most = _expanded(size + moved, False)
        spread = most - _expanded(np.abs(X.value), False) + gamma(n, unit) * most
        spread = np.where(np.isfinite(spread) & (n <= MOST), spread, np.inf)
        spread = np.where(surely_nan(X).all((-1, -2)), 0.0, spread)
    return Bounded(exact, spread, X.arithmetic)


def _expanded(x: Any, signed: bool) -> Any:
    """Return the determinant, or the permanent, of the last two dimensions."""
    n = x.shape[-1]
    terms = []
    for order in permutations(range(min(n, MOST))) if n <= MOST else ():
        term = reduce(mul, (x[..., row, column] for row, column in enumerate(order)))
        swaps = sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n))
        terms.append(-term if signed and swaps % 2 else term)
    return np.asarray(reduce(add, terms)) if terms else np.asarray(np.linalg.det(x))


def _not_square(call: Call) -> str | None:
    x = call.first.shape
    return None if len(x) >= 2 and x[-1] == x[-2] else "the last two dimensions are a square matrix"


OPERATOR = Operator(
    "Det", Conditioned(), bounded(det), _not_square, outputs=lambda call: (call.first.shape[:-2],)
)

"""The table of bounds: a bound that an implementation cannot keep, or needs nothing of, is explained."""

from __future__ import annotations

import numpy as np
import pytest

from tools.bounds import ASKED, SENTENCES, Cell, cells, fits


@pytest.mark.parametrize("name", sorted(ASKED))
def test_no_odd_bound_without_a_sentence(name: str) -> None:
    odd = [(cell.name, cell.library) for cell in cells(name) if cell.odd]
    assert set(odd) <= SENTENCES.keys()


def test_what_is_odd() -> None:
    values = np.array([1.0, 2.0])
    for error, odd in ((2.0, True), (0.5, False), (0.01, True), (0.0, False)):
        ratio, _ = fits("float32", values, np.ones(2), values + error)
        assert Cell("Exp", "float32", "NumPy", ratio, 1).odd is odd

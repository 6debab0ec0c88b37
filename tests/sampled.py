"""Parameters of a test of which some stand for all by default, and the others are `slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_of(count: int, given: Iterable[Any]) -> list[Any]:
    """Mark all but every `count`-th parameter, from the first on, as slow; a tuple holds several arguments."""
    return [
        value
        if place % count == 0
        else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
        for place, value in enumerate(given)
    ]

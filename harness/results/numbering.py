"""Numbers for distinct keys, by which results are counted and written."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)


class Numbering(dict[_Key, int]):
    """Numbers distinct keys in the order of their first use."""

    def __missing__(self, key: _Key) -> int:
        number = self[key] = len(self)
        return number

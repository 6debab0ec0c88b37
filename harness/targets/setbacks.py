"""Counts failed starts in a row, where several workers try side by side."""

from __future__ import annotations


class Setbacks:
    """Counts failures in a row; those of attempts that began before the last one was counted are the same:
    one cause, many victims."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._number = 0
        self.round = 0
        """What an attempt notes when it begins."""

    def failed(self, round: int) -> bool:
        """Note that an attempt failed which began in a round; return whether that was once too often."""
        if round == self.round:
            self.round += 1
            self._number += 1
        return self._number >= self._limit

    def succeeded(self) -> None:
        """Note that an attempt went well: what fails from now on is counted anew."""
        self._number = 0

"""Integers that the processes of a run share: which block is next, and what the artifacts of a target hold."""

from __future__ import annotations

import os
import struct


class LocalNumbers:
    """Some integers, all 0 at first; whoever takes them puts them back."""

    def __init__(self, count: int) -> None:
        self._values = (0,) * count

    def take(self) -> tuple[int, ...]:
        return self._values

    def put(self, *values: int) -> None:
        self._values = values

    def close(self) -> None:
        """Release what holds them."""


class SharedNumbers(LocalNumbers):
    """Integers that processes forked later share. They lie in a pipe: who has taken them out has them alone,
    the others wait."""

    def __init__(self, count: int) -> None:
        self._record = struct.Struct(f"<{count}q")
        self._reading, self._writing = os.pipe()
        self.put(*(0,) * count)

    def take(self) -> tuple[int, ...]:
        return self._record.unpack(os.read(self._reading, self._record.size))

    def put(self, *values: int) -> None:
        os.write(self._writing, self._record.pack(*values))

    def close(self) -> None:
        os.close(self._reading)
        os.close(self._writing)

"""Numbers that processes share."""

from __future__ import annotations

import os
import sys

import pytest

from harness.run.numbers import SharedNumbers


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_processes_share_numbers() -> None:
    numbers = SharedNumbers(2)
    children = []
    for _ in range(3):
        pid = os.fork()
        if not pid:
            for _ in range(2000):
                a, b = numbers.take()
                numbers.put(a + 1, b + 2)
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    assert numbers.take() == (6000, 12000)
    numbers.close()

"""Ends fuzzing at what is looked for, so that a busy machine has a minute for it and an idle one needs a few seconds."""

from __future__ import annotations

from typing import Any

import pytest

from harness.triage.fuzzing.fuzzer import Fuzzer

LONG = ("--seconds", "60")


def ends_with(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fuzzing end, as by Ctrl-C, with a finding that says something."""
    batch = Fuzzer._batch

    def until(self: Fuzzer, drawn: Any) -> None:
        batch(self, drawn)
        if any(said in str(each) for each in self.findings.new):
            raise KeyboardInterrupt

    monkeypatch.setattr(Fuzzer, "_batch", until)

"""Type of durations in seconds on the command line."""

from __future__ import annotations

import math
from typing import Any

import click


class Seconds(click.FloatRange):
    """A time that a program can wait for: from a tenth of a second to eleven days, and neither `nan` nor
    `inf`."""

    def __init__(self) -> None:
        super().__init__(min=0.1, max=1e6)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the seconds as a float."""
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return seconds

"""Type of paths on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class NamedPath(click.Path):
    """A path that names something: the empty text, which a script's unset variable leaves, is not the current
    folder."""

    def __init__(self, *, dir_okay: bool = True) -> None:
        super().__init__(path_type=Path, dir_okay=dir_okay)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the Path."""
        if not str(value):
            self.fail("the path is empty; write . for the current folder", param, ctx)
        return super().convert(value, param, ctx)

"""The options with which a case that is marked `deployed` also runs: how the graphs of deployed models differ
from the plain one of a case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from harness.model.case import Options

_EVERY: tuple[dict[str, Any], ...] = (
    {"shapes": "undeclared"},
    {"shapes": "undeclared", "optimization": "all"},
    {"shapes": "undeclared", "neighbours": True},
    {"optimization": "all", "neighbours": True},
)


def deployments(own: Options, inputs: Sequence[str]) -> Iterator[Options]:
    """Yield options for a case with options of its `own` and inputs of these names: undeclared shapes,
    optimisation and neighbours, every two of them together, and the last or the first input as initializer.

    The only input is never an initializer: the node would be folded away.
    """
    for changes in _EVERY:
        yield msgspec.structs.replace(own, **changes)
    if len(inputs) > 1:
        yield msgspec.structs.replace(own, initializer=inputs[-1])
        yield msgspec.structs.replace(
            own, initializer=inputs[-1], shapes="undeclared", optimization="all", neighbours=True
        )
        yield msgspec.structs.replace(own, initializer=inputs[0], shapes="static")

"""Requests of many lengths whose tokens are packed one after the other: request i has those from `ends[i]` to `ends[i + 1]`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.base import Call
from harness.operators.dimensioned import Chosen, Dimensions

_UNLIKE = "requests end one after the other, each has a token, and the last ends with the tokens"


def _ends(raw: Array, n: Dimensions) -> Array:
    """Return the ends of requests that are about as long."""
    return np.arange(raw.size) * int(n["T"]) // max(1, raw.size - 1)


ENDS = (
    Chosen("ends", _ends),
    Chosen("beyond", lambda raw, n: _ends(raw, n) + (np.arange(raw.size) == raw.size - 1), _UNLIKE),
    Chosen("twice", lambda raw, n: _ends(raw, n) * (np.arange(raw.size) != 1), _UNLIKE),
    Chosen("backwards", lambda raw, n: _ends(raw, n)[::-1], _UNLIKE),
    Chosen("later", lambda raw, n: np.maximum(_ends(raw, n), 1), _UNLIKE),
)
"""Kinds of the ends of `T` packed tokens."""
COUNTS = (Chosen("tokens", lambda raw, _: raw % 11 - 1),)
"""Kinds of how many first tokens of each request are captured, some of them more than there is room for, or fewer than none."""


def unlike_ends(_n: Dimensions, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
    """Return the rule that the ends of the first input's tokens break."""
    ends = inputs.get("cumulative_sequence_length", inputs.get("cu_seqlens"))
    if ends is None:
        return None
    of = ends.array.astype(np.int64)
    fit = of.size > 1 and of[0] == 0 and of[-1] == call.first.shape[0] and (np.diff(of) > 0).all()
    return None if fit else _UNLIKE


def unfit_capacity(n: Dimensions) -> str | None:
    """Return the rule that the room for the states of first tokens breaks."""
    room = n["state_update_capacity"]
    fit = 0 <= room <= 8 and ("capture_count" in n["inputs"]) == (room > 0)
    return None if fit else "state_update_capacity is at most 8, and with capture_count above 0"

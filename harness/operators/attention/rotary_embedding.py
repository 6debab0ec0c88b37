"""RotaryEmbedding: pairs of elements of each head, rotated by the angles of a token's position."""
# ruff: noqa: N803 - inputs have the names that ONNX gives them

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.attention.attention import by_heads, joined
from harness.operators.base import Call, Operator, Relation, Shape, ValueKind, value_kinds
from harness.operators.bounded import Bounded, concatenate, stack
from harness.operators.computing import Computing
from harness.operators.formulas import bounded

# Y1 = cos X1 - sin X2; Y2 = sin X1 + cos X2
# of each head X1 is the first half of what is rotated, X2 the second (interleaved: every other element); cos and
# sin are the rows of the caches at the token's position, or its own rows

POSITIONS = "position_ids from 0 to max_position_id"
POSITION_KINDS = (*value_kinds("any_position", "in_order"), ValueKind("beyond", breaks=POSITIONS))
ROWS = 11
"""The rows of caches that positions select from."""


def rotary_embedding(
    X: Bounded, cos_cache: Bounded, sin_cache: Bounded, call: Call, position_ids: Array | None = None
) -> Bounded:
    """Rotate by the formula above."""
    cos, sin = (each if position_ids is None else each[position_ids] for each in (cos_cache, sin_cache))
    y = rotated(by_heads(X, _extents(call)[1]), cos, sin, bool(call.parameter("interleaved")))
    return y if X.ndim == 4 else joined(y)


def rotated(x: Bounded, cos: Bounded, sin: Bounded, interleaved: bool) -> Bounded:
    """Rotate each head of [batch, heads, length, size], by angles [batch or 1, length, half]."""
    cos, sin = (each.reshape(each.shape[0], 1, *each.shape[1:]) for each in (cos, sin))
    half = cos.shape[-1]
    part, rest = x[..., : 2 * half], x[..., 2 * half :]
    x1, x2 = (part[..., 0::2], part[..., 1::2]) if interleaved else (part[..., :half], part[..., half:])
    y1, y2 = cos * x1 - sin * x2, sin * x1 + cos * x2
    turned = stack([y1, y2], axis=-1).reshape(part.shape) if interleaved else concatenate([y1, y2], axis=-1)
    return concatenate([turned, rest], axis=-1)


def _extents(call: Call) -> tuple[int, int, int, int]:
    """Return batch, heads, tokens and the size of a head."""
    x = call.first.shape
    if len(x) == 4:
        return x[0], x[1], x[2], x[3]
    heads = call.parameter("num_heads", 1)
    return x[0], heads, x[1], x[2] // heads


def _rotated(call: Call) -> int:
    """Return how many elements of a head are rotated."""
    given = call.parameter("rotary_embedding_dim")
    return given or _extents(call)[3]


class Rotating(Computing):
    """Caches by `positions` [rows, half], `tokens` [batch, tokens, half], and unlike them; position_ids `each`, or
    `unlike`."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"position_ids": POSITION_KINDS}
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "position_ids": ("each", "unlike"),
        "*": ("positions", "tokens", "unlike_half", "unlike_tokens"),
    }

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of caches and positions."""
        if self.wrong_heads(call) is not None:
            return (1, 1)
        batch, _, tokens, _ = _extents(call)
        half = _rotated(call) // 2
        found: dict[str, Shape] = {
            "positions": (ROWS, half),
            "tokens": (batch, tokens, half),
            "unlike_half": (batch, tokens, half + 1),
            "unlike_tokens": (batch, tokens + 1, half),
            "each": (batch, tokens),
            "unlike": (batch, tokens + 1),
        }
        return found[str(relation)]

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose positions within the caches, one of which may be beyond."""
        found = np.arange(raw.size) % ROWS if kind == "in_order" else raw.reshape(-1) % ROWS
        found[:1] = ROWS if kind == "beyond" else found[:1]
        return np.asarray(found.reshape(raw.shape))

    def wrong_heads(self, call: Call) -> str | None:
        """Return the rule that the shape of X and the attributes break, or None."""
        x = call.first.shape
        heads: Any = call.parameter("num_heads")
        if len(x) not in (3, 4):
            return "X has four dimensions, or three"
        if len(x) == 3 and (not heads or heads < 1):
            return "num_heads is given for three dimensions"
        if len(x) == 3 and x[2] % heads:
            return "num_heads divides the last dimension"
        size, rotated = _extents(call)[3], _rotated(call)
        if not 0 <= rotated <= size:
            return "rotary_embedding_dim is no larger than a head"
        return "what is rotated has an even size" if rotated % 2 else None

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """The shapes of X, of the caches and of the positions."""
        if wrong := self.wrong_heads(call):
            return wrong
        batch, _, tokens, _ = _extents(call)
        half, positions = _rotated(call) // 2, call.inputs.get("position_ids")
        cos, sin = (call.inputs[name].shape for name in ("cos_cache", "sin_cache"))
        if positions is not None and positions.shape != (batch, tokens):
            return "position_ids has the shape (batch_size, sequence_length)"
        if positions is None:
            fits = cos == sin == (batch, tokens, half)
            return None if fits else "caches have the shape (batch_size, sequence_length, half)"
        fits = len(cos) == 2 and cos == sin and cos[1] == half
        return None if fits else "caches have the shape (max_position_id_plus_1, half)"

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """Positions within the caches."""
        positions = inputs.get("position_ids")
        return POSITIONS if positions is not None and (positions.array >= call.shapes[1][0]).any() else None


OPERATOR = Operator("RotaryEmbedding", Rotating(), bounded(rotary_embedding))

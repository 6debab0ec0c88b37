"""DynamicQuantizeLSTM: weights of 8 bits, and inputs and states that are quantised by the range of what they hold."""
# ruff: noqa: N803 - inputs have the names that ONNX Runtime gives them

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, Operator, Relation, Shape, ValueKind, value_kinds
from harness.operators.bounded import Bounded
from harness.operators.formulas import bounded
from harness.operators.recurrence.recurrences import Recurrent
from harness.operators.recurrence.recurrent import LSTM, lstm

# LSTM of ONNX with W and R transposed, each number (q - zero_point) scale of its direction or column. The document does not say
# over which rows the range is taken: that of all holds those of some

_STEP = 0.51 / 255
"""How far a number moves that is quantised to 8 bits, of the range from 0 to both ends of what is quantised with it."""
_SCALES = ("W_scale", "R_scale", "W_zero_point", "R_zero_point")


def dynamic_quantize_lstm(
    X: Bounded, W: Array, R: Array, call: Call, W_scale: Bounded, W_zero_point: Array, R_scale: Bounded, R_zero_point: Array,
    B: Any = None, sequence_lens: Any = None, initial_h: Any = None, initial_c: Any = None, P: Any = None,
) -> Any:  # fmt: skip
    """Go through the sequences by the formula above."""
    w, r = _real(W, W_scale, W_zero_point), _real(R, R_scale, R_zero_point)
    return lstm(in_bytes(X), w, r, _plain(call), B, sequence_lens, initial_h, initial_c, P, as_seen=in_bytes)


def _real(q: Array, scale: Bounded, zero: Array) -> Bounded:
    columns = (len(q), 1, -1)
    found: Bounded = scale.reshape(columns) * (q.astype(float) - zero.reshape(columns))
    return found.transpose(0, 2, 1)


def in_bytes(x: Bounded) -> Bounded:
    """Return numbers with the error of being quantised by their range; nothing is claimed of a range that is not finite."""
    low, high = (x.value - x.error).min(initial=0.0), (x.value + x.error).max(initial=0.0)
    step = (high - low) * _STEP
    if not np.isfinite(step):
        return x.unclaimed()
    return Bounded(x.value, x.error + step, x.arithmetic)


def _plain(call: Call) -> Call:
    """Return the call as ONNX's LSTM takes it."""
    inputs = {name: each for name, each in call.inputs.items() if name not in _SCALES}
    for name in ("W", "R"):
        if name in inputs:
            inputs[name] = inputs[name]._replace(shape=_transposed(inputs[name].shape))
    return call._replace(inputs=inputs)


def _transposed(shape: Shape) -> Shape:
    return (*shape[:-2], *shape[:-3:-1])


class DynamicRecurrent(Recurrent):
    """As `Recurrent`, W and R transposed, of seven bits around 0 or 128; scales and zero points `each` of a direction, or of
    `columns`, zero points all of one number, which of int8 is 0."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {
        **Recurrent.own,
        **dict.fromkeys(("W", "R"), value_kinds("seven_bits")),
        **dict.fromkeys(("W_scale", "R_scale"), value_kinds("small")),
        **dict.fromkeys(("W_zero_point", "R_zero_point"), value_kinds("middle")),
    }
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "*": ("each", "columns", "unlike", "other_directions")
    }

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of all inputs behind X."""
        found = super().shape(
            operator, "W" if name in _SCALES else name, "each" if name in _SCALES else relation, _plain(call)
        )
        if found is None or name not in (*_SCALES, "W", "R"):
            return found
        if name in _SCALES:
            return (
                found[:2] if relation == "columns" else found[:1] if relation == "each" else (found[0] + 1,)
            )
        return _transposed(found)

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose weights, scales and zero points by kind."""
        middle = 128 if call.inputs[name].dtype == "uint8" else 0
        made: dict[str, Array] = {
            "seven_bits": middle + raw % 128 - 64,
            "middle": raw * 0 + (middle and middle - raw.reshape(-1)[0] % 16 if raw.size else 0),
            "small": (raw % 16 + 1.0) / 2048,
        }
        if kind not in made:
            return super().choose(kind, name, call, raw)
        return made[kind].astype(
            {"uint8": np.uint8, "int8": np.int8}.get(call.inputs[name].dtype, np.float32)
        )

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Those of LSTM, and the shapes of scales and zero points."""
        if wrong := super().broken_rule(operator, _plain(call)):
            return wrong
        count, columns = len(LSTM.directions(call)), call.inputs["W"].shape[2]
        shapes = [call.inputs[name].shape for name in _SCALES]
        fits = set(shapes) <= {(count,), (count, columns)} and shapes[:2] == shapes[2:]
        return None if fits else "a scale and a zero point for each direction, or each column of it"

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Those of LSTM."""
        return super().inferred(operator, _plain(call))


OPERATOR = Operator(
    "com.microsoft.DynamicQuantizeLSTM", DynamicRecurrent(), bounded(dynamic_quantize_lstm), options=LSTM
)

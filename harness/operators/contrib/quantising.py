"""QuantizeLinear and DequantizeLinear of com.microsoft, and QLinearConcat."""

from __future__ import annotations

from collections.abc import Mapping

from harness.model.case import Tensor
from harness.model.expected import Expected
from harness.operators.base import Call, Operator, Shape
from harness.operators.bounded import arithmetic, concatenate
from harness.operators.contrib.qlinear import real, requantised
from harness.operators.dimensioned import Dimensioned, Dimensions
from harness.operators.quantization.quantising import Quantising, dequantize, quantize


class ScalarQuantising(Quantising):
    """As ONNX's, but without `axis` scales are scalars, or lists of one, as ONNX Runtime's quantiser writes them."""

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Those of ONNX's, and a scalar without an axis, a vector with one."""
        scale = call.shapes[1]
        if scale != (1,) and ("axis" in call.attributes) == (scale == ()):
            return "a scalar without axis, a vector with it"
        return super().broken_rule(operator, call)


# Y = the parts, each (q - zero_point) scale, joined along an axis, quantised
def qlinear_concat(call: Call, inputs: Mapping[str, Tensor], declared: str) -> tuple[Expected, ...]:
    """Join by the formula above."""
    worked = arithmetic(declared, "float32")
    parts = [
        real(inputs, f"inputs.{n}", f"inputs.{n + 1}", f"inputs.{n + 2}", worked)
        for n in range(0, len(inputs) - 2, 3)
    ]
    scales = [inputs[name].array for name in ("Y_scale", *list(inputs)[3::3])]
    joined = concatenate(parts, axis=call.parameter("axis"))
    return requantised(joined, inputs, "Y", call.outputs[0], scales)


def _cannot_join(_n: Dimensions, call: Call) -> str | None:
    parts, axis = call.shapes[2::3], call.parameter("axis")
    rank = len(parts[0])
    if len(call.shapes) % 3 != 2 or any(len(shape) != rank for shape in parts) or not -rank <= axis < rank:
        return "a tensor, a scale and a zero point for each part, of one rank, and axis in [-r, r-1]"
    others = {(*shape[: axis % rank], *shape[axis % rank + 1 :]) for shape in parts}
    return None if len(others) == 1 else "the shapes agree but for the axis"


def _joined(call: Call) -> tuple[Shape, ...]:
    shapes = list(call.shapes[2::3])
    axis = call.parameter("axis")
    found = list(shapes[0])
    if -len(found) <= axis < len(found):
        found[axis] = sum(shape[axis] for shape in shapes)
    return (tuple(found),)


QUANTISED = ScalarQuantising()
OPERATORS = (
    Operator("com.microsoft.QuantizeLinear", QUANTISED, quantize),
    Operator(
        "com.microsoft.DequantizeLinear",
        QUANTISED,
        dequantize,
        options="DML_OPERATOR_ELEMENT_WISE_DEQUANTIZE_LINEAR",
    ),
    Operator(
        "com.microsoft.QLinearConcat",
        Dimensioned(
            "Y_scale:  | 1; Y_zero_point:  | 1",
            "*",
            rule=_cannot_join,
            types=lambda call: (call.inputs["Y_zero_point"].dtype,),
        ),
        qlinear_concat,
        outputs=_joined,
    ),
)

"""Products and convolutions with a fused transposition, factor or activation."""
# ruff: noqa: N803 - inputs and attributes have the names that ONNX Runtime gives them

from __future__ import annotations

from typing import Any, cast

import numpy as np

from harness.operators.base import Call, DirectmlCall, Operator, Relation, Shape, Undefined
from harness.operators.bounded import (
    Bounded,
    choose,
    maximum,
    minimum,
    moveaxis,
    number,
    sigmoid,
    swapaxes,
    tanh,
)
from harness.operators.contrib.channels_last import NhwcConvolving, channels_first
from harness.operators.elementwise import activations
from harness.operators.formulas import bounded, parameters
from harness.operators.products.convolutions import conv, conv_transpose
from harness.operators.products.convolving import Convolving, Transposed
from harness.operators.products.products import Gemm, Products, gemm

# FusedMatMul:           Y = alpha A' B'; A' is A, with transBatchA its first dimension behind those of the stack, with transA the
#                        last two changed, and so B'
# FusedMatMulActivation: activation(Y)
# FusedGemm, FusedConv:  activation(Gemm), activation(Conv + Z)

_ACTIVATIONS: dict[str, Any] = {
    "Relu": lambda x: maximum(x, 0.0),
    "Tanh": tanh,
    "Sigmoid": sigmoid,
    "LeakyRelu": activations.leaky_relu,
    "HardSigmoid": activations.hard_sigmoid,
    "Clip": lambda x, least, most: minimum(maximum(x, least), most),
    "HardSwish": activations.hard_swish,
    "ThresholdedRelu": lambda x, alpha: choose(-x, -alpha, x, number(np.zeros(x.shape), x.arithmetic)),
    "Elu": activations.elu,
    "Celu": activations.celu,
    "Selu": activations.selu,
    "Softplus": activations.softplus,
    "Softsign": activations.softsign,
}


def _unlike_activation(call: Call) -> str | None:
    """Return the rule about an activation that is broken."""
    name = call.attributes.get("activation")
    if not name:
        return None
    if name not in _ACTIVATIONS:
        return "activation is one that there is"
    given = sum(f"activation_{each}" in call.attributes for each in ("alpha", "beta", "gamma"))
    given += len(call.parameter("activation_params", ()))
    return "an activation has its parameters" if given < _count(name) else None


def _count(activation: Any) -> int:
    return len(parameters(_ACTIVATIONS[activation])) - 1


def activated(x: Bounded, name: str | None, *scales: float | None) -> Bounded:
    """Apply an activation by its name, none where there is none."""
    if not name:
        return x
    given = [each for each in scales if each is not None]
    if len(given) > _count(name):
        raise Undefined("what a parameter does that an activation has not")
    return cast("Bounded", _ACTIVATIONS[name](x, *given))


def _turned(x: Any, transposed: int, batch: int) -> Any:
    x = np.moveaxis(x, 0, -2) if batch else x
    return swapaxes(x, -1, -2) if transposed else x


def fused_matmul(
    A: Bounded, B: Bounded, alpha: float, transA: int, transB: int, transBatchA: int = 0, transBatchB: int = 0,
    activation: str | None = None, activation_alpha: float | None = None, activation_beta: float | None = None,
    activation_gamma: float | None = None,
) -> Bounded:  # fmt: skip
    """Multiply by the formula above."""
    y = np.matmul(_turned(A, transA, transBatchA), _turned(B, transB, transBatchB)) * alpha
    return activated(y, activation, activation_alpha, activation_beta, activation_gamma)


def fused_gemm(
    A: Any, B: Any, alpha: float, beta: float, transA: int, transB: int, C: Any = None,
    activation: str | None = None, activation_alpha: float | None = None, activation_beta: float | None = None,
    activation_gamma: float | None = None,
) -> Any:  # fmt: skip
    """Multiply and add as Gemm does, then apply the activation, of integers Relu."""
    y = gemm(A, B, C, alpha=alpha, beta=beta, transA=transA, transB=transB)
    if not isinstance(y, Bounded):
        if activation not in (None, "Relu"):
            raise Undefined("what an activation makes of integers")
        return np.maximum(y, np.zeros((), y.dtype)) if activation else y
    return activated(y, activation, activation_alpha, activation_beta, activation_gamma)


def fused_conv(
    X: Bounded, W: Bounded, group: int, call: Call, B: Any = None, Z: Any = None, activation: str | None = None,
    activation_params: tuple[float, ...] = (),
) -> Bounded:  # fmt: skip
    """Convolve, add, then apply the activation."""
    y = conv(X, W, group, call, B)
    return activated(y if Z is None else y + Z, activation, *activation_params)


class FusedProducts(Products):
    """As `Products`, of what transposition leaves."""

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shape of B, to be transposed."""
        (a,) = _seen(call)
        if a is None:
            return None
        b = super().shape(operator, name, relation, _of(call, (a,)))
        transposed, batch = call.parameter("transB"), call.parameter("transBatchB", 0)
        if b is None or len(b) < 2 + bool(batch):
            return b if b is not None and not transposed and not batch else None
        b = (*b[:-2], b[-1], b[-2]) if transposed else b
        return (b[-2], *b[:-2], b[-1]) if batch else b

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Those of products, of what transposition leaves."""
        seen = _seen(call)
        if None in seen:
            return "what is transposed has the dimensions"
        if len({len(shape) for shape in call.shapes}) > 1 and any(
            call.parameter(each, 0) for each in _TURNING[2:]
        ):
            return "with stacks transposed A and B have one rank"
        return super().broken_rule(operator, _of(call, seen))

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Those of products."""
        if self.broken_rule(operator, call):
            return (call.first.shape,)
        return super().output_shapes(operator, _of(call, _seen(call)))

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """That of products with a factor; what is transposed or activated is more than one call."""
        if call.attributes.get("activation") or any(call.parameter(name, 0) for name in _TURNING):
            return None
        made = super().lowered(operator, candidate, call)
        return made and made._replace(attributes={**made.attributes, "Alpha": call.parameter("alpha")})


_TURNING = ("transA", "transB", "transBatchA", "transBatchB")


def _seen(call: Call) -> list[Shape | None]:
    """Return the shapes that are multiplied; None for one without the dimensions that are transposed."""
    found: list[Shape | None] = []
    for name, each in call.inputs.items():
        shape, batch = each.shape, call.parameter(f"transBatch{name}", 0)
        transposed = call.parameter(f"trans{name}")
        if len(shape) < 2 + bool(batch) and (transposed or batch):
            found.append(None)
            continue
        shape = (*shape[1:-1], shape[0], shape[-1]) if batch else shape
        found.append((*shape[:-2], shape[-1], shape[-2]) if transposed else shape)
    return found


def _of(call: Call, shapes: Any) -> Call:
    named = zip(call.inputs.items(), shapes, strict=False)
    return call._replace(inputs={name: each._replace(shape=shape) for (name, each), shape in named})


class FusedConvolving(Convolving):
    """As `Convolving`; Z has the shape of the output."""

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of W, B and Z."""
        if name == "Z":
            return self.output_shapes(operator, call)[0]
        return super().shape(operator, name, relation, call)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Those of convolutions, and the shape of Z."""
        if wrong := super().broken_rule(operator, call):
            return wrong
        z = call.inputs.get("Z")
        like = z is None or z.shape == (call.first.shape[0], self.channels(call), *self.extents(call))
        return None if like else "Z has the shape of the output"


def nhwc_conv(X: Bounded, W: Bounded, group: int, call: Call, B: Any = None) -> Bounded:
    """Convolve as Conv does, with the channels last."""
    return moveaxis(conv(moveaxis(X, -1, 1), W, group, channels_first(call), B), 1, -1)


def _with_pads(call: Call) -> Call:
    """Return a call with the elements of Pads, which are an input, as the attribute of a ConvTranspose."""
    given = call.parameter("Pads")
    return call if given is None else call._replace(attributes={**call.attributes, "pads": given})


def padded_conv_transpose(X: Bounded, W: Bounded, group: int, call: Call, B: Any = None) -> Any:
    """Convolve as ConvTranspose does, with the pads of an input."""
    return conv_transpose(X, W, group, _with_pads(call), B)


class TransposedWithPads(Transposed):
    """As `Transposed`, with the pads of an input."""

    def domain(self, operator: Operator, attribute: str, call: Call) -> Any:
        """Those of convolutions; pads that are not given leave the input out."""
        return super().domain(operator, "pads" if attribute == "Pads" else attribute, call)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Those of convolutions."""
        return super().broken_rule(operator, _with_pads(call))

    def extents(self, call: Call) -> Shape:
        """Those of convolutions."""
        return super().extents(_with_pads(call))

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """No call of pads that an input holds."""
        return None if "Pads" in call.inputs else super().lowered(operator, candidate, call)


FUSED_PRODUCTS = FusedProducts()
OPERATORS = (
    Operator("com.microsoft.FusedMatMul", FUSED_PRODUCTS, bounded(fused_matmul)),
    Operator("com.microsoft.TransposeMatMul", FUSED_PRODUCTS, bounded(fused_matmul)),
    Operator(
        "com.microsoft.FusedMatMulActivation", FUSED_PRODUCTS, bounded(fused_matmul), _unlike_activation
    ),
    Operator("com.microsoft.FusedGemm", Gemm(), bounded(fused_gemm), _unlike_activation),
    Operator("com.microsoft.FusedConv", FusedConvolving(), bounded(fused_conv), _unlike_activation),
    Operator("com.microsoft.NhwcConv", NhwcConvolving(), bounded(nhwc_conv)),
    Operator(
        "com.microsoft.ConvTransposeWithDynamicPads",
        TransposedWithPads(),
        bounded(padded_conv_transpose),
        constants={"Pads": 1},
    ),
)

"""Models as people deploy them, small: a transformer block, a decoder with a cache of grouped keys and values, a quantised
convolutional network, and a decoder that loops."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from harness.model.dtypes import Array

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Builder:
    """Collects nodes and weights of a model."""

    def __init__(self, opset: int = 17) -> None:
        self.nodes = []
        self.weights = []
        self._opset = opset
        self._random = np.random.default_rng(3)

    def weight(self, name: str, array: Array) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def drawn(self, name: str, *shape: int) -> str:
        return self.weight(name, (self._random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def node(self, operator: str, inputs: list[str], output: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [output], name=f"/{output}", **attributes))
        return output

    def model(self, inputs: list[object], outputs: list[object]) -> ModelProto:
        graph = helper.make_graph(self.nodes, "model", inputs, outputs, self.weights)
        domains = sorted({node.domain for node in self.nodes} - {""})
        opsets = [("", self._opset), *((domain, 1) for domain in domains)]
        return helper.make_model(
            graph, ir_version=8, opset_imports=[helper.make_opsetid(*each) for each in opsets]
        )


def value(name: str, dtype: int, *shape: int | str) -> object:
    return helper.make_tensor_value_info(name, dtype, list(shape))


def transformer_block() -> ModelProto:
    """Embedding, layer normalisation, attention of two heads, Gelu by Erf, projection."""
    b = Builder()
    b.node("Gather", [b.drawn("table", 50, 16), "ids"], "x")
    b.node(
        "LayerNormalization",
        ["x", b.weight("gamma", np.ones(16, "f")), b.weight("beta", np.zeros(16, "f"))],
        "norm",
    )
    heads = {}
    for role in "qkv":
        b.node("MatMul", ["norm", b.drawn(f"w_{role}", 16, 16)], f"{role}_flat")
        b.node(
            "Reshape", [f"{role}_flat", b.weight(f"split_{role}", np.array([0, 0, 2, 8]))], f"{role}_heads"
        )
        heads[role] = b.node(
            "Transpose", [f"{role}_heads"], role, perm=[0, 2, 3, 1] if role == "k" else [0, 2, 1, 3]
        )
    b.node("MatMul", ["q", "k"], "scores")
    b.node("Mul", ["scores", b.weight("scale", np.float32(8**-0.5))], "scaled")
    b.node("Softmax", ["scaled"], "weights", axis=-1)
    b.node("MatMul", ["weights", "v"], "mixed")
    b.node("Transpose", ["mixed"], "back", perm=[0, 2, 1, 3])
    b.node("Reshape", ["back", b.weight("join", np.array([0, 0, 16]))], "joined")
    b.node("Add", ["joined", "x"], "residual")
    b.node("MatMul", ["residual", b.drawn("up", 16, 32)], "wide")
    b.node("Div", ["wide", b.weight("root", np.float32(2**0.5))], "halved")
    b.node("Erf", ["halved"], "erf")
    b.node("Add", ["erf", b.weight("one", np.float32(1))], "shifted")
    b.node("Mul", ["wide", "shifted"], "product")
    b.node("Mul", ["product", b.weight("half", np.float32(0.5))], "gelu")
    b.node("MatMul", ["gelu", b.drawn("down", 32, 16)], "y")
    return b.model([value("ids", INT64, "batch", "sequence")], [value("y", FLOAT, "batch", "sequence", 16)])


def cached_decoder() -> ModelProto:
    """One step of attention of four heads over two heads of keys and values, which come from a cache and go to it."""
    b = Builder()
    b.node("MatMul", ["x", b.drawn("w_q", 16, 16)], "q_flat")
    b.node("Reshape", ["q_flat", b.weight("split_q", np.array([0, 1, 4, 4]))], "q_heads")
    b.node("Transpose", ["q_heads"], "q", perm=[0, 2, 1, 3])
    for role in "kv":
        b.node("MatMul", ["x", b.drawn(f"w_{role}", 16, 8)], f"{role}_flat")
        b.node(
            "Reshape", [f"{role}_flat", b.weight(f"split_{role}", np.array([0, 1, 2, 4]))], f"{role}_heads"
        )
        b.node("Transpose", [f"{role}_heads"], f"{role}_new", perm=[0, 2, 1, 3])
        b.node("Concat", [f"past_{role}", f"{role}_new"], f"present_{role}", axis=2)
        b.node("Unsqueeze", [f"present_{role}", b.weight(f"axis_{role}", np.array([2]))], f"{role}_grouped")
        b.node(
            "Expand",
            [f"{role}_grouped", b.weight(f"repeat_{role}", np.array([1, 1, 2, 1, 1]))],
            f"{role}_repeated",
        )
        b.node("Reshape", [f"{role}_repeated", b.weight(f"merge_{role}", np.array([0, 4, -1, 4]))], role)
    b.node("Transpose", ["k"], "k_turned", perm=[0, 1, 3, 2])
    b.node("MatMul", ["q", "k_turned"], "scores")
    b.node("Softmax", ["scores"], "weights", axis=-1)
    b.node("MatMul", ["weights", "v"], "mixed")
    b.node("Transpose", ["mixed"], "back", perm=[0, 2, 1, 3])
    b.node("Reshape", ["back", b.weight("join", np.array([0, 1, 16]))], "joined")
    b.node("MatMul", ["joined", b.drawn("out", 16, 16)], "y")
    pasts = [value(f"past_{role}", FLOAT, 1, 2, "past", 4) for role in "kv"]
    presents = [value(f"present_{role}", FLOAT, 1, 2, "total", 4) for role in "kv"]
    return b.model([value("x", FLOAT, 1, 1, 16), *pasts], [value("y", FLOAT, 1, 1, 16), *presents])


def quantised_network() -> ModelProto:
    """Convolution, pooling and a linear layer between QuantizeLinear and DequantizeLinear."""
    b = Builder(13)
    zero, scale = b.weight("zero", np.uint8(128)), b.weight("scale", np.float32(0.05))

    def requantised(name: str) -> str:
        b.node("QuantizeLinear", [name, scale, zero], f"{name}_q")
        return b.node("DequantizeLinear", [f"{name}_q", scale, zero], f"{name}_dq")

    kernel = np.random.default_rng(5).integers(-100, 100, (8, 3, 3, 3)).astype(np.int8)
    b.node("DequantizeLinear", [b.weight("kernel", kernel), b.weight("kernel_scale", np.float32(0.01))], "w")
    b.node("Conv", [requantised("x"), "w"], "conv", pads=[1, 1, 1, 1])
    b.node("Relu", [requantised("conv")], "relu")
    b.node("MaxPool", [requantised("relu")], "pool", kernel_shape=[2, 2], strides=[2, 2])
    b.node("Flatten", [requantised("pool")], "flat")
    b.node("Gemm", ["flat", b.drawn("linear", 128, 10)], "y")
    return b.model([value("x", FLOAT, 1, 3, 8, 8)], [value("y", FLOAT, 1, 10)])


def looping_decoder() -> ModelProto:
    """A state that a loop multiplies three times, and adds where a condition holds."""
    b = Builder()
    b.drawn("step", 4, 4)
    b.weight("trips", np.array(3))
    b.weight("go_on", np.array(True))
    then = helper.make_graph(
        [helper.make_node("Tanh", ["moved"], ["kept"], name="squash")],
        "then",
        [],
        [value("kept", FLOAT, 1, 4)],
    )
    otherwise = helper.make_graph(
        [helper.make_node("Neg", ["moved"], ["turned"])], "else", [], [value("turned", FLOAT, 1, 4)]
    )
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["state", "step"], ["moved"], name="move"),
            helper.make_node("Identity", ["condition"], ["again"]),
            helper.make_node(
                "If", ["condition"], ["next"], name="choose", then_branch=then, else_branch=otherwise
            ),
            helper.make_node("ReduceSum", ["next"], ["total"], name="sum", keepdims=0),
        ],
        "body",
        [value("n", INT64), value("condition", TensorProto.BOOL), value("state", FLOAT, 1, 4)],
        [value("again", TensorProto.BOOL), value("next", FLOAT, 1, 4), value("total", FLOAT)],
    )
    b.node("Sigmoid", ["x"], "start")
    b.nodes.append(
        helper.make_node("Loop", ["trips", "go_on", "start"], ["end", "totals"], name="decode", body=body)
    )
    b.node("Exp", ["end"], "y")
    return b.model([value("x", FLOAT, 1, 4)], [value("y", FLOAT, 1, 4), value("totals", FLOAT, 3)])


MODELS = {
    "transformer_block": transformer_block,
    "cached_decoder": cached_decoder,
    "quantised_network": quantised_network,
    "looping_decoder": looping_decoder,
}

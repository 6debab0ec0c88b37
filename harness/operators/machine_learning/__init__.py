"""The operators of ai.onnx.ml."""

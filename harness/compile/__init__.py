"""Turns cases into what workers receive: ONNX graphs, and descriptions of DirectML calls."""

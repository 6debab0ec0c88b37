"""Bit-exact conformance runs for ONNX Runtime execution providers, per DirectML feature level."""

"""The target `directml`: Microsoft's DirectML API called directly, without ONNX Runtime."""

"""ONNX Runtime's own operators, those of its domain com.microsoft, by the document of each: ContribOperators.md."""

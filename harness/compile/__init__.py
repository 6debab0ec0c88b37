"""From cases to what crosses the pipe to a worker: ONNX graphs, and descriptions of DirectML calls."""

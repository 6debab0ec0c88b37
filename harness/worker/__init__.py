"""Runs beside the provider: ONNX Runtime or DirectML in a separate process, also under Wine and at the other
end of ssh.

Standard library, NumPy and onnxruntime, Python 3.8 and later; imports nothing of the project.
"""

"""What runs where the provider is: ONNX Runtime or DirectML in a process of its own, also under Wine and at
the other end of ssh.

Standard library, NumPy and onnxruntime, Python 3.8 and later; nothing of the project is imported.
"""

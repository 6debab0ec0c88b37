"""The Windows runtime on Linux: Windows' own Python, ONNX Runtime and DirectML under Wine, without Windows or
a GPU.

lock, releases     what is installed: pinned packages, and which release carries which DirectML
refresh            writes the lock file: apt resolves, pip downloads, Authenticode is verified
fetch, system, wheels, install    put it into the user's cache, verify it, remove it
sandbox, runtime   start a worker in it
What runs inside the Windows Python is in `harness/worker/windows`.
"""

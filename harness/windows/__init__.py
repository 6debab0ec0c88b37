"""The Windows runtime on Linux: Windows' own Python, ONNX Runtime and DirectML under Wine, with neither Windows nor a GPU.

lock, releases     what is installed: pinned packages, and which release carries which DirectML
refresh            writes the lock file: apt resolves, pip downloads, Authenticode is verified
fetch, system, wheels, install    put it into the user's cache, verify it, remove it
sandbox, runtime   start a worker in it
boot, winecompat, device, com     run inside the Windows Python: standard library only, Python 3.8 and later
commands           `harness windows …`

Modules of the third row and `__init__` import nothing of this package that is not in that row.
"""

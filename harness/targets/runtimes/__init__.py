"""Environments with other releases of onnxruntime, in the user's cache: `cpu@ort-1.22.1`.

projects.py      what environments are made for: onnxruntime, and packages with a plugin
index.py         which releases the package index has, as this machine is configured for it
pythons.py       which Pythons this machine has
environments.py  an environment for one release: made once, verified before use
"""

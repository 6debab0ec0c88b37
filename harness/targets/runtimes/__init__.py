"""Environments with other releases of onnxruntime, in the user's cache: `cpu@ort-1.22.1`.

projects.py            what environments are made for: onnxruntime, and packages with a plugin
index.py               which releases the package index has, as this machine is configured for it
pythons.py             which Pythons this machine has
wanted_release.py      which release a text asks for
environment_folder.py  where an environment is
usage.py               which environments are in use
environments.py        the environments: made and seen to start once, verified before use, listed and deleted
"""

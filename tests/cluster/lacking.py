"""Whether Dask is here."""

from __future__ import annotations

from importlib.util import find_spec

from tests.needs import need


def need_dask() -> None:
    """Skip a test that needs Dask where it is absent."""
    there = find_spec("distributed") is not None
    need("cluster", None if there else "python -m pip install 'onnxruntime-conformance-harness[cluster]'")

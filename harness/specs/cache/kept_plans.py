"""Keeps what planning the harness's own specs found, since that takes many seconds: one file for a spec in the
user's cache, named after all that the plan follows from.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness.model.cache_folder import cache_folder
from harness.model.case import (
    Case,
    DirectmlOptions,
    DirectmlTensor,
    Options,
    TensorSpec,
    TensorValue,
    Validity,
)
from harness.model.dtypes import Array
from harness.operators import COLLECTED, VARIABLE
from harness.operators.base import Call, Operator, TensorType
from harness.specs.cache import digests, kept
from harness.specs.coverage.left_out import left_out_file
from harness.specs.reading.load import LoadedSpec
from harness.specs.sweeps import family_sweeps
from harness.specs.sweeps.combination import CallGroup, Input, SweepStep
from harness.specs.sweeps.covering import CoveringArray

_OLD = 3
"""As many plans of a spec stay: of branches and releases that are used in turn."""


class KeptCalls(NamedTuple):
    """The plan of a sweep: its groups, its counts of left-out cases by reason, and the covering arrays that
    it used."""

    groups: Sequence[CallGroup]
    left_out: Counter[str]
    arrays: list[CoveringArray]


class KeptPlan(NamedTuple):
    """The literal cases of a spec, those of the API that are generated among them, and its sweeps."""

    literals: Sequence[Case]
    sweeps: Sequence[KeptCalls]


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Exempt plans, which grow and stay, from repeated garbage collection: objects made in this block go to the
    oldest generation."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.freeze()
            gc.unfreeze()  # into the oldest generation
            gc.enable()


def read(spec: LoadedSpec, operator: Operator) -> KeptPlan | None:
    """Return the plan of a spec that was kept; None where there is none that is whole."""
    if not keeps(spec, operator):
        return None
    found = kept.unpickled(_path(spec), _PARTS)
    return found if isinstance(found, KeptPlan) else None


def could_have(spec: LoadedSpec, operator: Operator) -> bool:
    """Say whether a plan of the spec is not kept and could be."""
    if not keeps(spec, operator):
        return False
    path = _path(spec)
    with contextlib.suppress(OSError):  # a folder that may not be looked into
        there = next(folder for folder in path.parents if folder.exists())
        return not path.exists() and os.access(there, os.W_OK)
    return False


def write(spec: LoadedSpec, plan: KeptPlan) -> None:
    """Keep the plan of a spec, and no more than a few of those before."""
    kept.write(_path(spec), kept.pickled(plan, {np.ndarray: _reduced}), _OLD)


def keeps(spec: LoadedSpec, operator: Operator) -> bool:
    """Say whether the plan follows from files alone: of the harness's own spec and operator, without further
    ones."""
    return (
        spec.built_in
        and not os.environ.get(VARIABLE)
        and (spec.graph is not None or COLLECTED.get(operator.name) is operator)
    )


def digest(spec: LoadedSpec) -> bytes:
    """Return a digest of all that the plan of a spec follows from."""
    shared = _files(family_sweeps.folder()) + _files(left_out_file().parent)
    return sha256(digests.code(*kept.ROOMS) + shared + spec.source.digest).digest()


def _path(spec: LoadedSpec) -> Path:
    return cache_folder("plans") / f"{spec.model.operator}-{digest(spec).hex()[:16]}.pickle"


@cache
def _files(folder: Path) -> bytes:
    return digests.files(sorted(folder.glob("*.yaml")))


def _array(elements: bytes | list[Any], dtype: str, shape: tuple[int, ...]) -> Array:
    """Return an array of a plan again. NumPy refuses objects out of bytes."""
    flat: Array = (
        np.frombuffer(elements, dtype) if isinstance(elements, bytes) else np.array(elements, object)
    )
    found: Array = flat.reshape(shape).copy()
    return found


def _reduced(array: Array) -> tuple[Any, ...]:
    elements = array.ravel().tolist() if array.dtype.hasobject else array.tobytes()
    return _array, (elements, array.dtype.str, array.shape)


_PARTS = {(each.__module__, each.__qualname__): each for each in (
    KeptPlan, KeptCalls, Case, Options, Validity, TensorSpec, TensorValue, DirectmlOptions, DirectmlTensor, CallGroup, SweepStep,
    Input, Call, TensorType, CoveringArray, Counter, complex, _array,
)}  # fmt: skip
"""All that a plan may be made of besides numbers, texts, tuples, lists and dictionaries: types that hold data and do nothing."""

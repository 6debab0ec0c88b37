"""Files of the user's cache that can be computed again, named `NAME-DIGEST.…` after everything that
determines them.

A file that is absent, damaged or cannot be written costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import io
import pickle
from collections.abc import Callable, Mapping
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from pydantic import VERSION

from harness.model import cache_folder as folders
from harness.model.cache_folder import cache_folder
from harness.specs.cache import digests
from harness.specs.reading.source import Source, parse

_DIGEST = sha256().digest_size
ROOMS = ("model", "operators", "specs")
"""What plans and parsed files follow from."""

_Checked = TypeVar("_Checked")


def read(path: Path) -> bytes | None:
    """Return the content of a file; None if it is absent or damaged."""
    with contextlib.suppress(OSError):
        data = path.read_bytes()
        if sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
            return data[_DIGEST:]
    return None


def unpickled(path: Path, parts: Mapping[tuple[str, str], Any]) -> Any:
    """Return the object in a file, made of numbers, texts, tuples, lists, dictionaries and the given parts; None if
    the file is absent, damaged or contains any other type."""
    data = read(path)
    try:
        return None if data is None else Unpickler(data, parts).load()
    except (
        pickle.UnpicklingError,
        AttributeError,
        EOFError,
        ImportError,
        LookupError,
        TypeError,
        ValueError,
    ):
        return None


def put(path: Path, data: bytes) -> None:
    """Write a file for `read`, whole or not at all. Errors: OSError."""
    folders.put(path, sha256(data).digest() + data)


def write(path: Path, data: bytes, stay: int) -> None:
    """Write a file; of the same name the newest `stay` remain: of branches and releases that are used in turn."""
    with contextlib.suppress(OSError):
        put(path, data)
        same = path.parent.glob(f"{path.name.rpartition('-')[0]}-*{path.suffix}")
        for old in sorted(same, key=lambda each: -each.stat().st_mtime)[stay:]:
            old.unlink()


class Unpickler(pickle.Unpickler):
    """Unpickles only numbers, texts, tuples, lists, dictionaries and the given `parts`."""

    def __init__(self, data: bytes, parts: Mapping[tuple[str, str], Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._parts = parts

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._parts[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of what is kept") from None


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: object) -> Any:
        # an enumeration by its value: Python 3.11.0 to 3.11.3 ask for getattr, which is no part
        return (type(obj), (obj.value,)) if isinstance(obj, Enum) else NotImplemented


def pickled(found: object, reduced: Mapping[type, Callable[[Any], Any]] | None = None) -> bytes:
    """Return an object as `unpickled` reads it; `reduced` are functions as `copyreg` has them, by type."""
    with io.BytesIO() as file:
        pickler = _Pickler(file, protocol=5)
        pickler.dispatch_table = dict(reduced or {})
        pickler.dump(found)
        return file.getvalue()


def checked(
    data: bytes,
    *,
    path: Path,
    label: str,
    check: Callable[[Source], _Checked],
    parts: Mapping[tuple[str, str], Any],
) -> tuple[Source, _Checked]:
    """Return what `source.parse` makes of one of the harness's own files, and `check` of that, a model of the given parts,
    and keep both: the YAML takes ten times as long, and the first validation with a model 30 ms. Errors: those of `check`."""
    digest = sha256(data).digest()
    # one file can be asked for as a spec and as expectations
    checked_by = f"{VERSION} {check.__module__}.{check.__qualname__}".encode()
    name = sha256(digests.code(*ROOMS) + checked_by + digest).hexdigest()[:16]
    place = cache_folder("sources") / f"{path.stem}-{name}.pickle"
    if (kept := unpickled(place, parts)) is not None:
        tree, lines, model = kept
        return Source(path, label, tree, lines, digest), model
    made = parse(data, path=path, label=label)
    found = check(made)
    write(place, pickled((made.tree, made.lines, found)), 3)
    return made, found

"""The inputs of a model: read from files, or drawn by element type and shape, with indices within their
range."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, ValueInfoProto, helper

from harness.compile.models import PROTOBUF_LIMIT, Model
from harness.compile.protos import LeftOut, tensor_of
from harness.model import plain_file
from harness.model.case import Tensor
from harness.model.dtypes import BY_ONNX_NUMBER, DTYPES, Array
from harness.model.errors import UsageError, shown
from harness.model.float_formats import encode
from harness.operators.in_models import (
    distinct_indices,
    index_limit,
    is_mask,
    known_texts,
    passes_indices,
    replaced,
)

_MISSING = 0.25
"""The part of an input's elements that a node replaces."""


def free_dimensions(model: Model) -> list[str]:
    """Return the names of the dimensions of a model's inputs that are no numbers; `X[0]` where one has no name."""
    names = {
        extent.dim_param or f"{value.name}[{n}]": None
        for value in model.inputs
        for n, extent in enumerate(value.type.tensor_type.shape.dim)
        if not extent.HasField("dim_value")
    }
    return list(names)


def inner_dimensions(model: Model) -> set[str]:
    """Return those free dimensions that are a length, a height or a width where inputs are laid out as usual: the last of two
    or three, and those behind the second of more."""
    inner, outer = set[str](), set[str]()
    for value in model.inputs:
        extents = value.type.tensor_type.shape.dim
        first = max(1, len(extents) - 1) if len(extents) < 4 else 2
        for n, extent in enumerate(extents):
            (inner if n >= first else outer).add(extent.dim_param or f"{value.name}[{n}]")
    return inner - outer - sums(free_dimensions(model)).keys()


def sums(names: Sequence[str]) -> dict[str, list[str]]:
    """Return those names of free dimensions that are sums of others and of numbers, as `past + 1`, with their terms."""
    terms = {name: [each.strip() for each in name.split("+")] for name in names if "+" in name}
    return {name: of for name, of in terms.items() if all(each.isdecimal() or each in names for each in of)}


def takes_integers(model: Model) -> bool:
    """Say whether an input has integers or booleans."""
    numbers = (value.type.tensor_type.elem_type for value in model.inputs)
    dtypes = [BY_ONNX_NUMBER[each] for each in numbers if each in BY_ONNX_NUMBER]
    return any(
        each.name != "string" and np.dtype(each.storage).kind in "iub" and not each.is_float
        for each in dtypes
    )


class ModelInputs:
    """Reads or draws the inputs of a model; `drawn` are the names of the drawn inputs, `sizes` the free
    dimensions by name. Where they are `varied`, integers are 1 to 3, a single one 2 or 3, and booleans and integers of a
    mask 0 or 1, but for the first of each row; otherwise all are 1."""

    def __init__(self, model: Model, sizes: Mapping[str, int], seed: int, *, varied: bool = False) -> None:
        self._model = model
        self._varied = varied
        self._generator = np.random.default_rng(seed)
        self.sizes: dict[str, int] = {name: sizes.get(name, 1) for name in free_dimensions(model)}
        self.sizes |= {
            name: sum(int(each) if each.isdecimal() else self.sizes[each] for each in terms)
            for name, terms in sums(list(self.sizes)).items()
            if name not in sizes
        }
        self.drawn: list[str] = []

    def tensors(self, data: Path | None) -> dict[str, Tensor]:
        """Return every input by name. Errors: UsageError."""
        given = {} if data is None else self._read(data)
        found = {}
        for value in self._model.inputs:
            if not value.type.HasField("tensor_type"):
                raise UsageError(
                    f"{self._model.path}: input {shown(value.name)!r} is no tensor; export the model with tensors as inputs"
                )
            self.drawn += [] if value.name in given else [value.name]
            found[value.name] = given[value.name] if value.name in given else self._draw(value)
        return found

    def _read(self, data: Path) -> dict[str, Tensor]:
        declared = {value.name: value.type.tensor_type.elem_type for value in self._model.inputs}
        held: dict[str, Any] = {}
        try:
            if data.is_dir():
                for number, name in enumerate(declared):
                    path = data / f"input_{number}.pb"
                    content = plain_file.read_bytes(path, PROTOBUF_LIMIT) if path.exists() else None
                    held |= {} if content is None else {name: TensorProto.FromString(content)}
                if not held:
                    raise UsageError(
                        f"{data}: holds no input_0.pb; name a folder as ONNX's backend tests have it"
                    )
            else:
                plain_file.PlainFile(data).close()  # a pipe would be waited for
                with np.load(data, allow_pickle=False) as arrays:
                    if sum(each.file_size for each in arrays.zip.infolist()) > PROTOBUF_LIMIT:
                        raise UsageError(f"{data}: more than 2 GiB of inputs, which no model takes")
                    held = {name: arrays[name] for name in arrays.files}
        except OSError as error:
            raise UsageError(f"{data}: cannot be read: {error.strerror or error}") from error
        except UsageError:
            raise
        except (
            Exception
        ) as error:  # NumPy, zipfile and Protocol Buffers raise errors of many types for damage
            what = "input_N.pb" if data.is_dir() else ".npz file"
            raise UsageError(f"{data}: no {what} with arrays of numbers, or a damaged one") from error
        if unknown := held.keys() - declared.keys():
            raise UsageError(
                f"{data}: the model has no input {min(unknown)!r}; it has: {', '.join(declared)}"
            )
        found = {}
        for name, each in held.items():
            try:
                found[name] = tensor_of(declared[name], each)
            except LeftOut as error:
                raise UsageError(f"{data}: {shown(name)}: {error}") from error
            extents = self._extents(name)
            if extents is not None and not _fits(found[name].array.shape, extents):
                shape, wanted = (
                    ",".join("?" if each is None else str(each) for each in some)
                    for some in (found[name].array.shape, extents)
                )
                raise UsageError(
                    f"{data}: {shown(name)} has the shape [{shape}], and the model takes [{wanted}]"
                )
        return found

    def _extents(self, name: str) -> list[int | None] | None:
        """Return the extents that the model declares of an input, None for a free one; None without a shape."""
        kind = next(value.type.tensor_type for value in self._model.inputs if value.name == name)
        if not kind.HasField("shape"):
            return None
        return [each.dim_value if each.HasField("dim_value") else None for each in kind.shape.dim]

    def _draw(self, value: ValueInfoProto) -> Tensor:
        number = value.type.tensor_type.elem_type
        if number not in BY_ONNX_NUMBER:
            raise UsageError(
                f"{self._model.path}: input {shown(value.name)!r} has an element type that cannot be fed; "
                "export the model with another"
            )
        dtype = BY_ONNX_NUMBER[number]
        if not value.type.tensor_type.HasField("shape"):
            raise UsageError(
                f"{self._model.path}: input {value.name!r} declares no shape; give it with --data"
            )
        shape = self._shape(value)
        size = math.prod(shape) * np.dtype(dtype.storage).itemsize
        if size > PROTOBUF_LIMIT:
            raise UsageError(
                f"{self._model.path}: input {shown(value.name)!r} of {'×'.join(map(str, shape))} elements cannot be drawn: "
                "2 GiB are the most; set its free dimensions with --dim, or export the model with others"
            )
        if dtype.is_float:
            drawn = self._generator.standard_normal(shape)
            for missing in self._missing(value.name):
                drawn[self._generator.random(shape) < _MISSING] = missing
            return Tensor(dtype.name, encode(dtype.name, drawn))
        if dtype.name == "string":
            held = (each for node in self._model.graph.node for each in node.attribute)
            texts = known_texts((each.name, each.strings) for each in held) or ["text"]
            return Tensor("string", self._generator.choice(np.array(texts, object), shape))
        limit = self._limit(value.name)
        if limit is not None:
            places = self._distinct(value.name, max(limit, 1), shape)
            if places is None:
                places = self._generator.integers(0, max(limit, 1), shape)
            return Tensor(dtype.name, places.astype(dtype.storage))
        if dtype.name != "bool" and DTYPES[dtype.name].itemsize == 1:
            low, high, _ = dtype.limits
            return Tensor(
                dtype.name, self._generator.integers(low, high, shape, endpoint=True).astype(dtype.storage)
            )
        elements = np.ones(shape, dtype.storage)
        if self._varied and elements.dtype.kind != "c":
            mask = dtype.name == "bool" or is_mask(value.name)
            places = elements.reshape(shape or (1,))[..., mask:]
            places[...] = self._generator.integers(
                0 if mask else 1 + (not shape), 2 if mask else 4, places.shape
            )
        return Tensor(dtype.name, elements)

    def _distinct(self, name: str, limit: int, shape: tuple[int, ...]) -> Array | None:
        """Draw indices that name no place twice, if a node that takes them needs such ones and there are enough."""
        for node in self._model.graph.node:
            if name in node.input[1:2]:
                held = {each.name: helper.get_attribute_value(each) for each in node.attribute}
                found = distinct_indices(node.op_type, held, limit, shape, self._generator)
                if found is not None:
                    return found
        return None

    def _shape(self, value: ValueInfoProto) -> tuple[int, ...]:
        return tuple(
            extent.dim_value
            if extent.HasField("dim_value")
            else self.sizes[extent.dim_param or f"{value.name}[{n}]"]
            for n, extent in enumerate(value.type.tensor_type.shape.dim)
        )

    def _missing(self, name: str) -> Iterator[float]:
        """Yield the numbers that nodes replace in an input."""
        for node in self._model.graph.node:
            if name in node.input:
                yield from replaced((each.name, each.f) for each in node.attribute)

    def _limit(self, name: str) -> int | None:
        """Return below what elements must lie that some node takes as indices."""
        names, limits = {name}, []
        shapes = {each.name: self._shape(each) for each in self._model.inputs}
        shapes |= {key: each.array.shape for key, each in self._model.weights.items()}
        for node in self._model.graph.node:
            for position, taken in enumerate(node.input):
                if taken not in names:
                    continue
                if position == 0 and passes_indices(node.op_type):
                    names.add(node.output[0])
                held = {each.name: helper.get_attribute_value(each) for each in node.attribute}
                limit = index_limit(node.op_type, held, position, shapes.get(node.input[0]))
                limits += [] if limit is None else [limit]
        return min(limits, default=None)


def _fits(shape: Sequence[int], extents: Sequence[int | None]) -> bool:
    return len(shape) == len(extents) and all(
        wanted in (None, extent) for extent, wanted in zip(shape, extents, strict=True)
    )

"""Relations between the inputs and attributes of a call, from shapes and integers alone: columns of
`features`.

Columns without an input's name describe the first two inputs; those of a further input begin with its name
and compare it with the first. The meaning of a number comes from its role (`facts.roles`), never from the
operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from harness.results.rules.facts import roles

Value = int | str
Shape = tuple[int, ...]
COMPARED = 4
"""Inputs that are held against the first: of long lists the later ones say no more."""


def relations(
    shapes: Mapping[str, Shape],
    numbers: Mapping[str, int],
    lists: Mapping[str, tuple[int, ...]],
    tuples: str | None,
) -> dict[str, Value]:
    """Return the relations of inputs by name, in their order, with integer attributes and lists; `tuples` is
    the input of index tuples."""
    if not shapes:
        return {}
    (first, shape), *others = list(shapes.items())[:COMPARED]
    found: dict[str, Value] = {}
    for place, (name, other) in enumerate(others):
        prefix = "" if not place else f"{name}."
        found |= {f"{prefix}{column}": value for column, value in _of_pair(shape, other)}
    for attribute, number in numbers.items():
        role = roles().get(attribute)
        if role == "dimension":
            found |= _along(attribute, number, first, shape, others)
        elif role == "batch" and others:
            found |= _batches(attribute, number, shape, others[0][1])
    for attribute, given in lists.items():
        if roles().get(attribute) == "dimensions":
            found |= _dimensions(attribute, given, len(shape))
    if tuples is not None and tuples in shapes and tuples != first:
        batches = [number for attribute, number in numbers.items() if roles().get(attribute) == "batch"]
        found |= _tuples(shape, shapes[tuples], batches[0] if batches else 0)
    return found


def _of_pair(shape: Shape, other: Shape) -> Iterator[tuple[str, Value]]:
    """Hold a shape against that of the first input, its dimensions aligned at the last."""
    yield "ranks", "equal" if len(shape) == len(other) else "differ"
    yield "rank_gap", len(other) - len(shape)
    aligned = list(zip(reversed(shape), reversed(other), strict=False))
    yield "extents", _orders(aligned)
    if any(own != theirs and 1 not in (own, theirs) for own, theirs in aligned):
        yield "broadcast", "impossible"
        return
    which = {"first" if own == 1 else "second" for own, theirs in aligned if own != theirs}
    if len(shape) != len(other):
        which.add("first" if len(shape) < len(other) else "second")
    yield "broadcast", "none" if not which else "both" if len(which) > 1 else which.pop()
    if aligned:
        own, theirs = aligned[0]
        yield "broadcast_last", "none" if own == theirs else "first" if own == 1 else "second"


def _along(
    attribute: str, number: int, first: str, shape: Shape, others: list[tuple[str, Shape]]
) -> dict[str, Value]:
    """Relate a dimension with the extents of the inputs there, and off it."""
    rank = len(shape)
    found: dict[str, Value] = {f"{attribute}_in_range": yes(-rank <= number < rank)}
    if not -rank <= number < rank:
        return found
    place = number % rank
    found[f"{attribute}.normalised"] = place
    found[f"{attribute}.last"] = yes(place == rank - 1)
    found[f"{first}.along_{attribute}"] = shape[place]
    for nth, (name, other) in enumerate(others):
        if len(other) == rank:
            prefix = "" if not nth else f"{name}."
            off = [pair for n, pair in enumerate(zip(shape, other, strict=True)) if n != place]
            found[f"{prefix}off_{attribute}"] = _orders(off)
            found[f"{prefix}along_{attribute}"] = _order(other[place], shape[place])
            found[f"{name}.along_{attribute}"] = other[place]
    return found


def _dimensions(attribute: str, given: tuple[int, ...], rank: int) -> dict[str, Value]:
    """Relate a list of dimensions with the rank of the first input."""
    legal = all(-rank <= each < rank for each in given)
    found: dict[str, Value] = {f"{attribute}_in_range": yes(legal)}
    if legal and rank:
        places = [each % rank for each in given]
        found[f"{attribute}.repeated"] = yes(len(set(places)) < len(places))
        found[f"{attribute}.all"] = yes(len(set(places)) == rank)
        found[f"{attribute}.last_dimension"] = yes(rank - 1 in places)
        found[f"{attribute}.ascending"] = yes(places == sorted(places))
    return found


def _batches(attribute: str, batch: int, shape: Shape, other: Shape) -> dict[str, Value]:
    """Relate a number of leading dimensions with the first two inputs."""
    legal = 0 <= batch < min(len(shape), len(other))
    found: dict[str, Value] = {f"{attribute}_in_range": yes(legal)}
    if legal:
        found["batch_sizes"] = "equal" if shape[:batch] == other[:batch] else "differ"
        if batch:
            found["batches"] = prod(shape[:batch])
    return found


def _tuples(shape: Shape, indices: Shape, batch: int) -> dict[str, Value]:
    """Relate index tuples to the dimensions that they index, behind the batch dimensions."""
    if not indices:
        return {}
    found: dict[str, Value] = {"tuple": indices[-1]}
    if not 0 <= batch < min(len(shape), len(indices)):
        return found
    found["slice_rank"] = left = len(shape) - batch - indices[-1]
    found["tuples"] = tuples = prod(indices[:-1])
    if batch:
        batches = prod(shape[:batch])
        found["tuples_to_batches"] = (
            "fewer" if tuples < batches else "other" if tuples % max(batches, 1) else "multiple"
        )
    if left >= 0:
        found["result_rank"] = len(indices) - 1 + left
    return found


def yes(truth: bool) -> str:
    """Write a truth as a word."""
    return "yes" if truth else "no"


def _order(size: int, other: int) -> str:
    return "same" if size == other else "fewer" if size < other else "more"


def _orders(extents: Iterable[tuple[int, int]]) -> str:
    """Say how the second extents of pairs are, held against the first: `same`, `fewer`, `more`, or `both` of these."""
    found = {_order(theirs, own) for own, theirs in extents} - {"same"}
    return "same" if not found else "both" if len(found) > 1 else found.pop()

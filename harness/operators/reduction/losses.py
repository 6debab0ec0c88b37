"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the cost of the right class for each sample, and for all
together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.operators.base import Call, Operator, Relation, Shape, ValueKind, value_kinds
from harness.operators.bounded import Bounded, either, log, number, squeeze, take_along_axis, where
from harness.operators.computing import Conditioned
from harness.operators.formulas import bounded
from harness.operators.normalization.norms import log_softmax, softmax

# loss[n, d] = -input[n, c, d] * weight[c], c = target[n, d]; 0 where c = ignore_index
# none: loss; sum: sum loss; mean: sum loss / sum of weight[c], without those that are ignored
# SoftmaxCrossEntropyLoss: input = log_prob = log(softmax(scores))

CLASSES = "labels from 0 to C-1, or ignore_index"
LABELS = (
    *value_kinds("classes", "some_ignored", "all_ignored"),
    *value_kinds("above", "below", breaks=CLASSES),
)
"""classes: 0 to C-1, none of which is ignored; some_ignored: a third ignore_index."""
REDUCTIONS = ("none", "sum", "mean")


def likelihood(x: Bounded, target: Array, weight: Bounded | None, call: Call) -> Bounded:
    """Return the loss by the formula above."""
    ignored = _ignored(call, target)
    classes = np.where(ignored, 0, target).astype(np.int64)
    loss = -squeeze(take_along_axis(x, classes[:, None], axis=1), axis=1)
    shares = number(np.ones(target.shape), x.arithmetic) if weight is None else weight[classes]
    zero = np.zeros(target.shape)
    loss = where(ignored, zero, loss if weight is None else loss * shares)
    reduction = call.parameter("reduction")
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    plain = weight is None and not ignored.any()
    return loss.mean() if plain else loss.sum() / where(ignored, zero, shares).sum()


def _ignored(call: Call, target: Array) -> Array:
    given = call.parameter("ignore_index")
    return np.zeros(target.shape, bool) if given is None else np.asarray(target == given)


def negative_log_likelihood(
    input: Bounded, target: Array, call: Call, weight: Bounded | None = None
) -> Bounded:
    """Return the loss of log-probabilities."""
    return likelihood(input, target, weight, call)


def softmax_cross_entropy(
    scores: Bounded, labels: Array, call: Call, weights: Bounded | None = None
) -> tuple[Bounded, Bounded]:
    """Return the loss of scores, and their log-probabilities, by one formula or the other."""
    logarithms = scores  # where there is no class
    if scores.shape[1]:
        logarithms = either(log_softmax(scores, 1), log(softmax(scores, 1)))
    return likelihood(logarithms, labels, weights, call), logarithms


class Losses(Conditioned):
    """Scores [N, C, ...], labels `each` [N, ...], weights `classes` [C], and unlike them."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = dict.fromkeys(("target", "labels"), LABELS)
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "*": ("each", "classes", "unlike", "unlike_batch", "unlike_rank")
    }

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of labels and weights."""
        scores = call.first.shape
        if len(scores) < 2:
            return (1,)
        each = (scores[0], *scores[2:])
        found: dict[str, Shape] = {
            "each": each,
            "classes": scores[1:2],
            "unlike": (scores[1] + 1,) if len(call.inputs) > 1 else (*each[:-1], each[-1] + 1),
            "unlike_batch": (each[0] + 1, *each[1:]),
            "unlike_rank": (*each, 1),
        }
        return found[str(relation)]

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning: without ignore_index no label is ignored."""
        if "ignored" in kind and call.parameter("ignore_index") is None:
            return False
        return super().applies(operator, kind, name, call)

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose labels by kind."""
        scores, skip = call.first.shape, call.parameter("ignore_index")
        count = scores[1] if len(scores) > 1 else 1
        found = raw % max(count, 1)
        if skip is not None and count > 1:
            found = np.where(found == skip, (found + 1) % count, found)
        if "ignored" in kind:
            found = np.where((raw >> 16) % 3 == 0 if kind == "some_ignored" else True, skip, found)
        elif kind != "classes":
            found.reshape(-1)[:1] = count if kind == "above" else -1
        return np.asarray(found.astype(DTYPES[call.inputs[name].dtype].storage))

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Ranks, shapes and the name of the reduction."""
        scores, labels = call.shapes[:2]
        if len(scores) < 2:
            return "the scores have a batch and classes"
        if labels != (scores[0], *scores[2:]):
            return "labels have the shape (N, d1, ..., dk)"
        if len(call.shapes) > 2 and call.shapes[2] != scores[1:2]:
            return "weights have the shape (C)"
        return None if call.parameter("reduction") in REDUCTIONS else "reduction is none, sum or mean"

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """Labels within the classes."""
        labels = list(inputs.values())[1].array
        wrong = ((labels < 0) | (labels >= call.first.shape[1])) & ~_ignored(call, labels)
        return CLASSES if wrong.any() else None

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The loss of each sample, or one; and the scores'."""
        reduced = call.parameter("reduction") != "none"
        return (() if reduced else call.shapes[1], call.first.shape)[: operator.options]


LOSSES = Losses()
OPERATORS = (
    Operator("NegativeLogLikelihoodLoss", LOSSES, bounded(negative_log_likelihood), options=1),
    Operator("SoftmaxCrossEntropyLoss", LOSSES, bounded(softmax_cross_entropy), options=2),
)

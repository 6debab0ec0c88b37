"""The wording of an explanation, shared by every rendering."""

from __future__ import annotations

from harness.results.cross_check import Agreement, Suspect
from harness.results.explain.explanation import Explanation
from harness.results.explain.failures import FailureGroup
from harness.results.rules.separation import Rule
from harness.results.rules.terms import Term, say
from harness.results.summary import Tone, count

SHOWN_ALTERNATIVES = 3


def headline(found: Explanation) -> tuple[Tone, str]:
    """Return the tone and the sentence that an explanation opens with."""
    groups = count(len(found.groups) + found.unexplained, "group")
    if found.base is not None:
        if not found.failing:
            return "good", f"Nothing differs among {count(found.results, 'result')} that ran in both runs."
        differ = "differs" if found.failing == 1 else "differ"
        both = f"of {found.results:,} that ran in both runs {differ}"
        return "warn", f"{count(found.failing, 'result')} {both}, in {groups}."
    unexpected = sum(group.number for group in found.groups if not group.kind.known)
    aside = (
        f" {count(found.known, 'known result')} left aside; --known explains {'it' if found.known == 1 else 'them'}."
        if found.known
        else ""
    )
    if not found.failing:
        return "good", f"No unexpected failure in {count(found.results, 'result')}.{aside}"
    if not unexpected:
        return (
            "good",
            f"{count(found.failing, 'known result')} in {count(found.results, 'result')}, in {groups}.",
        )
    known = found.failing - unexpected
    both = f" and {count(known, 'known result')}" if known and not found.unexplained else ""
    return (
        "bad",
        f"{count(unexpected, 'unexpected failure')}{both} in {count(found.results, 'result')}, in {groups}.{aside}",
    )


def title(group: FailureGroup) -> str:
    """Name a group: the number of results, the outcome, the target, and the operators."""
    kind = group.kind
    operators = ", ".join(sorted(group.operators))
    label = f"{kind.change.value} " if kind.change else "known " if kind.known else ""
    before = f"{'flaky, ' if kind.before.flaky else ''}{kind.before.outcome.value} → " if kind.before else ""
    made_by = f", right without {' and '.join(kind.culprit)}" if kind.culprit else ""
    cases = f"{kind.signature.validity.value} cases{made_by}"
    return f"{label}{group.number:,} × {before}{kind.signature.words} on {kind.target}: {operators}, {cases}"


def differences(group: FailureGroup) -> str:
    """Say which kinds of difference are in a group, where there are several."""
    if len(group.signatures) < 2:
        return ""
    return "differences: " + ", ".join(
        f"{each.difference_words or each.outcome.value} {number:,}"
        for each, number in group.signatures.most_common()
    )


def verdict_of(group: FailureGroup) -> str:
    """Say what kind of answer the rules of a group are."""
    if group.all_changed and group.population:
        return f"all that did the same in BASE changed; {_rules(group)} among what did not change"
    if not group.population:
        return "no case of this kind passes: there is nothing to tell it from"
    return _rules(group)


def _rules(group: FailureGroup) -> str:
    separation = group.separation
    if not separation.rules:
        return "no rule found: none is shorter than the list of the cases"
    rules = len(separation.rules)
    lead = "one rule" if rules == 1 else f"no single rule; one of {rules} holds"
    exceptions = len(separation.missed) + len(separation.wrong)
    if separation.noise:
        share = f"{len(separation.missed) / group.number:.1%} of what fails"
        return f"{lead}, with {count(exceptions, 'exception')}: noise, {share}"
    return lead + (f", with {count(exceptions, 'exception')}" if exceptions else "")


def statement(group: FailureGroup, rule: Rule) -> str:
    """Write a rule with its counts both ways: `A and B: 48 of 48 fail; elsewhere 0 of 9,112`; with several
    rules only the first half."""
    verb = "fail" if group.kind.change is None else "changed"
    said = f"{say(rule.terms)}: {rule.failing:,} of {rule.failing + rule.passing:,} {verb}"
    return said + (f"; {elsewhere(group)}" if len(group.separation.rules) == 1 else "")


def elsewhere(group: FailureGroup) -> str:
    """Count the failing among the cases for which no rule holds."""
    separation = group.separation
    missed = len(separation.missed)
    rest = missed + group.population - len(separation.wrong)
    return f"elsewhere {missed:,} of {rest:,}"


def inseparable(rule: Rule) -> list[str]:
    """Name for each term of a rule the alternatives that these cases cannot distinguish."""
    pairs = zip(rule.terms, rule.alternatives, strict=True)
    return [
        f"{term.words} cannot be told apart here from {_listed(others)}" for term, others in pairs if others
    ]


def thresholds(rule: Rule) -> list[str]:
    """Say for each threshold of a rule what comes nearest to it and passes: `data.rank>=4: 3 still passes`."""
    pairs = zip(rule.terms, rule.nearest, strict=False)
    return [f"{term.words}: {near:,} still passes" for term, near in pairs if near is not None]


def _listed(others: tuple[Term, ...]) -> str:
    shown = [term.words for term in others[:SHOWN_ALTERNATIVES]]
    more = len(others) - len(shown)
    return ", ".join(shown) + (f" and {count(more, 'more term')}" if more else "")


def apart(group: FailureGroup) -> str:
    """Name the other failures among the cases for which the rules hold."""
    if not group.otherwise:
        return ""
    there = f"; what fails here and not there: {say(group.apart)}" if group.apart else ""
    how = "change" if group.kind.change else "fail"
    return f"{group.otherwise:,} more {how} in another way where the rule holds{there}"


def cross_checked(group: FailureGroup) -> str:
    """Say where the cross-check points for the results of a group that both express, and why."""
    if not group.agreements:
        return ""
    said = "; ".join(_agreement(each, number) for each, number in group.agreements.most_common())
    return f"cross-check {group.cross_check}, of {group.number:,}: {said}"


def _agreement(each: Agreement, number: int) -> str:
    if each.points in (Suspect.UNCLEAR, Suspect.CHECKED):
        return f"{number:,} {each.points.value} ({each.why})"
    return f"{number:,} {'points' if number == 1 else 'point'} at {each.points.value} ({each.why})"

"""The preference of a comparison, made from the labels of its aspects."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused

DERIVED_PREFIX: Final = "derived:"
MAX_RULE_CHARACTERS: Final = 400
MILLION: Final = 1_000_000  # weights are counted in millionths, so that sums are exact
WEIGHT: Final = re.compile(r"\d{1,6}(\.\d{1,6})?", re.ASCII)


class CombiningRule(StrEnum):
    """How the labels of several aspects become one choice."""

    MAJORITY = "majority_of_aspects"
    UNANIMOUS = "unanimous"
    WEIGHTED = "weighted"
    LEXICOGRAPHIC = "lexicographic"


COMBINING_RULE_TEXTS: Final[Mapping[CombiningRule, str]] = {
    CombiningRule.MAJORITY: (
        "The response that more aspects are labelled for than for the other; as many for both make a tie. An aspect "
        "without a label counts for neither; a comparison without any label has no preference."
    ),
    CombiningRule.UNANIMOUS: (
        "The response that at least one aspect is labelled for and none against; aspects for both sides make no "
        "preference. Every aspect must have a label."
    ),
    CombiningRule.WEIGHTED: (
        "The response with the larger sum of weights of the aspects labelled for it; equal sums make a tie. Every "
        "aspect named must have a label."
    ),
    CombiningRule.LEXICOGRAPHIC: (
        "The response that the first of the aspects named is labelled for that is no tie. An aspect without a label "
        "before one that decides makes no preference."
    ),
}


class NoPreference(StrEnum):
    """Why a comparison has no choice that could be a preference."""

    NO_LABEL = "no_label"  # of the aspect, or of one that the rule needs
    SPLIT = "split"  # the people who voted are split: an open disagreement
    ASPECTS_DISAGREE = "aspects_disagree"  # unanimous: some for A, some for B


@dataclass(frozen=True)
class PreferenceRule:
    """How the choices on several aspects become one preference.

    ``aspects``: in the order in which they were named; empty if the rule applies to all. ``weights``: for the rule
    ``weighted``. ``rule``: None if the label of one aspect is the choice.
    """

    rule: CombiningRule | None
    aspects: tuple[str, ...] = ()
    weights: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The name of the rule in files, manifests and dataset cards."""
        if self.rule is None:
            return self.aspects[0]
        if self.weights:
            weights = zip(self.aspects, self.weights, strict=True)
            keys = ",".join(f"{key}={weight / MILLION:.12g}" for key, weight in weights)
        else:
            keys = ",".join(self.aspects)
        return f"{DERIVED_PREFIX}{self.rule}:{keys}" if keys else f"{DERIVED_PREFIX}{self.rule}"

    @property
    def in_words(self) -> str:
        if self.rule is None:
            return f"The label of the aspect {self.aspects[0]}."
        return COMBINING_RULE_TEXTS[self.rule]


def parse_preference_rule(*, aspect: str = "", combine: str = "", aspects: Sequence[str]) -> PreferenceRule:
    """Parse ``--aspect KEY`` or ``--combine RULE`` and check it against the evaluation's aspects."""
    if bool(aspect) == bool(combine):
        raise InputRefused(
            "Choose either the aspect that decides the preference (--aspect KEY) or a rule that combines several "
            f"(--combine {' | '.join(CombiningRule)})."
        )
    if aspect:
        refuse_unknown_aspects((aspect,), aspects)
        return PreferenceRule(None, (aspect,))
    return parse_combining_rule(combine.removeprefix(DERIVED_PREFIX), aspects)


def parse_combining_rule(text: str, aspects: Sequence[str]) -> PreferenceRule:
    """``weighted:helpfulness=2,safety=1`` and the like."""
    name, _, rest = text.partition(":")
    if name not in tuple(CombiningRule) or len(text) > MAX_RULE_CHARACTERS:
        raise InputRefused(f"Unknown rule “{text[:60]}”. Choose one of {', '.join(CombiningRule)}.")
    rule = CombiningRule(name)
    named = tuple(part.strip() for part in rest.split(",")) if rest else ()
    if rule == CombiningRule.WEIGHTED:
        keys, weights = tuple(zip(*map(parse_weight, named), strict=True)) or ((), ())
        refuse_unusable_combination(rule, keys, aspects)
        return PreferenceRule(rule, keys, weights)
    refuse_unusable_combination(rule, named, aspects)
    return PreferenceRule(rule, named)


def parse_weight(part: str) -> tuple[str, int]:
    key, _, weight_text = part.partition("=")
    weight = int(Decimal(weight_text) * MILLION) if WEIGHT.fullmatch(weight_text) else 0
    if not weight:
        raise InputRefused(f"“{part[:60]}” is not an aspect with a weight above 0, such as helpfulness=2.")
    return key.strip(), weight


def refuse_unusable_combination(rule: CombiningRule, named: Sequence[str], aspects: Sequence[str]) -> None:
    if rule in (CombiningRule.WEIGHTED, CombiningRule.LEXICOGRAPHIC) and not named:
        how = (
            "weighted:helpfulness=2,safety=1" if rule == CombiningRule.WEIGHTED else "lexicographic:safety,helpfulness"
        )
        raise InputRefused(f"The rule {rule} needs aspects, such as {how}.")
    if len(set(named)) < len(named):
        raise InputRefused(f"The rule {rule} names an aspect twice.")
    refuse_unknown_aspects(named, aspects)


def refuse_unknown_aspects(named: Sequence[str], aspects: Sequence[str]) -> None:
    for key in named:
        if key not in aspects:
            existing = f"this evaluation has {', '.join(aspects)}" if aspects else "this evaluation has none"
            raise InputRefused(f"Unknown aspect “{key[:60]}”: {existing}.")


def decide_preference(
    how: PreferenceRule, labels: Mapping[str, Choice | None], aspects: Sequence[str]
) -> Choice | NoPreference:
    """The one choice that the labels make, or why they make none.

    ``labels``: aspect → its label, None where the votes are split. ``aspects``: those that the evaluation asks about.
    """
    needed = how.aspects or tuple(aspects)
    match how.rule:
        case CombiningRule.MAJORITY:
            return decide_by_majority([labels[key] for key in needed if key in labels])
        case CombiningRule.UNANIMOUS:
            return decide_unanimously(collect_labels(labels, needed))
        case CombiningRule.WEIGHTED:
            return decide_by_weight(collect_labels(labels, needed), how.weights)
        case _:
            return decide_lexicographically(labels, needed)


def collect_labels(labels: Mapping[str, Choice | None], needed: Sequence[str]) -> list[Choice] | NoPreference:
    collected: list[Choice] = []
    for key in needed:
        label = labels.get(key)
        if label is None:
            return NoPreference.SPLIT if key in labels else NoPreference.NO_LABEL
        collected.append(label)
    return collected or NoPreference.NO_LABEL


def decide_by_majority(labels: Sequence[Choice | None]) -> Choice | NoPreference:
    choices = [label for label in labels if label is not None]
    if not choices:
        return NoPreference.SPLIT if labels else NoPreference.NO_LABEL
    return choose_leading_side(choices.count(Choice.A), choices.count(Choice.B), choices)


def decide_unanimously(labels: Sequence[Choice] | NoPreference) -> Choice | NoPreference:
    if isinstance(labels, NoPreference):
        return labels
    if Choice.A in labels and Choice.B in labels:
        return NoPreference.ASPECTS_DISAGREE
    return choose_leading_side(labels.count(Choice.A), labels.count(Choice.B), labels)


def decide_by_weight(labels: Sequence[Choice] | NoPreference, weights: Sequence[int]) -> Choice | NoPreference:
    if isinstance(labels, NoPreference):
        return labels
    return choose_leading_side(
        sum(weights_for_side(Choice.A, labels, weights)), sum(weights_for_side(Choice.B, labels, weights)), labels
    )


def weights_for_side(side: Choice, labels: Sequence[Choice], weights: Sequence[int]) -> Iterator[int]:
    return (weight for label, weight in zip(labels, weights, strict=True) if label == side)


def decide_lexicographically(labels: Mapping[str, Choice | None], needed: Sequence[str]) -> Choice | NoPreference:
    met: list[Choice] = []
    for key in needed:
        label = labels.get(key)
        if label is None:
            return NoPreference.SPLIT if key in labels else NoPreference.NO_LABEL
        if label in (Choice.A, Choice.B):
            return label
        met.append(label)
    return choose_tie_or_both_bad(met)


def list_deciding_aspects(how: PreferenceRule, labels: Mapping[str, Choice | None]) -> list[str]:
    """The aspects whose labels made the choice: in turn only those up to the one that decided."""
    heard = []
    for key, label in labels.items():
        if label is None:
            continue
        heard.append(key)
        if how.rule == CombiningRule.LEXICOGRAPHIC and label in (Choice.A, Choice.B):
            break
    return heard


def choose_leading_side(for_a: int, for_b: int, labels: Collection[Choice]) -> Choice:
    if for_a == for_b:
        return choose_tie_or_both_bad(labels)
    return Choice.A if for_a > for_b else Choice.B


def choose_tie_or_both_bad(labels: Collection[Choice]) -> Choice:
    return Choice.BOTH_BAD if set(labels) == {Choice.BOTH_BAD} else Choice.TIE

"""Agreement of judges and reviewers within each category and each pair of candidates, aspects pooled."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.coding import MISSING, IntArray
from evaluations.stats.decisions.agreement_credits import JudgeCredits, judge_credits
from evaluations.stats.decisions.contrasts import contrast, difference_with_interval, share_with_interval
from evaluations.stats.decisions.judges import aspect_reviewers, list_asked_judges
from evaluations.stats.decisions.results import NO_TWO_REVIEWS
from evaluations.stats.estimates import Estimate
from evaluations.stats.items import Items

MOST_GROUPS: Final = 30


@dataclass(frozen=True)
class GroupAgreement:
    """Agreement in one group of comparisons, in half credits. ``name``: a category, or candidates A and B.

    ``n``: comparisons with two reviews or more that the judge answered or failed on; other numbers count aspects.
    """

    name: tuple[str, ...]
    n: int
    judge: Estimate
    reviewers: Estimate
    difference: Estimate


@dataclass(frozen=True)
class AgreementBreakdown:
    """The groups with most comparisons first; ``left_out``: how many further groups there are."""

    groups: tuple[GroupAgreement, ...]
    left_out: int


@dataclass(frozen=True)
class AgreementBreakdowns:
    by_category: AgreementBreakdown
    by_pair: AgreementBreakdown


def break_down_agreement(materials: Mapping[str, AspectMaterial], items: Items) -> dict[str, AgreementBreakdowns]:
    """By judge name; without those that have no comparison with two reviews."""
    by_judge: dict[str, list[JudgeCredits]] = {}
    for material in materials.values():
        reviewers = aspect_reviewers(material).credits
        for judge in list_asked_judges(material):
            by_judge.setdefault(judge.name, []).append(judge_credits(judge.consolidated, reviewers))
    categories = items.category.astype(np.int64)
    pairs = items.candidate_a.astype(np.int64) * len(items.candidates) + items.candidate_b
    return {
        name: AgreementBreakdowns(
            by_category=break_down(aspects, categories, items, lambda key: (items.categories[key],)),
            by_pair=break_down(aspects, pairs, items, lambda key: pair_names(items, key)),
        )
        for name, aspects in by_judge.items()
        if any(of_judge.n for of_judge in aspects)
    }


def pair_names(items: Items, key: int) -> tuple[str, ...]:
    a, b = divmod(key, len(items.candidates))
    return items.candidates[a], items.candidates[b]


def break_down(
    aspects: Sequence[JudgeCredits], group: IntArray, items: Items, name: Callable[[int], tuple[str, ...]]
) -> AgreementBreakdown:
    """``group``: of every comparison, MISSING outside. ``name``: of a group."""
    item = np.concatenate([of_judge.item for of_judge in aspects])
    of_entry = group[item]
    comparisons = np.unique(item)
    keys, sizes = np.unique(group[comparisons], return_counts=True)
    counted = np.flatnonzero(keys != MISSING)
    largest = counted[np.argsort(-sizes[counted], kind="stable")][:MOST_GROUPS]
    judge, reviewers = (np.concatenate(parts) for parts in zip(*((a.judge, a.reviewer) for a in aspects), strict=True))
    cluster = items.cluster[item]
    groups = []
    for position in largest.tolist():
        inside = of_entry == keys[position]
        lead = contrast(judge[inside] - reviewers[inside], cluster[inside])
        groups.append(
            GroupAgreement(
                name=name(int(keys[position])),
                n=int(sizes[position]),
                judge=share_with_interval(contrast(judge[inside], cluster[inside]), NO_TWO_REVIEWS),
                reviewers=share_with_interval(contrast(reviewers[inside], cluster[inside]), NO_TWO_REVIEWS),
                difference=difference_with_interval(lead, NO_TWO_REVIEWS),
            )
        )
    return AgreementBreakdown(tuple(groups), max(len(counted) - MOST_GROUPS, 0))

"""Reviewers whose verdicts are copies of each other's."""

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import bessel_factor
from evaluations.stats.estimates import Estimate
from evaluations.stats.phrases import join_words
from evaluations.stats.reviewer_flags import FlagKind, NotChecked, ReviewerFlag, format_percent_reached
from evaluations.stats.reviewer_pairs import ReviewerPairs
from evaluations.stats.significance import Z_975

MIN_COMPARED: Final = 50  # shared verdicts of a pair
IDENTICAL: Final = 0.97
ELSEWHERE: Final = 0.90
BEYOND_CHANCE: Final = 3.0  # standard errors between the shares of copies and of the next pair
NO_OTHER_PAIR: Final = (
    f"Copies are found by comparison with other pairs of reviewers, and none shares {MIN_COMPARED} verdicts."
)
NO_CI: Final = "No CI is computed for this share."


@dataclass(frozen=True)
class CopyGroups:
    """Reviewers linked by identical verdicts. ``group``: of each reviewer, the lowest number among its members.

    Three copies make three identical pairs, so groups are compared with the pairs that are in none.
    """

    pairs: ReviewerPairs
    group: IntArray

    @cached_property
    def members(self) -> list[IntArray]:
        """The reviewers of each group of two or more."""
        groups = [np.flatnonzero(self.group == first) for first in np.unique(self.group)]
        return [group for group in groups if len(group) > 1]

    @cached_property
    def is_outside(self) -> BoolArray:
        """Whether each pair has MIN_COMPARED shared verdicts and a kappa, and is not within a group."""
        return np.asarray(can_be_compared(self.pairs) & (self.group[self.pairs.low] != self.group[self.pairs.high]))

    @cached_property
    def next_pair(self) -> int:
        """The pair outside the groups with the highest share of identical verdicts."""
        return highest_pair(self.pairs.identical, self.is_outside)

    def lowest_pair(self, members: IntArray) -> int:
        """The pair of a group with the lowest share of identical verdicts."""
        within = can_be_compared(self.pairs) & np.isin(self.pairs.low, members) & np.isin(self.pairs.high, members)
        return highest_pair(-self.pairs.identical, within)


def highest_pair(values: FloatArray, selected: BoolArray) -> int:
    return int(np.argmax(np.where(selected & np.isfinite(values), values, -np.inf)))


def can_be_compared(pairs: ReviewerPairs) -> BoolArray:
    """Whether each pair shares MIN_COMPARED verdicts; two with one choice throughout are identical without copying."""
    return np.asarray((pairs.n >= MIN_COMPARED) & pairs.has_kappa)


def copy_groups(pairs: ReviewerPairs) -> CopyGroups:
    """Reviewers linked by identical verdicts."""
    is_linked = can_be_compared(pairs) & (pairs.identical >= IDENTICAL)
    low, high = pairs.low[is_linked], pairs.high[is_linked]
    group = np.arange(pairs.reviewers)
    while (group[low] != group[high]).any():
        lowest = np.minimum(group[low], group[high])
        np.minimum.at(group, low, lowest)
        np.minimum.at(group, high, lowest)
    return CopyGroups(pairs, group)


def find_copies(groups: CopyGroups, names: tuple[str, ...]) -> tuple[list[IntArray], list[ReviewerFlag]]:
    """The groups of copies by reviewer number, with a flag for each. ``names``: of each reviewer number."""
    if not groups.members or why_not_comparable(groups) is not None:
        return [], []
    copies = [members for members in groups.members if is_beyond_next_pair(groups, members)]
    return copies, [flag_copies(groups, members, names) for members in copies]


def why_not_comparable(groups: CopyGroups) -> str | None:
    """Why identical verdicts may be honest ones: nothing shows how often those of other pairs are."""
    pairs = groups.pairs
    if not groups.is_outside.any():
        return NO_OTHER_PAIR
    if pairs.identical[groups.next_pair] >= ELSEWHERE:
        return "Other reviewers agree nearly as often, so identical verdicts do not show a copy."
    best = highest_pair(pairs.kappa, groups.is_outside)
    if not is_above_chance(pairs, best):
        return "No other pair of reviewers agrees beyond chance, so identical verdicts do not show a copy."
    return None


def is_above_chance(pairs: ReviewerPairs, pair: int) -> bool:
    """Whether the 95% interval of a pair's kappa is above 0."""
    return bool(pairs.kappa[pair] > Z_975 * cluster_error(pairs.added_by_cluster(pair).kappa))


def is_beyond_next_pair(groups: CopyGroups, members: IntArray) -> bool:
    """Whether the lowest share of identical verdicts in a group exceeds the highest outside by more than chance."""
    lowest, highest = groups.lowest_pair(members), groups.next_pair
    added = groups.pairs.added_by_cluster(lowest).identical - groups.pairs.added_by_cluster(highest).identical
    difference = groups.pairs.identical[lowest] - groups.pairs.identical[highest]
    return bool(difference > BEYOND_CHANCE * cluster_error(added))


def cluster_error(added: FloatArray) -> float:
    """√(Σ added² · G ÷ (G − 1)) over the clusters that add anything (Binder 1983)."""
    return float(np.sqrt((added**2).sum() * bessel_factor(int(np.count_nonzero(added)))))


def flag_copies(groups: CopyGroups, members: IntArray, names: tuple[str, ...]) -> ReviewerFlag:
    own, others = (share_estimate_of(groups.pairs, pair) for pair in (groups.lowest_pair(members), groups.next_pair))
    assert own.value is not None
    assert others.value is not None
    share = format_percent_reached(own.value)
    counted = f"on {share} of {own.n:,}" if len(members) == 2 else f"on at least {share} of their"
    reviewers = tuple(sorted(names[member] for member in members.tolist()))
    sentence = (
        f"{join_words(reviewers)} gave the same verdict {counted} shared verdicts."
        f" No other pair exceeds {ceil(others.value * 100 - 1e-9)}%."
    )
    return ReviewerFlag(FlagKind.COPIES, reviewers, sentence, own, others)


def share_estimate_of(pairs: ReviewerPairs, pair: int) -> Estimate:
    return Estimate(float(pairs.identical[pair]), int(pairs.n[pair])).without_interval(NO_CI)


def why_copies_not_checked(groups: CopyGroups) -> list[NotChecked]:
    if not can_be_compared(groups.pairs).any():
        return [NotChecked((FlagKind.COPIES,), (), f"No two reviewers share {MIN_COMPARED} verdicts.")]
    why = why_not_comparable(groups) if groups.members else None
    return [] if why is None else [NotChecked((FlagKind.COPIES,), (), why)]


def keep_one(members: IntArray, shared: IntArray) -> IntArray:
    """The members of a group to leave out: all but the one with most shared verdicts, the first of equals."""
    kept = members[np.argmax(shared[members])]
    return np.asarray(members[members != kept])

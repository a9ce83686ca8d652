"""Screening of reviewers before any number: copies, random and inverted verdicts, one-sided and too fast reviewers.

The rule and its simulation: docs/decisions/0034.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.coding import IntArray
from evaluations.stats.estimates import Estimate
from evaluations.stats.phrases import count_phrase
from evaluations.stats.reviewer_agreement import (
    AgreementChecks,
    CheckedVerdicts,
    check_agreement,
    checked_verdicts,
    flag_agreement,
    names_at,
    note_on_two,
    why_agreement_not_checked,
)
from evaluations.stats.reviewer_copies import why_copies_not_checked
from evaluations.stats.reviewer_flags import AGREEMENT_KINDS, FlagKind, NotChecked, ReviewerFlag
from evaluations.stats.reviewer_habits import (
    by_position,
    flag_one_sided,
    flag_too_fast,
    median_times,
    why_positions_not_checked,
    why_times_not_checked,
)
from evaluations.stats.reviewer_pairs import MIN_SHARED
from evaluations.stats.shared_verdicts import count_shared_choices, gather_verdicts


@dataclass(frozen=True)
class ScreenedReviewer:
    """A reviewer with ``verdicts`` shared with somebody.

    ``kappa``: the mean kappa with the others who remained when this reviewer was flagged or, without a flag, at the
    end. ``others``: the mean kappa among these. n is the number of pairs of verdicts.
    """

    reviewer: str
    verdicts: int
    kappa: Estimate
    others: Estimate


@dataclass(frozen=True)
class ReviewerScreening:
    """The result of screening, all aspects pooled.

    ``reviewers``: those whose kappas were checked, by name; of copies the one that was kept. ``note``: what is open
    without a flag: that two reviewers disagree. ``not_checked``: what could not be checked, with the reason.
    """

    reviewers: tuple[ScreenedReviewer, ...]
    flags: tuple[ReviewerFlag, ...]
    note: str | None
    not_checked: tuple[NotChecked, ...]

    @property
    def has_flags(self) -> bool:
        return bool(self.flags)

    @property
    def flagged(self) -> tuple[str, ...]:
        """The names on any flag, sorted, all members of groups of copies among them."""
        return tuple(sorted({name for flag in self.flags for name in flag.reviewers}))


def screen_reviewers(materials: Mapping[str, AspectMaterial]) -> ReviewerScreening:
    """Screen the reviewers of all aspects together, by the votes that count.

    Reviewers, comparisons and clusters have the same numbers in all ``materials``.
    """
    everything = gather_verdicts(materials.values())
    names = next((material.names for material in materials.values()), ())
    choices = count_shared_choices(everything, len(names))
    checked = checked_verdicts(everything, names, choices)
    agreement = check_agreement(checked)
    positions = tuple(by_position(aspect) for aspect in checked.verdicts)
    times = median_times(materials.values())
    return ReviewerScreening(
        reviewers=tuple(screened_reviewers(agreement, checked)),
        flags=(
            *agreement.copies,
            *(flag_agreement(removal, checked.names) for removal in agreement.removals),
            *flag_one_sided(checked, positions),
            *flag_too_fast(times, names),
        ),
        note=note_on_two(agreement.remaining, checked.names),
        not_checked=(
            *why_copies_not_checked(agreement.groups),
            *why_few_shared(names, choices.sum(axis=1)),
            *why_agreement_not_checked(agreement, checked),
            *why_positions_not_checked(positions),
            *why_times_not_checked(times),
        ),
    )


def screened_reviewers(agreement: AgreementChecks, checked: CheckedVerdicts) -> Iterable[ScreenedReviewer]:
    when_removed = {removal.reviewer: removal.kappas for removal in agreement.removals}
    for reviewer in np.flatnonzero(agreement.start.counts).tolist():
        kappas = when_removed.get(reviewer, agreement.remaining)
        own, others = kappas.with_others.estimate(reviewer), kappas.among_others.estimate(reviewer)
        yield ScreenedReviewer(checked.names[reviewer], int(checked.shared[reviewer]), own, others)


def why_few_shared(names: Sequence[str], shared: IntArray) -> Iterable[NotChecked]:
    """Reviewers with too few shared verdicts for any check, by how many they have."""
    for count in np.unique(shared[shared < MIN_SHARED]).tolist():
        why = f"They share {count_phrase(count, 'verdict')} with other reviewers, and {MIN_SHARED} are needed."
        few = names_at(names, shared == count)
        yield NotChecked((FlagKind.COPIES, *AGREEMENT_KINDS, FlagKind.ONE_SIDED), few, why)

"""Screening of reviewers before any number: copies, random and inverted verdicts, one-sided and too fast reviewers.

The rule and its simulation: docs/decisions/0034.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.estimates import Estimate
from evaluations.stats.phrases import count_phrase
from evaluations.stats.reviewer_copies import copy_groups, find_copies, keep_one, why_copies_not_checked
from evaluations.stats.reviewer_flags import (
    AGREEMENT_KINDS,
    FlagKind,
    NotChecked,
    ReviewerFlag,
    format_kappa,
    format_kappa_estimate,
)
from evaluations.stats.reviewer_habits import (
    by_position,
    flag_one_sided,
    flag_too_fast,
    median_times,
    why_positions_not_checked,
    why_times_not_checked,
)
from evaluations.stats.reviewer_kappas import RemainingKappas, kappas_of_all
from evaluations.stats.reviewer_pairs import MIN_SHARED, pair_reviewers
from evaluations.stats.shared_verdicts import count_shared_choices, gather_verdicts, verdicts_of

MIN_CLUSTERS: Final = 10  # effective ones, of a reviewer's shared verdicts
MIN_VARIED: Final = 10  # verdicts other than the most frequent choice; with fewer, errors of kappa are too small
# Standard errors below the mean kappa among the others, above a reviewer's, and between the two: by simulation.
OTHERS_ERRORS: Final = 1.0
OWN_ERRORS: Final = 1.0
BETWEEN_ERRORS: Final = 2.9
INVERTED: Final = 1 / 4  # of the mean kappa among the others
LOW_KAPPA: Final = 0.2  # two reviewers disagree where the whole interval of their kappa is below
TOO_FEW_REVIEWERS: Final = f"Agreement is checked among three or more reviewers who share {MIN_SHARED} verdicts."

NO_KAPPA: Final = f"With no other reviewer do they share {MIN_SHARED} verdicts in which both make more than one choice."
FEW_CLUSTERS: Final = f"Their shared verdicts are in too few clusters ({MIN_CLUSTERS} effective ones are needed)."
FEW_VARIED: Final = f"Fewer than {MIN_VARIED} of their verdicts differ from the choice they make most often."
NO_OTHER_PAIRS: Final = f"The other reviewers do not share {MIN_SHARED} verdicts with each other."


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


@dataclass(frozen=True)
class Removal:
    """A reviewer who is flagged for agreement, with the kappas that remained until then."""

    reviewer: int
    kind: FlagKind
    kappas: RemainingKappas


def screen_reviewers(materials: Mapping[str, AspectMaterial]) -> ReviewerScreening:
    """Screen the reviewers of all aspects together, by the votes that count.

    Reviewers, comparisons and clusters have the same numbers in all ``materials``.
    """
    everything = gather_verdicts(materials.values())
    all_names = next((material.names for material in materials.values()), ())
    choices = count_shared_choices(everything, len(all_names))
    shared = choices.sum(axis=1)
    is_active = shared >= MIN_SHARED
    names, verdicts = names_at(all_names, is_active), verdicts_of(everything, is_active)
    pairs = pair_reviewers(verdicts, len(names))
    groups = copy_groups(pairs)
    copies, copy_flags = find_copies(groups, names)
    kappas = kappas_of_all(pairs)
    left_out = [reviewer for members in copies for reviewer in keep_one(members, shared[is_active]).tolist()]
    for reviewer in left_out:
        kappas = kappas.without(reviewer)
    is_varied = (shared - choices.max(axis=1, initial=0))[is_active] >= MIN_VARIED
    removals, remaining = remove_worst_first(kappas, is_varied)
    positions = [by_position(aspect) for aspect in verdicts]
    times = median_times(materials.values())
    return ReviewerScreening(
        reviewers=tuple(screened_reviewers(kappas, removals, remaining, names, shared[is_active])),
        flags=(
            *copy_flags,
            *(flag_agreement(removal, names) for removal in removals),
            *flag_one_sided(verdicts, positions, names),
            *flag_too_fast(times, all_names),
        ),
        note=note_on_two(remaining, names),
        not_checked=(
            *why_copies_not_checked(groups),
            *why_few_shared(all_names, shared),
            *why_agreement_not_checked(kappas, names, left_out, is_varied),
            *why_positions_not_checked(positions),
            *why_times_not_checked(times),
        ),
    )


def names_at(names: Sequence[str], selected: BoolArray) -> tuple[str, ...]:
    return tuple(name for name, is_selected in zip(names, selected.tolist(), strict=True) if is_selected)


def remove_worst_first(kappas: RemainingKappas, checked: BoolArray) -> tuple[list[Removal], RemainingKappas]:
    """Remove the flagged reviewer with the lowest mean kappa while three remain; those removed, and the rest.

    ``checked``: of each reviewer, whether a flag is possible.
    """
    removals = []
    while np.count_nonzero(kappas.counts) >= 3 and (is_flagged := checked & is_far_below_others(kappas)).any():
        worst = int(np.argmin(np.where(is_flagged, kappas.with_others.value, np.inf)))
        removals.append(Removal(worst, FlagKind.INVERTED if is_inverted(kappas, worst) else FlagKind.RANDOM, kappas))
        kappas = kappas.without(worst)
    return removals, kappas


def is_far_below_others(kappas: RemainingKappas) -> BoolArray:
    """Whether each reviewer's mean kappa is below half of that among the others, which is above 0."""
    own, others = kappas.with_others, kappas.among_others
    with np.errstate(invalid="ignore"):
        return np.asarray(
            has_enough_clusters(kappas)
            & (others.value - OTHERS_ERRORS * others.t_error > 0)
            & (own.value + OWN_ERRORS * at_least_typical(own.t_error) < others.value / 2)
            & (others.value - own.value > BETWEEN_ERRORS * at_least_typical(kappas.difference_t_error))
        )


def is_inverted(kappas: RemainingKappas, reviewer: int) -> bool:
    """Whether the interval of a mean kappa is below 0, and the kappa itself by a quarter of that among the others."""
    own, others = kappas.with_others, kappas.among_others
    is_below_zero = own.value[reviewer] + own.margin[reviewer] < 0
    return bool(is_below_zero and own.value[reviewer] < -INVERTED * others.value[reviewer])


def has_enough_clusters(kappas: RemainingKappas) -> BoolArray:
    return np.asarray((kappas.counts > 0) & (kappas.with_others.clusters >= MIN_CLUSTERS))


def at_least_typical(errors: FloatArray) -> FloatArray:
    """Errors, none below the median: where one choice is rare, a low kappa may seem exact by chance."""
    known = errors[np.isfinite(errors)]
    return np.maximum(errors, np.median(known)) if len(known) else errors


def flag_agreement(removal: Removal, names: Sequence[str]) -> ReviewerFlag:
    own = removal.kappas.with_others.estimate(removal.reviewer)
    others = removal.kappas.among_others.estimate(removal.reviewer)
    assert others.value is not None
    name = names[removal.reviewer]
    numbers = f"({format_kappa_estimate(own)}; the others among themselves {format_kappa(others.value)})"
    return ReviewerFlag(
        removal.kind, (name,), f"{name} {describe_agreement(removal.kind, own)} {numbers}.", own, others
    )


def describe_agreement(kind: FlagKind, own: Estimate) -> str:
    if kind is FlagKind.INVERTED:
        return "chooses the opposite of the others"
    if own.ci95 is not None and own.ci95[0] > 0:
        return "agrees with the others far less than they do among themselves"
    return "agrees with the others no better than chance"


def screened_reviewers(
    start: RemainingKappas,
    removals: Sequence[Removal],
    remaining: RemainingKappas,
    names: Sequence[str],
    shared: IntArray,
) -> Iterable[ScreenedReviewer]:
    when_removed = {removal.reviewer: removal.kappas for removal in removals}
    for reviewer in np.flatnonzero(start.counts).tolist():
        kappas = when_removed.get(reviewer, remaining)
        own, others = kappas.with_others.estimate(reviewer), kappas.among_others.estimate(reviewer)
        yield ScreenedReviewer(names[reviewer], int(shared[reviewer]), own, others)


def note_on_two(remaining: RemainingKappas, names: Sequence[str]) -> str | None:
    """What is said where two reviewers are left and their kappa is low; None elsewhere."""
    two = np.flatnonzero(remaining.counts)
    if len(two) != 2 or not has_enough_clusters(remaining).any():
        return None
    kappa = remaining.with_others.estimate(int(two[0]))
    if kappa.ci95 is None or kappa.ci95[1] >= LOW_KAPPA:
        return None
    one, other = sorted(names[reviewer] for reviewer in two.tolist())
    return f"{one} and {other} disagree ({format_kappa_estimate(kappa)}), and nobody can tell who is right."


def why_few_shared(names: Sequence[str], shared: IntArray) -> Iterable[NotChecked]:
    """Reviewers with too few shared verdicts for any check, by how many they have."""
    for count in np.unique(shared[shared < MIN_SHARED]).tolist():
        why = f"They share {count_phrase(count, 'verdict')} with other reviewers, and {MIN_SHARED} are needed."
        few = names_at(names, shared == count)
        yield NotChecked((FlagKind.COPIES, *AGREEMENT_KINDS, FlagKind.ONE_SIDED), few, why)


def why_agreement_not_checked(
    start: RemainingKappas, names: Sequence[str], left_out: Sequence[int], is_varied: BoolArray
) -> Iterable[NotChecked]:
    """Reviewers whose agreement could not be checked, copies aside, and all of them where fewer than three remain."""
    has_kappa = start.counts > 0
    has_kappa_or_copy = has_kappa.copy()
    has_kappa_or_copy[list(left_out)] = True
    if not has_kappa_or_copy.all():
        yield NotChecked(AGREEMENT_KINDS, names_at(names, ~has_kappa_or_copy), NO_KAPPA)
    if np.count_nonzero(has_kappa) < 3:
        yield NotChecked(AGREEMENT_KINDS, (), TOO_FEW_REVIEWERS)
        return
    if (few := has_kappa & ~has_enough_clusters(start)).any():
        yield NotChecked(AGREEMENT_KINDS, names_at(names, few), FEW_CLUSTERS)
    if (uniform := has_kappa & ~is_varied).any():
        yield NotChecked(AGREEMENT_KINDS, names_at(names, uniform), FEW_VARIED)
    if (alone := has_kappa & np.isnan(start.among_others.value)).any():
        yield NotChecked(AGREEMENT_KINDS, names_at(names, alone), NO_OTHER_PAIRS)

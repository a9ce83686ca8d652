"""Agreement of each reviewer with the others: copies, inverted verdicts and verdicts by chance."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.estimates import Estimate
from evaluations.stats.reviewer_copies import CopyGroups, copy_groups, find_copies, keep_one
from evaluations.stats.reviewer_flags import (
    AGREEMENT_KINDS,
    FlagKind,
    NotChecked,
    ReviewerFlag,
    format_kappa,
    format_kappa_estimate,
)
from evaluations.stats.reviewer_kappas import RemainingKappas, kappas_of_all
from evaluations.stats.reviewer_pairs import MIN_SHARED, pair_reviewers
from evaluations.stats.shared_verdicts import AspectVerdicts, verdicts_of

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
class CheckedVerdicts:
    """The verdicts of reviewers who share MIN_SHARED. ``names``: of each reviewer number.

    ``choices``: how often each made each choice in shared verdicts, reviewers × choices.
    """

    verdicts: tuple[AspectVerdicts, ...]
    names: tuple[str, ...]
    choices: IntArray

    @property
    def shared(self) -> IntArray:
        """How many verdicts each reviewer shares with somebody."""
        return np.asarray(self.choices.sum(axis=1))

    @property
    def is_varied(self) -> BoolArray:
        """Whether each reviewer has MIN_VARIED verdicts other than the most frequent choice."""
        return np.asarray(self.shared - self.choices.max(axis=1, initial=0) >= MIN_VARIED)


@dataclass(frozen=True)
class Removal:
    """A reviewer who is flagged for agreement, with the kappas that remained until then."""

    reviewer: int
    kind: FlagKind
    kappas: RemainingKappas


@dataclass(frozen=True)
class AgreementChecks:
    """Copies, and the kappas of all but ``left_out`` copies from the start until all flagged reviewers are removed."""

    groups: CopyGroups
    copies: tuple[ReviewerFlag, ...]
    left_out: tuple[int, ...]
    start: RemainingKappas
    removals: tuple[Removal, ...]
    remaining: RemainingKappas


def checked_verdicts(
    verdicts: tuple[AspectVerdicts, ...], names: tuple[str, ...], choices: IntArray
) -> CheckedVerdicts:
    """``choices``: of all reviewers, as in `CheckedVerdicts`."""
    is_checked = choices.sum(axis=1) >= MIN_SHARED
    return CheckedVerdicts(verdicts_of(verdicts, is_checked), names_at(names, is_checked), choices[is_checked])


def names_at(names: Sequence[str], selected: BoolArray) -> tuple[str, ...]:
    return tuple(name for name, is_selected in zip(names, selected.tolist(), strict=True) if is_selected)


def check_agreement(checked: CheckedVerdicts) -> AgreementChecks:
    pairs = pair_reviewers(checked.verdicts, len(checked.names))
    groups = copy_groups(pairs)
    copies, flags = find_copies(groups, checked.names)
    left_out = tuple(reviewer for members in copies for reviewer in keep_one(members, checked.shared).tolist())
    start = kappas_of_all(pairs)
    for reviewer in left_out:
        start = start.without(reviewer)
    removals, remaining = remove_worst_first(start, checked.is_varied)
    return AgreementChecks(groups, tuple(flags), left_out, start, tuple(removals), remaining)


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


def why_agreement_not_checked(agreement: AgreementChecks, checked: CheckedVerdicts) -> Iterable[NotChecked]:
    """Reviewers whose agreement could not be checked, copies aside, and all of them where fewer than three remain."""
    start = agreement.start
    has_kappa = start.counts > 0
    is_left_out = np.isin(np.arange(len(has_kappa)), agreement.left_out)
    reasons = [(NO_KAPPA, ~has_kappa & ~is_left_out)]
    if np.count_nonzero(has_kappa) < 3:
        yield NotChecked(AGREEMENT_KINDS, (), TOO_FEW_REVIEWERS)
    else:
        reasons.append((FEW_CLUSTERS, has_kappa & ~has_enough_clusters(start)))
        reasons.append((FEW_VARIED, has_kappa & ~checked.is_varied))
        reasons.append((NO_OTHER_PAIRS, has_kappa & np.isnan(start.among_others.value)))
    for why, concerned in reasons:
        if concerned.any():
            yield NotChecked(AGREEMENT_KINDS, names_at(checked.names, concerned), why)

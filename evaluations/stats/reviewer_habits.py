"""Reviewers who choose one side or option nearly always, and reviewers who are too fast to have read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.cluster_totals import narrow_codes, number_clusters
from evaluations.stats.coding import MISSING, SWAPPED, B, FloatArray, IntArray
from evaluations.stats.confidence_intervals import bessel_factor, wilson_from_variance
from evaluations.stats.estimates import Estimate
from evaluations.stats.reviewer_agreement import CheckedVerdicts
from evaluations.stats.reviewer_flags import FlagKind, NotChecked, ReviewerFlag, format_percent_reached
from evaluations.stats.reviewer_pairs import MIN_SHARED
from evaluations.stats.shared_verdicts import AspectVerdicts, count_shared_choices, is_shared
from evaluations.stats.votes import group_positions

ALWAYS: Final = 0.95
OTHERS_BELOW: Final = 0.80
MIN_REVIEWS: Final = 20  # whose active time is known
TOO_FAST: Final = 1 / 5  # of the others' median time
NO_CI: Final = "No CI is computed for medians and for shares of others."
CHOICE_WORDS: Final = ("A", "B", "a tie", "both bad")
POSITION_WORDS: Final = ("the response shown first", "the response shown second")
NO_ORDERS: Final = "The order in which responses were shown is unknown, so positions are not checked."
NO_TIMES: Final = f"Fewer than two reviewers have {MIN_REVIEWS} reviews with a known active time."


@dataclass(frozen=True)
class OwnEntries:
    """Entries of one reviewer: whether each has the code in question, the share of others with it, and the cluster."""

    has_code: FloatArray
    others: FloatArray
    cluster: IntArray


def flag_one_sided(checked: CheckedVerdicts, positions: Sequence[AspectVerdicts]) -> list[ReviewerFlag]:
    """One flag for each reviewer who chooses one option, or one position, nearly always, unlike the others.

    ``positions``: the verdicts `by_position`.
    """
    flags = find_one_sided(checked, CHOICE_WORDS)
    flagged = {flag.reviewers for flag in flags}
    counts = count_shared_choices(positions, len(checked.names))
    of_position = find_one_sided(CheckedVerdicts(tuple(positions), checked.names, counts), POSITION_WORDS)
    return flags + [flag for flag in of_position if flag.reviewers not in flagged]


def by_position(aspect: AspectVerdicts) -> AspectVerdicts:
    """The verdicts as 0 for the response shown first and 1 for the other; MISSING for ties and unknown orders."""
    choice, shown = narrow_codes(aspect.choice), narrow_codes(aspect.shown)
    has_position = (choice >= 0) & (choice <= B) & (shown >= 0) & (shown <= SWAPPED)
    return AspectVerdicts(aspect.design, np.where(has_position, choice ^ shown, np.int8(MISSING)), shown)


def find_one_sided(checked: CheckedVerdicts, words: Sequence[str]) -> list[ReviewerFlag]:
    n = checked.shared[:, None]
    candidates = np.argwhere((n >= MIN_SHARED) & (checked.choices >= ALWAYS * n))
    flags = (flag_if_one_sided(checked, reviewer, code, words[code]) for reviewer, code in candidates.tolist())
    return [flag for flag in flags if flag is not None]


def flag_if_one_sided(checked: CheckedVerdicts, reviewer: int, code: int, choice_in_words: str) -> ReviewerFlag | None:
    parts = [own_entries(aspect, reviewer, code) for aspect in checked.verdicts]
    own = share_by_cluster(
        np.concatenate([part.has_code for part in parts]), np.concatenate([part.cluster for part in parts])
    )
    others = float(np.concatenate([part.others for part in parts]).mean())
    if others >= OTHERS_BELOW or own.value is None or own.ci95 is None or own.ci95[0] <= others:
        return None
    name = checked.names[reviewer]
    sentence = (
        f"{name} chose {choice_in_words} in {format_percent_reached(own.value)} of {own.n:,} verdicts."
        f" On the same ones, the others did in {others * 100:.0f}%."
    )
    of_others = Estimate(others, own.n).without_interval(NO_CI)
    return ReviewerFlag(FlagKind.ONE_SIDED, (name,), sentence, own, of_others)


def own_entries(aspect: AspectVerdicts, reviewer: int, code: int) -> OwnEntries:
    design = aspect.design
    own = np.flatnonzero((design.rater == reviewer) & is_shared(design, aspect.choice))
    has_code = (aspect.choice == code).astype(np.float64)
    with_code, with_any = np.bincount(design.unit, has_code), np.bincount(design.unit, aspect.choice != MISSING)
    unit = design.unit[own]
    others = (with_code[unit] - has_code[own]) / (with_any[unit] - 1)
    return OwnEntries(has_code[own], others, design.cluster[own])


def share_by_cluster(part: FloatArray, cluster: IntArray) -> Estimate:
    """The share of entries that are 1, with Wilson's interval by cluster."""
    number, clusters = Estimate(float(part.mean()), len(part)), number_clusters(cluster)
    assert number.value is not None
    added = clusters.total(part - number.value) / len(part)
    variance = float((added**2).sum()) * bessel_factor(clusters.count)
    return wilson_from_variance(number, clusters.count, variance, clusters.effective)


def why_positions_not_checked(positions: Iterable[AspectVerdicts]) -> list[NotChecked]:
    if any((aspect.choice != MISSING).any() for aspect in positions):
        return []
    return [NotChecked((FlagKind.ONE_SIDED,), (), NO_ORDERS)]


@dataclass(frozen=True)
class MedianTimes:
    """The median active seconds of reviewers with MIN_REVIEWS timed reviews, and how many reviews each has."""

    reviewer: IntArray
    seconds: FloatArray
    reviews: IntArray


def median_times(materials: Iterable[AspectMaterial]) -> MedianTimes:
    rater, active_ms = timed_reviews(materials)
    groups = [(one, positions) for one, positions in group_positions(rater) if len(positions) >= MIN_REVIEWS]
    return MedianTimes(
        np.array([one for one, _ in groups], dtype=np.int64),
        np.array([np.median(active_ms[positions]) / 1000 for _, positions in groups], dtype=np.float64),
        np.array([len(positions) for _, positions in groups], dtype=np.int64),
    )


def timed_reviews(materials: Iterable[AspectMaterial]) -> tuple[IntArray, IntArray]:
    """The reviewer and the active time in ms of each review with a known time, which all its aspects share."""
    columns: list[tuple[IntArray, IntArray, IntArray]] = []
    for material in materials:
        own = material.people.item, material.people.rater, material.active_ms
        if not any(all(map(np.array_equal, own, known)) for known in columns):
            columns.append(own)
    if not columns:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    item, rater, active_ms = (np.concatenate(column) for column in zip(*columns, strict=True))
    timed = np.flatnonzero(active_ms > 0)
    if len(columns) > 1:
        key = item[timed].astype(np.int64) * (int(rater.max(initial=0)) + 1) + rater[timed]
        timed = timed[np.unique(key, return_index=True)[1]]
    return rater[timed], active_ms[timed]


def flag_too_fast(times: MedianTimes, names: Sequence[str]) -> list[ReviewerFlag]:
    """Reviewers whose median time is below a fifth of the median of the other reviewers' medians."""
    flags = []
    for place, (reviewer, own) in enumerate(zip(times.reviewer.tolist(), times.seconds.tolist(), strict=True)):
        others = np.delete(times.seconds, place)
        if len(others) and own < TOO_FAST * (typical := float(np.median(others))):
            reviews = int(times.reviews[place])
            sentence = (
                f"{names[reviewer]} took a median of {format_seconds(own)} for each of {reviews:,} reviews;"
                f" the others took {format_seconds(typical)}."
            )
            estimates = Estimate(own, reviews), Estimate(typical, int(times.reviews.sum()) - reviews)
            numbers = (estimate.without_interval(NO_CI) for estimate in estimates)
            flags.append(ReviewerFlag(FlagKind.TOO_FAST, (names[reviewer],), sentence, *numbers))
    return flags


def format_seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"


def why_times_not_checked(times: MedianTimes) -> list[NotChecked]:
    return [] if len(times.reviewer) > 1 else [NotChecked((FlagKind.TOO_FAST,), (), NO_TIMES)]

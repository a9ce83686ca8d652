"""Comparisons by filter, with tags, saved filters."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Count, QuerySet

from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import ComparisonFilter
from evaluations.models.comparison_filter import (
    ComparisonRange,
    FilterCondition,
    find_few_matches,
    indexed_conditions,
    unindexed_conditions,
)
from evaluations.models.comparisons import Comparison, SavedFilter, Tag
from evaluations.models.evaluations import Evaluation
from evaluations.models.selection import SMALL_REPORT_COMPARISONS, list_finished_comparisons
from evaluations.models.users import User
from evaluations.visibility import record_disclosure

FIRST_BLOCK: Final = 4_000

MAX_BLOCK: Final = 128_000

SEARCH_SECONDS: Final = 0.25  # seconds

COUNT_SECONDS: Final = 5.0

FEW_LEFT: Final = 300


@dataclass(frozen=True)
class FoundComparisons:
    """Comparisons in their order. ``continues_after`` is the id to continue after, or None at the end."""

    ids: list[int]
    continues_after: int | None
    is_whole: bool = True


def find_comparisons(
    evaluation: Evaluation,
    wanted: Sequence[ComparisonFilter],
    *,
    after: int = 0,
    size: int = 50,
    backwards: bool = False,
    seconds: float = SEARCH_SECONDS,
) -> FoundComparisons:
    """The next comparisons that every filter means, by id; ``backwards`` those before ``after``, nearest first.

    Where one part of a filter means few comparisons, the rest is asked of these. Else piece by piece, each longer
    than the last: what says something of comparisons is looked up within a piece alone, so that two filters that
    each find much and together nothing cost no more than both, one after the other. Where so many seconds are over
    it says how far it came.
    """
    quick = [condition for one in wanted for condition in indexed_conditions(evaluation, one)]
    slow = [condition for one in wanted for condition in unindexed_conditions(evaluation, one)]
    rows = list_finished_comparisons(evaluation)
    if not (quick or slow):
        ids = list(order_ids(rows, after or None, None, backwards)[: size + 1])
        return FoundComparisons(ids[:size], ids[size - 1] if len(ids) > size else None)
    few = next((those for one in wanted if (those := find_few_matches(evaluation, one)) is not None), None)
    if few is not None:
        return find_among_few(rows, few, (*quick, *slow), after or None, size, backwards)
    until, found, place, length = time.monotonic() + seconds, list[int](), after or None, FIRST_BLOCK
    while True:
        began = time.monotonic()
        end = find_block_end(evaluation, place, length, backwards)
        among = (
            ComparisonRange(None if end is None else end - 1, place and place - 1)
            if backwards
            else ComparisonRange(place, end)
        )
        piece = filter_block(rows, among, quick, slow)
        found += order_ids(piece, None, None, backwards)[: size + 1 - len(found)]
        if len(found) > size:
            return FoundComparisons(found[:size], found[size - 1])
        if end is None:
            return FoundComparisons(found, None)
        place, ended = end, time.monotonic()
        if ended > until:
            return FoundComparisons(found, place, is_whole=False)
        length = next_block_length(length, ended - began, until - ended)


def next_block_length(length: int, took: float, left: float) -> int:
    """The length of the next block, so that it takes no longer than the time left."""
    in_time = int(length * left / took) if took > 0 else MAX_BLOCK
    return max(FIRST_BLOCK, min(length * 4, MAX_BLOCK, in_time))


def find_among_few(
    rows: "QuerySet[Comparison]",
    few: tuple[int, ...],
    conditions: Sequence[FilterCondition],
    place: int | None,
    size: int,
    backwards: bool,
) -> FoundComparisons:
    if not few:
        return FoundComparisons([], None)
    among = ComparisonRange(ids=few)
    matching = rows.filter(among.where("pk"), *(condition(among) for condition in conditions))
    ids = list(order_ids(matching, place, None, backwards)[: size + 1])
    return FoundComparisons(ids[:size], ids[size - 1] if len(ids) > size else None)


def filter_block(
    rows: "QuerySet[Comparison]",
    among: ComparisonRange,
    quick: Sequence[FilterCondition],
    slow: Sequence[FilterCondition],
) -> "QuerySet[Comparison]":
    """The comparisons of a block that match every condition; slow conditions only see what the quick ones leave."""
    piece = rows.filter(among.where("pk"), *(condition(among) for condition in quick))
    if quick and slow:
        left = tuple(piece.order_by("pk").values_list("pk", flat=True)[: FEW_LEFT + 1])
        if not left:
            return rows.none()
        if len(left) <= FEW_LEFT:
            those = ComparisonRange(ids=left)
            return rows.filter(those.where("pk"), *(condition(those) for condition in slow))
    return piece.filter(*(condition(among) for condition in slow))


def find_comparison_ids(evaluation: Evaluation, wanted: Sequence[ComparisonFilter], most: int) -> list[int]:
    """The ids of all matching comparisons, cut off one beyond ``most``."""
    found, place = list[int](), 0
    while len(found) <= most:
        more = find_comparisons(evaluation, wanted, after=place, size=most + 1 - len(found), seconds=COUNT_SECONDS)
        found += more.ids
        if more.continues_after is None:
            break
        place = more.continues_after
    return found


def order_ids(
    rows: "QuerySet[Comparison]", after: int | None, last: int | None, backwards: bool
) -> "QuerySet[Comparison, int]":
    if after is not None:
        rows = rows.filter(**{"pk__lt" if backwards else "pk__gt": after})
    return rows.order_by("-pk" if backwards else "pk").values_list("pk", flat=True)


def find_block_end(evaluation: Evaluation, place: int | None, length: int, backwards: bool) -> int | None:
    """The id of the last comparison of a block, or None if the rest is shorter."""
    every = order_ids(Comparison.all_rows.filter(evaluation=evaluation), place, None, backwards)
    return every[length - 1 : length].first()


SMALL_SEARCH_SECONDS: Final = 1.0  # seconds


def find_excluding_filters(evaluation: Evaluation, wanted: Sequence[ComparisonFilter]) -> list[str]:
    """In words, each part of the filter without which something would be found."""
    parts = [part for one in wanted for part in one.parts()]
    if len(parts) < 2:
        return []
    found = []
    for part in parts:
        others = [one for one in parts if one is not part]
        if find_comparisons(evaluation, others, size=1, seconds=0.02).ids:
            found.append(part.in_words())
    return found


def reveal_found_comparisons(
    user: User,
    evaluation: Evaluation,
    wanted: Sequence[ComparisonFilter],
    *,
    after: int = 0,
    size: int = 50,
    backwards: bool = False,
) -> FoundComparisons:
    """The next comparisons that every filter means.

    Where a filter is by the choices of others, this person now counts as having seen what others chose on them.
    """
    found = find_comparisons(evaluation, wanted, after=after, size=size, backwards=backwards)
    if any(one.reveals_choices for one in wanted):
        told_apart = list_if_few_distinguishable(evaluation, wanted) or select_sides(found.ids)
        record_disclosure(user, evaluation, told_apart)  # a saved filter may be by judges that are shown to nobody
    return found


def list_if_few_distinguishable(evaluation: Evaluation, wanted: Sequence[ComparisonFilter]) -> list[Comparison]:
    """Of few comparisons, those that a filter by the choices of others leaves out are told apart, too.

    All that the filter means without those choices; none where these are many. Where they cannot all be found in
    time, the few that were.
    """
    found = find_comparisons(
        evaluation,
        [one.without_choices() for one in wanted],
        size=SMALL_REPORT_COMPARISONS,
        seconds=SMALL_SEARCH_SECONDS,
    )
    if found.is_whole and found.continues_after is not None:
        return []
    return select_sides(found.ids)


def select_sides(ids: Sequence[int]) -> list[Comparison]:
    """These comparisons with the ids of their responses alone."""
    return list(Comparison.objects.filter(pk__in=ids).only("evaluation", "response_a", "response_b"))


MAX_NAMED_FILTERS = 8


def get_saved_filter(evaluation: Evaluation, name: str) -> SavedFilter:
    """The saved filter with this name. Raises InputRefused with the known names."""
    found = SavedFilter.objects.filter(evaluation=evaluation, name=name).first()
    if found is None:
        known = list(SavedFilter.objects.filter(evaluation=evaluation).order_by("name").values_list("name", flat=True))
        there = ", ".join(f"“{one}”" for one in known[:MAX_NAMED_FILTERS])
        more = " and others" if len(known) > MAX_NAMED_FILTERS else ""
        hint = f"there are {there}{more}" if known else "none is saved yet; save one on the page of comparisons"
        raise InputRefused(f"There is no saved filter “{name}” here: {hint}.")
    return found


def list_tags_with_counts(evaluation: Evaluation) -> "QuerySet[Tag]":
    """All tags by name, with how many comparisons each has."""
    return Tag.objects.filter(evaluation=evaluation).annotate(number=Count("taggings")).order_by("name")

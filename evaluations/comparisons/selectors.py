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

SEARCH_SECONDS: Final = 0.25

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
    filters: Sequence[ComparisonFilter],
    *,
    after: int = 0,
    size: int = 50,
    backwards: bool = False,
    seconds: float = SEARCH_SECONDS,
) -> FoundComparisons:
    """The next comparisons that match every filter, by id; ``backwards`` those before ``after``, nearest first.

    If one part of a filter matches few comparisons, only these are checked. Otherwise the search goes block by block,
    each longer than the last, so that two filters with many matches and none in common cost no more than both one
    after the other. When the time is over, the result says how far the search came.
    """
    quick = [condition for part in filters for condition in indexed_conditions(evaluation, part)]
    slow = [condition for part in filters for condition in unindexed_conditions(evaluation, part)]
    rows = list_finished_comparisons(evaluation)
    if not (quick or slow):
        ids = list(order_ids(rows, after or None, backwards)[: size + 1])
        return FoundComparisons(ids[:size], ids[size - 1] if len(ids) > size else None)
    few = next((match for part in filters if (match := find_few_matches(evaluation, part)) is not None), None)
    if few is not None:
        return find_among_few(rows, few, (*quick, *slow), after or None, size, backwards)
    until, ids, place, length = time.monotonic() + seconds, list[int](), after or None, FIRST_BLOCK
    while True:
        began = time.monotonic()
        end = find_block_end(evaluation, place, length, backwards)
        among = (
            ComparisonRange(None if end is None else end - 1, place and place - 1)
            if backwards
            else ComparisonRange(place, end)
        )
        piece = filter_block(rows, among, quick, slow)
        ids += order_ids(piece, None, backwards)[: size + 1 - len(ids)]
        if len(ids) > size:
            return FoundComparisons(ids[:size], ids[size - 1])
        if end is None:
            return FoundComparisons(ids, None)
        place, ended = end, time.monotonic()
        if ended > until:
            return FoundComparisons(ids, place, is_whole=False)
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
    ids = list(order_ids(matching, place, backwards)[: size + 1])
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
        remaining = tuple(piece.order_by("pk").values_list("pk", flat=True)[: FEW_LEFT + 1])
        if not remaining:
            return rows.none()
        if len(remaining) <= FEW_LEFT:
            few = ComparisonRange(ids=remaining)
            return rows.filter(few.where("pk"), *(condition(few) for condition in slow))
    return piece.filter(*(condition(among) for condition in slow))


def find_comparison_ids(evaluation: Evaluation, filters: Sequence[ComparisonFilter], most: int) -> list[int]:
    """The ids of all matching comparisons, cut off one beyond ``most``."""
    ids, place = list[int](), 0
    while len(ids) <= most:
        page = find_comparisons(evaluation, filters, after=place, size=most + 1 - len(ids), seconds=COUNT_SECONDS)
        ids += page.ids
        if page.continues_after is None:
            break
        place = page.continues_after
    return ids


def order_ids(rows: "QuerySet[Comparison]", after: int | None, backwards: bool) -> "QuerySet[Comparison, int]":
    if after is not None:
        rows = rows.filter(**{"pk__lt" if backwards else "pk__gt": after})
    return rows.order_by("-pk" if backwards else "pk").values_list("pk", flat=True)


def find_block_end(evaluation: Evaluation, place: int | None, length: int, backwards: bool) -> int | None:
    """The id of the last comparison of a block, or None if the rest is shorter."""
    ids = order_ids(Comparison.all_rows.filter(evaluation=evaluation), place, backwards)
    return ids[length - 1 : length].first()


SMALL_SEARCH_SECONDS: Final = 1.0


def find_excluding_filters(evaluation: Evaluation, filters: Sequence[ComparisonFilter]) -> list[str]:
    """In words, each part of the filter without which something would match."""
    parts = [part for comparison_filter in filters for part in comparison_filter.parts()]
    if len(parts) < 2:
        return []
    excluding = []
    for part in parts:
        others = [other for other in parts if other is not part]
        if find_comparisons(evaluation, others, size=1, seconds=0.02).ids:
            excluding.append(part.in_words())
    return excluding


def reveal_found_comparisons(
    user: User,
    evaluation: Evaluation,
    filters: Sequence[ComparisonFilter],
    *,
    after: int = 0,
    size: int = 50,
    backwards: bool = False,
) -> FoundComparisons:
    """The next comparisons that match every filter.

    If a filter is by the choices of others, the user now counts as having seen what others chose on them.
    """
    page = find_comparisons(evaluation, filters, after=after, size=size, backwards=backwards)
    if any(part.reveals_choices for part in filters):
        seen = list_if_few_distinguishable(evaluation, filters) or select_sides(page.ids)
        record_disclosure(user, evaluation, seen)  # a saved filter may be by judges that are shown to nobody
    return page


def list_if_few_distinguishable(evaluation: Evaluation, filters: Sequence[ComparisonFilter]) -> list[Comparison]:
    """All matches of the filter without the choices of others, if they are few: what it leaves out is revealed, too.

    None if they are many. If the time is too short to find all, those that were found.
    """
    without_choices = [part.without_choices() for part in filters]
    page = find_comparisons(evaluation, without_choices, size=SMALL_REPORT_COMPARISONS, seconds=SMALL_SEARCH_SECONDS)
    if page.is_whole and page.continues_after is not None:
        return []
    return select_sides(page.ids)


def select_sides(ids: Sequence[int]) -> list[Comparison]:
    """These comparisons with the ids of their responses alone."""
    return list(Comparison.objects.filter(pk__in=ids).only("evaluation", "response_a", "response_b"))


MAX_NAMED_FILTERS = 8


def get_saved_filter(evaluation: Evaluation, name: str) -> SavedFilter:
    """The saved filter with this name. Raises InputRefused with the known names."""
    saved = SavedFilter.objects.filter(evaluation=evaluation, name=name).first()
    if saved is None:
        names = list(SavedFilter.objects.filter(evaluation=evaluation).order_by("name").values_list("name", flat=True))
        first = ", ".join(f"“{other}”" for other in names[:MAX_NAMED_FILTERS])
        others = " and others" if len(names) > MAX_NAMED_FILTERS else ""
        hint = f"there are {first}{others}" if names else "none is saved yet; save one on the comparisons page"
        raise InputRefused(f"There is no saved filter “{name}” here: {hint}.")
    return saved


def list_tags_with_counts(evaluation: Evaluation) -> "QuerySet[Tag]":
    """All tags by name, with how many comparisons each has."""
    return Tag.objects.filter(evaluation=evaluation).annotate(number=Count("taggings")).order_by("name")

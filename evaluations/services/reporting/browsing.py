"""Looking through comparisons: which match, and how far people and judges have come with them."""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db import connection
from django.db.models import Count, Q, QuerySet

from evaluations.domain import FAILURE_STATES, OPEN_CALL_STATES, Filter, ImportState, RaterKind
from evaluations.models import (
    Call,
    Comparison,
    Evaluation,
    Import,
    Label,
    Query,
    Score,
    Verdict,
)
from evaluations.models.filtering import Among, Condition, few_that, quick_conditions, slow_conditions
from evaluations.services.importing.preferring import preferences

FIRST_PIECE: Final = 4_000
LONGEST_PIECE: Final = 128_000
PATIENCE: Final = 0.25  # seconds
COUNTING: Final = 5.0
FEW_LEFT: Final = 300


@dataclass(frozen=True)
class Progress:
    """How many people and judges gave verdicts on a comparison, and what judges still owe.

    ``labelled``: the aspects that people's votes or an adjudication label; ``split``: those that are open.
    """

    people: int = 0
    gold: int = 0
    judges: int = 0
    waiting: int = 0
    failed: int = 0
    labelled: int = 0
    split: int = 0


@dataclass(frozen=True)
class Found:
    """Comparisons in their order. ``goes_on``: past which id more may stand, looked through or not; None at the end."""

    ids: list[int]
    goes_on: int | None
    is_whole: bool = True


def find(
    evaluation: Evaluation,
    wanted: Sequence[Filter],
    *,
    after: int = 0,
    size: int = 50,
    backwards: bool = False,
    seconds: float = PATIENCE,
) -> Found:
    """The next comparisons that every filter means, by id; ``backwards`` those before ``after``, nearest first.

    Where one part of a filter means few comparisons, the rest is asked of these. Else piece by piece, each longer
    than the last: what says something of comparisons is looked up within a piece alone, so that two filters that
    each find much and together nothing cost no more than both, one after the other. Where so many seconds are over
    it says how far it came.
    """
    quick = [condition for one in wanted for condition in quick_conditions(evaluation, one)]
    slow = [condition for one in wanted for condition in slow_conditions(evaluation, one)]
    rows = shown_rows(evaluation)
    if not (quick or slow):
        ids = list(in_order(rows, after or None, None, backwards)[: size + 1])
        return Found(ids[:size], ids[size - 1] if len(ids) > size else None)
    few = next((those for one in wanted if (those := few_that(evaluation, one)) is not None), None)
    if few is not None:
        return of_few(rows, few, (*quick, *slow), after or None, size, backwards)
    until, found, place, length = time.monotonic() + seconds, list[int](), after or None, FIRST_PIECE
    while True:
        began = time.monotonic()
        end = end_of_piece(evaluation, place, length, backwards)
        among = Among(None if end is None else end - 1, place and place - 1) if backwards else Among(place, end)
        piece = in_piece(rows, among, quick, slow)
        found += in_order(piece, None, None, backwards)[: size + 1 - len(found)]
        if len(found) > size:
            return Found(found[:size], found[size - 1])
        if end is None:
            return Found(found, None)
        place, ended = end, time.monotonic()
        if ended > until:
            return Found(found, place, is_whole=False)
        length = next_length(length, ended - began, until - ended)


def next_length(length: int, took: float, left: float) -> int:
    """Of the next piece, after one of so many comparisons that took so long: it should not take longer than is left."""
    in_time = int(length * left / took) if took > 0 else LONGEST_PIECE
    return max(FIRST_PIECE, min(length * 4, LONGEST_PIECE, in_time))


def of_few(
    rows: "QuerySet[Comparison]",
    few: tuple[int, ...],
    conditions: Sequence[Condition],
    place: int | None,
    size: int,
    backwards: bool,
) -> Found:
    """Those of a few that every condition means."""
    if not few:
        return Found([], None)
    among = Among(ids=few)
    meant = rows.filter(among.where("pk"), *(condition(among) for condition in conditions))
    ids = list(in_order(meant, place, None, backwards)[: size + 1])
    return Found(ids[:size], ids[size - 1] if len(ids) > size else None)


def in_piece(
    rows: "QuerySet[Comparison]", among: Among, quick: Sequence[Condition], slow: Sequence[Condition]
) -> "QuerySet[Comparison]":
    """Those of a piece that every condition means. Where the quick ones leave few, the slow ones are asked of these."""
    piece = rows.filter(among.where("pk"), *(condition(among) for condition in quick))
    if quick and slow:
        left = tuple(piece.order_by("pk").values_list("pk", flat=True)[: FEW_LEFT + 1])
        if not left:
            return rows.none()
        if len(left) <= FEW_LEFT:
            those = Among(ids=left)
            return rows.filter(those.where("pk"), *(condition(those) for condition in slow))
    return piece.filter(*(condition(among) for condition in slow))


def ids_of(evaluation: Evaluation, wanted: Sequence[Filter], most: int) -> list[int]:
    """All that every filter means, but no more than one beyond so many."""
    found, place = list[int](), 0
    while len(found) <= most:
        more = find(evaluation, wanted, after=place, size=most + 1 - len(found), seconds=COUNTING)
        found += more.ids
        if more.goes_on is None:
            break
        place = more.goes_on
    return found


def shown_rows(evaluation: Evaluation) -> "QuerySet[Comparison]":
    """Looking up the import of each would cost more than everything else: those that are not done are few."""
    rows = Comparison.all_rows.filter(evaluation=evaluation)
    hidden = unfinished(evaluation)
    return rows.filter(Q(source_import=None) | ~Q(source_import__in=hidden)) if hidden else rows


def in_order(
    rows: "QuerySet[Comparison]", after: int | None, last: int | None, backwards: bool
) -> "QuerySet[Comparison, int]":
    if after is not None:
        rows = rows.filter(**{"pk__lt" if backwards else "pk__gt": after})
    return rows.order_by("-pk" if backwards else "pk").values_list("pk", flat=True)


def end_of_piece(evaluation: Evaluation, place: int | None, length: int, backwards: bool) -> int | None:
    """The id of the last of so many comparisons; None where there are no more than these."""
    every = in_order(Comparison.all_rows.filter(evaluation=evaluation), place, None, backwards)
    return every[length - 1 : length].first()


def categories(evaluation: Evaluation, limit: int | None = 200) -> list[str]:
    """The categories of an evaluation's queries, in order; the first ones where there are very many. None: all."""
    queries = Query.all_rows.filter(evaluation=evaluation, category__gt="")
    # Looking up the import of each query would take the answer from the index: 145 ms instead of 5 at 100,000.
    hidden = unfinished(evaluation)
    if hidden:
        queries = queries.exclude(source_import__in=hidden)
    elif limit is not None:
        with connection.cursor() as cursor:
            cursor.execute(FROM_ONE_TO_THE_NEXT, [evaluation.pk, evaluation.pk, limit])
            return [name for (name,) in cursor.fetchall()]
    return list(queries.order_by("category").values_list("category", flat=True).distinct()[:limit])


# PostgreSQL reads a whole index for what is distinct in it.
FROM_ONE_TO_THE_NEXT: Final = """
WITH RECURSIVE told (category) AS (
    SELECT MIN(category) FROM evaluations_query WHERE evaluation_id = %s AND category > ''
    UNION ALL
    SELECT (SELECT MIN(q.category) FROM evaluations_query q WHERE q.evaluation_id = %s AND q.category > told.category)
    FROM told WHERE told.category IS NOT NULL
)
SELECT category FROM told WHERE category IS NOT NULL LIMIT %s
"""


def unfinished(evaluation: Evaluation) -> list[int]:
    """The imports of which rows may be there that nobody must see: seldom any."""
    may_have_rows = Q(finished_at=None) | Q(state=ImportState.UNDOING)
    here = Import.objects.filter(may_have_rows, evaluation=evaluation)
    return list(here.exclude(state__in=(ImportState.DONE, ImportState.PREVIEWED)).values_list("pk", flat=True))


def progress(comparison_ids: Collection[int]) -> Mapping[int, Progress]:
    """By comparison, in the same few queries however many they are."""
    told: dict[int, Progress] = defaultdict(Progress)
    given = Verdict.objects.filter(comparison__in=comparison_ids).values_list("comparison_id", "rater__kind")
    column = {RaterKind.HUMAN: "people", RaterKind.GOLD: "gold", RaterKind.JUDGE: "judges"}
    for comparison_id, kind, raters in given.annotate(Count("rater", distinct=True)):
        told[comparison_id] = replace(told[comparison_id], **{column[RaterKind(kind)]: raters})
    calls = Call.objects.filter(comparison__in=comparison_ids).values_list("comparison_id")
    counted = calls.annotate(
        waiting=Count("pk", filter=Q(state__in=OPEN_CALL_STATES)),
        failed=Count("pk", filter=Q(state__in=FAILURE_STATES)),
    )
    for comparison_id, waiting, failed in counted:
        told[comparison_id] = replace(told[comparison_id], waiting=waiting, failed=failed)
    kept = Label.objects.filter(comparison__in=comparison_ids).values_list("comparison_id")
    open_and_not = kept.annotate(labelled=Count("pk", filter=~Q(choice="")), split=Count("pk", filter=Q(choice="")))
    for comparison_id, labelled, split in open_and_not:
        told[comparison_id] = replace(told[comparison_id], labelled=labelled, split=split)
    return with_scores(told, comparison_ids)


def with_scores(told: dict[int, Progress], comparison_ids: Collection[int]) -> Mapping[int, Progress]:
    """The same with those that score: judges and whoever came with a file, where they scored both responses."""
    sides = responses_of(comparison_ids)
    responses = {response for pair in sides.values() for response in pair}
    calls = Call.objects.filter(response__in=responses).order_by().values_list("response_id")
    if not (calls.exists() or Score.objects.filter(response__in=responses).exists()):
        return told
    scored = scored_by(responses)
    open_or_failed = calls.annotate(
        waiting=Count("pk", filter=Q(state__in=OPEN_CALL_STATES)),
        failed=Count("pk", filter=Q(state__in=FAILURE_STATES)),
    )
    counts = {response: (waiting, failed) for response, waiting, failed in open_or_failed}
    in_files = scored_in_files(comparison_ids)
    for comparison_id, (a, b) in sides.items():
        one, other = counts.get(a, (0, 0)), counts.get(b, (0, 0))
        now = told[comparison_id]
        told[comparison_id] = replace(
            now,
            people=now.people + len(in_files[comparison_id, RaterKind.HUMAN]),
            gold=now.gold + len(in_files[comparison_id, RaterKind.GOLD]),
            judges=now.judges + len(scored[a] & scored[b]),
            waiting=now.waiting + one[0] + other[0],
            failed=now.failed + one[1] + other[1],
        )
    return told


def responses_of(comparison_ids: Collection[int]) -> dict[int, tuple[int, int]]:
    pairs = Comparison.all_rows.filter(pk__in=comparison_ids).values_list("pk", "response_a", "response_b")
    return {pk: (response_a, response_b) for pk, response_a, response_b in pairs}


def scored_by(responses: Collection[int]) -> Mapping[int, set[int]]:
    """Response → the raters of judges that scored it."""
    found: dict[int, set[int]] = defaultdict(set)
    scores = Score.objects.filter(response__in=responses, rater__kind=RaterKind.JUDGE).order_by()
    for response, rater in scores.values_list("response_id", "rater_id").distinct():
        found[response].add(rater)
    return found


def scored_in_files(comparison_ids: Collection[int]) -> Mapping[tuple[int, RaterKind], set[int]]:
    """Comparison and kind → the people, or gold, whose imported scores say something of it."""
    found: dict[tuple[int, RaterKind], set[int]] = defaultdict(set)
    for one in preferences(comparison_ids, (RaterKind.HUMAN, RaterKind.GOLD)):
        found[one.comparison, one.kind].add(one.rater)
    return found

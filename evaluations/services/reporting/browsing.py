"""Looking through comparisons: which match, and how far people and judges have come with them."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from django.db.models import Count, Q, QuerySet

from evaluations.domain import FAILURE_STATES, OPEN_CALL_STATES, ImportState, RaterKind
from evaluations.models import (
    Call,
    Candidate,
    Comparison,
    Evaluation,
    Import,
    Label,
    Query,
    Score,
    Verdict,
)
from evaluations.services.importing.preferring import preferences


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


def matching(
    comparisons: QuerySet[Comparison],
    *,
    text: str = "",
    category: str = "",
    candidate: Candidate | None = None,
    where: Q | None = None,
) -> QuerySet[Comparison]:
    """Those that every filter given lets through; ``where`` is any further ones as a condition."""
    if text:
        comparisons = comparisons.filter(query__text__icontains=text)
    if category:
        comparisons = comparisons.filter(query__category=category)
    if candidate is not None:
        comparisons = comparisons.filter(Q(response_a__candidate=candidate) | Q(response_b__candidate=candidate))
    return comparisons if where is None else comparisons.filter(where)


def has_failed_call(evaluation: Evaluation, states: Collection[str] = FAILURE_STATES) -> Q:
    """That a call on the comparison, or on one of its responses, ended in one of these states."""
    # By run and by import, each of which has an index; by judge every call would be looked at.
    asked = Call.all_rows.filter(run__evaluation=evaluation, state__in=states)
    imported = Call.objects.filter(source_import__evaluation=evaluation, state__in=states)
    of_responses = asked.filter(response__isnull=False).values("response")
    of_comparisons = Q(pk__in=asked.filter(comparison__isnull=False).values("comparison"))
    of_imported = Q(pk__in=imported.filter(comparison__isnull=False).values("comparison"))
    return of_comparisons | of_imported | Q(response_a__in=of_responses) | Q(response_b__in=of_responses)


def categories(evaluation: Evaluation, limit: int | None = 200) -> list[str]:
    """The categories of an evaluation's queries, in order; the first ones where there are very many. None: all."""
    queries = Query.all_rows.filter(evaluation=evaluation, category__gt="")
    # Looking up the import of each query would take the answer from the index: 145 ms instead of 5 at 100,000.
    unfinished = Import.objects.filter(evaluation=evaluation).exclude(state=ImportState.DONE)
    if hidden := list(unfinished.values_list("pk", flat=True)):
        queries = queries.exclude(source_import__in=hidden)
    return list(queries.order_by("category").values_list("category", flat=True).distinct()[:limit])


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
    scored = scored_by(responses)
    calls = Call.objects.filter(response__in=responses).order_by().values_list("response_id")
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

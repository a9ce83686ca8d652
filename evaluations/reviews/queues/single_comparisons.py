"""The single comparisons of an evaluation: one for each response that is in no pair, for reviews that score it."""

from collections.abc import Sequence
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain.rubrics import RubricKind
from evaluations.domain.texts import ComparisonOrigin
from evaluations.jobs.kinds import JobClaim
from evaluations.models.bulk import insert_many
from evaluations.models.comparisons import IS_SINGLE, Comparison, Query, Response, draw_random_order
from evaluations.models.evaluations import Evaluation
from evaluations.models.queues import Assignment, QueueItem, QueueSlot
from evaluations.models.transactions import pause_after_transaction
from evaluations.models.verdicts import Disclosure, Review

COMPARISONS_PER_TRANSACTION: Final = 1_000
QUERIES_PER_TRANSACTION: Final = 500
RESPONSE_COLUMNS: Final = ("pk", "query", "source_import", "candidate", "query__category")
SINGLE_COLUMNS: Final = (
    *("created_at", "evaluation_id", "query_id", "response_a_id", "response_b_id", "source_import_id"),
    *("candidate_a", "candidate_b", "category", "origin", "swapped", "random_order", "metadata", "resolution_count"),
)


def update_single_comparisons(evaluation: Evaluation, claim: JobClaim | None = None) -> None:
    """Remove those that nobody needs any longer and, where reviews ask for scores, create what is missing."""
    removed = delete_paired_singles(evaluation, claim)
    version = evaluation.review_rubric
    asks_for_scores = version is not None and version.rubric.kind == RubricKind.POINTWISE
    created = create_missing_singles(evaluation, claim) if asks_for_scores else 0
    if removed or created:
        Evaluation.objects.filter(pk=evaluation.pk).update(comparisons_changed_at=Now())


def create_missing_singles(evaluation: Evaluation, claim: JobClaim | None) -> int:
    """Create them query by query: to put all responses in order for each transaction would take ever longer."""
    created = after = 0
    singles = Comparison.all_rows.filter(IS_SINGLE, **of_outer("a"))
    missing = list_unpaired_responses(evaluation).exclude(Exists(singles)).order_by("query", "pk")
    queries = Query.objects.filter(evaluation=evaluation).order_by("pk").values_list("pk", flat=True)
    while block := list(queries.filter(pk__gt=after)[:QUERIES_PER_TRANSACTION]):
        if claim:
            claim.heartbeat_if_due(created)
        rows = missing.filter(query__gt=after, query__lte=block[-1]).values_list(*RESPONSE_COLUMNS)
        after = block[-1]
        if not rows.exists():
            continue
        with pause_after_transaction(), transaction.atomic():
            # Of two that create them at once the second sees what the first created.
            Evaluation.objects.select_for_update(no_key=True).get(pk=evaluation.pk)
            responses = list(rows)
            insert_single_comparisons(evaluation, responses)
        created += len(responses)
    return created


def insert_single_comparisons(
    evaluation: Evaluation, responses: Sequence[tuple[int, int, int | None, int, str]]
) -> None:
    now, metadata = timezone.now(), dict[str, object]()
    insert_many(
        Comparison,
        SINGLE_COLUMNS,
        [
            (
                *(now, evaluation.pk, query, pk, pk, imported, candidate, candidate, category),
                *(ComparisonOrigin.SINGLE.value, False, draw_random_order(), metadata, 0),
            )
            for pk, query, imported, candidate, category in responses
        ],
    )


def of_outer(side: str) -> dict[str, OuterRef]:
    return {f"response_{side}": OuterRef("pk")}


def list_unpaired_responses(evaluation: Evaluation) -> "QuerySet[Response]":
    """The responses that are in no comparison with another one."""
    responses: QuerySet[Response] = Response.objects.filter(query__evaluation=evaluation)
    pairs = Comparison.objects.all()
    return responses.exclude(Exists(pairs.filter(**of_outer("a")))).exclude(Exists(pairs.filter(**of_outer("b"))))


def delete_paired_singles(evaluation: Evaluation, claim: JobClaim | None) -> int:
    """Delete single comparisons whose response is in a pair by now, unless they were begun, assigned or queued."""
    pairs = Comparison.objects.all()
    is_paired = Q(
        Exists(pairs.filter(response_a=OuterRef("response_a")))
        | Exists(pairs.filter(response_b=OuterRef("response_a")))
    )
    in_use = (
        Exists(Review.all_rows.filter(comparison=OuterRef("pk"))),
        Exists(Assignment.objects.filter(item__comparison=OuterRef("pk"))),
        Exists(QueueSlot.objects.filter(item__comparison=OuterRef("pk"))),
        Exists(Disclosure.objects.filter(comparison=OuterRef("pk"))),
    )
    unused = Comparison.all_rows.filter(IS_SINGLE, is_paired, evaluation=evaluation)
    for condition in in_use:
        unused = unused.exclude(condition)
    deleted = 0
    while ids := list(unused.order_by("pk").values_list("pk", flat=True)[:COMPARISONS_PER_TRANSACTION]):
        if claim:
            claim.heartbeat_if_due(deleted)
        with pause_after_transaction(), transaction.atomic():
            QueueItem.objects.filter(comparison__in=ids).delete()
            Comparison.all_rows.filter(pk__in=ids).delete()
        deleted += len(ids)
    return deleted

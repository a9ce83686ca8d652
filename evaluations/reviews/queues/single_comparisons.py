"""The single comparisons of an evaluation: one for each response that is in no pair, for reviews that score it."""

from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from evaluations.domain.rubrics import RubricKind
from evaluations.domain.texts import ComparisonOrigin
from evaluations.jobs.kinds import JobClaim
from evaluations.models.comparisons import IS_SINGLE, Comparison, Response, draw_random_order
from evaluations.models.evaluations import Evaluation
from evaluations.models.queues import Assignment, QueueItem, QueueSlot
from evaluations.models.transactions import pause_after_transaction
from evaluations.models.verdicts import Disclosure, Review

COMPARISONS_PER_TRANSACTION: Final = 500
TEXTS: Final = (
    *("messages", "metadata", "query__messages", "query__text", "query__context", "query__reference"),
    "query__metadata",
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
    created = 0
    unpaired = list_unpaired_responses(evaluation).exclude(
        Exists(Comparison.all_rows.filter(IS_SINGLE, **of_outer("a")))
    )
    rows = unpaired.select_related("query", "candidate").defer(*TEXTS).order_by("pk")
    last = 0
    while responses := list(rows.filter(pk__gt=last)[:COMPARISONS_PER_TRANSACTION]):
        if claim:
            claim.heartbeat_if_due(created)
        with pause_after_transaction(), transaction.atomic():
            Comparison.all_rows.bulk_create(
                [build_single_comparison(evaluation, response) for response in responses], ignore_conflicts=True
            )
        created, last = created + len(responses), responses[-1].pk
    return created


def build_single_comparison(evaluation: Evaluation, response: Response) -> Comparison:
    return Comparison(
        evaluation=evaluation,
        query=response.query,
        response_a=response,
        response_b=response,
        source_import_id=response.source_import_id,
        origin=ComparisonOrigin.SINGLE,
        random_order=draw_random_order(),
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

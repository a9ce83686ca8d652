"""The texts of comparisons are indexed for the search."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, cast

from django.db import transaction
from django.db.models import Max, Q, QuerySet

from evaluations.audit.events import record_event
from evaluations.domain.files import ImportState
from evaluations.domain.jobs import INDEX_IMPORT
from evaluations.domain.search import CHARACTERS_SEARCHED, split_words
from evaluations.domain.texts import Message, messages_to_text
from evaluations.jobs.claims import end_claim
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.queue import enqueue_job
from evaluations.models.comparisons import IS_SINGLE, Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.free_space import has_room_for_rows
from evaluations.models.imports import Import
from evaluations.models.jobs import Job
from evaluations.models.search_index import find_indexed_ids, index_words, refresh_search_statistics, unindex_words
from evaluations.models.transactions import comparisons_indexed_at_once, is_time_up, pause_after_transaction

INDEX_EVALUATION: Final = "index_evaluation"
NO_ROOM_PAUSE: Final = timedelta(minutes=1)  # before looking again whether the disk has room for more of the index
REFRESH_AFTER_ROWS: Final = 1_000  # rows of an import, after which it is worth to look anew how common words are
# A word between texts that nobody can type, so that no phrase reaches from one into the next.
TEXT_SEPARATOR: Final = "\ue000"
TEXT_COLUMNS: Final = (
    *("pk", "query__text", "query__context", "query__reference"),
    *("response_a_id", "response_a__messages", "response_b_id", "response_b__messages"),
)


def add_to_search_index(comparisons: Sequence[Comparison]) -> None:
    """Index a few comparisons in the transaction that writes them."""
    index_words(build_documents(Comparison.all_rows.filter(pk__in=[comparison.pk for comparison in comparisons])))


def remove_from_search_index(comparison_ids: Sequence[int]) -> None:
    """Remove comparisons from the index in the transaction that deletes them, while their texts exist."""
    unindex_words(build_documents(Comparison.all_rows.filter(pk__in=find_indexed_ids(comparison_ids))))


def build_documents(comparisons: "QuerySet[Comparison]") -> dict[int, list[str]]:
    responses: dict[int, list[str]] = {}  # several comparisons share a response

    def of_response(pk: int, messages: object) -> list[str]:
        if pk not in responses:
            responses[pk] = list_search_words(messages_to_text(cast("list[Message]", messages)))
        return responses[pk]

    documents = {}
    for pk, text, context, reference, a, messages_a, b, messages_b in comparisons.values_list(*TEXT_COLUMNS):
        of_query = [list_search_words(part) for part in (text, context, reference) if part]
        # Not A before B: PostgreSQL drops positions far back in a document, so a phrase found would tell them apart.
        parts = [*of_query, *sorted((of_response(a, messages_a), of_response(b, messages_b)))]
        documents[pk] = [word for part in parts for word in (*part, TEXT_SEPARATOR)]
    return documents


def list_search_words(text: str) -> list[str]:
    return split_words(text[:CHARACTERS_SEARCHED])


# ---- catching up ---------------------------------------------------------------------------


def schedule_indexing(evaluation: Evaluation) -> None:
    """Schedule the indexing of comparisons that no import brought, such as those of a backup."""
    last = Comparison.all_rows.filter(evaluation=evaluation).aggregate(last=Max("pk"))["last"]
    if last:
        enqueue_job(INDEX_EVALUATION, evaluation.pk, evaluation=evaluation, total=last)


def is_index_behind(evaluation: Evaluation) -> bool:
    """Whether a search may miss stored comparisons."""
    return Job.objects.unfinished().filter(kind__in=INDEX_JOBS, evaluation=evaluation).exists()


def index_import(claim: JobClaim) -> bool:
    """Read texts of an import for a while; the job's position is the last comparison that can be found."""
    importing = Import.objects.get(pk=claim.job.subject)
    is_done = read_texts(claim, Comparison.all_rows.filter(source_import=importing).exclude(IS_SINGLE))
    if is_done and importing.rows_stored >= REFRESH_AFTER_ROWS:
        refresh_search_statistics()
    return is_done


def index_evaluation(claim: JobClaim) -> bool:
    """Index all comparisons of an evaluation up to the job's total."""
    is_shown = Q(source_import__isnull=True) | Q(source_import__state=ImportState.DONE)
    rows = Comparison.all_rows.filter(is_shown, evaluation=claim.job.subject, pk__lte=claim.job.total)
    is_done = read_texts(claim, rows.exclude(IS_SINGLE))
    if is_done:
        refresh_search_statistics()
    return is_done


def read_texts(claim: JobClaim, comparisons: "QuerySet[Comparison]") -> bool:
    while has_room_for_rows():
        if not index_next_block(claim, comparisons):
            return True
        if is_time_up(claim.until):
            return False
    claim.pause = NO_ROOM_PAUSE
    return False


def index_next_block(claim: JobClaim, comparisons: "QuerySet[Comparison]") -> bool:
    """One block; False after the last."""
    left = comparisons.filter(pk__gt=claim.job.position).order_by("pk")
    ids = list(left.values_list("pk", flat=True)[: comparisons_indexed_at_once()])
    documents = build_documents(Comparison.all_rows.filter(pk__in=ids))
    with pause_after_transaction(), transaction.atomic():
        claim.heartbeat(ids[-1] if ids else None)
        index_words(documents)
        if not ids:  # a report on a saved filter by its texts is another one from now on
            end_claim(claim)
            evaluation = claim.job.evaluation
            assert evaluation is not None
            record_event("made searchable", evaluation, user=None, evaluation=evaluation)
    return bool(ids)


INDEX_JOBS: Final = tuple(
    register_job_kind(JobKind(name, step)).name
    for name, step in ((INDEX_IMPORT, index_import), (INDEX_EVALUATION, index_evaluation))
)

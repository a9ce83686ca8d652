"""The texts of comparisons are indexed for the search."""

import time
from collections.abc import Sequence
from typing import Final, cast

from django.db import connection, transaction
from django.db.models import Exists, Max, OuterRef, QuerySet

from evaluations.audit.events import record_event
from evaluations.domain.files import ImportState
from evaluations.domain.search import CHARACTERS_SEARCHED, split_words
from evaluations.domain.texts import Message, messages_to_text
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.search_index import (
    Indexing,
    find_indexed_ids,
    index_words,
    refresh_search_statistics,
    unindex_words,
)
from evaluations.models.transactions import is_time_up, pause_after_transaction

COMPARISONS_PER_BLOCK: Final = {"sqlite": 128, "postgresql": 500}
REFRESH_AFTER_ROWS: Final = 1_000  # rows of an import, after which it is worth to look anew how common words are
# A word between texts that nobody can type, so that no phrase reaches from one into the next.
TEXT_SEPARATOR: Final = "\ue000"
TEXT_COLUMNS: Final = (
    *("pk", "query__text", "query__context", "query__reference"),
    *("response_a_id", "response_a__messages", "response_b_id", "response_b__messages"),
)


class IndexedByOther(Exception):
    """Another worker indexes the same comparisons."""


def add_to_search_index(comparisons: Sequence[Comparison]) -> None:
    """Index a few comparisons in the transaction that writes them."""
    index_words(build_documents(Comparison.all_rows.filter(pk__in=[one.pk for one in comparisons])))


def remove_from_search_index(comparison_ids: Sequence[int]) -> None:
    """Remove comparisons from the index in the transaction that deletes them, while their texts exist."""
    unindex_words(build_documents(Comparison.all_rows.filter(pk__in=find_indexed_ids(comparison_ids))))


def build_documents(comparisons: "QuerySet[Comparison]") -> dict[int, list[str]]:
    responses: dict[int, list[str]] = {}  # the same one stands in several comparisons

    def of_response(pk: int, messages: object) -> list[str]:
        if pk not in responses:
            responses[pk] = list_search_words(messages_to_text(cast("list[Message]", messages)))
        return responses[pk]

    told = {}
    for pk, text, context, reference, a, messages_a, b, messages_b in comparisons.values_list(*TEXT_COLUMNS):
        of_query = [list_search_words(part) for part in (text, context, reference) if part]
        # Not A before B: PostgreSQL drops positions far back in a document, so a phrase found would tell them apart.
        parts = [*of_query, *sorted((of_response(a, messages_a), of_response(b, messages_b)))]
        told[pk] = [word for part in parts for word in (*part, TEXT_SEPARATOR)]
    return told


def list_search_words(text: str) -> list[str]:
    return split_words(text[:CHARACTERS_SEARCHED])


# ---- catching up ---------------------------------------------------------------------------


def list_open_indexing(evaluation: Evaluation | None = None) -> list[Indexing]:
    """The imports and ranges that still have to be indexed, oldest first."""
    finished = Indexing.objects.filter(source_import=OuterRef("pk"))
    fresh = Import.objects.filter(~Exists(finished), state=ImportState.DONE)
    begun = Indexing.objects.filter(done=False).select_related("source_import", "evaluation")
    if evaluation is not None:
        fresh, begun = fresh.filter(evaluation=evaluation), begun.filter(evaluation=evaluation)
    new = [Indexing(evaluation_id=one.evaluation_id, source_import=one) for one in fresh.order_by("pk")]
    return [*begun.order_by("pk"), *new]


def is_index_behind(evaluation: Evaluation) -> bool:
    """Whether a search may miss stored comparisons."""
    return bool(list_open_indexing(evaluation))


def schedule_indexing(evaluation: Evaluation) -> None:
    """Schedule the indexing of comparisons that no import brought, such as those of a backup."""
    last = Comparison.all_rows.filter(evaluation=evaluation, source_import=None).aggregate(last=Max("pk"))["last"]
    if last:
        Indexing.objects.create(evaluation=evaluation, up_to=last)


def continue_indexing(evaluation: Evaluation | None = None, *, seconds: float | None = None) -> bool:
    """Index for at most this many seconds. Returns whether comparisons are left."""
    until = None if seconds is None else time.monotonic() + seconds
    for one in list_open_indexing(evaluation):
        if one.pk is None:
            one, _ = Indexing.objects.get_or_create(
                source_import=one.source_import, defaults={"evaluation_id": one.evaluation_id}
            )
        try:
            while not one.done:
                if is_time_up(until):
                    return True
                index_next_block(one)
        except IndexedByOther:
            continue
        if one.source_import is None or one.source_import.rows_stored >= REFRESH_AFTER_ROWS:
            refresh_search_statistics()
    return False


def index_next_block(one: Indexing) -> None:
    rows = Comparison.all_rows.filter(source_import=one.source_import, pk__gt=one.reached)
    if one.source_import_id is None:
        rows = rows.filter(evaluation=one.evaluation_id, pk__lte=one.up_to)
    ids = list(rows.order_by("pk").values_list("pk", flat=True)[: COMPARISONS_PER_BLOCK[connection.vendor]])
    documents = build_documents(Comparison.all_rows.filter(pk__in=ids))
    last, is_last = (ids[-1], False) if ids else (one.reached, True)
    with pause_after_transaction(), transaction.atomic():
        mine = Indexing.objects.filter(pk=one.pk, reached=one.reached, done=False)
        if not mine.update(reached=last, done=is_last):
            raise IndexedByOther
        index_words(documents)
        if is_last:  # a report on a slice by its texts is another one from now on
            record_event("made searchable", one, user=None, evaluation=one.evaluation)
    one.reached, one.done = last, is_last

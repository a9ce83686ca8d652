"""Texts are read for searching after they were stored: an import does not wait for it, and pages say how far it is."""

import time
from collections.abc import Sequence
from typing import Any, Final, cast

from django.db import connection, transaction
from django.db.models import Exists, Max, OuterRef, QuerySet

from evaluations.domain import ImportState, Message, text_of
from evaluations.domain.searching import CHARACTERS_SEARCHED, words_of
from evaluations.models import Comparison, Evaluation, Import, Indexing
from evaluations.models.searching import findable, forget_words, refresh_words, write_words
from evaluations.services.pacing import paced, time_is_up
from evaluations.services.recording import record

AT_ONCE: Final = {"sqlite": 128, "postgresql": 500}
MANY: Final = 1_000  # rows of an import, after which it is worth to look anew how common words are
# A word between texts that nobody can type, so that no phrase reaches from one into the next.
BETWEEN: Final = "\ue000"
TEXTS: Final = (
    *("pk", "query__text", "query__context", "query__reference"),
    *("response_a_id", "response_a__messages", "response_b_id", "response_b__messages"),
)


class Overtaken(Exception):
    """Somebody else reads the same texts."""


def make_findable(comparisons: Sequence[Comparison]) -> None:
    """In the transaction that writes them; for a few."""
    write_words(documents_of(Comparison.all_rows.filter(pk__in=[one.pk for one in comparisons])))


def make_unfindable(comparison_ids: Sequence[int]) -> None:
    """In the transaction that removes what belongs to them, while their texts are still here."""
    forget_words(documents_of(Comparison.all_rows.filter(pk__in=findable(comparison_ids))))


def documents_of(comparisons: "QuerySet[Comparison]") -> dict[int, list[str]]:
    responses: dict[int, list[str]] = {}  # the same one stands in several comparisons

    def of_response(pk: int, messages: Any) -> list[str]:
        if pk not in responses:
            responses[pk] = searched(text_of(cast("list[Message]", messages)))
        return responses[pk]

    told = {}
    for pk, text, context, reference, a, messages_a, b, messages_b in comparisons.values_list(*TEXTS):
        of_query = [searched(part) for part in (text, context, reference) if part]
        # Not A before B: PostgreSQL drops positions far back in a document, so a phrase found would tell them apart.
        parts = [*of_query, *sorted((of_response(a, messages_a), of_response(b, messages_b)))]
        told[pk] = [word for part in parts for word in (*part, BETWEEN)]
    return told


def searched(text: str) -> list[str]:
    return words_of(text[:CHARACTERS_SEARCHED])


# ---- catching up ---------------------------------------------------------------------------


def unread(evaluation: Evaluation | None = None) -> list[Indexing]:
    """What still waits to be read, oldest first."""
    finished = Indexing.objects.filter(source_import=OuterRef("pk"))
    fresh = Import.objects.filter(~Exists(finished), state=ImportState.DONE)
    begun = Indexing.objects.filter(done=False).select_related("source_import", "evaluation")
    if evaluation is not None:
        fresh, begun = fresh.filter(evaluation=evaluation), begun.filter(evaluation=evaluation)
    new = [Indexing(evaluation_id=one.evaluation_id, source_import=one) for one in fresh.order_by("pk")]
    return [*begun.order_by("pk"), *new]


def is_behind(evaluation: Evaluation) -> bool:
    """Whether a search may miss comparisons that are here."""
    return bool(unread(evaluation))


def read_by_hand(evaluation: Evaluation) -> None:
    """Have everything read that no import brought: what came in past every service, as from a backup."""
    last = Comparison.all_rows.filter(evaluation=evaluation, source_import=None).aggregate(last=Max("pk"))["last"]
    if last:
        Indexing.objects.create(evaluation=evaluation, up_to=last)


def catch_up(evaluation: Evaluation | None = None, *, seconds: float | None = None) -> bool:
    """Read what waits, for so long; whether more is left."""
    until = None if seconds is None else time.monotonic() + seconds
    for one in unread(evaluation):
        if one.pk is None:
            one, _ = Indexing.objects.get_or_create(
                source_import=one.source_import, defaults={"evaluation_id": one.evaluation_id}
            )
        try:
            while not one.done:
                if time_is_up(until):
                    return True
                read_some(one)
        except Overtaken:
            continue
        if one.source_import is None or one.source_import.rows_stored >= MANY:
            refresh_words()
    return False


def read_some(one: Indexing) -> None:
    rows = Comparison.all_rows.filter(source_import=one.source_import, pk__gt=one.reached)
    if one.source_import_id is None:
        rows = rows.filter(evaluation=one.evaluation_id, pk__lte=one.up_to)
    ids = list(rows.order_by("pk").values_list("pk", flat=True)[: AT_ONCE[connection.vendor]])
    documents = documents_of(Comparison.all_rows.filter(pk__in=ids))
    last, is_last = (ids[-1], False) if ids else (one.reached, True)
    with paced(), transaction.atomic():
        mine = Indexing.objects.filter(pk=one.pk, reached=one.reached, done=False)
        if not mine.update(reached=last, done=is_last):
            raise Overtaken
        write_words(documents)
        if is_last:  # a report on a slice by its texts is another one from now on
            record("made searchable", one, user=None, evaluation=one.evaluation)
    one.reached, one.done = last, is_last

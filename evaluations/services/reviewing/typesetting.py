"""Texts as HTML, made once and kept by content and version of the renderer."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from time import monotonic
from typing import Final

from django.db import DatabaseError, connection, transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils.safestring import SafeString, mark_safe

from evaluations.models import Comparison, Evaluation, Query, QueueItem, Rendering
from evaluations.rendering.markdown import RENDERER, rendered
from evaluations.services.pacing import ROWS_AT_ONCE, WRITERS, paced, time_is_up

# A shorter text is rendered in less time than it takes to look for its HTML.
SHORTEST_KEPT: Final = 200  # characters
# How long a page waits for another writer before it is shown with its texts not kept.
PATIENCE_MS: Final = 50
# Comparisons rendered before anybody opens them: a day's work of ten people, half a minute of a worker and some
# 20 MB. What lies behind them is rendered when it is opened, in a few milliseconds.
AHEAD: Final = 2_000
AT_ONCE: Final = 16  # comparisons, with at most five texts each and rarely more than three
# Rows of older renderers that one sweep removes: after an update no sweep takes long.
DROPPED_AT_ONCE: Final = 8 * ROWS_AT_ONCE

log = logging.getLogger(__name__)


def html_of(texts: Iterable[str]) -> Mapping[str, SafeString]:
    """Text → safe HTML, for all texts of a page at once: one query, and one more where any is new.

    A view hands the answer to its template as ``html``; ``_conversation.html`` and
    ``{{ html|of:text }}`` find their texts in it. A text that is not in it is rendered on the spot.
    """
    wanted = set(texts)
    keys = {text: key_of(text) for text in wanted if len(text) >= SHORTEST_KEPT}
    found = known(keys.values())
    made = {text: rendered(text) for text in wanted if keys.get(text) not in found}
    new = {keys[text]: html for text, html in made.items() if text in keys}
    if new:
        keep_if_possible(new)
    return {text: mark_safe(made[text] if text in made else found[keys[text]]) for text in wanted}


def texts_of(comparison: Comparison) -> Iterator[str]:
    """Every text of a comparison that pages show as Markdown: both responses, the query and what goes with it."""
    for messages in (comparison.query.messages, comparison.response_a.messages, comparison.response_b.messages):
        yield from (message["content"] for message in messages)
    yield from texts_beside(comparison.query)


def texts_beside(query: Query) -> Iterator[str]:
    yield from (text for text in (query.context, query.reference) if text)


def key_of(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def prepare(evaluation: Evaluation, limit: int = AHEAD, seconds: float | None = None) -> bool:
    """Render what reviewers meet first, for at most so long. True where more is left to do by another call."""
    until = None if seconds is None else monotonic() + seconds
    ids = list(met_next(evaluation).values_list("pk", flat=True)[:limit])
    for start in range(0, len(ids), AT_ONCE):
        if time_is_up(until):
            return True
        render_missing(ids[start : start + AT_ONCE])
    return False


def met_next(evaluation: Evaluation) -> QuerySet[Comparison]:
    """The comparisons that still want reviews, in the random order in which people meet them."""
    full = QueueItem.objects.filter(
        comparison=OuterRef("pk"), rubric_version=evaluation.review_rubric_id, taken__gte=F("wanted")
    )
    return Comparison.objects.filter(~Exists(full), evaluation=evaluation).order_by("shuffle", "pk")


def render_missing(ids: Sequence[int]) -> None:
    """Render the texts of these comparisons that nobody has met yet, in one short transaction."""
    comparisons = Comparison.objects.filter(pk__in=ids).select_related("query", "response_a", "response_b")
    texts = {text for comparison in comparisons for text in texts_of(comparison) if len(text) >= SHORTEST_KEPT}
    wanted = {key_of(text): text for text in texts}
    kept = Rendering.objects.filter(renderer=RENDERER, sha256__in=wanted).values_list("sha256", flat=True)
    new = {key: rendered(wanted[key]) for key in wanted.keys() - set(kept)}
    if new:
        with paced(), transaction.atomic():
            keep(new)


def drop_outdated() -> int:
    """Remove some of what older renderers made: nobody looks for it again."""
    outdated = Rendering.objects.filter(renderer__lt=RENDERER).order_by("renderer", "sha256")
    ids = list(outdated.values_list("pk", flat=True)[:DROPPED_AT_ONCE])
    for start in range(0, len(ids), ROWS_AT_ONCE):
        with paced(), transaction.atomic():
            Rendering.objects.filter(pk__in=ids[start : start + ROWS_AT_ONCE]).delete()
    return len(ids)


def known(keys: Iterable[str]) -> dict[str, str]:
    wanted = list(keys)
    if not wanted:
        return {}
    return dict(Rendering.objects.filter(renderer=RENDERER, sha256__in=wanted).values_list("sha256", "html"))


def keep(new: Mapping[str, str]) -> None:
    """What somebody else has kept meanwhile is the same, and stays."""
    rows = [Rendering(sha256=key, renderer=RENDERER, html=html) for key, html in sorted(new.items())]
    Rendering.objects.bulk_create(rows, ignore_conflicts=True)


def keep_if_possible(new: Mapping[str, str]) -> None:
    """A page is shown whether or not its texts can be kept: where others are writing they are kept another time."""
    if not WRITERS.acquire(timeout=PATIENCE_MS / 1000):
        return
    try:
        with impatient(), transaction.atomic():
            keep(new)
    except DatabaseError as fault:
        log.warning("%d rendered texts were not kept: %s", len(new), fault)
    finally:
        WRITERS.release()


@contextmanager
def impatient() -> Iterator[None]:
    """On SQLite, wait for other writers no longer than a reader would notice."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        (usual,) = cursor.fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {usual:d}")

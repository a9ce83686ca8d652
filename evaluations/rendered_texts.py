"""Markdown texts as safe HTML, stored by content and renderer version."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from django.db import DatabaseError, transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils.safestring import SafeString, mark_safe

from evaluations.domain.jobs import RENDER_AHEAD
from evaluations.domain.texts import Message
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.models.comparisons import Comparison, Query, Rendering, load_rendered_html
from evaluations.models.evaluations import Evaluation
from evaluations.models.free_space import has_room_for_rows
from evaluations.models.queues import QueueItem
from evaluations.models.transactions import (
    SHORT_TRANSACTION_ROWS,
    SQLITE_WRITE_LOCK,
    is_time_up,
    limit_write_wait,
    pause_after_transaction,
)
from evaluations.rendering.markdown import MAX_STEPS, RENDERER, render_markdown
from evaluations.rendering.step_budget import StepBudget

# A shorter text is rendered in less time than it takes to look for its HTML.
MIN_STORED_CHARACTERS: Final = 200

# The time that a page waits for another writer before it is shown without storing its HTML.
MAX_WRITE_WAIT_MS: Final = 50

# Comparisons rendered before anybody opens them: a day's work of ten people, half a minute of a worker and some
# 20 MB. Later ones are rendered when they are opened, in a few milliseconds.
COMPARISONS_AHEAD: Final = 2_000

# All new texts of a page together: about two thirds of a second. Further ones are shown as written.
MAX_STEPS_OF_PAGE: Final = 2_000_000
# Of a batch that is rendered before anybody opens it: a few seconds, within the lease of the job.
MAX_STEPS_OF_BATCH: Final = 10 * MAX_STEPS

COMPARISONS_PER_TRANSACTION: Final = 16  # with at most five texts each and rarely more than three

# Rows of older renderers that one sweep removes: after an update no sweep takes long.
RENDERINGS_DELETED_PER_SWEEP: Final = 8 * SHORT_TRANSACTION_ROWS

log = logging.getLogger(__name__)


def render_texts(texts: Iterable[str]) -> Mapping[str, SafeString]:
    """Text → safe HTML, for all texts of a page at once: one query, and one more if any is new.

    A view passes it to its template as ``html`` for ``_conversation.html`` and ``{{ html|of:text }}``. A text that is
    missing there is rendered by the filter.
    """
    distinct = set(texts)
    keys = {text: get_rendering_key(text) for text in distinct if len(text) >= MIN_STORED_CHARACTERS}
    stored = load_rendered_html(RENDERER, set(keys.values()))
    made, complete = render_within_budget(text for text in distinct if keys.get(text) not in stored)
    new = {keys[text]: made[text] for text in complete if text in keys}
    if new:
        store_renderings_if_possible(new)
    return {text: mark_safe(made[text] if text in made else stored[keys[text]]) for text in distinct}


def render_within_budget(texts: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The HTML of the texts, and those to store: all that got the steps that a text alone gets.

    Short texts come first. What is stored is not rendered again, so that opening the page again shows more of them.
    """
    made, complete, left = {}, [], MAX_STEPS_OF_PAGE
    for text in sorted(texts, key=lambda text: (len(text), text)):
        budget = StepBudget(max(0, min(MAX_STEPS, left)))
        made[text] = render_markdown(text, budget)
        left -= budget.total - budget.left
        if not budget.has_run_out or budget.total == MAX_STEPS:
            complete.append(text)
    return made, complete


def iter_comparison_texts(comparison: Comparison) -> Iterator[str]:
    """Every Markdown text of a comparison: the prompt, both responses, context and reference."""
    for messages in (comparison.query.messages, comparison.response_a.messages, comparison.response_b.messages):
        yield from (message["content"] for message in messages)
    yield from iter_query_texts(comparison.query)


def iter_query_texts(query: Query) -> Iterator[str]:
    yield from (text for text in (query.context, query.reference) if text)


def get_rendering_key(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def render_ahead(claim: JobClaim) -> bool:
    """Render the comparisons that reviewers open first. Whether all of them are done."""
    evaluation = claim.job.evaluation
    assert evaluation is not None
    return render_next_comparisons(evaluation, claim=claim)


def render_next_comparisons(
    evaluation: Evaluation, limit: int = COMPARISONS_AHEAD, claim: JobClaim | None = None
) -> bool:
    """Render the next comparisons in review order until the deadline. Whether all of them are done."""
    ids = list(find_comparisons_met_next(evaluation).values_list("pk", flat=True)[:limit])
    for start in range(0, len(ids), COMPARISONS_PER_TRANSACTION):
        if is_time_up(claim.until if claim else None):
            return False
        if not has_room_for_rows():
            return True  # pages render what they show
        if claim:
            claim.heartbeat_if_due(start)
        render_missing_texts(ids[start : start + COMPARISONS_PER_TRANSACTION])
    return True


register_job_kind(JobKind(RENDER_AHEAD, render_ahead))


def find_comparisons_met_next(evaluation: Evaluation) -> QuerySet[Comparison]:
    """The comparisons that still need reviews, in review order."""
    full = QueueItem.objects.filter(
        comparison=OuterRef("pk"), rubric_version=evaluation.review_rubric_id, taken__gte=F("wanted")
    )
    return Comparison.reviewable.filter(~Exists(full), evaluation=evaluation).order_by("random_order", "pk")


def render_missing_texts(ids: Sequence[int]) -> None:
    """Render texts of these comparisons that have no stored HTML, in one short transaction.

    Of texts that take too long the rest is left to the pages that show them.
    """
    comparisons = Comparison.with_singles.filter(pk__in=ids).select_related("query", "response_a", "response_b")
    texts = {
        text
        for comparison in comparisons
        for text in iter_comparison_texts(comparison)
        if len(text) >= MIN_STORED_CHARACTERS
    }
    text_by_key = {get_rendering_key(text): text for text in texts}
    kept = Rendering.objects.filter(renderer=RENDERER, sha256__in=text_by_key).values_list("sha256", flat=True)
    new, left = {}, MAX_STEPS_OF_BATCH
    for key in sorted(text_by_key.keys() - set(kept)):
        budget = StepBudget(MAX_STEPS)
        new[key] = render_markdown(text_by_key[key], budget)
        left -= budget.total - budget.left
        if left < 0:
            break
    if new:
        with pause_after_transaction(), transaction.atomic():
            store_renderings(new)


def delete_outdated_renderings() -> int:
    """Delete a batch of HTML made by older renderers."""
    outdated = Rendering.objects.filter(renderer__lt=RENDERER).order_by("renderer", "sha256")
    ids = list(outdated.values_list("pk", flat=True)[:RENDERINGS_DELETED_PER_SWEEP])
    for start in range(0, len(ids), SHORT_TRANSACTION_ROWS):
        with pause_after_transaction(), transaction.atomic():
            Rendering.objects.filter(pk__in=ids[start : start + SHORT_TRANSACTION_ROWS]).delete()
    return len(ids)


def store_renderings(new: Mapping[str, str]) -> None:
    """Store HTML by text hash; rows that exist already stay."""
    rows = [Rendering(sha256=key, renderer=RENDERER, html=html) for key, html in sorted(new.items())]
    Rendering.objects.bulk_create(rows, ignore_conflicts=True)


def store_renderings_if_possible(new: Mapping[str, str]) -> None:
    """Store HTML unless another writer is busy: the page is shown in either case."""
    if not SQLITE_WRITE_LOCK.acquire(timeout=MAX_WRITE_WAIT_MS / 1000):
        return
    try:
        with limit_write_wait(MAX_WRITE_WAIT_MS), transaction.atomic():
            store_renderings(new)
    except DatabaseError as fault:
        log.warning("%d rendered texts were not kept: %s", len(new), fault)
    finally:
        SQLITE_WRITE_LOCK.release()


RenderedTexts = Mapping[str, SafeString]  # the HTML of each text


@dataclass(frozen=True)
class Turn:
    """One message. ``number``: its position in the response, or in the prompt."""

    number: int
    speaker: str
    html: SafeString


def build_turns(messages: Sequence[Message], html: RenderedTexts, first: int = 0) -> tuple[Turn, ...]:
    return tuple(
        Turn(number, name_speaker(message, messages), get_rendered_text(html, message["content"]))
        for number, message in enumerate(messages, first)
    )


def name_speaker(message: Message, among: Sequence[Message]) -> str:
    """The role as a heading; empty for a single turn."""
    return message["role"].capitalize() if len(among) > 1 or message["role"] == "system" else ""


def get_rendered_text(html: RenderedTexts, text: str) -> SafeString:
    """The HTML of a text; empty for an empty text."""
    return html[text] if text.strip() else SafeString("")

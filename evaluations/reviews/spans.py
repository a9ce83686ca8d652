"""Passages of a response that a reviewer highlights."""

import re
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Span
from evaluations.rendered_texts import render_texts
from evaluations.rendering.plain_text import text_content

MAX_QUOTE_LENGTH: Final = 2_000
MAX_SPAN_COMMENT_LENGTH: Final = 10_000


@dataclass(frozen=True)
class Passage:
    """A passage. ``start`` and ``end`` count characters of the turn as shown."""

    turn: int
    start: int
    end: int
    quote: str


@transaction.atomic
def create_span(
    review: Review,
    response: Response,
    turn: int | None,
    start: int | None,
    end: int | None,
    quote: str,
    comment: str,
    aspect: str,
    user: User,
) -> Span:
    """Store a highlighted passage; a repeat returns the same row.

    Without a position the quote is searched for in the response, for pages without a script.
    """
    if response.pk not in (review.comparison.response_a_id, review.comparison.response_b_id):
        raise InputRefused("That response is not part of this comparison.")
    refuse_too_long_span(quote, comment)
    passage = vars(locate_passage(response, turn, start, end, quote))
    remark: JsonDict = {"aspect": get_span_aspect(review, aspect), "comment": comment}
    User.objects.select_for_update(no_key=True).get(pk=user.pk)  # of two sent at once the second sees the first
    span, is_new = Span.objects.get_or_create(review=review, response=response, **passage, **remark)
    if is_new:
        record_span_change("marked a passage", span, user, after=describe_span(span))
    return span


@transaction.atomic
def change_span(span: Span, comment: str, aspect: str, user: User) -> None:
    """Change the comment or the aspect of a highlight."""
    refuse_too_long_span(span.quote, comment)
    before = describe_span(span)
    span.comment, span.aspect = comment, get_span_aspect(span.review, aspect)
    span.save(update_fields=["comment", "aspect"])
    record_span_change("changed a comment on a passage", span, user, before=before, after=describe_span(span))


@transaction.atomic
def delete_span(span: Span, user: User) -> None:
    record_span_change("unmarked a passage", span, user, before=describe_span(span))
    span.delete()


def get_own_spans(comparison: Comparison, rater: Rater | None) -> list[Span]:
    """The rater's highlights by text position: ordering by response would reveal which is A."""
    if rater is None:
        return []
    spans = Span.objects.filter(review__comparison=comparison, review__rater=rater)
    return list(spans.select_related("aspect").order_by("turn", "start", "pk"))


def locate_passage(response: Response, turn: int | None, start: int | None, end: int | None, quote: str) -> Passage:
    """The passage that the quote and position mean; InputRefused if there is none."""
    words = quote.split()
    if not words:
        raise InputRefused("Nothing highlighted: select words of a response, or type them as the quote.")
    if turn is not None and not 0 <= turn < len(response.messages):
        raise InputRefused(f"Nothing highlighted: this response has no turn {turn + 1}.")
    if start is not None and end is not None and start >= end:
        raise InputRefused("Nothing highlighted: the passage ends before it begins.")
    turns = [turn] if turn is not None else range(len(response.messages))
    texts = {number: get_turn_text(response, number) for number in turns}
    if turn is not None and start is not None and end is not None and texts[turn][start:end].split() == words:
        return Passage(turn, start, min(end, len(texts[turn])), texts[turn][start:end])
    any_white_space = re.compile(r"\s+".join(map(re.escape, words)))
    passages = [
        Passage(number, match.start(), match.end(), match.group())
        for number, text in texts.items()
        for match in any_white_space.finditer(text)
    ]
    if not passages:
        raise InputRefused("Nothing highlighted: this text is not in the response. Copy it as shown.")
    return min(passages, key=lambda passage: abs(passage.start - (start or 0)) if turn is not None else 0)


def get_turn_text(response: Response, turn: int) -> str:
    content = response.messages[turn]["content"]
    return text_content(render_texts([content])[content])


def refuse_too_long_span(quote: str, comment: str) -> None:
    if len(quote) > MAX_QUOTE_LENGTH:
        raise InputRefused(f"Nothing highlighted: a quote can have up to {MAX_QUOTE_LENGTH:,} characters. Shorten it.")
    if len(comment) > MAX_SPAN_COMMENT_LENGTH:
        raise InputRefused(f"Nothing was stored: a comment can have up to {MAX_SPAN_COMMENT_LENGTH:,} characters.")


def get_span_aspect(review: Review, key: str) -> Aspect | None:
    if not key:
        return None
    aspect = Aspect.objects.filter(rubric_aspects__version=review.rubric_version, key=key).first()
    if aspect is None:
        raise InputRefused(f"Nothing was stored: the rubric does not ask about “{key}”.")
    return aspect


def describe_span(span: Span) -> dict[str, object]:
    return {
        "comparison": span.review.comparison_id,
        "response": span.response_id,
        "turn": span.turn,
        "start": span.start,
        "end": span.end,
        "quote": span.quote,
        "comment": span.comment,
        "aspect": span.aspect.key if span.aspect else None,
    }


def record_span_change(verb: str, span: Span, user: User, **states: Any) -> None:
    record_event(verb, span, user=user, evaluation=span.review.comparison.evaluation, **states)

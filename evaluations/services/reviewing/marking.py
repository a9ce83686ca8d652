"""Passages of a response that a person marks and comments: from the draft on, and for as long as the review stands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from evaluations.domain import InputRefused
from evaluations.models import Aspect, Comparison, Rater, Response, Review, Span, User
from evaluations.rendering.plain import words_of
from evaluations.services.recording import record
from evaluations.services.reviewing.typesetting import html_of

LONGEST_QUOTE: Final = 2_000
LONGEST_COMMENT: Final = 10_000


@dataclass(frozen=True)
class Passage:
    """Where it stands: ``start`` and ``end`` count characters of the turn as it is shown."""

    turn: int
    start: int
    end: int
    quote: str


@transaction.atomic
def mark(
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
    """Store a passage; the same one twice is one.

    Without its place it is looked for: who has no mouse or script gives the words alone.
    """
    if response.pk not in (review.comparison.response_a_id, review.comparison.response_b_id):
        raise InputRefused("That response is not part of this comparison.")
    refuse_what_is_too_long(quote, comment)
    place = vars(passage(response, turn, start, end, quote))
    said: dict[str, Any] = {"aspect": aspect_for(review, aspect), "comment": comment}
    User.objects.select_for_update(no_key=True).get(pk=user.pk)  # of two sent at once the second sees the first
    span, is_new = Span.objects.get_or_create(review=review, response=response, **place, **said)
    if is_new:
        record_step("marked a passage", span, user, after=stored(span))
    return span


@transaction.atomic
def change(span: Span, comment: str, aspect: str, user: User) -> None:
    """Another comment or aspect; the passage stays where it is."""
    refuse_what_is_too_long(span.quote, comment)
    before = stored(span)
    span.comment, span.aspect = comment, aspect_for(span.review, aspect)
    span.save(update_fields=["comment", "aspect"])
    record_step("changed a comment on a passage", span, user, before=before, after=stored(span))


@transaction.atomic
def unmark(span: Span, user: User) -> None:
    record_step("unmarked a passage", span, user, before=stored(span))
    span.delete()


def spans_of(comparison: Comparison, rater: Rater | None) -> list[Span]:
    """This person's own, by place in the text. The order of the responses would tell A from B."""
    if rater is None:
        return []
    own = Span.objects.filter(review__comparison=comparison, review__rater=rater)
    return list(own.select_related("aspect").order_by("turn", "start", "pk"))


def passage(response: Response, turn: int | None, start: int | None, end: int | None, quote: str) -> Passage:
    """The passage that is meant, or a refusal that says what to do."""
    wanted = quote.split()
    if not wanted:
        raise InputRefused("Nothing was marked: select some words of a response, or write down which are meant.")
    if turn is not None and not 0 <= turn < len(response.messages):
        raise InputRefused(f"Nothing was marked: this response has no turn {turn + 1}.")
    if start is not None and end is not None and start >= end:
        raise InputRefused("Nothing was marked: the passage ends before it begins.")
    places = [turn] if turn is not None else range(len(response.messages))
    texts = {place: words_of_turn(response, place) for place in places}
    if turn is not None and start is not None and end is not None and texts[turn][start:end].split() == wanted:
        return Passage(turn, start, min(end, len(texts[turn])), texts[turn][start:end])
    found = [one for place, text in texts.items() for one in occurrences(place, text, wanted)]
    if not found:
        raise InputRefused("Nothing was marked: those words do not stand in this response. Copy them as shown.")
    return min(found, key=lambda one: abs(one.start - (start or 0)) if turn is not None else 0)


def occurrences(turn: int, text: str, wanted: list[str]) -> Iterator[Passage]:
    """Every place of these words, whatever space stands between them."""
    for match in re.finditer(r"\s+".join(map(re.escape, wanted)), text):
        yield Passage(turn, match.start(), match.end(), match.group())


def words_of_turn(response: Response, turn: int) -> str:
    content = response.messages[turn]["content"]
    return words_of(html_of([content])[content])


def refuse_what_is_too_long(quote: str, comment: str) -> None:
    if len(quote) > LONGEST_QUOTE:
        raise InputRefused(f"Nothing was marked: a passage has at most {LONGEST_QUOTE:,} characters. Mark a part.")
    if len(comment) > LONGEST_COMMENT:
        raise InputRefused(f"Nothing was stored: a comment has at most {LONGEST_COMMENT:,} characters.")


def aspect_for(review: Review, key: str) -> Aspect | None:
    if not key:
        return None
    aspect = Aspect.objects.filter(asked_in__version=review.rubric_version, key=key).first()
    if aspect is None:
        raise InputRefused(f"Nothing was stored: the rubric does not ask about “{key}”.")
    return aspect


def stored(span: Span) -> dict[str, Any]:
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


def record_step(verb: str, span: Span, user: User, **states: Any) -> None:
    record(verb, span, user=user, evaluation=span.review.comparison.evaluation, **states)

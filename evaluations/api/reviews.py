"""Reviewing: what comes next, one comparison as the person may see it, and every step of the review page.

Blind as on the page: the same services decide what is shown, and in which order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Schema

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.operations import Operations
from evaluations.api.schemas.reviewing import (
    Confirming,
    DiffTold,
    Drafting,
    DraftTold,
    JudgeSaid,
    LineTold,
    Marking,
    NextTold,
    QueueTold,
    Remark,
    ReviewTold,
    Saving,
    Scored,
    ScoresSent,
    Skipping,
    SpanList,
    SpanTold,
    Step,
)
from evaluations.api.schemas.shared import Id
from evaluations.api.telling import messages_told
from evaluations.domain import Choice, InputRefused, ReviewState, RubricSpec, Scope
from evaluations.forms.review import ChoicesForm
from evaluations.models import Comparison, Evaluation, Rater, Review, RubricVersion, Span, User
from evaluations.services.reviewing import keeping, marking, reviewing
from evaluations.services.reviewing.calibrating import unseen_result
from evaluations.services.reviewing.contrasting import diffed
from evaluations.services.reviewing.presenting import Line, Sheet, sheet_for
from evaluations.services.reviewing.queueing import next_comparison, progress
from evaluations.services.reviewing.revealing import JudgeChoice
from evaluations.services.reviewing.saying import Choices, Given, Scores

operations = Operations(tags=["reviews"])
RUBRIC_CHANGED = "The rubric was changed meanwhile: look at its questions again. Nothing was stored."
AT = "/evaluations/{slug:slug}/review/{int:pk}"


class Besides(Schema):
    besides: Annotated[list[Id], Field(max_length=50, description="comparisons that you have before you already")] = []


@dataclass(frozen=True)
class Seat:
    """One person before one comparison."""

    user: User
    evaluation: Evaluation
    rubric: RubricVersion
    spec: RubricSpec
    comparison: Comparison

    @property
    def rater(self) -> Rater | None:
        return reviewing.rater_of(self.user, self.evaluation)

    @property
    def sheet(self) -> Sheet:
        return sheet_for(self.user, self.comparison, self.rubric, self.rater, self.spec)

    def seen_verdicts(self) -> bool:
        return access.has_seen_verdicts(self.user, self.comparison)


def seat_for(request: HttpRequest, slug: str, pk: int, step: Step | None = None) -> Seat:
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.REVIEW)
    rubric = reviewing.rubric_in_force(evaluation)
    if step is not None and step.rubric_version not in (None, rubric.pk):
        raise InputRefused(RUBRIC_CHANGED)
    with_texts = Comparison.objects.select_related("query", "response_a", "response_b")
    comparison = get_object_or_404(with_texts, evaluation=evaluation, pk=pk)
    comparison.evaluation = evaluation
    return Seat(user, evaluation, rubric, rubric.spec(), comparison)


@operations.get_one("/evaluations/{slug:slug}/review/next", Scope.REVIEW, NextTold)
def get_next(request: HttpRequest, slug: str, asked: Query[Besides]) -> NextTold:
    """What waits for you next. It holds a place for you, which lapses by itself."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.REVIEW)
    reviewing.rubric_in_force(evaluation)
    rater = reviewing.rater_for(user, evaluation)
    result = unseen_result(evaluation, rater)
    found = None if result else next_comparison(evaluation, rater, besides=asked.besides)
    how_far = progress(evaluation, rater)
    return NextTold(
        comparison=found,
        result_of_calibration=result.pk if result else None,
        progress=QueueTold(total=how_far.total, done=how_far.done, skipped=how_far.skipped),
    )


@operations.get_one(AT, Scope.REVIEW, ReviewTold)
def get_review(request: HttpRequest, slug: str, pk: int) -> ReviewTold:
    """The comparison as you should see it now: no candidate's name, and nothing of others too early."""
    return told(seat_for(request, slug, pk))


@operations.do(f"{AT}/save", Scope.REVIEW, ReviewTold)
def save_review(request: HttpRequest, slug: str, pk: int, body: Saving) -> ReviewTold:
    """Your first choices. Where a judge is to be shown they are confirmed in sight of it; else they are final."""
    seat = seat_for(request, slug, pk, body)
    reviewing.save_first(
        seat.user,
        seat.comparison,
        choices=choices_in(body),
        version=body.version,
        seen_verdicts=seat.seen_verdicts(),
        note=body.note,
        active_ms=body.active_ms,
    )
    return told(seat)


@operations.do(f"{AT}/confirm", Scope.REVIEW, ReviewTold)
def confirm_review(request: HttpRequest, slug: str, pk: int, body: Confirming) -> ReviewTold:
    """Your final choices, confirmed or changed in sight of the judge's."""
    seat = seat_for(request, slug, pk, body)
    reviewing.save_final(
        seat.user,
        seat.comparison,
        choices=choices_in(body),
        notes=body.notes,
        reasons={key: str(reason) for key, reason in body.reasons.items()},
        version=body.version,
        note=body.note,
        active_ms=body.active_ms,
    )
    return told(seat)


def choices_in(body: Saving) -> Choices:
    return {key: Scores(one.a, one.b) if isinstance(one, ScoresSent) else one for key, one in body.choices.items()}


@operations.do(f"{AT}/skip", Scope.REVIEW, ReviewTold)
def skip_review(request: HttpRequest, slug: str, pk: int, body: Skipping) -> ReviewTold:
    """Leave it for later: it comes back when nothing else is left."""
    seat = seat_for(request, slug, pk, body)
    reviewing.skip(seat.user, seat.comparison, reason=body.reason, version=body.version, active_ms=body.active_ms)
    return told(seat)


@operations.do(f"{AT}/undo", Scope.REVIEW, ReviewTold)
def undo_review(request: HttpRequest, slug: str, pk: int, body: Step) -> ReviewTold:
    """Take back the last step; what it held is the draft of the next."""
    seat = seat_for(request, slug, pk, body)
    reviewing.undo(
        seat.user,
        review_of(seat),
        version=body.version,
        active_ms=body.active_ms,
        seen_verdicts=seat.seen_verdicts(),
    )
    return told(seat)


@operations.do(f"{AT}/again", Scope.REVIEW, ReviewTold)
def look_again(request: HttpRequest, slug: str, pk: int, body: Step) -> ReviewTold:
    """The judge has answered since: confirm your choices in sight of it."""
    seat = seat_for(request, slug, pk, body)
    reviewing.look_again(seat.user, review_of(seat), version=body.version)
    return told(seat)


@operations.do(f"{AT}/leave", Scope.REVIEW, ReviewTold)
def leave_as_is(request: HttpRequest, slug: str, pk: int, body: Step) -> ReviewTold:
    """The judge has answered since: your choices stay as they are."""
    seat = seat_for(request, slug, pk, body)
    reviewing.leave_as_is(seat.user, review_of(seat), version=body.version)
    return told(seat)


@operations.set(f"{AT}/draft", Scope.REVIEW, ReviewTold)
def keep_draft(request: HttpRequest, slug: str, pk: int, body: Drafting) -> ReviewTold:
    """What you have entered and not saved yet; it stands in the fields of the page, too."""
    seat = seat_for(request, slug, pk, body)
    known = set(ChoicesForm(seat.spec).fields)
    if unknown := sorted(set(body.fields) - known):
        raise InputRefused(f"There is no field “{unknown[0]}” on the page of this rubric. Nothing was stored.")
    review = reviewing.review_for(seat.user, seat.comparison)
    fields = {name: text for name, text in body.fields.items() if text}
    tab = f"token {request.auth.pk}"  # type: ignore[attr-defined]
    keeping.keep(
        review, version=body.version, fields=fields, number=body.number, tab=tab[:36], active_ms=body.active_ms
    )
    return told(seat)


@operations.get_one(f"{AT}/diff", Scope.REVIEW, DiffTold)
def get_diff(request: HttpRequest, slug: str, pk: int) -> DiffTold:
    """Both responses with the words marked in which they differ."""
    made = diffed(seat_for(request, slug, pk).sheet)
    return DiffTold(a=[str(turn.html) for turn in made.a], b=[str(turn.html) for turn in made.b], refusal=made.refusal)


def review_of(seat: Seat) -> Review:
    mine = Review.objects.select_related("rater").filter(rater__user=seat.user, rubric_version=seat.rubric)
    review = get_object_or_404(mine, comparison=seat.comparison)
    review.comparison, review.rubric_version = seat.comparison, seat.rubric
    return review


# ---- passages ------------------------------------------------------------------------------


@operations.make(f"{AT}/spans", Scope.REVIEW, SpanList)
def mark_passage(request: HttpRequest, slug: str, pk: int, body: Marking) -> SpanList:
    """Mark a passage of one response; answered with all of yours."""
    seat = seat_for(request, slug, pk)
    sheet = seat.sheet
    marking.mark(
        reviewing.review_for(seat.user, seat.comparison),
        sheet.left if body.side == "a" else sheet.right,
        user=seat.user,
        **body.model_dump(exclude={"side"}),
    )
    return SpanList(items=spans_told(seat))


@operations.change("/evaluations/{slug:slug}/spans/{int:pk}", Scope.REVIEW, SpanList)
def change_passage(request: HttpRequest, slug: str, pk: int, body: Remark) -> SpanList:
    """Another comment, or another aspect."""
    span = own_span(request, slug, pk)
    seat = seat_for(request, slug, span.review.comparison_id)
    marking.change(span, user=seat.user, **body.model_dump())
    return SpanList(items=spans_told(seat))


@operations.remove("/evaluations/{slug:slug}/spans/{int:pk}", Scope.REVIEW)
def unmark_passage(request: HttpRequest, slug: str, pk: int) -> None:
    marking.unmark(own_span(request, slug, pk), person(request))


def own_span(request: HttpRequest, slug: str, pk: int) -> Span:
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.REVIEW)
    own = Span.objects.select_related("review__rubric_version", "review__comparison__evaluation", "aspect")
    return get_object_or_404(own, pk=pk, review__rater__user=user, review__comparison__evaluation=evaluation)


# ---- as answers have it --------------------------------------------------------------------


def told(seat: Seat) -> ReviewTold:
    sheet, query = seat.sheet, seat.comparison.query
    review = sheet.review
    draft = keeping.draft_of(review) if sheet.stage != "done" else None
    return ReviewTold(
        comparison=seat.comparison.pk,
        rubric_version=seat.rubric.pk,
        stage=sheet.stage,
        state=ReviewState(review.state) if review else None,
        version=sheet.version,
        comes_back=sheet.comes_back,
        query=messages_told(query.messages),
        context=query.context,
        reference=query.reference,
        a=messages_told(sheet.left.messages),
        b=messages_told(sheet.right.messages),
        aspects=[line_told(line, is_pointwise=sheet.is_pointwise) for line in sheet.lines],
        note=review.note if review else "",
        judge_rationales=[one.text for one in sheet.judge.rationales] if sheet.judge else [],
        draft=DraftTold(fields=dict(draft.fields), kept_at=draft.kept_at, number=review.draft_number)
        if draft and review
        else None,
        spans=spans_told(seat, sheet),
    )


def line_told(line: Line, *, is_pointwise: bool) -> LineTold:
    asked = line.asked
    return LineTold(
        aspect=asked.key,
        name=asked.name,
        definition=asked.definition,
        choices=[] if is_pointwise else list(asked.choices),
        scale=[asked.scale_min, asked.scale_max, asked.scale_step] if is_pointwise else None,
        first=given_told(line.first),
        final=given_told(line.final),
        note=line.note,
        reason=line.reason,
        judge=judge_told(line.judge) if line.judge else None,
    )


def given_told(given: Given | None) -> Choice | Scored | None:
    return Scored(a=given.left, b=given.right) if isinstance(given, Scores) else given


def judge_told(said: JudgeChoice) -> JudgeSaid:
    return JudgeSaid(
        choice=said.choice,
        inconsistent=said.inconsistent,
        orders=said.orders,
        rationale=said.rationale,
        remark=said.remark,
        scores=Scored(a=said.scores.left, b=said.scores.right) if said.scores else None,
    )


def spans_told(seat: Seat, sheet: Sheet | None = None) -> list[SpanTold]:
    left = (sheet or seat.sheet).left.pk
    return [span_told(span, left) for span in marking.spans_of(seat.comparison, seat.rater)]


def span_told(span: Span, left: int) -> SpanTold:
    place: Mapping[str, Any] = {name: getattr(span, name) for name in ("turn", "start", "end", "quote", "comment")}
    return SpanTold(
        id=span.pk,
        side="a" if span.response_id == left else "b",
        aspect=span.aspect.key if span.aspect else None,
        **place,
    )

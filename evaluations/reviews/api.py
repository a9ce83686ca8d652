"""API operations of reviewing: the next comparison, each step, spans."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations.access import Action, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.serializers import serialize_messages
from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import ReviewState
from evaluations.domain.roles import Scope
from evaluations.domain.rubrics import RubricSpec
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater, find_rater_of_user, get_or_create_rater
from evaluations.models.rubrics import RubricVersion
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Span
from evaluations.reviews.answers import Answer, Answers, ScorePair
from evaluations.reviews.drafts import read_draft, save_draft
from evaluations.reviews.forms import ChoicesForm
from evaluations.reviews.queues.calibration import find_unseen_calibration
from evaluations.reviews.queues.next_comparison import reserve_next_comparison
from evaluations.reviews.schemas import (
    DraftIn,
    DraftOut,
    FinalChoicesIn,
    FirstChoicesIn,
    JudgeChoiceOut,
    NextComparisonOut,
    NextComparisonQuery,
    ResponseDiffOut,
    ReviewOut,
    ReviewProgressOut,
    ScorePairIn,
    ScorePairOut,
    SheetLineOut,
    SkipIn,
    SpanIn,
    SpanList,
    SpanOut,
    SpanPatch,
    StepIn,
)
from evaluations.reviews.selectors import get_review_progress
from evaluations.reviews.services import (
    get_or_create_review,
    get_review_rubric,
    keep_without_judge,
    reopen_for_judge,
    save_final_choices,
    save_first_choices,
    skip_comparison,
    undo_last_step,
)
from evaluations.reviews.sheet import JudgeChoice, ReviewSheet, SheetLine, build_sheet
from evaluations.reviews.spans import change_span, create_span, delete_span, get_own_spans
from evaluations.reviews.texts import diff_responses
from evaluations.visibility import has_seen_verdicts
from evaluations.web.requests import ApiRequest, AuthenticatedRequest

operations = OperationRouter(tags=["reviews"])
RUBRIC_CHANGED_MEANWHILE = "The rubric was changed meanwhile: look at its questions again. Nothing was stored."
REVIEW_PATH = "/evaluations/{slug:slug}/review/{int:pk}"


@dataclass(frozen=True)
class ReviewRequest:
    """One person before one comparison."""

    user: User
    evaluation: Evaluation
    rubric: RubricVersion
    spec: RubricSpec
    comparison: Comparison

    @property
    def rater(self) -> Rater | None:
        return find_rater_of_user(self.user, self.evaluation)

    @property
    def sheet(self) -> ReviewSheet:
        return build_sheet(self.user, self.comparison, self.rubric, self.rater, self.spec)

    def seen_verdicts(self) -> bool:
        return has_seen_verdicts(self.user, self.comparison)


def load_review_request(request: AuthenticatedRequest, slug: str, pk: int, step: StepIn | None = None) -> ReviewRequest:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.REVIEW)
    rubric = get_review_rubric(evaluation)
    if step is not None and step.rubric_version not in (None, rubric.pk):
        raise InputRefused(RUBRIC_CHANGED_MEANWHILE)
    with_texts = Comparison.objects.select_related("query", "response_a", "response_b")
    comparison = get_object_or_404(with_texts, evaluation=evaluation, pk=pk)
    comparison.evaluation = evaluation
    return ReviewRequest(user, evaluation, rubric, rubric.spec(), comparison)


@operations.get_one("/evaluations/{slug:slug}/review/next", Scope.REVIEW, NextComparisonOut)
def get_next_review(request: AuthenticatedRequest, slug: str, asked: Query[NextComparisonQuery]) -> NextComparisonOut:
    """Your next comparison. It is reserved for you for a limited time."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.REVIEW)
    get_review_rubric(evaluation)
    rater = get_or_create_rater(user, evaluation)
    result = find_unseen_calibration(evaluation, rater)
    found = None if result else reserve_next_comparison(evaluation, rater, exclude=asked.besides)
    how_far = get_review_progress(evaluation, rater)
    return NextComparisonOut(
        comparison=found,
        result_of_calibration=result.pk if result else None,
        progress=ReviewProgressOut(total=how_far.total, done=how_far.done, skipped=how_far.skipped),
    )


@operations.get_one(REVIEW_PATH, Scope.REVIEW, ReviewOut)
def get_review(request: AuthenticatedRequest, slug: str, pk: int) -> ReviewOut:
    """The comparison as you may see it now, without candidate names and others' choices."""
    return review_out(load_review_request(request, slug, pk))


@operations.do(f"{REVIEW_PATH}/save", Scope.REVIEW, ReviewOut)
def save_review(request: AuthenticatedRequest, slug: str, pk: int, body: FirstChoicesIn) -> ReviewOut:
    """Your first choices. They are final unless a judge is revealed for you to confirm them."""
    review_request = load_review_request(request, slug, pk, body)
    save_first_choices(
        review_request.user,
        review_request.comparison,
        choices=read_sent_answers(body),
        version=body.version,
        seen_verdicts=review_request.seen_verdicts(),
        note=body.note,
        active_ms=body.active_ms,
    )
    return review_out(review_request)


@operations.do(f"{REVIEW_PATH}/confirm", Scope.REVIEW, ReviewOut)
def confirm_review(request: AuthenticatedRequest, slug: str, pk: int, body: FinalChoicesIn) -> ReviewOut:
    """Your final choices, made in sight of the judge's."""
    review_request = load_review_request(request, slug, pk, body)
    save_final_choices(
        review_request.user,
        review_request.comparison,
        choices=read_sent_answers(body),
        notes=body.notes,
        reasons={key: str(reason) for key, reason in body.reasons.items()},
        version=body.version,
        note=body.note,
        active_ms=body.active_ms,
    )
    return review_out(review_request)


def read_sent_answers(body: FirstChoicesIn) -> Answers:
    return {key: ScorePair(one.a, one.b) if isinstance(one, ScorePairIn) else one for key, one in body.choices.items()}


@operations.do(f"{REVIEW_PATH}/skip", Scope.REVIEW, ReviewOut)
def skip_review(request: AuthenticatedRequest, slug: str, pk: int, body: SkipIn) -> ReviewOut:
    """Skip this comparison. It comes back when nothing else is left."""
    review_request = load_review_request(request, slug, pk, body)
    skip_comparison(
        review_request.user,
        review_request.comparison,
        reason=body.reason,
        version=body.version,
        active_ms=body.active_ms,
    )
    return review_out(review_request)


@operations.do(f"{REVIEW_PATH}/undo", Scope.REVIEW, ReviewOut)
def undo_review(request: AuthenticatedRequest, slug: str, pk: int, body: StepIn) -> ReviewOut:
    """Undo your last step. Its input becomes the draft of the next."""
    review_request = load_review_request(request, slug, pk, body)
    undo_last_step(
        review_request.user,
        find_own_review(review_request),
        version=body.version,
        active_ms=body.active_ms,
        seen_verdicts=review_request.seen_verdicts(),
    )
    return review_out(review_request)


@operations.do(f"{REVIEW_PATH}/again", Scope.REVIEW, ReviewOut)
def reopen_review_for_judge(request: AuthenticatedRequest, slug: str, pk: int, body: StepIn) -> ReviewOut:
    """Reopen your review after the judge answered, to confirm your choices."""
    review_request = load_review_request(request, slug, pk, body)
    reopen_for_judge(review_request.user, find_own_review(review_request), version=body.version)
    return review_out(review_request)


@operations.do(f"{REVIEW_PATH}/leave", Scope.REVIEW, ReviewOut)
def keep_review_as_is(request: AuthenticatedRequest, slug: str, pk: int, body: StepIn) -> ReviewOut:
    """Keep your choices although the judge has answered since."""
    review_request = load_review_request(request, slug, pk, body)
    keep_without_judge(review_request.user, find_own_review(review_request), version=body.version)
    return review_out(review_request)


@operations.set(f"{REVIEW_PATH}/draft", Scope.REVIEW, ReviewOut)
def save_review_draft(request: ApiRequest, slug: str, pk: int, body: DraftIn) -> ReviewOut:
    """Save unsaved input. The page shows it in its fields, too."""
    review_request = load_review_request(request, slug, pk, body)
    known = set(ChoicesForm(review_request.spec).fields)
    if unknown := sorted(set(body.fields) - known):
        raise InputRefused(f"There is no field “{unknown[0]}” on the page of this rubric. Nothing was stored.")
    review = get_or_create_review(review_request.user, review_request.comparison)
    fields = {name: text for name, text in body.fields.items() if text}
    tab = f"token {request.auth.pk}"
    save_draft(review, version=body.version, fields=fields, number=body.number, tab=tab[:36], active_ms=body.active_ms)
    return review_out(review_request)


@operations.get_one(f"{REVIEW_PATH}/diff", Scope.REVIEW, ResponseDiffOut)
def get_response_diff(request: AuthenticatedRequest, slug: str, pk: int) -> ResponseDiffOut:
    """Both responses with the differing words marked."""
    made = diff_responses(load_review_request(request, slug, pk).sheet)
    return ResponseDiffOut(
        a=[str(turn.html) for turn in made.a], b=[str(turn.html) for turn in made.b], refusal=made.refusal
    )


def find_own_review(review_request: ReviewRequest) -> Review:
    mine = Review.objects.select_related("rater").filter(
        rater__user=review_request.user, rubric_version=review_request.rubric
    )
    review = get_object_or_404(mine, comparison=review_request.comparison)
    review.comparison, review.rubric_version = review_request.comparison, review_request.rubric
    return review


# ---- passages ------------------------------------------------------------------------------


@operations.make(f"{REVIEW_PATH}/spans", Scope.REVIEW, SpanList)
def add_span(request: AuthenticatedRequest, slug: str, pk: int, body: SpanIn) -> SpanList:
    """Highlight a passage of one response. The answer has all your highlights."""
    review_request = load_review_request(request, slug, pk)
    sheet = review_request.sheet
    create_span(
        get_or_create_review(review_request.user, review_request.comparison),
        sheet.left if body.side == "a" else sheet.right,
        user=review_request.user,
        turn=body.turn,
        start=body.start,
        end=body.end,
        quote=body.quote,
        comment=body.comment,
        aspect=body.aspect,
    )
    return SpanList(items=spans_out(review_request))


@operations.change("/evaluations/{slug:slug}/spans/{int:pk}", Scope.REVIEW, SpanList)
def edit_span(request: AuthenticatedRequest, slug: str, pk: int, body: SpanPatch) -> SpanList:
    """Change the comment or the aspect."""
    span = find_own_span(request, slug, pk)
    review_request = load_review_request(request, slug, span.review.comparison_id)
    change_span(span, user=review_request.user, comment=body.comment, aspect=body.aspect)
    return SpanList(items=spans_out(review_request))


@operations.remove("/evaluations/{slug:slug}/spans/{int:pk}", Scope.REVIEW)
def remove_span(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    delete_span(find_own_span(request, slug, pk), request.user)


def find_own_span(request: AuthenticatedRequest, slug: str, pk: int) -> Span:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.REVIEW)
    own = Span.objects.select_related("review__rubric_version", "review__comparison__evaluation", "aspect")
    return get_object_or_404(own, pk=pk, review__rater__user=user, review__comparison__evaluation=evaluation)


# ---- as answers have it --------------------------------------------------------------------


def review_out(review_request: ReviewRequest) -> ReviewOut:
    sheet, query = review_request.sheet, review_request.comparison.query
    review = sheet.review
    draft = read_draft(review) if sheet.stage != "done" else None
    return ReviewOut(
        comparison=review_request.comparison.pk,
        rubric_version=review_request.rubric.pk,
        stage=sheet.stage,
        state=ReviewState(review.state) if review else None,
        version=sheet.version,
        comes_back=sheet.comes_back,
        query=serialize_messages(query.messages),
        context=query.context,
        reference=query.reference,
        a=serialize_messages(sheet.left.messages),
        b=serialize_messages(sheet.right.messages),
        aspects=[sheet_line_out(line, is_pointwise=sheet.is_pointwise) for line in sheet.lines],
        note=review.note if review else "",
        judge_rationales=[one.text for one in sheet.judge.rationales] if sheet.judge else [],
        draft=DraftOut(fields=dict(draft.fields), kept_at=draft.kept_at, number=review.draft_number)
        if draft and review
        else None,
        spans=spans_out(review_request, sheet),
    )


def sheet_line_out(line: SheetLine, *, is_pointwise: bool) -> SheetLineOut:
    asked = line.aspect
    return SheetLineOut(
        aspect=asked.key,
        name=asked.name,
        definition=asked.definition,
        choices=[] if is_pointwise else list(asked.choices),
        scale=[asked.scale_min, asked.scale_max, asked.scale_step] if is_pointwise else None,
        first=answer_out(line.first),
        final=answer_out(line.final),
        note=line.note,
        reason=line.reason,
        judge=judge_choice_out(line.judge) if line.judge else None,
    )


def answer_out(given: Answer | None) -> Choice | ScorePairOut | None:
    return ScorePairOut(a=given.left, b=given.right) if isinstance(given, ScorePair) else given


def judge_choice_out(choice: JudgeChoice) -> JudgeChoiceOut:
    return JudgeChoiceOut(
        choice=choice.choice,
        inconsistent=choice.inconsistent,
        orders=choice.orders,
        rationale=choice.rationale,
        remark=choice.remark,
        scores=ScorePairOut(a=choice.scores.left, b=choice.scores.right) if choice.scores else None,
    )


def spans_out(review_request: ReviewRequest, sheet: ReviewSheet | None = None) -> list[SpanOut]:
    left = (sheet or review_request.sheet).left.pk
    return [span_out(span, left) for span in get_own_spans(review_request.comparison, review_request.rater)]


def span_out(span: Span, left: int) -> SpanOut:
    place: Mapping[str, Any] = {name: getattr(span, name) for name in ("turn", "start", "end", "quote", "comment")}
    return SpanOut(
        id=span.pk,
        side="a" if span.response_id == left else "b",
        aspect=span.aspect.key if span.aspect else None,
        **place,
    )

"""API operations of reviewing: the next comparison, each step, spans."""

from ninja import Query

from evaluations.api.operations import OperationRouter
from evaluations.api.serializers import serialize_messages, serialize_row
from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import ReviewState
from evaluations.domain.roles import Scope
from evaluations.models.judges import get_or_create_rater
from evaluations.reviews.answers import Answer, Answers, ScorePair, SingleScore
from evaluations.reviews.context import ReviewContext, get_own_span_or_404, load_review_context, require_reviewer
from evaluations.reviews.drafts import read_draft
from evaluations.reviews.forms import ChoicesForm
from evaluations.reviews.queues.calibration import find_unseen_calibration
from evaluations.reviews.queues.next_comparison import reserve_next_comparison
from evaluations.reviews.queues.sql import list_open_queues, select_calibrations
from evaluations.reviews.schemas import (
    AgreementOut,
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
    ReviewSummaryOut,
    ScorePairIn,
    ScorePairOut,
    SheetLineOut,
    SingleScoreIn,
    SingleScoreOut,
    SkipIn,
    SpanIn,
    SpanList,
    SpanOut,
    SpanPatch,
    StepIn,
)
from evaluations.reviews.selectors import get_review_progress
from evaluations.reviews.services import (
    create_or_save_draft,
    get_or_create_review,
    get_review_rubric,
    keep_without_judge,
    reopen_for_judge,
    save_final_choices,
    save_first_choices,
    skip_comparison,
    undo_last_step,
)
from evaluations.reviews.sheet import ReviewSheet, SheetLine
from evaluations.reviews.spans import change_span, create_span, delete_span, get_own_spans
from evaluations.reviews.summary import build_review_summary
from evaluations.reviews.texts import diff_responses
from evaluations.web.requests import ApiRequest, AuthenticatedRequest

operations = OperationRouter(tags=["reviews"])
RUBRIC_CHANGED_MEANWHILE = "The rubric changed meanwhile. Check its questions again. Nothing was stored."
REVIEW_PATH = "/evaluations/{slug:slug}/review/{int:pk}"


def load_step_context(request: AuthenticatedRequest, slug: str, pk: int, step: StepIn) -> ReviewContext:
    context = load_review_context(request, slug, pk)
    if step.rubric_version not in (None, context.rubric.pk):
        raise InputRefused(RUBRIC_CHANGED_MEANWHILE)
    return context


@operations.get_one("/evaluations/{slug:slug}/review/next", Scope.REVIEW, NextComparisonOut)
def get_next_review(request: AuthenticatedRequest, slug: str, asked: Query[NextComparisonQuery]) -> NextComparisonOut:
    """Your next comparison. It is reserved for you for a limited time."""
    evaluation, rater = require_reviewer(request.user, slug)
    rubric = get_review_rubric(evaluation)
    rater = rater or get_or_create_rater(request.user, evaluation)
    queues = list_open_queues(rubric.pk)
    calibration = find_unseen_calibration(select_calibrations(queues), rater)
    next_pk = None if calibration else reserve_next_comparison(evaluation, rater, exclude=asked.besides, queues=queues)
    return NextComparisonOut(
        comparison=next_pk,
        result_of_calibration=calibration.pk if calibration else None,
        progress=serialize_row(ReviewProgressOut, get_review_progress(evaluation, rater)),
    )


@operations.get_one("/evaluations/{slug:slug}/review/summary", Scope.REVIEW, ReviewSummaryOut)
def get_review_summary(request: AuthenticatedRequest, slug: str) -> ReviewSummaryOut:
    """Your pace, and how often you agreed with the judge and other reviewers. Counts as seeing their choices."""
    summary = build_review_summary(request.user, *require_reviewer(request.user, slug))
    judge, others = (serialize_row(AgreementOut, agreement) for agreement in (summary.judge, summary.others))
    return serialize_row(ReviewSummaryOut, summary, judge=judge, others=others)


@operations.get_one(REVIEW_PATH, Scope.REVIEW, ReviewOut)
def get_review(request: AuthenticatedRequest, slug: str, pk: int) -> ReviewOut:
    """The comparison as you may see it now, without candidate names and others' choices."""
    return review_out(load_review_context(request, slug, pk))


@operations.do(f"{REVIEW_PATH}/save", Scope.REVIEW, ReviewOut)
def save_review(request: AuthenticatedRequest, slug: str, pk: int, body: FirstChoicesIn) -> ReviewOut:
    """Your first choices. They are final unless a judge is revealed for you to confirm them."""
    context = load_step_context(request, slug, pk, body)
    save_first_choices(
        context.user,
        context.comparison,
        choices=read_sent_answers(body),
        version=body.version,
        seen_verdicts=context.has_seen_verdicts(),
        note=body.note,
        active_ms=body.active_ms,
    )
    return review_out(context)


@operations.do(f"{REVIEW_PATH}/confirm", Scope.REVIEW, ReviewOut)
def confirm_review(request: AuthenticatedRequest, slug: str, pk: int, body: FinalChoicesIn) -> ReviewOut:
    """Your final choices, made in sight of the judge's."""
    context = load_step_context(request, slug, pk, body)
    save_final_choices(
        context.user,
        context.comparison,
        choices=read_sent_answers(body),
        notes=body.notes,
        reasons={key: str(reason) for key, reason in body.reasons.items()},
        version=body.version,
        note=body.note,
        active_ms=body.active_ms,
    )
    return review_out(context)


def read_sent_answers(body: FirstChoicesIn) -> Answers:
    return {key: read_sent_answer(answer) for key, answer in body.choices.items()}


def read_sent_answer(sent: Choice | ScorePairIn | SingleScoreIn) -> Answer:
    if isinstance(sent, ScorePairIn):
        return ScorePair(sent.a, sent.b)
    return SingleScore(sent.score) if isinstance(sent, SingleScoreIn) else sent


@operations.do(f"{REVIEW_PATH}/skip", Scope.REVIEW, ReviewOut)
def skip_review(request: AuthenticatedRequest, slug: str, pk: int, body: SkipIn) -> ReviewOut:
    """Skip this comparison. It comes back when nothing else is left."""
    context = load_step_context(request, slug, pk, body)
    skip_comparison(
        context.user,
        context.comparison,
        reason=body.reason,
        version=body.version,
        active_ms=body.active_ms,
    )
    return review_out(context)


@operations.do(f"{REVIEW_PATH}/undo", Scope.REVIEW, ReviewOut)
def undo_review(request: AuthenticatedRequest, slug: str, pk: int, body: StepIn) -> ReviewOut:
    """Undo your last step. Its input becomes the draft of the next."""
    context = load_step_context(request, slug, pk, body)
    undo_last_step(
        context.user,
        context.get_own_review_or_404(),
        version=body.version,
        active_ms=body.active_ms,
        seen_verdicts=context.has_seen_verdicts(),
    )
    return review_out(context)


@operations.do(f"{REVIEW_PATH}/again", Scope.REVIEW, ReviewOut)
def reopen_review_for_judge(request: AuthenticatedRequest, slug: str, pk: int, body: StepIn) -> ReviewOut:
    """Reopen your review after the judge answered, to confirm your choices."""
    context = load_step_context(request, slug, pk, body)
    reopen_for_judge(context.user, context.get_own_review_or_404(), version=body.version)
    return review_out(context)


@operations.do(f"{REVIEW_PATH}/leave", Scope.REVIEW, ReviewOut)
def keep_review_as_is(request: AuthenticatedRequest, slug: str, pk: int, body: StepIn) -> ReviewOut:
    """Keep your choices although the judge has answered since."""
    context = load_step_context(request, slug, pk, body)
    keep_without_judge(context.user, context.get_own_review_or_404(), version=body.version)
    return review_out(context)


@operations.set(f"{REVIEW_PATH}/draft", Scope.REVIEW, ReviewOut)
def save_review_draft(request: ApiRequest, slug: str, pk: int, body: DraftIn) -> ReviewOut:
    """Save unsaved input. The page shows it in its fields, too."""
    context = load_step_context(request, slug, pk, body)
    known = ChoicesForm(context.spec, is_single=context.comparison.is_single).fields.keys()
    if unknown := sorted(body.fields.keys() - known):
        raise InputRefused(f"There is no field “{unknown[0]}” on the page of this rubric. Nothing was stored.")
    create_or_save_draft(
        context.user,
        context.comparison,
        rater=context.initial_rater,
        version=body.version,
        fields={name: text for name, text in body.fields.items() if text},
        number=body.number,
        tab=f"token {request.auth.pk}"[:36],
        active_ms=body.active_ms,
    )
    return review_out(context)


@operations.get_one(f"{REVIEW_PATH}/diff", Scope.REVIEW, ResponseDiffOut)
def get_response_diff(request: AuthenticatedRequest, slug: str, pk: int) -> ResponseDiffOut:
    """Both responses with the differing words marked."""
    diff = diff_responses(load_review_context(request, slug, pk).load_sheet())
    a, b = ([str(turn.html) for turn in turns] for turns in (diff.a, diff.b))
    return ResponseDiffOut(a=a, b=b, refusal=diff.refusal)


# ---- passages ------------------------------------------------------------------------------


@operations.make(f"{REVIEW_PATH}/spans", Scope.REVIEW, SpanList)
def add_span(request: AuthenticatedRequest, slug: str, pk: int, body: SpanIn) -> SpanList:
    """Highlight a passage of one response. The answer has all your highlights."""
    context = load_review_context(request, slug, pk)
    sheet = context.load_sheet()
    create_span(
        get_or_create_review(context.user, context.comparison, context.initial_rater),
        sheet.left if body.side == "a" else sheet.right,
        user=context.user,
        turn=body.turn,
        start=body.start,
        end=body.end,
        quote=body.quote,
        comment=body.comment,
        aspect=body.aspect,
    )
    return SpanList(items=spans_out(context))


@operations.change("/evaluations/{slug:slug}/spans/{int:pk}", Scope.REVIEW, SpanList)
def edit_span(request: AuthenticatedRequest, slug: str, pk: int, body: SpanPatch) -> SpanList:
    """Change the comment or the aspect."""
    span = get_own_span_or_404(request.user, slug, pk)
    context = load_review_context(request, slug, span.review.comparison_id)
    change_span(span, user=context.user, comment=body.comment, aspect=body.aspect)
    return SpanList(items=spans_out(context))


@operations.remove("/evaluations/{slug:slug}/spans/{int:pk}", Scope.REVIEW)
def remove_span(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    delete_span(get_own_span_or_404(request.user, slug, pk), request.user)


# ---- as answers have it --------------------------------------------------------------------


def review_out(context: ReviewContext) -> ReviewOut:
    sheet, query = context.load_sheet(), context.comparison.query
    review = sheet.review
    draft = read_draft(review) if sheet.stage != "done" else None
    return ReviewOut(
        comparison=context.comparison.pk,
        rubric_version=context.rubric.pk,
        stage=sheet.stage,
        state=ReviewState(review.state) if review else None,
        version=sheet.version,
        comes_back=sheet.comes_back,
        query=serialize_messages(query.messages),
        context=query.context,
        reference=query.reference,
        a=serialize_messages(sheet.left.messages),
        b=None if context.comparison.is_single else serialize_messages(sheet.right.messages),
        aspects=[sheet_line_out(line, is_pointwise=sheet.is_pointwise) for line in sheet.lines],
        note=review.note if review else "",
        judge_rationales=[rationale.text for rationale in sheet.judge.rationales] if sheet.judge else [],
        draft=DraftOut(fields=dict(draft.fields), kept_at=draft.kept_at, number=review.draft_number)
        if draft and review
        else None,
        spans=spans_out(context, sheet),
    )


def sheet_line_out(line: SheetLine, *, is_pointwise: bool) -> SheetLineOut:
    aspect = line.aspect
    return serialize_row(
        SheetLineOut,
        line,
        aspect=aspect.key,
        name=aspect.name,
        definition=aspect.definition,
        choices=[] if is_pointwise else list(aspect.choices),
        scale=[aspect.scale_min, aspect.scale_max, aspect.scale_step] if is_pointwise else None,
        first=answer_out(line.first),
        final=answer_out(line.final),
        judge=serialize_row(JudgeChoiceOut, line.judge, scores=answer_out(line.judge.scores)) if line.judge else None,
    )


def answer_out(answer: Answer | None) -> Choice | ScorePairOut | SingleScoreOut | None:
    if isinstance(answer, SingleScore):
        return SingleScoreOut(score=answer.value)
    return ScorePairOut(a=answer.left, b=answer.right) if isinstance(answer, ScorePair) else answer


def spans_out(context: ReviewContext, sheet: ReviewSheet | None = None) -> list[SpanOut]:
    left = (sheet or context.load_sheet()).left.pk
    return [
        serialize_row(
            SpanOut,
            span,
            side="a" if span.response_id == left else "b",
            aspect=span.aspect.key if span.aspect else None,
        )
        for span in get_own_spans(context.comparison, context.rater)
    ]

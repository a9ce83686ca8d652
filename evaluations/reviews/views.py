"""The review page, its steps, its drafts, its spans."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect, push_url

from evaluations.access import Action, is_allowed, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import ReviewState
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Span
from evaluations.rendered_texts import render_texts
from evaluations.reviews.drafts import DraftChangedElsewhere, read_draft, save_draft
from evaluations.reviews.forms import ChoicesForm, DraftForm, SkipForm, SpanCommentForm, SpanForm, StepForm
from evaluations.reviews.queues.calibration import is_end_of_calibration
from evaluations.reviews.queues.next_comparison import reserve_next_comparison
from evaluations.reviews.raters import find_rater_of_user, get_or_create_rater
from evaluations.reviews.selectors import get_earlier_guidelines, get_earlier_review, get_review_progress
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
from evaluations.reviews.spans import change_span, create_span, delete_span, get_own_spans
from evaluations.reviews.texts import build_review_texts, diff_responses
from evaluations.reviews.workbench import (
    ReviewContext,
    build_review_context,
    clean_or_refuse_step,
    clean_step,
    get_own_review_or_404,
    has_next_page,
    is_fragment,
    iter_page_texts,
    load_sheet,
    open_next_comparison,
    render_refusal,
    render_workbench,
    respond_after_save,
    with_review_context,
)
from evaluations.web.requests import AuthenticatedRequest


@require_safe
def guidelines_page(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug)
    earlier_shown = "earlier" in request.GET and is_allowed(user, Action.SEE_ALL, evaluation)
    context = {
        "page": "guidelines",
        "evaluation": evaluation,
        "earlier_shown": earlier_shown,
        "earlier": get_earlier_guidelines(evaluation) if earlier_shown else [],
    }
    return render(request, "guidelines/guidelines.html", context)


@never_cache
@require_safe
def review_next(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Redirect to the next comparison, or explain why there is none."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.REVIEW)
    try:
        rubric = get_review_rubric(evaluation)
    except InputRefused as refusal:
        return render_nothing_to_review(request, evaluation, str(refusal))
    return open_next_comparison(request, evaluation, rubric) or render_nothing_to_review(request, evaluation)


@never_cache
@require_safe
@with_review_context
def review_comparison(desk: ReviewContext) -> HttpResponse:
    return render_workbench(desk)


def render_nothing_to_review(request: AuthenticatedRequest, evaluation: Evaluation, reason: str = "") -> HttpResponse:
    if is_fragment(request):
        return HttpResponseClientRedirect(request.path)
    rater = find_rater_of_user(request.user, evaluation)
    context = {
        "page": "review",
        "evaluation": evaluation,
        "reason": reason,
        "progress": get_review_progress(evaluation, rater),
        "earlier": get_earlier_review(evaluation, rater, None),
    }
    return render(request, "review/nothing.html", context)


MAX_EXCLUDED = 50


@never_cache
@gzip_page
@require_safe
def review_ahead(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The next workbench that the page does not have yet; 204 if there is none.

    It takes the person's place in the queue, which expires if the page is never shown. After
    the last comparison of a calibration comes its result, so there is nothing to fetch ahead.
    """
    user = request.user
    evaluation = require_evaluation(user, slug, Action.REVIEW)
    try:
        rubric = get_review_rubric(evaluation)
    except InputRefused:
        return HttpResponse(status=204)
    besides = [int(pk) for pk in request.GET.getlist("besides")[:MAX_EXCLUDED] if pk.isdecimal() and len(pk) < 19]
    rater = get_or_create_rater(user, evaluation)
    pk = (
        None
        if is_end_of_calibration(evaluation, rater, besides)
        else reserve_next_comparison(evaluation, rater, besides=besides)
    )
    if pk is None:
        return HttpResponse(status=204)
    desk = build_review_context(request, evaluation, rubric, rater, pk)
    return push_url(render_workbench(desk, "review/_workbench.html"), desk.address)


@never_cache
@require_safe
@with_review_context
def review_diff(desk: ReviewContext) -> HttpResponse:
    """Both responses with their differing words marked; the page takes each to its place."""
    return render(desk.request, "review/_diff.html", {"diff": diff_responses(load_sheet(desk))})


@require_POST
@with_review_context
def review_save(desk: ReviewContext) -> HttpResponse:
    """The first choices: then the judge's appear, or the next comparison where there are none."""
    form = ChoicesForm(desk.spec, desk.request.POST)
    try:
        given = clean_step(desk, form)
        saved = save_first_choices(
            desk.user,
            desk.comparison,
            choices=form.choices(),
            seen_verdicts=desk.seen_verdicts(),
            version=given["version"],
            note=given["note"],
            active_ms=given["active_ms"],
        )
    except InputRefused as refusal:
        return render_refusal(desk, refusal, form, stage="choose")
    return respond_after_save(desk, saved, leads_on=saved.state == ReviewState.FINAL)


@require_POST
@with_review_context
def review_confirm(desk: ReviewContext) -> HttpResponse:
    """The final choices: confirmed or changed in sight of the judge's."""
    form = ChoicesForm(desk.spec, desk.request.POST)
    try:
        given = clean_step(desk, form)
        saved = save_final_choices(
            desk.user,
            desk.comparison,
            choices=form.choices(),
            notes=form.notes(),
            reasons=form.reasons(),
            version=given["version"],
            note=given["note"],
            active_ms=given["active_ms"],
        )
    except InputRefused as refusal:
        return render_refusal(desk, refusal, form, stage="confirm")
    return respond_after_save(
        desk, saved, leads_on=desk.request.POST.get("then") == "next" or has_next_page(desk.request)
    )


@require_POST
@with_review_context
def review_skip(desk: ReviewContext) -> HttpResponse:
    try:
        given = clean_step(desk, SkipForm(desk.request.POST))
        skipped = skip_comparison(
            desk.user,
            desk.comparison,
            reason=given["reason"],
            version=given["version"],
            active_ms=given["active_ms"],
        )
    except InputRefused as refusal:
        return render_refusal(desk, refusal)
    return respond_after_save(desk, skipped, leads_on=True)


@require_POST
@with_review_context
def review_undo(desk: ReviewContext) -> HttpResponse:
    """Back to that comparison, with what was chosen, or what is sent along, in its fields."""
    sent = ChoicesForm(desk.spec, desk.request.POST)
    try:
        given = clean_step(desk, StepForm(desk.request.POST))
        undo_last_step(
            desk.user,
            get_own_review_or_404(desk),
            version=given["version"],
            tab=given["tab"],
            active_ms=given["active_ms"],
            seen_verdicts=desk.seen_verdicts(),
            instead={name: value for name, value in sent.entered().items() if value} if sent.is_valid() else None,
        )
    except InputRefused as refusal:
        return render_refusal(desk, refusal)
    return push_url(render_workbench(desk), desk.address) if is_fragment(desk.request) else redirect(desk.address)


@require_POST
@with_review_context
def review_again(desk: ReviewContext) -> HttpResponse:
    """Reopen the review after the judge answered, or keep the choices."""
    leaves = desk.request.POST.get("then") == "leave"
    try:
        given = clean_step(desk, StepForm(desk.request.POST))
        if leaves:
            review = keep_without_judge(desk.user, get_own_review_or_404(desk), version=given["version"])
        else:
            review = reopen_for_judge(
                desk.user, get_own_review_or_404(desk), version=given["version"], tab=given["tab"]
            )
    except InputRefused as refusal:
        return render_refusal(desk, refusal)
    return respond_after_save(desk, review, leads_on=leaves)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def review_draft(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    return save_entered_draft(request, slug, pk) if request.method == "POST" else render_panel(request, slug, pk)


@with_review_context
def render_panel(desk: ReviewContext) -> HttpResponse:
    """The panel alone: what a page needs that was made before the last step was stored."""
    return render_workbench(desk, "review/_panel.html")


@with_review_context
def save_entered_draft(desk: ReviewContext) -> HttpResponse:
    try:
        given = clean_step(desk, DraftForm(desk.request.POST))
        fields = get_entered_fields(desk)
        review = get_or_create_review(desk.user, desk.comparison)
        review = save_draft(
            review,
            version=given["version"],
            fields=fields,
            number=given["number"],
            tab=given["tab"],
            active_ms=given["active_ms"],
        )
    except DraftChangedElsewhere as other:
        return JsonResponse({"message": str(other), **describe_draft(other.review)}, status=409)
    except InputRefused as refusal:
        return JsonResponse({"message": str(refusal)}, status=422)
    return JsonResponse(describe_draft(review))


def get_entered_fields(desk: ReviewContext) -> dict[str, str]:
    """The non-empty fields of the choice panel."""
    form = ChoicesForm(desk.spec, desk.request.POST)
    clean_or_refuse_step(form)
    return {name: value for name, value in form.entered().items() if value}


def describe_draft(review: Review) -> dict[str, Any]:
    draft = read_draft(review)
    return {
        "number": review.draft_number,
        "fields": draft.fields if draft else {},
        "at": f"{timezone.localtime(draft.kept_at):%H:%M}" if draft else "",
    }


@require_POST
@with_review_context
def review_span(desk: ReviewContext) -> HttpResponse:
    """Mark a passage of one response; a draft of the review is begun where there is none."""
    form = SpanForm(desk.request.POST)
    side = desk.request.POST.get("side", "")
    try:
        given = clean_or_refuse_step(form)
        sheet = load_sheet(desk)
        create_span(
            get_or_create_review(desk.user, desk.comparison),
            sheet.left if given.pop("side") == "a" else sheet.right,
            user=desk.user,
            **given,
        )
    except InputRefused as refusal:
        return render_spans(desk, side, refusal=str(refusal))
    return render_spans(desk, side)


def with_own_span(
    view: Callable[[ReviewContext, Span], HttpResponse],
) -> Callable[[AuthenticatedRequest, str, int], HttpResponse]:
    """Pass the view the user's own span with its review context."""

    @wraps(view)
    def guarded(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
        span = get_own_span_or_404(request.user, slug, pk)
        return with_review_context(lambda desk: view(desk, span))(request, slug, span.review.comparison_id)

    return guarded


def get_own_span_or_404(user: User, slug: str, pk: int) -> Span:
    evaluation = require_evaluation(user, slug, Action.REVIEW)
    own = Span.objects.select_related("review__rubric_version", "review__comparison__evaluation", "aspect")
    return get_object_or_404(own, pk=pk, review__rater__user=user, review__comparison__evaluation=evaluation)


@require_POST
@with_own_span
def review_span_change(desk: ReviewContext, span: Span) -> HttpResponse:
    """Another comment, or another aspect."""
    side = get_span_side(span, desk)
    try:
        change_span(span, user=desk.user, **clean_or_refuse_step(SpanCommentForm(desk.request.POST)))
    except InputRefused as refusal:
        return render_spans(desk, side, refusal=str(refusal))
    return render_spans(desk, side)


@require_POST
@with_own_span
def review_span_remove(desk: ReviewContext, span: Span) -> HttpResponse:
    side = get_span_side(span, desk)
    delete_span(span, desk.user)
    return render_spans(desk, side)


def get_span_side(span: Span, desk: ReviewContext) -> str:
    return "a" if span.response_id == load_sheet(desk).left.pk else "b"


def render_spans(desk: ReviewContext, key: str, refusal: str = "") -> HttpResponse:
    """The highlights of one response: as a fragment, or a redirect to them."""
    if is_fragment(desk.request):
        return render_span_list(desk, key, refusal)
    if not refusal:
        return redirect(f"{desk.address}#spans-{key}")
    return render_workbench(desk, status=422, **build_refusal_context(desk, key, refusal))


def render_span_list(desk: ReviewContext, key: str, refusal: str) -> HttpResponse:
    own = get_own_spans(desk.comparison, find_rater_of_user(desk.user, desk.evaluation))
    sheet = load_sheet(desk)
    texts = build_review_texts(sheet, render_texts(iter_page_texts(sheet, "")), own)
    context = {
        "evaluation": desk.evaluation,
        "comparison": desk.comparison,
        "aspects": desk.aspects,
        "side": texts.sides[1 if key == "b" else 0],
        **build_refusal_context(desk, key, refusal),
    }
    return render(desk.request, "review/_texts_spans.html", context, status=422 if refusal else 200)


def build_refusal_context(desk: ReviewContext, key: str, refusal: str) -> dict[str, Any]:
    written = desk.request.POST.dict() if refusal else {}
    return {"span_refusal": refusal, "refused_side": key, "entered": written}

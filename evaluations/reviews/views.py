"""The review page with its steps, drafts and highlights."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect, push_url

from evaluations.access import Action, is_allowed, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import ReviewState
from evaluations.models.comparisons import Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import find_rater_of_user, get_or_create_rater
from evaluations.models.verdicts import Review, Span
from evaluations.rendered_texts import render_texts
from evaluations.reviews.context import ReviewContext, build_review_context, get_own_span_or_404, require_reviewer
from evaluations.reviews.drafts import DraftChangedElsewhere, read_draft
from evaluations.reviews.forms import DraftForm, SkipForm, SpanCommentForm, SpanForm, StepForm
from evaluations.reviews.page import (
    clean_or_refuse_step,
    clean_step,
    has_next_page,
    is_fragment,
    iter_page_texts,
    open_next_comparison,
    render_comparison,
    render_refusal,
    respond_after_save,
    with_review_page,
)
from evaluations.reviews.queues.calibration import is_end_of_calibration
from evaluations.reviews.queues.next_comparison import reserve_next_comparison
from evaluations.reviews.queues.sql import list_open_queues, read_stock_and_own_counts, select_calibrations
from evaluations.reviews.selectors import (
    build_review_progress,
    get_earlier_guidelines,
    get_earlier_reviews,
    get_review_progress,
    get_review_subject,
)
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
from evaluations.reviews.spans import change_span, create_span, delete_span, get_own_spans
from evaluations.reviews.summary import build_review_summary
from evaluations.reviews.texts import build_review_texts, diff_responses
from evaluations.web.requests import AuthenticatedRequest


@require_safe
def guidelines_page(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug)
    shows_earlier = "earlier" in request.GET and is_allowed(user, Action.SEE_ALL, evaluation)
    context = {
        "page": "guidelines",
        "evaluation": evaluation,
        "shows_earlier": shows_earlier,
        "earlier": get_earlier_guidelines(evaluation) if shows_earlier else [],
    }
    return render(request, "guidelines/guidelines.html", context)


@never_cache
@require_safe
def review_next(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Redirect to the next comparison, or explain why there is none."""
    evaluation, rater = require_reviewer(request.user, slug)
    try:
        rubric = get_review_rubric(evaluation)
    except InputRefused as refusal:
        return render_nothing_to_review(request, evaluation, str(refusal))
    return open_next_comparison(request, evaluation, rubric, rater) or render_nothing_to_review(request, evaluation)


@never_cache
@require_safe
@with_review_page
def review_comparison(page: ReviewContext) -> HttpResponse:
    return render_comparison(page)


def render_nothing_to_review(request: AuthenticatedRequest, evaluation: Evaluation, reason: str = "") -> HttpResponse:
    if is_fragment(request):
        return HttpResponseClientRedirect(request.path)
    rater = find_rater_of_user(request.user, evaluation)
    earlier = get_earlier_reviews(evaluation, rater, None)
    progress = get_review_progress(evaluation, rater)
    context = {
        "page": "review",
        "evaluation": evaluation,
        "reason": reason,
        "progress": progress,
        "subject": get_review_subject(evaluation),
        "has_responses": not progress.total and Response.objects.filter(query__evaluation=evaluation).exists(),
        "summary": build_review_summary(request.user, evaluation, rater) if progress.done else None,
        "earlier": earlier[0] if earlier else None,
    }
    return render(request, "review/nothing.html", context)


@never_cache
@require_safe
def review_summary(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The reviewer's pace, and how often they agreed with the judge and others."""
    evaluation, rater = require_reviewer(request.user, slug)
    summary = build_review_summary(request.user, evaluation, rater)
    return render(request, "review/summary.html", {"page": "review", "evaluation": evaluation, "summary": summary})


MAX_EXCLUDED = 50


@never_cache
@gzip_page
@require_safe
def review_ahead(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Render the next comparison that the page does not have yet; 204 if there is none.

    It is reserved for the reviewer; the reservation expires if the page is never shown. The last comparison of a
    calibration is followed by its result, so there is nothing to prefetch.
    """
    evaluation, rater = require_reviewer(request.user, slug)
    try:
        rubric = get_review_rubric(evaluation)
    except InputRefused:
        return HttpResponse(status=204)
    excluded = [int(pk) for pk in request.GET.getlist("besides")[:MAX_EXCLUDED] if pk.isdecimal() and len(pk) < 19]
    rater = rater or get_or_create_rater(request.user, evaluation)
    queues = list_open_queues(rubric.pk)
    if is_end_of_calibration(select_calibrations(queues), rater, excluded):
        return HttpResponse(status=204)
    stock, own = read_stock_and_own_counts(evaluation, rater)
    pk = reserve_next_comparison(evaluation, rater, exclude=excluded, queues=queues, stock=stock)
    if pk is None:
        return HttpResponse(status=204)
    # A reservation changes no count, unless it first had to fill the queue.
    progress = build_review_progress(evaluation, rater, stock, own) if stock and stock.is_full else None
    page = build_review_context(request, evaluation, rubric, rater, pk, open_queues=queues, progress=progress)
    return push_url(render_comparison(page, "review/_comparison.html"), page.address)


@never_cache
@require_safe
@with_review_page
def review_diff(page: ReviewContext) -> HttpResponse:
    """Render both responses with their differing words marked."""
    return render(page.request, "review/_diff.html", {"diff": diff_responses(page.load_sheet())})


@require_POST
@with_review_page
def review_save(page: ReviewContext) -> HttpResponse:
    """Save the first choices, then show the judge's, or the next comparison if there are none."""
    form = page.read_choices_form()
    try:
        step = clean_step(page, form)
        saved = save_first_choices(
            page.user,
            page.comparison,
            choices=form.choices(),
            seen_verdicts=page.has_seen_verdicts(),
            version=step["version"],
            rater=page.initial_rater,
            note=step["note"],
            active_ms=step["active_ms"],
        )
    except InputRefused as refusal:
        return render_refusal(page, refusal, form, stage="choose")
    return respond_after_save(page, saved, opens_next=saved.state == ReviewState.FINAL)


@require_POST
@with_review_page
def review_confirm(page: ReviewContext) -> HttpResponse:
    """Save the final choices, made with the judge's in view."""
    form = page.read_choices_form()
    try:
        step = clean_step(page, form)
        saved = save_final_choices(
            page.user,
            page.comparison,
            choices=form.choices(),
            notes=form.texts("note"),
            reasons=form.texts("reason"),
            version=step["version"],
            rater=page.initial_rater,
            note=step["note"],
            active_ms=step["active_ms"],
        )
    except InputRefused as refusal:
        return render_refusal(page, refusal, form, stage="confirm")
    return respond_after_save(
        page, saved, opens_next=page.request.POST.get("then") == "next" or has_next_page(page.request)
    )


@require_POST
@with_review_page
def review_skip(page: ReviewContext) -> HttpResponse:
    try:
        step = clean_step(page, SkipForm(page.request.POST))
        skipped = skip_comparison(
            page.user,
            page.comparison,
            reason=step["reason"],
            version=step["version"],
            rater=page.initial_rater,
            active_ms=step["active_ms"],
        )
    except InputRefused as refusal:
        return render_refusal(page, refusal)
    return respond_after_save(page, skipped, opens_next=True)


@require_POST
@with_review_page
def review_undo(page: ReviewContext) -> HttpResponse:
    """Undo the last step; its choices, or the fields that are sent, fill the form."""
    form = page.read_choices_form()
    try:
        step = clean_step(page, StepForm(page.request.POST))
        undo_last_step(
            page.user,
            page.get_own_review_or_404(),
            version=step["version"],
            tab=step["tab"],
            active_ms=step["active_ms"],
            seen_verdicts=page.has_seen_verdicts(),
            instead=form.filled() if form.is_valid() else None,
        )
    except InputRefused as refusal:
        return render_refusal(page, refusal)
    return push_url(render_comparison(page), page.address) if is_fragment(page.request) else redirect(page.address)


@require_POST
@with_review_page
def review_reopen(page: ReviewContext) -> HttpResponse:
    """Reopen the review after the judge answered, or keep the choices."""
    keeps = page.request.POST.get("then") == "leave"
    try:
        step = clean_step(page, StepForm(page.request.POST))
        if keeps:
            review = keep_without_judge(page.user, page.get_own_review_or_404(), version=step["version"])
        else:
            review = reopen_for_judge(page.user, page.get_own_review_or_404(), version=step["version"], tab=step["tab"])
    except InputRefused as refusal:
        return render_refusal(page, refusal)
    return respond_after_save(page, review, opens_next=keeps)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def review_draft(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    return save_entered_draft(request, slug, pk) if request.method == "POST" else render_panel(request, slug, pk)


@with_review_page
def render_panel(page: ReviewContext) -> HttpResponse:
    """Render the panel, for a page that was prefetched before the last step was stored."""
    return render_comparison(page, "review/_panel.html")


@with_review_page
def save_entered_draft(page: ReviewContext) -> HttpResponse:
    try:
        step = clean_step(page, DraftForm(page.request.POST))
        form = page.read_choices_form()
        clean_or_refuse_step(form)
        review = create_or_save_draft(
            page.user,
            page.comparison,
            rater=page.initial_rater,
            version=step["version"],
            fields=form.filled(),
            number=step["number"],
            tab=step["tab"],
            active_ms=step["active_ms"],
        )
    except DraftChangedElsewhere as other:
        return JsonResponse({"message": str(other), **describe_draft(other.review)}, status=409)
    except InputRefused as refusal:
        return JsonResponse({"message": str(refusal)}, status=422)
    return JsonResponse(describe_draft(review))


def describe_draft(review: Review) -> dict[str, Any]:
    draft = read_draft(review)
    return {
        "number": review.draft_number,
        "fields": draft.fields if draft else {},
        "at": f"{timezone.localtime(draft.kept_at):%H:%M}" if draft else "",
    }


@require_POST
@with_review_page
def review_span(page: ReviewContext) -> HttpResponse:
    """Highlight a passage of one response, in a new draft review if there is none."""
    form = SpanForm(page.request.POST)
    side = page.request.POST.get("side", "")
    try:
        fields = clean_or_refuse_step(form)
        sheet = page.load_sheet()
        create_span(
            get_or_create_review(page.user, page.comparison, page.initial_rater),
            sheet.left if fields.pop("side") == "a" else sheet.right,
            user=page.user,
            **fields,
        )
    except InputRefused as refusal:
        return render_spans(page, side, refusal=str(refusal))
    return render_spans(page, side)


def with_own_span(
    view: Callable[[ReviewContext, Span], HttpResponse],
) -> Callable[[AuthenticatedRequest, str, int], HttpResponse]:
    """Pass the view the user's own span with its review context."""

    @wraps(view)
    def guarded(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
        span = get_own_span_or_404(request.user, slug, pk)
        return with_review_page(lambda page: view(page, span))(request, slug, span.review.comparison_id)

    return guarded


@require_POST
@with_own_span
def review_span_change(page: ReviewContext, span: Span) -> HttpResponse:
    """Change the comment or the aspect of a highlight."""
    side = get_span_side(span, page)
    try:
        change_span(span, user=page.user, **clean_or_refuse_step(SpanCommentForm(page.request.POST)))
    except InputRefused as refusal:
        return render_spans(page, side, refusal=str(refusal))
    return render_spans(page, side)


@require_POST
@with_own_span
def review_span_remove(page: ReviewContext, span: Span) -> HttpResponse:
    side = get_span_side(span, page)
    delete_span(span, page.user)
    return render_spans(page, side)


def get_span_side(span: Span, page: ReviewContext) -> str:
    return "a" if span.response_id == page.load_sheet().left.pk else "b"


def render_spans(page: ReviewContext, key: str, refusal: str = "") -> HttpResponse:
    """Render the highlights of one response as a fragment, or redirect to them."""
    if is_fragment(page.request):
        return render_span_list(page, key, refusal)
    if not refusal:
        return redirect(f"{page.address}#spans-{key}")
    return render_comparison(page, status=422, **build_span_refusal(page, key, refusal))


def render_span_list(page: ReviewContext, key: str, refusal: str) -> HttpResponse:
    spans = get_own_spans(page.comparison, page.rater)
    sheet = page.load_sheet()
    texts = build_review_texts(sheet, render_texts(iter_page_texts(sheet, "")), spans)
    context = {
        "evaluation": page.evaluation,
        "comparison": page.comparison,
        "aspects": page.aspects,
        "side": texts.sides[1 if key == "b" else 0],
        **build_span_refusal(page, key, refusal),
    }
    return render(page.request, "review/_annotations.html", context, status=422 if refusal else 200)


def build_span_refusal(page: ReviewContext, key: str, refusal: str) -> dict[str, Any]:
    fields = page.request.POST.dict() if refusal else {}
    return {"span_refusal": refusal, "refused_side": key, "entered": fields}

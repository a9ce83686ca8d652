"""Passages that a person marks on the review page: one door for each thing done with them."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.forms.spans import RemarkForm, SpanForm
from evaluations.models import Span, User
from evaluations.services.reviewing import marking, reviewing
from evaluations.services.reviewing.arranging import texts_for
from evaluations.services.reviewing.typesetting import html_of
from evaluations.web.desk import Desk, at_desk, is_fragment, sheet_of, shown, texts_on
from evaluations.web.review_steps import entered


@require_POST
@at_desk
def review_span(desk: Desk) -> HttpResponse:
    """Mark a passage of one response; a draft of the review is begun where there is none."""
    form = SpanForm(desk.request.POST)
    side = desk.request.POST.get("side", "")
    try:
        given = entered(form)
        sheet = sheet_of(desk)
        marking.mark(
            reviewing.review_for(desk.user, desk.comparison),
            sheet.left if given.pop("side") == "a" else sheet.right,
            user=desk.user,
            **given,
        )
    except InputRefused as refusal:
        return spans(desk, side, refusal=str(refusal))
    return spans(desk, side)


def at_own_span(view: Callable[[Desk, Span], HttpResponse]) -> Callable[[HttpRequest, str, int], HttpResponse]:
    """Hand the view a passage that this person marked, and the desk at which they did."""

    @wraps(view)
    def guarded(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
        span = own_span(cast(User, request.user), slug, pk)
        return at_desk(lambda desk: view(desk, span))(request, slug, span.review.comparison_id)

    return guarded


def own_span(user: User, slug: str, pk: int) -> Span:
    evaluation = access.evaluation_for(user, slug, Action.REVIEW)
    own = Span.objects.select_related("review__rubric_version", "review__comparison__evaluation", "aspect")
    return get_object_or_404(own, pk=pk, review__rater__user=user, review__comparison__evaluation=evaluation)


@require_POST
@at_own_span
def review_span_change(desk: Desk, span: Span) -> HttpResponse:
    """Another comment, or another aspect."""
    side = side_of(span, desk)
    try:
        marking.change(span, user=desk.user, **entered(RemarkForm(desk.request.POST)))
    except InputRefused as refusal:
        return spans(desk, side, refusal=str(refusal))
    return spans(desk, side)


@require_POST
@at_own_span
def review_span_remove(desk: Desk, span: Span) -> HttpResponse:
    side = side_of(span, desk)
    marking.unmark(span, desk.user)
    return spans(desk, side)


def side_of(span: Span, desk: Desk) -> str:
    return "a" if span.response_id == sheet_of(desk).left.pk else "b"


def spans(desk: Desk, key: str, refusal: str = "") -> HttpResponse:
    """What is marked in that response now: as a part of the page, or the way to it."""
    if is_fragment(desk.request):
        return part(desk, key, refusal)
    if not refusal:
        return redirect(f"{desk.address}#spans-{key}")
    return shown(desk, status=422, **what_was_refused(desk, key, refusal))


def part(desk: Desk, key: str, refusal: str) -> HttpResponse:
    own = marking.spans_of(desk.comparison, reviewing.rater_of(desk.user, desk.evaluation))
    sheet = sheet_of(desk)
    texts = texts_for(sheet, html_of(texts_on(sheet, "")), own)
    context = {
        "evaluation": desk.evaluation,
        "comparison": desk.comparison,
        "aspects": desk.aspects,
        "side": texts.sides[1 if key == "b" else 0],
        **what_was_refused(desk, key, refusal),
    }
    return render(desk.request, "review/_texts_spans.html", context, status=422 if refusal else 200)


def what_was_refused(desk: Desk, key: str, refusal: str) -> dict[str, Any]:
    written = desk.request.POST.dict() if refusal else {}
    return {"span_refusal": refusal, "refused_side": key, "entered": written}

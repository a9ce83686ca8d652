"""The review page: one comparison, two responses side by side, a choice for every aspect."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRedirect

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.models import Evaluation, User
from evaluations.services.reviewing import reviewing
from evaluations.services.reviewing.queueing import earlier_review, progress
from evaluations.web.desk import Desk, at_desk, go_on, is_fragment, shown


@never_cache
@require_safe
def review(request: HttpRequest, slug: str) -> HttpResponse:
    """The way to the next comparison, or a page that says why there is none."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.REVIEW)
    try:
        rubric = reviewing.rubric_in_force(evaluation)
    except InputRefused as refusal:
        return nothing(request, evaluation, str(refusal))
    return go_on(request, evaluation, rubric) or nothing(request, evaluation)


@never_cache
@require_safe
@at_desk
def review_comparison(desk: Desk) -> HttpResponse:
    return shown(desk)


def nothing(request: HttpRequest, evaluation: Evaluation, reason: str = "") -> HttpResponse:
    if is_fragment(request):
        return HttpResponseClientRedirect(request.path)
    rater = reviewing.rater_of(cast(User, request.user), evaluation)
    context = {
        "page": "review",
        "evaluation": evaluation,
        "reason": reason,
        "progress": progress(evaluation, rater),
        "earlier": earlier_review(evaluation, rater, None),
    }
    return render(request, "review/nothing.html", context)

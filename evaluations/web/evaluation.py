"""One evaluation at a glance: the pipe, how far each step has come, and what to do now."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import FAILURE_STATES, Role
from evaluations.models import Call, Candidate, Evaluation, Membership, Query, Rater, User
from evaluations.services.preparing.surveying import standings
from evaluations.services.reviewing.overseeing import given_to
from evaluations.web.evaluations import next_step


@require_safe
def evaluation(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    found = access.evaluation_for(user, slug)
    standing = standings([found], user)[found.pk]
    context = {
        "page": "evaluation",
        "evaluation": found,
        "standing": standing,
        "next": next_step(standing, cast(Role, access.role_in(user, found))),
        "queries": Query.objects.filter(evaluation=found).count(),
        "candidates": Candidate.objects.filter(evaluation=found).count(),
        "people": Membership.objects.filter(evaluation=found).count(),
        "rules": rules_of(found),
        "given": given_to(found, Rater.objects.filter(evaluation=found, user=user).first()),
        "failed_calls_at": failed_calls_at(found, manages=access.may(user, Action.MANAGE, found))
        if standing.failed_calls
        else "",
    }
    return render(request, "evaluation/evaluation.html", context)


def rules_of(evaluation: Evaluation) -> Evaluation:
    """The evaluation with its rubric and shown judge, in one query."""
    return Evaluation.objects.select_related("review_rubric__rubric", "shown_judge").get(pk=evaluation.pk)


def failed_calls_at(evaluation: Evaluation, *, manages: bool) -> str:
    """Where failed calls are asked again: of one judge at once, of several judge by judge from the runs."""
    failed = Call.objects.filter(run__evaluation=evaluation, state__in=FAILURE_STATES).order_by()
    runs = list(failed.values_list("run", "judge").distinct())
    if manages and len({judge for _, judge in runs}) == 1:
        return reverse("run_retry", args=[evaluation.slug, max(run for run, _ in runs)])
    return reverse("runs", args=[evaluation.slug])

"""One evaluation at a glance: the pipe, how far each step has come, and what to do now."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.domain import Role
from evaluations.models import Candidate, Evaluation, Membership, Query, User
from evaluations.services.preparing.surveying import standings
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
    }
    return render(request, "evaluation/evaluation.html", context)


def rules_of(evaluation: Evaluation) -> Evaluation:
    """The evaluation with its rubric and shown judge, in one query."""
    return Evaluation.objects.select_related("review_rubric__rubric", "shown_judge").get(pk=evaluation.pk)

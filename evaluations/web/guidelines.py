"""The guidelines as a page of their own: to be read before the start, and without JavaScript."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.models import User
from evaluations.services.reviewing.guiding import earlier_wordings


@require_safe
def guidelines(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug)
    earlier_shown = "earlier" in request.GET and access.may(user, Action.SEE_ALL, evaluation)
    context = {
        "page": "guidelines",
        "evaluation": evaluation,
        "earlier_shown": earlier_shown,
        "earlier": earlier_wordings(evaluation) if earlier_shown else [],
    }
    return render(request, "guidelines/guidelines.html", context)

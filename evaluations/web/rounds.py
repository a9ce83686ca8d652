"""How reviewing is organised: the pool, and what is under way beside it."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.models import Round, User
from evaluations.services.reviewing.overseeing import pool_of, progress_of
from evaluations.web.paging import page_of


@require_safe
def rounds(request: HttpRequest, slug: str) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.SEE_ALL)
    made = Round.objects.filter(evaluation=evaluation).select_related("evaluation", "rubric_version__rubric")
    page = page_of(request, made, newest_first=True)
    told = progress_of(page.rows)
    context = {
        "page": "rounds",
        "evaluation": evaluation,
        "page_of_rows": page,
        "rows": [told[one.pk] for one in page.rows],
        "pool": pool_of(evaluation),
    }
    return render(request, "rounds/rounds.html", context)

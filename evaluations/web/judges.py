"""Who judges in an evaluation."""

from typing import cast

from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.models import Judge, User
from evaluations.web.paging import page_of


@require_safe
def judges(request: HttpRequest, slug: str) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug)
    archived = "archived" in request.GET
    known = Judge.objects.filter(evaluation=evaluation)
    listed = (known.archived() if archived else known.current()).select_related("endpoint", "rubric_version__rubric")
    context = {
        "page": "judges",
        "evaluation": evaluation,
        "judges": page_of(request, listed.annotate(last_run=Max("runs__created_at"))),
        "archived": archived,
        "any_archived": known.archived().exists(),
    }
    return render(request, "judges/judges.html", context)

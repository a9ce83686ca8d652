"""What is asked in an evaluation: its rubrics."""

from typing import cast

from django.db.models import Count, Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.models import Evaluation, Rubric, User
from evaluations.web.paging import page_of


@require_safe
def rubrics(request: HttpRequest, slug: str) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug)
    counted = Rubric.objects.filter(evaluation=evaluation).annotate(
        newest=Max("versions__number"), judges=Count("versions__judges", distinct=True)
    )
    context = {
        "page": "rubrics",
        "evaluation": evaluation,
        "page_of_rows": page_of(request, counted),
        "asked": Evaluation.objects.select_related("review_rubric").get(pk=evaluation.pk).review_rubric,
    }
    return render(request, "rubrics/rubrics.html", context)

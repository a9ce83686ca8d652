"""One comparison: its texts, and what everyone said of them."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import SAVED_REVIEW_STATES, Shown
from evaluations.models import Adjudication, Comparison, Review, User
from evaluations.services.importing.flagging import suspects
from evaluations.services.reporting.noticing import note_seen
from evaluations.services.reporting.tabulating import table_of
from evaluations.services.reviewing.drawing import in_order_shown
from evaluations.services.reviewing.typesetting import html_of, texts_of

WHOLE = ("query", "response_a__candidate", "response_b__candidate", "evaluation__review_rubric__rubric")


@require_http_methods(["GET", "HEAD"])
def comparison(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug)
    row = get_object_or_404(Comparison.objects.select_related(*WHOLE), evaluation=evaluation, pk=pk)
    sees_verdicts, sees_judges = access.may_see_verdicts(user, row), access.may_see_judges(user, evaluation)
    if sees_verdicts and access.may(user, Action.REVIEW, evaluation):
        note_seen(user, evaluation, [row], judges=sees_judges)
    table = table_of(row, with_judges=sees_judges) if sees_verdicts else None
    stored = (row.response_a, row.response_b)
    responses = stored if sees_verdicts else in_order_shown(user, row, stored)
    sides = [(side, response, suspects(response)) for side, response in zip("AB", responses, strict=True)]
    decided = Adjudication.objects.filter(comparison=row).select_related("aspect", "user").order_by("aspect__name")
    turned = Review.objects.filter(rater__user=user, comparison=row, shown=Shown.SWAPPED, state__in=SAVED_REVIEW_STATES)
    context = {
        "page": "comparisons",
        "evaluation": evaluation,
        "comparison": row,
        "suspects": suspects(row.query),
        "html": html_of([*texts_of(row), *(table.rationales if table else ())]),
        "sides": sides,
        "table": table,
        "adjudications": decided if sees_verdicts else (),
        "was_turned": sees_verdicts and turned.exists(),
    }
    return render(request, "comparison/comparison.html", context)

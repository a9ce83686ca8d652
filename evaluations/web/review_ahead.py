"""The comparison after this one, fetched while this one is being read."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe
from django_htmx.http import push_url

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.models import User
from evaluations.services.reviewing import reviewing
from evaluations.services.reviewing.calibrating import ends_with
from evaluations.services.reviewing.queueing import next_comparison
from evaluations.web.desk import desk_with, shown

MOST_BESIDES = 50


@never_cache
@gzip_page
@require_safe
def review_ahead(request: HttpRequest, slug: str) -> HttpResponse:
    """The next workbench besides those that the page has already, and its address; 204 where there is none.

    It takes the person's place in the queue, which lapses by itself where the page is never shown. After
    the last comparison of a calibration comes its result, so there is nothing to fetch ahead.
    """
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.REVIEW)
    try:
        rubric = reviewing.rubric_in_force(evaluation)
    except InputRefused:
        return HttpResponse(status=204)
    besides = [int(pk) for pk in request.GET.getlist("besides")[:MOST_BESIDES] if pk.isdecimal() and len(pk) < 19]
    rater = reviewing.rater_for(user, evaluation)
    pk = None if ends_with(evaluation, rater, besides) else next_comparison(evaluation, rater, besides=besides)
    if pk is None:
        return HttpResponse(status=204)
    desk = desk_with(request, evaluation, rubric, rater, pk)
    return push_url(shown(desk, "review/_workbench.html"), desk.address)

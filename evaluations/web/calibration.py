"""How people's choices compare with known labels: one's own, and for those who may see it everyone's."""

from dataclasses import dataclass
from typing import cast

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import ALLOWED, Action
from evaluations.domain import RoundKind
from evaluations.models import Membership, Rater, Round, User
from evaluations.services.reviewing.calibrating import CalibrationResult, note_result_seen, result, results
from evaluations.web.paging import Page, page_of


@dataclass(frozen=True)
class Row:
    """One person of the owner's table. ``result`` is None for whom has not begun."""

    member: Membership
    rater: Rater | None
    result: CalibrationResult | None


@never_cache
@require_safe
def calibration(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """One's own result once it is whole; with ``?person=…`` another's, for those who see all."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug)
    sees_all = access.may(user, Action.SEE_ALL, evaluation)
    made = get_object_or_404(Round.objects.select_related("rubric_version__rubric"), evaluation=evaluation, pk=pk)
    if made.kind != RoundKind.CALIBRATION:
        return redirect("round", slug, pk)
    made.evaluation = evaluation
    mine = result_for(made, user)
    if mine.standing.is_finished:
        note_result_seen(made, user)
    person = person_asked_for(request, made) if sees_all else None
    page = page_of(request, members_who_review(made)) if sees_all else None
    context = {
        "page": "rounds" if sees_all else "review",
        "evaluation": evaluation,
        "round": made,
        "result": result(made, person) if person else mine,
        "person": person,
        "aspects": made.rubric_version.spec().aspects,
        "page_of_rows": page,
        "rows": rows_of(made, page) if page else [],
    }
    return render(request, "calibration/calibration.html", context)


def result_for(made: Round, user: User) -> CalibrationResult:
    rater = Rater.objects.filter(evaluation=made.evaluation, user=user).first()
    return result(made, rater or Rater(pk=0))


def person_asked_for(request: HttpRequest, made: Round) -> Rater | None:
    given = request.GET.get("person", "")
    if not given:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise Http404
    return get_object_or_404(Rater, evaluation=made.evaluation, user__isnull=False, pk=int(given))


def members_who_review(made: Round) -> "QuerySet[Membership]":
    members = Membership.objects.filter(evaluation=made.evaluation, role__in=ALLOWED[Action.REVIEW])
    return members.select_related("user")


def rows_of(made: Round, page: Page[Membership]) -> list[Row]:
    users = [member.user_id for member in page.rows]
    raters = {rater.user_id: rater for rater in Rater.objects.filter(evaluation=made.evaluation, user__in=users)}
    told = results(made, list(raters.values()))
    return [
        Row(member, rater, told[rater.pk] if rater and told[rater.pk].standing.done else None)
        for member in page.rows
        for rater in [raters.get(member.user_id)]
    ]

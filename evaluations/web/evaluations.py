"""The evaluations in which a person takes part, and what comes next in each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations.access import ALLOWED, Action
from evaluations.domain import Role
from evaluations.models import Evaluation, Membership, User
from evaluations.services.preparing.surveying import Next, Standing, standings
from evaluations.web.paging import page_of


@dataclass(frozen=True)
class Listed:
    evaluation: Evaluation
    role: Role
    standing: Standing
    next: Next


@require_safe
def evaluations(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    mine = Evaluation.objects.of(user)
    archived = "archived" in request.GET
    page = page_of(request, mine.archived() if archived else mine.current(), newest_first=True)
    context = {
        "page": "evaluations",
        "rows": listed(page.rows, user),
        "page_of_rows": page,
        "archived": archived,
        "any_archived": mine.archived().exists(),
    }
    return render(request, "evaluations/evaluations.html", context)


def listed(rows: Sequence[Evaluation], user: User) -> list[Listed]:
    roles = dict(Membership.objects.filter(user=user, evaluation__in=rows).values_list("evaluation_id", "role"))
    standing = standings(rows, user)
    return [
        Listed(row, Role(roles[row.pk]), standing[row.pk], next_step(standing[row.pk], Role(roles[row.pk])))
        for row in rows
    ]


def next_step(standing: Standing, role: Role) -> Next:
    return standing.next_step(
        manages=role in ALLOWED[Action.MANAGE],
        reviews=role in ALLOWED[Action.REVIEW],
        exports=role in ALLOWED[Action.EXPORT],
    )

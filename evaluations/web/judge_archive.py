"""Put a judge away, or bring it back."""

from collections.abc import Callable
from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.models import Judge, User
from evaluations.services.judging.archive import archive_judge, restore_judge
from evaluations.web.judge import judge_for


@require_POST
def judge_archive(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return changed(request, slug, pk, archive_judge, "archived")


@require_POST
def judge_restore(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return changed(request, slug, pk, restore_judge, "restored")


def changed(request: HttpRequest, slug: str, pk: int, change: Callable[..., Judge], done: str) -> HttpResponse:
    user = cast(User, request.user)
    row = judge_for(access.evaluation_for(user, slug, Action.MANAGE), pk)
    try:
        change(row, user=user)
        messages.success(request, f"“{row.name}” is {done}.")
    except InputRefused as refused:
        messages.error(request, str(refused))
    return redirect("judge", slug, pk)

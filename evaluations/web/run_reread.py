"""Read the stored replies of a run's judge once more: no request, no cost, and what it changed."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.models import User
from evaluations.services.judging.rereading import reread
from evaluations.tasks import nudge, reread_replies
from evaluations.web.run import context_of, rereading_of, run_for


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def run_reread(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Begins it; asked with GET, how far it is, as the part of the run's page that polls."""
    row = run_for(request, slug, pk, Action.MANAGE if request.method == "POST" else Action.SEE_ALL)
    if request.method != "POST":
        return render(request, "run/_reread.html", {"evaluation": row.evaluation, "run": row} | rereading_of(row.judge))
    try:
        calls = reread(row.judge, user=cast(User, request.user))
    except InputRefused as refused:
        return render(request, "run/run.html", context_of(request, row) | {"refused": str(refused)}, status=422)
    nudge(reread_replies, row.judge_id)
    messages.success(request, f"The stored replies are read again: {calls:,} call{'s' if calls > 1 else ''}.")
    return redirect("run", slug, pk)

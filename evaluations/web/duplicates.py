"""What is there more than once, or stands in other data sets too."""

from typing import BinaryIO, cast

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.models import User
from evaluations.services.importing.likening import (
    AT_ONCE,
    alike,
    in_examples,
    in_file,
    in_other_evaluations,
    put_together,
    repeated_responses,
    same_responses,
)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def duplicates(request: HttpRequest, slug: str) -> HttpResponse:
    """A POST holds a file against the queries, and keeps nothing of it."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    after = request.GET.get("after", "")
    groups = alike(evaluation, int(after) if after.isascii() and after.isdecimal() and len(after) < 20 else 0)
    overlap, error = None, ""
    if request.method == "POST":
        upload = request.FILES.get("file")
        try:
            if upload is None:
                raise InputRefused("Choose a file.")
            overlap = in_file(evaluation, cast(BinaryIO, upload), getattr(upload, "name", "") or "upload")
        except InputRefused as refused:
            error = str(refused)
    context = {
        "page": "imports",
        "evaluation": evaluation,
        "groups": groups,
        "next": groups[-1].likeness if len(groups) == AT_ONCE else None,
        "same": same_responses(evaluation),
        "repeated": repeated_responses(evaluation),
        "others": in_other_evaluations(evaluation, user),
        "examples": in_examples(evaluation),
        "overlap": overlap,
        "error": error,
        "most_bytes": settings.MAX_UPLOAD_BYTES,
    }
    return render(request, "duplicates/duplicates.html", context, status=422 if error else 200)


@require_POST
def duplicates_together(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    told = request.POST.get("likeness", "")
    try:
        number = int(told) if told.isascii() and told.isdecimal() and len(told) < 20 else 0
        name = put_together(evaluation, number, user=user)
    except InputRefused as refused:
        messages.warning(request, str(refused))
    else:
        messages.success(request, f"They are in the cluster {name} now.")
    return redirect("duplicates", slug)

"""The page of near-duplicates."""

from typing import BinaryIO, cast

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from evaluations.access import Action, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.imports.duplicates.selectors import (
    GROUPS_PER_PAGE,
    find_identical_responses,
    find_near_duplicates,
    find_overlap_with_evaluations,
    find_overlap_with_examples,
    find_overlap_with_file,
    find_repeated_responses,
)
from evaluations.imports.duplicates.services import merge_clusters
from evaluations.web.requests import AuthenticatedRequest


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def duplicate_list(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The near-duplicates; a POST compares the queries with a file, which is not kept."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    after = request.GET.get("after", "")
    groups = find_near_duplicates(
        evaluation, int(after) if after.isascii() and after.isdecimal() and len(after) < 20 else 0
    )
    overlap, error = None, ""
    if request.method == "POST":
        upload = request.FILES.get("file")
        try:
            if upload is None:
                raise InputRefused("Choose a file.")
            overlap = find_overlap_with_file(
                evaluation, cast(BinaryIO, upload), getattr(upload, "name", "") or "upload"
            )
        except InputRefused as refused:
            error = str(refused)
    context = {
        "page": "imports",
        "evaluation": evaluation,
        "groups": groups,
        "next": groups[-1].key if len(groups) == GROUPS_PER_PAGE else None,
        "same": find_identical_responses(evaluation),
        "repeated": find_repeated_responses(evaluation),
        "others": find_overlap_with_evaluations(evaluation, user),
        "examples": find_overlap_with_examples(evaluation),
        "overlap": overlap,
        "error": error,
        "most_bytes": settings.MAX_UPLOAD_BYTES,
    }
    return render(request, "duplicates/duplicates.html", context, status=422 if error else 200)


@require_POST
def duplicates_merge(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    sent = request.POST.get("near_duplicate_key", "")
    try:
        number = int(sent) if sent.isascii() and sent.isdecimal() and len(sent) < 20 else 0
        name = merge_clusters(evaluation, number, user=user)
    except InputRefused as refused:
        messages.warning(request, str(refused))
    else:
        messages.success(request, f"Merged into cluster {name}.")
    return redirect("duplicates", slug)

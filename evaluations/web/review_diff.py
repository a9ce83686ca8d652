"""The words in which two responses differ, for the page that shows them."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evaluations.services.reviewing.contrasting import diffed
from evaluations.web.desk import Desk, at_desk, sheet_of


@never_cache
@require_safe
@at_desk
def review_diff(desk: Desk) -> HttpResponse:
    """Both responses with their differing words marked; the page takes each to its place."""
    return render(desk.request, "review/_diff.html", {"diff": diffed(sheet_of(desk))})

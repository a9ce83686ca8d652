"""The servers that judges may be asked on: site-wide, for site administrators."""

from typing import cast

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.models import Endpoint, User
from evaluations.web.paging import page_of


@require_safe
def endpoints(request: HttpRequest) -> HttpResponse:
    access.require_site_administrator(cast(User, request.user))
    page = page_of(request, Endpoint.objects.annotate(judge_count=Count("judges")))
    return render(request, "endpoints/endpoints.html", {"page": "endpoints", "endpoints": page})

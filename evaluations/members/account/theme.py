"""The light or dark appearance, switched in the header of every page."""

from dataclasses import replace
from urllib.parse import urlsplit

from django.http import HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from evaluations.domain.errors import InputRefused
from evaluations.members.services import change_account, read_account_settings
from evaluations.web.requests import AuthenticatedRequest


@require_POST
def account_theme(request: AuthenticatedRequest) -> HttpResponse:
    """Save the theme and lead back to the page that it was switched on."""
    settings = replace(read_account_settings(request.user), theme=request.POST.get("theme", ""))
    try:
        change_account(request.user, settings)
    except InputRefused as refused:
        return HttpResponseBadRequest(str(refused), content_type="text/plain; charset=utf-8")
    page = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure()):
        return redirect("evaluations")
    return redirect(urlsplit(page)._replace(scheme="", netloc="").geturl())

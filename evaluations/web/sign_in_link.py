"""Signing in by a link: looking at it shows a button, the button uses it up."""

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from evaluations.services.preparing.inviting import LinkRefused, open_link, use_link

BY_MODEL = "django.contrib.auth.backends.ModelBackend"
BY_LINK = "signed in by link"  # in the session: a forgotten password need not be known to be replaced


@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    try:
        if request.method == "POST":
            login(request, use_link(token), backend=BY_MODEL)
            request.session[BY_LINK] = True
            return redirect("evaluations")
        context: dict[str, object] = {"link": open_link(token)}
    except LinkRefused as refused:
        return render(request, "sign_in_link/sign_in_link.html", {"refused": str(refused)}, status=410)
    return render(request, "sign_in_link/sign_in_link.html", context)

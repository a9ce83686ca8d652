"""One's own tokens, with which programs speak to the API: the list, a new one, and away with one."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from evaluations.domain import InputRefused
from evaluations.forms.tokens import TokenForm
from evaluations.models import ApiToken, User
from evaluations.services.preparing.admitting import in_force, make_token, revoke_token


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The list; a POST makes a token and shows it, this once."""
    user = cast(User, request.user)
    form = TokenForm(request.POST if request.method == "POST" else None, user=user)
    if form.is_valid():
        try:
            token, text = make_token(user, **form.wanted())
        except InputRefused as refused:
            form.add_error(None, str(refused))
        else:
            return render(request, "token/token.html", {"page": "account", "token": token, "text": text})
    context = {"page": "account", "form": form, "tokens": in_force(user)}
    return render(request, "tokens/tokens.html", context, status=422 if form.is_bound else 200)


@require_POST
def token_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    user = cast(User, request.user)
    token = get_object_or_404(ApiToken, user=user, pk=pk)
    revoke_token(token, by=user)
    messages.success(request, f"“{token.name}” opens nothing any more.")
    return redirect("tokens")

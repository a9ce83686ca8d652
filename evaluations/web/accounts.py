"""All accounts of the site, for its administrators: links, and who may still sign in."""

from typing import cast

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.domain import InputRefused
from evaluations.models import User
from evaluations.services.preparing.inviting import disable_account, enable_account, make_link
from evaluations.services.reviewing.releasing import release
from evaluations.web.paging import page_of
from evaluations.web.people import AT_ONCE
from evaluations.web.refusing import told_if_refused


@require_http_methods(["GET", "HEAD"])
def accounts(request: HttpRequest) -> HttpResponse:
    access.require_site_administrator(cast(User, request.user))
    wanted = request.GET.get("q", "").strip().replace("\x00", "")
    found = User.objects.filter(username__icontains=wanted) if wanted else User.objects.all()
    context = {"page": "accounts", "accounts": page_of(request, found), "q": wanted}
    return render(request, "accounts/accounts.html", context)


@never_cache
@require_http_methods(["POST"])
def account_link(request: HttpRequest, pk: int) -> HttpResponse:
    person = account_for(request, pk)
    try:
        token = make_link(person, by=cast(User, request.user))
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("accounts")
    link = request.build_absolute_uri(reverse("sign_in_link", args=[token]))
    context = {"page": "accounts", "person": person, "link": link, "hours": settings.SIGN_IN_LINK_HOURS}
    return render(request, "people/link.html", context)


@require_http_methods(["POST"])
def account_disable(request: HttpRequest, pk: int) -> HttpResponse:
    person = account_for(request, pk)
    with told_if_refused(request):
        disable_account(person, by=cast(User, request.user))
        release(AT_ONCE, of=person, by=cast(User, request.user))
        messages.success(request, f"{person} can no longer sign in. Every review stays.")
    return redirect("accounts")


@require_http_methods(["POST"])
def account_enable(request: HttpRequest, pk: int) -> HttpResponse:
    person = account_for(request, pk)
    enable_account(person, by=cast(User, request.user))
    messages.success(request, f"{person} can sign in again.")
    return redirect("accounts")


def account_for(request: HttpRequest, pk: int) -> User:
    access.require_site_administrator(cast(User, request.user))
    return get_object_or_404(User, pk=pk)

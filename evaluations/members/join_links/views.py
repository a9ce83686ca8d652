"""Pages of join links: made and revoked by owners, opened by anyone who has one."""

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from evaluations.access import Action, require_evaluation
from evaluations.audit.security import get_client
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.members.forms import JoinForm, JoinLinkForm
from evaluations.members.join_links.services import (
    JoinLinkRefused,
    create_join_link,
    find_join_link,
    join_with_new_account,
    join_with_own_account,
    list_join_links,
    revoke_join_link,
)
from evaluations.members.sign_in.devices import remember_device
from evaluations.members.sign_in.views import MODEL_BACKEND
from evaluations.models.users import JoinLink, User
from evaluations.web.forms import add_refusal
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sessions import SIGNED_IN_BY_LINK
from evaluations.web.throttle import TooManyTries, begin_try, forgive_try, limits_of_join


@never_cache
@require_POST
def join_link_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Create a join link, which the answer shows once."""
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    form = JoinLinkForm(request.POST)
    if not form.is_valid():
        for problems in form.errors.values():
            messages.error(request, " ".join(map(str, problems)))
        return redirect("members", slug)
    values = form.cleaned_data
    link, token = create_join_link(
        evaluation, Role(values["role"]), days=values["days"], max_uses=values["max_uses"], by=request.user
    )
    url = request.build_absolute_uri(reverse("join", args=[token]))
    context = {"page": "members", "evaluation": evaluation, "link": link, "url": url}
    return render(request, "members/join_link.html", context)


@require_POST
def join_link_revoke(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    revoke_join_link(get_object_or_404(list_join_links(evaluation), pk=pk), by=request.user)
    messages.success(request, "Join link revoked.")
    return redirect("members", slug)


@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """What the link opens; a POST joins. Visitors give a name and get an account."""
    try:
        counted = begin_try(limits_of_join(get_client().address), user=None)
        link = find_join_link(token)
        forgive_try(counted)
        return answer_join(request, token, link)
    except TooManyTries as refused:
        response = render(request, "join/join.html", {"refused": str(refused)}, status=429)
        response.headers["Retry-After"] = str(refused.seconds)
        return response
    except JoinLinkRefused as refused:
        return render(request, "join/join.html", {"refused": str(refused)}, status=410)


def answer_join(request: HttpRequest, token: str, link: JoinLink) -> HttpResponse:
    if isinstance(request.user, User):
        if request.method == "POST":
            return redirect("evaluation", join_with_own_account(token, request.user).slug)
        return render(request, "join/join.html", {"link": link})
    form = JoinForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            return join_as_visitor(request, token, form.cleaned_data["name"])
        except JoinLinkRefused:
            raise
        except InputRefused as refused:
            add_refusal(form, refused)
    return render(request, "join/join.html", {"link": link, "form": form}, status=422 if form.is_bound else 200)


def join_as_visitor(request: HttpRequest, token: str, name: str) -> HttpResponse:
    user, evaluation = join_with_new_account(token, name)
    login(request, user, backend=MODEL_BACKEND)
    request.session[SIGNED_IN_BY_LINK] = True
    messages.success(
        request, f"Your username is {user.username}. Set a password on your account page to be able to sign in again."
    )
    response = redirect("evaluation", evaluation.slug)
    remember_device(request, response, user)
    return response

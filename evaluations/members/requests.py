"""The members, accounts and invitations that requests name, and the sign-in links made for accounts."""

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from evaluations.access import Action, require_evaluation, require_site_administrator
from evaluations.members.selectors import list_invitations, list_invitations_for
from evaluations.members.services import create_sign_in_link
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import Invitation, Membership, User
from evaluations.web.requests import AuthenticatedRequest


def get_membership_or_404(request: AuthenticatedRequest, slug: str, pk: int) -> Membership:
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    return get_object_or_404(Membership.objects.select_related("user", "evaluation"), evaluation=evaluation, pk=pk)


def get_invitation_or_404(request: AuthenticatedRequest, slug: str, pk: int) -> Invitation:
    """An invitation of an evaluation, for its owners."""
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    return get_object_or_404(list_invitations(evaluation).select_related("evaluation"), pk=pk)


def get_own_invitation_or_404(request: AuthenticatedRequest, pk: int) -> Invitation:
    """An invitation of the signed-in person."""
    return get_object_or_404(list_invitations_for(request.user), pk=pk)


def get_account_or_404(request: AuthenticatedRequest, pk: int) -> User:
    require_site_administrator(request.user)
    return get_object_or_404(User, pk=pk)


def create_link_url(request: AuthenticatedRequest, person: User, evaluation: Evaluation | None = None) -> str:
    """The URL of a new sign-in link. Only a hash is stored, so no later request can show it."""
    return build_link_url(request, create_sign_in_link(person, by=request.user, evaluation=evaluation))


def build_link_url(request: AuthenticatedRequest, token: str) -> str:
    return request.build_absolute_uri(reverse("sign_in_link", args=[token])) if token else ""


def render_new_link(
    request: AuthenticatedRequest, person: User, link: str, evaluation: Evaluation | None = None
) -> HttpResponse:
    context = {
        "page": "members" if evaluation else "accounts",
        "evaluation": evaluation,
        "person": person,
        "link": link,
        "hours": settings.SIGN_IN_LINK_HOURS,
    }
    return render(request, "members/sign_in_link.html", context)

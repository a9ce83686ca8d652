"""The members and accounts that requests name, and the sign-in links made for them."""

from django.shortcuts import get_object_or_404
from django.urls import reverse

from evaluations.access import Action, list_invitees, require_evaluation, require_site_administrator
from evaluations.domain.errors import InputRefused
from evaluations.members.services import create_sign_in_link
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import Membership, User
from evaluations.web.requests import AuthenticatedRequest


def get_membership_or_404(request: AuthenticatedRequest, slug: str, pk: int) -> Membership:
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    return get_object_or_404(Membership.objects.select_related("user", "evaluation"), evaluation=evaluation, pk=pk)


def get_account_or_404(request: AuthenticatedRequest, pk: int) -> User:
    require_site_administrator(request.user)
    return get_object_or_404(User, pk=pk)


def create_link_url(request: AuthenticatedRequest, person: User, evaluation: Evaluation | None = None) -> str:
    """The URL of a new sign-in link. Only a hash is stored, so no later request can show it."""
    token = create_sign_in_link(person, by=request.user, evaluation=evaluation)
    return request.build_absolute_uri(reverse("sign_in_link", args=[token]))


def create_member_link_url(request: AuthenticatedRequest, membership: Membership) -> str:
    """The URL of a new sign-in link for an account that opens only evaluations of this owner."""
    person = membership.user
    if not list_invitees(request.user).filter(pk=person.pk).exists():
        raise InputRefused(
            f"{person}’s account opens more than your evaluations, so a link has to come from a site "
            f"administrator or, on the machine itself, from  manage.py sign_in_link {person.username}"
        )
    return create_link_url(request, person, membership.evaluation)

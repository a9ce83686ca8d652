"""API operations on join links, for owners."""

from django.shortcuts import get_object_or_404
from django.urls import reverse

from evaluations.access import Action, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.serializers import serialize_row, serialize_user
from evaluations.domain.roles import Scope
from evaluations.members.join_links import services
from evaluations.members.join_links.schemas import JoinLinkIn, JoinLinkList, JoinLinkOut, NewJoinLinkOut
from evaluations.models.users import JoinLink
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["members"])


@operations.get_one("/evaluations/{slug:slug}/join-links", Scope.ADMIN, JoinLinkList)
def list_join_links(request: AuthenticatedRequest, slug: str) -> JoinLinkList:
    """List the active join links, up to one per role."""
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    return JoinLinkList(items=[serialize_join_link(link) for link in services.list_join_links(evaluation)])


@operations.make("/evaluations/{slug:slug}/join-links", Scope.ADMIN, NewJoinLinkOut, keeps=False)
def create_join_link(request: AuthenticatedRequest, slug: str, body: JoinLinkIn) -> NewJoinLinkOut:
    """Create a link with which anyone can join as reviewer, adjudicator or viewer. Replaces the role's earlier link."""
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    link, token = services.create_join_link(
        evaluation, body.role, days=body.days, max_uses=body.max_uses, by=request.user
    )
    url = request.build_absolute_uri(reverse("join", args=[token]))
    return NewJoinLinkOut(**serialize_join_link(link).model_dump(), link=url)


@operations.remove("/evaluations/{slug:slug}/join-links/{int:pk}", Scope.ADMIN)
def revoke_join_link(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    """Revoke a join link. Members who joined with it stay."""
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    services.revoke_join_link(get_object_or_404(services.list_join_links(evaluation), pk=pk), by=request.user)


def serialize_join_link(link: JoinLink) -> JoinLinkOut:
    return serialize_row(JoinLinkOut, link, created_by=serialize_user(link.created_by))

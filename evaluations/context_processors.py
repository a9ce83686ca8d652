"""The values that every template may use, each queried only where it is used."""

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from evaluations.access import ALLOWED_ROLES
from evaluations.disagreements.selectors import count_new_mentions, has_unseen_mention
from evaluations.models.jobs import Worker
from evaluations.models.users import Membership, User
from evaluations.visibility import visible_comparisons_everywhere
from evaluations.web.navigation import Navigation, build_navigation


def site_context(request: HttpRequest) -> dict[str, object]:
    return {
        "product_version": settings.VERSION,
        "may": SimpleLazyObject(lambda: list_permissions(request)),
        "navigation": SimpleLazyObject(lambda: build_page_navigation(request)),
        "unseen_mentions": SimpleLazyObject(lambda: count_mentions_for_header(request)),
        "no_worker": SimpleLazyObject(lambda: has_no_worker(request)),
    }


def list_permissions(request: HttpRequest) -> dict[str, bool]:
    """The user's permissions in the evaluation of the URL, as in ``{% if may.manage %}``."""
    slug = request.resolver_match.kwargs.get("slug") if request.resolver_match else None
    if slug is None or not request.user.is_authenticated:
        return {}
    role = getattr(request.user, "roles", {}).get(slug)  # the view has nearly always read it
    if role is None:
        memberships = Membership.objects.filter(evaluation__slug=slug, user=request.user)
        role = memberships.values_list("role", flat=True).first()
    return {action.name.lower(): role in allowed for action, allowed in ALLOWED_ROLES.items()}


def build_page_navigation(request: HttpRequest) -> Navigation:
    """The places of the evaluation of the URL."""
    slug = request.resolver_match.kwargs["slug"] if request.resolver_match else ""
    return build_navigation(slug, request.path, list_permissions(request))


def count_mentions_for_header(request: HttpRequest) -> int:
    """How many comments call this person that they have not seen yet."""
    if not isinstance(request.user, User) or not has_unseen_mention(request.user):
        return 0
    return count_new_mentions(request.user, visible_comparisons_everywhere(request.user))


def has_no_worker(request: HttpRequest) -> bool:
    """Whether to warn that nothing works in the background: only for those who are let in."""
    return request.user.is_authenticated and not Worker.objects.alive().exists()

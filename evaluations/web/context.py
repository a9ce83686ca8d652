"""What every template may use. Each value costs its query only where a template asks for it."""

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from evaluations.access import ALLOWED, open_comparisons_everywhere
from evaluations.models import Membership, User, Worker
from evaluations.services.adjudicating.discussing import is_called, unseen


def site(request: HttpRequest) -> dict[str, object]:
    return {
        "product_version": settings.VERSION,
        "may": SimpleLazyObject(lambda: permissions(request)),
        "unseen_mentions": SimpleLazyObject(lambda: unseen_mentions(request)),
        "no_worker": SimpleLazyObject(lambda: no_worker(request)),
    }


def permissions(request: HttpRequest) -> dict[str, bool]:
    """What this person may do in the evaluation of this address: ``{% if may.manage %}``."""
    slug = request.resolver_match.kwargs.get("slug") if request.resolver_match else None
    if slug is None or not request.user.is_authenticated:
        return {}
    role = Membership.objects.filter(evaluation__slug=slug, user=request.user).values_list("role", flat=True).first()
    return {action.name.lower(): role in allowed for action, allowed in ALLOWED.items()}


def unseen_mentions(request: HttpRequest) -> int:
    """How many comments call this person that they have not seen yet."""
    if not isinstance(request.user, User) or not is_called(request.user):
        return 0
    return unseen(request.user, open_comparisons_everywhere(request.user))


def no_worker(request: HttpRequest) -> bool:
    """Whether to warn that nothing works in the background: only for those who are let in."""
    return request.user.is_authenticated and not Worker.objects.alive().exists()

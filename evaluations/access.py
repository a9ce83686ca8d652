"""Who may do and see what: one table, used by every door."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404

from evaluations.domain import DOWNLOADED as DOWNLOADED
from evaluations.domain import MADE_ACCOUNT, Reveal, ReviewState, Role
from evaluations.domain import SAW_VERDICTS as SAW_VERDICTS
from evaluations.models import Comparison, Evaluation, Event, Membership, Review, User


class Action(StrEnum):
    LOOK = "look at this evaluation"
    REVIEW = "review comparisons here"
    SEE_ALL = "see verdicts before reviewing"
    EXPORT = "export from this evaluation"
    MANAGE = "change this evaluation"
    OWN = "decide who takes part in this evaluation"


EVERYONE: Final = frozenset(Role)
ALLOWED: Final[Mapping[Action, frozenset[Role]]] = {
    Action.LOOK: EVERYONE,
    Action.REVIEW: EVERYONE - {Role.VIEWER},
    Action.SEE_ALL: EVERYONE - {Role.REVIEWER},
    Action.EXPORT: frozenset({Role.OWNER, Role.MANAGER, Role.ADJUDICATOR, Role.VIEWER}),
    Action.MANAGE: frozenset({Role.OWNER, Role.MANAGER}),
    Action.OWN: frozenset({Role.OWNER}),
}


def role_in(user: User, evaluation: Evaluation) -> Role | None:
    membership = Membership.objects.filter(user=user, evaluation=evaluation).first()
    return Role(membership.role) if membership else None


def may(user: User, action: Action, evaluation: Evaluation) -> bool:
    return role_in(user, evaluation) in ALLOWED[action]


def evaluation_for(user: User, slug: str, action: Action = Action.LOOK) -> Evaluation:
    """The evaluation, for someone who may do this in it. A stranger cannot tell that it exists."""
    evaluation = Evaluation.objects.filter(slug=slug, memberships__user=user).first()
    if evaluation is None:
        raise Http404
    if not may(user, action, evaluation):
        raise PermissionDenied(f"Your role does not let you {action}. Ask an owner of “{evaluation.name}”.")
    return evaluation


def require_site_administrator(user: User) -> None:
    """Endpoints are site-wide: a stranger to their making cannot tell that the page exists."""
    if not user.is_superuser:
        raise Http404


def open_comparisons(user: User, evaluation: Evaluation) -> "QuerySet[Comparison]":
    """The comparisons on which this person may see what others chose.

    A reviewer sees nothing of others on a comparison before the first save. Pages, reports, runs
    and exports all ask here.
    """
    comparisons: QuerySet[Comparison] = Comparison.objects.filter(evaluation=evaluation)
    if may(user, Action.SEE_ALL, evaluation):
        return comparisons
    saved = Review.objects.filter(rater__user=user, state__in=(ReviewState.FIRST, ReviewState.FINAL))
    return comparisons.filter(pk__in=saved.values("comparison"))


def may_see_verdicts(user: User, comparison: Comparison) -> bool:
    return open_comparisons(user, comparison.evaluation).filter(pk=comparison.pk).exists()


def may_see_judges(user: User, evaluation: Evaluation) -> bool:
    """Where judges are never shown, a reviewer sees none of their choices, saved or not."""
    return evaluation.reveal != Reveal.NEVER or may(user, Action.SEE_ALL, evaluation)


def has_seen_verdicts(user: User, comparison: Comparison) -> bool:
    """Whether this person was shown others' choices on it: a review made now is not blind."""
    seen = Event.objects.filter(user=user, evaluation=comparison.evaluation)
    return (
        seen.filter(verb=SAW_VERDICTS, object_type="comparison", object_id=comparison.pk).exists()
        or seen.filter(verb=DOWNLOADED, object_type="export").exists()
    )


def invitees(user: User) -> "QuerySet[User]":
    """The people for whom this person may make sign-in links. A link is as good as the account.

    So an owner makes them only for accounts that were made for an evaluation of theirs and that
    open nothing but evaluations of theirs; for all others a site administrator does.
    """
    if user.is_superuser:
        return User.objects.all()
    owned = Evaluation.objects.filter(memberships__user=user, memberships__role=Role.OWNER)
    made = Event.objects.filter(verb=MADE_ACCOUNT, object_type="user", evaluation__in=owned)
    elsewhere = Membership.objects.exclude(evaluation__in=owned)
    return User.objects.filter(pk__in=made.values("object_id"), is_superuser=False).exclude(
        pk__in=elsewhere.values("user")
    )

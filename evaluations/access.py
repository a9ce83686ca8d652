"""Who may do and see what: one table, used by every door."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from django.core.exceptions import PermissionDenied
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.http import Http404

from evaluations.domain import (
    BACKUP,
    MADE_ACCOUNT,
    MAY_REVIEW,
    SAVED_REVIEW_STATES,
    Reveal,
    ReviewState,
    Role,
    RoundKind,
)
from evaluations.domain import DOWNLOADED as DOWNLOADED
from evaluations.domain import SAW_VERDICTS as SAW_VERDICTS
from evaluations.models import Comparison, Evaluation, Event, Membership, Pick, Review, User


class Action(StrEnum):
    LOOK = "look at this evaluation"
    REVIEW = "review comparisons here"
    SEE_ALL = "see verdicts before reviewing"
    DISCUSS = "discuss comparisons here"
    ADJUDICATE = "settle disagreements here"
    TAG = "tag comparisons and name slices here"
    EXPORT = "export from this evaluation"
    MANAGE = "change this evaluation"
    OWN = "decide who takes part in this evaluation"
    BACK_UP = "make or download backups of this evaluation"


EVERYONE: Final = frozenset(Role)
ALLOWED: Final[Mapping[Action, frozenset[Role]]] = {
    Action.LOOK: EVERYONE,
    Action.REVIEW: MAY_REVIEW,
    Action.SEE_ALL: EVERYONE - {Role.REVIEWER},
    Action.DISCUSS: EVERYONE - {Role.VIEWER},
    Action.ADJUDICATE: frozenset({Role.OWNER, Role.MANAGER, Role.ADJUDICATOR}),
    Action.TAG: frozenset({Role.OWNER, Role.MANAGER, Role.ADJUDICATOR}),
    Action.EXPORT: frozenset({Role.OWNER, Role.MANAGER, Role.ADJUDICATOR, Role.VIEWER}),
    Action.MANAGE: frozenset({Role.OWNER, Role.MANAGER}),
    Action.OWN: frozenset({Role.OWNER}),
    # Everything by name, drafts and what only importers see included.
    Action.BACK_UP: frozenset({Role.OWNER}),
}


def role_in(user: User, evaluation: Evaluation) -> Role | None:
    if known := getattr(evaluation, "roles", {}).get(user.pk):
        return Role(known)
    membership = Membership.objects.filter(user=user, evaluation=evaluation).first()
    return Role(membership.role) if membership else None


def may(user: User, action: Action, evaluation: Evaluation) -> bool:
    return role_in(user, evaluation) in ALLOWED[action]


def evaluation_for(user: User, slug: str, action: Action = Action.LOOK) -> Evaluation:
    """The evaluation, for someone who may do this in it. A stranger cannot tell that it exists."""
    mine = Membership.objects.select_related("evaluation__review_rubric__rubric").filter(user=user)
    taking_part = mine.filter(evaluation__slug=slug).first()
    if taking_part is None:
        raise Http404
    evaluation = taking_part.evaluation
    evaluation.roles = {user.pk: taking_part.role}
    if taking_part.role not in ALLOWED[action]:
        raise PermissionDenied(f"Your role does not let you {action}. Ask an owner of “{evaluation.name}”.")
    return evaluation


def needed_for_export(written_as: str) -> Action:
    """To make an export in this format, and to take its file."""
    return Action.BACK_UP if written_as == BACKUP else Action.EXPORT


def reviewers(evaluation: Evaluation) -> "QuerySet[User]":
    """Those who may review here, by username."""
    roles = ALLOWED[Action.REVIEW]
    members = User.objects.filter(memberships__evaluation=evaluation, memberships__role__in=roles, is_active=True)
    return members.order_by("username")


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
    saved = Review.objects.filter(rater__user=user, state__in=SAVED_REVIEW_STATES)
    return comparisons.filter(pk__in=saved.values("comparison")).exclude(pk__in=in_calibration(user, evaluation))


def in_calibration(user: User, evaluation: Evaluation) -> "QuerySet[Pick, int]":
    """The comparisons of calibration rounds that this person is not through with: what is known stays unsaid."""
    mine = Review.objects.filter(
        rater__user=user,
        rubric_version=OuterRef("item__rubric_version"),
        comparison=OuterRef("item__comparison"),
        state__in=(*SAVED_REVIEW_STATES, ReviewState.SKIPPED),
    )
    open_rounds = Pick.objects.filter(
        round__evaluation=evaluation,
        round__rubric_version=evaluation.review_rubric_id,
        round__kind=RoundKind.CALIBRATION,
        round__closed_at__isnull=True,
    )
    to_do = open_rounds.exclude(Exists(mine))
    return open_rounds.filter(round__in=to_do.values("round")).values_list("item__comparison", flat=True)


def may_see_verdicts(user: User, comparison: Comparison) -> bool:
    return open_comparisons(user, comparison.evaluation).filter(pk=comparison.pk).exists()


def open_comparisons_everywhere(user: User) -> "QuerySet[Comparison]":
    """The same over all evaluations that this person takes part in; of an open calibration none, done or not."""
    here = Membership.objects.filter(user=user, evaluation=OuterRef("evaluation"))
    saved = Review.objects.filter(rater__user=user, comparison=OuterRef("pk"), state__in=SAVED_REVIEW_STATES)
    sees_all = here.filter(role__in=ALLOWED[Action.SEE_ALL])
    in_round = open_calibrations().filter(item__comparison=OuterRef("pk"))
    return Comparison.objects.filter(Q(Exists(sees_all)) | Q(Exists(here), Exists(saved), ~Exists(in_round)))


def open_calibrations() -> "QuerySet[Pick]":
    in_force = Pick.objects.filter(round__rubric_version=F("round__evaluation__review_rubric"))
    return in_force.filter(round__kind=RoundKind.CALIBRATION, round__closed_at__isnull=True)


def who_may_see(comparison: Comparison) -> "list[User]":
    """The people of the evaluation to whom what others chose on this comparison is open, by username."""
    here = Membership.objects.filter(user=OuterRef("pk"), evaluation=comparison.evaluation_id)
    saved = Review.objects.filter(rater__user=OuterRef("pk"), comparison=comparison, state__in=SAVED_REVIEW_STATES)
    sees_all = here.filter(role__in=ALLOWED[Action.SEE_ALL])
    found = User.objects.filter(Q(Exists(sees_all)) | Q(Exists(here), Exists(saved)), is_active=True)
    readers = list(found.order_by("username"))
    if open_calibrations().filter(item__comparison=comparison).exists():
        return [reader for reader in readers if may_see_verdicts(reader, comparison)]
    return readers


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

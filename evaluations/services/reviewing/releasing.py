"""Places of people who may not review in an evaluation any more are open to others again."""

from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from evaluations.domain import MAY_REVIEW, AssignmentState
from evaluations.models import Assignment, Membership, Rater, User
from evaluations.services.pacing import ROWS_AT_ONCE, paced
from evaluations.services.recording import record
from evaluations.services.reviewing.filling import known_queue, lock_out
from evaluations.services.reviewing.holding import give_back

NOT_DONE: Final = (AssignmentState.HELD, AssignmentState.NAMED)


def release(limit: int, *, of: User | None = None, by: User | None = None) -> int:
    """Put back what those who left hold or were given by name: all of them, or one. How many places.

    It stops with the step that comes to the limit. Who comes back finds what is still open of it, as
    what was kept for them too long.
    """
    who = gone() if of is None else gone().filter(user=of)
    released = 0
    for rater in who.select_related("evaluation", "user"):
        versions = not_done(rater).values_list("item__rubric_version", flat=True).distinct()
        for version in versions:
            while released < limit and (number := release_some(rater, version, by)):
                released += number
    return released


def gone() -> "QuerySet[Rater]":
    """The raters with a place who may not review where they are one: removed, in another role, or disabled."""
    reviewers = Membership.objects.filter(role__in=MAY_REVIEW, user__is_active=True)
    here = reviewers.filter(user=OuterRef("user"), evaluation=OuterRef("evaluation"))
    places = Assignment.objects.filter(rater=OuterRef("pk"), state__in=NOT_DONE)
    raters: QuerySet[Rater] = Rater.objects.filter(~Exists(here), Exists(places), user__isnull=False)
    return raters


def release_some(rater: Rater, version_id: int, by: User | None) -> int:
    with paced(), transaction.atomic():
        lock_out(known_queue(version_id, rater.evaluation.reviews_wanted))
        theirs = list(not_done(rater).filter(item__rubric_version=version_id).select_related("item")[:ROWS_AT_ONCE])
        number = sum(give_back(one.item, rater.pk, NOT_DONE, AssignmentState.LAPSED) for one in theirs)
        if number:
            after = {"person": rater.name, "comparisons": number}
            record("put back", rater.evaluation, user=by, evaluation=rater.evaluation, after=after)
    return number


def not_done(rater: Rater) -> "QuerySet[Assignment]":
    return Assignment.objects.filter(rater=rater, state__in=NOT_DONE)

"""The decision that settles one aspect of one comparison: made, changed, withdrawn; the label with it."""

from typing import Any, Final

from django.db import transaction

from evaluations.domain import Choice, InputRefused, storable
from evaluations.models import Adjudication, Aspect, Comparison, Event, RubricAspect, User
from evaluations.services.recording import record
from evaluations.services.reviewing.tallying import hold, tally

ADJUDICATED: Final = "adjudicated"
WITHDREW: Final = "withdrew adjudication"
LONGEST_REASON: Final = 5_000


class SettledElsewhere(InputRefused):
    """Somebody else settled it, settled it otherwise, or withdrew it meanwhile; nothing of this was stored."""


@transaction.atomic
def adjudicate(
    comparison: Comparison, aspect: Aspect, *, choice: str, reason: str, version: int, user: User
) -> Adjudication:
    """Settle it, or settle it otherwise. ``version``: of the decision that the person saw, 0 where there was none."""
    refuse_archived(comparison)
    given, why = offered(comparison, aspect, choice), said(reason)
    hold([comparison.pk])
    standing = Adjudication.objects.filter(comparison=comparison, aspect=aspect).select_related("user").first()
    if standing and (standing.user, standing.choice, standing.reason) == (user, given, why):
        return standing  # the second half of a double click
    refuse_unless_seen(standing, version, f"your “{in_words(given)}”")
    before = told(standing) if standing else {"aspect": aspect.key}
    written = standing or Adjudication(comparison=comparison, aspect=aspect, version=decisions_so_far(comparison))
    written.user, written.choice, written.reason, written.version = user, given, why, written.version + 1
    written.save()
    record(ADJUDICATED, comparison, user=user, evaluation=comparison.evaluation, before=before, after=told(written))
    tally([comparison.pk])
    return written


@transaction.atomic
def withdraw(adjudication: Adjudication, *, version: int, user: User) -> None:
    """Open the question again: the label is what people's votes make it."""
    comparison = adjudication.comparison
    refuse_archived(comparison)
    hold([comparison.pk])
    standing = Adjudication.objects.filter(pk=adjudication.pk).select_related("user", "aspect").first()
    refuse_unless_seen(standing, version, "your withdrawal")
    assert standing is not None
    record(
        WITHDREW,
        comparison,
        user=user,
        evaluation=comparison.evaluation,
        before=told(standing),
        after={"aspect": standing.aspect.key},
    )
    standing.delete()
    tally([comparison.pk])


def decisions_so_far(comparison: Comparison) -> int:
    """From here versions go on: a decision made anew after a withdrawal is not taken for the one that was seen."""
    decided = Event.objects.filter(object_type="comparison", object_id=comparison.pk, verb=ADJUDICATED)
    return decided.count()


def refuse_archived(comparison: Comparison) -> None:
    if comparison.evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived: nothing can be settled in it until it is brought back.")


def offered(comparison: Comparison, aspect: Aspect, choice: str) -> Choice:
    """The choice, if a rubric of this evaluation that asks about the aspect offers it."""
    versions = RubricAspect.objects.filter(version__rubric__evaluation=comparison.evaluation_id, aspect=aspect)
    known = {one for asked in versions.select_related("aspect") for one in asked.choices}
    if not known:
        raise InputRefused(f"No rubric of this evaluation asks about {aspect.name}: nothing can be settled.")
    if choice not in known:
        offers = ", ".join(in_words(one) for one in Choice if one in known)
        raise InputRefused(f"No rubric offers “{choice}” for {aspect.name}: it is one of {offers}.")
    return Choice(choice)


def said(reason: str) -> str:
    reason = storable(reason.strip())
    if not reason:
        raise InputRefused("Say why: the reason stands beside the label, for those who chose otherwise.")
    if len(reason) > LONGEST_REASON:
        raise InputRefused(f"A reason has at most {LONGEST_REASON:,} characters; this one has {len(reason):,}.")
    return reason


def refuse_unless_seen(standing: Adjudication | None, version: int, given: str) -> None:
    """What is changed must be what the person saw."""
    if standing is None and version:
        raise SettledElsewhere(f"The adjudication was withdrawn meanwhile, so {given} was not stored. Look again.")
    if standing is not None and standing.version != version:
        raise SettledElsewhere(
            f"{standing.user.username} settled this as “{in_words(standing.choice)}” meanwhile (“{standing.reason}”), "
            f"so {given} was not stored. Look at theirs, then decide again."
        )


def in_words(choice: str) -> str:
    return choice.replace("_", " ")


def told(adjudication: Adjudication) -> dict[str, Any]:
    """The decision as the record keeps it."""
    return {
        "aspect": adjudication.aspect.key,
        "choice": adjudication.choice,
        "reason": adjudication.reason,
        "by": adjudication.user.username,
    }

"""A round afterwards: opened again, and given to more people by name."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import F

from evaluations.domain import AssignmentState, InputRefused, RoundKind
from evaluations.models import Assignment, Round, User
from evaluations.services.recording import record
from evaluations.services.reviewing.assigning import count_items, give, met_in, named, open_places
from evaluations.services.reviewing.filling import known_queue, lock
from evaluations.services.reviewing.seating import rater_for


@transaction.atomic
def reopen_round(made: Round, user: User | None) -> None:
    """What is left of it is handed out again, and what was given by name is theirs again."""
    refuse_outdated(made)
    queue = lock(known_queue(made.rubric_version_id, made.evaluation.reviews_wanted))
    if not Round.objects.filter(pk=made.pk, closed_at__isnull=False).update(closed_at=None):
        raise InputRefused(f"The round “{made.name}” is open already.")
    made.refresh_from_db()
    if made.kind == RoundKind.REVIEW:
        open_places(made, queue)
        if made.by_name:
            lapsed = Assignment.objects.filter(pick__round=made, state=AssignmentState.LAPSED)
            items = list(lapsed.values_list("item", flat=True))
            lapsed.update(state=AssignmentState.NAMED)
            count_items(items)
    record("reopened round", made, user=user, evaluation=made.evaluation, after={"name": made.name})


@transaction.atomic
def add_people(made: Round, people: Sequence[User], user: User | None) -> int:
    """Divide what is still wanted of the round among them, by name. How many each took together."""
    if made.kind != RoundKind.REVIEW:
        raise InputRefused("Everyone who reviews meets a calibration: it is given to nobody by name.")
    if made.closed_at is not None:
        raise InputRefused(f"The round “{made.name}” is closed: reopen it first.")
    refuse_outdated(made)
    lock(known_queue(made.rubric_version_id, made.evaluation.reviews_wanted))
    raters = [rater_for(person, made.evaluation) for person in people]
    wanting = made.picks.filter(item__taken__lt=F("item__wanted")).select_related("item").order_by("place")
    picks = list(wanting)
    met = met_in(made, raters)
    load = {rater.pk: 0 for rater in raters}
    given: list[Assignment] = []
    for pick in picks:
        free = sorted((pk for pk in load if (pick.item_id, pk) not in met), key=lambda pk: load[pk])
        for pk in free[: pick.item.wanted - pick.item.taken]:
            given.append(named(pick, pk))
            load[pk] += 1
    if not given:
        raise InputRefused("Nothing of this round is left for them: it has its reviews, or they have met all of it.")
    give(given)
    after = {"people": [person.username for person in people], "comparisons": len(given)}
    record("gave round", made, user=user, evaluation=made.evaluation, after=after)
    return len(given)


def refuse_outdated(made: Round) -> None:
    if made.is_outdated:
        raise InputRefused(f"The round “{made.name}” was made for another version of the rubric: make a new one.")

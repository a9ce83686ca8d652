"""A round afterwards: opened again, given to more people by name; and one of comparisons that somebody chose."""

from collections.abc import Collection, Sequence

from django.db import transaction
from django.db.models import F

from evaluations.domain import AssignmentState, InputRefused, PickedBy, RoundKind
from evaluations.models import Assignment, Evaluation, QueueItem, Round, User
from evaluations.services.recording import record
from evaluations.services.reviewing.assigning import (
    begun,
    count_items,
    give,
    met_in,
    named,
    open_places,
    put_in,
    refuse_name,
)
from evaluations.services.reviewing.choosing import MOST_REVIEWS, Chosen, Wish, version_of
from evaluations.services.reviewing.filling import known_queue, lock, lock_out, ready
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


def make_round_of(
    evaluation: Evaluation, comparisons: Collection[int], *, name: str, reviews_wanted: int = 1, user: User | None
) -> Round:
    """A round of exactly these, in the random order: people meet them before the pool. Nothing of it was drawn."""
    version = version_of(evaluation)
    refuse_name(evaluation, name := name.strip())
    if not 1 <= reviews_wanted <= MOST_REVIEWS:
        raise InputRefused(f"Between 1 and {MOST_REVIEWS} reviews can be wanted of each comparison.")
    ready(evaluation)
    wish = Wish(PickedBy.BY_HAND, len(comparisons), 0, reviews_wanted)
    with transaction.atomic():
        queue = lock_out(known_queue(version.pk, evaluation.reviews_wanted))
        items = QueueItem.objects.filter(rubric_version=version, comparison__in=list(comparisons))
        chosen = [Chosen(pk, PickedBy.BY_HAND, None) for pk in items.order_by("position").values_list("pk", flat=True)]
        if not chosen:
            raise InputRefused("Choose at least one comparison in the list.")
        made = begun(evaluation, name, wish, queue, by_name=False, user=user)
        put_in(made, chosen)
        open_places(made, queue)
        after = {"name": name, "strategy": PickedBy.BY_HAND, "comparisons": len(chosen)}
        record("made round", made, user=user, evaluation=evaluation, after=after)
    return made

"""Rounds of work in a stated order, and what is given to people by name."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.utils import timezone

from evaluations.domain import (
    AssignmentState,
    InputRefused,
    PickedBy,
    RoundKind,
    Strata,
)
from evaluations.models import (
    Assignment,
    Bookmark,
    Comparison,
    Evaluation,
    Pick,
    Queue,
    QueueItem,
    Rater,
    Round,
    User,
)
from evaluations.services.recording import record
from evaluations.services.reviewing.choosing import (
    Chosen,
    Wish,
    chosen_of,
    mixed,
    refuse_unmakeable,
    version_of,
    with_probability,
)
from evaluations.services.reviewing.filling import count_anew, known_queue, lock, lock_out, move_back, ready, want
from evaluations.services.reviewing.picking import field_of, fitting
from evaluations.services.reviewing.seating import rater_for

ROWS_AT_ONCE: Final = 500
# What a person has now and may lose, or had and has not reviewed.
NOT_FOR_GOOD: Final = (AssignmentState.HELD, AssignmentState.LAPSED, AssignmentState.SKIPPED)


@dataclass(frozen=True)
class Preview:
    """``matching``: what fits the strategy and can still be picked. The rest: what a round would hold."""

    matching: int
    at_random: int
    by_strategy: int


@dataclass(frozen=True)
class Given:
    """How many comparisons are somebody's by name now; ``reviewed`` and ``waiting`` had been theirs already."""

    number: int
    reviewed: int
    waiting: int


def preview(
    evaluation: Evaluation,
    *,
    strategy: PickedBy,
    size: int,
    random_percent: int = 100,
    reviews_wanted: int = 1,
    strata: Strata | None = None,
) -> Preview:
    """What making the round would pick. Writes nothing, but for items of the queue that are missing."""
    wish = Wish(strategy, size, random_percent, reviews_wanted, strata)
    refuse_unmakeable(evaluation, wish)
    ready(evaluation)
    field = field_of(evaluation, reviews_wanted)
    chosen, _ = chosen_of(field, wish)
    at_random = sum(one.picked_by == PickedBy.RANDOM for one in chosen)
    found = fitting(strategy, field) if strategy not in (PickedBy.RANDOM, PickedBy.STRATIFIED) else field.items
    return Preview(len(found), at_random, len(chosen) - at_random)


def make_round(
    evaluation: Evaluation,
    *,
    name: str,
    strategy: PickedBy,
    size: int,
    kind: RoundKind = RoundKind.REVIEW,
    random_percent: int = 100,
    reviews_wanted: int = 1,
    strata: Strata | None = None,
    seed: int = 0,
    people: Sequence[User] = (),
    by_name: bool = False,
    user: User | None,
) -> Round:
    """A round of so many comparisons, in an order that mixes its random share with what the strategy picked.

    By name, each comparison is given to as many of the people as reviews are wanted of it, in turn:
    one of each splits the round evenly, as many as there are people gives all of it to everyone.
    """
    if kind != RoundKind.REVIEW:
        raise InputRefused("A calibration round is made of comparisons with known labels: begin it as one.")
    wish = Wish(strategy, size, random_percent, reviews_wanted, strata, seed)
    version = refuse_unmakeable(evaluation, wish)
    refuse_name(evaluation, name := name.strip())
    if by_name:
        refuse_too_few(people, reviews_wanted)
    ready(evaluation)
    # What takes long is found before anything is locked.
    field = field_of(evaluation, reviews_wanted)
    with transaction.atomic():
        queue = lock_out(known_queue(version.pk, evaluation.reviews_wanted))
        chosen, reached = chosen_of(field, wish)
        if not chosen:
            raise InputRefused("No comparison fits this round: nothing was made.")
        made = begun(evaluation, name, wish, queue, by_name=by_name, user=user)
        mark_drawn(reached)
        put_in(made, mixed(with_probability(chosen, queue), seed))
        open_places(made, queue)
        if by_name:
            give_in_turn(made, [rater_for(person, evaluation) for person in people])
        after = {"name": name, "strategy": strategy, "comparisons": len(chosen), "seed": seed}
        after |= {"people": [person.username for person in people]} if by_name else {}
        record("made round", made, user=user, evaluation=evaluation, after=after)
    return made


@transaction.atomic
def close_round(made: Round, user: User | None) -> None:
    """Nobody is given anything more of it. What was begun by name stays with its people, the rest is open to all."""
    queue = lock(known_queue(made.rubric_version_id, made.evaluation.reviews_wanted))
    if not Round.objects.filter(pk=made.pk, closed_at__isnull=True).update(closed_at=timezone.now()):
        raise InputRefused(f"The round “{made.name}” is closed already.")
    made.refresh_from_db()
    open_places(made, queue)
    given = Assignment.objects.filter(pick__round=made, state=AssignmentState.NAMED)
    given.update(state=AssignmentState.LAPSED)
    count_anew("id IN (SELECT item_id FROM evaluations_pick WHERE round_id = %s)", made.pk)
    record("closed round", made, user=user, evaluation=made.evaluation, after={"name": made.name})


def assign(
    evaluation: Evaluation, comparisons: Collection[Comparison], people: Sequence[User], user: User | None
) -> Given:
    """Give each of these comparisons to each of the people, without an end.

    What they skipped or let lapse is theirs again, picked as it was; of anything else it was no
    chance that picked it, so their reviews count as picked by hand.
    """
    version = version_of(evaluation)
    if not people or not comparisons:
        raise InputRefused("Choose at least one person and one comparison.")
    ready(evaluation)
    with transaction.atomic():
        lock_out(known_queue(version.pk, evaluation.reviews_wanted))
        items = QueueItem.objects.filter(rubric_version=version, comparison__in=list(comparisons))
        pks = list(items.order_by("position").values_list("pk", flat=True))
        raters = [rater_for(person, evaluation) for person in people]
        theirs = Assignment.objects.filter(item__in=pks, rater__in=raters)
        met = {(item, rater): state for item, rater, state in theirs.values_list("item", "rater", "state")}
        again = theirs.exclude(picked_by=PickedBy.CALIBRATION).filter(state__in=NOT_FOR_GOOD)
        number = again.update(state=AssignmentState.NAMED, held_until=None)
        new = [(item, rater.pk) for rater in raters for item in pks if (item, rater.pk) not in met]
        Assignment.objects.bulk_create(
            Assignment(item_id=item, rater_id=rater, picked_by=PickedBy.BY_HAND, state=AssignmentState.NAMED)
            for item, rater in new
        )
        count_items(pks)
        reviewed = sum(state == AssignmentState.DONE for state in met.values())
        given = Given(number + len(new), reviewed, len(met) - reviewed - number)
        after = {"comparisons": len(pks), "people": [person.username for person in people], "new": given.number}
        record("assigned", evaluation, user=user, evaluation=evaluation, after=after)
    return given


# ---- what a round holds --------------------------------------------------------------------


def begun(evaluation: Evaluation, name: str, wish: Wish, queue: Queue, *, by_name: bool, user: User | None) -> Round:
    """The round itself, without anything in it yet."""
    return Round.objects.create(
        evaluation=evaluation,
        rubric_version_id=queue.rubric_version_id,
        user=user,
        name=name,
        strategy=wish.strategy,
        strata=wish.strata or "",
        random_percent=100 if wish.strategy == PickedBy.RANDOM else wish.random_percent,
        reviews_wanted=wish.reviews_wanted,
        population=queue.items,
        seed=wish.seed,
        by_name=by_name,
    )


def mark_drawn(items: Sequence[int]) -> None:
    for some in in_parts(items):
        QueueItem.objects.filter(pk__in=some).update(drawn=True)


def put_in(made: Round, chosen: Sequence[Chosen]) -> None:
    Pick.objects.bulk_create(
        (
            Pick(round=made, item_id=one.item_id, place=place, picked_by=one.picked_by, probability=one.probability)
            for place, one in enumerate(chosen, start=1)
        ),
        batch_size=ROWS_AT_ONCE,
    )


def open_places(made: Round, queue: Queue) -> None:
    """Its comparisons want by now what their open rounds want; whoever has passed them looks again."""
    items = QueueItem.objects.filter(picks__round=made)
    want(queue.wanted, "id IN (SELECT item_id FROM evaluations_pick WHERE round_id = %s)", made.pk)
    move_back(made.rubric_version_id, items.order_by("position").values_list("position", flat=True)[0])
    Bookmark.objects.filter(rubric_version=made.rubric_version_id, round__isnull=False).update(reached=0)


def give_in_turn(made: Round, raters: Sequence[Rater]) -> None:
    picks = list(made.picks.order_by("place"))
    met = met_in(made, raters)
    given: list[Assignment] = []
    turn = 0
    for pick in picks:
        in_turn = [raters[(turn + number) % len(raters)] for number in range(len(raters))]
        free = [rater for rater in in_turn if (pick.item_id, rater.pk) not in met][: made.reviews_wanted]
        turn += made.reviews_wanted
        given += [named(pick, rater.pk) for rater in free]
    give(given)


def met_in(made: Round, raters: Collection[Rater]) -> set[tuple[int, int]]:
    """Item and rater, where the person has, skipped or did a comparison of the round; not where they let it lapse."""
    met = Assignment.objects.filter(rater__in=raters, item__picks__round=made)
    lapsed = met.filter(state=AssignmentState.LAPSED).exclude(picked_by=PickedBy.CALIBRATION)
    return set(met.exclude(pk__in=lapsed).values_list("item", "rater"))


def give(given: Sequence[Assignment]) -> None:
    """Store them; what a person had let lapse becomes theirs in this way."""
    Assignment.objects.bulk_create(
        given,
        batch_size=ROWS_AT_ONCE,
        update_conflicts=True,
        unique_fields=["item", "rater"],
        update_fields=["pick", "picked_by", "probability", "state", "held_until"],
    )
    count_items(list({one.item_id for one in given}))


def named(pick: Pick, rater_id: int) -> Assignment:
    """Not stored yet: this comparison of a round for this person by name."""
    return Assignment(
        item_id=pick.item_id,
        rater_id=rater_id,
        pick=pick,
        picked_by=pick.picked_by,
        probability=pick.probability,
        state=AssignmentState.NAMED,
    )


def count_items(items: Sequence[int]) -> None:
    for some in in_parts(items):
        count_anew(f"id IN ({', '.join(['%s'] * len(some))})", *some)


def in_parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + ROWS_AT_ONCE] for start in range(0, len(ids), ROWS_AT_ONCE))


def refuse_name(evaluation: Evaluation, name: str) -> None:
    if not 1 <= len(name) <= 120:
        raise InputRefused("A round needs a name of at most 120 characters.")
    if Round.objects.filter(evaluation=evaluation, name=name).exists():
        raise InputRefused(f"There is a round “{name}” already: choose another name.")


def refuse_too_few(people: Sequence[User], reviews_wanted: int) -> None:
    if not people:
        raise InputRefused("Say to whom the round is given: choose at least one person.")
    if reviews_wanted > len(people):
        raise InputRefused(f"{reviews_wanted} reviews are wanted of each comparison: choose at least so many people.")

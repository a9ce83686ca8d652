"""What may be done with queues: create, assign, archive, restore, delete."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone

from evaluations.access import list_reviewers
from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.groups import split_into_slices
from evaluations.domain.reviews import RANDOM_SELECTION, AssignmentState, QueueAudience, QueueKind, SelectionMethod
from evaluations.domain.roles import REVIEWING_ROLES
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater, get_or_create_rater
from evaluations.models.queues import Assignment, DefaultQueue, Queue, QueueItem, QueueProgress, QueueSlot
from evaluations.models.transactions import SHORT_TRANSACTION_ROWS, pause_after_transaction
from evaluations.models.users import Membership, User
from evaluations.reviews.queues.items import (
    ensure_queue_is_filled,
    lock_queue_and_progress,
    lock_queue_of_version,
    move_progress_back,
)
from evaluations.reviews.queues.reservations import release_item
from evaluations.reviews.queues.sampler import (
    MAX_REVIEWS_WANTED,
    QueuePlan,
    SampledItem,
    add_probabilities,
    build_sampling_frame,
    draw_queue_sample,
    get_review_version,
    interleave_random_share,
    rank_matching_items,
    refuse_invalid_plan,
)
from evaluations.reviews.queues.selectors import is_queue_deletable
from evaluations.reviews.queues.sql import recount_taken, set_reviews_wanted

ROWS_PER_STATEMENT: Final = 500

# What a person has now and may lose, or had and has not reviewed.
REASSIGNABLE_STATES: Final = (AssignmentState.RESERVED, AssignmentState.EXPIRED, AssignmentState.SKIPPED)


@dataclass(frozen=True)
class QueuePreview:
    """``matching``: items that match the strategy and are free. The rest: the queue's content."""

    matching: int
    at_random: int
    by_strategy: int


@dataclass(frozen=True)
class AssignmentCount:
    """Newly assigned comparisons; ``reviewed`` and ``waiting`` were assigned before."""

    number: int
    reviewed: int
    waiting: int


def preview_queue(evaluation: Evaluation, plan: QueuePlan) -> QueuePreview:
    """What such a queue would take. Writes nothing but missing items of the default queue."""
    refuse_invalid_plan(evaluation, plan)
    ensure_queue_is_filled(evaluation)
    frame = build_sampling_frame(evaluation, plan.reviews_each)
    items, _ = draw_queue_sample(frame, plan)
    at_random = sum(item.selection_method == SelectionMethod.RANDOM for item in items)
    matching = rank_matching_items(plan.strategy, frame) if plan.strategy not in RANDOM_SELECTION else frame.items
    return QueuePreview(len(matching), at_random, len(items) - at_random)


def create_queue(evaluation: Evaluation, name: str, plan: QueuePlan, *, user: User | None) -> Queue:
    """A queue that mixes its random share with what the strategy found.

    An assigned queue gives each comparison to as many reviewers as reviews are wanted, in turn.
    """
    version = refuse_invalid_plan(evaluation, plan)
    refuse_queue_name(evaluation, name := name.strip())
    is_assigned = plan.audience != QueueAudience.EVERYONE
    if is_assigned and not plan.people:
        raise InputRefused("Select at least one reviewer, or choose “Everyone”.")
    if is_assigned and plan.reviews_each > len(plan.people):
        raise InputRefused(f"{plan.reviews_each} reviews per comparison need at least {plan.reviews_each} reviewers.")
    ensure_queue_is_filled(evaluation)
    # Slow reads come before the locks.
    frame = build_sampling_frame(evaluation, plan.reviews_each)
    with transaction.atomic():
        default_queue = lock_queue_and_progress(version.pk, evaluation.reviews_wanted)
        chosen, reached = draw_queue_sample(frame, plan)
        if not chosen:
            raise InputRefused("No matching comparisons. No queue was created.")
        for batch in split_into_slices(reached, ROWS_PER_STATEMENT):
            QueueItem.objects.filter(pk__in=batch).update(drawn=True)
        sample = interleave_random_share(add_probabilities(chosen, default_queue), plan.seed)
        queue = insert_queue(evaluation, name, plan, sample, default_queue, user)
        after = {"name": name, "strategy": plan.strategy, "comparisons": len(chosen), "seed": plan.seed}
        if is_assigned:
            assign_in_turn(queue, [get_or_create_rater(person, evaluation) for person in plan.people])
            after["people"] = [person.username for person in plan.people]
        record_event("created queue", queue, user=user, evaluation=evaluation, after=after)
    return queue


@transaction.atomic
def archive_queue(queue: Queue, user: User | None) -> None:
    """Archive the queue: reviews that are begun stay with their reviewers, the rest is open to all."""
    default_queue = lock_queue_of_version(queue.rubric_version_id, queue.evaluation.reviews_wanted)
    if not Queue.objects.filter(pk=queue.pk, closed_at__isnull=True).update(closed_at=timezone.now()):
        raise InputRefused(f"“{queue.name}” is already archived.")
    queue.refresh_from_db()
    release_items(queue, default_queue)
    record_event("archived", queue, user=user, evaluation=queue.evaluation, after={"name": queue.name})


def release_items(queue: Queue, default_queue: DefaultQueue) -> None:
    """Take back what the archived queue wants and has assigned."""
    open_items(queue, default_queue)
    assignments = Assignment.objects.filter(slot__queue=queue, state=AssignmentState.ASSIGNED)
    assignments.update(state=AssignmentState.EXPIRED)
    recount_taken("id IN (SELECT item_id FROM evaluations_queueslot WHERE queue_id = %s)", queue.pk)


def find_reviewers(evaluation: Evaluation, ids: Collection[int]) -> list[User]:
    people = list(list_reviewers(evaluation).filter(pk__in=ids))
    if len(people) < len(set(ids)):
        raise InputRefused("A selected member is not a reviewer here.")
    return people


def assign_comparisons(
    evaluation: Evaluation, comparisons: Collection[Comparison], people: Sequence[User], user: User | None
) -> AssignmentCount:
    """Assign each of these comparisons to each of these users, without expiry.

    Skipped and expired assignments are restored with their selection method; new ones count as selected by hand.
    """
    version = get_review_version(evaluation)
    if not people or not comparisons:
        raise InputRefused("Select at least one reviewer and one comparison.")
    ensure_queue_is_filled(evaluation)
    with transaction.atomic():
        lock_queue_and_progress(version.pk, evaluation.reviews_wanted)
        items = QueueItem.objects.filter(rubric_version=version, comparison__in=list(comparisons))
        pks = list(items.order_by("position").values_list("pk", flat=True))
        raters = [get_or_create_rater(person, evaluation) for person in people]
        assignments = Assignment.objects.filter(item__in=pks, rater__in=raters)
        states = {(item, rater): state for item, rater, state in assignments.values_list("item", "rater", "state")}
        reassignable = assignments.exclude(selection_method=SelectionMethod.CALIBRATION).filter(
            state__in=REASSIGNABLE_STATES
        )
        number = reassignable.update(state=AssignmentState.ASSIGNED, reserved_until=None)
        new = [(item, rater.pk) for rater in raters for item in pks if (item, rater.pk) not in states]
        Assignment.objects.bulk_create(
            Assignment(
                item_id=item, rater_id=rater, selection_method=SelectionMethod.BY_HAND, state=AssignmentState.ASSIGNED
            )
            for item, rater in new
        )
        recount_items(pks)
        reviewed = sum(state == AssignmentState.DONE for state in states.values())
        count = AssignmentCount(number + len(new), reviewed, len(states) - reviewed - number)
        after = {"comparisons": len(pks), "people": [person.username for person in people], "new": count.number}
        record_event("assigned", evaluation, user=user, evaluation=evaluation, after=after)
    return count


# ---- rows of a queue


def insert_queue(
    evaluation: Evaluation,
    name: str,
    plan: QueuePlan,
    sample: Sequence[SampledItem],
    default_queue: DefaultQueue,
    user: User | None,
) -> Queue:
    queue = Queue.objects.create(
        evaluation=evaluation,
        rubric_version_id=default_queue.rubric_version_id,
        user=user,
        name=name,
        strategy=plan.strategy,
        strata=plan.strata or "" if plan.strategy == SelectionMethod.STRATIFIED else "",
        random_percent=plan.random_share,
        reviews_wanted=plan.reviews_each,
        population=default_queue.items,
        seed=plan.seed,
        assigned_only=plan.audience != QueueAudience.EVERYONE,
    )
    QueueSlot.objects.bulk_create(
        (
            QueueSlot(
                queue=queue,
                item_id=item.item_id,
                position=position,
                selection_method=item.selection_method,
                probability=item.probability,
            )
            for position, item in enumerate(sample, start=1)
        ),
        batch_size=ROWS_PER_STATEMENT,
    )
    open_items(queue, default_queue)
    return queue


def open_items(queue: Queue, default_queue: DefaultQueue) -> None:
    """Give the queue's items the slots that their open queues want, and move progress back."""
    items = QueueItem.objects.filter(slots__queue=queue)
    set_reviews_wanted(
        default_queue.wanted, "id IN (SELECT item_id FROM evaluations_queueslot WHERE queue_id = %s)", queue.pk
    )
    move_progress_back(queue.rubric_version_id, items.order_by("position").values_list("position", flat=True)[0])
    QueueProgress.objects.filter(rubric_version=queue.rubric_version_id, queue__isnull=False).update(reached=0)


def assign_in_turn(queue: Queue, raters: Sequence[Rater]) -> None:
    slots = list(queue.slots.order_by("position"))
    excluded = find_assigned_items(queue, raters)
    assignments: list[Assignment] = []
    turn = 0
    for slot in slots:
        in_turn = [raters[(turn + number) % len(raters)] for number in range(len(raters))]
        free = [rater for rater in in_turn if (slot.item_id, rater.pk) not in excluded][: queue.reviews_wanted]
        turn += queue.reviews_wanted
        assignments += [build_assignment(slot, rater.pk) for rater in free]
    store_assignments(assignments)


def find_assigned_items(queue: Queue, raters: Collection[Rater]) -> set[tuple[int, int]]:
    """(item, rater) pairs that a rater has, skipped or reviewed; expired reservations do not count."""
    assignments = Assignment.objects.filter(rater__in=raters, item__slots__queue=queue)
    expired = assignments.filter(state=AssignmentState.EXPIRED).exclude(selection_method=SelectionMethod.CALIBRATION)
    return set(assignments.exclude(pk__in=expired).values_list("item", "rater"))


def store_assignments(assignments: Sequence[Assignment]) -> None:
    """Store the assignments; expired ones of the same rater are replaced."""
    Assignment.objects.bulk_create(
        assignments,
        batch_size=ROWS_PER_STATEMENT,
        update_conflicts=True,
        unique_fields=["item", "rater"],
        update_fields=["slot", "selection_method", "probability", "state", "reserved_until"],
    )
    recount_items(list({assignment.item_id for assignment in assignments}))


def build_assignment(slot: QueueSlot, rater_id: int) -> Assignment:
    """An unsaved assignment of a queue's slot to a rater."""
    return Assignment(
        item_id=slot.item_id,
        rater_id=rater_id,
        slot=slot,
        selection_method=slot.selection_method,
        probability=slot.probability,
        state=AssignmentState.ASSIGNED,
    )


def recount_items(items: Sequence[int]) -> None:
    for batch in split_into_slices(items, ROWS_PER_STATEMENT):
        recount_taken(f"id IN ({', '.join(['%s'] * len(batch))})", *batch)


def refuse_queue_name(evaluation: Evaluation, name: str) -> None:
    if not 1 <= len(name) <= 120:
        raise InputRefused("Enter a name of 1 to 120 characters.")
    if Queue.objects.filter(evaluation=evaluation, name=name).exists():
        raise InputRefused(f"A queue named “{name}” already exists. Choose another name.")


OPEN_ASSIGNMENT_STATES: Final = (AssignmentState.RESERVED, AssignmentState.ASSIGNED)


def release_departed_reservations(limit: int, *, of: User | None = None, by: User | None = None) -> int:
    """Release open assignments of raters who left: of all, or of one user. Returns their number.

    It stops with the batch that reaches the limit. A rater who returns finds what is still open as expired
    reservations.
    """
    raters = find_departed_raters() if of is None else find_departed_raters().filter(user=of)
    released = 0
    for rater in raters.select_related("evaluation", "user"):
        versions = get_open_assignments(rater).values_list("item__rubric_version", flat=True).distinct()
        for version in versions:
            while released < limit and (number := release_batch_of_rater(rater, version, by)):
                released += number
    return released


def find_departed_raters() -> "QuerySet[Rater]":
    """Raters with open assignments who may no longer review: removed, in another role, or disabled."""
    reviewers = Membership.objects.filter(role__in=REVIEWING_ROLES, user__is_active=True)
    memberships = reviewers.filter(user=OuterRef("user"), evaluation=OuterRef("evaluation"))
    open_assignments = Assignment.objects.filter(rater=OuterRef("pk"), state__in=OPEN_ASSIGNMENT_STATES)
    raters: QuerySet[Rater] = Rater.objects.filter(~Exists(memberships), Exists(open_assignments), user__isnull=False)
    return raters


def release_batch_of_rater(rater: Rater, version_id: int, by: User | None) -> int:
    with pause_after_transaction(), transaction.atomic():
        lock_queue_and_progress(version_id, rater.evaluation.reviews_wanted)
        assignments = list(
            get_open_assignments(rater)
            .filter(item__rubric_version=version_id)
            .select_related("item")[:SHORT_TRANSACTION_ROWS]
        )
        number = sum(
            release_item(assignment.item, rater.pk, OPEN_ASSIGNMENT_STATES, AssignmentState.EXPIRED)
            for assignment in assignments
        )
        if number:
            after = {"person": rater.name, "comparisons": number}
            record_event("put back", rater.evaluation, user=by, evaluation=rater.evaluation, after=after)
    return number


def get_open_assignments(rater: Rater) -> "QuerySet[Assignment]":
    return Assignment.objects.filter(rater=rater, state__in=OPEN_ASSIGNMENT_STATES)


@transaction.atomic
def restore_queue(queue: Queue, user: User | None) -> None:
    """Bring the queue back, with its expired assignments."""
    default_queue = lock_queue_of_version(queue.rubric_version_id, queue.evaluation.reviews_wanted)
    if not Queue.objects.filter(pk=queue.pk, closed_at__isnull=False).update(closed_at=None):
        raise InputRefused(f"“{queue.name}” is not archived.")
    queue.refresh_from_db()
    if queue.kind == QueueKind.REVIEW:
        open_items(queue, default_queue)
        if queue.assigned_only:
            expired = Assignment.objects.filter(slot__queue=queue, state=AssignmentState.EXPIRED)
            items = list(expired.values_list("item", flat=True))
            expired.update(state=AssignmentState.ASSIGNED)
            recount_items(items)
    record_event("restored", queue, user=user, evaluation=queue.evaluation, after={"name": queue.name})


@transaction.atomic
def delete_queue(queue: Queue, user: User | None) -> None:
    """Delete a queue in which nothing was reviewed. Its comparisons stay, and so do open reservations of them."""
    default_queue = lock_queue_and_progress(queue.rubric_version_id, queue.evaluation.reviews_wanted)
    if not is_queue_deletable(queue):
        raise InputRefused(f"“{queue.name}” has reviews. Archive it instead.")
    Queue.objects.filter(pk=queue.pk, closed_at__isnull=True).update(closed_at=timezone.now())
    release_items(queue, default_queue)
    record_event("deleted", queue, user=user, evaluation=queue.evaluation, before={"name": queue.name})
    Assignment.objects.filter(slot__queue=queue).update(slot=None)
    QueueProgress.objects.filter(queue=queue).delete()
    queue.slots.all().delete()
    Queue.objects.filter(pk=queue.pk).delete()


@transaction.atomic
def assign_queue_to_reviewers(queue: Queue, people: Sequence[User], user: User | None) -> int:
    """Divide the queue's open slots among these users. Returns the number of assignments."""
    if queue.kind != QueueKind.REVIEW:
        raise InputRefused("Every reviewer gets a calibration, so it can’t be assigned.")
    if queue.closed_at is not None:
        raise InputRefused(f"“{queue.name}” is archived. Restore it first.")
    refuse_outdated_queue(queue)
    lock_queue_of_version(queue.rubric_version_id, queue.evaluation.reviews_wanted)
    raters = [get_or_create_rater(person, queue.evaluation) for person in people]
    open_slots = queue.slots.filter(item__taken__lt=F("item__wanted")).select_related("item").order_by("position")
    slots = list(open_slots)
    excluded = find_assigned_items(queue, raters)
    load = {rater.pk: 0 for rater in raters}
    assignments: list[Assignment] = []
    for slot in slots:
        free = sorted((pk for pk in load if (slot.item_id, pk) not in excluded), key=lambda pk: load[pk])
        for pk in free[: slot.item.wanted - slot.item.taken]:
            assignments.append(build_assignment(slot, pk))
            load[pk] += 1
    if not assignments:
        raise InputRefused("Nothing left to assign to them in this queue.")
    store_assignments(assignments)
    after = {"people": [person.username for person in people], "comparisons": len(assignments)}
    record_event("assigned queue", queue, user=user, evaluation=queue.evaluation, after=after)
    return len(assignments)


def refuse_outdated_queue(queue: Queue) -> None:
    if queue.is_outdated:
        raise InputRefused(f"“{queue.name}” was created for another rubric version. Create a new queue.")


def create_queue_of_comparisons(
    evaluation: Evaluation, comparisons: Collection[int], *, name: str, reviews_wanted: int = 1, user: User | None
) -> Queue:
    """A queue of exactly these comparisons, in random order. None of it counts as drawn."""
    version = get_review_version(evaluation)
    refuse_queue_name(evaluation, name := name.strip())
    if not 1 <= reviews_wanted <= MAX_REVIEWS_WANTED:
        raise InputRefused(f"Enter 1 to {MAX_REVIEWS_WANTED} reviews per comparison.")
    ensure_queue_is_filled(evaluation)
    plan = QueuePlan(SelectionMethod.BY_HAND, random_percent=0, reviews_wanted=reviews_wanted)
    with transaction.atomic():
        default_queue = lock_queue_and_progress(version.pk, evaluation.reviews_wanted)
        items = QueueItem.objects.filter(rubric_version=version, comparison__in=list(comparisons))
        chosen = [
            SampledItem(pk, SelectionMethod.BY_HAND, None)
            for pk in items.order_by("position").values_list("pk", flat=True)
        ]
        if not chosen:
            raise InputRefused("Select at least one comparison.")
        queue = insert_queue(evaluation, name, plan, chosen, default_queue, user)
        after = {"name": name, "strategy": SelectionMethod.BY_HAND, "comparisons": len(chosen)}
        record_event("created queue", queue, user=user, evaluation=evaluation, after=after)
    return queue

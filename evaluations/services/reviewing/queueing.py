"""Which comparison a person meets next, and how far they have come.

A few short statements, each of which finds its rows by an index: of what the person has met already
nothing is looked at again, because a bookmark says where to go on.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from evaluations.domain import SAVED_REVIEW_STATES, AssignmentState, Reveal, ReviewState, RoundKind
from evaluations.models import Assignment, Comparison, Evaluation, Rater, Review, Round, RubricAspect
from evaluations.services.judging.consolidating import judge_choices
from evaluations.services.reviewing import filling
from evaluations.services.reviewing.holding import OF_VERSION, hold_again, put_back_lapsed, until_when
from evaluations.services.reviewing.taking import Seat, take_from_pool, take_from_round

UNFINISHED: Final = (AssignmentState.HELD, AssignmentState.NAMED, AssignmentState.LAPSED)
# Of what awaits the judge so many are looked at together.
AWAITING_AT_ONCE: Final = 100
LAPSED_AT_ONCE: Final = 100


@dataclass(frozen=True)
class Progress:
    total: int
    done: int
    skipped: int


def progress(evaluation: Evaluation, rater: Rater | None) -> Progress:
    """Counted when a queue is filled and when a review is saved, not each time that somebody looks."""
    stock = filling.look(evaluation)
    is_known = stock is not None and stock.is_full
    total = stock.items if stock and is_known else Comparison.objects.filter(evaluation=evaluation).count()
    if rater is None:
        return Progress(total, 0, 0)
    with connection.cursor() as cursor:
        cursor.execute(MINE, [rater.pk, evaluation.review_rubric_id] * 2)
        done, skipped_by_me = cursor.fetchone()
    if done is None:
        done = reviews_of(evaluation, rater).filter(state__in=SAVED_REVIEW_STATES).count()
    return Progress(total, done, skipped_by_me)


MINE: Final = """
SELECT
  (SELECT done FROM evaluations_bookmark WHERE rater_id = %s AND rubric_version_id = %s AND round_id IS NULL),
  (SELECT COUNT(*) FROM evaluations_review WHERE rater_id = %s AND rubric_version_id = %s AND state = 'skipped')
"""


def reviews_of(evaluation: Evaluation, rater: Rater | None) -> QuerySet[Review]:
    """This person's reviews by the rubric in force."""
    reviews: QuerySet[Review] = Review.objects.filter(rubric_version=evaluation.review_rubric_id)
    return reviews.filter(rater=rater) if rater else reviews.none()


# ---- what comes next -----------------------------------------------------------------------


def next_comparison(evaluation: Evaluation, rater: Rater | None, *, besides: Collection[int] = ()) -> int | None:
    """The comparison that this person should look at now, held for them; None when there is none left.

    What they hold or began, and is not among ``besides``, comes again. Somebody who is no rater yet
    learns only whether there is anything.
    """
    if evaluation.review_rubric_id is None:
        return None
    if rater is None:
        everything = Comparison.objects.filter(evaluation=evaluation).order_by("shuffle", "pk")
        return everything.values_list("pk", flat=True).first()
    filling.ready(evaluation)
    seat = Seat(evaluation, rater, evaluation.review_rubric_id, frozenset(besides))
    return next((pk for pk in by_turns(seat) if pk is not None), None)


def by_turns(seat: Seat) -> Iterator[int | None]:
    """Each kind of comparison by turns, the first of its kind or None."""
    yield begun(seat)
    rounds = open_rounds(seat)
    for calibration in (one for one in rounds if one.kind == RoundKind.CALIBRATION):
        yield met_in(seat, calibration)
        yield take_from_round(seat, calibration)
    yield given(seat)
    for review_round in (one for one in rounds if one.kind == RoundKind.REVIEW):
        yield take_from_round(seat, review_round)
    yield take_from_pool(seat)
    if put_back_lapsed(LAPSED_AT_ONCE, seat.version_id):
        yield take_from_pool(seat)
    yield lapsed(seat)
    yield answered_since(seat)
    yield skipped(seat)


BEGUN: Final = """
SELECT r.comparison_id, a.id FROM evaluations_review r
LEFT JOIN evaluations_queueitem i ON i.rubric_version_id = r.rubric_version_id AND i.comparison_id = r.comparison_id
LEFT JOIN evaluations_assignment a ON a.item_id = i.id AND a.rater_id = r.rater_id
WHERE r.rater_id = %s AND r.rubric_version_id = %s AND r.state IN ('draft', 'first')
ORDER BY r.created_at
"""


# Held before named, as the words sort, and the oldest first: an index has them in this order.
GIVEN: Final = """
SELECT a.id, i.comparison_id FROM evaluations_assignment a JOIN evaluations_queueitem i ON i.id = a.item_id
WHERE a.rater_id = %s AND a.state IN ('held', 'named') AND i.rubric_version_id = %s
ORDER BY a.state, a.id LIMIT %s
"""


OPEN_ROUNDS: Final = """
SELECT * FROM evaluations_round WHERE rubric_version_id = %s AND closed_at IS NULL AND NOT by_name ORDER BY id
"""


def begun(seat: Seat) -> int | None:
    """What the person began to choose or has still to confirm: theirs, whoever took their place meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(BEGUN, [seat.rater.pk, seat.version_id])
        found = [row for row in cursor.fetchall() if row[0] not in seat.besides]
    if not found:
        return None
    comparison_id, assignment_id = found[0]
    assignment = Assignment.objects.select_related("item").filter(pk=assignment_id).first() if assignment_id else None
    return keep(seat, assignment) if assignment is not None else int(comparison_id)


def met_in(seat: Seat, calibration: Round) -> int | None:
    """What of a calibration the person had before them and has not finished, also where its time ran out meanwhile."""
    mine = Assignment.objects.filter(rater=seat.rater, item__picks__round=calibration, state__in=UNFINISHED)
    first = mine.exclude(item__comparison__in=seat.besides).select_related("item").order_by("pk").first()
    return keep(seat, first) if first else None


def given(seat: Seat) -> int | None:
    """What is held for this person already, or else the first that was given to them by name."""
    with connection.cursor() as cursor:
        cursor.execute(GIVEN, [seat.rater.pk, seat.version_id, len(seat.besides) + 1])
        found = [pk for pk, comparison in cursor.fetchall() if comparison not in seat.besides]
    return keep(seat, Assignment.objects.select_related("item").get(pk=found[0])) if found else None


def keep(seat: Seat, assignment: Assignment) -> int:
    """Its comparison, held for this person for as long again; theirs also where no place is left by now."""
    if assignment.state == AssignmentState.HELD:
        keep_holding(seat, assignment)
    elif assignment.state == AssignmentState.LAPSED:
        hold_again(assignment, seat.evaluation)
    return assignment.item.comparison_id


def keep_holding(seat: Seat, assignment: Assignment) -> None:
    """Written once half of the time is over: so that looking twice does not write twice."""
    until = until_when(seat.evaluation)
    if is_old(assignment.held_until, until, timedelta(minutes=seat.evaluation.hold_minutes)):
        Assignment.objects.filter(pk=assignment.pk, state=AssignmentState.HELD).update(held_until=until)


def is_old(held_until: datetime | None, until: datetime, while_held: timedelta) -> bool:
    return held_until is not None and until - held_until > while_held / 2


def open_rounds(seat: Seat) -> list[Round]:
    """The oldest first. What is given by name comes to its people without them."""
    return list(Round.objects.raw(OPEN_ROUNDS, [seat.version_id]))


def lapsed(seat: Seat) -> int | None:
    """What the person let lapse and nobody took since."""
    return held_again(seat, left(seat, AssignmentState.LAPSED).order_by("pk"))


def skipped(seat: Seat) -> int | None:
    """The longest skipped first."""
    reviews = Review.objects.filter(rater=seat.rater, rubric_version=seat.version_id, state=ReviewState.SKIPPED)
    when = dict(reviews.values_list("comparison_id", "finished_at"))
    found = list(left(seat, AssignmentState.SKIPPED))
    found.sort(key=lambda one: (when.get(one.item.comparison_id) or timezone.now(), one.pk))
    return held_again(seat, found)


def left(seat: Seat, state: AssignmentState) -> QuerySet[Assignment]:
    """What this person left in that way, and is open."""
    mine = Assignment.objects.alias(version=OF_VERSION).filter(rater=seat.rater, state=state, version=seat.version_id)
    return mine.exclude(item__comparison__in=seat.besides).select_related("item")


def held_again(seat: Seat, found: "Collection[Assignment] | QuerySet[Assignment]") -> int | None:
    is_open = (one for one in found if one.item.taken < one.item.wanted or one.picked_by == "calibration")
    return next((one.item.comparison_id for one in is_open if hold_again(one, seat.evaluation)), None)


def answered_since(seat: Seat) -> int | None:
    """The first that was saved while the shown judge had not answered, and has its answer by now.

    An answer to what the rubric does not ask, or one that is not to be shown, is none: its page would lead nowhere.
    """
    if seat.evaluation.shown_judge_id is None or seat.evaluation.reveal == Reveal.NEVER:
        return None
    judge = Rater.objects.filter(judge=seat.evaluation.shown_judge_id).first()
    waiting = Review.objects.filter(
        rater=seat.rater, rubric_version=seat.version_id, awaits_judge=True, state=ReviewState.FINAL
    )
    ids = list(
        waiting.exclude(comparison__in=seat.besides).order_by("finished_at").values_list("comparison", flat=True)
    )
    if judge is None or not ids:
        return None
    asked = set(RubricAspect.objects.filter(version=seat.version_id).values_list("aspect__key", flat=True))
    for start in range(0, len(ids), AWAITING_AT_ONCE):
        some = ids[start : start + AWAITING_AT_ONCE]
        told = judge_choices(judge, some)
        answered = next((pk for pk in some if asked.intersection(told.get(pk, ()))), None)
        if answered is not None:
            return answered
    return None


# ---- the way back --------------------------------------------------------------------------


# What leads back to a review, and undoes it.
EARLIER: Final = """
SELECT id, comparison_id, version, state, finished_at FROM evaluations_review
WHERE rater_id = %s AND rubric_version_id = %s AND finished_at IS NOT NULL{before} ORDER BY finished_at DESC LIMIT 1
"""


def earlier_review(evaluation: Evaluation, rater: Rater | None, review: Review | None) -> Review | None:
    """Saved or skipped: the one finished before this; from a comparison that is not finished, the one finished last."""
    if rater is None:
        return None
    finished_at = review.finished_at if review else None
    before = [connection.ops.adapt_datetimefield_value(finished_at)] if finished_at else []
    statement = EARLIER.format(before=" AND finished_at < %s" if before else "")
    return next(iter(Review.objects.raw(statement, [rater.pk, evaluation.review_rubric_id, *before])), None)

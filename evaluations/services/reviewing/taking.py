"""The next place for a person: in a round by its places, or in the one random order.

Of what is open the first in order is taken that the person has not met. Where another person is at
that very item in this moment the next one is taken, and the bookmark stays before the one passed.
"""

from dataclasses import dataclass
from typing import Final

from django.db import connection
from django.utils import timezone

from evaluations.domain import PickedBy, RoundKind
from evaluations.models import Bookmark, Evaluation, Rater, Round
from evaluations.services.pacing import in_turn
from evaluations.services.reviewing.holding import bookmark_of, locked, round_bookmark, until_when

# Where a round or the pool has nothing more for somebody, until a place opens and calls them back.
END: Final = 2**62
A_FEW: Final = 8

OPEN_TO: Final = """
i.taken < i.wanted
AND NOT EXISTS (SELECT 1 FROM evaluations_assignment a WHERE a.item_id = i.id AND a.rater_id = %s)
"""
IN_POOL: Final = f"""
SELECT i.id, i.comparison_id, i.position, NULL, 'random', NULL FROM evaluations_queueitem i
WHERE i.rubric_version_id = %s AND i.position >= %s AND {OPEN_TO}
ORDER BY i.position LIMIT %s
"""
IN_ROUND: Final = f"""
SELECT i.id, i.comparison_id, p.place, p.id, p.picked_by, p.probability FROM evaluations_pick p
JOIN evaluations_queueitem i ON i.id = p.item_id
WHERE p.round_id = %s AND p.place >= %s AND {OPEN_TO}
ORDER BY p.place LIMIT %s
"""
# Calibration takes no place: full or not, everybody meets it.
IN_CALIBRATION: Final = IN_ROUND.replace("i.taken < i.wanted", "0 = 0")
TAKE: Final = "UPDATE evaluations_queueitem SET taken = taken + 1 WHERE id = %s AND taken < wanted"
TAKE_UNLOCKED: Final = TAKE.replace(
    "%s", "(SELECT id FROM evaluations_queueitem WHERE id = %s AND taken < wanted FOR UPDATE SKIP LOCKED)"
)
HOLD: Final = """
INSERT INTO evaluations_assignment
  (created_at, item_id, rater_id, pick_id, picked_by, probability, state, held_until)
VALUES (%s, %s, %s, %s, %s, %s, 'held', %s)
"""
MOVE: Final = "UPDATE evaluations_bookmark SET reached = %s WHERE id = %s"
DRAWN: Final = "UPDATE evaluations_bookmark SET reached = %s, drawn_at = %s WHERE id = %s"
# Its turn in the random order has come. What lies before it and is full, or was met by this person
# another way, is passed over: its turn has come too.
PASSED_OVER: Final = """
SELECT i.id FROM evaluations_queueitem i
WHERE i.rubric_version_id = %s AND NOT i.drawn AND i.position < %s AND (i.taken >= i.wanted
  OR EXISTS (SELECT 1 FROM evaluations_assignment a WHERE a.item_id = i.id AND a.rater_id = %s))
"""
REACH: Final = f"UPDATE evaluations_queueitem SET drawn = TRUE WHERE (id IN ({PASSED_OVER}) OR id = %s) AND NOT drawn"
# PostgreSQL reads the whole table for an OR, and for how many it expects; of an array it looks each up.
REACH_UNLOCKED: Final = f"""
UPDATE evaluations_queueitem SET drawn = TRUE
WHERE id = ANY(ARRAY({PASSED_OVER} FOR UPDATE OF i SKIP LOCKED) || %s::bigint) AND NOT drawn
"""


@dataclass(frozen=True)
class Seat:
    """A person who looks for work. ``besides``: the comparisons that they have before them already."""

    evaluation: Evaluation
    rater: Rater
    version_id: int
    besides: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Offer:
    """An item that is open to this person, and how it comes to them. ``place`` orders it."""

    item_id: int
    comparison_id: int
    place: int
    pick_id: int | None
    picked_by: str
    probability: float | None


def take_from_pool(seat: Seat) -> int | None:
    """The next in the random order, held for this person; None where nothing is open to them."""
    bookmark = bookmark_of(seat.rater.pk, seat.version_id)
    if bookmark.reached == END:
        return None
    with in_turn():
        reached = locked(bookmark)
        taken, came_to = take_first(seat, IN_POOL, seat.version_id, reached)
        has_drawn = False
        if taken is not None:
            hold(seat, taken, PickedBy.RANDOM, 1.0)
            has_drawn = reach(seat, taken)
        move(bookmark, reached, END if came_to is None else came_to, has_drawn=has_drawn)
    return taken.comparison_id if taken else None


def take_from_round(seat: Seat, within: Round) -> int | None:
    """The round's next, held for this person; None where it has nothing open to them."""
    bookmark = round_bookmark(seat.rater.pk, within)
    if bookmark.reached == END:
        return None
    calibrates = within.kind == RoundKind.CALIBRATION
    statement = IN_CALIBRATION if calibrates else IN_ROUND
    with in_turn():
        reached = locked(bookmark)
        taken, came_to = take_first(seat, statement, within.pk, reached, takes_place=not calibrates)
        if taken is not None:
            hold(seat, taken, taken.picked_by, taken.probability)
        move(bookmark, reached, END if came_to is None else came_to)
    return taken.comparison_id if taken else None


def take_first(
    seat: Seat, statement: str, among: int, reached: int, *, takes_place: bool = True
) -> tuple[Offer | None, int | None]:
    """The first offer that could be taken, and the place of the first that was open. The bookmark is locked.

    Before there is nothing, those are waited for that others had a hand on: they may leave a place.
    """
    came_to: int | None = None
    for may_wait in (False, True) if connection.vendor == "postgresql" else (True,):
        start = reached
        while found := offers(seat, statement, among, start):
            came_to = found[0].place if came_to is None else came_to
            for offer in found:
                if offer.comparison_id in seat.besides:
                    continue
                if not takes_place or took(offer, may_wait):
                    return offer, came_to
            start = found[-1].place + 1
    return None, came_to


def offers(seat: Seat, statement: str, among: int, start: int) -> list[Offer]:
    """The next few that are open to this person, in order."""
    with connection.cursor() as cursor:
        cursor.execute(statement, [among, start, seat.rater.pk, A_FEW])
        return [Offer(*row) for row in cursor.fetchall()]


def took(offer: Offer, may_wait: bool) -> bool:
    """Whether there was a place left: the conditional update is the lock."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE if may_wait else TAKE_UNLOCKED, [offer.item_id])
        return bool(cursor.rowcount)


def hold(seat: Seat, offer: Offer, picked_by: str, probability: float | None) -> None:
    now, until = (connection.ops.adapt_datetimefield_value(at) for at in (timezone.now(), until_when(seat.evaluation)))
    how = [offer.item_id, seat.rater.pk, offer.pick_id, picked_by, probability]
    with connection.cursor() as cursor:
        cursor.execute(HOLD, [now, *how, until])


def reach(seat: Seat, offer: Offer) -> bool:
    """Whether anything's turn has come that was not drawn before."""
    statement = REACH_UNLOCKED if connection.vendor == "postgresql" else REACH
    with connection.cursor() as cursor:
        cursor.execute(statement, [seat.version_id, offer.place, seat.rater.pk, offer.item_id])
        return bool(cursor.rowcount)


def move(bookmark: Bookmark, reached: int, came_to: int, *, has_drawn: bool = False) -> None:
    """On to the first that was open, or to the end: all before it are met or full."""
    with connection.cursor() as cursor:
        if has_drawn:
            now = connection.ops.adapt_datetimefield_value(timezone.now())
            cursor.execute(DRAWN, [came_to, now, bookmark.pk])
        elif came_to != reached:
            cursor.execute(MOVE, [came_to, bookmark.pk])

"""What a round is to hold: its random share, what its strategy picks, and with what probability."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from django.db import connection

from evaluations.domain import STRATEGIES, InputRefused, PickedBy, Strata
from evaluations.models import Evaluation, Queue, QueueItem, RubricVersion
from evaluations.services.reviewing.picking import Field, fitting

MOST_REVIEWS: Final = 100


@dataclass(frozen=True)
class Chosen:
    """An item that a round is to contain. ``probability`` as ``Pick`` defines it, None where no chance picked it."""

    item_id: int
    picked_by: PickedBy
    probability: float | None


@dataclass(frozen=True)
class Wish:
    """What a round is to contain: so many, some of them drawn at random, the rest by the strategy."""

    strategy: PickedBy
    size: int
    random_percent: int = 100
    reviews_wanted: int = 1
    strata: Strata | None = None
    seed: int = 0

    @property
    def at_random(self) -> int:
        return self.size if self.strategy == PickedBy.RANDOM else math.ceil(self.size * self.random_percent / 100)


def chosen_of(field: Field, wish: Wish) -> tuple[list[Chosen], list[int]]:
    """The picks, the random share first, and the items whose turn in the random order has come with it."""
    share, reached = random_share(field, wish.at_random)
    chosen = [Chosen(item, PickedBy.RANDOM, 1.0) for item in share]
    more = wish.size - wish.at_random
    if wish.strategy == PickedBy.RANDOM or more <= 0:
        return chosen, reached
    drawn = set(reached)
    if wish.strategy == PickedBy.STRATIFIED:
        assert wish.strata is not None
        return chosen + stratified(wish.strata, field, more, drawn), reached
    others = (item for item in fitting(wish.strategy, field, more + len(share)) if item not in set(share))
    picks = [Chosen(item, wish.strategy, None) for item in others][:more]
    return chosen + picks, reached


def with_probability(chosen: Iterable[Chosen], queue: Queue) -> list[Chosen]:
    """The random share with the share of all comparisons that is drawn by now. Called once they are marked."""
    drawn = QueueItem.objects.filter(rubric_version=queue.rubric_version_id, drawn=True).count()
    share = drawn / max(queue.items, drawn, 1)
    return [Chosen(one.item_id, one.picked_by, share) if one.picked_by == PickedBy.RANDOM else one for one in chosen]


def mixed(chosen: Sequence[Chosen], seed: int) -> list[Chosen]:
    """In one order in which the random share is spread evenly: a round that is half done has half of it.

    Within each way of picking the order stays: the best first, or the next in the random order.
    """
    at_random = [one for one in chosen if one.picked_by == PickedBy.RANDOM]
    others = [one for one in chosen if one.picked_by != PickedBy.RANDOM]
    drawn = set(random.Random(seed).sample(range(len(chosen)), len(at_random)))
    one_by_one, other_by_other = iter(at_random), iter(others)
    return [next(one_by_one) if place in drawn else next(other_by_other) for place in range(len(chosen))]


# ---- strata --------------------------------------------------------------------------------

IN_STRATA: Final = """
SELECT i.id, {stratum}, i.drawn OR EXISTS (
    SELECT 1 FROM evaluations_pick p WHERE p.item_id = i.id AND p.picked_by = 'stratified')
FROM evaluations_queueitem i JOIN evaluations_comparison c ON c.id = i.comparison_id {joins}
WHERE i.rubric_version_id = %s ORDER BY i.position
"""
STRATUM: Final = {
    Strata.CATEGORY: {"stratum": "q.category", "joins": "JOIN evaluations_query q ON q.id = c.query_id"},
    Strata.CANDIDATE_PAIR: {
        "stratum": "CAST(a.candidate_id AS VARCHAR(20)) || ':' || CAST(b.candidate_id AS VARCHAR(20))",
        "joins": "JOIN evaluations_response a ON a.id = c.response_a_id "
        "JOIN evaluations_response b ON b.id = c.response_b_id",
    },
}


def stratified(strata: Strata, field: Field, number: int, without: Collection[int]) -> list[Chosen]:
    """So many, in turn one of each stratum as far as it goes: in each the next in the random order.

    The probability is the share of the stratum that was drawn by then, however it was drawn.
    """
    size, drawn, waiting = strata_of(strata, field, without)
    turns = zip_longest(*([(one, item) for item in waiting[one]] for one in sorted(size)))
    picks = [pick for turn in turns for pick in turn if pick is not None][:number]
    taken = Counter(one for one, _ in picks)
    return [Chosen(item, PickedBy.STRATIFIED, (drawn[one] + taken[one]) / size[one]) for one, item in picks]


def strata_of(
    strata: Strata, field: Field, without: Collection[int]
) -> tuple[dict[str, int], dict[str, int], dict[str, list[int]]]:
    """By stratum: how large it is, how many of it were drawn so far, and which are still to be."""
    with connection.cursor() as cursor:
        cursor.execute(IN_STRATA.format(**STRATUM[strata]), [field.version_id])
        rows = cursor.fetchall()
    free = set(field.items.values())
    size: dict[str, int] = defaultdict(int)
    drawn: dict[str, int] = defaultdict(int)
    waiting: dict[str, list[int]] = defaultdict(list)
    for item, stratum, was_drawn in rows:
        size[stratum] += 1
        if was_drawn or item in without:
            drawn[stratum] += 1
        elif item in free:
            waiting[stratum].append(item)
    return size, drawn, waiting


def random_share(field: Field, number: int) -> tuple[list[int], list[int]]:
    """The next so many in the random order, and everything whose turn has come by then.

    What is full or in another open round is passed over: its turn has come too.
    """
    free = set(field.items.values())
    share: list[int] = []
    reached: list[int] = []
    waiting = QueueItem.objects.filter(rubric_version=field.version_id, drawn=False).order_by("position")
    for item in waiting.values_list("pk", flat=True).iterator():
        if len(share) == number:
            break
        reached.append(item)
        if item in free:
            share.append(item)
    return share, reached


# ---- what is refused -----------------------------------------------------------------------


def version_of(evaluation: Evaluation) -> RubricVersion:
    if evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived: bring it back first.")
    if evaluation.review_rubric is None:
        raise InputRefused("This evaluation has no rubric for reviews yet: choose one in its settings.")
    return evaluation.review_rubric


def refuse_unmakeable(evaluation: Evaluation, wish: Wish) -> RubricVersion:
    version = version_of(evaluation)
    if wish.strategy not in STRATEGIES:
        raise InputRefused(f"“{wish.strategy}” is no order of work: choose one of {', '.join(STRATEGIES)}.")
    if wish.size < 1:
        raise InputRefused("A round holds at least one comparison: say how many.")
    if not 0 <= wish.random_percent <= 100:
        raise InputRefused("The random share of a round is between 0 and 100 percent.")
    if not 1 <= wish.reviews_wanted <= MOST_REVIEWS:
        raise InputRefused(f"Each comparison of a round gets between 1 and {MOST_REVIEWS} reviews.")
    if wish.strategy == PickedBy.STRATIFIED and wish.strata is None:
        raise InputRefused("Say what to draw equally from: the categories, or the pairs of candidates.")
    return version

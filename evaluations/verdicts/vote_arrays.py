"""Human votes as arrays, with what each reviewer had seen and how the comparison was picked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import product
from typing import Final

import numpy as np
from django.db.models import BigIntegerField, Case, F, IntegerField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce

from evaluations.domain.packed_votes import BITS_PER_CHOICE, SLOTS_PER_BLOCK, block_of_slot
from evaluations.domain.reports import SeenRule
from evaluations.domain.reviews import Reveal, ReviewState, SelectionMethod
from evaluations.models.judges import Rater
from evaluations.models.vote_holders import came_by_chance
from evaluations.stats.anchoring import ConfirmedChoices
from evaluations.stats.coding import MISSING, BoolArray, IntArray
from evaluations.stats.votes import Votes
from evaluations.verdicts.judge_arrays import (
    CHOICE_MASK,
    ComparisonPositions,
    packed_votes_of_raters,
    select_positions,
    unpack_choices,
)
from evaluations.verdicts.sql import MARKS_WIDTH, ORDER_WIDTH, read_columns, read_columns_in_pieces

# What a vote of a person knew of the judge: the code is the place.
SAW_JUDGE, BLIND, UNKNOWN = range(3)
# Whether chance decided what the person saw, and what it decided.
NO_ARM, BLIND_ARM, SHOWN_ARM = range(3)
# How the comparison came to the person: what estimates may use, what they may not, and practice.
DRAWN_AT_RANDOM, NOT_DRAWN, CALIBRATION, DRAWN_IN_STRATA = range(4)
# Whose votes count: of imported ones it is not known whether they were blind.
KNOWLEDGE_COUNTED: Final = {SeenRule.NOTHING: (BLIND, UNKNOWN), SeenRule.BLIND: (BLIND,), SeenRule.JUDGE: (SAW_JUDGE,)}
KNOWLEDGE_KINDS: Final = 3
SELECTION_KINDS: Final = 4
FINALITY: Final = 2  # whether the review is final
REVIEW_COLUMNS: Final = ("review_id", "review__judge_id", "review__active_ms")
EPOCH: Final = date(1970, 1, 1)
MILLISECONDS_A_DAY: Final = 86_400_000
MAX_DENSE_NUMBER: Final = 1 << 26  # numbers below this are marked in an array, else they are sorted
VOTE_MARKS: Final = ("knew", "arm", "picked", "final", "review", "judge", "day", "active")


@dataclass(frozen=True)
class VoteArrays:
    """Votes of one kind of rater on one aspect. ``knew``, ``arm``, ``picked``: the codes above, one for each vote.

    ``final``: 1 where the review is final, 0 where only first choices are saved, and of what was imported.
    ``review``: its id, 0 of what was imported; ``judge``: the id of the judge that it was shown or is to be, 0 of none.
    ``day``: when it was given, in days since 1970-01-01. ``active``: the milliseconds that its review took, 0
    where that is not known.
    """

    votes: Votes
    knew: IntArray
    arm: IntArray
    picked: IntArray
    final: IntArray
    review: IntArray
    judge: IntArray
    day: IntArray
    active: IntArray

    def between(self, since: date | None, until: date | None) -> "VoteArrays":
        """The votes between two days, both included."""
        if since is None and until is None:
            return self
        is_between = is_between_days(self.day, since, until)
        return VoteArrays(self.votes.where(is_between), *(getattr(self, name)[is_between] for name in VOTE_MARKS))

    def where(self, *knew: int) -> Votes:
        """The votes that estimates may use, by what their reviewers knew of the judge."""
        return self.votes.where(self.counted(*knew))

    def counted(self, *knew: int) -> BoolArray:
        """Whether each vote may enter estimates."""
        return self.keep_vote_holders(np.logical_and(np.isin(self.knew, knew), self.drawn))

    def in_arm(self, arm: int, judge: int) -> Votes:
        chosen = self.keep_vote_holders((self.arm == arm) & (self.judge == judge) & self.drawn)
        return self.votes.where(chosen)

    def keep_vote_holders(self, is_counted: BoolArray) -> BoolArray:
        """Keep one review of each person and comparison, that of the highest rank, as in `find_vote_holder`.

        Practice is not among them. What was imported has no order: all of it counts.
        """
        if not self.has_second_reviews:
            return is_counted
        places = np.flatnonzero(is_counted & (self.review > 0))
        best_first = places[np.lexsort((-self.review[places], -self.final[places]))]
        _, first = np.unique(self.subject[best_first], return_index=True)
        chosen: BoolArray = np.logical_and(is_counted, self.review == 0)
        chosen[best_first[first]] = True
        return chosen

    @cached_property
    def subject(self) -> IntArray:
        """One number for each person and comparison."""
        return self.votes.item * (int(self.votes.rater.max(initial=0)) + 1) + self.votes.rater

    @cached_property
    def has_second_reviews(self) -> bool:
        return has_duplicates(self.subject[self.review > 0])

    def excluded(self, picked: int) -> int:
        return int((self.picked == picked).sum())

    @property
    def drawn(self) -> BoolArray:
        return np.isin(self.picked, (DRAWN_AT_RANDOM, DRAWN_IN_STRATA))


def has_duplicates(numbers: IntArray) -> bool:
    """Whether any of these whole numbers from 0 stands there twice."""
    if int(numbers.max(initial=0)) >= MAX_DENSE_NUMBER:
        return len(np.unique(numbers)) < len(numbers)
    marked = np.zeros(int(numbers.max(initial=0)) + 1, dtype=bool)
    marked[numbers] = True
    return int(np.count_nonzero(marked)) < len(numbers)


def is_between_days(day: IntArray, since: date | None, until: date | None) -> BoolArray:
    """Whether each day, counted from 1970-01-01, is between the two, both included."""
    inside = np.ones(len(day), dtype=bool)
    if since is not None:
        inside &= day >= (since - EPOCH).days
    if until is not None:
        inside &= day <= (until - EPOCH).days
    return inside


def encode_vote_marks() -> Combinable:
    """Encode what a reviewer knew, the arm, how the comparison was picked and whether the review is final."""
    knew = Case(
        When(review__isnull=True, then=Value(UNKNOWN)),
        When(review__blind=True, then=Value(BLIND)),
        default=Value(SAW_JUDGE),
        output_field=IntegerField(),
    )
    arm = Case(
        When(review__reveal=Reveal.RANDOMISED.value, review__judge_first=True, then=Value(SHOWN_ARM)),
        When(review__reveal=Reveal.RANDOMISED.value, then=Value(BLIND_ARM)),
        default=Value(NO_ARM),
        output_field=IntegerField(),
    )
    final = Case(
        When(review__state=ReviewState.FINAL.value, then=Value(1)), default=Value(0), output_field=IntegerField()
    )
    return ((knew * KNOWLEDGE_KINDS + arm) * SELECTION_KINDS + encode_selection()) * FINALITY + final


def encode_selection() -> Case:
    """Imported votes are assumed to be of a random sample, which the rules say. What was not picked

    at random counts all the same once its turn in the random order has come.
    """
    return Case(
        When(review__isnull=True, then=Value(DRAWN_AT_RANDOM)),
        When(review__selection_method=SelectionMethod.RANDOM.value, then=Value(DRAWN_AT_RANDOM)),
        When(review__selection_method=SelectionMethod.STRATIFIED.value, then=Value(DRAWN_IN_STRATA)),
        When(review__selection_method=SelectionMethod.CALIBRATION.value, then=Value(CALIBRATION)),
        When(came_by_chance("review__"), then=Value(DRAWN_AT_RANDOM)),
        default=Value(NOT_DRAWN),
        output_field=IntegerField(),
    )


@dataclass(frozen=True)
class PackedVoteArrays:
    """All that raters of one kind chose, one entry for each row of packed votes, by time.

    ``rater``: its place among their names. ``first``: the packed first choices of one block.
    """

    item: IntArray
    rater: IntArray
    shown: IntArray
    knew: IntArray
    arm: IntArray
    picked: IntArray
    final: IntArray
    review: IntArray
    judge: IntArray
    day: IntArray
    active: IntArray
    block: IntArray
    first: IntArray

    @cached_property
    def aspects(self) -> set[int]:
        """The places of the aspects on which somebody chose something."""
        blocks = np.flatnonzero(np.bincount(self.block)).tolist()
        bits = {block: int(np.bitwise_or.reduce(self.first[self.block == block])) for block in blocks}
        return {
            block * SLOTS_PER_BLOCK + at
            for block in blocks
            for at in range(SLOTS_PER_BLOCK)
            if bits[block] >> at * BITS_PER_CHOICE & CHOICE_MASK
        }

    def on(self, place: int) -> VoteArrays:
        """The votes on one aspect. Where every row has one, the arrays are the same for each aspect."""
        choice = unpack_choices(self.first, place)
        has_choice = (choice != MISSING) & (self.block == block_of_slot(place))
        columns_of = (self.item, self.rater, self.shown, choice, *(getattr(self, name) for name in VOTE_MARKS))
        item, rater, shown, choice, *marks_of = (
            columns_of if has_choice.all() else [column[has_choice] for column in columns_of]
        )
        return VoteArrays(Votes(item, rater, shown, choice), *marks_of)


def read_packed_vote_arrays(raters: Sequence[Rater], places: ComparisonPositions) -> PackedVoteArrays:
    """Read packed votes and what is known of their reviews in one query."""
    review, judge, active = (Cast(Coalesce(column, 0), BigIntegerField()) for column in REVIEW_COLUMNS)
    code = (F("aspect_block") * MARKS_WIDTH + encode_vote_marks()) * ORDER_WIDTH + F("shown")
    rows = packed_votes_of_raters(raters, places).exclude(first_choices=0)
    columns = rows.values_list(
        "comparison_id", "pk", "rater_id", "first_choices", code, review, judge, "decided_at_ms", active
    )
    arrays = read_columns_in_pieces(columns, 9, "comparison", places.ids)
    item, pk, rater, first, codes, review_of, judge_of, moment, active_of = select_positions(places, *arrays)
    order = np.lexsort((pk, moment))
    rest, shown = np.divmod(codes[order], ORDER_WIDTH)
    block, mark = np.divmod(rest, MARKS_WIDTH)
    return PackedVoteArrays(
        item=item[order],
        rater=number_raters(rater[order], {rater_row.pk: place for place, rater_row in enumerate(raters)}),
        shown=shown,
        **decode_vote_marks(mark),
        review=review_of[order],
        judge=judge_of[order],
        day=moment[order] // MILLISECONDS_A_DAY,
        active=active_of[order],
        block=block,
        first=first[order],
    )


def decode_vote_marks(mark: IntArray) -> dict[str, IntArray]:
    rest, final = np.divmod(mark, FINALITY)
    rest, picked = np.divmod(rest, SELECTION_KINDS)
    knew, arm = np.divmod(rest, KNOWLEDGE_KINDS)
    return {"knew": knew, "arm": arm, "picked": picked, "final": final}


def number_raters(raters: IntArray, place: Mapping[int, int]) -> IntArray:
    ids = np.array(sorted(place), dtype=np.int64)
    return np.array([place[pk] for pk in ids.tolist()], dtype=np.int64)[np.searchsorted(ids, raters)]


def read_confirmed_choices(
    raters: Sequence[Rater], places: ComparisonPositions, since: date | None, until: date | None
) -> dict[tuple[int, int], ConfirmedChoices]:
    """First and final choices of reviews that were blind and then saw a judge, by its id and the aspect's place.

    Of those saved first from the one day to the other, both included.
    """
    revealed = packed_votes_of_raters(raters, places).filter(
        review__state=ReviewState.FINAL.value,
        review__blind=True,
        review__judge__isnull=False,
        review__awaits_judge=False,
    )
    if since is not None:
        revealed = revealed.filter(decided_at_ms__gte=(since - EPOCH).days * MILLISECONDS_A_DAY)
    if until is not None:
        revealed = revealed.filter(decided_at_ms__lt=((until - EPOCH).days + 1) * MILLISECONDS_A_DAY)
    revealed = revealed.exclude(review__finished_at=F("review__first_saved_at"))
    revealed = revealed.exclude(review__selection_method=SelectionMethod.CALIBRATION.value)
    rows = revealed.values_list("comparison_id", "review__judge_id", "aspect_block", "first_choices", "final_choices")
    item, judge, block, first, final = select_positions(places, *read_columns(rows, 5))
    confirmed = {}
    for judge_id, block_number in product(np.unique(judge).tolist(), np.unique(block).tolist()):
        here = (judge == judge_id) & (block == block_number)
        for at in range(SLOTS_PER_BLOCK):
            before, after = unpack_choices(first[here], at), unpack_choices(final[here], at)
            has_both = (before != MISSING) & (after != MISSING)
            if has_both.any():
                confirmed[judge_id, block_number * SLOTS_PER_BLOCK + at] = ConfirmedChoices(
                    item[here][has_both], before[has_both], after[has_both]
                )
    return confirmed

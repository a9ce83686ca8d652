"""The votes of several people on the same comparisons, with the design of who rated what."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from evaluations.domain.reports import SplitRule
from evaluations.stats.coding import CHOICES, MISSING, TIE, BoolArray, IntArray
from evaluations.stats.ranks import radix_order

MAX_CODES: Final = 2**16  # of tallies: up to fifteen votes for a choice


@dataclass(frozen=True)
class Majority:
    """The majority by unit: MISSING without votes, and where a split was dropped."""

    choice: IntArray
    split: BoolArray

    def at(self, positions: IntArray) -> "Majority":
        return Majority(self.choice[positions], self.split[positions])


def effective_split_rule(rule: SplitRule, offered: Collection[int]) -> SplitRule:
    """A split majority cannot count as a tie where the rubric offers none: it is dropped.

    Every coefficient of a block is then of the same items, and of the choices that were offered.
    """
    return SplitRule.DROP if rule is SplitRule.TIE and TIE not in offered else rule


def majority_of_votes(unit: IntArray, choice: IntArray, units: int, rule: SplitRule = SplitRule.TIE) -> Majority:
    """The majority in each unit; votes are in the order in which they were cast, MISSING is no vote."""
    votes = tally_votes(unit, choice, units)
    majority = leading_choice(votes, rule)
    if rule is SplitRule.FIRST:
        majority.choice[majority.split] = earliest_leading_choice(unit, choice, votes)[majority.split]
    return majority


def tally_votes(unit: IntArray, choice: IntArray, units: int) -> IntArray:
    """How many votes each choice has in each unit: choices × units."""
    is_vote_cast = choice != MISSING
    if not is_vote_cast.all():
        unit, choice = unit[is_vote_cast], choice[is_vote_cast]
    tally = np.empty((CHOICES, units), dtype=np.int32)
    for code, votes in enumerate(tally):
        votes[:] = np.bincount(unit[choice == code], minlength=units)
    return tally


def leading_choice(votes: IntArray, rule: SplitRule) -> Majority:
    """The majority of votes counted by choice and unit; a split is left MISSING by every rule but that of ties."""
    most = votes.max(axis=0)
    is_leading = votes == most
    split = (is_leading.sum(axis=0, dtype=np.int8) > 1) & (most > 0)
    chosen = np.zeros(len(most), dtype=np.int8)
    for code, leading_here in enumerate(is_leading):
        chosen += leading_here * np.int8(code)  # a sum of one, but for splits
    chosen[most == 0] = MISSING
    chosen[split] = TIE if rule is SplitRule.TIE else MISSING
    return Majority(chosen, split)


@lru_cache(maxsize=4)
def enumerate_tallies(most: int) -> IntArray:
    """All tallies of up to ``most`` votes for each choice, indexed by code: choices × codes."""
    codes = np.arange((most + 1) ** CHOICES)
    return np.stack([codes // weight % (most + 1) for weight in tally_code_weights(most)])


def tally_code_weights(most: int) -> list[int]:
    """The weight of a vote for each choice in the code of a tally."""
    return [(most + 1) ** code for code in range(CHOICES)]


def earliest_leading_choice(unit: IntArray, choice: IntArray, votes: IntArray) -> IntArray:
    """Per unit the leading choice whose first vote came earliest."""
    is_leading = votes == votes.max(axis=0)
    counted = (choice != MISSING) & is_leading[choice, unit]
    units_found, where = np.unique(unit[counted], return_index=True)
    first = np.full(votes.shape[1], MISSING)
    first[units_found] = choice[counted][where]
    return first


@dataclass(frozen=True)
class RatingDesign:
    """The raters and items of votes: one entry each, adjacent by item and in the order cast (`rating_design`).

    ``order``: the position of each entry among the votes in the order cast.
    """

    order: IntArray
    item: IntArray
    rater: IntArray

    @cached_property
    def starts(self) -> IntArray:
        """The first entry of each item."""
        return np.flatnonzero(is_first_of_item(self.item))

    @cached_property
    def items(self) -> IntArray:
        """The items that anybody voted on."""
        return self.item[self.starts]

    @cached_property
    def unit(self) -> IntArray:
        """The index in ``items`` of each entry's item."""
        return np.cumsum(is_first_of_item(self.item)) - 1

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """All pairs of entries of an item, as the earlier and the later entry of each."""
        return pairs_within_items(self.item)

    @cached_property
    def deduplicated(self) -> "RatingDesign":
        """The design with one entry for each rater and item, the first of each."""
        earlier, later = self.pairs
        if not (self.rater[earlier] == self.rater[later]).any():
            return self
        _, first = np.unique(self.rater_item_key, return_index=True)
        return RatingDesign(self.order[first], self.item[first], self.rater[first])

    @cached_property
    def deduplicated_index(self) -> IntArray:
        """The index in ``deduplicated`` of each entry's rater and item."""
        if self.deduplicated is self:
            return np.arange(len(self.item))
        return np.unique(self.rater_item_key, return_inverse=True)[1]

    @property
    def rater_item_key(self) -> IntArray:
        return self.unit * (int(self.rater.max(initial=0)) + 1) + self.rater

    @cached_property
    def by_rater(self) -> dict[int, IntArray]:
        """The entries of each rater with votes."""
        return dict(group_positions(self.rater))

    @cached_property
    def rater_pairs(self) -> tuple[IntArray, IntArray, IntArray]:
        """For each pair of entries of an item: that of the lower rater number, the other, and a key of both raters."""
        earlier, later = self.pairs
        is_swapped = self.rater[earlier] > self.rater[later]
        first, second = np.where(is_swapped, later, earlier), np.where(is_swapped, earlier, later)
        return first, second, self.rater[first] * self.raters + self.rater[second]

    @property
    def raters(self) -> int:
        return int(self.rater.max(initial=0)) + 1

    @cached_property
    def shared_items(self) -> dict[tuple[int, int], tuple[IntArray, IntArray]]:
        """For each two raters who share an item, the entries of the first and of the second, item by item."""
        first, second, both = self.rater_pairs
        return {
            divmod(key, self.raters): (first[positions], second[positions]) for key, positions in group_positions(both)
        }

    @cached_property
    def pair_sizes(self) -> tuple[IntArray, IntArray]:
        """The keys of the pairs of raters who share an item, and how many entries they share."""
        numbers, sizes = np.unique(self.rater_pairs[2], return_counts=True)
        return numbers, sizes

    def largest_shared_items(self, most: int) -> dict[tuple[int, int], tuple[IntArray, IntArray]]:
        """`shared_items` of the ``most`` pairs that share most items, in this order; ties by lower rater numbers."""
        numbers, sizes = self.pair_sizes
        chosen = numbers[np.argsort(-sizes, kind="stable")[:most]]
        first, second, both = self.rater_pairs
        kept = np.flatnonzero(np.isin(both, chosen))
        entries_by_pair = {
            key: (first[kept[positions]], second[kept[positions]]) for key, positions in group_positions(both[kept])
        }
        return {divmod(key, self.raters): entries_by_pair[key] for key in chosen.tolist()}


def rating_design(item: IntArray, rater: IntArray) -> RatingDesign:
    """The rating design, from item and rater of each vote in the order in which they were cast."""
    order = radix_order(item)
    return RatingDesign(order, item[order], rater[order])


def is_first_of_item(item: IntArray) -> BoolArray:
    """Whether each entry is the first of its item; ``item``: with equal items adjacent."""
    return np.concatenate([np.ones(len(item[:1]), dtype=bool), item[1:] != item[:-1]])


def pairs_within_items(item: IntArray) -> tuple[IntArray, IntArray]:
    """All pairs of entries of the same item, as positions, earlier and later; ``item``: with equal items adjacent."""
    earlier = [np.empty(0, dtype=np.int64)]
    later = [np.empty(0, dtype=np.int64)]
    apart = 1
    while len(same := np.flatnonzero(item[apart:] == item[:-apart])):
        earlier.append(same)
        later.append(same + apart)
        apart += 1
    if apart == 2:
        return earlier[1], later[1]
    one, other = np.concatenate(earlier), np.concatenate(later)
    by_item = radix_order(one)
    return one[by_item], other[by_item]


def group_positions(key: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each key with the positions of its entries."""
    order = radix_order(key)
    starts = np.flatnonzero(is_first_of_item(key[order]))
    for positions in np.split(order, starts[1:]):
        if len(positions):
            yield int(key[positions[0]]), positions


@dataclass(frozen=True)
class Votes:
    """Votes on one aspect in the order in which they were cast: comparison, rater, order shown, choice.

    A choice is MISSING where the person has none on this aspect. ``known_design``: the design, if it was computed for
    another aspect.
    """

    item: IntArray
    rater: IntArray
    shown: IntArray
    choice: IntArray
    known_design: RatingDesign | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.choice != MISSING))

    def where(self, selected: BoolArray) -> "Votes":
        if selected.all():
            return self
        return Votes(self.item[selected], self.rater[selected], self.shown[selected], self.choice[selected])

    @cached_property
    def design(self) -> RatingDesign:
        return self.known_design or rating_design(self.item, self.rater)


def with_shared_design(votes: Votes, others: Iterable[Votes]) -> Votes:
    """The votes with the rating design of others, where the same people voted on the same items in the same order.

    For a million votes this comparison costs less than to find the design again.
    """
    for other in others:
        if np.array_equal(votes.item, other.item) and np.array_equal(votes.rater, other.rater):
            return replace(votes, known_design=other.design)
    return votes


def distinct_choices(votes: Votes) -> Votes:
    """One vote for each distinct choice on an item, so that no majority outvotes another choice."""
    _, first = np.unique(votes.item * CHOICES + votes.choice, return_index=True)
    is_distinct = np.zeros(len(votes.item), dtype=bool)
    is_distinct[first] = True
    return votes.where(is_distinct & (votes.choice != MISSING))


def one_vote_per_person(votes: Votes) -> Votes:
    """One vote of each person on a comparison: the choice made more often, else a tie."""
    design, order = votes.design.deduplicated, votes.design.order
    chosen = majority_of_votes(votes.design.deduplicated_index, votes.choice[order], len(design.item)).choice
    return Votes(design.item, design.rater, votes.shown[design.order], chosen).where(chosen != MISSING)


def vote_pairs(item: IntArray) -> tuple[IntArray, IntArray]:
    """All pairs of entries of the same item, as positions of the earlier and the later one; items in any order."""
    order = radix_order(item)
    earlier, later = pairs_within_items(item[order])
    return order[earlier], order[later]

"""Who voted on what. It is the same for every aspect of a study, so what follows from it is found once."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evaluations.stats.coding import BoolArray, IntArray


@dataclass(frozen=True)
class Turnout:
    """One entry for each vote, those on an item side by side in the order cast. `turnout` makes it.

    ``order``: where each entry stands among the votes as they came.
    """

    order: IntArray
    item: IntArray
    rater: IntArray

    @cached_property
    def starts(self) -> IntArray:
        """The first entry of each item."""
        return np.flatnonzero(first_of_each(self.item))

    @cached_property
    def items(self) -> IntArray:
        """The items that anybody voted on."""
        return self.item[self.starts]

    @cached_property
    def unit(self) -> IntArray:
        """The place of each entry's item among ``items``."""
        return np.cumsum(first_of_each(self.item)) - 1

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Every two entries of an item, the earlier and the later one, by item."""
        return pairs_within(self.item)

    @cached_property
    def seats(self) -> "Turnout":
        """One entry for each person on an item: who voted there twice has two entries here and one seat."""
        one, other = self.pairs
        if not (self.rater[one] == self.rater[other]).any():
            return self
        _, first = np.unique(self.person_on_item, return_index=True)
        return Turnout(self.order[first], self.item[first], self.rater[first])

    @cached_property
    def seat(self) -> IntArray:
        """The place of each entry's person and item among ``seats``."""
        if self.seats is self:
            return np.arange(len(self.item))
        return np.unique(self.person_on_item, return_inverse=True)[1]

    @property
    def person_on_item(self) -> IntArray:
        return self.unit * (int(self.rater.max(initial=0)) + 1) + self.rater

    @cached_property
    def by_rater(self) -> dict[int, IntArray]:
        """The entries of each rater who voted at all."""
        return dict(groups(self.rater))

    @cached_property
    def met(self) -> tuple[IntArray, IntArray, IntArray]:
        """Of every two entries of an item that of the rater with the lower number, the other, and a number for both."""
        one, other = self.pairs
        turned = self.rater[one] > self.rater[other]
        first, second = np.where(turned, other, one), np.where(turned, one, other)
        return first, second, self.rater[first] * self.raters + self.rater[second]

    @property
    def raters(self) -> int:
        return int(self.rater.max(initial=0)) + 1

    @cached_property
    def meetings(self) -> dict[tuple[int, int], tuple[IntArray, IntArray]]:
        """For each two raters who share an item the entries of the first and of the second, item by item."""
        first, second, both = self.met
        return {divmod(key, self.raters): (first[places], second[places]) for key, places in groups(both)}

    @cached_property
    def pair_sizes(self) -> tuple[IntArray, IntArray]:
        """The numbers of those two raters who share an item, and how many they share."""
        numbers, sizes = np.unique(self.met[2], return_counts=True)
        return numbers, sizes

    def largest_meetings(self, most: int) -> dict[tuple[int, int], tuple[IntArray, IntArray]]:
        """The same of so many: those who share most items first, of equal ones those with the lower numbers."""
        numbers, sizes = self.pair_sizes
        chosen = numbers[np.argsort(-sizes, kind="stable")[:most]]
        first, second, both = self.met
        kept = np.flatnonzero(np.isin(both, chosen))
        of = {key: (first[kept[places]], second[kept[places]]) for key, places in groups(both[kept])}
        return {divmod(key, self.raters): of[key] for key in chosen.tolist()}


def turnout(item: IntArray, rater: IntArray) -> Turnout:
    """From votes in the order in which they were cast: item and rater of each."""
    order = in_order(item)
    return Turnout(order, item[order], rater[order])


def in_order(key: IntArray) -> IntArray:
    """The places of whole numbers from 0, the smallest first, equal ones as they stand.

    By sixteen bits at a time, lowest first: numpy sorts such numbers in linear time.
    """
    if (key[1:] >= key[:-1]).all():
        return np.arange(len(key))
    order = np.argsort(key.astype(np.uint16), kind="stable")
    for shift in range(16, int(key.max()).bit_length(), 16):
        order = order[np.argsort((key >> shift).astype(np.uint16)[order], kind="stable")]
    return order


def first_of_each(item: IntArray) -> BoolArray:
    """Whether an entry is the first of its item, items side by side."""
    return np.concatenate([np.ones(len(item[:1]), dtype=bool), item[1:] != item[:-1]])


def pairs_within(item: IntArray) -> tuple[IntArray, IntArray]:
    """Every unordered pair of entries of the same item, items side by side: the earlier and the later place."""
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
    by_item = in_order(one)
    return one[by_item], other[by_item]


def groups(key: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each key with the places that have it, in order."""
    order = in_order(key)
    starts = np.flatnonzero(first_of_each(key[order]))
    for places in np.split(order, starts[1:]):
        if len(places):
            yield int(key[places[0]]), places

"""The verdicts of reviewers on shared comparisons, one for each person, comparison and aspect."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.coding import CHOICES, MISSING, BoolArray, IntArray
from evaluations.stats.ranks import radix_order
from evaluations.stats.votes import Votes, group_positions, is_first_of_item, one_vote_per_person

NO_ENTRIES: IntArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class VerdictDesign:
    """Who reviewed what: an entry for each reviewer and comparison, sorted by comparison and then by reviewer."""

    item: IntArray
    rater: IntArray
    cluster: IntArray

    @cached_property
    def unit(self) -> IntArray:
        """The number of each entry's comparison, from 0 without gaps."""
        return np.asarray(np.cumsum(is_first_of_item(self.item)) - 1)

    @cached_property
    def size(self) -> IntArray:
        """How many reviewers each entry's comparison has."""
        return np.asarray(np.bincount(self.unit)[self.unit])

    @cached_property
    def start(self) -> IntArray:
        """The first entry of each entry's comparison."""
        return np.asarray(np.flatnonzero(is_first_of_item(self.item))[self.unit])

    @cached_property
    def by_rater(self) -> dict[int, IntArray]:
        """The entries of each reviewer."""
        return dict(group_positions(self.rater))

    @cached_property
    def is_shared(self) -> BoolArray:
        """Whether each entry's comparison has another reviewer."""
        return np.asarray(self.size > 1)

    def facing(self, rater: int) -> tuple[IntArray, IntArray]:
        """Every entry of a reviewer paired with each entry of somebody else on the same comparison."""
        entries = self.by_rater.get(rater, NO_ENTRIES)
        own, other = pair_with_range(entries, self.start[entries], self.size[entries] - 1)
        return own, other + (other >= own)

    def facing_higher(self, rater: int) -> tuple[IntArray, IntArray]:
        """Every entry of a reviewer paired with those of higher reviewer numbers on the same comparison."""
        entries = self.by_rater.get(rater, NO_ENTRIES)
        return pair_with_range(entries, entries + 1, self.start[entries] + self.size[entries] - entries - 1)


def pair_with_range(entries: IntArray, first: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Each entry as often as ``count`` says, with the positions that follow ``first``."""
    offset = first - np.cumsum(count) + count
    return np.repeat(entries, count), np.repeat(offset, count) + np.arange(int(count.sum()))


@dataclass(frozen=True)
class AspectVerdicts:
    """The verdicts on one aspect: of each entry of the design its choice, MISSING without one, and the order shown."""

    design: VerdictDesign
    choice: IntArray
    shown: IntArray


@dataclass(frozen=True)
class SortedVotes:
    """Votes with the order that sorts them by comparison and reviewer, and their design in that order."""

    votes: Votes
    order: IntArray
    design: VerdictDesign

    @cached_property
    def has_repeats(self) -> bool:
        """Whether anybody voted twice on a comparison."""
        item, rater = self.design.item, self.design.rater
        return bool(((item[1:] == item[:-1]) & (rater[1:] == rater[:-1])).any())


def sort_votes(votes: Votes, cluster: IntArray) -> SortedVotes:
    order = radix_order(votes.item.astype(np.int64) * (int(votes.rater.max(initial=0)) + 1) + votes.rater)
    item = votes.item[order]
    return SortedVotes(votes, order, VerdictDesign(item, votes.rater[order], cluster[item]))


def gather_verdicts(materials: Iterable[AspectMaterial]) -> tuple[AspectVerdicts, ...]:
    """The verdicts on each aspect; aspects with the same votes on the same comparisons share one design."""
    known: list[SortedVotes] = []
    verdicts = []
    for material in materials:
        votes = material.people
        rows = next((one for one in known if has_same_rows(one.votes, votes)), None)
        if rows is None:
            known.append(rows := sort_votes(votes, material.cluster))
        if rows.has_repeats:
            votes = one_vote_per_person(votes)
            rows = sort_votes(votes, material.cluster)
        verdicts.append(AspectVerdicts(rows.design, votes.choice[rows.order], votes.shown[rows.order]))
    return tuple(verdicts)


def has_same_rows(votes: Votes, other: Votes) -> bool:
    return np.array_equal(votes.item, other.item) and np.array_equal(votes.rater, other.rater)


def is_shared(design: VerdictDesign, code: IntArray) -> BoolArray:
    """Whether each entry has a code, as the entry of another reviewer on its comparison does."""
    has_code = code != MISSING
    if has_code.all():
        return design.is_shared
    with_code = np.bincount(design.unit, has_code)
    return np.asarray(has_code & (with_code[design.unit] > 1))


def count_shared_choices(verdicts: Iterable[AspectVerdicts], reviewers: int) -> IntArray:
    """How often each reviewer made each choice on comparisons with the verdict of another one: reviewers × CHOICES."""
    counts = np.zeros(reviewers * CHOICES, dtype=np.int64)
    for aspect in verdicts:
        shared = is_shared(aspect.design, aspect.choice)
        cell = aspect.design.rater * np.int64(CHOICES) + aspect.choice
        cell = cell if shared.all() else cell[shared]
        counts += np.bincount(cell, minlength=len(counts))
    return counts.reshape(reviewers, CHOICES)


def verdicts_of(verdicts: Iterable[AspectVerdicts], is_kept: BoolArray) -> tuple[AspectVerdicts, ...]:
    """The verdicts of some reviewers, numbered anew from 0; ``is_kept``: of each reviewer number."""
    if is_kept.all():
        return tuple(verdicts)
    number, selected = np.cumsum(is_kept) - 1, []
    for design, aspects in group_by_design(verdicts):
        kept = is_kept[design.rater]
        own = VerdictDesign(design.item[kept], number[design.rater[kept]], design.cluster[kept])
        selected += [AspectVerdicts(own, aspect.choice[kept], aspect.shown[kept]) for aspect in aspects]
    return tuple(selected)


def group_by_design(verdicts: Iterable[AspectVerdicts]) -> list[tuple[VerdictDesign, list[AspectVerdicts]]]:
    """Each design with the verdicts on the aspects that share it."""
    groups: dict[int, tuple[VerdictDesign, list[AspectVerdicts]]] = {}
    for aspect in verdicts:
        groups.setdefault(id(aspect.design), (aspect.design, []))[1].append(aspect)
    return list(groups.values())

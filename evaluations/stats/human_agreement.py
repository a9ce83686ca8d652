"""Inter-annotator agreement: pooled pairs of votes, each person with the others, pairs of people, all raters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Final

import numpy as np

from evaluations.domain.choices import PACKED_CHOICES
from evaluations.stats.agreement import (
    ALL,
    CELLS,
    CONSTANT_RATER,
    SAME,
    SAME_IN_ORDER,
    AgreementBlock,
    MajorityBlock,
    PooledBlock,
    agreement_block,
    stack_measures,
)
from evaluations.stats.agreement_coefficients import (
    IN_ORDER,
    SIDES,
    alpha_nominal,
    alpha_ordinal,
    contingency_tables,
    scott_pi,
)
from evaluations.stats.cluster_totals import Contributions, cross_tabulate_by_cluster, number_clusters, sum_by_cluster
from evaluations.stats.coding import CHOICES, MISSING, FloatArray, IntArray
from evaluations.stats.confidence_intervals import (
    CORRELATION_BOUNDS,
    MIN_DISAGREEING,
    Spread,
    Statistic,
    differentiate,
    why_interval_withheld,
)
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.polls import Poll
from evaluations.stats.votes import Majority, enumerate_tallies

TOO_FEW_VOTES: Final = "No comparison has two votes."
NO_VARIATION: Final = "Every vote is the same choice, so there is no variation to agree on."
MAX_KINDS: Final = 256  # of tallies; with more it is no quicker to count them
KINDS_OF_PAIRS: Final = tuple(combinations_with_replacement(range(CHOICES), 2))
OF_PAIRS: Final = (CORRELATION_BOUNDS,) * 3


@dataclass(frozen=True)
class MultiRaterAgreement:
    """Agreement of all raters together. ``units``: the items with two votes or more; ordinal: A – tie – B."""

    krippendorff_alpha: Estimate
    krippendorff_alpha_ordinal: Estimate
    fleiss_kappa: Estimate
    gwet_ac1: Estimate
    units: int

    @property
    def numbers(self) -> tuple[Estimate, ...]:
        return self.krippendorff_alpha, self.krippendorff_alpha_ordinal, self.fleiss_kappa, self.gwet_ac1


def multi_rater_agreement(poll: Poll, q: int) -> MultiRaterAgreement:
    """Alpha, Fleiss' kappa and AC1 of all raters on one aspect. ``q``: how many choices the rubric offers."""
    units = int((poll.vote_counts >= SIDES).sum())
    why = CONSTANT_RATER if units and has_constant_rater_of_two(poll) else TOO_FEW_VOTES
    if not units or why is CONSTANT_RATER:
        nothing = undefined_estimate(why, units)
        return MultiRaterAgreement(nothing, nothing, nothing, nothing, units)
    pairs = vote_coincidences(poll)
    nominal, ordinal, fleiss = coincidence_estimates(Spread(pairs), poll.vote_counts, units)
    few = why_interval_withheld(pairs, ~SAME, among=ALL)
    return MultiRaterAgreement(nominal, ordinal, fleiss, multi_rater_ac1(poll, max(q, SIDES), units, few), units)


def has_constant_rater_of_two(poll: Poll) -> bool:
    """Whether there are two raters and exactly one always makes the same choice on shared comparisons.

    Below MIN_DISAGREEING shared comparisons it is False: so few may agree by chance, and no interval is given there.
    """
    votes = poll.per_rater
    if len(votes.design.by_rater) != SIDES:
        return False
    shared = (poll.vote_counts >= SIDES)[votes.design.unit] & (votes.choice != MISSING)
    first, second = (votes.choice[entries][shared[entries]] for entries in votes.design.by_rater.values())
    if len(first) < MIN_DISAGREEING:
        return False
    constant = [int(np.ptp(chosen)) == 0 for chosen in (first, second)]
    return any(constant) and not (all(constant) and first[0] == second[0])


def vote_coincidences(poll: Poll) -> Contributions:
    """Coincidences by cluster: each pair of votes on an item of m votes counts 1 ÷ (m − 1), in one direction only."""
    if has_many_pairs(poll):
        item, cell, pairs = count_vote_pairs(poll)
        return Contributions(poll.cluster_of_items[item], cell, CELLS, pairs / (poll.vote_counts[item] - 1))
    first, second = poll.design.pairs
    both = (poll.choice[first] != MISSING) & (poll.choice[second] != MISSING)
    if not both.all():
        first, second = first[both], second[both]
    votes = poll.vote_counts[poll.design.unit[first]]
    weight = None if (votes == SIDES).all() else 1 / (votes - 1)
    cell = poll.choice[first].astype(np.int64) * CHOICES + poll.choice[second]
    return Contributions(poll.cluster[first], cell, CELLS, weight)


def pooled_votes(poll: Poll) -> Contributions:
    """Counts by cluster of the choices in each pair of votes on an item."""
    if has_many_pairs(poll):
        item, cell, pairs = count_vote_pairs(poll)
        return Contributions(poll.cluster_of_items[item], cell, CELLS, pairs)
    first, second = poll.design.pairs
    return cross_tabulate_by_cluster(poll.choice[first], poll.choice[second], poll.cluster[first])


def has_many_pairs(poll: Poll) -> bool:
    """Whether there are more pairs of votes than kinds of pairs on all items."""
    votes = poll.vote_counts.astype(np.int64)
    return int((votes * (votes - 1)).sum()) // 2 > len(KINDS_OF_PAIRS) * len(votes)


def count_vote_pairs(poll: Poll) -> tuple[IntArray, IntArray, FloatArray]:
    """Item, cell and number of the pairs of votes of each kind on each item, the lower choice first."""
    tally = poll.tally.astype(np.float64)
    counts = np.stack([tally[i] * (tally[j] - (i == j)) / (1 + (i == j)) for i, j in KINDS_OF_PAIRS], axis=1)
    item, kind = np.nonzero(counts)
    cells = np.array([i * CHOICES + j for i, j in KINDS_OF_PAIRS])
    return item, cells[kind], counts[item, kind]


def coincidence_statistic(totals: FloatArray) -> FloatArray:
    """Alpha nominal and ordinal, and Fleiss' kappa, which is Scott's pi of coincidences (Fleiss 1971)."""
    table = contingency_tables(totals)
    both_ways = table.counts + np.swapaxes(table.counts, -1, -2)
    in_order = IN_ORDER @ both_ways @ IN_ORDER.T
    return stack_measures(alpha_nominal(both_ways), alpha_ordinal(in_order), scott_pi(table))


def coincidence_estimates(spread: Spread, vote_counts: IntArray, units: int) -> list[Estimate]:
    measured = differentiate(coincidence_statistic, spread.contributions.totals)
    values = measured.values.tolist()
    estimates = [
        Estimate(value, units) if np.isfinite(value) else undefined_estimate(NO_VARIATION, units) for value in values
    ]
    fewest, most = int(vote_counts[vote_counts > 0].min()), int(vote_counts.max())
    if fewest != most:
        why = f"Needs the same number of votes on every comparison; here {fewest} to {most}."
        estimates[-1] = undefined_estimate(why, units)
    reasons = [why_interval_withheld(spread.contributions, ~same, among=ALL) for same in (SAME, SAME_IN_ORDER, SAME)]
    return spread.intervals_or_wilson(estimates, measured, OF_PAIRS, reasons, (ALL,) * len(reasons))


def multi_rater_ac1(poll: Poll, q: int, units: int, few: str | None) -> Estimate:
    counted = count_tallies_by_cluster(poll)
    spread, statistic = ac1_by_item(poll, q) if counted is None else ac1_by_tally(*counted, q)
    number = Estimate(float(statistic(spread.contributions.totals)), units)
    return number.without_interval(few) if few else spread.interval(number, statistic, CORRELATION_BOUNDS)


def ac1_by_item(poll: Poll, q: int) -> tuple[Spread, Statistic]:
    """Totals by cluster, summed over items, and AC1 as a statistic of them."""
    (voted,) = np.nonzero(poll.vote_counts)
    values = tally_shares(poll.tally[:, voted].astype(np.float64))
    return Spread(sum_by_cluster(number_clusters(poll.cluster_of_items[voted]), *values)), multi_rater_ac1_statistic(q)


def ac1_by_tally(counted: Contributions, tallies: IntArray, q: int) -> tuple[Spread, Statistic]:
    """Totals by cluster, the number of items with each tally, and AC1 as a statistic of them."""
    values = np.stack([np.ones(counted.cells), *tally_shares(tallies.astype(np.float64))], axis=1)
    ac1 = multi_rater_ac1_statistic(q)
    return Spread(counted), lambda totals: ac1(totals @ values)


def count_tallies_by_cluster(poll: Poll) -> tuple[Contributions, IntArray] | None:
    """How often each tally of votes occurs, and the tallies, choices × kinds; None where there are too many kinds."""
    if not poll.has_tally_codes:
        return None
    (voted,) = np.nonzero(poll.vote_counts)
    kind = number_clusters(poll.tally_code[voted])
    if kind.count > MAX_KINDS:
        return None
    present = np.flatnonzero(np.bincount(poll.tally_code[voted]))
    return Contributions(poll.cluster_of_items[voted], kind.of, kind.count), enumerate_tallies(poll.most_votes)[
        :, present
    ]


def tally_shares(tally: FloatArray) -> list[FloatArray]:
    """For each item with a vote: the share of agreeing pairs, whether it has a pair, and the share of each choice.

    ``tally``: choices × items.
    """
    votes = tally.sum(axis=0)
    alike = (tally * (tally - 1)).sum(axis=0) / np.maximum(votes * (votes - 1), 1)
    return [alike, (votes >= SIDES).astype(np.float64), *(tally / votes)]


def multi_rater_ac1_statistic(q: int) -> Statistic:
    """Gwet's AC1 of several raters (Gwet 2008): items with two votes or more weigh 1, prevalence is over all items.

    ``totals``: the number of items and the sums over them of `tally_shares`, … × (3 + choices) → ….
    """

    def statistic(totals: FloatArray) -> FloatArray:
        items, agreeing, shared = (totals[..., cell] for cell in (0, 1, 2))
        prevalence = totals[..., 3:] / items[..., None]
        by_chance = (prevalence * (1 - prevalence)).sum(axis=-1) / (q - 1)
        return np.asarray((agreeing / shared - by_chance) / (1 - by_chance))

    return statistic


SharedItems = Mapping[tuple[int, int], tuple[IntArray, IntArray]]
MAX_REVIEWERS: Final = 30  # with more, the numbers of all pairs would be most of a report
PAIRS_OF_MANY: Final = 20
NO_TWO_VOTES: Final = "No comparison has two reviewer votes."
NO_TWO_PEOPLE: Final = "No comparison has votes of two reviewers."


@dataclass(frozen=True)
class ReviewerPair(AgreementBlock):
    rater_1: str
    rater_2: str


@dataclass(frozen=True)
class MajorityChoices:
    """Counts of the majorities by choice. ``n_split``: of the split ones, independent of the split rule."""

    n: int
    n_split: int
    choices: dict[str, int]


@dataclass(frozen=True)
class HumanHuman:
    """Agreement among people. ``pairs_left_out``: further pairs of reviewers who share a comparison."""

    votes: PooledBlock
    majority: MajorityBlock
    majority_choices: MajorityChoices
    pairs: tuple[ReviewerPair, ...]
    multi: MultiRaterAgreement
    pairs_left_out: int = 0


def human_agreement(
    poll: Poll,
    majority: Majority,
    others: Majority,
    names: Sequence[str],
    q: int,
    empty: str | None = None,
    *,
    all_pairs: bool = False,
) -> HumanHuman:
    """Agreement among the people of a poll.

    ``majority``: on each item. ``others``: the majority of the others, for each entry of ``poll.per_rater``.
    ``names``: the reviewer of each rater number. ``q``: how many choices the rubric offers. ``empty``: the reason where
    nothing is shared. ``all_pairs``: report every pair of reviewers, however many there are.
    """
    design = poll.per_rater.design
    is_whole = all_pairs or len(design.by_rater) <= MAX_REVIEWERS
    shared = design.shared_items if is_whole else design.largest_shared_items(PAIRS_OF_MANY)
    return HumanHuman(
        votes=pooled_agreement(poll, q, empty or NO_TWO_VOTES),
        majority=agreement_with_others_majority(poll, others, q, empty or NO_TWO_PEOPLE),
        majority_choices=count_majority_choices(majority),
        pairs=tuple(pairwise_agreements(poll.per_rater, shared, names, q)),
        multi=multi_rater_agreement(poll, q),
        pairs_left_out=0 if is_whole else len(design.pair_sizes[0]) - len(shared),
    )


def pooled_agreement(poll: Poll, q: int, empty: str) -> PooledBlock:
    """Agreement of all pairs of votes on a comparison.

    The order within a pair does not matter: every number here depends on the diagonal and on the sum of both margins.
    """
    block = agreement_block(pooled_votes(poll), q, empty=empty, raters_known=False)
    return PooledBlock(block.with_ties, block.without_ties, block.dropped, count_self_pairs(poll))


def count_self_pairs(poll: Poll) -> int:
    """How many pairs of votes on a comparison are of one person."""
    if poll.per_rater is poll:
        return 0
    first, second = poll.design.pairs
    same_rater = poll.design.rater[first] == poll.design.rater[second]
    return int((same_rater & (poll.choice[first] != MISSING) & (poll.choice[second] != MISSING)).sum())


def agreement_with_others_majority(poll: Poll, others: Majority, q: int, empty: str) -> MajorityBlock:
    each = poll.per_rater
    block = agreement_block(cross_tabulate_by_cluster(each.choice, others.choice, each.cluster), q, empty=empty)
    n_split = int((others.split & (each.choice != MISSING)).sum())
    return MajorityBlock(block.with_ties, block.without_ties, block.dropped, n_split)


def count_majority_choices(majority: Majority) -> MajorityChoices:
    decided = majority.choice[majority.choice != MISSING]
    counts = np.bincount(decided, minlength=CHOICES)
    by_choice = {str(choice): int(count) for choice, count in zip(PACKED_CHOICES, counts, strict=True)}
    return MajorityChoices(len(decided), int(majority.split.sum()), by_choice)


def pairwise_agreements(each: Poll, shared: SharedItems, names: Sequence[str], q: int) -> Iterator[ReviewerPair]:
    """The agreement of each two people. ``each``: one vote per person; ``shared``: the entries of both, by pair."""
    for (rater_1, rater_2), (first, second) in shared.items():
        table = cross_tabulate_by_cluster(each.choice[first], each.choice[second], each.cluster[first])
        if len(table.cell):
            block = agreement_block(table, q)
            yield ReviewerPair(block.with_ties, block.without_ties, block.dropped, names[rater_1], names[rater_2])

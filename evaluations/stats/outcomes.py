"""The outcomes of the matches on one aspect, as people and as a judge decided them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evaluations.stats.coding import MISSING, BoolArray, FloatArray, IntArray
from evaluations.stats.group_means import JudgedOutcomes, ReviewedSample
from evaluations.stats.matches import HalfArray, Matches, MatchGroups, halves_at, halves_by_side, number_sorted_clusters
from evaluations.stats.post_stratification import inclusion_probabilities
from evaluations.stats.ranking_evidence import RankingEvidence


@dataclass(frozen=True)
class ReviewedMatches:
    """The outcomes that people reviewed on one aspect, shared by all judges.

    ``choice``: the majority of the votes that count on each comparison, MISSING where there is none.
    ``picked_by_hand``: which comparisons have votes that do not count because they were not drawn at random.
    """

    matches: Matches
    choice: IntArray
    picked_by_hand: BoolArray | None = None

    def restricted_to(self, chosen: BoolArray) -> "ReviewedMatches":
        """The outcomes of the chosen comparisons."""
        undrawn = None if self.picked_by_hand is None else self.picked_by_hand[chosen]
        return ReviewedMatches(self.matches.restricted_to(chosen), self.choice[chosen], undrawn)

    @cached_property
    def counts(self) -> BoolArray:
        """Whether each comparison has a majority that counts."""
        return np.asarray(self.choice != MISSING)

    @cached_property
    def probability(self) -> FloatArray:
        """π of each comparison."""
        return inclusion_probabilities(self.matches.items.stratum, self.counts)

    @cached_property
    def items(self) -> IntArray:
        """The comparisons that count, in order of clusters."""
        return self.matches.by_cluster(np.flatnonzero(self.counts))

    @cached_property
    def weight(self) -> FloatArray:
        """The weight 1/π of each of ``items``."""
        return np.asarray(1 / self.probability[self.items])

    @cached_property
    def excluded(self) -> IntArray:
        """How many comparisons of each pair have votes and do not count."""
        pairs = (
            self.matches.pair[:0]
            if self.picked_by_hand is None
            else self.matches.pair[self.picked_by_hand & ~self.counts]
        )
        return np.bincount(pairs, minlength=len(self.matches.compared_pairs))

    @cached_property
    def halves(self) -> HalfArray:
        return halves_by_side(self.choice)

    @cached_property
    def pairs(self) -> ReviewedSample:
        return self.sample(self.matches.pairs)

    @cached_property
    def candidates(self) -> ReviewedSample:
        return self.sample(self.matches.candidates)

    @cached_property
    def evidence(self) -> RankingEvidence:
        matches, items = self.matches, self.items
        cluster, outcome = number_sorted_clusters(matches.items.cluster[items]), matches.of_first(self.halves, items)
        return RankingEvidence(matches, items, matches.pair[items], cluster, self.weight, outcome)

    def sample(self, groups: MatchGroups) -> ReviewedSample:
        entry = groups.where(self.counts)
        side = groups.side[entry]
        share = 1.0 if groups.share is None else groups.share[entry]
        return ReviewedSample(groups, entry, share / self.probability[side >> 1], halves_at(self.choice, side) / 2)


@dataclass(frozen=True)
class JudgedMatches:
    """The outcomes by one judge. ``choice``: its one verdict on each comparison, or MISSING."""

    matches: Matches
    choice: IntArray

    @cached_property
    def judged(self) -> BoolArray:
        """Whether each comparison has a verdict."""
        return np.asarray(self.choice != MISSING)

    @cached_property
    def tally(self) -> IntArray:
        return self.matches.tally(self.choice)

    @cached_property
    def halves(self) -> HalfArray:
        return halves_by_side(self.choice)

    @cached_property
    def pairs(self) -> JudgedOutcomes:
        return JudgedOutcomes(self.matches.pairs, self.tally, self.halves)

    @cached_property
    def candidates(self) -> JudgedOutcomes:
        return JudgedOutcomes(self.matches.candidates, self.matches.tally_of_candidates(self.tally), self.halves)

    @cached_property
    def evidence(self) -> RankingEvidence:
        """The evidence of the judge's verdicts; comparisons without one have weight 0."""
        matches, order = self.matches, self.matches.cluster_order
        weight, outcome = (self.choice[order] != MISSING).astype(np.float64), matches.of_first(self.halves, order)
        return RankingEvidence(matches, order, matches.pair_by_cluster, matches.number_by_cluster, weight, outcome)


def restrict_to_judged(reviewed: ReviewedMatches, judgement: JudgedMatches) -> tuple[ReviewedMatches, JudgedMatches]:
    """Both outcomes, restricted to comparisons with a verdict of the judge."""
    judged = judgement.judged
    if judged.all():
        return reviewed, judgement
    restricted = reviewed.restricted_to(judged)
    return restricted, JudgedMatches(restricted.matches, judgement.choice[judged])

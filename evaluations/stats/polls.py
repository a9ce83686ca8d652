"""The votes on one aspect by item, with the majority of the others for each vote."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evaluations.domain.reports import SplitRule
from evaluations.stats.cluster_totals import Contributions, narrow_codes
from evaluations.stats.coding import CHOICES, MISSING, BoolArray, FloatArray, IntArray
from evaluations.stats.judge_verdicts import Choices
from evaluations.stats.votes import (
    MAX_CODES,
    Majority,
    RatingDesign,
    Votes,
    earliest_leading_choice,
    enumerate_tallies,
    leading_choice,
    majority_of_votes,
    tally_code_weights,
    tally_votes,
)


@dataclass(frozen=True)
class Poll:
    """The votes on one aspect. ``choice`` and ``cluster``: of each entry of the design; MISSING without a choice.

    Clusters are numbered from 0 among those with a vote.
    """

    design: RatingDesign
    choice: IntArray
    cluster: IntArray

    @property
    def items(self) -> IntArray:
        return self.design.items

    @cached_property
    def cluster_of_items(self) -> IntArray:
        return self.cluster[self.design.starts]

    @cached_property
    def vote_counts(self) -> IntArray:
        """How many votes each item has on this aspect."""
        return np.asarray(self.tally.sum(axis=0))

    @cached_property
    def tally(self) -> IntArray:
        """How many votes each choice has on each item: choices × items."""
        return tally_votes(self.design.unit, self.choice, len(self.items))

    @cached_property
    def per_rater(self) -> "Poll":
        """The poll with one vote of each person on an item: the choice made more often, else a tie."""
        design = self.design.deduplicated
        if design is self.design:
            return self
        chosen = majority_of_votes(self.design.deduplicated_index, self.choice, len(design.item)).choice
        cluster = np.empty(len(design.item), dtype=self.cluster.dtype)
        cluster[self.design.deduplicated_index] = self.cluster
        return Poll(design, chosen, cluster)

    @cached_property
    def most_votes(self) -> int:
        """The most votes that a choice has on an item."""
        return int(self.tally.max(initial=0))

    @property
    def has_tally_codes(self) -> bool:
        """Whether tallies are few enough to be counted by their codes."""
        return bool((self.most_votes + 1) ** CHOICES <= MAX_CODES)

    @cached_property
    def tally_code(self) -> IntArray:
        """The code of the tally of each item, as in `enumerate_tallies`."""
        added = [votes * weight for votes, weight in zip(self.tally, tally_code_weights(self.most_votes), strict=True)]
        return np.asarray(sum(added))

    def majority(self, rule: SplitRule) -> Majority:
        if self.has_tally_codes and rule is not SplitRule.FIRST:
            return leading_choice(enumerate_tallies(self.most_votes), rule).at(self.tally_code)
        majority = leading_choice(self.tally, rule)
        if rule is SplitRule.FIRST:
            first = earliest_leading_choice(self.design.unit, self.choice, self.tally)
            majority.choice[majority.split] = first[majority.split]
        return majority

    def majority_of_the_others(self, rule: SplitRule) -> Majority:
        """For each entry of ``per_rater``, the majority of all votes of other people on its item."""
        if rule is SplitRule.FIRST:
            return self.majority_of_the_others_by_first_vote()
        if self.has_tally_codes and self.per_rater is self:
            own = np.array([*tally_code_weights(self.most_votes), 0])[self.choice]  # MISSING is the last position
            return leading_choice(enumerate_tallies(self.most_votes), rule).at(self.tally_code[self.design.unit] - own)
        votes = self.tally[:, self.per_rater.design.unit]
        votes -= self.votes_by_rater
        return leading_choice(votes, rule)

    @property
    def votes_by_rater(self) -> IntArray:
        """How many votes each choice has from each person on an item: choices × entries of ``per_rater``."""
        return tally_votes(self.design.deduplicated_index, self.choice, len(self.per_rater.choice))

    def majority_of_the_others_by_first_vote(self) -> Majority:
        """`majority_of_the_others` where a split goes to the choice that was made first."""
        earlier, later = self.design.pairs
        are_different = self.design.rater[earlier] != self.design.rater[later]
        facing_votes = (
            np.concatenate([earlier[are_different], later[are_different]]),
            np.concatenate([later[are_different], earlier[are_different]]),
        )
        rater_item, other_vote = self.design.deduplicated_index[facing_votes[0]], facing_votes[1]
        _, once = np.unique(rater_item * len(self.choice) + other_vote, return_index=True)
        # Sorted by seat and then by vote, which is the order in which votes on an item were cast.
        return majority_of_votes(
            rater_item[once], self.choice[other_vote[once]], len(self.per_rater.choice), SplitRule.FIRST
        )


def make_poll(votes: Votes, cluster: IntArray) -> Poll:
    """The poll of these votes. ``cluster``: of every item."""
    design = votes.design
    in_order = Contributions(cluster[design.item], design.item, 1)
    return Poll(design, narrow_codes(votes.choice[design.order]), in_order.cluster_number)


@dataclass(frozen=True)
class PersonVotes:
    """One entry for each person and item with a vote; two votes of a person on an item count once.

    ``kept``: the index of each among the entries of ``poll.per_rater``. ``item``: the index among the poll's items.
    ``vote_index``: of its first vote, in the order cast. ``others``: choices × entries, other people's votes on the
    item.
    """

    poll: Poll
    kept: IntArray
    item: IntArray
    rater: IntArray
    vote_index: IntArray
    choice: IntArray
    cluster: IntArray
    others: IntArray

    def __len__(self) -> int:
        return len(self.kept)

    @cached_property
    def others_voted(self) -> BoolArray:
        return np.asarray(self.others.any(axis=0))

    @cached_property
    def share_of_same_votes(self) -> FloatArray:
        """The share of other people's votes on the item that equal each entry's; 0 without other votes."""
        same = self.others[self.choice, np.arange(len(self))]
        return np.asarray(same / np.maximum(self.others.sum(axis=0), 1))

    def majority_of_the_others(self, rule: SplitRule) -> IntArray:
        """For each entry, the majority of the others; MISSING where nobody else voted, and for dropped splits."""
        if rule is SplitRule.FIRST:
            return self.poll.majority_of_the_others(rule).choice[self.kept].astype(np.int64)
        return leading_choice(self.others, rule).choice.astype(np.int64)


def person_votes(poll: Poll) -> PersonVotes:
    each = poll.per_rater
    counted = np.flatnonzero(each.choice != MISSING)
    item = each.design.unit[counted]
    return PersonVotes(
        poll=poll,
        kept=counted,
        item=item,
        rater=each.design.rater[counted],
        vote_index=each.design.order[counted],
        choice=each.choice[counted].astype(np.int64),
        cluster=each.cluster[counted],
        others=poll.tally[:, item] - poll.votes_by_rater[:, counted],
    )


def match_judge_choices(judge: Choices, people: PersonVotes) -> tuple[BoolArray, BoolArray]:
    """For each entry, whether the judge made the same choice, and whether it made any."""
    judged = judge[people.item]
    return judged == people.choice, judged != MISSING

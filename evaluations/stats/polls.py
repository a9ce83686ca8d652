"""The votes on one aspect by item, with the majority of the others for each vote."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evaluations.domain.reports import SplitRule
from evaluations.stats.cluster_totals import Contributions, narrow_codes
from evaluations.stats.coding import CHOICES, MISSING, BoolArray, FloatArray, IntArray
from evaluations.stats.judge_verdicts import Choices
from evaluations.stats.majority import (
    MOST_CODES,
    Majority,
    earliest_leading_choice,
    enumerate_tallies,
    leading_choice,
    majority_of_votes,
    tally_code_weights,
    tally_votes,
)
from evaluations.stats.votes import RatingDesign, Votes


@dataclass(frozen=True)
class Poll:
    """``choice`` and ``cluster`` have one entry for each of the turnout; MISSING where nothing was said on this.

    Clusters are numbered from 0 among those that somebody voted in.
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
        """One vote of each person on an item: the choice made more often where there are two, else a tie."""
        seats = self.design.deduplicated
        if seats is self.design:
            return self
        chosen = majority_of_votes(self.design.deduplicated_index, self.choice, len(seats.item)).choice
        cluster = np.empty(len(seats.item), dtype=self.cluster.dtype)
        cluster[self.design.deduplicated_index] = self.cluster
        return Poll(seats, chosen, cluster)

    @cached_property
    def most_votes(self) -> int:
        """The most votes that a choice has on an item."""
        return int(self.tally.max(initial=0))

    @property
    def has_tally_codes(self) -> bool:
        """Whether tallies are few enough to be counted by their codes."""
        return bool((self.most_votes + 1) ** CHOICES <= MOST_CODES)

    @cached_property
    def tally_code(self) -> IntArray:
        """That of the tally of each item, `every_tally`."""
        added = [votes * weight for votes, weight in zip(self.tally, tally_code_weights(self.most_votes), strict=True)]
        return np.asarray(sum(added))

    def majority(self, rule: SplitRule) -> Majority:
        """One entry for each item."""
        if self.has_tally_codes and rule is not SplitRule.FIRST:
            return leading_choice(enumerate_tallies(self.most_votes), rule).at(self.tally_code)
        found = leading_choice(self.tally, rule)
        if rule is SplitRule.FIRST:
            first = earliest_leading_choice(self.design.unit, self.choice, self.tally)
            found.choice[found.split] = first[found.split]
        return found

    def majority_of_the_others(self, rule: SplitRule) -> Majority:
        """For each entry of ``each`` the majority of all votes of other people on its item."""
        if rule is SplitRule.FIRST:
            return self.majority_of_the_others_by_first_vote()
        if self.has_tally_codes and self.per_rater is self:
            own = np.array([*tally_code_weights(self.most_votes), 0])[self.choice]  # MISSING is the last place
            return leading_choice(enumerate_tallies(self.most_votes), rule).at(self.tally_code[self.design.unit] - own)
        votes = self.tally[:, self.per_rater.design.unit]
        votes -= self.votes_by_rater
        return leading_choice(votes, rule)

    @property
    def votes_by_rater(self) -> IntArray:
        """How many votes each choice has from each person on an item: choices × entries of ``each``."""
        return tally_votes(self.design.deduplicated_index, self.choice, len(self.per_rater.choice))

    def majority_of_the_others_by_first_vote(self) -> Majority:
        """The same where a split goes to the choice that was made first: every vote of every other is looked at."""
        one, other = self.design.pairs
        apart = self.design.rater[one] != self.design.rater[other]
        facing = np.concatenate([one[apart], other[apart]]), np.concatenate([other[apart], one[apart]])
        seat, vote = self.design.deduplicated_index[facing[0]], facing[1]
        _, once = np.unique(seat * len(self.choice) + vote, return_index=True)
        # Sorted by seat and then by vote, which is the order in which votes on an item were cast.
        return majority_of_votes(seat[once], self.choice[vote[once]], len(self.per_rater.choice), SplitRule.FIRST)


def make_poll(votes: Votes, cluster: IntArray) -> Poll:
    """``cluster``: the cluster of every item."""
    found = votes.design
    in_order = Contributions(cluster[found.item], found.item, 1)
    return Poll(found, narrow_codes(votes.choice[found.order]), in_order.cluster_number)


@dataclass(frozen=True)
class PersonVotes:
    """One entry for each person and item with a vote; two votes of a person on an item count once.

    ``kept``: the entries among those of ``poll.per_rater``. ``item``: the place among the poll's. ``vote_index``: among
    the votes as they came, of the first one. ``others``: choices × entries, the votes of other people on the item.
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
        """The share of the other votes on the item that are the same; 0 where there are none."""
        same = self.others[self.choice, np.arange(len(self))]
        return np.asarray(same / np.maximum(self.others.sum(axis=0), 1))

    def majority_of_the_others(self, rule: SplitRule) -> IntArray:
        """MISSING where nobody else voted, and where a split is dropped."""
        if rule is SplitRule.FIRST:
            return self.poll.majority_of_the_others(rule).choice[self.kept].astype(np.int64)
        return leading_choice(self.others, rule).choice.astype(np.int64)


def person_votes(poll: Poll) -> PersonVotes:
    each = poll.per_rater
    kept = np.flatnonzero(each.choice != MISSING)
    item = each.design.unit[kept]
    return PersonVotes(
        poll=poll,
        kept=kept,
        item=item,
        rater=each.design.rater[kept],
        vote_index=each.design.order[kept],
        choice=each.choice[kept].astype(np.int64),
        cluster=each.cluster[kept],
        others=poll.tally[:, item] - poll.votes_by_rater[:, kept],
    )


def match_judge_choices(judge: Choices, found: PersonVotes) -> tuple[BoolArray, BoolArray]:
    """For each entry, whether the judge made the same choice, and whether it made any."""
    judged = judge[found.item]
    return judged == found.choice, judged != MISSING

"""The shares of reviewers' votes for each side of a pair of candidates: as studies print raw preferences."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import BOTH_BAD, MISSING, TIE, A, B
from evaluations.stats.estimates import Estimate
from evaluations.stats.grouped_shares import group_entries, shares_by_group
from evaluations.stats.matches import Matches
from evaluations.stats.votes import Votes

NO_VOTES: Final = "No reviewer voted on this pair."
WON_BY_A: Final = {A: 1.0, B: 0.0, TIE: 0.5, BOTH_BAD: 0.5}


@dataclass(frozen=True)
class PairVotes:
    """The votes on one pair. ``share``: that of ``first``, a tie or both bad being half a vote.

    Each vote counts as one, several on a comparison too, without the weights of strata.
    """

    first: str
    second: str
    first_votes: int
    ties: int
    second_votes: int
    share: Estimate


def count_votes_by_pair(votes: Votes, matches: Matches) -> tuple[PairVotes, ...]:
    """The votes on each compared pair that has any, in the order of the pairs."""
    cast = votes.choice != MISSING
    item, choice = votes.item[cast], votes.choice[cast]
    won = np.zeros(len(choice))
    for code, value in WON_BY_A.items():
        won[choice == code] = value
    won = np.where(matches.is_turned[item], 1 - won, won)
    pair, pairs = matches.pair[item].astype(np.int64), len(matches.compared_pairs)
    entries = group_entries(pair, pairs, matches.items.cluster[item])
    shares = shares_by_group(entries, won, np.ones(len(won), dtype=np.bool_), NO_VOTES)
    counts = [np.bincount(pair[won == value], minlength=pairs).tolist() for value in (1.0, 0.5, 0.0)]
    names = matches.items.candidates
    rows = zip(matches.first.tolist(), matches.second.tolist(), *counts, shares, strict=True)
    return tuple(PairVotes(names[first], names[second], *row) for first, second, *row in rows if sum(row[:3]))

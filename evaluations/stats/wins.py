"""The win rates, rankings and length-controlled win rates of one aspect."""

from collections.abc import Mapping
from dataclasses import dataclass

from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.corrected_ranking import rank_by_corrected_judge
from evaluations.stats.estimates import Estimate
from evaluations.stats.judge_verdicts import JudgeCoverage, judge_coverage
from evaluations.stats.length_control import LengthControlled, LengthDifferences, control_for_length
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches, restrict_to_judged
from evaluations.stats.ranking import Ranking, rank_candidates
from evaluations.stats.vote_shares import PairVotes, count_votes_by_pair
from evaluations.stats.votes import Votes
from evaluations.stats.win_rates import NOT_REVIEWED, WinRates, estimate_win_rates, mean_estimate


@dataclass(frozen=True)
class JudgeWins:
    """The win rates from people and from this judge, alone and corrected."""

    coverage: JudgeCoverage
    rates: WinRates
    ranking: Ranking
    corrected_ranking: Ranking
    at_equal_length: LengthControlled


@dataclass(frozen=True)
class Wins:
    """``people``: the win rate of each candidate as people alone have it. ``at_equal_length``: by their votes.

    ``votes``: their raw votes on each pair.
    """

    people: Mapping[str, Estimate]
    votes: tuple[PairVotes, ...]
    ranking: Ranking
    at_equal_length: LengthControlled
    judges: Mapping[str, JudgeWins]


def estimate_wins(
    reviewed: ReviewedMatches,
    votes: Votes,
    lengths: LengthDifferences,
    judges: Mapping[str, tuple[IntArray, BoolArray]],
    *,
    claims: int = 1,
) -> Wins:
    """``votes``: those that count. ``judges``: by name, the one verdict on each comparison, or MISSING, and which
    comparisons it was to judge.

    ``claims``: as in `estimate_win_rates`.
    """
    matches, means = reviewed.matches, reviewed.candidates.means
    return Wins(
        people={name: mean_estimate(means, group, NOT_REVIEWED) for group, name in enumerate(matches.items.candidates)},
        votes=count_votes_by_pair(votes, matches),
        ranking=rank_candidates(reviewed),
        at_equal_length=control_for_length(reviewed, lengths),
        judges={
            name: estimate_judge_wins(reviewed, JudgedMatches(matches, choice), selected, lengths, claims)
            for name, (choice, selected) in judges.items()
        },
    )


def estimate_judge_wins(
    reviewed: ReviewedMatches, judgement: JudgedMatches, selected: BoolArray, lengths: LengthDifferences, claims: int
) -> JudgeWins:
    covered = judge_coverage(judgement.choice, selected)
    partial = Ranking({}, covered.why, covered.judged, judgement.evidence.clusters) if covered.why else None
    return JudgeWins(
        coverage=covered,
        rates=estimate_win_rates(reviewed, judgement, selected, claims=claims),
        ranking=partial or rank_candidates(judgement),
        corrected_ranking=partial or rank_by_corrected_judge(*restrict_to_judged(reviewed, judgement)),
        at_equal_length=control_for_length(judgement, lengths),
    )

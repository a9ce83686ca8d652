"""Who wins on one aspect: as people say, as each judge says, and as each judge says once people correct it."""

from collections.abc import Mapping
from dataclasses import dataclass

from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.corrected_ranking import corrected_ranking
from evaluations.stats.coverage import Coverage, coverage
from evaluations.stats.length_control import (
    LengthControlled,
    Lengths,
    length_controlled_by_judge,
    length_controlled_by_people,
)
from evaluations.stats.numbers import Number
from evaluations.stats.outcomes import Judgement, Reviewed, on_judged
from evaluations.stats.ranking import Ranking, ranking_of_judge, ranking_of_people
from evaluations.stats.win_rates import NOT_REVIEWED, WinRates, mean, win_rates


@dataclass(frozen=True)
class JudgeWins:
    """``rates`` holds those from people and from this judge, alone and corrected, side by side."""

    coverage: Coverage
    rates: WinRates
    ranking: Ranking
    corrected_ranking: Ranking
    at_equal_length: LengthControlled


@dataclass(frozen=True)
class Wins:
    """``people``: the win rate of each candidate as people alone have it. ``at_equal_length``: by their votes."""

    people: Mapping[str, Number]
    ranking: Ranking
    at_equal_length: LengthControlled
    judges: Mapping[str, JudgeWins]


def wins(
    reviewed: Reviewed, lengths: Lengths, judges: Mapping[str, tuple[IntArray, BoolArray]], *, claims: int = 1
) -> Wins:
    """``judges``: by name, the one verdict on each comparison, or MISSING, and which comparisons it was to judge.

    ``claims``: as `win_rates` has it.
    """
    matches, means = reviewed.matches, reviewed.candidates.means
    return Wins(
        people={name: mean(means, one, NOT_REVIEWED) for one, name in enumerate(matches.items.candidates)},
        ranking=ranking_of_people(reviewed),
        at_equal_length=length_controlled_by_people(reviewed, lengths),
        judges={
            name: judge_wins(reviewed, Judgement(matches, choice), selected, lengths, claims)
            for name, (choice, selected) in judges.items()
        },
    )


def judge_wins(
    reviewed: Reviewed, judgement: Judgement, selected: BoolArray, lengths: Lengths, claims: int
) -> JudgeWins:
    covered = coverage(judgement.choice, selected)
    partial = Ranking({}, covered.why, covered.judged, judgement.evidence.clusters) if covered.why else None
    return JudgeWins(
        coverage=covered,
        rates=win_rates(reviewed, judgement, selected, claims=claims),
        ranking=partial or ranking_of_judge(judgement),
        corrected_ranking=partial or corrected_ranking(*on_judged(reviewed, judgement)),
        at_equal_length=length_controlled_by_judge(judgement, lengths),
    )

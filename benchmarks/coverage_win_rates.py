"""How often the intervals of win rates, rankings and length-controlled win rates hold what is true.

    python benchmarks/coverage_win_rates.py [replicates]

Three candidates meet on every query; what a query's comparisons have in common makes them alike. People review a
sample with unequal chances (where the judge sees a tie more often), the judge leans towards the last candidate and
towards length. In uneven studies two queries are a cluster, and where the last candidate is at its best a query is more
likely to have each of its comparisons, so that a mean over comparisons is not one over queries. One line of JSON for
each kind and size of study; 2,000 replicates take a few minutes.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from evaluations.stats.coding import MISSING, TIE, A, B, IntArray
from evaluations.stats.corrected_ranking import rank_by_corrected_judge
from evaluations.stats.estimates import Estimate
from evaluations.stats.items import Items
from evaluations.stats.length_control import LengthDifferences, control_for_length
from evaluations.stats.matches import Matches
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches
from evaluations.stats.ranking import rank_candidates
from evaluations.stats.win_rates import estimate_win_rates

CANDIDATES = 3
STRENGTHS = np.array([0.6, 0.1, -0.7])
LENGTH = 0.8  # what a much longer response gains with people
WORDINESS = 400.0  # characters that the last candidate writes more
AVERAGE = 300_000  # queries from which the truth is taken
# Queries, the chance of a comparison to be reviewed, and whether queries are uneven.
STUDIES = (
    (60, 0.3, False),
    (150, 0.2, False),
    (400, 0.2, False),
    (2_100, 0.1, False),
    (200, 0.3, True),
    (600, 0.2, True),
)
NAMES = tuple(f"candidate {number}" for number in range(CANDIDATES))


@dataclass(frozen=True)
class Study:
    matches: Matches
    truth: IntArray
    people: IntArray
    judge: IntArray


@dataclass
class Held:
    """How many intervals there were, how many held the truth, and how wide they were together."""

    given: int = 0
    held: int = 0
    asked: int = 0
    width: float = 0.0

    def count(self, number: Estimate, truth: float) -> None:
        self.asked += 1
        if number.ci95 is not None:
            self.given += 1
            self.held += number.ci95[0] <= truth <= number.ci95[1]
            self.width += number.ci95[1] - number.ci95[0]

    def as_json(self) -> dict[str, float | None]:
        coverage = round(self.held / self.given, 4) if self.given else None
        width = round(self.width / self.given, 4) if self.given else None
        return {"coverage": coverage, "withheld": round(1 - self.given / self.asked, 4), "width": width}


def study(queries: int, reviewed: float, rng: np.random.Generator, uneven: bool = False) -> Study:
    """``reviewed``: the chance of a comparison to be reviewed; three times that where the judge sees a tie."""
    first, second = np.triu_indices(CANDIDATES, 1)
    a, b, query = np.tile(first, queries), np.tile(second, queries), np.repeat(np.arange(queries), len(first))
    length = 1_500 + 400 * rng.normal(size=(queries, CANDIDATES)) + WORDINESS * np.eye(CANDIDATES)[-1]
    worth = STRENGTHS + 0.5 * rng.normal(size=(queries, CANDIDATES)) + LENGTH * length / 600
    if uneven:
        met = rng.random(len(query)) < np.where(worth[query, -1] > np.median(worth[:, -1]), 0.9, 0.35)
        a, b, query = a[met], b[met], query[met]
    truth = chosen(worth[query, a] - worth[query, b], rng)
    biased = worth + 0.6 * np.eye(CANDIDATES)[-1] + length / 600
    own = chosen(biased[query, a] - biased[query, b], rng)
    judge = np.where(rng.random(len(a)) < 0.55, truth, own)
    chance = np.minimum(np.where(judge == TIE, 3, 1) * reviewed, 1.0)
    seen = rng.random(len(a)) < chance
    items = items_of(a, b, query, length.round().astype(np.int64), (judge == TIE).astype(np.int64), 1 + uneven)
    return Study(Matches(items), truth, np.where(seen, truth, MISSING), judge)


def chosen(log_odds: np.ndarray, rng: np.random.Generator) -> IntArray:
    tied = rng.random(len(log_odds)) < 0.1
    return np.where(tied, TIE, np.where(rng.random(len(log_odds)) < 1 / (1 + np.exp(-log_odds)), A, B))


def items_of(
    a: IntArray, b: IntArray, query: IntArray, length: IntArray, stratum: IntArray, queries_a_cluster: int
) -> Items:
    nothing = np.zeros(len(a), dtype=np.int64)
    return Items(
        cluster=np.unique(query // queries_a_cluster, return_inverse=True)[1],
        category=nothing - 1,
        categories=(),
        candidate_a=a,
        candidate_b=b,
        candidates=NAMES,
        families=("",) * CANDIDATES,
        characters_a=length[query, a],
        characters_b=length[query, b],
        markup_a=nothing,
        markup_b=nothing,
        query=query,
        stratum=stratum,
    )


def numbers(population: Study) -> Iterator[tuple[str, str, Estimate]]:
    """Every kind of number of every candidate."""
    reviewed, judgement = (
        ReviewedMatches(population.matches, population.people),
        JudgedMatches(population.matches, population.judge),
    )
    for name, rate in estimate_win_rates(reviewed, judgement).candidates.items():
        yield "win rate, people", name, rate.people
        yield "win rate, judge", name, rate.judge
        yield "win rate, corrected", name, rate.corrected
    rankings = {
        "people": rank_candidates(reviewed),
        "judge": rank_candidates(judgement),
        "corrected": rank_by_corrected_judge(reviewed, judgement),
    }
    for kind, ranking in rankings.items():
        for name, standing in ranking.standings.items():
            yield f"score, {kind}", name, standing.score
    for name, number in control_for_length(reviewed, LengthDifferences(population.matches)).win_rates.items():
        yield "win rate at equal length, people", name, number


def truths(uneven: bool) -> dict[tuple[str, str], float]:
    """What everyone says of very many queries."""
    average = study(AVERAGE, 1.0, np.random.default_rng(1), uneven)
    everyone = Study(average.matches, average.truth, average.truth, average.truth)
    values = {(kind, name): number.value for kind, name, number in numbers(everyone) if number.value is not None}
    sources = [kind.replace("corrected", "people").replace("judge", "people") for kind, _ in values]
    return {key: values[source, key[1]] for key, source in zip(values, sources, strict=True)}


def main() -> None:
    replicates = int(sys.argv[1]) if sys.argv[1:] else 2_000
    true_values = {uneven: truths(uneven) for uneven in (False, True)}
    for queries, reviewed, uneven in STUDIES:
        rng, tally = np.random.default_rng(queries), defaultdict[str, Held](Held)
        for _ in range(replicates):
            for kind, name, number in numbers(study(queries, reviewed, rng, uneven)):
                tally[kind].count(number, true_values[uneven][kind, name])
        result = {kind: claimed.as_json() for kind, claimed in tally.items()}
        what = {"queries": queries, "uneven": uneven, "reviewed": reviewed, "replicates": replicates}
        print(json.dumps({**what, **result}), flush=True)


if __name__ == "__main__":
    main()

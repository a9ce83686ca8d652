"""How often a report claims a difference that is not there, and how often it finds one that is.

    python benchmarks/false_claims.py [--replicates 2000] [--case NAME …]

Each case is a population of reviewers and one judge. Every replicate goes the whole way from votes to claims. Prints a
line of JSON for each case: in how many reports a judge is called below or above reviewers on any aspect, and, for what
a judge is said to prefer, in how many it is said to prefer its own family or the longer response. 5 % of false claims
are promised; 2,000 replicates tell 5 % from 6.2 %. Seeds are fixed. One process a core.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from evaluations.domain.reports import SplitRule
from evaluations.stats.bias.paired_sides import ChosenSides, JudgeSides, pair_sides
from evaluations.stats.bias.strata import single_stratum
from evaluations.stats.bias.tendency import side_preference
from evaluations.stats.coding import IntArray, sides_of_choices
from evaluations.stats.human_ceiling import leave_one_out_votes
from evaluations.stats.polls import make_poll
from evaluations.stats.simultaneous_intervals import (
    Claim,
    MeanDifference,
    average_difference_over_raters,
    simultaneous_intervals,
)
from evaluations.stats.votes import Votes, majority_of_votes

CHOICES = 3  # A, B, tie
REPLICATES_A_TASK = 50
SEED = 17


@dataclass(frozen=True)
class Reviews:
    """``sizes``: the items of each cluster are one more than a Poisson of this, or Zipf's; ``giant``: of the first.

    ``knows``: how often a reviewer knows what is true of an item, else the choice is by chance; the judge knows it by
    ``worse`` less. ``shared``: with this probability an aspect has the truth of the item's first aspect, and an item
    that of its cluster.
    """

    clusters: int
    aspects: int
    reviewers: int = 2
    worse: float = 0.0
    items: float = 0.0
    zipf: float = 0.0
    giant: int = 0
    knows: float = 0.7
    shared: float = 0.3


@dataclass(frozen=True)
class Preferences:
    """A judge without any leaning to its own family, whose responses are better in ``better`` of the items.

    A reviewer is right with ``people``, the judge with ``judge``.
    """

    items: int
    better: float
    people: float
    judge: float
    reviewers: int = 3
    aspects: int = 6


CASES: Mapping[str, Reviews | Preferences] = {
    "1 aspect": Reviews(100, 1),
    "6 aspects": Reviews(100, 6),
    "12 aspects": Reviews(100, 12),
    "6 aspects, 50 items": Reviews(50, 6),
    "12 aspects, 400 items": Reviews(400, 12),
    "6 aspects, 5 reviewers": Reviews(100, 6, reviewers=5),
    "6 aspects, clusters of 3": Reviews(80, 6, reviewers=3, items=2.0),
    "12 aspects, clusters by Zipf": Reviews(200, 12, reviewers=3, zipf=2.2),
    "6 aspects, few clusters": Reviews(25, 6, reviewers=3, items=3.0),
    "6 aspects, one giant cluster": Reviews(100, 6, reviewers=3, items=1.0, giant=60),
    "6 aspects, 2,500 clusters": Reviews(2_500, 6),
    "15 points worse, 6 aspects": Reviews(200, 6, reviewers=3, worse=0.3),
    "15 points worse, 12 aspects, 400 items": Reviews(400, 12, reviewers=3, worse=0.3),
    "own family alike": Preferences(300, 0.5, 0.75, 0.75),
    "own family better, judge exchangeable": Preferences(300, 0.75, 0.75, 0.75),
    "own family better, judge knows more": Preferences(300, 0.75, 0.75, 0.85),
    "own family worse, judge knows less": Preferences(300, 0.25, 0.75, 0.65),
    "own family worse, judge knows nothing": Preferences(300, 0.25, 0.75, 0.5),
    "own family better, judge knows more, two reviewers": Preferences(300, 0.75, 0.75, 0.85, reviewers=2),
    "own family better, single reviewer": Preferences(300, 0.75, 0.75, 0.85, reviewers=1),
}


# ---- judge and reviewers ---------------------------------------------------------------------


def cluster_sizes(population: Reviews, rng: np.random.Generator) -> IntArray:
    if population.zipf:
        return np.minimum(rng.zipf(population.zipf, population.clusters), 30)
    sizes = 1 + rng.poisson(population.items, population.clusters)
    if population.giant:
        sizes[0] = population.giant
    return sizes


def differences(population: Reviews, rng: np.random.Generator) -> dict[int, MeanDifference | None]:
    """Of one judge on every aspect."""
    cluster = np.repeat(np.arange(population.clusters), cluster_sizes(population, rng))
    items, raters = len(cluster), population.reviewers + 1
    knows = np.full(raters, population.knows)
    knows[-1] -= population.worse
    of_cluster = rng.integers(CHOICES, size=population.clusters)[cluster]
    first = np.where(rng.random(items) < population.shared, of_cluster, rng.integers(CHOICES, size=items))
    item, rater = np.tile(np.arange(items), population.reviewers), np.repeat(np.arange(population.reviewers), items)
    by_aspect = {}
    for aspect in range(population.aspects):
        own = rng.integers(CHOICES, size=items)
        truth = np.where(rng.random(items) < population.shared, first, own)
        choices = np.where(
            rng.random((raters, items)) < knows[:, None], truth, rng.integers(CHOICES, size=(raters, items))
        )
        votes = make_poll(Votes(item, rater, np.zeros_like(item), choices[:-1].ravel()), cluster)
        company = leave_one_out_votes(choices[-1], votes, votes.majority_of_the_others(SplitRule.TIE))
        by_aspect[aspect] = average_difference_over_raters(company.person, company.judge_lead, company.cluster)
    return by_aspect


def claims(population: Reviews, replicate: int) -> dict[str, int]:
    shown = simultaneous_intervals(differences(population, np.random.default_rng([SEED, replicate]))).values()
    return {
        "any claim": any(interval.claim is not Claim.NONE for interval in shown),
        "below": any(interval.claim is Claim.BELOW for interval in shown),
        "above": any(interval.claim is Claim.ABOVE for interval in shown),
        "below on every aspect": all(interval.claim is Claim.BELOW for interval in shown),
        "by bootstrap": sum(interval.ci95 is not None for interval in shown),
        "by t": sum(interval.p is not None for interval in shown),
    }


# ---- own family ------------------------------------------------------------------------------


def preferences(population: Preferences, replicate: int) -> dict[str, int]:
    """A is of the judge's own family. What is claimed of it, and would be from single votes or the majority alone."""
    rng, items = np.random.default_rng([SEED, replicate]), population.items
    everything = single_stratum(np.arange(items))
    item = np.tile(np.arange(items), population.reviewers)
    claims_by_rule = {"any claim": 0, "votes alone": 0, "majority alone": 0}
    for _ in range(population.aspects):
        truth = (rng.random(items) >= population.better).astype(np.int64)
        right = np.array([population.people] * population.reviewers + [population.judge])
        choices = np.where(rng.random((len(right), items)) < right[:, None], truth, 1 - truth)
        majority = majority_of_votes(item, choices[:-1].ravel(), items).choice
        judge, all_items = sides_of_choices(choices[-1]), np.arange(items)
        majorities, votes = (
            pair_sides(ChosenSides(places, sides_of_choices(choice), everything.for_entries(places)), judge)
            for places, choice in ((all_items, majority), (item, choices[:-1].ravel()))
        )
        of = JudgeSides(everything, judge, majorities, votes, np.full(items, population.reviewers > 1))
        tendency = side_preference(np.zeros(items, dtype=np.int8), of, 2 * population.aspects)
        claims_by_rule["any claim"] |= tendency.claim is not Claim.NONE
        for name, share in (("votes alone", tendency.votes), ("majority alone", tendency.majority)):
            ci95 = share.difference.ci95
            claims_by_rule[name] |= ci95 is not None and not ci95[0] <= 0 <= ci95[1]
    return claims_by_rule


# ---- all cases -------------------------------------------------------------------------------


def some_replicates(population: Reviews | Preferences, first: int, last: int) -> list[dict[str, int]]:
    if isinstance(population, Reviews):
        return [claims(population, number) for number in range(first, last)]
    return [preferences(population, number) for number in range(first, last)]


def shares(
    population: Reviews | Preferences, replicates: int, pool: ProcessPoolExecutor | None = None
) -> dict[str, float]:
    """Of the replicates; of ``by …`` the mean number of differences."""
    starts = range(0, replicates, REPLICATES_A_TASK)
    ends = [min(start + REPLICATES_A_TASK, replicates) for start in starts]
    work = partial(some_replicates, population)
    outcomes = [outcome for part in (pool.map if pool else map)(work, starts, ends) for outcome in part]
    return {name: round(float(np.mean([outcome[name] for outcome in outcomes])), 4) for name in outcomes[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replicates", type=int, default=2_000)
    parser.add_argument("--case", nargs="*", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        for name in options.case:
            claim_shares = shares(CASES[name], options.replicates, pool)
            print(json.dumps({"case": name, "replicates": options.replicates, **claim_shares}), flush=True)


if __name__ == "__main__":
    main()

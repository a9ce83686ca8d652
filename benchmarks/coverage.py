"""How often the intervals of agreement hold the truth: 95 % are nominal, 93–97 % are promised.

    python benchmarks/coverage.py [--replicates 2000] [--case NAME …] [--truth-clusters 400000]

Each case is a population: clusters of a few items that are alike in what is true and in how hard they are, three
people and a judge. What is true of a number is what a sample of very many clusters gives. Every replicate goes
the whole way from votes to the numbers of a report. Prints a line of JSON for each case: of each number the
truth, how many replicates show an interval and how many of these are Wilson's, how many of those shown hold the
truth, lie below it or above it, and their mean width. One process a core.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from evaluations.domain.reports import SplitRule
from evaluations.stats.agreement import agreement_block
from evaluations.stats.cluster_totals import cross_tabulate_by_cluster
from evaluations.stats.coding import IntArray
from evaluations.stats.estimates import Estimate
from evaluations.stats.human_agreement import agreement_with_others_majority, multi_rater_agreement
from evaluations.stats.human_ceiling import human_ceiling
from evaluations.stats.polls import make_poll
from evaluations.stats.votes import Votes

PEOPLE = 3
CHOICES = 3  # A, B, tie
CLUSTERS_FOR_TRUTH = 400_000
REPLICATES_A_TASK = 50
SEED = 5


@dataclass(frozen=True)
class Population:
    """``items``: the fewest and the most in a cluster; with ``zipf`` sizes have that exponent, and are at most 60.
    ``giant``: how many the first has. ``prevalence``: of A, B and tie.

    ``people`` and ``judge``: how often each knows what is true; else they choose by prevalence. How often varies from
    cluster to cluster, by a beta distribution with this intraclass correlation, ``likeness``. With probability
    ``shared`` an item has its cluster's truth in place of one of its own.
    """

    clusters: int
    items: tuple[int, int]
    prevalence: tuple[float, float, float] = (0.4, 0.4, 0.2)
    people: float = 0.8
    judge: float = 0.7
    likeness: float = 0.2
    shared: float = 0.4
    zipf: float = 0.0
    giant: int = 0


EVEN = (0.5, 0.5, 0.0)
CASES: Mapping[str, Population] = {
    "50 clusters": Population(50, (1, 4)),  # 42 effective ones
    "40 clusters of 20": Population(40, (20, 20), people=0.9, judge=0.8),
    "60 clusters": Population(60, (1, 4)),
    "60 clusters, high agreement": Population(60, (4, 8), (0.45, 0.45, 0.1), people=0.95, judge=0.9),
    "100 clusters, a rare side": Population(100, (2, 5), (0.8, 0.1, 0.1)),
    "200 clusters": Population(200, (1, 4)),
    "1,000 clusters": Population(1_000, (1, 3)),
    "2,500 clusters": Population(2_500, (1, 2)),
    "2,500 clusters, high agreement": Population(2_500, (1, 2), (0.49, 0.49, 0.02), people=0.995, judge=0.98),
    "200 clusters, few disagreements": Population(200, (1, 1), (0.49, 0.49, 0.02), people=0.99, judge=0.95),
    "60 clusters, hardly a disagreement": Population(60, (1, 2), (0.49, 0.49, 0.02), people=0.99, judge=0.97),
    "20 clusters": Population(20, (2, 5)),
    # The judge is wrong in few clusters, and there often: agreement .97, .95 and .97.
    "40 clusters of 20, alike": Population(40, (20, 20), EVEN, people=0.9999, judge=0.94, likeness=0.5),
    "20 clusters of 20, alike": Population(20, (20, 20), EVEN, people=0.9999, judge=0.90, likeness=0.5),
    "60 clusters of 10, alike": Population(60, (10, 10), EVEN, people=0.9999, judge=0.94, likeness=0.3),
    # Few clusters hold most items: from 40 effective ones on intervals are by bootstrap, below by Wilson.
    "300 clusters by Zipf": Population(300, (1, 1), zipf=2.5),
    "1,000 clusters by Zipf": Population(1_000, (1, 1), zipf=2.0),
    "2,500 clusters by Zipf": Population(2_500, (1, 1), zipf=2.0),
    "60 clusters by Zipf": Population(60, (1, 1), zipf=2.0),
    "100 clusters, one giant": Population(100, (1, 2), giant=60),
    "1,000 clusters, one giant": Population(1_000, (1, 2), giant=150),
}


@dataclass(frozen=True)
class Coverage:
    """Shares of replicates, the last four of those ``shown``; ``missed_low``: the interval lies below the truth."""

    truth: float
    shown: float
    wilson: float
    covered: float | None
    missed_low: float | None
    missed_high: float | None
    width: float | None


@dataclass(frozen=True)
class Sample:
    judge: IntArray
    votes: Votes
    cluster: IntArray


def sample(population: Population, rng: np.random.Generator) -> Sample:
    size = sizes(population, rng)
    cluster = np.repeat(np.arange(population.clusters), size)
    items = len(cluster)
    own = rng.choice(CHOICES, population.clusters, p=population.prevalence)[cluster]
    alone = rng.choice(CHOICES, items, p=population.prevalence)
    truth = np.where(rng.random(items) < population.shared, own, alone)
    choices = [
        draw_choices(truth, knows, population, cluster, rng)
        for knows in (population.judge, *[population.people] * PEOPLE)
    ]
    item, rater = np.tile(np.arange(items), PEOPLE), np.repeat(np.arange(PEOPLE), items)
    return Sample(choices[0], Votes(item, rater, np.zeros_like(item), np.concatenate(choices[1:])), cluster)


def sizes(population: Population, rng: np.random.Generator) -> IntArray:
    if population.zipf:
        size = np.minimum(rng.zipf(population.zipf, population.clusters), 60)
    else:
        size = rng.integers(population.items[0], population.items[1] + 1, population.clusters)
    if population.giant:
        size[0] = population.giant
    return size


def draw_choices(
    truth: IntArray, knows: float, population: Population, cluster: IntArray, rng: np.random.Generator
) -> IntArray:
    """What somebody chooses who knows so often what is true, more in some clusters than in others."""
    weight = 1 / population.likeness - 1
    of_cluster = rng.beta(knows * weight, (1 - knows) * weight, population.clusters)
    guessed = rng.choice(CHOICES, len(truth), p=population.prevalence)
    return np.where(rng.random(len(truth)) < of_cluster[cluster], truth, guessed)


def numbers(sample: Sample) -> dict[str, Estimate]:
    """Of the judge beside the majority, of people together, and of the judge beside people left out."""
    votes = make_poll(sample.votes, sample.cluster)
    majority, others = votes.majority(SplitRule.TIE), votes.majority_of_the_others(SplitRule.TIE)
    judge = agreement_block(cross_tabulate_by_cluster(sample.judge, majority.choice, votes.cluster_of_items), CHOICES)
    people = multi_rater_agreement(votes, CHOICES)
    others_block = agreement_with_others_majority(votes, others, CHOICES, "")
    level = human_ceiling(sample.judge, votes, others, [f"person {number}" for number in range(PEOPLE)]).s1
    return {
        "agreement": judge.with_ties.agreement,
        "cohen_kappa": judge.with_ties.cohen_kappa,
        "weighted_kappa": judge.with_ties.weighted_kappa,
        "gwet_ac1": judge.with_ties.gwet_ac1,
        "agreement_without_ties": judge.without_ties.agreement,
        "cohen_kappa_without_ties": judge.without_ties.cohen_kappa,
        "krippendorff_alpha": people.krippendorff_alpha,
        "krippendorff_alpha_ordinal": people.krippendorff_alpha_ordinal,
        "human_human": others_block.with_ties.agreement,
        "ceiling_judge": level.judge,
        "ceiling_people": level.people,
        "ceiling_difference": level.difference,
        "ceiling_kappa_of_people": level.cohen_kappa.people,
        "ceiling_difference_of_kappas": level.cohen_kappa.difference,
    }


def truths(population: Population, clusters: int = CLUSTERS_FOR_TRUTH) -> dict[str, float]:
    many = replace(population, clusters=clusters)
    estimates = numbers(sample(many, np.random.default_rng(SEED)))
    return {name: number.value for name, number in estimates.items() if number.value is not None}


def some_replicates(population: Population, first: int, last: int) -> list[dict[str, Estimate]]:
    return [numbers(sample(population, np.random.default_rng([SEED, number]))) for number in range(first, last)]


def coverage(truth: float, estimates: Iterable[Estimate]) -> Coverage:
    all_found = list(estimates)
    shown = [number for number in all_found if number.ci95 is not None]
    low, high = np.array([number.ci95 for number in shown]).reshape(-1, 2).T
    wilson = sum((number.ci95_rule or "").startswith("Wilson") for number in shown)
    below, above = (float(missed.mean()) if shown else None for missed in (high < truth, low > truth))
    return Coverage(
        truth=round(truth, 4),
        shown=len(shown) / len(all_found),
        wilson=wilson / len(all_found),
        covered=None if below is None or above is None else round(1 - below - above, 4),
        missed_low=below,
        missed_high=above,
        width=round(float((high - low).mean()), 4) if shown else None,
    )


def covered(
    population: Population, replicates: int, truth: Mapping[str, float], pool: ProcessPoolExecutor | None = None
) -> dict[str, Coverage]:
    starts = range(0, replicates, REPLICATES_A_TASK)
    ends = [min(start + REPLICATES_A_TASK, replicates) for start in starts]
    work = partial(some_replicates, population)
    estimates = [estimate for part in (pool.map if pool else map)(work, starts, ends) for estimate in part]
    return {name: coverage(value, (estimate[name] for estimate in estimates)) for name, value in truth.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replicates", type=int, default=2_000)
    parser.add_argument("--case", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--truth-clusters", type=int, default=CLUSTERS_FOR_TRUTH)
    options = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        for name in options.case:
            coverages = covered(CASES[name], options.replicates, truths(CASES[name], options.truth_clusters), pool)
            result = {number: asdict(one) for number, one in coverages.items()}
            print(json.dumps({"case": name, "replicates": options.replicates, "numbers": result}), flush=True)


if __name__ == "__main__":
    main()

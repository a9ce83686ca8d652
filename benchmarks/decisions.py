"""How often each decision on a judge comes out, by what is true of the judge.

    python benchmarks/decisions.py [--replicates 2000] [--case NAME …]

Each case is a population of reviewers and a judge; every replicate goes from votes to the decision. Prints a line of
JSON for each case: the truth in half-credit points (J, R and C), the share of each outcome, and how often any aspect is
claimed wrongly. A claim is wrong where the judge is exactly at the bar or on the other side of it: standing in at a
difference of −5 points or worse, on an aspect at −10 or worse, not reliable at a difference of −10 points or better
that is at or above the middle of R and C. 5 % are promised; 2,000 replicates tell 5 % from 6.2 %. Seeds are fixed. One
process a core.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from evaluations.domain.decisions import DEFAULT_BARS
from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.decisions.judges import decide_judges
from evaluations.stats.decisions.results import Decision
from evaluations.stats.decisions.score_judges import decide_score_judges
from tests.stats.decisions.study import aspect_material, aspect_scores, people_scores, verdicts_of
from tests.stats.match_items import make_match_items

REPLICATES_A_TASK = 50
SEED = 41  # the rule was settled with others, and with populations of shares .4, .4 and .2
CREDIT = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
ALWAYS = {"always A": 0, "always tie": 2}


@dataclass(frozen=True)
class Population:
    """Items have a true choice, A, B and tie with the probabilities ``shares``.

    A reviewer knows it with the probability ``knows``, else guesses by the shares. The judge agrees with reviewers by
    ``gap`` less than they with each other, on each aspect; ``bad_gap``: on the first. ``judge``: a trivial one.
    ``shared``: with this probability an aspect has the truth of the item's first, and an item that of its cluster.
    ``zipf``: of the sizes of clusters; ``giant``: the size of the first. ``family``: how many judges there are.
    """

    items: int = 100
    aspects: int = 6
    reviewers: int = 2
    knows: float = 0.68
    gap: float = 0.0
    bad_gap: float | None = None
    judge: str = ""
    shares: tuple[float, float, float] = (0.42, 0.42, 0.16)
    shared: float = 0.3
    zipf: float = 0.0
    giant: int = 0
    failed: float = 0.0
    family: int = 1


@dataclass(frozen=True)
class ScorePopulation:
    """Scores from 1 to 5: a reviewer is off by 1 with probability ``off``; the judge too, and guesses with ``guesses``.

    ``guesses`` is set so that the judge agrees by ``gap`` less than a reviewer, found in a large sample.
    """

    responses: int = 100
    aspects: int = 3
    gap: float = 0.0
    off: float = 0.4


CASES: Mapping[str, Population | ScorePopulation] = {
    **{
        f"{name}, n {items}, {reviewers} reviewers": Population(items, reviewers=reviewers, gap=gap)
        for reviewers in (2, 3)
        for items in (50, 100, 200)
        for name, gap in (("exchangeable", 0.0), ("5 points below", 0.05), ("10 below", 0.10), ("15 below", 0.15))
    },
    "5 points below, 1 aspect": Population(gap=0.05, aspects=1),
    "5 points below, 12 aspects": Population(gap=0.05, aspects=12),
    "5 points below, one of three judges": Population(gap=0.05, family=3),
    "5 points below, sizes by Zipf": Population(items=120, gap=0.05, zipf=2.2),
    "5 points below, one giant cluster": Population(items=160, gap=0.05, giant=60),
    "exchangeable, sizes by Zipf": Population(items=120, zipf=2.2),
    "one aspect 10 below, n 100": Population(bad_gap=0.10),
    "one aspect 10 below, n 400": Population(items=400, bad_gap=0.10),
    "one aspect 25 below, n 400": Population(items=400, bad_gap=0.25),
    "always A": Population(judge="always A"),
    "always tie": Population(judge="always tie"),
    "always tie, many ties": Population(judge="always tie", shares=(0.3, 0.3, 0.4)),
    "random": Population(judge="random"),
    "reviewers guess, n 100": Population(knows=0.0),
    "reviewers guess, n 400": Population(items=400, knows=0.0),
    "reviewers hardly agree": Population(knows=0.35),
    "a tenth of the calls failed": Population(items=200, failed=0.1),
    "reviewers agree on nearly all": Population(items=200, knows=0.985),
    "scores, like a reviewer": ScorePopulation(),
    "scores, 5 points below, n 50": ScorePopulation(responses=50, gap=0.05),
    "scores, 5 points below": ScorePopulation(gap=0.05),
    "scores, 10 points below": ScorePopulation(gap=0.10),
}


def by_chance(shares: FloatArray) -> float:
    """The agreement of two guesses."""
    return float(shares @ CREDIT @ shares)


def judge_knowledge(population: Population, gap: float) -> float:
    """How often the judge knows the truth, so that it agrees by ``gap`` less than a reviewer does."""
    return population.knows - gap / (population.knows * (1 - by_chance(np.array(population.shares))))


def cluster_of_items(population: Population, rng: np.random.Generator) -> IntArray:
    if population.zipf:
        sizes = np.minimum(rng.zipf(population.zipf, population.items), 30)
    else:
        sizes = np.ones(population.items, dtype=np.int64)
        if population.giant:
            sizes[0] = population.giant
    return np.repeat(np.arange(population.items), sizes)


def draw_truth(population: Population, cluster: IntArray, rng: np.random.Generator) -> list[IntArray]:
    items, shares = len(cluster), np.array(population.shares)
    of_cluster = rng.choice(3, size=int(cluster[-1]) + 1, p=shares)[cluster]
    first = np.where(rng.random(items) < population.shared, of_cluster, rng.choice(3, size=items, p=shares))
    return [
        np.where(rng.random(items) < population.shared, first, rng.choice(3, size=items, p=shares))
        for _ in range(population.aspects)
    ]


def decide_once(population: Population, replicate: int) -> Decision:
    rng = np.random.default_rng([SEED, replicate])
    cluster = cluster_of_items(population, rng)
    items, shares = len(cluster), np.array(population.shares)
    failed = rng.random(items) < population.failed
    materials = {}
    for number, truth in enumerate(draw_truth(population, cluster, rng)):
        gap = population.bad_gap if number == 0 and population.bad_gap is not None else population.gap
        knows = np.full(population.reviewers + 1, population.knows)
        if population.knows:
            knows[-1] = judge_knowledge(population, gap)
        guesses = rng.choice(3, size=(len(knows), items), p=shares)
        chosen = np.where(rng.random((len(knows), items)) < knows[:, None], truth, guesses)
        judge = rng.choice(3, size=items, p=shares) if population.judge == "random" else chosen[-1]
        judge = np.full(items, ALWAYS[population.judge]) if population.judge in ALWAYS else judge
        materials[f"aspect {number}"] = aspect_material(
            f"Aspect {number}", list(chosen[:-1]), {"judge": verdicts_of(judge, failed)}, cluster
        )
    side = np.zeros(items, dtype=np.int64)
    studied = make_match_items(side, side + 1, cluster, longer_by=rng.integers(-50, 50, items))
    return decide_judges(materials, studied, {}, DEFAULT_BARS, population.family)["judge"]


# ---- scores ----------------------------------------------------------------------------------

LARGE = 400_000


def give_scores(truth: IntArray, off: float, rng: np.random.Generator) -> IntArray:
    moved = rng.choice([-1, 0, 1], size=len(truth), p=(off / 2, 1 - off, off / 2))
    return np.asarray(np.clip(truth + moved, 1, 5))


@lru_cache
def score_levels(off: float) -> tuple[float, float, float]:
    """R, C, and the agreement of a guess with a reviewer."""
    rng = np.random.default_rng(SEED)
    truth = rng.integers(1, 6, LARGE)
    one, other, guess = give_scores(truth, off, rng), give_scores(truth, off, rng), rng.integers(1, 6, LARGE)
    constant = max(1 - float(np.abs(one - answer).mean()) / 4 for answer in range(1, 6))
    return 1 - float(np.abs(one - other).mean()) / 4, constant, 1 - float(np.abs(one - guess).mean()) / 4


def decide_scores_once(population: ScorePopulation, replicate: int) -> Decision:
    rng = np.random.default_rng([SEED, replicate])
    reviewers, _, guessed = score_levels(population.off)
    guesses = population.gap / (reviewers - guessed)
    aspects = {}
    for number in range(population.aspects):
        truth = rng.integers(1, 6, population.responses)
        people = [give_scores(truth, population.off, rng).astype(float).tolist() for _ in range(2)]
        own, guess = give_scores(truth, population.off, rng), rng.integers(1, 6, population.responses)
        judge = np.where(rng.random(population.responses) < guesses, guess, own).astype(float)
        aspects[f"aspect {number}"] = aspect_scores(people_scores(*people), population.responses, judge=judge)
    return decide_score_judges(aspects, DEFAULT_BARS, 1)["judge"]


def run(population: Population | ScorePopulation, replicates: range) -> Counter[str]:
    counts: Counter[str] = Counter()
    for replicate in replicates:
        decision = (
            decide_scores_once(population, replicate)
            if isinstance(population, ScorePopulation)
            else decide_once(population, replicate)
        )
        counts[decision.outcome.value] += 1
        outcomes = [aspect.outcome.value for aspect in decision.aspects.values()]
        counts["first aspect: " + outcomes[0]] += 1
        counts["aspects that can stand in"] += sum(outcome == "can stand in" for outcome in outcomes)
        counts["any aspect not reliable"] += "not reliable" in outcomes
    return counts


def truth(population: Population | ScorePopulation) -> dict[str, float]:
    """J, R and C of an aspect other than the first."""
    if isinstance(population, ScorePopulation):
        of_reviewers, constant, _ = score_levels(population.off)
        return {"J": round(of_reviewers - population.gap, 3), "R": round(of_reviewers, 3), "C": round(constant, 3)}
    shares = np.array(population.shares)
    chance, knows = by_chance(shares), population.knows
    reviewers = chance + knows**2 * (1 - chance)
    judge = reviewers - population.gap
    if population.judge:
        judge = chance if population.judge == "random" else float((CREDIT @ shares)[ALWAYS[population.judge]])
    levels = {"J": judge * (1 - population.failed), "R": reviewers, "C": float((CREDIT @ shares).max())}
    return {name: round(value, 3) for name, value in levels.items()}


def measure(name: str, replicates: int, pool: ProcessPoolExecutor) -> dict[str, object]:
    population = CASES[name]
    tasks = [
        range(start, min(start + REPLICATES_A_TASK, replicates)) for start in range(0, replicates, REPLICATES_A_TASK)
    ]
    counts: Counter[str] = Counter()
    for part in pool.map(partial(run, population), tasks):
        counts.update(part)
    shares = {outcome: round(100 * count / replicates, 1) for outcome, count in sorted(counts.items())}
    return {"case": name, "truth": truth(population), "percent": shares, "replicates": replicates}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replicates", type=int, default=2_000)
    parser.add_argument("--case", nargs="+", default=list(CASES), choices=list(CASES), metavar="NAME")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with ProcessPoolExecutor(options.processes) as pool:
        for name in options.case:
            print(json.dumps(measure(name, options.replicates, pool)), flush=True)


if __name__ == "__main__":
    main()

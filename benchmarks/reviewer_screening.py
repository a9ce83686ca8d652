"""How often screening flags the right reviewers, and how often an honest one.

    python benchmarks/reviewer_screening.py [--replicates 2000] [--case NAME …]

Each case is a population of honest reviewers, in some with a copycat of the first one, a random and an inverting one
among them. Prints a line of JSON for each: in how many replicates the copycat is found with its original and nobody
else, the random and the inverting reviewer are flagged as such, exactly these are flagged, or any honest one is.
Seeds are fixed. The levels of the rule were chosen on other populations and seeds (`TUNING`, seed 777); the cases
printed by default had no part in it. One process.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.coding import AS_STORED, FLIP, SWAPPED, IntArray
from evaluations.stats.reviewer_flags import FlagKind, ReviewerFlag
from evaluations.stats.reviewer_screening import screen_reviewers
from evaluations.stats.votes import Votes

SEED, TUNING_SEED = 2_034, 777
COPIES_WITH = 0.99  # the probability that a copycat copies; else the verdict is its own
BAD = ("copycat", "random", "inverting")
SIDES, FEW_TIES, TIES, EVEN = (0.55, 0.45, 0.0), (0.46, 0.42, 0.12), (0.42, 0.36, 0.22), (1 / 3, 1 / 3, 1 / 3)
SKEWED = (0.86, 0.1, 0.04)


@dataclass(frozen=True)
class Population:
    """``items`` comparisons in clusters of ``in_cluster``; ``choices``: how often A, B and tie are true and guessed.

    An honest reviewer knows the truth with probability ``knows``, ± up to ``spread`` from one to another, and else
    guesses. ``shared``: how often an aspect has the truth of its cluster. ``sticky``: how often a reviewer knows, or
    guesses, the same on all items and aspects of a cluster. ``bad``: the others, of BAD.
    """

    honest: int
    knows: float
    items: int = 100
    aspects: int = 1
    bad: tuple[str, ...] = ()
    choices: tuple[float, float, float] = FEW_TIES
    in_cluster: int = 1
    shared: float = 0.3
    sticky: float = 0.0
    spread: float = 0.0

    @property
    def reviewers(self) -> tuple[str, ...]:
        return *(f"honest {number}" for number in range(self.honest)), *self.bad

    @property
    def agreement(self) -> float:
        """The probability that two honest reviewers give the same verdict on an item, without spread."""
        by_chance = sum(share**2 for share in self.choices)
        return self.knows**2 + (1 - self.knows**2) * by_chance


CASES: Mapping[str, Population] = {
    "three of five bad, n 50": Population(2, 0.77, 50, bad=BAD),
    "three of five bad, n 100": Population(2, 0.77, bad=BAD),
    "three of five bad, n 300": Population(2, 0.77, 300, bad=BAD),
    "A and B only, kappa .44, n 100": Population(2, 0.66, bad=BAD, choices=SIDES),
    "A and B only, kappa .44, n 300": Population(2, 0.66, 300, bad=BAD, choices=SIDES),
    "A and B only, kappa .61, n 100": Population(2, 0.78, bad=BAD, choices=SIDES),
    "a third ties, kappa .52, n 100": Population(2, 0.72, bad=BAD, choices=EVEN),
    "six aspects, kappa .46, n 50": Population(2, 0.68, 50, 6, BAD, TIES, sticky=0.25),
    "six aspects, kappa .46, n 100": Population(2, 0.68, 100, 6, BAD, TIES, sticky=0.25),
    "six aspects, clusters of 5, kappa .46, n 100": Population(2, 0.68, 100, 6, BAD, TIES, 5, sticky=0.25),
    "three of eight bad, kappa .44, n 100": Population(5, 0.66, bad=BAD, choices=SIDES),
    "three of eight bad, kappa .48, n 50": Population(5, 0.69, 50, bad=BAD, choices=TIES),
    "honest, kappa .92, 3 reviewers, n 50": Population(3, 0.96, 50, choices=TIES),
    "honest, kappa .92, 3 reviewers, n 100": Population(3, 0.96, choices=TIES),
    "honest, kappa .92, 8 reviewers, n 300": Population(8, 0.96, 300, choices=TIES),
    "honest, kappa .97, 3 reviewers, n 100": Population(3, 0.985, choices=TIES),
    "kappa .97, 2 reviewers and 2 random": Population(2, 0.985, bad=("random", "random"), choices=TIES),
    "honest, kappa .83, 3 reviewers, n 50": Population(3, 0.91, 50),
    "honest, kappa .83, 5 reviewers, n 100": Population(5, 0.91),
    "honest, kappa .58, 3 reviewers, n 50": Population(3, 0.76, 50),
    "honest, kappa .40, 5 reviewers, n 100": Population(5, 0.63),
    "honest, kappa .46, 3 reviewers, six aspects, n 50": Population(3, 0.68, 50, 6, choices=TIES, sticky=0.25),
    "honest, kappa .46, 5 reviewers, six aspects, clusters of 4, n 300": Population(
        5, 0.68, 300, 6, choices=TIES, in_cluster=4, sticky=0.35
    ),
    "honest, kappa .17, 3 reviewers, n 50": Population(3, 0.41, 50),
    "honest, kappa .17, 5 reviewers, n 100": Population(5, 0.41),
    "honest, kappa .07, 3 reviewers, n 100": Population(3, 0.27),
    "honest, kappa .07, 8 reviewers, n 300": Population(8, 0.27, 300),
    "honest, kappa 0, 5 reviewers, n 100": Population(5, 0.0, choices=TIES),
    "honest, A in 86%, 3 reviewers, n 50": Population(3, 0.64, 50, choices=SKEWED),
    "honest, A in 86%, 5 reviewers, n 100": Population(5, 0.64, choices=SKEWED),
    "honest, A in 78%, 5 reviewers, n 50": Population(5, 0.62, 50, choices=(0.78, 0.15, 0.07)),
    "honest, 26 comparisons, 4 reviewers, six aspects": Population(4, 0.52, 26, 6, sticky=0.45),
    "honest, 18 clusters of 15, 4 reviewers": Population(4, 0.57, 270, in_cluster=15, shared=0.6, sticky=0.35),
    "honest, unequal skill, 5 reviewers, n 100": Population(5, 0.72, spread=0.2),
}
TUNING: Mapping[str, Population] = {
    **{
        f"knows {knows}, {choices}": Population(2, knows, bad=BAD, choices=choices)
        for knows in (0.65, 0.75, 0.85)
        for choices in ((0.5, 0.5, 0.0), (0.44, 0.44, 0.12), EVEN)
    },
    **{
        f"{honest} honest, knows {knows}": Population(honest, knows, 70, choices=(0.45, 0.4, 0.15))
        for honest in (3, 5, 8)
        for knows in (0.15, 0.3, 0.45, 0.6)
    },
    "six aspects": Population(2, 0.6, 100, 6, BAD, (0.5, 0.5, 0.0), sticky=0.3),
    "unequal skill": Population(5, 0.65, choices=(0.5, 0.5, 0.0), spread=0.2),
    "A in 90%": Population(3, 0.6, 60, choices=(0.9, 0.07, 0.03)),
    "A in 92%": Population(5, 0.7, 80, choices=(0.92, 0.06, 0.02)),
    "25 comparisons": Population(4, 0.5, 25, choices=EVEN),
    "clusters of 8": Population(4, 0.5, 120, in_cluster=8, sticky=0.5, shared=0.6, choices=EVEN),
}


def draw_choices(population: Population, rng: np.random.Generator, cluster: IntArray) -> list[IntArray]:
    """On each aspect the choices of all reviewers, reviewers × items."""
    reviewers, items, clusters = len(population.reviewers), population.items, int(cluster[-1]) + 1
    knows = population.knows + population.spread * rng.uniform(-1, 1, (reviewers, 1))

    def draw(*size: int) -> IntArray:
        return rng.choice(3, size=size, p=population.choices)

    of_cluster = draw(clusters)[cluster]
    luck, guess = rng.random((reviewers, clusters))[:, cluster], draw(reviewers, clusters)[:, cluster]
    by_aspect = []
    for _ in range(population.aspects):
        truth = np.where(rng.random(items) < population.shared, of_cluster, draw(items))
        is_sticky = rng.random((reviewers, items)) < population.sticky
        is_known = np.where(is_sticky, luck, rng.random((reviewers, items))) < knows
        choices = np.where(is_known, truth, np.where(is_sticky, guess, draw(reviewers, items)))
        for number, reviewer in enumerate(population.reviewers):
            if reviewer == "copycat":
                choices[number] = np.where(rng.random(items) < COPIES_WITH, choices[0], choices[number])
            elif reviewer == "random":
                choices[number] = draw(items)
            elif reviewer == "inverting":
                choices[number] = FLIP[choices[number]]
        by_aspect.append(choices)
    return by_aspect


def make_materials(population: Population, rng: np.random.Generator) -> dict[str, AspectMaterial]:
    cluster = np.arange(population.items) // population.in_cluster
    reviewers = len(population.reviewers)
    item, rater = np.tile(np.arange(population.items), reviewers), np.repeat(np.arange(reviewers), population.items)
    shown = rng.choice([AS_STORED, SWAPPED], size=len(item))
    return {
        f"aspect {number}": make_material(
            Votes(item, rater, shown, choices.ravel().astype(np.int8)), cluster, population.reviewers
        )
        for number, choices in enumerate(draw_choices(population, rng, cluster))
    }


def make_material(
    votes: Votes, cluster: IntArray, names: Sequence[str], active_ms: IntArray | None = None
) -> AspectMaterial:
    nothing = np.zeros(0, dtype=np.int64)
    nobody = Votes(nothing, nothing, nothing, nothing)
    unknown = np.zeros(len(votes.item), dtype=np.int64)
    return AspectMaterial(
        name="Helpfulness",
        items=len(cluster),
        cluster=cluster,
        people=votes,
        saw_judge_first=nobody,
        picked_by_hand=nobody,
        reveal_votes={},
        gold=nobody,
        blind=0,
        not_drawn=0,
        calibration=0,
        judges=(),
        panels={},
        days=unknown,
        active_ms=unknown if active_ms is None else active_ms,
        names=tuple(names),
        offered=frozenset({0, 1, 2}),
        rubric_versions=(),
        warnings=(),
    )


def compare_flags(population: Population, flags: Sequence[ReviewerFlag]) -> dict[str, bool]:
    """Whether each bad reviewer was flagged as such, the honest ones were not, and all of this."""
    copies = [set(flag.reviewers) for flag in flags if flag.kind is FlagKind.COPIES]
    pair = {"copycat", "honest 0"}
    found = {"copies": not copies if "copycat" not in population.bad else pair in copies}
    for bad, kind in (("random", FlagKind.RANDOM), ("inverting", FlagKind.INVERTED)):
        is_flagged = any(flag.kind is kind and flag.reviewers == (bad,) for flag in flags)
        found[bad] = is_flagged or bad not in population.bad
    honest = {
        name
        for flag in flags
        for name in flag.reviewers
        if name.startswith("honest") and not (flag.kind is FlagKind.COPIES and set(flag.reviewers) == pair)
    }
    kinds = {
        f"honest {kind}": any(flag.kind is kind and honest & set(flag.reviewers) for flag in flags) for kind in FlagKind
    }
    return {**found, "exactly these": all(found.values()) and not honest, "any honest": bool(honest), **kinds}


def measure(population: Population, replicates: int, seed: int) -> dict[str, float]:
    outcomes = []
    for replicate in range(replicates):
        rng = np.random.default_rng([seed, replicate])
        outcomes.append(compare_flags(population, screen_reviewers(make_materials(population, rng)).flags))
    return {name: round(float(np.mean([outcome[name] for outcome in outcomes])), 4) for name in outcomes[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replicates", type=int, default=2_000)
    parser.add_argument("--tuning", action="store_true", help="the populations that the levels were chosen on")
    parser.add_argument("--case", nargs="*", choices=[*CASES, *TUNING])
    options = parser.parse_args()
    cases, seed = (TUNING, TUNING_SEED) if options.tuning else (CASES, SEED)
    for name in options.case or cases:
        population = cases[name]
        measured = measure(population, options.replicates, seed)
        agreement = round(population.agreement, 3)
        print(
            json.dumps({"case": name, "agreement": agreement, "replicates": options.replicates, **measured}), flush=True
        )


if __name__ == "__main__":
    main()

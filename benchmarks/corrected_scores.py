"""How often the intervals of corrected means, pass rates and differences hold what is true.

    python benchmarks/corrected_scores.py [--replicates 2000] [--reviewed 50 100 300] [--judges good biased …]

Two candidates answer every query; a third of the responses' variance is the query's. The judge scores all responses,
and people score those of a random sample of queries: on a scale of 1 to 5 and, as pass or fail, by a threshold. The
judges: *good*, *biased* (lenient, and more so to the second candidate), *useless* (the same distribution whatever the
response), *constant*. The truth is a superpopulation's. One line of JSON for each judge, number of reviewed responses
of a candidate, and size of a cluster; 2,000 replicates take about ten minutes on one core.
"""

import argparse
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

from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.confidence_intervals import SHARE_BOUNDS, UNBOUNDED
from evaluations.stats.corrected_means import ResponseValues, candidate_means
from evaluations.stats.estimates import Estimate
from evaluations.stats.rogan_gladen import JudgedPasses, rogan_gladen

NAMES = ("first", "second")
WORTH = np.array([0.0, 0.35])
LENIENCE = {"good": (0.0, 0.0), "biased": (0.5, 0.9), "useless": (0.0, 0.0), "constant": (0.0, 0.0)}
OF_QUERY = 1 / 3  # of the variance of a response's quality
NOISE_OF_PEOPLE, NOISE_OF_JUDGE = 0.5, 0.7
CUTS = np.array([-1.2, -0.4, 0.3, 1.1])  # between the scores 1 to 5
PASS_CUT = 0.3
RESPONSES = 800  # of each candidate
TRUTH_RESPONSES = 2_000_000


@dataclass(frozen=True)
class Study:
    """Values of all responses. ``people``: NaN where nobody reviewed."""

    people: FloatArray
    judge: FloatArray
    candidate: IntArray
    cluster: IntArray


def draw_quality(responses: int, size: int, rng: np.random.Generator) -> FloatArray:
    """Qualities of both candidates' responses: responses × 2. ``size``: the responses of a candidate in a cluster."""
    query = np.repeat(rng.normal(size=-(-responses // size)), size)[:responses, None] * OF_QUERY**0.5
    return np.asarray(query + rng.normal(size=(responses, 2)) * (1 - OF_QUERY) ** 0.5 + WORTH)


def draw_latent(judge: str, quality: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """What people and the judge see of each response, before it becomes a score."""
    people = quality + NOISE_OF_PEOPLE * rng.normal(size=quality.shape)
    if judge == "constant":
        return people, np.zeros(quality.shape)
    if judge == "useless":
        return people, rng.normal(size=quality.shape)
    return people, quality + np.array(LENIENCE[judge]) + NOISE_OF_JUDGE * rng.normal(size=quality.shape)


def scores_of(latent: FloatArray) -> FloatArray:
    return np.asarray(1 + np.searchsorted(CUTS, latent), dtype=np.float64)


def passes_of(latent: FloatArray) -> FloatArray:
    return (latent > PASS_CUT).astype(np.float64)


def draw_study(latent: tuple[FloatArray, FloatArray], kind: str, reviewed: int, size: int) -> Study:
    """The clusters are exchangeable, so the first are as good a sample as any."""
    read = passes_of if kind == "pass" else scores_of
    people, judge = (read(side) for side in latent)
    people[reviewed:] = np.nan
    responses = len(people)
    return Study(
        people.T.ravel(), judge.T.ravel(), np.repeat([0, 1], responses), np.tile(np.arange(responses) // size, 2)
    )


def estimates(study: Study, kind: str) -> Iterator[tuple[str, str, Estimate]]:
    """Of a candidate or the difference: kind of estimate, whose, and the number."""
    bounds = SHARE_BOUNDS if kind == "pass" else UNBOUNDED
    values = ResponseValues(study.people, {"judge": study.judge}, study.candidate, study.cluster, NAMES, bounds)
    means = candidate_means(values)
    for name, mean in means.candidates.items():
        yield f"{kind}, reviewers", name, mean.people
        yield f"{kind}, judge", name, mean.judges["judge"]
        yield f"{kind}, corrected", name, mean.corrected["judge"].corrected
    for difference in means.differences:
        yield f"{kind} difference, reviewers", "difference", difference.people
        yield f"{kind} difference, corrected", "difference", difference.judges["judge"].corrected
    if kind == "pass":
        for number, name in enumerate(NAMES):
            own = study.candidate == number
            passes = JudgedPasses(study.judge[own], study.people[own], study.cluster[own])
            yield "pass, Rogan–Gladen", name, rogan_gladen(passes)


@dataclass
class Tally:
    asked: int = 0
    given: int = 0
    held: int = 0
    width: float = 0.0
    valued: int = 0
    error: float = 0.0

    def count(self, number: Estimate, truth: float) -> None:
        self.asked += 1
        if number.value is not None:
            self.valued += 1
            self.error += number.value - truth
        if number.ci95 is not None:
            self.given += 1
            self.held += number.ci95[0] <= truth <= number.ci95[1]
            self.width += number.ci95[1] - number.ci95[0]

    def as_json(self) -> dict[str, float | None]:
        return {
            "coverage": round(100 * self.held / self.given, 1) if self.given else None,
            "withheld": round(1 - self.given / self.asked, 3),
            "width": round(self.width / self.given, 3) if self.given else None,
            "bias": round(self.error / self.valued, 3) if self.valued else None,
        }


def find_truth(responses: int = TRUTH_RESPONSES) -> dict[tuple[str, str], float]:
    rng = np.random.default_rng(1)
    people, _ = draw_latent("constant", draw_quality(responses, 1, rng), rng)
    truth: dict[tuple[str, str], float] = {}
    for kind, read in (("score", scores_of), ("pass", passes_of)):
        first, second = read(people).mean(axis=0).tolist()
        truth |= {(kind, "first"): first, (kind, "second"): second, (kind, "difference"): first - second}
    return truth


def simulate(
    judge: str, reviewed: int, size: int, replicates: int, truth: dict[tuple[str, str], float]
) -> dict[str, Tally]:
    rng, tally = np.random.default_rng([reviewed, size, len(judge)]), defaultdict[str, Tally](Tally)
    for _ in range(replicates):
        latent = draw_latent(judge, draw_quality(RESPONSES, size, rng), rng)
        for kind in ("score", "pass"):
            for what, whose, number in estimates(draw_study(latent, kind, reviewed, size), kind):
                tally[what].count(number, truth[kind, whose])
    return tally


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicates", type=int, default=2_000)
    parser.add_argument("--reviewed", type=int, nargs="+", default=[50, 100, 300])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 4], help="responses of a candidate in a cluster")
    parser.add_argument("--judges", nargs="+", default=list(LENIENCE), choices=list(LENIENCE))
    options = parser.parse_args()
    truth = find_truth()
    for judge in options.judges:
        for reviewed in options.reviewed:
            for size in options.sizes:
                tally = simulate(judge, reviewed, size, options.replicates, truth)
                what = {"judge": judge, "reviewed": reviewed, "cluster size": size, "replicates": options.replicates}
                print(
                    json.dumps({**what, **{kind: one.as_json() for kind, one in tally.items()}}, ensure_ascii=False),
                    flush=True,
                )


if __name__ == "__main__":
    main()

"""How often the intervals of corrected means, pass rates and differences hold what is true.

    python benchmarks/corrected_scores.py [--replicates 2000] [--reviewed 50 100 300] [--judges good …] [--strata]

Two candidates answer every query; a third of the responses' variance is the query's. The judge scores all responses,
and people score those of a random sample of queries: on a scale of 1 to 5 and, as pass or fail, by a threshold. The
judges: *good*, *biased* (lenient, and more so to the second candidate), *useless* (the same distribution whatever the
response), *constant*. The truth is a superpopulation's. With ``--strata`` a prompt is of one of three strata, which
differ in quality and in how lenient the judge is, and each gets a third of the reviews, regardless of its share of
the prompts. One line of JSON for each judge, number of reviewed responses of a candidate, and size of clusters: of one
response of a candidate, of four, *zipf* (exponent 2, up to 60), or *giant* (one with a quarter of the reviewed
ones, else single); 2,000 replicates take about ten minutes on one core.
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
SIZES = ("1", "4", "zipf", "giant")
RESPONSES = 800  # of each candidate
# Of each stratum: its share of the prompts, how much better its responses are, and how lenient the judge is.
SHARES = np.array([0.7, 0.2, 0.1])
BETTER = np.array([0.0, -0.5, 0.5])
MORE_LENIENT = np.array([0.0, 0.5, -0.3])
TRUTH_RESPONSES = 2_000_000


@dataclass(frozen=True)
class Study:
    """Values of all responses. ``people``: NaN where nobody reviewed. ``stratum``: None without strata."""

    people: FloatArray
    judge: FloatArray
    candidate: IntArray
    cluster: IntArray
    stratum: IntArray | None = None


def draw_clusters(size: str, reviewed: int, responses: int, rng: np.random.Generator) -> IntArray:
    """The cluster of each response of a candidate. ``size``: of SIZES."""
    if size == "zipf":
        sizes = np.minimum(rng.zipf(2.0, responses), 60)
        return np.repeat(np.arange(responses), sizes)[:responses]
    if size == "giant":
        return np.maximum(np.arange(responses) - reviewed // 4, 0)
    return np.arange(responses) // int(size)


def draw_quality(cluster: IntArray, rng: np.random.Generator) -> FloatArray:
    """Qualities of both candidates' responses: responses × 2. ``cluster``: of each response of a candidate."""
    shared = rng.normal(size=int(cluster[-1]) + 1)[cluster][:, None] * OF_QUERY**0.5
    return np.asarray(shared + rng.normal(size=(len(cluster), 2)) * (1 - OF_QUERY) ** 0.5 + WORTH)


def draw_strata(cluster: IntArray, rng: np.random.Generator) -> IntArray:
    """The stratum of each response of a candidate, the same within a cluster."""
    return rng.choice(len(SHARES), size=int(cluster[-1]) + 1, p=SHARES)[cluster]


def draw_latent(
    judge: str, quality: FloatArray, rng: np.random.Generator, stratum: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """What people and the judge see of each response, before it becomes a score."""
    lenience = np.array(LENIENCE[judge])
    if stratum is not None:
        quality = quality + BETTER[stratum][:, None]
        lenience = lenience + MORE_LENIENT[stratum][:, None]
    people = quality + NOISE_OF_PEOPLE * rng.normal(size=quality.shape)
    if judge == "constant":
        return people, np.zeros(quality.shape)
    if judge == "useless":
        return people, rng.normal(size=quality.shape)
    return people, quality + lenience + NOISE_OF_JUDGE * rng.normal(size=quality.shape)


def scores_of(latent: FloatArray) -> FloatArray:
    return np.asarray(1 + np.searchsorted(CUTS, latent), dtype=np.float64)


def passes_of(latent: FloatArray) -> FloatArray:
    return (latent > PASS_CUT).astype(np.float64)


def draw_study(
    latent: tuple[FloatArray, FloatArray], kind: str, reviewed: int, cluster: IntArray, stratum: IntArray | None = None
) -> Study:
    """The clusters, or those of a stratum, are exchangeable, so the first are as good a sample as any."""
    read = passes_of if kind == "pass" else scores_of
    people, judge = (read(side) for side in latent)
    if stratum is None:
        people[reviewed:] = np.nan
    else:
        for number in range(len(SHARES)):
            people[np.flatnonzero(stratum == number)[round(reviewed / len(SHARES)) :]] = np.nan
    responses = len(people)
    return Study(
        people.T.ravel(),
        judge.T.ravel(),
        np.repeat([0, 1], responses),
        np.tile(cluster, 2),
        None if stratum is None else np.tile(stratum, 2),
    )


def estimates(study: Study, kind: str) -> Iterator[tuple[str, str, Estimate]]:
    """Of a candidate or the difference: kind of estimate, whose, and the number."""
    bounds = SHARE_BOUNDS if kind == "pass" else UNBOUNDED
    values = ResponseValues(
        study.people, {"judge": study.judge}, study.candidate, study.cluster, NAMES, bounds, stratum=study.stratum
    )
    means = candidate_means(values)
    for name, mean in means.candidates.items():
        yield f"{kind}, reviewers", name, mean.people
        yield f"{kind}, judge", name, mean.judges["judge"]
        yield f"{kind}, corrected", name, mean.corrected["judge"].corrected
    for difference in means.differences:
        yield f"{kind} difference, reviewers", "difference", difference.people
        yield f"{kind} difference, corrected", "difference", difference.judges["judge"].corrected
    if kind == "pass":
        passes = JudgedPasses(
            study.judge, study.people, study.cluster, None, study.stratum, study.candidate, groups=len(NAMES)
        )
        for name, rate in zip(NAMES, rogan_gladen(passes), strict=True):
            yield "pass, Rogan–Gladen", name, rate


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


def find_truth(responses: int = TRUTH_RESPONSES, *, strata: bool = False) -> dict[tuple[str, str], float]:
    rng = np.random.default_rng(1)
    single = np.arange(responses)
    stratum = draw_strata(single, rng) if strata else None
    people, _ = draw_latent("constant", draw_quality(single, rng), rng, stratum)
    truth: dict[tuple[str, str], float] = {}
    for kind, read in (("score", scores_of), ("pass", passes_of)):
        first, second = read(people).mean(axis=0).tolist()
        truth |= {(kind, "first"): first, (kind, "second"): second, (kind, "difference"): first - second}
    return truth


def simulate(
    judge: str,
    reviewed: int,
    size: str,
    replicates: int,
    truth: dict[tuple[str, str], float],
    *,
    strata: bool = False,
) -> dict[str, Tally]:
    rng, tally = np.random.default_rng([reviewed, SIZES.index(size), len(judge)]), defaultdict[str, Tally](Tally)
    for _ in range(replicates):
        cluster = draw_clusters(size, reviewed, RESPONSES, rng)
        stratum = draw_strata(cluster, rng) if strata else None
        latent = draw_latent(judge, draw_quality(cluster, rng), rng, stratum)
        for kind in ("score", "pass"):
            for what, whose, number in estimates(draw_study(latent, kind, reviewed, cluster, stratum), kind):
                tally[what].count(number, truth[kind, whose])
    return tally


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicates", type=int, default=2_000)
    parser.add_argument("--reviewed", type=int, nargs="+", default=[50, 100, 300])
    parser.add_argument("--sizes", nargs="+", default=["1", "4"], choices=SIZES, help="of clusters")
    parser.add_argument("--judges", nargs="+", default=list(LENIENCE), choices=list(LENIENCE))
    parser.add_argument("--strata", action="store_true", help="review three unequal strata equally")
    options = parser.parse_args()
    truth = find_truth(strata=options.strata)
    for judge in options.judges:
        for reviewed in options.reviewed:
            for size in options.sizes:
                tally = simulate(judge, reviewed, size, options.replicates, truth, strata=options.strata)
                what = {
                    "judge": judge,
                    "strata": options.strata,
                    "reviewed": reviewed,
                    "cluster size": size,
                    "replicates": options.replicates,
                }
                print(
                    json.dumps({**what, **{kind: one.as_json() for kind, one in tally.items()}}, ensure_ascii=False),
                    flush=True,
                )


if __name__ == "__main__":
    main()

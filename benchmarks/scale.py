"""How long the parts of a report take with very many candidates, and with very many reviewers; without a database.

    python benchmarks/scale.py [candidates scores reviewers] [--candidates 10000] [--comparisons 100000] [--share 0.2]

Prints a line of JSON for each part: in processor seconds of this process the best of so many times, and how many
bytes its JSON has. *candidates*: sparse comparisons, one judge on all, two reviewers on a share; *scores*: ten
scored responses of each candidate, without and with pass rates by a threshold; *reviewers*: 123 on 350 comparisons,
each reviewed by three of them and by all.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from benchmarks.ranking import drawn
from evaluations.domain.reports import ReportPart, ReportRules
from evaluations.stats.aspect_report import AspectMaterial, VoteCounts
from evaluations.stats.coding import IntArray
from evaluations.stats.full_report import Report, full_report
from evaluations.stats.items import Items
from evaluations.stats.judge_report import JudgeMaterial
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts, JudgeAnswers, JudgeVerdicts
from evaluations.stats.report_parts import StudyMaterial
from evaluations.stats.score_reliability import PersonScores
from evaluations.stats.score_report import AspectScores, ScoreReport, score_report
from evaluations.stats.votes import Votes

SEED = 3
REVIEWERS, REVIEWED = 123, 350
SHARE = 0.2  # of the comparisons, or of the responses, that both reviewers review
RESPONSES = 10  # of each candidate
PASS_FROM = 4.0
CHOICES = [0.42, 0.4, 0.18]
NOBODY = np.empty(0, dtype=np.int64)
NO_VOTES = Votes(NOBODY, NOBODY, NOBODY, NOBODY)


def make_items(a: IntArray, b: IntArray, candidates: int, rng: np.random.Generator) -> Items:
    n = len(a)
    same = np.zeros(n, dtype=np.int64)
    return Items(
        cluster=np.arange(n),
        category=same,
        categories=("all",),
        candidate_a=a,
        candidate_b=b,
        candidates=tuple(f"candidate {number:05}" for number in range(candidates)),
        families=("",) * candidates,
        characters_a=rng.integers(200, 2_000, n),
        characters_b=rng.integers(200, 2_000, n),
        markup_a=same,
        markup_b=same,
        query=np.arange(n),
        stratum=same,
    )


def sparse_pairs(candidates: int, comparisons: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Every comparison of one of about five pairs for each candidate, in any order."""
    first, second = drawn(candidates)
    chosen = np.concatenate([np.arange(candidates - 1), rng.integers(len(first), size=comparisons)])[:comparisons]
    low, high = np.minimum(first, second)[chosen], np.maximum(first, second)[chosen]
    return low[low != high], high[low != high]


def guess(truth: IntArray, right: float, rng: np.random.Generator) -> IntArray:
    return np.where(rng.random(len(truth)) < right, truth, rng.choice(3, len(truth), p=CHOICES)).astype(np.int8)


def make_judge(truth: IntArray, rng: np.random.Generator) -> JudgeMaterial:
    """A judge that answered on everything, in both orders."""
    orders = guess(truth, 0.7, rng), guess(truth, 0.7, rng)
    same, items, no = orders[0] == orders[1], np.arange(len(truth)), np.zeros(len(truth), dtype=bool)
    own = ConsolidatedVerdicts(
        np.where(same, orders[0], 2).astype(np.int8), ~same, no, no, ~no, (orders[0], orders[1], None, None)
    )
    answers = JudgeVerdicts(
        tuple(JudgeAnswers(shown, items, choice, is_single=True) for shown, choice in enumerate(orders))
    )
    return JudgeMaterial("judge", 1, "llm", None, answers, answers, own, NOBODY, ~no)


def make_material(items: Items, of_items: list[IntArray], rng: np.random.Generator) -> AspectMaterial:
    """``of_items``: the comparisons that each reviewer reviewed."""
    truth = rng.choice(3, len(items), p=CHOICES)
    item = np.concatenate(of_items)
    rater = np.repeat(np.arange(len(of_items)), [len(own) for own in of_items])
    votes = Votes(item, rater, np.zeros(len(item), dtype=np.int64), guess(truth[item], 0.7, rng))
    return AspectMaterial(
        name="overall",
        items=len(items),
        cluster=items.cluster,
        people=votes,
        saw_judge_first=NO_VOTES,
        picked_by_hand=NO_VOTES,
        reveal_votes={},
        gold=NO_VOTES,
        blind=len(item),
        not_drawn=0,
        calibration=0,
        judges=(make_judge(truth, rng),),
        panels={},
        days=20_000 + item % 30,
        active_ms=rng.integers(20_000, 60_000, len(item)),
        names=tuple(f"reviewer {number:03}" for number in range(len(of_items))),
        offered=frozenset({0, 1, 2}),
        rubric_versions=(),
        warnings=(),
    )


def make_scores(candidates: int, share: float, rng: np.random.Generator) -> AspectScores:
    """Scores from 1 to 5 of the judge on all responses, of two reviewers on a share."""
    responses = candidates * RESPONSES
    truth = rng.integers(1, 6, responses)
    unit = np.tile(np.flatnonzero(rng.random(responses) < share), 2)
    value = np.clip(truth[unit] + rng.integers(-1, 2, len(unit)), 1, 5).astype(np.float64)
    return AspectScores(
        name="quality",
        people=PersonScores(unit, np.repeat([0, 1], len(unit) // 2), value),
        saw_judge_first=PersonScores(NOBODY, NOBODY, np.empty(0)),
        counts=VoteCounts(len(unit), 0, 0, 0, 0),
        names=("first", "second"),
        judges={"judge": np.clip(truth + rng.integers(-1, 2, responses), 1, 5).astype(np.float64)},
        cluster=np.arange(responses) // candidates,
        candidate=np.arange(responses) % candidates,
        candidates=tuple(f"candidate {number:05}" for number in range(candidates)),
    )


def report_of(items: Items, material: AspectMaterial, parts: tuple[ReportPart, ...]) -> Report:
    study = StudyMaterial(items, families={}, judges=1)
    return full_report("scale", [("overall", material)], study, ReportRules(), parts, {}, {}, ())


def measure(case: str, part: str, work: Callable[[], Report | ScoreReport], times: int) -> None:
    seconds = []
    for _ in range(times):
        started = time.process_time()
        report = work()
        seconds.append(time.process_time() - started)
    size = len(json.dumps(asdict(report), separators=(",", ":"), ensure_ascii=False).encode())
    print(json.dumps({"case": case, "part": part, "seconds": round(min(seconds), 3), "bytes": size}), flush=True)


def measure_candidates(options: argparse.Namespace) -> None:
    rng = np.random.default_rng(SEED)
    pairs = sparse_pairs(options.candidates, options.comparisons, rng)
    items = make_items(*pairs, options.candidates, rng)
    reviewed = np.flatnonzero(rng.random(len(items)) < options.share)
    material = make_material(items, [reviewed, reviewed], rng)
    for part in (ReportPart.DECISIONS, ReportPart.WINS):
        measure("candidates", part.value, partial(report_of, items, material, (part,)), options.times)


def measure_scores(options: argparse.Namespace) -> None:
    scores = make_scores(options.candidates, options.share, np.random.default_rng(SEED))
    for part, rules in (("scores", ReportRules()), ("scores and pass rates", ReportRules(pass_from=PASS_FROM))):
        measure("scores", part, partial(score_report, scores, rules), options.times)


def measure_reviewers(options: argparse.Namespace) -> None:
    """Reports with all parts."""
    rng, everything = np.random.default_rng(SEED), np.arange(REVIEWED)
    items = make_items(everything % 4, 1 + (everything % 4 + everything % 3) % 4, 5, rng)
    by_three = [everything[np.isin((number - everything) % REVIEWERS, [0, 1, 2])] for number in range(REVIEWERS)]
    for name, of_each in (("each reviewed by 3", by_three), ("each reviewed by all", [everything] * REVIEWERS)):
        material = make_material(items, of_each, rng)
        measure("reviewers", name, partial(report_of, items, material, tuple(ReportPart)), options.times)


CASES: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "candidates": measure_candidates,
    "scores": measure_scores,
    "reviewers": measure_reviewers,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="case", help=", ".join(CASES))
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--comparisons", type=int, default=100_000)
    parser.add_argument(
        "--share", type=float, default=SHARE, help="of the comparisons, or responses, that reviewers review"
    )
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    for name in options.cases:
        CASES[name](options)


if __name__ == "__main__":
    main()

"""Every number of a report is one, or None with a reason: nothing is infinite, and nothing is no number."""

from json import dumps

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.domain.reports import ReportPart, ReportRules
from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.coding import AS_STORED, MISSING, SWAPPED, BoolArray
from evaluations.stats.full_report import full_report
from evaluations.stats.items import Items
from evaluations.stats.judge_report import JudgeMaterial
from evaluations.stats.judge_verdicts import JudgeAnswers, JudgeVerdicts, UnansweredCalls, consolidate_verdicts
from evaluations.stats.report_parts import StudyMaterial
from evaluations.stats.votes import Votes
from tests.stats.match_items import random_match_items

NONE = np.empty(0, dtype=np.int64)


def votes(n: int, number: int, rng: np.random.Generator) -> Votes:
    """Of three people, who hardly ever say both bad."""
    item, rater = np.sort(rng.integers(n, size=number)), rng.integers(3, size=number)
    return Votes(item, rater, rng.integers(2, size=number), rng.choice(4, number, p=[0.5, 0.3, 0.19, 0.01]))


def judge(name: str, n: int, rng: np.random.Generator) -> JudgeMaterial:
    """In both orders, without a verdict on some."""
    answers = []
    for shown in (AS_STORED, SWAPPED):
        choice = rng.choice(np.arange(MISSING, 3), n).astype(np.int8)
        said: BoolArray = choice != MISSING
        answers.append(JudgeAnswers(shown, np.flatnonzero(said), choice[said], is_single=True))
    verdicts = JudgeVerdicts(tuple(one for one in answers if len(one.item)))
    own = consolidate_verdicts(verdicts, UnansweredCalls(NONE, NONE, NONE), n)
    return JudgeMaterial(name, None, "llm", None, verdicts, verdicts, own, NONE, np.ones(n, dtype=bool))


def material(items: Items, rng: np.random.Generator) -> AspectMaterial:
    n = len(items)
    people, nobody = votes(n, int(rng.integers(3 * n)), rng), Votes(NONE, NONE, NONE, NONE)
    return AspectMaterial(
        name="Clarity",
        items=n,
        cluster=items.cluster,
        people=people,
        saw_judge_first=votes(n, int(rng.integers(n)), rng),
        picked_by_hand=votes(n, int(rng.integers(n)), rng),
        reveal_votes={},
        gold=nobody,
        blind=len(people),
        not_drawn=0,
        calibration=0,
        judges=tuple(judge(name, n, rng) for name in ("one", "other")),
        panels={},
        days=rng.integers(20_000, 20_040, len(people.item)),
        active_ms=np.where(rng.random(len(people.item)) < 0.5, 0, 40_000),
        names=("ann", "ben", "cem"),
        offered=frozenset({0, 1, 2, 3}),
        rubric_versions=(),
        warnings=(),
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000), st.sampled_from([1, 2, 3, 7, 30]), st.sampled_from([1, 2, 6]), st.sampled_from([2, 3]))
def test_no_number_of_any_report_is_no_number(seed: int, n: int, clusters: int, candidates: int) -> None:
    rng = np.random.default_rng(seed)
    items = random_match_items(seed, n, candidates, clusters)
    items = Items(**{**vars(items), "cluster": np.unique(items.cluster, return_inverse=True)[1]})
    materials = [(key, material(items, rng)) for key in ("clarity", "depth")]
    report = full_report("study", materials, StudyMaterial(items, {}), ReportRules(), tuple(ReportPart), {}, {}, ())
    assert dumps(report.as_json(), allow_nan=False)

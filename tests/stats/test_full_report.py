"""The whole report: what it names, whatever its parts are made of."""

from dataclasses import replace

import numpy as np
import pytest

from evaluations.domain.reports import ReportPart, ReportRules
from evaluations.stats.aspect_report import AspectMaterial, VoteCounts
from evaluations.stats.coding import MISSING
from evaluations.stats.full_report import Report, full_report
from evaluations.stats.items import Items
from evaluations.stats.judge_report import JudgeMaterial
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts, JudgeAnswers, JudgeVerdicts
from evaluations.stats.report_parts import StudyMaterial
from evaluations.stats.score_reliability import PersonScores
from evaluations.stats.score_report import AspectScores
from evaluations.stats.votes import Votes

ZEROS = np.zeros(1, dtype=np.int64)
ITEMS = Items(ZEROS, ZEROS - 1, (), ZEROS, ZEROS + 1, ("a", "b"), ("", ""), ZEROS, ZEROS, ZEROS, ZEROS, ZEROS, ZEROS)

NO_VOTES = Votes(ZEROS[:0], ZEROS[:0], ZEROS[:0], ZEROS[:0])


def report_of(scores: AspectScores) -> Report:
    return full_report(
        "study", [], StudyMaterial(ITEMS, {}), ReportRules(), (ReportPart.SCORES,), {}, {"depth": scores}, ("Depth",)
    )


def test_an_aspect_that_has_scores_and_no_choices_has_a_name() -> None:
    people = PersonScores(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 4.0, 4.0]))
    late = PersonScores(ZEROS[:0], ZEROS[:0], np.empty(0))
    scores = AspectScores(
        "Depth", people, late, VoteCounts(4, 0, 0, 0, 0), ("ann", "ben"), {}, np.array([0, 0]), np.array([0, 0]), ("a",)
    )
    made = report_of(scores)
    assert made.names == {"depth": "Depth"}
    assert made.scores.keys() == made.names.keys()


def material_of(name: str, voted: bool) -> AspectMaterial:
    votes = Votes(ZEROS, ZEROS, ZEROS, ZEROS) if voted else NO_VOTES
    return AspectMaterial(
        name=name,
        items=1,
        cluster=ZEROS,
        people=votes,
        saw_judge_first=NO_VOTES,
        picked_by_hand=NO_VOTES,
        reveal_votes={},
        gold=NO_VOTES,
        blind=0,
        not_drawn=0,
        calibration=0,
        judges=(),
        panels={},
        days=votes.item,
        active_ms=votes.item,
        names=("ann",),
        offered=frozenset({0, 1, 2}),
        rubric_versions=(),
        warnings=(),
    )


def test_what_is_said_of_a_judge_is_that_of_the_aspect_shown() -> None:
    nothing = np.full(1, MISSING, dtype=np.int8)
    own = ConsolidatedVerdicts(nothing, nothing == 0, nothing == 0, nothing == 0, nothing == 0, (None,) * 4)
    verdicts = JudgeVerdicts((JudgeAnswers(0, ZEROS, ZEROS.astype(np.int8)),))
    labels = {"clarity": None, "safety": "derived from scores, margin 0.5"}
    materials = []
    for key, label in labels.items():
        judge = JudgeMaterial("gpt", 1, "llm", label, verdicts, verdicts, own, ZEROS[:0], own.asked)
        materials.append((key, replace(material_of(key, True), judges=(judge,))))
    for key, label in labels.items():
        made = full_report(
            "study", materials, StudyMaterial(ITEMS, {}), ReportRules(), (ReportPart.WINS,), {}, {}, (), key
        )
        assert made.judges["gpt"].label == label


@pytest.mark.parametrize(
    ("aspect", "about"),
    [("safety", "safety"), ("depth", "clarity"), ("", "clarity"), ("nothing such", "clarity")],
    ids=["asked for", "nobody voted on it", "first", "unknown"],
)
def test_a_page_about_one_aspect_has_the_numbers_of_that_alone(aspect: str, about: str) -> None:
    materials = [(one, material_of(one, one != "depth")) for one in ("depth", "clarity", "safety")]
    made = full_report(
        "study", materials, StudyMaterial(ITEMS, {}), ReportRules(), (ReportPart.WINS,), {}, {}, (), aspect
    )
    assert list(made.wins) == [about]
    assert made.aspects_by_part == {"wins": ("clarity", "safety")}
    assert list(made.names) == ["depth", "clarity", "safety"]
    assert "1 pair of responses in 1 cluster on depth, clarity and safety." in made.methods
    assert "1 reviewer cast up to 1 vote on an aspect" in made.methods

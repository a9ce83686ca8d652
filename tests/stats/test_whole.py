"""The whole report: what it names, whatever its parts are made of."""

import numpy as np

from evaluations.domain import Part, Rules
from evaluations.stats.items import Items
from evaluations.stats.known import Known
from evaluations.stats.parts import AspectScores
from evaluations.stats.report import VoteCounts
from evaluations.stats.several_scores import Scores
from evaluations.stats.whole import Report, whole_report

ZEROS = np.zeros(1, dtype=np.int64)
ITEMS = Items(ZEROS, ZEROS - 1, (), ZEROS, ZEROS + 1, ("a", "b"), ("", ""), ZEROS, ZEROS, ZEROS, ZEROS, ZEROS, ZEROS)


def report_of(scores: AspectScores) -> Report:
    return whole_report("study", {}, Known(ITEMS, {}), Rules(), (Part.SCORES,), {}, {"depth": scores}, ("Depth",))


def test_an_aspect_that_has_scores_and_no_choices_has_a_name() -> None:
    people = Scores(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 4.0, 4.0]))
    late = Scores(ZEROS[:0], ZEROS[:0], np.empty(0))
    scores = AspectScores("Depth", people, late, VoteCounts(4, 0, 0, 0, 0), ("ann", "ben"), {}, np.array([0, 0]))
    made = report_of(scores)
    assert made.names == {"depth": "Depth"}
    assert made.scores.keys() == made.names.keys()

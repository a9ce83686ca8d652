"""A study of a judge and reviewers, from choices written as letters."""

from collections.abc import Mapping, Sequence

import numpy as np

from evaluations.stats.aspect_report import AspectMaterial, VoteCounts
from evaluations.stats.coding import MISSING, BoolArray, FloatArray, IntArray
from evaluations.stats.judge_report import JudgeMaterial
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts, JudgeAnswers, JudgeVerdicts
from evaluations.stats.polls import Poll, make_poll
from evaluations.stats.score_reliability import PersonScores
from evaluations.stats.score_report import AspectScores
from evaluations.stats.votes import Votes

CODES = {"A": 0, "B": 1, "=": 2, "x": 3, ".": MISSING, "!": MISSING}  # = tie, x both bad, . none, ! failed
NOBODY = np.empty(0, dtype=np.int64)
NO_VOTES = Votes(NOBODY, NOBODY, NOBODY, NOBODY)


def codes(choices: str) -> IntArray:
    return np.array([CODES[letter] for letter in choices], dtype=np.int8)


def make_votes(reviewers: Sequence[IntArray]) -> Votes:
    """The votes of reviewers who each have a choice, or MISSING, on every item."""
    items = len(reviewers[0])
    votes = Votes(
        np.tile(np.arange(items), len(reviewers)),
        np.repeat(np.arange(len(reviewers)), items),
        np.zeros(items * len(reviewers), dtype=np.int64),
        np.concatenate(reviewers),
    )
    return votes.where(votes.choice != MISSING)


def poll_of(*reviewers: str, cluster: IntArray | None = None) -> Poll:
    items = len(reviewers[0])
    return make_poll(make_votes([codes(one) for one in reviewers]), np.arange(items) if cluster is None else cluster)


def verdicts_of(choice: IntArray, failed: BoolArray | None = None) -> ConsolidatedVerdicts:
    """Verdicts in one order, as stored."""
    no = np.zeros(len(choice), dtype=bool)
    missing = no if failed is None else failed
    own = np.where(missing, MISSING, choice).astype(np.int8)
    return ConsolidatedVerdicts(own, no, missing, missing, (own != MISSING) | missing, (own, None, None, None))


def verdicts(choices: str) -> ConsolidatedVerdicts:
    return verdicts_of(codes(choices), np.array([letter == "!" for letter in choices]))


def judge_material(name: str, own: ConsolidatedVerdicts, selected: BoolArray | None = None) -> JudgeMaterial:
    answered = np.flatnonzero(own.choice != MISSING)
    answers = JudgeVerdicts((JudgeAnswers(0, answered, own.choice[answered], is_single=True),))
    whole = np.ones(len(own.choice), dtype=bool) if selected is None else selected
    return JudgeMaterial(name, 1, "llm", None, answers, answers, own, NOBODY, whole)


def aspect_material(
    name: str, reviewers: Sequence[IntArray], judges: Mapping[str, ConsolidatedVerdicts], cluster: IntArray
) -> AspectMaterial:
    votes = make_votes(reviewers)
    return AspectMaterial(
        name=name,
        items=len(cluster),
        cluster=cluster,
        people=votes,
        saw_judge_first=NO_VOTES,
        picked_by_hand=NO_VOTES,
        reveal_votes={},
        gold=NO_VOTES,
        blind=0,
        not_drawn=0,
        calibration=0,
        judges=tuple(judge_material(judge, own) for judge, own in judges.items()),
        panels={},
        days=votes.item,
        active_ms=votes.item,
        names=tuple(f"reviewer {number}" for number in range(len(reviewers))),
        offered=frozenset({0, 1, 2}),
        rubric_versions=(),
        warnings=(),
    )


NO_SCORES = PersonScores(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))


def people_scores(*reviewers: list[float]) -> PersonScores:
    """The scores of reviewers who each scored every response; NaN where one did not."""
    values = np.array(reviewers, dtype=float)
    rater, unit = np.nonzero(~np.isnan(values))
    return PersonScores(unit, rater, values[rater, unit])


def aspect_scores(people: PersonScores, responses: int, **judges: FloatArray) -> AspectScores:
    return AspectScores(
        name="Quality",
        people=people,
        saw_judge_first=NO_SCORES,
        counts=VoteCounts(len(people.value), 0, 0, 0, 0),
        names=("ann", "ben", "cem"),
        judges=judges,
        cluster=np.arange(responses),
        candidate=np.zeros(responses, dtype=np.int64),
        candidates=("nova",),
    )

"""Verdicts, scores, packed votes, written under the call that they answer."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from evaluations.domain.choices import Stage
from evaluations.domain.rubrics import AspectSpec
from evaluations.judges.calls.work_session import CallOutcome, WorkSession
from evaluations.judges.sql import touch_rater
from evaluations.models.bulk import insert_many
from evaluations.models.runs import Call
from evaluations.models.verdicts import Score, Verdict
from evaluations.verdicts.packed_votes import build_packed_call_rows, insert_packed_calls

# Columns that have no default of the database's own are named, empty ones too.
VERDICT_COLUMNS: Final = (
    *("created_at", "rater_id", "comparison_id", "aspect_id", "sample", "shown", "choice", "weighted"),
    *("call_id", "stage", "inconsistent", "rationale", "note", "reason"),
)
SCORE_COLUMNS: Final = (
    *("created_at", "rater_id", "response_id", "aspect_id", "sample", "value", "weighted"),
    *("call_id", "stage", "rationale", "note", "reason"),
)


def write_answers(bout: WorkSession, outcomes: Sequence[CallOutcome], now: datetime) -> None:
    """A Verdict for every choice and a Score for every number; nothing that the rubric does not offer.

    The verdicts of a test call have no ballot, so that no report reads them. A call that ends without any says
    something too: reports count it.
    """
    offered = {aspect.key: aspect for aspect in bout.spec.aspects}
    verdicts = [row for outcome in outcomes for row in make_verdict_rows(bout, outcome, offered, now)]
    scores = [row for outcome in outcomes for row in make_score_rows(bout, outcome, offered, now)]
    insert_many(Verdict, VERDICT_COLUMNS, verdicts)
    insert_many(Score, SCORE_COLUMNS, scores)
    tests = set(Call.all_rows.filter(judge=bout.judge, is_test=True).values_list("pk", flat=True))
    counted = [outcome for outcome in outcomes if outcome.held.call_id not in tests]
    insert_packed_calls([row for outcome in counted for row in make_packed_vote_rows(bout, outcome)], now)
    if outcomes:
        touch_rater(bout.rater_id, now)


def make_verdict_rows(
    bout: WorkSession, outcome: CallOutcome, offered: dict[str, AspectSpec], now: datetime
) -> Iterator[tuple[object, ...]]:
    held = outcome.held
    for key, choice in outcome.choices.items():
        if choice not in offered[key].choices:
            raise ValueError(f"{choice} is not offered for {key}")
        about = (bout.rater_id, held.comparison_id, bout.aspect_ids[key], held.sample)
        what = (held.shown.value, choice.value, outcome.weighted.get(key))
        yield (now, *about, *what, held.call_id, Stage.FIRST.value, False, "", "", "")


def make_packed_vote_rows(bout: WorkSession, outcome: CallOutcome) -> list[tuple[object, ...]]:
    """The same choices packed."""
    held = outcome.held
    if held.comparison_id is None or not outcome.choices:
        return []
    choices = {bout.aspect_places[key]: choice for key, choice in outcome.choices.items()}
    return build_packed_call_rows(bout.rater_id, held.comparison_id, held.shown, held.sample, held.call_id, choices)


def make_score_rows(
    bout: WorkSession, outcome: CallOutcome, offered: dict[str, AspectSpec], now: datetime
) -> Iterator[tuple[object, ...]]:
    held = outcome.held
    for key, value in outcome.scores.items():
        if not is_on_aspect_scale(offered[key], value):
            raise ValueError(f"{value} is not on the scale of {key}")
        about = (bout.rater_id, held.response_id, bout.aspect_ids[key], held.sample)
        yield (now, *about, value, outcome.weighted.get(key), held.call_id, Stage.FIRST.value, "", "", "")


def is_on_aspect_scale(aspect: AspectSpec, value: float) -> bool:
    return (
        aspect.scale_min is not None and aspect.scale_max is not None and aspect.scale_min <= value <= aspect.scale_max
    )

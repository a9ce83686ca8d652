"""The rows of verdicts, scores and packed votes that an answered call produces."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from evaluations.domain.choices import Stage
from evaluations.domain.rubrics import AspectSpec
from evaluations.judges.calls.work_session import CallOutcome, WorkSession
from evaluations.models.bulk import insert_many
from evaluations.models.runs import Call
from evaluations.models.verdicts import Score, Verdict
from evaluations.verdicts.changes import ChangedRow, record_changes
from evaluations.verdicts.packed_votes import build_packed_call_rows, delete_packed_calls, insert_packed_calls

# Columns without a database default, which inserts must name even if they are empty.
VERDICT_COLUMNS: Final = (
    *("created_at", "rater_id", "comparison_id", "aspect_id", "sample", "shown", "choice", "weighted"),
    *("call_id", "stage", "inconsistent", "rationale", "note", "reason"),
)
SCORE_COLUMNS: Final = (
    *("created_at", "rater_id", "response_id", "aspect_id", "sample", "value", "weighted"),
    *("call_id", "stage", "rationale", "note", "reason"),
)


def delete_answers(call_ids: Sequence[int]) -> None:
    """Delete the verdicts, scores and packed votes of these calls."""
    delete_packed_calls(call_ids)
    Verdict.all_rows.filter(call__in=call_ids).delete()
    Score.all_rows.filter(call__in=call_ids).delete()


def write_answers(session: WorkSession, outcomes: Sequence[CallOutcome], now: datetime) -> None:
    """Write a Verdict per choice and a Score per number; ValueError for values that the rubric does not offer.

    Test calls get no packed votes, so that no report reads their verdicts. Calls without an answer count as well:
    reports show how many failed.
    """
    aspects = {aspect.key: aspect for aspect in session.spec.aspects}
    verdicts = [row for outcome in outcomes for row in make_verdict_rows(session, outcome, aspects, now)]
    scores = [row for outcome in outcomes for row in make_score_rows(session, outcome, aspects, now)]
    insert_many(Verdict, VERDICT_COLUMNS, verdicts)
    insert_many(Score, SCORE_COLUMNS, scores)
    tests = set(Call.all_rows.filter(judge=session.judge, is_test=True).values_list("pk", flat=True))
    counted = [outcome for outcome in outcomes if outcome.call.call_id not in tests]
    insert_packed_calls([row for outcome in counted for row in make_packed_vote_rows(session, outcome)], now)
    subjects = ((outcome.call.comparison_id, outcome.call.response_id) for outcome in outcomes)
    changes = [ChangedRow(session.rater_id, *subject) for subject in subjects]
    record_changes(session.judge.evaluation_id, changes, now)


def make_verdict_rows(
    session: WorkSession, outcome: CallOutcome, aspects: dict[str, AspectSpec], now: datetime
) -> Iterator[tuple[object, ...]]:
    call = outcome.call
    for key, choice in outcome.choices.items():
        if choice not in aspects[key].choices:
            raise ValueError(f"{choice} is not offered for {key}")
        subject = (session.rater_id, call.comparison_id, session.aspect_ids[key], call.sample)
        verdict = (call.shown.value, choice.value, outcome.weighted.get(key))
        yield (now, *subject, *verdict, call.call_id, Stage.FIRST.value, False, "", "", "")


def make_packed_vote_rows(session: WorkSession, outcome: CallOutcome) -> list[tuple[object, ...]]:
    call = outcome.call
    if call.comparison_id is None or not outcome.choices:
        return []
    choices = {session.aspect_places[key]: choice for key, choice in outcome.choices.items()}
    return build_packed_call_rows(session.rater_id, call.comparison_id, call.shown, call.sample, call.call_id, choices)


def make_score_rows(
    session: WorkSession, outcome: CallOutcome, aspects: dict[str, AspectSpec], now: datetime
) -> Iterator[tuple[object, ...]]:
    call = outcome.call
    for key, value in outcome.scores.items():
        lowest, highest = aspects[key].scale_min, aspects[key].scale_max
        if lowest is None or highest is None or not lowest <= value <= highest:
            raise ValueError(f"{value} is not on the scale of {key}")
        subject = (session.rater_id, call.response_id, session.aspect_ids[key], call.sample)
        yield (now, *subject, value, outcome.weighted.get(key), call.call_id, Stage.FIRST.value, "", "", "")

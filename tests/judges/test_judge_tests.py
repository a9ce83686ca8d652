"""A test call is for whoever makes the judge: no number, label, export or page of comparisons counts it."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluations.domain.choices import LabelPolicy, ShownOrder
from evaluations.domain.judges import CallState, RunOrders
from evaluations.domain.reports import ReportRules
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.selection import count_retryable_calls
from evaluations.judges.runs.services import cancel_run, start_run
from evaluations.judges.runs.single_call import find_test_call, single_call_selection
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.runs import Call
from evaluations.models.verdicts import PackedVotes, Score, Verdict
from evaluations.overview.selectors import count_evaluation_progress
from evaluations.reports.selectors import build_report
from evaluations.stats.full_report import Report
from evaluations.verdicts.judge_choices import load_judge_choices
from evaluations.verdicts.labels import decide_labels
from evaluations.verdicts.vote_table import build_vote_table
from evaluations.visibility import has_seen_verdicts, record_disclosure
from tests.factories.evaluations import make_comparison, make_human
from tests.factories.judges import make_baseline_judge, make_llm_judge, run_judge_here
from tests.factories.verdicts import ALL_A, make_review
from tests.helpers.work_sessions import (
    answered_outcome,
    claim_session_calls,
    expect_calls,
    make_rating_judge,
    start_run_session,
    unreadable_outcome,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def four_comparisons(evaluation: Evaluation) -> None:
    for _ in range(4):
        make_comparison(evaluation, response_a="a long answer", response_b="short")


def first_of(evaluation: Evaluation) -> Comparison:
    found: Comparison = evaluation.comparisons.earliest("random_order")
    return found


def asked_once(judge: Judge, shown: ShownOrder = ShownOrder.AS_STORED) -> Call:
    """One answered test call on the first comparison."""
    run = run_judge_here(judge, **single_call_selection(first_of(judge.evaluation), shown))
    trial = find_test_call(run)
    assert trial is not None
    assert trial.call is not None
    return trial.call


def reported(evaluation: Evaluation) -> Report:
    return build_report(evaluation, None, ReportRules())


def exported(tmp_path: Path, written_as: str) -> list[dict[str, Any]]:
    out = tmp_path / f"{written_as}.jsonl"
    call_command("export", "study", format=written_as, out=out, stdout=StringIO(), stderr=StringIO())
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_a_judge_that_was_only_tested_is_in_no_number(evaluation: Evaluation) -> None:
    make_review(make_human(evaluation, "ann"), first_of(evaluation), ALL_A)
    call = asked_once(make_baseline_judge(evaluation))
    assert call.state == CallState.ANSWERED
    assert call.is_test
    assert not PackedVotes.all_rows.filter(call=call).exists()
    made = reported(evaluation)
    assert made.judges == {}
    assert [sorted(aspect.judges) for aspect in made.aspects.values()] == [[]] * 6
    assert all(won.judges == {} for won in made.wins.values())
    assert all(board == {} for board in made.bias.values())
    assert "longest" not in json.dumps(made.as_json())


def test_the_test_itself_still_shows_what_came_back(evaluation: Evaluation) -> None:
    judge = make_baseline_judge(evaluation)
    trial = find_test_call(run_judge_here(judge, **single_call_selection(first_of(evaluation), ShownOrder.SWAPPED)))
    assert trial is not None
    assert len(trial.verdicts) == 6


def test_a_test_call_is_in_no_export_label_page_or_filter(evaluation: Evaluation, tmp_path: Path) -> None:
    judge, comparison = make_baseline_judge(evaluation), first_of(evaluation)
    asked_once(judge)
    (rater,) = judge.raters.all()
    assert exported(tmp_path, "verdicts") == []
    assert all("longest" not in json.dumps(row) for row in exported(tmp_path, "jsonl"))
    evaluation.label_policy = LabelPolicy.PEOPLE_THEN_JUDGES
    evaluation.shown_judge = judge
    evaluation.save()
    assert not any(decide_labels(evaluation, [comparison.pk]).get(comparison.pk, {}).values())
    assert load_judge_choices(rater, [comparison.pk]) == {}
    assert build_vote_table(comparison, with_judges=True).rows == ()
    assert not Verdict.objects.exists()
    assert not Call.objects.exists()


def test_a_failed_test_call_is_no_failure_of_the_evaluation(evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, NOWHERE)
    session = start_run_session(judge, **single_call_selection(first_of(evaluation), ShownOrder.AS_STORED))
    store_outcomes(session, [unreadable_outcome(claimed) for claimed in claim_session_calls(session)])
    assert Call.all_rows.get().state == CallState.UNREADABLE
    owner = evaluation.memberships.get().user
    assert count_evaluation_progress([evaluation], owner)[evaluation.pk].failed_calls == 0
    assert count_retryable_calls(judge) == {}
    assert reported(evaluation).aspects == {}


def test_a_score_of_a_test_call_counts_nowhere(evaluation: Evaluation) -> None:
    judge = make_rating_judge(evaluation)
    response = first_of(evaluation).response_a
    session = start_run_session(judge, **single_call_selection(response, ShownOrder.AS_STORED))
    store_outcomes(session, [answered_outcome(session, claimed) for claimed in claim_session_calls(session)])
    assert Score.all_rows.exists()
    assert not Score.objects.exists()
    assert reported(evaluation).scores == {}


@pytest.mark.parametrize("orders", [RunOrders.BOTH, RunOrders.AS_STORED])
def test_a_run_takes_the_tested_call_for_its_own_without_asking_again(
    evaluation: Evaluation, orders: RunOrders
) -> None:
    judge = make_baseline_judge(evaluation)
    call = asked_once(judge)
    assert expect_calls(judge, orders=orders).reused == 1
    run_judge_here(judge, orders=orders)
    call.refresh_from_db()
    assert not call.is_test
    assert Call.all_rows.count() == 4 * (2 if orders == RunOrders.BOTH else 1)
    aspect = reported(evaluation).aspects["clarity"]
    assert aspect.judges["longest"].verdicts == 4
    assert PackedVotes.all_rows.filter(call=call).count() == 1


def test_a_run_that_leaves_the_tested_comparison_out_leaves_the_test_a_test(evaluation: Evaluation) -> None:
    judge = make_baseline_judge(evaluation)
    call = asked_once(judge, ShownOrder.SWAPPED)
    run_judge_here(judge, orders=RunOrders.AS_STORED)
    call.refresh_from_db()
    assert call.is_test
    assert reported(evaluation).aspects["clarity"].judges["longest"].position.consistency.n == 0


def test_a_test_that_asks_a_failed_call_of_a_run_again_does_not_make_it_a_test(evaluation: Evaluation) -> None:
    judge = make_baseline_judge(evaluation)
    run_judge_here(judge, limit=1, orders=RunOrders.AS_STORED)
    Verdict.all_rows.all().delete()
    PackedVotes.all_rows.all().delete()
    Call.all_rows.update(state=CallState.UNREADABLE)
    call = asked_once(judge)
    assert not call.is_test
    assert reported(evaluation).aspects["clarity"].judges["longest"].verdicts == 1


def test_a_test_call_that_is_in_flight_when_a_run_takes_it_over_counts_when_it_is_answered(
    evaluation: Evaluation,
) -> None:
    judge = make_llm_judge(evaluation, NOWHERE, mode="json_schema")
    session = start_run_session(judge, **single_call_selection(first_of(evaluation), ShownOrder.AS_STORED))
    (claimed,) = claim_session_calls(session)
    cancel_run(session.run, user=None)
    plan_run_calls(start_run(judge, user=None, orders=RunOrders.AS_STORED).pk, until=float("inf"))
    store_outcomes(session, [answered_outcome(session, claimed)])
    assert PackedVotes.all_rows.filter(call=claimed.call_id).count() == 1


@pytest.mark.parametrize("of_response", [False, True])
def test_whoever_sees_what_came_of_a_test_is_on_record_and_a_page_without_it_notes_nothing(
    evaluation: Evaluation, of_response: bool
) -> None:
    comparison, owner = first_of(evaluation), evaluation.memberships.get().user
    judge = make_rating_judge(evaluation) if of_response else make_llm_judge(evaluation, NOWHERE, mode="json_schema")
    session = start_run_session(
        judge, **single_call_selection(comparison.response_a if of_response else comparison, ShownOrder.AS_STORED)
    )
    store_outcomes(session, [answered_outcome(session, claimed) for claimed in claim_session_calls(session)])
    record_disclosure(owner, evaluation, [comparison])
    assert not has_seen_verdicts(owner, comparison)
    record_disclosure(owner, evaluation, [comparison], tests=True)
    assert has_seen_verdicts(owner, comparison)

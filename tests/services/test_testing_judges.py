"""A test call is for whoever makes the judge: no number, label, export or page of comparisons counts it."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluations import access
from evaluations.domain import CallState, LabelPolicy, Orders, Rules, Shown
from evaluations.models import Ballot, Call, Comparison, Evaluation, Judge, Score, Verdict
from evaluations.services.judging import running, storing
from evaluations.services.judging.consolidating import judge_choices
from evaluations.services.judging.selecting import expected, retryable
from evaluations.services.judging.trying import only_this, trial_of
from evaluations.services.labelling import labels
from evaluations.services.preparing.surveying import standings
from evaluations.services.reporting.noticing import note_seen
from evaluations.services.reporting.reporting import Report, make_report
from evaluations.services.reporting.tabulating import table_of
from tests.bouts import answered, bout_on, claimed, rating_judge, unreadable
from tests.judges import make_baseline, run_through
from tests.judges import make_judge as make_llm_judge
from tests.making import make_comparison, make_evaluation, make_human
from tests.saying import ALL_A, person_says

pytestmark = pytest.mark.django_db(transaction=True)

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def evaluation() -> Evaluation:
    evaluation = make_evaluation(slug="study")
    for _ in range(4):
        make_comparison(evaluation, response_a="a long answer", response_b="short")
    return evaluation


def first_of(evaluation: Evaluation) -> Comparison:
    found: Comparison = evaluation.comparisons.earliest("shuffle")
    return found


def asked_once(judge: Judge, shown: Shown = Shown.AS_STORED) -> Call:
    """One answered test call on the first comparison."""
    run = run_through(judge, **only_this(first_of(judge.evaluation), shown))
    trial = trial_of(run)
    assert trial is not None
    assert trial.call is not None
    return trial.call


def reported(evaluation: Evaluation) -> Report:
    return make_report(evaluation, None, Rules())


def exported(tmp_path: Path, written_as: str) -> list[dict[str, Any]]:
    out = tmp_path / f"{written_as}.jsonl"
    call_command("export", "study", format=written_as, out=out, stdout=StringIO(), stderr=StringIO())
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_a_judge_that_was_only_tested_is_in_no_number(evaluation: Evaluation) -> None:
    person_says(make_human(evaluation, "ann"), first_of(evaluation), ALL_A)
    call = asked_once(make_baseline(evaluation))
    assert call.state == CallState.ANSWERED
    assert call.is_test
    assert not Ballot.all_rows.filter(call=call).exists()
    made = reported(evaluation)
    assert made.judges == {}
    assert [sorted(aspect.judges) for aspect in made.aspects.values()] == [[]] * 6
    assert all(won.judges == {} for won in made.wins.values())
    assert all(board == {} for board in made.bias.values())
    assert "longest" not in json.dumps(made.as_json())


def test_the_test_itself_still_shows_what_came_back(evaluation: Evaluation) -> None:
    judge = make_baseline(evaluation)
    trial = trial_of(run_through(judge, **only_this(first_of(evaluation), Shown.SWAPPED)))
    assert trial is not None
    assert len(trial.verdicts) == 6


def test_a_test_call_is_in_no_export_label_page_or_filter(evaluation: Evaluation, tmp_path: Path) -> None:
    judge, comparison = make_baseline(evaluation), first_of(evaluation)
    asked_once(judge)
    (rater,) = judge.raters.all()
    assert exported(tmp_path, "verdicts") == []
    assert all("longest" not in json.dumps(row) for row in exported(tmp_path, "jsonl"))
    evaluation.label_policy = LabelPolicy.PEOPLE_THEN_JUDGES
    evaluation.shown_judge = judge
    evaluation.save()
    assert not any(labels(evaluation, [comparison.pk]).get(comparison.pk, {}).values())
    assert judge_choices(rater, [comparison.pk]) == {}
    assert table_of(comparison, with_judges=True).rows == ()
    assert not Verdict.objects.exists()
    assert not Call.objects.exists()


def test_a_failed_test_call_is_no_failure_of_the_evaluation(evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, NOWHERE)
    bout = bout_on(judge, **only_this(first_of(evaluation), Shown.AS_STORED))
    storing.store(bout, [unreadable(held) for held in claimed(bout)])
    assert Call.all_rows.get().state == CallState.UNREADABLE
    owner = evaluation.memberships.get().user
    assert standings([evaluation], owner)[evaluation.pk].failed_calls == 0
    assert retryable(judge) == {}
    assert reported(evaluation).aspects == {}


def test_a_score_of_a_test_call_counts_nowhere(evaluation: Evaluation) -> None:
    judge = rating_judge(evaluation)
    response = first_of(evaluation).response_a
    bout = bout_on(judge, **only_this(response, Shown.AS_STORED))
    storing.store(bout, [answered(bout, held) for held in claimed(bout)])
    assert Score.all_rows.exists()
    assert not Score.objects.exists()
    assert reported(evaluation).scores == {}


@pytest.mark.parametrize("orders", [Orders.BOTH, Orders.AS_STORED])
def test_a_run_takes_the_tested_call_for_its_own_without_asking_again(evaluation: Evaluation, orders: Orders) -> None:
    judge = make_baseline(evaluation)
    call = asked_once(judge)
    assert expected(judge, orders=orders).reused == 1
    run_through(judge, orders=orders)
    call.refresh_from_db()
    assert not call.is_test
    assert Call.all_rows.count() == 4 * (2 if orders == Orders.BOTH else 1)
    aspect = reported(evaluation).aspects["clarity"]
    assert aspect.judges["longest"].verdicts == 4
    assert Ballot.all_rows.filter(call=call).count() == 1


def test_a_run_that_leaves_the_tested_comparison_out_leaves_the_test_a_test(evaluation: Evaluation) -> None:
    judge = make_baseline(evaluation)
    call = asked_once(judge, Shown.SWAPPED)
    run_through(judge, orders=Orders.AS_STORED)
    call.refresh_from_db()
    assert call.is_test
    assert reported(evaluation).aspects["clarity"].judges["longest"].position.consistency.n == 0


def test_a_test_that_asks_a_failed_call_of_a_run_again_does_not_make_it_a_test(evaluation: Evaluation) -> None:
    judge = make_baseline(evaluation)
    run_through(judge, limit=1, orders=Orders.AS_STORED)
    Verdict.all_rows.all().delete()
    Ballot.all_rows.all().delete()
    Call.all_rows.update(state=CallState.UNREADABLE)
    call = asked_once(judge)
    assert not call.is_test
    assert reported(evaluation).aspects["clarity"].judges["longest"].verdicts == 1


def test_a_test_call_that_is_in_flight_when_a_run_takes_it_over_counts_when_it_is_answered(
    evaluation: Evaluation,
) -> None:
    judge = make_llm_judge(evaluation, NOWHERE, mode="json_schema")
    bout = bout_on(judge, **only_this(first_of(evaluation), Shown.AS_STORED))
    (held,) = claimed(bout)
    running.cancel(bout.run, user=None)
    running.plan(running.start_run(judge, user=None, orders=Orders.AS_STORED).pk, until=float("inf"))
    storing.store(bout, [answered(bout, held)])
    assert Ballot.all_rows.filter(call=held.call_id).count() == 1


@pytest.mark.parametrize("of_response", [False, True])
def test_whoever_sees_what_came_of_a_test_is_on_record_and_a_page_without_it_notes_nothing(
    evaluation: Evaluation, of_response: bool
) -> None:
    comparison, owner = first_of(evaluation), evaluation.memberships.get().user
    judge = rating_judge(evaluation) if of_response else make_llm_judge(evaluation, NOWHERE, mode="json_schema")
    bout = bout_on(judge, **only_this(comparison.response_a if of_response else comparison, Shown.AS_STORED))
    storing.store(bout, [answered(bout, held) for held in claimed(bout)])
    note_seen(owner, evaluation, [comparison])
    assert not access.has_seen_verdicts(owner, comparison)
    note_seen(owner, evaluation, [comparison], tests=True)
    assert access.has_seen_verdicts(owner, comparison)

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from evaluations.judges.services import JudgeSettings, create_judge
from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import Worker
from evaluations.models.runs import Run
from tests.factories.evaluations import make_comparison
from tests.factories.judges import make_baseline_judge, make_llm_judge, make_rubric_without_query
from tests.helpers.llm_server import answer_broken, answer_well, fail_with, llm_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture(autouse=True)
def three_comparisons(evaluation: Evaluation) -> None:
    for _ in range(3):
        make_comparison(evaluation)


def run_judge(capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    call_command("run_judge", "study", **options)
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert isinstance(told, dict)
    return told


def test_waiting_without_a_worker_works_the_calls_and_counts_them_by_state(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    with llm_server() as server:
        make_llm_judge(evaluation, server.base_url)
        told = run_judge(capsys, judge="judge", wait=True, limit=2)
    assert told["answered"] == 4
    assert (told["state"], told["pending"], told["failed"], told["reused"]) == ("done", 0, 0, 0)


def test_the_baseline_runs_as_well(evaluation: Evaluation, capsys: pytest.CaptureFixture[str]) -> None:
    make_baseline_judge(evaluation)
    assert run_judge(capsys, judge="longest", wait=True)["answered"] == 6
    assert run_judge(capsys, judge="longest", wait=True)["reused"] == 6


def test_without_waiting_the_run_is_left_to_a_worker(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    make_baseline_judge(evaluation)
    assert run_judge(capsys, judge="longest")["state"] == "planning"


def test_several_judges_are_a_panel_with_a_line_for_each(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    make_baseline_judge(evaluation)
    create_judge(evaluation, JudgeSettings(name="leftist", model="first", version=evaluation.review_rubric), user=None)
    call_command("run_judge", "study", "--judge", "leftist", "--judge", "longest", "--wait")
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["judge"], one["answered"], one["cost_usd"]) for one in told] == [("leftist", 6, 0), ("longest", 6, 0)]
    assert Run.objects.values("batch").distinct().count() == 1


def test_what_a_run_cost_is_null_until_its_price_is_known(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    with llm_server() as server:
        judge = make_llm_judge(evaluation, server.base_url)
        told = run_judge(capsys, judge="judge", wait=True, limit=1)
        assert (told["cost_usd"], told["requests_of_unknown_cost"], told["repaired"]) == (None, 2, 0)
        call_command("set_price", base_url=server.base_url, model=judge.model, tokens_in="1", tokens_out="1")
        capsys.readouterr()
        assert run_judge(capsys, judge="judge", wait=True)["answered"] == 4


def test_an_estimate_is_printed_and_nothing_started(evaluation: Evaluation, capsys: pytest.CaptureFixture[str]) -> None:
    make_llm_judge(evaluation, "http://127.0.0.1:9/v1", max_tokens=200)
    told = run_judge(capsys, judge="judge", estimate=True)
    assert (told["judge"], told["calls"], told["cost_usd"]) == ("judge", 6, None)
    assert told["tokens_out"] == {"low": 600, "high": 1200}
    assert told["expected"]["comparisons"] == 3
    assert (told["calls_so_far"]["answered"], told["minutes"]["low"]) == (0, pytest.approx(6 * 2 / 32 / 60))
    assert not Run.objects.exists()


def test_only_calls_in_the_chosen_states_are_asked_again(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    with llm_server(answer_broken) as server:
        make_llm_judge(evaluation, server.base_url, repairs=False)
        assert run_judge(capsys, judge="judge", wait=True)["unreadable"] == 6
        server.script = answer_well
        assert run_judge(capsys, judge="judge", wait=True, retry=["unreadable"], limit=1)["answered"] == 2


def test_where_a_worker_is_alive_the_command_only_waits(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_baseline_judge(evaluation)
    Worker.objects.create(name="w", host="h", pid=1, version="", started_at=Now(), seen_at=Now())

    def ended_meanwhile(seconds: float) -> None:
        Run.objects.update(state="cancelled")

    monkeypatch.setattr("evaluations.management.commands.run_judge.time.sleep", ended_meanwhile)
    assert run_judge(capsys, judge="longest", wait=True)["state"] == "cancelled"


def test_a_run_that_stops_prints_its_counts_and_fails_with_the_reason(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    with llm_server(fail_with(401)) as server:
        make_llm_judge(evaluation, server.base_url)
        with pytest.raises(CommandError, match="requires an API key"):
            run_judge(capsys, judge="judge", wait=True)
    assert json.loads(capsys.readouterr().out)["state"] == "stopped"


def test_a_judge_sits_on_a_panel_once(evaluation: Evaluation) -> None:
    make_baseline_judge(evaluation)
    with pytest.raises(CommandError, match="Choose each judge only once"):
        call_command("run_judge", "study", "--judge", "longest", "--judge", "longest")
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"judge": "nobody"}, "has no judge “nobody”"),
        ({"judge": "longest", "samples": 2}, "the same answer"),
        ({"judge": "longest", "limit": 0}, "at least 1"),
        ({"judge": "longest", "limit": 0, "estimate": True}, "at least 1"),
        ({"judge": "longest", "retry": ["answered"]}, "“answered” calls cannot be retried"),
        ({"judge": "longest", "retry": ["failed"]}, "“longest” has no failed calls to retry"),
        ({"judge": "longest", "channel": "batch"}, "makes no requests"),
        ({"judge": "longest", "budget": "much"}, "an amount in USD"),
    ],
)
def test_bad_input_is_one_line(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str], options: dict[str, Any], problem: str
) -> None:
    make_baseline_judge(evaluation)
    with pytest.raises(CommandError, match=problem):
        run_judge(capsys, **options)
    assert not Run.objects.exists()


def test_what_a_pasted_prompt_leaves_out_is_told_and_the_run_starts(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    make_llm_judge(evaluation, "http://127.0.0.1:9/v1", name="blind", version=make_rubric_without_query(evaluation))
    call_command("run_judge", "study", judge="blind", estimate=True)
    told = capsys.readouterr()
    warning = told.err.removeprefix("blind: ").rstrip()
    assert warning.startswith("The rubric has no placeholder for the prompt.")
    assert json.loads(told.out)["assumptions"][0] == warning
    call_command("run_judge", "study", judge="blind")
    assert capsys.readouterr().err.startswith("blind: The rubric has no placeholder")
    assert Run.objects.count() == 1

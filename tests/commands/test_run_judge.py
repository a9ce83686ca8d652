import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from evaluations.models import Evaluation, Run, Worker
from tests.judges import make_baseline, make_judge
from tests.llm_server import failing, llm_server
from tests.making import make_comparison, make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def evaluation() -> Evaluation:
    evaluation = make_evaluation(slug="study")
    for _ in range(3):
        make_comparison(evaluation)
    return evaluation


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
        make_judge(evaluation, server.base_url)
        told = run_judge(capsys, judge="judge", wait=True, limit=2)
    assert told["answered"] == 4
    assert (told["state"], told["pending"], told["failed"], told["reused"]) == ("done", 0, 0, 0)


def test_the_baseline_runs_as_well(evaluation: Evaluation, capsys: pytest.CaptureFixture[str]) -> None:
    make_baseline(evaluation)
    assert run_judge(capsys, judge="longest", wait=True)["answered"] == 6
    assert run_judge(capsys, judge="longest", wait=True)["reused"] == 6


def test_without_waiting_the_run_is_left_to_a_worker(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    make_baseline(evaluation)
    assert run_judge(capsys, judge="longest")["state"] == "planning"


def test_where_a_worker_is_alive_the_command_only_waits(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_baseline(evaluation)
    Worker.objects.create(name="w", host="h", pid=1, version="", started_at=Now(), seen_at=Now())

    def ended_meanwhile(seconds: float) -> None:
        Run.objects.update(state="cancelled")

    monkeypatch.setattr("evaluations.management.commands.run_judge.time.sleep", ended_meanwhile)
    assert run_judge(capsys, judge="longest", wait=True)["state"] == "cancelled"


def test_a_run_that_stops_prints_its_counts_and_fails_with_the_reason(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    with llm_server(failing(401)) as server:
        make_judge(evaluation, server.base_url)
        with pytest.raises(CommandError, match="wants a key"):
            run_judge(capsys, judge="judge", wait=True)
    assert json.loads(capsys.readouterr().out)["state"] == "stopped"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"judge": "nobody"}, "has no judge “nobody”"),
        ({"judge": "longest", "samples": 2}, "the same answer"),
        ({"judge": "longest", "limit": 0}, "at least 1"),
    ],
)
def test_bad_input_is_one_line(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str], options: dict[str, Any], problem: str
) -> None:
    make_baseline(evaluation)
    with pytest.raises(CommandError, match=problem):
        run_judge(capsys, **options)
    assert not Run.objects.exists()

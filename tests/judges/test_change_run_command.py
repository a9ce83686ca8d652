import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evaluations.judges.endpoints.price_settings import PriceSettings, set_price
from evaluations.judges.runs.services import start_run
from evaluations.models.runs import Run
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture
def run() -> Run:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    judge = make_llm_judge(evaluation, "http://127.0.0.1:9/v1", max_tokens=100)
    assert judge.endpoint is not None
    set_price(judge.endpoint, PriceSettings(model=judge.model, tokens_in="1", tokens_out="1"), user=None)
    return start_run(judge, user=None)


def changed(capsys: pytest.CaptureFixture[str], run: Run, **options: Any) -> dict[str, Any]:
    call_command("change_run", run.pk, **options)
    told = json.loads(capsys.readouterr().out)
    assert isinstance(told, dict)
    return told


def test_a_run_is_paused_resumed_and_cancelled(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert changed(capsys, run, pause=True)["state"] == "paused"
    told = changed(capsys, run, resume=True, budget="1.5")
    assert (told["state"], told["budget_usd"]) == ("planning", 1.5)
    assert changed(capsys, run, budget="none")["budget_usd"] is None
    assert changed(capsys, run, cancel=True)["state"] == "cancelled"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "Nothing to change"),
        ({"resume": True}, "cannot be resumed: it is being planned"),
        ({"budget": "0"}, "more than USD 0"),
        ({"budget": "a lot"}, "an amount in USD"),
        ({"budget": "2", "resume": True}, "cannot be resumed"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(run: Run, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        call_command("change_run", run.pk, **options)
    run.refresh_from_db()
    assert (run.state, run.budget) == ("planning", None)


def test_an_unknown_run_is_named() -> None:
    with pytest.raises(CommandError, match="There is no run 7"):
        call_command("change_run", 7, pause=True)

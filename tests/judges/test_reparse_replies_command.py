import json

import pytest
from django.core.management import CommandError, call_command

from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_baseline_judge, make_llm_judge, run_judge_here
from tests.helpers.llm_server import llm_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


def test_the_command_reads_to_the_end_and_says_what_changed(capsys: pytest.CaptureFixture[str]) -> None:
    evaluation = make_evaluation(slug="study")
    make_comparison(evaluation)
    with llm_server() as server:
        run_judge_here(make_llm_judge(evaluation, server.base_url))
    call_command("reparse_replies", "study", judge="judge")
    assert json.loads(capsys.readouterr().out) == {"calls": 2, "counts": {"unchanged": 2}, "changes": {}}


@pytest.mark.parametrize(
    ("slug", "judge", "problem"),
    [
        ("other", "longest", "no evaluation at “other”"),
        ("study", "nobody", "has no judge “nobody”"),
        ("study", "longest", "no stored replies"),
    ],
)
def test_bad_input_is_one_line(slug: str, judge: str, problem: str) -> None:
    make_baseline_judge(make_evaluation(slug="study"))
    with pytest.raises(CommandError, match=problem):
        call_command("reparse_replies", slug, judge=judge)

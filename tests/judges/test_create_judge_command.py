from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge
from tests.factories.evaluations import make_comparison
from tests.factories.judges import make_pasted_rubric, make_rubric_without_query

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

URL = "http://localhost:11434/v1"


def create(**options: Any) -> Judge:
    call_command("create_judge", "study", **{"name": "judge", "model": "llama", "base_url": URL} | options)
    return Judge.objects.get(name=options.get("name", "judge"))


def test_a_judge_is_made_with_its_endpoint(evaluation: Evaluation, capsys: pytest.CaptureFixture[str]) -> None:
    judge = create(key_env="LOCAL_API_KEY", temperature=0.0, max_in_flight=4, mode="text")
    assert capsys.readouterr().out == "Created judge judge: llama at localhost:11434.\n"
    assert (judge.model, judge.temperature, judge.mode) == ("llama", 0.0, "text")
    assert judge.rubric_version == evaluation.review_rubric
    endpoint = Endpoint.objects.get()
    assert (endpoint.base_url, endpoint.key_variable, endpoint.max_in_flight) == (URL, "LOCAL_API_KEY", 4)


def test_the_baseline_needs_no_endpoint_and_says_what_it_is(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(model="longest", base_url=None).is_baseline
    assert "rule-based" in capsys.readouterr().out


def test_the_latest_version_of_a_named_rubric_is_asked(evaluation: Evaluation) -> None:
    from evaluations.domain.rubrics import AspectSpec

    mapping = {"{x}": "response_a", "{y}": "response_b"}
    version = make_pasted_rubric(evaluation, "{x} {y}", mapping, AspectSpec("overall", "Overall", ""))
    assert create(rubric="pasted").rubric_version == version


def test_a_built_in_rubric_is_added_where_the_evaluation_has_not_got_it(evaluation: Evaluation) -> None:
    judge = create(rubric="summary-rating")
    again = create(rubric="summary-rating", name="again", temperature=1.0)
    assert judge.rubric_version == again.rubric_version
    assert judge.rubric_version is not None
    assert (judge.rubric_version.rubric.name, judge.rubric_version.rubric.kind) == ("summary-rating", "pointwise")


def test_every_setting_of_how_it_is_asked_can_be_given(evaluation: Evaluation) -> None:
    judge = create(
        mode="two_step", seed=7, max_tokens=900, reasoning_effort="high", logprobs=True, no_repair=True, temperature=0.5
    )
    assert (judge.mode, judge.seed, judge.max_tokens, judge.temperature) == ("two_step", 7, 900, 0.5)
    assert (judge.reasoning_effort, judge.logprobs, judge.repairs) == ("high", True, False)
    plain = create(name="plain")
    assert (plain.mode, plain.seed, plain.reasoning_effort, plain.logprobs, plain.repairs) == (
        "auto",
        None,
        "",
        False,
        True,
    )


def test_a_judge_can_ask_for_one_aspect_per_call(evaluation: Evaluation) -> None:
    assert create(one_aspect_per_call=True).one_aspect_per_call is True
    assert create(name="plain").one_aspect_per_call is False


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"base_url": None}, "needs an LLM endpoint"),
        ({"base_url": "localhost"}, "is not an address"),
        ({"key_env": "HOME"}, "cannot name a key"),
        ({"rubric": "nothing"}, "has no rubric “nothing”"),
        ({"temperature": -1.0}, "from 0 to 2"),
        ({"reasoning_effort": "huge"}, "Reasoning effort: use one of"),
        ({"model": "longest", "base_url": None, "rubric": "summary-rating"}, "Choose a pairwise rubric"),
    ],
)
def test_bad_input_is_one_line_and_makes_nothing(evaluation: Evaluation, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        create(**options)
    assert not Judge.objects.exists()
    assert not Endpoint.objects.exists()


def test_an_unknown_evaluation_is_named() -> None:
    with pytest.raises(CommandError, match="There is no evaluation at “study”"):
        create()


def test_extras_belong_to_the_judge_and_time_and_dialect_to_its_endpoint(evaluation: Evaluation) -> None:
    judge = create(
        extra_header=["X-Title=judgeweb", "X-Team=a=b"], extra_body='{"top_p": 0.5}', timeout=900, dialect="vllm"
    )
    assert (judge.extra_headers, judge.extra_body) == ({"X-Title": "judgeweb", "X-Team": "a=b"}, {"top_p": 0.5})
    assert judge.endpoint is not None
    assert (judge.endpoint.timeout_seconds, judge.endpoint.dialect) == (900, "vllm")
    with pytest.raises(CommandError, match="write NAME=VALUE"):
        create(name="second", extra_header=["X-Title"])
    with pytest.raises(CommandError, match="this is not JSON"):
        create(name="second", extra_body="top_p")


def test_a_pasted_prompt_without_a_place_for_the_query_is_warned_of(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    make_comparison(evaluation)
    make_rubric_without_query(evaluation)
    create(rubric="pasted")
    assert capsys.readouterr().err.startswith("The rubric has no placeholder for the prompt.")
    create(name="other")
    assert capsys.readouterr().err == ""

"""Making a judge: a model with all its settings, or a rule by its name."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from evaluations.domain.judges import RULE_JUDGE_TEXTS, OutputMode
from evaluations.domain.roles import Role
from evaluations.judge_prompts.baseline_rules import BASELINE_RULES
from evaluations.judges.forms import MODE_CHOICES
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge, LocalServer, Price
from evaluations.rubrics.services import create_builtin_rubric
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.judges import make_llm_judge, make_rubric_without_query
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("owner_signed_in"), pytest.mark.any_database]


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint.objects.create(name="local", base_url="http://localhost:11434/v1", is_offered=True)


@pytest.fixture
def address(evaluation: Evaluation) -> str:
    return reverse("judge_new", args=["study"])


def fields(evaluation: Evaluation, endpoint: Endpoint, **changed: str) -> dict[str, object]:
    given = {"endpoint": endpoint.pk, "model": "llama", "version": evaluation.review_rubric_id, "mode": "auto"}
    return given | changed


def test_a_judge_has_every_setting_that_was_chosen(
    client: Client, evaluation: Evaluation, endpoint: Endpoint, address: str
) -> None:
    chosen = {"temperature": "0.5", "seed": "7", "max_tokens": "900", "reasoning_effort": "low", "logprobs": "on"}
    answer = client.post(address, fields(evaluation, endpoint, mode="json_schema", **chosen))
    judge = Judge.objects.get()
    assert answer["Location"] == reverse("judge", args=["study", judge.pk])
    assert (judge.temperature, judge.seed, judge.max_tokens) == (0.5, 7, 900)
    assert (judge.mode, judge.reasoning_effort, judge.logprobs, judge.repairs) == ("json_schema", "low", True, False)


def test_each_mode_is_explained_in_one_line(client: Client, address: str) -> None:
    assert {mode for mode, _ in MODE_CHOICES} == set(OutputMode)
    page = html_of(client.get(address))
    assert all(words in page for _, words in MODE_CHOICES)


@pytest.mark.parametrize("rule", BASELINE_RULES)
def test_a_rule_is_chosen_by_its_name(client: Client, evaluation: Evaluation, address: str, rule: str) -> None:
    given = {"rule": rule, "version": evaluation.review_rubric_id, "mode": "text", "temperature": "1", "logprobs": "on"}
    answer = client.post(address, given)
    judge = Judge.objects.get()
    assert answer["Location"] == f"{reverse('run_new', args=['study'])}?judge={judge.pk}"
    assert (judge.name, judge.model, judge.is_baseline) == (rule, rule, True)
    assert (judge.mode, judge.temperature, judge.logprobs) == ("auto", None, False)


def test_every_rule_is_said_in_words() -> None:
    assert set(RULE_JUDGE_TEXTS) == set(BASELINE_RULES)


def test_the_price_of_the_model_stands_on_the_form(client: Client, endpoint: Endpoint, address: str) -> None:
    asked = {"endpoint": str(endpoint.pk), "model": "llama"}
    assert "The price of <strong>llama</strong> is unknown" in html_of(client.get(address, asked))
    million = 10**9
    Price.objects.create(
        endpoint=endpoint, model="llama", tokens_in=2 * million, tokens_cached=million, tokens_out=8 * million
    )
    fragment = html_of(client.get(address, asked, headers={"HX-Request": "true"}))
    assert "2.00 input (1.00 cached), 8.00 output" in fragment
    assert "<html" not in fragment
    for endpoint_sent in ("", "x", "9" * 30):
        assert "Enter a model" in html_of(client.get(address, asked | {"endpoint": endpoint_sent}))


def test_a_list_price_is_shown_with_its_date_and_kept_with_the_judge(
    client: Client, evaluation: Evaluation, endpoint: Endpoint, address: str
) -> None:
    endpoint.base_url = "https://api.openai.com/v1"
    endpoint.save()
    fragment = html_of(client.get(address, {"endpoint": str(endpoint.pk), "model": "gpt-5"}))
    assert "1.25 input (0.125 cached), 10.00 output" in fragment
    assert "List price, as of 2026-09-05 (<a href=" in fragment
    assert not Price.objects.exists(), "reading a page stores nothing"
    client.post(address, fields(evaluation, endpoint, model="gpt-5"))
    assert Price.objects.get().model == "gpt-5"
    page = html_of(client.get(reverse("judge", args=["study", Judge.objects.get().pk])))
    assert "model maximum (128,000)" in page


def test_extras_are_frozen_with_a_judge_and_a_key_in_one_is_never_shown_again(
    client: Client, evaluation: Evaluation, endpoint: Endpoint, address: str
) -> None:
    extras = {"extra_headers": "X-Title: judgeweb", "extra_body": '{"top_p": 0.5}'}
    client.post(address, fields(evaluation, endpoint, **extras))
    judge = Judge.objects.get()
    assert (judge.extra_headers, judge.extra_body) == ({"X-Title": "judgeweb"}, {"top_p": 0.5})
    page = html_of(client.get(reverse("judge", args=["study", judge.pk])))
    assert "X-Title: judgeweb" in page
    assert "{&quot;top_p&quot;: 0.5}" in page
    key = "sk-proj-abcdefghij1234567890abcdefghij"
    answer = client.post(address, fields(evaluation, endpoint, name="second", extra_headers=f"X-Custom: {key}"))
    assert answer.status_code == 422
    assert key not in html_of(answer)


def test_a_judge_that_asks_for_one_aspect_per_call_says_so_with_its_first_request(
    client: Client, evaluation: Evaluation, endpoint: Endpoint, address: str
) -> None:
    form = html_of(client.get(address))
    assert "One request per aspect" in form
    assert "influence each other; costs more." in form
    make_comparison(evaluation)
    client.post(address, fields(evaluation, endpoint, one_aspect_per_call="on"))
    judge = Judge.objects.get()
    assert judge.one_aspect_per_call is True
    page = html_of(client.get(reverse("judge", args=["study", judge.pk])))
    assert "one request per aspect" in page
    assert "One request per aspect. Shown: Engagement, the first of" in page


def test_rubrics_stand_by_kind_and_one_is_chosen(client: Client, evaluation: Evaluation, address: str) -> None:
    version = create_builtin_rubric(evaluation, builtin="summary-rating", user=None)
    page = html_of(client.get(address, {"version": str(version.pk)}))
    assert page.index("Pairwise: two") < page.index("six-aspect, version 1") < page.index("Pointwise: one")
    assert f'<option value="{version.pk}" selected>summary-rating, version 1' in page


def test_a_pointwise_judge_is_made(client: Client, evaluation: Evaluation, endpoint: Endpoint, address: str) -> None:
    version = create_builtin_rubric(evaluation, builtin="reference-metric", user=None)
    client.post(address, fields(evaluation, endpoint, version=str(version.pk)))
    assert Judge.objects.get().rubric_version == version


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"model": ""}, "Enter the ID of a model"),
        ({"version": ""}, "This field is required"),
        ({"mode": "guess"}, "Select a valid choice"),
        ({"max_tokens": "0"}, "greater than or equal to 1"),
        ({"reasoning_effort": "extreme"}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_taken_comes_back_with_the_reason(
    client: Client, evaluation: Evaluation, endpoint: Endpoint, address: str, changed: dict[str, str], words: str
) -> None:
    answer = client.post(address, fields(evaluation, endpoint, **changed))
    assert answer.status_code == 422
    assert words in html_of(answer)
    assert not Judge.objects.exists()


def test_models_to_choose_from_are_those_of_this_evaluation_and_of_the_site(
    client: Client, evaluation: Evaluation, address: str
) -> None:
    make_llm_judge(evaluation, "http://127.0.0.1:9/v1", model="ours")
    make_llm_judge(make_evaluation(), "http://127.0.0.1:9/v1", model="theirs")
    LocalServer.objects.create(
        base_url="http://localhost:9/v1", kind="ollama", model_names=["nearby"], seen_at=timezone.now()
    )
    page = html_of(client.get(address))
    assert '<option value="ours">' in page
    assert '<option value="nearby">' in page
    assert "theirs" not in page


def test_the_form_costs_the_same_however_much_there_is(client: Client, evaluation: Evaluation, address: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(address).status_code == 200
        return len(captured)

    few = queries()
    for number in range(4):
        create_builtin_rubric(evaluation, builtin="six-aspect", name=f"rubric {number}", user=None)
        make_llm_judge(evaluation, f"http://127.0.0.1:{9000 + number}/v1", name=f"judge {number}")
    assert queries() == few


def test_only_owners_and_managers_make_judges(client: Client, evaluation: Evaluation, address: str) -> None:
    client.force_login(make_member(evaluation, Role.REVIEWER))
    assert client.post(address).status_code == 403
    client.force_login(make_user())
    assert client.get(address).status_code == 404


NO_QUERY = "The rubric has no placeholder for the prompt."


def test_what_the_chosen_rubric_leaves_out_is_shown_when_it_is_chosen_and_after_the_judge_is_made(
    client: Client, evaluation: Evaluation, endpoint: Endpoint, address: str
) -> None:
    make_comparison(evaluation)
    version = make_rubric_without_query(evaluation)
    assert NO_QUERY not in html_of(client.get(address))
    assert NO_QUERY in html_of(client.get(address, {"version": version.pk}))
    part = {"HX-Request": "true", "HX-Target": "left-out"}
    assert html_of(client.get(address, {"version": version.pk}, headers=part)).count("<p") == 1
    for other in (str(evaluation.review_rubric_id), "", "x", "9" * 30):
        assert html_of(client.get(address, {"version": other}, headers=part)).strip() == ""
    made = client.post(address, fields(evaluation, endpoint, version=str(version.pk)), follow=True)
    assert NO_QUERY in html_of(made)

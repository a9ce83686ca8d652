"""A key or password in the wrong field comes back in no page, answer, error, event or log."""

import json
import logging

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from evaluations.domain.errors import InputRefused
from evaluations.domain.secrets import is_probable_key
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.users import User
from tests.factories.evaluations import make_evaluation, make_user
from tests.helpers.api_client import ApiClient, token_for

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

KEY = "sk-proj-Zq8vT3xLk29PwN4mRb7YcD1e"
PASSWORD = "hunter2-correct-horse"
ENDPOINT = {
    "name": "server",
    "base_url": "http://localhost:9/v1",
    "key_variable": "",
    "max_in_flight": "",
    "requests_per_minute": "",
    "tokens_per_minute": "",
}
PASTED = [
    ("key_variable", KEY, KEY),
    ("key_variable", f" {KEY}\n", KEY),
    ("key_variable", f"Bearer {KEY}", KEY),
    ("key_variable", f"OPENAI_API_KEY={KEY}", KEY),
    ("key_variable", KEY * 10, KEY),  # longer than the field
    ("key_variable", "AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("base_url", KEY, KEY),
    ("base_url", f"http://user:{PASSWORD}@localhost:9/v1", PASSWORD),
    ("base_url", f"user:{PASSWORD}@localhost", PASSWORD),
    ("base_url", f"http://localhost:9/v1?api_key={KEY}", KEY),
    ("name", KEY, KEY),
    ("name", f"the key is {KEY}", KEY),
    ("name", f"https://u:{KEY}@h.example.org", KEY),
    ("max_in_flight", KEY, KEY),
    ("tokens_per_minute", KEY, KEY),
]
COMMAND_TAKES = ("key_variable", "base_url")


@pytest.fixture
def root() -> User:
    return make_user("root", is_superuser=True)


@pytest.fixture
def evaluation(root: User) -> Evaluation:
    return make_evaluation(root, slug="study")


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


def everything_kept(logged: pytest.LogCaptureFixture) -> str:
    events = [(event.verb, event.before, event.after) for event in Event.objects.all()]
    return json.dumps([events, list(Endpoint.objects.values()), logged.text], default=str)


@pytest.mark.parametrize(("field", "value", "secret"), PASTED)
def test_no_page_repeats_it(
    client: Client, root: User, logged: pytest.LogCaptureFixture, field: str, value: str, secret: str
) -> None:
    client.force_login(root)
    there = Endpoint.objects.create(name="there", base_url="http://localhost:8/v1")
    for address in (reverse("endpoint_new"), reverse("endpoint", args=[there.pk])):
        answer = client.post(address, {**ENDPOINT, field: value})
        assert answer.status_code == 422
        assert secret not in answer.content.decode()
    assert secret not in everything_kept(logged)


@pytest.mark.parametrize(("field", "value", "secret"), PASTED)
def test_no_answer_of_the_api_repeats_it(
    root: User, logged: pytest.LogCaptureFixture, field: str, value: str, secret: str
) -> None:
    asking = ApiClient(token_for(root))
    there = Endpoint.objects.create(name="there", base_url="http://localhost:8/v1")
    body = {name: given for name, given in ENDPOINT.items() if given}
    answers = (
        asking.post("/endpoints", {**body, field: value}),
        asking.patch(f"/endpoints/{there.pk}", {field: value}),
    )
    for answer in answers:
        assert answer.status_code == 422
        assert secret not in answer.content.decode()
    assert secret not in everything_kept(logged)


@pytest.mark.parametrize(
    ("field", "value", "secret"), [one for one in PASTED if one[0] in ("key_variable", "base_url")]
)
def test_no_command_repeats_it(
    evaluation: Evaluation, logged: pytest.LogCaptureFixture, field: str, value: str, secret: str
) -> None:
    given = {**ENDPOINT, field: value}
    options = {"base_url": given["base_url"], "key_env": given["key_variable"]}
    with pytest.raises(CommandError) as refused:
        call_command("create_judge", "study", name="judge", model="m", **options)
    assert secret not in str(refused.value)
    assert secret not in everything_kept(logged)


@pytest.mark.parametrize("field", ["model", "name", "seed", "max_tokens", "temperature", "mode"])
def test_a_key_is_no_name_of_a_judge_or_model_and_comes_back_in_no_field(
    client: Client, root: User, evaluation: Evaluation, field: str
) -> None:
    client.force_login(root)
    endpoint = Endpoint.objects.create(name="there", base_url="http://localhost:8/v1")
    values = {"endpoint": endpoint.pk, "model": "m", "name": "judge", "version": evaluation.review_rubric_id}
    answer = client.post(reverse("judge_new", args=["study"]), {**values, "mode": "auto"} | {field: KEY})
    assert answer.status_code == 422
    assert KEY not in answer.content.decode()
    assert not Judge.objects.exists()


def test_a_refusal_leaves_out_a_key_wherever_it_stands() -> None:
    assert str(InputRefused(f"“{KEY}” is no time zone.")) == "“…” is no time zone."
    assert str(InputRefused("“llama-3-hf-instruct-quantized-awq-128g” is there.")).endswith("awq-128g” is there.")


def test_events_name_the_server_of_a_webhook_and_not_its_path(
    client: Client, root: User, evaluation: Evaluation
) -> None:
    """Chat services put a secret into the path."""
    client.force_login(root)
    address = "https://hooks.example.org/services/T0/B0/secretpath?sig=secretquery"
    sent = {"url": address, "kinds": ["run.finished"]}
    assert client.post(reverse("webhook_new", args=["study"]), sent).status_code == 302
    (event,) = Event.objects.filter(object_type="webhook")
    assert event.after["url"] == "https://hooks.example.org/…"
    again = client.post(reverse("webhook_new", args=["study"]), {**sent, "url": f"https://u:{PASSWORD}@example.org"})
    assert PASSWORD not in again.content.decode()


@pytest.mark.parametrize(
    "name",
    [
        "llama-3-hf-instruct-quantized-awq-128g",
        "risk-model-0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "gpt-4o-mini",
        "claude-3-5-sonnet-20241022",
        "meta-llama/Llama-3.1-70B-Instruct",
        "llama-4-maverick-17b-128e-instruct-fp8",
        "ft:gpt-4o-mini-2024-07-18:org::abc",
        "Qwen2.5-72B-Instruct-GPTQ-Int4",
        "hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M",
        "accounts/fireworks/models/deepseek-v3",
        "a" * 40,
    ],
)
def test_names_of_models_are_no_keys(name: str) -> None:
    assert not is_probable_key(name)


@pytest.mark.parametrize(
    "key",
    [
        KEY,
        "sk-ant-api03-Zq8vT3xLk29PwN4mRb7YcD1eZq8vT3xL",
        "gsk_Zq8vT3xLk29PwN4mRb7YcD1e",
        "xai-Zq8vT3xLk29PwN4mRb7YcD1e",
        "hf_ZqvTxLkPwNmRbYcDeFgHiJkL",
        "AIzaSyD4Zq8vT3xLk29PwN4mRb7YcD1eZq8vT",
        "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "Bearer abcdefghijklmnopqrst",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
    ],
)
def test_keys_of_providers_are_known(key: str) -> None:
    assert is_probable_key(key)


@pytest.mark.parametrize(
    "key",
    [
        "sk-ant-api03-Zq8vT3xLk29PwN4mRb7YcD1eZq8vT3xL",
        "AIzaSyD4Zq8vT3xLk29PwN4mRb7YcD1eZq8vT",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
        "Bearer Zq8vT3xLk29PwN4mRb7YcD1e",
    ],
)
def test_a_refusal_leaves_out_a_key_within_its_sentence(key: str) -> None:
    assert str(InputRefused(f"The name {key} is taken: choose another.")) == "The name … is taken: choose another."


def test_a_refusal_keeps_a_sentence_without_a_key() -> None:
    sentence = "The bearer internationalization-of-names is no key, and risk-model-0f1e2d3c4b5a6978 is none."
    assert str(InputRefused(sentence)) == sentence

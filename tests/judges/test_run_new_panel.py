"""The panel: a provider, its key, a test, a model, and a run on one page."""

import re
from typing import Any

import pytest
from django.conf import LazySettings
from django.urls import reverse

from evaluations.domain.jobs import CHECK_ENDPOINT
from evaluations.domain.roles import Role
from evaluations.judges.endpoints.checks import choose_test_model
from evaluations.judges.endpoints.grants import grant_endpoint, is_granted
from evaluations.judges.endpoints.key_encryption import decrypt_key
from evaluations.judges.endpoints.services import EndpointSettings, create_endpoint
from evaluations.judges.new_run.providers import PROVIDERS
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, EndpointCheck, Judge
from evaluations.models.runs import Run
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_member
from tests.helpers.browser_client import sign_in_client
from tests.helpers.job_work import work_all
from tests.helpers.llm_server import fail_with, llm_server
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

KEY = "sk-proj-Zq8vT3xLk29PwN4mRb7YcD1e"
ADDRESS = "/e/study/judges/runs/new"


@pytest.fixture(autouse=True)
def comparisons(evaluation: Evaluation, settings: LazySettings, tmp_path: Any) -> None:
    settings.ENCRYPTION_KEY_FILE = tmp_path / "encryption_keys"
    for _ in range(2):
        make_comparison(evaluation)


@pytest.fixture
def root(evaluation: Evaluation) -> User:
    user = make_member(evaluation, Role.OWNER, "root")
    user.is_superuser = True
    user.save()
    return user


def page(user: User, **chosen: Any) -> str:
    answer = sign_in_client(user).get(ADDRESS, chosen)
    assert answer.status_code == 200
    return html_of(answer)


def send(user: User, address: str = ADDRESS, **fields: Any) -> Any:
    return sign_in_client(user).post(address, fields)


def judge_fields(endpoint: Endpoint, evaluation: Evaluation, **fields: Any) -> dict[str, Any]:
    version = evaluation.review_rubric
    assert version is not None
    sent = {"endpoint": endpoint.pk, "model": "small", "version": version.pk, "mode": "auto", "repairs": "on"}
    return sent | {"orders": "both", "samples": 1} | fields


def test_from_a_provider_to_a_run_with_one_test_request(root: User, evaluation: Evaluation) -> None:
    shown = page(root)
    assert all(f"?provider={provider.slug}" in shown for provider in PROVIDERS)
    with llm_server(models=["small"]) as server:
        answer = send(
            root, reverse("run_new_test", args=["study"]), provider="vllm", base_url=server.base_url, api_key=KEY
        )
        endpoint = Endpoint.objects.get()
        assert answer["Location"] == f"{ADDRESS}?endpoint={endpoint.pk}"
        assert decrypt_key(endpoint.encrypted_key) == KEY
        assert "Testing vLLM…" in page(root, endpoint=endpoint.pk)
        work_all(CHECK_ENDPOINT)
        assert {question.headers["Authorization"] for question in server.questions} == {f"Bearer {KEY}"}
    tested = sign_in_client(root).get(ADDRESS, {"endpoint": endpoint.pk})
    shown = html_of(tested)
    assert "Connected.</strong> small answered" in shown
    assert '<option value="small">' in shown
    assert 'name="model" value="small"' in shown
    assert ">4</strong> calls on 2 comparisons" in shown
    assert KEY not in shown
    ids = re.findall(r' id="([^"]+)"', shown)
    assert len(ids) == len(set(ids))
    assert not is_granted(endpoint, evaluation)
    run_fields = judge_fields(endpoint, evaluation)
    assert send(root, **run_fields)["Location"] == reverse("run", args=["study", Run.objects.get().pk])
    judge = Judge.objects.get()
    assert (judge.name, judge.model, judge.endpoint) == ("small", "small", endpoint)
    assert is_granted(endpoint, evaluation)


def test_a_failed_test_says_what_to_do_and_takes_another_key(root: User) -> None:
    with llm_server(fail_with(401, f"Incorrect API key provided: {KEY}"), models=["small"]) as server:
        send(root, reverse("run_new_test", args=["study"]), provider="other", base_url=server.base_url, api_key=KEY)
        work_all(CHECK_ENDPOINT)
        endpoint = Endpoint.objects.get()
        shown = page(root, endpoint=endpoint.pk)
        assert "Test failed.</strong>" in shown
        assert "refused the stored API key (401)" in shown
        assert KEY not in shown
        fields = {"endpoint": endpoint.pk, "base_url": server.base_url, "api_key": "another-key"}
        send(root, reverse("run_new_test", args=["study"]), **fields)
    endpoint.refresh_from_db()
    assert decrypt_key(endpoint.encrypted_key) == "another-key"
    assert Endpoint.objects.count() == 1


def test_a_provider_wants_a_key_and_a_refused_form_does_not_show_it(root: User) -> None:
    address = reverse("run_new_test", args=["study"])
    answer = send(root, address, provider="openai")
    assert answer.status_code == 422
    assert "OpenAI requires an API key." in html_of(answer)
    answer = send(root, address, provider="openai", api_key=f"{KEY} {KEY}")
    assert answer.status_code == 422
    assert "no spaces" in html_of(answer)
    assert KEY not in html_of(answer)
    assert not Endpoint.objects.exists()


def test_the_address_of_a_provider_is_its_own(root: User) -> None:
    fields = {"provider": "openai", "base_url": "http://localhost:9/v1", "api_key": KEY}
    send(root, reverse("run_new_test", args=["study"]), **fields)
    assert Endpoint.objects.get().base_url == "https://api.openai.com/v1"


def test_a_server_without_a_key_is_added_once(root: User) -> None:
    for _ in range(2):
        fields = {"provider": "ollama", "base_url": "http://localhost:9/v1/"}
        send(root, reverse("run_new_test", args=["study"]), **fields)
    assert [endpoint.name for endpoint in Endpoint.objects.all()] == ["Ollama"]


def test_further_servers_get_names_of_their_own(root: User) -> None:
    for port in (8, 9):
        fields = {"provider": "other", "base_url": f"http://localhost:{port}/v1"}
        assert send(root, reverse("run_new_test", args=["study"]), **fields).status_code in (204, 302)
    assert len({endpoint.name for endpoint in Endpoint.objects.all()}) == 2


def test_a_rule_is_offered_before_there_is_an_endpoint(root: User) -> None:
    assert "?rule=longest" in page(root)


def test_only_administrators_add_and_others_read_whom_to_ask(owner: User, evaluation: Evaluation, root: User) -> None:
    shown = page(owner)
    assert "Ask a site administrator to add or grant one: root." in shown
    assert "provider=" not in shown
    assert "provider=" not in page(owner, provider="openai")
    fields = {"provider": "openai", "api_key": KEY}
    assert send(owner, reverse("run_new_test", args=["study"]), **fields).status_code == 404
    hidden = create_endpoint(EndpointSettings("hidden", "http://localhost:9/v1"), user=None)
    assert sign_in_client(owner).get(ADDRESS, {"endpoint": hidden.pk}).status_code == 404
    assert send(owner, **judge_fields(hidden, evaluation)).status_code == 404
    grant_endpoint(hidden, evaluation, budget=None, user=root)
    shown = page(owner)
    assert "hidden" in shown
    assert 'name="api_key"' not in shown
    assert send(owner, **judge_fields(hidden, evaluation)).status_code == 302


def test_the_same_settings_run_the_same_judge(root: User, evaluation: Evaluation) -> None:
    endpoint = create_endpoint(EndpointSettings("one", "http://localhost:9/v1"), user=root)
    for _ in range(2):
        assert send(root, **judge_fields(endpoint, evaluation)).status_code == 302
    assert Judge.objects.count() == 1
    assert Run.objects.count() == 2
    assert send(root, **judge_fields(endpoint, evaluation, temperature="0.5")).status_code == 302
    assert evaluation.review_rubric is not None
    name = evaluation.review_rubric.rubric.name
    assert Judge.objects.order_by("pk").last() == Judge.objects.get(name=f"small · {name}")
    # The same address with another key is not silently asked with the first one.
    other = create_endpoint(EndpointSettings("two", "http://localhost:9/v1", api_key=KEY), user=root)
    answer = send(root, **judge_fields(other, evaluation))
    assert answer.status_code == 422
    assert "“small” is this judge on “one”" in html_of(answer)


def test_a_refused_run_makes_no_judge_and_keeps_the_fields(root: User, evaluation: Evaluation) -> None:
    endpoint = create_endpoint(EndpointSettings("one", "http://localhost:9/v1"), user=root)
    answer = send(root, **judge_fields(endpoint, evaluation, budget="2"))
    assert answer.status_code == 422
    assert "No price is set" in html_of(answer)
    assert 'name="model" value="small"' in html_of(answer)
    answer = send(root, **judge_fields(endpoint, evaluation, model=""))
    assert answer.status_code == 422
    assert not Judge.objects.exists()
    assert not EndpointCheck.objects.exists()


def test_the_estimate_follows_the_fields_of_a_judge_that_is_not_stored(root: User, evaluation: Evaluation) -> None:
    endpoint = create_endpoint(EndpointSettings("one", "http://localhost:9/v1"), user=root)

    def estimate(**fields: Any) -> str:
        sent = judge_fields(endpoint, evaluation, **fields)
        return html_of(sign_in_client(root).get(ADDRESS, sent, headers={"HX-Request": "true", "HX-Target": "estimate"}))

    assert ">2</strong> calls on 1 comparison" in estimate(limit=1)
    assert "Choose a model to see the estimate." in estimate(model="")
    assert "<html" not in estimate()
    assert not Judge.objects.exists()


def test_a_rule_runs_without_an_endpoint(owner: User, evaluation: Evaluation) -> None:
    assert ">4</strong> calls on 2 comparisons, without requests" in page(owner, rule="longest")
    assert evaluation.review_rubric is not None
    fields: dict[str, Any] = {"rule": "longest", "version": evaluation.review_rubric.pk, "mode": "auto"}
    fields |= {"orders": "both", "samples": 1}
    assert send(owner, **fields).status_code == 302
    assert Judge.objects.get().name == "longest"


@pytest.mark.parametrize(
    ("models", "chosen"),
    [
        (("text-embedding-3", "gpt-5", "gpt-6-luna", "whisper-1"), "gpt-6-luna"),
        (("tts-1", "unknown-chat"), "unknown-chat"),
        (("only-embed",), "only-embed"),
        ((), ""),
    ],
)
def test_the_test_asks_the_cheapest_model_that_chats(models: tuple[str, ...], chosen: str) -> None:
    assert choose_test_model("https://api.openai.com/v1", models) == chosen

"""A pasted API key is stored encrypted, sent to its endpoint only, and shown nowhere."""

import json
import logging
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.urls import reverse

from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import RunState
from evaluations.judges.endpoints.checks import perform_check, store_check
from evaluations.judges.endpoints.key_encryption import NOT_READABLE, decrypt_key, encrypt_key
from evaluations.judges.endpoints.selectors import server_for_endpoint
from evaluations.judges.endpoints.services import (
    EndpointSettings,
    change_endpoint,
    create_endpoint,
    find_or_create_endpoint,
    read_stored_settings,
)
from evaluations.judges.runs.services import resume_run, start_run
from evaluations.judges.services import JudgeSettings, create_judge
from evaluations.llm.client import server_key
from evaluations.llm.exchange import StopRun
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Endpoint, EndpointCheck, Judge
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.users import User
from evaluations.operations.doctor import check_endpoints
from evaluations.operations.findings import Health
from judgeweb.environment import read_encryption_keys
from tests.factories.evaluations import make_comparison, make_user
from tests.factories.judges import work_run_here
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.browser_client import sign_in_client
from tests.helpers.llm_server import ServerAnswer, fail_with, llm_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

KEY = "sk-proj-Zq8vT3xLk29PwN4mRb7YcD1e"
OTHER_KEY = "sk-proj-b8WmX1tQ5uHs6VgJn0KpF2aL"

REFUSES_AND_ECHOES = fail_with(401, f"Incorrect API key provided: {KEY}.")


@pytest.fixture(autouse=True)
def key_file(settings: LazySettings, tmp_path: Path) -> Path:
    settings.ENCRYPTION_KEYS, settings.ENCRYPTION_KEY_FILE = [], tmp_path / "encryption_keys"
    return tmp_path / "encryption_keys"


@pytest.fixture
def root() -> User:
    return make_user("root", is_superuser=True)


def add_endpoint(base_url: str = "http://localhost:9/v1", key: str = KEY) -> Endpoint:
    return create_endpoint(EndpointSettings(name="server", base_url=base_url, api_key=key), user=None)


def make_judge(evaluation: Evaluation, endpoint: Endpoint) -> Judge:
    settings = JudgeSettings(name="judge", model="test-model", version=evaluation.review_rubric, endpoint=endpoint)
    return create_judge(evaluation, settings, user=None)


def everything_kept(caplog: pytest.LogCaptureFixture) -> str:
    rows = [list(model.objects.values()) for model in (Endpoint, EndpointCheck, Event, Run)]
    rows += [list(Attempt.objects.values()), list(Call.all_rows.values())]
    return json.dumps([rows, caplog.text], default=str)


def test_a_key_is_stored_encrypted_and_its_file_is_for_this_account_alone(key_file: Path) -> None:
    endpoint = add_endpoint(key=f" Bearer {KEY}\n")
    stored = Endpoint.objects.get().encrypted_key
    assert KEY not in stored
    assert decrypt_key(stored) == KEY
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert KEY not in repr(server_for_endpoint(endpoint)) + repr(endpoint) + repr(EndpointSettings(api_key=KEY))


def test_many_that_store_a_first_key_at_once_share_one_file() -> None:
    with ThreadPoolExecutor(8) as threads:
        tokens = list(threads.map(lambda _: encrypt_key(KEY), range(32)))
    assert {decrypt_key(token) for token in tokens} == {KEY}


def test_the_stored_key_is_sent_and_an_answer_that_repeats_it_is_kept_without_it(
    evaluation: Evaluation, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    make_comparison(evaluation)
    with llm_server(REFUSES_AND_ECHOES) as server:
        endpoint = add_endpoint(server.base_url)
        store_check(endpoint, perform_check(server_for_endpoint(endpoint), "test-model", endpoint=endpoint, long=False))
        run = work_run_here(start_run(make_judge(evaluation, endpoint), user=None))
        assert {question.headers["Authorization"] for question in server.questions} == {f"Bearer {KEY}"}
        assert run.state == RunState.STOPPED
        assert "refused the stored API key (401): replace it on the endpoint's page." in run.stop_reason
        server.script = lambda _: ServerAnswer(f"The key is {KEY}.")
        resume_run(run, user=None)
        work_run_here(run)
    assert Attempt.objects.filter(http_status=200).exists()
    assert KEY not in everything_kept(caplog)
    assert KEY[-12:] not in everything_kept(caplog)


def test_a_worker_that_cannot_decrypt_stops_the_run_with_one_sentence_and_says_so_in_the_doctor(
    evaluation: Evaluation, settings: LazySettings
) -> None:
    make_comparison(evaluation)
    with llm_server() as server:
        endpoint = add_endpoint(server.base_url)
        settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
        settings.ENCRYPTION_KEY_FILE = settings.ENCRYPTION_KEY_FILE.with_name("of_another_machine")
        run = work_run_here(start_run(make_judge(evaluation, endpoint), user=None))
        assert run.state == RunState.STOPPED
        assert run.stop_reason == NOT_READABLE
        assert not server.questions
        (finding,) = check_endpoints()
    assert finding.health is Health.PROBLEM
    assert "cannot be decrypted here" in finding.summary
    with pytest.raises(StopRun, match="cannot be decrypted here"):
        server_key(server_for_endpoint(endpoint))


def test_no_page_answer_or_event_shows_it(root: User, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    browser, program = sign_in_client(root), ApiClient(token_for(root))
    form = {"name": "one", "base_url": "http://localhost:9/v1", "api_key": KEY}
    answers = [browser.post(reverse("endpoint_new"), form)]
    endpoint = Endpoint.objects.get()
    address = reverse("endpoint", args=[endpoint.pk])
    answers += [browser.get(address), browser.get(reverse("endpoints"))]
    answers += [
        browser.post(address, form | {"api_key": OTHER_KEY, "max_in_flight": "no"}),
        browser.post(address, form),
    ]
    sent = {"name": "two", "base_url": "http://localhost:8/v1", "api_key": KEY}
    answers += [program.post("/endpoints", sent), program.get("/endpoints"), program.get(f"/endpoints/{endpoint.pk}")]
    answers += [program.post("/endpoints", sent | {"api_key": [KEY]}), program.patch("/endpoints/1", {"api_key": 3})]
    assert {answer.status_code for answer in answers} <= {200, 201, 302, 404, 422}
    assert Endpoint.objects.exclude(encrypted_key="").count() == 2
    assert '"has_stored_key":true' in program.get(f"/endpoints/{endpoint.pk}").content.decode().replace(" ", "")
    texts = "".join(answer.content.decode() for answer in answers) + everything_kept(caplog)
    for secret in (KEY, OTHER_KEY, *Endpoint.objects.values_list("encrypted_key", flat=True)):
        assert secret not in texts.replace(f'"encrypted_key": "{secret}"', "")


def test_a_key_is_replaced_and_removed_and_each_is_on_record() -> None:
    endpoint = add_endpoint()
    stored = read_stored_settings(endpoint)
    assert not change_endpoint(endpoint, stored, user=None)
    assert change_endpoint(endpoint, replace(stored, api_key=OTHER_KEY), user=None)
    assert decrypt_key(Endpoint.objects.get().encrypted_key) == OTHER_KEY
    assert change_endpoint(endpoint, replace(stored, removes_key=True), user=None)
    assert Endpoint.objects.get().encrypted_key == ""
    events = Event.objects.filter(verb="changed").order_by("pk")
    assert [(event.before, event.after) for event in events] == [
        ({"api_key": "stored"}, {"api_key": "stored"}),
        ({"api_key": "stored"}, {"api_key": None}),
    ]


def test_a_stored_key_goes_to_no_other_address_unless_it_is_pasted_again() -> None:
    endpoint = add_endpoint()
    moved = replace(read_stored_settings(endpoint), base_url="http://localhost:8/v1")
    with pytest.raises(InputRefused, match="Paste the key again"):
        change_endpoint(endpoint, moved, user=None)
    assert change_endpoint(endpoint, replace(moved, api_key=OTHER_KEY), user=None)
    with pytest.raises(InputRefused, match="Remove it to use a variable"):
        change_endpoint(
            endpoint, replace(read_stored_settings(Endpoint.objects.get()), key_variable="A_API_KEY"), user=None
        )
    assert find_or_create_endpoint(base_url="http://localhost:8/v1", key_variable="", max_in_flight=None) != endpoint


def test_judges_keep_their_address_while_its_key_is_replaced(evaluation: Evaluation) -> None:
    endpoint = add_endpoint()
    make_judge(evaluation, endpoint)
    stored = read_stored_settings(endpoint)
    with pytest.raises(InputRefused, match="Judges use this address"):
        change_endpoint(endpoint, replace(stored, base_url="http://localhost:8/v1", api_key=KEY), user=None)
    assert change_endpoint(endpoint, replace(stored, api_key=OTHER_KEY), user=None)


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("OPENAI_API_KEY", "name of an environment variable"),
        ("two words", "no spaces"),
        ("schlüssel", "printable ASCII"),
        ("k" * 2001, "1 to 2,000"),
    ],
)
def test_what_is_no_key_is_refused_without_being_repeated(key: str, sentence: str) -> None:
    with pytest.raises(InputRefused, match=sentence) as refused:
        add_endpoint(key=key)
    assert key.strip() not in str(refused.value)


def test_an_endpoint_has_one_key() -> None:
    with pytest.raises(InputRefused, match="not both"):
        create_endpoint(
            EndpointSettings(name="e", base_url="http://localhost:9", key_variable="A_API_KEY", api_key=KEY), user=None
        )
    with pytest.raises(IntegrityError), transaction.atomic():
        Endpoint.objects.create(name="e", base_url="http://x", key_variable="A_API_KEY", encrypted_key="token")


def test_rotation_encrypts_again_with_the_first_key_and_drops_the_old_one(
    settings: LazySettings, key_file: Path
) -> None:
    add_endpoint()
    old = key_file.read_text()
    call_command("rotate_encryption_keys")
    assert decrypt_key(Endpoint.objects.get().encrypted_key) == KEY
    assert old not in key_file.read_text()
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    # From the file to the setting: the file's key still reads, the setting's first key writes.
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    assert decrypt_key(Endpoint.objects.get().encrypted_key) == KEY
    call_command("rotate_encryption_keys")
    key_file.unlink()
    assert decrypt_key(Endpoint.objects.get().encrypted_key) == KEY


def test_rotation_names_what_it_cannot_read_and_keeps_the_keys(key_file: Path) -> None:
    add_endpoint()
    key_file.write_text(Fernet.generate_key().decode())
    kept = key_file.read_text()
    with pytest.raises(CommandError, match="Not readable here: “server”"):
        call_command("rotate_encryption_keys")
    assert kept in key_file.read_text()


def test_the_setting_is_checked_without_being_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    key = Fernet.generate_key().decode()
    monkeypatch.setenv("JUDGEWEB_ENCRYPTION_KEYS", f" {key}, {key}")
    assert read_encryption_keys("JUDGEWEB_ENCRYPTION_KEYS") == [key, key]
    for wrong in ("secret!", key[:-4], f"{key},äöü"):
        monkeypatch.setenv("JUDGEWEB_ENCRYPTION_KEYS", wrong)
        with pytest.raises(ImproperlyConfigured, match="must be Fernet keys") as refused:
            read_encryption_keys("JUDGEWEB_ENCRYPTION_KEYS")
        assert wrong not in str(refused.value)

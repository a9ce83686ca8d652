"""Webhooks that a program makes and looks after, as a person does on their pages."""

from typing import Any

import pytest

from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.webhooks import Delivery, DeliveryAttempt, Webhook
from evaluations.webhooks.messages import create_due_messages
from tests.factories.evaluations import make_member
from tests.helpers.api_client import ApiClient, token_for

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

HOOKS = "/evaluations/study/webhooks"
NEW = {"url": "https://example.org/hook", "kinds": ["run.finished", "disagreement.opened"]}


@pytest.fixture
def made(asking: ApiClient) -> dict[str, Any]:
    answer = asking.post(HOOKS, NEW)
    assert answer.status_code == 201, answer.content
    told: dict[str, Any] = answer.json()
    return told


def test_its_secret_is_told_once(asking: ApiClient, made: dict[str, Any]) -> None:
    assert made["secret"] == Webhook.objects.get().secret
    rest = {name: value for name, value in made.items() if name != "secret"}
    assert asking.get(f"{HOOKS}/{made['id']}").json() == rest
    assert asking.get(HOOKS).json() == {"items": [rest], "next": None}
    assert (rest["url"], rest["kinds"], rest["stopped_at"]) == (NEW["url"], NEW["kinds"], None)


def test_under_a_key_it_is_not_kept(asking: ApiClient) -> None:
    """A secret does not lie about for a day in the answers that may be asked for again."""
    first, again = (asking.post(HOOKS, NEW, Idempotency_Key="one") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 422)
    assert "already has a webhook" in again.json()["detail"]


def test_a_new_secret_takes_the_place_of_the_old(asking: ApiClient, made: dict[str, Any]) -> None:
    told = asking.post(f"{HOOKS}/{made['id']}/secret").json()
    assert told["secret"] == Webhook.objects.get().secret != made["secret"]


def test_it_is_changed_stopped_and_started(asking: ApiClient, made: dict[str, Any]) -> None:
    at = f"{HOOKS}/{made['id']}"
    assert asking.patch(at, {"kinds": ["run.stopped"]}).json()["kinds"] == ["run.stopped"]
    assert asking.post(f"{at}/stop").json()["stopped_at"] is not None
    assert "This webhook is stopped. Start it first." in asking.post(f"{at}/test").json()["detail"]
    assert asking.post(f"{at}/start").json()["stopped_at"] is None


def test_its_messages_are_listed_with_their_tries_and_sent_again(asking: ApiClient, made: dict[str, Any]) -> None:
    at = f"{HOOKS}/{made['id']}"
    asking.post(f"{at}/test")
    create_due_messages()
    delivery = Delivery.objects.get()
    DeliveryAttempt.objects.create(delivery=delivery, number=1, http_status=500, answer="No.", milliseconds=12)
    Delivery.objects.update(state="failed", not_before=None, finished_at=delivery.created_at)
    (told,) = asking.get(f"{at}/deliveries").json()["items"]
    assert (told["key"], told["kind"], told["state"], told["body"]) == (
        *(str(delivery.key), "test", "failed"),
        delivery.body,
    )
    assert [(one["number"], one["http_status"], one["answer"]) for one in told["tries"]] == [(1, 500, "No.")]
    again = asking.post(f"{at}/deliveries/{told['id']}/again").json()
    assert (again["id"], again["key"], again["state"]) == (told["id"], told["key"], "waiting")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kinds": []}, "at least 1 item"),
        ({"kinds": ["everything"]}, "run.finished"),
        ({"url": "example.org"}, "is not an address"),
    ],
)
def test_what_cannot_be_told_is_refused(change: dict[str, Any], said: str, asking: ApiClient) -> None:
    answer = asking.post(HOOKS, {**NEW, **change})
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert not Webhook.objects.exists()


def test_they_belong_to_those_who_run_the_evaluation(made: dict[str, Any], evaluation: Evaluation) -> None:
    reviewing = ApiClient(token_for(make_member(evaluation, Role.REVIEWER)))
    for path in ("", f"/{made['id']}", f"/{made['id']}/deliveries"):
        assert reviewing.get(HOOKS + path).status_code == 403

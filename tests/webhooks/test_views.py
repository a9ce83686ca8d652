"""The pages of webhooks: who comes in, the secret that is shown once, and the log."""

import pytest
from django.test import Client

from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.webhooks import Delivery, OutboxEntry, Webhook
from evaluations.webhooks.messages import create_due_messages
from evaluations.webhooks.services import create_webhook
from tests.factories.evaluations import make_evaluation, make_member

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def signed_in(evaluation: Evaluation, role: Role) -> Client:
    client = Client()
    client.force_login(make_member(evaluation, role))
    return client


def pages(evaluation: Evaluation) -> str:
    return f"/e/{evaluation.slug}/settings/webhooks"


def test_the_secret_is_shown_once_after_it_was_made(evaluation: Evaluation, manager_signed_in: Client) -> None:
    sent = {"url": "https://example.org/hook", "kinds": ["run.finished"]}
    answer = manager_signed_in.post(f"{pages(evaluation)}/new", sent, follow=True)
    webhook = Webhook.objects.get()
    assert webhook.secret in answer.content.decode()
    assert webhook.secret not in manager_signed_in.get(f"{pages(evaluation)}/{webhook.pk}").content.decode()
    assert "https://example.org/hook" in manager_signed_in.get(pages(evaluation)).content.decode()


def test_a_new_secret_is_shown_once_too(evaluation: Evaluation, manager_signed_in: Client) -> None:
    webhook = create_webhook(evaluation, url="https://example.org", kinds=["run.finished"], user=None)
    answer = manager_signed_in.post(f"{pages(evaluation)}/{webhook.pk}/secret", follow=True)
    before = webhook.secret
    webhook.refresh_from_db()
    assert before != webhook.secret
    assert webhook.secret in answer.content.decode()


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"url": "https://example.org", "kinds": []}, "at least one event"),
        ({"url": "example.org", "kinds": ["run.finished"]}, "is not an address"),
        ({"url": "", "kinds": ["run.finished"]}, "This field is required"),
    ],
)
def test_what_cannot_be_told_is_refused_in_words(
    evaluation: Evaluation, manager_signed_in: Client, sent: dict[str, object], said: str
) -> None:
    answer = manager_signed_in.post(f"{pages(evaluation)}/new", sent)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert Webhook.objects.count() == 0


def test_a_test_message_and_its_repetition_stand_in_the_log(evaluation: Evaluation, manager_signed_in: Client) -> None:
    webhook = create_webhook(evaluation, url="https://example.org", kinds=["run.finished"], user=None)
    page = f"{pages(evaluation)}/{webhook.pk}"
    manager_signed_in.post(f"{page}/test")
    assert OutboxEntry.objects.count() == 1
    create_due_messages()
    delivery = Delivery.objects.get()
    shown = manager_signed_in.get(page).content.decode()
    assert str(delivery.key) in shown
    assert "waiting" in shown
    again = manager_signed_in.post(f"{page}/{delivery.pk}/retry", follow=True).content.decode()
    assert "already being sent" in again


def test_stopping_and_starting(evaluation: Evaluation, manager_signed_in: Client) -> None:
    webhook = create_webhook(evaluation, url="https://example.org", kinds=["run.finished"], user=None)
    page = f"{pages(evaluation)}/{webhook.pk}"
    assert "Webhook stopped" in manager_signed_in.post(f"{page}/stop", follow=True).content.decode()
    assert "Start it first" in manager_signed_in.post(f"{page}/test", follow=True).content.decode().replace(
        "start it", "Start it"
    )
    manager_signed_in.post(f"{page}/start")
    webhook.refresh_from_db()
    assert webhook.stopped_at is None


def test_what_it_is_told_can_be_changed(evaluation: Evaluation, manager_signed_in: Client) -> None:
    webhook = create_webhook(evaluation, url="https://example.org", kinds=["run.finished"], user=None)
    page = f"{pages(evaluation)}/{webhook.pk}"
    manager_signed_in.post(f"{page}/kinds", {"kinds": ["disagreement.opened", "run.stopped"]})
    webhook.refresh_from_db()
    assert webhook.kinds == "run.stopped,disagreement.opened"
    assert manager_signed_in.post(f"{page}/kinds", {"kinds": []}).status_code == 422


def test_only_who_runs_the_evaluation_sees_webhooks(evaluation: Evaluation) -> None:
    webhook = create_webhook(evaluation, url="https://example.org", kinds=["run.finished"], user=None)
    page = f"{pages(evaluation)}/{webhook.pk}"
    for role in (Role.REVIEWER, Role.ADJUDICATOR, Role.VIEWER):
        client = signed_in(evaluation, role)
        assert [client.get(one).status_code for one in (pages(evaluation), page)] == [403, 403]
        assert client.post(f"{page}/stop").status_code == 403
    stranger = signed_in(make_evaluation(), Role.MANAGER)
    assert [stranger.get(one).status_code for one in (pages(evaluation), page)] == [404, 404]


def test_a_webhook_of_another_evaluation_is_not_found(evaluation: Evaluation, manager_signed_in: Client) -> None:
    other = create_webhook(make_evaluation(), url="https://example.org", kinds=["run.finished"], user=None)
    assert manager_signed_in.get(f"{pages(evaluation)}/{other.pk}").status_code == 404
    assert manager_signed_in.post(f"{pages(evaluation)}/{other.pk}/secret").status_code == 404

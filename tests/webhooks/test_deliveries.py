"""Webhooks: what is noted with a change, what is told of it, and what becomes of a message."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from evaluations.audit import events
from evaluations.disagreements.selectors import get_disagreements
from evaluations.domain.errors import InputRefused
from evaluations.domain.events import DeliveryState
from evaluations.domain.judges import RunState
from evaluations.domain.reviews import SAVED_REVIEW_STATES, SelectionMethod
from evaluations.domain.roles import Role
from evaluations.jobs.claims import claim_job
from evaluations.jobs.runner import run_step
from evaluations.jobs.sweeper import put_back_lost_jobs
from evaluations.judges.runs.transitions import finish_run, stop_run
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.jobs import Job
from evaluations.models.queues import Queue
from evaluations.models.runs import Run
from evaluations.models.verdicts import Review
from evaluations.models.webhooks import Delivery, DeliveryAttempt, OutboxEntry, Webhook
from evaluations.net.webhook_client import WebhookAnswer, WebhookMessage
from evaluations.reviews.services import save_first_choices
from evaluations.webhooks import deliveries, messages
from evaluations.webhooks.deliveries import delete_old_deliveries, enqueue_due_deliveries, find_due_deliveries
from evaluations.webhooks.messages import create_due_messages
from evaluations.webhooks.services import (
    create_webhook,
    resend_delivery,
    rotate_secret,
    send_test_message,
    start_deliveries,
    stop_deliveries,
)
from tests.factories.evaluations import make_comparison, make_evaluation, make_member
from tests.factories.queues import make_queue
from tests.factories.verdicts import ALL_A, ALL_TIE, make_judge_rater
from tests.helpers.job_work import job_about, work_all, work_once

pytestmark = pytest.mark.django_db
EVERYTHING = ["run.finished", "run.stopped", "queue.reviewed", "disagreement.opened"]


@pytest.fixture
def webhook(evaluation: Evaluation) -> Webhook:
    return create_webhook(evaluation, url="https://example.org/hook", kinds=EVERYTHING, user=None)


class Receiver:
    """Stands for the other end: answers what it is told to, in turn, and then 204."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages: list[WebhookMessage] = []
        self.answers: list[WebhookAnswer] = []
        monkeypatch.setattr(deliveries, "send_webhook_message", self)

    def __call__(self, message: WebhookMessage, allowed: Any) -> WebhookAnswer:
        self.messages.append(message)
        return self.answers.pop(0) if self.answers else WebhookAnswer(204, "", "", 3)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    return Receiver(monkeypatch)


def deliver_due() -> None:
    """As a worker does with what the sweep finds due."""
    enqueue_due_deliveries()
    work_all("deliver")


def bodies() -> list[dict[str, Any]]:
    return [json.loads(one.body) for one in Delivery.objects.order_by("pk")]


def due_now() -> None:
    """As if the time until the next try had passed."""
    Delivery.objects.filter(state=DeliveryState.WAITING).update(not_before=timezone.now() - timedelta(seconds=1))
    Webhook.objects.update(paused_until=None)


def message_of(webhook: Webhook) -> Delivery:
    send_test_message(webhook, user=None)
    assert create_due_messages() == 1
    return Delivery.objects.latest("pk")


# ---- what is told ----------------------------------------------------------------------------


def running(evaluation: Evaluation) -> Run:
    judge = make_judge_rater(evaluation, "judge").judge
    assert judge is not None
    return Run.objects.create(evaluation=evaluation, judge=judge, batch="0" * 32, state=RunState.RUNNING)


def test_a_run_that_finished_is_told_with_its_counts(evaluation: Evaluation, webhook: Webhook) -> None:
    run = running(evaluation)
    assert finish_run(run)
    assert create_due_messages() == 1
    [told] = bodies()
    assert (told["type"], told["data"]["run"], told["data"]["state"]) == ("run.finished", run.pk, "done")
    assert told["data"]["evaluation"] == evaluation.slug
    assert told["data"]["calls"]["answered"] == 0
    assert told["data"]["url"].endswith(f"/e/{evaluation.slug}/judges/runs/{run.pk}")
    assert create_due_messages() == 0


def test_a_run_that_stopped_is_told_with_the_reason(evaluation: Evaluation, webhook: Webhook) -> None:
    stop_run(running(evaluation), "The key was refused.")
    create_due_messages()
    assert [(told["type"], told["data"]["stop_reason"]) for told in bodies()] == [
        ("run.stopped", "The key was refused.")
    ]


def test_only_what_was_chosen_is_told_and_only_of_its_own_evaluation(evaluation: Evaluation) -> None:
    create_webhook(evaluation, url="https://example.org/a", kinds=["run.stopped"], user=None)
    other = create_webhook(make_evaluation(), url="https://example.org/b", kinds=EVERYTHING, user=None)
    finish_run(running(evaluation))
    assert OutboxEntry.objects.count() == 0
    finish_run(running(other.evaluation))
    assert [one.webhook for one in OutboxEntry.objects.all()] == [other]


def test_a_disagreement_is_told_once_and_says_nobodys_choice(evaluation: Evaluation, webhook: Webhook) -> None:
    comparison = make_comparison(evaluation)
    ann, bob, eve = (make_member(evaluation, Role.REVIEWER) for _ in range(3))
    save_first_choices(ann, comparison, choices=ALL_TIE, version=0)
    assert create_due_messages() == 0  # nobody differs from anybody yet
    save_first_choices(bob, comparison, choices=ALL_A, version=0)
    assert create_due_messages() == 1
    save_first_choices(eve, comparison, choices=ALL_A, version=0)
    assert create_due_messages() == 0
    [told] = bodies()
    assert told["data"]["comparison"] == comparison.pk
    assert told["data"]["aspects"]["factuality"] == ["reviewers"]
    assert not {"A", "B", "tie"} & set(re.findall(r'"([^"]*)"', json.dumps(told)))
    assert OutboxEntry.objects.count() == 0


def test_two_workers_tell_the_same_disagreement_once(
    evaluation: Evaluation, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has noticed two reviews, the other these and a third, and both found nothing told yet."""
    comparison = make_comparison(evaluation)
    for choices in (ALL_TIE, ALL_A):
        save_first_choices(make_member(evaluation, Role.REVIEWER), comparison, choices=choices, version=0)
    two = list(OutboxEntry.objects.values_list("pk", flat=True))
    save_first_choices(make_member(evaluation, Role.REVIEWER), comparison, choices=ALL_A, version=0)
    looked_into = get_disagreements

    def meanwhile(*args: Any) -> Any:
        found = looked_into(*args)
        monkeypatch.setattr("evaluations.webhooks.messages.get_disagreements", looked_into)
        assert messages.create_message(webhook, (webhook.pk, "disagreement.opened", comparison.pk), two)
        return found

    monkeypatch.setattr("evaluations.webhooks.messages.get_disagreements", meanwhile)
    assert create_due_messages() == 0
    assert (Delivery.objects.count(), OutboxEntry.objects.count()) == (1, 0)


def test_a_queue_is_told_when_its_last_review_is_saved(evaluation: Evaluation, webhook: Webhook) -> None:
    ann = make_member(evaluation, Role.REVIEWER)
    comparisons = [make_comparison(evaluation) for _ in range(2)]
    made = queue_of(evaluation)
    save_first_choices(ann, comparisons[0], choices=ALL_A, version=0)
    assert create_due_messages() == 0
    save_first_choices(ann, comparisons[1], choices=ALL_A, version=0)
    assert create_due_messages() == 1
    [told] = bodies()
    assert (told["type"], told["data"]["name"]) == ("queue.reviewed", made.name)
    assert (told["data"]["comparisons"], told["data"]["reviews"]) == (2, 2)


def queue_of(evaluation: Evaluation) -> Queue:
    return make_queue(evaluation, name="First", strategy=SelectionMethod.RANDOM, size=2, user=None)


@pytest.mark.parametrize("fault", [KeyError("a fault of ours"), DatabaseError("disk full")])
def test_a_note_that_fails_does_not_fail_what_it_is_of(
    evaluation: Evaluation, webhook: Webhook, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def failing(*args: Any) -> None:
        OutboxEntry.objects.create(webhook=webhook, kind="run.finished", subject=1)
        raise fault

    monkeypatch.setattr(events, "save_outbox_entries", failing)
    ann, comparison = make_member(evaluation, Role.REVIEWER, "ann"), make_comparison(evaluation)
    review = save_first_choices(ann, comparison, choices=ALL_A, version=0)
    assert Review.objects.get(pk=review.pk).state in SAVED_REVIEW_STATES
    assert Event.objects.filter(object_type="review", object_id=review.pk).exists()
    assert not OutboxEntry.objects.exists()  # not half a note either


def test_what_cannot_be_told_holds_up_nothing_else(
    evaluation: Evaluation, webhook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    OutboxEntry.objects.create(webhook=webhook, kind="run.finished", subject=999_999)
    OutboxEntry.objects.create(webhook=webhook, kind="disagreement.opened", subject=999_999)
    send_test_message(webhook, user=None)
    assert create_due_messages() == 1
    assert [one["type"] for one in bodies()] == ["test"]
    assert "run.finished of 999999 cannot be sent" in caplog.text
    assert not OutboxEntry.objects.exists()


def test_what_the_database_would_not_tell_is_told_later(webhook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any) -> None:
        raise DatabaseError("disk full")

    send_test_message(webhook, user=None)
    with monkeypatch.context() as patched:
        patched.setattr(messages, "create_message", failing)
        assert create_due_messages() == 0
    assert create_due_messages() == 1


def test_a_change_that_is_taken_back_is_not_told(evaluation: Evaluation, webhook: Webhook) -> None:
    run = running(evaluation)
    with transaction.atomic():
        finish_run(run)
        transaction.set_rollback(True)
    assert OutboxEntry.objects.count() == 0


# ---- on their way ----------------------------------------------------------------------------


def test_a_message_that_is_taken_is_delivered_and_logged(webhook: Webhook, receiver: Receiver) -> None:
    delivery = message_of(webhook)
    deliver_due()
    assert not find_due_deliveries().exists()
    delivery.refresh_from_db()
    assert (delivery.state, delivery.not_before) == ("delivered", None)
    [one] = DeliveryAttempt.objects.all()
    assert (one.number, one.http_status, one.milliseconds) == (1, 204, 3)
    assert receiver.messages[0].secret == webhook.secret
    assert receiver.messages[0].key == str(delivery.key)


def test_what_did_not_come_through_is_tried_again_with_the_same_id(webhook: Webhook, receiver: Receiver) -> None:
    receiver.answers = [
        WebhookAnswer(None, "", "It did not answer within 10 seconds.", 10_000),
        WebhookAnswer(500, "oh", "", 4),
    ]
    delivery = message_of(webhook)
    for _ in range(3):
        deliver_due()
        due_now()
    delivery.refresh_from_db()
    webhook.refresh_from_db()
    assert delivery.state == "delivered"
    assert len({message.key for message in receiver.messages}) == 1
    attempts = delivery.attempts.order_by("number").values_list("number", "http_status", "error")
    assert list(attempts) == [(1, None, "It did not answer within 10 seconds."), (2, 500, ""), (3, 204, "")]
    assert webhook.failures == 0


def test_the_tries_lie_further_and_further_apart_and_end(webhook: Webhook, receiver: Receiver) -> None:
    receiver.answers = [WebhookAnswer(500, "", "", 1)] * 20
    delivery = message_of(webhook)
    waits = []
    while delivery.state == DeliveryState.WAITING:
        began = timezone.now()
        deliver_due()
        delivery.refresh_from_db()
        if delivery.not_before:
            waits.append(round((delivery.not_before - began).total_seconds()))
        due_now()
    assert waits == [30, 120, 600, 3_600, 21_600, 57_600, 86_400]
    assert delivery.state == "failed"
    assert len(receiver.messages) == 8


def test_a_receiver_that_fails_is_left_alone_and_does_not_hold_up_another(
    evaluation: Evaluation, webhook: Webhook, receiver: Receiver
) -> None:
    other = create_webhook(evaluation, url="https://example.org/b", kinds=EVERYTHING, user=None)
    receiver.answers = [WebhookAnswer(500, "", "", 1)]
    for one in (webhook, webhook, webhook, other):
        message_of(one)
    deliver_due()
    assert [message.url for message in receiver.messages] == [webhook.url, other.url]
    webhook.refresh_from_db()
    assert webhook.paused_until is not None


def test_a_try_that_was_cut_off_is_made_again_after_a_minute(webhook: Webhook, receiver: Receiver) -> None:
    delivery = message_of(webhook)
    enqueue_due_deliveries()
    claimed = claim_job(job_about("deliver", webhook.pk).pk)
    assert claimed is not None
    deliver_due()
    assert receiver.messages == []  # the process that has it was killed
    Job.objects.update(lease_until="2020-01-01T00:00Z")
    put_back_lost_jobs()
    deliver_due()
    assert [message.key for message in receiver.messages] == [str(delivery.key)]


def test_one_process_sends_to_one_webhook_at_a_time(
    evaluation: Evaluation, webhook: Webhook, receiver: Receiver
) -> None:
    """Receivers that hang must not take all threads of a worker."""
    other = create_webhook(evaluation, url="https://example.org/b", kinds=EVERYTHING, user=None)
    for one in (webhook, other):
        message_of(one)
    enqueue_due_deliveries()
    first = claim_job(job_about("deliver", webhook.pk).pk)
    assert first is not None
    assert not work_once("deliver", other.pk)
    assert receiver.messages == []
    assert not run_step(first)
    assert not work_once("deliver", other.pk)
    assert [message.url for message in receiver.messages] == [webhook.url, other.url]


def test_a_receiver_that_is_gone_is_told_nothing_more(webhook: Webhook, receiver: Receiver) -> None:
    receiver.answers = [WebhookAnswer(410, "", "", 1)]
    message_of(webhook)
    deliver_due()
    webhook.refresh_from_db()
    assert webhook.stopped_at is not None
    assert webhook.stop_reason == "The receiver answered 410 Gone: it wants no more messages."
    finish_run(running(webhook.evaluation))
    assert OutboxEntry.objects.count() == 0


def test_stopping_gives_up_what_waits_and_sending_again_takes_it_up(webhook: Webhook, receiver: Receiver) -> None:
    delivery = message_of(webhook)
    stop_deliveries(webhook, user=None)
    deliver_due()
    assert not find_due_deliveries().exists()
    assert receiver.messages == []
    delivery.refresh_from_db()
    with pytest.raises(InputRefused, match="This webhook is stopped"):
        resend_delivery(delivery, user=None)
    start_deliveries(webhook, user=None)
    delivery.refresh_from_db()
    resend_delivery(Delivery.objects.get(pk=delivery.pk), user=None)
    deliver_due()
    delivery.refresh_from_db()
    assert delivery.state == "delivered"


def test_the_log_is_kept_for_a_month(webhook: Webhook, receiver: Receiver) -> None:
    old, new = message_of(webhook), message_of(webhook)
    deliver_due()
    Delivery.objects.filter(pk=old.pk).update(finished_at=timezone.now() - timedelta(days=31))
    delete_old_deliveries()
    assert [one.pk for one in Delivery.objects.all()] == [new.pk]
    assert DeliveryAttempt.objects.count() == 1


# ---- who is told -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kinds", "said"),
    [([], "at least one event"), (["run.eaten"], "“run.eaten” is not an event"), (["test"], "“test” is")],
)
def test_what_nobody_can_be_told_of_is_refused(evaluation: Evaluation, kinds: list[str], said: str) -> None:
    with pytest.raises(InputRefused, match=said):
        create_webhook(evaluation, url="https://example.org", kinds=kinds, user=None)
    assert Webhook.objects.count() == 0


def test_one_address_is_told_once(evaluation: Evaluation, webhook: Webhook) -> None:
    with pytest.raises(InputRefused, match="already has a webhook"):
        create_webhook(evaluation, url=webhook.url, kinds=["run.stopped"], user=None)


def test_a_new_secret_signs_from_then_on(webhook: Webhook, receiver: Receiver) -> None:
    before = webhook.secret
    rotate_secret(webhook, user=None)
    message_of(webhook)
    deliver_due()
    assert receiver.messages[0].secret == webhook.secret != before

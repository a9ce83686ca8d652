"""What an upgrade to the event `queue.reviewed` keeps of webhooks that subscribed to `round.reviewed`."""

import json
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from evaluations.models.webhooks import Delivery, OutboxEntry, Webhook

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

BEFORE = ("evaluations", "0015_name_reveal")
BODY = {"type": "round.reviewed", "timestamp": "", "data": {"evaluation": "study", "round": 3, "name": "round 1"}}


def make_earlier_rows(apps: Any) -> None:
    evaluation = apps.get_model("evaluations", "Evaluation").objects.create(slug="study", name="Study")
    webhook = apps.get_model("evaluations", "Webhook").objects.create(
        evaluation=evaluation, url="https://example.org", kinds="run.finished,round.reviewed", secret="s"
    )
    apps.get_model("evaluations", "OutboxEntry").objects.create(webhook=webhook, kind="round.reviewed", subject=3)
    deliveries = apps.get_model("evaluations", "Delivery").objects
    message = {"webhook": webhook, "kind": "round.reviewed", "subject": 3, "body": json.dumps(BODY, sort_keys=True)}
    deliveries.create(**message, not_before=timezone.now())
    deliveries.create(**message, state="delivered", finished_at=timezone.now())


def test_webhooks_stay_subscribed_and_waiting_messages_have_the_new_name() -> None:
    executor = MigrationExecutor(connection)
    try:
        executor.migrate([BEFORE])
        make_earlier_rows(executor.loader.project_state([BEFORE]).apps)
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes("evaluations"))
    assert Webhook.objects.get().subscribed_kinds == ("run.finished", "queue.reviewed")
    assert OutboxEntry.objects.get().kind == "queue.reviewed"
    waiting, delivered = Delivery.objects.order_by("pk")
    assert (waiting.kind, delivered.kind) == ("queue.reviewed", "queue.reviewed")
    sent = {"evaluation": "study", "queue": 3, "name": "round 1"}
    assert json.loads(waiting.body) == {"type": "queue.reviewed", "timestamp": "", "data": sent}
    assert json.loads(delivered.body) == BODY  # as it was sent

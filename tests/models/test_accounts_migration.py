"""What an upgrade to site policy and to sessions of our own keeps."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client
from django.utils import timezone

from evaluations.models.sign_ins import Session
from evaluations.models.users import User

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

BEFORE = ("evaluations", "0005_endpoint_grants")
RIGHTS = ("can_create_evaluations", "can_create_accounts", "can_make_links")


def make_earlier_rows(apps: Any) -> None:
    users = apps.get_model("evaluations", "User").objects
    olive, rita = users.create(username="olive", password="!"), users.create(username="rita", password="!")
    evaluation = apps.get_model("evaluations", "Evaluation").objects.create(slug="study", name="Study")
    memberships = apps.get_model("evaluations", "Membership").objects
    memberships.create(evaluation=evaluation, user=olive, role="owner")
    memberships.create(evaluation=evaluation, user=rita, role="reviewer")
    grace = users.create(username="grace", password="!", created_for=evaluation)
    apps.get_model("evaluations", "Event").objects.create(
        verb="made account", object_type="user", object_id=grace.pk, evaluation=evaluation, user=olive
    )
    data = {
        "_auth_user_id": str(rita.pk),
        "_auth_user_backend": "django.contrib.auth.backends.ModelBackend",
        "_auth_user_hash": User(pk=rita.pk, password="!").get_session_auth_hash(),
    }
    sessions = apps.get_model("sessions", "Session").objects
    for key, end in (("kept", timezone.now() + timedelta(days=1)), ("old", timezone.now() - timedelta(days=1))):
        sessions.create(session_key=key * 8, session_data=SessionStore().encode(data), expire_date=end)


def test_owners_keep_their_rights_and_nobody_is_signed_out(client: Client, settings: Any) -> None:
    executor = MigrationExecutor(connection)
    try:
        executor.migrate([BEFORE])
        make_earlier_rows(executor.loader.project_state([BEFORE, ("sessions", "0001_initial")]).apps)
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes("evaluations"))
    olive, rita, grace = (User.objects.get(username=name) for name in ("olive", "rita", "grace"))
    assert [[getattr(user, right) for right in RIGHTS] for user in (olive, rita)] == [[True] * 3, [False] * 3]
    assert grace.created_by == olive
    assert list(Session.objects.values_list("session_key", "user")) == [("kept" * 8, rita.pk)]
    client.cookies[settings.SESSION_COOKIE_NAME] = "kept" * 8
    assert "rita" in client.get("/account").content.decode()

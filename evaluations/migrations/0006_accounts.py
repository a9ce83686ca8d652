import secrets

import django.db.models.deletion
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.utils import timezone


def keep_rights(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    """Whoever owns an evaluation could create evaluations, accounts and links until now, and still may."""
    owners = apps.get_model("evaluations", "Membership").objects.filter(role="owner").values("user")
    apps.get_model("evaluations", "User").objects.filter(pk__in=owners).update(
        can_create_evaluations=True, can_create_accounts=True, can_make_links=True
    )


def name_creators(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    """Take who created an account from the activity log.

    A restored evaluation has events of another site, but no account was created for it before it was restored.
    """
    users, events = (apps.get_model("evaluations", name).objects for name in ("User", "Event"))
    for user in users.filter(created_for__isnull=False).iterator():
        made = events.filter(
            verb="made account", object_type="user", object_id=user.pk, evaluation=user.created_for, user__isnull=False
        ).first()
        if made is not None:
            users.filter(pk=user.pk).update(created_by=made.user_id)


def move_sessions(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    """Nobody is signed out by the upgrade: the store decodes what Django's store encoded."""
    users, sessions = (apps.get_model("evaluations", name).objects for name in ("User", "Session"))
    old_sessions = apps.get_model("sessions", "Session").objects
    known = set(users.values_list("pk", flat=True))
    for old in old_sessions.filter(expire_date__gt=timezone.now()).iterator():
        user_id = int(SessionStore().decode(old.session_data).get("_auth_user_id", 0))
        if user_id in known:
            sessions.create(
                session_key=old.session_key,
                session_data=old.session_data,
                expire_date=old.expire_date,
                user_id=user_id,
                public_id=secrets.randbelow(2**53 - 1) + 1,
            )
    old_sessions.all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0005_endpoint_grants"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Throttle",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("key", models.CharField(max_length=64, unique=True)),
                ("tries", models.PositiveIntegerField(default=0)),
                ("blocked_until", models.DateTimeField(null=True)),
                ("ends_at", models.DateTimeField(db_index=True)),
                ("is_recorded", models.BooleanField(default=False)),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.AddField(
            model_name="apitoken",
            name="last_address",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.AddField(
            model_name="user",
            name="can_create_accounts",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="user",
            name="can_create_evaluations",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="user",
            name="can_make_links",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="user",
            name="created_by",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="created_accounts",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                (
                    "session_key",
                    models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name="session key"),
                ),
                ("session_data", models.TextField(verbose_name="session data")),
                ("expire_date", models.DateTimeField(db_index=True, verbose_name="expire date")),
                ("public_id", models.BigIntegerField(unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("last_seen_at", models.DateTimeField(auto_now_add=True)),
                ("address", models.CharField(blank=True, max_length=64)),
                ("user_agent", models.CharField(blank=True, max_length=200)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sessions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="SitePolicy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("everyone_creates_evaluations", models.BooleanField(default=False)),
                ("everyone_creates_accounts", models.BooleanField(default=False)),
                ("everyone_makes_links", models.BooleanField(default=False)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("pk", 1)), name="site_policy_once")],
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("username", models.CharField(max_length=150)),
                ("name_key", models.CharField(max_length=200)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "owner"),
                            ("manager", "manager"),
                            ("reviewer", "reviewer"),
                            ("adjudicator", "adjudicator"),
                            ("viewer", "viewer"),
                        ],
                        max_length=12,
                    ),
                ),
                ("declined_at", models.DateTimeField(null=True)),
                (
                    "evaluation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="invitations",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "invited_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sent_invitations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["name_key"], name="invitation_of_name")],
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "name_key"), name="invitation_once"),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["owner", "manager", "reviewer", "adjudicator", "viewer"])),
                        name="invitation_role",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SecurityEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("signed_in", "signed in"),
                            ("signed_in_by_link", "signed in by link"),
                            ("sign_in_failed", "sign in failed"),
                            ("password_refused", "password refused"),
                            ("throttled", "throttled"),
                            ("password_set", "password set"),
                            ("sessions_ended", "sessions ended"),
                            ("tokens_revoked", "tokens revoked"),
                            ("token_made", "token made"),
                            ("token_new_address", "token new address"),
                            ("link_made", "link made"),
                            ("account_disabled", "account disabled"),
                            ("account_enabled", "account enabled"),
                            ("policy_changed", "policy changed"),
                            ("right_refused", "right refused"),
                        ],
                        max_length=32,
                    ),
                ),
                ("address", models.CharField(blank=True, max_length=64)),
                ("user_agent", models.CharField(blank=True, max_length=200)),
                ("detail", models.CharField(blank=True, max_length=300)),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "token",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evaluations.apitoken",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="security_events",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "-id"], name="security_event_of_user"),
                    models.Index(fields=["token", "address"], name="security_event_of_token"),
                    models.Index(fields=["created_at"], name="security_event_age"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                [
                                    "signed_in",
                                    "signed_in_by_link",
                                    "sign_in_failed",
                                    "password_refused",
                                    "throttled",
                                    "password_set",
                                    "sessions_ended",
                                    "tokens_revoked",
                                    "token_made",
                                    "token_new_address",
                                    "link_made",
                                    "account_disabled",
                                    "account_enabled",
                                    "policy_changed",
                                    "right_refused",
                                ],
                            )
                        ),
                        name="security_event_kind",
                    )
                ],
            },
        ),
        migrations.RunPython(keep_rights, migrations.RunPython.noop),
        migrations.RunPython(name_creators, migrations.RunPython.noop),
        migrations.RunPython(move_sessions, migrations.RunPython.noop),
    ]

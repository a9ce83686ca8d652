"""Stored results of overviews, dismissed checklists, and the security event of a deleted evaluation."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

KINDS = [
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
    "evaluation_deleted",
]


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0010_stored_keys"),
    ]

    operations = [
        migrations.AddField(
            model_name="membership",
            name="checklist_steps",
            field=models.CharField(blank=True, db_default="", default="", max_length=80),
        ),
        migrations.RemoveConstraint(model_name="securityevent", name="security_event_kind"),
        migrations.AlterField(
            model_name="securityevent",
            name="kind",
            field=models.CharField(choices=[(kind, kind.replace("_", " ")) for kind in KINDS], max_length=32),
        ),
        migrations.AddConstraint(
            model_name="securityevent",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", KINDS)),
                name="security_event_kind",
            ),
        ),
        migrations.CreateModel(
            name="OverviewResults",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("state", models.CharField(blank=True, max_length=64)),
                ("results", models.JSONField(null=True)),
                ("computed_at", models.DateTimeField(null=True)),
                (
                    "evaluation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="overview_results",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "user"), name="overview_results_of_user_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("user__isnull", True)),
                        fields=("evaluation",),
                        name="overview_results_of_all_once",
                    ),
                ],
            },
        ),
    ]

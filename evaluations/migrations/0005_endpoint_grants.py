"""Endpoints are granted to evaluations; budgets and totals of each grant and day."""

import datetime
from collections import Counter

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Count, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

BATCH_ROWS = 1_000


def open_accounts(apps, schema_editor):
    """Grant each endpoint to the evaluations whose judges use it, and sum up what they spent there."""
    judges = apps.get_model("evaluations", "Judge").objects.filter(endpoint__isnull=False)
    used = judges.order_by("endpoint", "evaluation")
    runs = apps.get_model("evaluations", "Run").objects.filter(judge__endpoint__isnull=False).order_by()
    charged = runs.values_list("judge__endpoint", "evaluation").annotate(Sum("spent"), Sum("reserved"))
    accounts = {(endpoint, evaluation): amounts for endpoint, evaluation, *amounts in charged}
    EndpointGrant = apps.get_model("evaluations", "EndpointGrant")
    grants = []
    for endpoint, evaluation in used.values_list("endpoint", "evaluation").distinct():
        spent, reserved = accounts.get((endpoint, evaluation), (0, 0))
        grants.append(EndpointGrant(endpoint_id=endpoint, evaluation_id=evaluation, spent=spent, reserved=reserved))
    EndpointGrant.objects.bulk_create(grants, batch_size=BATCH_ROWS)
    today = timezone.now().astimezone(datetime.UTC).date()
    spent_today, reserved = sum_up_attempts(apps, today), Counter()
    for grant in grants:
        reserved[grant.endpoint_id] += grant.reserved
    EndpointAccount = apps.get_model("evaluations", "EndpointAccount")
    EndpointAccount.objects.bulk_create(
        EndpointAccount(endpoint_id=endpoint, day=today, spent=spent_today[endpoint], reserved=reserved[endpoint])
        for endpoint in sorted(reserved)
    )


def sum_up_attempts(apps, today):
    """Store the totals of each endpoint, evaluation and day; returns what each endpoint spent today."""
    names = {
        model: dict(apps.get_model("evaluations", model).objects.values_list("pk", "name"))
        for model in ("Endpoint", "Evaluation")
    }
    attempts = apps.get_model("evaluations", "Attempt").objects.filter(run__judge__endpoint__isnull=False)
    days = attempts.order_by().annotate(day=TruncDate("created_at", tzinfo=datetime.UTC))
    groups = days.values_list("run__judge__endpoint", "run__evaluation", "day")
    summed = ("tokens_in", "tokens_out", "cost", "max_cost")
    EndpointSpending = apps.get_model("evaluations", "EndpointSpending")
    rows, spent_today = [], Counter()
    for endpoint, evaluation, day, requests, *amounts in groups.annotate(Count("pk"), *map(Sum, summed)):
        totals = {name: amount or 0 for name, amount in zip(summed, amounts, strict=True)}
        rows.append(
            EndpointSpending(
                endpoint_id=endpoint,
                evaluation_id=evaluation,
                endpoint_name=names["Endpoint"][endpoint],
                evaluation_name=names["Evaluation"][evaluation],
                day=day,
                requests=requests,
                **totals,
            )
        )
        if day == today:
            spent_today[endpoint] += totals["cost"] + totals["max_cost"]
    EndpointSpending.objects.bulk_create(rows, batch_size=BATCH_ROWS)
    return spent_today


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0004_counters"),
    ]

    operations = [
        migrations.AddField(
            model_name="endpoint",
            name="daily_budget",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="is_offered",
            field=models.BooleanField(default=False),
        ),
        migrations.CreateModel(
            name="EndpointAccount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("day", models.DateField(default=datetime.date(1970, 1, 1))),
                ("spent", models.BigIntegerField(default=0)),
                ("reserved", models.BigIntegerField(default=0)),
                (
                    "endpoint",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="account", to="evaluations.endpoint"
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="EndpointGrant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("is_active", models.BooleanField(default=True)),
                ("budget", models.BigIntegerField(blank=True, null=True)),
                ("spent", models.BigIntegerField(default=0)),
                ("reserved", models.BigIntegerField(default=0)),
                (
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="grants", to="evaluations.endpoint"
                    ),
                ),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="endpoint_grants",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "granted_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("endpoint", "evaluation"), name="endpoint_grant_once")],
            },
        ),
        migrations.CreateModel(
            name="EndpointSpending",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("endpoint_name", models.CharField(max_length=120)),
                ("evaluation_name", models.CharField(max_length=200)),
                ("day", models.DateField()),
                ("requests", models.BigIntegerField(default=0)),
                ("tokens_in", models.BigIntegerField(default=0)),
                ("tokens_out", models.BigIntegerField(default=0)),
                ("cost", models.BigIntegerField(default=0)),
                ("max_cost", models.BigIntegerField(default=0)),
                (
                    "endpoint",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="spending",
                        to="evaluations.endpoint",
                    ),
                ),
                (
                    "evaluation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="endpoint_spending",
                        to="evaluations.evaluation",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "endpoint spending",
                "constraints": [
                    models.UniqueConstraint(fields=("endpoint", "evaluation", "day"), name="endpoint_spending_of_day")
                ],
            },
        ),
        migrations.RunPython(open_accounts, migrations.RunPython.noop),
    ]

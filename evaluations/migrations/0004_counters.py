"""Counters of judged and reviewed comparisons, which the first sweep fills."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0003_background"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProgressCounters",
            fields=[
                (
                    "evaluation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="progress_counters",
                        serialize=False,
                        to="evaluations.evaluation",
                    ),
                ),
                ("queries", models.IntegerField(default=0)),
                ("comparisons", models.IntegerField(default=0)),
                ("judged", models.IntegerField(default=0)),
                ("reviewed", models.IntegerField(default=0)),
                ("reviews", models.IntegerField(default=0)),
                ("basis", models.CharField(blank=True, max_length=200)),
                ("next_basis", models.CharField(blank=True, max_length=200)),
                ("version", models.PositiveBigIntegerField(default=0)),
            ],
        ),
        migrations.AddField(
            model_name="rater",
            name="verdict_changes",
            field=models.PositiveBigIntegerField(db_default=0, default=0),
        ),
        migrations.CreateModel(
            name="ComparisonProgress",
            fields=[
                (
                    "comparison",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="progress",
                        serialize=False,
                        to="evaluations.comparison",
                    ),
                ),
                ("is_judged", models.BooleanField()),
                ("is_reviewed", models.BooleanField()),
                ("reviews", models.PositiveIntegerField()),
                (
                    "evaluation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evaluations.evaluation",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["evaluation", "comparison"], name="progress_in_order")],
            },
        ),
        migrations.CreateModel(
            name="VerdictChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "comparison",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="evaluations.comparison",
                    ),
                ),
                (
                    "evaluation",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="uncounted_changes",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "rater",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="uncounted_changes",
                        to="evaluations.rater",
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="evaluations.response",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["evaluation", "id"], name="verdict_change_in_order")],
            },
        ),
    ]

"""The last result of each question to a report."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0007_background_status"),
    ]

    operations = [
        migrations.CreateModel(
            name="ServedReport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("key", models.CharField(max_length=64)),
                (
                    "part",
                    models.CharField(
                        choices=[
                            ("agreement", "agreement"),
                            ("bias", "bias"),
                            ("wins", "wins"),
                            ("people", "people"),
                            ("judges", "judges"),
                            ("scores", "scores"),
                        ],
                        max_length=12,
                    ),
                ),
                ("query", models.TextField(blank=True)),
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
                ("state", models.CharField(blank=True, max_length=64)),
                ("body", models.BinaryField()),
                ("made_at", models.DateTimeField()),
                ("asked_at", models.DateTimeField()),
                (
                    "evaluation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="served_reports",
                        to="evaluations.evaluation",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "key"), name="served_report_once"),
                    models.CheckConstraint(
                        condition=models.Q(("part__in", ["agreement", "bias", "wins", "people", "judges", "scores"])),
                        name="served_report_part",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["owner", "manager", "reviewer", "adjudicator", "viewer"])),
                        name="served_report_role",
                    ),
                ],
            },
        ),
    ]

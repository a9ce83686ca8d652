from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0011_overview_results"),
    ]

    operations = [
        migrations.AddField(
            model_name="adjudication",
            name="batch",
            field=models.UUIDField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="adjudication",
            name="category",
            field=models.CharField(
                blank=True,
                choices=[
                    ("missed_error", "missed error"),
                    ("length_or_format", "length or format"),
                    ("position", "position"),
                    ("ignored_instruction", "ignored instruction"),
                    ("rubric_unclear", "rubric unclear"),
                    ("query_ambiguous", "query ambiguous"),
                    ("both_acceptable", "both acceptable"),
                    ("my_mistake", "my mistake"),
                    ("other", "other"),
                ],
                max_length=40,
            ),
        ),
        migrations.AddField(
            model_name="adjudication",
            name="in_bulk",
            field=models.BooleanField(default=False),
        ),
        migrations.AlterField(
            model_name="adjudication",
            name="reason",
            field=models.TextField(blank=True),
        ),
        migrations.AddIndex(
            model_name="adjudication",
            index=models.Index(
                condition=models.Q(("batch__isnull", False)), fields=["batch"], name="adjudication_batch"
            ),
        ),
        migrations.AddConstraint(
            model_name="adjudication",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "category__in",
                        [
                            "",
                            "missed_error",
                            "length_or_format",
                            "position",
                            "ignored_instruction",
                            "rubric_unclear",
                            "query_ambiguous",
                            "both_acceptable",
                            "my_mistake",
                            "other",
                        ],
                    )
                ),
                name="adjudication_category",
            ),
        ),
    ]

"""Scores that came in files may say that the lower one is better: ranks, counts of errors."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0009_places_of_aspects")]

    operations = [
        migrations.AddField("rubricaspect", "lower_is_better", models.BooleanField(default=False)),
    ]

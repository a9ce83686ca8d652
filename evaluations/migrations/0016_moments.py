from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0015_when_drawn"),
    ]

    operations = [
        migrations.AddField(
            model_name="ballot",
            name="moment",
            field=models.BigIntegerField(default=0),
        ),
        migrations.RemoveConstraint(
            model_name="ballot",
            name="ballot_of_import",
        ),
        migrations.RemoveField(
            model_name="ballot",
            name="day",
        ),
        migrations.AddConstraint(
            model_name="ballot",
            constraint=models.UniqueConstraint(
                condition=models.Q(("source_import__isnull", False)),
                fields=("rater", "comparison", "sample", "shown", "source_import", "block", "moment"),
                name="ballot_of_import",
            ),
        ),
    ]

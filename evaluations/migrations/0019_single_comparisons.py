from django.db import migrations, models
from django.db.models import F, Q

ORIGINS = ["imported", "paired", "by_hand", "single"]
SINGLE = Q(("origin", "single"))
OF_ONE = Q(("response_a", F("response_b")))


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0018_decision_bars"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="comparison", name="comparison_of_two"),
        migrations.RemoveConstraint(model_name="comparison", name="comparison_origin"),
        migrations.AlterField(
            model_name="comparison",
            name="origin",
            field=models.CharField(choices=[(word, word.replace("_", " ")) for word in ORIGINS], max_length=12),
        ),
        migrations.AddIndex(
            model_name="comparison",
            index=models.Index(fields=["evaluation", "origin", "id"], condition=SINGLE, name="comparison_single"),
        ),
        migrations.AddConstraint(
            model_name="comparison",
            constraint=models.CheckConstraint(
                condition=(SINGLE & OF_ONE) | ~(SINGLE | OF_ONE), name="comparison_single_or_of_two"
            ),
        ),
        migrations.AddConstraint(
            model_name="comparison",
            constraint=models.CheckConstraint(condition=Q(("origin__in", ORIGINS)), name="comparison_origin"),
        ),
    ]

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

BARS = {
    "stand_in": 0.05,
    "aspect": 0.1,
    "unreliable": 0.1,
    "failures": 0.05,
    "inconsistency": 0.4,
    "bias": 0.1,
    "half_width": 0.05,
}
PARTS = ["decisions", "agreement", "bias", "wins", "people", "judges", "scores", "methodology"]
SCREENING = ["keep", "exclude"]


def add_bar(name, default):
    column = models.FloatField(default=default, db_default=default)
    return migrations.AddField(model_name="evaluation", name=f"bar_{name}", field=column)


def constrain_bar(name):
    highest = (f"bar_{name}__lte", 0.5) if name == "half_width" else (f"bar_{name}__lt", 1)
    condition = Q((f"bar_{name}__gt", 0), highest)
    constraint = models.CheckConstraint(condition=condition, name=f"evaluation_bar_{name}")
    return migrations.AddConstraint(model_name="evaluation", constraint=constraint)


def constrain_rater(name, condition):
    constraint = models.CheckConstraint(condition=condition, name=f"rater_screening_{name}")
    return migrations.AddConstraint(model_name="rater", constraint=constraint)


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0017_run_archived"),
    ]

    operations = [
        *(add_bar(name, default) for name, default in BARS.items()),
        migrations.AddField(
            model_name="evaluation", name="bars_changed_at", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="evaluation", name="results_seen_at", field=models.DateTimeField(blank=True, null=True)
        ),
        *(constrain_bar(name) for name in BARS),
        migrations.AddField(
            model_name="rater",
            name="screening_choice",
            field=models.CharField(
                blank=True, choices=[(word, word) for word in SCREENING], db_default="", default="", max_length=8
            ),
        ),
        migrations.AddField(
            model_name="rater", name="screening_chosen_at", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="rater",
            name="screening_chosen_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        constrain_rater("choice", Q(("screening_choice__in", ["", *SCREENING]))),
        constrain_rater("human", Q(("kind", "human"), ("screening_choice", ""), _connector="OR")),
        constrain_rater(
            "dated",
            Q(
                Q(
                    ("screening_choice", ""),
                    ("screening_chosen_at__isnull", True),
                    ("screening_chosen_by__isnull", True),
                ),
                Q(Q(("screening_choice", ""), _negated=True), ("screening_chosen_at__isnull", False)),
                _connector="OR",
            ),
        ),
        migrations.RemoveConstraint(model_name="servedreport", name="served_report_part"),
        migrations.AlterField(
            model_name="servedreport",
            name="part",
            field=models.CharField(choices=[(part, part) for part in PARTS], max_length=12),
        ),
        migrations.AddConstraint(
            model_name="servedreport",
            constraint=models.CheckConstraint(condition=Q(("part__in", PARTS)), name="served_report_part"),
        ),
    ]

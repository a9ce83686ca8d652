"""The words of earlier versions, before the database holds the columns to closed lists.

Reviews were handed out in the random order; what was opened by hand was not told from them.
"""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def say_anew(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    evaluations = apps.get_model("evaluations", "Evaluation")._default_manager
    evaluations.filter(label_policy="majority").update(label_policy="people")
    reviews = apps.get_model("evaluations", "Review")._default_manager
    reviews.filter(picked_by__in=["queue", "example"]).update(picked_by="random")


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0002_judge_engine")]
    operations = [migrations.RunPython(say_anew, migrations.RunPython.noop)]

"""Documents of PostgreSQL are written again: it keeps less of what is far back, and response B stood behind A."""

from django.db import migrations
from django.db.models import Max


def read_again(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    indexing = apps.get_model("evaluations", "Indexing")
    indexing.objects.filter(source_import=None).delete()
    indexing.objects.update(reached=0, done=False)
    comparison = apps.get_model("evaluations", "Comparison")
    by_hand = comparison.objects.filter(source_import=None).values("evaluation").annotate(last=Max("pk"))
    for one in by_hand.order_by("evaluation"):
        indexing.objects.create(evaluation_id=one["evaluation"], up_to=one["last"])


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0032_job_starts")]

    operations = [migrations.RunPython(read_again, migrations.RunPython.noop)]

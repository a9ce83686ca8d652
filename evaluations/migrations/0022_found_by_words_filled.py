"""Candidates and category beside the comparisons that are here, whose texts the worker reads for searching."""

from django.db import migrations
from django.db.models import Max


def fill(apps, schema_editor):
    comparison = apps.get_model("evaluations", "Comparison")
    if not comparison.objects.exists():
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("""
            UPDATE evaluations_comparison SET
                candidate_a = (SELECT candidate_id FROM evaluations_response r WHERE r.id = response_a_id),
                candidate_b = (SELECT candidate_id FROM evaluations_response r WHERE r.id = response_b_id),
                category = (SELECT category FROM evaluations_query q WHERE q.id = query_id)
        """)
    by_hand = comparison.objects.filter(source_import=None).values("evaluation").annotate(last=Max("pk"))
    indexing = apps.get_model("evaluations", "Indexing")
    for one in by_hand.order_by("evaluation"):
        indexing.objects.create(evaluation_id=one["evaluation"], up_to=one["last"])


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0021_found_by_words")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]

"""What was stored before: the places of aspects, the numbers of clusters, and the ballots of all verdicts.

What is known of the comparisons is kept from now on as for those that come in.
"""

import hashlib
from itertools import groupby

from django.db import migrations
from django.db.models.functions import Now

AT_ONCE = 2_000
# The rules as they were when these columns were made, whatever they are by now.
BITS = 3
PLACES_A_BLOCK = 20
CHOICES = ("A", "B", "tie", "both_bad")
ORDERS = ("as_stored", "swapped", "unknown", "folded")


def fill(apps, schema_editor):
    number_aspects(apps.get_model("evaluations", "Aspect"))
    number_clusters(apps.get_model("evaluations", "Query"))
    apps.get_model("evaluations", "Evaluation").objects.update(comparisons_changed_at=Now())
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(statement(schema_editor.connection.vendor))


def number_aspects(model):
    for _, aspects in groupby(model.objects.order_by("evaluation_id", "pk"), lambda one: one.evaluation_id):
        for place, aspect in enumerate(aspects):
            model.objects.filter(pk=aspect.pk).update(place=place)


def cluster_number(cluster):
    return int.from_bytes(hashlib.sha256(cluster.encode()).digest()[:8], "big") >> 1


def number_clusters(model):
    some = []
    for query in model.objects.only("pk", "cluster", "cluster_number").iterator(chunk_size=AT_ONCE):
        query.cluster_number = cluster_number(query.cluster)
        some.append(query)
        if len(some) == AT_ONCE:
            model.objects.bulk_update(some, ["cluster_number"])
            some = []
    model.objects.bulk_update(some, ["cluster_number"])


def statement(vendor):
    """One row for each call, each review, and each sample of an import."""
    code = " ".join(f"WHEN '{choice}' THEN {place + 1}" for place, choice in enumerate(CHOICES))
    order = " ".join(f"WHEN '{shown}' THEN {place}" for place, shown in enumerate(ORDERS))
    shift = f"({BITS} * (a.place % {PLACES_A_BLOCK}))"
    moved = f"(CAST(CASE v.choice {code} END AS bigint) << {shift})"
    given = "COALESCE(min(r.first_saved_at), min(v.created_at))"
    day = (
        f"CAST(floor(extract(epoch FROM {given}) / 86400) AS integer)"
        if vendor == "postgresql"
        else f"CAST(julianday({given}) - 2440587.5 AS integer)"
    )
    return f"""
        INSERT INTO evaluations_ballot (
            created_at, rater_id, comparison_id, shown, sample, call_id, review_id, source_import_id,
            block, first, final, inconsistent, day
        )
        SELECT
            min(v.created_at), v.rater_id, v.comparison_id, CASE v.shown {order} END, v.sample,
            v.call_id, v.review_id, v.source_import_id, a.place / {PLACES_A_BLOCK},
            CAST(sum(CASE WHEN v.stage = 'final' THEN 0 ELSE {moved} END) AS bigint),
            CAST(sum(CASE WHEN v.stage = 'final' THEN {moved} ELSE 0 END) AS bigint),
            CAST(sum(CASE WHEN v.inconsistent THEN (CAST(1 AS bigint) << (a.place % {PLACES_A_BLOCK})) ELSE 0 END)
                AS bigint),
            {day}
        FROM evaluations_verdict v
        JOIN evaluations_aspect a ON a.id = v.aspect_id
        LEFT JOIN evaluations_review r ON r.id = v.review_id
        GROUP BY v.rater_id, v.comparison_id, v.shown, v.sample, v.call_id, v.review_id, v.source_import_id,
            a.place / {PLACES_A_BLOCK}
    """


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0007_ballots")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]

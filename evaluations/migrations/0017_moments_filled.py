"""When choices were given, to the millisecond; those of an import that were given at different moments are parted."""

from django.db import migrations

# The rules as they were when this column was made, whatever they are by now.
BITS = 3
PLACES_A_BLOCK = 20
CHOICES = ("A", "B", "tie", "both_bad")
ORDERS = ("as_stored", "swapped", "unknown", "folded")


def fill(apps, schema_editor):
    if not apps.get_model("evaluations", "Ballot").objects.exists():
        return
    vendor = schema_editor.connection.vendor
    with schema_editor.connection.cursor() as cursor:
        of_call = milliseconds(vendor, "created_at")
        cursor.execute(f"UPDATE evaluations_ballot SET moment = {of_call} WHERE call_id IS NOT NULL")
        cursor.execute(f"""
            UPDATE evaluations_ballot SET moment = (
                SELECT COALESCE({milliseconds(vendor, "r.first_saved_at")}, 0)
                FROM evaluations_review r WHERE r.id = evaluations_ballot.review_id
            ) WHERE review_id IS NOT NULL
        """)
        cursor.execute("DELETE FROM evaluations_ballot WHERE source_import_id IS NOT NULL")
        cursor.execute(imported(vendor))


def milliseconds(vendor, column):
    """Since 1970-01-01 UTC. SQLite has moments as text, with six decimals of the second or none.

    Its functions round to a millisecond: of 59.9996 seconds they make the next minute, so they read whole seconds alone.
    """
    if vendor == "postgresql":
        return f"CAST(floor(extract(epoch FROM {column}) * 1000) AS bigint)"
    seconds = f"CAST(strftime('%s', substr({column}, 1, 19)) AS integer)"
    return f"({seconds} * 1000 + CAST(substr({column} || '.000', 21, 3) AS integer))"


def imported(vendor):
    """One row for what a rater chose at one moment in each sample of an import."""
    code = " ".join(f"WHEN '{choice}' THEN {place + 1}" for place, choice in enumerate(CHOICES))
    order = " ".join(f"WHEN '{shown}' THEN {place}" for place, shown in enumerate(ORDERS))
    moved = f"(CAST(CASE v.choice {code} END AS bigint) << ({BITS} * (a.place % {PLACES_A_BLOCK})))"
    marked = f"(CAST(1 AS bigint) << (a.place % {PLACES_A_BLOCK}))"
    told = "CASE WHEN v.created_at < i.created_at THEN v.created_at ELSE i.created_at END"
    moment = milliseconds(vendor, f"({told})")
    return f"""
        INSERT INTO evaluations_ballot (
            created_at, rater_id, comparison_id, shown, sample, source_import_id, block, first, final, inconsistent,
            moment
        )
        SELECT
            min(v.created_at), v.rater_id, v.comparison_id, CASE v.shown {order} END, v.sample, v.source_import_id,
            a.place / {PLACES_A_BLOCK},
            CAST(sum(CASE WHEN v.stage = 'final' THEN 0 ELSE {moved} END) AS bigint),
            CAST(sum(CASE WHEN v.stage = 'final' THEN {moved} ELSE 0 END) AS bigint),
            CAST(sum(CASE WHEN v.inconsistent THEN {marked} ELSE 0 END) AS bigint),
            {moment}
        FROM evaluations_verdict v
        JOIN evaluations_aspect a ON a.id = v.aspect_id
        JOIN evaluations_import i ON i.id = v.source_import_id
        GROUP BY v.rater_id, v.comparison_id, v.shown, v.sample, v.source_import_id, a.place / {PLACES_A_BLOCK},
            {moment}
        ORDER BY min(v.id)
    """


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0016_moments")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]

"""Which queries that were stored before are alike."""

import hashlib
import string

from django.db import migrations

AT_ONCE = 2_000
# The rule as it was when the column was made, whatever it is by now.
PUNCTUATION = str.maketrans("", "", string.punctuation)


def fill(apps, schema_editor):
    query = apps.get_model("evaluations", "Query")
    some = []
    for pk, text, context in query.objects.values_list("pk", "text", "context").iterator(chunk_size=AT_ONCE):
        some.append((likeness(text, context), pk))
        if len(some) == AT_ONCE:
            write(schema_editor.connection, some)
            some = []
    write(schema_editor.connection, some)


def write(connection, rows):
    with connection.cursor() as cursor:
        cursor.executemany("UPDATE evaluations_query SET likeness = %s WHERE id = %s", rows)


def likeness(text, context):
    words = " ".join(text.lower().translate(PUNCTUATION).split()) or text
    if context:
        words += "\0" + " ".join(context.lower().translate(PUNCTUATION).split())
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big") >> 1


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0027_columns_and_likeness")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]

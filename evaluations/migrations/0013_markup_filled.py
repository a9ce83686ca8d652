"""Which kinds of Markdown the responses hold that were stored before."""

from django.db import migrations

from evaluations.domain import markup_of, text_of

AT_ONCE = 2_000


def fill(apps, schema_editor):
    response = apps.get_model("evaluations", "Response")
    some = []
    for pk, messages in response.objects.values_list("pk", "messages").iterator(chunk_size=AT_ONCE):
        if found := int(markup_of(text_of(messages))):
            some.append((found, pk))
        if len(some) == AT_ONCE:
            write(schema_editor.connection, some)
            some = []
    write(schema_editor.connection, some)


def write(connection, rows):
    with connection.cursor() as cursor:
        cursor.executemany("UPDATE evaluations_response SET markup = %s WHERE id = %s", rows)


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0012_markup")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]

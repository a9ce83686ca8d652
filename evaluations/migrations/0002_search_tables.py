"""The tables that search looks words up in, which no model describes."""

from django.db import migrations

TABLE = {
    # A document for each comparison, with a GIN index.
    "postgresql": (
        "CREATE TABLE evaluations_words (comparison_id bigint PRIMARY KEY, document tsvector NOT NULL)",
        "CREATE INDEX words_of_comparison ON evaluations_words USING gin (document)",
    ),
    # An FTS5 table that keeps no texts. Words come cut and folded, with spaces between them: everything else in them
    # belongs to them.
    "sqlite": (
        "CREATE VIRTUAL TABLE evaluations_words USING fts5("
        "words, content='', tokenize=\"unicode61 remove_diacritics 0 categories 'L* N* C* M* S* P*'\")",
    ),
}


def create_search_tables(apps, schema_editor):
    for statement in TABLE[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def drop_search_tables(apps, schema_editor):
    schema_editor.execute("DROP TABLE evaluations_words")


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0001_release_0_1_0")]

    operations = [migrations.RunPython(create_search_tables, drop_search_tables)]

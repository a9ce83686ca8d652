"""What is true of a database, as JSON: run by the version that made it, and again by this one after migrating it.

DATABASE_URL=… JUDGEWEB_DATA_DIR=… python -m tests.upgrades.facts
"""

import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import django
from django.apps import apps
from django.core.management import call_command
from django.db import connection

EXAMPLE: Final = "example"
PAGES: Final = (
    "",
    "comparisons",
    "disagreements",
    "report",
    "judges",
    "runs",
    "imports",
    "exports",
    "people",
    "events",
)


def collect_facts() -> dict[str, Any]:
    return {"rows": count_rows(), "report": read_report(), "verdicts": read_verdicts(), "pages": open_pages()}


def count_rows() -> dict[str, int]:
    """Table → its rows; those of unfinished imports are counted as well."""
    models = apps.get_app_config("evaluations").get_models()
    return {model._meta.db_table: model._base_manager.count() for model in models}


def read_report() -> dict[str, Any]:
    output = io.StringIO()
    call_command("report", EXAMPLE, "--json", stdout=output)
    report: dict[str, Any] = json.loads(output.getvalue())
    return report


def read_verdicts() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "verdicts.jsonl")
        call_command("export", EXAMPLE, "--format", "verdicts", "--out", str(file), stdout=io.StringIO())
        return [json.loads(line) for line in file.read_text().splitlines()]


def open_pages() -> dict[str, int]:
    """Page of the example → status, as its owner sees it."""
    from django.test import Client

    from evaluations.models.users import User

    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.get(username="owner"))
    return {page: client.get(f"/e/{EXAMPLE}/{page}".rstrip("/") or "/", follow=True).status_code for page in PAGES}


def describe_schema() -> dict[str, Any]:
    """Table → its columns and constraints, by what they do: names of indexes may differ."""
    with connection.cursor() as cursor:
        return {
            table: {
                "columns": sorted(
                    (column.name, str(column.type_code), bool(column.null_ok), str(column.default))
                    for column in connection.introspection.get_table_description(cursor, table)
                ),
                "constraints": sorted(
                    json.dumps({**rule, "definition": None}, sort_keys=True, default=str)
                    for rule in connection.introspection.get_constraints(cursor, table).values()
                ),
            }
            for table in sorted(connection.introspection.table_names(cursor))
        }


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "judgeweb.settings")
    django.setup()
    what = {"facts": collect_facts, "schema": describe_schema}[sys.argv[1]]
    json.dump(what(), sys.stdout, default=str)

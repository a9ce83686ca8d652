"""Which migrations of judgeweb a database has seen."""

from typing import Final

from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

CARRY_OVER: Final = (
    "Start that version once more, export “Everything” and “Verdicts” of each evaluation, and import both files into a "
    "new evaluation here (docs/deployment.md, “Databases of other versions”)."
)


def unknown_migrations() -> list[str]:
    """The names that are recorded as applied but do not exist in this version, sorted."""
    recorder = MigrationRecorder(connection)
    if not recorder.has_table():
        return []
    label = apps.get_app_config("evaluations").label
    existing = {name for app, name in MigrationLoader(None, ignore_no_migrations=True).disk_migrations if app == label}
    applied = recorder.migration_qs.filter(app=label).values_list("name", flat=True)
    return sorted(set(applied) - existing)


def refusal_of_other_version() -> str | None:
    """One sentence on why this database cannot be used, or None where it can."""
    unknown = unknown_migrations()
    if not unknown:
        return None
    return (
        f"This database belongs to another version of judgeweb: it has the migration {unknown[-1]}, which this version "
        f"does not know. Nothing was changed. {CARRY_OVER}"
    )

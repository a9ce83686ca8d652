"""``manage.py make_ready``: everything that must be true of the data before the site is served.

News for the person at the terminal goes to stderr; the path of a fresh sign-in link alone to stdout.
"""

from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.urls import reverse

from evaluations.domain.disk_space import DiskFull
from evaluations.members.services import create_account, create_sign_in_link, make_administrator
from evaluations.models.migration_history import refusal_of_other_version
from evaluations.models.users import User
from evaluations.operations.database_copy import CopyRefused, copy_database

FIRST_USERNAME = "owner"


class Command(BaseCommand):
    help = "Copy the database, migrate, collect static files, and load the example on the first start."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--no-copy", action="store_true", help="migrate a PostgreSQL database that you have already backed up"
        )
        parser.add_argument("--no-static", action="store_true", help="leave static files to collectstatic")

    def handle(self, *args: object, **options: object) -> None:
        try:
            self.migrate(copies=not (options["no_copy"] or settings.MIGRATE_WITHOUT_COPY))
            close_files_to_others(settings.DATA_DIR)
            if not (settings.DEBUG or options["no_static"]):
                call_command("collectstatic", interactive=False, verbosity=0)
            self.welcome()
        except (DatabaseError, OSError) as error:
            reason = " ".join(str(error).split())
            raise CommandError(f"the database could not be prepared: {reason}") from error

    def migrate(self, *, copies: bool) -> None:
        if refusal := refusal_of_other_version():
            raise CommandError(refusal)
        if not has_unapplied_migrations():
            return
        if connection.introspection.table_names() and (copies or settings.USES_SQLITE):
            try:
                self.stderr.write(f"Kept a copy of the database: {copy_database(settings.DATA_DIR / 'backups')}")
            except DiskFull:
                raise CommandError(
                    f"the database must be migrated, and the disk of {settings.DATA_DIR} has no room for a copy of it "
                    "first. Make room, then start again"
                ) from None
            except CopyRefused as refused:
                raise CommandError(
                    f"the database must be migrated, and no copy of it can be made first: {refused}. Make one yourself "
                    "and set JUDGEWEB_MIGRATE_WITHOUT_COPY=1, or run: manage.py make_ready --no-copy"
                ) from None
        call_command("migrate", interactive=False, verbosity=0)

    def welcome(self) -> None:
        """The first start makes the first account and the example, later ones find them."""
        if not User.objects.exists():
            self.stderr.write("First start: loading the example evaluation.")
            make_first_account()
        administrator = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
        if administrator is not None:
            self.stdout.write(reverse("sign_in_link", args=[create_sign_in_link(administrator, by=None)]))


def close_files_to_others(folder: Path) -> None:
    """Take the rights of other accounts from all that an earlier version wrote."""
    for path in folder.rglob("*"):
        with suppress(OSError):
            if not path.is_symlink() and path.stat().st_mode & 0o077:
                path.chmod(0o700 if path.is_dir() else 0o600)


def has_unapplied_migrations() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


@transaction.atomic
def make_first_account() -> None:
    """With the example or not at all: a start that was cut off begins again."""
    make_administrator(create_account(FIRST_USERNAME, by=None))
    call_command("load_example", owner=FIRST_USERNAME, verbosity=0)

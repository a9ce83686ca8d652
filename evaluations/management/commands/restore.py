"""``manage.py restore FILE [--slug SLUG] [--owner USER]``"""

import shlex
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from evaluations.backups.services import RestoredEvaluation, restore_backup
from evaluations.management.product_command import ProductCommand
from evaluations.models.users import User


class Command(ProductCommand):
    help = "Restore an evaluation from a backup of this or another site."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--slug", default="", help="new URL name (default: as in the backup)")
        parser.add_argument("--owner", metavar="USER", help="an additional owner")

    def handle(self, *args: object, **options: Any) -> None:
        owner = None
        if options["owner"]:
            owner = User.objects.filter(username=options["owner"]).first()
            if owner is None:
                raise CommandError(f"No account “{options['owner']}”.")
        try:
            with options["file"].open("rb") as file:
                restored = restore_backup(file, name=options["file"].name, slug=options["slug"], owner=owner)
        except OSError as error:
            raise CommandError(f"{options['file']} cannot be read: {error.strerror}.") from error
        self.print_summary(restored)

    def print_summary(self, restored: RestoredEvaluation) -> None:
        self.stdout.write(
            f"Restored “{restored.evaluation.name}” as {restored.evaluation.slug}: {restored.rows:,} rows."
        )
        if restored.matched:
            self.stdout.write(f"Existing accounts, matched by username: {', '.join(restored.matched)}.")
        if restored.made:
            self.stdout.write(f"New accounts, without a way to sign in yet: {', '.join(restored.made)}.")
        for endpoint in restored.new_endpoints:
            self.stdout.write(
                f"Endpoint “{endpoint.name}” ({endpoint.base_url}) is new here, without a key: a site administrator "
                "checks its address and prices, then enters the name of its key variable on its page."
            )
        for endpoint in restored.ungranted:
            command = shlex.join(["manage.py", "grant_endpoint", endpoint.name, restored.evaluation.slug])
            self.stdout.write(
                f"Endpoint “{endpoint.name}” is not granted to this evaluation: a site administrator grants it on its "
                f"page, or with: {command} --budget USD"
            )

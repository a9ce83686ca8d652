"""``manage.py backup SLUG --out FILE``"""

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evaluations.backups.selectors import build_backup
from evaluations.domain.errors import InputRefused
from evaluations.models.evaluations import Evaluation


class Command(BaseCommand):
    help = "Write everything that one evaluation holds into a ZIP that another site can restore."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--out", required=True, metavar="FILE", type=Path)

    def handle(self, *args: object, **options: Any) -> None:
        evaluation = Evaluation.objects.filter(slug=options["slug"]).first()
        if evaluation is None:
            raise CommandError(f"There is no evaluation “{options['slug']}”.")
        try:
            size = write_backup_file(evaluation, options["out"])
        except InputRefused as refused:
            raise CommandError(str(refused)) from refused
        except OSError as error:
            raise CommandError(f"{options['out']} cannot be written: {error.strerror}.") from error
        self.stdout.write(f"{options['out']}: {size:,} bytes")


def write_backup_file(evaluation: Evaluation, path: Path) -> int:
    """Beside the file first, under its name once it is whole."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            for block in build_backup(evaluation):
                file.write(block)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path.stat().st_size

"""``manage.py export SLUG --format jsonl|csv --out FILE``"""

import os
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError

from evaluations.domain import InputRefused
from evaluations.models import Comparison, Evaluation
from evaluations.services.exporting import exporting


class Command(BaseCommand):
    help = "Write an evaluation's comparisons with all their labels into a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--format", required=True, help=" or ".join(exporting.WRITERS))
        parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="replaced when the export is whole")

    def handle(self, *args: Any, slug: str, out: Path, **options: Any) -> None:
        evaluation = Evaluation.objects.filter(slug=slug).first()
        if evaluation is None:
            raise CommandError(f"There is no evaluation at “{slug}”.")
        try:
            with replaced_when_whole(out) as file:
                export = exporting.begin(evaluation, written_as=options["format"], user=None)
                for block in exporting.write(export, Comparison.objects.filter(evaluation=evaluation)):
                    file.write(block)
        except InputRefused as refused:
            raise CommandError(str(refused)) from refused
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error.strerror or error}.") from error
        self.stdout.write(f"Wrote {out}: rows {export.rows:,}, SHA-256 {export.sha256}")


@contextmanager
def replaced_when_whole(path: Path) -> Iterator[BinaryIO]:
    """A file beside the one that is wanted, renamed at the end: a reader never meets half of it."""
    if path.is_dir():
        raise IsADirectoryError(None, "it is a folder")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

"""``manage.py backup SLUG --out FILE``"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from evaluations.backups.selectors import build_backup
from evaluations.management.product_command import ProductCommand, find_evaluation, replace_when_complete


class Command(ProductCommand):
    help = "Back up an evaluation as a ZIP file that any site can restore."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--out", required=True, metavar="FILE", type=Path)

    def handle(self, *args: object, **options: Any) -> None:
        evaluation, out = find_evaluation(options["slug"]), options["out"]
        with replace_when_complete(out) as file:
            for block in build_backup(evaluation):
                file.write(block)
        self.stdout.write(f"{out}: {out.stat().st_size:,} bytes")

"""``manage.py import_comparisons SLUG FILE``"""

from argparse import ArgumentParser
from typing import Any, TextIO, cast

from django.core.management.base import BaseCommand

from evaluations.management.file_import import add_file_arguments, import_file


class Command(BaseCommand):
    help = "Store the comparisons or responses of a file, and the verdicts that stand with them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_file_arguments(parser)
        parser.add_argument(
            "--pair", default="all", help="pairs made of responses: all, baseline:NAME, or random:N for each query"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        import_file(options, cast(TextIO, self.stdout), brings="comparisons", pair=options["pair"])

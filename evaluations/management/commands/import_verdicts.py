"""``manage.py import_verdicts SLUG FILE``"""

from argparse import ArgumentParser
from typing import TextIO, cast

from evaluations.management.file_import import add_file_arguments, add_rater_arguments, import_file
from evaluations.management.product_command import ProductCommand


class Command(ProductCommand):
    help = "Import verdicts on existing comparisons from a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_file_arguments(parser)
        add_rater_arguments(parser, "verdicts")

    def handle(self, *args: object, **options: object) -> None:
        import_file(options, cast(TextIO, self.stdout), brings="verdicts")

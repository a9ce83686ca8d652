"""``manage.py import_comparisons SLUG FILE``"""

from argparse import ArgumentParser
from typing import Any, TextIO, cast

from evaluations.management.file_import import (
    add_file_arguments,
    add_rater_arguments,
    add_response_arguments,
    import_file,
)
from evaluations.management.product_command import ProductCommand


class Command(ProductCommand):
    help = "Import comparisons or responses from a file, with the verdicts in the same rows."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_file_arguments(parser)
        add_response_arguments(parser)
        add_rater_arguments(parser, "verdicts")
        parser.add_argument(
            "--pair",
            default="all",
            help="how responses are paired: all, baseline:NAME, random:N or adjacent",
        )

    def handle(self, *args: object, **options: Any) -> None:
        import_file(options, cast(TextIO, self.stdout), brings="comparisons", pair=options["pair"])

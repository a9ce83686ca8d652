"""``manage.py import_scores SLUG FILE``"""

from argparse import ArgumentParser
from typing import TextIO, cast

from evaluations.management.file_import import (
    add_file_arguments,
    add_rater_arguments,
    add_response_arguments,
    import_file,
)
from evaluations.management.product_command import ProductCommand


class Command(ProductCommand):
    help = "Import scores of existing responses from a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_file_arguments(parser)
        add_response_arguments(parser)
        add_rater_arguments(parser, "scores")
        parser.add_argument("--lower-is-better", action="store_true", help="lower scores are better, as for ranks")
        parser.add_argument(
            "--derive-pairs",
            type=float,
            metavar="MARGIN",
            help="compare responses by score; scores within MARGIN of each other are a tie",
        )

    def handle(self, *args: object, **options: object) -> None:
        import_file(options, cast(TextIO, self.stdout), brings="scores")

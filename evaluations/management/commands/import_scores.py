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
    help = "Store the scores of a file: numbers that people or judges gave to responses that are here already."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_file_arguments(parser)
        add_response_arguments(parser)
        add_rater_arguments(parser, "scores")
        parser.add_argument(
            "--lower-is-better", action="store_true", help="of two scores the lower one is better, as it is of ranks"
        )
        parser.add_argument(
            "--derive-pairs",
            type=float,
            metavar="MARGIN",
            help="make a comparison of every two responses to a query with scores, where there is none; "
            "two scores that differ by at most MARGIN make a tie",
        )

    def handle(self, *args: object, **options: object) -> None:
        import_file(options, cast(TextIO, self.stdout), brings="scores")

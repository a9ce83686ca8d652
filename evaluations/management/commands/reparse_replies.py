"""``manage.py reparse_replies SLUG --judge NAME``"""

import json
from argparse import ArgumentParser
from typing import Any

from evaluations.jobs.runner import finish_job
from evaluations.judges.calls.reply_reparse import REPARSE, begin_reparse
from evaluations.management.product_command import ProductCommand, find_judges


class Command(ProductCommand):
    help = "Re-parse a judge's stored replies here, at no cost. Prints the changes as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="the evaluation")
        parser.add_argument("--judge", required=True, metavar="NAME")

    def handle(self, *args: object, slug: str, **options: Any) -> None:
        (judge,) = find_judges(slug, options["judge"])
        begun = begin_reparse(judge, user=None)
        finish_job(REPARSE, begun.pk)
        begun.refresh_from_db()
        self.stdout.write(json.dumps({"calls": begun.calls, "counts": begun.counts, "changes": begun.changes}))

"""``manage.py make_pairs SLUG --pair WAY``"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from evaluations.comparisons.pairing.selectors import count_pairs, rank_by_results
from evaluations.domain.files import ImportState
from evaluations.domain.pairing import Pairing, PairingWay, parse_pairing
from evaluations.imports.lifecycle import IMPORT_JOB
from evaluations.imports.pairs.services import start_pairing
from evaluations.jobs.runner import finish_job
from evaluations.management.product_command import ProductCommand, find_evaluation
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import describe_row_count


class Command(ProductCommand):
    help = "Create comparisons of existing responses. Existing pairs are skipped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="URL name of the evaluation")
        parser.add_argument("--pair", default="all", help="all, baseline:NAME, random:N per prompt, or adjacent")
        parser.add_argument("--dry-run", action="store_true", help="count without creating")
        parser.add_argument("--yes", action="store_true", help="create more than 100,000 comparisons")

    def handle(self, *args: object, **options: Any) -> None:
        evaluation, pairing = find_evaluation(options["slug"]), parse_pairing(options["pair"])
        if options["dry_run"]:
            number = count_new_pairs(evaluation, pairing)
            self.stdout.write(f"{describe_row_count('comparisons', number)} would be created.")
            return
        importing = start_pairing(evaluation, pairing, confirmed=options["yes"], user=None)
        finish_job(IMPORT_JOB, importing.pk)
        importing.refresh_from_db()
        if importing.state != ImportState.DONE:
            raise CommandError(importing.reason)
        for note in importing.summary.notes:
            self.stdout.write(note)
        self.stdout.write(f"{describe_row_count('comparisons', importing.new_comparisons)} created.")


def count_new_pairs(evaluation: Evaluation, pairing: Pairing) -> int:
    ranking = rank_by_results(evaluation).names if pairing.way == PairingWay.ADJACENT else ()
    return count_pairs(evaluation, [pairing], ranking).numbers[str(pairing)]

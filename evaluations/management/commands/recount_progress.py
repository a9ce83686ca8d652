"""``manage.py recount_progress [SLUG …]``"""

from argparse import ArgumentParser
from dataclasses import asdict

from evaluations.domain.errors import InputRefused
from evaluations.management.product_command import ProductCommand
from evaluations.models.evaluations import Evaluation
from evaluations.verdicts.progress_recount import find_wrong_counters, recount_now


class Command(ProductCommand):
    help = "Recount judged and reviewed comparisons, and repair counters that differ."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slugs", nargs="*", metavar="slug", help="URL names of evaluations (default: all)")

    def handle(self, *args: object, slugs: list[str], **options: object) -> None:
        evaluations = Evaluation.objects.filter(slug__in=slugs) if slugs else Evaluation.objects.all()
        if unknown := set(slugs) - {evaluation.slug for evaluation in evaluations}:
            raise InputRefused(f"There is no evaluation “{min(unknown)}”.")
        wrong = find_wrong_counters(evaluations)
        for evaluation, (counters, recounted) in wrong.items():
            recount_now(evaluation)
            differences = ", ".join(
                f"{name} {number} → {asdict(recounted)[name]}"
                for name, number in asdict(counters).items()
                if number != asdict(recounted)[name]
            )
            self.stdout.write(f"{evaluation.slug}: {differences}")
        if not wrong:
            self.stdout.write("All counters are correct.")

"""``manage.py retry_job KIND SUBJECT``"""

from argparse import ArgumentParser

from evaluations.jobs.sweeper import retry_job
from evaluations.management.product_command import ProductCommand


class Command(ProductCommand):
    help = "Retry a background job that failed repeatedly. `doctor` lists such jobs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("kind", help="kind of the job as in `doctor`, such as reparse")
        parser.add_argument("subject", type=int, help="its number")

    def handle(self, *args: object, kind: str, subject: int, **options: object) -> None:
        retry_job(kind, subject)
        self.stdout.write(f"{kind} {subject} will be retried by the next sweep.")

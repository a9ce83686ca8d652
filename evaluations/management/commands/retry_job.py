"""``manage.py retry_job KIND SUBJECT``"""

from argparse import ArgumentParser

from evaluations.jobs.sweeper import retry_job
from evaluations.management.product_command import ProductCommand


class Command(ProductCommand):
    help = "Let a background job that was set aside be worked on again. `doctor` lists such jobs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("kind", help="as doctor names it, such as reparse")
        parser.add_argument("subject", type=int, help="the number after it")

    def handle(self, *args: object, kind: str, subject: int, **options: object) -> None:
        retry_job(kind, subject)
        self.stdout.write(f"{kind} {subject} is worked on again with the next sweep.")

"""``manage.py retry_job KIND SUBJECT``"""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from evaluations.domain.errors import InputRefused
from evaluations.jobs.sweeper import retry_job


class Command(BaseCommand):
    help = "Let a background job that killed its worker twice be worked on again. `doctor` lists such jobs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("kind", help="as doctor names it, such as reparse")
        parser.add_argument("subject", type=int, help="the number after it")

    def handle(self, *args: object, kind: str, subject: int, **options: object) -> None:
        try:
            retry_job(kind, subject)
        except InputRefused as refused:
            raise CommandError(str(refused)) from refused
        self.stdout.write(f"{kind} {subject} is worked on again with the next sweep.")

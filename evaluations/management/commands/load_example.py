"""``manage.py load_example [--owner USER]``"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evaluations.domain import InputRefused
from evaluations.management.commands.create_evaluation import account
from evaluations.services.exemplifying import load_example


class Command(BaseCommand):
    help = "Load the example evaluation, if there is none yet."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--owner", metavar="USER", help="the account that owns it")

    def handle(self, *args: Any, owner: str | None, **options: Any) -> None:
        try:
            evaluation = load_example(owner=account(owner) if owner else None)
        except InputRefused as refused:
            raise CommandError(str(refused)) from refused
        if options["verbosity"]:
            said = f"Loaded the example evaluation at {evaluation.slug}." if evaluation else "It was loaded before."
            self.stdout.write(said)

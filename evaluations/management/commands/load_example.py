"""``manage.py load_example [--owner USER]``"""

from argparse import ArgumentParser

from evaluations.examples.services import load_example
from evaluations.management.commands.create_evaluation import require_owner_account
from evaluations.management.product_command import ProductCommand


class Command(ProductCommand):
    help = "Load the example evaluation, unless it is already loaded."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--owner", metavar="USER", help="the account that owns it")

    def handle(self, *args: object, owner: str | None, **options: object) -> None:
        evaluation = load_example(owner=require_owner_account(owner) if owner else None)
        if options["verbosity"]:
            message = (
                f"Loaded the example evaluation at {evaluation.slug}."
                if evaluation
                else "The example evaluation is already loaded."
            )
            self.stdout.write(message)

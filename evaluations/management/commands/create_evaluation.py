"""``manage.py create_evaluation SLUG --name …``"""

from argparse import ArgumentParser

from evaluations.domain.errors import InputRefused
from evaluations.domain.rubrics import RubricKind
from evaluations.management.product_command import ProductCommand
from evaluations.members.selectors import find_account
from evaluations.models.users import User
from evaluations.overview.services import create_evaluation
from evaluations.rubrics.selectors import list_builtin_rubrics


class Command(ProductCommand):
    help = "Create an evaluation with a built-in rubric."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="URL name: lowercase letters, digits, hyphens")
        parser.add_argument("--name", required=True)
        names = [name for kind in RubricKind for name in list_builtin_rubrics(kind)]
        parser.add_argument(
            "--rubric",
            default="six-aspect",
            help=f"built-in rubric: {' or '.join(names)} (default: %(default)s)",
        )
        parser.add_argument("--owner", metavar="USER", help="username of the owner")

    def handle(self, *args: object, slug: str, name: str, rubric: str, owner: str | None, **options: object) -> None:
        account = require_owner_account(owner) if owner else None
        create_evaluation(slug=slug, name=name, owner=account, by=None, rubric=rubric)
        self.stdout.write(f"Created evaluation {slug}.")


def require_owner_account(username: str) -> User:
    user = find_account(username)
    if user is None:
        raise InputRefused(f"No account “{username}”. Create it with  manage.py sign_in_link {username} --create")
    return user
